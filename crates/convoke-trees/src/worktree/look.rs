//! Looking at worktrees. Objects are stored so that they can be compared; no ref, no directory and no
//! checkout changes.

use super::Worktrees;
use super::content::{Content, shown};
use super::disk;
use super::error::WorktreeError;
use super::names::{Site, from_base_ref};
use super::types::{Base, WorktreeEntry, WorktreeState};
use crate::error::Error;
use crate::store::unused;

impl Worktrees {
    /// The worktrees of one run, or of all, in the order of their names.
    pub async fn list(&self, run: Option<&str>) -> Result<Vec<WorktreeEntry>, WorktreeError> {
        self.store.prepare().await?;
        let call = self.store.refs("listing worktrees").args([
            "for-each-ref",
            "--format=%(refname)",
            "refs/convoke/",
        ]);
        let listed = call.line().await?;
        let mut entries = Vec::new();
        for (of, agent) in listed.lines().filter_map(from_base_ref) {
            if run.is_none_or(|run| run == of) {
                let site = self.site(of, agent)?;
                // It may have been dropped since it was listed.
                if let Some(base) = self.base(&site).await? {
                    entries.push(self.entry(site, base).await?);
                }
            }
        }
        Ok(entries)
    }

    /// What an agent changed, as a patch against its base that `git apply` takes.
    pub async fn diff(&self, run: &str, agent: &str) -> Result<Vec<u8>, WorktreeError> {
        self.store.prepare().await?;
        let site = self.site(run, agent)?;
        let Some(base) = self.base(&site).await? else { return Err(Self::unknown(&site)) };
        let now = match self.seen(&site, &base).await? {
            Some(content) => content.tree,
            None => self.store.read_ref(&site.work_ref()).await?.unwrap_or_else(|| base.commit().to_owned()),
        };
        let call = self.store.content("comparing a worktree with its base");
        let call =
            call.args(["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-color", "--no-renames"]);
        Ok(call
            .args(["--no-ext-diff", "--no-textconv", "--end-of-options", base.commit(), &now])
            .run()
            .await?)
    }

    async fn entry(&self, site: Site, base: Base) -> Result<WorktreeEntry, WorktreeError> {
        let work = self.store.read_ref(&site.work_ref()).await?;
        let seen = self.seen(&site, &base).await?;
        let state = match (&seen, &work) {
            (Some(_), None) => WorktreeState::Working,
            (Some(_), Some(_)) => WorktreeState::Kept,
            (None, Some(_)) => WorktreeState::Stored,
            (None, None) => WorktreeState::Unfinished,
        };
        let mut applied = match &work {
            Some(work) => self.is_applied(&site, work).await?,
            None => false,
        };
        let mut files = Vec::new();
        let mut ignored = Vec::new();
        let mut not_stored = Vec::new();
        let mut path = None;
        if let Some(content) = seen {
            applied &= matches!(&work, Some(work) if self.commit(work).await?.0 == content.tree);
            files = content.files();
            ignored = content.ignored;
            not_stored = content.not_stored;
            path = Some(site.tree);
        } else if let Some(work) = &work {
            files = shown(&self.store.diff_trees(base.commit(), work).await?);
        }
        Ok(WorktreeEntry {
            run: site.run,
            agent: site.agent,
            base,
            state,
            applied,
            files,
            ignored,
            not_stored,
            path,
        })
    }

    /// What lies in the directory now; none if there is none.
    async fn seen(&self, site: &Site, base: &Base) -> Result<Option<Content>, Error> {
        if !disk::exists(&site.tree)? {
            return Ok(None);
        }
        // Not called an index, for those are cleared away by operations that may run at the same time.
        let index = unused(&site.home.join("look"));
        let content = self.content(site, base, &index).await;
        disk::remove_file(&index)?;
        content.map(Some)
    }
}
