//! The whole screen with a small session that never was, for the tests: it breaks in whichever view it stands
//! as soon as a file exists.
//!
//! `views FILE [plain]`: once FILE exists, the next look at the clock panics, and so does opening the editor.
//! Said to it, `work` has an answer written that never ends, and `ask` asks something. It does nothing else
//! that it is asked for.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use convoke_kernel::{
    AgentId, AgentSpec, AgentStarted, Capabilities, Event, ExchangeClosed, ExchangeOpened, Kept,
    LeadSettings, Limits, ModelCalled, ModelReplied, Outcome, Piece, Purpose, Reply, Segment, SessionId,
    StopReason, Thinking, ToolCall, ToolFinished, ToolResult, ToolStarted, Usage,
};
use convoke_terminal::{
    About, Asking, Ends, Facts, Screen, ScreenOptions, ScreenUpdate, Theme, UserAction, guard_entry, run,
};
use convoke_view::SessionEvent;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The file that breaks everything, and when this began.
static BREAKS: OnceLock<(PathBuf, Instant)> = OnceLock::new();

fn main() -> ExitCode {
    guard_entry();
    let mut words = std::env::args().skip(1);
    let Some(file) = words.next() else { return ExitCode::FAILURE };
    BREAKS.get_or_init(|| (file.into(), Instant::now()));
    let Ok(runtime) = tokio::runtime::Runtime::new() else { return ExitCode::FAILURE };
    let manner = ScreenOptions {
        theme: Theme { colour: true },
        plain: words.next().as_deref() == Some("plain"),
        history: Some(std::env::temp_dir().join("no such folder/history")),
        greeting: vec!["a session that never was".to_owned()],
        opens: Arc::new(|_, _| {
            now();
            Command::new("true")
        }),
        dir: "/".into(),
        clock: now,
    };
    let (screen, news) = unbounded_channel();
    let (asks, mut wanted) = unbounded_channel();
    let session = Session::begin(screen);
    let handle = runtime.handle().clone();
    let drawing = std::thread::Builder::new().name("screen".to_owned());
    let Ok(drawing) = drawing.spawn(move || run(manner, Ends { news, asks }, &handle)) else {
        return ExitCode::FAILURE;
    };
    // It ends when the person leaves, or when the screen is gone.
    while let Some(ask) = wanted.blocking_recv() {
        session.answer(ask);
    }
    match drawing.join() {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(_) => ExitCode::from(3),
    }
}

/// The time, as long as nothing is to break.
fn now() -> u64 {
    let Some((file, began)) = BREAKS.get() else { return 0 };
    assert!(!file.exists(), "broken on purpose");
    u64::try_from(began.elapsed().as_millis()).unwrap_or_default()
}

/// A lead that has been asked for something and has answered.
struct Session {
    screen: UnboundedSender<Screen>,
    lead: AgentId,
    events: Vec<(u64, u64, Event)>,
}

impl Session {
    fn begin(screen: UnboundedSender<Screen>) -> Self {
        let events = (1..).zip(happened()).map(|(seq, event)| (seq, seq, event)).collect();
        let session = Self { screen, lead: AgentId::from_bits([1; 10]), events };
        let lead = Some(session.lead.clone());
        session.tell(ScreenUpdate::Facts(Box::new(Facts {
            lead,
            model: "large".into(),
            ..Facts::default()
        })));
        for (seq, at, event) in session.events.clone() {
            session.hear(SessionEvent::Agent {
                agent: session.lead.clone(),
                seq,
                at,
                event: Box::new(event),
            });
        }
        session
    }

    fn answer(&self, ask: UserAction) {
        match ask {
            UserAction::Say(text) if text == "work" => {
                self.tell(ScreenUpdate::Working(true));
                let agent = self.lead.clone();
                self.hear(SessionEvent::Live { agent, piece: Piece::Text("Streaming words".into()) });
            }
            UserAction::Say(text) if text == "ask" => {
                let who = "the lead".to_owned();
                let wanted = "run: touch asked".to_owned();
                let why = "a rule asks for it".to_owned();
                let about = About::Call { always: None };
                let details = Vec::new();
                self.tell(ScreenUpdate::Asked(Box::new(Asking {
                    id: 1,
                    agent: None,
                    who,
                    wanted,
                    why,
                    details,
                    about,
                })));
            }
            UserAction::Open(agent) => {
                self.tell(ScreenUpdate::History { agent, events: self.events.clone() })
            }
            UserAction::Leave => self.tell(ScreenUpdate::Over),
            _ => {}
        }
    }

    fn tell(&self, told: ScreenUpdate) {
        // A screen that is gone shows nothing.
        let _ = self.screen.send(Screen::Update(told));
    }

    fn hear(&self, heard: SessionEvent) {
        let _ = self.screen.send(Screen::Event(heard));
    }
}

/// Everything that happened to the lead.
fn happened() -> Vec<Event> {
    let input = Segment::encode(&json!({"command": "cat notes"}));
    let call = ToolCall { id: "c".into(), name: "bash".into(), input: input.clone() };
    let asked = |number| ModelCalled {
        call: number,
        attempt: 1,
        segments: 1,
        max_tokens: 1,
        digest: String::new(),
        purpose: Purpose::Turn,
    };
    let text = "look into it".to_owned();
    let opened = ExchangeOpened {
        exchange: 1,
        input: "i".into(),
        message: Segment::encode(&json!({"role": "user", "content": text})),
        text,
        system: None,
        section: None,
        changed: Vec::new(),
        notice: None,
        letters: Vec::new(),
        work: None,
        capsule: false,
    };
    let outcome = Outcome::Ok { text: "That was all.".into() };
    let report = None;
    let ballot = None;
    let degraded = None;
    let returned = Vec::new();
    let result = ToolResult { exit_code: Some(0), ..ToolResult::done("what it printed") };
    vec![
        AgentStarted { spec: lead() }.into(),
        opened.into(),
        asked(1).into(),
        ModelReplied { call: 1, reply: reply("Let me look.", vec![call]), kept: Kept::Yes }.into(),
        ToolStarted { id: "c".into(), name: "bash".into(), input }.into(),
        ToolFinished { id: "c".into(), result }.into(),
        asked(2).into(),
        ModelReplied { call: 2, reply: reply("That was all.", Vec::new()), kept: Kept::Yes }.into(),
        ExchangeClosed { exchange: 1, outcome, taken_back: false, report, ballot, degraded, returned }.into(),
    ]
}

fn reply(text: &str, calls: Vec<ToolCall>) -> Reply {
    Reply {
        content: Segment::encode(&json!([])),
        text: text.to_owned(),
        calls,
        stop: StopReason::EndTurn,
        stop_detail: None,
        usage: Usage { input_tokens: 700, output_tokens: 100, ..Usage::default() },
        cost_nano: Some(1_000_000),
        model: "large".into(),
        request_id: None,
    }
}

fn lead() -> AgentSpec {
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([1; 10]),
        dir: "/".into(),
        model: "large".into(),
        capabilities: Capabilities {
            system_role: false,
            anthropic_tools: false,
            cache_marks: false,
            thinking: Thinking::Omit,
            effort: None,
            max_output: 8_000,
            window: 100_000,
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
