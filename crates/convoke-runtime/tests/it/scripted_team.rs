//! A brain for whole teams: what a member says follows from who it is and from what it read last, told by a
//! function of the test's.

use convoke_sim::{Brain, Context, Scripted, tool_use_id};
use serde_json::{Value, json};

/// What a member sees when it is asked.
pub(crate) struct Seen<'a> {
    /// `lead`, or the teammate's name.
    pub(crate) who: String,
    /// The texts of the last message that is not a reply.
    pub(crate) last: String,
    /// The results of tools in it.
    pub(crate) results: Vec<String>,
    /// How many replies it has given in this history.
    pub(crate) replies: usize,
    pub(crate) request: &'a Value,
}

/// What a member says.
pub(crate) enum MemberReply {
    Text(String),
    /// A text that is cut at the end of its room.
    Cut(String),
    Calls(Vec<(&'static str, Value)>),
}

pub(crate) fn text(text: impl Into<String>) -> MemberReply {
    MemberReply::Text(text.into())
}

pub(crate) fn call(name: &'static str, input: Value) -> MemberReply {
    MemberReply::Calls(vec![(name, input)])
}

type Speaks = dyn Fn(&Seen<'_>) -> MemberReply + Send + Sync;

pub(crate) struct Members(Box<Speaks>);

impl Members {
    pub(crate) fn new(speaks: impl Fn(&Seen<'_>) -> MemberReply + Send + Sync + 'static) -> Self {
        Self(Box::new(speaks))
    }
}

impl Brain for Members {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let said = (self.0)(&seen(request));
        if let MemberReply::Cut(text) = said {
            let cut = Scripted::new(vec![json!({"type": "text", "text": text})]);
            return Scripted { stop_reason: "max_tokens".into(), fills_max_tokens: true, ..cut };
        }
        let content = match said {
            MemberReply::Text(text) | MemberReply::Cut(text) => vec![json!({"type": "text", "text": text})],
            MemberReply::Calls(calls) => calls
                .into_iter()
                .enumerate()
                .map(|(index, (name, input))| {
                    let id = tool_use_id(context, name, index);
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                })
                .collect(),
        };
        Scripted::new(content)
    }
}

/// The member that is asked, and what it read last.
pub(crate) fn seen(request: &Value) -> Seen<'_> {
    let messages = request["messages"].as_array().unwrap();
    let replies = messages.iter().filter(|message| message["role"] == "assistant").count();
    let last: Vec<&Value> =
        messages.iter().rev().take_while(|message| message["role"] != "assistant").collect();
    let blocks: Vec<&Value> =
        last.iter().rev().filter_map(|message| message["content"].as_array()).flatten().collect();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let results = blocks.iter().filter_map(|block| block["content"].as_str().map(str::to_owned)).collect();
    Seen { who: who(request), last: texts.join("\n"), results, replies, request }
}

/// The member that a request is from: its system prompt says so.
pub(crate) fn who(request: &Value) -> String {
    let system = request["system"][0]["text"].as_str().unwrap_or_default();
    let teammate = tools(request).contains(&"claim_task".to_owned());
    if !teammate {
        return "lead".to_owned();
    }
    let after = system.split("You are ").nth(1).unwrap_or_default();
    after.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(*c)).collect()
}

pub(crate) fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}
