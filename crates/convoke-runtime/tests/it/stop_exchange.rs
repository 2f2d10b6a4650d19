//! A person stops what a lead is at: whatever it is in the middle of ends, nothing of it is sent again, and
//! what is said next is heard at once, in the same process or in another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_journal::{Location, StreamId};
use convoke_kernel::{AgentId, Amount, Event, FailureKind, Outcome, Ran};
use convoke_runtime::{
    Crash, DriveMode, DriveOutcome, Error, Moment, Notice, Runtime, Stop, StopLevel, Stopper,
};
use convoke_sim::{Reply, Script, calls, calls_many, says};
use serde_json::json;

use crate::scripted_team::{MemberReply, Seen, text};
use crate::support::{Rig, within};
use crate::team_play::{begins, spawn};
use crate::teams;

pub(crate) const BY: &str = "the person (Esc)";

/// Runs a command that does not come to an end, unless there is a file named quick.
fn sleeps() -> Reply {
    calls("bash", json!({"command": "echo begun; echo x > started; test -e quick || sleep 600"}))
        .saying("I look")
}

fn done(text: &str) -> Option<Outcome> {
    Some(Outcome::Ok { text: text.into() })
}

/// Waits until something has happened to an agent.
pub(crate) async fn until(rig: &Rig, agent: &AgentId, wanted: impl Fn(&Event) -> bool) {
    let reaches = async {
        let mut seen = 0;
        loop {
            let records = rig.journal.tail(&StreamId::from(agent), seen).await.unwrap();
            seen = records.last().map_or(seen, |record| record.seq);
            if records.iter().any(|record| wanted(&Event::decode(&record.event).unwrap())) {
                return;
            }
        }
    };
    within(reaches).await;
}

async fn until_there(rig: &Rig, name: &str) {
    let file = rig.work.path().join(name);
    let there = async {
        while !file.exists() {
            tokio::task::yield_now().await;
        }
    };
    within(there).await;
}

pub(crate) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::kind).collect()
}

pub(crate) fn stopped(outcome: Option<&Outcome>) -> bool {
    let Some(Outcome::Failed { kind, message, .. }) = outcome else { return false };
    *kind == FailureKind::Cancelled && message == &format!("stopped by {BY}")
}

/// Nothing is held for any agent any more.
pub(crate) async fn check_nothing_is_held(rig: &Rig, lead: &AgentId) {
    let session = rig.folded(lead).await.spec().unwrap().session.clone();
    let ledger = rig.life(None).await.ledger(&session).await.unwrap();
    assert_eq!(ledger.held(), Amount::ZERO);
}

async fn says_and_drives(rig: &Rig, lead: &AgentId, mode: DriveMode) -> DriveOutcome {
    let runtime = rig.life(None).await;
    runtime.say(lead, "next", "something else").await.unwrap();
    within(runtime.drive(lead, mode, Stop::never(), None)).await.unwrap()
}

/// Drives while this is done beside it.
async fn beside<T>(runtime: &Runtime, lead: &AgentId, doing: impl Future<Output = T>) -> (DriveOutcome, T) {
    let drive = runtime.drive(lead, DriveMode::New, Stop::never(), None);
    let (ended, done) = within(async { tokio::join!(drive, doing) }).await;
    (ended.unwrap(), done)
}

#[tokio::test]
async fn a_command_is_cut_off_and_words_that_waited_follow_at_once() {
    let rig = Rig::new(Script::new().conversation("*", [sleeps(), says("as you wish")])).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    assert!(!runtime.is_driven_here(&lead));
    let stop = async {
        until_there(&rig, "started").await;
        assert!(runtime.is_driven_here(&lead));
        runtime.say(&lead, "next", "something else").await.unwrap();
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let (ended, ()) = beside(&runtime, &lead, stop).await;
    assert_eq!(ended.outcome, done("as you wish"), "in the same drive");
    let events = rig.events(&lead).await;
    let finished = events.iter().find_map(|event| match event {
        Event::ToolFinished(e) => Some(e.result.clone()),
        _ => None,
    });
    let result = finished.unwrap();
    assert_eq!(result.ran, Ran::Interrupted);
    let told = format!("(interrupted: stopped by {BY}; the command was killed");
    assert!(result.text.starts_with("begun\n") && result.text.contains(&told), "{}", result.text);
    let closed = events.iter().find_map(|event| match event {
        Event::ExchangeClosed(e) => Some(e.outcome.clone()),
        _ => None,
    });
    assert!(stopped(closed.as_ref()), "{closed:?}");
    assert_eq!(closed.unwrap().text(), "I look");
    assert_eq!(rig.sim.requests().len(), 2);
    let messages = rig.sim.requests()[1].body["messages"].as_array().unwrap().len();
    assert_eq!(messages, 4, "what was asked, the call, its result, and what was said next");
    assert!(!runtime.is_driven_here(&lead));
    check_nothing_is_held(&rig, &lead).await;
}

#[tokio::test]
async fn a_reply_under_way_is_dropped_settled_at_its_bound_and_never_asked_for_again() {
    let rig = Rig::new(Script::new().conversation("*", [says("as you wish")])).await;
    let hold = rig.sim.hold("go", 0, 2);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let stop = async {
        hold.entered().await;
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let (ended, ()) = beside(&runtime, &lead, stop).await;
    assert!(stopped(ended.outcome.as_ref()), "{ended:?}");
    let row = ended.summary.unwrap();
    assert_eq!((row.can_go_on, row.failure), (false, Some(FailureKind::Cancelled)));
    hold.release();
    let session = rig.folded(&lead).await.spec().unwrap().session.clone();
    let ledger = runtime.ledger(&session).await.unwrap();
    assert!(ledger.held() == Amount::ZERO && ledger.spent().nano > 0, "{ledger:?}");
    let again = rig.resume(&lead).await.unwrap();
    assert!(stopped(again.outcome.as_ref()), "a resume goes on with nothing");
    assert_eq!(rig.sim.requests().len(), 1);
    let ended = says_and_drives(&rig, &lead, DriveMode::New).await;
    assert_eq!(ended.outcome, done("as you wish"));
    let last = rig.sim.requests()[1].body["messages"].clone();
    assert_eq!(last.as_array().unwrap().len(), 1, "what nobody answered was taken back: {last}");
}

#[tokio::test]
async fn what_was_drained_and_then_stopped_does_not_go_on_when_somebody_takes_it_up() {
    for mode in [DriveMode::New, DriveMode::Resume { changed: vec!["a.rs".into()] }] {
        let rig = Rig::new(Script::new().conversation(
            "*",
            [
                calls_many([
                    ("bash", json!({"command": "echo one"})),
                    ("bash", json!({"command": "echo two >> log"})),
                ]),
                says("other"),
            ],
        ))
        .await;
        let hold = rig.sim.hold("go", 0, 2);
        let runtime = rig.life(None).await;
        let lead = runtime.start(rig.start(), "go").await.unwrap();
        let (stopper, stop) = Stopper::new();
        let drains = async {
            hold.entered().await;
            stopper.ask(StopLevel::Drain);
            hold.release();
        };
        let (ended, ()) =
            within(async { tokio::join!(runtime.drive(&lead, DriveMode::New, stop, None), drains) }).await;
        assert_eq!(ended.unwrap().outcome, None);
        rig.life(None).await.stop_exchange(&lead, BY).await.unwrap();
        let ended = says_and_drives(&rig, &lead, mode).await;
        assert_eq!(ended.outcome, done("other"));
        assert_eq!((rig.sim.requests().len(), rig.read("log").as_str()), (2, ""), "the calls were not run");
        let waiting = rig.journal.inputs(&StreamId::from(&lead)).await.unwrap();
        assert!(waiting.is_empty(), "{waiting:?}");
    }
}

#[tokio::test]
async fn a_stop_cuts_off_what_a_drain_waits_for() {
    let rig = Rig::new(Script::new().conversation("*", [sleeps(), says("other")])).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let (stopper, stop) = Stopper::new();
    let stops = async {
        until_there(&rig, "started").await;
        stopper.ask(StopLevel::Drain);
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&lead, DriveMode::New, stop, None), stops) }).await;
    assert!(stopped(ended.unwrap().outcome.as_ref()));
    let ended = says_and_drives(&rig, &lead, DriveMode::New).await;
    assert_eq!(ended.outcome, done("other"));
}

#[tokio::test]
async fn one_that_is_idle_stays_as_it_is_and_one_that_was_never_driven_ends_as_soon_as_it_begins() {
    let rig = Rig::new(Script::new().conversation("*", [says("first"), says("second")])).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    let before = rig.events(&lead).await.len();
    runtime.stop_exchange(&lead, BY).await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert_eq!((ended.outcome, rig.events(&lead).await.len()), (done("first"), before));
    let ended = says_and_drives(&rig, &lead, DriveMode::New).await;
    assert_eq!(ended.outcome, done("second"), "it was not meant for what came later");
    let new = runtime.start(rig.start(), "never begun").await.unwrap();
    runtime.stop_exchange(&new, BY).await.unwrap();
    let ended = within(runtime.drive(&new, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert!(stopped(ended.outcome.as_ref()), "{ended:?}");
    assert_eq!(rig.sim.requests().len(), 2, "nothing was sent for it");
}

#[tokio::test]
async fn stopping_while_room_is_waited_for_gives_it_back() {
    let mut rig = Rig::new(Script::new().conversation("*", [says("other")])).await;
    rig.clock = convoke_runtime::Clock::system();
    let limited = convoke_sim::FaultKind::RateLimited { retry_after: Some(600), headers: true };
    rig.sim.push_fault(convoke_sim::Fault::new(limited));
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let stops = async {
        until(&rig, &lead, |event| event.kind() == "model_failed").await;
        runtime.stop_exchange(&lead, BY).await.unwrap();
    };
    let (ended, ()) = beside(&runtime, &lead, stops).await;
    assert!(stopped(ended.outcome.as_ref()));
    let ended = says_and_drives(&rig, &lead, DriveMode::New).await;
    assert_eq!(ended.outcome, done("other"));
    check_nothing_is_held(&rig, &lead).await;
}

/// One life in which the lead is stopped in the middle of a command with words behind it, cut at this commit;
/// then another one.
async fn crashed(cut: Option<(Moment, usize)>) -> usize {
    let mut rig = Rig::on(Location::Sqlite("journal.db".into()), {
        let looks = calls("bash", json!({"command": "echo looked"})).saying("first I look");
        Script::new().conversation("*", [looks, sleeps(), says("as you wish")])
    })
    .await;
    // A reply that was lost with its process is followed by other words, and not by the same request.
    rig.lost_replies = cut.is_some();
    let commits = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&commits);
    let crash = Crash::when(move |moment, _| {
        let number = match moment {
            Moment::BeforeCommit => counter.load(Ordering::SeqCst),
            Moment::AfterCommit => counter.fetch_add(1, Ordering::SeqCst),
        };
        cut == Some((moment, number))
    });
    let runtime = rig.life(Some(crash)).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let stops = async {
        until_there(&rig, "started").await;
        runtime.say(&lead, "next", "something else").await.unwrap();
        runtime.stop_exchange(&lead, BY).await.unwrap();
        std::future::pending::<()>().await;
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let ended = within(async {
        tokio::select! {
            ended = drive => ended,
            () = stops => unreachable!("it waits for the other one"),
        }
    })
    .await;
    drop(runtime);
    let ended = match ended {
        Ok(ended) => ended,
        Err(Error::Crashed) => {
            std::fs::write(rig.work.path().join("quick"), "").unwrap();
            let next = rig.life(None).await;
            next.say(&lead, "next", "something else").await.unwrap();
            let told = rig.events(&lead).await.iter().any(|event| event.kind() == "exchange_stopped");
            if !told {
                next.stop_exchange(&lead, BY).await.unwrap();
            }
            let resume = DriveMode::Resume { changed: vec![] };
            within(next.drive(&lead, resume, Stop::never(), None)).await.unwrap()
        }
        Err(error) => panic!("{cut:?}: {error:?}"),
    };
    let events = rig.events(&lead).await;
    let context = format!("{cut:?}: {:?}", kinds(&events));
    let count = |kind: &str| events.iter().filter(|event| event.kind() == kind).count();
    assert_eq!((count("exchange_stopped"), count("exchange_closed")), (1, 2), "{context}");
    assert_eq!(ended.outcome, done("as you wish"), "{context}");
    let spoken: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::ExchangeOpened(e) => Some(e.text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(spoken, ["go", "something else"], "{context}");
    check_nothing_is_held(&rig, &lead).await;
    commits.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_crash_around_any_commit_leaves_it_stopped_once_and_the_next_words_heard() {
    let commits = crashed(None).await;
    assert!(commits > 8, "{commits}");
    for number in 0..commits {
        for moment in [Moment::BeforeCommit, Moment::AfterCommit] {
            crashed(Some((moment, number))).await;
        }
    }
}

/// A lead that makes alice and takes note of everything else; alice says that she is done.
fn with_alice(seen: &Seen<'_>) -> MemberReply {
    match seen.who.as_str() {
        "lead" if seen.last.contains("how is it going") => text("alice is at it"),
        "lead" => begins(seen, vec![spawn("alice")]),
        _ => text("alice is done"),
    }
}

#[tokio::test]
async fn words_wake_a_lead_that_waits_for_its_team() {
    let rig = teams::rig(with_alice).await;
    let hold = rig.sim.hold("be alice", 0, 0);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "lead it").await.unwrap();
    let speaks = async {
        hold.entered().await;
        until(&rig, &lead, |event| event.kind() == "exchange_closed").await;
        runtime.say(&lead, "next", "how is it going?").await.unwrap();
        until(
            &rig,
            &lead,
            |event| matches!(event, Event::ExchangeClosed(e) if e.outcome.text() == "alice is at it"),
        )
        .await;
        hold.release();
    };
    let (ended, ()) = beside(&runtime, &lead, speaks).await;
    assert_eq!(ended.outcome, done("noted"), "what alice came to is read last");
}

#[tokio::test]
async fn words_said_while_a_lead_comes_to_its_end_are_heard_or_known_not_to_be() {
    let rig = Rig::new(Script::new().conversation("*", vec![says("ok"); 70])).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let mut heard_at_once = 0;
    for round in 0..20 {
        let (watcher, mut notices) = tokio::sync::mpsc::unbounded_channel();
        let when = if round % 4 == 0 { "model_called" } else { "exchange_closed" };
        let speaks = async {
            while let Some(notice) = notices.recv().await {
                if matches!(notice, Notice::Recorded { event, .. } if event.kind() == when) {
                    break;
                }
            }
            // A little later each time, so that it falls into every part of the end.
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            runtime.say(&lead, &format!("k{round}"), "more").await.unwrap();
            runtime.is_driven_here(&lead)
        };
        let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), Some(watcher));
        let (ended, driven) = within(async { tokio::join!(drive, speaks) }).await;
        assert_eq!(ended.unwrap().outcome, done("ok"));
        let waiting = rig.journal.inputs(&StreamId::from(&lead)).await.unwrap().len();
        assert!(!driven || waiting == 0, "round {round}: it was driven, and {waiting} inputs wait");
        heard_at_once += usize::from(driven);
        within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
        runtime.say(&lead, &format!("next{round}"), "go on").await.unwrap();
    }
    assert!(heard_at_once > 0, "some of it fell into the drive");
}

#[tokio::test]
async fn a_stopped_lead_hears_its_person_before_its_letters() {
    let rig = teams::rig(|seen: &Seen<'_>| match seen.who.as_str() {
        "lead" if seen.last.contains("something else") => text("as you wish"),
        "lead" => begins(seen, vec![spawn("alice")]),
        _ => text("alice is done"),
    })
    .await;
    let lead_hold = rig.sim.hold("lead it", 2, 1);
    let alice_hold = rig.sim.hold("be alice", 0, 0);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "lead it").await.unwrap();
    let stops = async {
        until(&rig, &lead, |event| event.kind() == "exchange_closed").await;
        alice_hold.release();
        // It reads what alice came to, and is stopped there.
        lead_hold.entered().await;
        runtime.stop_exchange(&lead, BY).await.unwrap();
        until(&rig, &lead, |event| event.kind() == "exchange_stopped").await;
        runtime.say(&lead, "next", "something else").await.unwrap();
    };
    let (_, ()) = beside(&runtime, &lead, stops).await;
    let opened: Vec<String> = rig
        .events(&lead)
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::ExchangeOpened(e) => Some(e.text),
            _ => None,
        })
        .collect();
    assert_eq!(opened[..3], ["lead it", "mail from alice", "something else"], "{opened:?}");
    let last = rig.sim.requests().last().unwrap().body["messages"].to_string();
    assert_eq!(
        last.matches("alice is done").count(),
        1,
        "the letter went back and was read after all: {last}"
    );
}
