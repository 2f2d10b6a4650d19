//! The outcome of a model call, in the words that decisions need. `convoke-claude` knows how it travels.

use serde::{Deserialize, Serialize};

use crate::lesson::Refused;
use crate::segment::Segment;

/// Why the model stopped writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It wants tools to be run.
    ToolUse,
    /// It ran out of `max_tokens`.
    MaxTokens,
    /// It wrote one of the stop sequences.
    StopSequence,
    /// A server tool loop paused; the same history is to be sent again with this reply appended.
    PauseTurn,
    /// It declined.
    Refusal,
    /// Its output filled the context window.
    ContextWindowExceeded,
    /// A reason this version does not know.
    Other(String),
}

impl From<String> for StopReason {
    fn from(text: String) -> Self {
        match text.as_str() {
            "end_turn" => Self::EndTurn,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "stop_sequence" => Self::StopSequence,
            "pause_turn" => Self::PauseTurn,
            "refusal" => Self::Refusal,
            "model_context_window_exceeded" => Self::ContextWindowExceeded,
            _ => Self::Other(text),
        }
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> String {
        match reason {
            StopReason::EndTurn => "end_turn".into(),
            StopReason::ToolUse => "tool_use".into(),
            StopReason::MaxTokens => "max_tokens".into(),
            StopReason::StopSequence => "stop_sequence".into(),
            StopReason::PauseTurn => "pause_turn".into(),
            StopReason::Refusal => "refusal".into(),
            StopReason::ContextWindowExceeded => "model_context_window_exceeded".into(),
            StopReason::Other(text) => text,
        }
    }
}

/// Tokens as the API bills them. The four input kinds do not overlap: their sum is the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Input read from the cache.
    pub cache_read_tokens: u64,
    /// Input written to the cache for five minutes.
    pub cache_write_5m_tokens: u64,
    /// Input written to the cache for an hour.
    pub cache_write_1h_tokens: u64,
    /// Output, thinking included.
    pub output_tokens: u64,
    /// The part of the output that was thinking, where the API says so.
    pub thinking_tokens: u64,
}

impl Usage {
    /// The whole prompt: what the model read, whatever it cost.
    pub fn prompt_tokens(&self) -> u64 {
        // A server can claim any number; a wrong one must not bring the process down.
        [self.cache_read_tokens, self.cache_write_5m_tokens, self.cache_write_1h_tokens]
            .into_iter()
            .fold(self.input_tokens, u64::saturating_add)
    }

    /// Adds another call's usage.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_5m_tokens = self.cache_write_5m_tokens.saturating_add(other.cache_write_5m_tokens);
        self.cache_write_1h_tokens = self.cache_write_1h_tokens.saturating_add(other.cache_write_1h_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.thinking_tokens = self.thinking_tokens.saturating_add(other.thinking_tokens);
    }
}

/// A tool call inside a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The API's id for it; the result must name it.
    pub id: String,
    /// The tool that is meant.
    pub name: String,
    /// The input as the model wrote it. Input that was not JSON is an object with the one key
    /// [`INVALID_INPUT`].
    pub input: Segment,
}

/// The only key of a tool input that was not valid JSON; its value is the raw text.
pub const INVALID_INPUT: &str = "_invalid_json";

/// A complete reply: its stream reached `message_stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The `content` array, encoded once: joined deltas, unknown members kept, empty text blocks left out.
    pub content: Segment,
    /// All text blocks joined by nothing; what a person reads.
    pub text: String,
    /// The tool calls in `content`, in order.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub stop: StopReason,
    /// The API's explanation of a refusal, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_detail: Option<String>,
    /// What it cost in tokens.
    pub usage: Usage,
    /// What it cost in nano-dollars by the price table in use; `None` when the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano: Option<u64>,
    /// The model that answered, as it names itself.
    pub model: String,
    /// The server's id for the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Why a result is not there. The words are the ones reports and exit codes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The model declined.
    Refused,
    /// The reply was cut at `max_tokens`, twice.
    Truncated,
    /// The history no longer fits the model's window.
    ContextFull,
    /// The agent used up its turns.
    TurnLimit,
    /// The agent made the same calls with the same results again and again.
    Stuck,
    /// A cap of the budget was reached.
    Budget,
    /// A deadline passed.
    Deadline,
    /// The API kept saying: too many requests.
    RateLimited,
    /// The API answered with an error that repeating does not mend, or kept failing.
    Api,
    /// The connection failed, stalled or was cut.
    Transport,
    /// The reply came but cannot be used.
    InvalidOutput,
    /// The command sandbox could not be had.
    Sandbox,
    /// A person stopped it.
    Cancelled,
    /// The process ended while it was under way.
    Interrupted,
    /// A fault of Convoke itself.
    Internal,
}

impl FailureKind {
    /// Whether the next words of a person would fail for the same reason. They wait then, and are said when
    /// the person wants that. The other kinds are about the words that failed: the next ones may well be
    /// answered.
    pub fn would_fail_again(self) -> bool {
        match self {
            Self::Api
            | Self::Budget
            | Self::ContextFull
            | Self::Deadline
            | Self::Internal
            | Self::RateLimited
            | Self::Sandbox
            | Self::Transport => true,
            Self::Cancelled
            | Self::Interrupted
            | Self::InvalidOutput
            | Self::Refused
            | Self::Stuck
            | Self::Truncated
            | Self::TurnLimit => false,
        }
    }

    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::Refused,
        Self::Truncated,
        Self::ContextFull,
        Self::TurnLimit,
        Self::Stuck,
        Self::Budget,
        Self::Deadline,
        Self::RateLimited,
        Self::Api,
        Self::Transport,
        Self::InvalidOutput,
        Self::Sandbox,
        Self::Cancelled,
        Self::Interrupted,
        Self::Internal,
    ];

    /// The word that events, reports and exit reasons use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Truncated => "truncated",
            Self::ContextFull => "context_full",
            Self::TurnLimit => "turn_limit",
            Self::Stuck => "stuck",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::RateLimited => "rate_limited",
            Self::Api => "api",
            Self::Transport => "transport",
            Self::InvalidOutput => "invalid_output",
            Self::Sandbox => "sandbox",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Internal => "internal",
        }
    }

    /// Whether work that failed in this way may succeed when it is tried again. A request
    /// that the model declined it declines again.
    pub fn is_worth_a_retry(self) -> bool {
        self != Self::Refused
    }
}

/// What the client advises about sending the request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Repeating the same request cannot help.
    Never,
    /// Send the whole request again, after the kernel's own backoff.
    Soon,
    /// Send the whole request again, not before this many milliseconds have passed: the server said so.
    After(u64),
}

/// A model call that gave no reply, or a result that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for programs.
    pub kind: FailureKind,
    /// What happened and what to do about it, for people.
    pub message: String,
    /// Whether and when to send it again.
    pub retry: Retry,
    /// The server's id for the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The request certainly cost nothing: it never arrived, or was
    /// turned away. Otherwise its cost is unknown.
    #[serde(default)]
    pub unbilled: bool,
    /// The parts of the request that the server would not take, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Refused>>,
}

impl Failure {
    /// How many tokens the server reads at once, if it refused the prompt for its length and said so.
    pub fn window(&self) -> Option<u64> {
        self.refused.as_ref()?.window.filter(|_| self.kind == FailureKind::ContextFull && self.unbilled)
    }
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The parameter is left out.
    Omit,
    /// `{"type":"adaptive"}`.
    Adaptive,
}

/// What a model behind an endpoint accepts: the two tables in `convoke-claude` taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// `role: system` may stand inside `messages`.
    pub system_role: bool,
    /// Tools defined by Anthropic may be declared by type alone; otherwise they are declared with a schema.
    pub anthropic_tools: bool,
    /// `cache_control` members are understood.
    pub cache_marks: bool,
    /// How thinking is asked for.
    pub thinking: Thinking,
    /// The effort to send; `None` leaves the parameter out.
    pub effort: Option<String>,
    /// The most output tokens one reply may have.
    pub max_output: u32,
    /// The context window in tokens.
    pub window: u64,
}
