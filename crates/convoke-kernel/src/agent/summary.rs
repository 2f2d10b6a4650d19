//! What a listing shows of an agent without reading its whole stream.

use serde::{Deserialize, Serialize};

use super::Agent;
use super::agent_state::{AgentState, IllegalEvent};
use super::state::Stage;
use crate::event::{Event, HistoryForked};
use crate::ids::SessionId;
use crate::outcome::Outcome;
use crate::spec::{AgentSpec, Role};
use crate::wire::{FailureKind, Usage};

/// Where an agent stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has something to do; the lease says whether a process is doing it.
    Open,
    /// Its last exchange was answered.
    Done,
    /// Its last exchange was answered in part.
    Partial,
    /// Its last exchange failed.
    Failed,
}

/// One row of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The session.
    pub session: SessionId,
    /// The role.
    pub role: Role,
    /// What people call it; empty for a lead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The directory.
    pub dir: String,
    /// The beginning of what was asked; for a fork that has not been asked anything,
    /// what was asked in the session it began with.
    pub task: String,
    /// The session whose history it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// The model.
    pub model: String,
    /// The effort it is asked for; absent when that is left to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// The kind of failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// Why the last fan-out was refused whole for want of room, if none was admitted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether a resume would go on with something.
    pub can_go_on: bool,
    /// When it started.
    pub started_at: u64,
    /// Kept replies.
    pub turns: u32,
    /// Requests to the model, repeats left out.
    pub calls: u32,
    /// Commands run.
    pub commands: u32,
    /// Tokens.
    pub usage: Usage,
    /// Nano-dollars; absent when a price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nano: Option<u64>,
}

/// Long enough to recognise a task in a listing.
const TASK_CHARS: usize = 200;

impl Summary {
    /// The row of an agent that is recorded and that no process has driven yet.
    pub fn waiting(spec: &AgentSpec, task: &str, started_at: u64) -> Self {
        Self {
            session: spec.session.clone(),
            role: spec.role,
            label: spec.label.clone(),
            dir: spec.dir.clone(),
            task: task.chars().take(TASK_CHARS).collect(),
            forked_from: None,
            model: spec.model.clone(),
            effort: spec.capabilities.effort.clone(),
            status: Status::Open,
            failure: None,
            refused: None,
            can_go_on: true,
            started_at,
            turns: 0,
            calls: 0,
            commands: 0,
            usage: Usage::default(),
            cost_nano: Some(0),
        }
    }

    /// The row of a fork that is recorded and that no process has driven yet. Nothing waits to be answered.
    pub fn waiting_fork(spec: &AgentSpec, fork: &HistoryForked, started_at: u64) -> Self {
        let forked_from = Some(fork.session.clone());
        Self { forked_from, can_go_on: false, ..Self::waiting(spec, &fork.task, started_at) }
    }
}

impl Agent {
    /// The agent's row in a listing; `None` before it started.
    pub fn summary(&self) -> Option<Summary> {
        summarise(&self.state, self.started_at)
    }

    /// The row the agent will have once these events, decided at this time, have been folded. The history is
    /// not touched, so this costs the events and not the agent.
    pub fn summary_after(&self, events: &[Event], at: u64) -> Result<Option<Summary>, IllegalEvent> {
        let mut state = self.state.clone();
        for event in events {
            state.apply(event)?;
        }
        Ok(summarise(&state, if self.is_started() { self.started_at } else { at }))
    }
}

fn summarise(state: &AgentState, started_at: u64) -> Option<Summary> {
    let spec = state.spec.as_ref()?;
    let outcome = state.exchange.as_ref().and_then(|exchange| {
        let ended = exchange.outcome.as_ref()?;
        Some(state.answered_before.as_ref().filter(|_| exchange.is_retry()).unwrap_or(ended))
    });
    // An agent with runs in the background has something to do, whatever became of the last exchange.
    let outcome = outcome.filter(|_| state.stage == Stage::Idle && state.running.is_empty());
    let failure = outcome.and_then(Outcome::failure);
    let status = match outcome {
        None => Status::Open,
        Some(Outcome::Ok { .. }) => Status::Done,
        Some(outcome) if outcome.is_partial() => Status::Partial,
        Some(Outcome::Failed { .. }) => Status::Failed,
    };
    Some(Summary {
        forked_from: state.forked.clone(),
        status,
        failure,
        refused: state.refused_fan_out.clone(),
        can_go_on: state.can_go_on(),
        turns: state.turns,
        calls: state.calls,
        commands: state.commands,
        usage: state.usage,
        cost_nano: state.cost_nano,
        ..Summary::waiting(spec, &state.task, started_at)
    })
}
