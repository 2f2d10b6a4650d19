//! Every way in which leaving a file behind can be cut off, and what a writer is told in each of them.

use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::sqlite::committer::Committer;
use crate::sqlite::generation::Fate;
use crate::sqlite::wait::Waits;

const STEPS: [Step; 5] = [Step::Told, Step::Copied, Step::Whole, Step::Named, Step::Pointed];

struct World {
    dir: tempfile::TempDir,
    place: JournalFiles,
    first: Generation,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (place, _) = file::prepare(&dir.path().join("journal.db"), &me()).unwrap();
        let first = place.current().unwrap().unwrap();
        Self { dir, place, first }
    }

    fn committer(&self) -> Committer {
        Committer::start(self.place.base().to_owned(), me(), Waits::default()).unwrap()
    }

    fn current(&self) -> Generation {
        self.place.current().unwrap().unwrap()
    }

    /// The names that were written to the journal as it is now.
    fn names(&self) -> Vec<String> {
        let rows = file::connect(&self.current().path).unwrap();
        let whole: String = rows.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
        let mut statement = rows.prepare("SELECT name FROM meta WHERE name LIKE 't_' ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Whether a note or a draft of a next generation lies there.
    fn unfinished(&self) -> bool {
        let Ok(entries) = fs::read_dir(self.place.workshop()) else { return false };
        entries.map(|entry| entry.unwrap().file_name()).any(|name| name.to_str().unwrap().contains("-p_"))
    }

    /// Takes over under the caller's own lock, and is cut off after a step as by a crash: nothing is cleaned
    /// up.
    fn cut_after(&self, step: Step, who: &Process) -> io::Result<()> {
        let from = self.current();
        let lock = file::connect(&from.path).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        let cut = take_over_by_steps(&self.place, &from, who, &Proof::Mine, |done| {
            if done == step {
                // What a process leaves behind that has no time to clean up.
                let kept = self.dir.path().join("kept");
                fs::create_dir_all(&kept).unwrap();
                for entry in fs::read_dir(self.place.workshop()).unwrap() {
                    let entry = entry.unwrap();
                    fs::copy(entry.path(), kept.join(entry.file_name())).unwrap();
                }
                return Err(io::Error::other("cut off"));
            }
            Ok(())
        });
        let kept = self.dir.path().join("kept");
        fs::create_dir_all(self.place.workshop()).unwrap();
        for entry in fs::read_dir(&kept).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), self.place.workshop().join(entry.file_name())).unwrap();
        }
        fs::remove_dir_all(kept).unwrap();
        cut
    }
}

fn me() -> Process {
    Process::current([1; 10])
}

fn somebody_gone() -> Process {
    Process { start_time: me().start_time.wrapping_sub(1), ..Process::current([2; 10]) }
}

async fn write(committer: &Committer, name: &'static str) {
    let insert = move |rows: &Connection| {
        rows.execute("INSERT INTO meta (name, value) VALUES ($1, 1)", [name])?;
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(60), committer.write(insert)).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_next_generation_has_all_that_was_committed_and_the_name_leads_to_it() {
    let world = World::new();
    let committer = world.committer();
    write(&committer, "t1").await;
    take_over(&world.place, &world.first, &me(), &Proof::Mine).unwrap();
    assert_eq!(world.place.fate(&world.first).unwrap(), Fate::Left);
    assert_eq!(world.names(), ["t1"]);
    assert_eq!(fs::read_link(world.place.base()).unwrap(), Path::new("journal.db-over/1.db"));
    // The writer notices before its next batch, and both stand in the file that any program finds by its
    // name.
    write(&committer, "t2").await;
    take_over(&world.place, &world.current(), &me(), &Proof::Mine).unwrap();
    write(&committer, "t3").await;
    assert_eq!(world.current().number, 2);
    assert_eq!(world.names(), ["t1", "t2", "t3"]);
    drop(committer);
    let by_name = Connection::open(world.place.base()).unwrap();
    let count: i64 =
        by_name.query_row("SELECT count(*) FROM meta WHERE name LIKE 't_'", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 3);
    assert!(!world.unfinished());
    assert!(!world.place.file(1).exists(), "an earlier generation stays behind");
}

#[tokio::test]
async fn a_taker_over_that_dies_after_any_step_is_cleaned_up_after_and_nothing_is_lost() {
    for step in STEPS {
        let world = World::new();
        let committer = world.committer();
        write(&committer, "t1").await;
        world.cut_after(step, &somebody_gone()).unwrap_err();
        assert!(world.unfinished(), "{step:?} was cut off and left nothing");
        write(&committer, "t2").await;
        let named = matches!(step, Step::Named | Step::Pointed);
        assert_eq!(world.current().number, u64::from(named), "{step:?}");
        assert_eq!(world.names(), ["t1", "t2"], "{step:?}");
        assert!(!world.unfinished(), "{step:?} leaves something");
        committer.close();
        // Another process finds the journal too, and mends its name.
        let (place, _) = file::prepare(world.place.base(), &me()).unwrap();
        assert_eq!(place.current().unwrap().unwrap().number, u64::from(named));
        assert_eq!(fs::read_link(world.place.base()).is_ok(), named, "{step:?}");
    }
}

#[tokio::test]
async fn a_taker_over_that_stands_still_after_any_step_is_gone_past() {
    for step in STEPS {
        let world = World::new();
        let committer = world.committer();
        write(&committer, "t1").await;
        // The maker counts as this process, which is never gone: the
        // writer has to make the next generation itself.
        world.cut_after(step, &Process { id: "p_slow".to_owned(), ..me() }).unwrap_err();
        write(&committer, "t2").await;
        assert_eq!(world.current().number, 1, "{step:?}");
        assert_eq!(world.names(), ["t1", "t2"], "{step:?}");
        write(&committer, "t3").await;
        assert!(!world.unfinished(), "{step:?} leaves something");
        assert_eq!(world.names(), ["t1", "t2", "t3"], "{step:?}");
    }
}

/// The dangerous cut: a copy was made, the writer commits to the old file, and only then the copy gets its
/// name.
#[tokio::test]
async fn a_commit_that_is_not_in_the_copy_is_made_again_and_never_lost_or_doubled() {
    for step in [Step::Told, Step::Copied, Step::Whole] {
        let world = World::new();
        let committer = world.committer();
        write(&committer, "t1").await;
        let (go, may_go) = mpsc::channel::<()>();
        let (reached, is_there) = mpsc::channel::<()>();
        let place = world.place.clone();
        let from = world.first.clone();
        // It claims a standstill that it cannot see, which is what a holder that goes on after the last look
        // is to it.
        let slow = std::thread::spawn(move || {
            let who = Process { id: "p_slow".to_owned(), ..me() };
            take_over_by_steps(&place, &from, &who, &Proof::Mine, |done| {
                if done == step {
                    reached.send(()).unwrap();
                    may_go.recv().unwrap();
                }
                Ok(())
            })
        });
        is_there.recv().unwrap();
        let count = std::sync::Arc::new(AtomicU64::new(0));
        let counted = std::sync::Arc::clone(&count);
        let old = world.first.path.clone();
        let twice = committer.write(move |rows| {
            counted.fetch_add(1, Ordering::Relaxed);
            rows.execute("INSERT INTO meta (name, value) VALUES ('t2', 1)", [])?;
            Ok(())
        });
        let committed = async {
            // Goes on only when the old file has the commit, which a plain look shows.
            let sees = |old: &Path| {
                let rows = file::connect(old).unwrap();
                rows.query_row("SELECT count(*) FROM meta WHERE name = 't2'", [], |row| row.get::<_, i64>(0))
                    .unwrap()
            };
            while sees(&old) == 0 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        let (written, ()) = tokio::join!(twice, committed);
        written.unwrap();
        slow.join().unwrap().unwrap();
        assert_eq!(world.current().number, 1);
        assert_eq!(world.names(), ["t1", "t2"], "{step:?}");
        let expected = if step == Step::Told { 1 } else { 2 };
        assert_eq!(count.load(Ordering::Relaxed), expected, "{step:?}");
    }
}

#[test]
fn a_holder_that_goes_on_is_left_alone() {
    let world = World::new();
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = child.id();
    let kill = |signal: &str| {
        assert!(
            std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success()
        );
    };
    let still = || loop {
        if let Some(still) = StoppedProcess::of(pid)
            && StoppedProcess::of(pid).as_ref() == Some(&still)
        {
            return still;
        }
        std::thread::yield_now();
    };
    kill("-STOP");
    // It runs between the copy and the second look, and is stopped again when that is taken.
    let holder = || Some(pid);
    let proof = Proof::Stopped(still(), &holder);
    let error = take_over_by_steps(&world.place, &world.first, &me(), &proof, |done| {
        if done == Step::Copied {
            kill("-CONT");
            while StoppedProcess::of(pid).is_some() {}
            kill("-STOP");
            still();
        }
        Ok(())
    });
    assert!(error.unwrap_err().to_string().contains("went on"));
    // The lock went to another process.
    let nobody = || None;
    let proof = Proof::Stopped(still(), &nobody);
    take_over(&world.place, &world.first, &me(), &proof).unwrap_err();
    assert_eq!(world.place.fate(&world.first).unwrap(), Fate::Current);
    assert!(!world.place.workshop().exists());
    let proof = Proof::Stopped(still(), &holder);
    take_over(&world.place, &world.first, &me(), &proof).unwrap();
    assert_eq!(world.place.fate(&world.first).unwrap(), Fate::Left);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_file_that_a_person_put_in_the_place_of_the_name_is_not_thrown_away() {
    let world = World::new();
    take_over(&world.place, &world.first, &me(), &Proof::Mine).unwrap();
    let copy = world.dir.path().join("copy");
    fs::copy(world.place.base(), &copy).unwrap();
    fs::rename(&copy, world.place.base()).unwrap();
    let error = file::prepare(world.place.base(), &me()).unwrap_err().to_string();
    assert!(error.contains("journal.db-over/1.db") && error.contains("left untouched"), "{error}");
    fs::remove_file(world.place.base()).unwrap();
    let error = file::prepare(world.place.base(), &me()).unwrap_err().to_string();
    assert!(error.contains("is missing"), "{error}");
}
