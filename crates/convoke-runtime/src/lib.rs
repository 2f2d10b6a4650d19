//! Acts: drives agent streams, performs what the kernel decided, and is the library that programs embed.
//!
//! ```no_run
//! # async fn example(config: convoke_runtime::Config) -> Result<(), Box<dyn std::error::Error>> {
//! use convoke_runtime::{DriveMode, Runtime, Start, Stop};
//!
//! let runtime = Runtime::new(config);
//! let agent = runtime.start(Start::new("claude-opus-4-8", "/some/dir"), "Review this directory").await?;
//! let ended = runtime.drive(&agent, DriveMode::New, Stop::never(), None).await?;
//! println!("{:?}", ended.outcome);
//! # Ok(()) }
//! ```
//!
//! A program that embeds this crate calls [`helper_entry`] first in its `main`, so that it can serve as the
//! helper under which commands live and in which workflow programs are interpreted, and passes its own
//! executable as [`HelperPath`].

mod accounts;
mod asked_consent;
mod asker;
mod bash;
mod change_recorder;
mod children;
mod clock;
mod confine;
mod control;
mod crash;
mod custom;
mod drive;
mod driver;
mod effects;
mod error;
mod fan_out;
mod fence;
mod files;
mod fork;
mod governor;
mod heartbeat;
mod ids;
mod inputs;
mod interpreter;
mod lessons;
mod library;
mod local_tools;
mod means;
mod notice;
mod outage;
mod program;
mod quote;
mod recovery;
mod retune;
mod room;
mod runtime;
mod session;
mod session_ledger;
mod shipped;
mod spool;
mod start;
mod stop;
mod stream_writer;
mod surroundings;
mod team;
mod unsay;
mod wait_notifier;
mod wakers;
mod workspace;
mod write_gate;

pub use asker::{AskedCall, Asker, Checkpoint, Question};
pub use clock::Clock;
pub use confine::{Confine, access, left_commits, network};
pub use control::{Control, Controller, STOPPED_BY};
pub use convoke_sandbox::HelperPath;
pub use convoke_script::{GuestMessage, Meta, Phase, Problem, SourcePosition};
pub use crash::{Crash, Moment};
pub use custom::{CallContext, CustomTool, CustomTools};
pub use drive::{DriveMode, DriveOutcome};
pub use error::Error;
pub use fork::ForkRefused;
pub use governor::{Governor, GovernorHold, GovernorStats, Why};
pub use ids::Ids;
pub use inputs::summary_of_waiting;
pub use interpreter::{InterpreterError, check as check_program, helper_entry};
pub use library::{
    AgentKind, Checked, Checker, FoundWorkflow, KindEntry, Library, LibraryError, LibraryFolder, Origin,
    Reading, Source, WorkflowEntry, read_source, source_digest,
};
pub use notice::{Notice, TeamEvent, Watcher};
pub use program::{Assumed, Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, Programs, SeenCost, plan};
pub use quote::Quote;
pub use retune::Retune;
pub use runtime::{Config, Runtime};
pub use shipped::WORKFLOWS as SHIPPED_WORKFLOWS;
pub use start::{Lean, Start};
pub use stop::{Stop, StopLevel, Stopper};
pub use surroundings::{
    COMMAND_VARIABLES, UserDirs, VARIABLES as SURROUNDING_VARIABLES, command_env, lies_inside, listed_home,
    own_uid,
};
pub use team::{MemberRow, TeamClient, TeamConfig};
pub use workspace::{WorkspaceError, changed_since};
