//! What is begun for a run, in which order, and the agents that do it.

use convoke_kernel::{
    AgentId, AgentSpec, ItemResult, Role, RunEffect, RunInput, VoterResult, label, verifier_prompt,
    worker_prompt,
};

use super::{Done, RunRecord, Runner, remembered};
use crate::children;
use crate::error::Error;
use crate::fan_out::check;
use crate::fan_out::keys::{Keys, key};
use crate::fan_out::seek::{Reusable, Ticket};
use crate::fan_out::tree::Trace;

fn is_work(effect: &RunEffect) -> bool {
    matches!(effect, RunEffect::Work { .. })
}

/// An agent that is to do something of the run's.
pub(in crate::fan_out) struct AgentJob {
    pub(in crate::fan_out) agent: AgentId,
    pub(in crate::fan_out) spec: AgentSpec,
    pub(in crate::fan_out) prompt: String,
    pub(in crate::fan_out) key: String,
}

impl Runner {
    /// Records all that equal work came to before, and what then is remembered in turn: one query for the
    /// results of all items, and one for the verdicts about those. It takes no place and no flight; what is
    /// not found goes the ordinary way, which looks again when no equal work is under way any more.
    pub(super) async fn take_remembered(&mut self) -> Result<(), Error> {
        if self.result_finder().fresh {
            return Ok(());
        }
        loop {
            let wanted = self.not_looked_up();
            if wanted.is_empty() {
                return Ok(());
            }
            let finder = self.result_finder();
            let keys = |works: bool| -> Vec<String> {
                let wanted = wanted.iter().filter(|(effect, _)| is_work(effect) == works);
                wanted.map(|(_, key)| key.clone()).collect()
            };
            let mut items = finder.look_up::<ItemResult>(&keys(true)).await?;
            let mut votes = finder.look_up::<VoterResult>(&keys(false)).await?;
            let mut heard: Vec<RunRecord> = Vec::new();
            for (effect, key) in wanted {
                self.looked_up.insert(effect);
                let found = match is_work(&effect) {
                    true => items.remove(&key).map(Reusable::found),
                    false => votes.remove(&key).map(Reusable::found),
                };
                let ended = found.and_then(|found| remembered(effect, found));
                heard.extend(ended.map(|ended| (ended, Vec::new())));
            }
            if heard.is_empty() {
                return Ok(());
            }
            self.record(heard, Vec::new()).await?;
        }
    }

    /// What may be remembered and has not been looked up yet, with its key. Nothing is to be expected of
    /// verdicts about what an agent has just reported.
    fn not_looked_up(&self) -> Vec<(RunEffect, String)> {
        let is_new = |effect: &RunEffect| {
            !self.looked_up.contains(effect) && !self.begun.contains(effect) && !self.has_begun(*effect)
        };
        let may_be_known = |effect: &RunEffect| match *effect {
            RunEffect::Work { .. } => true,
            RunEffect::Verify { item, .. } => {
                self.run.result(item).is_some_and(|result| result.reused.is_some())
            }
            RunEffect::Check { .. } => false,
        };
        let mut pending = self.run.pending();
        pending.retain(|effect| is_new(effect) && may_be_known(effect));
        if pending.is_empty() {
            return Vec::new();
        }
        let base = self.run.spec().map(|spec| spec.base.clone()).unwrap_or_default();
        let mut content = Keys::new(&self.parent.spec, &base);
        let mut key = |effect: &RunEffect| match *effect {
            RunEffect::Work { item } => Some(self.item(item)?.1),
            RunEffect::Verify { item, voter } => {
                content.vote(&self.item(item)?.0, self.run.result(item)?.report.as_ref()?, voter)
            }
            RunEffect::Check { .. } => None,
        };
        pending.into_iter().filter_map(|effect| key(&effect).map(|key| (effect, key))).collect()
    }

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
