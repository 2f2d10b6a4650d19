//! Gathers the facts of how a session ended for the one function that decides it, and says the decision in
//! words: the answer, and what went wrong. It decides nothing itself; a failure never becomes an answer.

use convoke_kernel::{
    EndFacts, EndReason, EndStatus, Ending, FailureKind, Gate, LeadEnd, LostWork, Outcome, OwnProgram, ending,
};
use convoke_runtime::{DriveOutcome, Error};
use convoke_view::{Losses, count};

use crate::lead::Exchange;
use crate::report::{Declined, GateReport, ProgramReport};
use crate::signals::Caught;

/// How a session ended, and in which words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) ending: Ending,
    pub(super) answer: String,
    /// What went wrong.
    pub(super) failure: Option<String>,
}

/// Everything that is known of an end.
pub(super) struct Case<'a> {
    pub(super) result: &'a Result<DriveOutcome, Error>,
    pub(super) caught: Option<Caught>,
    /// Calls that wait for a person.
    pub(super) questions: usize,
    /// What was said to the lead and what came of it.
    pub(super) exchanges: &'a [Exchange],
    /// The program of a person's own call, which is then what counts; `None` inside if it was never begun.
    pub(super) own: Option<Option<&'a ProgramReport>>,
    pub(super) programs: &'a [ProgramReport],
    pub(super) losses: &'a Losses,
    /// What is left of the team's work.
    pub(super) undone: &'a [String],
    /// What became of the gate, if one was set.
    pub(super) gate: Option<&'a GateReport>,
}

impl Case<'_> {
    /// How it ended.
    pub(super) fn judge(&self) -> Judged {
        let why = self.without_finding();
        Judged { ending: ending(&self.facts()), answer: self.answer(why), failure: self.message(why) }
    }

    /// Why it ended so; that something was found says nothing of what went wrong.
    pub(super) fn reason(&self) -> EndReason {
        self.without_finding().reason
    }

    fn without_finding(&self) -> Ending {
        let facts = self.facts();
        let gate = if facts.gate == Gate::Found { Gate::Passed } else { facts.gate };
        ending(&EndFacts { gate, ..facts })
    }

    /// How the lead itself ended, whatever became of the others.
    pub(super) fn judge_lead(&self) -> Judged {
        let alone = Losses::default();
        let case = Case { losses: &alone, undone: &[], programs: &[], gate: None, ..*self };
        case.judge()
    }

    fn facts(&self) -> EndFacts {
        let asked = self.questions > 0 || self.programs.iter().any(|program| !program.questions.is_empty());
        let own = self.own.filter(|_| self.result.is_ok()).map(|own| own.map_or(OwnProgram::Open, own_end));
        let losses = match self.own {
            Some(own) => self.losses.of_own(own.map_or("", |own| own.run.as_str())),
            None => self.losses.clone(),
        };
        losses.enter(EndFacts {
            lead: self.lead(),
            stopped: self.caught.map(Caught::by),
            own,
            asked,
            left: number(self.undone.len()),
            gate: self.gate.map(|gate| gate.gate).unwrap_or_default(),
            ..EndFacts::default()
        })
    }

    fn lead(&self) -> LeadEnd {
        let ended = match self.result {
            Ok(ended) => ended,
            Err(Error::Unrecorded { .. } | Error::Journal(_)) => return LeadEnd::Journal,
            Err(_) => return LeadEnd::Broke,
        };
        let Some(last) = &ended.outcome else {
            return if ended.parked { LeadEnd::Parked } else { LeadEnd::Open };
        };
        if ended.parked && last.failure().is_none() {
            return LeadEnd::Parked;
        }
        match self.failed().map(|failed| (failed.failure(), failed.is_partial())) {
            // There is an answer, so the whole did not fail, whatever came after it.
            Some((Some(kind), partial)) => {
                let says = partial || (self.exchanges.len() > 1 && !self.said().trim().is_empty());
                LeadEnd::Failed { kind, says }
            }
            _ => LeadEnd::Answered,
        }
    }

    /// What failed of what was said to the lead: the last, else the first.
    fn failed(&self) -> Option<&Outcome> {
        let last = self.result.as_ref().ok().and_then(|ended| ended.outcome.as_ref());
        if let Some(last) = last.filter(|outcome| outcome.failure().is_some()) {
            return Some(last);
        }
        let several = if self.exchanges.len() > 1 { self.exchanges } else { &[] };
        several
            .iter()
            .filter_map(|exchange| exchange.outcome.as_ref())
            .find(|outcome| outcome.failure().is_some())
    }

    /// What the lead said to the task; it may have said more than its last words.
    fn said(&self) -> String {
        let told = self
            .exchanges
            .first()
            .and_then(|task| task.outcome.as_ref())
            .map(|outcome| outcome.text().to_owned());
        let last = match self.result {
            Ok(ended) => ended.outcome.as_ref().map(|outcome| outcome.text().to_owned()),
            Err(Error::Unrecorded { outcome: Some(outcome), .. }) => Some(outcome.text().to_owned()),
            Err(Error::Unrecorded { text, .. }) => text.clone(),
            Err(_) => None,
        };
        match self.exchanges {
            [_, _, ..] => told.unwrap_or_default(),
            _ => last.map(|last| told.filter(|_| !last.is_empty()).unwrap_or(last)).unwrap_or_default(),
        }
    }

    /// What there is to read: the lead's words, or what a person's program returned.
    fn answer(&self, end: Ending) -> String {
        match (self.own.filter(|_| self.result.is_ok()), end.status) {
            (Some(Some(own)), EndStatus::Done | EndStatus::Partial) if own.status != "declined" => {
                own.value_text()
            }
            (Some(_), _) => String::new(),
            (None, EndStatus::Interrupted) if self.undone.is_empty() && self.exchanges.len() < 2 => {
                String::new()
            }
            (None, _) => self.said(),
        }
    }

    /// What went wrong, in a sentence.
    fn message(&self, end: Ending) -> Option<String> {
        Some(match end.reason {
            EndReason::Done | EndReason::Finding => return None,
            EndReason::Journal => self.error(),
            EndReason::Internal if self.result.is_err() => self.error(),
            EndReason::Internal => "internal error: the session ended without an outcome".to_owned(),
            EndReason::Stopped(_) => self.stopped(),
            EndReason::Approval => self.waits(),
            EndReason::Failure(_) => match self.failed() {
                Some(Outcome::Failed { message, .. }) => message.clone(),
                _ => String::new(),
            },
            EndReason::Budget => self.no_room(),
            EndReason::Lost => self.lost(),
            EndReason::Degraded => self.degraded(),
            EndReason::Gate => self.gate.and_then(GateReport::blind).unwrap_or_default(),
            EndReason::ProgramPartial => self.program_partial(),
            EndReason::ProgramFailed => self.program_failed(),
            EndReason::TeamLeft => {
                let things = count(number(self.undone.len()), "thing");
                format!("the team has come to rest and left {things} undone")
            }
        })
    }

    fn error(&self) -> String {
        self.result.as_ref().err().map(ToString::to_string).unwrap_or_default()
    }

    fn stopped(&self) -> String {
        match (self.caught, self.own) {
            (None, Some(_)) => "the workflow was stopped before its end".to_owned(),
            (Some(caught), _) if self.result.as_ref().is_ok_and(|ended| ended.outcome.is_none()) => {
                format!("stopped by {}; everything up to here is recorded", caught.name())
            }
            (Some(caught), _) => {
                format!(
                    "stopped by {} before the team was done; everything up to here is recorded",
                    caught.name()
                )
            }
            (None, None) => "it was stopped before its end".to_owned(),
        }
    }

    fn waits(&self) -> String {
        let asked = self.own.flatten().map_or(0, |own| own.questions.len());
        let (number, noun) = match asked {
            // What cannot be counted now waits all the same.
            0 => (number(self.questions).max(1), "call"),
            asked => (number(asked), "question"),
        };
        let verb = if number == 1 { "waits" } else { "wait" };
        format!("{} {verb} for your answer; everything that could go on without it has", count(number, noun))
    }

    fn no_room(&self) -> String {
        if let Some(own) = self.own.flatten() {
            return if own.status == "declined" {
                declined(own.declined.iter().collect())
            } else {
                no_room(own)
            };
        }
        let steps: Vec<&Declined> = self.programs.iter().filter_map(ProgramReport::waiting_step).collect();
        let Losses { refused, .. } = self.losses;
        if self.result.as_ref().is_ok_and(|ended| ended.parked) && !steps.is_empty() {
            return declined(steps);
        }
        let short = |what| self.losses.number(what, true);
        let parts = [
            (short(LostWork::Subtask), "subtask", "not run to the end"),
            (short(LostWork::Verification), "result", "not verified"),
            (short(LostWork::Call), "call", "not done"),
        ];
        let parts = parts.iter().filter(|(number, ..)| *number > 0);
        let said: Vec<String> =
            parts.map(|(number, noun, what)| format!("{} {what}", count(*number, noun))).collect();
        match refused {
            Some(why) => format!(
                "a whole fan-out was refused, so no agent worked on it: {}",
                why.strip_prefix("Workflow error: ").unwrap_or(why)
            ),
            None => format!(
                "the budget had no room for everything: {}; the same task with a larger one takes up what \
                 is done and pays for the rest alone",
                said.join(", ")
            ),
        }
    }

    fn lost(&self) -> String {
        let parts = [
            (LostWork::Subtask, "subtask"),
            (LostWork::Verification, "verification"),
            (LostWork::Call, "agent call"),
        ];
        let said: Vec<String> = parts
            .into_iter()
            .map(|(what, noun)| (self.losses.number(what, false), noun))
            .filter(|(number, _)| *number > 0)
            .map(|(number, noun)| count(number, noun))
            .collect();
        let mut kinds: Vec<&str> =
            self.losses.lost.iter().filter(|lost| !lost.is_short()).map(|lost| lost.kind.word()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        format!("the answer is not whole: {} lost ({})", said.join(", "), kinds.join(", "))
    }

    fn degraded(&self) -> String {
        let results = count(self.losses.degraded, "result");
        format!(
            "the answer rests on nothing sound: {results}, and every one of them is degraded; see the agents \
                below"
        )
    }

    fn program_partial(&self) -> String {
        let Some(own) = self.own.flatten() else { return "the workflow is partial".to_owned() };
        format!(
            "the workflow is partial: {} of {} did not end well; its value stands as far as it goes",
            own.losses.len(),
            count(own.counts.agent_calls, "agent call")
        )
    }

    fn program_failed(&self) -> String {
        match self.own.flatten().map(|own| &own.failure) {
            Some(Some(failure)) => format!("the workflow failed ({}): {}", failure.kind, failure.message),
            Some(None) => "the workflow failed".to_owned(),
            None => {
                let failed = self.programs.iter().rev().find(|program| program.status == "failed");
                let named =
                    failed.map(|program| format!(" {} {}", program.name, program.run)).unwrap_or_default();
                format!(
                    "the answer is not whole: the lead's workflow{named} failed, and none has done its work \
                        since"
                )
            }
        }
    }
}

/// What has become of a person's own program.
fn own_end(own: &ProgramReport) -> OwnProgram {
    match own.status {
        "complete" => OwnProgram::Complete,
        "partial" => OwnProgram::Partial,
        "failed" => OwnProgram::Failed,
        "stopped" => OwnProgram::Stopped,
        "declined" => OwnProgram::Declined,
        _ => OwnProgram::Open,
    }
}

/// What one exchange came to, by itself.
pub(super) fn judge_outcome(outcome: &Outcome) -> EndStatus {
    let lead = match outcome.failure() {
        None => LeadEnd::Answered,
        Some(kind) => LeadEnd::Failed { kind, says: outcome.is_partial() },
    };
    ending(&EndFacts { lead, ..EndFacts::default() }).status
}

fn declined(steps: Vec<&Declined>) -> String {
    let why: Vec<&str> = steps.iter().map(|step| step.reason.as_str()).collect();
    let why = why.join("; ");
    format!("the budget has no room for the next step: {why}; nothing of that step was started")
}

/// What is said of a program that did not get everything because the budget had no room.
fn no_room(program: &ProgramReport) -> String {
    let said = program.shortages();
    let budget = format!("{}: ", FailureKind::Budget.word());
    let why = said.first().map(|why| why.strip_prefix(&budget).unwrap_or(why)).unwrap_or_default();
    match program.status {
        "partial" => format!(
            "the workflow is partial: the budget had no room for {} of {}: {why}; its value stands as far \
                as it goes",
            said.len(),
            count(program.counts.agent_calls, "agent call")
        ),
        _ => format!("the workflow failed, because the budget had no room: {why}"),
    }
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
