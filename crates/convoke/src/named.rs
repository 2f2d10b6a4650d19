//! The text of a file that a person named. In the tree, which commands and strangers fill, it is no link out of it and no pipe without
//! another end; nothing goes on to a model because a link led there.

use std::io;
use std::path::Path;

use convoke_beneath::{named_file, read_whole};

/// More than any text that a person hands over.
const MOST: u64 = 64 << 20;

/// Reads a file that a person named, with the tree that is worked in.
pub(crate) fn read_text(path: &Path, tree: &Path) -> io::Result<String> {
    // `/dev/stdin` and what a shell makes of `<(command)` are pipes of the person's, which no tree holds.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return std::fs::read_to_string(path);
    }
    let bytes = named_file(path, Some(tree)).and_then(|(file, _)| read_whole(file, path, MOST))?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_out_of_the_tree_and_a_pipe_in_it_are_not_read() {
        let place = tempfile::tempdir().unwrap();
        let (tree, out) = (place.path().join("tree"), place.path().join("out"));
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(&out, "secret").unwrap();
        std::fs::write(tree.join("notes"), "said").unwrap();
        std::os::unix::fs::symlink(&out, tree.join("planted")).unwrap();
        std::os::unix::fs::symlink("notes", tree.join("inside")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(tree.join("pipe")).status().unwrap().success());
        let read = |name: &str| read_text(&tree.join(name), &tree).map_err(|error| error.to_string());
        assert_eq!(read("notes").unwrap(), "said");
        assert_eq!(read("inside").unwrap(), "said");
        assert_eq!(read("planted").unwrap_err(), "it leads out of the directory");
        assert!(read("pipe").unwrap_err().starts_with("a named pipe stands there"));
        assert_eq!(read_text(&out, &tree).unwrap(), "secret");
        assert_eq!(read_text(Path::new("/dev/null"), &tree).unwrap(), "");
    }
}
