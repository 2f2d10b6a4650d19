//! The steps of a run, and what they come to: pure functions over changes that were read elsewhere.
//!
//! A run's record is a chain of commits. The first is the tree before the run; each later one is a step,
//! whose message says what made it: an agent, something outside of the run, or an undo.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::tree::{Entry, TreeChange, parse_raw_change};

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// Its content, or what kind of file it is, is another.
    Modified,
    /// It is not there any more.
    Deleted,
    /// Only whether it can be executed is another.
    ModeChanged,
}

/// A file that a run changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Where it is, as seen from the directory.
    pub path: PathBuf,
    /// How it was changed, from before the first change of the run to after its last.
    pub how: ChangeKind,
    /// The agents that changed it, in the order of their first change.
    pub agents: Vec<String>,
    /// Whether it was also changed from outside of the run in between: the two cannot be told apart any more.
    pub mixed: bool,
}

/// What made a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepCause {
    Agent { name: String, interrupted: bool },
    Outside,
    Undo { interrupted: bool },
}

/// One step with its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) commit: String,
    pub(crate) by: StepCause,
    pub(crate) changes: Vec<TreeChange>,
}

/// What all steps come to for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetChange {
    pub(crate) path: PathBuf,
    pub(crate) before: Option<Entry>,
    pub(crate) after: Option<Entry>,
    pub(crate) agents: Vec<String>,
    pub(crate) mixed: bool,
}

impl StepCause {
    /// The first line of a step's message.
    pub(crate) fn subject(&self) -> String {
        let end = |interrupted: bool| if interrupted { " (interrupted)" } else { "" };
        match self {
            Self::Agent { name, interrupted } => format!("agent {name}{}", end(*interrupted)),
            Self::Outside => "outside".to_owned(),
            Self::Undo { interrupted } => format!("undo{}", end(*interrupted)),
        }
    }

    /// Reads what [`Self::subject`] wrote.
    pub(crate) fn parse(subject: &str) -> Option<Self> {
        let (text, interrupted) =
            subject.strip_suffix(" (interrupted)").map_or((subject, false), |text| (text, true));
        match (text.strip_prefix("agent "), text) {
            (Some(name), _) if !name.is_empty() => Some(Self::Agent { name: name.to_owned(), interrupted }),
            (None, "outside") if !interrupted => Some(Self::Outside),
            (None, "undo") => Some(Self::Undo { interrupted }),
            _ => None,
        }
    }

    /// The same, cut off by a crash.
    pub(crate) fn interrupted(self) -> Self {
        match self {
            Self::Agent { name, .. } => Self::Agent { name, interrupted: true },
            Self::Undo { .. } => Self::Undo { interrupted: true },
            Self::Outside => Self::Outside,
        }
    }

    /// The message of a step: what made it, and a note on one line.
    pub(crate) fn message(&self, note: &str) -> String {
        let note: String =
            note.chars().map(|char| if char.is_control() { ' ' } else { char }).take(200).collect();
        let note = note.trim();
        if note.is_empty() { self.subject() } else { format!("{}\n\n{note}", self.subject()) }
    }
}

impl NetChange {
    pub(crate) fn changed(&self) -> ChangedFile {
        let how = how(self.before.as_ref(), self.after.as_ref());
        ChangedFile { path: self.path.clone(), how, agents: self.agents.clone(), mixed: self.mixed }
    }
}

/// How a path got from one state to another.
pub(crate) fn how(old: Option<&Entry>, new: Option<&Entry>) -> ChangeKind {
    match (old, new) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        (Some(old), Some(new)) if old.id == new.id && is_file(old) && is_file(new) => ChangeKind::ModeChanged,
        _ => ChangeKind::Modified,
    }
}

fn is_file(entry: &Entry) -> bool {
    entry.mode & 0o170_000 == 0o100_000
}

/// What the steps of a run come to, by path: the state before the run's first change of it against that after
/// its last. A path that was changed and changed back is not there. What others changed is not there either.
pub(crate) fn net(steps: &[Step]) -> Vec<NetChange> {
    struct Path {
        net: NetChange,
        touched_outside: bool,
    }
    let mut paths: BTreeMap<&std::path::Path, Path> = BTreeMap::new();
    for step in steps {
        for change in &step.changes {
            let path = change.path.as_path();
            match &step.by {
                StepCause::Agent { name, .. } => {
                    let known = paths.entry(path).or_insert_with(|| Path {
                        net: NetChange {
                            path: path.to_owned(),
                            before: change.old.clone(),
                            after: change.old.clone(),
                            agents: Vec::new(),
                            mixed: false,
                        },
                        touched_outside: false,
                    });
                    known.net.mixed |= known.touched_outside && change.old != known.net.after;
                    known.touched_outside = false;
                    known.net.after.clone_from(&change.new);
                    if !known.net.agents.contains(name) {
                        known.net.agents.push(name.clone());
                    }
                    if known.net.after == known.net.before {
                        paths.remove(path);
                    }
                }
                StepCause::Undo { .. }
                    if paths.get(path).is_some_and(|known| known.net.before == change.new) =>
                {
                    paths.remove(path);
                }
                StepCause::Undo { .. } | StepCause::Outside => {
                    if let Some(known) = paths.get_mut(path) {
                        known.touched_outside = true;
                    }
                }
            }
        }
    }
    paths.into_values().map(|path| path.net).collect()
}

/// What `git log` is asked to print before the changes of each commit.
pub(crate) const LOG_FORMAT: &str = "--format=%x01%H%n%B";

/// Reads `git log -z --raw` in [`LOG_FORMAT`], oldest first.
pub(crate) fn parse_log(output: &[u8]) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut parts = output.split(|byte| *byte == 0);
    while let Some(part) = parts.next() {
        let part = part.strip_prefix(b"\n").unwrap_or(part);
        if let Some(message) = part.strip_prefix(b"\x01") {
            let mut lines = message.split(|byte| *byte == b'\n');
            let mut line = || String::from_utf8(lines.next()?.to_vec()).ok();
            steps.push(Step { commit: line()?, by: StepCause::parse(&line()?)?, changes: Vec::new() });
        } else if part.starts_with(b":") {
            let path = PathBuf::from(OsStr::from_bytes(parts.next()?));
            steps.last_mut()?.changes.push(parse_raw_change(part, path)?);
        } else if !part.is_empty() {
            return None;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Option<Entry> {
        (text != "-").then(|| Entry { mode: 0o100_644, id: text.to_owned() })
    }

    fn steps(text: &[&str]) -> Vec<Step> {
        let step = |line: &&str| {
            let mut words = line.split(' ');
            let by = match words.next().unwrap() {
                "outside" => StepCause::Outside,
                "undo" => StepCause::Undo { interrupted: false },
                name => StepCause::Agent { name: name.to_owned(), interrupted: false },
            };
            let change = |word: &str| {
                let [path, old, new] = word.split(':').collect::<Vec<_>>().try_into().unwrap();
                TreeChange { path: path.into(), old: entry(old), new: entry(new) }
            };
            Step { commit: String::new(), by, changes: words.map(change).collect() }
        };
        text.iter().map(step).collect()
    }

    /// Steps as `who path:old:new …`, the net as `path:before:after who,who` and a `!` where it is mixed.
    #[track_caller]
    fn check(text: &[&str], expected: &[&str]) {
        let id = |entry: Option<Entry>| entry.map_or("-".to_owned(), |entry| entry.id);
        let shown = |net: NetChange| {
            let mixed = if net.mixed { "!" } else { "" };
            let path = net.path.display();
            format!("{path}:{}:{} {}{mixed}", id(net.before), id(net.after), net.agents.join(","))
        };
        assert_eq!(net(&steps(text)).into_iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_net_goes_from_the_first_change_to_the_last() {
        check(&["x a:0:1 b:-:5", "y a:1:2", "x a:2:3"], &["a:0:3 x,y", "b:-:5 x"]);
    }

    #[test]
    fn a_path_changed_and_changed_back_is_no_change() {
        check(&["x a:0:1 n:-:1 d:4:-", "y a:1:0 n:1:- d:-:4"], &[]);
        check(&["x a:0:1", "y a:1:0", "z a:0:2"], &["a:0:2 z"]);
    }

    #[test]
    fn what_is_changed_outside_is_not_in_it() {
        check(&["outside a:0:1 p:0:1", "x a:1:2", "outside a:2:3"], &["a:1:2 x"]);
    }

    #[test]
    fn a_change_from_outside_between_two_of_the_run_is_said() {
        check(&["x a:0:1", "outside a:1:2", "x a:2:3"], &["a:0:3 x!"]);
        check(&["x a:0:1", "outside a:1:2", "outside a:2:1", "x a:1:3"], &["a:0:3 x"]);
    }

    #[test]
    fn what_an_undo_restored_is_no_change_any_more() {
        check(&["x a:0:1 b:0:1", "outside b:1:2", "undo a:1:0"], &["b:0:1 x"]);
        check(&["x a:0:1", "undo a:1:0", "y a:0:7"], &["a:0:7 y"]);
        check(&["x a:0:1", "undo a:1:9 p:0:1"], &["a:0:1 x"]);
    }

    #[test]
    fn how_a_path_changed_tells_the_mode_from_the_content() {
        let make = |mode, id: &str| Some(Entry { mode, id: id.to_owned() });
        let check = |old: Option<Entry>, new: Option<Entry>, expected| {
            assert_eq!(how(old.as_ref(), new.as_ref()), expected);
        };
        check(None, make(0o100_644, "a"), ChangeKind::Added);
        check(make(0o100_644, "a"), None, ChangeKind::Deleted);
        check(make(0o100_644, "a"), make(0o100_755, "a"), ChangeKind::ModeChanged);
        check(make(0o100_644, "a"), make(0o100_755, "b"), ChangeKind::Modified);
        check(make(0o100_644, "a"), make(0o120_000, "a"), ChangeKind::Modified);
    }

    #[test]
    fn who_made_a_step_is_read_as_it_was_written() {
        let agent = |interrupted| StepCause::Agent { name: "a_1".to_owned(), interrupted };
        for by in [
            agent(false),
            agent(true),
            StepCause::Outside,
            StepCause::Undo { interrupted: false },
            StepCause::Undo { interrupted: true },
        ] {
            assert_eq!(StepCause::parse(&by.subject()), Some(by.clone()), "{by:?}");
        }
        for text in ["", "agent ", "outsider", "outside (interrupted)", "agents x"] {
            assert_eq!(StepCause::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_note_stays_on_one_line() {
        assert_eq!(StepCause::Outside.message(" two\nlines\u{7} "), "outside\n\ntwo lines");
        assert_eq!(StepCause::Outside.message("\n"), "outside");
    }
}
