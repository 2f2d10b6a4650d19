//! Cases about events: what is appended, loaded and waited for.

use convoke_journal::{BLOB_ABOVE, Batch, Error, Record};

use crate::world::*;

pub(crate) async fn appended_events_come_back_as_they_were(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    assert_eq!(journal.append(&lease, 0, &Batch::events(7, [event(1), event(2)])).await, Ok(2));
    assert_eq!(journal.append(&lease, 2, &Batch::events(8, [event(3)])).await, Ok(3));
    let record = |seq, at| Record { stream: stream("a"), seq, at, event: event(seq as usize) };
    assert_eq!(journal.load(&stream("a"), 0).await.unwrap(), [record(1, 7), record(2, 7), record(3, 8)]);
    assert_eq!(journal.load(&stream("a"), 2).await.unwrap(), [record(3, 8)]);
    assert_eq!(journal.load(&stream("a"), 3).await.unwrap(), []);
    assert_eq!(journal.load(&stream("nobody"), 0).await.unwrap(), []);
    // Another process sees the same.
    assert_eq!(events(&world.open().await, "a").await, [event(1), event(2), event(3)]);
}

pub(crate) async fn a_stale_sequence_changes_nothing(world: World) {
    let journal = world.open().await;
    journal.submit(&input("a", "k", "hello"), 1).await.unwrap();
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &Batch { summary: Some("{}".into()), ..one(1) }).await.unwrap();
    for expected in [0, 2, 1000] {
        let batch = Batch {
            acks: vec!["k".into()],
            inputs: vec![input("b", "k", "hi")],
            summary: Some(r#"{"wrong":true}"#.into()),
            results: vec![("r".into(), "{}".into())],
            ..one(666)
        };
        let refused = journal.append(&lease, expected, &batch).await;
        assert_eq!(refused, Err(Error::StaleSequence { stream: stream("a"), expected, actual: 1 }));
    }
    assert_eq!(events(&journal, "a").await, [event(1)]);
    assert_eq!(waiting(&journal, "a").await, ["k"]);
    assert!(waiting(&journal, "b").await.is_empty());
    assert_eq!(journal.result("r").await.unwrap(), None);
    let listed = journal.list(&Default::default()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].summary.as_deref(), Some("{}"));
    assert_eq!(journal.append(&lease, 1, &one(2)).await, Ok(2));
}

pub(crate) async fn an_append_without_events_keeps_the_sequence(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &one(1)).await.unwrap();
    let batch = Batch { at: 5, results: vec![("r".into(), "1".into())], ..Batch::default() };
    assert_eq!(journal.append(&lease, 1, &batch).await, Ok(1));
    assert_eq!(journal.result("r").await.unwrap().as_deref(), Some("1"));
}

pub(crate) async fn long_text_survives_and_is_stored_once(world: World) {
    let journal = world.open().await;
    let border = |length: usize| format!(r#"{{"type":"{}"}}"#, "x".repeat(length - 11));
    let texts = [border(BLOB_ABOVE), border(BLOB_ABOVE + 1), border(1 << 20), border(1 << 20)];
    assert_eq!(texts[0].len(), BLOB_ABOVE);
    for name in ["a", "b"] {
        let lease = own(&journal, name).await;
        let batch = Batch {
            inputs: vec![input("mail", name, &texts[2])],
            results: vec![("r".into(), texts[1].clone())],
            ..Batch::events(1, texts.clone())
        };
        assert_eq!(journal.append(&lease, 0, &batch).await, Ok(4));
        journal.release(&lease).await.unwrap();
        assert_eq!(events(&journal, name).await, texts);
    }
    assert_eq!(journal.result("r").await.unwrap().as_ref(), Some(&texts[1]));
    let mail = journal.inputs(&stream("mail")).await.unwrap();
    assert_eq!(mail.iter().map(|m| m.body.as_str()).collect::<Vec<_>>(), [&texts[2], &texts[2]]);

    // Of two distinct long texts one is still referred to by the result, the other by nothing when its mail
    // is gone.
    assert_eq!(journal.prune(&[stream("a"), stream("b")]).await.unwrap().blobs, 0);
    assert_eq!(journal.inputs(&stream("mail")).await.unwrap()[0].body, texts[2]);
    assert_eq!(journal.prune(&[stream("mail")]).await.unwrap().blobs, 1);
    assert_eq!(journal.result("r").await.unwrap().as_ref(), Some(&texts[1]));
}

pub(crate) async fn odd_text_survives(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    let odd = [
        r#"{"type":"x","nul":"\u0000","pair":"\ud83d\ude00","lone":"\ud800"}"#,
        "{ \"type\" : \"x\",\n\t\"z\":1, \"a\":2, \"z\":3, \"n\":1.0e400, \"big\":123456789012345678901234567890 }",
        r#"{"type":"x","quotes":"'\"$1 ?1 %s \\ {} NULL","snow":"☃ 😀 "}"#,
    ];
    journal.append(&lease, 0, &Batch::events(1, odd)).await.unwrap();
    assert_eq!(events(&journal, "a").await, odd);
    journal.submit(&input("a", "☃'", odd[0]), 1).await.unwrap();
    assert_eq!(journal.inputs(&stream("a")).await.unwrap(), [input("a", "☃'", odd[0])]);
}

pub(crate) async fn a_raw_nul_is_refused_and_changes_nothing(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    let refused = journal.append(&lease, 0, &Batch::events(1, [event(1), "{\"type\":\"\0\"}".into()])).await;
    assert!(matches!(refused, Err(Error::BadText { .. })), "{refused:?}");
    assert!(journal.submit(&input("a", "k\0", ""), 1).await.is_err());
    assert!(events(&journal, "a").await.is_empty());
    assert_eq!(journal.append(&lease, 0, &one(1)).await, Ok(1));
}

pub(crate) async fn tail_returns_at_once_what_is_there(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &Batch::events(1, [event(1), event(2)])).await.unwrap();
    let seen = soon(journal.tail(&stream("a"), 1)).await.unwrap();
    assert_eq!(seen.iter().map(|record| record.seq).collect::<Vec<_>>(), [2]);
}

pub(crate) async fn tail_wakes_up_for_an_append_of_this_process(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    check_tail(&journal, &journal, &lease).await;
}

pub(crate) async fn tail_wakes_up_for_an_append_of_another_process(world: World) {
    let reader = world.open().await;
    let writer = world.open().await;
    let lease = own(&writer, "a").await;
    check_tail(&reader, &writer, &lease).await;
}

/// Several tails wait before the append is made, and all of them see it; a tail of another stream does not.
async fn check_tail(
    reader: &convoke_journal::Journal,
    writer: &convoke_journal::Journal,
    lease: &convoke_journal::Lease,
) {
    let mut tails: Vec<_> = (0..3)
        .map(|_| {
            let reader = reader.clone();
            Box::pin(async move { reader.tail(&stream("a"), 0).await })
        })
        .collect();
    for tail in &mut tails {
        // One look that finds nothing.
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), tail).await.is_err());
    }
    let elsewhere = stream("b");
    let mut other = Box::pin(reader.tail(&elsewhere, 0));
    writer.append(lease, 0, &one(1)).await.unwrap();
    for tail in tails {
        let seen = soon(tail).await.unwrap();
        assert_eq!(seen.iter().map(|record| record.event.clone()).collect::<Vec<_>>(), [event(1)]);
    }
    assert!(tokio::time::timeout(std::time::Duration::from_millis(20), &mut other).await.is_err());
}
