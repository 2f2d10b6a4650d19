//! How a command ends whose journal cannot be used at the start, is removed under it, or is damaged.

use std::time::{Duration, Instant};

use crate::support::*;

/// Where a journal cannot be: nothing is started, exit code 2, and what to do.
#[test]
fn a_journal_that_cannot_be_used_at_the_start_is_exit_2() {
    let place = TestHome::new();
    let notes = place.path("elsewhere/notes.db");
    place.write(&notes, "dear diary");
    let directory = place.path("elsewhere");
    let newer = place.path("elsewhere/newer.db");
    let mut header = b"SQLite format 3\0".to_vec();
    header.resize(4096, 0);
    header[16..18].copy_from_slice(&4096_u16.to_be_bytes());
    header[60..64].copy_from_slice(&99_u32.to_be_bytes());
    header[68..72].copy_from_slice(&0x436f_6e76_u32.to_be_bytes());
    std::fs::write(&newer, header).unwrap();
    let under_a_file = notes.join("journal.db");
    let cases = [
        (notes.to_str().unwrap().to_owned(), "is not a Convoke journal"),
        (directory.to_str().unwrap().to_owned(), "is no place for a journal"),
        (newer.to_str().unwrap().to_owned(), "format 99"),
        (under_a_file.to_str().unwrap().to_owned(), "notes.db"),
        ("postgres://nobody@127.0.0.1:1/none".to_owned(), "not available"),
    ];
    for (journal, says) in cases {
        for args in [
            &["run", "--offline", "look around", "--journal", &journal][..],
            &["resume", "--journal", &journal],
        ] {
            let got = place.convoke(args);
            assert_eq!(got.code, 2, "{args:?}: {}{}", got.out, got.err);
            // Where no file can be, there is none to resume from either, and that is what `resume` says.
            let said =
                got.err.contains(says) || (args[0] == "resume" && got.err.contains("no unfinished session"));
            assert!(said, "{args:?}: {}", got.err);
        }
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "dear diary");
}

#[test]
fn a_journal_that_is_removed_under_a_run_is_said_and_exit_1() {
    let place = TestHome::new();
    place.write(&place.path("work/a.rs"), "fn main() {}\n");
    let mut command = place.command(&["run", "--offline", "look around"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let log = place.journal_file().with_file_name("journal.db-wal");
    let began = Instant::now();
    while !std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        assert!(began.elapsed() < Duration::from_secs(60), "it never writes");
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.journal_file().with_file_name(format!("journal.db{suffix}")));
    }
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("was removed or replaced while it was in use"), "{told}");
}

#[tokio::test]
async fn the_doctor_fails_on_a_damaged_journal_and_says_what_to_do() {
    let place = TestHome::new();
    let writer = Writer::open(&place.journal_file()).await;
    writer.start(1, &place.path("work"), "look").await;
    writer.journal.close().await.unwrap();
    assert_eq!(place.convoke(&["doctor"]).code, 0);
    let mut bytes = std::fs::read(place.journal_file()).unwrap();
    bytes[4096..4104].fill(0x55);
    std::fs::write(place.journal_file(), &bytes).unwrap();
    let got = place.convoke(&["doctor"]);
    assert_eq!(got.code, 1, "{}", got.out);
    // A session finds it before anything is begun.
    let run = place.convoke(&["run", "--offline", "look around"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("is damaged") && run.err.contains("`convoke doctor`"), "{}", run.err);
    let told = got.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("fail journal") && told.contains("is damaged") && told.contains("restore a copy"),
        "{told}"
    );
}
