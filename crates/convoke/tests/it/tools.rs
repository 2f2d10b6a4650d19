//! A tool of the embedding program, through the front door.

use convoke::{Error, Role, Session, SessionBuilder, json};
use convoke_sim::{Script, SimConfig, Simulator, calls, says};

use crate::note::Note;

#[tokio::test]
async fn a_tool_is_called_through_the_front_and_a_resume_without_it_says_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let replies = [calls("note", json!({"text": "a"})), says("noted"), says("again")];
    let model = Simulator::start(SimConfig::new(Script::new().conversation("*", replies))).await.unwrap();
    let with = |builder: SessionBuilder| {
        builder
            .state_dir(place.path().join("state"))
            .journal(place.path().join("state/journal.db"))
            .helper(env!("CARGO_BIN_EXE_convoke-library-helper"))
            .base_url(model.url())
            .api_key("any")
    };
    let note = Note::default();
    let session = with(Session::builder(&work)).tool(note.clone(), [Role::Lead]).build().await.unwrap();
    let answer = session.run("note a").await.unwrap();
    assert_eq!(answer.text, "noted");
    let sent = model.requests()[1].body["messages"].to_string();
    assert!(sent.contains("noted: a"), "{sent}");
    let [call] = note.calls().try_into().unwrap();
    assert_eq!(call.dir, work.canonicalize().unwrap());
    assert!(call.key.starts_with(&call.agent) && call.key != call.agent, "{call:?}");
    session.close().await.unwrap();
    let without = with(Session::resume(&answer.session)).build().await.unwrap();
    let refused = without.run("more").await.unwrap_err();
    assert!(refused.to_string().contains("the tool note"), "{refused}");
    without.close().await.unwrap();
    let again =
        with(Session::resume(&answer.session)).tool(note.clone(), [Role::Lead]).build().await.unwrap();
    assert_eq!(again.go_on().await.unwrap().text, "again");
    let first = &model.requests()[0].body;
    let last = &model.requests()[2].body;
    assert_eq!((&first["tools"], &first["system"]), (&last["tools"], &last["system"]));
    let twice = with(Session::builder(&work))
        .tool(note.clone(), [Role::Lead])
        .tool(note, [Role::Worker])
        .build()
        .await;
    assert!(matches!(&twice, Err(Error::Setting(why)) if why.contains("another name")), "{twice:?}");
}
