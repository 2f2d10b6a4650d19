//! `kill -9` on the real binary in the middle of a program with sixty agents, again and again. After `convoke
//! resume` the value is that of a run without a kill, and no agent that had ended was asked again. The same
//! from a copy of the journal in another directory, and from PostgreSQL. The simulator lives in the test,
//! outside of what is killed. CI kills a few times; `scripts/soak` kills thirty times.

#[path = "../../../convoke-runtime/tests/it/resume_programs/deep.rs"]
mod deep;
mod standing;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use convoke_sim::{Brain, Context, Fault, FaultKind, Scripted, SimConfig, tool_use_id};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use self::deep::{DEEP, deep_value, drawn};
use self::standing::Standing;
use crate::stage::Stage;

const AREAS: usize = 6;
/// A whole life of a process, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(240);
/// The longest a reply takes.
const THINKS_MS: u64 = 40;

/// Says what it was asked, after a time that follows from the question, so that agents that begin together
/// end in any order. One in three agents that look runs a command first.
struct Positional {
    seed: u64,
}

impl Brain for Positional {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let prompt = prompt(request);
        let block = match context.position {
            0 if replies(&prompt) == 2 => {
                let command = format!("echo {prompt}");
                let id = tool_use_id(context, "", 0);
                json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": command}})
            }
            _ => json!({"type": "text", "text": format!("did {prompt}")}),
        };
        let delay =
            Duration::from_millis(drawn(&format!("{prompt}{}", context.position), self.seed) % THINKS_MS);
        Scripted { delay, ..Scripted::new(vec![block]) }
    }
}

fn prompt(request: &Value) -> String {
    request["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The replies that an agent with this prompt takes to its end.
fn replies(prompt: &str) -> usize {
    if prompt.starts_with("look") && prompt.ends_with('0') { 2 } else { 1 }
}

/// Every prompt of the program, and how many agents have it.
fn slots() -> BTreeMap<String, usize> {
    let mut slots =
        BTreeMap::from([("doomed".to_owned(), 1), (format!("reduce {} of {AREAS}", 2 * AREAS), 1)]);
    for area in 0..AREAS {
        slots.insert(format!("scout {area}"), 1);
        slots.extend((0..6).map(|place| (format!("look {area} {} {}", place / 3, place % 3), 1)));
        *slots.entry(format!("vote {}", area % 2)).or_default() += 3;
    }
    slots
}

/// The requests of a run without a kill.
fn requests_of_all() -> usize {
    slots().iter().map(|(prompt, agents)| agents * replies(prompt)).sum()
}

/// A small generator of our own, so that a printed seed means the same kills for ever, as far as time allows.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }
}

/// What all runs came to.
#[derive(Default)]
struct Tally {
    kills: usize,
    requests: usize,
    in_flight: usize,
    repeats: usize,
    /// Agents that had ended at the kills and were not asked again.
    spared: usize,
}

/// One run, over as many processes as it takes.
struct Run {
    stage: Stage,
    scratch: TempDir,
    journal: String,
    home: Option<PathBuf>,
    /// How it stood at each kill, and how many requests had arrived by then.
    kills: Vec<(Standing, usize)>,
}

impl Run {
    async fn new(journal: Option<String>, draw: &mut Draw) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let stage = Stage::with(SimConfig::new(Positional { seed: draw.0 })).await;
        stage.sim().push_fault(
            Fault::new(FaultKind::BadRequest400("no such thing".into())).on("doomed").times(u32::MAX),
        );
        // Stores that several runs share must not take one for another.
        std::fs::write(stage.work().join("name"), scratch.path().to_string_lossy().as_bytes()).unwrap();
        let journal =
            journal.unwrap_or_else(|| scratch.path().join("journal.db").to_string_lossy().into_owned());
        std::fs::write(scratch.path().join("deep.js"), DEEP).unwrap();
        Self { stage, scratch, journal, home: None, kills: Vec::new() }
    }

    async fn standing(&self) -> Standing {
        Standing::read(&self.journal, &self.stage.work().canonicalize().unwrap()).await
    }

    /// One process: to its end, or to the kill once so many requests have arrived and some time has passed.
    /// Says whether it ended.
    async fn life(&mut self, kill_at: Option<(usize, Duration)>) -> bool {
        let script = self.scratch.path().join("deep.js").to_string_lossy().into_owned();
        let arguments = json!({"areas": AREAS}).to_string();
        let session = self.kills.last().and_then(|(at, _)| at.session.as_ref()).map(ToString::to_string);
        let doing: Vec<&str> = match &session {
            // A killed attempt is settled at its bound, which a cap would count; the caps have tests of their
            // own.
            None => vec!["workflow", "run", &script, "--args", &arguments, "--budget-usd", "none"],
            Some(session) => vec!["resume", session],
        };
        let place = ["--journal", &self.journal, "--output", "json", "--quiet", "--sandbox", "off"];
        let args = [&place, &doing[..]].concat();
        let [out, err] = ["stdout", "stderr"].map(|name| self.scratch.path().join(name));
        let mut command = self.stage.command(&args);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        let mut child = command.spawn().unwrap();
        let aimed = async {
            match kill_at {
                Some((requests, pause)) => {
                    drop(self.stage.sim().wait_for_requests(requests).await);
                    sleep(pause).await;
                }
                None => std::future::pending().await,
            }
        };
        let lived = timeout(PATIENCE, async {
            tokio::select! { status = child.wait() => Some(status.unwrap()), () = aimed => None }
        });
        let text = |file: &Path| std::fs::read_to_string(file).unwrap();
        let status = match lived.await.unwrap_or_else(|_| panic!("it takes too long: {}", text(&err))) {
            Some(status) => status,
            None => {
                // If it has just ended by itself there is nothing to kill, and its status says so.
                let _ = child.start_kill();
                timeout(PATIENCE, child.wait()).await.unwrap().unwrap()
            }
        };
        if status.signal() == Some(9) {
            let standing = self.standing().await;
            self.kills.push((standing, self.stage.sim().requests().len()));
            return false;
        }
        // One agent is dead for good, so the run is partial; that is no failure of the command.
        assert!(
            status.code().is_some_and(|code| code != 0 && code < 100),
            "{status:?}\n{}\n{}",
            text(&out),
            text(&err)
        );
        true
    }

    /// Goes on until it ends by itself, killing up to so many times on the way.
    async fn go_on(&mut self, kills: usize, draw: &mut Draw) {
        loop {
            let aim = (self.kills.len() < kills).then(|| {
                let so_far = self.stage.sim().requests().len();
                // Any request that is still to come, and any moment while it and its like are answered.
                let ahead = 1 + draw.below(requests_of_all().saturating_sub(so_far));
                (so_far + ahead, Duration::from_micros(draw.below(50_000) as u64))
            });
            if self.life(aim).await {
                return;
            }
        }
    }

    /// A life that is killed when half of everything was asked.
    async fn half_way(&mut self) {
        let ended = self.life(Some((requests_of_all() / 2, Duration::from_millis(5)))).await;
        assert!(!ended, "it was to be killed half way");
    }

    /// Everything but a copy of the journal is taken away: another directory, another home, as on another
    /// machine.
    fn move_away(&mut self) {
        let away = self.scratch.path().join("away");
        let config = Path::new(".config/convoke");
        std::fs::create_dir_all(away.join("home").join(config)).unwrap();
        let file = config.join("config.toml");
        std::fs::copy(self.stage.home().join(&file), away.join("home").join(&file)).unwrap();
        for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
            let from = self.scratch.path().join(name);
            if from.exists() {
                std::fs::copy(&from, away.join(name)).unwrap();
                std::fs::remove_file(&from).unwrap();
            }
        }
        std::fs::remove_dir_all(self.stage.home()).unwrap();
        self.journal = away.join("journal.db").to_string_lossy().into_owned();
        self.home = Some(away.join("home"));
    }

    /// What was asked, against what had to be.
    async fn check(self, tally: &mut Tally) {
        let standing = self.standing().await;
        assert_eq!(standing.value, Some(deep_value(AREAS)));
        assert_eq!((standing.status, standing.holds), (Some("partial"), 0));
        let requests = self.stage.sim().requests();
        let mut asked: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        requests
            .iter()
            .for_each(|request| asked.entry(prompt(&request.body)).or_default().push(request.index));
        let slots = slots();
        assert!(asked.keys().eq(slots.keys()), "{:?}", asked.keys());
        // A resume of a run that has ended tries the dead agent again, and once more if that life is killed
        // too.
        let again = standing.passes as usize - 1;
        let killed_again = self.kills.iter().filter(|(at, _)| at.passes > 1).count();
        for (prompt, agents) in &slots {
            let [least, sent] = [agents * replies(prompt), asked[prompt].len()];
            let flying: usize = self.kills.iter().filter_map(|(at, _)| at.in_flight.get(prompt)).sum();
            let more = if prompt == "doomed" { again + killed_again } else { 0 };
            assert!(
                (least..=least + flying + more).contains(&sent),
                "{prompt}: {sent} of {least}, {flying} were in flight"
            );
            tally.repeats += sent - least;
            tally.in_flight += flying;
            for (at, arrived) in &self.kills {
                if at.done.get(prompt) == Some(agents) && more == 0 {
                    let late: Vec<&usize> = asked[prompt].iter().filter(|index| *index >= arrived).collect();
                    assert!(
                        late.is_empty(),
                        "{prompt} had ended when request {arrived} was due, and was asked again: {late:?}"
                    );
                    tally.spared += agents;
                }
            }
        }
        let agents: usize = slots.values().sum();
        assert_eq!(standing.counted as usize, agents + again, "everybody is counted once");
        let billed = self.stage.sim().bill().total_nano;
        assert!(
            standing.spent_nano >= billed,
            "the ledger has {} and the bill is {billed}",
            standing.spent_nano
        );
        tally.kills += self.kills.len();
        tally.requests += requests.len();
    }
}

fn number(name: &str, or: usize) -> usize {
    std::env::var_os(name).map_or(or, |n| n.to_str().unwrap().parse().unwrap())
}

fn draw(seed: usize) -> Draw {
    Draw((seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1))
}

impl Tally {
    /// The figures, of kills that have hit something.
    fn line(&self) -> String {
        assert!(self.kills > 0 && self.in_flight + self.spared > 0, "the kills must have hit something");
        format!(
            "{} kills: {} requests, {} of them sent again, {} were in flight; {} times an agent had ended \
             before a kill and was not asked again",
            self.kills, self.requests, self.repeats, self.in_flight, self.spared
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn d6_6_kill_9_in_a_program_changes_nothing_in_its_value_and_nobody_who_had_ended_is_asked_again() {
    let seed = number("CONVOKE_SEED", 1);
    let began = Instant::now();
    println!("seed {seed}");
    let mut draw = draw(seed);
    let mut undisturbed = Run::new(None, &mut draw).await;
    undisturbed.go_on(0, &mut draw).await;
    let mut alone = Tally::default();
    undisturbed.check(&mut alone).await;
    assert_eq!((alone.repeats, alone.requests), (0, requests_of_all()));
    let kills = number("CONVOKE_SOAK_PROGRAM_KILLS", 4);
    let mut tally = Tally::default();
    let mut tries = 0..kills + 4;
    while tally.kills < kills {
        assert!(tries.next().is_some(), "the kills do not hit");
        let mut run = Run::new(None, &mut draw).await;
        // A run is killed up to four times before it may end.
        let times = (1 + draw.below(4)).min(kills - tally.kills);
        run.go_on(times, &mut draw).await;
        run.check(&mut tally).await;
    }
    println!("{}; {:.1?}", tally.line(), began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_copy_of_the_journal_in_another_directory_is_all_it_takes_to_go_on() {
    let seed = number("CONVOKE_SEED", 2);
    let began = Instant::now();
    println!("seed {seed}");
    let mut draw = draw(seed);
    let mut run = Run::new(None, &mut draw).await;
    run.half_way().await;
    run.move_away();
    run.go_on(0, &mut draw).await;
    let mut tally = Tally::default();
    run.check(&mut tally).await;
    println!("{}; {:.1?}", tally.line(), began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn another_process_goes_on_from_postgres() {
    let Some(url) = std::env::var_os("CONVOKE_TEST_POSTGRES") else {
        // Written past the test harness, which would keep it to itself; `scripts/test` counts these lines.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: another_process_goes_on_from_postgres: CONVOKE_TEST_POSTGRES is not set"
        );
        return;
    };
    let seed = number("CONVOKE_SEED", 3);
    let began = Instant::now();
    println!("seed {seed}");
    let mut draw = draw(seed);
    let mut run = Run::new(Some(url.into_string().unwrap()), &mut draw).await;
    run.half_way().await;
    run.go_on(2, &mut draw).await;
    let mut tally = Tally::default();
    run.check(&mut tally).await;
    println!("{}; {:.1?}", tally.line(), began.elapsed());
}
