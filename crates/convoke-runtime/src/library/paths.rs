//! Files that are named by their path: by a model, which may name only some, or by a person, who may name
//! any. What a model names is opened beneath a directory that it may name and without links, so that none can
//! be put in its way in between.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use convoke_beneath::{Dir, Links, named_file};

use super::LibraryError;
use super::folder::{refusal, text_of};

/// A script that was named by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where it really is.
    pub path: PathBuf,
    /// What stands in it.
    pub text: String,
}

/// The file that a person names, wherever it is. In `tree`, which strangers may have filled, a link is
/// followed only as far as it stays there.
pub async fn read_source(path: &Path, tree: &Path) -> Result<Source, LibraryError> {
    let path = path.to_owned();
    let tree = tree.to_owned();
    blocking(path.clone(), move || {
        let unreadable = |why: String| LibraryError::Unreadable { path: path.clone(), why };
        let (file, _) = named_file(&path, Some(&tree)).map_err(|error| unreadable(refusal(&error)))?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        Ok(Source { path: real, text: text_of(file).map_err(unreadable)? })
    })
    .await
}

/// A file that was opened and of which nothing is read yet.
pub(super) struct Opened {
    /// As it was given.
    given: PathBuf,
    /// Where it really is.
    path: PathBuf,
    file: File,
}

impl Opened {
    /// The file at a path, which is one from `dir` if it is relative, if it lies below one of these
    /// directories.
    pub(super) async fn below(path: &Path, dir: &Path, below: Vec<PathBuf>) -> Result<Self, LibraryError> {
        let path = path.to_owned();
        let dir = dir.to_owned();
        blocking(path.clone(), move || open_below(path, &dir, &below)).await
    }

    /// Where it really is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it lies below a directory, wherever that really is.
    pub(super) fn is_below(&self, dir: &Path) -> bool {
        dir.canonicalize().is_ok_and(|dir| self.path.starts_with(dir))
    }

    /// What stands in it.
    pub(super) async fn read(self) -> Result<Source, LibraryError> {
        let Self { given, path, file } = self;
        blocking(given.clone(), move || {
            let text = text_of(file).map_err(|why| LibraryError::Unreadable { path: given, why })?;
            Ok(Source { path, text })
        })
        .await
    }
}

fn open_below(path: PathBuf, dir: &Path, below: &[PathBuf]) -> Result<Opened, LibraryError> {
    let outside = || LibraryError::Outside { path: path.clone() };
    // Names of another system's devices and servers, which must not become names here by chance.
    if path.to_string_lossy().starts_with("\\\\") {
        return Err(outside());
    }
    let whole = dir.join(&path);
    let unreadable = |why: String| LibraryError::Unreadable { path: path.clone(), why };
    let roots: Vec<PathBuf> = below.iter().filter_map(|dir| dir.canonicalize().ok()).collect();
    let inside = |real: &Path| roots.iter().any(|root| real.starts_with(root));
    let real = match whole.canonicalize() {
        Ok(real) if inside(&real) => real,
        Ok(_) => return Err(outside()),
        // Whether something is there is told only of what may be read.
        Err(error)
            if inside(&lexical(&whole)) || below.iter().any(|dir| lexical(&whole).starts_with(dir)) =>
        {
            return Err(unreadable(error.to_string()));
        }
        Err(_) => return Err(outside()),
    };
    // The kernel resolves it again without links: what was exchanged meanwhile is refused.
    let opened = Dir::open(Path::new("/")).and_then(|root| {
        let below = real.strip_prefix("/").unwrap_or(&real);
        root.file(below, Links::Refused)
    });
    let (file, _) = opened.map_err(|error| unreadable(refusal(&error)))?;
    Ok(Opened { given: path.clone(), path: real, file })
}

async fn blocking<T: Send + 'static>(
    path: PathBuf,
    read: impl FnOnce() -> Result<T, LibraryError> + Send + 'static,
) -> Result<T, LibraryError> {
    let gone = |_| LibraryError::Unreadable { path, why: "it could not be read: try again".to_owned() };
    tokio::task::spawn_blocking(read).await.map_err(gone)?
}

/// A path without `.` and `..`, by its words alone.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
