//! Looks at the directory that agents share. Each look goes over the whole tree, so agents that want one at
//! the same time share one: a look shows what an agent left behind if it began after that agent had ended.
//! Looks are taken one after the other, and equal ones are kept once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use convoke_sandbox::Sight;
use tokio::sync::Mutex;

use super::Snapshot;
use super::listing::WorkspaceError;

/// The looks that a session takes.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Counts what happens: that an agent asks, and that a look begins.
    order: AtomicU64,
    /// How many looks were taken.
    taken: AtomicU64,
    last: Mutex<Option<Look>>,
}

#[derive(Debug)]
struct Look {
    /// When it began, in the order of what happened.
    began: u64,
    dir: PathBuf,
    shows: Arc<Snapshot>,
}

impl Looks {
    /// How the directory looks, by a look that begins no earlier than now.
    pub(crate) async fn begun_now(&self, sight: &Sight, dir: &Path) -> Result<Arc<Snapshot>, WorkspaceError> {
        let asked = self.order.fetch_add(1, Ordering::SeqCst);
        // An ask that comes while a look is under way waits here, and all of them share the next one.
        let mut last = self.last.lock().await;
        if let Some(look) = last.as_ref().filter(|look| look.dir == dir && look.began > asked) {
            return Ok(Arc::clone(&look.shows));
        }
        let began = self.order.fetch_add(1, Ordering::SeqCst);
        let shows = Arc::new(Snapshot::take(sight, dir).await?);
        self.taken.fetch_add(1, Ordering::SeqCst);
        let same = last.as_ref().filter(|look| look.shows == shows).map(|look| Arc::clone(&look.shows));
        let shows = same.unwrap_or(shows);
        *last = Some(Look { began, dir: dir.to_owned(), shows: Arc::clone(&shows) });
        Ok(shows)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn ten_that_end_at_once_share_one_look_and_each_sees_what_was_written_before_it_asked() {
        let dir = tempfile::tempdir().unwrap();
        for file in 0..200 {
            std::fs::write(dir.path().join(format!("f{file}")), "x").unwrap();
        }
        let looks = Looks::default();
        let sight = Sight::Everything;
        let start = looks.begun_now(&sight, dir.path()).await.unwrap();
        std::fs::write(dir.path().join("f7"), "longer").unwrap();
        // The lock is held as by a look that is under way, until all of them have asked: how many looks there
        // are hangs on nothing else.
        let under_way = looks.last.lock().await;
        let mut all = join_all((0..10).map(|_| looks.begun_now(&sight, dir.path())));
        assert!((&mut all).now_or_never().is_none(), "they wait for the look that is under way");
        drop(under_way);
        let seen = all.await;
        assert_eq!(looks.taken.load(Ordering::SeqCst), 2, "one at the start, and one for all who asked");
        for later in seen {
            assert_eq!(start.changes_to(&later.unwrap()), ["f7"]);
        }
        std::fs::write(dir.path().join("f8"), "longer").unwrap();
        let later = looks.begun_now(&sight, dir.path()).await.unwrap();
        assert_eq!(start.changes_to(&later), ["f7", "f8"], "an old look does for nobody who asks later");
        let again = looks.begun_now(&sight, dir.path()).await.unwrap();
        assert!(Arc::ptr_eq(&later, &again), "what has not changed is kept once");
    }
}
