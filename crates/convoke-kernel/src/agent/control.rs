//! The small, cheaply copied half of an agent's state: where it stands. One exhaustive `match` over (stage, event)
//! says what may follow what; anything else is an illegal history and refused.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::judge::judge;
use crate::event::{
    AgentStarted, Event, ExchangeClosed, ExchangeOpened, Kept, ModelCalled, ModelFailed, ModelReplied, NoteAppended,
    ResultsAppended, ToolFinished, ToolStarted,
};
use crate::outcome::{Outcome, ShellState, ToolResult};
use crate::segment::Segment;
use crate::spec::AgentSpec;
use crate::wire::{Failure, FailureKind, Reply, StopReason, ToolCall, Usage};

/// An event that cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal event: {event} cannot follow while the agent is {stage}")]
pub struct IllegalEvent {
    /// Where the agent stood.
    pub stage: &'static str,
    /// What was to happen.
    pub event: &'static str,
}

/// A request that is being asked, over all its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asking {
    pub(super) call: u32,
    /// Attempts made so far.
    pub(super) attempt: u32,
    /// Attempts that failed by a passing fault; interruptions do not count.
    pub(super) failures: u32,
    pub(super) max_tokens: u32,
}

/// One tool call of the reply that is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) call: ToolCall,
    pub(super) state: SlotState,
}

impl Slot {
    fn queued(call: &ToolCall) -> Self {
        Self { call: call.clone(), state: SlotState::Queued }
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state, SlotState::Finished(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlotState {
    Queued,
    Running,
    Finished(ToolResult),
}

/// Where an agent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing has happened yet.
    New,
    /// No exchange is open.
    Idle,
    /// The history wants a reply and none is being asked for.
    Ready(Asking),
    /// The model is being asked.
    Calling(Asking),
    /// The model is asked again at this time.
    Waiting(Asking, u64),
    /// Tools are running.
    Tools(Vec<Slot>),
    /// Nothing follows but the end of the exchange.
    Ending,
}

impl Stage {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Stage::New => "new",
            Stage::Idle => "idle",
            Stage::Ready(_) => "ready",
            Stage::Calling(_) => "calling",
            Stage::Waiting(..) => "waiting",
            Stage::Tools(_) => "running tools",
            Stage::Ending => "ending",
        }
    }
}

/// A place in the history that can be gone back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) segments: usize,
    pub(super) digest: [u8; 32],
}

impl Mark {
    fn advance(&mut self, segment: &[&str]) {
        let mut hasher = Sha256::new();
        hasher.update(self.digest);
        for part in segment {
            hasher.update(part.as_bytes());
        }
        self.digest = hasher.finalize().into();
        self.segments += 1;
    }
}

/// What was said in the exchange that is open or was closed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) number: u32,
    pub(super) input: String,
    pub(super) text: String,
    /// Where the history stood before it.
    pub(super) start: Mark,
    /// Replies of it that are in the history.
    pub(super) kept: u32,
    /// Replies that could not be used.
    pub(super) strikes: u32,
    /// Whether a cut reply was already tried again with more room.
    pub(super) widened: bool,
    pub(super) handing_back: bool,
    /// Changed files it was told of; owed again if it is taken back.
    pub(super) told: Vec<String>,
    /// What it would come to if it ended with its latest reply or failure.
    pub(super) so_far: Option<Outcome>,
    pub(super) outcome: Option<Outcome>,
    pub(super) taken_back: bool,
}

impl Exchange {
    /// Whether going on with a closed exchange makes sense: it failed for a reason that may be gone by now.
    pub(super) fn reopenable(&self) -> bool {
        match self.outcome.as_ref().and_then(Outcome::failure) {
            Some(
                FailureKind::Api
                | FailureKind::Transport
                | FailureKind::RateLimited
                | FailureKind::Deadline
                | FailureKind::Interrupted
                | FailureKind::Cancelled
                | FailureKind::Budget
                | FailureKind::Sandbox
                | FailureKind::InvalidOutput
                | FailureKind::Internal,
            ) => true,
            // What the model itself made of the request would come out the same again.
            Some(FailureKind::Refused | FailureKind::Truncated | FailureKind::ContextFull | FailureKind::TurnLimit)
            | None => false,
        }
    }
}

/// Where an agent stands, without the bytes of its history.
#[derive(Debug, Clone)]
pub(super) struct Control {
    pub(super) spec: Option<Arc<AgentSpec>>,
    pub(super) stage: Stage,
    pub(super) exchange: Option<Exchange>,
    /// The first thing that was asked.
    pub(super) task: String,
    pub(super) mark: Mark,
    pub(super) calls: u32,
    pub(super) turns: u32,
    pub(super) commands: u32,
    pub(super) usage: Usage,
    /// `None` once a reply of unknown price was paid for.
    pub(super) cost_nano: Option<u64>,
    pub(super) shell: Option<ShellState>,
    /// Files that changed while nobody drove the agent and that it has not been told of.
    pub(super) changed: Vec<String>,
    /// Whether the history ends with a reply that said its last word: only a user message may follow it.
    pub(super) ends_with_reply: bool,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            spec: None,
            stage: Stage::New,
            exchange: None,
            task: String::new(),
            mark: Mark { segments: 0, digest: [0; 32] },
            calls: 0,
            turns: 0,
            commands: 0,
            usage: Usage::default(),
            cost_nano: Some(0),
            shell: None,
            changed: Vec::new(),
            ends_with_reply: false,
        }
    }

    /// Whether a resume would go on with something.
    pub(super) fn can_go_on(&self) -> bool {
        match self.stage {
            Stage::New => false,
            Stage::Idle => self.exchange.as_ref().is_some_and(Exchange::reopenable),
            Stage::Ready(_) | Stage::Calling(_) | Stage::Waiting(..) | Stage::Tools(_) | Stage::Ending => true,
        }
    }

    fn ready(&self, max_tokens: u32) -> Stage {
        Stage::Ready(Asking { call: self.calls + 1, attempt: 0, failures: 0, max_tokens })
    }

    fn first_room(&self) -> u32 {
        self.spec.as_ref().map_or(0, |spec| spec.first_max_tokens())
    }

    fn push(&mut self, segment: &Segment) {
        self.mark.advance(&[segment.as_str()]);
        self.ends_with_reply = false;
    }

    /// Takes one step, or says that it is illegal; the caller then discards the state.
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), IllegalEvent> {
        let illegal = IllegalEvent { stage: self.stage.name(), event: event.kind() };
        let stage = std::mem::replace(&mut self.stage, Stage::Ending);
        self.stage = self.next(stage, event).ok_or(illegal)?;
        Ok(())
    }

    /// What may follow what; `None` is everything else.
    fn next(&mut self, stage: Stage, event: &Event) -> Option<Stage> {
        match (stage, event) {
            (Stage::New, Event::AgentStarted(e)) => Some(self.started(e)),
            (Stage::Idle, Event::ExchangeOpened(e)) => Some(self.opened(e)),
            (Stage::Idle, Event::ExchangeReopened(_)) => self.reopened(),
            (Stage::Ready(asking) | Stage::Waiting(asking, _), Event::ModelCalled(e)) => self.called(asking, e),
            (Stage::Calling(asking), Event::ModelFailed(e)) => self.failed(asking, e),
            (Stage::Calling(asking), Event::ModelReplied(e)) => self.replied(&asking, e),
            (Stage::Ready(asking), Event::NoteAppended(e)) => self.noted(asking, e),
            (Stage::Tools(slots), Event::ToolStarted(e)) => self.tool_started(slots, e),
            (Stage::Tools(slots), Event::ToolFinished(e)) => self.tool_finished(slots, e),
            (Stage::Tools(slots), Event::ResultsAppended(e)) => self.results_appended(&slots, e),
            (Stage::Ending, Event::ExchangeClosed(e)) => self.closed(e),
            (stage, Event::Resumed(e)) => {
                owe(&mut self.changed, e.changed.iter().cloned());
                Some(stage)
            }
            _ => None,
        }
    }

    fn started(&mut self, e: &AgentStarted) -> Stage {
        // Cache marks may move without changing what the model reads, so the digest leaves them out.
        let params = e.spec.params.iter().filter(|p| p.name != "cache_control");
        let params = params.flat_map(|p| [p.name.as_str(), p.value.as_str()]);
        let fixed = [e.spec.model.as_str(), e.spec.system.as_str(), e.spec.tools.as_str()];
        self.mark.advance(&fixed.into_iter().chain(params).collect::<Vec<_>>());
        self.mark.segments = 0;
        self.spec = Some(Arc::new(e.spec.clone()));
        Stage::Idle
    }

    fn opened(&mut self, e: &ExchangeOpened) -> Stage {
        if self.task.is_empty() {
            self.task = e.text.clone();
        }
        self.exchange = Some(Exchange {
            number: e.exchange,
            input: e.input.clone(),
            text: e.text.clone(),
            start: self.mark,
            kept: 0,
            strikes: 0,
            widened: false,
            handing_back: false,
            told: Vec::new(),
            so_far: None,
            outcome: None,
            taken_back: false,
        });
        self.push(&e.message);
        self.ready(self.first_room())
    }

    fn reopened(&mut self) -> Option<Stage> {
        let exchange = self.exchange.as_mut()?;
        exchange.outcome = None;
        exchange.strikes = 0;
        exchange.widened = false;
        Some(self.ready(self.first_room()))
    }

    fn called(&mut self, asking: Asking, e: &ModelCalled) -> Option<Stage> {
        let follows = e.call == asking.call && e.attempt == asking.attempt + 1;
        follows.then(|| {
            self.calls = e.call;
            Stage::Calling(Asking { attempt: e.attempt, max_tokens: e.max_tokens, ..asking })
        })
    }

    fn failed(&mut self, asking: Asking, e: &ModelFailed) -> Option<Stage> {
        if (e.call, e.attempt) != (asking.call, asking.attempt) {
            return None;
        }
        let Failure { kind, message, .. } = e.failure.clone();
        self.exchange.as_mut()?.so_far = Some(Outcome::Failed { kind, message, text: String::new() });
        Some(match (e.retry_at, kind) {
            (Some(at), _) => Stage::Waiting(Asking { failures: asking.failures + 1, ..asking }, at),
            (None, FailureKind::Interrupted) => Stage::Ready(asking),
            (None, _) => Stage::Ending,
        })
    }

    fn replied(&mut self, asking: &Asking, e: &ModelReplied) -> Option<Stage> {
        if e.call != asking.call {
            return None;
        }
        self.pay(&e.reply.usage, e.reply.cost_nano);
        let (cap, max_turns) = self.spec.as_ref().map(|s| (s.capabilities.max_output, s.limits.max_turns))?;
        let exchange = self.exchange.as_mut()?;
        exchange.so_far = Some(judge(exchange.handing_back, e.kept, &e.reply));
        Some(match e.kept {
            Kept::Yes => {
                exchange.kept += 1;
                exchange.widened = false;
                self.turns += 1;
                self.mark.advance(&[e.reply.content.as_str()]);
                self.ends_with_reply = e.reply.calls.is_empty() && e.reply.stop != StopReason::PauseTurn;
                match after_kept(exchange, &e.reply, max_turns) {
                    Next::Tools => Stage::Tools(e.reply.calls.iter().map(Slot::queued).collect()),
                    Next::Ask => self.ready(self.first_room()),
                    Next::End => Stage::Ending,
                }
            }
            Kept::Cut if !exchange.widened && asking.max_tokens < cap => {
                exchange.widened = true;
                self.ready(cap)
            }
            Kept::Empty | Kept::Unusable if exchange.strikes == 0 => {
                exchange.strikes += 1;
                self.ready(asking.max_tokens)
            }
            Kept::Cut | Kept::Empty | Kept::Unusable | Kept::Refused | Kept::WindowFull => Stage::Ending,
        })
    }

    fn noted(&mut self, asking: Asking, e: &NoteAppended) -> Option<Stage> {
        self.push(&e.message);
        let exchange = self.exchange.as_mut()?;
        exchange.handing_back |= e.hand_back;
        exchange.told.extend(e.changed.iter().cloned());
        self.changed.retain(|file| !e.changed.contains(file));
        Some(Stage::Ready(asking))
    }

    fn tool_started(&mut self, mut slots: Vec<Slot>, e: &ToolStarted) -> Option<Stage> {
        slots.iter_mut().find(|slot| slot.call.id == e.id && slot.state == SlotState::Queued)?.state =
            SlotState::Running;
        self.commands += 1;
        Some(Stage::Tools(slots))
    }

    fn tool_finished(&mut self, mut slots: Vec<Slot>, e: &ToolFinished) -> Option<Stage> {
        let slot = slots.iter_mut().find(|slot| slot.call.id == e.id && !slot.is_finished())?;
        slot.state = SlotState::Finished(e.result.clone());
        if let Some(shell) = &e.result.shell {
            self.shell = Some(shell.clone());
        }
        Some(Stage::Tools(slots))
    }

    fn results_appended(&mut self, slots: &[Slot], e: &ResultsAppended) -> Option<Stage> {
        if !slots.iter().all(Slot::is_finished) {
            return None;
        }
        self.push(&e.message);
        let exchange = self.exchange.as_mut()?;
        if exchange.handing_back {
            return Some(Stage::Ending);
        }
        exchange.handing_back = e.hand_back;
        Some(self.ready(self.first_room()))
    }

    fn closed(&mut self, e: &ExchangeClosed) -> Option<Stage> {
        let exchange = self.exchange.as_mut()?;
        exchange.outcome = Some(e.outcome.clone());
        exchange.taken_back = e.taken_back;
        if e.taken_back {
            self.mark = exchange.start;
            owe(&mut self.changed, exchange.told.drain(..));
        }
        Some(Stage::Idle)
    }

    fn pay(&mut self, usage: &Usage, cost_nano: Option<u64>) {
        self.usage.add(usage);
        self.cost_nano = self.cost_nano.zip(cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
    }
}

/// Adds files to those the agent is to be told of, each once.
fn owe(changed: &mut Vec<String>, files: impl Iterator<Item = String>) {
    for file in files {
        if !changed.contains(&file) {
            changed.push(file);
        }
    }
}

enum Next {
    Tools,
    Ask,
    End,
}

fn after_kept(exchange: &mut Exchange, reply: &Reply, max_turns: u32) -> Next {
    if !reply.calls.is_empty() {
        // It got on with its work: only faults in a row count.
        exchange.strikes = 0;
        return Next::Tools;
    }
    if reply.stop == StopReason::PauseTurn {
        return if exchange.handing_back || exchange.kept >= max_turns { Next::End } else { Next::Ask };
    }
    if reply.text.trim().is_empty() && exchange.strikes == 0 && !exchange.handing_back {
        exchange.strikes += 1;
        return Next::Ask;
    }
    Next::End
}
