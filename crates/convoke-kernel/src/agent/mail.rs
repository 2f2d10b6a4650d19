//! What comes to an agent without a person's word: letters, and tasks
//! from the board. Neither is ever consent.

use super::Unexpected;
use super::agent_state::AgentState;
use super::decide::{Draft, message};
use super::state::{Asking, Mark, Stage, Tail};
use crate::capsule::TaskBrief;
use crate::event::MailDelivered;
use crate::prompts;
use crate::team::Letter;

/// What an exchange is opened with.
#[derive(Debug, Clone, Default)]
pub(super) struct Opening {
    pub(super) key: String,
    /// What was said, or what it is about.
    pub(super) text: String,
    /// The text that the model reads, if it is another one.
    pub(super) body: Option<String>,
    pub(super) notice: Option<String>,
    pub(super) letters: Vec<Letter>,
    /// The task from the board that it is about.
    pub(super) brief: Option<TaskBrief>,
}

impl Draft {
    /// Letters have come: an idle agent is woken by them, one between two turns reads them with what it did
    /// last.
    pub(super) fn mail(
        &mut self,
        key: String,
        letters: Vec<Letter>,
        rests: &[String],
    ) -> Result<(), Unexpected> {
        if letters.is_empty() {
            return Err(Unexpected::Blank);
        }
        let body = prompts::team::letters(&letters, rests);
        if self.state.stage == Stage::Idle {
            let mut from: Vec<&str> = letters.iter().map(|letter| letter.from.as_str()).collect();
            from.dedup();
            let text = format!("mail from {}", from.join(", "));
            return self.open(Opening { key, text, body: Some(body), letters, ..Opening::default() });
        }
        if !self.state.takes_mail() {
            return Err(Unexpected::Busy);
        }
        self.emit(MailDelivered { message: message("user", &[body]), letters })?;
        Ok(())
    }

    /// A task from the board is the agent's: it was claimed for it just now, or it holds it and has not
    /// finished it.
    pub(super) fn work(&mut self, key: String, brief: &TaskBrief, again: bool) -> Result<(), Unexpected> {
        if self.state.stage != Stage::Idle {
            return Err(Unexpected::Busy);
        }
        let body = if again { prompts::team::offered(brief) } else { prompts::team::claimed(brief) };
        let text = format!("task {}: {}", brief.task.id, brief.task.subject);
        self.open(Opening { key, text, body: Some(body), brief: Some(brief.clone()), ..Opening::default() })
    }
}

impl AgentState {
    /// Whether letters can be put into the history right now.
    pub(super) fn takes_mail(&self) -> bool {
        match &self.stage {
            Stage::Idle => true,
            Stage::Ready(asking) => {
                let last = self.exchange.as_ref().is_none_or(|exchange| exchange.last_turn.is_some());
                asking.attempt == 0 && !last && self.mark.tail == Tail::User && !self.lasting.summarising
            }
            _ => false,
        }
    }

    pub(super) fn mail_delivered(&mut self, asking: Asking, e: &MailDelivered) -> Option<Stage> {
        if !matches!(self.mark.tail, Tail::User) {
            return None;
        }
        self.push(&e.message, Tail::User);
        self.hear_letters(&e.letters);
        let exchange = self.exchange.as_mut()?;
        // Until there is a reply to it, a new history has to hold it word for word.
        exchange.fresh.push(Mark::texts(&e.message));
        if exchange.kept == 0 {
            // Until there is a reply, the whole exchange may be taken back, and they with it.
            exchange.letters.extend(e.letters.iter().cloned());
        }
        Some(Stage::Ready(asking))
    }
}
