//! The windows of a run as they are written down: a file for each agent that has one open, which its process
//! keeps locked, and to which claims are only ever added. Versions before this one knew one window, in a
//! file of its own: it claims everything. An undo and a taking over are such windows still.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::claims::{Claims, Line, Place};
use crate::error::Error;
use crate::steps::StepCause;
use crate::tree::remove_if_there;
use crate::turn::{Holder, Mark, is_at, mark};

/// The name of the window that excludes all others.
pub(crate) const ALONE: &str = "";

/// What is known of the windows from looking at them. Their files only grow, so that each is read once.
#[derive(Debug)]
pub(crate) struct WindowFiles {
    dir: PathBuf,
    seen: BTreeMap<String, Window>,
}

/// A window, as its file says.
#[derive(Debug)]
pub(crate) struct Window {
    /// Kept open, so that no other file gets its number.
    file: File,
    /// What was read and is no whole line yet.
    rest: Vec<u8>,
    /// How many bytes of whole lines were read.
    read: usize,
    subject: Option<String>,
    token: Option<String>,
    pub(crate) claims: Claims,
    /// Whether the process that opened it lives.
    pub(crate) is_open: bool,
}

impl Window {
    /// What made it; it is known that something did, even if a crash left the file empty.
    pub(crate) fn by(&self, name: &str) -> StepCause {
        let unknown = if name == ALONE { "unknown" } else { name };
        let unknown = StepCause::Agent { name: unknown.to_owned(), interrupted: true };
        self.subject.as_deref().and_then(StepCause::parse).unwrap_or(unknown)
    }

    pub(crate) fn holder(&self, name: &str) -> Holder {
        Holder { name: self.by(name).subject(), token: self.token.clone().unwrap_or_default() }
    }

    /// How far it has been read, by which later lines are known.
    pub(crate) fn length(&self) -> usize {
        self.read
    }

    /// A handle by which the window is known again.
    pub(crate) fn handle(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    fn read_on(&mut self, alone: bool) -> std::io::Result<()> {
        self.file.read_to_end(&mut self.rest)?;
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.read += line.len();
            let text = || String::from_utf8_lossy(&line[..end]).into_owned();
            match (&self.subject, &self.token) {
                (None, _) => self.subject = Some(text()),
                (_, None) => self.token = Some(text()),
                // A line of a newer version says nothing to this one.
                _ if !alone => drop(Line::read(&line[..end]).map(|line| self.claims.apply(line))),
                _ => {}
            }
        }
        if alone && self.subject.is_none() && !self.rest.is_empty() {
            self.subject = Some(String::from_utf8_lossy(&self.rest).into_owned());
        }
        Ok(())
    }
}

impl WindowFiles {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, seen: BTreeMap::new() }
    }

    /// Where the mark of a window is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if name == ALONE { self.dir.join("window") } else { self.dir.join("windows").join(name) }
    }

    /// Looks at what has changed, and which processes live. Only with the turn for claims: a mark that is
    /// being made is not locked for a moment, and a lock that is tried is held for a moment.
    pub(crate) fn look(&mut self) -> Result<&BTreeMap<String, Window>, Error> {
        let below = self.dir.join("windows");
        let mut names = BTreeSet::from([ALONE.to_owned()]);
        match fs::read_dir(&below) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::file("reading", &below)(error)),
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.map_err(Error::file("reading", &below))?;
                    names.extend(entry.file_name().into_string().ok());
                }
            }
        }
        self.seen.retain(|name, _| names.contains(name));
        for name in names {
            let path = self.path(&name);
            self.look_at(name, &path).map_err(Error::file("reading", &path))?;
        }
        Ok(&self.seen)
    }

    fn look_at(&mut self, name: String, path: &Path) -> std::io::Result<()> {
        let known = match self.seen.get(&name) {
            Some(window) => is_at(&window.file, path)?,
            None => false,
        };
        if !known {
            self.seen.remove(&name);
            let file = match File::open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                other => other?,
            };
            let mut claims = Claims::default();
            if name == ALONE {
                claims.apply(Line::Claim(Place::everything()));
            }
            let window = Window {
                file,
                rest: Vec::new(),
                read: 0,
                subject: None,
                token: None,
                claims,
                is_open: false,
            };
            self.seen.insert(name.clone(), window);
        }
        if let Some(window) = self.seen.get_mut(&name) {
            window.read_on(name == ALONE)?;
            window.is_open = match window.file.try_lock() {
                Ok(()) => {
                    window.file.unlock()?;
                    false
                }
                Err(TryLockError::WouldBlock) => true,
                Err(TryLockError::Error(error)) => return Err(error),
            };
        }
        Ok(())
    }

    /// Opens a window; it is open for as long as the file is kept.
    pub(crate) fn make(
        &self,
        name: &str,
        by: &StepCause,
        token: &str,
        lines: &[Line],
    ) -> Result<Mark, Error> {
        let path = self.path(name);
        let above = self.dir.join("windows");
        fs::create_dir_all(&above).map_err(Error::file("making", &above))?;
        let mut text = format!("{}\n{token}\n", by.subject()).into_bytes();
        lines.iter().for_each(|line| line.write(&mut text));
        mark(&path, &text)
    }

    /// Adds to what is written of a window, all at once.
    pub(crate) fn add(&self, name: &str, lines: &[Line]) -> Result<(), Error> {
        let path = self.path(name);
        let mut text = Vec::new();
        lines.iter().for_each(|line| line.write(&mut text));
        let added = OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(&text));
        added.map_err(Error::file("writing", &path))
    }

    /// The claims that were added behind a place in the file.
    pub(crate) fn since(&self, name: &str, length: usize) -> Result<Vec<Line>, Error> {
        let path = self.path(name);
        let text = fs::read(&path).map_err(Error::file("reading", &path))?;
        let lines = text.get(length..).unwrap_or_default().split(|byte| *byte == b'\n');
        Ok(lines.filter_map(Line::read).collect())
    }

    /// The claims that were added since no command was under way.
    pub(crate) fn since_idle(&self, name: &str) -> Result<Vec<Line>, Error> {
        let mut lines = self.since(name, 0)?;
        let idle = lines.iter().rposition(|line| *line == Line::Idle);
        Ok(lines.split_off(idle.map_or(0, |idle| idle + 1)))
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        remove_if_there(&self.path(name))
    }
}
