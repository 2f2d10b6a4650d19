//! What is asked before commands write: which places, how often, and that the command waits for the answer
//! while everything else goes on.

mod asked;
mod waits;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_sandbox::{Access, LayerSet, Shell, ShellConfig, WriteGate, WritePath};
use tokio::sync::watch;

use super::{Inside, World};

/// A gate that notes what it is asked, and keeps back what is written where it is told to.
#[derive(Debug)]
pub(super) struct Gate {
    asked: watch::Sender<Vec<Vec<WritePath>>>,
    closed: watch::Sender<BTreeSet<PathBuf>>,
    /// How many questions are open.
    open: Arc<AtomicUsize>,
}

/// Counts a question until it is answered or dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl WriteGate for Gate {
    fn before_write(&self, paths: Vec<WritePath>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(Arc::clone(&self.open));
        let mut closed = self.closed.subscribe();
        self.asked.send_modify(|asked| asked.push(paths.clone()));
        Box::pin(async move {
            let _open = open;
            let granted = closed.wait_for(|closed| !paths.iter().any(|place| closed.contains(&place.path)));
            granted.await.unwrap();
        })
    }
}

impl Gate {
    pub(super) fn new() -> Arc<Self> {
        let (asked, closed) = (watch::Sender::default(), watch::Sender::default());
        Arc::new(Self { asked, closed, open: Arc::default() })
    }

    pub(super) fn close(&self, path: &str) {
        self.closed.send_modify(|closed| {
            closed.insert(path.into());
        });
    }

    pub(super) fn open(&self, path: &str) {
        self.closed.send_modify(|closed| {
            closed.remove(Path::new(path));
        });
    }

    pub(super) fn questions_open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// All that was asked since this was last called, one text for each question.
    pub(super) fn take(&self) -> Vec<String> {
        let mut taken = Vec::new();
        self.asked.send_modify(|asked| taken = std::mem::take(asked));
        taken.iter().map(|places| words(places)).collect()
    }

    /// Waits until this is asked.
    pub(super) async fn until_asked(&self, what: &str) {
        let mut asked = self.asked.subscribe();
        let waiting = asked.wait_for(|asked| asked.iter().any(|places| words(places) == what));
        tokio::time::timeout(crate::LONG, waiting).await.unwrap().unwrap();
    }
}

fn words(places: &[WritePath]) -> String {
    let word =
        |place: &WritePath| format!("{}{}", place.path.display(), if place.whole { "/**" } else { "" });
    places.iter().map(word).collect::<Vec<_>>().join(" + ")
}

/// A shell whose writes are asked for. None, and said, where the machine does not let them be seen.
pub(super) async fn traced(world: &World, set: LayerSet, gate: &Arc<Gate>) -> Option<Inside> {
    let writes: Arc<dyn WriteGate> = Arc::clone(gate) as _;
    let config = world.config(set, world.policy(Access::Workspace, "a"), None);
    let shell = Shell::start(ShellConfig { writes: Some(writes), ..config }).await.unwrap();
    if !shell.is_traced() {
        println!("not run: writes cannot be seen here");
        return None;
    }
    Some(Inside { shell, full: world.at("full output") })
}
