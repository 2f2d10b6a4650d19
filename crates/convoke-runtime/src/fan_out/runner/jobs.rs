//! What is begun for a run, in which order, and the agents that do it.

use convoke_kernel::{
    AgentId, AgentSpec, ItemResult, Role, RunEffect, RunInput, VoterResult, label, verifier_prompt,
    worker_prompt,
};

use super::{Done, Runner};
use crate::children;
use crate::fan_out::check;
use crate::fan_out::keys::key;
use crate::fan_out::seek::Ticket;
use crate::fan_out::tree::Trace;

/// An agent that is to do something of the run's.
pub(in crate::fan_out) struct AgentJob {
    pub(in crate::fan_out) agent: AgentId,
    pub(in crate::fan_out) spec: AgentSpec,
    pub(in crate::fan_out) prompt: String,
    pub(in crate::fan_out) key: String,
}

impl Runner {
    pub(super) fn begin_what_can_be_begun(&mut self) {
        let mut pending = self.run.pending();
        pending.retain(|effect| !self.begun.contains(effect) && !self.parked.contains(effect));
        // Those whose agents have begun before come first: what they hold comes free when they go on.
        pending.sort_by_key(|effect| match *effect {
            RunEffect::Check { .. } => 0,
            RunEffect::Work { item } if self.run.worker(item).is_some() => 0,
            RunEffect::Verify { item, voter } if self.run.verifier(item, voter).is_some() => 0,
            RunEffect::Verify { .. } => 1,
            RunEffect::Work { .. } => 2,
        });
        let most = self.parent.config.agents_at_once.max(1);
        for effect in pending {
            if self.begun.len() >= most {
                return;
            }
            self.begun.insert(effect);
            self.begin(effect);
        }
    }

    pub(in crate::fan_out) fn begin(&mut self, effect: RunEffect) {
        let result_finder = self.result_finder();
        match effect {
            RunEffect::Check { item } => {
                let parent = self.parent.clone();
                let name = format!("check_{}_{item}", self.id);
                let result = self.run.result(item).cloned();
                self.tasks.spawn(async move {
                    let report = result.as_ref().and_then(|result| result.report.as_ref());
                    let agent = result.as_ref().and_then(|result| result.agent.as_ref());
                    let checks = match report {
                        Some(report) => check::citations(&parent, &name, agent, report).await?,
                        None => Vec::new(),
                    };
                    Ok(Done::Checked(item, checks))
                });
            }
            RunEffect::Work { .. } | RunEffect::Verify { .. } => {
                let Some(job) = self.agent_for(effect) else { return };
                let begun = self.has_begun(effect);
                self.tasks.spawn(async move {
                    let sought = match effect {
                        RunEffect::Verify { .. } => {
                            result_finder.seek::<VoterResult>(effect, job, begun).await
                        }
                        _ => result_finder.seek::<ItemResult>(effect, job, begun).await,
                    };
                    sought.map(Done::Sought)
                });
            }
        }
    }

    /// Whether an agent was set to work on it, here or by an earlier process.
    pub(in crate::fan_out) fn has_begun(&self, effect: RunEffect) -> bool {
        match effect {
            RunEffect::Work { item } => self.run.worker(item).is_some(),
            RunEffect::Verify { item, voter } => self.run.verifier(item, voter).is_some(),
            RunEffect::Check { .. } => false,
        }
    }

    /// The agent that is to do it, and what it is told.
    pub(in crate::fan_out) fn agent_for(&self, effect: RunEffect) -> Option<AgentJob> {
        match effect {
            RunEffect::Work { item } => {
                let (subtask, key) = self.item(item)?;
                let spec = self.parent.spec.child(Role::Worker, &label(&subtask), 0)?;
                let agent = AgentId::derived(&["work", self.id.as_str(), &key]);
                Some(AgentJob { agent, spec, prompt: worker_prompt(&subtask), key })
            }
            RunEffect::Verify { item, voter } => {
                let (subtask, _) = self.item(item)?;
                let report = self.run.result(item)?.report.clone()?;
                let label = format!("verify: {}", label(&subtask));
                let spec = self.parent.spec.child(Role::Verifier, &label, report.findings.len() as u32)?;
                let prompt = verifier_prompt(&subtask, &report);
                let base = self.run.spec().map(|spec| spec.base.clone()).unwrap_or_default();
                let key = key(&spec, &prompt, &base, voter);
                let item = item.to_string();
                let voter = voter.to_string();
                let agent = AgentId::derived(&["verify", self.id.as_str(), &item, &voter, &key]);
                Some(AgentJob { agent, spec, prompt, key })
            }
            RunEffect::Check { .. } => None,
        }
    }

    fn item(&self, item: u32) -> Option<(String, String)> {
        let spec = self.run.spec()?;
        let at = item.checked_sub(1)? as usize;
        Some((spec.subtasks.get(at)?.clone(), spec.keys.get(at)?.clone()))
    }

    /// Says which agent does it, to be recorded before it is done; `None` if that is recorded already.
    pub(super) fn began(&self, ticket: &Ticket) -> Option<RunInput> {
        let agent = ticket.agent.clone();
        match ticket.effect {
            RunEffect::Work { item } if self.run.worker(item).is_none() => {
                Some(RunInput::Began { item, agent })
            }
            RunEffect::Verify { item, voter } if self.run.verifier(item, voter).is_none() => {
                Some(RunInput::VoterBegan { item, voter, agent })
            }
            _ => None,
        }
    }

    pub(super) fn set_to_work(&mut self, ticket: Box<Ticket>) {
        let parent = self.parent.clone();
        let before = self.tree.latest();
        let dir = self.dir();
        let sight = parent.config.confine.sight(&dir);
        self.tasks.spawn(async move {
            let ended = children::drive(&parent, &ticket.agent, ticket.spec.clone(), &ticket.prompt).await?;
            // An agent that took more than one turn has looked around, with whatever tool.
            let looked = ended.summary.as_ref().is_some_and(|summary| summary.turns > 1);
            let works = matches!(ticket.effect, RunEffect::Work { .. });
            let trace = if looked && works {
                Some(Trace::since(&parent.session.looks, &sight, &before, &dir).await?)
            } else {
                None
            };
            Ok(Done::Ended(ticket, Box::new(ended), trace))
        });
    }
}
