//! What a run tells its watcher: recorded events, and live text that is no event.

use convoke_claude::Live;
use convoke_kernel::{
    AgentId, BoardEvent, Event, Ledger, Piece, ProgramEvent, RosterEvent, RunEvent, RunId, SessionId,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::control::Control;
use crate::governor::GovernorHold;

/// Something a watcher is told.
#[derive(Debug, Clone)]
pub enum Notice {
    /// An event is in the journal.
    Recorded {
        /// The agent that it is an event of.
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
        /// The agent that the reply is for.
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
    /// All requests to the model wait for a time, or for another time than before; `None`: no longer.
    Held {
        /// Why, until when, and how many.
        hold: Option<GovernorHold>,
    },
    /// Another process wants the session paused or stopped.
    Controlled {
        /// What is wanted.
        control: Control,
    },
    /// A command waits, because a command of another process in the same directory is under way.
    Waiting {
        /// The agent whose command is waited for, if it is known.
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

/// What a watcher is told of a live piece; rate limits and half-written tool input are not for people.
pub(crate) fn piece(live: Live<'_>) -> Option<Piece> {
    match live {
        Live::Began => Some(Piece::Began),
        Live::Text(text) => Some(Piece::Text(text.to_owned())),
        Live::Thinking(text) => Some(Piece::Thinking(text.to_owned())),
        Live::Tool { name } => Some(Piece::Tool { name: name.to_owned() }),
        Live::Limits(_) | Live::Counted(_) | Live::ToolInput(_) => None,
    }
}

/// The sending end for notices. Unbounded, because a slow terminal must not hold up the journal; what is sent
/// is bounded by what the model writes.
pub type Watcher = UnboundedSender<Notice>;
