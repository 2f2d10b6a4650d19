//! `convoke resume --script` with the real binary: an edited script goes on in the same session, and only
//! what is new or dead is asked.

use convoke_sim::{Fault, FaultKind, SimConfig, says};
use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::repo::write;
use crate::stage::Stage;
use crate::workflow_run::{Callees, script, stage};

const FIVE: &str =
    "return { all: await parallel(['a', 'b', 'die 1', 'die 2', 'die 3'].map(x => () => agent(x))), args }";

/// A stage on which three of the five die.
async fn three_dead() -> Stage {
    let stage = stage(FIVE).await;
    for prompt in ["die 1", "die 2", "die 3"] {
        let fault = Fault::new(FaultKind::BadRequest400("no such luck".into()));
        stage.sim().push_fault(fault.on(prompt).times(u32::MAX));
    }
    stage
}

fn healed() -> SimConfig {
    SimConfig::new(Callees(|prompt| vec![says(&format!("healed {prompt}"))]))
}

fn asked(stage: &Stage) -> Vec<String> {
    let prompt = |body: &Value| body["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    let mut asked: Vec<String> = stage.sim().requests().iter().map(|request| prompt(&request.body)).collect();
    asked.sort();
    asked
}

#[tokio::test]
async fn an_edited_script_goes_on_in_its_session_and_only_the_edited_and_the_dead_are_asked() {
    let mut stage = three_dead().await;
    let seen =
        stage.run(&["workflow", "run", "flow.js", "--args", "{\"n\": 1}", "-o", "json"]).await.exits(3);
    let first = seen.json();
    let session = first["run"].as_str().unwrap().to_owned();
    stage.turn_to(healed()).await;
    write(&stage.work(), "edited.js", &script(&FIVE.replace("'b'", "'b, but better'")));
    let seen = stage.run(&["resume", &session, "--script", "edited.js", "-o", "json"]).await.exits(0);
    let report = seen.json();
    let all = ["did a", "healed b, but better", "healed die 1", "healed die 2", "healed die 3"];
    assert_eq!(report["value"], json!({"all": all, "args": {"n": 1}}), "its arguments are remembered");
    assert_eq!(asked(&stage), ["b, but better", "die 1", "die 2", "die 3"]);
    assert_eq!(
        (&report["run"], &report["status"], &report["follow_ups"]),
        (&json!(session), &json!("done"), &json!([]))
    );
    let programs: Vec<&str> = report["programs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|program| program["status"].as_str().unwrap())
        .collect();
    assert_eq!(programs, ["partial", "complete"]);
    assert_ne!(report["programs"][0]["run"], report["programs"][1]["run"]);
    // What stands for the session from now on is the second run.
    let value = stage.run(&["runs", "show", &session, "--value"]).await.exits(0);
    assert_eq!(value.json()["all"][1], "healed b, but better");
    let listed = stage.run(&["runs", "list", "-o", "json"]).await.json();
    assert_eq!(listed["runs"][0]["status"], "done", "{listed:#}");
    let again = stage.run(&["resume", &session]).await.exits(0);
    assert_eq!(
        (again.json()["all"][0].clone(), asked(&stage).len()),
        (json!("did a"), 4),
        "{}",
        again.stderr
    );
    stage.run(&["runs", "retry", &session]).await.exits(0);
    // Other arguments, and a third run from the second one.
    let text = ["resume", &session, "--script", "edited.js", "--arg-text", "words"];
    assert_eq!(stage.run(&text).await.exits(0).json()["args"], "words");
    assert_eq!(asked(&stage).len(), 4);
}

#[tokio::test]
async fn an_edited_script_that_is_partial_is_resumed_and_retried_itself() {
    let mut stage = three_dead().await;
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(3);
    let session = seen.resume_args()[1].clone();
    write(&stage.work(), "edited.js", &script(&FIVE.replace("'die 3'", "'c'")));
    let seen = stage.run(&["resume", &session, "--script", "edited.js"]).await.exits(3);
    assert!(seen.stderr.contains("2 of 5 agent calls did not end well"), "{}", seen.stderr);
    let listed = stage.run(&["runs", "list"]).await.exits(0);
    assert!(listed.stdout.contains("partial"), "{}", listed.stdout);
    stage.turn_to(healed()).await;
    let seen = stage.run(&["resume", &session]).await.exits(0);
    assert_eq!(seen.json()["all"], json!(["did a", "did b", "healed die 1", "healed die 2", "did c"]));
    assert_eq!(asked(&stage), ["die 1", "die 2"]);
}

#[tokio::test]
async fn what_has_not_ended_or_is_nobodys_own_and_what_cannot_be_run_is_refused_and_starts_nothing() {
    let stage =
        stage("await agent('a')\nreturn await parallel([1, 2, 3].map(x => () => agent(`b ${x}`)))").await;
    let seen = stage.run(&["workflow", "run", "flow.js", "--budget-agents", "2"]).await.exits(4);
    let session = seen.resume_args()[1].clone();
    let refused = async |args: &[&str], says: &[&str]| {
        let before = stage.sim().requests().len();
        let seen = stage.run(args).await.exits(2);
        says.iter().for_each(|words| assert!(seen.stderr.contains(words), "{words:?}: {}", seen.stderr));
        assert_eq!(stage.sim().requests().len(), before);
    };
    let edited = ["resume", session.as_str(), "--script", "edited.js"];
    write(&stage.work(), "edited.js", &script("return [await agent('a'), await agent('c')]"));
    refused(&edited, &["has not ended", &format!("`convoke sessions stop {session}` first")]).await;
    stage.run(&["runs", "stop", &session]).await;
    write(&stage.work(), "bad.js", &script("return await agent('a'"));
    refused(&["resume", &session, "--script", "bad.js"], &["bad.js cannot be run", "bad.js:"]).await;
    refused(&["resume", &session, "--script", "edited.js", "--args", "{"], &["--args"]).await;
    refused(&["resume", &session, "--args", "1"], &["--args has no meaning without --script"]).await;
    refused(&["resume", &session, "--script", "edited.js", "--say", "x"], &["cannot be used with"]).await;
    let seen = stage.run(&edited).await.exits(0);
    assert_eq!((seen.json(), stage.sim().requests().len()), (json!(["did a", "did c"]), 2));
    // One that was left in the middle does not make way by itself.
    write(&stage.work(), "ask.js", &script("await agent('d')\nreturn await checkpoint('Go on?')"));
    let seen = stage.run(&["workflow", "run", "ask.js", "-o", "json"]).await.exits(5);
    let waits = seen.json()["run"].as_str().unwrap().to_owned();
    refused(
        &["resume", &waits, "--script", "edited.js"],
        &["was left in the middle", "goes on with it as it is"],
    )
    .await;
    // Until the person stops it: then the edited one takes its place, and no agent that had ended is asked
    // again.
    stage.run(&["runs", "stop", &waits]).await;
    write(&stage.work(), "edited.js", &script("return [await agent('d'), await agent('e')]"));
    let before = stage.sim().requests().len();
    let seen = stage.run(&["resume", &waits, "--script", "edited.js"]).await.exits(0);
    assert_eq!((seen.json(), stage.sim().requests().len()), (json!(["did d", "did e"]), before + 1));
    // And a task's session has no workflow of the person's.
    let offline = ["run", "--offline", "look around", "-o", "json"];
    let task = stage.run(&offline).await.json()["run"].as_str().unwrap().to_owned();
    refused(&["resume", &task, "--script", "edited.js"], &["has no workflow of yours"]).await;
}

#[tokio::test]
async fn at_a_terminal_an_edited_script_is_agreed_to_unless_yes_is_said() {
    let stage = stage("return await agent('a')").await;
    let seen = stage.run(&["workflow", "run", "flow.js", "-o", "json"]).await.exits(0);
    let session = seen.json()["run"].as_str().unwrap().to_owned();
    write(&stage.work(), "edited.js", &script("return await agent('b')"));
    let mut asked = Terminal::open(&stage, &format!("resume {session} --script edited.js"));
    asked.shows("Run it? ").await;
    asked.types("n\n").await;
    assert!(asked.end().await.exits(1).text.contains("not run: you did not agree"));
    assert_eq!(stage.sim().requests().len(), 1);
    let ran =
        Terminal::open(&stage, &format!("resume {session} --script edited.js --yes")).end().await.exits(0);
    assert!(ran.text.contains("did b") && !ran.text.contains("Run it?"), "{}", ran.text);
}

#[tokio::test]
async fn at_a_terminal_a_workflow_is_asked_about_again_when_one_that_it_calls_was_changed() {
    let stage = stage("return await workflow('child')").await;
    let child = |prompt: &str| {
        format!("export const meta = {{ name: 'child', description: 'x' }}\nreturn await agent('{prompt}')")
    };
    let file = stage.home().join(".config/convoke/workflows");
    std::fs::create_dir_all(&file).unwrap();
    write(&file, "child.js", &child("one"));
    let line = "workflow run flow.js";
    let mut asked = Terminal::open(&stage, line);
    asked.shows("calls child, digest ").await;
    asked.shows("Run it? ").await;
    asked.types("a\n").await;
    assert!(asked.end().await.exits(0).text.contains("did one"));
    assert!(!Terminal::open(&stage, line).end().await.exits(0).text.contains("Run it?"));
    write(&file, "child.js", &child("two"));
    let mut other = Terminal::open(&stage, line);
    other.shows("Run it? ").await;
    other.types("n\n").await;
    other.end().await.exits(1);
}
