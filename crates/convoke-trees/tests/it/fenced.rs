//! Several processes keep one run's changes: a living one is waited for, what a fenced one has open is closed
//! for it, and what it does when it continues is refused.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_trees::{Actor, Error, Fence, FenceAnswer, Holder, Keeper, Place};

use crate::world::{World, changes};

/// Tokens that are fenced, and the holders for which a wait was told.
#[derive(Debug, Default)]
struct Gate {
    fenced: Mutex<BTreeSet<String>>,
    told: Mutex<Vec<(String, String)>>,
}

impl Gate {
    fn fence(&self, token: &str) {
        self.fenced.lock().unwrap().insert(token.to_owned());
    }

    /// How often a wait was told, each time for the first one: no other holds anything for long.
    fn told(&self) -> usize {
        let told = self.told.lock().unwrap();
        assert!(
            told.iter().all(|(name, token)| (name.as_str(), token.as_str()) == ("agent a_1", "p_1")),
            "{told:?}"
        );
        told.len()
    }
}

impl Fence for Gate {
    fn is_fenced(&self, token: &str) -> FenceAnswer {
        let fenced = self.fenced.lock().unwrap().contains(token);
        Box::pin(async move { fenced })
    }

    fn waits_for(&self, holder: &Holder) {
        self.told.lock().unwrap().push((holder.name.clone(), holder.token.clone()));
    }
}

const FIRST: Actor<'static> = Actor { agent: "a_1", token: "p_1" };
const SECOND: Actor<'static> = Actor { agent: "a_2", token: "p_2" };

async fn two(world: &World) -> (Arc<Gate>, Keeper, Arc<Keeper>) {
    let gate = Arc::new(Gate::default());
    let first = world.keeper("s_1").await.fenced(Arc::clone(&gate) as Arc<dyn Fence>);
    let second = world.keeper("s_1").await.fenced(Arc::clone(&gate) as Arc<dyn Fence>);
    (gate, first, Arc::new(second))
}

#[tokio::test]
async fn a_window_of_a_living_process_is_waited_for_and_the_wait_is_told() {
    let world = World::repository(&[("a", "1\n")]);
    let (gate, first, second) = two(&world).await;
    first.open_window(FIRST).await.unwrap();
    world.write("a", "2\n");
    let waits = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.open_window(SECOND).await }
    });
    while gate.told() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!waits.is_finished());
    first.close_window(FIRST, "").await.unwrap();
    waits.await.unwrap().unwrap();
    world.write("b", "1\n");
    second.close_window(SECOND, "").await.unwrap();
    assert_eq!(gate.told(), 1);
    assert_eq!(changes(&second).await, ["Modified a a_1", "Added b a_2"]);
}

#[tokio::test]
async fn the_window_of_a_fenced_process_is_closed_for_it_and_its_late_end_is_nobodys_change() {
    let world = World::repository(&[("a", "1\n")]);
    let (gate, first, second) = two(&world).await;
    first.open_window(FIRST).await.unwrap();
    world.write("a", "2\n");
    gate.fence("p_1");
    second.open_window(SECOND).await.unwrap();
    assert_eq!(changes(&second).await, ["Modified a a_1"]);
    world.write("b", "1\n");
    // It continues in the middle of the other one's window.
    assert!(matches!(first.close_window(FIRST, "").await, Err(Error::Fenced)));
    assert_eq!(second.close_window(SECOND, "").await.unwrap().changed.len(), 1);
    // And after it: what others did since is not recorded as its own.
    world.write("c", "1\n");
    let gone = world.keeper("s_1").await;
    gone.open_window("a_3").await.unwrap();
    gone.close_window("a_3", "").await.unwrap();
    assert_eq!(changes(&second).await, ["Modified a a_1", "Added b a_2"]);
}

#[tokio::test]
async fn a_turn_that_a_fenced_process_has_is_taken_away_and_not_given_back() {
    let world = World::repository(&[("a", "1\n")]);
    let (gate, first, second) = two(&world).await;
    first.open_window(FIRST).await.unwrap();
    world.write("a", "2\n");
    let lock = world.lock_of("s_1");
    // The record says of this turn that the first one has it; it stands still while it does.
    let stands = std::fs::OpenOptions::new().read(true).write(true).open(&lock).unwrap();
    stands.lock().unwrap();
    std::fs::write(&lock, "a_1\np_1\n").unwrap();
    let waits = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.open_window(SECOND).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waits.is_finished(), "a living process is not robbed of its turn");
    gate.fence("p_1");
    waits.await.unwrap().unwrap();
    assert!(matches!(first.close_window(FIRST, "").await, Err(Error::Fenced)));
    second.close_window(SECOND, "").await.unwrap();
    assert_eq!(changes(&second).await, ["Modified a a_1"]);
    drop(stands);
}

#[tokio::test]
async fn many_that_find_one_holder_fenced_take_turns() {
    let world = World::repository(&[("a", "1\n")]);
    let (gate, first, _) = two(&world).await;
    first.open_window(FIRST).await.unwrap();
    world.write("a", "2\n");
    gate.fence("p_1");
    let mut work = tokio::task::JoinSet::new();
    for number in 0..6 {
        let keeper = world.keeper("s_1").await.fenced(Arc::clone(&gate) as Arc<dyn Fence>);
        let dir = world.dir.clone();
        let agent = format!("a_{}", number + 10);
        let token = format!("p_{}", number + 10);
        work.spawn(async move {
            let actor = Actor { agent: &agent, token: &token };
            keeper.open_window(actor).await.unwrap();
            std::fs::write(dir.join(format!("of-{agent}")), "x\n").unwrap();
            let closed = keeper.close_window(actor, "").await.unwrap();
            assert_eq!(closed.changed.len(), 1, "{closed:?}");
        });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    let all = changes(&world.keeper("s_1").await).await;
    let expected = (10..16).map(|number| format!("Added of-a_{number} a_{number}"));
    assert_eq!(all, ["Modified a a_1".to_owned()].into_iter().chain(expected).collect::<Vec<_>>());
}

#[tokio::test]
async fn of_a_fenced_process_each_window_is_closed_with_its_own_places() {
    let world = World::repository(&[("a", "1\n"), ("c", "1\n"), ("mine", "1\n")]);
    let (gate, first, second) = two(&world).await;
    // Longer than the test takes: what is taken over here is taken from a fenced process.
    let first = first.patient_for(Duration::from_secs(3_600));
    let second = Arc::new(Arc::into_inner(second).unwrap().patient_for(Duration::from_secs(3_600)));
    let begun = Keeper::begun(&world.places, &world.dir, "s_1");
    let other = Actor { agent: "a_3", token: "p_3" };
    for (actor, path) in [(FIRST, "a"), (other, "c")] {
        first.before_write(actor, &[Place::file(path)], Some(&begun)).await.unwrap();
        world.write(path, "2\n");
    }
    world.write("mine", "the person's\n");
    let waits = tokio::spawn({
        let (second, begun) = (Arc::clone(&second), begun.clone());
        async move { second.before_write(SECOND, &[Place::file("a")], Some(&begun)).await }
    });
    while gate.told() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!waits.is_finished(), "a living process is waited for");
    gate.fence("p_1");
    waits.await.unwrap().unwrap();
    world.write("a", "3\n");
    // The fenced agent gets nothing more, and the one beside it in the same process goes on.
    let late = first.before_write(FIRST, &[Place::file("b")], Some(&begun)).await;
    assert!(matches!(late, Err(Error::Fenced)), "{late:?}");
    first.before_write(other, &[Place::file("d")], Some(&begun)).await.unwrap();
    world.write("d", "2\n");
    second.close_window(SECOND, "").await.unwrap();
    assert_eq!(changes(&second).await, ["Modified a a_1,a_2"]);
    first.close_window(other, "").await.unwrap();
    assert_eq!(changes(&second).await, ["Modified a a_1,a_2", "Modified c a_3", "Added d a_3"]);
}
