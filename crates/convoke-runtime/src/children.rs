//! Agents below the lead: each has a stream of its own under a name that follows from the request for it, so
//! that asking again finds the same agent and goes on with it.

use std::sync::Arc;

use convoke_journal::{KeyedInput, StreamId};
use convoke_kernel::{
    AgentId, AgentSpec, Isolation, Role, ToolRequest, ToolResult, WorkflowCall, label, task_result,
};

use crate::change_recorder::AgentWorktree;
use crate::drive::{DriveMode, DriveOutcome};
use crate::driver::Driver;
use crate::error::Error;
use crate::fan_out;
use crate::inputs::Waiting;
use crate::program;
use crate::runtime::Config;
use crate::session::Session;
use crate::stop::Stop;

/// The agent whose tool calls start others.
#[derive(Clone)]
pub(crate) struct Parent {
    pub(crate) config: Arc<Config>,
    pub(crate) session: Arc<Session>,
    pub(crate) id: AgentId,
    pub(crate) spec: AgentSpec,
    pub(crate) stop: Stop,
}

/// Does what a call asks for. `None` when it was stopped before its end; asking again goes on with it.
pub(crate) async fn perform(
    parent: &Parent,
    call: &str,
    request: ToolRequest,
) -> Result<Option<ToolResult>, Error> {
    match request {
        ToolRequest::Task { prompt, isolation } => task(parent, call, &prompt, isolation).await,
        ToolRequest::Workflow { what: WorkflowCall::Subtasks(subtasks), consent } => {
            fan_out::workflow(parent, call, subtasks, consent).await
        }
        ToolRequest::Workflow { what: WorkflowCall::Program(wanted), consent } => {
            program::workflow(parent, call, wanted, consent).await
        }
        ToolRequest::RunStatus { run } => program::status(parent, &run).await.map(Some),
        ToolRequest::ReadResult { run, item, from } => match program::read(parent, &run, item, from).await? {
            Some(page) => Ok(Some(page)),
            None => fan_out::read_result(parent, &run, item, from).await.map(Some),
        },
        // Local tools and the team are done elsewhere.
        _ => Ok(Some(ToolResult::refused(
            "internal error: a request for a local tool reached the code that starts agents",
        ))),
    }
}

async fn task(
    parent: &Parent,
    call: &str,
    prompt: &str,
    isolation: Isolation,
) -> Result<Option<ToolResult>, Error> {
    let Some(mut spec) = parent.spec.child_in(Role::Task, &label(prompt), 0, isolation) else {
        return Ok(Some(ToolResult::refused("task error: this agent may start no other.")));
    };
    let id = AgentId::derived(&["task", parent.id.as_str(), call]);
    let place = match isolation {
        Isolation::Worktree => match AgentWorktree::make(parent, &id).await {
            Ok(place) => Some(place),
            // Never the main checkout in its stead: the lead decides what to do without one.
            Err(why) => {
                return Ok(Some(ToolResult::refused(format!(
                    "task error: no worktree could be made: {why}"
                ))));
            }
        },
        Isolation::None | Isolation::Copy => None,
    };
    if let Some(place) = &place {
        spec.dir = place.dir();
    }
    let ended = match drive(parent, &id, spec, prompt).await {
        Ok(ended) => ended,
        Err(Error::Journal(convoke_journal::Error::Declined { reason, .. })) => {
            if let Some(place) = place {
                place.finish().await;
            }
            return Ok(Some(ToolResult::refused(format!("task error: {reason}"))));
        }
        Err(error) => return Err(error),
    };
    let Some(outcome) = ended.outcome else { return Ok(None) };
    let place = match place {
        Some(place) => Some(place.finish().await),
        None => None,
    };
    let result = ToolResult::done(task_result(&outcome, place.as_deref()));
    Ok(Some(ToolResult { is_error: outcome.failure().is_some(), ..result }))
}

/// Drives a child to its end, from wherever it stands.
pub(crate) async fn drive(
    parent: &Parent,
    id: &AgentId,
    spec: AgentSpec,
    prompt: &str,
) -> Result<DriveOutcome, Error> {
    drive_on(parent, id, spec, prompt, false).await
}

/// The same; with `again` one that had failed tries again from where it stands.
pub(crate) async fn drive_on(
    parent: &Parent,
    id: &AgentId,
    spec: AgentSpec,
    prompt: &str,
    again: bool,
) -> Result<DriveOutcome, Error> {
    let body = serde_json::to_string(&Waiting {
        start: Some(spec),
        say: Some(prompt.to_owned()),
        ..Waiting::default()
    })?;
    let start = KeyedInput { stream: StreamId::from(id), key: "start".to_owned(), body };
    // An agent does not begin for something that a person has stopped.
    if parent.stop.halted().is_some() && parent.config.journal.load(&start.stream, 0).await?.is_empty() {
        return Ok(DriveOutcome::default());
    }
    parent.config.journal.submit(&start, parent.config.clock.now()).await?;
    let config = Arc::clone(&parent.config);
    let session = Arc::clone(&parent.session);
    let driver = Driver::own(config, id.clone(), Some(session), None, parent.stop.clone()).await?;
    let take = if driver.is_under_way() || again {
        DriveMode::Resume { changed: Vec::new() }
    } else {
        DriveMode::New
    };
    driver.run(take).await.map_err(|error| match error {
        // A child's text is not the session's answer: it is spooled, and the caller gets none of it.
        Error::Unrecorded { cause, spooled, .. } => {
            Error::Unrecorded { cause, text: None, outcome: None, summary: None, spooled }
        }
        other => other,
    })
}
