//! Cases about system messages inside a conversation.

use convoke_sim::Rule;
use serde_json::{Value, json};

use crate::client::RawRequest;
use crate::rules::{Case, case, member};
use crate::rules_content::{call, mark, result, text, then};

const HINT: &str = "; the directive-only form (content: [] with output_config) is accepted at any position";

pub(crate) fn cases() -> Vec<Case> {
    [system(), variants()].into_iter().flatten().collect()
}

fn system() -> Vec<Case> {
    let first =
        format!("messages.0: use the top-level 'system' parameter for the initial system prompt{HINT}");
    let before = |index: usize| {
        let rule = "role 'system' must follow a 'user' message or an 'assistant' message ending in a server \
            tool result";
        format!("messages.{index}: {rule}{HINT}")
    };
    let after = |index: usize| {
        format!("messages.{index}: role 'system' must precede an 'assistant' message or end the array{HINT}")
    };
    let be = || ("system", json!("Be brief."));
    let user = || ("user", json!("x"));
    let assistant = || ("assistant", json!("y"));
    let calls = || ("assistant", json!([call("t1")]));
    let answers = || ("user", json!([result("t1")]));
    vec![
        case(
            Rule::SystemUnsupported,
            "role 'system' is not supported on this model",
            then(vec![be()]),
            |ask| {
                ask.push("system", json!("Be brief."));
                ask.body["model"] = json!("claude-haiku-5-5");
            },
        )
        .refusing(|ask| ask.body["model"] = json!("claude-sonnet-5")),
        member(
            Rule::SystemFirst,
            &first,
            "messages",
            json!([{"role": "system", "content": "x"}, {"role": "user", "content": "x"}]),
            json!([{"role": "user", "content": "x"}, {"role": "system", "content": "x"}]),
        ),
        // After an assistant's text; after a user's it may also go on with an assistant.
        case(
            Rule::SystemPredecessor,
            &before(2),
            then(vec![assistant(), be()]),
            then(vec![be(), assistant(), user(), be()]),
        ),
        // Between a call and its result; after the result it may stand.
        case(
            Rule::SystemPredecessor,
            &before(2),
            then(vec![calls(), be(), answers()]),
            then(vec![calls(), answers(), be()]),
        ),
        case(Rule::SystemSuccessor, &after(1), then(vec![be(), user()]), then(vec![user(), be()])),
        // Two in a row are one section, judged at its ends.
        case(Rule::SystemSuccessor, &after(2), then(vec![be(), be(), user()]), then(vec![be(), be()])),
        // Between two results of one reply.
        case(
            Rule::SystemSuccessor,
            &after(3),
            then(vec![
                ("assistant", json!([call("t1"), call("t2")])),
                answers(),
                be(),
                ("user", json!([result("t2")])),
            ]),
            then(vec![
                ("assistant", json!([call("t1"), call("t2")])),
                answers(),
                ("user", json!([result("t2")])),
                be(),
            ]),
        ),
        // An answered system section between two exchanges.
        case(
            Rule::SystemPredecessor,
            &before(4),
            then(vec![be(), assistant(), assistant(), be()]),
            then(vec![be(), assistant(), user(), be(), assistant(), user()]),
        ),
    ]
}

fn variants() -> Vec<Case> {
    const CLEAR: &str = "mid-conversation-system-clear-at-2026-08-21";
    const EFFORT: &str = "mid-conversation-output-config-2026-07-01";
    let says = |content: Value| then(vec![("system", content)]);
    let with = |members: Value| {
        move |ask: &mut RawRequest| {
            let mut message = json!({"role": "system", "content": [text("x")]});
            for (name, value) in members.as_object().expect("an object") {
                message[name] = value.clone();
            }
            ask.body["messages"].as_array_mut().expect("messages").push(message);
        }
    };
    let scoped = || json!({"clear_at": "next_user_message"});
    let effort = || json!({"content": [], "output_config": {"effort": "low"}});
    vec![
        case(
            Rule::SystemBlocks,
            "messages.1: role 'system' supports text, tool_addition, and tool_removal blocks only",
            says(json!([{"type": "image", "source": {}}])),
            says(json!([text("x"), text("y")])),
        ),
        case(
            Rule::SystemEmpty,
            "messages.1: system content must contain at least one block",
            says(json!([])),
            says(json!([text("x")])),
        ),
        case(
            Rule::SystemEmpty,
            "messages.1: system content must contain at least one block",
            says(json!("")),
            says(json!(" ")),
        ),
        case(
            Rule::EmptyText,
            "messages: text content blocks must be non-empty",
            says(json!([text("")])),
            says(json!([text("x")])),
        ),
        case(
            Rule::ExtraMessageField,
            "messages.1.clear_at: Extra inputs are not permitted",
            with(scoped()),
            with(scoped()),
        )
        .passing(|ask| ask.header("anthropic-beta", CLEAR)),
        case(
            Rule::ClearAtRole,
            "clear_at is only permitted on role 'system' messages",
            with(json!({"role": "user", "clear_at": "never"})),
            with(json!({"clear_at": "never"})),
        )
        .with("anthropic-beta", CLEAR),
        case(
            Rule::ClearAtValue,
            "messages.1.clear_at: Input should be 'next_user_message' or 'never'",
            with(json!({"clear_at": "soon"})),
            with(scoped()),
        )
        .with("anthropic-beta", CLEAR),
        case(
            Rule::ClearAtAlone,
            "messages.1: cache_control is not permitted on a turn-scoped system message",
            with(json!({"clear_at": "next_user_message", "content": [mark(text("x"), "5m")]})),
            with(json!({"clear_at": "never", "content": [mark(text("x"), "5m")]})),
        )
        .with("anthropic-beta", CLEAR),
        // A cleared text keeps its place's rules.
        case(
            Rule::SystemSuccessor,
            &format!("messages.1: role 'system' must precede an 'assistant' message or end the array{HINT}"),
            |ask| {
                with(scoped())(ask);
                ask.push("user", json!("x"));
            },
            |ask| {
                with(scoped())(ask);
                ask.push("assistant", json!("y"));
                ask.push("user", json!("x"));
            },
        )
        .with("anthropic-beta", CLEAR),
        case(
            Rule::TurnEffort,
            "output_config.effort requires a model that supports per-turn effort; this model does not",
            with(effort()),
            with(effort()),
        )
        .with("anthropic-beta", EFFORT)
        .passing(|ask| ask.body["model"] = json!("claude-opus-5")),
    ]
}
