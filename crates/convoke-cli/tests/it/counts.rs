//! Costs of the whole command that can be counted, because counts do not depend on the machine: programs and
//! processes started, requests, waits for the disk, bytes written to the journal.

use convoke_sim::{Script, SimConfig, calls, says};
use serde_json::json;

use crate::stage::{Stage, to_its_end};
use crate::team::Team;
use crate::traced::{Counts, traced};

async fn stage() -> Stage {
    Stage::with(Script::new().conversation("*", [says("42"), says("42"), says("42"), says("42")])).await
}

#[tokio::test]
async fn one_turn_starts_no_process_and_waits_for_the_disk_a_few_times() {
    // In a directory without a repository, in one, and with nothing to be held.
    for (repository, off) in [(false, false), (true, false), (true, true)] {
        let stage = stage().await;
        if repository {
            let mut init = stage.prepare("git".as_ref());
            init.args(["init", "--quiet"]);
            to_its_end(init).await.exits(0);
        }
        let args: &[&str] =
            if off { &["run", "--sandbox", "off", "what is it"] } else { &["run", "what is it"] };
        let Some(first) = traced(&stage, args).await else {
            eprintln!("skipped: no process may be traced here");
            return;
        };
        let second = traced(&stage, args).await.unwrap();
        println!("repository: {repository}, off: {off}: first {first:?}, second {second:?}");
        // What the sandbox can hold is tried once; that also shows that something is counted here.
        assert_eq!(first.programs > 0, !off, "{first:?}");
        assert_eq!((second.programs, second.processes), (0, 0), "{second:?}");
        assert_eq!(stage.sim().requests().len(), 2, "one for each run");
        assert!(second.syncs <= 18, "{second:?}");
        assert!(second.journal_bytes <= 1_000_000, "{second:?}");
    }
}

/// What a session in a repository costs whose lead gives this one command.
async fn with_a_command(command: &str) -> Option<(Stage, Counts)> {
    let replies = || [calls("bash", json!({"command": command})), says("done")];
    let mut stage =
        Stage::with(Script::new().conversation("*", replies().into_iter().chain(replies()))).await;
    let mut init = stage.prepare("git".as_ref());
    init.args(["init", "--quiet"]);
    to_its_end(init).await.exits(0);
    // What the sandbox can hold is tried once, and remembered.
    traced(&stage, &["run", "first"]).await?;
    stage.turn_to(SimConfig::new(Script::new().conversation("*", replies()))).await;
    let counts = traced(&stage, &["run", "second"]).await?;
    Some((stage, counts))
}

#[tokio::test]
async fn a_command_that_writes_nothing_starts_no_git() {
    let Some((_stage, reads)) = with_a_command("ls; cat .git/HEAD; test -d .git").await else {
        eprintln!("skipped: no process may be traced here");
        return;
    };
    let (_stage, writes) = with_a_command("ls; cat .git/HEAD; test -d .git; echo 1 > written").await.unwrap();
    println!("reads: {reads:?}; writes: {writes:?}");
    // The sandbox, the shell and its two programs; a record takes more than all of these.
    assert!(reads.programs <= 8, "{reads:?}");
    assert!(writes.programs >= reads.programs + 8, "the record of a change is counted: {writes:?}");
}

#[tokio::test]
async fn a_rerun_of_a_fan_out_costs_no_more_for_many_subtasks_than_for_few() {
    let mut costs = Vec::new();
    for parts in [2, 12] {
        let parts: Vec<String> = (1..=parts).map(|part| format!("high part {part}")).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let mut stage = Team::fanning_out(&parts).stage().await;
        stage.run(&["run", "review it"]).await.exits(0);
        stage.turn_to(SimConfig::new(Team::fanning_out(&parts))).await;
        let Some(counts) = traced(&stage, &["run", "review it"]).await else {
            eprintln!("skipped: no process may be traced here");
            return;
        };
        let requests = stage.sim().requests().len();
        println!("{} subtasks: {counts:?}, {requests} requests", parts.len());
        assert_eq!(requests, 2, "only the lead asked");
        costs.push(counts);
    }
    let (few, many) = (costs[0], costs[1]);
    assert_eq!((many.programs, many.processes), (few.programs, few.processes));
    // What comes at the same time is synced together, so a few more or less are chance; ten more subtasks
    // with a verifier each would be twenty.
    assert!(many.syncs <= few.syncs + 6, "{few:?} {many:?}");
}
