//! Git sees no more than commands do. An opponent exchanges a directory of the tree with a link to a
//! directory outside, over and over, while snapshots are taken and worktrees are cut; the same is tried
//! against a git that sees everything, which must lose.
//!
//! The seed and both counts are printed. `CONVOKE_SOAK_SIGHT` is the number of tries, `CONVOKE_SEED` the
//! first seed.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke_sandbox::{Sight, Unseen};
use convoke_trees::{HostPlaces, Keeper, Worktrees};

use crate::world::{World, like_commands, path_variable};

/// Tells the process that plays an ordinary user what to try.
const AS_USER: &str = "CONVOKE_TEST_SIGHT_AS_USER";

#[expect(clippy::disallowed_methods, reason = "the size of a test is the environment's to choose")]
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Exchanges two names below a directory every few milliseconds until it is dropped.
struct Exchanger {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Exchanger {
    fn start(dir: &Path, seed: u64) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let dir = dir.to_owned();
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let (mut random, mut count) = (seed | 1, 0);
            while !seen.load(Ordering::Relaxed) {
                let d = dir.join("d");
                let way = dir.join("way");
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, &d, rustix::fs::CWD, &way, flags).unwrap();
                count += 1;
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                std::thread::sleep(Duration::from_micros(200 + (random >> 33) % 4_000));
            }
            count
        });
        Self { over, thread: Some(thread) }
    }

    fn stop(mut self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A tree with a directory `d` and a link `way` to a directory outside, whose file is the secret.
struct Bait {
    world: World,
    secret: PathBuf,
    /// The directory itself, by whichever of its names.
    plain: fs::File,
}

impl Bait {
    fn new(sight: &Sight) -> Self {
        let mut world = World::repository(&[("a", "1\n"), ("d/key", "plain\n")]);
        world.places.sight = sight.clone();
        let secret = world.beside("secret");
        fs::create_dir(&secret).unwrap();
        symlink(&secret, world.path("way")).unwrap();
        let plain = fs::File::open(world.path("d")).unwrap();
        Self { world, secret, plain }
    }

    /// A new secret, and new files beside its double in the tree, which keep git busy; returns the name that
    /// its content would have among the repository's objects.
    fn change(&self, number: u64) -> String {
        let text = format!("a secret of the person's, the {number}th of {:?}\n", self.secret);
        fs::write(self.secret.join("key"), &text).unwrap();
        let plain = PathBuf::from(format!("/proc/self/fd/{}", self.plain.as_raw_fd()));
        for file in 0..150 {
            // Names on both sides of the one that is wanted.
            let name = format!("{}{file}", if file % 2 == 0 { 'a' } else { 'z' });
            fs::write(plain.join(&name), format!("{number} {file}\n")).unwrap();
            fs::write(self.secret.join(&name), format!("{file}\n")).unwrap();
        }
        fs::write(plain.join("key"), format!("plain {number}\n")).unwrap();
        let name = self.world.git(["hash-object", "--no-filters", self.secret.join("key").to_str().unwrap()]);
        String::from_utf8(name).unwrap().trim().to_owned()
    }

    /// Whether the next command could read the secret among the objects.
    fn is_lost(&self, name: &str) -> bool {
        let asked = Command::new("git").args(["cat-file", "-e", name]).current_dir(&self.world.dir).output();
        asked.unwrap().status.success()
    }
}

/// How often something was tried, and how often it was won. Where nothing holds it is tried until it is won
/// once, if need be.
struct Tally {
    tries: u64,
    won: u64,
}

impl Tally {
    fn goes_on(&self, tries: u64, sight: &Sight) -> bool {
        self.tries < tries || (self.won == 0 && *sight == Sight::Everything && self.tries < 20 * tries)
    }

    fn count(&mut self, won: bool) {
        self.tries += 1;
        self.won += u64::from(won);
    }
}

/// How many of these snapshots kept the secret.
async fn snapshots(tries: u64, seed: u64, sight: &Sight) -> Tally {
    let bait = Bait::new(sight);
    let keeper = bait.world.keeper("s_1").await;
    keeper.before().await.unwrap();
    let exchanger = Exchanger::start(&bait.world.dir, seed);
    let mut tally = Tally { tries: 0, won: 0 };
    while tally.goes_on(tries, sight) {
        let name = bait.change(tally.tries);
        // A tree that changes under git's hands may not be kept, which is no success of the opponent's.
        let _ = keeper.open_window("a_1").await;
        let _ = keeper.close_window("a_1", "").await;
        tally.count(bait.is_lost(&name));
    }
    assert!(exchanger.stop() > tries, "the opponent did something");
    tally
}

/// How many of these worktrees were cut with the secret in them.
async fn worktrees(tries: u64, seed: u64, sight: &Sight) -> Tally {
    let bait = Bait::new(sight);
    let all = Worktrees::open(bait.world.places.clone(), &bait.world.dir).await.unwrap();
    let exchanger = Exchanger::start(&bait.world.dir, seed);
    let mut tally = Tally { tries: 0, won: 0 };
    while tally.goes_on(tries, sight) {
        let name = bait.change(tally.tries);
        let _ = all.create("wf_1", &format!("a_{}", tally.tries)).await;
        tally.count(bait.is_lost(&name));
    }
    exchanger.stop();
    tally
}

async fn race(who: &str) {
    let tries = number("CONVOKE_SOAK_SIGHT", 12);
    let seed = number("CONVOKE_SEED", 1);
    let told = |what: &str, held: &Tally, open: &Tally| {
        let Tally { tries, won } = held;
        println!("{who}, seed {seed}: {what}: {won} of {tries} confined, {} of {} not", open.won, open.tries);
        assert_eq!(*won, 0);
        assert!(open.won > 0, "attempts that cannot succeed show nothing");
    };
    let held = snapshots(tries, seed, &like_commands()).await;
    told("snapshots that kept a hidden file", &held, &snapshots(tries, seed, &Sight::Everything).await);
    let held = worktrees(tries / 2, seed, &like_commands()).await;
    told("worktrees cut with a hidden file", &held, &worktrees(tries / 2, seed, &Sight::Everything).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_snapshot_and_no_worktree_holds_what_a_link_that_comes_and_goes_leads_to() {
    if let Some(place) = std::env::var_os(AS_USER) {
        assert!(std::env::temp_dir().starts_with(Path::new(&place)));
        return race("as a user").await;
    }
    race("as root").await;
    if fs::metadata("/proc/self").map(|found| std::os::unix::fs::MetadataExt::uid(&found)).unwrap() != 0 {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("test");
    // Copied by another process: a child of another test could inherit our handle, and then the copy could
    // not be run.
    assert!(
        Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success()
    );
    assert!(Command::new("chmod").args(["-R", "777"]).arg(place.path()).status().unwrap().success());
    let name = "sight::no_snapshot_and_no_worktree_holds_what_a_link_that_comes_and_goes_leads_to";
    let mut again = Command::new(program);
    again
        .args(["--exact", name, "--nocapture"])
        .env(AS_USER, place.path())
        .env("TMPDIR", place.path())
        .current_dir("/");
    let seen = again.uid(65_534).gid(65_534).output().unwrap();
    let said = String::from_utf8_lossy(&seen.stdout);
    print!(
        "{}",
        said.lines()
            .filter(|line| line.starts_with("as a user"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    );
    assert!(
        seen.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&seen.stderr)
    );
}

#[tokio::test]
async fn what_is_hidden_from_commands_within_the_tree_is_left_out_and_named() {
    let mut world = World::repository(&[
        ("a", "1\n"),
        (".env", "TOKEN=1\n"),
        ("home/.ssh/key", "secret\n"),
        ("home/b", "1\n"),
    ]);
    let unseen = Unseen {
        hidden: vec![world.path("home/.ssh")],
        readable: Vec::new(),
        masked: vec![world.path(".env")],
        ..Unseen::default()
    };
    world.places.sight = Sight::LikeCommands(unseen);
    let keeper = world.keeper("s_1").await;
    let kept = keeper.before().await.unwrap();
    let mut names: Vec<String> = kept.left_out.iter().map(|out| out.path.display().to_string()).collect();
    names.sort();
    assert_eq!(names, [".env", "home/.ssh"]);
    keeper.open_window("a_1").await.unwrap();
    world.write("home/b", "2\n");
    world.write("new", "2\n");
    world.write(".env", "TOKEN=2\n");
    let closed = keeper.close_window("a_1", "").await.unwrap();
    let mut changed: Vec<PathBuf> = closed.changed.into_iter().map(|file| file.path).collect();
    changed.sort();
    assert_eq!(changed, [PathBuf::from("home/b"), PathBuf::from("new")]);
}

#[tokio::test]
async fn below_a_hidden_home_the_tree_is_kept_and_nothing_around_it() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().canonicalize().unwrap().join("home");
    fs::create_dir_all(home.join("work")).unwrap();
    fs::write(home.join("work/a"), "1\n").unwrap();
    let unseen = Unseen { hidden: vec![home.clone()], ..Unseen::default() };
    let places =
        HostPlaces { path: path_variable(), state: home.join(".state"), sight: Sight::LikeCommands(unseen) };
    let keeper = Keeper::open(&places, &home.join("work"), "s_1").await.unwrap();
    keeper.open_window("a_1").await.unwrap();
    fs::write(home.join("work/a"), "2\n").unwrap();
    assert_eq!(keeper.close_window("a_1", "").await.unwrap().changed.len(), 1);
    assert_eq!(keeper.undo(false).await.unwrap().restored.len(), 1);
    assert_eq!(fs::read(home.join("work/a")).unwrap(), b"1\n");
}
