//! Sixty agents against a server that says little: pure on both sides, on a clock that jumps when nothing
//! else can happen.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_claude::RateLimits;

use super::{AdmissionRequest, Fate, Governor};
use crate::clock::Clock;

const MINUTE: u64 = 60_000;

/// What the server allows.
#[derive(Clone, Copy)]
pub(super) enum Allows {
    AtOnce(usize),
    /// More at once are told that it is overloaded.
    Carries(usize),
    PerMinute(u64),
}

/// The server: what it allows, how many it serves, and what it has seen.
struct Server {
    allows: Allows,
    running: usize,
    /// Requests left, in sixty-thousandths, and when that was.
    level: u64,
    at: u64,
    /// Milliseconds times requests running.
    served: u64,
    accepted: Vec<u64>,
    refused: Vec<u64>,
}

/// What a request is answered: the headers, and whether it was refused and for how long.
struct Answer {
    limits: RateLimits,
    refused: Option<Fate>,
}

impl Server {
    fn new(allows: Allows, now: u64) -> Self {
        let level = if let Allows::PerMinute(most) = allows { most * MINUTE } else { 0 };
        Self { allows, running: 0, level, at: now, served: 0, accepted: Vec::new(), refused: Vec::new() }
    }

    fn catch_up(&mut self, now: u64) {
        self.served += (now - self.at) * self.running as u64;
        if let Allows::PerMinute(most) = self.allows {
            self.level = (self.level + (now - self.at) * most).min(most * MINUTE);
        }
        self.at = now;
    }

    fn limits(&self) -> RateLimits {
        let Allows::PerMinute(limit) = self.allows else { return RateLimits::default() };
        let full_at = self.at + (limit * MINUTE - self.level).div_ceil(limit);
        let reset_at = Some(full_at.div_ceil(1_000) * 1_000);
        let requests = convoke_claude::Bucket { limit, remaining: self.level / MINUTE, reset_at };
        RateLimits { requests: Some(requests), ..RateLimits::default() }
    }

    fn arrive(&mut self, now: u64) -> Answer {
        self.catch_up(now);
        let retry_after_ms = match self.allows {
            Allows::AtOnce(most) | Allows::Carries(most) if self.running >= most => None,
            Allows::PerMinute(most) if self.level < MINUTE => {
                Some((MINUTE - self.level).div_ceil(most).div_ceil(1_000) * 1_000)
            }
            allows => {
                if let Allows::PerMinute(_) = allows {
                    self.level -= MINUTE;
                }
                self.running += 1;
                self.accepted.push(now);
                return Answer { limits: self.limits(), refused: None };
            }
        };
        self.refused.push(now);
        let refused = match self.allows {
            Allows::Carries(_) => Fate::Overloaded { retry_after_ms },
            Allows::AtOnce(_) | Allows::PerMinute(_) => Fate::Limited { retry_after_ms },
        };
        Answer { limits: self.limits(), refused: Some(refused) }
    }

    fn leave(&mut self, now: u64) {
        self.catch_up(now);
        self.running -= 1;
    }

    fn change(&mut self, allows: Allows, now: u64) {
        self.catch_up(now);
        *self = Self { running: self.running, ..Self::new(allows, now) };
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) % (high - low)
    }
}

pub(super) struct World {
    clock: Clock,
    governor: Governor,
    server: Mutex<Server>,
}

impl World {
    pub(super) async fn pass(&self, milliseconds: u64) {
        self.clock.sleep_until(self.clock.now() + milliseconds).await;
    }

    pub(super) fn governor(&self) -> &Governor {
        &self.governor
    }

    /// How many the server serves now, and how many it has refused.
    pub(super) fn served(&self) -> (usize, usize) {
        let server = self.server.lock().unwrap();
        (server.running, server.refused.len())
    }

    /// One request whose reply takes long, sent until it is taken. `begins` says whether the reply begins
    /// when the request arrives, or only at its end.
    pub(super) async fn long_request(&self, number: u64, reply: u64, begins: bool) {
        let mut dice = Dice(number);
        let mut refused = 0;
        loop {
            let conversation = Some(format!("c{number}"));
            let ask = AdmissionRequest { conversation, ..AdmissionRequest::default() };
            let permit = self.governor.admit(ask).await.unwrap();
            self.pass(dice.between(5, 80)).await;
            let answer = self.server.lock().unwrap().arrive(self.clock.now());
            permit.limits(&answer.limits);
            if let Some(fate) = answer.refused {
                permit.done(fate);
                self.pass(backoff(&mut dice, refused)).await;
                refused += 1;
                continue;
            }
            if begins {
                permit.began();
            }
            self.pass(reply).await;
            self.server.lock().unwrap().leave(self.clock.now());
            permit.done(Fate::Replied);
            return;
        }
    }

    /// Sends requests until one is replied to. After a refusal it waits by itself, as the kernel has it wait.
    async fn request(&self, dice: &mut Dice, slowest: u64) {
        let mut refused = 0_u32;
        loop {
            let permit = self.governor.admit(AdmissionRequest::default()).await.unwrap();
            self.pass(dice.between(5, 80)).await;
            let answer = self.server.lock().unwrap().arrive(self.clock.now());
            if let Some(fate) = answer.refused {
                permit.limits(&answer.limits);
                permit.done(fate);
                let told = if let Fate::Limited { retry_after_ms } = fate { retry_after_ms } else { None };
                self.pass(told.unwrap_or_else(|| backoff(dice, refused))).await;
                refused += 1;
                continue;
            }
            self.pass(dice.between(100, 900)).await;
            permit.limits(&answer.limits);
            permit.began();
            self.pass(dice.between(200, slowest)).await;
            self.server.lock().unwrap().leave(self.clock.now());
            if dice.between(0, 100) >= 5 {
                permit.done(Fate::Replied);
                return;
            }
            permit.done(Fate::OtherFailure);
        }
    }
}

/// What the kernel lets a conversation wait that was refused so often before.
fn backoff(dice: &mut Dice, refused: u32) -> u64 {
    let full = (500_u64 << refused.min(6)).min(32_000);
    full - dice.between(0, full / 4)
}

/// Runs on a thread of its own whose clock jumps to the next sleeper whenever no task can go on.
pub(super) fn on_jumping_time<F: Future>(
    most: usize,
    allows: Allows,
    run: impl FnOnce(Arc<World>) -> F,
) -> F::Output {
    let clock = Clock::stepped(MINUTE);
    let idle = clock.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .on_thread_park(move || {
            idle.advance_to_next();
        })
        .build()
        .unwrap();
    let governor = Governor::new(clock.clone(), most);
    let world = Arc::new(World { server: Mutex::new(Server::new(allows, clock.now())), governor, clock });
    let run = run(world);
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(120), run).await })
        .expect("everybody waits")
}

/// Sixty agents with work all the time, for six minutes a phase; the share of the limit that was used in
/// each, from the second minute on, and how many replies each agent got.
fn storm(most: usize, phases: &[Allows], slowest: u64) -> (Vec<f64>, Vec<u64>) {
    on_jumping_time(most, phases[0], |world| async move {
        let agents: Vec<_> = (0..60)
            .map(|seed| {
                let world = Arc::clone(&world);
                let replies = Arc::new(Mutex::new(0));
                let counter = Arc::clone(&replies);
                let task = tokio::spawn(async move {
                    let mut dice = Dice(seed);
                    loop {
                        world.request(&mut dice, slowest).await;
                        *counter.lock().unwrap() += 1;
                    }
                });
                (task, replies)
            })
            .collect();
        let mut shares = Vec::new();
        for allows in phases {
            world.server.lock().unwrap().change(*allows, world.clock.now());
            world.pass(MINUTE).await;
            let measure = || {
                let mut server = world.server.lock().unwrap();
                server.catch_up(world.clock.now());
                (server.served, server.accepted.len(), server.refused.len())
            };
            let before = measure();
            world.pass(5 * MINUTE).await;
            let after = measure();
            let share = match *allows {
                Allows::AtOnce(most) | Allows::Carries(most) => {
                    (after.0 - before.0) as f64 / (5 * MINUTE * most as u64) as f64
                }
                Allows::PerMinute(most) => (after.1 - before.1) as f64 / (5 * most) as f64,
            };
            let what = match allows {
                Allows::AtOnce(most) | Allows::Carries(most) => format!("{most} at once"),
                Allows::PerMinute(most) => format!("{most} a minute"),
            };
            println!(
                "{most} allowed, {what}, replies up to {slowest} ms: {:.1} % of the limit used, {} accepted, \
                    {} refused (first minute {}), window {}",
                share * 100.0,
                after.1 - before.1,
                after.2 - before.2,
                before.2,
                world.governor.stats().window
            );
            shares.push(share);
        }
        agents.iter().for_each(|(task, _)| task.abort());
        (shares, agents.iter().map(|(_, replies)| *replies.lock().unwrap()).collect())
    })
}

#[test]
fn from_the_second_minute_on_nine_tenths_of_any_limit_are_used_and_nobody_starves() {
    let check = |most: usize, phases: &[Allows], slowest: u64| {
        let (shares, replies) = storm(most, phases, slowest);
        assert!(shares.iter().all(|share| *share >= 0.9), "{shares:?}");
        let least = replies.iter().min().unwrap();
        let mean = replies.iter().sum::<u64>() / 60;
        assert!(least * 3 >= mean * 2, "one got {least} replies, the mean is {mean}");
    };
    check(10, &[Allows::AtOnce(5), Allows::PerMinute(50)], 4_000);
    check(10, &[Allows::AtOnce(5), Allows::PerMinute(50)], 1_000);
    check(10, &[Allows::AtOnce(5), Allows::PerMinute(50)], 12_000);
    check(10, &[Allows::PerMinute(50), Allows::AtOnce(5)], 4_000);
    check(10, &[Allows::AtOnce(3), Allows::AtOnce(8), Allows::PerMinute(100)], 4_000);
    check(64, &[Allows::AtOnce(5), Allows::PerMinute(50)], 4_000);
    check(64, &[Allows::AtOnce(25), Allows::PerMinute(300)], 8_000);
}

#[test]
fn w69_sixty_agents_with_twenty_requests_each_all_come_through_with_few_refusals() {
    let (accepted, refused) = on_jumping_time(10, Allows::PerMinute(50), |world| async move {
        let agents: Vec<_> = (0..60)
            .map(|seed| {
                let world = Arc::clone(&world);
                tokio::spawn(async move {
                    for turn in 0..20 {
                        world.request(&mut Dice(seed * 1_000 + turn), 4_000).await;
                    }
                })
            })
            .collect();
        for agent in agents {
            agent.await.unwrap();
        }
        let server = world.server.lock().unwrap();
        (server.accepted.len(), server.refused.len())
    });
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted >= 1_200);
    assert!(refused * 50 <= accepted, "{refused} refused of {accepted}");
}

/// Fifty agents with a few short requests each against a server that takes five at once: how much longer it
/// takes than it must, and how many requests were refused.
fn short_requests(seed: u64, agents: u64, requests: u64, reply: u64) -> (f64, usize) {
    on_jumping_time(10, Allows::AtOnce(5), |world| async move {
        let start = world.clock.now();
        let agents: Vec<_> = (0..agents)
            .map(|number| {
                let world = Arc::clone(&world);
                tokio::spawn(async move {
                    let mut dice = Dice(seed * 1_000 + number);
                    for _ in 0..requests {
                        world.short_request(&format!("c{number}"), &mut dice, reply).await;
                        world.pass(dice.between(1, 10)).await;
                    }
                })
            })
            .collect();
        let many = agents.len() as u64 * requests;
        for agent in agents {
            agent.await.unwrap();
        }
        let wall = (world.clock.now() - start) as f64 / (many * reply / 5) as f64;
        let refused = world.server.lock().unwrap().refused.len();
        (wall, refused)
    })
}

impl World {
    async fn short_request(&self, who: &str, dice: &mut Dice, reply: u64) {
        let mut refused = 0;
        loop {
            let ask = AdmissionRequest { conversation: Some(who.to_owned()), ..AdmissionRequest::default() };
            let permit = self.governor.admit(ask).await.unwrap();
            self.pass(1).await;
            let answer = self.server.lock().unwrap().arrive(self.clock.now());
            if let Some(fate) = answer.refused {
                permit.done(fate);
                self.pass(backoff(dice, refused)).await;
                refused += 1;
                assert!(refused < 10, "an agent would have given up");
                continue;
            }
            self.pass(reply).await;
            permit.began();
            self.server.lock().unwrap().leave(self.clock.now());
            permit.done(Fate::Replied);
            return;
        }
    }
}

#[test]
fn fifty_agents_with_short_requests_take_at_most_twice_as_long_as_the_server_allows() {
    for (agents, requests, reply) in [(50, 4, 50), (50, 20, 50), (50, 4, 500), (12, 4, 50)] {
        for seed in 1..=5 {
            let (wall, refused) = short_requests(seed, agents, requests, reply);
            println!(
                "seed {seed}: {agents} agents, {requests} requests of {reply} ms each, 5 at once: {wall:.2} \
                    times the limit, {refused} refused"
            );
            assert!(wall <= 2.0, "{wall}");
        }
    }
}
