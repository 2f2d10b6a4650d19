//! Forks against the simulator: the same bytes, the original's cache, nothing paid for the turns before, and
//! nothing of the original touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use convoke_journal::{Filter, Location, StreamId};
use convoke_kernel::{
    Agent, AgentId, Caps, Event, LEAD, Membership, Outcome, SessionId, Status, Summary, Usage,
};
use convoke_runtime::{
    Crash, DriveMode, Error, ForkRefused, Ids, Moment, Retune, Runtime, Stop, summary_of_waiting,
};
use convoke_sim::{Reply, Script, SimClock, SimConfig, calls, says};
use serde_json::json;

use crate::support::{Rig, within};

/// A simulator whose clock ticks whenever it is looked at, so that what was said before can be read from its
/// cache.
fn ticking(replies: impl IntoIterator<Item = Reply>) -> SimConfig {
    let ticks = AtomicU64::new(1);
    let clock = SimClock::following(move || ticks.fetch_add(1, Ordering::SeqCst));
    SimConfig { clock, ..SimConfig::from(Script::new().conversation("*", replies)) }
}

async fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let mut rig = Rig::new(ticking(replies)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.forks = true;
    rig
}

fn replies() -> Vec<Reply> {
    let look = calls("bash", json!({"command": "echo one"})).thinking("where to look");
    vec![look, says("first"), says("second"), says("third"), says("fourth")]
}

async fn drive(runtime: &Runtime, agent: &AgentId) -> Option<Outcome> {
    within(runtime.drive(agent, DriveMode::New, Stop::never(), None)).await.unwrap().outcome
}

async fn say(runtime: &Runtime, agent: &AgentId, text: &str) -> String {
    runtime.say(agent, text, text).await.unwrap();
    drive(runtime, agent).await.unwrap().text().to_owned()
}

/// A session of two exchanges.
async fn two_exchanges(rig: &Rig, runtime: &Runtime) -> AgentId {
    let lead = runtime.start(rig.start(), "look").await.unwrap();
    drive(runtime, &lead).await.unwrap();
    assert_eq!(say(runtime, &lead, "and then?").await, "second");
    lead
}

fn texts(agent: &Agent) -> Vec<String> {
    agent.history().iter().map(|message| message.as_str().to_owned()).collect()
}

#[tokio::test]
async fn the_first_request_of_a_fork_reads_the_originals_cache_and_is_all_it_pays_for() {
    let rig = rig(replies()).await;
    let runtime = rig.life(None).await;
    let lead = two_exchanges(&rig, &runtime).await;
    let caps = Caps { tokens: Some(500_000), ..Caps::default() };
    let (fork, session) = runtime.fork(&lead, None, caps).await.unwrap();
    assert_eq!(drive(&runtime, &fork).await, None, "it stands idle");
    assert_eq!(rig.sim.requests().len(), 3, "nothing was sent");
    let stands = rig.folded(&fork).await;
    assert_eq!(texts(&stands), texts(&rig.folded(&lead).await), "the same bytes");
    let summary = stands.summary().unwrap();
    assert_eq!((summary.turns, summary.usage, summary.cost_nano), (0, Usage::default(), Some(0)));

    assert_eq!(say(&runtime, &fork, "what now?").await, "third");
    let requests = rig.sim.requests();
    let before = &requests[2];
    let first = &requests[3];
    let usage = first.usage.unwrap();
    let known = *before.prefix_tokens.last().unwrap();
    println!(
        "the fork's first request read {} of {} tokens from the cache",
        usage.cache_read_tokens,
        usage.prompt_tokens()
    );
    assert_eq!(usage.cache_read_tokens, known, "all that the original had sent");
    let summary = rig.folded(&fork).await.summary().unwrap();
    let cost = rig.sim.bill().lines[3].nano_dollars;
    assert_eq!(
        (summary.turns, summary.usage.prompt_tokens(), summary.cost_nano),
        (1, usage.prompt_tokens(), Some(cost))
    );
    let ledger = runtime.ledger(&session).await.unwrap();
    assert_eq!((ledger.caps(), ledger.spent().nano), (caps, cost));
    assert_eq!(
        rig.events(&lead).await.iter().filter(|event| matches!(event, Event::ModelCalled(_))).count(),
        3
    );
}

#[tokio::test]
async fn a_session_is_forked_at_any_closed_exchange_and_goes_on_as_if_nothing_had_been() {
    let rig = rig(replies()).await;
    let runtime = rig.life(None).await;
    let lead = two_exchanges(&rig, &runtime).await;
    let whole = texts(&rig.folded(&lead).await);
    let (early, _) = runtime.fork(&lead, Some(1), Caps::default()).await.unwrap();
    let (late, _) = runtime.fork(&lead, Some(2), Caps::default()).await.unwrap();
    assert_eq!(say(&runtime, &early, "another way?").await, "second");
    drive(&runtime, &late).await;
    let early = texts(&rig.folded(&early).await);
    // user, section, reply with a call, its result, reply: the mode is known and not told again.
    assert_eq!((&early[..5], early.len()), (&whole[..5], 7));
    assert_eq!(texts(&rig.folded(&late).await), whole);
    assert_eq!(say(&runtime, &lead, "go on").await, "third", "the original goes on");
    let unknown = runtime.fork(&lead, Some(9), Caps::default()).await.unwrap_err();
    assert_eq!(
        unknown.to_string(),
        format!(
            "{lead} has no exchange 9 (the last one is 3); `convoke sessions show` tells them with their numbers"
        )
    );
}

#[tokio::test]
async fn forking_needs_no_lease_and_disturbs_nobody() {
    let rig = rig(replies()).await;
    let driving = rig.live().await;
    let lead = driving.start(rig.start(), "look").await.unwrap();
    drive(&driving, &lead).await.unwrap();
    let hold = rig.sim.hold("look", 2, 1);
    driving.say(&lead, "more", "and then?").await.unwrap();
    let busy = lead.clone();
    let controller = rig.controller().await;
    let under_way = tokio::spawn(async move { drive(&driving, &busy).await });
    within(hold.entered()).await;
    let open = controller.fork(&Ids::random(), &lead, Some(2), Caps::default()).await.unwrap_err();
    assert!(matches!(open, Error::ForkRefused(ForkRefused::StillOpen { at: 2, .. })), "{open}");
    let (fork, session) = controller.fork(&Ids::random(), &lead, None, Caps::default()).await.unwrap();
    let other = rig.life(None).await;
    drive(&other, &fork).await;
    let stands = rig.folded(&fork).await;
    assert_eq!((stands.history().len(), &stands.spec().unwrap().session), (5, &session));
    hold.release();
    assert_eq!(within(under_way).await.unwrap(), Some(Outcome::Ok { text: "second".into() }));
}

#[tokio::test]
async fn a_history_is_forked_as_it_stood_before_a_new_one_began() {
    let mut rig = rig([says("first"), calls("compact", json!({})), says("a summary")]).await;
    let word = |text: &str| text.to_owned();
    rig.membership = Some(Membership {
        name: word(LEAD),
        role: word(LEAD),
        team: word("red"),
        requires_plan: false,
        compact_at: 1_000_000,
        project: None,
    });
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "look").await.unwrap();
    drive(&runtime, &lead).await.unwrap();
    let before = texts(&rig.folded(&lead).await);
    say(&runtime, &lead, "shorten it").await;
    let after = texts(&rig.folded(&lead).await);
    assert!(after[0].contains("a summary") && after[0] != before[0], "{after:?}");
    for (at, expected) in [(Some(1), before), (None, after)] {
        let (fork, _) = runtime.fork(&lead, at, Caps::default()).await.unwrap();
        drive(&runtime, &fork).await;
        assert_eq!(texts(&rig.folded(&fork).await), expected, "{at:?}");
    }
}

/// What a listing shows of an agent that has not been driven.
async fn waiting(rig: &Rig, agent: &AgentId) -> Summary {
    let inputs = rig.journal.inputs(&StreamId::from(agent)).await.unwrap();
    inputs.iter().find_map(|input| summary_of_waiting(input, 7)).unwrap()
}

#[tokio::test]
async fn a_fork_that_nobody_has_driven_is_listed_and_can_be_forked_and_outlives_the_original() {
    let rig = rig(replies()).await;
    let runtime = rig.life(None).await;
    let lead = two_exchanges(&rig, &runtime).await;
    let original = rig.folded(&lead).await.spec().unwrap().session.clone();
    let (fork, session) = runtime.fork(&lead, None, Caps::default()).await.unwrap();
    let row = waiting(&rig, &fork).await;
    assert_eq!((row.task.as_str(), row.status, row.can_go_on, row.turns), ("look", Status::Open, false, 0));
    assert_eq!((&row.session, &row.forked_from), (&session, &Some(original.clone())));
    let (again, _) = runtime.fork(&fork, None, Caps::default()).await.unwrap();
    assert_eq!(waiting(&rig, &again).await.forked_from, Some(session));
    assert_eq!(waiting(&rig, &again).await.task, "look");

    let streams = [StreamId::from(&lead), StreamId::from(&original)];
    rig.journal.prune(&streams).await.unwrap();
    let all =
        rig.journal.list(&Filter { prefix: Some(AgentId::PREFIX.to_owned()), limit: None }).await.unwrap();
    assert!(all.iter().all(|listing| listing.stream != streams[0]));
    assert_eq!(say(&runtime, &again, "what now?").await, "third");
    assert_eq!(say(&runtime, &fork, "what now?").await, "third");
}

#[tokio::test]
async fn what_cannot_be_forked_is_said_and_leaves_nothing_behind() {
    let rig = rig(replies()).await;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "look").await.unwrap();
    let check = async |agent: &AgentId, at: Option<u32>, expected: &str| {
        let error = runtime.fork(agent, at, Caps::default()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&lead, None, "has answered nothing yet").await;
    check(&lead, Some(1), "has no exchange 1 (it has none)").await;
    check(&AgentId::from_bits([3; 10]), None, "there is no agent").await;
    let all =
        rig.journal.list(&Filter { prefix: Some(SessionId::PREFIX.to_owned()), limit: None }).await.unwrap();
    assert_eq!(all.len(), 1, "no budget was granted for nobody");
    drive(&runtime, &lead).await.unwrap();
}

#[tokio::test]
async fn a_fork_is_made_of_what_the_original_was_made_of_by_then() {
    let mut rig = rig(replies()).await;
    rig.retunes = 1;
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "look").await.unwrap();
    drive(&runtime, &lead).await.unwrap();
    let mut capabilities = rig.start().capabilities;
    capabilities.effort = Some("low".into());
    let before = rig.folded(&lead).await.spec().unwrap().clone();
    runtime.retune(&lead, "low", Retune { model: before.model.clone(), capabilities }).await.unwrap();
    runtime.set_mode(&lead, "off", false).await.unwrap();
    assert_eq!(say(&runtime, &lead, "and then?").await, "second");
    let effort = async |at| {
        let (fork, _) = runtime.fork(&lead, at, Caps::default()).await.unwrap();
        drive(&runtime, &fork).await;
        let agent = rig.folded(&fork).await;
        (agent.spec().unwrap().capabilities.effort.clone().unwrap(), agent.mode())
    };
    assert_eq!(effort(None).await, ("low".to_owned(), Some(false)));
    // What was chosen between two exchanges belongs to the one before: it was chosen by then.
    assert_eq!(effort(Some(1)).await, ("low".to_owned(), Some(false)));
}

/// Forks a session and says something to the fork; the process dies at this commit.
async fn run(cut: Option<(Moment, usize)>) -> (Vec<String>, usize, usize) {
    let sim = ticking([
        says("first"),
        calls("bash", json!({"command": "echo two"})),
        says("second"),
        says("third"),
    ]);
    let mut rig = Rig::on(Location::Sqlite("journal.db".into()), sim).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.forks = true;
    let lead = {
        let runtime = rig.life(None).await;
        let lead = runtime.start(rig.start(), "look").await.unwrap();
        drive(&runtime, &lead).await.unwrap();
        lead
    };
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
    let (fork, _) = runtime.fork(&lead, None, Caps::default()).await.unwrap();
    runtime.say(&fork, "now", "what now?").await.unwrap();
    let ended = within(runtime.drive(&fork, DriveMode::New, Stop::never(), None)).await;
    drop(runtime);
    let ended = match (ended, cut) {
        (Ok(ended), None) => ended,
        (Err(Error::Crashed), Some(_)) => rig.resume(&fork).await.unwrap(),
        (other, cut) => panic!("{cut:?}: {other:?}"),
    };
    let text = ended.outcome.unwrap_or_else(|| panic!("{cut:?}: no outcome")).text().to_owned();
    let kinds: Vec<&str> = rig.events(&fork).await.iter().map(Event::kind).collect();
    let forks = kinds.iter().filter(|kind| ["agent_started", "history_forked"].contains(*kind)).count();
    assert_eq!((forks, text.as_str()), (2, "second"), "{cut:?}: {kinds:?}");
    let history = texts(&rig.folded(&fork).await);
    (history, rig.sim.requests().len(), commits.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_crash_around_any_commit_of_a_fork_loses_and_repeats_nothing() {
    let (whole, requests, commits) = run(None).await;
    for number in 0..commits {
        for moment in [Moment::BeforeCommit, Moment::AfterCommit] {
            let (history, sent, _) = run(Some((moment, number))).await;
            assert!(sent <= requests + 1, "{moment:?} {number}: {sent} requests");
            assert_eq!(history.len(), whole.len(), "{moment:?} {number}");
            assert_eq!(history[..4], whole[..4], "{moment:?} {number}");
        }
    }
    println!("{commits} commits of a fork, cut before and after each");
    assert!(commits >= 5);
}
