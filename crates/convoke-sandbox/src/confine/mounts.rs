//! Where else a directory can be seen: the same filesystem may be mounted twice, or a part of it somewhere
//! else. Pure: it reads the text in which the kernel lists its mounts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount: which filesystem, which directory of it, and where that appears.
pub(crate) struct Mounted {
    filesystem: Vec<u8>,
    root: PathBuf,
    at: PathBuf,
}

/// The mounts of this process.
pub(crate) fn listed() -> Vec<Mounted> {
    parse_all(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

fn parse_all(text: &[u8]) -> Vec<Mounted> {
    text.split(|byte| *byte == b'\n').filter_map(parse).collect()
}

/// The other paths under which a path without links, or something below it, is seen by this list of mounts.
pub(crate) fn seen_again(mounts: &[Mounted], path: &Path) -> Vec<PathBuf> {
    let mut again: Vec<PathBuf> = Vec::new();
    for (at, _) in views(mounts, path) {
        if !at.starts_with(path) && !again.contains(&at) {
            again.push(at);
        }
    }
    again
}

/// All paths under which a path without links, or something below it, is seen, each with what of it is seen
/// there, relative to it.
pub(crate) fn views(mounts: &[Mounted], path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let holds = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    // Of two at the same place the later one is on top.
    let Some(own) = holds.max_by_key(|mount| mount.at.components().count()) else { return Vec::new() };
    let Ok(rest) = path.strip_prefix(&own.at) else { return Vec::new() };
    let place = own.root.join(rest);
    let view = |mount: &Mounted| match place.strip_prefix(&mount.root) {
        Ok(rest) if rest.as_os_str().is_empty() => Some((mount.at.clone(), PathBuf::new())),
        Ok(rest) => Some((mount.at.join(rest), PathBuf::new())),
        Err(_) => mount.root.strip_prefix(&place).ok().map(|below| (mount.at.clone(), below.to_owned())),
    };
    mounts.iter().filter(|mount| mount.filesystem == own.filesystem).filter_map(view).collect()
}

/// Reads `ID PARENT MAJOR:MINOR ROOT AT …`.
fn parse(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let filesystem = fields.next()?;
    let root = fields.next()?;
    let at = fields.next()?;
    Some(Mounted { filesystem: filesystem.to_vec(), root: unescaped(root), at: unescaped(at) })
}

/// Spaces, tabs, line ends and backslashes are written as a backslash and three digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match digits {
            Some(digits) => {
                bytes.push(digits.iter().fold(0_u8, |value, digit| (value << 3) | (digit & 7)));
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_found_again_wherever_its_filesystem_or_a_part_of_it_is_mounted() {
        let check = |mounts: &[(&str, &str, &str)], path: &str, expected: &[&str]| {
            let line = |(filesystem, root, at): &(&str, &str, &str)| {
                format!("1 0 {filesystem} {root} {at} rw - ext4 x rw\n")
            };
            let listed: String = mounts.iter().map(line).collect();
            let found = seen_again(&parse_all(listed.as_bytes()), Path::new(path));
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{path}");
        };
        let root = ("8:1", "/", "/");
        check(&[root], "/home/me", &[]);
        check(&[root, ("8:1", "/home/me", "/mnt/me")], "/home/me", &["/mnt/me"]);
        check(&[root, ("8:1", "/", "/mnt/all")], "/home/me", &["/mnt/all/home/me"]);
        check(&[root, ("8:1", "/home", "/mnt/a\\040b")], "/home/me", &["/mnt/a b/me"]);
        check(&[root, ("8:1", "/home/me/.ssh", "/opt/keys")], "/home/me", &["/opt/keys"]);
        check(&[root, ("8:1", "/home/me/in", "/home/me/there")], "/home/me", &[]);
        check(&[root, ("8:2", "/", "/home"), ("8:2", "/me", "/srv/me")], "/home/me", &["/srv/me"]);
        check(&[root, ("8:2", "/", "/home"), ("8:1", "/home/me", "/srv/me")], "/home/me", &[]);
        check(&[root, ("8:1", "/homes", "/mnt"), ("8:9", "/home/me", "/x")], "/home/me", &[]);
        check(&[root, ("8:1", "/home/me", "/home/you")], "/home/you", &["/home/me"]);
    }
}
