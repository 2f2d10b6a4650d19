//! Events: watches a session while it works, and stops it from another task if it takes too long.

#![expect(clippy::print_stdout, reason = "an example prints what happens")]

use std::time::Duration;

use convoke::{Error, Event, Session};

#[tokio::main]
async fn work(dir: String) -> Result<(), Error> {
    let session = Session::builder(dir).offline().budget_agents(20).build().await?;
    let mut events = session.events();
    let watching = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            match event {
                Event::AgentStarted { role, label, .. } => println!("{role} started: {label}"),
                Event::ToolStarted { tool, input, .. } => println!("{tool}: {input}"),
                Event::FindingReported { finding } => println!("found: {}", finding.claim),
                Event::FindingVerified { claim, verdict, .. } => println!("{verdict:?}: {claim}"),
                Event::Finished { status } => {
                    println!("finished: {status:?}");
                    break;
                }
                // There will be more kinds of events.
                _ => {}
            }
        }
    });
    // Clones are the same session.
    let clock = session.clone();
    let clock = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(300)).await;
        clock.stop();
    });
    let answer = session.run("Review this directory").await?;
    clock.abort();
    // The watching task has only printed.
    let _ = watching.await;
    println!("{} findings by {} agents", answer.findings.len(), answer.spend.agents);
    let more = session.follow_up("Where are TODO comments?").await?;
    println!("{}", more.text);
    Ok(())
}

fn main() -> Result<(), Error> {
    convoke::helper_entry();
    work(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()))
}
