//! A person stops an agent below a lead, or a lead with agents below it: those that were not
//! meant go on, and none is left behind.

use convoke_kernel::{AgentId, Event, Outcome, ProgramStatus, RunId, Standing, TaskState};
use convoke_runtime::{DriveMode, Runtime, Stop, StopLevel, Stopper};
use convoke_sim::{Reply, calls, says};
use serde_json::json;

use crate::programs::{program, script, value};
use crate::scripted_team::{MemberReply, Seen, call, text};
use crate::stop_exchange::{BY, check_nothing_is_held, stopped, until};
use crate::support::{Rig, within};
use crate::team::{Team, workflow};
use crate::team_play::{Play, begins, spawn};
use crate::workers::{lead_read, only_result, requests, rig, started};
use crate::{programs, teams};

const FOUR: [&str; 4] =
    ["a [conversation: a]", "b [conversation: b]", "c [conversation: c]", "d [conversation: d]"];

fn done(text: &str) -> Option<Outcome> {
    Some(Outcome::Ok { text: text.into() })
}

/// The worker of the item, which must have begun.
async fn worker(rig: &Rig, lead: &AgentId, item: u32) -> AgentId {
    let call = started(rig, lead, "Workflow").await.remove(0);
    rig.run(lead, &call).await.worker(item).unwrap().clone()
}

#[tokio::test]
async fn one_worker_of_four_is_stopped_the_others_go_on_and_the_digest_says_so() {
    let mut rig = rig(Team::new([workflow(&FOUR), says("done")])).await;
    rig.fan_out.as_mut().unwrap().voters = 0;
    let holds = ["a", "b", "c", "d"].map(|name| rig.sim.hold(name, 0, 1));
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "Review").await.unwrap();
    let stops = async {
        for hold in &holds {
            hold.entered().await;
        }
        let second = worker(&rig, &lead, 2).await;
        assert!(runtime.is_driven_here(&second));
        runtime.stop_exchange(&second, BY).await.unwrap();
        until(&rig, &second, |event| event.kind() == "exchange_closed").await;
        holds.iter().for_each(|hold| hold.release());
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    assert_eq!(ended.unwrap().outcome, done("done"));
    let text = only_result(&rig);
    assert!(text.contains("4 items: 3 ok, 1 failed"), "{text}");
    assert!(
        text.contains("status: failed(cancelled)") && text.contains(&format!("stopped by {BY}")),
        "{text}"
    );
    assert_eq!(requests(&rig, "worker").len(), 7, "only the one that was stopped asked once");
    check_nothing_is_held(&rig, &lead).await;
}

#[tokio::test]
async fn a_stopped_verifier_gives_no_vote_and_refutes_nothing() {
    let team = Team::new([workflow(&["look"]), says("done")])
        .verifiers(|_| vec![calls("bash", json!({"command": "echo x > looking; sleep 600"}))]);
    let rig = rig(team).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "Review").await.unwrap();
    let stops = async {
        let looks = |event: &Event| event.kind() == "tool_started";
        until(&rig, &lead, looks).await;
        let call = started(&rig, &lead, "Workflow").await.remove(0);
        let verifier = loop {
            if let Some(verifier) = rig.run(&lead, &call).await.verifier(1, 1) {
                break verifier.clone();
            }
            tokio::task::yield_now().await;
        };
        until(&rig, &verifier, looks).await;
        runtime.stop_exchange(&verifier, BY).await.unwrap();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    assert_eq!(ended.unwrap().outcome, done("done"));
    let text = only_result(&rig);
    assert!(text.contains("[unverified") && !text.contains("[refuted"), "{text}");
}

/// A lead whose four workers are held in the middle of their first reply.
async fn fanned_out() -> (Rig, Vec<convoke_sim::ReplyHold>) {
    let mut rig = rig(Team::new([workflow(&FOUR), says("as you wish")])).await;
    // Two have no place yet.
    rig.agents_at_once = Some(2);
    let holds = ["a", "b"].map(|name| rig.sim.hold(name, 0, 1)).into();
    (rig, holds)
}

/// Every agent below the lead has ended, as far as it had begun, and the run says what became of each item.
async fn check_ended(rig: &Rig, lead: &AgentId) {
    let call = started(rig, lead, "Workflow").await.remove(0);
    let run = rig.run(lead, &call).await;
    assert!(run.is_closed());
    for item in 1..=2 {
        let worker = rig.folded(run.worker(item).unwrap()).await;
        assert!(stopped(worker.outcome()) && worker.is_idle(), "item {item}: {:?}", worker.outcome());
    }
    assert_eq!((run.worker(3), run.worker(4)), (None, None), "nobody began for them");
    assert_eq!(requests(rig, "worker").len(), 2, "nothing more was sent");
    check_nothing_is_held(rig, lead).await;
}

#[tokio::test]
async fn a_stopped_lead_takes_its_workflow_with_it_and_its_model_reads_what_there_was() {
    let (rig, holds) = fanned_out().await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "Review").await.unwrap();
    let stops = async {
        for hold in &holds {
            hold.entered().await;
        }
        runtime.say(&lead, "next", "something else").await.unwrap();
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    assert_eq!(ended.unwrap().outcome, done("as you wish"));
    let text = only_result(&rig);
    assert!(text.contains("4 items: ") && text.matches(&format!("stopped by {BY}")).count() >= 4, "{text}");
    check_ended(&rig, &lead).await;
}

#[tokio::test]
async fn what_an_earlier_process_left_below_a_stopped_lead_ends_without_a_request() {
    let (rig, holds) = fanned_out().await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "Review").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let cuts = async {
        for hold in &holds {
            hold.entered().await;
        }
        stopper.ask(StopLevel::Cut);
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&lead, DriveMode::New, stop, None), cuts) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    drop(runtime);
    let runtime = rig.life(None).await;
    runtime.stop_exchange(&lead, BY).await.unwrap();
    runtime.say(&lead, "next", "something else").await.unwrap();
    let resume = DriveMode::Resume { changed: vec![] };
    let ended = within(runtime.drive(&lead, resume, Stop::never(), None)).await.unwrap();
    assert_eq!(ended.outcome, done("as you wish"));
    check_ended(&rig, &lead).await;
}

/// A lead with one task that is held in the middle of its first reply.
async fn with_a_task(
    lead: impl IntoIterator<Item = Reply>,
) -> (Rig, convoke_sim::ReplyHold, Runtime, AgentId) {
    let rig = rig(Team::new(lead).tasks([says("the summary")])).await;
    let hold = rig.sim.hold("t", 0, 1);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "A request").await.unwrap();
    (rig, hold, runtime, lead)
}

fn task() -> Reply {
    calls("task", json!({"prompt": "look into it [conversation: t]"}))
}

async fn child(rig: &Rig, lead: &AgentId) -> AgentId {
    AgentId::derived(&["task", lead.as_str(), &started(rig, lead, "task").await[0]])
}

#[tokio::test]
async fn a_stopped_task_is_an_error_to_its_parent_who_goes_on() {
    let (rig, hold, runtime, lead) = with_a_task([task(), says("then without")]).await;
    let stops = async {
        hold.entered().await;
        let child = child(&rig, &lead).await;
        runtime.stop_exchange(&child, BY).await.unwrap();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    assert_eq!(ended.unwrap().outcome, done("then without"));
    let (text, is_error) = lead_read(&rig).remove(0);
    assert!(is_error && text.contains(&format!("did not finish: stopped by {BY}")), "{text}");
}

#[tokio::test]
async fn a_stopped_lead_takes_its_task_with_it() {
    let (rig, hold, runtime, lead) = with_a_task([task(), says("never asked")]).await;
    let stops = async {
        hold.entered().await;
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    assert!(stopped(ended.unwrap().outcome.as_ref()));
    let child = rig.folded(&child(&rig, &lead).await).await;
    assert!(stopped(child.outcome()), "{:?}", child.outcome());
    assert_eq!(rig.sim.requests().len(), 2);
    check_nothing_is_held(&rig, &lead).await;
}

async fn called(rig: &Rig, runtime: &Runtime, body: &str) -> AgentId {
    let input = json!({"script": script(body)});
    runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap()
}

#[tokio::test]
async fn a_stopped_callee_is_null_to_its_program_and_a_new_pass_has_it_done_after_all() {
    let rig = programs::rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    let hold = rig.sim.hold("first", 0, 1);
    let runtime = rig.life(None).await;
    let lead = called(&rig, &runtime, "return [await agent('first'), await agent('second')]").await;
    let stops = async {
        hold.entered().await;
        let session = rig.folded(&lead).await.spec().unwrap().session.clone();
        let agents = runtime.agents(&session).await.unwrap();
        let callee = agents.into_iter().map(|(id, _)| id).find(|id| *id != lead).unwrap();
        runtime.stop_exchange(&callee, BY).await.unwrap();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (_, ()) = within(async { tokio::join!(drive, stops) }).await;
    let partial = program(&rig, &lead).await;
    assert_eq!(
        (value(&partial), partial.status()),
        (json!([null, "did second"]), Some(ProgramStatus::Partial))
    );
    hold.release();
    rig.resume(&lead).await.unwrap();
    assert_eq!(value(&program(&rig, &lead).await), json!(["did first", "did second"]));
}

#[tokio::test]
async fn a_persons_program_that_is_stopped_is_recorded_as_that_and_is_not_taken_up_by_itself() {
    let rig = programs::rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    let hold = rig.sim.hold("first", 0, 1);
    let runtime = rig.life(None).await;
    let lead = called(&rig, &runtime, "return [await agent('first'), await agent('second')]").await;
    let stops = async {
        hold.entered().await;
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    let ended = ended.unwrap();
    assert!(stopped(ended.outcome.as_ref()), "{ended:?}");
    assert!(!ended.summary.unwrap().can_go_on);
    assert_eq!(program(&rig, &lead).await.status(), Some(ProgramStatus::Stopped));
    let again = rig.resume(&lead).await.unwrap();
    assert!(stopped(again.outcome.as_ref()));
    assert_eq!(rig.sim.requests().len(), 1);
    check_nothing_is_held(&rig, &lead).await;
}

#[tokio::test]
async fn a_program_in_the_background_goes_on_when_its_lead_is_stopped_and_words_wake_the_lead_beside_it() {
    let source = script("return await agent('first')");
    let team = Team::new([
        calls("Workflow", json!({"script": source})),
        says("never said"),
        says("as you wish"),
        says("heard"),
    ])
    .callees(|prompt| vec![says(&format!("did {prompt}"))]);
    let rig = rig(team).await;
    let callee = rig.sim.hold("first", 0, 1);
    let second = rig.sim.hold("Review", 1, 1);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "Review").await.unwrap();
    let stops = async {
        second.entered().await;
        callee.entered().await;
        runtime.stop_exchange(&lead, BY).await.unwrap();
        until(&rig, &lead, |event| event.kind() == "exchange_stopped").await;
        runtime.say(&lead, "next", "something else").await.unwrap();
        until(&rig, &lead, |event| matches!(event, Event::ExchangeOpened(e) if e.text == "something else"))
            .await;
        callee.release();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, stops) }).await;
    assert!(matches!(ended.unwrap().outcome, Some(Outcome::Ok { .. })));
    let call = started(&rig, &lead, "Workflow").await.remove(0);
    let run = runtime.program(&RunId::derived(&["workflow", lead.as_str(), &call])).await.unwrap();
    assert_eq!((value(&run), run.status()), (json!("did first"), Some(ProgramStatus::Complete)));
}

/// A lead that makes alice, who sleeps at what she is given first and is quick later.
fn alice_sleeps(seen: &Seen<'_>) -> MemberReply {
    match (seen.who.as_str(), seen.replies) {
        ("lead", 0) => MemberReply::Calls(vec![
            ("task_create", json!({"subject": "s", "description": "d"})),
            spawn("alice"),
        ]),
        ("lead", _) => begins(seen, Vec::new()),
        (_, 0) => text("I take work"),
        _ if seen.last.contains("| hurry") => text("quick"),
        _ if seen.last.starts_with("[claimed") => call("bash", json!({"command": "sleep 600"})),
        _ => text("done"),
    }
}

#[tokio::test]
async fn a_stopped_teammate_gives_its_task_back_tells_the_lead_and_rests_until_somebody_writes() {
    let rig = teams::rig(alice_sleeps).await;
    let runtime = rig.life(None).await;
    let mut play = Play::by(rig, runtime.clone()).await;
    play.until_event("alice", |event| event.kind() == "tool_started").await;
    let alice = play.member("alice").await.agent;
    runtime.stop_exchange(&alice, BY).await.unwrap();
    play.until_member(
        "alice",
        |alice| matches!(&alice.standing, Standing::Failed { why, .. } if why.contains(BY)),
    )
    .await;
    play.ended().await;
    assert!(play.times("lead", &format!("stopped by {BY}")) >= 1, "{}", play.read("lead"));
    let task = play.task(1).await;
    assert_eq!(task.state, TaskState::Pending, "others may take it");
    let asked = play.asked("alice").len();
    assert_eq!(asked, 2, "she did not begin again by herself");
    play.send("alice", "hurry").await;
    let play = play.resumed().await;
    play.until_asked("alice", asked + 1).await;
    let outcome = |event: &Event| matches!(event, Event::ExchangeClosed(e) if e.outcome.text() == "quick");
    play.until_event("alice", outcome).await;
}
