//! What the journal makes a session wait for, told to the screen for as long as it lasts: another process on
//! the same file, or a server that is away.

use std::time::Duration;

use convoke_journal::{AwaitedProcess, Outage};
use convoke_terminal::{Screen, ScreenUpdate};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch::Receiver;

use crate::open::{SOON, away};

/// Tells it until the journal is closed. `longest`: how long a server may be away.
pub(super) async fn tell(
    mut waits: Receiver<Option<AwaitedProcess>>,
    mut outage: Receiver<Option<Outage>>,
    longest: Duration,
    screen: UnboundedSender<Screen>,
) {
    let mut told = None;
    loop {
        let is_away = outage.borrow().is_some();
        tokio::select! {
            Ok(()) = waits.changed() => {}
            Ok(()) = outage.changed() => {}
            // The seconds of it go on.
            () = tokio::time::sleep(SOON), if is_away => {}
            else => return,
        }
        let held = waits.borrow_and_update().as_ref().map(AwaitedProcess::to_string);
        let words =
            held.or_else(|| outage.borrow_and_update().as_ref().and_then(|outage| away(outage, longest)));
        if words != told {
            told.clone_from(&words);
            if screen.send(Screen::Update(ScreenUpdate::HeldUp(words))).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::sync::watch;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_wait_is_told_with_its_reason_and_its_end_and_over_when_it_is() {
        let (waits, wait) = watch::channel(None);
        let (outages, outage) = watch::channel(None);
        let (screen, mut seen) = unbounded_channel();
        let telling = tokio::spawn(tell(wait, outage, Duration::from_secs(60), screen));
        let mut next = async || match seen.recv().await {
            Some(Screen::Update(ScreenUpdate::HeldUp(why))) => why,
            _ => panic!("something else"),
        };
        let waiting = AwaitedProcess {
            pid: Some(7),
            command: "vi".into(),
            stopped: true,
            waited: Duration::from_secs(2),
        };
        waits.send_replace(Some(waiting));
        let told = next().await.unwrap();
        assert!(
            told.contains("held by process 7 (vi), which is stopped; waiting for it since 2 s"),
            "{told}"
        );
        waits.send_replace(None);
        assert_eq!(next().await, None);
        let since = Instant::now() - Duration::from_secs(3);
        outages.send_replace(Some(Outage { since, reason: "connection refused".into() }));
        let reason = "the journal does not answer (connection refused), trying again for";
        assert_eq!(next().await.unwrap(), format!("{reason} 3 s; given up after 60 s"));
        assert_eq!(next().await.unwrap(), format!("{reason} 4 s; given up after 60 s"));
        outages.send_replace(None);
        assert_eq!(next().await, None);
        drop((waits, outages));
        telling.await.unwrap();
    }
}
