//! The workflow that a person names, read once: what is shown, planned and agreed to is what is run.

use std::path::{Path, PathBuf};

use convoke_runtime::{Checked, Library, LibraryError, Meta, Origin, Problem, read_source, source_digest};

use super::{Lookup, is_file, places, short};
use crate::failure::Failure;

/// A workflow that can be run.
pub(super) struct Chosen {
    /// How a person names it: its file, or its name.
    pub(super) named: String,
    pub(super) meta: Meta,
    pub(super) source: String,
    pub(super) digest: String,
    /// Where it comes from; `None` for a file that a person named.
    pub(super) origin: Option<Origin>,
    pub(super) path: Option<PathBuf>,
}

impl Chosen {
    /// Finds it, by name in this library or as a file, and checks it.
    pub(super) async fn find(lookup: &Lookup<'_>, library: &Library, given: &str) -> Result<Self, Failure> {
        if is_file(given) {
            return Self::file(library, given, &lookup.settings.dir).await;
        }
        match library.find(given).await {
            Ok(Some(found)) => Ok(Self {
                named: given.to_owned(),
                digest: found.digest(),
                meta: found.meta,
                source: found.source,
                origin: Some(found.origin),
                path: found.path,
            }),
            Ok(None) | Err(LibraryError::Untrusted { .. }) => Err(lookup.missing(given).await),
            Err(LibraryError::Unsound { path, problems }) => {
                Err(unsound(&lookup.shown(Some(&path)), &problems))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The file that a person names, checked.
    pub(super) async fn file(library: &Library, given: &str, tree: &Path) -> Result<Self, Failure> {
        let source = read_source(Path::new(given), tree).await?;
        match library.checker().check(&source.text).await? {
            Checked::Sound { meta, .. } => Ok(Self {
                named: given.to_owned(),
                meta,
                digest: source_digest(&source.text),
                source: source.text,
                origin: None,
                path: Some(source.path),
            }),
            Checked::Unsound { problems } => Err(unsound(given, &problems)),
        }
    }

    /// The first figures of its digest.
    pub(super) fn short(&self) -> &str {
        short(&self.digest)
    }

    /// Whether it comes with Convoke.
    pub(super) fn is_shipped(&self) -> bool {
        self.origin == Some(Origin::Shipped)
    }
}

impl Lookup<'_> {
    /// What is said of a name that nothing loaded has.
    async fn missing(&self, name: &str) -> Failure {
        let entries = self.library.list().await;
        let untrusted = entries.iter().find(|entry| entry.name == name && !self.trusts(entry.origin));
        match untrusted {
            Some(entry) => {
                let file = self.shown(entry.path.as_deref());
                Failure::usage(format!(
                    "the workflow '{name}' is the project's ({file}), and the project is not trusted"
                ))
                .hint(format!(
                    "--trust-project loads what it brings along; `convoke workflow run {file}` trusts this \
                        file alone"
                ))
            }
            None => self.unknown(name, &entries),
        }
    }
}

/// Everything that is wrong with a source, as `check` shows it.
fn unsound(file: &str, problems: &[Problem]) -> Failure {
    let failure = Failure::usage(format!("{file} cannot be run, and nothing was started"));
    let lines: Vec<String> = problems.iter().map(|problem| places::lines(file, "", problem, None)).collect();
    lines.concat().lines().fold(failure, |failure, line| failure.hint(line))
}
