//! Cuts a task into clauses: quotes are masked first, so that what stands in them is never taken for a
//! request.

use super::vocabulary::{
    AGENTS, CHANGES, DETERMINERS, FUNCTION, JOINS, LOOKS, NOUNS, OTHER_VERBS, POLITE, PRONOUNS, STRICT, is,
};

/// One imperative or question, in small letters and as it was said.
pub(super) struct Clause {
    pub(super) words: Vec<String>,
    pub(super) said: String,
}

pub(super) fn after_politeness<'a, 'b>(mut words: &'a [&'b str]) -> &'a [&'b str] {
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

/// Cuts a task into imperatives and questions. "and" or a comma begins a new one only before a verb or what
/// reads like one, and not between two verbs that are inside one: "how we read and write files" is one
/// clause, "review and fix" are two.
pub(super) fn clauses(masked: &str) -> Vec<Clause> {
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
            let ahead: Vec<&str> =
                words[at..].iter().map(String::as_str).skip_while(|w| is_join(w)).collect();
            let verb = after_politeness(&ahead).first().copied().unwrap_or_default();
            let head: Vec<&str> = words[start..at].iter().map(String::as_str).collect();
            let leading = after_politeness(&head).len() <= 1;
            let inside = !leading && is_verb(words[at - 1].as_str());
            let next = at + words[at..].iter().take_while(|word| is_join(word)).count();
            let later = words[at..next].iter().any(|word| is(word, "then afterwards"));
            let alone =
                leading && ahead.len() == 1 && after_politeness(&head).iter().all(|word| is_verb(word));
            let listed = tokens.get(next).is_none_or(|token| token.ends_with(','));
            let by_form = (later && !ahead.is_empty())
                || alone
                || (!listed && commands(&ahead) && !(at > 1 && is(&words[at - 2], AGENTS)));
            if (is_verb(verb) && !inside) || (by_form && !is_verb(verb)) {
                done.push(clause(&tokens[start..at], &words[start..at]));
                start = at;
            }
        }
        done.push(clause(&tokens[start..], &words[start..]));
    }
    done.retain(|clause| !clause.words.is_empty());
    done
}

/// Whether this reads like an imperative with a verb that is in no table: "prettify the code".
fn commands(words: &[&str]) -> bool {
    let [verb, object, ..] = words else { return false };
    let inflected = ["ing", "ed", "s"].iter().any(|end| verb.ends_with(end)) && !verb.ends_with("ss");
    let noun = is(verb, FUNCTION) || is(verb, DETERMINERS) || is(verb, PRONOUNS) || is(verb, NOUNS);
    let taken = is(object, DETERMINERS) || is(object, "it them me us") || object.contains(['/', '§', '.']);
    !inflected && !noun && taken
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

pub(super) fn small(token: &str) -> String {
    let inner = token.trim_matches(|c: char| !c.is_alphanumeric() && !"§_+#".contains(c));
    let inner = if token.contains("()") { format!("{inner}()") } else { inner.to_owned() };
    if looks_like_identifier(&inner) { inner } else { inner.to_lowercase().replace('’', "'") }
}

pub(super) fn is_join(word: &str) -> bool {
    word.is_empty() || is(word, JOINS)
}

pub(super) fn is_verb(word: &str) -> bool {
    is(word, CHANGES) || is(word, LOOKS) || is(word, STRICT) || is(word, OTHER_VERBS)
}

/// Replaces what stands in quotes by numbered marks.
pub(crate) fn mask(task: &str) -> (String, Vec<String>) {
    let (mut masked, mut quotes): (String, Vec<String>) = Default::default();
    let mut rest = task;
    while let Some(c) = rest.chars().next() {
        let close = match c {
            '"' | '`' => Some(c),
            '“' => Some('”'),
            '\'' if masked
                .chars()
                .next_back()
                .is_none_or(|before| before.is_whitespace() || before == '(') =>
            {
                Some(c)
            }
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

pub(super) fn unmask(said: &str, quotes: &[String]) -> String {
    let whole = quotes
        .iter()
        .enumerate()
        .fold(said.to_owned(), |text, (n, quote)| text.replace(&format!("§{n}§"), quote));
    if whole.chars().count() > 200 { whole.chars().take(200).collect::<String>() + "…" } else { whole }
}

pub(super) fn quote_number(word: &str) -> Option<usize> {
    word.strip_prefix('§')?.strip_suffix('§')?.parse().ok()
}

pub(super) fn looks_like_identifier(word: &str) -> bool {
    let inner = word.trim_matches('_');
    quote_number(word).is_none() && (inner.contains('_') || word.contains("::") || word.ends_with("()"))
}
