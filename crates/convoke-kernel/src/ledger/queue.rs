//! Which request goes next when money or time is short. Looks at all asks that wait, answers those that can
//! be answered, and leaves the rest waiting.
//!
//! **Why no ask waits for ever.** [`answer`] leaves asks unanswered only while something is under way: an
//! attempt in flight (it will be settled) or an agent at work (it will ask, rest or end). Each of these ends
//! by itself, and every end is a reason to look again. If nothing is under way and asks wait, at least one is
//! answered: either one fits and goes, or one gives way. An agent that gives way sends at most its hand-back
//! and then ends, so what it held comes free and there is one fewer; an agent that goes either spends, which
//! has an end, or fails, and the kernel counts attempts. So the queue empties.
//!
//! **Why little is left over.** A worker gives way only when nothing fits and nothing is in flight, one at a
//! time, so its freed hold goes to the others first. New agents are not started while hand-backs already hold
//! a large part of what is left, for an agent that is started and then has to give way is money spent on work
//! cut short. This is measured (`tests/schedules.rs`), not proved: many started agents with little work left
//! each can still leave more than a fifth.

use std::collections::BTreeSet;

use super::Ledger;
use super::ask::{LedgerRequest, LedgerTotals, Room};
use super::caps::Short;

/// A new agent starts only while all hand-backs together hold at most one part in this many of what is not
/// spent.
const CARRIED: u128 = 3;

/// The answer to an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerAnswer {
    /// Send the request, with this room.
    Go(Room),
    /// Do not send it: hand back what there is, with this room. Says what is short.
    HandBack(Room, Short),
    /// Send nothing more and end. Says what is short.
    Refused(Short),
}

/// Answers those asks that can be answered now, by their index; the others keep waiting. Look again after
/// every settled attempt, release, new ask and grant.
///
/// `busy` says that some agent is at work on something other than a request (a tool runs, a reply
/// is being taken in, a refused agent has not released its hold yet) and will ask, rest or end
/// without anything from here. An agent that waits for its children or for mail is not busy. While
/// an agent is busy, none is made to give way.
pub fn answer(ledger: &Ledger, asks: &[LedgerRequest], busy: bool, at: u64) -> Vec<(usize, LedgerAnswer)> {
    let mut pass = QueuePass::new(ledger, asks, busy);
    if let Some(short) = ledger.out_of_time(at) {
        pass.wind_up(short);
        return pass.answers;
    }
    pass.serve();
    if pass.answers.is_empty() && !pass.under_way() {
        pass.start_one();
    }
    if pass.answers.is_empty() && !pass.under_way() {
        pass.give_way();
    }
    pass.answers
}

struct QueuePass<'a> {
    ledger: &'a Ledger,
    asks: &'a [LedgerRequest],
    /// Hand-backs, the lead, started agents, new ones; within each the oldest first.
    order: Vec<usize>,
    books: LedgerTotals,
    busy: bool,
    /// Whether others are at work or want to be.
    crowded: bool,
    answers: Vec<(usize, LedgerAnswer)>,
}

impl<'a> QueuePass<'a> {
    fn new(ledger: &'a Ledger, asks: &'a [LedgerRequest], busy: bool) -> QueuePass<'a> {
        let mut order: Vec<usize> = (0..asks.len()).collect();
        order.sort_by_key(|&index| {
            let ask = &asks[index];
            (!ask.last, !ask.first, !ask.started, ask.order)
        });
        // An agent has one request at a time: its hold can pay for one answer only.
        let mut seen = BTreeSet::new();
        order.retain(|&index| seen.insert(asks[index].agent.as_str()));
        let books = LedgerTotals::among(ledger, &asks.iter().collect::<Vec<_>>());
        let crowded = books.requests > 0 || busy || order.len() > 1;
        QueuePass { ledger, asks, order, books, busy, crowded, answers: Vec::new() }
    }

    fn under_way(&self) -> bool {
        self.busy || self.books.requests > 0
    }

    /// Grants in order what fits. An ask that does not fit now but may when what is in flight is settled is
    /// not overtaken: otherwise small requests would keep a large one waiting until the money is gone.
    fn serve(&mut self) {
        for index in self.order.clone() {
            let ask = &self.asks[index];
            let own = self.ledger.hold_of(&ask.agent);
            let whole = ask.whole && !ask.last;
            let room = match self.books.whole_room(ask, own).filter(|_| whole) {
                Some(room) => Ok(room),
                None if whole && self.books.whole_may_fit_later(ask, own) => return,
                None if ask.last => self.books.last_room(ask, own),
                None => self.books.room(ask, own, self.crowded),
            };
            match room {
                Ok(room)
                    if ask.is_new()
                        && !ask.first
                        && !self.books.can_carry(&room, own, self.ledger.spent(), CARRIED) =>
                {
                    return;
                }
                Ok(room) => self.go(index, room),
                Err(_) if self.books.requests > 0 && self.books.may_fit_later(ask, own) => return,
                Err(_) => {}
            }
        }
    }

    /// Nothing is under way and no worker waits that has begun: one new agent goes although hand-backs hold
    /// much.
    fn start_one(&mut self) {
        if self.asks.iter().any(LedgerRequest::is_worker_at_work) {
            return;
        }
        for index in self.order.clone() {
            let ask = &self.asks[index];
            if ask.is_new()
                && let Ok(room) = self.books.room(ask, self.ledger.hold_of(&ask.agent), self.crowded)
            {
                return self.go(index, room);
            }
        }
    }

    /// Nothing is under way and nothing fits. One worker gives way: the youngest that can still hand back, or
    /// else the youngest. When no worker is left that has begun, nothing will come free any more: the lead
    /// gives way and the new ones are refused.
    fn give_way(&mut self) {
        let begun = self.workers_youngest_first();
        if let Some(&youngest) = begun.first() {
            let able = begun.into_iter().find(|&index| self.hand_back_room(index).is_ok());
            return self.end(able.unwrap_or(youngest));
        }
        for index in self.order.clone() {
            self.end(index);
        }
    }

    /// The minutes are used up: agents that have something hand it back at once, and no new one
    /// begins. Hand-backs that do not fit wait for those that do; only when none fits and nothing is
    /// under way is one refused, the lead last.
    fn wind_up(&mut self, short: Short) {
        for index in self.order.clone() {
            let ask = &self.asks[index];
            if ask.is_new() {
                self.answers.push((index, LedgerAnswer::Refused(short)));
                continue;
            }
            match self.hand_back_room(index) {
                Ok(room) if ask.last => self.go(index, room),
                Ok(room) => self.hand_back(index, room, short),
                Err(_) => {}
            }
        }
        if self.under_way() {
            return;
        }
        let begun = self.order.iter().copied().filter(|&index| !self.asks[index].is_new());
        if let Some(index) = self.workers_youngest_first().into_iter().chain(begun).next()
            && let Err(short) = self.hand_back_room(index)
        {
            self.answers.push((index, LedgerAnswer::Refused(short)));
        }
    }

    fn workers_youngest_first(&self) -> Vec<usize> {
        let mut begun: Vec<usize> =
            self.order.iter().copied().filter(|&index| self.asks[index].is_worker_at_work()).collect();
        begun.sort_by_key(|&index| std::cmp::Reverse(self.asks[index].order));
        begun
    }

    /// The agent's work ends here: with its hand-back if it has something and that fits, else at once.
    fn end(&mut self, index: usize) {
        let ask = &self.asks[index];
        let wanted = if ask.last {
            self.hand_back_room(index)
        } else {
            self.books.room(ask, self.ledger.hold_of(&ask.agent), false)
        };
        let Err(short) = wanted else { return };
        match self.hand_back_room(index) {
            Ok(room) if ask.started && !ask.last => self.hand_back(index, room, short),
            _ => self.answers.push((index, LedgerAnswer::Refused(short))),
        }
    }

    fn hand_back_room(&self, index: usize) -> Result<Room, Short> {
        let ask = &self.asks[index];
        self.books.last_room(ask, self.ledger.hold_of(&ask.agent))
    }

    fn go(&mut self, index: usize, room: Room) {
        self.books.take(self.ledger.hold_of(&self.asks[index].agent), &room);
        self.answers.push((index, LedgerAnswer::Go(room)));
    }

    fn hand_back(&mut self, index: usize, room: Room, short: Short) {
        self.books.take(self.ledger.hold_of(&self.asks[index].agent), &room);
        self.answers.push((index, LedgerAnswer::HandBack(room, short)));
    }
}

impl LedgerRequest {
    fn is_new(&self) -> bool {
        !self.started && !self.last
    }

    fn is_worker_at_work(&self) -> bool {
        !self.first && !self.is_new()
    }
}
