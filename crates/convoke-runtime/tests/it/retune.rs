//! Another model or effort in a session that stands, against the simulator: what the requests hold, what is
//! booked, what is refused before anything is recorded, and that a crash changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_claude::{Endpoint, Models, capabilities, cost};
use convoke_journal::{Location, StreamId};
use convoke_kernel::{AgentId, Capabilities, Caps, Event, Outcome, RetuneRefused};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Retune, Runtime, Stop};
use convoke_sim::{Fault, FaultKind, Reply, Script, calls, says};
use serde_json::json;

use crate::cache::Wire;
use crate::support::{MODEL, Rig, within};

/// A model that takes everything the usual one takes, at another price.
const OTHER: &str = "claude-haiku-5-5";
/// One that takes no system messages inside a conversation.
const WITHOUT_ROLE: &str = "claude-opus-4-7";

fn accepts(model: &str, effort: &str) -> Capabilities {
    capabilities(&Models::builtin().get(model), &Endpoint::anthropic(), Some(effort)).unwrap()
}

fn to(model: &str, effort: &str) -> Retune {
    Retune { model: model.to_owned(), capabilities: accepts(model, effort) }
}

fn replies() -> Vec<Reply> {
    let look = calls("bash", json!({"command": "echo one"})).thinking("where to look");
    vec![look, says("first").thinking("what was seen"), says("second"), says("third"), says("fourth")]
}

async fn rig(retunes: usize) -> Rig {
    let mut rig = Rig::new(Script::new().conversation("*", replies())).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.retunes = retunes;
    rig
}

async fn drive(runtime: &Runtime, agent: &AgentId) -> Outcome {
    within(runtime.drive(agent, DriveMode::New, Stop::never(), None)).await.unwrap().outcome.unwrap()
}

async fn say(runtime: &Runtime, agent: &AgentId, text: &str) -> String {
    runtime.say(agent, text, text).await.unwrap();
    drive(runtime, agent).await.text().to_owned()
}

async fn answered(rig: &Rig, runtime: &Runtime) -> AgentId {
    let lead = runtime.start(rig.start(), "look").await.unwrap();
    assert_eq!(drive(runtime, &lead).await.text(), "first");
    lead
}

/// Model and effort of every request.
fn asked(rig: &Rig) -> Vec<String> {
    let word = |body: &serde_json::Value| {
        let effort = body["output_config"]["effort"].as_str().unwrap_or("-");
        format!("{} {effort}", body["model"].as_str().unwrap())
    };
    rig.sim.requests().iter().map(|request| word(&request.body)).collect()
}

#[tokio::test]
async fn another_model_answers_from_the_next_exchange_on_and_reads_every_byte_that_was_said() {
    let rig = rig(2).await;
    let runtime = rig.life(None).await;
    let lead = answered(&rig, &runtime).await;
    runtime.retune(&lead, "cheaper", to(OTHER, "low")).await.unwrap();
    assert_eq!(say(&runtime, &lead, "and then?").await, "second");
    runtime.retune(&lead, "back", to(MODEL, "xhigh")).await.unwrap();
    assert_eq!(say(&runtime, &lead, "and now?").await, "third");
    let first = format!("{MODEL} xhigh");
    assert_eq!(asked(&rig), [first.as_str(), &first, &format!("{OTHER} low"), &first]);
    let requests = rig.sim.requests();
    assert!(
        Wire::of(&requests[2]).begins_with(&Wire::of(&requests[1])),
        "thinking of the other model among it"
    );
    assert!(String::from_utf8_lossy(&requests[2].raw).contains("what was seen"));
    let summary = rig.folded(&lead).await.summary().unwrap();
    assert_eq!((summary.model.as_str(), summary.effort.as_deref(), summary.turns), (MODEL, Some("xhigh"), 4));
}

#[tokio::test]
async fn what_is_paid_and_what_is_held_follow_the_model_in_use() {
    let mut rig = rig(1).await;
    rig.caps = Caps { nano: Some(50_000_000_000), ..Caps::default() };
    let runtime = rig.life(None).await;
    let lead = answered(&rig, &runtime).await;
    let session = rig.folded(&lead).await.spec().unwrap().session.clone();
    let spent = runtime.ledger(&session).await.unwrap().spent().nano;
    runtime.retune(&lead, "cheaper", to(OTHER, "low")).await.unwrap();
    let hold = rig.sim.hold("look", 2, 1);
    runtime.say(&lead, "more", "and then?").await.unwrap();
    let driving = runtime.clone();
    let agent = lead.clone();
    let under_way = tokio::spawn(async move { drive(&driving, &agent).await });
    within(hold.entered()).await;
    let held = runtime.ledger(&session).await.unwrap().held().nano;
    let rates = rig.folded(&lead).await.spec().unwrap().rates.clone().unwrap();
    let cheapest = rates.tiers.iter().map(|tier| tier.output).min().unwrap()
        * u64::from(accepts(OTHER, "low").max_output.min(64_000));
    hold.release();
    assert_eq!(within(under_way).await.unwrap().text(), "second");
    let line = rig.sim.bill().lines[2].clone();
    let usage = rig.events(&lead).await.into_iter().rev().find_map(|event| match event {
        Event::ModelReplied(e) => Some(e.reply.usage),
        _ => None,
    });
    let priced = |model: &str| cost(&Models::builtin().get(model), &usage.unwrap());
    assert_eq!((line.model.as_str(), Some(line.nano_dollars)), (OTHER, priced(OTHER)));
    let ledger = runtime.ledger(&session).await.unwrap();
    assert_eq!(ledger.spent().nano - spent, line.nano_dollars, "the new price, and nothing unconfirmed");
    assert!(held >= line.nano_dollars && held >= cheapest, "held {held}, the output alone {cheapest}");
    assert!(priced(MODEL).unwrap() > line.nano_dollars, "the prices differ");
    let summary = rig.folded(&lead).await.summary().unwrap();
    assert_eq!(summary.cost_nano, Some(rig.sim.bill().total_nano));
}

#[tokio::test]
async fn a_history_that_the_model_would_not_take_is_refused_before_anything_is_recorded() {
    let rig = rig(0).await;
    let runtime = rig.life(None).await;
    let lead = answered(&rig, &runtime).await;
    let events = rig.events(&lead).await.len();
    let check = async |retune: Retune, expected: RetuneRefused| {
        let error = runtime.retune(&lead, "other", retune).await.unwrap_err();
        assert!(matches!(&error, Error::RetuneRefused(why) if *why == expected), "{error}");
        assert!(error.to_string().contains("/new"), "{error}");
    };
    let model = || WITHOUT_ROLE.to_owned();
    check(to(WITHOUT_ROLE, "low"), RetuneRefused::SystemMessages { model: model() }).await;
    let mut elsewhere = to(WITHOUT_ROLE, "low");
    elsewhere.capabilities.anthropic_tools = false;
    check(elsewhere, RetuneRefused::OtherServer { model: model() }).await;
    assert!(rig.journal.inputs(&StreamId::from(&lead)).await.unwrap().is_empty());
    assert_eq!(say(&runtime, &lead, "and then?").await, "second");
    assert!(rig.events(&lead).await.len() > events);
    let nobody = AgentId::from_bits([3; 10]);
    assert!(matches!(runtime.retune(&nobody, "k", to(OTHER, "low")).await, Err(Error::NoSuchAgent(_))));
}

#[tokio::test]
async fn what_cannot_be_any_more_when_its_turn_comes_is_set_aside_and_the_session_goes_on() {
    let mut rig = rig(0).await;
    let fan_out = Rig::fanning_out();
    rig.fan_out = Some(convoke_kernel::FanOut { mode: false, ..fan_out });
    let runtime = rig.life(None).await;
    let lead = answered(&rig, &runtime).await;
    runtime.set_mode(&lead, "on", true).await.unwrap();
    runtime.say(&lead, "more", "and then?").await.unwrap();
    // By now nothing of the mode has been told.
    runtime.retune(&lead, "other", to(WITHOUT_ROLE, "low")).await.unwrap();
    assert_eq!(drive(&runtime, &lead).await.text(), "second");
    let rejected: Vec<String> = rig
        .events(&lead)
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::InputRejected(e) => Some(format!("{}: {}", e.input, e.why)),
            _ => None,
        })
        .collect();
    assert!(
        matches!(&rejected[..], [one] if one.starts_with("other: this conversation holds system messages")),
        "{rejected:?}"
    );
    assert_eq!(say(&runtime, &lead, "and now?").await, "third");
    assert!(asked(&rig).iter().all(|asked| asked.starts_with(MODEL)));
}

#[tokio::test]
async fn what_is_chosen_while_a_reply_is_under_way_waits_for_its_end() {
    let rig = rig(1).await;
    let runtime = rig.life(None).await;
    let lead = answered(&rig, &runtime).await;
    let hold = rig.sim.hold("look", 2, 1);
    runtime.say(&lead, "more", "and then?").await.unwrap();
    let driving = runtime.clone();
    let agent = lead.clone();
    let under_way = tokio::spawn(async move { drive(&driving, &agent).await });
    within(hold.entered()).await;
    runtime.retune(&lead, "cheaper", to(OTHER, "low")).await.unwrap();
    runtime.say(&lead, "again", "and now?").await.unwrap();
    hold.release();
    assert_eq!(within(under_way).await.unwrap().text(), "third", "both are taken up, in their order");
    assert_eq!(asked(&rig)[2..], [format!("{MODEL} xhigh"), format!("{OTHER} low")]);
}

#[tokio::test]
async fn an_exchange_that_failed_is_gone_on_with_by_the_model_chosen_since() {
    let rig = rig(1).await;
    let runtime = rig.life(None).await;
    let lead = answered(&rig, &runtime).await;
    rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("simulator: not this model".to_owned())));
    runtime.say(&lead, "more", "and then?").await.unwrap();
    assert!(drive(&runtime, &lead).await.failure().is_some());
    runtime.retune(&lead, "cheaper", to(OTHER, "low")).await.unwrap();
    assert_eq!(rig.resume(&lead).await.unwrap().outcome.unwrap().text(), "second");
    assert_eq!(asked(&rig)[2..], [format!("{MODEL} xhigh"), format!("{OTHER} low")]);
}

/// Chooses another model and says something; the process dies at this commit.
async fn run(cut: Option<(Moment, usize)>) -> (Vec<String>, Vec<String>, usize) {
    let script = Script::new().conversation("*", replies());
    let mut rig = Rig::on(Location::Sqlite("journal.db".into()), script).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.retunes = 1;
    let lead = answered(&rig, &rig.life(None).await).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&commits);
    let runtime = rig
        .life(Some(Crash::when(move |moment, _| {
            let number = match moment {
                Moment::BeforeCommit => counter.load(Ordering::SeqCst),
                Moment::AfterCommit => counter.fetch_add(1, Ordering::SeqCst),
            };
            cut == Some((moment, number))
        })))
        .await;
    runtime.retune(&lead, "cheaper", to(OTHER, "low")).await.unwrap();
    runtime.say(&lead, "more", "and then?").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await;
    drop(runtime);
    match (ended, cut) {
        (Ok(ended), None) => assert_eq!(ended.outcome.unwrap().text(), "second"),
        (Err(Error::Crashed), Some(_)) => {
            assert_eq!(rig.resume(&lead).await.unwrap().outcome.unwrap().text(), "second")
        }
        (other, cut) => panic!("{cut:?}: {other:?}"),
    }
    let retuned = rig.events(&lead).await.iter().filter(|event| matches!(event, Event::Retuned(_))).count();
    assert_eq!(retuned, 1, "{cut:?}");
    let history =
        rig.folded(&lead).await.history().iter().map(|message| message.as_str().to_owned()).collect();
    (history, asked(&rig), commits.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_crash_around_any_commit_of_a_change_changes_it_once() {
    let (whole, sent, commits) = run(None).await;
    for number in 0..commits {
        for moment in [Moment::BeforeCommit, Moment::AfterCommit] {
            let (history, asked, _) = run(Some((moment, number))).await;
            assert_eq!(history, whole, "{moment:?} {number}");
            let unique = |mut asked: Vec<String>| {
                asked.dedup();
                asked
            };
            assert_eq!(unique(asked), unique(sent.clone()), "{moment:?} {number}");
        }
    }
    println!("{commits} commits of a change, cut before and after each");
    assert!(commits >= 3);
}
