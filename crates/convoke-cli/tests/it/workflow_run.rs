//! `convoke workflow run` with the real binary against the simulator: what is on stdout, how it exits, how it
//! is asked for and agreed to, and where its value is found again.

use convoke_sim::{Brain, Context, Fault, FaultKind, Reply, Script, Scripted, SimConfig, calls, says};
use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::repo::write;
use crate::stage::{Seen, Stage};
use crate::team::{requests, role};

/// What an agent says to its prompt.
pub(crate) type Says = fn(&str) -> Vec<Reply>;

/// Answers what a program's agents are asked, by their prompt.
pub(crate) struct Callees(pub(crate) Says);

impl Brain for Callees {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let prompt = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        Script::new().conversation("*", (self.0)(prompt)).reply(request, context)
    }
}

/// A lead with these replies; every other agent says its prompt back.
pub(crate) struct Led(pub(crate) Vec<Reply>);

impl Brain for Led {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        match role(request) {
            "lead" => Script::new().conversation("*", self.0.clone()).reply(request, context),
            _ => Callees(|prompt| vec![says(&format!("did {prompt}"))]).reply(request, context),
        }
    }
}

/// Agents that say their prompt back.
pub(crate) fn callees() -> SimConfig {
    SimConfig::new(Callees(|prompt| vec![says(&format!("did {prompt}"))]))
}

pub(crate) fn script(body: &str) -> String {
    format!(
        "export const meta = {{ name: 'probe', description: 'Tries something.', phases: [{{ title: 'Look' \
            }}] }}\n{body}\n"
    )
}

/// A stage with this program, on which an agent that is told to die does.
pub(crate) async fn stage(body: &str) -> Stage {
    let stage = Stage::with(callees()).await;
    stage
        .sim()
        .push_fault(Fault::new(FaultKind::BadRequest400("no such luck".into())).on("die").times(u32::MAX));
    write(&stage.work(), "flow.js", &script(body));
    stage
}

async fn run(body: &str, args: &[&str]) -> (Stage, Seen) {
    let stage = stage(body).await;
    let seen = stage.run(&[&["workflow", "run", "flow.js"], args].concat()).await;
    (stage, seen)
}

const TWO: &str = "phase('Look')\nlog('two of them')\nreturn { all: await parallel(['a', 'b'].map(x => () \
    => agent(x))), args }";

#[tokio::test]
async fn the_value_is_on_stdout_and_nothing_else_is() {
    let (stage, seen) = run(TWO, &["--args", "{\"deep\": [1, null]}"]).await;
    let seen = seen.exits(0);
    let expected = json!({"all": ["did a", "did b"], "args": {"deep": [1, null]}});
    assert_eq!(seen.stdout, format!("{expected:#}\n"));
    for line in [
        "[probe] phase: Look",
        "[probe] two of them",
        "[probe] complete · calls: 2 ok",
        ": complete · 2 agent calls: 2 ok",
    ] {
        assert!(seen.stderr.contains(line), "{line:?} is missing:\n{}", seen.stderr);
    }
    assert!(!seen.stderr.contains('\u{1b}') && !seen.stdout.contains('\u{1b}'), "no colour in a pipe");
    assert!(!seen.stderr.contains("turn 1"), "nobody leads it: {}", seen.stderr);
    assert_eq!(stage.sim().requests().len(), 2, "no model is asked but by the agents");
    let (_, seen) = run("return 'a text\\nof two lines'", &["--quiet"]).await;
    let seen = seen.exits(0);
    assert_eq!((seen.stdout.as_str(), seen.stderr.as_str()), ("a text\nof two lines\n", ""));
    let (_, seen) = run("await agent('a')", &[]).await;
    assert_eq!(seen.exits(0).stdout, "null\n");
}

#[tokio::test]
async fn a_run_that_lost_agents_is_partial_says_which_and_a_resume_tries_them_alone() {
    let body = "return await parallel(['a', 'die', 'c'].map(x => () => agent(x, { label: `item ${x}` })))";
    let (mut stage, seen) = run(body, &[]).await;
    let seen = seen.exits(3);
    let value: Value = seen.json();
    assert_eq!(value, json!(["did a", null, "did c"]), "the value stands as far as it goes");
    assert!(seen.stderr.contains("1 of 3 agent calls did not end well"), "{}", seen.stderr);
    assert!(seen.stderr.contains("lost: call 2 item die"), "{}", seen.stderr);
    let listed = stage.run(&["runs", "list"]).await.exits(0);
    assert!(
        listed.stdout.contains("partial ") && !listed.stdout.contains("invalid_output"),
        "{}",
        listed.stdout
    );
    stage.turn_to(SimConfig::new(Callees(|prompt| vec![says(&format!("healed {prompt}"))]))).await;
    let args = seen.resume_args();
    let resumed = stage.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await.exits(0);
    assert_eq!(resumed.json(), json!(["did a", "healed die", "did c"]), "{}", resumed.stderr);
    assert_eq!(stage.sim().requests().len(), 1);
    assert!(resumed.stderr.contains("2 served from before · pass 2"), "{}", resumed.stderr);
}

#[tokio::test]
async fn a_program_that_throws_has_failed_with_its_line_and_prints_no_value() {
    let (_, seen) = run("await agent('a')\nthrow new Error('nothing to do')", &[]).await;
    let seen = seen.exits(1);
    assert_eq!(seen.stdout, "");
    assert!(
        seen.stderr.contains("convoke: the workflow failed (thrown): ")
            && seen.stderr.contains("nothing to do")
    );
    assert!(seen.stderr.contains("line 3"), "{}", seen.stderr);
}

#[tokio::test]
async fn a_step_that_does_not_fit_the_budget_starts_nobody_and_says_the_numbers() {
    let body = "const one = await agent('first')\nreturn await parallel([1, 2, 3, 4].map(x => () => \
        agent(`more ${x}`)))";
    let (stage, seen) = run(body, &["--budget-agents", "3"]).await;
    let seen = seen.exits(4);
    assert_eq!((seen.stdout.as_str(), stage.sim().requests().len()), ("", 1));
    assert!(seen.stderr.contains("needs 4 agents, 2 of 3 are left"), "{}", seen.stderr);
    // The command that is printed grants just enough.
    let args = seen.resume_args();
    assert!(args.ends_with(&["--budget-agents".to_owned(), "5".to_owned()]), "{args:?}");
    let resumed = stage.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await.exits(0);
    assert_eq!((resumed.json().as_array().unwrap().len(), stage.sim().requests().len()), (4, 5));
}

#[tokio::test]
async fn a_question_parks_the_run_and_the_printed_command_answers_it() {
    let body = "const one = await agent('a')\nconst said = await checkpoint('Which colour?\\nred or \
        blue')\nreturn { one, said }";
    let (stage, seen) = run(body, &[]).await;
    let seen = seen.exits(5);
    assert_eq!(seen.stdout, "");
    assert!(seen.stderr.contains("1 question waits for your answer"), "{}", seen.stderr);
    assert!(seen.stderr.contains("Which colour?") && seen.stderr.contains("red or blue"), "{}", seen.stderr);
    let command = seen.stderr.lines().find_map(|line| line.strip_prefix("answer: convoke ")).unwrap();
    let command = command.replace("TEXT", "blue");
    let resumed = stage.run(&command.split(' ').collect::<Vec<_>>()).await.exits(0);
    assert_eq!(resumed.json(), json!({"one": "did a", "said": "blue"}));
    assert_eq!(stage.sim().requests().len(), 1);
}

#[tokio::test]
async fn an_agent_that_nobody_awaits_is_reported() {
    let (_, seen) = run("agent('late').catch(() => null)\nreturn 1", &["-o", "json"]).await;
    let report = seen.exits(3).json();
    let program = &report["programs"][0];
    assert_eq!((&program["unawaited"], &program["value"]), (&json!([1]), &json!(1)), "{report:#}");
    assert!(program["losses"][0]["why"].as_str().unwrap().contains("without waiting for it"), "{program}");
}

#[tokio::test]
async fn arguments_are_json_a_file_stdin_or_a_plain_text_and_what_is_no_json_is_told() {
    let stage = stage("return args").await;
    write(&stage.work(), "args.json", "{\"from\": \"a file\"}");
    let check = async |args: &[&str], expected: Value| {
        let seen = stage.run(&[&["workflow", "run", "flow.js", "-o", "json"], args].concat()).await.exits(0);
        assert_eq!(seen.json()["value"], expected, "{args:?}");
    };
    check(&[], Value::Null).await;
    check(&["--args", "[1, {\"a\": null}]"], json!([1, {"a": null}])).await;
    check(&["--args", "-3"], json!(-3)).await;
    check(&["--args", "@args.json"], json!({"from": "a file"})).await;
    check(&["--args", "\"{\\\"not\\\": \\\"parsed\\\"}\""], json!("{\"not\": \"parsed\"}")).await;
    check(&["--arg-text", "some words"], json!("some words")).await;
    let piped = crate::stage::to_its_end(
        stage.shell("echo '[\"piped\"]' | \"$0\" \"$@\"", &["workflow", "run", "flow.js", "--args", "-"]),
    );
    assert_eq!(piped.await.exits(0).json(), json!(["piped"]));
    let runs = |seen: &Seen| seen.json()["runs"].as_array().unwrap().len();
    let before = runs(&stage.run(&["runs", "list", "-o", "json"]).await);
    let seen = stage.run(&["workflow", "run", "flow.js", "--args", "some words"]).await.exits(2);
    assert!(
        seen.stderr.contains("line 1, column 1") && seen.stderr.contains("--arg-text 'some words'"),
        "{}",
        seen.stderr
    );
    stage.run(&["workflow", "run", "flow.js", "--args", "1", "--arg-text", "2"]).await.exits(2);
    assert_eq!(runs(&stage.run(&["runs", "list", "-o", "json"]).await), before, "nothing was started");
}

#[tokio::test]
async fn what_cannot_be_run_is_told_by_line_and_nothing_is_started() {
    let stage = stage("const now = Date.now()\nreturn now").await;
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(2);
    assert!(
        seen.stderr.contains("flow.js:2:") && seen.stderr.contains("nothing was started"),
        "{}",
        seen.stderr
    );
    let seen = stage.run(&["workflow", "run", "reviw"]).await.exits(2);
    assert!(
        seen.stderr.contains("there is no workflow 'reviw'") && seen.stderr.contains("'review'"),
        "{}",
        seen.stderr
    );
    let seen = stage.run(&["reviw"]).await.exits(2);
    assert!(
        seen.stderr.contains("no command")
            && seen.stderr.contains("the nearest workflow is `convoke review`"),
        "{}",
        seen.stderr
    );
    stage.run(&["workflow", "run", "nowhere.js"]).await.exits(2);
    assert!(!stage.state().join("journal.db").exists());
}

#[tokio::test]
async fn a_projects_workflow_is_run_by_name_only_if_the_project_is_trusted() {
    let stage = Stage::with(callees()).await;
    write(&stage.work(), ".convoke/workflows/probe.js", &script("return await agent('a')"));
    let seen = stage.run(&["workflow", "run", "probe"]).await.exits(2);
    assert!(
        seen.stderr.contains("the project is not trusted") && seen.stderr.contains("--trust-project"),
        "{}",
        seen.stderr
    );
    assert!(stage.sim().requests().is_empty());
    let seen = stage.run(&["workflow", "run", "probe", "--trust-project"]).await.exits(0);
    assert_eq!(seen.stdout, "did a\n");
    // A person who names a file trusts that file.
    stage.run(&["workflow", "run", ".convoke/workflows/probe.js"]).await.exits(0);
    stage.run(&["probe", "--trust-project"]).await.exits(0);
}

#[tokio::test]
async fn the_events_of_a_program_are_lines_and_the_last_one_has_its_value() {
    let (stage, seen) = run(TWO, &["-o", "jsonl"]).await;
    let lines = seen.exits(0).lines();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((of("program_started"), of("call_ended"), of("program_closed")), (1, 2, 1));
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["value"]["all"]), (&json!("run_ended"), &json!(["did a", "did b"])));
    let schema: Value =
        serde_json::from_str(include_str!("../../../../docs/schema/run.schema.json")).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(last).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    drop(stage);
}

#[tokio::test]
async fn a_run_is_listed_shown_and_exported_and_its_value_and_calls_are_found_again() {
    let long = "x".repeat(100_000);
    let (stage, seen) = run(
        &format!("const a = await agent('a', {{ label: 'first' }})\nreturn {{ a, long: '{long}' }}"),
        &["-o", "json"],
    )
    .await;
    let report = seen.exits(0).json();
    let session = report["run"].as_str().unwrap();
    let run = report["programs"][0]["run"].as_str().unwrap();
    for id in [session, run] {
        let value = stage.run(&["runs", "show", id, "--value"]).await.exits(0);
        assert_eq!(value.json(), json!({"a": "did a", "long": long}), "the whole of it, however long");
    }
    let shown = stage.run(&["runs", "show", session]).await.exits(0).stdout;
    assert!(shown.contains(&format!("workflow probe {run} · complete · 1 agent call: 1 ok")), "{shown}");
    assert!(
        shown.lines().any(|line| line.contains("agent") && line.contains("ok") && line.ends_with("first")),
        "{shown}"
    );
    let call = stage.run(&["runs", "show", run, "--call", "1"]).await.exits(0).stdout;
    assert!(call.contains("call 1 · agent · ok · first") && call.contains("answer:\ndid a"), "{call}");
    stage.run(&["runs", "show", run, "--call", "2"]).await.exits(2);
    let listed = stage.run(&["runs", "list", "-o", "json"]).await.json();
    assert_eq!(listed["runs"][0]["programs"][0]["program"], "probe");
    let exported = stage.run(&["runs", "export", session]).await.exits(0).lines();
    assert!(exported.iter().any(|line| line["type"] == "program_closed"));
    let cost = stage.run(&["cost", run, "-o", "json"]).await.json();
    assert!(cost["total"]["cost_nano"].as_u64().unwrap() > 0, "{cost}");
    stage.run(&["runs", "prune", session, "--yes"]).await.exits(0);
    assert!(stage.run(&["runs", "show", run]).await.exits(2).stderr.contains("there is no session"));
}

#[tokio::test]
async fn a_leads_program_is_listed_in_the_end_report() {
    let source = script("return await agent('a')");
    let lead = [calls("Workflow", json!({"script": source})), says("It runs."), says("It found: did a.")];
    let stage = Stage::with(SimConfig::new(Led(lead.to_vec()))).await;
    let seen = stage.run(&["run", "have it looked at", "-o", "json", "--workflow"]).await;
    let report = seen.json();
    let program = &report["programs"][0];
    assert_eq!(
        (&program["by_person"], &program["name"], &report["value"]),
        (&json!(false), &json!("probe"), &Value::Null),
        "{report:#}"
    );
    assert!(
        requests(&stage, "lead").len() >= 2
            && stage.sim().requests().iter().any(|request| role(&request.body) == "task")
    );
    let id = program["run"].as_str().unwrap();
    assert!(
        stage.run(&["runs", "show", id]).await.exits(0).stdout.contains(&format!("workflow probe {id} · "))
    );
}

#[tokio::test]
async fn at_a_terminal_a_foreign_script_is_agreed_to_once_and_for_the_same_source_only() {
    let stage = stage("phase('Look')\nlog('hello')\nreturn await agent('a')").await;
    let line = "workflow run flow.js";
    let mut asked = Terminal::open(&stage, line);
    for words in
        ["workflow in a file probe", "digest", "phase 1. Look", "plan: 1 agent,", "Run it? [y/N/a/s] "]
    {
        asked.shows(words).await;
    }
    asked.types("\n").await;
    assert!(asked.end().await.exits(1).text.contains("not run: you did not agree"));
    assert!(stage.sim().requests().is_empty());
    let mut shown = Terminal::open(&stage, line);
    shown.shows("Run it? ").await;
    shown.types("s\n").await;
    shown.shows("return await agent('a')").await;
    shown.shows("Run it? ").await;
    shown.types("a\n").await;
    shown.shows("[probe] hello").await;
    assert!(shown.end().await.exits(0).text.contains("did a"));
    // The same again is not asked about, another source is, and --yes and a pipe never are.
    let again = Terminal::open(&stage, line).end().await.exits(0);
    assert!(!again.text.contains("Run it?"), "{}", again.text);
    write(&stage.work(), "flow.js", &script("return await agent('b')"));
    let mut other = Terminal::open(&stage, line);
    other.shows("Run it? ").await;
    other.types("n\n").await;
    other.end().await.exits(1);
    assert!(
        !Terminal::open(&stage, "workflow run flow.js --yes").end().await.exits(0).text.contains("Run it?")
    );
}

#[tokio::test]
async fn the_moving_picture_has_the_phases_at_every_width() {
    let stage =
        stage("phase('Look')\nreturn await parallel([1, 2].map(x => () => agent(`look ${x}`)))").await;
    for columns in [40, 80, 120] {
        let holds = ["look 1", "look 2"].map(|prompt| stage.sim().hold(prompt, 0, 1));
        let mut shown = Terminal::sized(&stage, columns, "workflow run flow.js --yes --fresh");
        shown.shows("workflow probe · Look").await;
        shown.shows("Look: 0 of 2 done").await;
        holds.iter().for_each(convoke_sim::ReplyHold::release);
        shown.end().await.exits(0);
    }
}
