//! A PostgreSQL store that goes away for a moment: backends that are ended, commits whose answer is lost, a
//! server that is not there for a while. Users of the journal notice nothing but time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke_journal::{Batch, Change, Changed, Error, Journal, Location, Options, Submitted, Update};

use crate::postgres::with_database;
use crate::wire::{Proxy, Wire};
use crate::world::*;

async fn open(url: &str) -> Journal {
    Journal::open(Location::Postgres(url.to_owned()), someone()).await.unwrap()
}

/// Adds an `x` to the state, and an event.
fn longer() -> Change {
    Change::new(|state| {
        Ok(Changed { state: format!("{}x", state.unwrap_or_default()), events: vec![event(1)] })
    })
}

/// Does one of everything that changes something, in an order in which each answer depends on those before
/// it, and says what each came to. `before` is called before each.
async fn everything(journal: &Journal, before: impl Fn()) -> Vec<String> {
    let mut said = Vec::new();
    macro_rules! tell {
        ($done:expr) => {{
            before();
            let done = $done.await;
            said.push(format!("{:?}", done.as_ref().map_err(Error::to_string)));
            done.unwrap()
        }};
    }
    let a = stream("a");
    let ledger = stream("ledger");
    assert_eq!(tell!(journal.submit(&input("a", "k", "body"), 1)), Submitted::Accepted);
    assert_eq!(tell!(journal.submit(&input("a", "k", "body"), 1)), Submitted::AlreadyKnown);
    before();
    // Its epoch may be a later one than without a cut.
    let lease = journal.own(&a).await.unwrap();
    let batch = Batch {
        acks: vec!["k".into()],
        inputs: vec![input("b", "k", "letter")],
        results: vec![("r".into(), "{}".into())],
        updates: vec![Update { stream: ledger.clone(), change: longer() }],
        ..one(1)
    };
    assert_eq!(tell!(journal.append_shared(&lease, 0, &batch)).seq, 1);
    // A batch without events, which no sequence number guards.
    let bare =
        Batch { updates: vec![Update { stream: ledger.clone(), change: longer() }], ..Batch::default() };
    assert_eq!(tell!(journal.append_shared(&lease, 1, &bare)).states, ["xx"]);
    assert_eq!(tell!(journal.update(&ledger, 1, &longer())), "xxx");
    tell!(journal.heartbeat());
    assert!(tell!(journal.holds(&lease)));
    tell!(journal.inputs(&stream("b")));
    tell!(journal.load(&a, 0));
    assert_eq!(tell!(journal.append(&lease, 1, &one(2))), 2);
    before();
    let flight = journal.single_flight("key").await.unwrap();
    tell!(flight.land());
    tell!(journal.release(&lease));
    assert_eq!(tell!(journal.prune(std::slice::from_ref(&a))).events, 2);
    assert_eq!(tell!(journal.forget_results(5000)), 1);
    tell!(journal.shared(&ledger));
    said.push(format!("{:?}", events(journal, "ledger").await));
    said
}

async fn uncut() -> Vec<String> {
    everything(&Journal::open(Location::Memory, someone()).await.unwrap(), || ()).await
}

#[tokio::test]
async fn whatever_commit_is_cut_once_is_done_once_and_answered_as_if_it_had_not_been() {
    let test = "whatever_commit_is_cut_once_is_done_once_and_answered_as_if_it_had_not_been";
    for cut in [Wire::CutsBefore(1), Wire::CutsAfter(1), Wire::CutsBefore(3), Wire::CutsAfter(3)] {
        let case = async move |database: Arc<Database>| {
            let proxy = Proxy::start(&database).await;
            let journal = open(&proxy.url).await;
            assert_eq!(everything(&journal, || proxy.set(cut)).await, uncut().await, "{cut:?}");
        };
        with_database(test, case).await;
    }
}

#[tokio::test]
async fn a_cut_at_any_message_of_an_append_changes_nothing_that_matters() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        let journal = open(&proxy.url).await;
        let lease = own(&journal, "a").await;
        let ledger = stream("ledger");
        let mut seq = 0;
        let mut cuts = 0;
        for cut in [Wire::CutsAt as fn(usize) -> Wire, Wire::CutsBehind] {
            for message in 0.. {
                proxy.set(cut(message));
                let update = Update { stream: ledger.clone(), change: longer() };
                let batch =
                    Batch { updates: vec![update], inputs: vec![input("b", "k", "x")], ..one(seq + 1) };
                let appended = journal.append_shared(&lease, seq as u64, &batch).await.unwrap();
                seq += 1;
                assert_eq!((appended.seq, appended.states[0].len()), (seq as u64, seq), "{:?}", cut(message));
                if proxy.mode() != Wire::Carries {
                    break;
                }
                cuts += 1;
            }
            proxy.set(Wire::Carries);
        }
        println!("{cuts} cuts in {seq} appends");
        assert!(cuts > 10, "an append is some messages long: {cuts}");
        assert_eq!(events(&journal, "a").await, (1..=seq).map(event).collect::<Vec<_>>());
        assert_eq!(events(&journal, "ledger").await.len(), seq);
    };
    with_database("a_cut_at_any_message_of_an_append_changes_nothing_that_matters", case).await;
}

#[tokio::test]
async fn an_outage_of_seconds_is_waited_for_by_whoever_reads_writes_or_waits() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        let journal = open(&proxy.url).await;
        let lease = own(&journal, "a").await;
        let tail = tokio::spawn({
            let journal = journal.clone();
            async move { journal.tail(&stream("a"), 0).await }
        });
        proxy.set(Wire::IsDown);
        let write = tokio::spawn({
            let journal = journal.clone();
            let lease = lease.clone();
            async move { journal.append(&lease, 0, &one(1)).await }
        });
        let read = tokio::spawn({
            let journal = journal.clone();
            async move { journal.inputs(&stream("b")).await }
        });
        // An outage is time that passes; nothing can be waited for meanwhile.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!write.is_finished() && !read.is_finished() && !tail.is_finished());
        proxy.set(Wire::Carries);
        assert_eq!(soon(write).await.unwrap(), Ok(1));
        assert_eq!(soon(read).await.unwrap(), Ok(vec![]));
        assert_eq!(soon(tail).await.unwrap().unwrap().len(), 1);
    };
    with_database("an_outage_of_seconds_is_waited_for_by_whoever_reads_writes_or_waits", case).await;
}

/// Many agents append, each to a stream of its own and to one ledger, as long as `disturb` takes.
async fn many_append(journal: &Journal, agents: usize, disturb: impl Future<Output = ()> + Send) {
    let count = agents;
    let ended = Arc::new(AtomicBool::new(false));
    let mut agents = tokio::task::JoinSet::new();
    for agent in 0..count {
        let journal = journal.clone();
        let ended = Arc::clone(&ended);
        agents.spawn(async move {
            let name = format!("a{agent}");
            let lease = own(&journal, &name).await;
            let mut done = 0;
            while done < 5 || !ended.load(Ordering::SeqCst) {
                let update = Update { stream: stream("ledger"), change: longer() };
                let batch = Batch { updates: vec![update], ..one(done + 1) };
                let seq = journal.append(&lease, done as u64, &batch).await.unwrap();
                done += 1;
                assert_eq!(seq, done as u64);
            }
            assert_eq!(events(&journal, &name).await, (1..=done).map(event).collect::<Vec<_>>());
            done
        });
    }
    disturb.await;
    ended.store(true, Ordering::SeqCst);
    let done: usize = soon(agents.join_all()).await.into_iter().sum();
    assert_eq!(events(journal, "ledger").await.len(), done);
    println!("{done} appends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backends_that_are_ended_again_and_again_cost_no_append_and_double_none() {
    let case = |database: Arc<Database>| async move {
        let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let end = async {
            for _ in 0..8 {
                database.run(&format!("SELECT pg_terminate_backend(pid) {others}")).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        many_append(&open(&database.url).await, 20, end).await;
    };
    with_database("backends_that_are_ended_again_and_again_cost_no_append_and_double_none", case).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_agents_append_over_two_connections() {
    let case = |database: Arc<Database>| async move {
        let options = Options { connections: 2, ..someone() };
        let journal = Journal::open(Location::Postgres(database.url.clone()), options).await.unwrap();
        many_append(&journal, 200, async {}).await;
        assert!(database.connections().await <= 2, "{}", database.connections().await);
    };
    with_database("two_hundred_agents_append_over_two_connections", case).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_has_eight_connections_unless_somebody_wants_another_number() {
    let case = |database: Arc<Database>| async move {
        let journal = open(&database.url).await;
        let most = async {
            let mut most = 0;
            for _ in 0..20 {
                most = database.connections().await.max(most);
            }
            println!("{most} connections");
            assert!((2..=8).contains(&most), "{most}");
        };
        many_append(&journal, 40, most).await;
    };
    with_database("a_store_has_eight_connections_unless_somebody_wants_another_number", case).await;
}

#[tokio::test]
async fn a_lease_that_another_took_during_an_outage_is_lost_and_no_other() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        // It is believed gone as soon as it is silent, by a process that reaches the server.
        let options = Options { lease_ttl: Duration::ZERO, ..someone() };
        let cut_off = Journal::open(Location::Postgres(proxy.url.clone()), options).await.unwrap();
        let taken = own(&cut_off, "taken").await;
        let kept = own(&cut_off, "kept").await;
        proxy.set(Wire::IsDown);
        let other = open(&database.url).await;
        let lease = loop {
            // Its silence is counted in whole milliseconds.
            match other.own(&stream("taken")).await {
                Ok(lease) => break lease,
                Err(error) => assert!(matches!(error, Error::Held { .. }), "{error}"),
            }
        };
        other.append(&lease, 0, &one(1)).await.unwrap();
        let late = tokio::spawn({
            let cut_off = cut_off.clone();
            async move { (cut_off.append(&taken, 0, &one(2)).await, cut_off.append(&kept, 0, &one(3)).await) }
        });
        let mut outage = cut_off.outage();
        soon(outage.wait_for(Option::is_some)).await.unwrap();
        proxy.set(Wire::Carries);
        let (taken, kept) = soon(late).await.unwrap();
        assert_lost(taken);
        assert_eq!(kept, Ok(1), "it was expired, and nobody took it");
        assert_eq!(events(&other, "taken").await, [event(1)]);
    };
    with_database("a_lease_that_another_took_during_an_outage_is_lost_and_no_other", case).await;
}
