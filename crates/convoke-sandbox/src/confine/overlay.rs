//! Private writable layers over directories that stay as they are. The layers are kept in the agent's private
//! directory and found there again; the mounts exist only in the mount namespace of the process that makes
//! them.

use std::ffi::CString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::stage::c_path;
use crate::policy::Access;
use crate::sys;

/// The layers of one agent.
pub(crate) struct Overlays<'a> {
    private: &'a Path,
    /// What the kernel is asked for, the best first: in a user namespace marks are kept in attributes of the
    /// user's, and directories of the lower layer cannot be renamed.
    options: [&'static str; 2],
    memory: u64,
    /// Whether layers over caches are made in memory, and go with the shell.
    caches_in_memory: bool,
}

impl<'a> Overlays<'a> {
    /// Layers in this directory, or in memory up to so many bytes where its filesystem cannot carry them.
    /// Layers over caches of an agent that only reads are in memory anyway: few commands write there, and to
    /// make and remove their directories on a disk would cost such an agent more than all its other mounts.
    pub(crate) fn new(private: &'a Path, user_namespace: bool, memory: u64, access: Access) -> Self {
        let options = if user_namespace { [",userxattr", ""] } else { [",redirect_dir=on", ""] };
        Self { private, options, memory, caches_in_memory: access == Access::ReadOnly }
    }

    /// Mounts a layer over a directory of caches, named by where it is.
    pub(crate) fn mount_cache(&self, lower: &Path) -> Result<PathBuf, String> {
        // A short name that is the same for the same path: FNV-1a.
        let hash =
            lower.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let name = format!("cache-{hash:016x}");
        if self.caches_in_memory {
            let memory = self.private.join("ram");
            let at = memory.join("mnt").join(&name);
            let made = if memory.join("mnt").exists() { Ok(()) } else { self.make_memory(&memory) };
            if let Ok(found) = made.and_then(|()| self.attempt(&memory, &name, lower, &at)) {
                return Ok(found);
            }
        }
        self.mount(&name, lower)
    }

    /// A filesystem in memory, which is seen in this mount namespace alone.
    fn make_memory(&self, at: &Path) -> Result<(), String> {
        let text = |error: io::Error| format!("no memory at {}: {error}", at.display());
        let options =
            CString::new(format!("size={},mode=0700", self.memory)).map_err(|error| error.to_string())?;
        make(at).map_err(text)?;
        sys::mount_made(c"tmpfs", &options, &c_path(at)?).map_err(text)
    }

    /// Mounts a layer over `lower` and says where both are seen as one.
    pub(crate) fn mount(&self, name: &str, lower: &Path) -> Result<PathBuf, String> {
        let at = self.private.join("mnt").join(name);
        let on_disk = self.attempt(self.private, name, lower, &at);
        on_disk.or_else(|why| {
            let memory = self.private.join("ram").join(name);
            self.make_memory(&memory).map_err(|_| why.clone())?;
            self.attempt(&memory, name, lower, &at).map_err(|_| why)
        })
    }

    fn attempt(&self, keep: &Path, name: &str, lower: &Path, at: &Path) -> Result<PathBuf, String> {
        let text = |error: io::Error| format!("no overlay over {}: {error}", lower.display());
        let upper = keep.join("upper").join(name);
        let work = keep.join("work").join(name);
        for directory in [&upper, &work, &at.to_owned()] {
            make(directory).map_err(text)?;
        }
        resemble(lower, &upper).map_err(text)?;
        let handle = |path: &Path| {
            File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)
        };
        let handles =
            [handle(lower).map_err(text)?, handle(&upper).map_err(text)?, handle(&work).map_err(text)?];
        // By handle, because the options have signs of their own that a path may contain.
        let [lower, upper, work] = [&handles[0], &handles[1], &handles[2]].map(AsRawFd::as_raw_fd);
        let at_path = c_path(at)?;
        let mut result = Err(String::new());
        for more in self.options {
            let options = format!(
                "lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{work}{more}"
            );
            let options = CString::new(options).map_err(|error| error.to_string())?;
            match sys::mount_made(c"overlay", &options, &at_path) {
                Ok(()) => return Ok(at.to_owned()),
                Err(error) => result = result.or(Err(text(error))),
            }
        }
        result
    }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// The top of the upper layer is the one that is seen, so it looks like the lower one.
fn resemble(lower: &Path, upper: &Path) -> io::Result<()> {
    let like = lower.metadata()?;
    let now = upper.metadata()?;
    if (like.uid(), like.gid()) != (now.uid(), now.gid()) {
        // Where this is refused the owner is the same user under another group, and nothing is lost.
        let _ = std::os::unix::fs::chown(upper, Some(like.uid()), Some(like.gid()));
    }
    std::fs::set_permissions(upper, std::fs::Permissions::from_mode(like.mode() & 0o1777 | 0o700))
}
