//! Judges how a run ended: a status, an exit code, a reason, the answer and what went wrong. Pure; a failure never becomes an answer.

use convoke_kernel::{FailureKind, Outcome};
use convoke_runtime::{Ended, Error};

use super::Status;
use crate::failure::Exit;
use crate::lead::Exchange;
use crate::render::kind_word;
use crate::report::{Declined, ProgramReport};
use crate::signals::Caught;
use crate::work::Short;
use convoke_terminal::count;

/// Status, exit code, reason, answer, and what went wrong.
pub(super) type Judged = (Status, Exit, String, String, Option<String>);

pub(super) fn judge(result: Result<Ended, Error>, caught: Option<Caught>, questions: usize) -> Judged {
    match (result, caught) {
        // The lead has answered, and others were cut off: that is not the end of it.
        (Ok(Ended { outcome: Some(Outcome::Ok { text }), left, .. }), Some(caught)) if !left.is_empty() => {
            let message =
                format!("stopped by {} before the team was done; everything up to here is recorded", caught.name());
            (Status::Interrupted, caught.exit(), caught.reason().to_owned(), text, Some(message))
        }
        (Ok(Ended { outcome: Some(Outcome::Ok { text }), parked: true, .. }), None) => {
            let (status, exit, reason, _, failure) = waits_for(questions);
            (status, exit, reason, text, failure)
        }
        (Ok(Ended { outcome: Some(outcome), .. }), _) => judge_outcome(outcome),
        (Ok(Ended { outcome: None, .. }), Some(caught)) => {
            let message = format!("stopped by {}; everything up to here is recorded", caught.name());
            (Status::Interrupted, caught.exit(), caught.reason().to_owned(), String::new(), Some(message))
        }
        (Ok(Ended { outcome: None, parked: true, .. }), None) => waits_for(questions),
        (Ok(Ended { outcome: None, .. }), None) => {
            let message = "the run ended without an outcome; this is a fault of convoke".to_owned();
            (Status::Failed, Exit::Failed, "internal".to_owned(), String::new(), Some(message))
        }
        (Err(error @ Error::Unrecorded { .. }), _) => {
            let message = error.to_string();
            let answer = match error {
                Error::Unrecorded { outcome: Some(outcome), .. } => outcome.text().to_owned(),
                Error::Unrecorded { text, .. } => text.unwrap_or_default(),
                _ => String::new(),
            };
            (Status::Failed, Exit::Failed, "journal".to_owned(), answer, Some(message))
        }
        (Err(error), _) => {
            let reason = if matches!(error, Error::Journal(_)) { "journal" } else { "internal" };
            (Status::Failed, Exit::Failed, reason.to_owned(), String::new(), Some(error.to_string()))
        }
    }
}

/// A run whose calls wait for a person.
fn waits_for(questions: usize) -> Judged {
    // What cannot be counted now waits all the same.
    let calls = count(u32::try_from(questions).unwrap_or(u32::MAX).max(1), "call");
    let verb = if questions > 1 { "wait" } else { "waits" };
    let message = format!("{calls} {verb} for your answer; everything that could go on without it has");
    (Status::Waiting, Exit::NeedsPerson, "approval".to_owned(), String::new(), Some(message))
}

/// The judgement of a run of several exchanges: the answer is that to the task, and a failure of any of them is one of the
/// whole, the first one's before that of a later one.
pub(super) fn judge_all(last: Judged, exchanges: &[Exchange]) -> Judged {
    let [task, _, ..] = exchanges else {
        // A lead that heard of its team has said more than its last words.
        let said = exchanges.first().and_then(|task| task.outcome.as_ref()).map(|outcome| outcome.text().to_owned());
        let (status, exit, reason, answer, failure) = last;
        return (status, exit, reason, said.filter(|_| !answer.is_empty()).unwrap_or(answer), failure);
    };
    let answer = task.outcome.as_ref().map(|outcome| outcome.text().to_owned()).unwrap_or_default();
    let failed = exchanges.iter().filter_map(|exchange| exchange.outcome.clone()).map(judge_outcome);
    let first_failed = failed.into_iter().find(|(status, ..)| *status != Status::Done);
    let (status, exit, reason, _, failure) = match (last.0, first_failed) {
        (Status::Done, Some(failed)) => failed,
        _ => last,
    };
    // There is an answer, so the whole did not fail, whatever came after it.
    let (status, exit) = match (status, exit) {
        (Status::Failed, Exit::Failed) if !answer.trim().is_empty() => (Status::Partial, Exit::Partial),
        other => other,
    };
    (status, exit, reason, answer, failure)
}

/// An answer is not whole while its team has left something undone.
pub(super) fn judge_team(judged: Judged, left: &[String]) -> Judged {
    match judged {
        (Status::Done, Exit::Done, _, answer, _) if !left.is_empty() => {
            let things = count(u32::try_from(left.len()).unwrap_or(u32::MAX), "thing");
            let message = format!("the team has come to rest and left {things} undone");
            (Status::Partial, Exit::Partial, "team_left".to_owned(), answer, Some(message))
        }
        other => other,
    }
}

/// An answer for which something was left out because the envelope had no room for it is not whole.
pub(super) fn judge_work(judged: Judged, short: Short) -> Judged {
    match judged {
        (Status::Done, Exit::Done, _, answer, _) if short != Short::default() => {
            let parts = [(short.subtasks, "subtask", "not run to the end"), (short.results, "result", "not verified")];
            let parts = parts.iter().filter(|(number, ..)| *number > 0);
            let said: Vec<String> =
                parts.map(|(number, noun, what)| format!("{} {what}", count(*number, noun))).collect();
            let message = format!(
                "the budget had no room for everything: {}; the same task with a larger one takes up what is done and \
                 pays for the rest alone",
                said.join(", ")
            );
            (Status::Partial, Exit::Budget, kind_word(FailureKind::Budget), answer, Some(message))
        }
        other => other,
    }
}

pub(super) fn judge_outcome(outcome: Outcome) -> Judged {
    let status = if outcome.is_partial() { Status::Partial } else { Status::Failed };
    match outcome {
        Outcome::Ok { text } => (Status::Done, Exit::Done, "done".to_owned(), text, None),
        Outcome::Failed { kind, message, text } => {
            let exit = match kind {
                FailureKind::Budget => Exit::Budget,
                _ if status == Status::Partial => Exit::Partial,
                _ => Exit::Failed,
            };
            (status, exit, kind_word(kind), text, Some(message))
        }
    }
}

/// The judgement of a person's own call: what counts is what became of its program, and the answer is the value.
pub(super) fn judge_program(judged: Judged, program: Option<&ProgramReport>) -> Judged {
    let (status, exit, reason, _, failure) = judged;
    // Without a run there is no value, only why there is none.
    let Some(program) = program else { return (status, exit, reason, String::new(), failure) };
    let answer = program.value_text();
    let waits = u32::try_from(program.questions.len()).unwrap_or(u32::MAX);
    match (status, program.status) {
        // A stop, a broken journal: whatever the program came to before stands, and is not the end of it.
        (Status::Interrupted, _) => (status, exit, reason, String::new(), failure),
        (Status::Waiting, _) if waits > 0 => {
            let verb = if waits == 1 { "waits" } else { "wait" };
            let message = format!(
                "{} {verb} for your answer; everything that could go on without it has",
                count(waits, "question")
            );
            (status, exit, reason, String::new(), Some(message))
        }
        (_, "complete") => (Status::Done, Exit::Done, "done".to_owned(), answer, None),
        (_, "partial" | "failed") if !program.shortages().is_empty() => {
            let (status, answer) = match program.status {
                "partial" => (Status::Partial, answer),
                _ => (Status::Failed, String::new()),
            };
            let message = no_room(program);
            (status, Exit::Budget, kind_word(FailureKind::Budget), answer, Some(message))
        }
        (_, "partial") => {
            let (lost, all) = (program.losses.len(), program.counts.agent_calls);
            let message = format!(
                "the workflow is partial: {lost} of {} did not end well; its value stands as far as it goes",
                count(all, "agent call")
            );
            (Status::Partial, Exit::Partial, "program_partial".to_owned(), answer, Some(message))
        }
        (_, "failed") => {
            let message = match &program.failure {
                Some(failure) => format!("the workflow failed ({}): {}", failure.kind, failure.message),
                None => "the workflow failed".to_owned(),
            };
            (Status::Failed, Exit::Failed, "program_failed".to_owned(), String::new(), Some(message))
        }
        (_, "stopped") => {
            // As after the stop itself: it is unfinished and goes on when a person says so.
            let message = "the workflow was stopped before its end".to_owned();
            (Status::Interrupted, Exit::NeedsPerson, "stopped".to_owned(), String::new(), Some(message))
        }
        (_, "declined") => {
            let steps: Vec<&Declined> = program.declined.iter().collect();
            declined(&steps)
        }
        _ => (status, exit, reason, String::new(), failure),
    }
}

/// The judgement of a lead that waits: for a larger envelope, if none of its workflows and nobody below it waits for an answer.
pub(super) fn judge_waiting(judged: Judged, programs: &[ProgramReport], questions: usize) -> Judged {
    let steps: Vec<&Declined> = programs.iter().filter_map(ProgramReport::waiting_step).collect();
    let asked = questions > 0 || programs.iter().any(|program| !program.questions.is_empty());
    if judged.0 == Status::Waiting && !asked && !steps.is_empty() { declined(&steps) } else { judged }
}

fn declined(steps: &[&Declined]) -> Judged {
    let why: Vec<&str> = steps.iter().map(|step| step.reason.as_str()).collect();
    let why = why.join("; ");
    let message = format!("the envelope has no room for the next step: {why}; nothing of that step was started");
    (Status::Partial, Exit::Budget, kind_word(FailureKind::Budget), String::new(), Some(message))
}

/// What is said of a program that did not get everything because the envelope had no room.
fn no_room(program: &ProgramReport) -> String {
    let said = program.shortages();
    let why = said.first().map(|why| why.strip_prefix("budget: ").unwrap_or(why)).unwrap_or_default();
    let calls = |number: usize| count(u32::try_from(number).unwrap_or(u32::MAX), "agent call");
    match program.status {
        "partial" => format!(
            "the workflow is partial: the envelope had no room for {} of {}: {why}; its value stands as far as it goes",
            said.len(),
            calls(program.counts.agent_calls as usize)
        ),
        _ => format!("the workflow failed, because the envelope had no room: {why}"),
    }
}
