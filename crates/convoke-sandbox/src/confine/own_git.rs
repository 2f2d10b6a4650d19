//! A git dir of the agent's own for a worktree of Convoke's: HEAD, index, branches and settings, with objects
//! of its own beside those of the repository, which it only reads. Commands can commit in it, and outside of
//! the sandbox no git is run on it and nothing in it is obeyed: what counts of an agent's work is the tree of
//! its worktree. It is made once, from files of the repository and without git, and lies in the private
//! directory.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind, Links};

use super::places::Places;
use crate::gitconfig;
use crate::policy::{Access, OwnGit, Policy};

/// The git dir, below the private directory.
const GIT: &str = "git";
/// What stands in the place of the worktree's `.git`, where there are mounts.
const POINTER: &str = "gitfile";
/// What stands before git on the `PATH`, where there are none.
pub(crate) const PROGRAMS: &str = "bin";

/// The largest file of a repository that is read, and the most refs.
const LARGEST: u64 = 64 << 20;
const REFS: usize = 50_000;

/// What the refs said when it was made, where commands cannot write.
const KNOWN: &str = "git-refs";

/// What stays of an agent whose commits are not all in its tree: they, and by what that is seen.
pub(crate) const KEPT: [&str; 2] = [GIT, KNOWN];

/// What `.git` says, for mounting upon that of the worktree.
pub(crate) fn pointer(git: &Path) -> PathBuf {
    git.with_file_name(POINTER)
}

/// The programs beside it, for the `PATH`.
pub(crate) fn programs(private: &Path) -> PathBuf {
    private.join(PROGRAMS)
}

/// Makes it, or finds it again, and says where it is: nowhere if the policy wants none, or if the repository
/// is not kept in files as they are known here. Then git reads the worktree's own metadata and cannot write.
pub(crate) fn make(policy: &Policy, places: &Places) -> Result<Option<PathBuf>, String> {
    let Some(own) = policy.own_git.as_ref().filter(|_| policy.access == Access::Workspace) else {
        return Ok(None);
    };
    let git = places.private.join(GIT);
    let failed =
        |error: io::Error| format!("a git dir for {} cannot be made: {error}", places.workspace.display());
    // Commands write in the directory and cannot exchange it, because what it lies in is closed to them.
    if git.join("HEAD").symlink_metadata().is_err() {
        let beside = places.private.join("git-new");
        for left in [&git, &beside] {
            remove(left).map_err(failed)?;
        }
        if !fill(&beside, own, places).map_err(failed)? {
            return Ok(None);
        }
        fs::rename(&beside, &git).map_err(failed)?;
    }
    let pointer = [b"gitdir: ", git.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(places.private.join(POINTER), pointer).map_err(failed)?;
    write_program(&git, places).map_err(failed)?;
    Ok(Some(git))
}

fn remove(at: &Path) -> io::Result<()> {
    match fs::remove_dir_all(at) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Fills a new git dir. False if the repository is another than is known here.
fn fill(at: &Path, own: &OwnGit, places: &Places) -> io::Result<bool> {
    let (Ok(admin), Ok(common)) = (Dir::open(&own.admin), Dir::open(&own.common)) else { return Ok(false) };
    let read = |dir: &Dir, name: &str| dir.read(Path::new(name), Links::Refused, LARGEST).ok();
    let Some(head) = read(&admin, "HEAD").and_then(|text| id(&text)) else { return Ok(false) };
    let objects = own.common.join("objects");
    if objects.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b'\n' | b'"' | b'#')) {
        return Ok(false);
    }
    let branch = Path::new("refs/heads").join(&own.branch);
    for dir in ["objects/info", "objects/pack", "refs/tags", "info"]
        .map(Path::new)
        .into_iter()
        .chain(branch.parent())
    {
        DirBuilder::new().recursive(true).mode(0o700).create(at.join(dir))?;
    }
    fs::write(at.join("HEAD"), format!("ref: refs/heads/{}\n", own.branch))?;
    fs::write(at.join(&branch), format!("{head}\n"))?;
    fs::write(at.join("objects/info/alternates"), [objects.as_os_str().as_bytes(), b"\n"].concat())?;
    let known = refs(&common);
    let packed = known.iter().flat_map(|(name, id)| [id.as_bytes(), b" ", name, b"\n"].concat());
    fs::write(at.join("packed-refs"), packed.collect::<Vec<u8>>())?;
    let known: Vec<&str> = known.values().map(String::as_str).chain([head.as_str()]).collect();
    fs::write(places.private.join(KNOWN), known.join("\n"))?;
    for name in ["info/exclude", "shallow"] {
        read(&common, name).map_or(Ok(()), |text| fs::write(at.join(name), text))?;
    }
    fs::write(at.join("config"), settings(&own.common, head.len() == 64, places))?;
    if let Ok((mut index, _)) = admin.file(Path::new("index"), Links::Refused) {
        let mut copy = File::create(at.join("index"))?;
        io::copy(&mut index, &mut copy)?;
        // By its time git tells whether what it remembers of a file can be trusted.
        copy.set_modified(index.metadata()?.modified()?)?;
    }
    Ok(true)
}

/// The git dir of an agent that has ended, if commits in it may be in no file of its worktree: it has a
/// stash, or branches or tags besides those that there were and the one that was checked out last. Files
/// alone are read, and nothing that they name.
pub(crate) fn with_more(private: &Path) -> Option<PathBuf> {
    let at = private.join(GIT);
    let git = Dir::open(&at).ok()?;
    let read = |name: &str| git.read(Path::new(name), Links::Refused, LARGEST).unwrap_or_default();
    let known = Dir::open(private).ok()?.read(Path::new(KNOWN), Links::Refused, LARGEST).ok()?;
    let mut known: Vec<String> = String::from_utf8_lossy(&known).lines().map(str::to_owned).collect();
    let now = refs(&git);
    let head = read("HEAD");
    known.extend(
        head.strip_prefix(b"ref: ").map_or_else(|| id(&head), |name| now.get(name.trim_ascii_end()).cloned()),
    );
    let stash = id(&read("refs/stash")).is_some();
    (stash || now.values().any(|id| !known.contains(id))).then_some(at)
}

/// The name of a commit, if that is all there is.
fn id(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim_end();
    (matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| text.to_owned())
}

/// Branches, tags and what is known of other repositories, as they are now; a file goes before a line of the
/// list.
fn refs(common: &Dir) -> BTreeMap<Vec<u8>, String> {
    const SHOWN: [&str; 3] = ["refs/heads", "refs/remotes", "refs/tags"];
    let mut found = BTreeMap::new();
    let packed = common.read(Path::new("packed-refs"), Links::Refused, LARGEST).unwrap_or_default();
    for line in packed.split(|byte| *byte == b'\n').take(REFS) {
        let Some(space) = line.iter().position(|byte| *byte == b' ') else { continue };
        let (Some(id), name) = (id(&line[..space]), &line[space + 1..]) else { continue };
        if SHOWN.iter().any(|shown| Path::new(std::ffi::OsStr::from_bytes(name)).starts_with(shown)) {
            found.insert(name.to_vec(), id);
        }
    }
    let mut open: Vec<PathBuf> = SHOWN.map(PathBuf::from).into();
    let mut looked = 0;
    while let Some(dir) = open.pop() {
        for entry in common.entries(&dir).into_iter().flatten() {
            looked += 1;
            let path = dir.join(&entry.name);
            match entry.kind {
                Kind::Directory if looked < REFS => open.push(path),
                Kind::File if looked < REFS => {
                    let id = common.read(&path, Links::Refused, 256).ok().and_then(|text| id(&text));
                    found.extend(id.map(|id| (path.as_os_str().as_bytes().to_vec(), id)));
                }
                _ => {}
            }
        }
    }
    found
}

/// Settings of the repository that say who commits and how git shows things; none that runs a program or
/// names another place.
fn settings(common: &Path, sha256: bool, places: &Places) -> Vec<u8> {
    let (version, extension) = if sha256 { (1, "[extensions]\n\tobjectFormat = sha256\n") } else { (0, "") };
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tlogAllRefUpdates = \
            true\n{extension}"
    )
    .into_bytes();
    let own = gitconfig::harmless(&common.join("config"));
    let person = places.home.as_deref().map(|home| gitconfig::reduced(home).unwrap_or_default());
    let named = |text: &[u8]| String::from_utf8_lossy(text).contains("[user]\n\tname = ");
    if person.is_some_and(|person| !named(&person) && !named(&own)) {
        // Without a name git refuses to commit and asks for one, and no person is there to answer.
        text.extend_from_slice(b"[user]\n\tname = \"convoke\"\n\temail = \"convoke@localhost\"\n");
    }
    text.extend_from_slice(&own);
    text
}

/// Where nothing can be mounted, a program before git on the `PATH` has it use this git dir, in the worktree
/// and nowhere else.
fn write_program(git: &Path, places: &Places) -> io::Result<()> {
    let programs = programs(&places.private);
    DirBuilder::new().recursive(true).mode(0o700).create(&programs)?;
    let word = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    let text = format!(
        "#!/bin/sh\n\
         # In the worktree of this agent git works on a git dir of the agent's own, elsewhere as ever.\n\
         top={} own={}\n\
         PATH=${{PATH#*:}}\n\
         if [ -z \"${{GIT_DIR+set}}\" ]; then\n\
         \tat=$(\n\
         \t\twhile [ $# -gt 0 ]; do\n\
         \t\t\tcase $1 in\n\
         \t\t\t-C) cd \"$2\" || exit; shift 2 ;;\n\
         \t\t\t-c) shift 2 ;;\n\
         \t\t\tinit | clone) exit ;;\n\
         \t\t\t-*) shift ;;\n\
         \t\t\t*) break ;;\n\
         \t\t\tesac\n\
         \t\tdone\n\
         \t\tgit rev-parse --show-toplevel 2>/dev/null\n\
         \t)\n\
         \tif [ \"$at\" = \"$top\" ]; then\n\
         \t\texport GIT_DIR=\"$own\" GIT_WORK_TREE=\"$top\"\n\
         \tfi\n\
         fi\n\
         exec git \"$@\"\n",
        word(&places.workspace),
        word(git)
    );
    let at = programs.join("git");
    fs::write(&at, text)?;
    fs::set_permissions(&at, fs::Permissions::from_mode(0o700))
}
