//! Claims under fire: every task is done exactly once, by a member of the role it wants and after what it
//! depends on, whichever process is killed or stopped with it in hand. Judged by what the board recorded.
//! `scripts/soak` has a thousand tasks and sixty-four claimants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use convoke_kernel::{BoardEvent, LEAD, NewTask, TaskId, TaskState};
use convoke_runtime::TeamClient;
use convoke_sim::{Brain, Context, Scripted};
use serde_json::{Value, json};

use crate::team_fire::{Draw, Entry, Faults, Field, Hosts, Store, Story, call, hash, seed, size};

const ROLES: [&str; 3] = ["coder", "tester", "writer"];
/// How long after the end of its lease a claim may stand before it is taken away, on a machine that is busy
/// with other tests.
const NOTICED_WITHIN: u64 = 20_000;

/// Members that do what is claimed for them: at once, after a look, or only when they are asked again.
struct MemberBrain {
    members: Vec<(String, &'static str)>,
    kept: Arc<Kept>,
}

#[derive(Default)]
struct Kept {
    asked: AtomicUsize,
    /// Histories in which a word about a task came too late.
    refused: std::sync::Mutex<BTreeSet<String>>,
}

impl MemberBrain {
    fn new(members: usize) -> Self {
        let member = |number: usize| (format!("c{number:02}"), ROLES[number % ROLES.len()]);
        Self { members: (0..members).map(member).collect(), kept: Arc::default() }
    }

    fn say(&self, story: &Story<'_>, context: &Context) -> Vec<Value> {
        let text = |text: String| vec![json!({"type": "text", "text": text})];
        let rest = || vec![call(context, 0, "idle", json!({}))];
        if story.who == LEAD {
            let spawn = |(index, (name, role)): (usize, &(String, &str))| {
                let prompt = "Take tasks from the board.";
                call(context, index, "spawn_teammate", json!({"name": name, "role": role, "prompt": prompt}))
            };
            return match context.position {
                0 => self.members.iter().enumerate().map(spawn).collect(),
                _ => text("The team is there.".to_owned()),
            };
        }
        let Some(given) = story.last(|text| task_in(text).is_some()) else { return rest() };
        let Entry::Text(said) = story.entries[given] else { return rest() };
        let (task, again) = task_in(said).unwrap();
        let told = story.entries[given..].iter().rev().find_map(|entry| match entry {
            Entry::Call { id, name: "task_update", .. } => Some(story.result(id).unwrap_or_default()),
            _ => None,
        });
        if let Some(result) = told {
            if !result.starts_with("Changed ") {
                self.kept
                    .refused
                    .lock()
                    .unwrap()
                    .insert(format!("{} {task} {}: {result}", story.who, context.position));
            }
            return if hash(&[task, "end"]).is_multiple_of(5) {
                text(format!("ended {task}"))
            } else {
                rest()
            };
        }
        let done = || {
            let input = json!({"task": task, "status": "done", "result": format!("done by {}", story.who)});
            vec![call(context, 0, "task_update", input)]
        };
        let first = story.replies_after(given) == 0 && !again;
        match hash(&[task]) % 10 {
            0 if first => text("I leave it for now.".to_owned()),
            1 if first => vec![call(context, 0, "bash", json!({"command": "true"}))],
            2 if first => vec![call(context, 0, "task_get", json!({"task": task}))],
            _ => done(),
        }
    }
}

/// The task that a text hands over, and whether it was left unfinished before.
fn task_in(text: &str) -> Option<(&str, bool)> {
    let named = |word: &str| text.strip_prefix(word)?.split_once(']').map(|(id, _)| id);
    named("[claimed ").map(|id| (id, false)).or_else(|| named("[unfinished ").map(|id| (id, true)))
}

impl Brain for MemberBrain {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        self.kept.asked.fetch_add(1, Ordering::Relaxed);
        let story = Story::read(request);
        let delay =
            Duration::from_millis(20 + hash(&[&story.who, &context.position.to_string()]) as u64 % 180);
        Scripted { delay, ..Scripted::new(self.say(&story, context)) }
    }
}

/// Writes the tasks: most wait for one or two of those shortly before them, and a third want a role.
async fn write_tasks(field: &Field, tasks: usize, draw: &mut Draw) -> BTreeMap<TaskId, NewTask> {
    let mut written = BTreeMap::new();
    let mut ids = Vec::<TaskId>::new();
    for number in 0..tasks {
        let mut blocked_by = BTreeSet::new();
        for _ in 0..draw.below(3) {
            if number > 0 {
                blocked_by.insert(ids[number - 1 - draw.below(number.min(20))].clone());
            }
        }
        let role = (draw.below(3) == 0).then(|| ROLES[draw.below(ROLES.len())].to_owned());
        let subject = format!("task {number}");
        let priority = draw.below(3) as i32;
        let blocked_by = blocked_by.into_iter().collect();
        let task = NewTask { subject, blocked_by, role, priority, ..NewTask::default() };
        let id = field.team.add_task(&field.session, task.clone(), "person").await.unwrap().id;
        ids.push(id.clone());
        written.insert(id, task);
    }
    written
}

/// What the board recorded, gone through from the beginning.
#[derive(Default)]
struct Past {
    /// The holder of each task: name, token, until when.
    held: BTreeMap<TaskId, (String, u64, u64)>,
    done: BTreeSet<TaskId>,
    tokens: u64,
    claims: usize,
    /// Claims that ended without the task's end.
    lost: usize,
    /// How long a claim stood beyond its lease, at most.
    overdue: (u64, String),
    /// When something last happened.
    before: u64,
}

impl Past {
    fn take(
        &mut self,
        at: u64,
        event: &BoardEvent,
        tasks: &BTreeMap<TaskId, NewTask>,
        roles: &BTreeMap<&str, &str>,
    ) {
        match event {
            BoardEvent::TaskClaimed(e) => {
                let wanted = &tasks[&e.task];
                assert!(e.token > self.tokens, "claim {} comes after claim {}", e.token, self.tokens);
                assert!(!self.done.contains(&e.task), "{} is claimed although it is done", e.task);
                let ready = wanted.blocked_by.iter().all(|needed| self.done.contains(needed));
                assert!(ready, "{} is claimed before all that it waits for is done", e.task);
                let role = roles[e.name.as_str()];
                assert!(
                    wanted.role.as_deref().is_none_or(|wanted| wanted == role),
                    "{} by a {role}: {wanted:?}",
                    e.name
                );
                self.lapse(at, &e.task);
                assert!(
                    !self.held.contains_key(&e.task),
                    "{} is claimed twice at once: {:?}",
                    e.task,
                    self.held[&e.task]
                );
                let other = self.held.iter().find(|(_, (name, ..))| *name == e.name);
                assert!(other.is_none(), "{} holds {other:?} and claims {}", e.name, e.task);
                self.held.insert(e.task.clone(), (e.name.clone(), e.token, e.until));
                (self.tokens, self.claims) = (e.token, self.claims + 1);
            }
            BoardEvent::TaskRenewed(e) => {
                for task in &e.tasks {
                    self.watch(at, task);
                    self.held.get_mut(task).unwrap().2 = e.until;
                }
            }
            BoardEvent::TaskReleased(e) => {
                self.watch(at, &e.task);
                assert_eq!(
                    self.held.remove(&e.task).map(|(name, ..)| name).as_ref(),
                    Some(&e.name),
                    "{}",
                    e.task
                );
                self.lost += 1;
            }
            BoardEvent::TaskFinished(e) => {
                self.watch(at, &e.task);
                let holder = self.held.remove(&e.task).map(|(name, ..)| name);
                assert_eq!(
                    holder.as_ref(),
                    Some(&e.name),
                    "{} is done by somebody who does not hold it",
                    e.task
                );
                assert!(self.done.insert(e.task.clone()), "{} is done twice", e.task);
            }
            BoardEvent::TaskFailed(e) => panic!("{} failed in the hands of {}: {}", e.task, e.name, e.why),
            BoardEvent::TaskCreated(_)
            | BoardEvent::TaskEdited(_)
            | BoardEvent::TaskOffered(_)
            | BoardEvent::TaskRetried(_) => {}
        }
    }

    /// A claim that ran out counts as none.
    fn lapse(&mut self, at: u64, task: &TaskId) {
        if self.held.get(task).is_some_and(|(.., until)| *until <= at) {
            self.watch(at, task);
            self.held.remove(task);
            self.lost += 1;
        }
    }

    fn watch(&mut self, at: u64, task: &TaskId) {
        if let Some((name, token, until)) = self.held.get(task)
            && at.saturating_sub(*until) > self.overdue.0
        {
            // A process that is stopped while it holds the store's lock holds up all others, and no lease can
            // help against that.
            let still = at.saturating_sub(self.before);
            let which =
                format!("{task} of {name}, claim {token}; nobody wrote anything for {still} ms before that");
            self.overdue = (at - until, which);
        }
    }
}

async fn claims_under_fire(store: Store, seed: u64) -> String {
    let soak = size("CONVOKE_SOAK_CLAIMS");
    let (members, processes) = if soak.is_some() { (64, 8) } else { (8, 2) };
    let tasks = soak.unwrap_or(30);
    let faults = match soak {
        Some(_) => Faults { every: 40, most: usize::MAX, patience: Duration::from_secs(3_600) },
        None => Faults { every: 8, most: 8, patience: Duration::from_secs(300) },
    };
    let brain = MemberBrain::new(members);
    let kept = Arc::clone(&brain.kept);
    let named = brain.members.clone();
    let field = Field::new(brain, store).await;
    let mut draw = Draw(seed);
    let written = write_tasks(&field, tasks, &mut draw).await;
    let began = Instant::now();
    let mut hosts = Hosts::start(&field, processes, seed);
    let over = async || {
        // A store that does not answer says nothing about the tasks.
        let Ok(board) = field.team.board(&field.session).await else { return false };
        let failed = board.tasks().into_iter().find(|task| matches!(task.state, TaskState::Failed { .. }));
        assert_eq!(failed, None);
        board.unfinished().is_empty()
    };
    field.under_fire(&mut hosts, &faults, &kept.asked, &mut draw, over).await;
    let took = began.elapsed();
    let tally = hosts.end(Duration::from_secs(120)).await;

    let roles: BTreeMap<&str, &str> = named.iter().map(|(name, role)| (name.as_str(), *role)).collect();
    let [_, board, _] = TeamClient::streams(&field.session);
    let mut past = Past::default();
    for record in field.journal.load(&board, 0).await.unwrap() {
        past.take(record.at, &BoardEvent::decode(&record.event).unwrap(), &written, &roles);
        past.before = record.at;
    }
    assert_eq!(past.done.len(), tasks);
    assert!(past.held.is_empty(), "{:?}", past.held);
    let (overdue, which) = past.overdue;
    assert!(overdue < NOTICED_WITHIN, "a claim stood {overdue} ms beyond its lease: {which}");
    let (requests, late) = field.check_requests();
    let refused = kept.refused.lock().unwrap().clone();
    let what = format!(
        "{tasks} tasks, {members} claimants in {processes} processes, each done once: {took:.1?}, {:.1} \
            tasks/s",
        tasks as f64 / took.as_secs_f64()
    );
    let claimed = format!(
        "{} claims, {} of them lost; {} words about tasks that came too late and were refused; at most \
            {overdue} ms beyond a lease ({which})",
        past.claims,
        past.lost,
        refused.len()
    );
    let befell = format!("{tally:?}; {requests} requests, {late} of them late");
    if !matches!(field.store, Store::Postgres { .. }) {
        assert_eq!(tally.fell, Vec::<String>::new());
    }
    if soak.is_some() {
        assert!(past.lost > 0 && !refused.is_empty(), "the faults must have hit something");
    }
    field.close().await;
    [what, claimed, befell].join("\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn c19_c20_w31_w35_w41_every_task_is_done_once_whoever_is_killed_or_stopped_with_it() {
    let seed = seed();
    println!("seed {seed}");
    println!("{}", claims_under_fire(Store::sqlite(), seed).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn c19_c20_w31_w35_w41_every_task_is_done_once_whoever_is_killed_or_stopped_with_it_on_postgres() {
    if let Some(store) = Store::postgres(
        "c19_c20_w31_w35_w41_every_task_is_done_once_whoever_is_killed_or_stopped_with_it_on_postgres",
    )
    .await
    {
        let seed = seed();
        println!("seed {seed}");
        println!("{}", claims_under_fire(store, seed).await);
    }
}
