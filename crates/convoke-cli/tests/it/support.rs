//! A place of its own for each test: a home, a working directory, and journals with something in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use convoke_journal::{Batch, Journal, KeyedInput, Lease, Location, Options, Process, StreamId};
use convoke_kernel::{
    Agent, AgentId, AgentSpec, Capabilities, Confinement, Event, Failure, FailureKind, Input, LeadSettings,
    Limits, Network, Pace, Ran, Reply, Retry, RoomAnswer, RoomAsk, Sandbox, Segment, SessionId, StopReason,
    Thinking, ToolCall, ToolResult, Usage,
};
use serde_json::json;
use tempfile::TempDir;

/// An empty home and a working directory.
pub(crate) struct TestHome {
    root: TempDir,
}

/// What a command printed and how it ended.
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["home", "work", "elsewhere"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn user_config(&self) -> PathBuf {
        self.path("home/.config/convoke/config.toml")
    }

    pub(crate) fn project_config(&self) -> PathBuf {
        self.path("work/.convoke/config.toml")
    }

    pub(crate) fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn journal_file(&self) -> PathBuf {
        self.path("home/.local/state/convoke/journal.db")
    }

    /// The binary in the working directory, with nothing of the caller's environment but the path to
    /// programs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_convoke"));
        command.args(args).current_dir(self.path("work")).env_clear().stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub(crate) fn convoke(&self, args: &[&str]) -> Finished {
        ran(&mut self.command(args))
    }

    /// The text with this place's paths made the same for every test.
    pub(crate) fn normal(&self, text: &str) -> String {
        text.replace(&self.path("").to_string_lossy().trim_end_matches('/').to_owned(), "ROOT")
    }
}

pub(crate) fn ran(command: &mut Command) -> Finished {
    let output = command.output().unwrap();
    Finished {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A journal that a test writes to, as a driver would.
pub(crate) struct Writer {
    pub(crate) journal: Journal,
}

impl Writer {
    pub(crate) async fn open(path: &Path) -> Self {
        let mut bits = [0; 10];
        bits[..4].copy_from_slice(&std::process::id().to_be_bytes());
        Self::open_as(Process::current(bits), path).await
    }

    /// The journal as another process sees it.
    pub(crate) async fn open_as(process: Process, path: &Path) -> Self {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let options = Options::new(process);
        Self { journal: Journal::open(Location::Sqlite(path.to_owned()), options).await.unwrap() }
    }

    /// An agent that has been given a task and waits for its first reply.
    pub(crate) async fn start(&self, number: u8, dir: &Path, task: &str) -> Written<'_> {
        let confined =
            Confinement { sandbox: Sandbox::Workspace, network: Network::Off, ..Confinement::default() };
        self.start_as(number, dir, task, confined).await
    }

    /// The same for an agent that nothing confines.
    pub(crate) async fn start_unconfined(&self, number: u8, dir: &Path, task: &str) -> Written<'_> {
        self.start_as(number, dir, task, Confinement::default()).await
    }

    async fn start_as(&self, number: u8, dir: &Path, task: &str, confinement: Confinement) -> Written<'_> {
        let agent = AgentId::from_bits([number; 10]);
        let session = SessionId::from_bits([number; 10]);
        let stream = StreamId::from(&agent);
        let lease = self.journal.own(&stream).await.unwrap();
        let mut written = Written { writer: self, lease, agent: Agent::new(), seq: 0, at: 1_794_776_640_000 };
        let spec = Box::new(AgentSpec { confinement, ..spec(session, dir) });
        written.input(Input::Start { spec, key: "start".into(), text: task.into() }).await;
        written
    }

    /// An agent that was written down and never driven.
    pub(crate) async fn submit(&self, number: u8, dir: &Path, task: &str) {
        let agent = AgentId::from_bits([number; 10]);
        let session = SessionId::from_bits([number; 10]);
        let body = json!({"start": spec(session, dir), "say": task}).to_string();
        let input = KeyedInput { stream: StreamId::from(&agent), key: "start".into(), body };
        self.journal.submit(&input, 1_794_776_640_000).await.unwrap();
    }
}

/// An agent under the test's hand.
pub(crate) struct Written<'a> {
    writer: &'a Writer,
    lease: Lease,
    agent: Agent,
    seq: u64,
    at: u64,
}

impl Written<'_> {
    /// Takes an input, and grants the room it may ask for.
    pub(crate) async fn input(&mut self, input: Input) {
        self.at += 1_000;
        self.take(input).await;
        if let Some(RoomAsk { call, wanted, .. }) = self.agent.room_ask() {
            self.take(Input::Room { call, answer: RoomAnswer::Go { max_tokens: wanted } }).await;
        }
    }

    async fn take(&mut self, input: Input) {
        let events = self.agent.decide(input, self.at, Pace::Go).unwrap();
        let summary = self.agent.summary_after(&events, self.at).unwrap();
        let encoded = events.iter().map(|event| event.encode().unwrap()).collect();
        let summary = summary.map(|summary| serde_json::to_string(&summary).unwrap());
        let batch = Batch { at: self.at, events: encoded, summary, ..Batch::default() };
        self.seq = self.writer.journal.append(&self.lease, self.seq, &batch).await.unwrap();
        events.iter().for_each(|event: &Event| self.agent.apply(event, self.at).unwrap());
    }

    /// The model asks for a command, which prints something.
    pub(crate) async fn command(&mut self, call: u32, command: &str, output: &str, exit_code: i32) {
        let input = Segment::encode(&json!({"command": command}));
        let id = format!("toolu_{call}");
        let calls = vec![ToolCall { id: id.clone(), name: "bash".into(), input }];
        let content = json!([{"type": "tool_use", "id": id, "name": "bash", "input": {"command": command}}]);
        let reply = Reply { calls, ..reply(&content, "", StopReason::ToolUse) };
        self.input(Input::Replied { call, reply: Box::new(reply) }).await;
        let is_error = exit_code != 0;
        let exit_code = Some(exit_code);
        let text = output.to_owned();
        let result = ToolResult { is_error, ran: Ran::Done, exit_code, ..ToolResult::done(text) };
        self.input(Input::ToolDone { id, result }).await;
    }

    /// The model answers.
    pub(crate) async fn answer(&mut self, call: u32, text: &str) {
        let reply = reply(&json!([{"type": "text", "text": text}]), text, StopReason::EndTurn);
        self.input(Input::Replied { call, reply: Box::new(reply) }).await;
    }

    /// The API refuses for good.
    pub(crate) async fn fail(&mut self, call: u32, message: &str) {
        let failure = Failure {
            kind: FailureKind::Api,
            message: message.into(),
            retry: Retry::Never,
            request_id: Some("req_1".into()),
            unbilled: true,
            refused: None,
        };
        self.input(Input::Failed { call, attempt: 1, failure }).await;
    }

    pub(crate) async fn release(self) {
        self.writer.journal.release(&self.lease).await.unwrap();
    }
}

fn reply(content: &serde_json::Value, text: &str, stop: StopReason) -> Reply {
    let usage = Usage { input_tokens: 1_000, cache_read_tokens: 500, output_tokens: 200, ..Usage::default() };
    Reply {
        content: Segment::encode(content),
        text: text.to_owned(),
        calls: Vec::new(),
        stop,
        stop_detail: None,
        usage,
        cost_nano: Some(10_250_000),
        model: "claude-opus-4-8".into(),
        request_id: None,
    }
}

fn spec(session: SessionId, dir: &Path) -> AgentSpec {
    AgentSpec::lead(LeadSettings {
        session,
        dir: dir.to_string_lossy().into_owned(),
        model: "claude-opus-4-8".into(),
        capabilities: Capabilities {
            system_role: true,
            anthropic_tools: true,
            cache_marks: true,
            thinking: Thinking::Adaptive,
            effort: Some("xhigh".into()),
            max_output: 128_000,
            window: 1_000_000,
        },
        limits: Limits::default(),
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: None,
        team: None,
        extra_system: None,
    })
}
