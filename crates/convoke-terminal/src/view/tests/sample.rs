//! A fleet with some of everything, and a person at the keys who sees what is drawn.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;

use convoke_kernel::{
    AgentId, AgentsAdmitted, Amount, AttemptSettled, BudgetGranted, Caps, Ledger, LedgerEvent, MessageId,
    Role, RunId, SessionId, Severity, TaskId,
};
use convoke_view::{
    AgentRow, AgentState, Entry, EntryKind, FilePosition, FindingRow, Fleet, LetterRow, Page, RunRow,
    TaskRow, VerdictWord,
};

use crate::screen_update::{About, Asking, Facts};
use crate::text::Theme;
use crate::view::{Did, FleetView, Pane, Seen};

pub(super) const NOW: u64 = 1_000_000;

/// A person who looks at a fleet.
pub(super) struct Person {
    pub(super) view: FleetView,
    pub(super) fleet: Fleet,
    pub(super) facts: Facts,
    pub(super) questions: Vec<Asking>,
    pub(super) size: (u16, u16),
    pub(super) colour: bool,
    pub(super) cursor: Option<(u16, u16)>,
}

impl Person {
    /// In front of the sample fleet, on a screen of this size.
    pub(super) fn at(width: u16, height: u16) -> Self {
        let mut fleet = Fleet::of_rows(agents(), runs(), tasks(), letters(), findings());
        fleet.set_ledger(ledger());
        Self::before(fleet, questions(), width, height)
    }

    pub(super) fn before(fleet: Fleet, questions: Vec<Asking>, width: u16, height: u16) -> Self {
        let facts = Facts {
            session: Some(SessionId::from_bits([7; 10])),
            dir: "/home/someone/支払い-service".to_owned(),
            ..Facts::default()
        };
        let mut view = FleetView::default();
        view.open(Pane::Agents);
        let size = (width, height);
        let mut person = Self { view, fleet, facts, questions, size, colour: false, cursor: None };
        person.look();
        person
    }

    /// Looks at the screen.
    pub(super) fn look(&mut self) -> Buffer {
        let area = Rect::new(0, 0, self.size.0, self.size.1);
        let mut buffer = Buffer::empty(area);
        let theme = Theme { colour: self.colour };
        let fleet = &self.fleet;
        let facts = &self.facts;
        let questions = &self.questions;
        self.cursor = self.view.draw(&Seen { fleet, facts, questions, now: NOW, theme }, area, &mut buffer);
        buffer
    }

    /// What is on the screen, as text.
    pub(super) fn text(&mut self) -> String {
        text(&self.look())
    }

    /// Presses a key, and looks.
    pub(super) fn press(&mut self, code: KeyCode) -> Did {
        self.press_with(code, KeyModifiers::NONE)
    }

    pub(super) fn press_with(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Did {
        let theme = Theme { colour: self.colour };
        let fleet = &self.fleet;
        let facts = &self.facts;
        let questions = &self.questions;
        let seen = Seen { fleet, facts, questions, now: NOW, theme };
        let did = self.view.key(KeyEvent::new(code, modifiers), &seen);
        self.look();
        did
    }

    /// Presses the keys of these letters; says what came of the last.
    pub(super) fn types(&mut self, letters: &str) -> Did {
        letters.chars().map(|c| self.press(KeyCode::Char(c))).last().expect("a letter")
    }

    /// What should be read for the picture.
    pub(super) fn wants(&mut self) -> Option<crate::user_action::UserAction> {
        self.look();
        self.view.wants()
    }

    /// Gives the agent that is looked at the sample page.
    pub(super) fn reads(&mut self) {
        let looked = self.view.looked.as_mut().expect("an agent is looked at");
        let page = page(looked.agent().clone());
        looked.show(page);
        self.look();
    }

    /// The row that is chosen, as it is drawn.
    pub(super) fn chosen(&mut self) -> String {
        let text = self.text();
        let rows: Vec<&str> = text.lines().filter(|row| row.contains('›')).collect();
        assert!(rows.len() <= 1, "one row is chosen: {rows:?}");
        rows.first().map(|row| (*row).to_owned()).unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn sees(&mut self, expected: &str) {
        let text = self.text();
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }

    #[track_caller]
    pub(super) fn sees_not(&mut self, unexpected: &str) {
        let text = self.text();
        assert!(!text.contains(unexpected), "{unexpected:?} is in\n{text}");
    }
}

/// A buffer as rows of text, without blanks at their ends.
pub(super) fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut rows = Vec::new();
    for y in area.top()..area.bottom() {
        let mut row = String::new();
        let mut x = area.left();
        while x < area.right() {
            let cell = &buffer[(x, y)];
            row.push_str(cell.symbol());
            x += cell.symbol().cell_width().max(1);
        }
        rows.push(row.trim_end().to_owned());
    }
    rows.join("\n")
}

pub(super) fn agent_id(number: u8) -> AgentId {
    AgentId::from_bits([number; 10])
}

pub(super) fn run_id(number: u8) -> RunId {
    RunId::from_bits([number; 10])
}

pub(super) fn agent(number: u8, label: &str, phase: &str, state: AgentState) -> AgentRow {
    let role = match phase {
        "lead" => Role::Lead,
        "verifying" => Role::Verifier,
        "team" => Role::Teammate,
        _ => Role::Worker,
    };
    let run = match phase {
        "lead" | "team" => None,
        "Collect" => Some(run_id(2)),
        _ => Some(run_id(1)),
    };
    let act = match state {
        AgentState::Running => "command",
        AgentState::Asks => "asking",
        state => state.word(),
    };
    AgentRow {
        id: agent_id(number),
        role,
        label: label.to_owned(),
        phase: phase.to_owned(),
        run,
        state,
        act,
        last: format!("$ rg -n 'TODO' src/part-{number} | head"),
        since: NOW - 12_000 - u64::from(number) * 3_000,
        started_at: NOW - 900_000,
        turns: u32::from(number),
        commands: u32::from(number) * 2,
        tokens: u64::from(number) * 4_321,
        cost_nano: (number != 9).then(|| u64::from(number) * 12_340_000),
        model: "claude-opus-4-8".to_owned(),
    }
}

pub(super) fn agents() -> Vec<AgentRow> {
    use AgentState::{Asks, Done, Failed, Resting, Running, Stopped, Waiting};
    vec![
        agent(1, "lead", "lead", Running),
        agent(2, "Unresolved merge conflicts in every crate", "working", Running),
        agent(3, "検索: 未処理のエラーと例外を全部さがす", "working", Running),
        agent(4, "🔒 Secrets in the configuration", "working", Failed),
        agent(5, "Dead code", "working", Done),
        agent(6, "Panics on bad input", "working", Done),
        agent(7, "Tests that test nothing", "working", Waiting),
        agent(8, "Unresolved merge conflicts: 1 finding", "verifying", Running),
        agent(9, "👩‍👩‍👧 Names of people: 2 findings", "verifying", Done),
        agent(10, "Collect every table", "Collect", Stopped),
        agent(11, "scout", "team", Asks),
        agent(12, "書記", "team", Resting),
    ]
}

pub(super) fn runs() -> Vec<RunRow> {
    let run = |number, title: &str, is_program, failed, end: Option<&str>| RunRow {
        id: run_id(number),
        title: title.to_owned(),
        is_program,
        total: 8,
        done: 3,
        failed,
        end: end.map(str::to_owned),
        started_at: NOW - 300_000,
        ended_at: None,
    };
    vec![run(1, "6 subtasks", false, 1, None), run(2, "collect-tables", true, 0, Some("stopped"))]
}

pub(super) fn tasks() -> Vec<TaskRow> {
    let task = |number: u8, subject: &str, state, owner: Option<&str>, blocked_by: &[u8]| TaskRow {
        id: TaskId::from_bits([number; 10]),
        subject: subject.to_owned(),
        state,
        owner: owner.map(str::to_owned),
        role: (number == 2).then(|| "reviewer".to_owned()),
        blocked_by: blocked_by.iter().map(|number| TaskId::from_bits([*number; 10])).collect(),
        detail: "Every call that can fail is looked at.\n\nWhat came of it: nothing so far.".to_owned(),
    };
    vec![
        task(1, "Read the ledger's arithmetic", "claimed", Some("scout"), &[]),
        task(2, "Review what scout found", "open", None, &[]),
        task(3, "結果をまとめて報告書を書く", "blocked", None, &[1, 2]),
        task(4, "Run the benchmarks 🏁", "failed", Some("書記"), &[]),
        task(5, "List the crates", "done", Some("scout"), &[]),
    ]
}

pub(super) fn letters() -> Vec<LetterRow> {
    let letter = |number: u8, from: &str, to: &str, kind, text: Option<&str>| LetterRow {
        id: MessageId::from_bits([number; 10]),
        at: NOW - 60_000 + u64::from(number) * 1_000,
        from: from.to_owned(),
        to: to.to_owned(),
        kind,
        text: text.map(str::to_owned),
        read: text.is_some(),
    };
    vec![
        letter(
            1,
            "lead",
            "scout",
            "message",
            Some("Look at the ledger first.\nThen at the caps: 上限を超えないこと。"),
        ),
        letter(2, "scout", "lead", "result", None),
    ]
}

pub(super) fn findings() -> Vec<FindingRow> {
    let finding = |number, severity, verdict, claim: &str, places: &[(&str, u64)]| FindingRow {
        run: run_id(number),
        label: "Unresolved merge conflicts in every crate".to_owned(),
        agent: Some(agent_id(2)),
        severity,
        verdict,
        claim: claim.to_owned(),
        evidence: "line 41: let _ = send(letter);\nThe result is dropped.".to_owned(),
        reason: "Two of two verifiers saw the same line.".to_owned(),
        places: places
            .iter()
            .map(|(path, line)| FilePosition { path: (*path).to_owned(), line: Some(*line) })
            .collect(),
    };
    vec![
        finding(
            1,
            Severity::High,
            VerdictWord::Confirmed,
            "An error of the store is dropped when a letter is sent",
            &[("crates/payments/src/store/letters.rs", 41), ("crates/payments/src/store/mod.rs", 7)],
        ),
        finding(
            1,
            Severity::Medium,
            VerdictWord::Uncertain,
            "通貨の丸めが二回行われる場合がある",
            &[("src/money.rs", 120)],
        ),
        finding(2, Severity::Low, VerdictWord::Refuted, "The index of a table is never used", &[]),
    ]
}

pub(super) fn questions() -> Vec<Asking> {
    vec![asking(
        1,
        "scout",
        "run: cargo test\t--workspace \u{1b}[2J",
        About::Call { always: Some("cargo test".to_owned()) },
    )]
}

pub(super) fn asking(id: u64, who: &str, wanted: &str, about: About) -> Asking {
    Asking {
        id,
        agent: Some(agent_id(11)),
        who: who.to_owned(),
        wanted: wanted.to_owned(),
        why: "no rule allows this command".to_owned(),
        details: vec!["8 agents, at most 40 turns each".to_owned(), "at most $2.00".to_owned()],
        about,
    }
}

pub(super) fn page(agent: AgentId) -> Page {
    let entry = |turn, kind, title: &str, came_to: &str, body: &str| Entry {
        at: NOW - 60_000,
        kind,
        turn,
        title: title.to_owned(),
        came_to: came_to.to_owned(),
        is_bad: came_to.starts_with("exit 1"),
        body: body.to_owned(),
        place: (kind == EntryKind::Call && title.starts_with("edit"))
            .then(|| FilePosition { path: "src/letters.rs".to_owned(), line: Some(41) }),
    };
    let output: String = (1..=60).map(|number| format!("test part_{number} ... ok\n")).collect();
    let output = format!("$ cargo test\n{output}test the_last_of_all ... FAILED\n試験が一つ失敗しました\n");
    let mut page = Page::new(agent);
    page.entries = vec![
        entry(
            0,
            EntryKind::Prompt,
            "Find merge conflicts that nobody resolved",
            "",
            "Find merge conflicts.\nReport all.",
        ),
        entry(
            1,
            EntryKind::Text,
            "I will look for the markers first, 全部のファイルで。",
            "",
            "I will look.\n\nThen report.",
        ),
        entry(
            1,
            EntryKind::Call,
            "$ rg -n '<<<<<<<' crates",
            "exit 0 · 0.4 s · 3 lines",
            "$ rg\na.rs:1\nb.rs:2\nc.rs:3",
        ),
        entry(2, EntryKind::Call, "$ cargo test", "exit 101 · 12 s · 63 lines", &output),
        entry(2, EntryKind::Call, "edit src/letters.rs", "2 lines changed", "- let _ = send();\n+ send()?;"),
        entry(3, EntryKind::Mail, "mail from lead", "", "Look at the ledger first."),
        entry(
            3,
            EntryKind::Failure,
            "the model is overloaded; asked again in 4 s",
            "",
            "529 overloaded_error",
        ),
        entry(4, EntryKind::Call, "$ cargo test --workspace", "", "$ cargo test --workspace"),
    ];
    page
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::default();
    let caps = Caps { agents: Some(50), tokens: None, nano: Some(5_000_000_000), ms: None };
    let spent = Amount { tokens: 190_900, nano: 421_000_000 };
    let events = [
        LedgerEvent::BudgetGranted(BudgetGranted { caps, by: "person".to_owned() }),
        LedgerEvent::AgentsAdmitted(AgentsAdmitted { run: "wf".to_owned(), count: 12 }),
        LedgerEvent::AttemptSettled(AttemptSettled {
            agent: agent_id(1).to_string(),
            call: 1,
            attempt: 1,
            spent,
            confirmed: true,
            output_tokens: None,
            said: None,
        }),
    ];
    for event in &events {
        ledger.apply(event, NOW);
    }
    ledger
}
