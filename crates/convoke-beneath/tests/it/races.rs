//! Names that are exchanged while they are used: a directory with a link to a secret one, a file with a link
//! or a pipe. Code that checks a name and then opens the name again loses these races; the twin without
//! handles shows that in the same run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use convoke_beneath::{Links, WriteTarget};
use rustix::fs::{CWD, RenameFlags};

use super::{mkfifo, setting};

/// How often each way in is tried; a test of the whole size sets `CONVOKE_SOAK_RACES`.
#[expect(clippy::disallowed_methods, reason = "the size of a test is the environment's to choose")]
fn tries() -> usize {
    std::env::var("CONVOKE_SOAK_RACES").ok().and_then(|text| text.parse().ok()).unwrap_or(200) * 20
}

/// Runs `work` while two names are exchanged again and again.
fn while_exchanging<T>(one: &Path, other: &Path, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// What a careful program without handles does: it looks whether a link is on the way, and then reads by
/// name.
fn looked_at_then_read(tree: &Path) -> Option<Vec<u8>> {
    let is_real = fs::symlink_metadata(tree.join("real")).ok()?.is_dir();
    if is_real { fs::read(tree.join("real/key")).ok() } else { None }
}

#[test]
fn an_exchanged_directory_gives_no_secret_away() {
    let at = setting();
    symlink(&at.out, at.tree.join("link")).unwrap();
    let mut open = 0;
    let mut lost = 0;
    let mut twin = 0;
    while_exchanging(&at.tree.join("real"), &at.tree.join("link"), || {
        // The twin must have lost at least once, or the race shows nothing.
        let mut tried = 0;
        while tried < tries() || (twin == 0 && tried < 1_000_000) {
            tried += 1;
            for links in [Links::Refused, Links::Inside] {
                match at.dir.read(Path::new("real/key"), links, 99).as_deref() {
                    Ok(b"open") => open += 1,
                    Ok(_) => lost += 1,
                    Err(_) => {}
                }
            }
            twin += usize::from(looked_at_then_read(&at.tree).is_some_and(|read| read == b"secret"));
        }
    });
    println!("{open} reads of the open file, {lost} of the secret; without the door {twin} of the secret");
    assert_eq!(lost, 0);
    assert!(open > 0 && twin > 0, "{open} {twin}");
}

#[test]
fn a_file_that_is_exchanged_with_a_link_or_a_pipe_is_written_in_its_place_alone() {
    let at = setting();
    let place = at.tree.join("r.md");
    let other = at.tree.join("other");
    fs::write(&place, "old").unwrap();
    let report = WriteTarget::find(&place, Some(&at.tree)).unwrap();
    for plant in [(|path, out| symlink(out, path).unwrap()) as fn(&Path, &Path), |path, _| mkfifo(path)] {
        plant(&other, &at.out.join("key"));
        let mut written = 0;
        let mut done = 0;
        let until = Instant::now() + Duration::from_secs(60);
        while_exchanging(&place, &other, || {
            // It goes on past its tries until the place was a file once, which depends on the scheduler.
            while done < tries() / 100 || (written == 0 && Instant::now() < until) {
                done += 1;
                written += usize::from(report.replace(b"new", 0o666).is_ok());
                // When both names are files, the link or the pipe is planted
                // again at one of them, for the next exchange.
                if fs::symlink_metadata(&other).is_ok_and(|meta| meta.is_file())
                    && fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_file())
                {
                    let fresh = at.tree.join("fresh");
                    plant(&fresh, &at.out.join("key"));
                    fs::rename(&fresh, &other).unwrap();
                }
            }
        });
        println!("{written} writes");
        assert!(written > 0);
        assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
        fs::remove_file(&other).unwrap();
        fs::remove_file(&place).unwrap();
        fs::write(&place, "old").unwrap();
    }
}

#[test]
fn a_tree_whose_directories_become_links_is_removed_without_what_they_lead_to() {
    let at = setting();
    for _ in 0..tries() / 100 {
        let gone = at.tree.join("gone");
        let beside = at.tree.join("beside");
        fs::create_dir_all(gone.join("a/b")).unwrap();
        symlink(&at.out, &beside).unwrap();
        while_exchanging(&gone.join("a"), &beside, || {
            // The directory may have changed meanwhile; what counts is what is left.
            let _ = at.dir.entries(Path::new("gone/a"));
            let _ = at.dir.remove_file(Path::new("gone/a/key"));
            let _ = at.dir.remove_tree(Path::new("gone/a/b"));
        });
        at.dir.remove_tree(Path::new("gone")).unwrap();
        at.dir.remove_tree(Path::new("beside")).unwrap();
        assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
    }
}
