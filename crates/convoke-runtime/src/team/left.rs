//! What is left of a team's work when everybody has come to rest: said at the end, because "done" would not be true.

use convoke_kernel::{Board, LEAD, Roster, Standing, Task, TaskState};

/// Why a task is called cancelled and not failed.
const CANCELLED: &str = "cancelled";

/// What is left, one line each: tasks that are not done, members that failed, letters that nobody has read.
pub(crate) fn left(roster: &Roster, board: &Board) -> Vec<String> {
    let live = || roster.members().filter(|member| !matches!(member.standing, Standing::Stopped { .. }));
    let roles: Vec<&str> = live().filter(|member| member.name != LEAD).map(|member| member.role.as_str()).collect();
    let mut left: Vec<String> = board.tasks().into_iter().filter_map(|task| of_task(board, task, &roles)).collect();
    for member in roster.members() {
        if let Standing::Failed { why, .. } = &member.standing {
            left.push(format!("{} failed: {why}", member.name));
        }
        if member.waiting > 0 {
            let letters = if member.waiting == 1 { "letter" } else { "letters" };
            left.push(format!("{} {letters} to {} not read", member.waiting, member.name));
        }
    }
    left
}

fn of_task(board: &Board, task: &Task, roles: &[&str]) -> Option<String> {
    let why = match &task.state {
        TaskState::Done { .. } => return None,
        TaskState::Failed { why, .. } if why.starts_with(CANCELLED) => return None,
        TaskState::Failed { why, name, .. } => format!("failed ({name}): {why}"),
        TaskState::Claimed { name, .. } => format!("held by {name} and not finished"),
        TaskState::Pending => match board.stuck(task, roles) {
            Some(why) => format!("cannot be claimed: {why}"),
            None if roles.is_empty() => "pending, and there is no teammate to claim it".to_owned(),
            None => match &task.given_up {
                Some(name) => format!("pending; {name} gave it up"),
                None => "pending".to_owned(),
            },
        },
    };
    Some(format!("task {} \"{}\" {why}", task.id, task.subject))
}
