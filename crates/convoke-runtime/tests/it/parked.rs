//! Questions without an asker: the agent waits, others go on, and an answer given later goes on with it.

use convoke_kernel::{AgentId, Approvals, AskWhen, Decision, Outcome, Rule};
use convoke_runtime::AskedCall;
use convoke_sim::{Reply, calls, says};
use serde_json::json;

use crate::support::Rig;
use crate::team::{Team, finding, report, workflow};
use crate::workers::{lead_read, requests, rig};

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

/// Asks before every `rm`, and parks the agent that asks.
async fn parking(team: Team) -> Rig {
    let mut rig = rig(team).await;
    let asks = Rule { tool: None, command: Some("rm".into()), path: None, decision: Decision::Ask };
    rig.approvals = Approvals { ask: AskWhen::WhenNeeded, rules: vec![asks], park: true };
    rig
}

async fn questions(rig: &Rig, lead: &AgentId) -> Vec<AskedCall> {
    let session = rig.folded(lead).await.spec().unwrap().session.clone();
    rig.life(None).await.questions(&session).await.unwrap()
}

async fn answer(rig: &Rig, asked: &AskedCall, allow: bool) {
    rig.life(None).await.answer(&asked.agent, &asked.call, allow, "a person, later").await.unwrap();
}

#[tokio::test]
async fn a_parked_lead_goes_on_with_the_answer_in_another_process() {
    for (allow, left) in [(true, false), (false, true)] {
        let rig = parking(Team::new([bash("rm a"), says("done")])).await;
        std::fs::write(rig.work.path().join("a"), "a").unwrap();
        let (lead, ended) = rig.ask("go").await;
        assert!(ended.parked && ended.outcome.is_none(), "{ended:?}");
        let asked = questions(&rig, &lead).await;
        assert_eq!(asked.iter().map(|asked| asked.wanted.as_str()).collect::<Vec<_>>(), ["run: rm a"]);
        let still = rig.resume(&lead).await.unwrap();
        assert!(still.parked, "without an answer it goes on waiting");
        answer(&rig, &asked[0], allow).await;
        let ended = rig.resume(&lead).await.unwrap();
        assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
        assert!(!ended.parked);
        assert_eq!(rig.work.path().join("a").exists(), left);
        assert_eq!(questions(&rig, &lead).await, []);
        assert_eq!(lead_read(&rig)[0].0.contains("refused by a person, later"), !allow);
        assert_eq!(requests(&rig, "lead").len(), 2, "nothing was asked of the model twice");
    }
}

#[tokio::test]
async fn one_parked_worker_waits_while_the_others_finish_and_its_answer_finishes_the_run() {
    let team = Team::new([workflow(&["rm it", "look at b", "look at c"]), says("done")]).workers(|subtask| {
        let command = if subtask.starts_with("rm") { "rm -f x" } else { "echo looked" };
        vec![bash(command), report(subtask, vec![finding(subtask, "low")])]
    });
    let rig = parking(team).await;
    let (lead, ended) = rig.ask("go").await;
    assert!(ended.parked && ended.outcome.is_none());
    assert_eq!(
        (requests(&rig, "worker").len(), requests(&rig, "verifier").len()),
        (5, 4),
        "the others are done"
    );
    let asked = questions(&rig, &lead).await;
    assert_eq!((asked.len(), asked[0].label.as_str()), (1, "rm it"));
    answer(&rig, &asked[0], true).await;
    let ended = rig.resume(&lead).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert_eq!(
        (requests(&rig, "worker").len(), requests(&rig, "verifier").len()),
        (6, 6),
        "nothing was paid twice"
    );
    let read = lead_read(&rig).pop().unwrap().0;
    let places: Vec<usize> =
        ["rm it", "look at b", "look at c"].iter().filter_map(|claim| read.find(claim)).collect();
    assert!(places.len() == 3 && places.is_sorted(), "{read}");
}

#[tokio::test]
async fn without_parking_and_without_anybody_the_call_is_refused_and_the_work_goes_on() {
    let mut rig = parking(Team::new([bash("rm a"), says("done")])).await;
    rig.approvals.park = false;
    let (_, ended) = rig.ask("go").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    let (text, is_error) = lead_read(&rig).remove(0);
    assert!(is_error && text.contains(convoke_kernel::NOBODY_TO_ASK), "{text}");
}

#[tokio::test]
async fn an_answer_to_a_question_that_is_gone_changes_nothing() {
    let rig = parking(Team::new([bash("rm -f a"), says("done"), says("more")])).await;
    let (lead, _) = rig.ask("go").await;
    let asked = questions(&rig, &lead).await.remove(0);
    answer(&rig, &asked, true).await;
    rig.resume(&lead).await.unwrap();
    answer(&rig, &AskedCall { call: "toolu_other".into(), ..asked }, true).await;
    let runtime = rig.life(None).await;
    runtime.say(&lead, "k2", "and more").await.unwrap();
    let ended = rig.resume(&lead).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "more".into() }));
}
