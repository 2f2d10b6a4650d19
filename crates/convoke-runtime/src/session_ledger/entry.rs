//! What is to be done to the ledger, and the function of its state that does it inside the transaction of an
//! append.

use std::collections::{BTreeMap, BTreeSet};

use convoke_journal::{Changed, SignOfLife};
use convoke_kernel::{
    Amount, Caps, Fate, Ledger, LedgerEvent, LedgerHold, Rates, ReportedTokens, Room, Sending,
};

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
    /// The server said what the prompt of an attempt takes, before it wrote the reply.
    Counted { agent: String, call: u32, attempt: u32, prompt: Amount },
    /// An attempt is over; without an amount, its cost is not known.
    Settle { agent: String, call: u32, attempt: u32, usage: Option<Amount>, said: Option<ReportedTokens> },
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
                let amounts = (room.request, room.hand_back);
                let sending = sending(process, room, sent.as_ref());
                let mut after = ledger.clone();
                let mut events = ledger.cut_off(agent, process, at);
                events.iter().for_each(|event| after.apply(event, at));
                let sent = after.send(agent, *call, *attempt, amounts, sending);
                events.extend(sent.map_err(|short| short.to_string())?);
                events
            }
            Entry::Settle { agent, call, attempt, usage: None, said } => {
                let held =
                    ledger.hold_of(agent).is_some_and(|hold| (hold.call, hold.attempt) == (*call, *attempt));
                let cut = if held { ledger.cut_off(agent, process, at) } else { Vec::new() };
                then(ledger, cut, at, |ledger| prompt_said(ledger, agent, *call, *said))
            }
            // An attempt that was settled before stays settled, or is corrected.
            Entry::Settle { agent, call, attempt, usage, said } => {
                let settled =
                    ledger.settle_as_said(agent, *call, *attempt, *usage, *said).unwrap_or_default();
                then(ledger, settled, at, |ledger| prompt_said(ledger, agent, *call, *said))
            }
            Entry::Counted { agent, call, attempt, prompt } => {
                ledger.counted(agent, (*call, *attempt), *prompt)
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
    pub(super) driven: BTreeSet<String>,
    /// This process, and when it looked.
    pub(super) own: (String, u64),
    pub(super) others: BTreeMap<String, Fate>,
    /// The one agent that it is about, if it is about one.
    pub(super) only: Option<String>,
}

impl Fates {
    fn of(&self, agent: &str, hold: &LedgerHold) -> Fate {
        if self.only.as_ref().is_some_and(|only| only != agent) {
            return Fate::Lives;
        }
        let Some(sent) = &hold.sent else { return Fate::Unknown };
        let process = &sent.sending.process;
        match *process == self.own.0 {
            // An agent that is driven here has its attempt under way, unless it is the very one that is taken
            // up.
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
    /// The most tokens behind what all agents of this make begin with, as long as no usage has told more.
    pub(crate) behind: Option<u64>,
}

fn sending(process: &str, room: &Room, make: Option<&Make>) -> Option<Sending> {
    let Room { max_tokens, input_tokens, .. } = *room;
    let Make { rates, kind, prefix, behind } = make?.clone();
    Some(Sending { process: process.to_owned(), input_tokens, max_tokens, rates, kind, prefix, behind })
}

fn prompt_said(ledger: &Ledger, agent: &str, call: u32, said: Option<ReportedTokens>) -> Vec<LedgerEvent> {
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
pub(super) fn book(
    entries: &[Entry],
    process: &str,
    state: Option<&str>,
    at: u64,
) -> Result<Changed, String> {
    let mut ledger: Ledger = match state {
        Some(state) => {
            serde_json::from_str(state).map_err(|error| format!("the ledger cannot be read: {error}"))?
        }
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

/// What became of a process of which the journal knows this. A process acts no longer after its last
/// heartbeat than its leases hold. One that is silent for longer has ended or is suspended: only one
/// that is provably gone has ended.
pub(super) fn fate(sign: Option<SignOfLife>, now: u64) -> Fate {
    let Some(SignOfLife { gone, silent_for, lease_ttl }) = sign else { return Fate::Unknown };
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let latest = now.saturating_sub(ms(silent_for)).saturating_add(ms(lease_ttl));
    match gone {
        true => Fate::Ended { by: now.min(latest) },
        false if silent_for <= lease_ttl => Fate::Lives,
        false => Fate::Unknown,
    }
}
