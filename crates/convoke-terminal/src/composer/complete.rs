//! Completion: which word is being written, what could stand there, and how it is put there. Names of
//! commands are known here; everything else is asked for.

use crate::screen_update::Candidate;

use super::buffer::{Buffer, Cell};
use super::command::find;
use super::table::COMMANDS;
use super::tokens::{is_blank, pieces, quoted_if_needed};

/// What a word belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordKind {
    /// It is the name of a command.
    Name,
    /// It is an argument of this command.
    Argument(String),
    /// It stands in a text.
    Text,
}

/// The word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The cell it begins with, its quote included.
    pub(super) start: usize,
    /// What it says, without quotes.
    pub(super) text: String,
    /// What it belongs to.
    pub(super) of: WordKind,
    /// The quote it stands in, if that is open before the cursor.
    pub(super) quote: Option<String>,
}

/// The word before the cursor, if something could stand there.
pub(super) fn word_at(buffer: &Buffer) -> Option<Word> {
    let start = buffer.line().start;
    let before = buffer.cells().get(start..buffer.cursor())?;
    // A paste that stands as one cell is no part of a word: it counts as a blank.
    let line: Vec<&str> = before.iter().map(|cell| cell.grapheme().unwrap_or(" ")).collect();
    let word = if is_command(buffer.cells()) { word_of_command(&line)? } else { word_of_text(&line)? };
    Some(Word { start: start + word.start, ..word })
}

/// The commands whose names fit what has been begun, the best first, and behind them the workflows whose
/// names do.
pub(super) fn names(begun: &str, workflows: &[Candidate]) -> Vec<Candidate> {
    let typed = begun.trim_start_matches('/').to_lowercase();
    let commands = COMMANDS.iter().map(|row| (row.name, row.about));
    let workflows = workflows.iter().map(|one| (one.text.as_str(), one.about.as_str()));
    // A command that is called like a workflow is meant by its name.
    let workflows = workflows.filter(|(name, _)| find(name).is_none());
    let ranked = |all: Vec<(&str, &str)>| {
        let mut found: Vec<_> =
            all.into_iter().filter_map(|(name, about)| Some((rank(name, &typed)?, name, about))).collect();
        found.sort_by_key(|(rank, ..)| *rank);
        found
            .into_iter()
            .map(|(_, name, about)| Candidate { text: format!("/{name}"), about: about.to_owned() })
            .collect::<Vec<_>>()
    };
    [ranked(commands.collect()), ranked(workflows.collect())].concat()
}

/// How well a name fits what was typed, the best first: it is that, it begins so, it has it, or it has its
/// letters in this order.
fn rank(name: &str, typed: &str) -> Option<u8> {
    let fits = [name == typed, name.starts_with(typed), name.contains(typed), has_letters(name, typed)];
    (0..).zip(fits).find(|(_, fits)| *fits).map(|(rank, _)| rank)
}

/// Whether all of these letters stand in a text, in this order.
fn has_letters(text: &str, letters: &str) -> bool {
    let mut left = text.chars();
    letters.chars().all(|letter| left.any(|c| c == letter))
}

/// The commands whose argument is picked from a list when none is written.
pub(super) fn is_picked(command: &str) -> bool {
    matches!(command.trim_start_matches('/'), "model" | "resume")
}

/// Puts a candidate where the word stands; says whether there is more to complete, because it is a directory.
pub(super) fn take(buffer: &mut Buffer, word: &Word, candidate: &str) -> bool {
    let grapheme =
        |buffer: &Buffer, at: usize| buffer.cells().get(at).and_then(Cell::grapheme).map(str::to_owned);
    let mut end = buffer.cursor();
    if word.of == WordKind::Name {
        end = buffer.word_after(super::buffer::Kind::NotBlank).max(end);
        // Between two words the next one is not the rest of this one.
        if grapheme(buffer, buffer.cursor()).is_none_or(|next| is_blank(&next)) {
            end = buffer.cursor();
        }
    }
    if word.quote.is_some() && grapheme(buffer, end) == word.quote {
        end += 1;
    }
    buffer.cut(word.start..end);
    let goes_on = candidate.ends_with('/') && word.of != WordKind::Name;
    let quoted = quoted_if_needed(candidate)
        .filter(|_| word.of != WordKind::Text || candidate.contains(char::is_whitespace));
    match quoted {
        Some((quote, inner)) => {
            buffer.insert(&format!("{quote}{inner}{quote}"));
            if goes_on {
                buffer.go(buffer.cursor().saturating_sub(1));
            }
        }
        None => buffer.insert(candidate),
    }
    let is_last = word.of == WordKind::Name
        && find(candidate.trim_start_matches('/')).is_some_and(|row| row.arguments.is_empty());
    let has_blank = grapheme(buffer, buffer.cursor()).is_some_and(|next| is_blank(&next));
    if !goes_on && !is_last && !has_blank {
        buffer.insert(" ");
    }
    goes_on
}

/// Candidates that are shown.
#[derive(Debug)]
pub(super) struct Offers {
    /// The word they were offered for.
    word: Word,
    all: Vec<Candidate>,
    /// Those that still fit what has been typed since.
    pub(super) left: Vec<Candidate>,
    /// Which of them is chosen.
    pub(super) chosen: usize,
    /// Whether the person picks from them: then their descriptions are searched too.
    is_wide: bool,
}

impl Offers {
    /// Candidates for a word.
    pub(super) fn new(word: Word, candidates: Vec<Candidate>) -> Self {
        Self { word, left: candidates.clone(), all: candidates, chosen: 0, is_wide: false }
    }

    /// The same candidates, for the person to pick from.
    pub(super) fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// Whether they are the commands themselves.
    pub(super) fn is_menu(&self) -> bool {
        self.word.of == WordKind::Name
    }

    /// The one that is chosen.
    pub(super) fn choice(&self) -> Option<&Candidate> {
        self.left.get(self.chosen)
    }

    /// Chooses the next one, or the one before; round and round.
    pub(super) fn walk(&mut self, forward: bool) {
        let count = self.left.len().max(1);
        self.chosen = (self.chosen + if forward { 1 } else { count - 1 }) % count;
    }

    /// Narrows them to what is written now; says whether there are any left for it.
    pub(super) fn follow(&mut self, now: Option<&Word>) -> bool {
        let Some(now) = now.filter(|now| {
            now.start == self.word.start && now.of == self.word.of && now.text.starts_with(&self.word.text)
        }) else {
            return false;
        };
        if now.text == self.word.text {
            self.left.clone_from(&self.all);
        } else {
            let typed = now.text.to_lowercase();
            let fits = |candidate: &&Candidate| {
                let text = candidate.text.to_lowercase();
                let is_wide = self.is_wide
                    && (has_letters(&text, &typed) || candidate.about.to_lowercase().contains(&typed));
                text.contains(&typed) || is_wide
            };
            let chosen = self.choice().cloned();
            self.left = self.all.iter().filter(fits).cloned().collect();
            self.chosen = self.left.iter().position(|one| Some(one) == chosen.as_ref()).unwrap_or(0);
        }
        self.chosen = self.chosen.min(self.left.len().saturating_sub(1));
        !self.left.is_empty()
    }
}

/// Whether a command is being written: a slash first, not two, and no line break.
fn is_command(cells: &[Cell]) -> bool {
    let is = |at: usize| cells.get(at).and_then(Cell::grapheme) == Some("/");
    is(0) && !is(1) && !cells.iter().any(|cell| cell.is_break() || cell.text().contains('\n'))
}

fn word_of_command(line: &[&str]) -> Option<Word> {
    let found = pieces(line);
    let name = found.first()?;
    if name.end == line.len() {
        return Some(Word { start: 0, text: name.text.clone(), of: WordKind::Name, quote: None });
    }
    let command = find(name.text.trim_start_matches('/'))?;
    let of = WordKind::Argument(command.name.to_owned());
    Some(match found.last().filter(|last| last.end == line.len()) {
        Some(last) => {
            let quote = last.open.and_then(|at| line.get(at)).map(|quote| (*quote).to_owned());
            Word { start: last.start, text: last.text.clone(), of, quote }
        }
        None => Word { start: line.len(), text: String::new(), of, quote: None },
    })
}

fn word_of_text(line: &[&str]) -> Option<Word> {
    let blank = |at: usize| line.get(at).is_none_or(|grapheme| is_blank(grapheme));
    // A quote in prose quotes words; only before something like a path is it the beginning of one.
    if let Some(quote) = line.iter().rposition(|grapheme| *grapheme == "\"")
        && (quote == 0 || blank(quote - 1))
    {
        let inside: Vec<&str> = line.iter().skip(quote + 1).copied().collect();
        let mut first = inside.iter().take_while(|grapheme| !is_blank(grapheme));
        if first.any(|grapheme| matches!(*grapheme, "@" | "/")) {
            return Some(Word {
                start: quote,
                text: inside.concat(),
                of: WordKind::Text,
                quote: Some("\"".to_owned()),
            });
        }
    }
    let mut start = (0..line.len()).rfind(|at| blank(*at)).map_or(0, |at| at + 1);
    start += line
        .iter()
        .skip(start)
        .take_while(|grapheme| matches!(**grapheme, "(" | "[" | "{" | "<" | ","))
        .count();
    let text = line.get(start..)?.concat();
    (!text.is_empty()).then_some(Word { start, text, of: WordKind::Text, quote: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_found() {
        let check = |text: &str, expected: Option<(usize, &str, WordKind)>| {
            let word = word_at(&Buffer::of(text)).map(|word| (word.start, word.text, word.of));
            assert_eq!(word, expected.map(|(start, word, of)| (start, word.to_owned(), of)), "{text}");
        };
        let export = || WordKind::Argument("export".to_owned());
        check("/ta", Some((0, "/ta", WordKind::Name)));
        check("/export ", Some((8, "", export())));
        check("/export sr", Some((8, "sr", export())));
        check("/export \"my di", Some((8, "my di", export())));
        check("/unknown a", None);
        check("//a", Some((0, "//a", WordKind::Text)));
        check("look at @src/ma", Some((8, "@src/ma", WordKind::Text)));
        check("(@ada", Some((1, "@ada", WordKind::Text)));
        check("he said \"look at @sr", Some((17, "@sr", WordKind::Text)));
        check(
            "see \"@my dir/fo",
            Some((4, "my dir/fo", WordKind::Text)).map(|(start, _, of)| (start, "@my dir/fo", of)),
        );
        check("/quit\nad", Some((6, "ad", WordKind::Text)));
        check("word ", None);
        check("", None);
    }

    #[test]
    fn commands_are_found_by_their_letters_the_best_first() {
        let check = |begun: &str, expected: &[&str]| {
            let found: Vec<String> = names(begun, &[]).into_iter().map(|one| one.text).collect();
            assert_eq!(found, expected, "{begun}");
        };
        check("/mode", &["/mode", "/model"]);
        check("/bdgt", &["/budget"]);
        check("/sume", &["/resume"]);
        check("/wfl", &["/workflows"]);
        check("/zzz", &[]);
        assert_eq!(names("/", &[]).len(), COMMANDS.len());
        let one = |text: &str| Candidate { text: text.into(), about: String::new() };
        let workflows = [one("review"), one("model"), one("resume-later")];
        let found: Vec<String> = names("/re", &workflows).into_iter().map(|one| one.text).collect();
        assert_eq!(found, ["/resume", "/review", "/resume-later"]);
    }

    #[test]
    fn a_taken_candidate_stands_where_the_word_stood() {
        let check = |text: &str, candidate: &str, expected: &str, more: bool| {
            let mut buffer = Buffer::of(text);
            let word = word_at(&buffer).unwrap();
            assert_eq!(take(&mut buffer, &word, candidate), more, "{text}");
            assert_eq!(buffer.text(), expected);
        };
        check("/ta", "/tasks", "/tasks", false);
        check("/mo", "/mode", "/mode ", false);
        check("see @sr", "@src/", "see @src/", true);
        check("see @src/m", "@src/main.rs", "see @src/main.rs ", false);
        check("/export m", "my dir/", "/export \"my dir/\"", true);
        check("/export m", "my notes", "/export \"my notes\" ", false);
        check("see @m", "@my dir/a", "see \"@my dir/a\" ", false);
        check("see @i", "@it's", "see @it's ", false);
    }

    #[test]
    fn a_directory_with_blanks_keeps_completing_inside_its_quotes() {
        let mut buffer = Buffer::of("/export m");
        let word = word_at(&buffer).unwrap();
        assert!(take(&mut buffer, &word, "my dir/"));
        let word = word_at(&buffer).unwrap();
        assert_eq!(word.text, "my dir/");
        assert!(!take(&mut buffer, &word, "my dir/a b"));
        assert_eq!(buffer.text(), "/export \"my dir/a b\" ");
    }

    #[test]
    fn the_rest_of_a_name_is_replaced_too() {
        let mut buffer = Buffer::of("/tasxx on");
        buffer.go(3);
        let word = word_at(&buffer).unwrap();
        take(&mut buffer, &word, "/tasks");
        assert_eq!(buffer.text(), "/tasks on");
    }
}
