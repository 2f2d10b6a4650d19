//! Why something of the library cannot be had. Every message names the file.

use std::path::PathBuf;

use convoke_script::Problem;

/// Why something of the library cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// A file cannot be read.
    #[error("{} cannot be used: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why, and what to do about it.
        why: String,
    },
    /// A workflow cannot be run.
    #[error("{}{}", path.display(), first(problems))]
    Unsound {
        /// The file, or the name of one that is shipped.
        path: PathBuf,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// What stands before the instructions of a kind of agent cannot be understood.
    #[error("{}:{line}: {why}", path.display())]
    FrontMatter {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why, and what to write instead.
        why: String,
    },
    /// A path leads to where no script is read from.
    #[error(
        "{} is refused: a script is read only from below the working directory, from a directory of saved \
         workflows or from where runs keep their scripts; copy it to one of these",
        path.display()
    )]
    Outside {
        /// The path as it was given.
        path: PathBuf,
    },
    /// It is a project's that no person trusts.
    #[error(
        "the workflow '{named}' is the project's ({}), and the project is not trusted: with \
         --trust-project a person loads what it brings along, `convoke workflow run {}` trusts this file \
         alone",
        path.display(),
        path.display()
    )]
    Untrusted {
        /// How it was named.
        named: String,
        /// Where it stands.
        path: PathBuf,
    },
    /// It is a kind of agent of a project that no person trusts.
    #[error(
        "it is the project's ({}), and the project is not trusted: with --trust-project a person loads \
            what it brings along",
        path.display()
    )]
    UntrustedKind {
        /// Where it stands.
        path: PathBuf,
    },
    /// A rule forbids reading it.
    #[error("{} is refused: {why}", path.display())]
    Forbidden {
        /// The path as it was given.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It could not be found out whether a source can be run.
    #[error("the source cannot be checked: {why}")]
    Unchecked {
        /// Why.
        why: String,
    },
}

/// Where the first problem is and what it is, and how many follow.
fn first(problems: &[Problem]) -> String {
    let Some(problem) = problems.first() else { return ": it cannot be run".to_owned() };
    let place =
        problem.place.as_ref().map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
    let more = match problems.len() {
        0 | 1 => String::new(),
        2 => " (and 1 more problem)".to_owned(),
        number => format!(" (and {} more problems)", number - 1),
    };
    format!("{place}: {}{more}", problem.message)
}
