//! The helper's entry, and whether the program called it. A program that did not would be started again and
//! again by its own commands, so a session is refused before anything is started.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

static CALLED: AtomicBool = AtomicBool::new(false);

/// To be called first in `main`, before any thread exists and before arguments are read.
///
/// Commands of agents, workflow programs and the look at the sandbox run below a helper process. That helper
/// is your own executable, started again with one argument of ours; this function recognises the argument. In
/// your program it returns at once. In the helper it serves and never returns.
///
/// An executable that cannot call it, such as the host of a plugin, names one that does:
/// [`SessionBuilder::helper`](crate::SessionBuilder::helper).
pub fn helper_entry() {
    CALLED.store(true, Ordering::Relaxed);
    convoke_runtime::helper_entry();
}

/// That this process can be started again as a helper.
pub(crate) fn check() -> Result<(), Error> {
    if CALLED.load(Ordering::Relaxed) { Ok(()) } else { Err(Error::NoHelperEntry) }
}
