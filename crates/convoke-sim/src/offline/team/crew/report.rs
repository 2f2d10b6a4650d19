//! What the lead tells the person: what was set up, what came in, and at the end who did what. One line for each thing, and nothing that no
//! result or letter said.

use std::fmt::Write as _;

use super::lead::{Business, open_plans, told};
use super::letters::{Letter, Sort};
use super::{RESTS, brief, spoken};
use crate::offline::read::Call;
use crate::offline::team::many;

/// So many lines of one kind are told.
const MOST: usize = 40;

/// The text after the calls that a person's words led to.
pub(super) fn set_up(business: &Business<'_>) -> String {
    let mut out = Vec::new();
    let made = |call: &&Call| !call.is_error && call.result.is_some();
    let member = |call: &Call, name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
    let tasks: Vec<String> =
        business.calls("task_create").into_iter().filter(made).map(|call| task_line(business, call)).collect();
    if !tasks.is_empty() {
        out.push(format!("{} written on the board:\n{}", were(tasks.len(), "task"), tasks.join("\n")));
    }
    let spawned: Vec<String> = business
        .calls("spawn_teammate")
        .into_iter()
        .filter(made)
        .map(|call| format!("{} ({})", member(call, "name"), member(call, "role")))
        .collect();
    if !spawned.is_empty() {
        let them = if tasks.is_empty() { "" } else { " They claim tasks by themselves when they are free." };
        out.push(format!("Spawned {}.{them}", spoken(&spawned)));
    }
    for call in business.calls("send_message").into_iter().filter(made) {
        out.push(format!("Sent {} a message: “{}”", member(call, "to"), brief(&member(call, "text"), 200)));
    }
    for call in business.calls("broadcast").into_iter().filter(made) {
        let result = brief(call.result.as_deref().unwrap_or_default(), 200);
        out.push(format!("Broadcast “{}”. {result}", brief(&member(call, "text"), 200)));
    }
    for call in business.calls("request_shutdown").into_iter().filter(made) {
        out.push(format!("Asked {} to stop. The answer comes by mail.", member(call, "name")));
    }
    for tool in ["list_teammates", "read_inbox", "task_list"] {
        for call in business.calls(tool).into_iter().filter(made) {
            out.push(call.result.as_deref().unwrap_or_default().trim().to_owned());
        }
    }
    out.extend(reviewed(business));
    out.extend(refusals(business));
    out.extend(left(business));
    let letters: Vec<&Letter> = business.story.letters_since(business.start).collect();
    if !letters.is_empty() {
        out.push(format!("Mail came in meanwhile:\n{}", lines(&letters, &subjects(business))));
    }
    let begun = !tasks.is_empty() || !spawned.is_empty();
    if begun {
        out.push("What comes of it is sent to me, and I go on when it comes.".to_owned());
    }
    if out.is_empty() { "Nothing was done: the work ended before that.".to_owned() } else { out.join("\n\n") }
}

/// The text after letters came in.
pub(super) fn news(business: &Business<'_>) -> String {
    let story = business.story;
    let subjects = subjects(business);
    let all: Vec<&Letter> = story.letters_since(business.start).collect();
    let ended = |id: &String| all.iter().any(|letter| ends(letter, id));
    let done = subjects.iter().filter(|(id, _)| ended(id)).count();
    let total = subjects.len();
    let mut out = Vec::new();
    if total > 0 && done == total {
        let failed = subjects.iter().filter(|(id, _)| failed(&all, id)).count();
        let how = if failed == 0 { "all done".to_owned() } else { format!("all ended, {failed} of them failed") };
        out.push(format!("The tasks ({total}) are {how}. Who did what:\n{}", lines(&all, &subjects)));
    } else {
        let fresh: Vec<&Letter> = story.letters_since(story.opened).collect();
        // Where no tasks are counted, everything since the person spoke is the answer.
        let shown = if total == 0 { &all } else { &fresh };
        if shown.is_empty() {
            out.push("No letter came; members of the team have gone to sleep.".to_owned());
        } else {
            out.push(format!("Mail came in:\n{}", lines(shown, &subjects)));
        }
        if total > 0 {
            out.push(format!("{done} of {} ended; I go on when the next letter comes.", were(total, "task")));
        }
    }
    out.extend(reviewed(business));
    for plan in open_plans(story) {
        let plan = format!("The plan of {} waits for a word: say whether it is to be approved or rejected.", plan.from);
        out.push(plan);
    }
    out.extend(refusals(business));
    out.extend(left(business));
    if done == total {
        out.push("(Offline model: fixed rules, no intelligence.)".to_owned());
    }
    out.join("\n\n")
}

/// Letters, one line each. What a teammate says of a task is told with the task's subject.
pub(super) fn lines(letters: &[&Letter], subjects: &[(String, String)]) -> String {
    let mut out = String::new();
    let rests = |letter: &Letter| letter.sort == Sort::Result && letter.text.trim() == RESTS;
    let mut resting: Vec<String> = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        // Whoever was heard of since then has done more than wait.
        if rests(letter) && !letters[at + 1..].iter().any(|later| later.from == letter.from) {
            resting.push(letter.from.clone());
        }
    }
    resting.sort();
    let letters: Vec<&&Letter> = letters.iter().filter(|letter| !rests(letter)).collect();
    for letter in letters.iter().take(MOST) {
        let from = &letter.from;
        let mut text = told(letter);
        let task = letter.task.as_ref().and_then(|task| subjects.iter().find(|(id, _)| id == task));
        let about = task.map(|(id, subject)| format!(", “{subject}” ({id})")).unwrap_or_default();
        if let Some((id, _)) = task
            && let Some((_, rest)) = text.split_once(" is done: ").filter(|(head, _)| head.starts_with(id.as_str()))
        {
            // Its teammate names the task as well; once is enough.
            text = rest.to_owned();
        }
        let _ = match letter.sort {
            Sort::Result => writeln!(out, "- {from}{about}: {text}"),
            Sort::Failed => writeln!(out, "- {from} failed{about}: {text}"),
            Sort::Message | Sort::Broadcast => writeln!(out, "- {from} writes: {text}"),
            Sort::PlanRequest => writeln!(out, "- {from} handed in a plan: {}", brief(&text, 160)),
            Sort::ShutdownAnswer if letter.approves => writeln!(out, "- {from} agreed to stop: {text}"),
            Sort::ShutdownAnswer => writeln!(out, "- {from} does not stop: {text}"),
            Sort::Notice => writeln!(out, "- Convoke tells: {text}"),
            Sort::ShutdownRequest | Sort::PlanAnswer => writeln!(out, "- {from} tells: {text}"),
        };
    }
    if letters.len() > MOST {
        let _ = writeln!(out, "- and {} more", many((letters.len() - MOST) as u64, "letter"));
    }
    if !resting.is_empty() {
        let wait = if resting.len() == 1 { "waits" } else { "wait" };
        let _ = writeln!(out, "- {} {wait} for letters and work", spoken(&resting));
    }
    out.trim_end().to_owned()
}

/// The tasks that the lead wrote: id and subject.
fn subjects(business: &Business<'_>) -> Vec<(String, String)> {
    let made = business.calls("task_create").into_iter().filter_map(|call| call.input["subject"].as_str());
    made.filter_map(|subject| Some((business.id(subject)?, subject.to_owned()))).collect()
}

/// Whether a letter tells the end of a task.
fn ends(letter: &Letter, id: &str) -> bool {
    let ended = [format!("{id} ("), format!("{id} is")].iter().any(|sign| letter.text.contains(sign));
    match letter.sort {
        Sort::Result => letter.task.as_deref() == Some(id) || ended,
        Sort::Failed => letter.task.as_deref() == Some(id),
        _ => false,
    }
}

fn failed(letters: &[&Letter], id: &str) -> bool {
    let latest = letters.iter().rev().find(|letter| ends(letter, id));
    latest.is_some_and(|letter| letter.sort == Sort::Failed || letter.text.contains(") failed: "))
}

fn task_line(business: &Business<'_>, call: &Call) -> String {
    let subject = call.input["subject"].as_str().unwrap_or_default();
    let id = business.id(subject).map(|id| format!(" ({id})")).unwrap_or_default();
    let after: Vec<String> = call.input["blocked_by"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect();
    let after = if after.is_empty() { String::new() } else { format!(", after {}", spoken(&after)) };
    format!("- {subject}{id}{after}")
}

/// The plans that were answered.
fn reviewed(business: &Business<'_>) -> Vec<String> {
    let author = |request: &str| {
        let mut plans = business.story.letters_since(0).filter(|letter| letter.sort == Sort::PlanRequest);
        plans.find(|plan| plan.request == request).map_or_else(|| "a teammate".to_owned(), |plan| plan.from.clone())
    };
    let mut told: Vec<(String, bool, u64)> = Vec::new();
    for call in business.calls("review_plan").into_iter().filter(|call| !call.is_error) {
        let (who, approve) =
            (author(call.input["request"].as_str().unwrap_or_default()), call.input["approve"] == true);
        match told.iter_mut().find(|(other, word, _)| *other == who && *word == approve) {
            Some((.., number)) => *number += 1,
            None => told.push((who, approve, 1)),
        }
    }
    let line = |(who, approve, number): (String, bool, u64)| {
        let word = if approve { "approved" } else { "rejected" };
        let plan = if number == 1 { "the plan".to_owned() } else { many(number, "plan") };
        format!("I {word} {plan} of {who}, as you asked.")
    };
    told.into_iter().map(line).collect()
}

/// What was refused, with the reason.
fn refusals(business: &Business<'_>) -> Vec<String> {
    let refused = business.story.calls_since(business.start).filter(|call| call.is_error);
    refused
        .map(|call| {
            let what =
                ["name", "subject", "to", "text", "request"].iter().find_map(|member| call.input[*member].as_str());
            let what = what.map(|what| format!(" ({})", brief(what, 60))).unwrap_or_default();
            format!("{}{what} was refused: {}", call.name, brief(call.result.as_deref().unwrap_or_default(), 300))
        })
        .collect()
}

/// What of the request was not done.
fn left(business: &Business<'_>) -> Vec<String> {
    let unknown = business.wishes.unknown.iter();
    unknown
        .map(|part| format!("Not done, because no rule of the offline model knows it: “{}”.", brief(part, 200)))
        .collect()
}

fn were(number: usize, what: &str) -> String {
    format!("{} {}", many(number as u64, what), if number == 1 { "is" } else { "are" })
}
