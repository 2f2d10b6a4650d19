//! Whole fan-outs against the simulator: what the lead, its workers and their verifiers send and get.

use convoke_kernel::Outcome;
use convoke_sim::{SimConfig, says};
use serde_json::Value;

use crate::support::Rig;
use crate::team::{Team, finding, looks_and_judges, looks_and_reports, role, workflow};

async fn rig(team: Team) -> Rig {
    let mut rig = Rig::new(SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig
}

/// The requests of one role, in order of arrival.
fn requests(rig: &Rig, who: &str) -> Vec<Value> {
    rig.sim
        .requests()
        .into_iter()
        .map(|request| (*request.body).clone())
        .filter(|body| role(body) == who)
        .collect()
}

/// The text of the last tool result the lead has read.
fn result_the_lead_read(rig: &Rig) -> String {
    let last = requests(rig, "lead").pop().unwrap();
    let message = last["messages"].as_array().unwrap().last().unwrap().clone();
    message["content"][0]["content"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn d7_5_d7_7_a_fan_out_comes_back_in_order_with_a_verdict_per_finding() {
    let team = Team::new([workflow(&["look at a", "look at b", "look at c"]), says("synthesis")])
        .workers(|subtask| looks_and_reports(subtask, vec![finding(subtask, "high")]))
        .verifiers(|findings| {
            let wrong = findings[0]["claim"].as_str().unwrap().contains("b");
            looks_and_judges(findings, if wrong { "refuted" } else { "confirmed" })
        });
    let rig = rig(team).await;
    let (_, ended) = rig.ask("Review this").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "synthesis".into() }));
    let read = result_the_lead_read(&rig);
    let places: Vec<usize> =
        ["[confirmed] [high] look at a", "[refuted] [high] look at b", "[confirmed] [high] look at c"]
            .iter()
            .map(|line| read.find(line).unwrap_or_else(|| panic!("{line} is not in\n{read}")))
            .collect();
    assert!(places.is_sorted(), "{read}");
    assert_eq!((requests(&rig, "worker").len(), requests(&rig, "verifier").len()), (6, 6));
}
