//! How members, letters and tasks are put into words for a model. Texts that agents wrote stand on one line
//! or are quoted line by line, so that none of them can pass for the harness's words.

use convoke_kernel::{Board, BoardEvent, Letter, LetterKind, Member, Standing, Task, TaskState};

/// Characters of a foreign text that is repeated on one line.
const LINE: usize = 300;

/// A text on one line, not too long.
pub(super) fn one_line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept: String = flat.chars().filter(|c| !c.is_control()).take(LINE).collect();
    if kept.len() < flat.len() { format!("{kept}…") } else { kept }
}

/// A text quoted line by line.
pub(super) fn quoted(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    if lines.is_empty() { ">".to_owned() } else { lines.join("\n") }
}

/// How many of a thing.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// How long ago something was.
pub(super) fn ago(then: u64, now: u64) -> String {
    match now.saturating_sub(then) / 1_000 {
        seconds @ 0..120 => format!("{seconds} s ago"),
        seconds @ 120..7_200 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3_600),
    }
}

/// When a member will read a letter.
pub(super) fn reads_it(member: &Member) -> &'static str {
    match (&member.standing, member.asleep) {
        (Standing::Stopping { .. }, _) => "It was asked to stop, and may read it before it does.",
        (Standing::Failed { .. }, _) => "Its last work failed; the letter takes it up again.",
        (_, Some(_)) => "It sleeps, and wakes for it.",
        _ => "It reads it at its next step.",
    }
}

/// A letter that waits.
pub(super) fn quoted_letter(letter: &Letter, now: u64) -> String {
    let kind = match letter.kind {
        LetterKind::Message => "message",
        LetterKind::Broadcast => "broadcast",
        LetterKind::Result => "result",
        LetterKind::Failed => "failure",
        LetterKind::ShutdownRequest => "request to stop",
        LetterKind::ShutdownAnswer => "answer to a request to stop",
        LetterKind::PlanRequest => "plan that waits for approval",
        LetterKind::PlanAnswer => "answer to a plan",
        LetterKind::Notice => "notice",
    };
    let urgent = if letter.urgent { "urgent " } else { "" };
    let id = letter.request.as_ref().unwrap_or(&letter.id);
    format!(
        "{urgent}{kind} from {} ({id}, {}):\n{}",
        one_line(&letter.from),
        ago(letter.at, now),
        quoted(&letter.text)
    )
}

/// A task by its id and subject.
pub(super) fn task_name(task: &Task) -> String {
    format!("{} '{}'", task.id, one_line(&task.subject))
}

/// Where a task stands.
pub(super) fn task_state(state: &TaskState) -> String {
    match state {
        TaskState::Pending => "pending".to_owned(),
        TaskState::Claimed { name, .. } => format!("claimed @{name}"),
        TaskState::Done { name, .. } => format!("done @{name}"),
        TaskState::Failed { name, why, .. } => format!("failed @{name} ({})", one_line(why)),
    }
}

/// A task on one line.
pub(super) fn task_line(board: &Board, task: &Task) -> String {
    let mut notes = Vec::new();
    notes.extend(task.role.as_ref().map(|role| format!("role {}", one_line(role))));
    if task.priority != 0 {
        notes.push(format!("priority {}", task.priority));
    }
    let over = matches!(task.state, TaskState::Done { .. } | TaskState::Failed { .. });
    let open: Vec<&str> = board.open_dependencies(task).iter().map(|needed| needed.id.as_str()).collect();
    if !over && !open.is_empty() {
        notes.push(format!("blocked by {}", open.join(", ")));
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" [{}]", notes.join("; ")) };
    format!("{} #{} {}{notes}: {}", task.id, task.number, task_state(&task.state), one_line(&task.subject))
}

/// A task whole.
pub(super) fn whole_task(board: &Board, task: &Task) -> String {
    let mut text = format!(
        "{}\nwritten by {}, claimed {} so far",
        task_line(board, task),
        one_line(&task.by),
        times(task)
    );
    let mut part = |name: &str, said: &str| {
        if !said.trim().is_empty() {
            text.push_str(&format!("\n{name}:\n{}", quoted(said)));
        }
    };
    part("description", &task.description);
    part("done when", task.criteria.as_deref().unwrap_or_default());
    part("result", task.result.as_deref().unwrap_or_default());
    for id in &task.blocked_by {
        match board.task(id) {
            Some(needed) => text.push_str(&format!("\nafter {}", task_line(board, needed))),
            None => text.push_str(&format!("\nafter {id}, which is not on the board")),
        }
    }
    text
}

fn times(task: &Task) -> String {
    match task.attempts {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

/// What has happened to a task, on one line.
pub(super) fn happened(event: &BoardEvent, then: u64, now: u64) -> String {
    let what = match event {
        BoardEvent::TaskCreated(e) => format!("written by {}", one_line(&e.by)),
        BoardEvent::TaskEdited(e) => format!("changed by {}", one_line(&e.by)),
        BoardEvent::TaskClaimed(e) => format!("claimed by {}", one_line(&e.name)),
        BoardEvent::TaskRenewed(_) => "renewed".to_owned(),
        BoardEvent::TaskOffered(_) => "its holder was asked to go on with it".to_owned(),
        BoardEvent::TaskReleased(e) => format!("given back by {}: {}", one_line(&e.name), one_line(&e.why)),
        BoardEvent::TaskFinished(e) => format!("finished by {}", one_line(&e.name)),
        BoardEvent::TaskFailed(e) => format!("failed with {}: {}", one_line(&e.name), one_line(&e.why)),
        BoardEvent::TaskRetried(e) => format!("to be tried again, says {}", one_line(&e.by)),
    };
    format!("- {}: {what}", ago(then, now))
}
