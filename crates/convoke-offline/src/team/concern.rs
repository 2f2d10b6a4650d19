//! The concerns a tree is cut into, as data: what each is called, what a worker is told, which files it is
//! about, and by which words a subtask that was not written here is taken for it.

use super::look::Recipe;

/// One concern: something that can be checked by commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Concern {
    Conflicts,
    Secrets,
    Panics,
    Swallowed,
    Data,
    Links,
    Shell,
    Debug,
    Markers,
    Size,
    Skipped,
    Hygiene,
    Untested,
}

/// What is known of a concern.
pub(super) struct About {
    pub(super) concern: Concern,
    /// The beginning of a subtask about it.
    pub(super) title: &'static str,
    /// What a worker is told.
    pub(super) told: &'static str,
    /// The languages whose files it is about; empty: any file.
    pub(super) languages: &'static [&'static str],
    /// Words by which a subtask in other words is recognised, each in small letters.
    pub(super) signs: &'static [&'static str],
    /// Whether it may be cut by directory.
    pub(super) cuts: bool,
}

pub(super) const SOURCES: &[&str] =
    &["Rust", "C", "C++", "Go", "JavaScript", "TypeScript", "Java", "Python", "Shell"];
const WITH_TESTS_OFF: &[&str] = &["Rust", "JavaScript", "TypeScript", "Python"];

/// All concerns, the gravest first.
pub(super) const ALL: &[About] = &[
    About {
        concern: Concern::Conflicts,
        title: "Unresolved merge conflicts",
        told: "Find conflict markers (seven times <, = and > at the beginning of lines, in this order) that \
            nobody resolved. Markers inside string literals, in fenced blocks of documentation and in tests \
            do not count.",
        languages: &[],
        signs: &["merge conflict", "conflict marker", "unresolved conflict"],
        cuts: false,
    },
    About {
        concern: Concern::Secrets,
        title: "Hard-coded secrets",
        told: "Find access keys, tokens, private keys and passwords that stand in files as literals. \
            Documentation, comments, tests, examples and placeholders do not count. Quote no more than the \
            beginning of a secret.",
        languages: &[],
        signs: &["secret", "credential", "password", "api key", "hard-coded", "hardcoded"],
        cuts: false,
    },
    About {
        concern: Concern::Panics,
        title: "Panics in Rust code outside tests",
        told: "Find unwrap(), expect(\"…\"), panic!, todo! and unimplemented! in Rust code. Tests, comments \
            and strings do not count.",
        languages: &["Rust"],
        signs: &["unwrap", "panic", "expect("],
        cuts: true,
    },
    About {
        concern: Concern::Swallowed,
        title: "Swallowed errors",
        told: "Find errors that are caught and dropped: a bare except, an except that only passes, an empty \
            catch, a Go error that is not looked at. Tests and handlers with a comment that says why do not \
            count.",
        languages: &["Python", "JavaScript", "TypeScript", "Java", "Go"],
        signs: &[
            "swallow",
            "bare except",
            "empty catch",
            "except: pass",
            "ignored error",
            "error handling",
            "dropped error",
        ],
        cuts: true,
    },
    About {
        concern: Concern::Data,
        title: "Invalid JSON, TOML and YAML files",
        told: "Find files that no reader of their format accepts: a comma too many, a bracket not closed, a \
            table defined twice, a tab for indentation. Dialects with comments, templates and tests do not \
            count.",
        languages: &["JSON", "TOML", "YAML"],
        signs: &["invalid json", "json", "toml", "yaml", "malformed"],
        cuts: false,
    },
    About {
        concern: Concern::Links,
        title: "Broken relative links in Markdown",
        told: "Find relative links whose target does not exist. Links inside code, to other sites and above \
            the directory do not count.",
        languages: &["Markdown"],
        signs: &["broken link", "relative link", "dead link", "links in markdown", "broken relative"],
        cuts: false,
    },
    About {
        concern: Concern::Shell,
        title: "Shell scripts without set -e",
        told: "Find scripts (with a first line that names a shell) that go on after a command that failed, \
            because they set neither -e nor errexit.",
        languages: &["Shell"],
        signs: &["set -e", "errexit", "shell script"],
        cuts: false,
    },
    About {
        concern: Concern::Debug,
        title: "Leftover debugging aids",
        told: "Find dbg!, breakpoint(), pdb.set_trace(), debugger, console.log and prints that say DEBUG. \
            Tests, comments, strings and, for console.log, command-line tools do not count.",
        languages: &["Rust", "Python", "JavaScript", "TypeScript", "Go", "Java"],
        signs: &[
            "debug print",
            "debugging",
            "console.log",
            "dbg!",
            "debug statement",
            "debug output",
            "print statement",
        ],
        cuts: false,
    },
    About {
        concern: Concern::Markers,
        title: "Leftover TODO, FIXME, XXX and HACK markers",
        told: "Find such markers in comments of source files. Markers inside string literals, and comments \
            that speak about markers, do not count.",
        languages: SOURCES,
        signs: &["todo", "fixme", "leftover marker", "hack comment"],
        cuts: true,
    },
    About {
        concern: Concern::Size,
        title: "Very long functions and files",
        told: "Find functions of more than 80 lines and source files of more than 1,000. A function whose \
            end is not certain does not count.",
        languages: SOURCES,
        signs: &["long function", "long method", "very long", "large file", "long file", "oversized"],
        cuts: true,
    },
    About {
        concern: Concern::Skipped,
        title: "Tests that are switched off",
        told: "Find tests that are skipped or ignored without a condition, and tests that are run alone \
            (.only).",
        languages: WITH_TESTS_OFF,
        signs: &["skipped test", "ignored test", "disabled test", "focused test", "switched off", ".only"],
        cuts: false,
    },
    About {
        concern: Concern::Hygiene,
        title: "Missing README or license, stray files",
        told: "See whether there are a README and a license at the top, and find files that editors and \
            patches leave behind.",
        languages: &[],
        signs: &["readme", "license", "licence", "stray file"],
        cuts: false,
    },
    About {
        concern: Concern::Untested,
        title: "Source files that no test mentions",
        told: "Find source files that hold no test themselves and whose name stands as a word in no test.",
        languages: SOURCES,
        signs: &["untested", "no test", "without tests", "test coverage", "missing tests"],
        cuts: false,
    },
];

impl Concern {
    pub(super) fn about(self) -> &'static About {
        ALL.iter().find(|about| about.concern == self).unwrap_or(&ALL[0])
    }

    /// Which concern a text is about, by its words; what stands in its first line counts twice.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(about) = ALL.iter().find(|about| text.starts_with(about.title)) {
            return Some(about.concern);
        }
        let low = text.to_lowercase();
        let first = low.lines().next().unwrap_or_default();
        let score = |about: &About| {
            about
                .signs
                .iter()
                .map(|sign| usize::from(low.contains(sign)) + usize::from(first.contains(sign)))
                .sum()
        };
        let scores = ALL.iter().map(|about| (score(about), about.concern));
        let best: (usize, Self) = scores.rev().max_by_key(|(score, _): &(usize, Self)| *score)?;
        (best.0 > 0).then_some(best.1)
    }

    /// How it is checked.
    pub(super) fn recipe(self) -> Recipe {
        Recipe::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Concern>) {
        assert_eq!(Concern::of_text(text), expected, "{text}");
    }

    #[test]
    fn a_subtask_is_recognised_by_its_title_or_by_its_words() {
        for about in ALL {
            check(&format!("{} in `src/`\nMore.", about.title), Some(about.concern));
        }
        check("Look for TODO and FIXME comments in src/", Some(Concern::Markers));
        check("Check every unwrap() in the parser", Some(Concern::Panics));
        check("Audit for hardcoded credentials", Some(Concern::Secrets));
        check("Are all relative links in Markdown alive? Any broken link?", Some(Concern::Links));
        check("Explain the retry policy of the governor", None);
        check("", None);
    }
}
