//! What is found out before anything is sent, written or spent: a text that no model can work with, a bash
//! that does not run, a directory that cannot be named. Each ends with exit code 2, says what is wrong in
//! figures or names, and says what to do.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;

use convoke_sim::{Script, says};

use tokio::net::TcpListener;

use crate::stage::{Seen, Stage, patiently, to_its_end};

async fn stage() -> Stage {
    Stage::with(Script::new().conversation("*", [says("Done.")])).await
}

/// Checks that it was refused with these words, and that the model heard nothing and the journal holds no
/// run.
#[track_caller]
fn refused(stage: &Stage, seen: Seen, words: &[&str]) -> String {
    let seen = seen.exits(2);
    for part in words {
        assert!(seen.stderr.contains(part), "{part:?} is missing in: {}", seen.stderr);
    }
    assert_eq!(stage.sim().requests().len(), 0, "nothing is sent");
    assert_eq!(seen.stdout, "");
    seen.stderr
}

async fn no_run_is_listed(stage: &Stage) {
    assert_eq!(
        stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json()["runs"],
        serde_json::json!([])
    );
}

#[tokio::test]
async fn a_text_above_the_limit_is_not_read_to_its_end_wherever_it_comes_from() {
    let stage = stage().await;
    let words = ["8 MiB (8,388,608 bytes)", "keep long text in files"];
    refused(&stage, stage.run(&["run", "@/dev/zero"]).await, &["/dev/zero", words[0], words[1]]);
    // A file of forty million bytes that takes no room on the disk.
    std::fs::File::create(stage.work().join("task.md")).unwrap().set_len(40_000_000).unwrap();
    refused(&stage, stage.run(&["run", "@task.md"]).await, &["task.md", words[0], words[1]]);
    let mut piped = stage.command(&["run", "-"]);
    piped.stdin(std::fs::File::open("/dev/zero").unwrap());
    refused(&stage, to_its_end(piped).await, &words);
    no_run_is_listed(&stage).await;
}

#[tokio::test]
async fn a_task_that_leaves_no_room_to_work_is_refused_with_its_size_and_what_fits() {
    let stage = stage().await;
    std::fs::write(stage.work().join("task.md"), "word ".repeat(120_000)).unwrap();
    let words = ["600,000 bytes", "claude-haiku-4-5", "200,000 tokens at once", "bytes fit", "read in parts"];
    let model = ["--model", "claude-haiku-4-5"];
    let told = refused(&stage, stage.run(&[&["run"], &model[..], &["@task.md"]].concat()).await, &words);
    no_run_is_listed(&stage).await;
    // What the message says would fit does, and one byte more does not.
    let most: usize = told
        .split("at once: at most ")
        .nth(1)
        .unwrap()
        .split(" bytes")
        .next()
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap();
    std::fs::write(stage.work().join("task.md"), "x".repeat(most + 1)).unwrap();
    refused(&stage, stage.run(&[&["run"], &model[..], &["@task.md"]].concat()).await, &words[1..]);
    std::fs::write(stage.work().join("task.md"), "x".repeat(most)).unwrap();
    stage.run(&[&["run"], &model[..], &["@task.md"]].concat()).await.exits(0);
    assert!(!stage.sim().requests().is_empty());
}

#[tokio::test]
async fn a_directory_whose_name_is_not_utf8_is_named_and_no_layer_is_blamed() {
    let stage = stage().await;
    let odd = stage.work().join(OsStr::from_bytes(b"odd-\xff-name"));
    std::fs::create_dir(&odd).unwrap();
    let mut command = stage.command(&["run", "look", "around"]);
    command.current_dir(&odd);
    let told = refused(&stage, to_its_end(command).await, &["odd-", "is not UTF-8", "rename"]);
    assert!(!told.contains("seccomp"), "{told}");
    no_run_is_listed(&stage).await;
}

#[tokio::test]
async fn a_bash_that_may_not_be_executed_is_found_before_the_first_request() {
    let stage = stage().await;
    let bound = ["-rm", "sh", "-c", "mount --bind \"$1\" /usr/bin/bash && shift && exec \"$0\" \"$@\""];
    let file = stage.home().join("no-bash");
    std::fs::write(&file, "not to be run").unwrap();
    let mut trial = stage.prepare(Path::new("unshare"));
    trial
        .args(bound.map(|arg| arg.replace("exec \"$0\"", "exec true")))
        .args(["convoke".as_ref(), file.as_os_str()]);
    if !trial.stderr(Stdio::null()).status().await.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no namespace in which /usr/bin/bash can be another file");
        return;
    }
    for (sandbox, told) in
        [("workspace", "bash does not run in the sandbox"), ("off", "bash does not run here")]
    {
        let mut command = stage.prepare(Path::new("unshare"));
        command.args(bound).args([OsStr::new(env!("CARGO_BIN_EXE_convoke")), file.as_os_str()]);
        command.args(["run", "--sandbox", sandbox, "look", "around"]);
        refused(&stage, to_its_end(command).await, &[told, "Permission denied", "install"]);
        no_run_is_listed(&stage).await;
    }
}

/// A server that takes a connection and says nothing is no reason for silence, also where nothing is run.
#[tokio::test]
async fn a_list_whose_server_does_not_answer_says_so_and_until_when() {
    let stage = stage().await;
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let place = format!("postgres://someone@{}/journal", silent.local_addr().unwrap());
    for command in [&["runs", "list"][..], &["cost"]] {
        let mut list = stage.start(&[command, &["--journal", &place]].concat());
        let (taken, _) = patiently("a connection", silent.accept()).await.unwrap();
        list.says("does not answer yet; given up after 60 s").await;
        drop(taken);
        let seen = list.end().await.exits(2);
        assert!(seen.stderr.contains(&place), "{}", seen.stderr);
    }
}
