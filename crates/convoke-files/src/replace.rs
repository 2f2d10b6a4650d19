//! Finding the one place a text stands at, and fitting another text in there. Pure.
//!
//! The model sees lines without their endings and writes `\n`; in its texts `\n` stands for whatever ends a
//! line in the file. What it replaces keeps the endings it had, and lines it adds take the one most lines
//! have.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::line_ends::{self, End};
use crate::show;

/// Where a text stands in another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nowhere; with the nearest thing.
    Nowhere(String),
    Once(Range<usize>),
    /// More than once: the lines it begins at, and whether there are more than those.
    Often(Vec<u64>, bool),
}

/// Matches that are counted before one says "more".
const MOST: usize = 20;
/// Characters of a line that a hint quotes.
const QUOTE: usize = 100;

/// Looks for `old`, whichever way its lines end in the body.
pub(crate) fn find(body: &[u8], old: &str) -> Found {
    // A needle that spells out a carriage return means exactly that.
    let plain = if old.contains('\r') { Plain::exactly(body) } else { Plain::of(body) };
    let finder = Finder::new(old.as_bytes());
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() <= MOST {
        let Some(at) = plain.bytes.get(from..).and_then(|rest| finder.find(rest)) else { break };
        found.push(from + at);
        // Matches that overlap are different places too.
        from += at + 1;
    }
    match found.as_slice() {
        [] => Found::Nowhere(nearest(&plain.bytes, old)),
        [at] => Found::Once(plain.origin(*at)..plain.origin(at + old.len())),
        many => {
            let lines =
                many.iter().take(MOST).map(|at| line_ends::line_of(body, plain.origin(*at))).collect();
            Found::Often(lines, many.len() > MOST)
        }
    }
}

/// The bytes to put in the place of `piece`, which is where `old` stands in a text whose dominant ending is
/// given.
pub(crate) fn fit(piece: &[u8], old: &str, new: &str, dominant: End) -> Vec<u8> {
    let ends = line_ends::ends(piece, dominant == End::Cr);
    let before: Vec<&str> = old.split('\n').collect();
    let after: Vec<&str> = new.split('\n').collect();
    let shorter = before.len().min(after.len());
    let head = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let tail = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(shorter - head.min(shorter))
        .take_while(|(one, other)| one == other)
        .count();
    let breaks = after.len() - 1;
    let mut bytes = Vec::with_capacity(new.len() + breaks);
    for (number, line) in after.iter().enumerate() {
        bytes.extend_from_slice(line.as_bytes());
        if number == breaks {
            break;
        }
        let from_end = breaks - 1 - number;
        let kept = if number < head || breaks == ends.len() {
            ends.get(number)
        } else if from_end < tail {
            ends.len().checked_sub(from_end + 1).and_then(|at| ends.get(at))
        } else {
            None
        };
        let written = line.ends_with('\r');
        bytes.extend_from_slice(if written { b"\n" } else { kept.copied().unwrap_or(dominant).bytes() });
    }
    bytes
}

/// A text whose lines all end in `\n`, and the way back to where its bytes come from.
struct Plain {
    bytes: Vec<u8>,
    /// Where in `bytes` a `\r` was left out, just before that byte.
    left_out: Vec<usize>,
}

impl Plain {
    fn exactly(body: &[u8]) -> Self {
        Self { bytes: body.to_vec(), left_out: Vec::new() }
    }

    fn of(body: &[u8]) -> Self {
        if line_ends::dominant(body) == End::Cr {
            let bytes = body.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect();
            return Self { bytes, left_out: Vec::new() };
        }
        let mut bytes = Vec::with_capacity(body.len());
        let mut left_out = Vec::new();
        for (at, byte) in body.iter().enumerate() {
            if *byte == b'\r' && body.get(at + 1) == Some(&b'\n') {
                left_out.push(bytes.len());
            } else {
                bytes.push(*byte);
            }
        }
        Self { bytes, left_out }
    }

    fn origin(&self, at: usize) -> usize {
        at + self.left_out.partition_point(|left_out| *left_out < at)
    }
}

/// What is left of a line when a difference is overlooked.
type Rule = fn(&str) -> String;

/// The nearest thing to a text that is not there, in one line.
fn nearest(body: &[u8], old: &str) -> String {
    let text = show::readable(body);
    let lines: Vec<&str> = text.split('\n').collect();
    let wanted: Vec<&str> = old.trim_matches('\n').split('\n').collect();
    if !old.trim().is_empty() && wanted.iter().all(|line| numbered(line)) {
        return "its lines begin with line numbers, which view adds; leave them out".to_owned();
    }
    let rules: [(Rule, &str); 3] = [
        (spaces, "only spaces and tabs differ"),
        (quotes, "only quotation marks, dashes or spaces differ"),
        (letters, "only upper and lower case or spaces differ"),
    ];
    for (rule, difference) in rules {
        if let Some(at) = position(&lines, &wanted, rule) {
            let differs = wanted.iter().zip(&lines[at..]).position(|(one, other)| one != other).unwrap_or(0);
            return format!(
                "{difference} at line {}, where the file has `{}`",
                at + differs + 1,
                quote(lines[at + differs])
            );
        }
    }
    let Some((skipped, first)) = wanted.iter().enumerate().find(|(_, line)| !line.trim().is_empty()) else {
        return "it is only white space; add the text around it".to_owned();
    };
    match lines.iter().position(|line| spaces(line) == spaces(first)) {
        Some(at) => {
            let rest = wanted[skipped..].iter().zip(&lines[at..]);
            let agree = rest.take_while(|(one, other)| spaces(one) == spaces(other)).count();
            match lines.get(at + agree) {
                Some(line) => {
                    format!(
                        "it begins like line {}, but line {} is `{}`",
                        at + 1,
                        at + agree + 1,
                        quote(line)
                    )
                }
                None => format!("it begins like line {}, but the file ends before it does", at + 1),
            }
        }
        None => match lines.iter().position(|line| line.contains(first.trim())) {
            Some(at) => format!("its first line stands within line {}: `{}`", at + 1, quote(lines[at])),
            None => "no line of the file is like its first line; view the file and copy the text from there"
                .to_owned(),
        },
    }
}

/// Where lines follow each other in a text, seen through a rule; the first and the last may be parts of
/// lines.
fn position(lines: &[&str], wanted: &[&str], rule: Rule) -> Option<usize> {
    let ruled: Vec<String> = wanted.iter().map(|line| rule(line)).collect();
    if ruled.iter().all(String::is_empty) || wanted.len() > lines.len() {
        return None;
    }
    let seen: Vec<String> = lines.iter().map(|line| rule(line)).collect();
    let last = ruled.len() - 1;
    seen.windows(ruled.len()).position(|window| {
        window.iter().zip(&ruled).enumerate().all(|(number, (line, wanted))| match number {
            _ if last == 0 => !wanted.is_empty() && line.contains(wanted.as_str()),
            0 => line.ends_with(wanted.as_str()),
            number if number == last => line.starts_with(wanted.as_str()),
            _ => line == wanted,
        })
    })
}

fn spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn quotes(line: &str) -> String {
    let plain = |character| match character {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        '\u{2010}'..='\u{2014}' => '-',
        other => other,
    };
    spaces(&line.chars().map(plain).collect::<String>())
}

fn letters(line: &str) -> String {
    spaces(&line.to_lowercase())
}

fn numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| {
        !number.trim().is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn quote(line: &str) -> String {
    show::cut(&line.escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\""), QUOTE, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(body: &str, old: &str, new: &str) -> String {
        let Found::Once(place) = find(body.as_bytes(), old) else {
            panic!("{old:?} stands once in {body:?}")
        };
        let piece = fit(&body.as_bytes()[place.clone()], old, new, line_ends::dominant(body.as_bytes()));
        let mut bytes = body.as_bytes().to_vec();
        bytes.splice(place, piece);
        String::from_utf8(bytes).unwrap()
    }

    fn check(body: &str, old: &str, new: &str, expected: &str) {
        assert_eq!(replaced(body, old, new), expected, "{body:?}: {old:?} by {new:?}");
    }

    #[test]
    fn replaced_lines_keep_their_endings_and_added_ones_take_the_dominant_one() {
        check("a\r\nb\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\n");
        check("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n");
        check("a\nb\r\nc\n", "b\n", "x\n", "a\nx\r\nc\n");
        check("a\nb\r\nc\n", "b\n", "x\ny\n", "a\nx\ny\r\nc\n");
        check("a\nb\r\nc\n", "b\nc\n", "c\n", "a\nc\n");
        check("a\rb\rc", "a\nb", "a\nx\nb", "a\rx\rb\rc");
        check("one\ntwo", "two", "2", "one\n2");
        check("a\r\nb\r\n", "\nb\n", "\n", "a\r\n");
    }

    #[test]
    fn a_carriage_return_that_is_spelt_out_is_meant() {
        check("a\r\nb\n", "a\r\n", "a\n", "a\r\nb\n");
        check("x\na\r\nb\n", "a\r\nb", "a\r\nc", "x\na\r\nc\n");
        assert!(matches!(find(b"a\nb\n", "a\r\n"), Found::Nowhere(_)));
    }

    #[test]
    fn a_text_that_stands_twice_is_found_twice_even_overlapping() {
        assert_eq!(find(b"a\nb\na\r\nb\n", "a\nb"), Found::Often(vec![1, 3], false));
        assert_eq!(find(b"aaa", "aa"), Found::Often(vec![1, 1], false));
        assert!(matches!(find(&[b'a'; 1_000], "a"), Found::Often(lines, true) if lines.len() == MOST));
    }

    fn check_hint(body: &str, old: &str, expected: &str) {
        let Found::Nowhere(hint) = find(body.as_bytes(), old) else { panic!("{old:?} is not in {body:?}") };
        assert!(hint.contains(expected), "{hint:?} says {expected:?}");
    }

    #[test]
    fn the_nearest_thing_is_named_when_nothing_matches() {
        check_hint(
            "fn a() {\n\treturn;\n}\n",
            "fn a() {\n    return;\n}",
            "only spaces and tabs differ at line 2, where the file has `\\treturn;`",
        );
        check_hint("say “hi”\n", "say \"hi\"", "only quotation marks");
        check_hint("Let x = 1;\n", "let x = 1;", "only upper and lower case");
        check_hint("a\nb\nc\n", "a\nb\nd", "it begins like line 1, but line 3 is `c`");
        check_hint("a\nb", "a\nb\nc\nd\ne", "the file ends before it does");
        check_hint("a\nb\n", "     1\ta\n     2\tb", "line numbers");
        check_hint("abc\n", "zzz", "no line of the file");
        check_hint("abc\n", "\n\n\n", "only white space");
    }

    #[test]
    fn what_is_around_a_replaced_piece_stays_byte_for_byte() {
        let mut seed = 42_u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let ends = ["\n", "\r\n", "\r"];
        for _ in 0..2_000 {
            let mut piece =
                || (0..next(6)).map(|_| format!("line {}{}", next(9), ends[next(3)])).collect::<String>();
            let before = piece();
            let after = piece();
            let body = format!("{before}<needle>{after}");
            assert_eq!(replaced(&body, "<needle>", "<other>"), format!("{before}<other>{after}"));
        }
    }
}
