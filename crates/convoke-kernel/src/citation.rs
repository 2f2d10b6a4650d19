//! Whether a citation says what stands there. A pure comparison: the caller has looked the file or the
//! recorded output up. It can show that a citation is wrong; it never says that a finding is right.

use serde::{Deserialize, Serialize};

use crate::findings::Citation;

/// What was seen where a citation points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The text of the file.
    File(String),
    /// There is no such file.
    Missing,
    /// The path leads out of the directory of the run.
    Outside,
    /// The file is too large to be compared.
    TooLarge,
    /// The file is no text.
    NotText,
    /// What the command printed, each time the agent ran it.
    Output(Vec<String>),
    /// The agent never ran the command.
    NeverRan,
}

/// What came of comparing one citation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "check", content = "reason", rename_all = "snake_case")]
pub enum Checked {
    /// The quote stands there. That says nothing about the claim.
    Holds,
    /// It does not.
    Fails(String),
    /// It could not be compared.
    CannotTell(String),
}

/// Compares a citation with what was seen. White space is equal to white space, empty lines do not count, and
/// every line of the quote must stand in a line of its own, in the quote's order, not begun or ended inside a
/// word.
pub fn check_citation(citation: &Citation, seen: &Seen) -> Checked {
    let wanted = lines(citation.quote.as_deref().unwrap_or_default());
    if wanted.is_empty() {
        return Checked::CannotTell("the citation quotes nothing".to_owned());
    }
    let path = citation.path.as_deref().unwrap_or_default();
    let command = citation.command.as_deref().unwrap_or_default();
    match seen {
        Seen::File(text) => check_lines(citation, path, text, &wanted),
        Seen::Missing => Checked::Fails(format!("there is no file {path}")),
        Seen::Outside => Checked::Fails(format!("{path} is outside the directory of the run")),
        Seen::TooLarge => Checked::CannotTell(format!("{path} is too large to be compared")),
        Seen::NotText => Checked::CannotTell(format!("{path} is no text")),
        Seen::Output(outputs) if outputs.is_empty() => never_ran(command),
        Seen::NeverRan => never_ran(command),
        Seen::Output(outputs) => {
            if outputs.iter().any(|output| in_order(&lines(output), &wanted)) {
                return Checked::Holds;
            }
            Checked::Fails(format!("the recorded output of `{command}` does not hold the quote"))
        }
    }
}

fn never_ran(command: &str) -> Checked {
    Checked::Fails(format!("the agent never ran `{command}`"))
}

fn check_lines(citation: &Citation, path: &str, text: &str, wanted: &[Line]) -> Checked {
    let (Some(first), Some(last)) = (citation.first, citation.last) else {
        return Checked::CannotTell("the citation names no lines".to_owned());
    };
    let count = text.lines().count();
    let all = lines(text);
    let place = span(first as usize, last as usize);
    let elsewhere = || match stands_at(&all, wanted) {
        Some((first, last)) => format!("; the quote stands at {}", span(first, last)),
        None => "; the quote does not stand anywhere in the file in one piece".to_owned(),
    };
    if first == 0 || first > last || last as usize > count {
        return Checked::Fails(format!(
            "{path} has {count} lines and the citation means {place}{}",
            elsewhere()
        ));
    }
    let from = all.partition_point(|line| line.number < first as usize);
    let to = all.partition_point(|line| line.number <= last as usize);
    if in_order(&all[from..to], wanted) {
        return Checked::Holds;
    }
    Checked::Fails(format!("{path} does not hold the quote at {place}{}", elsewhere()))
}

fn span(first: usize, last: usize) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first} to {last}") }
}

/// A line that is not empty, with single spaces.
struct Line {
    number: usize,
    text: String,
}

fn lines(text: &str) -> Vec<Line> {
    let numbered = (1..).zip(text.lines());
    let spaced = numbered
        .map(|(number, line)| Line { number, text: line.split_whitespace().collect::<Vec<_>>().join(" ") });
    spaced.filter(|line| !line.text.is_empty()).collect()
}

fn in_order(lines: &[Line], wanted: &[Line]) -> bool {
    let mut rest = lines.iter();
    wanted.iter().all(|wanted| rest.any(|line| holds(&line.text, &wanted.text)))
}

/// The first place where the quote stands in lines that follow each other.
fn stands_at(lines: &[Line], wanted: &[Line]) -> Option<(usize, usize)> {
    let found = lines
        .windows(wanted.len())
        .find(|window| window.iter().zip(wanted).all(|(line, wanted)| holds(&line.text, &wanted.text)))?;
    Some((found.first()?.number, found.last()?.number))
}

/// Whether the line holds the quote, which must not begin or end inside a word: `retries = 1` is not in
/// `retries = 10`.
fn holds(line: &str, quote: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let head = is_word(quote.chars().next());
    let tail = is_word(quote.chars().next_back());
    line.match_indices(quote).any(|(at, _)| {
        let before = is_word(line[..at].chars().next_back());
        let after = is_word(line[at + quote.len()..].chars().next());
        !(head && before || tail && after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn main() {\n\tlet retries = 10;\n\n    run(retries);\n}\n\nfn run(n: u32) {\n    // löp\n}\n";

    fn at(first: u32, last: u32, quote: &str) -> Citation {
        Citation {
            path: Some("a.rs".into()),
            first: Some(first),
            last: Some(last),
            quote: Some(quote.into()),
            command: None,
        }
    }

    fn ran(quote: &str) -> Citation {
        Citation { command: Some("grep x".into()), quote: Some(quote.into()), ..Citation::default() }
    }

    fn check(citation: Citation, seen: Seen, expected: Result<(), &str>) {
        let wanted = expected.map_or_else(|reason| Checked::Fails(reason.to_owned()), |()| Checked::Holds);
        assert_eq!(check_citation(&citation, &seen), wanted, "{citation:?}");
    }

    fn in_file(first: u32, last: u32, quote: &str, expected: Result<(), &str>) {
        check(at(first, last, quote), Seen::File(FILE.to_owned()), expected);
    }

    #[test]
    fn a_quote_that_stands_in_its_lines_holds() {
        in_file(2, 2, "let retries = 10;", Ok(()));
        in_file(2, 2, "  let   retries\t= 10", Ok(()));
        in_file(1, 5, "fn main() {\nlet retries = 10;\nrun(retries);\n}", Ok(()));
        in_file(2, 4, "let retries = 10;\n\n\n  run(retries);", Ok(()));
        in_file(1, 9, "fn main() {\nfn run(n: u32) {", Ok(()));
        in_file(8, 8, "löp", Ok(()));
        in_file(1, 9, "fn main", Ok(()));
    }

    #[test]
    fn a_quote_from_elsewhere_fails_and_the_reason_says_where_it_stands() {
        in_file(
            4,
            4,
            "let retries = 10;",
            Err("a.rs does not hold the quote at line 4; the quote stands at line 2"),
        );
        in_file(
            6,
            8,
            "fn main() {\nlet retries = 10;",
            Err("a.rs does not hold the quote at lines 6 to 8; the quote stands at lines 1 to 2"),
        );
        in_file(
            3,
            3,
            "run(retries);",
            Err("a.rs does not hold the quote at line 3; the quote stands at line 4"),
        );
        in_file(
            40,
            44,
            "run(retries);",
            Err("a.rs has 9 lines and the citation means lines 40 to 44; the quote stands at line 4"),
        );
    }

    #[test]
    fn what_stands_nowhere_or_in_another_order_or_inside_a_word_fails() {
        let nowhere = "a.rs does not hold the quote at lines 1 to 5; the quote does not stand anywhere in \
            the file in one piece";
        for quote in [
            "let retries = 3;",
            "run(retries);\nlet retries = 10;",
            "let retries = 1",
            "et retries = 10;",
            "n main",
        ] {
            in_file(1, 5, quote, Err(nowhere));
        }
        in_file(
            9,
            10,
            "x",
            Err(
                "a.rs has 9 lines and the citation means lines 9 to 10; the quote does not stand anywhere in \
                    the file in one piece",
            ),
        );
        check(
            at(1, 1, "x"),
            Seen::File(String::new()),
            Err("a.rs has 0 lines and the citation means line 1; the quote does not stand anywhere in the \
                    file in one piece"),
        );
    }

    #[test]
    fn a_file_that_is_not_there_or_not_ours_fails() {
        check(at(1, 1, "x"), Seen::Missing, Err("there is no file a.rs"));
        check(at(1, 1, "x"), Seen::Outside, Err("a.rs is outside the directory of the run"));
    }

    #[test]
    fn what_cannot_be_compared_is_not_held_against_the_finding() {
        for (citation, seen) in [
            (at(1, 1, "x"), Seen::TooLarge),
            (at(1, 1, "x"), Seen::NotText),
            (at(1, 1, " \n "), Seen::File(FILE.to_owned())),
            (ran("x"), Seen::File(FILE.to_owned())),
        ] {
            assert!(
                matches!(check_citation(&citation, &seen), Checked::CannotTell(_)),
                "{citation:?} {seen:?}"
            );
        }
    }

    #[test]
    fn a_cited_command_is_compared_with_its_own_recorded_outputs() {
        let outputs = || Seen::Output(vec!["nothing".into(), "a:1: x  = 2\nb:2: y\n".into()]);
        check(ran("a:1: x = 2\nb:2: y"), outputs(), Ok(()));
        check(ran("b:2: y"), outputs(), Ok(()));
        check(
            ran("nothing\nb:2: y"),
            outputs(),
            Err("the recorded output of `grep x` does not hold the quote"),
        );
        check(ran("c:3"), outputs(), Err("the recorded output of `grep x` does not hold the quote"));
        check(ran("x"), Seen::NeverRan, Err("the agent never ran `grep x`"));
        check(ran("x"), Seen::Output(Vec::new()), Err("the agent never ran `grep x`"));
    }

    #[test]
    fn a_check_survives_the_journal() {
        for checked in [Checked::Holds, Checked::Fails("why".into()), Checked::CannotTell("why".into())] {
            let text = serde_json::to_string(&checked).unwrap();
            assert_eq!(serde_json::from_str::<Checked>(&text).unwrap(), checked, "{text}");
        }
    }
}
