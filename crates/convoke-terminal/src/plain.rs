//! Plain mode: for screen readers and dumb terminals. Lines go out, one after the other; nothing is coloured,
//! moved or drawn again, and no escape sequence is ever written.

use std::io::{self, Write};

use ratatui::text::Line;

use crate::stage::harmless;

/// Writes plain lines.
pub(crate) struct Plain<W: Write> {
    out: W,
    /// The prompt that stands at the end, in a line that is not finished.
    prompt: Option<String>,
    /// Since when nothing was said while work goes on.
    quiet_since: Option<u64>,
}

impl<W: Write> Plain<W> {
    /// Writes here.
    pub(crate) fn new(out: W) -> Self {
        Self { out, prompt: None, quiet_since: None }
    }

    /// Says rows, in one write. A prompt that stands there is left behind.
    pub(crate) fn block(&mut self, rows: &[Line<'_>]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut text = if self.prompt.take().is_some() { "\n".to_owned() } else { String::new() };
        for row in rows {
            let joined: String = row.spans.iter().map(|span| span.content.as_ref()).collect();
            text.push_str(harmless(joined.trim_end()).trim_end());
            text.push('\n');
        }
        self.quiet_since = None;
        self.write(&text)
    }

    /// Says that something can be typed. A prompt that stands there already is not said again.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        let begin = match &self.prompt {
            Some(standing) if standing == text => return Ok(()),
            Some(_) => "\n",
            None => "",
        };
        self.prompt = Some(text.to_owned());
        self.write(&format!("{begin}{}", harmless(text)))
    }

    /// The person has typed a line, and the terminal has ended the line of the prompt with it.
    pub(crate) fn answered(&mut self) {
        self.prompt = None;
    }

    /// Says what is under way if nothing was said for so long. Times are in milliseconds.
    pub(crate) fn beat(&mut self, now: u64, quiet: u64, text: &str) -> io::Result<()> {
        if now.saturating_sub(*self.quiet_since.get_or_insert(now)) < quiet {
            return Ok(());
        }
        let prompt = self.prompt.clone();
        self.block(&[Line::raw(text)])?;
        self.quiet_since = Some(now);
        // A prompt that stood there is written again below the line.
        prompt.map_or(Ok(()), |prompt| self.prompt(&prompt))
    }

    /// Nothing goes on any more: the next work begins its own silence.
    pub(crate) fn rest(&mut self) {
        self.quiet_since = None;
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Stylize;
    use ratatui::text::Span;

    use super::*;

    fn said(plain: Plain<Vec<u8>>) -> String {
        String::from_utf8(plain.out).unwrap()
    }

    #[test]
    fn rows_are_plain_text_whatever_they_look_like() {
        let mut plain = Plain::new(Vec::new());
        let row = Line::from(vec![Span::raw("red ").red(), Span::raw("and bold  ").bold().reversed()]).dim();
        plain.block(&[row, Line::raw("\x1b[2J\u{202e}evil\r\x07"), Line::raw("")]).unwrap();
        plain.block(&[]).unwrap();
        assert_eq!(said(plain), "red and bold\n␛[2J\u{fffd}evil␍␇\n\n");
    }

    #[test]
    fn a_prompt_stands_alone_in_its_line() {
        let mut plain = Plain::new(Vec::new());
        plain.prompt("> ").unwrap();
        plain.prompt("> ").unwrap();
        plain.answered();
        plain.block(&[Line::raw("an answer")]).unwrap();
        plain.prompt("> ").unwrap();
        plain.block(&[Line::raw("unasked")]).unwrap();
        plain.prompt("\x1b[31m> ").unwrap();
        plain.prompt("again> ").unwrap();
        assert_eq!(said(plain), "> an answer\n> \nunasked\n␛[31m> \nagain> ");
    }

    #[test]
    fn long_work_says_a_line_every_fifteen_seconds() {
        let mut plain = Plain::new(Vec::new());
        let beat = |plain: &mut Plain<Vec<u8>>, now, expected| {
            let before = plain.out.len();
            plain.beat(now, 15_000, "still at it").unwrap();
            assert_eq!(plain.out.len() > before, expected, "at {now}");
        };
        beat(&mut plain, 1_000, false);
        beat(&mut plain, 15_999, false);
        beat(&mut plain, 16_000, true);
        beat(&mut plain, 30_999, false);
        beat(&mut plain, 31_000, true);
        beat(&mut plain, 30_000, false);
        plain.block(&[Line::raw("something")]).unwrap();
        beat(&mut plain, 50_000, false);
        beat(&mut plain, 64_999, false);
        plain.prompt("> ").unwrap();
        beat(&mut plain, 65_000, true);
        plain.rest();
        beat(&mut plain, 500_000, false);
        assert_eq!(said(plain), "still at it\nstill at it\nsomething\n> \nstill at it\n> ");
    }
}
