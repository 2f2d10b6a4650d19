//! Cases about single flights: one at a time is at work on a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_journal::{Batch, Error, Filter, Flight, Journal, Options};

use crate::world::*;

async fn fly(journal: &Journal, key: &str) -> Flight {
    soon(journal.single_flight(key)).await.unwrap()
}

/// A future that waits for a flight, and has looked for it once in vain.
async fn waiter(
    journal: &Journal,
    key: &'static str,
) -> std::pin::Pin<Box<impl Future<Output = Flight> + use<>>> {
    let journal = journal.clone();
    let mut waiting = Box::pin(async move { journal.single_flight(key).await.unwrap() });
    let look = tokio::time::timeout(Duration::from_millis(30), &mut waiting).await;
    assert!(look.is_err(), "two have the flight");
    waiting
}

pub(crate) async fn one_at_a_time_has_the_flight_of_a_key(world: World) {
    let flying = Arc::new(AtomicUsize::new(0));
    let flights = Arc::new(AtomicUsize::new(0));
    let mut all = tokio::task::JoinSet::new();
    for process in 0..3 {
        let journal = world.open().await;
        for task in 0..4 {
            let journal = journal.clone();
            let flying = Arc::clone(&flying);
            let flights = Arc::clone(&flights);
            all.spawn(async move {
                for round in 0..2 {
                    let flight = fly(&journal, "key").await;
                    assert_eq!(flying.fetch_add(1, Ordering::SeqCst), 0, "two are at work on one key");
                    // Something to do, in which the others could come in between.
                    let lease = own(&journal, &format!("a{process}_{task}_{round}")).await;
                    journal.append(&lease, 0, &one(1)).await.unwrap();
                    assert_eq!(flying.fetch_sub(1, Ordering::SeqCst), 1, "two are at work on one key");
                    flights.fetch_add(1, Ordering::SeqCst);
                    flight.land().await.unwrap();
                }
            });
        }
    }
    soon(all.join_all()).await;
    assert_eq!(flights.load(Ordering::SeqCst), 24);
}

pub(crate) async fn equal_work_is_done_once(world: World) {
    let done = Arc::new(AtomicUsize::new(0));
    let mut all = tokio::task::JoinSet::new();
    for n in 0..6 {
        let journal = world.open().await;
        let done = Arc::clone(&done);
        all.spawn(async move {
            let flight = fly(&journal, "question").await;
            if journal.result("question").await.unwrap().is_none() {
                done.fetch_add(1, Ordering::SeqCst);
                let lease = own(&journal, &format!("a{n}")).await;
                let results = vec![("question".to_owned(), "42".to_owned())];
                journal.append(&lease, 0, &Batch { results, ..one(n) }).await.unwrap();
            }
            flight.land().await.unwrap();
            journal.result("question").await.unwrap()
        });
    }
    for answer in soon(all.join_all()).await {
        assert_eq!(answer.as_deref(), Some("42"));
    }
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

pub(crate) async fn a_flight_that_lands_or_is_dropped_is_followed_by_the_next_of_this_process(world: World) {
    let journal = world.open().await;
    let first = fly(&journal, "key").await;
    let second = waiter(&journal, "key").await;
    first.land().await.unwrap();
    let second = soon(second).await;
    let third = waiter(&journal, "key").await;
    drop(second);
    let third = soon(third).await;
    let _fourth = waiter(&journal, "key").await;
    third.land().await.unwrap();
}

pub(crate) async fn another_process_waits_until_the_flight_has_landed(world: World) {
    let here = world.open().await;
    let there = world.open().await;
    let flight = fly(&here, "key").await;
    let waiting = waiter(&there, "key").await;
    flight.land().await.unwrap();
    soon(waiting).await.land().await.unwrap();
    fly(&here, "key").await.land().await.unwrap();
}

pub(crate) async fn a_dropped_flight_is_free_for_others_after_the_next_heartbeat(world: World) {
    let here = world.open().await;
    let there = world.open().await;
    drop(fly(&here, "key").await);
    drop(fly(&here, "other").await);
    let waiting = waiter(&there, "key").await;
    here.heartbeat().await.unwrap();
    let theirs = soon(waiting).await;
    fly(&there, "other").await.land().await.unwrap();
    // A later heartbeat takes nothing away from the holders of now, in this process or another.
    drop(fly(&here, "other").await);
    let ours = fly(&here, "other").await;
    here.heartbeat().await.unwrap();
    let _waiting = (waiter(&here, "key").await, waiter(&there, "other").await);
    theirs.land().await.unwrap();
    ours.land().await.unwrap();
}

pub(crate) async fn a_waiter_that_is_dropped_keeps_nobody_from_flying(world: World) {
    let here = world.open().await;
    let there = world.open().await;
    for attempt in 0..30u64 {
        let patience = Duration::from_micros(attempt * 100);
        let got = tokio::time::timeout(patience, here.single_flight("key")).await;
        drop(got);
        let free = async {
            loop {
                // The attempt may be under way still, and ends in a flight that is dropped.
                here.heartbeat().await.unwrap();
                let waited =
                    tokio::time::timeout(Duration::from_millis(20), there.single_flight("key")).await;
                if let Ok(flight) = waited {
                    return flight.unwrap();
                }
                there.heartbeat().await.unwrap();
            }
        };
        soon(free).await.land().await.unwrap();
    }
}

pub(crate) async fn a_dead_or_silent_holder_is_replaced(world: World) {
    let patient = Duration::from_secs(1_000_000);
    let dead = world.open_as(Options { lease_ttl: patient, ..somebody_gone() }).await;
    let silent = world.open_as(Options { lease_ttl: Duration::from_millis(50), ..someone() }).await;
    let journal = world.open().await;
    for gone in [dead, silent] {
        let old = fly(&gone, "key").await;
        let new = fly(&journal, "key").await;
        // It wakes up and lands: the flight is another's by now.
        old.land().await.unwrap();
        let waiting = waiter(&journal, "key").await;
        new.land().await.unwrap();
        soon(waiting).await.land().await.unwrap();
    }
}

pub(crate) async fn closing_ends_the_flights_of_a_process(world: World) {
    let first = world.open().await;
    let second = world.open().await;
    let flight = fly(&first, "key").await;
    let waiting = waiter(&second, "key").await;
    first.close().await.unwrap();
    soon(waiting).await.land().await.unwrap();
    // Landing it now is too late; in memory, which stays open, it is no error.
    let _ = flight.land().await;
    fly(&second, "key").await.land().await.unwrap();
}

pub(crate) async fn every_text_is_a_key_of_its_own(world: World) {
    let journal = world.open().await;
    let long = "x".repeat(1 << 20);
    let keys = ["", " ", "a", "A", "flight:", "nul\0", "☃'\"; --", &long, &long[1..]];
    let mut flights = Vec::new();
    for key in keys {
        flights.push(fly(&journal, key).await);
    }
    for flight in flights {
        flight.land().await.unwrap();
    }
}

pub(crate) async fn flights_are_not_listed_and_leave_streams_alone(world: World) {
    let journal = world.open().await;
    let _lease = own(&journal, "a").await;
    let flight = fly(&journal, "a").await;
    for prefix in [None, Some(""), Some("f"), Some("flight:")] {
        let filter = Filter { prefix: prefix.map(str::to_owned), limit: None };
        let listed = journal.list(&filter).await.unwrap();
        assert!(listed.iter().all(|listing| listing.stream == stream("a")), "{listed:?}");
    }
    assert_eq!(journal.list(&Filter { prefix: None, limit: Some(1) }).await.unwrap().len(), 1);
    let pruned = journal.prune(&[]).await.unwrap();
    assert_eq!((pruned.removed, pruned.held), (vec![], vec![]));
    let _waiting = waiter(&journal, "a").await;
    flight.land().await.unwrap();
    let refused = journal.own(&stream("a")).await;
    assert!(matches!(refused, Err(Error::Held { .. })), "{refused:?}");
}
