//! Random schedules of faults against the real binary over HTTP, judged by an oracle. The oracle reads what
//! the server did: which requests came, which of them had a reply that was sent to its end, and what that
//! reply was. From that alone it says how the session must end: exit code, status, lost and skipped subtasks,
//! verdicts. The binary's own report must be equal.
//!
//! CI plays a few; `scripts/soak` plays ten thousand (`CONVOKE_SOAK_ORACLE`). A seed is one schedule for
//! ever.

mod draw;
mod expect;

use std::collections::BTreeMap;

use convoke_sim::SimConfig;
use serde_json::Value;

use crate::stage::Stage;
use draw::Schedule;
use expect::{End, expected};

/// Runs under way at once: most of a session is waiting.
const AT_ONCE: usize = 6;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What the binary says of its end.
fn reported(code: Option<i32>, report: &Value) -> End {
    let list = |key: &str, name: fn(&Value) -> String| -> Vec<String> {
        let entries = report[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut names: Vec<String> = entries.iter().map(name).collect();
        names.sort();
        names
    };
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut verdicts: Vec<(String, String)> =
        findings.iter().map(|finding| (text(&finding["claim"]), text(&finding["verdict"]))).collect();
    verdicts.sort();
    assert_eq!(
        report["exit_code"].as_i64(),
        code.map(i64::from),
        "the report and the process agree on the exit code"
    );
    End {
        exit: code.unwrap_or(-1),
        status: text(&report["status"]),
        lost: list("lost", |entry| format!("{} {}", text(&entry["what"]), text(&entry["label"]))),
        skipped: list("skipped", |entry| text(&entry["label"])),
        verdicts,
    }
}

async fn play(seed: u64) -> End {
    let schedule = Schedule::draw(seed);
    let stage = Stage::with(SimConfig::new(schedule.brain())).await;
    std::fs::write(stage.work().join("a.txt"), "first line\nsecond line\n").unwrap();
    std::fs::write(stage.work().join("flow.js"), schedule.program()).unwrap();
    schedule.faults.iter().cloned().for_each(|fault| stage.sim().push_fault(fault));
    let seen = stage.run(&schedule.args()).await;
    let report: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|error| {
        panic!("seed {seed}: {error}\n{}\n{}\n{schedule:#?}", seen.stdout, seen.stderr)
    });
    let reported = reported(seen.code, &report);
    let expected = expected(&schedule, &stage.sim().requests());
    assert_eq!(
        reported, expected,
        "seed {seed}: left what the binary says, right the oracle\n{}\n{schedule:#?}",
        seen.stderr
    );
    expected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_schedules_end_as_the_oracle_says_from_what_the_server_did() {
    let number = |name: &str, default: u64| {
        std::env::var_os(name).map_or(default, |text| text.to_str().unwrap().parse().unwrap())
    };
    let count = number("CONVOKE_SOAK_ORACLE", 60);
    let first = number("CONVOKE_SEED", 1);
    println!("seeds {first} to {}", first + count - 1);
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    let mut lost = 0;
    let mut tasks = tokio::task::JoinSet::new();
    let mut seeds = first..first + count;
    let mut played_so_far = 0;
    loop {
        while tasks.len() < AT_ONCE
            && let Some(seed) = seeds.next()
        {
            tasks.spawn(play(seed));
        }
        let Some(played) = tasks.join_next().await else { break };
        let end = played.unwrap();
        lost += end.lost.len();
        *tally.entry(format!("{} (exit {})", end.status, end.exit)).or_default() += 1;
        played_so_far += 1;
        if played_so_far % 500 == 0 {
            println!("{played_so_far} of {count} equal so far: {tally:?}; {lost} pieces of work lost");
        }
    }
    println!("schedules by end: {tally:?}; {lost} pieces of work lost, each of them listed");
    assert_eq!(tally.values().sum::<u64>(), count);
    assert!(tally.len() >= 4 || count < 60, "the schedules reach few ends: {tally:?}");
}
