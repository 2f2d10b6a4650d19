//! The life of teammates through the real runtime: how they begin, rest, sleep, fail, outlive their process,
//! and when a session with a team is over.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use convoke_kernel::{
    Caps, Event, LEAD, Member, MemberState, NewTask, Outcome, Standing, TEAMMATE_TURNS, TaskState,
};
use convoke_runtime::{Crash, DriveMode, Moment, Notice, Stop};
use convoke_sim::{Fault, FaultKind};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::scripted_team::{MemberReply, Seen, call, text};
use crate::support::within;
use crate::team_play::{LEADS, Play, bash, begins, create, heard, in_hand, spawn, update, works};
use crate::teams::rig;

fn is_asleep(member: &Member) -> bool {
    member.asleep.is_some()
}

fn has_failed(member: &Member) -> bool {
    matches!(member.standing, Standing::Failed { .. })
}

/// A lead that makes alice, who does what she is given.
fn alice_works(seen: &Seen<'_>) -> MemberReply {
    if seen.who == LEAD { begins(seen, vec![spawn("alice")]) } else { works(seen) }
}

async fn state(play: &Play, name: &str) -> MemberState {
    let rows = play.client().members(&play.session).await.unwrap();
    rows.iter().find(|row| row.member.name == name).unwrap().state
}

async fn add(play: &Play, subject: &str) {
    let task = NewTask { subject: subject.into(), ..NewTask::default() };
    play.client().add_task(&play.session, task, "person").await.unwrap();
}

#[tokio::test]
async fn w6_w17_a_live_name_and_a_name_that_is_none_are_refused_and_make_nobody() {
    let named =
        |name: &str| ("spawn_teammate", json!({"name": name, "role": "coder", "prompt": "be another"}));
    let rig = rig(move |seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![
            spawn("alice"),
            named("alice"),
            named("../bob"),
            named("lead"),
            named("Bob"),
        ]),
        (LEAD, _) if seen.last.contains("nothing to do") && seen.replies < 3 => {
            MemberReply::Calls(vec![named("alice")])
        }
        (LEAD, _) => text("noted"),
        _ => works(seen),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let read = play.read(LEAD);
    assert_eq!(read.matches("Spawned 'alice'").count(), 1, "{read}");
    assert_eq!(read.matches("Not spawned: alice is already a member of the team").count(), 2, "{read}");
    assert_eq!(read.matches("Not spawned: ").count(), 5, "{read}");
    assert_eq!(play.roster().await.members().count(), 2);
    assert_eq!(play.asked("alice").len(), 1, "one agent has the name");
}

#[tokio::test]
async fn b2_b14_c1_c7_c16_what_a_member_does_is_seen_while_it_does_it() {
    let rig = rig(alice_works).await;
    let lead = rig.sim.hold(LEADS, 1, 0);
    let first = rig.sim.hold("be alice", 0, 0);
    let second = rig.sim.hold("be alice", 1, 0);
    let runtime = rig.live().await;
    let mut play = Play::by(rig, runtime).await;
    within(first.entered()).await;
    assert_eq!(state(&play, "alice").await, MemberState::Working);
    first.release();
    play.until_member(LEAD, |lead| lead.waiting == 1).await;
    assert_eq!(state(&play, "alice").await, MemberState::Idle);
    play.send("alice", "go on").await;
    within(second.entered()).await;
    assert_eq!(state(&play, "alice").await, MemberState::Working);
    assert_eq!(state(&play, LEAD).await, MemberState::Working);
    second.release();
    lead.release();
    play.ended().await;
    assert_eq!(
        (state(&play, "alice").await, state(&play, LEAD).await),
        (MemberState::Idle, MemberState::Idle)
    );
}

/// Dies when something like this was recorded, and stays dead; the returned handle is notified when it does.
fn dies_after(fatal: impl Fn(&Event) -> bool + Send + Sync + 'static) -> (Crash, Arc<Notify>) {
    let dead = Arc::new(AtomicBool::new(false));
    let waker = Arc::new(Notify::new());
    let woken = Arc::clone(&waker);
    let crash = Crash::when(move |moment, events| {
        if moment == Moment::AfterCommit && events.iter().any(&fatal) {
            dead.store(true, Ordering::SeqCst);
            woken.notify_one();
        }
        dead.load(Ordering::SeqCst)
    });
    (crash, waker)
}

#[tokio::test]
async fn w15_w18_w20_after_a_crash_the_team_is_there_with_its_identity_its_history_its_task_and_its_mail() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) => begins(seen, vec![create("the work"), spawn("alice")]),
        (_, Some(_)) => call("task_get", json!({"task": "#1"})),
        _ if seen.results.iter().any(|result| result.contains("the work")) && seen.replies == 2 => {
            update("#1", "done", "made after all")
        }
        _ => text("finished"),
    })
    .await;
    let (crash, died) =
        dies_after(|event| matches!(event, Event::ToolStarted(started) if started.name == "task_get"));
    let runtime = rig.life(Some(crash)).await;
    let play = Play::by(rig, runtime).await;
    within(died.notified()).await;
    let play = play.killed().await;
    let before = play.member("alice").await;
    assert_eq!(state(&play, "alice").await, MemberState::Waiting, "nobody drives it, whatever it was doing");
    assert!(matches!(play.task(1).await.state, TaskState::Claimed { .. }));
    play.send("alice", "written in between").await;
    let mut play = play.resumed().await;
    play.ended().await;
    let after = play.member("alice").await;
    assert_eq!((after.agent, play.roster().await.generation("alice")), (before.agent, 1));
    let task = play.task(1).await;
    assert!(matches!(task.state, TaskState::Done { .. }), "{task:?}");
    assert_eq!((task.result.as_deref(), task.attempts), (Some("made after all"), 1));
    let read = play.read("alice");
    assert!(read.starts_with("be alice") && read.contains("[who you are]"), "{read}");
    assert_eq!(read.matches("| written in between").count(), 1, "{read}");
    assert_eq!(read.matches("[claimed t_").count(), 1, "{read}");
}

#[tokio::test]
async fn w1_a_letter_that_was_just_put_into_the_history_survives_the_process_that_did_so() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, _) => begins(seen, vec![spawn("alice")]),
        (_, 0) => call("list_teammates", json!({})),
        _ => text("done"),
    })
    .await;
    let hold = rig.sim.hold("be alice", 0, 0);
    let (crash, died) = dies_after(|event| matches!(event, Event::MailDelivered(_)));
    let runtime = rig.life(Some(crash)).await;
    let play = Play::by(rig, runtime).await;
    within(hold.entered()).await;
    play.send("alice", "read me once").await;
    hold.release();
    within(died.notified()).await;
    let mut play = play.killed().await.resumed().await;
    play.ended().await;
    assert_eq!((play.times("alice", "| read me once"), play.member("alice").await.waiting), (1, 0));
}

#[tokio::test]
async fn w18_a_team_that_rested_when_its_process_ended_is_there_for_the_next_one_and_nobody_is_made_twice() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.last.contains("go on")) {
        (LEAD, true) => {
            MemberReply::Calls(vec![("send_message", json!({"to": "alice", "text": "the next thing"}))])
        }
        _ => alice_works(seen),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let before = play.member("alice").await;
    let runtime = play.rig.life(None).await;
    runtime.say(&play.lead, "more", "go on with it").await.unwrap();
    add(&play, "the later work").await;
    let mut play = play.resumed().await;
    play.ended().await;
    assert_eq!(play.member("alice").await.agent, before.agent);
    let read = play.read("alice");
    assert!(read.starts_with("be alice") && read.contains("[who you are]"), "{read}");
    assert_eq!(
        (read.matches("| the next thing").count(), read.matches("[claimed t_").count()),
        (1, 1),
        "{read}"
    );
    assert!(matches!(play.task(1).await.state, TaskState::Done { .. }));
    assert!(play.read(LEAD).contains("member: alice"), "the lead is told whom it has: {}", play.read(LEAD));
}

#[tokio::test]
async fn w16_one_whose_requests_fail_is_failed_with_a_reason_its_task_goes_back_and_a_letter_wakes_it() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, _) => begins(seen, vec![create("the work"), spawn("alice")]),
        _ => works(seen),
    })
    .await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("no such model".into())).on("be alice").at(1));
    let mut play = Play::of(rig).await;
    play.until_member("alice", has_failed).await;
    let Standing::Failed { why, .. } = play.member("alice").await.standing else { panic!("it has failed") };
    assert!(why.contains("no such model"), "{why}");
    assert_eq!(play.task(1).await.state, TaskState::Pending, "its task is back on the board");
    play.send("alice", "try again").await;
    play.until_done(1).await;
    hold.release();
    play.ended().await;
    assert_eq!(play.member("alice").await.standing, Standing::Live);
    let read = play.read(LEAD);
    assert_eq!(read.matches("from alice: its work failed, sent by Convoke").count(), 1, "{read}");
    assert!(read.contains("no such model"), "{read}");
    play.read_once_in_order("alice", &["| try again".to_owned(), "[claimed t_".to_owned()]);
}

/// Whether a process works in this directory.
fn shell_in(dir: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut places = processes.filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok());
    places.any(|place| place == dir)
}

#[tokio::test]
async fn c15_w14_w25_after_the_idle_limit_it_uses_nothing_and_wakes_for_mail_and_for_work() {
    let mut rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, _) => begins(seen, vec![spawn("alice")]),
        (_, 0) => MemberReply::Calls(vec![bash("echo at work")]),
        _ => works(seen),
    })
    .await;
    rig.team.idle = Duration::from_millis(30);
    let lead = rig.sim.hold(LEADS, 1, 0);
    let alice = rig.sim.hold("be alice", 1, 0);
    let mut play = Play::of(rig).await;
    within(alice.entered()).await;
    let dir = play.rig.work.path().canonicalize().unwrap();
    assert!(shell_in(&dir), "her shell waits for the next command");
    alice.release();
    play.until_member("alice", is_asleep).await;
    // The end of a process is not announced, so it is looked for.
    let until_gone = async {
        while shell_in(&dir) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(until_gone).await;
    let agent = play.member("alice").await.agent;
    let asked = play.asked("alice").len();
    assert_eq!(asked, 2, "sleeping asks nothing of the model");
    play.send("alice", "wake up").await;
    play.until_asked("alice", 3).await;
    play.until_roster(|roster| {
        roster.member("alice").is_some_and(|alice| alice.waiting == 0 && is_asleep(alice))
    })
    .await;
    add(&play, "the late work").await;
    play.until_done(1).await;
    lead.release();
    play.ended().await;
    let alice = play.member("alice").await;
    assert_eq!((alice.agent, alice.standing), (agent, Standing::Live));
    play.read_once_in_order("alice", &["| wake up".to_owned(), "[claimed t_".to_owned()]);
}

/// Another command each time: an agent that only does the same again is stuck long before its turns are used
/// up.
fn looks_on(seen: &Seen) -> MemberReply {
    let turn = format!("echo turn {}", seen.replies);
    MemberReply::Calls(vec![("task_list", json!({})), bash(&turn)])
}

#[tokio::test]
async fn c2_w26_the_limit_of_turns_is_told_to_the_lead_and_the_task_is_offered_back() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) => begins(seen, vec![create("the work"), spawn("alice")]),
        (_, Some(task)) if seen.last.contains("[unfinished") => update(&task, "done", "made at last"),
        _ if seen.last.contains("this is the last reply") => text("that is how far I came"),
        (_, Some(_)) => looks_on(seen),
        _ if seen.results.iter().any(|result| result.contains("1 task, ")) => looks_on(seen),
        _ => text("finished"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    // The prompt, the turns of the task and the one in which it hands back, and two for what was offered
    // back.
    assert_eq!(play.asked("alice").len() as u32, 1 + TEAMMATE_TURNS + 1 + 2);
    let read = play.read(LEAD);
    assert_eq!(read.matches("from alice: its work failed, sent by Convoke").count(), 1, "{read}");
    assert!(
        read.contains("the turn limit was reached") && read.contains("| that is how far I came"),
        "{read}"
    );
    let task = play.task(1).await;
    assert_eq!((task.result.as_deref(), task.attempts), (Some("made at last"), 1));
    assert_eq!(
        play.member("alice").await.standing,
        Standing::Live,
        "it has not failed, it only came to a limit"
    );
}

#[tokio::test]
async fn c5_c6_w22_idle_beside_other_calls_leaves_no_call_without_a_result() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, _) => begins(seen, vec![spawn("alice")]),
        (_, 0) => MemberReply::Calls(vec![
            ("list_teammates", json!({})),
            ("idle", json!({})),
            bash("echo after the idle call"),
        ]),
        _ => text("awake"),
    })
    .await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    play.until_event("alice", |event| matches!(event, Event::ExchangeClosed(_))).await;
    assert_eq!(play.member(LEAD).await.waiting, 0, "going idle without a word is no letter");
    play.send("alice", "wake up").await;
    play.until_asked("alice", 2).await;
    hold.release();
    play.ended().await;
    // That the next request is legal, and every call has its result, is checked by the simulator.
    play.read_once_in_order("alice", &["after the idle call".to_owned(), "| wake up".to_owned()]);
}

#[tokio::test]
async fn a_session_with_failed_and_stopped_members_stuck_tasks_and_unread_mail_comes_to_its_end() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => {
            let stuck = ("task_create", json!({"subject": "fly", "role": "pilot"}));
            MemberReply::Calls(vec![stuck, spawn("alice"), spawn("bob"), spawn("carl")])
        }
        (LEAD, _) => text("noted"),
        _ => works(seen),
    })
    .await;
    rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("no".into())).on("be alice").times(1_000));
    let lead = rig.sim.hold(LEADS, 1, 0);
    let bob = rig.sim.hold("be bob", 0, 0);
    let mut play = Play::of(rig).await;
    within(bob.entered()).await;
    play.until_member("alice", has_failed).await;
    play.send("bob", "never read").await;
    play.client().ask_to_stop(&play.session, &play.lead, "bob", Duration::from_millis(50)).await.unwrap();
    play.until_stopped("bob").await;
    bob.release();
    lead.release();
    let ended = play.ended().await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    assert!(has_failed(&play.member("alice").await));
    assert_eq!(play.board().await.unfinished().len(), 1);
    assert_eq!(play.client().waiting(&play.session, "bob").await.unwrap()[0].text, "never read");
    assert_eq!(play.member("carl").await.standing, Standing::Live);
}

#[tokio::test]
async fn a_session_is_not_over_before_everything_that_its_team_can_do_is_done() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) => begins(seen, vec![create("first"), spawn("alice")]),
        // What is written while the lead has long said its last word is done, too.
        (_, Some(task)) if seen.last.contains(" first (#1)") => MemberReply::Calls(vec![
            create("second"),
            ("task_update", json!({"task": task, "status": "done", "result": "x"})),
        ]),
        _ => works(seen),
    })
    .await;
    let hold = rig.sim.hold("be alice", 3, 0);
    let mut play = Play::of(rig).await;
    within(hold.entered()).await;
    hold.release();
    play.ended().await;
    assert_eq!(play.board().await.unfinished(), Vec::<&convoke_kernel::Task>::new());
    let roster = play.roster().await;
    assert!(roster.members().all(|member| member.waiting == 0), "{roster:?}");
}

#[tokio::test]
async fn a_teammate_beyond_the_cap_of_agents_is_refused_and_the_others_work() {
    let mut rig = rig(|seen| match seen.who.as_str() {
        LEAD => begins(seen, vec![spawn("alice"), spawn("bob")]),
        _ => works(seen),
    })
    .await;
    rig.caps = Caps { agents: Some(1), ..Caps::default() };
    let mut play = Play::of(rig).await;
    play.ended().await;
    let read = play.read(LEAD);
    assert!(read.contains("Spawned 'alice'") && !read.contains("Spawned 'bob'"), "{read}");
    assert!(read.contains("Not done: ") && read.contains("agent"), "{read}");
    assert!(play.roster().await.member("bob").is_none());
    assert_eq!((play.asked("alice").len(), play.asked("bob").len()), (1, 0));
}

#[tokio::test]
async fn a_budget_that_runs_out_makes_teammates_hand_back_and_ends_the_session_within_it() {
    let mut rig = rig(|seen| match seen.who.as_str() {
        _ if seen.last.contains("this is the last reply") => text("that is how far I came"),
        LEAD => begins(seen, vec![spawn("alice"), spawn("bob")]),
        // It would go on for ever, a long result each time.
        _ => MemberReply::Calls(vec![bash("seq 1 600")]),
    })
    .await;
    rig.caps = Caps { tokens: Some(400_000), ..Caps::default() };
    let mut play = Play::of(rig).await;
    play.ended().await;
    let ledger = play.rig.life(None).await.ledger(&play.session).await.unwrap();
    assert!(ledger.spent().tokens <= 400_000, "{:?}", ledger.spent());
    assert_eq!(ledger.held().tokens, 0, "nobody holds anything back when all is over");
    // One that the budget never let speak has nothing to hand back.
    let spoke: Vec<&str> = ["alice", "bob"].into_iter().filter(|name| !play.asked(name).is_empty()).collect();
    assert!(!spoke.is_empty());
    for name in &spoke {
        let last = play.read(name);
        assert!(last.contains("this is the last reply"), "{name} was asked for what it has: {last}");
    }
    let read: Vec<_> = play.client().read_letters(&play.session, LEAD).await.unwrap();
    let waiting = play.client().waiting(&play.session, LEAD).await.unwrap();
    let letters = read.into_iter().map(|(_, letter)| letter).chain(waiting);
    let handed = letters.filter(|letter| letter.text.contains("that is how far I came")).count();
    assert_eq!(handed, spoke.len(), "what they had is with the lead, read or not");
}

#[tokio::test]
async fn a_budget_that_runs_out_ends_the_session_also_with_work_on_the_board() {
    let mut rig = rig(|seen| match seen.who.as_str() {
        _ if seen.last.contains("this is the last reply") => text("that is how far I came"),
        LEAD => begins(
            seen,
            vec![create("first"), create("second"), create("third"), spawn("alice"), spawn("bob")],
        ),
        _ => MemberReply::Calls(vec![bash("seq 1 600")]),
    })
    .await;
    rig.caps = Caps { tokens: Some(400_000), ..Caps::default() };
    let mut play = Play::of(rig).await;
    let ended = play.ended().await;
    let ledger = play.rig.life(None).await.ledger(&play.session).await.unwrap();
    assert!(ledger.spent().tokens <= 400_000, "{:?}", ledger.spent());
    let board = play.board().await;
    // Whether the lead or a holder ran dry first, nothing counts as done and nothing is left unsaid.
    assert_eq!(board.unfinished().len(), 3, "{board:?}");
    for task in board.unfinished() {
        assert!(ended.left.iter().any(|left| left.contains(task.id.as_str())), "{:?}", ended.left);
    }
}

#[tokio::test]
async fn w30_nothing_of_a_team_goes_on_when_whoever_drives_its_lead_gives_up() {
    let mut rig = rig(alice_works).await;
    rig.lost_replies = true;
    let hold = rig.sim.hold("be alice", 0, 0);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), LEADS).await.unwrap();
    let (watcher, mut notices) = mpsc::unbounded_channel::<Notice>();
    let driven =
        tokio::spawn(async move { runtime.drive(&lead, DriveMode::New, Stop::never(), Some(watcher)).await });
    within(hold.entered()).await;
    driven.abort();
    let _ = driven.await;
    // What is left of the session could still tell something.
    within(async { while notices.recv().await.is_some() {} }).await;
    assert!(notices.is_closed());
}

#[tokio::test]
async fn w16_a_teammate_whose_history_cannot_be_read_does_not_hold_the_session_up_for_ever() {
    let rig = rig(alice_works).await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    play.until_member(LEAD, |lead| lead.waiting == 1).await;
    hold.release();
    play.ended().await;
    let agent = play.member("alice").await.agent;
    play.rig.append_raw(&agent, "{\"v\":1,\"type\":\"something_new\"}").await;
    play.send("alice", "are you there?").await;
    let mut play = play.resumed().await;
    let over = play.over().await;
    let told = match over {
        Ok(_) => has_failed(&play.member("alice").await),
        Err(error) => error.to_string().contains(agent.as_str()),
    };
    assert!(told, "somebody is told whose history it is");
    assert_eq!(heard(&play.asked("alice")[0]), "be alice");
}
