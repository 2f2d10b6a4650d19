//! Tells the watcher that the journal's store is away. What waits for it, and how long, the journal decides.

use std::sync::Arc;
use std::time::Duration;

use convoke_journal::Journal;
use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::notice::Notice;
use crate::session::Session;

/// An outage that is over sooner is not worth a word.
const FIRST: Duration = Duration::from_secs(2);
/// How often a person is told that it lasts.
const EVERY: Duration = Duration::from_secs(10);

/// Tells of every outage of the journal's store, as long as it is not dropped.
pub(crate) async fn tell(journal: Journal, session: Arc<Session>) -> Error {
    let mut outage = journal.outage();
    let mut said: Option<Instant> = None;
    loop {
        let Ok(since) =
            outage.wait_for(Option::is_some).await.map(|away| away.as_ref().map(|away| away.since))
        else {
            // A store that is never away.
            return std::future::pending().await;
        };
        let since = since.unwrap_or_else(Instant::now);
        let mut told = false;
        loop {
            let next = said.map_or(since + FIRST, |said| (said + EVERY).max(since + FIRST));
            tokio::select! {
                _ = outage.wait_for(Option::is_none) => break,
                () = sleep_until(next) => {}
            }
            said = Some(Instant::now());
            told = true;
            let reason = outage.borrow().as_ref().map(|away| away.reason.clone()).unwrap_or_default();
            session.tell(Notice::StoreAway { reason, seconds: since.elapsed().as_secs() });
        }
        if told {
            session.tell(Notice::StoreBack { seconds: since.elapsed().as_secs() });
        }
    }
}
