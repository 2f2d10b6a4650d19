//! Whether anything was kept of a run, asked without git: yes wherever there may be something, and no only
//! where nothing is.

use convoke_trees::{HostPlaces, Keeper, Worktrees};

use crate::world::World;

/// A git that must not be started: there is none.
fn without_git(world: &World) -> HostPlaces {
    HostPlaces { path: "/nowhere".to_owned(), ..world.places.clone() }
}

fn may_have_kept(world: &World, run: &str) -> bool {
    Keeper::may_have_kept(&without_git(world), &world.dir, run)
}

/// The run with a command that wrote something.
async fn writes(world: &World, run: &str) {
    let keeper = world.keeper(run).await;
    keeper.open_window("a_1").await.unwrap();
    world.write("made.txt", "made");
    keeper.close_window("a_1", "a command").await.unwrap();
}

#[tokio::test]
async fn nothing_was_kept_of_a_run_that_wrote_nothing_and_something_of_one_that_did() {
    let below = World::repository(&[("sub/a.txt", "a")]);
    let below_dir = below.path("sub");
    let ignored = World::repository(&[(".gitignore", "sub/\n"), ("a.txt", "a")]);
    ignored.write("sub/b.txt", "b");
    let ignored_dir = ignored.path("sub");
    for world in [
        World::plain(),
        World::empty_repository(),
        World::repository(&[("a.txt", "a")]),
        below.at(below_dir),
        ignored.at(ignored_dir),
    ] {
        assert!(!may_have_kept(&world, "r_1"));
        world.keeper("r_1").await;
        assert!(!may_have_kept(&world, "r_1"), "opening keeps nothing");
        writes(&world, "r_1").await;
        assert!(may_have_kept(&world, "r_1"));
        assert!(!may_have_kept(&world, "r_2") && !may_have_kept(&world, "r_"), "another run");
    }
}

#[tokio::test]
async fn what_a_repository_keeps_is_found_when_the_record_is_lost_and_when_refs_are_packed() {
    let world = World::repository(&[("a.txt", "a")]);
    writes(&world, "r_1").await;
    let world = world.without_state();
    assert!(may_have_kept(&world, "r_1"), "its refs are there");
    world.git(["pack-refs", "--all", "--prune"]);
    assert!(!world.path(".git/refs/convoke/r_1").exists(), "they are packed");
    assert!(may_have_kept(&world, "r_1") && !may_have_kept(&world, "r_2"));
}

#[tokio::test]
async fn worktrees_count_too_and_whatever_cannot_be_told() {
    let world = World::repository(&[("a.txt", "a")]);
    let worktrees = Worktrees::open(world.places.clone(), &world.dir).await.unwrap();
    worktrees.create("r_1", "a_1").await.unwrap();
    assert!(may_have_kept(&world, "r_1"));
    assert!(!may_have_kept(&world, "r_2"));
    std::fs::create_dir(world.path(".git/reftable")).unwrap();
    assert!(may_have_kept(&world, "r_2"), "refs of another form");
    let world = World::plain();
    world.write(".git", "no pointer");
    assert!(may_have_kept(&world, "r_1"), "not a repository that is understood");
    let gone = World::plain();
    std::fs::remove_dir(&gone.dir).unwrap();
    assert!(may_have_kept(&gone, "r_1"), "no directory");
}
