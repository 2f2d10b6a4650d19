//! A session that is played to a fleet, event by event, with the numbers a journal would give.

use std::collections::HashMap;

use convoke_kernel::{
    AgentSpec, AgentStarted, BoardEvent, CallAnswer, CallEnded, CallResult, Citation, ExchangeClosed,
    ExchangeOpened, FailureKind, Finding, ItemEnded, ItemResult, ItemStatus, Kept, Letter, LetterKind,
    MadeCall, Membership, MessageId, ModelCalled, ModelReplied, Outcome, ProgramEvent, ProgramStarted,
    Purpose, Reply, Report, RosterEvent, RunEvent, RunSpec, RunStarted, Segment, SessionId, Severity,
    StepTaken, StopReason, Teammate, ToolCall, ToolFinished, ToolResult, ToolStarted,
};
use serde_json::{Value, json};

use super::super::*;
use crate::sample;

/// A session that is played to a fleet. Every event comes ten milliseconds after the one before.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) fleet: Fleet,
    pub(super) heard: Vec<SessionEvent>,
    seqs: HashMap<String, u64>,
}

pub(super) fn id(number: u32) -> AgentId {
    AgentId::derived(&["agent", &number.to_string()])
}

pub(super) fn wf(number: u32) -> RunId {
    RunId::derived(&["run", &number.to_string()])
}

fn lead_spec() -> AgentSpec {
    let team = Membership {
        name: "lead".into(),
        role: "lead".into(),
        team: "t".into(),
        requires_plan: false,
        compact_at: 1_000,
        project: None,
    };
    sample::lead(1, Some(team))
}

pub(super) fn spec(role: Role, label: &str) -> AgentSpec {
    let lead = lead_spec();
    match role {
        Role::Lead => lead,
        Role::Teammate => {
            let isolation = convoke_kernel::Isolation::None;
            let name = label.to_owned();
            let role = "coder".to_owned();
            lead.teammate(Teammate { name, role, requires_plan: false, tools: None, isolation }).unwrap()
        }
        // A callee looks like a task but for its role.
        Role::Callee => AgentSpec { role: Role::Callee, ..lead.child(Role::Task, label, 0).unwrap() },
        role => lead.child(role, label, 1).unwrap(),
    }
}

impl Stage {
    fn next(&mut self, stream: &str) -> (u64, u64) {
        let seq = self.seqs.entry(stream.to_owned()).or_insert(0);
        *seq += 1;
        (*seq, 10 * (self.heard.len() as u64 + 1))
    }

    fn play(&mut self, heard: SessionEvent) -> bool {
        self.heard.push(heard.clone());
        self.fleet.hear(&heard)
    }

    pub(super) fn agent(&mut self, number: u32, event: impl Into<Event>) -> bool {
        self.agent_by(&id(number), event)
    }

    pub(super) fn agent_by(&mut self, agent: &AgentId, event: impl Into<Event>) -> bool {
        let (seq, at) = self.next(agent.as_str());
        self.play(SessionEvent::Agent { agent: agent.clone(), seq, at, event: Box::new(event.into()) })
    }

    pub(super) fn run(&mut self, run: u32, event: impl Into<RunEvent>) -> bool {
        let (seq, at) = self.next(wf(run).as_str());
        self.play(SessionEvent::Run { run: wf(run), seq, at, event: Box::new(event.into()) })
    }

    pub(super) fn program(&mut self, run: u32, event: impl Into<ProgramEvent>) -> bool {
        let (seq, at) = self.next(wf(run).as_str());
        self.play(SessionEvent::Program { run: wf(run), seq, at, event: Box::new(event.into()) })
    }

    pub(super) fn roster(&mut self, event: impl Into<RosterEvent>) -> bool {
        let (seq, at) = self.next("roster");
        self.play(SessionEvent::Roster { seq, at, event: Box::new(event.into()) })
    }

    pub(super) fn board(&mut self, event: impl Into<BoardEvent>) -> bool {
        let (seq, at) = self.next("board");
        self.play(SessionEvent::Board { seq, at, event: Box::new(event.into()) })
    }

    pub(super) fn starts(&mut self, number: u32, role: Role, label: &str) {
        self.agent(number, AgentStarted { spec: spec(role, label) });
    }

    pub(super) fn opens(&mut self, number: u32, text: &str) {
        self.agent(number, opened(text, Vec::new()));
    }

    pub(super) fn asks(&mut self, number: u32) {
        self.agent(number, called(1, Purpose::Turn));
    }

    pub(super) fn replies(&mut self, number: u32, text: &str) {
        self.agent(number, replied(text, &[]));
    }

    pub(super) fn calls(&mut self, number: u32, call: &str, name: &str, input: Value) {
        self.agent(
            number,
            ToolStarted { id: call.into(), name: name.into(), input: Segment::encode(&input) },
        );
    }

    pub(super) fn finishes(&mut self, number: u32, call: &str, text: &str, code: i32) {
        let result = ToolResult { exit_code: Some(code), ..ToolResult::done(text) };
        self.agent(number, ToolFinished { id: call.into(), result });
    }

    pub(super) fn ends(&mut self, number: u32, failure: Option<FailureKind>, findings: Option<usize>) {
        self.agent(number, closed(failure, findings));
    }

    pub(super) fn fan_out(&mut self, run: u32, subtasks: &[&str], voters: u32) {
        let spec = RunSpec {
            run: wf(run).to_string(),
            session: SessionId::from_bits([1; 10]),
            lead: id(0),
            call: "call".into(),
            dir: "/".into(),
            base: String::new(),
            voters,
            subtasks: subtasks.iter().map(|subtask| (*subtask).to_owned()).collect(),
            keys: subtasks.iter().map(|subtask| format!("key {subtask}")).collect(),
            notes: Vec::new(),
            dropped: Vec::new(),
            consent: "mode".into(),
        };
        self.run(run, RunStarted { spec });
    }

    pub(super) fn program_starts(
        &mut self,
        run: u32,
        name: &str,
        phases: &[&str],
        background: bool,
        from: Option<u32>,
    ) {
        let spec = json!({
            "run": wf(run), "session": SessionId::from_bits([1; 10]), "lead": id(0), "call": "", "dir": "/", "base": "",
            "voters": 1, "name": name, "description": "", "phases": phases, "source": "", "digest": "",
            "background": background, "consent": "", "from": from.map(wf),
        });
        self.program(run, ProgramStarted { spec: serde_json::from_value(spec).unwrap() });
    }

    pub(super) fn steps(&mut self, run: u32, fed: Option<u32>, calls: Vec<MadeCall>) {
        self.program(run, StepTaken { fed, calls, cleared: Vec::new(), said: Vec::new(), end: None });
    }

    pub(super) fn call_ends(&mut self, run: u32, call: u32, result: CallResult) {
        self.program(run, CallEnded { call, result, spent_total: 0 });
    }

    pub(super) fn row(&self, number: u32) -> &AgentRow {
        self.fleet.agent(&id(number)).unwrap()
    }

    /// An agent in short: `phase label state act last`.
    pub(super) fn told(&self, number: u32) -> String {
        told(self.row(number))
    }

    /// The phases in short: `working 1r 2w 0f 3d of 6`.
    pub(super) fn phases(&self) -> Vec<String> {
        let phases = self.fleet.phases();
        let short = |phase: &PhaseRow| {
            let PhaseRow { name, total, running, waiting, failed, done } = phase;
            format!("{name} {running}r {waiting}w {failed}f {done}d of {total}")
        };
        phases.iter().map(short).collect()
    }

    /// The findings in short: `severity verdict claim (reason)`.
    pub(super) fn findings(&self) -> Vec<String> {
        let found = self.fleet.findings(&RowFilter::default());
        let short = |row: &&FindingRow| {
            format!(
                "{:?} {} {} ({})",
                row.severity,
                row.verdict.word(),
                row.claim,
                row.reason.replace('\n', "; ")
            )
        };
        found.iter().map(short).collect()
    }
}

pub(super) fn told(row: &AgentRow) -> String {
    format!("{} | {} | {} | {} | {}", row.phase, row.label, row.state.word(), row.act, row.last)
}

pub(super) fn opened(text: &str, letters: Vec<Letter>) -> ExchangeOpened {
    ExchangeOpened {
        exchange: 1,
        input: "i".into(),
        text: text.into(),
        message: Segment::encode(&json!({"role": "user", "content": [{"type": "text", "text": text}]})),
        system: None,
        section: None,
        changed: Vec::new(),
        notice: None,
        letters,
        work: None,
        capsule: false,
    }
}

pub(super) fn called(attempt: u32, purpose: Purpose) -> ModelCalled {
    ModelCalled { call: 1, attempt, segments: 1, max_tokens: 1, digest: String::new(), purpose }
}

pub(super) fn replied(text: &str, calls: &[(&str, &str, Value)]) -> ModelReplied {
    let call = |(id, name, input): &(&str, &str, Value)| ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        input: Segment::encode(input),
    };
    let reply = Reply {
        content: Segment::encode(&json!([])),
        text: text.into(),
        calls: calls.iter().map(call).collect(),
        stop: StopReason::EndTurn,
        stop_detail: None,
        usage: Usage { input_tokens: 700, cache_read_tokens: 200, output_tokens: 100, ..Usage::default() },
        cost_nano: Some(1_000_000),
        model: "m".into(),
        request_id: None,
    };
    ModelReplied { call: 1, reply, kept: Kept::Yes }
}

pub(super) fn closed(failure: Option<FailureKind>, findings: Option<usize>) -> ExchangeClosed {
    let outcome = match failure {
        Some(kind) => Outcome::Failed { kind, message: "it went wrong".into(), text: String::new() },
        None => Outcome::Ok { text: "all is well".into() },
    };
    let report = findings
        .map(|many| Report { summary: "s".into(), findings: vec![finding("c", Severity::Low); many] });
    let ballot = None;
    let degraded = None;
    let returned = Vec::new();
    ExchangeClosed { exchange: 1, outcome, taken_back: false, report, ballot, degraded, returned }
}

pub(super) fn finding(claim: &str, severity: Severity) -> Finding {
    let citation = Citation {
        path: Some("src/a.rs".into()),
        first: Some(3),
        last: Some(4),
        quote: Some("let x".into()),
        command: None,
    };
    Finding { claim: claim.into(), evidence: "seen".into(), severity, citations: vec![citation] }
}

pub(super) fn item(item: u32, worker: Option<u32>, findings: Vec<Finding>) -> ItemEnded {
    let mut result = ItemResult::bare(ItemStatus::Ok);
    result.report = Some(Report { summary: "s".into(), findings });
    result.agent = worker.map(id);
    ItemEnded { item, result }
}

pub(super) fn item_failed(item: u32) -> ItemEnded {
    ItemEnded { item, result: ItemResult::bare(failed_status()) }
}

pub(super) fn failed_status() -> ItemStatus {
    ItemStatus::Failed { kind: FailureKind::Api, message: "overloaded".into() }
}

pub(super) fn made(call: u32, kind: &str, label: &str, phase: Option<&str>, want: Value) -> MadeCall {
    let told = json!({
        "call": call, "kind": kind, "label": label, "key": format!("key {label}"), "phase": phase, "agents": 1, "want": want,
    });
    serde_json::from_value(told).unwrap()
}

pub(super) fn ok(value: Value) -> CallResult {
    CallResult::bare(ItemStatus::Ok, CallAnswer::Value(Segment::encode(&value)))
}

pub(super) fn letter(number: u32, from: &str, to: &str, text: &str) -> Letter {
    Letter {
        id: MessageId::derived(&[&number.to_string()]),
        from: from.into(),
        to: to.into(),
        kind: LetterKind::Message,
        text: text.into(),
        urgent: false,
        order: 1,
        at: 5,
        request: None,
        approve: None,
        task: None,
    }
}
