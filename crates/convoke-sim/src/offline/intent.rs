//! What a task asks for, by its words: one pure function. It errs towards refusing: a part that asks for a change or a
//! judgement is never passed over, because a report would then look like an answer to it.

mod words;

use super::probes::{LANGUAGES, View};
use words::{
    CHANGES, DONE, HERE, IDIOMS, JOINS, LARGE, LOOKS, MAKES, NAMES, OTHER_VERBS, POLITE, PROBLEMS, REPORTS, STOP, USES,
    is,
};

/// What a task asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Explore(Wanted),
    /// This part of the task is beyond the rules.
    Cannot {
        part: String,
    },
}

/// What is to be looked at, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) asks: Vec<Ask>,
    pub(super) scope: Option<String>,
    pub(super) language: Option<&'static str>,
    /// Paths that are not below the directory.
    pub(super) out_of_reach: Vec<String>,
    /// Whether a rule matched; else this is the review that is done for want of a better idea.
    pub(super) recognised: bool,
}

/// One thing that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    Count,
    LargestFiles,
    LongFunctions,
    Todos,
    Errors,
    Tests,
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
    for clause in &clauses {
        let words: Vec<&str> = clause.words.iter().map(String::as_str).collect();
        match judge(&words, &quotes) {
            Verdict::Asks(asks) => asks.into_iter().for_each(|ask| put(&mut wanted.asks, ask)),
            Verdict::Review => reviews = true,
            Verdict::Nothing => {}
            Verdict::Cannot => return Intent::Cannot { part: unmask(&clause.said, &quotes) },
        }
    }
    places(&masked, &quotes, &mut wanted);
    if reviews || wanted.asks.is_empty() {
        wanted.recognised = reviews;
        let finds: Vec<Ask> = wanted.asks.drain(..).filter(|ask| matches!(ask, Ask::Find(_) | Ask::List)).collect();
        wanted.asks = vec![Ask::Count, Ask::LargestFiles, Ask::LongFunctions, Ask::Todos, Ask::Errors, Ask::Tests];
        wanted.asks.extend(finds);
    }
    Intent::Explore(wanted)
}

impl Wanted {
    pub(super) fn view(&self) -> View {
        View { scope: self.scope.clone(), language: self.language }
    }
}

impl Ask {
    /// What the report calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Ask::Count => "file and line counts",
            Ask::LargestFiles => "largest files",
            Ask::LongFunctions => "long functions",
            Ask::Todos => "TODO comments",
            Ask::Errors => "unhandled errors",
            Ask::Tests => "source files no test mentions",
            Ask::Find(_) => "where the text occurs",
            Ask::List => "the list of files",
        }
    }

    /// Whether it looks into source files.
    pub(super) fn needs_source(&self) -> bool {
        matches!(self, Ask::LongFunctions | Ask::Todos | Ask::Errors | Ask::Tests)
    }
}

fn put(asks: &mut Vec<Ask>, ask: Ask) {
    if !asks.contains(&ask) {
        asks.push(ask);
    }
}

/// One imperative or question, in small letters and as it was said.
struct Clause {
    words: Vec<String>,
    said: String,
}

enum Verdict {
    Asks(Vec<Ask>),
    Review,
    Nothing,
    Cannot,
}

fn judge(words: &[&str], quotes: &[String]) -> Verdict {
    let words = after_politeness(words);
    let asks_do = words.first() == Some(&"do") && words.get(1).is_some_and(|next| is(next, "we you i they these"));
    let words = &words[usize::from(asks_do)..];
    let Some(&first) = words.first() else { return Verdict::Nothing };
    let rest = &words[1..];
    let next = rest.first().copied().unwrap_or_default();
    if is(first, "don't dont never without no not nothing") || (first == "do" && next == "not") {
        return Verdict::Nothing;
    }
    let wish = words.iter().any(|w| is(w, "want need needs get have must should"));
    if wish && words.iter().any(|w| is(w, DONE)) {
        return Verdict::Cannot;
    }
    let topics = topics(words, quotes);
    if is(first, CHANGES) {
        let produces = is(first, MAKES) && yields_report(rest);
        let review = is(next, "review audit");
        return match (produces || review, topics.is_empty()) {
            (false, _) => Verdict::Cannot,
            (true, true) => Verdict::Review,
            (true, false) => Verdict::Asks(topics),
        };
    }
    let how_many = first == "how" && is(next, "many much large big long");
    let early = |table: &str| rest.iter().take(2).any(|w| is(w, table));
    let judgement = is(first, "why who when whose should could would can will explain")
        || (first == "how" && !how_many)
        || (first == "what" && is(next, "does do did should would could if happens"))
        || (is(first, "tell show describe say") && early("why how whether if"))
        || (is(first, "check verify see find determine investigate") && early("why whether if"));
    if judgement {
        return Verdict::Cannot;
    }
    if !topics.is_empty() {
        return Verdict::Asks(topics);
    }
    if how_many {
        return if next == "many" || next == "much" { Verdict::Cannot } else { Verdict::Asks(vec![Ask::Count]) };
    }
    let question = is(first, "what what's which is are was does has where we");
    let about_here = words.iter().any(|w| is(w, HERE));
    if question && !(about_here && is(first, "what what's")) && !has_problem(words) {
        return Verdict::Cannot;
    }
    if question
        || is(first, LOOKS)
        || has_problem(words)
        || words.iter().any(|w| is(w, "review audit overview summary"))
    {
        return Verdict::Review;
    }
    Verdict::Nothing
}

/// The things that are named in a clause and can be looked at.
fn topics(words: &[&str], quotes: &[String]) -> Vec<Ask> {
    let has = |table: &str| words.iter().any(|word| is(word, table));
    let mut asks = Vec::new();
    let first = words.first().copied().unwrap_or_default();
    let searches = is(first, "find search grep locate where where's look")
        || (is(first, "which what list show") && has(USES))
        || has("usages occurrences references callers");
    let quoted: Vec<&String> =
        words.iter().filter_map(|word| quote_number(word)).filter_map(|n| quotes.get(n)).collect();
    if searches && !quoted.is_empty() {
        return quoted.into_iter().map(|text| Ask::Find(Term::Exact(text.clone()))).collect();
    }
    if has("todo todos fixme fixmes xxx hack hacks to-dos todo/fixme") {
        asks.push(Ask::Todos);
    }
    let large = has(LARGE);
    if large && has("function functions method methods") {
        asks.push(Ask::LongFunctions);
    }
    if large && has("file files module modules") {
        asks.push(Ask::LargestFiles);
    }
    let lacking = has("missing without lack lacks lacking no not untested");
    if has("untested coverage") || (lacking && has("test tests tested")) {
        asks.push(Ask::Tests);
    }
    if has("unhandled swallowed ignored unwrap unwraps panics panic")
        || (has("error errors") && has("handling handled unchecked handle"))
        || (has("bare empty") && has("except catch excepts catches"))
    {
        asks.push(Ask::Errors);
    }
    let counts = has("many much count number loc");
    let sized = has("line lines file files loc");
    if has("language languages") || (counts && sized && asks.is_empty()) {
        asks.push(Ask::Count);
    }
    let lists = has("list ls show which what print tree name");
    if asks.is_empty() && lists && has("files tree ls") && !searches {
        asks.push(Ask::List);
    }
    if asks.is_empty() && searches && !has_problem(words) {
        let exact = words.iter().find(|word| looks_like_identifier(word));
        let content: Vec<String> =
            words[1..].iter().filter(|w| !w.is_empty() && !is(w, STOP)).map(|w| stem(w)).collect();
        match exact {
            Some(name) => asks.push(Ask::Find(Term::Exact(name.trim_end_matches("()").to_owned()))),
            None if !content.is_empty() => asks.push(Ask::Find(Term::Words(content))),
            None => {}
        }
    }
    asks
}

/// Whether a verb like "write" is about the report itself: "write a short summary", but not "write a report to x.md".
fn yields_report(rest: &[&str]) -> bool {
    let to_file = rest.iter().any(|word| is(word, "into to file save"));
    let noun = rest.iter().take(5).take_while(|w| !is(w, "for of in that about on"));
    !to_file && noun.into_iter().any(|word| is(word, REPORTS))
}

fn has_problem(words: &[&str]) -> bool {
    words.iter().any(|word| is(word, PROBLEMS))
}

fn looks_like_identifier(word: &str) -> bool {
    let inner = word.trim_matches('_');
    quote_number(word).is_none() && (inner.contains('_') || word.contains("::") || word.ends_with("()"))
}

/// A word without its plural ending, so that "dates" finds "date".
fn stem(word: &str) -> String {
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    if plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}

fn after_politeness<'a, 'b>(mut words: &'a [&'b str]) -> &'a [&'b str] {
    loop {
        let before = words.len();
        for phrase in POLITE.split(", ") {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            if words.starts_with(&phrase) {
                words = &words[phrase.len()..];
            }
        }
        if words.len() == before {
            return words;
        }
    }
}

/// Cuts a task into imperatives and questions. "and" or a comma begins a new one only before a verb, and not between two
/// verbs that are inside one: "how we read and write files" is one clause, "review and fix" are two.
fn clauses(masked: &str) -> Vec<Clause> {
    let mut done = Vec::new();
    for sentence in sentences(masked) {
        let tokens: Vec<&str> = sentence.split_whitespace().collect();
        let words: Vec<String> = tokens.iter().map(|token| small(token)).collect();
        let mut start = 0;
        for at in 1..tokens.len() {
            let joined = is_join(&words[at]);
            let comma = tokens[at - 1].ends_with(',');
            if !(joined || comma) || is_join(&words[at - 1]) {
                continue;
            }
            let ahead: Vec<&str> = words[at..].iter().map(String::as_str).skip_while(|w| is_join(w)).collect();
            let verb = after_politeness(&ahead).first().copied().unwrap_or_default();
            let head: Vec<&str> = words[start..at].iter().map(String::as_str).collect();
            let leading = after_politeness(&head).len() <= 1;
            let inside = !leading && is_verb(words[at - 1].as_str());
            if is_verb(verb) && !inside {
                done.push(clause(&tokens[start..at], &words[start..at]));
                start = at;
            }
        }
        done.push(clause(&tokens[start..], &words[start..]));
    }
    done.retain(|clause| !clause.words.is_empty());
    done
}

fn clause(tokens: &[&str], words: &[String]) -> Clause {
    let joins = words.iter().take_while(|word| is_join(word)).count();
    let said = tokens[joins..].join(" ").trim_end_matches([',', '.', '!', '?']).to_owned();
    Clause { words: words[joins..].iter().filter(|word| !word.is_empty()).cloned().collect(), said }
}

fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = c == '\n' || (".!?;:".contains(c) && chars.peek().is_none_or(|next| next.is_whitespace()));
        match (ends, sentences.last_mut()) {
            (false, Some(last)) => last.push(c),
            _ => sentences.push(String::new()),
        }
    }
    sentences
}

fn small(token: &str) -> String {
    let inner = token.trim_matches(|c: char| !c.is_alphanumeric() && !"§_+#".contains(c));
    let inner = if token.contains("()") { format!("{inner}()") } else { inner.to_owned() };
    if looks_like_identifier(&inner) { inner } else { inner.to_lowercase().replace('’', "'") }
}

fn is_join(word: &str) -> bool {
    word.is_empty() || is(word, JOINS)
}

fn is_verb(word: &str) -> bool {
    is(word, CHANGES) || is(word, LOOKS) || is(word, OTHER_VERBS)
}

/// Replaces what stands in quotes by numbered marks.
fn mask(task: &str) -> (String, Vec<String>) {
    let (mut masked, mut quotes): (String, Vec<String>) = Default::default();
    let mut rest = task;
    while let Some(c) = rest.chars().next() {
        let close = match c {
            '"' | '`' => Some(c),
            '“' => Some('”'),
            '\'' if masked.chars().next_back().is_none_or(|before| before.is_whitespace() || before == '(') => Some(c),
            _ => None,
        };
        let after = &rest[c.len_utf8()..];
        let inner = close
            .and_then(|close| after.split_once(close))
            .filter(|(inner, _)| !inner.trim().is_empty() && !inner.contains('\n') && inner.len() <= 200);
        if let Some((inner, behind)) = inner {
            masked.push_str(&format!("§{}§", quotes.len()));
            quotes.push(inner.to_owned());
            rest = behind;
        } else {
            masked.push(c);
            rest = after;
        }
    }
    (masked, quotes)
}

fn unmask(said: &str, quotes: &[String]) -> String {
    let whole =
        quotes.iter().enumerate().fold(said.to_owned(), |text, (n, quote)| text.replace(&format!("§{n}§"), quote));
    if whole.chars().count() > 200 { whole.chars().take(200).collect::<String>() + "…" } else { whole }
}

fn quote_number(word: &str) -> Option<usize> {
    word.strip_prefix('§')?.strip_suffix('§')?.parse().ok()
}

/// Finds the path and the language that a task names.
fn places(masked: &str, quotes: &[String], wanted: &mut Wanted) {
    let words: Vec<String> = masked.split_whitespace().map(small).collect();
    let text = format!(" {} ", words.join(" "));
    wanted.language = NAMES.iter().find(|(sign, _)| text.contains(&format!(" {sign} "))).map(|(_, name)| *name);
    let searched = |path: &str| wanted.asks.contains(&Ask::Find(Term::Exact(path.to_owned())));
    let tokens = masked.split_whitespace().map(|token| match quote_number(&small(token)) {
        Some(n) => quotes.get(n).map(String::as_str).unwrap_or_default(),
        None => token.trim_matches(|c: char| ",;:!?()\"'".contains(c)).trim_end_matches('.'),
    });
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

fn is_path(token: &str) -> bool {
    let extension =
        token.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && LANGUAGES.iter().any(|l| l.0 == end));
    let slashed = token.len() > 1 && token.contains('/') && !token.contains("://");
    (extension || slashed) && !is(&token.to_lowercase(), IDIOMS)
}
