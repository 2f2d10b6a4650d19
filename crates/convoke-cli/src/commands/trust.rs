//! What a project brings along is loaded only if a person trusts it: by configuration, by flag, or when asked
//! in a terminal. What is left out is said, and only if there is something. Without a person at a terminal no
//! question is asked, and the answer is no.

use std::path::Path;

use convoke_runtime::{Checker, HelperPath, Library, LibraryFolder, Origin};

use super::ask::{Said, read, remember, said};
use crate::failure::Failure;
use crate::lead::Lead;
use crate::memory::Memory;
use crate::paths;
use crate::render::{Look, revealed};
use crate::settings::{LibraryFolders, Settings};
use crate::shipped;
use crate::stdio::tell;

/// More names than this are counted.
const MOST_NAMES: usize = 6;

/// What a project brings along, as far as it is trusted.
pub(super) struct Project {
    /// The workflows and kinds of agents; what no person trusts is listed apart, as left out.
    pub(super) library: Library,
    /// What its memory files say to every agent.
    pub(super) memory: Option<String>,
    /// Whether a person trusts it for this session, by a flag or when asked: the session keeps that, however
    /// often it is resumed.
    pub(super) for_this_session: bool,
}

/// What a new session in this directory is given of the project.
pub(super) fn project(settings: &Settings, look: Look, dir: &Path) -> Result<Project, Failure> {
    let folders = settings.saved.folders(dir);
    let memory = if settings.team.memory { Memory::find(dir, &folders.root) } else { Memory::default() };
    if !(folders.trusted || agreed(settings, look, &folders, memory.names())) {
        return Ok(Project { library: without_project(folders)?, memory: None, for_this_session: false });
    }
    let for_this_session = !folders.for_good;
    let said = memory.read();
    for warning in &said.warnings {
        tell(&look.fit(&format!("warning: {warning}\n")));
    }
    Ok(Project { library: of(folders)?, memory: said.text, for_this_session })
}

/// The library of a session in this directory that was begun before. What no person trusts is listed apart,
/// as left out. What a person trusted when the session was begun is trusted for its whole life.
pub(super) fn library_of(
    settings: &Settings,
    look: Look,
    dir: &Path,
    lead: &Lead,
) -> Result<Library, Failure> {
    let folders = settings.saved.folders(dir);
    let fan_out = lead.spec.as_ref().and_then(|spec| spec.fan_out.as_ref());
    let recorded = fan_out.is_some_and(|fan_out| fan_out.callees.trusts_project);
    if recorded || folders.trusted || agreed(settings, look, &folders, Vec::new()) {
        return of(folders);
    }
    without_project(folders)
}

/// The library of these folders; the project's are listed apart, as left out.
pub(super) fn without_project(folders: LibraryFolders) -> Result<Library, Failure> {
    let of_project = |all: &[LibraryFolder]| {
        all.iter().filter(|folder| folder.origin == Origin::Project).cloned().collect()
    };
    let left_out = (of_project(&folders.workflows), of_project(&folders.agents));
    Ok(of(folders.without_project())?.without(left_out.0, left_out.1))
}

/// The library of these folders, all of them.
pub(super) fn of(folders: LibraryFolders) -> Result<Library, Failure> {
    let checker = Checker::of(HelperPath::new(paths::own_executable()?));
    Ok(Library::new(folders.workflows, folders.agents, shipped::WORKFLOWS, checker))
}

/// Whether a person trusts the project now. What is left out is told. Memory files alone are not asked about:
/// most projects have one, and a person who is asked every day stops reading.
fn agreed(settings: &Settings, look: Look, folders: &LibraryFolders, files: Vec<String>) -> bool {
    let asks = look.is_interactive() && brought(folders, Vec::new()).is_some();
    let Some(brought) = brought(folders, files) else { return false };
    let root = revealed(&folders.root.to_string_lossy());
    if asks {
        tell(
            &look.fit(&format!(
                "{root} brings along {brought}; `convoke workflow list` shows where they are\n"
            )),
        );
        if let Some(keys) = settings.project.ignored() {
            let line = format!(
                "its configuration sets {keys}, which counts from the next session on if you say a\n"
            );
            tell(&look.fit(&line));
        }
        let file = settings.user_file();
        tell(
            &look.fit(&format!("y: for this once, a: for good (in {})\n", revealed(&file.to_string_lossy()))),
        );
        match ask(&format!("Trust the workflows and agents of {root}? [y/N/a] ")) {
            Some(Said::Once) => return true,
            Some(Said::Always) => {
                if let Err(why) = remember::trust(&file, &folders.root.to_string_lossy()) {
                    tell(&look.fit(&format!("warning: this could not be remembered: {}\n", revealed(&why))));
                }
                return true;
            }
            Some(Said::No | Said::Show | Said::Else) | None => {}
        }
    }
    tell(&look.fit(&format!("warning: {}\n", left_out(&root, &brought))));
    false
}

/// What is left out, and what would load it.
fn left_out(root: &str, brought: &str) -> String {
    format!(
        "not loaded, because {root} is not trusted: {brought}; --trust-project loads them for this once, \
         `trusted` in your configuration for good"
    )
}

/// What a project brings along, in words; `None` if that is nothing.
fn brought(folders: &LibraryFolders, files: Vec<String>) -> Option<String> {
    let of_project = |folder: &&LibraryFolder| folder.origin == Origin::Project;
    let workflows: Vec<String> =
        folders.workflows.iter().filter(of_project).flat_map(LibraryFolder::workflows).collect();
    let agents: Vec<String> =
        folders.agents.iter().filter(of_project).flat_map(LibraryFolder::agents).collect();
    let parts = [named("workflow", workflows), named("agent", agents), named("file", files)];
    let mut said: Vec<String> = parts.into_iter().flatten().collect();
    let last = said.pop()?;
    Some(if said.is_empty() { last } else { format!("{} and {last}", said.join(", ")) })
}

/// `the workflows a, b and 3 more`.
fn named(noun: &str, mut names: Vec<String>) -> Option<String> {
    let plural = if names.len() == 1 { "" } else { "s" };
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let list = names.iter().map(|name| revealed(name).replace('\n', " ")).collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("the {noun}{plural} {list}{more}"))
}

/// Asks until there is an answer; `None` at the end of the input.
fn ask(prompt: &str) -> Option<Said> {
    loop {
        match said(&read(prompt)?) {
            Said::Show | Said::Else => tell("That is none of the answers.\n"),
            said => return Some(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brought_along_is_named_and_the_rest_counted() {
        let check = |names: &[&str], expected: Option<&str>| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(named("workflow", names).as_deref(), expected);
        };
        check(&[], None);
        check(&["a"], Some("the workflow a"));
        check(&["a", "b\u{1b}[2J"], Some("the workflows a, b\\u{1b}[2J"));
        check(&["a", "b", "c", "d", "e", "f", "g", "h"], Some("the workflows a, b, c, d, e, f and 2 more"));
    }
}
