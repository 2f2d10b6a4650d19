//! Puts a session together from what was chosen: journal, model, sandbox, and the places that are written to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_claude::{
    Auth, Client, ClientConfig, DEFAULT_BASE_URL, Endpoints, Model, Models, OFFLINE_MODEL, Proxy, Secret,
    Server, Timeouts,
};
use convoke_journal::{Filter, Journal, Location, Options as JournalOptions, Process, StreamId};
use convoke_kernel::{
    AgentId, AgentSpec, Approvals, AskWhen, Callees, Capabilities, Child, Confinement, Decision, Event,
    FanOut, LEAD, Limits, Membership, Role, Summary,
};
use convoke_offline::Offline;
use convoke_runtime::{
    Checker, Clock, Config, Confine, CustomTools, Governor, HelperPath, Ids, Library, LibraryFolder, Origin,
    Programs, Runtime, SHIPPED_WORKFLOWS, Start, TeamConfig, UserDirs, access, lies_inside, listed_home,
    network,
};
use convoke_sandbox::{ProbeMemory, Promise};
use convoke_sim::{Retention, SimConfig, Simulator};
use convoke_trees::{HostPlaces, Keeper};

use crate::builder::{At, Network, Options, Sandbox};
use crate::environment::Environment;
use crate::error::Error;
use crate::helper;
use crate::session::{Inner, Lead, Session};

/// The model of a lead, the turns of a worker, and how many workers a workflow may have, unless they are
/// chosen.
const MODEL: &str = "claude-opus-4-8";
const EFFORT: &str = "xhigh";
const WORKER_TURNS: u32 = 15;
const MAX_SUBTASKS: usize = 200;

/// How long a stop waits for what is under way.
const DRAIN: Duration = Duration::from_secs(10);

/// Workers and verifiers at work for each request that may be under way: while one runs a command, another
/// can ask.
const AGENTS_PER_REQUEST: usize = 2;

/// Percent of a model's window above which a member of a team begins a new history.
const COMPACT_AT: u64 = 75;

/// A name that no session has, to ask whether changes can be kept.
const NO_RUN: &str = "none";

/// A session that the journal has.
struct Recorded {
    lead: AgentId,
    summary: Summary,
    spec: AgentSpec,
    last_at: u64,
}

/// The way to the model.
struct Source {
    client: Client,
    server: Server,
    offline: Option<Simulator>,
}

pub(crate) async fn session(options: Options) -> Result<Session, Error> {
    if options.helper.is_none() {
        helper::check()?;
    }
    if let Some(bad) = &options.bad {
        return Err(Error::Setting(bad.clone()));
    }
    let env = Environment::of_this_process();
    let state = match &options.state_dir {
        Some(dir) => std::path::absolute(dir).map_err(|error| Error::Setting(error.to_string()))?,
        None => env.state_dir()?,
    };
    let location = location(&options, &env, &state)?;
    let journal = open_journal(location.clone()).await?;
    let recorded = match &options.at {
        At::Dir(_) => None,
        At::Recorded(id) => Some(recorded(&journal, id).await?),
    };
    let dir = match (&options.at, &recorded) {
        (At::Dir(dir), _) => canonical(dir)?,
        (_, Some(recorded)) => canonical(Path::new(&recorded.summary.dir))?,
        (At::Recorded(id), None) => return Err(Error::NoSuchSession(id.clone())),
    };
    let offline = options.offline || recorded.as_ref().is_some_and(|it| it.summary.model == OFFLINE_MODEL);
    let source = source(&options, &env, offline).await?;
    let helper = HelperPath::new(match &options.helper {
        Some(helper) => helper.clone(),
        None => std::env::current_exe().map_err(|error| {
            Error::Setting(format!("cannot find the running executable: {error}; is /proc mounted?"))
        })?,
    });
    let held =
        Held { options: &options, env: &env, state: &state, location: &location, helper: &helper, dir: &dir };
    let (confine, confinement) =
        held.hold(recorded.as_ref().map(|recorded| &recorded.spec.confinement)).await?;
    if let Some(memory) = &confine.promise.memory {
        memory.settle();
    }
    let command_env = env.of_commands();
    let places = HostPlaces {
        path: command_env.get("PATH").cloned().unwrap_or_default(),
        state: state.clone(),
        sight: confine.sight(&dir),
    };
    let trees = Keeper::open(&places, &dir, NO_RUN).await.is_ok().then_some(places);
    let approvals = approvals(&options);
    let forbidden = Approvals {
        rules: approvals.rules.iter().filter(|rule| rule.decision == Decision::Deny).cloned().collect(),
        ..Approvals::default()
    };
    let clock = Clock::system();
    let folder = |dir: &PathBuf| LibraryFolder { dir: dir.clone(), origin: Origin::User };
    let workflows = options.workflows.iter().map(folder).collect();
    let library = Library::new(workflows, Vec::new(), SHIPPED_WORKFLOWS, Checker::of(helper.clone()));
    let requests = options.max_concurrent.max(1) as usize;
    let start = start(&options, &env, &source, offline, dir.clone(), confinement, approvals)?;
    let config = Config {
        journal: journal.clone(),
        client: source.client,
        models: Models::builtin(),
        clock: clock.clone(),
        ids: Ids::random(),
        helper,
        env: command_env,
        outputs: state.join("outputs"),
        spools: vec![state.join("spool")],
        drain: DRAIN,
        governor: Governor::seeded(clock.clone(), requests, seed()?),
        agents_at_once: requests * AGENTS_PER_REQUEST,
        confine,
        forbidden,
        trees: trees.clone(),
        programs: Programs { one_model: offline, ..Programs::new(library.clone(), source.server) },
        team: TeamConfig::default(),
        asker: options.asker.clone(),
        tools: CustomTools::new(options.tools.clone())?,
        crash: None,
    };
    let runtime = Runtime::new(config);
    let lead = match recorded {
        None => None,
        Some(recorded) => {
            if options.granted {
                runtime.grant(&recorded.summary.session, options.caps, "resume").await?;
            }
            Some(Lead {
                agent: recorded.lead,
                session: recorded.summary.session,
                can_go_on: recorded.summary.can_go_on,
                left_at: Some(recorded.last_at),
                own: false,
            })
        }
    };
    Ok(Session::new(Inner {
        runtime,
        journal,
        clock,
        start,
        library,
        trees,
        dir,
        said: 0.into(),
        lead: tokio::sync::Mutex::new(lead),
        stopper: std::sync::Mutex::default(),
        driving: std::sync::Arc::default(),
        listeners: std::sync::Mutex::default(),
        _offline: source.offline,
    }))
}

fn location(options: &Options, env: &Environment, state: &Path) -> Result<Location, Error> {
    let given = options.journal.clone().or_else(|| env.get("ORCH_JOURNAL").map(PathBuf::from));
    let Some(given) = given else { return Ok(Location::Sqlite(state.join("journal.db"))) };
    let location = match given.to_str() {
        Some(text) => {
            text.parse().map_err(|error: convoke_journal::Error| Error::Setting(error.to_string()))?
        }
        None => Location::Sqlite(given),
    };
    let Some(file) = location.file() else { return Ok(location) };
    let file = std::path::absolute(file).map_err(|error| Error::Setting(error.to_string()))?;
    Ok(location.with_file(|_| file))
}

async fn open_journal(location: Location) -> Result<Journal, Error> {
    let options = JournalOptions::new(Process::current(Ids::random().bits()?));
    Ok(Journal::open(location, options).await?)
}

/// The session of this id, as the journal has it.
async fn recorded(journal: &Journal, id: &str) -> Result<Recorded, Error> {
    let none = || Error::NoSuchSession(id.to_owned());
    let filter = Filter { prefix: Some(AgentId::PREFIX.to_owned()), limit: None };
    let mut rows = journal.list(&filter).await?.into_iter();
    let row = rows.find_map(|row| {
        let summary: Summary = serde_json::from_str(&row.summary?).ok()?;
        let is_its_lead = summary.session.as_str() == id && summary.role == Role::Lead;
        is_its_lead.then_some((row.stream, summary))
    });
    let (stream, summary) = row.ok_or_else(none)?;
    let lead: AgentId = stream.as_str().parse().map_err(|_| none())?;
    let records = journal.load(&StreamId::from(&lead), 0).await?;
    let last_at = records.last().map(|record| record.at).unwrap_or_default();
    let started = records.iter().find_map(|record| match Event::decode(&record.event) {
        Ok(Event::AgentStarted(started)) => Some(started.spec),
        _ => None,
    });
    Ok(Recorded { lead, summary, spec: started.ok_or_else(none)?, last_at })
}

fn canonical(dir: &Path) -> Result<PathBuf, Error> {
    let cannot = |why: String| Error::Directory { dir: dir.to_owned(), why };
    let canonical = dir.canonicalize().map_err(|error| cannot(error.to_string()))?;
    if !canonical.is_dir() {
        return Err(cannot("it is not a directory".to_owned()));
    }
    // What is recorded, told to the model and handed to the helper is text.
    match canonical.to_str() {
        Some(_) => Ok(canonical),
        None => Err(cannot("its name is not UTF-8: rename the part of its path that is not".to_owned())),
    }
}

async fn source(options: &Options, env: &Environment, offline: bool) -> Result<Source, Error> {
    if offline {
        let config = SimConfig { keep: Retention::Summaries, ..SimConfig::new(Offline) };
        let simulator = Simulator::start(config).await.map_err(|error| {
            Error::Setting(format!("the offline model found no port on this machine: {error}"))
        })?;
        let auth = Auth { key: Some(Secret::new(OFFLINE_MODEL)), bearer: None };
        let config =
            ClientConfig { base_url: simulator.url(), auth, proxy: Proxy::Off, ..ClientConfig::default() };
        return Ok(Source {
            client: Client::new(config)?,
            server: Server::anthropic(),
            offline: Some(simulator),
        });
    }
    let secret = |name: &str| env.get(name).map(Secret::new);
    let auth = match &options.api_key {
        Some(key) => Auth { key: Some(key.clone()), bearer: None },
        None => Auth { key: secret("ANTHROPIC_API_KEY"), bearer: secret("ANTHROPIC_AUTH_TOKEN") },
    };
    if auth.key.is_some() && auth.bearer.is_some() {
        let both = "both ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are set, and the API refuses both at \
            once: unset one";
        return Err(Error::Setting(both.to_owned()));
    }
    let url = options.base_url.as_deref().or_else(|| env.get("ANTHROPIC_BASE_URL"));
    if url.is_none() && auth.key.is_none() && auth.bearer.is_none() {
        return Err(Error::NoModel);
    }
    let base_url = url.unwrap_or(DEFAULT_BASE_URL).to_owned();
    let timeouts = Timeouts { first: Timeouts::usual_first(&base_url), ..Timeouts::default() };
    let server = Server::new(&base_url, Endpoints::builtin());
    let client = Client::new(ClientConfig { base_url, auth, timeouts, ..ClientConfig::default() })?;
    Ok(Source { client, server, offline: None })
}

/// What is known when commands are to be confined.
struct Held<'a> {
    options: &'a Options,
    env: &'a Environment,
    state: &'a Path,
    location: &'a Location,
    helper: &'a HelperPath,
    dir: &'a Path,
}

impl Held<'_> {
    /// Holds what was chosen, or what the session was begun with, by what this machine offers.
    async fn hold(&self, recorded: Option<&Confinement>) -> Result<(Confine, Confinement), Error> {
        self.check_places()?;
        let chosen = self.options.sandbox.map(|sandbox| match sandbox {
            Sandbox::ReadOnly => convoke_kernel::Sandbox::ReadOnly,
            Sandbox::Workspace => convoke_kernel::Sandbox::Workspace,
            Sandbox::Off => convoke_kernel::Sandbox::Off,
        });
        let (sandbox, reach) = match recorded {
            None => (chosen.unwrap_or(convoke_kernel::Sandbox::Workspace), self.network()),
            Some(recorded) => (recorded.sandbox, recorded.network.clone()),
        };
        // A session goes on as it was begun; that nothing is confined is said again each time.
        if recorded.is_some() && chosen.is_some_and(|chosen| chosen != sandbox) {
            let name = sandbox.name();
            return Err(Error::Setting(format!(
                "this session was begun with the sandbox {name}: leave sandbox(…) out"
            )));
        }
        if recorded.is_some() && sandbox == convoke_kernel::Sandbox::Off && chosen.is_none() {
            let why = "nothing confines the commands of this session: to go on like that, say \
                sandbox(Sandbox::Off) again";
            return Err(Error::Setting(why.to_owned()));
        }
        let env = self.env.of_commands();
        let memory = ProbeMemory::below(self.state);
        let path = env.get("PATH").map(AsRef::as_ref);
        let layers = match sandbox {
            convoke_kernel::Sandbox::Off => {
                convoke_sandbox::look_for_bash(path)
                    .map_err(|why| Error::Setting(format!("bash does not run here ({why}): install it")))?;
                convoke_sandbox::Layers::default()
            }
            _ => memory
                .layers(self.helper, path, self.dir)
                .await
                .map_err(|error| Error::Sandbox(format!("the sandbox cannot be tried: {error}")))?,
        };
        let held = convoke_sandbox::hold(&layers, access(sandbox), &network(&reach), None)
            .map_err(|cannot| Error::Sandbox(cannot.to_string()))?;
        let confinement = Confinement { sandbox, network: reach, held_by: held.layers, weaker: held.weaker };
        let promise = Promise { own_processes: held.own_processes, memory: Some(memory) };
        let path = env.get("PATH").map(String::as_str);
        Ok((Confine { set: held.set, promise, ..self.surroundings(path) }, confinement))
    }

    fn network(&self) -> convoke_kernel::Network {
        match &self.options.network {
            Network::Off => convoke_kernel::Network::Off,
            Network::Hosts(hosts) => convoke_kernel::Network::Hosts(hosts.clone()),
            Network::On => convoke_kernel::Network::On,
        }
    }

    fn journal(&self) -> Option<&Path> {
        self.location.file()
    }

    /// That commands cannot change what a session goes by.
    fn check_places(&self) -> Result<(), Error> {
        let places = [(Some(self.state), "state_dir(…)"), (self.journal(), "journal(…)")];
        for (place, setting) in places {
            if let Some(place) = place.filter(|place| lies_inside(place, self.dir)) {
                let why = format!(
                    "{} lies in it, where commands could change it: name a place outside with {setting}",
                    place.display()
                );
                return Err(Error::Directory { dir: self.dir.to_owned(), why });
            }
        }
        Ok(())
    }

    fn surroundings(&self, path: Option<&str>) -> Confine {
        let env = self.env.surroundings();
        let config = self.env.config_dir();
        let around = UserDirs {
            env: &env,
            listed_home: listed_home(),
            dir: self.dir,
            state: self.state,
            config: config.as_deref(),
            journal: self.journal(),
            executable: &self.helper.program,
        };
        around.confine(path, self.state.join("private"))
    }
}

fn approvals(options: &Options) -> Approvals {
    let ask = match (&options.asker, options.ask_always) {
        (_, true) => AskWhen::Always,
        (Some(_), false) => AskWhen::WhenNeeded,
        (None, false) => AskWhen::Never,
    };
    Approvals { ask, rules: options.rules.iter().map(|rule| rule.rule.clone()).collect(), park: false }
}

/// What a new lead is made of.
fn start(
    options: &Options,
    env: &Environment,
    source: &Source,
    offline: bool,
    dir: PathBuf,
    confinement: Confinement,
    approvals: Approvals,
) -> Result<Start, Error> {
    let models = Models::builtin();
    let name = options.model.as_deref().or_else(|| env.get("ANTHROPIC_MODEL")).unwrap_or(MODEL);
    let row = models.get(if offline { OFFLINE_MODEL } else { name });
    let worker = options
        .worker_model
        .as_deref()
        .filter(|_| !offline)
        .map_or_else(|| row.clone(), |name| models.get(name));
    if let Some(model) =
        [&row, &worker].into_iter().find(|model| options.caps.nano.is_some() && model.prices.is_none())
    {
        let id = &model.id;
        return Err(Error::Setting(format!(
            "the price of `{id}` is not known, so a budget in dollars cannot be held: say budget_usd(None), \
             and budget_tokens(…) for another limit"
        )));
    }
    let capabilities = accepts(options, source, &row)?;
    let below = accepts(options, source, &worker)?;
    let limits = Limits::default();
    let limits = Limits { max_turns: options.max_turns.unwrap_or(limits.max_turns), ..limits };
    let child = Child {
        rates: convoke_claude::ceilings(&worker),
        model: worker.id,
        capabilities: below,
        limits: Limits { max_turns: WORKER_TURNS, ..limits },
    };
    let fan_out = FanOut {
        mode: options.orchestration,
        consent: false,
        voters: options.verifiers,
        max_subtasks: MAX_SUBTASKS,
        quoted: false,
        fresh: false,
        child,
        callees: Callees::default(),
    };
    let team = options.team.then(|| Membership {
        name: LEAD.to_owned(),
        role: LEAD.to_owned(),
        team: "default".to_owned(),
        requires_plan: false,
        compact_at: capabilities.window / 100 * COMPACT_AT,
        project: None,
    });
    Ok(Start {
        capabilities,
        limits,
        caps: options.caps,
        confinement,
        approvals,
        fan_out: Some(fan_out),
        team,
        system: options.system.clone(),
        ..Start::new(row.id, dir)
    })
}

/// What a model behind the server accepts. The effort that was not chosen is the usual one where the model
/// has it.
fn accepts(options: &Options, source: &Source, model: &Model) -> Result<Capabilities, Error> {
    let endpoint = source.server.row(&model.id);
    let usual = model.effort_levels.iter().any(|level| level == EFFORT) && endpoint.effort;
    let usual = Some(EFFORT).filter(|_| usual && source.offline.is_none());
    let effort = options.effort.as_deref().filter(|_| source.offline.is_none()).or(usual);
    Ok(convoke_claude::capabilities(model, &endpoint, effort)?)
}

/// Where the governor's chance comes from: two processes that were refused together do not come back
/// together.
fn seed() -> Result<u64, Error> {
    Ok(Ids::random().bits()?.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte)))
}
