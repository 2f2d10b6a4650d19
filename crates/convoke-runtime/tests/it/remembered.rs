//! Results by content: what is taken instead of being worked out again, what never is, and that equal work at
//! the same time is done once. Every session has a simulator and a directory of its own; what they share is
//! the journal.

use std::path::PathBuf;

use convoke_claude::{Endpoint, Models, capabilities};
use convoke_journal::{Batch, Journal, Location, Options, Process, StreamId};
use convoke_kernel::{Event, Outcome, Role, RunEvent, RunId};
use convoke_runtime::{
    Clock, Crash, DriveMode, Error, Moment, Notice, Runtime, Stop, StopLevel, Stopper, Watcher,
};
use convoke_sim::{Fault, FaultKind, Reply, SimConfig, calls, cut_at_max_tokens, empty, refuses, says};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::support::{Rig, within};
use crate::team::{Team, finding, looks_and_judges, looks_and_reports, report, workflow};
use crate::workers::{only_result, requests, started};

/// Two hours and a minute: a clock that jumps has moved a little by itself.
const TWO_HOURS: u64 = 2 * 3_600_000 + 60_000;

/// A journal for several sessions.
struct LibraryFolder(TempDir);

/// What a session came to: requests of workers and of verifiers, what its lead read, its own name and its
/// agents.
struct Session {
    workers: usize,
    verifiers: usize,
    read: String,
    name: String,
    agents: u32,
}

impl LibraryFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("journal.db")
    }

    async fn rig(&self, team: Team) -> Rig {
        let mut rig = Rig::on(Location::Sqlite(self.path()), SimConfig::new(team)).await;
        rig.fan_out = Some(Rig::fanning_out());
        std::fs::write(rig.work.path().join("a.txt"), "the same in every directory").unwrap();
        rig
    }

    async fn session(&self, team: Team) -> Session {
        self.session_with(team, |_| {}).await
    }

    async fn session_with(&self, team: Team, change: impl FnOnce(&mut Rig)) -> Session {
        let mut rig = self.rig(team).await;
        change(&mut rig);
        let (lead, ended) = rig.ask("Review").await;
        assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
        let name = rig.folded(&lead).await.spec().unwrap().session.clone();
        let agents = rig.life(None).await.ledger(&name).await.unwrap().agents();
        let workers = requests(&rig, "worker").len();
        let verifiers = requests(&rig, "verifier").len();
        Session { workers, verifiers, read: only_result(&rig), name: name.to_string(), agents }
    }
}

fn team(subtasks: &[&str]) -> Team {
    Team::new([workflow(subtasks), says("done")])
}

fn check_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[tokio::test]
async fn d6_1_d6_2_d6_3_equal_work_is_taken_from_the_journal_and_the_lead_is_told_from_where_and_how_old() {
    let folder = LibraryFolder::new();
    let first = folder.session(team(&["look at a", "look at b"])).await;
    assert_eq!((first.workers, first.verifiers, first.agents), (4, 4, 4));
    assert!(!first.read.contains("are from run"), "{}", first.read);
    let later = |rig: &mut Rig| rig.clock = Clock::jumping(1_000_000 + TWO_HOURS);
    let second = folder.session_with(team(&["look at b", "look at a", "look at c"]), later).await;
    assert_eq!((second.workers, second.verifiers), (2, 2), "only what is new was asked");
    assert_eq!(second.agents, 2, "what is remembered is not counted");
    let from = format!("from run {}, 2 h old", first.name);
    check_contains(
        &second.read,
        &[&format!("(note: 2 of 3 results are {from})"), &format!("(note: 2 of 3 verifications are {from})")],
    );
    check_contains(
        &second.read,
        &["[confirmed] [low] look at b", "[confirmed] [low] look at a", "[confirmed] [low] look at c"],
    );
    check_contains(
        &second.read,
        &[&format!("## item 1: look at b\nstatus: ok ({from})"), "## item 3: look at c\nstatus: ok\n"],
    );
}

/// Something about a session that is not as it was.
type Change = (&'static str, fn(&mut Rig));

fn other_model(rig: &mut Rig) {
    let model = Models::builtin().get("claude-opus-4-7");
    let child = &mut rig.fan_out.as_mut().unwrap().child;
    child.capabilities = capabilities(&model, &Endpoint::anthropic(), Some("xhigh")).unwrap();
    child.model = model.id;
}

#[tokio::test]
async fn d6_1_whatever_affects_the_answer_makes_it_run_again() {
    let folder = LibraryFolder::new();
    folder.session(team(&["look"])).await;
    let matters: [Change; 8] = [
        ("model", other_model),
        ("effort", |rig| rig.fan_out.as_mut().unwrap().child.capabilities.effort = Some("high".into())),
        ("tools", |rig| rig.fan_out.as_mut().unwrap().child.capabilities.anthropic_tools = false),
        ("turns", |rig| rig.fan_out.as_mut().unwrap().child.limits.max_turns = 9),
        ("system prompt", |rig| rig.limits.bash_timeout_ms = 30_000),
        ("a file's content", |rig| std::fs::write(rig.work.path().join("a.txt"), "another").unwrap()),
        ("a new file", |rig| std::fs::write(rig.work.path().join("b.txt"), "").unwrap()),
        ("a removed file", |rig| std::fs::remove_file(rig.work.path().join("a.txt")).unwrap()),
    ];
    for (what, change) in matters {
        let again = folder.session_with(team(&["look"]), change).await;
        assert_eq!((again.workers, again.verifiers), (2, 2), "{what}");
    }
    let prompt = folder.session(team(&["look closer"])).await;
    assert_eq!((prompt.workers, prompt.verifiers), (2, 2), "the prompt");
    let does_not: [Change; 4] = [
        ("the leads turns", |rig| rig.limits.max_turns = 9),
        ("the caps", |rig| rig.caps.agents = Some(5)),
        ("how many at once", |rig| rig.max_concurrent = 1),
        ("the mode", |rig| {
            let fan_out = rig.fan_out.as_mut().unwrap();
            fan_out.mode = false;
            fan_out.consent = true;
        }),
    ];
    for (what, change) in does_not {
        let again = folder.session_with(team(&["look"]), change).await;
        assert_eq!((again.workers, again.verifiers), (0, 0), "{what}");
    }
}

#[tokio::test]
async fn more_voters_are_asked_beside_those_that_have_voted() {
    let folder = LibraryFolder::new();
    folder.session(team(&["look"])).await;
    let more = folder.session_with(team(&["look"]), |rig| rig.fan_out.as_mut().unwrap().voters = 3).await;
    assert_eq!((more.workers, more.verifiers, more.agents), (0, 4, 2));
    check_contains(&more.read, &["(note: 1 of 3 verifications are from run"]);
}

fn looks() -> Reply {
    calls("bash", json!({"command": "echo looked"}))
}

fn found() -> Vec<Value> {
    vec![finding("a claim", "low")]
}

/// A worker's replies that come to something less than a whole result.
type Soft = (&'static str, fn() -> Vec<Reply>, &'static str);

#[tokio::test]
async fn d6_7_what_is_less_than_a_whole_result_is_never_taken_again() {
    let soft: [Soft; 6] = [
        (
            "without a look",
            || vec![report("r", found()), report("r", found())],
            "ok, degraded: the report came",
        ),
        ("prose", || vec![looks(), says("fine"), says("fine")], "ok, degraded: it ended in prose"),
        ("turn limit", || vec![looks(), looks(), looks(), report("r", found())], "failed(turn_limit)"),
        ("truncated", || vec![looks(), cut_at_max_tokens("half")], "failed(truncated)"),
        ("refused", || vec![looks(), refuses("no")], "failed(refused)"),
        ("empty", || vec![looks(), empty(), empty()], "failed(invalid_output)"),
    ];
    for (what, replies, status) in soft {
        let folder = LibraryFolder::new();
        let few_turns = |rig: &mut Rig| rig.fan_out.as_mut().unwrap().child.limits.max_turns = 3;
        let first = folder.session_with(team(&["look"]).workers(move |_| replies()), few_turns).await;
        check_contains(&first.read, &[&format!("status: {status}")]);
        assert_eq!(first.verifiers, 0, "{what}");
        let again = folder.session_with(team(&["look"]), few_turns).await;
        assert_eq!((again.workers, again.verifiers), (2, 2), "{what}");
        check_contains(&again.read, &["[confirmed] [low] look"]);
    }
}

#[tokio::test]
async fn d6_7_a_worker_that_fails_is_asked_again_and_its_siblings_are_not() {
    let folder = LibraryFolder::new();
    let subtasks = ["look at a", "look at b [conversation: b]", "look at c"];
    let broken = |rig: &mut Rig| {
        rig.fan_out.as_mut().unwrap().voters = 0;
        rig.sim.push_fault(Fault::new(FaultKind::SpendLimit).on("b").times(u32::MAX));
    };
    let first = folder.session_with(team(&subtasks), broken).await;
    check_contains(&first.read, &["3 items: 2 ok, 1 failed"]);
    let again = folder.session_with(team(&subtasks), |rig| rig.fan_out.as_mut().unwrap().voters = 0).await;
    assert_eq!(again.workers, 2);
    check_contains(&again.read, &["3 items: 3 ok", "(note: 2 of 3 results are from run"]);
}

#[tokio::test]
async fn d6_8_verdicts_are_remembered_for_what_they_judge_and_a_verifier_that_could_not_look_is_asked_again()
{
    let folder = LibraryFolder::new();
    let mute = team(&["look at a", "look at b"]).verifiers(|findings| match findings[0]["claim"].as_str() {
        Some("look at b") => vec![looks(), refuses("no")],
        _ => looks_and_judges(findings, "refuted"),
    });
    let first = folder.session(mute).await;
    check_contains(&first.read, &["[refuted] [low] look at a", "- [unverified: "]);
    let again = folder.session(team(&["look at a", "look at b"])).await;
    assert_eq!((again.workers, again.verifiers, again.agents), (0, 2, 1), "only the one that could not look");
    check_contains(&again.read, &["[refuted] [low] look at a", "[confirmed] [low] look at b"]);
    check_contains(
        &again.read,
        &["(note: 2 of 2 results are from run", "(note: 1 of 2 verifications are from run"],
    );
}

#[tokio::test]
async fn equal_subtasks_in_one_wave_run_once_and_it_is_said() {
    let once = LibraryFolder::new().session(team(&["look", "glance", " look\n"])).await;
    assert_eq!((once.workers, once.verifiers, once.agents), (4, 4, 4));
    check_contains(&once.read, &["subtasks 1 and 3 are equal: run once", "## item 2: glance"]);
}

#[tokio::test]
async fn fresh_ignores_what_is_remembered_and_remembers_anew() {
    let folder = LibraryFolder::new();
    let fresh = |rig: &mut Rig| rig.fan_out.as_mut().unwrap().fresh = true;
    folder.session(team(&["look"])).await;
    let again = folder.session_with(team(&["look"]), fresh).await;
    assert_eq!((again.workers, again.verifiers), (2, 2));
    assert!(!again.read.contains("are from run"), "{}", again.read);
    let third = folder.session(team(&["look"])).await;
    assert_eq!((third.workers, third.verifiers), (0, 0));
    check_contains(&third.read, &[&format!("from run {}", again.name)]);
}

/// Drives a new lead until it ends.
async fn drive(
    runtime: &Runtime,
    rig: &Rig,
    task: &str,
    stop: Stop,
    watcher: Option<Watcher>,
) -> Result<Option<Outcome>, Error> {
    let lead = runtime.start(rig.start(), task).await.unwrap();
    within(runtime.drive(&lead, DriveMode::New, stop, watcher)).await.map(|ended| ended.outcome)
}

#[tokio::test]
async fn d6_6_after_an_interrupt_a_new_session_works_out_only_what_never_finished() {
    let folder = LibraryFolder::new();
    let subtasks = ["look at a", "look at b", "look at c [conversation: c]"];
    let mut rig = folder.rig(team(&subtasks)).await;
    rig.fan_out.as_mut().unwrap().voters = 0;
    let hold = rig.sim.hold("c", 0, 2);
    let (stopper, stop) = Stopper::new();
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let interrupt = async {
        let mut ended = 0;
        while ended < 2 {
            let notice = notices.recv().await.unwrap();
            ended += usize::from(
                matches!(notice, Notice::Run { event, .. } if matches!(*event, RunEvent::ItemEnded(_))),
            );
        }
        hold.entered().await;
        stopper.ask(StopLevel::Cut);
    };
    let runtime = rig.life(None).await;
    let (ended, ()) = tokio::join!(drive(&runtime, &rig, "Review", stop, Some(watcher)), interrupt);
    assert_eq!(ended.unwrap(), None);
    let rest = folder.session_with(team(&subtasks), |rig| rig.fan_out.as_mut().unwrap().voters = 0).await;
    assert_eq!(rest.workers, 2);
    check_contains(&rest.read, &["3 items: 3 ok", "(note: 2 of 3 results are from run"]);
}

#[tokio::test]
async fn whoever_waits_for_a_worker_that_dies_does_the_work() {
    let folder = LibraryFolder::new();
    let dying = folder.rig(team(&["look"])).await;
    let crash = Crash::when(|moment, events| {
        let worked = |event: &Event| matches!(event, Event::AgentStarted(e) if e.spec.role == Role::Worker);
        moment == Moment::AfterCommit && events.iter().any(worked)
    });
    let runtime = dying.life(Some(crash)).await;
    let died = drive(&runtime, &dying, "Review", Stop::never(), None).await;
    assert!(matches!(died, Err(Error::Crashed)), "{died:?}");
    let heir = folder.session(team(&["look"])).await;
    assert_eq!((heir.workers, heir.verifiers), (2, 2));
}

#[tokio::test]
async fn two_leads_at_once_with_equal_subtasks_have_each_worker_and_verifier_run_once() {
    let subtasks = ["look at a [conversation: a]", "look at b", "look at c"];
    let folder = LibraryFolder::new();
    let mut rig = folder.rig(team(&subtasks)).await;
    rig.fan_out.as_mut().unwrap().voters = 0;
    let one = rig.live().await;
    let two = rig.live().await;
    // The first lead's worker is held until the second lead's run stands, so that they really meet.
    let hold = rig.sim.hold("a", 0, 2);
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let second = async {
        hold.entered().await;
        drive(&two, &rig, "Review it too", Stop::never(), Some(watcher)).await
    };
    let let_go = async {
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Run { event, .. } if matches!(*event, RunEvent::ItemEnded(_))) {
                break;
            }
        }
        hold.release();
    };
    let (first, second, ()) = tokio::join!(drive(&one, &rig, "Review", Stop::never(), None), second, let_go);
    for ended in [first, second] {
        assert_eq!(ended.unwrap(), Some(Outcome::Ok { text: "done".into() }));
    }
    assert_eq!(requests(&rig, "worker").len(), 2 * 3, "each worker ran once");
    let read: Vec<String> = requests(&rig, "lead").iter().filter_map(last_result).collect();
    assert_eq!(read.len(), 2);
    let reused = |text: &&String| text.contains("(note: 3 of 3 results are from run");
    assert_eq!(read.iter().filter(reused).count(), 1, "{read:?}");
}

#[tokio::test]
async fn two_leads_at_once_share_verifiers_too() {
    let folder = LibraryFolder::new();
    let rig = folder.rig(team(&["look at a", "look at b"])).await;
    let one = rig.live().await;
    let two = rig.live().await;
    let (first, second) = tokio::join!(
        drive(&one, &rig, "Review", Stop::never(), None),
        drive(&two, &rig, "Review it too", Stop::never(), None)
    );
    for ended in [first, second] {
        assert_eq!(ended.unwrap(), Some(Outcome::Ok { text: "done".into() }));
    }
    assert_eq!((requests(&rig, "worker").len(), requests(&rig, "verifier").len()), (4, 4));
}

fn last_result(request: &Value) -> Option<String> {
    let last = request["messages"].as_array()?.last()?;
    Some(last["content"][0].get("content")?.as_str()?.to_owned())
}

fn writes() -> Vec<Reply> {
    let mut replies = vec![calls("bash", json!({"command": "echo made >> out.txt"}))];
    replies.extend(looks_and_reports("made it", vec![]));
    replies
}

#[tokio::test]
async fn a_result_that_changed_files_is_not_taken_where_its_changes_are_not() {
    let folder = LibraryFolder::new();
    let first = folder.session(team(&["make it"]).workers(|_| writes())).await;
    check_contains(&first.read, &["changed files: out.txt"]);
    let elsewhere = folder.session(team(&["make it"]).workers(|_| writes())).await;
    assert_eq!(elsewhere.workers, 3, "the file is not there, so it has to be made");
    let by_hand = |rig: &mut Rig| std::fs::write(rig.work.path().join("out.txt"), "made\n").unwrap();
    let there = folder.session_with(team(&["make it"]).workers(|_| writes()), by_hand).await;
    assert_eq!(there.workers, 3, "over another tree it is another task");
}

#[tokio::test]
async fn a_result_that_changed_files_is_taken_while_its_changes_are_there() {
    let folder = LibraryFolder::new();
    let rig = folder.rig(team(&["make it [conversation: a]"]).workers(|_| writes())).await;
    let one = rig.live().await;
    let two = rig.live().await;
    let hold = rig.sim.hold("a", 0, 0);
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let second = async {
        hold.entered().await;
        drive(&two, &rig, "Review it too", Stop::never(), Some(watcher)).await
    };
    let let_go = async {
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Run { event, .. } if matches!(*event, RunEvent::RunStarted(_))) {
                break;
            }
        }
        hold.release();
    };
    let (first, second, ()) = tokio::join!(drive(&one, &rig, "Review", Stop::never(), None), second, let_go);
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(rig.read("out.txt"), "made\n", "it was made once");
    let read: Vec<String> = requests(&rig, "lead").iter().filter_map(last_result).collect();
    assert!(read.len() == 2 && read.iter().all(|text| text.contains("changed files: out.txt")), "{read:?}");
}

/// One worker that makes a file, and after it one that looks.
fn makes_and_looks() -> Team {
    team(&["make it", "look"]).workers(|subtask| match subtask {
        "make it" => writes(),
        _ => looks_and_reports(subtask, found()),
    })
}

fn one_at_a_time(rig: &mut Rig) {
    rig.agents_at_once = Some(1);
}

#[tokio::test]
async fn what_was_seen_beside_changed_files_is_not_taken_where_the_changes_are_not() {
    let folder = LibraryFolder::new();
    let first = folder.session_with(makes_and_looks(), one_at_a_time).await;
    assert_eq!((first.workers, first.verifiers), (5, 2));
    let second_item = first.read.split_once("## item 2").unwrap().1;
    assert!(
        first.read.contains("changed files: out.txt") && !second_item.contains("changed files"),
        "{}",
        first.read
    );
    let again = folder.session_with(makes_and_looks(), one_at_a_time).await;
    assert_eq!(
        (again.workers, again.verifiers),
        (3, 2),
        "once the file is there again, so is what was seen beside it"
    );
    let without =
        folder.session(team(&["look"]).workers(|subtask| looks_and_reports(subtask, found()))).await;
    assert_eq!((without.workers, without.verifiers), (2, 2), "nobody had looked at the tree as it is here");
}

#[tokio::test]
async fn a_result_that_changed_files_before_a_crash_is_not_taken_where_its_changes_are_not() {
    let folder = LibraryFolder::new();
    let rig = folder.rig(team(&["make it"]).workers(|_| writes())).await;
    let crash = Crash::when(|moment, events| {
        moment == Moment::AfterCommit && events.iter().any(|event| matches!(event, Event::ResultsAppended(_)))
    });
    let runtime = rig.life(Some(crash)).await;
    let lead = runtime.start(rig.start(), "Review").await.unwrap();
    let died = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await;
    assert!(matches!(died, Err(Error::Crashed)), "{died:?}");
    assert_eq!(rig.read("out.txt"), "made\n");
    rig.resume(&lead).await.unwrap();
    assert_eq!((rig.read("out.txt").as_str(), requests(&rig, "worker").len()), ("made\n", 3));
    let elsewhere = folder.session(team(&["make it"]).workers(|_| writes())).await;
    assert_eq!(elsewhere.workers, 3);
}

#[tokio::test]
async fn d6_5_a_remembered_result_that_cannot_be_read_counts_as_none() {
    let folder = LibraryFolder::new();
    let rig = folder.rig(team(&["look"])).await;
    let (lead, _) = rig.ask("Review").await;
    let run = RunId::derived(&["workflow", lead.as_str(), &started(&rig, &lead, "Workflow").await[0]]);
    let process = Process::current([7; 10]);
    let journal = Journal::open(Location::Sqlite(folder.path()), Options::new(process)).await.unwrap();
    let records = journal.load(&StreamId::new(run.as_str()).unwrap(), 0).await.unwrap();
    let Ok(RunEvent::RunStarted(e)) = RunEvent::decode(&records[0].event) else {
        panic!("a run starts with its start")
    };
    assert!(journal.result(&e.spec.keys[0]).await.unwrap().is_some());
    let lease = journal.own(&StreamId::new("spoiler").unwrap()).await.unwrap();
    let results = vec![(e.spec.keys[0].clone(), r#"{"session":"s_x","result":[1,2]}"#.to_owned())];
    journal.append(&lease, 0, &Batch { results, ..Batch::events(1, ["{}"]) }).await.unwrap();
    journal.release(&lease).await.unwrap();
    let again = folder.session(team(&["look"])).await;
    assert_eq!(
        (again.workers, again.verifiers),
        (2, 0),
        "the worker is asked again and the verdict is still known"
    );
}
