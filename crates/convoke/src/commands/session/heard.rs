//! What a runtime tells its watchers, as the terminal hears it.

use convoke_runtime::{Notice, Piece, TeamEvent};
use convoke_terminal::{self as terminal, Heard};

use crate::render::seen;

/// The same, for a screen; `None` for what is said otherwise.
pub(super) fn heard(notice: Notice) -> Option<Heard> {
    Some(match notice {
        Notice::Recorded { agent, seq, at, event } => Heard::Agent { agent, seq, at, event },
        Notice::Run { run, seq, at, event } => Heard::Run { run, seq, at, event },
        Notice::Program { run, seq, at, event } => Heard::Program { run, seq, at, event },
        Notice::Team { seq, at, event, .. } => match *event {
            TeamEvent::Roster(event) => Heard::Roster { seq, at, event: Box::new(event) },
            TeamEvent::Board(event) => Heard::Board { seq, at, event: Box::new(event) },
        },
        Notice::Ledger { ledger, .. } => Heard::Ledger(ledger),
        Notice::Live { agent, piece } => Heard::Live { agent, piece: live(piece) },
        Notice::Held { hold } => Heard::Held(hold.map(seen)),
        Notice::Draining { .. } => Heard::Draining,
        Notice::Controlled { .. } | Notice::Waiting { .. } => return None,
        Notice::StoreAway { .. } | Notice::StoreBack { .. } => return None,
    })
}

fn live(piece: Piece) -> terminal::Piece {
    match piece {
        Piece::Began => terminal::Piece::Began,
        Piece::Text(text) => terminal::Piece::Text(text),
        Piece::Thinking(text) => terminal::Piece::Thinking(text),
        Piece::Tool { name } => terminal::Piece::Tool { name },
    }
}
