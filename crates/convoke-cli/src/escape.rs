//! Lines that a CI runner would obey, made into lines that it only prints. GitHub's obeys a line that begins
//! with `::` behind blanks, and `##[` wherever it stands; others obey `##vso[` and `##teamcity[`. A backslash
//! is put in, nothing is taken out, so that a person can still read it. It knows nothing of files, stdout or
//! stderr.

use std::borrow::Cow;

/// What a text is, and so how something is put into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// JSON, whose values stay the same.
    Json,
}

/// Where an output stands in its line, so that a mark that comes in pieces is not missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Escaper {
    line: Line,
    hash: Hash,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    /// At its beginning, or behind what could be blanks.
    #[default]
    Begins,
    /// Behind a colon that was the first thing in it.
    Colon,
    /// Further on.
    Goes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Hash {
    #[default]
    None,
    /// Behind one `#`.
    One,
    /// Behind `##`, or that and letters.
    Two,
}

impl Escaper {
    /// The bytes with everything escaped that a runner would obey.
    pub(crate) fn pass<'a>(&mut self, bytes: &'a [u8], form: Form) -> Cow<'a, [u8]> {
        let mut changed: Option<Vec<u8>> = None;
        for (at, byte) in bytes.iter().enumerate() {
            let put_in: Option<&[u8]> = match (byte, self.line, self.hash, form) {
                (b':', Line::Colon, ..) => Some(b"\\:"),
                (b'[', _, Hash::Two, Form::Text) => Some(b"\\["),
                (b'[', _, Hash::Two, Form::Json) => Some(b"\\u005b"),
                _ => None,
            };
            match (put_in, &mut changed) {
                (Some(put_in), changed) => {
                    changed.get_or_insert_with(|| bytes[..at].to_vec()).extend_from_slice(put_in);
                }
                (None, Some(changed)) => changed.push(*byte),
                (None, None) => {}
            }
            self.step(*byte);
        }
        changed.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    fn step(&mut self, byte: u8) {
        self.line = match (byte, self.line) {
            (b'\n' | b'\r', _) => Line::Begins,
            // Blanks are of many kinds, and a character may come in two pieces: what is no ASCII could be
            // one.
            (..=b' ' | 0x7f.., Line::Begins) => Line::Begins,
            (b':', Line::Begins) => Line::Colon,
            _ => Line::Goes,
        };
        self.hash = match (byte, self.hash) {
            (b'#', Hash::None) => Hash::One,
            (b'#', Hash::One | Hash::Two) => Hash::Two,
            (byte, Hash::Two) if byte.is_ascii_alphabetic() => Hash::Two,
            _ => Hash::None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(form: Form, pieces: &[&str], expected: &str) {
        let mut escaper = Escaper::default();
        let passed: Vec<u8> =
            pieces.iter().flat_map(|piece| escaper.pass(piece.as_bytes(), form).into_owned()).collect();
        assert_eq!(String::from_utf8(passed).unwrap(), expected, "{pieces:?}");
    }

    #[test]
    fn what_a_runner_obeys_is_escaped_and_stays_readable() {
        for (text, expected) in [
            ("::add-mask::x\n", ":\\:add-mask::x\n"),
            ("a\n  \t::stop-commands::y\n", "a\n  \t:\\:stop-commands::y\n"),
            ("a\r::set-output name=x::y", "a\r:\\:set-output name=x::y"),
            ("\u{a0}\u{3000}::error::x", "\u{a0}\u{3000}:\\:error::x"),
            ("x ##[add-mask]y", "x ##\\[add-mask]y"),
            ("###[group]", "###\\[group]"),
            ("##vso[task.setvariable]x ##teamcity[y]", "##vso\\[task.setvariable]x ##teamcity\\[y]"),
        ] {
            check(Form::Text, &[text], expected);
            let pieces: Vec<String> = text.chars().map(String::from).collect();
            check(Form::Text, &pieces.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn what_no_runner_obeys_stays_as_it_is() {
        for text in
            ["std::vector x\n", "a ::b", ": :", "## Title [1]\n", "# [x]", "#[test]\n", "- :: -", ":a:"]
        {
            check(Form::Text, &[text], text);
            assert!(matches!(Escaper::default().pass(text.as_bytes(), Form::Text), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn json_has_the_same_values_as_before() {
        let value = serde_json::json!({"text": "::add-mask::x\n##[add-mask]y ##vso[z] [1]", "more": ["::a"]});
        for text in [value.to_string(), format!("{value:#}")] {
            let mut escaper = Escaper::default();
            let passed = escaper.pass(text.as_bytes(), Form::Json).into_owned();
            assert_eq!(serde_json::from_slice::<serde_json::Value>(&passed).unwrap(), value);
            let passed = String::from_utf8(passed).unwrap();
            assert!(!passed.contains("##[") && !passed.contains("##vso["), "{passed}");
            assert!(!passed.lines().any(|line| line.trim_start().starts_with("::")), "{passed}");
        }
    }
}
