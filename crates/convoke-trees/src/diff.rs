//! The run's changes as a patch, as figures or as names. It shows what was recorded and looks at no file.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::keeper::Keeper;
use crate::record::Scratch;
use crate::store::ObjectId;
use crate::tree::{Entry, GITLINK};

/// In which form changes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffForm {
    /// A patch that `git apply` takes, binary files included.
    Patch,
    /// How many lines of which files.
    Stat,
    /// The names, each with a letter for how it was changed.
    Names,
}

impl Keeper {
    /// Exactly the changes of the run, without what others changed meanwhile, with paths as seen from the directory.
    pub async fn diff(&self, form: DiffForm) -> Result<Vec<u8>, Error> {
        let _one_at_a_time = self.state().lock().await;
        let _lock = self.lock_kept().await?;
        let net = self.net().await?;
        // Two trees that hold the changed paths and nothing else differ in the run's changes and nothing else.
        let scratch = self.record().scratch()?;
        let old = self.tree_of(net.iter().map(|net| (&net.path, net.before.as_ref())), &scratch, "old").await?;
        let new = self.tree_of(net.iter().map(|net| (&net.path, net.after.as_ref())), &scratch, "new").await?;
        let call = self.store().content("comparing two trees").args(["diff-tree", "-r", "--no-renames", "--no-color"]);
        let call = call.args(["--no-ext-diff", "--no-textconv"]);
        let call = match form {
            DiffForm::Patch => call.args(["-p", "--binary", "--full-index"]),
            DiffForm::Stat => call.args(["--stat=120", "--summary"]),
            DiffForm::Names => call.arg("--name-status"),
        };
        call.args(["--end-of-options", &old, &new]).run().await
    }

    async fn tree_of(
        &self,
        entries: impl Iterator<Item = (&PathBuf, Option<&Entry>)>,
        scratch: &Scratch,
        name: &str,
    ) -> Result<ObjectId, Error> {
        let index = scratch.path().join(name);
        let entries: Vec<(&Path, &Entry)> =
            entries.filter_map(|(path, entry)| Some((path.as_path(), entry?))).collect();
        self.fill_index(&index, &entries).await?;
        self.store().content("keeping a tree").index(&index)?.arg("write-tree").line().await
    }

    /// Writes entries as files below `into`, as they were when they were kept. Nested repositories are passed over.
    pub(crate) async fn lay_out(
        &self,
        entries: &[(PathBuf, Entry)],
        scratch: &Scratch,
        into: &Path,
    ) -> Result<(), Error> {
        fs::create_dir_all(into).map_err(Error::file("making", into))?;
        let files = entries.iter().filter(|(_, entry)| entry.mode != GITLINK);
        let files: Vec<(&Path, &Entry)> = files.map(|(path, entry)| (path.as_path(), entry)).collect();
        if files.is_empty() {
            return Ok(());
        }
        let index = crate::store::unused(&scratch.path().join("index"));
        self.fill_index(&index, &files).await?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(into);
        prefix.push("/");
        let call = self.store().content("fetching kept files").work_tree(scratch.path()).index(&index)?;
        call.args(["checkout-index", "--all", "--quiet"]).arg(prefix).run().await.map(drop)
    }

    /// An index with these entries alone.
    async fn fill_index(&self, index: &Path, entries: &[(&Path, &Entry)]) -> Result<(), Error> {
        for some in entries.chunks(500) {
            let option = |(path, entry): &(&Path, &Entry)| {
                let head = format!("{:o},{},", entry.mode, entry.id);
                let info = [head.as_bytes(), path.as_os_str().as_bytes()].concat();
                [OsString::from("--cacheinfo"), OsString::from_vec(info)]
            };
            let call = self.store().content("listing kept files").index(index)?.args(["update-index", "--add"]);
            call.args(some.iter().flat_map(option)).run().await?;
        }
        Ok(())
    }
}
