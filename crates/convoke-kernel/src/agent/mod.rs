//! The agent loop as a pure state machine: [`Agent::decide`] turns an input into events, [`Agent::apply`]
//! folds an event, [`Agent::pending`] lists what has been decided and not yet done. Recovery is the ordinary
//! path: load, fold, ask what is pending, go on.

mod agent_state;
mod background;
mod decide;
mod filing;
mod fork;
mod input;
mod judge;
mod lasting;
mod lessons;
mod mail;
mod queue;
mod reply;
mod retry;
mod rounds;
mod state;
mod stop;
mod stuck;
mod summary;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_approval;
#[cfg(test)]
mod tests_background;
#[cfg(test)]
mod tests_fork;
#[cfg(test)]
mod tests_full;
#[cfg(test)]
mod tests_lasting;
#[cfg(test)]
mod tests_lasting_edges;
#[cfg(test)]
mod tests_lessons;
#[cfg(test)]
mod tests_life;
#[cfg(test)]
mod tests_mail;
#[cfg(test)]
mod tests_output;
#[cfg(test)]
mod tests_queue;
#[cfg(test)]
mod tests_retune;
#[cfg(test)]
pub(crate) mod tests_of_specs {
    pub(crate) use super::tests::spec;
    pub(crate) use super::tests_mail::in_team;
}
#[cfg(test)]
mod tests_roles;
#[cfg(test)]
mod tests_room;
#[cfg(test)]
mod tests_stop;
#[cfg(test)]
mod tests_stuck;
#[cfg(test)]
mod tests_under_way;
#[cfg(test)]
mod tests_window;
mod tuning;
mod under_way;
mod window;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use agent_state::AgentState;
use decide::{Draft, blank};
use state::{Asking, Filed, LastTurn, SlotState, Stage};

use crate::event::{Event, Kept};
use crate::findings::{Ballot, Report};
use crate::ids::TaskId;
use crate::lesson::{Feature, OLD_VERSION};
use crate::outcome::{Outcome, ShellState};
use crate::segment::Segment;
use crate::spec::AgentSpec;
use crate::todo::TodoItem;
use crate::tools::Wanted;

pub use agent_state::IllegalEvent;
pub use background::RETRY_KEY;
pub use input::{Effect, Input, ModelRequest, Pace, RoomAnswer, RoomAsk, Unexpected};
pub(crate) use lasting::SUMMARY_TOKENS;
pub use queue::{HeldBack, LetterBatch, NextInput, Opening, Queued, QueuedInput, next_letters, stop_asked};
pub use retry::backoff_left;
pub(crate) use state::Mark;
pub use summary::{Status, Summary};
pub use tuning::RetuneRefused;

/// No note of the harness has more bytes than this, the names of changed files left out.
const NOTE_BYTES: usize = 1_024;

/// No capsule has more bytes than this, the facts from the journal left out.
pub(crate) const CAPSULE_BYTES: usize = 16 * 1_024;

/// One model conversation with tools.
#[derive(Debug, Clone)]
pub struct Agent {
    state: AgentState,
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
    /// An agent to which nothing has happened.
    pub fn new() -> Self {
        Self { state: AgentState::new(), segments: Vec::new(), call_ids: HashSet::new(), started_at: 0 }
    }

    /// What follows from this input, at this time.
    pub fn decide(&self, input: Input, at: u64, pace: Pace) -> Result<Vec<Event>, Unexpected> {
        Draft::new(self.state.clone(), at).decide(input, pace, |id| self.call_ids.contains(id))
    }

    /// Folds an event that is in the journal.
    pub fn apply(&mut self, event: &Event, at: u64) -> Result<(), IllegalEvent> {
        self.state.apply(event)?;
        match event {
            Event::AgentStarted(_) => self.started_at = at,
            Event::ExchangeOpened(e) => {
                self.segments.extend(std::iter::once(&e.message).chain(&e.system).cloned())
            }
            Event::NoteAppended(e) => self.segments.push(e.message.clone()),
            Event::MailDelivered(e) => self.segments.push(e.message.clone()),
            Event::HistoryCompacted(e) => {
                self.segments = vec![e.message.clone()];
            }
            Event::HistoryForked(e) => {
                self.segments.clone_from(&e.messages);
                self.call_ids.extend(fork::call_ids(&e.messages));
            }
            Event::ResultsAppended(e) => self.segments.push(e.message.clone()),
            // Drops nothing but a request for a summary, which will get no answer any more.
            Event::ExchangeStopped(_) => self.segments.truncate(self.state.mark.segments),
            Event::ModelReplied(e) if e.kept == Kept::Yes => {
                self.segments.push(e.reply.content.as_assistant_message());
                self.call_ids.extend(e.reply.calls.iter().map(|call| call.id.clone()));
            }
            Event::ExchangeClosed(e) if e.taken_back => self.segments.truncate(self.state.mark.segments),
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
            | Event::CompactionAsked(_)
            | Event::InputRejected(_)
            | Event::Retuned(_)
            | Event::EndpointLearnt(_)
            | Event::Resumed(_) => {}
        }
        Ok(())
    }

    /// What has been decided and not yet done.
    pub fn pending(&self) -> Vec<Effect> {
        let ask = |asking: &Asking, not_before| {
            vec![Effect::AskRoom { call: asking.call, attempt: asking.attempt + 1, not_before }]
        };
        let mut pending = match &self.state.stage {
            Stage::Ready(asking) => ask(asking, 0),
            Stage::Waiting(asking, until) => ask(asking, *until),
            Stage::Calling(asking) => vec![Effect::CallModel { call: asking.call, attempt: asking.attempt }],
            Stage::Tools(slots) => slots
                .iter()
                .filter_map(|slot| match &slot.state {
                    SlotState::Running => {
                        let Ok(Wanted::Run(request)) = self.state.read(&slot.call) else { return None };
                        Some(Effect::RunTool { id: slot.call.id.clone(), request })
                    }
                    SlotState::Asked(asked) => {
                        let what = asked.what.clone();
                        let why = asked.why.clone();
                        Some(Effect::AskPerson { id: slot.call.id.clone(), what, why })
                    }
                    SlotState::Queued | SlotState::Allowed | SlotState::Finished(_) => None,
                })
                .collect(),
            Stage::New | Stage::Idle | Stage::Compacting | Stage::Ending => Vec::new(),
        };
        pending.extend(self.state.running.iter().map(|run| Effect::DriveRun { run: run.clone() }));
        pending
    }

    /// The request that is being asked, if one is.
    pub fn request(&self) -> Option<ModelRequest> {
        let Stage::Calling(asking) = &self.state.stage else { return None };
        let spec = Arc::clone(self.state.spec.as_ref()?);
        let mut messages = self.segments.clone();
        if let Some(segment) = self.state.second_mark().and_then(|index| messages.get_mut(index)) {
            *segment = segment.with_mark();
        }
        let withheld = self.state.lessons.withheld(&spec.model);
        if withheld.contains(&Feature::SystemRole) {
            messages = lessons::without_systems(messages);
        }
        let system = lessons::system(&spec, &withheld);
        let params = lessons::params(&spec, &withheld);
        let version = withheld.contains(&Feature::Version).then_some(OLD_VERSION);
        Some(ModelRequest { spec, max_tokens: asking.max_tokens, system, params, messages, version })
    }

    /// The most tokens the history can have, running calls included: the results of a
    /// turn are counted when all of them are there.
    pub fn history_tokens(&self) -> u64 {
        let Stage::Tools(slots) = &self.state.stage else { return self.state.mark.tokens };
        let finished = slots.iter().filter_map(|slot| match &slot.state {
            SlotState::Finished(result) => Some(result.text.len() as u64),
            _ => None,
        });
        finished.fold(self.state.mark.tokens, u64::saturating_add)
    }

    /// What the next request needs, if one is due.
    pub fn room_ask(&self) -> Option<RoomAsk> {
        let (Stage::Ready(asking) | Stage::Waiting(asking, _)) = &self.state.stage else { return None };
        let spec = self.state.spec.as_ref()?;
        let exchange = self.state.exchange.as_ref()?;
        // What the harness may still put in front of the request: the names of changed files, and the
        // capsule. The ledger adds the note of a hand-back.
        let changed = &self.state.changed;
        let facts = self.state.lasting.facts.as_ref();
        let files: usize = changed.iter().map(|file| file.len() + 2).sum();
        let owed =
            NOTE_BYTES + files + under_way::BYTES + facts.map_or(0, |facts| facts.bytes() + CAPSULE_BYTES);
        let notes = if facts.is_some() || !changed.is_empty() { owed } else { 0 };
        let mark = &self.state.mark;
        let unknown = self.state.lasting.known == 0 && mark.tokens == mark.bytes;
        let behind = mark.tokens.saturating_sub(self.state.base.tokens).saturating_add(notes as u64);
        Some(RoomAsk {
            behind_prefix: unknown.then_some(behind),
            cut_at: if exchange.widened { exchange.cut_at } else { 0 },
            call: asking.call,
            attempt: asking.attempt + 1,
            wanted: asking.max_tokens,
            prompt_tokens: self.state.mark.tokens.saturating_add(notes as u64),
            started: exchange.kept > 0,
            last_turn: matches!(exchange.last_turn, Some(LastTurn::Short(_))),
            cached: self.state.sends(Feature::CacheMarks),
            prefix: (decide::hex(&self.state.prefix), spec.system.as_str().len() + spec.tools.as_str().len()),
        })
    }

    /// Whether orchestration mode is on; `None` for an agent without the switch.
    pub fn mode(&self) -> Option<bool> {
        self.state.mode.map(|mode| mode.is_on())
    }

    /// What a worker reported in its last exchange.
    pub fn report(&self) -> Option<&Report> {
        match self.state.exchange.as_ref()?.filed.as_ref()? {
            Filed::Report(report) => Some(report),
            Filed::Ballot(_) | Filed::Output(_) => None,
        }
    }

    /// What a verifier judged in its last exchange.
    pub fn ballot(&self) -> Option<&Ballot> {
        match self.state.exchange.as_ref()?.filed.as_ref()? {
            Filed::Ballot(ballot) => Some(ballot),
            Filed::Report(_) | Filed::Output(_) => None,
        }
    }

    /// The value that an agent with a schema handed in, in its last exchange.
    pub fn output(&self) -> Option<&Value> {
        match self.state.exchange.as_ref()?.filed.as_ref()? {
            Filed::Output(value) => Some(value),
            Filed::Report(_) | Filed::Ballot(_) => None,
        }
    }

    /// Why the last exchange's result is worth less than it seems.
    pub fn degraded(&self) -> Option<&str> {
        self.state.exchange.as_ref()?.degraded.as_deref()
    }

    /// Whether the agent exists.
    pub fn is_started(&self) -> bool {
        self.state.stage != Stage::New
    }

    /// Whether no exchange is open, so that an input can be taken.
    pub fn is_idle(&self) -> bool {
        self.state.stage == Stage::Idle
    }

    /// Whether no exchange is open and no run is under way in the background.
    pub fn is_done(&self) -> bool {
        self.is_idle() && self.state.running.is_empty()
    }

    /// The runs in the background that the agent has not been told of, in the order they were launched.
    pub fn running(&self) -> &[String] {
        &self.state.running
    }

    /// Whether the agent can be told how this run ended: the run is in the background, or a
    /// person's call was the last thing that happened.
    pub fn may_be_told(&self, run: &str) -> bool {
        self.state.running.iter().any(|known| known == run) || self.state.called_last()
    }

    /// Whether the open exchange is a person's own call, which involves no model.
    pub fn is_persons_call(&self) -> bool {
        !self.is_idle() && self.state.exchange.as_ref().is_some_and(|exchange| exchange.call.is_some())
    }

    /// Whether letters can be put into its history right now.
    pub fn takes_mail(&self) -> bool {
        self.state.membership().is_some() && self.state.takes_mail()
    }

    /// Whether the request under way asks for the summary with which a new history begins.
    pub fn is_summarising(&self) -> bool {
        self.state.lasting.summarising
    }

    /// The task from the board that it worked on last.
    pub fn work(&self) -> Option<&TaskId> {
        self.state.lasting.work.as_ref()
    }

    /// Its own list of what there is to do.
    pub fn todo(&self) -> &[TodoItem] {
        &self.state.lasting.todo
    }

    /// Whether the open or last exchange began with something that was said, and not with letters or a task
    /// from the board.
    pub fn was_spoken_to(&self) -> bool {
        self.state.exchange.as_ref().is_some_and(|exchange| !exchange.brought)
    }

    /// Whether a resume would go on with something.
    pub fn can_go_on(&self) -> bool {
        self.state.can_go_on()
    }

    /// What the last exchange came to, once it is closed.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.state.exchange.as_ref()?.outcome.as_ref()
    }

    /// What the agent is made of.
    pub fn spec(&self) -> Option<&AgentSpec> {
        self.state.spec.as_deref()
    }

    /// The shell after the last command that reported it.
    pub fn shell(&self) -> Option<&ShellState> {
        self.state.shell.as_ref()
    }

    /// The history as it is sent.
    pub fn history(&self) -> &[Segment] {
        &self.segments
    }
}
