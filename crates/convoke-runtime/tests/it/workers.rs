//! Workers over HTTP: what they are made of, what their failures come to, and what the lead reads of a run.

use std::collections::BTreeSet;

use convoke_kernel::{AgentId, Event, Outcome, RunId};
use convoke_sim::{
    Brain, Context, Fault, FaultKind, Scripted, SimConfig, calls, calls_many, says, tool_use_id,
};
use serde_json::{Value, json};

use crate::support::{MODEL, Rig};
use crate::team::{Team, between, finding, looks_and_reports, report, role, workflow};

/// A lead that may fan out, with these replies behind it.
pub(crate) async fn rig(brain: impl Brain + 'static) -> Rig {
    let mut rig = Rig::new(SimConfig::new(brain)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig
}

/// The requests of one role, in order of arrival.
pub(crate) fn requests(rig: &Rig, who: &str) -> Vec<Value> {
    rig.sim
        .requests()
        .into_iter()
        .map(|request| (*request.body).clone())
        .filter(|body| role(body) == who)
        .collect()
}

/// Every tool result in the lead's last request, and whether it is an error.
pub(crate) fn lead_read(rig: &Rig) -> Vec<(String, bool)> {
    let last = requests(rig, "lead").pop().unwrap();
    let blocks = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|b| (b["content"].as_str().unwrap_or_default().to_owned(), b["is_error"] == true)).collect()
}

/// The lead's only tool result.
pub(crate) fn only_result(rig: &Rig) -> String {
    let results = lead_read(rig);
    assert_eq!(results.len(), 1, "{results:?}");
    results.into_iter().next().unwrap().0
}

/// The ids of the calls an agent's tools were started by, in order.
pub(crate) async fn started(rig: &Rig, agent: &AgentId, tool: &str) -> Vec<String> {
    let ids = rig.events(agent).await.into_iter().filter_map(|event| match event {
        Event::ToolStarted(e) if e.name == tool => Some(e.id),
        _ => None,
    });
    ids.collect()
}

fn names(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn tool<'a>(request: &'a Value, name: &str) -> &'a Value {
    request["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
}

/// What every agent has.
pub(crate) const HANDS: [&str; 4] = ["bash", "str_replace_based_edit_tool", "glob", "grep"];

fn check_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[tokio::test]
async fn d3_1_d3_2_d3_3_d3_4_d3_5_each_role_is_declared_its_own_tools() {
    let rig = rig(Team::new([workflow(&["look"]), says("done")])).await;
    rig.ask("Review").await;
    let lead = requests(&rig, "lead").remove(0);
    let worker = requests(&rig, "worker").remove(0);
    let verifier = requests(&rig, "verifier").remove(0);
    let with = |own: &[&'static str]| [&HANDS[..], own].concat();
    assert_eq!(names(&lead), with(&["task", "Workflow", "read_result", "run_status"]));
    assert_eq!(lead["tools"][0], json!({"type": "bash_20250124", "name": "bash"}));
    assert_eq!(names(&worker), with(&["report_findings"]));
    assert_eq!(names(&verifier), with(&["report_verdicts"]));
    let schema = &tool(&lead, "Workflow")["input_schema"];
    assert_eq!(schema["properties"]["subtasks"]["type"], "array");
    assert_eq!(schema["properties"]["subtasks"]["items"], json!({"type": "string"}));
    // Either subtasks or a program, which a schema without alternatives at its root cannot say: the
    // dispatcher says it.
    assert_eq!(schema.get("required"), None);
    check_contains(
        &schema["properties"].to_string(),
        &["script", "name", "scriptPath", "args", "resumeFromRunId"],
    );
    let description = tool(&lead, "Workflow")["description"].as_str().unwrap();
    // What it does, opt-in, standing consent, quality patterns, granularity.
    let sections = [
        "Runs many agents at once",
        "When it may be used.",
        "Standing consent.",
        "What makes a good one.",
        "Granularity.",
    ];
    check_contains(description, &sections);
    let report = tool(&worker, "report_findings");
    assert_eq!(report["input_schema"]["required"], json!(["summary", "findings"]));
    let finding = &report["input_schema"]["properties"]["findings"]["items"];
    assert_eq!(finding["required"], json!(["claim", "evidence", "severity"]));
    assert_eq!(finding["properties"]["severity"]["enum"], json!(["high", "medium", "low", "info"]));
    assert_eq!(report["strict"], true);
}

#[tokio::test]
async fn d5_1_d5_2_workers_and_verifiers_have_clean_contexts_and_the_leads_model_and_effort() {
    let team = Team::new([
        calls("bash", json!({"command": "echo the secret of the lead"})),
        workflow(&["look"]),
        says("done"),
    ]);
    let rig = rig(team).await;
    rig.ask("A request of the person").await;
    let lead = requests(&rig, "lead").remove(0);
    for who in ["worker", "verifier"] {
        let first = requests(&rig, who).remove(0);
        assert_eq!(first["messages"].as_array().unwrap().len(), 1, "{who}");
        for body in requests(&rig, who) {
            let text = body.to_string();
            assert!(
                !text.contains("the secret of the lead") && !text.contains("A request of the person"),
                "{who}"
            );
            assert_ne!(body["system"], lead["system"], "{who}");
            for member in ["model", "output_config", "thinking", "max_tokens"] {
                assert_eq!(body[member], lead[member], "{member} of the {who}");
            }
        }
    }
    assert_eq!((&lead["model"], &lead["output_config"]), (&json!(MODEL), &json!({"effort": "xhigh"})));
}

#[tokio::test]
async fn d3_4_a_worker_that_calls_the_leads_tools_is_told_that_there_are_none() {
    let team = Team::new([workflow(&["look"]), says("done")]).workers(|subtask| {
        let tries = [("Workflow", json!({"subtasks": ["deeper"]})), ("task", json!({"prompt": "deeper"}))];
        let mut replies = vec![calls_many(tries)];
        replies.extend(looks_and_reports(subtask, vec![]));
        replies
    });
    let rig = rig(team).await;
    rig.ask("Review").await;
    let second = requests(&rig, "worker").remove(1);
    let results = &second["messages"][2]["content"];
    assert_eq!(results[0]["content"], "unknown tool: Workflow");
    assert_eq!(results[1]["content"], "unknown tool: task");
    assert_eq!(
        (requests(&rig, "worker").len(), requests(&rig, "task").len(), requests(&rig, "verifier").len()),
        (3, 0, 0)
    );
}

#[tokio::test]
async fn d7_2_d7_10_a_call_without_usable_subtasks_is_an_error_and_starts_nobody() {
    let lead = [
        calls("Workflow", json!({})),
        calls("Workflow", json!({"subtasks": []})),
        calls("Workflow", json!({"subtasks": ["  ", 7]})),
        says("done"),
    ];
    let rig = rig(Team::new(lead)).await;
    rig.ask("Review").await;
    let results = lead_read(&rig);
    assert_eq!(results.len(), 3);
    for (text, is_error) in &results {
        assert!(*is_error && text.starts_with("Workflow error: no usable subtasks were provided."), "{text}");
    }
    check_contains(&results[2].0, &["subtask 2 is no text and was not run: 7", "subtask 1 is empty"]);
    assert_eq!(requests(&rig, "worker").len(), 0);
}

#[tokio::test]
async fn d7_3_d1_3_subtasks_beyond_the_limit_are_not_run_and_listed_whole() {
    let mut rig = rig(Team::new([workflow(&["one", "two", "three", "four"]), says("done")])).await;
    rig.fan_out.as_mut().unwrap().max_subtasks = 2;
    rig.ask("Review").await;
    let text = only_result(&rig);
    let note = "(note: 2 subtasks beyond MAX_TOTAL_SUBTASKS=2 were not run; rerun them in a follow-up \
        Workflow call)";
    check_contains(text.lines().next().unwrap(), &[note]);
    check_contains(&text, &["\"three\"", "\"four\"", "## item 2: two"]);
    assert!(!text.contains("## item 3"), "{text}");
    assert_eq!(requests(&rig, "worker").len(), 4);
}

/// Three subtasks, the second of which runs into this fault whenever it asks; what the lead read.
async fn with_a_fault(kind: FaultKind) -> (Rig, String) {
    let subtasks = ["look at a", "look at b [conversation: b]", "look at c"];
    let mut rig = rig(Team::new([workflow(&subtasks), says("done")])).await;
    rig.fan_out.as_mut().unwrap().child.limits.max_attempts = 2;
    rig.sim.push_fault(Fault::new(kind).on("b").times(u32::MAX));
    let (_, ended) = rig.ask("Review").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    let text = only_result(&rig);
    (rig, text)
}

#[tokio::test]
async fn d7_6_a_worker_that_fails_for_good_is_named_with_its_kind_and_the_run_goes_on() {
    let (rig, text) = with_a_fault(FaultKind::BadRequest400("no such thing".into())).await;
    check_contains(
        &text,
        &["3 items: 2 ok, 1 failed", "## item 2: look at b", "status: failed(api)", "no such thing"],
    );
    check_contains(&text, &["[confirmed] [low] look at a", "[confirmed] [low] look at c"]);
    assert_eq!(requests(&rig, "verifier").len(), 4, "a failed result is never verified");
}

#[tokio::test]
async fn d5_8_a_connection_that_keeps_dropping_costs_one_worker_and_not_the_run() {
    let (rig, text) = with_a_fault(FaultKind::CutAfter(3)).await;
    check_contains(&text, &["3 items: 2 ok, 1 failed", "status: failed(transport)"]);
    assert_eq!(requests(&rig, "worker").len(), 2 + 2 + 2, "two attempts at the one that drops");
}

#[tokio::test]
async fn d7_8_d5_7_what_was_handed_back_at_the_turn_limit_is_shown_and_never_verified() {
    let mut rig = rig(Team::new([workflow(&["dig"]), says("done")])).await;
    rig.fan_out.as_mut().unwrap().child.limits.max_turns = 1;
    rig.ask("Review").await;
    let text = only_result(&rig);
    check_contains(&text, &["status: failed(turn_limit)", "- [unverified: ", "[low] dig"]);
    assert_eq!(requests(&rig, "verifier").len(), 0);
}

#[tokio::test]
async fn d7_8_reports_that_rest_on_nothing_and_prose_are_degraded_and_never_verified() {
    let team = Team::new([workflow(&["guess", "chat"]), says("done")]).workers(|subtask| match subtask {
        "guess" => vec![
            report("guessed", vec![finding("a guess", "high")]),
            report("guessed", vec![finding("a guess", "high")]),
        ],
        _ => vec![says("It is fine."), says("It is all fine.")],
    });
    let rig = rig(team).await;
    rig.ask("Review").await;
    let text = only_result(&rig);
    check_contains(&text, &["2 items: 2 degraded", "ok, degraded: the report came without a single command"]);
    check_contains(&text, &["- [unverified: ", "ok, degraded: it ended in prose", "> It is all fine."]);
    assert_eq!(requests(&rig, "verifier").len(), 0);
}

#[tokio::test]
async fn two_workflows_in_one_reply_run_at_the_same_time() {
    let both = calls_many([
        ("Workflow", json!({"subtasks": ["a [conversation: a]"]})),
        ("Workflow", json!({"subtasks": ["b [conversation: b]"]})),
    ]);
    let mut rig = rig(Team::new([both, says("done")])).await;
    rig.fan_out.as_mut().unwrap().voters = 0;
    let a = rig.sim.hold("a", 0, 2);
    let b = rig.sim.hold("b", 0, 2);
    let let_go = async {
        a.entered().await;
        b.entered().await;
        a.release();
        b.release();
    };
    let ((_, ended), ()) = tokio::join!(rig.ask("Review"), let_go);
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    let results = lead_read(&rig);
    check_contains(&results[0].0, &["## item 1: a"]);
    check_contains(&results[1].0, &["## item 1: b"]);
}

/// A lead that reads on wherever it is told how to, and then ends.
struct ReadsOn(Team);

impl Brain for ReadsOn {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.iter().rfind(|message| message["role"] == "user").unwrap();
        let block = last["content"].as_array().unwrap().last().unwrap();
        let text = block["content"].as_str().or(block["text"].as_str()).unwrap_or_default();
        let told = text.rsplit_once("read_result {").map(|(_, rest)| format!("{{{rest}"));
        let wanted =
            told.and_then(|rest| serde_json::Deserializer::from_str(&rest).into_iter::<Value>().next()?.ok());
        match wanted {
            _ if role(request) != "lead" => self.0.reply(request, context),
            Some(input) => {
                let id = tool_use_id(context, "read", 0);
                Scripted::new(vec![
                    json!({"type": "tool_use", "id": id, "name": "read_result", "input": input}),
                ])
            }
            None if context.position > 0 => Scripted::new(vec![json!({"type": "text", "text": "read"})]),
            None => self.0.reply(request, context),
        }
    }
}

fn long(number: usize) -> String {
    format!("finding-{number} {}", "x".repeat(1_500))
}

#[tokio::test]
async fn an_item_that_is_too_long_is_cut_openly_and_the_lead_reads_the_rest_page_by_page() {
    let team = Team::new([workflow(&["look", "glance"])]).workers(|subtask| match subtask {
        "look" => looks_and_reports("long", (1..=12).map(|number| finding(&long(number), "low")).collect()),
        _ => looks_and_reports("short", vec![]),
    });
    let rig = rig(ReadsOn(team)).await;
    let (lead, ended) = rig.ask("Review").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "read".into() }));
    let run = RunId::derived(&["workflow", lead.as_str(), &started(&rig, &lead, "Workflow").await[0]]);
    let results = lead_read(&rig);
    let (digest, pages) = results.split_first().unwrap();
    let cut = format!("read on with read_result {{\"run\":\"{run}\",\"item\":1,\"from\":");
    check_contains(&digest.0, &[&cut, "## item 2: glance", "\n> short\n"]);
    let section = between(&digest.0, "## item 1", "## item 2");
    assert!(section.chars().count() <= 4_000, "{} characters", section.chars().count());
    assert!(
        pages.len() >= 2 && pages.iter().all(|(text, is_error)| !is_error && text.chars().count() < 8_500)
    );
    let all: String = results.iter().map(|(text, _)| text.as_str()).collect();
    let found: BTreeSet<usize> =
        (1..=12).filter(|number| all.contains(&format!("finding-{number} x"))).collect();
    assert_eq!(found.len(), 12, "{found:?}");
    assert!(!pages.last().unwrap().0.contains("read on"));
}

#[tokio::test]
async fn a_run_of_another_lead_and_items_that_are_not_there_cannot_be_read() {
    let rig = rig(ReadsOn(Team::new([workflow(&["look"])]))).await;
    let (lead, _) = rig.ask("Review").await;
    let run = RunId::derived(&["workflow", lead.as_str(), &started(&rig, &lead, "Workflow").await[0]]);
    rig.ask(&format!("read_result {{\"run\":\"{run}\",\"item\":1}}")).await;
    let text = only_result(&rig);
    assert_eq!(text, format!("read_result error: this conversation has no run {run}."));
    rig.ask("read_result {\"run\":\"../../etc/passwd\",\"item\":1}").await;
    check_contains(
        &only_result(&rig),
        &["read_result error: this conversation has no run ../../etc/passwd."],
    );
    let runtime = rig.life(None).await;
    runtime.say(&lead, "more", &format!("read_result {{\"run\":\"{run}\",\"item\":9}}")).await.unwrap();
    let stop = convoke_runtime::Stop::never();
    runtime.drive(&lead, convoke_runtime::DriveMode::New, stop, None).await.unwrap();
    let (text, is_error) = lead_read(&rig).pop().unwrap();
    assert!(
        is_error && text.contains(&format!("there is no item 9 in {run}: it has items 1 to 1")),
        "{text}"
    );
}
