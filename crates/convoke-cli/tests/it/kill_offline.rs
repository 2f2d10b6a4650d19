//! `kill -9` in the commands of the offline model: the lead's first one, those of its workers and verifiers,
//! and those of teammates with a task in hand. After a resume the findings, the board and the exit code are
//! those of a session that was never cut. `scripts/soak` kills sixty times.

#![expect(clippy::print_stdout, reason = "the figures are what these tests are for")]

use std::process::Stdio;

use convoke_kernel::{SessionId, Task};
use convoke_runtime::{Clock, Ids, TeamClient};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::stage::{Stage, patiently};
use crate::team_fire::{Draw, seed, size};

const REVIEW: &str = "Review this repository";
const BOARD: &str = "Create tasks: List the files here; Count the lines by language; Find the largest \
    files; Find TODO comments. Spawn teammates alice and bob who claim tasks from the board.";
/// What the kernel writes into a result that was cut off.
const UNKNOWN: &str = "outcome is unknown";

/// The agent whose command a kill falls into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Lead,
    /// Any other agent: a worker, a verifier or a teammate.
    Other,
}

/// What a session came to.
#[derive(Debug, PartialEq, Eq)]
struct End {
    code: Option<i32>,
    status: String,
    /// The findings with their verdicts, or the tasks with how they ended and their results.
    found: Vec<String>,
    agents: usize,
}

fn plant() -> Stage {
    let stage = Stage::bare();
    std::fs::create_dir(stage.work().join("src")).unwrap();
    for number in 0..6 {
        let text = "fn f() {\n    // TODO: later\n    g().unwrap();\n}\n";
        std::fs::write(stage.work().join(format!("src/a{number}.rs")), text).unwrap();
    }
    std::fs::write(stage.work().join("README.md"), "[gone](gone.md)\n").unwrap();
    let made =
        std::process::Command::new("git").args(["init", "-q"]).current_dir(stage.work()).status().unwrap();
    assert!(made.success());
    stage
}

/// Runs the binary and reads what it prints, event by event. With an aim the process is killed as soon as
/// this command of that agent is recorded as started; `None` then, and the last line otherwise.
pub(crate) async fn run(
    stage: &Stage,
    args: &[&str],
    aim: Option<(Whose, usize)>,
) -> (Option<i32>, Option<Value>) {
    let mut child = stage.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lead = None;
    let mut started = 0;
    let mut last = None;
    while let Some(line) = patiently("a line of the run", lines.next_line()).await.unwrap() {
        let event: Value = serde_json::from_str(&line).unwrap();
        // A resume prints what was there before, the lead first.
        lead = lead
            .or_else(|| event["stream"].as_str().filter(|name| name.starts_with("a_")).map(str::to_owned));
        if let Some((whose, number)) = aim
            && event["type"] == "tool_started"
            && event["name"] == "bash"
        {
            let is_lead = event["stream"].as_str() == lead.as_deref();
            started += usize::from(is_lead == (whose == Whose::Lead));
            if started == number {
                child.kill().await.unwrap();
                return (None, None);
            }
        }
        last = Some(event);
    }
    (patiently("the end", child.wait()).await.unwrap().code(), last)
}

async fn end(stage: &Stage, code: Option<i32>, last: Option<Value>) -> End {
    let ended = last.unwrap_or_else(|| panic!("the run says nothing: exit code {code:?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding =
        |one: &Value| format!("{} {} {} {}", one["verdict"], one["severity"], one["claim"], one["citations"]);
    let mut found: Vec<String> = ended["findings"].as_array().unwrap().iter().map(finding).collect();
    let session: SessionId = text(&ended["run"]).parse().unwrap();
    let journal = journal(stage).await;
    let board =
        TeamClient::new(journal.clone(), Clock::system(), Ids::random()).board(&session).await.unwrap();
    journal.close().await.unwrap();
    let state = |task: &Task| format!("{:?}", task.state).split([' ', '{']).next().unwrap().to_owned();
    found.extend(
        board.tasks().iter().map(|task| format!("{}: {} {:?}", task.subject, state(task), task.result)),
    );
    found.sort();
    End { code, status: text(&ended["status"]), found, agents: ended["agents"].as_array().unwrap().len() }
}

async fn journal(stage: &Stage) -> convoke_journal::Journal {
    use convoke_journal::{Journal, Location, Options, Process};
    let process = Process::current(Ids::random().bits().unwrap());
    Journal::open(Location::Sqlite(stage.state().join("journal.db")), Options::new(process)).await.unwrap()
}

/// Kills a session at its aims, one after the other, and lets it come to its end. Says how many commands were
/// told to be cut off.
async fn killed(task: &str, aims: &[(Whose, usize)]) -> (End, usize) {
    let stage = plant();
    let mut args = vec!["--offline", "--output", "jsonl", task];
    let mut kills = 0;
    for aim in aims {
        // A later aim may be passed over: what would have been hit has ended already.
        let (code, last) = run(&stage, &args, Some(*aim)).await;
        if last.is_some() {
            return (end(&stage, code, last).await, cuts(&stage).await);
        }
        kills += 1;
        args = vec!["resume", "--output", "jsonl"];
    }
    assert!(kills > 0, "nobody was killed");
    let (code, last) = run(&stage, &args, None).await;
    (end(&stage, code, last).await, cuts(&stage).await)
}

/// Commands of all agents whose result says that they were cut off.
async fn cuts(stage: &Stage) -> usize {
    let journal = journal(stage).await;
    let mut cuts = 0;
    for row in journal.list(&convoke_journal::Filter { prefix: None, limit: None }).await.unwrap() {
        let records = journal.load(&row.stream, 0).await.unwrap();
        let is_cut = |text: &str| text.contains("tool_finished") && text.contains(UNKNOWN);
        cuts += records.iter().filter(|record| is_cut(&record.event.to_string())).count();
    }
    journal.close().await.unwrap();
    cuts
}

async fn compare(name: &str, task: &str, rounds: Vec<Vec<(Whose, usize)>>) {
    let stage = plant();
    let (code, last) = run(&stage, &["--offline", "--output", "jsonl", task], None).await;
    let uncut = end(&stage, code, last).await;
    assert_eq!((uncut.code, uncut.status.as_str()), (Some(0), "done"), "{uncut:?}");
    assert!(uncut.found.len() > 3, "{uncut:?}");
    let mut kills = 0;
    let mut cut = 0;
    for aims in rounds {
        let (end, cuts) = killed(task, &aims).await;
        assert_eq!(end, uncut, "{name}: killed at {aims:?}");
        kills += aims.len();
        cut += cuts;
    }
    assert!(cut > 0, "no kill fell into a command");
    println!(
        "{name}: {kills} kills, {cut} commands cut off, every end as uncut: exit code 0, {} found",
        uncut.found.len()
    );
}

/// Rounds of kills: some that are always there, and drawn ones.
fn rounds(always: &[&[(Whose, usize)]], drawn: usize, kinds: &[Whose]) -> Vec<Vec<(Whose, usize)>> {
    let seed = seed();
    println!("seed {seed}");
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(7));
    let mut rounds: Vec<Vec<(Whose, usize)>> = always.iter().map(|aims| aims.to_vec()).collect();
    for _ in 0..drawn {
        let aim = |draw: &mut Draw| (kinds[draw.below(kinds.len())], 1 + draw.below(4));
        rounds.push((0..1 + draw.below(3)).map(|_| aim(&mut draw)).collect());
    }
    rounds
}

#[tokio::test]
async fn kill_9_in_a_command_of_the_offline_lead_or_its_workers_changes_nothing_of_what_is_found() {
    use Whose::{Lead, Other};
    let always: [&[(Whose, usize)]; 3] =
        [&[(Lead, 1)], &[(Lead, 1), (Lead, 1), (Lead, 1)], &[(Lead, 1), (Other, 2), (Other, 9)]];
    let drawn = size("CONVOKE_SOAK_OFFLINE_KILLS").unwrap_or(1);
    compare("review", REVIEW, rounds(&always, drawn, &[Lead, Other, Other])).await;
}

#[tokio::test]
async fn kill_9_in_the_commands_of_an_offline_teammate_fails_no_task() {
    use Whose::Other;
    let always: [&[(Whose, usize)]; 3] =
        [&[(Other, 1)], &[(Other, 2), (Other, 1)], &[(Other, 1), (Other, 1), (Other, 1)]];
    let drawn = size("CONVOKE_SOAK_OFFLINE_KILLS").unwrap_or(1);
    compare("board", BOARD, rounds(&always, drawn, &[Other])).await;
}
