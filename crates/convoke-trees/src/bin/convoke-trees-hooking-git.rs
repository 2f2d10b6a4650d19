//! The tests' stand-in for a git that runs hooks which a repository's configuration names, as git 2.54 does.
//! It runs them before a ref is moved, and then becomes the machine's git. It is no part of Convoke.
#![expect(clippy::print_stderr, reason = "a stand-in for a program that prints")]

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.iter().any(|arg| arg == "update-ref") {
        let git_dir = args.iter().find_map(|arg| arg.as_bytes().strip_prefix(b"--git-dir="));
        let config = git_dir.map(|dir| PathBuf::from(std::ffi::OsStr::from_bytes(dir)).join("config"));
        let text = config.and_then(|config| std::fs::read_to_string(config).ok()).unwrap_or_default();
        for command in hooks(&text, "reference-transaction") {
            let ran = Command::new("sh").args(["-c", &command, "sh", "prepared"]).status();
            if !ran.as_ref().is_ok_and(std::process::ExitStatus::success) {
                eprintln!("fatal: the hook '{command}' could not be run: {ran:?}");
                return ExitCode::from(128);
            }
        }
    }
    match become_git(&args) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("fatal: the machine's git could not be run: {error}");
            ExitCode::from(128)
        }
    }
}

/// The commands that are configured for an event.
fn hooks(config: &str, event: &str) -> Vec<String> {
    let sections = config.split("\n[").filter(|section| section.starts_with("hook \""));
    let value = |section: &str, name: &str| {
        let line = section
            .lines()
            .map(str::trim)
            .find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let wanted = sections.filter(|section| value(section, "event").as_deref() == Some(event));
    wanted.filter_map(|section| value(section, "command")).collect()
}

/// Becomes the machine's git, from memory: only this program itself may be executed where it is confined.
fn become_git(args: &[OsString]) -> io::Result<std::convert::Infallible> {
    let mut machines =
        ["/usr/local/bin/git", "/usr/bin/git"].into_iter().filter_map(|path| File::open(path).ok());
    let mut git = machines.next().ok_or(io::ErrorKind::NotFound)?;
    let mut memory = File::from(rustix::fs::memfd_create("git", rustix::fs::MemfdFlags::empty())?);
    io::copy(&mut git, &mut memory)?;
    Err(Command::new(format!("/proc/self/fd/{}", memory.as_raw_fd())).arg0("git").args(args).exec())
}
