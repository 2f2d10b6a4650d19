//! What is done to one agent from the fleet: it is stopped, tried again, or its finding opened in an editor.

use convoke_sim::{SimConfig, calls, says};
use serde_json::json;

use super::{IDLE, bash, made, session};
use crate::pane::Pane;
use crate::stage::{Stage, patiently};
use crate::team::{Team, finding, requests, workflow};

async fn stage(lead: Vec<convoke_sim::Reply>) -> Stage {
    let team = Team::new(lead).workers(|subtask| {
        let report = calls("report_findings", json!({"summary": subtask, "findings": [finding(subtask)]}));
        vec![bash("cat a.txt"), report]
    });
    let stage = Stage::with(SimConfig::new(team)).await;
    std::fs::write(stage.work().join("a.txt"), "first line\nsecond line\n").unwrap();
    stage
}

/// Whether the chosen row says this.
fn chosen(screen: &str, part: &str) -> bool {
    screen.lines().any(|row| row.starts_with('›') && row.contains(part))
}

#[tokio::test]
async fn one_worker_is_stopped_while_the_others_go_on_and_is_tried_again() {
    let again = says("Two of three.").when_last_contains("to be tried again", says("Tried once more."));
    let stage = stage(vec![workflow(&["low one", "low two", "low three"]), again.clone(), again]).await;
    let pane = session(&stage, "--verify off").await;
    let hold = stage.sim().hold("<subtask>", 1, 0);
    pane.enter("Look at three things").await;
    patiently("a worker to be held", hold.entered()).await;
    pane.shows("working: 1 running · 2 done").await;
    pane.press("C-o").await;
    pane.shows("[1 Agents 4]").await;
    // Only those that run; the lead is the first of them.
    pane.press("f").await;
    pane.press("f").await;
    pane.shows("2 of 4").await;
    pane.press("End").await;
    pane.until("the worker to be chosen", |screen| chosen(screen, " low ")).await;
    pane.press("s").await;
    pane.shows("? y/n").await;
    // Any other key means no.
    pane.press("x").await;
    pane.hides("? y/n").await;
    pane.press("s").await;
    pane.shows("? y/n").await;
    pane.press("y").await;
    // The others' results come to the lead without it.
    pane.shows("2 Tasks").await;
    pane.press("C-o").await;
    pane.told("is stopped; the others go on", 1).await;
    pane.told("Two of three.", 1).await;
    pane.shows(IDLE).await;
    hold.release();
    let told = requests(&stage, "lead").pop().unwrap().body.to_string();
    assert!(told.contains("2 of 3") || told.contains("cancelled"), "the lead is told: {told}");

    // The one that was stopped is tried again, through the lead.
    pane.press("C-o").await;
    pane.shows("only running").await;
    pane.press("Escape").await;
    let is_stopped = |row: &str| row.contains(" low ") && row.contains("stopped");
    let screen = pane.until("one to be stopped", |screen| screen.lines().any(is_stopped)).await;
    let row = screen.lines().position(is_stopped);
    let lead = screen.lines().position(|row| row.contains(" lead ")).unwrap();
    let rows =
        screen.lines().skip(lead).take(row.unwrap() - lead + 1).filter(|row| row.contains(" low ")).count();
    pane.press("Home").await;
    for _ in 0..rows {
        pane.press("Down").await;
    }
    pane.until("it to be chosen", |screen| chosen(screen, "stopped")).await;
    pane.press("r").await;
    pane.press("C-o").await;
    pane.told("Tried once more.", 1).await;
    pane.shows(IDLE).await;
    assert_eq!(requests(&stage, "lead").len(), 3);
}

#[tokio::test]
async fn a_finding_is_opened_at_its_line_in_the_persons_editor() {
    let stage = stage(vec![workflow(&["high one"]), says("The end.")]).await;
    let editor = stage.home().join("editor");
    let told = stage.home().join("told");
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\necho in the editor; read answer\n", told.display());
    std::fs::write(&editor, script).unwrap();
    let status = std::process::Command::new("chmod").arg("+x").arg(&editor).status().unwrap();
    assert!(status.success());
    // It is called by the name of one that is known to take a line.
    let vi = stage.home().join("vi");
    std::fs::rename(&editor, &vi).unwrap();
    let pane = Pane::with(&stage, (80, 24), &[("EDITOR", vi.to_str().unwrap())]).await;
    pane.enter("convoke").await;
    pane.shows(IDLE).await;
    pane.enter("Look at one thing").await;
    pane.told("The end.", 1).await;
    pane.shows(IDLE).await;

    pane.enter("/findings").await;
    pane.shows("[4 Findings 1]").await;
    pane.press("Enter").await;
    pane.shows_all(&["Evidence", "high · confirmed", "a.txt:2"]).await;
    pane.press("o").await;
    made(&told).await;
    pane.shows("in the editor").await;
    let given = std::fs::read_to_string(&told).unwrap();
    let file = stage.work().canonicalize().unwrap().join("a.txt");
    assert_eq!(given.lines().collect::<Vec<_>>(), ["+2", file.to_str().unwrap()]);
    pane.press("Enter").await;
    // The picture is there again, and keys are keys.
    pane.shows("Evidence").await;
    pane.press("q").await;
    pane.shows("[4 Findings 1]").await;
    pane.press("q").await;
    pane.shows(IDLE).await;

    // A message is written there too, and sent by Enter alone.
    std::fs::write(&vi, "#!/bin/sh\nfor last; do :; done\nprintf 'from the\\neditor' > \"$last\"\n").unwrap();
    pane.enter("/editor").await;
    pane.shows("from the").await;
    assert_eq!(requests(&stage, "lead").len(), 2, "leaving the editor sends nothing");
}
