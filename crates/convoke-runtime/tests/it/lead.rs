//! The lead against the simulator: what it sends and what it makes of replies.

use convoke_claude::{Endpoint, Models, capabilities};
use convoke_kernel::{Event, FailureKind, Outcome};
use convoke_runtime::{DriveMode, Start, Stop};
use convoke_sim::{
    EndpointKind, Fault, FaultKind, Reply, Script, Scripted, SimConfig, calls, calls_many, calls_raw,
    cut_at_max_tokens, empty, raw, refuses, says,
};
use serde_json::{Value, json};

use crate::support::{MODEL, Rig};

fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::new().conversation("*", replies)
}

async fn check_fails(replies: Vec<Reply>, kind: FailureKind, text: &str) -> Rig {
    let rig = Rig::new(script(replies)).await;
    let (_, ended) = rig.ask("do it").await;
    match ended.outcome.unwrap() {
        Outcome::Failed { kind: got, text: said, .. } => assert_eq!((got, said.as_str()), (kind, text)),
        Outcome::Ok { text } => panic!("it answered {text}"),
    }
    rig
}

#[tokio::test]
async fn d1_2_d8_1_d8_3_a_plain_answer_comes_back_with_its_bill() {
    let rig = Rig::new(script([says("42")])).await;
    let (_, ended) = rig.ask("what is it").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "42".into() }));
    let summary = ended.summary.unwrap();
    assert!(summary.usage.output_tokens > 0 && summary.cost_nano.unwrap() > 0);
    let request = &rig.sim.requests()[0].body;
    assert_eq!(request["max_tokens"], 64_000);
    assert_eq!(request["stream"], true);
}

#[tokio::test]
async fn d8_2_d8_5_tool_calls_run_in_order_and_are_answered_in_one_message() {
    let rig = Rig::new(script([
        calls_many([
            ("bash", json!({"command": "echo a >> log"})),
            ("bash", json!({"command": "echo b >> log; false"})),
        ]),
        says("ran"),
    ]))
    .await;
    rig.ask("run").await;
    assert_eq!(rig.read("log"), "a\nb\n");
    let second = &rig.sim.requests()[1].body["messages"];
    assert_eq!(second.as_array().unwrap().len(), 3);
    let results = &second[2]["content"];
    assert_eq!(results[0].get("is_error"), None);
    assert_eq!(results[1]["is_error"], true);
    assert_eq!(results[1]["content"], "(exit code 1)\n(no output)");
}

#[tokio::test]
async fn what_the_model_said_is_echoed_byte_for_byte() {
    let odd = r#"{"command":"echo \u00e9 \/ 1.0","zeta":1e5,  "alpha":[ 1.50 ]}"#;
    let rig = Rig::new(script([calls_raw("bash", odd).thinking("hm"), says("ok")])).await;
    rig.ask("run").await;
    let sent = String::from_utf8(rig.sim.requests()[1].raw.to_vec()).unwrap();
    assert!(sent.contains(odd), "{sent}");
}

#[tokio::test]
async fn d8_4_a_cut_reply_is_tried_with_more_room_and_then_dropped_with_a_warning() {
    let rig = check_fails(
        vec![calls("bash", json!({"command": "true"})), cut_at_max_tokens("half a repl")],
        FailureKind::Truncated,
        "half a repl",
    )
    .await;
    let rooms: Vec<Value> = rig.sim.requests().iter().map(|r| r.body["max_tokens"].clone()).collect();
    assert_eq!(rooms, [64_000, 64_000, 128_000]);
}

#[tokio::test]
async fn d8_6_the_turn_limit_is_followed_by_one_hand_back() {
    let mut rig = Rig::new(script([
        calls("bash", json!({"command": "echo 1 >> log"})),
        calls("bash", json!({"command": "echo 2 >> log"})).saying("I got as far as one."),
        says("More then."),
    ]))
    .await;
    rig.limits.max_turns = 1;
    let (agent, ended) = rig.ask("dig").await;
    let Some(Outcome::Failed { kind, text, .. }) = ended.outcome else { panic!("{ended:?}") };
    assert_eq!((kind, text.as_str()), (FailureKind::TurnLimit, "I got as far as one."));
    assert_eq!(rig.read("log"), "1\n", "no tool runs in the hand-back");
    assert_eq!(rig.sim.requests().len(), 2);
    // The next input goes behind the refused call's result, and the history stays legal.
    let runtime = rig.life(None).await;
    runtime.say(&agent, "again", "and now?").await.unwrap();
    let ended = runtime.drive(&agent, DriveMode::New, Stop::never(), None).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "More then.".into() }));
    assert_eq!(rig.sim.requests()[2].body["messages"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn a_refusal_is_a_failure_and_the_next_input_is_legal() {
    let rig = Rig::new(
        Script::new().conversation("*", [refuses("not that").when_last_contains("nicely", says("fine"))]),
    )
    .await;
    let (agent, ended) = rig.ask("bad").await;
    assert!(
        matches!(ended.outcome, Some(Outcome::Failed { kind: FailureKind::Refused, ref message, .. }) if message == "not that")
    );
    let runtime = rig.life(None).await;
    runtime.say(&agent, "k2", "nicely").await.unwrap();
    let ended = runtime.drive(&agent, DriveMode::New, Stop::never(), None).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "fine".into() }));
    assert_eq!(
        rig.sim.requests()[1].body["messages"].as_array().unwrap().len(),
        1,
        "the refused message is gone"
    );
}

#[tokio::test]
async fn empty_replies_and_full_windows_are_failures() {
    check_fails(vec![empty()], FailureKind::InvalidOutput, "").await;
    let full = Scripted {
        stop_reason: "model_context_window_exceeded".into(),
        ..Scripted::new(vec![json!({"type": "text", "text": "lots"})])
    };
    check_fails(vec![raw(full)], FailureKind::ContextFull, "lots").await;
}

#[tokio::test]
async fn d3_6_unknown_tools_and_broken_input_are_answered_not_run() {
    let rig = Rig::new(script([
        calls_many([("browse", json!({})), ("bash", json!({}))]),
        calls_raw("bash", r#"{"command": "ec"#),
        says("ok"),
    ]))
    .await;
    let (_, ended) = rig.ask("try").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "ok".into() }));
    let results = rig.sim.requests()[1].body["messages"][2]["content"].clone();
    assert_eq!(results[0]["content"], "unknown tool: browse");
    assert_eq!(results[1]["content"], "bash error: no command was provided.");
    let broken = rig.sim.requests()[2].body["messages"][4]["content"][0]["content"].clone();
    assert!(broken.as_str().unwrap().contains("valid JSON"), "{broken}");
}

#[tokio::test]
async fn passing_faults_are_repeated_and_journaled_and_final_ones_are_not() {
    let rig = Rig::new(script([says("there")])).await;
    rig.sim.push_fault(Fault::new(FaultKind::Overloaded529).times(2));
    rig.sim.push_fault(Fault::new(FaultKind::CutAfter(3)));
    let (agent, ended) = rig.ask("go").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "there".into() }));
    let failed = rig.events(&agent).await.iter().filter(|e| matches!(e, Event::ModelFailed(_))).count();
    assert_eq!((failed, rig.sim.requests().len()), (3, 4));
    let rig = Rig::new(script([says("there")])).await;
    rig.sim.push_fault(Fault::new(FaultKind::SpendLimit).times(20));
    let (_, ended) = rig.ask("go").await;
    assert!(matches!(ended.outcome, Some(Outcome::Failed { .. })));
    assert_eq!(rig.sim.requests().len(), 1);
}

#[tokio::test]
async fn a_failed_run_goes_on_when_it_is_resumed() {
    let rig = Rig::new(script([calls("bash", json!({"command": "echo x >> log"})), says("there")])).await;
    rig.sim.push_fault(Fault::new(FaultKind::Internal500).at(1).times(10));
    let (agent, ended) = rig.ask("go").await;
    assert!(matches!(ended.outcome, Some(Outcome::Failed { kind: FailureKind::Api, .. })), "{ended:?}");
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "there".into() }));
    assert_eq!(rig.read("log"), "x\n");
}

#[tokio::test]
async fn an_unknown_agent_and_an_empty_task_are_errors() {
    let rig = Rig::new(script([says("x")])).await;
    let runtime = rig.life(None).await;
    assert!(matches!(runtime.start(rig.start(), " ").await, Err(convoke_runtime::Error::EmptyTask)));
    let nobody = convoke_kernel::AgentId::from_bits([9; 10]);
    assert!(matches!(rig.resume(&nobody).await, Err(convoke_runtime::Error::NoSuchAgent(_))));
}

#[tokio::test]
async fn a_generic_endpoint_gets_the_same_tool_with_a_schema_and_nothing_it_does_not_know() {
    let script = script([calls("bash", json!({"command": "echo x >> log"})), says("ok")]);
    let rig = Rig::new(SimConfig::new(script).endpoint(EndpointKind::Generic)).await;
    let model = Models::builtin().get(MODEL);
    let capabilities = capabilities(&model, &Endpoint::generic(), Some("xhigh")).unwrap();
    let runtime = rig.life(None).await;
    let agent = runtime.start(Start { capabilities, ..rig.start() }, "go").await.unwrap();
    let ended = runtime.drive(&agent, DriveMode::New, Stop::never(), None).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "ok".into() }));
    let body = rig.sim.requests()[0].body.clone();
    assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
    for member in ["thinking", "output_config", "cache_control"] {
        assert_eq!(body.get(member), None, "{member}");
    }
    assert_eq!(rig.read("log"), "x\n");
}

#[tokio::test]
async fn a_stream_that_cannot_be_read_is_refused_by_event() {
    let rig = Rig::new(script([says("x")])).await;
    let (agent, _) = rig.ask("go").await;
    rig.append_raw(&agent, r#"{"type":"moon_landed"}"#).await;
    let error = rig.resume(&agent).await.unwrap_err().to_string();
    assert!(error.contains("moon_landed") && error.contains("newer"), "{error}");
}
