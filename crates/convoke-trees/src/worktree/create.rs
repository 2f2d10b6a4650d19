//! Making a worktree: base, files, check, admin directory, and only then the name under which it counts as
//! there.

use std::fs;
use std::path::Path;

use super::disk::{self, Lock};
use super::error::WorktreeError;
use super::names::Site;
use super::types::{Base, Worktree};
use super::{Worktrees, scan};
use crate::error::Error;
use crate::links::refuse_links_to;
use crate::store::{replace_file, unused};

impl Worktrees {
    /// Makes the worktree of an agent, or finds it again: the same names lead to the same worktree with the
    /// same base and all that the agent did there, whatever happened in between.
    ///
    /// It is returned only when its files have been compared with the base. If its directory was taken away
    /// because its work had been stored, that work is checked out.
    pub async fn create(&self, run: &str, agent: &str) -> Result<Worktree, WorktreeError> {
        let site = self.site(run, agent)?;
        if !self.writable {
            return Err(Error::NotWritable { path: self.store.common().to_owned() }.into());
        }
        let _lock = Lock::take(&site).await?;
        self.store.prepare().await?;
        let mut remarks = Vec::new();
        self.steps.step().await;
        let base = match self.base(&site).await? {
            Some(base) => base,
            None if disk::exists(&site.tree)? => return Err(WorktreeError::Occupied { path: site.tree }),
            None => self.record_base(&site, &mut remarks).await?,
        };
        if disk::exists(&site.tree)? {
            self.mend(&site, &base).await?;
        } else {
            self.make(&site, &base).await?;
        }
        let links = self.submodules(base.commit()).await?;
        if !links.is_empty() {
            remarks.push(format!("submodules are not checked out in it: {}", links.join(", ")));
        }
        let path = disk::make_below(&site.tree, &self.prefix)?;
        Ok(Worktree { run: site.run, agent: site.agent, path, top: site.tree, base, remarks })
    }

    /// Takes the checkout as it is and records it, beside every branch.
    async fn record_base(&self, site: &Site, remarks: &mut Vec<String>) -> Result<Base, WorktreeError> {
        let doing = "asking for HEAD";
        let head =
            self.store.own(&self.git_dir, doing).args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let head = head.outcome().await?;
        if head.code != 0 {
            return Err(WorktreeError::NoCommit { top: self.store.top().to_owned() });
        }
        let head = String::from_utf8_lossy(&head.stdout).trim().to_owned();
        disk::make_private_dir(&site.home)?;
        self.steps.step().await;
        let index = unused(&site.home.join("index"));
        self.store.prime(&index).await?;
        self.steps.step().await;
        let taken = self.store.snapshot(&index, |_| false).await?;
        disk::remove_file(&index)?;
        let links = self.submodules(&head).await?;
        let left_out = taken
            .left_out
            .iter()
            .filter(|out| !links.iter().any(|link| out.path.as_os_str() == link.as_str()));
        remarks.extend(left_out.map(|out| format!("not in the worktree: {out}")));
        let base = if taken.tree == self.commit(&head).await?.0 {
            Base::Head { commit: head }
        } else {
            self.steps.step().await;
            let commit = self.store.commit_tree(&taken.tree, &[&head], &site.snapshot_title()).await?;
            Base::Snapshot { commit, tree: taken.tree, head }
        };
        self.steps.step().await;
        self.store.update_ref(&site.base_ref(), base.commit(), None).await?;
        Ok(base)
    }

    /// Checks out what the worktree begins with, in a directory that is no worktree until it is complete.
    async fn make(&self, site: &Site, base: &Base) -> Result<(), WorktreeError> {
        self.steps.step().await;
        self.clear(site).await?;
        self.steps.step().await;
        disk::make_private_dir(&site.home)?;
        let work = self.store.read_ref(&site.work_ref()).await?;
        let start = work.unwrap_or_else(|| base.commit().to_owned());
        let (wanted, _) = self.commit(&start).await?;
        // The name is new each time, since a git of a killed process may still be writing to the last one.
        let making = unused(&site.home.join("making"));
        self.steps.step().await;
        fs::create_dir(&making).map_err(Error::file("making", &making))?;
        let index = unused(&site.home.join("index"));
        let git = |doing| self.store.content(doing).work_tree_of_ours(&making).index(&index);
        self.steps.step().await;
        git("checking out a worktree")?.args(["read-tree", "--reset", "-u", &wanted]).run().await?;
        self.steps.step().await;
        replace_file(&making.join(".git"), &disk::pointer(site))?;

        // An index that has only names and digests makes git read every file again.
        self.steps.step().await;
        disk::remove_file(&index)?;
        git("checking a worktree")?.args(["read-tree", &wanted]).run().await?;
        self.steps.step().await;
        let refreshed =
            git("checking a worktree")?.args(["update-index", "-q", "--refresh"]).outcome().await?;
        let odd = git("checking a worktree")?.args(["ls-files", "-z", "-m", "-d", "-o"]).run().await?;
        let found = git("checking a worktree")?.arg("write-tree").line().await?;
        if refreshed.code != 0 || !odd.is_empty() || found != wanted {
            let odd = odd.split(|byte| *byte == 0).next().unwrap_or_default();
            let found =
                if odd.is_empty() { found } else { format!("a different {}", String::from_utf8_lossy(odd)) };
            return Err(WorktreeError::NotItsBase {
                run: site.run.clone(),
                agent: site.agent.clone(),
                wanted,
                found,
            });
        }

        self.steps.step().await;
        self.admit(site, &start, &index).await?;
        self.steps.step().await;
        disk::remove_file(&index)?;
        self.steps.step().await;
        Ok(disk::rename(&making, &site.tree)?)
    }

    /// Makes git know the worktree, with its HEAD at a commit and on no branch.
    async fn admit(&self, site: &Site, head: &str, index: &Path) -> Result<(), Error> {
        for written in ["refs", "reftable"] {
            let place = site.admin.join(written);
            let place = place.strip_prefix(self.store.common()).unwrap_or(&place);
            refuse_links_to(self.store.common(), place)?;
        }
        let tables = disk::exists(&self.store.common().join("reftable"))?;
        disk::write_admin(site, head, index, tables, &self.steps).await?;
        if tables {
            self.steps.step().await;
            let call = self.store.own(&site.admin, "setting HEAD of a worktree");
            call.args(["update-ref", "--no-deref", "HEAD", head]).run().await?;
        }
        Ok(())
    }

    /// Puts back what makes git know the worktree, if it was pruned; what the agent has is not touched.
    async fn mend(&self, site: &Site, base: &Base) -> Result<(), WorktreeError> {
        if disk::exists(&site.admin.join("gitdir"))? {
            return Ok(());
        }
        let index = unused(&site.home.join("index"));
        self.steps.step().await;
        let call = self
            .store
            .content("mending a worktree")
            .work_tree(&site.tree)
            .reads([&site.tree])
            .index(&index)?;
        call.args(["read-tree", base.commit()]).run().await?;
        self.steps.step().await;
        self.admit(site, base.commit(), &index).await?;
        Ok(disk::remove_file(&index)?)
    }

    /// Takes away what interrupted operations left. Nothing of an agent is in any of it.
    pub(super) async fn clear(&self, site: &Site) -> Result<(), Error> {
        let entries = match fs::read_dir(&site.home) {
            Ok(entries) => {
                entries.collect::<Result<Vec<_>, _>>().map_err(Error::file("reading", &site.home))?
            }
            Err(_) => return Ok(()),
        };
        for entry in entries {
            let name = entry.file_name();
            let path = entry.path();
            let name = name.to_string_lossy();
            if name.starts_with("making") || name == "removing" || name.starts_with("staging") {
                self.steps.step().await;
                disk::remove_tree(&path).await?;
            } else if name.starts_with("index") {
                disk::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// The submodules of a commit, by their paths.
    pub(super) async fn submodules(&self, commit: &str) -> Result<Vec<String>, Error> {
        let listed =
            self.store.refs("listing submodules").args(["ls-tree", "-r", "-z", commit]).run().await?;
        let links = listed.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        let names = links.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Looks over the directory of a worktree.
    pub(super) async fn scan(&self, site: &Site) -> Result<scan::Scan, Error> {
        let top = site.tree.clone();
        disk::blocking(move || scan::scan(&top).map_err(Error::opening("looking over", &top))).await
    }
}
