//! Work of an agent that a person takes over: it is recorded as a step of that agent, as what a command
//! changes is, so that it can be shown and taken back. What was found to be run later is left as it was
//! found, because nothing that git ignores is taken over.

use crate::error::Error;
use crate::keeper::{Keeper, PERSON};
use crate::parts::{Making, Part};
use crate::places::checked_name;
use crate::steps::StepCause;

impl Keeper {
    /// Does `work`, which brings what `agent` changed elsewhere into the directory, and records what it
    /// changed, however it ended. If the process dies on the way, the next look at the record counts what was
    /// written as this agent's.
    pub async fn take_over<T>(
        &self,
        agent: &str,
        note: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let by = StepCause::Agent { name: checked_name(agent)?.to_owned(), interrupted: false };
        let mut state = self.state().lock().await;
        let turn = self.turn(PERSON).await?;
        self.keep_before(&mut state, &turn).await?;
        self.refuse_open().await?;
        self.settle(&turn).await?;
        // Looked at now if it was not yet: what comes to be after the run's last command is not the run's.
        self.look_after().await?;
        turn.check()?;
        let mark = self.open_alone(&by).await?;
        // Others that want to write wait for the mark; those that only look need the turn.
        drop(turn);
        let done = work.await;
        let turn = self.turn(PERSON).await?;
        if !self.is_alone(&mark).await? {
            return Err(Error::Fenced);
        }
        self.step(&Making::new(&by, note, Part::All), &turn).await?;
        turn.check()?;
        self.close_alone().await?;
        Ok(done)
    }
}
