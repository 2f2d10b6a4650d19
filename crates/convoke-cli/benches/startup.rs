//! What starting costs: wall time, processor time and peak memory of `convoke --version`, and of a whole
//! one-turn run against a simulator in this process, with the sandbox (what it can hold is remembered after
//! the first run) and with `--sandbox off`; and of a run that takes a finished fan-out of 200 from the
//! journal, with two replies of 50 ms. Times are medians; what compares between machines are the ratios to
//! starting `true`, and of the two runs to each other.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sim::{Brain, Context, Reply, Retention, Script, Scripted, SimConfig, Simulator, calls, says};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

const ROUNDS: usize = 41;
const SUBTASKS: usize = 200;
const REPLY: Duration = Duration::from_millis(50);

/// What one start took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    processor: Duration,
}

/// What the children of this process, and theirs, have used so far.
fn processor() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let micros = used.user_time().num_microseconds() + used.system_time().num_microseconds();
    Duration::from_micros(micros.try_into().unwrap())
}

fn cost(mut run: impl FnMut()) -> Cost {
    let before = processor();
    let start = Instant::now();
    run();
    Cost { wall: start.elapsed(), processor: processor() - before }
}

/// The medians of several things that are done in turn, so that a busy moment meets all of them.
fn medians<const N: usize>(rounds: usize, mut runs: [&mut dyn FnMut(); N]) -> [Cost; N] {
    let rounds: Vec<[Cost; N]> =
        (0..rounds).map(|_| std::array::from_fn(|which| cost(&mut *runs[which]))).collect();
    std::array::from_fn(|which| {
        let middle = |of: fn(&Cost) -> Duration| {
            let mut all: Vec<Duration> = rounds.iter().map(|round| of(&round[which])).collect();
            all.sort();
            all[all.len() / 2]
        };
        Cost { wall: middle(|cost| cost.wall), processor: middle(|cost| cost.processor) }
    })
}

/// The largest child so far, in MiB. Children are started from small to large, so each reading is its own.
fn peak_mib() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as f64 / 1024.0
}

fn quiet(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn tell(name: &str, cost: Cost, nothing: Cost) {
    println!(
        "{name}_ms {:.1} ({:.1} times `true`), processor {:.1} ms, peak so far {:.1} MiB",
        cost.wall.as_secs_f64() * 1e3,
        ratio(cost.wall, nothing.wall),
        cost.processor.as_secs_f64() * 1e3,
        peak_mib()
    );
}

/// A lead that fans out; its replies take their time. Workers find something at once, and verifiers confirm
/// it.
struct Team;

impl Brain for Team {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let offers =
            |name: &str| request["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
        let look = || calls("glob", json!({"pattern": "*"}));
        let found = json!([{"claim": "c", "evidence": "e", "severity": "low"}]);
        let judged = json!([{"finding": 1, "verdict": "confirmed", "evidence": "e"}]);
        let is_lead = offers("Workflow");
        let replies: Vec<Reply> = match () {
            () if is_lead => {
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
        scripted.delay = if is_lead { REPLY } else { Duration::ZERO };
        scripted
    }
}

/// A finished fan-out is taken from the journal.
fn rerun(runtime: &tokio::runtime::Runtime) {
    let mut config = SimConfig::new(Team);
    config.keep = Retention::Summaries;
    let simulator = runtime.block_on(Simulator::start(config)).unwrap();
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("work")).unwrap();
    // Without a sandbox, because looking without one starts no shell: only the reruns count here.
    let mut run = || one_turn(home.path(), &simulator.url(), &["--sandbox", "off"]);
    run();
    let asked = simulator.requests().len();
    let [rerun] = medians(5, [&mut run]);
    assert_eq!(simulator.requests().len() - asked, 5 * 2, "only the lead asks");
    println!(
        "rerun_ms {:.0} (a finished fan-out of {SUBTASKS}; its two replies take {} ms), processor {:.0} ms",
        rerun.wall.as_secs_f64() * 1e3,
        2 * REPLY.as_millis(),
        rerun.processor.as_secs_f64() * 1e3
    );
}

fn one_turn(home: &Path, url: &str, sandbox: &[&str]) {
    quiet(
        Command::new(env!("CARGO_BIN_EXE_convoke"))
            .args([&["run", "what is it"], sandbox].concat())
            .current_dir(home.join("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home)
            .env("ANTHROPIC_API_KEY", "bench")
            .env("ANTHROPIC_BASE_URL", url),
    );
}

fn main() {
    let [nothing, version] = medians(
        ROUNDS,
        [&mut || quiet(&mut Command::new("true")), &mut || {
            quiet(Command::new(env!("CARGO_BIN_EXE_convoke")).arg("--version"))
        }],
    );
    tell("version", version, nothing);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let simulator =
        runtime.block_on(Simulator::start(Script::new().conversation("*", [says("42")]))).unwrap();
    let url = simulator.url();
    // Each kind of run has a home, and so a journal, of its own; it must lie outside the directory that is
    // worked in.
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    homes.iter().for_each(|home| std::fs::create_dir(home.path().join("work")).unwrap());
    let [held, off] = &homes;
    let first = cost(|| one_turn(held.path(), &url, &[]));
    tell("first_turn", first, nothing);
    let [nothing, held, off] = medians(
        ROUNDS,
        [&mut || quiet(&mut Command::new("true")), &mut || one_turn(held.path(), &url, &[]), &mut || {
            one_turn(off.path(), &url, &["--sandbox", "off"])
        }],
    );
    tell("one_turn", held, nothing);
    tell("one_turn_off", off, nothing);
    println!(
        "one_turn_over_off wall {:.2}, processor {:.2}",
        ratio(held.wall, off.wall),
        ratio(held.processor, off.processor)
    );
    rerun(&runtime);
}
