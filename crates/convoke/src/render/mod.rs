//! Everything a run shows: live talk on stderr, the answer or the data on stdout. Every form reads the same events;
//! none of them decides anything.

mod crier;
mod flows;
mod jsonl;
mod live;
mod look;
mod names;
mod narrator;
mod progress;
mod question;
mod report;
mod screen;
mod tree;

pub(crate) use convoke_terminal::{
    clean, count, dollars, escaped, first_line, flat, hanging, kind_word, revealed, seconds, text_columns, tokens,
};
pub(crate) use jsonl::event_line;
pub(crate) use live::Still;
#[cfg(test)]
pub(crate) use look::Talk;
pub(crate) use look::{Look, terminal_size};
pub(crate) use names::{file_name, quoted_name};
pub(crate) use progress::Progress;
pub(crate) use question::{call_rows, is_whole};
pub(crate) use report::{Asked, End, Report, raised};
pub(crate) use screen::{Message, Screen, seen, store_line};
