//! Runs of workflow programs, as the journal has them and to their end. What follows from what is the
//! kernel's business (`convoke_kernel::Program`), what a program computes is the interpreter's.

mod calls;
mod checkpoint;
mod plan;
mod prepare;
mod runner;
mod start;
mod step_results;
mod told;

use std::time::Duration;

use convoke_claude::Server;
use convoke_journal::{Journal, StreamId};
use convoke_kernel::{Program, ProgramEvent, ProgramInput, RunId, ToolResult};
use convoke_sandbox::HelperPath;
use convoke_script::Limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use plan::{Assumed, Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, SeenCost, plan};
pub(crate) use runner::Driven;
use runner::Runner;
pub(crate) use start::workflow;
pub(crate) use told::closing_notice;

use crate::children::Parent;
use crate::error::Error;
use crate::interpreter::HardLimits;
use crate::library::{Checker, Library};
use crate::runtime::Config;

/// What programs are run with.
#[derive(Clone)]
pub struct Programs {
    /// Where workflows and kinds of agents are found by name.
    pub library: Library,
    /// What a program is held to.
    pub limits: Limits,
    /// How long it may compute between two waits.
    pub step: Duration,
    /// The server and what it accepts, for agents with a model of their own.
    pub server: Server,
    /// Whether there is no other model than the session's.
    pub one_model: bool,
}

impl Programs {
    /// Programs from this library, with the default limits.
    pub fn new(library: Library, server: Server) -> Self {
        Self { library, limits: Limits::default(), step: Duration::from_secs(30), server, one_model: false }
    }

    /// Programs whose source is always given, with this helper to check them.
    pub fn without_library(helper: &HelperPath) -> Self {
        let checker = Checker::of(helper.clone());
        Self::new(Library::new(Vec::new(), Vec::new(), &[], checker), Server::anthropic())
    }

    pub(crate) fn wall(&self) -> HardLimits {
        HardLimits { step: self.step, ..HardLimits::default() }
    }
}

/// Levels of a value that crosses to a program; what is deeper cannot be read on the other side.
const DEEPEST: usize = 100;

/// Whether a value is deeper than what can cross to a program.
fn is_too_deep(value: &Value) -> bool {
    let mut level = vec![value];
    for _ in 0..DEEPEST {
        let below = level.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect::<Vec<_>>(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        });
        level = below.collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

/// Something that is sent to a program's run from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// A person answers a question.
    Answer { call: u32, text: String },
    /// A person skips a call.
    Skip { call: u32 },
}

/// Drives a run that goes on in the background.
pub(crate) async fn drive(parent: &Parent, run: &str) -> Result<Driven, Error> {
    let Ok(id) = run.parse::<RunId>() else { return Ok(Driven::Closed) };
    let mut runner = Runner::own(parent, id).await?;
    let driven = runner.drive().await;
    if !matches!(driven, Err(Error::Crashed)) {
        runner.finish().await;
    }
    driven
}

/// A program's run as the journal has it, and the number of its last event. A stream that is no program's is
/// one without a spec.
pub(crate) async fn load(config: &Config, id: &RunId) -> Result<(Program, u64), Error> {
    load_from(&config.journal, id).await
}

/// The same, of any journal.
pub(crate) async fn load_from(journal: &Journal, id: &RunId) -> Result<(Program, u64), Error> {
    let stream = StreamId::new(id.as_str())?;
    let mut program = Program::new();
    let mut seq = 0;
    for record in journal.load(&stream, 0).await? {
        let bad = |cause: String| Error::BadRun { run: id.clone(), seq: record.seq, cause };
        let event = match ProgramEvent::decode(&record.event) {
            Ok(event) => event,
            Err(_) if record.seq == 1 => return Ok((program, 0)),
            Err(error) => return Err(bad(error.to_string())),
        };
        program.apply(&event, record.at).map_err(|error| bad(error.to_string()))?;
        seq = record.seq;
    }
    Ok((program, seq))
}

/// A run whose results are to be served to another one.
async fn served_from(config: &Config, id: &RunId) -> Result<Option<Program>, Error> {
    let (mut program, seq) = load(config, id).await?;
    let again =
        program.decide(ProgramInput::Again { why: "served to another run".to_owned(), budget_total: None });
    let Ok(events) = again else { return Ok(None) };
    for event in &events {
        let bad = |cause: convoke_kernel::IllegalProgramEvent| Error::BadRun {
            run: id.clone(),
            seq,
            cause: cause.to_string(),
        };
        program.apply(event, 0).map_err(bad)?;
    }
    Ok(Some(program))
}

/// How one of this lead's runs stands.
pub(crate) async fn status(parent: &Parent, run: &str) -> Result<ToolResult, Error> {
    let unknown =
        || ToolResult::refused(format!("run_status error: this conversation has no program run {run}."));
    let Ok(id) = run.parse::<RunId>() else { return Ok(unknown()) };
    let (program, _) = load(&parent.config, &id).await?;
    if program.spec().is_none_or(|spec| spec.lead != parent.id) {
        return Ok(unknown());
    }
    Ok(ToolResult::done(program.progress()))
}

/// Reads the whole value or one call's answer of one of this lead's program runs; `None` if it is no
/// program's run.
pub(crate) async fn read(
    parent: &Parent,
    run: &str,
    item: u32,
    from: usize,
) -> Result<Option<ToolResult>, Error> {
    let Ok(id) = run.parse::<RunId>() else { return Ok(None) };
    let (program, _) = load(&parent.config, &id).await?;
    if program.spec().is_none_or(|spec| spec.lead != parent.id) {
        return Ok(None);
    }
    Ok(Some(match program.page(item, from) {
        Ok(text) => ToolResult::done(text),
        Err(why) => ToolResult::refused(format!("read_result error: {why}")),
    }))
}
