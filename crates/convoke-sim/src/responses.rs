//! Responses that are no replies: refusals, failures on demand, and the list of models.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use convoke_claude::Models;
use serde_json::{Value, json};

use crate::accounts::{RateHeaders, Refused, full_buckets};
use crate::fault::FaultKind;
use crate::rules::error_body;

/// The page that the proxy in front of the API answers with; it never reaches the API.
const TOO_LARGE_PAGE: &str = "<html>\r\n<head><title>413 Request Entity Too \
    Large</title></head>\r\n<body>\r\n\
    <center><h1>413 Request Entity Too \
    Large</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n";

/// A response with the headers that every one has.
pub(crate) fn respond(
    status: u16,
    content_type: &'static str,
    request_id: &str,
    body: impl Into<Body>,
) -> Response {
    let mut response = Response::new(body.into());
    if let Ok(status) = status.try_into() {
        *response.status_mut() = status;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert("request-id", id);
    }
    headers.insert(
        "anthropic-organization-id",
        HeaderValue::from_static("00000000-0000-4000-8000-000000000000"),
    );
    response
}

/// The response to a request that is served.
pub(crate) fn served(
    content_type: &'static str,
    request_id: &str,
    body: impl Into<Body>,
    rates: RateHeaders,
) -> Response {
    let mut response = respond(200, content_type, request_id, body);
    response.headers_mut().extend(rates);
    response
}

/// The response to a request that the rate limits did not let in.
pub(crate) fn limited(refused: Refused, request_id: &str) -> Response {
    rate_limited(&refused.message, refused.retry_after, refused.headers, request_id)
}

pub(crate) fn error(
    status: u16,
    error_type: &str,
    message: &str,
    details: Option<Value>,
    request_id: &str,
) -> Response {
    let body = error_body(error_type, message, details, request_id).to_string();
    respond(status, "application/json", request_id, body)
}

pub(crate) fn too_large(request_id: &str) -> Response {
    respond(413, "text/html", request_id, TOO_LARGE_PAGE)
}

/// The response to a request on which this fault is played, if it is one that needs no reply.
pub(crate) fn fault(kind: &FaultKind, request_id: &str) -> Option<Response> {
    let error =
        |status, error_type, message: &str| Some(error(status, error_type, message, None, request_id));
    match kind {
        FaultKind::RateLimited { retry_after, headers } => {
            let mut rates = if *headers { full_buckets() } else { RateHeaders::new() };
            for (_, value) in
                rates.iter_mut().filter(|(name, _)| name.as_str().ends_with("-requests-remaining"))
            {
                *value = HeaderValue::from_static("0");
            }
            let message = "This request would exceed your organization's rate limit.";
            Some(rate_limited(message, *retry_after, rates, request_id))
        }
        FaultKind::SpendLimit => {
            let details = json!({"error_code": "enforced_spend_limit_reached"});
            let message = "This organization has reached its monthly spend limit.";
            Some(self::error(429, "rate_limit_error", message, Some(details), request_id))
        }
        FaultKind::Overloaded529 => error(529, "overloaded_error", "Overloaded"),
        FaultKind::Internal500 => error(500, "api_error", "Internal server error"),
        FaultKind::Timeout504 => error(504, "timeout_error", "The request timed out"),
        FaultKind::ServiceUnavailable503 => error(503, "api_error", "Service unavailable"),
        FaultKind::Status { status, error_type, retry_after } => {
            let mut response = self::error(*status, error_type, "simulator: on demand", None, request_id);
            if let Some(seconds) = retry_after {
                response.headers_mut().insert("retry-after", HeaderValue::from(*seconds));
            }
            Some(response)
        }
        FaultKind::Html200 => {
            Some(respond(200, "text/html", request_id, "<html><body>Please log in.</body></html>"))
        }
        FaultKind::BadRequest400(text) => error(400, "invalid_request_error", text),
        FaultKind::Html413 => Some(too_large(request_id)),
        FaultKind::MidStreamError { .. }
        | FaultKind::CutAfter(_)
        | FaultKind::CutBeforeHeaders
        | FaultKind::Stall(_)
        | FaultKind::Drip(_)
        | FaultKind::UnknownEvent(_)
        | FaultKind::MalformedFrame(_) => None,
    }
}

/// A 429. One that does not say how full the buckets are says at least that trying again is worthwhile.
fn rate_limited(message: &str, retry_after: Option<u64>, rates: RateHeaders, request_id: &str) -> Response {
    let mut response = error(429, "rate_limit_error", message, None, request_id);
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after {
        headers.insert("retry-after", HeaderValue::from(seconds));
    }
    if rates.is_empty() {
        headers.insert("x-should-retry", HeaderValue::from_static("true"));
    }
    headers.extend(rates);
    response
}

/// What a model can do, each with a switch.
fn switches(names: &[impl ToString]) -> Value {
    names
        .iter()
        .map(|name| (name.to_string(), json!({"supported": true})))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The answer to `GET /v1/models`.
pub(crate) fn models(models: &Models, request_id: &str) -> Response {
    let rows: Vec<Value> = models
        .iter()
        .map(|model| {
            json!({
                "type": "model",
                "id": model.id,
                "display_name": model.id,
                "created_at": "2026-01-01T00:00:00Z",
                "max_input_tokens": model.window,
                "max_tokens": model.max_output,
                "capabilities": {
                    "effort": switches(&model.effort_levels),
                    "thinking": {"types": switches(&model.thinking.accepts)},
                },
            })
        })
        .collect();
    let ends = |row: Option<&Value>| row.map_or(Value::Null, |row| row["id"].clone());
    let list = json!({"data": rows, "has_more": false, "first_id": ends(rows.first()), "last_id": ends(rows.last())});
    respond(200, "application/json", request_id, list.to_string())
}
