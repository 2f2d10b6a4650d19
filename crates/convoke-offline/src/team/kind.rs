//! The kinds of findings, as data: how much each matters and what is claimed. A verifier knows a claim by
//! these words.

use super::concern::Concern;

/// One kind of finding.
pub(super) struct Kind {
    /// What the commands call it.
    pub(super) name: &'static str,
    pub(super) concern: Concern,
    pub(super) severity: &'static str,
    /// What is claimed; `§` stands for the detail that the command printed.
    claim: &'static str,
    /// How the rule came to it, for a verifier's evidence.
    pub(super) rule: &'static str,
}

macro_rules! kinds {
    ($($name:literal $concern:ident $severity:literal $claim:literal $rule:literal;)*) => {
        /// All kinds.
        pub(super) const KINDS: &[Kind] = &[$(Kind {
            name: $name, concern: Concern::$concern, severity: $severity, claim: $claim, rule: $rule,
        },)*];
    };
}

kinds! {
    "comment" Markers "low" "A § marker was left in a comment" "it stands in a comment, not in a string";
    "conflict" Conflicts "high" "A merge conflict was not resolved: its markers are still in the \
        file" "all three marks stand at the beginning of lines";
    "secret" Secrets "high" "§ may stand in the file as a literal" "it has the form of one, and is no \
        placeholder, comment, test or documentation";
    "rust_unwrap" Panics "medium" "`.unwrap()` outside tests: it may panic, if this can \
        fail" "it is code, not a comment, a string or a test";
    "rust_expect" Panics "low" "`.expect(…)` outside tests: it may panic, if this can \
        fail" "it is code, not a comment, a string or a test";
    "rust_panic" Panics "low" "`panic!` outside tests: it ends the program, if it is \
        reached" "it is code, not a comment, a string or a test";
    "rust_todo" Panics "medium" "`todo!` or `unimplemented!` outside tests: unfinished code that panics when \
        it is reached" "it is code, not a comment, a string or a test";
    "py_bare_except" Swallowed "medium" "A bare `except:` catches everything, also what should end the \
        program" "it is code outside tests";
    "py_except_pass" Swallowed "medium" "An `except Exception` that only passes: the error is \
        swallowed" "nothing but `pass` follows, and no comment";
    "empty_catch" Swallowed "medium" "A `catch` with nothing in it: the error is \
        swallowed" "nothing stands in the block, also no comment";
    "go_dropped" Swallowed "low" "All results of a Go call go to `_`: its error is \
        dropped" "it is code outside tests, without a comment";
    "go_empty_if" Swallowed "medium" "An `if err != nil` with nothing in it: the error is \
        swallowed" "nothing stands in the block, also no comment";
    "sh_no_errexit" Shell "medium" "A shell script without `set -e`: it goes on after a command that \
        failed" "no line of it sets -e or errexit";
    "debug" Debug "low" "§ was left in: an aid for debugging" "it is code outside tests";
    "invalid_json" Data "high" "This file is not valid JSON: §" "reading it from the top fails here";
    "invalid_toml" Data "high" "This file is not valid TOML: §" "reading it from the top fails here";
    "invalid_yaml" Data "high" "This file is not valid YAML: §" "reading it from the top fails here";
    "broken_link" Links "medium" "The relative link to `§` leads nowhere" "there is no such file";
    "long_function" Size "low" "A function of § lines, more than 80" "its end was found by braces or \
        indentation";
    "long_file" Size "info" "A source file of § lines, more than 1,000" "its lines were counted";
    "test_only" Skipped "medium" "A test is run alone (§): all others of its file are passed \
        over" "it is code, not a comment or a string";
    "test_skipped" Skipped "info" "A test is switched off (§)" "it is code, not a comment or a string";
    "missing_readme" Hygiene "low" "There is no README at the top of this directory" "the files were listed";
    "missing_license" Hygiene "low" "There is no license at the top of this \
        directory" "the files were listed";
    "stray_file" Hygiene "low" "A file was left behind by an editor or a patch" "the files were listed";
    "untested" Untested "info" "No test mentions this source file, or what it defines, by name: it may be \
        untested" "neither its name nor a name that it defines stands as a word in a test, and it holds none";
}

/// What is claimed of a line that holds words of a subtask for which there is no rule.
const HIT: &str = "The words of the subtask that this line holds: ";

impl Kind {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The claim of a finding with this detail.
    pub(super) fn claim(&self, detail: &str) -> String {
        self.claim.replace('§', detail)
    }

    /// The kind whose claim this is.
    pub(super) fn of_claim(claim: &str) -> Option<&'static Self> {
        let fits = |kind: &&Self| match kind.claim.split_once('§') {
            Some((before, after)) => {
                claim.len() > before.len() + after.len()
                    && claim.starts_with(before)
                    && claim.ends_with(after)
            }
            None => kind.claim == claim,
        };
        KINDS.iter().find(fits)
    }

    /// How grave each of these kinds is, as names and numbers in turn; the gravest has the highest.
    pub(super) fn ranks(names: &str) -> String {
        let rank =
            |kind: &Self| ["info", "low", "medium", "high"].iter().position(|word| *word == kind.severity);
        let kinds = names.split_whitespace().filter_map(Self::named);
        kinds
            .map(|kind| format!("{} {}", kind.name, rank(kind).unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The names of a concern's kinds, between spaces.
    pub(super) fn names(concern: Concern) -> String {
        let names: Vec<&str> =
            KINDS.iter().filter(|kind| kind.concern == concern).map(|kind| kind.name).collect();
        format!(" {} ", names.join(" "))
    }
}

/// The claim of a line with these words.
pub(super) fn hit_claim(words: &str) -> String {
    format!("{HIT}{words}")
}

/// The words of such a claim.
pub(super) fn hit_words(claim: &str) -> Option<Vec<&str>> {
    Some(claim.strip_prefix(HIT)?.split(", ").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_known_again_and_no_two_are_alike() {
        for kind in KINDS {
            assert_eq!(Kind::of_claim(&kind.claim("a `b` c")).map(|known| known.name), Some(kind.name));
        }
        assert!(Kind::of_claim("The sky is green").is_none());
        assert_eq!(hit_words(&hit_claim("a, b")), Some(vec!["a", "b"]));
    }
}
