//! What a server says about its models: `GET /v1/models`. It reads; whether and when it is asked is decided
//! elsewhere.

use serde_json::Value;

use crate::models::{Model, Models, ThinkingType};

/// What a server says about one model. Whatever it leaves out stays as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The model's name.
    pub id: String,
    /// The context window in tokens.
    pub window: Option<u64>,
    /// The most output tokens one reply may have.
    pub max_output: Option<u32>,
    /// The values of `output_config.effort` it takes, lowest first.
    pub effort_levels: Option<Vec<String>>,
    /// The values of `thinking.type` it takes.
    pub thinking: Option<Vec<ThinkingType>>,
    /// The day it is retired, if that is known.
    pub retires: Option<String>,
}

const LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

const THINKING: [ThinkingType; 4] =
    [ThinkingType::Adaptive, ThinkingType::Enabled, ThinkingType::Disabled, ThinkingType::BetweenTools];

/// Where servers say how long a prompt may be: Anthropic's own name first, then those of vLLM and llama.cpp.
const WINDOWS: [&str; 3] = ["/max_input_tokens", "/max_model_len", "/meta/n_ctx"];

/// Reads a list of models; a body that is no such list gives no rows.
pub fn read_listing(body: &str) -> Vec<Listed> {
    let list: Value = serde_json::from_str(body).unwrap_or_default();
    list["data"].as_array().into_iter().flatten().filter_map(read).collect()
}

fn read(row: &Value) -> Option<Listed> {
    let whole = |number: Option<&Value>| number.and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    let can = &row["capabilities"];
    let effort = &can["effort"];
    let thinking = &can["thinking"];
    let levels = LEVELS.iter().filter(|level| has(effort, level)).map(|level| (*level).to_owned()).collect();
    let types = THINKING.into_iter().filter(|kind| has(&thinking["types"], &kind.to_string())).collect();
    Some(Listed {
        id: row["id"].as_str()?.to_owned(),
        window: WINDOWS.iter().find_map(|place| whole(row.pointer(place))),
        max_output: whole(row.get("max_tokens")).and_then(|tokens| u32::try_from(tokens).ok()),
        effort_levels: told(effort, levels),
        thinking: told(thinking, types),
        retires: row["retires_at"].as_str().map(|time| time.split('T').next().unwrap_or(time).to_owned()),
    })
}

/// A list that was found, or an empty one where the server says that there is none. Anything else is a form
/// that is not known here.
fn told<T>(capability: &Value, found: Vec<T>) -> Option<Vec<T>> {
    (!found.is_empty() || capability["supported"] == false).then_some(found)
}

/// Whether a capability is among these: a list of names, or an object with a switch or `supported` for each.
fn has(among: &Value, name: &str) -> bool {
    let listed = among.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    listed || among[name] == true || among[name]["supported"] == true
}

impl Models {
    /// Takes over what a server says about one model, and says whether it was in the list. What it says about
    /// sizes goes over the table, because it is about what is really there, and what a person has stated goes
    /// over that.
    pub fn take_listed(&mut self, id: &str, listing: &[Listed]) -> bool {
        let known = self.get(id);
        let named = listing.iter().find(|listed| listed.id == id || listed.id == known.id);
        // A server that has one model answers with it whatever name it is called by; llama.cpp names it by
        // its file.
        let only =
            Some(listing).filter(|listing| known.assumed && listing.len() == 1).and_then(<[Listed]>::first);
        let Some(listed) = named.or(only) else { return false };
        self.put(listed.over(known));
        true
    }
}

impl Listed {
    /// The row with what the server says over it.
    pub fn over(&self, mut model: Model) -> Model {
        if !model.sized {
            model.listed = self.window.is_some() && self.max_output.is_some();
            model.window = self.window.unwrap_or(model.window);
            let most = u32::try_from(model.window).unwrap_or(u32::MAX);
            model.max_output = self.max_output.unwrap_or(model.max_output).min(most);
        }
        // For a model that the table knows, the table is right: a form that is
        // read wrongly must not take an effort away.
        if let Some(levels) = self.effort_levels.as_ref().filter(|_| model.assumed) {
            model.default_effort = model.default_effort.filter(|level| levels.contains(level));
            model.effort_levels.clone_from(levels);
        }
        if let Some(types) = self.thinking.as_ref().filter(|_| model.assumed) {
            model.thinking.accepts.clone_from(types);
        }
        model.retires = self.retires.clone().or(model.retires);
        model
    }
}
