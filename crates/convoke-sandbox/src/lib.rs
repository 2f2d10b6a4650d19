//! Confines: the long-lived shell of one agent, under a helper process that is its reaper.
//!
//! A [`Shell`] is a bash that keeps its directory, variables, functions and background jobs from one command to the
//! next. It lives below a helper (the host's own executable, started again; see [`helper_entry`]) which is the init of a
//! pid namespace where the machine allows it, and otherwise the reaper of everything orphaned below it. When the host
//! goes away, however it goes, everything below the helper dies.
//!
//! [`capture`] runs one trusted program of ours, such as git, without a shell.
//!
//! The crate knows nothing of agents, models or journals, and it decides nothing about which command may run.

mod capture;
mod error;
mod helper;
mod output;
mod shell;
mod state;
#[expect(unsafe_code, reason = "the one module that calls the kernel; every block says why it is sound")]
mod sys;
mod wire;

pub use capture::{ProgramOutput, capture};
pub use error::Error;
pub use helper::{HELPER_ARGUMENT, forbid_inspection, helper_entry};
pub use output::{Captured, OutputSpec};
pub use shell::{Ending, Finished, HelperPath, Opening, RunCommand, Shell, ShellConfig, probe_hold};
pub use state::ShellState;
pub use wire::{Hold, HoldChoice};
