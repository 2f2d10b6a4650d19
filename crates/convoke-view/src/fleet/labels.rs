//! Words for what agents do: foreign text made harmless and short, calls as a person would say them, kinds of
//! failure. Pure; rows and pages say the same thing in the same words because they take them from here.

use convoke_kernel::{ExchangeClosed, Letter, LetterKind, Reused};

use crate::act;
use crate::place::FilePosition;
use crate::reading;
use crate::text::{age, count, first_line, shown};

/// How much of a label, a command or a reason is kept; more than any row shows.
const MOST_CHARS: usize = 200;

/// A foreign text on one line, harmless and not too long.
pub(super) fn line(text: &str) -> String {
    first_line(&shown(text), MOST_CHARS)
}

/// The first line of a foreign text and nothing else: what something is called.
pub(super) fn name(text: &str) -> String {
    line(text.trim().lines().next().unwrap_or_default())
}

/// A foreign text in full, harmless, with its lines.
pub(super) fn body(text: &str) -> String {
    shown(text.trim_end())
}

/// A place that can be opened. One whose name a terminal would obey is none: it could be drawn harmless or
/// opened, but not both.
pub(super) fn place(path: &str, line: Option<u64>) -> Option<FilePosition> {
    let is_harmless = !path.is_empty() && !path.contains('\n') && shown(path) == path;
    is_harmless.then(|| FilePosition { path: path.to_owned(), line })
}

/// How many of something there are.
pub(super) fn counted(number: usize, noun: &str) -> String {
    count(u32::try_from(number).unwrap_or(u32::MAX), noun)
}

/// How old a result is, what it was and whose: `2 h old · 3 findings · from s_…`.
pub(super) fn from_when(reused: &Reused, at: u64, came_to: &str) -> String {
    format!("{} old · {came_to} · from {}", age(at.saturating_sub(reused.at)), line(&reused.session))
}

/// What an exchange came to, in a few words.
pub(super) fn came_to(event: &ExchangeClosed) -> String {
    act::came_to(event, line).unwrap_or_else(|| line(event.outcome.text()))
}

/// The senders of letters, each once.
pub(super) fn senders(letters: &[Letter]) -> String {
    line(&reading::senders(letters))
}

/// What a letter is, in one word.
pub(super) fn letter_word(kind: LetterKind) -> &'static str {
    match kind {
        LetterKind::Message => "message",
        LetterKind::Broadcast => "broadcast",
        LetterKind::Result => "result",
        LetterKind::Failed => "failed",
        LetterKind::ShutdownRequest => "shutdown",
        LetterKind::PlanRequest => "plan",
        LetterKind::ShutdownAnswer | LetterKind::PlanAnswer => "answer",
        LetterKind::Notice => "notice",
    }
}

/// A call as a person would say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// On one line: `$ cargo test`, `edit src/a.rs`.
    pub(super) title: String,
    /// All of what is asked for, with lines.
    pub(super) body: String,
    /// What an agent that makes this call is at, in one word.
    pub(super) act: &'static str,
    /// Whether it runs a command.
    pub(super) is_command: bool,
    /// The file it is about.
    pub(super) place: Option<FilePosition>,
}

/// Says a call, in the words of its tool.
pub(super) fn said(name: &str, input: &str) -> Said {
    let call = convoke_kernel::shown(name, input);
    Said {
        title: line(&call.title()),
        body: body(&call.body()),
        act: call.doing(),
        is_command: call.is_command(),
        place: call.place().and_then(|(path, line)| place(path, line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_said_as_a_person_would_say_it() {
        let check = |name: &str, input: &str, title: &str, act: &str, found: Option<(&str, Option<u64>)>| {
            let said = said(name, input);
            assert_eq!((said.title.as_str(), said.act), (title, act), "{name} {input}");
            let there = said.place.as_ref().map(|place| (place.path.as_str(), place.line));
            assert_eq!(there, found, "{name} {input}");
            assert_eq!(said.is_command, act == "command");
        };
        let edit = "str_replace_based_edit_tool";
        check("bash", r#"{"command":"ls -l"}"#, "$ ls -l", "command", None);
        check("bash", r#"{"command":"ls\nwc"}"#, "$ ls (+1 line)", "command", None);
        check("bash", r#"{"restart":true}"#, "$ (restart the shell)", "command", None);
        check("bash", r#"{"odd":1}"#, r#"bash {"odd":1}"#, "calling", None);
        check(
            edit,
            r#"{"command":"view","path":"a.rs","view_range":[3,9]}"#,
            "view a.rs",
            "looking",
            Some(("a.rs", Some(3))),
        );
        check(
            edit,
            r#"{"command":"str_replace","path":"a.rs","old_str":"x"}"#,
            "edit a.rs",
            "editing",
            Some(("a.rs", None)),
        );
        check(
            edit,
            r#"{"command":"create","path":"b","file_text":"x"}"#,
            "create b",
            "editing",
            Some(("b", None)),
        );
        check(
            edit,
            r#"{"command":"insert","path":"b","insert_line":0,"insert_text":"x"}"#,
            "insert into b",
            "editing",
            Some(("b", Some(1))),
        );
        check("grep", r#"{"pattern":"x","path":"src"}"#, "grep x in src", "looking", Some(("src", None)));
        check("glob", r#"{"pattern":"*.rs"}"#, "glob *.rs", "looking", None);
        check("Workflow", r#"{"subtasks":["a","b"]}"#, "Workflow of 2 subtasks", "waiting", None);
        check("Workflow", r#"{"name":"review"}"#, "Workflow review", "waiting", None);
        check("task", r#"{"prompt":"look"}"#, "task: look", "waiting", None);
        check("read_result", r#"{"run":"wf_a","item":3}"#, "read_result: wf_a, item 3", "looking", None);
    }

    #[test]
    fn nothing_a_call_names_reaches_a_terminal_raw() {
        for input in [r#"{"command":"echo \u001b[2J"}"#, r#"{"command":"view","path":"a\u001b]0;b\u0007"}"#] {
            for name in ["bash", "str_replace_based_edit_tool", "grep", "\u{1b}[2J"] {
                let said = said(name, input);
                assert!(!said.title.contains(char::is_control), "{said:?}");
                assert!(!said.body.replace('\n', "").contains(char::is_control), "{said:?}");
                assert_eq!(said.place, None, "{said:?}");
            }
        }
    }

    #[test]
    fn the_words_of_an_edit_show_what_goes_and_what_comes() {
        let input = r#"{"command":"str_replace","path":"a.rs","old_str":"x\ny","new_str":"z"}"#;
        assert_eq!(said("str_replace_based_edit_tool", input).body, "edit a.rs\n- x\n- y\n+ z");
    }
}
