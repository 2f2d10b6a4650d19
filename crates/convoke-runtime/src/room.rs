//! Room for one request: the envelope says whether and how much, the governor says when.

use std::sync::Arc;

use convoke_kernel::{AgentSpec, Answer, Ask, LEAST_MAX_TOKENS, Role, Room, RoomAnswer, RoomAsk};

use crate::governor::{self, Permit};
use crate::runtime::Config;
use crate::session::Session;

/// What may still be added to a history before its hand-back: the results of one turn's tools.
const RESULT_BYTES: u64 = 16 * 1024;

/// The same for the lead, whose tools bring back what many agents found: a workflow's result in full length.
const LEAD_RESULT_BYTES: u64 = 64 * 1024;

/// What may still be added to this agent's history before its hand-back.
pub(crate) fn results_bytes(spec: &AgentSpec) -> u64 {
    if spec.fan_out.is_some() { LEAD_RESULT_BYTES } else { RESULT_BYTES }
}

/// The answer, and what it gives the right to.
pub(crate) struct Granted {
    pub(crate) answer: RoomAnswer,
    pub(crate) room: Option<Room>,
    pub(crate) permit: Option<Permit>,
}

/// Waits for room. Dropping the future gives everything back, except a grant that was answered: see `Purse::withdraw`.
pub(crate) async fn wait(
    config: &Config,
    session: &Arc<Session>,
    agent: &str,
    spec: &AgentSpec,
    ask: RoomAsk,
    not_before: u64,
) -> Granted {
    if not_before > 0 {
        config.clock.sleep_until(not_before).await;
    }
    let lead = spec.role == Role::Lead;
    let money = Ask {
        agent: agent.to_owned(),
        order: 0,
        first: lead,
        started: ask.started,
        last: ask.last_turn,
        call: ask.call,
        attempt: ask.attempt,
        input_tokens: ask.prompt_tokens,
        wanted: ask.wanted,
        floor: LEAST_MAX_TOKENS,
        hand_back_input: ask.prompt_tokens.saturating_add(results_bytes(spec)),
        rates: spec.rates.clone(),
    };
    loop {
        let (answer, room) = match session.purse.ask(money.clone()).await {
            Answer::Go(room) => (RoomAnswer::Go { max_tokens: room.max_tokens }, room),
            Answer::HandBack(room, short) => {
                (RoomAnswer::HandBack { max_tokens: room.max_tokens, why: short.to_string() }, room)
            }
            Answer::Refused(short) => {
                let answer = RoomAnswer::Refused { why: short.to_string() };
                return Granted { answer, room: None, permit: None };
            }
        };
        let permit = config.governor.admit(governor::Ask { first: lead, prefix: prefix(config, spec, &ask) }).await;
        let ordinary = matches!(answer, RoomAnswer::Go { .. }) && !ask.last_turn;
        if ordinary && session.purse.is_out_of_time() {
            // The minutes ran out while the governor let it wait: only hand-backs start now.
            drop(permit);
            session.purse.withdraw(agent);
            continue;
        }
        return Granted { answer, room: Some(room), permit: Some(permit) };
    }
}

/// Prompt tokens that the API adds to every prompt with tools, before the system prompt: its preamble and what it says
/// about the shell. They count towards the size that can be cached.
const ADDED_TOKENS: u64 = 600;

/// What names the prefix, if it is long enough for the server's cache. Four bytes a token is a guess on the low side, so
/// that nobody waits for a sibling in vain.
fn prefix(config: &Config, spec: &AgentSpec, ask: &RoomAsk) -> Option<String> {
    let (digest, bytes) = &ask.prefix;
    let added = if spec.capabilities.anthropic_tools { ADDED_TOKENS } else { 0 };
    let cacheable = (*bytes as u64) / 4 + added >= config.models.get(&spec.model).cache_minimum;
    (spec.capabilities.cache_marks && cacheable).then(|| digest.clone())
}
