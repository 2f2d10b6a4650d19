//! Refusals in a fan-out, over real HTTP on a clock that the test moves: what one conversation is told holds
//! up no other, an overload that passes costs seconds, and one that lasts ends within five minutes.
//! `CONVOKE_SOAK_STORM=1` runs the full sizes. How time is moved is told in `storm.rs`.

use std::sync::Arc;
use std::time::Duration;

use convoke_kernel::{Caps, Event, FailureKind, ItemStatus, Outcome, RunEvent};
use convoke_runtime::{DriveMode, Governor, Notice, Stop};
use convoke_sim::{
    Brain, Context, Fault, FaultKind, RateLimits, Received, Script, Scripted, SimClock, SimConfig, calls,
    says, tool_use_id,
};
use serde_json::{Value, json};

use crate::storm::{Crowd, Injected};
use crate::support::Rig;
use crate::team::{report, role, workflow};

const FIVE_MINUTES: u64 = 300_000;

/// Workers that need a few replies each, of which each takes the same time.
struct Short {
    subtasks: Vec<String>,
    replies: usize,
    delay: u64,
}

impl Brain for Short {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        if role(request) == "lead" {
            let subtasks: Vec<&str> = self.subtasks.iter().map(String::as_str).collect();
            return Script::new()
                .conversation("*", [workflow(&subtasks), says("done")])
                .reply(request, context);
        }
        let reply = match context.position + 1 < self.replies {
            true => calls("note", json!({"position": context.position})),
            false => report("enough", Vec::new()),
        };
        let mut scripted =
            Script::new().conversation("*", vec![reply; context.position + 1]).reply(request, context);
        if let Some(block) = scripted.content.first_mut() {
            block["id"] = tool_use_id(context, "", 0).into();
        }
        scripted.delay = Duration::from_millis(self.delay);
        scripted
    }
}

struct Weather {
    agents: usize,
    replies: usize,
    delay: u64,
    faults: Vec<Fault>,
    limits: Option<RateLimits>,
    caps: Caps,
}

/// What it came to. Times are milliseconds since the first worker began.
struct Played {
    outcome: Option<Outcome>,
    /// When each item ended and as what, in the order of the items.
    items: Vec<(u64, ItemStatus)>,
    whole: u64,
    requests: Vec<Received>,
    /// How often a worker's request failed and was to be sent again.
    repeated: usize,
    /// How often all waiting requests were told to wait for a time.
    held: usize,
}

impl Played {
    fn last(&self) -> u64 {
        self.items.iter().map(|(at, _)| *at).max().unwrap()
    }

    fn refused(&self) -> usize {
        self.requests.iter().filter(|request| request.limited.is_some()).count()
    }

    fn all_well(&self) {
        assert!(self.items.iter().all(|(_, status)| *status == ItemStatus::Ok), "{:?}", self.items);
        assert_eq!(self.outcome, Some(Outcome::Ok { text: "done".into() }));
    }
}

impl Weather {
    fn new(agents: usize) -> Self {
        Self { agents, replies: 2, delay: 50, faults: Vec::new(), limits: None, caps: Caps::default() }
    }

    /// Every worker meets this on its first turn, so often.
    fn everywhere(mut self, kind: &FaultKind, times: u32) -> Self {
        let on = |number| Fault::new(kind.clone()).on(&format!("w{number}")).at(0).times(times);
        self.faults.extend((0..self.agents).map(on));
        self
    }

    async fn play(self) -> Played {
        tokio::time::timeout(Duration::from_secs(600), self.played()).await.expect("it does not end")
    }

    async fn played(self) -> Played {
        let clock = convoke_runtime::Clock::stepped(1_700_000_000_000);
        let subtasks =
            (0..self.agents).map(|number| format!("[conversation: w{number}] weather it")).collect();
        let mut config = SimConfig::new(Short { subtasks, replies: self.replies, delay: self.delay });
        config.clock = SimClock::Injected(Arc::new(Injected(clock.clone())));
        config.limits = self.limits;
        config.faults = self.faults;
        let mut rig = Rig::new(config).await;
        rig.clock = clock.clone();
        rig.caps = self.caps;
        let governor = Governor::new(clock.clone(), 10);
        rig.governor = Some(governor.clone());
        rig.agents_at_once = Some(self.agents);
        let mut fan_out = Rig::fanning_out();
        fan_out.voters = 0;
        rig.fan_out = Some(fan_out);
        let runtime = rig.life(None).await;
        let lead = runtime.start(rig.start(), "go").await.unwrap();
        let (watcher, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut crowd = Crowd::of(lead.clone());
        let driven =
            tokio::spawn(
                async move { runtime.drive(&lead, DriveMode::New, Stop::never(), Some(watcher)).await },
            );
        let mut began = None;
        let mut items: Vec<Option<(u64, ItemStatus)>> = vec![None; self.agents];
        let mut repeated = 0;
        let mut held = 0;
        let mut hear = |notice: Notice, crowd: &mut Crowd| {
            match &notice {
                Notice::Run { at, event, .. } => match &**event {
                    RunEvent::WorkerStarted(_) => drop(began.get_or_insert(*at)),
                    RunEvent::ItemEnded(e) => {
                        items[e.item as usize - 1] = Some((at - began.unwrap(), e.result.status.clone()));
                    }
                    _ => {}
                },
                Notice::Recorded { event, .. } => {
                    repeated +=
                        usize::from(matches!(&**event, Event::ModelFailed(e) if e.retry_at.is_some()));
                }
                Notice::Held { hold } => held += usize::from(hold.is_some()),
                _ => {}
            }
            crowd.hear(notice);
        };
        while !driven.is_finished() {
            tokio::task::yield_now().await;
            while let Ok(notice) = told.try_recv() {
                hear(notice, &mut crowd);
            }
            if crowd.all_wait(&governor, &clock, self.agents) {
                clock.advance_to_next();
            }
        }
        while let Ok(notice) = told.try_recv() {
            hear(notice, &mut crowd);
        }
        let outcome = driven.await.unwrap().unwrap().outcome;
        let items = items.into_iter().map(|item| item.expect("every item ends")).collect();
        let whole = clock.now() - began.unwrap();
        Played { outcome, items, whole, requests: rig.sim.requests(), repeated, held }
    }
}

fn full() -> bool {
    std::env::var_os("CONVOKE_SOAK_STORM").is_some()
}

#[tokio::test]
async fn two_overloads_on_the_first_turn_of_each_of_ten_workers_cost_seconds() {
    let played = Weather::new(10).everywhere(&FaultKind::Overloaded529, 2).play().await;
    let last = played.last();
    let repeated = played.repeated;
    println!(
        "ten workers, two 529s each: {last} ms in all, {repeated} requests were sent again, {} waits of all",
        played.held
    );
    played.all_well();
    assert_eq!(repeated, 20);
    assert!(last < 30_000, "{last} ms");
}

#[tokio::test]
async fn a_limit_that_one_conversation_is_told_holds_up_no_other() {
    for headers in [true, false] {
        let limited = FaultKind::RateLimited { retry_after: Some(3_600), headers };
        let mut weather = Weather::new(10);
        weather.faults.push(Fault::new(limited).on("w3").at(0));
        let played = weather.play().await;
        played.all_well();
        let others = played
            .items
            .iter()
            .enumerate()
            .filter(|(item, _)| *item != 3)
            .map(|(_, (at, _))| *at)
            .max()
            .unwrap();
        println!(
            "retry-after 3600 for one of ten: the others ended after {others} ms, that one after {} ms",
            played.items[3].0
        );
        assert!(others < 10_000, "{others} ms");
        assert!((3_600_000..3_700_000).contains(&played.items[3].0), "{}", played.items[3].0);
    }
}

#[tokio::test]
async fn a_wait_beyond_the_minutes_of_the_run_is_a_typed_end_and_no_wait() {
    let limited = FaultKind::RateLimited { retry_after: Some(3_600), headers: true };
    let mut weather = Weather::new(4);
    weather.faults.push(Fault::new(limited).on("w3").at(0));
    weather.caps = Caps { ms: Some(10 * 60_000), ..Caps::default() };
    let played = weather.play().await;
    let ItemStatus::Failed { kind, message } = &played.items[3].1 else { panic!("{:?}", played.items[3]) };
    println!("after {} ms: {message}", played.items[3].0);
    assert_eq!(*kind, FailureKind::RateLimited);
    assert!(message.contains("3600 s") && message.contains("599 s left"), "{message}");
    assert_eq!(played.outcome, Some(Outcome::Ok { text: "done".into() }), "the lead goes on");
    assert!(played.whole < 10_000, "{} ms", played.whole);
}

#[tokio::test]
async fn a_lasting_overload_ends_everybody_within_five_minutes_and_says_why() {
    let sizes = if full() { vec![10, 50, 200] } else { vec![10] };
    for agents in sizes {
        let mut weather = Weather::new(agents).everywhere(&FaultKind::Overloaded529, u32::MAX);
        // The lead, when it is told of them.
        weather.faults.push(Fault::new(FaultKind::Overloaded529).at(1).times(u32::MAX));
        let played = weather.play().await;
        let last = played.last();
        let whole = played.whole;
        println!(
            "{agents} workers, 529 for ever: the last ended after {last} ms, the run after {whole} ms, {} \
                requests",
            played.requests.len()
        );
        for (_, status) in &played.items {
            let ItemStatus::Failed { kind, message } = status else { panic!("{status:?}") };
            assert_eq!(*kind, FailureKind::Api);
            assert!(message.contains("529") || message.contains("given up"), "{message}");
        }
        let Some(Outcome::Failed { kind, message, .. }) = &played.outcome else {
            panic!("{:?}", played.outcome)
        };
        assert_eq!(*kind, FailureKind::Api, "{message}");
        assert!(last < FIVE_MINUTES && whole < FIVE_MINUTES, "{last} ms, {whole} ms");
    }
}

#[tokio::test]
async fn a_storm_of_short_requests_takes_at_most_twice_what_the_server_allows() {
    let (agents, replies) = if full() { (50, 4) } else { (20, 4) };
    let limits = RateLimits { concurrent: Some(5), ..RateLimits::default() };
    let weather = Weather { replies, delay: 50, limits: Some(limits), ..Weather::new(agents) };
    let played = weather.play().await;
    played.all_well();
    let limit = (agents * replies) as u64 * 50 / 5;
    let wall = played.last() as f64 / limit as f64;
    println!(
        "{agents} agents, {replies} replies of 50 ms each, 5 at once: {} ms are {wall:.2} times the limit, \
            {} refused",
        played.last(),
        played.refused()
    );
    assert!(wall <= 2.0, "{wall}");
}
