//! What an agent's events mean for the ledger. Booked in the append that records them, so that neither is
//! ever without the other.

use convoke_kernel::{Agent, AgentId, Amount, Effect, Event, Ledger, ReportedTokens, Role, Room};

use crate::means::{kept_for_hand_back, kind, prefix};
use crate::session_ledger::{Entry, Make};

/// The entries that these events call for, decided by this agent as it stands; `room` is what the request
/// among them was granted.
pub(crate) fn entries(
    id: &AgentId,
    stands: &Agent,
    events: &[Event],
    room: Option<Room>,
    ledger: &Ledger,
) -> Vec<Entry> {
    let agent = id.as_str();
    let attempt = match stands.pending().as_slice() {
        [Effect::CallModel { attempt, .. }, ..] => *attempt,
        _ => 0,
    };
    let settle = |call, attempt, usage, said| {
        let agent = agent.to_owned();
        Entry::Settle { agent, call, attempt, usage, said }
    };
    let entry = |event: &Event| match event {
        // Workers and verifiers are admitted with their run; a one-shot sub-agent is a run of its own.
        Event::AgentStarted(e) if e.spec.role == Role::Task => {
            Some(Entry::Admit { run: agent.to_owned(), count: 1 })
        }
        Event::ModelCalled(e) => {
            let agent = agent.to_owned();
            let call = e.call;
            let attempt = e.attempt;
            let sent = make(stands);
            room.map(|room| Entry::Reserve { agent, call, attempt, room, sent })
        }
        Event::ModelReplied(e) => {
            let usage = &e.reply.usage;
            let tokens = usage.prompt_tokens().saturating_add(usage.output_tokens);
            // Half a usage is none, and a reply that was reserved at a price and comes back without one is
            // not free.
            let whole = usage.prompt_tokens() > 0 && usage.output_tokens > 0;
            let priced = e.reply.cost_nano.is_some() || stands.spec().is_none_or(|spec| spec.rates.is_none());
            let told = Amount { tokens, nano: e.reply.cost_nano.unwrap_or(0) };
            let said =
                ReportedTokens { prompt_tokens: usage.prompt_tokens(), output_tokens: usage.output_tokens };
            Some(settle(e.call, attempt, (whole && priced).then_some(told), whole.then_some(said)))
        }
        Event::ModelFailed(e) => {
            Some(settle(e.call, e.attempt, e.failure.unbilled.then_some(Amount::ZERO), None))
        }
        Event::ExchangeClosed(_) => Some(Entry::Release { agent: agent.to_owned() }),
        _ => None,
    };
    let mut entries: Vec<Entry> = events.iter().filter_map(entry).collect();
    // Before a reply came it might have been as long as its room; now that it is known, less is held for a
    // hand-back.
    if let (Some(Event::ModelReplied(e)), Some(spec)) = (events.first(), stands.spec()) {
        let usage = &e.reply.usage;
        let history = usage.prompt_tokens().saturating_add(usage.output_tokens);
        if usage.prompt_tokens() > 0 && usage.output_tokens > 0 {
            let hand_back = kept_for_hand_back(spec, ledger, history);
            entries.insert(1, Entry::Lower { agent: agent.to_owned(), hand_back });
        }
    }
    if entries.iter().any(|entry| matches!(entry, Entry::Release { .. })) {
        entries.push(Entry::CloseRun { run: agent.to_owned(), used: 1 });
    }
    entries
}

/// What the agent's requests are sent with, where they have a price.
fn make(stands: &Agent) -> Option<Make> {
    let spec = stands.spec()?;
    let ask = stands.room_ask()?;
    let prefix = prefix(spec, &ask.prefix.0);
    Some(Make { rates: spec.rates.clone()?, kind: kind(spec), prefix, behind: ask.behind_prefix })
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{
        AgentSpec, Event, Input, Kept, LeadSettings, Limits, ModelReplied, Pace, RateTier, Rates, Reply,
        RoomAnswer, Segment, SessionId, StopReason, Usage,
    };

    use super::*;

    /// An agent whose first request is under way, with or without a price.
    fn asking(rates: Option<Rates>) -> Agent {
        let capabilities = crate::start::Start::new("m", "/").capabilities;
        let spec = AgentSpec::lead(LeadSettings {
            session: SessionId::from_bits([1; 10]),
            dir: "/".into(),
            model: "m".into(),
            capabilities,
            limits: Limits::default(),
            rates,
            confinement: Default::default(),
            approvals: Default::default(),
            fan_out: None,
            team: None,
            extra_system: None,
        });
        let mut agent = Agent::new();
        let start = Input::Start { spec: Box::new(spec), key: "k".into(), text: "go".into() };
        for input in [start, Input::Room { call: 1, answer: RoomAnswer::Go { max_tokens: 8_000 } }] {
            for event in agent.decide(input, 1, Pace::Go).unwrap() {
                agent.apply(&event, 1).unwrap();
            }
        }
        agent
    }

    fn settled(rates: Option<Rates>, usage: Usage, cost_nano: Option<u64>) -> Option<Amount> {
        let reply = Reply {
            content: Segment::from_json(r#"[{"type":"text","text":"hi"}]"#).unwrap(),
            text: "hi".into(),
            calls: Vec::new(),
            stop: StopReason::EndTurn,
            stop_detail: None,
            usage,
            cost_nano,
            model: "m".into(),
            request_id: None,
        };
        let event = Event::from(ModelReplied { call: 1, reply, kept: Kept::Yes });
        let ledger = Ledger::default();
        let entries = entries(&AgentId::from_bits([2; 10]), &asking(rates), &[event], None, &ledger);
        entries
            .into_iter()
            .find_map(|entry| match entry {
                Entry::Settle { usage, .. } => Some(usage),
                _ => None,
            })
            .unwrap()
    }

    #[test]
    fn what_is_not_wholly_known_is_settled_at_its_bound() {
        let rates = || {
            Some(Rates {
                tiers: vec![RateTier { above: 0, input: 1, output: 1 }],
                overhead_tokens: 0,
                output_per_second: None,
            })
        };
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        assert_eq!(settled(rates(), usage(10, 5), Some(7)), Some(Amount { tokens: 15, nano: 7 }));
        assert_eq!(settled(rates(), usage(10, 0), Some(7)), None, "half a usage");
        assert_eq!(settled(rates(), usage(0, 5), Some(7)), None, "half a usage");
        assert_eq!(settled(rates(), usage(10, 5), None), None, "a price that was there and has gone");
        assert_eq!(settled(None, usage(10, 5), None), Some(Amount { tokens: 15, nano: 0 }), "never a price");
    }
}
