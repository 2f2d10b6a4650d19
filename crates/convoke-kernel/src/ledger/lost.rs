//! Requests whose usage never came: the process that sent them died, or the connection broke. No answer will ever say what
//! they cost, so they are booked at a bound. The bound is not the room that was granted: a reply cannot be longer than the
//! time it had. And the same request sent again is told how long its prompt was.

use serde::{Deserialize, Serialize};

use super::caps::Amount;
use super::events::{AttemptCorrected, AttemptSettled, LedgerEvent, UnconfirmedForgiven};
use super::rates::Rates;
use super::{Hold, Ledger};

/// How long a server may go on writing after its client has gone: the connection of a process that died is closed at once by
/// its machine, and a server that writes into it finds out.
pub(super) const NOTICED_MS: u64 = 2_000;

/// What a request was sent with: all that bounds its price if its usage never comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// The process that sends it.
    pub process: String,
    /// The most tokens its prompt can have, the overhead of the rates not counted.
    pub input_tokens: u64,
    /// The room for the reply.
    pub max_tokens: u32,
    /// What its model costs, and how fast it writes.
    pub rates: Rates,
    /// What kind of agent sends it: replies of a kind are of about the same length.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// A name for what it begins with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

/// A request in flight: what it was sent with, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What it was sent with.
    #[serde(flatten)]
    pub sending: Sending,
    /// When.
    pub at: u64,
}

/// What is known of a request in flight of which this process has heard nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its sender lives and will say what it took.
    Lives,
    /// Its sender has provably ended, not later than this.
    Ended {
        /// The time.
        by: u64,
    },
    /// Its sender may be stopped, or cut off from the journal, with the connection open.
    Unknown,
}

/// An attempt that was settled at a bound, as long as something more may be learned about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Doubt {
    pub(super) agent: String,
    pub(super) call: u32,
    pub(super) attempt: u32,
    /// What it is booked at.
    pub(super) spent: Amount,
    /// The most tokens its reply can have had.
    pub(super) output_tokens: u32,
    pub(super) rates: Rates,
}

impl Sent {
    /// The most tokens that the reply can have had by `end`.
    fn output_by(&self, end: u64) -> u32 {
        let Sending { max_tokens, rates, .. } = &self.sending;
        let Some(fastest) = rates.output_per_second else { return *max_tokens };
        let ms = u128::from(end.saturating_sub(self.at).saturating_add(NOTICED_MS));
        let written = (ms * u128::from(fastest)).div_ceil(1_000);
        u32::try_from(written).unwrap_or(u32::MAX).min(*max_tokens)
    }

    /// The most that the request can have cost with so long a reply.
    fn bound(&self, output_tokens: u32) -> Amount {
        let Sending { input_tokens, rates, .. } = &self.sending;
        let prompt = input_tokens.saturating_add(rates.overhead_tokens);
        Amount { tokens: prompt.saturating_add(output_tokens.into()), nano: rates.bound(*input_tokens, output_tokens) }
    }
}

impl Ledger {
    /// The agent's attempt in flight broke off and is over by `end`: it is settled at what it can have cost by then. Without an
    /// end, at its bound.
    pub(super) fn lost(&self, agent: &str, end: Option<u64>) -> Vec<LedgerEvent> {
        let Some(Hold { call, attempt, request: Some(request), sent, .. }) = self.hold_of(agent) else {
            return Vec::new();
        };
        let output_tokens = sent.as_ref().zip(end).map(|(sent, end)| sent.output_by(end));
        let bound = sent.as_ref().zip(output_tokens).map(|(sent, output_tokens)| sent.bound(output_tokens));
        let spent = bound.map_or(*request, |bound| bound.least(*request));
        let (agent, call, attempt) = (agent.to_owned(), *call, *attempt);
        vec![AttemptSettled { agent, call, attempt, spent, confirmed: false, output_tokens, said: None }.into()]
    }

    /// This process drives the agent and has nothing of it in flight, by `at`. What is still held for an attempt of the agent's
    /// broke off: before `at` if this very process sent it. One that another process sent may go on there, and is settled at
    /// its bound.
    pub fn cut_off(&self, agent: &str, process: &str, at: u64) -> Vec<LedgerEvent> {
        let sent = self.hold_of(agent).and_then(|hold| hold.sent.as_ref());
        self.lost(agent, sent.filter(|sent| sent.sending.process == process).map(|_| at))
    }

    /// Settles every attempt whose sender will not do it, as far as is known of it.
    pub fn settle_lost(&self, fate: impl Fn(&str, &Hold) -> Fate) -> Vec<LedgerEvent> {
        let settled = |(agent, hold): (&str, &Hold)| match fate(agent, hold) {
            Fate::Lives => Vec::new(),
            Fate::Ended { by } => self.lost(agent, Some(by)),
            Fate::Unknown => self.lost(agent, None),
        };
        self.holds().flat_map(settled).collect()
    }

    /// A request was answered whose prompt has so many tokens, all counted. An earlier attempt at it had the same prompt, or one
    /// that this one goes on from: what it is booked at comes down to that.
    pub fn confirm_prompt(&self, agent: &str, call: u32, prompt_tokens: u64) -> Vec<LedgerEvent> {
        let same = self.doubts.iter().filter(|doubt| doubt.agent == agent && doubt.call == call);
        let corrected = |doubt: &Doubt| {
            let bound = Amount {
                tokens: prompt_tokens.saturating_add(doubt.output_tokens.into()),
                nano: doubt.rates.whole_bound(prompt_tokens, doubt.output_tokens),
            };
            doubt.corrected(bound.least(doubt.spent), false)
        };
        same.map(corrected).collect()
    }

    /// The usage of an attempt came after it had been settled at its bound.
    pub(super) fn came_late(&self, agent: &str, call: u32, attempt: u32, usage: Amount) -> Option<Vec<LedgerEvent>> {
        let doubt = self.doubt(agent, call, attempt)?;
        Some(vec![doubt.corrected(usage, true)])
    }

    /// A person writes off what no usage confirmed. From then on the bill may be above the ledger by as much.
    pub fn forgive(&self, by: &str) -> Vec<LedgerEvent> {
        let amount = self.unconfirmed();
        let forgiven = UnconfirmedForgiven { amount, by: by.to_owned() };
        (amount != Amount::ZERO).then(|| forgiven.into()).into_iter().collect()
    }

    /// What persons wrote off.
    pub fn forgiven(&self) -> Amount {
        self.forgiven
    }

    /// What was spent and confirmed by the server.
    pub fn confirmed(&self) -> Amount {
        self.spent.minus(self.unconfirmed)
    }

    fn doubt(&self, agent: &str, call: u32, attempt: u32) -> Option<&Doubt> {
        self.doubts.iter().find(|doubt| doubt.is_of(agent, call, attempt))
    }

    /// Remembers what an attempt was settled at, if something more may be learned about it.
    pub(super) fn doubts_about(&mut self, e: &AttemptSettled, sent: Option<Sent>) {
        let Some(Sent { sending, .. }) = sent else { return };
        self.doubts.push(Doubt {
            agent: e.agent.clone(),
            call: e.call,
            attempt: e.attempt,
            spent: e.spent,
            output_tokens: e.output_tokens.unwrap_or(sending.max_tokens),
            rates: sending.rates,
        });
    }

    pub(super) fn corrected(&mut self, e: &AttemptCorrected) {
        let Some(at) = self.doubts.iter().position(|doubt| doubt.is_of(&e.agent, e.call, e.attempt)) else { return };
        let doubt = self.doubts.remove(at);
        self.spent = self.spent.minus(doubt.spent).plus(e.spent);
        self.unconfirmed = self.unconfirmed.minus(doubt.spent);
        if !e.confirmed {
            self.unconfirmed = self.unconfirmed.plus(e.spent);
        }
    }

    pub(super) fn written_off(&mut self, e: &UnconfirmedForgiven) {
        self.spent = self.spent.minus(e.amount);
        self.unconfirmed = self.unconfirmed.minus(e.amount);
        self.forgiven = self.forgiven.plus(e.amount);
        // What is written off is not corrected any more: it would be taken off twice.
        self.doubts.clear();
    }
}

impl Doubt {
    fn is_of(&self, agent: &str, call: u32, attempt: u32) -> bool {
        self.agent == agent && (self.call, self.attempt) == (call, attempt)
    }

    fn corrected(&self, spent: Amount, confirmed: bool) -> LedgerEvent {
        let (agent, call, attempt) = (self.agent.clone(), self.call, self.attempt);
        AttemptCorrected { agent, call, attempt, spent, confirmed }.into()
    }
}
