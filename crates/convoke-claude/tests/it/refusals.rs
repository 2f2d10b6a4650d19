//! Every refusal of the server and what the client makes of it.

use std::time::Duration;

use convoke_claude::{Auth, ClientConfig, Request, Secret, Timeouts};
use convoke_kernel::{FailureKind, Retry, Segment};

use crate::server::{Act, Server, ask, chunked, everything, head, request, response, rich, sent};

fn error(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_body"}}"#)
}

async fn check(
    status: &str,
    headers: &[(&str, &str)],
    body: &str,
    kind: FailureKind,
    retry: Retry,
    said: &[&str],
) {
    let failure = Server::answering(status, headers, body).await.ask().await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (kind, retry), "{status} {headers:?} {body}: {failure:?}");
    for said in said {
        assert!(failure.message.contains(said), "{said:?} is missing in: {}", failure.message);
    }
}

use FailureKind::{Api, ContextFull, RateLimited};
use Retry::{After, Never, Soon};

#[tokio::test]
async fn every_status_has_its_kind_and_its_advice() {
    let refused = error("invalid_request_error", "messages: at least one message is required");
    check("400 Bad Request", &[], &refused, Api, Never, &["400", "at least one message"]).await;
    let long = error("invalid_request_error", "prompt is too long: 214032 tokens > 200000 maximum");
    check("400 Bad Request", &[], &long, ContextFull, Never, &["214032", "window"]).await;
    // As llama.cpp, vLLM and LM Studio say it.
    for told in [
        "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "This model's maximum context length is 8192 tokens. However, you requested 9031 tokens",
        "The number of tokens to keep from the initial prompt is greater than a maximum context length of \
            8,192",
    ] {
        let small = error("exceed_context_size_error", told);
        check(
            "400 Bad Request",
            &[],
            &small,
            ContextFull,
            Never,
            &["the server reads 8192 tokens at once: say --window 8192"],
        )
        .await;
    }
    let capped = error(
        "invalid_request_error",
        "You have reached your specified API usage limits. Access returns soon.",
    );
    check("400 Bad Request", &[], &capped, Api, Never, &["spend limit", "Console"]).await;
    let denied = error("authentication_error", "invalid x-api-key");
    check("401 Unauthorized", &[], &denied, Api, Never, &["no credentials were sent", "ANTHROPIC_API_KEY"])
        .await;
    check("402 Payment Required", &[], &error("billing_error", "x"), Api, Never, &["billing"]).await;
    check("403 Forbidden", &[], &error("permission_error", "x"), Api, Never, &["claude-opus-4-8"]).await;
    let unknown = error("not_found_error", "model: claude-x");
    check("404 Not Found", &[], &unknown, Api, Never, &["claude-opus-4-8", "http://127.0.0.1", "base URL"])
        .await;
    check("408 Request Timeout", &[], "", Api, Soon, &["408"]).await;
    check("409 Conflict", &[], &error("conflict_error", "x"), Api, Soon, &["409"]).await;
    check("413 Payload Too Large", &[], &error("request_too_large", "x"), Api, Never, &["shorter history"])
        .await;
    check("422 Unprocessable Entity", &[], r#"{"detail":"no such role"}"#, Api, Never, &["no such role"])
        .await;
    check("429 Too Many Requests", &[], &error("rate_limit_error", "slow"), RateLimited, Soon, &["slow"])
        .await;
    check("500 Internal Server Error", &[], &error("api_error", "oops"), Api, Soon, &["oops"]).await;
    check("503 Service Unavailable", &[], "upstream down", Api, Soon, &["upstream down"]).await;
    check("504 Gateway Timeout", &[], &error("timeout_error", "late"), Api, Soon, &["late"]).await;
    check("529 Overloaded", &[], &error("overloaded_error", "Overloaded"), Api, Soon, &["Overloaded"]).await;
}

#[tokio::test]
async fn a_spend_limit_is_final_whatever_the_headers_say() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"limit","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    check("429 Too Many Requests", &[], body, Api, Never, &["monthly spend limit"]).await;
    let headers = [("x-should-retry", "true"), ("retry-after", "5")];
    check("429 Too Many Requests", &headers, body, Api, Never, &["monthly spend limit"]).await;
}

#[tokio::test]
async fn the_server_may_overrule_its_status() {
    let body = error("api_error", "x");
    check("500 Internal Server Error", &[("x-should-retry", "false")], &body, Api, Never, &[]).await;
    check("400 Bad Request", &[("x-should-retry", "true")], &body, Api, Soon, &[]).await;
    check(
        "400 Bad Request",
        &[("x-should-retry", "true"), ("retry-after", "2")],
        &body,
        Api,
        After(2000),
        &[],
    )
    .await;
    check("429 Too Many Requests", &[("x-should-retry", "true")], &body, RateLimited, Soon, &[]).await;
}

#[tokio::test]
async fn a_wait_is_read_in_all_its_forms() {
    let check = async |headers: &[(&str, &str)], retry: Retry| {
        check("429 Too Many Requests", headers, &error("rate_limit_error", "x"), RateLimited, retry, &[])
            .await;
    };
    let date = ("date", "Sat, 10 Oct 2026 12:00:00 GMT");
    check(&[("retry-after", "7")], After(7000)).await;
    check(&[("retry-after", "0.25")], After(250)).await;
    check(&[("retry-after-ms", "1500"), ("retry-after", "9")], After(1500)).await;
    check(&[("retry-after-ms", "soon"), ("retry-after", "9")], After(9000)).await;
    check(&[("retry-after", "Sat, 10 Oct 2026 12:01:30 GMT"), date], After(90_000)).await;
    check(&[("retry-after", "Sat, 10 Oct 2026 11:00:00 GMT"), date], Soon).await;
    check(&[("retry-after", "Sat, 10 Oct 2026 12:01:30 GMT")], Soon).await;
    for odd in ["0", "-3", "NaN", "inf", "whenever", ""] {
        check(&[("retry-after", odd)], Soon).await;
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_shown_in_short() {
    let page = format!(
        "<html><head><title>413 Too Large</title></head><body>{}</body></html>",
        "word ".repeat(5000)
    );
    let server = Server::answering("413 Payload Too Large", &[("content-type", "text/html")], &page).await;
    let failure = server.ask().await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (Api, Never));
    assert!(failure.message.contains("413 Too Large word word"), "{}", failure.message);
    assert!(!failure.message.contains('<') && failure.message.len() < 700, "{}", failure.message);
}

#[tokio::test]
async fn the_request_id_of_the_header_is_preferred() {
    let check = async |headers: &[(&str, &str)], body: &str, expected: Option<&str>| {
        let failure = Server::answering("500 Oops", headers, body).await.ask().await.unwrap_err();
        assert_eq!(failure.request_id.as_deref(), expected);
    };
    check(&[("request-id", "req_1")], &error("api_error", "x"), Some("req_1")).await;
    check(&[], &error("api_error", "x"), Some("req_body")).await;
    check(&[], "", None).await;
}

#[tokio::test]
async fn a_mid_stream_error_over_a_socket_keeps_the_request_id() {
    let body = "event: error\ndata: \
        {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let failure = Server::start(vec![Act::Say(head()), Act::Say(body.into())]).await.ask().await.unwrap_err();
    assert_eq!((failure.kind, failure.retry, failure.request_id.as_deref()), (Api, Soon, Some("req_head")));
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_is_a_transport_failure() {
    let whole = chunked(rich().as_bytes());
    for kept in [0, 10, 60, whole.len() / 2, whole.len() - 40] {
        let server = Server::start(vec![Act::Say(whole[..kept].to_vec())]).await;
        let failure = server.ask().await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.retry),
            (FailureKind::Transport, Soon),
            "cut after {kept}: {failure:?}"
        );
        assert_eq!(server.requests().len(), 1, "the client sent it again by itself");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_a_transport_failure() {
    let check = async |base_url: &str| {
        let failure =
            ask(ClientConfig { base_url: base_url.to_owned(), ..ClientConfig::default() }).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry), (FailureKind::Transport, Soon), "{base_url}: {failure:?}");
        assert!(failure.message.contains("check the base URL"), "{}", failure.message);
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    check(&format!("http://127.0.0.1:{port}")).await;
    check("http://no-such-host.invalid").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut plain = tokio::task::JoinSet::new();
    plain.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 400 no TLS here\r\n\r\n").await.unwrap();
    });
    check(&url).await;
}

#[tokio::test]
async fn a_handshake_that_stalls_is_given_up_when_the_connect_time_is_over() {
    let server = Server::start(vec![Act::Stall]).await;
    let timeouts = Timeouts { connect: Duration::from_millis(200), ..Timeouts::default() };
    let base_url = server.url.replace("http:", "https:");
    let failure = ask(ClientConfig { base_url, timeouts, ..ClientConfig::default() }).await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (FailureKind::Transport, Soon), "{failure:?}");
    assert!(failure.message.contains("within 0.2 s"), "{}", failure.message);
}

#[tokio::test]
async fn an_answer_that_is_no_stream_says_to_check_the_base_url() {
    let check = async |kind: &str| {
        let server = Server::answering("200 OK", &[("content-type", kind)], "{}").await;
        let failure = server.ask().await.unwrap_err();
        assert_eq!((failure.kind, failure.retry), (Api, Never), "{kind}");
        assert!(failure.message.contains("check that the base URL"), "{}", failure.message);
    };
    check("text/html; charset=utf-8").await;
    check("application/json").await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::answering("500 Oops", &[], "").await;
    let server = Server::answering("307 Temporary Redirect", &[("location", &target.url)], "").await;
    let failure = server.ask().await.unwrap_err();
    assert_eq!((failure.kind, failure.retry), (Api, Never));
    assert!(failure.message.contains("set the base URL"), "{}", failure.message);
    assert!(target.requests().is_empty());
}

#[tokio::test]
async fn a_secret_the_server_repeats_is_not_shown() {
    let key = "sk-ant-very-secret-key";
    let token = "token-in-a-header";
    let body = error("authentication_error", &format!("bad key {key} and {token}"));
    let server = Server::start(vec![Act::Say(response("401 Unauthorized", &[], &body))]).await;
    let config = ClientConfig {
        auth: Auth { key: Some(Secret::new(key)), bearer: None },
        headers: vec![("x-gateway".to_owned(), format!("Bearer {token}"))],
        ..server.config()
    };
    let failure = ask(config).await.unwrap_err();
    assert!(failure.message.contains("check ANTHROPIC_API_KEY"), "{}", failure.message);
    let shown = format!("{failure:?}");
    assert!(!shown.contains(key) && !shown.contains(token), "{shown}");
}

#[tokio::test]
async fn a_refusal_says_which_parts_of_the_request_the_server_does_not_take() {
    use convoke_kernel::Feature::{self, Effort, SystemRole, Thinking};
    let check = async |status: &str, body: &str, fields: &[Feature]| {
        let server = Server::answering(status, &[], body).await;
        let failure = sent(server.config(), everything()).await.unwrap_err();
        let refused = failure
            .refused
            .map(|refused| (refused.endpoint.starts_with("http://127.0.0.1:"), refused.fields));
        assert_eq!(refused, (!fields.is_empty()).then(|| (true, fields.to_vec())), "{status} {body}");
    };
    let text = error("invalid_request_error", "thinking: Extra inputs are not permitted");
    check("400 Bad Request", &text, &[Thinking]).await;
    check("500 Internal Server Error", &text, &[]).await;
    let far = format!("{} output_config: Extra inputs are not permitted", "x".repeat(2_000));
    check("400 Bad Request", &error("invalid_request_error", &far), &[Effort]).await;
    let listed = r#"{"detail":[{"loc":["body","messages",1,"role"],"msg":"Input should be 'user' or 'assistant'","input":{"cache_control":1}}]}"#;
    check("422 Unprocessable Entity", listed, &[SystemRole]).await;
    check("400 Bad Request", "unknown field `output_config`", &[Effort]).await;
}

#[tokio::test]
async fn a_refusal_names_no_part_that_the_request_did_not_carry() {
    use convoke_kernel::{Feature, OLD_VERSION};
    let all = "thinking, output_config, cache_control, anthropic-version, role: Input should be 'user' or \
        'assistant'";
    let named = async |request: Request, version: &str| {
        let server = Server::answering("400 Bad Request", &[], &error("invalid_request_error", all)).await;
        let config = ClientConfig { version: version.to_owned(), ..server.config() };
        sent(config, request).await.unwrap_err().refused.map_or_else(Vec::new, |refused| refused.fields)
    };
    assert_eq!(named(everything(), "2026-10-21").await, Feature::ALL);
    assert_eq!(named(request(), "2026-10-21").await, [Feature::Version]);
    assert_eq!(named(request(), OLD_VERSION).await, []);
    assert_eq!(named(Request { version: Some(OLD_VERSION), ..request() }, "2026-10-21").await, []);
    let marked = |text: &str| vec![Segment::from_json(text).unwrap()];
    let block =
        r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#;
    assert_eq!(
        named(Request { messages: marked(block), ..request() }, OLD_VERSION).await,
        [Feature::CacheMarks]
    );
    let said = r#"{"role":"user","content":"\"cache_control\":{} and {\"role\":\"system\","}"#;
    assert_eq!(named(Request { messages: marked(said), ..request() }, OLD_VERSION).await, []);
}

#[tokio::test]
async fn a_refusal_of_a_prompt_for_its_length_names_the_window() {
    let check = async |status: &str, told: &str, window: Option<u64>| {
        let server = Server::answering(status, &[], &error("invalid_request_error", told)).await;
        assert_eq!(server.ask().await.unwrap_err().window(), window, "{status} {told}");
    };
    for (told, window) in [
        ("request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192),
        ("This model's maximum context length is 8192 tokens. However, you requested 9031 tokens", 8_192),
        ("prompt is too long: 214032 tokens > 200000 maximum", 200_000),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease one",
            200_000,
        ),
    ] {
        check("400 Bad Request", told, Some(window)).await;
        check("500 Internal Server Error", told, None).await;
    }
    check("400 Bad Request", "prompt is too long", None).await;
    check("400 Bad Request", "max_tokens: 99999 > 64000, which is the maximum allowed", None).await;
}
