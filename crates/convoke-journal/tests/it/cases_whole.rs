//! Cases about the journal as a whole: results, listing, pruning, many writers.

use std::collections::HashSet;

use convoke_journal::{Batch, Error, Filter, Journal};

use crate::world::*;

pub(crate) async fn results_are_found_by_key_and_the_newest_counts(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    assert_eq!(journal.result("k").await.unwrap(), None);
    let results = |json: &str| vec![("k".to_owned(), json.to_owned()), ("other".to_owned(), "0".to_owned())];
    journal.append(&lease, 0, &Batch { results: results("1"), ..one(1) }).await.unwrap();
    assert_eq!(journal.result("k").await.unwrap().as_deref(), Some("1"));
    journal.append(&lease, 1, &Batch { results: results("2"), ..one(2) }).await.unwrap();
    assert_eq!(world.open().await.result("k").await.unwrap().as_deref(), Some("2"));
    let later = Batch { at: 5_000, results: results("3"), ..Batch::default() };
    journal.append(&lease, 2, &later).await.unwrap();
    assert_eq!(journal.result_at("k").await.unwrap(), Some(("3".to_owned(), 5_000)));
    assert_eq!(journal.result_at("nothing").await.unwrap(), None);
}

pub(crate) async fn any_number_of_results_are_found_in_one_query(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    // A long one is kept apart from its row.
    let long = format!("\"{}\"", "x".repeat(2 * convoke_journal::BLOB_ABOVE));
    let results = (0..2_500).map(|number| (format!("k{number}"), number.to_string()));
    let results = results.chain([("long'\"ä".to_owned(), long.clone())]).collect();
    journal.append(&lease, 0, &Batch { at: 7, results, ..one(1) }).await.unwrap();
    let keys = |count: usize| (0..count).map(|number| format!("k{number}")).collect::<Vec<_>>();
    for count in [0, 1, 2_500] {
        let asked = journal.times_asked();
        let found = journal.results_at(&keys(count)).await.unwrap();
        assert_eq!(found.len(), count);
        assert!(keys(count).iter().enumerate().all(|(at, key)| found[key] == (at.to_string(), 7)));
        assert_eq!(journal.times_asked() - asked, u64::from(count > 0), "{count} keys");
    }
    let some = ["nothing", "long'\"ä", "k1", "k1"].map(str::to_owned);
    let found = journal.results_at(&some).await.unwrap();
    assert_eq!(found.len(), 2, "{:?}", found.keys());
    assert_eq!(found["long'\"ä"].0, long);
}

pub(crate) async fn results_are_forgotten_by_age(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    for (expected, at) in [(0, 10), (1, 20)] {
        let results = vec![(format!("r{at}"), "{}".to_owned())];
        let batch = Batch { results, ..Batch::events(at, [event(1)]) };
        journal.append(&lease, expected, &batch).await.unwrap();
    }
    assert_eq!(journal.forget_results(20).await, Ok(1));
    assert_eq!(journal.result("r10").await.unwrap(), None);
    assert_eq!(journal.result("r20").await.unwrap().as_deref(), Some("{}"));
}

async fn names(journal: &Journal, prefix: Option<&str>, limit: Option<usize>) -> Vec<String> {
    let filter = Filter { prefix: prefix.map(str::to_owned), limit };
    let listed = journal.list(&filter).await.unwrap();
    listed.into_iter().map(|listing| listing.stream.to_string()).collect()
}

pub(crate) async fn streams_are_listed_newest_first(world: World) {
    let me = someone();
    let journal = world.open_as(me.clone()).await;
    journal.submit(&input("s_old", "k", ""), 10).await.unwrap();
    journal.submit(&input("s_new", "k", ""), 30).await.unwrap();
    journal.submit(&input("a_mid", "k", ""), 20).await.unwrap();
    let lease = own(&journal, "s_old").await;
    let batch = Batch { summary: Some(r#"{"title":"x"}"#.into()), ..Batch::events(99, [event(1), event(2)]) };
    journal.append(&lease, 0, &batch).await.unwrap();
    journal.append(&lease, 2, &Batch::events(100, [event(3)])).await.unwrap();

    assert_eq!(names(&journal, None, None).await, ["s_new", "a_mid", "s_old"]);
    assert_eq!(names(&journal, Some("s_"), None).await, ["s_new", "s_old"]);
    assert_eq!(names(&journal, None, Some(2)).await, ["s_new", "a_mid"]);
    assert_eq!(names(&journal, Some("zzz"), None).await, [""; 0]);

    let listed = journal.list(&Filter { prefix: Some("s_old".into()), limit: None }).await.unwrap().remove(0);
    assert_eq!(listed.summary.as_deref(), Some(r#"{"title":"x"}"#));
    assert_eq!((listed.seq, listed.created_at, listed.updated_at), (3, 10, 100));
    assert_eq!(listed.owner.unwrap().process, me.process);
    let free = journal.list(&Filter { prefix: Some("s_new".into()), limit: None }).await.unwrap().remove(0);
    assert_eq!((free.seq, free.created_at, free.summary, free.owner), (0, 30, None, None));
}

pub(crate) async fn a_prefix_is_taken_literally(world: World) {
    let journal = world.open().await;
    for name in ["a_1", "ax1", "a", "b", "a_", "a:1"] {
        journal.submit(&input(name, "k", ""), 1).await.unwrap();
    }
    let found: HashSet<_> = names(&journal, Some("a_"), None).await.into_iter().collect();
    assert_eq!(found, HashSet::from(["a_".to_owned(), "a_1".to_owned()]));
}

pub(crate) async fn a_dead_owner_is_not_listed(world: World) {
    let dead = world.open_as(somebody_gone()).await;
    let _lease = own(&dead, "a").await;
    let listed = world.open().await.list(&Filter::default()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].owner, None);
}

pub(crate) async fn prune_removes_everything_of_a_stream_but_its_results(world: World) {
    let journal = world.open().await;
    journal.submit(&input("a", "k", "hello"), 1).await.unwrap();
    journal.submit(&input("a", "l", "hello"), 1).await.unwrap();
    let lease = own(&journal, "a").await;
    let batch = Batch {
        acks: vec!["k".into()],
        inputs: vec![input("b", "k", "mail")],
        results: vec![("r".into(), "{}".into())],
        ..Batch::events(1, [event(1), event(2)])
    };
    journal.append(&lease, 0, &batch).await.unwrap();
    journal.release(&lease).await.unwrap();

    let pruned = journal.prune(&[stream("a"), stream("nobody")]).await.unwrap();
    assert_eq!((pruned.events, pruned.inputs, pruned.blobs), (2, 2, 0));
    assert_eq!(pruned.removed, [stream("a")]);
    assert!(pruned.held.is_empty());
    assert!(events(&journal, "a").await.is_empty());
    assert!(waiting(&journal, "a").await.is_empty());
    assert_eq!(names(&journal, None, None).await, ["b"]);
    assert_eq!(waiting(&journal, "b").await, ["k"]);
    assert_eq!(journal.result("r").await.unwrap().as_deref(), Some("{}"));
}

pub(crate) async fn prune_leaves_streams_of_live_owners_alone(world: World) {
    let mine = world.open().await;
    let dead = world.open_as(somebody_gone()).await;
    let other = world.open().await;
    for (journal, name) in [(&mine, "mine"), (&dead, "dead"), (&other, "other")] {
        let lease = own(journal, name).await;
        journal.append(&lease, 0, &one(1)).await.unwrap();
        std::mem::forget(lease);
    }
    let pruned = mine.prune(&[stream("mine"), stream("dead"), stream("other")]).await.unwrap();
    assert_eq!(pruned.removed, [stream("dead")]);
    assert_eq!(pruned.held, [stream("mine"), stream("other")]);
    assert_eq!(events(&mine, "mine").await, [event(1)]);
    assert_eq!(events(&mine, "other").await, [event(1)]);
}

pub(crate) async fn sixty_four_writers_to_sixty_four_streams_all_commit(world: World) {
    const APPENDS: u64 = 10;
    let journal = world.open().await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..64 {
        let journal = journal.clone();
        writers.spawn(async move {
            let lease = own(&journal, &format!("a{writer}")).await;
            for expected in 0..APPENDS {
                let done = journal.append(&lease, expected, &one(expected as usize)).await;
                assert_eq!(done, Ok(expected + 1));
            }
        });
    }
    soon(writers.join_all()).await;
    let other = world.open().await;
    for writer in 0..64 {
        let expected: Vec<_> = (0..APPENDS as usize).map(event).collect();
        assert_eq!(events(&other, &format!("a{writer}")).await, expected);
    }
}

pub(crate) async fn one_failing_append_among_many_disturbs_nobody(world: World) {
    let journal = world.open().await;
    let lost = own(&journal, "lost").await;
    journal.release(&lost).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..48u64 {
        let journal = journal.clone();
        let lost = lost.clone();
        writers.spawn(async move {
            let name = format!("a{writer}");
            let lease = own(&journal, &name).await;
            // Every third is stale, every third has a lost lease; both would leave traces if they half
            // happened.
            let traces = Batch {
                inputs: vec![input("trace", &name, "")],
                results: vec![(name.clone(), "{}".into())],
                ..one(writer as usize)
            };
            match writer % 3 {
                0 => assert_eq!(journal.append(&lease, 0, &one(writer as usize)).await, Ok(1)),
                1 => {
                    let stale = journal.append(&lease, 7, &traces).await;
                    assert!(matches!(stale, Err(Error::StaleSequence { actual: 0, .. })), "{stale:?}");
                }
                _ => assert_lost(journal.append(&lost, 0, &traces).await),
            }
        });
    }
    soon(writers.join_all()).await;
    for writer in 0..48 {
        let name = format!("a{writer}");
        let expected = if writer % 3 == 0 { vec![event(writer)] } else { vec![] };
        assert_eq!(events(&journal, &name).await, expected);
        assert_eq!(journal.result(&name).await.unwrap(), None);
    }
    assert!(waiting(&journal, "trace").await.is_empty());
    assert!(events(&journal, "lost").await.is_empty());
}

pub(crate) async fn a_dropped_append_is_done_whole_or_not_at_all(world: World) {
    let journal = world.open().await;
    for attempt in 0..40u32 {
        let name = format!("a{attempt}");
        let lease = own(&journal, &name).await;
        let batch = Batch {
            inputs: vec![input("trace", &name, "")],
            results: vec![(name.clone(), "{}".into())],
            ..Batch::events(1, [event(1), event(2)])
        };
        let patience = std::time::Duration::from_micros(u64::from(attempt) * 100);
        let _ = tokio::time::timeout(patience, journal.append(&lease, 0, &batch)).await;
        // The lease still works, from wherever the stream is. A write under way may land between look and
        // append.
        let next = async {
            loop {
                let seq = journal.load(&stream(&name), 0).await.unwrap().len() as u64;
                match journal.append(&lease, seq, &one(3)).await {
                    Ok(now) => return now,
                    Err(Error::StaleSequence { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        };
        let done = match soon(next).await {
            1 => false,
            3 => true,
            torn => panic!("{torn} events"),
        };
        assert_eq!(journal.result(&name).await.unwrap().is_some(), done);
        assert_eq!(waiting(&journal, "trace").await.contains(&name), done);
    }
}
