//! Another model or another effort in the middle of a conversation: when that is possible, and what
//! changes with it. The system prompt, the tools and the history stay byte for byte; the old model's
//! thinking is sent along as it was, because the API itself leaves out what another model cannot
//! read. It never changes an agent below a lead.

use std::sync::Arc;

use super::agent_state::AgentState;
use super::decide::Draft;
use super::state::{Mark, Stage};
use super::{Agent, Unexpected};
use crate::event::Retuned;
use crate::ledger::Rates;
use crate::spec::{self, AgentSpec, LEAST_MAX_TOKENS, Role};
use crate::wire::Capabilities;

/// Why an agent cannot be given another model, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetuneRefused {
    /// It is below a lead, or has not started.
    #[error("only the lead of a session can be given another model or effort")]
    NotALead,
    /// The history holds system messages.
    #[error(
        "this conversation holds system messages, which {model} does not take (a fork would hold them too); \
         choose a model that takes them, or begin anew with /new"
    )]
    SystemMessages {
        /// The model that was wanted.
        model: String,
    },
    /// The system prompt or the tools are not made for the server of that model.
    #[error(
        "{model} is behind a server of another kind, for which the tools of this conversation would have to \
         be declared differently (in a fork too); begin anew with /new"
    )]
    OtherServer {
        /// The model that was wanted.
        model: String,
    },
    /// The history is longer than what the model reads.
    #[error(
        "this conversation has about {tokens} tokens and {model} reads {window}; shorten it with /compact \
            first, or begin anew with /new"
    )]
    TooLong {
        /// The model that was wanted.
        model: String,
        /// Tokens of the history, as far as they are known.
        tokens: u64,
        /// The window of the model.
        window: u64,
    },
}

impl Agent {
    /// Whether the agent could go on with this model once it is idle,
    /// with everything that has been said so far.
    pub fn may_retune(&self, model: &str, capabilities: &Capabilities) -> Result<(), RetuneRefused> {
        self.state.may_retune(model, capabilities)
    }
}

impl Draft {
    /// A person chose another model or effort. Choosing the present one changes nothing.
    pub(super) fn retune(
        &mut self,
        model: String,
        capabilities: Capabilities,
        rates: Option<Rates>,
    ) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        self.state.may_retune(&model, &capabilities)?;
        let same = |spec: &Arc<AgentSpec>| {
            (&spec.model, &spec.capabilities, &spec.rates) == (&model, &capabilities, &rates)
        };
        if !self.state.spec.as_ref().is_some_and(same) {
            let params = spec::params(&capabilities);
            self.emit(Retuned { model, capabilities, rates, params })?;
        }
        Ok(())
    }
}

impl AgentState {
    fn may_retune(&self, model: &str, wanted: &Capabilities) -> Result<(), RetuneRefused> {
        let Some(spec) = self.spec.as_ref().filter(|spec| spec.role == Role::Lead) else {
            return Err(RetuneRefused::NotALead);
        };
        let now = &spec.capabilities;
        let model = model.to_owned();
        if (wanted.anthropic_tools, wanted.cache_marks) != (now.anthropic_tools, now.cache_marks) {
            return Err(RetuneRefused::OtherServer { model });
        }
        if self.mark.systems > 0 && !wanted.system_role {
            return Err(RetuneRefused::SystemMessages { model });
        }
        let tokens = self.lasting.tokens();
        let window = wanted.window;
        // Only a change to a smaller window is refused for its length: a history
        // that is too long already does not get worse.
        if window < now.window && tokens.saturating_add(u64::from(LEAST_MAX_TOKENS)) > window {
            return Err(RetuneRefused::TooLong { model, tokens, window });
        }
        Ok(())
    }

    pub(super) fn retuned(&mut self, e: &Retuned) -> Option<Stage> {
        let mut spec = AgentSpec::clone(self.spec.as_ref()?);
        let model_before = spec.model.clone();
        let window_before = spec.capabilities.window;
        spec.model.clone_from(&e.model);
        spec.capabilities.clone_from(&e.capabilities);
        spec.rates.clone_from(&e.rates);
        spec.params.clone_from(&e.params);
        if let Some(team) = spec.team.as_mut().filter(|_| window_before > 0) {
            // The same share of the window as before.
            let share =
                u128::from(team.compact_at) * u128::from(e.capabilities.window) / u128::from(window_before);
            team.compact_at = u64::try_from(share).unwrap_or(u64::MAX);
        }
        self.base = Mark::without(&spec, &self.lessons.withheld(&spec.model));
        self.prefix = self.base.digest;
        self.mark.follow(&self.base);
        if model_before != e.model {
            self.mark.recount();
        }
        self.spec = Some(Arc::new(spec));
        // The sizes of the person's choice are the stated ones now; the window that the
        // server named for this model still counts.
        self.lessons.stated = None;
        self.keep_to_window();
        Some(Stage::Idle)
    }
}

impl Mark {
    /// What every request of an agent of this make begins with.
    pub(crate) fn of(spec: &AgentSpec) -> Self {
        // Cache marks may move without changing what the model reads, so the digest leaves them out.
        let params = spec.params.iter().filter(|p| p.name != "cache_control");
        let params = params.flat_map(|p| [p.name.as_str(), p.value.as_str()]);
        let fixed = [spec.model.as_str(), spec.system.as_str(), spec.tools.as_str()];
        let mut mark = Self::new();
        mark.begin(&fixed.into_iter().chain(params).collect::<Vec<_>>());
        mark
    }

    /// Another model counts other tokens for the same text. Twice as many is far more than any two models of
    /// one family differ by, and there are never more tokens than bytes.
    fn recount(&mut self) {
        self.tokens = self.tokens.saturating_mul(2).min(self.bytes.max(self.tokens));
    }
}
