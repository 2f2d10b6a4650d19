//! `convoke workflow`: what is saved, listed, shown, checked and put there; and how one is planned and run.
//! What only looks runs no workflow, so what is not trusted is looked at all the same.

mod agree;
mod called;
mod called_by_name;
mod check;
mod chosen;
pub(super) mod edited;
mod given;
mod list;
mod places;
mod plan;
mod planned;
mod run;
mod save;
mod show;

pub(super) use called::{Called, called};
pub(crate) use called_by_name::meant;
pub(super) use edited::Edited;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use convoke_runtime::{KindEntry, Library, Meta, Origin, Reading, Source, WorkflowEntry, read_source};
use serde_json::{Value, json};

use super::{no_jsonl, trust};
use crate::args::{OutputFormat, WorkflowCommand, nearest};
use crate::failure::{Exit, Failure};
use crate::settings::{LibraryFolders, Settings};

/// Does what is asked about workflows.
pub(crate) async fn run(settings: &Settings, command: WorkflowCommand) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl && !matches!(command, WorkflowCommand::Run(_)) {
        return Err(no_jsonl("workflow"));
    }
    let lookup = Lookup::of(settings)?;
    match &command {
        WorkflowCommand::List(args) => list::run(&lookup, *args).await,
        WorkflowCommand::Show(args) => show::run(&lookup, args).await,
        WorkflowCommand::Check(args) => check::run(&lookup, args).await,
        WorkflowCommand::Save(args) => save::run(&lookup, args).await,
        WorkflowCommand::Plan(args) => plan::run(&lookup, args).await,
        WorkflowCommand::Run(args) => run::run(&lookup, args.as_ref().clone()).await,
    }
}

/// What the commands look things up in.
struct Lookup<'a> {
    settings: &'a Settings,
    folders: LibraryFolders,
    /// All there is.
    library: Library,
    /// What a run would load.
    loaded: Library,
}

impl<'a> Lookup<'a> {
    fn of(settings: &'a Settings) -> Result<Self, Failure> {
        let folders = settings.saved.folders(&settings.dir);
        let library = trust::of(folders.clone())?;
        let loaded = if folders.trusted { library.clone() } else { trust::without_project(folders.clone())? };
        Ok(Self { settings, library, loaded, folders })
    }
}

impl Lookup<'_> {
    /// Whether what comes from there would be loaded.
    fn trusts(&self, origin: Origin) -> bool {
        origin != Origin::Project || self.folders.trusted
    }

    /// Every workflow. One that is not trusted never hides a trusted one of the same name.
    async fn workflows(&self) -> Vec<WorkflowEntry> {
        let mut entries = self.library.list().await;
        let sound = entries.iter_mut().filter(|entry| matches!(entry.reading, Reading::Sound(_)));
        self.hide(sound.map(|entry| (entry.origin, entry.name.as_str(), &mut entry.hidden)));
        entries
    }

    /// Every kind of agent. One that is not trusted never hides a trusted one of the same name.
    async fn kinds(&self) -> Vec<KindEntry> {
        let mut entries = self.library.agent_kinds().await;
        let usable = entries.iter_mut().filter(|entry| entry.problem.is_none());
        self.hide(usable.map(|entry| (entry.origin, entry.name.as_str(), &mut entry.hidden)));
        entries
    }

    fn hide<'e>(&self, entries: impl Iterator<Item = (Origin, &'e str, &'e mut bool)>) {
        let mut taken = BTreeSet::new();
        for (origin, name, hidden) in entries {
            *hidden = !taken.insert((self.trusts(origin), name));
        }
    }

    /// Where something comes from, in words.
    fn from(&self, origin: Origin, hidden: bool) -> String {
        let trusted = if self.trusts(origin) { "" } else { ", not trusted" };
        let hidden = if hidden { ", hidden" } else { "" };
        format!("{}{trusted}{hidden}", origin.word())
    }

    /// A path as a person would write it here.
    fn shown(&self, path: Option<&Path>) -> String {
        let Some(path) = path else { return "-".to_owned() };
        path.strip_prefix(&self.settings.dir).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The source of what a person names: a file, or a saved workflow by its name.
    async fn source(&self, given: &str) -> Result<(String, String), Failure> {
        if is_file(given) {
            let Source { text, .. } = read_source(Path::new(given), &self.settings.dir).await?;
            return Ok((given.to_owned(), text));
        }
        let entries = self.workflows().await;
        let Some(entry) = entries.iter().find(|entry| entry.name == given && !entry.hidden) else {
            return Err(self.unknown(given, &entries));
        };
        if let Reading::Unreadable(why) = &entry.reading {
            return Err(Failure::usage(format!(
                "{} cannot be used: {why}",
                self.shown(entry.path.as_deref())
            )));
        }
        match &entry.path {
            Some(path) => Ok((self.shown(Some(path)), read_source(path, &self.settings.dir).await?.text)),
            None => match self.library.find(given).await? {
                Some(found) => Ok((found.name, found.source)),
                None => Err(self.unknown(given, &entries)),
            },
        }
    }

    /// There is no workflow of this name.
    fn unknown(&self, name: &str, entries: &[WorkflowEntry]) -> Failure {
        let failure = Failure::usage(format!("there is no workflow '{name}'"));
        let failure = match nearest(name, entries.iter().map(|entry| entry.name.as_str())) {
            Some(near) => failure.hint(format!("the nearest name is '{near}'")),
            None => failure,
        };
        failure.hint("`convoke workflow list` shows all of them")
    }
}

/// Whether a person means a file.
fn is_file(given: &str) -> bool {
    let path = PathBuf::from(given);
    let ending = path
        .extension()
        .is_some_and(|ending| ["js", "mjs", "cjs", "ts"].iter().any(|known| ending == *known));
    given.contains('/') || ending || path.is_file()
}

/// The first figures of a digest, which are enough to tell sources apart.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

/// What a workflow says of itself, for programs.
fn meta_object(meta: &Meta) -> Value {
    let phases = meta
        .phases
        .iter()
        .map(|phase| json!({"title": phase.title, "detail": phase.detail, "model": phase.model}));
    json!({
        "name": meta.name,
        "description": meta.description,
        "when_to_use": meta.when_to_use,
        "phases": phases.collect::<Vec<_>>(),
    })
}
