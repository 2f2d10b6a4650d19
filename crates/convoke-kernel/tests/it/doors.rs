//! The one door for programs: the host starts none beside it in the crates that touch a tree.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose code runs where a hostile tree is.
const CRATES: &[&str] =
    &["convoke-sandbox", "convoke-files", "convoke-trees", "convoke-runtime", "convoke-cli"];

/// Files that start a process all the same, and why they may.
const ALLOWED: &[(&str, &str)] = &[
    ("convoke-cli/src/commands/session/mod.rs", "opens the person's editor when the person asks for it"),
    ("convoke-cli/src/commands/session/shell.rs", "runs what the person typed behind !, as the person"),
    ("convoke-sandbox/src/bin/convoke-sandbox-helper.rs", "the tests' helper, no part of the program"),
    ("convoke-sandbox/src/confine/apart.rs", "starts bubblewrap around the template: it is the sandbox"),
    ("convoke-sandbox/src/confine/stage.rs", "starts bubblewrap around the helper: it is the sandbox"),
    ("convoke-sandbox/src/helper/bash.rs", "starts bash below the helper, locked: it is what is confined"),
    ("convoke-sandbox/src/helper/trace.rs", "what asks before it writes is added to the start of bash"),
    ("convoke-sandbox/src/link.rs", "starts the host's own executable as the helper"),
    ("convoke-sandbox/src/process.rs", "holds a helper that link.rs started"),
    ("convoke-sandbox/src/sys.rs", "what the helper adds to the start of bash"),
    ("convoke-sandbox/src/sys/notify.rs", "what the helper adds to the start of bash, too"),
    ("convoke-sandbox/src/worker.rs", "starts the host's own executable as a worker that only computes"),
    (
        "convoke-trees/src/bin/convoke-trees-hooking-git.rs",
        "the tests' stand-in for git, no part of the program",
    ),
];

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// Whether code, as far as it is not a test, names what starts a process.
fn starts(text: &str) -> bool {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let named = |line: &str| {
        let line = line.trim_start();
        let imported = line.contains("process::{") && line.contains("Command");
        !line.starts_with("//")
            && (imported || line.contains("process::Command") || line.contains("tokio::process"))
    };
    code.lines().any(named)
}

#[test]
fn the_host_starts_programs_through_one_door() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut all = Vec::new();
    let mut found = Vec::new();
    CRATES.iter().for_each(|name| files(&crates.join(name).join("src"), &mut all));
    for file in all {
        let is_test = file.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests"));
        if !is_test && starts(&fs::read_to_string(&file).unwrap()) {
            found.push(file.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    let allowed: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
    assert_eq!(
        found, allowed,
        "programs are started by convoke-sandbox/src/program.rs, or with a reason in this list"
    );
}

#[test]
fn every_way_of_naming_a_process_is_found() {
    for code in [
        "use std::process::Command;",
        "    use std::process::{Child, Command};",
        "let x = std::process::Command::new(a);",
        "use tokio::process::Child;",
    ] {
        assert!(starts(code), "{code}");
        assert!(!starts(&format!("fn x() {{}}\n\n#[cfg(test)]\nmod tests {{\n{code}\n}}\n")), "{code}");
    }
    assert!(!starts("// std::process::Command is not used here\nuse clap::Command;\nstd::process::exit(1);"));
}
