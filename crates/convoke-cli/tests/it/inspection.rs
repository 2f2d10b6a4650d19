//! Whether other processes can look into this one: its environment and memory hold keys.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A user that is not root, for a test that runs as root.
const SOMEBODY: u32 = 65_532;

#[test]
fn processes_of_the_same_user_cannot_read_its_environment() {
    // The copy can be read by every user: a program that cannot be read cannot be inspected by itself.
    // Another process makes it, because a file that a fork of this one still has open for writing cannot be
    // started.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("convoke");
    let copied =
        Command::new("install").args(["-m", "755", env!("CARGO_BIN_EXE_convoke")]).arg(&program).status();
    assert!(copied.unwrap().success());
    let own = fs::metadata(dir.path()).unwrap().uid();
    let user = if own == 0 { SOMEBODY } else { own };
    let mut command = Command::new(&program);
    command.args(["--quiet", "sim"]).current_dir(dir.path()).env_clear().env("HOME", dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if own == 0 {
        command.uid(SOMEBODY);
    }
    let mut child = command.spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let uid_of = |path: String| fs::metadata(path).map(|meta| meta.uid());
    let process = uid_of(format!("/proc/{}", child.id()));
    let environ = uid_of(format!("/proc/{}/environ", child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(address.starts_with("http://"), "{address:?}");
    // The kernel gives what is in the directory of such a process to root, and leaves the directory to the
    // user.
    assert_eq!((process.unwrap(), environ.unwrap()), (user, 0));
}
