//! What a team costs that has nothing to do: a hundred teammates that have each run one command and rest,
//! first awake (with their shells and their place in memory) and then asleep, over the same session without
//! any teammate. CPU and memory of the process and of what lives below it; requests are counted where they
//! would arrive. The model has a process of its own and is not counted.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use convoke_claude::{Client, ClientConfig, Endpoint, Models, Proxy, capabilities};
use convoke_journal::{Filter, Journal, Location, Options};
use convoke_kernel::{AgentId, LEAD, Limits, MemberState, Membership, SessionId, Summary};
use convoke_runtime::{
    Clock, Config, Confine, DriveMode, Governor, HelperPath, Ids, MemberRow, Runtime, Start, Stop,
    TeamClient, TeamConfig,
};
use convoke_sim::{Brain, Context, Retention, Scripted, SimConfig, Simulator, tool_use_id};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

const MODEL: &str = "claude-opus-4-8";
const TEAMMATES: usize = 100;
/// How long each state is looked at.
const WINDOW: Duration = Duration::from_secs(20);
/// How long a teammate rests before it sleeps: long enough to look at all of them awake.
const IDLE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(240);

fn main() {
    // This executable is also the helper under which commands live.
    convoke_runtime::helper_entry();
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["serve", count, ..] => runtime().block_on(serve(count.parse().unwrap())),
        ["rest", url, count, ..] => runtime().block_on(rest(url, count.parse().unwrap())),
        _ => compare(),
    }
}

/// What one state cost over the window.
struct Cost {
    /// Of a core, in percent: the process, and everything below it.
    cpu: f64,
    below: f64,
    /// In KiB: the same.
    memory: f64,
    memory_below: f64,
    /// Processes below it.
    shells: f64,
    /// Requests that arrived.
    asked: usize,
}

fn compare() {
    let alone = &look(0, &["awake"])[0];
    let team = look(TEAMMATES, &["awake", "asleep"]);
    println!(
        "idle_session_alone {:.2} % of a core, {:.1} MiB, {} requests in {} s",
        alone.cpu + alone.below,
        alone.memory / 1024.0,
        alone.asked,
        WINDOW.as_secs()
    );
    for (state, cost) in ["awake", "asleep"].into_iter().zip(&team) {
        let all = cost.cpu + cost.below;
        let each = |kib: f64| kib / TEAMMATES as f64;
        println!(
            "idle_{state} {TEAMMATES} teammates: {} requests in {} s; {all:.2} % of a core in all ({:.1} \
             times the session alone, {:.4} % each more; goal under 1 % in all); {:.0} KiB each in the \
             process and {:.0} KiB each in {} processes of shells (goal under 1024 KiB)",
            cost.asked,
            WINDOW.as_secs(),
            all / (alone.cpu + alone.below).max(0.01),
            each(all - alone.cpu - alone.below),
            each(cost.memory - alone.memory),
            each(cost.memory_below - alone.memory_below),
            cost.shells,
        );
    }
}

/// A process that is told to go on by a line and answers with one.
struct Part {
    process: Process,
    into: ChildStdin,
    out: BufReader<ChildStdout>,
}

impl Part {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut process =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let into = process.stdin.take().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        Self { process, into, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "it ended");
        line.trim().to_owned()
    }

    fn ask(&mut self) -> String {
        writeln!(self.into).unwrap();
        self.line()
    }

    fn end(mut self) {
        drop((self.into, self.out));
        // It may have ended by itself.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

/// Looks at a session with this many teammates in these states, one after the other.
fn look(count: usize, states: &[&str]) -> Vec<Cost> {
    let mut server = Part::start(&["serve", &count.to_string()]);
    let url = server.line();
    let mut session = Part::start(&["rest", &url, &count.to_string()]);
    let mut costs = Vec::new();
    for state in states {
        assert_eq!(session.line(), *state);
        let before: usize = server.ask().parse().unwrap();
        let figures: Vec<f64> = session.ask().split(' ').map(|figure| figure.parse().unwrap()).collect();
        let asked = server.ask().parse::<usize>().unwrap() - before;
        let [cpu, below, memory, memory_below, shells] = figures[..] else { panic!("{figures:?}") };
        costs.push(Cost { cpu, below, memory, memory_below, shells, asked });
    }
    session.end();
    server.end();
    costs
}

/// A lead that makes its team and is then answered late, so that the session stays; teammates that run one
/// command and have nothing to do.
struct Team(usize);

impl Brain for Team {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let offers =
            |name: &str| request["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
        let calls: Vec<(&str, Value)> = match (offers("spawn_teammate"), context.position) {
            (true, 0) if self.0 == 0 => vec![("list_teammates", json!({}))],
            (true, 0) => {
                let input =
                    |n: usize| json!({"name": format!("mate-{n}"), "role": "coder", "prompt": "Be ready."});
                (1..=self.0).map(|n| ("spawn_teammate", input(n))).collect()
            }
            (false, 0) => vec![("bash", json!({"command": "true"}))],
            _ => Vec::new(),
        };
        let call = |(index, (name, input)): (usize, (&str, Value))| {
            let id = tool_use_id(context, name, index);
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        };
        let content: Vec<Value> = match calls.is_empty() {
            true => vec![json!({"type": "text", "text": "ready"})],
            false => calls.into_iter().enumerate().map(call).collect(),
        };
        let mut scripted = Scripted::new(content);
        if offers("spawn_teammate") && context.position > 0 {
            scripted.delay = Duration::from_secs(3_600);
        }
        scripted
    }
}

/// Answers every line with the number of requests so far.
async fn serve(count: usize) {
    let mut config = SimConfig::new(Team(count));
    config.keep = Retention::Summaries;
    let simulator = Simulator::start(config).await.unwrap();
    println!("{}", simulator.url());
    while told_to_go_on().await {
        println!("{}", simulator.requests().len());
    }
}

/// Whether a line came; false at the end of the input.
async fn told_to_go_on() -> bool {
    let read = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    read.await.unwrap().unwrap() > 0
}

/// Brings a session to rest, and says what it costs in each state.
async fn rest(url: &str, count: usize) {
    let dir = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let process = convoke_journal::Process::current(Ids::random().bits().unwrap());
    let journal =
        Journal::open(Location::Sqlite(dir.path().join("j.db")), Options::new(process)).await.unwrap();
    let client = TeamClient::new(journal.clone(), Clock::system(), Ids::random());
    let runtime = runtime(url, dir.path(), journal.clone());
    let lead = runtime.start(start(work.path()), "make a team").await.unwrap();
    let driven = {
        let lead = lead.clone();
        tokio::spawn(async move { runtime.drive(&lead, DriveMode::New, Stop::never(), None).await })
    };
    let session = session_of(&journal, &lead).await;
    let until = async |state: &str, counts: &dyn Fn(&MemberRow) -> bool| {
        let deadline = Instant::now() + PATIENCE;
        let reached =
            async || client.members(&session).await.unwrap().iter().filter(|row| counts(row)).count();
        while let reached = reached().await
            && reached < count
        {
            let waits = Instant::now() < deadline && !driven.is_finished();
            assert!(waits, "{reached} of {count} are {state}, and no more come");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // Every member takes in what was written last.
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    let sleeps = |row: &MemberRow| row.member.asleep.is_some();
    until("idle", &|row| row.member.name != LEAD && row.state == MemberState::Idle).await;
    answer("awake").await;
    let early = client.members(&session).await.unwrap().iter().filter(|row| sleeps(row)).count();
    assert_eq!(early, 0, "some slept too early to be looked at awake");
    if count > 0 {
        until("asleep", &sleeps).await;
        answer("asleep").await;
    }
    driven.abort();
}

/// Says that a state is reached, and when told to go on what it costs.
async fn answer(state: &str) {
    println!("{state}");
    assert!(told_to_go_on().await);
    let begun = Instant::now();
    let before = Tree::now();
    tokio::time::sleep(WINDOW).await;
    let took = begun.elapsed().as_secs_f64();
    let after = Tree::now();
    let percent = |ticks: f64| 100.0 * ticks / took;
    println!(
        "{} {} {} {} {}",
        percent(after.cpu - before.cpu),
        percent(after.below - before.below),
        after.memory,
        after.memory_below,
        after.count
    );
}

fn runtime(url: &str, dir: &Path, journal: Journal) -> Runtime {
    let auth = convoke_claude::Auth { key: Some(convoke_claude::Secret::new("k")), bearer: None };
    let client = ClientConfig { base_url: url.into(), proxy: Proxy::Off, auth, ..ClientConfig::default() };
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let helper = HelperPath::new(std::env::current_exe().unwrap());
    Runtime::new(Config {
        journal,
        client: Client::new(client).unwrap(),
        models: Models::builtin(),
        clock: Clock::system(),
        ids: Ids::random(),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        outputs: dir.join("outputs"),
        spools: Vec::new(),
        drain: Duration::from_secs(1),
        governor: Governor::new(Clock::system(), 20),
        agents_at_once: 40,
        confine: Confine::nothing(dir.join("private")),
        forbidden: Default::default(),
        team: TeamConfig { idle: IDLE, ..TeamConfig::default() },
        programs: convoke_runtime::Programs::without_library(&helper),
        helper,
        trees: None,
        asker: None,
        tools: Default::default(),
        crash: None,
    })
}

fn start(dir: &Path) -> Start {
    let model = Models::builtin().get(MODEL);
    let mut start = Start::new(MODEL, dir);
    start.capabilities = capabilities(&model, &Endpoint::anthropic(), Some("xhigh")).unwrap();
    start.limits = Limits { max_turns: 1_000, ..Limits::default() };
    start.confinement = Default::default();
    start.team = Some(Membership {
        name: LEAD.into(),
        role: LEAD.into(),
        team: "default".into(),
        requires_plan: false,
        compact_at: 150_000,
        project: None,
    });
    start
}

/// The session of a lead, as soon as it is driven.
async fn session_of(journal: &Journal, lead: &AgentId) -> SessionId {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let filter = Filter { prefix: Some(lead.to_string()), limit: Some(1) };
        let row = journal.list(&filter).await.unwrap().into_iter().next();
        if let Some(text) = row.and_then(|row| row.summary) {
            return serde_json::from_str::<Summary>(&text).unwrap().session;
        }
        assert!(Instant::now() < deadline, "nobody drives the lead");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// This process and what lives below it: seconds of CPU so far, and KiB. Of shared pages those below count
/// their share.
struct Tree {
    cpu: f64,
    below: f64,
    memory: f64,
    memory_below: f64,
    count: usize,
}

impl Tree {
    fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        let own = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        let below = below();
        Self {
            cpu: own as f64 / 1e6,
            below: below.iter().map(|(_, ticks)| ticks / 100.0).sum(),
            memory: kib("/proc/self/status", "VmRSS:"),
            memory_below: below
                .iter()
                .map(|(pid, _)| kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:"))
                .sum(),
            count: below.len(),
        }
    }
}

/// The processes below this one, with the hundredths of a second each has used.
fn below() -> Vec<(u32, f64)> {
    let stats = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let pid: u32 = stat.split(' ').next()?.parse().ok()?;
        // The name stands in brackets and may hold anything.
        let rest: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks: f64 = rest.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Some((pid, rest.get(1)?.parse::<u32>().ok()?, ticks))
    });
    let stats: Vec<(u32, u32, f64)> = stats.collect();
    let mut found = vec![std::process::id()];
    let mut index = 0;
    while let Some(parent) = found.get(index).copied() {
        found.extend(stats.iter().filter(|(_, of, _)| *of == parent).map(|(pid, ..)| *pid));
        index += 1;
    }
    stats.iter().filter(|(pid, ..)| found[1..].contains(pid)).map(|(pid, _, ticks)| (*pid, *ticks)).collect()
}

/// A figure of a process's file; nothing if it has ended meanwhile.
fn kib(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|figure| figure.parse().ok()).unwrap_or(0.0)
}
