//! What a lead's stream says: what it is made of, whether orchestration mode is on, what was said to it and
//! what came of that. It reads; it changes nothing.

use convoke_journal::{Journal, Record, StreamId};
use convoke_kernel::{AgentId, AgentSpec, Event, Outcome, Role, RunId};
use serde::Deserialize;

use crate::failure::Failure;

/// What a lead's stream says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lead {
    /// What it is made of; `None` if that cannot be read.
    pub(crate) spec: Option<AgentSpec>,
    /// Whether orchestration mode is on; `None` for a lead from before there was one.
    pub(crate) mode: Option<bool>,
    /// What was said to it, the task first.
    pub(crate) exchanges: Vec<Exchange>,
    /// When the last thing happened to it.
    pub(crate) last_at: u64,
}

/// The prefix of the key of an input that asks the task again.
pub(crate) const ASKED_AGAIN: &str = "again-";

/// The prefix of the key of an input that was given with the task and follows it.
pub(crate) const FOLLOWS: &str = "follow-up-";

/// The prefix of the key of a call that tries lost work again.
pub(crate) use convoke_kernel::RETRY_KEY as RETRIED;

/// One input from outside and the reply that ended it.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    number: u32,
    input: String,
    taken_back: bool,
    /// Of a call that tried lost work again: whether the lead was told the result.
    told: bool,
    /// Whether it is a call that a person made, and not something that was said.
    pub(crate) is_call: bool,
    /// What was said.
    pub(crate) text: String,
    /// Whether orchestration mode was on.
    pub(crate) mode: Option<bool>,
    /// What it came to, if it has ended.
    pub(crate) outcome: Option<Outcome>,
    /// What the lead said in it before letters of its team made it go on.
    before: String,
}

impl Exchange {
    /// Letters have come: what the lead says to them belongs to what it was asked.
    fn goes_on(&mut self, number: u32) {
        if let Some(outcome) = self.outcome.take() {
            outcome.text().trim_end().clone_into(&mut self.before);
        }
        self.number = number;
    }

    fn ended(&mut self, taken_back: bool, outcome: Option<Outcome>) {
        self.taken_back = taken_back;
        let before = &self.before;
        let joined = |text: String| match (before.is_empty(), text.trim().is_empty()) {
            (true, _) => text,
            (false, true) => before.clone(),
            (false, false) => format!("{before}\n\n{text}"),
        };
        self.outcome = outcome.map(|outcome| match outcome {
            Outcome::Ok { text } => Outcome::Ok { text: joined(text) },
            Outcome::Failed { kind, message, text } => Outcome::Failed { kind, message, text: joined(text) },
        });
    }

    /// The workflow's run that it is the call of, if it is one.
    pub(crate) fn called(&self, lead: &AgentId) -> Option<RunId> {
        let call = format!("person_{}", self.number);
        self.is_call.then(|| RunId::derived(&["workflow", lead.as_str(), &call]))
    }

    /// Whether it is a call that tried lost work again.
    pub(crate) fn is_retry(&self) -> bool {
        self.is_call && self.input.starts_with(RETRIED)
    }

    /// Whether it was given with the task, to follow it.
    pub(crate) fn is_follow_up(&self) -> bool {
        self.input.starts_with(FOLLOWS)
    }

    /// Whether it is a task that was asked again.
    pub(crate) fn is_asked_again(&self) -> bool {
        self.input.starts_with(ASKED_AGAIN)
    }

    /// The key of the input by which the lead is told what came of it.
    pub(crate) fn told_as(&self) -> String {
        format!("{ASKED_AGAIN}{}", self.input)
    }
}

/// The beginning of a lead that waits to be driven.
#[derive(Deserialize)]
struct Waiting {
    start: Option<AgentSpec>,
}

impl Lead {
    /// Reads a lead's stream, or, if no process has driven it yet, what waits for it.
    pub(crate) async fn read(journal: &Journal, agent: &AgentId) -> Result<Self, Failure> {
        let stream = StreamId::from(agent);
        let mut lead = Self::fold(&journal.load(&stream, 0).await?);
        if lead.spec.is_none() {
            let inputs = journal.inputs(&stream).await?;
            let start = |body: &str| serde_json::from_str::<Waiting>(body).ok()?.start;
            if let Some(spec) = inputs.iter().find_map(|input| start(&input.body)) {
                lead.started(spec);
            }
        }
        Ok(lead)
    }

    fn fold(records: &[Record]) -> Self {
        let mut lead = Self::default();
        for record in records {
            lead.last_at = lead.last_at.max(record.at);
            match Event::decode(&record.event) {
                Ok(Event::AgentStarted(started)) => lead.started(started.spec),
                Ok(Event::ModeSet(set)) => lead.mode = Some(set.on),
                Ok(Event::Retuned(tuned)) => {
                    if let Some(spec) = &mut lead.spec {
                        (spec.model, spec.capabilities) = (tuned.model, tuned.capabilities);
                        (spec.rates, spec.params) = (tuned.rates, tuned.params);
                    }
                }
                Ok(Event::ExchangeOpened(opened)) if !opened.letters.is_empty() && lead.has_been_asked() => {
                    if let Some(last) = lead.exchanges.last_mut() {
                        last.goes_on(opened.exchange);
                    }
                }
                Ok(Event::ExchangeOpened(opened)) => {
                    let number = opened.exchange;
                    let input = opened.input;
                    let text = opened.text;
                    let mode = lead.mode;
                    let taken_back = false;
                    let is_call = false;
                    lead.opened(Exchange {
                        number,
                        input,
                        text,
                        mode,
                        taken_back,
                        is_call,
                        outcome: None,
                        before: String::new(),
                        told: false,
                    });
                }
                Ok(Event::CallMade(made)) => {
                    let number = made.exchange;
                    let input = made.input;
                    let text = made.text;
                    let mode = lead.mode;
                    let taken_back = false;
                    let is_call = true;
                    lead.opened(Exchange {
                        number,
                        input,
                        text,
                        mode,
                        taken_back,
                        is_call,
                        outcome: None,
                        before: String::new(),
                        told: false,
                    });
                }
                Ok(Event::ExchangeReopened(reopened)) => lead.set(reopened.exchange, false, None),
                Ok(Event::ExchangeClosed(closed)) => {
                    lead.set(closed.exchange, closed.taken_back, Some(closed.outcome))
                }
                _ => {}
            }
        }
        lead
    }

    /// Whether it is a lead that a person has asked something; of a teammate every exchange stands for
    /// itself.
    fn has_been_asked(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.role == Role::Lead) && !self.exchanges.is_empty()
    }

    /// The calls that tried lost work again, that have ended, and whose result the lead has not been told.
    pub(crate) fn untold(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.is_retry() && !exchange.told && exchange.outcome.is_some())
    }

    fn started(&mut self, spec: AgentSpec) {
        self.mode = spec.fan_out.as_ref().map(|fan_out| fan_out.mode);
        self.spec = Some(spec);
    }

    /// What was taken back and is offered again is one exchange, and so is a task that is asked again.
    fn opened(&mut self, exchange: Exchange) {
        let again = exchange.input.starts_with(ASKED_AGAIN);
        if again {
            self.exchanges.iter_mut().for_each(|before| before.told = true);
        }
        let same = |old: &&mut Exchange| old.taken_back && old.input == exchange.input;
        let place = if again { self.exchanges.first_mut() } else { self.exchanges.last_mut().filter(same) };
        match place {
            // The task stays what the person asked.
            Some(place) if again => *place = Exchange { text: std::mem::take(&mut place.text), ..exchange },
            Some(place) => *place = exchange,
            None => self.exchanges.push(exchange),
        }
    }

    fn set(&mut self, number: u32, taken_back: bool, outcome: Option<Outcome>) {
        if let Some(exchange) = self.exchanges.iter_mut().rev().find(|exchange| exchange.number == number) {
            exchange.ended(taken_back, outcome);
        }
    }
}
