//! Draws: a session and everybody who works in it, on a terminal, from the events that the journal records. It decides nothing and
//! does nothing: it is told what has happened ([`Heard`], [`Told`]), draws it, and says what the person wants ([`Ask`]).
//!
//! It uses the kernel for its words and nothing else of Convoke, so that no picture can be drawn from anything but events: neither the
//! runtime nor the journal can be reached from here.

mod app;
mod ask;
mod composer;
mod fleet;
mod heard;
mod plain;
mod question;
#[cfg(test)]
mod sample;
mod screen;
mod stage;
mod status;
mod text;
mod told;
mod transcript;
mod view;
mod waits;

pub use ask::{Answer, Ask, Place};
pub use composer::{COMMANDS, CommandRow, Given, command_help, nearest_command};
pub use fleet::{Fleet, Page};
pub use heard::{Heard, Piece};
pub use screen::{Drawn, Ends, Manner, Opens, Screen, run};
pub use stage::{GUARD_ARGUMENT, guard_entry};
pub use text::{
    Theme, Tone, blocks_text, broken, clean, count, dollars, escaped, first_line, flat, hanging, kind_word, last_rows,
    marked, message_text, revealed, seconds, text_columns, tokens, wrapped,
};
pub use told::{About, Asking, Candidate, Facts, Told};
pub use waits::{Hold, Waits};
