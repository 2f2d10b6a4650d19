//! What has happened to a session's ledger: the text of its shared stream in the journal. Events are for
//! ever: variants are never removed, new members are optional.

use super::caps::{Amount, Caps};
use super::lost::Sending;
use super::seen::ReportedTokens;
use crate::event::events;

events! {
    /// Something that has happened to a ledger.
    enum LedgerEvent;

    /// A person set the caps: new totals, not additions.
    BudgetGranted = "envelope_granted" {
        /// The caps from now on.
        caps: Caps,
        /// Whose act it was.
        by: String,
    }
    /// A run may start this many more agents.
    AgentsAdmitted = "agents_admitted" {
        /// The run.
        run: String,
        /// How many.
        count: u32,
    }
    /// A run will not start this many of its admitted agents.
    AgentsReturned = "agents_returned" {
        /// The run.
        run: String,
        /// How many.
        count: u32,
    }
    /// A run is over; what it admitted counts as used.
    AdmissionClosed = "admission_closed" {
        /// The run.
        run: String,
    }
    /// An attempt may be sent: its bound and the agent's hand-back are held.
    RoomReserved = "room_reserved" {
        /// The agent.
        agent: String,
        /// Its request.
        call: u32,
        /// The attempt at it.
        attempt: u32,
        /// The most that the attempt takes.
        request: Amount,
        /// What is held for the agent's hand-back from now on; nothing if this attempt is its hand-back.
        hand_back: Amount,
        /// What it is sent with, so that it can be bounded if its usage never comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sending: Option<Sending>,
    }
    /// The server said what the prompt of an attempt in flight takes, before it wrote the reply.
    PromptCounted = "prompt_counted" {
        /// The agent.
        agent: String,
        /// Its request.
        call: u32,
        /// The attempt at it.
        attempt: u32,
        /// What the prompt takes.
        prompt: Amount,
    }
    /// An attempt is over, and this is what it took.
    AttemptSettled = "attempt_settled" {
        /// The agent.
        agent: String,
        /// Its request.
        call: u32,
        /// The attempt at it.
        attempt: u32,
        /// What it took.
        spent: Amount,
        /// Whether the server said so. If not, it is the bound: the usage never came.
        confirmed: bool,
        /// The most tokens its reply can have had, where its time bounds that and not its room.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u32>,
        /// What the server said of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        said: Option<ReportedTokens>,
    }
    /// More has become known of an attempt that was settled at a bound.
    AttemptCorrected = "attempt_corrected" {
        /// The agent.
        agent: String,
        /// Its request.
        call: u32,
        /// The attempt at it.
        attempt: u32,
        /// What it took, or the most that it can have taken.
        spent: Amount,
        /// Whether the server said so.
        confirmed: bool,
        /// Whether still more may become known of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        open: bool,
    }
    /// A person wrote off what no usage had confirmed.
    UnconfirmedForgiven = "unconfirmed_forgiven" {
        /// How much.
        amount: Amount,
        /// Whose act it was.
        by: String,
    }
    /// A reply turned out shorter than it might have been, so its agent needs less for a hand-back.
    HandBackLowered = "hand_back_lowered" {
        /// The agent.
        agent: String,
        /// What is held for its hand-back from now on.
        hand_back: Amount,
    }
    /// The agent is over and holds nothing any more.
    HoldReleased = "hold_released" {
        /// The agent.
        agent: String,
    }
    /// A process took the session up; from now on its minutes count.
    SessionHeld = "session_held" {
        /// The process.
        process: String,
    }
    /// The process put the session down; its minutes stop.
    SessionLeft = "session_left" {}
}
