//! The fault table: 41 ways in which a server can fail a session, on the lead, on one worker, on all of them
//! or on verifiers, passing or lasting. For each the exit code, the status and what was lost are held to what
//! the table says; how long it took over the best possible and what was said are printed.
//!
//! `cargo test -p convoke-cli --test it faults -- --nocapture` prints the table that
//! `docs/internals/faults.md` keeps.

use std::time::{Duration, Instant};

use convoke_sim::{Fault, FaultKind, Reply, calls, calls_raw, cut_at_max_tokens, empty, refuses, says};
use serde_json::{Value, json};

use crate::team::{Team, finding, looks_and_reports, workflow};

/// What the messages of workers contain, of the second one, and of verifiers.
const WORKERS: &str = "<subtask>\nlow";
const ONE: &str = "<subtask>\nlow two";
const VERIFIERS: &str = "Another agent was given a subtask";
const LEAD: &str = "review it all";

/// How long one session may take: far more than any of these needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many sessions are tried at once.
const AT_ONCE: usize = 6;

/// A stream that stalls is given up soon, and a request is tried twice.
const IMPATIENT: &str = "max_attempts = 2\ntimeouts.idle = \"3s\"\n";

type Worker = fn(&str) -> Vec<Reply>;

struct Row {
    name: &'static str,
    faults: Vec<Fault>,
    worker: Worker,
    /// What stands in the configuration, and the flags: lasting faults are not to take their five minutes
    /// here.
    settings: &'static str,
    flags: &'static [&'static str],
    /// The exit code, the status, and what was lost, each by kind.
    expected: (i32, &'static str, Vec<&'static str>),
}

fn usual(task: &str) -> Vec<Reply> {
    looks_and_reports(task, vec![finding(task)])
}

/// What a worker says where only the second does something else.
fn only_second(task: &str, reply: Reply) -> Vec<Reply> {
    if task == "low two" { vec![reply] } else { usual(task) }
}

fn status(status: u16, error_type: &str, retry_after: Option<u64>) -> FaultKind {
    FaultKind::Status { status, error_type: error_type.to_owned(), retry_after }
}

fn limited(retry_after: Option<u64>) -> FaultKind {
    FaultKind::RateLimited { retry_after, headers: retry_after.is_some() }
}

fn broken(after: usize, error_type: &str) -> FaultKind {
    FaultKind::MidStreamError { after, error_type: error_type.to_owned() }
}

fn row(name: &'static str, kind: FaultKind, on: &str, times: u32) -> Row {
    let faults = vec![Fault::new(kind).opening(on).times(times)];
    Row { faults, ..says_once(name, usual) }
}

fn says_once(name: &'static str, worker: Worker) -> Row {
    Row { name, faults: Vec::new(), worker, settings: "", flags: &[], expected: (0, "done", Vec::new()) }
}

impl Row {
    fn ends(mut self, code: i32, status: &'static str, lost: &[&'static str]) -> Self {
        self.expected = (code, status, lost.to_vec());
        self
    }

    fn set(mut self, settings: &'static str) -> Self {
        self.settings = settings;
        self
    }

    fn flags(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }
}

/// Faults that pass, or that hit one agent of several.
fn passing() -> Vec<Row> {
    let api = || status(403, "permission_error", None);
    vec![
        row("429, retry-after 0, one worker", limited(Some(0)), ONE, 1),
        row("429 without retry-after, one worker", limited(None), ONE, 1),
        row("429, retry-after 0, each worker", limited(Some(0)), WORKERS, 3),
        row("429, retry-after 0, lead", limited(Some(0)), LEAD, 1),
        row("529, one worker", FaultKind::Overloaded529, ONE, 1),
        row("529, retry-after 0, each worker", status(529, "overloaded_error", Some(0)), WORKERS, 3),
        row("529, lead", FaultKind::Overloaded529, LEAD, 1),
        row("500, one worker", FaultKind::Internal500, ONE, 1),
        row("500, lead", FaultKind::Internal500, LEAD, 1),
        row("503, verifier", FaultKind::ServiceUnavailable503, VERIFIERS, 1),
        row("504, one worker", FaultKind::Timeout504, ONE, 1),
        row("dropped before the headers, one worker", FaultKind::CutBeforeHeaders, ONE, 1),
        row("dropped before the headers, lead", FaultKind::CutBeforeHeaders, LEAD, 1),
        row("cut in mid-stream, one worker", FaultKind::CutAfter(4), ONE, 1),
        row("cut at the first event, each worker", FaultKind::CutAfter(0), WORKERS, 3),
        row("overloaded_error in the stream, one worker", broken(3, "overloaded_error"), ONE, 1),
        row("api_error in the stream, verifier", broken(3, "api_error"), VERIFIERS, 1),
        row("malformed frame, one worker", FaultKind::MalformedFrame(3), ONE, 1),
        row("an unknown event, each worker", FaultKind::UnknownEvent(2), WORKERS, 3),
        row("a slow stream, one worker", FaultKind::Drip(5), ONE, 1),
        row("a stalled stream, one worker", FaultKind::Stall(3), ONE, 1).set(IMPATIENT),
        row("an HTML page with 200, one worker", FaultKind::Html200, ONE, 1).ends(3, "partial", &["api"]),
        says_once("max_tokens once, each worker", |task| {
            let mut replies = usual(task);
            replies[1] = replies[1].clone().cut_below(20_000, "I have foun");
            replies
        }),
        says_once("an empty reply, one worker", |task| only_second(task, empty())).ends(
            3,
            "partial",
            &["invalid_output"],
        ),
        says_once("the same command for ever, one worker", |task| match task {
            "low two" => vec![calls("bash", json!({"command": "ls"})); 8],
            _ => usual(task),
        })
        .ends(3, "partial", &["stuck"]),
        says_once("tool input that is no JSON once, each worker", |task| {
            let mut replies = usual(task);
            replies.insert(1, calls_raw("report_findings", "{\"summary\": "));
            replies
        }),
        row("403, one worker", api(), ONE, u32::MAX).ends(3, "partial", &["api"]),
        row("context full, one worker", too_long(), ONE, u32::MAX).ends(3, "partial", &["context_full"]),
    ]
}

fn too_long() -> FaultKind {
    FaultKind::BadRequest400("prompt is too long: 210000 tokens > 200000 maximum".to_owned())
}

/// Faults that last.
fn lasting() -> Vec<Row> {
    let all = |name, kind| row(name, kind, WORKERS, u32::MAX).ends(3, "partial", &["api", "api", "api"]);
    vec![
        all("401, all workers", status(401, "authentication_error", None)),
        all("403, all workers", status(403, "permission_error", None)),
        all("404, all workers", status(404, "not_found_error", None)),
        all("413, all workers", FaultKind::Html413),
        all("429, spend limit, all workers", FaultKind::SpendLimit),
        all("400, all workers", FaultKind::BadRequest400("simulator: refused on demand".to_owned())),
        says_once("refusal, one worker", |task| only_second(task, refuses("not this"))).ends(
            3,
            "partial",
            &["refused"],
        ),
        says_once("max_tokens, all workers", |_| {
            vec![cut_at_max_tokens("I have"), cut_at_max_tokens("I have")]
        })
        .ends(3, "partial", &["truncated", "truncated", "truncated"]),
        row("429, retry-after 3600, all workers, 10 minutes", limited(Some(3_600)), WORKERS, u32::MAX)
            .flags(&["--budget-minutes", "10"])
            .ends(3, "partial", &["rate_limited", "rate_limited", "rate_limited"]),
        row("529, all workers, two attempts", FaultKind::Overloaded529, WORKERS, u32::MAX)
            .set(IMPATIENT)
            .ends(3, "partial", &["api", "api", "api"]),
        row("a stalled stream, all workers, two attempts", FaultKind::Stall(3), WORKERS, u32::MAX)
            .set(IMPATIENT)
            .ends(3, "partial", &["deadline", "deadline", "deadline"]),
        row("403, all verifiers", status(403, "permission_error", None), VERIFIERS, u32::MAX).ends(
            3,
            "partial",
            &["api", "api", "api"],
        ),
        row("403, lead", status(403, "permission_error", None), LEAD, u32::MAX).ends(1, "failed", &[]),
    ]
}

/// What a session came to, for the table.
struct Seen {
    name: &'static str,
    found: (i32, String, Vec<String>),
    wall: Duration,
    said: String,
    wrong: Option<String>,
}

async fn tried(row: Row) -> Seen {
    let lead = [workflow(&["low one", "low two", "low three"]), says("The synthesis.")];
    let stage = Team::new(lead).workers(row.worker).stage().await;
    for fault in row.faults {
        stage.sim().push_fault(fault);
    }
    let config = stage.home().join(".config/convoke/config.toml");
    let endpoints = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{}{endpoints}", row.settings)).unwrap();
    let began = Instant::now();
    let mut command = stage.command(&["--output", "json", "--fail-on", "high"]);
    command.args(row.flags).args(["review", "it", "all"]);
    // One that does not end is a row like any other, and says so.
    let ended = tokio::time::timeout(PATIENCE, command.output()).await;
    let wall = began.elapsed();
    let output = ended.map(Result::unwrap).ok();
    let text = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let stdout = text(output.as_ref().map(|output| &output.stdout)).unwrap_or_default();
    let stderr =
        text(output.as_ref().map(|output| &output.stderr)).unwrap_or_else(|| "did not end".to_owned());
    let code = output.and_then(|output| output.status.code()).unwrap_or(-1);
    let report: Value = serde_json::from_str(&stdout).unwrap_or_default();
    let lost = report["lost"].as_array().cloned().unwrap_or_default();
    let kinds: Vec<String> =
        lost.iter().map(|item| item["kind"].as_str().unwrap_or_default().to_owned()).collect();
    let found = (code, report["status"].as_str().unwrap_or_default().to_owned(), kinds);
    let expected = {
        let (code, status, lost) = row.expected;
        (code, status.to_owned(), lost.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let named = lost.iter().all(|item| item["label"].as_str().is_some_and(|label| label.starts_with("low")));
    let wrong = (found != expected || !named)
        .then(|| format!("{}: expected {expected:?}, found {found:?}\n{}\n{report:#}", row.name, stderr));
    let said = stderr.lines().rfind(|line| line.starts_with("convoke: "));
    let said = said.and_then(|line| line.strip_prefix("convoke: ")).unwrap_or("done").to_owned();
    Seen { name: row.name, found, wall, said, wrong }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_as_the_table_says() {
    let mut rows: Vec<Row> = passing();
    assert_eq!(rows.len(), 28);
    rows.extend(lasting());
    assert_eq!(rows.len(), 41);
    let best = tried(says_once("no fault", usual)).await;
    assert_eq!(best.wrong, None);
    let mut left = rows.into_iter();
    let mut under_way = tokio::task::JoinSet::new();
    let mut all = Vec::new();
    for (at, row) in left.by_ref().enumerate() {
        if under_way.len() == AT_ONCE {
            all.push(under_way.join_next().await.unwrap().unwrap());
        }
        under_way.spawn(async move { (at, tried(row).await) });
    }
    while let Some(done) = under_way.join_next().await {
        all.push(done.unwrap());
    }
    all.sort_by_key(|(at, _)| *at);
    println!(
        "| fault | exit | status | lost | wall over the best | what was said last \
            |\n|---|---|---|---|---|---|"
    );
    for (_, seen) in &all {
        let (code, status, lost) = &seen.found;
        let ratio = seen.wall.as_secs_f64() / best.wall.as_secs_f64();
        let lost = if lost.is_empty() { "none".to_owned() } else { lost.join(", ") };
        println!("| {} | {code} | {status} | {lost} | {ratio:.1} | {} |", seen.name, seen.said);
    }
    let wrong: Vec<&String> = all.iter().filter_map(|(_, seen)| seen.wrong.as_ref()).collect();
    assert!(
        wrong.is_empty(),
        "{} of 40 ended otherwise:\n{}",
        wrong.len(),
        wrong.iter().map(|w| w.as_str()).collect::<Vec<_>>().join("\n\n")
    );
}
