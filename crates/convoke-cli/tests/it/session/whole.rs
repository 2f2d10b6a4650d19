//! One session from its first start to its fork, as a person would lead it.

use convoke_sim::{SimConfig, calls, says};
use serde_json::json;

use super::{IDLE, asked, bash, configure, made, nothing_was_paid_twice, runs};
use crate::pane::Pane;
use crate::stage::{Stage, patiently};
use crate::team::{Team, finding, requests, workflow};

const SUBTASKS: [&str; 4] = ["high one", "low two", "low three", "medium wrong"];

/// A lead that fans out, asks twice, is stopped twice, and goes on.
fn team() -> Team {
    let lead = [
        workflow(&SUBTASKS).saying("Four looks at once."),
        bash("touch asked-first"),
        bash("touch asked-second"),
        says("The **synthesis** of it."),
        bash("mkdir never"),
        bash("echo begun > begun; sleep 500"),
        says("All is told."),
        says("Told again."),
    ];
    Team::new(lead).workers(|subtask| {
        let report = calls("report_findings", json!({"summary": subtask, "findings": [finding(subtask)]}));
        vec![bash("cat a.txt"), bash("echo more"), bash("echo most"), report]
    })
}

async fn stage() -> Stage {
    let stage = Stage::with(SimConfig::new(team())).await;
    std::fs::write(stage.work().join("a.txt"), "first line\nsecond line\n").unwrap();
    configure(&stage, "[[rules]]\ncommand = \"touch\"\ndecision = \"ask\"\n");
    stage
}

/// The session's first line, by which the simulator knows it.
const TASK: &str = "Look at everything";

#[tokio::test]
async fn a_person_leads_a_whole_session_from_a_keyboard() {
    let stage = stage().await;
    let pane = Pane::open(&stage).await;
    pane.enter("convoke --bash-timeout 10m").await;
    first_start(&pane).await;
    // Each holds the worker that comes there first, so that three of four are held, each after its first
    // command.
    let holds = [1, 2, 3].map(|turns| stage.sim().hold("<subtask>", turns, 0));
    says_its_task(&stage, &pane).await;
    for hold in &holds {
        patiently("a worker to be held", hold.entered()).await;
    }
    watches(&pane).await;
    drills(&pane).await;
    drop(holds);
    answers(&stage, &pane).await;
    stops(&stage, &pane).await;
    let session = leaves(&stage, &pane).await;
    takes_up_and_forks(&stage, &pane, &session).await;
    pane.enter("/quit").await;
    pane.is_usable().await;

    let positions: Vec<usize> = requests(&stage, "lead").iter().map(|request| request.position).collect();
    assert_eq!(positions, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(requests(&stage, "worker").len(), 4 * SUBTASKS.len());
    assert_eq!(requests(&stage, "verifier").len(), 2 * SUBTASKS.len());
    nothing_was_paid_twice(&stage);
}

/// It explains itself in five lines.
async fn first_start(pane: &Pane) {
    let screen = pane
        .shows_all(&[
            IDLE,
            "claude-opus-4-8 (effort xhigh) at 127.0.0.1",
            "API key",
            "sandbox workspace",
            "at most $10.00",
            "Esc",
            "/help",
        ])
        .await;
    let rows = screen.lines().map(|row| row.trim_start_matches(['·', ' ']));
    let labels: Vec<&str> = rows.filter_map(|row| Some(row.split_once("  ")?.0)).collect();
    assert_eq!(labels, ["answers", "touches", "spends", "stops", "help"], "{screen}");
}

/// More than one row, and something pasted, which sends nothing.
async fn says_its_task(stage: &Stage, pane: &Pane) {
    pane.types(TASK).await;
    pane.press("M-Enter").await;
    pane.types("and be thorough: ").await;
    pane.pastes("pasted one\npasted two\n").await;
    pane.shows("pasted two").await;
    pane.types("typed last").await;
    pane.shows("typed last").await;
    assert!(stage.sim().requests().is_empty(), "what is pasted sends nothing");
    pane.press("Enter").await;
    asked(stage, 1).await;
    let first = &stage.sim().requests()[0].body["messages"][0];
    let said = format!("{TASK}\nand be thorough: pasted one\npasted two\ntyped last");
    assert!(
        first["content"].as_array().unwrap().iter().any(|block| block["text"] == said.as_str()),
        "{first}"
    );
}

/// Which agents work, what it costs, and how many they are.
async fn watches(pane: &Pane) {
    pane.shows("working: 3 running · 1 done").await;
    // The one that is done has been judged, too.
    let rows = ["· 4 agents", "Four looks at once.", "begins with 4 subtasks", "$ echo more", "of $10.00"];
    pane.shows_all(&[&rows[..], &["Esc stops; what you write now is said next"]].concat()).await;
}

/// From the run to an agent, to its turns, to what a command printed, and back.
async fn drills(pane: &Pane) {
    pane.press("C-o").await;
    pane.shows("[1 Agents 6]").await;
    assert_eq!(pane.knows("#{alternate_on}").await, "1");
    // One run only, then one agent of it.
    pane.press("g").await;
    pane.until("only those of the run", |screen| !screen.contains("\nlead\n") && screen.contains("low two"))
        .await;
    pane.types("/high").await;
    pane.press("Enter").await;
    pane.until("the one agent", |screen| screen.contains("high one") && !screen.contains("low two")).await;
    pane.press("Enter").await;
    // The agent's row in the list names its command too: the page is there when it says the turn.
    pane.shows_all(&["$ cat a.txt", "turn 1", "high one · worker"]).await;
    pane.types("/cat a.txt").await;
    pane.press("Enter").await;
    pane.until("the command to be chosen", |screen| {
        screen.lines().any(|row| row.starts_with('›') && row.contains("cat a.txt"))
    })
    .await;
    pane.press("Enter").await;
    pane.shows_all(&["first line", "second line"]).await;
    pane.types("/second").await;
    pane.press("Enter").await;
    pane.shows("next, previous").await;
    // Each is waited for by what only the next picture shows: a terminal takes two Escapes that are read
    // together for one.
    pane.press("Escape").await;
    pane.shows("Enter all of it").await;
    pane.press("Escape").await;
    pane.shows("Enter its turns").await;
    // The first one takes the filter away.
    pane.press("Escape").await;
    pane.shows("low two").await;
    pane.press("Escape").await;
    pane.shows("Esc stops; what you write now is said next").await;
    assert_eq!(pane.knows("#{alternate_on}").await, "0");
}

/// A question stands in both pictures; one is allowed in the session, another refused in the fleet.
async fn answers(stage: &Stage, pane: &Pane) {
    pane.shows_all(&["$ touch asked-first", "? the lead wants to run this command:", "answer ›"]).await;
    pane.press("C-o").await;
    pane.shows_all(&["5 Questions 1", "touch asked-first"]).await;
    pane.press("C-o").await;
    pane.shows("answer ›").await;
    assert!(!stage.work().join("asked-first").exists());
    let hold = stage.sim().hold(TASK, 3, 0);
    pane.enter("y").await;
    made(&stage.work().join("asked-first")).await;

    pane.shows_all(&["$ touch asked-second", "answer ›"]).await;
    pane.press("C-o").await;
    pane.shows_all(&["5 Questions 1", "touch asked-second"]).await;
    pane.press("Down").await;
    pane.shows("n no").await;
    pane.press("n").await;
    pane.shows("5 Questions 0").await;
    patiently("the reply after both", hold.entered()).await;
    pane.press("C-o").await;
    pane.shows("Esc stops").await;
    assert!(!stage.work().join("asked-second").exists());
    let told = requests(stage, "lead").pop().unwrap().body.to_string();
    assert!(told.contains("refused by the person"), "{told}");

    // While it works something waits to be said.
    let next = stage.sim().hold(TASK, 4, 0);
    pane.enter("and then the rest").await;
    pane.shows("next: and then the rest").await;
    hold.release();
    pane.told("The synthesis of it.", 1).await;
    pane.told("› and then the rest", 1).await;
    patiently("what waited to be said", next.entered()).await;
    // It is stopped before the reply has come: the reply is kept, what it wants is not begun.
    pane.press("Escape").await;
    pane.shows("stopping").await;
    next.release();
    pane.told("stopped; Enter alone goes on", 1).await;
    pane.shows("Enter goes on; what you say comes instead").await;
    assert!(!stage.work().join("never").exists());
}

/// Something else comes instead, and a long command is cut.
async fn stops(stage: &Stage, pane: &Pane) {
    pane.enter("do something else").await;
    made(&stage.work().join("begun")).await;
    pane.shows("$ echo begun").await;
    pane.press("Escape").await;
    pane.shows("stopping").await;
    pane.press("Escape").await;
    pane.told("stopped; Enter alone goes on", 2).await;
    assert!(!stage.work().join("never").exists(), "what was stopped stays stopped");
    let told = requests(stage, "lead").pop().unwrap().body.to_string();
    assert!(told.contains("do something else"), "{told}");
}

/// Leaves, and is told how to go on.
async fn leaves(stage: &Stage, pane: &Pane) -> String {
    pane.press("C-d").await;
    pane.shows("once more leaves").await;
    pane.press("C-d").await;
    let session = runs(stage).await.remove(0);
    pane.shows(&format!("to go on: convoke session {session}")).await;
    pane.is_usable().await;
    session
}

/// The last of what was said is there again, and nothing is asked until something is said.
async fn takes_up_and_forks(stage: &Stage, pane: &Pane, session: &str) {
    let before = stage.sim().requests().len();
    pane.enter("clear").await;
    pane.hides("alive42").await;
    pane.enter(&format!("convoke session {}", &session[..10])).await;
    let parts = [
        "earlier exchange",
        "› do something else",
        "interrupted",
        "Enter goes on; what you say comes instead",
    ];
    pane.shows_all(&parts).await;
    pane.enter("What is left?").await;
    pane.shows("All is told.").await;
    pane.shows(IDLE).await;
    assert_eq!(stage.sim().requests().len(), before + 1);

    pane.enter("/fork").await;
    pane.shows("forked from").await;
    pane.shows(IDLE).await;
    assert_eq!(stage.sim().requests().len(), before + 1, "a copy costs nothing");
    pane.enter("Say it again").await;
    pane.shows("Told again.").await;
    pane.shows(IDLE).await;
    let request = stage.sim().requests().pop().unwrap();
    let usage = request.usage.unwrap();
    assert!(usage.cache_read_tokens > usage.prompt_tokens() / 2, "the fork reads what is cached: {usage:?}");
    let all = runs(stage).await;
    assert_eq!(all.len(), 2, "{all:?}");
}
