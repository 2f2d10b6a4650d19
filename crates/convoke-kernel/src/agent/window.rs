//! A window that a server names when it refuses a prompt for its length: from then on the agent keeps to it
//! as if it had been stated. It goes on with a shorter reply or a new history where it can, and ends with a
//! typed failure where it cannot.

use std::sync::Arc;

use super::Unexpected;
use super::agent_state::AgentState;
use super::decide::Draft;
use super::state::{Asking, Stage, Tail};
use crate::capsule::Facts;
use crate::event::{EndpointLearnt, ModelFailed};
use crate::lesson::Learnt;
use crate::spec::AgentSpec;
use crate::wire::Failure;

/// The least share of a window that a reply is given, however long the history is thought to be.
const LEAST_SHARE: u64 = 8;

/// What an agent's requests are measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    window: u64,
    max_output: u32,
    compact_at: Option<u64>,
}

impl Sizes {
    fn of(spec: &AgentSpec) -> Self {
        let window = spec.capabilities.window;
        let max_output = spec.capabilities.max_output;
        Self { window, max_output, compact_at: spec.team.as_ref().map(|team| team.compact_at) }
    }

    fn put(self, spec: &mut AgentSpec) {
        spec.capabilities.window = self.window;
        spec.capabilities.max_output = self.max_output;
        if let (Some(team), Some(compact_at)) = (spec.team.as_mut(), self.compact_at) {
            team.compact_at = compact_at;
        }
    }

    /// The same sizes with a smaller window: a reply has at most half of it, as where a window is stated, and
    /// a history the same share as before.
    fn within(self, window: u64) -> Self {
        let half = u32::try_from(window / 2).unwrap_or(u32::MAX).max(1);
        let share = |at: u64| u128::from(at) * u128::from(window) / u128::from(self.window.max(1));
        let compact_at = self.compact_at.map(|at| u64::try_from(share(at)).unwrap_or(u64::MAX));
        Self { window, max_output: self.max_output.min(half), compact_at }
    }
}

impl AgentState {
    /// Keeps to the smallest window that was learnt of this model and its server; without one, to what was
    /// stated.
    pub(super) fn keep_to_window(&mut self) {
        let (Some(spec), stated) = (&mut self.spec, self.lessons.stated.take()) else { return };
        let learnt = self.lessons.window(&spec.model);
        if learnt.is_none() && stated.is_none() {
            return;
        }
        let spec = Arc::make_mut(spec);
        let stated = stated.unwrap_or_else(|| Sizes::of(spec));
        stated.put(spec);
        if let Some(window) = learnt.filter(|window| *window < stated.window) {
            stated.within(window).put(spec);
            self.lessons.stated = Some(stated);
        }
    }

    /// The longest reply that fits into the window behind the history, as far as its length is known: some
    /// servers count both together.
    pub(super) fn fits(&self) -> u32 {
        let Some(spec) = self.spec.as_ref().filter(|spec| spec.capabilities.window > 0) else {
            return u32::MAX;
        };
        let window = spec.capabilities.window;
        let left = window.saturating_sub(self.lasting.tokens()).max(window / LEAST_SHARE).max(1);
        spec.capabilities.max_output.min(u32::try_from(left).unwrap_or(u32::MAX))
    }

    /// Whether a history that the server finds too long can be left behind for a new one.
    fn can_leave(&self) -> bool {
        let lasting = &self.lasting;
        let going = self.exchange.as_ref().is_some_and(|exchange| exchange.last_turn.is_none());
        let worth_it = lasting.replies > 0 && !lasting.futile;
        self.membership().is_some() && going && worth_it && self.mark.tail == Tail::User
    }
}

impl Draft {
    /// What follows from a refusal that names the server's window; `false` if this is no such refusal.
    /// `facts` are there if a summary was refused: the history is then left behind without one.
    pub(super) fn too_long_for_the_server(
        &mut self,
        (call, attempt): (u32, u32),
        failure: &Failure,
        facts: Option<Facts>,
    ) -> Result<bool, Unexpected> {
        let Stage::Calling(asking) = self.state.stage.clone() else { return Err(Unexpected::Stale) };
        let Some(window) = failure.window() else { return Ok(false) };
        let learnt = self.window_lesson(failure, window);
        let shorter = self.can_be_shorter(&asking, learnt.as_ref());
        let in_turn = facts.is_some() == self.state.lasting.summarising;
        let leaves = !shorter && in_turn && self.state.can_leave();
        let retry_at = (shorter || leaves).then_some(self.at);
        self.emit(ModelFailed { call, attempt, failure: failure.clone(), retry_at })?;
        if let Some(learnt) = learnt {
            self.emit(learnt)?;
        }
        match facts {
            Some(facts) if leaves => self.begin_anew(facts, None)?,
            None if leaves => self.ask_for_a_summary()?,
            Some(_) | None => {}
        }
        Ok(true)
    }

    /// The server would not read the history for the summary that was asked for.
    pub(super) fn unsummarised(
        &mut self,
        call: u32,
        attempt: u32,
        failure: Failure,
        facts: Facts,
    ) -> Result<(), Unexpected> {
        if !self.state.lasting.summarising {
            return Err(Unexpected::Stale);
        }
        match self.too_long_for_the_server((call, attempt), &failure, Some(facts))? {
            true => Ok(()),
            false => Err(Unexpected::Stale),
        }
    }

    fn window_lesson(&self, failure: &Failure, window: u64) -> Option<EndpointLearnt> {
        let spec = self.state.spec.as_ref()?;
        let refused = failure.refused.as_deref()?;
        let learnt = EndpointLearnt {
            endpoint: refused.endpoint.clone(),
            model: spec.model.clone(),
            lacks: Vec::new(),
            how: Learnt::Refused,
            said: failure.message.clone(),
            window: Some(window),
        };
        (window < spec.capabilities.window).then_some(learnt)
    }

    /// Whether the server may take the same request with less room for its reply, once this is learnt.
    fn can_be_shorter(&self, asking: &Asking, learnt: Option<&EndpointLearnt>) -> bool {
        let mut after = self.state.clone();
        after.lessons.learnt.extend(learnt.cloned());
        after.keep_to_window();
        let window = after.spec.as_ref().map_or(0, |spec| spec.capabilities.window);
        after.fits() < asking.max_tokens && after.lasting.tokens() < window
    }
}
