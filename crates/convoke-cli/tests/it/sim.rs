//! `convoke sim`: a server for any client.

use crate::stage::{Stage, patiently, to_its_end};

#[tokio::test]
async fn the_simulator_says_where_it_is_and_answers_like_the_offline_model() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("main.py"), "print('hello')  # TODO: more\n").unwrap();
    let mut sim = stage.start(&["sim"]);
    let url = patiently("the address", sim.first_line()).await;
    let mut client = stage.command(&["find", "the TODO comments"]);
    client.env("ANTHROPIC_BASE_URL", url.trim_end()).env("ANTHROPIC_API_KEY", "any");
    let seen = to_its_end(client).await.exits(0);
    assert!(seen.stdout.contains("main.py:1"), "{}", seen.stdout);
    sim.says("1 · c_").await;
    sim.signal("INT");
    let ended = sim.end().await.exits(0);
    assert!(ended.stderr.contains("turn 1 · accepted"), "{}", ended.stderr);
}

#[tokio::test]
async fn the_simulator_replies_from_a_script_as_a_plain_server() {
    let stage = Stage::bare();
    let script =
        r#"{"conversations": {"*": [{"says": "From the script."}]}, "faults": [{"kind": "overloaded529"}]}"#;
    std::fs::write(stage.work().join("script.json"), script).unwrap();
    let mut sim = stage.start(&["sim", "--as", "plain", "--script", "script.json"]);
    let url = patiently("the address", sim.first_line()).await;
    let mut client = stage.command(&["say", "something"]);
    client.env("ANTHROPIC_BASE_URL", url.trim_end());
    assert_eq!(
        to_its_end(client).await.exits(0).stdout,
        "From the script.\n",
        "a base URL without a key is talked to"
    );
    sim.signal("TERM");
    let ended = sim.end().await.exits(0);
    let refused = ended.stderr.matches("refused with 400").count();
    assert_eq!(refused, 4, "each part that it does not take, once: {}", ended.stderr);
    assert!(ended.stderr.contains("6 requests"), "one met the fault: {}", ended.stderr);
}

#[tokio::test]
async fn a_script_that_cannot_be_used_is_wrong_usage() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("broken.json"), "{").unwrap();
    for file in ["broken.json", "missing.json"] {
        let seen = stage.run(&["sim", "--script", file]).await.exits(2);
        assert!(seen.stderr.contains(file), "{}", seen.stderr);
    }
}
