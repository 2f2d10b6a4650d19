//! `convoke tasks`: the board of a session, for people and scripts. What a script needs of a command (an id,
//! a token) is alone on stdout. Whether something is allowed is the board's business: what it refuses is told
//! as it says it.

mod show;

use std::path::Path;

use convoke_kernel::{Board, Claimant, MemberName, NewTask, PERSON, Standing, Task, TaskId, TaskState};
use serde_json::{Value, json};

use super::table::{Column, Table};
use super::team::{TeamTarget, owner_of, said, short, state_of, stdin_or, waits_for};
use crate::args::{OutputFormat, TaskAddArgs, TaskClaimArgs, TaskFinishArgs, TaskNamedArgs, TasksCommand};
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::named::read_text;
use crate::render::clean;
use crate::settings::Settings;
use crate::{stdio, utc};

/// Does what is asked about a board.
pub(crate) async fn run(settings: &Settings, command: TasksCommand) -> Result<Exit, Failure> {
    match command {
        TasksCommand::List(of) => return list(settings, of.given()).await,
        TasksCommand::Show(args) => return show::run(settings, &args).await,
        _ if settings.output == OutputFormat::Jsonl => return Err(no_jsonl("tasks")),
        TasksCommand::Add(args) => add(settings, &args).await?,
        TasksCommand::Claim(args) => claim(settings, &args).await?,
        TasksCommand::Finish(args) => finish(settings, &args).await?,
        TasksCommand::Cancel(args) => {
            let (at, task) = named(settings, &args).await?;
            let task = at.team.cancel(&at.session, &task, PERSON).await?;
            report(settings, &at, &task, None, "cancelled")?;
        }
        TasksCommand::Retry(args) => {
            let (at, task) = named(settings, &args).await?;
            let task = at.team.retry(&at.session, &task, PERSON).await?;
            report(settings, &at, &task, None, "to be tried again")?;
        }
    }
    Ok(Exit::Done)
}

async fn add(settings: &Settings, args: &TaskAddArgs) -> Result<(), Failure> {
    let description = match (&args.description, &args.description_file) {
        (Some(text), _) => stdin_or(text, "the description")?,
        (None, Some(file)) => from_file(file, &settings.dir)?,
        (None, None) => String::new(),
    };
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let board = at.team.board(&at.session).await?;
    let blocked_by = args.blocked_by.iter().map(|said| find(&board, said)).collect::<Result<_, _>>()?;
    let subject = args.subject.clone();
    let criteria = args.criteria.clone();
    let role = args.role.clone();
    let task = NewTask { subject, description, criteria, blocked_by, role, priority: args.priority };
    let task = at.team.add_task(&at.session, task, PERSON).await?;
    let said = format!("on the board of {}", at.session);
    report(settings, &at, &task, Some(task.id.to_string()), &said)
}

async fn claim(settings: &Settings, args: &TaskClaimArgs) -> Result<(), Failure> {
    let claimant = holder(&args.name, &args.role)?;
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let roster = at.team.roster(&at.session).await?;
    let member =
        roster.member(&args.name).filter(|member| !matches!(member.standing, Standing::Stopped { .. }));
    if let Some(member) = member {
        let message =
            format!("{} is a member of the team ({}) and claims for itself", member.name, member.role);
        return Err(Failure::failed(message).hint("choose a name that no member has"));
    }
    let task = find(&at.team.board(&at.session).await?, &args.task)?;
    let task = at.team.claim(&at.session, &task, claimant, args.lease).await?;
    let (token, until) = match &task.state {
        TaskState::Claimed { token, until, .. } => (*token, *until),
        TaskState::Pending | TaskState::Done { .. } | TaskState::Failed { .. } => (0, 0),
    };
    let said = format!("claimed as {} until {} UTC, token {token}", args.name, utc::second(until));
    report(settings, &at, &task, Some(token.to_string()), &said)
}

async fn finish(settings: &Settings, args: &TaskFinishArgs) -> Result<(), Failure> {
    let holder = holder(&args.name, "")?;
    let result = match (&args.result, &args.failed) {
        (_, Some(why)) => Err(said(why, "the reason")?),
        (Some(text), None) => Ok(stdin_or(text, "the result")?),
        (None, None) => Ok(String::new()),
    };
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let task = find(&at.team.board(&at.session).await?, &args.task)?;
    let word = if result.is_ok() { "done" } else { "failed" };
    let task = at.team.finish(&at.session, &task, holder, Some(args.token), result).await?;
    report(settings, &at, &task, None, word)
}

/// The claimant from outside of the team: a person, or a person's script.
fn holder(name: &str, role: &str) -> Result<Claimant, Failure> {
    if name != PERSON {
        name.parse::<MemberName>().map_err(|error| Failure::usage(format!("--as: {error}")))?;
    }
    Ok(Claimant { name: name.to_owned(), agent: None, role: role.to_owned() })
}

async fn named(settings: &Settings, args: &TaskNamedArgs) -> Result<(TeamTarget, TaskId), Failure> {
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let task = find(&at.team.board(&at.session).await?, &args.task)?;
    Ok((at, task))
}

/// The task that a person means. If there is none, the board's refusal says why.
fn find(board: &Board, said: &str) -> Result<TaskId, Failure> {
    board.find(said).map(|task| task.id.clone()).map_err(|refusal| Failure::failed(refusal.to_string()))
}

fn from_file(path: &Path, tree: &Path) -> Result<String, Failure> {
    let cannot =
        |error| Failure::usage(format!("the description {} cannot be read: {error}", path.display()));
    read_text(path, tree).map_err(cannot)
}

/// Says what became of a task. Alone on stdout is what a script goes on with, if there is anything.
fn report(
    settings: &Settings,
    at: &TeamTarget,
    task: &Task,
    answer: Option<String>,
    said: &str,
) -> Result<(), Failure> {
    if settings.output == OutputFormat::Json {
        let object = json!({"schema_version": 1, "run": at.session.as_str(), "task": object(task, None)});
        stdio::put_json(&format!("{object:#}\n"))?;
        return Ok(());
    }
    if let Some(answer) = answer {
        stdio::put(&format!("{answer}\n"))?;
    }
    if !settings.quiet {
        stdio::tell(&clean(&format!("#{} {} ({}): {said}\n", task.number, task.subject, task.id)));
    }
    Ok(())
}

async fn list(settings: &Settings, given: Option<&str>) -> Result<Exit, Failure> {
    let at = TeamTarget::find(settings, given).await?;
    let board = at.team.board(&at.session).await?;
    let tasks = board.tasks();
    match settings.output {
        OutputFormat::Json => {
            let list: Vec<Value> = tasks.iter().map(|task| object(task, Some(&board))).collect();
            let all = json!({"schema_version": 1, "run": at.session.as_str(), "tasks": list});
            stdio::put_json(&format!("{all:#}\n"))?;
        }
        OutputFormat::Jsonl => {
            let lines = tasks.iter().map(|task| format!("{}\n", object(task, Some(&board))));
            stdio::put_json(&lines.collect::<String>())?;
        }
        OutputFormat::Text if tasks.is_empty() => {
            stdio::tell(&format!("there are no tasks on the board of {}\n", at.session));
        }
        OutputFormat::Text => {
            stdio::put(&table(&board).render(stdio::width()))?;
        }
    }
    Ok(Exit::Done)
}

/// A task for programs. What it waits for is known where the board is.
pub(super) fn object(task: &Task, board: Option<&Board>) -> Value {
    let (token, until, agent) = match &task.state {
        TaskState::Claimed { token, until, agent, .. } => (Some(*token), Some(*until), agent.as_ref()),
        TaskState::Pending | TaskState::Done { .. } | TaskState::Failed { .. } => (None, None, None),
    };
    let (ended_at, why) = match &task.state {
        TaskState::Done { at, .. } => (Some(*at), None),
        TaskState::Failed { at, why, .. } => (Some(*at), Some(why)),
        TaskState::Pending | TaskState::Claimed { .. } => (None, None),
    };
    let mut object = json!({
        "task": task.id,
        "number": task.number,
        "subject": task.subject,
        "description": task.description,
        "criteria": task.criteria,
        "state": state_of(&task.state),
        "owner": owner_of(&task.state),
        "agent": agent,
        "token": token,
        "until": until,
        "role": task.role,
        "priority": task.priority,
        "blocked_by": task.blocked_by,
        "result": task.result,
        "why": why,
        "attempts": task.attempts,
        "by": task.by,
        "at": task.at,
        "ended_at": ended_at,
    });
    if let Some(board) = board {
        object["waits_for"] = board.open_dependencies(task).iter().map(|task| json!(task.id)).collect();
    }
    object
}

fn table(board: &Board) -> Table {
    let mut table = Table::new(vec![
        Column::kept("#").right(),
        Column::dropped("TASK", 3),
        Column::kept("STATE"),
        Column::dropped("OWNER", 4),
        Column::dropped("ROLE", 1),
        Column::dropped("PRIORITY", 0).right(),
        Column::dropped("WAITS FOR", 2),
        Column::cut("SUBJECT"),
    ]);
    for task in board.tasks() {
        table.row(vec![
            task.number.to_string(),
            short(task.id.as_str()),
            state_of(&task.state).to_owned(),
            owner_of(&task.state).unwrap_or_default().to_owned(),
            task.role.clone().unwrap_or_default(),
            task.priority.to_string(),
            waits_for(board, task),
            task.subject.clone(),
        ]);
    }
    table
}
