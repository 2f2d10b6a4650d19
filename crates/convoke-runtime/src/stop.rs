//! Asking a run to stop, in two steps: first nothing new starts, then what is under way is cut off.

use tokio::sync::watch;

/// How hard a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Not at all.
    Run,
    /// Nothing new starts; what is under way is waited for.
    Drain,
    /// What is under way is cut off and recorded as interrupted.
    Cut,
}

/// The asking end.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<StopLevel>);

/// The listening end.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<StopLevel>);

impl Stopper {
    /// A pair of ends.
    pub fn new() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(StopLevel::Run);
        (Stopper(sender), Stop(receiver))
    }

    /// Asks; a softer request never takes back a harder one.
    pub fn ask(&self, level: StopLevel) {
        self.0.send_if_modified(|now| {
            let harder = level > *now;
            if harder {
                *now = level;
            }
            harder
        });
    }
}

impl Stop {
    /// Nobody will ask.
    pub fn never() -> Self {
        Stopper::new().1
    }

    pub(crate) fn level(&self) -> StopLevel {
        *self.0.borrow()
    }

    /// Waits until the level is above the given one.
    pub(crate) async fn above(&mut self, level: StopLevel) -> StopLevel {
        let heard = self.0.wait_for(|now| *now > level).await.map(|now| *now).ok();
        match heard {
            Some(now) => now,
            // The asking end is gone, so nobody will ask any more.
            None => std::future::pending().await,
        }
    }
}
