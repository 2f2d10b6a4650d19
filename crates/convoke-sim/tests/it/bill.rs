//! The simulator's own bill.

use std::time::Duration;

use convoke_sim::{Bill, Fault, FaultKind, Line, Script, Simulator, Usage, cut_at_max_tokens, says};
use serde_json::json;

use crate::client::{RawRequest, chatter, frames, soon, start};

const TEXT: &str = "A text long enough to come in quite a number of events.";

async fn sim() -> Simulator {
    start(Script::new().conversation("*", [says(TEXT), says(TEXT)])).await
}

/// The one line that a request leaves under a fault, and the line it leaves without one.
async fn lines(ask: &RawRequest, kind: FaultKind) -> (Option<Line>, Line) {
    let whole = sim().await;
    frames(ask.send(&whole).await.expect("a response")).await;
    let faulty = sim().await;
    faulty.push_fault(Fault::new(kind));
    if let Ok(response) = ask.send(&faulty).await {
        frames(response).await;
    }
    (faulty.bill().lines.pop(), whole.bill().lines.pop().expect("a line"))
}

#[tokio::test]
async fn a_bill_is_the_sum_of_its_lines_and_they_are_what_the_table_says() {
    let sim = start(chatter()).await;
    let mut ask = RawRequest::streamed("a");
    ask.push("user", json!("w".repeat(9_000)));
    ask.body["cache_control"] = json!({"type": "ephemeral"});
    frames(ask.send(&sim).await.expect("a response")).await;
    frames(ask.send(&sim).await.expect("a response")).await;
    let mut dear = RawRequest::new("b");
    dear.body["model"] = json!("claude-fable-5");
    assert_eq!(dear.answer(&sim).await.0, 200);

    let told: Vec<Usage> = sim.requests().iter().map(|request| request.usage.expect("a usage")).collect();
    let size = told[0].prompt_tokens();
    let said = told[0].output_tokens;
    let said_dear = told[2].output_tokens;
    assert_eq!(told[0], Usage { cache_write_5m_tokens: size, output_tokens: said, ..Usage::default() });
    assert_eq!(told[1], Usage { cache_read_tokens: size, output_tokens: said, ..Usage::default() });
    let expected = [
        size * 6_250 + said * 25_000,
        size * 500 + said * 25_000,
        told[2].input_tokens * 10_000 + said_dear * 50_000,
    ];
    let Bill { lines, total_nano } = sim.bill();
    let line = |request: usize, conversation: &str, model: &str| Line {
        request,
        conversation: conversation.to_owned(),
        model: model.to_owned(),
        usage: told[request],
        nano_dollars: expected[request],
        completed: true,
    };
    let wanted =
        [line(0, "a", "claude-opus-4-8"), line(1, "a", "claude-opus-4-8"), line(2, "b", "claude-fable-5")];
    assert_eq!(lines, wanted);
    assert_eq!(total_nano, expected.iter().sum::<u64>());
}

#[tokio::test]
async fn a_reply_can_use_all_of_max_tokens_without_being_long() {
    let script = Script::new()
        .conversation("a", [says("Yes.").fills_max_tokens()])
        .conversation("b", [cut_at_max_tokens("Ye").fills_max_tokens()]);
    let sim = start(script).await;
    for (conversation, stop_reason) in [("a", "end_turn"), ("b", "max_tokens")] {
        let mut ask = RawRequest::streamed(conversation);
        ask.body["max_tokens"] = json!(128_000);
        let (events, _) = frames(ask.send(&sim).await.expect("a response")).await;
        let end = &events[events.len() - 2];
        assert_eq!(
            (&end["delta"]["stop_reason"], &end["usage"]["output_tokens"]),
            (&json!(stop_reason), &json!(128_000))
        );
        let line = sim.bill().lines.pop().expect("a line");
        assert_eq!(line.usage.output_tokens, 128_000);
        assert_eq!(line.nano_dollars, line.usage.input_tokens * 5_000 + 128_000 * 25_000);
    }
}

#[tokio::test]
async fn a_refused_request_costs_nothing() {
    let mut kinds = FaultKind::all_final();
    kinds.extend([FaultKind::Overloaded529, FaultKind::Internal500, FaultKind::Timeout504]);
    kinds.push(FaultKind::RateLimited { retry_after: Some(1), headers: true });
    for kind in kinds {
        assert_eq!(lines(&RawRequest::streamed("a"), kind.clone()).await.0, None, "{kind:?}");
    }
    let sim = sim().await;
    let mut illegal = RawRequest::new("a");
    illegal.body["messages"] = json!([]);
    assert_eq!(illegal.answer(&sim).await.0, 400);
    assert_eq!(sim.bill(), Bill::default());
}

#[tokio::test]
async fn a_broken_stream_costs_its_input_and_what_was_generated() {
    let check = async |kind: FaultKind, all: bool, some: bool| {
        let (line, whole) = lines(&RawRequest::streamed("a"), kind.clone()).await;
        let line = line.expect("a line");
        assert!(!line.completed && whole.completed);
        assert_eq!(line.usage.input_tokens, whole.usage.input_tokens);
        let got = line.usage.output_tokens;
        let most = whole.usage.output_tokens;
        assert_eq!((got == most, got > 0), (all, some), "{kind:?}: {got} of {most}");
        assert_eq!(line.nano_dollars, line.usage.input_tokens * 5_000 + got * 25_000);
    };
    check(FaultKind::CutAfter(0), false, false).await;
    check(FaultKind::CutAfter(1), false, true).await;
    check(FaultKind::CutAfter(5), false, true).await;
    check(FaultKind::CutAfter(1_000), true, true).await;
    check(FaultKind::MidStreamError { after: 5, error_type: "api_error".to_owned() }, false, true).await;
    check(FaultKind::MalformedFrame(5), false, true).await;
    check(FaultKind::CutBeforeHeaders, true, true).await;
}

#[tokio::test]
async fn a_reply_without_a_stream_that_is_cut_was_generated_whole() {
    let (line, whole) = lines(&RawRequest::new("a"), FaultKind::CutAfter(3)).await;
    let line = line.expect("a line");
    assert_eq!((line.usage, line.nano_dollars, line.completed), (whole.usage, whole.nano_dollars, false));
}

#[tokio::test]
async fn hidden_thought_is_paid_for_even_when_the_stream_is_cut() {
    let sim = start(Script::new().conversation("a", [says(TEXT).fills_max_tokens()])).await;
    sim.push_fault(Fault::new(FaultKind::CutAfter(4)));
    frames(RawRequest::streamed("a").send(&sim).await.expect("a response")).await;
    let output = sim.bill().lines[0].usage.output_tokens;
    assert!((900..1_000).contains(&output), "{output}");
}

#[tokio::test]
async fn a_request_is_on_the_bill_as_soon_as_it_is_there_and_stays_when_its_client_leaves() {
    let sim = start(Script::new().conversation("a", [says(TEXT).after(Duration::from_secs(3_600))])).await;
    let leaving = {
        let sent = RawRequest::streamed("a");
        let url = sim.url();
        tokio::spawn(async move { sent.post(&url).await })
    };
    soon(sim.wait_for_requests(1)).await;
    let line = sim.bill().lines.pop().expect("a line");
    assert!(line.usage.input_tokens > 0 && line.usage.output_tokens == 0 && !line.completed);
    leaving.abort();
    let gone = async {
        while sim.requests()[0].ended_at.is_none() {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
    assert_eq!(sim.bill().lines, [line]);
}
