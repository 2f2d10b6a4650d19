//! The words and small forms that the commands about teams share: states, owners, ids that are short enough
//! to read.

use convoke_kernel::{Board, LetterKind, Task, TaskState};

use crate::failure::Failure;
use crate::render::first_line;
use crate::stdio;

/// Where a task stands, in one word.
pub(crate) fn state_of(state: &TaskState) -> &'static str {
    match state {
        TaskState::Pending => "pending",
        TaskState::Claimed { .. } => "claimed",
        TaskState::Done { .. } => "done",
        TaskState::Failed { .. } => "failed",
    }
}

/// The holder of a task, or the one that ended it.
pub(crate) fn owner_of(state: &TaskState) -> Option<&str> {
    match state {
        TaskState::Pending => None,
        TaskState::Claimed { name, .. } | TaskState::Done { name, .. } | TaskState::Failed { name, .. } => {
            Some(name)
        }
    }
}

/// What a letter is, as data has it.
pub(crate) fn kind_of(kind: LetterKind) -> &'static str {
    match kind {
        LetterKind::Message => "message",
        LetterKind::Broadcast => "broadcast",
        LetterKind::Result => "result",
        LetterKind::Failed => "failed",
        LetterKind::ShutdownRequest => "shutdown_request",
        LetterKind::ShutdownAnswer => "shutdown_answer",
        LetterKind::PlanRequest => "plan_request",
        LetterKind::PlanAnswer => "plan_answer",
        LetterKind::Notice => "notice",
    }
}

/// A task in a line: `#3 Write the parser`.
pub(crate) fn on_board(task: &Task) -> String {
    format!("#{} {}", task.number, first_line(&task.subject, 100))
}

/// As many characters of an id as people read; enough to tell thousands apart.
pub(crate) fn short(id: &str) -> String {
    const SHORT: usize = 10;
    id.chars().take(SHORT).collect()
}

/// A text that was given on the command line; one that says nothing is wrong usage.
pub(crate) fn said(text: &str, what: &str) -> Result<String, Failure> {
    let text = stdin_or(text, what)?;
    match text.trim().is_empty() {
        true => Err(Failure::usage(format!("{what} is empty"))),
        false => Ok(text),
    }
}

/// A text that was given on the command line, where `-` means stdin.
pub(crate) fn stdin_or(text: &str, what: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let read = stdio::read_all()
        .map_err(|error| Failure::usage(format!("{what} cannot be read from stdin: {error}")))?;
    Ok(read.trim_end_matches('\n').to_owned())
}

/// The tasks that a task still waits for, as people name them: `#1, #4`.
pub(crate) fn waits_for(board: &Board, task: &Task) -> String {
    let open = board.open_dependencies(task);
    open.iter().map(|task| format!("#{}", task.number)).collect::<Vec<_>>().join(", ")
}
