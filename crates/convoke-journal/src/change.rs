//! Changes of shared streams: what is asked for, and what came of it. The function in a [`Change`] is the
//! caller's; the stores decide only when it is called. No I/O.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::{Error, StreamId, text};

/// A change of one shared stream, made in the same transaction as the append that carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The shared stream. It is made if it is new.
    pub stream: StreamId,
    /// What is to be done to it.
    pub change: Change,
}

/// A function from a shared stream's state to its next one. `None` is the state of a stream that never had
/// one.
///
/// It is called inside the transaction, while other transactions wait, and again if the store has to
/// begin anew: it must be quick, have no effect, and never use the journal. Functions cannot be
/// compared; a change is equal to its clones alone.
#[derive(Clone)]
pub struct Change(Arc<Function>);

type Function = dyn Fn(Option<&str>) -> Result<Changed, String> + Send + Sync;

/// What a [`Change`] makes of a state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// The new state, usually JSON. It can be rebuilt by folding the stream's events.
    pub state: String,
    /// The events that lead to it, to be added to the shared stream, in order.
    pub events: Vec<String>,
}

/// What an append came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The number of the stream's last event now.
    pub seq: u64,
    /// The state each update of the batch led to, in the order of the batch.
    pub states: Vec<String>,
}

impl Change {
    /// Wraps a function. An `Err` is its reason to decline: then nothing changes,
    /// neither here nor in the rest of the batch.
    pub fn new(function: impl Fn(Option<&str>) -> Result<Changed, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Asks the function what becomes of a state. A panic is caught and counts as a refusal, because it would
    /// end the thread that commits for all callers.
    pub(crate) fn decide(&self, stream: &StreamId, state: Option<&str>) -> Result<Changed, Error> {
        let asked = catch_unwind(AssertUnwindSafe(|| (self.0)(state)));
        let decided =
            asked.unwrap_or_else(|panic| Err(format!("its function panicked: {}", message(panic.as_ref()))));
        let changed = decided.map_err(|reason| Error::Declined { stream: stream.clone(), reason })?;
        text::check_changed(&changed)?;
        Ok(changed)
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing")
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Change")
    }
}

impl PartialEq for Change {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Change {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_equal_to_its_clones_alone() {
        let nothing = || Change::new(|_| Ok(Changed::default()));
        let change = nothing();
        assert_eq!(change, change.clone());
        assert_ne!(change, nothing());
        assert_eq!(format!("{change:?}"), "Change");
    }

    #[test]
    fn a_panic_is_told_as_a_refusal_with_its_words() {
        let stream = StreamId::new("shared").unwrap();
        let check = |change: Change, says: &str| match change.decide(&stream, None) {
            Err(Error::Declined { reason, .. }) => assert!(reason.contains(says), "{reason}"),
            other => panic!("{other:?}"),
        };
        check(Change::new(|_| panic!("plain words")), "plain words");
        check(Change::new(|state| panic!("no state: {state:?}")), "no state: None");
        check(Change::new(|_| std::panic::panic_any(7)), "it said nothing");
        check(Change::new(|_| Err("too much".to_owned())), "too much");
    }
}
