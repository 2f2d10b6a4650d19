//! The arguments of a program as a person writes them: JSON, a file or stdin with JSON, or one plain text.
//! What is no JSON is told with its place; nothing is guessed.

use std::path::Path;

use serde_json::Value;

use crate::args::GivenArgs;
use crate::failure::Failure;
use crate::named::read_text;
use crate::stdio;

/// The arguments; `None` if there are none.
pub(super) fn value(given: &GivenArgs, tree: &Path) -> Result<Option<Value>, Failure> {
    if let Some(text) = &given.arg_text {
        return Ok(Some(Value::String(text.clone())));
    }
    let Some(args) = &given.args else { return Ok(None) };
    match args.strip_prefix('@') {
        Some(file) => {
            let text = read_text(Path::new(file), tree).map_err(|error| {
                Failure::usage(format!("the arguments cannot be read from {file}: {error}"))
                    .hint("--args @FILE reads JSON from a file")
            })?;
            parsed(&text, file).map(Some)
        }
        None if args == "-" => {
            let text = stdio::read_all().map_err(|error| {
                Failure::usage(format!("the arguments cannot be read from stdin: {error}"))
            })?;
            parsed(&text, "stdin").map(Some)
        }
        None => parsed(args, "--args").map(Some),
    }
}

/// More of the line than this around a mistake is not shown.
const MOST_SHOWN: usize = 60;

fn parsed(text: &str, from: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let line = error.line();
        let column = error.column();
        let why = error.to_string();
        // The place is said once, in words that also fit a file.
        let why = why.split(" at line ").next().unwrap_or(&why);
        let failure = Failure::usage(format!("{from} is no JSON: {why}, line {line}, column {column}"));
        let failure = match pointed(text, line, column) {
            Some((shown, mark)) => failure.hint(shown).hint(mark),
            None => failure,
        };
        match from {
            "--args" => failure.hint(
                "a plain text is passed with --arg-text 'some words', or as JSON: --args '\"some words\"'",
            ),
            _ => failure.hint("it must be one JSON value, and nothing behind it"),
        }
    })
}

/// The line that is meant, around the column, and a mark below it.
fn pointed(text: &str, line: usize, column: usize) -> Option<(String, String)> {
    let whole: Vec<char> = text.lines().nth(line.checked_sub(1)?)?.chars().collect();
    // The parser counts bytes; in a line of letters that is the same, and elsewhere the mark would stand
    // wrong.
    if whole.is_empty() || !whole.iter().all(char::is_ascii) {
        return None;
    }
    let at = column.clamp(1, whole.len() + 1) - 1;
    let from = at.saturating_sub(MOST_SHOWN / 2);
    let shown: String = whole.iter().skip(from).take(MOST_SHOWN).collect();
    Some((shown, format!("{}^", " ".repeat(at - from))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::Exit;

    fn args(text: &str) -> Result<Option<Value>, Failure> {
        value(&GivenArgs { args: Some(text.to_owned()), arg_text: None }, Path::new("/"))
    }

    #[test]
    fn arguments_are_json_a_file_or_a_plain_text() {
        let check = |text: &str, expected: Value| assert_eq!(args(text).unwrap(), Some(expected), "{text}");
        check("{\"a\": [1, null]}", json!({"a": [1, null]}));
        check("\"some words\"", json!("some words"));
        check("null", json!(null));
        check("-3", json!(-3));
        assert_eq!(value(&GivenArgs::default(), Path::new("/")).unwrap(), None);
        let text = GivenArgs { args: None, arg_text: Some("{not json".into()) };
        assert_eq!(value(&text, Path::new("/")).unwrap(), Some(json!("{not json")));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("args.json");
        std::fs::write(&file, "[1,\n2]").unwrap();
        check(&format!("@{}", file.display()), json!([1, 2]));
    }

    #[test]
    fn what_is_no_json_is_wrong_usage_and_says_where() {
        let check = |text: &str, place: &str, hint: &str| {
            let failure = args(text).unwrap_err();
            assert_eq!(failure.code, Exit::Usage);
            let said = failure.render();
            assert!(said.contains(place) && said.contains(hint), "{said}");
        };
        check("some words", "line 1, column 1", "--arg-text 'some words'");
        check("{\"a\": 1,\n \"b\" 2}", "line 2, column 6", "\"b\" 2}\n       ^");
        check("[1] x", "line 1, column 5", "--args '\"some words\"'");
        check("@/nowhere/args.json", "/nowhere/args.json", "--args @FILE");
        check("", "line 1, column 0", "--arg-text");
    }
}
