//! Looking and reading.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use convoke_beneath::{Dir, Entry, Error, Kind, Links, named_file, read_whole};

use super::{mkfifo, setting};

#[test]
fn a_link_on_the_way_and_at_the_end_is_refused() {
    let at = setting();
    symlink(&at.out, at.tree.join("d")).unwrap();
    symlink("real/key", at.tree.join("inside")).unwrap();
    symlink("../out/key", at.tree.join("up")).unwrap();
    symlink("circle", at.tree.join("circle")).unwrap();
    let read = |path: &str, links| at.dir.read(Path::new(path), links, 100);
    assert_eq!(read("real/key", Links::Refused).unwrap(), b"open");
    assert!(matches!(read("d/key", Links::Refused), Err(Error::Link { .. })));
    assert!(matches!(read("d/key", Links::Inside), Err(Error::Outside { .. })));
    assert!(matches!(read("up", Links::Inside), Err(Error::Outside { .. })));
    assert!(matches!(read("circle", Links::Inside), Err(Error::Link { .. })));
    assert!(matches!(read("inside", Links::Refused), Err(Error::Link { .. })));
    assert_eq!(read("inside", Links::Inside).unwrap(), b"open");
    assert_eq!(at.dir.kind(Path::new("d")).unwrap(), Some(Kind::Link));
    assert_eq!(at.dir.link_target(Path::new("up")).unwrap(), Path::new("../out/key"));
    assert!(matches!(at.dir.dir(Path::new("d")), Err(Error::Link { .. })));
    assert!(matches!(at.dir.entries(Path::new("d")), Err(Error::Link { .. })));
    assert!(matches!(at.dir.look(Path::new("d/key")), Err(Error::Link { .. })));
}

#[test]
fn no_path_leads_out_of_the_directory() {
    let at = setting();
    for path in ["../out/key", "real/../../out/key", "real/../real/key", "/etc/hostname", ".."] {
        for links in [Links::Refused, Links::Inside] {
            let refused = at.dir.read(Path::new(path), links, 100);
            assert!(matches!(refused, Err(Error::Outside { .. })), "{path}: {refused:?}");
        }
        assert!(matches!(at.dir.look(Path::new(path)), Err(Error::Outside { .. })), "{path}");
        assert!(matches!(at.dir.create(Path::new(path), b"x", 0o600), Err(Error::Outside { .. })), "{path}");
        assert!(matches!(at.dir.make_dirs(Path::new(path), 0o700), Err(Error::Outside { .. })), "{path}");
        assert!(matches!(at.dir.remove_tree(Path::new(path)), Err(Error::Outside { .. })), "{path}");
    }
    assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
}

#[test]
fn neither_a_pipe_nor_a_socket_nor_a_device_is_opened() {
    let at = setting();
    mkfifo(&at.tree.join("pipe"));
    let _listener = UnixListener::bind(at.tree.join("socket")).unwrap();
    symlink("pipe", at.tree.join("to_pipe")).unwrap();
    // No other end will ever come: a read that opened it would wait for ever or find it empty.
    for (name, kind) in [("pipe", Kind::Fifo), ("socket", Kind::Socket), ("real", Kind::Directory)] {
        let refused = at.dir.read(Path::new(name), Links::Refused, 100);
        assert!(matches!(refused, Err(Error::Kind { found, wanted: "file", .. }) if found == kind), "{name}");
        assert_eq!(at.dir.kind(Path::new(name)).unwrap(), Some(kind));
        let refused = at.dir.replace(Path::new(name), b"x", 0o600);
        assert!(matches!(refused, Err(Error::Kind { found, .. }) if found == kind), "{name}: {refused:?}");
    }
    assert!(matches!(at.dir.read(Path::new("to_pipe"), Links::Inside, 9), Err(Error::Kind { .. })));
    let refused = at.dir.dir(Path::new("pipe")).unwrap_err();
    assert!(matches!(refused, Error::Kind { found: Kind::Fifo, wanted: "directory", .. }), "{refused}");
    let devices = Dir::open(Path::new("/dev")).unwrap();
    let refused = devices.read(Path::new("zero"), Links::Refused, 100);
    assert!(matches!(refused, Err(Error::Kind { found: Kind::Device, .. })), "{refused:?}");
}

#[test]
fn a_file_is_read_whole_or_refused_for_its_size() {
    let at = setting();
    let large = vec![7; (3 << 20) + 1];
    fs::write(at.tree.join("large"), &large).unwrap();
    let path = Path::new("large");
    assert_eq!(at.dir.read(path, Links::Refused, large.len() as u64).unwrap(), large);
    let refused = at.dir.read(path, Links::Refused, large.len() as u64 - 1).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { most, .. } if most == 3 << 20), "{refused}");
    let (mut file, stat) = at.dir.file(path, Links::Refused).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), stat.st_size as usize), (large.len(), large.len()));
}

#[test]
fn names_that_are_no_text_are_names_like_others() {
    let at = setting();
    let name = Path::new(OsStr::from_bytes(b"a\xff\n\x01"));
    at.dir.create(name, b"odd", 0o600).unwrap();
    assert_eq!(at.dir.read(name, Links::Refused, 9).unwrap(), b"odd");
    let listed = at.dir.entries(Path::new("")).unwrap();
    let expected = [
        Entry { name: name.as_os_str().to_owned(), kind: Kind::File },
        Entry { name: "real".into(), kind: Kind::Directory },
    ];
    assert_eq!(listed, expected);
}

#[test]
fn what_is_missing_is_told_from_what_is_refused() {
    let at = setting();
    symlink("nothing", at.tree.join("dangling")).unwrap();
    for path in ["no", "no/such", "real/key/below"] {
        assert!(at.dir.read(Path::new(path), Links::Refused, 9).unwrap_err().is_missing(), "{path}");
        assert_eq!(at.dir.kind(Path::new(path)).unwrap(), None, "{path}");
    }
    assert!(at.dir.read(Path::new("dangling"), Links::Inside, 9).unwrap_err().is_missing());
    assert!(!at.dir.read(Path::new("dangling"), Links::Refused, 9).unwrap_err().is_missing());
    assert!(at.dir.create(Path::new("real"), b"", 0o600).unwrap_err().is_taken());
    let told = at.dir.look(Path::new("no")).unwrap_err();
    assert!(told.to_string().starts_with("no: No such file"), "{told}");
    assert_eq!(std::io::Error::from(told).kind(), std::io::ErrorKind::NotFound);
    let told = std::io::Error::from(at.dir.look(Path::new("dangling/x")).unwrap_err());
    assert_eq!(told.to_string(), "a symbolic link stands there or on the way, and links are not followed");
}

#[test]
fn a_recorded_path_with_a_link_in_it_is_not_opened() {
    let at = setting();
    symlink(&at.tree, at.out.join("to_tree")).unwrap();
    assert!(Dir::open_real(&at.tree.join("real")).is_ok());
    assert!(matches!(Dir::open_real(&at.out.join("to_tree/real")), Err(Error::Link { .. })));
    assert!(matches!(Dir::open_real(Path::new("relative")), Err(Error::Outside { .. })));
    assert!(Dir::open(&at.out.join("to_tree/real")).is_ok());
}

#[test]
fn a_handle_stays_with_its_directory_wherever_that_is_moved() {
    let at = setting();
    fs::rename(&at.tree, at.out.join("moved")).unwrap();
    symlink(&at.out, &at.tree).unwrap();
    assert_eq!(at.dir.read(Path::new("real/key"), Links::Refused, 9).unwrap(), b"open");
    assert!(at.dir.read(Path::new("key"), Links::Refused, 9).unwrap_err().is_missing());
}

#[test]
fn a_file_that_a_person_named_is_read_through_links_of_theirs_but_not_out_of_the_tree() {
    let at = setting();
    symlink(at.out.join("key"), at.tree.join("planted")).unwrap();
    symlink(&at.out, at.tree.join("dir")).unwrap();
    symlink("real/key", at.tree.join("inside")).unwrap();
    symlink("key", at.out.join("mine")).unwrap();
    symlink(&at.tree, at.out.join("to_tree")).unwrap();
    mkfifo(&at.tree.join("pipe"));
    mkfifo(&at.out.join("pipe"));
    let read = |path: &Path, tree| named_file(path, tree).and_then(|(file, _)| read_whole(file, path, 99));
    let tree = Some(at.tree.as_path());
    assert_eq!(read(&at.tree.join("inside"), tree).unwrap(), b"open");
    assert_eq!(read(&at.out.join("mine"), tree).unwrap(), b"secret");
    assert_eq!(read(&at.tree.join("planted"), None).unwrap(), b"secret");
    for dir in [&at.tree, &at.out.join("to_tree")] {
        for name in ["planted", "dir/key"] {
            assert!(matches!(read(&dir.join(name), tree), Err(Error::Outside { .. })), "{name}");
        }
    }
    for (pipe, tree) in
        [(at.tree.join("pipe"), tree), (at.out.join("pipe"), tree), (at.tree.join("pipe"), None)]
    {
        assert!(matches!(read(&pipe, tree), Err(Error::Kind { found: Kind::Fifo, .. })));
    }
}
