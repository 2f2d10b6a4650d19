//! Trusted programs without a shell.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use convoke_sandbox::{Error, ProgramOutput, capture};

use crate::{LONG, sleepers, unique_seconds, until};

async fn sh(script: &str, deadline: Duration, cap: usize) -> Result<ProgramOutput, Error> {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("A".to_owned(), "b".to_owned())]);
    capture("/bin/sh", &["-c".into(), script.into()], Path::new("/usr"), &env, deadline, cap).await
}

#[tokio::test]
async fn output_error_output_and_code_come_apart() {
    let output = sh("pwd; echo $A; echo err >&2; cat; exit 3", LONG, 1000).await.unwrap();
    let expected =
        ProgramOutput { stdout: b"/usr\nb\n".to_vec(), stderr: b"err\n".to_vec(), truncated: false, code: 3 };
    assert_eq!(output, expected);
    assert_eq!(sh("kill -9 $$", LONG, 1000).await.unwrap().code, 137);
}

#[tokio::test]
async fn more_than_the_cap_is_read_and_dropped() {
    let output = sh("yes | head -c 3000000; echo x >&2", LONG, 1000).await.unwrap();
    assert_eq!((output.stdout.len(), output.stderr.as_slice(), output.truncated), (1000, &b"x\n"[..], true));
}

#[tokio::test]
async fn a_process_left_behind_delays_nothing() {
    let seconds = unique_seconds();
    let since = Instant::now();
    let output = sh(&format!("sleep {seconds} & echo $!"), LONG, 1000).await.unwrap();
    assert!(since.elapsed() < Duration::from_secs(30));
    let pid = String::from_utf8(output.stdout).unwrap();
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success());
}

#[tokio::test]
async fn the_deadline_kills_the_group() {
    let seconds = unique_seconds();
    let outcome = sh(&format!("sleep {seconds} & sleep {seconds}"), Duration::from_millis(500), 1000).await;
    assert!(matches!(outcome, Err(Error::ProgramDeadline { .. })), "{outcome:?}");
    until("all are gone", || sleepers(&seconds) == 0).await;
}

#[tokio::test]
async fn a_missing_program_is_a_clear_error() {
    let outcome = capture("/no/such", &[], Path::new("/"), &BTreeMap::new(), LONG, 10).await;
    assert!(matches!(&outcome, Err(Error::ProgramStart { program, .. }) if program == "/no/such"), "{outcome:?}");
}
