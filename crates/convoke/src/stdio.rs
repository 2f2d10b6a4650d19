//! The two ends a command writes to: stdout for what was asked for, stderr for everything else. A reader that has gone
//! away is no failure.

use std::io::{ErrorKind, IsTerminal, Write};

use crate::failure::Failure;
use crate::render::{escaped, terminal_size};

/// Whether anybody still reads stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Somebody does.
    There,
    /// The other end was closed, as `| head` does.
    Gone,
}

/// Puts data on stdout, as it is.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    put_more(text).map(|_| ())
}

/// Puts data on stdout, and says whether it is worth going on.
pub(crate) fn put_more(text: &str) -> Result<Reader, Failure> {
    put_bytes(text.as_bytes())
}

/// Puts bytes on stdout that may be no text, and says whether it is worth going on.
pub(crate) fn put_bytes(bytes: &[u8]) -> Result<Reader, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::failed(format!("stdout cannot be written to: {error}"))),
    }
}

/// Puts JSON on stdout, and says whether it is worth going on. A terminal gets the same values in a form it does not
/// obey; everything else gets the text as it is.
pub(crate) fn put_json(json: &str) -> Result<Reader, Failure> {
    if std::io::stdout().is_terminal() { put_more(&escaped(json)) } else { put_more(json) }
}

/// Puts talk on stderr, as it is.
pub(crate) fn tell(text: &str) {
    // Nobody can be told that stderr is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// How many columns a table may have: those of the terminal, or those the caller states in COLUMNS, or any number.
pub(crate) fn width() -> Option<usize> {
    if std::io::stdout().is_terminal() {
        return Some(terminal_size().0);
    }
    let stated = std::env::var_os("COLUMNS")?;
    stated.to_str()?.parse().ok().filter(|columns| *columns >= 20)
}
