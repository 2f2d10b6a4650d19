//! What members do with the board. Their rights beside the board's own rules: the lead
//! writes, changes, cancels and retries; a teammate decides about what it holds, and changes
//! the words of what it wrote or holds.

use convoke_kernel::{
    Board, BoardEntry, NewTask, Task, TaskCreateCall, TaskEdit, TaskId, TaskState, TaskStatusCall,
    TaskUpdateCall, claimed_text,
};

use super::{Act, ActContext, Done, describe};
use crate::error::Error;
use crate::team::client;

/// A new task.
pub(super) fn create(scene: &ActContext<'_>, wanted: &TaskCreateCall) -> Done {
    let id = TaskId::derived(&["task", scene.parent.id.as_str(), scene.call]);
    let task = NewTask {
        subject: wanted.subject.clone(),
        description: wanted.description.clone(),
        criteria: wanted.criteria.clone(),
        blocked_by: found(&scene.board, &wanted.blocked_by)?,
        role: wanted.role.clone(),
        priority: wanted.priority,
    };
    let entry = BoardEntry::Create { id: id.clone(), task, by: scene.me.name.clone() };
    let act = Act { board: vec![entry], ..Act::says("") };
    let (_, after) = scene.after(&act)?;
    let Some(task) = after.task(&id) else {
        return Err(format!("internal error: the board lacks {id} after it was written."));
    };
    let waits: Vec<&str> = after.open_dependencies(task).iter().map(|needed| needed.id.as_str()).collect();
    let then = match (waits.is_empty(), &task.role) {
        (true, None) => "Any teammate without work claims it by itself.".to_owned(),
        (true, Some(role)) => format!("A teammate without work whose role is '{role}' claims it by itself."),
        (false, _) => format!("It can be claimed when {} is done.", waits.join(", ")),
    };
    let said = format!("Created {id}: {}. {then}", describe::one_line(&task.subject));
    Ok(Act { board: act.board, ..Act::says(said) })
}

/// A change of a task.
pub(super) fn update(scene: &ActContext<'_>, wanted: &TaskUpdateCall) -> Done {
    let task = scene.board.find(&wanted.task).map_err(|refusal| refusal.to_string())?;
    let edit = TaskEdit {
        subject: wanted.subject.clone(),
        description: wanted.description.clone(),
        criteria: wanted.criteria.clone(),
        priority: wanted.priority,
        role: wanted.role.clone(),
        add_blocked_by: found(&scene.board, &wanted.add_blocked_by)?,
        remove_blocked_by: found(&scene.board, &wanted.remove_blocked_by)?,
    };
    let edits = edit != TaskEdit::default();
    if edits && !scene.leads() {
        may_edit(scene, task, &edit)?;
    }
    let mut entries = Vec::new();
    if edits {
        entries.push(BoardEntry::Edit { task: task.id.clone(), edit, by: scene.me.name.clone() });
    }
    match wanted.status {
        Some(status) => entries.push(moved(scene, task, status, wanted.result.clone().unwrap_or_default())?),
        None if wanted.result.is_some() => {
            return Err("Not changed: a result goes with status done, or failed with why.".to_owned());
        }
        None if !edits => return Err("Not changed: say what is to be changed.".to_owned()),
        None => {}
    }
    let act = Act { board: entries, ..Act::says("") };
    let (_, after) = scene.after(&act)?;
    let now = after.task(&task.id).map_or_else(String::new, |task| describe::task_state(&task.state));
    let freed: Vec<String> =
        freed(&scene.board, &after, &task.id).iter().map(|task| describe::task_name(task)).collect();
    let freed =
        if freed.is_empty() { String::new() } else { format!(" It can go on now: {}.", freed.join(", ")) };
    let said = format!("Changed {}: it is {now}.{freed}", describe::task_name(task));
    Ok(Act { board: act.board, ..Act::says(said) })
}

/// Whether a teammate may change this of a task.
fn may_edit(scene: &ActContext<'_>, task: &Task, edit: &TaskEdit) -> Result<(), String> {
    let words_only = TaskEdit { description: None, criteria: None, ..edit.clone() } == TaskEdit::default();
    if !words_only {
        return Err(
            "Not changed: of a task you can change description and criteria; ask the lead for the rest."
                .to_owned(),
        );
    }
    let holds = scene.board.held_by(&scene.parent.id).is_some_and(|held| held.id == task.id);
    if !holds && task.by != scene.me.name {
        let by = describe::one_line(&task.by);
        return Err(format!(
            "Not changed: you neither hold {} nor wrote it ({by} did). Send a message instead.",
            task.id
        ));
    }
    Ok(())
}

/// The entry that moves a task to where it is to stand.
fn moved(
    scene: &ActContext<'_>,
    task: &Task,
    status: TaskStatusCall,
    said: String,
) -> Result<BoardEntry, String> {
    let id = task.id.clone();
    let by = scene.me.name.clone();
    let holder = scene.claimant();
    let token = None;
    let why = |otherwise: &str| if said.trim().is_empty() { otherwise.to_owned() } else { said.clone() };
    Ok(match (status, scene.leads(), &task.state) {
        (TaskStatusCall::Done, ..) => BoardEntry::Finish { task: id, holder, token, result: said },
        (TaskStatusCall::Failed, ..) => {
            BoardEntry::Fail { task: id, holder, token, why: why("it gave no reason") }
        }
        (TaskStatusCall::Cancelled, true, _) => BoardEntry::Cancel { task: id, by },
        (TaskStatusCall::Cancelled, false, _) => {
            return Err(
                "Not changed: only the lead cancels tasks. Set yours to failed and say why.".to_owned()
            );
        }
        (TaskStatusCall::Pending, true, TaskState::Claimed { name, .. }) => {
            return Err(format!("Not changed: {name} holds {id}. Ask {name} to give it back, or cancel it."));
        }
        (TaskStatusCall::Pending, true, _) => BoardEntry::Retry { task: id, by },
        (TaskStatusCall::Pending, false, _) => {
            BoardEntry::Release { task: id, holder, token, why: why("it was given back") }
        }
    })
}

/// Tasks that waited for this one and for nothing else.
fn freed<'a>(before: &Board, after: &'a Board, id: &TaskId) -> Vec<&'a Task> {
    let is_free = |task: &&Task| {
        let waited = before.task(&task.id).is_some_and(|task| !before.open_dependencies(task).is_empty());
        waited && task.state == TaskState::Pending && after.open_dependencies(task).is_empty()
    };
    after.tasks().into_iter().filter(|task| task.blocked_by.contains(id)).filter(is_free).collect()
}

fn found(board: &Board, said: &[String]) -> Result<Vec<TaskId>, String> {
    said.iter()
        .map(|said| board.find(said).map(|task| task.id.clone()).map_err(|refusal| refusal.to_string()))
        .collect()
}

/// A task whole, with what has happened to it.
pub(super) async fn get(scene: &ActContext<'_>, said: &str) -> Result<Done, Error> {
    let task = match scene.board.find(said) {
        Ok(task) => task,
        Err(refusal) => return Ok(Err(refusal.to_string())),
    };
    let journal = &scene.parent.config.journal;
    let session = &scene.parent.spec.session;
    let history = client::history(journal, session, &task.id).await?;
    let lines: Vec<String> =
        history.iter().map(|(at, event)| describe::happened(event, *at, scene.at)).collect();
    let whole = describe::whole_task(&scene.board, task);
    Ok(Ok(Act::says(format!("{whole}\nhistory:\n{}", lines.join("\n")))))
}

/// Tasks that one listing shows.
const LISTED: usize = 200;

/// The board, a line for each task.
pub(super) fn list(scene: &ActContext<'_>) -> Act {
    let tasks = scene.board.tasks();
    if tasks.is_empty() {
        return Act::says("The board is empty.");
    }
    let open = |task: &&Task| matches!(task.state, TaskState::Pending | TaskState::Claimed { .. });
    let unfinished = tasks.iter().copied().filter(open).count();
    // If not all can be shown, those that are over go first, the oldest before the others.
    let mut over_left = LISTED.saturating_sub(unfinished);
    let mut open_left = LISTED.min(unfinished);
    let mut shown: Vec<&Task> = Vec::new();
    for task in tasks.iter().copied().rev().filter(|task| !open(task)) {
        if over_left > 0 {
            over_left -= 1;
            shown.push(task);
        }
    }
    for task in tasks.iter().copied().filter(open) {
        if open_left > 0 {
            open_left -= 1;
            shown.push(task);
        }
    }
    shown.sort_by_key(|task| task.number);
    let lines: Vec<String> = shown.iter().map(|task| describe::task_line(&scene.board, task)).collect();
    let hidden = tasks.len() - shown.len();
    let more = match hidden {
        0 => String::new(),
        _ => format!("\n({hidden} more are not shown here; task_get shows each by id or #number)"),
    };
    let head = format!("{}, {unfinished} of them unfinished:", describe::count(tasks.len(), "task", "tasks"));
    Act::says(format!("{head}\n{}{more}", lines.join("\n")))
}

/// A task for the caller's own hands.
pub(super) fn claim(scene: &ActContext<'_>, said: &str) -> Done {
    let id = scene.board.find(said).map_err(|refusal| refusal.to_string())?.id.clone();
    let ttl = u64::try_from(scene.parent.config.team.claim_ttl.as_millis()).unwrap_or(u64::MAX);
    let entry = BoardEntry::Claim { task: id.clone(), claimant: scene.claimant(), ttl };
    let mut act = Act { board: vec![entry], ..Act::says("") };
    let (_, after) = scene.after(&act)?;
    let Some(task) = after.task(&id) else {
        return Err(format!("internal error: the board lacks {id} after it was claimed."));
    };
    act.result.text = claimed_text(&after.brief(task));
    act.result.claimed = Some(id);
    Ok(act)
}
