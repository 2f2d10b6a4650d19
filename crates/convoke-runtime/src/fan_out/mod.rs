//! A workflow's run: who works, who verifies, what is remembered. What follows from what is the kernel's business
//! (`convoke_kernel::Run`); here it is committed and done.

mod check;
mod keys;
mod rerun;
mod results;
mod runner;
mod seek;
mod tree;

use convoke_journal::StreamId;
use convoke_kernel::{By, Consent, NO_CONSENT, Run, RunEvent, RunId, ToolResult, normalise};
use serde_json::Value;

use crate::asker::Question;
use crate::children::Parent;
use crate::error::Error;
use crate::runtime::Config;
use crate::stop::StopLevel;
pub(crate) use check::citations as check_citations;
pub(crate) use keys::{Remembered, content_key};
pub(crate) use results::voter_result;
use runner::Runner;
pub(crate) use seek::still_stands;
pub(crate) use tree::{Trace, Tree};

/// Runs a workflow, or goes on with it. `None` when it was stopped before its end.
pub(crate) async fn workflow(
    parent: &Parent,
    call: &str,
    subtasks: Option<Value>,
    consent: Consent,
) -> Result<Option<ToolResult>, Error> {
    let run = RunId::derived(&["workflow", parent.id.as_str(), call]);
    let mut runner = Runner::own(parent, run).await?;
    let result = match begin(parent, &mut runner, call, subtasks, consent).await {
        Ok(Begun::Stands) => runner.drive().await,
        Ok(Begun::Refused(why)) => Ok(Some(why)),
        Ok(Begun::Stopped) => Ok(None),
        Err(error) => Err(error),
    };
    if !matches!(result, Err(Error::Crashed)) {
        runner.finish().await;
    }
    result
}

enum Begun {
    /// The run is there and can be driven.
    Stands,
    /// It cannot be started, and this is why.
    Refused(ToolResult),
    /// Somebody asked to stop while a person was being asked.
    Stopped,
}

/// Starts the run, unless it stands already.
async fn begin(
    parent: &Parent,
    runner: &mut Runner,
    call: &str,
    subtasks: Option<Value>,
    consent: Consent,
) -> Result<Begun, Error> {
    if runner.is_started() {
        return Ok(Begun::Stands);
    }
    let max = parent.spec.fan_out.as_ref().map_or(0, |fan_out| fan_out.max_subtasks);
    let wanted = normalise(subtasks.as_ref(), max);
    if wanted.subtasks.is_empty() {
        let mut text = vec!["Workflow error: no usable subtasks were provided.".to_owned()];
        text.extend(wanted.notes);
        return Ok(Begun::Refused(ToolResult::refused(text.join("\n"))));
    }
    let by = match consent {
        Consent::Given(By::Mode) => "orchestration mode",
        Consent::Given(By::Word) => "the person's request",
        Consent::Given(By::Flag) => "--workflow",
        Consent::Given(By::Command) => "the person's command",
        Consent::Missing => match asked(parent, &wanted.subtasks).await {
            Some(true) => "the person's answer",
            Some(false) => return Ok(Begun::Refused(ToolResult::refused(NO_CONSENT))),
            None => return Ok(Begun::Stopped),
        },
    };
    Ok(runner.start(call, wanted, by).await?.map_or(Begun::Stands, Begun::Refused))
}

/// Whether a person agrees; `None` when somebody asked to stop before there was an answer.
async fn asked(parent: &Parent, subtasks: &[String]) -> Option<bool> {
    let Some(asker) = &parent.config.asker else { return Some(false) };
    let what = format!("The lead wants to run a workflow of {} workers. Nobody has agreed to one yet.", subtasks.len());
    let mut stop = parent.stop.clone();
    tokio::select! {
        agrees = asker.agrees(Question { what, details: subtasks.to_vec(), call: None }) => Some(agrees),
        _ = stop.above(StopLevel::Run) => None,
    }
}

/// Reads the rest of a result of one of this lead's runs.
pub(crate) async fn read_result(parent: &Parent, run: &str, item: u32, from: usize) -> Result<ToolResult, Error> {
    let unknown = || ToolResult::refused(format!("read_result error: this conversation has no run {run}."));
    let Ok(id) = run.parse::<RunId>() else { return Ok(unknown()) };
    let (run, _) = load(&parent.config, &id).await?;
    if run.spec().is_none_or(|spec| spec.lead != parent.id) {
        return Ok(unknown());
    }
    Ok(match run.page(item, from) {
        Ok(text) => ToolResult::done(text),
        Err(why) => ToolResult::refused(format!("read_result error: {why}")),
    })
}

/// A run as the journal has it, and the number of its last event.
pub(crate) async fn load(config: &Config, id: &RunId) -> Result<(Run, u64), Error> {
    let stream = stream(id)?;
    let (mut run, mut seq) = (Run::new(), 0);
    for record in config.journal.load(&stream, 0).await? {
        let bad = |cause: String| Error::BadRun { run: id.clone(), seq: record.seq, cause };
        let event = RunEvent::decode(&record.event).map_err(|error| bad(error.to_string()))?;
        run.apply(&event, record.at).map_err(|error| bad(error.to_string()))?;
        seq = record.seq;
    }
    Ok((run, seq))
}

fn stream(id: &RunId) -> Result<StreamId, Error> {
    Ok(StreamId::new(id.as_str())?)
}
