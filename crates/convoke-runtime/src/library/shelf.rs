//! One directory of the library and the files in it. No link is followed, nothing that is no regular file is opened, and what is
//! too long or no text is told and not read further.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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
        let begins = |path: &Path| read_file(path).is_ok_and(|text| super::front_matter::begins(&text));
        self.files(AGENT_ENDINGS).0.into_iter().filter(|(_, path)| begins(path)).map(|(stem, _)| stem).collect()
    }

    /// The last two parts of its path.
    pub(super) fn name(&self) -> String {
        let parts: Vec<_> = self.dir.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("/")
    }

    /// The files with one of these endings, by name, and what is wrong with the shelf itself.
    fn files(&self, endings: &[&str]) -> (Vec<(String, PathBuf)>, Option<String>) {
        // A link in a project leads wherever the project likes; above it the person's own links are their own business.
        let parent = self.dir.parent().filter(|_| self.origin == Origin::Project);
        for dir in parent.into_iter().chain([self.dir.as_path()]) {
            match fs::symlink_metadata(dir) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    return (Vec::new(), None);
                }
                Err(error) => return (Vec::new(), Some(format!("it cannot be looked at: {error}"))),
                // Behind a link to something else there is nothing that anybody could miss.
                Ok(meta) if meta.is_symlink() && !self.dir.is_dir() => return (Vec::new(), None),
                Ok(meta) if meta.is_symlink() => {
                    let why = format!("{} is a symbolic link and is not followed", dir.display());
                    return (Vec::new(), Some(format!("{why}: put the directory itself in its place")));
                }
                Ok(meta) if !meta.is_dir() => return (Vec::new(), None),
                Ok(_) => {}
            }
        }
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) => return (Vec::new(), Some(format!("it cannot be listed: {error}"))),
        };
        let fits = |path: &Path| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            ending.is_some_and(|ending| endings.contains(&ending)) && !path.is_dir()
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| fits(path)).collect();
        paths.sort();
        let problem = (paths.len() > MOST_FILES)
            .then(|| format!("it holds more than {MOST_FILES} files, and only the first are read: move some away"));
        paths.truncate(MOST_FILES);
        let stem =
            |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        (paths.into_iter().map(|path| (stem(&path), path)).collect(), problem)
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
            let file = |(stem, path): (String, PathBuf)| ShelvedFile { text: read_file(&path), stem, path };
            Self { files: files.into_iter().map(file).collect(), problem }
        });
        let gone = |_| Self { files: Vec::new(), problem: Some("it could not be read: try again".to_owned()) };
        read.await.unwrap_or_else(gone)
    }
}

/// The text of a file that is no link.
pub(super) fn read_file(path: &Path) -> Result<String, String> {
    let meta = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if meta.is_symlink() {
        return Err("it is a symbolic link and is not followed: put the file itself in its place".to_owned());
    }
    if !meta.is_file() {
        return Err("it is no regular file".to_owned());
    }
    text_of(open(path, libc::O_NOFOLLOW).map_err(|error| error.to_string())?)
}

/// Opens something for reading without waiting for another end.
pub(super) fn open(path: &Path, flags: i32) -> std::io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flags).open(path)
}

/// The text of an opened file, if it is one.
pub(super) fn text_of(file: File) -> Result<String, String> {
    // Looked at again on the handle: something else may have been put in its place.
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let too_long = || format!("it is longer than {MOST_CHARS} characters: split it, or pass data in args");
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_long());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text: save it as UTF-8".to_owned())?;
    if text.chars().count() > MOST_CHARS { Err(too_long()) } else { Ok(text) }
}
