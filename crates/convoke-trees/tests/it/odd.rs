//! Odd trees: names, sizes, kinds of files, and repositories in unusual states.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use convoke_trees::{DiffForm, Error, HostPlaces, Keeper};

use crate::world::{World, changes, command, undo};

/// A run changes `name`, which is shown and taken back.
async fn check(world: &World, name: &str) {
    let tree = world.tree();
    let keeper = world.keeper("s_check").await;
    command(&keeper, "a_1", || {
        world.write(name, "the run's\n");
        world.write("of the run", "new\n");
    })
    .await;
    assert_eq!(changes(&keeper).await.len(), 2);
    assert_eq!(undo(&keeper).await.0.len(), 2);
    assert_eq!(world.tree(), tree);
}

#[tokio::test]
async fn any_name_can_be_kept_and_restored() {
    let names: [&[u8]; 12] = [
        b"with space",
        b"new\nline",
        b"quote\"d",
        b"-dash",
        b"--option",
        b"\xff\xfe invalid",
        "\u{fc}ml\u{e4}ut".as_bytes(),
        b"tab\there",
        b":(glob)*",
        b"back\\slash",
        b"git~1",
        b"star*?[x]",
    ];
    for world in [World::repository(&[]), World::plain()] {
        for name in names {
            world.write(OsStr::from_bytes(name), "old\n");
            world.write(
                PathBuf::from(OsStr::from_bytes(name)).with_extension("dir").join(OsStr::from_bytes(name)),
                "old\n",
            );
        }
        let tree = world.tree();
        let keeper = world.keeper("s_1").await;
        let closed = command(&keeper, "a_1", || {
            for name in names {
                world.write(OsStr::from_bytes(name), "new\n");
                world.remove(
                    PathBuf::from(OsStr::from_bytes(name))
                        .with_extension("dir")
                        .join(OsStr::from_bytes(name)),
                );
            }
        })
        .await;
        assert_eq!(closed.left_out, []);
        let mut found: Vec<PathBuf> =
            keeper.changes().await.unwrap().into_iter().map(|file| file.path).collect();
        found.retain(|path| path.parent() == Some(std::path::Path::new("")));
        let mut expected = names.map(|name| PathBuf::from(OsStr::from_bytes(name)));
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(keeper.undo(false).await.unwrap().restored.len(), 24);
        assert_eq!(world.tree(), tree);
    }
}

#[tokio::test]
async fn a_thousand_files_are_kept_and_restored() {
    let world = World::repository(&[]);
    let name = |n: usize| format!("dir{}/file{n}", n % 37);
    for n in 0..1_000 {
        world.write(name(n), format!("old {n}\n"));
    }
    let tree = world.tree();
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        for n in 0..1_000 {
            world.write(name(n), format!("new {n}\n"));
        }
    })
    .await;
    assert_eq!(keeper.undo(false).await.unwrap().restored.len(), 1_000);
    assert_eq!(world.tree(), tree);
}

#[tokio::test]
async fn bytes_are_kept_as_they_lie_on_disk() {
    let world = World::empty_repository();
    world.git(["config", "core.autocrlf", "true"]);
    world.write(
        ".gitattributes",
        "*.txt text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n*.bin -diff\n",
    );
    world.write("crlf.txt", "one\r\ntwo\r\n");
    world.write("mixed.txt", "one\r\ntwo\n");
    world.write("keyword.id", "$Id: not a real one $\n");
    world.write("wide.u16", [0xfe, 0xff, 0, b'a']);
    world.write("x.bin", "text\n");
    let names = ["crlf.txt", "mixed.txt", "keyword.id", "wide.u16", "x.bin"];
    // Both as git has them in its index, converted and known to be clean, and as it has never seen them.
    for commit in [false, true] {
        if commit {
            world.commit("converted");
        }
        let tree = world.tree();
        let keeper = world.keeper(if commit { "s_1" } else { "s_2" }).await;
        command(&keeper, "a_1", || {
            for name in names {
                world.write(name, "the run's\n");
            }
        })
        .await;
        assert_eq!(undo(&keeper).await.0.len(), names.len());
        assert_eq!(world.tree(), tree);
    }
}

#[tokio::test]
async fn a_subdirectory_is_all_that_is_looked_at() {
    let outer =
        World::repository(&[(".gitignore", "*.o\n"), ("a", "1\n"), ("sub/b", "1\n"), ("sub/deep/c", "1\n")]);
    let sub = outer.path("sub");
    let world = outer.at(sub);
    world.write("x.o", "ignored from above\n");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write("b", "2\n");
        world.write("new", "2\n");
        world.write("../a", "out of sight\n");
        world.write("y.o", "ignored from above\n");
    })
    .await;
    assert_eq!(changes(&keeper).await, ["Modified b a_1", "Added new a_1"]);
    let patch = world.beside("patch");
    fs::write(&patch, keeper.diff(DiffForm::Patch).await.unwrap()).unwrap();
    world.git([OsStr::new("apply"), OsStr::new("--check"), OsStr::new("-R"), patch.as_os_str()]);
    assert_eq!(undo(&keeper).await.0, ["b", "new"]);
    assert_eq!(
        (world.read("../a"), world.read("y.o")),
        (b"out of sight\n".to_vec(), b"ignored from above\n".to_vec())
    );
    let top = Keeper::open(&world.places, &world.beside("work"), "s_1").await.unwrap();
    assert!(matches!(top.before().await, Err(Error::OtherDirectory { .. })));
}

#[tokio::test]
async fn an_empty_subdirectory_and_an_empty_directory_are_trees_too() {
    let outer = World::repository(&[("a", "1\n")]);
    fs::create_dir(outer.path("sub")).unwrap();
    let sub = outer.path("sub");
    let sub = outer.at(sub);
    for world in [sub, World::plain(), World::empty_repository()] {
        let keeper = world.keeper("s_1").await;
        command(&keeper, "a_1", || world.write("new", "1\n")).await;
        assert_eq!(changes(&keeper).await, ["Added new a_1"]);
        undo(&keeper).await;
        assert_eq!(world.tree(), []);
    }
}

#[tokio::test]
async fn a_directory_that_its_repository_ignores_is_kept_by_itself() {
    let outer = World::repository(&[(".gitignore", "sub/\n")]);
    outer.write("sub/a", "1\n");
    let sub = outer.path("sub");
    let world = outer.at(sub);
    check(&world, "a").await;
    assert_eq!(world.git(["for-each-ref", "refs/convoke"]), b"");
}

#[tokio::test]
async fn tracked_files_count_although_they_are_ignored() {
    let world = World::repository(&[("config.local", "1\n"), (".gitignore", "")]);
    world.write(".gitignore", "*.local\n");
    check(&world, "config.local").await;
}

#[tokio::test]
async fn what_the_repository_alone_ignores_is_ignored() {
    let world = World::repository(&[("a", "1\n")]);
    fs::create_dir_all(world.path(".git/info")).unwrap();
    world.write(".git/info/exclude", "by_info\n");
    world.write("patterns", "by_file\n");
    world.git(["config", "core.excludesFile", "patterns"]);
    let keeper = world.keeper("s_1").await;
    let closed = command(&keeper, "a_1", || {
        world.write("by_info", "x");
        world.write("by_file", "x");
    });
    assert_eq!(closed.await.changed, []);
}

#[tokio::test]
async fn repositories_in_any_state_can_be_kept() {
    // A linked work tree.
    let world = World::repository(&[("a", "1\n")]);
    let linked = world.beside("linked");
    world.git(["worktree", "add", "-q", linked.to_str().unwrap()]);
    let linked = world.at(linked);
    check(&linked, "a").await;

    // SHA-256 names.
    let world = World::plain();
    world.git(["init", "-q", "--object-format=sha256"]);
    world.write("a", "1\n");
    check(&world, "a").await;
    world.commit("first");
    check(&world.without_state(), "a").await;

    // A shallow clone.
    let world = World::repository(&[("a", "1\n")]);
    world.write("a", "2\n");
    world.commit("second");
    let shallow = world.beside("shallow");
    world.git([
        "clone",
        "-q",
        "--depth=1",
        &format!("file://{}", world.dir.display()),
        shallow.to_str().unwrap(),
    ]);
    check(&world.at(shallow), "a").await;

    // A merge with conflicts, and an index that is locked.
    let world = World::repository(&[("a", "1\n"), ("b", "1\n")]);
    world.git(["checkout", "-q", "-b", "other"]);
    world.write("a", "theirs\n");
    world.commit("theirs");
    world.git(["checkout", "-q", "main"]);
    world.write("a", "ours\n");
    world.commit("ours");
    let merge = std::process::Command::new("git")
        .args(["-c", "user.name=person", "-c", "user.email=person@localhost", "merge", "-q", "other"])
        .current_dir(&world.dir)
        .output()
        .unwrap();
    assert!(!merge.status.success());
    world.write(".git/index.lock", "");
    let index = world.read(".git/index");
    check(&world, "a").await;
    assert!(world.read(".git/index") == index);
    assert!(world.path(".git/index.lock").exists() && world.path(".git/MERGE_HEAD").exists());

    // A split index.
    let world = World::repository(&[("a", "1\n")]);
    world.git(["update-index", "--split-index"]);
    check(&world, "a").await;
}

#[tokio::test]
async fn nested_repositories_are_named_and_left_alone() {
    let inner = World::repository(&[("x", "1\n")]);
    let world = World::repository(&[("a", "1\n")]);
    world.git(["submodule", "--quiet", "add", inner.dir.to_str().unwrap(), "module"]);
    world.commit("with a submodule");
    world.git(["clone", "-q", inner.dir.to_str().unwrap(), "nested"]);
    fs::create_dir(world.path("unborn")).unwrap();
    world.git_in(&world.path("unborn"), ["init", "-q"]);
    let keeper = world.keeper("s_1").await;
    let left_out = keeper.before().await.unwrap().left_out;
    let left_out: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, ["nested: a repository of its own", "unborn: a repository of its own"]);
    let closed = command(&keeper, "a_1", || {
        world.write("a", "2\n");
        world.write("module/x", "2\n");
        world.write("nested/x", "2\n");
    })
    .await;
    assert_eq!(closed.changed.len(), 1);
    let tree = String::from_utf8(world.git(["ls-tree", "refs/convoke/s_1/before"])).unwrap();
    assert!(tree.contains("160000 commit"), "{tree}");
    undo(&keeper).await;
    assert_eq!((world.read("a"), world.read("module/x")), (b"1\n".to_vec(), b"2\n".to_vec()));
}

#[tokio::test]
async fn what_cannot_be_kept_is_named() {
    let world = World::repository(&[("a", "1\n"), ("grows", "1\n"), ("becomes_pipe", "1\n")]);
    let large = |name: &str| fs::File::create(world.path(name)).unwrap().set_len((100 << 20) + 1).unwrap();
    large("large");
    world.write("x/.GIT/config", "git would not take it\n");
    let keeper = world.keeper("s_1").await;
    let left_out: Vec<String> =
        keeper.before().await.unwrap().left_out.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, ["large: larger than 100 MiB", "x/.GIT/config: git keeps nothing of this name"]);
    let closed = command(&keeper, "a_1", || {
        large("grows");
        world.remove("becomes_pipe");
        assert!(
            std::process::Command::new("mkfifo").arg(world.path("becomes_pipe")).status().unwrap().success()
        );
    })
    .await;
    assert_eq!(closed.left_out.len(), 4, "{:?}", closed.left_out);
    assert_eq!(changes(&keeper).await, ["Deleted becomes_pipe a_1"]);
    assert_eq!(undo(&keeper).await.1, ["becomes_pipe: it is no ordinary file any more"]);
}

/// Root reads everything, so there the same files are kept.
#[tokio::test]
async fn what_cannot_be_read_is_named_or_kept() {
    let world = World::repository(&[("a", "1\n"), ("tracked/x", "1\n")]);
    world.write("secret", "1\n");
    world.chmod("secret", 0);
    let readable = fs::read(world.path("secret")).is_ok();
    let keeper = world.keeper("s_1").await;
    let left_out = keeper.before().await.unwrap().left_out;
    let closed = command(&keeper, "a_1", || world.chmod("tracked", 0)).await;
    world.chmod("tracked", 0o755);
    let shown: Vec<String> = left_out.iter().chain(&closed.left_out).map(ToString::to_string).collect();
    let expected =
        ["secret: it cannot be read", "secret: it cannot be read", "tracked/x: it cannot be looked at"];
    assert_eq!(
        shown.iter().filter(|line| !line.ends_with("looked into")).collect::<Vec<_>>(),
        if readable { &[][..] } else { &expected[..] }
    );
    assert_eq!(closed.changed, []);
}

#[tokio::test]
async fn without_git_it_is_said_before_anything_is_written() {
    for world in [World::plain(), World::repository(&[("a", "1\n")])] {
        let places = HostPlaces { path: "/nonexistent".to_owned(), ..world.places.clone() };
        let error = Keeper::open(&places, &world.dir, "s_1").await.unwrap_err();
        assert!(matches!(error, Error::NoGit), "{error}");
        assert!(!world.places.state.exists());
    }
}

#[tokio::test]
async fn opening_writes_nothing() {
    for world in [World::plain(), World::repository(&[("a", "1\n")])] {
        let keeper = world.keeper("s_1").await;
        assert!(matches!(keeper.changes().await, Err(Error::NotKept { .. })));
        assert!(matches!(keeper.undo(false).await, Err(Error::NotKept { .. })));
        assert!(!world.places.state.exists());
    }
}

#[tokio::test]
async fn a_state_directory_inside_is_refused() {
    let world = World::plain();
    let places = HostPlaces { state: world.path("state"), ..world.places.clone() };
    assert!(matches!(Keeper::open(&places, &world.dir, "s_1").await, Err(Error::StateInside { .. })));
}

#[tokio::test]
async fn a_repository_made_or_broken_meanwhile_does_not_mislead() {
    let world = World::plain();
    world.write("a", "1\n");
    let keeper = world.keeper("s_1").await;
    command(&keeper, "a_1", || {
        world.write("a", "2\n");
        world.git(["init", "-q"]);
    })
    .await;
    let keeper = world.keeper("s_1").await;
    assert_eq!(undo(&keeper).await.0, ["a"]);
    assert_eq!(world.read("a"), b"1\n");
    let world = World::plain();
    world.write(".git", "gitdir: /nonexistent\n");
    let error = Keeper::open(&world.places, &world.dir, "s_1").await.unwrap_err();
    assert!(matches!(error, Error::BadRepository { .. }), "{error}");
}
