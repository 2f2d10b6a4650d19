//! `convoke workflow save`: puts a workflow, from a file or as a run was made of it, where it is found by its
//! name. Only what can be run is saved; nothing is replaced unasked, and no link is followed.

use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Error, Kind, Links};
use convoke_runtime::{Checked, LibraryFolder, Origin, read_source, source_digest};
use serde_json::json;

use super::{Lookup, is_file, places, short};
use crate::args::{OutputFormat, WorkflowSaveArgs};
use crate::catalog::{self, Catalog};
use crate::failure::{Exit, Failure};
use crate::render::clean;
use crate::stdio;
use crate::work;

/// Longer names are no names.
const LONGEST_NAME: usize = 64;

/// Saves a workflow.
pub(super) async fn run(lookup: &Lookup<'_>, args: &WorkflowSaveArgs) -> Result<Exit, Failure> {
    check_name(&args.name)?;
    let source = source(lookup, &args.from).await?;
    let name = match lookup.library.checker().check(&source).await? {
        Checked::Sound { meta, .. } => meta.name,
        Checked::Unsound { problems } => {
            let file = args.from.to_string_lossy();
            let lines: String =
                problems.iter().map(|problem| places::lines(&file, "", problem, stdio::width())).collect();
            stdio::tell(&lines);
            return Err(Failure::usage("it cannot be run, so it was not saved"));
        }
    };
    if name != args.name {
        return Err(Failure::usage(format!(
            "its meta says that its name is '{name}', and by that it would be found"
        ))
        .hint(format!("save it as '{name}', or write name: '{}' in its meta", args.name)));
    }
    let (dir, opened) = folder(lookup, args.user)?;
    let path = dir.join(format!("{name}.js"));
    let put = put(&opened, &path, &source, args.force)?;
    let digest = source_digest(&source);
    let entries = lookup.library.list().await;
    let hidden = entries.iter().any(|entry| entry.path.as_deref() == Some(&path) && entry.hidden);
    if lookup.settings.output == OutputFormat::Json {
        let object = json!({
            "schema_version": 1,
            "name": name,
            "path": path.to_string_lossy(),
            "digest": short(&digest),
            "sha256": digest,
            "replaced": put == Put::Replaced,
            "hidden": hidden,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
    } else {
        stdio::put(&format!("{}\n", clean(&path.to_string_lossy())))?;
    }
    if put == Put::Already && !lookup.settings.quiet {
        stdio::tell("it was there already, the very same\n");
    }
    if hidden {
        let other = entries.iter().find(|entry| entry.name == name && !entry.hidden);
        let other = other.and_then(|entry| entry.path.as_deref());
        stdio::tell(&format!(
            "warning: {} has the same name and is found first\n",
            clean(&lookup.shown(other))
        ));
    }
    if !args.user && !lookup.folders.trusted && !lookup.settings.quiet {
        stdio::tell("this project is not trusted yet: --trust-project loads it\n");
    }
    Ok(Exit::Done)
}

/// A name that can be a file's and stand on a command line.
fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && name.chars().all(plain) && name.len() <= LONGEST_NAME {
        true => Ok(()),
        false => Err(Failure::usage(format!("'{name}' cannot be a name of a workflow")).hint(format!(
            "write letters, digits, - _ and ., at most {LONGEST_NAME}, beginning with a letter or digit"
        ))),
    }
}

/// The script in a file, or the one that a run was made of.
async fn source(lookup: &Lookup<'_>, from: &Path) -> Result<String, Failure> {
    let given = from.to_string_lossy();
    if from.exists() || is_file(&given) {
        return Ok(read_source(from, &lookup.settings.dir).await?.text);
    }
    let unknown = |failure: Failure| failure.hint(format!("there is no file '{given}' either"));
    let journal = catalog::open_existing(lookup.settings).await?;
    let catalog = Catalog::load(lookup.settings, journal.as_ref()).await?;
    let listed = catalog.find(&given).map_err(unknown)?;
    let summary = listed.program(&given)?;
    let Some(journal) = &journal else { return Err(Failure::failed("the journal has gone")) };
    let program = work::program(journal, &summary.run).await?;
    let source = program.spec().map(|spec| spec.source.clone());
    source.ok_or_else(|| Failure::failed(format!("{} was never begun, and holds no script", summary.run)))
}

/// The directory to save in. In a project the nearest one that is there, else a new one at its root.
fn folder(lookup: &Lookup<'_>, user: bool) -> Result<(PathBuf, Dir), Failure> {
    let wanted = if user { Origin::User } else { Origin::Project };
    let fits: Vec<&LibraryFolder> =
        lookup.folders.workflows.iter().filter(|folder| folder.origin == wanted).collect();
    let there = |folder: &&&LibraryFolder| !user && folder.dir.symlink_metadata().is_ok();
    let new = match user {
        true => fits.first().map(|folder| folder.dir.clone()),
        false => Some(lookup.folders.root.join(".convoke/workflows")),
    };
    let dir = fits.iter().find(there).map(|folder| folder.dir.clone()).or(new);
    let dir = dir.ok_or_else(|| Failure::usage("there is no place to save workflows in"))?;
    // A link in a project leads wherever the project likes; above their own directory a person's links are
    // their own business.
    let tree = if user { dir.parent().unwrap_or(&dir) } else { lookup.folders.root.as_path() };
    let opened = Dir::make_named(&dir, Some(tree), 0o777).map_err(|error| match error {
        Error::Link { .. } => {
            Failure::usage(format!("{} is a symbolic link, and nothing is saved through one", dir.display()))
                .hint("put the directory itself in its place, or save it with --user")
        }
        error => Failure::failed(format!("{} cannot be saved to: {}", dir.display(), error.reason())),
    })?;
    Ok((dir, opened))
}

/// What putting it there came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    New,
    Already,
    Replaced,
}

fn put(dir: &Dir, path: &Path, text: &str, force: bool) -> Result<Put, Failure> {
    let cannot =
        |error: Error| Failure::failed(format!("{} cannot be saved: {}", path.display(), error.reason()));
    let name = Path::new(path.file_name().unwrap_or(path.as_os_str()));
    match dir.kind(name).map_err(cannot)? {
        // A file that appears there meanwhile is not ours and is not replaced.
        None => return dir.create(name, text.as_bytes(), 0o666).map(|()| Put::New).map_err(cannot),
        Some(Kind::File) => {}
        Some(_) => {
            return Err(Failure::usage(format!("{} is no regular file and stays as it is", path.display())));
        }
    }
    if dir.read(name, Links::Refused, text.len() as u64).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(Put::Already);
    }
    if !force {
        return Err(Failure::usage(format!("{} is there already and says something else", path.display()))
            .hint("--force replaces it; `convoke workflow show NAME` shows it"));
    }
    dir.replace(name, text.as_bytes(), 0o666).map_err(cannot)?;
    Ok(Put::Replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_that_can_be_a_file() {
        for name in ["review", "nightly-2", "a.b_c", "9to5"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "-x", ".hidden", "a/b", "a b", "../x", "grün", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
