//! What a task asks for, by its words: one pure function. It errs towards refusing: a part that asks for a
//! change or a judgement, or that no rule knows, is never passed over, because a report would then look like
//! an answer to it.

mod clauses;
mod judge;
mod vocabulary;

use super::probes::{LANGUAGES, View};
pub(super) use clauses::mask;
use clauses::{clauses, is_join, quote_number, small, unmask};
use judge::{Verdict, judge};
use vocabulary::{GREETINGS, IDIOMS, NAMES, is};

/// What a task asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Explore(Wanted),
    /// This part of the task is beyond the rules.
    Cannot {
        part: String,
    },
    /// No rule knows what this part of the task asks for.
    Unknown {
        part: String,
    },
}

/// What is to be looked at, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) asks: Vec<Topic>,
    pub(super) scope: Option<String>,
    pub(super) language: Option<&'static str>,
    /// Paths that are not below the directory.
    pub(super) out_of_reach: Vec<String>,
    /// Whether a rule matched; else this is the review that is done for want of a better idea.
    pub(super) recognised: bool,
}

/// One thing that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Topic {
    Count,
    LargestFiles,
    LongFunctions,
    Todos,
    Errors,
    Tests,
    /// By which framework it is tested.
    Framework,
    /// What each source file defines.
    Outline,
    Find(Term),
    List,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    /// This text as it is.
    Exact(String),
    /// All these words on one line, in any case.
    Words(Vec<String>),
}

/// Classifies a task.
pub(super) fn classify(task: &str) -> Intent {
    let (masked, quotes) = mask(task);
    let mut wanted = Wanted { recognised: true, ..Wanted::default() };
    let clauses = clauses(&masked);
    let mut reviews = clauses.is_empty();
    let mut statement = None;
    let mut unknown = None;
    for clause in &clauses {
        let words: Vec<&str> = clause.words.iter().map(String::as_str).collect();
        let part = || unmask(&clause.said, &quotes);
        if names_only_paths(&clause.said, &quotes) {
            reviews = true;
            continue;
        }
        match judge(&words, &quotes) {
            Verdict::Asks(asks) => asks.into_iter().for_each(|ask| put(&mut wanted.asks, ask)),
            Verdict::Review => reviews = true,
            Verdict::Nothing => {}
            Verdict::Statement => statement = statement.or_else(|| Some(part())),
            Verdict::Cannot => return Intent::Cannot { part: part() },
            Verdict::Unknown => unknown = unknown.or_else(|| Some(part())),
        }
    }
    // A statement explains a task. Alone it is one that has to be understood.
    let alone = !reviews && wanted.asks.is_empty();
    if let Some(part) = unknown.or(statement.filter(|_| alone)) {
        return Intent::Unknown { part };
    }
    places(&masked, &quotes, &mut wanted);
    if reviews || wanted.asks.is_empty() {
        wanted.recognised = reviews;
        let finds: Vec<Topic> = wanted
            .asks
            .drain(..)
            .filter(|ask| matches!(ask, Topic::Find(_) | Topic::List | Topic::Framework | Topic::Outline))
            .collect();
        wanted.asks = vec![
            Topic::Count,
            Topic::LargestFiles,
            Topic::LongFunctions,
            Topic::Todos,
            Topic::Errors,
            Topic::Tests,
        ];
        wanted.asks.extend(finds);
    }
    Intent::Explore(wanted)
}

/// Whether a text only greets.
pub(super) fn greets(task: &str) -> bool {
    let mut words = task.split_whitespace().map(small).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| is(&word, GREETINGS))
}

impl Wanted {
    pub(super) fn view(&self) -> View {
        View { scope: self.scope.clone(), language: self.language }
    }
}

impl Topic {
    /// What the report calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Topic::Count => "file and line counts",
            Topic::LargestFiles => "largest files",
            Topic::LongFunctions => "long functions",
            Topic::Todos => "TODO comments",
            Topic::Errors => "unhandled errors",
            Topic::Tests => "source files no test mentions",
            Topic::Framework => "files that name a testing framework",
            Topic::Outline => "what each source file defines",
            Topic::Find(_) => "where the text occurs",
            Topic::List => "the list of files",
        }
    }

    /// Whether it looks into source files.
    pub(super) fn needs_source(&self) -> bool {
        matches!(self, Topic::LongFunctions | Topic::Todos | Topic::Errors | Topic::Tests | Topic::Outline)
    }
}

fn put(asks: &mut Vec<Topic>, ask: Topic) {
    if !asks.contains(&ask) {
        asks.push(ask);
    }
}

/// Finds the path and the language that a task names.
fn places(masked: &str, quotes: &[String], wanted: &mut Wanted) {
    let words: Vec<String> = masked.split_whitespace().map(small).collect();
    let text = format!(" {} ", words.join(" "));
    wanted.language =
        NAMES.iter().find(|(sign, _)| text.contains(&format!(" {sign} "))).map(|(_, name)| *name);
    let searched = |path: &str| wanted.asks.contains(&Topic::Find(Term::Exact(path.to_owned())));
    let tokens = masked.split_whitespace().map(|token| bare(token, quotes));
    for path in tokens.filter(|token| is_path(token)).filter(|path| !searched(path)) {
        let outside = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        let inside = path.trim_start_matches("./").trim_end_matches('/');
        if outside {
            wanted.out_of_reach.push(path.to_owned());
        } else if wanted.scope.is_none() && !inside.is_empty() {
            wanted.scope = Some(inside.to_owned());
        }
    }
}

/// A token without punctuation, or what stood in quotes in its place.
fn bare<'a>(token: &'a str, quotes: &'a [String]) -> &'a str {
    match quote_number(&small(token)) {
        Some(n) => quotes.get(n).map(String::as_str).unwrap_or_default(),
        None => token.trim_matches(|c: char| ",;:!?()\"'".contains(c)).trim_end_matches('.'),
    }
}

fn names_only_paths(said: &str, quotes: &[String]) -> bool {
    said.split_whitespace().filter(|token| !is_join(&small(token))).all(|token| is_path(bare(token, quotes)))
}

pub(super) fn is_path(token: &str) -> bool {
    let extension = token
        .rsplit_once('.')
        .is_some_and(|(stem, end)| !stem.is_empty() && LANGUAGES.iter().any(|l| l.0 == end));
    let slashed = token.len() > 1 && token.contains('/') && !token.contains("://");
    (extension || slashed) && !is(&token.to_lowercase(), IDIOMS)
}
