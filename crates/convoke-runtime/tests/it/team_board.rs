//! The board through the real runtime: which member claims what and when, what arrives with it, and what
//! becomes of a task that its holder leaves unfinished or takes to the grave.

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_journal::{Change, Changed};
use convoke_kernel::{BoardEvent, Claimant, LEAD, NewTask, Outcome, Task, TaskState};
use convoke_runtime::{Error, Stop, TeamClient};
use serde_json::{Value, json};

use crate::scripted_team::{MemberReply, call, text};
use crate::support::within;
use crate::team_play::{LEADS, Play, begins, create, heard, in_hand, spawn, update, works};
use crate::teams::rig;

/// The calls that write tasks with these further fields.
fn tasks(all: &[(&str, Value)]) -> Vec<(&'static str, Value)> {
    let each = |(subject, fields): &(&str, Value)| {
        let mut input = fields.clone();
        input["subject"] = json!(subject);
        ("task_create", input)
    };
    all.iter().map(each).collect()
}

fn member(name: &str, role: &str) -> (&'static str, Value) {
    ("spawn_teammate", json!({"name": name, "role": role, "prompt": format!("be {name}")}))
}

/// The subjects of the tasks that a member was given, in order.
fn given(play: &Play, name: &str) -> Vec<String> {
    let read = play.read(name);
    let subject =
        |line: &str| Some(line.strip_prefix("task: ")?.split_once(' ')?.1.split(" (#").next()?.to_owned());
    read.lines().filter_map(subject).collect()
}

/// What has happened to each task, in order.
async fn histories(play: &Play) -> Vec<(Task, Vec<BoardEvent>)> {
    let mut all = Vec::new();
    for task in play.board().await.tasks() {
        let history = play.client().task_history(&play.session, &task.id).await.unwrap();
        all.push((task.clone(), history.into_iter().map(|(_, event)| event).collect()));
    }
    all
}

fn is_done(task: &Task) -> bool {
    matches!(task.state, TaskState::Done { .. })
}

#[tokio::test]
async fn c20_w38_a_dependency_is_waited_for_and_finishing_it_hands_the_next_task_over_whole() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => {
            let second = json!({"description": "paint it\nall of it", "criteria": "it is green", "blocked_by": ["#1"], "priority": 9});
            let calls = tasks(&[("build", json!({})), ("paint", second)]);
            MemberReply::Calls(calls.into_iter().chain([spawn("alice")]).collect())
        }
        (LEAD, _) => text("noted"),
        _ => match in_hand(seen) {
            Some(task) => update(&task, "done", "it lies in build/out"),
            None => text("finished"),
        },
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    assert_eq!(given(&play, "alice"), ["build", "paint"], "what is blocked is not claimed, however urgent");
    let read = play.read("alice");
    for line in [
        "| paint it",
        "| all of it",
        "done when:",
        "| it is green",
        "| it lies in build/out",
        "written by: lead",
    ] {
        assert!(read.lines().any(|said| said == line), "{line} in {read}");
    }
    assert!(read.contains("It can go on now: "), "whoever finishes it is told what that sets free: {read}");
    assert!(play.board().await.tasks().iter().all(|task| is_done(task)));
}

#[tokio::test]
async fn c12_w36_tasks_are_claimed_by_priority_and_then_by_age() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => {
            let mut calls: Vec<_> = (0..11).map(|number| create(&format!("old {number}"))).collect();
            calls.extend(tasks(&[("soon", json!({"priority": 5})), ("late", json!({"priority": -1}))]));
            MemberReply::Calls(calls.into_iter().chain([spawn("alice")]).collect())
        }
        (LEAD, _) => text("noted"),
        _ => works(seen),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let old = (0..11).map(|number| format!("old {number}"));
    let expected: Vec<String> =
        ["soon".to_owned()].into_iter().chain(old).chain(["late".to_owned()]).collect();
    assert_eq!(given(&play, "alice"), expected);
}

#[tokio::test]
async fn w41_w37_a_task_goes_to_its_role_alone_and_what_nobody_can_do_is_left_over_when_the_session_ends() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => {
            let calls = tasks(&[
                ("test it", json!({"role": "tester"})),
                ("fly it", json!({"role": "pilot"})),
                ("land it", json!({"blocked_by": ["#2"]})),
                ("code it", json!({"role": "coder"})),
            ]);
            MemberReply::Calls(
                calls.into_iter().chain([member("alice", "coder"), member("bob", "tester")]).collect(),
            )
        }
        (LEAD, _) => text("noted"),
        _ => works(seen),
    })
    .await;
    let mut play = Play::of(rig).await;
    let ended = play.ended().await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    assert_eq!(
        (given(&play, "alice"), given(&play, "bob")),
        (vec!["code it".into()], vec!["test it".into()])
    );
    let board = play.board().await;
    let left: Vec<String> = board
        .unfinished()
        .iter()
        .map(|task| {
            format!("{}: {}", task.subject, board.stuck(task, &["coder", "tester"]).unwrap_or_default())
        })
        .collect();
    assert_eq!(left.len(), 2);
    assert!(left[0].contains("fly it") && left[0].contains("pilot"), "{left:?}");
    assert!(left[1].contains("land it") && left[1].contains("pilot"), "{left:?}");
}

#[tokio::test]
async fn w33_nobody_holds_two_tasks_and_what_cannot_be_claimed_is_refused_with_what_to_do() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![create("first"), create("second"), spawn("alice")]),
        (LEAD, _) => text("noted"),
        (_, 0) => call("claim_task", json!({"task": "#1"})),
        (_, 1) => call("claim_task", json!({"task": "#2"})),
        (_, 2) => update("#1", "done", "made"),
        (_, 3) => call("claim_task", json!({"task": "#1"})),
        _ => works(seen),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let read = play.read("alice");
    assert!(read.contains("alice already holds") && read.contains("no member holds two"), "{read}");
    assert!(read.contains("is done already (by alice): take another task"), "{read}");
    assert!(play.board().await.tasks().iter().all(|task| is_done(task) && task.attempts == 1));
}

#[tokio::test]
async fn w26_w27_a_task_that_is_left_unfinished_is_offered_back_twice_and_then_is_the_boards_again() {
    let rig = rig(|seen| match seen.who.as_str() {
        LEAD => begins(seen, vec![create("the work"), spawn("alice")]),
        _ => text("I leave it at that"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let read = play.read("alice");
    let count = |word: &str| read.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("[claimed t_"), count("[unfinished t_")), (1, 2), "{read}");
    let task = play.task(1).await;
    assert_eq!(
        (&task.state, task.given_up.as_deref()),
        (&TaskState::Pending, Some("alice")),
        "not given to it again"
    );
    assert_eq!(play.times(LEAD, "alice ended its work without finishing it"), 1);
}

#[tokio::test]
async fn w27_a_task_that_its_holder_gives_back_on_purpose_is_not_given_to_it_again() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) => begins(seen, vec![create("the work"), spawn("alice")]),
        (_, Some(task)) => update(&task, "pending", "a tester has to do this"),
        _ => text("I gave it back"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    assert_eq!(given(&play, "alice"), ["the work"], "{}", play.read("alice"));
    assert_eq!(play.task(1).await.state, TaskState::Pending);
}

#[tokio::test]
async fn w27_two_that_hand_a_task_to_each_other_come_to_an_end() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) => begins(seen, vec![create("the work"), spawn("alice"), spawn("bob")]),
        (_, Some(task)) => update(&task, "pending", "the other one has to do this"),
        _ => text("I gave it back"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let all = play.task(1).await.attempts as usize;
    let alice = given(&play, "alice").len();
    assert!(
        (2..=convoke_kernel::ATTEMPTS as usize).contains(&all) && alice < all,
        "{all} claims, {alice} of them alice's"
    );
}

#[tokio::test]
async fn w27_a_task_that_was_given_up_is_given_again_when_the_lead_says_more_about_it() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) if seen.last.contains("without finishing it") => {
            call("task_update", json!({"task": "#1", "description": "do it like this"}))
        }
        (LEAD, _) => begins(seen, vec![create("the work"), spawn("alice")]),
        (_, Some(task)) if seen.last.contains("| do it like this") => update(&task, "done", "now I see"),
        _ => text("I leave it at that"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let task = play.task(1).await;
    assert!(matches!(task.state, TaskState::Done { .. }), "{task:?}");
}

#[tokio::test]
async fn w27_a_task_that_one_gives_back_goes_to_another_that_is_free() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![create("the work"), spawn("alice")]),
        (LEAD, 1) => MemberReply::Calls(vec![spawn("bob")]),
        (LEAD, _) => text("noted"),
        ("bob", _) => works(seen),
        _ => text("I leave it at that"),
    })
    .await;
    let lead = rig.sim.hold(LEADS, 1, 0);
    let alice = rig.sim.hold("be alice", 1, 0);
    let mut play = Play::of(rig).await;
    within(alice.entered()).await;
    lead.release();
    // Bob rests by now: what he came to is with the lead, or on its way.
    play.until_roster(|roster| roster.member("bob").is_some()).await;
    let bob = play.member("bob").await.agent;
    play.until_event("bob", |event| matches!(event, convoke_kernel::Event::ExchangeClosed(_))).await;
    assert_eq!(play.board().await.held_by(&bob), None);
    alice.release();
    play.ended().await;
    let task = play.task(1).await;
    assert!(matches!(&task.state, TaskState::Done { name, .. } if name == "bob"), "{task:?}");
}

#[tokio::test]
async fn c19_w31_w32_several_that_claim_at_once_never_hold_the_same_task_and_each_is_done_once() {
    const NAMES: [&str; 5] = ["alice", "bob", "carl", "dora", "emil"];
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => {
            let work = (0..20).map(|number| create(&format!("task {number}")));
            MemberReply::Calls(work.chain(NAMES.map(spawn)).collect())
        }
        (LEAD, _) => text("noted"),
        _ => works(seen),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let mut done_by: BTreeMap<String, u32> = BTreeMap::new();
    for (task, history) in histories(&play).await {
        let kinds: Vec<&str> = history.iter().map(BoardEvent::kind).collect();
        assert_eq!(kinds, ["task_created", "task_claimed", "task_finished"], "{task:?}");
        let TaskState::Done { name, .. } = &task.state else { panic!("{task:?}") };
        *done_by.entry(name.clone()).or_default() += 1;
        let read: usize = NAMES.iter().map(|name| play.times(name, &format!("[claimed {}]", task.id))).sum();
        assert_eq!(read, 1, "handed over once");
    }
    assert!(done_by.len() > 1, "{done_by:?}");
    assert_eq!(done_by.values().sum::<u32>(), 20);
}

#[tokio::test]
async fn w35_a_claim_that_a_dead_script_left_behind_runs_out_and_its_late_write_is_refused() {
    let rig = rig(|seen| match seen.who.as_str() {
        LEAD => begins(seen, vec![spawn("alice")]),
        _ => works(seen),
    })
    .await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    play.until_member(LEAD, |lead| lead.waiting == 1).await;
    let client = play.client();
    let session = play.session.clone();
    let script = Claimant { name: "script".into(), agent: None, role: "tester".into() };
    // Only the script can have it at first, so that no member is quicker.
    let new = NewTask { subject: "the work".into(), role: Some("tester".into()), ..NewTask::default() };
    let task = client.add_task(&session, new, "person").await.unwrap();
    let held = client.claim(&session, &task.id, script.clone(), Duration::from_millis(300)).await.unwrap();
    let TaskState::Claimed { token, .. } = held.state else { panic!("{held:?}") };
    let anybody = convoke_kernel::TaskEdit { role: Some(String::new()), ..Default::default() };
    client.edit(&session, &task.id, anybody, "person").await.unwrap();
    play.until_done(1).await;
    let late = client.finish(&session, &task.id, script, Some(token), Ok("late".into())).await;
    let Err(Error::TeamRefused(why)) = late else { panic!("{late:?}") };
    assert!(why.contains("is done already (by alice)"), "{why}");
    hold.release();
    play.ended().await;
    let task = play.task(1).await;
    assert_eq!((task.attempts, task.result.as_deref()), (2, Some("alice did it")));
}

#[tokio::test]
async fn w35_a_holder_in_a_process_that_no_longer_renews_loses_its_task_and_its_late_write_is_refused() {
    let mut rig = rig(|seen| match seen.who.as_str() {
        LEAD => begins(seen, vec![spawn("alice"), spawn("bob")]),
        _ => works(seen),
    })
    .await;
    let late = rig.sim.hold("be alice", 1, 0);
    let quick = rig.live().await;
    // A process whose claims run out as soon as they are made, as those of one that is suspended do.
    rig.team.claim_ttl = Duration::from_millis(1);
    let slow = rig.live().await;
    let mut play = Play::by(rig, quick.clone()).await;
    play.ended().await;
    let task = NewTask { subject: "the work".into(), ..NewTask::default() };
    play.client().add_task(&play.session, task, "person").await.unwrap();
    let lead = play.lead.clone();
    let only = |name: &str| Some(vec![name.to_owned()]);
    let slow = tokio::spawn({
        let lead = lead.clone();
        let alice = only("alice");
        async move { slow.host(&lead, alice, Stop::never(), None).await }
    });
    within(late.entered()).await;
    let quick = tokio::spawn(async move { quick.host(&lead, only("bob"), Stop::never(), None).await });
    play.until_done(1).await;
    late.release();
    within(slow).await.unwrap().unwrap();
    within(quick).await.unwrap().unwrap();
    let task = play.task(1).await;
    assert_eq!((task.result.as_deref(), task.attempts), (Some("bob did it"), 2));
    let read = play.read("alice");
    assert!(read.contains("is done already (by bob), and its result stays"), "{read}");
}

#[tokio::test]
async fn w34_a_board_that_cannot_be_read_for_a_while_is_not_an_empty_one() {
    let rig = rig(|seen| match seen.who.as_str() {
        LEAD => begins(seen, vec![spawn("alice")]),
        _ => works(seen),
    })
    .await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    play.until_member(LEAD, |lead| lead.waiting == 1).await;
    let task = NewTask { subject: "the work".into(), role: Some("nobody's".into()), ..NewTask::default() };
    play.client().add_task(&play.session, task, "person").await.unwrap();
    let [_, stream, _] = TeamClient::streams(&play.session);
    let good = play.rig.journal.shared(&stream).await.unwrap().unwrap();
    // What a store that answers nonsense looks like; an event of no meaning makes every process look.
    let write = |state: String, event: &str| {
        let events = vec![event.to_owned()];
        Change::new(move |_| Ok(Changed { state: state.clone(), events: events.clone() }))
    };
    let at = play.rig.clock.now();
    let nothing = "{\"v\":1,\"type\":\"task_renewed\",\"tasks\":[],\"until\":0}";
    play.rig.journal.update(&stream, at, &write("no board".into(), nothing)).await.unwrap();
    assert!(play.client().board(&play.session).await.is_err());
    play.send("alice", "a letter while the board is away").await;
    play.until_asked("alice", 1).await;
    let mut mended: Value = serde_json::from_str(&good).unwrap();
    // The two events that have no meaning.
    mended["count"] = json!(mended["count"].as_u64().unwrap() + 2);
    play.rig.journal.update(&stream, at, &write(mended.to_string(), nothing)).await.unwrap();
    let anybody = convoke_kernel::TaskEdit { role: Some(String::new()), ..Default::default() };
    let task = play.task(1).await;
    play.client().edit(&play.session, &task.id, anybody, "person").await.unwrap();
    play.until_done(1).await;
    hold.release();
    play.ended().await;
    assert_eq!(play.times("alice", "| a letter while the board is away"), 1);
    assert!(heard(play.asked("alice").last().unwrap()).contains("[claimed t_"));
}

#[tokio::test]
async fn w37_what_waits_for_a_failed_task_is_left_over_and_goes_on_when_that_is_tried_again() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) if seen.replies == 0 => {
            let calls = tasks(&[("build", json!({})), ("paint", json!({"blocked_by": ["#1"]}))]);
            MemberReply::Calls(calls.into_iter().chain([spawn("alice")]).collect())
        }
        (LEAD, _) if seen.last.contains("| it failed") => {
            call("task_update", json!({"task": "#1", "status": "pending"}))
        }
        (LEAD, _) => text("noted"),
        (_, Some(task))
            if !seen.last.contains("attempts: this is claim") && seen.last.contains(" build (#1)") =>
        {
            let first = heard(seen.request).matches("[claimed t_").count() == 1;
            update(&task, if first { "failed" } else { "done" }, "as it came")
        }
        (_, Some(task)) => update(&task, "done", "made"),
        _ if seen.results.iter().any(|result| result.contains("failed")) => text("it failed"),
        _ => text("finished"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    assert_eq!(given(&play, "alice"), ["build", "build", "paint"], "{}", play.read("alice"));
    assert!(play.board().await.tasks().iter().all(|task| is_done(task)));
}
