//! A session's ledger as this process sees it, and the queue of agents that want to spend. The rules
//! are the kernel's; the truth is the journal's: what is granted here counts only once the append
//! that carries it has been committed.

mod entry;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_journal::{Change, Journal, StreamId, Update};
use convoke_kernel::{
    Amount, Ledger, LedgerAnswer, LedgerHold, LedgerRequest, Room, RoomReserved, SessionId, answer,
};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::error::Error;

pub(crate) use entry::{Entry, Fates, Make};
use entry::{book, fate};

/// What an agent is doing, as far as money goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Something that will make it ask, rest or end by itself.
    Working,
    /// It waits for an answer from here.
    Asking,
    /// It has been granted room and its request is on the way or answered.
    Flying,
    /// It waits for its children.
    Resting,
}

impl Doing {
    /// Whether an agent that holds this will ask, rest or end without anything from here. A reply is booked
    /// before its agent says what it does next: in between nothing of it is in flight, and it is not idle
    /// either. Without this, workers were refused in that moment although money was about to come free.
    fn is_busy(self, hold: Option<&LedgerHold>) -> bool {
        match self {
            Doing::Working => true,
            Doing::Flying => hold.is_none_or(|hold| hold.request.is_none()),
            Doing::Asking | Doing::Resting => false,
        }
    }
}

/// The ledger of one session in this process. Clones share it.
#[derive(Clone)]
pub(crate) struct SessionLedger {
    journal: Journal,
    stream: StreamId,
    clock: Clock,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// As of the last commit this process has heard of.
    ledger: Ledger,
    /// Granted, and on the way to the journal.
    granted: BTreeMap<String, RoomReserved>,
    /// What the server said of prompts in flight and is not in the journal yet: the request, the attempt and
    /// the amount.
    counted: BTreeMap<String, (u32, u32, Amount)>,
    asks: Vec<Waiter>,
    doing: HashMap<String, Doing>,
    ages: HashMap<String, u64>,
}

/// Brings an ask up to what is known by now.
type Renew = Box<dyn Fn(&Ledger, &mut LedgerRequest) + Send>;

struct Waiter {
    ask: LedgerRequest,
    renew: Renew,
    tell: oneshot::Sender<LedgerAnswer>,
}

impl SessionLedger {
    /// Opens the ledger as the journal has it.
    pub(crate) async fn open(journal: Journal, session: &SessionId, clock: Clock) -> Result<Self, Error> {
        let ledger = Self { journal, stream: StreamId::from(session), clock, inner: Arc::default() };
        ledger.reload().await?;
        Ok(ledger)
    }

    /// Looks what others have made of the ledger.
    pub(crate) async fn reload(&self) -> Result<(), Error> {
        if let Some(state) = self.journal.shared(&self.stream).await? {
            self.adopt(&state)?;
        }
        Ok(())
    }

    /// Makes entries that belong to no append.
    pub(crate) async fn enter(&self, entries: Vec<Entry>) -> Result<(), Error> {
        let at = self.clock.now();
        let state = self.journal.update(&self.stream, at, &self.update(entries, at).change).await?;
        self.adopt(&state)
    }

    /// The entries as part of an append.
    pub(crate) fn update(&self, entries: Vec<Entry>, at: u64) -> Update {
        let process = self.process().to_owned();
        let entries = self.lock().with_counted(entries);
        Update {
            stream: self.stream.clone(),
            change: Change::new(move |state| book(&entries, &process, state, at)),
        }
    }

    /// The server has said what the prompt of a request in flight takes. No append is made for that: the next
    /// one of any agent carries it. Only where nothing but bytes bounds the prompt it is written down at
    /// once.
    pub(crate) fn counted(&self, agent: &str, (call, attempt): (u32, u32), prompt: Amount) {
        let mut inner = self.lock();
        inner.counted.insert(agent.to_owned(), (call, attempt, prompt));
        if inner.ledger.is_unmeasured(agent) {
            let ledger = self.clone();
            // If it cannot be written, a later append carries it, or it is missing and the bound is a wider
            // one.
            tokio::spawn(async move { ledger.enter(Vec::new()).await.ok() });
        }
    }

    fn process(&self) -> &str {
        &self.journal.options().process.id
    }

    /// What is known of the processes that have attempts in flight; of one agent's alone if one is named.
    pub(crate) async fn fates(&self, only: Option<&str>) -> Result<Fates, Error> {
        self.reload().await?;
        let ledger = self.ledger();
        let mut fates = Fates {
            driven: self.lock().doing.keys().filter(|agent| Some(agent.as_str()) != only).cloned().collect(),
            own: (self.process().to_owned(), self.clock.now()),
            others: BTreeMap::new(),
            only: only.map(str::to_owned),
        };
        let of_it = |(agent, _): &(&str, &LedgerHold)| only.is_none_or(|only| only == *agent);
        let senders = ledger.holds().filter(of_it).filter_map(|(_, hold)| hold.sent.as_ref());
        for process in senders.map(|sent| &sent.sending.process) {
            if *process != fates.own.0 && !fates.others.contains_key(process) {
                let sign = self.journal.sign_of_life(process).await?;
                fates.others.insert(process.clone(), fate(sign, self.clock.now()));
            }
        }
        Ok(fates)
    }

    /// Settles what an agent that this process begins to drive had in flight elsewhere.
    pub(crate) async fn take_over(&self, agent: &str) -> Result<(), Error> {
        let in_flight = |hold: &LedgerHold| hold.request.is_some();
        if !self.ledger().hold_of(agent).is_some_and(in_flight) {
            return Ok(());
        }
        let fates = self.fates(Some(agent)).await?;
        self.enter(vec![Entry::Lost { fates }]).await
    }

    /// Takes over the state an append led to. Appends are answered in any order, so an older state is passed
    /// over.
    pub(crate) fn adopt(&self, state: &str) -> Result<(), Error> {
        let ledger: Ledger = serde_json::from_str(state)?;
        let mut inner = self.lock();
        if ledger.count() >= inner.ledger.count() {
            inner.ledger = ledger;
        }
        // What is in the journal need not be counted beside it.
        let Inner { ledger, granted, .. } = &mut *inner;
        granted.retain(|agent, e| {
            ledger.hold_of(agent).is_none_or(|hold| (hold.call, hold.attempt) < (e.call, e.attempt))
        });
        inner.forget_counted();
        // What another process gave back may be what an agent here waits for.
        inner.serve(self.clock.now());
        Ok(())
    }

    /// Whether an agent waits for an answer.
    pub(crate) fn is_asked(&self) -> bool {
        !self.lock().asks.is_empty()
    }

    /// The ledger as this process knows it.
    pub(crate) fn ledger(&self) -> Ledger {
        self.lock().ledger.clone()
    }

    /// Says what an agent is doing now; `None` when it is no longer driven. Others may get their answer by
    /// it.
    pub(crate) fn set(&self, agent: &str, doing: Option<Doing>) {
        let mut inner = self.lock();
        match doing {
            Some(doing) => drop(inner.doing.insert(agent.to_owned(), doing)),
            None => {
                inner.doing.remove(agent);
                inner.granted.remove(agent);
            }
        }
        inner.serve(self.clock.now());
    }

    /// A grant that will not be used.
    pub(crate) fn withdraw(&self, agent: &str) {
        let mut inner = self.lock();
        inner.granted.remove(agent);
        inner.doing.insert(agent.to_owned(), Doing::Working);
        inner.serve(self.clock.now());
    }

    /// Whether the minutes are used up.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.lock().ledger.ms_left(self.clock.now()) == Some(0)
    }

    /// Whether a wait until then is no use, because the minutes end long before; the milliseconds it would
    /// take, and those left.
    pub(crate) fn outlasts(&self, until: u64) -> Option<(u64, u64)> {
        self.lock().ledger.outlasts(until, self.clock.now())
    }

    /// Asks for room and waits for the answer. What the ask is reckoned from is looked up again whenever it
    /// may be answered, for what others were told meanwhile counts. Dropping the future takes the ask back.
    pub(crate) async fn ask(
        &self,
        mut ask: LedgerRequest,
        renew: impl Fn(&Ledger, &mut LedgerRequest) + Send + 'static,
    ) -> LedgerAnswer {
        let agent = ask.agent.clone();
        let (tell, told) = oneshot::channel();
        let _asked = Asked { ledger: self, agent: agent.clone() };
        {
            let mut inner = self.lock();
            let next = inner.ages.len() as u64;
            ask.order = *inner.ages.entry(agent.clone()).or_insert(next);
            inner.doing.insert(agent, Doing::Asking);
            inner.asks.push(Waiter { ask, renew: Box::new(renew), tell });
            inner.serve(self.clock.now());
        }
        match told.await {
            Ok(answer) => answer,
            // The other end lives in the ledger and is only dropped with an answer.
            Err(_) => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes an ask back when no future waits for it any more.
struct Asked<'a> {
    ledger: &'a SessionLedger,
    agent: String,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut inner = self.ledger.lock();
        let before = inner.asks.len();
        inner.asks.retain(|waiter| waiter.ask.agent != self.agent);
        if inner.asks.len() < before {
            inner.doing.insert(self.agent.clone(), Doing::Working);
        }
    }
}

impl Inner {
    /// These entries, and before them what the server said of prompts in flight, but for those that they
    /// settle.
    fn with_counted(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let settles = |agent: &str| {
            entries
                .iter()
                .any(|entry| matches!(entry, Entry::Settle { agent: settled, .. } if settled == agent))
        };
        let counted = self.counted.iter().filter(|(agent, _)| !settles(agent));
        let counted = counted.map(|(agent, &(call, attempt, prompt))| {
            let agent = agent.clone();
            Entry::Counted { agent, call, attempt, prompt }
        });
        let mut all: Vec<Entry> = counted.collect();
        all.extend(entries);
        all
    }

    /// What is in the journal, or over, is not carried again.
    fn forget_counted(&mut self) {
        let Inner { ledger, counted, .. } = self;
        counted.retain(|agent, &mut (call, attempt, _)| {
            let hold = ledger.hold_of(agent).filter(|hold| (hold.call, hold.attempt) == (call, attempt));
            let sent = hold.filter(|hold| hold.request.is_some()).and_then(|hold| hold.sent.as_ref());
            sent.is_some_and(|sent| sent.counted.is_none())
        });
    }

    /// Answers every ask that can be answered.
    fn serve(&mut self, at: u64) {
        while !self.asks.is_empty() {
            let mut ledger = self.ledger.clone();
            for granted in self.granted.values() {
                ledger.apply(&granted.clone().into(), at);
            }
            self.asks.iter_mut().for_each(|waiter| (waiter.renew)(&ledger, &mut waiter.ask));
            let asks: Vec<LedgerRequest> = self.asks.iter().map(|waiter| waiter.ask.clone()).collect();
            let busy = self.doing.iter().any(|(agent, doing)| doing.is_busy(ledger.hold_of(agent)));
            let mut answers = answer(&ledger, &asks, busy, at);
            if answers.is_empty() {
                return;
            }
            // From the back, so that the places of those in front stay.
            answers.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
            for (index, answer) in answers {
                let Waiter { ask, tell, .. } = self.asks.remove(index);
                let room = match answer {
                    LedgerAnswer::Go(room) | LedgerAnswer::HandBack(room, _) => Some(room),
                    LedgerAnswer::Refused(_) => None,
                };
                let doing = if room.is_some() { Doing::Flying } else { Doing::Working };
                if tell.send(answer).is_err() {
                    continue;
                }
                self.doing.insert(ask.agent.clone(), doing);
                if let Some(Room { request, hand_back, .. }) = room {
                    let LedgerRequest { agent, call, attempt, .. } = ask;
                    let event = RoomReserved {
                        agent: agent.clone(),
                        call,
                        attempt,
                        request,
                        hand_back,
                        sending: None,
                    };
                    self.granted.insert(agent, event);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_between_a_booked_reply_and_its_next_step_is_busy_and_one_in_flight_is_not() {
        let booked = LedgerHold::default();
        let in_flight = LedgerHold { request: Some(Amount::default()), ..LedgerHold::default() };
        let busy = |doing: Doing| [None, Some(&booked), Some(&in_flight)].map(|hold| doing.is_busy(hold));
        assert_eq!(busy(Doing::Flying), [true, true, false]);
        assert_eq!(busy(Doing::Working), [true; 3]);
        assert_eq!(busy(Doing::Asking), [false; 3]);
        assert_eq!(busy(Doing::Resting), [false; 3]);
    }
}
