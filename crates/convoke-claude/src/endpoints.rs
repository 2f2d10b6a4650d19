//! The table of endpoints: what the server behind a base URL is taken to understand, whatever the model could
//! do. For a Claude model that is everything, until the server says otherwise: what a gateway understands
//! cannot be told from its name.

use convoke_kernel::{Capabilities, Thinking};
use reqwest::Url;
use serde::Deserialize;

use crate::config::DEFAULT_BASE_URL;
use crate::models::{Model, TableError, ThinkingType};

/// One row of the table: a kind of server and what it understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The row's name: `anthropic`, `gateway` or `generic`.
    pub name: String,
    /// `role: system` inside `messages` is passed on.
    pub system_role: bool,
    /// Tools defined by Anthropic may be declared by type alone; otherwise they are declared with a schema.
    pub anthropic_tools: bool,
    /// `cache_control` members are understood.
    pub cache_marks: bool,
    /// The `thinking` parameter is understood.
    pub thinking: bool,
    /// `output_config.effort` is understood.
    pub effort: bool,
    /// `/v1/messages/count_tokens` is answered.
    pub count_tokens: bool,
    /// The `anthropic-version` to send, where a configuration says so.
    pub version: Option<String>,
}

/// The host whose server is the `anthropic` row.
const ANTHROPIC_HOST: &str = "api.anthropic.com";

/// The names of the rows, for people.
const PROFILES: &str = "anthropic, gateway or generic";

impl Endpoint {
    /// Anthropic's own API, and servers that play it faithfully.
    pub fn anthropic() -> Self {
        Self::all("anthropic", true)
    }

    /// Any other server with a Claude model behind it: it is sent everything, and what it refuses is left out
    /// from then on. Tools are declared with a schema, because a server that drops their type without a word
    /// cannot be told from one that knows it.
    pub fn gateway() -> Self {
        Self { anthropic_tools: false, ..Self::all("gateway", true) }
    }

    /// Any other server that answers `/v1/messages`: nothing beyond the oldest form of the API is relied
    /// upon.
    pub fn generic() -> Self {
        Self::all("generic", false)
    }

    /// The row of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::anthropic(), Self::gateway(), Self::generic()].into_iter().find(|row| row.name == name)
    }

    /// Its members, as a configuration writes them.
    pub fn members(&self) -> [(&'static str, bool); 6] {
        [
            ("cache_marks", self.cache_marks),
            ("thinking", self.thinking),
            ("effort", self.effort),
            ("system_role", self.system_role),
            ("anthropic_tools", self.anthropic_tools),
            ("count_tokens", self.count_tokens),
        ]
    }

    fn all(name: &str, understood: bool) -> Self {
        Self {
            name: name.to_owned(),
            system_role: understood,
            anthropic_tools: understood,
            cache_marks: understood,
            thinking: understood,
            effort: understood,
            count_tokens: understood,
            version: None,
        }
    }
}

/// An `[endpoints."base URL"]` table: every member is optional, and what is left out stays as the row has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointPatch {
    /// The row to start from: `anthropic`, `gateway` or `generic`.
    pub profile: Option<String>,
    /// `role: system` inside `messages` is passed on.
    pub system_role: Option<bool>,
    /// Tools defined by Anthropic may be declared by type alone.
    pub anthropic_tools: Option<bool>,
    /// `cache_control` members are understood.
    pub cache_marks: Option<bool>,
    /// The `thinking` parameter is understood.
    pub thinking: Option<bool>,
    /// `output_config.effort` is understood.
    pub effort: Option<bool>,
    /// `/v1/messages/count_tokens` is answered.
    pub count_tokens: Option<bool>,
    /// The `anthropic-version` to send.
    pub version: Option<String>,
}

/// The rows, and what a configuration says about particular base URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    stated: Vec<(Url, EndpointPatch)>,
}

impl Endpoints {
    /// The table as it was compiled in.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds what a configuration's `[endpoints."base URL"]` tables say. On an error nothing has changed.
    pub fn extend(
        &mut self,
        patches: impl IntoIterator<Item = (String, EndpointPatch)>,
    ) -> Result<(), TableError> {
        let mut stated = self.stated.clone();
        for (text, patch) in patches {
            let wrong = |problem: String| TableError::Endpoint { url: text.clone(), problem };
            let url = Url::parse(&text)
                .map_err(|error| wrong(format!("not a URL ({error}); write http(s)://host")))?;
            if let Some(name) = patch.profile.as_ref().filter(|name| Endpoint::named(name).is_none()) {
                return Err(wrong(format!("profile `{name}` is not known; write {PROFILES}")));
            }
            stated.retain(|(known, _)| !same(known, &url));
            stated.push((url, patch));
        }
        self.stated = stated;
        Ok(())
    }

    /// What the configuration says about a base URL.
    fn stated(&self, base_url: &str) -> Option<&EndpointPatch> {
        let url = Url::parse(base_url).ok()?;
        self.stated.iter().find(|(known, _)| same(known, &url)).map(|(_, patch)| patch)
    }
}

/// A server: its base URL, and what is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    base_url: String,
    endpoints: Endpoints,
}

impl Server {
    /// The server at this base URL.
    pub fn new(base_url: impl Into<String>, endpoints: Endpoints) -> Self {
        Self { base_url: base_url.into(), endpoints }
    }

    /// Anthropic's own, for every model.
    pub fn anthropic() -> Self {
        Self::new(DEFAULT_BASE_URL, Endpoints::builtin())
    }

    /// Its base URL.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Whether a configuration says anything about it.
    pub fn is_stated(&self) -> bool {
        self.endpoints.stated(&self.base_url).is_some()
    }

    /// Its row for this model: what the configuration says, over `anthropic` for Anthropic's host, `gateway`
    /// for Claude's models elsewhere, and `generic` for all others.
    pub fn row(&self, model: &str) -> Endpoint {
        let host = Url::parse(&self.base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let assumed = match host.as_deref() {
            Some(ANTHROPIC_HOST) => Endpoint::anthropic(),
            Some(_) if is_claude(model) => Endpoint::gateway(),
            _ => Endpoint::generic(),
        };
        let Some(patch) = self.endpoints.stated(&self.base_url) else { return assumed };
        let row = patch.profile.as_deref().and_then(Endpoint::named).unwrap_or(assumed);
        patch.clone().apply(row)
    }
}

/// Whether a name is that of one of Claude's models: gateways put the provider in front of it, and regions
/// and versions around it.
pub fn is_claude(model: &str) -> bool {
    model.to_ascii_lowercase().contains("claude")
}

impl EndpointPatch {
    fn apply(self, row: Endpoint) -> Endpoint {
        Endpoint {
            name: row.name,
            system_role: self.system_role.unwrap_or(row.system_role),
            anthropic_tools: self.anthropic_tools.unwrap_or(row.anthropic_tools),
            cache_marks: self.cache_marks.unwrap_or(row.cache_marks),
            thinking: self.thinking.unwrap_or(row.thinking),
            effort: self.effort.unwrap_or(row.effort),
            count_tokens: self.count_tokens.unwrap_or(row.count_tokens),
            version: self.version.or(row.version),
        }
    }
}

/// Two base URLs are the same server if they differ at most in a slash at the end.
fn same(one: &Url, other: &Url) -> bool {
    one.as_str().trim_end_matches('/') == other.as_str().trim_end_matches('/')
}

/// What this model behind this endpoint accepts. `effort` is what the caller wishes for; `None` leaves it to
/// the model.
///
/// An effort the model does not have is an error. An effort that only the endpoint does not understand is
/// left out of the result (`effort: None`), so a caller that wished for one and got none has something to
/// tell its user.
pub fn capabilities(
    model: &Model,
    endpoint: &Endpoint,
    effort: Option<&str>,
) -> Result<Capabilities, TableError> {
    if let Some(effort) = effort.filter(|effort| !model.effort_levels.iter().any(|level| level == effort)) {
        let model_id = model.id.clone();
        return Err(if model.effort_levels.is_empty() {
            TableError::NoEffort { model: model_id }
        } else {
            let levels = model.effort_levels.clone();
            TableError::EffortLevel { model: model_id, effort: effort.to_owned(), levels }
        });
    }
    let adaptive = endpoint.thinking && model.thinking.allows(ThinkingType::Adaptive, effort);
    Ok(Capabilities {
        system_role: endpoint.system_role && model.system_role,
        anthropic_tools: endpoint.anthropic_tools,
        cache_marks: endpoint.cache_marks,
        thinking: if adaptive { Thinking::Adaptive } else { Thinking::Omit },
        effort: effort.filter(|_| endpoint.effort).map(str::to_owned),
        max_output: model.max_output,
        window: model.window,
    })
}
