//! A request as the prompt cache sees it: a row of blocks, each known by everything that stands before it.
//!
//! A block's key is made of its own content and of the key of the block before it, so that two requests share
//! a key exactly if they share the whole prefix, parameters included. Each block is read once. Cache marks
//! are part of no key and weigh nothing.

use std::hash::{DefaultHasher, Hasher};

use convoke_claude::{Model, ThinkingDefault};
use serde_json::{Value, json};

use super::tokens::Tokenizer;
use crate::conversation::{messages, role};

/// The tool-use preamble that the API adds to a prompt by itself.
const TOOL_PREAMBLE_TOKENS: u64 = 290;
/// What the API says about the tools it defines itself, by how their type begins.
const TYPED_TOOL_TOKENS: &[(&str, u64)] = &[("bash_", 325), ("text_editor_", 700)];
/// What a text weighs beyond itself; no more than the bytes that wrap it, however it is written.
const FRAME_BYTES: usize = 24;

/// A request's prompt.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) blocks: Vec<Block>,
    /// The shortest prefix in tokens that the model's cache takes.
    pub(crate) minimum: u64,
}

/// A block and the prefix that ends with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Names the prefix.
    pub(crate) key: u64,
    /// The tokens of the prefix.
    pub(crate) tokens: u64,
    pub(crate) mark: Option<Ttl>,
    /// Whether the automatic mark may stand here.
    pub(super) eligible: bool,
}

/// How long an entry of the cache lives without being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ttl {
    FiveMinutes,
    Hour,
}

impl Ttl {
    pub(crate) fn milliseconds(self) -> u64 {
        match self {
            Self::FiveMinutes => 5 * 60_000,
            Self::Hour => 60 * 60_000,
        }
    }

    fn of(mark: &Value) -> Option<Self> {
        let ttl = if mark["ttl"] == "1h" { Self::Hour } else { Self::FiveMinutes };
        (!mark.is_null()).then_some(ttl)
    }
}

impl Prompt {
    /// Reads the prompt of a request to this model, in the order of the cache: tools, system, messages.
    pub(crate) fn read(body: &Value, model: &Model, tokenizer: Tokenizer) -> Self {
        let mut reader = Reader { tokenizer, key: 0, bytes: 0, added: 0, blocks: Vec::new() };
        let config = &body["output_config"];
        // Whether tools and system survive another effort or thinking depends on the model. Here they never
        // do: a client that counts on them would be wrong somewhere.
        reader.parameter(&json!([model.id, effort(config, model), thinking(body, model)]));
        let deferred = |tool: &&Value| tool["defer_loading"] != true;
        for (index, tool) in body["tools"].as_array().into_iter().flatten().filter(deferred).enumerate() {
            let kind = tool["type"].as_str().unwrap_or_default();
            let typed = TYPED_TOOL_TOKENS
                .iter()
                .find(|(name, _)| kind.starts_with(name))
                .map_or(0, |(_, more)| *more);
            reader.added += typed + if index == 0 { TOOL_PREAMBLE_TOKENS } else { 0 };
            reader.block("tools", tool, true);
        }
        reader.parameter(&body["speed"]);
        reader.content("top", &body["system"], true);
        let choice =
            if body["tool_choice"].is_null() { json!({"type": "auto"}) } else { body["tool_choice"].clone() };
        let images = messages(body).iter().any(|message| has_image(&message["content"]));
        reader.parameter(&json!([choice, images, config["format"], config["task_budget"]]));
        for message in messages(body) {
            // The automatic mark skips a system message that is there for one turn only.
            let lasts = message["clear_at"] != "next_user_message";
            reader.content(role(message), &message["content"], lasts);
        }
        let mut blocks = reader.blocks;
        if let Some(last) = blocks.iter_mut().rfind(|block| block.eligible) {
            last.mark = last.mark.or_else(|| Ttl::of(&body["cache_control"]));
        }
        Self { blocks, minimum: model.cache_minimum }
    }

    /// The tokens of the whole prompt.
    pub(crate) fn tokens(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.tokens)
    }
}

/// The effort in force: leaving it out and naming the default are the same.
fn effort(config: &Value, model: &Model) -> Value {
    match (&config["effort"], &model.default_effort) {
        (Value::Null, Some(default)) => json!(default),
        (asked, _) => asked.clone(),
    }
}

/// The thinking in force. How it is displayed changes nothing about the prompt.
fn thinking(body: &Value, model: &Model) -> Value {
    let mut thinking = match (&body["thinking"], model.thinking.default) {
        (Value::Null, ThinkingDefault::Off) => json!({"type": "disabled"}),
        (Value::Null, ThinkingDefault::On | ThinkingDefault::Always) => json!({"type": "adaptive"}),
        (asked, _) => asked.clone(),
    };
    if let Some(members) = thinking.as_object_mut() {
        members.shift_remove("display");
    }
    thinking
}

fn has_image(content: &Value) -> bool {
    let holds = |block: &Value| block["type"] == "image" || has_image(&block["content"]);
    content.as_array().is_some_and(|blocks| blocks.iter().any(holds))
}

struct Reader {
    tokenizer: Tokenizer,
    key: u64,
    bytes: usize,
    /// Tokens that no byte of the request accounts for.
    added: u64,
    blocks: Vec<Block>,
}

impl Reader {
    /// Makes every key from here on depend on this.
    fn parameter(&mut self, value: &Value) {
        let mut hasher = self.hasher("parameter");
        walk(value, &mut hasher);
        self.key = hasher.finish();
    }

    /// A content: a list of blocks, or a string, which is the same as one text block.
    fn content(&mut self, role: &str, content: &Value, eligible: bool) {
        match content {
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(role, block, eligible)),
            Value::String(text) if !text.is_empty() => self.block(role, content, eligible),
            _ => {}
        }
    }

    fn block(&mut self, role: &str, block: &Value, eligible: bool) {
        let mut hasher = self.hasher(role);
        self.bytes += match plain_text(block) {
            Some(text) => {
                string(text, &mut hasher);
                text.len() + FRAME_BYTES
            }
            None => walk(block, &mut hasher),
        };
        self.key = hasher.finish();
        let tokens = self.tokenizer.tokens(self.bytes) + self.added;
        let thought = matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
        // A mark inside a tool result stands for one on the result: positions are counted in whole blocks.
        let inside = |block: &Value| {
            block["content"].as_array()?.iter().find_map(|part| Ttl::of(&part["cache_control"]))
        };
        let mark = Ttl::of(&block["cache_control"]).or_else(|| inside(block));
        self.blocks.push(Block { key: self.key, tokens, mark, eligible: eligible && !thought });
    }

    fn hasher(&self, what: &str) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.key);
        string(what, &mut hasher);
        hasher
    }
}

/// The text of a block that is nothing but a text.
fn plain_text(block: &Value) -> Option<&str> {
    if let Value::String(text) = block {
        return Some(text);
    }
    let members = block.as_object()?;
    let plain = members.keys().all(|name| matches!(name.as_str(), "type" | "text" | "cache_control"));
    members.get("text").filter(|_| plain)?.as_str()
}

/// Feeds a value into a key, in the order it is written in, and weighs it: its bytes in compact form, without
/// escapes and without cache marks.
fn walk(value: &Value, hasher: &mut DefaultHasher) -> usize {
    match value {
        Value::Null => {
            hasher.write_u8(0);
            4
        }
        Value::Bool(value) => {
            hasher.write_u8(1 + u8::from(*value));
            4
        }
        Value::Number(number) => {
            hasher.write_u8(3);
            let text = number.to_string();
            string(&text, hasher);
            text.len()
        }
        Value::String(text) => {
            hasher.write_u8(4);
            string(text, hasher);
            text.len() + 2
        }
        Value::Array(items) => {
            hasher.write_u8(5);
            let weight = 1 + items.iter().map(|item| walk(item, hasher) + 1).sum::<usize>();
            hasher.write_u8(6);
            weight
        }
        Value::Object(members) => {
            hasher.write_u8(7);
            let mut weight = 1;
            for (name, member) in members.iter().filter(|(name, _)| *name != "cache_control") {
                string(name, hasher);
                weight += name.len() + 4 + walk(member, hasher);
            }
            hasher.write_u8(8);
            weight
        }
    }
}

fn string(text: &str, hasher: &mut DefaultHasher) {
    hasher.write_usize(text.len());
    hasher.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use convoke_claude::Models;

    use super::*;

    fn read(body: &Value) -> Prompt {
        Prompt::read(body, &Models::builtin().get("claude-opus-4-8"), Tokenizer::for_conversation("any"))
    }

    fn keys(body: &Value) -> Vec<u64> {
        read(body).blocks.iter().map(|block| block.key).collect()
    }

    /// How many blocks two requests share when the second one is the first one after this change.
    fn check_shared(change: impl Fn(&mut Value), expected: usize) {
        let base = json!({
            "tools": [{"type": "bash_20250124", "name": "bash"}, {"name": "x", "input_schema": {"type": "object"}}],
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}],
        });
        let mut changed = base.clone();
        change(&mut changed);
        let shared =
            keys(&base).iter().zip(keys(&changed)).take_while(|(one, other)| **one == *other).count();
        assert_eq!(shared, expected, "{changed}");
    }

    #[test]
    fn a_prompt_never_has_more_tokens_than_bytes_and_marks_weigh_nothing() {
        let plain =
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hello there"}]}]});
        let mut marked = plain.clone();
        marked["messages"][0]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        assert_eq!(read(&plain).tokens(), read(&marked).tokens());
        assert_eq!(keys(&plain), keys(&marked));
        assert!(read(&plain).tokens() < plain.to_string().len() as u64);
    }

    #[test]
    fn a_change_costs_the_levels_that_the_table_says() {
        check_shared(|_| {}, 5);
        check_shared(|body| body["tools"][0]["name"] = json!("other"), 0);
        check_shared(|body| body["output_config"] = json!({"effort": "low"}), 0);
        check_shared(|body| body["thinking"] = json!({"type": "adaptive"}), 0);
        check_shared(|body| body["tools"][1]["name"] = json!("y"), 1);
        check_shared(|body| body["system"] = json!("Be quick."), 2);
        check_shared(|body| body["speed"] = json!("fast"), 2);
        check_shared(|body| body["tool_choice"] = json!({"type": "none"}), 3);
        check_shared(|body| body["output_config"] = json!({"format": {"type": "json_schema"}}), 3);
        check_shared(|body| body["messages"][1]["content"] = json!([{"type": "image", "source": {}}]), 3);
        check_shared(|body| body["messages"][1]["role"] = json!("assistant"), 4);
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        check_shared(|body| body["max_tokens"] = json!(7), 5);
        check_shared(|body| body["output_config"] = json!({"effort": "high"}), 5);
        check_shared(|body| body["thinking"] = json!({"type": "disabled"}), 5);
        check_shared(|body| body["tool_choice"] = json!({"type": "auto"}), 5);
        check_shared(|body| body["system"] = json!([{"type": "text", "text": "Be brief."}]), 5);
        check_shared(
            |body| body["tools"].as_array_mut().unwrap().push(json!({"name": "z", "defer_loading": true})),
            5,
        );
        let merged = json!([{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]);
        check_shared(|body| body["messages"] = merged.clone(), 5);
    }

    #[test]
    fn the_automatic_mark_stands_on_the_last_block_that_can_be_marked() {
        let check = |message: Value, expected: &[Option<Ttl>]| {
            let user = json!({"role": "user", "content": "Go."});
            let body = json!({"cache_control": {"type": "ephemeral"}, "messages": [user, message]});
            let marks: Vec<Option<Ttl>> = read(&body).blocks.iter().map(|block| block.mark).collect();
            assert_eq!(marks, expected, "{body}");
        };
        let here = Some(Ttl::FiveMinutes);
        check(json!({"role": "system", "content": "Be brief."}), &[None, here]);
        check(json!({"role": "system", "content": "x", "clear_at": "next_user_message"}), &[here, None]);
        check(
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}),
            &[here, None],
        );
        let own = json!([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]);
        check(json!({"role": "user", "content": own}), &[None, Some(Ttl::Hour)]);
        let part = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        let result = json!([{"type": "tool_result", "content": [part]}, {"type": "text", "text": "y"}]);
        check(json!({"role": "user", "content": result}), &[None, here, here]);
    }

    #[test]
    fn the_order_of_members_counts() {
        let call = |input: Value| json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": input}]}]});
        assert_ne!(keys(&call(json!({"a": 1, "b": 2}))), keys(&call(json!({"b": 2, "a": 1}))));
    }
}
