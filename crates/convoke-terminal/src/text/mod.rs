//! Text on its way to a terminal: made harmless, measured, coloured, broken into rows.

mod clean;
mod figures;
mod flow;
mod highlight;
mod markdown;
mod marked;
mod measure;
mod message;
mod theme;

pub(crate) use clean::shown;
pub use clean::{clean, escaped, first_line, flat, revealed};
pub use figures::{count, dollars, kind_word, seconds, tokens};
pub(crate) use flow::hung;
pub(crate) use markdown::markdown;
pub use marked::marked;
pub(crate) use measure::cut;
pub use measure::{broken, hanging, last_rows, text_columns, wrapped};
pub use message::{blocks_text, message_text};
pub use theme::{Theme, Tone};
