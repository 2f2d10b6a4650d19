//! Trees: what lies below a directory, byte for byte, as one object of git's; and what is different between
//! two of them. It reads the work tree and never writes there.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Error as Opening, Kind, Links};

use crate::error::Error;
use crate::git::failed;
use crate::store::{ObjectId, Store};

/// The largest file that is kept.
pub(crate) const LARGEST: u64 = 100 << 20;
/// How often a tree that changes under our hands is read anew.
const TRIES: usize = 4;
/// How many bytes of paths one command is given; the system allows about two million for all arguments.
const ARGUMENTS: usize = 600_000;
/// From how many files on they are stored together.
const MANY: usize = 100;
/// The mode of a nested repository in a tree.
pub(crate) const GITLINK: u32 = 0o160_000;

/// A tree, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) tree: ObjectId,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Something below the directory that no tree holds, so that its changes cannot be shown or taken back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Where it is, as seen from the directory.
    pub path: PathBuf,
    /// Why it was left out.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

/// What a tree holds under one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Git's mode: `0o100644`, `0o100755`, `0o120000` for a link, [`GITLINK`].
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
}

/// One path in which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub(crate) path: PathBuf,
    pub(crate) old: Option<Entry>,
    pub(crate) new: Option<Entry>,
}

impl Store {
    /// Keeps what lies below the directory: tracked and untracked, not ignored files, as they lie on disk,
    /// with paths as seen from the directory. `index` is a file of ours that makes the next snapshot quick;
    /// paths for which `hidden` holds are left alone. Nested repositories are there as their commit alone.
    pub(crate) async fn snapshot(
        &self,
        index: &Path,
        hidden: impl Fn(&Path) -> bool,
    ) -> Result<Snapshot, Error> {
        self.check_links()?;
        let mut said = String::new();
        for _ in 0..TRIES {
            match self.snapshot_once(index, &hidden).await {
                Err(Error::Git { said: problem, .. }) if !is_lasting(&problem) => {
                    // Either a file changed while it was read, or objects that the index names were pruned.
                    said = problem;
                    remove_if_there(index)?;
                    remove_if_there(&with_suffix(index, ".lock"))?;
                    self.prime(index).await?;
                }
                other => return other,
            }
        }
        Err(Error::Restless { dir: self.dir().to_owned(), said })
    }

    /// Puts into the index what a look at the directory alone would not find: files that are tracked although
    /// they are ignored, and the commits of submodules. The repository's own index is read and left as it is.
    pub(crate) async fn prime(&self, index: &Path) -> Result<(), Error> {
        let Some(git_dir) = self.git_dir() else { return Ok(()) };
        let doing = "listing what is tracked";
        let own = || self.own(git_dir, doing).work_tree(self.top());
        let exclude = self.private().join("info/exclude");
        let ignored = own()
            .args(["ls-files", "-z", "-c", "-i", "--exclude-per-directory=.gitignore"])
            .arg("--exclude-from");
        let ignored = self.below(ignored.arg(exclude)).run().await?;
        let ignored: BTreeSet<&[u8]> =
            ignored.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        let files = ignored.into_iter().map(|name| Path::new(OsStr::from_bytes(name)));
        let known = Files::of(self)?;
        let files: Vec<&Path> = files.filter(|path| known.fate(path) == Fate::Kept).collect();
        self.stage(index, &files).await?;

        let staged = self.below(own().args(["ls-files", "-z", "-s"])).run().await?;
        let mut links: Vec<OsString> = Vec::new();
        for line in staged.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 ")) {
            let Some((head, path)) = split_at_byte(line, b'\t') else { continue };
            let there =
                self.top().join(OsStr::from_bytes(path)).symlink_metadata().is_ok_and(|found| found.is_dir());
            if let (true, Some(id)) = (there, head.split(|byte| *byte == b' ').nth(1)) {
                links.push(OsString::from_vec([b"160000,", id, b",", path].concat()));
            }
        }
        for some in links.chunks(1_000) {
            let call = self.content(doing).work_tree(self.top()).index(index)?.args([
                "update-index",
                "--add",
                "--replace",
            ]);
            call.args(some.iter().flat_map(|link| [OsStr::new("--cacheinfo"), link])).run().await?;
        }
        Ok(())
    }

    /// In which paths two trees (or commits) differ, in the order of their bytes.
    pub(crate) async fn diff_trees(&self, old: &str, new: &str) -> Result<Vec<TreeChange>, Error> {
        if old == new {
            return Ok(Vec::new());
        }
        let call =
            self.content("comparing two trees").args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]);
        let output = call.args(["--no-abbrev", "--end-of-options", old, new]).run().await?;
        parse_raw(&output).ok_or_else(|| Error::Unreadable { what: "git's list of changes".to_owned() })
    }

    async fn snapshot_once(&self, index: &Path, hidden: &impl Fn(&Path) -> bool) -> Result<Snapshot, Error> {
        let doing = "looking for changed files";
        let ours = || self.content(doing).work_tree(self.top()).index(index);
        let listed = ours()?.args(["ls-files", "-z", "-t", "-m", "-o", "-d", "--exclude-standard"]);
        let listed = self.below(listed).outcome().await?;
        if listed.code != 0 {
            return Err(failed(doing, &listed));
        }
        let names: BTreeSet<&[u8]> =
            listed.stdout.split(|byte| *byte == 0).filter_map(|line| line.get(2..)).collect();
        let mut staged = Vec::new();
        let mut removed = Vec::new();
        let mut out = unopened(&listed.stderr, self.prefix());
        let files = Files::of(self)?;
        for name in names {
            let path = Path::new(OsStr::from_bytes(name));
            let seen = path.strip_prefix(self.prefix()).unwrap_or(path);
            if hidden(seen) {
                continue;
            }
            match files.fate(path) {
                Fate::Kept => staged.push(path),
                Fate::Gone => removed.push(path),
                Fate::Special => {
                    removed.push(path);
                    out.push(LeftOut { path: seen.to_owned(), why: "no ordinary file".to_owned() });
                }
                Fate::Hidden(place) => {
                    let path = place.strip_prefix(self.dir()).unwrap_or(&place).to_owned();
                    let left_out = LeftOut { path, why: "hidden from commands, and so from git".to_owned() };
                    if !out.contains(&left_out) {
                        out.push(left_out);
                    }
                }
                Fate::LeftOut(why) => out.push(LeftOut { path: seen.to_owned(), why: why.to_owned() }),
            }
        }
        // Removals go first: a file may be new where a directory was.
        self.update_index(index, &["--force-remove"], &removed).await?;
        self.stage(index, &staged).await?;
        Ok(Snapshot { tree: self.write_tree(index).await?, left_out: out })
    }

    /// Brings the index in line with the files at these paths, whether they are there or not.
    async fn stage(&self, index: &Path, paths: &[&Path]) -> Result<(), Error> {
        self.update_index(index, &["--add", "--remove", "--replace"], paths).await
    }

    /// Takes paths, as seen from the directory, out of the index.
    pub(crate) async fn forget_paths(&self, index: &Path, paths: &[PathBuf]) -> Result<ObjectId, Error> {
        let full: Vec<PathBuf> = paths.iter().map(|path| self.prefix().join(path)).collect();
        let full: Vec<&Path> = full.iter().map(PathBuf::as_path).collect();
        self.update_index(index, &["--force-remove"], &full).await?;
        self.write_tree(index).await
    }

    /// Has an index hold what a tree had before these changes, and returns the tree that it is then.
    pub(crate) async fn put_back(&self, index: &Path, changes: &[TreeChange]) -> Result<ObjectId, Error> {
        let full = |change: &TreeChange| self.prefix().join(&change.path);
        let added: Vec<PathBuf> = changes.iter().filter(|change| change.old.is_none()).map(full).collect();
        let added: Vec<&Path> = added.iter().map(PathBuf::as_path).collect();
        // Removals go first: a file may come back where a directory was.
        self.update_index(index, &["--force-remove"], &added).await?;
        let old: Vec<(PathBuf, &Entry)> =
            changes.iter().filter_map(|change| Some((full(change), change.old.as_ref()?))).collect();
        let old: Vec<(&Path, &Entry)> = old.iter().map(|(path, entry)| (path.as_path(), *entry)).collect();
        self.fill_index(index, &old).await?;
        self.write_tree(index).await
    }

    async fn update_index(&self, index: &Path, options: &[&str], paths: &[&Path]) -> Result<(), Error> {
        let mut rest = paths;
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take_while(|path| {
                size += path.as_os_str().len() + 16;
                size <= ARGUMENTS
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            let mut call = self.content("storing changed files").work_tree(self.top()).index(index)?;
            if now.len() >= MANY {
                // Git puts large files into one pack as it reads them; a file of its own for each takes ten
                // times as long.
                call = call.setting("core.bigFileThreshold=1");
            }
            call.arg("update-index").args(options).arg("--").args(now).run().await?;
            rest = later;
        }
        Ok(())
    }

    pub(crate) async fn write_tree(&self, index: &Path) -> Result<ObjectId, Error> {
        let doing = "keeping the tree";
        let mut call = self.content(doing).work_tree(self.top()).index(index)?.arg("write-tree");
        if !self.prefix().as_os_str().is_empty() {
            let mut option = OsString::from("--prefix=");
            option.push(self.prefix());
            option.push("/");
            call = call.arg(option);
        }
        let output = call.outcome().await?;
        if output.code == 0 {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let failure = failed(doing, &output);
        if matches!(&failure, Error::Git { said, .. } if said.contains("prefix") && said.ends_with("not \
            found"))
        {
            return self.content(doing).args(["hash-object", "-t", "tree", "-w", "/dev/null"]).line().await;
        }
        Err(failure)
    }

    /// Limits a command to the directory.
    fn below(&self, call: crate::git::Call) -> crate::git::Call {
        if self.prefix().as_os_str().is_empty() {
            return call;
        }
        // Without the slash git would begin at the top, into which it does not see.
        let mut below = self.prefix().as_os_str().to_owned();
        below.push("/");
        call.arg("--").arg(below)
    }
}

/// What is done about one listed path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Kept,
    Gone,
    /// A device, a pipe or a socket.
    Special,
    /// What is known of it stays what it was.
    LeftOut(&'static str),
    /// It lies in this place, which commands do not see.
    Hidden(PathBuf),
}

/// The files of a work tree, looked at beneath its handle.
struct Files {
    top: Dir,
    path: PathBuf,
    /// What commands do not see, and git neither.
    hidden: Vec<PathBuf>,
}

impl Files {
    fn of(store: &Store) -> Result<Self, Error> {
        let top = Dir::open_real(store.top()).map_err(Error::opening("opening", store.top()))?;
        Ok(Self { top, path: store.top().to_owned(), hidden: store.hidden() })
    }

    fn fate(&self, path: &Path) -> Fate {
        if path.iter().any(|name| name.eq_ignore_ascii_case(".git")) {
            return Fate::LeftOut("git keeps nothing of this name");
        }
        let place = self.path.join(path);
        if let Some(hidden) = self.hidden.iter().find(|hidden| place.starts_with(hidden)) {
            return Fate::Hidden(hidden.clone());
        }
        let found = match self.top.look(path) {
            Ok(found) => found,
            // What lies beyond a link is no part of the tree.
            Err(error) if error.is_missing() || matches!(error, Opening::Link { .. }) => return Fate::Gone,
            Err(_) => return Fate::LeftOut("it cannot be looked at"),
        };
        match Kind::of(&found) {
            Kind::Directory => {
                // A file that has become a directory is listed too; what is in it is listed by itself.
                let nested = self.top.look(&path.join(".git")).is_ok();
                if nested { Fate::LeftOut("a repository of its own") } else { Fate::Gone }
            }
            Kind::File if u64::try_from(found.st_size).is_ok_and(|size| size > LARGEST) => {
                Fate::LeftOut("larger than 100 MiB")
            }
            Kind::File => match self.top.file(path, Links::Refused) {
                Err(error) if !error.is_missing() => Fate::LeftOut("it cannot be read"),
                _ => Fate::Kept,
            },
            Kind::Link => Fate::Kept,
            Kind::Fifo | Kind::Socket | Kind::Device => Fate::Special,
        }
    }
}

/// Directories that git could not look into, by its own words.
fn unopened(said: &[u8], prefix: &Path) -> Vec<LeftOut> {
    let said = String::from_utf8_lossy(said);
    let names = said
        .lines()
        .filter_map(|line| line.strip_prefix("warning: could not open directory '")?.split_once("': "));
    let names = names.map(|(name, _)| Path::new(name.trim_end_matches('/')));
    let seen = names.map(|name| name.strip_prefix(prefix).unwrap_or(name).to_owned());
    seen.map(|path| LeftOut { path, why: "it cannot be looked into".to_owned() }).collect()
}

/// Whether trying again cannot help.
fn is_lasting(said: &str) -> bool {
    ["insufficient permission", "No space left", "Read-only file system", "quota"]
        .iter()
        .any(|text| said.contains(text))
}

/// Copies an index with its time, by which git tells whether what it remembers of a file can be trusted.
pub(crate) fn copy_index(from: &Path, to: &Path) -> Result<(), Error> {
    let copied = (|| {
        let mut source = File::open(from)?;
        let modified = source.metadata()?.modified()?;
        let beside = crate::store::unused(to);
        let mut target = File::create(&beside)?;
        std::io::copy(&mut source, &mut target)?;
        target.set_modified(modified)?;
        fs::rename(&beside, to)
    })();
    match copied {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(Error::file("copying the index to", to)),
    }
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file("removing", path)(error)),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn split_at_byte(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}

/// Reads `:MODE MODE ID ID STATUS NUL PATH NUL …`.
fn parse_raw(output: &[u8]) -> Option<Vec<TreeChange>> {
    let mut parts = output.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(head) = parts.next().filter(|head| !head.is_empty()) {
        changes.push(parse_raw_change(head, PathBuf::from(OsStr::from_bytes(parts.next()?)))?);
    }
    Some(changes)
}

/// Reads `:MODE MODE ID ID STATUS`, which stands before a path.
pub(crate) fn parse_raw_change(head: &[u8], path: PathBuf) -> Option<TreeChange> {
    let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
    let [old_mode, new_mode, old_id, new_id, _status] =
        head.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let entry = |mode: &str, id: &str| {
        let mode = u32::from_str_radix(mode, 8).ok()?;
        Some((mode != 0).then(|| Entry { mode, id: id.to_owned() }))
    };
    Some(TreeChange { path, old: entry(old_mode, old_id)?, new: entry(new_mode, new_id)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_changes_are_read_with_any_name() {
        let id = |digit: &str| digit.repeat(40);
        let text = format!(
            ":100644 100755 {a} {b} M\0a b\n\"c\0:000000 120000 {z} {a} A\0new\0:100644 000000 {a} {z} \
                D\0old\0",
            a = id("a"),
            b = id("b"),
            z = id("0")
        );
        let entry = |mode, digit| Some(Entry { mode, id: id(digit) });
        let expected = vec![
            TreeChange { path: "a b\n\"c".into(), old: entry(0o100_644, "a"), new: entry(0o100_755, "b") },
            TreeChange { path: "new".into(), old: None, new: entry(0o120_000, "a") },
            TreeChange { path: "old".into(), old: entry(0o100_644, "a"), new: None },
        ];
        assert_eq!(parse_raw(text.as_bytes()), Some(expected));
    }

    #[test]
    fn raw_changes_that_are_cut_off_are_refused() {
        for text in ["nonsense", ":100644 100644 a b M", ":100644 x a b M\0p\0"] {
            assert_eq!(parse_raw(text.as_bytes()), None, "{text}");
        }
    }
}
