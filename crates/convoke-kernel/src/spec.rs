//! What an agent is made of. Written down once, when it starts, and the same for its life: changing the
//! system prompt or the tools of a running conversation would break its cache and, on newer models, its
//! thinking. A person may choose another model or effort for a lead; that is an event of its own, and costs
//! the cache alone.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approval::Approvals;
use crate::confinement::{Confinement, Isolation};
use crate::ids::SessionId;
use crate::ledger::Rates;
use crate::output::{self, Output};
use crate::prompts;
use crate::segment::Segment;
use crate::teammate::Membership;
use crate::tools::{self, GivenTool, GivenTools, Offer, Tools};
use crate::wire::{Capabilities, Thinking};

/// What an agent is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The agent that talks to the person.
    Lead,
    /// One subtask of a fan-out, with a clean context.
    Worker,
    /// Tries to refute what a worker found.
    Verifier,
    /// One task with a clean context, of which only the summary comes back.
    Task,
    /// One agent that a program asked for; what it returns is a value.
    Callee,
    /// An agent that lives on, with a name and mail.
    Teammate,
}

impl Role {
    /// The word in data.
    pub fn word(self) -> &'static str {
        match self {
            Role::Lead => "lead",
            Role::Worker => "worker",
            Role::Verifier => "verifier",
            Role::Task => "task",
            Role::Callee => "callee",
            Role::Teammate => "teammate",
        }
    }

    /// The tool whose call ends an agent of this role, whatever else it is made of.
    pub fn final_tool(self) -> Option<&'static str> {
        match self {
            Role::Lead | Role::Task | Role::Callee | Role::Teammate => None,
            Role::Worker => Some(tools::REPORT_FINDINGS),
            Role::Verifier => Some(tools::REPORT_VERDICTS),
        }
    }

    /// How deep below the person an agent of this role stands. No agent below the lead has a tool that starts
    /// agents, so this is all the depth there is.
    pub fn depth(self) -> u32 {
        match self {
            Role::Lead => 0,
            Role::Worker | Role::Verifier | Role::Task | Role::Callee | Role::Teammate => 1,
        }
    }
}

/// Limits that the kernel holds an agent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Turns per exchange; one hand-back turn follows.
    pub max_turns: u32,
    /// Attempts at one request before a passing fault counts as lasting.
    pub max_attempts: u32,
    /// The deadline of one command, as told to the model.
    pub bash_timeout_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_turns: 30, max_attempts: 10, bash_timeout_ms: 60_000 }
    }
}

/// The room a reply is given at first.
pub const FIRST_MAX_TOKENS: u32 = 64_000;

/// The room a one-shot sub-agent's reply is given at first; one that is cut is tried again with all there is.
const TASK_MAX_TOKENS: u32 = 8_000;

/// Below this a reply is not worth asking for.
pub const LEAST_MAX_TOKENS: u32 = 8_000;

/// Turns of a worker or verifier.
pub const CHILD_TURNS: u32 = 15;

/// Turns of a one-shot sub-agent.
const TASK_TURNS: u32 = 30;

/// What an agent is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// The session it belongs to.
    pub session: SessionId,
    /// What it is there for.
    pub role: Role,
    /// What people call it: the beginning of its subtask.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The directory it works in.
    pub dir: String,
    /// The model, as the API names it.
    pub model: String,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// What its tokens cost at most; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// How many findings a verifier has to judge.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings: u32,
    /// The shape its result has to have; absent is text, or the report of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The only local tools it was given; absent is all of them.
    #[serde(rename = "hands", default, skip_serializing_if = "Option::is_none")]
    pub local_tools: Option<Tools>,
    /// How its commands and file tools are confined.
    #[serde(default)]
    pub confinement: Confinement,
    /// Which calls a person allowed, forbade or wants to be asked about.
    #[serde(default)]
    pub approvals: Approvals,
    /// How a lead fans out; absent for all other agents, and for leads from before there was a mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_out: Option<Box<FanOut>>,
    /// The team it belongs to, as its lead or as a teammate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Box<Membership>>,
    /// The tools that the embedding program gives to it and, for a lead, to agents below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Box<GivenTools>>,
    /// The `system` member of every request.
    pub system: Segment,
    /// The `tools` member of every request.
    pub tools: Segment,
    /// The other members of every request, in order.
    pub params: Vec<Param>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How a lead fans out, as the person chose it for the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOut {
    /// Whether the session starts with orchestration mode on.
    pub mode: bool,
    /// Whether the person allowed workflows for the whole session, whatever the mode.
    pub consent: bool,
    /// Verifiers per result; none switches verification off.
    pub voters: u32,
    /// Subtasks per Workflow call.
    pub max_subtasks: usize,
    /// Whether the task was read from a file or a pipe: text that others wrote is no consent.
    #[serde(default)]
    pub quoted: bool,
    /// Whether remembered results are left alone.
    pub fresh: bool,
    /// What workers and verifiers are made of.
    pub child: Child,
    /// What the agents that programs start are given beside that.
    #[serde(default, skip_serializing_if = "Callees::is_usual")]
    pub callees: Callees,
}

/// What the agents that programs start are given beside what workers are made of, as the person chose it for
/// the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callees {
    /// Whether the person trusts the project's own files for this session: by a flag, or when asked. What the
    /// configuration trusts is looked up there every time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusts_project: bool,
    /// What the project's own files say to every agent, if the directory is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Turns of each; absent is [`CALLEE_TURNS`](crate::CALLEE_TURNS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl Callees {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// What the agents below a lead are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// The model.
    pub model: String,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// What its tokens cost at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
}

/// A top-level member of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Segment,
}

/// What a person chose about a lead.
#[derive(Debug, Clone)]
pub struct LeadSettings {
    /// The session.
    pub session: SessionId,
    /// The directory.
    pub dir: String,
    /// The model.
    pub model: String,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// What its tokens cost at most.
    pub rates: Option<Rates>,
    /// How it is confined.
    pub confinement: Confinement,
    /// What it may do without asking.
    pub approvals: Approvals,
    /// How it fans out.
    pub fan_out: Option<FanOut>,
    /// The team it leads.
    pub team: Option<Membership>,
    /// Text the person adds to the system prompt.
    pub extra_system: Option<String>,
}

impl AgentSpec {
    /// The lead of a session.
    pub fn lead(settings: LeadSettings) -> Self {
        Self::lead_of(settings, false)
    }

    /// The lead of a session whose model reads little at once: a short prompt, bash and the text editor, and
    /// beside them what the settings hold.
    pub fn lean_lead(settings: LeadSettings) -> Self {
        Self::lead_of(settings, true)
    }

    fn lead_of(settings: LeadSettings, lean: bool) -> Self {
        let LeadSettings {
            session,
            dir,
            model,
            capabilities,
            limits,
            rates,
            confinement,
            approvals,
            fan_out,
            team,
            extra_system,
        } = settings;
        let local_tools = lean.then(Tools::lean);
        let own = if lean { prompts::lean_lead } else { prompts::lead };
        let mut system = vec![own(limits.bash_timeout_ms, &confinement)];
        system.extend(team.as_ref().map(|_| prompts::team::lead_of_team().to_owned()));
        system.extend(team.as_ref().and_then(|team| team.project.clone()));
        system.extend(extra_system.filter(|text| !text.trim().is_empty()));
        let given = local_tools.clone().unwrap_or_else(Tools::all);
        let tools = tools::declare(&Offer {
            max_subtasks: fan_out.as_ref().map(|fan_out| fan_out.max_subtasks),
            in_team: team.is_some(),
            ..Offer::to(Role::Lead, capabilities.anthropic_tools, &given)
        });
        Self {
            session,
            role: Role::Lead,
            label: String::new(),
            dir,
            model,
            limits,
            rates,
            findings: 0,
            output: None,
            local_tools,
            confinement,
            approvals,
            fan_out: fan_out.map(Box::new),
            team: team.map(Box::new),
            given: None,
            system: system_blocks(system, &capabilities),
            tools: Segment::encode(&tools.into()),
            params: params(&capabilities),
            capabilities,
        }
    }

    /// An agent below this lead. `None` when this agent may start none: depth is limited here and nowhere
    /// else.
    pub fn child(&self, role: Role, label: &str, findings: u32) -> Option<Self> {
        self.child_in(role, label, findings, Isolation::None)
    }

    /// An agent below this lead that works in this place.
    pub fn child_in(&self, role: Role, label: &str, findings: u32, isolation: Isolation) -> Option<Self> {
        let child =
            self.fan_out.as_ref().filter(|_| self.role == Role::Lead && role.depth() > 0)?.child.clone();
        let child = match role {
            // The one-shot sub-agent is the lead's own kind: same model, same effort.
            Role::Task => Child {
                model: self.model.clone(),
                capabilities: self.capabilities.clone(),
                limits: Limits { max_turns: TASK_TURNS.min(self.limits.max_turns), ..self.limits },
                rates: self.rates.clone(),
            },
            Role::Lead | Role::Worker | Role::Verifier | Role::Callee | Role::Teammate => child,
        };
        let confinement = self.confinement.of_child(role, isolation);
        let timeout = self.limits.bash_timeout_ms;
        let system = match role {
            // What these are made of is more than their role: see `AgentSpec::callee` and
            // `AgentSpec::teammate`.
            Role::Lead | Role::Callee | Role::Teammate => return None,
            Role::Worker => prompts::worker(timeout, &confinement),
            Role::Verifier => prompts::verifier(timeout, &confinement),
            Role::Task => prompts::task(timeout, &confinement),
        };
        let note = prompts::worktree_note(&confinement).filter(|_| isolation == Isolation::Worktree);
        let system = std::iter::once(system).chain(note).collect();
        let given = self.given_to(role, None);
        let local_tools = Tools::all();
        let offer = Offer::to(role, child.capabilities.anthropic_tools, &local_tools);
        let tools = tools::declare(&Offer { given: &given, ..offer });
        let below = self.below(role, label, child, confinement, system, tools);
        Some(Self { findings, given: GivenTools::of(given), ..below })
    }

    /// What all agents below this lead have in common.
    pub(crate) fn below(
        &self,
        role: Role,
        label: &str,
        child: Child,
        confinement: Confinement,
        system: Vec<String>,
        tools: Vec<Value>,
    ) -> Self {
        let Child { model, capabilities, limits, rates } = child;
        Self {
            session: self.session.clone(),
            role,
            label: label.to_owned(),
            dir: self.dir.clone(),
            model,
            limits: Limits { bash_timeout_ms: self.limits.bash_timeout_ms, ..limits },
            rates,
            findings: 0,
            output: None,
            local_tools: None,
            confinement,
            approvals: self.approvals.clone(),
            fan_out: None,
            team: None,
            given: None,
            system: system_blocks(system, &capabilities),
            tools: Segment::encode(&tools.into()),
            params: params(&capabilities),
            capabilities,
        }
    }

    /// The same lead with tools of the embedding program, for it and for agents below it.
    #[must_use]
    pub fn with_given(mut self, given: Vec<GivenTool>) -> Self {
        let own = given.iter().filter(|tool| tool.roles.contains(&self.role));
        let mut tools: Vec<Value> = serde_json::from_str(self.tools.as_str()).unwrap_or_default();
        let declared = tools.len();
        tools.extend(own.map(GivenTool::declaration));
        if tools.len() > declared {
            self.tools = Segment::encode(&tools.into());
        }
        self.given = GivenTools::of(given);
        self
    }

    /// The tools that the embedding program gives to it and, for a lead, to agents below it.
    pub fn given(&self) -> &[GivenTool] {
        self.given.as_ref().map_or(&[], |given| given.all())
    }

    /// The tools of the embedding program that an agent of this role gets; `names` are the only ones it may
    /// use.
    pub(crate) fn given_to(&self, role: Role, names: Option<&[String]>) -> Vec<GivenTool> {
        let gets =
            |tool: &&GivenTool| tool.roles.contains(&role) && names.is_none_or(|it| it.contains(&tool.name));
        self.given().iter().filter(gets).map(|tool| GivenTool { roles: vec![role], ..tool.clone() }).collect()
    }

    /// The tool whose call ends this agent.
    pub fn final_tool(&self) -> Option<&'static str> {
        if self.output.is_some() { Some(tools::STRUCTURED_OUTPUT) } else { self.role.final_tool() }
    }

    /// How often this agent is asked for that call if it ends in prose.
    pub(crate) fn nudges(&self) -> u32 {
        if self.output.is_some() { output::NUDGES } else { u32::from(self.role.final_tool().is_some()) }
    }

    /// The room the first attempt at a reply has.
    pub fn first_max_tokens(&self) -> u32 {
        let first = if self.role == Role::Task { TASK_MAX_TOKENS } else { FIRST_MAX_TOKENS };
        first.min(self.capabilities.max_output)
    }
}

/// The system prompt, with a mark behind it: tools and system are the prefix that all agents of one role
/// share.
fn system_blocks(texts: Vec<String>, capabilities: &Capabilities) -> Segment {
    let mut blocks: Vec<Value> =
        texts.into_iter().map(|text| json!({"type": "text", "text": text})).collect();
    if let Some(last) = blocks.last_mut().filter(|_| capabilities.cache_marks) {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
    Segment::encode(&blocks.into())
}

/// The members of a request that follow from what model and endpoint accept.
pub(crate) fn params(capabilities: &Capabilities) -> Vec<Param> {
    let mut params = Vec::new();
    let mut put =
        |name: &str, value| params.push(Param { name: name.to_owned(), value: Segment::encode(&value) });
    match capabilities.thinking {
        Thinking::Omit => {}
        Thinking::Adaptive => put("thinking", json!({"type": "adaptive"})),
    }
    if let Some(effort) = &capabilities.effort {
        put("output_config", json!({"effort": effort}));
    }
    if capabilities.cache_marks {
        // Automatic caching: the server marks the last block of every request, so the history is read and not
        // paid again.
        put("cache_control", json!({"type": "ephemeral"}));
    }
    params
}
