//! Every tool of a team, called rightly and wrongly.

use serde_json::{Value, json};

use super::*;
use crate::consent::Consent;
use crate::spec::Role;
use crate::team::MAX_LETTER;
use crate::todo::{MOST_ITEMS, TodoItem, TodoStatus};
use crate::tools::table::{AnyTool, Offer, Who, declare};
use crate::tools::{Caller, known_tools};

/// What an agent of this role gains by belonging to a team.
fn gained(role: Role, requires_plan: bool) -> Vec<Value> {
    let none = known_tools(&[]).0;
    declare(&Offer { in_team: true, requires_plan, ..Offer::to(role, false, &none) })
}

fn declare_lead() -> Vec<Value> {
    gained(Role::Lead, false)
}

fn declare_teammate(plan: bool) -> Vec<Value> {
    gained(Role::Teammate, plan)
}

/// Reads a call by a lead or a teammate; `None` if the name is none of a team's tools for it.
fn read_team(name: &str, input: &Value, lead: bool) -> Option<Result<Wanted, String>> {
    let role = if lead { Role::Lead } else { Role::Teammate };
    let caller = Caller {
        role,
        findings: 0,
        hands: None,
        output: None,
        consent: Consent::Missing,
        in_team: true,
        given: &[],
    };
    let alone = Who { role, in_team: false, has_output: false };
    let tool = AnyTool::of(name, Who { in_team: true, ..alone }, &[])?;
    AnyTool::of(name, alone, &[]).is_none().then(|| tool.read(input, &caller))
}

fn check(name: &str, input: Value, expected: Result<Wanted, &str>) {
    // The lead's where both have it.
    let answer = read_team(name, &input, true).or_else(|| read_team(name, &input, false));
    match (answer.unwrap(), expected) {
        (Ok(got), Ok(want)) => assert_eq!(got, want, "{name} {input}"),
        (Err(got), Err(want)) => {
            assert!(got.starts_with(&format!("{name} error: ")), "{got}");
            assert!(got.contains(want), "{got:?} does not contain {want:?}");
        }
        (got, want) => panic!("{name} {input}: got {got:?}, wanted {want:?}"),
    }
}

fn run(call: TeamCall) -> Result<Wanted, &'static str> {
    Ok(Wanted::Run(ToolRequest::Team(call)))
}

#[test]
fn every_declared_tool_is_read_and_none_that_belongs_to_somebody_else() {
    for (lead, offered) in [(true, declare_lead()), (false, declare_teammate(true))] {
        for tool in offered {
            let name = tool["name"].as_str().unwrap();
            let answer = read_team(name, &json!({}), lead).unwrap();
            assert!(!answer.clone().is_err_and(|why| why.contains("fault")), "{name}: {answer:?}");
        }
    }
    for name in ["idle", "claim_task", "submit_plan", "answer_shutdown", "bash", "Workflow", ""] {
        assert_eq!(read_team(name, &json!({}), true), None, "{name}");
    }
    for name in ["spawn_teammate", "read_inbox", "request_shutdown", "review_plan", "bash", "Workflow"] {
        assert_eq!(read_team(name, &json!({}), false), None, "{name}");
    }
}

#[test]
fn a_letter_has_a_reader_and_a_text() {
    let send = |urgent| TeamCall::Send { to: "bob".into(), text: " hi ".into(), urgent };
    check("send_message", json!({"to": "bob", "text": " hi "}), run(send(false)));
    check("send_message", json!({"to": " @bob ", "text": " hi ", "urgent": true}), run(send(true)));
    check(
        "send_message",
        json!({"to": "@", "text": "hi"}),
        Err("to is missing or blank; send the name of a member"),
    );
    check("send_message", json!({"text": "hi"}), Err("to is missing or blank"));
    check(
        "send_message",
        json!({"to": "bob", "text": " "}),
        Err("text is missing or blank; send it as a text"),
    );
    check("send_message", json!({"to": "bob", "text": 7}), Err("text has to be a text"));
    check(
        "send_message",
        json!({"to": "bob", "text": "hi", "urgent": "yes"}),
        Err("urgent has to be true or false"),
    );
    check("send_message", json!(["bob", "hi"]), Err("one JSON object"));
    check("broadcast", json!({"text": "hi"}), run(TeamCall::Broadcast { text: "hi".into() }));
    check("broadcast", json!({}), Err("text is missing"));
}

#[test]
fn w7_nobody_can_say_in_a_call_whom_a_letter_is_from() {
    let spoofed = json!({"to": "bob", "text": "hi", "from": "person"});
    check("send_message", spoofed, Err("'from' is no field of it; it has to, text, urgent."));
    check("idle", json!({"from": "x"}), Err("'from' is no field of it; idle has none."));
}

#[test]
fn w10_a_text_that_is_too_long_is_refused_with_its_size() {
    let most = "x".repeat(MAX_LETTER);
    check("broadcast", json!({"text": most}), run(TeamCall::Broadcast { text: most.clone() }));
    check(
        "broadcast",
        json!({"text": format!("{most}x")}),
        Err("text has 32769 bytes, and 32768 are the most"),
    );
}

#[test]
fn a_teammate_has_a_name_a_role_and_a_prompt() {
    let call = SpawnCall {
        name: "bob".into(),
        role: "tester".into(),
        prompt: "test it".into(),
        require_plan: false,
        tools: None,
        isolation: Isolation::None,
    };
    let said = |more: Value| {
        let mut input = json!({"name": "@bob", "role": "tester ", "prompt": "test it"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    check("spawn_teammate", said(json!({"tools": null})), run(TeamCall::Spawn(call.clone())));
    let narrow = SpawnCall {
        require_plan: true,
        tools: Some(vec!["view".into(), "grep".into()]),
        isolation: Isolation::Worktree,
        ..call
    };
    let more = json!({"require_plan": true, "tools": ["view", " grep"], "isolation": "worktree"});
    check("spawn_teammate", said(more), run(TeamCall::Spawn(narrow)));
    check("spawn_teammate", json!({"name": "bob", "role": "tester"}), Err("prompt is missing"));
    check("spawn_teammate", said(json!({"role": ""})), Err("role is missing"));
    check("spawn_teammate", said(json!({"tools": ["browser"]})), Err("'browser' is none. Leave tools out"));
    check("spawn_teammate", said(json!({"tools": []})), Err("an empty list gives none"));
    check("spawn_teammate", said(json!({"isolation": "moon"})), Err("none, copy or worktree"));
}

#[test]
fn requests_are_asked_for_and_answered_in_one_word() {
    let ask = |reason: &str| TeamCall::RequestShutdown { name: "bob".into(), reason: reason.into() };
    check("request_shutdown", json!({"name": "bob"}), run(ask("")));
    check("request_shutdown", json!({"name": "bob", "reason": "done"}), run(ask("done")));
    let answer = |request: Option<&str>| TeamCall::AnswerShutdown {
        request: request.map(str::to_owned),
        approve: false,
        reason: "one test is left".into(),
    };
    check("answer_shutdown", json!({"approve": false, "reason": "one test is left"}), run(answer(None)));
    let named = json!({"approve": false, "reason": "one test is left", "request": " m_a "});
    check("answer_shutdown", named, run(answer(Some("m_a"))));
    check("answer_shutdown", json!({}), Err("approve has to be true or false"));
    check("submit_plan", json!({"plan": "1. look"}), run(TeamCall::SubmitPlan { plan: "1. look".into() }));
    check("submit_plan", json!({"plan": ""}), Err("plan is missing"));
    let review = TeamCall::ReviewPlan { request: "m_a".into(), approve: true, feedback: String::new() };
    check("review_plan", json!({"request": "m_a", "approve": true}), run(review));
    check("review_plan", json!({"approve": true}), Err("request is missing"));
    check("review_plan", json!({"request": "m_a", "approve": "yes"}), Err("approve has to be true or false"));
}

#[test]
fn a_task_is_written_with_what_has_to_be_done_before_it() {
    let call = |blocked_by: &[&str]| {
        TeamCall::TaskCreate(TaskCreateCall {
            subject: "fix".into(),
            blocked_by: blocked_by.iter().map(|task| (*task).to_owned()).collect(),
            ..Default::default()
        })
    };
    check("task_create", json!({"subject": " fix "}), run(call(&[])));
    check("task_create", json!({"subject": "fix", "blocked_by": "t_a"}), run(call(&["t_a"])));
    check(
        "task_create",
        json!({"subject": "fix", "blocked_by": ["t_a ", 2, "3", "#4"]}),
        run(call(&["t_a", "#2", "#3", "#4"])),
    );
    check(
        "task_create",
        json!({"subject": "fix", "blocked_by": [true]}),
        Err("blocked_by has to be a list of texts"),
    );
    check(
        "task_create",
        json!({"subject": "fix", "dependencies": ["t_a"]}),
        Err("'dependencies' is no field"),
    );
    check("task_create", json!({"description": "fix"}), Err("subject is missing"));
    check(
        "task_create",
        json!({"subject": "fix", "priority": "high"}),
        Err("priority has to be a whole number"),
    );
    check(
        "task_create",
        json!({"subject": "fix", "priority": 1.5}),
        Err("priority has to be a whole number"),
    );
    let whole = TaskCreateCall {
        subject: "fix".into(),
        description: "all of it".into(),
        criteria: Some("tests pass".into()),
        role: Some("coder".into()),
        priority: -2,
        ..Default::default()
    };
    let said = json!({"subject": "fix", "description": "all of it", "criteria": "tests \
        pass", "role": "coder", "priority": -2});
    check("task_create", said, run(TeamCall::TaskCreate(whole)));
}

#[test]
fn a_task_is_ended_given_back_or_changed() {
    let update = |status, result: Option<&str>| {
        let call = TaskUpdateCall {
            task: "t_a".into(),
            status,
            result: result.map(str::to_owned),
            ..Default::default()
        };
        run(TeamCall::TaskUpdate(call))
    };
    for (said, status) in [
        ("done", TaskStatusCall::Done),
        ("completed", TaskStatusCall::Done),
        ("failed", TaskStatusCall::Failed),
        ("pending", TaskStatusCall::Pending),
        ("cancelled", TaskStatusCall::Cancelled),
    ] {
        check(
            "task_update",
            json!({"task": "t_a", "status": said, "result": "r"}),
            update(Some(status), Some("r")),
        );
    }
    let edited = TaskUpdateCall {
        task: "#3".into(),
        subject: Some("other".into()),
        priority: Some(9),
        add_blocked_by: vec!["t_b".into()],
        remove_blocked_by: vec!["#1".into()],
        ..Default::default()
    };
    let said = json!({"task": 3, "subject": "other", "priority": 9, "add_blocked_by": "t_b", "remove_blocked_by": [1]});
    check("task_update", said, run(TeamCall::TaskUpdate(edited)));
    check("task_update", json!({"task": "t_a"}), Err("nothing is to be changed"));
    check("task_update", json!({"task": "t_a", "result": "r"}), Err("together with status done or failed"));
    check("task_update", json!({"status": "done"}), Err("A task's id begins with t_"));
    check(
        "task_update",
        json!({"task": "t_a", "status": "finished"}),
        Err("done, failed, pending or cancelled"),
    );
    check("task_update", json!({"task": "t_a", "status": "in_progress"}), Err("tell one to claim it"));
    let own = read_team("task_update", &json!({"task": "t_a", "status": "in_progress"}), false);
    assert!(own.unwrap().unwrap_err().contains("claim it with claim_task"));
}

#[test]
fn tasks_and_earlier_results_are_named() {
    check("task_get", json!({"task": " t_a "}), run(TeamCall::TaskGet { task: "t_a".into() }));
    check("claim_task", json!({"task": "2"}), run(TeamCall::ClaimTask { task: "#2".into() }));
    check("claim_task", json!({}), Err("task is missing or blank"));
    check("task_list", json!({}), run(TeamCall::TaskList));
    check("list_teammates", json!({}), run(TeamCall::ListTeammates));
    check("read_inbox", json!({}), run(TeamCall::ReadInbox));
    let recall = |from| TeamCall::Recall { reference: "toolu_1".into(), from };
    check("recall", json!({"reference": "toolu_1"}), run(recall(0)));
    check("recall", json!({"reference": "toolu_1", "from": 800}), run(recall(800)));
    check("recall", json!({"reference": "toolu_1", "from": -1}), Err("from has to be a whole number"));
    check("recall", json!({}), Err("reference is missing"));
}

#[test]
fn c6_idle_and_compact_need_nothing() {
    check("idle", json!({}), Ok(Wanted::Idle));
    check("compact", json!({}), Ok(Wanted::Compact(None)));
    check("compact", json!({"focus": "the parser"}), Ok(Wanted::Compact(Some("the parser".into()))));
    check("compact", json!({"focus": ["a"]}), Err("focus has to be a text"));
}

#[test]
fn a_list_is_short_has_no_blank_item_and_one_under_way() {
    let item = |text: &str, status| TodoItem { text: text.into(), status };
    let list = vec![item("look", TodoStatus::Completed), item("fix", TodoStatus::InProgress)];
    let said = json!([{"text": " look", "status": "completed"}, {"content": "fix", "status": "in_progress"}]);
    check("todo", json!({"items": said}), Ok(Wanted::Todo(list)));
    check("todo", json!({"items": []}), Ok(Wanted::Todo(Vec::new())));
    check("todo", json!({}), Err("give items"));
    check("todo", json!({"items": "look"}), Err("give items"));
    check("todo", json!({"items": ["look"]}), Err("item 1 has no text"));
    check(
        "todo",
        json!({"items": [{"text": "a", "status": "pending"}, {"text": " ", "status": "pending"}]}),
        Err("item 2 has no text"),
    );
    check("todo", json!({"items": [{"text": "a"}]}), Err("item 1 is pending, in_progress or completed"));
    check(
        "todo",
        json!({"items": [{"text": "x".repeat(501), "status": "pending"}]}),
        Err("item 1 has 501 bytes"),
    );
    let under_way = json!({"text": "a", "status": "in_progress"});
    check("todo", json!({"items": [under_way, under_way]}), Err("2 items are in_progress"));
    let many = vec![json!({"text": "a", "status": "pending"}); MOST_ITEMS + 1];
    check("todo", json!({"items": many}), Err("21 items are too many"));
}

fn declared(name: &str) -> Value {
    declare_teammate(true).into_iter().find(|tool| tool["name"] == name).unwrap()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

const SHARED: [&str; 7] =
    ["task_create", "task_update", "task_get", "task_list", "todo", "compact", "recall"];

#[test]
fn b17_a_lead_of_a_team_gains_the_tools_to_make_it_write_to_it_and_look_at_its_mail() {
    let tools = declare_lead();
    let own =
        ["spawn_teammate", "send_message", "broadcast", "read_inbox", "list_teammates", "request_shutdown"];
    assert_eq!(names(&tools), [&own[..], &["review_plan"], &SHARED].concat());
}

#[test]
fn b11_c18_a_teammate_has_its_mail_idle_and_claim_task_and_a_plan_only_where_one_is_required() {
    let own = ["send_message", "broadcast", "list_teammates", "idle", "claim_task"];
    assert_eq!(names(&declare_teammate(false)), [&own[..], &["answer_shutdown"], &SHARED].concat());
    let with_plan = [&own[..], &["submit_plan", "answer_shutdown"], &SHARED].concat();
    assert_eq!(names(&declare_teammate(true)), with_plan);
}

#[test]
fn c6_idle_has_no_parameters() {
    assert_eq!(declared("idle")["input_schema"]["properties"], json!({}));
    assert_eq!(declared("idle")["input_schema"]["required"], json!([]));
}

#[test]
fn every_schema_is_closed_says_what_each_field_is_and_requires_only_what_it_has() {
    for tool in declare_lead().into_iter().chain(declare_teammate(true)) {
        let schema = &tool["input_schema"];
        assert_eq!(schema["additionalProperties"], json!(false), "{}", tool["name"]);
        assert!(tool["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", tool["name"]);
        let properties = schema["properties"].as_object().unwrap();
        for (field, property) in properties {
            assert!(property["description"].is_string(), "{}.{field}", tool["name"]);
        }
        for field in schema["required"].as_array().unwrap() {
            assert!(properties.contains_key(field.as_str().unwrap()), "{}.{field}", tool["name"]);
        }
    }
}

#[test]
fn a_member_is_told_that_printing_sends_nothing_and_that_nothing_is_polled_for() {
    let text = declared("send_message")["description"].as_str().unwrap().to_owned();
    for said in ["merely print", "never poll", "list_teammates", "32768 bytes"] {
        assert!(text.contains(said), "{said}");
    }
}
