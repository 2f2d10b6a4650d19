//! Things that change while they are edited: whatever the moment, nothing outside is read or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use convoke_files::{Edit, Grep, Refused};
use rustix::fs::{CWD, RenameFlags};

use crate::tree::{SECRET, Tree};

/// A thread that swaps pairs of names as fast as it can, until dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let swaps = Arc::new(AtomicU64::new(0));
        let stopped = Arc::clone(&stop);
        let counter = Arc::clone(&swaps);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[derive(Default, Debug)]
struct Tally {
    done: u64,
    refused: u64,
}

impl Tally {
    fn count(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(text) => {
                assert!(!text.contains(SECRET), "read from outside: {text}");
                self.done += 1;
            }
            Err(text) => {
                assert!(!text.contains(SECRET), "read from outside: {text}");
                self.refused += 1;
            }
        }
    }
}

fn race_against_links_to_the_outside(tree: &Tree, rounds: u64) {
    tree.put("d/secret", "inside, one\n");
    tree.put("file", "inside, two\n");
    symlink("../outside", tree.path("way_out")).unwrap();
    symlink(tree.outside("secret"), tree.path("link_out")).unwrap();
    let pairs = vec![(tree.path("d"), tree.path("way_out")), (tree.path("file"), tree.path("link_out"))];
    let swapper = Swapper::start(pairs);
    let mut writes = Tally::default();
    let mut reads = Tally::default();
    for round in 0..rounds {
        writes.count(tree.create("d/secret", &format!("inside, {round}\n")));
        writes.count(tree.create(&format!("d/new/{round}"), "inside"));
        writes.count(tree.replace("file", "inside", "Inside"));
        writes.count(tree.replace("file", "Inside", "inside"));
        writes.count(tree.insert("way_out/secret", 0, "inside\n"));
        for path in
            ["d/secret", "file", "way_out/secret", "link_out", "d/../file", "way_out/../file", "d", "way_out"]
        {
            reads.count(tree.view(path));
        }
        reads.count(tree.grep("secret outside"));
        reads.count(tree.grep_with(&Grep {
            pattern: "secret outside".to_owned(),
            path: Some("d".to_owned()),
            ..Grep::default()
        }));
        reads.count(tree.glob("**"));
    }
    let swaps = swapper.finish();
    tree.assert_outside_is_as_it_was();
    println!("{swaps} swaps; writes {writes:?}; reads {reads:?}; escaped: 0");
    assert!(
        writes.done > 0 && writes.refused > 0 && reads.done > 0 && reads.refused > 0,
        "both sides were met"
    );
}

#[test]
fn a_directory_or_file_swapped_with_a_link_to_the_outside_never_leads_there() {
    race_against_links_to_the_outside(&Tree::new(), 150);
}

#[test]
fn the_same_race_where_names_are_walked_never_leads_outside() {
    race_against_links_to_the_outside(&Tree::walked(), 150);
}

#[test]
fn a_directory_swapped_with_a_link_to_a_protected_one_is_never_a_way_into_it() {
    let tree = Tree::new();
    tree.put(".git/config", "protected");
    tree.put("d/config", "free\n");
    symlink(".git", tree.path("way_in")).unwrap();
    let swapper = Swapper::start(vec![(tree.path("d"), tree.path("way_in"))]);
    let mut writes = Tally::default();
    for round in 0..300 {
        writes.count(tree.create("d/config", &format!("free {round}\n")));
        writes.count(tree.create(&format!("way_in/{round}"), "evil"));
    }
    let swaps = swapper.finish();
    assert_eq!(tree.get(".git/config"), b"protected");
    assert_eq!(fs::read_dir(tree.path(".git")).unwrap().count(), 1);
    println!("{swaps} swaps; writes {writes:?}; written below .git: 0");
    assert!(writes.done > 0 && writes.refused > 0, "both sides were met");
}

#[test]
fn directories_that_change_places_within_the_tree_get_whole_edits_or_none() {
    let tree = Tree::new();
    tree.put("a/f", "in the first: 0\n");
    tree.put("b/f", "in the second: 0\n");
    let swapper = Swapper::start(vec![(tree.path("a"), tree.path("b"))]);
    let mut writes = Tally::default();
    for round in 0..300_u32 {
        for which in ["first", "second"] {
            let old = format!("in the {which}: ");
            writes.count(tree.replace("a/f", &old, &format!("{round}\n{old}")));
        }
    }
    swapper.finish();
    for name in ["a", "b"] {
        let text = String::from_utf8(tree.get(&format!("{name}/f"))).unwrap();
        assert!(text.ends_with(": 0\n") && text.matches("in the ").count() == 1, "{text}");
        tree.assert_nothing_is_left_over(name);
    }
    println!("edits of moving directories: {writes:?}");
    assert!(writes.done > 0);
}

#[test]
fn a_file_changed_between_the_reading_and_the_writing_is_left_as_it_is() {
    let tree = Tree::new();
    tree.put("f", "count 0\n");
    let stop = Arc::new(AtomicBool::new(false));
    let last = Arc::new(Mutex::new(0_u64));
    let stopped = Arc::clone(&stop);
    let counter = Arc::clone(&last);
    let path = tree.path("f");
    let beside = tree.path("beside");
    let other = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let mut last = counter.lock().unwrap();
            *last += 1;
            fs::write(&beside, format!("count {last}\n")).unwrap();
            fs::rename(&beside, &path).unwrap();
            drop(last);
            thread::yield_now();
        }
    });
    let mut done = 0;
    let mut refused = 0;
    let started = Instant::now();
    // An edit that finds its own earlier work still there gets `NoMatch` and is not counted.
    while (done + refused < 100 || refused == 0) && started.elapsed() < Duration::from_secs(60) {
        let call = Edit::Replace { path: "f".to_owned(), old: "count".to_owned(), new: "Count".to_owned() };
        match tree.edit(&call) {
            Ok(_) => done += 1,
            Err(Refused::Changed { .. }) => refused += 1,
            Err(Refused::NoMatch { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        // While this lock is held the other thread does not write, so the file holds the last thing it wrote.
        let last = last.lock().unwrap();
        let text = String::from_utf8(tree.get("f")).unwrap();
        assert_eq!(
            text.to_lowercase(),
            format!("count {last}\n"),
            "an edit of something older took its place"
        );
    }
    stop.store(true, Ordering::Relaxed);
    other.join().unwrap();
    println!("edits against a busy writer: {done} done, {refused} refused; lost writes: 0");
    assert!(refused > 0);
    tree.assert_nothing_is_left_over("");
}
