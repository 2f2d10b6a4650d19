//! A conversation that no new history can make shorter, through the real runtime and over HTTP: how many
//! summaries, requests and dollars it takes before the agent hands back what it has.

use convoke_kernel::{Event, FailureKind, Membership, Outcome};
use convoke_sim::{Fault, FaultKind};
use serde_json::json;

use crate::scripted_team::{MemberReply, Seen, call, text};
use crate::teams::{leading, rig};

/// One that looks at a file in every turn, and says what it has when it is asked to.
fn looks_on(seen: &Seen<'_>) -> MemberReply {
    match seen.replies {
        _ if seen.last.contains("[new history]") => text("I looked at a file."),
        _ if seen.last.contains("this is the last reply") => text("The first half is sound."),
        replies => call("bash", json!({"command": format!("echo look {replies}")})),
    }
}

#[tokio::test]
async fn a_conversation_that_cannot_get_shorter_is_handed_back_after_one_summary() {
    let mut rig = rig(looks_on).await;
    // What every request begins with is more than this, as a task would be that fills the window.
    rig.membership = Some(Membership { compact_at: 1_000, ..leading() });
    let (lead, ended) = rig.ask("look at everything").await;
    let events = rig.events(&lead).await;
    let compactions = events.iter().filter(|event| matches!(event, Event::HistoryCompacted(_))).count();
    let requests = rig.sim.requests().len();
    let summary = ended.summary.as_ref().unwrap();
    println!("compactions {compactions}, requests {requests}, cost {:?} nano-dollars", summary.cost_nano);
    assert_eq!((compactions, requests), (1, 4), "a turn, a summary, a turn, the hand-back");
    let Some(Outcome::Failed { kind, text, message }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert_eq!((kind, text.as_str()), (FailureKind::ContextFull, "The first half is sound."));
    assert!(message.contains("files that are read in parts"), "{message}");
    // Four requests of this size; the thirty turns of before cost more than ten times as much.
    let each = summary.usage.prompt_tokens() / 4;
    assert!(each > 1_000 && summary.cost_nano.is_none_or(|cost| cost > 0), "{summary:?}");
}

#[tokio::test]
async fn a_server_that_names_a_smaller_window_is_gone_on_with_in_a_new_history() {
    // As llama.cpp says it: to the turn behind the command, and to the request for a summary of it.
    let said = "request (9031 tokens) exceeds the available context size (1500 tokens), try increasing it";
    let rig = rig(|seen: &Seen<'_>| match seen.last.contains("No summary could be had") {
        true => text("It is done in what room there is."),
        false => call("bash", json!({"command": "echo look"})),
    })
    .await;
    let refusal = FaultKind::BadRequest400(said.to_owned());
    rig.sim.push_fault(Fault::new(refusal).at(1).times(2));
    let (lead, ended) = rig.ask("look at everything").await;
    let Some(Outcome::Ok { text }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert_eq!(text, "It is done in what room there is.");
    let events = rig.events(&lead).await;
    let learnt: Vec<Option<u64>> = events
        .iter()
        .filter_map(|event| match event {
            Event::EndpointLearnt(e) => Some(e.window),
            _ => None,
        })
        .collect();
    assert_eq!(learnt, [Some(1_500)], "what is known is not learnt again");
    let rooms: Vec<u64> =
        rig.sim.requests().iter().map(|request| request.body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(rooms.len(), 4, "a turn, the refused one, the refused summary, and one in the new history");
    assert!(rooms[0] > 750 && rooms[2..].iter().all(|room| *room <= 750), "{rooms:?}");
}
