//! What went wrong, whether sending the request again can help, and when. It judges; it never sends anything
//! again.

use std::time::{Duration, SystemTime};

use convoke_kernel::{Failure, FailureKind, Feature, Refused, Retry, fields_named};
use reqwest::header::HeaderMap;
use serde_json::Value;

/// What a failure's advice is about.
pub(crate) struct Asked<'a> {
    /// The model that was asked for.
    pub(crate) model: &'a str,
    /// The server, fit to be shown.
    pub(crate) base_url: &'a str,
    /// Whether any credentials were sent.
    pub(crate) credentials: bool,
}

/// The advice at the end of every failure of a stream: no tool has run yet, so nothing is lost.
pub(crate) const AGAIN: &str = "send the whole request again";

/// The longest part of a server's text that is shown.
const SHOWN: usize = 300;

/// The connection broke, or what came over it was no reply.
pub(crate) fn transport(message: impl std::fmt::Display) -> Failure {
    failure(FailureKind::Transport, format!("{message}; {AGAIN}"), Retry::Soon)
}

/// The reply came, but it breaks the protocol or cannot be decoded.
pub(crate) fn unusable(message: impl std::fmt::Display) -> Failure {
    failure(FailureKind::InvalidOutput, format!("the reply cannot be used: {message}; {AGAIN}"), Retry::Soon)
}

/// A deadline of ours passed.
pub(crate) fn deadline(message: impl std::fmt::Display) -> Failure {
    failure(FailureKind::Deadline, format!("{message}; {AGAIN}"), Retry::Soon)
}

pub(crate) fn failure(kind: FailureKind, message: String, retry: Retry) -> Failure {
    Failure { kind, message, retry, request_id: None, unbilled: false, refused: None }
}

/// A response that is not a success, to a request that carries these parts.
pub(crate) fn from_response(
    (status, headers, body): (u16, &HeaderMap, &str),
    asked: &Asked<'_>,
    carries: impl Fn(Feature) -> bool,
) -> Failure {
    let answer = ErrorBody::from_body(body);
    let name = answer.kind.as_deref().unwrap_or("no error type");
    let what = format!("the API answered {status} ({name}): {}", answer.message);
    let verdict = judge(status, &answer, asked);
    let retry = match (verdict.last_word, header(headers, "x-should-retry")) {
        (true, _) | (false, Some("false")) => Retry::Never,
        (false, Some("true")) => wait(headers),
        (false, _) if verdict.retry => wait(headers),
        (false, _) => Retry::Never,
    };
    let request_id = header(headers, "request-id").map(str::to_owned).or(answer.request_id);
    Failure {
        kind: verdict.kind,
        message: advised(what, verdict.advice),
        retry,
        request_id,
        unbilled: !may_be_billed(status),
        refused: refused(status, body, asked, carries),
    }
}

/// The parts of the request that an answer of 400 or 422 names and that the request carried: a server
/// that names anything else complains about something else. The text shown to a person may be cut
/// before the name, so this reads all of it.
fn refused(
    status: u16,
    body: &str,
    asked: &Asked<'_>,
    carries: impl Fn(Feature) -> bool,
) -> Option<Box<Refused>> {
    let mut fields = if matches!(status, 400 | 422) { fields_named(&complaint(body)) } else { Vec::new() };
    fields.retain(|field| carries(*field));
    let window = if matches!(status, 400 | 413 | 422) { named_window(&complaint(body)) } else { None };
    let taught = !fields.is_empty() || window.is_some();
    taught.then(|| Box::new(Refused { endpoint: asked.base_url.to_owned(), fields, window }))
}

/// What a body complains about, without the parts of the request that some servers repeat in it.
fn complaint(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    if let Some(details) = value["detail"].as_array() {
        let path = |detail: &Value| match detail["loc"].as_array() {
            Some(steps) => {
                steps.iter().map(|step| step.to_string().replace('"', "")).collect::<Vec<_>>().join(".")
            }
            None => String::new(),
        };
        let said =
            |detail: &Value| format!("{}: {}", path(detail), detail["msg"].as_str().unwrap_or_default());
        return details.iter().map(said).collect::<Vec<_>>().join("; ");
    }
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    text("/error/message")
        .or(text("/error"))
        .or(text("/message"))
        .or(value.as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Whether a status leaves open that the model did the work: a machine between
/// the client and the model gave up waiting.
fn may_be_billed(status: u16) -> bool {
    matches!(status, 408 | 499 | 502 | 504 | 520..=527)
}

/// An `error` event after a status of 200.
pub(crate) fn from_event(data: &str, asked: &Asked<'_>) -> Failure {
    let answer = ErrorBody::from_body(data);
    let name = answer.kind.as_deref().unwrap_or("no error type");
    let what = format!("the API broke its reply off ({name}): {}", answer.message);
    // The status of a stream is always 200; its error types mean what they mean elsewhere.
    let status = match name {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    let verdict = judge(status, &answer, asked);
    let (retry, advice) = match verdict.retry {
        true => (Retry::Soon, AGAIN.to_owned()),
        false => (Retry::Never, verdict.advice),
    };
    let kind = verdict.kind;
    let message = advised(what, advice);
    let request_id = answer.request_id;
    Failure { kind, message, retry, request_id, unbilled: false, refused: None }
}

/// What an error amounts to.
struct Verdict {
    kind: FailureKind,
    /// Whether sending it again can help, unless a header says otherwise.
    retry: bool,
    /// No header can say otherwise.
    last_word: bool,
    advice: String,
}

fn judge(status: u16, answer: &ErrorBody, asked: &Asked<'_>) -> Verdict {
    let verdict =
        |kind, retry, last_word, advice: &str| Verdict { kind, retry, last_word, advice: advice.to_owned() };
    let never = |advice: &str| verdict(FailureKind::Api, false, false, advice);
    let Asked { model, base_url, .. } = asked;
    if answer.code.as_deref() == Some("enforced_spend_limit_reached") {
        let advice = "the account's monthly spend limit is reached, waiting does not help before the month \
            ends; raise the limit in the Console";
        return verdict(FailureKind::Api, false, true, advice);
    }
    if answer.message.starts_with("You have reached your specified API usage limits") {
        let advice = "the spend limit set for this account is reached; raise it in the Console or wait for \
            the date named";
        return verdict(FailureKind::Api, false, true, advice);
    }
    if let Some(window) = stated_window(&answer.message) {
        let advice =
            format!("the server reads {window} tokens at once: say --window {window}, or start it with more");
        return verdict(FailureKind::ContextFull, false, true, &advice);
    }
    if OVERLONG.iter().any(|words| answer.message.contains(words)) {
        let advice = "the history no longer fits the model's window; start again with less, or use a model \
            with a larger window";
        return verdict(FailureKind::ContextFull, false, true, advice);
    }
    match status {
        300..=399 => never(&format!(
            "{base_url} sends requests elsewhere, and a key is never sent after a redirect; set the base URL \
                to the final address"
        )),
        401 if !asked.credentials => never(&format!(
            "no credentials were sent to {base_url}; set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
        )),
        401 => never(&format!(
            "check ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), and that it belongs to {base_url}"
        )),
        402 => never("check the billing of the account in the Console"),
        403 => never(&format!(
            "check that the key may use the model `{model}`, and that nothing in between blocks {base_url}"
        )),
        404 => never(&format!(
            "check the model name `{model}` and the base URL {base_url} (it is written without /v1/messages)"
        )),
        413 => never(
            "the request is larger than the server takes; start again with a shorter history or fewer images",
        ),
        429 => verdict(FailureKind::RateLimited, true, false, ""),
        408 | 409 | 500.. => verdict(FailureKind::Api, true, false, ""),
        _ => never(""),
    }
}

/// The window that a server names when it refuses a prompt for its length, in the words
/// of the servers that people run themselves.
fn stated_window(message: &str) -> Option<u64> {
    const BEFORE: [&str; 4] = [
        "available context size (",
        "maximum context length is ",
        "context length of only ",
        "maximum context length of ",
    ];
    BEFORE.iter().find_map(|words| message.split_once(words)).and_then(|(_, rest)| leading_number(rest))
}

/// The window that a refusal of a prompt for its length names, in these words or in Anthropic's.
fn named_window(message: &str) -> Option<u64> {
    let anthropics = || {
        let (_, rest) = OVERLONG.iter().find_map(|words| message.split_once(words))?;
        leading_number(rest.split_once("> ")?.1)
    };
    stated_window(message).or_else(anthropics)
}

/// How Anthropic's API says that a prompt is too long, alone or with the room for its reply.
const OVERLONG: [&str; 2] = ["prompt is too long", "exceed context limit"];

fn leading_number(text: &str) -> Option<u64> {
    let digits: String =
        text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|number| *number > 0)
}

fn advised(what: String, advice: String) -> String {
    if advice.is_empty() { what } else { format!("{what}; {advice}") }
}

/// When the server wants to be asked again. `retry-after` is in seconds or a date, and a date is measured
/// against the server's own `Date`, so that no clock of ours is needed.
fn wait(headers: &HeaderMap) -> Retry {
    let number = |name: &str| header(headers, name)?.trim().parse::<f64>().ok();
    let dated = || {
        let at = httpdate::parse_http_date(header(headers, "retry-after")?).ok()?;
        let now: SystemTime = httpdate::parse_http_date(header(headers, "date")?).ok()?;
        at.duration_since(now).ok().as_ref().map(Duration::as_secs_f64).map(|seconds| seconds * 1_000.0)
    };
    let millis = number("retry-after-ms")
        .or_else(|| number("retry-after").map(|seconds| seconds * 1_000.0))
        .or_else(dated);
    match millis {
        // A wait of nothing is no advice: the kernel's own backoff is better than hammering.
        Some(millis) if millis.is_finite() && millis > 0.0 => Retry::After(millis.ceil() as u64),
        _ => Retry::Soon,
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// What the body of an error says.
struct ErrorBody {
    kind: Option<String>,
    message: String,
    code: Option<String>,
    request_id: Option<String>,
}

impl ErrorBody {
    /// Reads the API's form, the forms of other servers, or a page a proxy made up.
    fn from_body(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            return Self { kind: None, message: in_short(&untagged(body)), code: None, request_id: None };
        };
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let message = text("/error/message").or(text("/error")).or(text("/message")).or(text("/detail"));
        Self {
            kind: text("/error/type").map(in_short),
            message: message.map_or_else(|| in_short(body), in_short),
            code: text("/error/details/error_code").map(str::to_owned),
            request_id: text("/request_id").map(str::to_owned),
        }
    }
}

/// The text of a page, without its tags.
fn untagged(body: &str) -> String {
    if !body.trim_start().starts_with('<') {
        return body.to_owned();
    }
    let parts = body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<Vec<_>>().join(" ")
}

/// One line of bounded length.
pub(crate) fn in_short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &line[..end], text.len()),
        None if line.is_empty() => "(no text)".to_owned(),
        None => line,
    }
}
