//! Where a person answers a question in the session: a line of its own, so that what was being written stays
//! where it is. Only `y` and Enter agree, only after the whole question stood on the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::{Act, App};
use crate::screen_update::About;
use crate::user_action::{QuestionAnswer, UserAction};

/// One line that is being written.
#[derive(Debug, Default)]
pub(super) struct Field(String);

impl Field {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// A pasted text is one answer: it is not sent by the line breaks in it.
    pub(super) fn paste(&mut self, text: &str) {
        self.0.push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    fn take_back(&mut self) {
        let last = self.0.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
        self.0.truncate(last);
    }
}

/// What a line means as an answer; `Err` says which answers there are.
fn read(line: &str, about: &About, whole: bool) -> Result<QuestionAnswer, &'static str> {
    if *about == About::Checkpoint {
        let text = line.trim();
        return if text.is_empty() {
            Err("one line is the answer; Esc leaves it for later")
        } else {
            Ok(QuestionAnswer::Text(text.into()))
        };
    }
    match (line.trim().to_ascii_lowercase().as_str(), about) {
        ("n" | "no", _) => Ok(QuestionAnswer::No),
        ("y" | "yes" | "a" | "always", _) if !whole => {
            Err("not all of it is seen here: Ctrl-O shows the whole question")
        }
        ("y" | "yes", _) => Ok(QuestionAnswer::Yes),
        ("a" | "always", About::Call { always: Some(_) }) => Ok(QuestionAnswer::Always),
        (_, About::Call { always: Some(_) }) => Err("y, n or a, and Enter"),
        _ => Err("y or n, and Enter"),
    }
}

impl App {
    /// Whether a question stands on the screen and is to be answered now.
    pub(super) fn is_asked(&self) -> bool {
        self.questions.first().is_some_and(|asking| self.standing == Some(asking.id))
    }

    /// Whether a question came while something was being written, and that is not sent or cleared yet.
    pub(super) fn is_drafting(&self) -> bool {
        !self.composer.is_empty() && !self.is_asked()
    }

    /// Whether the question that stands on the screen was answered elsewhere and the person may not have seen
    /// that yet.
    pub(super) fn is_gone(&self) -> bool {
        self.standing.is_some() && !self.is_asked()
    }

    pub(super) fn answer_key(&mut self, key: KeyEvent, leaving: bool) -> Vec<Act> {
        let Some(asking) = self.questions.first() else { return Vec::new() };
        let id = asking.id;
        let is_empty = self.answer.0.is_empty();
        let is_words = asking.about == About::Checkpoint;
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let control = if key.modifiers == KeyModifiers::CONTROL { key.code.as_char() } else { None };
        match (key.code, control) {
            (KeyCode::Enter, _) => match read(self.answer.text(), &asking.about, self.standing_whole) {
                Ok(answer) => return self.answered(id, answer),
                Err(why) => self.remark = Some(why.into()),
            },
            (KeyCode::Esc, _) | (_, Some('c' | 'u')) if !is_empty => self.answer = Field::default(),
            (KeyCode::Esc, _) if is_words => return self.answered(id, QuestionAnswer::Later),
            (KeyCode::Esc, _) => {
                let acts = self.stop();
                if acts.is_empty() {
                    self.remark = Some("it waits for your answer: n and Enter says no".into());
                }
                return acts;
            }
            (_, Some('c')) => return self.stop_or_leave(leaving),
            (_, Some('d')) if is_empty => return self.leave(leaving),
            (KeyCode::Backspace, _) | (_, Some('h')) => self.answer.take_back(),
            (KeyCode::Char(c), _) if plain => self.answer.0.push(c),
            _ => {}
        }
        Vec::new()
    }

    fn answered(&mut self, question: u64, answer: QuestionAnswer) -> Vec<Act> {
        self.answer = Field::default();
        self.standing = None;
        self.wants(UserAction::Answer { question, answer })
    }

    /// What was typed as a line in answer to the question, where nothing is drawn. There is no Esc there: an
    /// empty line leaves a question of a program for later.
    pub(crate) fn answer_line(&mut self, line: &str) -> Result<Vec<Act>, String> {
        let Some(asking) = self.questions.first() else { return Ok(Vec::new()) };
        let id = asking.id;
        let answer = match &asking.about {
            About::Checkpoint if line.trim().is_empty() => Ok(QuestionAnswer::Later),
            about => read(line, about, true),
        };
        answer.map(|answer| self.answered(id, answer)).map_err(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_agrees_and_only_to_what_was_seen() {
        let call = About::Call { always: Some("always".into()) };
        let check = |line: &str, about: &About, whole: bool, expected: Option<QuestionAnswer>| {
            assert_eq!(read(line, about, whole).ok(), expected, "{line:?}");
        };
        check("y", &call, true, Some(QuestionAnswer::Yes));
        check(" YES ", &call, true, Some(QuestionAnswer::Yes));
        check("y", &call, false, None);
        check("a", &call, false, None);
        check("a", &call, true, Some(QuestionAnswer::Always));
        check("a", &About::Call { always: None }, true, None);
        check("a", &About::Workflow, true, None);
        check("n", &call, false, Some(QuestionAnswer::No));
        for line in ["", "yes please", "ok", "yy", "\u{1b}y"] {
            check(line, &call, true, None);
        }
        check("the blue one", &About::Checkpoint, true, Some(QuestionAnswer::Text("the blue one".into())));
        check(" ", &About::Checkpoint, true, None);
    }
}
