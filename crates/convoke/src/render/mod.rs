//! Everything a run shows: live talk on stderr, the answer or the data on stdout. Every form reads the same events;
//! none of them decides anything.

mod clean;
mod figures;
mod json;
mod jsonl;
mod live;
mod look;
mod progress;
mod report;
mod screen;

pub(crate) use clean::{clean, escaped, first_line, text_columns};
pub(crate) use figures::{count, dollars, seconds, tokens};
pub(crate) use jsonl::event_line;
pub(crate) use look::{Look, terminal_size};
pub(crate) use progress::Progress;
pub(crate) use report::{End, Report, kind_word};
pub(crate) use screen::{Message, Screen};
