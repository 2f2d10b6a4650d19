//! What goes wrong on demand goes wrong as asked.

use convoke_sim::{Fault, FaultKind, Script, Simulator, says};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::client::{RawRequest, chatter, frames, soon, start};

async fn faulty(kind: FaultKind) -> Simulator {
    let sim = start(
        Script::new().conversation("a", [says("A text long enough to come in quite a number of events.")]),
    )
    .await;
    sim.push_fault(Fault::new(kind));
    sim
}

/// The headers of the response to the faulty request; the same request after it must succeed.
async fn check_status(kind: FaultKind, status: u16, error_type: &str) -> HeaderMap {
    let sim = faulty(kind.clone()).await;
    let response = RawRequest::streamed("a").send(&sim).await.expect("a response");
    assert_eq!(response.status().as_u16(), status, "{kind:?}");
    let requests = sim.requests();
    assert_eq!(requests[0].fault, Some(kind));
    assert!(requests[0].verdict.is_accepted() && !requests[0].replied);
    assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200);
    let headers = response.headers().clone();
    let body: Value = response.json().await.expect("JSON");
    assert_eq!(body["error"]["type"], error_type);
    headers
}

#[tokio::test]
async fn statuses_on_demand_have_their_bodies_and_headers() {
    let header = |headers: &HeaderMap, name: &str| {
        headers.get(name).map(|value| value.to_str().expect("text").to_owned())
    };
    let limited =
        check_status(FaultKind::RateLimited { retry_after: Some(7), headers: true }, 429, "rate_limit_error")
            .await;
    assert_eq!(header(&limited, "retry-after").as_deref(), Some("7"));
    assert_eq!(header(&limited, "anthropic-ratelimit-requests-remaining").as_deref(), Some("0"));
    let bare =
        check_status(FaultKind::RateLimited { retry_after: None, headers: false }, 429, "rate_limit_error")
            .await;
    assert_eq!(header(&bare, "retry-after"), None);
    assert_eq!(header(&bare, "anthropic-ratelimit-requests-remaining"), None);
    assert_eq!(header(&bare, "x-should-retry").as_deref(), Some("true"));
    let spent = check_status(FaultKind::SpendLimit, 429, "rate_limit_error").await;
    assert_eq!(header(&spent, "retry-after"), None);
    check_status(FaultKind::Overloaded529, 529, "overloaded_error").await;
    check_status(FaultKind::Internal500, 500, "api_error").await;
    check_status(FaultKind::Timeout504, 504, "timeout_error").await;
    check_status(FaultKind::ServiceUnavailable503, 503, "api_error").await;
    check_status(FaultKind::BadRequest400("no".to_owned()), 400, "invalid_request_error").await;
}

#[tokio::test]
async fn a_spend_limit_says_so_in_its_details_and_a_proxys_413_is_html() {
    let (_, body) = RawRequest::new("a").answer(&faulty(FaultKind::SpendLimit).await).await;
    assert_eq!(body["error"]["details"]["error_code"], "enforced_spend_limit_reached");
    let (status, page) = RawRequest::new("a").answer(&faulty(FaultKind::Html413).await).await;
    assert_eq!(status, 413);
    assert!(page.as_str().is_some_and(|page| page.contains("<html>")));
}

/// The events that arrive, and whether the body ends as a body should.
async fn check_stream(kind: FaultKind, count: usize, ends: bool) -> Vec<Value> {
    let sim = faulty(kind.clone()).await;
    let response = RawRequest::streamed("a").send(&sim).await.expect("a response");
    let (events, ended) = frames(response).await;
    assert_eq!((events.len(), ended), (count, ends), "{kind:?}: {events:?}");
    let replied = sim.requests()[0].replied;
    assert_eq!(replied, FaultKind::all_harmless().iter().any(|harmless| same(harmless, &kind)), "{kind:?}");
    events
}

fn same(one: &FaultKind, other: &FaultKind) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// What the reply of [`faulty`] has without a fault.
const EVENTS: usize = 10;

#[tokio::test]
async fn a_stream_fails_after_as_many_events_as_asked() {
    let error = check_stream(
        FaultKind::MidStreamError { after: 3, error_type: "overloaded_error".to_owned() },
        4,
        true,
    )
    .await;
    assert_eq!(
        error[3],
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    );
    let first =
        check_stream(FaultKind::MidStreamError { after: 0, error_type: "api_error".to_owned() }, 1, true)
            .await;
    assert_eq!(first[0]["type"], "error");
    check_stream(FaultKind::CutAfter(0), 0, false).await;
    check_stream(FaultKind::CutAfter(5), 5, false).await;
    let late = check_stream(FaultKind::CutAfter(1_000), EVENTS - 1, false).await;
    assert_eq!(late[EVENTS - 2]["type"], "message_delta");
    let malformed = check_stream(FaultKind::MalformedFrame(2), 3, true).await;
    assert!(malformed[2].is_string(), "not JSON: {}", malformed[2]);
}

#[tokio::test]
async fn under_harmless_faults_the_whole_reply_arrives() {
    let events = check_stream(FaultKind::UnknownEvent(2), EVENTS + 1, true).await;
    assert_eq!(events[2]["type"], "simulator_novelty");
    check_stream(FaultKind::Drip(1), EVENTS, true).await;
}

#[tokio::test]
async fn a_connection_can_be_cut_before_the_response() {
    let sim = faulty(FaultKind::CutBeforeHeaders).await;
    assert!(RawRequest::streamed("a").send(&sim).await.is_err());
    assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200);
}

#[tokio::test]
async fn a_stalled_stream_stays_silent_until_the_simulator_ends() {
    let sim = faulty(FaultKind::Stall(4)).await;
    let response = RawRequest::streamed("a").send(&sim).await.expect("a response");
    let reader = tokio::spawn(frames(response));
    sim.shutdown().await;
    let (events, ended) = soon(reader).await.expect("the reader");
    assert!(events.len() <= 4 && !ended, "{events:?}");
}

#[tokio::test]
async fn faults_wait_for_the_requests_they_are_meant_for() {
    let sim = start(chatter()).await;
    sim.push_fault(Fault::new(FaultKind::Overloaded529).on("b").times(2));
    sim.push_fault(Fault::new(FaultKind::Internal500).on("a").at(1));
    let mut later = RawRequest::new("a");
    later.push("assistant", json!("x"));
    later.push("user", json!("y"));
    let mut statuses = Vec::new();
    for ask in [
        RawRequest::new("a"),
        RawRequest::new("b"),
        RawRequest::new("b"),
        RawRequest::new("b"),
        later.clone(),
        later,
    ] {
        statuses.push(ask.answer(&sim).await.0);
    }
    assert_eq!(statuses, [200, 529, 529, 200, 500, 200]);
    assert_eq!(sim.faults_left(), 0);
}

#[tokio::test]
async fn an_illegal_request_is_refused_even_when_a_fault_is_waiting() {
    let sim = start(chatter()).await;
    sim.push_fault(Fault::new(FaultKind::Overloaded529));
    let mut illegal = RawRequest::new("a");
    illegal.body["messages"] = json!([]);
    assert_eq!(illegal.answer(&sim).await.0, 400);
    assert_eq!(sim.faults_left(), 1);
}

#[tokio::test]
async fn every_transient_fault_is_followed_by_the_reply() {
    let sim = start(chatter()).await;
    for kind in FaultKind::all_transient() {
        sim.push_fault(Fault::new(kind.clone()));
        if let Ok(response) = RawRequest::streamed("a").send(&sim).await {
            let (events, ended) = frames(response).await;
            let whole = ended && events.last().is_some_and(|event| event["type"] == "message_stop");
            assert!(!whole, "{kind:?} did no harm");
        }
        assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200, "{kind:?}");
    }
}

#[tokio::test]
async fn a_held_reply_waits_in_the_middle_until_it_is_let_go() {
    let sim = start(chatter()).await;
    let hold = sim.hold("a", 0, 3);
    let mut response = RawRequest::streamed("a").send(&sim).await.expect("a response");
    soon(hold.entered()).await;
    let begun = String::from_utf8(soon(response.chunk()).await.expect("a chunk").expect("bytes").to_vec())
        .expect("text");
    assert!(begun.contains("message_start") && !begun.contains("message_stop"), "{begun}");
    assert!(!sim.requests()[0].replied);
    hold.release();
    let (events, ended) = soon(frames(response)).await;
    assert!(ended && events.last().is_some_and(|event| event["type"] == "message_stop"));
    assert!(sim.requests()[0].replied);
}

#[tokio::test]
async fn a_hold_catches_one_reply_and_a_dropped_one_none() {
    let sim = start(chatter()).await;
    let hold = sim.hold("a", 0, 0);
    let held = tokio::spawn({
        let sent = RawRequest::streamed("a").send(&sim).await.expect("a response");
        frames(sent)
    });
    soon(hold.entered()).await;
    assert_eq!(soon(RawRequest::new("a").answer(&sim)).await.0, 200);
    drop(hold);
    assert!(soon(held).await.expect("the reader").1);
}

#[tokio::test]
async fn a_fault_can_be_meant_for_conversations_that_begin_with_a_text() {
    let script =
        ["a", "b"].iter().fold(Script::new(), |script, name| script.conversation(name, [says("Yes.")]));
    let sim = start(script).await;
    sim.push_fault(Fault::new(FaultKind::Internal500).opening("[conversation: b]"));
    assert_eq!(RawRequest::new("a").answer(&sim).await.0, 200);
    assert_eq!(RawRequest::new("b").answer(&sim).await.0, 500);
    assert_eq!(RawRequest::new("b").answer(&sim).await.0, 200, "it is used up");
}
