//! A thousand random sessions: many agents, random prices, replies that use anything up to their bound, lost
//! replies, crashes and new grants. What must hold at every step is checked at every step.

use std::collections::BTreeMap;

use super::*;
use crate::ledger::ask::HAND_BACK_NOTE_TOKENS;

const SCHEDULES: u64 = 1_000;
const FIRST_SEED: u64 = 20_261_116;
const FLOOR: u32 = 8_000;

/// A small generator (an additive counter and a mixing step), so that a seed is all there is to know of a
/// schedule.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        for shift in [30, 27, 31] {
            mixed = (mixed ^ (mixed >> shift)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        mixed ^ (mixed >> 32)
    }

    /// From `least` to `most`, both included.
    pub(super) fn roll(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.roll(1, 100) <= percent
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    InFlight(Room),
    /// Runs a tool.
    Busy,
    /// The lead, until its workers are over.
    Blocked,
    Over,
}

struct Player {
    ask: LedgerRequest,
    state: State,
    /// Turns it needs.
    turns: u64,
    /// Prompt tokens as they really are; the ask bounds them.
    prompt: u64,
}

struct World {
    dice: Dice,
    book: Book,
    players: Vec<Player>,
    window: u64,
    /// The spent share of the cap, in percent, when an agent was last told that tokens or money are short.
    share: Option<u64>,
    refusals: u64,
    /// Whether time ended it; what is left over then says nothing about money.
    out_of_time: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice(seed);
        let window = dice.roll(20_000, 120_000);
        // Some have more work than any cap pays for, some a few turns only.
        let turns = if dice.chance(50) { 1_000_000 } else { dice.roll(3, 30) };
        let count = if dice.chance(20) { dice.roll(1, 3) } else { dice.roll(4, 64) };
        let prices: Vec<Rates> = (0..dice.roll(1, 3)).map(|_| random_rates(&mut dice, window)).collect();
        let mut players: Vec<Player> = Vec::new();
        for n in 0..count {
            let rates = prices[dice.roll(0, prices.len() as u64 - 1) as usize].clone();
            let prompt = dice.roll(500, window / 4);
            let wanted = if dice.chance(50) { 64_000 } else { dice.roll(1_000, 64_000) as u32 };
            let agent = if n == 0 { "lead".to_owned() } else { format!("a{n:02}") };
            let ask = LedgerRequest {
                wanted,
                floor: FLOOR,
                rates: Some(rates),
                input_tokens: prompt,
                ..ask(&agent, n)
            };
            let turns = if n == 0 { turns } else { dice.roll(1, turns) };
            players.push(Player { ask, state: State::Waiting, turns, prompt });
        }
        let mut world = World {
            dice,
            book: Book::default(),
            players,
            window,
            share: None,
            refusals: 0,
            out_of_time: false,
        };
        let caps = world.random_caps();
        world.book.keep(world.book.ledger.grant(caps, "person"));
        world.book.keep(world.book.ledger.hold("p0"));
        world
    }

    /// At least twenty times the dearest floor request there can be.
    fn random_caps(&mut self) -> Caps {
        let window = self.window;
        let dice = &mut self.dice;
        let bound = |rates: &Rates| rates.bound(window, FLOOR);
        let dearest =
            self.players.iter().filter_map(|player| player.ask.rates.as_ref().map(bound)).max().unwrap();
        let overhead =
            self.players.iter().filter_map(|p| p.ask.rates.as_ref()).map(|r| r.overhead_tokens).max();
        let largest = window + overhead.unwrap() + u64::from(FLOOR);
        let nano = dearest * dice.roll(20, 100);
        let tokens = largest * dice.roll(20, 100);
        let (nano, tokens) = match dice.roll(1, 3) {
            1 => (Some(nano), None),
            2 => (None, Some(tokens)),
            _ => (Some(nano), Some(tokens)),
        };
        Caps { agents: None, tokens, nano, ms: dice.chance(10).then(|| dice.roll(1_000, 60_000)) }
    }

    fn used(&self) -> Amount {
        self.book.ledger.spent().plus(self.book.ledger.held())
    }

    /// Keeps events, and checks that nothing grows beyond a cap.
    fn keep(&mut self, events: Vec<LedgerEvent>) {
        let before = self.used();
        self.book.keep(events);
        let after = self.used();
        let caps = self.book.ledger.caps();
        let check = |before: u64, after: u64, cap: Option<u64>| {
            // A person may lower a cap below what is used; from there on it only shrinks.
            assert!(cap.is_none_or(|cap| after <= cap.max(before)), "{before} -> {after} of {cap:?}");
        };
        check(before.tokens, after.tokens, caps.tokens);
        check(before.nano, after.nano, caps.nano);
    }

    fn play(&mut self) {
        let mut steps = 0;
        while self.players.iter().any(|player| player.state != State::Over) {
            steps += 1;
            assert!(steps < 200_000, "somebody waits for ever");
            self.book.at += self.dice.roll(0, 20);
            self.unblock();
            self.answer();
            match self.dice.roll(1, 1_000) {
                1..=3 => self.crash(),
                4 => {
                    let caps = self.random_caps();
                    self.keep(self.book.ledger.grant(caps, "person"));
                }
                _ => self.something_ends(),
            }
        }
        assert_eq!(self.book.ledger.held(), Amount::ZERO);
        self.check_rebuilt();
    }

    /// The lead goes on when all its workers are over.
    fn unblock(&mut self) {
        if self.players[0].state == State::Blocked && self.players[1..].iter().all(|p| p.state == State::Over)
        {
            self.players[0].state = State::Waiting;
        }
    }

    fn answer(&mut self) {
        let waiting: Vec<usize> =
            (0..self.players.len()).filter(|&n| self.players[n].state == State::Waiting).collect();
        let asks: Vec<LedgerRequest> = waiting.iter().map(|&n| self.players[n].ask.clone()).collect();
        let busy = self.players.iter().any(|player| player.state == State::Busy);
        let answers = answer(&self.book.ledger, &asks, busy, self.book.at);
        let flying = self.players.iter().any(|player| matches!(player.state, State::InFlight(_)));
        assert!(
            busy || flying || asks.is_empty() || !answers.is_empty(),
            "nothing is under way and nobody is answered"
        );
        for (index, answer) in answers {
            let n = waiting[index];
            let ask = &asks[index];
            if let LedgerAnswer::HandBack(_, short) | LedgerAnswer::Refused(short) = answer {
                self.note(short, n);
            }
            let room = match answer {
                LedgerAnswer::Refused(_) => {
                    self.players[n].state = State::Over;
                    self.keep(self.book.ledger.release(&ask.agent));
                    continue;
                }
                LedgerAnswer::Go(room) => room,
                LedgerAnswer::HandBack(room, _) => {
                    self.players[n].ask.last = true;
                    self.players[n].ask.input_tokens += HAND_BACK_NOTE_TOKENS;
                    self.players[n].prompt += self.dice.roll(0, HAND_BACK_NOTE_TOKENS);
                    room
                }
            };
            let decided =
                self.book.ledger.reserve(&ask.agent, ask.call, ask.attempt, room.request, room.hand_back);
            self.keep(decided.expect("what was granted can be reserved"));
            self.players[n].ask.started = true;
            self.players[n].state = State::InFlight(room);
        }
    }

    fn note(&mut self, short: Short, n: usize) {
        assert!(
            n != 0
                || self.players[1..].iter().all(|p| p.state != State::Waiting || !p.ask.started)
                || short.what == Cap::Minutes,
            "the lead gave way before a worker"
        );
        self.refusals += 1;
        if short.what == Cap::Minutes {
            self.out_of_time = true;
        } else {
            let caps = self.book.ledger.caps();
            let spent = self.book.ledger.spent();
            let part = |cap: Option<u64>, spent: u64| {
                cap.map_or(0, |cap| (u128::from(spent) * 100 / u128::from(cap)) as u64)
            };
            self.share = Some(part(caps.tokens, spent.tokens).max(part(caps.nano, spent.nano)));
        }
    }

    /// A reply comes, a tool ends.
    fn something_ends(&mut self) {
        let running: Vec<usize> = (0..self.players.len())
            .filter(|&n| matches!(self.players[n].state, State::InFlight(_) | State::Busy))
            .collect();
        if running.is_empty() {
            return;
        }
        let n = running[self.dice.roll(0, running.len() as u64 - 1) as usize];
        match self.players[n].state {
            State::InFlight(room) => self.attempt_ends(n, room),
            _ => self.players[n].state = State::Waiting,
        }
    }

    fn attempt_ends(&mut self, n: usize, room: Room) {
        let (agent, call, attempt) = {
            let ask = &self.players[n].ask;
            (ask.agent.clone(), ask.call, ask.attempt)
        };
        let (usage, replied) = match self.dice.roll(1, 20) {
            1 => (None, false),
            2 => (Some(Amount::ZERO), false),
            3..=6 => (Some(room.request), true),
            _ => (Some(self.bill(n, room)), true),
        };
        let settled = self.book.ledger.settle(&agent, call, attempt, usage).unwrap();
        self.keep(settled);
        assert!(self.book.ledger.settle(&agent, call, attempt, usage).is_err());
        let player = &mut self.players[n];
        if !replied {
            player.ask.attempt += 1;
            player.state = State::Waiting;
            return;
        }
        player.turns -= 1;
        if player.ask.last || player.turns == 0 {
            player.state = State::Over;
            let released = self.book.ledger.release(&agent);
            self.keep(released);
            return;
        }
        // The history grows by the reply and by what the tools said; a full window is compacted.
        let grown = player.prompt + self.dice.roll(0, u64::from(room.max_tokens)) + self.dice.roll(0, 4_000);
        player.prompt = if grown > self.window { self.window / 4 } else { grown };
        player.ask.input_tokens = (player.prompt + self.dice.roll(0, 2_000)).min(self.window);
        player.ask.hand_back_input = player.ask.input_tokens;
        player.ask.call = call + 1;
        player.ask.attempt = 1;
        player.state = match self.dice.roll(1, 10) {
            1..=4 => State::Busy,
            _ if n == 0 && self.dice.chance(30) => State::Blocked,
            _ => State::Waiting,
        };
    }

    /// What the server bills: the tier of the prompt as it really is, and some of the room.
    fn bill(&mut self, n: usize, room: Room) -> Amount {
        let player = &self.players[n];
        let rates = player.ask.rates.as_ref().unwrap();
        let prompt = player.prompt + self.dice.roll(0, rates.overhead_tokens);
        let reached = rates.tiers.iter().filter(|tier| tier.above == 0 || tier.above < prompt);
        let tier = reached.max_by_key(|tier| tier.above).unwrap();
        let output = self.dice.roll(0, u64::from(room.max_tokens));
        let billed = amount(
            prompt + output,
            prompt * self.dice.roll(tier.input / 10, tier.input) + output * tier.output,
        );
        assert!(billed.fits_in(room.request), "{billed:?} of {room:?}");
        billed
    }

    /// The process dies: what was in flight is lost, the state comes back from its row, which the journal
    /// agrees with.
    fn crash(&mut self) {
        self.check_rebuilt();
        let row = serde_json::to_string(&self.book.ledger).unwrap();
        self.book.ledger = serde_json::from_str(&row).unwrap();
        self.book.at += self.dice.roll(0, 100_000);
        self.keep(self.book.ledger.hold("p1"));
        for n in 0..self.players.len() {
            if matches!(self.players[n].state, State::InFlight(_)) {
                let ask = &self.players[n].ask;
                // Taking the session up has settled it; an outcome that comes after all is too late.
                assert!(self.book.ledger.settle(&ask.agent, ask.call, ask.attempt, None).is_err());
                self.players[n].ask.attempt += 1;
                self.players[n].state = State::Waiting;
            }
        }
    }

    fn check_rebuilt(&self) {
        let row = serde_json::to_string(&self.book.ledger).unwrap();
        assert_eq!(serde_json::from_str::<Ledger>(&row).unwrap(), self.book.ledger);
        assert_eq!(self.book.rebuilt(), self.book.ledger);
    }
}

fn random_rates(dice: &mut Dice, window: u64) -> Rates {
    let mut tier = |above| RateTier { above, input: dice.roll(100, 20_000), output: dice.roll(500, 90_000) };
    let mut tiers = vec![tier(0)];
    if window.is_multiple_of(2) {
        tiers.push(tier(window / 2));
    }
    Rates { tiers, overhead_tokens: dice.roll(0, 500), output_per_second: None }
}

#[test]
fn over_a_thousand_schedules_no_cap_is_passed_nobody_waits_for_ever_and_little_is_left_over() {
    let mut lowest = (u64::MAX, 0);
    let mut short = 0;
    let mut refusals = 0;
    let mut shares: BTreeMap<u64, u32> = BTreeMap::new();
    for seed in FIRST_SEED..FIRST_SEED + SCHEDULES {
        // On failure the harness shows the last seed.
        println!("seed {seed}");
        let mut world = World::new(seed);
        world.play();
        refusals += world.refusals;
        if let Some(share) = world.share.filter(|_| !world.out_of_time) {
            short += 1;
            *shares.entry(share / 5 * 5).or_default() += 1;
            lowest = lowest.min((share, seed));
        }
    }
    println!(
        "{short} of {SCHEDULES} ran short, {refusals} gave way; shares of the cap spent by then: {shares:?}"
    );
    println!("lowest share {} % (seed {})", lowest.0, lowest.1);
    assert!(short > SCHEDULES / 3, "only {short} schedules needed more than their cap");
    assert!(lowest.0 >= 80, "{lowest:?}");
}
