//! What members write to each other. The runtime writes the sender's name from the agent that really sends
//! it; the text is data, escaped where a model reads it, and never consent to anything.

use serde::{Deserialize, Serialize};

use crate::ids::{MessageId, TaskId};

/// Bytes of a letter's text; more is refused before it is sent.
pub const MAX_LETTER: usize = 32 * 1024;

/// What a letter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LetterKind {
    /// From one member to another.
    Message,
    /// From one member to all others.
    Broadcast,
    /// What a teammate's work came to, sent by the runtime.
    Result,
    /// That a teammate's work failed, and why, sent by the runtime.
    Failed,
    /// A request that a teammate stops; `request` is this letter's id.
    ShutdownRequest,
    /// The answer to it, by the teammate or by the runtime for it.
    ShutdownAnswer,
    /// A teammate's plan that waits for approval; `request` is this letter's id.
    PlanRequest,
    /// What became of the plan.
    PlanAnswer,
    /// Something that the runtime tells.
    Notice,
}

/// One letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Letter {
    /// Its id, the same however often it is sent.
    pub id: MessageId,
    /// The sender: a member's name, `lead`, `person` or `convoke`.
    pub from: String,
    /// The reader's name.
    pub to: String,
    /// What it is.
    pub kind: LetterKind,
    /// What it says.
    pub text: String,
    /// Whether it may interrupt a command that its reader runs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub urgent: bool,
    /// Grows with every letter of this sender: its letters are read in this order.
    pub order: u64,
    /// When it was written.
    pub at: u64,
    /// The request it carries or answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<MessageId>,
    /// The answer, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The letters as they are to be read: in the order of their arrival, but those of one sender always in the
/// order they were written. One that was put back arrives a second time, behind what its sender wrote later.
pub fn in_order(letters: Vec<Letter>) -> Vec<Letter> {
    let mut sorted = letters.clone();
    sorted.sort_by(|a, b| (&a.from, a.order).cmp(&(&b.from, b.order)));
    let mut by_sender: std::collections::BTreeMap<String, std::collections::VecDeque<Letter>> =
        Default::default();
    for letter in sorted {
        by_sender.entry(letter.from.clone()).or_default().push_back(letter);
    }
    letters.iter().filter_map(|letter| by_sender.get_mut(&letter.from)?.pop_front()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w10_letters_of_one_sender_are_read_in_the_order_they_were_written() {
        let letter = |from: &str, order: u64| Letter {
            id: MessageId::derived(&[from, &order.to_string()]),
            from: from.to_owned(),
            to: "bob".to_owned(),
            kind: LetterKind::Message,
            text: String::new(),
            urgent: false,
            order,
            at: 0,
            request: None,
            approve: None,
            task: None,
        };
        let arrived = vec![letter("a", 2), letter("c", 9), letter("a", 3), letter("c", 4), letter("a", 1)];
        let read: Vec<(String, u64)> = in_order(arrived).into_iter().map(|l| (l.from, l.order)).collect();
        let expected = [("a", 1), ("c", 4), ("a", 2), ("c", 9), ("a", 3)];
        assert_eq!(read, expected.map(|(from, order)| (from.to_owned(), order)));
    }
}
