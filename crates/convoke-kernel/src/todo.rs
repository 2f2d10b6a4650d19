//! An agent's own list of what it has to do. No other agent reads it or claims from
//! it: work for others stands on the board.

use serde::{Deserialize, Serialize};

use crate::run::one_line;

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Under way; at most one is.
    InProgress,
    /// Done.
    Completed,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What there is to do.
    pub text: String,
    /// Where it stands.
    pub status: TodoStatus,
}

/// Items of one list.
pub(crate) const MOST_ITEMS: usize = 20;

/// Bytes of one item: the whole list is read again after every compaction.
pub(crate) const ITEM_BYTES: usize = 500;

/// Rounds of tools without a look at the list, after which the agent is reminded of it.
pub(crate) const REMIND_AFTER: u32 = 3;

/// The list as a model or a person reads it: `[ ]`, `[>]` and `[x]`, and how many are done.
pub(crate) fn rendered(items: &[TodoItem]) -> String {
    if items.is_empty() {
        return "The list is empty.".to_owned();
    }
    let done = items.iter().filter(|item| item.status == TodoStatus::Completed).count();
    let mut lines: Vec<String> =
        items.iter().map(|item| format!("{} {}", mark(item.status), one_line(&item.text))).collect();
    lines.push(format!("{done} of {} done", items.len()));
    lines.join("\n")
}

/// How a status is written.
pub(crate) fn mark(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "[ ]",
        TodoStatus::InProgress => "[>]",
        TodoStatus::Completed => "[x]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_each_item_on_one_line_and_how_many_are_done() {
        let item = |text: &str, status| TodoItem { text: text.into(), status };
        let list = [
            item("look", TodoStatus::Completed),
            item("fix\n[x] it", TodoStatus::InProgress),
            item("test", TodoStatus::Pending),
        ];
        assert_eq!(rendered(&list), "[x] look\n[>] fix [x] it\n[ ] test\n1 of 3 done");
        assert_eq!(rendered(&[]), "The list is empty.");
    }

    #[test]
    fn c22_the_reminder_comes_after_three_rounds() {
        assert_eq!(REMIND_AFTER, 3);
    }
}
