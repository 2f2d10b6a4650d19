//! What whoever holds a driver may ask of it between two drives.

use convoke_journal::KeyedInput;
use convoke_kernel::{AgentId, Pace, Role};

use super::{Beside, Driver};
use crate::error::Error;
use crate::inputs;
use crate::take::Ended;

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

    /// From now on outcomes are recorded and nothing new is decided.
    pub(crate) fn hold_still(&mut self) {
        self.pace = Pace::Hold;
    }

    /// What waits for the agent.
    pub(crate) async fn waiting(&self) -> Result<Vec<KeyedInput>, Error> {
        Ok(self.config.journal.inputs(&self.stream).await?)
    }

    /// Ends what is under way and gives everything back; says how it ended.
    pub(crate) async fn finish(mut self) -> Ended {
        self.tasks.shutdown().await;
        // What a teammate has in its own place is there when it wakes.
        let lives_on = self.agent.spec().is_some_and(|spec| spec.role == Role::Teammate);
        if let Some(hands) = self.hands.take() {
            hands.stop(self.for_good || self.agent.is_idle() && !lives_on).await;
        }
        // A lease that cannot be given back ends with its process; that is no reason to keep the answer back.
        let _ = self.config.journal.release(&self.lease).await;
        self.session.purse.set(self.id.as_str(), None);
        let ended = Ended {
            outcome: None,
            summary: self.agent.summary(),
            report: self.agent.report().cloned(),
            ballot: self.agent.ballot().cloned(),
            output: self.agent.output().cloned(),
            degraded: self.agent.degraded().map(str::to_owned),
            parked: self.pace == Pace::Go && self.agent.is_started() && !self.agent.is_done(),
            left: Vec::new(),
            asked: None,
        };
        if self.agent.is_done() { Ended { outcome: self.agent.outcome().cloned(), ..ended } } else { ended }
    }
}
