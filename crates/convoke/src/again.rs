//! How a person goes on later: the command that resumes a run, with as much about the journal as can be pasted. It
//! never repeats a secret, and never writes a command that would look for the run in the wrong place.

use convoke_journal::Location;
use convoke_kernel::Sandbox;

use crate::settings::{DOC_TEST_MODE, Origin, Settings};

/// What a later command has to say to go on with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Naming {
    journal: Place,
    /// Nobody inherits that nothing confines commands, so it is said again.
    unconfined: bool,
}

/// What finds the same journal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Nothing: it is the usual one, or the environment or the configuration names it then as now.
    Nothing,
    /// This `--journal`.
    Flag(String),
    /// The same `--journal`, which cannot be shown as it was given.
    SameFlag,
    /// Whatever it says: the journal was in memory, or in a place that is removed, and is gone.
    Gone,
}

impl Naming {
    /// What has to be said to go on with a run of these settings.
    pub(crate) fn of(settings: &Settings) -> Self {
        let journal = Place::new(&settings.journal, settings.origin("journal"));
        Self { journal, unconfined: settings.confine.sandbox == Sandbox::Off }
    }

    /// The command that goes on with a run, if anything can.
    pub(crate) fn resume(&self, run: &str) -> Option<String> {
        let off = if self.unconfined { " --sandbox off" } else { "" };
        self.command(&format!("resume {run}{off}"))
    }

    /// A command about something in the journal, such as `runs diff s_…`, if it will still be there.
    pub(crate) fn command(&self, words: &str) -> Option<String> {
        match &self.journal {
            Place::Nothing => Some(format!("convoke {words}")),
            Place::Flag(journal) => Some(format!("convoke {words} --journal {}", quoted(journal))),
            // A shell refuses the brackets, so nobody pastes this and asks another journal.
            Place::SameFlag => Some(format!("convoke {words} (with the same --journal)")),
            Place::Gone => None,
        }
    }
}

impl Place {
    fn new(journal: &Location, origin: Option<&Origin>) -> Self {
        let shown = match (journal, origin) {
            (Location::Memory, _) | (_, Some(Origin::Variable(DOC_TEST_MODE))) => return Self::Gone,
            (_, None | Some(Origin::Default | Origin::File { .. } | Origin::Variable(_))) => return Self::Nothing,
            (Location::Sqlite(path), Some(Origin::Flag(_))) => path.to_str().map(str::to_owned),
            // What is shown differs from what was given if a password is hidden in it.
            (Location::Postgres(url), Some(Origin::Flag(_))) => Some(journal.to_string()).filter(|shown| shown == url),
        };
        shown.map_or(Self::SameFlag, Self::Flag)
    }
}

/// A word that a shell reads back as it is.
fn quoted(word: &str) -> String {
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
        let naming = Naming { journal: Place::new(&journal.parse().unwrap(), Some(origin)), unconfined: false };
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
        assert_eq!(naming(Place::Nothing).resume("s_x").as_deref(), Some("convoke resume s_x --sandbox off"));
        let flag = naming(Place::Flag("/j.db".into())).resume("s_x");
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
