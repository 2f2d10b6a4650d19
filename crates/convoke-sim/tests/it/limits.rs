//! Rate limits, on a clock that stands still until it is moved.

use std::time::Duration;

use convoke_sim::{Fault, FaultKind, Limit, ManualClock, RateLimits, SimConfig, Simulator, says};
use reqwest::Response;
use serde_json::json;

use crate::client::{RawRequest, chatter, frames, soon, start};

/// 2026-10-10T12:00:00Z.
const NOON: u64 = 1_791_633_600_000;

async fn limited(limits: RateLimits) -> (Simulator, ManualClock) {
    let clock = ManualClock::at(NOON);
    let config = SimConfig { clock: clock.clone().into(), limits: Some(limits), ..SimConfig::new(chatter()) };
    (start(config).await, clock)
}

async fn send(sim: &Simulator) -> Response {
    RawRequest::new("a").send(sim).await.expect("a response")
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| value.to_str().expect("text").to_owned())
}

fn rate(response: &Response, kind: &str) -> [String; 3] {
    ["limit", "remaining", "reset"]
        .map(|part| header(response, &format!("anthropic-ratelimit-{kind}-{part}")).unwrap_or_default())
}

#[tokio::test]
async fn requests_are_let_in_as_fast_as_the_bucket_refills() {
    let (sim, clock) = limited(RateLimits { requests_per_minute: 3, ..RateLimits::default() }).await;
    let first = send(&sim).await;
    assert_eq!(rate(&first, "requests"), ["3", "2", "2026-10-10T12:00:20Z"]);
    assert_eq!(rate(&first, "input-tokens")[0], "10000000");
    assert_eq!(rate(&first, "tokens")[0], "2000000");
    assert_eq!([send(&sim).await.status(), send(&sim).await.status()], [200, 200]);

    let refused = send(&sim).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "retry-after").as_deref(), Some("20"));
    assert_eq!(header(&refused, "x-should-retry"), None);
    assert_eq!(rate(&refused, "requests"), ["3", "0", "2026-10-10T12:01:00Z"]);
    let body: serde_json::Value = refused.json().await.expect("JSON");
    assert_eq!(body["error"]["type"], "rate_limit_error");
    let last = sim.requests().pop().expect("a request");
    assert!(last.verdict.is_accepted() && last.limited == Some(Limit::Requests) && !last.replied);

    clock.advance(Duration::from_millis(19_999));
    assert_eq!(header(&send(&sim).await, "retry-after").as_deref(), Some("1"));
    clock.advance(Duration::from_millis(1));
    assert_eq!(send(&sim).await.status(), 200);
    assert_eq!(send(&sim).await.status(), 429);
    assert_eq!(sim.bill().lines.len(), 4, "what was refused is not billed");
}

#[tokio::test]
async fn input_counts_without_what_is_read_from_the_cache() {
    let mut ask = RawRequest::new("a");
    ask.push("user", json!("w".repeat(9_000)));
    ask.body["cache_control"] = json!({"type": "ephemeral"});
    let free = start(chatter()).await;
    assert_eq!(ask.answer(&free).await.0, 200);
    let size = free.requests()[0].usage.expect("a usage").prompt_tokens();

    let limits = RateLimits { input_tokens_per_minute: size + 10, ..RateLimits::default() };
    let (sim, clock) = limited(limits).await;
    assert_eq!(ask.answer(&sim).await.0, 200);
    assert_eq!(ask.answer(&sim).await.0, 200, "it is read from the cache now");
    ask.body["output_config"] = json!({"effort": "low"});
    let refused = ask.send(&sim).await.expect("a response");
    assert_eq!((refused.status().as_u16(), rate(&refused, "input-tokens")[1].as_str()), (429, "0"));
    assert_eq!(sim.requests()[2].limited, Some(Limit::InputTokens));
    clock.advance(Duration::from_secs(60));
    assert_eq!(ask.answer(&sim).await.0, 200);
}

#[tokio::test]
async fn a_request_larger_than_the_bucket_passes_when_it_is_full() {
    let (sim, clock) = limited(RateLimits { input_tokens_per_minute: 10, ..RateLimits::default() }).await;
    let mut ask = RawRequest::new("a");
    ask.push("user", json!("w".repeat(900)));
    assert_eq!(ask.answer(&sim).await.0, 200);
    clock.advance(Duration::from_secs(60));
    assert_eq!(ask.answer(&sim).await.0, 429, "it is overdrawn by far more than a minute brings");
}

#[tokio::test]
async fn output_counts_as_it_is_generated_and_not_by_max_tokens() {
    let clock = ManualClock::at(NOON);
    let script = convoke_sim::Script::new()
        .conversation("a", [says("Briefly.")])
        .conversation("b", [says("At length.").fills_max_tokens()]);
    let limits = RateLimits { output_tokens_per_minute: 1_500, ..RateLimits::default() };
    let sim =
        start(SimConfig { clock: clock.clone().into(), limits: Some(limits), ..SimConfig::new(script) })
            .await;
    for _ in 0..5 {
        assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200);
    }
    assert_eq!(RawRequest::new("b").answer(&sim).await.0, 200);
    assert_eq!(RawRequest::new("b").answer(&sim).await.0, 200, "the bucket is not empty before it");
    let refused = RawRequest::new("a").send(&sim).await.expect("a response");
    assert_eq!(refused.status(), 429);
    assert_eq!(sim.requests()[7].limited, Some(Limit::OutputTokens));
    let wait: u64 = header(&refused, "retry-after").expect("a time").parse().expect("a number");
    assert!((20..=24).contains(&wait), "{wait}");
    clock.advance(Duration::from_secs(wait));
    assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200);
}

#[tokio::test]
async fn more_requests_at_once_than_allowed_are_refused_without_a_word_about_rates() {
    let (sim, _) = limited(RateLimits { concurrent: Some(1), ..RateLimits::default() }).await;
    let hold = sim.hold("a", 0, 2);
    let first = RawRequest::streamed("a").send(&sim).await.expect("a response");
    soon(hold.entered()).await;
    let refused = send(&sim).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(header(&refused, "x-should-retry").as_deref(), Some("true"));
    assert_eq!(header(&refused, "retry-after"), None);
    assert_eq!(rate(&refused, "requests"), ["", "", ""]);
    assert_eq!(sim.requests()[1].limited, Some(Limit::Concurrent));
    hold.release();
    assert!(soon(frames(first)).await.1);
    assert_eq!(
        send(&sim).await.status(),
        200,
        "whoever has read a reply to its end may send the next request"
    );
}

#[tokio::test]
async fn a_broken_stream_and_a_client_that_leaves_make_room() {
    let (sim, _) = limited(RateLimits { concurrent: Some(1), ..RateLimits::default() }).await;
    for kind in FaultKind::all_transient() {
        sim.push_fault(Fault::new(kind.clone()));
        if let Ok(response) = RawRequest::streamed("a").send(&sim).await {
            frames(response).await;
        }
        assert_eq!(send(&sim).await.status(), 200, "{kind:?}");
    }
    sim.push_fault(Fault::new(FaultKind::Stall(2)));
    drop(RawRequest::streamed("a").send(&sim).await.expect("a response"));
    let leaves = async {
        while send(&sim).await.status() == 429 {
            tokio::task::yield_now().await;
        }
    };
    soon(leaves).await;
}

#[tokio::test]
async fn a_fault_waits_for_a_request_that_is_let_in() {
    let (sim, clock) = limited(RateLimits { requests_per_minute: 1, ..RateLimits::default() }).await;
    assert_eq!(send(&sim).await.status(), 200);
    sim.push_fault(Fault::new(FaultKind::Overloaded529));
    assert_eq!(send(&sim).await.status(), 429);
    assert_eq!(sim.faults_left(), 1);
    clock.advance(Duration::from_secs(60));
    assert_eq!(send(&sim).await.status(), 529);
    assert_eq!(sim.faults_left(), 0);
}

#[tokio::test]
async fn a_request_that_reaches_no_model_takes_no_input() {
    // Every request here is larger than the bucket, so it needs a full one.
    let (sim, _) = limited(RateLimits { input_tokens_per_minute: 1, ..RateLimits::default() }).await;
    sim.push_fault(Fault::new(FaultKind::Overloaded529).times(2));
    let statuses =
        [send(&sim).await, send(&sim).await, send(&sim).await, send(&sim).await].map(|sent| sent.status());
    assert_eq!(statuses.map(|status| status.as_u16()), [529, 529, 200, 429]);
}

#[tokio::test]
async fn limits_can_change_while_the_server_runs() {
    let (sim, _) = limited(RateLimits { requests_per_minute: 1, ..RateLimits::default() }).await;
    assert_eq!([send(&sim).await.status(), send(&sim).await.status()], [200, 429]);
    sim.set_limits(Some(RateLimits { requests_per_minute: 2, ..RateLimits::default() }));
    assert_eq!(
        [send(&sim).await.status(), send(&sim).await.status(), send(&sim).await.status()],
        [200, 200, 429]
    );
    sim.set_limits(None);
    assert_eq!(rate(&send(&sim).await, "requests")[1], "3999");
}
