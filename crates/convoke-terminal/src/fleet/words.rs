//! Words for what agents do: foreign text made harmless and short, calls as a person would say them, kinds of failure. Pure; rows and
//! pages say the same thing in the same words because they take them from here.

use convoke_kernel::{ExchangeClosed, Letter, LetterKind, Outcome, Vote};
use serde_json::Value;

use crate::ask::Place;
use crate::text::{count, first_line, kind_word, shown};

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

/// A place that can be opened. One whose name a terminal would obey is none: it could be drawn harmless or opened, but not both.
pub(super) fn place(path: &str, line: Option<u64>) -> Option<Place> {
    let is_harmless = !path.is_empty() && !path.contains('\n') && shown(path) == path;
    is_harmless.then(|| Place { path: path.to_owned(), line })
}

/// How many of something there are.
pub(super) fn counted(number: usize, noun: &str) -> String {
    count(u32::try_from(number).unwrap_or(u32::MAX), noun)
}

/// What an exchange came to, in a few words.
pub(super) fn came_to(event: &ExchangeClosed) -> String {
    if let Outcome::Failed { kind, message, .. } = &event.outcome {
        return format!("{}: {}", kind_word(*kind), line(message));
    }
    if let Some(why) = &event.degraded {
        return format!("degraded: {}", line(why));
    }
    if let Some(ballot) = &event.ballot {
        let holds = ballot.verdicts.iter().filter(|judgement| judgement.verdict == Vote::Confirmed).count();
        let fails = ballot.verdicts.len() - holds;
        return if fails == 0 { format!("{holds} confirmed") } else { format!("{holds} confirmed, {fails} refuted") };
    }
    match event.report.as_ref().map(|report| report.findings.len()) {
        Some(0) => "no findings".to_owned(),
        Some(found) => counted(found, "finding"),
        None => line(event.outcome.text()),
    }
}

/// Who wrote letters, each once.
pub(super) fn senders(letters: &[Letter]) -> String {
    let mut names: Vec<&str> = letters.iter().map(|letter| letter.from.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    line(&names.join(", "))
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
    /// What somebody who makes it is at, in one word.
    pub(super) act: &'static str,
    /// Whether it runs a command.
    pub(super) is_command: bool,
    /// The file it is about.
    pub(super) place: Option<Place>,
}

/// Says a call.
pub(super) fn said(name: &str, input: &str) -> Said {
    let value: Value = serde_json::from_str(input).unwrap_or_default();
    let text = |member: &str| value.get(member).and_then(Value::as_str);
    let plain = |title: String, act| Said {
        title: line(&title),
        body: body(&format!("{name} {input}")),
        act,
        is_command: false,
        place: None,
    };
    match (name, text("command")) {
        ("bash", Some(command)) => Said {
            body: body(&format!("$ {}", command.trim_end().replace('\n', "\n> "))),
            is_command: true,
            ..plain(format!("$ {command}"), "command")
        },
        ("bash", None) if value.get("restart").is_some() => {
            Said { is_command: true, ..plain("$ (restart the shell)".to_owned(), "command") }
        }
        ("str_replace_based_edit_tool", Some(command)) => edit(command, &value, &plain),
        ("grep" | "glob", _) => {
            let pattern = text("pattern").unwrap_or_default();
            let below = text("path").map(|path| format!(" in {path}")).unwrap_or_default();
            let found = text("path").and_then(|path| place(path, None));
            Said { place: found, ..plain(format!("{name} {pattern}{below}"), "looking") }
        }
        ("Workflow", _) => {
            let subtasks = value.get("subtasks").and_then(Value::as_array);
            let what = subtasks.map(|subtasks| format!(" of {}", counted(subtasks.len(), "subtask")));
            let named = || text("name").or(text("scriptPath")).map(|name| format!(" {name}"));
            let script = text("script").map(|script| body(&format!("Workflow, script:\n{script}")));
            let said = plain(format!("Workflow{}", what.or_else(named).unwrap_or_default()), "waiting");
            Said { body: script.unwrap_or(said.body.clone()), ..said }
        }
        ("task", _) => plain(format!("task: {}", text("prompt").unwrap_or_default()), "waiting"),
        ("read_result", _) => {
            let item = value.get("item").map(|item| format!(", item {item}")).unwrap_or_default();
            plain(format!("read_result: {}{item}", text("run").unwrap_or_default()), "looking")
        }
        ("send_message", _) => {
            let (to, letter) = (text("to").unwrap_or_default(), text("text").unwrap_or_default());
            plain(format!("send_message to {to}: {letter}"), "writing")
        }
        _ => plain(format!("{name} {value}"), "calling"),
    }
}

fn edit(command: &str, value: &Value, plain: &dyn Fn(String, &'static str) -> Said) -> Said {
    let text = |member: &str| value.get(member).and_then(Value::as_str).unwrap_or_default();
    let path = text("path");
    let marked = |mark: char, text: &str| text.lines().map(|line| format!("\n{mark} {line}")).collect::<String>();
    let at = |number: Option<u64>| place(path, number);
    match command {
        "view" => {
            let first = value.get("view_range").and_then(|range| range.get(0)).and_then(Value::as_u64);
            Said { body: body(&format!("view {path}")), place: at(first), ..plain(format!("view {path}"), "looking") }
        }
        "create" => {
            let whole = body(&format!("create {path}{}", marked('+', text("file_text"))));
            Said { body: whole, place: at(None), ..plain(format!("create {path}"), "editing") }
        }
        "str_replace" => {
            let change = format!("{}{}", marked('-', text("old_str")), marked('+', text("new_str")));
            Said {
                body: body(&format!("edit {path}{change}")),
                place: at(None),
                ..plain(format!("edit {path}"), "editing")
            }
        }
        "insert" => {
            let behind = value.get("insert_line").and_then(Value::as_u64);
            let whole = body(&format!("insert into {path}{}", marked('+', text("insert_text"))));
            let first = behind.map(|line| line.saturating_add(1));
            Said { body: whole, place: at(first), ..plain(format!("insert into {path}"), "editing") }
        }
        other => plain(format!("{other} {path}"), "editing"),
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
        check(edit, r#"{"command":"create","path":"b","file_text":"x"}"#, "create b", "editing", Some(("b", None)));
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
