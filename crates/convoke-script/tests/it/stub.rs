//! A host that pretends: what it answers is a pure function of the call. It knows nothing of the interpreter,
//! and is used by the tests of the worker process too.

use std::fs;

use convoke_script::{Call, CallOutcome, Want};
use serde_json::{Map, Value, json};

/// Where the scripts are, seen from any crate of the workspace.
pub(crate) const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../convoke-script/tests/scripts");

/// How agents fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every agent does what it was asked.
    Ok,
    /// Every agent dies.
    Null,
    /// One in four dies, one in four is an error; which ones follows from what they were asked.
    Half,
    /// The same by number: the first dies, the second is an error, the third does its work, and so on.
    Alternating,
}

/// What a call comes to.
pub(crate) fn answer(call: &Call, mode: Mode) -> CallOutcome {
    let seed = seed_of(call);
    match &call.want {
        Want::Agent(agent) => {
            let fate = match mode {
                Mode::Ok => 3,
                Mode::Null => 0,
                Mode::Half => (seed >> 7) % 4,
                Mode::Alternating => u64::from((call.call - 1) % 3),
            };
            match (fate, &agent.schema) {
                (0, _) => CallOutcome::Value { value: Value::Null },
                (1, _) => CallOutcome::Throw { message: format!("the agent failed ({:04x})", seed & 0xffff) },
                (_, Some(schema)) => CallOutcome::Value { value: fill(schema, seed) },
                (_, None) => {
                    CallOutcome::Value { value: Value::String(format!("said {:08x}", seed & 0xffff_ffff)) }
                }
            }
        }
        Want::Verify { .. } if mode == Mode::Null => {
            CallOutcome::Value { value: json!({"verdict": "unverified"}) }
        }
        Want::Verify { .. } => CallOutcome::Value { value: json!({"verdict": "confirmed", "votes": []}) },
        Want::Sh { command } => {
            CallOutcome::Value { value: json!({"stdout": format!("one.rs\ntwo.rs\n{command}"), "exit": 0}) }
        }
        Want::Checkpoint { .. } => CallOutcome::Value { value: json!("yes") },
        Want::Timer { .. } => CallOutcome::Value { value: Value::Null },
        Want::Workflow { name, script_path } => child(name.as_deref(), script_path.as_deref()),
    }
}

/// The source of a child workflow.
fn child(name: Option<&str>, script_path: Option<&str>) -> CallOutcome {
    let path = match (name, script_path) {
        (Some(name), _) => format!("{SCRIPTS}/children/{name}.js"),
        (None, Some(path)) => format!("{SCRIPTS}/{path}"),
        (None, None) => return CallOutcome::Throw { message: "neither a name nor a file".to_owned() },
    };
    let name = name.or(script_path).unwrap_or_default().to_owned();
    match fs::read_to_string(path) {
        Ok(source) => CallOutcome::Program { name, source },
        Err(_) => CallOutcome::Throw { message: format!("there is no workflow {name}") },
    }
}

/// What a call is about, as a number; neither its own number nor the moment it is answered is in it.
fn seed_of(call: &Call) -> u64 {
    let mut hash = mix(call.path.as_bytes(), 1);
    if let Want::Agent(agent) = &call.want {
        hash = mix(agent.prompt.as_bytes(), hash);
        hash = mix(agent.label.as_deref().unwrap_or_default().as_bytes(), hash);
    }
    hash
}

fn mix(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 31;
    hash = hash.wrapping_mul(0x7fb5_d329_728e_a185);
    hash ^ (hash >> 29)
}

/// A value that fits a schema.
pub(crate) fn fill(schema: &Value, seed: u64) -> Value {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty())
    {
        return choices[(seed % choices.len() as u64) as usize].clone();
    }
    let number = |key: &str, or: f64| schema.get(key).and_then(Value::as_f64).unwrap_or(or);
    match kind_of(schema) {
        "object" => {
            let mut object = Map::new();
            let required: Vec<&str> = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            for (key, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let seed = mix(key.as_bytes(), seed);
                if required.contains(&key.as_str()) || !seed.is_multiple_of(3) {
                    object.insert(key.clone(), fill(part, seed));
                }
            }
            if let Some(part @ Value::Object(_)) = schema.get("additionalProperties") {
                for key in ["alpha", "beta"] {
                    object.insert(key.to_owned(), fill(part, mix(key.as_bytes(), seed)));
                }
            }
            Value::Object(object)
        }
        "array" => {
            let least = number("minItems", 1.0) as u64;
            let most = (number("maxItems", 3.0) as u64).max(least);
            let part = schema.get("items").cloned().unwrap_or(Value::Null);
            let count = least + seed % (most - least + 1);
            (0..count).map(|n| fill(&part, mix(&n.to_le_bytes(), seed))).collect()
        }
        "boolean" => Value::Bool(seed & 1 == 1),
        "null" => Value::Null,
        kind @ ("integer" | "number") => {
            let least = number("minimum", 0.0);
            let most = number("maximum", least + 9.0);
            let at = least + (most - least) * ((seed % 1000) as f64 / 999.0);
            if kind == "integer" { json!(at.round() as i64) } else { json!((at * 8.0).round() / 8.0) }
        }
        _ => {
            let text = format!("https://www.example.org/{:06x}/", seed & 0xff_ffff);
            let most = number("maxLength", 200.0) as usize;
            Value::String(text.chars().take(most).collect())
        }
    }
}

/// The type a value of this schema may have; of several, the first that is not null.
fn kind_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}
