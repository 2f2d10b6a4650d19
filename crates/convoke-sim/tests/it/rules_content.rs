//! Cases about messages: their shape, roles, emptiness, tool calls and cache marks.

use convoke_sim::Rule;
use serde_json::{Value, json};

use crate::client::RawRequest;
use crate::rules::{Case, case, member};

pub(crate) fn cases() -> Vec<Case> {
    [shape(), emptiness(), endings(), pairing(), server_tools(), marks()].into_iter().flatten().collect()
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "bash", "input": {}})
}

pub(crate) fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

pub(crate) fn mark(block: Value, ttl: &str) -> Value {
    let mut block = block;
    block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
    block
}

/// Messages after the first, which is the user's.
pub(crate) fn then(messages: Vec<(&'static str, Value)>) -> impl Fn(&mut RawRequest) {
    move |ask| messages.iter().for_each(|(role, content)| ask.push(role, content.clone()))
}

/// A case in which the content of a second user message differs.
fn block(rule: Rule, text: &str, refused: Value, passes: Value) -> Case {
    case(rule, text, then(vec![("user", json!([refused]))]), then(vec![("user", json!([passes]))]))
}

fn shape() -> Vec<Case> {
    let without = |name: &'static str| {
        move |ask: &mut RawRequest| drop(ask.body.as_object_mut().expect("object").remove(name))
    };
    let many = |count: usize| json!(vec![json!({"role": "user", "content": "x"}); count]);
    let legal = |_: &mut RawRequest| {};
    vec![
        case(Rule::FieldRequired, "max_tokens: Field required", without("max_tokens"), legal),
        case(Rule::FieldRequired, "model: Field required", without("model"), legal),
        case(Rule::FieldRequired, "messages: Field required", without("messages"), legal),
        block(
            Rule::FieldRequired,
            "messages.1.content.0.text.text: Field required",
            json!({"type": "text"}),
            text("x"),
        ),
        member(
            Rule::FieldRequired,
            "messages.0.content: Field required",
            "messages",
            json!([{"role": "user"}]),
            json!([{"role": "user", "content": "x"}]),
        ),
        member(
            Rule::FieldType,
            "max_tokens: Input should be a valid integer",
            "max_tokens",
            json!("9"),
            json!(9),
        ),
        member(Rule::FieldType, "messages: Input should be a valid list", "messages", json!("x"), many(1)),
        member(
            Rule::FieldType,
            "system: Input should be a valid string or list",
            "system",
            json!(1),
            json!("x"),
        ),
        member(Rule::ExtraField, "prompt: Extra inputs are not permitted", "prompt", json!("x"), Value::Null)
            .passing(without("prompt")),
        member(
            Rule::ExtraField,
            "speed: Extra inputs are not permitted",
            "speed",
            json!("fast"),
            json!("fast"),
        )
        .passing(|ask| ask.header("anthropic-beta", "fast-mode-2026-02-01")),
        member(
            Rule::ExtraMessageField,
            "messages.0.name: Extra inputs are not permitted",
            "messages",
            json!([{"role": "user", "content": "x", "name": "y"}]),
            many(1),
        ),
        block(
            Rule::ExtraBlockField,
            "messages.1.content.0.text.extra: Extra inputs are not permitted",
            json!({"type": "text", "text": "x", "extra": 1}),
            text("x"),
        ),
        member(
            Rule::NoMessages,
            "messages: at least one message is required",
            "messages",
            json!([]),
            many(1),
        ),
        member(
            Rule::TooManyMessages,
            "messages: too many messages: 100001 > 100000 maximum",
            "messages",
            many(100_001),
            many(100_000),
        ),
        member(
            Rule::UnknownRole,
            "messages.0.role: Input should be 'user', 'assistant' or 'system'",
            "messages",
            json!([{"role": "developer", "content": "x"}]),
            many(1),
        ),
        member(
            Rule::FirstNotUser,
            "messages: first message must use the \"user\" role",
            "messages",
            json!([{"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}]),
            many(2),
        ),
        block(
            Rule::UnknownBlockType,
            "messages.1.content.0: Input tag 'mid_conv_system' found using 'type' does not match any of the \
                expected tags",
            json!({"type": "mid_conv_system", "content": []}),
            text("x"),
        ),
        case(
            Rule::BlockRole,
            "messages.1: `thinking` blocks can only be in `assistant` messages",
            then(vec![("user", json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]))]),
            then(vec![
                ("assistant", json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, text("x")])),
                ("user", json!("y")),
            ]),
        ),
        case(
            Rule::BlockRole,
            "messages.1: `tool_result` blocks can only be in `user` messages",
            then(vec![("assistant", json!([result("t1")])), ("user", json!("x"))]),
            then(vec![("assistant", json!([call("t1")])), ("user", json!([result("t1")]))]),
        ),
        case(
            Rule::AssistantDocument,
            "messages.1.content.0: `document` blocks can only be in `user` messages",
            then(vec![("assistant", json!([document()])), ("user", json!("x"))]),
            then(vec![("assistant", json!("x")), ("user", json!([document()]))]),
        )
        .with("anthropic-version", "2026-10-21"),
        case(
            Rule::ToolUseId,
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            then(vec![("assistant", json!([call("a.b")])), ("user", json!([result("a.b")]))]),
            then(vec![("assistant", json!([call("a-b_1")])), ("user", json!([result("a-b_1")]))]),
        ),
    ]
}

fn document() -> Value {
    json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}})
}

fn emptiness() -> Vec<Case> {
    let empty = "messages: text content blocks must be non-empty";
    let white = "messages: text content blocks must contain non-whitespace text";
    let answered = |content: Value| {
        let mut block = result("t1");
        block["content"] = content;
        then(vec![("assistant", json!([call("t1")])), ("user", json!([block]))])
    };
    let everybody = "messages.1: all messages must have non-empty content except for the optional final \
        assistant message";
    vec![
        block(Rule::EmptyText, empty, text(""), text("x")),
        case(Rule::EmptyText, empty, answered(json!([text("")])), answered(json!([]))),
        member(
            Rule::EmptyText,
            "system: text content blocks must be non-empty",
            "system",
            json!([text("")]),
            json!([text("x")]),
        ),
        block(Rule::WhitespaceText, white, text(" \n"), text(" x")),
        case(
            Rule::WhitespaceText,
            white,
            then(vec![("user", json!(" "))]),
            then(vec![("user", json!(" x"))]),
        ),
        case(
            Rule::EmptyUser,
            "messages.1: user messages must have non-empty content",
            then(vec![("user", json!(""))]),
            then(vec![("user", json!("x"))]),
        ),
        case(
            Rule::EmptyUser,
            "messages.1: user messages must have non-empty content",
            then(vec![("user", json!([]))]),
            then(vec![("user", json!([text("x")]))]),
        ),
        case(
            Rule::EmptyAssistant,
            everybody,
            then(vec![("assistant", json!([])), ("user", json!("x"))]),
            then(vec![("assistant", json!([text("y")])), ("user", json!("x"))]),
        ),
    ]
}

fn endings() -> Vec<Case> {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let prefill = "This model does not support assistant message prefill. The conversation must end with a \
        user message.";
    let end = |content: Value| then(vec![("assistant", content)]);
    vec![
        case(
            Rule::Prefill,
            prefill,
            end(json!("So")),
            then(vec![("assistant", json!("So")), ("user", json!("go on"))]),
        ),
        case(Rule::Prefill, prefill, end(json!("So")), |ask| {
            ask.push("assistant", json!("So"));
            ask.body["model"] = json!("claude-haiku-4-5");
        }),
        case(
            Rule::FinalThinking,
            "messages.1: The final block in an assistant message cannot be `thinking`.",
            end(json!([thinking])),
            end(json!([thinking, text("So")])),
        )
        .on("claude-haiku-4-5"),
        case(
            Rule::PrefillWhitespace,
            "messages.1: final assistant content cannot end with trailing whitespace",
            end(json!("So ")),
            end(json!("So")),
        )
        .on("claude-haiku-4-5"),
    ]
}

fn pairing() -> Vec<Case> {
    let unanswered = |ids: &str| {
        format!(
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. \
             Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    };
    let both = || ("assistant", json!([call("t1"), call("t2")]));
    let unexpected = |path: &str, id: &str| {
        format!(
            "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
             Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    };
    vec![
        case(
            Rule::ToolUseUnanswered,
            &unanswered("t1, t2"),
            then(vec![both(), ("user", json!("x"))]),
            then(vec![both(), ("user", json!([result("t2"), result("t1")]))]),
        ),
        // The results may be spread over several messages, but nothing may come between them.
        case(
            Rule::ToolUseUnanswered,
            &unanswered("t2"),
            then(vec![both(), ("user", json!([result("t1"), text("x"), result("t2")]))]),
            then(vec![both(), ("user", json!([result("t1")])), ("user", json!([result("t2"), text("x")]))]),
        ),
        case(
            Rule::ToolUseUnanswered,
            &unanswered("t1, t2"),
            then(vec![both(), ("user", json!([text("x"), result("t1"), result("t2")]))]),
            then(vec![
                both(),
                ("user", json!([result("t1"), result("t2"), text("x")])),
                ("user", json!("y")),
            ]),
        ),
        case(
            Rule::ToolResultUnexpected,
            &unexpected("messages.2.content.1", "t9"),
            then(vec![("assistant", json!([call("t1")])), ("user", json!([result("t1"), result("t9")]))]),
            then(vec![("assistant", json!([call("t1")])), ("user", json!([result("t1")]))]),
        ),
        // A result for a call of an earlier reply.
        case(
            Rule::ToolResultUnexpected,
            &unexpected("messages.4.content.0", "t1"),
            then(vec![
                ("assistant", json!([call("t1")])),
                ("user", json!([result("t1")])),
                ("assistant", json!("y")),
                ("user", json!([result("t1")])),
            ]),
            then(vec![
                ("assistant", json!([call("t1")])),
                ("user", json!([result("t1")])),
                ("assistant", json!([call("t2")])),
                ("user", json!([result("t2")])),
            ]),
        ),
        case(
            Rule::ToolUseDuplicate,
            "messages.3.content.0: `tool_use` ids must be unique",
            then(vec![
                ("assistant", json!([call("t1")])),
                ("user", json!([result("t1")])),
                ("assistant", json!([call("t1")])),
                ("user", json!([result("t1")])),
            ]),
            then(vec![
                ("assistant", json!([call("t1")])),
                ("user", json!([result("t1")])),
                ("assistant", json!([call("t2")])),
                ("user", json!([result("t2")])),
            ]),
        ),
        case(
            Rule::ToolResultDuplicate,
            "messages.2.content.1: each tool_use must have a single result. \
             Found multiple `tool_result` blocks with id: t1",
            then(vec![("assistant", json!([call("t1")])), ("user", json!([result("t1"), result("t1")]))]),
            then(vec![both(), ("user", json!([result("t1"), result("t2")]))]),
        ),
    ]
}

fn server_tools() -> Vec<Case> {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let more = || [("user", json!("x")), ("assistant", json!("y")), ("user", json!("z"))];
    let turn = |content: Value| then([("assistant", content)].into_iter().chain(more()).collect());
    vec![
        case(
            Rule::ServerToolUnresolved,
            "`web_search` tool use with id `srvtoolu_1` was found without a corresponding \
                `web_search_tool_result` block",
            turn(json!([search])),
            turn(json!([search, found])),
        ),
        // A paused turn may be last, and a system message may follow its result.
        case(
            Rule::Prefill,
            "This model does not support assistant message prefill. The conversation must end with a user \
                message.",
            then(vec![("assistant", json!([search, found, text("x")]))]),
            then(vec![("assistant", json!([search, found]))]),
        ),
        case(
            Rule::ToolUseId,
            "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
            turn(json!([{"type": "server_tool_use", "id": "toolu_1", "name": "web_search", "input": {}}])),
            then(vec![("assistant", json!([search, found])), ("system", json!("Be brief."))]),
        ),
    ]
}

fn marks() -> Vec<Case> {
    let marked = |count: usize| json!((0..count).map(|_| mark(text("x"), "5m")).collect::<Vec<Value>>());
    let order = "messages.1.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after \
        a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, \
        `system`, `messages`.";
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let system_order = order.replace("content.1", "content.0");
    vec![
        block(
            Rule::MarkShape,
            "messages.1.content.0.cache_control.ttl: Input should be '5m' or '1h'",
            mark(text("x"), "2h"),
            mark(text("x"), "1h"),
        ),
        member(
            Rule::MarkShape,
            "cache_control.type: Input should be 'ephemeral'",
            "cache_control",
            json!({"type": "for ever"}),
            json!({"type": "ephemeral"}),
        ),
        case(
            Rule::TooManyMarks,
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            then(vec![("user", marked(5))]),
            then(vec![("user", marked(4))]),
        ),
        // The automatic mark takes a slot of its own, unless it falls on the last marked block.
        case(
            Rule::TooManyMarks,
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            |ask| {
                ask.body["cache_control"] = json!({"type": "ephemeral"});
                ask.body["system"] = marked(4);
            },
            |ask| {
                ask.body["cache_control"] = json!({"type": "ephemeral"});
                ask.push("user", marked(4));
            },
        ),
        case(
            Rule::MarkOrder,
            order,
            then(vec![("user", json!([mark(text("x"), "5m"), mark(text("y"), "1h")]))]),
            then(vec![("user", json!([mark(text("x"), "1h"), mark(text("y"), "5m")]))]),
        ),
        // The tools and the system come before the messages.
        case(
            Rule::MarkOrder,
            &system_order,
            |ask| {
                ask.push("user", json!([mark(text("x"), "1h")]));
                ask.body["system"] = json!([mark(text("x"), "5m")]);
            },
            |ask| {
                ask.push("user", json!([mark(text("x"), "5m")]));
                ask.body["system"] = json!([mark(text("x"), "1h")]);
            },
        ),
        block(
            Rule::MarkOnEmpty,
            "messages.1.content.0.text: cache_control cannot be set for empty text blocks",
            mark(text(""), "5m"),
            mark(text("x"), "5m"),
        ),
        case(
            Rule::MarkOnThinking,
            "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
            then(vec![("assistant", json!([mark(thinking.clone(), "5m"), text("x")])), ("user", json!("y"))]),
            then(vec![("assistant", json!([thinking, mark(text("x"), "5m")])), ("user", json!("y"))]),
        ),
        case(
            Rule::AutomaticMark,
            "cache_control.ttl: differs from the ttl of the cache_control at messages.1.content.0",
            |ask| {
                ask.push("user", json!([mark(text("x"), "1h")]));
                ask.body["cache_control"] = json!({"type": "ephemeral"});
            },
            |ask| {
                ask.push("user", json!([mark(text("x"), "1h")]));
                ask.body["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
            },
        ),
    ]
}
