//! Time as an argument: the machine's, or one that a test holds.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

/// Where the runtime gets its time from.
#[derive(Debug, Clone)]
pub struct Clock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    System,
    Jumping(Arc<AtomicU64>),
    Stepped(Arc<Mutex<Steps>>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// A clock that stands still until a task waits, and then jumps to the end of the wait. Deadlines of real
    /// input and output do not go by it.
    pub fn jumping(start: u64) -> Self {
        Self(Kind::Jumping(Arc::new(AtomicU64::new(start))))
    }

    /// A clock that stands still until a test moves it, even while tasks wait. Its clones are the same clock.
    pub fn stepped(start: u64) -> Self {
        Self(Kind::Stepped(Arc::new(Mutex::new(Steps { now: start, next_id: 0, sleepers: BTreeMap::new() }))))
    }

    /// Milliseconds since 1970, UTC.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Kind::System => system_now(),
            Kind::Jumping(at) => at.load(Ordering::SeqCst),
            Kind::Stepped(steps) => locked(steps).now,
        }
    }

    /// Waits until this time.
    pub async fn sleep_until(&self, until: u64) {
        match &self.0 {
            Kind::System => loop {
                // Asked again after each sleep, because the machine's clock may be set while we sleep.
                let left = until.saturating_sub(system_now());
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left.min(60_000))).await;
            },
            Kind::Jumping(at) => {
                at.fetch_max(until, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
            Kind::Stepped(steps) => Sleep { steps, until, id: None }.await,
        }
    }

    /// The earliest time that a task waits for on a stepped clock; `None` on the others: they need no moving.
    pub fn next_wakeup(&self) -> Option<u64> {
        self.steps().and_then(|steps| locked(steps).sleepers.keys().next().map(|(until, _)| *until))
    }

    /// How many wait on a stepped clock: a test that knows how many could wait knows when nothing else can
    /// happen.
    pub fn sleepers(&self) -> usize {
        self.steps().map_or(0, |steps| locked(steps).sleepers.len())
    }

    /// Moves a stepped clock to this time and wakes the tasks that waited for it; it never goes back.
    pub fn advance_to(&self, at: u64) {
        let Some(steps) = self.steps() else { return };
        let due = {
            let mut steps = locked(steps);
            let now = steps.now.max(at);
            steps.now = now;
            let later = steps.sleepers.split_off(&(now.saturating_add(1), 0));
            std::mem::replace(&mut steps.sleepers, later)
        };
        // Woken without the lock, because a woken task may look at the clock at once.
        due.into_values().for_each(Waker::wake);
    }

    /// Moves a stepped clock to its earliest sleeper and says what time it is then; `None` if no task waits.
    pub fn advance_to_next(&self) -> Option<u64> {
        let at = self.next_wakeup()?;
        self.advance_to(at);
        Some(at)
    }

    fn steps(&self) -> Option<&Arc<Mutex<Steps>>> {
        match &self.0 {
            Kind::Stepped(steps) => Some(steps),
            Kind::System | Kind::Jumping(_) => None,
        }
    }
}

#[derive(Debug)]
struct Steps {
    now: u64,
    next_id: u64,
    /// The tasks that wait, by the time waited for and then in order of coming.
    sleepers: BTreeMap<(u64, u64), Waker>,
}

/// One wait on a stepped clock; dropping it leaves nothing behind.
struct Sleep<'a> {
    steps: &'a Mutex<Steps>,
    until: u64,
    id: Option<u64>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut steps = locked(self.steps);
        if steps.now >= self.until {
            return Poll::Ready(());
        }
        let id = self.id.unwrap_or(steps.next_id);
        steps.next_id = steps.next_id.max(id + 1);
        steps.sleepers.insert((self.until, id), context.waker().clone());
        drop(steps);
        self.id = Some(id);
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            locked(self.steps).sleepers.remove(&(self.until, id));
        }
    }
}

fn locked(steps: &Mutex<Steps>) -> MutexGuard<'_, Steps> {
    steps.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
fn system_now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stepped_clock_stands_still_until_it_is_moved_and_wakes_the_earliest_first() {
        let clock = Clock::stepped(1_000);
        let (sender, mut woken) = tokio::sync::mpsc::unbounded_channel();
        for until in [3_000, 2_000, 2_000, 900] {
            let clock = clock.clone();
            let sender = sender.clone();
            tokio::spawn(async move {
                clock.sleep_until(until).await;
                sender.send((until, clock.now())).unwrap();
            });
        }
        assert_eq!(woken.recv().await, Some((900, 1_000)), "the past needs no waiting");
        while clock.sleepers() < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!((clock.now(), clock.next_wakeup()), (1_000, Some(2_000)));
        assert_eq!(clock.advance_to_next(), Some(2_000));
        assert_eq!((woken.recv().await, woken.recv().await), (Some((2_000, 2_000)), Some((2_000, 2_000))));
        assert_eq!(clock.advance_to_next(), Some(3_000));
        assert_eq!(woken.recv().await, Some((3_000, 3_000)));
        assert_eq!(clock.advance_to_next(), None);
        clock.advance_to(10);
        assert_eq!(clock.now(), 3_000, "it never goes back");
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_leaves_no_sleeper_on_a_stepped_clock() {
        let clock = Clock::stepped(0);
        tokio::select! {
            biased;
            () = clock.sleep_until(50) => panic!("nobody moved the clock"),
            () = async { assert_eq!(clock.sleepers(), 1) } => {}
        }
        assert_eq!((clock.sleepers(), clock.next_wakeup()), (0, None));
    }
}
