//! Taking back what was said and not heard yet. It is recorded as said and taken back; no model is asked.

use std::sync::Arc;

use convoke_kernel::{AgentId, Input, TAKEN_BACK};

use crate::driver::{CommitExtras, Driver};
use crate::error::Error;
use crate::inputs;
use crate::runtime::Runtime;
use crate::stop::Stop;

impl Runtime {
    /// Takes back what was said to an agent and waits; returns it, oldest first. Only while it is not driven.
    pub async fn unsay(&self, agent: &AgentId) -> Result<Vec<String>, Error> {
        let mut driver =
            Driver::own(Arc::clone(&self.config), agent.clone(), None, None, Stop::never()).await?;
        let session = driver.session();
        let taken = driver.unsay().await;
        driver.finish().await;
        session.leave().await;
        taken
    }
}

impl Driver {
    async fn unsay(&mut self) -> Result<Vec<String>, Error> {
        // Nothing is begun by it, whatever was left in the middle.
        self.hold_still();
        let mut taken = Vec::new();
        // One that does not exist yet begins with what was said to it.
        let waiting = if self.is_started() { self.waiting().await? } else { Vec::new() };
        for input in waiting {
            let Some(text) = inputs::words(&input) else { continue };
            let input = input.key;
            let why = TAKEN_BACK.to_owned();
            let reject = Input::Reject { input: input.clone(), why, body: text.clone() };
            self.input(reject, CommitExtras::acks(vec![input])).await?;
            taken.push(text);
        }
        Ok(taken)
    }
}
