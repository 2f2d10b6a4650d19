//! Signals: the first drains, the second cuts, and whatever was recorded can be gone on with.

use convoke_sim::{Script, calls, says};
use serde_json::json;

use crate::stage::{Stage, patiently};

fn count_once() -> Script {
    let count = calls("bash", json!({"command": "echo ran >> count.txt"}));
    Script::new().conversation("hold me", [count, says("Counted.")])
}

fn count(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.work().join("count.txt")).map_or(0, |text| text.lines().count())
}

/// Signals a session once while its first reply is held, lets the reply go, and goes on with the session.
async fn drained(signal: &str, code: i32) {
    let stage = Stage::with(count_once()).await;
    let hold = stage.sim().hold("hold me", 0, 2);
    let mut run = stage.start(&["run", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal(signal);
    run.says("nothing new starts, waiting up to 10 s for the reply under way").await;
    hold.release();
    let seen = run.end().await.exits(code);
    assert_eq!(
        (seen.stdout.as_str(), count(&stage)),
        ("", 0),
        "the reply was waited for and its command not started"
    );
    assert!(seen.stderr.contains("interrupted · claude-opus-4-8 · 1 turn"), "{}", seen.stderr);
    let resume = seen.resume_args();
    let resume: Vec<&str> = resume.iter().map(String::as_str).collect();
    assert_eq!(stage.run(&resume).await.exits(0).stdout, "Counted.\n");
    let requests = stage.sim().requests();
    assert_eq!(count(&stage), 1, "{:#}", requests[requests.len() - 1].body["messages"]);
    assert_eq!(requests.len(), 2, "nothing was paid twice");
}

#[tokio::test]
async fn the_first_sigint_waits_for_the_reply_and_the_run_can_go_on() {
    drained("INT", 130).await;
}

#[tokio::test]
async fn sigterm_does_the_same() {
    drained("TERM", 143).await;
}

#[tokio::test]
async fn sighup_does_the_same() {
    drained("HUP", 129).await;
}

#[tokio::test]
async fn a_run_that_is_answered_while_it_drains_is_done() {
    let stage = Stage::with(Script::new().conversation("hold me", [says("In time.")])).await;
    let hold = stage.sim().hold("hold me", 0, 2);
    let mut run = stage.start(&["run", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("INT");
    run.says("nothing new starts").await;
    hold.release();
    assert_eq!(run.end().await.exits(0).stdout, "In time.\n");
}

#[tokio::test]
async fn the_second_sigint_cuts_the_reply_off() {
    let stage = Stage::with(count_once()).await;
    let hold = stage.sim().hold("hold me", 0, 2);
    let mut run = stage.start(&["run", "--output", "json", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("INT");
    run.says("nothing new starts").await;
    run.signal("INT");
    let seen = run.end().await.exits(130);
    assert!(seen.stderr.contains("cutting off"), "{}", seen.stderr);
    let report = seen.json();
    assert_eq!((&report["status"], &report["exit_reason"]), (&json!("interrupted"), &json!("interrupted")));
    assert!(report["resume"].as_str().unwrap().starts_with("convoke resume s_"), "{report:#}");
    hold.release();
    assert_eq!(stage.run(&["resume"]).await.exits(0).stdout, "Counted.\n");
    assert_eq!(
        (count(&stage), stage.sim().requests().len()),
        (1, 3),
        "only the reply that was cut off is asked for again"
    );
}

#[tokio::test]
async fn the_second_sigint_ends_a_command_and_the_model_is_told() {
    let wait = calls("bash", json!({"command": "echo begun > begun.txt; sleep 600"}));
    let told = says("?").when_last_contains("interrupted", says("It was interrupted."));
    let stage = Stage::with(Script::new().conversation("hold me", [wait, told])).await;
    let mut run = stage.start(&["run", "hold me"]);
    run.says("running: echo begun").await;
    run.signal("INT");
    run.says("waiting up to 10 s for the command under way").await;
    run.signal("INT");
    run.end().await.exits(130);
    assert_eq!(stage.run(&["resume"]).await.exits(0).stdout, "It was interrupted.\n");
}

#[tokio::test]
async fn the_third_signal_leaves_at_once() {
    // The answer is not read and does not fit into the pipe, so there is no other way out.
    let stage = Stage::with(Script::new().conversation("hold me", [says(&"word ".repeat(100_000))])).await;
    let hold = stage.sim().hold("hold me", 0, 2);
    let mut run = stage.start(&["run", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("TERM");
    run.says("SIGTERM: nothing new starts").await;
    hold.release();
    run.signal("INT");
    run.signal("HUP");
    assert_eq!(run.code().await, Some(143), "the first signal is the reason");
}
