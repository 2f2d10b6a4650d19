//! What makes a request legal, and how the API answers one that is not.
//!
//! The rules read the request as plain JSON and share nothing with the client. Every rule has an id, and a
//! test shows for each of them a request that it refuses and a very similar one that passes.

mod blocks;
mod cache;
mod endpoint;
mod headers;
mod limits;
mod messages;
mod pairing;
mod sampling;
mod shape;
mod system;
mod thinking;
mod tools;

use convoke_claude::{Model, Models};
use serde_json::{Map, Value, json};

use self::headers::Headers;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// The name of one rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Rule {
            /// Every rule there is.
            pub const ALL: &[Rule] = &[$(Rule::$name,)*];
        }
    };
}

rules! {
    /// There is a key or a token.
    MissingAuth,
    /// There are not both a key and a token.
    BothAuths,
    /// `anthropic-version` is there.
    MissingVersion,
    /// `anthropic-version` is one of the published versions.
    UnknownVersion,
    /// `content-type` is JSON.
    ContentType,
    /// Every value of `anthropic-beta` is known.
    UnknownBeta,
    /// The body is not too large.
    BodyTooLarge,
    /// The body is a JSON object.
    BodyNotJson,
    /// Required members are there.
    FieldRequired,
    /// Members have the right type.
    FieldType,
    /// There are no unknown members at the top.
    ExtraField,
    /// There are no unknown members in a message.
    ExtraMessageField,
    /// There are no unknown members in a content block.
    ExtraBlockField,
    /// The model exists.
    UnknownModel,
    /// `max_tokens` is not negative.
    MaxTokensNegative,
    /// `max_tokens: 0` is not combined with what needs output.
    MaxTokensZero,
    /// `max_tokens` is within the model's cap.
    MaxTokensOverCap,
    /// The prompt fits into the model's window.
    PromptTooLong,
    /// There is a message.
    NoMessages,
    /// There are at most 100,000 messages.
    TooManyMessages,
    /// A role is user, assistant or system.
    UnknownRole,
    /// The first message is the user's.
    FirstNotUser,
    /// A content block is of a known type.
    UnknownBlockType,
    /// A content block stands in a message of the right role.
    BlockRole,
    /// Under version 2026-10-21 no document stands in an assistant message.
    AssistantDocument,
    /// A text block is not empty.
    EmptyText,
    /// A text is not only white space.
    WhitespaceText,
    /// A user message has content.
    EmptyUser,
    /// An assistant message has content.
    EmptyAssistant,
    /// The last message is not the assistant's, on models without prefill.
    Prefill,
    /// The last message does not end in a thinking block.
    FinalThinking,
    /// A prefilled text does not end in white space.
    PrefillWhitespace,
    /// The model knows system messages.
    SystemUnsupported,
    /// A system message is not first.
    SystemFirst,
    /// A system section follows a user message or a server tool's result.
    SystemPredecessor,
    /// A system section is followed by an assistant message or by nothing.
    SystemSuccessor,
    /// A system message holds text only.
    SystemBlocks,
    /// A system message is not empty.
    SystemEmpty,
    /// `clear_at` stands on system messages only.
    ClearAtRole,
    /// `clear_at` has one of its two values.
    ClearAtValue,
    /// A turn-scoped system message has neither cache marks nor an effort.
    ClearAtAlone,
    /// The model takes an effort within the conversation.
    TurnEffort,
    /// Every tool call is answered at once.
    ToolUseUnanswered,
    /// Every tool result answers a call.
    ToolResultUnexpected,
    /// A tool call has an id of its own.
    ToolUseDuplicate,
    /// A tool call is answered once.
    ToolResultDuplicate,
    /// Ids of tool calls are made of letters, digits, `_` and `-`.
    ToolUseId,
    /// A server tool's call has its result.
    ServerToolUnresolved,
    /// A tool is of a known type.
    ToolType,
    /// A tool's name fits the pattern.
    ToolName,
    /// A tool that Anthropic defines has the name Anthropic gave it.
    TypedToolName,
    /// No two tools share a name.
    ToolNamesUnique,
    /// There are no unknown members in a tool, and no schema in one that Anthropic defines.
    ExtraToolField,
    /// The root of a tool's schema is an object.
    SchemaRoot,
    /// The root of a tool's schema is not a choice.
    SchemaUnion,
    /// A strict schema forbids further properties everywhere.
    StrictSchema,
    /// There are at most 20 strict tools.
    StrictCount,
    /// A deferred tool has no cache mark.
    DeferredMark,
    /// `tool_choice` comes with tools.
    ChoiceWithoutTools,
    /// `tool_choice` has a known type.
    ChoiceType,
    /// `tool_choice` names a tool that is there.
    ChoiceUnknownTool,
    /// The model can be forced to use a tool.
    ForcedChoice,
    /// Nothing is forced while thinking has a budget.
    ForcedThinking,
    /// A cache mark has its shape.
    MarkShape,
    /// There are at most four cache marks, the automatic one counted.
    TooManyMarks,
    /// Marks of an hour come before marks of five minutes.
    MarkOrder,
    /// No mark stands on an empty text.
    MarkOnEmpty,
    /// No mark stands on a thinking block.
    MarkOnThinking,
    /// The automatic mark does not contradict the mark on the last block.
    AutomaticMark,
    /// The model knows effort.
    EffortUnsupported,
    /// Effort is one of the five levels.
    EffortValue,
    /// The model knows this level of effort.
    EffortLevel,
    /// The type of thinking is known.
    ThinkingType,
    /// The model takes thinking with a budget.
    ThinkingEnabled,
    /// The model's thinking can be switched off.
    ThinkingDisabled,
    /// The model decides by itself how much to think.
    ThinkingAdaptive,
    /// The model can think between tools only.
    ThinkingBetweenTools,
    /// Reduced thinking is not combined with the highest efforts.
    ThinkingEffort,
    /// A thinking budget is at least 1024 and below `max_tokens`.
    ThinkingBudget,
    /// `display` has a known value and something to display.
    ThinkingDisplay,
    /// Sampling parameters are in their range.
    SamplingRange,
    /// The model takes sampling parameters.
    SamplingUnsupported,
    /// Under version 2026-10-21 there are no sampling parameters.
    SamplingVersion,
    /// The format of the output is a JSON schema.
    OutputFormat,
    /// A generic server knows the roles user and assistant only.
    GenericRole,
    /// A generic server knows no cache marks.
    GenericMark,
    /// A generic server knows no thinking.
    GenericThinking,
    /// A generic server knows no output configuration.
    GenericOutputConfig,
    /// A generic server needs a schema for every tool.
    GenericTool,
}

impl Rule {
    fn status(self) -> u16 {
        match self {
            Self::MissingAuth | Self::BothAuths => 401,
            Self::UnknownModel => 404,
            Self::BodyTooLarge => 413,
            _ => 400,
        }
    }
}

/// The answer to an illegal request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) rule: Rule,
    pub(crate) status: u16,
    pub(crate) error_type: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    fn new(rule: Rule, message: impl Into<String>) -> Self {
        let status = rule.status();
        let error_type = match status {
            401 => "authentication_error",
            404 => "not_found_error",
            413 => "request_too_large",
            _ => "invalid_request_error",
        };
        Self { rule, status, error_type, message: message.into() }
    }
}

type Checked<T = ()> = Result<T, Refusal>;

fn refuse<T>(rule: Rule, message: impl Into<String>) -> Checked<T> {
    Err(Refusal::new(rule, message))
}

/// Which kind of server is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointKind {
    /// Anthropic's own API.
    #[default]
    Anthropic,
    /// A gateway that passes everything on.
    Gateway,
    /// A gateway that leaves cache marks, thinking and output configuration out of what it passes on, and
    /// says nothing.
    Dropping,
    /// A gateway that refuses cache marks and output configuration.
    Refusing,
    /// A local server or gateway that knows the oldest form of the API: no system messages, no cache marks,
    /// no thinking, no output configuration, no tools without a schema; any model name, no key.
    Generic,
}

impl EndpointKind {
    /// Whether Anthropic's API stands behind it, with its keys, its versions and its models.
    fn is_anthropics(self) -> bool {
        self != Self::Generic
    }

    /// The request as it reaches the model.
    pub(crate) fn passed_on(self, body: &Value) -> Value {
        match self {
            Self::Dropping => endpoint::dropped(body),
            Self::Anthropic | Self::Gateway | Self::Refusing | Self::Generic => body.clone(),
        }
    }
}

/// A request as it came in.
pub(crate) struct Incoming<'a> {
    pub(crate) headers: &'a axum::http::HeaderMap,
    /// The length of the body, which may be more than was kept.
    pub(crate) length: usize,
    pub(crate) body: &'a Value,
    /// The conversation it belongs to, for the tokenizer.
    pub(crate) conversation: &'a str,
}

/// A request whose shape is sound, and what the rules about its meaning need to know.
struct Asked<'a> {
    body: &'a Map<String, Value>,
    messages: &'a [Value],
    model: Model,
    headers: &'a Headers,
    endpoint: EndpointKind,
}

/// Refuses the request unless it is legal.
pub(crate) fn check(
    incoming: &Incoming<'_>,
    models: &Models,
    endpoint: EndpointKind,
    max_body: usize,
) -> Checked {
    if incoming.length > max_body {
        return refuse(Rule::BodyTooLarge, "Request exceeds the maximum size");
    }
    let headers = headers::check(incoming.headers, endpoint)?;
    let Some(body) = incoming.body.as_object() else {
        return refuse(Rule::BodyNotJson, "The request body is not valid JSON: expected an object");
    };
    match endpoint {
        EndpointKind::Generic => endpoint::check(body)?,
        EndpointKind::Refusing => endpoint::check_two(body)?,
        EndpointKind::Anthropic | EndpointKind::Gateway | EndpointKind::Dropping => {}
    }
    let messages = shape::check(body, &headers)?;
    let model = limits::model(body, models, endpoint)?;
    let asked = Asked { body, messages, model, headers: &headers, endpoint };
    messages::check(&asked)?;
    system::check(&asked)?;
    pairing::check(&asked)?;
    tools::check(&asked)?;
    cache::check(&asked)?;
    thinking::check(&asked)?;
    sampling::check(&asked)?;
    limits::check(&asked, incoming)
}

/// The JSON body of an error response.
pub(crate) fn error_body(error_type: &str, message: &str, details: Option<Value>, request_id: &str) -> Value {
    let mut error = json!({"type": error_type, "message": message});
    if let Some(details) = details {
        error["details"] = details;
    }
    json!({"type": "error", "error": error, "request_id": request_id})
}

impl Asked<'_> {
    /// A member that is there and not null.
    fn member(&self, name: &str) -> Option<&Value> {
        self.body.get(name).filter(|value| !value.is_null())
    }

    fn effort(&self) -> Option<&str> {
        self.member("output_config")?.get("effort")?.as_str()
    }

    fn thinking_type(&self) -> Option<&str> {
        self.member("thinking")?.get("type")?.as_str()
    }
}
