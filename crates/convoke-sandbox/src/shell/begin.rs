//! The beginning of a shell: a helper is forked from a template, or started alone, and told what to be.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use super::HelperPath;
use crate::cage::Cage;
use crate::cgroup::Group;
use crate::error::Error;
use crate::link::{Confined, Link, PATIENCE, patient, unexpected};
use crate::templates::{Kind, Templates};
use crate::wire::{Confine, FromHelper, HoldChoice, ProcessHold, ShellSetup};

/// What the first frame to a helper says.
pub(super) struct Beginning {
    pub(super) helper: HelperPath,
    pub(super) hold: HoldChoice,
    pub(super) setup: ShellSetup,
    pub(super) confine: Option<Confine>,
}

/// A helper whose shell has begun.
pub(super) struct Begun {
    pub(super) link: Link,
    pub(super) hold: ProcessHold,
    pub(super) confined: Option<Confined>,
    pub(super) cwd: String,
    pub(super) missing_cwd: Option<String>,
    pub(super) group: Option<Group>,
    /// Through which is asked before commands write, if that is done.
    pub(super) writes: Option<OwnedFd>,
}

impl Beginning {
    /// Begins with a helper of the template of this kind, if it has one and that can do it; else with one that
    /// is started alone. What the shell prints goes to `output`.
    pub(super) async fn from_template(
        &self,
        templates: &Templates,
        kind: Option<Kind>,
        env: &BTreeMap<String, String>,
        output: OwnedFd,
    ) -> Result<Begun, Error> {
        if let Some(kind) = kind
            && let Some(forked) = templates.fork(&kind, &output).await
        {
            match self.with(forked).await {
                // What a template forks has the surest form of the walls or none; started alone, a helper
                // finds out which other form this machine allows.
                Err(Error::HelperRefused { .. }) => {
                    let begun = self.alone(env, output).await?;
                    templates.refuse(&kind).await;
                    return Ok(begun);
                }
                begun => return begun,
            }
        }
        self.alone(env, output).await
    }

    async fn alone(&self, env: &BTreeMap<String, String>, output: OwnedFd) -> Result<Begun, Error> {
        self.with(Link::open(&self.helper, env, Stdio::from(output))?).await
    }

    async fn with(&self, mut link: Link) -> Result<Begun, Error> {
        let group = self.confine.as_ref().and_then(|confine| Cage::group(confine, link.helper.id()));
        let patience = if self.confine.is_some() { Cage::PATIENCE } else { PATIENCE };
        let begin = async {
            let (hold, confined) =
                link.begin(self.hold, Some(self.setup.clone()), self.confine.clone()).await?;
            match link.hear().await? {
                FromHelper::Ready { cwd, missing_cwd, traced } => {
                    let writes = link.take_received().pop().filter(|_| traced);
                    if traced && writes.is_none() {
                        return Err(Error::Protocol {
                            problem: "the socket for writes is missing".to_owned(),
                        });
                    }
                    Ok((hold, confined, cwd, missing_cwd, writes))
                }
                other => Err(unexpected(&other)),
            }
        };
        let (hold, confined, cwd, missing_cwd, writes) = patient(patience, begin).await?;
        Ok(Begun { link, hold, confined, cwd, missing_cwd, group, writes })
    }
}
