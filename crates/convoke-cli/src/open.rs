//! Puts a runtime together from settings: journal, client, clock, ids and the places it writes to. It decides
//! nothing about a session; it only makes what a session needs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke_claude::{Auth, Client, Endpoint, Models, OFFLINE_MODEL, Proxy};
use convoke_journal::{Journal, Options, Outage, Process};
use convoke_kernel::{Callees, Capabilities, Child, Confinement, FanOut, LEAD, Limits, Membership};
use convoke_offline::Offline;
use convoke_runtime::{
    Asker, Clock, Config, Confine, Governor, HelperPath, Ids, Library, Programs, Runtime, Start, TeamConfig,
};
use convoke_sim::{Retention, SimConfig, Simulator};
use convoke_trees::HostPlaces;

use crate::failure::{Exit, Failure};
use crate::paths;
use crate::settings::{ModelSource, Origin, Settings};

/// How long a first signal waits for what is under way.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// Workers and verifiers at work for each request that may be under way: while one of them runs a command,
/// another can ask the model.
const AGENTS_PER_REQUEST: usize = 2;

/// What a team is called.
const TEAM: &str = "default";

/// Percent of a model's window above which a member begins a new history: the summary of the old one needs
/// room too.
const COMPACT_AT: u64 = 75;

/// A runtime and what it stands on.
pub(crate) struct Opened {
    pub(crate) runtime: Runtime,
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    /// Lives as long as the runtime that talks to it.
    _offline: Option<Simulator>,
}

/// Opens the journal of these settings as this process, and creates it if there is none. Says on stderr which
/// process a write waits for.
pub(crate) async fn journal(settings: &Settings) -> Result<Journal, Failure> {
    let journal = quiet_journal(settings).await?;
    tokio::spawn(tell_waits(journal.waits()));
    Ok(journal)
}

/// How often a wait that lasts is told again.
const TOLD_AGAIN: Duration = Duration::from_secs(10);

async fn tell_waits(mut waits: tokio::sync::watch::Receiver<Option<convoke_journal::AwaitedProcess>>) {
    let mut last: Option<tokio::time::Instant> = None;
    // Ends with the journal.
    while waits.changed().await.is_ok() {
        let waiting = waits.borrow_and_update().clone();
        if let Some(waiting) = waiting
            && last.is_none_or(|last| last.elapsed() >= TOLD_AGAIN)
        {
            last = Some(tokio::time::Instant::now());
            crate::stdio::tell(&crate::render::clean(&format!("{waiting}\n")));
        }
    }
}

/// After so long a person is told that a server is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// Whether a session's own screen tells of a server that is away.
static A_RUN_TELLS: AtomicBool = AtomicBool::new(false);

/// What is told of a server that is away, once that is worth a word.
pub(crate) fn away(outage: &Outage, longest: Duration) -> Option<String> {
    let waited = outage.since.elapsed();
    let reason = &outage.reason;
    (waited >= SOON).then(|| {
        let waited = waited.as_secs();
        let longest = longest.as_secs();
        format!(
            "the journal does not answer ({reason}), trying again for {waited} s; given up after {longest} s"
        )
    })
}

/// Says on stderr that the server is away, and that it is back, for commands that only look: a session tells
/// it itself.
pub(crate) async fn tell_outage(mut outage: tokio::sync::watch::Receiver<Option<Outage>>, longest: Duration) {
    // Ends with the journal.
    while outage.wait_for(Option::is_some).await.is_ok() {
        let mut pause = SOON;
        let began = tokio::time::Instant::now();
        loop {
            tokio::select! {
                over = outage.wait_for(Option::is_none) => {
                    if over.is_ok() && pause != SOON {
                        crate::stdio::tell(&format!("the journal answers again after {} \
                            s\n", began.elapsed().as_secs()));
                    }
                    break;
                }
                () = tokio::time::sleep(pause) => {}
            }
            if A_RUN_TELLS.load(Ordering::Relaxed) {
                return;
            }
            let told = outage.borrow().as_ref().and_then(|outage| away(outage, longest));
            if let Some(told) = told {
                crate::stdio::tell(&crate::render::clean(&format!("{told}\n")));
            }
            pause = TOLD_AGAIN;
        }
    }
}

/// The same for a screen of its own, on which nothing may be printed; it is not drawn yet while a server is
/// waited for.
pub(crate) async fn quiet_journal(settings: &Settings) -> Result<Journal, Failure> {
    let mut opening = std::pin::pin!(open_journal(settings));
    if settings.journal.is_on_a_server() {
        match tokio::time::timeout(SOON, &mut opening).await {
            Ok(opened) => return opened,
            Err(_) => {
                let place = &settings.journal;
                let longest = settings.postgres.1.as_secs();
                crate::stdio::tell(&format!(
                    "the journal at {place} does not answer yet; given up after {longest} s\n"
                ));
            }
        }
    }
    opening.await
}

async fn open_journal(settings: &Settings) -> Result<Journal, Failure> {
    let mut options = Options::new(Process::current(Ids::random().bits()?));
    options.lease_ttl = settings.team.lease.unwrap_or(options.lease_ttl);
    (options.connections, options.outage) = (settings.postgres.0 as usize, settings.postgres.1);
    // Nothing was started yet: whatever is wrong with it is a matter of what was configured.
    Journal::open(settings.journal.clone(), options)
        .await
        .map_err(|error| Failure { code: Exit::Usage, ..Failure::from(error) })
}

/// Puts a runtime together that asks this source.
pub(crate) async fn runtime(
    settings: &Settings,
    journal: Journal,
    source: &ModelSource,
    asker: Option<Asker>,
    confine: Confine,
    trees: Option<HostPlaces>,
    library: Library,
) -> Result<Opened, Failure> {
    A_RUN_TELLS.store(true, Ordering::Relaxed);
    if let Some(memory) = &confine.promise.memory {
        memory.settle();
    }
    let (client, offline) = match source {
        ModelSource::Api { base_url, key, bearer } => {
            let auth = Auth { key: key.clone(), bearer: bearer.clone() };
            (Client::new(settings.client_config(base_url.clone(), auth))?, None)
        }
        ModelSource::Offline => {
            let simulator = offline_model().await?;
            // Nothing that was configured for a real server is meant for this one.
            let config = convoke_claude::ClientConfig {
                base_url: simulator.url(),
                auth: Auth { key: Some(convoke_claude::Secret::new(OFFLINE_MODEL)), bearer: None },
                proxy: Proxy::Off,
                ..convoke_claude::ClientConfig::default()
            };
            (Client::new(config)?, Some(simulator))
        }
        ModelSource::Nothing => return Err(nobody_answers()),
    };
    let clock = Clock::system();
    let usual = TeamConfig::default();
    let claim_ttl = settings.team.claim_ttl.unwrap_or(usual.claim_ttl);
    let config = Config {
        journal: journal.clone(),
        client,
        models: settings.models.clone(),
        clock: clock.clone(),
        ids: Ids::random(),
        helper: HelperPath::new(paths::own_executable()?),
        env: settings.command_env.clone(),
        outputs: settings.outputs_dir(),
        spools: paths::spools(settings),
        drain: settings.drain,
        governor: Governor::seeded(clock.clone(), settings.fan_out.max_concurrent as usize, seed()?),
        agents_at_once: settings.fan_out.max_concurrent as usize * AGENTS_PER_REQUEST,
        confine,
        forbidden: settings.asking.forbidden(),
        team: TeamConfig { idle: settings.team.idle, claim_ttl, ..usual },
        programs: Programs {
            one_model: matches!(source, ModelSource::Offline),
            ..Programs::new(library, settings.server.clone())
        },
        trees,
        asker,
        tools: Default::default(),
        crash: None,
    };
    Ok(Opened { runtime: Runtime::new(config), journal, clock, _offline: offline })
}

/// What a new lead is made of.
pub(crate) fn start(
    settings: &Settings,
    source: &ModelSource,
    fresh: bool,
    quoted: bool,
    confinement: Confinement,
) -> Result<Start, Failure> {
    let (model, capabilities) = match source {
        ModelSource::Offline => {
            let row = Models::builtin().get(OFFLINE_MODEL);
            let capabilities = convoke_claude::capabilities(&row, &Endpoint::anthropic(), None)?;
            (row.id, capabilities)
        }
        ModelSource::Api { .. } | ModelSource::Nothing => (settings.model_row().id, settings.capabilities()?),
    };
    let dir = settings.dir.clone();
    let system = settings.system.clone();
    let child = child(settings, source, &model, &capabilities)?;
    let chosen = &settings.fan_out;
    let fan_out = FanOut {
        mode: chosen.mode,
        consent: chosen.consent,
        voters: chosen.voters,
        max_subtasks: chosen.max_subtasks as usize,
        quoted,
        fresh,
        child,
        callees: Callees { turns: settings.callee_turns(true), ..Callees::default() },
    };
    let limits = settings.limits();
    let caps = settings.caps;
    let approvals = Default::default();
    Ok(Start {
        model,
        dir,
        capabilities,
        limits,
        caps,
        confinement,
        approvals,
        fan_out: Some(fan_out),
        team: None,
        system,
        lean: settings.lean.filter(|_| matches!(source, ModelSource::Api { .. })),
    })
}

/// Checks that the cost of a lead and its workers can be told, if there is a cap on it.
pub(crate) fn check_prices(settings: &Settings, source: &ModelSource, start: &Start) -> Result<(), Failure> {
    let worker = match source {
        ModelSource::Offline => &start.model,
        ModelSource::Api { .. } | ModelSource::Nothing => &settings.fan_out.worker.model,
    };
    settings.check_prices(&[&start.model, worker])
}

/// What is said where a lead is lean though no flag asked for it.
const LEAN_LINE: &str =
    "lean: only the tools that the task or a flag asks for (--lean=off gives all of them)";

/// What a person should know about the model that is asked, in one line if it can be; `doctor` says the rest.
/// A model that is configured and not asked is of no interest.
pub(crate) fn assumptions(settings: &Settings, source: &ModelSource) -> Vec<String> {
    match source {
        ModelSource::Offline => settings.project.warning().into_iter().collect(),
        ModelSource::Api { .. } | ModelSource::Nothing => {
            let chosen = matches!(settings.origin("lean"), Some(Origin::Flag(_)));
            let lean = settings.lean.filter(|_| !chosen).map(|_| LEAN_LINE.to_owned());
            let assumed = settings.model_row().assumed_line();
            let facts: Vec<String> = assumed.into_iter().chain(lean).chain(settings.plain_remark()).collect();
            let facts = Some(facts.join("; ")).filter(|line| !line.is_empty());
            settings.warnings.iter().cloned().chain(facts).collect()
        }
    }
}

/// Gives a new lead what the agents of its programs are to have of the project: that the person trusts it for
/// this session, and what its memory files say.
pub(crate) fn give_project(start: &mut Start, trusts_project: bool, memory: Option<&String>) {
    if let Some(fan_out) = &mut start.fan_out {
        fan_out.callees =
            Callees { trusts_project, project: memory.cloned(), ..std::mem::take(&mut fan_out.callees) };
    }
}

/// Gives a new lead its team, if it is to have one, and what the project's memory files say.
pub(crate) fn give_team(settings: &Settings, start: &mut Start, project: Option<String>) {
    if settings.team.on {
        let compact_at = start.capabilities.window / 100 * COMPACT_AT;
        let name = LEAD.to_owned();
        let role = LEAD.to_owned();
        let team = TEAM.to_owned();
        start.team = Some(Membership { name, role, team, requires_plan: false, compact_at, project });
    } else if let Some(memory) = project {
        // Without a team there is no member to pass it on to.
        let own = start.system.take().map(|own| format!("\n\n{own}")).unwrap_or_default();
        start.system = Some(memory + &own);
    }
}

/// What workers and verifiers are made of: the lead's own kind, unless the settings choose another.
fn child(
    settings: &Settings,
    source: &ModelSource,
    lead: &str,
    capabilities: &Capabilities,
) -> Result<Child, Failure> {
    let chosen = &settings.fan_out.worker;
    let limits = Limits { max_turns: chosen.turns, ..settings.limits() };
    let (model, capabilities) = match source {
        ModelSource::Offline => (lead.to_owned(), capabilities.clone()),
        ModelSource::Api { .. } | ModelSource::Nothing => {
            let row = settings.models.get(&chosen.model);
            let capabilities =
                convoke_claude::capabilities(&row, &settings.server.row(&row.id), chosen.effort.as_deref())?;
            (row.id, capabilities)
        }
    };
    let rates = convoke_claude::ceilings(&settings.models.get(&model));
    Ok(Child { model, capabilities, limits, rates })
}

/// There is neither a key nor a server, and the offline model was not chosen.
pub(crate) fn nobody_answers() -> Failure {
    Failure::usage("no model to ask: there is no API key, no token and no base URL")
        .hint("set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or ANTHROPIC_BASE_URL for another server")
        .hint("or say --offline: the built-in model looks around by rules, without any intelligence")
}

async fn offline_model() -> Result<Simulator, Failure> {
    let config = SimConfig { keep: Retention::Summaries, ..SimConfig::new(Offline) };
    Simulator::start(config)
        .await
        .map_err(|error| Failure::failed(format!("the offline model found no port on this machine: {error}")))
}

/// The seed of the governor's random numbers: two processes that were refused together do not come back
/// together.
fn seed() -> Result<u64, convoke_runtime::Error> {
    let bits = Ids::random().bits()?;
    Ok(bits.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte)))
}
