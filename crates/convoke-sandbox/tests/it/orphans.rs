//! Many shells at once, and their certain end: twenty whose host is killed, and sixty-four whose commands are
//! cancelled. The times are printed; what is asserted leaves room for a busy machine.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sandbox::{
    Access, Ending, HoldChoice, LayerSet, Network, OutputSpec, Policy, RunCommand, Shell, ShellConfig,
    Templates,
};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{LONG, helper, readable_copy, sleepers, unique_seconds, until};

/// The unprivileged user of most systems.
const NOBODY: u32 = 65534;

/// What the twenty shells of the helper's crowd start, see `KINDS` there: twelve processes by every six
/// shells.
const CROWD_SLEEPS: usize = 3 * 12 + 1 + 2;

const CANCELLED: usize = 64;

/// One second is promised; a busy machine has five.
const AFTER_KILL: Duration = Duration::from_secs(5);

#[tokio::test]
async fn kill_9_of_a_host_with_twenty_shells_leaves_nothing_and_touches_nobody_else() {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    for hold in ["best", "subreaper", "namespaces", "landlock", "alone"] {
        check_crowd(hold, None).await;
        if root {
            check_crowd(hold, Some(NOBODY)).await;
        }
    }
    if !root {
        println!("this is an ordinary user: the half for root was not run");
    }
}

async fn check_crowd(hold: &str, user: Option<u32>) {
    let dir = TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = readable_copy(&helper().program, dir.path());
    for name in ["workspace", "private"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        std::os::unix::fs::chown(dir.path().join(name), user, user).unwrap();
    }
    let seconds = unique_seconds();
    let others = unique_seconds();
    let as_user = |command: &mut Command| {
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
    };
    let mut stranger = Command::new("sleep");
    as_user(stranger.arg(&others));
    let _stranger = Ours(stranger.spawn().unwrap());
    let mut host = Command::new(&program);
    as_user(host.args(["crowd", hold]).arg(dir.path()).arg(&seconds).stdout(Stdio::piped()));
    let mut host = Ours(host.spawn().unwrap());
    let mut lines = BufReader::new(host.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    until("all sleep", || sleepers(&seconds) == CROWD_SLEEPS || host_failed(&program)).await;
    if sleepers(&seconds) != CROWD_SLEEPS {
        let why = lines.next().unwrap().unwrap();
        assert!(why.contains("bubblewrap"), "{hold}: {why}");
        println!("not run: {why}");
        return;
    }
    host.0.kill().unwrap();
    let since = Instant::now();
    host.0.wait().unwrap();
    until("all are gone", || sleepers(&seconds) == 0 && !anyone_runs(&program)).await;
    let took = since.elapsed();
    println!("twenty shells, {hold}, user {user:?}: nothing is left {took:?} after kill -9 of their host");
    assert!(took < AFTER_KILL, "{hold}: it took {took:?}");
    assert_eq!(sleepers(&others), 1, "the stranger lives");
    convoke_sandbox::remove_private(&dir.path().join("private"));
}

/// Ends a process of ours, however the test ends.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn host_failed(program: &Path) -> bool {
    !anyone_runs(program)
}

fn anyone_runs(program: &Path) -> bool {
    let name = program.as_os_str().as_encoded_bytes();
    let lines = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    let mut running = lines.filter(|line| line.starts_with(name));
    running.next().is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_commands_are_cancelled_at_once() {
    let layers = convoke_sandbox::probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    for set in [None, Some(LayerSet::Landlock), Some(LayerSet::Namespaces)] {
        let held = convoke_sandbox::hold(&layers, Access::ReadOnly, &Network::Off, set);
        if set.is_some() && held.as_ref().map(|held| held.set) != Ok(set) {
            println!("not run: {set:?} cannot be had here: {held:?}");
            continue;
        }
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("workspace")).unwrap();
        let seconds = unique_seconds();
        let (cancel, cancelled) = watch::channel(false);
        let mut running = JoinSet::new();
        for number in 0..CANCELLED {
            let private = dir.path().join(number.to_string());
            std::fs::create_dir(&private).unwrap();
            let mut policy = Policy::off(dir.path().join("workspace"));
            if set.is_some() {
                policy = Policy { access: Access::ReadOnly, network: Network::Off, private, ..policy };
            }
            let config = ShellConfig {
                helper: helper(),
                cwd: policy.workspace.clone(),
                env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
                restored: None,
                hold: HoldChoice::Best,
                policy,
                layers: set,
                templates: Templates::default(),
                promise: Default::default(),
                writes: None,
            };
            let command = RunCommand {
                command: format!("sleep {seconds} & sleep {seconds}"),
                deadline: LONG * 10,
                output: OutputSpec::new(dir.path().join("full")),
            };
            let mut cancelled = cancelled.clone();
            running.spawn(async move {
                let mut shell = Shell::start(config).await.unwrap();
                let cancelled = async { drop(cancelled.wait_for(|cancelled| *cancelled).await.unwrap()) };
                let finished = shell.run(command, cancelled).await.unwrap();
                (Instant::now(), finished.ending, shell)
            });
        }
        until("all sleep", || sleepers(&seconds) == 2 * CANCELLED).await;
        let since = Instant::now();
        cancel.send(true).unwrap();
        let all = running.join_all().await;
        let took = all.iter().map(|(at, ..)| at.duration_since(since)).max().unwrap();
        let left = sleepers(&seconds);
        println!("{CANCELLED} commands cancelled at once, {set:?}: the last had ended after {took:?}");
        assert!(all.iter().all(|(_, ending, _)| *ending == Ending::Cancelled));
        assert_eq!(left, 0);
        assert!(took < Duration::from_secs(10), "{took:?}");
        for number in 0..CANCELLED {
            convoke_sandbox::remove_private(&dir.path().join(number.to_string()));
        }
    }
}
