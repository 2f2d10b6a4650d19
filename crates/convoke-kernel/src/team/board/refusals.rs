//! The words for tasks in refusals: one line each, whatever an agent wrote into them. It decides nothing.

use super::{BoardRefusal, Task, TaskState};

/// Tasks that a refusal lists.
const LISTED: usize = 10;
/// Characters of a foreign text that a refusal repeats.
const REPEATED: usize = 160;

/// A refusal with this text.
pub(super) fn refuse<T>(text: String) -> Result<T, BoardRefusal> {
    Err(BoardRefusal(text))
}

/// A task by its id and subject.
pub(super) fn label(task: &Task) -> String {
    format!("{} '{}'", task.id, task.subject)
}

/// Where a task stands, in a few words.
pub(super) fn standing(state: &TaskState) -> String {
    match state {
        TaskState::Pending => "pending".to_owned(),
        TaskState::Claimed { name, .. } => format!("held by {name}"),
        TaskState::Done { name, .. } => format!("done by {name}"),
        TaskState::Failed { name, why, .. } => format!("failed with {name}: {}", clip(why)),
    }
}

/// The first line of a text, and not too much of it.
pub(super) fn clip(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let kept: String = line.chars().take(REPEATED).collect();
    if kept.len() < text.trim().len() { format!("{kept}…") } else { kept }
}

/// The first of some tasks, with where each stands.
pub(super) fn list(tasks: &[&Task]) -> String {
    let each = |task: &&Task| format!("{} (#{}, {})", label(task), task.number, standing(&task.state));
    let mut lines: Vec<String> = tasks.iter().take(LISTED).map(each).collect();
    if tasks.len() > LISTED {
        lines.push(format!("and {} more", tasks.len() - LISTED));
    }
    lines.join("; ")
}

/// The first of some names.
pub(super) fn names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut said: Vec<String> = names.take(LISTED).map(str::to_owned).collect();
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    said.join(", ")
}
