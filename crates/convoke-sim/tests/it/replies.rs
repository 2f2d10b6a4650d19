//! How replies arrive.

use convoke_sim::{
    EndpointKind, Retention, Script, SimConfig, Verdict, calls, calls_many, calls_raw, cut_at_max_tokens,
    empty, refuses, says,
};
use serde_json::{Value, json};

use crate::client::{RawRequest, chatter, client, frames, soon, start};

async fn events(script: Script, ask: &RawRequest) -> Vec<Value> {
    let sim = start(script).await;
    let response = ask.send(&sim).await.expect("a response");
    assert_eq!(response.status(), 200);
    let (events, ended) = frames(response).await;
    assert!(ended);
    events
}

/// The deltas of one kind, joined.
fn joined(events: &[Value], member: &str) -> String {
    events.iter().filter_map(|event| event["delta"][member].as_str()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    types.dedup();
    types
}

fn script(replies: impl IntoIterator<Item = convoke_sim::Reply>) -> Script {
    Script::new().conversation("a", replies)
}

#[tokio::test]
async fn a_stream_has_the_events_of_the_api_in_their_order() {
    let text = "Two files — naïve and ☃, read one after the other.";
    let events = events(
        script([says(text).thinking("Let me think about that for a while.")]),
        &RawRequest::streamed("a"),
    )
    .await;
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let first = ["message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop"];
    let expected: Vec<&str> = [&first[..], &block[..], &["message_delta", "message_stop"]].concat();
    assert_eq!(types(&events), expected);
    assert_eq!(joined(&events, "text"), text);
    assert_eq!(joined(&events, "thinking"), "Let me think about that for a while.");
    assert_eq!(joined(&events, "signature").len(), 64);
    assert!(events.iter().filter(|event| event["delta"]["type"] == "text_delta").count() > 2);
    assert_eq!(events[0]["message"]["stop_reason"], Value::Null);
    assert!(events[0]["message"]["usage"]["input_tokens"].as_u64() > Some(10));
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "end_turn");
    assert!(end["usage"]["output_tokens"].as_u64() > Some(5), "{end}");
}

#[tokio::test]
async fn a_tools_input_comes_in_pieces_written_as_a_model_writes() {
    let input = json!({"command": "ls -la /some/where", "restart": false});
    let events = events(script([calls("bash", input)]), &RawRequest::streamed("a")).await;
    assert_eq!(joined(&events, "partial_json"), r#"{"command": "ls -la /some/where", "restart": false}"#);
    let pieces: Vec<&Value> =
        events.iter().filter(|event| event["delta"]["type"] == "input_json_delta").collect();
    assert_eq!(pieces[0]["delta"]["partial_json"], "");
    assert!(pieces.len() > 2);
    assert_eq!(events[1]["content_block"]["input"], json!({}));
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[tokio::test]
async fn a_tool_without_arguments_has_no_input_text_and_a_raw_input_need_not_be_json() {
    let none = events(script([calls("look", json!({}))]), &RawRequest::streamed("a")).await;
    assert_eq!(joined(&none, "partial_json"), "");
    let broken = events(script([calls_raw("bash", r#"{"command": "#)]), &RawRequest::streamed("a")).await;
    assert_eq!(joined(&broken, "partial_json"), r#"{"command": "#);
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_reply() {
    let sim =
        start(script([calls_many([("bash", json!({"command": "a"})), ("bash", json!({"command": "b"}))])]))
            .await;
    let ask = RawRequest::new("a");
    let first = ask.answer(&sim).await;
    let second = ask.answer(&sim).await;
    assert_eq!(first, second);
    assert_ne!(first.1["content"][0]["id"], first.1["content"][1]["id"]);
}

#[tokio::test]
async fn a_reply_longer_than_max_tokens_is_cut_there() {
    let long = "word ".repeat(2_000);
    let mut ask = RawRequest::streamed("a");
    ask.body["max_tokens"] = json!(100);
    let cut = events(script([says(&long)]), &ask).await;
    let text = joined(&cut, "text");
    assert!((150..=450).contains(&text.len()) && long.starts_with(&text), "{}", text.len());
    let end = &cut[cut.len() - 2];
    assert_eq!(
        (&end["delta"]["stop_reason"], &end["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(100))
    );

    let cut = events(script([calls("bash", json!({"command": long}))]), &ask).await;
    assert!(serde_json::from_str::<Value>(&joined(&cut, "partial_json")).is_err(), "the input is unfinished");
    assert_eq!(cut[cut.len() - 2]["delta"]["stop_reason"], "max_tokens");
}

#[tokio::test]
async fn the_other_ways_to_stop_arrive_as_they_were_written() {
    let check = async |reply, stop_reason: &str, blocks: usize| {
        let sim = start(script([reply])).await;
        let (status, message) = RawRequest::new("a").answer(&sim).await;
        assert_eq!((status, &message["stop_reason"]), (200, &json!(stop_reason)));
        assert_eq!(message["content"].as_array().map(Vec::len), Some(blocks));
        message
    };
    let refusal = check(refuses("not that"), "refusal", 0).await;
    assert_eq!(refusal["stop_details"]["explanation"], "not that");
    check(cut_at_max_tokens("The answer is"), "max_tokens", 1).await;
    check(empty(), "end_turn", 0).await;
}

#[tokio::test]
async fn a_request_the_script_does_not_know_is_refused_and_recorded_as_such() {
    let sim = start(script([says("only")])).await;
    let mut ask = RawRequest::new("a");
    ask.push("assistant", json!("only"));
    ask.push("user", json!("more"));
    let (status, body) = ask.answer(&sim).await;
    assert_eq!(status, 400);
    assert!(body["error"]["message"].as_str().is_some_and(|text| text.starts_with("simulator: ")), "{body}");
    assert!(matches!(sim.requests()[0].verdict, Verdict::Refused { rule: None, .. }));
}

#[tokio::test]
async fn requests_are_kept_with_their_place_and_without_their_secrets() {
    let sim = start(chatter()).await;
    let mut ask = RawRequest::new("alpha");
    ask.push("assistant", json!("yes?"));
    ask.push("user", json!("more"));
    let (sent, requests) = tokio::join!(ask.answer(&sim), soon(sim.wait_for_requests(1)));
    assert_eq!(sent.0, 200);
    let request = &requests[0];
    assert_eq!((request.index, request.conversation.as_str(), request.position), (0, "alpha", 1));
    assert_eq!(request.headers["x-api-key"], "(set)");
    assert_eq!(request.headers["anthropic-version"], "2023-06-01");
    assert_eq!(request.raw, ask.body.to_string());
    assert_eq!(*request.body, ask.body);
}

#[tokio::test]
async fn a_long_benchmark_can_do_without_the_bodies() {
    let sim = start(SimConfig { keep: Retention::Summaries, ..SimConfig::new(chatter()) }).await;
    assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200);
    assert!(sim.requests()[0].raw.is_empty() && sim.requests()[0].body.is_null());
}

#[tokio::test]
async fn responses_carry_a_request_id_and_the_rate_headers() {
    let sim = start(chatter()).await;
    let response = RawRequest::streamed("a").send(&sim).await.expect("a response");
    let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
    assert!(header("request-id").starts_with("req_"));
    assert_eq!(header("anthropic-ratelimit-requests-remaining"), "3999");
    assert!(header("content-type").starts_with("text/event-stream"));
}

#[tokio::test]
async fn the_models_are_listed_and_other_paths_are_not_found() {
    let sim = start(chatter()).await;
    let get =
        async |path: &str| client().get(format!("{}{path}", sim.url())).send().await.expect("a response");
    let list: Value = get("/v1/models").await.json().await.expect("JSON");
    let ids: Vec<&Value> =
        list["data"].as_array().expect("a list").iter().map(|model| &model["id"]).collect();
    assert!(ids.contains(&&json!("claude-opus-4-8")), "{ids:?}");
    assert_eq!(get("/v1/nothing").await.status(), 404);
    assert_eq!(get("/v1/messages").await.status(), 405);
}

#[tokio::test]
async fn a_generic_server_takes_any_model_without_a_key() {
    let sim = start(SimConfig::new(chatter()).endpoint(EndpointKind::Generic)).await;
    let mut ask = RawRequest::new("a");
    ask.body["model"] = json!("qwen-local");
    ask.drop_header("x-api-key");
    ask.drop_header("anthropic-version");
    assert_eq!(ask.answer(&sim).await.0, 200);
}

#[tokio::test]
async fn a_simulator_that_is_shut_down_takes_no_more_connections() {
    let sim = start(chatter()).await;
    let url = sim.url();
    sim.shutdown().await;
    assert!(client().get(format!("{url}/v1/models")).send().await.is_err());
}
