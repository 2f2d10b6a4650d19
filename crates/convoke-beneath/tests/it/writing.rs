//! Writing: beside the place, then renamed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use convoke_beneath::{Dir, Error, WriteTarget};

use super::{mkfifo, names, setting};

#[test]
fn a_link_that_waits_where_a_file_is_written_is_not_followed() {
    let at = setting();
    let report = WriteTarget::find(&at.tree.join("r.md"), None).unwrap();
    symlink(at.out.join("key"), at.tree.join("r.md")).unwrap();
    assert!(matches!(report.replace(b"new", 0o666), Err(Error::Link { .. })));
    assert!(report.create(b"new", 0o666).unwrap_err().is_taken());
    fs::remove_file(at.tree.join("r.md")).unwrap();
    mkfifo(&at.tree.join("r.md"));
    assert!(matches!(report.replace(b"new", 0o666), Err(Error::Kind { .. })));
    assert_eq!(names(&at.tree), ["r.md", "real"], "nothing is left beside it");
    assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
}

#[test]
fn a_place_stays_in_its_directory_when_its_path_leads_elsewhere() {
    let at = setting();
    let report = WriteTarget::find(&at.tree.join("key"), None).unwrap();
    let moved = at.tree.with_file_name("moved");
    fs::rename(&at.tree, &moved).unwrap();
    symlink(&at.out, &at.tree).unwrap();
    report.check_writable().unwrap();
    report.replace(b"new", 0o666).unwrap();
    assert_eq!(fs::read(moved.join("key")).unwrap(), b"new");
    assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
    fs::remove_dir_all(&moved).unwrap();
    assert!(report.replace(b"new", 0o666).unwrap_err().is_missing(), "a directory that is gone is told");
}

#[test]
fn links_of_the_person_are_followed_and_links_of_the_tree_are_not() {
    let at = setting();
    symlink(&at.out, at.tree.join("planted")).unwrap();
    symlink("real", at.tree.join("own")).unwrap();
    symlink(&at.tree, at.out.join("mine")).unwrap();
    let find = |path: &Path| WriteTarget::find(path, Some(&at.tree));
    for path in ["planted/r.md", "own/r.md", "real/../own/r.md"] {
        assert!(matches!(find(&at.tree.join(path)), Err(Error::Link { .. })), "{path}");
        assert!(
            matches!(find(&at.out.join("mine").join(path)), Err(Error::Link { .. })),
            "through a link: {path}"
        );
    }
    find(&at.out.join("mine/real/r.md")).unwrap().create(b"1", 0o600).unwrap();
    find(&at.tree.join("own/../real/../../out/r.md")).unwrap().create(b"2", 0o600).unwrap();
    assert_eq!(fs::read(at.tree.join("real/r.md")).unwrap(), b"1");
    assert_eq!(fs::read(at.out.join("r.md")).unwrap(), b"2");
    symlink(at.out.join("key"), at.out.join("r.json")).unwrap();
    assert!(matches!(find(&at.out.join("r.json")), Err(Error::Link { .. })), "a link at the end");
    assert!(find(&at.tree.join("no/r.md")).unwrap_err().is_missing());
    assert!(matches!(find(&at.tree.join("real")), Err(Error::Kind { .. })));
    assert!(matches!(find(Path::new("/")), Err(Error::Outside { .. })));
}

#[test]
fn a_file_keeps_its_permissions_and_a_new_one_gets_those_asked_for() {
    let at = setting();
    let mode = |name: &str| fs::metadata(at.tree.join(name)).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(at.tree.join("real/key"), fs::Permissions::from_mode(0o640)).unwrap();
    at.dir.replace(Path::new("real/key"), b"new", 0o600).unwrap();
    at.dir.replace(Path::new("real/new"), b"new", 0o600).unwrap();
    at.dir.create(Path::new("real/other"), b"new", 0o400).unwrap();
    assert_eq!((mode("real/key"), mode("real/new"), mode("real/other")), (0o640, 0o600, 0o400));
    assert_eq!(names(&at.tree.join("real")), ["key", "new", "other"]);
}

#[test]
fn another_name_of_a_replaced_file_keeps_the_old_content() {
    let at = setting();
    fs::hard_link(at.tree.join("real/key"), at.out.join("shared")).unwrap();
    at.dir.replace(Path::new("real/key"), b"new", 0o600).unwrap();
    assert_eq!(fs::read(at.out.join("shared")).unwrap(), b"open");
    assert_eq!(fs::metadata(at.tree.join("real/key")).unwrap().nlink(), 1);
}

#[test]
fn what_stands_there_is_not_replaced_by_a_new_file() {
    let at = setting();
    assert!(at.dir.create(Path::new("real/key"), b"new", 0o600).unwrap_err().is_taken());
    assert_eq!(fs::read(at.tree.join("real/key")).unwrap(), b"open");
    assert_eq!(names(&at.tree.join("real")), ["key"]);
}

#[test]
fn a_put_file_takes_the_place_of_a_link_and_its_own_permissions() {
    let at = setting();
    symlink(at.out.join("key"), at.tree.join("link")).unwrap();
    fs::set_permissions(at.tree.join("real/key"), fs::Permissions::from_mode(0o644)).unwrap();
    for name in ["link", "real/key"] {
        at.dir.put(Path::new(name), b"new", 0o600).unwrap();
        let found = fs::symlink_metadata(at.tree.join(name)).unwrap();
        assert!(found.is_file() && found.permissions().mode() & 0o777 == 0o600, "{name}");
    }
    assert!(at.dir.put(Path::new("real"), b"new", 0o600).is_err());
    assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
}

#[test]
fn a_directory_that_a_person_named_is_made_but_not_through_a_link_of_the_tree() {
    let at = setting();
    symlink(&at.out, at.tree.join("planted")).unwrap();
    symlink(at.out.join("nowhere"), at.tree.join("dangling")).unwrap();
    let make = |path: &Path| Dir::make_named(path, Some(&at.tree), 0o700);
    make(&at.tree.join("a/b")).unwrap().create(Path::new("c"), b"x", 0o600).unwrap();
    make(&at.out.join("d")).unwrap();
    for path in ["planted", "planted/e", "dangling", "dangling/e"] {
        assert!(matches!(make(&at.tree.join(path)), Err(Error::Link { .. })), "{path}");
    }
    assert!(matches!(make(&at.tree.join("real/key")), Err(Error::Kind { .. })));
    assert!(at.tree.join("a/b/c").exists());
    assert_eq!(names(&at.out), ["d", "key"]);
}

#[test]
fn directories_are_made_but_not_through_a_link() {
    let at = setting();
    symlink(&at.out, at.tree.join("d")).unwrap();
    at.dir.make_dirs(Path::new("a/b"), 0o700).unwrap().create(Path::new("c"), b"x", 0o600).unwrap();
    assert_eq!(fs::read(at.tree.join("a/b/c")).unwrap(), b"x");
    assert!(matches!(at.dir.make_dirs(Path::new("d/e"), 0o700), Err(Error::Link { .. })));
    assert!(matches!(at.dir.make_dirs(Path::new("real/key"), 0o700), Err(Error::Kind { .. })));
    assert!(matches!(at.dir.create(Path::new("d/e"), b"x", 0o600), Err(Error::Link { .. })));
    assert_eq!(names(&at.out), ["key"]);
}

#[test]
fn a_directory_that_cannot_be_written_is_told_before_anything_is_spent() {
    // The kernel lets no user, not even root, make files here.
    let place = WriteTarget::find(Path::new("/proc/self/r.md"), None).unwrap();
    assert!(place.check_writable().is_err());
    let at = setting();
    WriteTarget::find(&at.tree.join("r.md"), None).unwrap().check_writable().unwrap();
    assert_eq!(names(&at.tree), ["real"], "the asking leaves nothing");
    assert!(Dir::open(&at.tree.join("real/key")).is_err());
}
