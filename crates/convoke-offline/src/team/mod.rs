//! The parts it plays in a team: the lead that scouts, fans out and puts together; the worker that checks one
//! concern with commands and reports what they printed; the verifier that runs the evidence again; the callee
//! of a program, which fills a schema; the lead of a team that lives on, and its teammates. Which part is
//! read from the declared tools. Nothing here guesses: a finding is a line that a rule found, a verdict is
//! that rule run again.

mod callee;
mod concern;
mod delegate;
mod digest;
mod facts;
mod hand_back;
mod kind;
mod lead;
mod look;
mod members;
mod named;
mod plan;
mod small_talk;
mod subtask;
mod synthesis;
mod verifier;
mod worker;

use serde_json::Value;

use super::policy::Answer;
use super::read::Exchange;

pub(super) use delegate::without_delegation;
pub(super) use hand_back::{hand_back, refused_fan_out};
pub(super) use members::{asked_last, finish};
pub(super) use small_talk::without_workflow;

/// The reply in a team; none if it works alone.
pub(super) fn answer(request: &Value) -> Option<Answer> {
    if let Some(answer) = members::answer(request) {
        Some(answer)
    } else if declares(request, "report_findings") {
        Some(worker::answer(request))
    } else if declares(request, "report_verdicts") {
        Some(verifier::answer(request))
    } else if declares(request, "Workflow") && declares(request, "bash") {
        lead::answer(request)
    } else if !declares(request, "Workflow") && callee::is_callee(request) {
        let errand = !declares(request, callee::OUTPUT) && delegate::is_errand(&Exchange::of(request).task);
        (!errand).then(|| callee::answer(request))
    } else {
        None
    }
}

fn declares(request: &Value, name: &str) -> bool {
    request["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
}

/// What stands between two tags, or the whole text where they are not.
fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let inside = text.split_once(open).map_or(text, |(_, rest)| rest);
    inside.rsplit_once(close).map_or(inside, |(inner, _)| inner).trim()
}

fn many(number: u64, what: &str) -> String {
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}
