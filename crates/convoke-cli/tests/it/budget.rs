//! What a session may use and how it may fan out: where the values come from, which layers may change them,
//! and what is said first.

use convoke_sim::{Script, says};
use serde_json::Value;

use crate::stage::{Stage, patiently};
use crate::support::{TestHome, ran};

const USER: &str = "ROOT/home/.config/convoke/config.toml";
const PROJECT: &str = "ROOT/work/.convoke/config.toml";

/// Writes both files, and expects a key to have this value from there.
#[track_caller]
fn check(user: &str, project: &str, env: &[(&str, &str)], args: &[&str], key: &str, expected: (&str, &str)) {
    let place = TestHome::new();
    place.write(&place.user_config(), user);
    place.write(&place.project_config(), project);
    let mut command = place.command(&["config", "show", "--output", "json"]);
    let got = ran(command.args(args).envs(env.iter().copied()));
    assert_eq!(got.code, 0, "{}", got.err);
    let shown: Value = serde_json::from_str(&got.out).unwrap();
    let rows = shown["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key} in {}", got.out));
    let found = (row["value"].as_str().unwrap_or("null"), place.normal(row["origin"].as_str().unwrap()));
    assert_eq!(found, (expected.0, expected.1.to_owned()), "{key}");
}

/// Writes both files, and expects them to be refused with this text.
#[track_caller]
fn check_refused(user: &str, project: &str, env: &[(&str, &str)], expected: &str) {
    let place = TestHome::new();
    place.write(&place.user_config(), user);
    place.write(&place.project_config(), project);
    let got = ran(place.command(&["config", "show"]).envs(env.iter().copied()));
    assert_eq!((got.code, got.out.as_str()), (2, ""), "{}", got.err);
    let said = place.normal(&got.err);
    assert!(said.contains(expected), "{said}");
}

#[test]
fn d1_2_the_defaults_are_those_of_the_mission_and_the_issue() {
    let defaults = [
        ("budget.agents", "500"),
        ("budget.tokens", "none"),
        ("budget.usd", "10"),
        ("budget.minutes", "120"),
        ("mode", "on"),
        ("verify", "1"),
        ("max_concurrent", "10"),
        ("max_subtasks", "200"),
        ("worker.model", "null"),
        ("worker.effort", "null"),
        ("worker.turns", "15"),
    ];
    for (key, value) in defaults {
        check("", "", &[], &[], key, (value, "default"));
    }
}

#[test]
fn every_value_can_be_stated_in_a_file_by_variable_and_by_flag() {
    let usd = "[budget]\nusd = 2.10\n";
    let file = format!("{USER}:2");
    check(usd, "", &[], &[], "budget.usd", ("2.1", &file));
    check("[budget]\nusd = \"0.000000001\"", "", &[], &[], "budget.usd", ("0.000000001", &file));
    check("[budget]\nusd = 7", "", &[], &[], "budget.usd", ("7", &file));
    check("[budget]\nusd = \"none\"", "", &[], &[], "budget.usd", ("none", &file));
    check("[budget]\ntokens = 2_000_000", "", &[], &[], "budget.tokens", ("2000000", &file));
    let env = [("CONVOKE_BUDGET_USD", "3"), ("CONVOKE_MODE", "off"), ("CONVOKE_VERIFY", "off")];
    check(usd, "", &env, &[], "budget.usd", ("3", "environment CONVOKE_BUDGET_USD"));
    check("", "", &env, &[], "mode", ("off", "environment CONVOKE_MODE"));
    check("", "", &env, &[], "verify", ("off", "environment CONVOKE_VERIFY"));
    check(usd, "", &env, &["--budget-usd", "none"], "budget.usd", ("none", "flag --budget-usd"));
    check("", "", &[], &["--budget-minutes", "1.5"], "budget.minutes", ("1.5", "flag --budget-minutes"));
    check("mode = \"off\"", "", &[], &[], "mode", ("off", &format!("{USER}:1")));
    check("mode = false", "", &[], &[], "mode", ("off", &format!("{USER}:1")));
    check("", "", &env, &["--mode", "on"], "mode", ("on", "flag --mode"));
    check("verify = 3", "", &[], &[], "verify", ("3", &format!("{USER}:1")));
    check("verify = \"off\"", "", &[], &["--verify", "9"], "verify", ("9", "flag --verify"));
    check("[worker]\nturns = 4", "", &[], &[], "worker.turns", ("4", &file));
    check(
        "",
        "[worker]\nmodel = \"m\"",
        &[],
        &["--trust-project"],
        "worker.model",
        ("m", &format!("{PROJECT}:2")),
    );
}

#[test]
fn a_wrong_value_is_told_with_its_place() {
    check_refused(
        "[budget]\nusd = \"ten\"",
        "",
        &[],
        &format!("{USER}:2: 'budget.usd': 'ten' is no amount of dollars"),
    );
    check_refused(
        "[budget]\nusd = 1e3",
        "",
        &[],
        &format!("{USER}:2: 'budget.usd': '1e3' is no amount of dollars"),
    );
    check_refused("[budget]\nusd = []", "", &[], "must be a text, a number or a switch");
    check_refused(
        "[budget]\nusdd = 1",
        "",
        &[],
        "unknown key 'budget.usdd'; the nearest key is 'budget.usd'",
    );
    check_refused("verify = 10", "", &[], &format!("{USER}:1: 'verify': '10' is no number of verifiers"));
    check_refused("max_concurrent = 1001", "", &[], "must be a whole number from 1 to 1000, not 1001");
    check_refused(
        "",
        "",
        &[("CONVOKE_BUDGET_USD", "ten")],
        "CONVOKE_BUDGET_USD: 'ten' is no amount of dollars",
    );
}

#[test]
fn a_project_may_lower_what_is_spent_and_never_raise_it() {
    let lowered = ("4", format!("{PROJECT}:2"));
    check("", "[budget]\nusd = 4", &[], &[], "budget.usd", (lowered.0, &lowered.1));
    check("[budget]\nusd = \"none\"", "[budget]\nusd = 4", &[], &[], "budget.usd", (lowered.0, &lowered.1));
    check("", "mode = \"off\"", &[], &[], "mode", ("off", &format!("{PROJECT}:1")));
    check_refused("", "[budget]\nusd = 11", &[], "'budget.usd' is 11, which is higher than 10 (default)");
    check_refused(
        "",
        "[budget]\nagents = \"none\"",
        &[],
        "'budget.agents' is none, which is higher than 500 (default)",
    );
    check_refused(
        "",
        "max_concurrent = 11",
        &[],
        "'max_concurrent' is 11, which is higher than 10 (default)",
    );
    check_refused("mode = \"off\"", "mode = \"on\"", &[], &format!("'mode' is on, and it is off ({USER}:1)"));
    check_refused("", "verify = \"off\"", &[], "'verify' cannot be set by a project");
}

#[tokio::test]
async fn the_first_line_names_the_mode_the_caps_and_what_holds_commands() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    let first = |seen: crate::stage::Seen| seen.stderr.lines().next().unwrap().to_owned();
    let usual = first(stage.run(&["is", "it?"]).await.exits(0));
    for part in
        ["mode on", "at most $10.00, 500 agents, 120 min", "sandbox workspace", "no network", "journal "]
    {
        assert!(usual.contains(part), "{part} is missing in: {usual}");
    }
    let args = [
        "--mode",
        "off",
        "--workflow",
        "--budget-usd",
        "2.50",
        "--budget-minutes",
        "none",
        "is",
        "it",
        "not?",
    ];
    let other = first(stage.run(&args).await.exits(0));
    assert!(other.contains("mode off, workflows allowed · at most $2.50, 500 agents ·"), "{other}");
}

#[tokio::test]
async fn a_cap_in_dollars_needs_a_price_for_every_model() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    let seen = stage.run(&["--worker-model", "claude-unheard-of", "is", "it?"]).await.exits(2);
    for part in [
        "the price of `claude-unheard-of` is not known",
        "budget.usd, default",
        "--budget-usd none",
        "[models.",
    ] {
        assert!(seen.stderr.contains(part), "{part} is missing in: {}", seen.stderr);
    }
    assert!(!stage.state().exists(), "nothing was started");
    assert!(stage.sim().requests().is_empty());
    let config = stage.home().join(".config/convoke/config.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("[models.\"claude-unheard-of\"]\nprices = [{ input = 3, output = 15 }]\n");
    std::fs::write(&config, text).unwrap();
    stage.run(&["--worker-model", "claude-unheard-of", "is", "it?"]).await.exits(0);
    stage.run(&["--offline", "look", "around"]).await.exits(0);
}

/// What `--output json` says of the dollars of a run: confirmed, and unconfirmed.
fn figures(object: &Value, nano: &str) -> (u64, u64) {
    (object[nano].as_u64().unwrap(), object["unconfirmed_nano"].as_u64().unwrap())
}

#[tokio::test]
async fn after_kills_every_list_says_the_same_figure_and_a_person_can_write_the_rest_off() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes, it is so.")])).await;
    let hold = stage.sim().hold("is it?", 0, 2);
    let run = stage.start(&["run", "is it?"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("KILL");
    assert_eq!(run.end().await.code, None);
    hold.release();
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let told = json(&stage.run(&["resume", "--output", "json"]).await.exits(0).stdout);
    let report = figures(&told["spend"], "nano");
    assert!(report.0 > 0 && report.1 > 0, "{report:?}");
    assert_eq!(told["cost_nano"].as_u64(), Some(report.0));
    // The room of that request was 64,000 tokens: $1.60. It had a moment, and two seconds more.
    println!("confirmed ${:.4}, up to ${:.4} unconfirmed", report.0 as f64 / 1e9, report.1 as f64 / 1e9);
    assert!(report.1 < 200_000_000, "{report:?}");
    let bill = stage.sim().bill().total_nano;
    assert!(bill <= report.0 + report.1, "{bill} {report:?}");
    let session = told["run"].as_str().or_else(|| told["session"].as_str()).unwrap().to_owned();
    let cost = json(&stage.run(&["cost", &session, "--output", "json"]).await.exits(0).stdout);
    assert_eq!(figures(&cost["runs"][0], "cost_nano"), report);
    let list = json(&stage.run(&["runs", "list", "--output", "json"]).await.exits(0).stdout);
    assert_eq!(figures(&list["runs"][0], "cost_nano"), report);
    let again = json(&stage.run(&["resume", &session, "--output", "json"]).await.exits(0).stdout);
    assert_eq!(figures(&again["spend"], "nano"), report);
    for args in [&["cost", session.as_str()][..], &["runs", "list"], &["runs", "show", session.as_str()]] {
        let text = stage.run(args).await.exits(0);
        let said = format!("{}{}", text.stdout, text.stderr);
        assert!(said.contains("and up to $"), "{args:?}: {said}");
    }
    let forgiven = stage.run(&["resume", &session, "--forgive"]).await.exits(0);
    assert!(forgiven.stderr.contains("written off: up to $"), "{}", forgiven.stderr);
    let cost = json(&stage.run(&["cost", &session, "--output", "json"]).await.exits(0).stdout);
    assert_eq!(figures(&cost["runs"][0], "cost_nano"), (report.0, 0));
    let twice = stage.run(&["resume", &session, "--forgive"]).await.exits(0);
    assert!(twice.stderr.contains("nothing is unconfirmed"), "{}", twice.stderr);
}

#[tokio::test]
async fn a_cap_under_which_the_lead_cannot_answer_is_refused_at_once_and_a_small_one_says_what_it_buys() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    let seen = stage.run(&["--budget-usd", "0.10", "is", "it?"]).await.exits(2);
    for part in
        ["the budget is too small for the lead to answer", "$0.10 of $0.10 left", "may cost up to $0."]
    {
        assert!(seen.stderr.contains(part), "{part} is missing in: {}", seen.stderr);
    }
    assert!(stage.sim().requests().is_empty());
    let seen = stage.run(&["--budget-usd", "1", "is", "it?"]).await.exits(0);
    assert!(seen.stderr.contains("buys the lead and about "), "{}", seen.stderr);
    let seen = stage.run(&["is", "it", "now?"]).await.exits(0);
    assert!(!seen.stderr.contains("buys the lead"), "{}", seen.stderr);
}
