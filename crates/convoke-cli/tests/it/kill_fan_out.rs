//! `kill -9` on the real binary in the middle of a fan-out with verification. After `convoke resume` the
//! findings and verdicts are those of a session without a kill, and only what was in flight has been asked
//! again. The simulator lives in the test, outside of what is killed. `scripts/soak` kills runs of two
//! hundred subtasks.

pub(crate) mod brain;
#[path = "kill/processes.rs"]
#[expect(clippy::duplicate_mod, reason = "the other test of kills looks at processes in the same way")]
mod processes;
mod standing;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use convoke_sim::Simulator;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use self::brain::{FanOutBrain, LEAD, expected, told_unknown, who};
use self::processes::{cmdline, ours, started_at};
use self::standing::Standing;
use crate::stage::Stage;

const TASK: &str = "review every file";
/// The lead, and the agents at work at once with `--max-concurrent 10`. Ten of them wait for their model; a
/// few more have their reply and are about to record it.
const AT_WORK: usize = 1 + 2 * 10;
/// A whole life of a process, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long anything of a killed process may live on.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(1);

/// A small generator of our own, so that a printed seed means the same kills for ever, as far as time allows.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }
}

/// What a finished run says: everything in it that a kill must not change.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    /// The findings of the object on stdout, without the ids of agents and runs.
    shown: Vec<Value>,
    /// The findings and verdicts as they are recorded.
    recorded: Vec<String>,
    /// The lead's answer: every verdict line that it read.
    answer: String,
}

/// What all sessions came to.
#[derive(Default)]
struct Tally {
    /// Those that a kill hit.
    runs: usize,
    kills: usize,
    /// By how far the session was: before the fan-out, in it, after it.
    phases: [usize; 3],
    requests: usize,
    in_flight: usize,
    most_in_flight: usize,
    repeats: usize,
    most_repeats: usize,
    /// Commands that were under way at the kills, and those whose agents were told so.
    commands: usize,
    told: usize,
    unconfirmed_nano: u64,
    spent_nano: u64,
    billed_nano: u64,
    orphans: usize,
    gone: Vec<Duration>,
}

/// One session, over as many processes as it takes.
struct Run {
    stage: Stage,
    scratch: TempDir,
    items: usize,
    /// How it stood at each kill, and how many requests had arrived by then.
    kills: Vec<(Standing, usize)>,
    watches: Vec<JoinHandle<Duration>>,
}

impl Run {
    async fn new(items: usize) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let stage = FanOutBrain::new(items, scratch.path()).stage().await;
        Self { stage, scratch, items, kills: Vec::new(), watches: Vec::new() }
    }

    fn journal(&self) -> PathBuf {
        self.scratch.path().join("journal.db")
    }

    fn sim(&self) -> &Simulator {
        self.stage.sim()
    }

    /// One process: to its end, or to the kill once so many requests have arrived and some time has passed.
    async fn life(&mut self, kill_at: Option<(usize, Duration)>) -> Option<Value> {
        let stands = Standing::read(&self.journal()).await;
        let journal = self.journal();
        // Unconfined, because the commands of workers count themselves where a throwaway copy would not show
        // it.
        let place =
            ["--journal", journal.to_str().unwrap(), "--output", "json", "--quiet", "--sandbox", "off"];
        // A killed attempt is settled at its bound, which a cap would count; the caps have tests of their
        // own.
        let run = ["run", "--max-concurrent", "10", "--budget-usd", "none", TASK];
        let doing: Vec<&str> = match &stands.session {
            None => run.to_vec(),
            // It was killed between its last append and its end: it is asked by name what it had said.
            Some(session) if stands.answered => vec!["resume", session],
            Some(_) => vec!["resume"],
        };
        let [out, err] = ["stdout", "stderr"].map(|name| self.scratch.path().join(name));
        let mut command = self.stage.command(&[&place, &doing[..]].concat());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let ended = async {
            if let Some((requests, pause)) = kill_at {
                tokio::select! {
                    status = child.wait() => return Some(status.unwrap()),
                    () = async {
                        drop(self.sim().wait_for_requests(requests).await);
                        sleep(pause).await;
                    } => {}
                }
                return None;
            }
            Some(child.wait().await.unwrap())
        };
        let Ok(ended) = timeout(PATIENCE, ended).await else {
            panic!("{doing:?} takes too long: {}", std::fs::read_to_string(&err).unwrap())
        };
        let status = match ended {
            Some(status) => status,
            None => self.kill(&mut child).await,
        };
        if status.signal() == Some(9) {
            return None;
        }
        let [out, err] = [out, err].map(|file| std::fs::read_to_string(file).unwrap());
        assert_eq!(status.code(), Some(0), "{doing:?}\n{out}\n{err}");
        Some(serde_json::from_str(&out).unwrap())
    }

    async fn kill(&mut self, child: &mut Child) -> std::process::ExitStatus {
        let since = Instant::now();
        // If it has just ended by itself there is nothing to kill, and its status says so.
        let _ = child.start_kill();
        let status = timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
        if status.signal() == Some(9) {
            self.watch_orphans(since);
            let standing = Standing::read(&self.journal()).await;
            self.kills.push((standing, self.sim().requests().len()));
        }
        status
    }

    /// Sees to it that what the killed process left behind goes away, while the next one is already at work.
    fn watch_orphans(&mut self, since: Instant) {
        let left = self.processes();
        if left.is_empty() {
            return;
        }
        self.watches.push(tokio::spawn(async move {
            let alive =
                || left.iter().find(|(pid, start)| started_at(**pid) == Some(**start)).map(|(pid, _)| *pid);
            while let Some(pid) = alive() {
                assert!(
                    since.elapsed() < ORPHANS_END_WITHIN,
                    "process {pid} outlives its convoke: {}",
                    cmdline(pid)
                );
                sleep(Duration::from_millis(2)).await;
            }
            since.elapsed()
        }));
    }

    /// The processes of this session, but for zombies.
    fn processes(&self) -> BTreeMap<u32, u64> {
        ours(&[&self.stage.home(), self.scratch.path()])
    }

    /// Goes on until there is an answer, killing up to so many times on the way.
    async fn answer(&mut self, kills: usize, draw: &mut Draw) -> Said {
        let all = requests_of(self.items);
        let object = loop {
            let aim = (self.kills.len() < kills).then(|| {
                let so_far = self.sim().requests().len();
                // Any request that is still to come, and any moment while it and its like are answered.
                let ahead = 1 + draw.below(all.saturating_sub(so_far));
                (so_far + ahead, Duration::from_micros(draw.below(40_000) as u64))
            });
            if let Some(object) = self.life(aim).await {
                break object;
            }
        };
        assert_eq!(object["status"], "done", "{object:#}");
        let shown = object["findings"].as_array().unwrap().iter().cloned().map(|mut finding| {
            finding.as_object_mut().unwrap().retain(|name, _| name != "agent" && name != "run");
            finding
        });
        let standing = Standing::read(&self.journal()).await;
        assert_eq!(standing.open, 0, "{standing:?}");
        Said {
            shown: shown.collect(),
            recorded: standing.findings,
            answer: object["answer"].as_str().unwrap().to_owned(),
        }
    }

    /// What was asked and done, against what had to be.
    async fn check(mut self, tally: &mut Tally) {
        let requests = self.sim().requests();
        let mut sent = HashMap::new();
        let mut places = HashMap::new();
        let mut told = BTreeMap::new();
        let mut repeats = vec![0; self.kills.len() + 1];
        for request in &requests {
            let who = who(&request.body);
            let life = self.kills.iter().filter(|(_, arrived)| *arrived <= request.index).count();
            if let Some(before) = sent.insert(essence(&request.body), life) {
                assert_ne!(before, life, "{who} sent a request twice although nobody killed it");
                let in_flight = &self.kills[before].0.in_flight;
                assert!(
                    in_flight.contains(&who),
                    "{who} sent a request again that was answered; only {in_flight:?} were not"
                );
                repeats[life] += 1;
            }
            *places.entry((request.conversation.clone(), request.position)).or_insert(0) += 1;
            let most: &mut usize = told.entry(who).or_default();
            *most = told_unknown(&request.body).max(*most);
        }
        let most_repeats = repeats.iter().copied().max().unwrap_or(0);
        let repeats = repeats.iter().sum::<usize>();
        let as_it_was: usize = places.into_values().map(|count: usize| count - 1).sum();
        assert_eq!(as_it_was, repeats, "what was sent again was sent as it was");
        for (standing, _) in &self.kills {
            assert!(standing.in_flight.len() <= AT_WORK, "in flight: {:?}", standing.in_flight);
        }
        let unknown: usize = told.values().sum();
        // An agent that does not know what came of its command runs it again, which takes one more request.
        assert_eq!(requests.len(), requests_of(self.items) + repeats + unknown);
        let cut: usize = self.kills.iter().map(|(standing, _)| standing.commands.len()).sum();
        assert!(unknown <= cut, "{unknown} agents were told of a cut command, {cut} were cut");
        self.check_commands(&told);

        let standing = Standing::read(&self.journal()).await;
        let billed = self.sim().bill().total_nano;
        assert!(
            standing.spent_nano >= billed,
            "the ledger has {} and the bill is {billed}",
            standing.spent_nano
        );
        for (standing, _) in &self.kills {
            let phase = if standing.agents == 0 { 0 } else { 1 + usize::from(standing.judged == self.items) };
            tally.phases[phase] += 1;
            tally.commands += standing.commands.len();
            tally.in_flight += standing.in_flight.len();
            tally.most_in_flight = tally.most_in_flight.max(standing.in_flight.len());
        }
        tally.runs += usize::from(!self.kills.is_empty());
        tally.kills += self.kills.len();
        tally.requests += requests.len();
        tally.repeats += repeats;
        tally.most_repeats = tally.most_repeats.max(most_repeats);
        tally.told += unknown;
        tally.spent_nano += standing.spent_nano;
        tally.unconfirmed_nano += standing.unconfirmed_nano;
        tally.billed_nano += billed;
        tally.orphans += self.watches.len();
        for watch in std::mem::take(&mut self.watches) {
            tally.gone.push(watch.await.unwrap());
        }
        let since = Instant::now();
        while let Some(pid) = self.processes().keys().next() {
            assert!(
                since.elapsed() < ORPHANS_END_WITHIN,
                "process {pid} outlives the run: {}",
                cmdline(*pid)
            );
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Every agent's command ran, and a second time only if the agent was told that the outcome of the first
    /// is unknown.
    fn check_commands(&self, told: &BTreeMap<String, usize>) {
        assert_eq!(told.len(), 1 + 2 * self.items);
        for (who, unknown) in told.iter().filter(|(who, _)| *who != LEAD) {
            let file = self.scratch.path().join("ran").join(who);
            let ran = std::fs::read_to_string(file).unwrap_or_default().lines().count();
            assert!(
                (1..=1 + unknown).contains(&ran),
                "{who} ran its command {ran} times, told unknown {unknown} times"
            );
        }
    }
}

/// The requests of a session without a kill: two of the lead, and two of every worker and verifier.
fn requests_of(items: usize) -> usize {
    2 + 4 * items
}

/// A request without what may differ when it is sent again: how much it may say, and where its cache marks
/// are.
fn essence(body: &Value) -> String {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| name != "cache_control" && name != "max_tokens");
                members.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut body = body.clone();
    strip(&mut body);
    body.to_string()
}

/// The uninterrupted run says what its agents were made to find.
fn check_said(said: &Said, items: usize) {
    let lines: Vec<&str> = said.answer.lines().collect();
    assert_eq!((lines.len(), said.recorded.len()), (items, items), "{}", said.answer);
    for (item, line) in (1..).zip(lines) {
        let claim = format!("{item:03} is {item}");
        let verdict = format!("- [{}", expected(item));
        assert!(line.starts_with(&verdict) && line.ends_with(&claim), "{verdict} … {claim}: {line}");
        let shown = said.shown.iter().find(|finding| finding["claim"] == claim.as_str());
        let shown = shown.unwrap_or_else(|| panic!("no {claim} in {:?}", said.shown));
        assert_eq!((&shown["verdict"], &shown["item"]), (&expected(item).into(), &item.into()), "{shown}");
    }
    assert_eq!(said.shown.len(), items);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn kill_9_in_a_fan_out_changes_no_finding_and_no_verdict() {
    let number = |name: &str, or| std::env::var_os(name).map_or(or, |n| n.to_str().unwrap().parse().unwrap());
    let seed = number("CONVOKE_SEED", 1);
    let items = number("CONVOKE_SOAK_SUBTASKS", 12);
    let runs = number("CONVOKE_SOAK_FAN_OUT_KILLS", 3);
    println!("seed {seed}");
    let mut draw = Draw((seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1));
    let began = Instant::now();
    let mut undisturbed = Run::new(items).await;
    let wanted = undisturbed.answer(0, &mut draw).await;
    check_said(&wanted, items);
    undisturbed.check(&mut Tally::default()).await;
    let alone = began.elapsed();

    let mut tally = Tally::default();
    let mut tries = 0..2 * runs + 4;
    while tally.runs < runs {
        assert!(tries.next().is_some(), "the kills do not hit");
        let mut run = Run::new(items).await;
        // Each session is killed, and every other one again while it is being resumed.
        let kills = 1 + draw.below(2);
        let said = run.answer(kills, &mut draw).await;
        assert_eq!(said, wanted);
        run.check(&mut tally).await;
    }
    let [before, within, after] = tally.phases;
    println!(
        "{} kills in {} runs of {items} subtasks: {before} before the fan-out, {within} in it, {after} after \
            it",
        tally.kills, tally.runs
    );
    println!("the same {} findings and verdicts each time", wanted.recorded.len());
    println!(
        "{} requests, of them {} sent again (at most {} after one kill); {} were in flight at the kills (at \
            most {} at one)",
        tally.requests, tally.repeats, tally.most_repeats, tally.in_flight, tally.most_in_flight
    );
    println!(
        "{} commands under way at the kills, {} told as unknown; no other ran twice",
        tally.commands, tally.told
    );
    let dollars = |nano: u64| nano as f64 / 1e9;
    println!(
        "ledger ${:.2}, of it ${:.2} unconfirmed; the simulator's bill ${:.2}",
        dollars(tally.spent_nano),
        dollars(tally.unconfirmed_nano),
        dollars(tally.billed_nano)
    );
    tally.gone.sort();
    println!(
        "processes were left after {} kills; until they were gone: median {:.0?}, most {:.0?}",
        tally.orphans,
        tally.gone.get(tally.gone.len() / 2).copied().unwrap_or_default(),
        tally.gone.last().copied().unwrap_or_default()
    );
    println!("the run that nobody killed took {alone:.1?}, everything {:.1?}", began.elapsed());
    assert!(tally.repeats + tally.told > 0, "the kills must have hit something");
}
