//! Throwaway copies of real trees, with and without git.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use convoke_sandbox::{Copied, CopyCap, CopyError, Sight, Unseen, make_copy};
use tempfile::TempDir;

const ROOMY: CopyCap = CopyCap { files: 100_000, bytes: 1 << 30 };

/// Git sees what commands see, and nothing is hidden from them.
fn like_commands() -> Sight {
    Sight::LikeCommands(Unseen::default())
}

/// A tree at `tree` and a place for its copy at `private/copy`.
struct TreeAndCopy {
    _dir: TempDir,
    tree: PathBuf,
    copy: PathBuf,
}

impl TreeAndCopy {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("private")).unwrap();
        fs::create_dir(base.join("tree")).unwrap();
        let place = Self { tree: base.join("tree"), copy: base.join("private/copy"), _dir: dir };
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, below: &str, args: &[&str]) -> String {
        git(&self.tree.join(below), args)
    }

    fn copied(&self) -> Copied {
        make_copy(&self.tree, &self.copy, ROOMY, &like_commands()).unwrap()
    }

    /// Every path in the copy, sorted; directories end with a slash.
    fn check(&self, expected: &[&str]) {
        let mut found = Vec::new();
        let mut directories = vec![self.copy.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&self.copy).unwrap().to_str().unwrap().to_owned();
                if path.symlink_metadata().unwrap().is_dir() {
                    found.push(format!("{name}/"));
                    directories.push(path);
                } else {
                    found.push(name);
                }
            }
        }
        found.sort();
        assert_eq!(found, expected);
    }
}

fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "init.defaultBranch=main"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tracked_and_untracked_files_are_copied_and_ignored_ones_are_named() {
    let place = TreeAndCopy::new(&[
        (".gitignore", "target\n*.log\n"),
        ("src/a.rs", "a"),
        ("target/huge", "x"),
        ("target/deep/er", "x"),
        ("new/ä b\n.rs", "odd name"),
        ("new/b.log", "log"),
    ]);
    place.git("", &["init", "-q"]);
    place.git("", &["add", "src", ".gitignore"]);
    let copied = place.copied();
    place.check(&[".git", ".gitignore", "new/", "new/ä b\n.rs", "src/", "src/a.rs"]);
    assert_eq!((copied.files, copied.bytes), (3, 13 + 1 + 8));
    assert_eq!(copied.left_out, [PathBuf::from("new/b.log"), PathBuf::from("target")]);
}

#[test]
fn git_works_in_the_copy_as_in_the_tree() {
    let place = TreeAndCopy::new(&[("a", "one\n"), ("b", "one\n")]);
    place.git("", &["init", "-q"]);
    place.git("", &["add", "."]);
    place.git("", &["commit", "-qm", "first"]);
    place.write("a", "two\n");
    fs::remove_file(place.tree.join("b")).unwrap();
    place.copied();
    assert_eq!(git(&place.copy, &["status", "--short"]), " M a\n D b\n");
    assert_eq!(git(&place.copy, &["rev-parse", "HEAD"]), place.git("", &["rev-parse", "HEAD"]));
    let pointer = fs::read_to_string(place.copy.join(".git")).unwrap();
    assert_eq!(pointer, format!("gitdir: {}/.git\n", place.tree.display()));
}

#[test]
fn a_worktree_and_a_repository_within_keep_their_own_git() {
    let place = TreeAndCopy::new(&[
        ("main/a", "a"),
        ("other/x", "x"),
        ("other/ignored", "i"),
        ("other/.gitignore", "ignored\n"),
    ]);
    place.git("main", &["init", "-q"]);
    place.git("main", &["add", "."]);
    place.git("main", &["commit", "-qm", "first"]);
    place.git("other", &["init", "-q"]);
    place.git("other", &["add", "x"]);
    place.git("other", &["commit", "-qm", "first"]);
    place.git("main", &["worktree", "add", "-q", "../side"]);
    place.git("side", &["submodule", "--quiet", "add", "../../tree/other", "sub"]);
    fs::rename(place.tree.join("other"), place.tree.join("side/other")).unwrap();
    let copied = make_copy(&place.tree.join("side"), &place.copy, ROOMY, &like_commands()).unwrap();
    let expected = [
        ".git",
        ".gitmodules",
        "a",
        "other/",
        "other/.git",
        "other/.gitignore",
        "other/x",
        "sub/",
        "sub/.git",
        "sub/x",
    ];
    place.check(&expected);
    assert_eq!(copied.left_out, [PathBuf::from("other/ignored")]);
    for within in [".", "sub", "other"] {
        let tree = place.tree.join("side").join(within);
        let copy = place.copy.join(within);
        assert_eq!(git(&copy, &["rev-parse", "HEAD"]), git(&tree, &["rev-parse", "HEAD"]), "{within}");
        assert_eq!(
            git(&copy, &["status", "--short", "--ignored=no"]),
            git(&tree, &["status", "--short"]),
            "{within}"
        );
    }
}

#[test]
fn without_git_everything_is_copied_empty_directories_too() {
    let place = TreeAndCopy::new(&[("a/b/c", "c"), (".gitignore", "a\n")]);
    fs::create_dir_all(place.tree.join("empty/er")).unwrap();
    let copied = place.copied();
    place.check(&[".gitignore", "a/", "a/b/", "a/b/c", "empty/", "empty/er/"]);
    assert_eq!((copied.files, copied.bytes, copied.left_out), (2, 3, vec![]));
}

#[test]
fn a_broken_repository_is_copied_as_if_git_were_not_there() {
    let place = TreeAndCopy::new(&[("a", "a"), (".git/config", "[core\n"), (".git/objects/x", "x")]);
    place.copied();
    place.check(&[".git", "a"]);
}

#[test]
fn a_directory_of_a_repository_is_copied_by_its_rules_unless_it_is_ignored_as_a_whole() {
    let place = TreeAndCopy::new(&[
        (".gitignore", "out\n*.o\n"),
        ("part/a", "a"),
        ("part/a.o", "o"),
        ("out/a", "a"),
        ("out/a.o", "o"),
    ]);
    place.git("", &["init", "-q"]);
    let copied = make_copy(&place.tree.join("part"), &place.copy, ROOMY, &like_commands()).unwrap();
    place.check(&["a"]);
    assert_eq!(copied.left_out, [PathBuf::from("a.o")]);
    let other = TreeAndCopy {
        copy: place.copy.with_file_name("other"),
        tree: place.tree.clone(),
        _dir: TempDir::new().unwrap(),
    };
    make_copy(&place.tree.join("out"), &other.copy, ROOMY, &like_commands()).unwrap();
    other.check(&["a", "a.o"]);
}

#[test]
fn modes_times_and_links_are_kept_and_hard_links_are_cut() {
    let place = TreeAndCopy::new(&[("run", "#!"), ("d/plain", "p"), ("locked/in", "i")]);
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::set_permissions(place.tree.join("run"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(place.tree.join("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::hard_link(place.tree.join("run"), place.tree.join("also")).unwrap();
    symlink("/nowhere/at all", place.tree.join("d/dangling")).unwrap();
    symlink("d", place.tree.join("to directory")).unwrap();
    for path in ["run", "d"] {
        fs::File::open(place.tree.join(path)).unwrap().set_modified(long_ago).unwrap();
    }
    place.copied();
    place.check(&["also", "d/", "d/dangling", "d/plain", "locked/", "locked/in", "run", "to directory"]);
    let of = |path: &str| place.copy.join(path).symlink_metadata().unwrap();
    // The set-user-id bit is not carried over: the copy belongs to the user that made it.
    assert_eq!((of("run").mode() & 0o7777, of("locked").mode() & 0o7777), (0o751, 0o555));
    assert_eq!((of("run").modified().unwrap(), of("d").modified().unwrap()), (long_ago, long_ago));
    assert_eq!((of("run").nlink(), of("also").nlink()), (1, 1));
    assert_eq!(fs::read_link(place.copy.join("d/dangling")).unwrap(), Path::new("/nowhere/at all"));
    assert_eq!(fs::read_link(place.copy.join("to directory")).unwrap(), Path::new("d"));
    let was = place.tree.join("d/dangling").symlink_metadata().unwrap();
    let is = of("d/dangling");
    assert_eq!(is.modified().unwrap(), was.modified().unwrap());
    fs::set_permissions(place.tree.join("locked"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(place.copy.join("locked"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_no_file_is_left_out_and_named() {
    let place = TreeAndCopy::new(&[("a", "a")]);
    let _socket = std::os::unix::net::UnixListener::bind(place.tree.join("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(place.tree.join("pipe")).status().unwrap().success());
    assert_eq!(place.copied().left_out, [PathBuf::from("pipe"), PathBuf::from("socket")]);
    place.check(&["a"]);
}

#[test]
fn a_directory_that_has_become_a_link_is_not_followed() {
    let place = TreeAndCopy::new(&[("d/secret", "harmless")]);
    place.git("", &["init", "-q"]);
    place.git("", &["add", "."]);
    // Git still lists d/secret, which now leads out of the tree.
    let outside = place.copy.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "the key").unwrap();
    fs::remove_dir_all(place.tree.join("d")).unwrap();
    symlink(&outside, place.tree.join("d")).unwrap();
    place.copied();
    place.check(&[".git", "d"]);
    assert!(place.copy.join("d").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn a_finished_copy_keeps_what_was_written_into_it() {
    let place = TreeAndCopy::new(&[("a", "a"), ("b", "b")]);
    let first = place.copied();
    fs::write(place.copy.join("a"), "changed by the agent").unwrap();
    fs::remove_file(place.copy.join("b")).unwrap();
    place.write("c", "new in the tree");
    assert_eq!(place.copied(), first);
    place.check(&["a"]);
    assert_eq!(fs::read_to_string(place.copy.join("a")).unwrap(), "changed by the agent");
}

#[test]
fn an_unfinished_copy_is_made_anew() {
    let place = TreeAndCopy::new(&[("a", "a")]);
    fs::create_dir_all(place.copy.join("half/done")).unwrap();
    fs::set_permissions(place.copy.join("half"), fs::Permissions::from_mode(0o500)).unwrap();
    place.copied();
    place.check(&["a"]);
}

#[test]
fn a_tree_beyond_the_cap_is_refused_with_numbers_and_nothing_is_left() {
    let place = TreeAndCopy::new(&[("a", "12345"), ("b", "12345"), ("c", "12345")]);
    for cap in [CopyCap { files: 2, bytes: 1000 }, CopyCap { files: 1000, bytes: 14 }] {
        let error = make_copy(&place.tree, &place.copy, cap, &like_commands()).unwrap_err();
        assert!(matches!(error, CopyError::TooLarge { files: 3, bytes: 15, .. }), "{error:?}");
        assert!(error.to_string().contains("install bubblewrap"), "{error}");
        assert_eq!(fs::read_dir(place.copy.parent().unwrap()).unwrap().count(), 0);
    }
    assert_eq!(
        make_copy(&place.tree, &place.copy, CopyCap { files: 3, bytes: 15 }, &like_commands()).unwrap().files,
        3
    );
}

#[test]
fn a_copy_within_its_own_tree_is_refused() {
    let place = TreeAndCopy::new(&[("a/b", "b")]);
    let error = make_copy(&place.tree, &place.tree.join("a/copy"), ROOMY, &like_commands()).unwrap_err();
    assert!(matches!(error, CopyError::Inside { .. }), "{error:?}");
}

#[test]
fn many_files_are_copied_and_found_again_at_once() {
    let place = TreeAndCopy::new(&[]);
    for number in 0..2_000 {
        place.write(
            &format!("d{}/e{}/f{number}.txt", number % 20, number % 100),
            &format!("text of {number}\n").repeat(20),
        );
    }
    place.git("", &["init", "-q"]);
    let since = Instant::now();
    let copied = place.copied();
    let took = since.elapsed();
    assert_eq!(copied.files, 2_000);
    println!("a copy of 2,000 files took {} ms", took.as_millis());
    assert!(took < Duration::from_secs(20), "{took:?}");
    let since = Instant::now();
    assert_eq!(place.copied(), copied);
    assert!(since.elapsed() < Duration::from_secs(1), "a finished copy is found at once");
}
