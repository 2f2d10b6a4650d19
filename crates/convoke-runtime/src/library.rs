//! The library: workflows and kinds of agents that people wrote down, found by name.
//!
//! Files stand on folders, nearest first, and are read anew every time, so that an edit counts at once. It is
//! told where its folders are, and which ones no person trusts: it reads no environment, decides nothing
//! about trust, runs nothing and writes nothing.

mod agents;
mod checker;
mod error;
mod folder;
mod front_matter;
mod paths;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use convoke_script::{Meta, Problem};

pub use agents::{AgentKind, KindEntry};
pub use checker::{Checked, Checker, source_digest};
pub use error::LibraryError;
pub use folder::{LibraryFolder, Origin};
pub use paths::{Source, read_source};

pub(crate) use paths::lexical;

use folder::{AGENTS, Contents, WORKFLOWS};
use paths::Opened;

/// Workflows and kinds of agents that people wrote down.
#[derive(Debug, Clone)]
pub struct Library {
    workflows: Vec<LibraryFolder>,
    agents: Vec<LibraryFolder>,
    /// Folders of workflows that no person trusts: nothing on them is run, by whatever way it is named.
    left_out: Vec<LibraryFolder>,
    /// Folders of kinds of agents that no person trusts.
    left_out_kinds: Vec<LibraryFolder>,
    shipped: &'static [(&'static str, &'static str)],
    checker: Checker,
}

/// A workflow that was found by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundWorkflow {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: String,
    /// Where it stands; `None` for one that is shipped.
    pub path: Option<PathBuf>,
    /// Where it comes from.
    pub origin: Origin,
    /// What it says of itself.
    pub meta: Meta,
}

impl FoundWorkflow {
    /// The SHA-256 of its source, in hexadecimal.
    pub fn digest(&self) -> String {
        source_digest(&self.source)
    }
}

/// One file of a folder, or one shipped workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowEntry {
    /// Its name: what its `meta` says or, if that cannot be read, its file's name without the ending.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Where it stands; `None` for one that is shipped.
    pub path: Option<PathBuf>,
    /// Whether it can be run.
    pub reading: Reading,
    /// Whether a nearer one of the same name takes its place.
    pub hidden: bool,
}

/// Whether a workflow can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// It can, and says this of itself.
    Sound(Meta),
    /// It cannot: this is wrong with its source.
    Unsound(Vec<Problem>),
    /// It could not be read or checked.
    Unreadable(String),
}

impl Library {
    /// A library of these folders, nearest first, and of what is shipped as pairs of a name and a source.
    pub fn new(
        workflows: Vec<LibraryFolder>,
        agents: Vec<LibraryFolder>,
        shipped: &'static [(&'static str, &'static str)],
        checker: Checker,
    ) -> Self {
        Self { workflows, agents, left_out: Vec::new(), left_out_kinds: Vec::new(), shipped, checker }
    }

    /// The same library, which also knows these folders of workflows and of kinds of agents as such that no
    /// person trusts: what stands there is refused with the reason, whether it is named or its path is.
    pub fn without(self, left_out: Vec<LibraryFolder>, left_out_kinds: Vec<LibraryFolder>) -> Self {
        Self { left_out, left_out_kinds, ..self }
    }

    /// The workflow of this name: the nearest one whose `meta` says so. A nearer file that is called so and
    /// cannot be used is an error and is not passed over, because its author means that one.
    pub async fn find(&self, name: &str) -> Result<Option<FoundWorkflow>, LibraryError> {
        for folder in &self.workflows {
            let mut unusable = None;
            for file in Contents::read(folder, WORKFLOWS).await.files {
                let called_so = file.stem == name;
                let error = match file.text {
                    Err(why) => LibraryError::Unreadable { path: file.path, why },
                    Ok(source) => match self.checker.check(&source).await {
                        Ok(Checked::Sound { meta, .. }) if meta.name == name => {
                            let path = Some(file.path);
                            let origin = folder.origin;
                            return Ok(Some(FoundWorkflow {
                                name: name.to_owned(),
                                source,
                                path,
                                origin,
                                meta,
                            }));
                        }
                        Ok(Checked::Sound { .. }) => continue,
                        Ok(Checked::Unsound { problems }) => {
                            LibraryError::Unsound { path: file.path, problems }
                        }
                        // Then nothing can be said about any file, and none is taken for missing.
                        Err(error) => return Err(error),
                    },
                };
                if called_so {
                    unusable.get_or_insert(error);
                }
            }
            if let Some(error) = unusable {
                return Err(error);
            }
        }
        let Some((name, source)) = self.shipped.iter().find(|(shipped, _)| *shipped == name) else {
            return self.untrusted(name).await.map_or(Ok(None), Err);
        };
        match self.checker.check(source).await? {
            Checked::Sound { meta, .. } => {
                let name = (*name).to_owned();
                let source = (*source).to_owned();
                Ok(Some(FoundWorkflow { name, source, path: None, origin: Origin::Shipped, meta }))
            }
            Checked::Unsound { problems } => {
                Err(LibraryError::Unsound { path: PathBuf::from(name), problems })
            }
        }
    }

    /// Why a name cannot be used, if it is found only on folders that no person trusts.
    async fn untrusted(&self, name: &str) -> Option<LibraryError> {
        for folder in &self.left_out {
            for file in Contents::read(folder, WORKFLOWS).await.files {
                let Ok(source) = file.text else { continue };
                if let Ok(Checked::Sound { meta, .. }) = self.checker.check(&source).await
                    && meta.name == name
                {
                    return Some(LibraryError::Untrusted { named: name.to_owned(), path: file.path });
                }
            }
        }
        None
    }

    /// Every workflow, nearest first: also those that cannot be used, with the reason, and those that a
    /// nearer one hides.
    pub async fn list(&self) -> Vec<WorkflowEntry> {
        let mut entries = Vec::new();
        for folder in &self.workflows {
            let contents = Contents::read(folder, WORKFLOWS).await;
            for file in contents.files {
                let (name, reading) = match &file.text {
                    Err(why) => (file.stem, Reading::Unreadable(why.clone())),
                    Ok(source) => self.reading(source, file.stem).await,
                };
                let origin = folder.origin;
                let path = Some(file.path);
                entries.push(WorkflowEntry { name, origin, path, reading, hidden: false });
            }
            entries.extend(contents.problem.map(|why| WorkflowEntry {
                name: folder.name(),
                origin: folder.origin,
                path: Some(folder.dir.clone()),
                reading: Reading::Unreadable(why),
                hidden: false,
            }));
        }
        for (name, source) in self.shipped {
            let (name, reading) = self.reading(source, (*name).to_owned()).await;
            entries.push(WorkflowEntry { name, origin: Origin::Shipped, path: None, reading, hidden: false });
        }
        let mut taken = BTreeSet::new();
        for entry in &mut entries {
            if matches!(entry.reading, Reading::Sound(_)) {
                entry.hidden = !taken.insert(entry.name.clone());
            }
        }
        entries
    }

    async fn reading(&self, source: &str, stem: String) -> (String, Reading) {
        match self.checker.check(source).await {
            Ok(Checked::Sound { meta, .. }) => (meta.name.clone(), Reading::Sound(meta)),
            Ok(Checked::Unsound { problems }) => (stem, Reading::Unsound(problems)),
            Err(error) => (stem, Reading::Unreadable(error.to_string())),
        }
    }

    /// The file of a `scriptPath`. A relative path is one from the working directory `dir`. What is read must
    /// be a regular file below that directory, below a folder or below `scripts`, where runs keep their
    /// scripts; links are followed as far as they stay there. What no person trusts is refused. `may` is
    /// asked about the path as it is written and about where the file really is, before anything of it is
    /// read; its error is why not.
    pub async fn read_path(
        &self,
        path: &Path,
        dir: &Path,
        scripts: Option<&Path>,
        may: impl Fn(&Path) -> Result<(), String>,
    ) -> Result<Source, LibraryError> {
        let refused = |why: String| LibraryError::Forbidden { path: path.to_owned(), why };
        may(&lexical(&dir.join(path))).map_err(refused)?;
        let folders = self.workflows.iter().chain(&self.left_out).map(|folder| folder.dir.as_path());
        let below: Vec<PathBuf> =
            [dir].into_iter().chain(scripts).chain(folders).map(Path::to_owned).collect();
        let opened = Opened::below(path, dir, below).await?;
        if self.left_out.iter().any(|folder| opened.is_below(&folder.dir)) {
            let named = path.display().to_string();
            let path = opened.path().to_owned();
            return Err(LibraryError::Untrusted { named, path });
        }
        may(opened.path()).map_err(refused)?;
        opened.read().await
    }

    /// The kind of agent of this name: the nearest file that says so, or a built-in one. A nearer file that
    /// is called so and cannot be read is an error.
    pub async fn agent_kind(&self, name: &str) -> Result<Option<AgentKind>, LibraryError> {
        for folder in &self.agents {
            let mut unusable = None;
            for file in Contents::read(folder, AGENTS).await.files {
                let called_so = file.stem == name;
                match agents::read(file) {
                    Ok(kind) if kind.name == name => return Ok(Some(kind)),
                    Ok(_) => {}
                    Err(error) if called_so => drop(unusable.get_or_insert(error)),
                    Err(_) => {}
                }
            }
            if let Some(error) = unusable {
                return Err(error);
            }
        }
        match agents::built_in().into_iter().find(|kind| kind.name == name) {
            Some(kind) => Ok(Some(kind)),
            None => self.untrusted_kind(name).await.map_or(Ok(None), Err),
        }
    }

    /// Why a kind cannot be used, if it is found only on folders that no person trusts.
    async fn untrusted_kind(&self, name: &str) -> Option<LibraryError> {
        for folder in &self.left_out_kinds {
            for file in Contents::read(folder, AGENTS).await.files {
                let path = file.path.clone();
                if agents::read(file).is_ok_and(|kind| kind.name == name) {
                    return Some(LibraryError::UntrustedKind { path });
                }
            }
        }
        None
    }

    /// Every kind of agent, nearest first, the built-in ones last.
    pub async fn agent_kinds(&self) -> Vec<KindEntry> {
        let mut entries = Vec::new();
        for folder in &self.agents {
            let contents = Contents::read(folder, AGENTS).await;
            entries.extend(contents.files.into_iter().filter_map(|file| KindEntry::of(file, folder.origin)));
            entries.extend(contents.problem.map(|why| KindEntry {
                name: folder.name(),
                description: String::new(),
                origin: folder.origin,
                path: Some(folder.dir.clone()),
                problem: Some(why),
                warnings: Vec::new(),
                hidden: false,
            }));
        }
        entries.extend(agents::built_in().into_iter().map(|kind| KindEntry {
            name: kind.name,
            description: kind.description,
            origin: Origin::Shipped,
            path: None,
            problem: None,
            warnings: Vec::new(),
            hidden: false,
        }));
        let mut taken = BTreeSet::new();
        for entry in entries.iter_mut().filter(|entry| entry.problem.is_none()) {
            entry.hidden = !taken.insert(entry.name.clone());
        }
        entries
    }

    /// The checker of sources.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }
}
