//! The frames between the host and its helper: a length of four bytes (little end first) and that much JSON.
//! Nothing a command prints ever travels here, so nothing it prints can be taken for a frame.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::policy::{LayerSet, Policy};

/// How surely everything below the helper dies when it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessHold {
    /// The helper is the init of a pid namespace: the kernel kills all of it, even when the helper is killed.
    PidNamespace,
    /// The helper adopts orphans and walks the process tree. Background processes survive if the helper
    /// itself is killed with SIGKILL.
    Subreaper {
        /// Why there is no pid namespace.
        why: String,
    },
}

/// Which hold to try for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldChoice {
    /// A pid namespace, and the subreaper where the machine refuses one.
    #[default]
    Best,
    /// The subreaper even where a pid namespace could be had.
    Subreaper,
}

/// What the host says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToHelper {
    /// The first frame. Without a shell the helper only says which hold it reached.
    /// `confine` is the policy and the means; without it nothing is confined.
    Begin { hold: HoldChoice, shell: Option<ShellSetup>, confine: Option<Box<Confine>> },
    /// Run this command; answered by `Finished` with the same id.
    Run { id: u64, command: String },
    /// End the command with this id and everything it started; it is still answered by `Finished`.
    Kill { id: u64 },
    /// End all background jobs. Sent only while no command runs; not answered.
    KillJobs,
    /// The first frame to a helper that becomes a template: one from which the helpers of shells are forked.
    /// With bubblewrap it stands in namespaces, each of its helpers in further ones of its own, and
    /// `own_network` says whether the network is one of these.
    Prepare { bubblewrap: Option<PathBuf>, own_network: bool },
    /// To a template: fork a helper. Comes with its socket and its output pipe, in that order.
    Fork,
}

/// What the shell is confined to, and by which means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confine {
    pub(crate) set: LayerSet,
    pub(crate) policy: Policy,
    /// The home directory, if it is hidden and a private one takes its place.
    pub(crate) home: Option<PathBuf>,
    /// What commands of others may write: no program is taken from there.
    pub(crate) distrusted: Vec<PathBuf>,
    /// What in the workspace is mounted read-only where there are mounts, besides metadata that the helper
    /// finds itself.
    pub(crate) guarded: Vec<PathBuf>,
}

/// In which form bubblewrap works here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Form {
    /// Whether there is a user namespace.
    pub(crate) user_namespace: bool,
    /// Whether there is a `/proc` of its own, and with it a pid namespace.
    pub(crate) own_proc: bool,
    /// Whether there are overlays.
    pub(crate) overlay: bool,
    /// Whether further user namespaces are ruled out by bubblewrap too.
    pub(crate) no_more_users: bool,
    /// What the machine said to surer forms.
    pub(crate) failures: Vec<String>,
}

/// Where and with what the shell begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShellSetup {
    /// The directory to begin in, if it exists.
    pub(crate) cwd: PathBuf,
    /// The directory to fall back to.
    pub(crate) fallback_cwd: PathBuf,
    /// The whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Whether the host wants to be asked before commands write in the tree.
    pub(crate) traced: bool,
}

/// What the helper says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromHelper {
    /// The first frame.
    Hello { hold: ProcessHold },
    /// Comes with the tree's handle, and with the proxy's listener if there is one; the door is shut after
    /// it.
    Confined { tree: String, proxy: Option<u16>, form: Form },
    /// The shell has been started. If the host is asked before commands write, it comes with the socket for
    /// that.
    Ready { cwd: String, missing_cwd: Option<String>, traced: bool },
    /// A command is over.
    Finished {
        id: u64,
        /// `None` where the shell could not be relied on any more.
        code: Option<i32>,
        killed: bool,
        limit: Option<String>,
        cwd: String,
        env: BTreeMap<String, String>,
        replaced: Option<String>,
        jobs: bool,
        /// What of the tree is still open for writing, as bytes of paths below it.
        held: Vec<Vec<u8>>,
    },
    /// The template stands.
    Prepared,
    /// A helper was forked; comes with a handle of its process.
    Forked,
    /// The helper ends after this.
    Fatal { message: String },
}

/// What a helper says on the socket for writes. It is apart from the other one, so that a background job can
/// ask at any time.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Question {
    /// Whether these may be written, each as the bytes of its path below the tree, and whether with all below
    /// it; answered by [`Answer`] with the same id, in any order.
    Ask { id: u64, places: Vec<(Vec<u8>, bool)> },
    /// What asked this has ended. An answer that is on its way is no mistake.
    Withdraw { id: u64 },
}

/// What the host says there: what was asked with this id may be written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) id: u64,
}

/// Larger than any frame we send; a longer one is garbage.
pub(crate) const MAX_FRAME: usize = 64 * 1024 * 1024;

/// The bytes in front of a frame that say how long it is.
pub(crate) const PREFIX: usize = 4;

/// One frame, ready to be written.
pub(crate) fn encode<T: Serialize>(frame: &T) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, frame).map_err(|error| error.to_string())?;
    let length = bytes.len() - PREFIX;
    let prefix = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME).ok_or("the frame is too long")?;
    bytes[..PREFIX].copy_from_slice(&prefix.to_le_bytes());
    Ok(bytes)
}

/// Collects bytes until they make frames. It keeps what is incomplete, so a reader may be interrupted between
/// two reads.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Adds what was read.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes the frame that has been begun still needs.
    pub(crate) fn missing(&self) -> Result<usize, String> {
        match self.announced()? {
            Some(length) => Ok((PREFIX + length).saturating_sub(self.bytes.len())),
            None => Ok(PREFIX - self.bytes.len()),
        }
    }

    fn announced(&self) -> Result<Option<usize>, String> {
        let Some(prefix) = self.bytes.first_chunk::<PREFIX>() else { return Ok(None) };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > MAX_FRAME {
            return Err(format!("a frame of {length} bytes was announced"));
        }
        Ok(Some(length))
    }

    /// The next whole frame, if there is one.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let Some(length) = self.announced()? else { return Ok(None) };
        let Some(body) = self.bytes.get(PREFIX..PREFIX + length) else { return Ok(None) };
        let frame = serde_json::from_slice(body).map_err(|error| format!("a frame is not valid: {error}"))?;
        self.bytes.drain(..PREFIX + length);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let frames = [ToHelper::Run { id: 1, command: "echo \"ä\n\"".into() }, ToHelper::Kill { id: 1 }];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| encode(frame).unwrap()).collect();
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                decoder.feed(part);
                while let Some(frame) = decoder.next::<ToHelper>().unwrap() {
                    seen.push(frame);
                }
            }
            assert_eq!(seen, frames, "cut at {cut}");
        }
    }

    #[test]
    fn garbage_is_refused() {
        let mut decoder = Decoder::default();
        decoder.feed(&u32::MAX.to_le_bytes());
        assert!(decoder.next::<ToHelper>().unwrap_err().contains("announced"));
        let mut decoder = Decoder::default();
        decoder.feed(b"\x02\x00\x00\x00{}");
        assert!(decoder.next::<ToHelper>().unwrap_err().contains("not valid"));
    }
}
