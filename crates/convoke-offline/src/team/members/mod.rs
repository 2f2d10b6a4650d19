//! A team that lives on: the lead that writes tasks, spawns teammates and answers from their letters, and the
//! teammate that does what it claimed or was asked and then rests. Both are pure functions of the request;
//! what was done is read again from the history. No answer is answered, so every dialogue ends. What a letter
//! says is data to the lead: it asks nothing of it.

mod awaited;
mod history;
mod lead;
mod letters;
mod memory;
mod names;
mod phrases;
mod report;
mod request;
mod teammate;
mod work;

use serde_json::Value;

use super::declares;
use crate::policy::{Answer, text};
use convoke_sim::content_id as hex;
use history::MemberHistory;

pub(super) use history::unbarred;
pub(crate) use memory::asked_last;

/// The reply of a member of a team; none if this is no team's business.
pub(super) fn answer(request: &Value) -> Option<Answer> {
    let leads = declares(request, "spawn_teammate");
    let works = declares(request, "claim_task");
    if !leads && !works {
        return None;
    }
    let story = MemberHistory::of(request);
    if story.summary_wanted {
        Some(text(&memory::summary(&story)))
    } else if works {
        Some(teammate::answer(request, &story))
    } else {
        lead::answer(&story)
    }
}

/// A reply as it is sent: letters that came while a lead did something else are told at the end of it, and in
/// a new history no call has the name of one in an earlier history.
pub(crate) fn finish(request: &Value, mut answer: Answer) -> Answer {
    if !declares(request, "spawn_teammate") && !declares(request, "claim_task") {
        return answer;
    }
    let story = MemberHistory::of(request);
    let ends = answer.stop_reason == "end_turn" && !story.summary_wanted;
    if ends
        && declares(request, "spawn_teammate")
        && let Some(told) = lead::told_beside(&story)
        && let Some(Value::String(said)) = answer.content.last_mut().and_then(|block| block.get_mut("text"))
    {
        said.push_str(&told);
    }
    if story.continued {
        let history = hex(&[&request["messages"][0].to_string()], 8);
        for block in answer.content.iter_mut().filter(|block| block["type"] == "tool_use") {
            let number =
                block["id"].as_str().unwrap_or_default().trim_start_matches("toolu_offline_").to_owned();
            block["id"] = Value::String(format!("toolu_offline_{history}_{number}"));
        }
    }
    answer
}

/// A text on one line, and not too much of it.
fn brief(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > most { line.chars().take(most).collect::<String>() + "…" } else { line }
}

/// Names as one speaks them: "a, b and c".
fn spoken(names: &[String]) -> String {
    match names {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
