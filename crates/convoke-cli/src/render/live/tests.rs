//! What a person sees, on a terminal small enough to be written down here.

use convoke_kernel::{
    Failure, FailureKind, Reply, Retry, Segment, StopReason, ToolCall, ToolResult, ToolStarted, Usage,
};
use convoke_kernel::{ModelCalled, ModelFailed, Purpose};

use super::*;
use crate::settings::OutputFormat;

const NOTHING: [&str; 0] = [];

/// As much of a terminal as the region needs: rows, a cursor, writing over what is there, and erasing.
#[derive(Default)]
struct Terminal {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    fn feed(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
            match c {
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                '\r' => self.column = 0,
                '\u{1b}' => {
                    assert_eq!(chars.next(), Some('['), "only control sequences are used");
                    let sequence = sequence(&mut chars);
                    match sequence.as_bytes().last() {
                        Some(b'A') => self.row -= sequence[..sequence.len() - 1].parse::<usize>().unwrap(),
                        Some(b'K') => self.rows[self.row].truncate(self.column),
                        Some(b'J') => {
                            self.rows.truncate(self.row + 1);
                            self.rows[self.row].truncate(self.column);
                        }
                        _ => {}
                    }
                }
                c => {
                    let row = &mut self.rows[self.row];
                    row.resize(row.len().max(self.column + 1), ' ');
                    row[self.column] = c;
                    self.column += 1;
                }
            }
        }
    }

    fn shown(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.iter().collect()).filter(|row: &String| !row.is_empty()).collect()
    }
}

/// Up to and including the letter that ends a control sequence.
fn sequence(chars: &mut impl Iterator<Item = char>) -> String {
    let mut sequence = String::new();
    for c in chars {
        sequence.push(c);
        if c.is_ascii_alphabetic() {
            break;
        }
    }
    sequence
}

pub(super) struct Watched {
    pub(super) live: Live<Vec<u8>>,
    terminal: Terminal,
    pub(super) now: Instant,
}

impl Watched {
    pub(super) fn new(talk: Talk) -> Self {
        let output = OutputFormat::Text;
        let look = Look {
            output,
            talk,
            answer_on_terminal: true,
            talk_on_terminal: true,
            colour: true,
            verbose: false,
        };
        let now = Instant::now();
        let lead = lead();
        let shown = Shown { lead: lead.clone(), progress: Progress::new("m"), work: AgentsAtWork::new(lead) };
        let live = Live::new(Vec::new(), look, TerminalLock::default(), || (40, 10), shown, now);
        Self { live, terminal: Terminal::default(), now }
    }

    fn tick(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.live.tick(self.now, 0);
    }

    /// The lead's events and words.
    fn recorded(&mut self, at: u64, event: &Event) {
        self.live.recorded(&lead(), at, event);
    }

    fn text(&mut self, text: &str) {
        self.live.piece(&lead(), &Piece::Text(text.to_owned()));
    }

    pub(super) fn shown(&mut self) -> Vec<String> {
        let bytes = std::mem::take(&mut self.live.out);
        self.terminal.feed(&bytes);
        self.terminal.shown()
    }
}

pub(super) fn lead() -> AgentId {
    AgentId::from_bits([1; 10])
}

pub(super) fn called() -> Event {
    ModelCalled {
        call: 1,
        attempt: 1,
        segments: 1,
        max_tokens: 1,
        digest: String::new(),
        purpose: Purpose::Turn,
    }
    .into()
}

fn replied(text: &str, calls: usize) -> Event {
    let input = Segment::from_json(r#"{"command":"ls"}"#).unwrap();
    let call = |n| ToolCall { id: format!("t{n}"), name: "bash".into(), input: input.clone() };
    let reply = Reply {
        content: Segment::from_json("[]").unwrap(),
        text: text.to_owned(),
        calls: (0..calls).map(call).collect(),
        stop: StopReason::EndTurn,
        stop_detail: None,
        usage: Usage::default(),
        cost_nano: Some(0),
        model: "m".into(),
        request_id: None,
    };
    ModelReplied { call: 1, reply, kept: Kept::Yes }.into()
}

#[test]
fn live_text_is_seen_while_it_is_written_and_gone_when_it_is_the_answer() {
    let mut seen = Watched::new(Talk::Live);
    seen.recorded(0, &called());
    seen.text("The \u{1b}[31manswer\u{7}");
    seen.tick(1);
    assert_eq!(seen.shown()[0], "The answer");
    seen.text(" is\nforty-two");
    seen.tick(1);
    assert_eq!(seen.shown()[..2], ["The answer is", "forty-two"]);
    seen.recorded(0, &replied("The answer is\nforty-two", 0));
    seen.live.close();
    assert_eq!(seen.shown(), NOTHING);
}

#[test]
fn a_long_text_shows_its_end_and_never_fills_the_screen() {
    let mut seen = Watched::new(Talk::Live);
    seen.recorded(0, &called());
    for n in 0..100 {
        seen.text(&format!("line {n}\n"));
        seen.tick(1);
    }
    let shown = seen.shown();
    assert!(shown.len() <= 10, "{shown:?}");
    assert!(shown.iter().any(|row| row == "line 99"), "{shown:?}");
}

#[test]
fn d4_4_what_was_said_before_a_call_stays_and_the_command_follows_with_its_outcome() {
    let mut seen = Watched::new(Talk::Live);
    seen.recorded(0, &called());
    seen.text("Let me look.");
    seen.tick(1);
    seen.recorded(0, &replied("Let me look.", 1));
    let input = Segment::from_json(r#"{"command":"ls"}"#).unwrap();
    seen.recorded(0, &ToolStarted { id: "t0".into(), name: "bash".into(), input }.into());
    seen.tick(1);
    assert_eq!(seen.shown()[..2], ["Let me look.", "$ ls"]);
    let result = ToolResult {
        text: "(exit code 2)\nls: no such file\nmore".into(),
        is_error: true,
        ran: Ran::Done,
        exit_code: Some(2),
        ..ToolResult::done("")
    };
    seen.recorded(1_500, &ToolFinished { id: "t0".into(), result }.into());
    seen.live.close();
    let outcome = ["  1.5 s · exit code 2 · ls: no such file", "  (+1 line)"];
    assert_eq!(seen.shown(), ["Let me look.", "$ ls", outcome[0], outcome[1]]);
}

#[test]
fn the_text_of_a_failed_attempt_is_withdrawn_in_so_many_words() {
    let mut seen = Watched::new(Talk::Live);
    seen.recorded(0, &called());
    seen.text("Half a sent");
    seen.tick(1);
    let failure = Failure {
        kind: FailureKind::Api,
        message: "overloaded".into(),
        retry: Retry::Soon,
        request_id: None,
        unbilled: false,
        refused: None,
    };
    seen.recorded(0, &ModelFailed { call: 1, attempt: 1, failure, retry_at: Some(1_600) }.into());
    seen.tick(1);
    seen.live.close();
    assert_eq!(seen.shown(), ["… (reply withdrawn, asking again in 2 s: overloaded)"]);
}

#[test]
fn where_nobody_watches_steady_work_is_told_of_less_and_less_often() {
    let mut seen = Watched::new(Talk::Sparse);
    let mut said = Vec::new();
    let mut at = 0;
    // Ten minutes in which something new happens every second.
    for second in 1..=600_u64 {
        seen.recorded(0, &called());
        seen.recorded(0, &replied("a", 1));
        at += 1_000;
        seen.now += Duration::from_secs(1);
        seen.live.tick(seen.now, at);
        if seen.shown().len() > said.len() {
            said.push(second);
        }
    }
    println!("ten minutes of steady work in a pipe: {} lines, at {said:?} s", said.len());
    assert_eq!(&said[..4], [10, 30, 70, 130]);
    assert!(said.len() <= 12, "{said:?}");
    // Something else begins, and then it is told of sooner again.
    seen.live.line("[workflow] fanning out 3 agents");
    seen.recorded(0, &called());
    let before = seen.shown().len();
    seen.tick(61);
    seen.recorded(0, &replied("b", 1));
    seen.tick(20);
    assert_eq!(seen.shown().len(), before + 2);
}

#[test]
fn where_nobody_watches_what_has_not_changed_is_repeated_once_a_minute() {
    let mut seen = Watched::new(Talk::Sparse);
    seen.recorded(0, &called());
    seen.tick(10);
    assert_eq!(seen.shown(), ["turn 1 · 0 commands · 0 tokens · $0.00 · the model is answering"]);
    seen.tick(59);
    assert_eq!(seen.shown().len(), 1);
    seen.tick(1);
    assert_eq!(seen.shown().len(), 2);
}

#[test]
fn quiet_shows_nothing_but_what_has_to_be_known() {
    let mut seen = Watched::new(Talk::Quiet);
    seen.recorded(0, &called());
    seen.text("x");
    seen.tick(5);
    assert_eq!(seen.shown(), NOTHING);
    seen.live.line("SIGINT: stopping");
    assert_eq!(seen.shown(), ["SIGINT: stopping"]);
}

fn child() -> AgentId {
    AgentId::from_bits([2; 10])
}

/// A child that runs a command, and what the lead waits for meanwhile.
fn fan_out(seen: &mut Watched) {
    let input = Segment::from_json(r#"{"subtasks":["a","b"]}"#).unwrap();
    seen.recorded(0, &ToolStarted { id: "w".into(), name: "Workflow".into(), input }.into());
    let spec = super::super::tree::worker("Look for TODOs");
    seen.live.recorded(&child(), 0, &convoke_kernel::AgentStarted { spec }.into());
    let input = Segment::from_json(r#"{"command":"rg -n TODO"}"#).unwrap();
    seen.live.recorded(&child(), 0, &ToolStarted { id: "t".into(), name: "bash".into(), input }.into());
}

fn finished(id: &str, text: &str) -> Event {
    ToolFinished { id: id.into(), result: ToolResult::done(text) }.into()
}

#[test]
fn w90_what_others_do_is_seen_while_they_do_it_and_only_the_lead_s_calls_stay() {
    let mut seen = Watched::new(Talk::Live);
    fan_out(&mut seen);
    seen.live.piece(&child(), &Piece::Text("a child thinks aloud".into()));
    seen.tick(1);
    let expected = [
        "lead · Workflow of 2 subtasks, 0.0 s ·…",
        "└ working: 0 done, 1 running",
        "  ▸ Look for TODOs running",
        "$0.00 · 1 agent · 0 tokens",
    ];
    assert_eq!(seen.shown(), expected);
    seen.live.recorded(&child(), 0, &finished("t", "found nothing"));
    seen.tick(1);
    seen.recorded(2_000, &finished("w", "2 subtasks: all is well"));
    seen.live.close();
    assert_eq!(seen.shown(), ["Workflow of 2 subtasks", "  2.0 s · 2 subtasks: all is well"]);
}

#[test]
fn w90_where_nobody_watches_a_command_of_another_agent_carries_its_name() {
    let mut seen = Watched::new(Talk::Sparse);
    fan_out(&mut seen);
    seen.tick(10);
    let line = "turn 1 · 0 commands · $0.00 · 1 agent · 0 tokens · Workflow of 2 subtasks · agents: 1 \
        running · Look for TODOs: $ rg -n TODO";
    assert_eq!(seen.shown(), [line]);
    seen.live.recorded(&child(), 0, &finished("t", "x"));
    seen.tick(19);
    assert_eq!(seen.shown().len(), 1, "with others at work there is something new all the time");
    seen.tick(1);
    assert_eq!(seen.shown().len(), 2);
}

#[test]
fn a_region_that_has_not_changed_is_not_drawn_again() {
    let mut seen = Watched::new(Talk::Live);
    fan_out(&mut seen);
    seen.tick(1);
    assert!(!seen.shown().is_empty());
    seen.live.ledger(Box::default());
    seen.tick(1);
    seen.tick(1);
    let before = seen.shown();
    seen.tick(1);
    assert_eq!(seen.live.out, Vec::<u8>::new());
    assert_eq!(seen.shown(), before);
}

#[test]
fn drawing_never_erases_what_it_is_about_to_write() {
    let mut seen = Watched::new(Talk::Live);
    fan_out(&mut seen);
    seen.tick(1);
    assert_eq!(seen.shown().len(), 4);
    seen.live.recorded(&child(), 0, &finished("t", "x"));
    seen.live.tick(seen.now + FRAME, 0);
    let bytes = String::from_utf8(seen.live.out.clone()).unwrap();
    let erased = bytes.find("\u{1b}[J").unwrap();
    assert!(bytes[..erased].contains("working: 0 done"), "{bytes:?}");
    assert_eq!(
        bytes.matches("\u{1b}[?7l").count(),
        bytes.matches("\u{1b}[?7h").count(),
        "wrapping comes back"
    );
}

#[test]
fn nothing_is_drawn_over_a_question_and_nothing_of_it_is_erased() {
    let mut seen = Watched::new(Talk::Live);
    seen.recorded(0, &called());
    seen.tick(1);
    assert_eq!(seen.shown().len(), 1);
    let question = seen.live.terminal.hold();
    // A question is written to the terminal without asking the screen.
    seen.terminal.feed("\nRun it? [y/N] ".as_bytes());
    seen.text("more text");
    seen.tick(1);
    assert!(seen.shown()[1].starts_with("Run it?"), "{:?}", seen.shown());
    seen.terminal.feed("y\n".as_bytes());
    drop(question);
    seen.tick(1);
    seen.live.close();
    assert_eq!(seen.shown()[1..], ["Run it? [y/N] y"]);
}

#[test]
fn what_happens_while_a_question_stands_there_is_printed_when_it_is_answered() {
    let mut seen = Watched::new(Talk::Live);
    seen.recorded(0, &called());
    seen.tick(1);
    assert_eq!(seen.shown().len(), 1);
    let question = seen.live.terminal.hold();
    seen.terminal.feed("\nAllow it? [y/N] ".as_bytes());
    seen.recorded(1, &finished("t", "the outcome"));
    seen.tick(1);
    assert!(seen.shown()[1].starts_with("Allow it?") && seen.shown().len() == 2, "{:?}", seen.shown());
    seen.terminal.feed("y\n".as_bytes());
    drop(question);
    seen.tick(1);
    let shown = seen.shown().join("\n");
    assert!(shown.find("Allow it? [y/N] y") < shown.find("the outcome"), "{shown}");
    assert!(shown.contains("the outcome"), "{shown}");
}

#[test]
fn a_question_that_was_answered_between_two_looks_stays_on_the_screen() {
    let mut seen = Watched::new(Talk::Live);
    fan_out(&mut seen);
    seen.tick(1);
    assert_eq!(seen.shown().len(), 4);
    seen.terminal.feed("\nAllow it? [y/N] y\n".as_bytes());
    drop(seen.live.terminal.hold());
    seen.recorded(1, &finished("t", "the outcome"));
    seen.tick(1);
    let shown = seen.shown().join("\n");
    assert!(shown.contains("Allow it? [y/N] y"), "{shown}");
}
