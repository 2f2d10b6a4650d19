//! Why a call was not carried out, in words the model can act on. A refused call has changed nothing.

use rustix::io::Errno;
use thiserror::Error;

/// A call that was not carried out; its text is what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The path cannot name anything.
    #[error("`{path}` is not a usable path: {why}.")]
    Path {
        /// What was said.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The path leads out of the tree.
    #[error(
        "`{path}` leads outside the tree. Reachable is what lies below `{tree}`: give a path relative to it \
         or one that begins with it; absolute links and links that lead out of it are not followed."
    )]
    Outside {
        /// What was said.
        path: String,
        /// The tree as the model knows it.
        tree: String,
    },
    /// The path leads to something that is kept from agents.
    #[error(
        "`{path}` is hidden from agents, as credentials and Convoke's own files are. Do without it; only a \
            person can change that."
    )]
    Hidden {
        /// What was said.
        path: String,
    },
    /// The path goes round in circles, or through a link that only the kernel can make.
    #[error(
        "`{path}` goes through too many links, or through a link such as those in /proc. Name the file \
            itself."
    )]
    Links {
        /// What was said.
        path: String,
    },
    /// There is no such file or directory.
    #[error("`{path}` does not exist. {near}")]
    Missing {
        /// What was said.
        path: String,
        /// What exists in its place.
        near: String,
    },
    /// It exists and is the wrong kind of thing.
    #[error("`{path}` is {kind}; {advice}.")]
    Kind {
        /// What was said.
        path: String,
        /// What it is.
        kind: &'static str,
        /// What to do instead.
        advice: &'static str,
    },
    /// The agent may only read.
    #[error(
        "nothing may be written below `{tree}`: this agent only reads it. Say in your answer which change is \
            needed and why."
    )]
    ReadOnly {
        /// The tree as the model knows it.
        tree: String,
    },
    /// The path lies where no tool writes.
    #[error(
        "`{path}` lies in `{name}`, which the file tools never write. Leave it as it is; use the program it \
            belongs to."
    )]
    Protected {
        /// What was said.
        path: String,
        /// The component that is protected.
        name: String,
    },
    /// The file is larger than this call takes.
    #[error("`{path}` has {size}, more than the {cap} this tool takes at once. {advice}")]
    Large {
        /// What was said.
        path: String,
        /// The size of the file.
        size: String,
        /// The cap.
        cap: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// The file does not hold text, or the text cannot be written in its encoding.
    #[error("`{path}` {why}. Nothing was changed; use a command for such a file.")]
    NotText {
        /// What was said.
        path: String,
        /// What is in the way.
        why: String,
    },
    /// The text to be replaced is not in the file.
    #[error("old_str is not in `{path}`: {nearest}. Nothing was changed.")]
    NoMatch {
        /// What was said.
        path: String,
        /// The nearest thing there is.
        nearest: String,
    },
    /// The text to be replaced is in the file more than once.
    #[error(
        "old_str is in `{path}` {count} times, beginning at lines {lines}. Nothing was changed; add lines \
            around it until it is unique."
    )]
    ManyMatches {
        /// What was said.
        path: String,
        /// How often, as a number or "more than" one.
        count: String,
        /// Where.
        lines: String,
    },
    /// A line number or a range of them does not fit the file.
    #[error("{why}")]
    Lines {
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The input asks for nothing that can be done.
    #[error("{why}")]
    Input {
        /// What is wrong, and what would be right.
        why: String,
    },
    /// A pattern of `glob` or `grep` cannot be read.
    #[error("the pattern `{pattern}` cannot be used: {why}")]
    Pattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// Something else changed the file or its directory while it was being edited.
    #[error(
        "`{path}` was changed by another process at the same moment. It was left as that process made it: \
            view it again and repeat the edit."
    )]
    Changed {
        /// What was said.
        path: String,
    },
    /// There is no room for the new content.
    #[error("`{path}` could not be written: {why}. The file is as it was; free some space or write less.")]
    Full {
        /// What was said.
        path: String,
        /// The system's word for it.
        why: String,
    },
    /// The system forbids it.
    #[error("`{path}` may not be {verb} here: {why}. Nothing was changed.")]
    Denied {
        /// What was said.
        path: String,
        /// "read" or "written".
        verb: &'static str,
        /// The system's word for it.
        why: String,
    },
    /// The system failed in another way.
    #[error("`{path}` could not be {verb}: {why}. Nothing was changed.")]
    Failed {
        /// What was said.
        path: String,
        /// "read" or "written".
        verb: &'static str,
        /// The system's word for it.
        why: String,
    },
}

/// The kind of a path that goes on below a file.
pub(crate) const BELOW_A_FILE: &str = "below something that is no directory";

impl Refused {
    /// Whether nothing stands there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Kind { kind: BELOW_A_FILE, .. })
    }

    /// What a failed read of `path` comes to.
    pub(crate) fn reading(path: &str, errno: Errno) -> Self {
        Self::of(path, "read", errno)
    }

    /// What a failed write of `path` comes to.
    pub(crate) fn writing(path: &str, errno: Errno) -> Self {
        Self::of(path, "written", errno)
    }

    /// What a failed read through the standard library comes to.
    pub(crate) fn reading_io(path: &str, error: &std::io::Error) -> Self {
        Self::reading(path, errno_of(error))
    }

    fn of(path: &str, verb: &'static str, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full { path, why: word(errno) },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied { path, verb, why: word(errno) },
            Errno::LOOP => Self::Links { path },
            Errno::NOENT | Errno::STALE => Self::Changed { path },
            Errno::NAMETOOLONG => Self::Path { path, why: "it is longer than the system allows" },
            _ => Self::Failed { path, verb, why: word(errno) },
        }
    }
}

/// The number inside an error of the standard library.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn word(errno: Errno) -> String {
    match errno {
        Errno::ROFS => "it lies on a file system mounted read-only (EROFS)".to_owned(),
        Errno::ACCESS => "permission denied (EACCES)".to_owned(),
        Errno::PERM => "the operation is not permitted (EPERM)".to_owned(),
        Errno::NOSPC => "no space is left on the device (ENOSPC)".to_owned(),
        Errno::DQUOT => "the disk quota is used up (EDQUOT)".to_owned(),
        Errno::FBIG => "the file would be larger than is allowed (EFBIG)".to_owned(),
        _ => errno.to_string(),
    }
}
