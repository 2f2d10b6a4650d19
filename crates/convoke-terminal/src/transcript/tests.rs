//! What is printed for each event, and how it looks.

use convoke_kernel::{
    CallMade, Failure, FailureKind, ItemEnded, ItemJudged, ItemResult, ItemStatus, Letter, LetterKind,
    MailDelivered, MemberSpawned, MessageId, ModeSet, ModelCalled, ModelFailed, Piece, Purpose, Ran, Resumed,
    Retry, RunClosed, RunEvent, RunId, RunSpec, RunStarted, Segment, SessionId, StopReason, TaskCreated,
    TaskFinished, TaskId, ToolCall, ToolResult, ToolStarted, Usage, Verdict,
};
use serde_json::json;

use super::*;

const THEME: Theme = Theme { colour: false };

/// A transcript with the events of one lead, each at the next second.
#[derive(Default)]
struct ScreenUpdate {
    transcript: Transcript,
    seq: u64,
}

fn lead() -> AgentId {
    AgentId::from_bits([1; 10])
}

impl ScreenUpdate {
    fn hear(&mut self, event: impl Into<Event>) -> Vec<Block> {
        self.seq += 1;
        let heard = SessionEvent::Agent {
            agent: lead(),
            seq: self.seq,
            at: self.seq * 1_000,
            event: Box::new(event.into()),
        };
        let blocks = self.transcript.hear(Some(&lead()), &heard);
        assert!(self.transcript.hear(Some(&lead()), &heard).is_empty(), "printed twice");
        blocks
    }

    fn live(&mut self, piece: Piece) {
        let blocks = self.transcript.hear(Some(&lead()), &SessionEvent::Live { agent: lead(), piece });
        assert!(blocks.is_empty());
    }

    fn doing(&self) -> Option<String> {
        self.transcript.doing(self.seq * 1_000, &Waits::default())
    }

    fn seen(&self) -> Vec<String> {
        self.transcript.live(40, 5, THEME).iter().map(Line::to_string).collect()
    }
}

fn segment() -> Segment {
    Segment::encode(&json!({}))
}

fn opened(text: &str) -> ExchangeOpened {
    ExchangeOpened {
        exchange: 1,
        input: "i".into(),
        text: text.into(),
        message: segment(),
        system: None,
        section: None,
        changed: Vec::new(),
        notice: None,
        letters: Vec::new(),
        work: None,
        capsule: false,
    }
}

fn called() -> ModelCalled {
    ModelCalled {
        call: 1,
        attempt: 1,
        segments: 1,
        max_tokens: 1,
        digest: String::new(),
        purpose: Purpose::Turn,
    }
}

fn replied(text: &str, calls: &[(&str, serde_json::Value)]) -> ModelReplied {
    let call = |(number, (name, input)): (usize, &(&str, serde_json::Value))| ToolCall {
        id: format!("t{number}"),
        name: (*name).to_owned(),
        input: Segment::encode(input),
    };
    let reply = convoke_kernel::Reply {
        content: segment(),
        text: text.into(),
        calls: calls.iter().enumerate().map(call).collect(),
        stop: StopReason::EndTurn,
        stop_detail: None,
        usage: Usage { input_tokens: 6_000, output_tokens: 50, ..Usage::default() },
        cost_nano: Some(20_000_000),
        model: "m".into(),
        request_id: None,
    };
    ModelReplied { call: 1, reply, kept: Kept::Yes }
}

fn started(id: &str, name: &str, input: serde_json::Value) -> ToolStarted {
    ToolStarted { id: id.into(), name: name.into(), input: Segment::encode(&input) }
}

fn finished(id: &str, result: ToolResult) -> ToolFinished {
    ToolFinished { id: id.into(), result }
}

fn closed(outcome: Outcome) -> ExchangeClosed {
    ExchangeClosed {
        exchange: 1,
        outcome,
        taken_back: false,
        report: None,
        ballot: None,
        degraded: None,
        returned: Vec::new(),
    }
}

fn note(text: &str) -> Vec<Block> {
    vec![Block::Note(text.to_owned())]
}

fn did(what: &str, came_to: &str, is_bad: bool) -> Vec<Block> {
    vec![Block::Did { what: what.to_owned(), came_to: came_to.to_owned(), is_bad }]
}

#[test]
fn an_exchange_is_told_from_what_was_said_to_what_it_took() {
    let mut told = ScreenUpdate::default();
    assert_eq!(told.hear(opened("fix it")), [Block::Said("fix it".into())]);
    assert_eq!(told.doing(), None);
    assert!(told.hear(called()).is_empty());
    assert_eq!(told.doing().as_deref(), Some("asks the model"));
    let command = [("bash", json!({"command": "cargo test\n# twice"}))];
    assert_eq!(told.hear(replied(" I look. ", &command)), [Block::Wrote("I look.".into())]);
    assert!(told.hear(started("t0", "bash", command[0].1.clone())).is_empty());
    assert_eq!(
        told.transcript.doing(17_000, &Waits::default()).as_deref(),
        Some("$ cargo test (+1 line) · 13 s")
    );
    let exit = ToolResult { exit_code: Some(0), ..ToolResult::done("ok") };
    assert_eq!(told.hear(finished("t0", exit)), did("$ cargo test (+1 line)", "exit 0 · 1.0 s", false));
    assert_eq!(told.doing(), None);
    told.hear(called());
    assert_eq!(told.hear(replied("Done.", &[])), [Block::Wrote("Done.".into())]);
    let blocks = told.hear(closed(Outcome::Ok { text: "Done.".into() }));
    assert_eq!(blocks, [Block::Ended("done · 2 turns · 12.1k tokens · $0.04 · 7.0 s".into())]);
}

#[test]
fn live_text_is_seen_until_an_event_takes_its_place() {
    let mut told = ScreenUpdate::default();
    told.hear(opened("hi"));
    told.hear(called());
    told.live(Piece::Began);
    told.live(Piece::Thinking("hm".into()));
    assert_eq!((told.doing().as_deref(), told.seen()), (Some("thinking"), vec!["… thinking".to_owned()]));
    told.live(Piece::Text("so \u{1b}[2J".into()));
    told.live(Piece::Text("far".into()));
    assert_eq!((told.doing().as_deref(), told.seen()), (Some("answering"), vec!["so ␛[2Jfar".to_owned()]));
    let failure = Failure {
        kind: FailureKind::Api,
        message: "overloaded".into(),
        retry: Retry::Soon,
        request_id: None,
        unbilled: false,
        refused: None,
    };
    let retry_at = Some(told.seq * 1_000 + 5_000);
    assert!(told.hear(ModelFailed { call: 1, attempt: 1, failure, retry_at }).is_empty());
    assert!(told.seen().is_empty());
    assert_eq!(told.doing().as_deref(), Some("asks again in 4 s: overloaded"));
    told.hear(called());
    told.live(Piece::Text("again".into()));
    assert_eq!(told.seen(), ["again"]);
    told.transcript.hear(Some(&lead()), &SessionEvent::Draining);
    assert_eq!(told.doing().as_deref(), Some("stopping · answering"));
    told.hear(replied("again", &[]));
    assert!(told.seen().is_empty());
}

#[test]
fn what_belongs_to_others_prints_nothing_and_before_the_lead_is_known_neither_does_the_lead() {
    let mut transcript = Transcript::default();
    let other = AgentId::from_bits([2; 10]);
    let heard = |agent: &AgentId| SessionEvent::Agent {
        agent: agent.clone(),
        seq: 1,
        at: 0,
        event: Box::new(opened("a").into()),
    };
    assert!(transcript.hear(None, &heard(&lead())).is_empty());
    assert!(transcript.hear(Some(&lead()), &heard(&other)).is_empty());
    assert_eq!(transcript.hear(Some(&lead()), &heard(&lead())), [Block::Said("a".into())]);
    transcript.hear(Some(&lead()), &SessionEvent::Live { agent: other, piece: Piece::Text("b".into()) });
    assert!(transcript.live(40, 5, THEME).is_empty());
}

#[test]
fn calls_are_said_as_a_person_would_say_them() {
    let check = |name: &str, input: serde_json::Value, expected: &str| {
        assert_eq!(Call::of("t", name, &input.to_string(), 0).what, expected, "{name} {input}");
    };
    let edit = "str_replace_based_edit_tool";
    check("bash", json!({"command": "ls \u{1b}[2J"}), "$ ls ␛[2J");
    check("bash", json!({"restart": true}), "$ (restart the shell)");
    check(edit, json!({"command": "str_replace", "path": "src/a.rs"}), "edit src/a.rs");
    check(edit, json!({"command": "create", "path": "src/a.rs"}), "create src/a.rs");
    check(edit, json!({"command": "view", "path": "a", "view_range": [3, -1]}), "view a:3-");
    check("grep", json!({"pattern": "x", "path": "src"}), "grep x in src");
    check("Workflow", json!({"subtasks": ["a", "b"]}), "Workflow: 2 subtasks");
    check("Workflow", json!({"name": "tidy"}), "Workflow: tidy");
    check("Workflow", json!({"script": "…"}), "Workflow: a program");
    check("task", json!({"prompt": "look"}), "task: look");
    check("read_result", json!({"run": "wf_a", "item": 3}), "read_result wf_a, item 3");
    check("spawn_teammate", json!({"name": "alice", "role": "coder"}), "spawn_teammate alice (coder)");
    check("send_message", json!({"to": "bob", "text": "hi"}), "send_message to bob: hi");
    check("list_teammates", json!({}), "list_teammates");
    check("odd", json!({"a": 1}), "odd {\"a\":1}");
    check("bash", json!({"_invalid_json": "{"}), "bash (its input was no JSON)");
}

#[test]
fn a_call_says_what_it_came_to() {
    let call = Call::of("t", "bash", r#"{"command":"make"}"#, 0);
    let look = Call::of("t", "glob", r#"{"pattern":"*"}"#, 0);
    let second = Some(Duration::from_secs(12));
    let check = |call: Option<&Call>, result: ToolResult, what: &str, came: &str, is_bad: bool| {
        assert_eq!(vec![call::came_to(call, second, &result)], did(what, came, is_bad));
    };
    let failed =
        ToolResult { exit_code: Some(2), is_error: true, ..ToolResult::done("(exit code 2)\nno rule\nmore") };
    check(Some(&call), failed, "$ make", "exit 2 · 12 s · no rule (+1 line)", true);
    check(Some(&look), ToolResult::done("a"), "glob *", "12 s", false);
    let launched = ToolResult { launched: Some("wf_abc".into()), ..ToolResult::done("a") };
    check(Some(&look), launched, "glob *", "12 s · goes on in the background as wf_abc", false);
    check(None, ToolResult::interrupted("unknown"), "(a call)", "interrupted · 12 s · unknown", true);
    let refused = call::came_to(Some(&call), None, &ToolResult::refused("denied"));
    assert_eq!(vec![refused], did("$ make", "refused · denied", true));
    let quick = call::came_to(
        Some(&look),
        Some(Duration::ZERO),
        &ToolResult { ran: Ran::Done, ..ToolResult::done("a") },
    );
    assert_eq!(vec![quick], did("glob *", "", false));
}

#[test]
fn a_call_that_never_began_is_named_by_the_reply_that_wanted_it() {
    let mut told = ScreenUpdate::default();
    told.hear(opened("a"));
    told.hear(replied("", &[("bash", json!({"command": "rm -rf x"}))]));
    assert_eq!(
        told.hear(finished("t0", ToolResult::refused("denied"))),
        did("$ rm -rf x", "refused · denied", true)
    );
}

#[test]
fn a_failure_says_what_to_do_next() {
    let check = |kind: FailureKind, message: &str, expected: &str| {
        let mut told = ScreenUpdate::default();
        told.hear(opened("a"));
        let blocks =
            told.hear(closed(Outcome::Failed { kind, message: message.into(), text: "half".into() }));
        let ended = Block::Ended("ended · 0 turns · 0 tokens · $0.00 · 1.0 s".into());
        assert_eq!(blocks, [Block::Wrote("half".into()), Block::Failed(expected.to_owned()), ended]);
    };
    check(
        FailureKind::Budget,
        "$0.01 of\n$1.00 left",
        "the budget does not suffice: $0.01 of $1.00 left\n/budget usd N gives more, then Enter alone goes \
            on",
    );
    check(FailureKind::Cancelled, "", "stopped\nsay what comes instead");
    check(
        FailureKind::ContextFull,
        "x",
        "the history no longer fits the model's window: x\n/compact begins a new one",
    );
}

#[test]
fn a_reply_that_is_not_kept_is_withdrawn_and_the_call_of_a_person_ends_with_its_result() {
    let mut told = ScreenUpdate::default();
    told.hear(opened("a"));
    told.live(Piece::Text("half".into()));
    let cut = ModelReplied { kept: Kept::Cut, ..replied("half", &[]) };
    assert_eq!(told.hear(cut), note("reply withdrawn: the reply was cut at its length limit"));
    let call = ToolCall { id: "person_1".into(), name: "Workflow".into(), input: segment() };
    let made = CallMade { exchange: 2, input: "i".into(), text: "run tidy".into(), call };
    assert_eq!(told.hear(made), [Block::Said("run tidy".into())]);
    assert!(told.hear(finished("person_1", ToolResult::done("all tidy"))).is_empty());
    let blocks = told.hear(closed(Outcome::Ok { text: "all tidy".into() }));
    assert_eq!(blocks[0], Block::Wrote("all tidy".into()));
}

#[test]
fn what_happens_to_a_lead_beside_its_work_is_a_line() {
    let mut told = ScreenUpdate::default();
    assert_eq!(told.hear(ModeSet { on: true }), note("orchestration mode is on"));
    assert!(told.hear(Resumed { changed: Vec::new(), facts: None }).is_empty());
    let changed = ["a", "b", "c", "d", "e", "f\u{1b}", "g"].map(str::to_owned).to_vec();
    assert_eq!(
        told.hear(Resumed { changed, facts: None }),
        note("changed while nobody was looking: a, b, c, d, e and 2 more files")
    );
    let letter = Letter {
        id: MessageId::derived(&["m"]),
        from: "alice".into(),
        to: "lead".into(),
        kind: LetterKind::Result,
        text: "all\u{7} done\nreally".into(),
        urgent: false,
        order: 1,
        at: 0,
        request: None,
        approve: None,
        task: None,
    };
    let mail = [Block::Mail("alice reports: all␇ done (+1 line)".into())];
    let delivered = MailDelivered { message: segment(), letters: vec![letter.clone()] };
    assert_eq!(told.hear(delivered), mail);
    assert_eq!(told.hear(ExchangeOpened { letters: vec![letter], ..opened("<letters>") }), mail);
    let notice = ExchangeOpened { notice: Some("wf_abc".into()), ..opened("…") };
    assert_eq!(told.hear(notice), note("the lead is told that wf_abc has ended"));
}

#[test]
fn a_run_is_told_at_its_beginning_and_at_its_end_with_its_verdicts() {
    let run = RunId::derived(&["r"]);
    let id: String = run.as_str().chars().take(9).collect();
    let spec = RunSpec {
        run: run.to_string(),
        session: SessionId::from_bits([1; 10]),
        lead: lead(),
        call: "t".into(),
        dir: "/".into(),
        base: String::new(),
        voters: 1,
        subtasks: vec!["a".into(), "b".into()],
        keys: Vec::new(),
        notes: Vec::new(),
        dropped: vec!["c".into()],
        consent: String::new(),
    };
    let failed = ItemStatus::Failed { kind: FailureKind::Api, message: "no".into() };
    let verdicts = vec![
        Verdict::Confirmed { evidence: String::new() },
        Verdict::Confirmed { evidence: String::new() },
        Verdict::Refuted { evidence: String::new() },
    ];
    let events: [RunEvent; 5] = [
        RunStarted { spec }.into(),
        ItemEnded { item: 1, result: ItemResult::bare(ItemStatus::Ok) }.into(),
        ItemEnded { item: 2, result: ItemResult::bare(failed) }.into(),
        ItemJudged { item: 1, verdicts }.into(),
        RunClosed {}.into(),
    ];
    let mut transcript = Transcript::default();
    let mut blocks = Vec::new();
    for (seq, event) in events.into_iter().enumerate() {
        let heard = SessionEvent::Run {
            run: run.clone(),
            seq: seq as u64,
            at: seq as u64 * 3_000,
            event: Box::new(event),
        };
        blocks.extend(transcript.hear(Some(&lead()), &heard));
        assert!(transcript.hear(Some(&lead()), &heard).is_empty());
    }
    let expected = [
        format!("workflow {id}: begins with 2 subtasks, 1 subtask beyond the limit left out"),
        format!("workflow {id}: ends · 1 ok, 1 failed or degraded · findings: 2 confirmed, 1 refuted · 12 s"),
    ];
    assert_eq!(blocks, expected.map(Block::Note));
}

#[test]
fn a_program_is_told_by_its_name_with_what_it_says_and_how_it_ended() {
    use convoke_kernel::{
        CallAnswer, CallEnded, CallKind, CallResult, MadeCall, ProgramClosed, ProgramEnd, ProgramEvent,
        ProgramSaid, ProgramSpec, ProgramStarted, ProgramStatus, StepTaken,
    };
    let run = RunId::derived(&["p"]);
    let id: String = run.as_str().chars().take(9).collect();
    let spec: ProgramSpec = serde_json::from_value(json!({
        "run": run, "session": SessionId::from_bits([1; 10]), "lead": lead(), "call": "", "dir": "/", "base": "", "voters": 1,
        "name": "tidy", "description": "Tidies up.", "phases": [], "source": "", "digest": "", "background": false, "consent": "",
    }))
    .unwrap();
    let made = MadeCall {
        call: 1,
        kind: CallKind::Agent,
        label: "one".into(),
        phase: None,
        within: None,
        path: String::new(),
        key: String::new(),
        occurrence: 0,
        agents: 1,
        schema: None,
        attempt: 0,
        want: segment(),
    };
    let said = vec![ProgramSaid::Phase("One".into()), ProgramSaid::Log("hello\u{1b}[2J".into())];
    let step = StepTaken { fed: None, calls: vec![made], cleared: Vec::new(), said, end: None };
    let thrown = ProgramEnd::Failed { kind: "thrown".into(), message: "TypeError".into() };
    let events: [ProgramEvent; 5] = [
        ProgramStarted { spec }.into(),
        step.clone().into(),
        CallEnded { call: 1, result: CallResult::bare(ItemStatus::Ok, CallAnswer::null()), spent_total: 0 }
            .into(),
        StepTaken { calls: Vec::new(), said: Vec::new(), end: Some(thrown), ..step }.into(),
        ProgramClosed { status: ProgramStatus::Failed }.into(),
    ];
    let mut transcript = Transcript::default();
    let mut blocks = Vec::new();
    for (seq, event) in events.into_iter().enumerate() {
        let heard = SessionEvent::Program {
            run: run.clone(),
            seq: seq as u64,
            at: seq as u64,
            event: Box::new(event),
        };
        blocks.extend(transcript.hear(Some(&lead()), &heard));
    }
    let expected = [
        format!("workflow tidy ({id}): Tidies up."),
        format!("workflow tidy ({id}): hello␛[2J"),
        format!("workflow tidy ({id}): failed (thrown): TypeError · 1 ok · 0.0 s"),
    ];
    assert_eq!(blocks, expected.map(Block::Note));
}

#[test]
fn a_team_is_told_by_who_joins_and_what_becomes_of_tasks() {
    let task = TaskId::derived(&["t"]);
    let mut transcript = Transcript::default();
    let created = TaskCreated {
        task: task.clone(),
        subject: "count lines".into(),
        description: String::new(),
        criteria: None,
        blocked_by: Vec::new(),
        role: None,
        priority: 0,
        by: "lead".into(),
    };
    let done = TaskFinished { task, name: "alice".into(), result: String::new() };
    let joined = MemberSpawned {
        name: "alice".into(),
        role: "coder".into(),
        agent: AgentId::from_bits([3; 10]),
        requires_plan: false,
        by: "lead".into(),
    };
    let heard = [
        SessionEvent::Roster { seq: 1, at: 0, event: Box::new(joined.into()) },
        SessionEvent::Board { seq: 1, at: 0, event: Box::new(created.into()) },
        SessionEvent::Board { seq: 2, at: 0, event: Box::new(done.clone().into()) },
        SessionEvent::Board { seq: 2, at: 0, event: Box::new(done.into()) },
    ];
    let blocks: Vec<Block> = heard.iter().flat_map(|heard| transcript.hear(Some(&lead()), heard)).collect();
    assert_eq!(blocks, [note("alice joins (coder)"), note("alice has done \"count lines\"")].concat());
}
