//! Acts: drives agent streams, performs what the kernel decided, and is the library that programs embed.
//!
//! ```no_run
//! # async fn example(config: convoke_runtime::Config) -> Result<(), Box<dyn std::error::Error>> {
//! use convoke_runtime::{Runtime, Start, Stop, Take};
//!
//! let runtime = Runtime::new(config);
//! let agent = runtime.start(Start::new("claude-opus-4-8", "/some/dir"), "Review this directory").await?;
//! let ended = runtime.drive(&agent, Take::New, Stop::never(), None).await?;
//! println!("{:?}", ended.outcome);
//! # Ok(()) }
//! ```
//!
//! A program that embeds this crate calls [`helper_entry`] first in its `main`, so that it can serve as the helper
//! under which commands live and in which workflow programs are interpreted, and passes its own executable as [`HelperPath`].

mod accounts;
mod agreed;
mod asker;
mod bash;
mod bells;
mod children;
mod clock;
mod confine;
mod control;
mod crash;
mod driver;
mod effects;
mod error;
mod fan_out;
mod fence;
mod files;
mod fork;
mod governor;
mod hands;
mod ids;
mod inputs;
mod interpreter;
mod keep;
mod library;
mod means;
mod notice;
mod outage;
mod program;
mod pulse;
mod purse;
mod quote;
mod recovery;
mod retune;
mod room;
mod runtime;
mod session;
mod spool;
mod stop;
mod take;
mod team;
mod teller;
mod unsay;
mod workspace;

pub use asker::{AskedCall, Asker, Checkpoint, Question};
pub use clock::Clock;
pub use confine::{Confine, access, network};
pub use control::{Control, Controller, STOPPED_BY};
pub use convoke_sandbox::HelperPath;
pub use convoke_script::{Meta, Phase, Place, Problem, Told};
pub use crash::{Crash, Moment};
pub use error::Error;
pub use fork::ForkRefused;
pub use governor::{Governor, GovernorStats, Hold, Why};
pub use ids::Ids;
pub use inputs::summary_of_waiting;
pub use interpreter::{InterpreterError, check as check_program, helper_entry};
pub use library::{
    AgentKind, Checked, Checker, Entry, Found, KindEntry, Library, LibraryError, Origin, Reading, Shelf, Source,
    read_source, source_digest,
};
pub use notice::{Notice, Piece, TeamEvent, Watcher};
pub use program::{Assumed, Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, Programs, plan, read_finding};
pub use quote::Quote;
pub use retune::Retune;
pub use runtime::{Config, Runtime, Start};
pub use stop::{Stop, StopLevel, Stopper};
pub use take::{Ended, Take};
pub use team::{Desk, MemberRow, TeamConfig};
pub use workspace::{WorkspaceError, changed_since};
