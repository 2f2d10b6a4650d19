//! A workflow's run: which agents work, which verify, what is remembered. What follows from what is the
//! kernel's business (`convoke_kernel::Run`); here it is committed and done.

mod check;
mod halt;
mod keys;
mod rerun;
mod results;
mod runner;
mod seek;
mod tree;

use convoke_journal::StreamId;
use convoke_kernel::{Consent, Run, RunEvent, RunId, ToolResult, normalise};
use serde_json::Value;

use crate::asked_consent::{ConsentAnswer, agreed};
use crate::asker::Question;
use crate::children::Parent;
use crate::error::Error;
use crate::runtime::Config;
pub(crate) use check::citations as check_citations;
pub(crate) use keys::{Remembered, content_key};
pub(crate) use results::{NOT_ADMITTED, voter_result};
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

pub(crate) enum Begun {
    /// The run is there and can be driven.
    Stands,
    /// It cannot be started, and this is why.
    Refused(ToolResult),
    /// A stop was requested while a person was being asked.
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
    if parent.stop.halted().is_some() {
        return Ok(Begun::Stopped);
    }
    let max = parent.spec.fan_out.as_ref().map_or(0, |fan_out| fan_out.max_subtasks);
    let wanted = normalise(subtasks.as_ref(), max);
    if wanted.subtasks.is_empty() {
        let mut text = vec!["Workflow error: no usable subtasks were provided.".to_owned()];
        text.extend(wanted.notes);
        return Ok(Begun::Refused(ToolResult::refused(text.join("\n"))));
    }
    let by = match agreed(parent, consent, async { question(&wanted.subtasks) }).await {
        ConsentAnswer::By(by) => by,
        ConsentAnswer::No(result) => return Ok(Begun::Refused(result)),
        ConsentAnswer::Stopped => return Ok(Begun::Stopped),
    };
    Ok(runner.start(call, wanted, by).await?.map_or(Begun::Stands, Begun::Refused))
}

fn question(subtasks: &[String]) -> Question {
    let what = format!(
        "The lead wants to run a workflow of {} workers. Nobody has agreed to one yet.",
        subtasks.len()
    );
    Question { what, details: subtasks.to_vec(), call: None }
}

/// Reads the rest of a result of one of this lead's runs.
pub(crate) async fn read_result(
    parent: &Parent,
    run: &str,
    item: u32,
    from: usize,
) -> Result<ToolResult, Error> {
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
    let mut run = Run::new();
    let mut seq = 0;
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
