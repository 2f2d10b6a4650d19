//! One process is stopped at random moments beside three others on one SQLite file: the others go on, and
//! when it continues nothing is lost or doubled. The processes are this test binary, started again in a role.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use convoke_journal::{Batch, Change, Changed, Error, Filter, Journal, Location, Options, Update};

use crate::world::*;

const TEST: &str = "stopped::one_process_that_is_stopped_at_random_moments_stops_no_other";
const NAMES: [&str; 4] = ["a0", "a1", "a2", "a3"];
/// The one that is stopped.
const VICTIM: &str = "a0";

async fn open(dir: &Path, lease_ttl: Duration) -> Journal {
    let options = Options { lease_ttl, ..someone() };
    Journal::open(Location::Sqlite(dir.join("journal.db")), options).await.unwrap()
}

struct Played {
    name: &'static str,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Played {
    fn start(dir: &Path, name: &'static str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", TEST])
            .env("CONVOKE_JOURNAL_ROLE", dir)
            .env("CONVOKE_JOURNAL_NAME", name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut played = Self { name, child, lines };
        played.read_until("ready");
        played
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn read_until(&mut self, begins: &str) -> String {
        loop {
            let line = self.lines.next().expect("the process ended early").unwrap();
            if let Some((_, rest)) = line.split_once(begins) {
                return rest.to_owned();
            }
        }
    }
}

/// How many events each of them has in the journal. Reading needs no turn.
async fn counts(journal: &Journal) -> Vec<u64> {
    let listed = journal.list(&Filter::default()).await.unwrap();
    let of = |name: &&str| {
        listed.iter().find(|listing| listing.stream == stream(name)).map_or(0, |found| found.seq)
    };
    NAMES.iter().map(of).collect()
}

/// Which process holds and which waits for which file of the journal, as the kernel tells
/// it: for the message of a test that fails.
fn who_holds_what(dir: &Path) -> String {
    let held = std::fs::read_to_string("/proc/locks").unwrap();
    let mut told = String::new();
    for inside in [dir.to_owned(), dir.join("journal.db-over")] {
        for entry in std::fs::read_dir(inside).into_iter().flatten().flatten() {
            let inode = format!(":{} ", entry.metadata().map_or(0, |found| found.ino()));
            told += &format!("{}{inode}\n", entry.path().display());
            held.lines()
                .filter(|line| line.contains(&inode))
                .for_each(|line| told += &format!("    {line}\n"));
        }
    }
    told + "all locks, of removed files too:\n" + &held
}

/// Waits until each of some processes has appended so many more.
async fn go_on(dir: &Path, journal: &Journal, who: std::ops::Range<usize>, more: u64) -> Duration {
    let began = Instant::now();
    let before = counts(journal).await;
    let done = async {
        loop {
            let now = counts(journal).await;
            if who.clone().all(|n| now[n] >= before[n] + more) {
                return began.elapsed();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    match tokio::time::timeout(DEADLINE, done).await {
        Ok(took) => took,
        Err(_) => {
            let now = counts(journal).await;
            let held = who_holds_what(dir);
            panic!(
                "{who:?} of {NAMES:?} stand still: {more} more than {before:?} are waited for, it is \
                    {now:?}\n{held}"
            )
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_that_is_stopped_at_random_moments_stops_no_other() {
    if let Some(dir) = std::env::var_os("CONVOKE_JOURNAL_ROLE") {
        let name = std::env::var_os("CONVOKE_JOURNAL_NAME").unwrap().into_string().unwrap();
        return count_until_told(&PathBuf::from(dir), &name).await;
    }
    let setting =
        |name: &str| std::env::var_os(name).map(|value| value.to_str().unwrap().parse::<u64>().unwrap());
    let stops = setting("CONVOKE_SOAK_STOPS").unwrap_or(12);
    let seed = setting("CONVOKE_SEED").unwrap_or_else(|| u64::from_ne_bytes(random()));
    println!("CONVOKE_SEED={seed}");
    let mut state = seed | 1;
    let mut random_below = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path(), Duration::from_secs(15)).await;
    let mut all: Vec<Played> = NAMES.iter().map(|name| Played::start(dir.path(), name)).collect();
    for played in &mut all {
        played.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }
    go_on(dir.path(), &journal, 0..4, 5).await;
    let mut waits = Vec::new();
    let mut left = 0;
    let generation = || std::fs::read_link(dir.path().join("journal.db")).ok();
    for _ in 0..stops {
        tokio::time::sleep(Duration::from_micros(random_below(30_000))).await;
        let before = generation();
        all[0].signal("-STOP");
        waits.push(go_on(dir.path(), &journal, 1..4, 10).await);
        left += u32::from(generation() != before);
        all[0].signal("-CONT");
        // Its lease is long, so no process fences it and it goes on.
        go_on(dir.path(), &journal, 0..1, 3).await;
    }
    // Stopped for longer than its lease, with another process in its place.
    all[0].signal("-STOP");
    let heir = take(&journal, VICTIM).await;
    let seq = counts(&journal).await[0];
    journal.append(&heir, seq, &one(99)).await.unwrap();
    all[0].signal("-CONT");
    let fenced = all[0].read_until("fenced ");
    assert!(fenced.contains("another process has taken over"), "{fenced}");
    for played in &mut all {
        drop(played.child.stdin.take());
    }
    let mut seen = Vec::new();
    let mut longest = 0;
    for played in &mut all {
        let told = played.read_until("acknowledged ");
        let [acknowledged, waited, states] = told.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{told}")
        };
        let acknowledged = acknowledged.parse::<usize>().unwrap();
        let waited = waited.parse::<u64>().unwrap();
        seen.extend(states.split(' ').map(|count| count.parse::<usize>().unwrap()));
        assert!(played.child.wait().unwrap().success(), "{} ended badly", played.name);
        let mut expected: Vec<_> = (0..acknowledged).map(event).collect();
        if played.name == VICTIM {
            expected.push(event(99));
        } else {
            longest = longest.max(waited);
        }
        assert!(events(&journal, played.name).await == expected, "{} has gaps or doubles", played.name);
    }
    seen.sort_unstable();
    assert!(seen == (1..=seen.len()).collect::<Vec<_>>(), "a count is lost or doubled");
    assert_eq!(journal.shared(&stream("ledger")).await.unwrap(), Some(seen.len().to_string()));
    journal.close().await.unwrap();
    let database = rusqlite::Connection::open(dir.path().join("journal.db")).unwrap();
    let whole: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    waits.sort_unstable();
    let held = waits.iter().filter(|wait| wait.as_millis() >= 900).count();
    println!(
        "{stops} stops: {held} held the others up, {left} with SQLite's write lock; the others' longest \
         wait for an append {longest} ms, until all three had ten more {:?}; {} appends, none lost, none \
         doubled",
        waits.last().unwrap(),
        seen.len()
    );
}

/// Takes a stream over once its owner's lease has run out.
async fn take(journal: &Journal, name: &str) -> convoke_journal::Lease {
    let taken = async {
        loop {
            match journal.own(&stream(name)).await {
                Err(Error::Held { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
                other => return other.unwrap(),
            }
        }
    };
    tokio::time::timeout(DEADLINE, taken).await.unwrap()
}

fn counted() -> Change {
    Change::new(|state| {
        let next = state.map_or(Ok(0), str::parse::<usize>).map_err(|error| error.to_string())? + 1;
        Ok(Changed { state: next.to_string(), events: Vec::new() })
    })
}

/// What each of the four does: counts together with the others, one append after the other, until it is told
/// to stop.
async fn count_until_told(dir: &Path, name: &str) {
    // Short, so that its stream can be taken; no process takes it before the end, so it is not renewed.
    let journal = open(dir, Duration::from_secs(1)).await;
    println!("\nready");
    let mut stdin = BufReader::new(std::io::stdin());
    stdin.read_line(&mut String::new()).unwrap();
    // The end of stdin says that it is enough.
    let enough = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&enough);
    std::thread::spawn(move || {
        while stdin.read_line(&mut String::new()).unwrap() > 0 {}
        told.store(true, Ordering::Relaxed);
    });
    let lease = own(&journal, name).await;
    let mut acknowledged = 0;
    let mut longest = Duration::ZERO;
    let mut states = Vec::new();
    while !enough.load(Ordering::Relaxed) {
        let updates = vec![Update { stream: stream("ledger"), change: counted() }];
        let began = Instant::now();
        let batch = Batch { updates, ..Batch::events(1, [event(acknowledged)]) };
        match journal.append_shared(&lease, acknowledged as u64, &batch).await {
            Ok(appended) => {
                assert_eq!(appended.seq, acknowledged as u64 + 1);
                states.extend(appended.states);
            }
            Err(error @ Error::LostLease { .. }) => {
                println!("\nfenced {error}");
                break;
            }
            Err(error) => panic!("{error}"),
        }
        longest = longest.max(began.elapsed());
        acknowledged += 1;
    }
    let _ = journal.close().await;
    println!("\nacknowledged {acknowledged} {} {}", longest.as_millis(), states.join(" "));
}

/// A program that is none of ours keeps SQLite's lock: the wait is told with its holder, and is over with it.
#[tokio::test]
async fn a_wait_for_another_program_is_told_with_its_name_and_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let journal = Journal::open(Location::Sqlite(path.clone()), someone()).await.unwrap();
    let lease = own(&journal, "a").await;
    let meddler = rusqlite::Connection::open(&path).unwrap();
    meddler.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waits = journal.waits();
    let batch = one(1);
    let append = journal.append(&lease, 0, &batch);
    let told = async {
        let waiting = waits.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        // Looking is not held up.
        assert_eq!(journal.list(&Filter::default()).await.unwrap().len(), 1);
        meddler.execute_batch("COMMIT").unwrap();
        waiting
    };
    let (appended, waiting) =
        tokio::time::timeout(DEADLINE, async { tokio::join!(append, told) }).await.unwrap();
    assert_eq!(appended, Ok(1));
    assert_eq!(waiting.pid, Some(std::process::id()));
    let said = waiting.to_string();
    assert!(said.contains(&format!("held by process {} (", std::process::id())), "{said}");
    waits.wait_for(Option::is_none).await.unwrap();
}

#[tokio::test]
async fn a_journal_that_is_removed_or_replaced_under_a_writer_is_said_to_be_gone() {
    for replaced in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.db");
        let journal = Journal::open(Location::Sqlite(path.clone()), someone()).await.unwrap();
        let lease = own(&journal, "a").await;
        journal.append(&lease, 0, &one(1)).await.unwrap();
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        if replaced {
            open(dir.path(), Duration::from_secs(15)).await.close().await.unwrap();
        }
        let error = journal.append(&lease, 1, &one(2)).await.unwrap_err();
        assert!(matches!(error, Error::Vanished { .. }), "{error:?}");
        assert!(error.to_string().contains("removed or replaced"), "{error}");
        assert!(matches!(journal.load(&stream("a"), 0).await, Err(Error::Vanished { .. })));
    }
}
