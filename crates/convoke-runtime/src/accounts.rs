//! What an agent's events mean for the ledger. Booked in the append that records them, so that neither is ever without
//! the other.

use convoke_kernel::{Agent, AgentId, Amount, Effect, Event, Role, Room, hand_back_hold};

use crate::purse::Entry;
use crate::room::results_bytes;

/// The entries that these events call for, decided by this agent as it stands; `room` is what the request among them was
/// granted.
pub(crate) fn entries(id: &AgentId, stands: &Agent, events: &[Event], room: Option<Room>) -> Vec<Entry> {
    let agent = id.as_str();
    let attempt = match stands.pending().as_slice() {
        [Effect::CallModel { attempt, .. }] => *attempt,
        _ => 0,
    };
    let settle = |call, attempt, usage| Entry::Settle { agent: agent.to_owned(), call, attempt, usage };
    let entry = |event: &Event| match event {
        // Workers and verifiers are admitted with their run; a one-shot sub-agent is a run of its own.
        Event::AgentStarted(e) if e.spec.role == Role::Task => Some(Entry::Admit { run: agent.to_owned(), count: 1 }),
        Event::ModelCalled(e) => {
            let (agent, call, attempt) = (agent.to_owned(), e.call, e.attempt);
            room.map(|room| Entry::Reserve { agent, call, attempt, room })
        }
        Event::ModelReplied(e) => {
            let usage = &e.reply.usage;
            let tokens = usage.prompt_tokens().saturating_add(usage.output_tokens);
            let told = Amount { tokens, nano: e.reply.cost_nano.unwrap_or(0) };
            Some(settle(e.call, attempt, (tokens > 0).then_some(told)))
        }
        Event::ModelFailed(e) => Some(settle(e.call, e.attempt, e.failure.unbilled.then_some(Amount::ZERO))),
        Event::ExchangeClosed(_) => Some(Entry::Release { agent: agent.to_owned() }),
        _ => None,
    };
    let mut entries: Vec<Entry> = events.iter().filter_map(entry).collect();
    // Before a reply came it might have been as long as its room; now that it is known, less is held for a hand-back.
    if let (Some(Event::ModelReplied(e)), Some(spec)) = (events.first(), stands.spec()) {
        let history = e.reply.usage.prompt_tokens().saturating_add(e.reply.usage.output_tokens);
        if history > 0 {
            let hand_back = hand_back_hold(spec.rates.as_ref(), history.saturating_add(results_bytes(spec)));
            entries.insert(1, Entry::Lower { agent: agent.to_owned(), hand_back });
        }
    }
    if entries.iter().any(|entry| matches!(entry, Entry::Release { .. })) {
        entries.push(Entry::CloseRun { run: agent.to_owned(), used: 1 });
    }
    entries
}
