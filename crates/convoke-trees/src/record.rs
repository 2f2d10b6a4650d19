//! What is remembered of a run beside its commits: where its trees are, which commands are under way, and
//! which files were ignored when they were first seen. It is a directory of ours below the state directory.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::modes::{self, Modes};
use crate::places::{HostPlaces, checked_name};
use crate::store::{Location, replace_file};
use crate::tree::{LeftOut, remove_if_there};
use crate::turn::{Actor, Fence, Turn};
use crate::window_files::WindowFiles;

/// The directory of one run's record for one directory that it works in.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    dir: PathBuf,
}

impl Record {
    pub(crate) fn new(places: &HostPlaces, run: &str, dir: &Path) -> Result<Self, Error> {
        let run = checked_name(run)?;
        Ok(Self { dir: places.state.join("trees/runs").join(run).join(digest(dir.as_os_str().as_bytes())) })
    }

    /// Whether anything was ever written down.
    pub(crate) fn is_there(&self) -> bool {
        self.dir.symlink_metadata().is_ok()
    }

    pub(crate) fn make(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.dir).map_err(Error::file("making", &self.dir))
    }

    /// Removes it, and the run's directory if it was the last in it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::file("removing", &self.dir)(error));
            }
            _ => {}
        }
        if let Some(run) = self.dir.parent() {
            // Other directories of the same run may have records still.
            let _ = fs::remove_dir(run);
        }
        Ok(())
    }

    /// The index of the run's snapshots.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// A place for files that are needed for a moment.
    pub(crate) fn scratch(&self) -> Result<Scratch, Error> {
        let path = crate::store::unused(&self.dir.join("scratch"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(Error::file("making", &path))?;
        Ok(Scratch { path })
    }

    /// Waits until no other process works on this record.
    pub(crate) async fn turn(&self, actor: Actor<'_>, fence: Option<&dyn Fence>) -> Result<Turn, Error> {
        self.make()?;
        Turn::take(self.dir.join("lock"), actor, fence).await
    }

    /// Waits until no other process looks at claims or adds one, which takes a moment.
    pub(crate) async fn claims(&self, actor: Actor<'_>, fence: Option<&dyn Fence>) -> Result<Turn, Error> {
        self.make()?;
        Turn::take(self.dir.join("claims"), actor, fence).await
    }

    /// The windows of the run.
    pub(crate) fn windows(&self) -> WindowFiles {
        WindowFiles::new(self.dir.clone())
    }

    /// The latest step, so that it is known without asking git. It is written before the step counts: one
    /// that came to nothing stands before all later ones too.
    pub(crate) fn tip(&self) -> Result<Option<String>, Error> {
        let text = read_if_there(&self.dir.join("tip"))?;
        Ok(text.and_then(|text| String::from_utf8(text).ok()).filter(|text| !text.is_empty()))
    }

    pub(crate) fn set_tip(&self, commit: &str) -> Result<(), Error> {
        replace_file(&self.dir.join("tip"), commit.as_bytes())
    }

    pub(crate) fn location(&self) -> Result<Option<Location>, Error> {
        self.get_json("location")
    }

    pub(crate) fn set_location(&self, location: &Location) -> Result<(), Error> {
        self.put_json("location", location)
    }

    /// Files that were ignored when they were first seen, and so do not belong to the run.
    pub(crate) fn hidden(&self) -> Result<Vec<PathBuf>, Error> {
        let text = read_if_there(&self.dir.join("hidden"))?.unwrap_or_default();
        let names = text.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
    }

    /// The permissions of files before the run changed them.
    pub(crate) fn modes(&self) -> Result<Modes, Error> {
        Ok(modes::from_bytes(&read_if_there(&self.dir.join("modes"))?.unwrap_or_default()))
    }

    pub(crate) fn set_modes(&self, all: &Modes) -> Result<(), Error> {
        replace_file(&self.dir.join("modes"), &modes::to_bytes(all))
    }

    pub(crate) fn set_hidden(&self, paths: &[PathBuf]) -> Result<(), Error> {
        let names: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
        replace_file(&self.dir.join("hidden"), &names.join(&0))
    }
}

impl Record {
    /// What is in a file of the record; nothing if there is none.
    pub(crate) fn get(&self, name: &str) -> Result<Vec<u8>, Error> {
        Ok(read_if_there(&self.dir.join(name))?.unwrap_or_default())
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        replace_file(&self.dir.join(name), bytes)
    }

    /// The same with something that was written as JSON.
    pub(crate) fn get_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let path = self.dir.join(name);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|_| Error::Unreadable { what: path.display().to_string() })
    }

    pub(crate) fn put_json<T: Serialize>(&self, name: &str, what: &T) -> Result<(), Error> {
        let path = self.dir.join(name);
        let text =
            serde_json::to_vec(what).map_err(|_| Error::Unreadable { what: path.display().to_string() })?;
        replace_file(&path, &text)
    }

    /// Writes an empty file and says when that was, in nanoseconds: files made after it are not older by the
    /// same clock.
    pub(crate) fn written_now(&self, name: &str) -> Result<i64, Error> {
        use std::os::unix::fs::MetadataExt;
        let path = self.dir.join(name);
        replace_file(&path, b"")?;
        let about = fs::metadata(&path).map_err(Error::file("looking at", &path))?;
        Ok(about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec()))
    }

    pub(crate) fn drop_file(&self, name: &str) -> Result<(), Error> {
        remove_if_there(&self.dir.join(name))
    }

    /// What could not be kept at any time of the run.
    pub(crate) fn left_out(&self) -> Result<BTreeSet<LeftOut>, Error> {
        let path = self.dir.join("left_out");
        let text = read_if_there(&path)?.unwrap_or_default();
        let mut parts = text.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let mut all = BTreeSet::new();
        while let (Some(name), Some(why)) = (parts.next(), parts.next()) {
            let why = String::from_utf8_lossy(why).into_owned();
            all.insert(LeftOut { path: PathBuf::from(OsStr::from_bytes(name)), why });
        }
        Ok(all)
    }

    /// Remembers what could not be kept now, beside what could not be before.
    pub(crate) fn add_left_out(&self, found: &[LeftOut]) -> Result<(), Error> {
        let mut all = self.left_out()?;
        let before = all.len();
        all.extend(found.iter().cloned());
        if all.len() == before {
            return Ok(());
        }
        let parts: Vec<&[u8]> =
            all.iter().flat_map(|out| [out.path.as_os_str().as_bytes(), out.why.as_bytes()]).collect();
        replace_file(&self.dir.join("left_out"), &parts.join(&0))
    }
}

/// A directory that goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind is below our state directory and is removed with the run's record.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A short name for some bytes that is also good for files.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("reading", path)(error)),
    }
}
