//! What a fan-out costs beside its model: 200 subtasks and their verifiers, 50 ms a reply and ten at a time,
//! as wall time over the time the replies alone would take (one would be perfect), with CPU and peak memory;
//! and the memory of 1,000 agents that wait for their model at once. Model and runtime have a process each,
//! so that neither is counted as the other.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child as Process, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use convoke_claude::{Client, ClientConfig, Endpoint, Models, Proxy, capabilities, ceilings};
use convoke_journal::{Journal, Location, Options};
use convoke_kernel::{Child, Confinement, FanOut, Limits, Outcome};
use convoke_runtime::{
    Clock, Config, Confine, DriveMode, Governor, GovernorStats, HelperPath, Ids, Runtime, Start, Stop,
};
use convoke_sim::{Brain, Context, Reply, Retention, Script, Scripted, SimConfig, Simulator, calls, says};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

const MODEL: &str = "claude-opus-4-8";
const REPLY: Duration = Duration::from_millis(50);
const AT_ONCE: usize = 10;
const SUBTASKS: usize = 200;
/// Two replies of the lead, and two of every worker and every verifier.
const REPLIES: usize = 2 + 2 * 2 * SUBTASKS;
const WAITING: usize = 1_000;
const ROUNDS: usize = 5;

fn main() {
    // This executable is also the helper under which commands live.
    convoke_runtime::helper_entry();
    let arguments: Vec<String> = std::env::args().collect();
    // A thousand connections are more files than a shell allows by default.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most.min(65_536), most).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["serve", kind, ..] => runtime.block_on(serve(kind == "waiting")),
        ["fan-out", url, ..] => runtime.block_on(fan_out(url)),
        ["waiting", url, ..] => runtime.block_on(wait(url)),
        _ => compare(),
    }
}

fn compare() {
    let ideal = REPLIES as f64 * REPLY.as_secs_f64() / AT_ONCE as f64;
    let rounds: Vec<Vec<f64>> = (0..ROUNDS).map(|_| part("fan-out")).collect();
    // A run that ends early would look fast.
    assert!(rounds.iter().all(|figures| figures[5] as usize == REPLIES), "{rounds:?}");
    let median = |index: usize| {
        let mut figures: Vec<f64> = rounds.iter().map(|figures| figures[index]).collect();
        figures.sort_by(f64::total_cmp);
        (figures[ROUNDS / 2], figures[0], figures[ROUNDS - 1])
    };
    let (wall, best, worst) = median(0);
    println!(
        "fan_out_wall_over_replies {:.2} (median of {ROUNDS}, {:.2} to {:.2}; {wall:.2} s for {REPLIES} \
            replies of 50 ms, ten at a time)",
        wall / ideal,
        best / ideal,
        worst / ideal
    );
    let reply = median(4).0;
    println!(
        "fan_out_wall_over_simulator {:.2} (the simulator took {reply:.1} ms for its 50 ms)",
        wall / (ideal * reply / REPLY.as_millis() as f64)
    );
    println!(
        "fan_out_cpu_seconds {:.2} (and {:.2} of its {} shells)",
        median(1).0,
        median(2).0,
        2 * SUBTASKS
    );
    println!("fan_out_peak_mib {:.1}", median(3).0);
    let figures = part("waiting");
    println!(
        "waiting_agent_kib {:.0} ({WAITING} agents wait, the requests of {} are under way: {:.1} MiB, {:.1} \
            before)",
        (figures[1] - figures[0]) * 1024.0 / WAITING as f64,
        figures[2],
        figures[1],
        figures[0]
    );
}

/// Runs one part against a simulator of its own, both in new processes, and reads the figures it prints.
fn part(kind: &str) -> Vec<f64> {
    let start = |arguments: &[&str]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let line = |process: &mut Process| {
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    let mut server = start(&["serve", kind]);
    let url = line(&mut server);
    let mut process = start(&[kind, &url]);
    let figures = line(&mut process);
    assert!(process.wait().unwrap().success());
    drop(server.stdin.take());
    let figures = format!("{figures} {}", line(&mut server));
    server.kill().unwrap();
    server.wait().unwrap();
    figures.split(' ').map(|figure| figure.parse().unwrap()).collect()
}

/// A lead that fans out, workers that look and find one thing, verifiers that look and confirm it. Where
/// agents are to wait, workers are answered until all of them have come and the governor's window is open,
/// and then not for long.
#[derive(Default)]
struct Team {
    waiting: bool,
    come: AtomicUsize,
    answered: AtomicUsize,
}

impl Brain for Team {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let offers =
            |name: &str| request["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
        let look = || calls("bash", json!({"command": "true"}));
        let found = json!([{"claim": "c", "evidence": "e", "severity": "low"}]);
        let judged = json!([{"finding": 1, "verdict": "confirmed", "evidence": "e"}]);
        let replies: Vec<Reply> = match () {
            () if offers("Workflow") => {
                let count = if self.waiting { WAITING } else { SUBTASKS };
                let subtasks: Vec<String> =
                    (0..count).map(|number| format!("look at concern {number}")).collect();
                vec![calls("Workflow", json!({"subtasks": subtasks})), says("done")]
            }
            () if self.waiting => {
                let come = self.come.fetch_add(usize::from(context.position == 0), Ordering::Relaxed);
                // The window grows by one a reply, but only while it is full: replies must take their time.
                let open = self.answered.fetch_add(1, Ordering::Relaxed) > 2 * WAITING;
                let late = Duration::from_secs(if come >= WAITING && open { 3_600 } else { 4 });
                vec![calls("nothing", json!({})).after(late); context.position + 1]
            }
            () if offers("report_findings") => {
                vec![look(), calls("report_findings", json!({"summary": "s", "findings": found}))]
            }
            () => vec![look(), calls("report_verdicts", json!({"summary": "s", "verdicts": judged}))],
        };
        let mut scripted = Script::new().conversation("*", replies).reply(request, context);
        if !self.waiting {
            scripted.delay = REPLY;
        }
        scripted
    }
}

async fn serve(waiting: bool) {
    let mut config = SimConfig::new(Team { waiting, ..Team::default() });
    config.keep = Retention::Summaries;
    let simulator = Simulator::start(config).await.unwrap();
    println!("{}", simulator.url());
    // The process that started this one asks once for how long a reply really took, which is what a
    // program without any cost would need.
    let asked = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    asked.await.unwrap().unwrap();
    let took = |request: &convoke_sim::Received| Some(request.ended_at? - request.arrived_at);
    let times: Vec<u64> = simulator.requests().iter().filter_map(took).collect();
    println!("{} {}", times.iter().sum::<u64>() as f64 / times.len().max(1) as f64, times.len());
}

async fn runtime(url: &str, dir: &Path, at_once: usize) -> (Runtime, Governor) {
    let ids = Ids::random();
    let process = convoke_journal::Process::current(ids.bits().unwrap());
    let journal = Journal::open(Location::Sqlite(dir.join("j.db")), Options::new(process)).await.unwrap();
    let auth = convoke_claude::Auth { key: Some(convoke_claude::Secret::new("k")), bearer: None };
    let client = ClientConfig { base_url: url.into(), proxy: Proxy::Off, auth, ..ClientConfig::default() };
    let governor = Governor::new(Clock::system(), at_once);
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let runtime = Runtime::new(Config {
        journal,
        client: Client::new(client).unwrap(),
        models: Models::builtin(),
        clock: Clock::system(),
        ids,
        helper: HelperPath::new(std::env::current_exe().unwrap()),
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        outputs: dir.join("outputs"),
        spools: Vec::new(),
        drain: Duration::from_secs(1),
        governor: governor.clone(),
        agents_at_once: 2 * at_once,
        confine: Confine::nothing(dir.join("private")),
        forbidden: Default::default(),
        team: convoke_runtime::TeamConfig::default(),
        programs: convoke_runtime::Programs::without_library(&HelperPath::new(
            std::env::current_exe().unwrap(),
        )),
        trees: None,
        asker: None,
        tools: Default::default(),
        crash: None,
    });
    (runtime, governor)
}

fn start(dir: &Path) -> Start {
    let model = Models::builtin().get(MODEL);
    let capabilities = capabilities(&model, &Endpoint::anthropic(), Some("xhigh")).unwrap();
    let limits = Limits { max_turns: 1_000, ..Limits::default() };
    let child =
        Child { model: MODEL.into(), capabilities: capabilities.clone(), limits, rates: ceilings(&model) };
    let mut start = Start::new(MODEL, dir);
    start.capabilities = capabilities;
    // Without layers to hold it, a confined agent's commands are refused, and the figure would be of
    // refusals.
    start.confinement = Confinement::default();
    start.fan_out = Some(FanOut {
        mode: true,
        consent: false,
        voters: 1,
        max_subtasks: WAITING,
        quoted: false,
        fresh: false,
        child,
        callees: Default::default(),
    });
    start
}

async fn fan_out(url: &str) {
    let dir = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let (runtime, _) = runtime(url, dir.path(), AT_ONCE).await;
    let begun = Instant::now();
    let lead = runtime.start(start(work.path()), "go").await.unwrap();
    let ended = runtime.drive(&lead, DriveMode::New, Stop::never(), None).await.unwrap();
    let wall = begun.elapsed().as_secs_f64();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    let cpu = |who| {
        let usage = getrusage(who).unwrap();
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
    };
    let own = cpu(UsageWho::RUSAGE_SELF);
    let shells = cpu(UsageWho::RUSAGE_CHILDREN);
    println!("{wall} {own} {shells} {}", memory("VmHWM:"));
}

async fn wait(url: &str) {
    let dir = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let (runtime, governor) = runtime(url, dir.path(), WAITING).await;
    let lead = runtime.start(start(work.path()), "go").await.unwrap();
    let before = memory("VmRSS:");
    let driven = tokio::spawn(async move { runtime.drive(&lead, DriveMode::New, Stop::never(), None).await });
    let deadline = Instant::now() + Duration::from_secs(120);
    let all_wait = |stats: GovernorStats| {
        stats.in_flight + stats.waiting >= WAITING && stats.in_flight >= WAITING - WAITING / 10
    };
    while !all_wait(governor.stats()) {
        assert!(Instant::now() < deadline && !driven.is_finished(), "{:?}", governor.stats());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // They are admitted; let the last of them write its request.
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("{before} {} {}", memory("VmRSS:"), governor.stats().in_flight);
    driven.abort();
}

/// A figure of this process in MiB.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
