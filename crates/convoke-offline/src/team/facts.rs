//! Reads what the commands of a team printed. A result that does not come to its end is none.

use std::collections::BTreeMap;

use crate::read::decoded;

/// The lines that one command printed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sight {
    counts: BTreeMap<String, u64>,
    /// How many findings of each kind there are, and in how many files.
    pub(super) kinds: BTreeMap<String, (u64, u64)>,
    pub(super) items: Vec<Spot>,
    pub(super) areas: Vec<Area>,
    /// The lines read for each citation.
    lines: BTreeMap<usize, Vec<String>>,
    ends: BTreeMap<usize, i64>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) kind: String,
    pub(super) path: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) quote: String,
    pub(super) detail: String,
}

/// The files of one language in one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Area {
    /// At most two levels deep; `.` at the top.
    pub(super) path: String,
    pub(super) language: String,
    pub(super) files: u64,
    pub(super) lines: u64,
    pub(super) tests: u64,
}

/// What was read for a citation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cited<'a> {
    /// It was not read.
    Nothing,
    NoFile,
    /// The file ends before the last line.
    TooShort,
    Lines(&'a [String]),
}

impl Sight {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut sight = Self::default();
        let mut whole = false;
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields.as_slice() {
                ["end"] => whole = true,
                ["N", name, number, "."] => {
                    sight.counts.insert((*name).to_owned(), number.parse().ok()?);
                }
                ["K", kind, number, files, "."] => {
                    sight.kinds.insert((*kind).to_owned(), (number.parse().ok()?, files.parse().ok()?));
                }
                ["A", path, language, files, lines, tests, "."] => sight.areas.push(Area {
                    path: decoded(path),
                    language: (*language).to_owned(),
                    files: files.parse().ok()?,
                    lines: lines.parse().ok()?,
                    tests: tests.parse().ok()?,
                }),
                ["R", index, _, text, "."] => {
                    sight.lines.entry(index.parse().ok()?).or_default().push((*text).to_owned());
                }
                ["E", index, held, "."] => drop(sight.ends.insert(index.parse().ok()?, held.parse().ok()?)),
                ["I", _, kind, path, first, last, quote, detail, "."] => sight.items.push(Spot {
                    kind: (*kind).to_owned(),
                    path: decoded(path),
                    first: first.parse().ok()?,
                    last: last.parse().ok()?,
                    // What is not UTF-8 came as a sign of replacement, which does not stand in the file.
                    quote: quote.split('\u{fffd}').next().unwrap_or_default().trim_end().to_owned(),
                    detail: detail.split('\u{fffd}').next().unwrap_or_default().to_owned(),
                }),
                _ => {}
            }
        }
        whole.then_some(sight)
    }

    pub(super) fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// How many findings there are, listed or not.
    pub(super) fn total(&self) -> u64 {
        self.kinds.values().map(|(number, _)| number).sum()
    }

    /// How many files were looked into.
    pub(super) fn looked(&self) -> u64 {
        self.count("looked").max(self.count("scanned"))
    }

    pub(super) fn cited(&self, index: usize) -> Cited<'_> {
        match self.ends.get(&index) {
            None => Cited::Nothing,
            Some(-1) => Cited::NoFile,
            Some(0) => Cited::TooShort,
            Some(_) => Cited::Lines(self.lines.get(&index).map(Vec::as_slice).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_its_end_is_none_and_a_torn_line_is_left_out() {
        assert_eq!(Sight::parse("N\tlooked\t3\t."), None);
        let sight =
            Sight::parse("I\t0\tdebug\ta.py\t3\t3\tx()\td\t.\nI\t0\tdebug\tb.py\t3\nE\t0\t-1\t.\nend")
                .unwrap();
        assert_eq!((sight.items.len(), sight.cited(0), sight.cited(1)), (1, Cited::NoFile, Cited::Nothing));
    }
}
