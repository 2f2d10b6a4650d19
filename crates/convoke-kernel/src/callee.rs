//! An agent that a program's `agent()` started: a *callee*. What it is made of follows from the lead and from
//! what the call asked for; it is never confined less than a task would be, and has no tool that starts
//! agents.

use crate::confinement::Isolation;
use crate::output::Output;
use crate::prompts;
use crate::segment::Segment;
use crate::spec::{AgentSpec, Child, Limits, Role};
use crate::tools::{self, GivenTools, Offer, Tools, known_tools};

/// Turns of a callee, unless the session says otherwise.
pub const CALLEE_TURNS: u32 = 50;

/// What a program's `agent()` asked for.
#[derive(Debug, Clone)]
pub struct Callee {
    /// What people call it.
    pub label: String,
    /// The system prompt of its kind of agent; it stands behind our own.
    pub instructions: Option<String>,
    /// What it is made of; absent is what the session's workers are made of. Its turns are the session's for
    /// callees either way.
    pub child: Option<Child>,
    /// Whether it is told what the project's own files say to every agent.
    pub memory: bool,
    /// The schema of its result; see [`check_schema`](crate::check_schema).
    pub schema: Option<Segment>,
    /// The only tools it may use, by name; absent is all of them. See [`known_tools`] for the names.
    pub tools: Option<Vec<String>>,
    /// Where it works.
    pub isolation: Isolation,
    /// Whether nothing it writes is kept.
    pub read_only: bool,
}

impl AgentSpec {
    /// A callee below this lead. `None` when this agent may start none.
    pub fn callee(&self, settings: Callee) -> Option<Self> {
        let Callee { label, instructions, child, memory, schema, tools: names, isolation, read_only } =
            settings;
        let session = self.fan_out.as_ref().filter(|_| self.role == Role::Lead)?;
        let child = child.unwrap_or_else(|| session.child.clone());
        let max_turns = session.callees.turns.unwrap_or(CALLEE_TURNS);
        let child = Child { limits: Limits { max_turns, ..child.limits }, ..child };
        // An agent that keeps nothing works in a copy, whichever place the call names.
        let isolation = if read_only { Isolation::Copy } else { isolation };
        let confinement = self.confinement.of_child(Role::Callee, isolation);
        let given_tools = self.given_to(Role::Callee, names.as_deref());
        let local_tools = names.map(|names| known_tools(&names).0);
        let output = schema.map(|schema| Output { schema });
        let given = local_tools.clone().unwrap_or_else(Tools::all);
        let declared = tools::declare(&Offer {
            output: output.as_ref(),
            given: &given_tools,
            ..Offer::to(Role::Callee, child.capabilities.anthropic_tools, &given)
        });
        let own = prompts::callee(self.limits.bash_timeout_ms, &confinement, &given, output.is_some());
        // The text for all callees stands before the text for one kind,
        // so that they share the longest beginning.
        let project = session.callees.project.clone().filter(|_| memory);
        let kind = instructions.filter(|text| !text.trim().is_empty());
        let note = prompts::worktree_note(&confinement).filter(|_| isolation == Isolation::Worktree);
        let system = std::iter::once(own).chain(note).chain(project).chain(kind).collect();
        let below = self.below(Role::Callee, &label, child, confinement, system, declared);
        Some(Self { output, local_tools, given: GivenTools::of(given_tools), ..below })
    }
}
