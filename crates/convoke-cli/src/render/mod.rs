//! Everything a session shows: live talk on stderr, the answer or the data on stdout. Every form reads the
//! same events; none of them decides anything.

mod flows;
mod heard;
mod live;
mod look;
mod names;
mod program_log;
mod progress;
mod question;
mod report;
mod screen;
mod team_log;
mod tree;

pub(crate) use convoke_terminal::{hanging, text_columns};
pub(crate) use convoke_view::{
    Progress, clean, count, dollars, escaped, first_line, flat, kind_word, revealed, seconds, tokens,
};
pub(crate) use heard::heard;
pub(crate) use live::{TerminalHold, TerminalLock};
#[cfg(test)]
pub(crate) use look::Talk;
pub(crate) use look::{Look, terminal_size};
pub(crate) use names::{file_name, quoted_name};
pub(crate) use question::{call_rows, is_whole};
pub(crate) use report::{Asked, End, Report, raised};
pub(crate) use screen::{Message, Screen, wait_line};
