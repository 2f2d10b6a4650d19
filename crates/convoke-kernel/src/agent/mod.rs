//! The agent loop as a pure state machine: [`Agent::decide`] turns an input into events, [`Agent::apply`] folds an
//! event, [`Agent::pending`] lists what has been decided and not yet done. Recovery is the ordinary path: load, fold,
//! ask what is pending, go on.

mod beside;
mod control;
mod decide;
mod filing;
mod judge;
mod state;
mod summary;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_approval;
#[cfg(test)]
mod tests_beside;
#[cfg(test)]
mod tests_life;
#[cfg(test)]
mod tests_output;
#[cfg(test)]
mod tests_roles;
#[cfg(test)]
mod tests_room;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use control::Control;
use decide::Draft;
use state::{Asking, Filed, LastTurn, SlotState, Stage};

use crate::event::{Event, Kept};
use crate::findings::{Ballot, Report};
use crate::outcome::{Outcome, ShellState, ToolResult};
use crate::segment::Segment;
use crate::spec::{AgentSpec, Param};
use crate::tools::{ToolRequest, Wanted};
use crate::wire::{Failure, Reply};

pub use control::IllegalEvent;
pub use summary::{Status, Summary};

/// Something that came from outside the kernel.
#[derive(Debug, Clone)]
pub enum Input {
    /// The agent is to exist, and this is said to it: one decision, so that no agent exists without a task.
    Start {
        /// What it is made of.
        spec: Box<AgentSpec>,
        /// The key of the input.
        key: String,
        /// What is said.
        text: String,
    },
    /// The agent is to exist, and a person makes this call without the model.
    StartCall {
        /// What it is made of.
        spec: Box<AgentSpec>,
        /// The key of the input.
        key: String,
        /// The call, as people read it.
        text: String,
        /// The input of `Workflow`.
        input: Segment,
    },
    /// Somebody said something to an idle agent.
    Say {
        /// The key of the input.
        key: String,
        /// What was said.
        text: String,
    },
    /// A run in the background has ended, and an idle agent is told.
    Told {
        /// The key of the input.
        key: String,
        /// The run.
        run: String,
        /// What it came to.
        text: String,
    },
    /// A person makes a call of an idle agent's, without the model.
    Call {
        /// The key of the input.
        key: String,
        /// The call, as people read it.
        text: String,
        /// The input of `Workflow`.
        input: Segment,
    },
    /// The model answered.
    Replied {
        /// Which request.
        call: u32,
        /// The reply.
        reply: Box<Reply>,
    },
    /// The model did not answer.
    Failed {
        /// Which request.
        call: u32,
        /// Which attempt.
        attempt: u32,
        /// Why not.
        failure: Failure,
    },
    /// A tool ended.
    ToolDone {
        /// Which call.
        id: String,
        /// What it came to.
        result: ToolResult,
    },
    /// A person answered a question about a call.
    Answered {
        /// Which call.
        id: String,
        /// Whether it may be run.
        allow: bool,
        /// Who said so, and how.
        by: String,
    },
    /// A person turned the switch of orchestration mode of an idle agent.
    SetMode {
        /// Where to.
        on: bool,
    },
    /// The envelope and the governor answered.
    Room {
        /// Which request.
        call: u32,
        /// What they said.
        answer: RoomAnswer,
    },
    /// Another process took the agent up, or a person asked it to go on.
    Resume {
        /// Files that changed meanwhile.
        changed: Vec<String>,
    },
}

/// Whether new work may be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It may.
    Go,
    /// Outcomes are recorded and nothing new starts: somebody asked Convoke to stop.
    Hold,
}

/// Why an input cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unexpected {
    /// An exchange is open; the input waits in the journal until it is closed.
    #[error("the agent is busy with another exchange")]
    Busy,
    /// It says nothing, and the API takes no empty message.
    #[error("the input is empty")]
    Blank,
    /// It answers something that is not pending.
    #[error("the input answers something that is not pending")]
    Stale,
    /// A fault of the kernel: it decided something illegal.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// Whether there is room for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomAnswer {
    /// There is.
    Go {
        /// The room for the reply.
        max_tokens: u32,
    },
    /// There is room for one last turn.
    HandBack {
        /// The room for the reply.
        max_tokens: u32,
        /// What is short.
        why: String,
    },
    /// There is none.
    Refused {
        /// What is short.
        why: String,
    },
}

/// What a request needs to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomAsk {
    /// The number of the request.
    pub call: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The room for the reply that is wanted.
    pub wanted: u32,
    /// At most this many tokens are sent, what the API adds by itself left out.
    pub prompt_tokens: u64,
    /// Whether the agent has said something that it could hand back.
    pub started: bool,
    /// Whether it was already asked to hand back because the envelope is short.
    pub last_turn: bool,
    /// What all agents of this make begin their requests with, as a digest, and how many bytes that is.
    pub prefix: (String, usize),
}

/// Something to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask the envelope and the governor for room. Asking changes nothing and can be repeated.
    AskRoom {
        /// The request.
        call: u32,
        /// The attempt.
        attempt: u32,
        /// Not before this time.
        not_before: u64,
    },
    /// Ask the model. Repeating it is safe, and paid for again.
    CallModel {
        /// The request.
        call: u32,
        /// The attempt.
        attempt: u32,
    },
    /// Ask a person whether a call may be run. Asking changes nothing and can be repeated.
    AskPerson {
        /// The call.
        id: String,
        /// What is wanted.
        what: String,
        /// Why it is asked.
        why: String,
    },
    /// Run a tool. A command is not safe to repeat: nobody knows what the first time did. What has a stream of its own
    /// (a task, a workflow) goes on there however often it is started.
    RunTool {
        /// The call.
        id: String,
        /// What to do.
        request: ToolRequest,
    },
    /// Drive a run that a call launched, until its end can be told. It has a stream of its own and goes on there however often
    /// it is started.
    DriveRun {
        /// The run.
        run: String,
    },
}

/// A request as it is sent, in shared pieces.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The members that stay the same.
    pub spec: Arc<AgentSpec>,
    /// The room for the reply.
    pub max_tokens: u32,
    /// The history.
    pub messages: Vec<Segment>,
}

impl ModelRequest {
    /// The members beside model, room, system, tools and messages.
    pub fn params(&self) -> &[Param] {
        &self.spec.params
    }
}

/// More than any note of the harness is long, the names of changed files left out.
const NOTE_BYTES: usize = 1_024;

/// One model conversation with tools.
#[derive(Debug, Clone)]
pub struct Agent {
    control: Control,
    segments: Vec<Segment>,
    call_ids: HashSet<String>,
    started_at: u64,
}

impl Default for Agent {
    fn default() -> Self {
        Self::new()
    }
}

impl Agent {
    /// An agent to whom nothing has happened.
    pub fn new() -> Self {
        Self { control: Control::new(), segments: Vec::new(), call_ids: HashSet::new(), started_at: 0 }
    }

    /// What follows from this input, at this time.
    pub fn decide(&self, input: Input, at: u64, pace: Pace) -> Result<Vec<Event>, Unexpected> {
        Draft::new(self.control.clone(), at).decide(input, pace, |id| self.call_ids.contains(id))
    }

    /// Folds an event that is in the journal.
    pub fn apply(&mut self, event: &Event, at: u64) -> Result<(), IllegalEvent> {
        self.control.apply(event)?;
        match event {
            Event::AgentStarted(_) => self.started_at = at,
            Event::ExchangeOpened(e) => self.segments.extend(std::iter::once(&e.message).chain(&e.system).cloned()),
            Event::NoteAppended(e) => self.segments.push(e.message.clone()),
            Event::ResultsAppended(e) => self.segments.push(e.message.clone()),
            Event::ModelReplied(e) if e.kept == Kept::Yes => {
                self.segments.push(e.reply.content.as_assistant_message());
                self.call_ids.extend(e.reply.calls.iter().map(|call| call.id.clone()));
            }
            Event::ExchangeClosed(e) if e.taken_back => self.segments.truncate(self.control.mark.segments),
            Event::ModelReplied(_)
            | Event::ExchangeClosed(_)
            | Event::ExchangeReopened(_)
            | Event::CallMade(_)
            | Event::ModeSet(_)
            | Event::RoomRefused(_)
            | Event::ModelCalled(_)
            | Event::ModelFailed(_)
            | Event::ApprovalAsked(_)
            | Event::ApprovalGiven(_)
            | Event::ToolStarted(_)
            | Event::ToolFinished(_)
            | Event::Resumed(_) => {}
        }
        Ok(())
    }

    /// What has been decided and not yet done.
    pub fn pending(&self) -> Vec<Effect> {
        let ask = |asking: &Asking, not_before| {
            vec![Effect::AskRoom { call: asking.call, attempt: asking.attempt + 1, not_before }]
        };
        let mut pending = match &self.control.stage {
            Stage::Ready(asking) => ask(asking, 0),
            Stage::Waiting(asking, until) => ask(asking, *until),
            Stage::Calling(asking) => vec![Effect::CallModel { call: asking.call, attempt: asking.attempt }],
            Stage::Tools(slots) => slots
                .iter()
                .filter_map(|slot| match &slot.state {
                    SlotState::Running => {
                        let Ok(Wanted::Run(request)) = self.control.read(&slot.call) else { return None };
                        Some(Effect::RunTool { id: slot.call.id.clone(), request })
                    }
                    SlotState::Asked(asked) => {
                        let (what, why) = (asked.what.clone(), asked.why.clone());
                        Some(Effect::AskPerson { id: slot.call.id.clone(), what, why })
                    }
                    SlotState::Queued | SlotState::Allowed | SlotState::Finished(_) => None,
                })
                .collect(),
            Stage::New | Stage::Idle | Stage::Ending => Vec::new(),
        };
        pending.extend(self.control.running.iter().map(|run| Effect::DriveRun { run: run.clone() }));
        pending
    }

    /// The request that is being asked, if one is.
    pub fn request(&self) -> Option<ModelRequest> {
        let Stage::Calling(asking) = &self.control.stage else { return None };
        let spec = Arc::clone(self.control.spec.as_ref()?);
        let mut messages = self.segments.clone();
        if let Some(segment) = self.control.second_mark().and_then(|index| messages.get_mut(index)) {
            *segment = segment.with_mark();
        }
        Some(ModelRequest { spec, max_tokens: asking.max_tokens, messages })
    }

    /// What the next request needs, if one is due.
    pub fn room_ask(&self) -> Option<RoomAsk> {
        let (Stage::Ready(asking) | Stage::Waiting(asking, _)) = &self.control.stage else { return None };
        let (spec, exchange) = (self.control.spec.as_ref()?, self.control.exchange.as_ref()?);
        // What the harness may still put in front of the request: a hand-back, or the files that changed.
        let notes: usize = self.control.changed.iter().map(|file| file.len() + 2).sum::<usize>() + NOTE_BYTES;
        Some(RoomAsk {
            call: asking.call,
            attempt: asking.attempt + 1,
            wanted: asking.max_tokens,
            prompt_tokens: self.control.mark.tokens.saturating_add(notes as u64),
            started: exchange.kept > 0,
            last_turn: matches!(exchange.last_turn, Some(LastTurn::Short(_))),
            prefix: (decide::hex(&self.control.prefix), spec.system.as_str().len() + spec.tools.as_str().len()),
        })
    }

    /// Whether orchestration mode is on; `None` for an agent without the switch.
    pub fn mode(&self) -> Option<bool> {
        self.control.mode.map(|mode| mode.is_on())
    }

    /// What a worker reported in its last exchange.
    pub fn report(&self) -> Option<&Report> {
        match self.control.exchange.as_ref()?.filed.as_ref()? {
            Filed::Report(report) => Some(report),
            Filed::Ballot(_) | Filed::Output(_) => None,
        }
    }

    /// What a verifier judged in its last exchange.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self.control.exchange.as_ref()?.filed.as_ref()? {
            Filed::Ballot(ballot) => Some(ballot),
            Filed::Report(_) | Filed::Output(_) => None,
        }
    }

    /// The value that an agent with a schema handed in, in its last exchange.
    pub fn output(&self) -> Option<&Value> {
        match self.control.exchange.as_ref()?.filed.as_ref()? {
            Filed::Output(value) => Some(value),
            Filed::Report(_) | Filed::Ballot(_) => None,
        }
    }

    /// Why the last exchange's result is worth less than it seems.
    pub fn degraded(&self) -> Option<&str> {
        self.control.exchange.as_ref()?.degraded.as_deref()
    }

    /// Whether the agent exists.
    pub fn is_started(&self) -> bool {
        self.control.stage != Stage::New
    }

    /// Whether no exchange is open, so that an input can be taken.
    pub fn is_idle(&self) -> bool {
        self.control.stage == Stage::Idle
    }

    /// Whether no exchange is open and no run is under way in the background.
    pub fn is_done(&self) -> bool {
        self.is_idle() && self.control.running.is_empty()
    }

    /// The runs in the background that the agent has not been told of, in the order they were launched.
    pub fn running(&self) -> &[String] {
        &self.control.running
    }

    /// Whether a resume would go on with something.
    pub fn can_go_on(&self) -> bool {
        self.control.can_go_on()
    }

    /// What the last exchange came to, once it is closed.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.control.exchange.as_ref()?.outcome.as_ref()
    }

    /// What the agent is made of.
    pub fn spec(&self) -> Option<&AgentSpec> {
        self.control.spec.as_deref()
    }

    /// The shell after the last command that told.
    pub fn shell(&self) -> Option<&ShellState> {
        self.control.shell.as_ref()
    }

    /// The history as it is sent.
    pub fn history(&self) -> &[Segment] {
        &self.segments
    }
}
