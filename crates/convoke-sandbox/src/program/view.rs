//! What a program's sight comes to: file rules that can be laid upon it. It looks at the machine and changes
//! nothing.
//!
//! Everything is opened by handle and without following a link, and the rules are of what was opened: a
//! command that puts a link in the place of a directory meanwhile takes something away from the program and
//! gives it nothing.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

use super::{Program, Unseen};
use crate::confine::{Grant, Marks, grants, look, unlinked};

/// The newest version of Landlock whose rights are known here. Older kernels hold what they know.
const KNOWN: ABI = ABI::V6;

/// Libraries, what the loader needs to find them, and chance.
const SYSTEM: [&str; 11] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/nix/store",
    "/gnu/store",
    "/sys/devices/system/cpu/online",
    "/dev/random",
    "/dev/urandom",
];

/// What can be written, and leads to no other process.
const NOTHING: &str = "/dev/null";

/// The rules of a program that sees what it was given, but nothing that commands do not see.
pub(super) fn ruleset(program: &Program, unseen: &Unseen) -> Result<OwnedFd, String> {
    let text = |error: RulesetError| format!("file rules cannot be made: {error}");
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(KNOWN)).map_err(text)?;
    let ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN)).map_err(text)?;
    let mut created = ruleset.scope(Scope::from_all(KNOWN)).and_then(Ruleset::create).map_err(text)?;
    let marks = marks(program, unseen);
    let named = |path: &Path| program.reads.iter().chain(&program.writes).any(|named| named == path);
    for (path, grant) in grants(&marks, &mut list) {
        match unlinked(&path) {
            Ok(handle) => created = allow(created, &handle, rights(grant)).map_err(text)?,
            // What has just gone, or never was there, needs no rule.
            Err(error) if error.kind() == io::ErrorKind::NotFound || !named(&path) => {}
            Err(error) => return Err(format!("{} cannot be opened without links: {error}", path.display())),
        }
    }
    for path in executed(&program.path) {
        let handle = unlinked(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        created = allow(created, &handle, AccessFs::Execute | AccessFs::ReadFile).map_err(text)?;
    }
    Option::<OwnedFd>::from(created).ok_or_else(|| "the kernel has no Landlock".to_owned())
}

/// What is said about single paths; the nearest above a path decides.
fn marks(program: &Program, unseen: &Unseen) -> Marks {
    let mut marks = Marks::new();
    let real = |paths: &[PathBuf]| paths.iter().map(|path| look(path).path).collect::<Vec<PathBuf>>();
    marks.extend(SYSTEM.map(|path| (look(Path::new(path)).path, Some(Grant::Read))));
    // A program that a person installed apart has its libraries beside it.
    let prefix = program.path.parent().filter(|dir| dir.ends_with("bin")).and_then(Path::parent);
    marks.extend(
        prefix
            .filter(|prefix| prefix.parent().is_some())
            .map(|prefix| (prefix.join("lib"), Some(Grant::Read))),
    );
    marks.insert(NOTHING.into(), Some(Grant::Write));
    marks.extend(real(&unseen.hidden).into_iter().map(|path| (path, None)));
    let inside = |path: &Path, around: &[PathBuf]| around.iter().any(|around| path.starts_with(around));
    let readable = real(&unseen.readable).into_iter().filter(|path| inside(path, &program.reads));
    marks.extend(readable.map(|path| (path, Some(Grant::Read))));
    // What is read within something that is written would be a hole in it, and then nothing could be made
    // there.
    let reads = program.reads.iter().filter(|path| !inside(path, &program.writes));
    marks.extend(reads.map(|path| (path.clone(), Some(Grant::Read))));
    marks.extend(program.writes.iter().map(|path| (path.clone(), Some(Grant::Write))));
    let needed: Vec<&PathBuf> = program.reads.iter().chain(&program.writes).collect();
    let masked = unseen.all_masked().map(|path| look(path).path);
    for mask in masked.filter(|mask| !needed.iter().any(|needed| needed.starts_with(mask))) {
        marks.retain(|path, _| !path.starts_with(&mask));
        marks.insert(mask, None);
    }
    marks
}

fn rights(grant: Grant) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    match grant {
        Grant::List => AccessFs::ReadDir.into(),
        Grant::Read => read,
        // Neither devices nor sockets nor pipes are made, and nothing that is written is ever executed.
        Grant::Write => {
            read | make_bitflags!(AccessFs::{
                WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSym | Refer | Truncate
            })
        }
    }
}

/// Rights of directories cannot be given to files.
fn allow(
    created: RulesetCreated,
    (handle, is_directory): &(OwnedFd, bool),
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let rights = if *is_directory { rights } else { rights & AccessFs::from_file(KNOWN) };
    created.add_rule(PathBeneath::new(handle.as_fd(), rights))
}

fn list(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    // A symbolic link is nothing by itself; where it leads has its own rule.
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| entry.path())
        .collect()
}

/// The program itself and what loads it, without links.
fn executed(program: &Path) -> Vec<PathBuf> {
    let loader = File::open(program).ok().and_then(|mut program| loader_of(&mut program));
    [Some(program.to_owned()), loader]
        .into_iter()
        .flatten()
        .map(|path| path.canonicalize().unwrap_or(path))
        .collect()
}

/// The program that the kernel starts to load another, as the other's ELF header names it. None for one that
/// needs no loader, and for what is no program, such as a script.
fn loader_of(program: &mut File) -> Option<PathBuf> {
    const NAMES_LOADER: u32 = 3;
    let mut head = [0; 64];
    program.read_exact(&mut head).ok()?;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    // 64 bit, least byte first, which are all machines that this is built for.
    if head[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let table = number(&head[32..40]);
    let size = number(&head[54..56]);
    let count = number(&head[56..58]);
    (0..count).find_map(|index| {
        let mut entry = [0; 56];
        program.read_exact_at(&mut entry, table.checked_add(index * size)?).ok()?;
        if number(&entry[..4]) != u64::from(NAMES_LOADER) {
            return None;
        }
        let mut name = vec![0; usize::try_from(number(&entry[32..40])).ok().filter(|length| *length < 4096)?];
        program.read_exact_at(&mut name, number(&entry[8..16])).ok()?;
        name.truncate(name.iter().position(|byte| *byte == 0)?);
        Some(PathBuf::from(std::ffi::OsString::from_vec(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_a_program_is_found_and_a_script_has_none() {
        let loader = loader_of(&mut File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(loader.is_absolute() && loader.exists(), "{}", loader.display());
        let mut script = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut script, &[b"#!/bin/sh\n".as_slice(), &[b' '; 80]].concat()).unwrap();
        io::Seek::rewind(&mut script).unwrap();
        assert_eq!(loader_of(&mut script), None);
    }

    fn marked(reads: &[&str], writes: &[&str], unseen: &Unseen) -> Vec<(PathBuf, Option<Grant>)> {
        let own = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let program =
            Program { reads: own(reads), writes: own(writes), ..Program::new(Path::new("/usr/bin/git")) };
        let marks = marks(&program, unseen);
        marks.into_iter().filter(|(path, _)| path.starts_with("/x")).collect()
    }

    #[test]
    fn hidden_places_are_holes_in_what_is_read_and_never_take_away_what_is_needed() {
        let own = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        let unseen = Unseen {
            hidden: own(&["/x/me", "/x/me/work/state"]),
            readable: own(&["/x/me/.tool", "/x/me/work/state/shown"]),
            masked: own(&["/x/me/work/.env", "/x"]),
            ..Unseen::default()
        };
        let marks = marked(&["/x/me/work"], &["/x/me/work/.git"], &unseen);
        let expected = [
            ("/x/me", None),
            ("/x/me/work", Some(Grant::Read)),
            ("/x/me/work/.env", None),
            ("/x/me/work/.git", Some(Grant::Write)),
            ("/x/me/work/state", None),
            ("/x/me/work/state/shown", Some(Grant::Read)),
        ];
        assert_eq!(marks, expected.map(|(path, mark)| (PathBuf::from(path), mark)));
    }
}
