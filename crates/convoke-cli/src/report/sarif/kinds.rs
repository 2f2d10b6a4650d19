//! The kinds of problems, one SARIF rule each. A reader of code scanning tells results of two runs apart by
//! rule and path, so a rule stands for a kind of problem and not for a severity, which may change from run to
//! run. A worker does not name a kind: it is read from the words of its claim.

use serde_json::{Value, json};

/// One kind of problem.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The rule's id behind `convoke/`; for ever, because dismissed alerts hang on it.
    id: &'static str,
    /// The rule's name, in one word.
    name: &'static str,
    short: &'static str,
    /// What belongs to it.
    full: &'static str,
    /// What to do about it.
    help: &'static str,
    level: &'static str,
    /// From 0 to 10 for what strangers can use, as code scanning sorts it; none for everything else.
    security: Option<&'static str>,
    /// Beginnings of words of a claim, in small letters and between commas, by which it is known: the first
    /// kind with one of them is it.
    signs: &'static str,
}

/// All kinds in the order in which a claim is tried; the last takes what no other knows.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        id: "secret",
        name: "SecretInFile",
        short: "A secret stands in a file",
        full: "A password, key or token stands in a file that others can read.",
        help: "Withdraw the secret where it was issued, then take it out of the file: it stays readable in \
            the history.",
        level: "error",
        security: Some("8.0"),
        signs: "\
            secret, password, passphrase, credential, api key, api_key, access key, private key, access \
            token, token may stand, github token, slack token, stripe key, aws key, hard coded key, \
            hardcoded key, hard coded token, hardcoded token",
    },
    Kind {
        id: "untrusted-input",
        name: "UntrustedInput",
        short: "Input of strangers reaches something that obeys it",
        full: "Text or a path from outside becomes a part of a command, a query, a page, a file name or code \
            without being checked.",
        help: "Pass the value as data (arguments, bound parameters, escaped text), or refuse what is not \
            expected.",
        level: "error",
        security: Some("8.0"),
        signs: "\
            injection, injected, inject, xss, cross site, csrf, ssrf, path traversal, directory traversal, \
            sanitis, sanitiz, unsanitis, unsanitiz, unescaped, not escaped, untrusted, deseriali, calls \
            eval, shell true, open redirect, prototype pollution",
    },
    Kind {
        id: "access",
        name: "AccessControl",
        short: "Something is open to those it is not meant for",
        full: "A check of who asks is missing or can be passed, or what is sent and stored is not protected.",
        help: "Check who asks at the place that answers, and refuse by default.",
        level: "error",
        security: Some("7.0"),
        signs: "\
            authenticat, authori, unauthori, unauthenticat, privilege, access control, world readable, world \
            writable, tls, certificate, plaintext, unencrypted, encrypt, weak hash, md5, sha1, cors, sandbox \
            escape, symlink",
    },
    Kind {
        id: "memory-safety",
        name: "MemorySafety",
        short: "Memory may be used wrongly",
        full: "Memory is read or written where it is not, or no longer, the program's own.",
        help: "Bound every access and give each allocation one owner.",
        level: "error",
        security: Some("7.0"),
        signs: "\
            use after free, double free, buffer over, out of bounds write, dangling, uninitiali, undefined \
            behavio, null pointer, null dereference, memory corruption, unsound, unsafe block, unsafe code",
    },
    Kind {
        id: "concurrency",
        name: "Concurrency",
        short: "Things that happen at the same time get in each other's way",
        full: "A race, a deadlock, or state that several threads or processes change without agreeing on an \
            order.",
        help: "Make the check and the change one step, or take the locks in one order.",
        level: "warning",
        security: None,
        signs: "\
            race, racy, races, deadlock, livelock, thread safe, not atomic, non atomic, toctou, concurren, \
            lock order, data race, interleav",
    },
    Kind {
        id: "conflict",
        name: "MergeConflict",
        short: "A merge conflict was not resolved",
        full: "The marks of a merge conflict still stand in a file.",
        help: "Choose what is to stand there and take out the marks.",
        level: "error",
        security: None,
        signs: "merge conflict, conflict marker",
    },
    Kind {
        id: "error-handling",
        name: "ErrorHandling",
        short: "An error is not handled",
        full: "An error ends the program, is dropped, or is told in a way that helps no one; or a wait has \
            no end.",
        help: "Handle the error where something can be done about it, or hand it on with what was tried.",
        level: "warning",
        security: None,
        signs: "\
            unwrap, panic, todo or unimplemented, unimplemented, error, exception, catch, bare except, \
            swallow, unhandled, unchecked, crash, abort, timeout, time out, retry, retries, set e, exit \
            code, errexit",
    },
    Kind {
        id: "resources",
        name: "Resources",
        short: "Something is taken and not given back, or has no bound",
        full: "A leak, a handle that stays open, or memory, disk or work that can grow without a limit.",
        help: "Give back in every way out, and set a bound.",
        level: "warning",
        security: None,
        signs: "\
            leak, never closed, not closed, never freed, never frees, unbounded, unlimited, without limit, \
            no limit, exhaust, denial of service, grows, file descriptor",
    },
    Kind {
        id: "performance",
        name: "Performance",
        short: "It takes more time or memory than it needs",
        full: "Work that is done again and again, or in a way that grows faster than what it is done on.",
        help: "Measure it first; then do the work once, or in a way that grows with its input.",
        level: "note",
        security: None,
        signs: "\
            slow, performance, quadratic, inefficien, needless alloc, needless copy, unnecessary clone, n 1 \
            quer, latency, blocks the",
    },
    Kind {
        id: "data",
        name: "InvalidData",
        short: "A data file cannot be read",
        full: "A file of a format (JSON, TOML, YAML and the like) that no reader of this format accepts.",
        help: "Mend the file at the named line and let its reader try it.",
        level: "error",
        security: None,
        signs: "not valid, invalid json, invalid toml, invalid yaml, malformed",
    },
    Kind {
        id: "tests",
        name: "Tests",
        short: "Tests are missing, switched off or fail",
        full: "What no test looks at, a test that is passed over, fails or cannot fail.",
        help: "Write the test that fails without the code, and switch on again what is switched off.",
        level: "note",
        security: None,
        signs: "test, untested, coverage, flaky, assertion",
    },
    Kind {
        id: "documentation",
        name: "Documentation",
        short: "A text says what is not so, or is missing",
        full: "Documentation, comments, links and messages that are wrong, lead nowhere or are not there.",
        help: "Say what is so, or take the text away.",
        level: "note",
        security: None,
        signs: "\
            document, docs, docstring, readme, license, licence, link, typo, misleading comment, comment \
            says, outdated comment",
    },
    Kind {
        id: "dependencies",
        name: "Dependencies",
        short: "Something from elsewhere is old, loose or missing",
        full: "Packages, actions and images from elsewhere that are outdated, not pinned, unused or known to \
            be faulty.",
        help: "Pin it, bring it up to date, or do without it.",
        level: "warning",
        security: None,
        signs: "\
            dependenc, outdated, unpinned, not pinned, lockfile, lock file, package version, vulnerable \
            version, deprecated",
    },
    Kind {
        id: "configuration",
        name: "Configuration",
        short: "A setting or a build does not do what it should",
        full: "Settings, build files and jobs of CI.",
        help: "Set it as it is meant, and have something fail where it is not.",
        level: "warning",
        security: None,
        signs: "\
            config, setting, environment variable, build script, gitignore, dockerfile, workflow file, ci \
            job, makefile",
    },
    Kind {
        id: "maintainability",
        name: "Maintainability",
        short: "It is harder to read or to change than it needs to be",
        full: "Left-over marks and debugging aids, very long functions and files, copies, and what nothing \
            uses.",
        help: "Take away what is not used, and cut what is too long along what it does.",
        level: "note",
        security: None,
        signs: "\
            todo, fixme, hack, xxx, marker, debugging, debug print, function of, source file of, too long, \
            very long, duplicat, copy of, copied, dead code, unused, unreachable, complex, naming, magic \
            number, left behind, commented out",
    },
    Kind {
        id: "correctness",
        name: "Correctness",
        short: "It does not do what it should",
        full: "A wrong result, a case that is forgotten, a bound that is off, a promise that is not kept.",
        help: "Write a test that shows it, then mend it.",
        level: "warning",
        security: None,
        signs: "\
            wrong, incorrect, off by, overflow, underflow, out of range, out of bounds, division by, never, \
            always, missing, forgot, bug, broken, breaks, fails, lost, truncat, rounding, not handled, \
            ignored, ignores, inconsisten, mismatch, infinite loop, returns, does not, cannot, null",
    },
    Kind {
        id: "other",
        name: "Other",
        short: "Something that fits no other kind",
        full: "A finding whose words are known for no kind of problem.",
        help: "Read the claim, its evidence and what a verifier said of it.",
        level: "note",
        security: None,
        signs: "",
    },
];

/// The place of a claim's kind among [`KINDS`].
pub(super) fn of_claim(claim: &str) -> usize {
    let words = words(claim);
    let known = KINDS.iter().position(|kind| kind.signs().any(|sign| words.contains(&format!(" {sign}"))));
    known.unwrap_or(KINDS.len() - 1)
}

/// The words of a text in small letters, each behind one blank.
fn words(text: &str) -> String {
    let plain: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { ' ' }).collect();
    plain.split_whitespace().map(|word| format!(" {word}")).collect()
}

impl Kind {
    fn signs(&self) -> impl Iterator<Item = &'static str> {
        self.signs.split(", ").filter(|sign| !sign.is_empty())
    }

    /// The rule's id.
    pub(super) fn rule_id(&self) -> String {
        format!("convoke/{}", self.id)
    }

    /// The rule.
    pub(super) fn rule(&self) -> Value {
        let Self { name, short, full, help, level, .. } = self;
        let mut properties = json!({
            "precision": "medium",
            "problem.severity": match *level { "note" => "recommendation", level => level },
            "tags": [self.id],
        });
        if let Some(security) = self.security {
            properties["security-severity"] = json!(security);
            properties["tags"] = json!(["security", self.id]);
        }
        let origin = "An agent claimed it and the words of its claim say that it is of this kind; what a \
            verifier came to is in the message.";
        json!({
            "id": self.rule_id(),
            "name": name,
            "shortDescription": { "text": format!("{short}.") },
            "fullDescription": { "text": full },
            "help": { "text": format!("{help} {origin}"), "markdown": format!("{help}\n\n{origin}") },
            "defaultConfiguration": { "level": level },
            "properties": properties,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_of_the_kind_that_its_words_say() {
        let check = |claim: &str, expected: &str| assert_eq!(KINDS[of_claim(claim)].id, expected, "{claim}");
        check("A GitHub token may stand in the file as a literal", "secret");
        check("The name is pasted into the query: SQL injection", "untrusted-input");
        check("`/admin` is served without authentication", "access");
        check("`buf` is read after free: use-after-free", "memory-safety");
        check("Two writers race for the file", "concurrency");
        check("A merge conflict was not resolved: its markers are still in the file", "conflict");
        check("`.unwrap()` outside tests: it may panic, if this can fail", "error-handling");
        check("`panic!` outside tests", "error-handling");
        check("A shell script without `set -e`: it goes on after a command that failed", "error-handling");
        check("it never frees", "resources");
        check("Looking a name up is quadratic", "performance");
        check("This file is not valid JSON: a comma too many", "data");
        check("a test fails", "tests");
        check("No test mentions this source file, or what it defines, by name: it may be untested", "tests");
        check("The relative link to `a.md` leads nowhere", "documentation");
        check("There is no README at the top of this directory", "documentation");
        check("`left-pad` is unpinned", "dependencies");
        check("The build script ignores its settings", "configuration");
        check("A TODO marker was left in a comment", "maintainability");
        check("A function of 120 lines, more than 80", "maintainability");
        check("A file was left behind by an editor or a patch", "maintainability");
        check("an index may be out of range", "correctness");
        check("it is written in Rust", "other");
        check("", "other");
        // A sign begins a word: a trace is no race.
        check("Traces are written in Rust", "other");
    }

    #[test]
    fn every_rule_says_what_code_scanning_shows() {
        let mut ids = std::collections::BTreeSet::new();
        for kind in KINDS {
            let rule = kind.rule();
            assert!(ids.insert(kind.rule_id()), "{} is there twice", kind.id);
            for member in ["shortDescription", "fullDescription", "help"] {
                let text = rule[member]["text"].as_str().unwrap();
                assert!(text.ends_with('.') && text.len() <= 1024, "{member} of {}: {text}", kind.id);
            }
            let tagged = rule["properties"]["tags"].to_string().contains("security");
            assert_eq!(tagged, rule["properties"]["security-severity"].is_string(), "{}", kind.id);
            assert!(
                kind.signs().all(|sign| words(sign) == format!(" {sign}")),
                "{}: {:?}",
                kind.id,
                kind.signs
            );
        }
        assert_eq!(KINDS.iter().filter(|kind| kind.signs.is_empty()).count(), 1, "the last takes the rest");
    }
}
