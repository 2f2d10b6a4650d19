//! Two processes on one journal: one drives a workflow, the other watches, pauses, stops, answers and tries
//! again.

use std::collections::BTreeSet;

use convoke_sim::{Brain, Context, Fault, FaultKind, ReplyHold, Script, Scripted, SimConfig, calls, says};
use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::stage::{Stage, Started, patiently};

/// Every agent says what it was asked; a lead starts this program and says something.
struct Says {
    program: String,
}

impl Brain for Says {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let leads = crate::team::role(request) == "lead";
        let prompt = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let replies = match leads {
            true => vec![
                calls("Workflow", json!({"script": self.program})),
                says("Started."),
                says("The end."),
                says("The whole."),
            ],
            false => vec![says(&format!("did {prompt}"))],
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

/// Two agents at once, and one after them.
const TWO_STEPS: &str = "const both = await parallel([() => agent('first'), () => agent('second')])\nreturn \
    [...both, await agent('third')]";
const ASKS: &str = "const [who, did] = await parallel([() => checkpoint('Who decides?'), () => \
    agent('meanwhile')])\n\
                    return {who, did}";

/// A stage with a program in its directory.
async fn stage(body: &str) -> Stage {
    let program = format!("export const meta = {{name: 'probe', description: 'tries something'}}\n{body}\n");
    let stage = Stage::with(SimConfig::new(Says { program: program.clone() })).await;
    std::fs::write(stage.work().join("probe.js"), program).unwrap();
    stage
}

const RUN: [&str; 3] = ["workflow", "run", "probe.js"];

/// The newest session.
async fn newest(stage: &Stage) -> Value {
    stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json()["runs"][0].clone()
}

async fn id(stage: &Stage) -> String {
    newest(stage).await["run"].as_str().unwrap().to_owned()
}

/// A session both of whose first agents are held, its id, and what holds them.
async fn held(stage: &Stage) -> (Started, String, [ReplyHold; 2]) {
    held_with(stage, &[]).await
}

async fn held_with(stage: &Stage, args: &[&str]) -> (Started, String, [ReplyHold; 2]) {
    let holds = ["first", "second"].map(|prompt| stage.sim().hold(prompt, 0, 1));
    let run = stage.start(&[&RUN[..], args].concat());
    for hold in &holds {
        patiently("the agents to be at work", hold.entered()).await;
    }
    (run, id(stage).await, holds)
}

fn release(holds: [ReplyHold; 2]) {
    holds.iter().for_each(ReplyHold::release);
}

const VALUE: [&str; 3] = ["did first", "did second", "did third"];

/// Goes on with the session to its end; no agent was asked twice.
async fn goes_on(stage: &Stage, id: &str) {
    let seen = stage.run(&["resume", id]).await.exits(0);
    assert_eq!(seen.json(), json!(VALUE), "{}", seen.stderr);
    assert_eq!(stage.sim().requests().len(), 3, "nobody is asked twice");
}

#[tokio::test]
async fn a_run_is_paused_from_another_process_and_goes_on_later() {
    let stage = stage(TWO_STEPS).await;
    let (mut run, id, holds) = held(&stage).await;
    let mut pause = stage.start(&["runs", "pause", &id]);
    pause.says("what is under way is finished first").await;
    run.says("`convoke sessions pause`: nothing new starts").await;
    release(holds);
    let seen = run.end().await.exits(5);
    assert!(
        seen.stderr.contains("stopped by `convoke sessions pause`; everything up to here is recorded"),
        "{}",
        seen.stderr
    );
    assert_eq!(seen.stdout, "");
    let seen = pause.end().await.exits(0);
    assert!(seen.stderr.contains(&format!("paused: {id}")), "{}", seen.stderr);
    assert!(seen.stderr.contains(&format!("resume: convoke resume {id}")), "{}", seen.stderr);
    assert_eq!(stage.sim().requests().len(), 2, "what was under way is finished, and nothing new has begun");
    let again = stage.run(&["runs", "pause", &id, "--output", "json"]).await.exits(0);
    assert_eq!((&again.json()["came_to"], &again.json()["status"]), (&json!("not_running"), &json!("open")));
    goes_on(&stage, &id).await;
}

#[tokio::test]
async fn a_pause_that_a_killed_process_never_heard_does_not_hold_up_whoever_resumes() {
    let stage = stage(TWO_STEPS).await;
    let (run, id, holds) = held(&stage).await;
    run.signal("STOP");
    let mut pause = stage.start(&["runs", "pause", &id]);
    pause.says("what is under way is finished first").await;
    run.signal("KILL");
    assert_eq!(run.code().await, None);
    let seen = pause.end().await.exits(0);
    assert!(seen.stderr.contains(&format!("the process that drove {id} is gone")), "{}", seen.stderr);
    release(holds);
    let seen = stage.run(&["resume", &id]).await.exits(0);
    assert_eq!(seen.json(), json!(VALUE), "{}", seen.stderr);
    assert_eq!(stage.sim().requests().len(), 5, "only what was in flight is sent again");
}

#[tokio::test]
async fn something_said_with_a_resume_is_heard_by_the_lead() {
    let stage = Stage::with(Script::new().conversation("*", [says("one"), says("two")])).await;
    stage.run(&["run", "hello there"]).await.exits(0);
    let seen = stage.run(&["resume", &id(&stage).await, "--say", "and more"]).await.exits(0);
    assert!(seen.stdout.contains("two"), "{}", seen.stdout);
    let last = stage.sim().requests().pop().unwrap().body;
    assert!(last["messages"].to_string().contains("and more"), "{last}");
}

#[tokio::test]
async fn a_run_is_stopped_from_another_process_and_a_resume_begins_a_new_pass() {
    let stage = stage(TWO_STEPS).await;
    let (mut run, id, holds) = held(&stage).await;
    let workflow = newest(&stage).await["programs"][0]["run"].as_str().unwrap().to_owned();
    let stop = stage.start(&["runs", "stop", &workflow]);
    run.says("`convoke sessions stop`: nothing new starts").await;
    release(holds);
    run.end().await.exits(5);
    let seen = stop.end().await.exits(0);
    assert!(seen.stderr.contains(&format!("workflow {workflow} is recorded as stopped")), "{}", seen.stderr);
    let listed = stage.run(&["runs", "list"]).await.exits(0);
    assert!(listed.stdout.contains("stopped"), "{}", listed.stdout);
    let again = stage.run(&["runs", "stop", &id]).await.exits(0);
    assert!(again.stderr.contains("there is nothing to stop"), "{}", again.stderr);
    goes_on(&stage, &id).await;
}

#[tokio::test]
async fn after_a_stop_or_a_pause_a_resume_names_what_changed_since_and_tells_nobody() {
    for word in ["stop", "pause"] {
        let stage = stage(TWO_STEPS).await;
        let (mut run, id, holds) = held_with(&stage, &["-o", "json"]).await;
        let asking = stage.start(&["runs", word, &id]);
        run.says("nothing new starts").await;
        release(holds);
        let report = run.end().await.exits(5).json();
        let schema: Value =
            serde_json::from_str(include_str!("../../../../docs/schema/run.schema.json")).unwrap();
        let errors: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&report)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
        asking.end().await.exits(0);
        std::fs::write(stage.work().join("new.txt"), "new").unwrap();
        let seen = stage.run(&["resume", &id]).await.exits(0);
        assert!(seen.stderr.contains("changed meanwhile: new.txt\n"), "{word}: {}", seen.stderr);
        assert_eq!(seen.json(), json!(VALUE));
    }
}

#[tokio::test]
async fn a_run_that_nobody_drives_is_stopped_without_anybody_to_ask() {
    let stage = stage(ASKS).await;
    stage.run(&RUN).await.exits(5);
    let id = id(&stage).await;
    let seen = stage.run(&["runs", "stop", &id]).await.exits(0);
    assert!(seen.stderr.contains("is recorded as stopped"), "{}", seen.stderr);
    let watched = stage.run(&["runs", "watch", &id]).await.exits(5);
    assert!(watched.stderr.contains(&format!("{id}: stopped")), "{}", watched.stderr);
    // The new pass asks again, and what was done is served.
    stage.run(&["resume", &id]).await.exits(5);
    let seen = stage.run(&["resume", &id, "--answer", "1=me"]).await.exits(0);
    assert_eq!(seen.json(), json!({"who": "me", "did": "did meanwhile"}));
    assert_eq!(stage.sim().requests().len(), 1);
}

#[tokio::test]
async fn a_watcher_sees_every_event_disturbs_nobody_and_ends_with_the_run() {
    let stage = stage(TWO_STEPS).await;
    let (run, id, holds) = held(&stage).await;
    let lines = stage.start(&["runs", "watch", &id, "-o", "jsonl"]);
    let text = stage.start(&["runs", "watch", &id]);
    let mut lines = lines;
    let first = lines.first_line().await;
    assert!(first.contains("\"type\":\"agent_started\""), "{first}");
    release(holds);
    run.end().await.exits(0);
    let seen = lines.end().await.exits(0);
    let all: BTreeSet<String> =
        std::iter::once(first.trim_end()).chain(seen.stdout.lines()).map(str::to_owned).collect();
    let exported = stage.run(&["runs", "export", &id]).await.exits(0);
    let expected: BTreeSet<String> =
        exported.stdout.lines().filter(|line| !line.contains("\"stream\":\"s_")).map(str::to_owned).collect();
    assert_eq!(all, expected);
    let seen = text.end().await.exits(0);
    assert!(
        seen.stderr.contains(&format!("{id}: complete\nits answer: convoke resume {id}\n")),
        "{}",
        seen.stderr
    );
    assert_eq!(seen.stdout, "");
    assert_eq!(stage.run(&["resume", &id]).await.exits(0).json(), json!(VALUE));
    let late = stage.run(&["runs", "watch", &id, "--output", "json"]).await.exits(2);
    assert!(late.stderr.contains("--output jsonl"), "{}", late.stderr);
}

#[tokio::test]
async fn a_question_waits_is_listed_and_is_answered_by_its_id() {
    let stage = stage(ASKS).await;
    let seen = stage.run(&RUN).await.exits(5);
    let id = id(&stage).await;
    let workflow = newest(&stage).await["programs"][0]["run"].as_str().unwrap().to_owned();
    assert!(seen.stderr.contains(&format!("--answer {workflow}:1=")), "{}", seen.stderr);
    let waiting = stage.run(&["resume", &id, "-o", "json"]).await.exits(5).json();
    let asked = &waiting["questions"][0];
    assert_eq!(
        (&asked["id"], &asked["wanted"]),
        (&json!(format!("{workflow}:1")), &json!("answer: Who decides?"))
    );
    assert_eq!(asked["answer"], json!(format!("convoke resume {id} --answer {workflow}:1=TEXT")));
    let listed = stage.run(&["approvals", "list", &id, "--output", "json"]).await.exits(0).json();
    assert_eq!(listed["questions"], json!([]));
    let asked = &listed["checkpoints"][0];
    assert_eq!((&asked["id"], &asked["question"]), (&json!(format!("{workflow}:1")), &json!("Who decides?")));
    assert_eq!(asked["answer"], json!(format!("convoke resume {id} --answer {workflow}:1=TEXT")));
    let text = stage.run(&["approvals", "list", &id]).await.exits(0);
    assert!(text.stdout.contains("  | Who decides?\n"), "{}", text.stdout);
    assert!(stage.run(&["runs", "list"]).await.stdout.contains("waits for an answer"));
    for wrong in ["9=me", "nonsense", "wf_zz:1=me"] {
        let seen = stage.run(&["resume", &id, "--answer", wrong]).await.exits(2);
        assert!(seen.stderr.contains("nothing was answered"), "{}", seen.stderr);
    }
    let seen = stage.run(&["resume", &id, "--answer", "2=me"]).await.exits(2);
    assert!(seen.stderr.contains(&format!("{workflow}:1  checkpoint: Who decides?")), "{}", seen.stderr);
    std::fs::write(stage.work().join("answer.txt"), "two\nlines\n").unwrap();
    let seen =
        stage.run(&["resume", &id, "--answer", &format!("{}:1=@answer.txt", &workflow[..9])]).await.exits(0);
    assert_eq!(seen.json(), json!({"who": "two\nlines", "did": "did meanwhile"}));
    let late = stage.run(&["resume", &id, "--answer", "1=again"]).await.exits(2);
    assert!(late.stderr.contains("has ended already"), "{}", late.stderr);
    assert_eq!(stage.sim().requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_a_person_skips_is_no_loss() {
    let stage = stage(ASKS).await;
    stage.run(&RUN).await.exits(5);
    let seen = stage.run(&["resume", &id(&stage).await, "--skip", "1"]).await.exits(0);
    assert_eq!(seen.json(), json!({"who": null, "did": "did meanwhile"}), "{}", seen.stderr);
}

#[tokio::test]
async fn what_failed_is_tried_again_and_nothing_else() {
    let stage = stage(TWO_STEPS).await;
    stage.sim().push_fault(Fault::new(FaultKind::BadRequest400("no such thing".into())).on("second"));
    let (run, id, holds) = {
        let hold = stage.sim().hold("first", 0, 1);
        let run = stage.start(&RUN);
        patiently("an agent to be at work", hold.entered()).await;
        (run, id(&stage).await, hold)
    };
    let refused = stage.run(&["runs", "retry", &id]).await.exits(2);
    assert!(refused.stderr.contains("is running"), "{}", refused.stderr);
    holds.release();
    run.end().await.exits(3);
    assert_eq!(stage.run(&["runs", "watch", &id]).await.code, Some(3));
    let seen = stage.run(&["runs", "retry", &id]).await.exits(0);
    assert!(seen.stderr.contains("2 calls served from before, 1 call tried again"), "{}", seen.stderr);
    assert_eq!(seen.json(), json!(VALUE));
    assert_eq!(
        stage.sim().requests().iter().filter(|request| request.body.to_string().contains("first")).count(),
        1
    );
    let done = stage.run(&["runs", "retry", &id]).await.exits(0);
    assert!(done.stderr.contains("there is nothing to try again"), "{}", done.stderr);
}

#[tokio::test]
async fn what_a_leads_program_lost_makes_its_answer_partial_and_is_tried_again_by_the_harness() {
    let stage = stage("return await agent('second')").await;
    stage.sim().push_fault(Fault::new(FaultKind::BadRequest400("no such thing".into())).on("second"));
    let report = stage.run(&["run", "--workflow", "-o", "json", "start the program"]).await.exits(3).json();
    assert_eq!(
        (&report["exit_reason"], &report["lost"][0]["what"]),
        (&json!("lost"), &json!("call")),
        "{report:#}"
    );
    let workflow = newest(&stage).await["programs"][0]["run"].as_str().unwrap().to_owned();
    let seen = stage.run(&["runs", "retry", &workflow, "-o", "json"]).await.exits(0);
    assert!(seen.stderr.contains("1 piece of lost work is tried again"), "{}", seen.stderr);
    assert_eq!(
        (&seen.json()["status"], &seen.json()["lost"]),
        (&json!("done"), &json!([])),
        "{}",
        seen.stdout
    );
    assert_eq!(newest(&stage).await["status"], "done");
}

#[tokio::test]
async fn at_a_terminal_a_question_is_asked_in_place() {
    let stage = stage(ASKS).await;
    let mut terminal = Terminal::open(&stage, "workflow run probe.js --yes");
    terminal.shows("The workflow asks you:").await;
    terminal.shows("  | Who decides?").await;
    terminal.shows("Your answer: ").await;
    terminal.types("\n").await;
    let seen = terminal.end().await.exits(5);
    assert!(seen.text.contains("left for later"), "{}", seen.text);
    let mut terminal = Terminal::open(&stage, "resume");
    terminal.shows("Your answer: ").await;
    terminal.types("the person\n").await;
    let seen = terminal.end().await.exits(0);
    assert!(seen.text.contains("\"who\": \"the person\""), "{}", seen.text);
    assert_eq!(stage.sim().requests().len(), 1);
}
