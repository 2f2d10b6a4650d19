//! The ledger's decisions: what a person, a run, an agent or a process asks for, answered with events or with
//! why not. Each is to be taken inside the transaction that appends its events, against the newest state.

use super::ask::LedgerTotals;
use super::caps::{Amount, Cap, Caps, Short};
use super::events::{
    AdmissionClosed, AgentsAdmitted, AgentsReturned, AttemptSettled, BudgetGranted, HandBackLowered,
    HoldReleased, LedgerEvent, RoomReserved, SessionHeld, SessionLeft,
};
use super::lost::{Fate, Sending};
use super::seen::ReportedTokens;
use super::{Ledger, LedgerHold};

/// An outcome came for an attempt that holds no room: it was settled before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "attempt {attempt} of request {call} of {agent} holds no room; it is settled already, so drop this \
        outcome"
)]
pub struct Stale {
    /// The agent.
    pub agent: String,
    /// Its request.
    pub call: u32,
    /// The attempt at it.
    pub attempt: u32,
}

impl Ledger {
    /// A person sets the caps. They are new totals; one below what is spent is allowed and leaves no room.
    pub fn grant(&self, caps: Caps, by: &str) -> Vec<LedgerEvent> {
        vec![BudgetGranted { caps, by: by.to_owned() }.into()]
    }

    /// A run wants to start exactly `count` agents: all of them or none.
    pub fn admit(&self, run: &str, count: u32) -> Result<Vec<LedgerEvent>, Short> {
        if let Some(cap) = self.caps.agents {
            let left = cap.saturating_sub(self.agents);
            if count > left {
                let needs = count.into();
                let left = left.into();
                let cap = cap.into();
                return Err(Short { what: Cap::Agents, needs, left, cap });
            }
        }
        let admitted = AgentsAdmitted { run: run.to_owned(), count };
        Ok((count > 0).then(|| admitted.into()).into_iter().collect())
    }

    /// A run will not need `count` of its agents. No more than it admitted and has not yet given back is
    /// taken.
    pub fn give_back(&self, run: &str, count: u32) -> Vec<LedgerEvent> {
        let count = self.admitted(run).min(count);
        let returned = AgentsReturned { run: run.to_owned(), count };
        (count > 0).then(|| returned.into()).into_iter().collect()
    }

    /// A run is over: what it admitted stays used, and nothing can be given back any more.
    pub fn close(&self, run: &str) -> Vec<LedgerEvent> {
        let closed = AdmissionClosed { run: run.to_owned() };
        self.runs.contains_key(run).then(|| closed.into()).into_iter().collect()
    }

    /// An attempt is to be sent: holds its bound, and renews the agent's hand-back. An attempt of the same
    /// agent that was never settled (its process died) is settled at its bound first: it may have been
    /// billed.
    pub fn reserve(
        &self,
        agent: &str,
        call: u32,
        attempt: u32,
        request: Amount,
        hand_back: Amount,
    ) -> Result<Vec<LedgerEvent>, Short> {
        self.send(agent, call, attempt, (request, hand_back), None)
    }

    /// The same, saying what the attempt is sent with: then it can be bounded by its time if its usage never
    /// comes.
    pub fn send(
        &self,
        agent: &str,
        call: u32,
        attempt: u32,
        (request, hand_back): (Amount, Amount),
        sending: Option<Sending>,
    ) -> Result<Vec<LedgerEvent>, Short> {
        let own = self.hold_of(agent).map_or(Amount::ZERO, |hold| hold.hand_back);
        if let Some(short) = LedgerTotals::of(self).short(own, &[request, hand_back]) {
            return Err(short);
        }
        let mut events = self.lost(agent, None);
        events.push(
            RoomReserved { agent: agent.to_owned(), call, attempt, request, hand_back, sending }.into(),
        );
        Ok(events)
    }

    /// An attempt is over. `usage` is what the server says it took ([`Amount::ZERO`] if it was turned away);
    /// without it the attempt is settled at its bound. More than the bound is recorded as it was said.
    pub fn settle(
        &self,
        agent: &str,
        call: u32,
        attempt: u32,
        usage: Option<Amount>,
    ) -> Result<Vec<LedgerEvent>, Stale> {
        self.settle_as_said(agent, call, attempt, usage, None)
    }

    /// The same, with what the server said of the prompt and the reply.
    pub fn settle_as_said(
        &self,
        agent: &str,
        call: u32,
        attempt: u32,
        usage: Option<Amount>,
        said: Option<ReportedTokens>,
    ) -> Result<Vec<LedgerEvent>, Stale> {
        let hold = self.hold_of(agent).filter(|hold| hold.call == call && hold.attempt == attempt);
        let Some(request) = hold.and_then(|hold| hold.request) else {
            if let Some(events) = usage.and_then(|usage| self.came_late(agent, call, attempt, usage)) {
                return Ok(events);
            }
            return Err(Stale { agent: agent.to_owned(), call, attempt });
        };
        let spent = usage.unwrap_or(request);
        let confirmed = usage.is_some();
        let agent = agent.to_owned();
        Ok(vec![AttemptSettled { agent, call, attempt, spent, confirmed, output_tokens: None, said }.into()])
    }

    /// An agent's history is known to be no longer than this hand-back is reckoned for: what is held beyond
    /// it comes free. A hold never rises by this, and one that is itself being spent stays as it is.
    pub fn lower(&self, agent: &str, hand_back: Amount) -> Vec<LedgerEvent> {
        let Some(hold) = self.hold_of(agent).filter(|hold| hold.hand_back != Amount::ZERO) else {
            return Vec::new();
        };
        let tokens = hold.hand_back.tokens.min(hand_back.tokens);
        let lower = Amount { tokens, nano: hold.hand_back.nano.min(hand_back.nano) };
        let lowered = HandBackLowered { agent: agent.to_owned(), hand_back: lower };
        (lower != hold.hand_back).then(|| lowered.into()).into_iter().collect()
    }

    /// The agent is over, or rests until it gets new input: it holds nothing any more.
    pub fn release(&self, agent: &str) -> Vec<LedgerEvent> {
        let mut events = self.lost(agent, None);
        if self.hold_of(agent).is_some() {
            events.push(HoldReleased { agent: agent.to_owned() }.into());
        }
        events
    }

    /// A process takes the session up: its minutes count from here. If the last one crashed, its time counts
    /// up to the last moment the ledger saw.
    pub fn hold(&self, process: &str) -> Vec<LedgerEvent> {
        self.take_up(process, |_, _| Fate::Unknown)
    }

    /// The same; `fate` says what is known of the processes that have requests in flight.
    pub fn take_up(&self, process: &str, fate: impl Fn(&str, &LedgerHold) -> Fate) -> Vec<LedgerEvent> {
        // First, because every other event is a sign of life: behind a settlement the time in which no
        // process had the session would count.
        let mut events = vec![SessionHeld { process: process.to_owned() }.into()];
        // Requests the last holder had in flight count as lost. They are settled here
        // and not when their agents are driven again, because the other agents would
        // wait for money that no process is going to free.
        events.extend(self.settle_lost(fate));
        events
    }

    /// The process puts the session down; one that holds it no longer changes nothing.
    pub fn leave(&self, process: &str) -> Vec<LedgerEvent> {
        let holds = self.clock.since.is_some() && self.clock.holder.as_deref() == Some(process);
        holds.then(|| SessionLeft {}.into()).into_iter().collect()
    }
}
