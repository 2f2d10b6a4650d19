//! How a person goes on later: the command that resumes a session, with as much about the journal as can be
//! pasted. It never repeats a secret, and never writes a command that would look for the session in the wrong
//! place.

use convoke_journal::Location;
use convoke_kernel::Sandbox;

use crate::settings::{DOC_TEST_MODE, Origin, Settings};

/// What a later command has to say to go on with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Naming {
    journal: JournalHint,
    /// Commands run without a sandbox. A resume does not inherit that, so its command line says it again.
    unconfined: bool,
}

/// What a later command needs to find the same journal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum JournalHint {
    /// Nothing: it is the usual one, or the environment or the configuration names it then as now.
    Nothing,
    /// This `--journal`.
    Flag(String),
    /// The same `--journal`, which cannot be shown as it was given.
    SameFlag,
    /// No flag helps: the journal was in memory, or in a place that is removed, and is gone.
    Gone,
}

impl Naming {
    /// What has to be said to go on with a session of these settings.
    pub(crate) fn of(settings: &Settings) -> Self {
        let journal = JournalHint::new(&settings.journal, settings.origin("journal"));
        Self { journal, unconfined: settings.confine.sandbox == Sandbox::Off }
    }

    /// The command that goes on with a session; `None` if the journal is gone.
    pub(crate) fn resume(&self, run: &str) -> Option<String> {
        let off = if self.unconfined { " --sandbox off" } else { "" };
        self.command(&format!("resume {run}{off}"))
    }

    /// A command about something in the journal, such as `sessions diff s_…`, if it will still be there.
    pub(crate) fn command(&self, words: &str) -> Option<String> {
        match &self.journal {
            JournalHint::Nothing => Some(format!("convoke {words}")),
            JournalHint::Flag(journal) => Some(format!("convoke {words} --journal {}", shell_word(journal))),
            // A shell refuses the brackets, so this line cannot be pasted as it is and ask another journal.
            JournalHint::SameFlag => Some(format!("convoke {words} (with the same --journal)")),
            JournalHint::Gone => None,
        }
    }
}

impl JournalHint {
    fn new(journal: &Location, origin: Option<&Origin>) -> Self {
        match origin {
            Some(Origin::Variable(DOC_TEST_MODE)) => Self::Gone,
            _ if !journal.outlives_the_process() => Self::Gone,
            None | Some(Origin::Default | Origin::File { .. } | Origin::Variable(_)) => Self::Nothing,
            Some(Origin::Flag(_)) => journal.as_argument().map_or(Self::SameFlag, Self::Flag),
        }
    }
}

/// A word that a shell reads back as it is.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(journal: &str, origin: &Origin, expected: Option<&str>) {
        let naming =
            Naming { journal: JournalHint::new(&journal.parse().unwrap(), Some(origin)), unconfined: false };
        assert_eq!(naming.resume("s_x").as_deref(), expected, "{journal} of {origin}");
    }

    #[test]
    fn a_resume_command_names_what_a_flag_named() {
        let flag = Origin::Flag("--journal");
        check("/a/j.db", &flag, Some("convoke resume s_x --journal /a/j.db"));
        check("/a b/it's.db", &flag, Some(r"convoke resume s_x --journal '/a b/it'\''s.db'"));
        check("postgres://me@host/db", &flag, Some("convoke resume s_x --journal postgres://me@host/db"));
        check(
            "postgres://me@host/db?sslmode=disable",
            &flag,
            Some("convoke resume s_x --journal 'postgres://me@host/db?sslmode=disable'"),
        );
    }

    #[test]
    fn that_nothing_confines_commands_is_said_again() {
        let naming = |journal| Naming { journal, unconfined: true };
        assert_eq!(
            naming(JournalHint::Nothing).resume("s_x").as_deref(),
            Some("convoke resume s_x --sandbox off")
        );
        let flag = naming(JournalHint::Flag("/j.db".into())).resume("s_x");
        assert_eq!(flag.as_deref(), Some("convoke resume s_x --sandbox off --journal /j.db"));
    }

    #[test]
    fn what_names_itself_again_is_left_out() {
        let file = Origin::File { path: "/c.toml".into(), line: 1 };
        for origin in [Origin::Default, Origin::Variable("ORCH_JOURNAL"), file] {
            check("/a/j.db", &origin, Some("convoke resume s_x"));
            check("postgres://me:pw@host/db", &origin, Some("convoke resume s_x"));
        }
    }

    #[test]
    fn a_hidden_password_makes_no_command_that_a_shell_would_take() {
        let flag = Origin::Flag("--journal");
        let expected = "convoke resume s_x (with the same --journal)";
        check("postgres://me:pw@host/db", &flag, Some(expected));
        check("postgres://me@host/db?password=pw", &flag, Some(expected));
        let pasted = std::process::Command::new("bash").args(["-c", expected]).output().unwrap();
        assert!(String::from_utf8_lossy(&pasted.stderr).contains("syntax error"), "{pasted:?}");
    }

    #[test]
    fn what_was_in_memory_cannot_be_gone_on_with() {
        check("memory", &Origin::Flag("--journal"), None);
        check("memory", &Origin::Variable("ORCH_JOURNAL"), None);
        check("/tmp/convoke-doc-test-x/journal.db", &Origin::Variable(DOC_TEST_MODE), None);
    }
}
