//! Whole sessions with the real binary: what a fan-out leaves on stdout, on stderr, in report files, in the
//! listing and in the exit code.

use convoke_journal::{Filter, Journal, Location, Options, Process};
use convoke_sim::{SimConfig, calls, says};
use serde_json::{Value, json};

use crate::stage::{Seen, Stage, to_its_end};
use crate::team::{Team, finding, looks_and_reports, requests, workflow};

const TASK: [&str; 3] = ["review", "it", "all"];

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &TASK].concat()
}

#[track_caller]
fn fits_schema(report: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/run.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        schema.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?}\n{report:#}");
}

/// The text of the last tool result that the lead has read.
fn the_lead_read(stage: &Stage) -> String {
    let last = requests(stage, "lead").pop().unwrap();
    let results: Vec<Value> =
        last.body["messages"].as_array().unwrap().iter().map(|m| m["content"][0].clone()).collect();
    let result = results.iter().rev().find(|block| block["type"] == "tool_result").unwrap();
    result["content"].as_str().unwrap().to_owned()
}

fn verdicts(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|f| format!("{} {}", f["severity"], f["verdict"]).replace('"', "")).collect()
}

#[tokio::test]
async fn every_form_of_the_report_carries_the_whole_session() {
    let stage = Team::fanning_out(&["high one", "medium wrong", "low three"]).stage().await;
    let dir = stage.work().parent().unwrap().join("reports");
    std::fs::create_dir(&dir).unwrap();
    let file = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let md = file("r.md");
    let object = file("r.json");
    let sarif = file("r.sarif");
    let args = ["--report", &md, "--report", &object, "--report", &sarif];
    let seen = stage.run(&with(&args)).await.exits(0);
    assert_eq!(seen.stdout, "The synthesis.\n");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("r.json")).unwrap();
    fits_schema(&report);
    assert_eq!(verdicts(&report), ["high confirmed", "medium refuted", "low confirmed"]);
    let first = &report["findings"][0];
    assert_eq!((&first["claim"], &first["reason"]), (&json!("high one"), &json!("looked again")));
    assert_eq!((&first["item"], &first["label"]), (&json!(1), &json!("high one")));
    assert_eq!(first["citations"][0]["path"], "a.txt");
    let agents = report["agents"].as_array().unwrap();
    let roles: Vec<&str> = agents.iter().map(|agent| agent["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["lead", "worker", "verifier", "worker", "verifier", "worker", "verifier"]);
    assert!(agents.iter().all(|agent| agent["status"] == "ok"), "{report:#}");
    let sum = |key: &str| agents.iter().map(|agent| agent[key].as_u64().unwrap()).sum::<u64>();
    let usage = report["usage"].as_object().unwrap();
    let used: u64 =
        usage.iter().filter(|(key, _)| *key != "thinking_tokens").map(|(_, n)| n.as_u64().unwrap()).sum();
    assert_eq!((sum("tokens"), used), (used, report["spend"]["tokens"].as_u64().unwrap()));
    assert_eq!((sum("turns"), sum("commands")), (14, 6));
    assert_eq!((&report["turns"], &report["commands"]), (&json!(14), &json!(6)));
    let bill = stage.sim().bill().total_nano;
    assert_eq!(
        (sum("cost_nano"), report["spend"]["nano"].as_u64()),
        (bill, Some(bill)),
        "the server's own bill"
    );
    assert_eq!((&report["spend"]["agents"], &report["spend"]["cap_agents"]), (&json!(6), &json!(500)));
    assert!(
        report["cache"]["read"].as_u64().unwrap() > 0 && report["cache"]["saved_nano"].is_i64(),
        "{report:#}"
    );
    let markdown = read("r.md");
    for part in ["high one", "refuted", "6 of 500 agents", "worker"] {
        assert!(markdown.contains(part), "{part} is missing in\n{markdown}");
    }
    let log: Value = serde_json::from_str(&read("r.sarif")).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(
        results.iter().any(|result| result["message"]["text"].to_string().contains("high one")),
        "{log:#}"
    );
    let last = seen.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("done · claude-opus-4-8 · 6 of 500 agents · 14 turns · 6 commands · "),
        "{last}"
    );
    for part in ["findings: 2 confirmed, 1 refuted", "the whole report: "] {
        assert!(seen.stderr.contains(part), "{part} is missing in\n{}", seen.stderr);
    }
    let whole = stage.run(&["--verbose", "resume", report["run"].as_str().unwrap()]).await.exits(0);
    for part in ["findings: 2 confirmed, 1 refuted", "evidence: ", "agents: 6 ok", "spent: $", "cache: "] {
        assert!(whole.stderr.contains(part), "{part} is missing in\n{}", whole.stderr);
    }
    let again =
        stage.run(&["resume", report["run"].as_str().unwrap(), "--output", "json"]).await.exits(0).json();
    for key in ["findings", "agents", "usage", "cost_nano", "spend", "cache", "skipped"] {
        assert_eq!(again[key], report[key], "{key} of a run that says its answer again");
    }
}

#[tokio::test]
async fn d7_4_a_pipe_hears_how_many_are_sent_out_and_how_many_results_are_verified() {
    let team = Team::fanning_out(&["low one", "nothing", "low three"]);
    let stage = team
        .workers(|task| looks_and_reports(task, if task == "nothing" { vec![] } else { vec![finding(task)] }))
        .stage()
        .await;
    let seen = stage.run(&TASK).await.exits(0);
    let said: Vec<&str> = seen.stderr.lines().filter(|line| line.starts_with("[workflow]")).collect();
    assert_eq!(said, ["[workflow] fanning out 3 agents", "[workflow] verifying 2 results"]);
    let stage = Team::fanning_out(&["low one"]).stage().await;
    assert_eq!(stage.run(&with(&["--quiet"])).await.exits(0).stderr, "");
}

#[tokio::test]
async fn a_confirmed_finding_of_the_severity_is_exit_code_six() {
    let check = async |subtasks: &[&str], level: &str, code: i32| {
        let stage = Team::fanning_out(subtasks).stage().await;
        let report = stage.run(&with(&["--output", "json", "--fail-on", level])).await.exits(code).json();
        let reason = if code == 6 { "finding" } else { "done" };
        assert_eq!((&report["exit_code"], &report["exit_reason"]), (&json!(code), &json!(reason)));
        assert_eq!((&report["status"], &report["answer"]), (&json!("done"), &json!("The synthesis.")));
    };
    check(&["high one", "low two"], "high", 6).await;
    check(&["high wrong", "medium two"], "high", 0).await;
    check(&["high wrong", "medium two"], "medium", 6).await;
    check(&["low two"], "medium", 0).await;
}

#[tokio::test]
async fn a_second_run_of_a_task_takes_equal_results_and_says_whose_and_how_old_they_are() {
    let team = || SimConfig::new(Team::fanning_out(&["low one", "high two"]));
    let mut stage = Team::fanning_out(&["low one", "high two"]).stage().await;
    let first = stage.run(&with(&["--output", "json"])).await.exits(0).json();
    stage.turn_to(team()).await;
    let second = stage.run(&with(&["--output", "json"])).await.exits(0);
    let session = first["run"].as_str().unwrap();
    let report = second.json();
    fits_schema(&report);
    let line = format!("[workflow] 2 of 2 results are from {session}, ");
    let said = second
        .stderr
        .lines()
        .find(|said| said.starts_with(&line))
        .unwrap_or_else(|| panic!("{}", second.stderr));
    assert!(said.ends_with(" s old"), "{said}");
    let notes = report["notes"].to_string();
    assert!(notes.contains(&format!("2 of 2 results are from {session}")), "{notes}");
    assert!(notes.contains(&format!("2 of 2 verifications are from {session}")), "{notes}");
    assert_eq!(
        stage.sim().requests().len(),
        requests(&stage, "lead").len(),
        "nobody but the lead is asked again"
    );
    assert_eq!(verdicts(&report), verdicts(&first));
    assert_eq!(report["spend"]["agents"], 0, "hits are no agents");
    for agent in report["agents"].as_array().unwrap().iter().skip(1) {
        assert_eq!((&agent["reused"]["run"], &agent["tokens"]), (&json!(session), &json!(0)), "{agent}");
    }
    assert!(second.stderr.contains("agents: 4 ok (4 reused)"), "{}", second.stderr);
    stage.turn_to(team()).await;
    let fresh = stage.run(&with(&["--output", "json", "--fresh"])).await.exits(0);
    assert!(!fresh.stderr.contains("results are from"), "{}", fresh.stderr);
    assert_eq!((requests(&stage, "worker").len(), fresh.json()["spend"]["agents"].as_u64()), (4, Some(4)));
}

#[tokio::test]
async fn an_unfinished_fan_out_is_taken_up_by_the_same_command() {
    let stage = Team::fanning_out(&["low one", "high two"]).stage().await;
    let hold = stage.sim().hold("<subtask>", 1, 0);
    let cut = stage.start(&TASK);
    crate::stage::patiently("a worker's reply to be held", hold.entered()).await;
    cut.signal("KILL");
    assert_eq!(cut.end().await.code, None);
    hold.release();
    let seen = stage.run(&with(&["--continue", "--output", "json"])).await.exits(0);
    assert_eq!(verdicts(&seen.json()), ["high confirmed", "low confirmed"]);
    let first = seen.stderr.lines().next().unwrap();
    assert!(first.contains("mode on · at most $10.00, 500 agents, 120 min"), "{first}");
    assert!(seen.stderr.contains("resuming s_"), "{}", seen.stderr);
}

#[tokio::test]
async fn d9_2_the_two_turn_program_is_one_command() {
    let lead = [workflow(&["low one"]), says("The review."), says("In short.")];
    let stage = Team::new(lead).stage().await;
    let args = ["--follow-up", "Summarise it briefly, alone.", "--follow-up-mode", "off"];
    let seen = stage.run(&with(&args)).await.exits(0);
    assert_eq!(seen.stdout, "The review.\n\nIn short.\n");
    let asked = requests(&stage, "lead");
    assert_eq!((asked.len(), requests(&stage, "worker").len()), (3, 2), "the second turn fans out to nobody");
    let messages = asked[2].body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "system", "assistant", "user", "assistant", "user", "system"]);
    assert!(messages[1].to_string().contains("orchestration mode: on"), "{}", messages[1]);
    assert!(messages[6].to_string().contains("orchestration mode: off"), "{}", messages[6]);
    assert!(messages[5].to_string().contains("Summarise it briefly"), "{}", messages[5]);
    let report = stage.run(&["resume", &session(&seen), "--output", "json"]).await.exits(0).json();
    let modes = (&report["mode"], &report["follow_ups"][0]["mode"]);
    assert_eq!(modes, (&json!("on"), &json!("off")), "read back from the journal");
}

/// The session that the last line on stderr names.
fn session(seen: &Seen) -> String {
    let last = seen.stderr.lines().rev().find(|line| line.contains(" · s_")).unwrap();
    last.rsplit(" · ").next().unwrap().to_owned()
}

#[tokio::test]
async fn verification_is_off_or_done_by_as_many_as_were_asked_for() {
    let check = async |verify: &str, verifiers: usize, verdict: &str, reason: &str| {
        let stage = Team::fanning_out(&["low one"]).stage().await;
        let report = stage.run(&with(&["--output", "json", "--verify", verify])).await.exits(0).json();
        let found = &report["findings"][0];
        assert_eq!((&found["verdict"], &found["reason"]), (&json!(verdict), &json!(reason)));
        assert_eq!(requests(&stage, "verifier").len(), 2 * verifiers, "two turns each");
        assert_eq!(report["agents"].as_array().unwrap().len(), 2 + verifiers);
    };
    check("off", 0, "unverified", "verification is off").await;
    check("3", 3, "confirmed", "3 to 0: looked again").await;
}

#[tokio::test]
async fn with_the_mode_off_a_workflow_needs_a_flag_or_the_word() {
    let check = async |args: &[&str], runs: bool| {
        let stage = Team::fanning_out(&["low one"]).stage().await;
        let seen = stage.run(&[&["--mode", "off"], args].concat()).await.exits(0);
        let read = the_lead_read(&stage);
        assert_eq!(read.contains("nobody has agreed to a workflow"), !runs, "{args:?}: {read}");
        assert_eq!(read.contains("--workflow"), !runs, "the lead is told what would allow it: {read}");
        assert_eq!(requests(&stage, "worker").len(), if runs { 2 } else { 0 }, "{args:?}");
        assert_eq!(seen.stderr.contains("[workflow] fanning out 1 agent\n"), runs, "{}", seen.stderr);
    };
    check(&TASK, false).await;
    check(&["--workflow", "review", "it", "all"], true).await;
    check(&["review", "it", "as", "a", "workflow"], true).await;
    check(&["review", "it", "without", "a", "workflow"], false).await;
}

#[tokio::test]
async fn d1_3_in_doc_test_mode_two_subtasks_run_for_one_turn_each() {
    let lead = [workflow(&["low one", "low two", "low three"]), says("Handed back.")];
    let stage = Team::new(lead).stage().await;
    let mut command = stage.command(&with(&["--output", "json"]));
    command.env("DOC_TEST_MODE", "1");
    let report = to_its_end(command).await.exits(3).json();
    assert_eq!((&report["exit_reason"], &report["answer"]), (&json!("turn_limit"), &json!("Handed back.")));
    assert_eq!(requests(&stage, "lead").len(), 2, "one turn, and one to hand back");
    let skipped = &report["skipped"];
    assert_eq!(
        (skipped.as_array().unwrap().len(), &skipped[0]["label"]),
        (1, &json!("low three")),
        "{skipped:#}"
    );
    let workers: Vec<&Value> =
        report["agents"].as_array().unwrap().iter().filter(|a| a["role"] == "worker").collect();
    assert_eq!(workers.len(), 2);
    // Its only turn is the look around; what it reports when it is told that this was all comes in the turn
    // after.
    assert!(workers.iter().all(|worker| worker["turns"].as_u64().unwrap() <= 2), "{workers:?}");
}

#[tokio::test]
async fn d1_5_how_many_run_at_once_and_how_many_are_queued_are_separate_limits() {
    let subtasks = ["low 1", "low 2", "low 3", "low 4", "low 5"];
    let stage = Team::fanning_out(&subtasks).stage().await;
    let limits = convoke_sim::RateLimits { concurrent: Some(1), ..convoke_sim::RateLimits::default() };
    stage.sim().set_limits(Some(limits));
    let args = ["--output", "json", "--max-concurrent", "1", "--max-subtasks", "4"];
    let report = stage.run(&with(&args)).await.exits(0).json();
    assert_eq!(report["findings"].as_array().unwrap().len(), 4, "four are queued and done");
    assert_eq!(report["skipped"][0]["label"], "low 5");
    let limited = stage.sim().requests().iter().filter(|request| request.limited.is_some()).count();
    assert_eq!(limited, 0, "never two at once");
}

#[tokio::test]
async fn d1_6_the_mode_is_no_parameter_of_the_api() {
    let lead_request = async |mode: &str| {
        let stage = Team::new([says("Done.")]).stage().await;
        stage.run(&with(&["--mode", mode])).await.exits(0);
        (*requests(&stage, "lead")[0].body).clone()
    };
    let mut on = lead_request("on").await;
    let mut off = lead_request("off").await;
    assert_eq!(on["output_config"], json!({"effort": "xhigh"}), "a documented level");
    let messages = |body: &mut Value| body.as_object_mut().unwrap().remove("messages").unwrap();
    let said_on = messages(&mut on);
    let said_off = messages(&mut off);
    assert_eq!(on, off, "everything but the messages is the same");
    assert_eq!((said_on.as_array().unwrap().len(), said_off.as_array().unwrap().len()), (2, 1));
    assert_eq!((&said_on[0], &said_on[1]["role"]), (&said_off[0], &json!("system")));
}

#[tokio::test]
async fn d9_1_the_arguments_are_the_task_and_without_any_the_directory_is_reviewed() {
    let asked = async |args: &[&str]| {
        let stage = Team::new([says("Done.")]).stage().await;
        stage.run(args).await.exits(0);
        requests(&stage, "lead")[0].body["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(asked(&["explain", "a.txt"]).await, "explain a.txt");
    assert_eq!(asked(&["explain a.txt"]).await, "explain a.txt");
    assert!(asked(&[]).await.starts_with("Review this directory"));
}

#[tokio::test]
async fn the_listing_knows_sessions_and_pruning_takes_all_of_one() {
    let stage = Team::fanning_out(&["low one", "high two"]).stage().await;
    let report = stage.run(&with(&["--output", "json"])).await.exits(0).json();
    let run = report["run"].as_str().unwrap();
    let listed = stage.run(&["runs", "list"]).await.exits(0).stdout;
    assert_eq!(listed.lines().count(), 2, "a heading and one session:\n{listed}");
    assert!(listed.contains(" done         4     10 "), "four agents below the lead, ten turns:\n{listed}");
    let data = stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    let [listed] = data["runs"].as_array().unwrap().as_slice() else { panic!("{data:#}") };
    assert_eq!((&listed["cost_nano"], &listed["turns"]), (&report["cost_nano"], &json!(10)));
    assert_eq!(listed["agents"].as_array().unwrap()[0], report["agent"], "the lead first");
    assert_eq!(listed["workflows"][0]["counts"]["findings"]["confirmed"], 2);
    let cost = stage.run(&["cost", run, "--output", "json"]).await.exits(0).json();
    assert_eq!(cost["total"]["cost_nano"].as_u64(), Some(stage.sim().bill().total_nano));
    let shown = stage.run(&["runs", "show", run]).await.exits(0);
    let workflow = listed["workflows"][0]["run"].as_str().unwrap();
    assert!(
        shown.stdout.contains(&format!("workflow {workflow} · 2 subtasks: 2 ok · findings: 2 confirmed\n"))
    );
    for agent in report["agents"].as_array().unwrap() {
        assert!(shown.stdout.contains(agent["agent"].as_str().unwrap()), "{}", shown.stdout);
    }
    let worker = report["agents"][1]["agent"].as_str().unwrap();
    let story = stage.run(&["runs", "show", run, worker]).await.exits(0).stdout;
    assert!(story.contains("$ cat a.txt") && story.contains("report_findings"), "{story}");
    let exported = stage.run(&["runs", "export", run]).await.exits(0).lines();
    for kind in ["agent_started", "run_started", "item_judged", "envelope_granted", "attempt_settled"] {
        assert!(exported.iter().any(|event| event["type"] == kind), "{kind} is not exported");
    }
    stage.run(&["runs", "prune", run, "--yes"]).await.exits(0);
    let journal = Location::Sqlite(stage.state().join("journal.db"));
    let journal = Journal::open(journal, Options::new(Process::current([7; 10]))).await.unwrap();
    let left = journal.list(&Filter::default()).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn with_an_exhausted_budget_the_exit_code_is_four_and_a_larger_total_goes_on() {
    let look = || calls("bash", json!({"command": "echo looked >> looked.txt"})).fills_max_tokens();
    let stage = Stage::with(SimConfig::new(Team::new([
        look(),
        look(),
        look(),
        says("All of it.").fills_max_tokens(),
    ])))
    .await;
    let seen = stage.run(&with(&["--budget-usd", "0.9", "--output", "json"])).await.exits(4);
    let report = seen.json();
    fits_schema(&report);
    assert_eq!((&report["exit_code"], &report["exit_reason"]), (&json!(4), &json!("budget")));
    assert!(report["spend"]["nano"].as_u64().unwrap() <= 900_000_000, "{report:#}");
    assert!(stage.sim().bill().total_nano <= 900_000_000, "the server's own bill");
    let run = report["run"].as_str().unwrap();
    assert!(seen.stderr.contains(&format!("resume: convoke resume {run}")), "{}", seen.stderr);
    let resumed = stage.run(&["resume", run, "--budget-usd", "20", "--output", "json"]).await.exits(0);
    let first = resumed.stderr.lines().next().unwrap();
    assert!(first.contains("mode on · at most $20.00, 500 agents, 120 min"), "{first}");
    assert!(resumed.stderr.contains("granted in all: $20.00"), "{}", resumed.stderr);
    let report = resumed.json();
    assert_eq!(
        (&report["status"], &report["spend"]["cap_nano"]),
        (&json!("done"), &json!(20_000_000_000_u64))
    );
    assert_eq!(report["answer"], "All of it.");
    let exported = stage.run(&["runs", "export", run]).await.exits(0).lines();
    let granted: Vec<(&Value, &Value)> = exported
        .iter()
        .filter(|event| event["type"] == "envelope_granted")
        .map(|event| (&event["by"], &event["caps"]["nano"]))
        .collect();
    let expected = [(&json!("start"), &json!(900_000_000)), (&json!("resume"), &json!(20_000_000_000_u64))];
    assert_eq!(granted, expected);
}

#[tokio::test]
async fn a_fan_out_beyond_the_agents_left_is_refused_whole_with_the_numbers() {
    let stage = Team::fanning_out(&["low one", "low two", "low three"]).stage().await;
    let report = stage.run(&with(&["--budget-agents", "5", "--output", "json"])).await.exits(4).json();
    assert_eq!((requests(&stage, "worker").len(), &report["spend"]["agents"]), (0, &json!(0)));
    let read = the_lead_read(&stage);
    assert!(read.contains('6') && read.contains('5') && read.contains("agents"), "{read}");
}

#[tokio::test]
async fn a_run_begun_without_a_price_takes_no_cap_in_dollars_later() {
    let mut server = SimConfig::new(Team::new([says("Later.")]));
    server
        .models
        .extend([("claude-unheard-of".to_owned(), serde_json::from_value(json!({})).unwrap())])
        .unwrap();
    let stage = Stage::with(server).await;
    let hold = stage.sim().hold("review it all", 0, 0);
    let cut = stage.start(&with(&["--model", "claude-unheard-of", "--budget-usd", "none"]));
    crate::stage::patiently("the reply to be held", hold.entered()).await;
    cut.signal("KILL");
    assert_eq!(cut.end().await.code, None);
    hold.release();
    let refused = stage.run(&["resume", "--budget-usd", "20"]).await.exits(2);
    for part in ["the price of `claude-unheard-of` is not known", "--budget-usd none"] {
        assert!(refused.stderr.contains(part), "{part} is missing in: {}", refused.stderr);
    }
    let resumed = stage.run(&["resume", "--budget-agents", "9"]).await.exits(0);
    let first = resumed.stderr.lines().next().unwrap();
    assert!(first.contains("at most 9 agents, 120 min"), "{first}");
}

#[tokio::test]
async fn a_larger_budget_takes_up_what_the_smaller_one_left_out() {
    let subtasks = ["low 1", "low 2", "low 3", "low 4", "low 5", "low 6"];
    let dear = |task: &str| {
        looks_and_reports(task, vec![finding(task)]).into_iter().map(|reply| reply.fills_max_tokens())
    };
    let lead = || [workflow(&subtasks), says("in part"), says("the whole")];
    let team = || Team::new(lead()).workers(move |task| dear(task).collect());
    let mut stage = team().stage().await;
    let report = stage
        .run(&with(&["--budget-usd", "2.2", "--max-concurrent", "2", "--output", "json"]))
        .await
        .exits(4)
        .json();
    assert!(!report["skipped"].as_array().unwrap().is_empty(), "{report:#}");
    let run = report["run"].as_str().unwrap();
    // Workers of the same subtasks begin as their forerunners did: another simulator does not take them for
    // those.
    stage.turn_to(SimConfig::new(team())).await;
    let resumed = stage
        .run(&["resume", run, "--budget-usd", "60", "--output", "json", "--fail-on", "low"])
        .await
        .exits(6);
    let whole = resumed.json();
    assert_eq!((&whole["status"], &whole["answer"]), (&json!("done"), &json!("the whole")), "{whole:#}");
    assert_eq!(whole["skipped"], json!([]), "what was done later is not skipped");
    assert_eq!(verdicts(&whole), ["low confirmed"; 6], "and nothing is counted twice");
    // The harness does it, whether the lead had answered or could only hand back: three replies are all it
    // has, and it starts nothing twice.
    assert!(resumed.stderr.contains("pieces of lost work are tried again"), "{}", resumed.stderr);
    assert_eq!(requests(&stage, "lead").len(), 1, "it is told what came of it, and answers");
}

#[tokio::test]
async fn a_cap_that_cannot_buy_an_answer_is_refused_and_one_that_can_is_enough() {
    let stage = Team::fanning_out(&["low 1"]).stage().await;
    let refused = stage.run(&with(&["--budget-usd", "0.1"])).await.exits(2);
    assert!(refused.stderr.contains("the budget is too small for the lead to answer"), "{}", refused.stderr);
    assert_eq!(stage.sim().requests().len(), 0, "nothing is sent under a cap that cannot buy an answer");
    let whole = stage.run(&with(&["--budget-usd", "0.55", "--output", "json"])).await.exits(0).json();
    assert_eq!((&whole["status"], &whole["exit_reason"]), (&json!("done"), &json!("done")), "{whole:#}");
}

#[tokio::test]
async fn a_fan_out_that_runs_out_of_money_lists_what_was_not_reached_and_is_exit_code_four() {
    let subtasks = ["low 1", "low 2", "low 3", "low 4", "low 5", "low 6", "low 7", "low 8"];
    let dear = |task: &str| {
        looks_and_reports(task, vec![finding(task)]).into_iter().map(|reply| reply.fills_max_tokens())
    };
    let team = || Team::fanning_out(&subtasks).workers(move |task| dear(task).collect());
    let mut stage = team().stage().await;
    let args = ["--budget-usd", "3.5", "--max-concurrent", "2", "--output", "json"];
    let seen = stage.run(&with(&args)).await.exits(4);
    let report = seen.json();
    fits_schema(&report);
    assert_eq!(
        (&report["status"], &report["exit_reason"]),
        (&json!("partial"), &json!("budget")),
        "{report:#}"
    );
    let skipped = report["skipped"].as_array().unwrap();
    assert!(!skipped.is_empty() && skipped.len() < 8, "{skipped:#?}");
    assert!(skipped.iter().all(|skipped| skipped["reason"].to_string().contains("budget")), "{skipped:#?}");
    assert!(stage.sim().bill().total_nano <= 3_500_000_000, "the server's own bill");
    // Which of two workers settles first decides what is left for the lead: an ordinary last turn, or only
    // its hand-back. Both answer, and both say that the budget is the reason.
    let lead = &report["agents"][0];
    assert_eq!((&lead["role"], &report["answer"]), (&json!("lead"), &json!("The synthesis.")), "{report:#}");
    match lead["status"].as_str() {
        Some("ok") => {
            assert!(seen.stderr.contains("the budget had no room for everything"), "{}", seen.stderr)
        }
        _ => assert_eq!(lead["failure"]["kind"], "budget", "{report:#}"),
    }
    stage.turn_to(SimConfig::new(team())).await;
    let again = stage.run(&with(&["--budget-usd", "50", "--output", "json"])).await.exits(0);
    assert_eq!(verdicts(&again.json()), ["low confirmed"; 8]);
    assert!(
        again.stderr.contains(&format!(" from {}, ", report["run"].as_str().unwrap())),
        "{}",
        again.stderr
    );
}
