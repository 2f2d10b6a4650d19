//! Crash everywhere, in company: a fan-out is cut around commits of the lead, of its workers, of their
//! verifiers and of the run itself, and taken up in a new life. It must come to what the uncut one came to,
//! with no more requests sent again than were in flight, no command run twice behind an agent's back, and a
//! ledger that is not below the bill.
//!
//! Every commit of a life has a number; which agent's it is, and how many there are, depends on how the
//! agents happen to run beside each other. CI cuts at some numbers, chosen by a printed seed;
//! `CONVOKE_SOAK_CUTS=1` cuts at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use convoke_journal::Location;
use convoke_kernel::{AgentId, Effect, Event, ItemStatus, Outcome, Report, Run, Verdict};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Stop};
use convoke_sim::{Fault, FaultKind, Reply, SimConfig, calls, says};
use serde_json::{Value, json};

use crate::support::{Rig, postgres, shuffled, within};
use crate::team::{Team, finding, report, verdicts, workflow};

/// What the kernel writes into a result that was cut off.
const UNKNOWN: &str = "outcome is unknown";
const SUBTASKS: [&str; 3] = ["alpha", "[conversation: doomed] beta", "gamma"];

/// A command that counts itself in a file outside the journal.
fn counted(marker: &str) -> Reply {
    calls("bash", json!({"command": format!("echo {marker} >> \"$COUNT\"; echo seen {marker}")}))
}

/// Two commands and a report. Told that an outcome is unknown, it looks with a command of its own before it
/// goes on.
fn careful(who: &str, end: Reply) -> Vec<Reply> {
    let or_look =
        |reply: Reply, look: &str| reply.when_last_contains(UNKNOWN, counted(&format!("{who}-{look}")));
    vec![
        counted(&format!("{who}-first")),
        or_look(counted(&format!("{who}-second")), "look1"),
        or_look(end.clone(), "look2").when_last_contains(&format!("{who}-look1"), end.clone()),
        or_look(end.clone(), "look3"),
        end,
    ]
}

fn team() -> Team {
    Team::new([workflow(&SUBTASKS), says("synthesis")])
        .workers(|subtask| {
            let mut found = finding(&format!("{subtask} holds"), "high");
            found["citations"] = json!([{"path": "fact", "first": 1, "last": 1, "quote": "it is so"}]);
            careful(subtask, report(subtask, vec![found]))
        })
        .verifiers(|findings: &[Value]| {
            let claim = findings[0]["claim"].as_str().unwrap();
            let verdict = if claim.starts_with("alpha") { "confirmed" } else { "refuted" };
            careful(&format!("verify-{}", claim.replace(' ', "-")), verdicts(findings, verdict))
        })
}

async fn rig(location: &Location) -> Rig {
    let mut rig = Rig::on(location.clone(), SimConfig::new(team())).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.env.insert("COUNT".into(), rig.scratch.path().join("count").to_string_lossy().into_owned());
    // Stores that several runs share must not take one for another.
    std::fs::write(rig.work.path().join("name"), rig.scratch.path().to_string_lossy().as_bytes()).unwrap();
    std::fs::write(rig.work.path().join("fact"), "it is so\n").unwrap();
    rig.sim.push_fault(
        Fault::new(FaultKind::BadRequest400("no such thing".into())).on("doomed").times(u32::MAX),
    );
    rig
}

/// What an item came to, as far as a crash must not change it.
type Came = (ItemStatus, Option<Report>, Option<String>, Vec<Verdict>);

struct Ran {
    outcome: Outcome,
    was_cut: bool,
    items: Vec<Came>,
    digest: String,
    agents: u32,
    /// Requests that were sent before, byte for byte, and how many were in flight when the process died.
    repeats: usize,
    in_flight: usize,
    interrupted: usize,
    counts: HashMap<String, usize>,
    commits: usize,
    spent: u64,
    bill: u64,
}

/// Dies at this commit, and from then on at every other: a process that is dead commits nothing.
fn dies_at(cut: Option<(Moment, usize)>, commits: &Arc<AtomicUsize>) -> Crash {
    let begun = AtomicUsize::new(0);
    let commits = Arc::clone(commits);
    let dead = AtomicBool::new(false);
    Crash::when(move |moment, _| {
        // Counted apart, because several may be on their way at once.
        let number = match moment {
            Moment::BeforeCommit => begun.fetch_add(1, Ordering::SeqCst),
            Moment::AfterCommit => commits.fetch_add(1, Ordering::SeqCst),
        };
        let dies = dead.load(Ordering::SeqCst) || cut == Some((moment, number));
        dead.store(dies, Ordering::SeqCst);
        dies
    })
}

async fn run(location: &Location, cut: Option<(Moment, usize)>) -> Ran {
    let rig = rig(location).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let runtime = rig.life(Some(dies_at(cut, &commits))).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await;
    drop(runtime);
    let in_flight = in_flight(&rig, &lead).await;
    let was_cut = matches!(ended, Err(Error::Crashed));
    let ended = match ended {
        Err(Error::Crashed) if cut.is_some() => rig.resume(&lead).await.unwrap(),
        other => other.unwrap(),
    };
    let outcome = ended.outcome.unwrap_or_else(|| panic!("{cut:?}: no outcome"));
    Ran { was_cut, ..collect(&rig, &lead, outcome, in_flight, commits.load(Ordering::SeqCst)).await }
}

/// The fan-out of this lead, if it has come to that, and all agents in it.
async fn company(rig: &Rig, lead: &AgentId) -> (Option<Run>, Vec<AgentId>) {
    let call = rig.events(lead).await.into_iter().find_map(|event| match event {
        Event::ToolStarted(e) => Some(e.id),
        _ => None,
    });
    let Some(call) = call else { return (None, vec![lead.clone()]) };
    let run = rig.run(lead, &call).await;
    let items = 1..=SUBTASKS.len() as u32;
    let agents = items.flat_map(|item| [run.worker(item).cloned(), run.verifier(item, 1).cloned()]).flatten();
    let agents = agents.chain([lead.clone()]).collect();
    (Some(run), agents)
}

async fn in_flight(rig: &Rig, lead: &AgentId) -> usize {
    let mut count = 0;
    for agent in company(rig, lead).await.1 {
        count += usize::from(matches!(rig.folded(&agent).await.pending()[..], [Effect::CallModel { .. }]));
    }
    count
}

async fn collect(rig: &Rig, lead: &AgentId, outcome: Outcome, in_flight: usize, commits: usize) -> Ran {
    let (fan_out, agents) = company(rig, lead).await;
    let fan_out = fan_out.unwrap();
    let came = |item| {
        let result = fan_out.result(item).unwrap().clone();
        (result.status, result.report, result.degraded, fan_out.verdicts(item).to_vec())
    };
    let mut interrupted = 0;
    for agent in &agents {
        let folded = rig.folded(agent).await;
        interrupted +=
            folded.history().iter().map(|segment| segment.as_str().matches(UNKNOWN).count()).sum::<usize>();
    }
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    rig.sim.requests().iter().for_each(|request| *seen.entry(request.raw.to_vec()).or_default() += 1);
    let mut counts = HashMap::new();
    let count = std::fs::read_to_string(rig.scratch.path().join("count")).unwrap();
    count.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    let session = rig.folded(lead).await.spec().unwrap().session.clone();
    let ledger = rig.life(None).await.ledger(&session).await.unwrap();
    assert_eq!(ledger.holds().count(), 0, "nothing is held for agents that have ended");
    Ran {
        outcome,
        was_cut: false,
        items: (1..=SUBTASKS.len() as u32).map(came).collect(),
        digest: fan_out.digest().replace(&fan_out.spec().unwrap().run, "wf_"),
        agents: ledger.agents(),
        repeats: seen.values().map(|times| times - 1).sum(),
        in_flight,
        interrupted,
        counts,
        commits,
        spent: ledger.spent().nano,
        bill: rig.sim.bill().total_nano,
    }
}

/// All cuts in a random order.
fn cuts(commits: usize, seed: u64) -> Vec<(Moment, usize)> {
    shuffled(
        (0..commits)
            .flat_map(|number| [(Moment::BeforeCommit, number), (Moment::AfterCommit, number)])
            .collect(),
        seed,
    )
}

async fn check(location: &Location, some: usize) {
    let number = |name: &str| std::env::var_os(name).map(|n| n.to_str().unwrap().parse::<u64>().unwrap());
    let seed = number("CONVOKE_SEED").unwrap_or(1);
    let most = if number("CONVOKE_SOAK_CUTS").is_some() { usize::MAX } else { some };
    let whole = run(location, None).await;
    assert_eq!(whole.outcome, Outcome::Ok { text: "synthesis".into() });
    assert!(whole.counts.values().all(|times| *times == 1), "{:?}", whole.counts);
    assert_eq!((whole.repeats, whole.in_flight, whole.interrupted, whole.agents), (0, 0, 0, 5));
    assert!(matches!(whole.items[1].0, ItemStatus::Failed { .. }), "{:?}", whole.items[1]);
    let verdicts =
        |item: &Came| item.3.iter().map(|v| matches!(v, Verdict::Confirmed { .. })).collect::<Vec<_>>();
    assert_eq!(whole.items.iter().map(verdicts).collect::<Vec<_>>(), [vec![true], vec![], vec![false]]);
    let mut done = 0;
    let mut interrupted = 0;
    let mut repeated = 0;
    let mut flying = 0;
    for cut in cuts(whole.commits, seed).into_iter().take(most) {
        let context = format!("cut {cut:?} of {} on {location}", whole.commits);
        let resumed = run(location, Some(cut)).await;
        assert_eq!(resumed.outcome, whole.outcome, "{context}");
        assert_eq!(resumed.items, whole.items, "{context}");
        assert_eq!(resumed.digest, whole.digest, "{context}");
        assert_eq!(resumed.agents, whole.agents, "{context}");
        assert!(resumed.counts.values().all(|times| *times == 1), "{context}: {:?}", resumed.counts);
        assert!(
            resumed.repeats <= resumed.in_flight,
            "{context}: {} of {}",
            resumed.repeats,
            resumed.in_flight
        );
        assert!(resumed.spent >= resumed.bill, "{context}: {} below {}", resumed.spent, resumed.bill);
        if resumed.interrupted == 0 {
            assert_eq!(resumed.counts, whole.counts, "{context}");
        }
        done += usize::from(resumed.was_cut);
        interrupted += resumed.interrupted;
        repeated += resumed.repeats;
        flying += resumed.in_flight;
    }
    println!(
        "{location}, seed {seed}: {done} cuts around {} commits, {interrupted} commands reported as \
         unknown, {repeated} requests repeated of {flying} in flight",
        whole.commits
    );
    assert!(done > 0 && interrupted + repeated > 0, "the cuts must have hit something");
}

#[tokio::test]
async fn d6_6_a_fan_out_cut_around_any_commit_comes_to_the_same_on_sqlite() {
    check(&Location::Sqlite("journal.db".into()), 20).await;
}

#[tokio::test]
async fn d6_6_a_fan_out_cut_around_any_commit_comes_to_the_same_on_postgres() {
    if let Some(location) = postgres("d6_6_a_fan_out_cut_around_any_commit_comes_to_the_same_on_postgres") {
        check(&location, 8).await;
    }
}
