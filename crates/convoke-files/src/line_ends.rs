//! Where lines end, and how. Pure.
//!
//! A line ends at `\n`, with a `\r` before it if there is one, so that numbers agree with those of grep and
//! of compilers. Only a text without any `\n` has lines that end at `\r`.

use std::ops::Range;

/// One way to end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Lf,
    CrLf,
    Cr,
}

impl End {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Cr => b"\r",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
            Self::Cr => "CR",
        }
    }
}

/// The ending most lines of a text have; the first one's in a tie, `\n` where there is none.
pub(crate) fn dominant(body: &[u8]) -> End {
    let mut plain = 0_usize;
    let mut with_cr = 0_usize;
    let mut first = None;
    for at in memchr::memchr_iter(b'\n', body) {
        let end = if at > 0 && body[at - 1] == b'\r' { End::CrLf } else { End::Lf };
        first.get_or_insert(end);
        if end == End::CrLf { with_cr += 1 } else { plain += 1 }
    }
    match (first, plain.cmp(&with_cr)) {
        (None, _) => {
            if body.contains(&b'\r') {
                End::Cr
            } else {
                End::Lf
            }
        }
        (Some(first), std::cmp::Ordering::Equal) => first,
        (_, std::cmp::Ordering::Less) => End::CrLf,
        (_, std::cmp::Ordering::Greater) => End::Lf,
    }
}

/// The lines of a text, each with its ending.
pub(crate) fn lines(body: &[u8]) -> Vec<Range<usize>> {
    let mark = if dominant(body) == End::Cr { b'\r' } else { b'\n' };
    let mut lines = Vec::new();
    let mut start = 0;
    for at in memchr::memchr_iter(mark, body) {
        lines.push(start..at + 1);
        start = at + 1;
    }
    if start < body.len() {
        lines.push(start..body.len());
    }
    lines
}

/// The number of the line a byte stands in, counted from 1.
pub(crate) fn line_of(body: &[u8], at: usize) -> u64 {
    let mark = if dominant(body) == End::Cr { b'\r' } else { b'\n' };
    memchr::memchr_iter(mark, &body[..at]).count() as u64 + 1
}

/// Whether a text ends in the middle of a line.
pub(crate) fn unfinished(body: &[u8]) -> bool {
    let mark = if dominant(body) == End::Cr { b'\r' } else { b'\n' };
    body.last().is_some_and(|last| *last != mark)
}

/// The endings within a piece of a text, in order.
pub(crate) fn ends(piece: &[u8], whole_is_cr: bool) -> Vec<End> {
    if whole_is_cr {
        return piece.iter().filter(|byte| **byte == b'\r').map(|_| End::Cr).collect();
    }
    let end = |at: usize| if at > 0 && piece[at - 1] == b'\r' { End::CrLf } else { End::Lf };
    memchr::memchr_iter(b'\n', piece).map(end).collect()
}

/// A text of the model's with every bare `\n` in it made the given ending; a `\r\n` it wrote itself stays.
pub(crate) fn with_end(text: &str, end: End) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut before = 0;
    for byte in text.bytes() {
        if byte == b'\n' && before != b'\r' {
            bytes.extend_from_slice(end.bytes());
        } else {
            bytes.push(byte);
        }
        before = byte;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, end: End, count: usize) {
        assert_eq!((dominant(body.as_bytes()), lines(body.as_bytes()).len()), (end, count), "{body:?}");
    }

    #[test]
    fn the_ending_of_most_lines_is_the_dominant_one_and_lines_are_counted_as_grep_does() {
        check("", End::Lf, 0);
        check("a", End::Lf, 1);
        check("a\nb\n", End::Lf, 2);
        check("a\r\nb\r\nc\n", End::CrLf, 3);
        check("a\r\nb\n", End::CrLf, 2);
        check("a\nb\r\n", End::Lf, 2);
        check("a\rb\rc", End::Cr, 3);
        check("progress 1\rprogress 2\ndone\n", End::Lf, 2);
    }

    #[test]
    fn a_text_takes_the_ending_it_is_given_except_where_it_wrote_one_itself() {
        assert_eq!(with_end("a\nb\r\nc", End::CrLf), b"a\r\nb\r\nc");
        assert_eq!(with_end("a\nb\r\nc", End::Lf), b"a\nb\r\nc");
        assert_eq!(with_end("a\nb", End::Cr), b"a\rb");
    }
}
