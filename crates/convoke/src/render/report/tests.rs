//! How the ends of runs are judged.

use convoke_kernel::{FailureKind, Outcome};

use super::*;
use crate::render::kind_word;
use crate::work::Short;

fn ended_with(outcome: Option<Outcome>) -> Ended {
    Ended { outcome, ..Ended::default() }
}

fn exit(kind: FailureKind, text: &str) -> Exit {
    let outcome = Outcome::Failed { kind, message: String::new(), text: text.to_owned() };
    judge(Ok(ended_with(Some(outcome))), None, 0).1
}

#[test]
fn an_exit_code_says_whether_there_is_something_to_read() {
    assert_eq!(exit(FailureKind::TurnLimit, "half"), Exit::Partial);
    assert_eq!(exit(FailureKind::TurnLimit, " "), Exit::Failed);
    assert_eq!(exit(FailureKind::Truncated, "half"), Exit::Partial);
    assert_eq!(exit(FailureKind::Budget, ""), Exit::Budget);
    assert_eq!(exit(FailureKind::Refused, "no"), Exit::Failed);
    assert_eq!(exit(FailureKind::Transport, ""), Exit::Failed);
}

#[test]
fn an_answer_for_which_the_budget_left_something_out_is_a_part() {
    let judged = |outcome: Outcome, subtasks: u32, results: u32| {
        let (status, exit, reason, answer, failure) = judge_work(judge_outcome(outcome), Short { subtasks, results });
        let left = failure.and_then(|failure| failure.split([':', ';']).nth(1).map(|left| left.trim().to_owned()));
        (status, exit, reason, answer, left)
    };
    let ok = || Outcome::Ok { text: "a".into() };
    assert_eq!(judged(ok(), 0, 0), (Status::Done, Exit::Done, "done".into(), "a".into(), None));
    let check = |subtasks: u32, results: u32, left: &str| {
        let expected = (Status::Partial, Exit::Budget, "budget".into(), "a".into(), Some(left.to_owned()));
        assert_eq!(judged(ok(), subtasks, results), expected);
    };
    check(2, 0, "2 subtasks not run to the end");
    check(1, 3, "1 subtask not run to the end, 3 results not verified");
    let failed = Outcome::Failed { kind: FailureKind::Refused, message: "no".into(), text: String::new() };
    assert_eq!(judged(failed, 2, 0).1, Exit::Failed, "its own reason stays");
}

#[test]
fn a_signal_is_the_reason_only_while_there_is_no_outcome() {
    let done = ended_with(Some(Outcome::Ok { text: "a".into() }));
    assert_eq!(judge(Ok(done), Some(Caught::Interrupt), 0).1, Exit::Done);
    let open = || Ok(ended_with(None));
    assert_eq!(judge(open(), Some(Caught::Interrupt), 0).1, Exit::Interrupted);
    assert_eq!(judge(open(), Some(Caught::Terminate), 0).1, Exit::Terminated);
    assert_eq!(judge(open(), Some(Caught::HangUp), 0).1, Exit::HungUp);
}

#[test]
fn a_kind_of_failure_is_written_as_events_write_it() {
    assert_eq!(kind_word(FailureKind::TurnLimit), "turn_limit");
    assert_eq!(kind_word(FailureKind::Api), "api");
    let outcome = Outcome::Failed { kind: FailureKind::TurnLimit, message: String::new(), text: String::new() };
    assert_eq!(judge(Ok(ended_with(Some(outcome))), None, 0).2, "turn_limit");
}

#[test]
fn a_run_that_waits_for_a_person_exits_with_five_unless_a_signal_stopped_it() {
    let parked = || Ok(Ended { parked: true, ..ended_with(None) });
    let (status, exit, reason, _, message) = judge(parked(), None, 2);
    assert_eq!((status, exit, reason.as_str()), (Status::Waiting, Exit::NeedsPerson, "approval"));
    assert!(message.unwrap().starts_with("2 calls wait for your answer"));
    assert_eq!(judge(parked(), Some(Caught::Interrupt), 2).1, Exit::Interrupted);
}

#[test]
fn a_persons_program_is_judged_by_what_became_of_it_and_its_answer_is_its_value() {
    let mut program = crate::report::program_for_tests();
    let digest = || Outcome::Failed { kind: FailureKind::InvalidOutput, message: "m".into(), text: "a digest".into() };
    let mut check = |status: &'static str, exit: Exit, reason: &str, answers: bool| {
        program.status = status;
        let (_, code, why, answer, _) = judge_program(judge_outcome(digest()), Some(&program));
        let expected = if answers { program.value_text() } else { String::new() };
        assert_eq!((code, why.as_str(), answer), (exit, reason, expected), "{status}");
    };
    check("complete", Exit::Done, "done", true);
    check("partial", Exit::Partial, "program_partial", true);
    check("failed", Exit::Failed, "program_failed", false);
    check("declined", Exit::Budget, "budget", false);
    check("stopped", Exit::NeedsPerson, "stopped", false);
    // One that could not even be begun has no value, and what was said of it is no answer.
    let (_, code, _, answer, failure) = judge_program(judge_outcome(digest()), None);
    assert_eq!((code, answer, failure), (Exit::Failed, String::new(), Some("m".to_owned())));
    let parked = judge(Ok(Ended { parked: true, ..ended_with(None) }), None, 0);
    program.status = "waiting";
    let (_, code, _, _, message) = judge_program(parked, Some(&program));
    assert_eq!(code, Exit::NeedsPerson);
    assert!(message.unwrap().starts_with("1 question waits for your answer"));
    let stopped = judge(Ok(ended_with(None)), Some(Caught::Interrupt), 0);
    assert_eq!(judge_program(stopped, Some(&program)).1, Exit::Interrupted);
}

#[test]
fn a_program_that_the_envelope_had_no_room_for_stops_by_the_budget_and_a_part_of_it_is_still_its_answer() {
    let mut program = crate::report::program_for_tests();
    let digest = || Outcome::Failed { kind: FailureKind::InvalidOutput, message: "m".into(), text: "a digest".into() };
    let mut check = |status: &'static str, kind: FailureKind, thrown: &str, exit: Exit, says: &str| {
        (program.status, program.losses[0].failure) = (status, Some(kind));
        program.losses[0].why = "budget: $0.01 of $1.00 left; grant a new total with --budget-usd".into();
        program.failure = Some(Failed { kind: "thrown".into(), message: thrown.into() });
        let (_, code, reason, answer, message) = judge_program(judge_outcome(digest()), Some(&program));
        let message = message.unwrap();
        assert_eq!((code, reason == "budget"), (exit, exit == Exit::Budget), "{message}");
        assert_eq!(answer.is_empty(), status == "failed", "{message}");
        assert!(message.contains(says), "{message}");
    };
    let thrown = "line 3: Error: budget exhausted: $0.01 of $1.00 left";
    check("partial", FailureKind::Budget, "", Exit::Budget, "no room for 1 of 3 agent calls: $0.01 of $1.00 left");
    check("partial", FailureKind::Api, "", Exit::Partial, "1 of 3 agent calls did not end well");
    check("failed", FailureKind::Api, thrown, Exit::Budget, "because the envelope had no room: line 3");
    check("failed", FailureKind::Budget, "TypeError", Exit::Budget, "because the envelope had no room: $0.01");
    check("failed", FailureKind::Api, "TypeError", Exit::Failed, "the workflow failed (thrown): TypeError");
}

#[test]
fn a_lead_whose_program_waits_for_a_larger_envelope_alone_is_stopped_by_the_budget() {
    let parked = || judge(Ok(Ended { parked: true, ..ended_with(None) }), None, 0);
    let mut program = crate::report::program_for_tests();
    let mut check = |status: &'static str, asks: bool, questions: usize, expected: Exit| {
        program.status = status;
        if !asks {
            program.questions.clear();
        }
        let (_, exit, reason, _, message) = judge_waiting(parked(), std::slice::from_ref(&program), questions);
        let message = message.unwrap();
        assert_eq!(exit, expected, "{status}: {message}");
        assert_eq!(reason == "budget" && message.contains("needs 547 agents"), expected == Exit::Budget, "{message}");
    };
    check("declined", true, 0, Exit::NeedsPerson);
    check("declined", false, 1, Exit::NeedsPerson);
    check("declined", false, 0, Exit::Budget);
    check("stopped", false, 0, Exit::NeedsPerson);
    let done = judge_outcome(Outcome::Ok { text: "a".into() });
    program.status = "declined";
    assert_eq!(judge_waiting(done, std::slice::from_ref(&program), 0).1, Exit::Done, "it waits for nothing");
}
