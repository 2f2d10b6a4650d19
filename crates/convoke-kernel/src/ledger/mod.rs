//! The budget and the ledger: what was granted for a session, what is held and what is spent. A pure state
//! machine: decisions look at the state and return events, [`Ledger::apply`] folds them, and the folded
//! ledger is a small row that can be rebuilt. It knows no clock (`at` comes with the event), no floats and no
//! store.
//!
//! The rule: spent + held ≤ cap, for tokens and for nano-dollars, at every moment. Every attempt is held at
//! its bound before it is sent and every running agent holds one hand-back beside it. Only two things can
//! stand above a cap: a cap lowered below what is already spent or held, and a server that bills more than
//! the bound of its own prices.

mod ask;
mod caps;
mod decide;
mod events;
mod lost;
mod queue;
mod rates;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use ask::HAND_BACK_NOTE_TOKENS;
pub use ask::{HAND_BACK_TOKENS, LEAST_HAND_BACK_TOKENS, LedgerRequest, Room, hand_back_hold};
pub use caps::{Amount, Cap, Caps, Short};
pub use decide::Stale;
pub use events::{
    AdmissionClosed, AgentsAdmitted, AgentsReturned, AttemptCorrected, AttemptSettled, BudgetGranted,
    HandBackLowered, HoldReleased, LedgerEvent, PromptCounted, RoomReserved, SessionHeld, SessionLeft,
    UnconfirmedForgiven,
};
use lost::UnconfirmedAttempt;
pub use lost::{Fate, Sending, Sent};
pub use queue::{LedgerAnswer, answer};
pub use rates::{RateTier, Rates};
pub use seen::ReportedTokens;
use seen::Seen;

/// How long after the minutes have ended a wait may end and still be waited for.
const HAND_BACK_WAIT: u64 = 60_000;

/// What one running agent holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerHold {
    /// The request it was last given room for.
    pub call: u32,
    /// The attempt at it.
    pub attempt: u32,
    /// The bound of the attempt in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Amount>,
    /// What is kept for its hand-back.
    pub hand_back: Amount,
    /// What the attempt in flight was sent with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
}

/// The ledger of a session: everything that is held and spent against its budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    count: u64,
    caps: Caps,
    agents: u32,
    /// What open runs admitted and did not give back.
    runs: BTreeMap<String, u32>,
    spent: Amount,
    unconfirmed: Amount,
    #[serde(skip_serializing_if = "is_nothing")]
    forgiven: Amount,
    holds: BTreeMap<String, LedgerHold>,
    /// Attempts that are settled at a bound of which more may become known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<UnconfirmedAttempt>,
    #[serde(skip_serializing_if = "Seen::is_empty")]
    seen: Seen,
    clock: SessionClock,
}

/// How long processes have held the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SessionClock {
    used_ms: u64,
    /// When the present holder took it up, and which process that is. A crash leaves both set.
    since: Option<u64>,
    #[serde(default)]
    holder: Option<String>,
    /// The last sign of life of a process that has, or had, the session.
    seen: u64,
}

impl Ledger {
    /// How many events it has taken in: of two states the one with more is the newer.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The caps granted.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Agents admitted and not given back.
    pub fn agents(&self) -> u32 {
        self.agents
    }

    /// How many agents this open run was admitted and has not given back.
    pub fn admitted(&self, run: &str) -> u32 {
        self.runs.get(run).copied().unwrap_or(0)
    }

    /// What was spent, the unconfirmed part included.
    pub fn spent(&self) -> Amount {
        self.spent
    }

    /// The part of what was spent whose usage never came; it stands at its bound.
    pub fn unconfirmed(&self) -> Amount {
        self.unconfirmed
    }

    /// The room that a reply of this kind of agent takes, if enough of them were seen.
    pub fn reply_room(&self, kind: &str) -> Option<u32> {
        self.seen.reply_room(kind)
    }

    /// The most tokens of what requests of this name begin with, if one of them was answered.
    pub fn prefix_tokens(&self, prefix: &str) -> Option<u64> {
        self.seen.prefix_tokens(prefix)
    }

    /// What running agents hold: attempts in flight and hand-backs.
    pub fn held(&self) -> Amount {
        self.holds
            .values()
            .fold(Amount::ZERO, |sum, hold| sum.plus(hold.hand_back).plus(hold.request.unwrap_or_default()))
    }

    /// What this agent holds.
    pub fn hold_of(&self, agent: &str) -> Option<&LedgerHold> {
        self.holds.get(agent)
    }

    /// The agents that hold something.
    pub fn holds(&self) -> impl Iterator<Item = (&str, &LedgerHold)> {
        self.holds.iter().map(|(agent, hold)| (agent.as_str(), hold))
    }

    /// Milliseconds for which the session has been held, up to `at`.
    pub fn ms_used(&self, at: u64) -> u64 {
        let running = self.clock.since.map_or(0, |since| at.max(self.clock.seen).saturating_sub(since));
        self.clock.used_ms.saturating_add(running)
    }

    /// Milliseconds left under the minutes cap; `None` without one.
    pub fn ms_left(&self, at: u64) -> Option<u64> {
        self.caps.ms.map(|cap| cap.saturating_sub(self.ms_used(at)))
    }

    /// Whether a wait until then ends so long after the minutes do that it is no use to begin it; the
    /// milliseconds it would take and those that are left. A wait that ends soon after them leaves an agent
    /// its hand-back, which may go past them.
    pub fn outlasts(&self, until: u64, at: u64) -> Option<(u64, u64)> {
        let wait = until.saturating_sub(at);
        let left = self.ms_left(at)?;
        (wait > left.saturating_add(HAND_BACK_WAIT)).then_some((wait, left))
    }

    /// Takes in what has happened. Total: an event that does not match the state changes only what it names.
    pub fn apply(&mut self, event: &LedgerEvent, at: u64) {
        match event {
            LedgerEvent::BudgetGranted(e) => self.caps = e.caps,
            LedgerEvent::AgentsAdmitted(e) => {
                self.agents = self.agents.saturating_add(e.count);
                let admitted = self.runs.entry(e.run.clone()).or_default();
                *admitted = admitted.saturating_add(e.count);
            }
            LedgerEvent::AgentsReturned(e) => {
                self.agents = self.agents.saturating_sub(e.count);
                if let Some(admitted) = self.runs.get_mut(&e.run) {
                    *admitted = admitted.saturating_sub(e.count);
                }
                self.runs.retain(|_, admitted| *admitted > 0);
            }
            LedgerEvent::AdmissionClosed(e) => drop(self.runs.remove(&e.run)),
            LedgerEvent::RoomReserved(e) => {
                let sent = e.sending.clone().map(|sending| Sent { sending, at, counted: None });
                let request = Some(e.request);
                let hand_back = e.hand_back;
                let hold = LedgerHold { call: e.call, attempt: e.attempt, request, hand_back, sent };
                self.holds.insert(e.agent.clone(), hold);
            }
            LedgerEvent::PromptCounted(e) => self.prompt_counted(e),
            LedgerEvent::AttemptSettled(e) => self.settled(e),
            LedgerEvent::HandBackLowered(e) => {
                if let Some(hold) = self.holds.get_mut(&e.agent) {
                    hold.hand_back = e.hand_back;
                }
            }
            LedgerEvent::HoldReleased(e) => {
                self.holds.remove(&e.agent);
                // The agent sends nothing more that would say how long its
                // prompt was. Requests of other agents may.
                self.doubts.retain(|doubt| doubt.agent != e.agent || doubt.began.is_some());
            }
            LedgerEvent::AttemptCorrected(e) => self.corrected(e),
            LedgerEvent::UnconfirmedForgiven(e) => self.written_off(e),
            LedgerEvent::SessionHeld(e) => {
                self.clock.holder = Some(e.process.clone());
                // The last holder may have died at any time after the ledger last heard of it; what is
                // certain counts.
                self.clock.used_ms = self.ms_used(self.clock.seen);
                self.clock.since = Some(at);
            }
            LedgerEvent::SessionLeft(_) => {
                self.clock.used_ms = self.ms_used(at);
                self.clock.since = None;
                self.clock.holder = None;
            }
        }
        // A grant is a person's, and may come while no process has the session.
        if !matches!(event, LedgerEvent::BudgetGranted(_) | LedgerEvent::UnconfirmedForgiven(_)) {
            self.clock.seen = self.clock.seen.max(at);
        }
        self.count = self.count.saturating_add(1);
    }

    fn settled(&mut self, e: &AttemptSettled) {
        self.spent = self.spent.plus(e.spent);
        if !e.confirmed {
            self.unconfirmed = self.unconfirmed.plus(e.spent);
        }
        let Some(hold) = self.holds.get_mut(&e.agent) else { return };
        let request = hold.request.take().unwrap_or_default();
        let sent = hold.sent.take();
        if hold.hand_back == Amount::ZERO {
            // The attempt was the hand-back itself. What it did not use stays the agent's until it ends, so
            // that a hand-back that was turned away can be sent again.
            hold.hand_back = request.minus(e.spent);
        }
        match (e.confirmed, &sent, e.said) {
            (false, ..) => self.doubts_about(e, sent),
            (true, Some(sent), Some(said)) => {
                self.seen.learn(&sent.sending.kind, &sent.sending.prefix, said);
                let output_tokens = u32::try_from(said.output_tokens).unwrap_or(u32::MAX);
                sent.counted_price(output_tokens)
                    .iter()
                    .for_each(|before| self.seen.compare(e.spent, *before));
            }
            _ => {}
        }
    }
}

fn is_nothing(amount: &Amount) -> bool {
    *amount == Amount::ZERO
}
