//! Calls in one line, as a person would say them, and what they came to.

use std::time::Duration;

use convoke_kernel::{Ran, ToolResult, is_command, shown};

use super::block::Block;
use super::event_text::brief;
use crate::text::seconds;

/// How much of a call is shown.
const MOST: usize = 200;
/// How much is shown of what went wrong.
const MOST_WHY: usize = 160;
/// A call that took less than this is shown without its time, unless it is a command.
const QUICK: Duration = Duration::from_secs(1);

/// A call of the lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    /// What it does, harmless and on one line.
    pub(super) what: String,
    is_command: bool,
    pub(super) since: u64,
}

impl Call {
    pub(super) fn of(id: &str, name: &str, input: &str, at: u64) -> Self {
        let what = brief(&shown(name, input).line(), MOST);
        Self { id: id.to_owned(), what, is_command: is_command(name), since: at }
    }
}

/// Whether a call with this id was made by a person and not by a model.
pub(super) fn is_by_person(id: &str) -> bool {
    id.starts_with("person_")
}

/// A call that has its outcome. One of which nothing else is known was begun by a process that is gone.
pub(super) fn came_to(call: Option<&Call>, time: Option<Duration>, result: &ToolResult) -> Block {
    let is_command = call.is_some_and(|call| call.is_command);
    let exit = result.exit_code.filter(|_| result.ran == Ran::Done);
    let is_bad = result.is_error || result.ran != Ran::Done || exit.is_some_and(|code| code != 0);
    let how = match (result.ran, exit) {
        (Ran::Done, Some(code)) => Some(format!("exit {code}")),
        (Ran::Done, None) if is_bad => Some("failed".to_owned()),
        (Ran::Done, None) => None,
        (Ran::Interrupted, _) => Some("interrupted".to_owned()),
        (Ran::Refused, _) => Some("refused".to_owned()),
    };
    let time = time.filter(|time| is_command || *time >= QUICK).map(seconds);
    let launched =
        result.launched.as_ref().map(|run| format!("goes on in the background as {}", brief(run, 40)));
    let why = is_bad.then(|| brief(output(&result.text), MOST_WHY)).filter(|why| !why.is_empty());
    let came_to = [how, time, launched, why].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let what = call.map_or_else(|| "(a call)".to_owned(), |call| call.what.clone());
    Block::Did { what, came_to, is_bad }
}

/// What a command printed, without the line that tells the model its exit code.
fn output(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("(exit code ") => rest,
        _ => text,
    }
}
