//! `convoke export`: a team, its mail and its tasks as the files that others know: `.team/config.json`,
//! `.team/inbox/NAME.jsonl` and `.tasks/task_N.json`. They are a copy: Convoke takes nothing from them, and
//! looking at mail this way takes none of it.

mod files;

use convoke_kernel::{Board, LEAD, Letter, MemberState, Task, TaskState};
use convoke_runtime::MemberRow;
use serde_json::{Value, json};

use self::files::{Files, Written};
use super::no_jsonl;
use super::team::{TeamTarget, kind_of, owner_of};
use crate::args::{FilesArgs, OutputFormat};
use crate::failure::{Exit, Failure};
use crate::render::clean;
use crate::settings::Settings;
use crate::stdio;

/// The name of the team, in words that others know.
const TEAM: &str = "default";

/// Writes the files.
pub(crate) async fn run(settings: &Settings, args: &FilesArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("export"));
    }
    let mut files = Files::new(&args.to, &settings.dir, args.force)?;
    let at = TeamTarget::find(settings, args.session.as_deref()).await?;
    let rows = at.team.members(&at.session).await?;
    let board = at.team.board(&at.session).await?;
    files.add(".team/config.json", pretty(&config(&rows)));
    let names =
        rows.iter().map(|row| row.member.name.as_str()).chain([LEAD].into_iter().filter(|_| rows.is_empty()));
    for name in names {
        let letters = at.team.waiting(&at.session, name).await?;
        let lines: String = letters.iter().map(|letter| format!("{}\n", inbox_line(letter))).collect();
        files.add(format!(".team/inbox/{name}.jsonl"), lines);
    }
    for task in board.tasks() {
        files.add(format!(".tasks/task_{}.json", task.number), pretty(&task_file(&board, task)));
    }
    let Written { dir, files, removed, left } = files.write(at.session.as_str())?;
    if settings.output == OutputFormat::Json {
        let object = json!({
            "schema_version": 1,
            "run": at.session.as_str(),
            "dir": dir,
            "files": files,
            "removed": removed,
            "left": left,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
        return Ok(Exit::Done);
    }
    for name in &left {
        stdio::tell(&clean(&format!("left alone, it was changed since the last export: {name}\n")));
    }
    if !settings.quiet {
        let gone =
            if removed.is_empty() { String::new() } else { format!(", {} old ones removed", removed.len()) };
        stdio::tell(&clean(&format!(
            "{} files of {} are in {}{gone}\n",
            files.len(),
            at.session,
            dir.display()
        )));
    }
    Ok(Exit::Done)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The roster: teammates alone, in the three states that this form knows; `state` has the exact word.
fn config(rows: &[MemberRow]) -> Value {
    let teammates = rows.iter().filter(|row| row.member.name != LEAD);
    let member = |row: &MemberRow| {
        let name = &row.member.name;
        let role = &row.member.role;
        json!({"name": name, "role": role, "status": status(row.state), "state": row.state.word(), "agent": row.member.agent})
    };
    json!({"team_name": TEAM, "members": teammates.map(member).collect::<Vec<_>>()})
}

fn status(state: MemberState) -> &'static str {
    match state {
        MemberState::Starting | MemberState::Working | MemberState::Waiting | MemberState::Stopping => {
            "working"
        }
        MemberState::Idle | MemberState::Failed => "idle",
        MemberState::Stopped => "shutdown",
    }
}

/// One line of an inbox. The first four members are those that others know.
fn inbox_line(letter: &Letter) -> Value {
    let mut line = json!({
        "type": kind_of(letter.kind),
        "from": letter.from,
        "content": letter.text,
        "timestamp": seconds(letter.at),
        "id": letter.id,
        "to": letter.to,
    });
    let more = [
        ("urgent", letter.urgent.then(|| json!(true))),
        ("request_id", letter.request.as_ref().map(|request| json!(request))),
        ("approve", letter.approve.map(|approve| json!(approve))),
        ("task", letter.task.as_ref().map(|task| json!(task))),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            line[name] = value;
        }
    }
    line
}

/// Seconds since 1970, with their fraction.
fn seconds(at: u64) -> f64 {
    at as f64 / 1_000.0
}

fn task_file(board: &Board, task: &Task) -> Value {
    let (status, why) = match &task.state {
        TaskState::Pending => ("pending", None),
        TaskState::Claimed { .. } => ("in_progress", None),
        TaskState::Done { .. } => ("completed", None),
        TaskState::Failed { why, .. } => ("failed", Some(why)),
    };
    let blocked_by: Vec<u64> = board.open_dependencies(task).iter().map(|task| task.number).collect();
    let mut file = json!({
        "id": task.number,
        "subject": task.subject,
        "description": task.description,
        "status": status,
        "blockedBy": blocked_by,
        "owner": owner_of(&task.state),
        "task": task.id,
        "result": task.result,
    });
    if let Some(why) = why {
        file["why"] = json!(why);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_in_the_three_words_of_the_file() {
        let check = |state: MemberState, expected: &str| assert_eq!(status(state), expected);
        check(MemberState::Working, "working");
        check(MemberState::Starting, "working");
        check(MemberState::Idle, "idle");
        check(MemberState::Stopped, "shutdown");
    }

    #[test]
    fn a_time_is_seconds_with_their_fraction() {
        assert_eq!(json!(seconds(1_794_776_640_250)).to_string(), "1794776640.25");
    }
}
