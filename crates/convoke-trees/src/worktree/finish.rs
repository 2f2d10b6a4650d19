//! The end of a worktree's work: stored first, on its ref and its branch, and only then, and only if all of
//! it is stored, taken away.

use super::Worktrees;
use super::content::{Content, shown};
use super::disk::{self, Lock};
use super::error::WorktreeError;
use super::names::Site;
use super::types::{Base, Finished};
use crate::error::Error;
use crate::store::unused;

impl Worktrees {
    /// Stores what the agent changed and takes the directory away if nothing in it would be lost by that.
    ///
    /// Done again it gives the same answer. Where there is nothing (any more) the answer is
    /// [`Finished::Removed`].
    pub async fn finish(&self, run: &str, agent: &str) -> Result<Finished, WorktreeError> {
        let site = self.site(run, agent)?;
        let lock = Lock::take(&site).await?;
        self.store.prepare().await?;
        let Some(base) = self.base(&site).await? else {
            if disk::exists(&site.tree)? {
                return Err(WorktreeError::Occupied { path: site.tree });
            }
            lock.remove()?;
            return Ok(Finished::Removed);
        };
        if !disk::exists(&site.tree)? {
            return self.finish_removed(&site, &base, lock).await;
        }
        self.clear(&site).await?;
        let index = unused(&site.home.join("index"));
        let content = self.content(&site, &base, &index).await?;
        let work = self.save(&site, &base, &content).await?;
        let mut remarks = Vec::new();
        let branch = match &work {
            Some(commit) => self.set_branch(&site, commit, &mut remarks).await?,
            None => None,
        };
        if !content.ignored.is_empty() {
            disk::remove_file(&index)?;
            return Ok(match work {
                Some(commit) => Finished::Kept {
                    branch,
                    commit,
                    files: content.files(),
                    ignored: content.ignored,
                    path: Some(site.tree),
                    remarks,
                },
                None => Finished::Unchanged { ignored: content.ignored, path: site.tree },
            });
        }
        self.still(&site, &base, &content, &index).await?;
        self.take_away(&site).await?;
        let Some(commit) = work else {
            self.forget(&site).await?;
            lock.remove()?;
            return Ok(Finished::Removed);
        };
        let files = content.files();
        Ok(Finished::Kept { branch, commit, files, ignored: Vec::new(), path: None, remarks })
    }

    /// Goes on where an earlier finish was interrupted, or says what it had said.
    async fn finish_removed(&self, site: &Site, base: &Base, lock: Lock) -> Result<Finished, WorktreeError> {
        self.take_away(site).await?;
        let Some(commit) = self.store.read_ref(&site.work_ref()).await? else {
            self.forget(site).await?;
            lock.remove()?;
            return Ok(Finished::Removed);
        };
        let mut remarks = Vec::new();
        let branch = self.set_branch(site, &commit, &mut remarks).await?;
        let files = shown(&self.store.diff_trees(base.commit(), &commit).await?);
        Ok(Finished::Kept { branch, commit, files, ignored: Vec::new(), path: None, remarks })
    }

    /// Looks once more, quickly, whether all that is there was stored: a process may still be writing.
    pub(super) async fn still(
        &self,
        site: &Site,
        base: &Base,
        content: &Content,
        index: &std::path::Path,
    ) -> Result<(), WorktreeError> {
        let again = self.content(site, base, index).await?;
        disk::remove_file(index)?;
        if again.tree == content.tree && again.ignored == content.ignored {
            return Ok(());
        }
        let said = "a process still writes to the worktree; what was there is stored and nothing was removed"
            .to_owned();
        Err(Error::Restless { dir: site.tree.clone(), said }.into())
    }

    /// Takes the directory away. The caller has stored what is in it, or was told that it may go. From the
    /// renaming on the content is not looked at again, since half of it may be gone.
    pub(super) async fn take_away(&self, site: &Site) -> Result<(), Error> {
        if disk::exists(&site.tree)? {
            self.steps.step().await;
            disk::rename(&site.tree, &site.removing)?;
        }
        self.steps.step().await;
        disk::remove_tree(&site.admin).await?;
        self.steps.step().await;
        disk::remove_tree(self.files_of(site).private()).await?;
        self.clear(site).await?;
        self.steps.step().await;
        if disk::exists(&site.plan())? {
            return Ok(()); // An apply was interrupted, and goes on by this.
        }
        disk::remove_tree(&site.home).await
    }

    /// Removes every ref of a worktree. The base goes last: as long as it is there the rest is found.
    pub(super) async fn forget(&self, site: &Site) -> Result<(), Error> {
        for name in [site.work_ref(), site.applied_ref(), site.base_ref()] {
            self.steps.step().await;
            self.store.delete_ref(&name).await?;
        }
        Ok(())
    }

    /// Points the branch to the work, unless it has other commits or is checked out: a ref keeps the work.
    async fn set_branch(
        &self,
        site: &Site,
        commit: &str,
        remarks: &mut Vec<String>,
    ) -> Result<Option<String>, Error> {
        let branch = site.branch();
        self.steps.step().await;
        let now = self.store.read_ref(&site.branch_ref()).await?;
        if now.as_deref() == Some(commit) {
            return Ok(Some(branch));
        }
        let mut against = None;
        if let Some(now) = &now {
            if !self.contains(commit, now).await? {
                against = Some("has commits that are not the agent's".to_owned());
            } else if let Some(place) = self.checked_out(site).await? {
                against = Some(format!("is checked out in {place}"));
            }
        }
        if against.is_none() {
            self.steps.step().await;
            match self.store.update_ref(&site.branch_ref(), commit, now.as_deref()).await {
                Ok(()) => return Ok(Some(branch)),
                Err(Error::Git { said, .. }) => against = Some(format!("could not be set: {said}")),
                Err(error) => return Err(error),
            }
        }
        let why = against.unwrap_or_default();
        remarks.push(format!("branch {branch} {why}; the work is commit {commit}"));
        Ok(None)
    }

    /// Whether everything in `older` is in `newer`.
    pub(super) async fn contains(&self, newer: &str, older: &str) -> Result<bool, Error> {
        let call = self.store.refs("comparing commits").args(["merge-base", "--is-ancestor", older, newer]);
        Ok(call.outcome().await?.code == 0)
    }

    /// In which checkout the branch is checked out.
    pub(super) async fn checked_out(&self, site: &Site) -> Result<Option<String>, Error> {
        let call =
            self.store.refs("looking for checkouts").args(["for-each-ref", "--format=%(worktreepath)"]);
        let place = call.arg(site.branch_ref()).line().await?;
        Ok((!place.is_empty()).then_some(place))
    }
}
