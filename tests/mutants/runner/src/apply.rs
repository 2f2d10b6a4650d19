//! Finds a text in a source by its content, and puts another in its place.
//!
//! Whitespace does not count, and neither does a comma in front of a closing bracket: both change when
//! rustfmt breaks a line in another place, and what the source means does not.

use crate::Edit;
use std::fmt;
use std::ops::Range;

/// Why an edit cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The text is not there.
    Absent,
    /// The text is there more than once, so that it does not say which is meant.
    Ambiguous,
}

impl fmt::Display for Misfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Absent => "the text to find is not there",
            Self::Ambiguous => "the text to find is there more than once",
        })
    }
}

/// The source with the edit made.
pub fn apply(source: &str, edit: &Edit) -> Result<String, Misfit> {
    let place = place_of(&edit.find, source)?;
    let before = &source[..place.start];
    let after = &source[place.end..];
    Ok([before, edit.put.trim_start(), after].concat())
}

/// Where in the source, in bytes, the text stands. It has to be there exactly once.
pub fn place_of(find: &str, source: &str) -> Result<Range<usize>, Misfit> {
    let find = solid(find);
    let source = solid(source);
    let mut places = (0..source.len()).filter_map(|at| Some(at..end_of_match(&find, &source, at)?));
    let place = places.next().ok_or(Misfit::Absent)?;
    if places.next().is_some() {
        return Err(Misfit::Ambiguous);
    }
    let last = source.get(place.end - 1).ok_or(Misfit::Absent)?;
    let first = source.get(place.start).ok_or(Misfit::Absent)?;
    Ok(first.at..last.at + last.character.len_utf8())
}

/// A character that is no whitespace, and where it stands.
struct Solid {
    at: usize,
    character: char,
}

fn solid(text: &str) -> Vec<Solid> {
    let all = text.char_indices().map(|(at, character)| Solid { at, character });
    all.filter(|solid| !solid.character.is_whitespace()).collect()
}

fn closes(next: Option<&Solid>) -> bool {
    next.is_some_and(|next| matches!(next.character, ')' | ']' | '}' | '>'))
}

/// The index behind the match that begins at `start`, if the text stands there.
fn end_of_match(find: &[Solid], source: &[Solid], start: usize) -> Option<usize> {
    let mut wanted = 0;
    let mut at = start;
    while let Some(next) = find.get(wanted) {
        let here = source.get(at);
        if here.is_some_and(|here| here.character == next.character) {
            wanted += 1;
            at += 1;
        } else if next.character == ',' && closes(here) && at > start {
            // The source lacks a comma that the text has, either before a bracket or at its own end.
            wanted += 1;
        } else if here.is_some_and(|here| here.character == ',') && closes(source.get(at + 1)) && at > start {
            // The source has a comma that the text lacks; the bracket behind it is compared in the next
            // round.
            at += 1;
        } else {
            return None;
        }
    }
    (at > start).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(find: &str, source: &'a str) -> Result<&'a str, Misfit> {
        place_of(find, source).map(|place| &source[place])
    }

    #[test]
    fn whitespace_does_not_count() {
        let source = "fn one() {\n    call(first,\n        second) + 1\n}\n";
        assert_eq!(found("call(first, second)", source), Ok("call(first,\n        second)"));
        assert_eq!(found("call ( first ,second )+1\n", source), Ok("call(first,\n        second) + 1"));
        assert_eq!(found("call(second", source), Err(Misfit::Absent));
        assert_eq!(found("x", "ä x ö"), Ok("x"));
        assert_eq!(found("ö", "ä x ö"), Ok("ö"));
    }

    #[test]
    fn a_comma_before_a_closing_bracket_does_not_count() {
        let broken = "call(\n    first,\n    second,\n);";
        assert_eq!(found("call(first, second);", broken), Ok(broken));
        assert_eq!(found("call(first, second,);", "call(first, second);"), Ok("call(first, second);"));
        assert_eq!(found("{ a: 1 }", "x { a: 1, };"), Ok("{ a: 1, }"));
        assert_eq!(found("call(first second)", broken), Err(Misfit::Absent), "any other comma counts");
        assert_eq!(
            found("second,", "call(first, second)"),
            Ok("second"),
            "the text ends where the bracket is"
        );
        assert_eq!(found("first,", "call(first second)"), Err(Misfit::Absent));
    }

    #[test]
    fn a_text_that_is_there_twice_is_refused() {
        assert_eq!(found("a = 1;", "a = 1; b = 2; a  = 1;"), Err(Misfit::Ambiguous));
        assert_eq!(found("aa", "a a a"), Err(Misfit::Ambiguous), "also where the two overlap");
        assert_eq!(found("a = 1; b", "a = 1; b = 2; a  = 1;"), Ok("a = 1; b"));
        assert_eq!(found("", "a"), Err(Misfit::Absent));
    }

    #[test]
    fn the_rest_of_the_source_stays_as_it_is() {
        let edit = |find: &str, put: &str| Edit { path: String::new(), find: find.into(), put: put.into() };
        let source = "if ready {\n    go( now );\n}\n";
        assert_eq!(
            apply(source, &edit("go(now);", "    stay();")),
            Ok("if ready {\n    stay();\n}\n".to_owned())
        );
        assert_eq!(apply(source, &edit("go(now);", "")), Ok("if ready {\n    \n}\n".to_owned()));
        assert_eq!(apply(source, &edit("go(later);", "")), Err(Misfit::Absent));
    }
}
