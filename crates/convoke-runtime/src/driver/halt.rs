//! A person stops what an agent is at: what is under way for its exchange is cut off, what that came to is
//! recorded, and then that it was stopped. What a process before this one left behind ends in the same way.
//! Nothing new is begun here.

use convoke_kernel::{
    Effect, FailureKind, Input, Pace, QueuedInput, Ran, ToolRequest, ToolResult, stop_asked,
};
use tokio::sync::watch;

use super::Driver;
use super::commit::CommitExtras;
use crate::children::Parent;
use crate::effects::{Done, Key};
use crate::error::Error;
use crate::inputs;

/// A person's request to stop what the agent is at.
pub(super) struct Halting {
    /// The person who stops it.
    pub(super) by: String,
    /// The inputs that say so.
    pub(super) acks: Vec<String>,
}

impl Halting {
    /// The request to stop among these inputs, if there is one.
    pub(super) fn among(queue: &[QueuedInput]) -> Option<Self> {
        stop_asked(queue).map(|(by, acks)| Self { by, acks })
    }
}

impl Driver {
    /// This agent as the parent of the agents that its calls start; they are stopped with its exchange.
    pub(super) fn parent(&self) -> Option<Parent> {
        Some(Parent {
            config: self.config.clone(),
            session: self.session.clone(),
            id: self.id.clone(),
            spec: self.agent.spec()?.clone(),
            stop: self.stop.below(self.below.subscribe()),
        })
    }

    /// Looks whether something was said that cannot wait, if there is any sign of it.
    pub(super) async fn listen(&mut self, words: &mut watch::Receiver<u64>) -> Result<(), Error> {
        let woken = words.has_changed().unwrap_or(false);
        if woken || self.stop.halted().is_some() {
            words.borrow_and_update();
            self.look().await?;
        }
        Ok(())
    }

    /// Looks whether a person stops this agent, or the agent that it works for.
    pub(super) async fn look(&mut self) -> Result<(), Error> {
        self.halting = match self.stop.halted() {
            Some(by) => Some(Halting { by, acks: Vec::new() }),
            // What waits for one that does not exist is heard when it does.
            None if !self.agent.is_started() => None,
            None => Halting::among(&inputs::queue(self.writer.inputs().await?)),
        };
        Ok(())
    }

    /// Does what [`look`](Self::look) found, if it found anything.
    pub(super) async fn halt(&mut self) -> Result<(), Error> {
        let Some(Halting { by, acks }) = self.halting.take() else { return Ok(()) };
        let pace = std::mem::replace(&mut self.pace, Pace::Hold);
        if self.is_under_way() {
            self.cut_off(&by);
            while self.is_at_it() {
                let Some(done) = self.tasks.join_next().await else { break };
                match done {
                    Ok(done) => self.report(self.as_stopped(done, &by)).await?,
                    Err(error) if error.is_cancelled() => self.gives_up_room(),
                    Err(_) => return Err(Error::EffectBroke(self.id.clone())),
                }
            }
        }
        self.input(Input::StopExchange { by }, CommitExtras::acks(acks)).await?;
        self.running.retain(|key| matches!(key, Key::Run(_)));
        self.below = watch::channel(None).0;
        self.ours = self.cut.child_token();
        self.hurry = self.ours.child_token();
        self.pace = pace;
        if self.pace == Pace::Go {
            // Only runs in the background are left, and waiting for them takes no money.
            self.start_effects();
        }
        Ok(())
    }

    /// An outcome is recorded. Once a stop is heard, nothing follows from it.
    pub(super) async fn report_unless_halting(&mut self, done: Done) -> Result<(), Error> {
        let Some(Halting { by, .. }) = &self.halting else { return self.report(done).await };
        let done = self.as_stopped(done, by);
        let pace = std::mem::replace(&mut self.pace, Pace::Hold);
        self.report(done).await?;
        self.pace = pace;
        Ok(())
    }

    /// Room that is not waited for any more; what was granted meanwhile goes back.
    pub(super) fn gives_up_room(&mut self) {
        self.running.retain(|key| !matches!(key, Key::Room(..)));
        self.session.ledger.withdraw(self.id.as_str());
    }

    fn cut_off(&mut self, by: &str) {
        if let Some(waiting) = self.waiting.take() {
            waiting.abort();
        }
        // A question without an asker is no task, and the task of one with an asker ends by itself.
        self.running.retain(|key| !matches!(key, Key::Person(_)));
        self.below.send_replace(Some(by.to_owned()));
        self.ours.cancel();
        // What others did for this exchange before it was taken up, or before it was held, ends on their own
        // streams too.
        for effect in self.agent.pending() {
            let for_it = matches!(&effect, Effect::RunTool { request, .. } if is_done_by_others(request));
            if for_it && self.running.insert(Key::of(&effect)) {
                self.perform(effect);
            }
        }
    }

    /// Whether something is under way for the exchange that is open.
    fn is_at_it(&self) -> bool {
        self.running.iter().any(|key| !matches!(key, Key::Run(_)))
    }

    /// An outcome that was cut off says who stopped it.
    fn as_stopped(&self, done: Done, by: &str) -> Done {
        match done {
            Done::Tool { id, result } => Done::Tool { id, result: told(result, by) },
            Done::Model { call, attempt, mut result } => {
                if let Err(failure) = result.as_mut()
                    && failure.kind == FailureKind::Interrupted
                {
                    failure.message = format!("stopped by {by} while the model was answering");
                }
                Done::Model { call, attempt, result }
            }
            // With its result it would be over before it was stopped; what the run came to stands in its own
            // stream.
            Done::Child { id, result: Ok(_) } if self.agent.is_persons_call() => {
                Done::Child { id, result: Ok(None) }
            }
            done => done,
        }
    }
}

fn is_done_by_others(request: &ToolRequest) -> bool {
    !request.is_own_work() && !matches!(request, ToolRequest::Team(_))
}

fn told(mut result: ToolResult, by: &str) -> ToolResult {
    if result.ran != Ran::Done {
        result.text = result.text.replace("a person stopped Convoke", &format!("stopped by {by}"));
    }
    result
}
