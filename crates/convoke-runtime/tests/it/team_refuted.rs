//! What an opponent showed of teams once, and must not be able to show again: letters that are answered for
//! ever, runs that hang on a person, and plans that outlive what they were for.

use convoke_kernel::{Approvals, AskWhen, Decision, LEAD, Rule, Standing};
use serde_json::json;

use crate::scripted_team::{MemberReply, call, text};
use crate::team_play::{Play, bash, create, spawn, works};
use crate::teams::rig;

#[tokio::test]
async fn w16_a_letter_whose_reply_is_cut_every_time_is_a_failure_and_is_not_read_for_ever() {
    let rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![spawn("alice")]),
        (LEAD, 1) => {
            MemberReply::Calls(vec![("send_message", json!({"to": "alice", "text": "tell me everything"}))])
        }
        (LEAD, _) => text("noted"),
        _ if seen.last.contains("tell me everything") => MemberReply::Cut("it all began".into()),
        _ => text("ready"),
    })
    .await;
    let mut play = Play::of(rig).await;
    let ended = play.ended().await;
    let standing = play.roster().await.member("alice").unwrap().standing.clone();
    assert!(matches!(standing, Standing::Failed { .. }), "{standing:?}");
    let asked = play.asked("alice").len();
    assert!(asked <= 4, "asked {asked} times: its prompt, the letter, and the letter with more room");
    assert!(ended.left.iter().any(|left| left.starts_with("alice failed")), "{:?}", ended.left);
    assert!(
        ended.left.iter().any(|left| left.contains("1 letter to alice not read")),
        "it is not lost: {:?}",
        ended.left
    );
}

#[tokio::test]
async fn a_teammate_that_waits_for_a_person_with_a_task_in_hand_neither_hangs_the_run_nor_hides() {
    let mut rig = rig(|seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![create("the work"), spawn("alice")]),
        (LEAD, _) => text("noted"),
        (_, 0) => call("idle", json!({})),
        (_, 1) => MemberReply::Calls(vec![bash("rm nothing")]),
        _ => works(seen),
    })
    .await;
    let asks = Rule { tool: None, command: Some("rm".into()), path: None, decision: Decision::Ask };
    rig.approvals = Approvals { ask: AskWhen::WhenNeeded, rules: vec![asks], park: true };
    let mut play = Play::of(rig).await;
    let ended = play.ended().await;
    assert!(ended.parked, "somebody has to answer: {ended:?}");
    assert!(ended.left.iter().any(|left| left == "alice is in the middle of its work"), "{:?}", ended.left);
}

#[tokio::test]
async fn an_approval_without_a_task_ends_with_the_work_it_was_given_for() {
    let spawn = (
        "spawn_teammate",
        json!({"name": "alice", "role": "coder", "prompt": "be alice", "require_plan": true}),
    );
    let rig = rig(move |seen| match (seen.who.as_str(), seen.replies) {
        (LEAD, 0) => MemberReply::Calls(vec![spawn.clone()]),
        (LEAD, _) if seen.last.contains("a plan that waits for your approval") => {
            let id: String =
                seen.last.split("request m_").nth(1).unwrap_or_default().chars().take(16).collect();
            call("review_plan", json!({"request": format!("m_{id}"), "approve": true}))
        }
        (LEAD, _) if seen.last.contains("| made a") => {
            MemberReply::Calls(vec![("send_message", json!({"to": "alice", "text": "now make b"}))])
        }
        (LEAD, _) => text("noted"),
        _ if seen.last.contains("your plan is approved") => MemberReply::Calls(vec![bash("touch a")]),
        _ if seen.last.contains("now make b") => MemberReply::Calls(vec![bash("touch b")]),
        (_, 0) => call("submit_plan", json!({"plan": "touch a"})),
        _ if seen.results.iter().any(|result| result.contains("Handed in")) => call("idle", json!({})),
        _ if seen.results.iter().any(|result| result.contains("your plan has not been approved")) => {
            text("I may not")
        }
        _ => text("made a"),
    })
    .await;
    let mut play = Play::of(rig).await;
    play.ended().await;
    let there = |name: &str| play.rig.work.path().join(name).exists();
    assert_eq!([there("a"), there("b")], [true, false], "{}", play.read("alice"));
}
