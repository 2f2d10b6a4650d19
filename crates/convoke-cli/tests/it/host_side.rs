//! The suite of the host's side: what Convoke's own process, and the git it starts, do in a directory that an
//! opponent has prepared or keeps changing. Every attempt is made against the real binary under both sets of
//! layers, as root and as an ordinary user, and against a twin that does the same thing without a thought of
//! an opponent. An attempt that does not win against its twin does not count, and fails the suite; so does
//! one that wins against the binary.
//!
//! `cargo test -p convoke-cli --test it host_side -- --nocapture` prints the table.
//! `CONVOKE_SOAK_HOST_SIDE=200` tries every race two hundred times; `CONVOKE_OLD_BINARY=…` makes the same
//! attempts against an older binary and counts what it loses.

mod attempt;
mod back;
mod field;
mod pipes;
mod programs;
mod races;
mod redirects;
mod targets;
mod told;
mod tree;
mod trust;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use tempfile::TempDir;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use self::attempt::{Attempt, Book, Cell, Scene, Side};
use self::field::{BINARY_VARIABLE, OLD_BINARY_VARIABLE};

/// The id of the user without rights on most systems.
const NOBODY: &str = "65534";
/// Scenes at one time.
const AT_ONCE: usize = 5;
/// How often a race is tried unless more is asked for: by each of the two users, under each of the two sets.
const TRIES: u32 = 12;

/// What each family of attempts is about, as `docs/security.md` has it.
const FAMILIES: &[(&str, &str)] = &[
    (
        "races",
        "a background job exchanges directories, files, links and pipes while the host keeps trees, checks \
            citations and copies",
    ),
    (
        "pipes",
        "pipes where the host or its git expects a file, in the tree and in `.git`; and what stays behind \
            after a kill",
    ),
    (
        "programs",
        "hooks, filters, drivers, watchers, helpers and programs on the path that the host's git would run",
    ),
    ("git-links", "links in a git directory that lead what the host writes out of it"),
    (
        "hidden",
        "pointers, links and settings that lead the host to hidden files: repositories, ignore rules, \
            memory, workflows",
    ),
    ("reports", "what stands in the place of a report when it is written"),
    ("exports", "what stands where events, teams, manual pages and workflows are written"),
    ("undo", "what stands in the way of taking a session back"),
    ("apply", "what stands in the way of taking over a worktree, and in the worktree"),
    ("prune", "links in what is removed with a session"),
    ("hard-links", "files of the workspace that have a second name outside"),
    ("run-later", "files that run when the person does something later, and that git does not show"),
    ("credentials", "credentials in a home that toolchains keep beside what commands need"),
    ("trust", "what a project says of itself where no person trusts it"),
    ("telling", "names and answers that are taken for something else"),
    ("exit-codes", "exit codes that are not those of the command"),
];

/// The two halves take turns.
static TURN: Mutex<()> = Mutex::const_new(());

fn scenes() -> Vec<Scene> {
    [
        races::scenes(),
        pipes::scenes(),
        programs::scenes(),
        redirects::scenes(),
        targets::scenes(),
        back::scenes(),
        tree::scenes(),
        told::scenes(),
        trust::scenes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn attempts(scenes: &[Scene]) -> Vec<Attempt> {
    scenes.iter().flat_map(|scene| scene.attempts.clone()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the size of a test is the environment's to choose")]
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Only attempts and families with this in their name are played.
const ONLY_VARIABLE: &str = "CONVOKE_HOST_SIDE_ONLY";
/// Tells the half for an ordinary user that the half for root is played too.
const HALF_VARIABLE: &str = "CONVOKE_HOST_SIDE_HALF";
/// Asks for the full size, and says how often a race is tried.
const SIZE_VARIABLE: &str = "CONVOKE_SOAK_HOST_SIDE";

/// The cells that a scene is played in: the twin once, each binary under both sets. In the small size root
/// and the ordinary user share them: what one plays under the full set the other plays under the fallback
/// set.
fn cells(scene: usize) -> Vec<Cell> {
    let tries = u32::try_from(number(SIZE_VARIABLE, u64::from(TRIES))).unwrap();
    let seed = number("CONVOKE_SEED", 14);
    let cell = |side, layers| Cell { side, layers, tries, seed };
    let full = std::env::var_os(SIZE_VARIABLE).is_some();
    let half = std::env::var_os(HALF_VARIABLE).is_some();
    let sets: &[&str] = match (full || (user() != "0" && !half), (scene + usize::from(half)) % 2) {
        (true, _) => &["best", "landlock"],
        (false, 0) => &["best"],
        (false, _) => &["landlock"],
    };
    let mut cells = vec![cell(Side::Twin, "none")];
    cells.extend(sets.iter().map(|layers| cell(Side::Now, layers)));
    if std::env::var_os(OLD_BINARY_VARIABLE).is_some() {
        cells.extend(sets.iter().map(|layers| cell(Side::Old, layers)));
    }
    cells
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_the_host_does_is_turned_against_it() {
    let _turn = TURN.lock().await;
    let since = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "the size of a test is the environment's to choose")]
    let wanted = std::env::var(ONLY_VARIABLE).unwrap_or_default();
    let mut scenes = scenes();
    scenes.retain(|scene| {
        scene.attempts.iter().any(|one| one.name.contains(&wanted) || one.family.contains(&wanted))
    });
    let attempts = attempts(&scenes);
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    let scenes: Vec<Arc<Scene>> = scenes.into_iter().map(Arc::new).collect();
    let cell = cells(0)[0];
    println!("seed {}, {} tries of each race", cell.seed, cell.tries);
    let all = scenes
        .iter()
        .enumerate()
        .flat_map(|(at, scene)| cells(at).into_iter().map(move |cell| (scene, cell)));
    for (scene, cell) in all {
        let scene = Arc::clone(scene);
        let room = Arc::clone(&room);
        playing.spawn(async move {
            let _place = room.acquire_many_owned(scene.weight).await.unwrap();
            (cell, scene.play(cell).await)
        });
    }
    let mut book = Book::default();
    for (cell, came) in playing.join_all().await {
        book.note(cell, came);
    }
    println!("as user {}:\n{}{:.1?}", user(), book.table(&attempts), since.elapsed());
    let wrong = book.wrong(&attempts);
    assert!(wrong.is_empty(), "{} not as it must be:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nothing_that_the_host_does_is_turned_against_an_ordinary_user() {
    if user() != "0" {
        println!("this is an ordinary user: the half for root was not run");
        return;
    }
    let _turn = TURN.blocking_lock();
    let places = place_for_everybody();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(readable_copy(&std::env::current_exe().unwrap(), places.path(), "tests"));
    command.args(["host_side::nothing_that_the_host_does_is_turned_against_it", "--exact", "--nocapture"]);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TMPDIR", places.path());
    let binary = readable_copy(Path::new(env!("CARGO_BIN_EXE_convoke")), places.path(), "convoke");
    command.env(BINARY_VARIABLE, binary).current_dir(places.path());
    command.env(HALF_VARIABLE, "1");
    for name in [SIZE_VARIABLE, "CONVOKE_SEED", ONLY_VARIABLE] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if let Some(old) = std::env::var_os(OLD_BINARY_VARIABLE) {
        command.env(OLD_BINARY_VARIABLE, readable_copy(Path::new(&old), places.path(), "old-convoke"));
    }
    let output = command.output().unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that every user can enter and write.
fn place_for_everybody() -> TempDir {
    let dir = tempfile::Builder::new().prefix("host-side").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    dir
}

/// The build directory need not be readable for others. Another process copies, so that no child of a test
/// beside this one inherits a descriptor that is open for writing, which would keep the copy from being run.
fn readable_copy(program: &Path, dir: &Path, name: &str) -> PathBuf {
    let copy = dir.join(name);
    assert!(Command::new("cp").arg(program).arg(&copy).status().unwrap().success());
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

fn user() -> String {
    String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn every_attempt_of_the_host_side_has_a_name_of_its_own() {
    let attempts = attempts(&scenes());
    let names: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.name).collect();
    assert_eq!(names.len(), attempts.len());
}

#[test]
fn the_attempts_of_the_host_side_are_in_the_documentation_by_family_and_number() {
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = std::fs::read_to_string(at).unwrap();
    let attempts = attempts(&scenes());
    let number = |family: &str| attempts.iter().filter(|attempt| attempt.family == family).count();
    let rows: Vec<String> = FAMILIES
        .iter()
        .map(|(family, about)| format!("| `{family}` | {} | {about} |\n", number(family)))
        .collect();
    let total = format!("| all | {} | |\n", attempts.len());
    let table = format!("| family | attempts | what is tried |\n|---|---|---|\n{}{total}", rows.concat());
    assert!(page.contains(&table), "docs/security.md must hold this table:\n{table}");
    assert!(attempts.len() >= 80, "too few: {}", attempts.len());
    let known: BTreeSet<&str> = FAMILIES.iter().map(|(family, _)| *family).collect();
    let used: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.family).collect();
    assert_eq!(known, used);
}
