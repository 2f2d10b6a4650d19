//! What a runtime tells its watchers, as the terminal hears it.

use convoke_runtime::{Notice, TeamEvent};
use convoke_view::SessionEvent;

use crate::render::seen;

/// A notice as the screen takes it; `None` for one that reaches the screen in another way.
pub(super) fn heard(notice: Notice) -> Option<SessionEvent> {
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
        Notice::Held { hold } => SessionEvent::Held(hold.map(seen)),
        Notice::Draining { .. } => SessionEvent::Draining,
        Notice::Controlled { .. } | Notice::Waiting { .. } => return None,
        Notice::StoreAway { .. } | Notice::StoreBack { .. } => return None,
    })
}
