//! What goes over the wire: the bytes of a request, its headers, the way out.

use convoke_claude::{
    Auth, Bucket, Client, ClientConfig, ClientError, Live, Proxy, RateLimits, Request, Secret,
};
use convoke_kernel::Segment;

use crate::server::{Act, Server, ask, request, rich};

async fn streaming() -> Server {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_7\r\n\
        anthropic-ratelimit-requests-limit: 1000\r\nanthropic-ratelimit-requests-remaining: 999\r\n\
        anthropic-ratelimit-requests-reset: 2026-10-10T12:00:00Z\r\n\
        anthropic-ratelimit-input-tokens-limit: 2000000\r\nanthropic-ratelimit-input-tokens-remaining: \
        1999000\r\n\r\n";
    Server::start(vec![Act::Say(head.into()), Act::Say(rich().into_bytes())]).await
}

fn segment(json: &str) -> Segment {
    Segment::from_json(json).unwrap()
}

fn full_request() -> Request {
    Request {
        model: "a \"quoted\" model".to_owned(),
        max_tokens: 64_000,
        params: vec![
            ("thinking".to_owned(), segment(r#"{"type":"adaptive"}"#)),
            ("output_config".to_owned(), segment(r#"{"effort": "high"}"#)),
        ],
        tools: Some(segment(r#"[{"type":"bash_20250124","name":"bash"}]"#)),
        system: Some(segment(r#""Be brief.""#)),
        messages: vec![
            segment(r#"{"role":"user","content":"h\u00e9"}"#),
            segment(r#"{"content":[{"n": 1.0}],"role":"assistant"}"#),
        ],
        version: None,
    }
}

#[test]
fn a_body_is_its_segments_joined_byte_for_byte() {
    let expected = concat!(
        r#"{"model":"a \"quoted\" model","max_tokens":64000,"stream":true,"#,
        r#""thinking":{"type":"adaptive"},"output_config":{"effort": "high"},"#,
        r#""tools":[{"type":"bash_20250124","name":"bash"}],"system":"Be brief.","#,
        r#""messages":[{"role":"user","content":"h\u00e9"},{"content":[{"n": 1.0}],"role":"assistant"}]}"#
    );
    let bytes = full_request().to_bytes();
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), expected);
    assert_eq!(full_request().body().len(), bytes.len() as u64);
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value["messages"][0]["content"], "hé");
}

#[test]
fn a_request_without_messages_is_still_json() {
    let bytes = Request::new("m", 1, Vec::new()).to_bytes();
    assert_eq!(bytes, br#"{"model":"m","max_tokens":1,"stream":true,"messages":[]}"#);
}

#[tokio::test]
async fn a_body_of_any_size_arrives_whole_with_its_length() {
    let large = |size: usize| segment(&format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(size)));
    let check = async |messages: Vec<Segment>| {
        let server = streaming().await;
        let request = Request { messages, ..full_request() };
        let expected = request.to_bytes();
        Client::new(server.config()).unwrap().send(request, |_| {}).await.unwrap();
        let seen = server.requests();
        let (head, body) = seen[0].split_once("\r\n\r\n").unwrap();
        assert_eq!(body.as_bytes(), expected);
        assert!(head.contains(&format!("content-length: {}", expected.len())), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
    };
    check(vec![large(1)]).await;
    check((0..3000).map(|_| large(50)).collect()).await;
    check(vec![large(10), large(400_000), large(400_000), large(10), large(16_384), large(1)]).await;
}

#[tokio::test]
async fn the_headers_say_who_asks_and_in_which_version() {
    let server = streaming().await;
    let config = ClientConfig {
        auth: Auth { key: Some(Secret::new(" sk-key \n")), bearer: None },
        betas: vec!["one".to_owned(), "two".to_owned()],
        headers: vec![("X-Team".to_owned(), "blue".to_owned()), ("user-agent".to_owned(), "mine".to_owned())],
        ..server.config()
    };
    let reply = ask(config).await.unwrap();
    assert_eq!(reply.request_id.as_deref(), Some("req_7"));
    let seen = &server.requests()[0];
    assert!(seen.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{seen}");
    for line in [
        "x-api-key: sk-key",
        "anthropic-version: 2026-10-21",
        "anthropic-beta: one,two",
        "content-type: application/json",
        "x-team: blue",
        "user-agent: mine",
    ] {
        assert!(seen.contains(&format!("{line}\r\n")), "{line} is missing in {seen}");
    }
    assert!(!seen.contains("authorization"), "{seen}");
}

#[tokio::test]
async fn a_token_is_sent_as_bearer_and_nothing_is_sent_without_credentials() {
    let server = streaming().await;
    let auth = Auth { key: None, bearer: Some(Secret::new("tok")) };
    ask(ClientConfig { auth, version: "2026-10-21".to_owned(), ..server.config() }).await.unwrap();
    server.ask().await.unwrap();
    let seen = server.requests();
    assert!(
        seen[0].contains("authorization: Bearer tok\r\n") && !seen[0].contains("x-api-key"),
        "{}",
        seen[0]
    );
    assert!(seen[0].contains("anthropic-version: 2026-10-21\r\n"), "{}", seen[0]);
    assert!(!seen[1].contains("authorization") && !seen[1].contains("x-api-key"), "{}", seen[1]);
}

#[tokio::test]
async fn a_base_url_may_have_a_path_and_a_slash() {
    let server = streaming().await;
    let base_url = format!("{}/gate/way/", server.url);
    ask(ClientConfig { base_url, ..server.config() }).await.unwrap();
    assert!(server.requests()[0].starts_with("POST /gate/way/v1/messages HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_whole_address() {
    let proxy = streaming().await;
    let config = ClientConfig {
        base_url: "http://somewhere.invalid".to_owned(),
        proxy: Proxy::Url(proxy.url.clone()),
        ..ClientConfig::default()
    };
    ask(config).await.unwrap();
    let seen = &proxy.requests()[0];
    assert!(seen.starts_with("POST http://somewhere.invalid/v1/messages HTTP/1.1\r\n"), "{seen}");
}

#[tokio::test]
async fn a_key_goes_over_plain_http_to_this_machine_alone() {
    let key = || Auth { key: Some(Secret::new("sk-key")), bearer: None };
    let check = |base_url: &str, config: ClientConfig, says: Option<&str>| {
        let made = Client::new(ClientConfig { base_url: base_url.to_owned(), ..config });
        match (made, says) {
            (Ok(_), None) => {}
            (Err(error), Some(says)) => {
                let told = error.to_string();
                assert!(told.contains(says) && told.contains("insecure_http = true"), "{base_url}: {told}");
                assert!(told.contains("https://") && !told.contains("sk-key"), "{base_url}: {told}");
            }
            (made, says) => panic!("{base_url}: {made:?}, expected {says:?}"),
        }
    };
    let keyed = || ClientConfig { auth: key(), ..ClientConfig::default() };
    let bearer = || Auth { key: None, bearer: Some(Secret::new("tok")) };
    for near in ["http://127.0.0.1:8080", "http://127.9.9.9", "http://localhost:1/v", "http://[::1]:8080"] {
        check(near, keyed(), None);
    }
    check("https://gateway.example", keyed(), None);
    for far in [
        "http://gateway.example",
        "http://10.0.0.1:8080",
        "http://[::2]",
        "http://0.0.0.0",
        "HTTP://a.localhost",
    ] {
        check(far, keyed(), Some("the API key would go over plain http to "));
        check(far, ClientConfig { insecure_http: true, ..keyed() }, None);
        check(far, ClientConfig::default(), None);
    }
    // A host name that only begins with `localhost` is another machine.
    check("http://localhost.evil.example", keyed(), Some("http://localhost.evil.example"));
    check(
        "http://far.example",
        ClientConfig { auth: bearer(), ..ClientConfig::default() },
        Some("the bearer token"),
    );
    let headers = vec![("x-token".to_owned(), "sk-key".to_owned())];
    check("http://far.example", ClientConfig { headers, ..ClientConfig::default() }, Some("the headers"));
    let through = |proxy: &str| ClientConfig { proxy: Proxy::Url(proxy.to_owned()), ..keyed() };
    check("http://127.0.0.1:1", through("http://proxy.example:3128"), Some("http://proxy.example:3128"));
    check("http://127.0.0.1:1", through("http://127.0.0.1:3128"), None);
    check("https://far.example", through("http://proxy.example:3128"), None);
}

#[tokio::test]
async fn rate_limits_are_told_with_success_and_with_failure() {
    let expected = RateLimits {
        requests: Some(Bucket { limit: 1000, remaining: 999, reset_at: Some(1_791_633_600_000) }),
        input_tokens: Some(Bucket { limit: 2_000_000, remaining: 1_999_000, reset_at: None }),
        ..RateLimits::default()
    };
    let told = async |server: &Server| {
        let mut told = Vec::new();
        let client = Client::new(server.config()).unwrap();
        let show = |live: Live<'_>| {
            if let Live::Limits(limits) = live {
                told.push(*limits);
            }
        };
        let ok = client.send(request(), show).await.is_ok();
        (ok, told)
    };
    assert_eq!(told(&streaming().await).await, (true, vec![expected]));
    let headers = [
        ("anthropic-ratelimit-output-tokens-limit", "5"),
        ("anthropic-ratelimit-output-tokens-remaining", "0"),
    ];
    let refusing = Server::answering("429 Too Many Requests", &headers, "").await;
    let output_tokens = Some(Bucket { limit: 5, remaining: 0, reset_at: None });
    assert_eq!(told(&refusing).await, (false, vec![RateLimits { output_tokens, ..RateLimits::default() }]));
}

fn refused(change: impl FnOnce(&mut ClientConfig)) -> ClientError {
    let mut config = ClientConfig::default();
    change(&mut config);
    Client::new(config).unwrap_err()
}

#[test]
fn a_configuration_that_cannot_work_is_refused_without_showing_secrets() {
    let check = |error: ClientError, said: &str| {
        let text = format!("{error} {error:?}");
        assert!(text.contains(said), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    };
    let secret = || Some(Secret::new("hunter2"));
    check(refused(|config| config.auth = Auth { key: secret(), bearer: secret() }), "ANTHROPIC_AUTH_TOKEN");
    check(refused(|config| config.auth.key = Some(Secret::new("hunter2\nx"))), "x-api-key");
    check(refused(|config| config.base_url = "localhost".to_owned()), "base URL");
    check(refused(|config| config.base_url = "ftp://host".to_owned()), "http://");
    check(
        refused(|config| config.base_url = "https://me:hunter2@host/a?b=hunter2".to_owned()),
        "https://host/a",
    );
    check(refused(|config| config.base_url = "https://host/?key=hunter2".to_owned()), "https://host");
    check(refused(|config| config.headers = vec![("a b".to_owned(), "hunter2".to_owned())]), "a b");
    check(refused(|config| config.headers = vec![("x-token".to_owned(), "hunter2\n".to_owned())]), "x-token");
    check(
        refused(|config| config.headers = vec![("Content-Length".to_owned(), "5".to_owned())]),
        "by itself",
    );
    check(refused(|config| config.proxy = Proxy::Url("://u:hunter2@".to_owned())), "proxy");
}

#[test]
fn nothing_secret_is_in_the_debug_form() {
    let config = ClientConfig {
        base_url: "http://me:hunter2@127.0.0.1".to_owned(),
        auth: Auth { key: Some(Secret::new("hunter2")), bearer: Some(Secret::new("hunter2")) },
        headers: vec![("x-token".to_owned(), "hunter2".to_owned())],
        proxy: Proxy::Url("http://me:hunter2@proxy:3128".to_owned()),
        ..ClientConfig::default()
    };
    let text = format!("{config:?}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("x-token") && text.contains("proxy:3128"), "{text}");
}
