//! What is pending is begun, and what it came to is the next input.

use std::sync::Arc;

use convoke_kernel::{Effect, Input, Pace, ToolRequest};

use super::{CommitExtras, Driver};
use crate::children::Parent;
use crate::effects::{self, Done, Key};
use crate::error::Error;
use crate::local_tools::LocalTools;

impl Driver {
    pub(super) fn start_effects(&mut self) {
        let pending = self.agent.pending();
        self.say_what_it_does(&pending);
        for effect in pending {
            if self.running.insert(Key::of(&effect)) {
                self.perform(effect);
            }
        }
    }

    pub(super) fn say_what_it_does(&self, pending: &[Effect]) {
        let waits = self.running.iter().any(|key| matches!(key, Key::Room(..)));
        if let Some(doing) = effects::doing(pending).filter(|_| !waits) {
            self.session.ledger.set(self.id.as_str(), Some(doing));
        }
    }

    pub(super) fn perform(&mut self, effect: Effect) {
        let config = Arc::clone(&self.config);
        let session = Arc::clone(&self.session);
        let cut = self.ours.clone();
        match effect {
            Effect::AskRoom { not_before, .. } => {
                let (Some(ask), Some(spec)) = (self.agent.room_ask(), self.agent.spec().cloned()) else {
                    return;
                };
                let room = effects::room(config, session, self.id.clone(), spec, ask, not_before);
                self.waiting = Some(self.tasks.spawn(Box::pin(room)));
            }
            Effect::CallModel { call, attempt } => {
                let Some(request) = self.agent.request() else { return };
                let permit = self.permit.take();
                // Boxed here: spawning copies what it is given from frame to frame, and a request is large.
                self.tasks.spawn(Box::pin(effects::call(
                    config,
                    session,
                    self.id.clone(),
                    request,
                    (call, attempt),
                    permit,
                    cut,
                )));
            }
            Effect::AskPerson { id, what, why } => {
                let Some(spec) = self.agent.spec() else { return };
                // Without an asker, a parked question stays pending and its agent waits.
                if config.asker.is_none() && spec.approvals.park {
                    return;
                }
                let label = spec.label.clone();
                let stop = self.stop.clone();
                self.tasks.spawn(effects::person(config, self.id.clone(), label, id, (what, why), stop, cut));
            }
            Effect::RunTool { id, request } if request.is_own_work() => {
                let Some(local_tools) = self.local_tools() else { return };
                let cut = self.hurry.clone();
                self.tasks.spawn(async move {
                    let result = local_tools.perform(&id, request, cut).await;
                    Done::Tool { id, result }
                });
            }
            Effect::RunTool { id, request: ToolRequest::Team(call) } => {
                let Some(parent) = self.parent() else { return };
                self.tasks.spawn(effects::act(parent, id, self.order(), call));
            }
            Effect::RunTool { id, request } => {
                let Some(parent) = self.parent() else { return };
                self.tasks.spawn(effects::child(parent, id, request));
            }
            Effect::DriveRun { run } => {
                let Some(parent) = self.parent() else { return };
                // It goes on beside the conversation, whatever becomes of the exchange that launched it.
                self.tasks.spawn(effects::run(Parent { stop: self.stop.clone(), ..parent }, run));
            }
        }
    }

    /// The agent's local tools, made when they are first needed.
    pub(super) fn local_tools(&mut self) -> Option<Arc<LocalTools>> {
        if self.local_tools.is_none() {
            let config = Arc::clone(&self.config);
            let session = Arc::clone(&self.session);
            let spec = self.agent.spec()?.clone();
            let shell = self.agent.shell().cloned();
            self.local_tools = Some(Arc::new(LocalTools::new(
                config,
                session,
                self.writer.lease().clone(),
                self.id.clone(),
                spec,
                shell,
            )));
        }
        self.local_tools.clone()
    }

    pub(super) async fn report(&mut self, done: Done) -> Result<(), Error> {
        let input = match done {
            Done::Room { call, attempt, granted } => {
                self.running.remove(&Key::Room(call, attempt));
                if self.pace == Pace::Hold {
                    // Nothing new is sent; what was granted goes back.
                    self.session.ledger.withdraw(self.id.as_str());
                    return Ok(());
                }
                self.permit = granted.permit;
                self.take_lessons().await?;
                let extras = CommitExtras { room: granted.room, ..CommitExtras::default() };
                return self.input(Input::Room { call, answer: granted.answer }, extras).await;
            }
            Done::Model { call, attempt, result } => {
                self.running.remove(&Key::Model(call, attempt));
                let marked = self.agent.request().is_some_and(|request| request.is_marked());
                let input = match *result {
                    Ok(reply) if self.agent.is_summarising() => self.summarised(call, reply).await?,
                    Ok(reply) => Input::Replied { call, reply: Box::new(reply) },
                    Err(failure) if self.agent.is_summarising() && failure.window().is_some() => {
                        self.unsummarised(call, attempt, failure).await?
                    }
                    Err(failure) => Input::Failed { call, attempt, failure },
                };
                // The reply is paid for, so nothing is recorded before it.
                self.input(input, CommitExtras::default()).await?;
                return self.notice_ignored(marked).await;
            }
            Done::Tool { id, result } => {
                self.running.remove(&Key::Tool(id.clone()));
                let result = self.in_a_hurry(result);
                Input::ToolDone { id, result: self.within_means(result) }
            }
            Done::Acted { id, act } => {
                self.running.remove(&Key::Tool(id.clone()));
                return self.acted(id, act?).await;
            }
            Done::Answered { id, allow, by } => {
                self.running.remove(&Key::Person(id.clone()));
                // It may have been answered elsewhere meanwhile.
                match allow {
                    Some(allow) if self.agent.asks().any(|asked| asked == id) => {
                        Input::Answered { id, allow, by }
                    }
                    Some(_) | None => return Ok(()),
                }
            }
            // Its end is an input that waits in the journal by now; one that waits for a person goes on with
            // a resume.
            Done::Run { driven } => return driven.map(drop),
            Done::Child { id, result } => {
                self.running.remove(&Key::Tool(id.clone()));
                // Without a result it was stopped, and the next resume goes on where it stands.
                let Some(result) = result? else { return Ok(()) };
                Input::ToolDone { id, result }
            }
        };
        self.input(input, CommitExtras::default()).await
    }
}
