//! Writes the journal that `tests/fixtures/v2.db` is a copy of: `cargo run -p convoke-journal --example
//! make_fixture -- tests/fixtures/v2.db`. To be run once per format version; an old fixture is never made
//! again.

use std::error::Error;
use std::path::Path;

use convoke_journal::{
    Batch, Change, Changed, Journal, KeyedInput, Location, Options, Process, StreamId, Update,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let target = std::env::args_os().nth(1).ok_or("give the file to write")?;
    if Path::new(&target).exists() {
        return Err("that file exists; old fixtures are kept as they are".into());
    }
    // Made elsewhere and copied, so that lock files do not end up in the fixture folder.
    let place = std::env::temp_dir().join(format!("convoke-fixture-{}", std::process::id()));
    let file = place.join("journal.db");
    let mut who = Process::current([7; 10]);
    who.boot = "a machine of long ago".to_owned();
    who.pid_namespace = "pid:[1]".to_owned();
    let journal = Journal::open(Location::Sqlite(file.clone()), Options::new(who)).await?;

    let agent = StreamId::new("a_fixture")?;
    let other = StreamId::new("a_other")?;
    let input = |stream: &StreamId, key: &str, body: &str| KeyedInput {
        stream: stream.clone(),
        key: key.to_owned(),
        body: body.to_owned(),
    };
    journal.submit(&input(&agent, "task", r#"{"text":"hello"}"#), 1_000).await?;
    journal.submit(&input(&agent, "later", r#"{"text":"wait"}"#), 1_001).await?;
    let lease = journal.own(&agent).await?;
    let first = Batch {
        acks: vec!["task".to_owned()],
        summary: Some(r#"{"title":"a fixture"}"#.to_owned()),
        ..Batch::events(2_000, [r#"{"type":"started","nul":"\u0000"}"#, r#"{"type":"spoke","snow":"☃"}"#])
    };
    journal.append(&lease, 0, &first).await?;
    let long = format!(r#"{{"type":"long","text":"{}"}}"#, "x".repeat(70_000));
    let second = Batch {
        inputs: vec![input(&other, "mail", r#"{"text":"hi"}"#)],
        results: vec![("result".to_owned(), r#"{"ok":true}"#.to_owned())],
        ..Batch::events(3_000, [long])
    };
    journal.append(&lease, 2, &second).await?;
    let ledger = StreamId::new("s_fixture:ledger")?;
    let spent = |total: u64, nanos: u64| {
        let state = format!(r#"{{"spent":{total}}}"#);
        let event = format!(r#"{{"type":"spent","nanos":{nanos}}}"#);
        Change::new(move |_| Ok(Changed { state: state.clone(), events: vec![event.clone()] }))
    };
    journal.update(&ledger, 4_000, &spent(3, 3)).await?;
    let third = Batch {
        updates: vec![Update { stream: ledger, change: spent(7, 4) }],
        ..Batch::events(5_000, [r#"{"type":"ended"}"#])
    };
    journal.append(&lease, 3, &third).await?;
    journal.close().await?;
    std::fs::copy(&file, &target)?;
    std::fs::remove_dir_all(&place)?;
    Ok(())
}
