//! The run's changes as a patch, as figures or as names. It shows what was recorded and looks at no file.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::keeper::Keeper;
use crate::record::Scratch;
use crate::store::ObjectId;
use crate::tree::Entry;

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
    /// Exactly the changes of the run, without what others changed meanwhile, with paths as seen from the
    /// directory.
    pub async fn diff(&self, form: DiffForm) -> Result<Vec<u8>, Error> {
        let _one_at_a_time = self.state().lock().await;
        let _lock = self.lock_kept().await?;
        let net = self.net().await?;
        // Two trees that hold the changed paths and nothing else differ in the run's changes and nothing
        // else.
        let scratch = self.record().scratch()?;
        let old =
            self.tree_of(net.iter().map(|net| (&net.path, net.before.as_ref())), &scratch, "old").await?;
        let new =
            self.tree_of(net.iter().map(|net| (&net.path, net.after.as_ref())), &scratch, "new").await?;
        let call = self.store().content("comparing two trees").args([
            "diff-tree",
            "-r",
            "--no-renames",
            "--no-color",
        ]);
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
        self.store().fill_index(&index, &entries).await?;
        self.store().content("keeping a tree").index(&index)?.arg("write-tree").line().await
    }
}
