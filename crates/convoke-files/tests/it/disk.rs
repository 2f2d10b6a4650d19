//! Writes the system does not allow: full, read-only and forbidden places leave everything as it was.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use convoke_files::{Caps, Edit, Refused, edit};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use crate::tree::{Tree, check, root_at};

fn create(path: &str, text: String) -> Edit {
    Edit::Create { path: path.to_owned(), text }
}

/// A small file system that is mounted nowhere: there is a handle and no path. Only root may have one.
fn unmounted(attributes: MountAttrFlags) -> Option<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    fsconfig_set_string(&context, "size", "64k").ok()?;
    fsconfig_create(&context).ok()?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).ok()
}

#[test]
fn a_tree_without_any_path_is_worked_in_by_its_handle_and_a_full_disk_leaves_it_as_it_was() {
    for walked in [false, true] {
        let Some(disk) = unmounted(MountAttrFlags::empty()) else {
            println!("not run: a file system of one's own needs root");
            return;
        };
        let root = if walked { root_at(disk).by_walking() } else { root_at(disk) };
        let caps = Caps::default();
        let first = "first\n".repeat(6_000);
        edit(&root, &create("f", first), &caps).unwrap();
        for call in [create("f", "second\n".repeat(6_000)), create("d/e/g", "x".repeat(60_000))] {
            let refused = edit(&root, &call, &caps).unwrap_err();
            assert!(matches!(refused, Refused::Full { .. }), "{refused}");
            assert!(refused.to_string().contains("ENOSPC"), "{refused}");
        }
        let found = convoke_files::glob(
            &root,
            &convoke_files::Glob { pattern: "**".to_owned(), all: true, ..Default::default() },
            &caps,
        );
        assert_eq!(found.unwrap().text, "f\n", "no half-written file and no temporary one is left");
        let listing = edit(&root, &Edit::View { path: ".".to_owned(), range: None }, &caps).unwrap().text;
        assert!(listing.contains("f  35.1 KiB") && !listing.contains("d/"), "{listing}");
        edit(&root, &create("f", "small\n".to_owned()), &caps).unwrap();
        edit(&root, &create("d/e/g", "fits now".to_owned()), &caps).unwrap();
    }
}

#[test]
fn a_file_system_mounted_read_only_refuses_and_says_why() {
    let Some(disk) = unmounted(MountAttrFlags::MOUNT_ATTR_RDONLY) else {
        println!("not run: a file system of one's own needs root");
        return;
    };
    let refused = edit(&root_at(disk), &create("d/f", "x".to_owned()), &Caps::default()).unwrap_err();
    assert!(matches!(refused, Refused::Denied { .. }), "{refused}");
    assert!(
        refused.to_string().contains("EROFS") && refused.to_string().contains("Nothing was changed"),
        "{refused}"
    );
}

#[test]
fn what_may_not_be_written_or_read_is_refused_and_stays_as_it_was() {
    let tree = Tree::new();
    tree.put("locked", "old\n");
    tree.put("private", "old\n");
    tree.put("closed/f", "old\n");
    for (name, mode) in
        [("locked", 0o444), ("private", 0o000), ("closed/f", 0o666), ("closed", 0o555), ("", 0o755)]
    {
        fs::set_permissions(tree.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let root = rustix::process::geteuid().is_root();
    let worker = thread::spawn(move || {
        if root {
            // Root may do anything, so this thread takes an unprivileged uid; the other threads keep theirs.
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        check(tree.replace("locked", "old", "new"), false, &["may not be written", "EACCES"]);
        check(tree.view("private"), false, &["may not be read", "EACCES"]);
        check(tree.create("private", "new"), false, &["EACCES"]);
        check(tree.replace("closed/f", "old", "new"), false, &["EACCES", "Nothing was changed"]);
        check(tree.create("closed/new/g", "new"), false, &["EACCES"]);
        check(tree.grep("old"), true, &["could not be searched to the end", "`private`"]);
        tree
    });
    let tree = worker.join().unwrap();
    fs::set_permissions(tree.path("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!((tree.get("locked"), tree.get("closed/f")), (b"old\n".to_vec(), b"old\n".to_vec()));
    assert!(!tree.path("closed/new").exists());
    tree.assert_nothing_is_left_over("closed");
}

#[test]
fn what_root_writes_belongs_to_whom_the_file_or_its_directory_belonged() {
    use std::os::unix::fs::{MetadataExt, chown};
    if !rustix::process::geteuid().is_root() {
        println!("not run: giving files away needs root");
        return;
    }
    let tree = Tree::new();
    tree.put("d/f", "old\n");
    chown(tree.path("d"), Some(1234), Some(1235)).unwrap();
    chown(tree.path("d/f"), Some(4321), Some(4322)).unwrap();
    tree.replace("d/f", "old", "new").unwrap();
    tree.create("d/sub/g", "x").unwrap();
    let owner = |name: &str| fs::metadata(tree.path(name)).map(|meta| (meta.uid(), meta.gid())).unwrap();
    assert_eq!((owner("d/f"), owner("d/sub"), owner("d/sub/g")), ((4321, 4322), (1234, 1235), (1234, 1235)));
}
