//! What a person is asked to agree to, written so that nothing of it can hide: every line of a command, and
//! every character that a terminal would obey or not show. It shortens only where it says so.

use crate::questions::who;
use crate::report::{Checkpoint, Waits};
use convoke_terminal::{hanging, marked};
use convoke_view::revealed;

/// More rows of a command than this are for `convoke approvals list`.
const MOST_ROWS: usize = 12;

/// A call as rows of at most this width. Of more rows than `most` the middle is left out, and a row says how
/// many.
pub(crate) fn call_rows(wanted: &str, width: usize, most: usize) -> Vec<String> {
    let rows = rows(wanted, width.max(10));
    let Some(over) = rows.len().checked_sub(most.max(3)).filter(|over| *over > 0) else { return rows };
    // What is at the end of a long command counts as much as what is at its beginning.
    let hidden = over + 1;
    let tail = most.max(3) / 3;
    let head = rows.len() - hidden - tail;
    let mark = format!("… {hidden} more rows are not shown here …");
    rows[..head].iter().cloned().chain([mark]).chain(rows[rows.len() - tail..].iter().cloned()).collect()
}

/// Whether all of it is shown in so many rows.
pub(crate) fn is_whole(wanted: &str, width: usize, most: usize) -> bool {
    rows(wanted, width.max(10)).len() <= most.max(3)
}

/// The calls that wait for a person, and the commands that answer them.
pub(crate) fn questions(waiting: &[Waits], width: usize) -> String {
    let mut text = String::new();
    for waits in waiting {
        let head = format!("{}  {} wants to:", waits.id, who(&waits.label));
        text.push_str(&format!("{}\n", hanging(&head, width, "  ")));
        for row in call_rows(&waits.wanted, width.saturating_sub(2), MOST_ROWS) {
            text.push_str(&format!("  {row}\n"));
        }
        let why = format!("because {}", revealed(&waits.why).replace('\n', " "));
        text.push_str(&format!("{}\n", hanging(&format!("  {why}"), width, "    ")));
    }
    let ids = waiting.iter().map(|waits| waits.id.as_str()).collect::<Vec<_>>().join(",");
    // The command of the first one, with the ids of all: it can be pasted, and shortened.
    for (word, command) in
        waiting.first().into_iter().flat_map(|first| [("allow: ", &first.allow), ("deny:  ", &first.deny)])
    {
        if let Some((before, _)) = command.as_ref().and_then(|command| command.rsplit_once(' ')) {
            text.push_str(&format!("{word}{before} {ids}\n"));
        }
    }
    text
}

/// The questions of programs, and the commands that answer them.
pub(crate) fn checkpoints(waiting: &[&Checkpoint], width: usize) -> String {
    let mut text = String::new();
    for asked in waiting {
        let head =
            format!("{}  the workflow \"{}\" asks:", asked.id, revealed(&asked.workflow).replace('\n', " "));
        text.push_str(&format!("{}\n", hanging(&head, width, "  ")));
        for line in revealed(&asked.question).lines() {
            text.push_str(&format!("{}\n", hanging(&format!("  | {line}"), width, "  | ")));
        }
        if let Some(answer) = &asked.answer {
            text.push_str(&format!("answer: {answer}\n"));
        }
    }
    text
}

/// A line of the call begins with a prompt; what only does not fit into a row is indented.
fn rows(wanted: &str, width: usize) -> Vec<String> {
    let (text, first, next) = match wanted.split_once(": ") {
        Some(("run", command)) => (command, "$ ", "> "),
        _ => (wanted, "", "| "),
    };
    marked(text, first, next, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_line_by_line_and_folded_without_losing_anything() {
        let check =
            |wanted: &str, expected: &[&str]| assert_eq!(call_rows(wanted, 12, 9), expected, "{wanted:?}");
        check("run: ls", &["$ ls"]);
        check("run: a\nb", &["$ a", "> b"]);
        check("run: 0123456789abc", &["$ 0123456789", "  abc"]);
        check("change: src/a.rs", &["change: sr", "  c/a.rs"]);
        check("run: a\u{1b}[2Jb", &["$ a\\u{1b}[2J", "  b"]);
        check("run: a\rb", &["$ a\\u{d}b"]);
    }

    #[test]
    fn what_is_left_out_of_a_long_command_is_counted_and_its_end_stays() {
        let long: Vec<String> = (1..=40).map(|n| format!("echo {n}")).collect();
        let wanted = format!("run: {}; rm -rf x", long.join("\n"));
        let rows = call_rows(&wanted, 80, 9);
        assert_eq!(rows.len(), 9, "{rows:?}");
        assert_eq!(rows[5], "… 32 more rows are not shown here …");
        assert!(rows[8].ends_with("rm -rf x"), "{rows:?}");
        assert!(!is_whole(&wanted, 80, 9) && is_whole(&wanted, 80, 40));
        let padded = format!("run: ls{}; rm -rf x", " ".repeat(5_000));
        assert!(call_rows(&padded, 80, 9).last().unwrap().ends_with("rm -rf x"));
    }
}
