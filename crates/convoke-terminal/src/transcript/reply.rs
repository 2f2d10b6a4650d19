//! The reply under way: live text that is no event, shown until an event takes its place. Only its end is
//! drawn, however long it is.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use ratatui::text::{Line, Span};

use super::event_text::brief;
use crate::text::{Theme, Tone, cut, markdown};
use convoke_kernel::Piece;

/// Lines of source that are always drawn, if there are so many: what stands at the end of a reply depends on
/// little more.
const LEAST_LINES: usize = 40;
/// Lines of source that are drawn at most.
const MOST_LINES: usize = 200;
/// Within code a place to begin is found every so many lines.
const STEP: usize = 100;
/// Bytes of source that are drawn at most.
const MOST_BYTES: usize = 32 * 1024;

/// A reply under way.
#[derive(Debug, Default)]
pub(super) struct Reply {
    text: String,
    state: State,
    /// What was drawn last, and from what.
    drawn: Mutex<Option<Drawn>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing has come yet.
    #[default]
    Silent,
    Thinking,
    Writing,
    /// It writes a call of this tool.
    Calling(String),
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Source {
    length: usize,
    width: usize,
    colour: bool,
}

#[derive(Debug)]
struct Drawn {
    from: Source,
    most: usize,
    rows: Vec<Line<'static>>,
}

impl Reply {
    pub(super) fn take(&mut self, piece: &Piece) {
        self.state = match piece {
            Piece::Began => State::Writing,
            Piece::Text(text) => {
                self.text.push_str(text);
                State::Writing
            }
            Piece::Thinking(_) => State::Thinking,
            Piece::Tool { name } => State::Calling(brief(name, 40)),
        };
    }

    /// Withdraws it; says whether there was anything to be seen of it.
    pub(super) fn forget(&mut self) -> bool {
        let was_seen = !self.text.trim().is_empty();
        *self = Self::default();
        was_seen
    }

    /// What it is at, in a few words.
    pub(super) fn doing(&self) -> String {
        match &self.state {
            State::Silent => "asks the model".to_owned(),
            State::Thinking => "thinking".to_owned(),
            State::Writing => "answering".to_owned(),
            State::Calling(name) => format!("writes a call of {name}"),
        }
    }

    /// The last so many rows of it.
    pub(super) fn lines(&self, width: usize, most: usize, theme: Theme) -> Vec<Line<'static>> {
        let state = match &self.state {
            State::Thinking | State::Calling(_) => Some(format!("… {}", self.doing())),
            State::Silent | State::Writing => None,
        };
        let mut rows = self.written(width, most.saturating_sub(usize::from(state.is_some())), theme);
        let state = state.map(|state| Line::from(Span::styled(cut(&state, width), theme.style(Tone::Dim))));
        rows.extend(state.filter(|_| most > 0));
        rows
    }

    fn written(&self, width: usize, most: usize, theme: Theme) -> Vec<Line<'static>> {
        if self.text.trim().is_empty() || most == 0 {
            return Vec::new();
        }
        let from = Source { length: self.text.len(), width, colour: theme.colour };
        // A picture is drawn from one place at a time; if a panic has left it half done, it is done again.
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(drawn) = drawn.as_ref().filter(|drawn| drawn.from == from && drawn.most >= most) {
            return last(&drawn.rows, most);
        }
        let rows = last(&markdown(&end_of(&self.text, most), width, theme), most);
        *drawn = Some(Drawn { from, most, rows: rows.clone() });
        rows
    }
}

fn last(rows: &[Line<'static>], most: usize) -> Vec<Line<'static>> {
    rows[rows.len().saturating_sub(most)..].to_vec()
}

/// The end of a text that is long, from where a block begins if there is such a place; code that begins
/// before it gets its fence again.
fn end_of(text: &str, rows: usize) -> Cow<'_, str> {
    let lines = text.lines().count();
    let least = LEAST_LINES.max(rows);
    if lines <= least && text.len() <= MOST_BYTES {
        return Cow::Borrowed(text);
    }
    let most = MOST_LINES.max(least);
    let mut start = 0;
    let mut open = None;
    let mut fence = None::<&str>;
    let mut at = 0;
    let mut was_blank = true;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let left = lines - number;
        // Code is begun anew only now and then: what is known of it from its beginning need not be coloured
        // again.
        let is_place = if fence.is_some() { number % STEP == 0 } else { was_blank };
        if (is_place && left >= least) || left == most {
            (start, open) = (at, fence);
        }
        fence = fence_after(fence, line.trim());
        was_blank = line.trim().is_empty();
        at += line.len();
    }
    let too_long = (text.len() - start).saturating_sub(MOST_BYTES);
    if too_long > 0 {
        start = text.ceil_char_boundary(start + too_long);
        open = None;
    }
    match open {
        Some(fence) => Cow::Owned(format!("{fence}\n{}", &text[start..])),
        None => Cow::Borrowed(&text[start..]),
    }
}

/// The fence that is open behind this line, if one was open before it.
fn fence_after<'a>(open: Option<&'a str>, line: &'a str) -> Option<&'a str> {
    let length = |line: &str, mark: char| line.chars().take_while(|c| *c == mark).count();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
    let Some(mark) = mark.filter(|mark| length(line, *mark) >= 3) else { return open };
    match open {
        None => Some(line),
        Some(fence)
            if length(line, mark) >= length(fence, mark).max(3)
                && line.chars().all(|c| c == mark)
                && fence.starts_with(mark) =>
        {
            None
        }
        Some(_) => open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEME: Theme = Theme { colour: false };

    fn reply(text: &str) -> Reply {
        let mut reply = Reply::default();
        reply.take(&Piece::Text(text.to_owned()));
        reply
    }

    fn rows(reply: &Reply, width: usize, most: usize) -> Vec<String> {
        reply.lines(width, most, THEME).iter().map(Line::to_string).collect()
    }

    #[test]
    fn the_last_rows_are_seen_and_that_it_thinks() {
        let mut reply = reply("one\n\ntwo three");
        assert_eq!(rows(&reply, 40, 2), ["", "two three"]);
        assert_eq!(rows(&reply, 5, 9), ["one", "", "two", "three"]);
        assert_eq!(rows(&reply, 5, 1), ["three"]);
        reply.take(&Piece::Thinking("hm".to_owned()));
        assert_eq!(rows(&reply, 40, 2), ["two three", "… thinking"]);
        assert_eq!(reply.doing(), "thinking");
        reply.take(&Piece::Tool { name: "bash".to_owned() });
        assert_eq!(rows(&reply, 40, 1), ["… writes a call of bash"]);
        assert!(rows(&reply, 40, 0).is_empty());
        assert!(reply.forget());
        assert!(rows(&reply, 40, 5).is_empty());
    }

    #[test]
    fn of_a_long_reply_only_the_end_is_drawn_and_it_looks_the_same() {
        let paragraphs: String = (0..1_000).map(|number| format!("paragraph {number}\n\n")).collect();
        assert!(end_of(&paragraphs, 10).len() < 2_000);
        assert_eq!(rows(&reply(&paragraphs), 40, 3), ["paragraph 998", "", "paragraph 999"]);

        let code = format!("before\n\n```rust\n{}", "let a = 1;\n\n".repeat(1_000));
        assert!(end_of(&code, 10).starts_with("```rust\n"), "{}", &end_of(&code, 10)[..40]);
        assert_eq!(rows(&reply(&code), 40, 3), ["  ", "  let a = 1;", "  "]);

        let ended = format!("{code}```\n\n{}", "after\n".repeat(60));
        assert!(end_of(&ended, 10).starts_with("after\n"));
        assert!(end_of(&"漢".repeat(100_000), 10).len() <= MOST_BYTES);
    }

    #[test]
    fn what_is_drawn_again_without_anything_new_is_what_was_drawn() {
        let mut reply = reply("one two");
        assert_eq!(rows(&reply, 3, 5), rows(&reply, 3, 5));
        assert_eq!(rows(&reply, 3, 1), ["two"]);
        assert_eq!(rows(&reply, 20, 5), ["one two"]);
        reply.take(&Piece::Text(" three".to_owned()));
        assert_eq!(rows(&reply, 20, 5), ["one two three"]);
    }
}
