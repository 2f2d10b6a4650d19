//! Claims: the places of the tree that an agent has asked for before it wrote there. Pure: what a claim
//! covers, and how claims are written down and read again, line by line.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A place of the tree, as seen from its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Where it is; empty for the directory itself.
    pub path: PathBuf,
    /// Whether everything below it is meant too.
    pub whole: bool,
}

impl Place {
    /// One file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), whole: false }
    }

    /// A directory with everything that is or will be below it.
    pub fn tree(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), whole: true }
    }

    /// The whole directory.
    pub(crate) fn everything() -> Self {
        Self::tree("")
    }

    /// Whether a path lies there.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        if self.whole { path.starts_with(&self.path) } else { path == self.path }
    }

    /// The same without dots and slashes that mean nothing; `None` if it leads out of the directory, or into
    /// the metadata of a repository, of which nothing is kept: every git of an agent's takes its lock there.
    pub(crate) fn checked(&self) -> Option<Self> {
        let mut path = PathBuf::new();
        for part in self.path.components() {
            match part {
                Component::Normal(name) if name.eq_ignore_ascii_case(".git") => return None,
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                _ => return None,
            }
        }
        Some(Self { path, whole: self.whole })
    }
}

/// Whether a claimed place is still its agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is.
    Held,
    /// Another agent has taken it over. The first may go on writing there, because its command was told
    /// once that it may.
    Lost,
}

/// What is known of one path: of itself, and of all below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    file: Option<Hold>,
    tree: Option<Hold>,
}

/// What an agent has claimed, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    marks: BTreeMap<PathBuf, Marks>,
    /// The latest step of the run when the command began that claims.
    pub(crate) since: Option<String>,
    /// Whether no command is under way, so that there is no end to wait for: something that it left running
    /// has files open still.
    pub(crate) idle: bool,
}

/// One line about a window, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Claim(Place),
    Lose(Place),
    /// The claim of one file ends.
    Drop(PathBuf),
    Since(String),
    Busy,
    Idle,
    /// All that stands before it has ended.
    Closed,
}

impl Claims {
    /// What is known of a path.
    pub(crate) fn of(&self, path: &Path) -> Option<Hold> {
        self.marks.get(path).and_then(|marks| marks.file).or_else(|| self.above(path))
    }

    /// What is known of everything below a directory.
    fn above(&self, path: &Path) -> Option<Hold> {
        path.ancestors().find_map(|above| self.marks.get(above)?.tree)
    }

    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.of(path) == Some(Hold::Held)
    }

    /// Whether it is claimed that nothing else may be written by others.
    pub(crate) fn is_everything(&self) -> bool {
        self.above(Path::new("")) == Some(Hold::Held)
    }

    /// Whether nothing is held or lost any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether a place that is wanted is held, or a part of it.
    pub(crate) fn meets(&self, place: &Place) -> bool {
        if !place.whole {
            return self.holds(&place.path);
        }
        let held = |marks: &Marks| [marks.file, marks.tree].contains(&Some(Hold::Held));
        self.above(&place.path) == Some(Hold::Held) || self.below(&place.path).any(|(_, marks)| held(marks))
    }

    /// Whether all of a place is held.
    pub(crate) fn includes(&self, place: &Place) -> bool {
        let lost = |marks: &Marks| [marks.file, marks.tree].contains(&Some(Hold::Lost));
        if place.whole {
            self.above(&place.path) == Some(Hold::Held)
                && !self.below(&place.path).any(|(_, marks)| lost(marks))
        } else {
            self.holds(&place.path)
        }
    }

    fn below(&self, path: &Path) -> impl Iterator<Item = (&PathBuf, &Marks)> {
        // Paths are in the order of their components, so what lies below one follows it.
        let path = path.to_owned();
        let from = path.clone();
        self.marks.range(from..).take_while(move |(below, _)| below.starts_with(&path))
    }

    /// Takes in what was written down.
    pub(crate) fn apply(&mut self, line: Line) {
        match line {
            Line::Claim(place) => self.mark(place, Hold::Held),
            Line::Lose(place) => self.lose(place),
            Line::Drop(path) => self.drop_file(&path),
            Line::Since(step) => self.since = Some(step),
            Line::Busy => self.idle = false,
            Line::Idle => self.idle = true,
            Line::Closed => *self = Self { idle: self.idle, ..Self::default() },
        }
    }

    fn mark(&mut self, place: Place, hold: Hold) {
        if place.whole {
            self.marks.retain(|path, _| !path.starts_with(&place.path));
            self.marks.entry(place.path).or_default().tree = Some(hold);
        } else {
            self.marks.entry(place.path).or_default().file = Some(hold);
        }
    }

    /// Only what is claimed can be lost, so that what was never claimed is not taken for this agent's later.
    fn lose(&mut self, place: Place) {
        if place.whole && self.above(&place.path).is_none() {
            for (_, marks) in self.marks.iter_mut().filter(|(path, _)| path.starts_with(&place.path)) {
                for hold in [&mut marks.file, &mut marks.tree].into_iter().flatten() {
                    *hold = Hold::Lost;
                }
            }
        } else if place.whole || self.of(&place.path).is_some() {
            self.mark(place, Hold::Lost);
        }
    }

    fn drop_file(&mut self, path: &Path) {
        if let Some(marks) = self.marks.get_mut(path) {
            marks.file = None;
            if marks.tree.is_none() {
                self.marks.remove(path);
            }
        }
    }
}

impl Line {
    /// As it is written down. Line breaks and backslashes of a path are told apart from those of ours.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let (word, rest): (&str, &[u8]) = match self {
            Self::Claim(place) if place.whole => ("tree", bytes(&place.path)),
            Self::Claim(place) => ("file", bytes(&place.path)),
            Self::Lose(place) if place.whole => ("lost-tree", bytes(&place.path)),
            Self::Lose(place) => ("lost-file", bytes(&place.path)),
            Self::Drop(path) => ("end", bytes(path)),
            Self::Since(step) => ("since", step.as_bytes()),
            Self::Busy => ("busy", b""),
            Self::Idle => ("idle", b""),
            Self::Closed => ("closed", b""),
        };
        out.extend_from_slice(word.as_bytes());
        out.push(b' ');
        for byte in rest {
            match byte {
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                byte => out.push(*byte),
            }
        }
        out.push(b'\n');
    }

    /// Reads one line without its end.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let space = line.iter().position(|byte| *byte == b' ')?;
        let mut rest = Vec::new();
        let mut raw = line[space + 1..].iter();
        while let Some(byte) = raw.next() {
            match (byte, raw.as_slice().first()) {
                (b'\\', Some(b'n')) => rest.push(b'\n'),
                (b'\\', Some(b'\\')) => rest.push(b'\\'),
                (b'\\', _) => return None,
                (byte, _) => {
                    rest.push(*byte);
                    continue;
                }
            }
            raw.next();
        }
        let path = || PathBuf::from(OsStr::from_bytes(&rest));
        Some(match &line[..space] {
            b"file" => Self::Claim(Place::file(path())),
            b"tree" => Self::Claim(Place::tree(path())),
            b"lost-file" => Self::Lose(Place::file(path())),
            b"lost-tree" => Self::Lose(Place::tree(path())),
            b"end" => Self::Drop(path()),
            b"since" => Self::Since(String::from_utf8(rest).ok()?),
            b"busy" => Self::Busy,
            b"idle" => Self::Idle,
            b"closed" => Self::Closed,
            _ => return None,
        })
    }
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims that came one after the other: `f PATH`, `t PATH`, lost with `-f` and `-t`.
    fn claims(lines: &[&str]) -> Claims {
        let mut claims = Claims::default();
        for line in lines {
            claims.apply(match line.split_at(line.find(' ').unwrap()) {
                ("f", path) => Line::Claim(Place::file(&path[1..])),
                ("t", path) => Line::Claim(Place::tree(&path[1..])),
                ("-f", path) => Line::Lose(Place::file(&path[1..])),
                ("-t", path) => Line::Lose(Place::tree(&path[1..])),
                ("end", path) => Line::Drop(path[1..].into()),
                _ => panic!("{line}"),
            });
        }
        claims
    }

    #[track_caller]
    fn check(lines: &[&str], path: &str, expected: Option<Hold>) {
        assert_eq!(claims(lines).of(Path::new(path)), expected, "{lines:?} {path}");
    }

    #[test]
    fn a_claim_covers_a_file_or_all_below_a_directory() {
        check(&["f a"], "a", Some(Hold::Held));
        check(&["f a"], "a/b", None);
        check(&["f a"], "ab", None);
        check(&["t a"], "a/b/c", Some(Hold::Held));
        check(&["t a"], "a", Some(Hold::Held));
        check(&["t "], "anything", Some(Hold::Held));
    }

    #[test]
    fn what_is_lost_of_a_claim_is_lost_alone_and_can_be_claimed_again() {
        check(&["t a", "-f a/b"], "a/b", Some(Hold::Lost));
        check(&["t a", "-f a/b"], "a/c", Some(Hold::Held));
        check(&["t a", "-t a/b"], "a/b/c", Some(Hold::Lost));
        check(&["t a", "-t a/b", "f a/b/c"], "a/b/c", Some(Hold::Held));
        check(&["t a", "-t a/b", "f a/b/c"], "a/b/d", Some(Hold::Lost));
        check(&["t a", "-t a/b", "t a"], "a/b/d", Some(Hold::Held));
        check(&["f a/b", "f c", "-t a"], "a/b", Some(Hold::Lost));
        check(&["f a/b", "f c", "-t a"], "c", Some(Hold::Held));
        check(&["f a", "-f b"], "b", None);
        check(&["f a/b", "-t a"], "a/c", None);
        check(&["f a", "end a"], "a", None);
    }

    #[test]
    fn places_meet_where_one_path_would_belong_to_both() {
        let meets = |lines: &[&str], place: &Place, expected| {
            assert_eq!(claims(lines).meets(place), expected, "{lines:?} {place:?}");
        };
        meets(&["f a/b"], &Place::file("a/b"), true);
        meets(&["f a/b"], &Place::file("a"), false);
        meets(&["f a/b"], &Place::tree("a"), true);
        meets(&["t a"], &Place::file("a/b"), true);
        meets(&["t a"], &Place::tree("a/b"), true);
        meets(&["t a/b"], &Place::tree("a"), true);
        meets(&["f ab", "f a-b"], &Place::tree("a"), false);
        meets(&["t "], &Place::file("a"), true);
        meets(&["f a"], &Place::everything(), true);
        meets(&["t a", "-f a/b"], &Place::file("a/b"), false);
        meets(&["t a", "-f a/b"], &Place::tree("a"), true);
        meets(&["f a/b", "-f a/b"], &Place::tree("a"), false);
    }

    #[test]
    fn a_claim_includes_what_needs_no_asking_any_more() {
        let includes = |lines: &[&str], place: &Place, expected| {
            assert_eq!(claims(lines).includes(place), expected, "{lines:?} {place:?}");
        };
        includes(&["t a"], &Place::tree("a/b"), true);
        includes(&["t a"], &Place::file("a/b"), true);
        includes(&["f a"], &Place::tree("a"), false);
        includes(&["t a", "-f a/b"], &Place::tree("a"), false);
        includes(&["t a", "-f a/b"], &Place::file("a/b"), false);
    }

    #[test]
    fn lines_are_read_as_they_were_written_whatever_the_path() {
        let odd = PathBuf::from(OsStr::from_bytes(b"a \\n b\nc\\\xff"));
        for line in [
            Line::Claim(Place::file(&odd)),
            Line::Claim(Place::tree("")),
            Line::Lose(Place::file("x y")),
            Line::Lose(Place::tree(&odd)),
            Line::Drop(odd.clone()),
            Line::Since("0123".to_owned()),
            Line::Busy,
            Line::Idle,
            Line::Closed,
        ] {
            let mut out = Vec::new();
            line.write(&mut out);
            assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert_eq!(Line::read(out.strip_suffix(b"\n").unwrap()), Some(line));
        }
        assert_eq!(Line::read(b"other x"), None);
    }

    #[test]
    fn a_place_that_leads_out_of_the_directory_or_into_git_metadata_is_none() {
        assert_eq!(Place::file("./a//b/.").checked(), Some(Place::file("a/b")));
        assert_eq!(Place::file("a/../b").checked(), None);
        assert_eq!(Place::file("/a").checked(), None);
        assert_eq!(Place::file("sub/.git/index.lock").checked(), None);
        assert_eq!(Place::file(".gitignore").checked(), Some(Place::file(".gitignore")));
    }
}
