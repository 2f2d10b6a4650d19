//! Removing: links as themselves, and whatever depth and rights a directory has.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use convoke_beneath::{Dir, Error};

use super::{mkfifo, names, setting};

#[test]
fn a_tree_is_removed_and_nothing_beyond_its_links() {
    let at = setting();
    fs::create_dir_all(at.tree.join("gone/deep")).unwrap();
    fs::write(at.tree.join("gone/deep/file"), "x").unwrap();
    symlink(&at.out, at.tree.join("gone/deep/dir")).unwrap();
    symlink(at.out.join("key"), at.tree.join("gone/link")).unwrap();
    mkfifo(&at.tree.join("gone/pipe"));
    at.dir.remove_tree(Path::new("gone")).unwrap();
    assert_eq!(names(&at.tree), ["real"]);
    symlink(&at.out, at.tree.join("d")).unwrap();
    at.dir.remove_tree(Path::new("d")).unwrap();
    assert_eq!(names(&at.tree), ["real"], "a link in its place is removed as itself");
    assert!(matches!(at.dir.remove_file(Path::new("../out/key")), Err(Error::Outside { .. })));
    assert!(at.dir.remove_tree(Path::new("gone")).unwrap_err().is_missing());
    assert_eq!(fs::read(at.out.join("key")).unwrap(), b"secret");
}

#[test]
fn a_tree_deeper_than_a_path_can_be_is_removed() {
    let at = setting();
    let mut deep = at.dir.make_dirs(Path::new("gone"), 0o700).unwrap();
    for level in 0..3_000 {
        if level % 500 == 0 {
            deep.create(Path::new("file"), b"x", 0o600).unwrap();
        }
        deep = deep.make_dirs(Path::new("d"), 0o700).unwrap();
    }
    at.dir.remove_tree(Path::new("gone")).unwrap();
    assert_eq!(names(&at.tree), ["real"]);
}

#[test]
fn directories_that_their_owner_may_not_enter_or_change_are_removed() {
    let at = setting();
    for (name, mode) in [("gone/closed/below", 0o000), ("gone/fixed/below", 0o500)] {
        fs::create_dir_all(at.tree.join(name)).unwrap();
        fs::write(at.tree.join(name).join("file"), "x").unwrap();
        fs::set_permissions(at.tree.join(name), fs::Permissions::from_mode(mode)).unwrap();
        let above = at.tree.join(name);
        fs::set_permissions(above.parent().unwrap(), fs::Permissions::from_mode(mode)).unwrap();
    }
    if !rustix::process::geteuid().is_root() {
        at.dir.remove_tree(Path::new("gone")).unwrap();
    } else {
        // Rights do not stop root, so that an ordinary user removes it.
        let open = |path: &Path, user| std::os::unix::fs::chown(path, Some(user), None).unwrap();
        let mut queue = vec![at.tree.clone()];
        while let Some(path) = queue.pop() {
            open(&path, 65534);
            if path.is_dir() {
                queue.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        let tree = Dir::open(&at.tree).unwrap();
        std::thread::spawn(move || {
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            tree.remove_tree(Path::new("gone")).unwrap();
        })
        .join()
        .unwrap();
    }
    assert_eq!(names(&at.tree), ["real"]);
}
