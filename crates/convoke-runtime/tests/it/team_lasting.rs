//! What lasts in a teammate's and a lead's life: ten new histories and three restarts each, through the real
//! runtime. After every one of them the next request that reached the simulator says who is asked, in words
//! that stand here and are not made by the code that is tested; rights do not grow, the mode is right, and
//! what was done before can be read again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use convoke_kernel::{AgentId, Caps, Event, Member, Outcome, Purpose, Sandbox, SessionId, TaskState};
use convoke_runtime::{Crash, DriveMode, DriveOutcome, Error, Moment, Runtime, Stop};
use convoke_sim::Received;
use serde_json::{Value, json};

use crate::scripted_team::{MemberReply, Seen, call, text, who};
use crate::support::{Rig, within};
use crate::teams::{client, rig, session_of};

/// New histories in one life.
const HISTORIES: usize = 10;

/// How many histories this one was preceded by: the summaries are numbered.
fn histories(request: &Value) -> usize {
    let first = all_texts(&request["messages"][0]);
    let number = first.lines().find_map(|line| line.strip_prefix("| summary ")?.parse().ok());
    number.unwrap_or(0)
}

fn all_texts(message: &Value) -> String {
    let blocks = message["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Every text of a request that is no tool's result.
fn body_texts(request: &Value) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    messages.map(all_texts).collect::<Vec<_>>().join("\n")
}

fn summary_of(seen: &Seen<'_>) -> Option<MemberReply> {
    let asked = seen.last.lines().any(|line| line == "[new history]");
    asked.then(|| text(format!("summary {}", histories(seen.request) + 1)))
}

/// Dies in the first life when its third history has begun, in the second when the first calls of its
/// seventh have been made and are not recorded, in the third when it was decided to ask for the ninth
/// summary; in the fourth not at all.
fn dies_in(life: usize, begun: &Arc<AtomicUsize>) -> Crash {
    let begun = Arc::clone(begun);
    let dead = AtomicBool::new(false);
    Crash::when(move |moment, events| {
        let has = |wanted: fn(&Event) -> bool| events.iter().any(wanted);
        if moment == Moment::AfterCommit && has(|event| matches!(event, Event::HistoryCompacted(_))) {
            begun.fetch_add(1, Ordering::SeqCst);
        }
        let histories = begun.load(Ordering::SeqCst);
        let summary = |event: &Event| matches!(event, Event::ModelCalled(e) if e.purpose == Purpose::Summary);
        let dies = match (life, moment) {
            (0, Moment::AfterCommit) => histories == 3,
            (1, Moment::BeforeCommit) => {
                histories == 6 && has(|event| matches!(event, Event::ToolFinished(_)))
            }
            (2, Moment::AfterCommit) => histories == 8 && has(summary),
            _ => false,
        };
        // A process that is dead commits nothing.
        dead.fetch_or(dies, Ordering::SeqCst) || dies
    })
}

async fn drive(runtime: &Runtime, lead: &AgentId, life: usize) -> Result<DriveOutcome, Error> {
    let take = if life == 0 { DriveMode::New } else { DriveMode::Resume { changed: vec![] } };
    within(runtime.drive(lead, take, Stop::never(), None)).await
}

/// Four lives of a session that begins like this. Gives the lead and how many requests had been sent at the
/// end of each life.
async fn four_lives(rig: &Rig, begin: impl FnOnce(SessionId, AgentId)) -> (AgentId, Vec<usize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let first = rig.life(Some(dies_in(0, &begun))).await;
    let lead = first.start(rig.start(), "build a tower").await.unwrap();
    begin(started_session(rig, &lead).await, lead.clone());
    let mut sent = Vec::new();
    for life in 0..4 {
        let runtime = if life == 0 { first.clone() } else { rig.life(Some(dies_in(life, &begun))).await };
        let ended = drive(&runtime, &lead, life).await;
        sent.push(rig.sim.requests().len());
        assert!(matches!((life, &ended), (0..3, Err(Error::Crashed)) | (3, Ok(_))), "life {life}: {ended:?}");
    }
    assert_eq!(begun.load(Ordering::SeqCst), HISTORIES);
    (lead, sent)
}

/// The session of a lead that has not been driven yet.
async fn started_session(rig: &Rig, lead: &AgentId) -> SessionId {
    let waiting = rig.journal.inputs(&convoke_journal::StreamId::from(lead)).await.unwrap();
    let body: Value = serde_json::from_str(&waiting[0].body).unwrap();
    body["start"]["session"].as_str().unwrap().parse().unwrap()
}

async fn member(rig: &Rig, session: &SessionId, name: &str) -> Member {
    client(rig).roster(session).await.unwrap().member(name).unwrap().clone()
}

fn requests_of(rig: &Rig, name: &str) -> Vec<Received> {
    rig.sim.requests().into_iter().filter(|request| who(&request.body) == name).collect()
}

/// The first request of each history but the first.
fn first_requests(rig: &Rig, name: &str) -> Vec<Received> {
    let sent = requests_of(rig, name);
    let first = |number| sent.iter().find(|request| histories(&request.body) == number).cloned();
    (1..=HISTORIES)
        .map(|number| first(number).unwrap_or_else(|| panic!("history {number} was never sent")))
        .collect()
}

#[track_caller]
fn check_says(text: &str, words: &[&str], context: &str) {
    for words in words {
        assert!(text.contains(&format!("\n{words}")), "{context}: {words:?} is not in\n{text}");
    }
}

/// What the requests after each restart say: the first that is none of the old ones.
fn after_restarts(rig: &Rig, name: &str, sent: &[usize]) -> Vec<Received> {
    let all = rig.sim.requests();
    let news = |before: &usize| {
        let old: Vec<&[u8]> = all[..*before].iter().map(|request| &request.raw[..]).collect();
        let new = |request: &&Received| who(&request.body) == name && !old.contains(&&request.raw[..]);
        all[*before..].iter().find(new).unwrap().clone()
    };
    sent[..3].iter().map(news).collect()
}

/// How often a request says who is asked.
fn tellings(request: &Received) -> usize {
    body_texts(&request.body).lines().filter(|line| *line == "[who you are]").count()
}

async fn results_of(rig: &Rig, agent: &AgentId) -> Vec<String> {
    let events = rig.events(agent).await;
    let texts = events.into_iter().filter_map(|event| match event {
        Event::ToolFinished(e) => Some(e.result.text),
        _ => None,
    });
    texts.collect()
}

/// The reference under which the new history names what an earlier command came to.
fn reference(request: &Value, command: &str) -> String {
    let first = all_texts(&request["messages"][0]);
    let line =
        first.lines().find(|line| line.starts_with("- ") && line.contains(command)).unwrap_or_default();
    line.trim_start_matches("- ").split(' ').next().unwrap_or_default().to_owned()
}

fn held(request: &Value) -> String {
    let texts = body_texts(request);
    let line = texts.lines().find_map(|line| line.strip_prefix("task: t_")).unwrap_or_default();
    format!("t_{}", line.chars().take(16).collect::<String>())
}

/// A lead that writes one task and makes alice and bob; bob rests.
fn sets_up(seen: &Seen<'_>, alice: &Value) -> MemberReply {
    match seen.replies {
        0 => MemberReply::Calls(vec![
            (
                "task_create",
                json!({"subject": "build the tower", "description": "of stone\nand high", "role": "coder"}),
            ),
            ("spawn_teammate", json!({"name": "bob", "role": "tester", "prompt": "Wait."})),
            ("spawn_teammate", alice.clone()),
        ]),
        _ => text(format!("heard {}", seen.last.len())),
    }
}

/// Alice: in every history she runs a command and reads the last history's again, then asks for a new one
/// while a letter comes.
fn builds(seen: &Seen<'_>) -> MemberReply {
    let number = histories(seen.request);
    let begun = seen.replies - if number == 0 { 2.min(seen.replies) } else { 0 };
    let ran = json!({"command": format!("echo history-{number} >> lives; echo printed-{number}")});
    match (number, begun) {
        (0, 0) if seen.replies == 0 => call("idle", json!({})),
        (0, 0) if seen.replies == 1 => {
            call("todo", json!({"items": [{"text": "stack stones", "status": "in_progress"}]}))
        }
        (0, 0) => call("bash", ran),
        (_, 0) => {
            let earlier = reference(seen.request, &format!("echo history-{} ", number - 1));
            MemberReply::Calls(vec![("bash", ran), ("recall", json!({"reference": earlier}))])
        }
        (HISTORIES, 1) => {
            call("task_update", json!({"task": held(seen.request), "status": "done", "result": "it stands"}))
        }
        (_, 1) => MemberReply::Calls(vec![
            ("compact", json!({})),
            ("bash", json!({"command": format!("cat go-{number}")})),
        ]),
        _ => text("the tower stands"),
    }
}

/// Writes a letter to alice each time that she waits for it, in a thread of its own because waiting for a
/// reader blocks.
fn writes_letters(rig: &Rig, session: SessionId, lead: AgentId) {
    let client = client(rig);
    let work = rig.work.path().to_owned();
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        for number in 0..HISTORIES {
            // Opening it for writing waits until her command reads.
            let gate = std::fs::File::options().write(true).open(work.join(format!("go-{number}"))).unwrap();
            let told = format!("letter-{number}");
            runtime.block_on(client.send(&session, &lead, "alice", &told, false)).unwrap();
            drop(gate);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c17_w42_ten_new_histories_and_three_restarts_leave_a_teammate_who_it_is() {
    let mut rig = rig(|seen| match (seen.who.as_str(), summary_of(seen)) {
        (_, Some(summary)) => summary,
        ("lead", _) => {
            sets_up(seen, &json!({"name": "alice", "role": "coder", "prompt": "Take work from the board."}))
        }
        ("alice", _) => builds(seen),
        _ => call("idle", json!({})),
    })
    .await;
    rig.caps = Caps { nano: Some(500_000_000_000), agents: Some(50), ..Caps::default() };
    for number in 0..HISTORIES {
        let made =
            std::process::Command::new("mkfifo").arg(rig.work.path().join(format!("go-{number}"))).status();
        assert!(made.unwrap().success());
    }
    let (lead, sent) = four_lives(&rig, |session, lead| writes_letters(&rig, session, lead)).await;
    let session = session_of(&rig, &lead).await;
    for (index, request) in first_requests(&rig, "alice").iter().enumerate() {
        let number = index + 1;
        let read = body_texts(&request.body);
        let says = [
            "name: alice\n",
            "role: coder\n",
            "team: default\n",
            "member: lead, ",
            "member: bob, ",
            "budget: $",
            "authority: all local tools; your commands are not confined; you start no agents\n",
            "unread: person, 1 letter\n",
            "request: none\n",
            "running: none\n",
            "todo: [>] stack stones\n",
            "task: t_",
            "| of stone\n| and high\n",
            &format!("| summary {number}\n"),
            &format!("| letter-{index}"),
        ];
        check_says(&read, &says, &format!("history {number}"));
        assert!(read.contains("build the tower (#1)") && read.contains("of 50 agents left\n"), "{read}");
        assert!(!read.contains("\nmode: "), "a teammate has no switch: {read}");
    }
    for (restart, request) in after_restarts(&rig, "alice", &sent).iter().enumerate() {
        let read = body_texts(&request.body);
        check_says(&read, &["[who you are]\n", "name: alice\n", "task: t_"], &format!("restart {restart}"));
        // The third came while the summary was asked for: the new history says it, and once.
        assert_eq!(tellings(request), if restart < 2 { 2 } else { 1 }, "restart {restart}: {read}");
    }
    let alice = member(&rig, &session, "alice").await;
    let results = results_of(&rig, &alice.agent).await;
    let replaced = |text: &&String| text.starts_with("(new shell: directory and exported variables");
    let replaced = results.iter().filter(replaced).filter(|text| !text.contains("(characters ")).count();
    assert_eq!(replaced, 3, "a changed shell is told each time: {results:#?}");
    for number in 0..HISTORIES {
        let wanted = format!("printed-{number}\n\n(characters ");
        let unknown = number == 6;
        let recalled = results.iter().any(|text| text.contains(&wanted));
        assert!(recalled || unknown, "what history {number} printed can be read again: {results:#?}");
    }
    let lives: Vec<String> = rig.read("lives").lines().map(str::to_owned).collect();
    assert_eq!(lives, (0..=HISTORIES).map(|number| format!("history-{number}")).collect::<Vec<_>>());
    let events = rig.events(&alice.agent).await;
    let kept = events.iter().filter(|event| matches!(event, Event::HistoryCompacted(_))).count();
    assert_eq!(kept, HISTORIES, "the whole transcript is in the journal");
    let board = client(&rig).board(&session).await.unwrap();
    assert!(matches!(board.tasks()[0].state, TaskState::Done { .. }), "{board:?}");
    assert_eq!((member(&rig, &session, "alice").await.waiting, board.tasks()[0].attempts), (0, 1));
}

/// A teammate that tries in every history to write, and is answered.
fn tries_to_write(seen: &Seen<'_>) -> MemberReply {
    let number = histories(seen.request);
    let first = if histories(seen.request) == 0 { 1 } else { 0 };
    match seen.replies {
        0 if first == 1 => call("idle", json!({})),
        replies if replies == first => MemberReply::Calls(vec![
            ("bash", json!({"command": "touch escaped"})),
            (
                "str_replace_based_edit_tool",
                json!({"command": "create", "path": "escaped", "file_text": "x"}),
            ),
        ]),
        _ if number == HISTORIES => text("I could not write"),
        _ => call("compact", json!({})),
    }
}

/// A teammate that may not write, made like this, through ten histories and three lives.
async fn check_never_writes(alice: Value, authority: &'static str, refusal: &str) {
    let rig = rig(move |seen| match (seen.who.as_str(), summary_of(seen)) {
        (_, Some(summary)) => summary,
        ("lead", _) => sets_up(seen, &alice),
        ("alice", _) => tries_to_write(seen),
        _ => call("idle", json!({})),
    })
    .await
    .confined(Sandbox::Workspace);
    let (lead, sent) = four_lives(&rig, |_, _| {}).await;
    let session = session_of(&rig, &lead).await;
    let agent = member(&rig, &session, "alice").await.agent;
    let results = results_of(&rig, &agent).await;
    let refused = results.iter().filter(|text| text.contains(refusal)).count();
    assert!(refused >= 2 * (HISTORIES + 1), "{refused} refusals: {results:#?}");
    assert!(!rig.work.path().join("escaped").exists());
    let all = first_requests(&rig, "alice").into_iter().chain(after_restarts(&rig, "alice", &sent));
    for request in all {
        check_says(&body_texts(&request.body), &[authority], "its rights");
    }
    let tools: Vec<Vec<String>> =
        requests_of(&rig, "alice").iter().map(|r| crate::scripted_team::tools(&r.body)).collect();
    assert!(tools.iter().all(|names| *names == tools[0]), "its tools stay the same");
}

#[tokio::test]
async fn w76_a_teammate_that_only_reads_never_gains_a_right() {
    let alice = json!({"name": "alice", "role": "coder", "prompt": "Look.", "tools": ["view", "grep"], "isolation": "copy"});
    let authority = "authority: local tools: view, grep; nothing you write is kept; you start no agents\n";
    check_never_writes(alice, authority, "Not run: you were given view, grep and no other tools").await;
}

#[tokio::test]
async fn a_teammate_whose_plan_nobody_approved_never_gains_a_right() {
    let alice = json!({"name": "alice", "role": "coder", "prompt": "Look.", "require_plan": true});
    let authority = "authority: all local tools; you write below the working directory and nowhere else; you \
        start no agents; your plan is not approved, so you only read\n";
    check_never_writes(alice, authority, "Not run: your plan has not been approved").await;
}

/// Where the switch stands in each turn of the lead's.
const SWITCH: [bool; HISTORIES + 1] = [true, true, false, false, true, true, false, true, true, true, false];

/// A lead that begins a new history in every exchange, and tries each time to make alice again.
fn leads(seen: &Seen<'_>) -> MemberReply {
    let number = histories(seen.request);
    let spoken = format!("turn {}", histories(seen.request) + 1);
    let alice = json!({"name": "alice", "role": "coder", "prompt": "Wait."});
    if seen.last.lines().any(|line| line == spoken) {
        return call("compact", json!({"focus": "the tower"}));
    }
    match seen.replies {
        0 => call("spawn_teammate", alice),
        _ => text(format!("answered {number}")),
    }
}

#[tokio::test]
async fn w43_ten_new_histories_and_three_restarts_leave_a_lead_its_mode_and_its_team() {
    let mut rig = rig(|seen| match (seen.who.as_str(), summary_of(seen)) {
        (_, Some(summary)) => summary,
        ("lead", _) => leads(seen),
        _ => call("idle", json!({})),
    })
    .await;
    rig.fan_out = Some(Rig::fanning_out());
    let mut runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "turn 0").await.unwrap();
    within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    for (turn, on) in SWITCH.iter().enumerate().skip(1) {
        runtime.set_mode(&lead, &format!("mode {turn}"), *on).await.unwrap();
        runtime.say(&lead, &format!("say {turn}"), &format!("turn {turn}")).await.unwrap();
        let mut take = DriveMode::New;
        if turn % 3 == 0 {
            runtime = rig.life(None).await;
            take = DriveMode::Resume { changed: vec![] };
        }
        let ended = within(runtime.drive(&lead, take, Stop::never(), None)).await.unwrap();
        assert_eq!(ended.outcome, Some(Outcome::Ok { text: format!("answered {turn}") }), "turn {turn}");
    }
    for (index, request) in first_requests(&rig, "lead").iter().enumerate() {
        let turn = index + 1;
        let read = body_texts(&request.body);
        let mode = if SWITCH[turn] { "mode: on\n" } else { "mode: off\n" };
        let says = [
            "name: lead\n",
            "team: default\n",
            "member: alice, ",
            "budget: no caps\n",
            "unread: none\n",
            "task: none\n",
            mode,
        ];
        check_says(&read, &says, &format!("turn {turn}"));
        assert!(
            read.contains("you start agents and teammates\n") && read.contains(&format!("| turn {turn}\n")),
            "{read}"
        );
        let entries = read.matches("[orchestration mode: on]").count();
        assert_eq!(entries, usize::from(SWITCH[turn]), "turn {turn}: {read}");
        assert!(
            !read.contains("[orchestration mode: off]") && !read.contains("still on]"),
            "turn {turn}: {read}"
        );
    }
    let session = session_of(&rig, &lead).await;
    let results = results_of(&rig, &lead).await;
    let refused =
        results.iter().filter(|text| text.contains("alice is already a member of the team")).count();
    assert_eq!(refused, HISTORIES, "a live teammate is never made again: {results:#?}");
    let roster = client(&rig).roster(&session).await.unwrap();
    assert_eq!((roster.members().count(), roster.generation("alice")), (2, 1));
}
