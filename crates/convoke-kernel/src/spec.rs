//! What an agent is made of. Written down once, when it starts, and the same for its life: changing the system prompt
//! or the tools of a running conversation would break its cache and, on newer models, its thinking.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ids::SessionId;
use crate::prompts;
use crate::segment::Segment;
use crate::tools;
use crate::wire::{Capabilities, Thinking};

/// What an agent is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent that talks to the person.
    Lead,
}

/// Limits that the kernel holds an agent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Turns per exchange; one hand-back turn follows.
    pub max_turns: u32,
    /// Attempts at one request before a passing fault counts as lasting.
    pub max_attempts: u32,
    /// The deadline of one command, as told to the model.
    pub bash_timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_turns: 30, max_attempts: 10, bash_timeout_ms: 60_000 }
    }
}

/// The room a reply is given at first.
pub const FIRST_MAX_TOKENS: u32 = 64_000;

/// What an agent is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// The session it belongs to.
    pub session: SessionId,
    /// What it is there for.
    pub role: Role,
    /// The directory it works in.
    pub dir: String,
    /// The model, as the API names it.
    pub model: String,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// The `system` member of every request.
    pub system: Segment,
    /// The `tools` member of every request.
    pub tools: Segment,
    /// The other members of every request, in order.
    pub params: Vec<Param>,
}

/// A top-level member of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Segment,
}

/// What a person chose about a lead.
#[derive(Debug, Clone)]
pub struct LeadSettings {
    /// The session.
    pub session: SessionId,
    /// The directory.
    pub dir: String,
    /// The model.
    pub model: String,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// Text the person adds to the system prompt.
    pub extra_system: Option<String>,
}

impl AgentSpec {
    /// The lead of a session.
    pub fn lead(settings: LeadSettings) -> Self {
        let LeadSettings { session, dir, model, capabilities, limits, extra_system } = settings;
        let mut system = vec![json!({"type": "text", "text": prompts::lead(limits.bash_timeout_ms)})];
        if let Some(extra) = extra_system.filter(|text| !text.trim().is_empty()) {
            system.push(json!({"type": "text", "text": extra}));
        }
        let tools = json!([tools::bash(capabilities.anthropic_tools)]);
        let params = params(&capabilities);
        Self {
            session,
            role: Role::Lead,
            dir,
            model,
            limits,
            system: Segment::encode(&system.into()),
            tools: Segment::encode(&tools),
            params,
            capabilities,
        }
    }

    /// The room the first attempt at a reply has.
    pub fn first_max_tokens(&self) -> u32 {
        FIRST_MAX_TOKENS.min(self.capabilities.max_output)
    }
}

fn params(capabilities: &Capabilities) -> Vec<Param> {
    let mut params = Vec::new();
    let mut put = |name: &str, value| params.push(Param { name: name.to_owned(), value: Segment::encode(&value) });
    match capabilities.thinking {
        Thinking::Omit => {}
        Thinking::Adaptive => put("thinking", json!({"type": "adaptive"})),
    }
    if let Some(effort) = &capabilities.effort {
        put("output_config", json!({"effort": effort}));
    }
    if capabilities.cache_marks {
        // Automatic caching: the server marks the last block of every request, so the history is read and not paid again.
        put("cache_control", json!({"type": "ephemeral"}));
    }
    params
}
