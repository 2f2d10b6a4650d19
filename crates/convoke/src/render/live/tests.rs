//! What a person sees, on a terminal small enough to be written down here.

use convoke_kernel::{
    Failure, FailureKind, Reply, Retry, Segment, StopReason, ToolCall, ToolResult, ToolStarted, Usage,
};
use convoke_kernel::{ModelCalled, Purpose};

use super::*;
use crate::settings::OutputFormat;

const NOTHING: [&str; 0] = [];

/// As much of a terminal as the region needs: rows, a cursor, and erasing downwards.
#[derive(Default)]
struct Terminal {
    rows: Vec<String>,
    row: usize,
}

impl Terminal {
    fn feed(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            self.rows.resize(self.rows.len().max(self.row + 1), String::new());
            match c {
                '\n' => self.row += 1,
                '\r' => {}
                '\u{1b}' => {
                    assert_eq!(chars.next(), Some('['), "only control sequences are used");
                    let sequence = sequence(&mut chars);
                    match sequence.as_bytes().last() {
                        Some(b'A') => self.row -= sequence[..sequence.len() - 1].parse::<usize>().unwrap(),
                        Some(b'J') => {
                            self.rows.truncate(self.row);
                            self.rows.push(String::new());
                        }
                        _ => {}
                    }
                }
                c => self.rows[self.row].push(c),
            }
        }
    }

    fn shown(&self) -> Vec<&str> {
        self.rows.iter().map(String::as_str).filter(|row| !row.is_empty()).collect()
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

struct Watched {
    live: Live<Vec<u8>>,
    terminal: Terminal,
    now: Instant,
}

impl Watched {
    fn new(talk: Talk) -> Self {
        let output = OutputFormat::Text;
        let look = Look { output, talk, answer_on_terminal: true, talk_on_terminal: true, colour: true };
        let now = Instant::now();
        let live = Live::new(Vec::new(), look, || (40, 10), Progress::new("m"), now);
        Self { live, terminal: Terminal::default(), now }
    }

    fn tick(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.live.tick(self.now, 0);
    }

    fn shown(&mut self) -> Vec<&str> {
        let bytes = std::mem::take(&mut self.live.out);
        self.terminal.feed(&bytes);
        self.terminal.shown()
    }
}

fn called() -> Event {
    ModelCalled { call: 1, attempt: 1, segments: 1, max_tokens: 1, digest: String::new(), purpose: Purpose::Turn }
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
    seen.live.recorded(0, &called());
    seen.live.text("The \u{1b}[31manswer\u{7}");
    seen.tick(1);
    assert_eq!(seen.shown()[0], "The answer");
    seen.live.text(" is\nforty-two");
    seen.tick(1);
    assert_eq!(seen.shown()[..2], ["The answer is", "forty-two"]);
    seen.live.recorded(0, &replied("The answer is\nforty-two", 0));
    seen.live.close();
    assert_eq!(seen.shown(), NOTHING);
}

#[test]
fn a_long_text_shows_its_end_and_never_fills_the_screen() {
    let mut seen = Watched::new(Talk::Live);
    seen.live.recorded(0, &called());
    for n in 0..100 {
        seen.live.text(&format!("line {n}\n"));
        seen.tick(1);
    }
    let shown = seen.shown();
    assert!(shown.len() <= 10, "{shown:?}");
    assert!(shown.contains(&"line 99"), "{shown:?}");
}

#[test]
fn d4_4_what_was_said_before_a_call_stays_and_the_command_follows_with_its_outcome() {
    let mut seen = Watched::new(Talk::Live);
    seen.live.recorded(0, &called());
    seen.live.text("Let me look.");
    seen.tick(1);
    seen.live.recorded(0, &replied("Let me look.", 1));
    let input = Segment::from_json(r#"{"command":"ls"}"#).unwrap();
    seen.live.recorded(0, &ToolStarted { id: "t0".into(), name: "bash".into(), input }.into());
    seen.tick(1);
    assert_eq!(seen.shown()[..2], ["Let me look.", "$ ls"]);
    let result = ToolResult {
        text: "(exit code 2)\nls: no such file\nmore".into(),
        is_error: true,
        ran: Ran::Done,
        exit_code: Some(2),
        shell: None,
        full_output: None,
    };
    seen.live.recorded(1_500, &ToolFinished { id: "t0".into(), result }.into());
    seen.live.close();
    assert_eq!(seen.shown(), ["Let me look.", "$ ls", "  1.5 s · exit code 2 · ls: no such file (+1 line)"]);
}

#[test]
fn the_text_of_a_failed_attempt_is_withdrawn_in_so_many_words() {
    let mut seen = Watched::new(Talk::Live);
    seen.live.recorded(0, &called());
    seen.live.text("Half a sent");
    seen.tick(1);
    let failure =
        Failure { kind: FailureKind::Api, message: "overloaded".into(), retry: Retry::Soon, request_id: None };
    seen.live.recorded(0, &ModelFailed { call: 1, attempt: 1, failure, retry_at: Some(1_600) }.into());
    seen.tick(1);
    seen.live.close();
    assert_eq!(seen.shown(), ["… (reply withdrawn, asking again in 2 s: overloaded)"]);
}

#[test]
fn where_nobody_watches_there_is_at_most_one_line_a_second() {
    let mut seen = Watched::new(Talk::Sparse);
    seen.live.recorded(0, &called());
    for _ in 0..50 {
        seen.now += Duration::from_millis(50);
        seen.live.text("x");
        seen.live.tick(seen.now, 0);
    }
    assert_eq!(seen.shown(), ["turn 1 · 0 commands · 0 tokens · $0.00 · the model is answering"]);
    seen.live.recorded(0, &replied("a", 1));
    seen.tick(1);
    assert_eq!(seen.shown().len(), 2);
    seen.tick(1);
    assert_eq!(seen.shown().len(), 2, "what has not changed is not repeated");
    seen.tick(60);
    assert_eq!(seen.shown().len(), 3, "unless a minute has passed");
}

#[test]
fn quiet_shows_nothing_but_what_has_to_be_known() {
    let mut seen = Watched::new(Talk::Quiet);
    seen.live.recorded(0, &called());
    seen.live.text("x");
    seen.tick(5);
    assert_eq!(seen.shown(), NOTHING);
    seen.live.line("SIGINT: stopping");
    assert_eq!(seen.shown(), ["SIGINT: stopping"]);
}
