//! Sixty agents against a server with a small limit, over real HTTP, on a clock that a test moves: none of
//! them fails, and the limit is used. `CONVOKE_SOAK_STORM=1` runs the full size; without it there are twelve
//! agents and two minutes a phase.
//!
//! Time moves only when nothing can happen without it. Everything runs on one thread, so what the driver
//! reads between two of its own awaits belongs together. Every agent with work is in exactly one of these
//! states: it waits in the governor's queue; it sleeps on the clock before it repeats a request; its request
//! lies at the server, whose delays sleep on the same clock; or it is anywhere else (on the wire, in the
//! journal, in a shell, about to be polled). Only the first three are counted, none of them twice but for the
//! first in the queue, which also keeps the time. So if the counts add up to the number of agents, no agent
//! is anywhere else. A thread or a socket that is slow makes the test wait and changes no figure.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke_kernel::{AgentId, Event, ItemStatus, Outcome, RunEvent};
use convoke_runtime::{Clock, DriveMode, Governor, Notice, Stop};
use convoke_sim::{
    Brain, Context, Fault, FaultKind, RateLimits, Received, Script, Scripted, SimClock, SimConfig, Time,
    calls, says, tool_use_id,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::support::Rig;
use crate::team::{report, role, workflow};

const MINUTE: u64 = 60_000;
const AT_ONCE: usize = 5;
const A_MINUTE: u64 = 50;
/// Of a hundred streams so many are cut.
const CUT: u64 = 5;

pub(crate) struct Injected(pub(crate) Clock);

impl Time for Injected {
    fn now(&self) -> u64 {
        self.0.now()
    }

    fn sleep_until(&self, until: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.sleep_until(until))
    }
}

/// Numbers that look random and are the same for the same seed.
fn draw(seed: u64, below: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33) % below
}

/// Workers that have work until they are told that it is enough.
struct Busy {
    subtasks: Vec<String>,
    enough: Arc<AtomicBool>,
    seed: u64,
}

impl Brain for Busy {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        if role(request) == "lead" {
            let subtasks: Vec<&str> = self.subtasks.iter().map(String::as_str).collect();
            return Script::new()
                .conversation("*", [workflow(&subtasks), says("done")])
                .reply(request, context);
        }
        let reply = match context.position {
            0 => calls("bash", json!({"command": "true"})),
            _ if self.enough.load(Ordering::SeqCst) => report("enough", Vec::new()),
            _ => calls("note", json!({"position": context.position})),
        };
        let mut scripted =
            Script::new().conversation("*", vec![reply; context.position + 1]).reply(request, context);
        if let Some(block) = scripted.content.first_mut() {
            block["id"] = tool_use_id(context, "", 0).into();
        }
        let number = context.conversation.bytes().fold(self.seed, |sum, byte| sum * 31 + u64::from(byte));
        scripted.delay = Duration::from_millis(100 + draw(number + context.position as u64, 800));
        scripted
    }
}

/// The agents that have work, by what is recorded.
#[derive(Default)]
pub(crate) struct Crowd {
    lead: Option<AgentId>,
    /// The lead, while it does not wait for its workers.
    lead_works: bool,
    started: usize,
    ended: usize,
    failed: Vec<String>,
}

impl Crowd {
    pub(crate) fn of(lead: AgentId) -> Self {
        Self { lead: Some(lead), ..Self::default() }
    }

    /// Whether nothing can happen before time moves, once so many workers have begun.
    pub(crate) fn all_wait(&self, governor: &Governor, clock: &Clock, agents: usize) -> bool {
        let stats = governor.stats();
        let keeper = usize::from(stats.waiting > 0 && stats.looks_again_at.is_some());
        let all_there = self.started == 0 || self.started == agents;
        all_there && stats.waiting + clock.sleepers() == self.with_work() + keeper
    }

    pub(crate) fn hear(&mut self, notice: Notice) {
        match notice {
            Notice::Recorded { agent, event, .. } if Some(&agent) == self.lead.as_ref() => match *event {
                Event::ExchangeOpened(_) | Event::ToolFinished(_) => self.lead_works = true,
                Event::ToolStarted(_) | Event::ExchangeClosed(_) => self.lead_works = false,
                _ => {}
            },
            Notice::Run { event, .. } => match *event {
                RunEvent::WorkerStarted(_) => self.started += 1,
                RunEvent::ItemEnded(e) => {
                    self.ended += 1;
                    if e.result.status != ItemStatus::Ok {
                        self.failed.push(format!("item {}: {:?}", e.item, e.result.status));
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn with_work(&self) -> usize {
        self.started - self.ended + usize::from(self.lead_works)
    }
}

struct Storm {
    agents: usize,
    minutes: u64,
    seed: u64,
}

/// What the server did in one minute.
struct Minute {
    phase: &'static str,
    number: u64,
    used: f64,
    refused: usize,
    with_work: usize,
}

impl Storm {
    async fn play(&self) -> Vec<Minute> {
        let clock = Clock::stepped(1_700_000_000_000);
        let enough = Arc::new(AtomicBool::new(false));
        let subtasks =
            (0..self.agents).map(|number| format!("[conversation: w{number}] weather it")).collect();
        let mut config = SimConfig::new(Busy { subtasks, enough: Arc::clone(&enough), seed: self.seed });
        config.clock = SimClock::Injected(Arc::new(Injected(clock.clone())));
        config.limits = Some(RateLimits { concurrent: Some(AT_ONCE), ..RateLimits::default() });
        config.faults = self.faults();
        let mut rig = Rig::new(config).await;
        rig.clock = clock.clone();
        let governor = Governor::new(clock.clone(), 10);
        rig.governor = Some(governor.clone());
        rig.agents_at_once = Some(self.agents);
        let mut fan_out = Rig::fanning_out();
        fan_out.voters = 0;
        fan_out.child.limits.max_turns = 100_000;
        rig.fan_out = Some(fan_out);
        let runtime = rig.life(None).await;
        let lead = runtime.start(rig.start(), "go").await.unwrap();
        let (watcher, told) = tokio::sync::mpsc::unbounded_channel();
        let mut crowd = Crowd::of(lead.clone());
        let driven =
            tokio::spawn(
                async move { runtime.drive(&lead, DriveMode::New, Stop::never(), Some(watcher)).await },
            );
        let (began, with_work) = self.keep_time(&rig, &governor, &enough, &mut crowd, told, &driven).await;
        let ended = driven.await.unwrap().unwrap();
        assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
        assert_eq!((crowd.failed.as_slice(), crowd.ended), ([].as_slice(), self.agents), "nobody is lost");
        let requests = rig.sim.requests();
        let cut =
            requests.iter().filter(|request| matches!(request.fault, Some(FaultKind::CutAfter(_)))).count();
        println!(
            "{cut} of {} streams were cut",
            requests.iter().filter(|request| request.limited.is_none()).count()
        );
        assert!(cut > 0, "the storm must have hit something");
        self.measure(&requests, began, &with_work)
    }

    /// Cuts at random places, and replies that take their time everywhere else.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for agent in 0..self.agents as u64 {
            for position in 0..40 * self.minutes {
                let number = self.seed + agent * 100_000 + position;
                if draw(number, 100) < CUT {
                    let cut = FaultKind::CutAfter(1 + draw(number + 50_000, 5) as usize);
                    faults.push(Fault::new(cut).on(&format!("w{agent}")).at(position as usize));
                }
            }
        }
        faults.push(Fault::new(FaultKind::Drip(300)).times(u32::MAX));
        faults
    }

    /// Moves the clock whenever nothing else can happen, changes the weather in between, and says when the
    /// storm began and how many had work at the end of every minute.
    async fn keep_time(
        &self,
        rig: &Rig,
        governor: &Governor,
        enough: &AtomicBool,
        crowd: &mut Crowd,
        mut told: UnboundedReceiver<Notice>,
        driven: &tokio::task::JoinHandle<Result<convoke_runtime::DriveOutcome, convoke_runtime::Error>>,
    ) -> (u64, Vec<usize>) {
        let clock = &rig.clock;
        let mut began = None;
        let mut with_work = Vec::new();
        while !driven.is_finished() {
            tokio::task::yield_now().await;
            while let Ok(notice) = told.try_recv() {
                crowd.hear(notice);
            }
            if !crowd.all_wait(governor, clock, self.agents) {
                continue;
            }
            let Some(next) = clock.next_wakeup() else {
                assert_eq!(crowd.with_work(), 0, "everybody waits for nothing: {:?}", governor.stats());
                continue;
            };
            if crowd.started == 0 {
                clock.advance_to(next);
                continue;
            }
            let start = *began.get_or_insert(clock.now());
            let passed = with_work.len() as u64;
            let mark = start + (passed + 1) * MINUTE;
            clock.advance_to(if passed < 2 * self.minutes { next.min(mark) } else { next });
            if clock.now() != mark || passed >= 2 * self.minutes {
                continue;
            }
            with_work.push(crowd.with_work());
            if passed + 1 == self.minutes {
                rig.sim
                    .set_limits(Some(RateLimits { requests_per_minute: A_MINUTE, ..RateLimits::default() }));
            }
            if passed + 1 == 2 * self.minutes {
                rig.sim.set_limits(None);
                enough.store(true, Ordering::SeqCst);
            }
        }
        while let Ok(notice) = told.try_recv() {
            crowd.hear(notice);
        }
        (began.unwrap(), with_work)
    }

    fn measure(&self, requests: &[Received], began: u64, with_work: &[usize]) -> Vec<Minute> {
        let of_minute = |(index, with_work): (usize, &usize)| {
            let from = began + index as u64 * MINUTE;
            let to = began + (index as u64 + 1) * MINUTE;
            let came = |request: &&Received| (from..to).contains(&request.arrived_at);
            let accepted = |request: &&Received| request.limited.is_none();
            let refused = requests.iter().filter(came).filter(|request| request.limited.is_some()).count();
            let index = index as u64;
            let (phase, used) = if index < self.minutes {
                let busy = |request: &Received| {
                    let end = request.ended_at.unwrap_or(to).min(to);
                    end.saturating_sub(request.arrived_at.max(from))
                };
                let served: u64 = requests.iter().filter(accepted).map(busy).sum();
                ("5 at once", served as f64 / (AT_ONCE as u64 * MINUTE) as f64)
            } else {
                (
                    "50 a minute",
                    requests.iter().filter(came).filter(accepted).count() as f64 / A_MINUTE as f64,
                )
            };
            Minute { phase, number: index % self.minutes + 1, used, refused, with_work: *with_work }
        };
        with_work.iter().enumerate().map(of_minute).collect()
    }
}

#[tokio::test]
async fn w69_d7_5_a_storm_of_limits_and_cuts_loses_no_agent_and_uses_what_the_server_allows() {
    let full = std::env::var_os("CONVOKE_SOAK_STORM").is_some();
    let seed: u64 = std::env::var_os("CONVOKE_SEED").map_or(1, |n| n.to_str().unwrap().parse().unwrap());
    let (agents, minutes) = if full { (60, 6) } else { (12, 2) };
    let storm = Storm { agents, minutes, seed };
    let played = tokio::time::timeout(Duration::from_secs(if full { 3_600 } else { 110 }), storm.play());
    let measured = played.await.expect("the storm does not end");
    println!("seed {seed}, {agents} agents");
    for minute in &measured {
        let Minute { phase, number, used, refused, with_work } = minute;
        println!(
            "{phase}, minute {number}: {:.1} % of the limit used, {refused} refused, {with_work} had work",
            used * 100.0
        );
    }
    assert_eq!(measured.len() as u64, 2 * minutes);
    for minute in measured.iter().filter(|minute| minute.number > 1) {
        assert!(minute.with_work > 10, "the agents must have work for the figure to mean anything");
        assert!(minute.used >= 0.9, "{}, minute {}: {:.3}", minute.phase, minute.number, minute.used);
    }
}
