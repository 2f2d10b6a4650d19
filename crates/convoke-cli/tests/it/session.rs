//! Sessions led from a real keyboard: the binary in a terminal of its own, against a simulator whose replies
//! are written down. Everything is waited for by what is on the screen, and judged by what is there, by what
//! the simulator received and by what lies in the directory.

mod around;
mod captures;
mod commands;
mod fleet;
mod manners;
mod people;
mod picture;
mod whole;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use convoke_sim::{Reply, calls};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::pane::Pane;
use crate::stage::Stage;

/// Generous: two cores, many tests at once.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the empty input says while nothing is under way.
const IDLE: &str = "› what is to be done?";

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

/// Adds to the user's configuration.
fn configure(stage: &Stage, text: &str) {
    let path = stage.home().join(".config/convoke/config.toml");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{before}\n{text}")).unwrap();
}

/// A pane in which a session waits for its first words.
async fn session(stage: &Stage, flags: &str) -> Pane {
    let pane = Pane::open(stage).await;
    pane.enter(format!("convoke {flags}").trim_end()).await;
    pane.shows(IDLE).await;
    pane
}

/// Says something, waits for the end of the answer and gives what is on the screen then.
async fn say(pane: &Pane, words: &str) -> String {
    let before = pane.all().await.matches("· done · ").count();
    pane.enter(words).await;
    pane.told("· done · ", before + 1).await;
    pane.shows(IDLE).await
}

/// Waits until a file is there.
async fn made(file: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < deadline, "waited in vain for {}", file.display());
        sleep(Duration::from_millis(30)).await;
    }
}

/// Waits until the simulator has received this many requests.
async fn asked(stage: &Stage, requests: usize) {
    let deadline = Instant::now() + PATIENCE;
    while stage.sim().requests().len() < requests {
        assert!(Instant::now() < deadline, "waited in vain for request {requests}");
        sleep(Duration::from_millis(30)).await;
    }
}

/// The ids of all sessions, the newest first.
async fn runs(stage: &Stage) -> Vec<String> {
    let listed = stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    let id = |run: &Value| run["run"].as_str().unwrap().to_owned();
    listed["runs"].as_array().unwrap().iter().map(id).collect()
}

/// Nothing was asked of the model twice.
#[track_caller]
fn nothing_was_paid_twice(stage: &Stage) {
    let requests = stage.sim().requests();
    let places: BTreeSet<(String, usize)> =
        requests.iter().map(|one| (one.conversation.clone(), one.position)).collect();
    assert_eq!(places.len(), requests.len(), "a reply was paid for twice");
    assert!(requests.iter().all(|request| request.replied), "every reply was heard to its end");
}
