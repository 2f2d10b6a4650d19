//! What a session changed, seen and taken back: beside a person's own changes, without git, and after a kill.

use std::path::Path;

use convoke_sim::{Script, calls, says};
use serde_json::{Value, json};

use crate::repo::{files, git, read, repository, standing, write};
use crate::stage::{Seen, Stage, to_its_end};

fn bash(command: &str) -> convoke_sim::Reply {
    calls("bash", json!({"command": command}))
}

/// The session's id, from what was said last about it.
pub(crate) fn run_id(seen: &Seen) -> String {
    let words = seen.stderr.split_whitespace().chain(seen.stdout.split('"'));
    let id = words.rev().find(|word| word.starts_with("s_") && word.len() == 18);
    id.unwrap_or_else(|| panic!("no run is named: {seen:?}")).to_owned()
}

/// A lead that edits twelve files: changed, added, removed, renamed, moved, made executable.
fn twelve() -> Vec<convoke_sim::Reply> {
    vec![
        bash("for n in 1 2 3 4 5; do echo edited >> src/f$n.txt; done"),
        calls(
            "str_replace_based_edit_tool",
            json!({"command": "str_replace", "path": "src/f6.txt", "old_str": "six", "new_str": "SIX"}),
        ),
        calls(
            "str_replace_based_edit_tool",
            json!({"command": "create", "path": "made/new.txt", "file_text": "made by the run\n"}),
        ),
        bash("mv src/f7.txt src/g7.txt; rm src/f8.txt; chmod +x src/f9.txt; printf 'two\\n' > mine.txt"),
        says("Twelve files."),
    ]
}

/// A repository in which the person has staged, unstaged and untracked changes of their own.
fn busy_repository(stage: &Stage) -> std::path::PathBuf {
    let names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"];
    let all: Vec<(String, String)> = names
        .iter()
        .enumerate()
        .map(|(at, word)| (format!("src/f{}.txt", at + 1), format!("{word}\n")))
        .collect();
    let mut given: Vec<(&str, &str)> =
        all.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    given.push((".gitignore", "*.log\n"));
    given.push(("mine.txt", "zero\n"));
    let dir = repository(stage, &given);
    write(&dir, "src/f10.txt", "ten, staged by me\n");
    git(&dir, &["add", "src/f10.txt"]);
    write(&dir, "src/f1.txt", "one\nunstaged by me\n");
    write(&dir, "mine.txt", "one\n");
    write(&dir, "untracked.txt", "mine too\n");
    write(&dir, "build.log", "ignored\n");
    dir
}

#[tokio::test]
async fn a_run_that_edits_twelve_files_beside_a_persons_changes_is_shown_and_taken_back_exactly() {
    let stage = Stage::with(Script::new().conversation("*", twelve())).await;
    let dir = busy_repository(&stage);
    let before = standing(&dir);
    let seen = stage.run(&["--verbose", "edit", "the", "files"]).await.exits(0);
    let run = run_id(&seen);
    for line in [
        "changed files: 12",
        "M src/f1.txt (lead)",
        "A made/new.txt (lead)",
        "D src/f8.txt (lead)",
        "M src/f9.txt (lead, its mode)",
        &format!("to take them back: convoke sessions undo {run}"),
    ] {
        assert!(seen.stderr.contains(line), "{line}: {}", seen.stderr);
    }
    let after = files(&dir);
    assert!(after != before.0);

    let names = stage.run(&["runs", "diff", &run, "--name-only"]).await.exits(0).stdout;
    let expected = [
        "made/new.txt",
        "mine.txt",
        "src/f1.txt",
        "src/f2.txt",
        "src/f3.txt",
        "src/f4.txt",
        "src/f5.txt",
        "src/f6.txt",
        "src/f7.txt",
        "src/f8.txt",
        "src/f9.txt",
        "src/g7.txt",
    ];
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    let patch = stage.run(&["runs", "diff", &run]).await.exits(0).stdout;
    assert!(
        !patch.contains('\u{1b}') && !patch.contains("ten, staged") && !patch.contains("untracked"),
        "{patch}"
    );
    assert!(patch.contains(" unstaged by me\n+edited"), "what the person wrote is context: {patch}");
    let stat = stage.run(&["runs", "diff", &run, "--stat"]).await.exits(0).stdout;
    assert!(stat.lines().any(|line| line.split_whitespace().eq(["1", "1", "mine.txt"])), "{stat}");

    // It is a patch: taken backwards by git itself it leads to where the person was.
    std::fs::write(stage.home().join("p.patch"), &patch).unwrap();
    git(&dir, &["apply", "-R", "--check", stage.home().join("p.patch").to_str().unwrap()]);

    let dry = stage.run(&["runs", "undo", &run, "--dry-run"]).await.exits(0);
    let number = |start: &str| dry.stdout.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((number("would be restored: "), number("would be removed: ")), (10, 2), "{}", dry.stdout);
    assert!(dry.stderr.contains("10 files would be restored, 2 files would be removed"), "{}", dry.stderr);
    assert_eq!(files(&dir), after, "a dry run changes nothing");
    // From anywhere.
    let mut elsewhere = stage.command(&["runs", "undo", &run]);
    elsewhere.current_dir("/");
    let undone = to_its_end(elsewhere).await.exits(0);
    assert!(undone.stderr.contains("10 files restored, 2 files removed"), "{}", undone.stderr);
    assert_eq!(standing(&dir), before);
    assert!(!dir.join("made").exists());
    let again = stage.run(&["runs", "undo", &run]).await.exits(0);
    assert!(again.stderr.contains("nothing of") && again.stdout.is_empty(), "{again:?}");
    assert_eq!(stage.run(&["runs", "diff", &run]).await.exits(0).stdout, "");
}

#[tokio::test]
async fn a_file_that_the_person_changed_after_the_run_is_left_alone_and_named() {
    let stage = Stage::with(Script::new().conversation("*", twelve())).await;
    let dir = busy_repository(&stage);
    let seen = stage.run(&["--output", "json", "edit", "the", "files"]).await.exits(0);
    let report = seen.json();
    let run = report["run"].as_str().unwrap();
    assert_eq!(report["changed"].as_array().unwrap().len(), 12);
    assert_eq!(
        report["changed"][0],
        json!({"path": "made/new.txt", "how": "added", "agents": [report["agent"]], "mixed": false})
    );
    assert_eq!(report["agents"][0]["changed"].as_array().unwrap().len(), 12);
    assert_eq!(report["undo"], format!("convoke sessions undo {run}"));
    write(&dir, "src/f2.txt", "two\nedited\nand edited by me\n");
    write(&dir, "made/beside.txt", "mine\n");
    let dry = stage.run(&["--output", "json", "runs", "undo", run, "--dry-run"]).await.exits(3).json();
    assert_eq!(dry["restored"][0], json!({"path": "made/new.txt", "kind": "removed"}));
    assert!(dry["restored"].as_array().unwrap().contains(&json!({"path": "src/f8.txt", "kind": "restored"})));
    let undone = stage.run(&["runs", "undo", run]).await.exits(3);
    assert!(undone.stdout.contains("left alone: src/f2.txt ("), "{}", undone.stdout);
    assert!(
        undone.stderr.contains("9 files restored, 2 files removed, 1 file left alone"),
        "{}",
        undone.stderr
    );
    assert_eq!(read(&dir, "src/f2.txt"), "two\nedited\nand edited by me\n");
    assert_eq!(read(&dir, "made/beside.txt"), "mine\n");
    assert_eq!(read(&dir, "src/f3.txt"), "three\n");
    let data = stage.run(&["--output", "json", "runs", "undo", run]).await.exits(3).json();
    assert_eq!((&data["restored"], &data["left_alone"][0]["path"]), (&json!([]), &json!("src/f2.txt")));
}

#[tokio::test]
async fn without_a_repository_changes_are_kept_in_a_store_of_convokes_own() {
    let stage = Stage::with(
        Script::new().conversation("*", [bash("echo more >> a.txt; echo new > b.txt"), says("Done.")]),
    )
    .await;
    write(&stage.work(), "a.txt", "first\n");
    let seen = stage.run(&["change", "it"]).await.exits(0);
    assert!(seen.stderr.contains("changed files: 2") && !seen.stderr.contains("warning:"), "{}", seen.stderr);
    let run = run_id(&seen);
    let patch = stage.run(&["runs", "diff", &run]).await.exits(0).stdout;
    assert!(patch.contains("+more") && patch.contains("+new"), "{patch}");
    stage.run(&["runs", "undo", &run]).await.exits(0);
    assert_eq!(files(&stage.work()), [("a.txt".into(), "first\n".to_owned())].into());
    assert!(!stage.work().join(".git").exists());
}

#[tokio::test]
async fn what_cannot_be_kept_is_named_everywhere_and_what_was_removed_can_be_brought_back() {
    let command = "echo new > b.txt; truncate -s 101M large";
    let stage = Stage::with(Script::new().conversation("*", [bash(command), says("Done.")])).await;
    write(&stage.work(), "a.txt", "first\n");
    let seen = stage.run(&["change", "it"]).await.exits(0);
    let line = "not kept, cannot be taken back: large: larger than 100 MiB";
    assert!(seen.stderr.contains(line), "{}", seen.stderr);
    let run = run_id(&seen);
    let diff = stage.run(&["runs", "diff", &run]).await.exits(0);
    assert!(diff.stderr.contains(line) && diff.stdout.contains("+new"), "{diff:?}");
    let data = stage.run(&["--output", "json", "runs", "undo", &run, "--dry-run"]).await.exits(3).json();
    assert_eq!((&data["not_kept"][0]["path"], &data["back"]), (&json!("large"), &json!(null)));
    let undone = stage.run(&["runs", "undo", &run]).await.exits(3);
    assert!(undone.stdout.contains(line), "{}", undone.stdout);
    assert!(!stage.work().join("b.txt").exists() && stage.work().join("large").exists());
    let back = undone.stderr.lines().find_map(|line| line.strip_prefix("to bring a file back: ")).unwrap();
    let back =
        std::process::Command::new("sh").args(["-c", &back.replace("FILE", "b.txt")]).output().unwrap();
    assert!(back.status.success(), "{back:?}");
    assert_eq!(std::fs::read_to_string(stage.work().join("b.txt")).unwrap(), "new\n");
}

/// A directory with links to every program but git.
fn programs_without_git(stage: &Stage) -> std::path::PathBuf {
    let bin = stage.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for dir in std::env::split_paths(&std::env::var_os("PATH").unwrap()) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name() != "git" {
                let _ = std::os::unix::fs::symlink(entry.path(), bin.join(entry.file_name()));
            }
        }
    }
    bin
}

#[tokio::test]
async fn without_git_it_is_said_before_anything_is_written_that_nothing_can_be_taken_back() {
    let stage =
        Stage::with(Script::new().conversation("*", [bash("echo more >> a.txt"), says("Done.")])).await;
    write(&stage.work(), "a.txt", "first\n");
    let bin = programs_without_git(&stage);
    let run = async |args: &[&str]| {
        let mut command = stage.command(args);
        command.env("PATH", &bin);
        to_its_end(command).await
    };
    let seen = run(&["change", "it"]).await.exits(0);
    let warned = seen.stderr.find(
        "warning: what this session changes cannot be shown or taken back afterwards: git was not found",
    );
    assert!(
        warned.is_some_and(|at| at < seen.stderr.find("$ echo").unwrap_or(usize::MAX)),
        "{}",
        seen.stderr
    );
    assert_eq!(read(&stage.work(), "a.txt"), "first\nmore\n");
    assert!(!seen.stderr.contains("changed files"), "{}", seen.stderr);
    let id = run_id(&seen);
    let undo = run(&["runs", "undo", &id]).await.exits(2);
    assert!(undo.stderr.contains("install git"), "{}", undo.stderr);
    // With git there is still nothing that was kept, and that is not taken for "nothing was changed".
    let undo = stage.run(&["runs", "undo", &id]).await.exits(1);
    assert!(undo.stderr.contains("nothing was kept for"), "{}", undo.stderr);
    // A session that may not write need not be warned.
    let looked = run(&["--sandbox", "read-only", "change", "it"]).await.exits(0);
    assert!(!looked.stderr.contains("taken back"), "{}", looked.stderr);
    let apart = run(&["--isolation", "worktree", "change", "it"]).await.exits(2);
    assert!(
        apart.stderr.contains("no worktree could be made, so nothing was started: git was not found"),
        "{}",
        apart.stderr
    );
}

#[tokio::test]
async fn a_run_that_is_killed_in_a_command_can_be_shown_and_taken_back() {
    let wait = "echo half > half.txt; echo more >> a.txt; sleep 600";
    let stage = Stage::with(
        Script::new().conversation("*", [bash("echo whole > whole.txt"), bash(wait), says("Done.")]),
    )
    .await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    write(&dir, "mine.txt", "mine\n");
    let before = standing(&dir);
    let started = stage.start(&["change", "it"]);
    until(|| dir.join("half.txt").exists() && read(&dir, "a.txt").contains("more")).await;
    let id = json_of(&stage, &["--output", "json", "runs", "list"]).await["runs"][0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let busy = stage.run(&["runs", "undo", &id]).await.exits(1);
    assert!(
        busy.stderr.contains("is running") && busy.stderr.contains("nothing was taken back"),
        "{}",
        busy.stderr
    );
    let so_far = stage.run(&["runs", "diff", &id, "--name-only"]).await.exits(0).stdout;
    assert_eq!(so_far, "whole.txt\n", "what is under way is nobody's yet");
    started.signal("KILL");
    started.code().await;
    write(&dir, "later.txt", "by me, after the kill\n");
    let names = stage.run(&["runs", "diff", &id, "--name-only"]).await.exits(0).stdout;
    // What was written before the next look cannot be told from the work of the command that was cut off.
    assert!(
        ["a.txt", "half.txt", "whole.txt"].iter().all(|name| names.lines().any(|line| line == *name)),
        "{names}"
    );
    std::fs::remove_file(dir.join("later.txt")).unwrap();
    stage.run(&["runs", "undo", &id]).await;
    assert_eq!(standing(&dir), before);
}

#[tokio::test]
async fn pruning_a_run_forgets_what_was_kept_of_it_and_leaves_the_files() {
    let stage =
        Stage::with(Script::new().conversation("*", [bash("echo more >> a.txt"), says("Done.")])).await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    let id = run_id(&stage.run(&["change", "it"]).await.exits(0));
    let refs = || git(&dir, &["for-each-ref", "--format=%(refname)", "refs/convoke/"]);
    assert!(refs().contains("/before") && refs().contains("/after"), "{}", refs());
    stage.run(&["runs", "prune", &id, "--yes"]).await.exits(0);
    assert_eq!(refs(), "");
    assert_eq!(read(&dir, "a.txt"), "first\nmore\n");
    let runs = stage.state().join("trees/runs");
    assert!(!runs.exists() || std::fs::read_dir(runs).unwrap().next().is_none());
    let private = stage.state().join("private");
    assert!(!private.exists() || std::fs::read_dir(private).unwrap().next().is_none());
}

async fn json_of(stage: &Stage, args: &[&str]) -> Value {
    stage.run(args).await.exits(0).json()
}

/// Waits until something holds, looking often.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let look = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    crate::stage::patiently("something to hold", look).await;
}

#[tokio::test]
async fn a_diff_of_an_odd_name_is_a_patch_that_git_takes() {
    let stage = Stage::with(
        Script::new()
            .conversation("*", [bash("printf 'x' > 'a \"é\".txt'; printf '\\0\\1' > bin"), says("Done.")]),
    )
    .await;
    let dir = repository(&stage, &[("a.txt", "first\n")]);
    let id = run_id(&stage.run(&["change", "it"]).await.exits(0));
    let names = stage.run(&["runs", "diff", &id, "--name-only"]).await.exits(0).stdout;
    assert_eq!(names, "\"a \\\"é\\\".txt\"\nbin\n", "quoted as git quotes a name with a quote in it");
    let data = json_of(&stage, &["--output", "json", "runs", "diff", &id]).await;
    assert_eq!((&data["files"][1]["path"], &data["files"][1]["binary"]), (&json!("bin"), &json!(true)));
    let patch = stage.home().join("p.patch");
    std::fs::write(&patch, stage.run(&["runs", "diff", &id]).await.stdout).unwrap();
    git(&dir, &["apply", "-R", patch.to_str().unwrap()]);
    assert_eq!(files(&dir).keys().map(AsRef::as_ref).collect::<Vec<&Path>>(), [Path::new("a.txt")]);
}

#[tokio::test]
async fn the_doctor_runs_no_git_of_the_workspace() {
    let stage = Stage::with(Script::new()).await;
    let bin = stage.work().join(".venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let write = "printf '#!/bin/sh\\necho ran > \"%s\"\\n' \"$1/ran\" | tee \"$1/git\" > \"$1/bash\" && \
        chmod 755 \"$1\"/*";
    assert!(std::process::Command::new("sh").args(["-c", write, "sh"]).arg(&bin).status().unwrap().success());
    let mut paths = vec![bin.clone()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut doctor = stage.command(&["doctor"]);
    doctor.env("PATH", std::env::join_paths(paths).unwrap());
    let seen = to_its_end(doctor).await;
    assert!(seen.stdout.contains("git version") && !bin.join("ran").exists(), "{seen:?}");
}

#[tokio::test]
async fn names_with_line_breaks_and_escapes_in_them_are_printed_whole_and_told_apart() {
    let odd = "a\nb\u{1b}[2J.txt";
    let make = "printf 'x\\n' > $'a\\nb\\x1b[2J.txt'; printf 'y\\n' > plain.txt";
    let stage = Stage::with(Script::new().conversation("*", [bash(make), says("Done.")])).await;
    let dir = repository(&stage, &[("kept.txt", "kept\n")]);
    let seen = stage.run(&["make", "files"]).await.exits(0);
    let run = run_id(&seen);
    assert!(dir.join(odd).exists());
    let quoted = r#""a\nb\033[2J.txt""#;
    assert!(seen.stderr.contains(&format!("A {quoted} (lead)")), "{}", seen.stderr);
    let diff =
        async |args: &[&str]| stage.run(&[&["runs", "diff", &run], args].concat()).await.exits(0).stdout;
    assert_eq!(diff(&["--name-only"]).await, format!("{quoted}\nplain.txt\n"));
    assert_eq!(diff(&["--name-only", "-z"]).await, format!("{odd}\0plain.txt\0"));
    assert!(diff(&["--stat"]).await.contains(quoted));
    let object: Value = serde_json::from_str(&diff(&["--output", "json"]).await).unwrap();
    assert_eq!(object["files"][0]["path"], odd);
    let undone = stage.run(&["runs", "undo", &run]).await.exits(0);
    assert!(undone.stdout.contains(&format!("removed: {quoted}\n")), "{}", undone.stdout);
    assert!(!dir.join(odd).exists());
}
