//! `spawn_teammate`, `list_teammates`, `request_shutdown` and `answer_shutdown`: who belongs to a team.

use serde_json::{Value, json};

use super::{SpawnCall, TeamCall, run};
use crate::confinement::Isolation;
use crate::tools::fields::Fields;
use crate::tools::shown::{self, CallInput, Words};
use crate::tools::table::{Audience, Reading, Tool, closed};
use crate::tools::{Tools, known_tools};

pub(in crate::tools) static SPAWN_TEAMMATE: Tool = Tool {
    name: "spawn_teammate",
    audience: Audience::TeamLead,
    parts: &[],
    declare: |_| spawn_teammate(),
    read: Reading::Fields(|fields, _| spawn(fields).map(|call| run(TeamCall::Spawn(call)))),
    words: spawn_words,
    starts: Some(|input| input["name"].as_str().map(str::to_owned)),
};

fn spawn_teammate() -> Option<Value> {
    closed(
        SPAWN_TEAMMATE.name,
        "Makes a teammate: an agent with a name, a role, mail and a history of its own that lives on until \
         it is stopped. Use it for work that goes on over several rounds, needs a dialogue, or is claimed \
         piece by piece from the board; for one question or one piece of work use task, which costs less \
         and ends by itself. It comes back at once and the teammate begins with the prompt, so the prompt \
         has to say everything: it sees nothing of this conversation. What its work comes to is sent to you \
         as a letter. While it has something to do it costs like any agent; at rest it costs nothing. The \
         name of a living teammate cannot be given again: write to it instead.\n\n\
         Teammates work in this directory, all at the same time, unless isolation says otherwise: give them \
         files of their own, or a worktree each.",
        json!({
            "name": {"type": "string", "description": "A small letter and then up to 31 of a-z, 0-9, - and \
                _."},
            "role": {"type": "string", "description": "What it is there for, in a word or two. Tasks that \
                want a role are claimed by teammates that have it."},
            "prompt": {"type": "string", "description": "What it is told first: its work, where, and what to \
                bring back."},
            "require_plan": {"type": "boolean", "description": "True lets it only read until you have \
                approved its plan."},
            "tools": {
                "type": "array",
                "items": {"type": "string", "enum": Tools::all().names()},
                "description": "The only hands it is given; all of them if absent."
            },
            "isolation": {"type": "string", "enum": ["none", "copy", "worktree"], "description": "Where it \
                works: in this directory (none, also if absent), in a throwaway copy, or in a git worktree \
                of its own whose changes are kept on a branch."}
        }),
        &["name", "role", "prompt"],
    )
}

fn spawn_words(call: &CallInput<'_>) -> Words {
    let line = format!("{} {} ({})", call.name, call.told("name"), call.told("role"));
    Words { line: Some(line), ..Words::default() }
}

fn spawn(fields: &Fields<'_>) -> Result<SpawnCall, String> {
    let isolation = match fields.get("isolation") {
        None => Isolation::None,
        Some(isolation) => serde_json::from_value(isolation.clone())
            .map_err(|_| "isolation is none, copy or worktree.".to_owned())?,
    };
    let tools = match fields.get("tools") {
        None => None,
        Some(_) => Some(fields.list("tools", |name| Ok(name.trim().to_owned()))?),
    };
    if let Some(names) = &tools {
        let (_, unknown) = known_tools(names);
        if names.is_empty() || !unknown.is_empty() {
            let wrong = unknown
                .first()
                .map_or("an empty list gives none".to_owned(), |name| format!("'{name}' is none"));
            let known = Tools::all().names();
            let (last, others) = known.split_last().unwrap_or((&"", &[]));
            return Err(format!(
                "tools are {} and {last}; {wrong}. Leave tools out to give all of them.",
                others.join(", ")
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

pub(in crate::tools) static LIST_TEAMMATES: Tool = Tool {
    name: "list_teammates",
    audience: Audience::Team,
    parts: &[],
    declare: |_| list_teammates(),
    read: Reading::Fields(|_, _| Ok(run(TeamCall::ListTeammates))),
    words: shown::as_it_is,
    starts: None,
};

fn list_teammates() -> Option<Value> {
    closed(
        LIST_TEAMMATES.name,
        "Shows who belongs to the team: name, role, what each is doing, the task in its hands, letters that \
         wait for it. Not for waiting: results come as letters.",
        json!({}),
        &[],
    )
}

pub(in crate::tools) static REQUEST_SHUTDOWN: Tool = Tool {
    name: "request_shutdown",
    audience: Audience::TeamLead,
    parts: &[],
    declare: |_| request_shutdown(),
    read: Reading::Fields(|fields, _| {
        let name = fields.member("name")?;
        Ok(run(TeamCall::RequestShutdown { name, reason: fields.words("reason")? }))
    }),
    words: shown::as_it_is,
    starts: None,
};

fn request_shutdown() -> Option<Value> {
    closed(
        REQUEST_SHUTDOWN.name,
        "Asks a teammate to stop. It ends or gives back what it holds and answers by letter; if it does not \
         answer in time, Convoke stops it, gives its task back to the board and tells you. A teammate at \
         rest costs nothing, so ask only when it is not needed any more.",
        json!({
            "name": {"type": "string", "description": "Who is to stop."},
            "reason": {"type": "string", "description": "Why, for it to read."}
        }),
        &["name"],
    )
}

pub(in crate::tools) static ANSWER_SHUTDOWN: Tool = Tool {
    name: "answer_shutdown",
    audience: Audience::Teammate,
    parts: &[],
    declare: |_| answer_shutdown(),
    read: Reading::Fields(|fields, _| {
        let request = fields.optional("request")?.map(|request| request.trim().to_owned());
        let approve = fields.answer("approve")?;
        Ok(run(TeamCall::AnswerShutdown { request, approve, reason: fields.words("reason")? }))
    }),
    words: shown::as_it_is,
    starts: None,
};

fn answer_shutdown() -> Option<Value> {
    closed(
        ANSWER_SHUTDOWN.name,
        "Answers a request to stop. If you agree, end the task in your hands or give it back first and tell \
         the lead what is left: you stop when this piece of work ends. If you have to finish something, say \
         what.",
        json!({
            "approve": {"type": "boolean", "description": "True if you stop."},
            "reason": {"type": "string", "description": "Why not, or what is left."},
            "request": {"type": "string", "description": "The request, as its letter names it (m_…); the one \
                that waits if absent."}
        }),
        &["approve"],
    )
}
