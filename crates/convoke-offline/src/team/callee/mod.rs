//! A callee: the agent that a program's `agent()` started. It looks around with a command or two and gives
//! back a value that fits the schema, or a short text if there is none. Everything in it was seen or follows
//! from the schema alone. It changes a file only where the prompt says word for word what is to be replaced
//! by what.

mod fill;
mod leaf;
mod mend;
mod names;
mod pattern;
mod seen;
mod step;
mod swap;

use serde_json::{Value, json};

use super::declares;
use crate::policy::{Answer, call_tools, text};
use crate::read::{Call, Exchange};
use fill::{FillStyle, Filler};
use seen::Seen;
use step::{Step, steps};

/// The tool through which a value is given back.
pub(super) const OUTPUT: &str = "StructuredOutput";

/// How often a command is tried.
const TRIES: usize = 2;

/// How often a value is given back before it is left at words.
const OFFERS: usize = 5;

/// Whether this is a request of a callee: one that has to fill a schema, or one with tools for files whose
/// system prompt does not call it a lead agent. Bash alone does not tell which part an agent plays, so there
/// the system prompt has to speak of a return value.
pub(super) fn is_callee(request: &Value) -> bool {
    let file_tools =
        ["glob", "grep", "str_replace_based_edit_tool"].iter().any(|name| declares(request, name));
    declares(request, OUTPUT)
        || (file_tools && !is_told(request, "lead agent"))
        || is_told(request, "return value")
}

/// Whether the system prompt says this.
fn is_told(request: &Value, words: &str) -> bool {
    let says = |text: &str| text.contains(words);
    match &request["system"] {
        Value::String(text) => says(text),
        system => {
            system.as_array().into_iter().flatten().any(|block| block["text"].as_str().is_some_and(says))
        }
    }
}

pub(super) fn answer(request: &Value) -> Answer {
    let exchange = Exchange::of_agent(request);
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let schema = tools.iter().find(|tool| tool["name"] == OUTPUT).map(|tool| &tool["input_schema"]);
    let offers: Vec<&Call> = exchange.calls.iter().filter(|call| call.name == OUTPUT).collect();
    let steps = steps(&exchange.task, schema, |name| declares(request, name));
    if !exchange.handing_back
        && offers.is_empty()
        && let Some(step) = next_step(&exchange, &steps)
    {
        // One at a time: together they may be longer than a reply.
        return call_tools(step.say(), vec![step.call()], exchange.calls_so_far);
    }
    let seen = Seen::of(&exchange, &steps);
    match schema {
        Some(schema) if offers.len() < OFFERS => give(&exchange, schema, &seen, &offers),
        Some(_) => text("No value that I gave was taken, so there is none."),
        None => text(&seen.in_prose()),
    }
}

/// What a callee does next for a prompt without a schema.
pub(super) enum Looking {
    /// This is called next, and this is said beside it.
    Next(&'static str, (&'static str, Value)),
    /// There is nothing left to look at; this was seen.
    Seen(String),
}

/// The next look for the exchange's task, by what was called for it so far.
pub(super) fn look(exchange: &Exchange, declares: impl Fn(&str) -> bool) -> Looking {
    let steps = steps(&exchange.task, None, declares);
    match next_step(exchange, &steps) {
        Some(step) => Looking::Next(step.say(), step.call()),
        None => Looking::Seen(Seen::of(exchange, &steps).in_prose()),
    }
}

/// The first step that is needed and brought nothing yet.
fn next_step<'a>(exchange: &Exchange, steps: &'a [Step]) -> Option<&'a Step> {
    let seen = Seen::of(exchange, steps);
    steps.iter().find(|step| {
        let tried = exchange.calls.iter().filter(|call| step.is(call)).count();
        step.is_needed(&seen) && !step.has_come(exchange) && tried < TRIES
    })
}

/// The value, mended by what was said about the last one.
fn give(exchange: &Exchange, schema: &Value, seen: &Seen, offers: &[&Call]) -> Answer {
    let value = match offers.last() {
        None => Filler::new(schema, seen, FillStyle::Telling).value(),
        Some(last) => mend::mend(schema, seen, last, offers.len()),
    };
    let value = if value.is_object() { value } else { json!({}) };
    call_tools("This is my return value.", vec![(OUTPUT, value)], exchange.calls_so_far)
}
