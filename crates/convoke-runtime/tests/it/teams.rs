//! Teams through the real runtime: a lead that makes teammates, letters, the board.

use std::time::Duration;

use convoke_kernel::{AgentId, Event, Membership, Outcome, TaskState};
use convoke_runtime::{Clock, DriveMode, Ids, Stop, TeamClient, TeamConfig};
use convoke_sim::SimConfig;
use serde_json::json;

use crate::scripted_team::{MemberReply, Members, Seen, call, text};
use crate::support::{Rig, within};

/// The membership of a lead.
pub(crate) fn leading() -> Membership {
    Membership {
        name: "lead".into(),
        role: "lead".into(),
        team: "default".into(),
        requires_plan: false,
        compact_at: 150_000,
        project: None,
    }
}

pub(crate) async fn rig(speaks: impl Fn(&Seen<'_>) -> MemberReply + Send + Sync + 'static) -> Rig {
    let mut rig = Rig::new(SimConfig::new(Members::new(speaks))).await;
    rig.clock = Clock::system();
    rig.membership = Some(leading());
    rig.team = TeamConfig { idle: Duration::from_secs(5), ..TeamConfig::default() };
    rig
}

pub(crate) fn client(rig: &Rig) -> TeamClient {
    TeamClient::new(rig.journal.clone(), rig.clock.clone(), Ids::random())
}

pub(crate) async fn session_of(rig: &Rig, lead: &AgentId) -> convoke_kernel::SessionId {
    rig.folded(lead).await.spec().unwrap().session.clone()
}

/// A lead that writes two tasks and spawns alice; alice does what is claimed for her.
fn claims(seen: &Seen<'_>) -> MemberReply {
    match (seen.who.as_str(), seen.replies) {
        ("lead", 0) => MemberReply::Calls(vec![
            ("task_create", json!({"subject": "first", "description": "do the first"})),
            ("task_create", json!({"subject": "second", "description": "do the second"})),
            (
                "spawn_teammate",
                json!({"name": "alice", "role": "coder", "prompt": "Take work from the board."}),
            ),
        ]),
        ("lead", 1) => text("set up"),
        ("lead", _) => text(format!("heard: {}", seen.last)),
        (_, 0) => call("idle", json!({})),
        _ if seen.last.starts_with("[claimed t_") => {
            let id: String = seen.last.chars().skip(9).take(18).collect();
            call("task_update", json!({"task": id, "status": "done", "result": "did it"}))
        }
        _ => text("finished one"),
    }
}

#[tokio::test]
async fn c11_c14_w21_a_teammate_claims_what_is_on_the_board_and_the_lead_hears_of_it() {
    let rig = rig(claims).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "make a team").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    let session = session_of(&rig, &lead).await;
    let board = client(&rig).board(&session).await.unwrap();
    let done = board.tasks().iter().filter(|task| matches!(task.state, TaskState::Done { .. })).count();
    assert_eq!(done, 2, "{board:?}");
    let Some(Outcome::Ok { text }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(text.contains("finished one"), "{text}");
}

/// A lead that prints a lot, is asked for a summary when it is due, and ends.
fn prints(seen: &Seen<'_>) -> MemberReply {
    match seen.replies {
        _ if seen.last.contains("[new history]") => text("I printed numbers."),
        _ if seen.last.starts_with("[history continued]") => text("and now I end"),
        0..4 => call("bash", json!({"command": "seq 1 2000"})),
        _ => text("never compacted"),
    }
}

#[tokio::test]
async fn a_history_above_the_threshold_is_left_behind_for_a_new_one() {
    let mut rig = rig(prints).await;
    let (_, short) = rig.ask("print the same far below it").await;
    assert_eq!(
        short.outcome,
        Some(Outcome::Ok { text: "never compacted".into() }),
        "far below the threshold"
    );
    // What every request begins with is about 8,000 tokens, and each command prints about 3,000.
    rig.membership = Some(Membership { compact_at: 15_000, ..leading() });
    let (lead, long) = rig.ask("print a lot").await;
    assert_eq!(long.outcome, Some(Outcome::Ok { text: "and now I end".into() }));
    let events = rig.events(&lead).await;
    let tokens = events.iter().find_map(|event| match event {
        Event::HistoryCompacted(e) => Some(e.tokens),
        _ => None,
    });
    assert!(tokens.is_some_and(|tokens| (15_000..30_000).contains(&tokens)), "{tokens:?}");
    let last = rig.sim.requests().last().unwrap().body.clone();
    assert_eq!(last["messages"].as_array().unwrap().len(), 1, "the new history and nothing of the old one");
}

#[tokio::test]
async fn a_person_asks_for_a_new_history_by_command() {
    let rig = rig(|seen| match seen.replies {
        _ if seen.last.contains("[new history]") => text("We said hello."),
        _ if seen.last.starts_with("[history continued]") => text("I still know"),
        _ => text("hello"),
    })
    .await;
    let (lead, _) = rig.ask("say hello").await;
    client(&rig).compact(&lead, Some("the greeting")).await.unwrap();
    let runtime = rig.life(None).await;
    runtime.say(&lead, "more", "what did we say?").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "I still know".into() }));
    let asked: Vec<String> =
        rig.sim.requests().iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(asked[1].contains("[new history]") && asked[1].contains("the greeting"), "{}", asked[1]);
    assert!(asked[2].contains("what did we say?") && asked[2].contains("We said hello."), "{}", asked[2]);
}
