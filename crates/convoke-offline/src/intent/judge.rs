//! What one clause asks for. The first word decides: a looking verb, a question, a verb that asks for a
//! change, the head of a noun phrase; a clause that begins with anything else is not understood.

use super::clauses::{after_politeness, is_verb, looks_like_identifier, quote_number};
use super::vocabulary::{
    CHANGES, DETERMINERS, DONE, GREETINGS, HERE, LARGE, LISTS, LOOKING, LOOKS, MAKES, MODALS, NOUNS, OBJECTS,
    PROBLEMS, PRONOUNS, REPORTS, SIZES, STATES, STOP, STRICT, STYLE, USES, is,
};
use super::{Term, Topic};

pub(super) enum Verdict {
    /// These things are asked for.
    Asks(Vec<Topic>),
    Review,
    /// It asks for nothing: a greeting, a prohibition, a noun phrase.
    Nothing,
    /// It says how things are: beside a request it asks for nothing; alone it is not known what it asks for.
    Statement,
    /// It asks for a change or a judgement.
    Cannot,
    Unknown,
}

pub(super) fn judge(words: &[&str], quotes: &[String]) -> Verdict {
    let words = after_politeness(words);
    let greets = |word: &&str| is(word, GREETINGS) || word.chars().all(|c| c.is_ascii_digit());
    if words.iter().all(greets) {
        return Verdict::Nothing;
    }
    let looking = looking(words);
    let words = looking.as_deref().unwrap_or(words);
    let asks_do =
        words.first() == Some(&"do") && words.get(1).is_some_and(|next| is(next, "we you i they these"));
    let words = &words[usize::from(asks_do)..];
    let Some(&first) = words.first() else { return Verdict::Nothing };
    let rest = &words[1..];
    let next = rest.first().copied().unwrap_or_default();
    if is(first, "don't dont never without no not nothing") || (first == "do" && next == "not") {
        return Verdict::Nothing;
    }
    if first == "go" && is_verb(next) {
        return judge(rest, quotes);
    }
    if is(first, "tell show say")
        && let Some(at) = rest.windows(2).take(2).position(|pair| pair[0] == "how" && is(pair[1], SIZES))
    {
        return judge(&rest[at..], quotes);
    }
    let wish = words.iter().any(|w| is(w, "want need needs get have must should"));
    if wish && words.iter().any(|w| is(w, DONE)) {
        return Verdict::Cannot;
    }
    let topics = topics(words, quotes);
    if let Some(verdict) = manner(first, rest, &topics) {
        return verdict;
    }
    if is(first, CHANGES) {
        let listed = rest.iter().take(5).any(|w| is(w, LISTS)) && (has_problem(words) || !topics.is_empty());
        let produces = is(first, MAKES) && !to_file(rest) && (yields_report(rest) || listed);
        let review = is(next, "review audit");
        return match produces || review {
            false => Verdict::Cannot,
            true => asks_or(topics, Verdict::Review),
        };
    }
    // What a file does is beyond the rules; what it defines is asked for by the same words, and the report
    // says the difference.
    if topics.iter().any(|ask| matches!(ask, Topic::Framework | Topic::Outline)) {
        return Verdict::Asks(topics);
    }
    if is_judgement(first, rest) {
        return Verdict::Cannot;
    }
    if asks_do || is(first, "what what's which is are was does has where where's how") {
        return question(words, topics);
    }
    if is(first, LOOKS) || is(first, STRICT) {
        return look(first, rest, topics);
    }
    noun_phrase(first, rest, topics)
}

/// A phrase that means looking around, with "look" in its place.
fn looking<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let phrases = LOOKING.split(", ").map(|phrase| phrase.split(' ').collect::<Vec<_>>());
    let behind = phrases.filter(|phrase| words.starts_with(phrase)).map(|phrase| phrase.len()).max()?;
    Some([&["look"], &words[behind..]].concat())
}

/// A clause that says how the work or the answer is to be: "be brief", "leave every file as it is", "end with
/// a list".
fn manner(first: &str, rest: &[&str], topics: &[Topic]) -> Option<Verdict> {
    let any = |table: &str| rest.iter().any(|word| is(word, table));
    let fits = match first {
        "be" => any(STYLE),
        "keep" => any(STYLE) || any("as-is unchanged untouched intact alone"),
        "leave" => any("unchanged untouched intact alone as-is") || (any("as") && any("is are")),
        "end" | "finish" | "conclude" | "begin" | "start" | "close" if rest.first() == Some(&"with") => {
            if topics.is_empty() && !yields_report(rest) && !rest.iter().take(4).any(|word| is(word, LISTS)) {
                return Some(Verdict::Cannot);
            }
            return Some(asks_or(topics.to_vec(), Verdict::Nothing));
        }
        _ => return None,
    };
    Some(if fits { Verdict::Nothing } else { Verdict::Unknown })
}

fn is_judgement(first: &str, rest: &[&str]) -> bool {
    let next = rest.first().copied().unwrap_or_default();
    let early = |table: &str| rest.iter().take(2).any(|word| is(word, table));
    let holds = next == "does" && rest.last().is_some_and(|word| is(word, "contain hold include"));
    is(first, "why who when whose should could would can will explain")
        || (first == "how" && !is(next, SIZES))
        || (first == "what" && is(next, "does do did should would could if happens") && !holds)
        || (is(first, "tell show describe say") && early("why how whether if"))
        || (is(first, "check verify see find determine investigate look") && early("why whether if"))
        || (is(first, "check verify see") && next == "that")
        || (first == "find" && early("better way ways alternative solution cause reason root replacement"))
}

fn question(words: &[&str], topics: Vec<Topic>) -> Verdict {
    let first = words[0];
    let next = words.get(1).copied().unwrap_or_default();
    if words.iter().any(|word| is(word, MODALS)) {
        return Verdict::Cannot;
    }
    if !topics.is_empty() {
        return Verdict::Asks(topics);
    }
    if first == "how" {
        return if is(next, "many much") { Verdict::Cannot } else { Verdict::Asks(vec![Topic::Count]) };
    }
    let about_here = words.iter().any(|word| is(word, HERE)) && is(first, "what what's");
    if about_here || has_problem(words) { Verdict::Review } else { Verdict::Cannot }
}

/// A clause that begins with a looking verb. Some of them ask for a review whatever stands behind them; the
/// others may ask for a program that looks ("show a spinner"), so their object must be known.
fn look(first: &str, rest: &[&str], topics: Vec<Topic>) -> Verdict {
    let next = rest.first().copied().unwrap_or_default();
    let last = rest.last().copied().unwrap_or_default();
    let place = rest.iter().any(|word| is(word, HERE) && *word != "this") || last == "this";
    let seen = rest.windows(2).any(|pair| pair[0] == "you" && is(pair[1], "find found see saw notice know"));
    let known = has_problem(rest) || place || seen;
    if is(first, LOOKS) {
        let elsewhere = next == "for" && first != "look" && topics.is_empty() && !known;
        return if elsewhere { Verdict::Cannot } else { asks_or(topics, Verdict::Review) };
    }
    let demands =
        rest.iter().any(|word| is(word, "should must need needs ought better new instead upstream"));
    let astray = match first {
        "give" => !is(next, "me us") && !yields_report(rest),
        "go" | "walk" => !is(next, "through over around into across me us the"),
        "point" => next != "out",
        "focus" | "concentrate" => next != "on",
        _ => false,
    };
    if rest.is_empty() {
        return Verdict::Statement;
    }
    if demands || astray {
        return Verdict::Cannot;
    }
    let known = known || yields_report(rest) || rest.iter().any(|word| is(word, OBJECTS));
    if known { asks_or(topics, Verdict::Review) } else { asks_or(topics, Verdict::Cannot) }
}

/// A clause that begins with no verb we know.
fn noun_phrase(first: &str, rest: &[&str], topics: Vec<Topic>) -> Verdict {
    let any = |table: &str| rest.iter().any(|word| is(word, table));
    let next = rest.first().copied().unwrap_or_default();
    let reviews = is(first, REPORTS) || yields_report(rest);
    if is(first, PRONOUNS) {
        let wish = any("want need like love wish prefer expect hope must should") || is(first, "i'd we'd");
        return match (wish, reviews) {
            (false, _) => Verdict::Statement,
            (true, true) => asks_or(topics, Verdict::Review),
            (true, false) => asks_or(topics, Verdict::Cannot),
        };
    }
    if is(first, DETERMINERS) {
        let states = any(STATES);
        return if any("should must need needs ought") || any(DONE) {
            Verdict::Cannot
        } else if !topics.is_empty() {
            Verdict::Asks(topics)
        } else if reviews || (has_problem(rest) && !states) {
            Verdict::Review
        } else if is(first, "a an") {
            Verdict::Unknown
        } else if states || rest.len() > 7 {
            Verdict::Statement
        } else {
            Verdict::Nothing
        };
    }
    let makes = any(CHANGES) || any("app application component feature page refactoring");
    let here = any(HERE) || any(REPORTS) || has_problem(rest) || reviews;
    if is(first, NOUNS)
        && !makes
        && !is(next, DETERMINERS)
        && !is(next, "it them me us")
        && (here || !topics.is_empty())
    {
        return asks_or(topics, Verdict::Review);
    }
    if is(first, PROBLEMS) && rest.len() < 4 { Verdict::Review } else { Verdict::Unknown }
}

fn asks_or(topics: Vec<Topic>, otherwise: Verdict) -> Verdict {
    if topics.is_empty() { otherwise } else { Verdict::Asks(topics) }
}

/// The things that are named in a clause and can be looked at.
fn topics(words: &[&str], quotes: &[String]) -> Vec<Topic> {
    let has = |table: &str| words.iter().any(|word| is(word, table));
    let mut asks = Vec::new();
    let first = words.first().copied().unwrap_or_default();
    let looks_for = first == "look" && words.iter().skip(1).take(2).any(|word| is(word, "for where"));
    let searches = looks_for
        || is(first, "find search grep locate where where's")
        || (is(first, "which what list show") && has(USES))
        || has("usages occurrences references callers");
    let quoted: Vec<&String> =
        words.iter().filter_map(|word| quote_number(word)).filter_map(|n| quotes.get(n)).collect();
    if searches && !quoted.is_empty() {
        return quoted.into_iter().map(|text| Topic::Find(Term::Exact(text.clone()))).collect();
    }
    if has("framework frameworks") && has("test tests testing unit") {
        return vec![Topic::Framework];
    }
    let each = has("each every all") && has("file files module modules one");
    let does = words
        .windows(2)
        .any(|pair| is(pair[0], "one file module files modules") && is(pair[1], "does do defines define"));
    if each && (does || first == "read") && !has("why how") {
        return vec![Topic::Outline];
    }
    if has("todo todos fixme fixmes xxx hack hacks to-dos todo/fixme") {
        asks.push(Topic::Todos);
    }
    let large = has(LARGE);
    if large && has("function functions method methods") {
        asks.push(Topic::LongFunctions);
    }
    if large && has("file files module modules ones") {
        asks.push(Topic::LargestFiles);
    }
    let lacking = has("missing without lack lacks lacking no not untested");
    if has("untested coverage") || (lacking && has("test tests tested")) {
        asks.push(Topic::Tests);
    }
    if has("unhandled swallowed ignored unwrap unwraps panics panic")
        || (has("error errors") && has("handling handled unchecked handle"))
        || (has("bare empty") && has("except catch excepts catches"))
    {
        asks.push(Topic::Errors);
    }
    let counts = has("many much count number loc");
    let sized = has("line lines file files loc");
    if has("language languages") || (counts && sized && asks.is_empty()) {
        asks.push(Topic::Count);
    }
    let lists = has("list ls show which what print tree name");
    if asks.is_empty() && lists && has("files tree ls") && !searches {
        asks.push(Topic::List);
    }
    if asks.is_empty() && searches && !has_problem(words) {
        let exact = words.iter().find(|word| looks_like_identifier(word));
        let content: Vec<String> =
            words[1..].iter().filter(|w| !w.is_empty() && !is(w, STOP)).map(|w| stem(w)).collect();
        match exact {
            Some(name) => asks.push(Topic::Find(Term::Exact(name.trim_end_matches("()").to_owned()))),
            None if !content.is_empty() => asks.push(Topic::Find(Term::Words(content))),
            None => {}
        }
    }
    asks
}

/// Whether what follows a verb is the report itself: "a short summary" is, "a summary function" and "a list
/// to x" are not.
fn yields_report(rest: &[&str]) -> bool {
    let noun = rest.iter().take(6).position(|word| is(word, REPORTS));
    let before = noun.is_some_and(|at| !rest[..at].iter().any(|word| is(word, "for of in that about on")));
    let after = noun.and_then(|at| rest.get(at + 1)).copied();
    before
        && after.is_none_or(|word| {
            is(word, "of in on about for from covering with that what and or here now please")
        })
}

fn to_file(rest: &[&str]) -> bool {
    rest.iter().any(|word| is(word, "into to file save"))
}

fn has_problem(words: &[&str]) -> bool {
    words.iter().any(|word| is(word, PROBLEMS))
}

/// A word without its plural ending, so that "dates" finds "date".
fn stem(word: &str) -> String {
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    if plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}
