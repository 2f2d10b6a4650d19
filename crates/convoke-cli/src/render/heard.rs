//! What a runtime tells its watchers, as every way of looking hears it. This is the one place where one
//! becomes the other: `convoke-view` does not know the runtime, so that a fleet is made of events that were
//! read from a file as well, and the runtime does not know who looks.

use convoke_runtime::{Notice, TeamEvent, Why};
use convoke_view::{Hold, SessionEvent};

/// A notice as it is shown; `None` for what only the process that drives the session is told.
pub(crate) fn heard(notice: Notice) -> Option<SessionEvent> {
    Some(match notice {
        Notice::Recorded { agent, seq, at, event } => SessionEvent::Agent { agent, seq, at, event },
        Notice::Run { run, seq, at, event } => SessionEvent::Run { run, seq, at, event },
        Notice::Program { run, seq, at, event } => SessionEvent::Program { run, seq, at, event },
        Notice::Team { seq, at, event, .. } => match *event {
            TeamEvent::Roster(event) => SessionEvent::Roster { seq, at, event: Box::new(event) },
            TeamEvent::Board(event) => SessionEvent::Board { seq, at, event: Box::new(event) },
        },
        Notice::Ledger { ledger, .. } => SessionEvent::Ledger(ledger),
        Notice::Live { agent, piece } => SessionEvent::Live { agent, piece },
        Notice::Held { hold } => SessionEvent::Held(hold.map(held)),
        Notice::Draining { .. } => SessionEvent::Draining,
        Notice::Controlled { .. } | Notice::Waiting { .. } => return None,
        Notice::StoreAway { .. } | Notice::StoreBack { .. } => return None,
    })
}

fn held(hold: convoke_runtime::GovernorHold) -> Hold {
    let convoke_runtime::GovernorHold { why, until, waiting } = hold;
    Hold { overloaded: why == Why::Overloaded, until, waiting }
}
