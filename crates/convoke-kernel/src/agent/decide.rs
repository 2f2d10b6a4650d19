//! What follows from an input. Pure: the same state, input and time give the same events.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::control::{Control, Exchange, IllegalEvent, SlotState, Stage};
use super::{Input, Pace, Unexpected};
use crate::event::{
    AgentStarted, Event, ExchangeClosed, ExchangeOpened, ExchangeReopened, Kept, ModelCalled, ModelFailed,
    ModelReplied, NoteAppended, Purpose, ResultsAppended, Resumed, ToolFinished, ToolStarted,
};
use crate::outcome::ToolResult;
use crate::prompts;
use crate::segment::Segment;
use crate::tools;
use crate::wire::{Failure, FailureKind, Reply, Retry, StopReason};

/// Events under way, with the state they lead to.
pub(super) struct Draft {
    control: Control,
    at: u64,
    events: Vec<Event>,
}

impl Draft {
    pub(super) fn new(control: Control, at: u64) -> Self {
        Self { control, at, events: Vec::new() }
    }

    fn emit(&mut self, event: impl Into<Event>) -> Result<(), IllegalEvent> {
        let event = event.into();
        self.control.apply(&event)?;
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
        let waited = matches!(input, Input::Waited | Input::Resume { .. });
        match input {
            Input::Start { spec, key, text } => {
                self.emit(AgentStarted { spec: *spec })?;
                self.say(key, text)?;
            }
            Input::Say { key, text } => self.say(key, text)?,
            Input::Replied { call, reply } => self.replied(call, *reply, reused)?,
            Input::Failed { call, attempt, failure } => self.failed(call, attempt, failure)?,
            Input::ToolDone { id, result } => self.emit(ToolFinished { id, result })?,
            Input::Waited => {}
            Input::Resume { changed } => self.resume(changed)?,
        }
        if pace == Pace::Go {
            self.settle(waited)?;
        } else {
            self.finish_if_ending()?;
        }
        Ok(self.events)
    }

    fn say(&mut self, key: String, text: String) -> Result<(), Unexpected> {
        if self.control.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        if blank(&text) {
            return Err(Unexpected::Blank);
        }
        let exchange = self.control.exchange.as_ref().map_or(0, |e| e.number) + 1;
        let message = user_text(&text);
        self.emit(ExchangeOpened { exchange, input: key, text, message })?;
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
        let wordless = kept == Kept::Empty || (kept == Kept::Yes && reply.calls.is_empty() && blank(&reply.text));
        let paused = reply.stop == StopReason::PauseTurn;
        self.emit(ModelReplied { call, reply, kept })?;
        if wordless && !paused && matches!(self.control.stage, Stage::Ready(_)) {
            // A silent reply at the limit has used the last turn up: what is left is the hand-back.
            let hand_back = self.is_at_limit();
            let text = if hand_back { prompts::HAND_BACK } else { prompts::NUDGE };
            self.emit(NoteAppended { message: user_text(text), hand_back, changed: Vec::new() })?;
        }
        Ok(())
    }

    fn failed(&mut self, call: u32, attempt: u32, failure: Failure) -> Result<(), Unexpected> {
        let Stage::Calling(asking) = &self.control.stage else { return Err(Unexpected::Stale) };
        let max = self.control.spec.as_ref().map_or(1, |spec| spec.limits.max_attempts);
        let again = failure.kind != FailureKind::Interrupted && asking.failures + 1 < max;
        let retry_at = match failure.retry {
            Retry::Soon if again => Some(self.at.saturating_add(backoff(asking.failures, &self.control.mark.digest))),
            Retry::After(ms) if again && ms <= LONGEST_WAIT => Some(self.at.saturating_add(ms)),
            Retry::Soon | Retry::After(_) | Retry::Never => None,
        };
        self.emit(ModelFailed { call, attempt, failure, retry_at })?;
        Ok(())
    }

    fn resume(&mut self, changed: Vec<String>) -> Result<(), Unexpected> {
        self.emit(Resumed { changed })?;
        match &self.control.stage {
            Stage::Calling(asking) => {
                let failure = Failure {
                    kind: FailureKind::Interrupted,
                    message: "the process ended before the reply was recorded".to_owned(),
                    retry: Retry::Soon,
                    request_id: None,
                };
                let (call, attempt) = (asking.call, asking.attempt);
                self.emit(ModelFailed { call, attempt, failure, retry_at: None })?;
            }
            Stage::Tools(slots) => {
                let running: Vec<String> =
                    slots.iter().filter(|s| s.state == SlotState::Running).map(|s| s.call.id.clone()).collect();
                for id in running {
                    self.emit(ToolFinished { id, result: ToolResult::interrupted(prompts::INTERRUPTED) })?;
                }
            }
            Stage::Idle => self.reopen()?,
            Stage::New | Stage::Ready(_) | Stage::Waiting(..) | Stage::Ending => {}
        }
        Ok(())
    }

    /// A failed exchange is taken up again: with its message if that was taken back, else from its last outcome.
    fn reopen(&mut self) -> Result<(), Unexpected> {
        let Some(exchange) = self.control.exchange.clone().filter(Exchange::reopenable) else { return Ok(()) };
        if exchange.taken_back {
            return self.say(exchange.input, exchange.text);
        }
        self.emit(ExchangeReopened { exchange: exchange.number })?;
        if self.control.ends_with_reply {
            // No model goes on with its own last word: somebody has to speak first.
            let message = user_text(prompts::NUDGE);
            self.emit(NoteAppended { message, hand_back: false, changed: Vec::new() })?;
        }
        Ok(())
    }

    /// Decides what is due without any further input.
    fn settle(&mut self, waited: bool) -> Result<(), Unexpected> {
        loop {
            match &self.control.stage {
                Stage::Ready(_) => return self.call_model(),
                Stage::Waiting(_, until) if waited && *until <= self.at => return self.call_model(),
                Stage::Tools(_) => {
                    if !self.step_tools()? {
                        return Ok(());
                    }
                }
                Stage::Ending => self.finish_if_ending()?,
                Stage::New | Stage::Idle | Stage::Calling(_) | Stage::Waiting(..) => return Ok(()),
            }
        }
    }

    fn call_model(&mut self) -> Result<(), Unexpected> {
        // A repeat stays as it was, so what changed meanwhile is told with the next request that is new.
        let is_new = matches!(&self.control.stage, Stage::Ready(asking) if asking.attempt == 0);
        if is_new && !self.control.changed.is_empty() {
            let changed = self.control.changed.clone();
            let message = user_text(&prompts::changed(&changed));
            self.emit(NoteAppended { message, hand_back: false, changed })?;
        }
        let (Stage::Ready(asking) | Stage::Waiting(asking, _)) = &self.control.stage else { return Ok(()) };
        let mut hasher = Sha256::new();
        hasher.update(self.control.mark.digest);
        hasher.update(asking.max_tokens.to_be_bytes());
        let hand_back = self.control.exchange.as_ref().is_some_and(|e| e.handing_back);
        let event = ModelCalled {
            call: asking.call,
            attempt: asking.attempt + 1,
            segments: self.control.mark.segments,
            max_tokens: asking.max_tokens,
            digest: hex(&hasher.finalize()),
            purpose: if hand_back { Purpose::HandBack } else { Purpose::Turn },
        };
        self.emit(event)?;
        Ok(())
    }

    /// Takes one step of the open tool calls; false when there is nothing to do but wait. Calls of one reply run in
    /// the order they were written, one at a time: they share a shell.
    fn step_tools(&mut self) -> Result<bool, Unexpected> {
        let Stage::Tools(slots) = &self.control.stage else { return Ok(false) };
        if slots.iter().any(|slot| slot.state == SlotState::Running) {
            return Ok(false);
        }
        let handing_back = self.control.exchange.as_ref().is_some_and(|e| e.handing_back);
        let Some(next) = slots.iter().find(|slot| slot.state == SlotState::Queued) else {
            self.append_results()?;
            return Ok(true);
        };
        let call = next.call.clone();
        let refusal = if handing_back { Some(prompts::REFUSED_AT_LIMIT.to_owned()) } else { tools::read(&call).err() };
        match refusal {
            Some(text) => self.emit(ToolFinished { id: call.id, result: ToolResult::refused(text) })?,
            None => self.emit(ToolStarted { id: call.id, name: call.name, input: call.input })?,
        }
        Ok(true)
    }

    fn append_results(&mut self) -> Result<(), Unexpected> {
        let Stage::Tools(slots) = &self.control.stage else { return Ok(()) };
        let mut blocks: Vec<Value> = Vec::with_capacity(slots.len() + 1);
        for slot in slots {
            let SlotState::Finished(result) = &slot.state else { return Ok(()) };
            let mut block = json!({"type": "tool_result", "tool_use_id": slot.call.id});
            if !blank(&result.text) {
                block["content"] = result.text.clone().into();
            }
            if result.is_error {
                block["is_error"] = true.into();
            }
            blocks.push(block);
        }
        let hand_back = self.is_at_limit();
        if hand_back {
            blocks.push(json!({"type": "text", "text": prompts::HAND_BACK}));
        }
        let message = Segment::encode(&json!({"role": "user", "content": blocks}));
        self.emit(ResultsAppended { message, hand_back })?;
        Ok(())
    }

    /// Whether the turns are used up and the hand-back has not been asked for.
    fn is_at_limit(&self) -> bool {
        let max_turns = self.control.spec.as_ref().map_or(0, |spec| spec.limits.max_turns);
        let exchange = self.control.exchange.as_ref();
        exchange.is_some_and(|exchange| !exchange.handing_back && exchange.kept >= max_turns)
    }

    /// Closing is an outcome, not new work: it is recorded even while nothing new may start.
    fn finish_if_ending(&mut self) -> Result<(), Unexpected> {
        if self.control.stage != Stage::Ending {
            return Ok(());
        }
        let Some(exchange) = &self.control.exchange else { return Err(Unexpected::Stale) };
        let outcome = exchange.so_far.clone().ok_or(Unexpected::Stale)?;
        let taken_back = outcome.failure().is_some() && exchange.kept == 0;
        self.emit(ExchangeClosed { exchange: exchange.number, outcome, taken_back })?;
        Ok(())
    }
}

/// A server that asks for more than an hour is taken at its word that it will not answer: the run ends and can be
/// resumed, and does not sit there for a year because of a wrong header.
const LONGEST_WAIT: u64 = 3_600_000;

fn repeats_an_id(reply: &Reply, reused: impl Fn(&str) -> bool) -> bool {
    let ids = || reply.calls.iter().map(|call| call.id.as_str());
    ids().enumerate().any(|(index, id)| reused(id) || ids().take(index).any(|earlier| earlier == id))
}

/// Half a second, doubling, at most 32 s, less up to a quarter so that agents that failed together do not return
/// together. The spread comes from the history's digest, because the kernel knows no randomness.
fn backoff(failures: u32, digest: &[u8; 32]) -> u64 {
    let full = (500u64 << failures.min(6)).min(32_000);
    let spread = u64::from(digest[failures as usize % digest.len()]);
    full - full * spread / 1024
}

fn user_text(text: &str) -> Segment {
    Segment::encode(&json!({"role": "user", "content": [{"type": "text", "text": text}]}))
}

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
