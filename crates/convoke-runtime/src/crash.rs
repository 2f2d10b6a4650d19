//! Where a test wants the process to die. Part of the interface, so that programs that embed Convoke can test
//! their own recovery.

use std::fmt;
use std::sync::Arc;

use convoke_kernel::Event;

/// Around which commit a test wants the process to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The effects are done and their outcome is not committed.
    BeforeCommit,
    /// It is committed and nothing that follows from it has been started.
    AfterCommit,
}

/// Decides for each commit whether the process dies there. Commits of runs have no agent's events.
#[derive(Clone)]
pub struct Crash(Arc<Dies>);

type Dies = dyn Fn(Moment, &[Event]) -> bool + Send + Sync;

impl Crash {
    /// Dies where this says so.
    pub fn when(dies: impl Fn(Moment, &[Event]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(dies))
    }

    pub(crate) fn dies(&self, moment: Moment, events: &[Event]) -> bool {
        (self.0)(moment, events)
    }
}

impl fmt::Debug for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crash")
    }
}
