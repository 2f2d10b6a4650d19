//! Several processes on one SQLite file: turns are fair, and a kill loses nothing that was acknowledged. The
//! processes are this test binary, started again in a role.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use convoke_journal::{Batch, Change, Changed, Filter, Journal, Location, Options, Update};

use crate::world::*;

/// How many writers each of the processes has.
const WRITERS: usize = 8;

async fn open(dir: &Path) -> Journal {
    Journal::open(Location::Sqlite(dir.join("journal.db")), someone()).await.unwrap()
}

/// Starts this test binary again for one test, which then plays its other role.
fn start(test: &str, dir: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", &format!("processes::{test}")])
        .env("CONVOKE_JOURNAL_ROLE", dir)
        .env("CONVOKE_JOURNAL_NAME", name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The directory and the name given to a role, if this process plays one.
fn role() -> Option<(PathBuf, String)> {
    let dir = PathBuf::from(std::env::var_os("CONVOKE_JOURNAL_ROLE")?);
    Some((dir, std::env::var_os("CONVOKE_JOURNAL_NAME")?.into_string().unwrap()))
}

/// Reads a child's lines up to one that begins so, and returns what follows. The test harness prints lines of
/// its own.
fn read_until(lines: &mut impl Iterator<Item = std::io::Result<String>>, begins: &str) -> String {
    loop {
        let line = lines.next().expect("the child ended early").unwrap();
        if let Some((_, rest)) = line.split_once(begins) {
            return rest.to_owned();
        }
    }
}

fn whole(dir: &Path) -> String {
    let database = rusqlite::Connection::open(dir.join("journal.db")).unwrap();
    database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_take_turns_and_all_that_was_acknowledged_is_there() {
    if let Some((dir, name)) = role() {
        return append_until_told(&dir, &name).await;
    }
    const TOTAL: u64 = 8_000;
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).await;
    let mut children = Vec::new();
    for name in ["a0", "a1", "a2", "a3"] {
        let mut child =
            start("four_processes_take_turns_and_all_that_was_acknowledged_is_there", dir.path(), name);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        read_until(&mut lines, "ready");
        children.push((child, lines));
    }
    for (child, _) in &mut children {
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }
    let enough = async {
        loop {
            let listed = journal.list(&Filter::default()).await.unwrap();
            if listed.iter().map(|listing| listing.seq).sum::<u64>() >= TOTAL {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    soon(enough).await;
    for (child, _) in &mut children {
        drop(child.stdin.take());
    }
    let mut counts = Vec::new();
    for (mut child, mut lines) in children {
        let mut count = 0;
        for stream in read_until(&mut lines, "acknowledged ").split(' ') {
            let (name, acknowledged) = stream.split_once('=').unwrap();
            let acknowledged = acknowledged.parse().unwrap();
            assert_eq!(events(&journal, name).await, (0..acknowledged).map(event).collect::<Vec<_>>());
            count += acknowledged;
        }
        assert!(child.wait().unwrap().success());
        counts.push(count);
    }
    let slowest = *counts.iter().min().unwrap();
    let fastest = *counts.iter().max().unwrap();
    // With turns the slowest has about nine tenths of the fastest, also on a loaded machine; with SQLite's
    // own waiting it has a third or less.
    assert!(slowest * 2 >= fastest, "unfair turns: {counts:?}");
    assert_eq!(whole(dir.path()), "ok");
}

async fn append_until_told(dir: &Path, name: &str) {
    let journal = open(dir).await;
    println!("\nready");
    let mut stdin = BufReader::new(std::io::stdin());
    stdin.read_line(&mut String::new()).unwrap();
    // The end of stdin says that it is enough.
    let enough = Arc::new(AtomicBool::new(false));
    let teller = Arc::clone(&enough);
    std::thread::spawn(move || {
        stdin.read_line(&mut String::new()).unwrap();
        teller.store(true, Ordering::Relaxed);
    });
    // Several writers, so that the next batch is always ready when the last one is committed.
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let journal = journal.clone();
        let name = format!("{name}_{writer}");
        let enough = Arc::clone(&enough);
        writers.spawn(async move {
            let lease = own(&journal, &name).await;
            let mut seq = 0;
            while !enough.load(Ordering::Relaxed) {
                seq = journal.append(&lease, seq, &one(seq as usize)).await.unwrap();
            }
            format!("{name}={seq}")
        });
    }
    let counts = writers.join_all().await;
    journal.close().await.unwrap();
    println!("\nacknowledged {}", counts.join(" "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_torn() {
    if let Some((dir, name)) = role() {
        return append_until_killed(&dir, &name).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).await;
    for (round, acknowledged_before) in [1, 7, 20, 33, 50].into_iter().enumerate() {
        let name = format!("a{round}");
        let mut child =
            start("a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_torn", dir.path(), &name);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        for _ in 0..acknowledged_before {
            acknowledged = read_until(&mut lines, "acknowledged ").parse().unwrap();
        }
        child.kill().unwrap();
        for line in lines {
            if let Some((_, seq)) = line.unwrap().split_once("acknowledged ") {
                acknowledged = seq.parse().unwrap_or(acknowledged);
            }
        }
        child.wait().unwrap();

        let found = events(&journal, &name).await;
        assert!(found.len() >= acknowledged, "{} of {acknowledged} are there", found.len());
        assert_eq!(found.len() % 3, 0, "a batch is torn");
        assert_eq!(found, (0..found.len()).map(event).collect::<Vec<_>>());
        assert_eq!(waiting(&journal, &format!("mail{round}")).await.len(), found.len() / 3);
        // Its lease is broken at once, and the stream goes on from where it is.
        let lease = own(&journal, &name).await;
        let seq = found.len() as u64;
        assert_eq!(journal.append(&lease, seq, &one(found.len())).await, Ok(seq + 1));
    }
    assert_eq!(whole(dir.path()), "ok");
}

async fn append_until_killed(dir: &Path, name: &str) {
    let journal = open(dir).await;
    let lease = own(&journal, name).await;
    let mut seq = 0;
    loop {
        let mail = vec![input(&name.replace('a', "mail"), &seq.to_string(), "hello")];
        let three = (0..3).map(|n| event(seq as usize + n));
        seq = journal.append(&lease, seq, &Batch { inputs: mail, ..Batch::events(1, three) }).await.unwrap();
        println!("\nacknowledged {seq}");
    }
}

/// SQLite's locks belong to the process, and closing any descriptor of the file drops them all. A process
/// that then closes it elsewhere (an older SQLite at least) takes itself for the last one and removes the log
/// that is being written. In a process of its own, because the kernel lists locks by process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_a_journal_again_gives_up_no_lock_on_its_file() {
    if let Some((dir, name)) = role() {
        return open_again(&dir, &name).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let child = start("opening_a_journal_again_gives_up_no_lock_on_its_file", dir.path(), "a");
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert!(
        String::from_utf8_lossy(&done.stdout).contains("kept its lock"),
        "the child did not play its role"
    );
}

async fn open_again(dir: &Path, name: &str) {
    // The lock byte by which a SQLite connection says that it is there: after PENDING and RESERVED.
    const SHARED: &str = "1073741826";
    let locks = || {
        let all = std::fs::read_to_string("/proc/locks").unwrap();
        let me = std::process::id().to_string();
        let mine = |line: &&str| line.split_whitespace().any(|word| word == me) && line.contains(SHARED);
        all.lines().filter(mine).filter(|line| line.contains("POSIX")).count()
    };
    let first = open(dir).await;
    let lease = own(&first, name).await;
    first.append(&lease, 0, &one(1)).await.unwrap();
    assert_eq!(locks(), 1, "an open journal has a lock");
    let second = open(dir).await;
    assert_eq!(locks(), 1, "opening it again has dropped the lock");
    second.close().await.unwrap();
    assert_eq!(locks(), 1, "closing the second one has dropped the lock of the first");
    first.close().await.unwrap();
    assert_eq!(locks(), 0, "a closed journal has no lock");
    println!("\nkept its lock");
}

fn next() -> Change {
    Change::new(|state| {
        let next = state.map_or(Ok(0), str::parse::<usize>).map_err(|error| error.to_string())? + 1;
        Ok(Changed { state: next.to_string(), events: vec![event(next)] })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_that_count_together_lose_no_count() {
    const EACH: usize = 320;
    let test = "four_processes_that_count_together_lose_no_count";
    if let Some((dir, name)) = role() {
        return count_together(&dir, &name, EACH).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).await;
    let children: Vec<_> =
        ["a0", "a1", "a2", "a3"].iter().map(|name| start(test, dir.path(), name)).collect();
    let mut seen = Vec::new();
    for child in children {
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success(), "{said}");
        let (_, counts) = said.split_once("counted ").expect("the child did not play its role");
        seen.extend(counts.lines().next().unwrap().split(' ').map(|count| count.parse::<usize>().unwrap()));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=4 * EACH).collect::<Vec<_>>());
    assert_eq!(journal.shared(&stream("ledger")).await.unwrap(), Some((4 * EACH).to_string()));
    assert_eq!(events(&journal, "ledger").await, (1..=4 * EACH).map(event).collect::<Vec<_>>());
    assert_eq!(whole(dir.path()), "ok");
}

async fn count_together(dir: &Path, name: &str, each: usize) {
    let journal = open(dir).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let journal = journal.clone();
        let name = format!("{name}_{writer}");
        writers.spawn(async move {
            let lease = own(&journal, &name).await;
            let mut seq = 0;
            let mut seen = Vec::new();
            for _ in 0..each / 8 {
                seen.push(journal.update(&stream("ledger"), 1, &next()).await.unwrap());
                let updates = vec![Update { stream: stream("ledger"), change: next() }];
                let appended =
                    journal.append_shared(&lease, seq, &Batch { updates, ..one(1) }).await.unwrap();
                seq = appended.seq;
                seen.extend(appended.states);
            }
            seen
        });
    }
    let seen = writers.join_all().await.concat();
    assert_eq!(seen.len(), each);
    journal.close().await.unwrap();
    println!("\ncounted {}", seen.join(" "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flight_of_a_killed_process_goes_on_to_the_next() {
    let test = "the_flight_of_a_killed_process_goes_on_to_the_next";
    if let Some((dir, _)) = role() {
        return fly_until_killed(&dir).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path()).await;
    let mut child = start(test, dir.path(), "");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    read_until(&mut lines, "flying");
    let mut waiting = Box::pin(journal.single_flight("key"));
    let looked = tokio::time::timeout(std::time::Duration::from_millis(300), &mut waiting).await;
    assert!(looked.is_err(), "two processes have the flight");
    child.kill().unwrap();
    child.wait().unwrap();
    soon(waiting).await.unwrap().land().await.unwrap();
}

async fn fly_until_killed(dir: &Path) {
    // Longer than any test: only the proof that this process is gone can end it.
    let patient = Options { lease_ttl: std::time::Duration::from_secs(1_000_000), ..someone() };
    let journal = Journal::open(Location::Sqlite(dir.join("journal.db")), patient).await.unwrap();
    let _flight = journal.single_flight("key").await.unwrap();
    println!("\nflying");
    std::future::pending().await
}
