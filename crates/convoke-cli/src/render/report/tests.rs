//! How the facts of ends are gathered and said. What follows from facts is the kernel's table.

use convoke_kernel::{FailureKind, Lost, LostWork, Outcome};
use convoke_view::Losses;

use super::*;

fn ended_with(outcome: Option<Outcome>) -> DriveOutcome {
    DriveOutcome { outcome, ..DriveOutcome::default() }
}

fn failed(kind: FailureKind, text: &str) -> Outcome {
    Outcome::Failed { kind, message: "m".into(), text: text.to_owned() }
}

fn ok() -> DriveOutcome {
    ended_with(Some(Outcome::Ok { text: "a".into() }))
}

struct TestEnding {
    status: EndStatus,
    exit: Exit,
    reason: &'static str,
    answer: String,
    message: String,
}

/// What is made of a case in which nothing but this is so.
fn told(result: DriveOutcome, case: impl FnOnce(Case<'static>) -> Case<'static>) -> TestEnding {
    // Tests are short, and a case borrows everything.
    let result: &'static Result<DriveOutcome, Error> = Box::leak(Box::new(Ok(result)));
    let losses: &'static Losses = Box::leak(Box::default());
    let bare = Case {
        result,
        caught: None,
        questions: 0,
        exchanges: &[],
        own: None,
        programs: &[],
        losses,
        undone: &[],
        gate: None,
    };
    let Judged { ending, answer, failure } = case(bare).judge();
    let status = ending.status;
    let exit = Exit::of(ending);
    let reason = ending.reason.word();
    TestEnding { status, exit, reason, answer, message: failure.unwrap_or_default() }
}

fn exit(kind: FailureKind, text: &str) -> Exit {
    told(ended_with(Some(failed(kind, text))), |case| case).exit
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

fn lost(what: LostWork, kind: FailureKind) -> Lost {
    let run = "wf_a".into();
    let prompt = "p".into();
    let label = "l".into();
    let reason = "why".into();
    Lost { what, run, item: 1, prompt, label, agent: None, kind, reason }
}

#[test]
fn an_answer_for_which_something_was_left_out_is_a_part() {
    let judged = |result: DriveOutcome, lost: Vec<Lost>, refused: Option<&str>| {
        let losses = Losses { lost, refused: refused.map(str::to_owned), ..Losses::default() };
        let losses: &'static Losses = Box::leak(Box::new(losses));
        told(result, |case| Case { losses, ..case })
    };
    let check = |lost: Vec<Lost>, refused: Option<&str>, exit: Exit, reason: &str, says: &str| {
        let told = judged(ok(), lost, refused);
        assert_eq!(
            (told.status, told.exit, told.reason),
            (EndStatus::Partial, exit, reason),
            "{}",
            told.message
        );
        assert_eq!(told.answer, "a");
        assert!(told.message.contains(says), "{}", told.message);
    };
    let short = |what| lost(what, FailureKind::Budget);
    let two = vec![short(LostWork::Subtask), short(LostWork::Subtask)];
    check(two, None, Exit::Budget, "budget", "everything: 2 subtasks not run to the end;");
    let both = vec![short(LostWork::Subtask), short(LostWork::Verification)];
    check(both, None, Exit::Budget, "budget", "1 subtask not run to the end, 1 result not verified");
    let api =
        vec![lost(LostWork::Subtask, FailureKind::Api), lost(LostWork::Verification, FailureKind::Refused)];
    check(api, None, Exit::Partial, "lost", "not whole: 1 subtask, 1 verification lost (api, refused)");
    check(
        Vec::new(),
        Some("Workflow error: needs 9 agents"),
        Exit::Budget,
        "budget",
        "on it: needs 9 agents",
    );
    let told =
        judged(ended_with(Some(failed(FailureKind::Refused, ""))), vec![short(LostWork::Subtask)], None);
    assert_eq!(told.exit, Exit::Failed, "its own reason stays");
}

#[test]
fn a_signal_is_the_reason_only_while_there_is_no_outcome() {
    let by = |caught| move |case: Case<'static>| Case { caught: Some(caught), ..case };
    assert_eq!(told(ok(), by(Caught::Interrupt)).exit, Exit::Done);
    assert_eq!(told(ended_with(None), by(Caught::Interrupt)).exit, Exit::Interrupted);
    assert_eq!(told(ended_with(None), by(Caught::Terminate)).exit, Exit::Terminated);
    assert_eq!(told(ended_with(None), by(Caught::HangUp)).exit, Exit::HungUp);
    assert_eq!(told(ended_with(None), by(Caught::Pause)).reason, "paused");
}

#[test]
fn a_run_that_waits_for_a_person_exits_with_five_unless_a_signal_stopped_it() {
    let parked = || DriveOutcome { parked: true, ..ended_with(None) };
    let waits = told(parked(), |case| Case { questions: 2, ..case });
    assert_eq!((waits.status, waits.exit, waits.reason), (EndStatus::Waiting, Exit::NeedsPerson, "approval"));
    assert!(waits.message.starts_with("2 calls wait for your answer"), "{}", waits.message);
    let stopped = told(parked(), |case| Case { questions: 2, caught: Some(Caught::Interrupt), ..case });
    assert_eq!(stopped.exit, Exit::Interrupted);
}

/// A person's program with this status, as the case of its own call.
fn own(result: DriveOutcome, program: &ProgramReport, losses: Losses) -> TestEnding {
    let program: &'static ProgramReport = Box::leak(Box::new(program.clone()));
    let losses: &'static Losses = Box::leak(Box::new(losses));
    told(result, |case| Case {
        own: Some(Some(program)),
        programs: std::slice::from_ref(program),
        losses,
        ..case
    })
}

#[test]
fn a_persons_program_is_judged_by_what_became_of_it_and_its_answer_is_its_value() {
    let mut program = crate::report::program_for_tests();
    let digest = || ended_with(Some(failed(FailureKind::InvalidOutput, "a digest")));
    let mut check = |status: &'static str, exit: Exit, reason: &str, answers: bool| {
        program.status = status;
        let told = own(digest(), &program, Losses::default());
        let expected = if answers { program.value_text() } else { String::new() };
        assert_eq!((told.exit, told.reason, told.answer), (exit, reason, expected), "{status}");
    };
    check("complete", Exit::Done, "done", true);
    check("partial", Exit::Partial, "program_partial", true);
    check("failed", Exit::Failed, "program_failed", false);
    check("declined", Exit::Budget, "budget", false);
    check("stopped", Exit::NeedsPerson, "stopped", false);
    // One that could not even be begun has no value, and what was said of it is no answer.
    let never = told(digest(), |case| Case { own: Some(None), ..case });
    assert_eq!((never.exit, never.answer.as_str(), never.message.as_str()), (Exit::Failed, "", "m"));
    program.status = "waiting";
    let waits = own(DriveOutcome { parked: true, ..ended_with(None) }, &program, Losses::default());
    assert_eq!(waits.exit, Exit::NeedsPerson);
    assert!(waits.message.starts_with("1 question waits for your answer"), "{}", waits.message);
}

#[test]
fn a_program_that_the_budget_had_no_room_for_stops_by_the_budget_and_a_part_of_it_is_still_its_answer() {
    let mut program = crate::report::program_for_tests();
    let digest = || ended_with(Some(failed(FailureKind::InvalidOutput, "a digest")));
    let mut check = |status: &'static str, kind: FailureKind, thrown: &str, exit: Exit, says: &str| {
        (program.status, program.losses[0].failure) = (status, Some(kind));
        program.losses[0].why = "budget: $0.01 of $1.00 left; grant a new total with --budget-usd".into();
        program.failure = Some(Failed { kind: "thrown".into(), message: thrown.into() });
        let lost = vec![Lost { run: program.run.clone(), ..lost(LostWork::Call, kind) }];
        let threw =
            if convoke_view::is_want_of_room(thrown) { vec![program.run.clone()] } else { Vec::new() };
        let told = own(digest(), &program, Losses { lost, thrown: threw, ..Losses::default() });
        assert_eq!((told.exit, told.reason == "budget"), (exit, exit == Exit::Budget), "{}", told.message);
        assert_eq!(told.answer.is_empty(), status == "failed", "{}", told.message);
        assert!(told.message.contains(says), "{}", told.message);
    };
    let thrown = "line 3: Error: budget exhausted: $0.01 of $1.00 left";
    check(
        "partial",
        FailureKind::Budget,
        "",
        Exit::Budget,
        "no room for 1 of 3 agent calls: $0.01 of $1.00 left",
    );
    check("partial", FailureKind::Api, "", Exit::Partial, "1 of 3 agent calls did not end well");
    check("failed", FailureKind::Api, thrown, Exit::Budget, "because the budget had no room: line 3");
    check("failed", FailureKind::Budget, "TypeError", Exit::Budget, "because the budget had no room: $0.01");
    check("failed", FailureKind::Api, "TypeError", Exit::Failed, "the workflow failed (thrown): TypeError");
}

#[test]
fn a_lead_whose_program_waits_for_a_larger_budget_alone_is_stopped_by_the_budget() {
    let mut program = crate::report::program_for_tests();
    let mut check =
        |result: DriveOutcome, status: &'static str, asks: bool, questions: usize, expected: Exit| {
            program.status = status;
            if !asks {
                program.questions.clear();
            }
            let one: &'static ProgramReport = Box::leak(Box::new(program.clone()));
            let declined = if status == "declined" { vec![program.run.clone()] } else { Vec::new() };
            let losses: &'static Losses = Box::leak(Box::new(Losses { declined, ..Losses::default() }));
            let told =
                told(result, |case| Case { programs: std::slice::from_ref(one), questions, losses, ..case });
            assert_eq!(told.exit, expected, "{status}: {}", told.message);
            let budget = told.reason == "budget" && told.message.contains("needs 547 agents");
            assert_eq!(budget, expected == Exit::Budget, "{}", told.message);
        };
    let parked = || DriveOutcome { parked: true, ..ended_with(None) };
    check(parked(), "declined", true, 0, Exit::NeedsPerson);
    check(parked(), "declined", false, 1, Exit::NeedsPerson);
    check(parked(), "declined", false, 0, Exit::Budget);
    check(parked(), "stopped", false, 0, Exit::NeedsPerson);
    check(ok(), "declined", false, 0, Exit::Done);
}
