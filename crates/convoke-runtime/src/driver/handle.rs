//! What the owner of a driver may ask of it between two drives.

use convoke_journal::KeyedInput;
use convoke_kernel::{AgentId, HeldBack, Pace, Role};

use super::{CommitExtras, Driver};
use crate::drive::DriveOutcome;
use crate::error::Error;
use crate::inputs;

impl Driver {
    /// The agent whose stream it drives.
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
        self.writer.seq()
    }

    /// Whether the last exchange was stopped, or failed on letters or a task: then further letters wait.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether a resume would go on with something.
    pub(crate) fn can_go_on(&self) -> bool {
        self.agent.can_go_on()
    }

    /// Whether the answer that the agent waits for has come.
    pub(crate) async fn is_answered(&self) -> Result<bool, Error> {
        let queue = inputs::queue(self.writer.inputs().await?);
        Ok(self.agent.next_input(&queue, HeldBack::default()).is_some())
    }

    /// Whether this process has driven the agent already.
    pub(crate) fn was_taken_up(&self) -> bool {
        self.taken_up
    }

    /// Tells an idle agent that another process has taken it up.
    pub(crate) async fn take_up(&mut self) -> Result<(), Error> {
        self.taken_up = true;
        let resume = self.resume(Vec::new()).await?;
        self.input(resume, CommitExtras::default()).await
    }

    /// Nothing is under way: the agent wants no money for now.
    pub(crate) fn rests(&self) {
        self.session.ledger.set(self.id.as_str(), None);
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
        self.writer.inputs().await
    }

    /// Ends what is under way and gives everything back; says how it ended.
    pub(crate) async fn finish(mut self) -> DriveOutcome {
        self.tasks.shutdown().await;
        // What a teammate has in its own place is there when it wakes.
        let lives_on = self.agent.spec().is_some_and(|spec| spec.role == Role::Teammate);
        if let Some(local_tools) = self.local_tools.take() {
            local_tools.stop(self.for_good || self.agent.is_idle() && !lives_on).await;
        }
        self.writer.release().await;
        self.session.ledger.set(self.id.as_str(), None);
        let ended = DriveOutcome {
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
        if self.agent.is_done() {
            DriveOutcome { outcome: self.agent.outcome().cloned(), ..ended }
        } else {
            ended
        }
    }
}
