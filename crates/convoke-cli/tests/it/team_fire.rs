//! A room for teams under fire: a session whose lead made its team and ended, several real processes that
//! host it and are killed, stopped and cut off from their store, and a simulator in the test that they all
//! talk to. What must be true in the end the tests say themselves.

mod hosts;
mod store;
mod story;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use convoke_journal::Journal;
use convoke_kernel::{AgentId, LEAD, SessionId};
use convoke_runtime::{Clock, Ids, TeamClient};
use convoke_sim::{Brain, Retention, SimConfig, Simulator, tool_use_id};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::sleep;

pub(crate) use self::hosts::{Draw, Hosts};
pub(crate) use self::store::Store;
pub(crate) use self::story::{Entry, Story, hash};
use crate::stage::{KEY, Stage, to_its_end};

/// How often anything is looked at while a team works.
const LOOKS: Duration = Duration::from_millis(50);

/// A team that no process drives, and the simulator that answers its members.
pub(crate) struct Field {
    pub(crate) stage: Stage,
    pub(crate) sim: Simulator,
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    pub(crate) team: TeamClient,
    pub(crate) session: SessionId,
    pub(crate) lead: AgentId,
}

/// How hard a team is hit.
pub(crate) struct Faults {
    /// Requests between two of them, about.
    pub(crate) every: usize,
    /// How many there are at most.
    pub(crate) most: usize,
    /// How long everything may take.
    pub(crate) patience: Duration,
}

impl Field {
    /// Has a lead make its team. The brain's lead spawns its teammates in its first reply and ends with the
    /// next.
    pub(crate) async fn new(brain: impl Brain + 'static, store: Store) -> Self {
        let stage = Stage::bare();
        let sim = Simulator::start(SimConfig { keep: Retention::Summaries, ..SimConfig::new(brain) })
            .await
            .unwrap();
        let config = stage.home().join(".config/convoke");
        std::fs::create_dir_all(&config).unwrap();
        let text = format!("[endpoints.\"{}\"]\nprofile = \"anthropic\"\n", sim.url());
        std::fs::write(config.join("config.toml"), text).unwrap();
        let run = [
            "run",
            "--sandbox",
            "off",
            "--budget-usd",
            "none",
            "--idle",
            "1s",
            "--output",
            "json",
            "make a team",
        ];
        let ran = to_its_end(command(&stage, &sim, &store, &run)).await.exits(0).json();
        let session: SessionId = ran["run"].as_str().unwrap().parse().unwrap();
        let journal = store.open().await;
        let team = TeamClient::new(journal.clone(), Clock::system(), Ids::random());
        let lead = team.roster(&session).await.unwrap().member(LEAD).unwrap().agent.clone();
        Self { stage, sim, store, journal, team, session, lead }
    }

    /// The binary with these arguments, at this journal.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        command(&self.stage, &self.sim, &self.store, args)
    }

    /// Looks again and again while processes host the team and are hit, until there is nothing left to wait
    /// for.
    pub(crate) async fn under_fire(
        &self,
        hosts: &mut Hosts<'_>,
        faults: &Faults,
        asked: &AtomicUsize,
        draw: &mut Draw,
        mut is_over: impl AsyncFnMut() -> bool,
    ) {
        let began = Instant::now();
        let mut struck = 0;
        let mut next = asked.load(Ordering::Relaxed) + 1 + draw.below(faults.every);
        loop {
            hosts.tend();
            if is_over().await {
                break;
            }
            assert!(began.elapsed() < faults.patience, "it takes too long: {}", hosts.said());
            if struck < faults.most && asked.load(Ordering::Relaxed) >= next {
                sleep(Duration::from_micros(draw.below(40_000) as u64)).await;
                hosts.strike().await;
                struck += 1;
                next = asked.load(Ordering::Relaxed) + 1 + draw.below(2 * faults.every);
            }
            sleep(LOOKS).await;
        }
        hosts.calm();
    }

    /// Every request was legal. One that departs from what its conversation had become can only be a late
    /// one, which a process decided before it was stopped and sent when others had gone on.
    pub(crate) fn check_requests(&self) -> (usize, usize) {
        let requests = self.sim.requests();
        let mut furthest = std::collections::HashMap::new();
        let mut late = 0;
        for request in &requests {
            assert!(request.verdict.is_accepted(), "request {}: {:?}", request.index, request.verdict);
            let most = furthest.entry(request.conversation.clone()).or_insert(0);
            if let Some(departs) = &request.prefix_break {
                assert!(request.position < *most, "request {}: {departs}", request.index);
                late += 1;
            }
            *most = request.position.max(*most);
        }
        (requests.len(), late)
    }

    pub(crate) async fn close(self) {
        self.journal.close().await.unwrap();
        self.store.remove().await;
    }
}

fn command(stage: &Stage, sim: &Simulator, store: &Store, args: &[&str]) -> Command {
    let place = store.place();
    let mut command = stage.command(&[&["--journal", &place], args].concat());
    command.env("ANTHROPIC_BASE_URL", sim.url()).env("ANTHROPIC_API_KEY", KEY);
    command
}

/// A call as a reply holds it.
pub(crate) fn call(context: &convoke_sim::Context, index: usize, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": tool_use_id(context, name, index), "name": name, "input": input})
}

/// A size that `scripts/soak` sets, or the small one.
pub(crate) fn size(name: &str) -> Option<usize> {
    std::env::var_os(name).map(|number| number.to_str().unwrap().parse().unwrap())
}

pub(crate) fn seed() -> u64 {
    size("CONVOKE_SEED").unwrap_or(1) as u64
}
