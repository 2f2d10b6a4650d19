//! The lead: with the mode on (or a person's word for it) a review is scouted, cut into subtasks, fanned out
//! and put together; a saved workflow that a person names is started. Everything else, and a review whose
//! fan-out is refused, is done alone.

use serde_json::{Value, json};

use super::digest::{items, rests};
use super::facts::Sight;
use super::look::{Look, Scope};
use super::plan::plan;
use super::small_talk::{self, asks_for_workflow, forbids_team, without_workflow};
use super::{delegate, many, named, synthesis};
use crate::intent::{Intent, Topic, Wanted, classify};
use crate::policy::{Answer, call_tools, text};
use crate::read::{Call, Exchange, SCOUT, said};

/// The reply of a lead; none if it is to work alone.
pub(super) fn answer(request: &Value) -> Option<Answer> {
    let exchange = Exchange::of(request);
    if let Some(answer) = named::answer(&exchange) {
        return Some(answer);
    }
    if let Some(answer) = delegate::answer(request, &exchange) {
        return Some(answer);
    }
    if exchange.calls.is_empty()
        && let Some(said) = small_talk::answer(&exchange.task, &exchange.earlier)
    {
        return Some(text(&said));
    }
    if forbids_team(&exchange.task) || !(mode_is_on(request) || asks_for_workflow(&exchange.task)) {
        return None;
    }
    let wanted = substantive(&without_workflow(&exchange.task))?;
    let scout = exchange.calls.iter().rfind(|call| call.title() == SCOUT);
    let sight = scout.and_then(|call| Sight::parse(call.result.as_deref()?));
    if let Some(run) = exchange.calls.iter().rfind(|call| call.name == "Workflow") {
        return finish(&exchange, run, sight.as_ref(), &wanted);
    }
    if exchange.handing_back {
        return None;
    }
    match (scout, sight) {
        (None, _) => {
            let calls = vec![("bash", json!({"command": Look::Scout(Scope::default()).command()}))];
            Some(call_tools("Scouting: what is here, and where.", calls, exchange.calls_so_far))
        }
        (Some(_), None) => None,
        (Some(_), Some(sight)) => {
            let plan = plan(&sight.areas, wanted.scope.as_deref());
            if plan.subtasks.len() < 2 {
                return None;
            }
            let say = format!("Fanning out: {} checks, one for each concern.", plan.subtasks.len());
            let input = json!({"subtasks": plan.subtasks});
            Some(call_tools(&say, vec![("Workflow", input)], exchange.calls_so_far))
        }
    }
}

/// What is done with the result of the fan-out. A refusal has no items, and the review is then done alone.
fn finish(exchange: &Exchange, run: &Call, sight: Option<&Sight>, wanted: &Wanted) -> Option<Answer> {
    let result = run.result.as_deref()?;
    if items(result).is_empty() {
        return None;
    }
    let read: Vec<&Call> = exchange.calls.iter().filter(|call| call.name == "read_result").collect();
    let rests = rests(result);
    if read.is_empty() && !rests.is_empty() && !exchange.handing_back {
        let calls = rests.into_iter().take(12).map(|rest| ("read_result", rest.0)).collect();
        return Some(call_tools("Reading what was cut.", calls, exchange.calls_so_far));
    }
    let mut whole = result.to_owned();
    for call in read.iter().filter(|call| !call.is_error) {
        whole += &format!("\n{}", call.result.as_deref().unwrap_or_default());
    }
    let areas = sight.map(|sight| sight.areas.as_slice()).unwrap_or_default();
    let left = plan(areas, wanted.scope.as_deref()).left;
    let (files, lines) = areas.iter().fold((0, 0), |sum, area| (sum.0 + area.files, sum.1 + area.lines));
    let scale = |files, lines| format!(" on {} with {}", many(files, "file"), many(lines, "line"));
    let scouted = if areas.is_empty() { String::new() } else { scale(files, lines) };
    Some(text(&synthesis::write(&items(&whole), &left, &scouted)))
}

/// What a review is to look at; none for a question that a few commands answer, and for what is beyond the
/// rules.
fn substantive(task: &str) -> Option<Wanted> {
    match classify(task) {
        Intent::Explore(wanted) => {
            let review = [Topic::Todos, Topic::Errors, Topic::LongFunctions]
                .iter()
                .all(|ask| wanted.asks.contains(ask));
            let plain = wanted.language.is_none() && wanted.out_of_reach.is_empty();
            let finds = wanted.asks.iter().any(|ask| matches!(ask, Topic::Find(_) | Topic::List));
            (review && wanted.recognised && plain && !finds).then_some(wanted)
        }
        Intent::Cannot { .. } | Intent::Unknown { .. } => None,
    }
}

/// Whether the mode is on, by the latest notice about it.
fn mode_is_on(request: &Value) -> bool {
    let mut on = false;
    let mut hear = |notice: &str| {
        let notice = notice.trim_start();
        if notice.starts_with("[orchestration mode: on]")
            || notice.starts_with("[orchestration mode: still on]")
        {
            on = true;
        } else if notice.starts_with("[orchestration mode: off]") {
            on = false;
        }
    };
    for message in request["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
        match message["role"].as_str() {
            Some("system") => match &message["content"] {
                Value::Array(blocks) => {
                    blocks.iter().filter_map(|block| block["text"].as_str()).for_each(&mut hear)
                }
                content => hear(&said(content)),
            },
            // Only texts of the turn itself: what a tool printed is no notice.
            Some("user") => {
                let text = said(&message["content"]);
                for part in text.split("<system-reminder>").skip(1) {
                    hear(part.split("</system-reminder>").next().unwrap_or_default());
                }
            }
            _ => {}
        }
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reminders about the mode, as the kernel writes them.
    const REMINDERS: &str = include_str!("../../../convoke-kernel/tests/it/snapshots/mode.txt");

    #[test]
    fn the_mode_is_told_from_the_kernels_own_reminders() {
        let reminders: Vec<&str> = REMINDERS.split("\n\n").collect();
        let [on, still_on, off] = reminders[..] else { panic!("{} reminders", reminders.len()) };
        let check = |said: &[&str], expected: bool| {
            let turn = |text: &&str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
            let as_user: Vec<Value> = said.iter().map(turn).collect();
            assert_eq!(mode_is_on(&json!({"messages": as_user})), expected, "{said:?}");
            // Where the endpoint takes them, the same words are system messages.
            let bare = |text: &str| {
                text.replace("<system-reminder>", "").replace("</system-reminder>", "").trim().to_owned()
            };
            let as_system: Vec<Value> =
                said.iter().map(|text| json!({"role": "system", "content": bare(text)})).collect();
            assert_eq!(mode_is_on(&json!({"messages": as_system})), expected, "{said:?}");
        };
        check(&[], false);
        check(&[on], true);
        check(&[still_on], true);
        check(&[on, off], false);
        check(&[on, off, still_on], true);
    }
}
