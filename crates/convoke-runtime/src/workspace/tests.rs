//! Trees on disk, and what is said about them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use convoke_sandbox::{Sight, Unseen};

use super::{Cited, Looked, Snapshot, WorkspaceError, digests, fingerprint};

/// Nothing is hidden from commands, and git sees no more than they do.
fn seen() -> Sight {
    Sight::LikeCommands(Unseen::default())
}

fn git(dir: &Path, args: &[&str]) {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"];
    let run = Command::new("git").args(who).args(args).current_dir(dir).output().unwrap();
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read_lines(dir: &Path, path: &str) -> Looked {
    Cited::open(dir, Vec::new()).read(path)
}

fn plain() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    write(tree.path(), "a.txt", "one\n");
    write(tree.path(), "src/b.rs", "fn b() {}\n");
    symlink("a.txt", tree.path().join("link")).unwrap();
    tree
}

fn repository() -> TempDir {
    let tree = plain();
    write(tree.path(), ".gitignore", "ignored*\nout/\n");
    git(tree.path(), &["init", "--quiet"]);
    git(tree.path(), &["add", "."]);
    git(tree.path(), &["commit", "--quiet", "-m", "first"]);
    tree
}

async fn named(dir: &Path) -> String {
    fingerprint(&seen(), dir).await.unwrap()
}

/// Whether this change makes another fingerprint of a plain tree and of a repository.
async fn check(what: &str, change: fn(&Path), expected: bool) {
    for tree in [plain(), repository()] {
        let before = named(tree.path()).await;
        assert_eq!(before.len(), 64, "hexadecimal digits");
        change(tree.path());
        assert_eq!(named(tree.path()).await != before, expected, "{what}");
    }
}

#[tokio::test]
async fn whatever_an_agent_could_see_changes_the_fingerprint() {
    check("one byte", |dir| write(dir, "a.txt", "onE\n"), true).await;
    check("a rename", |dir| fs::rename(dir.join("a.txt"), dir.join("c.txt")).unwrap(), true).await;
    check("an untracked file", |dir| write(dir, "src/new.rs", ""), true).await;
    check("a hidden file", |dir| write(dir, ".hidden", "x"), true).await;
    check("a deleted file", |dir| fs::remove_file(dir.join("src/b.rs")).unwrap(), true).await;
    let runs =
        |dir: &Path| fs::set_permissions(dir.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    check("an executable bit", runs, true).await;
    let other_target = |dir: &Path| {
        fs::remove_file(dir.join("link")).unwrap();
        symlink("src/b.rs", dir.join("link")).unwrap();
    };
    check("a link's target", other_target, true).await;
    let swap = |dir: &Path| {
        write(dir, "a.txt", "fn b() {}\n");
        write(dir, "src/b.rs", "one\n");
    };
    check("two contents swapped", swap, true).await;
}

#[tokio::test]
async fn what_makes_no_difference_to_an_agent_leaves_the_fingerprint_alone() {
    check("nothing", |_| (), false).await;
    let touched = |dir: &Path| {
        let file = fs::File::options().write(true).open(dir.join("a.txt")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    };
    check("a time", touched, false).await;
    let rewritten = |dir: &Path| {
        fs::remove_file(dir.join("a.txt")).unwrap();
        write(dir, "a.txt", "one\n");
    };
    check("the same again", rewritten, false).await;

    let tree = repository();
    let before = named(tree.path()).await;
    write(tree.path(), "ignored.txt", "x");
    write(tree.path(), "out/y", "x");
    git(tree.path(), &["status"]);
    assert_eq!(named(tree.path()).await, before, "ignored files");
    write(tree.path(), "kept", "x");
    let untracked = named(tree.path()).await;
    git(tree.path(), &["add", "kept"]);
    git(tree.path(), &["commit", "--quiet", "-m", "second"]);
    assert_ne!(named(tree.path()).await, untracked, "what is changed is seen against what is committed");
}

#[tokio::test]
async fn two_clones_at_different_paths_agree() {
    let tree = repository();
    let places = tempfile::tempdir().unwrap();
    for name in ["one", "another/deeper"] {
        git(tree.path(), &["clone", "--quiet", ".", places.path().join(name).to_str().unwrap()]);
    }
    let one = named(&places.path().join("one")).await;
    assert_eq!(named(&places.path().join("another/deeper")).await, one);
    assert_eq!(named(tree.path()).await, one);
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let tree = repository();
    for key in ["core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.clean", "core.hooksPath"] {
        git(tree.path(), &["config", key, "touch ran #"]);
    }
    write(tree.path(), ".gitattributes", "* filter=x\n");
    write(tree.path(), "a.txt", "changed");
    named(tree.path()).await;
    Snapshot::take(&seen(), tree.path()).await.unwrap();
    assert!(!tree.path().join("ran").exists());
}

#[tokio::test]
async fn empty_bare_and_missing_directories_are_no_trouble() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    let bare = dir.path().join("bare");
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&bare).unwrap();
    let nothing = named(&empty).await;
    git(&empty, &["init", "--quiet"]);
    assert_eq!(named(&empty).await, nothing);
    git(&bare, &["init", "--quiet", "--bare"]);
    assert_ne!(named(&bare).await, nothing);
    let missing = fingerprint(&seen(), &dir.path().join("missing")).await;
    assert!(matches!(missing, Err(WorkspaceError::Unreadable { .. })), "{missing:?}");
}

#[tokio::test]
async fn repositories_inside_count_by_their_own_rules() {
    let outer = repository();
    let inner = repository();
    let place = outer.path().join("vendor/inner");
    git(outer.path(), &["clone", "--quiet", inner.path().to_str().unwrap(), place.to_str().unwrap()]);
    let checked = async |label: &str| {
        let before = named(outer.path()).await;
        write(&place, "ignored.txt", label);
        assert_eq!(named(outer.path()).await, before, "{label}: ignored there");
        write(&place, "a.txt", label);
        assert_ne!(named(outer.path()).await, before, "{label}: changed there");
    };
    checked("untracked").await;
    git(outer.path(), &["add", "vendor/inner"]);
    checked("a submodule").await;
    fs::remove_dir_all(outer.path().join(".git")).unwrap();
    checked("in a plain directory").await;
}

#[tokio::test]
async fn a_directory_that_its_repository_ignores_is_walked() {
    let tree = repository();
    write(tree.path(), "out/work/file", "1");
    let work = tree.path().join("out/work");
    let before = named(&work).await;
    write(&work, "file", "2");
    assert_ne!(named(&work).await, before);
}

#[tokio::test]
async fn pipes_and_unreadable_files_stop_nobody() {
    let tree = plain();
    assert!(Command::new("mkfifo").arg(tree.path().join("pipe")).status().unwrap().success());
    let before = named(tree.path()).await;
    assert_eq!(read_lines(tree.path(), "pipe"), Looked::NotText);
    fs::remove_file(tree.path().join("pipe")).unwrap();
    assert_ne!(named(tree.path()).await, before);
    fs::set_permissions(tree.path().join("a.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(named(tree.path()).await, named(tree.path()).await);
}

#[tokio::test]
async fn a_snapshot_names_what_was_written_added_and_removed() {
    for tree in [plain(), repository()] {
        let dir = tree.path();
        write(dir, "gone.txt", "x");
        let before = Snapshot::take(&seen(), dir).await.unwrap();
        assert_eq!(before.changes_to(&Snapshot::take(&seen(), dir).await.unwrap()), Vec::<String>::new());
        write(dir, "a.txt", "longer than before");
        write(dir, "src/new.rs", "");
        fs::remove_file(dir.join("gone.txt")).unwrap();
        let after = Snapshot::take(&seen(), dir).await.unwrap();
        assert_eq!(before.changes_to(&after), ["a.txt", "gone.txt", "src/new.rs"]);
        assert_eq!(after.changes_to(&before), ["a.txt", "gone.txt", "src/new.rs"]);
    }
}

#[tokio::test]
async fn a_modification_time_that_was_put_back_hides_no_change() {
    let tree = plain();
    let path = tree.path().join("a.txt");
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
    let changed_at = || std::os::unix::fs::MetadataExt::ctime_nsec(&path.metadata().unwrap());
    let before = Snapshot::take(&seen(), tree.path()).await.unwrap();
    let then = changed_at();
    // The file system's clock ticks in steps: written until it has.
    while changed_at() == then {
        fs::write(&path, "two\n").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
    }
    assert_eq!(before.changes_to(&Snapshot::take(&seen(), tree.path()).await.unwrap()), ["a.txt"]);
}

#[tokio::test]
async fn digests_say_what_each_path_holds_now() {
    let tree = plain();
    let dir = tree.path();
    write(dir, "same.txt", "one\n");
    let names =
        ["a.txt", "same.txt", "src/b.rs", "link", "src", "missing", "../a.txt", "/etc/passwd", "a.txt/x"];
    let paths: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let before = digests(dir, &paths).await;
    assert_eq!(before.len(), names.len());
    let there: Vec<&str> = names.iter().copied().filter(|name| before[*name].is_some()).collect();
    assert_eq!(there, ["a.txt", "same.txt", "src/b.rs", "link", "src"]);
    assert_eq!(before["a.txt"], before["same.txt"]);
    assert_ne!(before["a.txt"], before["link"], "a link is not what it leads to");
    write(dir, "a.txt", "two\n");
    write(dir, "missing", "");
    let after = digests(dir, &paths).await;
    let changed: Vec<&str> = names.iter().copied().filter(|name| before[*name] != after[*name]).collect();
    assert_eq!(changed, ["a.txt", "missing"]);
}

#[test]
fn a_look_stays_below_the_directory() {
    let outside = plain();
    let tree = plain();
    let dir = tree.path();
    let out = outside.path().join("a.txt");
    let absolute = dir.join("src/b.rs");
    symlink(&out, dir.join("leads_out")).unwrap();
    symlink(outside.path(), dir.join("dir_out")).unwrap();
    symlink("/no/such/place", dir.join("leads_to_nothing_outside")).unwrap();
    symlink("nothing", dir.join("leads_to_nothing")).unwrap();
    symlink("circle", dir.join("circle")).unwrap();
    symlink("../link", dir.join("src/up")).unwrap();
    let own_name = dir.file_name().unwrap().to_str().unwrap();
    let check = |path: &str, expected: Looked| assert_eq!(read_lines(dir, path), expected, "{path}");
    let text = |text: &str| Looked::Text(text.to_owned());
    check("a.txt", text("one\n"));
    check("./src/../a.txt", text("one\n"));
    check("link", text("one\n"));
    check("src/up", text("one\n"));
    check(absolute.to_str().unwrap(), text("fn b() {}\n"));
    check(&format!("../{own_name}/a.txt"), text("one\n"));
    check("src", Looked::NotText);
    check("missing", Looked::Missing);
    check("a.txt/below", Looked::Missing);
    check("leads_to_nothing", Looked::Missing);
    check("circle", Looked::Missing);
    check("../a.txt", Looked::Outside);
    check("src/../../a.txt", Looked::Outside);
    check("nowhere/../../a.txt", Looked::Outside);
    check("leads_out", Looked::Outside);
    check("dir_out/a.txt", Looked::Outside);
    check("dir_out/missing", Looked::Outside);
    check("leads_to_nothing_outside", Looked::Outside);
    check("/etc/passwd", Looked::Outside);
    check(out.to_str().unwrap(), Looked::Outside);
}

#[test]
fn a_look_takes_text_of_up_to_eight_mebibytes() {
    let tree = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8], expected: fn(&Looked) -> bool| {
        fs::write(tree.path().join("file"), bytes).unwrap();
        let looked = read_lines(tree.path(), "file");
        assert!(expected(&looked), "{} bytes", bytes.len());
    };
    check(b"", |looked| *looked == Looked::Text(String::new()));
    check(&vec![b'x'; 8 << 20], |looked| matches!(looked, Looked::Text(text) if text.len() == 8 << 20));
    check(&vec![b'x'; (8 << 20) + 1], |looked| *looked == Looked::TooLarge);
    check(b"\xff\xfe", |looked| *looked == Looked::NotText);
    check(b"a\0b", |looked| *looked == Looked::NotText);
}
