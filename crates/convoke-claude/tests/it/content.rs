//! What becomes of content blocks: nothing the model said is changed, nothing unusable gets through.

use convoke_claude::Live;
use convoke_kernel::{FailureKind, Retry, StopReason, Usage};

use crate::server::{END, START, STOP, TEXT_BLOCK, frames, message, read, read_live, rich};

/// The content of a reply whose one block starts like this and gets these deltas.
async fn content(start: &str, deltas: &[&str]) -> String {
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{start}}}"#);
    let deltas =
        deltas.iter().map(|delta| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#));
    let mut events = vec![start];
    events.extend(deltas);
    events.push(r#"{"type":"content_block_stop","index":0}"#.to_owned());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    read(&[message(&events).concat().as_bytes()]).await.unwrap().content.as_str().to_owned()
}

fn partial(json: &str) -> String {
    serde_json::json!({"type": "input_json_delta", "partial_json": json}).to_string()
}

async fn check(start: &str, deltas: &[&str], expected: &str) {
    assert_eq!(content(start, deltas).await, expected, "{start} {deltas:?}");
}

async fn check_input(parts: &[&str], expected: &str) {
    let deltas: Vec<String> = parts.iter().map(|part| partial(part)).collect();
    let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
    let expected = format!(r#"[{{"type":"tool_use","id":"t1","name":"bash","input":{expected}}}]"#);
    check(r#"{"type":"tool_use","id":"t1","name":"bash","input":{}}"#, &deltas, &expected).await;
}

#[tokio::test]
async fn a_tools_input_is_kept_byte_for_byte() {
    check_input(
        &[r#"{"b": 1.0,  "#, r#""a":[1e5,-0,"\u00e9\/"]}"#],
        r#"{"b": 1.0,  "a":[1e5,-0,"\u00e9\/"]}"#,
    )
    .await;
    check_input(&[r#"{"x":12345678901234567890123}"#], r#"{"x":12345678901234567890123}"#).await;
    check_input(&[" \n", r#"{"x":1}"#, "\n"], r#"{"x":1}"#).await;
}

#[tokio::test]
async fn a_tool_without_arguments_has_an_empty_object_as_input() {
    check_input(&[], "{}").await;
    check_input(&["", " "], "{}").await;
}

#[tokio::test]
async fn an_input_that_came_whole_with_its_block_is_kept() {
    let block = r#"{"type":"tool_use","id":"t1","name":"bash","input":{"z":1, "a":2}}"#;
    check(block, &[], r#"[{"type":"tool_use","id":"t1","name":"bash","input":{"z":1, "a":2}}]"#).await;
    check(
        block,
        &[&partial(r#"{"q":3}"#)],
        r#"[{"type":"tool_use","id":"t1","name":"bash","input":{"q":3}}]"#,
    )
    .await;
    check(
        r#"{"type":"tool_use","id":"t1","name":"bash"}"#,
        &[],
        r#"[{"type":"tool_use","id":"t1","name":"bash","input":{}}]"#,
    )
    .await;
}

#[tokio::test]
async fn input_that_is_not_a_json_object_is_wrapped_under_one_key() {
    check_input(&[r#"{"command": "l"#], r#"{"_invalid_json":"{\"command\": \"l"}"#).await;
    check_input(&["[1]"], r#"{"_invalid_json":"[1]"}"#).await;
    check_input(&["null"], r#"{"_invalid_json":"null"}"#).await;
    check_input(&["{} {}"], r#"{"_invalid_json":"{} {}"}"#).await;
    // Half a character is JSON by its grammar, but no program can read it.
    check_input(&[r#"{"a":"\ud800"}"#], r#"{"_invalid_json":"{\"a\":\"\\ud800\"}"}"#).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(300), "]".repeat(300));
    check_input(&[&deep], &serde_json::json!({"_invalid_json": deep}).to_string()).await;
}

#[tokio::test]
async fn unknown_members_and_unknown_blocks_are_kept_in_their_order() {
    check(
        r#"{"new":{"b":1.50,"a":"\u00e9"},"text":"","type":"text","last":null}"#,
        &[r#"{"type":"text_delta","text":"a\"b"}"#],
        r#"[{"new":{"b":1.50,"a":"\u00e9"},"text":"a\"b","type":"text","last":null}]"#,
    )
    .await;
    let fallback = r#"{"type":"fallback","from":{"model":"a"},"n":1e3}"#;
    check(fallback, &[], &format!("[{fallback}]")).await;
    check(fallback, &[r#"{"type":"novel_delta","value":1}"#], &format!("[{fallback}]")).await;
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"encrypted_content":"x=="}]}"#;
    check(result, &[], &format!("[{result}]")).await;
    let redacted = r#"{"type":"redacted_thinking","data":"abc=="}"#;
    check(redacted, &[], &format!("[{redacted}]")).await;
}

#[tokio::test]
async fn a_signature_is_set_and_an_empty_thinking_block_is_kept() {
    let block = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let sign = |text: &str| format!(r#"{{"type":"signature_delta","signature":"{text}"}}"#);
    check(block, &[&sign("one"), &sign("two")], r#"[{"type":"thinking","thinking":"","signature":"two"}]"#)
        .await;
    check(
        block,
        &[r#"{"type":"thinking_delta","thinking":"","estimated_tokens":3}"#, &sign("s")],
        r#"[{"type":"thinking","thinking":"","signature":"s"}]"#,
    )
    .await;
}

#[tokio::test]
async fn citations_are_collected_and_a_compaction_is_set() {
    check(
        r#"{"type":"text","text":"","citations":[{"n":1}]}"#,
        &[
            r#"{"type":"text_delta","text":"x"}"#,
            r#"{"type":"citations_delta","citation":{"n":2.0}}"#,
            r#"{"type":"citations_delta","citation":{"n":3}}"#,
        ],
        r#"[{"type":"text","text":"x","citations":[{"n":1},{"n":2.0},{"n":3}]}]"#,
    )
    .await;
    check(
        r#"{"type":"compaction","content":""}"#,
        &[r#"{"type":"compaction_delta","content":null,"encrypted_content":"e=="}"#],
        r#"[{"type":"compaction","content":null,"encrypted_content":"e=="}]"#,
    )
    .await;
}

#[tokio::test]
async fn empty_and_blank_text_blocks_are_left_out() {
    check(r#"{"type":"text","text":""}"#, &[], "[]").await;
    check(r#"{"type":"text","text":""}"#, &[r#"{"type":"text_delta","text":" \n\t"}"#], "[]").await;
    check(r#"{"type":"text","text":"given"}"#, &[], r#"[{"type":"text","text":"given"}]"#).await;
}

#[tokio::test]
async fn a_rich_reply_is_whole() {
    let mut shown = Vec::new();
    let reply = read_live(&[rich().as_bytes()], |live| {
        shown.push(match live {
            Live::Limits(_) => "limits".to_owned(),
            Live::Began => "began".to_owned(),
            Live::Counted(usage) => format!("counted {} and {}", usage.prompt_tokens(), usage.output_tokens),
            Live::Text(text) => format!("text {text}"),
            Live::Thinking(text) => format!("thinking {text}"),
            Live::Tool { name } => format!("tool {name}"),
            Live::ToolInput(part) => format!("input {part}"),
        });
    })
    .await
    .unwrap();
    assert_eq!(
        reply.content.as_str(),
        concat!(
            r#"[{"type":"thinking","thinking":"Hm, été","signature":"c2ln"},"#,
            r#"{"type":"text","text":"Grüße 🦀"},"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command": "echo \u00e9"}}]"#
        )
    );
    assert_eq!(reply.text, "Grüße 🦀");
    assert_eq!(reply.calls.len(), 1);
    assert_eq!((reply.calls[0].id.as_str(), reply.calls[0].name.as_str()), ("toolu_1", "bash"));
    assert_eq!(reply.calls[0].input.as_str(), r#"{"command": "echo \u00e9"}"#);
    assert_eq!((reply.stop, reply.model.as_str()), (StopReason::EndTurn, "claude-opus-4-8"));
    assert_eq!(
        shown,
        [
            "began",
            "counted 10 and 0",
            "thinking Hm, ",
            "thinking été",
            "text Grüße 🦀",
            "tool bash",
            "input ",
            "input {\"command\": \"ec",
            "input ho \\u00e9\"}"
        ]
    );
}

async fn usage(start: &str, deltas: &[&str]) -> Usage {
    let start = format!(r#"{{"type":"message_start","message":{{"model":"m","usage":{start}}}}}"#);
    let deltas = deltas.iter().map(|delta| {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{delta}}}"#)
    });
    let mut events = vec![start];
    events.extend(deltas);
    events.push(STOP.to_owned());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    read(&[frames(&events).concat().as_bytes()]).await.unwrap().usage
}

#[tokio::test]
async fn usage_is_overwritten_and_never_added() {
    let start = r#"{"input_tokens":100,"cache_read_input_tokens":7,"output_tokens":5}"#;
    let later = r#"{"output_tokens":20,"output_tokens_details":{"thinking_tokens":9}}"#;
    let last = r#"{"input_tokens":300,"output_tokens":30,"cache_read_input_tokens":null}"#;
    let expected = Usage {
        input_tokens: 300,
        cache_read_tokens: 7,
        output_tokens: 30,
        thinking_tokens: 9,
        ..Usage::default()
    };
    assert_eq!(usage(start, &[later, last]).await, expected);
}

#[tokio::test]
async fn cache_writes_are_split_by_their_lifetime() {
    let check = async |start: &str, five: u64, hour: u64| {
        let usage = usage(start, &[r#"{"output_tokens":1}"#]).await;
        assert_eq!((usage.cache_write_5m_tokens, usage.cache_write_1h_tokens), (five, hour), "{start}");
    };
    check(r#"{"cache_creation_input_tokens":50}"#, 50, 0).await;
    let split = r#""cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30}"#;
    check(&format!("{{{split}}}"), 20, 30).await;
    check(&format!(r#"{{"cache_creation_input_tokens":50,{split}}}"#), 20, 30).await;
    check(&format!(r#"{{"cache_creation_input_tokens":60,{split}}}"#), 30, 30).await;
    check("{}", 0, 0).await;
}

#[tokio::test]
async fn the_stop_reason_and_its_explanation_are_told() {
    let check = async |delta: &str, stop: StopReason, detail: Option<&str>| {
        let end = format!(r#"{{"type":"message_delta","delta":{delta},"usage":{{"output_tokens":1}}}}"#);
        let reply = read(&[frames(&[START, &end, STOP]).concat().as_bytes()]).await.unwrap();
        assert_eq!((reply.stop, reply.stop_detail.as_deref()), (stop, detail), "{delta}");
    };
    check(
        r#"{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"because"}}"#,
        StopReason::Refusal,
        Some("because"),
    )
    .await;
    let by_category = r#"{"stop_reason":"refusal","stop_details":{"category":"cyber","explanation":null}}"#;
    check(by_category, StopReason::Refusal, Some("cyber")).await;
    check(r#"{"stop_reason":"tool_use","stop_details":null}"#, StopReason::ToolUse, None).await;
    check(r#"{"stop_reason":"novel"}"#, StopReason::Other("novel".to_owned()), None).await;
}

#[tokio::test]
async fn a_reply_nobody_could_use_is_a_failure_that_asks_for_the_request_again() {
    let check = async |events: &[&str], kind: FailureKind, said: &str| {
        let failure = read(&[frames(events).concat().as_bytes()]).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry), (kind, Retry::Soon), "{events:?}: {failure:?}");
        assert!(failure.message.contains(said), "{}", failure.message);
        assert!(failure.message.contains("send the whole request again"), "{}", failure.message);
    };
    let [start, delta, stop] = TEXT_BLOCK;
    let tool = |index: u32, id: &str, name: &str| {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}}}"#
        )
    };
    let input =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    let other_stop = r#"{"type":"content_block_stop","index":1}"#;
    use FailureKind::{InvalidOutput, Transport};
    let twice = [START, &tool(0, "t1", "a"), stop, &tool(1, "t1", "a"), other_stop, END, STOP];
    check(&twice, InvalidOutput, "t1 comes twice").await;
    check(&[START, &tool(0, "t 1", "a"), stop, END, STOP], InvalidOutput, "id of a tool_use").await;
    check(&[START, &tool(0, "", "a"), stop, END, STOP], InvalidOutput, "id of a tool_use").await;
    check(&[START, &tool(0, "t1", "a b"), stop, END, STOP], InvalidOutput, "name of a tool_use").await;
    check(&[START, start, input, stop, END, STOP], InvalidOutput, "input_json_delta").await;
    check(&[START, &tool(0, "t1", "a"), delta, stop, END, STOP], InvalidOutput, "text_delta").await;
    check(&[START, delta, END, STOP], InvalidOutput, "never started").await;
    check(&[START, start, stop, delta, END, STOP], InvalidOutput, "already ended").await;
    check(&[START, start, start, stop, END, STOP], InvalidOutput, "starts twice").await;
    check(&[START, start, stop, stop, END, STOP], InvalidOutput, "ends twice").await;
    check(&[START, start, delta, END, STOP], InvalidOutput, "never ended").await;
    check(&[START, START, END, STOP], InvalidOutput, "second message_start").await;
    check(&[start, delta, stop, END, STOP], InvalidOutput, "does not start with").await;
    check(&[START, start, delta, stop, STOP], Transport, "without a stop reason").await;
    let textless = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#;
    check(&[START, start, textless, stop, END, STOP], Transport, "has no text").await;
}
