//! A session's ledger as this process sees it, and the queue of those who want to spend. The rules are the kernel's; the
//! truth is the journal's: what is granted here counts only once the append that carries it has been committed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_journal::{Change, Changed, Journal, SignOfLife, StreamId, Update};
use convoke_kernel::{
    Amount, Answer, Ask, Caps, Fate, Hold, Ledger, LedgerEvent, Rates, Room, RoomReserved, Said, Sending, SessionId,
    answer,
};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::error::Error;

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

/// Something that is to be done to the ledger, in the transaction of the append it belongs to.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// A person sets the caps.
    Grant { caps: Caps, by: String },
    /// This process takes the session up.
    Hold { fates: Fates },
    /// It puts it down.
    Leave { process: String },
    /// A run starts this many agents.
    Admit { run: String, count: u32 },
    /// A run is over, gives back what it did not need, and keeps this many.
    CloseRun { run: String, used: u32 },
    /// An attempt is to be sent.
    Reserve { agent: String, call: u32, attempt: u32, room: Room, sent: Option<Make> },
    /// An attempt is over; without an amount, nobody knows what it cost.
    Settle { agent: String, call: u32, attempt: u32, usage: Option<Amount>, said: Option<Said> },
    /// What is known of attempts in flight: those whose sender will not settle them are settled.
    Lost { fates: Fates },
    /// A person writes off what no usage confirmed.
    Forgive { fates: Fates, by: String },
    /// An agent's history turned out no longer than this hand-back is reckoned for.
    Lower { agent: String, hand_back: Amount },
    /// An agent is over.
    Release { agent: String },
}

impl Entry {
    fn events(&self, ledger: &Ledger, process: &str, at: u64) -> Result<Vec<LedgerEvent>, String> {
        Ok(match self {
            Entry::Grant { caps, by } => ledger.grant(*caps, by),
            Entry::Hold { fates } => ledger.take_up(process, |agent, hold| fates.of(agent, hold)),
            Entry::Lost { fates } => ledger.settle_lost(|agent, hold| fates.of(agent, hold)),
            Entry::Forgive { fates, by } => {
                let lost = ledger.settle_lost(|agent, hold| fates.of(agent, hold));
                then(ledger, lost, at, |ledger| ledger.forgive(by))
            }
            Entry::Leave { process } => ledger.leave(process),
            Entry::Admit { run, count } => ledger.admit(run, *count).map_err(|short| short.to_string())?,
            Entry::CloseRun { run, used } => {
                let unused = ledger.give_back(run, ledger.admitted(run).saturating_sub(*used));
                then(ledger, unused, at, |ledger| ledger.close(run))
            }
            Entry::Reserve { agent, call, attempt, room, sent } => {
                let (amounts, sending) = ((room.request, room.hand_back), sending(process, room, sent.as_ref()));
                let mut after = ledger.clone();
                let mut events = ledger.cut_off(agent, process, at);
                events.iter().for_each(|event| after.apply(event, at));
                let sent = after.send(agent, *call, *attempt, amounts, sending);
                events.extend(sent.map_err(|short| short.to_string())?);
                events
            }
            Entry::Settle { agent, call, attempt, usage: None, said } => {
                let held = ledger.hold_of(agent).is_some_and(|hold| (hold.call, hold.attempt) == (*call, *attempt));
                let cut = if held { ledger.cut_off(agent, process, at) } else { Vec::new() };
                then(ledger, cut, at, |ledger| prompt_said(ledger, agent, *call, *said))
            }
            // An attempt that was settled before stays settled, or is corrected.
            Entry::Settle { agent, call, attempt, usage, said } => {
                let settled = ledger.settle_as_said(agent, *call, *attempt, *usage, *said).unwrap_or_default();
                then(ledger, settled, at, |ledger| prompt_said(ledger, agent, *call, *said))
            }
            Entry::Lower { agent, hand_back } => ledger.lower(agent, *hand_back),
            Entry::Release { agent } => ledger.release(agent),
        })
    }
}

/// What is known of the processes whose attempts are in flight, by their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fates {
    /// Agents that this process drives.
    driven: BTreeSet<String>,
    /// This process, and when it looked.
    own: (String, u64),
    others: BTreeMap<String, Fate>,
    /// The one agent that it is about, if it is about one.
    only: Option<String>,
}

impl Fates {
    fn of(&self, agent: &str, hold: &Hold) -> Fate {
        if self.only.as_ref().is_some_and(|only| only != agent) {
            return Fate::Lives;
        }
        let Some(sent) = &hold.sent else { return Fate::Unknown };
        let process = &sent.sending.process;
        match *process == self.own.0 {
            // An agent that is driven here has its attempt under way, unless it is the very one that is taken up.
            true if self.driven.contains(agent) => Fate::Lives,
            true => Fate::Ended { by: self.own.1 },
            // One that sent something after this process looked lives.
            false => self.others.get(process).copied().unwrap_or(Fate::Lives),
        }
    }
}

/// What an agent that sends a request is made of.
#[derive(Debug, Clone)]
pub(crate) struct Make {
    pub(crate) rates: Rates,
    pub(crate) kind: String,
    pub(crate) prefix: String,
}

fn sending(process: &str, room: &Room, make: Option<&Make>) -> Option<Sending> {
    let Room { max_tokens, input_tokens, .. } = *room;
    let Make { rates, kind, prefix } = make?.clone();
    Some(Sending { process: process.to_owned(), input_tokens, max_tokens, rates, kind, prefix })
}

fn prompt_said(ledger: &Ledger, agent: &str, call: u32, said: Option<Said>) -> Vec<LedgerEvent> {
    said.map_or_else(Vec::new, |said| ledger.confirm_prompt(agent, call, said.prompt_tokens))
}

/// These events, and what follows from the state they lead to.
fn then(
    ledger: &Ledger,
    mut events: Vec<LedgerEvent>,
    at: u64,
    next: impl FnOnce(&Ledger) -> Vec<LedgerEvent>,
) -> Vec<LedgerEvent> {
    let mut after = ledger.clone();
    events.iter().for_each(|event| after.apply(event, at));
    events.extend(next(&after));
    events
}

/// Makes the entries, one after the other, against the newest state.
fn book(entries: &[Entry], process: &str, state: Option<&str>, at: u64) -> Result<Changed, String> {
    let mut ledger: Ledger = match state {
        Some(state) => serde_json::from_str(state).map_err(|error| format!("the ledger cannot be read: {error}"))?,
        None => Ledger::default(),
    };
    let mut texts = Vec::new();
    for entry in entries {
        for event in entry.events(&ledger, process, at)? {
            ledger.apply(&event, at);
            texts.push(event.encode().map_err(|error| error.to_string())?);
        }
    }
    let state = serde_json::to_string(&ledger).map_err(|error| error.to_string())?;
    Ok(Changed { state, events: texts })
}

/// What became of a process of which the journal knows this. A process lives at most as long after its last heartbeat as its
/// leases do: without the next one it has ended, or it is stopped, which only one that is provably gone is not.
fn fate(sign: Option<SignOfLife>, now: u64) -> Fate {
    let Some(SignOfLife { gone, silent_for, lease_ttl }) = sign else { return Fate::Unknown };
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let latest = now.saturating_sub(ms(silent_for)).saturating_add(ms(lease_ttl));
    match gone {
        true => Fate::Ended { by: now.min(latest) },
        false if silent_for <= lease_ttl => Fate::Lives,
        false => Fate::Unknown,
    }
}

/// The purse of one session in this process. Clones share it.
#[derive(Clone)]
pub(crate) struct Purse {
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
    asks: Vec<Waiter>,
    doing: HashMap<String, Doing>,
    ages: HashMap<String, u64>,
}

/// Brings an ask up to what is known by now.
type Renew = Box<dyn Fn(&Ledger, &mut Ask) + Send>;

struct Waiter {
    ask: Ask,
    renew: Renew,
    tell: oneshot::Sender<Answer>,
}

impl Purse {
    /// Opens the purse as the journal has it.
    pub(crate) async fn open(journal: Journal, session: &SessionId, clock: Clock) -> Result<Self, Error> {
        let purse = Self { journal, stream: StreamId::from(session), clock, inner: Arc::default() };
        purse.reload().await?;
        Ok(purse)
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
        Update { stream: self.stream.clone(), change: Change::new(move |state| book(&entries, &process, state, at)) }
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
        let of_it = |(agent, _): &(&str, &Hold)| only.is_none_or(|only| only == *agent);
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
        let in_flight = |hold: &Hold| hold.request.is_some();
        if !self.ledger().hold_of(agent).is_some_and(in_flight) {
            return Ok(());
        }
        let fates = self.fates(Some(agent)).await?;
        self.enter(vec![Entry::Lost { fates }]).await
    }

    /// Takes over the state an append led to. Appends are answered in any order, so an older state is passed over.
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
        // What another process gave back may be what somebody here waits for.
        inner.serve(self.clock.now());
        Ok(())
    }

    /// Whether anybody waits for an answer.
    pub(crate) fn is_asked(&self) -> bool {
        !self.lock().asks.is_empty()
    }

    /// The ledger as this process knows it.
    pub(crate) fn ledger(&self) -> Ledger {
        self.lock().ledger.clone()
    }

    /// Says what an agent is doing now; `None` when it is no longer driven. Others may get their answer by it.
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

    /// Whether a wait until then is no use, because the minutes end long before; the milliseconds it would take, and those left.
    pub(crate) fn outlasts(&self, until: u64) -> Option<(u64, u64)> {
        self.lock().ledger.outlasts(until, self.clock.now())
    }

    /// Asks for room and waits for the answer. What the ask is reckoned from is looked up again whenever it may be answered, for
    /// what others were told meanwhile counts. Dropping the future takes the ask back.
    pub(crate) async fn ask(&self, mut ask: Ask, renew: impl Fn(&Ledger, &mut Ask) + Send + 'static) -> Answer {
        let agent = ask.agent.clone();
        let (tell, told) = oneshot::channel();
        let _asked = Asked { purse: self, agent: agent.clone() };
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
            // The other end lives in the purse and is only dropped with an answer.
            Err(_) => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes an ask back that nobody waits for any more.
struct Asked<'a> {
    purse: &'a Purse,
    agent: String,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut inner = self.purse.lock();
        let before = inner.asks.len();
        inner.asks.retain(|waiter| waiter.ask.agent != self.agent);
        if inner.asks.len() < before {
            inner.doing.insert(self.agent.clone(), Doing::Working);
        }
    }
}

impl Inner {
    /// Answers whoever can be answered.
    fn serve(&mut self, at: u64) {
        while !self.asks.is_empty() {
            let mut ledger = self.ledger.clone();
            for granted in self.granted.values() {
                ledger.apply(&granted.clone().into(), at);
            }
            self.asks.iter_mut().for_each(|waiter| (waiter.renew)(&ledger, &mut waiter.ask));
            let asks: Vec<Ask> = self.asks.iter().map(|waiter| waiter.ask.clone()).collect();
            let busy = self.doing.values().any(|doing| *doing == Doing::Working);
            let mut answers = answer(&ledger, &asks, busy, at);
            if answers.is_empty() {
                return;
            }
            // From the back, so that the places of those in front stay.
            answers.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
            for (index, answer) in answers {
                let Waiter { ask, tell, .. } = self.asks.remove(index);
                let room = match answer {
                    Answer::Go(room) | Answer::HandBack(room, _) => Some(room),
                    Answer::Refused(_) => None,
                };
                let doing = if room.is_some() { Doing::Flying } else { Doing::Working };
                if tell.send(answer).is_err() {
                    continue;
                }
                self.doing.insert(ask.agent.clone(), doing);
                if let Some(Room { request, hand_back, .. }) = room {
                    let Ask { agent, call, attempt, .. } = ask;
                    let event = RoomReserved { agent: agent.clone(), call, attempt, request, hand_back, sending: None };
                    self.granted.insert(agent, event);
                }
            }
        }
    }
}
