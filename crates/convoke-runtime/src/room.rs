//! Room for one request: the envelope says whether and how much, the governor says when.

use std::sync::Arc;

use convoke_kernel::{
    AgentSpec, Answer, Ask, FailureKind, LEAST_MAX_TOKENS, Ledger, Role, Room, RoomAnswer, RoomAsk, hand_back_hold,
};

use crate::governor::{self, Permit};
use crate::runtime::Config;
use crate::session::Session;

/// What may still be added to a history before its hand-back: the results of one turn's tools.
const RESULT_BYTES: u64 = 24 * 1024;

/// A workflow's result in full length, and what is left of it for a lead that cannot afford to read that.
const LONG_DIGEST: usize = 60_000;
const SHORT_DIGEST: usize = 20_000;

/// What may still be added to this agent's history before its hand-back.
pub(crate) fn results_bytes(spec: &AgentSpec) -> u64 {
    RESULT_BYTES.max(if spec.fan_out.is_some() { SHORT_DIGEST as u64 } else { 0 })
}

/// How long a workflow's result may be, so that its lead can still hand back after reading it.
pub(crate) fn digest_chars(spec: &AgentSpec, ledger: &Ledger) -> usize {
    let more = hand_back_hold(spec.rates.as_ref(), LONG_DIGEST as u64);
    let used = ledger.spent().plus(ledger.held()).plus(more);
    let fits = |cap: Option<u64>, used: u64| cap.is_none_or(|cap| used <= cap);
    let caps = ledger.caps();
    let roomy = fits(caps.nano, used.nano) && fits(caps.tokens, used.tokens);
    if roomy { LONG_DIGEST } else { SHORT_DIGEST }
}

/// The answer, and what it gives the right to.
pub(crate) struct Granted {
    pub(crate) answer: RoomAnswer,
    pub(crate) room: Option<Room>,
    pub(crate) permit: Option<Permit>,
}

impl Granted {
    fn given_up(kind: FailureKind, why: String) -> Self {
        Self { answer: RoomAnswer::GivenUp { kind, why }, room: None, permit: None }
    }
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
        if let Some((wait, left)) = session.purse.outlasts(not_before) {
            let (wait, left) = (wait.div_ceil(1_000), left / 1_000);
            let why = format!(
                "the server wants to be left alone for {wait} s, and the run has {left} s left of its minutes; take it up again \
                 later with `convoke resume`, with more `--budget-minutes`"
            );
            return Granted::given_up(FailureKind::RateLimited, why);
        }
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
        let (prefix, conversation) = (prefix(config, spec, &ask), Some(agent.to_owned()));
        let permit = match config.governor.admit(governor::Ask { first: lead, prefix, conversation }).await {
            Ok(permit) => permit,
            Err(given_up) => {
                session.purse.withdraw(agent);
                let kind = match given_up.why {
                    governor::Why::Overloaded => FailureKind::Api,
                    governor::Why::Limited => FailureKind::RateLimited,
                };
                return Granted::given_up(kind, given_up.to_string());
            }
        };
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
