//! One directory of the library and the files in it. No link is followed, nothing that is no regular file is
//! opened, and what is too long or no text is told and not read further.

use std::fs::File;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Error, Kind, Links, read_whole};

/// Characters that a source may have.
const MOST_CHARS: usize = 524_288;
/// Bytes that so many characters can take.
const MOST_BYTES: u64 = 4 * MOST_CHARS as u64;
/// Files of one folder that are looked at.
const MOST_FILES: usize = 1_000;
/// Folders of one folder that are looked into, and how deep they may lie.
const MOST_FOLDERS: usize = 200;
const DEEPEST: usize = 8;

/// What the files of a folder end with, and whether it has folders in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sort {
    endings: &'static [&'static str],
    folders: bool,
}

pub(super) const WORKFLOWS: Sort = Sort { endings: &["js", "mjs"], folders: false };
/// People sort kinds of agents into folders; a kind is called what it says itself, wherever it lies.
pub(super) const AGENTS: Sort = Sort { endings: &["md"], folders: true };

/// Where a workflow or a kind of agent comes from.
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
pub struct LibraryFolder {
    /// The directory.
    pub dir: PathBuf,
    /// Where its files come from.
    pub origin: Origin,
}

impl LibraryFolder {
    /// What the files on it are called that could be workflows, without looking into them.
    pub fn workflows(&self) -> Vec<String> {
        self.files(WORKFLOWS).0.into_iter().map(|(stem, _)| stem).collect()
    }

    /// What the files on it are called that begin as a kind of agent does.
    pub fn agents(&self) -> Vec<String> {
        let begins = |path: &Path| self.read(path).is_ok_and(|text| super::front_matter::begins(&text));
        self.files(AGENTS).0.into_iter().filter(|(_, path)| begins(path)).map(|(stem, _)| stem).collect()
    }

    /// The last two parts of its path.
    pub(super) fn name(&self) -> String {
        let parts: Vec<_> = self.dir.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("/")
    }

    /// The files of this sort, by name, and what is wrong with the folder itself.
    fn files(&self, sort: Sort) -> (Vec<(String, PathBuf)>, Option<String>) {
        let dir = match self.open() {
            Ok(dir) => dir,
            Err(error) if error.is_missing() => return (Vec::new(), None),
            // A link that leads to no directory leaves no file out.
            Err(Error::Link { .. }) if !self.dir.is_dir() => return (Vec::new(), None),
            Err(Error::Link { .. }) => {
                let why = format!("{} is a symbolic link and is not followed", self.dir.display());
                return (Vec::new(), Some(format!("{why}: put the directory itself in its place")));
            }
            Err(Error::Kind { .. }) => return (Vec::new(), None),
            Err(error) => return (Vec::new(), Some(format!("it cannot be looked at: {}", error.reason()))),
        };
        let mut problem = None;
        let mut entries = match dir.entries(Path::new("")) {
            Ok(entries) => entries.into_iter().map(|entry| (PathBuf::from(entry.name), entry.kind)).collect(),
            Err(error) => return (Vec::new(), Some(format!("it cannot be listed: {}", error.reason()))),
        };
        if sort.folders {
            problem = below(&dir, &mut entries);
        }
        let fits = |path: &Path, kind: Kind| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let is_dir = kind == Kind::Directory || kind == Kind::Link && path.is_dir();
            ending.is_some_and(|ending| sort.endings.contains(&ending)) && !is_dir
        };
        let paths = entries.into_iter().map(|(path, kind)| (self.dir.join(path), kind));
        let mut paths: Vec<PathBuf> =
            paths.filter(|(path, kind)| fits(path, *kind)).map(|(path, _)| path).collect();
        paths.sort();
        if paths.len() > MOST_FILES {
            problem = Some(format!(
                "it holds more than {MOST_FILES} files, and only the first are read: move some away"
            ));
        }
        paths.truncate(MOST_FILES);
        let stem = |path: &PathBuf| {
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        };
        (paths.into_iter().map(|path| (stem(&path), path)).collect(), problem)
    }

    /// Its handle. A link in a project leads wherever the project likes; above it, and above a person's own
    /// folder, the person's own links are their own business.
    fn open(&self) -> Result<Dir, Error> {
        let parts = if self.origin == Origin::Project { 2 } else { 1 };
        let above = self.dir.ancestors().nth(parts).unwrap_or(Path::new("/"));
        Dir::open(above)?.dir(self.dir.strip_prefix(above).unwrap_or(&self.dir))
    }

    /// The text of a file on it that is no link.
    fn read(&self, path: &Path) -> Result<String, String> {
        let name = path.strip_prefix(&self.dir).unwrap_or(path);
        match self.open().and_then(|dir| dir.file(name, Links::Refused)) {
            Ok((file, _)) => text_of(file),
            Err(Error::Link { .. }) => {
                Err("it is a symbolic link and is not followed: put the file itself in its place".to_owned())
            }
            Err(error) => Err(refusal(&error)),
        }
    }
}

/// Adds what lies in folders below, which are no links; says if not all of them were looked into.
fn below(dir: &Dir, entries: &mut Vec<(PathBuf, Kind)>) -> Option<String> {
    let is_folder =
        |(path, kind): &&(PathBuf, Kind)| *kind == Kind::Directory && path.components().count() <= DEEPEST;
    let mut folders: Vec<PathBuf> = entries.iter().filter(is_folder).map(|(path, _)| path.clone()).collect();
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        if at == MOST_FOLDERS || entries.len() > 2 * MOST_FILES {
            return Some(
                "it holds so many folders and files that only the first are read: move some away".to_owned(),
            );
        }
        at += 1;
        // One that cannot be listed holds nothing that could be used; what else there is can be.
        let listed = dir.entries(&folder).unwrap_or_default();
        let found: Vec<(PathBuf, Kind)> =
            listed.into_iter().map(|entry| (folder.join(entry.name), entry.kind)).collect();
        folders.extend(found.iter().filter(is_folder).map(|(path, _)| path.clone()));
        entries.extend(found);
    }
    None
}

/// A file of a folder.
#[derive(Debug)]
pub(super) struct LibraryFile {
    pub(super) path: PathBuf,
    /// Its name without the ending.
    pub(super) stem: String,
    /// What stands in it, or why that cannot be read.
    pub(super) text: Result<String, String>,
}

/// What stands on a folder.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) files: Vec<LibraryFile>,
    /// What is wrong with the folder itself.
    pub(super) problem: Option<String>,
}

impl Contents {
    pub(super) async fn read(folder: &LibraryFolder, sort: Sort) -> Self {
        let folder = folder.clone();
        let read = tokio::task::spawn_blocking(move || {
            let (files, problem) = folder.files(sort);
            let file = |(stem, path): (String, PathBuf)| LibraryFile { text: folder.read(&path), stem, path };
            Self { files: files.into_iter().map(file).collect(), problem }
        });
        let gone =
            |_| Self { files: Vec::new(), problem: Some("it could not be read: try again".to_owned()) };
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
