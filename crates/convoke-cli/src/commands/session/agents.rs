//! What the person wants of one agent: to see all of it, to stop it, to have it try again, to write to it.

use std::time::Duration;

use convoke_journal::StreamId;
use convoke_kernel::{AgentId, Event, Role};
use convoke_runtime::StopLevel;
use convoke_terminal::ScreenUpdate;

use super::session_loop::{PERSON, SessionLoop};
use crate::failure::Failure;

/// How long a teammate may take to end its work.
const PATIENCE: Duration = Duration::from_secs(60);

impl SessionLoop {
    /// Sends the whole history of an agent.
    pub(super) async fn open(&self, agent: AgentId) -> Result<(), Failure> {
        let records = self.journal.load(&StreamId::from(&agent), 0).await?;
        let events = records
            .iter()
            .filter_map(|record| Some((record.seq, record.at, Event::decode(&record.event).ok()?)));
        self.tell(ScreenUpdate::History { agent, events: events.collect() });
        Ok(())
    }

    /// The label and role of an agent.
    async fn row(&self, agent: &AgentId) -> Result<(Role, String), Failure> {
        let session = self.lead()?.1;
        let agents = self.ready.runtime().agents(&session).await?;
        let found =
            agents.into_iter().find(|(id, _)| id == agent).map(|(_, summary)| (summary.role, summary.label));
        found.ok_or_else(|| Failure::usage(format!("{agent} has not begun yet")))
    }

    pub(super) async fn stop_agent(&mut self, agent: &AgentId) -> Result<(), Failure> {
        let (lead, session) = self.lead()?;
        if *agent == lead {
            self.stop(StopLevel::Drain);
            return Ok(());
        }
        let (role, label) = self.row(agent).await?;
        if role == Role::Teammate {
            self.team().ask_to_stop(&session, &lead, &label, PATIENCE).await?;
            self.note(&format!("{label} is asked to stop, and stopped in {} s", PATIENCE.as_secs()));
            return self.wake().await;
        }
        if !self.is_driving() {
            return Err(Failure::usage("no agent works now")
                .hint("what is unfinished stays so until the session goes on"));
        }
        self.ready.runtime().stop_exchange(agent, PERSON).await?;
        self.note(&format!("\"{label}\" is stopped; the others go on"));
        Ok(())
    }

    pub(super) async fn retry_agent(&mut self, agent: &AgentId) -> Result<(), Failure> {
        let (lead, _) = self.lead()?;
        if *agent == lead {
            return self.go_on().await;
        }
        let (role, label) = self.row(agent).await?;
        match role {
            Role::Teammate => self.message(agent, "Please try again what failed.").await,
            _ => {
                let text = format!(
                    "This failed or was stopped, and is to be tried again; leave what is done as it is: \
                        {label}"
                );
                self.say(&text).await
            }
        }
    }

    pub(super) async fn message(&mut self, to: &AgentId, text: &str) -> Result<(), Failure> {
        let (lead, session) = self.lead()?;
        if *to == lead {
            return self.say(text).await;
        }
        let (role, label) = self.row(to).await?;
        if role != Role::Teammate {
            return Err(Failure::usage(format!("\"{label}\" has one task and no mailbox"))
                .hint("stop it, or write to the lead or to a teammate"));
        }
        self.team().send(&session, &lead, &label, text, false).await?;
        self.note(&format!("sent to {label}"));
        self.wake().await
    }
}
