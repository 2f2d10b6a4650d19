//! Work that was applied and then taken back in the checkout: it counts as not applied again, so that nothing
//! drops it as done.

use super::Worktrees;
use super::disk::{self, Lock};
use super::error::WorktreeError;

impl Worktrees {
    /// The agents of a run whose work was applied, or whose apply was interrupted.
    pub async fn applied(&self, run: &str) -> Result<Vec<String>, WorktreeError> {
        let below = self.site(run, "any")?.home.with_file_name("");
        let call = self.store.refs("listing worktrees").args(["for-each-ref", "--format=%(refname)"]);
        let listed = call.arg(format!("refs/convoke/{run}/")).line().await?;
        let agent = |name: &str| Some(name.strip_suffix("/applied")?.rsplit_once('/')?.1.to_owned());
        let mut agents: Vec<String> = listed.lines().filter_map(agent).collect();
        for name in disk::names_in(&below) {
            if let Ok(site) = self.site(run, &name)
                && disk::exists(&site.plan())?
            {
                agents.push(name);
            }
        }
        agents.sort();
        agents.dedup();
        Ok(agents)
    }

    /// Says that the work of an agent is not in the checkout any more, or not all of it. To be called before
    /// it is taken back: a process that dies in between leaves work that can be applied again, and finds it
    /// there.
    pub async fn unapply(&self, run: &str, agent: &str) -> Result<(), WorktreeError> {
        let site = self.site(run, agent)?;
        let _lock = Lock::take(&site).await?;
        // What an interrupted apply had planned was planned for the checkout as it was.
        self.steps.step().await;
        disk::remove_file(&site.plan())?;
        if !disk::exists(&site.tree)? {
            self.steps.step().await;
            disk::remove_tree(&site.home).await?;
        }
        self.steps.step().await;
        Ok(self.store.delete_ref(&site.applied_ref()).await?)
    }
}
