//! Whether a conversation goes on from what was sent before.

use convoke_sim::{Fault, FaultKind, Script, Simulator, calls, cut_at_max_tokens, says};
use serde_json::{Value, json};

use crate::client::{RawRequest, frames, start};

async fn sim() -> Simulator {
    let first = calls("bash", json!({"command": "ls", "restart": false})).saying("Looking.");
    start(Script::new().conversation("a", [first, says("Two files."), says("Bye.")])).await
}

/// Sends a request to its end and gives back what was found wrong with its beginning.
async fn prefix_break(sim: &Simulator, ask: &RawRequest) -> Option<String> {
    let response = ask.send(sim).await.expect("a response");
    assert_eq!(response.status(), 200, "{}", ask.body);
    frames(response).await;
    sim.requests().pop().expect("a request").prefix_break
}

/// A request whose reply calls a tool, and the one that should follow. The tool's input is written as it was
/// sent.
async fn exchange(sim: &Simulator) -> RawRequest {
    let mut ask = RawRequest::streamed("a");
    ask.body["system"] = json!("Be careful.");
    ask.body["tools"] = json!([{"type": "bash_20250124", "name": "bash"}]);
    assert_eq!(prefix_break(sim, &ask).await, None);
    ask.body["stream"] = json!(false);
    let reply = ask.answer(sim).await.1;
    ask.body["stream"] = json!(true);
    let id = reply["content"][1]["id"].clone();
    ask.push("assistant", reply["content"].clone());
    ask.push("user", json!([{"type": "tool_result", "tool_use_id": id, "content": "a b"}]));
    ask.raw = Some(spoken(&ask.body));
    ask
}

/// The body with the tool's input as the simulator streamed it, with spaces.
fn spoken(body: &Value) -> String {
    body.to_string().replace(r#"{"command":"ls","restart":false}"#, r#"{"command": "ls", "restart": false}"#)
}

async fn check(change: impl Fn(&mut Value), expected: Option<&str>) {
    let sim = sim().await;
    let mut ask = exchange(&sim).await;
    change(&mut ask.body);
    ask.raw = Some(spoken(&ask.body));
    assert_eq!(prefix_break(&sim, &ask).await.as_deref(), expected);
}

#[tokio::test]
async fn a_conversation_that_is_only_appended_to_is_unbroken() {
    check(|_| {}, None).await;
}

#[tokio::test]
async fn marks_and_parameters_may_change() {
    check(
        |body| {
            body["max_tokens"] = json!(2_000);
            body["tools"][0]["cache_control"] = json!({"type": "ephemeral"});
            body["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
            body["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        },
        None,
    )
    .await;
}

#[tokio::test]
async fn every_change_of_what_was_sent_is_noticed() {
    check(|body| body["system"] = json!("Be quick."), Some("system changed")).await;
    check(|body| body["tools"].as_array_mut().expect("tools").clear(), Some("tools changed")).await;
    let edited = "[conversation: a] Hello!";
    check(|body| body["messages"][0]["content"] = json!(edited), Some("messages.0 changed")).await;
    let wrong = "messages.1 is not the reply as it was sent: content.0 differs";
    check(|body| body["messages"][1]["content"][0]["text"] = json!("Looked."), Some(wrong)).await;
    let lost = "messages.1 is not the reply as it was sent: 2 blocks were sent, 1 came back";
    check(|body| drop(body["messages"][1]["content"].as_array_mut().expect("blocks").remove(0)), Some(lost))
        .await;
}

#[tokio::test]
async fn a_tools_input_that_is_written_anew_is_noticed() {
    let sim = sim().await;
    let mut ask = exchange(&sim).await;
    ask.raw = None;
    let wrong = "messages.1 is not the reply as it was sent: content.1 differs";
    assert_eq!(prefix_break(&sim, &ask).await.as_deref(), Some(wrong));
}

#[tokio::test]
async fn a_reply_that_was_cut_holds_nobody_to_its_request() {
    let sim = start(Script::new().conversation("a", [says("Yes.")])).await;
    sim.push_fault(Fault::new(FaultKind::CutAfter(2)));
    assert_eq!(prefix_break(&sim, &RawRequest::streamed("a")).await, None);
    let mut other = RawRequest::streamed("a");
    other.body["messages"][0]["content"] = json!("[conversation: a] Something else.");
    assert_eq!(prefix_break(&sim, &other).await, None);
    assert_eq!(prefix_break(&sim, &RawRequest::streamed("a")).await.as_deref(), Some("messages.0 changed"));
}

#[tokio::test]
async fn after_a_reply_cut_at_max_tokens_the_message_may_be_taken_back() {
    let sim = start(Script::new().conversation("a", [cut_at_max_tokens("The ans")])).await;
    assert_eq!(prefix_break(&sim, &RawRequest::streamed("a")).await, None);
    let mut other = RawRequest::streamed("a");
    other.body["messages"][0]["content"] = json!("[conversation: a] Something else.");
    assert_eq!(prefix_break(&sim, &other).await, None);
}
