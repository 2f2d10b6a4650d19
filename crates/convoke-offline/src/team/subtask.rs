//! A subtask as text: written by the lead, read by the worker. Both are here, so that what is written is
//! understood; a subtask that was not written here is understood by its words, or searched for.

use super::concern::{ALL, Concern};
use super::look::{Look, Scope};
use crate::intent::is_path;

/// The instruction for a worker: a first line that says what and where, and how it is to be done.
pub(super) fn write(concern: Concern, place: &Scope) -> String {
    let about = concern.about();
    let list =
        |paths: &[String]| paths.iter().map(|path| format!("`{path}/`")).collect::<Vec<_>>().join(", ");
    let area = match (place.within.as_slice(), place.except.as_slice()) {
        ([], []) => "in the whole directory".to_owned(),
        ([], except) => format!("in everything except {}", list(except)),
        (within, []) => format!("in {}", list(within)),
        (within, except) => format!("in {} except {}", list(within), list(except)),
    };
    format!(
        "{} {area}\n{} Vendored and generated files and what git ignores do not count either. Only read; \
         change nothing. Check it with commands. Report with report_findings: one finding per place, with \
         its path, lines and the line's text as the citation, {} at most; if there are more, say how many \
         in the summary. Report nothing that the commands did not show.",
        about.title,
        about.told,
        super::look::MOST
    )
}

/// How a subtask is looked into.
pub(super) fn read(subtask: &str) -> Look {
    let place = place(subtask);
    match Concern::of_text(&without_paths(subtask)) {
        Some(concern) => Look::Check { concern, place },
        None => {
            let (terms, least) = terms(subtask);
            Look::Words { terms, least, place }
        }
    }
}

/// The text without the paths in it: `README.md` names a file and is no wish for one.
fn without_paths(text: &str) -> String {
    let is_one = |token: &str| {
        let bare = token.trim_matches(|c: char| "`,;:!?()\"'".contains(c)).trim_end_matches('.');
        bare.contains('.') && is_path(bare)
    };
    let lines =
        text.lines().map(|line| line.split(' ').filter(|token| !is_one(token)).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that the first line names.
pub(super) fn place(subtask: &str) -> Scope {
    let line = subtask.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let title = ALL.iter().map(|about| about.title).find(|title| line.starts_with(title)).unwrap_or_default();
    let line = &line[title.len()..];
    let mut place = Scope::default();
    let mut excepting = false;
    let mut quoted = false;
    for piece in line.split('`') {
        let tokens: Vec<&str> = if quoted { vec![piece] } else { piece.split_whitespace().collect() };
        for token in tokens {
            let low = token.to_lowercase();
            if !quoted && ["except", "excluding"].contains(&low.as_str()) {
                excepting = true;
                continue;
            }
            let token = token.trim_matches(|c: char| ",;:!?()\"'".contains(c)).trim_end_matches('.');
            let path = token.trim_start_matches("./").trim_end_matches('/');
            let outside = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
            if !is_path(token) || outside || path.is_empty() || path.contains(char::is_whitespace) && !quoted
            {
                continue;
            }
            if excepting { &mut place.except } else { &mut place.within }.push(path.to_owned());
        }
        quoted = !quoted;
    }
    place
}

/// Words that say nothing about what is searched for.
const COMMON: &str = "\
    about after again also and any are around before being between both can check could code directory does \
    each every everything file files find first for from function functions give have here how into its \
    line lines list look make more must need only other path paths please project read report repository \
    review say should show some subtask such tell test tests than that the their them then there these they \
    this those through under use used uses using verify what when where whether which while who whose why \
    will with without would write you your cite citations finding findings evidence explain describe \
    analyse analyze examine investigate inspect audit whole";

/// What is searched for, and how many of it a line must hold: what stands in quotes or looks like a name,
/// else the longer words, of which a line must hold two.
fn terms(subtask: &str) -> (Vec<String>, usize) {
    let mut exact: Vec<String> = Vec::new();
    for (index, piece) in subtask.split('`').enumerate() {
        if index % 2 == 1 && !is_path(piece) && piece.len() > 1 && piece.len() < 80 && !piece.contains('\n') {
            exact.push(piece.to_owned());
        }
    }
    for token in subtask.split_whitespace() {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        if token.contains('_') && token.len() > 2 && !exact.iter().any(|known| known == token) {
            exact.push(token.to_owned());
        }
    }
    exact.truncate(6);
    if !exact.is_empty() {
        return (exact, 1);
    }
    let mut words: Vec<String> = Vec::new();
    for token in subtask.split(|c: char| !c.is_alphanumeric()) {
        let word = token.to_lowercase();
        if word.len() > 3 && !COMMON.split(' ').any(|common| common == word) && !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(8);
    let least = words.len().clamp(1, 2);
    (words, least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        for about in ALL {
            for (within, except) in
                [(vec![], vec![]), (paths(&["src", "a b/c"]), vec![]), (vec![], paths(&["x/y", "z"]))]
            {
                let place = Scope { within, except };
                let concern = about.concern;
                assert_eq!(read(&write(concern, &place)), Look::Check { concern, place });
            }
        }
    }

    #[test]
    fn what_no_rule_knows_is_searched_for_by_its_words() {
        let Look::Words { terms, least, place } =
            read("Explain how the governor paces requests in src/limits/")
        else {
            panic!("no search");
        };
        assert_eq!((terms.join(" ").as_str(), least), ("governor paces requests limits", 2));
        assert_eq!(place.within, ["src/limits"]);
        let Look::Words { place, .. } = read("Which statements of README.md does the code contradict?")
        else {
            panic!("a file's name was taken for a wish");
        };
        assert_eq!(place.within, ["README.md"]);
        let Look::Words { terms, least, .. } = read("Where is `retry_after` honoured?") else {
            panic!("no search")
        };
        assert_eq!((terms, least), (vec!["retry_after".to_owned()], 1));
    }
}
