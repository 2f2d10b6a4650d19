//! Whether something is still to come of what the lead began: tasks that have not ended, members that have
//! not reported, letters that their readers have not told of. It goes by calls and letters alone, in whatever
//! order they came. It does not wait for a member that waits for the person.

use super::history::Event;
use super::lead::{Business, known, open_plans};
use super::letters::{Letter, Sort};
use super::phrases::{Ack, HANDS_IN, RESTS, STOPS, begins};
use super::{request, work};
use crate::read::Call;

/// The tasks that the lead wrote and that had not ended when the person spoke: id and subject.
pub(super) fn tasks(business: &Business<'_>) -> Vec<(String, String)> {
    let story = business.story;
    let before: Vec<&Letter> = letters(business, 0, business.start);
    let made = story.calls_since(0).filter(|call| call.name == "task_create" && !call.is_error);
    let made = made.filter_map(|call| {
        let id = super::letters::first_id(call.result.as_deref()?, "t_")?;
        Some((id, call.input["subject"].as_str()?.to_owned()))
    });
    made.filter(|(id, _)| !before.iter().any(|letter| ends(letter, id))).collect()
}

/// The letters that were read between two places of the history.
pub(super) fn letters<'a>(business: &Business<'a>, start: usize, end: usize) -> Vec<&'a Letter> {
    let mut out = Vec::new();
    for (_, heard) in business.story.heard_since(start).take_while(|(at, _)| *at < end) {
        if let super::history::Incoming::Mail(letters) = heard {
            out.extend(letters);
        }
    }
    out
}

/// Whether by these letters something is still to come.
pub(super) fn is_open(business: &Business<'_>, letters: &[&Letter]) -> bool {
    let ended = |(id, _): &(String, String)| letters.iter().any(|letter| ends(letter, id));
    !tasks(business).iter().all(ended)
        || !begun(business).iter().all(|who| has_reported(business, letters, who))
        || !made(business, "request_shutdown").iter().all(|call| {
            let who = call.input["name"].as_str().unwrap_or_default();
            has_stopped(letters, who) || letters.iter().any(|letter| refuses(letter, who))
        })
        || !letters.iter().all(|letter| is_followed(letters, letter))
}

/// Whether a letter tells the end of a task. A teammate names the task whose end it tells; that a result
/// comes after a task is no end of it.
pub(super) fn ends(letter: &Letter, id: &str) -> bool {
    match letter.sort {
        Sort::Result => parts(letter).iter().any(|part| part.starts_with(&format!("{id} ("))),
        Sort::Failed => letter.task.as_deref() == Some(id),
        _ => false,
    }
}

/// The things that a letter tells, one after the other: a teammate that read several things says something of
/// each.
pub(super) fn parts(letter: &Letter) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in letter.text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match parts.last_mut() {
            Some(last) if !(letter.sort == Sort::Result && begins(line)) => *last += &format!("\n{line}"),
            _ => parts.push(line.to_owned()),
        }
    }
    parts
}

/// Whether a part of a result says nothing that another letter or the state of the team does not say.
pub(super) fn is_said_elsewhere(part: &str) -> bool {
    part == HANDS_IN || part == RESTS || part.starts_with(STOPS)
}

/// The calls since the person spoke that came to something.
fn made<'a>(business: &'a Business<'_>, tool: &str) -> Vec<&'a Call> {
    business.calls(tool).into_iter().filter(|call| !call.is_error).collect()
}

/// The members that were given something to do or to read, and tell what came of it.
fn begun(business: &Business<'_>) -> Vec<String> {
    let text = |call: &Call, name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
    let mut who: Vec<String> = Vec::new();
    let spawned =
        made(business, "spawn_teammate").into_iter().filter(|call| !work::waits(&text(call, "prompt")));
    who.extend(spawned.map(|call| text(call, "name")));
    who.extend(made(business, "send_message").into_iter().map(|call| text(call, "to")));
    let members = known(business.story, business.story.events.len());
    for call in made(business, "broadcast") {
        let reached = request::words(call.result.as_deref().unwrap_or_default());
        who.extend(members.iter().filter(|name| reached.contains(name)).cloned());
    }
    for call in made(business, "review_plan") {
        let plans = business.story.letters_since(0).filter(|letter| letter.sort == Sort::PlanRequest);
        who.extend(plans.filter(|plan| call.input["request"] == plan.request).map(|plan| plan.from.clone()));
    }
    who
}

/// Whether a member has told what came of it, is gone, or waits for the person's word.
fn has_reported(business: &Business<'_>, letters: &[&Letter], who: &str) -> bool {
    let tells = |letter: &&Letter| match letter.sort {
        Sort::Result => parts(letter).iter().any(|part| !is_said_elsewhere(part)),
        Sort::Failed => true,
        _ => false,
    };
    let asks_person =
        business.wishes.verdicts.is_empty() && open_plans(business.story).iter().any(|one| one.from == who);
    asks_person
        || has_stopped(letters, who)
        || letters.iter().any(|letter| letter.from == who && tells(letter))
}

/// Whether a member has stopped by these letters.
fn has_stopped(letters: &[&Letter], who: &str) -> bool {
    letters.iter().any(|letter| tells_stop(letter, who))
}

/// Whether a letter of the harness says that a member has stopped. An idle member agrees by stopping.
pub(super) fn tells_stop(letter: &Letter, who: &str) -> bool {
    let sorts = [Sort::Notice, Sort::ShutdownAnswer];
    sorts.contains(&letter.sort) && letter.text.starts_with(&format!("{who} has stopped"))
}

fn refuses(letter: &Letter, who: &str) -> bool {
    letter.from == who && letter.sort == Sort::ShutdownAnswer && !letter.approves
}

/// Whether everything that this result sets going among the others was told as well.
fn is_followed(letters: &[&Letter], letter: &Letter) -> bool {
    if letter.sort != Sort::Result {
        return true;
    }
    let told = |who: &str, sign: &str| {
        let mut said = letters.iter().filter(|other| other.from == who && other.sort == Sort::Result);
        // The lead reads its letters itself.
        who == "lead" || has_stopped(letters, who) || said.any(|other| other.text.contains(sign))
    };
    parts(letter).iter().filter_map(|part| Ack::of(part)?.awaits()).all(|(who, sign)| told(who, &sign))
}

/// What was called in the exchange that is under way.
pub(super) fn calls_now<'a>(business: &Business<'a>, tool: &str) -> Vec<&'a Call> {
    let events = business.story.events.iter().skip(business.story.opened);
    let calls = events.filter_map(|event| match event {
        Event::Called(call) => Some(call),
        _ => None,
    });
    calls.filter(|call| call.name == tool).collect()
}
