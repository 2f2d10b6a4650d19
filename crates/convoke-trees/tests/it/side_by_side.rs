//! Agents that write at the same time: each change is its agent's, a place is one agent's at a time, and two
//! that write the same file are both told.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use convoke_trees::{Begun, DiffForm, Error, Keeper, Place};

use crate::world::{World, changes, names, undo};

const RUN: &str = "s_1";

fn begun(world: &World) -> Begun {
    Keeper::begun(&world.places, &world.dir, RUN)
}

async fn ask(keeper: &Keeper, agent: &str, path: &str, begun: &Begun) {
    keeper.before_write(agent, &[Place::file(path)], Some(begun)).await.unwrap();
}

/// What an agent has not been told yet: `path with`.
fn told(world: &World, agent: &str) -> Vec<String> {
    let overlaps = Keeper::overlaps(&world.places, &world.dir, RUN, agent).unwrap();
    overlaps.iter().map(|overlap| format!("{} {}", overlap.path, overlap.with)).collect()
}

/// The first lines of the steps, oldest first.
fn steps(world: &World) -> Vec<String> {
    let log = world.git(["log", "--reverse", "--format=%s", "refs/convoke/s_1/after"]);
    String::from_utf8(log)
        .unwrap()
        .lines()
        .skip_while(|line| !line.starts_with("before "))
        .skip(1)
        .map(str::to_owned)
        .collect()
}

/// A task that asks, and is seen to wait.
async fn waits(
    keeper: &Arc<Keeper>,
    agent: &'static str,
    path: &'static str,
    begun: &Begun,
) -> tokio::task::JoinHandle<()> {
    let (keeper, begun) = (Arc::clone(keeper), begun.clone());
    let task = tokio::spawn(async move { ask(&keeper, agent, path, &begun).await });
    assert!(
        tokio::time::timeout(Duration::from_millis(300), async {
            while !task.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .is_err(),
        "{agent} does not wait"
    );
    task
}

#[tokio::test]
async fn agents_that_write_different_files_at_once_have_a_step_each_and_wait_for_nothing() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n"), ("mine", "0\n")]);
    let keeper = world.keeper(RUN).await;
    let begun = begun(&world);
    ask(&keeper, "a_1", "a", &begun).await;
    world.write("a", "1\n");
    ask(&keeper, "a_2", "b", &begun).await;
    world.write("b", "2\n");
    keeper.before_write("a_2", &[Place::tree("new")], Some(&begun)).await.unwrap();
    world.write("new/deep/file", "2\n");
    world.write("mine", "the person's\n");
    let closed = keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(closed.changed.len(), 2, "{closed:?}");
    // The first goes on.
    ask(&keeper, "a_1", "c", &begun).await;
    world.write("c", "1\n");
    assert_eq!(changes(&keeper).await, ["Modified b a_2", "Added new/deep/file a_2"]);
    assert_eq!(keeper.close_window("a_1", "").await.unwrap().changed.len(), 2);
    assert_eq!(
        changes(&keeper).await,
        ["Modified a a_1", "Modified b a_2", "Added c a_1", "Added new/deep/file a_2"]
    );
    assert_eq!(names(&keeper).await, "M\ta\nM\tb\nA\tc\nA\tnew/deep/file\n");
    assert_eq!(steps(&world), ["outside", "agent a_2", "agent a_1"]);
    assert!(told(&world, "a_1").is_empty() && told(&world, "a_2").is_empty());
    assert_eq!(
        undo(&keeper).await,
        (vec!["a".into(), "b".into(), "c".into(), "new/deep/file".into()], vec![])
    );
    assert_eq!(world.read("mine"), b"the person's\n");
}

#[tokio::test]
async fn what_is_in_no_claim_comes_from_outside_also_while_a_command_is_under_way() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n")]);
    let keeper = world.keeper(RUN).await;
    ask(&keeper, "a_1", "a", &begun(&world)).await;
    world.write("a", "1\n");
    world.write("b", "the person's\n");
    keeper.close_window("a_1", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Modified a a_1"]);
    assert_eq!(undo(&keeper).await.0, ["a"]);
    assert_eq!(world.read("b"), b"the person's\n");
}

#[tokio::test]
async fn a_file_that_another_command_writes_is_waited_for_and_both_are_told_until_they_were() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = Arc::new(world.keeper(RUN).await);
    let (first, second) = (begun(&world), begun(&world));
    ask(&keeper, "a_1", "a", &first).await;
    world.write("a", "1\n");
    let waiting = waits(&keeper, "a_2", "a", &second).await;
    keeper.close_window("a_1", "").await.unwrap();
    waiting.await.unwrap();
    world.write("a", "2\n");
    keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Modified a a_1,a_2"]);
    drop(keeper);

    // Another process of the session finds it, and it is told until it has been.
    let keeper = world.keeper(RUN).await;
    assert_eq!(
        (told(&world, "a_1"), told(&world, "a_2")),
        (vec!["a a_2".to_owned()], vec!["a a_1".to_owned()])
    );
    let overlaps = Keeper::overlaps(&world.places, &world.dir, RUN, "a_1").unwrap();
    let show = overlaps[0].show.clone().unwrap();
    let shown = world.git(show.strip_prefix("git ").unwrap().split(' '));
    assert_eq!(shown, b"1\n", "the version that was written over");
    assert!(overlaps[0].told().contains(&show), "{}", overlaps[0].told());
    keeper.were_told("a_1", &overlaps).await.unwrap();
    assert_eq!((told(&world, "a_1"), told(&world, "a_2")), (vec![], vec!["a a_1".to_owned()]));
    let notes = keeper.notes().unwrap();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("a was written by a_2 and a_1 at the same time"), "{notes:?}");
    assert_eq!(undo(&keeper).await.0, ["a"]);
}

#[tokio::test]
async fn what_was_changed_before_a_command_began_is_no_overlap() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await;
    for (agent, text) in [("a_1", "1\n"), ("a_2", "2\n"), ("a_1", "3\n")] {
        ask(&keeper, agent, "a", &begun(&world)).await;
        world.write("a", text);
        keeper.close_window(agent, "").await.unwrap();
    }
    assert!(told(&world, "a_1").is_empty() && told(&world, "a_2").is_empty());
}

#[tokio::test]
async fn a_file_that_is_written_for_too_long_is_taken_over_and_later_writes_stay_their_agents() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await.patient_for(Duration::from_millis(50));
    let begun = begun(&world);
    ask(&keeper, "a_1", "a", &begun).await;
    world.write("a", "1\n");
    ask(&keeper, "a_2", "a", &begun).await;
    world.write("a", "2\n");
    keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(
        (told(&world, "a_1"), told(&world, "a_2")),
        (vec!["a a_2".to_owned()], vec!["a a_1".to_owned()])
    );
    // Its command is not asked again, and writes once more.
    world.write("a", "1 again\n");
    keeper.close_window("a_1", "").await.unwrap();
    assert_eq!(steps(&world), ["agent a_1", "agent a_2", "agent a_1"]);
    assert_eq!(changes(&keeper).await, ["Modified a a_1,a_2"]);
    assert_eq!(undo(&keeper).await.0, ["a"]);
}

#[tokio::test]
async fn what_git_ignores_is_not_waited_for() {
    let world = World::repository(&[("a", "0\n"), (".gitignore", "build/\n"), ("build/kept", "0\n")]);
    world.git(["add", "-f", "build/kept"]);
    let keeper = Arc::new(world.keeper(RUN).await.patient_for(Duration::from_secs(3_600)));
    let begun = begun(&world);
    keeper.before_write("a_1", &[Place::tree("build/out")], Some(&begun)).await.unwrap();
    world.write("build/out/x", "1\n");
    for path in ["build/out/x", "build/out/y", "build/out/deep/z"] {
        ask(&keeper, "a_2", path, &begun).await;
        world.write(path, "2\n");
    }
    assert!(!keeper.has_window("a_2"), "nothing is kept of it");
    // One that git tracks all the same is waited for.
    ask(&keeper, "a_1", "build/kept", &begun).await;
    let waiting = waits(&keeper, "a_2", "build/kept", &begun).await;
    keeper.close_window("a_1", "").await.unwrap();
    waiting.await.unwrap();
    keeper.close_window("a_2", "").await.unwrap();
    assert!(told(&world, "a_1").is_empty() && told(&world, "a_2").is_empty());
}

#[tokio::test]
async fn a_command_waits_for_others_no_longer_in_all_than_for_one() {
    let world = World::repository(&[("a", "0\n")]);
    let patience = Duration::from_millis(400);
    let keeper = world.keeper(RUN).await.patient_for(patience);
    let begun = begun(&world);
    let places: Vec<String> = (0..30).map(|number| format!("file-{number}")).collect();
    for path in &places {
        ask(&keeper, "a_1", path, &begun).await;
    }
    let since = std::time::Instant::now();
    let second = Keeper::begun(&world.places, &world.dir, RUN);
    for path in &places {
        ask(&keeper, "a_2", path, &second).await;
    }
    assert!(since.elapsed() < patience * 20, "each was waited for: {:?}", since.elapsed());
}

#[tokio::test]
async fn git_of_an_agent_claims_nothing_in_the_repositorys_metadata() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await;
    for agent in ["a_1", "a_2"] {
        ask(&keeper, agent, ".git/index.lock", &begun(&world)).await;
        assert!(!keeper.has_window(agent));
    }
    assert_eq!(world.git(["for-each-ref", "refs/convoke"]), b"");
}

#[tokio::test]
async fn two_that_wait_for_each_other_end_at_once() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n"), ("c", "0\n")]);
    // Far longer than the test may take: nothing ends by patience here.
    let keeper = Arc::new(world.keeper(RUN).await.patient_for(Duration::from_secs(3_600)));
    let begun = begun(&world);
    for (agent, path) in [("a_1", "a"), ("a_2", "b"), ("a_3", "c")] {
        ask(&keeper, agent, path, &begun).await;
        world.write(path, format!("{agent}\n"));
    }
    let first = waits(&keeper, "a_1", "b", &begun).await;
    let second = waits(&keeper, "a_2", "c", &begun).await;
    // This one closes the circle and ends it: of those in it, it is the last by name.
    ask(&keeper, "a_3", "a", &begun).await;
    world.write("a", "a_3\n");
    keeper.close_window("a_3", "").await.unwrap();
    second.await.unwrap();
    keeper.close_window("a_2", "").await.unwrap();
    first.await.unwrap();
    keeper.close_window("a_1", "").await.unwrap();
    assert_eq!(told(&world, "a_1"), ["a a_3"]);
    assert_eq!(undo(&keeper).await.1, [""; 0]);
}

#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nothing_behind() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = Arc::new(world.keeper(RUN).await);
    let begun = begun(&world);
    ask(&keeper, "a_1", "a", &begun).await;
    let waiting = waits(&keeper, "a_2", "a", &begun).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    keeper.close_window("a_1", "").await.unwrap();
    assert!(!keeper.has_window("a_2"));
    ask(&keeper, "a_3", "a", &begun).await;
    keeper.close_window("a_3", "").await.unwrap();
}

#[tokio::test]
async fn a_command_that_may_write_anywhere_excludes_all_others() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = Arc::new(world.keeper(RUN).await.patient_for(Duration::from_millis(20)));
    let begun = begun(&world);
    keeper.open_window("a_1").await.unwrap();
    world.write("a", "1\n");
    // It is not taken over, however long it takes.
    let waiting = waits(&keeper, "a_2", "b", &begun).await;
    keeper.close_window("a_1", "").await.unwrap();
    waiting.await.unwrap();
    world.write("b", "2\n");
    let alone = tokio::spawn({
        let keeper = Arc::clone(&keeper);
        async move { keeper.open_window("a_3").await.unwrap() }
    });
    assert!(
        tokio::time::timeout(Duration::from_millis(200), async {
            while !alone.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .is_err()
    );
    keeper.close_window("a_2", "").await.unwrap();
    alone.await.unwrap();
    world.write("c", "3\n");
    keeper.close_window("a_3", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Added b a_2", "Added c a_3"]);
}

#[tokio::test]
async fn a_file_that_a_job_has_open_stays_its_agents_and_is_taken_over_without_a_wait() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await.patient_for(Duration::from_secs(3_600));
    ask(&keeper, "a_1", "log", &begun(&world)).await;
    world.write("log", "1\n");
    keeper.leave_window("a_1", "", &["log".into()]).await.unwrap();
    // The job goes on writing what is open, and asks for what it opens.
    world.write("log", "1\n1\n");
    keeper.before_write("a_1", &[Place::file("other")], None).await.unwrap();
    world.write("other", "1\n");
    world.write("a", "the person's\n");
    let second = begun(&world);
    ask(&keeper, "a_2", "b", &second).await;
    world.write("b", "2\n");
    keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Added b a_2", "Added log a_1"]);
    let third = begun(&world);
    ask(&keeper, "a_2", "log", &third).await;
    world.write("log", "1\n1\n2\n");
    keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(told(&world, "a_1")[0], "log a_2");
    // At the job's end everything is recorded, and what it did not write is not its own.
    world.write("log", "1\n1\n2\n1\n");
    keeper.leave_window("a_1", "", &["log".into()]).await.unwrap();
    keeper.close_window("a_1", "").await.unwrap();
    assert!(!keeper.has_window("a_1"));
    world.write("log", "the person's\n");
    assert_eq!(changes(&keeper).await, ["Added b a_2", "Added log a_1,a_2", "Added other a_1"]);
    assert_eq!(undo(&keeper).await.1, ["log: it was changed after the run's last change"]);
    assert_eq!(world.read("a"), b"the person's\n");
}

#[tokio::test]
async fn a_job_does_not_keep_away_a_command_that_may_write_anywhere() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await.patient_for(Duration::from_secs(3_600));
    ask(&keeper, "a_1", "log", &begun(&world)).await;
    world.write("log", "1\n");
    keeper.leave_window("a_1", "", &["log".into()]).await.unwrap();
    world.write("log", "1\n1\n");
    keeper.open_window("a_2").await.unwrap();
    world.write("a", "2\n");
    keeper.close_window("a_2", "").await.unwrap();
    keeper.close_window("a_1", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Modified a a_2", "Added log a_1"]);
}

#[tokio::test]
async fn a_file_tool_ends_its_own_claim_and_leaves_those_of_jobs() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await;
    ask(&keeper, "a_1", "log", &begun(&world)).await;
    world.write("log", "1\n");
    keeper.leave_window("a_1", "", &["log".into()]).await.unwrap();
    let places = [Place::file("a")];
    let new = keeper.before_write("a_1", &places, Some(&begun(&world))).await.unwrap();
    assert_eq!(new, places);
    world.write("a", "1\n");
    world.write("log", "1\n1\n");
    let closed = keeper.close_places("a_1", "", &places, &new).await.unwrap();
    assert_eq!(closed.changed.len(), 1, "{closed:?}");
    world.write("a", "the person's\n");
    keeper.close_window("a_1", "").await.unwrap();
    assert!(!keeper.has_window("a_1"));
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Added log a_1"]);
    assert_eq!(undo(&keeper).await.1, ["a: it was changed after the run's last change"]);
}

#[tokio::test]
async fn windows_of_processes_that_are_gone_are_closed_one_by_one() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n"), ("mine", "0\n")]);
    for agent in ["a_1", "a_2"] {
        let keeper = world.keeper(RUN).await;
        let path = if agent == "a_1" { "a" } else { "odd\nname \\" };
        ask(&keeper, agent, path, &begun(&world)).await;
        // Another window that is open does not keep it from being closed.
        world.write(path, "half\n");
        if agent == "a_1" {
            let other = world.keeper(RUN).await;
            ask(&other, "a_3", "b", &begun(&world)).await;
            world.write("b", "half\n");
        }
    }
    world.write("mine", "the person's\n");
    let keeper = world.keeper(RUN).await;
    assert_eq!(changes(&keeper).await, ["Modified a a_1", "Modified b a_3", "Added odd\nname \\ a_2"]);
    let steps = steps(&world);
    let cut_off = steps.iter().filter(|step| step.ends_with(" (interrupted)")).count();
    assert_eq!(cut_off, 3, "{steps:?}");
    assert_eq!(undo(&keeper).await.1, [""; 0]);
    assert_eq!(world.read("mine"), b"the person's\n");
}

#[tokio::test]
async fn a_window_that_an_earlier_version_left_is_still_read() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await;
    keeper.open_window("a_1").await.unwrap();
    keeper.close_window("a_1", "").await.unwrap();
    drop(keeper);
    let record = world.lock_of(RUN).parent().unwrap().to_owned();
    fs::remove_file(record.join("tip")).unwrap();
    fs::write(record.join("window"), "agent a_old\nsome token\n").unwrap();
    world.write("a", "half\n");
    world.write("b", "half\n");
    let keeper = world.keeper(RUN).await;
    ask(&keeper, "a_2", "c", &begun(&world)).await;
    world.write("c", "2\n");
    keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Modified a a_old", "Added b a_old", "Added c a_2"]);
    assert!(!record.join("window").exists());
    // While its process lives, it has everything.
    let mark = fs::File::create(record.join("window")).unwrap();
    mark.lock().unwrap();
    fs::write(record.join("window"), "agent a_old\nsome token\n").unwrap();
    let asked = keeper.before_write("a_2", &[Place::file("d")], Some(&begun(&world))).await;
    assert!(matches!(asked, Err(Error::Busy { .. })), "{asked:?}");
}

#[tokio::test]
async fn undo_and_forgetting_wait_for_no_window_and_refuse() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await;
    ask(&keeper, "a_1", "a", &begun(&world)).await;
    world.write("a", "1\n");
    let other = world.keeper(RUN).await;
    for keeper in [&keeper, &other] {
        assert!(matches!(keeper.undo(false).await, Err(Error::Busy { .. })));
    }
    let forgotten = convoke_trees::forget(&world.places, &world.dir, RUN).await;
    assert!(matches!(forgotten, Err(Error::Busy { .. })));
    let applied = other.take_over("a_9", "", async {}).await;
    assert!(matches!(applied, Err(Error::Busy { .. })));
    keeper.close_window("a_1", "").await.unwrap();
    assert_eq!(undo(&other).await.0, ["a"]);
}

#[tokio::test]
async fn what_another_agent_keeps_writing_is_not_read_for_a_step() {
    let world = World::repository(&[("a", "0\n")]);
    let keeper = world.keeper(RUN).await;
    let begun = begun(&world);
    keeper.before_write("a_1", &[Place::tree("build")], Some(&begun)).await.unwrap();
    world.write("build/out", "half\n");
    // Git could not read it, and says so of a file that it is to read.
    world.chmod("build/out", 0o000);
    ask(&keeper, "a_2", "a", &begun).await;
    world.write("a", "2\n");
    let closed = keeper.close_window("a_2", "").await.unwrap();
    assert_eq!((closed.changed.len(), closed.left_out.len()), (1, 0), "{closed:?}");
    world.chmod("build/out", 0o644);
    assert_eq!(keeper.close_window("a_1", "").await.unwrap().changed.len(), 1);
    assert_eq!(keeper.diff(DiffForm::Names).await.unwrap(), b"M\ta\nA\tbuild/out\n");
}

#[tokio::test]
async fn an_index_that_was_lost_changes_nothing_of_what_others_are_writing() {
    let world = World::repository(&[("a", "0\n"), ("b", "0\n"), ("gone", "0\n")]);
    let keeper = world.keeper(RUN).await;
    let begun = begun(&world);
    for path in ["a", "gone", "new"] {
        ask(&keeper, "a_1", path, &begun).await;
    }
    world.write("a", "half\n");
    world.write("new", "half\n");
    world.remove("gone");
    fs::remove_file(world.lock_of(RUN).with_file_name("index")).unwrap();
    ask(&keeper, "a_2", "b", &begun).await;
    world.write("b", "2\n");
    keeper.close_window("a_2", "").await.unwrap();
    assert_eq!(changes(&keeper).await, ["Modified b a_2"]);
    keeper.close_window("a_1", "").await.unwrap();
    let expected = ["Modified a a_1", "Modified b a_2", "Deleted gone a_1", "Added new a_1"];
    assert_eq!(changes(&keeper).await, expected);
}

#[tokio::test]
async fn in_a_directory_of_a_repository_and_without_one_parts_are_recorded_alike() {
    let below = World::repository(&[("sub/a", "0\n"), ("sub/b", "0\n"), ("top", "0\n")]);
    let below = {
        let dir = below.path("sub");
        below.at(dir)
    };
    let plain = World::plain();
    plain.write("a", "0\n");
    plain.write("b", "0\n");
    for world in [below, plain] {
        let keeper = world.keeper(RUN).await;
        let begun = begun(&world);
        for (agent, path) in [("a_1", "a"), ("a_2", "b")] {
            ask(&keeper, agent, path, &begun).await;
            world.remove(path);
            world.write(format!("{path}/now/a/directory"), agent);
            keeper.before_write(agent, &[Place::tree(path)], Some(&begun)).await.unwrap();
        }
        world.write("mine", "the person's\n");
        keeper.close_window("a_2", "").await.unwrap();
        keeper.close_window("a_1", "").await.unwrap();
        let expected =
            ["Deleted a a_1", "Added a/now/a/directory a_1", "Deleted b a_2", "Added b/now/a/directory a_2"];
        assert_eq!(changes(&keeper).await, expected);
        assert_eq!(undo(&keeper).await.1, [""; 0]);
        assert_eq!((world.read("a"), world.read("b")), (b"0\n".to_vec(), b"0\n".to_vec()));
    }
}
