//! `convoke worktrees`: what agents changed in worktrees of their own, listed, shown, taken over and dropped.
//! A session is found by the journal; the worktrees of one that was pruned are found by their own names.

mod show;

use std::path::{Path, PathBuf};

use convoke_trees::{Keeper, WorktreeEntry, WorktreeError, Worktrees};
use serde_json::json;

use crate::args::{OutputFormat, WorktreeArgs, WorktreesCommand};
use crate::catalog::{self, Catalog, ListedSession};
use crate::commands::{no_jsonl, patch};
use crate::failure::{Exit, Failure};
use crate::keeping::{self, Checkout, LEAD};
use crate::render::{Look, clean, count, file_name};
use crate::settings::Settings;
use crate::stdio;

/// Does what is asked about worktrees.
pub(crate) async fn run(settings: &Settings, command: &WorktreesCommand) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("worktrees"));
    }
    let journal = catalog::open_existing(settings).await?;
    let catalog = Catalog::load(settings, journal.as_ref()).await?;
    let at = Lookup { settings, catalog: &catalog };
    match command {
        WorktreesCommand::List(args) => at.list(args.session.as_deref()).await,
        WorktreesCommand::Diff(args) => {
            let found = at.find(&args.which).await?;
            let bytes = found.worktrees.diff(&found.entry.run, &found.entry.agent).await?;
            if settings.output == OutputFormat::Json {
                let (files, patch) = patch::object(&bytes);
                let object = json!({"schema_version": 1, "worktree": at.object(&found.entry), "files": files, "patch": patch});
                stdio::put_json(&format!("{object:#}\n"))?;
                return Ok(Exit::Done);
            }
            if bytes.is_empty() {
                stdio::tell(&format!("{} changed nothing in it\n", found.entry.agent));
                return Ok(Exit::Done);
            }
            patch::put(&bytes, args.form, Look::of(settings))?;
            Ok(Exit::Done)
        }
        WorktreesCommand::Apply(args) => at.apply(args).await,
        WorktreesCommand::Drop(args) => at.remove(&args.which, args.force).await,
    }
}

/// A worktree that was named.
struct Found {
    worktrees: Worktrees,
    entry: WorktreeEntry,
    /// Where what is in it belongs.
    dir: PathBuf,
}

/// What the commands look things up in.
struct Lookup<'a> {
    settings: &'a Settings,
    catalog: &'a Catalog,
}

impl Lookup<'_> {
    async fn list(&self, given: Option<&str>) -> Result<Exit, Failure> {
        let entries = match given {
            Some(given) => self.of_listed(given).await?.1,
            None => match Worktrees::open(keeping::places(self.settings), &self.settings.dir).await {
                Ok(worktrees) => worktrees.list(None).await?,
                Err(WorktreeError::Trees(convoke_trees::Error::NoRepository { dir })) => {
                    stdio::tell(&format!("{} is in no git repository\n", clean(&dir.to_string_lossy())));
                    Vec::new()
                }
                Err(error) => return Err(error.into()),
            },
        };
        if self.settings.output == OutputFormat::Json {
            let all: Vec<_> = entries.iter().map(|entry| self.object(entry)).collect();
            stdio::put_json(&format!("{:#}\n", json!({"schema_version": 1, "worktrees": all})))?;
        } else if entries.is_empty() {
            stdio::tell("no worktrees\n");
        } else {
            stdio::put(&self.table(&entries).render(stdio::width()))?;
        }
        Ok(Exit::Done)
    }

    /// The worktrees of a session, of its agents and of its lead, and the directory that they belong to.
    async fn of_listed(&self, given: &str) -> Result<(Worktrees, Vec<WorktreeEntry>, PathBuf), Failure> {
        let listed = match self.catalog.find(given) {
            Ok(listed) => listed,
            // One that was pruned has no name but its worktrees'.
            Err(unknown) => return self.of_nobody(given).await.map_err(|_| unknown),
        };
        let lead = Path::new(&listed.lead().summary.dir);
        let checkout = Checkout::of(self.settings, lead);
        let dir = checkout.as_ref().map_or_else(|| lead.to_owned(), |checkout| checkout.dir.clone());
        let worktrees = Worktrees::open(keeping::places(self.settings), &dir).await?;
        let mut entries = worktrees.list(Some(listed.lead().agent.as_str())).await?;
        if let Some(checkout) = &checkout {
            entries.extend(worktrees.list(Some(&checkout.name)).await?);
        }
        Ok((worktrees, entries, dir))
    }

    async fn of_nobody(&self, given: &str) -> Result<(Worktrees, Vec<WorktreeEntry>, PathBuf), Failure> {
        let dir = self.settings.dir.clone();
        let worktrees = Worktrees::open(keeping::places(self.settings), &dir).await?;
        let mut entries = worktrees.list(None).await?;
        entries.retain(|entry| entry.run.starts_with(given));
        let one = entries.first().is_some_and(|first| entries.iter().all(|entry| entry.run == first.run));
        if one { Ok((worktrees, entries, dir)) } else { Err(Failure::usage("no such session")) }
    }

    /// The worktree that is meant. Callers that change it check that no agent is at work in it.
    async fn find(&self, which: &WorktreeArgs) -> Result<Found, Failure> {
        let (worktrees, entries, dir) = self.of_listed(&which.session).await?;
        let names: Vec<String> = entries.iter().map(|entry| entry.agent.clone()).collect();
        let fits =
            |entry: &WorktreeEntry| named(&which.agent, &entry.agent) || self.is_lead(entry, &which.agent);
        let mut found: Vec<WorktreeEntry> = entries.into_iter().filter(fits).collect();
        match (found.pop(), found.is_empty()) {
            (Some(entry), true) => Ok(Found { worktrees, entry, dir }),
            (Some(_), false) => {
                Err(Failure::usage(format!("'{}' fits several worktrees: {}", which.agent, names.join(", ")))
                    .hint("write more of the id"))
            }
            (None, _) => {
                let failure =
                    Failure::usage(format!("'{}' has no worktree in {}", which.agent, which.session));
                Err(match names.is_empty() {
                    true => failure.hint(
                        "no agent of it has one; `convoke worktrees list` shows those of this repository",
                    ),
                    false => failure.hint(format!("these have: {}", names.join(", "))),
                })
            }
        }
    }

    /// Whether a worktree is that of the lead that this id names.
    fn is_lead(&self, entry: &WorktreeEntry, given: &str) -> bool {
        entry.agent == LEAD
            && self.listed_of(entry).is_some_and(|listed| named(given, listed.lead().agent.as_str()))
    }

    /// The session that a worktree belongs to, if it is in this journal.
    fn listed_of(&self, entry: &WorktreeEntry) -> Option<&ListedSession> {
        let of_lead = |listed: &&ListedSession| {
            let checkout = Checkout::of(self.settings, Path::new(&listed.lead().summary.dir));
            checkout.is_some_and(|checkout| checkout.name == entry.run)
        };
        let sessions = &self.catalog.sessions;
        sessions
            .iter()
            .find(|listed| listed.lead().agent.as_str() == entry.run)
            .or_else(|| sessions.iter().find(of_lead))
    }

    /// Refuses a worktree in which an agent is at work.
    fn not_at_work(&self, entry: &WorktreeEntry) -> Result<(), Failure> {
        let Some(listed) = self.listed_of(entry) else { return Ok(()) };
        let at_work = listed.agents.iter().find(|agent| match entry.agent == LEAD {
            // All agents of the session work in the lead's.
            true => agent.owner.is_some(),
            false => agent.agent.as_str() == entry.agent && agent.owner.is_some(),
        });
        match at_work.and_then(|agent| agent.owner.as_ref()) {
            None => Ok(()),
            Some(owner) => {
                Err(Failure::failed(format!("{} is at work in it ({owner}); nothing was done", entry.agent))
                    .hint("wait for its end, or end the session first"))
            }
        }
    }

    async fn apply(&self, which: &WorktreeArgs) -> Result<Exit, Failure> {
        let found = self.find(which).await?;
        let Found { worktrees, entry, dir } = &found;
        self.not_at_work(entry)?;
        let json = self.settings.output == OutputFormat::Json;
        let recorded = self.listed_of(entry);
        let work = worktrees.apply(&entry.run, &entry.agent);
        let done = match recorded {
            Some(listed) => {
                let lead = listed.lead();
                let kept = Checkout::kept(self.settings, lead.agent.as_str(), Path::new(&lead.summary.dir));
                let keeper = Keeper::open(&keeping::places(self.settings), &kept.dir, &kept.name).await?;
                keeper.take_over(&entry.agent, "worktrees apply", work).await?
            }
            // Without its session no command could take it back.
            None => work.await,
        };
        let undo = recorded.map(|listed| format!("convoke sessions undo {}", listed.session));
        let applied = match done {
            Ok(applied) => applied,
            Err(WorktreeError::Conflict(conflict)) if json => {
                let conflicts: Vec<_> =
                    conflict.files.iter().map(|(path, why)| json!({"path": path, "why": why})).collect();
                let none: [&str; 0] = [];
                let object = json!({
                    "schema_version": 1, "worktree": self.object(entry), "dir": dir,
                    "applied": none, "already": none, "not_stored": show::names(&entry.not_stored), "conflicts": conflicts,
                });
                stdio::put_json(&format!("{object:#}\n"))?;
                return Ok(Exit::Failed);
            }
            Err(WorktreeError::Conflict(conflict)) => {
                let line = |(path, why): &(String, String)| {
                    format!("conflict: {} ({})\n", file_name(path), clean(why))
                };
                stdio::put(&conflict.files.iter().map(line).collect::<String>())?;
                let number = count(u32::try_from(conflict.files.len()).unwrap_or(u32::MAX), "conflict");
                return Err(Failure::failed(format!("{number}: nothing was written")).hint(
                    "look at them with `convoke worktrees diff`, change your side or the branch, and apply \
                        again",
                ));
            }
            Err(error @ WorktreeError::HalfApplied { .. }) => {
                let hint = undo.map(|undo| format!("`{undo}` takes back what was written"));
                return Err(hint.into_iter().fold(error.into(), Failure::hint));
            }
            Err(error) => return Err(error.into()),
        };
        let undo = undo.filter(|_| !applied.files.is_empty());
        let beyond: Vec<&String> =
            applied.files.iter().filter(|file| !worktrees.covers(Path::new(file))).collect();
        if json {
            let none: [&str; 0] = [];
            let object = json!({
                "schema_version": 1, "worktree": self.object(entry), "dir": dir,
                "applied": applied.files, "already": applied.already,
                "not_stored": show::names(&applied.not_stored), "conflicts": none,
                "undo": undo, "not_taken_back": beyond,
            });
            stdio::put_json(&format!("{object:#}\n"))?;
            return Ok(Exit::Done);
        }
        let listed = |word: &str, files: &[String]| -> String {
            files.iter().map(|file| format!("{word}: {}\n", file_name(file))).collect()
        };
        let not_stored = listed("not brought over, it cannot be stored", &show::names(&applied.not_stored));
        let lines =
            listed("applied", &applied.files) + &listed("already there", &applied.already) + &not_stored;
        stdio::put(&lines)?;
        let number = count(u32::try_from(applied.files.len()).unwrap_or(u32::MAX), "file");
        stdio::tell(&format!("{number} applied in {}\n", clean(&dir.to_string_lossy())));
        for file in beyond {
            stdio::tell(&format!(
                "outside of that directory, cannot be taken back by convoke: {}\n",
                file_name(file)
            ));
        }
        match undo {
            Some(undo) => stdio::tell(&format!("to take it back: {undo}\n")),
            None if recorded.is_none() => {
                stdio::tell("its session was pruned, so convoke cannot take this back\n")
            }
            None => {}
        }
        Ok(Exit::Done)
    }

    async fn remove(&self, which: &WorktreeArgs, force: bool) -> Result<Exit, Failure> {
        let found = self.find(which).await?;
        let entry = &found.entry;
        let json = self.settings.output == OutputFormat::Json;
        self.not_at_work(entry)?;
        let dropped = found.worktrees.drop(&entry.run, &entry.agent, force).await?;
        if json {
            let ignored: Vec<_> = dropped.ignored.iter().map(|path| path.to_string_lossy()).collect();
            let object = json!({"schema_version": 1, "worktree": self.object(entry), "commit": dropped.commit, "ignored": ignored});
            stdio::put_json(&format!("{object:#}\n"))?;
            return Ok(Exit::Done);
        }
        let commit = match &dropped.commit {
            Some(commit) => format!("; for a while `git branch NAME {commit}` brings its work back"),
            None => String::new(),
        };
        stdio::tell(&format!("the worktree of {} is gone{commit}\n", entry.agent));
        Ok(Exit::Done)
    }
}

/// Whether what a person typed is the beginning of an id, with or without its prefix.
fn named(given: &str, id: &str) -> bool {
    let body = id.split_once('_').map_or(id, |(_, body)| body);
    !given.is_empty() && (id.starts_with(given) || body.starts_with(given))
}
