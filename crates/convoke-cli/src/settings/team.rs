//! What the settled layers say about the team that a lead can make, and about the project's memory files.

use std::time::Duration;

use super::layers::Layers;
use super::origin::Origin;
use super::value::Value;
use crate::args::TeamArgs;

/// How a lead's team is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Team {
    /// Whether a new lead can make one.
    pub(crate) on: bool,
    /// How long a teammate without work keeps its shell.
    pub(crate) idle: Duration,
    /// Whether `CLAUDE.md` and `AGENTS.md` of a trusted project are read.
    pub(crate) memory: bool,
    /// How long a claim holds without a sign of life, if not as long as usual.
    pub(crate) claim_ttl: Option<Duration>,
    /// How long a process may be silent before others take over, if not as long as usual.
    pub(crate) lease: Option<Duration>,
}

/// How long a teammate without work keeps its shell unless a layer says otherwise.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// Puts what the flags say over what is there.
pub(super) fn put_flags(layers: &mut Layers, args: &TeamArgs) {
    if args.no_team {
        layers.put("team", Value::Switch(false), Origin::Flag("--no-team"));
    }
    if args.team {
        layers.put("team", Value::Switch(true), Origin::Flag("--team"));
    }
    if let Some(idle) = args.idle {
        layers.put("team_idle", Value::Time(idle), Origin::Flag("--idle"));
    }
    if args.no_memory {
        layers.put("memory", Value::Switch(false), Origin::Flag("--no-memory"));
    }
}

/// What the settled layers say about it.
pub(super) fn team(layers: &Layers) -> Team {
    let on = layers.is_on("team");
    let idle = layers.time("team_idle");
    let memory = layers.is_on("memory");
    Team { on, idle, memory, claim_ttl: None, lease: None }
}
