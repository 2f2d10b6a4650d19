//! The text of a file that a person named. In the tree, which commands and strangers fill, it is no link out
//! of it and no pipe without another end; nothing goes on to a model because a link led there.

use std::io::{self, Read};
use std::path::Path;

use convoke_beneath::named_file;

/// The longest text that is read, from a file or from stdin. No model takes as much; what is longer is a
/// mistake, and is not read to its end, which it may not have.
pub(crate) const MOST_TEXT: u64 = 8 << 20;

/// What is said of a longer one.
pub(crate) const TOO_LONG: &str = "it has more than 8 MiB (8,388,608 bytes), the most that is read: keep \
    long text in files of the directory and have the agents read them";

/// Reads a file that a person named, with the tree that is worked in.
pub(crate) fn read_text(path: &Path, tree: &Path) -> io::Result<String> {
    // `/dev/stdin` and what a shell makes of `<(command)` are pipes of the person's, which no tree holds.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return text_of(std::fs::File::open(path)?);
    }
    let (file, _) = named_file(path, Some(tree))?;
    text_of(file)
}

/// The text that can be read here, up to the most that is read.
pub(crate) fn text_of(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(MOST_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_TEXT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_LONG));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_an_end_is_read_up_to_the_limit_and_no_further() {
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer.fill(b'x');
                self.0 += buffer.len() as u64;
                Ok(buffer.len())
            }
        }
        let mut endless = Endless(0);
        assert_eq!(text_of(&mut endless).unwrap_err().to_string(), TOO_LONG);
        assert!(endless.0 <= MOST_TEXT + 1, "{} bytes were read", endless.0);
        assert!(TOO_LONG.contains("8,388,608") && MOST_TEXT == 8_388_608);
        assert_eq!(read_text(Path::new("/dev/zero"), Path::new("/")).unwrap_err().to_string(), TOO_LONG);
        let most = usize::try_from(MOST_TEXT).unwrap();
        assert_eq!(text_of(&vec![b'x'; most][..]).unwrap().len(), most);
    }

    #[test]
    fn a_link_out_of_the_tree_and_a_pipe_in_it_are_not_read() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        let out = place.path().join("out");
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
