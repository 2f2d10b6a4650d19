//! Where a recorded reply leads: to its calls, to another request, or to the end of the exchange.

use std::sync::Arc;

use super::agent_state::AgentState;
use super::judge::{ended_in_prose, judge};
use super::state::{Asking, Exchange, LastTurn, Slot, Stage, Tail};
use crate::event::{Kept, ModelReplied};
use crate::outcome::Outcome;
use crate::spec::AgentSpec;
use crate::wire::{FailureKind, Reply, StopReason, Usage};

impl AgentState {
    pub(super) fn replied(&mut self, asking: &Asking, e: &ModelReplied) -> Option<Stage> {
        if e.call != asking.call {
            return None;
        }
        self.pay(&e.reply.usage, e.reply.cost_nano);
        let spec = Arc::clone(self.spec.as_ref()?);
        let cap = self.fits();
        let exchange = self.exchange.as_mut()?;
        let short = matches!(exchange.last_turn, Some(LastTurn::Short(_) | LastTurn::Full));
        let wider = asking.max_tokens < cap && !short;
        exchange.so_far = Some(match e.kept {
            // All the room the model has was asked for, and the budget granted no more than this.
            Kept::Cut if wider && exchange.widened => cut_by_the_budget(asking.max_tokens, &e.reply),
            kept => judge(exchange.last_turn.as_ref(), kept, &e.reply),
        });
        Some(match e.kept {
            Kept::Yes => {
                if let Some(mode) = self.mode.as_mut().filter(|_| exchange.kept == 0 || exchange.announces) {
                    mode.answered(exchange.section);
                }
                exchange.announces = false;
                exchange.kept += 1;
                if !e.reply.text.trim().is_empty() {
                    exchange.said = e.reply.text.clone();
                }
                exchange.letters.clear();
                exchange.fresh.clear();
                exchange.facts = None;
                exchange.widened = false;
                let next = after_kept(exchange, &e.reply, &spec);
                self.turns += 1;
                self.keep(&e.reply);
                match next {
                    Next::Tools => Stage::Tools(e.reply.calls.iter().map(Slot::queued).collect()),
                    Next::Ask => self.ready(self.first_room()),
                    Next::End => Stage::Ending,
                }
            }
            Kept::Cut if !exchange.widened && wider => {
                exchange.widened = true;
                exchange.cut_at = asking.max_tokens;
                self.ready(cap)
            }
            Kept::Empty | Kept::Unusable if exchange.strikes == 0 => {
                exchange.strikes += 1;
                self.ready(asking.max_tokens)
            }
            Kept::Cut | Kept::Empty | Kept::Unusable | Kept::Refused | Kept::WindowFull => Stage::Ending,
            // A summary that was not asked for is no legal reply.
            Kept::Summary => return None,
        })
    }

    pub(super) fn summary_came(&mut self, asking: &Asking, e: &ModelReplied) -> Option<Stage> {
        if e.call != asking.call || e.kept != Kept::Summary {
            return None;
        }
        self.pay(&e.reply.usage, e.reply.cost_nano);
        self.turns += 1;
        Some(Stage::Compacting)
    }

    /// A reply becomes part of the history, and its usage says how long the history is now.
    fn keep(&mut self, reply: &Reply) {
        self.answered = self.mark.segments;
        self.added_blocks = 0;
        let ended = reply.calls.is_empty() && reply.stop != StopReason::PauseTurn;
        self.push(&reply.content, if ended { Tail::Reply } else { Tail::Open });
        let read = reply.usage.prompt_tokens();
        let written = reply.usage.output_tokens;
        // Half a usage would make the next request look shorter than it is.
        if read > 0 && written > 0 {
            self.mark.tokens = read.saturating_add(written);
            self.lasting.known = self.mark.tokens;
            self.lasting.since = 0;
        }
        self.lasting.measure(read);
    }

    fn pay(&mut self, usage: &Usage, cost_nano: Option<u64>) {
        self.usage.add(usage);
        self.cost_nano = self.cost_nano.zip(cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
    }
}

/// More money may help, so this is no lasting failure.
fn cut_by_the_budget(room: u32, reply: &Reply) -> Outcome {
    let message = format!(
        "the reply was cut at {room} tokens, which is all the room the budget had left; --budget-usd or \
            --budget-tokens raise it"
    );
    Outcome::Failed { kind: FailureKind::Budget, message, text: reply.text.clone() }
}

enum Next {
    Tools,
    Ask,
    End,
}

fn after_kept(exchange: &mut Exchange, reply: &Reply, spec: &AgentSpec) -> Next {
    let max_turns = spec.limits.max_turns;
    if !reply.calls.is_empty() {
        // It got on with its work: only faults in a row count.
        exchange.strikes = 0;
        return Next::Tools;
    }
    let last_turn = exchange.last_turn.is_some();
    if reply.stop == StopReason::PauseTurn {
        return if last_turn || exchange.kept >= max_turns { Next::End } else { Next::Ask };
    }
    if reply.text.trim().is_empty() && exchange.strikes == 0 && !last_turn {
        exchange.strikes += 1;
        return Next::Ask;
    }
    if exchange.asked_to_report < spec.nudges() && !last_turn {
        exchange.asked_to_report += 1;
        return Next::Ask;
    }
    if spec.output.is_some() {
        // A last turn in prose is a hand-back; an unknown stop reason keeps its own outcome.
        if !last_turn && !matches!(reply.stop, StopReason::Other(_)) {
            exchange.so_far = Some(ended_in_prose(&reply.text, &exchange.misfit));
        }
    } else if spec.final_tool().is_some() {
        exchange.degraded = Some("it ended in prose instead of a report".to_owned());
    }
    Next::End
}
