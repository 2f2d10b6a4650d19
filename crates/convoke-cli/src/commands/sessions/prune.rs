//! `convoke sessions prune`: removes sessions with their events, output files and what was kept of their
//! changes. It says what goes before it goes, and leaves alone what a process drives.

use std::fs;
use std::io::{BufRead, ErrorKind};
use std::path::Path;
use std::time::Duration;

use convoke_journal::{Journal, StreamId};
use convoke_runtime::Clock;

use super::no_journal;
use crate::args::{OutputFormat, PruneArgs};
use crate::catalog::{self, Catalog, ListedSession, State};
use crate::failure::{Exit, Failure};
use crate::keeping::{self, Checkout, Left};
use crate::render::{clean, count, first_line};
use crate::settings::Settings;
use crate::{paths, stdio, utc};

/// Removes sessions.
pub(super) async fn run(settings: &Settings, args: &PruneArgs) -> Result<Exit, Failure> {
    if args.runs.is_empty() && args.older_than.is_none() && !args.finished {
        return Err(Failure::usage("say which sessions are to go: SESSION…, --older-than AGE or --finished"));
    }
    if settings.output != OutputFormat::Text {
        return Err(Failure::usage("`convoke sessions prune` prints text only"));
    }
    let Some(journal) = catalog::open_existing(settings).await? else {
        return match args.runs.first() {
            Some(given) => Err(no_journal(settings, given)),
            None => nothing(),
        };
    };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let mut chosen = if args.runs.is_empty() {
        by_age(&catalog, args, Clock::system().now())
    } else {
        by_name(&catalog, args)?
    };
    // What a person does not see in `sessions list` is not meant by a word that names no session.
    let all = chosen.len();
    if args.runs.is_empty() && !args.all {
        chosen.retain(|listed| Checkout::of_listed(settings, listed) == settings.dir);
    }
    let others = all - chosen.len();
    if others > 0 {
        let (noun, verb) = if others == 1 { ("session", "stays") } else { ("sessions", "stay") };
        stdio::tell(&format!("{others} {noun} of other directories {verb}; --all takes such sessions too\n"));
    }
    if chosen.is_empty() {
        return nothing();
    }
    announce(settings, &chosen, args).await;
    if args.dry_run {
        return Ok(Exit::Done);
    }
    if !args.yes {
        confirm(chosen.len())?;
    }
    let streams: Vec<StreamId> = chosen.iter().flat_map(|listed| listed.streams()).collect();
    let agents: usize = chosen.iter().map(|listed| listed.agents.len()).sum();
    let pruned = journal.prune(&streams).await?;
    let mut left = Vec::new();
    for stream in &pruned.removed {
        left.extend(remove_files(settings, stream.as_str()));
    }
    left.extend(remove_checks(settings, &journal).await?);
    let gone = |listed: &&&ListedSession| pruned.removed.contains(&StreamId::from(&listed.lead().agent));
    for listed in chosen.iter().filter(gone) {
        let forgotten = keeping::forget(settings, listed).await;
        forgotten.stays.iter().for_each(|line| stdio::tell(&format!("{}\n", clean(line))));
        left.extend(forgotten.problems);
    }
    stdio::tell(&format!("removed {} events of {agents} agents\n", pruned.events));
    if let Some(held) = pruned.held.first() {
        return Err(Failure::failed(format!("{held} was taken up meanwhile and stays")));
    }
    match left.first() {
        None => Ok(Exit::Done),
        Some(problem) => {
            Err(Failure::failed(format!("the sessions are gone, but {problem}")).hint("remove it by hand"))
        }
    }
}

fn nothing() -> Result<Exit, Failure> {
    stdio::tell("nothing to remove\n");
    Ok(Exit::Done)
}

fn by_name<'a>(catalog: &'a Catalog, args: &PruneArgs) -> Result<Vec<&'a ListedSession>, Failure> {
    let mut chosen: Vec<&ListedSession> = Vec::new();
    for given in &args.runs {
        let listed = catalog.find(given)?;
        if listed.state() == State::Running {
            let by = listed.agents.iter().find_map(|entry| entry.owner.as_ref()).map(ToString::to_string);
            let message = format!(
                "{} is running ({}) and stays; nothing was removed",
                listed.session,
                by.unwrap_or_default()
            );
            return Err(Failure::failed(message).hint("end it first, or leave it out"));
        }
        if !chosen.iter().any(|other| other.session == listed.session) {
            chosen.push(listed);
        }
    }
    Ok(chosen)
}

fn by_age<'a>(catalog: &'a Catalog, args: &PruneArgs, now: u64) -> Vec<&'a ListedSession> {
    let old = |listed: &ListedSession| match args.older_than {
        Some(age) => Duration::from_millis(now.saturating_sub(listed.updated_at())) > age,
        None => true,
    };
    let fits = |listed: &&ListedSession| match listed.state() {
        State::Running => false,
        State::Open | State::Waiting => !args.finished && old(listed),
        State::Ended(_) => old(listed),
    };
    catalog.sessions.iter().filter(fits).collect()
}

/// Says what goes. Where nothing has been agreed to yet, what goes with each session is looked up too.
async fn announce(settings: &Settings, chosen: &[&ListedSession], args: &PruneArgs) {
    let verb = if args.dry_run { "would go" } else { "goes" };
    let mut bytes = 0;
    let mut files = 0;
    for listed in chosen {
        let summary = &listed.lead().summary;
        let state = listed.state().words();
        let unfinished = if listed.state() == State::Open { ", unfinished" } else { "" };
        let when = utc::minute(summary.started_at);
        let task = first_line(&summary.task, 60);
        let with = match args.yes && !args.dry_run {
            true => String::new(),
            false => {
                let with = With::of(settings, listed).await;
                (bytes, files) = (bytes + with.bytes, files + with.undo);
                with.words(settings, listed)
            }
        };
        stdio::tell(&format!("{verb}: {} {when} ({state}{unfinished}{with}) {task}\n", listed.session));
    }
    if args.dry_run {
        let undo = if files == 0 { String::new() } else { format!(", the undo data of {}", of_files(files)) };
        let sessions = count(u32::try_from(chosen.len()).unwrap_or(u32::MAX), "session");
        stdio::tell(&format!("in all: {sessions}{undo}, {} of files beside the journal\n", size(bytes)));
    }
}

/// What goes with a session.
struct With {
    /// How many files its changes could be taken back of.
    undo: usize,
    /// Bytes beside the journal: outputs, private copies and records.
    bytes: u64,
}

impl With {
    async fn of(settings: &Settings, listed: &ListedSession) -> Self {
        let lead = listed.lead();
        // Only the paths count here, whatever held the commands.
        let left = Left::of(settings, &lead.agent, Path::new(&lead.summary.dir), None).await;
        let own = listed.agents.iter().flat_map(|entry| {
            [
                settings.outputs_dir().join(entry.agent.as_str()),
                settings.private_dir().join(entry.agent.as_str()),
            ]
        });
        let record = settings.state_dir.join("trees/runs").join(lead.agent.as_str());
        Self { undo: left.changed.len(), bytes: own.chain([record]).map(|path| weigh(&path)).sum() }
    }

    fn words(&self, settings: &Settings, listed: &ListedSession) -> String {
        let undo =
            if self.undo == 0 { String::new() } else { format!(", undo data of {}", of_files(self.undo)) };
        let dir = Checkout::of_listed(settings, listed);
        let place = if dir == settings.dir {
            String::new()
        } else {
            format!(", in {}", clean(&dir.to_string_lossy()))
        };
        format!("{undo}, {}{place}", size(self.bytes))
    }
}

fn of_files(number: usize) -> String {
    count(u32::try_from(number).unwrap_or(u32::MAX), "file")
}

/// The bytes of the files below a path; links are not followed.
fn weigh(path: &Path) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| weigh(&entry.path())).sum()
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

fn confirm(number: usize) -> Result<(), Failure> {
    let kept = || {
        Failure::usage("nothing was removed: this cannot be undone and was not confirmed").hint("add --yes")
    };
    if !stdio::can_ask() {
        return Err(kept());
    }
    let noun = if number == 1 { "session" } else { "sessions" };
    stdio::tell(&format!("Remove {number} {noun} for good? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(kept()),
    }
}

/// Removes an agent's throwaway copy and temporary files. Commands may have taken all rights from directories
/// in them.
fn remove_private(path: &Path) -> std::io::Result<()> {
    convoke_sandbox::remove_private(path);
    match path.symlink_metadata() {
        Ok(_) => Err(std::io::Error::other("something in it cannot be removed")),
        Err(_) => Ok(()),
    }
}

/// Removes what checks of citations left behind whose workflow the journal no longer has, and says what could
/// not be removed. A workflow is recorded before its first check, so none that is under way is taken for
/// gone.
async fn remove_checks(settings: &Settings, journal: &Journal) -> Result<Vec<String>, Failure> {
    let mut left = Vec::new();
    for place in [settings.private_dir(), settings.outputs_dir()] {
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(workflow) = name.to_str().and_then(checked_workflow) else { continue };
            if !journal.load(&workflow, 0).await?.is_empty() {
                continue;
            }
            let path = entry.path();
            if let Err(error) = remove_private(&path) {
                left.push(format!("{} stays: {error}", path.display()));
            }
        }
    }
    Ok(left)
}

/// The workflow whose check a directory is named after: `check_WORKFLOW_ITEM`.
fn checked_workflow(name: &str) -> Option<StreamId> {
    let (workflow, _item) = name.strip_prefix("check_")?.rsplit_once('_')?;
    StreamId::new(workflow).ok()
}

/// Removes what an agent left beside the journal, and says what could not be removed.
fn remove_files(settings: &Settings, agent: &str) -> Vec<String> {
    let outputs = settings.outputs_dir().join(agent);
    let mut left = Vec::new();
    let mut note = |path: &Path, done: std::io::Result<()>| match done {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            left.push(format!("{} stays: {error}", path.display()))
        }
        _ => {}
    };
    note(&outputs, fs::remove_dir_all(&outputs));
    let private = settings.private_dir().join(agent);
    note(&private, remove_private(&private));
    for dir in paths::spools(settings) {
        let spooled = dir.join(format!("{agent}.json"));
        note(&spooled, fs::remove_file(&spooled));
    }
    left
}
