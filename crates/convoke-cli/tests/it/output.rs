//! What programs read: the object of `--output json`, the lines of `--output jsonl`, and the talk on a pipe.

use convoke_sim::{Fault, FaultKind, Script, SimConfig, calls, refuses, says};
use serde_json::{Value, json};

use crate::stage::{Stage, to_its_end};

fn schema() -> jsonschema::Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/run.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn check(report: &Value) {
    let errors: Vec<String> =
        schema().iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}\n{report:#}");
}

pub(crate) fn two_turns() -> Script {
    Script::new().conversation("*", [calls("bash", json!({"command": "echo one"})), says("One.")])
}

#[tokio::test]
async fn the_object_fits_its_schema_and_carries_the_figures() {
    let stage = Stage::with(two_turns()).await;
    let report = stage.run(&["--output", "json", "say", "one"]).await.exits(0).json();
    check(&report);
    assert_eq!(report["answer"], "One.");
    assert_eq!(
        (&report["status"], &report["exit_code"], &report["exit_reason"]),
        (&json!("done"), &json!(0), &json!("done"))
    );
    assert_eq!((&report["turns"], &report["commands"]), (&json!(2), &json!(1)));
    assert_eq!((&report["failure"], &report["resume"]), (&Value::Null, &Value::Null));
    assert!(report["cost_nano"].as_u64().unwrap() > 0, "{report:#}");
    assert!(report["usage"]["output_tokens"].as_u64().unwrap() > 0, "{report:#}");
    assert!(report["started_at"].as_u64() <= report["ended_at"].as_u64(), "{report:#}");
}

/// Whether a runner of GitHub's would obey a line: it begins with `::` behind blanks, or has `##[` in it.
fn obeyed(text: &str) -> bool {
    text.split(['\n', '\r']).any(|line| line.trim_start().starts_with("::") || line.contains("##["))
}

const ORDERS: &str =
    "Fine.\n::add-mask::fine\n  ::stop-commands::x\r::set-output name=a::b\nso ##[add-mask]y";

#[tokio::test]
async fn in_github_actions_nothing_that_a_model_says_is_obeyed_by_the_runner() {
    let told = calls("bash", json!({"command": "printf '::error::x\\n##[group]y\\n'"})).saying(ORDERS);
    let stage = Stage::with(Script::new().conversation("*", [told, says(ORDERS)])).await;
    let run = async |args: &[&str], env: &[(&str, &str)]| {
        // Each is a conversation of its own.
        let task = format!("::warning::look\n::debug::around {args:?} {env:?}");
        let mut command = stage.command(&[args, &["run", &task]].concat());
        command.envs(env.iter().copied());
        to_its_end(command).await.exits(0)
    };
    let actions = [("GITHUB_ACTIONS", "true")];
    // Elsewhere a pipe gets every byte.
    let seen = run(&[], &[]).await;
    assert!(seen.stdout.contains(ORDERS), "{seen:?}");
    for (args, env) in [
        (&[][..], &actions[..]),
        (&["--ci-safe", "on"], &[]),
        (&["--quiet"], &actions),
        (&[], &[("CONVOKE_CI_SAFE", "on")]),
    ] {
        let seen = run(args, env).await;
        assert!(!obeyed(&seen.stdout) && !obeyed(&seen.stderr), "{seen:?}");
        let readable =
            "Fine.\n:\\:add-mask::fine\n  :\\:stop-commands::x\r:\\:set-output name=a::b\nso ##\\[add-mask]y";
        assert!(seen.stdout.contains(readable), "{seen:?}");
    }
    assert!(run(&["--ci-safe", "off"], &actions).await.stdout.contains(ORDERS));
    // Data has the same values, and no line of it is obeyed.
    let seen = run(&["--output", "json"], &actions).await;
    assert!(!obeyed(&seen.stdout) && !obeyed(&seen.stderr), "{seen:?}");
    assert_eq!(seen.json()["answer"], ORDERS);
    let seen = run(&["--output", "jsonl"], &actions).await;
    assert!(!obeyed(&seen.stdout) && !obeyed(&seen.stderr), "{seen:?}");
    assert_eq!(seen.lines().last().unwrap()["answer"], ORDERS);
    // What is wrong with a command line is told in the same way.
    let mut command = stage.command(&["--output", "x\n::add-mask::y"]);
    command.envs(actions);
    let seen = to_its_end(command).await.exits(2);
    assert!(!obeyed(&seen.stdout) && !obeyed(&seen.stderr), "{seen:?}");
}

#[tokio::test]
async fn a_failure_is_an_object_too() {
    let stage = Stage::with(Script::new().conversation("*", [refuses("Not this.")])).await;
    let report = stage.run(&["--output", "json", "do", "it"]).await.exits(1).json();
    check(&report);
    assert_eq!(report["failure"], json!({"kind": "refused", "message": "Not this."}));
    assert_eq!(
        (&report["status"], &report["exit_code"], &report["answer"]),
        (&json!("failed"), &json!(1), &json!(""))
    );
}

#[tokio::test]
async fn a_model_nobody_described_has_no_price_and_a_warning() {
    let mut server = SimConfig::from(two_turns());
    let described = serde_json::from_value(json!({})).unwrap();
    server.models.extend([("claude-unheard-of".to_owned(), described)]).unwrap();
    let stage = Stage::with(server).await;
    let model = ["--output", "json", "--model", "claude-unheard-of", "x", "y"];
    let refused = stage.run(&model).await.exits(2);
    assert!(refused.stderr.contains("--budget-usd none") && refused.stdout.is_empty(), "{}", refused.stderr);
    let report = stage.run(&[&["--budget-usd", "none"], &model[..]].concat()).await.exits(0).json();
    check(&report);
    assert_eq!((&report["cost_usd"], &report["cost_nano"]), (&Value::Null, &Value::Null), "{report:#}");
    assert!(report["warnings"].to_string().contains("claude-unheard-of"), "{report:#}");
}

#[tokio::test]
async fn lines_are_the_recorded_events_in_order_and_the_object_at_the_end() {
    let stage = Stage::with(two_turns()).await;
    let lines = stage.run(&["--output", "jsonl", "say", "one"]).await.exits(0).lines();
    let (last, events) = lines.split_last().unwrap();
    for (event, seq) in events.iter().zip(1u64..) {
        assert_eq!((&event["v"], &event["seq"]), (&json!(1), &json!(seq)), "{event}");
        assert!(event["stream"].as_str().unwrap().starts_with("a_") && event["at"].is_u64(), "{event}");
    }
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "agent_started",
        "exchange_opened",
        "model_called",
        "model_replied",
        "tool_started",
        "tool_finished",
        "results_appended",
        "model_called",
        "model_replied",
        "exchange_closed",
    ];
    assert_eq!(kinds, expected);
    assert_eq!((&last["v"], &last["type"]), (&json!(1), &json!("run_ended")));
    check(last);
}

#[tokio::test]
async fn a_pipe_gets_a_handful_of_lines_and_no_colours() {
    let sleepy = calls("bash", json!({"command": "for n in 1 2 3 4 5 6 7 8; do sleep 0.3; echo $n; done"}));
    let stage = Stage::with(Script::new().conversation("*", [sleepy, says("# Slept\n\n*Well*.")])).await;
    let seen = stage.run(&["sleep", "a", "little"]).await.exits(0);
    assert_eq!(seen.stdout, "# Slept\n\n*Well*.\n", "as it was written");
    assert!(!seen.stderr.contains('\u{1b}'), "{}", seen.stderr);
    assert!(seen.stderr.lines().count() <= 3, "{}", seen.stderr);
}

#[tokio::test]
async fn a_terminal_sees_the_answer_once_and_no_control_characters_of_the_models() {
    let answer = "The \u{1b}[2Jfirst\u{7} line.\nThe last line.";
    let stage = Stage::with(
        Script::new()
            .conversation("*", [calls("bash", json!({"command": "printf 'out\\033[2Jput'"})), says(answer)]),
    )
    .await;
    stage.sim().push_fault(
        Fault::new(FaultKind::MidStreamError { after: 4, error_type: "overloaded_error".into() }).at(1),
    );
    let mut command = stage.shell("script -qec \"$0 look around\" typescript", &[]);
    command.env("TERM", "xterm-256color");
    let seen = to_its_end(command).await.exits(0);
    assert!(!seen.stdout.contains("\u{1b}[2J") && !seen.stdout.contains('\u{7}'), "{:?}", seen.stdout);
    assert!(seen.stdout.contains("withdrawn, asking again in"), "{:?}", seen.stdout);
    // What stays on the screen is what is written behind the last erasing.
    let stays = seen.stdout.rsplit("\u{1b}[J").next().unwrap();
    assert_eq!(stays.matches("The ␛[2Jfirst␇ line. The last line.").count(), 1, "{:?}", seen.stdout);
}
