//! Crash everywhere: every scenario is cut around every commit, before it (the effect is done, its outcome is
//! not recorded) and after it (it is recorded, nothing that follows has started), on every durable journal.
//! The resumed run must end as the uncut one did, with at most one model request repeated and no command
//! repeated behind the model's back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_journal::Location;
use convoke_kernel::{Agent, AgentId, FailureKind, Outcome};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Stop};
use convoke_sim::{
    Fault, FaultKind, Reply, Script, calls, calls_many, calls_raw, cut_at_max_tokens, refuses, says,
};
use serde_json::{Value, json};

use crate::support::{Rig, postgres, within};

/// What the kernel writes into a result that was cut off.
const UNKNOWN: &str = "outcome is unknown";
/// What the runtime writes in front of the first result of a new shell.
const NEW_SHELL: &str = "(new shell:";

struct Scenario {
    name: &'static str,
    script: fn() -> Script,
    faults: fn() -> Vec<Fault>,
    max_turns: u32,
}

/// A command that counts itself in a file outside the journal.
fn counted(marker: &str, rest: &str) -> Reply {
    calls("bash", json!({"command": format!("echo {marker} >> \"$COUNT\"; {rest}")}))
}

/// What a careful model does when it is told that an outcome is unknown: it looks, with a command of its own.
fn or_look(reply: Reply, marker: &str) -> Reply {
    reply.when_last_contains(UNKNOWN, counted(marker, "echo looked"))
}

fn none() -> Vec<Fault> {
    Vec::new()
}

fn one(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::new().conversation("*", replies)
}

fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario { name: "plain answer", script: || one([says("42")]), faults: none, max_turns: 30 },
        Scenario {
            name: "tools",
            script: || {
                one([
                    counted("first", "echo one"),
                    or_look(counted("second", "echo two"), "look1"),
                    or_look(says("seen"), "look2"),
                    or_look(says("seen"), "look3"),
                    says("seen"),
                ])
            },
            faults: none,
            max_turns: 30,
        },
        Scenario {
            name: "parallel tools",
            script: || {
                let command =
                    |marker: &str| json!({"command": format!("echo {marker} >> \"$COUNT\"; echo {marker}")});
                one([
                    calls_many([("bash", command("p1")), ("bash", command("p2")), ("bash", command("p3"))]),
                    or_look(says("seen"), "look1"),
                    or_look(says("seen"), "look2"),
                    says("seen"),
                ])
            },
            faults: none,
            max_turns: 30,
        },
        Scenario {
            name: "retry",
            script: || {
                one([
                    counted("first", "echo one"),
                    or_look(says("there"), "look1"),
                    or_look(says("there"), "look2"),
                    says("there"),
                ])
            },
            faults: || {
                let fault = |kind| Fault::new(kind);
                vec![
                    fault(FaultKind::Overloaded529).at(0).times(2),
                    fault(FaultKind::MidStreamError { after: 3, error_type: "overloaded_error".into() })
                        .at(1),
                    fault(FaultKind::CutAfter(4)).at(1),
                ]
            },
            max_turns: 30,
        },
        Scenario {
            name: "cut reply, then whole",
            script: || {
                one([
                    counted("first", "echo one"),
                    or_look(says("all of it").cut_below(100_000, "half"), "look1"),
                    or_look(says("all of it"), "look2"),
                    says("all of it"),
                ])
            },
            faults: none,
            max_turns: 30,
        },
        Scenario {
            name: "cut reply for good",
            script: || one([cut_at_max_tokens("half")]),
            faults: none,
            max_turns: 30,
        },
        Scenario {
            name: "turn limit",
            script: || one([counted("first", "echo one"), says("so far")]),
            faults: none,
            max_turns: 1,
        },
        Scenario { name: "refusal", script: || one([refuses("no")]), faults: none, max_turns: 30 },
        Scenario {
            name: "long output",
            script: || {
                one([
                    counted("first", "seq 1 30000"),
                    or_look(says("long"), "look1"),
                    or_look(says("long"), "look2"),
                    says("long"),
                ])
            },
            faults: none,
            max_turns: 30,
        },
        Scenario {
            name: "restored shell state",
            script: || {
                let set = "mkdir -p sub && cd sub && export COLOUR=blue && echo prepared";
                let use_it = || counted("second", "echo \"${PWD##*/} is $COLOUR\"");
                let done = || says("state lost").when_last_contains("sub is blue", says("blue"));
                one([
                    counted("first", set),
                    use_it().when_last_contains(
                        UNKNOWN,
                        counted(
                            "redo",
                            "cd \"$WORK\" && mkdir -p sub && cd sub && export COLOUR=blue && echo prepared \
                                again",
                        ),
                    ),
                    or_look(done(), "look1")
                        .when_last_contains("prepared again", use_it())
                        .when_last_contains("looked", says("blue")),
                    or_look(done(), "look2").when_last_contains("looked", says("blue")),
                    says("blue"),
                ])
            },
            faults: none,
            max_turns: 30,
        },
        Scenario {
            name: "calls that cannot run",
            script: || {
                one([
                    calls_many([("browse", json!({})), ("bash", json!({"command": "echo x >> \"$COUNT\""}))]),
                    calls_raw("bash", "{\"comm"),
                    says("ok"),
                    says("ok"),
                ])
            },
            faults: none,
            max_turns: 30,
        },
    ]
}

/// What a run came to, as far as a crash must not change it.
struct Ran {
    outcome: Outcome,
    history: Vec<Value>,
    /// Requests that were sent before, byte for byte.
    repeats: usize,
    interrupted: usize,
    counts: HashMap<String, usize>,
    commits: usize,
}

async fn rig(location: &Location, scenario: &Scenario) -> Rig {
    let mut rig = Rig::on(location.clone(), (scenario.script)()).await;
    rig.limits.max_turns = scenario.max_turns;
    rig.env.insert("COUNT".into(), rig.scratch.path().join("count").to_string_lossy().into_owned());
    rig.env.insert("WORK".into(), rig.work.path().to_string_lossy().into_owned());
    (scenario.faults)().into_iter().for_each(|fault| rig.sim.push_fault(fault));
    rig
}

async fn run(location: &Location, scenario: &Scenario, cut: Option<(Moment, usize)>) -> Ran {
    let rig = rig(location, scenario).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&commits);
    let crash = Crash::when(move |moment, _| {
        let number = match moment {
            Moment::BeforeCommit => counter.load(Ordering::SeqCst),
            Moment::AfterCommit => counter.fetch_add(1, Ordering::SeqCst),
        };
        cut == Some((moment, number))
    });
    let runtime = rig.life(Some(crash)).await;
    let agent = runtime.start(rig.start(), "go").await.unwrap();
    let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await;
    drop(runtime);
    let ended = match (ended, cut) {
        (Ok(ended), None) => ended,
        (Err(Error::Crashed), Some(_)) => rig.resume(&agent).await.unwrap(),
        (other, cut) => panic!("{}: {cut:?}: {other:?}", scenario.name),
    };
    let outcome = ended.outcome.unwrap_or_else(|| panic!("{}: {cut:?}: no outcome", scenario.name));
    collect(&rig, &agent, outcome, commits.load(Ordering::SeqCst)).await
}

async fn collect(rig: &Rig, agent: &AgentId, outcome: Outcome, commits: usize) -> Ran {
    let folded: Agent = rig.folded(agent).await;
    let history: Vec<Value> =
        folded.history().iter().map(|s| serde_json::from_str(s.as_str()).unwrap()).collect();
    let interrupted = folded.history().iter().map(|s| s.as_str().matches(UNKNOWN).count()).sum();
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    rig.sim.requests().iter().for_each(|r| *seen.entry(r.raw.to_vec()).or_default() += 1);
    let mut counts = HashMap::new();
    let count = std::fs::read_to_string(rig.scratch.path().join("count")).unwrap_or_default();
    count.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    Ran { outcome, history, repeats: seen.values().map(|n| n - 1).sum(), interrupted, counts, commits }
}

/// Histories are compared without what must differ: the word that a shell is new, and names of output files.
fn normal(history: &[Value]) -> String {
    let text = serde_json::to_string_pretty(history).unwrap();
    let lines = text.lines().map(|line| match line.split_once(NEW_SHELL) {
        Some((before, after)) => format!("{before}{}", after.split_once(")\\n").map_or("", |(_, rest)| rest)),
        None => line.to_owned(),
    });
    let lines: Vec<String> = lines.collect();
    let text = lines.join("\n");
    let mut parts = text.split("/outputs/");
    let first = parts.next().unwrap().rsplit_once(' ').map_or("", |(kept, _)| kept).to_owned();
    match text.contains("/outputs/") {
        false => text,
        true => parts.fold(first, |all, part| all + part.split_once(".txt").map_or(part, |(_, rest)| rest)),
    }
}

async fn cut_everywhere(location: &Location) -> (usize, usize, usize) {
    let mut cuts = 0;
    let mut interrupted = 0;
    let mut repeated = 0;
    for scenario in scenarios() {
        let whole = run(location, &scenario, None).await;
        assert!(whole.counts.values().all(|n| *n == 1), "{}: {:?}", scenario.name, whole.counts);
        assert!(whole.commits >= 2, "{}", scenario.name);
        for number in 0..whole.commits {
            for moment in [Moment::BeforeCommit, Moment::AfterCommit] {
                let context = format!("{} cut {moment:?} {number} on {location}", scenario.name);
                let resumed = run(location, &scenario, Some((moment, number))).await;
                assert_eq!(resumed.outcome, whole.outcome, "{context}");
                assert!(resumed.counts.values().all(|n| *n == 1), "{context}: {:?}", resumed.counts);
                assert!(resumed.repeats <= whole.repeats + 1, "{context}: {} repeats", resumed.repeats);
                assert!(resumed.interrupted <= 1, "{context}");
                if resumed.interrupted == 0 {
                    assert_eq!(normal(&resumed.history), normal(&whole.history), "{context}");
                    assert_eq!(resumed.counts, whole.counts, "{context}");
                }
                cuts += 1;
                interrupted += resumed.interrupted;
                repeated += resumed.repeats - whole.repeats.min(resumed.repeats);
            }
        }
    }
    (cuts, interrupted, repeated)
}

async fn check(location: &Location) {
    let (cuts, interrupted, repeated) = cut_everywhere(location).await;
    println!(
        "{location}: {cuts} cuts, {interrupted} commands reported as unknown, {repeated} requests repeated"
    );
    assert!(interrupted > 0 && repeated > 0, "the cuts must have hit something");
}

#[tokio::test]
async fn a_crash_around_any_commit_changes_nothing_that_matters_on_sqlite() {
    check(&Location::Sqlite("journal.db".into())).await;
}

#[tokio::test]
async fn a_crash_around_any_commit_changes_nothing_that_matters_on_postgres() {
    if let Some(location) = postgres("a_crash_around_any_commit_changes_nothing_that_matters_on_postgres") {
        check(&location).await;
    }
}

#[tokio::test]
async fn an_agent_that_goes_in_circles_ends_at_the_same_place_after_a_crash() {
    let scenario = Scenario {
        name: "going in circles",
        script: || one((0..16).map(|_| calls("bash", json!({"command": "echo again"})))),
        faults: none,
        max_turns: 30,
    };
    let location = Location::Sqlite("journal.db".into());
    let whole = run(&location, &scenario, None).await;
    let message = match &whole.outcome {
        Outcome::Failed { kind: FailureKind::Stuck, message, text } if text.is_empty() => message,
        other => panic!("{other:?}"),
    };
    assert!(message.contains("bash was called 6 times in a row"), "{message}");
    // One of every four of these falls on a command that runs, which then has no result that could be the
    // same.
    let mut unhurt = 0;
    for number in whole.commits / 2..whole.commits / 2 + 4 {
        let resumed = run(&location, &scenario, Some((Moment::AfterCommit, number))).await;
        assert_eq!(resumed.outcome, whole.outcome, "cut after {number}");
        if resumed.interrupted == 0 {
            assert_eq!(normal(&resumed.history), normal(&whole.history), "cut after {number}");
            unhurt += 1;
        }
    }
    assert!(unhurt >= 2, "the crash between two rounds changes nothing");
}
