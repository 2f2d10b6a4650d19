//! What caps can buy, reckoned before anything is begun: nothing is written and nothing is spent by it.

use convoke_kernel::{Agent, AgentSpec, Caps, Input, Ledger, Pace, Role, RoomAsk, Short};

use crate::error::Error;
use crate::means;
use crate::runtime::Runtime;
use crate::start::Start;

/// A subtask is taken to be worth so many turns, with so many prompt tokens read in each, replies of a fifth
/// of their room, and a third more for its verification.
const TURNS: u64 = 4;
const READ_TOKENS: u64 = 1_000;
const REPLY_PART: u64 = 5;

/// What caps can buy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// The lead cannot even answer.
    Nothing(Short),
    /// The lead, and about so many workers; no number where no cap bounds it, or nothing has a price.
    Lead {
        /// The workers.
        workers: Option<u64>,
    },
}

impl Runtime {
    /// What the caps of this start can buy for this task.
    pub fn quote(&self, start: &Start, task: &str) -> Result<Quote, Error> {
        let (agent, spec, caps) = self.new_lead(start.clone().for_task(task))?;
        let ledger = granted(caps);
        let Some(ask) = first_ask(&spec, task)? else { return Ok(Quote::Lead { workers: None }) };
        if let Err(short) = ledger.room(&means::ask(agent.as_str(), &spec, &ask, &ledger), 0) {
            return Ok(Quote::Nothing(short));
        }
        let kept = means::kept_for_hand_back(&spec, &ledger, ask.prompt_tokens / 3);
        let worker = spec.child(Role::Worker, "a subtask", 1).and_then(|worker| {
            let rates = worker.rates.clone()?;
            let prompt = (worker.system.as_str().len() + worker.tools.as_str().len()) as u64 / 4;
            let reply = u64::from(means::reply_room(&worker, &ledger)) / REPLY_PART;
            let read = prompt + TURNS * READ_TOKENS;
            let written = TURNS * reply;
            let nano = rates.bound(read, u32::try_from(written).unwrap_or(u32::MAX));
            let tokens = TURNS * (prompt + TURNS / 2 * READ_TOKENS + reply);
            Some((nano + nano / 3, tokens + tokens / 3))
        });
        let Some((nano, tokens)) = worker else { return Ok(Quote::Lead { workers: None }) };
        let by_money = caps.nano.and_then(|cap| cap.saturating_sub(kept.nano).checked_div(nano));
        let by_tokens = caps.tokens.and_then(|cap| cap.saturating_sub(kept.tokens).checked_div(tokens));
        Ok(Quote::Lead { workers: [by_money, by_tokens].into_iter().flatten().min() })
    }
}

fn granted(caps: Caps) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.grant(caps, "quote").iter().for_each(|event| ledger.apply(event, 0));
    ledger
}

/// What the first request of an agent needs that is told this.
fn first_ask(spec: &AgentSpec, text: &str) -> Result<Option<RoomAsk>, Error> {
    let mut agent = Agent::new();
    let start = Input::Start { spec: Box::new(spec.clone()), key: "start".into(), text: text.to_owned() };
    for event in agent.decide(start, 0, Pace::Go)? {
        // What an agent decides about itself can be applied to it; if not, driving it will say so.
        if agent.apply(&event, 0).is_err() {
            return Ok(None);
        }
    }
    Ok(agent.room_ask())
}
