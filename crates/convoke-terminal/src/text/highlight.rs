//! Code in colours. It knows what the syntaxes that come with it know; everything else is code without
//! colours. It never changes a character, and gives up on what would take long.

use std::sync::{LazyLock, Mutex, PoisonError};

use ratatui::text::{Line, Span};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::theme::{Theme, Tone};

/// Code of more bytes than this is not coloured.
const MOST_BYTES: usize = 64 * 1024;
/// Nor are lines of more than this: the patterns of some syntaxes take for ever on them.
const MOST_LINE: usize = 2_000;

/// How many pieces of code are remembered.
const MOST_KNOWN: usize = 8;

/// Code as one line each, coloured by its language if that is known. It must be clean already.
pub(super) fn highlight(code: &str, language: &str, theme: Theme) -> Vec<Line<'static>> {
    let syntax = Some(language).filter(|_| code.len() <= MOST_BYTES).and_then(find);
    let Some(syntax) = syntax else { return code.lines().map(|line| plain(line, theme)).collect() };
    let mut known = Known::of(code, language, theme, syntax);
    let from = known.source.len();
    let mut unfinished = None;
    for line in code[from..].split_inclusive('\n') {
        match line.ends_with('\n') {
            true => known.take(line),
            // It may yet turn out to be something else, so it is parsed aside.
            false => {
                let state = known.state.clone();
                let scopes = known.scopes.clone();
                let failed = known.failed;
                unfinished = Some(known.line(line));
                known.state = state;
                known.scopes = scopes;
                known.failed = failed;
            }
        }
    }
    let lines = known.lines.iter().cloned().chain(unfinished).collect();
    known.remember();
    lines
}

fn plain(line: &str, theme: Theme) -> Line<'static> {
    Line::from(vec![Span::styled(line.to_owned(), theme.style(Tone::Code))])
}

/// Whole lines of code that have been coloured, and where their syntax stands behind them: code that is still
/// being written is drawn again with every word, and only what is new of it is worth the time.
struct Known {
    language: String,
    theme: Theme,
    source: String,
    lines: Vec<Line<'static>>,
    state: ParseState,
    scopes: ScopeStack,
    /// A syntax that fails once has lost its place, and would colour the rest wrongly.
    failed: bool,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

impl Known {
    /// What is known of this code already: the longest beginning of it.
    fn of(code: &str, language: &str, theme: Theme, syntax: &SyntaxReference) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &Known| {
            known.language == language && known.theme == theme && code.starts_with(&known.source)
        };
        let fitting = known.iter().enumerate().filter(|(_, known)| fits(known));
        let longest = fitting.max_by_key(|(_, known)| known.source.len()).map(|(place, _)| place);
        let taken = longest.map(|place| known.remove(place));
        taken.unwrap_or_else(|| Self {
            language: language.to_owned(),
            theme,
            source: String::new(),
            lines: Vec::new(),
            state: ParseState::new(syntax),
            scopes: ScopeStack::new(),
            failed: false,
        })
    }

    fn remember(self) {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(self);
        if known.len() > MOST_KNOWN {
            known.remove(0);
        }
    }

    fn take(&mut self, line: &str) {
        let coloured = self.line(line);
        self.source.push_str(line);
        self.lines.push(coloured);
    }

    fn line(&mut self, line: &str) -> Line<'static> {
        let is_long = line.len() > MOST_LINE;
        let parsed = match self.failed || is_long {
            true => None,
            false => coloured(line, &mut self.state, &mut self.scopes, self.theme),
        };
        self.failed |= parsed.is_none() && !is_long;
        parsed.unwrap_or_else(|| plain(line.trim_end_matches('\n'), self.theme))
    }
}

/// One line with its line break; `None` if its syntax fails on it.
fn coloured(
    line: &str,
    state: &mut ParseState,
    scopes: &mut ScopeStack,
    theme: Theme,
) -> Option<Line<'static>> {
    let changes = state.parse_line(line, &SYNTAXES).ok()?;
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut put = |text: &str, scopes: &ScopeStack| {
        let text = text.trim_end_matches('\n');
        let style = theme.style(tone(scopes));
        match spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => spans.push(Span::styled(text.to_owned(), style)),
        }
    };
    let mut from = 0;
    for (to, change) in changes {
        put(line.get(from..to)?, scopes);
        scopes.apply(&change).ok()?;
        from = to;
    }
    put(line.get(from..)?, scopes);
    Some(Line::from(spans))
}

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// What parts of code mean, by the names that syntaxes give them; the first that fits counts. `None` ends the
/// search: the scopes around such a part do not colour it.
static TONES: LazyLock<Vec<(Scope, Option<Tone>)>> = LazyLock::new(|| {
    let tones = [
        ("comment", Some(Tone::Comment)),
        ("meta.interpolation", None),
        ("source", None),
        ("string", Some(Tone::Literal)),
        ("constant", Some(Tone::Literal)),
        ("keyword.operator", None),
        ("keyword", Some(Tone::Keyword)),
        ("storage", Some(Tone::Keyword)),
        ("entity.name", Some(Tone::Name)),
        ("entity.other.attribute-name", Some(Tone::Name)),
        ("support", Some(Tone::Name)),
        ("variable.function", Some(Tone::Name)),
        ("markup.inserted", Some(Tone::Added)),
        ("markup.deleted", Some(Tone::Removed)),
        ("markup.changed", Some(Tone::Keyword)),
        ("meta.diff", Some(Tone::Comment)),
        ("markup.heading", Some(Tone::Keyword)),
    ];
    tones.into_iter().filter_map(|(name, tone)| Some((Scope::new(name).ok()?, tone))).collect()
});

fn tone(scopes: &ScopeStack) -> Tone {
    let meant =
        |scope: &Scope| TONES.iter().find(|(name, _)| name.is_prefix_of(*scope)).map(|(_, tone)| *tone);
    scopes.as_slice().iter().rev().find_map(meant).flatten().unwrap_or(Tone::Code)
}

/// The syntax that is meant by what stands behind a fence: `rust`, `rs,ignore`, `{.python}`, `src/main.rs`.
fn find(info: &str) -> Option<&'static SyntaxReference> {
    let word = info.split(|c: char| c.is_whitespace() || c == ',').find(|word| !word.is_empty())?;
    let word = word.trim_matches(['{', '}', '.']).to_ascii_lowercase();
    let named = |word: &str| SYNTAXES.find_syntax_by_token(known_as(word));
    let found = named(&word).or_else(|| word.rsplit_once('.').and_then(|(_, ending)| named(ending)));
    found.filter(|syntax| syntax.name != "Plain Text")
}

/// A language that has no syntax of its own here, or is known by another name, as one that is near enough.
fn known_as(word: &str) -> &str {
    match word {
        "ts" | "tsx" | "jsx" | "mjs" | "cjs" | "node" | "typescript" => "js",
        "shell" | "console" | "zsh" | "shell-session" => "sh",
        "python3" => "py",
        "golang" => "go",
        "csharp" => "cs",
        "jsonc" | "json5" | "jsonl" => "json",
        "toml" | "ini" | "conf" => "properties",
        "vue" | "svelte" => "html",
        "patch" => "diff",
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEME: Theme = Theme { colour: true };

    /// Checks that this piece of code has this tone.
    fn check(language: &str, code: &str, piece: &str, tone: Tone) {
        let lines = highlight(code, language, THEME);
        assert_eq!(
            lines.iter().map(Line::to_string).collect::<Vec<_>>(),
            code.lines().collect::<Vec<_>>(),
            "{language}"
        );
        let span = lines.iter().flat_map(|line| &line.spans).find(|span| span.content.contains(piece));
        let style = span.map(|span| span.style);
        assert_eq!(style, Some(THEME.style(tone)), "{piece:?} in {language}: {lines:?}");
    }

    #[test]
    fn the_languages_people_use_are_coloured() {
        for name in ["rs", "rust", "rust,ignore", "src/main.rs", "{.rust}"] {
            check(name, "fn main() {\n    // why\n    \"text\"\n}", "fn", Tone::Keyword);
        }
        check("rust", "fn main() {}", "main", Tone::Name);
        check("rust", "let a = \"text\"; // why", "text", Tone::Literal);
        check("rust", "let a = \"text\"; // why", "why", Tone::Comment);
        for name in ["js", "ts", "javascript", "typescript"] {
            check(name, "return 'a';", "return", Tone::Keyword);
        }
        check("py", "def f():\n    return None", "return", Tone::Keyword);
        check("python", "# why", "why", Tone::Comment);
        for name in ["sh", "bash", "shell"] {
            check(name, "if true; then\n  echo \"a\"\nfi", "if", Tone::Keyword);
        }
        check("json", "{\"a\": true}", "true", Tone::Literal);
        check("toml", "# why\na = 1", "why", Tone::Comment);
        check("diff", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new", "+new", Tone::Added);
        check("diff", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new", "-old", Tone::Removed);
    }

    #[test]
    fn what_is_unknown_or_too_long_is_code_without_colours() {
        for name in ["", "nosuchlanguage", " , ", "text"] {
            check(name, "fn main() {}", "fn main() {}", Tone::Code);
        }
        let long = "let a = 1;\n".repeat(MOST_BYTES / 10);
        check("rust", &long, "let a = 1;", Tone::Code);
        let line = format!("let a = \"{}\";\nlet b = 1;", "x".repeat(MOST_LINE));
        check("rust", &line, "let a", Tone::Code);
        assert!(highlight("", "rust", THEME).is_empty());
    }

    #[test]
    fn code_that_is_being_written_looks_at_every_word_as_if_it_had_come_at_once() {
        let code = "/* one\ntwo */\nfn main() {\n    let a = \"x\n    y\"; // why\n}\n";
        let whole = highlight(code, "rust", THEME);
        let ends = code.char_indices().map(|(at, _)| at).chain([code.len()]);
        let written: Vec<_> = ends.map(|end| highlight(&code[..end], "rust", THEME)).collect();
        assert_eq!(written.last(), Some(&whole));
        assert_eq!(whole[1].spans[0].style, THEME.style(Tone::Comment));
        // Another theme and another language know nothing of it.
        assert!(
            highlight(code, "rust", Theme { colour: false })
                .iter()
                .flat_map(|l| &l.spans)
                .all(|s| s.style.fg.is_none())
        );
        assert_ne!(highlight(code, "py", THEME), whole);
    }
}
