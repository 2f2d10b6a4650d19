//! Which new files were ignored until now. When an agent changes a `.gitignore`, files that had been there
//! all along come into view; they look like new ones of the agent's and are not.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use convoke_beneath::{Dir, Kind, Links};

use crate::error::Error;
use crate::git::failed;
use crate::keeper::Keeper;
use crate::tree::{Entry, LARGEST, TreeChange};

/// How many paths one command is asked about.
const AT_ONCE: usize = 2_000;

impl Keeper {
    /// Which of these paths, and of the directories above them, git ignores now.
    pub(crate) async fn ignored_now(&self, paths: &[&Path]) -> Result<Vec<PathBuf>, Error> {
        let doing = "asking which files are ignored";
        let store = self.store();
        let above = |path: &Path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>();
        let asked: BTreeSet<PathBuf> = paths.iter().flat_map(|path| above(path)).collect();
        let asked = asked.into_iter().filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>();
        let mut ignored = Vec::new();
        for some in asked.chunks(AT_ONCE) {
            let call = store.content(doing).work_tree(store.top()).index(&self.record().index())?;
            let call = call.args(["check-ignore", "--"]);
            let output = call.looked_up(some.iter().map(|path| store.prefix().join(path))).outcome().await?;
            if output.code > 1 {
                return Err(failed(doing, &output));
            }
            let names: BTreeSet<Vec<u8>> = output.stdout.split(|byte| *byte == b'\n').map(unquoted).collect();
            let asked = |path: &Path| Path::new(".").join(store.prefix()).join(path);
            let was = |path: &&PathBuf| names.contains(asked(path).as_os_str().as_bytes());
            ignored.extend(some.iter().filter(was).cloned());
        }
        Ok(ignored)
    }

    /// The added files among `changes` that the `.gitignore` files of the tree `old` had ignored.
    pub(crate) async fn ignored_before(
        &self,
        old: &str,
        changes: &[TreeChange],
    ) -> Result<Vec<PathBuf>, Error> {
        let is_rules = |path: &Path| path.file_name() == Some(OsStr::new(".gitignore"));
        if !changes.iter().any(|change| is_rules(&change.path) && change.old.is_some()) {
            return Ok(Vec::new());
        }
        let added = changes.iter().filter(|change| change.old.is_none()).map(|change| change.path.as_path());
        let added: Vec<&Path> = added.collect();
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let doing = "asking which files were ignored";
        let store = self.store();
        let listed = store.content(doing).args(["ls-tree", "-r", "-z", "--full-tree", old]).run().await?;
        let rules: Vec<(PathBuf, Entry)> = listed
            .split(|byte| *byte == 0)
            .filter_map(listed_entry)
            .filter(|(path, _)| is_rules(path))
            .collect();

        let scratch = self.record().scratch()?;
        let top = scratch.path().join("top");
        let below = top.join(store.prefix());
        fs::create_dir_all(&below).map_err(Error::file("making", &below))?;
        store.lay_out(&rules, &scratch.path().join("index"), &below).await?;
        // Rules above the directory cannot have been changed by the run, and are where they always were.
        let tree = Dir::open(store.top()).map_err(Error::opening("opening", store.top()))?;
        for above in store.prefix().ancestors().skip(1) {
            let rules = above.join(".gitignore");
            if tree.kind(&rules).is_ok_and(|found| found == Some(Kind::File)) {
                let bytes =
                    tree.read(&rules, Links::Refused, LARGEST).map_err(Error::opening("reading", &rules))?;
                let copy = top.join(&rules);
                fs::write(&copy, bytes).map_err(Error::file("writing", &copy))?;
            }
        }
        let mut ignored = Vec::new();
        for some in added.chunks(AT_ONCE) {
            let call =
                store.content(doing).work_tree_of_ours(&top).args(["check-ignore", "--no-index", "--"]);
            let output = call.looked_up(some.iter().map(|path| store.prefix().join(path))).outcome().await?;
            if output.code > 1 {
                return Err(failed(doing, &output));
            }
            let names: BTreeSet<Vec<u8>> = output.stdout.split(|byte| *byte == b'\n').map(unquoted).collect();
            let asked = |path: &Path| Path::new(".").join(store.prefix()).join(path);
            let was = |path: &&&Path| names.contains(asked(path).as_os_str().as_bytes());
            ignored.extend(some.iter().filter(was).map(|path| path.to_path_buf()));
        }
        Ok(ignored)
    }
}

/// Reads `MODE TYPE ID TAB PATH`.
fn listed_entry(line: &[u8]) -> Option<(PathBuf, Entry)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&line[..tab]).ok()?;
    let mut words = head.split(' ');
    let mode = words.next()?;
    let _kind = words.next()?;
    let id = words.next()?;
    let entry = Entry { mode: u32::from_str_radix(mode, 8).ok()?, id: id.to_owned() };
    Some((PathBuf::from(OsStr::from_bytes(&line[tab + 1..])), entry))
}

/// A name as it is, from how git quotes it where a line holds one name: `"a\tb\303\244"`.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let Some(inner) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else {
        return text.to_vec();
    };
    let mut name = Vec::new();
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'a') => name.push(7),
            Some(b'b') => name.push(8),
            Some(b't') => name.push(b'\t'),
            Some(b'n') => name.push(b'\n'),
            Some(b'v') => name.push(11),
            Some(b'f') => name.push(12),
            Some(b'r') => name.push(b'\r'),
            Some(digit @ b'0'..=b'7') => {
                // Git always writes three of them.
                let rest = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                let value = rest.iter().fold(digit & 7, |value, digit| (value << 3) | (digit & 7));
                name.push(value);
            }
            Some(other) => name.push(other),
            None => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[track_caller]
    fn check(text: &str, expected: &[u8]) {
        assert_eq!(unquoted(text.as_bytes()), expected);
    }

    #[test]
    fn quoted_names_are_read_as_git_writes_them() {
        check("plain name", b"plain name");
        check(r#""quote\"d \\ \t\n\r\a\b\v\f""#, b"quote\"d \\ \t\n\r\x07\x08\x0b\x0c");
        check(
            r#""\303\244\3777\0011""#,
            "\u{e4}".as_bytes().iter().copied().chain(*b"\xff7\x011").collect::<Vec<_>>().as_slice(),
        );
    }
}
