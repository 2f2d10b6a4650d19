//! The table of endpoints: what the server behind a base URL understands, whatever the model could do.

use convoke_kernel::{Capabilities, Thinking};
use reqwest::Url;
use serde::Deserialize;

use crate::models::{Model, TableError, ThinkingType};

/// One row of the table: a kind of server and what it understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The row's name: `anthropic` or `generic`.
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
}

/// The host whose server is the `anthropic` row.
const ANTHROPIC_HOST: &str = "api.anthropic.com";

impl Endpoint {
    /// Anthropic's own API, and servers that play it faithfully.
    pub fn anthropic() -> Self {
        Self::all("anthropic", true)
    }

    /// Any other server that answers `/v1/messages`: nothing beyond the oldest form of the API is relied upon.
    pub fn generic() -> Self {
        Self::all("generic", false)
    }

    /// The row of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::anthropic(), Self::generic()].into_iter().find(|row| row.name == name)
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
        }
    }
}

/// An `[endpoints."base URL"]` table: every member is optional, and what is left out stays as the row has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointPatch {
    /// The row to start from: `anthropic` or `generic`.
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
}

/// The two rows, and what a configuration says about particular base URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    stated: Vec<(Url, Endpoint)>,
}

impl Endpoints {
    /// The table as it was compiled in.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds what a configuration's `[endpoints."base URL"]` tables say. On an error nothing has changed.
    pub fn extend(&mut self, patches: impl IntoIterator<Item = (String, EndpointPatch)>) -> Result<(), TableError> {
        let mut stated = self.stated.clone();
        for (text, patch) in patches {
            let wrong = |problem: String| TableError::Endpoint { url: text.clone(), problem };
            let url = Url::parse(&text).map_err(|error| wrong(format!("not a URL ({error}); write http(s)://host")))?;
            let row = match &patch.profile {
                Some(name) => Endpoint::named(name)
                    .ok_or_else(|| wrong(format!("profile `{name}` is not known; write anthropic or generic")))?,
                None => self.for_base_url(&text),
            };
            stated.retain(|(known, _)| !same(known, &url));
            stated.push((url, patch.apply(row)));
        }
        self.stated = stated;
        Ok(())
    }

    /// The row for a base URL: what the configuration says about it, else `anthropic` for Anthropic's host, else `generic`.
    pub fn for_base_url(&self, base_url: &str) -> Endpoint {
        let Ok(url) = Url::parse(base_url) else { return Endpoint::generic() };
        if let Some((_, row)) = self.stated.iter().find(|(known, _)| same(known, &url)) {
            return row.clone();
        }
        if url.host_str() == Some(ANTHROPIC_HOST) { Endpoint::anthropic() } else { Endpoint::generic() }
    }
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
        }
    }
}

/// Two base URLs are the same server if they differ at most in a slash at the end.
fn same(one: &Url, other: &Url) -> bool {
    one.as_str().trim_end_matches('/') == other.as_str().trim_end_matches('/')
}

/// What this model behind this endpoint accepts. `effort` is what the caller wishes for; `None` leaves it to the model.
///
/// An effort the model does not have is an error. An effort that only the endpoint does not understand is left out of
/// the result (`effort: None`), so a caller that wished for one and got none has something to tell its user.
pub fn capabilities(model: &Model, endpoint: &Endpoint, effort: Option<&str>) -> Result<Capabilities, TableError> {
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
