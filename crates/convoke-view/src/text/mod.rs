//! Text that every way of looking needs: foreign text made harmless, figures as people read them, the words
//! in a message. Nothing in here knows a width or a colour.

mod clean;
mod figures;
mod message;

pub use clean::{clean, escaped, first_line, flat, revealed, shown};
pub use figures::{age, count, dollars, kind_word, seconds, tokens};
pub use message::{blocks_text, message_text};
