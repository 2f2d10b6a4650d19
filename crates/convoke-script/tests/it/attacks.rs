//! Reads the programs that attack, in `tests/hostile`. A file is a family of attacks. Each one is a few lines
//! that begin with `//# ` and then its source: first its name, then `ends:` with every end that is right
//! (`unsound`, the kind of a fault, `returned` with or without the value, `waiting`, `any`; several with
//! `or`), then, if need be, `in: process` for what cannot be interrupted in this process, and `raw` for a
//! source that stands as it is; all others get a `meta` in front. `@@repeat(N,"text")@@` and `@@count(N,"text
//! with #")@@` stand for a text many times over. Used by the tests of the worker process too.

use std::fs;

use convoke_script::{FaultKind, Limits, State};
use serde_json::Value;

const HOSTILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../convoke-script/tests/hostile");

/// One attack.
#[derive(Debug, Clone)]
pub(crate) struct Attack {
    /// What it tries.
    pub(crate) name: String,
    /// The program.
    pub(crate) source: String,
    /// Every end that is right.
    pub(crate) ends: Vec<Expected>,
    /// It may need to be killed, so it is not run in this process.
    pub(crate) needs_process: bool,
}

/// An end that is right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expected {
    /// Refused before it ran.
    Unsound,
    /// Ended with a fault of this kind.
    Failed(FaultKind),
    /// Returned, with this value if one is given.
    Returned(Option<Value>),
    /// Still waiting when the host had enough.
    Waiting,
    /// Any of them, or killed.
    Any,
}

/// What attacks are held to: small, so that reaching a limit is quick; more calls than agents, so that both
/// limits are reached.
pub(crate) fn limits() -> Limits {
    Limits { heap_bytes: 32 << 20, ticks: 100, calls: 1_200, ..Limits::default() }
}

impl Attack {
    /// Is this a right end for it? `None` is a source that was refused.
    pub(crate) fn allows(&self, state: Option<&State>) -> bool {
        self.ends.iter().any(|end| match (end, state) {
            (Expected::Any, _) | (Expected::Unsound, None) | (Expected::Waiting, Some(State::Waiting)) => {
                true
            }
            (Expected::Failed(kind), Some(State::Failed { fault })) => fault.kind == *kind,
            (Expected::Returned(None), Some(State::Returned { .. })) => true,
            (Expected::Returned(Some(wanted)), Some(State::Returned { value, .. })) => {
                value.as_ref().is_some_and(|value| same(value, wanted))
            }
            _ => false,
        })
    }
}

/// Whether two values are the same, whichever kind of number holds them.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => one == other,
    }
}

/// Every family, by the name of its file.
pub(crate) fn families() -> Vec<(String, Vec<Attack>)> {
    let mut families: Vec<(String, Vec<Attack>)> = fs::read_dir(HOSTILE)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                read(&fs::read_to_string(&path).unwrap()),
            )
        })
        .collect();
    families.sort_by(|a, b| a.0.cmp(&b.0));
    families
}

fn read(text: &str) -> Vec<Attack> {
    let mut attacks = Vec::new();
    let mut head: Vec<&str> = Vec::new();
    let mut body: Vec<&str> = Vec::new();
    for line in text.lines().chain(["//# the end of the file"]) {
        match line.strip_prefix("//# ") {
            Some(rest) if body.is_empty() || head.is_empty() => {
                body.clear();
                head.push(rest);
            }
            Some(rest) => {
                attacks.push(attack(&head, &body.join("\n")));
                head = vec![rest];
                body.clear();
            }
            None => body.push(line),
        }
    }
    attacks
}

fn attack(head: &[&str], body: &str) -> Attack {
    let key = |key: &str| head.iter().skip(1).find_map(|line| line.strip_prefix(key));
    let body = expand(body);
    let meta = "export const meta = { name: 'attack', description: 'an attack' }\n";
    Attack {
        name: head[0].to_owned(),
        source: if key("raw").is_some() { body } else { format!("{meta}{body}") },
        ends: key("ends: ").unwrap_or_else(|| panic!("{head:?} has no end")).split(" or ").map(end).collect(),
        needs_process: key("in: process").is_some(),
    }
}

fn end(word: &str) -> Expected {
    match word {
        "unsound" => Expected::Unsound,
        "returned" => Expected::Returned(None),
        "waiting" => Expected::Waiting,
        "any" => Expected::Any,
        _ => match word.strip_prefix("returned ") {
            Some(value) => Expected::Returned(Some(serde_json::from_str(value).unwrap())),
            None => Expected::Failed(serde_json::from_value(Value::String(word.to_owned())).unwrap()),
        },
    }
}

fn expand(text: &str) -> String {
    let mut parts = text.split("@@");
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let (Some(order), Some(plain)) = (parts.next(), parts.next()) {
        if let Some((count, piece)) = order.strip_prefix("repeat(").and_then(arguments) {
            out.push_str(&piece.repeat(count));
        } else if let Some((count, piece)) = order.strip_prefix("count(").and_then(arguments) {
            for n in 0..count {
                out.push_str(&piece.replace('#', &n.to_string()));
            }
        } else if !order.is_empty() {
            panic!("what is {order}?");
        }
        out.push_str(plain);
    }
    out
}

fn arguments(text: &str) -> Option<(usize, String)> {
    let (count, piece) = text.strip_suffix(')')?.split_once(',')?;
    Some((count.parse().ok()?, serde_json::from_str(piece).ok()?))
}
