//! Rules about the request's headers.

use axum::http::HeaderMap;

use super::{Checked, EndpointKind, Rule, refuse};

/// The versions that were ever published and are still served.
const VERSIONS: &[&str] = &["2023-06-01", "2026-10-21"];

/// The version under which sampling parameters and assistant documents are gone.
const STRICT_VERSION: &str = "2026-10-21";

/// The betas a client may name. Naming one does not mean that the simulator plays it.
const BETAS: &[&str] = &[
    "advisor-tool-2026-03-01",
    "compact-2026-01-12",
    "compact-2026-09-04",
    "context-management-2025-06-27",
    "fast-mode-2026-02-01",
    "inline-tools-2026-09-15",
    "interleaved-thinking-2025-05-14",
    "mcp-client-2025-11-20",
    "mcp-client-2026-09-15",
    "mid-conversation-output-config-2026-07-01",
    "mid-conversation-system-2026-04-07",
    "mid-conversation-system-clear-at-2026-08-21",
    "mid-conversation-tool-changes-2026-07-01",
    "model-context-window-exceeded-2025-08-26",
    "oauth-2025-04-20",
    "output-300k-2026-03-24",
    "server-side-fallback-2026-07-01",
    "structured-outputs-2025-11-13",
    "task-budgets-2026-03-13",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
];

/// What the other rules need of the headers.
pub(super) struct Headers {
    betas: Vec<String>,
    /// The request is made under the version of October 2026.
    pub(super) strict: bool,
}

impl Headers {
    /// Whether a beta whose name begins like this is asked for.
    pub(super) fn beta(&self, name: &str) -> bool {
        self.betas.iter().any(|beta| beta.starts_with(name))
    }
}

pub(super) fn check(headers: &HeaderMap, endpoint: EndpointKind) -> Checked<Headers> {
    let get = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if endpoint.is_anthropics() {
        auth(get("x-api-key"), get("authorization"))?;
        match get("anthropic-version") {
            None => return refuse(Rule::MissingVersion, "anthropic-version: header is required"),
            Some(version) if !VERSIONS.contains(&version) => {
                let text = format!("anthropic-version: \"{version}\" is not a valid version");
                return refuse(Rule::UnknownVersion, text);
            }
            Some(_) => {}
        }
    }
    let content_type = get("content-type").unwrap_or_default();
    if content_type.split(';').next().is_none_or(|kind| !kind.trim().eq_ignore_ascii_case("application/json"))
    {
        return refuse(Rule::ContentType, "content-type: header must be application/json");
    }
    let values = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let betas: Vec<String> = values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let unknown: Vec<&str> = betas.iter().map(String::as_str).filter(|name| !BETAS.contains(name)).collect();
    if !unknown.is_empty() && endpoint.is_anthropics() {
        let names = unknown.join("`, `");
        return refuse(
            Rule::UnknownBeta,
            format!("Unexpected value(s) `{names}` for the `anthropic-beta` header"),
        );
    }
    Ok(Headers { betas, strict: get("anthropic-version") == Some(STRICT_VERSION) })
}

fn auth(key: Option<&str>, authorization: Option<&str>) -> Checked {
    let token = authorization
        .and_then(|value| value.strip_prefix("Bearer "))
        .filter(|token| !token.trim().is_empty());
    match (key.filter(|key| !key.is_empty()), token) {
        (None, None) => refuse(Rule::MissingAuth, "x-api-key header is required"),
        (Some(_), Some(_)) => {
            refuse(Rule::BothAuths, "x-api-key and Authorization must not be sent together")
        }
        _ => Ok(()),
    }
}
