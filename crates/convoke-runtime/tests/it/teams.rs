//! Teams through the real runtime: a lead that makes teammates, letters, the board.

use std::time::Duration;

use convoke_kernel::{AgentId, Membership, Outcome, TaskState};
use convoke_runtime::{Clock, Desk, Ids, Stop, Take, TeamConfig};
use convoke_sim::SimConfig;
use serde_json::json;

use crate::crew::{Members, Said, Seen, call, text};
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

pub(crate) async fn rig(speaks: impl Fn(&Seen<'_>) -> Said + Send + Sync + 'static) -> Rig {
    let mut rig = Rig::new(SimConfig::new(Members::new(speaks))).await;
    rig.clock = Clock::system();
    rig.membership = Some(leading());
    rig.team = TeamConfig { idle: Duration::from_secs(5), ..TeamConfig::default() };
    rig
}

pub(crate) fn desk(rig: &Rig) -> Desk {
    Desk::new(rig.journal.clone(), rig.clock.clone(), Ids::random())
}

pub(crate) async fn session_of(rig: &Rig, lead: &AgentId) -> convoke_kernel::SessionId {
    rig.folded(lead).await.spec().unwrap().session.clone()
}

/// A lead that writes two tasks and spawns alice; alice does what is claimed for her.
fn claims(seen: &Seen<'_>) -> Said {
    match (seen.who.as_str(), seen.replies) {
        ("lead", 0) => Said::Calls(vec![
            ("task_create", json!({"subject": "first", "description": "do the first"})),
            ("task_create", json!({"subject": "second", "description": "do the second"})),
            ("spawn_teammate", json!({"name": "alice", "role": "coder", "prompt": "Take work from the board."})),
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
    let ended = within(runtime.drive(&lead, Take::New, Stop::never(), None)).await.unwrap();
    let session = session_of(&rig, &lead).await;
    let board = desk(&rig).board(&session).await.unwrap();
    let done = board.tasks().iter().filter(|task| matches!(task.state, TaskState::Done { .. })).count();
    assert_eq!(done, 2, "{board:?}");
    let Some(Outcome::Ok { text }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(text.contains("finished one"), "{text}");
}
