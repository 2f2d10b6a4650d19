//! Forks: a new session whose lead goes on from where another one stood. The other stream is only read,
//! so the driver of it is not disturbed; what is written holds the whole history, so the other session
//! can be removed. Its team, its board and its runs in the background are not taken along. Nothing is
//! sent until something is said to the fork.

use convoke_journal::{Journal, KeyedInput, StreamId};
use convoke_kernel::{Agent, AgentId, AgentStarted, Caps, Event, Role, SessionId};

use crate::clock::Clock;
use crate::control::Controller;
use crate::error::Error;
use crate::ids::Ids;
use crate::inputs::Waiting;
use crate::runtime::Runtime;
use crate::session_ledger::{Entry, SessionLedger};

/// Why a session cannot be forked, or not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkRefused {
    /// It is below a lead.
    #[error("{0} is not the lead of a session, and only leads can be forked")]
    NotALead(AgentId),
    /// Nothing was answered.
    #[error("{0} has answered nothing yet, so there is nothing to go on from; say something to it first")]
    NothingYet(AgentId),
    /// It has no exchange of this number.
    #[error("{agent} has no exchange {at} ({}); `convoke sessions show` tells them with their \
        numbers", counted(*last))]
    NoSuchExchange {
        /// The agent that was to be forked.
        agent: AgentId,
        /// The number that was given.
        at: u32,
        /// The last number there is; 0 if there is none.
        last: u32,
    },
    /// The exchange is under way.
    #[error("exchange {at} of {agent} has not ended; wait for its end, or fork at an earlier one")]
    StillOpen {
        /// The agent that was to be forked.
        agent: AgentId,
        /// The number of the exchange.
        at: u32,
    },
    /// The exchange ended where nothing can be said behind it.
    #[error("exchange {at} of {agent} ended in the middle of a reply's calls; fork at an earlier one")]
    Unanswered {
        /// The agent that was to be forked.
        agent: AgentId,
        /// The number of the exchange.
        at: u32,
    },
}

fn counted(last: u32) -> String {
    match last {
        0 => "it has none".to_owned(),
        last => format!("the last one is {last}"),
    }
}

impl Runtime {
    /// Writes a new lead into the journal that goes on from this one: made of the same, in a session of its
    /// own with these caps, with the history up to the end of exchange `at` (absent: the last one that is
    /// closed). It stands idle when it is driven, and is paid for from its first own request on, which reads
    /// the original's cache. Needs no lease: a driver of the original is not disturbed.
    pub async fn fork(
        &self,
        from: &AgentId,
        at: Option<u32>,
        caps: Caps,
    ) -> Result<(AgentId, SessionId), Error> {
        let config = &self.config;
        fork(&config.journal, &config.clock, &config.ids, from, at, caps).await
    }
}

impl Controller {
    /// The same as [`Runtime::fork`], for a program that has nothing but the journal.
    pub async fn fork(
        &self,
        ids: &Ids,
        from: &AgentId,
        at: Option<u32>,
        caps: Caps,
    ) -> Result<(AgentId, SessionId), Error> {
        fork(&self.journal, &self.clock, ids, from, at, caps).await
    }
}

async fn fork(
    journal: &Journal,
    clock: &Clock,
    ids: &Ids,
    from: &AgentId,
    at: Option<u32>,
    caps: Caps,
) -> Result<(AgentId, SessionId), Error> {
    let stands = stands(journal, from, at).await?;
    let agent = ids.agent()?;
    let session = ids.session()?;
    let Some((spec, fork)) = stands.fork(from, session.clone()) else {
        return Err(why_not(&stands, from, at).into());
    };
    // The caps come first: an agent without a budget would have none.
    let ledger = SessionLedger::open(journal.clone(), &session, clock.clone()).await?;
    ledger.enter(vec![Entry::Grant { caps, by: "fork".to_owned() }]).await?;
    let waiting = Waiting { start: Some(spec), fork: Some(fork), ..Waiting::default() };
    let body = serde_json::to_string(&waiting)?;
    let input = KeyedInput { stream: StreamId::from(&agent), key: "start".to_owned(), body };
    journal.submit(&input, clock.now()).await?;
    Ok((agent, session))
}

/// The agent as it stood at the end of that exchange, before the next one was opened.
async fn stands(journal: &Journal, from: &AgentId, at: Option<u32>) -> Result<Agent, Error> {
    let stream = StreamId::from(from);
    let records = journal.load(&stream, 0).await?;
    let mut agent = Agent::new();
    if records.is_empty() {
        for event in waiting(journal, from, &stream).await? {
            agent.apply(&event, 0).map_err(|cause| Error::BadHistory {
                agent: from.clone(),
                seq: 0,
                cause,
            })?;
        }
        return match at {
            Some(at) => Err(ForkRefused::NoSuchExchange { agent: from.clone(), at, last: 0 }.into()),
            None => Ok(agent),
        };
    }
    let mut events = Vec::with_capacity(records.len());
    for record in &records {
        let bad = |cause| Error::BadEvent { agent: from.clone(), seq: record.seq, cause };
        events.push(Event::decode(&record.event).map_err(bad)?);
    }
    let end = end_of(&events, from, at)?;
    for (event, record) in events.iter().zip(&records).take(end) {
        let bad = |cause| Error::BadHistory { agent: from.clone(), seq: record.seq, cause };
        agent.apply(event, record.at).map_err(bad)?;
    }
    Ok(agent)
}

/// How many of an agent's events have happened up to the end of this exchange, or of the last one that is
/// closed.
fn end_of(events: &[Event], agent: &AgentId, at: Option<u32>) -> Result<usize, ForkRefused> {
    let opened = |event: &Event| match event {
        Event::ExchangeOpened(e) => Some(e.exchange),
        Event::CallMade(e) => Some(e.exchange),
        _ => None,
    };
    let is_open = events.iter().fold(false, |open, event| match event {
        Event::ExchangeOpened(_) | Event::CallMade(_) | Event::ExchangeReopened(_) => true,
        Event::ExchangeClosed(_) => false,
        _ => open,
    });
    let openings: Vec<(usize, u32)> =
        events.iter().enumerate().filter_map(|(index, event)| Some((index, opened(event)?))).collect();
    let Some(at) = at else {
        return Ok(openings.last().filter(|_| is_open).map_or(events.len(), |(index, _)| *index));
    };
    let last = openings.last().map_or(0, |(_, number)| *number);
    match openings.iter().position(|(_, number)| *number == at) {
        None => Err(ForkRefused::NoSuchExchange { agent: agent.clone(), at, last }),
        Some(place) => match openings.get(place + 1) {
            Some((next, _)) => Ok(*next),
            None if is_open => Err(ForkRefused::StillOpen { agent: agent.clone(), at }),
            None => Ok(events.len()),
        },
    }
}

/// What will have happened to an agent that has not been driven yet, before anything is said to it.
async fn waiting(journal: &Journal, from: &AgentId, stream: &StreamId) -> Result<Vec<Event>, Error> {
    for input in journal.inputs(stream).await? {
        let bad = |cause| Error::BadInput { agent: from.clone(), key: input.key.clone(), cause };
        let Waiting { start, fork, .. } = serde_json::from_str(&input.body).map_err(bad)?;
        if let Some(spec) = start {
            let started = Event::from(AgentStarted { spec });
            return Ok(std::iter::once(started).chain(fork.map(Event::from)).collect());
        }
    }
    Err(Error::NoSuchAgent(from.clone()))
}

fn why_not(stands: &Agent, from: &AgentId, at: Option<u32>) -> ForkRefused {
    if stands.spec().is_some_and(|spec| spec.role != Role::Lead) {
        return ForkRefused::NotALead(from.clone());
    }
    let replied =
        stands.history().iter().any(|message| message.as_str().starts_with(r#"{"role":"assistant""#));
    match at.filter(|_| replied) {
        Some(at) => ForkRefused::Unanswered { agent: from.clone(), at },
        None => ForkRefused::NothingYet(from.clone()),
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{
        AgentSpec, Event, ExchangeClosed, ExchangeOpened, ExchangeReopened, Outcome, Resumed, Segment,
    };

    use super::*;

    /// `1` opens an exchange of that number, `)` closes it, `r` opens it again, `-` is anything else.
    fn events(script: &str) -> Vec<Event> {
        let mut last = 0;
        let event = |step: char| match step {
            ')' => ExchangeClosed {
                exchange: last,
                outcome: Outcome::Ok { text: String::new() },
                taken_back: false,
                report: None,
                ballot: None,
                degraded: None,
                returned: Vec::new(),
            }
            .into(),
            'r' => ExchangeReopened { exchange: last }.into(),
            '-' => Resumed { changed: Vec::new(), facts: None }.into(),
            number => {
                last = number.to_digit(10).unwrap();
                ExchangeOpened {
                    exchange: last,
                    input: String::new(),
                    text: String::new(),
                    message: Segment::from_json("{}").unwrap(),
                    system: None,
                    section: None,
                    changed: Vec::new(),
                    notice: None,
                    letters: Vec::new(),
                    work: None,
                    capsule: false,
                }
                .into()
            }
        };
        script.chars().map(event).collect()
    }

    fn id() -> AgentId {
        AgentId::from_bits([2; 10])
    }

    #[test]
    fn a_fork_is_cut_before_the_exchange_that_follows_was_opened() {
        let check = |script: &str, at: Option<u32>, expected: &str| {
            let end = end_of(&events(script), &id(), at).unwrap();
            assert_eq!(&script[..end], expected, "{script} at {at:?}");
        };
        check("-1)-", None, "-1)-");
        check("-1)-2-)", None, "-1)-2-)");
        check("-1)-2-", None, "-1)-");
        check("-1)-2)-r-", None, "-1)-");
        check("-1)-2-)", Some(1), "-1)-");
        check("-1)-2-)", Some(2), "-1)-2-)");
        check("-1)r)-2-", Some(1), "-1)r)-");
        check("-1-", None, "-");
    }

    #[test]
    fn an_exchange_that_is_open_or_not_there_is_said_to_be_that() {
        let check = |script: &str, at: u32, expected: ForkRefused| {
            assert_eq!(end_of(&events(script), &id(), Some(at)), Err(expected), "{script} at {at}");
        };
        let unknown = |at, last| ForkRefused::NoSuchExchange { agent: id(), at, last };
        check("-1)-2-", 2, ForkRefused::StillOpen { agent: id(), at: 2 });
        check("-1)-2)r", 2, ForkRefused::StillOpen { agent: id(), at: 2 });
        check("-1)-2)", 3, unknown(3, 2));
        check("-", 1, unknown(1, 0));
        assert!(unknown(3, 2).to_string().contains("the last one is 2"));
    }

    #[test]
    fn who_is_below_a_lead_is_told_so() {
        let start = crate::start::Start::new("m", "/");
        let spec = AgentSpec::lead(convoke_kernel::LeadSettings {
            session: SessionId::from_bits([1; 10]),
            dir: "/".into(),
            model: start.model,
            capabilities: start.capabilities,
            limits: start.limits,
            rates: None,
            confinement: start.confinement,
            approvals: start.approvals,
            fan_out: None,
            team: None,
            extra_system: None,
        });
        let check = |role: Role, expected: ForkRefused| {
            let mut agent = Agent::new();
            agent.apply(&AgentStarted { spec: AgentSpec { role, ..spec.clone() } }.into(), 1).unwrap();
            assert_eq!(why_not(&agent, &id(), None), expected);
        };
        check(Role::Task, ForkRefused::NotALead(id()));
        check(Role::Lead, ForkRefused::NothingYet(id()));
    }
}
