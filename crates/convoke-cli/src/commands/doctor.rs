//! `convoke doctor`: looks at everything a session needs and says what to do about what is missing. It
//! changes nothing but a probe file, and in PostgreSQL a heartbeat, both of which it takes away again.

mod probe;
mod sandbox;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use convoke_journal::{Checked, Error, Filter};
use convoke_runtime::{Clock, lies_inside};
use serde_json::json;

use crate::args::OutputFormat;
use crate::failure::{Exit, Failure};
use crate::paths::probe;
use crate::render::{clean, count, text_columns};
use crate::settings::{ModelSource, Settings};
use crate::{keeping, open, stdio, utc};

/// For how long the journal is looked at.
const CHECKED_FOR: Duration = Duration::from_secs(30);

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One check.
#[derive(Debug)]
struct Check {
    name: &'static str,
    level: Level,
    found: String,
    todo: Option<String>,
}

fn ok(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, level: Level::Ok, found: found.into(), todo: None }
}

fn warn(name: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Check {
    Check { name, level: Level::Warn, found: found.into(), todo: Some(todo.into()) }
}

fn fail(name: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Check {
    Check { name, level: Level::Fail, found: found.into(), todo: Some(todo.into()) }
}

/// Checks everything.
pub(crate) async fn run(settings: &Settings, probe: bool) -> Result<Exit, Failure> {
    let mut checks =
        vec![bash(settings).await, git(settings).await, state_dir(settings), journal(settings).await];
    checks.extend(sandbox::checks(settings).await);
    checks.push(source(settings));
    checks.extend(model(settings));
    checks.push(endpoint(settings));
    checks.push(clock());
    checks.push(terminal());
    checks.extend(
        settings.warnings.iter().map(|warning| warn("settings", warning, "see `convoke config show`")),
    );
    let probed = if probe { Some(probe::run(settings).await?) } else { None };
    let failed = checks.iter().any(|check| check.level == Level::Fail);
    match settings.output {
        OutputFormat::Text => {
            stdio::put(&text(&checks, stdio::width()))?;
            if let Some(probed) = &probed {
                stdio::put(&format!("\n{}", probed.text()))?;
            }
        }
        OutputFormat::Json => {
            let mut object = object(&checks, failed);
            if let Some(probed) = &probed {
                object["probe"] = probed.object();
            }
            stdio::put_json(&format!("{object:#}\n"))?;
        }
        OutputFormat::Jsonl => return Err(super::no_jsonl("doctor")),
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn text(checks: &[Check], width: Option<usize>) -> String {
    const INDENT: usize = 16;
    let mut text = String::new();
    for check in checks {
        let head = format!("{:<5}{:<11}", check.level.word(), check.name);
        wrapped(&mut text, &head, INDENT, &check.found, width);
        if let Some(todo) = &check.todo {
            wrapped(&mut text, &format!("{:INDENT$}→ ", ""), INDENT + 2, todo, width);
        }
    }
    text
}

/// Adds a text behind a head, broken between words so that it stays beside it.
fn wrapped(text: &mut String, head: &str, indent: usize, said: &str, width: Option<usize>) {
    let mut line = head.to_owned();
    let mut begun = false;
    for word in clean(said).split_whitespace() {
        let full = width.is_some_and(|width| text_columns(&line) + 1 + text_columns(word) > width);
        if begun && full {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    text.push_str(&line);
    text.push('\n');
}

fn object(checks: &[Check], failed: bool) -> serde_json::Value {
    let told = checks.iter().map(
        |check| json!({"check": check.name, "level": check.level.word(), "found": check.found, "todo": check.todo}),
    );
    json!({"schema_version": 1, "ok": !failed, "checks": told.collect::<Vec<_>>()})
}

/// The first line a program says about its version.
async fn version(program: Option<PathBuf>) -> Option<String> {
    convoke_sandbox::program_version(&program?).await
}

async fn bash(settings: &Settings) -> Check {
    // What is run here is confined by nothing, so it must not be what an agent wrote.
    let path = settings.command_env.get("PATH").map(OsStr::new);
    let bash = convoke_sandbox::trusted_program("bash", path, &[&settings.dir, &settings.state_dir]);
    match version(bash).await {
        Some(found) => ok("bash", found),
        None => {
            fail("bash", "bash cannot be run", "install bash and see that it is in PATH: agents work with it")
        }
    }
}

async fn git(settings: &Settings) -> Check {
    match version(keeping::places(settings).git(&settings.dir)).await {
        Some(found) => ok("git", found),
        None => {
            warn("git", "git cannot be run", "install git: without it a resume knows less about what changed")
        }
    }
}

fn state_dir(settings: &Settings) -> Check {
    let dir = settings.state_dir.display();
    match probe(&settings.state_dir) {
        Ok(()) if lies_inside(&settings.state_dir, &settings.dir) => {
            let found =
                format!("{dir} lies in the directory that is worked in, where commands could change it");
            fail("state", found, "set XDG_STATE_HOME to a place outside")
        }
        Ok(()) if settings.state_dir.exists() => {
            ok("state", format!("{dir}: output files and unrecorded replies go here"))
        }
        Ok(()) => ok("state", format!("{dir} will be made when it is needed")),
        Err(problem) => fail("state", problem, "make it writable, or name another place with XDG_STATE_HOME"),
    }
}

async fn journal(settings: &Settings) -> Check {
    let place = settings.journal.to_string();
    let elsewhere = "make it writable, or name another place with --journal or ORCH_JOURNAL";
    if !settings.journal.outlives_the_process() {
        let todo = "name a file with --journal or ORCH_JOURNAL to be able to resume";
        return warn("journal", "in memory: nothing outlives the process", todo);
    }
    let file = settings.journal.file();
    if file.is_some_and(|file| lies_inside(file, &settings.dir)) {
        let found =
            format!("{place} lies in the directory that is worked in, where commands could change it");
        return fail("journal", found, "name a file outside of it with --journal or ORCH_JOURNAL");
    }
    if let Some(file) = file.filter(|file| !file.exists()) {
        return match probe(file.parent().unwrap_or(file)) {
            Ok(()) => ok("journal", format!("{place} will be made by the first session")),
            Err(problem) => fail("journal", problem, elsewhere),
        };
    }
    let journal = match open::quiet_journal(settings).await {
        Ok(journal) => journal,
        Err(failure) => return fail("journal", failure.message, elsewhere),
    };
    let looked = async {
        let checked = journal.check(CHECKED_FOR).await?;
        let streams = journal.list(&Filter::default()).await?.len();
        // A SQLite file is not written to: another process that is stopped may hold the turn to write.
        let written = match file {
            Some(file) => {
                rustix::fs::access(file, rustix::fs::Access::WRITE_OK).map_err(|error| error.to_string())
            }
            None => journal.heartbeat().await.map_err(|error| error.to_string()),
        };
        Ok((checked, streams, written))
    };
    let looked: Result<_, convoke_journal::Error> = looked.await;
    let closed = journal.close().await;
    match looked.and_then(|looked| closed.map(|()| looked)) {
        Ok((_, _, Err(problem))) => {
            fail("journal", format!("{place} cannot be written to: {problem}"), elsewhere)
        }
        Ok((checked, streams, Ok(()))) => {
            let number = u32::try_from(streams).unwrap_or(u32::MAX);
            let format = convoke_journal::FORMAT;
            let streams = count(number, "stream");
            let looked = if checked == Checked::Whole { "" } else { "; too large to be looked at whole" };
            ok("journal", format!("{place}: format {format}, {streams}, writable{looked}"))
        }
        Err(error @ Error::Corrupt { .. }) => {
            let todo = "keep the file and what lies beside it, restore a copy, or name another place with \
                --journal or ORCH_JOURNAL";
            fail("journal", error.to_string(), todo)
        }
        Err(error) => fail("journal", error.to_string(), elsewhere),
    }
}

fn source(settings: &Settings) -> Check {
    let origin = |key: &str| settings.origin(key).map(ToString::to_string).unwrap_or_default();
    match &settings.source {
        ModelSource::Offline => ok("source", "the built-in offline model: rules, no intelligence, no cost"),
        ModelSource::Nothing => {
            let failure = open::nobody_answers();
            warn("source", failure.message, failure.hints.join("; "))
        }
        ModelSource::Api { base_url, key, bearer } => {
            let as_whom = match (key, bearer) {
                (Some(_), _) => format!("with the API key of {}", origin("auth.key")),
                (None, Some(_)) => format!("with the bearer token of {}", origin("auth.bearer")),
                (None, None) => "without credentials".to_owned(),
            };
            let auth = convoke_claude::Auth { key: key.clone(), bearer: bearer.clone() };
            match convoke_claude::Client::new(settings.client_config(base_url.clone(), auth)) {
                Ok(_) => ok(
                    "source",
                    format!("{} {as_whom} (called only with --probe)", shown_url(settings, base_url)),
                ),
                Err(error) => fail(
                    "source",
                    error.to_string(),
                    "`convoke config show` says where each setting came from",
                ),
            }
        }
    }
}

/// The base URL as `config show` prints it: without a password.
fn shown_url(settings: &Settings, base_url: &str) -> String {
    let row = settings.rows.iter().find(|row| row.key == "base_url");
    row.and_then(|row| row.value.clone()).unwrap_or_else(|| base_url.to_owned())
}

fn model(settings: &Settings) -> Vec<Check> {
    let row = settings.model_row();
    let effort = settings.effort.as_deref().unwrap_or("the model's own");
    let found = format!(
        "{}: window {}, replies up to {} tokens, effort {effort}",
        row.id, row.window, row.max_output
    );
    let mut assumptions = row.assumptions();
    let advice = assumptions.pop();
    let mut checks = match advice {
        None => vec![ok("model", found)],
        Some(advice) => vec![warn("model", format!("{found}. {}", assumptions.join(" ")), advice)],
    };
    checks.push(match &row.prices {
        Some(prices) => {
            let rates = prices.rates(0);
            let dollars =
                |nano: Option<u64>| nano.map_or("?".to_owned(), |nano| format!("${}", nano as f64 / 1_000.0));
            let input = rates.map(|rates| rates.input);
            let output = rates.map(|rates| rates.output);
            let found = format!(
                "{} in, {} out per million tokens, as of {}",
                dollars(input),
                dollars(output),
                prices.date
            );
            ok("prices", found)
        }
        None => {
            let todo = format!("state them under [models.\"{}\"] in your configuration", row.id);
            warn("prices", format!("the prices of {} are not known", row.id), todo)
        }
    });
    checks
}

fn endpoint(settings: &Settings) -> Check {
    let row = &settings.endpoint();
    let parts = [
        ("system messages", row.system_role),
        ("Anthropic's tools", row.anthropic_tools),
        ("cache marks", row.cache_marks),
        ("thinking", row.thinking),
        ("effort", row.effort),
    ];
    let known: Vec<&str> =
        parts.iter().filter(|(_, understood)| *understood).map(|(name, _)| *name).collect();
    let known = if known.is_empty() {
        "nothing beyond the oldest form of the API".to_owned()
    } else {
        known.join(", ")
    };
    let sure =
        if row.name == "gateway" { "is sent, and what it refuses is left out:" } else { "understands" };
    ok("endpoint", format!("{}: {sure} {known}", row.name))
}

fn clock() -> Check {
    // The day this was written: no clock that is right can be before it.
    const EARLIEST: u64 = 1_760_000_000_000;
    let now = Clock::system().now();
    let found = format!("{} UTC", utc::minute(now));
    match now < EARLIEST {
        false => ok("clock", found),
        true => fail(
            "clock",
            format!("{found}, which is in the past"),
            "set the clock: certificates and leases go by it",
        ),
    }
}

fn terminal() -> Check {
    let end = |terminal: bool| if terminal { "terminal" } else { "pipe" };
    let stdout = end(std::io::stdout().is_terminal());
    let stderr = end(std::io::stderr().is_terminal());
    let width = stdio::width().map_or("any".to_owned(), |columns| columns.to_string());
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let colour = if colour { "" } else { ", no colour (NO_COLOR)" };
    ok("terminal", format!("stdout {stdout}, stderr {stderr}, width {width}{colour}"))
}
