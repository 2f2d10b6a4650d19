//! From what a program wants to what would do it: which agent, with which prompt, under which key. Nothing is
//! started here.

use std::path::Path;

use convoke_claude::{capabilities, ceilings};
use convoke_kernel::{
    AgentSpec, CallKind, Callee, Child, Isolation, Report, Role, Segment, check_schema, known_tools, label,
    read_finding, verifier_prompt,
};
use convoke_script::{AgentWant, Want};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::children::Parent;
use crate::fan_out::content_key;

/// Columns of the beginning of a command or question that stands for it.
const LABEL: usize = 60;

/// What would do a call.
#[derive(Debug, Clone)]
pub(super) enum Prepared {
    /// An agent.
    Agent(Box<Prompted>),
    /// Verifiers of one finding.
    Verify { each: Box<Prompted>, report: Box<Report>, voters: u32 },
    /// A command.
    Sh { command: String },
    /// A person.
    Checkpoint { question: String },
    /// Another program.
    Workflow { name: Option<String>, path: Option<String> },
    /// A clock.
    Timer { ms: u64 },
}

/// An agent and what it is told.
#[derive(Debug, Clone)]
pub(super) struct Prompted {
    pub(super) spec: AgentSpec,
    pub(super) prompt: String,
    pub(super) isolation: Isolation,
}

/// A call that can be done, and what identifies it.
pub(super) struct Ready {
    pub(super) kind: CallKind,
    pub(super) label: String,
    pub(super) key: String,
    pub(super) agents: u32,
    pub(super) schema: Option<String>,
    pub(super) prepared: Prepared,
    /// What the program's author should know.
    pub(super) warnings: Vec<String>,
}

/// A call that cannot be done, and why; the program is told by an exception.
pub(super) struct Unready {
    pub(super) kind: CallKind,
    pub(super) label: String,
    pub(super) key: String,
    pub(super) why: String,
}

/// Works out what would do a call. `base` is the run's fingerprint, `voters` its verifiers per finding.
pub(super) async fn prepare(parent: &Parent, want: &Want, base: &str, voters: u32) -> Result<Ready, Unready> {
    let plain = |kind, what: &str, label: String, prepared| Ready {
        kind,
        key: digest(&[kind_word(kind), what]),
        label,
        agents: 0,
        schema: None,
        prepared,
        warnings: Vec::new(),
    };
    Ok(match want {
        Want::Agent(agent) => return self::agent(parent, agent, base).await,
        Want::Verify { finding, voters: wished, label } => {
            let voters = wished.unwrap_or(voters).max(1);
            return verify(parent, finding, voters, label.as_deref(), base);
        }
        Want::Sh { command } => {
            let prepared = Prepared::Sh { command: command.clone() };
            plain(CallKind::Sh, command, short(command), prepared)
        }
        Want::Checkpoint { question } => {
            let prepared = Prepared::Checkpoint { question: question.clone() };
            plain(CallKind::Checkpoint, question, short(question), prepared)
        }
        Want::Workflow { name, script_path } => {
            let what = name.as_deref().or(script_path.as_deref()).unwrap_or_default().to_owned();
            let prepared = Prepared::Workflow { name: name.clone(), path: script_path.clone() };
            plain(CallKind::Workflow, &what, what.clone(), prepared)
        }
        Want::Timer { ms } => {
            plain(CallKind::Timer, &ms.to_string(), format!("{ms} ms"), Prepared::Timer { ms: *ms })
        }
    })
}

async fn agent(parent: &Parent, want: &AgentWant, base: &str) -> Result<Ready, Unready> {
    let label =
        want.label.clone().filter(|text| !text.trim().is_empty()).unwrap_or_else(|| label(&want.prompt));
    let unready = |why: String| Unready {
        kind: CallKind::Agent,
        label: label.clone(),
        key: digest(&["unready", &want.prompt, &why]),
        why,
    };
    let mut warnings = Vec::new();
    let kind = match &want.agent_type {
        None => None,
        Some(name) => match parent.config.programs.library.agent_kind(name).await {
            Ok(Some(kind)) => Some(kind),
            Ok(None) => {
                return Err(unready(format!(
                    "agentType '{name}' is not known; `convoke workflow list` shows what is"
                )));
            }
            Err(error) => return Err(unready(format!("agentType '{name}': {error}"))),
        },
    };
    if let Some(kind) = &kind {
        warnings.extend(kind.warnings.iter().map(|warning| format!("agentType '{}': {warning}", kind.name)));
    }
    if let Some(schema) = &want.schema {
        check_schema(schema).map_err(|why| unready(format!("the schema cannot be used: {why}")))?;
    }
    let tools = match (&want.tools, kind.as_ref().and_then(|kind| kind.tools.as_ref())) {
        (Some(wanted), Some(had)) => Some(narrowed(wanted, had)),
        (Some(tools), None) | (None, Some(tools)) => Some(tools.clone()),
        (None, None) => None,
    };
    let mut unknown = tools.as_ref().map(|tools| known_tools(tools).1).unwrap_or_default();
    unknown.retain(|name| parent.spec.given().iter().all(|tool| tool.name != *name));
    if !unknown.is_empty() {
        warnings.push(format!("tools that are not here and are left out: {}", unknown.join(", ")));
    }
    let model = want.model.as_ref().or_else(|| kind.as_ref().and_then(|kind| kind.model.as_ref()));
    let effort = want.effort.as_ref().or_else(|| kind.as_ref().and_then(|kind| kind.effort.as_ref()));
    let child = child(parent, model, effort, &mut warnings).map_err(unready)?;
    let isolation = if want.isolation.is_some() { Isolation::Worktree } else { Isolation::None };
    let callee = Callee {
        label: label.clone(),
        instructions: kind
            .as_ref()
            .map(|kind| kind.instructions.clone())
            .filter(|text| !text.trim().is_empty()),
        child,
        memory: kind.as_ref().is_none_or(|kind| kind.memory),
        schema: want.schema.as_ref().map(Segment::encode),
        tools,
        isolation,
        read_only: kind.as_ref().is_some_and(|kind| kind.read_only),
    };
    let Some(spec) = parent.spec.callee(callee) else {
        return Err(unready("this session may start no agents".to_owned()));
    };
    let key = content_key(&spec, &want.prompt, &format!("{base} {isolation:?}"));
    Ok(Ready {
        kind: CallKind::Agent,
        label,
        key,
        agents: 1,
        schema: want.schema.as_ref().map(|schema| digest(&[&schema.to_string()])),
        prepared: Prepared::Agent(Box::new(Prompted { spec, prompt: want.prompt.clone(), isolation })),
        warnings,
    })
}

/// The names that both lists have, as people write them.
fn narrowed(wanted: &[String], had: &[String]) -> Vec<String> {
    let known = known_tools(had).0.names();
    let keeps = |name: &&String| {
        known_tools(std::slice::from_ref(name)).0.names().iter().all(|tool| known.contains(tool))
    };
    wanted.iter().filter(keeps).cloned().collect()
}

/// What an agent with these wishes is made of; `None` when it is what the session's agents are made of
/// anyway.
fn child(
    parent: &Parent,
    model: Option<&String>,
    effort: Option<&String>,
    warnings: &mut Vec<String>,
) -> Result<Option<Child>, String> {
    if model.is_none() && effort.is_none() {
        return Ok(None);
    }
    let programs = &parent.config.programs;
    let Some(session) = parent.spec.fan_out.as_ref().map(|fan_out| fan_out.child.clone()) else {
        return Ok(None);
    };
    if programs.one_model {
        warnings.push("this session has one model: the options model and effort are left out".to_owned());
        return Ok(None);
    }
    let row = parent.config.models.get(model.unwrap_or(&session.model));
    let wished = effort.cloned().or_else(|| session.capabilities.effort.clone());
    let offered = |effort: &String| row.effort_levels.contains(effort);
    let usable = wished.clone().filter(offered);
    if let (Some(effort), None) = (effort, &usable) {
        warnings.push(format!("{} has no effort '{effort}'; its default is used", row.id));
    }
    let capabilities = capabilities(&row, &programs.server.row(&row.id), usable.as_deref())
        .map_err(|error| error.to_string())?;
    Ok(Some(Child { rates: ceilings(&row), capabilities, limits: session.limits, model: row.id }))
}

fn verify(
    parent: &Parent,
    finding: &Value,
    voters: u32,
    named: Option<&str>,
    base: &str,
) -> Result<Ready, Unready> {
    let finding = read_finding(finding).map_err(|why| Unready {
        kind: CallKind::Verify,
        label: "verify".to_owned(),
        key: digest(&["unready", &finding.to_string()]),
        why,
    })?;
    let label = named.map_or_else(|| format!("verify: {}", label(&finding.claim)), str::to_owned);
    let report = Report { summary: finding.claim.clone(), findings: vec![finding] };
    let prompt = verifier_prompt("check one claim that a program was told", &report);
    let Some(spec) = parent.spec.child(Role::Verifier, &label, 1) else {
        return Err(Unready {
            kind: CallKind::Verify,
            key: digest(&["unready", &label]),
            label,
            why: "this session may start no agents".to_owned(),
        });
    };
    let key = digest(&[&content_key(&spec, &prompt, base), &voters.to_string()]);
    let each = Box::new(Prompted { spec, prompt, isolation: Isolation::None });
    let prepared = Prepared::Verify { each, report: Box::new(report), voters };
    let kind = CallKind::Verify;
    Ok(Ready { kind, label, key, agents: voters, schema: None, prepared, warnings: Vec::new() })
}

/// Hashes words so that no two lists of them are alike.
pub(super) fn digest(words: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for word in words {
        hasher.update((word.len() as u64).to_be_bytes());
        hasher.update(word.as_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind_word(kind: CallKind) -> &'static str {
    kind.word()
}

fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(LABEL).collect();
    if cut.len() < text.trim_end().len() { format!("{cut}…") } else { cut }
}

/// Where a run's script is kept for people to read.
pub(super) fn script_file(outputs: &Path, name: &str, run: &str) -> std::path::PathBuf {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(40).collect();
    outputs.join("scripts").join(format!("{safe}-{run}.js"))
}
