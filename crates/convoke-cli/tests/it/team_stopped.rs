//! Several processes host one team in one directory, and one of them is stopped or killed in the middle of a
//! teammate's command. The others go on with its teammates: no task fails for that. When it continues it does
//! no harm. `scripts/soak` does it twenty times.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use convoke_kernel::{LEAD, NewTask, TaskState};
use convoke_sim::{Brain, Context, Scripted};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use crate::stage::to_its_end;
use crate::team_fire::{Draw, Entry, Field, Store, Story, call, seed, size};

const TASKS: usize = 12;
const MEMBERS: [&str; 4] = ["amy", "bob", "cat", "dan"];
const HOSTS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(150);

/// Members that run one command for each task. One that was cut off is run again; one that was not run at all
/// fails the task.
struct MemberBrain;

impl MemberBrain {
    fn say(story: &Story<'_>, context: &Context) -> Vec<Value> {
        let rest = || vec![call(context, 0, "idle", json!({}))];
        if story.who == LEAD {
            let spawn = |(index, name): (usize, &&str)| {
                let prompt = "Take tasks from the board.";
                call(
                    context,
                    index,
                    "spawn_teammate",
                    json!({"name": name, "role": "coder", "prompt": prompt}),
                )
            };
            return match context.position {
                0 => MEMBERS.iter().enumerate().map(spawn).collect(),
                _ => vec![json!({"type": "text", "text": "The team is there."})],
            };
        }
        let Some(given) = story.last(|text| task_in(text).is_some()) else { return rest() };
        let Entry::Text(said) = story.entries[given] else { return rest() };
        let task = task_in(said).unwrap();
        let last = story.entries[given..].iter().rev().find_map(|entry| match entry {
            Entry::Call { id, name, .. } => Some((*name, story.result(id).unwrap_or_default())),
            _ => None,
        });
        let run = || {
            // The first of all commands lasts longer than the test is patient: it has to be killed.
            let long = "mkdir long 2>/dev/null && sleep 400";
            let command = format!("echo {task} >> log-of-{}; {long}; sleep 0.7; echo did {task}", story.who);
            vec![call(context, 0, "bash", json!({"command": command}))]
        };
        let ended = |status: &str, result: &str| {
            vec![call(context, 0, "task_update", json!({"task": task, "status": status, "result": result}))]
        };
        match last {
            None => run(),
            Some(("bash", result)) if result.contains(&format!("did {task}")) => ended("done", "did it"),
            Some(("bash", result)) if result.starts_with("Interrupted") => run(),
            Some(("bash", result)) => ended("failed", result),
            Some(_) => rest(),
        }
    }
}

fn task_in(text: &str) -> Option<&str> {
    let named = |word: &str| text.strip_prefix(word)?.split_once(']').map(|(id, _)| id);
    named("[claimed ").or_else(|| named("[unfinished "))
}

impl Brain for MemberBrain {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        Scripted::new(Self::say(&Story::read(request), context))
    }
}

/// A process that hosts the team, and what it says.
struct Host {
    child: Child,
    talk: PathBuf,
}

impl Host {
    fn start(field: &Field, number: usize) -> Self {
        let talk = field.stage.home().join(format!("host-{number}"));
        let session = field.session.to_string();
        let how = ["--sandbox", "off", "--idle", "1s", "--claim-ttl", "30s", "--lease", "7s"];
        let mut command = field.command(&[&["team", "host", &session], &how[..]].concat());
        command.stdout(std::process::Stdio::null()).stderr(File::create(&talk).unwrap());
        Self { child: command.spawn().unwrap(), talk }
    }

    fn pid(&self) -> i32 {
        self.child.id().unwrap().cast_signed()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.talk).unwrap_or_default()
    }
}

/// The process that a process was started by, and its name.
fn parent_and_name(pid: i32) -> Option<(i32, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    Some((rest.split_whitespace().nth(1)?.parse().ok()?, name.to_owned()))
}

/// Which of these processes runs a command now.
fn at_work(hosts: &[Host]) -> Option<usize> {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some((mut above, name)) = parent_and_name(pid) else { continue };
        if name != "sleep" {
            continue;
        }
        while above > 1 {
            if let Some(index) = hosts.iter().position(|host| host.pid() == above) {
                return Some(index);
            }
            let Some((next, _)) = parent_and_name(above) else { break };
            above = next;
        }
    }
    None
}

/// What befalls the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    /// In the middle of a command.
    Stop,
    /// At about its end, when what it changed is recorded.
    StopLater,
    Kill,
}

async fn hit(blow: Blow, draw: &mut Draw) -> String {
    let field = Field::new(MemberBrain, Store::sqlite()).await;
    for number in 0..TASKS {
        let task = NewTask { subject: format!("task {number}"), ..NewTask::default() };
        field.team.add_task(&field.session, task, "person").await.unwrap();
    }
    if blow == Blow::StopLater {
        std::fs::create_dir(field.stage.work().join("long")).unwrap();
    }
    let began = Instant::now();
    let mut hosts: Vec<Host> = (0..HOSTS).map(|number| Host::start(&field, number)).collect();
    let said = |hosts: &[Host]| hosts.iter().map(Host::said).collect::<Vec<_>>().join("\n--\n");
    let index = loop {
        assert!(began.elapsed() < PATIENCE, "no command is run: {}", said(&hosts));
        match at_work(&hosts) {
            Some(index) => break index,
            None => sleep(Duration::from_millis(5)).await,
        }
    };
    if blow == Blow::StopLater {
        // The command sleeps for 700 ms; what it changed is recorded after that.
        sleep(Duration::from_millis(700 + draw.below(120) as u64)).await;
    }
    hosts[index].signal(if blow == Blow::Kill { Signal::SIGKILL } else { Signal::SIGSTOP });
    let struck = Instant::now();
    let board = loop {
        let board = field.team.board(&field.session).await.unwrap();
        if board.unfinished().is_empty() {
            break board;
        }
        assert!(struck.elapsed() < PATIENCE, "the others do not go on: {}", said(&hosts));
        sleep(Duration::from_millis(50)).await;
    };
    let took = struck.elapsed();
    let ended = board
        .tasks()
        .into_iter()
        .map(|task| (task.subject.clone(), format!("{:?} {:?}", task.state, task.result)));
    let failed: BTreeMap<String, String> = ended.filter(|(_, how)| !how.starts_with("Done")).collect();
    assert!(failed.is_empty(), "tasks failed: {failed:#?}\n{}", said(&hosts));
    if blow != Blow::Kill {
        hosts[index].signal(Signal::SIGCONT);
    }
    for (number, host) in hosts.iter_mut().enumerate() {
        let Ok(status) = timeout(PATIENCE, host.child.wait()).await else {
            panic!("a host does not end: {}", host.said())
        };
        let killed = blow == Blow::Kill && number == index;
        assert!(killed || status.unwrap().success(), "{}", host.said());
    }
    // All of them have ended, so the command that was under way has too: the continued process killed it as
    // soon as it knew that it is fenced. It has changed nothing on the board, and the record of changes knows
    // every member's file as that member's.
    let after = field.team.board(&field.session).await.unwrap();
    assert!(after.tasks().iter().all(|task| matches!(task.state, TaskState::Done { .. })));
    let shown = to_its_end(field.command(&["resume", &field.session.to_string(), "--output", "json"])).await;
    let changed = shown.json()["changed"].as_array().cloned().unwrap_or_default();
    assert!(!changed.is_empty(), "{}", shown.stdout);
    for file in &changed {
        assert_eq!(file["agents"].as_array().map(Vec::len), Some(1), "{file}");
    }
    let waits = hosts.iter().filter(|host| host.said().contains("[wait]")).count();
    let (requests, late) = field.check_requests();
    field.close().await;
    format!(
        "{blow:?}: {TASKS} of {TASKS} tasks done {took:.1?} after it, {waits} of {HOSTS} processes told of \
         a wait, {requests} requests, {late} of them late"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_stopped_or_killed_in_a_command_burns_no_task() {
    let seed = seed();
    println!("seed {seed}");
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(3));
    let rounds = size("CONVOKE_SOAK_STOPPED_HOSTS").unwrap_or(2);
    for round in 0..rounds {
        let blow = [Blow::Stop, Blow::Kill, Blow::StopLater][round % 3];
        println!("{}", hit(blow, &mut draw).await);
    }
}
