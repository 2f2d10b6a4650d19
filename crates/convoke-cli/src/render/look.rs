//! What the outside looks like: which ends are terminals, and what they can do. Looked at once, when a
//! session begins.

use std::io::IsTerminal;

use crate::settings::{OutputFormat, Settings};
use crate::stdio;
use convoke_terminal::{rendered, wrapped};

/// What a line may take where no terminal says how wide it is.
pub(crate) const WIDE: usize = 120;

/// How a session shows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// The form of what goes to stdout.
    pub(crate) output: OutputFormat,
    /// How progress is shown on stderr.
    pub(crate) talk: Talk,
    /// Whether stdout is a terminal.
    pub(crate) answer_on_terminal: bool,
    /// Whether stderr is a terminal.
    pub(crate) talk_on_terminal: bool,
    /// Whether terminals are to be coloured.
    pub(crate) colour: bool,
    /// Whether the whole of what a session came to is told, and not the worst of it.
    pub(crate) verbose: bool,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// Not at all.
    Quiet,
    /// A line now and then.
    Sparse,
    /// A moving picture in the last lines of a terminal.
    Live,
}

impl Look {
    /// How a command with these settings shows itself. In plain mode nothing moves and nothing is coloured.
    pub(crate) fn of(settings: &Settings) -> Self {
        let look = Self { verbose: settings.verbose, ..Self::detect(settings.output, settings.quiet) };
        match (settings.plain, look.talk) {
            (false, _) => look,
            (true, Talk::Live) => Self { talk: Talk::Sparse, colour: false, ..look },
            (true, _) => Self { colour: false, ..look },
        }
    }

    /// Looks at this process's ends. What is caught for a session is read on a terminal, but cannot be
    /// answered there.
    pub(crate) fn detect(output: OutputFormat, quiet: bool) -> Self {
        if stdio::is_captured() {
            let talk = if quiet { Talk::Quiet } else { Talk::Sparse };
            let answer_on_terminal = true;
            let talk_on_terminal = false;
            return Self {
                output,
                talk,
                answer_on_terminal,
                talk_on_terminal,
                colour: false,
                verbose: false,
            };
        }
        let talk_on_terminal = std::io::stderr().is_terminal();
        let answer_on_terminal = std::io::stdout().is_terminal();
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        // Lines of data on the same terminal would tear the moving picture.
        let torn = output == OutputFormat::Jsonl && answer_on_terminal;
        let talk = match (quiet, talk_on_terminal && !dumb && !torn) {
            (true, _) => Talk::Quiet,
            (false, true) => Talk::Live,
            (false, false) => Talk::Sparse,
        };
        let colour = !dumb && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { output, talk, answer_on_terminal, talk_on_terminal, colour, verbose: false }
    }

    /// Whether a person sits in front of it and reads prose.
    pub(crate) fn is_interactive(self) -> bool {
        self.output == OutputFormat::Text && self.talk_on_terminal && std::io::stdin().is_terminal()
    }

    /// What a model wrote in Markdown, as lines for the terminal that stdout is.
    pub(crate) fn rendered(self, text: &str) -> String {
        rendered(text, stdio::width().unwrap_or(WIDE), self.colour)
    }

    /// Text for stderr, dimmed where that is possible.
    pub(crate) fn dim(self, text: &str) -> String {
        self.style("\u{1b}[2m", text)
    }

    /// Text for stderr that is to be seen.
    pub(crate) fn bold(self, text: &str) -> String {
        self.style("\u{1b}[1m", text)
    }

    /// Text for stderr, broken between words where a terminal would break it anywhere.
    pub(crate) fn fit(self, text: &str) -> String {
        match self.width() {
            Some(width) => wrapped(text, width),
            None => text.to_owned(),
        }
    }

    /// The columns of the terminal that talk goes to, or is caught for, if it goes to one.
    pub(crate) fn width(self) -> Option<usize> {
        stdio::captured_width().or_else(|| self.talk_on_terminal.then(|| terminal_size().0))
    }

    /// Whether the answer on stdout is set for a person: elsewhere it is put as it was written.
    pub(crate) fn sets_answer(self) -> bool {
        self.output == OutputFormat::Text && self.answer_on_terminal
    }

    fn style(self, start: &str, text: &str) -> String {
        if self.colour && self.talk_on_terminal { format!("{start}{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Columns and rows of the terminal. One that does not know its size says zero.
pub(crate) fn terminal_size() -> (usize, usize) {
    match crossterm::terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => {
            (usize::from(columns).max(20), usize::from(rows).max(4))
        }
        _ => (80, 24),
    }
}
