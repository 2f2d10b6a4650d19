//! How a request is cut: into sentences, the parts that a verb begins, lists and words.

/// Verbs that begin a new part of a request.
const VERBS: &str = "\
    spawn hire recruit create add make put have let ask tell get send message broadcast announce watch \
    observe wait request shut shutdown stop review approve reject accept decline refuse list show check \
    read see give assign post start launch dismiss";

/// What may stand before a verb and says nothing.
const LEADING: &str =
    "please then also now finally first next afterwards and can could would will you i want we need to let's";

/// The words of a text in small letters, without what stands around them.
pub(in crate::team::members) fn words(text: &str) -> Vec<String> {
    let bare =
        |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && !"§_->→".contains(c)).to_lowercase();
    text.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect()
}

/// Whether a word stands in a table of words.
pub(super) fn is(word: &str, table: &str) -> bool {
    !word.is_empty() && table.split_whitespace().any(|known| known == word)
}

/// What is said, without the words before its verb that say nothing.
pub(super) fn without_leading(mut said: &str) -> &str {
    loop {
        said = said.trim_start_matches([',', ' ']);
        let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let low = word.trim_matches([',', ':']).to_lowercase();
        if rest.is_empty() || !is(&low, LEADING) {
            return said;
        }
        said = rest;
    }
}

/// A list with a line for each item, as one sentence.
pub(super) fn joined_bullets(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = (number.len() < line.len()).then(|| number.strip_prefix(['.', ')'])).flatten();
        match line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered) {
            Some(item) => joined += &format!(" {};", item.trim().trim_end_matches(['.', ';', ','])),
            None => joined += &format!("\n{line}"),
        }
    }
    joined
}

/// Sentences; a colon and what is listed behind it stay together.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = c == '\n' || (".!?".contains(c) && chars.peek().is_none_or(|next| next.is_whitespace()));
        match (ends, sentences.last_mut()) {
            (false, Some(last)) => last.push(c),
            _ => sentences.push(String::new()),
        }
    }
    sentences.retain(|sentence| !sentence.trim().is_empty());
    sentences
}

/// Cuts a sentence where a new verb begins. In a list behind a colon only another wish of a team's ends it.
pub(super) fn parts(sentence: &str) -> Vec<String> {
    let lists =
        |head: &str| head.contains(':') && words(head).iter().any(|word| word == "task" || word == "tasks");
    let mut parts = vec![String::new()];
    let tokens: Vec<&str> = sentence.split_whitespace().collect();
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at)).copied().unwrap_or_default();
        let cuts = is(before, "and then & also") || before.ends_with([',', ';']);
        let word = token.trim_end_matches([',', ':', ';']).to_lowercase();
        let current = parts.last().map_or("", String::as_str);
        let verb =
            if lists(current) { is(&word, "spawn hire recruit broadcast watch") } else { is(&word, VERBS) };
        if cuts && verb && at > 0 {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push_str(token);
            last.push(' ');
        }
    }
    for part in &mut parts {
        loop {
            let bare = part.trim_end_matches([' ', ',', ';']);
            let joins = [" and", " then", " &", " also"].iter().find_map(|join| bare.strip_suffix(join));
            let bare = joins.unwrap_or(bare).to_owned();
            if bare.len() == part.len() {
                break;
            }
            *part = bare;
        }
    }
    parts.retain(|part| !is(part.trim(), "and then & also") && !part.trim().is_empty());
    parts
}

/// The items of a list: by semicolons or arrows if there are any, else by commas and "and".
pub(super) fn items(list: &str) -> Vec<String> {
    let list = list.replace("->", ";").replace('→', ";");
    let cut: Vec<String> = if list.contains(';') {
        list.split(';').map(str::to_owned).collect()
    } else {
        list.replace(", and ", ", ").replace(" and ", ", ").split(',').map(str::to_owned).collect()
    };
    let bare =
        |item: String| item.trim().trim_start_matches("then ").trim_matches(['"', '.', ' ', '`']).to_owned();
    cut.into_iter().map(bare).filter(|item| !item.is_empty()).collect()
}
