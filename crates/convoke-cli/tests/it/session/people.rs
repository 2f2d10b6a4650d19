//! The team in a session: its members, what waits in the mail, and words to one of them.

use convoke_sim::{Script, says};

use super::{IDLE, runs, say, session};
use crate::stage::Stage;

#[tokio::test]
async fn b18_the_team_and_its_mail_are_shown_to_the_person() {
    let stage = Stage::bare();
    let pane = session(&stage, "--offline").await;
    pane.enter("Spawn alice (coder) and bob (tester). Have alice send bob a message.").await;
    pane.told("All of it has ended. Who did what:", 1).await;
    pane.shows(IDLE).await;
    pane.enter("/team").await;
    pane.until("everybody by name", |screen| {
        let told = screen.rsplit("/team").next().unwrap();
        ["lead", "alice", "coder", "bob", "tester", "idle"].iter().all(|part| told.contains(part))
    })
    .await;
    pane.enter("/inbox").await;
    pane.shows("no letter waits for lead").await;
    // The fleet has the letters that were read too.
    pane.press("C-o").await;
    pane.press("3").await;
    pane.shows_all(&["[3 Mail", "alice", "bob"]).await;
}

#[tokio::test]
async fn w12_looking_at_the_inbox_takes_nothing() {
    let stage =
        Stage::with(Script::new().conversation("*", [says("Hello."), says("Read."), says("No.")])).await;
    let pane = session(&stage, "").await;
    say(&pane, "Hello").await;
    let run = runs(&stage).await.remove(0);
    stage.run(&["mail", "send", "lead", "Mind the lexer", "--run", &run]).await.exits(0);
    for times in 1..=2 {
        pane.enter("/inbox").await;
        pane.told("Mind the lexer", times).await;
    }
    assert_eq!(stage.sim().requests().len(), 1);
    // Whatever is said next: the lead reads its mail first.
    pane.enter("Anything new?").await;
    pane.told("@ person writes: Mind the lexer", 1).await;
    pane.shows("No.").await;
    pane.shows(IDLE).await;
    let last = stage.sim().requests().pop().unwrap().body["messages"].to_string();
    assert_eq!(last.matches("Mind the lexer").count(), 1, "the lead reads it, once: {last}");
    pane.enter("/inbox").await;
    pane.shows("no letter waits for lead").await;
}

#[tokio::test]
async fn a_teammate_is_written_to_from_the_fleet() {
    let stage = Stage::bare();
    let pane = session(&stage, "--offline").await;
    say(&pane, "Spawn alice (coder).").await;
    pane.press("C-o").await;
    pane.shows("alice").await;
    pane.press("End").await;
    pane.until("alice to be chosen", |screen| {
        screen.lines().any(|row| row.starts_with('›') && row.contains(" alice "))
    })
    .await;
    pane.press("m").await;
    pane.types("Where is the parser?").await;
    pane.shows("Where is the parser?").await;
    pane.press("Enter").await;
    pane.hides("Where is the parser?").await;
    pane.press("C-o").await;
    pane.shows("sent to alice").await;
    // She reads it and tells the lead.
    pane.told("@ alice reports:", 1).await;
    let run = runs(&stage).await.remove(0);
    let mail = stage.run(&["mail", "list", "alice", "--all", "--run", &run]).await.exits(0).stdout;
    assert!(mail.contains("Where is the parser?"), "{mail}");
}
