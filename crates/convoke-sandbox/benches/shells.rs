//! The processor time of one shell with one command, from its start to its end: under each set of layers with
//! helpers that are forked from a template, and alone; beside `bash -c` for the same command. Each way is
//! played in a process of its own whose processes are all waited for, so that none is left out.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sandbox::{
    Access, HelperPath, HoldChoice, LayerSet, Limits, Network, OutputSpec, Policy, RunCommand, Shell,
    ShellConfig, Templates, remove_private,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::waitpid;

const SHELLS: usize = 200;
const ROUNDS: usize = 5;
const COMMAND: &str = "ls";
const WAYS: [&str; 6] = ["bash", "nothing", "off", "bubblewrap", "bubblewrap_alone", "landlock"];

fn main() {
    // This executable is also the helper under which commands live.
    convoke_sandbox::helper_entry(|| Box::new(str::to_owned));
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["play", "nothing", ..] => {}
        ["play", "bash", ..] => plain(),
        ["play", way, ..] => tokio::runtime::Runtime::new().unwrap().block_on(shells(way)),
        _ => compare(),
    }
}

fn compare() {
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    let mut figures = [const { Vec::new() }; WAYS.len()];
    let mut walls = [const { Vec::new() }; WAYS.len()];
    for _ in 0..ROUNDS {
        for (at, way) in WAYS.into_iter().enumerate() {
            let before = processor();
            let since = Instant::now();
            let mut play = Command::new(std::env::current_exe().unwrap());
            play.args(["play", way]).stdin(Stdio::null());
            assert!(play.status().unwrap().success(), "{way}");
            walls[at].push(since.elapsed());
            figures[at].push(processor() - before);
        }
    }
    let each = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all[all.len() / 2].as_secs_f64() * 1e3 / SHELLS as f64
    };
    let walls = walls.map(each);
    let figures = figures.map(each);
    for ((way, used), wall) in WAYS.into_iter().zip(figures).zip(walls) {
        println!(
            "shell_{way}_processor_ms {used:.2} ({:.2} above `bash -c {COMMAND}`, {:.2} times it; {wall:.2} ms \
                one after another; median of {ROUNDS} times {SHELLS})",
            used - figures[0],
            used / figures[0]
        );
    }
}

/// What all processes below this one have used, once they have ended.
fn processor() -> Duration {
    let this = std::process::id();
    let children = || std::fs::read_to_string(format!("/proc/{this}/task/{this}/children")).unwrap();
    while let Some(child) = children().split_whitespace().next() {
        waitpid(nix::unistd::Pid::from_raw(child.parse().unwrap()), None).unwrap();
    }
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = used.user_time().num_microseconds() + used.system_time().num_microseconds();
    Duration::from_micros(micros.try_into().unwrap())
}

fn plain() {
    for _ in 0..SHELLS {
        let mut command = Command::new("bash");
        assert!(command.args(["-c", COMMAND]).stdout(Stdio::null()).status().unwrap().success());
    }
}

async fn shells(way: &str) {
    let place = std::env::temp_dir().join(format!("convoke-shells-{}", std::process::id()));
    std::fs::create_dir_all(place.join("work")).unwrap();
    std::fs::write(place.join("work/file"), "text\n").unwrap();
    let shared = Templates::default();
    for number in 0..SHELLS {
        let private = place.join(format!("private-{number}"));
        std::fs::create_dir_all(&private).unwrap();
        let mut shell = Shell::start(config(way, &place.join("work"), &private, &shared)).await.unwrap();
        let command = RunCommand {
            command: COMMAND.to_owned(),
            deadline: Duration::from_secs(60),
            output: OutputSpec::new(place.join("full")),
        };
        let finished = shell.run(command, std::future::pending()).await.unwrap();
        assert_eq!(finished.output.text.trim(), "file");
        shell.stop().await.unwrap();
        remove_private(&private);
    }
    remove_private(&place);
}

fn config(way: &str, workspace: &Path, private: &Path, shared: &Templates) -> ShellConfig {
    let (layers, access) = match way {
        "off" => (None, Access::Off),
        "landlock" => (Some(LayerSet::Landlock), Access::ReadOnly),
        _ => (Some(LayerSet::Namespaces), Access::ReadOnly),
    };
    let policy = Policy {
        access,
        network: Network::Off,
        limits: Limits::default(),
        workspace: workspace.to_owned(),
        private: private.to_owned(),
        hidden: vec!["/root".into(), "/home".into()],
        readable: Vec::new(),
        caches: Vec::new(),
        masked: Vec::new(),
        own_git: None,
    };
    // A template that forks one helper is a helper that is started alone, and then some.
    let templates = if way.ends_with("alone") { Templates::default() } else { shared.clone() };
    ShellConfig {
        helper: HelperPath::new(std::env::current_exe().unwrap()),
        cwd: workspace.to_owned(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        restored: None,
        hold: HoldChoice::Best,
        policy,
        layers,
        templates,
        promise: Default::default(),
        writes: None,
    }
}
