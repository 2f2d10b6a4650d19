//! The tests' helper, and for one of them a host: `own HOLD DIRECTORY SECONDS` starts a shell with processes that try to
//! get away, says so, and waits to be killed. No part of what users get.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use convoke_sandbox::{
    Access, HelperPath, HoldChoice, LayerSet, Network, OutputSpec, Policy, RunCommand, Shell, ShellConfig,
};

fn main() -> ExitCode {
    convoke_sandbox::helper_entry();
    let args: Vec<String> = std::env::args().collect();
    let [program, verb, hold, directory, seconds] = &args[..] else { return ExitCode::from(2) };
    let (hold, layers) = match (verb.as_str(), hold.as_str()) {
        ("own", "best") => (HoldChoice::Best, None),
        ("own", "subreaper") => (HoldChoice::Subreaper, None),
        ("own", "namespaces") => (HoldChoice::Best, Some(LayerSet::Namespaces)),
        ("own", "landlock") => (HoldChoice::Best, Some(LayerSet::Landlock)),
        _ => return ExitCode::from(2),
    };
    let mut policy = Policy::off(directory.into());
    if layers.is_some() {
        // The directory holds a workspace and a private directory.
        (policy.access, policy.network) = (Access::ReadOnly, Network::Off);
        policy.workspace = Path::new(directory).join("workspace");
        policy.private = Path::new(directory).join("private");
    }
    let config = ShellConfig {
        helper: HelperPath::new(program.into()),
        cwd: policy.workspace.clone(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        restored: None,
        hold,
        policy,
        layers,
    };
    match run(config, seconds) {
        Ok(never) => match never {},
        Err(error) => {
            say(&format!("failed: {error:?}"));
            ExitCode::FAILURE
        }
    }
}

fn run(config: ShellConfig, seconds: &str) -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    let output = OutputSpec::new(config.cwd.join("full"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut shell = Shell::start(config).await?;
        let command = format!(
            "sleep {seconds} & nohup sleep {seconds} >/dev/null 2>&1 & setsid sleep {seconds} & \
             (setsid bash -c 'sleep {seconds} & sleep {seconds} & wait' &) ; (sleep {seconds} &) ; sleep 0.1"
        );
        let deadline = Duration::from_secs(30);
        shell.run(RunCommand { command, deadline, output: output.clone() }, std::future::pending()).await?;
        say(&format!("{:?}", shell.hold()));
        let command = format!("while :; do sleep {seconds}; done");
        let deadline = Duration::from_secs(10_000);
        let finished = shell.run(RunCommand { command, deadline, output }, std::future::pending()).await?;
        Err(format!("the endless command ended: {finished:?}").into())
    })
}

#[expect(clippy::print_stdout, reason = "this program talks to the test that started it")]
fn say(line: &str) {
    println!("{line}");
}
