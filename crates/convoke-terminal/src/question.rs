//! A question to the person as rows: which agent asks, what it wants, why, and what each answer does. Every
//! line of what it wants is there, and every character that a terminal would obey or not show is written out.

use crate::screen_update::{About, Asking};
use crate::text::{self, broken, hanging, revealed};

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerMethod {
    /// Keys, in a picture.
    Keys,
    /// Whole lines, where nothing is drawn.
    Lines,
}

/// All of a question, in rows of at most this width.
pub(crate) fn rows(asking: &Asking, width: usize, by: AnswerMethod) -> Vec<String> {
    let width = width.max(10);
    let who = one_line(&asking.who);
    let (head, body) = match asking.wanted.split_once(": ") {
        _ if asking.about == About::Checkpoint => {
            (format!("? {who} asks you:"), marked(&asking.wanted, "| ", "| ", width))
        }
        _ if asking.about == About::Workflow => (format!("? {}", one_line(&asking.wanted)), Vec::new()),
        Some(("run", command)) => {
            (format!("? {who} wants to run this command:"), marked(command, "$ ", "> ", width))
        }
        _ => (format!("? {who} wants to do this:"), marked(&asking.wanted, "", "| ", width)),
    };
    let mut rows = wrapped(&head, width);
    rows.extend(body);
    rows.extend(asking.details.iter().flat_map(|detail| marked(detail, "- ", "  ", width)));
    let said = [&asking.who, &asking.wanted, &asking.why].into_iter().chain(&asking.details);
    if said.into_iter().any(|text| revealed(text) != *text) {
        rows.extend(wrapped(
            "(\\u{…} and \\t stand for characters that a terminal would obey or not show)",
            width,
        ));
    }
    if !asking.why.is_empty() {
        rows.extend(wrapped(&format!("Why you are asked: {}", one_line(&asking.why)), width));
    }
    rows.extend(wrapped(&answers(&asking.about, by), width));
    rows
}

/// As much of a question as there is room for, and what can be done about it: to agree, one has to see all of
/// it. Says whether that is all.
pub(crate) fn fitted(asking: &Asking, width: usize, most: usize) -> (Vec<String>, bool) {
    let mut rows = rows(asking, width, AnswerMethod::Keys);
    if rows.len() <= most {
        return (rows, true);
    }
    let then = match asking.about {
        About::Checkpoint => "; a line and Enter is the answer",
        About::Call { .. } | About::Workflow => ", yes is said there; n says no here",
    };
    // Twice, because how many rows are left out depends on how many saying so takes.
    let more = |left_out: usize| {
        wrapped(&format!("… {left_out} more rows: Ctrl-O shows all of it{then}"), width.max(10))
    };
    let said = more(rows.len()).len();
    let kept = most.saturating_sub(said);
    let more = more(rows.len() - kept);
    rows.truncate(kept);
    rows.extend(more.into_iter().take(most));
    rows.truncate(most);
    (rows, false)
}

fn answers(about: &About, by: AnswerMethod) -> String {
    match (about, by) {
        (About::Call { always: Some(always) }, _) => {
            format!("y: yes, this once · n: no · a: {} (and Enter)", one_line(always))
        }
        (About::Call { always: None } | About::Workflow, _) => {
            "y: yes, this once · n: no (and Enter)".to_owned()
        }
        (About::Checkpoint, AnswerMethod::Keys) => {
            "one line and Enter is the answer; Esc leaves it for later".to_owned()
        }
        (About::Checkpoint, AnswerMethod::Lines) => {
            "one line is the answer; an empty one leaves it for later".to_owned()
        }
    }
}

/// A text on one line with nothing hidden in it; a line break in it is seen as one.
fn one_line(text: &str) -> String {
    revealed(text.trim_end()).replace('\n', " ⏎ ")
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    // A word that is longer than a row is broken anywhere: nothing of a question may stand outside of the
    // picture.
    hanging(text, width, "  ").lines().flat_map(|line| broken(line, width)).collect()
}

/// Foreign text, set off from our own words.
fn marked(text: &str, first: &str, next: &str, width: usize) -> Vec<String> {
    text::marked(text, first, next, width.saturating_sub(2))
        .into_iter()
        .map(|row| format!("  {row}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(wanted: &str, about: About) -> Asking {
        let who = "agent \"tidy\"".to_owned();
        let why = "a rule asks for it".to_owned();
        Asking { id: 1, agent: None, who, wanted: wanted.into(), why, details: Vec::new(), about }
    }

    #[test]
    fn a_question_says_who_what_why_and_what_each_answer_does() {
        let rows =
            rows(&asking("run: git push\norigin", About::Call { always: None }), 80, AnswerMethod::Keys);
        let expected = [
            "? agent \"tidy\" wants to run this command:",
            "  $ git push",
            "  > origin",
            "Why you are asked: a rule asks for it",
            "y: yes, this once · n: no (and Enter)",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn nothing_of_a_question_hides_at_any_width() {
        let wild = "run: echo a\u{1b}[2J\u{202e}; rm -rf ~\r\u{200b}y";
        for width in [10, 20, 40, 200] {
            let rows = rows(&asking(wild, About::Call { always: None }), width, AnswerMethod::Keys);
            assert!(
                rows.iter().all(|row| crate::text::text_columns(row) <= width.max(10)),
                "{width}: {rows:#?}"
            );
            let joined: String =
                rows.iter().flat_map(|row| row.chars()).filter(|c| !c.is_whitespace()).collect();
            assert!(joined.contains("\\u{1b}[2J\\u{202e};rm-rf~\\u{d}\\u{200b}y"), "{width}: {rows:#?}");
        }
    }

    #[test]
    fn what_a_program_asks_cannot_pass_for_our_own_words() {
        let rows = rows(&asking("Which?\ny: yes, this once", About::Checkpoint), 80, AnswerMethod::Keys);
        assert!(rows.contains(&"  | y: yes, this once".to_owned()), "{rows:#?}");
    }

    #[test]
    fn all_of_what_a_workflow_wants_is_there_and_nothing_in_it_is_left_out() {
        let long = format!("run the workflow {} \u{1b}[8mhidden\nand more", "word ".repeat(200));
        let rows = rows(&asking(&long, About::Workflow), 80, AnswerMethod::Keys);
        let joined = rows.join(" ");
        assert_eq!(joined.matches("word").count(), 200, "{rows:#?}");
        assert!(joined.contains("\\u{1b}[8mhidden ⏎ and more"), "{rows:#?}");
    }

    #[test]
    fn what_always_means_is_written_out_too() {
        let always = Some("run \u{1b}[2J\u{202e} always".to_owned());
        let rows = rows(&asking("run: ls", About::Call { always }), 120, AnswerMethod::Keys);
        assert_eq!(rows[3], "y: yes, this once · n: no · a: run \\u{1b}[2J\\u{202e} always (and Enter)");
    }

    #[test]
    fn of_a_question_without_room_the_beginning_and_the_way_on_are_seen() {
        let asking = asking(&format!("run: {}", "line\n".repeat(30)), About::Call { always: None });
        for most in 0..40 {
            let (rows, whole) = fitted(&asking, 80, most);
            assert!(rows.len() <= most, "{most}: {rows:#?}");
            assert_eq!(whole, most >= 34, "{most}");
            let way_on = rows.iter().any(|row| row.contains("Ctrl-O shows all of it, yes is said there"));
            assert_eq!(way_on, !whole && most >= 1, "{most}: {rows:#?}");
        }
        let (rows, _) = fitted(&asking, 80, 5);
        assert_eq!(rows[4], "… 30 more rows: Ctrl-O shows all of it, yes is said there; n says no here");
    }
}
