//! What was written before, walked through and searched. It reads and writes no file: it only knows how a
//! line of one looks.

use std::collections::BTreeMap;

use super::buffer::Buffer;
use super::secret;

/// How many texts are kept.
const MOST: usize = 1_000;

/// A text as a line of a history file, without the line break.
pub(crate) fn encode(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The texts of a history file, the oldest first. Lines that are none are skipped.
pub(crate) fn decode(file: &str) -> Vec<String> {
    file.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What was written before, and where in it the person is.
#[derive(Debug, Default)]
pub(super) struct History {
    texts: Vec<String>,
    /// The text that is looked at; behind the last one is the draft.
    at: usize,
    /// What was left half written while walking, the draft among it.
    left: BTreeMap<usize, Buffer>,
    /// What was remembered and has not been handed out to be kept.
    fresh: Vec<String>,
}

impl History {
    /// With the texts of earlier sessions, the oldest first.
    pub(super) fn of(texts: Vec<String>) -> Self {
        let mut history = Self::default();
        for text in texts {
            history.remember(&text);
        }
        history.fresh.clear();
        history
    }

    /// Keeps a text, unless it is the last one again, begins with a blank or holds a key; ends the walk.
    pub(super) fn remember(&mut self, text: &str) {
        let begins_blank = text.chars().next().is_none_or(char::is_whitespace);
        if !begins_blank && !secret::holds_key(text) && self.texts.last().is_none_or(|last| last != text) {
            self.texts.push(text.to_owned());
            self.fresh.push(text.to_owned());
            let over = self.texts.len().saturating_sub(MOST);
            self.texts.drain(..over);
        }
        self.at = self.texts.len();
        self.left.clear();
    }

    /// What was remembered since this was asked last.
    pub(super) fn take_fresh(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }

    /// Steps to the text before or behind this one, leaving `now` where it is found again; `None` at either
    /// end.
    pub(super) fn step(&mut self, older: bool, now: &Buffer) -> Option<Buffer> {
        let to = if older { self.at.checked_sub(1)? } else { self.at + 1 };
        if to > self.texts.len() {
            return None;
        }
        Some(self.go(to, now))
    }

    /// Goes to a text that was found, leaving `now`.
    pub(super) fn go(&mut self, to: usize, now: &Buffer) -> Buffer {
        let is_as_it_was = self.texts.get(self.at).is_some_and(|text| *text == now.text());
        if !is_as_it_was {
            self.left.insert(self.at, now.clone());
        }
        self.at = to;
        self.left.remove(&to).unwrap_or_else(|| Buffer::of(self.texts.get(to).map_or("", String::as_str)))
    }

    /// The newest text, at or before this one, in which the words stand, whatever the case.
    pub(super) fn find(&self, words: &str, at_most: Option<usize>) -> Option<usize> {
        let words = words.to_lowercase();
        let end = at_most.map_or(self.texts.len(), |at| at + 1);
        self.texts.iter().take(end).rposition(|text| text.to_lowercase().contains(&words))
    }

    /// A text by its number.
    pub(super) fn text(&self, at: usize) -> Option<&str> {
        self.texts.get(at).map(String::as_str)
    }
}

/// A search backwards that is under way.
#[derive(Debug)]
pub(super) struct Search {
    /// What is searched.
    pub(super) words: String,
    /// What was found last.
    pub(super) found: Option<usize>,
    /// Whether there is nothing (more) to be found.
    pub(super) failed: bool,
    /// What was being written before.
    pub(super) before: Buffer,
}

impl Search {
    /// Nothing is searched yet.
    pub(super) fn new(before: Buffer) -> Self {
        Self { words: String::new(), found: None, failed: false, before }
    }

    /// Looks for the words, from this text on backwards.
    pub(super) fn look(&mut self, history: &History, at_most: Option<usize>) {
        let hit = if self.words.is_empty() { None } else { history.find(&self.words, at_most) };
        self.failed = hit.is_none() && !self.words.is_empty();
        self.found = hit.or(self.found).filter(|_| !self.words.is_empty());
    }

    /// Looks for the next older one.
    pub(super) fn look_older(&mut self, history: &History) {
        match self.found {
            Some(0) => self.failed = true,
            Some(found) => self.look(history, Some(found - 1)),
            None => self.look(history, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(texts: &[&str]) -> History {
        History::of(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn a_line_of_the_file_is_a_text_whatever_stands_in_it() {
        let texts = ["plain", "two\nlines", "\u{1b}[2J \"quoted\" 漢", "\r\u{2028}"];
        let file: String = texts.iter().map(|text| encode(text) + "\n").collect();
        assert_eq!(file.lines().count(), texts.len());
        assert_eq!(decode(&file), texts);
    }

    #[test]
    fn bad_lines_of_the_file_are_skipped() {
        assert_eq!(decode("\"a\"\nnot json\n{\"x\":1}\n\n\"b\"\n\"cut of"), ["a", "b"]);
    }

    #[test]
    fn doubles_blanks_and_keys_are_not_remembered() {
        let key = "sk-ant-abcdefghijklmnopqrstuvwx";
        let mut kept = history(&["a", "a", "", " b", "\tc", key, "d", "a"]);
        assert_eq!(kept.texts, ["a", "d", "a"]);
        assert_eq!(kept.take_fresh(), Vec::<String>::new());
        kept.remember("a");
        kept.remember(" private");
        kept.remember(&format!("my key: {key}"));
        kept.remember("e");
        assert_eq!(kept.take_fresh(), ["e"]);
        assert_eq!(kept.take_fresh(), Vec::<String>::new());
    }

    #[test]
    fn at_most_a_thousand_texts_are_kept_the_newest() {
        let kept = History::of((0..1_500).map(|number| number.to_string()).collect());
        assert_eq!(kept.texts.len(), 1_000);
        assert_eq!(kept.texts.first().map(String::as_str), Some("500"));
    }

    #[test]
    fn a_search_goes_backwards_whatever_the_case() {
        let kept = history(&["Cargo test", "ls", "cargo fmt", "git"]);
        assert_eq!(kept.find("CARGO", None), Some(2));
        assert_eq!(kept.find("cargo", Some(1)), Some(0));
        assert_eq!(kept.find("zzz", None), None);
    }
}
