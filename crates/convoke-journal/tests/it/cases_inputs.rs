//! Cases about inputs: what waits for a stream's owner.

use convoke_journal::{Batch, Submitted};

use crate::world::*;

pub(crate) async fn a_key_submitted_twice_is_one_input_even_after_its_acknowledgement(world: World) {
    let journal = world.open().await;
    let other = world.open().await;
    assert_eq!(journal.submit(&input("a", "k", "first"), 1).await, Ok(Submitted::Accepted));
    assert_eq!(journal.submit(&input("a", "k", "first"), 2).await, Ok(Submitted::AlreadyKnown));
    assert_eq!(other.submit(&input("a", "k", "second"), 3).await, Ok(Submitted::AlreadyKnown));
    assert_eq!(journal.inputs(&stream("a")).await.unwrap(), [input("a", "k", "first")]);

    let lease = own(&journal, "a").await;
    let ack = Batch { acks: vec!["k".into(), "k".into(), "unheard of".into()], ..one(1) };
    journal.append(&lease, 0, &ack).await.unwrap();
    assert_eq!(other.submit(&input("a", "k", "third"), 4).await, Ok(Submitted::AlreadyKnown));
    assert!(waiting(&journal, "a").await.is_empty());
}

pub(crate) async fn the_same_key_in_two_streams_is_two_inputs(world: World) {
    let journal = world.open().await;
    assert_eq!(journal.submit(&input("a", "k", "1"), 1).await, Ok(Submitted::Accepted));
    assert_eq!(journal.submit(&input("b", "k", "2"), 1).await, Ok(Submitted::Accepted));
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &Batch { acks: vec!["k".into()], ..one(1) }).await.unwrap();
    assert!(waiting(&journal, "a").await.is_empty());
    assert_eq!(journal.inputs(&stream("b")).await.unwrap(), [input("b", "k", "2")]);
}

pub(crate) async fn inputs_wait_in_order_and_looking_does_not_consume(world: World) {
    let journal = world.open().await;
    let keys = ["z", "a", "m", "0", "k"];
    for key in keys {
        journal.submit(&input("a", key, key), 1).await.unwrap();
    }
    assert_eq!(waiting(&journal, "a").await, keys);
    assert_eq!(waiting(&journal, "a").await, keys);
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &Batch { acks: vec!["m".into(), "z".into()], ..one(1) }).await.unwrap();
    assert_eq!(waiting(&journal, "a").await, ["a", "0", "k"]);
}

pub(crate) async fn an_acknowledgement_is_atomic_with_its_append(world: World) {
    let first = world.open_as(somebody_gone()).await;
    first.submit(&input("a", "k", "hello"), 1).await.unwrap();
    let old = own(&first, "a").await;
    let second = world.open().await;
    let new = own(&second, "a").await;
    let batch = Batch { acks: vec!["k".into()], ..one(1) };
    assert_lost(first.append(&old, 0, &batch).await);
    assert_eq!(waiting(&second, "a").await, ["k"]);
    assert!(second.append(&new, 5, &batch).await.is_err());
    assert_eq!(waiting(&second, "a").await, ["k"]);
    second.append(&new, 0, &batch).await.unwrap();
    assert!(waiting(&second, "a").await.is_empty());
    assert_eq!(events(&second, "a").await, [event(1)]);
}

pub(crate) async fn inputs_for_other_streams_travel_with_the_append(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    let mail = vec![input("c", "1", "x"), input("b", "1", "y"), input("c", "2", "z"), input("b", "0", "w")];
    let batch = Batch { inputs: mail, ..one(1) };
    assert!(journal.append(&lease, 9, &batch).await.is_err());
    assert!(waiting(&journal, "b").await.is_empty());
    assert!(waiting(&journal, "c").await.is_empty());
    journal.append(&lease, 0, &batch).await.unwrap();
    assert_eq!(waiting(&journal, "b").await, ["1", "0"]);
    assert_eq!(waiting(&journal, "c").await, ["1", "2"]);
    // The streams exist now, and their owner may acknowledge.
    let lease = own(&journal, "c").await;
    let ack = Batch { acks: vec!["1".into()], ..one(1) };
    assert_eq!(journal.append(&lease, 0, &ack).await, Ok(1));
    assert_eq!(waiting(&journal, "c").await, ["2"]);
}

pub(crate) async fn a_message_is_delivered_once_however_often_it_is_sent(world: World) {
    let journal = world.open().await;
    let lease = own(&journal, "a").await;
    let twice = vec![input("b", "k", "first"), input("b", "k", "second")];
    journal.append(&lease, 0, &Batch { inputs: twice.clone(), ..one(1) }).await.unwrap();
    journal.append(&lease, 1, &Batch { inputs: twice, ..one(2) }).await.unwrap();
    assert_eq!(journal.submit(&input("b", "k", "third"), 1).await, Ok(Submitted::AlreadyKnown));
    assert_eq!(journal.inputs(&stream("b")).await.unwrap(), [input("b", "k", "first")]);
}

pub(crate) async fn an_input_can_be_put_back_under_a_new_key(world: World) {
    let journal = world.open().await;
    journal.submit(&input("a", "k", "hello"), 1).await.unwrap();
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &Batch { acks: vec!["k".into()], ..one(1) }).await.unwrap();
    let back = Batch { inputs: vec![input("a", "k:2", "hello")], ..one(2) };
    journal.append(&lease, 1, &back).await.unwrap();
    assert_eq!(journal.inputs(&stream("a")).await.unwrap(), [input("a", "k:2", "hello")]);
}

pub(crate) async fn agents_that_write_to_each_other_do_not_block_each_other(world: World) {
    const AGENTS: usize = 8;
    const ROUNDS: u64 = 12;
    let name = |agent: usize| format!("a{agent}");
    let journal = world.open().await;
    let mut writers = tokio::task::JoinSet::new();
    for agent in 0..AGENTS {
        let journal = journal.clone();
        writers.spawn(async move {
            let lease = own(&journal, &name(agent)).await;
            for round in 0..ROUNDS {
                // Each in its own order, to the others and to streams that do not exist yet.
                let others = (0..AGENTS).map(|n| (n * 3 + agent * 5) % AGENTS);
                let mail = others.flat_map(|to| {
                    let mine = input(&name(to), &format!("{agent}:{round}"), "mail");
                    [mine, input(&format!("new{to}_{round}"), "same key", "mail")]
                });
                let batch = Batch { inputs: mail.collect(), ..one(1) };
                assert_eq!(journal.append(&lease, round, &batch).await, Ok(round + 1));
            }
        });
    }
    soon(writers.join_all()).await;
    for agent in 0..AGENTS {
        assert_eq!(waiting(&journal, &name(agent)).await.len(), AGENTS * ROUNDS as usize);
        assert_eq!(waiting(&journal, &format!("new{agent}_0")).await, ["same key"]);
    }
}
