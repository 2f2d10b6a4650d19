//! Workers as their users see them: they answer, they can do nothing else, and they end when they must.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sandbox::{Access, Ending, Error, HelperPath, LayerSet, Worker, WorkerEnd, WorkerLimits};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::confine::{World, holds};
use crate::{LONG, helper, readable_copy, until};

/// The unprivileged user of most systems.
const NOBODY: u32 = 65534;

/// The time for a computation that never ends, in which any other has replied.
const SHORT: Duration = Duration::from_millis(200);

async fn start() -> Worker {
    start_with(WorkerLimits::default()).await
}

async fn start_with(limits: WorkerLimits) -> Worker {
    Worker::start(&helper(), limits).await.unwrap()
}

async fn check(order: &str, expected: &str) {
    assert_eq!(start().await.ask(order, LONG).await.unwrap(), expected, "{order}");
}

/// The order ends the worker, and the reason is said in words; after that it can be asked nothing.
async fn check_died(order: &str, expected: &str) {
    let mut worker = start_with(WorkerLimits { memory_bytes: 64 << 20, ..WorkerLimits::default() }).await;
    let end = worker.ask(order, LONG).await;
    let Err(WorkerEnd::Died { how }) = &end else { panic!("{order}: {end:?}") };
    assert!(how.contains(expected), "{order}: {how}");
    assert_eq!(worker.process_id(), None, "{order}: it is gone");
    assert!(matches!(worker.ask("echo x", LONG).await, Err(WorkerEnd::Died { .. })), "{order}");
}

#[tokio::test]
async fn a_worker_answers_one_question_after_the_other() {
    let mut worker = start().await;
    for (order, expected) in
        [("echo one\ntwo ä", "one\ntwo ä"), ("echo", ""), ("words a b a", "2"), ("length ab", "2")]
    {
        assert_eq!(worker.ask(order, LONG).await.unwrap(), expected, "{order}");
    }
    let process = worker.process_id().unwrap();
    worker.stop().await;
    assert!(!is_alive(process));
}

#[tokio::test]
async fn ten_mebibytes_go_both_ways() {
    let text = "y".repeat(10 << 20);
    check(&format!("echo {text}"), &text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_workers_answer_at_once() {
    let since = Instant::now();
    let mut workers = JoinSet::new();
    for number in 0..64 {
        workers.spawn(async move {
            let mut worker = start().await;
            assert_eq!(worker.ask(&format!("echo {number}"), LONG).await.unwrap(), number.to_string());
            worker
        });
    }
    let all = workers.join_all().await;
    println!("64 workers were started and had answered after {:?}", since.elapsed());
    assert_eq!(all.len(), 64);
    for mut worker in all {
        assert_eq!(worker.ask("words once more", LONG).await.unwrap(), "2");
    }
}

#[tokio::test]
async fn an_endless_computation_is_killed_at_its_deadline_and_others_go_on() {
    let mut endless = start().await;
    let mut other = start().await;
    let process = endless.process_id().unwrap();
    let since = Instant::now();
    let (end, reply) = tokio::join!(endless.ask("loop", SHORT), other.ask("echo on", LONG));
    assert!(matches!(end, Err(WorkerEnd::Deadline)), "{end:?}");
    assert_eq!(reply.unwrap(), "on");
    assert!(since.elapsed() >= SHORT && !is_alive(process), "it is gone when the deadline is told");
    assert_eq!(other.ask("echo still", LONG).await.unwrap(), "still");
    assert!(matches!(endless.ask("echo x", LONG).await, Err(WorkerEnd::Died { .. })));
}

#[tokio::test]
async fn a_question_given_up_half_way_never_gets_another_ones_reply() {
    let mut worker = start().await;
    let given_up = tokio::time::timeout(SHORT, worker.ask("loop", LONG)).await;
    assert!(given_up.is_err());
    assert!(matches!(worker.ask("echo x", LONG).await, Err(WorkerEnd::Died { .. })));
}

#[tokio::test]
async fn a_dropped_worker_is_killed_in_the_midst_of_computing() {
    let mut worker = start().await;
    let process = worker.process_id().unwrap();
    let given_up = tokio::time::timeout(SHORT, worker.ask("loop", LONG)).await;
    assert!(given_up.is_err() && is_alive(process));
    drop(worker);
    until("it is gone", || !is_alive(process)).await;
}

#[tokio::test]
async fn whatever_reaches_out_ends_the_worker() {
    for order in ["open /etc/passwd", "open /dev/null", "listen", "spawn /bin/true", "thread"] {
        check_died(order, "may not have").await;
    }
    let host = std::process::id();
    for number in [libc::SYS_kill, libc::SYS_ptrace, libc::SYS_pidfd_open] {
        check_died(&format!("call {number} {host} 0 0 0"), "may not have").await;
    }
    // Even a signal that a worker may send is for itself alone.
    check_died(&format!("call {} {host} {host} {} 0", libc::SYS_tgkill, libc::SIGABRT), "may not have").await;
    for (number, arguments) in [
        (libc::SYS_write, "3 0 0 0"),
        (libc::SYS_read, "1 0 0 0"),
        // Code that is made as it goes, memory that is shared, and memory that grows past its limit.
        (libc::SYS_mmap, "0 4096 7 34"),
        (libc::SYS_mmap, "0 4096 3 33"),
        (libc::SYS_mmap, "0 4096 3 290"),
        (libc::SYS_mprotect, "0 0 4 0"),
        (libc::SYS_futex, "0 4 0 0"),
    ] {
        check_died(&format!("call {number} {arguments}"), "may not have").await;
    }
}

/// Traps that the kernel itself puts into programs under observation, which it lets pass every filter and
/// which do nothing elsewhere.
#[cfg(target_arch = "x86_64")]
const TRAPS: &[i64] = &[335, 336];
#[cfg(not(target_arch = "x86_64"))]
const TRAPS: &[i64] = &[];

/// Every number that kernels know, and one of those by which x86 kernels know the same calls a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_all_system_calls_only_the_listed_ones_do_not_end_the_worker() {
    let mut survived = JoinSet::new();
    for part in 0..4 {
        survived.spawn(async move {
            let mut survived = Vec::new();
            let mut worker = start().await;
            for number in (0..480).chain([0x4000_0000 + libc::SYS_getpid]).filter(|number| number % 4 == part)
            {
                match worker.ask(&format!("call {number} 0 0 0 0"), LONG).await {
                    Err(WorkerEnd::Died { how }) if how.contains("may not have") => {}
                    // It ended in another way, or lives on.
                    _ => survived.push(number),
                }
                if worker.process_id().is_none() || survived.last() == Some(&number) {
                    worker = start().await;
                }
            }
            survived
        });
    }
    let mut survived = survived.join_all().await.concat();
    survived.retain(|number| !TRAPS.contains(number));
    survived.sort_unstable();
    let mut expected = vec![
        libc::SYS_read,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_futex,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_sched_getaffinity,
    ];
    #[cfg(target_arch = "x86_64")]
    expected.push(libc::SYS_time);
    expected.sort_unstable();
    assert_eq!(survived, expected);
}

#[tokio::test]
async fn the_kernel_tells_no_time_and_takes_no_words() {
    let refused = format!("{:?}", Some(libc::ENOSYS));
    for number in [libc::SYS_clock_gettime, libc::SYS_gettimeofday] {
        check(&format!("call {number} 0 0 0 0"), &refused).await;
    }
    check(&format!("call {} 2 0 0 0", libc::SYS_write), &format!("{:?}", Some(libc::EBADF))).await;
}

#[tokio::test]
async fn the_local_time_zone_is_utc_and_no_file_is_read_for_it() {
    check("hour", "0").await;
}

#[tokio::test]
async fn too_much_memory_stack_or_processor_time_ends_the_worker() {
    check_died("hog", "no more memory").await;
    check_died("sink", "stack overflowed").await;
    let mut worker = start_with(WorkerLimits { cpu_seconds: 1, ..WorkerLimits::default() }).await;
    let end = worker.ask("loop", LONG).await;
    assert!(matches!(&end, Err(WorkerEnd::Died { how }) if how.contains("1 s of processor time")), "{end:?}");
}

#[tokio::test]
async fn a_panic_or_an_exit_is_an_end_and_no_hang() {
    check_died("panic", "panicked").await;
    check_died("leave", "exit status: 7").await;
}

#[tokio::test]
async fn a_reply_that_is_too_long_is_not_read() {
    let mut worker = start_with(WorkerLimits { reply_bytes: 1_000, ..WorkerLimits::default() }).await;
    assert_eq!(worker.ask("repeat 1000", LONG).await.unwrap().len(), 1_000);
    let end = worker.ask("repeat 1001", LONG).await;
    assert!(matches!(end, Err(WorkerEnd::TooLong { bytes: 1_001 })), "{end:?}");
    assert_eq!(worker.process_id(), None);
}

#[tokio::test]
async fn a_worker_has_no_environment_but_its_time_zone_no_descriptor_and_no_terminal() {
    let worker = start().await;
    let at = PathBuf::from(format!("/proc/{}", worker.process_id().unwrap()));
    let status = std::fs::read_to_string(at.join("status")).unwrap();
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapPrm:\t0000000000000000", "Threads:\t2"] {
        assert!(status.contains(line), "{line}\n{status}");
    }
    // The rest only root may look at, because a worker cannot be inspected.
    if let Ok(open) = std::fs::read_dir(at.join("fd")) {
        let mut open: Vec<String> =
            open.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        open.sort();
        assert_eq!(open, ["0", "1", "2"]);
        assert_eq!(std::fs::read(at.join("environ")).unwrap(), b"TZ=UTC0\0");
        assert_eq!(std::fs::read_link(at.join("cwd")).unwrap(), Path::new("/"));
    }
    let stat = std::fs::read_to_string(at.join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let process = worker.process_id().unwrap().to_string();
    assert_eq!((fields[3], fields[4]), (process.as_str(), "0"), "a session of its own, without a terminal");
}

#[tokio::test]
async fn what_cannot_be_locked_does_not_compute_and_says_why() {
    let dir = TempDir::new().unwrap();
    let none = HelperPath::new(dir.path().join("none"));
    assert!(matches!(Worker::start(&none, WorkerLimits::default()).await, Err(Error::HelperStart { .. })));
    let other = HelperPath::new("/bin/true".into());
    let refused = Worker::start(&other, WorkerLimits::default()).await;
    assert!(
        matches!(&refused, Err(Error::WorkerRefused { message }) if message.contains("ended")),
        "{refused:?}"
    );
    // Less address space than the program itself has mapped leaves no room for the stack to compute on.
    let refused = Command::new("bash")
        .args(["-c", "ulimit -v 200000; exec \"$0\" asker 'echo computed'"])
        .arg(helper().program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(
        said.contains("WorkerRefused") && said.contains("stack") && !said.contains("computed\n"),
        "{said}"
    );
}

#[test]
fn a_worker_started_by_hand_is_turned_away() {
    let output =
        Command::new(helper().program).args(["__helper", "worker", "1", "1"]).stdin(Stdio::null()).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

#[tokio::test]
async fn an_ordinary_user_has_workers_and_kill_9_of_the_host_ends_them() {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    for user in [None, root.then_some(NOBODY)] {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let program = readable_copy(&helper().program, dir.path());
        let asker = |order: &str| {
            let mut command = Command::new(&program);
            command.args(["asker", order]).stdout(Stdio::piped());
            if let Some(user) = user {
                command.uid(user).gid(user);
            }
            command.spawn().unwrap()
        };
        let said = asker("words a b").wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&said.stdout).ends_with("\n2\n"), "{user:?}: {said:?}");
        // In the midst of computing, where it does not see that its pipe has closed.
        let mut host = asker("loop");
        let mut line = String::new();
        BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let process = line.trim().trim_start_matches("Some(").trim_end_matches(')').parse().unwrap();
        until("it computes", || is_busy(process)).await;
        host.kill().unwrap();
        let since = Instant::now();
        host.wait().unwrap();
        until("it is gone", || !is_alive(process)).await;
        println!("{user:?}: after kill -9 of the host its worker was gone within {:?}", since.elapsed());
    }
}

#[tokio::test]
async fn where_namespaces_are_forbidden_there_are_workers_too() {
    if !holds(LayerSet::Landlock).await {
        return;
    }
    let world = World::new();
    let program = readable_copy(&helper().program, &world.at("home/project"));
    let name = program.file_name().unwrap().to_str().unwrap();
    let mut inside = world.shell(LayerSet::Landlock, world.policy(Access::ReadOnly, "a")).await;
    let forbidden = inside.run("unshare --user true").await;
    assert!(!matches!(forbidden.ending, Ending::Exited(0)), "{forbidden:?}");
    let finished = inside.run(&format!("\"$PWD/{name}\" asker 'echo here' | tail -1")).await;
    assert_eq!(finished.output.text, "here\n", "{finished:?}");
}

fn is_alive(process: u32) -> bool {
    state(process).is_some_and(|state| state != "Z")
}

fn is_busy(process: u32) -> bool {
    // The first thread waits for ever; the second is the one that computes.
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks.flatten().any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()) == Some("R")
    })
}

fn state(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(stat.rsplit(')').next()?.split_whitespace().next()?.to_owned())
}
