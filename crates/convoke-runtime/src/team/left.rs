//! What is left of a team's work when the team is at rest: said at the end, because "done" would not be true.

use convoke_journal::Journal;
use convoke_kernel::{Board, LEAD, Roster, Standing, Status, Task, TaskState};

use super::client::{MemberRow, rows};

/// Why a task is called cancelled and not failed.
const CANCELLED: &str = "cancelled";

/// What is left, one line each: tasks that are not done, members that failed, letters that are not read.
pub(crate) fn left(roster: &Roster, board: &Board) -> Vec<String> {
    let live = || roster.members().filter(|member| !matches!(member.standing, Standing::Stopped { .. }));
    let roles: Vec<&str> =
        live().filter(|member| member.name != LEAD).map(|member| member.role.as_str()).collect();
    let mut left: Vec<String> =
        board.tasks().into_iter().filter_map(|task| of_task(board, task, &roles)).collect();
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

/// Members that were left in the middle of something, or that have not been driven yet. A journal that
/// cannot be read now says so elsewhere.
pub(crate) async fn open(journal: &Journal, roster: &Roster, board: &Board) -> Vec<String> {
    let rows = rows(journal, roster, board).await.unwrap_or_default();
    let left = |row: MemberRow| {
        let stopped = matches!(row.member.standing, Standing::Stopped { .. } | Standing::Failed { .. });
        let name = &row.member.name;
        if name == LEAD || stopped {
            return None;
        }
        match row.summary.map(|summary| summary.status) {
            None => Some(format!("{name} has not begun")),
            Some(Status::Open) => Some(format!("{name} is in the middle of its work")),
            Some(_) => None,
        }
    };
    rows.into_iter().filter_map(left).collect()
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
