//! A session's team: what its members do with each other, what drives them, and the client with which
//! people and scripts deal with it. What follows from what is the kernel's business
//! (`convoke_kernel::{Roster, Board, next}`).

mod acts;
mod client;
pub(crate) mod facts;
mod host;
mod left;
pub(crate) mod shared;
mod team_cache;
mod teammate_driver;

use std::time::Duration;

pub(crate) use acts::{Act, Starts, act};
pub use client::{MemberRow, TeamClient};
pub(crate) use host::Host;
pub(crate) use left::{left, open};
pub(crate) use team_cache::TeamCache;

/// How a team is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamConfig {
    /// For how long a claim holds without its holder's process saying that it lives.
    pub claim_ttl: Duration,
    /// How long a teammate without work keeps its shell and its place in memory.
    pub idle: Duration,
    /// How long a teammate has to answer when it is asked to stop.
    pub shutdown: Duration,
}

impl Default for TeamConfig {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self { claim_ttl: 60 * second, idle: 60 * second, shutdown: 60 * second }
    }
}
