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
//! under which commands live, and passes its own executable as [`HelperPath`].

mod bash;
mod clock;
mod driver;
mod error;
mod ids;
mod notice;
mod runtime;
mod spool;
mod stop;
mod workspace;

pub use clock::Clock;
pub use convoke_sandbox::{HelperPath, helper_entry};
pub use driver::{Crash, Ended, Moment, Take};
pub use error::Error;
pub use ids::Ids;
pub use notice::{Notice, Piece, Watcher};
pub use runtime::{Config, Runtime, Start, summary_of_waiting};
pub use stop::{Stop, StopLevel, Stopper};
pub use workspace::changed_since;
