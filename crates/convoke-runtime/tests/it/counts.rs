//! Costs that can be counted, because counts do not depend on the machine: how often the journal is asked,
//! and how many requests there are.

use convoke_kernel::Outcome;
use convoke_sim::says;
use tempfile::TempDir;

use crate::support::Rig;
use crate::team::{Team, workflow};

/// What a session has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    requests: usize,
    asked: u64,
}

/// A session that reviews so many parts, over the journal in this directory.
async fn session(journal: &TempDir, parts: usize) -> Counts {
    let parts: Vec<String> = (1..=parts).map(|part| format!("look at part {part}")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let team = Team::new([workflow(&parts), says("done")]);
    let place = convoke_journal::Location::Sqlite(journal.path().join("journal.db"));
    let mut rig = Rig::on(place, convoke_sim::SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    std::fs::write(rig.work.path().join("a.txt"), "the same in every directory").unwrap();
    let (_, ended) = rig.ask("Review").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    let asked = rig.last_journal.lock().unwrap().as_ref().unwrap().times_asked();
    Counts { requests: rig.sim.requests().len(), asked }
}

/// The first session does the work, the second takes all of it from the journal.
async fn rerun(parts: usize) -> (Counts, Counts) {
    let journal = tempfile::tempdir().unwrap();
    let first = session(&journal, parts).await;
    (first, session(&journal, parts).await)
}

#[tokio::test]
async fn a_rerun_asks_the_journal_no_more_often_for_many_subtasks_than_for_few() {
    let (few, many) = tokio::join!(rerun(3), rerun(30));
    println!("3 subtasks: {few:?}; 30 subtasks: {many:?}");
    assert!(many.0.asked > few.0.asked + 27, "work that is done is recorded one by one: {many:?}");
    assert_eq!((few.1.requests, many.1.requests), (2, 2), "only the lead asked");
    // Heartbeats and what comes together in one commit differ from run to run.
    assert!(many.1.asked <= few.1.asked + 4, "30 subtasks: {}, 3 subtasks: {}", many.1.asked, few.1.asked);
    assert!(many.1.asked <= 50, "{}", many.1.asked);
}

/// A lead that answers at once.
#[tokio::test]
async fn one_turn_asks_the_journal_a_few_times() {
    let place = tempfile::tempdir().unwrap();
    let place = convoke_journal::Location::Sqlite(place.path().join("journal.db"));
    let script = convoke_sim::Script::new().conversation("*", [says("42")]);
    let rig = Rig::on(place, script).await;
    let (_, ended) = rig.ask("What is it?").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "42".into() }));
    let asked = rig.last_journal.lock().unwrap().as_ref().unwrap().times_asked();
    println!("one turn: {asked}");
    assert_eq!(rig.sim.requests().len(), 1);
    assert!(asked <= 30, "{asked}");
}
