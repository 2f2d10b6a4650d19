//! Words that wait: those that would fail like the last ones are kept, and those that a person takes back are
//! not said.

use convoke_kernel::{Event, FailureKind, Outcome, TAKEN_BACK};
use convoke_runtime::{DriveMode, Stop};
use convoke_sim::{Fault, FaultKind, Script, says};

use crate::support::{Rig, within};

fn answer(text: &str) -> Option<Outcome> {
    Some(Outcome::Ok { text: text.into() })
}

#[tokio::test]
async fn words_behind_one_that_could_not_be_answered_wait_and_are_said_in_their_order() {
    let rig = Rig::new(Script::new().conversation("*", [says("first"), says("second"), says("third")])).await;
    rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("not now".into())));
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "one").await.unwrap();
    runtime.say(&lead, "two", "two").await.unwrap();
    runtime.say(&lead, "three", "three").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert_eq!(ended.outcome.and_then(|outcome| outcome.failure()), Some(FailureKind::Api));
    assert_eq!(rig.sim.requests().len(), 1, "what waits would fail like the first");
    let ended = within(runtime.drive(&lead, DriveMode::Resume { changed: Vec::new() }, Stop::never(), None))
        .await
        .unwrap();
    assert_eq!(ended.outcome, answer("third"));
    let said: Vec<String> = rig
        .events(&lead)
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::ExchangeOpened(e) => Some(e.text),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["one", "one", "two", "three"], "the first was taken back and offered again");
}

#[tokio::test]
async fn words_that_are_taken_back_are_not_said_and_it_is_recorded_that_they_were() {
    let rig = Rig::new(Script::new().conversation("*", [says("first"), says("last")])).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "one").await.unwrap();
    within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert_eq!(runtime.unsay(&lead).await.unwrap(), Vec::<String>::new());
    runtime.say(&lead, "two", "two").await.unwrap();
    runtime.say(&lead, "three", "three").await.unwrap();
    runtime.set_mode(&lead, "mode", false).await.unwrap();
    assert_eq!(runtime.unsay(&lead).await.unwrap(), ["two", "three"]);
    runtime.say(&lead, "four", "four").await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert_eq!(ended.outcome, answer("last"));
    assert_eq!(rig.sim.requests().len(), 2);
    let events = rig.events(&lead).await;
    let taken = |event: &&Event| matches!(event, Event::InputRejected(e) if e.why == TAKEN_BACK);
    assert_eq!(events.iter().filter(taken).count(), 2);
    let opened = events.iter().filter(|event| matches!(event, Event::ExchangeOpened(_))).count();
    assert_eq!(opened, 2);
}
