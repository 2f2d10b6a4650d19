//! A person in front of a session: plays events, presses keys and reads what stands on the terminal.

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use serde_json::{Value, json};

use convoke_kernel::{
    AgentId, AgentSpec, AgentStarted, Event, ExchangeClosed, ExchangeOpened, Kept, ModelCalled, ModelReplied,
    Outcome, Piece, Purpose, Reply, Role, Segment, SessionId, StopReason, ToolCall, ToolFinished, ToolResult,
    ToolStarted, Usage,
};
use convoke_view::{SessionEvent, sample};

use crate::app::{Act, App};
use crate::screen_update::{About, Asking, Facts, ScreenUpdate};
use crate::text::{Theme, text_columns};
use crate::user_action::UserAction;

pub(super) const SIZES: [(u16, u16); 3] = [(80, 24), (200, 60), (40, 10)];
/// The lead among the agents.
pub(super) const LEAD: u8 = 1;

pub(super) struct Player {
    pub(super) app: App,
    pub(super) size: (u16, u16),
    /// Everything that was printed so far.
    pub(super) printed: Vec<String>,
    seqs: HashMap<u8, u64>,
    pub(super) now: u64,
}

pub(super) fn id(number: u8) -> AgentId {
    AgentId::from_bits([number; 10])
}

pub(super) fn facts() -> Facts {
    Facts {
        session: Some(SessionId::from_bits([7; 10])),
        lead: Some(id(LEAD)),
        dir: "/home/someone/支払い".into(),
        model: "claude-opus-4-8".into(),
        effort: Some("high".into()),
        mode: true,
        ..Facts::default()
    }
}

pub(super) fn asking(id: u64, wanted: &str, about: About) -> Asking {
    let why = "no rule allows this command".to_owned();
    Asking {
        id,
        agent: None,
        who: "agent \"tidy\"".into(),
        wanted: wanted.into(),
        why,
        details: Vec::new(),
        about,
    }
}

pub(super) fn call(id: u64, command: &str) -> Asking {
    asking(id, &format!("run: {command}"), About::Call { always: None })
}

/// Everything there is room for, and where the cursor stands.
pub(super) fn text(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

impl Player {
    /// In front of a session that has just begun.
    pub(super) fn at(size: (u16, u16)) -> Self {
        let app = App::new(Theme { colour: false }, vec!["an earlier message".into()]);
        let mut player = Self { app, size, printed: Vec::new(), seqs: HashMap::new(), now: 1_000_000 };
        player.told(ScreenUpdate::Facts(Box::new(facts())));
        player
    }

    /// In front of a session whose lead is at work on what was said.
    pub(super) fn at_work(size: (u16, u16), said: &str) -> Self {
        let mut player = Self::at(size);
        player.told(ScreenUpdate::Working(true));
        player.starts(LEAD, Role::Lead, "lead");
        player.says(said);
        player
    }

    pub(super) fn told(&mut self, told: ScreenUpdate) {
        self.app.told(told);
    }

    pub(super) fn asks(&mut self, asking: Asking) {
        self.told(ScreenUpdate::Asked(Box::new(asking)));
    }

    pub(super) fn hears(&mut self, agent: u8, event: impl Into<Event>) {
        let seq = self.seqs.entry(agent).or_default();
        *seq += 1;
        self.now += 1_000;
        let heard =
            SessionEvent::Agent { agent: id(agent), seq: *seq, at: self.now, event: Box::new(event.into()) };
        self.app.hear(&heard);
    }

    pub(super) fn live(&mut self, piece: Piece) {
        self.app.hear(&SessionEvent::Live { agent: id(LEAD), piece });
    }

    pub(super) fn starts(&mut self, agent: u8, role: Role, label: &str) {
        self.hears(agent, AgentStarted { spec: spec(role, label) });
    }

    /// The person said this, and it is recorded.
    pub(super) fn says(&mut self, text: &str) {
        self.opens(LEAD, text);
    }

    pub(super) fn opens(&mut self, agent: u8, text: &str) {
        self.hears(
            agent,
            ExchangeOpened {
                exchange: 1,
                input: "i".into(),
                text: text.into(),
                message: Segment::encode(&json!({})),
                system: None,
                section: None,
                changed: Vec::new(),
                notice: None,
                letters: Vec::new(),
                work: None,
                capsule: false,
            },
        );
        let purpose = Purpose::Turn;
        self.hears(
            agent,
            ModelCalled { call: 1, attempt: 1, segments: 1, max_tokens: 1, digest: String::new(), purpose },
        );
    }

    pub(super) fn replies(&mut self, agent: u8, text: &str, calls: &[(&str, Value)]) {
        let call = |(number, (name, input)): (usize, &(&str, Value))| ToolCall {
            id: format!("t{number}"),
            name: (*name).into(),
            input: Segment::encode(input),
        };
        let reply = Reply {
            content: Segment::encode(&json!([])),
            text: text.into(),
            calls: calls.iter().enumerate().map(call).collect(),
            stop: StopReason::EndTurn,
            stop_detail: None,
            usage: Usage {
                input_tokens: 700,
                cache_read_tokens: 6_200,
                output_tokens: 100,
                ..Usage::default()
            },
            cost_nano: Some(14_000_000),
            model: "m".into(),
            request_id: None,
        };
        self.hears(agent, ModelReplied { call: 1, reply, kept: Kept::Yes });
        for (number, (name, input)) in calls.iter().enumerate() {
            let id = format!("t{number}");
            let input = Segment::encode(input);
            self.hears(agent, ToolStarted { id, name: (*name).into(), input });
        }
    }

    pub(super) fn finishes(&mut self, agent: u8, call: &str, text: &str, code: i32) {
        let result = ToolResult { exit_code: Some(code), ..ToolResult::done(text) };
        self.hears(agent, ToolFinished { id: call.into(), result });
    }

    pub(super) fn closes(&mut self, agent: u8, text: &str) {
        self.hears(
            agent,
            ExchangeClosed {
                exchange: 1,
                outcome: Outcome::Ok { text: text.into() },
                taken_back: false,
                report: None,
                ballot: None,
                degraded: None,
                returned: Vec::new(),
            },
        );
    }

    /// Presses a key without looking.
    pub(super) fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Act> {
        self.app.key(KeyEvent::new(code, modifiers), self.now)
    }

    /// Presses a key, says what is wanted, and looks.
    pub(super) fn key(&mut self, code: KeyCode) -> Vec<UserAction> {
        let acts = self.press(code, KeyModifiers::NONE);
        self.look();
        asks(acts)
    }

    pub(super) fn ctrl(&mut self, c: char) -> Vec<UserAction> {
        let acts = self.press(KeyCode::Char(c), KeyModifiers::CONTROL);
        self.look();
        asks(acts)
    }

    pub(super) fn types(&mut self, text: &str) {
        for c in text.chars() {
            assert_eq!(self.key(KeyCode::Char(c)), [], "typing {text:?}");
        }
    }

    /// Looks at the terminal: what is to be printed is printed, and what is asked was seen.
    pub(super) fn look(&mut self) -> (Vec<String>, (u16, u16)) {
        let rows = self.app.printed(usize::from(self.size.0) - 1);
        self.printed.extend(text(&rows));
        let region = self.app.region(self.size, self.now);
        let rows = text(&region.lines);
        let columns = usize::from(self.size.0);
        let most = usize::from(self.size.1);
        assert!(rows.len() <= most, "{} rows of {most}: {rows:#?}", rows.len());
        for row in rows.iter().chain(&self.printed) {
            assert!(text_columns(row) < columns, "{row:?} is wider than {columns}");
        }
        assert!(
            usize::from(region.cursor.0) < columns && usize::from(region.cursor.1) < rows.len(),
            "{:?}",
            region.cursor
        );
        (rows, region.cursor)
    }

    /// The picture as text: what was printed, a line, the region, and where the cursor stands in it.
    pub(super) fn picture(&mut self) -> String {
        let (rows, (column, row)) = self.look();
        let printed = self.printed.join("\n");
        let region = rows.join("\n");
        format!("{printed}\n~~~~\n{region}\n~~~~ cursor in column {column} of row {row}\n")
    }

    #[track_caller]
    pub(super) fn sees(&mut self, expected: &str) {
        let picture = self.picture();
        assert!(picture.contains(expected), "{expected:?} is not in\n{picture}");
    }

    #[track_caller]
    pub(super) fn sees_not(&mut self, unexpected: &str) {
        let picture = self.picture();
        assert!(!picture.contains(unexpected), "{unexpected:?} is in\n{picture}");
    }

    /// The whole screen.
    pub(super) fn fleet(&mut self) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        self.app.draw(self.now, area, &mut buffer);
        buffer
    }
}

pub(super) fn asks(acts: Vec<Act>) -> Vec<UserAction> {
    let ask = |act| if let Act::Send(ask) = act { Some(ask) } else { None };
    acts.into_iter().filter_map(ask).collect()
}

fn spec(role: Role, label: &str) -> AgentSpec {
    let lead = sample::lead(7, None);
    if role == Role::Lead { lead } else { lead.child(role, label, 1).unwrap() }
}
