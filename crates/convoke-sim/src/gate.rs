//! Holding a reply open until a test lets it go, so that something can be done at a known moment of a stream.

use std::sync::Arc;

use tokio::sync::watch;

use crate::conversation::ConversationNames;

/// A held reply. It catches the first request that fits; dropping it lets the reply go.
#[derive(Debug)]
pub struct ReplyHold {
    state: Arc<HoldState>,
}

impl ReplyHold {
    pub(crate) fn new(state: Arc<HoldState>) -> Self {
        Self { state }
    }

    /// Waits until a reply has been caught: the events before the hold are on their way, the others wait.
    pub async fn entered(&self) {
        self.state.reach(Phase::Entered).await;
    }

    /// Lets the reply go on, or go through if it has not been caught yet.
    pub fn release(&self) {
        self.state.move_to(Phase::Released);
    }
}

impl Drop for ReplyHold {
    fn drop(&mut self) {
        self.release();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Waiting,
    Entered,
    Released,
}

/// The side of a hold that the server sees.
#[derive(Debug)]
pub(crate) struct HoldState {
    conversation: String,
    position: usize,
    /// How many events are sent before the reply is held.
    pub(crate) after: usize,
    phase: watch::Sender<Phase>,
}

impl HoldState {
    pub(crate) fn new(conversation: &str, position: usize, after: usize) -> Arc<Self> {
        let (phase, _) = watch::channel(Phase::Waiting);
        Arc::new(Self { conversation: conversation.to_owned(), position, after, phase })
    }

    pub(crate) fn fits(&self, place: &ConversationNames) -> bool {
        self.position == place.context.position && place.is(&self.conversation)
    }

    /// Says that the reply is here, and waits until it may go on.
    pub(crate) async fn pass(&self) {
        self.move_to(Phase::Entered);
        self.reach(Phase::Released).await;
    }

    fn move_to(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            *phase = (*phase).max(to);
            forward
        });
    }

    async fn reach(&self, wanted: Phase) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.phase.subscribe().wait_for(|phase| *phase >= wanted).await;
    }
}
