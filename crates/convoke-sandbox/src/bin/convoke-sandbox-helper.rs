//! The tests' helper, and for some of them a host. `own HOLD DIRECTORY SECONDS` starts a shell with processes
//! that try to get away, `crowd HOLD DIRECTORY SECONDS` twenty of them; both say so and wait to be killed.
//! `once HOLD DIRECTORY FILE` runs the command in a file, in the terminal it was started in. `asker ORDER`
//! asks a worker, whose orders are below. No part of what users get.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use convoke_sandbox::{
    Access, HelperPath, HoldChoice, LayerSet, Network, OutputSpec, Policy, Promise, RunCommand, Shell,
    ShellConfig, Templates, Worker, WorkerLimits,
};

/// The shells of a crowd, and what they run in turn.
const CROWD: usize = 20;
const KINDS: [&str; 6] = [
    "sleep {}",
    "sleep {} & sleep {}",
    "setsid sleep {} & sleep {}",
    "(setsid bash -c 'sleep {} & sleep {}' &); sleep {}",
    "sleep {} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; sleep {}",
    "(sleep {}; cat) & disown; sleep {}",
];

const MINUTE: Duration = Duration::from_secs(60);
const FOR_EVER: Duration = Duration::from_secs(10_000);

fn main() -> ExitCode {
    convoke_sandbox::helper_entry(|| Box::new(obey));
    let args: Vec<String> = std::env::args().collect();
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::from(2);
    };
    if let [program, verb, order] = &args[..]
        && verb == "asker"
    {
        return ended(runtime.block_on(ask(program, order)));
    }
    let [program, verb, hold, directory, what] = &args[..] else { return ExitCode::from(2) };
    let Some(config) = config(program, hold, directory) else { return ExitCode::from(2) };
    let done = runtime.block_on(async {
        match verb.as_str() {
            "own" => own(config, what).await.map(|never| match never {}),
            "crowd" => crowd(config, what).await.map(|never| match never {}),
            "once" => once(config, what).await,
            _ => Err("no such verb".into()),
        }
    });
    ended(done)
}

fn ended(done: Result<(), Box<dyn Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("failed: {error:?}"));
            ExitCode::FAILURE
        }
    }
}

/// A shell in a directory; where it is confined, that holds a workspace and a private directory. A word
/// `workspace` after the hold lets it write the workspace.
fn config(program: &str, hold: &str, directory: &str) -> Option<ShellConfig> {
    let (word, access) = match hold.split_once('-') {
        Some((word, "workspace")) => (word, Access::Workspace),
        _ => (hold, Access::ReadOnly),
    };
    let (hold, layers) = match word {
        "best" => (HoldChoice::Best, None),
        "subreaper" => (HoldChoice::Subreaper, None),
        "namespaces" => (HoldChoice::Best, Some(LayerSet::Namespaces)),
        "landlock" => (HoldChoice::Best, Some(LayerSet::Landlock)),
        "alone" => (HoldChoice::Subreaper, Some(LayerSet::Landlock)),
        _ => return None,
    };
    let mut policy = Policy::off(directory.into());
    if layers.is_some() {
        policy.access = access;
        policy.network = Network::Off;
        policy.workspace = Path::new(directory).join("workspace");
        policy.private = Path::new(directory).join("private");
    }
    Some(ShellConfig {
        helper: HelperPath::new(program.into()),
        cwd: policy.workspace.clone(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        restored: None,
        hold,
        policy,
        layers,
        templates: Templates::default(),
        promise: Promise::default(),
        writes: None,
    })
}

fn command(command: String, deadline: Duration, config: &ShellConfig) -> RunCommand {
    RunCommand { command, deadline, output: OutputSpec::new(config.cwd.join("full")) }
}

async fn own(config: ShellConfig, seconds: &str) -> Result<Infallible, Box<dyn Error>> {
    let mut shell = Shell::start(config.clone()).await?;
    let text = format!(
        "sleep {seconds} & nohup sleep {seconds} >/dev/null 2>&1 & setsid sleep {seconds} & \
         (setsid bash -c 'sleep {seconds} & sleep {seconds} & wait' &) ; (sleep {seconds} &) ; sleep 0.1"
    );
    shell.run(command(text, MINUTE, &config), std::future::pending()).await?;
    say(&format!("{:?}, forked: {}", shell.hold(), shell.is_forked()));
    let endless = format!("while :; do sleep {seconds}; done");
    let finished = shell.run(command(endless, FOR_EVER, &config), std::future::pending()).await?;
    Err(format!("the endless command ended: {finished:?}").into())
}

async fn crowd(config: ShellConfig, seconds: &str) -> Result<Infallible, Box<dyn Error>> {
    let mut shells = tokio::task::JoinSet::new();
    for number in 0..CROWD {
        let mut config = config.clone();
        if config.layers.is_some() {
            config.policy.private = config.policy.private.join(number.to_string());
            std::fs::create_dir(&config.policy.private)?;
        }
        let text = KINDS[number % KINDS.len()].replace("{}", seconds);
        shells.spawn(async move {
            let mut shell = Shell::start(config.clone()).await?;
            shell.run(command(text, FOR_EVER, &config), std::future::pending()).await
        });
    }
    say("begun");
    match shells.join_next().await {
        Some(ended) => Err(format!("an endless command ended: {ended:?}").into()),
        None => Err("there was no shell".into()),
    }
}

async fn once(config: ShellConfig, file: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let mut shell = Shell::start(config.clone()).await?;
    shell.run(command(text, MINUTE, &config), std::future::pending()).await?;
    Ok(shell.stop().await?)
}

async fn ask(program: &str, order: &str) -> Result<(), Box<dyn Error>> {
    let mut worker = Worker::start(&HelperPath::new(program.into()), WorkerLimits::default()).await?;
    say(&format!("{:?}", worker.process_id()));
    say(&worker.ask(order, FOR_EVER).await?);
    worker.stop().await;
    Ok(())
}

/// What a worker of the tests computes: what it is told, much of which it may not.
fn obey(order: &str) -> String {
    let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
    match verb {
        "echo" => rest.to_owned(),
        "length" => rest.len().to_string(),
        "words" => {
            // Hash maps need keys, which are random.
            let mut counts: HashMap<&str, usize> = HashMap::new();
            rest.split(' ').for_each(|word| *counts.entry(word).or_default() += 1);
            counts.len().to_string()
        }
        "repeat" => "x".repeat(rest.parse().unwrap_or(0)),
        "loop" => loop {
            std::hint::black_box(());
        },
        "hog" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
                std::hint::black_box(&kept);
            }
        }
        "sink" => sink(0).to_string(),
        "panic" => std::panic::panic_any("on request"),
        "leave" => std::process::exit(7),
        "open" => format!("{:?}", std::fs::File::open(rest)),
        "listen" => format!("{:?}", std::net::TcpListener::bind("127.0.0.1:0")),
        "spawn" => format!("{:?}", std::process::Command::new(rest).spawn()),
        "thread" => format!("{:?}", std::thread::Builder::new().spawn(|| ())),
        "hour" => local_hour().to_string(),
        "call" => {
            let mut numbers = rest.split(' ').map(|word| word.parse().unwrap_or(0));
            call(std::array::from_fn(|_| numbers.next().unwrap_or(0)))
        }
        _ => format!("there is no order {verb}"),
    }
}

/// Recurses until there is no stack left.
fn sink(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    if frame[0] == u64::MAX { 0 } else { 1 + sink(depth + 1) + frame[1] }
}

/// The hour of the epoch in the local time zone, for which the C library looks at files.
#[expect(unsafe_code, reason = "the standard library knows no time zones")]
fn local_hour() -> i32 {
    let epoch = 0;
    // SAFETY: an all-zero `tm` is valid, and both it and the time are valid for the length of the call.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const epoch, &raw mut parts);
        libc::mktime(&raw mut parts);
        parts.tm_hour
    }
}

/// Any system call; says what came back.
#[expect(unsafe_code, reason = "only what is past every wrapper shows what the kernel lets through")]
fn call([number, a, b, c, d]: [i64; 5]) -> String {
    // SAFETY: the tests ask for calls that are refused, fail, or touch no memory of this process that it
    // needs later.
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    match result {
        -1 => format!("{:?}", std::io::Error::last_os_error().raw_os_error()),
        result => result.to_string(),
    }
}

#[expect(clippy::print_stdout, reason = "this program talks to the test that started it")]
fn say(line: &str) {
    println!("{line}");
}
