//! The host's side of templates: which there are, starting one when the first shell of its kind is wanted,
//! and having the helper of a shell forked. Where a machine refuses a template, helpers are started one by
//! one, and hold no less.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use crate::confine::find_bubblewrap;
use crate::error::Error;
use crate::link::{Link, PATIENCE, patient, unexpected};
use crate::policy::{LayerSet, Network};
use crate::process::{Forked, Process};
use crate::shell::HelperPath;
use crate::wire::{Confine, FromHelper, ToHelper};

/// The templates of a session: processes that stand ready in their namespaces, from which the helpers of
/// shells are forked instead of being started anew. Clones share them; they end when the last clone and the
/// last shell are dropped.
#[derive(Debug, Clone, Default)]
pub struct Templates(Arc<Mutex<HashMap<Kind, Arc<Slot>>>>);

/// What all shells of one template have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    helper: HelperPath,
    env: BTreeMap<String, String>,
    /// Where namespaces are to be had from, if they are wanted.
    bubblewrap: Option<PathBuf>,
    own_network: bool,
}

impl Kind {
    /// The template that fits a shell. None where bubblewrap is wanted and missing.
    pub(crate) fn of(
        helper: &HelperPath,
        env: &BTreeMap<String, String>,
        confine: Option<&Confine>,
    ) -> Option<Self> {
        let kind = Self { helper: helper.clone(), env: env.clone(), bubblewrap: None, own_network: false };
        let Some(confine) = confine.filter(|confine| confine.set == LayerSet::Namespaces) else {
            return Some(kind);
        };
        let mut never_below: Vec<&Path> = vec![&confine.policy.workspace, &confine.policy.private];
        never_below.extend(confine.distrusted.iter().map(PathBuf::as_path));
        let bubblewrap = find_bubblewrap(env.get("PATH").map(AsRef::as_ref), &never_below)?;
        let own_network = confine.policy.network != Network::On;
        Some(Self { bubblewrap: Some(bubblewrap), own_network, ..kind })
    }
}

/// One template, or the knowledge that there is none.
type Slot = tokio::sync::Mutex<State>;

#[derive(Debug, Default)]
enum State {
    #[default]
    Untried,
    Stands(Arc<Template>),
    Refused,
}

/// A process that forks helpers.
#[derive(Debug)]
pub(crate) struct Template(tokio::sync::Mutex<Link>);

impl Templates {
    /// The link to a forked helper; none where there is no template of this kind.
    pub(crate) async fn fork(&self, kind: &Kind, output: &OwnedFd) -> Option<Link> {
        let slot = self.slot(kind);
        let mut state = slot.lock().await;
        // Another time for a template that has gone since it was last asked.
        for _ in 0..2 {
            let template = match &*state {
                State::Refused => return None,
                State::Stands(template) => Arc::clone(template),
                State::Untried => match Template::start(kind).await {
                    Ok(template) => Arc::new(template),
                    Err(_) => break,
                },
            };
            match template.fork(output).await {
                Ok(link) => {
                    *state = State::Stands(template);
                    return Some(link);
                }
                Err(_) => *state = State::Untried,
            }
        }
        // Why is said by the helper that is started in its place, if that cannot stand either.
        *state = State::Refused;
        None
    }

    /// What was forked could not begin where a helper that was started for itself could.
    pub(crate) async fn refuse(&self, kind: &Kind) {
        *self.slot(kind).lock().await = State::Refused;
    }

    fn slot(&self, kind: &Kind) -> Arc<Slot> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(kind.clone()).or_default())
    }
}

impl Template {
    async fn start(kind: &Kind) -> Result<Self, Error> {
        let mut link = Link::open(&kind.helper, &kind.env, Stdio::null())?;
        link.say(&ToHelper::Prepare { bubblewrap: kind.bubblewrap.clone(), own_network: kind.own_network })
            .await?;
        match patient(PATIENCE, link.hear()).await? {
            FromHelper::Prepared => Ok(Self(tokio::sync::Mutex::new(link))),
            other => Err(unexpected(&other)),
        }
    }

    async fn fork(self: &Arc<Self>, output: &OwnedFd) -> Result<Link, Error> {
        let (ours, theirs) = StdUnixStream::pair().map_err(Error::system("making a socket"))?;
        let mut link = self.0.lock().await;
        link.say_with(&ToHelper::Fork, &[theirs.as_fd(), output.as_fd()]).await?;
        match patient(PATIENCE, link.hear()).await? {
            FromHelper::Forked => {}
            other => return Err(unexpected(&other)),
        }
        let handle = link.take_received().pop();
        let handle =
            handle.ok_or(Error::Protocol { problem: "the process's handle is missing".to_owned() })?;
        let forked =
            Forked::new(handle, Arc::clone(self)).map_err(Error::system("holding the helper's process"))?;
        Link::to(Process::Forked(forked), ours)
    }
}
