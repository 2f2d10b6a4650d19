//! A teammate: an agent that lives on, with a name, a role and mail. What it is made of follows from the lead
//! and from what it was spawned with; it is never confined less than a task would be, and has no tool that
//! starts agents.

use serde::{Deserialize, Serialize};

use crate::confinement::Isolation;
use crate::prompts;
use crate::spec::{AgentSpec, Child, Limits, Role};
use crate::tools::{self, GivenTools, Offer, Tools, known_tools};

/// Turns of a teammate in one exchange.
pub const TEAMMATE_TURNS: u32 = 50;

/// That an agent belongs to a team. The lead has one too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Its name; `lead` for the lead.
    pub name: String,
    /// What it is there for.
    pub role: String,
    /// The team.
    pub team: String,
    /// Whether a plan has to be approved before it may write.
    #[serde(default)]
    pub requires_plan: bool,
    /// Tokens of context above which it begins a new history.
    pub compact_at: u64,
    /// What the project's own files say to every agent, if the directory is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// What a teammate is spawned with.
#[derive(Debug, Clone)]
pub struct Teammate {
    /// Its name.
    pub name: String,
    /// What it is there for.
    pub role: String,
    /// Whether a plan has to be approved before it may write.
    pub requires_plan: bool,
    /// The only local tools it is given, by name; absent is all of them.
    pub tools: Option<Vec<String>>,
    /// Where it works.
    pub isolation: Isolation,
}

impl AgentSpec {
    /// A teammate of this lead's. `None` when this agent leads no team.
    pub fn teammate(&self, settings: Teammate) -> Option<Self> {
        let Teammate { name, role, requires_plan, tools: names, isolation } = settings;
        let own = self.team.as_ref().filter(|_| self.role == Role::Lead)?;
        // A teammate is the lead's own kind: same model, same effort.
        let child = Child {
            model: self.model.clone(),
            capabilities: self.capabilities.clone(),
            limits: Limits { max_turns: TEAMMATE_TURNS.max(self.limits.max_turns), ..self.limits },
            rates: self.rates.clone(),
        };
        let confinement = self.confinement.of_child(Role::Teammate, isolation);
        let given_tools = self.given_to(Role::Teammate, names.as_deref());
        let local_tools = names.map(|names| known_tools(&names).0);
        let given = local_tools.clone().unwrap_or_else(Tools::all);
        let declared = tools::declare(&Offer {
            in_team: true,
            requires_plan,
            given: &given_tools,
            ..Offer::to(Role::Teammate, child.capabilities.anthropic_tools, &given)
        });
        let timeout = self.limits.bash_timeout_ms;
        let prompt =
            prompts::team::teammate(timeout, &confinement, &given, &name, &role, &own.team, requires_plan);
        let note = prompts::worktree_note(&confinement).filter(|_| isolation == Isolation::Worktree);
        let system = std::iter::once(prompt).chain(note).chain(own.project.clone()).collect();
        let membership = Membership { name: name.clone(), role, requires_plan, ..(**own).clone() };
        let below = self.below(Role::Teammate, &name, child, confinement, system, declared);
        Some(Self {
            local_tools,
            team: Some(Box::new(membership)),
            given: GivenTools::of(given_tools),
            ..below
        })
    }
}
