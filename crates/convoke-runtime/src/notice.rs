//! What a run tells whoever watches: recorded events, and live text that is no event.

use convoke_claude::Live;
use convoke_kernel::{AgentId, BoardEvent, Event, Ledger, ProgramEvent, RosterEvent, RunEvent, RunId, SessionId};
use tokio::sync::mpsc::UnboundedSender;

use crate::control::Control;
use crate::governor::Hold;

/// Something a watcher is told.
#[derive(Debug, Clone)]
pub enum Notice {
    /// An event is in the journal.
    Recorded {
        /// Whose.
        agent: AgentId,
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<Event>,
    },
    /// A piece of a reply that is still being written. An event withdraws it if the reply fails.
    Live {
        /// Whose.
        agent: AgentId,
        /// The piece.
        piece: Piece,
    },
    /// An event of a run is in the journal.
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
    /// An event of a program's run is in the journal.
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
    /// An event of a session's roster or board is in the journal.
    Team {
        /// The stream.
        stream: String,
        /// Its number in the stream.
        seq: u64,
        /// When.
        at: u64,
        /// The event.
        event: Box<TeamEvent>,
    },
    /// The ledger has moved.
    Ledger {
        /// Of which session.
        session: SessionId,
        /// As it stands now.
        ledger: Box<Ledger>,
    },
    /// All who want to ask the model wait for a time, or for another time than before; `None`: no longer.
    Held {
        /// Why, until when, and how many.
        hold: Option<Hold>,
    },
    /// Somebody in another process wants the session paused or stopped.
    Controlled {
        /// What is wanted.
        control: Control,
    },
    /// A command waits, because a command of another process in the same directory is under way.
    Waiting {
        /// Whose command is waited for, if it is known.
        agent: Option<AgentId>,
        /// The process that runs it.
        pid: Option<u32>,
    },
    /// The journal's store does not answer; what is under way waits for it.
    StoreAway {
        /// What happened last: "connection refused".
        reason: String,
        /// For how long it has been away.
        seconds: u64,
    },
    /// The store answers again.
    StoreBack {
        /// How long it was away.
        seconds: u64,
    },
    /// Nothing new starts; this many effects are waited for.
    Draining {
        /// How many.
        under_way: usize,
    },
}

/// An event of a session's roster or board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamEvent {
    /// Of its roster.
    Roster(RosterEvent),
    /// Of its board.
    Board(BoardEvent),
}

impl TeamEvent {
    /// Reads an event of either stream back; `None` if it is of neither, or of a newer version.
    pub fn read(stream: &str, text: &str) -> Option<Self> {
        match stream.split_once(':')?.0 {
            "roster" => RosterEvent::decode(text).ok().map(TeamEvent::Roster),
            "board" => BoardEvent::decode(text).ok().map(TeamEvent::Board),
            _ => None,
        }
    }

    /// The event as one JSON object, `type` first.
    pub fn encode(&self) -> Result<String, serde_json::Error> {
        match self {
            TeamEvent::Roster(event) => event.encode(),
            TeamEvent::Board(event) => event.encode(),
        }
    }
}

/// A piece of a reply that is still being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The model has begun to answer.
    Began,
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A tool call begins.
    Tool {
        /// The tool that is meant.
        name: String,
    },
}

impl Piece {
    /// What a watcher is told of a live piece; rate limits and half-written tool input are not for people.
    pub(crate) fn of(live: Live<'_>) -> Option<Self> {
        match live {
            Live::Began => Some(Self::Began),
            Live::Text(text) => Some(Self::Text(text.to_owned())),
            Live::Thinking(text) => Some(Self::Thinking(text.to_owned())),
            Live::Tool { name } => Some(Self::Tool { name: name.to_owned() }),
            Live::Limits(_) | Live::ToolInput(_) => None,
        }
    }
}

/// The sending end for notices. Unbounded, because a slow terminal must not hold up the journal; what is sent is
/// bounded by what the model writes.
pub type Watcher = UnboundedSender<Notice>;
