//! The two requests that are answered: that a teammate stops, and that a plan is approved. Both are durable,
//! and the runtime enforces both: neither rests on the good will of a member.

use std::time::Duration;

use convoke_kernel::{LEAD, RequestState, Standing, TaskState};
use serde_json::{Value, json};

use crate::scripted_team::{MemberReply, Seen, call, text};
use crate::support::{Rig, within};
use crate::team_play::{LEADS, Play, bash, begins, create, heard, in_hand, spawn, update, works};
use crate::teams::rig;

const MINUTE: Duration = Duration::from_secs(60);

fn stops(member: &convoke_kernel::Member) -> bool {
    matches!(member.standing, Standing::Stopping { .. })
}

#[tokio::test]
async fn w23_one_at_rest_that_is_asked_to_stop_stops_without_a_model_call_and_the_lead_is_told() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![spawn("alice")]),
        (LEAD, _) if seen.last.contains("| at rest") => call("request_shutdown", json!({"name": "alice"})),
        (LEAD, _) => text("noted"),
        _ => text("at rest"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    assert_eq!(play.asked("alice").len(), 1);
    assert!(matches!(play.member("alice").await.standing, Standing::Stopped { .. }));
    assert_eq!(play.times(LEAD, "alice has stopped"), 1, "{}", play.read(LEAD));
    assert!(play.read(LEAD).contains("from alice: it agrees to stop"), "{}", play.read(LEAD));
}

/// A lead that writes a task, makes alice, and asks her to stop with its second reply; alice looks at the
/// board when she gets her task.
fn asked_while_working(seen: &Seen<'_>, answers: impl Fn(&Seen<'_>) -> MemberReply) -> MemberReply {
    match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![create("the work"), spawn("alice")]),
        (LEAD, 1) => call("request_shutdown", json!({"name": "alice", "reason": "the day is over"})),
        (LEAD, _) => text("noted"),
        (_, 0) => text("ready"),
        (_, 1) => call("task_list", json!({})),
        _ => answers(seen),
    }
}

/// Alice is asked to stop while she is at the work that she has claimed.
async fn asked(rig: Rig) -> Play {
    let lead = rig.sim.hold(LEADS, 1, 0);
    let alice = rig.sim.hold("be alice", 1, 0);
    let play = Play::of(rig).await;
    within(alice.entered()).await;
    lead.release();
    play.until_member("alice", stops).await;
    alice.release();
    play
}

#[tokio::test]
async fn c4_w24_one_that_works_reads_the_request_at_the_boundary_finishes_and_agrees() {
    let rig = rig(|seen| {
        asked_while_working(seen, |seen| match seen.replies {
            2 => update("#1", "done", "it is done"),
            3 => call("answer_shutdown", json!({"approve": true, "reason": "all is done"})),
            _ => text("my last words"),
        })
    })
    .await;
    let mut play = asked(rig).await;
    play.ended().await;
    let second = heard(&play.asked("alice")[2]);
    assert!(second.contains("| the day is over") && second.contains("a request that you stop"), "{second}");
    assert!(matches!(play.task(1).await.state, TaskState::Done { .. }));
    assert!(matches!(play.member("alice").await.standing, Standing::Stopped { .. }));
    for part in ["from alice: it agrees to stop", "| all is done", "| my last words", "alice has stopped"] {
        assert_eq!(play.times(LEAD, part), 1, "{part} in {}", play.read(LEAD));
    }
    assert!(!play.read(LEAD).contains("back on the board"));
}

#[tokio::test]
async fn w24_one_that_refuses_goes_on_and_the_lead_is_told_why() {
    let rig = rig(|seen| {
        asked_while_working(seen, |seen| match seen.replies {
            2 => call("answer_shutdown", json!({"approve": false, "reason": "one more hour"})),
            3 => update("#1", "done", "it is done"),
            _ => text("finished"),
        })
    })
    .await;
    let mut play = asked(rig).await;
    play.ended().await;
    assert_eq!(play.member("alice").await.standing, Standing::Live);
    assert!(matches!(play.task(1).await.state, TaskState::Done { .. }));
    assert_eq!(play.times(LEAD, "from alice: it does not stop"), 1, "{}", play.read(LEAD));
    assert_eq!(play.times(LEAD, "| one more hour"), 1);
}

#[tokio::test]
async fn w24_one_that_ends_its_work_without_an_answer_is_taken_at_its_word_and_its_task_goes_back() {
    let rig = rig(|seen| asked_while_working(seen, |_| text("I did not hear that"))).await;
    let mut play = asked(rig).await;
    play.ended().await;
    assert!(matches!(play.member("alice").await.standing, Standing::Stopped { .. }));
    assert_eq!(play.task(1).await.state, TaskState::Pending);
    assert_eq!(play.times(LEAD, "is back on the board"), 1, "{}", play.read(LEAD));
}

/// Alice claims a task and runs a command for it that takes longer than any test waits. If the lead hears
/// that she has stopped, it makes her once more.
fn ignores(seen: &Seen<'_>, again: bool) -> MemberReply {
    match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![create("the work"), spawn("alice")]),
        (LEAD, _) if again && seen.last.contains("| alice has stopped") => {
            let prompt = "be another alice";
            call("spawn_teammate", json!({"name": "alice", "role": "tester", "prompt": prompt}))
        }
        (LEAD, _) => text("noted"),
        _ => match in_hand(seen) {
            Some(_) if !heard(seen.request).starts_with("be another") => {
                MemberReply::Calls(vec![bash("sleep 110")])
            }
            _ => works(seen),
        },
    }
}

async fn ignored(again: bool) -> Play {
    let mut rig = rig(move |seen| ignores(seen, again)).await;
    rig.limits.bash_timeout_ms = 115_000;
    let play = Play::of(rig).await;
    play.until_board(|board| {
        board.tasks().iter().any(|task| matches!(task.state, TaskState::Claimed { .. }))
    })
    .await;
    play.until_event("alice", |event| matches!(event, convoke_kernel::Event::ToolStarted(_))).await;
    play.send("alice", "old mail").await;
    let patience = Duration::from_millis(100);
    play.client().ask_to_stop(&play.session, &play.lead, "alice", patience).await.unwrap();
    // By then there may be another of that name.
    let over = |member: &convoke_kernel::Member| matches!(member.standing, Standing::Stopped { .. });
    play.until_roster(|roster| roster.generation("alice") == 2 || roster.member("alice").is_some_and(over))
        .await;
    play
}

#[tokio::test]
async fn w30_one_that_ignores_the_request_is_cut_off_at_the_deadline_its_task_goes_back_and_the_lead_is_told()
{
    let mut play = ignored(false).await;
    play.ended().await;
    let Standing::Stopped { why, .. } = play.member("alice").await.standing else { panic!("it has stopped") };
    assert_eq!(why, "it did not answer in time");
    assert_eq!(play.task(1).await.state, TaskState::Pending);
    let read = play.read(LEAD);
    for part in ["alice has stopped: it did not answer in time", "is back on the board", "not read"] {
        assert_eq!(read.matches(part).count(), 1, "{part} in {read}");
    }
    assert!(!read.contains("it agrees to stop"), "{read}");
}

#[tokio::test]
async fn w24_w17_one_that_gets_the_name_of_one_that_has_stopped_gets_none_of_its_mail() {
    let mut play = ignored(true).await;
    play.ended().await;
    let alice = play.member("alice").await;
    assert_eq!((alice.role.as_str(), &alice.standing, alice.waiting), ("tester", &Standing::Live, 0));
    assert_eq!(play.roster().await.generation("alice"), 2);
    let read = play.read("alice");
    assert!(
        read.starts_with("be another alice") && !read.contains("old mail") && !read.contains("[mail]"),
        "{read}"
    );
}

#[tokio::test]
async fn w30_a_person_can_stop_one_at_rest_from_outside() {
    let rig =
        rig(|seen| if seen.who == LEAD { begins(seen, vec![spawn("alice")]) } else { text("ready") }).await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    play.until_member(LEAD, |lead| lead.waiting == 1).await;
    let request = play.client().ask_to_stop(&play.session, &play.lead, "alice", MINUTE).await.unwrap();
    play.until_stopped("alice").await;
    assert_eq!(play.roster().await.request(&request).unwrap().state, RequestState::Approved);
    hold.release();
    play.ended().await;
    assert_eq!((play.asked("alice").len(), play.times(LEAD, "alice has stopped")), (1, 1));
}

#[tokio::test]
async fn w24_one_that_is_asked_to_stop_reads_what_else_waits_before_it_does() {
    let rig =
        rig(|seen| if seen.who == LEAD { begins(seen, vec![spawn("alice")]) } else { text("heard") }).await;
    let hold = rig.sim.hold("be alice", 0, 0);
    let mut play = Play::of(rig).await;
    within(hold.entered()).await;
    play.send("alice", "before you go").await;
    play.client().ask_to_stop(&play.session, &play.lead, "alice", MINUTE).await.unwrap();
    hold.release();
    play.ended().await;
    assert!(matches!(play.member("alice").await.standing, Standing::Stopped { .. }));
    play.read_once_in_order("alice", &["| before you go".to_owned(), "a request that you stop".to_owned()]);
    assert!(!play.read(LEAD).contains("not read"), "{}", play.read(LEAD));
}

fn edit(path: &str) -> (&'static str, Value) {
    ("str_replace_based_edit_tool", json!({"command": "create", "path": path, "file_text": "x"}))
}

fn view(path: &str) -> (&'static str, Value) {
    ("str_replace_based_edit_tool", json!({"command": "view", "path": path}))
}

fn planner(name: &str) -> (&'static str, Value) {
    let prompt = format!("be {name}");
    ("spawn_teammate", json!({"name": name, "role": "coder", "prompt": prompt, "require_plan": true}))
}

/// Answers the plans that stand in a letter: those that say so are good.
fn reviews(seen: &Seen<'_>) -> Option<MemberReply> {
    let waits = seen.last.contains("a plan that waits for your approval");
    let approve = seen.last.contains("| a good plan");
    let request: String = seen.last.split("request m_").nth(1).unwrap_or_default().chars().take(16).collect();
    let review = json!({"request": format!("m_{request}"), "approve": approve, "feedback": if approve { "" } else { "make it smaller" }});
    waits.then(|| call("review_plan", review))
}

#[tokio::test]
async fn until_its_plan_is_approved_a_teammate_reads_and_writes_nothing_and_a_better_plan_sets_it_free() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![planner("alice")]),
        (LEAD, _) => reviews(seen).unwrap_or_else(|| text("noted")),
        (_, 0) => MemberReply::Calls(vec![bash("touch early"), edit("early.txt"), view("there.txt")]),
        (_, 1) => call("submit_plan", json!({"plan": "a bad plan"})),
        (_, 2) => call("idle", json!({})),
        (_, 3) => MemberReply::Calls(vec![bash("touch early")]),
        (_, 4) => call("submit_plan", json!({"plan": "a good plan"})),
        (_, 5) => call("idle", json!({})),
        (_, 6) => MemberReply::Calls(vec![bash("touch late"), edit("late.txt")]),
        _ => text("finished"),
    })
    .await;
    std::fs::write(rig.work.path().join("there.txt"), "what is there").unwrap();
    let mut play = Play::of(rig).await;
    play.ended().await;
    let read = play.read("alice");
    assert_eq!(read.matches("Not run: your plan has not been approved").count(), 3, "{read}");
    assert!(read.contains("what is there"), "{read}");
    assert!(read.contains("your plan is not approved") && read.contains("| make it smaller"), "{read}");
    assert!(read.contains("your plan is approved"), "{read}");
    let there = |name: &str| play.rig.work.path().join(name).exists();
    assert_eq!(["early", "early.txt", "late", "late.txt"].map(there), [false, false, true, true]);
}

#[tokio::test]
async fn an_approval_is_bound_to_its_task_and_void_for_the_next_one() {
    let rig = rig(|seen| match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) if seen.replies == 0 => {
            MemberReply::Calls(vec![create("first"), create("second"), planner("alice")])
        }
        (LEAD, _) => reviews(seen).unwrap_or_else(|| text("noted")),
        // Whatever it is, it is tried without a plan first.
        (_, Some(task)) => MemberReply::Calls(vec![
            bash(&format!("touch early-{task}")),
            ("task_get", json!({"task": task})),
        ]),
        _ if seen.results.iter().any(|result| result.contains("your plan has not been approved")) => {
            call("submit_plan", json!({"plan": "a good plan"}))
        }
        _ if seen.results.iter().any(|result| result.contains("Handed in")) => call("idle", json!({})),
        _ if seen.last.contains("your plan is approved") => {
            let task = seen.last.split("about task ").nth(1).unwrap()[..18].to_owned();
            MemberReply::Calls(vec![
                bash(&format!("touch late-{task}")),
                ("task_update", json!({"task": task, "status": "done", "result": "made"})),
            ])
        }
        _ => text("finished"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    for number in [1, 2] {
        let task = play.task(number).await;
        let there = |when: &str| play.rig.work.path().join(format!("{when}-{}", task.id)).exists();
        assert_eq!([there("early"), there("late")], [false, true], "{task:?}");
        assert!(matches!(task.state, TaskState::Done { .. }), "{task:?}");
    }
    assert_eq!(play.times(LEAD, "a plan that waits for your approval"), 2);
}

/// Alice gets a task, hands in a plan for it and waits.
fn waits_for_approval(seen: &Seen<'_>) -> MemberReply {
    match (seen.who.as_str(), in_hand(seen)) {
        (LEAD, _) => begins(seen, vec![create("the work"), planner("alice")]),
        (_, Some(_)) => call("submit_plan", json!({"plan": "a good plan"})),
        _ if seen.results.iter().any(|result| result.contains("Handed in")) => call("idle", json!({})),
        _ if seen.last.contains("your plan is approved") => update("#1", "done", "made"),
        _ => text("ready"),
    }
}

#[tokio::test]
async fn a_person_can_answer_a_plan_in_the_leads_stead() {
    let rig = rig(waits_for_approval).await;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    let roster = play.until_roster(|roster| !roster.open_requests().is_empty()).await;
    let request = roster.open_requests()[0].0.clone();
    play.client().answer_plan(&play.session, &play.lead, &request, true, "go ahead").await.unwrap();
    play.until_done(1).await;
    hold.release();
    play.ended().await;
    assert_eq!(play.times("alice", "from person: your plan is approved"), 1, "{}", play.read("alice"));
    assert_eq!(play.times("alice", "| go ahead"), 1);
}

#[tokio::test]
async fn w35_one_that_sleeps_while_its_plan_waits_keeps_its_task() {
    let mut rig = rig(|seen| if seen.who == "bob" { works(seen) } else { waits_for_approval(seen) }).await;
    rig.team.idle = Duration::from_millis(20);
    let ttl = Duration::from_secs(2);
    rig.team.claim_ttl = ttl;
    let hold = rig.sim.hold(LEADS, 1, 0);
    let mut play = Play::of(rig).await;
    let asleep = |member: &convoke_kernel::Member| member.asleep.is_some();
    play.until_roster(|roster| {
        !roster.open_requests().is_empty() && roster.member("alice").is_some_and(asleep)
    })
    .await;
    // A claim that is not renewed runs out, and is none any more.
    let until = |board: &convoke_kernel::Board| match board.tasks()[0].state {
        TaskState::Claimed { until, .. } => Some(until),
        _ => None,
    };
    let first = until(&play.board().await).expect("it is claimed");
    let longer = first + 2 * u64::try_from(ttl.as_millis()).unwrap();
    let board = play.until_board(|board| until(board).is_none_or(|now| now >= longer)).await;
    assert!(until(&board).is_some(), "{board:?}");
    let roster = play.roster().await;
    let request = roster.open_requests()[0].0.clone();
    play.client().answer_plan(&play.session, &play.lead, &request, true, "").await.unwrap();
    play.until_done(1).await;
    hold.release();
    play.ended().await;
    assert_eq!(play.task(1).await.attempts, 1, "nobody had to claim it again");
}
