//! What starting costs: wall time and peak memory of `convoke --version`, and of a whole one-turn run against
//! a simulator in this process. Times are medians; the ratio to starting `true` is what compares between
//! machines.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sim::{Script, Simulator, says};
use nix::sys::resource::{UsageWho, getrusage};

const ROUNDS: usize = 21;

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// The largest child so far, in MiB. Children are started from small to large, so each reading is its own.
fn peak_mib() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as f64 / 1024.0
}

fn quiet(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
}

fn main() {
    let convoke = env!("CARGO_BIN_EXE_convoke");
    let nothing = median(|| quiet(&mut Command::new("true")));
    let version = median(|| quiet(Command::new(convoke).arg("--version")));
    let ratio = version.as_secs_f64() / nothing.as_secs_f64();
    println!(
        "version_ms {:.1} ({ratio:.1} times `true`), peak {:.1} MiB",
        version.as_secs_f64() * 1e3,
        peak_mib()
    );

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let simulator =
        runtime.block_on(Simulator::start(Script::new().conversation("*", [says("42")]))).unwrap();
    let home = tempfile::tempdir().unwrap();
    // The journal must lie outside the directory that is worked in.
    let work = home.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let one_turn = median(|| {
        quiet(
            Command::new(convoke)
                .args(["run", "what is it"])
                .current_dir(&work)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("HOME", home.path())
                .env("ANTHROPIC_API_KEY", "bench")
                .env("ANTHROPIC_BASE_URL", simulator.url()),
        );
    });
    let ratio = one_turn.as_secs_f64() / nothing.as_secs_f64();
    println!(
        "one_turn_ms {:.1} ({ratio:.1} times `true`), peak {:.1} MiB",
        one_turn.as_secs_f64() * 1e3,
        peak_mib()
    );
}
