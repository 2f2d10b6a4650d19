//! The prompt cache as a client sees it: in the usage of its replies.

use std::time::Duration;

use convoke_sim::{Fault, FaultKind, ManualClock, SimConfig, Simulator, Usage};
use serde_json::{Value, json};

use crate::client::{RawRequest, chatter, frames, soon, start};

/// More than 1,024 tokens at any rate of the tokenizer.
const LARGE: usize = 5_000;

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

fn large(letter: &str) -> String {
    letter.repeat(LARGE)
}

/// A request with large tools, system and messages, and no mark.
fn plain() -> RawRequest {
    let mut ask = RawRequest::streamed("a");
    ask.body["tools"] =
        json!([{"name": "look", "description": large("t"), "input_schema": {"type": "object"}}]);
    ask.body["system"] = json!([{"type": "text", "text": large("s")}]);
    ask.push("user", json!([{"type": "text", "text": large("u")}]));
    ask
}

fn with(change: impl FnOnce(&mut Value)) -> RawRequest {
    let mut ask = plain();
    change(&mut ask.body);
    ask
}

/// Sends a request to its end; its usage as the client was told it must be what the simulator wrote down.
async fn usage(sim: &Simulator, ask: &RawRequest) -> Usage {
    let response = ask.send(sim).await.expect("a response");
    assert_eq!(response.status(), 200);
    let (events, _) = frames(response).await;
    let first = &events[0]["message"]["usage"];
    let last = &events[events.len() - 2]["usage"];
    let recorded = sim.requests().pop().expect("a request").usage.expect("a usage");
    let number = |value: &Value| value.as_u64().expect("a number");
    let told = Usage {
        input_tokens: number(&first["input_tokens"]),
        cache_read_tokens: number(&first["cache_read_input_tokens"]),
        cache_write_5m_tokens: number(&first["cache_creation"]["ephemeral_5m_input_tokens"]),
        cache_write_1h_tokens: number(&first["cache_creation"]["ephemeral_1h_input_tokens"]),
        output_tokens: number(&last["output_tokens"]),
    };
    assert_eq!(told, recorded);
    let written = told.cache_write_5m_tokens + told.cache_write_1h_tokens;
    for report in [first, last] {
        assert_eq!(number(&report["cache_creation_input_tokens"]), written);
        assert_eq!(number(&report["input_tokens"]), told.input_tokens);
        assert_eq!(number(&report["cache_read_input_tokens"]), told.cache_read_tokens);
    }
    told
}

/// What the second request reads after the first one; both in blocks of the second.
async fn check(first: &RawRequest, second: &RawRequest, blocks_read: usize) {
    let sim = start(chatter()).await;
    let before = usage(&sim, first).await;
    assert_eq!(before.cache_read_tokens, 0);
    let after = usage(&sim, second).await;
    let prefixes = sim.requests().pop().expect("a request").prefix_tokens;
    let expected = if blocks_read == 0 { 0 } else { prefixes[blocks_read - 1] };
    assert_eq!(after.cache_read_tokens, expected, "{after:?} of {prefixes:?}");
    assert_eq!(after.prompt_tokens(), prefixes[prefixes.len() - 1]);
}

#[tokio::test]
async fn marks_on_tools_system_and_messages_are_read_by_whoever_shares_the_prefix() {
    let tools = with(|body| body["tools"][0]["cache_control"] = mark());
    check(&tools, &tools, 1).await;
    let system = with(|body| body["system"][0]["cache_control"] = mark());
    check(&system, &system, 2).await;
    let message = with(|body| body["messages"][1]["content"][0]["cache_control"] = mark());
    check(&message, &message, 4).await;
    // A longer conversation finds the shorter one's mark, and another conversation the shared part.
    let mut longer = plain();
    longer.push("assistant", json!("Well."));
    longer.push("user", json!([{"type": "text", "text": "And?", "cache_control": mark()}]));
    check(&message, &longer, 4).await;
    let mut other = system.clone();
    other.body["messages"][0]["content"] = json!("[conversation: b] Hello.");
    check(&system, &other, 2).await;
    check(&plain(), &plain(), 0).await;
}

#[tokio::test]
async fn an_automatic_mark_stands_on_the_last_block_and_moves_with_it() {
    let automatic = with(|body| body["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"}));
    check(&automatic, &automatic, 4).await;
    let sim = start(chatter()).await;
    let written = usage(&sim, &automatic).await;
    assert_eq!((written.cache_write_1h_tokens, written.input_tokens), (written.prompt_tokens(), 0));

    let mut longer = automatic.clone();
    longer.push(
        "assistant",
        json!([{"type": "thinking", "thinking": "x", "signature": "y"}, {"type": "text", "text": "So."}]),
    );
    longer.push("user", json!("Go on."));
    check(&automatic, &longer, 4).await;
    assert_eq!(usage(&sim, &longer).await.input_tokens, 0);
}

#[tokio::test]
async fn another_model_effort_thinking_or_choice_of_tool_misses() {
    let marked = || with(|body| body["messages"][1]["content"][0]["cache_control"] = mark());
    let miss = async |name: &str, value: Value| {
        let mut other = marked();
        other.body[name] = value;
        check(&marked(), &other, 0).await;
    };
    miss("model", json!("claude-opus-5")).await;
    miss("output_config", json!({"effort": "low"})).await;
    miss("thinking", json!({"type": "adaptive"})).await;
    miss("tool_choice", json!({"type": "none"})).await;
    let mut same = marked();
    same.body["output_config"] = json!({"effort": "high"});
    same.body["max_tokens"] = json!(77);
    check(&marked(), &same, 4).await;
    // The choice of tool is a matter of the messages alone.
    let system = with(|body| body["system"][0]["cache_control"] = mark());
    let mut chosen = system.clone();
    chosen.body["tool_choice"] = json!({"type": "none"});
    check(&system, &chosen, 2).await;
}

#[tokio::test]
async fn a_prompt_below_the_models_minimum_is_not_cached() {
    let short = |model: &str| {
        let mut ask = RawRequest::streamed("a");
        ask.body["model"] = json!(model);
        ask.body["cache_control"] = mark();
        ask.push("user", json!("w".repeat(LARGE)));
        ask
    };
    let sim = start(chatter()).await;
    let length = usage(&sim, &short("claude-opus-4-6")).await;
    assert_eq!(length.cache_write_5m_tokens, 0, "{length:?}");
    assert!((1_024..4_096).contains(&length.prompt_tokens()), "{length:?}");
    assert_eq!(usage(&sim, &short("claude-opus-4-8")).await.input_tokens, 0);
}

#[tokio::test]
async fn an_entry_can_be_read_only_when_the_response_that_writes_it_has_begun() {
    let marked = with(|body| body["messages"][1]["content"][0]["cache_control"] = mark());
    let sim = start(chatter()).await;
    let closed = sim.hold("a", 0, 0);
    let first = marked.send(&sim).await.expect("a response");
    soon(closed.entered()).await;
    let open = sim.hold("a", 0, 1);
    let second = marked.send(&sim).await.expect("a response");
    soon(open.entered()).await;
    let third = usage(&sim, &marked).await;
    assert_eq!(
        third.cache_read_tokens,
        third.prompt_tokens(),
        "the second has begun, though it has not ended"
    );
    closed.release();
    open.release();
    soon(frames(first)).await;
    soon(frames(second)).await;
    let requests = sim.requests();
    for parallel in &requests[..2] {
        let usage = parallel.usage.expect("a usage");
        assert_eq!(
            (usage.cache_read_tokens, usage.cache_write_5m_tokens),
            (0, usage.prompt_tokens()),
            "both pay"
        );
    }
}

#[tokio::test]
async fn a_request_is_written_down_with_the_times_of_its_response() {
    let clock = ManualClock::at(1_000);
    let sim = start(SimConfig { clock: clock.clone().into(), ..SimConfig::new(chatter()) }).await;
    let hold = sim.hold("a", 0, 0);
    let response = RawRequest::streamed("a").send(&sim).await.expect("a response");
    soon(hold.entered()).await;
    let times = || {
        let request = sim.requests().remove(0);
        (request.arrived_at, request.began_at, request.ended_at)
    };
    assert_eq!(times(), (1_000, None, None));
    clock.advance(Duration::from_secs(1));
    hold.release();
    soon(frames(response)).await;
    assert_eq!(times(), (1_000, Some(2_000), Some(2_000)));
}

#[tokio::test]
async fn a_request_that_fails_or_breaks_before_it_begins_writes_nothing() {
    let marked = with(|body| body["messages"][1]["content"][0]["cache_control"] = mark());
    for kind in [FaultKind::Overloaded529, FaultKind::CutAfter(0), FaultKind::CutBeforeHeaders] {
        let sim = start(chatter()).await;
        sim.push_fault(Fault::new(kind.clone()));
        if let Ok(response) = marked.send(&sim).await {
            frames(response).await;
        }
        assert_eq!(sim.requests()[0].began_at, None);
        assert_eq!(usage(&sim, &marked).await.cache_read_tokens, 0, "{kind:?}");
    }
    let sim = start(chatter()).await;
    sim.push_fault(Fault::new(FaultKind::CutAfter(1)));
    frames(marked.send(&sim).await.expect("a response")).await;
    assert!(usage(&sim, &marked).await.cache_read_tokens > 0);
}

#[tokio::test]
async fn an_entry_expires_by_the_simulators_own_clock() {
    let clock = ManualClock::at(1_000_000);
    let sim = start(SimConfig { clock: clock.clone().into(), ..SimConfig::new(chatter()) }).await;
    let marked = with(|body| body["messages"][1]["content"][0]["cache_control"] = mark());
    assert_eq!(usage(&sim, &marked).await.cache_read_tokens, 0);
    clock.advance(Duration::from_secs(299));
    assert!(usage(&sim, &marked).await.cache_read_tokens > 0);
    clock.advance(Duration::from_secs(299));
    assert!(usage(&sim, &marked).await.cache_read_tokens > 0, "using it has refreshed it");
    clock.advance(Duration::from_secs(300));
    assert_eq!(usage(&sim, &marked).await.cache_read_tokens, 0);
    let times: Vec<_> = sim.requests().iter().map(|request| (request.arrived_at, request.ended_at)).collect();
    assert_eq!(times[1], (1_299_000, Some(1_299_000)));
}

#[tokio::test]
async fn the_same_requests_in_the_same_order_have_the_same_usage_and_bill() {
    let run = async || {
        let sim = start(chatter()).await;
        let marked = with(|body| body["cache_control"] = mark());
        for ask in [&marked, &plain(), &marked, &RawRequest::streamed("b")] {
            usage(&sim, ask).await;
        }
        sim.bill()
    };
    let bill = run().await;
    assert_eq!(bill, run().await);
    assert_eq!(bill.lines.len(), 4);
}
