//! What the lead tells the person: what was set up, what is new, and when everything has ended which member
//! did what, once. One line for each thing, and nothing that no result or letter said.

use std::fmt::Write as _;

use super::awaited::{self, calls_now, ends, is_open, is_said_elsewhere, parts, tasks, tells_stop};
use super::lead::{Business, open_plans};
use super::letters::{Letter, Sort, is_id};
use super::phrases::{Ack, RESTS};
use super::{brief, spoken};
use crate::read::Call;
use crate::team::many;

/// So many lines of one kind are told.
const MOST: usize = 40;

/// What stands under an answer after which nothing more is to come.
const OFFLINE: &str = "(Offline model: fixed rules, no intelligence.)";

/// What stands under one after which more is to come.
const GOES_ON: &str = "I go on when the next letter comes.";

/// The text after the calls that a person's words led to.
pub(super) fn set_up(business: &Business<'_>) -> String {
    let mut out = Vec::new();
    let letters: Vec<&Letter> = business.story.letters_since(business.start).collect();
    let made = |call: &&Call| !call.is_error && call.result.is_some();
    let member = |call: &Call, name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
    let tasks: Vec<String> = business
        .calls("task_create")
        .into_iter()
        .filter(made)
        .map(|call| task_line(business, call))
        .collect();
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
        let they =
            if spawned.len() == 1 { "It claims tasks by itself" } else { "They claim tasks by themselves" };
        let they = match (tasks.is_empty(), is_open(business, &[])) {
            (false, _) => format!(" {they} when free."),
            // No member was given anything to do.
            (true, false) => format!(" {they} when there are any."),
            (true, true) => String::new(),
        };
        out.push(format!("Spawned {}.{they}", spoken(&spawned)));
    }
    for call in business.calls("send_message").into_iter().filter(made) {
        out.push(format!("Sent {} a message: “{}”", member(call, "to"), brief(&member(call, "text"), 200)));
    }
    for call in business.calls("broadcast").into_iter().filter(made) {
        let result = brief(call.result.as_deref().unwrap_or_default(), 200);
        out.push(format!("Broadcast “{}”. {result}", brief(&member(call, "text"), 200)));
    }
    for call in business.calls("request_shutdown").into_iter().filter(made) {
        out.push(format!("Asked {} to stop.", member(call, "name")));
    }
    for tool in ["list_teammates", "read_inbox", "task_list"] {
        for call in business.calls(tool).into_iter().filter(made) {
            out.push(seen(call.result.as_deref().unwrap_or_default().trim()));
        }
    }
    out.extend(reviewed(business, &business.calls("review_plan")));
    out.extend(refusals(business, business.start));
    out.extend(left(business));
    if out.is_empty() {
        return "Nothing was done: the work ended before that.".to_owned();
    }
    let open = is_open(business, &letters);
    if !letters.is_empty() {
        out.extend(if open { mail(business, &letters) } else { Some(who_did_what(business, &letters)) });
    }
    out.push(
        if open { "What comes of it is sent to me, and I go on when it comes." } else { OFFLINE }.to_owned(),
    );
    out.join("\n\n")
}

/// The text after letters came in: what is new, or, when nothing more is to come, everything.
pub(super) fn news(business: &Business<'_>) -> String {
    let story = business.story;
    let fresh: Vec<&Letter> = story.letters_since(story.opened).collect();
    let all: Vec<&Letter> = story.letters_since(business.start).collect();
    let open = is_open(business, &all);
    // What came after everything had been told is told alone.
    let told = !is_open(business, &awaited::letters(business, business.start, story.opened));
    let waiting = open_plans(story);
    let last = !open && !told && waiting.is_empty();
    let mut out = Vec::new();
    if fresh.is_empty() {
        out.push("No letter came; members of the team have gone to sleep.".to_owned());
    } else if last {
        out.push(who_did_what(business, &all));
    } else {
        out.extend(mail(business, &fresh));
    }
    if last {
        out.extend(reviewed(business, &business.calls("review_plan")));
    } else {
        out.extend(reviewed(business, &calls_now(business, "review_plan")));
    }
    for plan in waiting {
        let plan = format!(
            "The plan of {} waits for a word: say whether it is to be approved or rejected.",
            plan.from
        );
        out.push(plan);
    }
    out.extend(refusals(business, if last { business.start } else { story.opened }));
    if last {
        out.extend(left(business));
    }
    let tasks = tasks(business);
    out.push(match open {
        false => OFFLINE.to_owned(),
        true if tasks.is_empty() => GOES_ON.to_owned(),
        true => {
            let done = tasks.iter().filter(|(id, _)| all.iter().any(|letter| ends(letter, id))).count();
            format!("Ended: {done} of {}. {GOES_ON}", many(tasks.len() as u64, "task"))
        }
    });
    out.join("\n\n")
}

/// What is new, in short.
fn mail(business: &Business<'_>, letters: &[&Letter]) -> Option<String> {
    let lines = lines(letters, &tasks(business), false);
    (!lines.is_empty()).then(|| format!("Mail came in:\n{lines}"))
}

/// Everything that came of it: the tasks in their order, then what else was told.
fn who_did_what(business: &Business<'_>, letters: &[&Letter]) -> String {
    let tasks = tasks(business);
    let mut out = String::new();
    let mut failed = 0;
    for (id, subject) in &tasks {
        let Some(letter) = letters.iter().rev().find(|letter| ends(letter, id)) else { continue };
        let (done, text) = outcome(letter, id);
        failed += usize::from(!done);
        let how = if done { "" } else { " failed" };
        let _ = writeln!(out, "- {}{how}, “{subject}” ({id}): {text}", letter.from);
    }
    out += &lines(letters, &tasks, true);
    let head = match (tasks.len(), failed) {
        (0, _) => "All of it has ended.".to_owned(),
        (total, 0) => format!("The tasks ({total}) are all done."),
        (total, failed) => format!("The tasks ({total}) are all ended, {failed} of them failed."),
    };
    format!("{head} Who did what:\n{}", out.trim_end())
}

/// How a task ended by the letter that tells it, and what was said of it.
fn outcome(letter: &Letter, id: &str) -> (bool, String) {
    let parts = parts(letter);
    let part = parts.iter().find(|part| part.starts_with(&format!("{id} (")));
    let text = part.map_or(letter.text.as_str(), String::as_str);
    // Its teammate names the task as well; once is enough.
    let behind = |sign: &str| part.and_then(|part| Some(part.split_once(sign)?.1));
    let failed =
        letter.sort == Sort::Failed || behind(") failed: ").is_some() && behind(") is done: ").is_none();
    let text = behind(") is done: ").or_else(|| behind(") failed: ")).unwrap_or(text);
    (!failed, brief(text, 400))
}

/// Letters, one line for each thing they tell; short while things go on. Of the ends of tasks the whole
/// answer tells elsewhere.
pub(super) fn lines(letters: &[&Letter], tasks: &[(String, String)], whole: bool) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut resting: Vec<String> = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        let from = &letter.from;
        // A member that was heard of since then has done more than wait.
        let rests =
            letter.sort == Sort::Result && (letter.text.trim().is_empty() || letter.text.trim() == RESTS);
        if rests && !letters[at + 1..].iter().any(|later| later.from == *from) {
            resting.push(from.clone());
        }
        let ended: Vec<&(String, String)> = tasks.iter().filter(|(id, _)| ends(letter, id)).collect();
        for (id, subject) in ended.iter().filter(|_| !whole) {
            let (done, text) = outcome(letter, id);
            out.push(match done {
                true => format!("{from} has done “{subject}” ({id})."),
                false => format!("{from} failed at “{subject}” ({id}): {text}"),
            });
        }
        let text = brief(&letter.text, 400);
        match letter.sort {
            Sort::Result => {
                let parts = parts(letter);
                let named = |part: &String| ended.iter().any(|(id, _)| part.starts_with(&format!("{id} (")));
                let rest = parts.iter().filter(|part| !named(part) && !is_said_elsewhere(part));
                out.extend(rest.map(|part| match Ack::of(part) {
                    Some(ack) => format!("{from} {}", ack.told(whole)),
                    None => plain(from, part),
                }));
            }
            Sort::Failed if !ended.is_empty() => {}
            Sort::Failed => out.push(format!("{from} failed: {text}")),
            Sort::Message | Sort::Broadcast => out.push(format!("{from} writes: {text}")),
            Sort::PlanRequest => {
                let plan = if whole { letter.text.lines().next().unwrap_or_default() } else { &text };
                out.push(format!("{from} handed in a plan: {plan}"));
            }
            _ if tells_stop(letter, from) => out.push(text),
            Sort::ShutdownAnswer if letter.approves => out.push(format!("{from} agreed to stop: {text}")),
            Sort::ShutdownAnswer => out.push(format!("{from} does not stop: {text}")),
            Sort::Notice => out.push(format!("Convoke tells: {text}")),
            Sort::ShutdownRequest | Sort::PlanAnswer => out.push(format!("{from} tells: {text}")),
        }
    }
    let more = out.len().saturating_sub(MOST);
    out.truncate(MOST);
    if more > 0 {
        out.push(format!("and {} more", many(more as u64, "line")));
    }
    resting.sort();
    if whole && !resting.is_empty() {
        let wait = if resting.len() == 1 { "waits" } else { "wait" };
        out.push(format!("{} {wait} for letters and work", spoken(&resting)));
    }
    out.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
}

/// A part of a result that is no acknowledgement. A task that this lead did not write is named in it.
fn plain(from: &str, part: &str) -> String {
    let task = part.split_once(" (").filter(|(id, _)| is_id(id, "t_"));
    match task.and_then(|(id, rest)| Some((id, rest.split_once(") is done: ")?))) {
        Some((id, (title, text))) => format!("{from}, “{title}” ({id}): {}", brief(text, 400)),
        None => format!("{from}: {}", brief(part, 400)),
    }
}

/// What a tool told the lead when it looked something up, as it tells the person: `you` was the lead there.
fn seen(result: &str) -> String {
    match result.starts_with("No letter waits for you.") {
        true => "No letter waits in my inbox; letters are read as they come.".to_owned(),
        false => result.replace("(lead, you)", "(lead)"),
    }
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
fn reviewed(business: &Business<'_>, calls: &[&Call]) -> Vec<String> {
    let author = |request: &str| {
        let mut plans = business.story.letters_since(0).filter(|letter| letter.sort == Sort::PlanRequest);
        plans
            .find(|plan| plan.request == request)
            .map_or_else(|| "a teammate".to_owned(), |plan| plan.from.clone())
    };
    let mut told: Vec<(String, bool, u64)> = Vec::new();
    for call in calls.iter().filter(|call| !call.is_error) {
        let who = author(call.input["request"].as_str().unwrap_or_default());
        let approve = call.input["approve"] == true;
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

/// What was refused since a place in the history, with the reason.
fn refusals(business: &Business<'_>, start: usize) -> Vec<String> {
    let refused = business.story.calls_since(start).filter(|call| call.is_error);
    refused
        .map(|call| {
            let what = ["name", "subject", "to", "text", "request"]
                .iter()
                .find_map(|member| call.input[*member].as_str());
            let what = what.map(|what| format!(" ({})", brief(what, 60))).unwrap_or_default();
            format!(
                "{}{what} was refused: {}",
                call.name,
                brief(call.result.as_deref().unwrap_or_default(), 300)
            )
        })
        .collect()
}

/// What of the request was not done.
fn left(business: &Business<'_>) -> Vec<String> {
    let unknown = business.wishes.unknown.iter();
    unknown
        .map(|part| {
            format!("Not done, because no rule of the offline model knows it: “{}”.", brief(part, 200))
        })
        .collect()
}

fn were(number: usize, what: &str) -> String {
    format!("{} {}", many(number as u64, what), if number == 1 { "is" } else { "are" })
}
