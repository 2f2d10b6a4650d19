//! The helper and its host: what is inherited, which hold is reached, and what a kill of either leaves
//! behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sandbox::{Error, HoldChoice, ProcessHold, Shell, probe_hold};
use tempfile::TempDir;

use crate::{
    LONG, ShellFixture, config, helper, in_both_holds, readable_copy, sleepers, unique_seconds, until,
};

/// The unprivileged user of most systems.
const NOBODY: u32 = 65534;

in_both_holds! {
    commands_see_the_given_environment_and_nothing_else
    commands_inherit_no_descriptor
    a_killed_helper_is_an_error_and_no_hang
}

async fn commands_see_the_given_environment_and_nothing_else(hold: HoldChoice) {
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")), "there is something to leak");
    let mut fixture = ShellFixture::new(hold).await;
    let here = fixture.shell.state().cwd.display().to_string();
    let expected = format!(
        "GIT_PAGER=cat\nGIT_TERMINAL_PROMPT=0\nGIVEN=yes\nPAGER=cat\nPATH=/usr/bin:/bin\nPWD={here}\nSHLVL=1\nTERM=dumb\n\
         _=/usr/bin/env\n"
    );
    fixture.check("env | LC_ALL=C sort", 0, &expected).await;
    // Nor is it with the helper above the shell, which only root may look at.
    let helper = fixture.shell.helper_pid().unwrap();
    match std::fs::read(format!("/proc/{helper}/environ")) {
        Ok(environ) => assert!(!String::from_utf8_lossy(&environ).contains("CARGO")),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    // And our own script leaves no variable or function.
    fixture.check("declare -F; compgen -v | grep -i -e convoke -e token", 1, "").await;
}

async fn commands_inherit_no_descriptor(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    fixture.check("ls /proc/self/fd | tr '\\n' ' '", 0, "0 1 2 3 ").await;
    fixture.check("readlink /proc/self/fd/0", 0, "/dev/null\n").await;
    fixture.check("[ -t 0 ] || [ -e /dev/tty ] && : 2>/dev/null >/dev/tty; tty", 1, "not a tty\n").await;
}

async fn a_killed_helper_is_an_error_and_no_hang(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    let command = fixture.command(&format!("sleep {seconds}"), LONG);
    let pid = fixture.shell.helper_pid().unwrap().to_string();
    let held = *fixture.shell.hold() == ProcessHold::PidNamespace;
    let kill = async {
        until("the command runs", || sleepers(&seconds) == 1).await;
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    };
    let (outcome, ()) = tokio::join!(fixture.shell.run(command, std::future::pending()), kill);
    assert!(matches!(outcome, Err(Error::HelperEnded { .. })), "{outcome:?}");
    if held {
        until("all are gone", || sleepers(&seconds) == 0).await;
    } else {
        // This is what the doctor warns of; the test cleans up after it.
        Command::new("pkill").args(["-9", "-x", "-f", &format!("sleep {seconds}")]).status().unwrap();
    }
    let command = fixture.command("echo again", LONG);
    assert!(fixture.shell.run(command, std::future::pending()).await.is_err());
}

#[tokio::test]
async fn the_hold_is_what_was_asked_for_and_the_probe_agrees() {
    let best = ShellFixture::new(HoldChoice::Best).await;
    assert_eq!(*best.shell.hold(), probe_hold(&helper()).await.unwrap());
    let forced = ShellFixture::new(HoldChoice::Subreaper).await;
    assert_eq!(*forced.shell.hold(), ProcessHold::Subreaper { why: "it was not asked for".into() });
}

#[tokio::test]
async fn in_a_pid_namespace_commands_see_no_other_process() {
    let mut fixture = ShellFixture::new(HoldChoice::Best).await;
    if *fixture.shell.hold() == ProcessHold::PidNamespace {
        let finished = fixture.run("ls -d /proc/[0-9]* | wc -l; kill -0 1 && echo init").await;
        let count: usize = finished.output.text.lines().next().unwrap().parse().unwrap();
        assert!(count <= 5, "{}", finished.output.text);
        // Even the crudest kill reaches nothing outside, and the session goes on.
        assert!(fixture.run("env kill -9 -1").await.shell_replaced.is_some());
        fixture.check("echo on", 0, "on\n").await;
    }
}

#[tokio::test]
async fn a_helper_that_is_none_is_a_clear_error() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir, HoldChoice::Best, None);
    config.helper.program = dir.path().join("none");
    assert!(matches!(Shell::start(config.clone()).await, Err(Error::HelperStart { .. })));
    config.helper.program = "/bin/true".into();
    assert!(matches!(Shell::start(config).await, Err(Error::HelperEnded { .. })));
}

#[test]
fn a_malformed_frame_ends_the_helper_with_a_clear_error() {
    for (bytes, expected) in [
        (&b"\xff\xff\xff\xffgarbage"[..], "announced"),
        (b"\x02\x00\x00\x00{}", "not valid"),
        (b"\x16\x00\x00\x00{\"type\":\"kill\",\"id\":1}", "not `begin`"),
    ] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut helper = Command::new(helper().program)
            .arg("__helper")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        ours.write_all(bytes).unwrap();
        let mut said = Vec::new();
        // The end may come as a reset, because the helper leaves the rest unread.
        let _ = ours.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains("fatal") && said.contains(expected), "{said}");
        assert!(!helper.wait().unwrap().success());
    }
}

#[test]
fn a_helper_started_by_hand_is_turned_away() {
    let output = Command::new(helper().program).arg("__helper").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn kill_9_of_the_host_leaves_nothing() {
    check_kill_9("best", None);
    check_kill_9("subreaper", None);
    check_kill_9("namespaces", None);
    check_kill_9("landlock", None);
}

#[test]
fn kill_9_of_the_host_leaves_nothing_for_an_ordinary_user() {
    // A user that is not root is an ordinary user already.
    let user = Command::new("id").arg("-u").output().unwrap();
    let root = user.stdout == b"0\n";
    check_kill_9("best", root.then_some(NOBODY));
    check_kill_9("subreaper", root.then_some(NOBODY));
    check_kill_9("namespaces", root.then_some(NOBODY));
    check_kill_9("landlock", root.then_some(NOBODY));
}

fn check_kill_9(hold: &str, user: Option<u32>) {
    let dir = TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = readable_copy(&helper().program, dir.path());
    for name in ["workspace", "private"] {
        let at = dir.path().join(name);
        std::fs::create_dir(&at).unwrap();
        std::os::unix::fs::chown(&at, user, user).unwrap();
    }
    let seconds = unique_seconds();
    let mut command = Command::new(&program);
    command.args(["own", hold]).arg(dir.path()).arg(&seconds).stdout(Stdio::piped());
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let mut host = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.contains("bubblewrap is not installed") {
        println!("not run: {line}");
        host.wait().unwrap();
        return;
    }
    let expected = if hold == "subreaper" { "Subreaper" } else { "PidNamespace" };
    assert!(line.starts_with(expected) || line.starts_with("Subreaper"), "{line}");
    // Where it stands in a namespace of its own, so may what is forked.
    assert!(line.trim().ends_with("forked: true"), "{hold} {user:?}: {line}");
    wait_for("all sleep", || sleepers(&seconds) == 7);
    host.kill().unwrap();
    let since = Instant::now();
    host.wait().unwrap();
    wait_for("all are gone", || sleepers(&seconds) == 0);
    println!(
        "after kill -9 of the host all were gone within {:?} ({user:?}, {})",
        since.elapsed(),
        line.trim()
    );
    assert!(since.elapsed() < Duration::from_secs(5), "it took {:?}", since.elapsed());
    wait_for("the helper is gone", || !anyone_runs(&program));
}

fn anyone_runs(program: &Path) -> bool {
    let name = program.as_os_str().as_encoded_bytes();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .any(|cmdline| cmdline.starts_with(name))
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < LONG, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
