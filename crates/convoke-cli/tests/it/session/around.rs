//! What surrounds the talk: completion, what was written before, a session that another process drives.

use convoke_sim::{Script, says};

use super::{IDLE, bash, runs, say, session};
use crate::pane::Pane;
use crate::stage::{Stage, patiently};

#[tokio::test]
async fn tab_completes_commands_their_arguments_and_files() {
    let stage = Stage::with(Script::new().conversation("*", [says("One."), says("Two.")])).await;
    std::fs::create_dir(stage.work().join("source")).unwrap();
    for name in ["lexer.rs", "parser.rs"] {
        std::fs::write(stage.work().join("source").join(name), "").unwrap();
    }
    let pane = session(&stage, "").await;
    pane.types("/und").await;
    pane.press("Tab").await;
    pane.shows("› /undo").await;
    pane.press("C-u").await;
    pane.shows(IDLE).await;
    pane.types("/mode of").await;
    pane.press("Tab").await;
    pane.shows("› /mode off").await;
    pane.press("C-u").await;
    pane.shows(IDLE).await;
    pane.types("Read sour").await;
    pane.press("Tab").await;
    pane.shows("source/parser.rs").await;
    pane.types("le").await;
    pane.hides("source/parser.rs").await;
    // Enter takes what is offered, and sends nothing then.
    pane.press("Enter").await;
    pane.shows("› Read source/lexer.rs").await;
    pane.hides("▸").await;
    assert!(stage.sim().requests().is_empty());
    say(&pane, "please").await;
    let first = stage.sim().requests()[0].body["messages"][0].to_string();
    assert!(first.contains("Read source/lexer.rs please"), "{first}");

    // What was written is there again, also in the next session.
    pane.press("Up").await;
    pane.shows("› Read source/lexer.rs").await;
    pane.press("C-u").await;
    pane.enter("/quit").await;
    pane.is_usable().await;
    pane.enter("clear; convoke").await;
    let screen = pane.shows(IDLE).await;
    assert!(!screen.contains("· touches"), "later ones say it in one line: {screen}");
    pane.press("Up").await;
    pane.press("Up").await;
    pane.shows("› Read source/lexer.rs").await;
}

#[tokio::test]
async fn a_session_that_another_process_drives_is_watched_and_taken_up_when_that_ends() {
    let script = Script::new()
        .conversation("*", [bash("echo seen by both"), says("The first answer."), says("And more.")]);
    let stage = Stage::with(script).await;
    let hold = stage.sim().hold("drive it there", 1, 0);
    let driven = stage.start(&["run", "drive it there"]);
    patiently("the reply to be held", hold.entered()).await;
    let run = runs(&stage).await.remove(0);
    let pane = Pane::open(&stage).await;
    pane.enter(&format!("convoke session {run}")).await;
    pane.shows("another process drives this session: it is watched here").await;
    pane.shows("$ echo seen by both").await;
    pane.enter("may I?").await;
    pane.shows("here it is only watched").await;
    hold.release();
    pane.shows("The first answer.").await;
    driven.end().await.exits(0);
    pane.shows("you can go on with it here").await;
    assert_eq!(stage.sim().requests().len(), 2, "watching asks nothing");
    say(&pane, "And now?").await;
    pane.shows("And more.").await;
    let last = stage.sim().requests().pop().unwrap().body["messages"].to_string();
    assert!(last.contains("And now?") && !last.contains("may I?"), "{last}");
}
