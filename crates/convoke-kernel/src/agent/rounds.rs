//! One round of tools: the calls of one reply, from the first that is looked at to the message that carries
//! what they came to.

use serde_json::{Value, json};

use super::Unexpected;
use super::agent_state::AgentState;
use super::background::outcome_of;
use super::decide::{Draft, blank};
use super::judge::{handed_back, never_fitted};
use super::state::{Asked, Exchange, LastTurn, Slot, SlotState, Stage, Tail};
use super::stuck::Repetition;
use crate::approval::Ruling;
use crate::event::{ApprovalAsked, ApprovalGiven, ResultsAppended, ToolFinished, ToolStarted};
use crate::outcome::{Outcome, Ran, ToolResult};
use crate::prompts;
use crate::segment::Segment;
use crate::todo;
use crate::tools::{self, Wanted};

impl Draft {
    /// A person has answered. A refusal is an outcome and is recorded as one at once.
    pub(super) fn answered(&mut self, id: String, allow: bool, by: String) -> Result<(), Unexpected> {
        let Stage::Tools(slots) = &self.state.stage else { return Err(Unexpected::Stale) };
        if !slots.iter().any(|slot| slot.call.id == id && matches!(slot.state, SlotState::Asked(_))) {
            return Err(Unexpected::Stale);
        }
        self.emit(ApprovalGiven { id: id.clone(), allow, by: by.clone() })?;
        if !allow {
            self.emit(ToolFinished { id, result: ToolResult::refused(prompts::not_allowed(&by)) })?;
        }
        Ok(())
    }

    /// What the rules say about a call that is queued; a call that a person agreed to is allowed.
    fn ruling(&self, slot: &Slot) -> Ruling {
        let Some(spec) = &self.state.spec else { return Ruling::Allow };
        match (&slot.state, self.state.read(&slot.call)) {
            (SlotState::Queued, Ok(Wanted::Run(request))) => {
                request.subject(&spec.dir).map_or(Ruling::Allow, |subject| spec.approvals.rule_on(&subject))
            }
            _ => Ruling::Allow,
        }
    }

    pub(super) fn writes(&self, slot: &Slot) -> bool {
        matches!(self.state.read(&slot.call), Ok(Wanted::Run(request)) if request.writes())
    }

    /// Whether a call that a crash cut off is made again.
    pub(super) fn repeats(&self, slot: &Slot) -> bool {
        !matches!(self.state.read(&slot.call), Ok(Wanted::Run(request)) if !request.repeats())
    }

    /// Takes one step of the open tool calls; false when there is nothing to do but wait. Calls that write
    /// run in the order they were written, one at a time and alone; calls that only read, and agents, run
    /// beside each other. A call that waits for a person holds up those behind it.
    pub(super) fn step_tools(&mut self) -> Result<bool, Unexpected> {
        let Stage::Tools(slots) = &self.state.stage else { return Ok(false) };
        let queued = || slots.iter().filter(|slot| slot.is_due());
        let running = || slots.iter().filter(|slot| slot.state == SlotState::Running);
        if slots.iter().any(|slot| matches!(slot.state, SlotState::Asked(_))) {
            return Ok(false);
        }
        if let Some(report) = queued().find(|slot| self.ends_the_work(slot)) {
            let text = match self.state.read(&report.call) {
                Ok(Wanted::Ballot(_)) => prompts::JUDGED,
                Ok(Wanted::Output(_)) => prompts::RETURNED,
                Ok(_) | Err(_) => prompts::REPORTED,
            };
            let id = report.call.id.clone();
            self.emit(ToolFinished { id, result: ToolResult::done(text) })?;
            return Ok(true);
        }
        let Some(next) = queued().next() else {
            if running().next().is_none() {
                self.append_results()?;
                return Ok(true);
            }
            return Ok(false);
        };
        let call = next.call.clone();
        if let Some(text) = self.refusal(next) {
            self.emit(ToolFinished { id: call.id, result: ToolResult::refused(text) })?;
            return Ok(true);
        }
        if let Some(result) = self.answer_at_once(next) {
            self.emit(ToolFinished { id: call.id, result })?;
            return Ok(true);
        }
        match self.ruling(next) {
            Ruling::Allow => {}
            Ruling::Deny(why) => {
                self.emit(ToolFinished {
                    id: call.id,
                    result: ToolResult::refused(prompts::forbidden(&why)),
                })?;
                return Ok(true);
            }
            Ruling::Ask(why) => {
                let what = self.describe(next);
                self.emit(ApprovalAsked { id: call.id, what, why })?;
                return Ok(true);
            }
        }
        let alone = self.writes(next);
        let in_turn = self.takes_turns(next);
        if running().any(|slot| alone || self.writes(slot) || in_turn && self.takes_turns(slot)) {
            return Ok(false);
        }
        self.emit(ToolStarted { id: call.id, name: call.name, input: call.input })?;
        Ok(true)
    }

    fn takes_turns(&self, slot: &Slot) -> bool {
        matches!(self.state.read(&slot.call), Ok(Wanted::Run(request)) if request.takes_turns())
    }

    /// The result of a call that needs nothing outside.
    fn answer_at_once(&self, slot: &Slot) -> Option<ToolResult> {
        match self.state.read(&slot.call) {
            Ok(Wanted::Idle) => Some(ToolResult { ends: true, ..ToolResult::done(prompts::team::IDLE) }),
            Ok(Wanted::Todo(items)) => Some(ToolResult::done(todo::rendered(&items))),
            Ok(Wanted::Compact(_)) => Some(ToolResult::done(prompts::team::COMPACT_SOON)),
            _ => None,
        }
    }

    /// What a call would do, as a person reads it.
    fn describe(&self, slot: &Slot) -> String {
        let asked = match self.state.read(&slot.call) {
            Ok(Wanted::Run(request)) => request.asks_to(),
            _ => None,
        };
        asked.unwrap_or_else(|| format!("{}: {}", slot.call.name, slot.call.input.as_str()))
    }

    /// Whether this call is the one that ends the work: the first valid report of an agent that has looked at
    /// something, or that was sent back once to look; or the first value that fits, because not everything
    /// has to be looked at.
    fn ends_the_work(&self, slot: &Slot) -> bool {
        let Some(exchange) = &self.state.exchange else { return false };
        let due = exchange.looked || exchange.sent_back || exchange.last_turn.is_some();
        let reports = matches!(self.state.read(&slot.call), Ok(Wanted::Report(_) | Wanted::Ballot(_)));
        let returns = matches!(self.state.read(&slot.call), Ok(Wanted::Output(_)));
        (returns || (reports && due)) && exchange.filed.is_none()
    }

    /// Why a call is answered without being run.
    fn refusal(&self, slot: &Slot) -> Option<String> {
        let exchange = self.state.exchange.as_ref()?;
        if exchange.filed.is_some() {
            return Some(prompts::REPORT_ENDS.to_owned());
        }
        match self.state.read(&slot.call) {
            Err(why) => Some(why),
            Ok(_) if exchange.last_turn.is_some() => Some(prompts::REFUSED_AT_LIMIT.to_owned()),
            Ok(Wanted::Report(_) | Wanted::Ballot(_)) => Some(prompts::LOOK_FIRST.to_owned()),
            Ok(Wanted::Compact(_)) if self.state.lasting.futile => {
                Some(prompts::team::COMPACT_IN_VAIN.to_owned())
            }
            Ok(wanted) if self.state.needs_plan(&wanted) => Some(prompts::team::PLAN_FIRST.to_owned()),
            Ok(_) => None,
        }
    }

    fn append_results(&mut self) -> Result<(), Unexpected> {
        self.append_results_of(false)
    }

    /// Puts the results of the round into the history. In an exchange that a person has
    /// stopped, nothing is asked for with them.
    pub(super) fn append_results_of(&mut self, stopped: bool) -> Result<(), Unexpected> {
        let Stage::Tools(slots) = &self.state.stage else { return Ok(()) };
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
        let settled = self.state.exchange.as_ref().is_some_and(Exchange::is_settled);
        let at_limit = !settled && !stopped && self.is_at_limit();
        let goes_on =
            !settled && !stopped && !at_limit && self.state.exchange.as_ref().is_some_and(Exchange::goes_on);
        let circle = if goes_on { self.state.repeats_with(slots).circle() } else { Repetition::No };
        let hand_back = at_limit || circle == Repetition::Ends;
        let stuck = circle != Repetition::No;
        match circle {
            Repetition::Ends => blocks.push(text_block(&prompts::hand_back_stuck(self.final_tool()))),
            Repetition::Told(times) => blocks.push(text_block(&prompts::same_again(times))),
            Repetition::No if at_limit => blocks.push(text_block(&prompts::hand_back(self.final_tool()))),
            Repetition::No => {}
        }
        let reminded = !hand_back && !stopped && self.state.lasting.reminds() && !self.writes_list();
        if reminded {
            blocks.push(text_block(prompts::team::TODO_REMINDER));
        }
        let message = Segment::encode(&json!({"role": "user", "content": blocks}));
        self.emit(ResultsAppended { message, hand_back, reminded, stuck })?;
        Ok(())
    }

    /// Whether the agent looked at its list in this round.
    fn writes_list(&self) -> bool {
        let Stage::Tools(slots) = &self.state.stage else { return false };
        slots.iter().any(|slot| matches!(self.state.read(&slot.call), Ok(Wanted::Todo(_))))
    }
}

impl AgentState {
    pub(super) fn tool_started(&mut self, mut slots: Vec<Slot>, e: &ToolStarted) -> Option<Stage> {
        let slot = slots.iter_mut().find(|slot| slot.call.id == e.id && slot.is_due())?;
        slot.state = SlotState::Running;
        self.commands += u32::from(tools::is_command(&slot.call.name));
        Some(Stage::Tools(slots))
    }

    pub(super) fn tool_finished(&mut self, mut slots: Vec<Slot>, e: &ToolFinished) -> Option<Stage> {
        let slot = slots.iter_mut().find(|slot| slot.call.id == e.id && !slot.is_finished())?;
        slot.state = SlotState::Finished(e.result.clone());
        if let Some(shell) = &e.result.shell {
            self.shell = Some(shell.clone());
        }
        if let Some(run) = &e.result.launched {
            self.launched(run);
        }
        let call = slot.call.clone();
        self.fan_out_answered(&call, &e.result);
        self.remember(&call, &e.result);
        self.count_call(&call, &e.result);
        let taken = self.taken(&call, &e.result);
        let exchange = self.exchange.as_mut()?;
        if exchange.call.is_some() {
            exchange.so_far = Some(outcome_of(&e.result));
            return Some(Stage::Ending);
        }
        exchange.take(taken);
        exchange.ends |= e.result.ends;
        Some(Stage::Tools(slots))
    }

    pub(super) fn results_appended(&mut self, slots: &[Slot], e: &ResultsAppended) -> Option<Stage> {
        if !slots.iter().all(Slot::is_finished) {
            return None;
        }
        self.push(&e.message, Tail::User);
        self.count_round(slots, e.reminded);
        let mut repeats = self.repeats_with(slots);
        // Only a report the agent has read back counts: a second one in the same reply was not sent back to
        // it yet.
        let reported = slots
            .iter()
            .any(|slot| matches!(self.read(&slot.call), Ok(Wanted::Report(_) | Wanted::Ballot(_))));
        let exchange = self.exchange.as_mut()?;
        exchange.looked |= slots.iter().any(looked_at_something);
        exchange.sent_back |= reported && exchange.filed.is_none();
        if let Some(filed) = &exchange.filed {
            exchange.so_far = Some(match &exchange.last_turn {
                None => Outcome::Ok { text: filed.text() },
                Some(last) => handed_back(last, &filed.text()),
            });
            return Some(Stage::Ending);
        }
        if exchange.last_turn.is_some() {
            return Some(Stage::Ending);
        }
        if exchange.ends {
            exchange.so_far = Some(Outcome::Ok { text: exchange.said.clone() });
            return Some(Stage::Ending);
        }
        if exchange.is_settled() {
            exchange.so_far = Some(never_fitted(&exchange.misfit));
            return Some(Stage::Ending);
        }
        exchange.last_turn = match (e.hand_back, e.stuck) {
            (true, true) => Some(LastTurn::Stuck(repeats.why())),
            (true, false) => Some(LastTurn::Turns),
            (false, _) => None,
        };
        if e.stuck {
            repeats.tell();
        }
        exchange.repeats = repeats;
        Some(self.ready(self.first_room()))
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn looked_at_something(slot: &Slot) -> bool {
    let ran = matches!(&slot.state, SlotState::Finished(result) if result.ran != Ran::Refused);
    ran && tools::looks(&slot.call.name)
}

pub(super) fn asked(mut slots: Vec<Slot>, e: &ApprovalAsked) -> Option<Stage> {
    let slot = slots.iter_mut().find(|slot| slot.call.id == e.id && slot.state == SlotState::Queued)?;
    slot.state = SlotState::Asked(Asked { what: e.what.clone(), why: e.why.clone() });
    Some(Stage::Tools(slots))
}

/// A refusal leaves the call where it is: the result that says so follows in the same decision.
pub(super) fn answered(mut slots: Vec<Slot>, e: &ApprovalGiven) -> Option<Stage> {
    let slot =
        slots.iter_mut().find(|slot| slot.call.id == e.id && matches!(slot.state, SlotState::Asked(_)))?;
    if e.allow {
        slot.state = SlotState::Allowed;
    }
    Some(Stage::Tools(slots))
}
