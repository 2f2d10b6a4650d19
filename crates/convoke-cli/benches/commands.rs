//! What commands cost a fan-out: 200 workers and 200 verifiers, each with one command, 50 ms a reply and ten
//! at a time, with the real program, under each set of layers and without the sandbox, as wall time over the
//! time that the replies alone take; and the processor time of all of it, and that of the same commands each
//! in a bubblewrap of its own. The simulator is in another process.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sim::{Brain, Context, Reply, Retention, Script, Scripted, SimConfig, Simulator, calls, says};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde_json::{Value, json};

const REPLY: Duration = Duration::from_millis(50);
const AT_ONCE: usize = 10;
const SUBTASKS: usize = 200;
/// The replies of the lead, which nothing can run beside.
const OF_LEAD: usize = 2;
const ROUNDS: usize = 5;

/// A way to confine commands: its name and the flags that ask for it.
const WAYS: [(&str, &[&str]); 3] =
    [("bubblewrap", &[]), ("landlock", &["--sandbox-layers", "landlock"]), ("off", &["--sandbox", "off"])];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["serve", command, ..] => {
            let command = command.to_owned();
            tokio::runtime::Runtime::new().unwrap().block_on(serve(command));
        }
        _ => {
            // So that what the helpers have used is counted too, whichever process started them.
            nix::sys::prctl::set_child_subreaper(true).unwrap();
            fan_outs();
            fresh_sandboxes();
        }
    }
}

/// A lead that fans out, workers that run a command and find one thing, verifiers that run it and confirm it.
struct Team {
    command: String,
}

impl Brain for Team {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let offers =
            |name: &str| request["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
        let look = || calls("bash", json!({"command": self.command}));
        let found = json!([{"claim": "c", "evidence": "e", "severity": "low"}]);
        let judged = json!([{"finding": 1, "verdict": "confirmed", "evidence": "e"}]);
        let replies: Vec<Reply> = match () {
            () if offers("Workflow") => {
                let concern = |number| format!("look at concern {number}");
                let subtasks: Vec<String> = (0..SUBTASKS).map(concern).collect();
                vec![calls("Workflow", json!({"subtasks": subtasks})), says("done")]
            }
            () if offers("report_findings") => {
                vec![look(), calls("report_findings", json!({"summary": "s", "findings": found}))]
            }
            () => vec![look(), calls("report_verdicts", json!({"summary": "s", "verdicts": judged}))],
        };
        let mut scripted = Script::new().conversation("*", replies).reply(request, context);
        scripted.delay = REPLY;
        scripted
    }
}

/// Serves until its standard input ends, and then says how long a reply took and how many there were.
async fn serve(command: String) {
    let mut config = SimConfig::new(Team { command });
    config.keep = Retention::Summaries;
    let simulator = Simulator::start(config).await.unwrap();
    println!("{}", simulator.url());
    let asked = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    asked.await.unwrap().unwrap();
    let took = |request: &convoke_sim::Received| Some(request.ended_at? - request.arrived_at);
    let times: Vec<u64> = simulator.requests().iter().filter_map(took).collect();
    println!("{} {}", times.iter().sum::<u64>() as f64 / times.len().max(1) as f64, times.len());
}

/// A simulator in a process of its own.
struct Server {
    process: Child,
    lines: BufReader<std::process::ChildStdout>,
    url: String,
}

impl Server {
    fn start(command: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["serve", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let mut url = String::new();
        lines.read_line(&mut url).unwrap();
        Self { process, lines, url: url.trim().to_owned() }
    }

    /// The mean time of a reply in milliseconds, and how many there were.
    fn stop(mut self) -> (f64, usize) {
        drop(self.process.stdin.take());
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        self.process.wait().unwrap();
        let (mean, count) = line.trim().split_once(' ').unwrap();
        (mean.parse().unwrap(), count.parse().unwrap())
    }
}

/// The program that is measured: `scripts/bench` names the release.
fn binary() -> std::ffi::OsString {
    std::env::var_os("CONVOKE_BENCH_BINARY").unwrap_or(env!("CARGO_BIN_EXE_convoke").into())
}

/// The program at work in a home and a directory of its own.
fn convoke(home: &Path, url: &str, flags: &[&str]) -> Command {
    let work = home.join("work");
    if !work.exists() {
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join("a"), "a\n").unwrap();
    }
    let mut command = Command::new(binary());
    command
        .args(["run", "review it", "--quiet", "--workflow"])
        .args(flags)
        .current_dir(work)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("ANTHROPIC_API_KEY", "bench")
        .env("ANTHROPIC_BASE_URL", url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// What the processes below this one that have ended have used so far. All but one that serves end first.
fn processor(serving: Option<&Child>) -> Duration {
    let serving = serving.map(|server| Pid::from_raw(server.id().try_into().unwrap()));
    while let Some(pid) = below_directly(std::process::id()).into_iter().find(|pid| Some(*pid) != serving) {
        waitpid(pid, None).unwrap();
    }
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = used.user_time().num_microseconds() + used.system_time().num_microseconds();
    Duration::from_micros(micros.try_into().unwrap())
}

fn middle(mut figures: Vec<f64>) -> (f64, f64, f64) {
    figures.sort_by(f64::total_cmp);
    (figures[figures.len() / 2], figures[0], figures[figures.len() - 1])
}

fn fan_outs() {
    let limit = (2 * 2 * SUBTASKS / AT_ONCE + OF_LEAD) as f64 * REPLY.as_secs_f64();
    let mut walls = [const { Vec::new() }; WAYS.len()];
    let mut processors = [const { Vec::new() }; WAYS.len()];
    let mut replies = [const { Vec::new() }; WAYS.len()];
    for _ in 0..ROUNDS {
        for (way, (name, flags)) in WAYS.iter().enumerate() {
            let server = Server::start("ls");
            let home = tempfile::tempdir().unwrap();
            let before = processor(Some(&server.process));
            let begun = Instant::now();
            let status = convoke(home.path(), &server.url, flags).status().unwrap();
            walls[way].push(begun.elapsed().as_secs_f64());
            processors[way].push((processor(Some(&server.process)) - before).as_secs_f64());
            assert!(status.success(), "{name}: {status}");
            let (mean, count) = server.stop();
            // A run that ends early would look fast.
            assert!(count >= 4 * SUBTASKS + OF_LEAD, "{name}: {count} replies");
            replies[way].push(mean);
        }
    }
    for (way, (name, _)) in WAYS.iter().enumerate() {
        let (wall, best, worst) = middle(std::mem::take(&mut walls[way]));
        let (used, least, most) = middle(std::mem::take(&mut processors[way]));
        let reply = middle(std::mem::take(&mut replies[way])).0;
        println!(
            "commands_{name}_wall_over_limit {:.2} (median of {ROUNDS}, {:.2} to {:.2}; {wall:.2} s, limit \
                {limit:.2} s; the simulator took {reply:.1} ms for its 50)",
            wall / limit,
            best / limit,
            worst / limit
        );
        println!(
            "commands_{name}_processor_seconds {used:.2} ({least:.2} to {most:.2}; {} shells with one command \
                each, {:.1} ms an agent)",
            2 * SUBTASKS,
            used * 1e3 / (2 * SUBTASKS) as f64
        );
    }
}

/// The same commands without any agent: each in a bubblewrap of its own, with what the full set has of it,
/// and each in a bash alone.
fn fresh_sandboxes() {
    let work = tempfile::tempdir().unwrap();
    let mut figures = Vec::new();
    for (name, program) in [("bash", &["bash", "-c", "ls"][..]), ("bubblewrap_bash", BUBBLEWRAP)] {
        let before = processor(None);
        for _ in 0..2 * SUBTASKS {
            let mut command = Command::new(program[0]);
            command.args(&program[1..]).current_dir(work.path()).stdout(Stdio::null()).stderr(Stdio::null());
            assert!(command.status().is_ok_and(|status| status.success()), "{name}");
        }
        let used = (processor(None) - before).as_secs_f64();
        println!("{name}_processor_seconds {used:.2} ({} times `bash -c ls`)", 2 * SUBTASKS);
        figures.push(used);
    }
    println!("bubblewrap_over_bash {:.2}", figures[1] / figures[0]);
}

/// Bubblewrap as one would call it for a throwaway command.
const BUBBLEWRAP: &[&str] = &[
    "bwrap",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "--unshare-all",
    "--die-with-parent",
    "--",
    "bash",
    "-c",
    "ls",
];

fn below_directly(top: u32) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{top}/task/{top}/children")).unwrap_or_default();
    children.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}
