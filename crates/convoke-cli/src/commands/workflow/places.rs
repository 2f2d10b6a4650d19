//! Places in sources, for people and for programs: where something is wrong, and a mark below it. Text from
//! outside is cleaned.

use convoke_runtime::Problem;
use serde_json::{Value, json};

use crate::render::{clean, text_columns};

/// A problem for people: `FILE:LINE:COLUMN: MESSAGE`, then the line with a mark below the column.
pub(super) fn lines(file: &str, word: &str, problem: &Problem, width: Option<usize>) -> String {
    let file = clean(file).replace('\n', " ");
    let message = clean(problem.message.trim());
    let Some(place) = &problem.place else { return format!("{file}: {word}{message}\n") };
    let head = format!("{file}:{}:{}: {word}{message}\n", place.line, place.column);
    let (text, mark) =
        window(&place.text, place.column as usize, width.map_or(usize::MAX, |width| width.max(20) - 2));
    if text.trim().is_empty() {
        return head;
    }
    match mark {
        Some(mark) => format!("{head}  {text}\n  {}^\n", " ".repeat(mark)),
        None => format!("{head}  {text}\n"),
    }
}

/// The part of a line around a column, in at most so many columns of a terminal, and where the mark stands
/// below it.
fn window(line: &str, column: usize, width: usize) -> (String, Option<usize>) {
    let before: String = line.chars().take(column.saturating_sub(1)).collect();
    let inside = column >= 1 && column <= line.chars().count() + 1;
    let (mut before, after) = (clean(&before), clean(line.get(before.len()..).unwrap_or_default()));
    if !inside {
        return (cut(&clean(line), width), None);
    }
    // Most of the room is for what leads to the place.
    let room = width / 3 * 2;
    if text_columns(&before) + text_columns(&after) > width && text_columns(&before) > room {
        let over = text_columns(&before) - room + 1;
        before = format!("…{}", before.chars().skip(over).collect::<String>());
    }
    let mark = text_columns(&before);
    (cut(&format!("{before}{after}"), width), Some(mark))
}

fn cut(text: &str, width: usize) -> String {
    let text = text.trim_end();
    if text_columns(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if text_columns(&short) + 2 > width {
            break;
        }
        short.push(c);
    }
    format!("{short}…")
}

/// A problem for programs.
pub(super) fn object(problem: &Problem) -> Value {
    let place = problem.place.as_ref();
    json!({
        "message": problem.message,
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "text": place.map(|place| place.text.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use convoke_runtime::SourcePosition;

    use super::*;

    #[track_caller]
    fn check(text: &str, column: u32, width: Option<usize>, expected: &str) {
        let place = Some(SourcePosition { line: 3, column, text: text.to_owned() });
        let problem = Problem { message: "this is wrong".to_owned(), place };
        assert_eq!(lines("a.js", "", &problem, width), format!("a.js:3:{column}: this is wrong\n{expected}"));
    }

    #[test]
    fn the_mark_stands_below_the_column() {
        check("let a = ;", 9, None, "  let a = ;\n          ^\n");
        check("\tlet a = ;", 10, None, "      let a = ;\n              ^\n");
        check("漢字 = ;", 6, None, "  漢字 = ;\n         ^\n");
        check("a = (", 6, None, "  a = (\n       ^\n");
        check("cut…", 90, None, "  cut…\n");
        check("", 1, None, "");
        check("a\u{1b}[31m = ;", 10, None, "  a = ;\n      ^\n");
    }

    #[test]
    fn a_long_line_is_shown_around_its_column() {
        let long = format!("{}HERE{}", "a".repeat(100), "b".repeat(100));
        check(
            &long,
            101,
            Some(22),
            "  …aaaaaaaaaaaHERE…\n              ^\n".replace("HERE…", "HEREbbb…").as_str(),
        );
        check(&long, 1, Some(22), "  aaaaaaaaaaaaaaaaaaa…\n  ^\n");
    }

    #[test]
    fn a_problem_without_a_place_is_one_line() {
        let problem = Problem { message: "it is too long".to_owned(), place: None };
        assert_eq!(lines("a.js", "warning: ", &problem, None), "a.js: warning: it is too long\n");
    }
}
