//! Durable appends: `cargo bench -p convoke-journal --bench appends [-- SECONDS [POSTGRES_URL]]`.
//!
//! Prints, all from one run because disks differ and change their mind: appends per second by one writer
//! alone, by 64 writers of one process, by the same when each append also updates one shared stream, and by
//! four processes with the slowest over the fastest. One append is one event of 256 bytes, on disk when it
//! counts.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use convoke_journal::{Batch, Change, Changed, Journal, Location, Options, Process, StreamId, Update};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const WRITERS: u32 = 64;
const PROCESSES: usize = 4;

fn main() -> Done<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // `cargo bench` adds `--bench` to what it was given.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [role, place, seconds] = &arguments[..]
        && role == "one-of-four"
    {
        return runtime.block_on(one_of_four(place, Duration::from_secs_f64(seconds.parse()?)));
    }
    let each = Duration::from_secs_f64(arguments.first().map_or(Ok(1.0), |seconds| seconds.parse())?);
    let dir = tempfile::tempdir()?;
    measure(&runtime, "sqlite", &dir.path().join("journal.db").display().to_string(), each)?;
    match arguments.get(1) {
        Some(url) => measure(&runtime, "postgres", url, each),
        None => Ok(()),
    }
}

fn measure(runtime: &tokio::runtime::Runtime, store: &str, place: &str, each: Duration) -> Done<()> {
    let alone = runtime.block_on(writers(place, 1, each, false))?;
    println!("{store}: one writer alone           {alone:>8.0} durable appends/s");
    let many = runtime.block_on(writers(place, WRITERS, each, false))?;
    println!(
        "{store}: {WRITERS} writers, one process    {many:>8.0} durable appends/s ({:.1} x)",
        many / alone
    );
    let shared = runtime.block_on(writers(place, WRITERS, each, true))?;
    println!("{store}: the same, all with one ledger {shared:>7.0} durable appends/s");
    let counts = processes(place, each)?;
    let slowest = counts.iter().min().unwrap_or(&0);
    let fastest = counts.iter().max().unwrap_or(&1);
    let sum: u64 = counts.iter().sum();
    let ratio = *slowest as f64 / *fastest as f64;
    let rate = sum as f64 / each.as_secs_f64();
    println!("{store}: {PROCESSES} processes, one writer each {rate:>6.0} durable appends/s");
    println!("{store}: slowest over fastest process     {ratio:>5.2}  {counts:?}");
    Ok(())
}

async fn open(place: &str) -> Done<Journal> {
    let mut bits = [0; 10];
    getrandom::fill(&mut bits).map_err(|error| error.to_string())?;
    Ok(Journal::open(place.parse::<Location>()?, Options::new(Process::current(bits))).await?)
}

/// Appends to a stream of its own until the time is over, and says how often.
async fn write(journal: Journal, stream: StreamId, each: Duration, shared: Option<Update>) -> Done<u64> {
    let lease = journal.own(&stream).await?;
    let text = format!(r#"{{"type":"measured","text":"{}"}}"#, "x".repeat(226));
    let batch = Batch { updates: shared.into_iter().collect(), ..Batch::events(1, [text]) };
    let begin = Instant::now();
    let mut seq = 0;
    while begin.elapsed() < each {
        seq = journal.append(&lease, seq, &batch).await?;
    }
    journal.release(&lease).await?;
    journal.prune(&[stream]).await?;
    Ok(seq)
}

/// Counts on in a state of the size a ledger has, with one event.
fn counted() -> Change {
    Change::new(|state| {
        let last: u64 = state.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0);
        let state = format!("{} {}", last + 1, "x".repeat(1_000));
        Ok(Changed { state, events: vec![format!(r#"{{"type":"counted","to":{}}}"#, last + 1)] })
    })
}

async fn writers(place: &str, count: u32, each: Duration, shared: bool) -> Done<f64> {
    let journal = open(place).await?;
    let ledger = StreamId::new("bench_ledger")?;
    let update = shared.then(|| Update { stream: ledger.clone(), change: counted() });
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..count {
        tasks.spawn(write(journal.clone(), StreamId::new(format!("bench{writer}"))?, each, update.clone()));
    }
    let mut total = 0;
    for done in tasks.join_all().await {
        total += done?;
    }
    journal.prune(&[ledger]).await?;
    journal.close().await?;
    Ok(total as f64 / each.as_secs_f64())
}

fn processes(place: &str, each: Duration) -> Done<Vec<u64>> {
    let mut children = Vec::new();
    for _ in 0..PROCESSES {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["one-of-four", place, &each.as_secs_f64().to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        lines.next().ok_or("a process did not start")??;
        children.push((child, lines));
    }
    for (child, _) in &mut children {
        child.stdin.take().ok_or("no stdin")?.write_all(b"go\n")?;
    }
    let mut counts = Vec::new();
    for (mut child, mut lines) in children {
        counts.push(lines.next().ok_or("a process did not finish")??.parse()?);
        child.wait()?;
    }
    Ok(counts)
}

async fn one_of_four(place: &str, each: Duration) -> Done<()> {
    let journal = open(place).await?;
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    let stream = StreamId::new(format!("bench_process_{}", std::process::id()))?;
    println!("{}", write(journal, stream, each, None).await?);
    Ok(())
}
