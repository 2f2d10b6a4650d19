//! Counts what a command of `convoke` does, by its system calls: a process of its own starts the command and
//! traces it with all that it starts, as a debugger does. Nothing has to be installed for it.

use std::collections::HashSet;
use std::process::Stdio;

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::stage::{Stage, to_its_end};

/// Names the command to the process that traces it, a word a line.
const COMMAND: &str = "CONVOKE_TRACED";

/// What a command did, with everything that it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Programs that were started.
    pub(crate) programs: u32,
    /// Processes that were made; threads are none.
    pub(crate) processes: u32,
    /// Waits until something is on the disk; only counted where the registers are known (x86-64).
    pub(crate) syncs: u32,
    /// Bytes that were written at a place in a file, which is how the journal writes; counted likewise.
    pub(crate) journal_bytes: u64,
    code: i32,
}

/// Runs a command of `convoke` on this stage and counts; it has to succeed. `None` where no process may be
/// traced.
pub(crate) async fn traced(stage: &Stage, args: &[&str]) -> Option<Counts> {
    let mut tracer = stage.prepare(&std::env::current_exe().unwrap());
    let words = [&[env!("CARGO_BIN_EXE_convoke")], args].concat();
    tracer.args(["--exact", "traced::the_tracer", "--nocapture"]).env(COMMAND, words.join("\n"));
    let seen = to_its_end(tracer).await.exits(0);
    if seen.stdout.contains("may not trace") {
        return None;
    }
    let line = seen.stdout.lines().find_map(|line| line.split_once("counts: ").map(|(_, json)| json));
    let counts: Counts = serde_json::from_str(line.unwrap_or_else(|| panic!("{seen:?}"))).unwrap();
    assert_eq!(counts.code, 0, "{args:?}: {seen:?}");
    Some(counts)
}

/// The process that traces, if it was told what; among the tests it does nothing. It is alone in its process,
/// so that it can wait for any child.
#[test]
fn the_tracer() {
    let Some(words) = std::env::var_os(COMMAND) else { return };
    // Stopped before it becomes the command, so that nothing is missed.
    let script = format!("unset {COMMAND}; kill -STOP $$; exec \"$0\" \"$@\"");
    let words = words.into_string().unwrap();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).args(words.split('\n')).stdin(Stdio::null()).stdout(Stdio::null());
    let child = Pid::from_raw(command.spawn().unwrap().id().try_into().unwrap());
    assert!(matches!(waitpid(child, Some(WaitPidFlag::WUNTRACED)), Ok(WaitStatus::Stopped(..))));
    let follow = Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK | Options::PTRACE_O_TRACECLONE;
    let options =
        follow | Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL;
    if ptrace::seize(child, options).is_err() {
        kill(child, Signal::SIGKILL).unwrap();
        println!("may not trace");
        return;
    }
    kill(child, Signal::SIGCONT).unwrap();
    let mut counts = follow_all(child);
    // The shell becoming the command is none of its programs.
    counts.programs -= 1;
    println!("\ncounts: {}", serde_json::to_string(&counts).unwrap());
}

fn follow_all(child: Pid) -> Counts {
    let mut counts = Counts::default();
    // Those that are within a call: each call stops a thread twice.
    let mut within = HashSet::new();
    loop {
        let (stopped, signal) = match waitpid(None, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::PtraceSyscall(pid)) => {
                if within.remove(&pid) {
                    count(pid, &mut counts);
                } else {
                    within.insert(pid);
                }
                (pid, None)
            }
            Ok(WaitStatus::PtraceEvent(pid, _, event)) => {
                match event {
                    libc::PTRACE_EVENT_EXEC => counts.programs += 1,
                    libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => counts.processes += 1,
                    libc::PTRACE_EVENT_CLONE => counts.processes += u32::from(is_process(pid)),
                    _ => {}
                }
                (pid, None)
            }
            Ok(WaitStatus::Stopped(pid, signal)) => (pid, Some(signal)),
            Ok(WaitStatus::Exited(pid, code)) => {
                within.remove(&pid);
                if pid == child {
                    counts.code = code;
                }
                continue;
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                within.remove(&pid);
                if pid == child {
                    counts.code = 128 + signal as i32;
                }
                continue;
            }
            Ok(_) => continue,
            Err(Errno::ECHILD) => return counts,
            Err(error) => panic!("{error}"),
        };
        // One that was killed meanwhile is told of next.
        let _ = ptrace::syscall(stopped, signal);
    }
}

/// Whether what was just made is a process and not a thread: it leads its own group of threads.
fn is_process(parent: Pid) -> bool {
    let Ok(made) = ptrace::getevent(parent) else { return false };
    let status = std::fs::read_to_string(format!("/proc/{made}/status")).unwrap_or_default();
    status.lines().any(|line| line.split_once(":\t") == Some(("Tgid", made.to_string().as_str())))
}

#[cfg(target_arch = "x86_64")]
fn count(pid: Pid, counts: &mut Counts) {
    let Ok(registers) = ptrace::getregs(pid) else { return };
    match i64::try_from(registers.orig_rax) {
        Ok(libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs | libc::SYS_sync) => counts.syncs += 1,
        // A negative result is an error.
        Ok(libc::SYS_pwrite64) => {
            let written = registers.rax.cast_signed();
            counts.journal_bytes += u64::try_from(written).unwrap_or_default();
        }
        _ => {}
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn count(_pid: Pid, _counts: &mut Counts) {}
