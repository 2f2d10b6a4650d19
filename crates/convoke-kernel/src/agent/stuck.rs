//! An agent that goes in circles: the same calls with the same results, round after round. It is told once,
//! and if it goes on it is asked for what it has and the exchange ends as *stuck*. Whole rounds are compared,
//! because a reply that asks for the same two things again and again makes no more progress than one that
//! asks for one. A call whose result differs each time makes progress, however often it is made.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::agent_state::AgentState;
use super::state::{Slot, SlotState};
use crate::outcome::Ran;
use crate::prompts::SHELL_RESTORED;
use crate::tools::{TeamCall, ToolRequest, Wanted};

/// The number of equal rounds in a row at which the agent is told.
const TOLD_AT: u32 = 3;

/// The number at which the exchange ends, if the agent was told before.
const ENDS_AT: u32 = 6;

/// The same for rounds that only wait: polling something slow looks like a circle, and each time takes a
/// while.
const WAITS_END_AT: u32 = 12;

/// How often the last round has come in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    /// The calls of the last round with their results; `None` if they cannot be compared.
    round: Option<[u8; 32]>,
    times: u32,
    told: bool,
    waits: bool,
    /// What was called last.
    tool: String,
}

/// What is to be done about an agent's repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// Nothing.
    No,
    /// It is told that the round came so many times.
    Told(u32),
    /// It is asked for what it has.
    Ends,
}

impl Repeats {
    pub(super) fn circle(&self) -> Repetition {
        let end = if self.waits { WAITS_END_AT } else { ENDS_AT };
        match (self.told, self.times) {
            (true, times) if times >= end => Repetition::Ends,
            (false, times) if times >= TOLD_AT => Repetition::Told(times),
            _ => Repetition::No,
        }
    }

    pub(super) fn tell(&mut self) {
        self.told = true;
    }

    /// Why the exchange ends, for people.
    pub(super) fn why(&self) -> String {
        format!(
            "{} was called {} times in a row with the same input and the same result",
            self.tool, self.times
        )
    }
}

impl AgentState {
    /// What the repeats of the exchange are when this round has ended.
    pub(super) fn repeats_with(&self, slots: &[Slot]) -> Repeats {
        let before = self.exchange.as_ref().map(|exchange| exchange.repeats.clone()).unwrap_or_default();
        let Some(calls) = slots.iter().map(made).collect::<Option<BTreeSet<_>>>() else {
            return Repeats::default();
        };
        let mut hasher = Sha256::new();
        for call in &calls {
            hasher.update(call);
        }
        let round = Some(hasher.finalize().into());
        // Several equal calls in one reply count as so many rounds.
        let times = if calls.len() == 1 { u32::try_from(slots.len()).unwrap_or(u32::MAX) } else { 1 };
        let waits = slots.iter().all(|slot| self.waits(slot));
        let tool = slots.last().map(|slot| slot.call.name.clone()).unwrap_or_default();
        match before.round == round {
            true => Repeats { times: before.times.saturating_add(times), waits, tool, ..before },
            false => Repeats { round, times, told: false, waits, tool },
        }
    }

    /// Whether a call only lets time pass, or asks how far something is.
    fn waits(&self, slot: &Slot) -> bool {
        match self.read(&slot.call) {
            Ok(Wanted::Run(ToolRequest::Bash { command })) => command
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| matches!(word, "sleep" | "wait")),
            Ok(Wanted::Run(ToolRequest::RunStatus { .. })) => true,
            Ok(Wanted::Run(ToolRequest::Team(call))) => matches!(
                call,
                TeamCall::ReadInbox | TeamCall::ListTeammates | TeamCall::TaskList | TeamCall::TaskGet { .. }
            ),
            _ => false,
        }
    }
}

/// A call and its result as a digest; `None` if there is no certain result. The name of the file that holds a
/// long output is left out, because it differs each time.
fn made(slot: &Slot) -> Option<[u8; 32]> {
    let SlotState::Finished(result) = &slot.state else { return None };
    if result.ran == Ran::Interrupted {
        return None;
    }
    // After a resume the shell is a new one, and its first result says so; that is no difference.
    let text = result.text.strip_prefix(SHELL_RESTORED).unwrap_or(&result.text).trim_start();
    let text = match &result.full_output {
        Some(path) => text.replace(path.as_str(), ""),
        None => text.to_owned(),
    };
    // `cd ..` prints nothing and still changes something.
    let cwd = result.shell.as_ref().map_or("", |shell| shell.cwd.as_str());
    let mut hasher = Sha256::new();
    for part in [slot.call.name.as_str(), slot.call.input.as_str(), &text, cwd] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.update([u8::from(result.is_error)]);
    Some(hasher.finalize().into())
}
