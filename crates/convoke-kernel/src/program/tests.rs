//! Runs of programs, step by step.

use super::*;
use crate::ids::{AgentId, SessionId};
use crate::run::ItemStatus;
use crate::segment::Segment;
use crate::wire::FailureKind;

fn spec() -> ProgramSpec {
    ProgramSpec {
        run: "wf_aaaaaaaaaaaaaaaa".into(),
        session: SessionId::from_bits([1; 10]),
        lead: AgentId::from_bits([2; 10]),
        call: "c".into(),
        dir: "/d".into(),
        base: "b".into(),
        voters: 1,
        name: "n".into(),
        description: "d".into(),
        phases: Vec::new(),
        source: "s".into(),
        digest: "x".into(),
        path: None,
        args: None,
        budget_total: None,
        spent_before: 0,
        background: false,
        from: None,
        origin: None,
        consent: "flag".into(),
    }
}

fn text(value: &str) -> Segment {
    Segment::encode(&value.into())
}

fn made(call: u32, key: &str) -> MadeCall {
    MadeCall {
        call,
        kind: CallKind::Agent,
        label: key.into(),
        phase: None,
        within: None,
        path: String::new(),
        key: key.into(),
        occurrence: 0,
        agents: 1,
        schema: None,
        attempt: 0,
        want: text(key),
    }
}

fn step(fed: Option<u32>, calls: Vec<MadeCall>, end: Option<ProgramEnd>) -> ProgramInput {
    ProgramInput::Step(Box::new(StepTaken { fed, calls, cleared: Vec::new(), said: Vec::new(), end }))
}

fn returned(value: &str) -> Option<ProgramEnd> {
    Some(ProgramEnd::Returned { value: text(value), replaced: Vec::new() })
}

fn ok(value: &str) -> CallResult {
    let mut result = CallResult::bare(ItemStatus::Ok, CallAnswer::Value(text(value)));
    result.agents = vec![AgentId::from_bits([3; 10])];
    result
}

fn failed(kind: FailureKind) -> CallResult {
    let status = ItemStatus::Failed { kind, message: "no".into() };
    let answer = answer_to(&status, None, false);
    CallResult { agents: vec![AgentId::from_bits([3; 10])], ..CallResult::bare(status, answer) }
}

fn ended(call: u32, result: CallResult) -> ProgramInput {
    ProgramInput::Ended { call, result: Box::new(result), spent_total: 0 }
}

fn hear(program: &mut Program, input: ProgramInput) -> Vec<&'static str> {
    let events = program.decide(input).unwrap();
    let mut kinds = Vec::new();
    for event in &events {
        let text = event.encode().unwrap();
        assert_eq!(&ProgramEvent::decode(&text).unwrap(), event, "{text}");
        program.apply(event, 7).unwrap();
        kinds.push(event.kind());
    }
    kinds
}

fn started(calls: Vec<MadeCall>) -> Program {
    let mut program = Program::new();
    hear(&mut program, ProgramInput::Start(Box::new(spec())));
    hear(&mut program, step(None, calls, None));
    program
}

#[test]
fn a_run_is_complete_only_when_the_program_returned_and_every_agent_ended_well() {
    let mut program = started(vec![made(1, "a"), made(2, "b")]);
    assert_eq!(program.pending(), [1, 2]);
    hear(&mut program, ended(2, ok("two")));
    hear(&mut program, step(Some(2), Vec::new(), None));
    hear(&mut program, ended(1, ok("one")));
    assert_eq!(
        hear(&mut program, step(Some(1), Vec::new(), returned("done"))),
        ["step_taken", "program_closed"]
    );
    assert_eq!(program.status(), Some(ProgramStatus::Complete));
    assert_eq!(program.answers().iter().map(|(call, _)| *call).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_dead_agent_makes_it_partial_and_a_persons_skip_does_not() {
    let skip = CallResult {
        by_person: true,
        ..CallResult::bare(ItemStatus::Skipped { reason: "no".into() }, CallAnswer::null())
    };
    for (result, status) in
        [(failed(FailureKind::Api), ProgramStatus::Partial), (skip, ProgramStatus::Complete)]
    {
        let mut program = started(vec![made(1, "a")]);
        hear(&mut program, ended(1, result));
        hear(&mut program, step(Some(1), Vec::new(), returned("fine")));
        assert_eq!(program.status(), Some(status));
    }
}

#[test]
fn an_agent_nobody_awaited_keeps_the_run_open_until_it_has_ended() {
    let mut program = started(vec![made(1, "a")]);
    let mut program2 = Program::new();
    hear(&mut program2, ProgramInput::Start(Box::new(spec())));
    assert_eq!(hear(&mut program2, step(None, vec![made(1, "a")], returned("early"))), ["step_taken"]);
    assert_eq!(program2.pending(), [1]);
    hear(&mut program2, ended(1, ok("late")));
    assert_eq!(program2.status(), Some(ProgramStatus::Complete));
    // Whatever comes out of order is refused and changes nothing.
    assert!(program.decide(step(Some(1), Vec::new(), None)).is_err());
    assert!(program.decide(step(None, Vec::new(), None)).is_err());
    assert!(program.decide(ended(2, ok("x"))).is_err());
    hear(&mut program, ended(1, ok("x")));
    assert!(program.decide(ended(1, ok("x"))).is_err());
}

/// Which earlier call a new one stands for: its occurrence, and the answer that can be served.
fn stands(program: &Program, key: &str, path: &str) -> (u32, Option<CallAnswer>) {
    let stand = program.stand(key, path, &Default::default());
    (stand.occurrence, stand.served.map(|result| result.answer))
}

fn value(of: &str) -> Option<CallAnswer> {
    Some(CallAnswer::Value(text(of)))
}

#[test]
fn a_new_pass_serves_what_was_done_by_content_and_the_same_place_first() {
    let at = |call, path: &str| MadeCall { path: path.into(), occurrence: call - 1, ..made(call, "same") };
    let mut program =
        started(vec![at(1, "1[0]"), at(2, "1[1]"), at(3, "1[2]"), made(4, "bad"), made(5, "away")]);
    let kinds = [(3, ok("third")), (1, ok("first")), (2, failed(FailureKind::TurnLimit))];
    let more = [(4, failed(FailureKind::InvalidOutput)), (5, failed(FailureKind::RateLimited))];
    for (call, result) in kinds.into_iter().chain(more) {
        hear(&mut program, ended(call, result));
        let end = (call == 5).then(|| returned("x")).flatten();
        hear(&mut program, step(Some(call), Vec::new(), end));
    }
    assert_eq!(program.status(), Some(ProgramStatus::Partial));
    hear(&mut program, ProgramInput::Again { why: "retry".into(), budget_total: Some(7) });
    assert_eq!(
        (program.pass(), program.status(), program.steps(), program.budget_total()),
        (2, None, 0, Some(7))
    );
    assert_eq!(stands(&program, "same", "1[2]"), (2, value("third")));
    // The dead one of three equal ones is done again, and the others are not served in its place.
    assert_eq!(stands(&program, "same", "1[1]"), (1, None));
    assert_eq!(program.stand("same", "1[1]", &Default::default()).attempt, 1);
    // A place that was not there before takes what can be served, then what cannot, then a new one.
    let beside = |taken: &[u32]| program.stand("same", "9[9]", &taken.iter().copied().collect()).occurrence;
    assert_eq!([beside(&[]), beside(&[0]), beside(&[0, 2]), beside(&[0, 1, 2])], [0, 2, 1, 3]);
    hear(&mut program, step(None, vec![at(1, "1[0]")], None));
    assert_eq!(stands(&program, "same", "1[0]"), (2, value("third")));
    // A reply that could not be used is tried by a new agent; one that was turned away goes on where it
    // stands.
    assert_eq!(
        (program.stand("bad", "", &Default::default()).attempt, program.goes_on("bad", 0)),
        (1, false)
    );
    assert_eq!(
        (program.stand("away", "", &Default::default()).attempt, program.goes_on("away", 0)),
        (0, true)
    );
}

#[test]
fn another_runs_results_are_served_behind_the_own_ones() {
    let mut earlier = started(vec![made(1, "a"), MadeCall { occurrence: 1, ..made(2, "a") }]);
    hear(&mut earlier, ended(1, ok("theirs")));
    hear(&mut earlier, ProgramInput::Again { why: "served".into(), budget_total: None });
    let mut program = Program::new();
    hear(&mut program, ProgramInput::Start(Box::new(spec())));
    program.serve_from(&earlier, 9);
    let stand = program.stand("a", "", &Default::default());
    assert_eq!((stand.occurrence, stand.served.as_ref().unwrap().reused.as_ref().unwrap().at), (0, 9));
    assert_eq!(program.kept_tokens(), 0, "this run has not paid for it");
    assert_eq!(program.stand("a", "", &[0].into()).served, None);
}

#[test]
fn no_more_agents_are_sent_into_a_dead_quota() {
    let calls: Vec<MadeCall> = (1..=8).map(|call| made(call, &format!("k{call}"))).collect();
    let mut program = started(calls);
    for call in 1..=4 {
        hear(&mut program, ended(call, failed(FailureKind::RateLimited)));
        assert_eq!(program.refuses(8), None);
    }
    hear(&mut program, ended(5, failed(FailureKind::Api)));
    let refused = program.refuses(8).unwrap();
    assert!(
        matches!(&refused.status, ItemStatus::Failed { kind: FailureKind::Api, message } if message.contains("not started"))
    );
    assert_eq!(refused.answer, CallAnswer::null());
    // What is wrong with one request says nothing about the next.
    let mut one = started((1..=8).map(|call| made(call, &format!("k{call}"))).collect());
    for call in 1..=7 {
        let status =
            ItemStatus::Failed { kind: FailureKind::Api, message: "the API answered 400 (bad)".into() };
        hear(&mut one, ended(call, CallResult { status, ..failed(FailureKind::Api) }));
    }
    assert_eq!(one.refuses(8), None);
    // One that works again closes it.
    hear(&mut program, ended(6, ok("fine")));
    assert_eq!(program.refuses(8), None);
}

#[test]
fn a_schema_that_every_agent_fails_is_not_asked_for_again() {
    let with =
        |call, schema: &str| MadeCall { schema: Some(schema.into()), ..made(call, &format!("k{call}")) };
    let mut program = started(vec![with(1, "x"), with(2, "x"), with(3, "x"), with(4, "x"), with(5, "y")]);
    for call in 1..=3 {
        assert_eq!(program.refuses(4), None);
        hear(&mut program, ended(call, failed(FailureKind::InvalidOutput)));
    }
    assert!(matches!(program.refuses(4).unwrap().answer, CallAnswer::Throw(why) if why.contains("mend the \
            schema")));
    assert_eq!(program.refuses(5), None);
}

#[test]
fn what_the_program_is_told_follows_from_how_the_agent_ended() {
    let check = |kind, schema, expected: &str| {
        let status = ItemStatus::Failed { kind, message: "why".into() };
        let got = match answer_to(&status, None, schema) {
            CallAnswer::Value(value) => value.as_str().to_owned(),
            CallAnswer::Throw(message) => format!("throw {message}"),
            CallAnswer::Program { .. } => unreachable!(),
        };
        assert_eq!(got, expected, "{kind:?}");
    };
    check(FailureKind::Api, true, "null");
    check(FailureKind::RateLimited, true, "null");
    check(FailureKind::Transport, false, "null");
    check(FailureKind::Refused, false, "null");
    check(FailureKind::TurnLimit, false, "null");
    check(FailureKind::InvalidOutput, false, "null");
    check(FailureKind::InvalidOutput, true, "throw agent failed: why");
    check(FailureKind::Budget, false, "throw budget exhausted: why");
}

#[test]
fn the_lead_reads_the_end_the_failures_and_as_much_of_the_value_as_fits() {
    let mut program = started(vec![made(1, "a")]);
    assert!(program.progress().contains("running"));
    hear(&mut program, ended(1, failed(FailureKind::Api)));
    hear(&mut program, step(Some(1), Vec::new(), returned(&"v".repeat(30_000))));
    let digest = program.digest(60_000);
    assert!(digest.contains("partial") && digest.contains("- call 1 a: api: no"), "{digest}");
    assert!(digest.contains(
        "(cut at 20000 of 30002 characters: read_result with run wf_aaaaaaaaaaaaaaaa, item 0, from 20000"
    ));
    assert!(program.page(0, 24_000).unwrap().contains("vvv"));
    assert!(program.page(9, 0).unwrap_err().contains("calls 1 to 1"));
    assert!(program.page(0, 40_000).unwrap_err().contains("behind its end"));
}
