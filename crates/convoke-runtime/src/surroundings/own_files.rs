//! A person's private files outside of their home: those that belong to them and that no other user may read.
//! They are looked for in a bounded time, in the places where services and people keep things; names and
//! modes are looked at, and nothing is opened. It is not done before a command or git is to be confined;
//! those of a run ask several times, and are answered by one look.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How long looking may take altogether. It goes on beside us if a filesystem does not answer, and what it
/// finds then is not used.
const TIME: Duration = Duration::from_millis(150);

/// How deep, over how many names, and how many files at most.
const DEPTH: usize = 5;
const NAMES: usize = 50_000;
const FILES: usize = 128;

/// More private files in one directory are no secrets among other things: they are the work of a user who
/// closes every file to others.
const IN_ONE: usize = 16;

/// What lies in the root directory and holds programs, other filesystems of the kernel, what is hidden anyway
/// or replaced.
const PASSED_OVER: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "lost+found",
    "nix",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "sys",
    "tmp",
    "usr",
];

/// How long an answer holds. A session asks at the start of each of its runs, days apart: a file that has
/// come since the last run has to be found.
const HOLDS: Duration = Duration::from_secs(10);

/// What was found, and when, for a user and what commands are shown on purpose.
type Answers = BTreeMap<(u32, Vec<PathBuf>), (Instant, Vec<PathBuf>)>;

static ANSWERS: Mutex<Answers> = Mutex::new(Answers::new());

/// The private files of this user, but for those in what commands are shown on purpose.
pub(super) fn own_files(user: Option<u32>, shown: &[PathBuf]) -> Vec<PathBuf> {
    let Some(user) = user else { return Vec::new() };
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let look = || looked_for(user, shown.to_vec());
    answered(&mut answers, (user, shown.to_vec()), Instant::now(), look)
}

fn answered(
    answers: &mut Answers,
    question: (u32, Vec<PathBuf>),
    now: Instant,
    look: impl FnOnce() -> Vec<PathBuf>,
) -> Vec<PathBuf> {
    answers.retain(|_, (at, _)| now.duration_since(*at) < HOLDS);
    answers.entry(question).or_insert_with(|| (now, look())).1.clone()
}

fn looked_for(user: u32, shown: Vec<PathBuf>) -> Vec<PathBuf> {
    let tops = std::fs::read_dir("/").into_iter().flatten().flatten().filter(|entry| {
        let passed_over = PASSED_OVER.iter().any(|name| entry.file_name() == *name);
        !passed_over && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let tops = tops.map(|entry| entry.path()).collect();
    let (sender, found) = mpsc::channel();
    let until = Instant::now() + TIME;
    // Detached: a filesystem that does not answer would hold it up for ever.
    let started = std::thread::Builder::new().spawn(move || look(tops, user, &shown, until, &sender));
    if started.is_err() {
        return Vec::new();
    }
    let next = || found.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).take(FILES).collect()
}

/// Sends every private file that is found. What is nearest to the top comes first.
fn look(tops: Vec<PathBuf>, user: u32, shown: &[PathBuf], until: Instant, found: &mpsc::Sender<PathBuf>) {
    let mut open: VecDeque<(PathBuf, usize)> = tops.into_iter().map(|top| (top, 1)).collect();
    let mut names = 0;
    while let Some((directory, depth)) = open.pop_front() {
        if shown.iter().any(|place| directory.starts_with(place)) || directory == Path::new("/var/tmp") {
            continue;
        }
        let mut private = Vec::new();
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            names += 1;
            if names > NAMES || Instant::now() > until {
                return;
            }
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && depth < DEPTH {
                open.push_back((entry.path(), depth + 1));
            } else if about.is_file() && is_private(about.uid(), about.mode(), user) && about.len() > 0 {
                private.push(entry.path());
            }
        }
        if private.len() <= IN_ONE && private.into_iter().any(|path| found.send(path).is_err()) {
            return;
        }
    }
}

/// Whether a file is open to this user alone, and is no program.
fn is_private(owner: u32, mode: u32, user: u32) -> bool {
    owner == user && mode & 0o177 == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_answer_holds_for_the_start_of_a_run_and_for_the_same_question() {
        let mut answers = Answers::new();
        let begun = Instant::now();
        let mut ask = |place: &str, after: Duration, found: &str| {
            let question = (7, vec![PathBuf::from(place)]);
            answered(&mut answers, question, begun + after, || vec![PathBuf::from(found)])
        };
        assert_eq!(ask("/a", Duration::ZERO, "/first"), [Path::new("/first")]);
        assert_eq!(ask("/a", HOLDS / 2, "/second"), [Path::new("/first")]);
        assert_eq!(ask("/b", HOLDS / 2, "/other"), [Path::new("/other")]);
        assert_eq!(ask("/a", HOLDS, "/third"), [Path::new("/third")], "a file may have come since");
    }

    #[test]
    fn private_files_of_the_user_are_found_and_what_is_shown_or_usual_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        let user = at.metadata().unwrap().uid();
        let put = |name: &str, mode: u32| {
            std::fs::create_dir_all(at.join(name).parent().unwrap()).unwrap();
            std::fs::write(at.join(name), "x").unwrap();
            std::fs::set_permissions(at.join(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        put("srv/app/key", 0o600);
        put("srv/app/read-only", 0o400);
        put("srv/app/public", 0o644);
        put("srv/app/of-group", 0o640);
        put("srv/app/program", 0o700);
        put("shown/key", 0o600);
        put("a/b/c/d/e/f/too-deep", 0o600);
        for number in 0..=IN_ONE {
            put(&format!("strict/{number}"), 0o600);
        }
        std::os::unix::fs::symlink(at.join("srv/app/key"), at.join("srv/link")).unwrap();
        let found = |user: u32| {
            let (sender, found) = mpsc::channel();
            let tops = ["srv", "shown", "a", "strict", "none"].map(|name| at.join(name)).into();
            look(tops, user, &[at.join("shown")], Instant::now() + Duration::from_secs(60), &sender);
            drop(sender);
            let mut all: Vec<PathBuf> = found.iter().collect();
            all.sort();
            all
        };
        assert_eq!(found(user), ["srv/app/key", "srv/app/read-only"].map(|name| at.join(name)));
        assert_eq!(found(user + 1), Vec::<PathBuf>::new(), "others' are not readable anyway");
    }
}
