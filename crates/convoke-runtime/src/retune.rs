//! Another model or effort for a lead that stands: checked before it is written down, so that
//! the caller is told at once, and taken in when the lead is idle. It holds no rule: whether it
//! can be is the kernel's decision.

use convoke_claude::ceilings;
use convoke_journal::StreamId;
use convoke_kernel::{Agent, AgentId, Capabilities, Rates};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::inputs::Waiting;
use crate::recovery::{first_spec, load};
use crate::runtime::Runtime;

/// What a person chose for a lead that stands. Workers, verifiers and callees stay as the session was begun;
/// one-shot agents and teammates that are started from now on are the lead's own kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retune {
    /// The model.
    pub model: String,
    /// What model and endpoint accept; the effort is among it.
    pub capabilities: Capabilities,
}

/// A choice as it waits in the journal, with what its tokens cost when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retuning {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<Rates>,
}

impl Runtime {
    /// Gives a lead another model or another effort; it is taken in before what is said after it. Refused
    /// before anything is written down if the lead's history could not be sent to that model. What is refused
    /// only later, because more has been said meanwhile, is recorded as an input that was set aside. The key
    /// makes repeating it harmless.
    pub async fn retune(&self, agent: &AgentId, key: &str, retune: Retune) -> Result<(), Error> {
        let stream = StreamId::from(agent);
        let mut stands = Agent::new();
        let mut seq = 0;
        load(&self.config, agent, &stream, &mut stands, &mut seq).await?;
        match stands.is_started() {
            true => stands.may_retune(&retune.model, &retune.capabilities)?,
            false => drop(first_spec(&self.config, agent, &stream).await?),
        }
        let rates = ceilings(&self.config.models.get(&retune.model));
        let Retune { model, capabilities } = retune;
        let waiting = Waiting { retune: Some(Retuning { model, capabilities, rates }), ..Waiting::default() };
        self.submit(agent, key, waiting).await
    }
}
