//! Cases about leases: which process may append, and which may take over.

use std::time::Duration;

use convoke_journal::{Error, Filter, Options, Process};

use crate::world::*;

pub(crate) async fn a_lost_lease_cannot_append(world: World) {
    let first = world.open_as(somebody_gone()).await;
    let old = own(&first, "a").await;
    first.append(&old, 0, &one(1)).await.unwrap();

    let second = world.open().await;
    let new = own(&second, "a").await;
    assert_lost(first.append(&old, 1, &one(666)).await);
    assert_eq!(second.append(&new, 1, &one(2)).await, Ok(2));
    assert_lost(first.append(&old, 2, &one(666)).await);
    assert_eq!(events(&first, "a").await, [event(1), event(2)]);
}

pub(crate) async fn two_processes_cannot_own_one_stream(world: World) {
    let alice = someone();
    let bob = someone();
    let first = world.open_as(alice.clone()).await;
    let second = world.open_as(bob).await;
    let _lease = own(&first, "a").await;
    assert_held(second.own(&stream("a")).await, &alice);
    own(&second, "b").await;
}

pub(crate) async fn of_many_who_want_a_stream_one_gets_it(world: World) {
    let mut wanting = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let journal = world.open().await;
        wanting.spawn(async move { journal.own(&stream("a")).await });
    }
    let answers = soon(wanting.join_all()).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert!(answers.iter().all(|a| matches!(a, Ok(_) | Err(Error::Held { .. }))), "{answers:?}");
}

pub(crate) async fn one_process_cannot_own_a_stream_twice(world: World) {
    let me = someone();
    let journal = world.open_as(me.clone()).await;
    let lease = own(&journal, "a").await;
    assert_held(journal.own(&stream("a")).await, &me);
    assert_held(journal.clone().own(&stream("a")).await, &me);
    assert_eq!(journal.append(&lease, 0, &one(1)).await, Ok(1));
}

pub(crate) async fn a_dropped_lease_can_be_had_again_and_fences_the_old_one(world: World) {
    let me = someone();
    let journal = world.open_as(me.clone()).await;
    drop(own(&journal, "a").await);
    let second = own(&journal, "a").await;
    assert_eq!(journal.append(&second, 0, &one(1)).await, Ok(1));

    // Another handle under the same name cannot know of the lease; the fence still holds.
    let again = world.open_as(me).await;
    let third = own(&again, "a").await;
    assert!(third.epoch() > second.epoch());
    assert_lost(journal.append(&second, 1, &one(666)).await);
}

pub(crate) async fn a_provably_dead_owner_is_replaced_at_once(world: World) {
    let me = Process::current(random());
    let gone = [
        Process { pid: u32::MAX, ..Process::current(random()) },
        // Its pid is in use, but by a process that started later.
        Process { start_time: me.start_time - 1, ..Process::current(random()) },
    ];
    for process in gone {
        let options = Options { lease_ttl: Duration::from_secs(1_000_000), ..Options::new(process) };
        let dead = world.open_as(options).await;
        let _lease = own(&dead, "a").await;
        let alive = world.open().await;
        let lease = own(&alive, "a").await;
        alive.release(&lease).await.unwrap();
    }
}

pub(crate) async fn an_expired_lease_is_replaced_and_the_old_owner_is_fenced(world: World) {
    let quick = Options { lease_ttl: Duration::from_millis(50), ..someone() };
    let sleepy = world.open_as(quick).await;
    let old = own(&sleepy, "a").await;
    let second = world.open().await;
    let take_over = async {
        loop {
            match second.own(&stream("a")).await {
                Ok(lease) => return lease,
                Err(Error::Held { .. }) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
        }
    };
    let new = soon(take_over).await;
    // It wakes up, renews its heartbeat, and is still fenced off.
    sleepy.heartbeat().await.unwrap();
    assert_lost(sleepy.append(&old, 0, &one(666)).await);
    assert_eq!(second.append(&new, 0, &one(1)).await, Ok(1));
}

pub(crate) async fn a_silent_owner_of_another_boot_is_respected_until_it_expires(world: World) {
    let elsewhere =
        Process { boot: "another machine".to_owned(), pid: u32::MAX, ..Process::current(random()) };
    let patient = Options::new(elsewhere.clone());
    let far = world.open_as(patient.clone()).await;
    let _lease = own(&far, "a").await;
    let near = world.open().await;
    assert_held(near.own(&stream("a")).await, &patient);

    let hasty = Options { lease_ttl: Duration::ZERO, ..Options::new(elsewhere) };
    let far = world.open_as(hasty).await;
    let old = own(&far, "a").await;
    let taken = async {
        while near.own(&stream("a")).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(taken).await;
    assert_lost(far.append(&old, 0, &one(666)).await);
}

pub(crate) async fn a_heartbeat_makes_an_owner_young_again(world: World) {
    let journal = world.open().await;
    let _lease = own(&journal, "a").await;
    let silent = async || {
        let listing = journal.list(&Filter::default()).await.unwrap().remove(0);
        listing.owner.expect("a live owner is listed").silent_for
    };
    let aged = async {
        loop {
            let age = silent().await;
            if age >= Duration::from_millis(30) {
                return age;
            }
        }
    };
    let aged = soon(aged).await;
    let younger = async {
        loop {
            journal.heartbeat().await.unwrap();
            let age = silent().await;
            if age < aged {
                return age;
            }
        }
    };
    assert!(soon(younger).await < aged);
}

pub(crate) async fn a_released_stream_is_free_and_its_lease_is_worthless(world: World) {
    let first = world.open().await;
    let second = world.open().await;
    let old = own(&first, "a").await;
    first.release(&old).await.unwrap();
    assert_lost(first.append(&old, 0, &one(666)).await);
    let new = own(&second, "a").await;
    assert_lost(first.append(&old, 0, &one(666)).await);
    assert_eq!(second.append(&new, 0, &one(1)).await, Ok(1));
    second.release(&new).await.unwrap();
    // The first may own it again although it still has the old lease in its hands.
    let newest = own(&first, "a").await;
    assert_eq!(first.append(&newest, 1, &one(2)).await, Ok(2));
}

pub(crate) async fn releasing_a_lost_lease_takes_nothing_from_the_new_owner(world: World) {
    let first = world.open_as(somebody_gone()).await;
    let old = own(&first, "a").await;
    let second = world.open().await;
    let new = own(&second, "a").await;
    first.release(&old).await.unwrap();
    first.release(&old).await.unwrap();
    assert_eq!(second.append(&new, 0, &one(1)).await, Ok(1));
}

pub(crate) async fn every_lease_has_a_greater_epoch_even_after_a_prune(world: World) {
    let journal = world.open().await;
    let mut last = 0;
    for name in ["a", "b", "a", "c"] {
        let lease = own(&journal, name).await;
        assert!(lease.epoch() > last, "{} after {last}", lease.epoch());
        last = lease.epoch();
        journal.release(&lease).await.unwrap();
        journal.prune(&[stream(name)]).await.unwrap();
        let again = own(&journal, name).await;
        assert_lost(journal.append(&lease, 0, &one(666)).await);
        assert!(again.epoch() > last);
        last = again.epoch();
        journal.release(&again).await.unwrap();
    }
}

pub(crate) async fn closing_gives_up_the_leases_and_ends_the_handle(world: World) {
    let first = world.open().await;
    let second = world.open().await;
    let lease = own(&first, "a").await;
    first.append(&lease, 0, &one(1)).await.unwrap();
    let clone = first.clone();
    first.close().await.unwrap();
    let new = own(&second, "a").await;
    assert!(clone.append(&lease, 1, &one(666)).await.is_err());
    assert_eq!(second.append(&new, 1, &one(2)).await, Ok(2));
}

pub(crate) async fn a_lease_is_held_until_it_is_lost_or_released(world: World) {
    let gone = somebody_gone();
    let first = world.open_as(gone.clone()).await;
    let second = world.open().await;
    let old = own(&first, "a").await;
    let elsewhere = own(&first, "b").await;
    assert_eq!(first.holds(&old).await, Ok(true));
    first.append(&old, 0, &one(1)).await.unwrap();
    // Whichever process asks, the answer is about the lease.
    assert_eq!(second.holds(&old).await, Ok(true));

    let new = own(&second, "a").await;
    first.heartbeat().await.unwrap();
    assert_eq!(first.holds(&old).await, Ok(false));
    assert_eq!(first.holds(&elsewhere).await, Ok(true));
    assert_eq!(second.holds(&new).await, Ok(true));

    second.release(&new).await.unwrap();
    assert_eq!(second.holds(&new).await, Ok(false));
    assert_eq!(first.holds(&old).await, Ok(false));
    // The same owner with a later epoch has another lease.
    let again = world.open_as(gone).await;
    let newest = own(&again, "a").await;
    assert_eq!(first.holds(&old).await, Ok(false));
    assert_eq!(again.holds(&newest).await, Ok(true));

    again.release(&newest).await.unwrap();
    second.prune(&[stream("a")]).await.unwrap();
    assert_eq!(again.holds(&newest).await, Ok(false));
}
