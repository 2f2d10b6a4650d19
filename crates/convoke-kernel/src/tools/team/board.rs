//! `task_create`, `task_update`, `task_get`, `task_list` and `claim_task`: the board of a team.

use serde_json::{Value, json};

use super::{TaskCreateCall, TaskStatusCall, TaskUpdateCall, TeamCall, run};
use crate::spec::Role;
use crate::tools::fields::{Fields, task_name};
use crate::tools::shown::{self, CallInput, Words};
use crate::tools::table::{Audience, Reading, Tool, closed};

pub(in crate::tools) static TASK_CREATE: Tool = Tool {
    name: "task_create",
    audience: Audience::Team,
    parts: &[],
    declare: |_| task_create(),
    read: Reading::Fields(|fields, _| read_create(fields).map(|call| run(TeamCall::TaskCreate(call)))),
    words: create_words,
    starts: None,
};

fn task_create() -> Option<Value> {
    closed(
        TASK_CREATE.name,
        "Writes one task on the team's board, where teammates that have nothing to do claim it by \
         themselves; its id comes back. One task for each distinct piece of work that one agent can do and \
         check alone. It arrives with its claimant as you write it and with nothing else, so the \
         description says everything. Create what comes first first, then name its id in blocked_by of what \
         needs it: such a task is claimed only when all of those are done, and arrives with their results.",
        json!({
            "subject": {"type": "string", "description": "What it is about, in one line."},
            "description": {"type": "string", "description": "Everything that has to be known to do it."},
            "criteria": {"type": "string", "description": "When it counts as done, in a way that can be \
                checked."},
            "blocked_by": {"type": "array", "items": {"type": "string"}, "description": "Ids of the tasks \
                that have to be done before it."},
            "role": {"type": "string", "description": "The role a claimant has to have; anybody's if \
                absent."},
            "priority": {"type": "integer", "description": "The greater, the sooner; 0 if absent. Equals go \
                by age."}
        }),
        &["subject"],
    )
}

fn create_words(call: &CallInput<'_>) -> Words {
    Words { line: Some(format!("{}: {}", call.name, call.told("subject"))), ..Words::default() }
}

fn read_create(fields: &Fields<'_>) -> Result<TaskCreateCall, String> {
    Ok(TaskCreateCall {
        subject: fields.text("subject")?.trim().to_owned(),
        description: fields.words("description")?,
        criteria: fields.optional("criteria")?,
        blocked_by: fields.list("blocked_by", task_name)?,
        role: fields.optional("role")?.map(|role| role.trim().to_owned()),
        priority: fields.number("priority")?.unwrap_or(0),
    })
}

pub(in crate::tools) static TASK_UPDATE: Tool = Tool {
    name: "task_update",
    audience: Audience::Team,
    parts: &[],
    declare: |_| task_update(),
    read: Reading::Fields(|fields, caller| {
        read_update(fields, caller.role == Role::Lead).map(|call| run(TeamCall::TaskUpdate(call)))
    }),
    words: shown::as_it_is,
    starts: None,
};

fn task_update() -> Option<Value> {
    closed(
        TASK_UPDATE.name,
        "Ends, gives back or changes a task. done and failed are for its holder to say, with the result; \
         done sets free at once what waited for it. pending gives it back to the board, or has a failed one \
         tried again; cancelled means that nobody is to do it. To take one, use claim_task. Of a done task \
         nothing can be changed, and its dependencies only while it is pending.",
        json!({
            "task": {"type": "string", "description": "The task's id (t_…)."},
            "status": {
                "type": "string",
                "enum": ["done", "failed", "pending", "cancelled"],
                "description": "Where it is to stand."
            },
            "result": {"type": "string", "description": "What it came to and where that lies, for those who \
                depend on it; or why it failed or is given back."},
            "subject": {"type": "string", "description": "Another subject."},
            "description": {"type": "string", "description": "Another description."},
            "criteria": {"type": "string", "description": "Other criteria."},
            "priority": {"type": "integer", "description": "Another priority."},
            "role": {"type": "string", "description": "Another role."},
            "add_blocked_by": {"type": "array", "items": {"type": "string"}, "description": "More tasks that \
                have to be done before it."},
            "remove_blocked_by": {"type": "array", "items": {"type": "string"}, "description": "Tasks that \
                need not be done before it any more."}
        }),
        &["task"],
    )
}

fn read_update(fields: &Fields<'_>, lead: bool) -> Result<TaskUpdateCall, String> {
    let update = TaskUpdateCall {
        task: fields.task("task")?,
        status: fields.optional("status")?.map(|status| task_status(&status, lead)).transpose()?,
        result: fields.optional("result")?,
        subject: fields.optional("subject")?.map(|subject| subject.trim().to_owned()),
        description: fields.optional("description")?,
        criteria: fields.optional("criteria")?,
        priority: fields.number("priority")?,
        role: fields.optional("role")?.map(|role| role.trim().to_owned()),
        add_blocked_by: fields.list("add_blocked_by", task_name)?,
        remove_blocked_by: fields.list("remove_blocked_by", task_name)?,
    };
    let nothing =
        TaskUpdateCall { task: update.task.clone(), result: update.result.clone(), ..Default::default() };
    if update == nothing {
        return Err(match update.result {
            Some(_) => "a result is given together with status done or failed.",
            None => "nothing is to be changed; give status, or the field that is to be another.",
        }
        .to_owned());
    }
    Ok(update)
}

fn task_status(said: &str, lead: bool) -> Result<TaskStatusCall, String> {
    match said.trim().to_ascii_lowercase().as_str() {
        "done" | "completed" => Ok(TaskStatusCall::Done),
        "failed" => Ok(TaskStatusCall::Failed),
        "pending" => Ok(TaskStatusCall::Pending),
        "cancelled" | "canceled" => Ok(TaskStatusCall::Cancelled),
        "in_progress" | "claimed" if lead => {
            Err("a task is under way when a teammate has claimed it: one that is free does so by itself, or \
                tell one to claim it."
                .to_owned())
        }
        "in_progress" | "claimed" => Err("a task is under way when it is claimed: claim it with \
            claim_task."
            .to_owned()),
        _ => Err("status is done, failed, pending or cancelled.".to_owned()),
    }
}

pub(in crate::tools) static TASK_GET: Tool = Tool {
    name: "task_get",
    audience: Audience::Team,
    parts: &[],
    declare: |_| task_get(),
    read: Reading::Fields(|fields, _| Ok(run(TeamCall::TaskGet { task: fields.task("task")? }))),
    words: shown::as_it_is,
    starts: None,
};

fn task_get() -> Option<Value> {
    closed(
        TASK_GET.name,
        "Shows one task whole: description, criteria, what it depends on, who holds it, what it came to.",
        json!({"task": {"type": "string", "description": "The task's id (t_…)."}}),
        &["task"],
    )
}

pub(in crate::tools) static TASK_LIST: Tool = Tool {
    name: "task_list",
    audience: Audience::Team,
    parts: &[],
    declare: |_| task_list(),
    read: Reading::Fields(|_, _| Ok(run(TeamCall::TaskList))),
    words: shown::as_it_is,
    starts: None,
};

fn task_list() -> Option<Value> {
    closed(
        TASK_LIST.name,
        "Shows the board: every task with its id, subject, state, holder and what it still waits for. Not \
            for waiting.",
        json!({}),
        &[],
    )
}

pub(in crate::tools) static CLAIM_TASK: Tool = Tool {
    name: "claim_task",
    audience: Audience::Teammate,
    parts: &[],
    declare: |_| claim_task(),
    read: Reading::Fields(|fields, _| Ok(run(TeamCall::ClaimTask { task: fields.task("task")? }))),
    words: shown::as_it_is,
    starts: None,
};

fn claim_task() -> Option<Value> {
    closed(
        CLAIM_TASK.name,
        "Takes a task from the board into your hands, and brings it back whole. It has to be pending, with \
         nothing open that it depends on, and for your role, and you can hold one at a time. When you are \
         idle work is also claimed for you, so use it only for a task you want in particular.",
        json!({"task": {"type": "string", "description": "The task's id (t_…)."}}),
        &["task"],
    )
}
