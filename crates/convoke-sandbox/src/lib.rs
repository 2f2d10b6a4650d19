//! Confines: the long-lived shell of one agent, under a helper process that is its reaper.
//!
//! A [`Shell`] is a bash that keeps its directory, variables, functions and background jobs from one command
//! to the next. It lives below a helper (the host's own executable, started again; see [`helper_entry`])
//! which is the init of a pid namespace where the machine allows it, and otherwise the reaper of everything
//! orphaned below it. When the host goes away, however it goes, everything below the helper dies.
//!
//! What commands may read, write, reach and use is a [`Policy`]. [`probe`] finds out what the machine offers,
//! [`ProbeMemory`] remembers that, [`hold`] decides by which [`LayerSet`] the policy is held or that it cannot be, and the helper locks
//! itself before there is a bash: bubblewrap around it where there are namespaces, and Landlock, seccomp and
//! resource limits in any case. Nothing here ever falls back to less than was decided.
//!
//! A [`Worker`] is another helper, one that computes and can do nothing else: it is locked to a handful of
//! system calls before it hears its first question, and killed at its deadline.
//!
//! [`Git`] is the only program that the host itself runs in or about a tree. It goes through one door
//! (`program.rs`), confined to what commands see, and dies with the host.
//!
//! The crate knows nothing of agents, models or journals, and it decides nothing about which command may run.

mod cage;
mod cgroup;
mod circumstances;
mod confine;
mod copy;
mod denial;
mod error;
mod gitconfig;
mod helper;
mod late;
mod layers;
mod link;
mod memory;
mod output;
mod policy;
mod probe;
mod process;
mod program;
mod proxy;
mod remove;
mod shell;
mod state;
mod survey;
#[expect(unsafe_code, reason = "the one module that calls the kernel; every block says why it is sound")]
mod sys;
mod templates;
mod trusted;
mod wire;
mod worker;
mod writes;

pub use confine::named_by_git;
pub use copy::{Copied, CopyCap, CopyError, make as make_copy};
pub use denial::likely as likely_denial;
pub use error::Error;
pub use helper::{Compute, HELPER_ARGUMENT, forbid_inspection, helper_entry};
pub use late::LatePaths;
pub use layers::{CannotHold, Enforcement, Layer, Layers, hold};
pub use memory::{ProbeMemory, Promise};
pub use output::{Captured, OutputSpec};
pub use policy::{Access, LayerSet, Limits, Network, OwnGit, Policy};
pub use probe::{look_for_bash, probe};
pub use program::{Git, GitCall, ProgramOutput, Sight, Unseen, can_confine, program_version};
pub use proxy::{check_host, serve as serve_proxy};
pub use remove::{end_private, kept_git, remove_private};
pub use shell::{Ending, Finished, HelperPath, Opening, RunCommand, Shell, ShellConfig, probe_hold};
pub use state::ShellState;
pub use survey::{Bounds, Met, open_beneath, survey};
pub use templates::Templates;
pub use trusted::trusted_program;
pub use wire::{HoldChoice, ProcessHold};
pub use worker::{Worker, WorkerEnd, WorkerLimits};
pub use writes::{WriteGate, WritePath};
