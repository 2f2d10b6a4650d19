//! Room for one request: the budget says whether and how much, the governor says when.

use std::sync::Arc;

use convoke_kernel::{
    AgentSpec, FailureKind, Ledger, LedgerAnswer, LedgerRequest, Role, Room, RoomAnswer, RoomAsk,
};

use crate::governor::{self, Permit};
use crate::means;
use crate::runtime::Config;
use crate::session::Session;

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

/// Waits for room. Dropping the future gives everything back, except a grant that was answered: see
/// `SessionLedger::withdraw`.
pub(crate) async fn wait(
    config: &Config,
    session: &Arc<Session>,
    agent: &str,
    spec: &AgentSpec,
    ask: RoomAsk,
    not_before: u64,
) -> Granted {
    if not_before > 0 {
        if let Some((wait, left)) = session.ledger.outlasts(not_before) {
            let wait = wait.div_ceil(1_000);
            let left = left / 1_000;
            let why = format!(
                "the server wants to be left alone for {wait} s, and the run has {left} s left of its \
                 minutes; take it up again later with `convoke resume`, with more `--budget-minutes`"
            );
            return Granted::given_up(FailureKind::RateLimited, why);
        }
        config.clock.sleep_until(not_before).await;
    }
    let lead = spec.role == Role::Lead;
    let money = means::ask(agent, spec, &ask, &session.ledger.ledger());
    loop {
        let spec_now = spec.clone();
        let ask_now = ask.clone();
        let renew = move |ledger: &Ledger, money: &mut LedgerRequest| {
            means::renew(money, &spec_now, &ask_now, ledger)
        };
        let (answer, room) = match session.ledger.ask(money.clone(), renew).await {
            LedgerAnswer::Go(room) => (RoomAnswer::Go { max_tokens: room.max_tokens }, room),
            LedgerAnswer::HandBack(room, short) => {
                (RoomAnswer::HandBack { max_tokens: room.max_tokens, why: short.told_of(&spec.model) }, room)
            }
            LedgerAnswer::Refused(short) => {
                let answer = RoomAnswer::Refused { why: short.told_of(&spec.model) };
                return Granted { answer, room: None, permit: None };
            }
        };
        let prefix = prefix(config, spec, &ask);
        let conversation = Some(agent.to_owned());
        let permit = match config
            .governor
            .admit(governor::AdmissionRequest { first: lead, prefix, conversation })
            .await
        {
            Ok(permit) => permit,
            Err(given_up) => {
                session.ledger.withdraw(agent);
                let kind = match given_up.why {
                    governor::Why::Overloaded => FailureKind::Api,
                    governor::Why::Limited => FailureKind::RateLimited,
                };
                return Granted::given_up(kind, given_up.to_string());
            }
        };
        let ordinary = matches!(answer, RoomAnswer::Go { .. }) && !ask.last_turn;
        if ordinary && session.ledger.is_out_of_time() {
            // The minutes ran out while the governor let it wait: only hand-backs start now.
            drop(permit);
            session.ledger.withdraw(agent);
            continue;
        }
        return Granted { answer, room: Some(room), permit: Some(permit) };
    }
}

/// Prompt tokens that the API adds to every prompt with tools, before the system prompt: its preamble and
/// what it says about the shell. They count towards the size that can be cached.
const ADDED_TOKENS: u64 = 600;

/// What names the prefix, if it is long enough for the server's cache. Four bytes a token is a guess on the
/// low side, so that no request waits for a sibling in vain.
fn prefix(config: &Config, spec: &AgentSpec, ask: &RoomAsk) -> Option<String> {
    let (digest, bytes) = &ask.prefix;
    let added = if spec.capabilities.anthropic_tools { ADDED_TOKENS } else { 0 };
    let cacheable = (*bytes as u64) / 4 + added >= config.models.get(&spec.model).cache_minimum;
    (ask.cached && cacheable).then(|| digest.clone())
}
