//! What `convoke sessions show` says of workflow programs: a line and a table of calls for each, the whole
//! value of one, all that it logged, or one call with its prompt, its answer and the agents that gave it.
//! Nothing of a value is ever cut.

use convoke_journal::Journal;
use convoke_kernel::{CallAnswer, CallState, ItemStatus, Program, ProgramEnd, ProgramSaid, ProgramSummary};
use serde_json::{Value, json};

use crate::args::OutputFormat;
use crate::catalog::ListedSession;
use crate::commands::table::{Column, Table};
use crate::failure::{Exit, Failure};
use crate::render::{clean, dollars, tokens};
use crate::report::{calls_line, value_text};
use crate::settings::Settings;
use crate::stdio;
use crate::work;

/// Prints the whole value that a program returned.
pub(super) async fn value(
    settings: &Settings,
    journal: &Journal,
    listed: &ListedSession,
    given: &str,
) -> Result<Exit, Failure> {
    let summary = listed.program(given)?;
    let program = work::program(journal, &summary.run).await?;
    let id = &summary.run;
    let text = match program.end() {
        Some(ProgramEnd::Returned { value, .. }) => value.as_str().to_owned(),
        Some(ProgramEnd::Failed { kind, message }) => {
            return Err(Failure::failed(format!("{id} returned nothing: it failed ({kind}): {message}")));
        }
        None => {
            return Err(Failure::failed(format!("{id} has not returned"))
                .hint(format!("`convoke sessions show {}` says where it stands", listed.session)));
        }
    };
    let value: Option<Value> = serde_json::from_str(&text).ok();
    match settings.output {
        OutputFormat::Text => stdio::put_more(&format!("{}\n", printable(&value_text(value.as_ref()))))?,
        OutputFormat::Json | OutputFormat::Jsonl => stdio::put_json(&format!("{text}\n"))?,
    };
    Ok(Exit::Done)
}

/// Prints what a program said in its last pass: the phases it began and the lines it logged, in order.
pub(super) async fn log(
    settings: &Settings,
    journal: &Journal,
    listed: &ListedSession,
    given: &str,
) -> Result<Exit, Failure> {
    let summary = listed.program(given)?;
    let program = work::program(journal, &summary.run).await?;
    let line = |said: &ProgramSaid| match said {
        ProgramSaid::Phase(title) => format!("phase: {title}\n"),
        ProgramSaid::Log(text) => format!("{text}\n"),
    };
    match settings.output {
        OutputFormat::Text => {
            stdio::put_more(&printable(&program.said().iter().map(line).collect::<String>()))?
        }
        OutputFormat::Json | OutputFormat::Jsonl => {
            let object = json!({"schema_version": 1, "run": summary.run, "pass": program.pass(), "said": program.said()});
            stdio::put_json(&format!("{object:#}\n"))?
        }
    };
    Ok(Exit::Done)
}

/// Prints one call of a program.
pub(super) async fn call(
    settings: &Settings,
    journal: &Journal,
    listed: &ListedSession,
    (given, number): (&str, u32),
) -> Result<Exit, Failure> {
    let summary = listed.program(given)?;
    let program = work::program(journal, &summary.run).await?;
    let Some(call) = program.call(number) else {
        let count = program.calls().count();
        return Err(Failure::usage(format!("there is no call {number} in {}: it has {count}", summary.run)));
    };
    match settings.output {
        OutputFormat::Text => stdio::put_more(&call_text(call))?,
        OutputFormat::Json | OutputFormat::Jsonl => {
            let object = json!({"schema_version": 1, "run": summary.run, "call": object(call)});
            stdio::put_json(&format!("{object:#}\n"))?
        }
    };
    Ok(Exit::Done)
}

/// A terminal does not obey what agents wrote; everything else gets it as it is.
fn printable(text: &str) -> String {
    if stdio::is_shown() { clean(text) } else { text.to_owned() }
}

/// The programs of a session, with their calls.
pub(super) async fn overview(
    journal: &Journal,
    listed: &ListedSession,
    width: Option<usize>,
) -> Result<String, Failure> {
    let mut text = String::new();
    for summary in &listed.programs {
        text.push_str(&line(summary));
        text.push_str(&calls(&work::program(journal, &summary.run).await?, width));
    }
    Ok(text)
}

/// `workflow review wf_… · complete · 12 agent calls: 12 ok · 3 served from before · 40.1k tokens · $0.12`.
fn line(summary: &ProgramSummary) -> String {
    let status = summary.status.map_or("open", |status| status.word());
    let mut parts = vec![format!("workflow {} {}", summary.program, summary.run), status.to_owned()];
    parts.push(calls_line(&summary.counts));
    if summary.counts.reused > 0 {
        parts.push(format!("{} served from before", summary.counts.reused));
    }
    if summary.pass > 1 {
        parts.push(format!("pass {}", summary.pass));
    }
    let usage = &summary.usage;
    parts.push(format!("{} tokens", tokens(usage.prompt_tokens().saturating_add(usage.output_tokens))));
    parts.push(dollars(summary.cost_nano));
    clean(&parts.join(" · ")).replace('\n', " ") + "\n"
}

fn calls(program: &Program, width: Option<usize>) -> String {
    let columns = vec![
        Column::kept("CALL").right(),
        Column::kept("KIND"),
        Column::dropped("PHASE", 1),
        Column::kept("STATUS"),
        Column::dropped("AGENT", 0),
        Column::cut("LABEL"),
    ];
    let mut table = Table::new(columns);
    for call in program.calls() {
        let made = &call.made;
        let phase = made.phase.clone().unwrap_or_default();
        let phase =
            made.within.as_ref().map_or_else(|| phase.clone(), |within| format!("▸ {within}: {phase}"));
        let agents = call.result.as_ref().map(|result| result.agents.as_slice()).unwrap_or_default();
        table.row(vec![
            made.call.to_string(),
            made.kind.word().to_owned(),
            phase,
            status(call),
            agents.first().map(ToString::to_string).unwrap_or_default(),
            made.label.clone(),
        ]);
    }
    if program.calls().next().is_none() { String::new() } else { table.render(width) }
}

/// How a call stands, in a few words.
fn status(call: &CallState) -> String {
    let Some(result) = &call.result else { return if call.cleared { "cleared" } else { "open" }.to_owned() };
    let word = match (&result.status, &result.degraded) {
        (ItemStatus::Ok, None) => "ok",
        (ItemStatus::Ok, Some(_)) => "degraded",
        (ItemStatus::Failed { .. }, _) => "failed",
        (ItemStatus::Skipped { .. }, _) if result.by_person => "skipped",
        (ItemStatus::Skipped { .. }, _) => "not done",
    };
    let served = result.reused.is_some() || result.kept.is_some();
    if served { format!("{word}, served") } else { word.to_owned() }
}

fn call_text(call: &CallState) -> String {
    let want: Value = serde_json::from_str(call.made.want.as_str()).unwrap_or_default();
    let mut text = format!(
        "call {} · {} · {} · {}\n",
        call.made.call,
        call.made.kind.word(),
        status(call),
        call.made.label
    );
    if let Some(result) = &call.result {
        for agent in &result.agents {
            text.push_str(&format!("agent {agent}\n"));
        }
        text.extend(result.note.iter().map(|note| format!("note: {note}\n")));
        if !matches!(result.status, ItemStatus::Ok) || result.degraded.is_some() {
            text.push_str(&format!("why: {}\n", call.why_lost()));
        }
    }
    let (asked, options) = asked(want);
    text.push_str(&format!("\n{asked}\n"));
    if !options.is_empty() {
        text.push_str(&format!("\noptions: {}\n", Value::Object(options)));
    }
    let answer = call.result.as_ref().map(|result| match &result.answer {
        CallAnswer::Value(value) => value_text(serde_json::from_str(value.as_str()).ok().as_ref()),
        CallAnswer::Throw(message) => format!("(thrown) {message}"),
        CallAnswer::Program { name, .. } => format!("(the program {name}, run inline)"),
    });
    if let Some(answer) = answer {
        text.push_str(&format!("\nanswer:\n{answer}\n"));
    }
    printable(&text)
}

/// What is asked for, and how.
fn asked(want: Value) -> (String, serde_json::Map<String, Value>) {
    let Value::Object(mut want) = want else { return (String::new(), serde_json::Map::new()) };
    want.remove("want");
    let named = ["prompt", "command", "question", "finding", "name", "script_path", "ms"];
    let asked = named.iter().find_map(|name| want.remove(*name));
    (value_text(asked.as_ref()), want)
}

/// A call for programs.
fn object(call: &CallState) -> Value {
    let want: Value = serde_json::from_str(call.made.want.as_str()).unwrap_or_default();
    let result = call.result.as_ref();
    let (answer, thrown) = match result.map(|result| &result.answer) {
        Some(CallAnswer::Value(value)) => (serde_json::from_str::<Value>(value.as_str()).ok(), None),
        Some(CallAnswer::Throw(message)) => (None, Some(message.clone())),
        Some(CallAnswer::Program { .. }) | None => (None, None),
    };
    json!({
        "call": call.made.call,
        "kind": call.made.kind.word(),
        "label": call.made.label,
        "phase": call.made.phase,
        "within": call.made.within,
        "status": status(call),
        "want": want,
        "answer": answer,
        "thrown": thrown,
        "agents": result.map(|result| result.agents.clone()).unwrap_or_default(),
        "note": result.and_then(|result| result.note.clone()),
    })
}
