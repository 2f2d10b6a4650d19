//! Crash everywhere, in a team: a lead and two teammates with letters both ways, a broadcast, tasks that
//! depend on each other, a plan that is approved, a new history and a shutdown are cut around commits of any
//! of them and taken up in a new life. It must come to what the uncut one came to: every letter in its
//! reader's history exactly once, every task done once and by one claim, the same members in the same
//! standing, and no request sent again but those that were in flight.
//!
//! Every commit of a life has a number, whichever agent makes it. CI cuts at some numbers, chosen by a
//! printed seed; `CONVOKE_SOAK_CUTS=1` cuts at all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use convoke_journal::Location;
use convoke_kernel::{AgentId, Effect, Event, LEAD, Outcome, RosterEvent, Standing, TaskState};
use convoke_runtime::{Clock, Crash, DriveMode, Error, Moment, Stop, TeamClient, TeamConfig, TeamEvent};
use convoke_sim::SimConfig;
use serde_json::{Value, json};

use crate::scripted_team::{MemberReply, Members, Seen, call, text};
use crate::support::{Rig, postgres, shuffled, within};
use crate::teams::{client, leading, session_of};

/// What the kernel writes into a result that was cut off.
const UNKNOWN: &str = "outcome is unknown";

/// The tool calls of the replies in a request, by name and input.
fn called(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().into_iter().flatten();
    let blocks = messages
        .filter(|m| m["role"] == "assistant")
        .flat_map(|m| m["content"].as_array().into_iter().flatten());
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    calls.map(|c| (c["name"].as_str().unwrap_or_default().to_owned(), c["input"].to_string())).collect()
}

/// What stands behind this in a text, up to the end of an id.
fn id_after(text: &str, words: &str) -> Option<String> {
    let rest = text.split_once(words)?.1;
    Some(rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
}

/// What a command of the scenario counts outside the journal.
fn counted(marker: &str) -> Value {
    json!({"command": format!("echo {marker} >> \"$COUNT\"; echo did {marker}")})
}

/// Sets everything up, approves plans, and asks both teammates to stop when the tower stands. What it has
/// done already it sees in its history.
fn leads(seen: &Seen<'_>) -> MemberReply {
    let did = called(seen.request);
    let has = |name: &str| did.iter().any(|(called, _)| called == name);
    let built = seen.request["messages"].to_string().contains("the tower stands");
    if !has("task_create") {
        return call("task_create", json!({"subject": "stones", "role": "mason"}));
    }
    if !has("spawn_teammate") {
        let stones = id_after(&seen.results.join("\n"), "Created ").unwrap_or_default();
        let alice = json!({"name": "alice", "role": "builder", "prompt": "Wait for the \
            tower.", "require_plan": true});
        return MemberReply::Calls(vec![
            ("task_create", json!({"subject": "tower", "role": "builder", "blocked_by": [stones]})),
            ("spawn_teammate", alice),
            ("spawn_teammate", json!({"name": "bob", "role": "mason", "prompt": "Cut stones."})),
            ("broadcast", json!({"text": "welcome, both of you"})),
            ("send_message", json!({"to": "bob", "text": "mind the dust"})),
        ]);
    }
    if let Some(request) = id_after(&seen.last, "call review_plan with request ") {
        return call("review_plan", json!({"request": request, "approve": true, "feedback": "build it so"}));
    }
    if built && !has("request_shutdown") {
        let stop = |name: &str| ("request_shutdown", json!({"name": name, "reason": "all is done"}));
        return MemberReply::Calls(vec![stop("alice"), stop("bob")]);
    }
    text(format!("read {}", seen.last.lines().filter(|line| line.starts_with("letter m_")).count()))
}

/// Greets, hands in a plan for the tower, and builds it once that is approved.
fn builds(seen: &Seen<'_>) -> MemberReply {
    let did = called(seen.request);
    let has = |name: &str| did.iter().any(|(called, _)| called == name);
    let all = seen.request["messages"].to_string();
    let task = id_after(&all, "[claimed ").filter(|task| task.starts_with("t_"));
    if !has("send_message") {
        return call("send_message", json!({"to": "lead", "text": "alice is here"}));
    }
    match task {
        Some(_) if !has("submit_plan") => call("submit_plan", json!({"plan": "stone by stone"})),
        Some(_) if !all.contains("your plan is approved") => text("the plan is handed in"),
        Some(_) if !has("bash") => call("bash", counted("tower")),
        Some(task) if !has("task_update") => {
            call("task_update", json!({"task": task, "status": "done", "result": "it is high"}))
        }
        Some(_) if seen.results.iter().any(|result| result.contains("it is done")) => {
            text("the tower stands")
        }
        _ => text("noted"),
    }
}

/// Cuts stones, begins a new history in the middle of it, and tells alice.
fn cuts_stones(seen: &Seen<'_>) -> MemberReply {
    let did = called(seen.request);
    let has = |name: &str| did.iter().any(|(called, _)| called == name);
    if seen.last.lines().any(|line| line == "[new history]") {
        return text("the stones are cut, the task is to be ended");
    }
    let first = seen.request["messages"][0].to_string();
    if first.contains("[history continued]") {
        let task = id_after(&first, "\\ntask: ").unwrap_or_default();
        return match () {
            () if !has("task_update") => {
                call("task_update", json!({"task": task, "status": "done", "result": "a hundred stones"}))
            }
            () if !has("send_message") => {
                call("send_message", json!({"to": "alice", "text": "the stones are there"}))
            }
            () => text("noted"),
        };
    }
    let works = seen.request["messages"].to_string().contains("[claimed t_");
    match works {
        true if !has("bash") => call("bash", counted("stones")),
        true => call("compact", json!({})),
        false => text("ready"),
    }
}

async fn rig(location: &Location) -> Rig {
    let brain = Members::new(|seen| match seen.who.as_str() {
        "alice" => builds(seen),
        "bob" => cuts_stones(seen),
        _ => leads(seen),
    });
    let mut rig = Rig::on(location.clone(), SimConfig::new(brain)).await;
    rig.clock = Clock::system();
    rig.membership = Some(leading());
    rig.team = TeamConfig { idle: Duration::from_secs(30), ..TeamConfig::default() };
    rig.env.insert("COUNT".into(), rig.scratch.path().join("count").to_string_lossy().into_owned());
    rig
}

/// Dies at this commit, and from then on at every other: a process that is dead commits nothing.
fn dies_at(cut: Option<(Moment, usize)>, commits: &Arc<AtomicUsize>) -> Crash {
    let begun = AtomicUsize::new(0);
    let commits = Arc::clone(commits);
    let dead = AtomicBool::new(false);
    Crash::when(move |moment, _| {
        let number = match moment {
            Moment::BeforeCommit => begun.fetch_add(1, Ordering::SeqCst),
            Moment::AfterCommit => commits.fetch_add(1, Ordering::SeqCst),
        };
        let dies = cut == Some((moment, number));
        dead.fetch_or(dies, Ordering::SeqCst) || dies
    })
}

/// What a session came to.
struct Ran {
    was_cut: bool,
    commits: usize,
    /// Members and where they stand.
    members: Vec<(String, String)>,
    /// Subject, state, result and claims of every task.
    tasks: Vec<(String, String, Option<String>, u32)>,
    /// What was said in letters, and how often each is in its reader's history.
    said: BTreeMap<(String, String), usize>,
    repeats: usize,
    in_flight: usize,
    interrupted: usize,
    histories: usize,
    counts: HashMap<String, usize>,
}

async fn company(rig: &Rig, lead: &AgentId) -> Vec<AgentId> {
    if !rig.folded(lead).await.is_started() {
        return Vec::new();
    }
    let session = session_of(rig, lead).await;
    let roster = client(rig).roster(&session).await.unwrap();
    let others = roster.members().filter(|member| member.name != LEAD).map(|member| member.agent.clone());
    others.chain([lead.clone()]).collect()
}

async fn in_flight(rig: &Rig, lead: &AgentId) -> usize {
    let mut count = 0;
    for agent in company(rig, lead).await {
        let pending = rig.folded(&agent).await.pending();
        count += pending.iter().filter(|effect| matches!(effect, Effect::CallModel { .. })).count();
    }
    count
}

async fn run(location: &Location, cut: Option<(Moment, usize)>) -> Ran {
    let context = format!("{cut:?} on {location}");
    let rig = rig(location).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let runtime = rig.life(Some(dies_at(cut, &commits))).await;
    let lead = runtime.start(rig.start(), "build a tower").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await;
    drop(runtime);
    let in_flight = in_flight(&rig, &lead).await;
    let was_cut = matches!(ended, Err(Error::Crashed));
    let ended = match ended {
        Err(Error::Crashed) if cut.is_some() => {
            rig.resume(&lead).await.unwrap_or_else(|e| panic!("{context}: {e}"))
        }
        other => other.unwrap_or_else(|error| panic!("{context}: {error}")),
    };
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{context}: {:?}", ended.outcome);
    assert!(ended.left.is_empty(), "{context}: nothing is left to do, but {:?}", ended.left);
    let ran = collect(&rig, &lead, &context).await;
    Ran { was_cut, in_flight, commits: commits.load(Ordering::SeqCst), ..ran }
}

async fn collect(rig: &Rig, lead: &AgentId, context: &str) -> Ran {
    let session = session_of(rig, lead).await;
    let client = client(rig);
    let [roster_stream, ..] = TeamClient::streams(&session);
    let roster = client.roster(&session).await.unwrap();
    let board = client.board(&session).await.unwrap();
    let mut read: BTreeMap<String, usize> = BTreeMap::new();
    let mut said: BTreeMap<(String, String), usize> = BTreeMap::new();
    for member in roster.members() {
        for (_, letter) in client.read_letters(&session, &member.name).await.unwrap() {
            assert_eq!(letter.to, member.name, "{context}");
            *read.entry(letter.id.to_string()).or_default() += 1;
            *said.entry((member.name.clone(), letter.text)).or_default() += 1;
        }
        assert_eq!((member.waiting, member.urgent), (0, 0), "{context}: {} has everything read", member.name);
    }
    let records = rig.journal.load(&roster_stream, 0).await.unwrap();
    let events = records.iter().filter_map(|record| TeamEvent::read(record.stream.as_str(), &record.event));
    for event in events {
        if let TeamEvent::Roster(RosterEvent::LetterPosted(e)) = event {
            let times = read.remove(e.id.as_str()).unwrap_or(0);
            // A teammate that has nothing to weigh stops without reading that it is asked to.
            let stops = e.kind == convoke_kernel::LetterKind::ShutdownRequest;
            assert!(times == 1 || stops && times == 0, "{context}: {e:?} was read {times} times");
        }
    }
    assert!(read.is_empty(), "{context}: letters that nobody posted: {read:?}");
    assert!(roster.open_requests().is_empty(), "{context}: {:?}", roster.open_requests());
    let mut interrupted = 0;
    let mut histories = 0;
    for agent in company(rig, lead).await {
        for event in rig.events(&agent).await {
            interrupted +=
                usize::from(matches!(&event, Event::ToolFinished(e) if e.result.text.contains(UNKNOWN)));
            histories += usize::from(matches!(event, Event::HistoryCompacted(_)));
        }
    }
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    rig.sim.requests().iter().for_each(|request| *seen.entry(request.raw.to_vec()).or_default() += 1);
    let mut counts = HashMap::new();
    let count = std::fs::read_to_string(rig.scratch.path().join("count")).unwrap_or_default();
    count.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    let ledger = rig.life(None).await.ledger(&session).await.unwrap();
    assert_eq!(ledger.holds().count(), 0, "{context}: nothing is held for agents that have ended");
    let standing = |standing: &Standing| match standing {
        Standing::Live => "live".to_owned(),
        Standing::Stopped { why, .. } => format!("stopped: {why}"),
        other => format!("{other:?}"),
    };
    let state = |state: &TaskState| match state {
        TaskState::Done { name, .. } => format!("done by {name}"),
        other => format!("{other:?}"),
    };
    let row = |task: &&convoke_kernel::Task| {
        (task.subject.clone(), state(&task.state), task.result.clone(), task.attempts)
    };
    Ran {
        was_cut: false,
        commits: 0,
        members: roster.members().map(|member| (member.name.clone(), standing(&member.standing))).collect(),
        tasks: board.tasks().iter().map(row).collect(),
        said,
        repeats: seen.values().map(|times| times - 1).sum(),
        in_flight: 0,
        interrupted,
        histories,
        counts,
    }
}

/// Letters that follow from the scenario: their readers, and what they say. How many others there are
/// depends on which of them came together.
const LETTERS: [(&str, &str); 8] = [
    ("alice", "welcome, both of you"),
    ("bob", "welcome, both of you"),
    ("bob", "mind the dust"),
    ("lead", "alice is here"),
    ("lead", "stone by stone"),
    ("alice", "build it so"),
    ("alice", "the stones are there"),
    ("lead", "the tower stands"),
];

fn check_letters(ran: &Ran, context: &str) {
    for (to, text) in LETTERS {
        let times = ran.said.get(&(to.to_owned(), text.to_owned())).copied();
        assert_eq!(times, Some(1), "{context}: {text:?} to {to} in {:?}", ran.said);
    }
}

/// The uncut session is what it is meant to be.
fn check_whole(whole: &Ran) {
    let stopped = "stopped: it was asked to stop".to_owned();
    let members = [("lead", "live".to_owned()), ("alice", stopped.clone()), ("bob", stopped)];
    assert_eq!(whole.members, members.map(|(name, standing)| (name.to_owned(), standing)));
    let task = |subject: &str, state: &str, result: &str| {
        (subject.to_owned(), state.to_owned(), Some(result.to_owned()), 1)
    };
    assert_eq!(
        whole.tasks,
        [task("stones", "done by bob", "a hundred stones"), task("tower", "done by alice", "it is high")]
    );
    check_letters(whole, "uncut");
    assert_eq!((whole.repeats, whole.in_flight, whole.interrupted, whole.histories), (0, 0, 0, 1));
    assert_eq!(whole.counts, HashMap::from([("stones".to_owned(), 1), ("tower".to_owned(), 1)]));
}

async fn check(location: &Location, some: usize) {
    let number = |name: &str| std::env::var_os(name).map(|n| n.to_str().unwrap().parse::<u64>().unwrap());
    let seed = number("CONVOKE_SEED").unwrap_or(1);
    let most = if number("CONVOKE_SOAK_CUTS").is_some() { usize::MAX } else { some };
    let whole = run(location, None).await;
    check_whole(&whole);
    let cuts =
        (0..whole.commits).flat_map(|number| [(Moment::BeforeCommit, number), (Moment::AfterCommit, number)]);
    let mut done = 0;
    let mut interrupted = 0;
    let mut repeated = 0;
    let mut flying = 0;
    for cut in shuffled(cuts.collect(), seed).into_iter().take(most) {
        let context = format!("cut {cut:?} of {} on {location}, seed {seed}", whole.commits);
        let resumed = run(location, Some(cut)).await;
        assert_eq!(resumed.members, whole.members, "{context}");
        assert_eq!(resumed.tasks, whole.tasks, "{context}");
        assert_eq!(resumed.histories, whole.histories, "{context}");
        check_letters(&resumed, &context);
        assert!(resumed.counts.values().all(|times| *times == 1), "{context}: {:?}", resumed.counts);
        assert!(
            resumed.repeats <= resumed.in_flight,
            "{context}: {} of {}",
            resumed.repeats,
            resumed.in_flight
        );
        if resumed.interrupted == 0 {
            assert_eq!(resumed.counts, whole.counts, "{context}");
        }
        done += usize::from(resumed.was_cut);
        interrupted += resumed.interrupted;
        repeated += resumed.repeats;
        flying += resumed.in_flight;
    }
    println!(
        "{location}, seed {seed}: {done} cuts around {} commits of a team, {interrupted} commands reported \
         as unknown, {repeated} requests repeated of {flying} in flight",
        whole.commits
    );
    // A few cuts may all fall between two requests.
    assert!(
        done > 0 && (most < usize::MAX || interrupted + repeated > 0),
        "the cuts must have hit something"
    );
}

#[tokio::test]
async fn w1_w24_a_team_cut_around_any_commit_comes_to_the_same_on_sqlite() {
    check(&Location::Sqlite("journal.db".into()), 16).await;
}

#[tokio::test]
async fn w1_w24_a_team_cut_around_any_commit_comes_to_the_same_on_postgres() {
    if let Some(location) = postgres("w1_w24_a_team_cut_around_any_commit_comes_to_the_same_on_postgres") {
        check(&location, 6).await;
    }
}
