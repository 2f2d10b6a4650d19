//! What is opened and written beneath a handle, and what is refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use convoke_beneath::{Dir, Error, Kind, Links, Place};

#[test]
fn a_link_on_the_way_and_at_the_end_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (tree, out) = (place.path().join("tree"), place.path().join("out"));
    fs::create_dir_all(tree.join("real")).unwrap();
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("key"), "secret").unwrap();
    fs::write(tree.join("real/key"), "open").unwrap();
    symlink(&out, tree.join("d")).unwrap();
    symlink("real/key", tree.join("inside")).unwrap();
    let dir = Dir::open(&tree).unwrap();
    let read = |path: &str, links| dir.read(Path::new(path), links, 100);
    assert_eq!(read("real/key", Links::Refused).unwrap(), b"open");
    assert!(matches!(read("d/key", Links::Refused), Err(Error::Link { .. })));
    assert!(matches!(read("d/key", Links::Inside), Err(Error::Outside { .. })));
    assert!(matches!(read("inside", Links::Refused), Err(Error::Link { .. })));
    assert_eq!(read("inside", Links::Inside).unwrap(), b"open");
    assert!(matches!(read("../out/key", Links::Inside), Err(Error::Outside { .. })));
    assert_eq!(dir.kind(Path::new("d")).unwrap(), Some(Kind::Link));
}

#[test]
fn a_link_that_waits_where_a_file_is_written_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (tree, victim) = (place.path().join("tree"), place.path().join("victim"));
    fs::create_dir(&tree).unwrap();
    fs::write(&victim, "kept").unwrap();
    let report = Place::find(&tree.join("r.md")).unwrap();
    symlink(&victim, tree.join("r.md")).unwrap();
    assert!(matches!(report.replace(b"new", 0o666), Err(Error::Link { .. })));
    fs::remove_file(tree.join("r.md")).unwrap();
    fs::rename(&tree, place.path().join("moved")).unwrap();
    symlink(place.path(), &tree).unwrap();
    report.replace(b"new", 0o666).unwrap();
    assert_eq!(fs::read(place.path().join("moved/r.md")).unwrap(), b"new");
    assert_eq!(fs::read(&victim).unwrap(), b"kept");
}
