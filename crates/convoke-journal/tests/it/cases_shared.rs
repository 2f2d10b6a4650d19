//! Cases about shared streams: changed by functions of their state, with an append or alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_journal::{Appended, BLOB_ABOVE, Batch, Change, Changed, Error, Filter, Journal, Update};

use crate::world::*;

/// Counts on from the state by `step`, with one event for the number it comes to.
fn count(step: u64) -> Change {
    Change::new(move |state| {
        let last: u64 = state.map_or(Ok(0), str::parse).map_err(|error| format!("{error}"))?;
        let now = last + step;
        Ok(Changed { state: now.to_string(), events: vec![event(now as usize)] })
    })
}

fn decline(reason: &'static str) -> Change {
    Change::new(move |_| Err(reason.to_owned()))
}

fn update(name: &str, change: Change) -> Update {
    Update { stream: stream(name), change }
}

async fn state(journal: &Journal, name: &str) -> Option<String> {
    journal.shared(&stream(name)).await.unwrap()
}

#[track_caller]
fn assert_declined<T: std::fmt::Debug>(done: Result<T, Error>, name: &str, says: &str) {
    match done {
        Err(Error::Declined { stream: declined, reason }) => {
            assert_eq!(declined, stream(name));
            assert!(reason.contains(says), "{reason}");
        }
        other => panic!("expected it to be declined, got {other:?}"),
    }
}

pub(crate) async fn an_update_begins_from_nothing_and_goes_on_from_what_the_last_one_left(world: World) {
    let journal = world.open().await;
    let other = world.open().await;
    assert_eq!(state(&journal, "ledger").await, None);
    let first = Change::new(|state| {
        assert_eq!(state, None);
        Ok(Changed { state: "5".into(), events: vec![event(4), event(5)] })
    });
    assert_eq!(journal.update(&stream("ledger"), 10, &first).await.as_deref(), Ok("5"));
    assert_eq!(other.update(&stream("ledger"), 20, &count(2)).await.as_deref(), Ok("7"));
    let silent =
        Change::new(|state| Ok(Changed { state: state.unwrap_or("none").repeat(2), events: vec![] }));
    assert_eq!(journal.update(&stream("ledger"), 30, &silent).await.as_deref(), Ok("77"));

    let records = other.load(&stream("ledger"), 0).await.unwrap();
    let told: Vec<_> = records.iter().map(|r| (r.seq, r.at, r.event.clone())).collect();
    assert_eq!(told, [(1, 10, event(4)), (2, 10, event(5)), (3, 20, event(7))]);
    assert_eq!(state(&other, "ledger").await.as_deref(), Some("77"));
    let listed = other.list(&Filter::default()).await.unwrap().remove(0);
    assert_eq!((listed.seq, listed.created_at, listed.updated_at, listed.owner), (3, 10, 30, None));
    // A stream that has events or inputs and was never updated has no state.
    journal.submit(&input("mail", "k", "hello"), 1).await.unwrap();
    assert_eq!(state(&journal, "mail").await, None);
    assert_eq!(journal.update(&stream("mail"), 1, &count(1)).await.as_deref(), Ok("1"));
    assert_eq!(waiting(&journal, "mail").await, ["k"]);
}

pub(crate) async fn updates_travel_with_the_append_and_their_states_come_back_in_order(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    // Not in the order of their names, and one of them twice.
    let updates = vec![update("z", count(1)), update("b", count(10)), update("z", count(100))];
    let batch = Batch { updates, ..Batch::events(7, [event(1), event(2)]) };
    let states = ["1", "10", "101"].map(str::to_owned).to_vec();
    assert_eq!(journal.append_shared(&lease, 0, &batch).await, Ok(Appended { seq: 2, states }));
    let states = ["102", "20", "202"].map(str::to_owned).to_vec();
    assert_eq!(journal.append_shared(&lease, 2, &batch).await, Ok(Appended { seq: 4, states }));
    assert_eq!(journal.append(&lease, 4, &batch).await, Ok(6));

    assert_eq!(events(&journal, "a").await, [1, 2, 1, 2, 1, 2].map(event));
    assert_eq!(events(&journal, "b").await, [10, 20, 30].map(event));
    assert_eq!(events(&journal, "z").await, [1, 101, 102, 202, 203, 303].map(event));
    let numbers: Vec<_> =
        journal.load(&stream("z"), 0).await.unwrap().iter().map(|r| (r.seq, r.at)).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6].map(|seq| (seq, 7)));
    assert_eq!(state(&journal, "z").await.as_deref(), Some("303"));
    // A batch may have nothing but updates.
    let alone = Batch { at: 8, updates: vec![update("b", count(1))], ..Batch::default() };
    let appended = Appended { seq: 6, states: vec!["31".to_owned()] };
    assert_eq!(journal.append_shared(&lease, 6, &alone).await, Ok(appended));
}

pub(crate) async fn a_declined_update_changes_nothing_of_its_batch(world: World) {
    let journal = world.open().await;
    journal.submit(&input("a", "k", "hello"), 1).await.unwrap();
    journal.update(&stream("known"), 1, &count(1)).await.unwrap();
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &Batch { summary: Some("{}".into()), ..one(1) }).await.unwrap();
    let before = journal.list(&Filter::default()).await.unwrap();
    let whole = |updates| Batch {
        acks: vec!["k".into()],
        inputs: vec![input("b", "k", "hi")],
        summary: Some(r#"{"wrong":true}"#.into()),
        results: vec![("r".into(), "{}".into())],
        updates,
        ..Batch::events(99, [event(666)])
    };
    for declined in ["new", "known", "a"] {
        let updates =
            vec![update("known", count(1)), update("other", count(1)), update(declined, decline("no room"))];
        assert_declined(journal.append_shared(&lease, 1, &whole(updates)).await, declined, "no room");
        assert_declined(
            journal.update(&stream(declined), 99, &decline("too late")).await,
            declined,
            "too late",
        );
    }
    assert_eq!(events(&journal, "a").await, [event(1)]);
    assert_eq!(waiting(&journal, "a").await, ["k"]);
    assert!(waiting(&journal, "b").await.is_empty());
    assert_eq!(journal.result("r").await.unwrap(), None);
    assert_eq!(state(&journal, "known").await.as_deref(), Some("1"));
    assert_eq!(events(&journal, "known").await, [event(1)]);
    let unowned = |list: Vec<convoke_journal::Listing>| {
        list.into_iter().map(|l| (l.stream, l.summary, l.seq, l.created_at, l.updated_at)).collect::<Vec<_>>()
    };
    assert_eq!(unowned(journal.list(&Filter::default()).await.unwrap()), unowned(before));
    assert_eq!(journal.append(&lease, 1, &whole(vec![update("known", count(1))])).await, Ok(2));
    assert_eq!(state(&journal, "known").await.as_deref(), Some("2"));
}

pub(crate) async fn no_update_is_asked_for_behind_the_fence(world: World) {
    let first = world.open_as(somebody_gone()).await;
    let old = own(&first, "a").await;
    let second = world.open().await;
    let new = own(&second, "a").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let change = Change::new(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        Ok(Changed { state: "changed".into(), events: vec![event(1)] })
    });
    let batch = Batch { updates: vec![update("ledger", change)], ..one(1) };
    assert_lost(first.append_shared(&old, 0, &batch).await);
    let stale = second.append_shared(&new, 3, &batch).await;
    assert!(matches!(stale, Err(Error::StaleSequence { actual: 0, .. })), "{stale:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(state(&second, "ledger").await, None);
    assert!(events(&second, "ledger").await.is_empty());
    second.append(&new, 0, &batch).await.unwrap();
    assert_eq!(state(&second, "ledger").await.as_deref(), Some("changed"));
}

pub(crate) async fn a_change_that_panics_is_declined_and_the_journal_goes_on(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    let panics = || Change::new(|state| panic!("cannot fold {state:?}"));
    assert_declined(journal.update(&stream("ledger"), 1, &panics()).await, "ledger", "cannot fold None");
    let batch = Batch { updates: vec![update("ledger", count(3)), update("ledger", panics())], ..one(1) };
    assert_declined(journal.append(&lease, 0, &batch).await, "ledger", "cannot fold Some(\"3\")");
    assert_eq!(journal.update(&stream("ledger"), 1, &count(1)).await.as_deref(), Ok("1"));
    assert_eq!(journal.append(&lease, 0, &one(1)).await, Ok(1));
}

pub(crate) async fn what_a_change_says_is_kept_whole_or_refused(world: World) {
    let journal = world.open().await;
    let says = |state: &str, event: &str| {
        let changed = Changed { state: state.to_owned(), events: vec![event.to_owned()] };
        Change::new(move |_| Ok(changed.clone()))
    };
    for (state, event) in [("nul\0", "{}"), ("{}", "nul\0")] {
        let refused = journal.update(&stream("ledger"), 1, &says(state, event)).await;
        assert!(matches!(refused, Err(Error::BadText { .. })), "{refused:?}");
    }
    assert_eq!(state(&journal, "ledger").await, None);
    let long = format!(r#"{{"type":"{}"}}"#, "x☃'\\u0000".repeat(BLOB_ABOVE));
    assert_eq!(journal.update(&stream("ledger"), 1, &says(&long, &long)).await.as_ref(), Ok(&long));
    let lease = own(&journal, "a").await;
    let batch =
        Batch { updates: vec![update("ledger", says("", &long))], ..Batch::events(1, [long.clone()]) };
    assert_eq!(journal.append_shared(&lease, 0, &batch).await.unwrap().states, [""]);
    assert_eq!(state(&journal, "ledger").await.as_deref(), Some(""));
    assert_eq!(events(&journal, "ledger").await, [long.clone(), long.clone()]);
    journal.release(&lease).await.unwrap();
    assert_eq!(journal.prune(&[stream("a")]).await.unwrap().blobs, 0, "the shared stream still refers to it");
    assert_eq!(journal.prune(&[stream("ledger")]).await.unwrap().blobs, 1);
}

pub(crate) async fn prune_removes_the_state_of_a_shared_stream(world: World) {
    let journal = world.open().await;
    for _ in 0..3 {
        assert_eq!(journal.update(&stream("ledger"), 1, &count(1)).await.as_deref(), Ok("1"));
        let pruned = journal.prune(&[stream("ledger")]).await.unwrap();
        assert_eq!((pruned.removed, pruned.events), (vec![stream("ledger")], 1));
        assert_eq!(state(&journal, "ledger").await, None);
    }
}

pub(crate) async fn an_append_may_update_its_own_stream(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    let batch = Batch { updates: vec![update("a", count(5)), update("a", count(1))], ..one(1) };
    let states = vec!["5".to_owned(), "6".to_owned()];
    assert_eq!(journal.append_shared(&lease, 0, &batch).await, Ok(Appended { seq: 3, states }));
    assert_eq!(events(&journal, "a").await, [event(1), event(5), event(6)]);
    assert_eq!(journal.append(&lease, 3, &one(7)).await, Ok(4));
}

pub(crate) async fn tail_wakes_up_for_an_update(world: World) {
    let journal = world.open().await;
    let other = world.open().await;
    let lease = own(&journal, "a").await;
    for (after, writer) in [(0, &journal), (1, &other)] {
        let tail = journal.clone();
        let mut tail = Box::pin(async move { tail.tail(&stream("ledger"), after).await.unwrap() });
        // One look that finds nothing.
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), &mut tail).await.is_err());
        writer.update(&stream("ledger"), 1, &count(1)).await.unwrap();
        assert_eq!(soon(tail).await.len(), 1);
    }
    let tail = journal.clone();
    let mut tail = Box::pin(async move { tail.tail(&stream("ledger"), 2).await.unwrap() });
    assert!(tokio::time::timeout(std::time::Duration::from_millis(20), &mut tail).await.is_err());
    journal.append(&lease, 0, &Batch { updates: vec![update("ledger", count(1))], ..one(1) }).await.unwrap();
    assert_eq!(soon(tail).await.len(), 1);
}

pub(crate) async fn of_many_updates_by_many_none_is_lost(world: World) {
    const PROCESSES: usize = 4;
    const TASKS: usize = 4;
    const ROUNDS: u64 = 12;
    let mut working = tokio::task::JoinSet::new();
    for process in 0..PROCESSES {
        let journal = world.open().await;
        for task in 0..TASKS {
            let journal = journal.clone();
            working.spawn(async move {
                let mut seen = Vec::new();
                let lease = own(&journal, &format!("a{process}_{task}")).await;
                for round in 0..ROUNDS {
                    // Two shared streams in both orders, so that a store that locks in the given order
                    // deadlocks; and now and then one that is declined after it has counted.
                    let mut updates = vec![update("ledger", count(1)), update("board", count(1))];
                    if task % 2 == 1 {
                        updates.reverse();
                    }
                    let batch = Batch { updates, inputs: vec![input("mail", "same key", "")], ..one(1) };
                    let states = journal.append_shared(&lease, round, &batch).await.unwrap().states;
                    seen.push(states[task % 2].parse::<u64>().unwrap());
                    let doomed = vec![update("ledger", count(1)), update("nobody", decline("no"))];
                    let doomed = Batch { updates: doomed, ..one(666) };
                    assert_declined(journal.append(&lease, round + 1, &doomed).await, "nobody", "no");
                    let state = journal.update(&stream("ledger"), 1, &count(1)).await.unwrap();
                    seen.push(state.parse().unwrap());
                }
                seen
            });
        }
    }
    let seen: Vec<u64> = soon(working.join_all()).await.concat();
    let total = (PROCESSES * TASKS) as u64 * ROUNDS * 2;
    assert_eq!(seen.len() as u64, total);
    assert_eq!(
        seen.into_iter().collect::<BTreeSet<_>>(),
        (1..=total).collect(),
        "two have counted to the same number"
    );
    let journal = world.open().await;
    assert_eq!(state(&journal, "ledger").await, Some(total.to_string()));
    assert_eq!(state(&journal, "board").await, Some((total / 2).to_string()));
    let told: Vec<_> = journal.load(&stream("ledger"), 0).await.unwrap();
    let numbers: Vec<_> = told.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=total).collect::<Vec<_>>());
    assert_eq!(events(&journal, "ledger").await, (1..=total as usize).map(event).collect::<Vec<_>>());
}
