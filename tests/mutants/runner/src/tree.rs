//! A worker's copy of the tree, and its directory of builds.
//!
//! The build directories are apart although the copies hold the same crates: cargo names what it builds of a
//! workspace's members by their path from the workspace's root, so that in a shared directory the copies
//! would take each other's builds for their own. The crates from the registry are shared: they are linked
//! from each other's build directories and from that of the tree itself.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Tree {
    /// The copy.
    pub(crate) source: PathBuf,
    /// Where cargo builds it.
    pub(crate) build: PathBuf,
}

/// What git knows of the tree and what it would: files that are not committed count too, ignored ones do not.
pub(crate) fn files(root: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-co", "--exclude-standard", "-z"]).current_dir(root);
    let listed = git.output().map_err(|error| format!("git: {error}"))?;
    if !listed.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim()));
    }
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(names.split('\0').map(PathBuf::from).filter(|name| root.join(name).is_file()).collect())
}

impl Tree {
    /// Makes the copy in `place` equal to the files of the tree.
    pub(crate) fn prepare(place: &Path, root: &Path, files: &BTreeSet<PathBuf>) -> io::Result<Self> {
        let tree = Self { source: place.join("tree"), build: place.join("build") };
        for file in files {
            tree.copy(root, file)?;
        }
        remove_others(&tree.source, Path::new(""), files)?;
        Ok(tree)
    }

    /// Links what is built of the crates from the registry in another build directory, so that it is not
    /// built again.
    pub(crate) fn share(&self, built: &Path) -> io::Result<()> {
        if built == self.build {
            return Ok(());
        }
        link_registry_crates(&built.join("debug"), &self.build.join("debug"))
    }

    /// Only what differs is copied, and gets a new time stamp: cargo builds again what is newer than its last
    /// build, so that neither an interrupted run nor a mutant that was taken back is mistaken for something
    /// already built.
    fn copy(&self, root: &Path, file: &Path) -> io::Result<()> {
        let from = root.join(file);
        let to = self.source.join(file);
        let content = fs::read(&from)?;
        if fs::read(&to).is_ok_and(|present| present == content) {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&to, content)?;
        fs::set_permissions(&to, fs::metadata(&from)?.permissions())
    }
}

/// Removes what is in the copy and not in the tree.
fn remove_others(source: &Path, below: &Path, files: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(source.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(source, &name, files)?;
        } else if !files.contains(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The packages of this workspace begin so; every other one is from the registry.
const OURS: &str = "convoke";

/// Links what cargo built of the crates from the registry. Cargo never changes those files: a crate with
/// another version, feature or compiler has another name. What is missing here cargo builds by itself.
fn link_registry_crates(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(packages) = fs::read_dir(from.join(".fingerprint")) else { return Ok(()) };
    let mut libraries = BTreeSet::new();
    for package in packages {
        let package = package?;
        let name = package.file_name();
        if name.to_string_lossy().starts_with(OURS) {
            continue;
        }
        for file in fs::read_dir(package.path())? {
            let file = file?.file_name().to_string_lossy().into_owned();
            libraries.extend(file.strip_prefix("lib-").filter(|rest| !rest.contains('.')).map(str::to_owned));
        }
        link_all(&package.path(), &to.join(".fingerprint").join(&name))?;
        let built = from.join("build").join(&name);
        if built.is_dir() {
            link_all(&built, &to.join("build").join(&name))?;
        }
    }
    fs::create_dir_all(to.join("deps"))?;
    for file in fs::read_dir(from.join("deps"))? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let crate_name =
            name.rsplit_once('-').map_or("", |(stem, _)| stem.strip_prefix("lib").unwrap_or(stem));
        let is_program = !name.contains('.');
        if libraries.contains(crate_name) && !is_program {
            link(&file.path(), &to.join("deps").join(&name))?;
        }
    }
    Ok(())
}

fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() { link_all(&entry.path(), &to)? } else { link(&entry.path(), &to)? }
    }
    Ok(())
}

/// A build directory on another file system, where there are no links, gets copies.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => copy_with_its_time(from, to),
        Ok(()) => Ok(()),
    }
}

fn copy_with_its_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_copy_becomes_equal_and_what_is_equal_keeps_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let place = dir.path().join("place");
        let files = BTreeSet::from(["a/one.rs", "two.rs"].map(PathBuf::from));
        write(&root.join("a/one.rs"), "one");
        write(&root.join("two.rs"), "two");
        let tree = Tree::prepare(&place, &root, &files).unwrap();
        let modified = |name: &str| fs::metadata(tree.source.join(name)).unwrap().modified().unwrap();
        let one = modified("a/one.rs");
        let two = modified("two.rs");
        write(&tree.source.join("two.rs"), "left behind by an interrupted run");
        write(&tree.source.join("a/three.rs"), "not in the tree");
        Tree::prepare(&place, &root, &files).unwrap();
        assert_eq!(fs::read_to_string(tree.source.join("two.rs")).unwrap(), "two");
        assert!(!tree.source.join("a/three.rs").exists());
        assert_eq!(modified("a/one.rs"), one);
        assert!(modified("two.rs") > two);
    }

    #[test]
    fn only_crates_from_the_registry_are_linked() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        let to = dir.path().join("to");
        let present = [
            ".fingerprint/serde-1/lib-serde",
            ".fingerprint/serde-1/lib-serde.json",
            ".fingerprint/convoke-kernel-2/lib-convoke_kernel",
            "build/serde-1/out/made.rs",
            "deps/libserde-9.rlib",
            "deps/serde-9.d",
            "deps/serde-9",
            "deps/libconvoke_kernel-8.rlib",
            "deps/it-7",
        ];
        present.iter().for_each(|name| write(&from.join(name), name));
        link_registry_crates(&from, &to).unwrap();
        link_registry_crates(&from, &to).unwrap();
        let linked: Vec<&str> = present.into_iter().filter(|name| to.join(name).exists()).collect();
        let expected = [0, 1, 3, 4, 5].map(|index: usize| present[index]);
        assert_eq!(linked, expected);
    }
}
