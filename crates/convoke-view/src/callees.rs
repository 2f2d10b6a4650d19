//! What every view of agents says alike: which agents a call of a program may have, what the phase is called
//! that they stand in, and what an agent is called.

use convoke_kernel::{AgentId, CallKind, MadeCall, Role};

/// Verifiers of one finding that are looked for, whatever the program says.
const VOTERS: u32 = 9;

/// The agents that this call of a program may have, whether or not they were started. An agent keeps the name
/// it was given in the run where it began, the `origin`.
pub(crate) fn agents_of(made: &MadeCall, origin: &str) -> Vec<AgentId> {
    let voters = match made.kind {
        CallKind::Verify => 1..=made.agents.max(VOTERS),
        _ => 0..=0,
    };
    voters.map(|voter| made.agent(origin, voter)).collect()
}

/// What a phase of a program is called. Several programs may have phases of the same name, so that of a
/// lead's `program` stands behind its name; the one that a person runs is alone.
pub(crate) fn phase_title(program: Option<&str>, within: Option<&str>, phase: &str) -> String {
    let own = within.map_or_else(|| phase.to_owned(), |within| format!("▸ {within}: {phase}"));
    program.map_or_else(|| own.clone(), |program| format!("{program} · {own}"))
}

/// What an agent is called: a verifier by what it looks at.
pub(crate) fn own_label(role: Role, label: &str) -> &str {
    label.strip_prefix("verify: ").filter(|_| role == Role::Verifier).unwrap_or(label)
}
