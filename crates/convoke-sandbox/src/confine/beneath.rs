//! Changes below a directory that commands could write until a moment ago: no link they left there is ever
//! followed. No command writes there now, because the shell that could has ended and the next has not begun.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Removes what stands at a path below a directory, unless a link lies on the way.
pub(crate) fn remove(directory: &Path, rest: &Path) -> io::Result<()> {
    let Some(at) = follow(directory, rest)? else { return Ok(()) };
    match at.symlink_metadata() {
        _ if at == directory => Ok(()),
        Ok(about) if about.is_dir() => std::fs::remove_dir_all(at),
        Ok(_) => std::fs::remove_file(at),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a link at a path below a directory, unless something is there already or a link lies on the way.
pub(crate) fn link(directory: &Path, rest: &Path, to: &Path) -> io::Result<()> {
    let Some(at) = follow(directory, rest)? else { return Ok(()) };
    if at.symlink_metadata().is_ok() {
        return Ok(());
    }
    at.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::os::unix::fs::symlink(to, at)
}

/// Makes a file in a directory, unless something is there already.
pub(crate) fn put(directory: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let made = File::options().write(true).create_new(true).open(directory.join(name));
    match made {
        Ok(mut file) => file.write_all(text),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes away everything on the way to a path below a directory, itself included, that is a link.
pub(crate) fn clear(directory: &Path, rest: &Path) -> io::Result<()> {
    let mut at = directory.to_owned();
    for part in rest.components() {
        at.push(part);
        match at.symlink_metadata() {
            Ok(about) if about.is_symlink() => return std::fs::remove_file(at),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The whole path, unless a directory on the way is a link.
fn follow(directory: &Path, rest: &Path) -> io::Result<Option<PathBuf>> {
    let mut at = directory.to_owned();
    let mut parts = rest.components().peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        match at.symlink_metadata() {
            Ok(about) if about.is_symlink() && parts.peek().is_some() => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_on_the_way_are_never_followed() {
        let dir = tempfile::TempDir::new().unwrap();
        let inside = dir.path().join("in");
        let outside = dir.path().join("out");
        std::fs::create_dir_all(inside.join("plain/deep")).unwrap();
        std::fs::create_dir_all(outside.join("deep")).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("way")).unwrap();
        remove(&inside, Path::new("way/deep")).unwrap();
        link(&inside, Path::new("way/new"), Path::new("/x")).unwrap();
        assert!(outside.join("deep").exists() && outside.join("new").symlink_metadata().is_err());
        clear(&inside, Path::new("way/deep")).unwrap();
        assert!(inside.join("way").symlink_metadata().is_err() && outside.join("deep").exists());
        remove(&inside, Path::new("plain/deep")).unwrap();
        link(&inside, Path::new("plain/a/b"), Path::new("/x")).unwrap();
        assert!(!inside.join("plain/deep").exists() && inside.join("plain/a/b").is_symlink());
    }
}
