//! The fleet as a whole: what comes twice, what comes too soon, what comes as lines, and what a thousand
//! agents cost.

use convoke_kernel::{
    AgentStarted, Checked, CitationsChecked, ItemJudged, Ledger, MemberSpawned, ModeSet, ProgramStopped,
    Severity, TaskCreated, TaskId, Verdict, WorkerStarted,
};
use serde_json::json;

use super::stage::*;
use super::*;

/// Everything a fleet shows.
fn picture(fleet: &Fleet) -> String {
    let all = RowFilter::default();
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?} {:?} {:?}",
        fleet.agents(&all),
        fleet.phases(),
        fleet.runs(),
        fleet.tasks(&all),
        fleet.letters(&all),
        fleet.findings(&all),
        fleet.lead(),
        fleet.usage(),
        fleet.cost_nano(),
    )
}

/// A session with a bit of everything in it.
fn session() -> Stage {
    let mut stage = Stage::default();
    stage.starts(0, Role::Lead, "");
    stage.agent(0, ModeSet { on: true });
    stage.opens(0, "review it");
    stage.asks(0);
    stage.replies(0, "I fan out.");
    stage.fan_out(1, &["one", "two"], 1);
    for number in 1..=2 {
        stage.run(1, WorkerStarted { item: number, agent: id(number) });
        stage.starts(number, Role::Worker, &format!("subtask {number}"));
        stage.opens(number, "go");
        stage.asks(number);
        stage.replies(number, "I look.");
        stage.calls(number, "t", "bash", json!({"command": "ls"}));
        stage.finishes(number, "t", "out", 0);
    }
    stage.ends(1, None, Some(1));
    stage.run(1, item(1, Some(1), vec![finding("it leaks", Severity::High)]));
    stage.run(1, CitationsChecked { item: 1, checks: vec![vec![Checked::Holds]] });
    stage.program_starts(2, "review", &["scan"], true, None);
    stage.steps(2, None, vec![made(1, "agent", "a", Some("scan"), json!({}))]);
    stage.call_ends(2, 1, ok(json!("x")));
    let name = "bob".to_owned();
    let role = "coder".to_owned();
    let by = "lead".to_owned();
    stage.roster(MemberSpawned { name, role, agent: id(5), requires_plan: false, by });
    stage.agent(5, opened("mail", vec![letter(1, "lead", "bob", "hello")]));
    let task = TaskId::derived(&["t"]);
    stage.board(TaskCreated {
        task,
        subject: "mend".into(),
        description: String::new(),
        criteria: None,
        blocked_by: Vec::new(),
        role: None,
        priority: 0,
        by: "lead".into(),
    });
    stage
}

#[test]
fn a_session_read_from_lines_is_the_session_that_was_heard() {
    let stage = session();
    let line = |heard: &SessionEvent| {
        let (stream, seq, at, text) = match heard {
            SessionEvent::Agent { agent, seq, at, event } => (agent.to_string(), seq, at, event.encode()),
            SessionEvent::Run { run, seq, at, event } => (run.to_string(), seq, at, event.encode()),
            SessionEvent::Program { run, seq, at, event } => (run.to_string(), seq, at, event.encode()),
            SessionEvent::Roster { seq, at, event } => ("roster:s_x".to_owned(), seq, at, event.encode()),
            SessionEvent::Board { seq, at, event } => ("board:s_x".to_owned(), seq, at, event.encode()),
            other => panic!("{other:?} is no line"),
        };
        let text = text.unwrap();
        format!(r#"{{"v":1,"stream":"{stream}","seq":{seq},"at":{at},{}"#, text.strip_prefix('{').unwrap())
    };
    let lines: Vec<String> = stage.heard.iter().map(line).collect();
    let mut read = Fleet::new();
    for line in &lines {
        read.hear(&SessionEvent::read_line(line).unwrap_or_else(|| panic!("{line}")));
    }
    assert_eq!(picture(&read), picture(&stage.fleet));
    assert!(read.is_whole());
}

#[test]
fn what_is_heard_twice_changes_nothing() {
    let mut stage = session();
    let before = picture(&stage.fleet);
    for heard in &stage.heard {
        assert!(!stage.fleet.hear(heard), "{heard:?}");
    }
    assert_eq!(picture(&stage.fleet), before);
    assert!(stage.fleet.is_whole());
}

#[test]
fn whatever_is_missing_nothing_panics_and_what_is_known_stays() {
    let stage = session();
    for missing in 0..stage.heard.len() {
        let mut fleet = Fleet::new();
        for (_, heard) in stage.heard.iter().enumerate().filter(|(place, _)| *place != missing) {
            let agents = fleet.agents(&RowFilter::default()).len();
            fleet.hear(heard);
            assert!(fleet.agents(&RowFilter::default()).len() >= agents);
        }
        let stream = |heard: &SessionEvent| match heard {
            SessionEvent::Agent { agent, .. } => agent.to_string(),
            SessionEvent::Run { run, .. } | SessionEvent::Program { run, .. } => run.to_string(),
            SessionEvent::Roster { .. } => "roster".to_owned(),
            _ => "board".to_owned(),
        };
        let gone = stream(&stage.heard[missing]);
        let is_noticed = stage.heard[missing + 1..].iter().any(|heard| stream(heard) == gone);
        assert_eq!(fleet.is_whole(), !is_noticed, "{missing}");
    }
}

#[test]
fn an_event_that_cannot_follow_marks_its_stream_and_changes_no_row() {
    let mut stage = Stage::default();
    stage.fan_out(1, &["one"], 0);
    let before = picture(&stage.fleet);
    let verdicts = vec![Verdict::Confirmed { evidence: String::new() }];
    assert!(!stage.run(1, ItemJudged { item: 1, verdicts }));
    assert!(!stage.fleet.is_whole());
    assert_eq!(picture(&stage.fleet), before);
    assert!(!stage.program(7, ProgramStopped { by: "person".into() }));
}

#[test]
fn the_newer_ledger_counts() {
    let mut fleet = Fleet::new();
    let older = Ledger::default();
    let mut newer = older.clone();
    newer.apply(&convoke_kernel::AdmissionClosed { run: "wf".into() }.into(), 1);
    assert!(fleet.hear(&SessionEvent::Ledger(Box::new(newer.clone()))));
    assert!(!fleet.hear(&SessionEvent::Ledger(Box::new(newer.clone()))));
    assert!(!fleet.hear(&SessionEvent::Ledger(Box::new(older))));
    assert_eq!(fleet.ledger(), Some(&newer));
}

#[test]
fn an_event_of_one_of_a_thousand_agents_looks_at_no_other() {
    let mut stage = Stage::default();
    let subtasks: Vec<String> = (0..1_000).map(|number| format!("subtask {number}")).collect();
    stage.fan_out(1, &subtasks.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    let mut events = 1;
    let spec = spec(Role::Worker, "subtask");
    for number in 1..=1_000 {
        stage.run(1, WorkerStarted { item: number, agent: id(number) });
        stage.agent(number, AgentStarted { spec: spec.clone() });
        stage.opens(number, "go");
        events += 3;
    }
    for round in 0..5 {
        for number in 1..=1_000 {
            stage.asks(number);
            stage.replies(number, "I look.");
            stage.calls(number, "t", "bash", json!({"command": "ls"}));
            stage.finishes(number, "t", "out", 0);
            events += 4;
            if round == 4 && number % 2 == 0 {
                stage.ends(number, None, Some(0));
                events += 1;
            }
        }
    }
    assert!(
        stage.fleet.lists.touched <= 2 * events,
        "{} rows for {events} events",
        stage.fleet.lists.touched
    );
    assert_eq!(stage.phases(), ["working 500r 0w 0f 500d of 1000"]);
    assert_eq!((stage.fleet.running(), stage.fleet.usage().output_tokens), (500, 500_000));
    assert_eq!(stage.fleet.agents(&RowFilter::default())[499].state, AgentState::Running);
}
