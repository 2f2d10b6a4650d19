//! What went wrong, whether sending the request again can help, and when. It judges; it never sends anything again.

use std::time::{Duration, SystemTime};

use convoke_kernel::{Failure, FailureKind, Retry};
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

/// The advice every broken stream ends in: no tool has run yet, so nothing is lost.
pub(crate) const AGAIN: &str = "send the whole request again";

/// The longest part of a server's text that is shown.
const SHOWN: usize = 300;

/// The connection broke, or what came over it was no reply.
pub(crate) fn transport(message: impl std::fmt::Display) -> Failure {
    failure(FailureKind::Transport, format!("{message}; {AGAIN}"), Retry::Soon)
}

/// The reply came, but nobody could use it.
pub(crate) fn unusable(message: impl std::fmt::Display) -> Failure {
    failure(FailureKind::InvalidOutput, format!("the reply cannot be used: {message}; {AGAIN}"), Retry::Soon)
}

/// A deadline of ours passed.
pub(crate) fn deadline(message: impl std::fmt::Display) -> Failure {
    failure(FailureKind::Deadline, format!("{message}; {AGAIN}"), Retry::Soon)
}

pub(crate) fn failure(kind: FailureKind, message: String, retry: Retry) -> Failure {
    Failure { kind, message, retry, request_id: None, unbilled: false }
}

/// A response that is not a success.
pub(crate) fn from_response(status: u16, headers: &HeaderMap, body: &str, asked: &Asked<'_>) -> Failure {
    let told = Told::from_body(body);
    let name = told.kind.as_deref().unwrap_or("no error type");
    let what = format!("the API answered {status} ({name}): {}", told.message);
    let verdict = judge(status, &told, asked);
    let retry = match (verdict.last_word, header(headers, "x-should-retry")) {
        (true, _) | (false, Some("false")) => Retry::Never,
        (false, Some("true")) => wait(headers),
        (false, _) if verdict.retry => wait(headers),
        (false, _) => Retry::Never,
    };
    let request_id = header(headers, "request-id").map(str::to_owned).or(told.request_id);
    Failure {
        kind: verdict.kind,
        message: advised(what, verdict.advice),
        retry,
        request_id,
        unbilled: !may_be_billed(status),
    }
}

/// Whether a status leaves open that the model did the work: something between us and it gave up waiting.
fn may_be_billed(status: u16) -> bool {
    matches!(status, 408 | 499 | 502 | 504 | 520..=527)
}

/// An `error` event after a status of 200.
pub(crate) fn from_event(data: &str, asked: &Asked<'_>) -> Failure {
    let told = Told::from_body(data);
    let name = told.kind.as_deref().unwrap_or("no error type");
    let what = format!("the API broke its reply off ({name}): {}", told.message);
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
    let verdict = judge(status, &told, asked);
    let (retry, advice) = match verdict.retry {
        true => (Retry::Soon, AGAIN.to_owned()),
        false => (Retry::Never, verdict.advice),
    };
    Failure { kind: verdict.kind, message: advised(what, advice), retry, request_id: told.request_id, unbilled: false }
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

fn judge(status: u16, told: &Told, asked: &Asked<'_>) -> Verdict {
    let verdict = |kind, retry, last_word, advice: &str| Verdict { kind, retry, last_word, advice: advice.to_owned() };
    let never = |advice: &str| verdict(FailureKind::Api, false, false, advice);
    let Asked { model, base_url, .. } = asked;
    if told.code.as_deref() == Some("enforced_spend_limit_reached") {
        let advice = "the account's monthly spend limit is reached, waiting does not help before the month ends; raise the limit in the Console";
        return verdict(FailureKind::Api, false, true, advice);
    }
    if told.message.starts_with("You have reached your specified API usage limits") {
        let advice =
            "the spend limit set for this account is reached; raise it in the Console or wait for the date named";
        return verdict(FailureKind::Api, false, true, advice);
    }
    if told.message.contains("prompt is too long") || told.message.contains("exceed context limit") {
        let advice =
            "the history no longer fits the model's window; start again with less, or use a model with a larger window";
        return verdict(FailureKind::ContextFull, false, true, advice);
    }
    match status {
        300..=399 => never(&format!(
            "{base_url} sends requests elsewhere, and a key is never sent after a redirect; set the base URL to the final address"
        )),
        401 if !asked.credentials => {
            never(&format!("no credentials were sent to {base_url}; set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"))
        }
        401 => never(&format!("check ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), and that it belongs to {base_url}")),
        402 => never("check the billing of the account in the Console"),
        403 => never(&format!(
            "check that the key may use the model `{model}`, and that nothing in between blocks {base_url}"
        )),
        404 => never(&format!(
            "check the model name `{model}` and the base URL {base_url} (it is written without /v1/messages)"
        )),
        413 => never("the request is larger than the server takes; start again with a shorter history or fewer images"),
        429 => verdict(FailureKind::RateLimited, true, false, ""),
        408 | 409 | 500.. => verdict(FailureKind::Api, true, false, ""),
        _ => never(""),
    }
}

fn advised(what: String, advice: String) -> String {
    if advice.is_empty() { what } else { format!("{what}; {advice}") }
}

/// When the server wants to be asked again. `retry-after` is in seconds or a date, and a date is measured against
/// the server's own `Date`, so that no clock of ours is needed.
fn wait(headers: &HeaderMap) -> Retry {
    let number = |name: &str| header(headers, name)?.trim().parse::<f64>().ok();
    let dated = || {
        let at = httpdate::parse_http_date(header(headers, "retry-after")?).ok()?;
        let now: SystemTime = httpdate::parse_http_date(header(headers, "date")?).ok()?;
        at.duration_since(now).ok().as_ref().map(Duration::as_secs_f64).map(|seconds| seconds * 1_000.0)
    };
    let millis =
        number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1_000.0)).or_else(dated);
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
struct Told {
    kind: Option<String>,
    message: String,
    code: Option<String>,
    request_id: Option<String>,
}

impl Told {
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
