//! Words that wake: the driver of an agent in this process hears at once when something is said to the agent
//! here. A waker says only that there may be something to hear; the journal says what it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_kernel::{AgentId, MessageId};
use tokio::sync::watch;

use crate::error::Error;
use crate::inputs::Waiting;
use crate::runtime::Runtime;

/// The wakers of the agents that this process drives. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Wakers(Arc<Mutex<HashMap<AgentId, Arc<watch::Sender<u64>>>>>);

impl Wakers {
    /// The waker of an agent that is driven from now on.
    pub(crate) fn register(&self, agent: &AgentId) -> WakeHandle {
        let sender = Arc::new(watch::channel(0).0);
        let waker = WakeHandle { wakers: self.clone(), agent: agent.clone(), sender };
        waker.register();
        waker
    }

    /// Rings for an agent, if it is driven here.
    pub(crate) fn wake(&self, agent: &AgentId) {
        if let Some(sender) = self.lock().get(agent) {
            sender.send_modify(|woken| *woken += 1);
        }
    }

    fn has(&self, agent: &AgentId) -> bool {
        self.lock().contains_key(agent)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, Arc<watch::Sender<u64>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The waker of one agent, for as long as it is driven.
pub(crate) struct WakeHandle {
    wakers: Wakers,
    agent: AgentId,
    sender: Arc<watch::Sender<u64>>,
}

impl WakeHandle {
    /// Hears when it rings from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.register();
        self.sender.subscribe()
    }

    /// Removes the waker, unless it was used since the driver last looked. One step under the lock: a wake
    /// is noticed by this drive, or the other side finds no waker and knows that it was not noticed.
    pub(crate) fn unregister(&self, words: &watch::Receiver<u64>) -> bool {
        let mut wakers = self.wakers.lock();
        let woken = words.has_changed().unwrap_or(false);
        if !woken {
            self.remove(&mut wakers);
        }
        !woken
    }

    fn register(&self) {
        self.wakers.lock().insert(self.agent.clone(), Arc::clone(&self.sender));
    }

    fn remove(&self, wakers: &mut HashMap<AgentId, Arc<watch::Sender<u64>>>) {
        // The next driver of the agent may have registered its own waker by now.
        if wakers.get(&self.agent).is_some_and(|sender| Arc::ptr_eq(sender, &self.sender)) {
            wakers.remove(&self.agent);
        }
    }
}

impl Drop for WakeHandle {
    fn drop(&mut self) {
        self.remove(&mut self.wakers.lock());
    }
}

impl Runtime {
    /// Stops an agent and every agent below it: what is under way is cut off, the exchange ends as cancelled,
    /// and the next thing said opens another. A driver in this process stops at once; an agent that no
    /// process drives hears the stop before anything else when it is taken up. An idle agent stays as it is.
    /// `by` names the person who wants it. Only for what a person said.
    pub async fn stop_exchange(&self, agent: &AgentId, by: &str) -> Result<(), Error> {
        let key = format!("stop:{}", MessageId::from_bits(self.config.ids.bits()?));
        self.submit(agent, &key, Waiting { stop: Some(by.to_owned()), ..Waiting::default() }).await
    }

    /// Has an agent begin a new history before its next request, with this in mind; blank is nothing in
    /// particular.
    pub async fn compact(&self, agent: &AgentId, key: &str, focus: &str) -> Result<(), Error> {
        self.submit(agent, key, Waiting { compact: Some(focus.to_owned()), ..Waiting::default() }).await
    }

    /// Whether this runtime drives the agent right now. Asked after something was said to it: if so, this
    /// drive hears it; if not, the agent has to be driven.
    pub fn is_driven_here(&self, agent: &AgentId) -> bool {
        self.wakers.has(agent)
    }
}
