//! Damage of a journal's files, by seed: what changes anything that can be read is found, by opening or by
//! looking.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_journal::{Batch, Checked, Journal, Location};

use crate::world::*;

/// A journal with some of everything, closed, or copied while it was open so that it has a log.
async fn written(dir: &Path, with_log: bool) -> PathBuf {
    let path = dir.join("whole.db");
    let journal = Journal::open(Location::Sqlite(path.clone()), someone()).await.unwrap();
    for name in ["a", "b", "c"] {
        let lease = own(&journal, name).await;
        for n in 0..40 {
            let long = format!(r#"{{"type":"long","n":{n},"text":"{}"}}"#, name.repeat(3_000 * (1 + n % 4)));
            let mail = vec![input("d", &format!("{name}{n}"), "hello")];
            let batch = Batch { inputs: mail, ..Batch::events(1, [event(n), long]) };
            journal.append(&lease, 2 * n as u64, &batch).await.unwrap();
        }
    }
    let copy = dir.join("journal.db");
    if with_log {
        fs::copy(path.with_file_name("whole.db-wal"), dir.join("journal.db-wal")).unwrap();
        fs::copy(&path, &copy).unwrap();
        journal.close().await.unwrap();
    } else {
        journal.close().await.unwrap();
        fs::copy(&path, &copy).unwrap();
    }
    copy
}

/// Everything that can be read, or what went wrong.
async fn read(journal: &Journal) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for listing in journal.list(&Default::default()).await.map_err(|error| error.to_string())? {
        let records = journal.load(&listing.stream, 0).await.map_err(|error| error.to_string())?;
        all.push(format!("{} {:?}", listing.stream, listing.seq));
        all.extend(
            records.into_iter().map(|record| format!("{} {} {}", record.seq, record.at, record.event)),
        );
        let inputs = journal.inputs(&listing.stream).await.map_err(|error| error.to_string())?;
        all.extend(inputs.into_iter().map(|input| input.key + &input.body));
    }
    Ok(all)
}

#[tokio::test]
async fn a_whole_journal_is_found_whole_with_and_without_a_log() {
    for with_log in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = written(dir.path(), with_log).await;
        let journal = Journal::open(Location::Sqlite(path), someone()).await.unwrap();
        assert_eq!(journal.check(Duration::from_secs(60)).await, Ok(Checked::Whole));
        assert!(journal.check(Duration::ZERO).await.is_ok(), "a look that is cut off finds no damage");
    }
}

/// The rule for what counts: a damage after which everything is read as before has hit free room; one that
/// only changed letters of a short text, which no store without checksums can know, is counted apart and must
/// be rare.
#[tokio::test]
async fn damage_of_every_kind_is_found() {
    let seed = std::env::var_os("CONVOKE_SEED")
        .map_or_else(|| u64::from_ne_bytes(random()), |seed| seed.to_str().unwrap().parse().unwrap());
    println!("CONVOKE_SEED={seed}");
    let mut state = seed | 1;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).unwrap()
    };
    let whole = tempfile::tempdir().unwrap();
    let closed = written(whole.path(), false).await;
    let open = tempfile::tempdir().unwrap();
    let logged = written(open.path(), true).await;
    let as_before = {
        let journal = Journal::open(Location::Sqlite(closed.clone()), someone()).await.unwrap();
        let all = read(&journal).await.unwrap();
        journal.close().await.unwrap();
        all
    };
    let mut found = 0;
    let mut free = 0;
    let mut letters = 0;
    let mut missed = Vec::new();
    for n in 0..48 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.db");
        let kind = ["header", "page", "log", "truncated", "schema", "bytes", "zeroes", "log header"][n % 8];
        let log = kind.starts_with("log");
        let from = if log { &logged } else { &closed };
        let mut database = fs::read(from).unwrap();
        let mut wal = Vec::new();
        if log {
            wal = fs::read(from.with_file_name("journal.db-wal")).unwrap();
        }
        let pages = database.len() / 4096;
        match kind {
            "header" => database[below(100)] ^= 0xff,
            // The part of a page that says where its rows are.
            "page" => {
                let at = 4096 * (1 + below(pages - 1)) + below(8);
                database[at] ^= 0x5a;
            }
            "truncated" => database.truncate(4096 * (1 + below(pages - 1)) + below(4096)),
            "schema" => {
                let at = 100 + below(8);
                database[at] ^= 0x33;
            }
            "bytes" => {
                let at = 4096 + below(database.len() - 4096 - 200);
                for byte in &mut database[at..at + 200] {
                    *byte = u8::try_from(below(256)).unwrap();
                }
            }
            "zeroes" => {
                let at = 4096 * (1 + below(pages - 1));
                database[at..at + 4096].fill(0);
            }
            "log" => {
                let frames = (wal.len() - 32) / 4120;
                // Not the last transactions, whose loss is as after a crash.
                let at = 32 + 4120 * below(frames - 30) + below(4120);
                wal[at] ^= 0xff;
            }
            _ => wal[below(32)] ^= 0xff,
        }
        fs::write(&path, &database).unwrap();
        if log {
            fs::write(dir.path().join("journal.db-wal"), &wal).unwrap();
        }
        let journal = match Journal::open(Location::Sqlite(path), someone()).await {
            Ok(journal) => journal,
            Err(_) => {
                found += 1;
                continue;
            }
        };
        match (journal.check(Duration::from_secs(60)).await, read(&journal).await) {
            (Err(_), _) => found += 1,
            (Ok(_), Ok(all)) if all == as_before => free += 1,
            (Ok(_), Ok(all)) if all.len() == as_before.len() => letters += 1,
            (Ok(_), after) => missed.push(format!("{n} {kind}: {:?}", after.map(|all| all.len()))),
        }
    }
    println!(
        "damaged 48 times: {found} found, {free} in free room, {letters} in letters only, missed {missed:?}"
    );
    assert!(missed.is_empty(), "{missed:?}");
    assert!(found >= 30, "only {found} found");
    assert!(letters <= 8, "{letters} damages changed a text and were not found");
}

#[tokio::test]
async fn a_text_that_is_no_utf_8_is_found_though_it_is_json_to_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), false).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let changed = connection.execute(
        "UPDATE events SET event = CAST(CAST('{\"type\":\"x\",\"text\":\"' AS BLOB) || x'fffe' || CAST('\"}' \
            AS BLOB) AS TEXT)
         WHERE seq = 1 AND stream = (SELECT min(stream) FROM events)",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    drop(connection);
    let journal = Journal::open(Location::Sqlite(path), someone()).await.unwrap();
    let found = journal.check(Duration::from_secs(60)).await.unwrap_err().to_string();
    assert!(found.contains("an event is no text"), "{found}");
}
