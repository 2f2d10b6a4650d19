//! What is printed for good, as rows. Whatever is in a block, nothing of it is obeyed by a terminal.

use ratatui::text::{Line, Span};

use crate::text::{Theme, Tone, hung, markdown, shown, text_columns};

/// Something that is printed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    /// What the person said.
    Said(String),
    /// What the lead wrote, in markdown.
    Wrote(String),
    /// What the lead did: a call in one line, and what it came to.
    Did { what: String, came_to: String, is_bad: bool },
    /// Letters came.
    Mail(String),
    /// Something happened that is worth a line: the mode was switched, a workflow began or ended, a teammate
    /// joined, a new history began.
    Note(String),
    /// Something went wrong: what, and what to do next.
    Failed(String),
    /// What a command printed.
    Printed { title: String, text: String },
    /// The exchange ended: what it took, in a line.
    Ended(String),
}

impl Block {
    /// As rows of at most this width; a blank row separates blocks where that helps the eye.
    pub(crate) fn lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let marked = |mark: &'static str, of: Tone, text: &str, tone: Tone| {
            let text = [Span::styled(shown(text).trim_end().to_owned(), theme.style(tone))];
            hung(&text, width, &Span::styled(mark, theme.style(of)), &Span::raw("  "))
        };
        match self {
            Block::Said(text) => apart(true, marked("› ", Tone::Person, text, Tone::Person), false),
            Block::Wrote(text) => apart(true, markdown(text, width, theme), true),
            Block::Did { what, came_to, is_bad } => {
                let tone = if *is_bad { Tone::Bad } else { Tone::Dim };
                let what = shown(what);
                let came_to = shown(came_to);
                let fits = text_columns(&what) + 2 + text_columns(&came_to) <= width;
                let mut spans = vec![Span::styled(what, theme.style(Tone::Strong))];
                if !came_to.is_empty() {
                    spans.push(Span::raw(if fits { "  " } else { "\n" }));
                    spans.push(Span::styled(came_to, theme.style(tone)));
                }
                hung(&spans, width, &Span::raw(""), &Span::raw("  "))
            }
            Block::Mail(text) => marked("@ ", Tone::Key, text, Tone::Plain),
            Block::Note(text) => marked("· ", Tone::Dim, text, Tone::Dim),
            Block::Failed(text) => {
                let safe = shown(text);
                let (what, next) = safe.split_once('\n').unwrap_or((&safe, ""));
                let mut rows = marked("✗ ", Tone::Bad, what, Tone::Bad);
                if !next.trim().is_empty() {
                    rows.extend(marked("  ", Tone::Plain, next, Tone::Plain));
                }
                rows
            }
            Block::Printed { title, text } => {
                let titled = !title.is_empty();
                let mut rows = if titled { marked("", Tone::Plain, title, Tone::Strong) } else { Vec::new() };
                rows.extend(printed(text, width));
                apart(true, rows, false)
            }
            Block::Ended(text) => marked("· ", Tone::Good, text, Tone::Dim),
        }
    }
}

/// Rows with blank ones around them.
fn apart(before: bool, mut rows: Vec<Line<'static>>, after: bool) -> Vec<Line<'static>> {
    if before {
        rows.insert(0, Line::default());
    }
    if after {
        rows.push(Line::default());
    }
    rows
}

/// Lines as a command printed them; what does not fit goes on below its own beginning.
fn printed(text: &str, width: usize) -> Vec<Line<'static>> {
    let safe = shown(text);
    let rows = safe.trim_end().lines().flat_map(|line| {
        let said = line.trim_start_matches(' ');
        let indent = " ".repeat(line.len() - said.len());
        let rest = Span::raw(format!("{indent}  "));
        // The mark is as wide as the indent of what goes on, so that both measure the same.
        match rest.content.len() * 2 > width || text_columns(line) <= width {
            true => hung(&[Span::raw(line.to_owned())], width, &Span::raw(""), &Span::raw("")),
            false => {
                let mut rows = hung(&[Span::raw(said.to_owned())], width, &rest, &rest);
                if let Some(span) = rows.first_mut().and_then(|row| row.spans.first_mut()) {
                    *span = Span::raw(indent);
                }
                rows
            }
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEME: Theme = Theme { colour: false };

    /// Checks how a block looks at both widths.
    fn check_rows(block: &Block, narrow: &[&str], wide: &[&str]) {
        for (width, expected) in [(40, narrow), (80, wide)] {
            let rows: Vec<String> = block.lines(width, THEME).iter().map(Line::to_string).collect();
            assert_eq!(rows, expected, "at {width}");
        }
    }

    #[test]
    fn blocks_fit_forty_and_eighty_columns() {
        let long = "one two three four five six seven eight nine ten";
        let said = Block::Said(format!("{long}\nand more"));
        check_rows(
            &said,
            &["", "› one two three four five six seven", "  eight nine ten", "  and more"],
            &["", "› one two three four five six seven eight nine ten", "  and more"],
        );
        let wrote = Block::Wrote(format!("- {long}\n- `b`"));
        check_rows(
            &wrote,
            &["", "- one two three four five six seven", "  eight nine ten", "- `b`", ""],
            &["", "- one two three four five six seven eight nine ten", "- `b`", ""],
        );
        let call = Block::Did {
            what: "$ cargo test --workspace --all-targets".into(),
            came_to: "exit 0 · 1.2 s".into(),
            is_bad: false,
        };
        check_rows(
            &call,
            &["$ cargo test --workspace --all-targets", "  exit 0 · 1.2 s"],
            &["$ cargo test --workspace --all-targets  exit 0 · 1.2 s"],
        );
        check_rows(
            &Block::Mail("a writes: x\nb writes: y".into()),
            &["@ a writes: x", "  b writes: y"],
            &["@ a writes: x", "  b writes: y"],
        );
        check_rows(&Block::Note("\u{1b}[2J".into()), &["· ␛[2J"], &["· ␛[2J"]);
        let failed = Block::Failed(
            "the budget does not suffice: $0.01 of $1.00 left\n/budget usd N gives more, then Enter alone \
                goes on"
                .into(),
        );
        check_rows(
            &failed,
            &[
                "✗ the budget does not suffice: $0.01 of",
                "  $1.00 left",
                "  /budget usd N gives more, then Enter",
                "  alone goes on",
            ],
            &[
                "✗ the budget does not suffice: $0.01 of $1.00 left",
                "  /budget usd N gives more, then Enter alone goes on",
            ],
        );
        let printed = Block::Printed { title: "/runs".into(), text: format!("a   b\n  {long}\n\n") };
        check_rows(
            &printed,
            &["", "/runs", "a   b", "  one two three four five six seven", "    eight nine ten"],
            &["", "/runs", "a   b", "  one two three four five six seven eight nine ten"],
        );
        check_rows(&Block::Ended("done · 3 turns".into()), &["· done · 3 turns"], &["· done · 3 turns"]);
    }

    #[test]
    fn no_block_is_wider_than_it_may_be_or_lets_anything_through() {
        let nasty = "漢字 \u{1b}[2J\u{202e} 👨\u{200d}👩\u{200d}👧 averyveryverylongword\r\n\t&#27;x";
        let text = || nasty.to_owned();
        let blocks = [
            Block::Said(text()),
            Block::Wrote(text()),
            Block::Did { what: text(), came_to: text(), is_bad: true },
            Block::Mail(text()),
            Block::Note(text()),
            Block::Failed(text()),
            Block::Printed { title: text(), text: text() },
            Block::Ended(text()),
        ];
        for (block, width) in blocks.iter().flat_map(|block| (1..60).map(move |width| (block, width))) {
            for row in block.lines(width, Theme { colour: true }) {
                let row = row.to_string();
                assert!(text_columns(&row) <= width, "{row:?} at {width}");
                assert!(!row.contains(|c: char| c.is_control() || c == '\u{202e}'), "{row:?}");
            }
        }
    }
}
