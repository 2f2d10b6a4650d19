//! The escape suite: many ways out, each tried in a small machine of its own under both confining policies
//! and each set of layers, as root and as an ordinary user. One counts only if it gets out where nothing is
//! confined. No attempt escapes the full set; what the fallback set lets through is listed here and, by the
//! same names, in `docs/sandbox.md`.
//!
//! `cargo test -p convoke-sandbox --test it escape -- --nocapture` prints the table.

mod attempt;
mod git;
mod kernel;
mod network;
mod processes;
mod reading;
mod terminal;
mod world;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use convoke_sandbox::{Access, Enforcement, HoldChoice, Layer, LayerSet, Layers, Network, hold, probe};
use tempfile::TempDir;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use self::attempt::{Attempt, Came, Cell};
use crate::{helper, readable_copy};

/// The unprivileged user of most systems.
const NOBODY: &str = "65534";

/// Attempts at one time.
const AT_ONCE: usize = 10;

/// For which users it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Everybody,
    /// Not for root, whose processes have capabilities that commands do not.
    User,
}

/// What the fallback set lets through, and the name of the sentence in [`Enforcement::weaker`] that says so.
const KNOWN_WEAKER: &[(&str, &str, Who)] = &[
    ("extended-attribute", "attributes", Who::Everybody),
    ("mode", "attributes", Who::Everybody),
    ("mode-by-handle", "attributes", Who::Everybody),
    ("private-files-readable", "attributes", Who::Everybody),
    ("times", "attributes", Who::Everybody),
    ("git-configuration-included", "git-metadata", Who::Everybody),
    ("git-difference-program", "git-metadata", Who::Everybody),
    ("git-directory-exchanged", "git-metadata", Who::Everybody),
    ("git-directory-replaced", "git-metadata", Who::Everybody),
    ("git-directory-shared", "git-metadata", Who::Everybody),
    ("git-file-watcher", "git-metadata", Who::Everybody),
    ("git-filter", "git-metadata", Who::Everybody),
    ("git-history-rewritten", "git-metadata", Who::Everybody),
    ("git-hook", "git-metadata", Who::Everybody),
    ("git-hook-in-the-tree", "git-metadata", Who::Everybody),
    ("git-hooks-in-the-tree-exchanged", "git-metadata", Who::Everybody),
    ("git-hooks-path", "git-metadata", Who::Everybody),
    ("git-included-file", "git-metadata", Who::Everybody),
    ("git-index-locked", "git-metadata", Who::Everybody),
    ("git-objects-removed", "git-metadata", Who::Everybody),
    ("mercurial-settings", "git-metadata", Who::Everybody),
    ("size-of-hidden-file", "names", Who::Everybody),
    ("arguments-of-another", "processes", Who::Everybody),
    ("moved-to-one-processor", "processes", Who::User),
    ("slowed-down", "processes", Who::User),
    ("kill", "signals", Who::Everybody),
    ("stop", "signals", Who::Everybody),
    ("signal-to-all", "signals", Who::Everybody),
    ("signal-by-handle", "signals", Who::Everybody),
    ("signal-by-descriptor", "signals", Who::Everybody),
    ("helper-stopped", "signals", Who::Everybody),
    ("helper-killed", "signals", Who::Everybody),
    ("truncate", "truncation", Who::Everybody),
];

/// Sentences of [`Enforcement::weaker`] that say what does not work inside, or how long a limit takes, and so
/// let nothing through.
const NO_WAY_OUT: &[&str] = &["listing", "devices", "loopback", "copy", "caches", "bursts", "disk"];

fn all() -> Vec<Attempt> {
    [writing::ALL, reading::ALL, git::ALL, network::ALL, processes::ALL, kernel::ALL, terminal::ALL].concat()
}

/// A column of the table: by what the policies are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Namespaces,
    /// Landlock below the pid namespace that holds the processes.
    Landlock,
    /// Landlock where there is no namespace at all. Only what depends on processes is tried: the rest does
    /// not change.
    LandlockAlone,
}

impl Column {
    fn cell(self, access: Access) -> Cell {
        let (set, hold) = match self {
            Self::Namespaces => (LayerSet::Namespaces, HoldChoice::Best),
            Self::Landlock => (LayerSet::Landlock, HoldChoice::Best),
            Self::LandlockAlone => (LayerSet::Landlock, HoldChoice::Subreaper),
        };
        Cell { access, set: Some(set), hold }
    }

    /// How this column is held by what the machine offers; nothing if it cannot be had.
    fn held(self, layers: &Layers, access: Access) -> Option<Enforcement> {
        let mut layers = layers.clone();
        if self == Self::LandlockAlone {
            layers.hold = Layer::missing("left out");
        }
        let set = self.cell(access).set;
        hold(&layers, access, &Network::Off, set).ok().filter(|held| held.set == set)
    }
}

/// The two halves take turns: a machine that is too busy makes every limit late.
static TURN: Mutex<()> = Mutex::const_new(());

/// Nothing is confined, and no namespace hides any process.
const OFF: Cell = Cell { access: Access::Off, set: None, hold: HoldChoice::Subreaper };

#[tokio::test(flavor = "multi_thread", worker_threads = 10)]
async fn nobody_escapes() {
    let _turn = TURN.lock().await;
    let since = Instant::now();
    let attempts = all();
    let names: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.name).collect();
    assert_eq!(names.len(), attempts.len(), "every attempt has a name of its own");
    let layers = probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    let free = run(&attempts, OFF).await;
    let succeeds = |attempt: &Attempt| free[attempt.name].escaped;
    let (counted, failing): (Vec<Attempt>, Vec<Attempt>) =
        attempts.iter().partition(|attempt| succeeds(attempt));
    let listed: Vec<&str> = failing.iter().map(|attempt| attempt.name).collect();
    println!(
        "as user {}: {} attempts, of which {} get out where nothing is confined",
        user(),
        attempts.len(),
        counted.len()
    );
    println!("{} do not count, because they fail unconfined: {}", listed.len(), listed.join(", "));
    let mut families: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for attempt in &attempts {
        let [tried, out] = families.entry(attempt.family).or_default();
        *tried += 1;
        *out += usize::from(succeeds(attempt));
    }
    println!("by family (tried, get out): {families:?}");
    println!(
        "{:>15} {:>10} {:>6} {:>21} {:>8}",
        "layers", "policy", "tried", "succeeded unconfined", "escaped"
    );
    let mut wrong = Vec::new();
    for column in [Column::Namespaces, Column::Landlock, Column::LandlockAlone] {
        for access in [Access::ReadOnly, Access::Workspace] {
            let Some(held) = column.held(&layers, access) else {
                println!("{column:?} {access:?}: cannot be had here, not run");
                continue;
            };
            let since = Instant::now();
            let concerns = |attempt: &&Attempt| {
                attempt.concerns(access) && (column != Column::LandlockAlone || attempt.concerns_processes())
            };
            let concerned: Vec<Attempt> = attempts.iter().filter(concerns).copied().collect();
            let came = run(&concerned, column.cell(access)).await;
            let counting = concerned.iter().filter(|attempt| succeeds(attempt)).count();
            let escaped: BTreeSet<&str> =
                came.iter().filter(|(_, came)| came.escaped).map(|(name, _)| *name).collect();
            let expected: BTreeSet<&str> = let_through(&held)
                .filter(|name| concerned.iter().any(|one| one.name == *name && succeeds(one)))
                .collect();
            let column = format!("{column:?}");
            let access = format!("{access:?}");
            let took = since.elapsed();
            println!(
                "{column:>15} {access:>10} {:>6} {counting:>21} {:>8}   {took:.1?}",
                concerned.len(),
                escaped.len()
            );
            for name in &escaped {
                println!("{:>26}   {name}", "escaped:");
            }
            // A control group ends what a killed helper leaves behind, where there is one.
            let either =
                |name: &str| name == "helper-killed" && expected.contains(name) && layers.cgroup.works;
            let held_by_chance = |name: &str| world::stand_in_what_is_covered() && !escaped.contains(name);
            for name in
                escaped.symmetric_difference(&expected).filter(|name| !either(name) && !held_by_chance(name))
            {
                wrong.push(format!("{column} {access}: {name}: {:?}", came[name]));
            }
            for (name, came) in came.iter().filter(|(_, came)| !came.alive) {
                wrong.push(format!("{column} {access}: the shell did not go on after {name}: {came:?}"));
            }
        }
    }
    println!("{:?}", since.elapsed());
    assert!(counted.len() >= 80, "too few attempts succeed unconfined: {}", counted.len());
    assert!(wrong.is_empty(), "not as known:\n{}", wrong.join("\n"));
}

/// The attempts that this hold is known to let through.
fn let_through(held: &Enforcement) -> impl Iterator<Item = &'static str> {
    let said: BTreeSet<String> =
        held.weaker.iter().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    let root = user() == "0";
    let known = KNOWN_WEAKER.iter().filter(move |(.., who)| *who == Who::Everybody || !root);
    // A process that is not seen cannot be sent a signal.
    let seen = said.contains("processes");
    known
        .filter(move |(_, sentence, _)| said.contains(*sentence) && (seen || *sentence != "signals"))
        .map(|(name, ..)| *name)
}

async fn run(attempts: &[Attempt], cell: Cell) -> BTreeMap<&'static str, Came> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for attempt in attempts.iter().copied() {
        let room = Arc::clone(&room);
        running.spawn(async move {
            let _place = room.acquire_owned().await.unwrap();
            (attempt.name, attempt.attempt(cell).await)
        });
    }
    running.join_all().await.into_iter().collect()
}

/// Root runs both halves; an ordinary user says that the half for root was not run.
#[test]
fn nobody_escapes_as_an_ordinary_user() {
    if user() != "0" {
        println!("this is an ordinary user: the half for root was not run");
        return;
    }
    let _turn = TURN.blocking_lock();
    let worlds = worlds_for_everybody();
    let helper = readable_copy(&helper().program, worlds.path());
    let tests = readable_copy(&std::env::current_exe().unwrap(), worlds.path());
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(tests)
        .args(["escape::nobody_escapes", "--exact", "--nocapture"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TMPDIR", worlds.path())
        .env(world::WORLDS_VARIABLE, worlds.path())
        .env(crate::HELPER_VARIABLE, helper)
        .current_dir(worlds.path())
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that every user reaches, outside of `/tmp` where it can be had.
fn worlds_for_everybody() -> TempDir {
    let places = [env!("CARGO_TARGET_TMPDIR"), "/opt", "/srv", "/var/lib", "/tmp"];
    let found = places.iter().find_map(|place| {
        let dir = tempfile::Builder::new().prefix("escape").tempdir_in(place).ok()?;
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).ok()?;
        let reached = Command::new("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "test", "-w"])
            .arg(dir.path())
            .status();
        reached.is_ok_and(|status| status.success()).then_some(dir)
    });
    found.unwrap()
}

fn user() -> String {
    String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn what_the_fallback_set_lets_through_is_in_the_documentation_by_name() {
    let at: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox.md");
    let text = std::fs::read_to_string(at).unwrap();
    let section = text.split("What the fallback set lets through").nth(1).expect("the section is there");
    let section = section.split("\n#").next().unwrap();
    let written: BTreeSet<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let known: BTreeSet<&str> = KNOWN_WEAKER.iter().map(|(name, ..)| *name).collect();
    assert_eq!(written, known);
    for (name, sentence, _) in KNOWN_WEAKER {
        assert!(all().iter().any(|attempt| attempt.name == *name), "{name} is an attempt");
        assert!(section.contains(&format!("`{sentence}`")), "{sentence} is named");
    }
}

/// No sentence without an attempt that shows it, and no attempt let through without a sentence.
#[test]
fn every_sentence_about_what_is_weaker_is_shown_by_an_attempt() {
    let layers = Layers {
        bubblewrap: Layer::missing("left out"),
        landlock: Layer::works("1"),
        landlock_abi: 1,
        seccomp: Layer::works(""),
        cgroup: Layer::missing("left out"),
        hold: Layer::missing("left out"),
        ..Layers::default()
    };
    let mut said = BTreeSet::new();
    for access in [Access::ReadOnly, Access::Workspace] {
        let held = hold(&layers, access, &Network::Off, None).unwrap();
        said.extend(held.weaker.iter().map(|line| line.split(':').next().unwrap().to_owned()));
    }
    let shown: BTreeSet<String> =
        KNOWN_WEAKER.iter().map(|(_, sentence, _)| (*sentence).to_owned()).collect();
    let harmless: BTreeSet<String> = NO_WAY_OUT.iter().map(|sentence| (*sentence).to_owned()).collect();
    assert_eq!(said, &shown | &harmless);
}

/// The sentences about what does not work inside are true as well.
#[tokio::test]
async fn what_is_said_not_to_work_under_the_fallback_set_does_not() {
    let layers = probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    if Column::LandlockAlone.held(&layers, Access::ReadOnly).is_none() {
        println!("not run: Landlock cannot be had here");
        return;
    }
    let cell = Column::LandlockAlone.cell(Access::ReadOnly);
    let tell = [
        ("listing", "ls {home}/.. >/dev/null"),
        ("devices", "echo x > /dev/shm/{mark} || echo x > /tmp/{mark} || echo x > /dev/tty"),
        ("loopback", "perl -e 'use Socket; socket(S, AF_INET, SOCK_STREAM, 0) or exit 1'"),
        ("copy", "test $PWD = {project}"),
        ("caches", "echo x > {home}/.cache/tool/{mark}"),
    ];
    for (sentence, command) in tell {
        let came = Attempt::tell(command).attempt(cell).await;
        assert!(came.text.ends_with("refused\n") && !came.escaped, "{sentence}: {came:?}");
    }
}
