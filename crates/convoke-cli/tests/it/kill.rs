//! `kill -9` on the real binary: in a stream, in a command, in an append and at random moments, several times
//! a session. Each time `convoke resume` goes on, and at the end nothing is lost, nothing was done twice
//! behind the model's back, and no process is left. `scripts/soak` kills two hundred times.

mod processes;
mod recorded;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, TryLockError};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_sim::{Reply, Script, Simulator, calls, says};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use self::processes::{cmdline, ours, started_at};
use self::recorded::{fold, told};
use crate::stage::{Stage, patiently};

/// The task, which is also the name of the conversation.
const TASK: &str = "take every step";
const ANSWER: &str = "All steps are taken.";
const STEPS: usize = 12;
/// A session has room for about this many kills before it comes to its answer.
const KILLS_A_RUN: usize = 6;
/// What the kernel writes into a result that was cut off.
const UNKNOWN: &str = "outcome is unknown";
/// A commit with its fsync takes about this long or longer, so a kill within it of the sight of the lock is
/// in the append.
const AT_ONCE: Duration = Duration::from_micros(400);
/// How long anything of a killed process may live on.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(5);

/// A step counts itself outside the journal, leaves a job behind that has left its session, and takes a
/// while. It stands in the directory that is worked in: nothing else can be written.
const STEP: &str = r#"here=${0%/*}
echo "$1" >> "$here/count"
: > "$here/started/$1"
setsid sleep 600 </dev/null >/dev/null 2>&1 &
sleep 0.15
: > "$here/ended/$1"
echo "step $1 is done"
"#;

/// A small generator of our own, so that a printed seed means the same kills for ever, as far as time allows.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Where a kill falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A reply is being streamed: the simulator holds it.
    Stream,
    /// A command has begun and has not ended.
    Command,
    /// The journal's lock was seen held at that moment.
    Append,
    /// Some time after the start, whatever is going on.
    Moment,
}

const KINDS: [Kind; 4] = [Kind::Stream, Kind::Command, Kind::Append, Kind::Moment];

/// One kill to be made.
#[derive(Debug, Clone, Copy)]
struct Aim {
    kind: Kind,
    /// How many requests or commands from now, from 1.
    ahead: usize,
    /// How many events of the reply go out first.
    events: usize,
    /// How many appends are let through first.
    appends: u64,
    moment: Duration,
}

impl Aim {
    /// Whatever was hit least so far is next.
    fn draw(draw: &mut Draw, tally: &Tally) -> Self {
        let fewest = KINDS.iter().map(|kind| tally.kills[kind]).min().unwrap();
        let open: Vec<Kind> = KINDS.into_iter().filter(|kind| tally.kills[kind] == fewest).collect();
        Self {
            kind: open[draw.below(open.len() as u64) as usize],
            ahead: 1 + draw.below(2) as usize,
            events: draw.below(8) as usize,
            appends: draw.below(4),
            // The first moments, in which a process starts, are drawn more often than later ones.
            moment: Duration::from_micros({
                let latest = draw.below(400_000);
                draw.below(latest + 1)
            }),
        }
    }
}

/// What all sessions came to.
struct Tally {
    kills: BTreeMap<Kind, usize>,
    /// From a kill to the first sign of the process that goes on.
    going: Vec<Duration>,
    /// How many processes there were around the kills, and how long after each the last of them was gone.
    orphans: usize,
    gone: Vec<Duration>,
    repeats: usize,
    told: usize,
    /// Runs that were killed between their last append and their answer on stdout.
    answered_before: usize,
}

impl Tally {
    fn total(&self) -> usize {
        self.kills.values().sum()
    }

    /// Whether there were enough kills, and some of every kind.
    fn is_full(&self, target: usize) -> bool {
        self.total() >= target && self.kills.values().all(|kills| *kills > 0)
    }
}

/// One session, over as many processes as it takes.
struct Run {
    stage: Arc<Stage>,
    scratch: TempDir,
    kills: usize,
    /// The steps that a kill fell in.
    cut: Vec<String>,
    killed_at: Option<Instant>,
    /// What was there right before the kill, where the moment lasts long enough for that look.
    below: BTreeMap<u32, u64>,
    watches: Vec<JoinHandle<Duration>>,
}

/// How a process ended.
enum End {
    Killed(Kind),
    Exited { code: Option<i32>, stdout: String, stderr: String },
}

impl Run {
    async fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let replies = (0..STEPS).map(|n| {
            let look = take(&format!("look{n:02}"));
            take(&format!("step{n:02}")).when_last_contains(UNKNOWN, look)
        });
        let script = Script::new().conversation(TASK, replies.chain([says(ANSWER)]));
        let stage = Arc::new(Stage::with(script).await);
        for dir in ["started", "ended"] {
            std::fs::create_dir(stage.work().join(dir)).unwrap();
        }
        std::fs::write(stage.work().join("step"), STEP).unwrap();
        Self {
            stage,
            scratch,
            kills: 0,
            cut: Vec::new(),
            killed_at: None,
            below: BTreeMap::new(),
            watches: Vec::new(),
        }
    }

    fn journal(&self) -> PathBuf {
        self.scratch.path().join("journal.db")
    }

    fn sim(&self) -> &Simulator {
        self.stage.sim()
    }

    /// Starts the binary and lets it go on to its end, or to the kill it is meant to meet before that.
    async fn life(&mut self, args: &[&str], aim: Option<Aim>, tally: &mut Tally) -> End {
        let journal = self.journal();
        let place = journal.to_str().unwrap();
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.scratch.path().join(name));
        let mut command = self.stage.command(&[&["--journal", place], args].concat());
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        let before = self.started();
        let requests = self.sim().requests().len();
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let going = self.killed_at.map(|since| self.watch_for_a_sign(since, before.len(), requests));
        let (aimed, status) = match aim {
            Some(aim) => self.kill(&mut child, aim, &before, requests).await,
            None => (None, patiently("the run to end", child.wait()).await.unwrap()),
        };
        if let Some(going) = going {
            match going.is_finished() {
                true => tally.going.push(going.await.unwrap()),
                false => going.abort(),
            }
        }
        match aimed.filter(|_| status.signal() == Some(9)) {
            Some(kind) => {
                self.kills += 1;
                tally.orphans += self.watch_orphans();
                End::Killed(kind)
            }
            None => {
                let [stdout, stderr] = [stdout, stderr].map(|path| std::fs::read_to_string(path).unwrap());
                End::Exited { code: status.code(), stdout, stderr }
            }
        }
    }

    /// Waits for the right moment and kills. The kind is what was seen, not what was wanted; none if the
    /// process ended before it came to that.
    async fn kill(
        &mut self,
        child: &mut Child,
        aim: Aim,
        before: &BTreeSet<String>,
        requests: usize,
    ) -> (Option<Kind>, ExitStatus) {
        let stage = Arc::clone(&self.stage);
        let started = self.stage.work().join("started");
        let next = stage.sim().requests().iter().map(|request| request.position + 1).max().unwrap_or(0);
        let hold = (aim.kind == Kind::Stream)
            .then(|| stage.sim().hold(TASK, (next + aim.ahead - 1).min(STEPS), aim.events));
        let mut step = None;
        let mut held = false;
        let moment = async {
            match aim.kind {
                Kind::Stream => hold.as_ref().unwrap().entered().await,
                Kind::Command => step = Some(wait_for_step(&started, before, aim.ahead).await),
                Kind::Append => drop(stage.sim().wait_for_requests(requests + aim.ahead).await),
                Kind::Moment => sleep(aim.moment).await,
            }
        };
        tokio::select! {
            () = moment => {}
            status = child.wait() => return (None, status.unwrap()),
        }
        if aim.kind == Kind::Append {
            let busy = File::open(self.scratch.path().join("journal.db-turn")).unwrap();
            held = tokio::task::block_in_place(|| kill_in_append(&busy, child, aim.appends));
        }
        if matches!(aim.kind, Kind::Stream | Kind::Command) {
            self.below = self.processes();
            self.below.retain(|pid, _| Some(*pid) != child.id());
        }
        self.killed_at = Some(Instant::now());
        // If it has just ended by itself there is nothing to kill, and its status says so.
        let _ = child.start_kill();
        let status = patiently("the killed process to end", child.wait()).await.unwrap();
        drop(hold);
        let ended = |step: &String| self.stage.work().join("ended").join(step).exists();
        let kind = match (aim.kind, step) {
            (Kind::Stream, _) => Kind::Stream,
            (Kind::Command, Some(step)) if !ended(&step) => {
                self.cut.push(step);
                Kind::Command
            }
            (Kind::Append, _) if held => Kind::Append,
            _ => Kind::Moment,
        };
        (Some(kind), status)
    }

    /// The processes of this session, but for zombies.
    fn processes(&self) -> BTreeMap<u32, u64> {
        ours(&[&self.stage.home(), self.scratch.path()])
    }

    fn started(&self) -> BTreeSet<String> {
        names(&self.stage.work().join("started"))
    }

    /// Measures how long it takes until a request arrives or a command begins.
    fn watch_for_a_sign(&self, since: Instant, steps: usize, requests: usize) -> JoinHandle<Duration> {
        let stage = Arc::clone(&self.stage);
        let started = self.stage.work().join("started");
        tokio::spawn(async move {
            let begun = async {
                while names(&started).len() == steps {
                    sleep(Duration::from_millis(2)).await;
                }
            };
            tokio::select! {
                _ = stage.sim().wait_for_requests(requests + 1) => {}
                () = begun => {}
            }
            since.elapsed()
        })
    }

    /// Sees to it that what the killed process left behind goes away, while the next one is already at work.
    fn watch_orphans(&mut self) -> usize {
        let mut left = std::mem::take(&mut self.below);
        left.extend(self.processes());
        let count = left.len();
        let since = self.killed_at.unwrap();
        self.watches.push(tokio::spawn(async move {
            while let Some(pid) =
                left.iter().find(|(pid, start)| started_at(**pid) == Some(**start)).map(|(pid, _)| pid)
            {
                assert!(
                    since.elapsed() < ORPHANS_END_WITHIN,
                    "process {pid} outlives its convoke: {}",
                    cmdline(*pid)
                );
                sleep(Duration::from_millis(2)).await;
            }
            since.elapsed()
        }));
        count
    }

    /// Goes on until there is an answer, killing on the way.
    async fn answer(&mut self, draw: &mut Draw, target: usize, tally: &mut Tally) {
        let mut args: &[&str] = &["run", TASK];
        loop {
            let aim = (self.kills < KILLS_A_RUN && !tally.is_full(target)).then(|| Aim::draw(draw, tally));
            match self.life(args, aim, tally).await {
                End::Killed(kind) => {
                    *tally.kills.get_mut(&kind).unwrap() += 1;
                    args = &["resume"];
                }
                End::Exited { code: Some(0), stdout, .. } => {
                    assert_eq!(stdout, format!("{ANSWER}\n"));
                    return;
                }
                // The first kill came before the task was recorded: the user has nothing to resume and starts
                // again.
                End::Exited { code: Some(2), stderr, .. }
                    if self.sim().requests().is_empty() && args[0] == "resume" =>
                {
                    assert!(stderr.contains("no unfinished session"), "{stderr}");
                    args = &["run", TASK];
                }
                // The last kill came after the answer was recorded: it is there to be read.
                End::Exited { code: Some(2), stderr, .. } if args[0] == "resume" => {
                    assert!(stderr.contains("(done)"), "{stderr}");
                    tally.answered_before += 1;
                    return;
                }
                End::Exited { code, stdout, stderr } => panic!("{args:?}: exit {code:?}\n{stdout}\n{stderr}"),
            }
        }
    }

    /// What must hold after the answer, however often the session was killed.
    async fn check(mut self, tally: &mut Tally) {
        let mut bodies = HashMap::new();
        let mut positions = HashMap::new();
        for request in self.sim().requests() {
            *positions.entry(request.position).or_insert(0) += 1;
            *bodies.entry(request.raw).or_insert(0) += 1;
        }
        let repeats = |counts: Vec<usize>| counts.into_iter().map(|n| n - 1).sum::<usize>();
        let repeated = repeats(bodies.into_values().collect());
        assert!(repeated <= self.kills, "{repeated} requests were sent again after {} kills", self.kills);
        assert_eq!(
            repeats(positions.into_values().collect()),
            repeated,
            "what was sent again was sent as it was"
        );
        tally.repeats += repeated;

        let agent = fold(&self.journal()).await;
        assert!(agent.is_idle() && agent.pending().is_empty());
        assert_eq!(agent.outcome().map(|outcome| outcome.text()), Some(ANSWER));
        let told = told(&agent);
        assert_eq!(told.len(), STEPS, "{told:?}");
        let mut ran: BTreeMap<String, usize> = BTreeMap::new();
        let count = std::fs::read_to_string(self.stage.work().join("count")).unwrap();
        count.lines().for_each(|step| *ran.entry(step.to_owned()).or_default() += 1);
        for (step, times) in &ran {
            assert_eq!(*times, 1, "{step} ran {times} times; the model was told {told:?}");
            assert!(told.contains_key(step), "{step} ran and is not in the history: {told:?}");
        }
        for (step, unknown) in &told {
            assert!(*unknown || ran.contains_key(step), "the model was told that {step} ran: {ran:?}");
        }
        for step in &self.cut {
            assert!(told[step], "{step} was cut off and the model was not told: {told:?}");
        }
        tally.told += told.values().filter(|unknown| **unknown).count();

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
}

/// A model that takes a step.
fn take(step: &str) -> Reply {
    calls("bash", json!({"command": format!("sh ./step {step}")})).saying("On we go.")
}

fn names(dir: &Path) -> BTreeSet<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Waits until this many more steps have begun, and names the last of them.
async fn wait_for_step(started: &Path, before: &BTreeSet<String>, ahead: usize) -> String {
    let mut begun: Vec<String> = Vec::new();
    while begun.len() < ahead {
        sleep(Duration::from_millis(1)).await;
        let new: Vec<String> =
            names(started).into_iter().filter(|n| !before.contains(n) && !begun.contains(n)).collect();
        begun.extend(new);
    }
    begun.pop().unwrap()
}

/// Watches the lock that is held while a batch is written, lets so many batches through, and kills in the
/// next one. True if that is certain enough: the signal went out right after the lock was seen held, or it is
/// held even then.
fn kill_in_append(busy: &File, child: &mut Child, mut appends: u64) -> bool {
    let mut was_held = false;
    loop {
        let held = is_held(busy);
        if held && !was_held {
            if appends == 0 {
                let seen = Instant::now();
                let killed = child.start_kill().is_ok();
                return killed && (seen.elapsed() < AT_ONCE || is_held(busy));
            }
            appends -= 1;
        }
        was_held = held;
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        // The look itself takes the lock, so the process needs pauses in which it can have it.
        let pause = Instant::now();
        while pause.elapsed() < Duration::from_micros(30) {
            std::hint::spin_loop();
        }
    }
}

/// Whether another process holds the lock, found out by taking it for an instant.
fn is_held(busy: &File) -> bool {
    match busy.try_lock() {
        Ok(()) => busy.unlock().map(|()| false).unwrap(),
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => panic!("{error}"),
    }
}

/// The middle and the largest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let last = times.last().copied().unwrap_or_default();
    format!(
        "median {:.0?}, most {last:.0?}, of {}",
        times.get(times.len() / 2).copied().unwrap_or_default(),
        times.len()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn kill_9_at_any_moment_loses_nothing() {
    let number =
        |name: &str, or: u64| std::env::var_os(name).map_or(or, |n| n.to_str().unwrap().parse().unwrap());
    let seed = number("CONVOKE_SEED", 1);
    let target = number("CONVOKE_SOAK_KILLS", 12) as usize;
    println!("seed {seed}");
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1));
    let mut tally = Tally {
        kills: KINDS.map(|kind| (kind, 0)).into(),
        going: Vec::new(),
        orphans: 0,
        gone: Vec::new(),
        repeats: 0,
        told: 0,
        answered_before: 0,
    };
    let mut runs = 0;
    while !tally.is_full(target) {
        let mut run = Run::new().await;
        run.answer(&mut draw, target, &mut tally).await;
        run.check(&mut tally).await;
        runs += 1;
        assert!(runs <= target + 4, "the kills do not hit: {:?}", tally.kills);
    }
    let kills = |kind| tally.kills[&kind];
    println!(
        "{} kills in {runs} runs: {} in a stream, {} in a command, {} in an append, {} at a random moment",
        tally.total(),
        kills(Kind::Stream),
        kills(Kind::Command),
        kills(Kind::Append),
        kills(Kind::Moment)
    );
    println!("{} requests repeated, {} commands reported as unknown", tally.repeats, tally.told);
    println!("killed with the answer recorded and not yet printed: {}", tally.answered_before);
    println!("from the kill to the first request or command of the resume: {}", spread(tally.going));
    println!(
        "{} processes below what was killed; until they were gone: {}",
        tally.orphans,
        spread(tally.gone)
    );
    assert!(tally.kills.values().all(|kills| *kills > 0), "{:?}", tally.kills);
    assert!(tally.orphans > 0 && tally.told > 0 && tally.repeats > 0, "the kills must have hit something");
}
