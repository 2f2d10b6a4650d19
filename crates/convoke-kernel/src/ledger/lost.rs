//! Requests whose usage never came: the process that sent them died, or the connection broke. No answer will
//! ever say what they cost, so they are booked at a bound. The bound is not the room that was granted: a
//! reply cannot be longer than the time it had. When the same request is sent again, the answer tells how
//! long its prompt was. Where it is never sent again, because the money is used up, a request of another
//! agent that begins alike tells how long that beginning is. Best is what the server says of the prompt
//! before it writes the reply: that is its price, cache reads included, once such a price held in the end.

use serde::{Deserialize, Serialize};

use super::caps::Amount;
use super::events::{AttemptCorrected, AttemptSettled, LedgerEvent, PromptCounted, UnconfirmedForgiven};
use super::rates::Rates;
use super::{Ledger, LedgerHold};

/// How long a server may go on writing after its client has gone: the connection of a process that died is
/// closed at once by its machine, and a server that writes into it finds out.
pub(super) const NOTICED_MS: u64 = 2_000;

/// No prompt has more bytes than this for each of its tokens.
const BYTES_PER_TOKEN: u64 = 16;

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
    /// The most tokens behind that beginning, where no usage has told yet how long the prompt is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
}

/// A request in flight: what it was sent with, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What it was sent with.
    #[serde(flatten)]
    pub sending: Sending,
    /// When.
    pub at: u64,
    /// What the server said that its prompt takes, before it wrote the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Amount>,
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
pub(super) struct UnconfirmedAttempt {
    pub(super) agent: String,
    pub(super) call: u32,
    pub(super) attempt: u32,
    /// What it is booked at.
    pub(super) spent: Amount,
    /// The most tokens its reply can have had.
    pub(super) output_tokens: u32,
    pub(super) rates: Rates,
    /// What it began with, and the most tokens behind that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) began: Option<(String, u64)>,
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

    /// What the request costs with so long a reply by what the server said of its prompt, if it did.
    pub(super) fn counted_price(&self, output_tokens: u32) -> Option<Amount> {
        let prompt = self.counted?;
        let rates = &self.sending.rates;
        Some(prompt.plus(Amount {
            tokens: output_tokens.into(),
            nano: rates.reply_bound(prompt.tokens, output_tokens),
        }))
    }

    /// The most that it can have cost by that. A price that never held in the end is not believed: then every
    /// token that was counted is taken at the dearest rate.
    fn counted_bound(&self, output_tokens: u32, proved: bool) -> Option<Amount> {
        let said = self.counted_price(output_tokens)?;
        let tokens = self.counted?.tokens;
        let dearest = whole_bound(&self.sending.rates, tokens, output_tokens);
        Some(if proved { said } else { Amount { nano: said.nano.max(dearest.nano), ..said } })
    }

    /// The most that the request can have cost with so long a reply.
    fn bound(&self, output_tokens: u32) -> Amount {
        let Sending { input_tokens, rates, .. } = &self.sending;
        whole_bound(rates, input_tokens.saturating_add(rates.overhead_tokens), output_tokens)
    }
}

impl Ledger {
    /// The agent's attempt in flight broke off and is over by `end`: it is settled at what it can have cost
    /// by then. Without an end, at its bound.
    pub(super) fn lost(&self, agent: &str, end: Option<u64>) -> Vec<LedgerEvent> {
        let Some(LedgerHold { call, attempt, request: Some(request), sent, .. }) = self.hold_of(agent) else {
            return Vec::new();
        };
        let output_tokens = sent.as_ref().zip(end).map(|(sent, end)| sent.output_by(end));
        let bound = sent.as_ref().zip(output_tokens).map(|(sent, output_tokens)| sent.bound(output_tokens));
        let spent = bound.map_or(*request, |bound| bound.least(*request));
        let known = sent.as_ref().and_then(|sent| {
            let output_tokens = output_tokens.unwrap_or(sent.sending.max_tokens);
            let alike = || self.alike(&sent.sending.began()?, &sent.sending.rates, output_tokens);
            let counted = sent.counted_bound(output_tokens, self.seen.is_proved());
            counted.filter(|_| !self.seen.miscounts()).or_else(alike)
        });
        let spent = known.map_or(spent, |known| known.least(spent));
        let agent = agent.to_owned();
        let call = *call;
        let attempt = *attempt;
        vec![
            AttemptSettled { agent, call, attempt, spent, confirmed: false, output_tokens, said: None }
                .into(),
        ]
    }

    /// This process drives the agent and has nothing of it in flight, by `at`. What is still held for an
    /// attempt of the agent's broke off: before `at` if this very process sent it. One that another process
    /// sent may go on there, and is settled at its bound.
    pub fn cut_off(&self, agent: &str, process: &str, at: u64) -> Vec<LedgerEvent> {
        let sent = self.hold_of(agent).and_then(|hold| hold.sent.as_ref());
        self.lost(agent, sent.filter(|sent| sent.sending.process == process).map(|_| at))
    }

    /// Settles every attempt whose sender will not do it, as far as is known of it.
    pub fn settle_lost(&self, fate: impl Fn(&str, &LedgerHold) -> Fate) -> Vec<LedgerEvent> {
        let settled = |(agent, hold): (&str, &LedgerHold)| match fate(agent, hold) {
            Fate::Lives => Vec::new(),
            Fate::Ended { by } => self.lost(agent, Some(by)),
            Fate::Unknown => self.lost(agent, None),
        };
        self.holds().flat_map(settled).collect()
    }

    /// A request was answered whose prompt has so many tokens, all counted. An earlier attempt at it had the
    /// same prompt, or one that this one goes on from: what it is booked at comes down to that. What other
    /// agents lost comes down as far as it began like a request that was answered by now.
    pub fn confirm_prompt(&self, agent: &str, call: u32, prompt_tokens: u64) -> Vec<LedgerEvent> {
        let corrected = |doubt: &UnconfirmedAttempt| {
            if doubt.agent == agent && doubt.call == call {
                let bound = whole_bound(&doubt.rates, prompt_tokens, doubt.output_tokens);
                return Some(doubt.corrected(bound.least(doubt.spent), false, false));
            }
            let alike =
                self.alike(doubt.began.as_ref()?, &doubt.rates, doubt.output_tokens)?.least(doubt.spent);
            (alike != doubt.spent).then(|| doubt.corrected(alike, false, true))
        };
        self.doubts.iter().filter_map(corrected).collect()
    }

    /// The server said what the prompt of an attempt in flight takes. A number that is far too small for what
    /// was sent is a placeholder, as some servers send it before they have counted.
    pub fn counted(&self, agent: &str, (call, attempt): (u32, u32), prompt: Amount) -> Vec<LedgerEvent> {
        let Some(sent) = self.in_flight(agent, call, attempt).filter(|sent| sent.counted.is_none()) else {
            return Vec::new();
        };
        if prompt.tokens.saturating_mul(BYTES_PER_TOKEN) < sent.sending.input_tokens {
            return Vec::new();
        }
        vec![PromptCounted { agent: agent.to_owned(), call, attempt, prompt }.into()]
    }

    /// Whether nothing but its bytes bounds the prompt that this agent has in flight.
    pub fn is_unmeasured(&self, agent: &str) -> bool {
        let sent =
            self.hold_of(agent).and_then(|hold| hold.sent.as_ref()).filter(|sent| sent.counted.is_none());
        let began = sent.and_then(|sent| sent.sending.began());
        began.is_some_and(|(prefix, _)| self.prefix_tokens(&prefix).is_none())
    }

    fn in_flight(&self, agent: &str, call: u32, attempt: u32) -> Option<&Sent> {
        let hold = self.hold_of(agent).filter(|hold| (hold.call, hold.attempt) == (call, attempt))?;
        hold.sent.as_ref().filter(|_| hold.request.is_some())
    }

    pub(super) fn prompt_counted(&mut self, e: &PromptCounted) {
        if self.in_flight(&e.agent, e.call, e.attempt).is_some()
            && let Some(sent) = self.holds.get_mut(&e.agent).and_then(|hold| hold.sent.as_mut())
        {
            sent.counted = Some(e.prompt);
        }
    }

    /// The most that a request can have cost that began like one which was answered.
    fn alike(&self, (prefix, behind): &(String, u64), rates: &Rates, output_tokens: u32) -> Option<Amount> {
        let rates = rates.measured();
        let prompt =
            self.prefix_tokens(prefix)?.saturating_add(*behind).saturating_add(rates.overhead_tokens);
        Some(whole_bound(&rates, prompt, output_tokens))
    }

    /// The usage of an attempt came after it had been settled at its bound.
    pub(super) fn came_late(
        &self,
        agent: &str,
        call: u32,
        attempt: u32,
        usage: Amount,
    ) -> Option<Vec<LedgerEvent>> {
        let doubt = self.doubt(agent, call, attempt)?;
        Some(vec![doubt.corrected(usage, true, false)])
    }

    /// A person writes off what no usage confirmed. From then on the bill may be above the ledger by as much.
    pub fn forgive(&self, by: &str) -> Vec<LedgerEvent> {
        let amount = self.unconfirmed();
        let forgiven = UnconfirmedForgiven { amount, by: by.to_owned() };
        (amount != Amount::ZERO).then(|| forgiven.into()).into_iter().collect()
    }

    /// What people wrote off.
    pub fn forgiven(&self) -> Amount {
        self.forgiven
    }

    /// What was spent and confirmed by the server.
    pub fn confirmed(&self) -> Amount {
        self.spent.minus(self.unconfirmed)
    }

    fn doubt(&self, agent: &str, call: u32, attempt: u32) -> Option<&UnconfirmedAttempt> {
        self.doubts.iter().find(|doubt| doubt.is_of(agent, call, attempt))
    }

    /// Remembers what an attempt was settled at, if something more may be learned about it.
    pub(super) fn doubts_about(&mut self, e: &AttemptSettled, sent: Option<Sent>) {
        let Some(Sent { sending, .. }) = sent else { return };
        let began = sending.began();
        self.doubts.push(UnconfirmedAttempt {
            agent: e.agent.clone(),
            call: e.call,
            attempt: e.attempt,
            spent: e.spent,
            output_tokens: e.output_tokens.unwrap_or(sending.max_tokens),
            rates: sending.rates,
            began,
        });
    }

    pub(super) fn corrected(&mut self, e: &AttemptCorrected) {
        let Some(at) = self.doubts.iter().position(|doubt| doubt.is_of(&e.agent, e.call, e.attempt)) else {
            return;
        };
        let doubt = if e.open { self.doubts[at].clone() } else { self.doubts.remove(at) };
        if e.open {
            self.doubts[at].spent = e.spent;
        }
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

impl UnconfirmedAttempt {
    fn is_of(&self, agent: &str, call: u32, attempt: u32) -> bool {
        self.agent == agent && (self.call, self.attempt) == (call, attempt)
    }

    fn corrected(&self, spent: Amount, confirmed: bool, open: bool) -> LedgerEvent {
        let agent = self.agent.clone();
        let call = self.call;
        let attempt = self.attempt;
        AttemptCorrected { agent, call, attempt, spent, confirmed, open }.into()
    }
}

impl Sending {
    /// What it begins with and the most tokens behind that, where nothing better bounds its prompt.
    fn began(&self) -> Option<(String, u64)> {
        Some((self.prefix.clone(), self.behind?))
    }
}

/// The most that a request costs whose prompt has so many tokens, all counted.
fn whole_bound(rates: &Rates, prompt: u64, output_tokens: u32) -> Amount {
    Amount {
        tokens: prompt.saturating_add(output_tokens.into()),
        nano: rates.whole_bound(prompt, output_tokens),
    }
}
