//! How much room one request gets: as much as it wants, less when many run at once, never less than its
//! floor.

use std::collections::BTreeSet;

use super::caps::{Amount, Cap, Caps, Short};
use super::rates::Rates;
use super::{Ledger, LedgerHold};

/// The room a hand-back gives its reply.
pub const HAND_BACK_TOKENS: u32 = 4_096;

/// The least room that a hand-back makes sense with.
pub const LEAST_HAND_BACK_TOKENS: u32 = 1_024;

/// Prompt tokens kept for the note that asks an agent to hand back: more than it has bytes.
pub(crate) const HAND_BACK_NOTE_TOKENS: u64 = 512;

/// While others are at work, one request may take one part in this many of what is left.
const CROWD: u128 = 4;

/// The hold for a hand-back of an agent whose prompt has at most so many tokens by then. Without a price it
/// is more than any agent can hold.
pub fn hand_back_hold(rates: Option<&Rates>, prompt_tokens: u64, reply_tokens: u32) -> Amount {
    let prompt = prompt_tokens.saturating_add(HAND_BACK_NOTE_TOKENS);
    let overhead = rates.map_or(0, |rates| rates.overhead_tokens);
    Amount {
        tokens: prompt.saturating_add(overhead).saturating_add(reply_tokens.into()),
        nano: rates.map_or(u64::MAX, |rates| rates.bound(prompt, reply_tokens)),
    }
}

/// An agent that wants to send a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRequest {
    /// The agent. It has nothing in flight; an attempt it still holds room for is a lost one.
    pub agent: String,
    /// Its age: lower is older.
    pub order: u64,
    /// Whether it is the lead.
    pub first: bool,
    /// Whether it has made a request before, so that it has something to hand back.
    pub started: bool,
    /// Whether this request is itself its hand-back (at its turn limit, or one that is sent again).
    pub last: bool,
    /// The number of the request.
    pub call: u32,
    /// The number of the attempt at it.
    pub attempt: u32,
    /// The most tokens its prompt can have, the overhead of the rates not counted.
    pub input_tokens: u64,
    /// The room it wants for the reply.
    pub wanted: u32,
    /// The least room it can work with.
    pub floor: u32,
    /// Whether a reply to this very request was cut already: then it gets all the room it wants if waiting
    /// for what is in flight can get it, so that a reply which is cut again was cut by the model's limit and
    /// not by the presence of others.
    pub whole: bool,
    /// The most tokens that the prompt of a hand-back after this turn can have. The reply of this turn and
    /// the note are left out: the ledger adds what it grants the one and a fixed allowance for the other.
    pub hand_back_input: u64,
    /// The room for the reply of that hand-back which is kept.
    pub hand_back_tokens: u32,
    /// What its model costs, if that is known.
    pub rates: Option<Rates>,
}

/// What a request may take. To be handed to [`Ledger::reserve`] as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The room for the reply.
    pub max_tokens: u32,
    /// The most tokens that the prompt can have, the overhead of the rates not counted.
    pub input_tokens: u64,
    /// The bound of the request.
    pub request: Amount,
    /// What is held for a hand-back after it.
    pub hand_back: Amount,
}

impl Ledger {
    /// The room for an ordinary request of this agent, now.
    pub fn room(&self, ask: &LedgerRequest, at: u64) -> Result<Room, Short> {
        if let Some(short) = self.out_of_time(at) {
            return Err(short);
        }
        let books = LedgerTotals::among(self, &[ask]);
        books.room(ask, self.hold_of(&ask.agent), books.requests > 0)
    }

    /// The room for the agent's hand-back, now: paid from what it holds for it and from what is free. Nothing
    /// is held after it. Allowed past the minutes cap.
    pub fn last_room(&self, ask: &LedgerRequest) -> Result<Room, Short> {
        LedgerTotals::among(self, &[ask]).last_room(ask, self.hold_of(&ask.agent))
    }

    pub(super) fn out_of_time(&self, at: u64) -> Option<Short> {
        let cap = self.caps().ms.filter(|_| self.ms_left(at) == Some(0))?;
        Some(Short { what: Cap::Minutes, needs: 0, left: 0, cap })
    }
}

impl LedgerRequest {
    /// The most that a request takes. Without a price it fits under no dollar cap at all, and counts tokens
    /// only where there is none.
    fn bound(&self, caps: Caps, input_tokens: u64, max_tokens: u32) -> Amount {
        let rates = self.rates.as_ref().filter(|rates| !rates.tiers.is_empty());
        let overhead = rates.map_or(0, |rates| rates.overhead_tokens);
        let unknown = if caps.nano.is_some() { u64::MAX } else { 0 };
        Amount {
            tokens: input_tokens.saturating_add(overhead).saturating_add(max_tokens.into()),
            nano: rates.map_or(unknown, |rates| rates.bound(input_tokens, max_tokens)),
        }
    }

    fn ordinary(&self, caps: Caps, max_tokens: u32) -> Room {
        let after =
            self.hand_back_input.saturating_add(max_tokens.into()).saturating_add(HAND_BACK_NOTE_TOKENS);
        Room {
            max_tokens,
            input_tokens: self.input_tokens,
            request: self.bound(caps, self.input_tokens, max_tokens),
            hand_back: self.bound(caps, after, self.hand_back_tokens),
        }
    }

    fn hand_back(&self, caps: Caps, max_tokens: u32) -> Room {
        // The prompt of a request that is a hand-back already holds the note.
        let note = if self.last { 0 } else { HAND_BACK_NOTE_TOKENS };
        let input_tokens = self.input_tokens.saturating_add(note);
        let request = self.bound(caps, input_tokens, max_tokens);
        Room { max_tokens, input_tokens, request, hand_back: Amount::ZERO }
    }

    /// The least room that its hand-back makes sense with: less than usual where so little is kept for it,
    /// because such replies were seen to take less.
    fn least_hand_back(&self) -> u32 {
        LEAST_HAND_BACK_TOKENS.min(self.hand_back_tokens)
    }

    /// The least that the request makes sense with.
    fn least(&self, caps: Caps) -> Room {
        if self.last {
            self.hand_back(caps, self.least_hand_back())
        } else {
            self.ordinary(caps, self.floor.min(self.wanted))
        }
    }
}

/// An exact sum: no number of amounts that fits into memory overflows it, so that taking one out again is
/// exact too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    tokens: u128,
    nano: u128,
}

impl Sum {
    fn of(amounts: &[Amount]) -> Sum {
        amounts.iter().fold(Sum::default(), |sum, amount| sum.plus(*amount))
    }

    fn plus(self, amount: Amount) -> Sum {
        Sum { tokens: self.tokens + u128::from(amount.tokens), nano: self.nano + u128::from(amount.nano) }
    }

    fn minus(self, amount: Amount) -> Sum {
        Sum {
            tokens: self.tokens.saturating_sub(amount.tokens.into()),
            nano: self.nano.saturating_sub(amount.nano.into()),
        }
    }
}

/// The ledger added up, so that a whole queue can be answered without adding it up again for each ask.
#[derive(Debug, Clone)]
pub(super) struct LedgerTotals {
    caps: Caps,
    /// Spent and held.
    used: Sum,
    /// The part of it that attempts in flight hold; settling them may free it.
    flying: Sum,
    /// The part of it that hand-backs hold.
    hand_backs: Sum,
    /// Attempts in flight.
    pub(super) requests: usize,
}

impl LedgerTotals {
    pub(super) fn of(ledger: &Ledger) -> LedgerTotals {
        LedgerTotals::among(ledger, &[])
    }

    /// The books as these asks see them: an agent that asks has nothing in flight.
    pub(super) fn among(ledger: &Ledger, asks: &[&LedgerRequest]) -> LedgerTotals {
        let asking: BTreeSet<&str> = asks.iter().map(|ask| ask.agent.as_str()).collect();
        let mut books = LedgerTotals {
            caps: ledger.caps(),
            used: Sum::of(&[ledger.spent()]),
            flying: Sum::default(),
            hand_backs: Sum::default(),
            requests: 0,
        };
        for (agent, hold) in ledger.holds() {
            books.used = books.used.plus(hold.hand_back);
            books.hand_backs = books.hand_backs.plus(hold.hand_back);
            if let Some(request) = hold.request {
                books.used = books.used.plus(request);
                if !asking.contains(agent) {
                    books.flying = books.flying.plus(request);
                    books.requests += 1;
                }
            }
        }
        books
    }

    /// Counts what was just granted to an agent that held `own`.
    pub(super) fn take(&mut self, own: Option<&LedgerHold>, room: &Room) {
        let own = own.map_or(Amount::ZERO, |hold| hold.hand_back);
        self.used = self.used.minus(own).plus(room.request).plus(room.hand_back);
        self.hand_backs = self.hand_backs.minus(own).plus(room.hand_back);
        self.flying = self.flying.plus(room.request);
        self.requests += 1;
    }

    /// What keeps `needs` from an agent that gives up `own` for it.
    pub(super) fn short(&self, own: Amount, needs: &[Amount]) -> Option<Short> {
        let used = self.used.minus(own);
        let needs = Sum::of(needs);
        let check = |what, cap: Option<u64>, used: u128, needs: u128| {
            let cap = cap?;
            let left = u128::from(cap).saturating_sub(used);
            let small = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
            (needs > left).then(|| Short { what, needs: small(needs), left: small(left), cap })
        };
        check(Cap::Tokens, self.caps.tokens, used.tokens, needs.tokens)
            .or_else(|| check(Cap::Dollars, self.caps.nano, used.nano, needs.nano))
    }

    /// The room for an ordinary request; `crowded` when others are at work or want to be.
    pub(super) fn room(
        &self,
        ask: &LedgerRequest,
        own: Option<&LedgerHold>,
        crowded: bool,
    ) -> Result<Room, Short> {
        let own = own.map_or(Amount::ZERO, |hold| hold.hand_back);
        let fits = |max_tokens| {
            let room = ask.ordinary(self.caps, max_tokens);
            let modest = !crowded || self.is_modest(own, room.request);
            modest && self.short(own, &[room.request, room.hand_back]).is_none()
        };
        let least = ask.least(self.caps);
        match self.short(own, &[least.request, least.hand_back]) {
            Some(short) => Err(short),
            None => Ok(ask.ordinary(self.caps, largest(least.max_tokens, ask.wanted, fits))),
        }
    }

    /// The room for a hand-back.
    pub(super) fn last_room(&self, ask: &LedgerRequest, own: Option<&LedgerHold>) -> Result<Room, Short> {
        let own = own.map_or(Amount::ZERO, |hold| hold.hand_back);
        let fits = |max_tokens| self.short(own, &[ask.hand_back(self.caps, max_tokens).request]).is_none();
        let least = ask.hand_back(self.caps, ask.least_hand_back());
        match self.short(own, &[least.request]) {
            Some(short) => Err(short),
            None => Ok(ask.hand_back(self.caps, largest(least.max_tokens, HAND_BACK_TOKENS, fits))),
        }
    }

    /// All the room that a request wants, however many others are at work.
    pub(super) fn whole_room(&self, ask: &LedgerRequest, own: Option<&LedgerHold>) -> Option<Room> {
        let own = own.map_or(Amount::ZERO, |hold| hold.hand_back);
        let room = ask.ordinary(self.caps, ask.wanted);
        self.short(own, &[room.request, room.hand_back]).is_none().then_some(room)
    }

    /// Whether the ask would fit if everything in flight turned out to cost nothing.
    pub(super) fn may_fit_later(&self, ask: &LedgerRequest, own: Option<&LedgerHold>) -> bool {
        self.fits_later(&ask.least(self.caps), own)
    }

    /// The same for all the room that it wants.
    pub(super) fn whole_may_fit_later(&self, ask: &LedgerRequest, own: Option<&LedgerHold>) -> bool {
        self.fits_later(&ask.ordinary(self.caps, ask.wanted), own)
    }

    fn fits_later(&self, room: &Room, own: Option<&LedgerHold>) -> bool {
        let own = own.map_or(Amount::ZERO, |hold| hold.hand_back);
        let used = Sum {
            tokens: self.used.tokens.saturating_sub(self.flying.tokens),
            nano: self.used.nano.saturating_sub(self.flying.nano),
        };
        LedgerTotals { used, ..self.clone() }.short(own, &[room.request, room.hand_back]).is_none()
    }

    /// Whether hand-backs, this one included, hold no more than one part in `parts` of what is not spent yet.
    /// An agent whose first request failed holds its own already; counted twice, it would wait for room until
    /// the others have given up.
    pub(super) fn can_carry(
        &self,
        room: &Room,
        own: Option<&LedgerHold>,
        spent: Amount,
        parts: u128,
    ) -> bool {
        let own = own.map_or(Amount::ZERO, |hold| hold.hand_back);
        let held = self.hand_backs.minus(own).plus(room.hand_back);
        let within = |cap: Option<u64>, spent: u64, held: u128| {
            cap.is_none_or(|cap| held.saturating_mul(parts) <= u128::from(cap.saturating_sub(spent)))
        };
        within(self.caps.tokens, spent.tokens, held.tokens) && within(self.caps.nano, spent.nano, held.nano)
    }

    fn is_modest(&self, own: Amount, request: Amount) -> bool {
        let used = self.used.minus(own);
        let within = |cap: Option<u64>, used: u128, request: u64| {
            cap.is_none_or(|cap| u128::from(request) * CROWD <= u128::from(cap).saturating_sub(used))
        };
        within(self.caps.tokens, used.tokens, request.tokens)
            && within(self.caps.nano, used.nano, request.nano)
    }
}

/// The largest number from `least` to `most` that fits; `least` is known to. What fits shrinks with the
/// number.
fn largest(least: u32, most: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let mut good = least;
    let mut bad = most.max(least).saturating_add(1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}
