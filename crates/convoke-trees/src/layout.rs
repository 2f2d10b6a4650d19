//! Kept files, written out below a directory of ours so that they can be read. It never writes below a work
//! tree.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::handle::Content;
use crate::store::Store;
use crate::tree::{Entry, GITLINK, remove_if_there};

impl Store {
    /// Writes entries as files below `into`, as they were when they were kept. Nested repositories are passed
    /// over. `index` is a file that nothing else uses; it is gone afterwards.
    pub(crate) async fn lay_out(
        &self,
        entries: &[(PathBuf, Entry)],
        index: &Path,
        into: &Path,
    ) -> Result<(), Error> {
        fs::create_dir_all(into).map_err(Error::file("making", into))?;
        let files = entries.iter().filter(|(_, entry)| entry.mode != GITLINK);
        let files: Vec<(&Path, &Entry)> = files.map(|(path, entry)| (path.as_path(), entry)).collect();
        if files.is_empty() {
            return Ok(());
        }
        self.fill_index(index, &files).await?;
        let call = self.content("fetching kept files").work_tree_of_ours(into).index(index)?;
        call.args(["checkout-index", "--all", "--quiet"]).run().await?;
        remove_if_there(index)
    }

    /// Puts these entries into an index, which may be a new one.
    pub(crate) async fn fill_index(&self, index: &Path, entries: &[(&Path, &Entry)]) -> Result<(), Error> {
        for some in entries.chunks(500) {
            let option = |(path, entry): &(&Path, &Entry)| {
                let head = format!("{:o},{},", entry.mode, entry.id);
                let info = [head.as_bytes(), path.as_os_str().as_bytes()].concat();
                [OsString::from("--cacheinfo"), OsString::from_vec(info)]
            };
            let call =
                self.content("listing kept files").index(index)?.args(["update-index", "--add", "--replace"]);
            call.args(some.iter().flat_map(option)).run().await?;
        }
        Ok(())
    }
}

/// Reads a file of this mode that was laid out.
pub(crate) fn read_laid_out(place: &Path, mode: u32) -> io::Result<Content> {
    if mode == 0o120_000 {
        return fs::read_link(place).map(Content::Link);
    }
    fs::read(place).map(|bytes| Content::File { bytes, executable: mode & 0o111 != 0 })
}
