//! Says everything that is wrong with a source, and makes a sound one ready to be run. It compiles with the
//! engine, whose parser minds its stack, before the tree is built by one that does not; it runs nothing of
//! the program.

use oxc_allocator::Allocator;
use oxc_ast::ast::Statement;
use oxc_diagnostics::{OxcDiagnostic, Severity};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::{GetSpan, SourceType};

use crate::compile::{self, Refusal};
use crate::instrument::{self, Instrumented};
use crate::meta::{self, Remark};
use crate::places::Places;
use crate::protocol::{Limits, Meta, Problem};

/// The stack the tree is built and walked on. The engine's parser lets through what takes it less than
/// [`CHECK_STACK`], and the dearest nesting takes the other parser ten times as much, unoptimised.
const TREE_STACK: usize = 64 << 20;

/// The stack the engine's parser may use.
const CHECK_STACK: usize = 1 << 20;

/// How many marks that can nest may stand behind an error of the engine's parser, which has
/// not looked there. The other parser goes back and tries again at some of them, so that it
/// becomes slow long before it becomes deep.
const UNSEEN_MARKS: usize = 4_000;

/// What a message adds where a type seems to stand.
const TYPED: &str =
    "; this looks like a type, and workflow programs are plain JavaScript: take the types out";

/// The most problems that one answer lists.
const TOLD: usize = 100;

/// A source that can be run.
pub(crate) struct Sound {
    pub(crate) meta: Meta,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) slips: Vec<Problem>,
    pub(crate) instrumented: Instrumented,
}

/// Reads the size of the stack now, because the process may be forbidden to ask later.
pub(crate) fn prepare() {
    let _ = stacker::remaining_stack();
}

/// A source without the byte-order mark that some editors put before it;
/// every place here is a place in this text.
pub(crate) fn unmarked(source: &str) -> &str {
    source.strip_prefix('\u{feff}').unwrap_or(source)
}

/// Checks a source.
pub(crate) fn check(source: &str, limits: &Limits) -> Result<Sound, Vec<Problem>> {
    let source = unmarked(source);
    let chars = source.chars().count();
    if chars > limits.source_chars {
        let message = format!(
            "the source has {chars} characters and may have {}: split it, or pass data in through args",
            limits.source_chars
        );
        return Err(vec![Problem { message, place: None }]);
    }
    let places = Places::new(source);
    if let Some(at) = source.find('\0') {
        let message = "the source holds a NUL character: write \\0 in a string instead".to_owned();
        return Err(vec![Problem { message, place: Some(places.at(at)) }]);
    }
    let compiled =
        compile::try_out(&plain(source), limits, CHECK_STACK.min(limits.stack_bytes.max(64 << 10)));
    let refused = match compiled {
        Err(Refusal { deep: true, .. }) => {
            let message = "the source is nested too deeply: give the inner parts names".to_owned();
            return Err(vec![Problem { message, place: None }]);
        }
        Err(Refusal { full: true, .. }) => {
            let message = format!(
                "the source cannot be read with {} bytes of memory: make it smaller",
                limits.heap_bytes
            );
            return Err(vec![Problem { message, place: None }]);
        }
        Err(refusal) => Some((refusal_offset(&refusal, source, &places), refusal.message)),
        Ok(()) => None,
    };
    let unseen = refused.as_ref().map_or("", |(at, _)| &source[at.unwrap_or_default()..]);
    let looked = if marks(unseen) > UNSEEN_MARKS {
        None
    } else {
        // Both the parser and the walk recurse.
        Some(stacker::maybe_grow(TREE_STACK, TREE_STACK + (1 << 20), || {
            look(source, refused.as_ref().and_then(|(at, _)| *at))
        }))
    };
    let mut problems = Vec::new();
    let mut sound = None;
    match looked {
        Some(Ok(found)) if refused.is_none() => sound = Some(found),
        Some(Err(found)) => problems = found,
        _ => {}
    }
    if problems.is_empty()
        && let Some((at, message)) = refused
    {
        let advice = if at.is_some_and(|at| looks_typed(source, at)) { TYPED } else { "" };
        problems.push((at.map(offset), format!("syntax error: {message}{advice}")));
    }
    if problems.is_empty()
        && let Some(sound) = sound
    {
        let placed = |remarks: Vec<Remark>| {
            remarks.into_iter().take(TOLD).map(|(at, message)| problem(&places, Some(at), message)).collect()
        };
        let warnings = placed(sound.warnings);
        let slips = placed(sound.slips);
        return Ok(Sound { meta: sound.meta, warnings, slips, instrumented: sound.instrumented });
    }
    problems.sort_by_key(|(at, _)| *at);
    problems.dedup();
    let more = problems.len().saturating_sub(TOLD);
    problems.truncate(TOLD);
    if more > 0 {
        problems.push((None, format!("and {more} more")));
    }
    Err(problems.into_iter().map(|(at, message)| problem(&places, at, message)).collect())
}

struct Found {
    meta: Meta,
    warnings: Vec<Remark>,
    slips: Vec<Remark>,
    instrumented: Instrumented,
}

/// Builds the tree and looks through it. The engine's parser may have stopped somewhere.
fn look(source: &str, stopped: Option<usize>) -> Result<Found, Vec<(Option<u32>, String)>> {
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let ParserReturn { program, diagnostics, panicked, .. } =
        Parser::new(&allocator, source, SourceType::mjs()).with_options(options).parse();
    let mut problems: Vec<(Option<u32>, String)> = Vec::new();
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error) {
        problems.push(syntax(source, diagnostic, stopped));
    }
    if panicked {
        return Err(problems);
    }
    let mut looked = instrument::look(&program, source);
    problems.extend(looked.problems.iter().map(|(at, message)| (Some(*at), message.clone())));
    let Some(first) = program.body.first() else {
        problems.push((
            None,
            "the source must begin with `export const meta = {name: '…', description: '…'}`".to_owned(),
        ));
        return Err(problems);
    };
    let Some(init) = meta::object(first) else {
        let what = match first {
            Statement::ImportDeclaration(_) => "an `import` stands before it",
            _ => "something else stands there",
        };
        problems.push((
            Some(first.span().start),
            format!(
                "the first statement must be `export const meta = {{name: '…', description: '…'}}`, and \
                {what}"
            ),
        ));
        return Err(problems);
    };
    let read = meta::read(init);
    problems.extend(read.problems.into_iter().map(|(at, message)| (Some(at), message)));
    if problems.is_empty() {
        let slips = std::mem::take(&mut looked.slips);
        Ok(Found {
            meta: read.meta,
            warnings: read.warnings,
            slips,
            instrumented: looked.instrument(source, first.span()),
        })
    } else {
        Err(problems)
    }
}

/// The program as the engine's parser is to see it: its `export` and a first line for a shell blanked, inside
/// a function.
fn plain(source: &str) -> String {
    let mut text = source.to_owned();
    if text.starts_with("#!") {
        text.replace_range(..2, "//");
    }
    let first = first_token(&text);
    if text[first..].starts_with("export") {
        text.replace_range(first..first + 6, "      ");
    }
    text
}

/// Where the first token stands, behind space and comments.
fn first_token(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let space = rest.len() - rest.trim_start().len();
        let behind = &rest[space..];
        let comment = if behind.starts_with("//") {
            behind.find(['\n', '\r', '\u{2028}', '\u{2029}'])
        } else if behind.starts_with("/*") {
            behind.find("*/").map(|end| end + 2)
        } else {
            None
        };
        match comment {
            Some(length) => at += space + length,
            None => return at + space,
        }
    }
}

fn refusal_offset(refusal: &Refusal, source: &str, places: &Places<'_>) -> Option<usize> {
    let (line, column) = refusal.place?;
    let mut at = places.start(line)? + (column as usize).saturating_sub(1);
    at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    Some(at)
}

/// How many marks stand in a text that a parser can go a level deeper at.
fn marks(text: &str) -> usize {
    let marks = text.bytes().filter(|byte| b"([{`!~-+?=*:<".contains(byte)).count();
    let words = ["new", "typeof", "void", "delete", "await", "yield", "do", "else"];
    marks + words.iter().map(|word| text.matches(word).count()).sum::<usize>()
}

fn syntax(source: &str, diagnostic: &OxcDiagnostic, stopped: Option<usize>) -> (Option<u32>, String) {
    let at = diagnostic.labels.first().map(|label| label.offset());
    // The two parsers stop at different marks of the same type.
    let typed = [at.map(|at| at as usize), stopped].into_iter().flatten().any(|at| looks_typed(source, at));
    let message = diagnostic.message.trim_end_matches('.');
    let help = diagnostic.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let advice = if typed { TYPED } else { "" };
    (at, format!("syntax error: {message}{help}{advice}"))
}

/// Whether the text at an error is one that TypeScript has and JavaScript has not.
fn looks_typed(source: &str, at: usize) -> bool {
    let Some(here) = source.get(at..) else { return false };
    let before = &source[..at];
    let line = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    let word: String =
        here.chars().take_while(|char| char.is_alphanumeric() || matches!(char, '_' | '$')).collect();
    let is_type = |text: &str| {
        text.trim_start()
            .starts_with(|char: char| char.is_alphabetic() || matches!(char, '{' | '[' | '(' | '\'' | '"'))
    };
    if let Some(behind) = here.strip_prefix(':') {
        let named = line.trim_end().ends_with(|char: char| {
            char.is_alphanumeric() || matches!(char, '_' | '$' | ')' | '}' | ']' | '?')
        });
        return named && is_type(behind);
    }
    let whole = format!("{}{}", line, here.lines().next().unwrap_or_default());
    let mut words = whole.split_whitespace();
    let declares =
        matches!(words.next(), Some("interface" | "type" | "enum" | "declare" | "namespace" | "abstract"))
            && words.next().is_some_and(|next| next.starts_with(|char: char| char.is_alphabetic()));
    declares || matches!(word.as_str(), "as" | "satisfies")
}

fn problem(places: &Places<'_>, at: Option<u32>, message: String) -> Problem {
    Problem { message, place: at.map(|at| places.at(at as usize)) }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
