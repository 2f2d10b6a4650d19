//! A rig: a simulator, a directory to work in, a journal, and as many lives of the process as a test wants.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use convoke_claude::{
    Client, ClientConfig, Endpoint, ModelPatch, Models, Proxy, Server, Timeouts, capabilities, ceilings,
};
use convoke_journal::{Batch, Journal, Location, Options, Process, StreamId};
use convoke_kernel::{
    Agent, AgentId, Approvals, CHILD_TURNS, Caps, Child, Confinement, Event, FanOut, Limits, Membership,
    Network, Run, RunEvent, RunId, Sandbox,
};
use convoke_runtime::{
    Asker, Checker, Clock, Config, Confine, Controller, Crash, DriveMode, DriveOutcome, Error, Governor,
    HelperPath, Ids, Library, LibraryFolder, Origin, Programs, Runtime, Start, Stop, TeamConfig,
};
use convoke_sandbox::LayerSet;
use convoke_sandbox::{Sight, Unseen};
use convoke_sim::{Received, SimConfig, Simulator};
use convoke_trees::HostPlaces;
use tempfile::TempDir;

use crate::cache::Wire;

pub(crate) const MODEL: &str = "claude-opus-4-8";

pub(crate) struct Rig {
    pub(crate) sim: Simulator,
    pub(crate) work: TempDir,
    pub(crate) scratch: TempDir,
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) caps: Caps,
    pub(crate) fan_out: Option<FanOut>,
    pub(crate) max_concurrent: usize,
    /// In place of a new governor for every life.
    pub(crate) governor: Option<Governor>,
    pub(crate) agents_at_once: Option<usize>,
    pub(crate) asker: Option<Asker>,
    pub(crate) confinement: Confinement,
    pub(crate) approvals: Approvals,
    /// What is forbidden now.
    pub(crate) forbidden: Approvals,
    /// The layers that hold a confinement.
    pub(crate) set: Option<LayerSet>,
    /// Toolchains that commands find behind the hidden home directory.
    pub(crate) caches: Vec<std::path::PathBuf>,
    /// Whether what is changed is kept.
    pub(crate) keeps: bool,
    /// Replies were lost with their process, and what followed was another request: the simulator cannot know
    /// that.
    pub(crate) lost_replies: bool,
    /// Whether agents of different make are told the same, so that their requests cannot be told apart by how
    /// they begin.
    /// The journal of the process that was begun last.
    pub(crate) last_journal: std::sync::Mutex<Option<Journal>>,
    pub(crate) same_words: bool,
    /// How often a test gives its lead another model or effort: nothing else may change them.
    pub(crate) retunes: usize,
    /// Whether leads are forked, so that several requests may go on from the same one.
    pub(crate) forks: bool,
    /// How teams are run, and the team that a new lead has.
    pub(crate) team: TeamConfig,
    pub(crate) membership: Option<Membership>,
    pub(crate) models: Models,
    /// Tools of the embedding program.
    pub(crate) tools: convoke_runtime::CustomTools,
}

impl Rig {
    pub(crate) async fn new(sim: impl Into<SimConfig>) -> Self {
        Self::on(Location::Memory, sim).await
    }

    pub(crate) async fn on(location: Location, sim: impl Into<SimConfig>) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let location = match location {
            Location::Sqlite(name) => Location::Sqlite(scratch.path().join(name)),
            other => other,
        };
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        Self {
            sim: Simulator::start(sim).await.unwrap(),
            work: tempfile::tempdir().unwrap(),
            journal: Journal::open(location, Options::new(dead_process())).await.unwrap(),
            scratch,
            clock: Clock::jumping(1_000_000),
            limits: Limits { bash_timeout_ms: 20_000, ..Limits::default() },
            timeouts: Timeouts::default(),
            env: BTreeMap::from([("PATH".to_owned(), path)]),
            caps: Caps::default(),
            fan_out: None,
            max_concurrent: 10,
            governor: None,
            agents_at_once: None,
            asker: None,
            confinement: Confinement::default(),
            approvals: Approvals::default(),
            forbidden: Approvals::default(),
            set: None,
            caches: Vec::new(),
            keeps: false,
            lost_replies: false,
            same_words: false,
            last_journal: std::sync::Mutex::default(),
            retunes: 0,
            forks: false,
            team: TeamConfig::default(),
            membership: None,
            models: untimed(),
            tools: convoke_runtime::CustomTools::default(),
        }
    }

    /// A new process over the same journal, as far as the journal can tell.
    pub(crate) async fn life(&self, crash: Option<Crash>) -> Runtime {
        self.life_of(dead_process(), crash).await
    }

    /// A process that others see alive: what it holds they wait for.
    pub(crate) async fn live(&self) -> Runtime {
        self.life_of(Process::current(Ids::random().bits().unwrap()), None).await
    }

    /// A controller in another process that has only the journal.
    pub(crate) async fn controller(&self) -> Controller {
        let process = Process::current(Ids::random().bits().unwrap());
        Controller::new(self.journal.as_process(Options::new(process)).await.unwrap(), self.clock.clone())
    }

    pub(crate) fn programs(&self) -> Programs {
        let helper = HelperPath::new(env!("CARGO_BIN_EXE_convoke-helper").into());
        let folder = |name: &str| LibraryFolder { dir: self.work.path().join(name), origin: Origin::Project };
        let folders = (vec![folder(".convoke/workflows")], vec![folder(".claude/agents")]);
        Programs::new(Library::new(folders.0, folders.1, &[], Checker::of(helper)), Server::anthropic())
    }

    async fn life_of(&self, process: Process, crash: Option<Crash>) -> Runtime {
        let journal = self.journal.as_process(Options::new(process)).await.unwrap();
        *self.last_journal.lock().unwrap() = Some(journal.clone());
        Runtime::new(Config {
            journal,
            client: Client::new(ClientConfig {
                base_url: self.sim.url(),
                proxy: Proxy::Off,
                timeouts: self.timeouts,
                ..with_key()
            })
            .unwrap(),
            models: self.models.clone(),
            clock: self.clock.clone(),
            ids: Ids::random(),
            helper: HelperPath::new(env!("CARGO_BIN_EXE_convoke-helper").into()),
            env: self.env.clone(),
            outputs: self.scratch.path().join("outputs"),
            spools: vec![self.scratch.path().join("spool")],
            drain: Duration::from_secs(10),
            governor: match &self.governor {
                Some(governor) => governor.clone(),
                None => Governor::new(self.clock.clone(), self.max_concurrent),
            },
            agents_at_once: self.agents_at_once.unwrap_or(2 * self.max_concurrent),
            asker: self.asker.clone(),
            confine: Confine {
                set: self.set,
                caches: self.caches.clone(),
                ..Confine::nothing(self.scratch.path().join("private"))
            },
            forbidden: self.forbidden.clone(),
            programs: self.programs(),
            team: self.team,
            trees: self.keeps.then(|| self.places()),
            tools: self.tools.clone(),
            crash,
        })
    }

    /// Where trees are kept, by a git that sees what confined commands see.
    pub(crate) fn places(&self) -> HostPlaces {
        let sight = Sight::LikeCommands(Unseen::default());
        HostPlaces { path: self.env["PATH"].clone(), state: self.scratch.path().join("state"), sight }
    }

    pub(crate) fn start(&self) -> Start {
        let model = self.models.get(MODEL);
        let endpoint = Endpoint::anthropic();
        Start {
            model: MODEL.into(),
            dir: self.work.path().to_owned(),
            capabilities: capabilities(&model, &endpoint, Some("xhigh")).unwrap(),
            limits: self.limits,
            caps: self.caps,
            confinement: self.confinement.clone(),
            approvals: self.approvals.clone(),
            fan_out: self.fan_out.clone(),
            team: self.membership.clone(),
            system: None,
            lean: None,
        }
    }

    /// How a lead fans out whose workers are made as itself, with the mode on and one verifier per result.
    pub(crate) fn fanning_out() -> FanOut {
        let model = untimed().get(MODEL);
        let child = Child {
            model: MODEL.into(),
            capabilities: capabilities(&model, &Endpoint::anthropic(), Some("xhigh")).unwrap(),
            limits: Limits { max_turns: CHILD_TURNS, bash_timeout_ms: 20_000, ..Limits::default() },
            rates: ceilings(&model),
        };
        FanOut {
            mode: true,
            consent: false,
            voters: 1,
            max_subtasks: 200,
            quoted: false,
            fresh: false,
            child,
            callees: Default::default(),
        }
    }

    /// Asks and drives in one life.
    pub(crate) async fn ask(&self, task: &str) -> (AgentId, DriveOutcome) {
        let runtime = self.life(None).await;
        let agent = runtime.start(self.start(), task).await.unwrap();
        let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
        (agent, ended)
    }

    pub(crate) async fn resume(&self, agent: &AgentId) -> Result<DriveOutcome, Error> {
        let runtime = self.life(None).await;
        within(runtime.drive(agent, DriveMode::Resume { changed: vec![] }, Stop::never(), None)).await
    }

    pub(crate) async fn events(&self, agent: &AgentId) -> Vec<Event> {
        let records = self.journal.load(&StreamId::from(agent), 0).await.unwrap();
        records.iter().map(|record| Event::decode(&record.event).unwrap()).collect()
    }

    /// The run that a call of this lead started, as far as it has come.
    pub(crate) async fn run(&self, lead: &AgentId, call: &str) -> Run {
        let id = RunId::derived(&["workflow", lead.as_str(), call]);
        let mut run = Run::new();
        for record in self.journal.load(&StreamId::new(id.as_str()).unwrap(), 0).await.unwrap() {
            run.apply(&RunEvent::decode(&record.event).unwrap(), record.at).unwrap();
        }
        run
    }

    /// Writes an event past the kernel, as a newer version or a fault would.
    pub(crate) async fn append_raw(&self, agent: &AgentId, event: &str) {
        let stream = StreamId::from(agent);
        let seq = self.journal.load(&stream, 0).await.unwrap().len() as u64;
        let lease = self.journal.own(&stream).await.unwrap();
        self.journal.append(&lease, seq, &Batch::events(1, [event])).await.unwrap();
        self.journal.release(&lease).await.unwrap();
    }

    /// Another process takes the agent over, as it may when its owner has been silent for too long.
    pub(crate) async fn take_over(&self, agent: &AgentId) {
        let other = self.journal.as_process(Options::new(dead_process())).await.unwrap();
        other.own(&StreamId::from(agent)).await.unwrap();
    }

    pub(crate) async fn folded(&self, agent: &AgentId) -> Agent {
        let mut folded = Agent::new();
        for event in self.events(agent).await {
            folded.apply(&event, 0).unwrap();
        }
        folded
    }

    /// Every request that reached the simulator was legal and began with the one before it.
    fn assert_legal(&self) {
        let requests = self.sim.requests();
        // Voters on one result are asked in the same words, so the simulator takes them for one conversation.
        let twins = self.fan_out.as_ref().is_some_and(|fan_out| fan_out.voters > 1);
        for request in &requests {
            // The simulator tells conversations apart by their system prompt too, so it would not notice a
            // changed one.
            let begins = |other: &&Received| other.body["messages"][0] == request.body["messages"][0];
            let first = requests.iter().find(begins).expect("a request begins as itself");
            let fixed = ["system", "tools", "model"].into_iter().filter(|_| !self.same_words);
            for member in fixed.filter(|member| self.retunes == 0 || *member != "model") {
                assert_eq!(request.body[member], first.body[member], "{member} of request {}", request.index);
            }
            assert!(
                request.verdict.is_accepted(),
                "request {}: {:?}\n{}",
                request.index,
                request.verdict,
                request.body
            );
            let excused = twins && crate::team::role(&request.body) == "verifier";
            let forked = self.forks && goes_on_from_any(request, &requests);
            if !excused && !self.lost_replies && !self.same_words && !forked {
                assert_eq!(request.prefix_break, None, "request {}", request.index);
            }
        }
        if self.retunes > 0 {
            self.assert_tuned(&requests);
        }
    }

    /// Model, effort and thinking of a conversation changed at most as often as the test chose others.
    fn assert_tuned(&self, requests: &[Received]) {
        let tuned = |request: &Received| {
            ["model", "output_config", "thinking"].map(|name| request.body[name].clone())
        };
        for request in requests {
            let same = |other: &&Received| other.body["messages"][0] == request.body["messages"][0];
            let all: Vec<_> = requests.iter().filter(same).map(tuned).collect();
            let changes = all.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(
                changes <= self.retunes,
                "{changes} changes in the conversation of request {}",
                request.index
            );
        }
    }

    /// Confined as the command line does it by default, with all layers.
    pub(crate) fn confined(mut self, sandbox: Sandbox) -> Self {
        self.confinement = Confinement { sandbox, network: Network::Off, ..Confinement::default() };
        self.set = Some(LayerSet::Namespaces);
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.path().join(name)).unwrap_or_default()
    }
}

/// Checked here and not by each test, so that no test can forget it.
impl Drop for Rig {
    fn drop(&mut self) {
        // A test that has failed already says more than a second failure would.
        if !std::thread::panicking() {
            self.assert_legal();
        }
    }
}

/// The table without the speed of models: the simulator writes as fast as it can, so that time bounds
/// nothing.
pub(crate) fn untimed() -> Models {
    let mut models = Models::builtin();
    let untimed = ModelPatch { output_per_second: Some(0), ..ModelPatch::default() };
    let names: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
    models.extend(names.into_iter().map(|name| (name, untimed.clone()))).unwrap();
    models
}

fn with_key() -> ClientConfig {
    let auth = convoke_claude::Auth { key: Some(convoke_claude::Secret::new("test-key")), bearer: None };
    ClientConfig { auth, ..ClientConfig::default() }
}

/// Whether a request begins with an earlier one that was answered, byte for byte.
fn goes_on_from_any(request: &Received, requests: &[Received]) -> bool {
    let wire = Wire::of(request);
    let earlier = requests.iter().filter(|other| other.index < request.index && other.replied);
    earlier.map(Wire::of).any(|before| wire.begins_with(&before))
}

/// A process that has provably ended, so that its leases can be taken over at once.
fn dead_process() -> Process {
    let bits = Ids::random().bits().unwrap();
    Process { pid: u32::MAX, start_time: 1, ..Process::current(bits) }
}

/// No test waits for ever; none is expected to come near this.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), future).await.expect("the test hangs")
}

/// A PostgreSQL journal; where there is none the test is skipped, loudly.
pub(crate) fn postgres(test: &str) -> Option<Location> {
    let url = std::env::var_os("CONVOKE_TEST_POSTGRES");
    if url.is_none() {
        // Written past the test harness, which would keep it to itself; `scripts/test` counts these lines.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: CONVOKE_TEST_POSTGRES is not set");
    }
    url.map(|url| url.into_string().unwrap().parse().unwrap())
}

/// These in an order that follows from the seed.
pub(crate) fn shuffled<T>(mut all: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed;
    for last in (1..all.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(last, (state >> 33) as usize % (last + 1));
    }
    all
}
