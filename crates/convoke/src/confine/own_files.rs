//! A person's private files outside of their home: those that belong to them and that nobody else may read.
//! They are looked for once in a process, in a bounded time, in the places where services and people keep
//! things; names and modes are looked at, and nothing is opened.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long looking may take altogether. It goes on beside us if a filesystem does not answer, and what it
/// finds then is not used.
const TIME: Duration = Duration::from_millis(150);

/// How deep, over how many names, and how many files at most.
const DEPTH: usize = 5;
const NAMES: usize = 50_000;
const FILES: usize = 128;

/// More private files in one directory are no secrets among other things but what somebody works with who
/// lets nobody read anything.
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

/// The private files of this user, but for those in what commands are shown on purpose.
pub(super) fn own_files(user: Option<u32>, shown: &[PathBuf]) -> Vec<PathBuf> {
    let Some(user) = user else { return Vec::new() };
    let tops = std::fs::read_dir("/").into_iter().flatten().flatten().filter(|entry| {
        let passed_over = PASSED_OVER.iter().any(|name| entry.file_name() == *name);
        !passed_over && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let tops = tops.map(|entry| entry.path()).collect();
    let (sender, found) = mpsc::channel();
    let shown = shown.to_vec();
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

/// Whether a file is this user's and nobody else's, and is no program.
fn is_private(owner: u32, mode: u32, user: u32) -> bool {
    owner == user && mode & 0o177 == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
