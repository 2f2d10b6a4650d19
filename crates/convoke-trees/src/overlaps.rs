//! Overlaps: two agents wrote the same file at the same time. Both are told, and a person in the report. What
//! an agent is to be told stays in the record until it was told, because it may have come to its end, or its
//! process may, before the other one wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::keeper::Keeper;
use crate::parts::Making;
use crate::places::HostPlaces;
use crate::record::Record;
use crate::steps::StepCause;
use crate::tree::TreeChange;
use crate::turn::{Actor, Turn};
use crate::undo::quoted;

/// Where what is still to be told is written down.
const FILE: &str = "overlaps";

/// A file that an agent and another one wrote at the same time, as that agent is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlap {
    /// The file, as seen from the directory.
    pub path: String,
    /// The other agent.
    pub with: String,
    /// The commit with the version that was written over, or may have been; `None` if there was no file.
    pub commit: Option<String>,
    /// The command that shows it, where agents can read it.
    pub show: Option<String>,
    how: How,
}

/// What happened, from the side of the agent that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    /// It wrote after the other one had changed the file.
    Later,
    /// It changed the file, and the other one wrote after it.
    Earlier,
    /// It did not wait any longer for the other one's command.
    Took,
    /// The other one did not wait any longer for its command.
    Lost,
}

impl Overlap {
    /// What the agent is told, with what it can do.
    pub fn told(&self) -> String {
        let Self { path, with, .. } = self;
        match self.how {
            How::Later => format!(
                "{path} was changed by agent {with} too, while this command ran. What is there now was \
                 written after that{}. Look whether {path} still has what agent {with} changed, and put back \
                 what is missing.",
                self.version("what agent had written", "agent removed the file")
            ),
            How::Earlier => format!(
                "{path}, which you had changed, was written by agent {with} at the same time, and what is \
                 there now is what agent {with} wrote{}. Look whether your change is still in it, and make \
                 it again if it is not.",
                self.version("what you had written", "you had removed the file")
            ),
            How::Took => format!(
                "agent {with} has been writing {path} for longer than you could wait, so both of you wrote it \
                 at the same time{}. Look whether {path} has what both of you changed, and put back what is \
                 missing.",
                self.version(
                    "what agent had written until then",
                    "agent had left no version of it until then"
                )
            ),
            How::Lost => format!(
                "agent {with} began to write {path} while your command was still writing it{}. Look whether \
                 {path} still has what you changed, and make it again if it has not.",
                self.version("what you had written until then", "you had left no version of it until then")
            ),
        }
    }

    /// Where the other version is.
    fn version(&self, what: &str, none: &str) -> String {
        let with = |text: &str| text.replace("agent", &format!("agent {}", self.with));
        match (&self.commit, &self.show) {
            (None, _) => format!(" ({})", with(none)),
            (Some(_), Some(show)) => format!(" (`{show}` shows {})", with(what)),
            (Some(commit), None) => {
                format!(" (the person can bring back {}, it is kept in commit {commit})", with(what))
            }
        }
    }

    /// The same for a person.
    fn noted(&self, agent: &str) -> String {
        let Self { path, with, .. } = self;
        let whose = if matches!(self.how, How::Earlier | How::Lost) { agent } else { with };
        let version = match (&self.show, &self.commit) {
            (Some(show), _) => format!("; what {whose} had written: {show}"),
            (None, Some(commit)) => format!("; what {whose} had written is kept in commit {commit}"),
            (None, None) => String::new(),
        };
        format!("{path} was written by {agent} and {with} at the same time, and both were told{version}")
    }
}

impl Keeper {
    /// What an agent has not been told yet. It goes by a file and starts no git.
    pub fn overlaps(places: &HostPlaces, dir: &Path, run: &str, agent: &str) -> Result<Vec<Overlap>, Error> {
        let Ok(real) = dir.canonicalize() else { return Ok(Vec::new()) };
        Ok(all(&Record::new(places, run, &real)?)?.remove(agent).unwrap_or_default())
    }

    /// Forgets what an agent has been told.
    pub async fn were_told(&self, actor: impl Into<Actor<'_>>, told: &[Overlap]) -> Result<(), Error> {
        let actor = actor.into();
        let turn = self.turn(actor).await?;
        let mut all = all(self.record())?;
        if let Some(waiting) = all.get_mut(actor.agent) {
            waiting.retain(|overlap| !told.contains(overlap));
        }
        all.retain(|_, waiting| !waiting.is_empty());
        turn.check()?;
        self.record().put_json(FILE, &all)
    }

    /// Writes down whom a step overlaps with: other agents whose steps changed the same files since its
    /// command began, and the one that takes its places over.
    pub(crate) async fn tell_overlaps(
        &self,
        making: &Making<'_>,
        since: Option<&str>,
        last: &str,
        commit: &str,
        mine: &[TreeChange],
        turn: &Turn,
    ) -> Result<(), Error> {
        let StepCause::Agent { name: me, .. } = making.by else { return Ok(()) };
        let own: BTreeSet<&Path> = mine.iter().map(|change| change.path.as_path()).collect();
        let mut found: BTreeMap<(&Path, String), Option<String>> = BTreeMap::new();
        let steps = match since.filter(|since| *since != last) {
            // One that was never named by a ref may be gone by now, and then nothing came after it.
            Some(since) => match self.steps_between(since, last).await {
                Err(Error::Git { .. }) => Vec::new(),
                steps => steps?,
            },
            None => Vec::new(),
        };
        for step in &steps {
            let StepCause::Agent { name: other, .. } = &step.by else { continue };
            for change in step.changes.iter().filter(|_| other != me) {
                if own.contains(change.path.as_path()) {
                    let version = change.new.as_ref().map(|_| step.commit.clone());
                    found.insert((&change.path, other.clone()), version);
                }
            }
        }
        let mut tell: Vec<(String, Overlap)> = Vec::new();
        for ((path, other), version) in found {
            tell.push((me.clone(), self.overlap(path, &other, version.clone(), How::Later)));
            tell.push((other, self.overlap(path, me, version, How::Earlier)));
        }
        if let Some(taker) = making.taker {
            for change in mine {
                let version = change.new.as_ref().map(|_| commit.to_owned());
                tell.extend(self.taken_over(&change.path, me, taker, version));
            }
        }
        self.tell(tell, turn)
    }

    /// What both are told when one takes over a place of the other.
    pub(crate) fn taken_over(
        &self,
        path: &Path,
        from: &str,
        taker: &str,
        version: Option<String>,
    ) -> [(String, Overlap); 2] {
        [
            (from.to_owned(), self.overlap(path, taker, version.clone(), How::Lost)),
            (taker.to_owned(), self.overlap(path, from, version, How::Took)),
        ]
    }

    fn overlap(&self, path: &Path, with: &str, commit: Option<String>, how: How) -> Overlap {
        let show = commit.as_ref().filter(|_| self.store().is_shared()).map(|commit| {
            let short = commit.get(..12).unwrap_or(commit);
            format!("git show {short}:{}", quoted(path))
        });
        Overlap { path: path.to_string_lossy().into_owned(), with: with.to_owned(), commit, show, how }
    }

    /// Writes down what is to be told.
    pub(crate) fn tell(&self, news: Vec<(String, Overlap)>, turn: &Turn) -> Result<(), Error> {
        if news.is_empty() {
            return Ok(());
        }
        let notes: Vec<String> = news
            .iter()
            .filter(|(_, overlap)| matches!(overlap.how, How::Later | How::Took))
            .map(|(agent, overlap)| overlap.noted(agent))
            .collect();
        let mut all = all(self.record())?;
        for (agent, overlap) in news {
            let waiting = all.entry(agent).or_default();
            // One that was taken over is told as that, and not again when the other one is done.
            let same = |known: &Overlap| {
                (&known.path, &known.with, &known.commit) == (&overlap.path, &overlap.with, &overlap.commit)
            };
            if !waiting.iter().any(same) {
                waiting.push(overlap);
            }
        }
        turn.check()?;
        self.record().put_json(FILE, &all)?;
        self.add_notes(&notes, turn)
    }
}

fn all(record: &Record) -> Result<BTreeMap<String, Vec<Overlap>>, Error> {
    Ok(record.get_json(FILE)?.unwrap_or_default())
}
