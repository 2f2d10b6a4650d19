//! What a probe found, remembered in a small private file with what it was true for, so that not every start
//! tries the sandbox anew. What is remembered decides which layers are used; it makes nothing hold: a shell
//! whose helper reaches less than was promised is refused, and what was remembered is forgotten.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::circumstances::{Circumstances, uptime};
use crate::error::Error;
use crate::layers::Layers;
use crate::probe::{Found, look_without_processes, try_all};
use crate::shell::HelperPath;
use crate::sys;
use crate::wire::ProcessHold;

/// Its name in the state directory.
const NAME: &str = "sandbox.json";

/// More than any record has.
const LONGEST: u64 = 256 << 10;

/// How long it counts that a layer is missing, in seconds: it may have been missing for a moment only, and
/// what is weaker than it need be must not stay so until the next boot.
const MISSING_FOR: u64 = 60 * 60;

/// Where it is remembered what the sandbox can hold.
#[derive(Debug, Clone)]
pub struct ProbeMemory {
    file: PathBuf,
    /// What was found while there was no state directory yet: only a session that begins makes one.
    waiting: Arc<Mutex<Option<Remembered>>>,
}

impl PartialEq for ProbeMemory {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

impl Eq for ProbeMemory {}

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    circumstances: Circumstances,
    layers: Layers,
    /// When it was tried, in seconds since the boot.
    at: u64,
}

impl ProbeMemory {
    /// In this directory, which commands must not be able to write.
    pub fn below(state: &Path) -> Self {
        Self { file: state.join(NAME), waiting: Arc::default() }
    }

    /// What the machine offers, as [`crate::probe`] says it: from memory where that applies, else tried now
    /// and remembered.
    pub async fn layers(
        &self,
        helper: &HelperPath,
        path: Option<&OsStr>,
        workspace: &Path,
    ) -> Result<Layers, Error> {
        let memory = self.clone();
        let (own_helper, own_path) = (helper.clone(), path.map(OsStr::to_owned));
        let own_workspace = workspace.to_owned();
        let remembered = tokio::task::spawn_blocking(move || {
            let remembered = memory.read()?;
            let now = Circumstances::look(&own_helper, own_path.as_deref(), &own_workspace);
            applies(&remembered, &now, uptime()).then(|| look_without_processes(remembered.layers))
        });
        match remembered.await {
            Ok(Some(layers)) => Ok(layers),
            Ok(None) | Err(_) => self.anew(helper, path, workspace).await,
        }
    }

    /// Tries every layer now, whatever is remembered, and remembers what was found.
    pub async fn anew(
        &self,
        helper: &HelperPath,
        path: Option<&OsStr>,
        workspace: &Path,
    ) -> Result<Layers, Error> {
        // Before anything is tried: what changes meanwhile makes the record one of another machine.
        let circumstances = Circumstances::look(helper, path, workspace);
        let Found { layers, lasting } = try_all(helper, path, workspace).await?;
        if lasting && circumstances.can_be_compared() && can_hold(&layers) {
            let remembered = Remembered { circumstances, layers: layers.clone(), at: uptime() };
            if self.file.parent().is_some_and(Path::is_dir) {
                // A place that cannot be written only costs the next start its time.
                let _ = self.write(&remembered);
            } else {
                *self.waiting() = Some(remembered);
            }
        } else {
            self.forget();
        }
        Ok(layers)
    }

    /// A session begins: what was found before there was a state directory is written down now.
    pub fn settle(&self) {
        if let Some(remembered) = self.waiting().take() {
            let _ = self.write(&remembered);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Remembered>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the next start try everything anew.
    pub fn forget(&self) {
        // Where it cannot be removed it could not be written either.
        let _ = fs::remove_file(&self.file);
    }

    /// What is remembered; nothing if the file is not this user's alone, or not whole.
    fn read(&self) -> Option<Remembered> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&self.file).ok()?;
        let about = file.metadata().ok()?;
        let own = about.is_file() && about.uid() == sys::effective_ids().0 && about.mode() & 0o077 == 0;
        if !own || about.len() > LONGEST {
            return None;
        }
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Replaces the file as a whole. It is not synced: one that a crash cut off is not read.
    fn write(&self, remembered: &Remembered) -> io::Result<()> {
        let text = serde_json::to_vec(remembered)?;
        if let Some(state) = self.file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(state)?;
        }
        let aside = self.file.with_extension(sys::random_token()?);
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside);
        let written = made.and_then(|mut file: File| file.write_all(&text));
        let placed = written.and_then(|()| fs::rename(&aside, &self.file));
        if placed.is_err() {
            let _ = fs::remove_file(&aside);
        }
        placed
    }
}

/// Whether anything can be held by these layers at all. That nothing can is never remembered: it is mended by
/// people, who then start again.
fn can_hold(layers: &Layers) -> bool {
    let no_bash = layers.bash_in_namespaces.is_some() || layers.bash_in_landlock.is_some();
    layers.landlock.works && layers.seccomp.works && !no_bash
}

/// Whether what is remembered is true now.
fn applies(remembered: &Remembered, now: &Circumstances, uptime: u64) -> bool {
    let Remembered { circumstances, layers, at } = remembered;
    let age = uptime.checked_sub(*at);
    let whole = layers.bubblewrap.works && layers.own_proc && layers.overlay.works && layers.hold.works;
    let is_fresh = age.is_some_and(|age| whole || age < MISSING_FOR);
    is_fresh && can_hold(layers) && now.can_be_compared() && circumstances == now
}

/// What was said of the layers that hold a policy, to be checked by the first thing that relies on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promise {
    /// That an agent has processes of its own, all of which die with its helper.
    pub own_processes: bool,
    /// Where that is remembered, if it is.
    pub memory: Option<ProbeMemory>,
}

impl Promise {
    /// Passes on how a helper began, unless it holds less than was promised. A helper that could not begin at
    /// all may be no fault of the layers, but what is remembered of them is not relied on again.
    pub(crate) fn check<T>(
        &self,
        begun: Result<T, Error>,
        hold: impl Fn(&T) -> &ProcessHold,
    ) -> Result<T, Error> {
        let missing = begun.as_ref().map(|begun| match hold(begun) {
            ProcessHold::Subreaper { why } if self.own_processes => Some(why.clone()),
            ProcessHold::Subreaper { .. } | ProcessHold::PidNamespace => None,
        });
        if let (Err(_) | Ok(Some(_)), Some(memory)) = (&missing, &self.memory) {
            memory.forget();
        }
        match missing {
            Ok(Some(why)) => Err(Error::NotAsTried { missing: format!("no processes of its own: {why}") }),
            Ok(None) | Err(_) => begun,
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
