//! Silence and slowness: what is waited for, and for how long.

use std::time::{Duration, Instant};

use convoke_claude::{ClientConfig, Timeouts};
use convoke_kernel::{FailureKind, Retry};

use crate::server::{Act, Server, TEXT_BLOCK, ask, chunked, head, message, rich};

/// Short, yet long enough for a busy machine to get the first bytes across.
const IDLE: u64 = 1_500;

fn hurried(server: &Server, idle: u64, total: u64) -> ClientConfig {
    let timeouts = Timeouts {
        connect: Duration::from_secs(10),
        first: Duration::from_millis(idle),
        idle: Duration::from_millis(idle),
        total: Duration::from_millis(total),
    };
    ClientConfig { timeouts, ..server.config() }
}

async fn check_stall(acts: Vec<Act>, said: &str) {
    let server = Server::start(acts).await;
    let failure = ask(hurried(&server, IDLE, 60_000)).await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (FailureKind::Deadline, Retry::Soon), "{failure:?}");
    assert!(failure.message.contains(said), "{}", failure.message);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_when_the_idle_time_is_over() {
    check_stall(vec![Act::Stall], "did not begin to answer within 1.5 s").await;
}

#[tokio::test]
async fn a_stream_that_stalls_is_given_up_when_the_idle_time_is_over() {
    let half = rich().as_bytes()[..900].to_vec();
    check_stall(vec![Act::Say(head()), Act::Say(half), Act::Stall], "nothing came for 1.5 s").await;
}

#[tokio::test]
async fn a_slow_drip_is_no_stall() {
    let whole = message(&TEXT_BLOCK).concat().into_bytes();
    let server = Server::start(vec![Act::Say(head()), Act::Drip(whole, Duration::from_millis(3))]).await;
    let begun = Instant::now();
    let reply = ask(hurried(&server, IDLE, 60_000)).await.unwrap();
    assert_eq!(reply.text, "Hello");
    assert!(begun.elapsed() > Duration::from_millis(IDLE), "the drip was too fast to show anything");
}

#[tokio::test]
async fn a_reply_that_never_ends_is_given_up_when_the_total_time_is_over() {
    let ping = b"event: ping\ndata: {\"type\":\"ping\"}\n\n".to_vec();
    let server = Server::start(vec![Act::Say(head()), Act::Repeat(ping, Duration::from_millis(10))]).await;
    let failure = ask(hurried(&server, 10_000, 300)).await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (FailureKind::Deadline, Retry::Soon));
    assert!(failure.message.contains("longer than 0.3 s"), "{}", failure.message);
}

#[tokio::test]
async fn an_error_whose_body_stalls_is_told_by_its_status() {
    let head = b"HTTP/1.1 529 Overloaded\r\ncontent-length: 100\r\n\r\n{".to_vec();
    let server = Server::start(vec![Act::Say(head), Act::Stall]).await;
    let failure = ask(hurried(&server, IDLE, 60_000)).await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (FailureKind::Api, Retry::Soon));
}

#[tokio::test]
async fn a_server_that_does_not_hang_up_after_the_reply_is_not_waited_for() {
    let server = Server::start(vec![Act::Say(head()), Act::Say(rich().into_bytes()), Act::Stall]).await;
    let reply = ask(hurried(&server, 20_000, 60_000)).await.unwrap();
    assert_eq!(reply.calls.len(), 1);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let whole = chunked(rich().as_bytes());
    let server = Server::start(vec![Act::Say(whole.clone()), Act::Next, Act::Say(whole)]).await;
    let client = convoke_claude::Client::new(server.config()).unwrap();
    let first = client.send(crate::server::request(), |_| {}).await.unwrap();
    let second = client.send(crate::server::request(), |_| {}).await.unwrap();
    assert_eq!(first, second);
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

/// A server that reads a long prompt: nothing for a while, then a ping, then nothing again, then the reply.
/// `idle` alone would have given it up.
#[tokio::test]
async fn a_server_that_reads_a_long_prompt_is_waited_for_and_one_that_stops_in_its_reply_is_not() {
    let ping = || b"event: ping\ndata: {\"type\":\"ping\"}\n\n".to_vec();
    let pause = || Act::Pause(Duration::from_millis(600));
    let patient = |server: &Server| {
        let timeouts = Timeouts { first: Duration::from_secs(60), ..hurried(server, 300, 60_000).timeouts };
        ClientConfig { timeouts, ..server.config() }
    };
    let whole = message(&TEXT_BLOCK).concat().into_bytes();
    let acts = vec![pause(), Act::Say(head()), pause(), Act::Say(ping()), pause(), Act::Say(whole.clone())];
    let server = Server::start(acts).await;
    assert_eq!(ask(patient(&server)).await.unwrap().text, "Hello");
    let half = whole[..whole.len() / 2].to_vec();
    let server = Server::start(vec![Act::Say(head()), Act::Say(half), Act::Stall]).await;
    let failure = ask(patient(&server)).await.unwrap_err();
    assert!(failure.message.contains("nothing came for 0.3 s"), "{}", failure.message);
}
