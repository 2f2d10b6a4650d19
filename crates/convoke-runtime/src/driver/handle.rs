//! What whoever holds a driver may ask of it between two drives.

use convoke_kernel::AgentId;

use super::{Beside, Driver};
use crate::error::Error;
use crate::inputs;

impl Driver {
    /// Whose stream it drives.
    pub(crate) fn id(&self) -> &AgentId {
        &self.id
    }

    /// Where the agent works.
    pub(crate) fn dir(&self) -> Option<String> {
        self.agent.spec().map(|spec| spec.dir.clone())
    }

    /// Whether the agent exists.
    pub(crate) fn is_started(&self) -> bool {
        self.agent.is_started()
    }

    /// How far its stream has come.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether it failed at what it was brought.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether a resume would go on with something.
    pub(crate) fn can_go_on(&self) -> bool {
        self.agent.can_go_on()
    }

    /// Whether the answer waits that the agent waits for.
    pub(crate) async fn is_answered(&self) -> Result<bool, Error> {
        let waiting = self.config.journal.inputs(&self.stream).await?;
        Ok(inputs::next(&self.agent, waiting, false).is_some())
    }

    /// Whether this process has driven the agent already.
    pub(crate) fn was_taken_up(&self) -> bool {
        self.taken_up
    }

    /// Tells an idle agent that another process has taken it up.
    pub(crate) async fn take_up(&mut self) -> Result<(), Error> {
        self.taken_up = true;
        let resume = self.resume(Vec::new()).await?;
        self.input(resume, Beside::default()).await
    }

    /// Nothing is under way: the agent wants no money for now.
    pub(crate) fn rests(&self) {
        self.session.purse.set(self.id.as_str(), None);
    }

    /// The agent will not work again: what it has for itself goes with it.
    pub(crate) fn ends_for_good(&mut self) {
        self.for_good = true;
    }
}
