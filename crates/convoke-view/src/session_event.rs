//! What has happened, as the session passes it on: recorded events of its streams, and live text that is no
//! event. Everything that is drawn is folded from these; [`SessionEvent::read_line`] reads them from the
//! output of `--output jsonl`.

use convoke_kernel::{AgentId, BoardEvent, Event, Ledger, Piece, ProgramEvent, RosterEvent, RunEvent, RunId};
use serde::Deserialize;

use crate::jsonl::VERSION;
use crate::waits::Hold;

/// Something that has happened in the session.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// An event of an agent.
    Agent {
        /// Which agent.
        agent: AgentId,
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<Event>,
    },
    /// An event of a workflow's run.
    Run {
        /// Which run.
        run: RunId,
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<RunEvent>,
    },
    /// An event of a program's run.
    Program {
        /// Which run.
        run: RunId,
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<ProgramEvent>,
    },
    /// An event of the roster.
    Roster {
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<RosterEvent>,
    },
    /// An event of the board.
    Board {
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<BoardEvent>,
    },
    /// The ledger as it stands now.
    Ledger(Box<Ledger>),
    /// A piece of a reply that is still being written. The next event of its agent withdraws it.
    Live {
        /// Which agent.
        agent: AgentId,
        /// The piece.
        piece: Piece,
    },
    /// All agents that want to ask the model wait until a time, which may have changed; `None`: no longer.
    Held(Option<Hold>),
    /// Nothing new starts: the session was asked to stop.
    Draining,
}

/// What stands around an event on a line.
#[derive(Deserialize)]
struct Envelope {
    v: u32,
    stream: String,
    seq: u64,
    at: u64,
}

impl SessionEvent {
    /// The stream in which it was recorded, and its number there; `None` for what is no recorded event.
    pub fn source(&self) -> Option<(&str, u64)> {
        Some(match self {
            Self::Agent { agent, seq, .. } => (agent.as_str(), *seq),
            Self::Run { run, seq, .. } | Self::Program { run, seq, .. } => (run.as_str(), *seq),
            Self::Roster { seq, .. } => ("roster", *seq),
            Self::Board { seq, .. } => ("board", *seq),
            Self::Ledger(_) | Self::Live { .. } | Self::Held(_) | Self::Draining => return None,
        })
    }

    /// Reads a line of `--output jsonl`; `None` if it is no event, or one of a newer version.
    pub fn read_line(line: &str) -> Option<Self> {
        let Envelope { v, stream, seq, at } = serde_json::from_str(line).ok()?;
        if v != VERSION {
            return None;
        }
        // The reader of the event passes over the members of the envelope.
        if let Ok(agent) = stream.parse::<AgentId>() {
            let event = Box::new(Event::decode(line).ok()?);
            return Some(Self::Agent { agent, seq, at, event });
        }
        if let Ok(run) = stream.parse::<RunId>() {
            // Both kinds of runs have streams of the same name; what happened tells them apart.
            if let Ok(event) = RunEvent::decode(line) {
                return Some(Self::Run { run, seq, at, event: Box::new(event) });
            }
            let event = Box::new(ProgramEvent::decode(line).ok()?);
            return Some(Self::Program { run, seq, at, event });
        }
        match stream.split_once(':')?.0 {
            "roster" => Some(Self::Roster { seq, at, event: Box::new(RosterEvent::decode(line).ok()?) }),
            "board" => Some(Self::Board { seq, at, event: Box::new(BoardEvent::decode(line).ok()?) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_stream_and_what_is_no_event_is_none() {
        let agent = AgentId::from_bits([1; 10]);
        let run = RunId::from_bits([2; 10]);
        let check = |line: String, expected: &str| {
            let kind = match SessionEvent::read_line(&line) {
                Some(SessionEvent::Agent { seq: 7, at: 12, event, .. }) => event.kind(),
                Some(SessionEvent::Run { seq: 7, at: 12, event, .. }) => event.kind(),
                Some(SessionEvent::Program { seq: 7, at: 12, event, .. }) => event.kind(),
                Some(SessionEvent::Roster { seq: 7, at: 12, event }) => event.kind(),
                Some(SessionEvent::Board { seq: 7, at: 12, event }) => event.kind(),
                _ => "none",
            };
            assert_eq!(kind, expected, "{line}");
        };
        let on =
            |stream: &str, rest: &str| format!(r#"{{"v":1,"stream":"{stream}","seq":7,"at":12,{rest}}}"#);
        check(on(agent.as_str(), r#""type":"mode_set","on":true"#), "mode_set");
        check(on(run.as_str(), r#""type":"run_closed""#), "run_closed");
        check(on(run.as_str(), r#""type":"program_stopped","by":"person""#), "program_stopped");
        check(on("roster:s_x", r#""type":"member_awake","name":"bob""#), "member_awake");
        check(on("board:s_x", r#""type":"task_renewed","tasks":[],"until":1"#), "task_renewed");
        check(on(agent.as_str(), r#""type":"from_tomorrow""#), "none");
        check(on("s_aaaaaaaaaaaaaaaa", r#""type":"session_left""#), "none");
        check(on("roster:s_x", r#""type":"mode_set","on":true"#), "none");
        check(on(agent.as_str(), r#""type":"mode_set","on":true"#).replace("\"v\":1", "\"v\":2"), "none");
        check(r#"{"v":1,"type":"run_ended","status":"done"}"#.to_owned(), "none");
        check("[workflow] fanning out".to_owned(), "none");
        check(String::new(), "none");
    }
}
