//! What counts as a usable call of a team's tools. It reads and refuses, with a text that says what to send; who there is and what is on
//! the board is for others to know.

use serde_json::{Map, Value};

use super::{
    SpawnCall, TaskCreateCall, TaskStatusCall, TaskUpdateCall, TeamCall, TeamWanted, declare_lead, declare_teammate,
};
use crate::confinement::Isolation;
use crate::team::MAX_LETTER;
use crate::todo::{ITEM_BYTES, MOST_ITEMS, TodoItem, TodoStatus};
use crate::tools::known_tools;

/// Reads a call by a lead (`lead`) or a teammate; `None` if the name is none of these tools for it. The error is the text the model gets.
pub(crate) fn read_team(name: &str, input: &Value, lead: bool) -> Option<Result<TeamWanted, String>> {
    let offered = if lead { declare_lead() } else { declare_teammate(true) };
    let declared = offered.iter().find(|tool| tool["name"] == name)?;
    let fields = match Fields::of(name, input, &declared["input_schema"]["properties"]) {
        Ok(fields) => fields,
        Err(why) => return Some(Err(format!("{name} error: {why}"))),
    };
    Some(read(name, &fields, lead).map_err(|why| format!("{name} error: {why}")))
}

fn read(name: &str, fields: &Fields<'_>, lead: bool) -> Result<TeamWanted, String> {
    let call = match name {
        "spawn_teammate" => TeamCall::Spawn(spawn(fields)?),
        "send_message" => {
            TeamCall::Send { to: fields.member("to")?, text: fields.text("text")?, urgent: fields.flag("urgent")? }
        }
        "broadcast" => TeamCall::Broadcast { text: fields.text("text")? },
        "read_inbox" => TeamCall::ReadInbox,
        "list_teammates" => TeamCall::ListTeammates,
        "request_shutdown" => {
            TeamCall::RequestShutdown { name: fields.member("name")?, reason: fields.words("reason")? }
        }
        "answer_shutdown" => TeamCall::AnswerShutdown {
            request: fields.optional("request")?.map(|request| request.trim().to_owned()),
            approve: fields.answer("approve")?,
            reason: fields.words("reason")?,
        },
        "submit_plan" => TeamCall::SubmitPlan { plan: fields.text("plan")? },
        "review_plan" => TeamCall::ReviewPlan {
            request: fields.text("request")?.trim().to_owned(),
            approve: fields.answer("approve")?,
            feedback: fields.words("feedback")?,
        },
        "task_create" => TeamCall::TaskCreate(task_create(fields)?),
        "task_update" => TeamCall::TaskUpdate(task_update(fields, lead)?),
        "task_get" => TeamCall::TaskGet { task: fields.task("task")? },
        "task_list" => TeamCall::TaskList,
        "claim_task" => TeamCall::ClaimTask { task: fields.task("task")? },
        "recall" => TeamCall::Recall {
            reference: fields.text("reference")?.trim().to_owned(),
            from: fields.number("from")?.unwrap_or(0),
        },
        "idle" => return Ok(TeamWanted::Idle),
        "todo" => return todo(fields).map(TeamWanted::Todo),
        "compact" => return fields.optional("focus").map(TeamWanted::Compact),
        _ => return Err("it is declared and nobody reads it, which is a fault of Convoke's.".to_owned()),
    };
    Ok(TeamWanted::Run(call))
}

fn spawn(fields: &Fields<'_>) -> Result<SpawnCall, String> {
    let isolation = match fields.get("isolation") {
        None => Isolation::None,
        Some(isolation) => {
            serde_json::from_value(isolation.clone()).map_err(|_| "isolation is none, copy or worktree.".to_owned())?
        }
    };
    let tools = match fields.get("tools") {
        None => None,
        Some(_) => Some(fields.list("tools", |name| Ok(name.trim().to_owned()))?),
    };
    if let Some(names) = &tools {
        let (_, unknown) = known_tools(names);
        if names.is_empty() || !unknown.is_empty() {
            let wrong =
                unknown.first().map_or("an empty list gives none".to_owned(), |name| format!("'{name}' is none"));
            return Err(format!(
                "tools are bash, view, edit, glob and grep; {wrong}. Leave tools out to give all of them."
            ));
        }
    }
    Ok(SpawnCall {
        name: fields.member("name")?,
        role: fields.text("role")?.trim().to_owned(),
        prompt: fields.text("prompt")?,
        require_plan: fields.flag("require_plan")?,
        tools,
        isolation,
    })
}

fn task_create(fields: &Fields<'_>) -> Result<TaskCreateCall, String> {
    Ok(TaskCreateCall {
        subject: fields.text("subject")?.trim().to_owned(),
        description: fields.words("description")?,
        criteria: fields.optional("criteria")?,
        blocked_by: fields.list("blocked_by", task_name)?,
        role: fields.optional("role")?.map(|role| role.trim().to_owned()),
        priority: fields.number("priority")?.unwrap_or(0),
    })
}

fn task_update(fields: &Fields<'_>, lead: bool) -> Result<TaskUpdateCall, String> {
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
    let nothing = TaskUpdateCall { task: update.task.clone(), result: update.result.clone(), ..Default::default() };
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
            Err("a task is under way when a teammate has claimed it: one that is free does so by itself, or tell one to claim it.".to_owned())
        }
        "in_progress" | "claimed" => Err("a task is under way when it is claimed: claim it with claim_task.".to_owned()),
        _ => Err("status is done, failed, pending or cancelled.".to_owned()),
    }
}

/// A task as it was said; a bare number is the task's number.
fn task_name(said: &str) -> Result<String, String> {
    let said = said.trim();
    let is_number = said.bytes().all(|b| b.is_ascii_digit());
    Ok(if is_number { format!("#{said}") } else { said.to_owned() })
}

fn todo(fields: &Fields<'_>) -> Result<Vec<TodoItem>, String> {
    let Some(items) = fields.get("items").and_then(Value::as_array) else {
        return Err("give items: the whole list, each with text and status.".to_owned());
    };
    if items.len() > MOST_ITEMS {
        return Err(format!("{} items are too many; write at most {MOST_ITEMS}, the next steps first.", items.len()));
    }
    let items = (1..).zip(items).map(|(at, item)| todo_item(at, item)).collect::<Result<Vec<_>, _>>()?;
    let under_way = items.iter().filter(|item| item.status == TodoStatus::InProgress).count();
    if under_way > 1 {
        return Err(format!("{under_way} items are in_progress; one at a time can be."));
    }
    Ok(items)
}

fn todo_item(at: usize, item: &Value) -> Result<TodoItem, String> {
    // Many models were taught the other name for it.
    let text = item.get("text").or_else(|| item.get("content")).and_then(Value::as_str).map(str::trim);
    let text = match text.filter(|text| !text.is_empty()) {
        None => return Err(format!("item {at} has no text; give text and status.")),
        Some(text) if text.len() > ITEM_BYTES => {
            return Err(format!("item {at} has {} bytes; write one line of at most {ITEM_BYTES}.", text.len()));
        }
        Some(text) => text.to_owned(),
    };
    let status = item.get("status").cloned().unwrap_or_default();
    match serde_json::from_value(status) {
        Ok(status) => Ok(TodoItem { text, status }),
        Err(_) => Err(format!("the status of item {at} is pending, in_progress or completed.")),
    }
}

/// The fields of a call, none of them unknown.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// A field that was never declared is refused: whoever sent it believes that it does something.
    fn of(name: &str, input: &'a Value, declared: &Value) -> Result<Self, String> {
        let (Some(input), Some(declared)) = (input.as_object(), declared.as_object()) else {
            return Err("send the fields of the call as one JSON object.".to_owned());
        };
        match input.keys().find(|field| !declared.contains_key(*field)) {
            None => Ok(Self(input)),
            Some(field) if declared.is_empty() => Err(format!("'{field}' is no field of it; {name} has none.")),
            Some(field) => {
                let known: Vec<&str> = declared.keys().map(String::as_str).collect();
                Err(format!("'{field}' is no field of it; it has {}.", known.join(", ")))
            }
        }
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A text that may be absent; a blank one is.
    fn optional(&self, field: &str) -> Result<Option<String>, String> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) if text.len() > MAX_LETTER => Err(format!(
                "{field} has {} bytes, and {MAX_LETTER} are the most; write the rest to a file and name its path.",
                text.len()
            )),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{field} has to be a text.")),
        }
    }

    fn text(&self, field: &str) -> Result<String, String> {
        self.optional(field)?.ok_or_else(|| format!("{field} is missing or blank; send it as a text."))
    }

    fn words(&self, field: &str) -> Result<String, String> {
        self.optional(field).map(Option::unwrap_or_default)
    }

    /// A name as people write it, with or without the sign before it.
    fn member(&self, field: &str) -> Result<String, String> {
        let said = self.text(field)?;
        let name = said.trim().trim_start_matches('@').trim();
        match name.is_empty() {
            true => Err(format!("{field} is missing or blank; send the name of a member.")),
            false => Ok(name.to_owned()),
        }
    }

    fn task(&self, field: &str) -> Result<String, String> {
        match self.get(field) {
            Some(Value::Number(number)) if number.is_u64() => Ok(format!("#{number}")),
            _ => task_name(&self.text(field).map_err(|why| format!("{why} A task's id begins with t_."))?),
        }
    }

    fn flag(&self, field: &str) -> Result<bool, String> {
        match self.get(field) {
            None => Ok(false),
            Some(_) => self.answer(field),
        }
    }

    fn answer(&self, field: &str) -> Result<bool, String> {
        self.get(field).and_then(Value::as_bool).ok_or_else(|| format!("{field} has to be true or false."))
    }

    fn number<N: TryFrom<i64>>(&self, field: &str) -> Result<Option<N>, String> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_i64().and_then(|number| N::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("{field} has to be a whole number."))
    }

    /// A list, which one text is too.
    fn list(&self, field: &str, of: impl Fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
        let wrong = || format!("{field} has to be a list of texts.");
        let one = |value: &Value| match value {
            Value::String(text) if !text.trim().is_empty() => of(text),
            Value::Number(number) if number.is_u64() => of(&number.to_string()),
            _ => Err(wrong()),
        };
        match self.get(field) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(one).collect(),
            Some(Value::String(text)) => Ok(vec![of(text)?]),
            Some(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests;
