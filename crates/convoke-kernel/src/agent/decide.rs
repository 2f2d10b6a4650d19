//! What follows from an input. Pure: the same state, input and time give the same events.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::agent_state::{AgentState, IllegalEvent};
use super::mail::Opening;
use super::state::{Asking, Exchange, Filed, LastTurn, Slot, SlotState, Stage, Tail};
use super::{Input, Pace, RoomAnswer, Unexpected};
use crate::capsule::Facts;
use crate::event::{
    AgentStarted, CompactionAsked, Event, ExchangeClosed, ExchangeOpened, ExchangeReopened, InputRejected,
    Kept, ModeSet, ModelCalled, ModelFailed, ModelReplied, NoteAppended, Purpose, Resumed, RoomRefused,
    ToolFinished,
};
use crate::fit::TooLong;
use crate::lesson::Feature;
use crate::outcome::{Outcome, ToolResult};
use crate::prompts;
use crate::segment::Segment;
use crate::tools::STRUCTURED_OUTPUT;
use crate::wire::{Failure, FailureKind, Reply, Retry, StopReason};

/// Events under way, with the state they lead to.
pub(super) struct Draft {
    pub(super) state: AgentState,
    pub(super) at: u64,
    events: Vec<Event>,
}

impl Draft {
    pub(super) fn new(state: AgentState, at: u64) -> Self {
        Self { state, at, events: Vec::new() }
    }

    pub(super) fn emit(&mut self, event: impl Into<Event>) -> Result<(), IllegalEvent> {
        let event = event.into();
        self.state.apply(&event)?;
        self.events.push(event);
        Ok(())
    }

    /// `reused` tells whether the history already holds a tool call with this id.
    pub(super) fn decide(
        mut self,
        input: Input,
        pace: Pace,
        reused: impl Fn(&str) -> bool,
    ) -> Result<Vec<Event>, Unexpected> {
        match input {
            Input::Start { spec, key, text } => {
                self.emit(AgentStarted { spec: *spec })?;
                self.say(key, text)?;
            }
            Input::StartCall { spec, key, text, input } => {
                self.emit(AgentStarted { spec: *spec })?;
                self.call(key, text, input)?;
            }
            Input::StartFork { spec, fork } => {
                self.emit(AgentStarted { spec: *spec })?;
                self.emit(*fork)?;
            }
            Input::Retune { model, capabilities, rates } => self.retune(model, capabilities, rates)?,
            Input::Say { key, text } => self.say(key, text)?,
            Input::Told { key, run, text } => self.told(key, run, text)?,
            Input::Call { key, text, input } => self.call(key, text, input)?,
            Input::Replied { .. } if self.state.lasting.summarising => return Err(Unexpected::Stale),
            Input::Replied { call, reply } => self.replied(call, *reply, reused)?,
            Input::Failed { call, attempt, failure } => self.failed(call, attempt, failure)?,
            Input::ToolDone { id, result } => self.emit(ToolFinished { id, result })?,
            Input::Answered { id, allow, by } => self.answered(id, allow, by)?,
            Input::SetMode { on } => self.set_mode(on)?,
            Input::Room { call, answer } => self.room(call, answer)?,
            Input::Resume { changed } => self.resume(changed, None)?,
            Input::ResumeAs { changed, facts } => self.resume(changed, Some(facts))?,
            Input::Mail { key, letters, rests } => self.mail(key, letters, &rests)?,
            Input::Work { key, brief, again } => self.work(key, &brief, again)?,
            Input::Summarised { call, reply, facts } => self.summarised(call, *reply, *facts)?,
            Input::Unsummarised { call, attempt, failure, facts } => {
                self.unsummarised(call, attempt, failure, *facts)?
            }
            Input::Learn { learnt } => {
                // It decides nothing: a request whose room is granted stays
                // the one that the room was reckoned for.
                self.learn(*learnt)?;
                return Ok(self.events);
            }
            Input::Compact { focus } => self.emit(CompactionAsked { focus })?,
            Input::StopExchange { by } => self.stop(by)?,
            Input::Reject { input, why, body } => self.emit(InputRejected { input, why, body })?,
        }
        if pace == Pace::Go {
            self.settle()?;
        } else {
            self.finish_if_ending()?;
        }
        Ok(self.events)
    }

    fn say(&mut self, key: String, text: String) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        if blank(&text) {
            return Err(Unexpected::Blank);
        }
        self.open(Opening { key, text, ..Opening::default() })
    }

    /// Opens an exchange with what was said, or with what the agent has to be told.
    pub(super) fn open(&mut self, opening: Opening) -> Result<(), Unexpected> {
        let Opening { key, text, body, notice, letters, brief } = opening;
        let exchange = self.state.exchange.as_ref().map_or(0, |e| e.number) + 1;
        // A new history begins with the mode section in any case, and a request
        // for a summary could not stand behind it.
        let section = self.state.mode.and_then(|mode| mode.owed()).filter(|_| !self.state.compaction_due());
        let stated = self.state.spec.as_ref().is_some_and(|spec| spec.capabilities.system_role);
        let by_role = stated && self.state.sends(Feature::SystemRole);
        let changed = self.state.changed.clone();
        let told = || notice.as_ref().map_or_else(|| text.clone(), |run| prompts::notice(run, &text));
        let mut blocks = vec![body.unwrap_or_else(told)];
        let capsule = self.who_it_is(&letters, brief.as_ref())?;
        let carries = capsule.is_some();
        blocks.extend(capsule);
        blocks.extend(self.state.fork_note());
        let work = brief.map(|brief| brief.task.id);
        if !changed.is_empty() {
            blocks.push(prompts::changed(&changed));
        }
        blocks.extend(section.filter(|_| !by_role).map(prompts::reminder));
        let message = message("user", &blocks);
        let system =
            section.filter(|_| by_role).map(|section| self::message("system", &[prompts::section(section)]));
        let opened = ExchangeOpened {
            exchange,
            input: key,
            text,
            message,
            system,
            section,
            changed,
            notice,
            letters,
            work,
            capsule: carries,
        };
        self.emit(opened)?;
        Ok(())
    }

    fn set_mode(&mut self, on: bool) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        // An agent without a mode has no switch to turn.
        if self.state.mode.is_some_and(|mode| mode.is_on() != on) {
            self.emit(ModeSet { on })?;
        }
        Ok(())
    }

    /// The budget has answered: there is room, or room for one last turn, or none.
    fn room(&mut self, call: u32, answer: RoomAnswer) -> Result<(), Unexpected> {
        let (Stage::Ready(asking) | Stage::Waiting(asking, _)) = &self.state.stage else {
            return Err(Unexpected::Stale);
        };
        if asking.call != call {
            return Err(Unexpected::Stale);
        }
        let is_new = asking.attempt == 0;
        match answer {
            RoomAnswer::Go { max_tokens } => {
                // A repeat stays as it was, so what changed meanwhile is told with the next request that is
                // new.
                if is_new && self.state.mark.tail != Tail::System && !self.state.lasting.summarising {
                    self.tell_what_is_owed()?;
                }
                self.call_model(max_tokens.min(self.state.fits()))
            }
            RoomAnswer::HandBack { max_tokens, why } => {
                let exchange = self.state.exchange.as_ref();
                let asked = exchange.is_some_and(|exchange| exchange.last_turn.is_some());
                // An agent that has said nothing yet has nothing to hand back.
                if !asked && exchange.is_none_or(|exchange| exchange.kept == 0) {
                    return self.refuse(call, why);
                }
                if !asked {
                    let message = user_text(&prompts::hand_back_short(self.final_tool(), &why));
                    self.emit(NoteAppended {
                        hand_back: true,
                        short: Some(why),
                        ..NoteAppended::of(message)
                    })?;
                }
                self.call_model(max_tokens.min(self.state.fits()))
            }
            RoomAnswer::Refused { why } => self.refuse(call, why),
            RoomAnswer::GivenUp { kind, why } => self.refuse_as(kind, call, why),
        }
    }

    /// Puts what the agent is owed into the history: files that
    /// changed, its capsule, and how far its work is.
    fn tell_what_is_owed(&mut self) -> Result<(), Unexpected> {
        let changed = self.state.changed.clone();
        let capsule = self.who_it_is(&[], None)?;
        if changed.is_empty() && capsule.is_none() {
            return Ok(());
        }
        let carries = capsule.is_some();
        let told = (!changed.is_empty()).then(|| prompts::changed(&changed));
        // Last, because it is what a model reads last: its work goes on, and nothing new is asked of it.
        let texts: Vec<String> = told.into_iter().chain(capsule).chain(self.under_way()).collect();
        self.emit(NoteAppended { changed, capsule: carries, ..NoteAppended::of(message("user", &texts)) })?;
        Ok(())
    }

    fn refuse(&mut self, call: u32, message: String) -> Result<(), Unexpected> {
        self.refuse_as(FailureKind::Budget, call, message)
    }

    /// Why the text that was asked is not sent: no request is made that leaves no room to work.
    fn too_long(&self, asking: &Asking) -> Option<TooLong> {
        let spec = self.state.spec.as_ref()?;
        let exchange = self.state.exchange.as_ref()?;
        let first = asking.attempt == 0 && exchange.kept == 0 && !self.state.lasting.summarising;
        // Letters, tasks of the board and what runs came to have limits of their own.
        let said = !exchange.brought && exchange.notice.is_none() && exchange.call.is_none();
        if first && said { spec.check_text(&exchange.text).err() } else { None }
    }

    fn refuse_as(&mut self, kind: FailureKind, call: u32, message: String) -> Result<(), Unexpected> {
        let failure =
            Failure { kind, message, retry: Retry::Never, request_id: None, unbilled: true, refused: None };
        self.emit(RoomRefused { call, failure })?;
        Ok(())
    }

    fn replied(&mut self, call: u32, reply: Reply, reused: impl Fn(&str) -> bool) -> Result<(), Unexpected> {
        let kept = match reply.stop {
            StopReason::Refusal => Kept::Refused,
            StopReason::MaxTokens => Kept::Cut,
            StopReason::ContextWindowExceeded => Kept::WindowFull,
            _ if reply.content.as_str() == "[]" => Kept::Empty,
            _ if repeats_an_id(&reply, reused) => Kept::Unusable,
            // It says that it calls tools and names none: something of it is missing.
            StopReason::ToolUse if reply.calls.is_empty() => Kept::Unusable,
            _ => Kept::Yes,
        };
        let wordless =
            kept == Kept::Empty || (kept == Kept::Yes && reply.calls.is_empty() && blank(&reply.text));
        let prose = kept == Kept::Yes && reply.calls.is_empty() && !wordless;
        let paused = reply.stop == StopReason::PauseTurn;
        self.emit(ModelReplied { call, reply, kept })?;
        let silent = wordless || prose;
        if silent
            && !paused
            && matches!(self.state.stage, Stage::Ready(_))
            && self.state.mark.tail != Tail::System
        {
            // A reply that got nowhere at the limit has used the last turn up: what is left is the hand-back.
            let hand_back = self.is_at_limit();
            let text = match self.final_tool() {
                tool if hand_back => prompts::hand_back(tool),
                Some(tool) if prose || tool == STRUCTURED_OUTPUT => prompts::end_with(tool),
                Some(_) | None => prompts::NUDGE.to_owned(),
            };
            self.emit(NoteAppended { hand_back, ..NoteAppended::of(user_text(&text)) })?;
        }
        Ok(())
    }

    fn resume(&mut self, changed: Vec<String>, facts: Option<Box<Facts>>) -> Result<(), Unexpected> {
        let facts = facts.filter(|_| self.state.membership().is_some());
        self.emit(Resumed { changed, facts })?;
        match &self.state.stage {
            Stage::Calling(asking) => {
                let failure = Failure {
                    kind: FailureKind::Interrupted,
                    message: "the process ended before the reply was recorded".to_owned(),
                    retry: Retry::Soon,
                    request_id: None,
                    unbilled: false,
                    refused: None,
                };
                let call = asking.call;
                let attempt = asking.attempt;
                self.emit(ModelFailed { call, attempt, failure, retry_at: None })?;
            }
            Stage::Tools(slots) => {
                // A command that was cut off may have done anything. What runs on streams of its own goes on
                // there.
                let cut_off = |slot: &&Slot| slot.state == SlotState::Running && !self.repeats(slot);
                let running: Vec<String> =
                    slots.iter().filter(cut_off).map(|slot| slot.call.id.clone()).collect();
                for id in running {
                    self.emit(ToolFinished { id, result: ToolResult::interrupted(prompts::INTERRUPTED) })?;
                }
            }
            Stage::Idle => self.reopen()?,
            Stage::New | Stage::Ready(_) | Stage::Waiting(..) | Stage::Compacting | Stage::Ending => {}
        }
        Ok(())
    }

    /// A failed exchange is taken up again: with its message if that was taken back, else from its last
    /// outcome.
    fn reopen(&mut self) -> Result<(), Unexpected> {
        let Some(exchange) = self.state.exchange.clone().filter(|closed| self.state.takes_up(closed)) else {
            return Ok(());
        };
        if exchange.taken_back {
            // Letters wait in the queue again, and a task that is held is offered again.
            if exchange.brought {
                return Ok(());
            }
            let Exchange { input: key, text, notice, .. } = exchange;
            return self.open(Opening { key, text, notice, ..Opening::default() });
        }
        self.emit(ExchangeReopened { exchange: exchange.number })?;
        if exchange.call.is_some() {
            return Ok(());
        }
        // A model does not go on after its own last word, or after a note that
        // nothing follows: a user message comes first.
        let short = exchange.outcome.as_ref().and_then(Outcome::failure) == Some(FailureKind::Budget);
        let handing_back = matches!(exchange.last_turn, Some(LastTurn::Short(_)));
        if self.state.mark.tail == Tail::Reply || handing_back {
            let text = match self.final_tool() {
                _ if short || handing_back => prompts::GO_ON.to_owned(),
                Some(tool @ STRUCTURED_OUTPUT) => prompts::end_with(tool),
                Some(_) | None => prompts::NUDGE.to_owned(),
            };
            self.emit(NoteAppended::of(user_text(&text)))?;
        }
        Ok(())
    }

    /// Decides what is due without any further input.
    fn settle(&mut self) -> Result<(), Unexpected> {
        loop {
            match &self.state.stage {
                Stage::Tools(_) => {
                    if !self.step_tools()? {
                        return Ok(());
                    }
                }
                Stage::Ending => self.finish_if_ending()?,
                Stage::Ready(asking) => {
                    let call = asking.call;
                    match self.too_long(asking) {
                        Some(why) => self.refuse_as(FailureKind::ContextFull, call, why.to_string())?,
                        None => return self.summarise_if_due(),
                    }
                }
                Stage::New | Stage::Idle | Stage::Calling(_) | Stage::Waiting(..) | Stage::Compacting => {
                    return Ok(());
                }
            }
        }
    }

    fn call_model(&mut self, max_tokens: u32) -> Result<(), Unexpected> {
        let (Stage::Ready(asking) | Stage::Waiting(asking, _)) = &self.state.stage else { return Ok(()) };
        let mut hasher = Sha256::new();
        hasher.update(self.state.mark.digest);
        hasher.update(max_tokens.to_be_bytes());
        let last_turn = self.state.exchange.as_ref().is_some_and(|e| e.last_turn.is_some());
        let event = ModelCalled {
            call: asking.call,
            attempt: asking.attempt + 1,
            segments: self.state.mark.segments,
            max_tokens,
            digest: hex(&hasher.finalize()),
            purpose: match last_turn {
                true => Purpose::HandBack,
                false if self.state.lasting.summarising => Purpose::Summary,
                false => Purpose::Turn,
            },
        };
        self.emit(event)?;
        Ok(())
    }

    pub(super) fn final_tool(&self) -> Option<&'static str> {
        self.state.spec.as_ref().and_then(|spec| spec.final_tool())
    }

    /// Whether the turns are used up and the hand-back has not been asked for.
    pub(super) fn is_at_limit(&self) -> bool {
        let max_turns = self.state.spec.as_ref().map_or(0, |spec| spec.limits.max_turns);
        let exchange = self.state.exchange.as_ref();
        exchange.is_some_and(|exchange| exchange.last_turn.is_none() && exchange.kept >= max_turns)
    }

    /// Closing is an outcome, not new work: it is recorded even while nothing new may start.
    fn finish_if_ending(&mut self) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Ending {
            return Ok(());
        }
        let Some(exchange) = &self.state.exchange else { return Err(Unexpected::Stale) };
        let outcome = exchange.so_far.clone().ok_or(Unexpected::Stale)?;
        let taken_back = outcome.failure().is_some() && exchange.kept == 0;
        let number = exchange.number;
        // A person's own call has put nothing into the history that could leave it again.
        let taken_back = taken_back && exchange.call.is_none();
        let degraded = exchange.degraded.clone();
        let returned = if taken_back { exchange.letters.clone() } else { Vec::new() };
        let (report, ballot) = match exchange.filed.clone() {
            Some(Filed::Report(report)) => (Some(report), None),
            Some(Filed::Ballot(ballot)) => (None, Some(ballot)),
            Some(Filed::Output(_)) | None => (None, None),
        };
        self.emit(ExchangeClosed {
            exchange: number,
            outcome,
            taken_back,
            report,
            ballot,
            degraded,
            returned,
        })?;
        Ok(())
    }
}

fn repeats_an_id(reply: &Reply, reused: impl Fn(&str) -> bool) -> bool {
    let ids = || reply.calls.iter().map(|call| call.id.as_str());
    ids().enumerate().any(|(index, id)| reused(id) || ids().take(index).any(|earlier| earlier == id))
}

impl NoteAppended {
    /// A note that is nothing but its message.
    pub(super) fn of(message: Segment) -> Self {
        let hand_back = false;
        let short = None;
        let changed = Vec::new();
        Self { message, hand_back, short, changed, capsule: false, summary: false, full: false }
    }
}

pub(super) fn user_text(text: &str) -> Segment {
    message("user", &[text])
}

pub(super) fn message(role: &str, texts: &[impl AsRef<str>]) -> Segment {
    let blocks: Vec<Value> =
        texts.iter().map(|text| json!({"type": "text", "text": text.as_ref()})).collect();
    Segment::encode(&json!({"role": role, "content": blocks}))
}

pub(super) fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
