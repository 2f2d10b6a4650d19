//! An agent that a program's `agent()` started: a *callee*. What it is made of follows from the lead and from what the call asked
//! for; it is never confined less than a task would be, and has no tool that starts agents.

use crate::confinement::Isolation;
use crate::output::Output;
use crate::prompts;
use crate::segment::Segment;
use crate::spec::{AgentSpec, Child, Limits, Role};
use crate::tools::{self, Tools, known_tools};

/// Turns of a callee.
pub const CALLEE_TURNS: u32 = 50;

/// What a program's `agent()` asked for.
#[derive(Debug, Clone)]
pub struct Callee {
    /// What people call it.
    pub label: String,
    /// The system prompt of its kind of agent; it stands behind our own.
    pub instructions: Option<String>,
    /// What it is made of; absent is what the session's workers are made of. Its turns are [`CALLEE_TURNS`] either way.
    pub child: Option<Child>,
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
        let Callee { label, instructions, child, schema, tools: names, isolation, read_only } = settings;
        let session = &self.fan_out.as_ref().filter(|_| self.role == Role::Lead)?.child;
        let child = child.unwrap_or_else(|| session.clone());
        let child = Child { limits: Limits { max_turns: CALLEE_TURNS, ..child.limits }, ..child };
        // Who keeps nothing works where nothing is kept, wherever that is.
        let isolation = if read_only { Isolation::Copy } else { isolation };
        let confinement = self.confinement.of_child(Role::Callee, isolation);
        let hands = names.map(|names| known_tools(&names).0);
        let output = schema.map(|schema| Output { schema });
        let given = hands.clone().unwrap_or_else(Tools::all);
        let mut declared = tools::hands(child.capabilities.anthropic_tools, &given);
        declared.extend(output.as_ref().map(|output| tools::structured_output(output.input_schema())));
        let own = prompts::callee(self.limits.bash_timeout_ms, &confinement, &given, output.is_some());
        let system = std::iter::once(own).chain(instructions.filter(|text| !text.trim().is_empty())).collect();
        let below = self.below(Role::Callee, &label, child, confinement, system, declared);
        Some(Self { output, hands, ..below })
    }
}
