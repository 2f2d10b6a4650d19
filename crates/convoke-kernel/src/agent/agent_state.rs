//! The small, cheaply copied half of an agent's state: where it stands. One exhaustive `match` over (stage,
//! event) says what may follow what; anything else is an illegal history and refused.

use std::sync::Arc;

use super::lasting::{Lasting, Plan};
use super::lessons::Lessons;
use super::rounds::{answered, asked};
use super::state::{Asking, Exchange, LastTurn, Mark, Slot, Stage, Tail};
use crate::consent::{self, Consent, ConsentBasis};
use crate::event::{
    AgentStarted, Event, ExchangeClosed, ExchangeOpened, ModelCalled, ModelFailed, NoteAppended, RoomRefused,
};
use crate::ids::SessionId;
use crate::lesson::Feature;
use crate::mode::Mode;
use crate::outcome::{Outcome, ShellState};
use crate::segment::Segment;
use crate::spec::{AgentSpec, Role};
use crate::tools::{self, Caller, Wanted};
use crate::wire::{Failure, FailureKind, ToolCall, Usage};

/// An event that cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("illegal event: {event} cannot follow while the agent is {stage}")]
pub struct IllegalEvent {
    /// Where the agent stood.
    pub stage: &'static str,
    /// What was to happen.
    pub event: &'static str,
}

/// A request that adds more blocks than this to the one before it marks that one's end too: the server looks
/// back only twenty blocks from a mark for something it has in its cache.
const MANY_BLOCKS: usize = 15;

/// Where an agent stands, without the bytes of its history.
#[derive(Debug, Clone)]
pub(super) struct AgentState {
    pub(super) spec: Option<Arc<AgentSpec>>,
    pub(super) stage: Stage,
    pub(super) mode: Option<Mode>,
    pub(super) exchange: Option<Exchange>,
    /// The first thing that was asked.
    pub(super) task: String,
    pub(super) mark: Mark,
    /// A digest of what all agents of this make begin their requests with.
    pub(super) prefix: [u8; 32],
    /// Segments of the last request that was answered, and the blocks that have been added since.
    pub(super) answered: usize,
    pub(super) added_blocks: usize,
    pub(super) calls: u32,
    pub(super) turns: u32,
    pub(super) commands: u32,
    pub(super) usage: Usage,
    /// `None` once a reply of unknown price was paid for.
    pub(super) cost_nano: Option<u64>,
    pub(super) shell: Option<ShellState>,
    /// Files that changed while no process drove the agent and that it has not been told of.
    pub(super) changed: Vec<String>,
    /// Runs in the background, launched by calls and not yet told of.
    pub(super) running: Vec<String>,
    /// Why the last fan-out was refused whole for want of room, if none was admitted since.
    pub(super) refused_fan_out: Option<String>,
    /// What the last exchange came to before lost work was tried again.
    pub(super) answered_before: Option<Outcome>,
    /// What every history of the agent begins with.
    pub(super) base: Mark,
    pub(super) lasting: Lasting,
    /// The session whose history it began with.
    pub(super) forked: Option<SessionId>,
    pub(super) lessons: Lessons,
}

impl AgentState {
    pub(super) fn new() -> Self {
        Self {
            spec: None,
            stage: Stage::New,
            mode: None,
            exchange: None,
            task: String::new(),
            mark: Mark::new(),
            prefix: [0; 32],
            answered: 0,
            added_blocks: 0,
            calls: 0,
            turns: 0,
            commands: 0,
            usage: Usage::default(),
            cost_nano: Some(0),
            shell: None,
            changed: Vec::new(),
            running: Vec::new(),
            refused_fan_out: None,
            answered_before: None,
            base: Mark::new(),
            lasting: Lasting::default(),
            forked: None,
            lessons: Lessons::default(),
        }
    }

    /// Whether a resume would go on with something.
    pub(super) fn can_go_on(&self) -> bool {
        match self.stage {
            Stage::New => false,
            Stage::Idle => {
                !self.running.is_empty() || self.exchange.as_ref().is_some_and(Exchange::reopenable)
            }
            Stage::Ready(_)
            | Stage::Calling(_)
            | Stage::Waiting(..)
            | Stage::Tools(_)
            | Stage::Compacting => true,
            Stage::Ending => true,
        }
    }

    pub(super) fn role(&self) -> Role {
        self.spec.as_ref().map_or(Role::Lead, |spec| spec.role)
    }

    /// What a call asks for, as far as this agent may ask for it.
    pub(super) fn read(&self, call: &ToolCall) -> Result<Wanted, String> {
        let spec = self.spec.as_ref();
        let caller = Caller {
            role: self.role(),
            findings: spec.map_or(0, |spec| spec.findings),
            hands: spec.and_then(|spec| spec.local_tools.as_ref()),
            output: spec.and_then(|spec| spec.output.as_ref()),
            consent: self.consent(),
            in_team: spec.is_some_and(|spec| spec.team.is_some()),
            given: spec.map_or(&[], |spec| spec.given()),
        };
        tools::read(call, &caller)
    }

    /// Whether a person agreed to a workflow in this exchange. Only what the person said counts.
    fn consent(&self) -> Consent {
        let fan_out = self.spec.as_ref().and_then(|spec| spec.fan_out.as_ref());
        let quoted = fan_out.is_some_and(|fan_out| fan_out.quoted);
        if self.exchange.as_ref().is_some_and(|exchange| exchange.call.is_some()) {
            return Consent::Given(ConsentBasis::Command);
        }
        let said_it = |exchange: &&Exchange| {
            exchange.notice.is_none() && !exchange.brought && !(quoted && exchange.text == self.task)
        };
        let own = self.exchange.as_ref().filter(said_it);
        let said = own.map_or("", |exchange| exchange.text.as_str());
        let flag = fan_out.is_some_and(|fan_out| fan_out.consent);
        consent::consents(self.mode.is_some_and(|mode| mode.is_on()), said, flag)
    }

    /// The segment that gets a cache mark of its own, beside the one the server puts at the end.
    pub(super) fn second_mark(&self) -> Option<usize> {
        (self.sends(Feature::CacheMarks) && self.added_blocks > MANY_BLOCKS)
            .then(|| self.answered.checked_sub(1))
            .flatten()
    }

    pub(super) fn ready(&self, max_tokens: u32) -> Stage {
        Stage::Ready(Asking { call: self.calls + 1, attempt: 0, failures: 0, max_tokens })
    }

    pub(super) fn first_room(&self) -> u32 {
        self.spec.as_ref().map_or(0, |spec| spec.first_max_tokens())
    }

    pub(super) fn push(&mut self, segment: &Segment, tail: Tail) {
        self.mark.push(segment, tail);
        self.lasting.since = self.lasting.since.saturating_add(segment.as_str().len() as u64);
        self.added_blocks += segment.blocks();
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
            (Stage::Idle, Event::ModeSet(e)) => {
                self.mode.as_mut()?.set(e.on);
                Some(Stage::Idle)
            }
            (Stage::Idle, Event::Retuned(e)) => self.retuned(e),
            (Stage::Idle, Event::HistoryForked(e)) => self.history_forked(e),
            (Stage::Idle, Event::ExchangeOpened(e)) => Some(self.opened(e)),
            (Stage::Idle, Event::CallMade(e)) => Some(self.call_made(e)),
            (Stage::Idle, Event::ExchangeReopened(_)) => self.reopened(),
            (Stage::Ready(asking) | Stage::Waiting(asking, _), Event::ModelCalled(e)) => {
                self.called(asking, e)
            }
            (Stage::Ready(asking) | Stage::Waiting(asking, _), Event::RoomRefused(e)) => {
                self.refused(&asking, e)
            }
            (Stage::Ready(asking) | Stage::Waiting(asking, _), Event::NoteAppended(e)) => {
                self.noted(asking, e)
            }
            (Stage::Ready(asking), Event::MailDelivered(e)) => self.mail_delivered(asking, e),
            (Stage::Calling(asking), Event::ModelFailed(e)) => self.failed(asking, e),
            (Stage::Calling(asking), Event::ModelReplied(e)) if self.lasting.summarising => {
                self.summary_came(&asking, e)
            }
            (Stage::Compacting, Event::HistoryCompacted(e)) => self.compacted(e),
            // A summary for which the server would not read the history is done without.
            (Stage::Ready(_) | Stage::Waiting(..), Event::HistoryCompacted(e))
                if self.lasting.summarising =>
            {
                self.compacted(e)
            }
            (Stage::Calling(asking), Event::ModelReplied(e)) => self.replied(&asking, e),
            (Stage::Tools(slots), Event::ApprovalAsked(e)) => asked(slots, e),
            (Stage::Tools(slots), Event::ApprovalGiven(e)) => answered(slots, e),
            (Stage::Tools(slots), Event::ToolStarted(e)) => self.tool_started(slots, e),
            (Stage::Tools(slots), Event::ToolFinished(e)) => self.tool_finished(slots, e),
            (Stage::Tools(slots), Event::ResultsAppended(e)) => self.results_appended(&slots, e),
            (Stage::Ready(_) | Stage::Waiting(..) | Stage::Ending, Event::ExchangeStopped(e)) => {
                self.stopped(e)
            }
            (Stage::Ending, Event::ExchangeClosed(e)) => self.closed(e),
            (stage, Event::Resumed(e)) => {
                owe(&mut self.changed, e.changed.iter().cloned());
                if let Some(facts) = &e.facts {
                    self.taken_up(facts);
                    self.lasting.facts = Some(facts.clone());
                }
                Some(stage)
            }
            (stage, Event::CompactionAsked(e)) => {
                self.ask_compaction(&e.focus);
                Some(stage)
            }
            (stage, Event::EndpointLearnt(e)) => self.learnt(stage, e),
            (stage, Event::InputRejected(_)) => Some(stage),
            _ => None,
        }
    }

    fn started(&mut self, e: &AgentStarted) -> Stage {
        self.mark = Mark::of(&e.spec);
        self.prefix = self.mark.digest;
        self.base = self.mark;
        self.lasting.since = self.mark.tokens;
        if e.spec.team.as_ref().is_some_and(|team| team.requires_plan) {
            self.lasting.plan = Plan::Needed;
        }
        self.mode = e.spec.fan_out.as_ref().map(|fan_out| Mode::new(fan_out.mode));
        self.spec = Some(Arc::new(e.spec.clone()));
        Stage::Idle
    }

    fn opened(&mut self, e: &ExchangeOpened) -> Stage {
        if self.task.is_empty() {
            self.task = e.text.clone();
        }
        let exchange = Exchange::new(e.exchange, &e.input, &e.text, self.mark);
        let section = e.section;
        let told = e.changed.clone();
        let notice = e.notice.clone();
        self.running.retain(|run| notice.as_ref() != Some(run));
        let brought = !e.letters.is_empty() || e.work.is_some();
        let read = brought.then(|| Mark::texts(&e.message));
        let letters = e.letters.clone();
        let facts = if e.capsule { self.lasting.facts.take() } else { None };
        let since = self.lasting.since;
        // Other words may leave room that the last ones did not.
        self.lasting.futile = false;
        self.exchange =
            Some(Exchange { section, told, notice, letters, brought, read, facts, since, ..exchange });
        match &e.work {
            Some(task) => self.take_work(task.clone()),
            // The outcome of this has nothing to do with a task that ended before.
            None => self.drop_ended_work(),
        }
        self.hear_letters(&e.letters);
        self.changed.retain(|file| !e.changed.contains(file));
        self.push(&e.message, Tail::User);
        if let Some(system) = &e.system {
            self.push(system, Tail::System);
        }
        self.ready(self.first_room())
    }

    fn reopened(&mut self) -> Option<Stage> {
        let exchange = self.exchange.as_mut()?;
        exchange.outcome = None;
        exchange.stopped = false;
        // A person can raise the caps; the turns stay used up, and a circle stays one.
        exchange.last_turn =
            exchange.last_turn.take().filter(|last| matches!(last, LastTurn::Turns | LastTurn::Stuck(_)));
        exchange.strikes = 0;
        exchange.widened = false;
        exchange.filed = None;
        exchange.degraded = None;
        exchange.asked_to_report = 0;
        exchange.misfits = 0;
        exchange.ends = false;
        if let Some(call) = &exchange.call {
            return Some(Stage::Tools(vec![Slot::queued(call)]));
        }
        Some(self.ready(self.first_room()))
    }

    fn called(&mut self, asking: Asking, e: &ModelCalled) -> Option<Stage> {
        let follows = e.call == asking.call && e.attempt == asking.attempt + 1;
        follows.then(|| {
            self.calls = e.call;
            Stage::Calling(Asking { attempt: e.attempt, max_tokens: e.max_tokens, ..asking })
        })
    }

    fn refused(&mut self, asking: &Asking, e: &RoomRefused) -> Option<Stage> {
        if e.call != asking.call {
            return None;
        }
        let Failure { kind, message, .. } = e.failure.clone();
        self.exchange.as_mut()?.so_far = Some(Outcome::Failed { kind, message, text: String::new() });
        Some(Stage::Ending)
    }

    fn failed(&mut self, asking: Asking, e: &ModelFailed) -> Option<Stage> {
        if (e.call, e.attempt) != (asking.call, asking.attempt) {
            return None;
        }
        let Failure { kind, message, .. } = e.failure.clone();
        let exchange = self.exchange.as_mut()?;
        // A hand-back that does not fit the window either: what was said before it is what there is.
        let full = exchange.last_turn == Some(LastTurn::Full);
        let text = if full { exchange.said.clone() } else { String::new() };
        exchange.so_far = Some(Outcome::Failed { kind, message, text });
        Some(match (e.retry_at, kind) {
            (Some(at), _) => Stage::Waiting(Asking { failures: asking.failures + 1, ..asking }, at),
            (None, FailureKind::Interrupted) => Stage::Ready(asking),
            (None, _) => Stage::Ending,
        })
    }

    fn noted(&mut self, asking: Asking, e: &NoteAppended) -> Option<Stage> {
        if self.mark.tail == Tail::System {
            // The API takes no user message behind a system message.
            return None;
        }
        if e.summary {
            self.lasting.before = Some((self.mark, self.lasting.since));
        }
        self.push(&e.message, Tail::User);
        let exchange = self.exchange.as_mut()?;
        if e.hand_back {
            // There is room for one reply more, and that is the agent's last word and no summary.
            self.lasting.summarising = false;
            let otherwise = if e.full { LastTurn::Full } else { LastTurn::Turns };
            exchange.last_turn = Some(e.short.clone().map_or(otherwise, LastTurn::Short));
        }
        exchange.told.extend(e.changed.iter().cloned());
        self.changed.retain(|file| !e.changed.contains(file));
        if e.capsule {
            exchange.facts = self.lasting.facts.take();
        }
        Some(if e.summary { self.summarise(asking) } else { Stage::Ready(asking) })
    }

    fn closed(&mut self, e: &ExchangeClosed) -> Option<Stage> {
        let exchange = self.exchange.as_mut()?;
        exchange.outcome = Some(e.outcome.clone());
        exchange.taken_back = e.taken_back;
        if e.taken_back {
            self.mark = exchange.start;
            owe(&mut self.changed, exchange.told.drain(..));
            exchange.letters.clear();
            exchange.fresh.clear();
            self.lasting.facts = self.lasting.facts.take().or(exchange.facts.take());
            self.lasting.since = exchange.since;
            self.unhear_letters(&e.returned);
        }
        self.lasting.summarising = false;
        self.end_exchange();
        Some(Stage::Idle)
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
