//! Dropping a worktree: directory, branch and refs go, unless that would lose work.

use super::Worktrees;
use super::disk::{self, Lock};
use super::error::WorktreeError;
use super::names::Site;
use super::types::Dropped;
use crate::store::unused;

impl Worktrees {
    /// Removes a worktree with its branch and refs, ignored files included. Work that was not applied, or
    /// that no commit can hold, is refused unless `force` is given; even then what can be is committed first,
    /// so that git can still find it for a while.
    pub async fn drop(&self, run: &str, agent: &str, force: bool) -> Result<Dropped, WorktreeError> {
        let site = self.site(run, agent)?;
        let lock = Lock::take(&site).await?;
        self.store.prepare().await?;
        let Some(base) = self.base(&site).await? else {
            lock.remove()?;
            return Err(Self::unknown(&site));
        };
        let mut dropped = Dropped { commit: None, ignored: Vec::new() };
        let there = disk::exists(&site.tree)?;
        if there {
            self.clear(&site).await?;
            let index = unused(&site.home.join("index"));
            let content = self.content(&site, &base, &index).await?;
            dropped.commit = self.save(&site, &base, &content).await?;
            dropped.ignored = content.ignored.clone();
            self.refuse_unapplied(&site, base.commit(), dropped.commit.as_deref(), force).await?;
            self.refuse_branch(&site, dropped.commit.as_deref(), force).await?;
            if !force && !content.not_stored.is_empty() {
                let files =
                    content.not_stored.iter().map(|path| path.to_string_lossy().into_owned()).collect();
                disk::remove_file(&index)?;
                return Err(WorktreeError::NotStored {
                    run: site.run,
                    agent: site.agent,
                    path: site.tree,
                    files,
                });
            }
            self.still(&site, &base, &content, &index).await?;
        } else {
            dropped.commit = self.store.read_ref(&site.work_ref()).await?;
            self.refuse_unapplied(&site, base.commit(), dropped.commit.as_deref(), force).await?;
            self.refuse_branch(&site, dropped.commit.as_deref(), force).await?;
        }
        self.steps.step().await;
        disk::remove_file(&site.plan())?;
        self.take_away(&site).await?;
        self.steps.step().await;
        self.store.delete_ref(&site.branch_ref()).await?;
        self.forget(&site).await?;
        lock.remove()?;
        Ok(dropped)
    }

    async fn refuse_unapplied(
        &self,
        site: &Site,
        base: &str,
        work: Option<&str>,
        force: bool,
    ) -> Result<(), WorktreeError> {
        let Some(work) = work.filter(|_| !force) else { return Ok(()) };
        let files = super::content::shown(&self.store.diff_trees(base, work).await?);
        if files.is_empty() || self.is_applied(site, work).await? {
            return Ok(());
        }
        Err(WorktreeError::NotApplied { run: site.run.clone(), agent: site.agent.clone(), files })
    }

    /// Whether exactly this has been applied.
    pub(super) async fn is_applied(&self, site: &Site, work: &str) -> Result<bool, WorktreeError> {
        let Some(applied) = self.store.read_ref(&site.applied_ref()).await? else { return Ok(false) };
        Ok(applied == work || self.commit(&applied).await?.0 == self.commit(work).await?.0)
    }

    /// Refuses a branch that is checked out, and without `force` one with commits that Convoke did not make.
    async fn refuse_branch(&self, site: &Site, work: Option<&str>, force: bool) -> Result<(), WorktreeError> {
        let Some(now) = self.store.read_ref(&site.branch_ref()).await? else { return Ok(()) };
        let why = if let Some(place) = self.checked_out(site).await? {
            format!("is checked out in {place}")
        } else if !force && !matches!(work, Some(work) if self.contains(work, &now).await?) {
            "has commits that Convoke did not make".to_owned()
        } else {
            return Ok(());
        };
        Err(WorktreeError::BranchInUse { branch: site.branch(), why })
    }
}
