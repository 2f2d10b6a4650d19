//! One directory of the library and the files in it. No link is followed, nothing that is no regular file is opened, and what is
//! too long or no text is told and not read further.

use std::fs::File;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Error, Kind, Links, read_whole};

/// Characters that a source may have.
const MOST_CHARS: usize = 524_288;
/// Bytes that so many characters can take.
const MOST_BYTES: u64 = 4 * MOST_CHARS as u64;
/// Files of one shelf that are looked at.
const MOST_FILES: usize = 1_000;

pub(super) const WORKFLOW_ENDINGS: &[&str] = &["js", "mjs"];
pub(super) const AGENT_ENDINGS: &[&str] = &["md"];

/// Whose something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It comes with Convoke.
    Shipped,
    /// The user's own.
    User,
    /// The project's that is worked in.
    Project,
}

impl Origin {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// A directory of workflows or of kinds of agents, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    /// The directory.
    pub dir: PathBuf,
    /// Whose it is.
    pub origin: Origin,
}

impl Shelf {
    /// What the files on it are called that could be workflows, without looking into them.
    pub fn workflows(&self) -> Vec<String> {
        self.files(WORKFLOW_ENDINGS).0.into_iter().map(|(stem, _)| stem).collect()
    }

    /// What the files on it are called that begin as a kind of agent does.
    pub fn agents(&self) -> Vec<String> {
        let begins = |path: &Path| self.read(path).is_ok_and(|text| super::front_matter::begins(&text));
        self.files(AGENT_ENDINGS).0.into_iter().filter(|(_, path)| begins(path)).map(|(stem, _)| stem).collect()
    }

    /// The last two parts of its path.
    pub(super) fn name(&self) -> String {
        let parts: Vec<_> = self.dir.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("/")
    }

    /// The files with one of these endings, by name, and what is wrong with the shelf itself.
    fn files(&self, endings: &[&str]) -> (Vec<(String, PathBuf)>, Option<String>) {
        let dir = match self.open() {
            Ok(dir) => dir,
            Err(error) if error.is_missing() => return (Vec::new(), None),
            // Behind a link to something else there is nothing that anybody could miss.
            Err(Error::Link { .. }) if !self.dir.is_dir() => return (Vec::new(), None),
            Err(Error::Link { .. }) => {
                let why = format!("{} is a symbolic link and is not followed", self.dir.display());
                return (Vec::new(), Some(format!("{why}: put the directory itself in its place")));
            }
            Err(Error::Kind { .. }) => return (Vec::new(), None),
            Err(error) => return (Vec::new(), Some(format!("it cannot be looked at: {}", error.reason()))),
        };
        let entries = match dir.entries(Path::new("")) {
            Ok(entries) => entries,
            Err(error) => return (Vec::new(), Some(format!("it cannot be listed: {}", error.reason()))),
        };
        let fits = |path: &Path, kind: Kind| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let is_dir = kind == Kind::Directory || kind == Kind::Link && path.is_dir();
            ending.is_some_and(|ending| endings.contains(&ending)) && !is_dir
        };
        let paths = entries.into_iter().map(|entry| (self.dir.join(entry.name), entry.kind));
        let mut paths: Vec<PathBuf> = paths.filter(|(path, kind)| fits(path, *kind)).map(|(path, _)| path).collect();
        paths.sort();
        let problem = (paths.len() > MOST_FILES)
            .then(|| format!("it holds more than {MOST_FILES} files, and only the first are read: move some away"));
        paths.truncate(MOST_FILES);
        let stem =
            |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        (paths.into_iter().map(|path| (stem(&path), path)).collect(), problem)
    }

    /// Its handle. A link in a project leads wherever the project likes; above it, and above a person's own shelf, the person's own
    /// links are their own business.
    fn open(&self) -> Result<Dir, Error> {
        let parts = if self.origin == Origin::Project { 2 } else { 1 };
        let above = self.dir.ancestors().nth(parts).unwrap_or(Path::new("/"));
        Dir::open(above)?.dir(self.dir.strip_prefix(above).unwrap_or(&self.dir))
    }

    /// The text of a file on it that is no link.
    fn read(&self, path: &Path) -> Result<String, String> {
        let name = Path::new(path.file_name().unwrap_or(path.as_os_str()));
        match self.open().and_then(|dir| dir.file(name, Links::Refused)) {
            Ok((file, _)) => text_of(file),
            Err(Error::Link { .. }) => {
                Err("it is a symbolic link and is not followed: put the file itself in its place".to_owned())
            }
            Err(error) => Err(refusal(&error)),
        }
    }
}

/// A file of a shelf.
#[derive(Debug)]
pub(super) struct ShelvedFile {
    pub(super) path: PathBuf,
    /// Its name without the ending.
    pub(super) stem: String,
    /// What stands in it, or why that cannot be read.
    pub(super) text: Result<String, String>,
}

/// What stands on a shelf.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) files: Vec<ShelvedFile>,
    /// What is wrong with the shelf itself.
    pub(super) problem: Option<String>,
}

impl Contents {
    pub(super) async fn read(shelf: &Shelf, endings: &'static [&'static str]) -> Self {
        let shelf = shelf.clone();
        let read = tokio::task::spawn_blocking(move || {
            let (files, problem) = shelf.files(endings);
            let file = |(stem, path): (String, PathBuf)| ShelvedFile { text: shelf.read(&path), stem, path };
            Self { files: files.into_iter().map(file).collect(), problem }
        });
        let gone = |_| Self { files: Vec::new(), problem: Some("it could not be read: try again".to_owned()) };
        read.await.unwrap_or_else(gone)
    }
}

/// What is told of a file that was not opened.
pub(super) fn refusal(error: &Error) -> String {
    match error {
        Error::Kind { .. } => "it is no regular file".to_owned(),
        error => error.reason(),
    }
}

/// The text of an opened file.
pub(super) fn text_of(file: File) -> Result<String, String> {
    let too_long = || format!("it is longer than {MOST_CHARS} characters: split it, or pass data in args");
    let bytes = read_whole(file, Path::new(""), MOST_BYTES).map_err(|error| match error {
        Error::TooLarge { .. } => too_long(),
        error => error.reason(),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text: save it as UTF-8".to_owned())?;
    if text.chars().count() > MOST_CHARS { Err(too_long()) } else { Ok(text) }
}
