//! Words that wake: whoever drives an agent in this process hears at once when something is said to it here. A bell says that there may
//! be something to hear and nothing of what it is; the journal says that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use convoke_kernel::{AgentId, MessageId};
use tokio::sync::watch;

use crate::error::Error;
use crate::inputs::Waiting;
use crate::runtime::Runtime;

/// The bells of the agents that this process drives. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Bells(Arc<Mutex<HashMap<AgentId, Arc<watch::Sender<u64>>>>>);

impl Bells {
    /// The bell of an agent that is driven from now on.
    pub(crate) fn hang(&self, agent: &AgentId) -> Bell {
        let rope = Arc::new(watch::channel(0).0);
        let bell = Bell { bells: self.clone(), agent: agent.clone(), rope };
        bell.hang();
        bell
    }

    /// Rings for an agent, if it is driven here.
    pub(crate) fn ring(&self, agent: &AgentId) {
        if let Some(rope) = self.lock().get(agent) {
            rope.send_modify(|rung| *rung += 1);
        }
    }

    fn has(&self, agent: &AgentId) -> bool {
        self.lock().contains_key(agent)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentId, Arc<watch::Sender<u64>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bell of one agent, for as long as it is driven.
pub(crate) struct Bell {
    bells: Bells,
    agent: AgentId,
    rope: Arc<watch::Sender<u64>>,
}

impl Bell {
    /// Hears when it rings from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.hang();
        self.rope.subscribe()
    }

    /// Takes the bell down, unless it has rung and nobody has looked since. In one step, so that whatever rang it was heard, and whoever
    /// finds it gone knows that nobody heard.
    pub(crate) fn take_down(&self, words: &watch::Receiver<u64>) -> bool {
        let mut bells = self.bells.lock();
        let rung = words.has_changed().unwrap_or(false);
        if !rung {
            self.remove(&mut bells);
        }
        !rung
    }

    fn hang(&self) {
        self.bells.lock().insert(self.agent.clone(), Arc::clone(&self.rope));
    }

    fn remove(&self, bells: &mut HashMap<AgentId, Arc<watch::Sender<u64>>>) {
        // Whoever drives the agent next may have hung up its own by now.
        if bells.get(&self.agent).is_some_and(|rope| Arc::ptr_eq(rope, &self.rope)) {
            bells.remove(&self.agent);
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.remove(&mut self.bells.lock());
    }
}

impl Runtime {
    /// Stops whatever an agent is at, and everybody below it: what is under way is cut off, the exchange ends as cancelled, and the next
    /// thing said opens another. Whoever drives it in this process does so at once; one that nobody drives hears it before anything
    /// else when it is taken up. An idle agent stays as it is. `by` says who wants it. Only for what a person said.
    pub async fn stop_exchange(&self, agent: &AgentId, by: &str) -> Result<(), Error> {
        let key = format!("stop:{}", MessageId::from_bits(self.0.ids.bits()?));
        self.submit(agent, &key, Waiting { stop: Some(by.to_owned()), ..Waiting::default() }).await
    }

    /// Has an agent begin a new history before its next request, with this in mind; blank is nothing in particular.
    pub async fn compact(&self, agent: &AgentId, key: &str, focus: &str) -> Result<(), Error> {
        self.submit(agent, key, Waiting { compact: Some(focus.to_owned()), ..Waiting::default() }).await
    }

    /// Whether this runtime drives the agent right now. Asked after something was said to it: if so, that is heard in this drive; if not,
    /// somebody has to drive it.
    pub fn is_driven_here(&self, agent: &AgentId) -> bool {
        self.1.has(agent)
    }
}
