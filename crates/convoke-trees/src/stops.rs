//! The places where a process can die: one before every call of git and every change on disk. In a test the
//! work can be stopped for good at any of them; otherwise they are nothing.

#[cfg(test)]
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts the steps of an operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps {
    #[cfg(test)]
    stop: Option<Arc<Stop>>,
}

impl Steps {
    /// Before each thing that is done.
    #[cfg(not(test))]
    pub(crate) async fn step(&self) {}

    /// Before each thing that is done; the chosen one is never reached.
    #[cfg(test)]
    pub(crate) async fn step(&self) {
        if let Some(stop) = &self.stop
            && stop.taken.fetch_add(1, Ordering::SeqCst) == stop.at
        {
            stop.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// Where a test stops the work.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Stop {
    at: usize,
    taken: AtomicUsize,
    reached: tokio::sync::Notify,
}

#[cfg(test)]
impl Steps {
    /// Runs `work` up to step `at` and drops it there, as a dying process would; its outcome if it ended
    /// before.
    pub(crate) async fn stopped_at<F: Future>(at: usize, work: impl FnOnce(Self) -> F) -> Option<F::Output> {
        let stop = Arc::new(Stop { at, taken: AtomicUsize::new(0), reached: tokio::sync::Notify::new() });
        let steps = Self { stop: Some(Arc::clone(&stop)) };
        tokio::select! {
            outcome = work(steps) => Some(outcome),
            () = stop.reached.notified() => None,
        }
    }
}
