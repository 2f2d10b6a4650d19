//! Convoke as a library: ask one question about a directory and print the answer.
//!
//! Runs by itself against the simulator's offline model: `cargo run -p convoke-runtime --example review -- DIR`

#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use convoke_claude::{Auth, Client, ClientConfig, Endpoint, Models, OFFLINE_MODEL, Secret, capabilities};
use convoke_journal::{Journal, Location, Options, Process};
use convoke_kernel::Outcome;
use convoke_runtime::{
    Clock, Config, Confine, Governor, HelperPath, Ids, Programs, Runtime, Start, Stop, Take, helper_entry,
};
use convoke_sandbox::{Access, Network, hold, probe};
use convoke_sim::{Offline, SimConfig, Simulator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The commands of an agent live under this same program, started again as their helper.
    helper_entry();
    tokio::runtime::Runtime::new()?.block_on(review())
}

async fn review() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from).canonicalize()?;
    let simulator = Simulator::start(SimConfig::new(Offline)).await?;
    let auth = Auth { key: Some(Secret::new("the simulator takes any")), bearer: None };
    let ids = Ids::random();
    let journal = Journal::open(Location::Memory, Options::new(Process::current(ids.bits()?))).await?;
    let scratch = tempfile::tempdir()?;
    let path = std::env::var_os("PATH").unwrap_or_default().to_string_lossy().into_owned();
    let helper = HelperPath::new(std::env::current_exe()?);
    // Which layers of the sandbox hold on this machine; where none do, this ends here and nothing has been asked.
    let layers = probe(&helper, Some(path.as_ref()), &dir).await?;
    let held = hold(&layers, Access::Workspace, &Network::Off, None)?;
    let runtime = Runtime::new(Config {
        journal,
        client: Client::new(ClientConfig { base_url: simulator.url(), auth, ..ClientConfig::default() })?,
        models: Models::builtin(),
        clock: Clock::system(),
        ids,
        helper: helper.clone(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        outputs: scratch.path().join("outputs"),
        spools: vec![scratch.path().join("spool")],
        drain: Duration::from_secs(10),
        governor: Governor::new(Clock::system(), 10),
        agents_at_once: 20,
        confine: Confine { set: held.set, ..Confine::nothing(scratch.path().join("private")) },
        forbidden: Default::default(),
        team: convoke_runtime::TeamConfig::default(),
        programs: Programs::without_library(&helper),
        trees: None,
        asker: None,
        crash: None,
    });
    let model = Models::builtin().get(OFFLINE_MODEL);
    let capabilities = capabilities(&model, &Endpoint::anthropic(), None)?;
    let start = Start { capabilities, ..Start::new(OFFLINE_MODEL, dir) };
    let agent = runtime.start(start, "Review this directory").await?;
    let ended = runtime.drive(&agent, Take::New, Stop::never(), None).await?;
    match ended.outcome {
        Some(Outcome::Ok { text }) => println!("{text}"),
        Some(Outcome::Failed { message, .. }) => return Err(message.into()),
        None => return Err("it was stopped".into()),
    }
    Ok(())
}
