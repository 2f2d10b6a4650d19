//! Doors that stay closed: in the crates that work on a tree, files are opened through `convoke-beneath` and
//! not by their path. What is never in a tree is named here by its file, with the reason.

use super::tidy::{code, files_of, is_test_file, no_complaints, root};

/// The crates whose code works on trees that commands and strangers fill.
const AT_TREES: &[&str] =
    &["convoke", "convoke-sandbox", "convoke-files", "convoke-trees", "convoke-runtime", "convoke-cli"];

/// How a file is opened, made, listed or removed by its path.
const BY_PATH: &[&str] = &[
    "std::fs::",
    "tokio::fs::",
    "fs::read",
    "fs::write",
    "fs::copy",
    "fs::create",
    "fs::remove",
    "fs::rename",
    "fs::set_permissions",
    "fs::OpenOptions",
    "DirBuilder::new",
    "File::open",
    "File::create",
    "File::options",
    "OpenOptions::new",
    ".read_dir()",
    "NamedTempFile::new_in",
    "tempfile_in(",
    "rustix::fs::open(",
    "sys::open(",
];

/// Types that can be named without opening anything by its path.
const TYPES: &[&str] =
    &["use std::fs::File;", "std::fs::File::from(", "std::fs::Metadata", "std::os::unix::fs::"];

/// Files that open something by its path, and why that is never in a tree, or no door for commands.
const ALLOWED: &[(&str, &str)] = &[
    // The sandbox: what the kernel shows, our own directories, and what the stage builds for commands before
    // they run.
    (
        "convoke-sandbox/src/bin/convoke-sandbox-helper.rs",
        "the test helper, which opens what a test tells it to",
    ),
    ("convoke-sandbox/src/cage.rs", "/proc, and the agent's own private directory, measured"),
    ("convoke-sandbox/src/cgroup.rs", "/sys/fs/cgroup"),
    ("convoke-sandbox/src/cgroup/place.rs", "/proc and /sys/fs/cgroup"),
    ("convoke-sandbox/src/circumstances.rs", "/proc"),
    (
        "convoke-sandbox/src/confine/apart.rs",
        "/proc, and what is mounted upon, in our own directories whose ways were cleared of links",
    ),
    (
        "convoke-sandbox/src/confine/beneath.rs",
        "the agent's own layer, which it walks by itself and before a command runs",
    ),
    (
        "convoke-sandbox/src/confine/git.rs",
        "names of a tree are listed, and the directory is opened for what openat2 resolves below it",
    ),
    ("convoke-sandbox/src/confine/lock.rs", "/proc, and the tree's own handle inside the sandbox"),
    ("convoke-sandbox/src/confine/mounts.rs", "/proc"),
    ("convoke-sandbox/src/confine/overlay.rs", "the agent's own layers, and handles of what they lie over"),
    (
        "convoke-sandbox/src/confine/own_git.rs",
        "the agent's own git dir, which is filled before a command runs",
    ),
    ("convoke-sandbox/src/confine/places.rs", "/etc/ssh"),
    ("convoke-sandbox/src/confine/stage.rs", "the stage, inside the sandbox and before a command runs"),
    (
        "convoke-sandbox/src/copy.rs",
        "the copy, which is our own; the tree is read through handles of its directories",
    ),
    (
        "convoke-sandbox/src/copy/listing.rs",
        "names of a tree are listed; the copying looks at each again through handles",
    ),
    ("convoke-sandbox/src/helper.rs", "/dev/null"),
    ("convoke-sandbox/src/helper/gate.rs", "/proc, and the helper's own unnamed pipe"),
    ("convoke-sandbox/src/helper/hold.rs", "/proc"),
    ("convoke-sandbox/src/helper/proc.rs", "/proc"),
    ("convoke-sandbox/src/helper/tree.rs", "/proc"),
    ("convoke-sandbox/src/helper/worker.rs", "/proc"),
    ("convoke-sandbox/src/memory.rs", "what is remembered of a probe, in the state directory"),
    ("convoke-sandbox/src/output.rs", "outputs of commands, in the state directory"),
    ("convoke-sandbox/src/probe.rs", "directories of our own, made for the probe"),
    ("convoke-sandbox/src/process.rs", "/proc"),
    ("convoke-sandbox/src/program/progress.rs", "/proc"),
    ("convoke-sandbox/src/program/start.rs", "/dev/null"),
    (
        "convoke-sandbox/src/program/view.rs",
        "names are listed, each of which openat2 resolves without links; and the program that is started",
    ),
    ("convoke-sandbox/src/sys.rs", "/proc"),
    // Trees: the state directory, and what helper calls of git were given of ours.
    (
        "convoke-trees/src/bin/convoke-trees-hooking-git.rs",
        "the tests' stand-in for git, no part of the program",
    ),
    ("convoke-trees/src/git.rs", "the program git, which lies in no tree"),
    ("convoke-trees/src/ignored.rs", "a scratch directory of our own, into which rules are copied"),
    ("convoke-trees/src/layout.rs", "kept files, laid out in a directory of our own"),
    ("convoke-trees/src/record.rs", "the record, in the state directory"),
    ("convoke-trees/src/store.rs", "the private git directory"),
    ("convoke-trees/src/store/find.rs", "names of a git directory, which are listed"),
    ("convoke-trees/src/tree.rs", "indexes of our own"),
    ("convoke-trees/src/turn.rs", "turns and marks of the record, in the state directory"),
    ("convoke-trees/src/window_files.rs", "windows of the record, in the state directory"),
    ("convoke-trees/src/worktree/apply.rs", "staged files, in the state directory"),
    ("convoke-trees/src/worktree/create.rs", "directories of our own in the state directory"),
    ("convoke-trees/src/worktree/disk.rs", "the state directory, and git's own directory of a worktree"),
    ("convoke-trees/src/worktree/plan.rs", "the plan, in the state directory"),
    // The runtime: outputs and replies that could not be recorded, both in the state directory.
    ("convoke-runtime/src/custom.rs", "outputs, in the state directory"),
    ("convoke-runtime/src/driver/commit.rs", "a spooled reply, in the state directory"),
    ("convoke-runtime/src/fan_out/rerun.rs", "outputs, in the state directory"),
    ("convoke-runtime/src/program/calls.rs", "outputs, in the state directory"),
    ("convoke-runtime/src/program/start.rs", "the script as it was begun, in the state directory"),
    ("convoke-runtime/src/stream_writer.rs", "a spooled reply, in the state directory"),
    (
        "convoke-runtime/src/spool.rs",
        "spooled replies, in a directory of our own that is looked at for its owner",
    ),
    ("convoke-runtime/src/surroundings/mod.rs", "/etc/passwd"),
    (
        "convoke-runtime/src/surroundings/own_files.rs",
        "names of the machine's directories are listed, none of the tree's",
    ),
    // The command line: the person's own configuration, the state directory, and what documentation needs.
    ("convoke-cli/src/commands/ask/remember.rs", "the person's own configuration"),
    ("convoke-cli/src/commands/sessions/prune.rs", "the state directory"),
    ("convoke-cli/src/commands/workflow/agree.rs", "what a person agreed to, in the state directory"),
    ("convoke-cli/src/doc_test.rs", "a directory of our own for documentation"),
    ("convoke-cli/src/keeping/checkout.rs", "which directory a worktree stands for, in the state directory"),
    ("convoke-cli/src/keeping/forget.rs", "the state directory"),
    ("convoke-cli/src/named.rs", "pipes that a person's shell hands over in /dev and /proc"),
    ("convoke-cli/src/paths.rs", "the state directory, and whether it can be written"),
];

fn opens_by_path(line: &str) -> bool {
    let line = line.trim_start();
    let is_comment = line.starts_with("//");
    let plain = TYPES.iter().fold(line.to_owned(), |line, allowed| line.replace(allowed, ""));
    // Through a handle, which is what a door is.
    let plain = plain.replace("rustix::fs::open(", "sys::open(").replace("rustix::fs::", "");
    !is_comment && BY_PATH.iter().any(|call| plain.contains(call))
}

#[test]
fn no_file_of_a_tree_is_opened_by_its_path() {
    let root = root();
    let mut complaints = Vec::new();
    let mut used = Vec::new();
    for (path, text) in AT_TREES.iter().flat_map(|name| files_of(name, &["src"])) {
        if is_test_file(&path) {
            continue;
        }
        let name = path.strip_prefix(root.join("crates")).unwrap().to_string_lossy().into_owned();
        let found: Vec<usize> = code(&text)
            .lines()
            .enumerate()
            .filter(|(_, line)| opens_by_path(line))
            .map(|(at, _)| at + 1)
            .collect();
        if found.is_empty() {
            continue;
        }
        if ALLOWED.iter().any(|(allowed, _)| *allowed == name) {
            used.push(name);
        } else {
            complaints.push(format!(
                "{name}, lines {found:?}: opens a file by its path; open it with convoke_beneath"
            ));
        }
    }
    let unused = ALLOWED.iter().filter(|(allowed, _)| !used.iter().any(|used| used == allowed));
    complaints.extend(
        unused.map(|(name, _)| format!("{name}: is allowed to open files by their path, and does not")),
    );
    no_complaints(complaints);
}

#[test]
fn what_opens_by_a_path_is_told_from_what_does_not() {
    for line in [
        "    std::fs::read(path)?;",
        "let f = File::open(p);",
        "tokio::fs::write(a, b).await",
        "fs::copy(a, b)",
    ] {
        assert!(opens_by_path(line), "{line}");
    }
    for line in [
        "use std::fs::File;",
        "// std::fs::read",
        "rustix::fs::read_link(fd)",
        "let f = std::fs::File::from(fd);",
    ] {
        assert!(!opens_by_path(line), "{line}");
    }
}
