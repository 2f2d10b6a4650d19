//! What is special about a SQLite journal: its files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_journal::{Batch, Change, Changed, Error, FORMAT, Journal, Location, Options, Refusal};

use crate::world::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1.db")
}

async fn open(path: &Path) -> Result<Journal, Error> {
    Journal::open(Location::Sqlite(path.to_owned()), someone()).await
}

#[tokio::test]
async fn a_journal_of_format_1_still_loads_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::copy(fixture(), &path).unwrap();
    let journal = open(&path).await.unwrap();
    let records = journal.load(&stream("a_fixture"), 0).await.unwrap();
    let times: Vec<_> = records.iter().map(|record| (record.seq, record.at)).collect();
    assert_eq!(times, [(1, 2_000), (2, 2_000), (3, 3_000)]);
    assert_eq!(records[0].event, r#"{"type":"started","nul":"\u0000"}"#);
    assert_eq!(records[1].event, r#"{"type":"spoke","snow":"☃"}"#);
    assert_eq!(records[2].event, format!(r#"{{"type":"long","text":"{}"}}"#, "x".repeat(70_000)));
    assert_eq!(
        journal.inputs(&stream("a_fixture")).await.unwrap(),
        [input("a_fixture", "later", r#"{"text":"wait"}"#)]
    );
    assert_eq!(waiting(&journal, "a_other").await, ["mail"]);
    assert_eq!(journal.result("result").await.unwrap().as_deref(), Some(r#"{"ok":true}"#));
    let listed = journal.list(&Default::default()).await.unwrap();
    assert_eq!(listed[1].summary.as_deref(), Some(r#"{"title":"a fixture"}"#));
    assert_eq!(listed[1].created_at, 1_000);

    let lease = own(&journal, "a_fixture").await;
    assert_eq!(journal.append(&lease, 3, &one(4)).await, Ok(4));

    // It has become a journal of our format, in the header too, where an older version
    // looks; and it can do all that a new one can.
    assert_eq!(journal.shared(&stream("a_fixture")).await.unwrap(), None);
    assert_eq!(journal.update(&stream("ledger"), 1, &becomes("1")).await.as_deref(), Ok("1"));
    assert_eq!(header_format(&path), FORMAT);
    journal.close().await.unwrap();
    assert_eq!(open(&path).await.unwrap().shared(&stream("ledger")).await.unwrap().as_deref(), Some("1"));
    assert_eq!(tables(&path), tables(&new_journal(&dir.path().join("new.db")).await));
}

fn becomes(state: &'static str) -> Change {
    Change::new(move |_| Ok(Changed { state: state.to_owned(), events: vec![event(1)] }))
}

fn header_format(path: &Path) -> u32 {
    u32::from_be_bytes(fs::read(path).unwrap()[60..64].try_into().unwrap())
}

async fn new_journal(path: &Path) -> PathBuf {
    open(path).await.unwrap().close().await.unwrap();
    path.to_owned()
}

/// Every table and index as SQLite has it, and what the journal says of its own format.
fn tables(path: &Path) -> Vec<String> {
    let rows = rusqlite::Connection::open(path).unwrap();
    let all = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL UNION ALL
        SELECT name || value FROM meta WHERE name = 'format' ORDER BY 1";
    let mut statement = rows.prepare(all).unwrap();
    let found = statement.query_map([], |row| row.get(0)).unwrap();
    found.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_journal_of_format_2_still_loads_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::copy(fixture().with_file_name("v2.db"), &path).unwrap();
    let journal = open(&path).await.unwrap();
    assert_eq!(journal.shared(&stream("s_fixture:ledger")).await.unwrap().as_deref(), Some(r#"{"spent":7}"#));
    let records = journal.load(&stream("s_fixture:ledger"), 0).await.unwrap();
    let told: Vec<_> = records.iter().map(|record| (record.seq, record.at, record.event.as_str())).collect();
    assert_eq!(
        told,
        [(1, 4_000, r#"{"type":"spent","nanos":3}"#), (2, 5_000, r#"{"type":"spent","nanos":4}"#)]
    );
    assert_eq!(events(&journal, "a_fixture").await.len(), 4);
    assert_eq!(journal.result_at("result").await.unwrap(), Some((r#"{"ok":true}"#.to_owned(), 3_000)));
    assert_eq!(journal.update(&stream("s_fixture:ledger"), 1, &becomes("{}")).await.as_deref(), Ok("{}"));
    assert_eq!(journal.load(&stream("s_fixture:ledger"), 2).await.unwrap().len(), 1);
}

#[tokio::test]
async fn many_who_upgrade_a_journal_at_once_do_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::copy(fixture(), &path).unwrap();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let path = path.clone();
        opening.spawn(async move {
            let journal = open(&path).await.unwrap();
            journal.update(&stream("ledger"), 1, &becomes("1")).await.unwrap();
        });
    }
    soon(opening.join_all()).await;
    let journal = open(&path).await.unwrap();
    assert_eq!(events(&journal, "ledger").await.len(), 8);
    assert_eq!(events(&journal, "a_fixture").await.len(), 3);
}

#[tokio::test]
async fn an_upgrade_that_fails_half_way_leaves_the_old_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::copy(fixture(), &path).unwrap();
    let meddler = rusqlite::Connection::open(&path).unwrap();
    // The last statement of the upgrade fails, when the table has its new column already.
    let trap = "CREATE TRIGGER trap BEFORE UPDATE ON meta BEGIN SELECT RAISE(ABORT, 'caught'); END";
    meddler.execute_batch(trap).unwrap();
    let before = tables(&path);
    assert!(open(&path).await.is_err());
    assert_eq!(tables(&path), before);
    meddler.execute_batch("DROP TRIGGER trap").unwrap();
    drop(meddler);
    assert_eq!(header_format(&path), 1);
    assert_eq!(events(&open(&path).await.unwrap(), "a_fixture").await.len(), 3);
    assert_eq!(header_format(&path), FORMAT);
}

#[tokio::test]
async fn a_newer_format_that_is_only_in_the_log_is_refused_and_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let copy = dir.path().join("copy.db");
    let journal = open(&path).await.unwrap();
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.execute_batch(&format!("PRAGMA user_version = {}", FORMAT + 1)).unwrap();
    let wal = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    fs::copy(&path, &copy).unwrap();
    fs::copy(wal(&path), wal(&copy)).unwrap();
    journal.close().await.unwrap();
    let bytes = || (fs::read(&copy).unwrap(), fs::read(wal(&copy)).unwrap());
    let before = bytes();
    assert_eq!(header_format(&copy), FORMAT);
    let error = open(&copy).await.err().unwrap();
    let expected = Refusal::Newer { found: FORMAT + 1, known: FORMAT };
    assert!(matches!(&error, Error::Refused { refusal, .. } if *refusal == expected), "{error:?}");
    assert!(bytes() == before, "it was touched");
}

fn flights(path: &Path) -> u32 {
    let rows = rusqlite::Connection::open(path).unwrap();
    let count = "SELECT count(*) FROM streams WHERE stream LIKE 'flight:%'";
    rows.query_row(count, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_flight_leaves_no_row_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let journal = open(&path).await.unwrap();
    let flight = journal.single_flight("key").await.unwrap();
    assert_eq!(flights(&path), 1);
    assert!(journal.prune(&[]).await.unwrap().removed.is_empty());
    assert_eq!(flights(&path), 1, "one that is held is not pruned");
    flight.land().await.unwrap();
    assert_eq!(flights(&path), 0);

    drop(journal.single_flight("dropped").await.unwrap());
    assert_eq!(flights(&path), 1);
    journal.heartbeat().await.unwrap();
    assert_eq!(flights(&path), 0);

    let dead = Journal::open(Location::Sqlite(path.clone()), somebody_gone()).await.unwrap();
    std::mem::forget(dead.single_flight("abandoned").await.unwrap());
    assert_eq!(flights(&path), 1);
    let pruned = journal.prune(&[]).await.unwrap();
    assert!(pruned.removed.is_empty() && pruned.held.is_empty(), "{pruned:?}");
    assert_eq!(flights(&path), 0);

    let _flight = journal.single_flight("closed").await.unwrap();
    journal.close().await.unwrap();
    assert_eq!(flights(&path), 0);
}

/// A file that is refused is left as it is, and nothing is put beside it.
async fn check_refused(bytes: &[u8], expected: impl FnOnce(&Refusal) -> bool, says: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::write(&path, bytes).unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let error = open(&path).await.err().expect("the file must be refused");
    match &error {
        Error::Refused { refusal, .. } => assert!(expected(refusal), "{refusal:?}"),
        other => panic!("{other:?}"),
    }
    let message = error.to_string();
    assert!(message.contains(says), "{message}");
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    assert!(message.contains("left untouched"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something was put beside it");
}

fn patched(at: usize, value: u32) -> Vec<u8> {
    let mut bytes = fs::read(fixture()).unwrap();
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    bytes
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_untouched() {
    let check =
        |bytes: &'static [u8]| check_refused(bytes, |r| *r == Refusal::NotADatabase, "not a SQLite database");
    check(b"# my notes\n").await;
    check(&[0; 4096]).await;
    check(&[0xff; 10_000]).await;
}

#[tokio::test]
async fn a_database_of_another_application_is_refused_and_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE cookies (crumb TEXT); PRAGMA user_version = 1").unwrap();
    drop(other);
    let foreign = |refusal: &Refusal| matches!(refusal, Refusal::Foreign { .. });
    check_refused(&fs::read(&path).unwrap(), foreign, "another application").await;
    check_refused(&patched(68, 0xdead_beef), foreign, "0xdeadbeef").await;
}

#[tokio::test]
async fn a_journal_of_a_newer_format_is_refused_and_left_untouched() {
    for found in [FORMAT + 1, 77] {
        let newer = move |refusal: &Refusal| *refusal == Refusal::Newer { found, known: FORMAT };
        check_refused(&patched(60, found), newer, &format!("format {found}")).await;
    }
}

#[tokio::test]
async fn a_torn_journal_is_refused_and_left_untouched() {
    let whole = fs::read(fixture()).unwrap();
    let torn = |refusal: &Refusal| matches!(refusal, Refusal::Torn { .. });
    for left in [0, 1, 15, 16, 50, 99, 100, 1000, 4096, 8192, whole.len() - 4096, whole.len() - 1] {
        check_refused(&whole[..left], torn, "is torn").await;
    }
}

#[tokio::test]
async fn a_log_without_its_journal_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    fs::write(dir.path().join("journal.db-wal"), b"what is left").unwrap();
    let error = open(&path).await.err().unwrap();
    assert!(error.to_string().contains("write-ahead log"), "{error}");
    assert!(!path.exists());
}

/// A journal with something in its log, copied while it was open.
async fn copied_open(to: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let journal = open(&path).await.unwrap();
    let lease = own(&journal, "a").await;
    for expected in 0..50 {
        journal.append(&lease, expected, &Batch::events(1, [event(1) + &" ".repeat(5_000)])).await.unwrap();
    }
    for suffix in ["", "-wal"] {
        fs::copy(format!("{}{suffix}", path.display()), format!("{}{suffix}", to.display())).unwrap();
    }
}

#[tokio::test]
async fn a_log_that_was_not_yet_copied_is_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    copied_open(&path).await;
    assert_eq!(events(&open(&path).await.unwrap(), "a").await.len(), 50);
}

#[tokio::test]
async fn a_journal_torn_beside_its_log_is_refused_and_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    copied_open(&path).await;
    let wal = dir.path().join("journal.db-wal");
    let database = fs::read(&path).unwrap();
    let log = fs::read(&wal).unwrap();
    // The log begins, and has none of the pages that the file has lost.
    let database = &database[..3 * 4096];
    let log = &log[..32];
    fs::write(&path, database).unwrap();
    fs::write(&wal, log).unwrap();
    let error = open(&path).await.err().unwrap();
    assert!(matches!(&error, Error::Refused { refusal: Refusal::Torn { .. }, .. }), "{error:?}");
    assert_eq!(fs::read(&path).unwrap(), database);
    assert_eq!(fs::read(&wal).unwrap(), log);
}

#[tokio::test]
async fn damage_inside_the_file_is_reported_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let mut bytes = fs::read(fixture()).unwrap();
    bytes[4096..].fill(0x55);
    fs::write(&path, &bytes).unwrap();
    let damage = match open(&path).await {
        Err(error) => error,
        Ok(journal) => journal.load(&stream("a_fixture"), 0).await.unwrap_err(),
    };
    assert!(matches!(damage, Error::Corrupt { .. }), "{damage:?}");
}

#[tokio::test]
async fn everything_the_journal_writes_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/er/journal.db");
    let journal = open(&path).await.unwrap();
    let lease = own(&journal, "a").await;
    journal.append(&lease, 0, &one(1)).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("new")), 0o700);
    assert_eq!(mode(&dir.path().join("new/er")), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir.path().join("new/er")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    let expected = ["journal.db", "journal.db-next", "journal.db-shm", "journal.db-turn", "journal.db-wal"];
    assert_eq!(names, expected);
}

/// Opens one new journal many times at once, and expects all of them to have the same one.
async fn check_created_once(who: impl Fn() -> Options) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let mut opening = tokio::task::JoinSet::new();
    for n in 0..16 {
        let path = path.clone();
        let who = who();
        opening.spawn(async move {
            let journal = Journal::open(Location::Sqlite(path), who).await.unwrap();
            journal.submit(&input("a", &n.to_string(), ""), 1).await.unwrap();
        });
    }
    soon(opening.join_all()).await;
    assert_eq!(waiting(&open(&path).await.unwrap(), "a").await.len(), 16);
    let drafts =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(drafts.filter(|name| name.contains("new")).count(), 0);
}

#[tokio::test]
async fn many_who_create_the_journal_at_once_get_the_same_one() {
    check_created_once(someone).await;
}

#[tokio::test]
async fn one_process_that_creates_the_journal_many_times_at_once_gets_the_same_one() {
    let me = someone();
    check_created_once(|| me.clone()).await;
}

#[tokio::test]
async fn a_place_that_is_no_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = open(dir.path()).await.err().unwrap();
    assert!(matches!(error, Error::BadLocation { .. }), "{error:?}");
    std::os::unix::fs::symlink("/nowhere/at/all", dir.path().join("link")).unwrap();
    let error = open(&dir.path().join("link")).await.err().unwrap();
    assert!(matches!(error, Error::BadLocation { .. } | Error::CannotWrite { .. }), "{error:?}");
}

/// The limit on file sizes stands in for a full disk: both make a write fail half way.
#[tokio::test]
async fn a_full_disk_is_said_and_the_journal_stays_readable() {
    if let Some(dir) = std::env::var_os("CONVOKE_JOURNAL_ROLE") {
        return fill_the_disk(&PathBuf::from(dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "sqlite_files::a_full_disk_is_said_and_the_journal_stays_readable";
    let child = Command::new("bash")
        .args(["-c", r#"trap '' XFSZ; ulimit -f 400; exec "$0" --exact "$1" --nocapture"#])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env("CONVOKE_JOURNAL_ROLE", dir.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let told = fs::read_to_string(dir.path().join("told")).unwrap();
    assert!(told.contains("cannot write to the journal"), "{told}");
}

/// What the test does when it is started again under the limit.
async fn fill_the_disk(dir: &Path) {
    let journal = open(&dir.join("journal.db")).await.unwrap();
    let lease = own(&journal, "a").await;
    let big = || event(1) + &" ".repeat(60_000);
    let mut written = 0;
    let full = loop {
        match journal.append(&lease, written, &Batch::events(1, [big()])).await {
            Ok(seq) => written = seq,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the limit on file sizes has no effect");
    };
    assert!(matches!(full, Error::CannotWrite { .. }), "{full:?}");
    assert!(written > 0);
    assert_eq!(events(&journal, "a").await.len() as u64, written);
    // Nothing is half there: the stream is where it was, and a reader from outside agrees.
    let other = open(&dir.join("journal.db")).await.unwrap();
    assert_eq!(events(&other, "a").await.len() as u64, written);
    fs::write(dir.join("told"), full.to_string()).unwrap();
}

#[tokio::test]
async fn an_append_that_fails_half_way_leaves_nothing_of_itself_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    let journal = open(&path).await.unwrap();
    let lease = own(&journal, "a").await;
    assert_eq!(journal.append(&lease, 0, &Batch::events(1, [event(0)])).await, Ok(1));
    // Another program has changed the file: the third event of the next batch finds its place taken.
    let meddler = rusqlite::Connection::open(&path).unwrap();
    meddler.execute("INSERT INTO events (stream, seq, at, event) VALUES ('a', 4, 1, '{}')", []).unwrap();
    let three = Batch::events(1, (1..4).map(event));
    let (failed, other) = tokio::join!(journal.append(&lease, 1, &three), async {
        let other = own(&journal, "b").await;
        journal.append(&other, 0, &Batch::events(1, [event(0)])).await
    });
    assert!(failed.is_err());
    assert_eq!(other, Ok(1), "its neighbours in the transaction are not disturbed");
    meddler.execute("DELETE FROM events WHERE stream = 'a' AND seq = 4", []).unwrap();
    assert_eq!(events(&journal, "a").await.len(), 1);
    assert_eq!(journal.append(&lease, 1, &three).await, Ok(4), "the sequence did not move either");
}
