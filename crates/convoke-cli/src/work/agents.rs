//! The agents below a lead as the report lists them: by workflow and subtask in the order they were asked
//! for, then the one-shot ones. An agent whose result was taken from elsewhere did not run here and cost
//! nothing here.

use std::collections::HashMap;

use convoke_kernel::{
    self as kernel, CallKind, CallResult, ItemResult, ItemStatus, ItemView, Program, Role, Status, Summary,
    VoterResult,
};

use crate::catalog::ListedSession;
use crate::render::kind_word;
use crate::report::{Agent, AgentStatus, Failed, Reused};

/// The agents of a session without its lead.
pub(super) fn agents(listed: &ListedSession, flows: &[kernel::Run], programs: &[Program]) -> Vec<Agent> {
    let mut left: HashMap<&str, &Summary> = HashMap::new();
    for entry in listed.agents.iter().filter(|entry| entry.summary.role != Role::Lead) {
        left.insert(entry.agent.as_str(), &entry.summary);
    }
    let mut agents = Vec::new();
    for flow in flows {
        let Some(spec) = flow.spec() else { continue };
        for item in flow.items() {
            agents.extend(worker(flow, &spec.run, &item, &mut left));
            let numbers = 1..=spec.voters;
            agents.extend(numbers.filter_map(|voter| verifier(flow, &spec.run, &item, voter, &mut left)));
        }
    }
    for program in programs {
        let Some(spec) = program.spec() else { continue };
        for call in program.calls().filter(|call| call.made.kind.is_agents()) {
            if let Some(result) = &call.result {
                agents.extend(callees(&spec.run, &call.made, result, &mut left));
            }
        }
    }
    for entry in &listed.agents {
        if let Some(summary) = left.remove(entry.agent.as_str()) {
            agents.push(by_itself(entry.agent.as_str(), summary));
        }
    }
    agents
}

/// Where an agent stands in its workflow.
struct AgentPosition<'a> {
    role: &'static str,
    run: &'a str,
    item: &'a ItemView,
}

impl AgentPosition<'_> {
    fn agent(&self, id: Option<String>, summary: Option<&Summary>, reused: Option<&kernel::Reused>) -> Agent {
        let paid = summary.filter(|_| reused.is_none());
        let tokens =
            |summary: &Summary| summary.usage.prompt_tokens().saturating_add(summary.usage.output_tokens);
        Agent {
            role: self.role,
            label: self.item.label.clone(),
            agent: id,
            run: Some(self.run.to_owned()),
            item: Some(self.item.item),
            status: AgentStatus::Ok,
            failure: None,
            turns: paid.map_or(0, |summary| summary.turns),
            commands: paid.map_or(0, |summary| summary.commands),
            tokens: paid.map_or(0, tokens),
            cost_nano: paid.map_or(Some(0), |summary| summary.cost_nano),
            changed: Vec::new(),
            reused: reused.map(|from| Reused { run: from.session.clone(), at: from.at }),
        }
    }
}

fn worker(
    flow: &kernel::Run,
    run: &str,
    item: &ItemView,
    left: &mut HashMap<&str, &Summary>,
) -> Option<Agent> {
    let result = flow.result(item.item);
    let id =
        result.and_then(|result| result.agent.as_ref()).or(item.worker.as_ref()).map(ToString::to_string);
    let summary = id.as_deref().and_then(|id| left.remove(id));
    let place = AgentPosition { role: "worker", run, item };
    let Some(result) = result else {
        let agent = place.agent(Some(id?), summary, None);
        return Some(Agent { status: AgentStatus::Open, ..agent });
    };
    let (status, failure) = worked(result)?;
    let agent = place.agent(id, summary, result.reused.as_ref());
    let changed = if result.reused.is_some() { Vec::new() } else { result.changed.clone() };
    Some(Agent { status, failure, changed, ..agent })
}

/// How a worker ended; `None` for one that never began, which is listed among the subtasks that no agent
/// worked on.
fn worked(result: &ItemResult) -> Option<(AgentStatus, Option<Failed>)> {
    match (&result.status, &result.degraded) {
        (ItemStatus::Ok, None) => Some((AgentStatus::Ok, None)),
        (ItemStatus::Ok, Some(why)) => Some((AgentStatus::Degraded, Some(failed("degraded", why)))),
        (ItemStatus::Failed { kind, message }, _) => {
            Some((AgentStatus::Failed, Some(failed(&kind_word(*kind), message))))
        }
        (ItemStatus::Skipped { .. }, _) => None,
    }
}

fn verifier(
    flow: &kernel::Run,
    run: &str,
    item: &ItemView,
    voter: u32,
    left: &mut HashMap<&str, &Summary>,
) -> Option<Agent> {
    let id = flow.verifier(item.item, voter)?;
    let summary = left.remove(id.as_str());
    let votes = flow.votes(item.item);
    let vote: Option<&&VoterResult> = votes.iter().find(|vote| vote.agent.as_ref() == Some(id));
    let reused = vote.and_then(|vote| vote.reused.as_ref());
    let agent = AgentPosition { role: "verifier", run, item }.agent(Some(id.to_string()), summary, reused);
    let (status, failure) = match vote {
        None => (AgentStatus::Open, None),
        Some(vote) => match &vote.failure {
            None => (AgentStatus::Ok, None),
            Some(why) => {
                let kind = summary.and_then(|summary| summary.failure).map(kind_word);
                let status = if kind.is_some() { AgentStatus::Failed } else { AgentStatus::Degraded };
                (status, Some(failed(kind.as_deref().unwrap_or("degraded"), why)))
            }
        },
    };
    Some(Agent { status, failure, ..agent })
}

/// The agents that did a call of a program. A call that was served from elsewhere has the agents that did it
/// there, which cost nothing here.
fn callees(
    run: &str,
    made: &kernel::MadeCall,
    result: &CallResult,
    left: &mut HashMap<&str, &Summary>,
) -> Vec<Agent> {
    let role = if made.kind == CallKind::Verify { "verifier" } else { "callee" };
    let (status, failure) = match (&result.status, &result.degraded) {
        (ItemStatus::Ok, None) => (AgentStatus::Ok, None),
        (ItemStatus::Ok, Some(why)) => (AgentStatus::Degraded, Some(failed("degraded", why))),
        (ItemStatus::Failed { kind, message }, _) => {
            (AgentStatus::Failed, Some(failed(&kind_word(*kind), message)))
        }
        (ItemStatus::Skipped { reason }, _) => {
            let word = if result.by_person { "skipped" } else { "not done" };
            (AgentStatus::Failed, Some(failed(word, reason)))
        }
    };
    let one = |id: &kernel::AgentId| {
        let reused = result.reused.as_ref();
        let summary = left.remove(id.as_str()).filter(|_| reused.is_none());
        Agent {
            label: made.label.clone(),
            agent: Some(id.to_string()),
            run: Some(run.to_owned()),
            item: Some(made.call),
            status,
            failure: failure.clone(),
            changed: if reused.is_some() { Vec::new() } else { result.changed.clone() },
            reused: reused.map(|from| Reused { run: from.session.clone(), at: from.at }),
            ..summary
                .map_or_else(|| nobody(role), |summary| Agent { role, ..by_itself(id.as_str(), summary) })
        }
    };
    result.agents.iter().map(one).collect()
}

/// An agent of which nothing is known here but its place.
fn nobody(role: &'static str) -> Agent {
    Agent {
        role,
        label: String::new(),
        agent: None,
        run: None,
        item: None,
        status: AgentStatus::Ok,
        failure: None,
        turns: 0,
        commands: 0,
        tokens: 0,
        cost_nano: Some(0),
        changed: Vec::new(),
        reused: None,
    }
}

/// An agent that no workflow asked for: a one-shot one, or one whose workflow is gone from the journal.
fn by_itself(id: &str, summary: &Summary) -> Agent {
    let kind = || kind_word(summary.failure.unwrap_or(convoke_kernel::FailureKind::Internal));
    let (status, failure) = match summary.status {
        Status::Done => (AgentStatus::Ok, None),
        Status::Open => (AgentStatus::Open, None),
        Status::Partial => (AgentStatus::Failed, Some(failed(&kind(), "it finished in part"))),
        Status::Failed => (AgentStatus::Failed, Some(failed(&kind(), "it did not finish"))),
    };
    Agent {
        role: summary.role.word(),
        label: summary.label.clone(),
        agent: Some(id.to_owned()),
        run: None,
        item: None,
        status,
        failure,
        turns: summary.turns,
        commands: summary.commands,
        tokens: summary.usage.prompt_tokens().saturating_add(summary.usage.output_tokens),
        cost_nano: summary.cost_nano,
        changed: Vec::new(),
        reused: None,
    }
}

fn failed(kind: &str, message: &str) -> Failed {
    Failed { kind: kind.to_owned(), message: message.to_owned() }
}
