//! Which process has the turn to write the record of a run. A turn is a locked file, so that it ends with its
//! process; it also names its holder, because a process that is stopped (SIGSTOP, a laptop's sleep) keeps its
//! locks for as long as it stands still. Such a turn, and the window of such a process, are taken away once
//! its right to go on has gone to another. It is refused when it continues.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::tree::remove_if_there;

/// How long is waited for a turn or a window whose holder lives and may go on: longer than any command is
/// allowed to take by default.
const LONGEST: Duration = Duration::from_secs(600);

/// The same for commands of a person's, which have no fence to ask.
const LONGEST_ALONE: Duration = Duration::from_secs(30);

/// How often a turn is tried, and how often the fence is asked about its holder.
pub(crate) const TRIES: Duration = Duration::from_millis(10);
const LOOKS: Duration = Duration::from_millis(250);

/// After this long the fence is told what is waited for.
const TOLD: Duration = Duration::from_secs(1);

/// The agent that writes, and a token by which other processes can find out whether it may still do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// What [`Fence::is_fenced`] is asked about; on one line, and empty if there is no fence to ask.
    pub token: &'a str,
}

impl<'a> From<&'a str> for Actor<'a> {
    fn from(agent: &'a str) -> Self {
        Self { agent, token: "" }
    }
}

/// What the holder of a turn or a window says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its name, in words.
    pub name: String,
    /// Its token.
    pub token: String,
}

/// The answer of a fence.
pub type FenceAnswer = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Knows which processes may go on. The crate itself decides nothing about that.
pub trait Fence: std::fmt::Debug + Send + Sync {
    /// Whether the holder with this token may write no more, for good: it is gone, or another has its place.
    /// Asked again and again while something is waited for. Where no other has the place of a holder that is
    /// silent, the fence takes it away first.
    fn is_fenced(&self, token: &str) -> FenceAnswer;

    /// Something is waited for that this holder has.
    fn waits_for(&self, holder: &Holder);
}

/// A bounded wait, which the fence is told of.
pub(crate) struct Wait<'a> {
    fence: Option<&'a dyn Fence>,
    began: Instant,
    looked: Option<Instant>,
    told: bool,
}

impl<'a> Wait<'a> {
    pub(crate) fn new(fence: Option<&'a dyn Fence>) -> Self {
        Self { fence, began: Instant::now(), looked: None, told: false }
    }

    /// Waits a moment for this holder. True if it is fenced, so that what it holds can be taken away.
    pub(crate) async fn for_holder(&mut self, holder: &Holder) -> Result<bool, Error> {
        self.until(holder, TRIES, std::future::pending()).await
    }

    /// The same for a holder of which it is told when it has ended: looked at again then, or after this long.
    pub(crate) async fn until(
        &mut self,
        holder: &Holder,
        moment: Duration,
        told: impl Future<Output = ()>,
    ) -> Result<bool, Error> {
        let waited = self.began.elapsed();
        if waited > if self.fence.is_some() { LONGEST } else { LONGEST_ALONE } {
            return Err(Error::Stuck { by: holder.name.clone(), seconds: waited.as_secs() });
        }
        if let Some(fence) = self.fence {
            if waited >= TOLD && !self.told {
                self.told = true;
                fence.waits_for(holder);
            }
            let due = self.looked.is_none_or(|last| last.elapsed() >= LOOKS);
            if due && !holder.token.is_empty() {
                self.looked = Some(Instant::now());
                if fence.is_fenced(&holder.token).await {
                    return Ok(true);
                }
            }
        }
        tokio::select! {
            () = told => {}
            () = tokio::time::sleep(moment) => {}
        }
        Ok(false)
    }
}

/// The turn to write the record; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    file: File,
    path: PathBuf,
    holder: Holder,
}

/// A lock ends with the last handle of its file, and a program that is being started at this moment has
/// copies of all handles: so it is given back, and not only let go of.
impl Drop for Turn {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The mark of a window: a locked file.
#[derive(Debug)]
pub(crate) struct Mark(File);

impl Mark {
    pub(crate) fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Turn {
    /// Waits for the turn at this file.
    pub(crate) async fn take(
        path: PathBuf,
        actor: Actor<'_>,
        fence: Option<&dyn Fence>,
    ) -> Result<Self, Error> {
        let mut wait = Wait::new(fence);
        loop {
            if let Some(turn) = Self::try_take(&path, actor).map_err(Error::file("locking", &path))? {
                return Ok(turn);
            }
            let (holder, file) = holder(&path)?;
            if wait.for_holder(&holder).await?
                && let Some(file) = file
            {
                take_away(&path, &file).map_err(Error::file("removing", &path))?;
            }
        }
    }

    fn try_take(path: &Path, actor: Actor<'_>) -> std::io::Result<Option<Self>> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // It may have been taken away between the two.
        if !is_at(&file, path)? {
            return Ok(None);
        }
        let text = format!("{}\n{}\n", actor.agent, actor.token);
        // Written over and cut off behind it: a file that was emptied first is brought to the disk by some
        // file systems when it is closed, which takes many times as long as a turn.
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len().try_into().unwrap_or(u64::MAX))?;
        let holder = Holder { name: actor.agent.to_owned(), token: actor.token.to_owned() };
        Ok(Some(Self { file, path: path.to_owned(), holder }))
    }

    /// The one that has it.
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { agent: &self.holder.name, token: &self.holder.token }
    }

    /// To be called before anything is written: a turn that was taken away while its process stood still is
    /// none any more.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match is_at(&self.file, &self.path).map_err(Error::file("looking at", &self.path))? {
            true => Ok(()),
            false => Err(Error::Fenced),
        }
    }
}

/// The holder of a turn, by what its file says; with the file, so that it is known again.
fn holder(path: &Path) -> Result<(Holder, Option<File>), Error> {
    let nobody = || Holder { name: "another process".to_owned(), token: String::new() };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((nobody(), None)),
        other => other.map_err(Error::file("opening", path))?,
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(Error::file("reading", path))?;
    let mut lines = text.lines();
    let name = lines.next().filter(|name| !name.is_empty()).map_or_else(|| nobody().name, str::to_owned);
    Ok((Holder { name, token: lines.next().unwrap_or_default().to_owned() }, Some(file)))
}

/// Removes a file of a fenced holder, if it is still the one that was looked at. Two that find the same
/// holder fenced take turns here, or the second would take away what the first has just begun.
fn take_away(path: &Path, file: &File) -> std::io::Result<()> {
    let gate = File::create(path.with_extension("gate"))?;
    // Held for two calls and never while anything is waited for.
    gate.lock()?;
    if is_at(file, path)? {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Whether this open file is the one at the path.
pub(crate) fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let here = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a mark of its own: a file that no other process has open, locked for as long as it is kept.
pub(crate) fn mark(path: &Path, text: &[u8]) -> Result<Mark, Error> {
    // Never the file of an earlier window: a fenced process may have that one open still.
    remove_if_there(path)?;
    let made = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.lock()?;
        file.write_all(text)?;
        Ok(file)
    })();
    made.map(Mark).map_err(Error::file("writing", path))
}
