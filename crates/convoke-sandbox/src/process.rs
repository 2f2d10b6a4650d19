//! The process of a helper, as its host holds it: one that the host has started, or one that a template has
//! forked and that is held by a handle of the kernel's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::process::Child;

use crate::sys;
use crate::templates::Template;

/// A helper's process.
#[derive(Debug)]
pub(crate) enum Process {
    /// A child of this process.
    Started(Child),
    /// A child of a template.
    Forked(Forked),
}

/// What a template has forked. The template lives as long as this.
#[derive(Debug)]
pub(crate) struct Forked {
    id: Option<u32>,
    handle: AsyncFd<OwnedFd>,
    _template: Arc<Template>,
}

impl Forked {
    /// Holds the process behind a handle.
    pub(crate) fn new(handle: OwnedFd, template: Arc<Template>) -> io::Result<Self> {
        let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()))?;
        let id = about.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
        let handle = sys::watch_end(handle)?;
        Ok(Self { id, handle, _template: template })
    }
}

impl Process {
    /// Its number, while it is known to run.
    pub(crate) fn id(&self) -> Option<u32> {
        match self {
            Self::Started(child) => child.id(),
            Self::Forked(forked) => forked.id,
        }
    }

    /// Waits for its end and says how it ended, as far as that is known.
    pub(crate) async fn wait(&mut self) -> io::Result<String> {
        match self {
            Self::Started(child) => child.wait().await.map(|status| status.to_string()),
            // Its parent, the template, learns how it ended; that it has ended the kernel tells anyone.
            Self::Forked(forked) => {
                forked.handle.readable().await?.retain_ready();
                forked.id = None;
                Ok("it was killed or could not go on".to_owned())
            }
        }
    }

    /// Kills it. That it has ended already is all right.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Started(child) => {
                let _ = child.start_kill();
            }
            Self::Forked(forked) => sys::signal_held(forked.handle.get_ref().as_fd(), libc::SIGKILL),
        }
    }
}
