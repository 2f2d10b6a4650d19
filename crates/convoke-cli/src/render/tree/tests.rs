//! What the tree looks like, from no agent to two hundred, on small and on large terminals.

use convoke_kernel::{
    AgentId, AgentSpec, AgentStarted, AgentsAdmitted, BudgetGranted, Capabilities, Caps, Child,
    ExchangeClosed, FailureKind, FanOut, Finding, ItemEnded, ItemJudged, ItemResult, ItemStatus,
    LeadSettings, LedgerEvent, Limits, ModelCalled, ModelReplied, Outcome, Purpose, Reply, Report, RunSpec,
    RunStarted, Segment, SessionId, Severity, StopReason, Thinking, ToolStarted, Usage, Verdict,
    WorkerStarted,
};
use convoke_kernel::{
    CallAnswer, CallEnded, CallKind, CallResult, MadeCall, ProgramClosed, ProgramSpec, ProgramStarted,
    ProgramStatus, StepTaken,
};
use convoke_kernel::{Event, Kept, Ledger, ResultsAppended, Role, RunEvent, Status, Summary};

use convoke_terminal::text_columns;
use convoke_view::WorkState;

use super::*;

fn id(number: u32) -> AgentId {
    AgentId::derived(&["agent", &number.to_string()])
}

fn lead() -> AgentSpec {
    let capabilities = Capabilities {
        system_role: false,
        anthropic_tools: false,
        cache_marks: false,
        thinking: Thinking::Omit,
        effort: None,
        max_output: 8_000,
        window: 100_000,
    };
    let limits = Limits::default();
    let child = Child { model: "m".into(), capabilities: capabilities.clone(), limits, rates: None };
    let fan_out = FanOut {
        mode: true,
        consent: true,
        voters: 1,
        max_subtasks: 50,
        quoted: false,
        fresh: false,
        child,
        callees: Default::default(),
    };
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([1; 10]),
        dir: "/".into(),
        model: "m".into(),
        capabilities,
        limits,
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: Some(fan_out),
        team: None,
        extra_system: None,
    })
}

/// What a worker with this label is made of.
pub(in crate::render) fn worker(label: &str) -> AgentSpec {
    lead().child(Role::Worker, label, 0).unwrap()
}

/// A session that is played to a tree.
struct Stage(AgentsAtWork);

impl Stage {
    fn new() -> Self {
        Self(AgentsAtWork::new(id(0)))
    }

    fn agent(&mut self, number: u32, event: impl Into<Event>) {
        self.0.recorded(&id(number), 1_000, &event.into());
    }

    fn run(&mut self, event: impl Into<RunEvent>) {
        self.0.run("wf_1", 1_000, &event.into());
    }

    fn starts(&mut self, number: u32, role: Role, label: &str) {
        self.agent(number, AgentStarted { spec: lead().child(role, label, 1).unwrap() });
    }

    fn replies(&mut self, number: u32, tokens: u64) {
        let call = ModelCalled {
            call: 1,
            attempt: 1,
            segments: 1,
            max_tokens: 1,
            digest: String::new(),
            purpose: Purpose::Turn,
        };
        self.agent(number, call);
        let reply = Reply {
            content: Segment::from_json("[]").unwrap(),
            text: String::new(),
            calls: Vec::new(),
            stop: StopReason::EndTurn,
            stop_detail: None,
            usage: Usage { input_tokens: tokens, ..Usage::default() },
            cost_nano: Some(tokens * 1_000),
            model: "m".into(),
            request_id: None,
        };
        self.agent(number, ModelReplied { call: 1, reply, kept: Kept::Yes });
    }

    fn runs(&mut self, number: u32, command: &str) {
        let input = Segment::encode(&serde_json::json!({"command": command}));
        self.agent(number, ToolStarted { id: "t".into(), name: "bash".into(), input });
    }

    fn ends(&mut self, number: u32, failed: bool, findings: usize) {
        let text = String::new();
        let message = "15 turns were not enough".to_owned();
        let outcome = match failed {
            true => Outcome::Failed { kind: FailureKind::TurnLimit, message, text },
            false => Outcome::Ok { text },
        };
        let report = (!failed).then(|| report(findings));
        self.agent(
            number,
            ExchangeClosed {
                exchange: 1,
                outcome,
                taken_back: false,
                report,
                ballot: None,
                degraded: None,
                returned: Vec::new(),
            },
        );
    }

    fn fan_out(&mut self, items: u32) {
        let spec = RunSpec {
            run: "wf_1".into(),
            session: SessionId::from_bits([1; 10]),
            lead: id(0),
            call: "call".into(),
            dir: "/".into(),
            base: String::new(),
            voters: 1,
            subtasks: (1..=items).map(|item| format!("subtask {item}")).collect(),
            keys: (1..=items).map(|item| format!("key {item}")).collect(),
            notes: Vec::new(),
            dropped: Vec::new(),
            consent: "mode".into(),
        };
        self.run(RunStarted { spec });
    }

    fn grants(&mut self, agents: u32) {
        let caps = Caps { agents: Some(500), nano: Some(10_000_000_000), tokens: None, ms: None };
        let mut ledger = Ledger::default();
        ledger.apply(&LedgerEvent::from(BudgetGranted { caps, by: "start".into() }), 0);
        ledger.apply(&LedgerEvent::from(AgentsAdmitted { run: "wf_1".into(), count: agents }), 0);
        self.0.ledger(Box::new(ledger));
    }

    /// The picture as text, with a ruler that shows where it has to end.
    fn picture(&self, (width, height): (usize, usize)) -> String {
        let lines = lines(&self.0, "lead · Workflow, 12 s · turn 2 · 1 command", (width, height), 15_000);
        assert!(lines.len() <= height, "{} rows in {height}", lines.len());
        for line in &lines {
            assert!(text_columns(&line.text) <= width, "{} columns: {}", text_columns(&line.text), line.text);
            assert!(!line.text.contains(char::is_control), "{:?}", line.text);
        }
        lines.into_iter().map(|line| line.text + "\n").collect()
    }
}

fn report(findings: usize) -> Report {
    let finding =
        Finding { claim: "c".into(), evidence: "e".into(), severity: Severity::Low, citations: Vec::new() };
    Report { summary: "s".into(), findings: vec![finding; findings] }
}

/// A fan-out of this many: the last ones run, of the others some fail, and some have found something and are
/// verified.
fn team(agents: u32) -> Stage {
    let labels = [
        "Unresolved merge conflicts in the whole directory",
        "検索: 未処理のエラーとパニック",
        "🔒 Secrets",
        "Wild \u{1b}[2Jlabel\u{7}\nof two lines",
    ];
    let mut stage = Stage::new();
    stage.grants(agents * 2);
    stage.fan_out(agents + 5);
    for number in 1..=agents {
        stage.run(WorkerStarted { item: number, agent: id(number) });
        stage.starts(number, Role::Worker, labels[number as usize % 4]);
        stage.replies(number, 1_000 + u64::from(number) * 123);
        stage.runs(number, "rg -n 'TODO|FIXME' --glob '*.rs' crates\necho done");
        let fails = number % 10 == 3 && agents > 3;
        if number % 10 == 1 || number + 12 < agents || fails {
            stage.ends(number, fails, 2);
            let status = ItemStatus::Failed { kind: FailureKind::TurnLimit, message: String::new() };
            let mut result = ItemResult::bare(if fails { status } else { ItemStatus::Ok });
            result.report = (!fails).then(|| report(2));
            stage.run(ItemEnded { item: number, result });
            if fails {
                continue;
            }
            let verifier = 1_000 + number;
            stage.starts(verifier, Role::Verifier, &format!("verify: {}", labels[number as usize % 4]));
            stage.replies(verifier, 2_000);
            if number + 20 < agents {
                stage.ends(verifier, false, 0);
            }
        }
    }
    stage
}

#[test]
fn the_tree_fits_every_terminal_with_any_number_of_agents() {
    for agents in [3, 40, 200] {
        let stage = team(agents);
        for size in [(40, 10), (80, 24), (200, 60)] {
            let name = format!("{agents}_agents_at_{}x{}", size.0, size.1);
            insta::assert_snapshot!(name, stage.picture(size));
        }
    }
}

#[test]
fn no_line_is_wider_and_no_tree_higher_than_it_may_be() {
    let stage = team(40);
    for width in (0..120).chain([200, 500]) {
        for height in (0..20).step_by(3).chain([1, 2, 60]) {
            stage.picture((width, height));
        }
    }
}

#[test]
fn a_lead_alone_has_no_tree() {
    let mut stage = Stage::new();
    stage.replies(0, 1_000);
    for size in [(40, 10), (80, 24), (200, 60)] {
        assert_eq!(stage.picture(size), "");
    }
    assert_eq!(spent(&stage.0), None);
}

#[test]
fn those_who_run_come_before_those_who_failed_and_those_who_ended_last() {
    let mut stage = Stage::new();
    for number in 1..=9 {
        stage.starts(number, Role::Worker, &format!("agent {number}"));
    }
    for number in 1..=4 {
        stage.ends(number, number == 2, 0);
    }
    let names = |height| {
        let picture = stage.picture((40, height));
        picture.lines().filter_map(|line| line.split("agent ").nth(1)?.chars().next()).collect::<String>()
    };
    assert_eq!(names(12), "567892431");
    assert_eq!(names(10), "567892");
    assert_eq!(names(6), "56");
    assert!(
        stage.picture((40, 6)).contains("└ … and 3 running, 1 failed, 3 done"),
        "{}",
        stage.picture((40, 6))
    );
}

#[test]
fn when_the_lead_goes_on_those_who_worked_for_it_are_counted_and_no_longer_shown() {
    let mut stage = Stage::new();
    stage.grants(2);
    stage.fan_out(1);
    stage.run(WorkerStarted { item: 1, agent: id(1) });
    stage.starts(1, Role::Worker, "a");
    stage.replies(1, 2_000_000);
    stage.ends(1, false, 1);
    let mut result = ItemResult::bare(ItemStatus::Ok);
    result.report = Some(report(1));
    stage.run(ItemEnded { item: 1, result });
    assert_eq!(came_to(&stage.0, "call"), None, "it has not ended");
    let verdict = Verdict::Confirmed { evidence: "e".into() };
    for event in closing(verdict) {
        stage.0.run("wf_1", 2_000, &event);
    }
    assert_eq!(came_to(&stage.0, "call").unwrap(), "1 subtask: 1 ok · 1 finding: 1 confirmed");
    assert!(stage.0.is_at_work());
    let message = Segment::from_json("{}").unwrap();
    stage.agent(0, ResultsAppended { message, hand_back: false, reminded: false, stuck: false });
    assert!(!stage.0.is_at_work());
    assert_eq!(stage.picture((80, 24)), "");
    assert_eq!(spent(&stage.0).unwrap(), ["$2.00 of $10.00", "2 of 500 agents", "2.0M tokens"]);
    assert_eq!(stage.0.findings().confirmed, 1, "what was found is remembered");
}

/// What is left of a run whose only item has its result.
fn closing(verdict: Verdict) -> Vec<RunEvent> {
    vec![
        convoke_kernel::CitationsChecked { item: 1, checks: vec![Vec::new()] }.into(),
        convoke_kernel::VerifierStarted { item: 1, voter: 1, agent: id(2) }.into(),
        convoke_kernel::VerifierEnded { item: 1, voter: 1, result: Default::default() }.into(),
        ItemJudged { item: 1, verdicts: vec![verdict] }.into(),
        convoke_kernel::RunClosed {}.into(),
    ]
}

#[test]
fn a_session_that_is_taken_up_again_shows_who_is_still_at_it() {
    let summary = |role, status, label: &str| {
        let mut spec = lead();
        (spec.role, spec.label) = (role, label.to_owned());
        let mut summary = Summary::waiting(&spec, "task", 0);
        (summary.status, summary.turns, summary.usage.input_tokens) = (status, 2, 500);
        summary
    };
    let agents = [
        (id(0), summary(Role::Lead, Status::Open, "")),
        (id(1), summary(Role::Worker, Status::Done, "ended long ago")),
        (id(2), summary(Role::Worker, Status::Open, "cut off")),
    ];
    let mut stage = Stage(AgentsAtWork::known(id(0), &agents, Vec::new(), Vec::new(), Ledger::default()));
    assert_eq!((stage.0.done(), stage.0.running()), (1, 0));
    assert!(
        stage.picture((80, 24)).contains("· cut off waiting   turn 2     500"),
        "{}",
        stage.picture((80, 24))
    );
    stage.agent(2, convoke_kernel::Resumed { changed: Vec::new(), facts: None });
    assert_eq!(stage.0.running(), 1);
    assert_eq!(spent(&stage.0).unwrap()[2], "1.5k tokens");
}

#[test]
fn while_the_session_drains_those_who_have_nothing_under_way_have_stopped() {
    let mut stage = Stage::new();
    stage.starts(1, Role::Worker, "between");
    stage.starts(2, Role::Worker, "busy");
    stage.runs(2, "sleep 60");
    stage.0.drains();
    let picture = stage.picture((80, 24));
    assert!(picture.contains("▸ between stopped") && picture.contains("▸ busy    running"), "{picture}");
}

#[test]
fn a_thousand_events_of_five_hundred_agents_cost_no_more_than_their_own() {
    let mut stage = team(500);
    let latest = |stage: &Stage| {
        let all = stage.0.phases().flat_map(|phase| WorkState::ALL.map(|state| (phase, state)));
        all.filter_map(|(phase, state)| stage.0.agents(phase, state).next_back())
            .map(|agent| agent.order())
            .max()
    };
    let before = latest(&stage);
    for round in 0..1_000 {
        stage.replies(494 + round % 4, 1);
    }
    assert_eq!(latest(&stage), before, "an agent that goes on is not sorted anew");
    let started = std::time::Instant::now();
    for _ in 0..100 {
        stage.picture((80, 24));
    }
    println!("one picture of 500 agents: {:?}", started.elapsed() / 100);
}

/// A call of a program in this phase.
fn made(call: u32, kind: CallKind, phase: &str, within: Option<&str>) -> MadeCall {
    MadeCall {
        call,
        kind,
        label: format!("call {call}"),
        phase: Some(phase.to_owned()),
        within: within.map(str::to_owned),
        path: String::new(),
        key: format!("key {call}"),
        occurrence: 0,
        agents: 1,
        schema: None,
        attempt: 0,
        want: Segment::encode(&serde_json::Value::Null),
    }
}

/// A program of a person or of a lead, with a step that makes these calls.
fn program(background: bool, calls: Vec<MadeCall>) -> Stage {
    let spec = serde_json::json!({
        "run": "wf_p", "session": SessionId::from_bits([1; 10]), "lead": id(0), "call": "", "dir": "/", "base": "", "voters": 1,
        "name": "tidy", "description": "", "phases": ["Never", "Look"], "source": "", "digest": "", "background": background, "consent": "",
    });
    let spec: ProgramSpec = serde_json::from_value(spec).unwrap();
    let mut stage = Stage::new();
    stage.0.program("wf_p", 1_000, &ProgramStarted { spec }.into());
    let step = StepTaken { fed: None, calls, cleared: Vec::new(), said: Vec::new(), end: None };
    stage.0.program("wf_p", 1_000, &step.into());
    stage
}

fn callee(stage: &mut Stage, made: &MadeCall, role: Role, voter: u32) -> AgentId {
    let agent = made.agent("wf_p", voter);
    stage.0.recorded(
        &agent,
        1_000,
        &AgentStarted { spec: lead().child(role, &made.label, 1).unwrap() }.into(),
    );
    agent
}

#[test]
fn the_agents_of_a_program_stand_in_their_phases_and_never_among_tasks() {
    let look = [1, 2, 3].map(|call| made(call, CallKind::Agent, "Look", None));
    let check = made(4, CallKind::Verify, "Check", Some("child"));
    let asks = made(5, CallKind::Checkpoint, "Check", Some("child"));
    let mut stage = program(false, [look.to_vec(), vec![check.clone(), asks]].concat());
    callee(&mut stage, &look[0], Role::Task, 0);
    callee(&mut stage, &check, Role::Verifier, 1);
    let dead = ItemStatus::Failed { kind: FailureKind::Api, message: "no".into() };
    let ended = CallEnded { call: 3, result: CallResult::bare(dead, CallAnswer::null()), spent_total: 0 };
    stage.0.program("wf_p", 1_000, &ended.into());
    let lines: Vec<String> =
        lines(&stage.0, "", (60, 20), 61_000).into_iter().map(|line| line.text).collect();
    assert_eq!(lines[1], "├ Look: 0 of 3 done, 1 running, 1 failed, 1 waiting", "{lines:#?}");
    assert!(lines[2].starts_with("│ ▸ call 1"), "{lines:#?}");
    assert_eq!(lines[3], "└ ▸ child: Check: 0 of 1 done, 1 waiting for you, 1 running", "{lines:#?}");
    assert!(lines[4].starts_with("  ▸ call 4"), "{lines:#?}");
    assert_eq!(own_program(&stage.0, 61_000).unwrap(), "workflow tidy · Check · 1 min 0 s");
    let alone = program(false, vec![made(1, CallKind::Sh, "Look", None)]);
    assert_eq!(super::lines(&alone.0, "lead", (60, 20), 0)[1].text, "└ Look · 1 command");
    for width in [20, 40, 80, 120] {
        let wide = super::lines(&stage.0, "lead", (width, 20), 61_000);
        assert!(wide.iter().all(|line| text_columns(&line.text) <= width), "{wide:#?}");
    }
}

#[test]
fn timers_and_commands_stand_behind_a_dot_and_are_no_agents() {
    let check = |calls: Vec<MadeCall>, expected: &str| {
        let lines = lines(&program(false, calls).0, "lead", (60, 20), 0);
        assert_eq!(lines[1].text, format!("└ {expected}"));
    };
    let timers = || (1..=14).map(|call| MadeCall { phase: None, ..made(call, CallKind::Timer, "", None) });
    let late = |call: u32, kind: CallKind| MadeCall { phase: None, ..made(call, kind, "", None) };
    check(timers().collect(), "workflow · 14 timers");
    let both = timers().chain([late(15, CallKind::Agent), late(16, CallKind::Sh)]).collect();
    check(both, "agents: 0 of 1 done, 1 waiting · 14 timers · 1 command");
    check(vec![late(1, CallKind::Checkpoint)], "workflow: 1 waiting for you");
}

#[test]
fn a_leads_program_is_named_with_its_phases_and_leaves_when_it_is_over() {
    let look = made(1, CallKind::Agent, "Look", None);
    let mut stage = program(true, vec![look.clone()]);
    callee(&mut stage, &look, Role::Task, 0);
    let lines = lines(&stage.0, "lead", (60, 20), 0);
    assert_eq!(lines[1].text, "└ tidy · Look: 0 of 1 done, 1 running");
    assert_eq!(own_program(&stage.0, 0), None);
    stage.0.program("wf_p", 1_000, &ProgramClosed { status: ProgramStatus::Complete }.into());
    assert!(!stage.0.has_programs());
}

#[test]
fn phases_that_are_over_make_room_for_those_that_are_not() {
    let calls: Vec<MadeCall> =
        (1..=12).map(|call| made(call, CallKind::Agent, &format!("P{call}"), None)).collect();
    let mut stage = program(false, calls.clone());
    for call in 1..=11 {
        let result = CallResult::bare(ItemStatus::Ok, CallAnswer::null());
        stage.0.program("wf_p", 1_000, &CallEnded { call, result, spent_total: 0 }.into());
    }
    callee(&mut stage, &calls[11], Role::Task, 0);
    let lines: Vec<String> = lines(&stage.0, "lead", (60, 10), 0).into_iter().map(|line| line.text).collect();
    assert!(lines.len() <= 10 && lines.iter().any(|line| line.contains("call 12")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("P1:")), "{lines:#?}");
}
