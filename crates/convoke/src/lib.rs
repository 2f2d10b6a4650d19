//! Convoke for programs: give a directory and a task, get an answer with findings, spend and changed files.
//!
//! ```no_run
//! #[tokio::main]
//! async fn work() -> Result<(), convoke::Error> {
//!     let session = convoke::Session::builder("/some/dir").build().await?;
//!     let answer = session.run("Review this directory").await?;
//!     println!("{}", answer.text);
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), convoke::Error> {
//!     convoke::helper_entry();
//!     work()
//! }
//! ```
//!
//! Everything but the directory has a default: the model is asked with `ANTHROPIC_API_KEY`, the journal is
//! the one of the program `convoke`, commands run in the strongest sandbox that this machine offers, and a
//! session spends at most ten dollars. [`SessionBuilder`] changes each of these. [`SessionBuilder::offline`]
//! asks a built-in model that needs no key and costs nothing.
//!
//! # Call `helper_entry` first in `main`
//!
//! The commands of an agent do not run below your process, but below a small helper that confines them and
//! cleans up after them. The helper is your own executable, started again. [`helper_entry`] is where the
//! second start branches off: it returns at once in your program, and never returns in the helper. It has to
//! come before anything else, because a helper may have no threads. [`SessionBuilder::build`] fails with
//! [`Error::NoHelperEntry`] if it was not called.
//!
//! # What is written down
//!
//! Every step is in the journal before it is done. A session whose process was killed goes on in another one:
//! [`Session::resume`]. Equal results of agents are taken from the journal instead of being paid for twice.

mod answer;
mod builder;
mod environment;
mod error;
mod event;
mod findings;
mod fold;
mod helper;
mod open;
mod question;
mod rule;
mod session;
mod team;
mod tool;
mod workflow;

pub use answer::{Answer, Change, ChangedFile, Spend, Status};
pub use builder::{Network, Sandbox, SessionBuilder};
pub use error::Error;
pub use event::{Event, Events};
pub use findings::{Citation, Finding, Severity, Verdict};
pub use helper::helper_entry;
pub use question::{Question, Reply};
pub use rule::Rule;
/// JSON, as the input of a [`Tool`] and the arguments of a [`Workflow`] are given: the one of the crate
/// `serde_json`, so that a program needs no dependency of its own for it.
pub use serde_json::{Value, json};
pub use session::Session;
pub use team::{Member, MemberStatus, Task, TaskStatus, Team};
pub use tool::{AfterCrash, Role, Tool, ToolContext};
pub use workflow::Workflow;
