//! Another model or effort, fed by hand: what changes, what stays byte for byte, and when it is refused
//! before anything is recorded.

use super::tests::{Bench, calls, says, spec};
use super::tests_mail::in_team;
use super::tests_roles::{lead, of, say};
use super::*;
use crate::event::Retuned;
use crate::ledger::{RateTier, Rates};
use crate::spec::Role;
use crate::wire::{Capabilities, FailureKind, Reply, Retry, Thinking, Usage};

const OTHER: &str = "claude-sonnet-5";

/// What another model accepts; as the one before it unless told otherwise.
fn accepting(change: impl FnOnce(&mut Capabilities)) -> Capabilities {
    let mut capabilities = spec(30).capabilities;
    change(&mut capabilities);
    capabilities
}

fn rates() -> Rates {
    Rates {
        tiers: vec![RateTier { above: 0, input: 3, output: 15 }],
        overhead_tokens: 0,
        output_per_second: None,
    }
}

fn to(model: &str, capabilities: Capabilities) -> Input {
    Input::Retune { model: model.into(), capabilities, rates: Some(rates()) }
}

/// One whose first exchange was answered.
fn answered(spec: AgentSpec) -> Bench {
    let mut bench = of(spec, "look");
    bench.replies(says("seen"));
    bench
}

fn refused(bench: &Bench, input: Input) -> Unexpected {
    bench.agent.decide(input, 1, Pace::Go).unwrap_err()
}

#[test]
fn another_model_changes_what_is_asked_and_not_a_byte_of_what_was_said() {
    let mut bench = answered(lead(false, true, 30));
    let before = bench.agent.spec().unwrap().clone();
    let history = bench.agent.history().to_vec();
    let less = accepting(|it| {
        it.effort = Some("low".into());
        it.thinking = Thinking::Omit;
        it.max_output = 20_000;
    });
    assert_eq!(bench.feed(to(OTHER, less.clone())), ["retuned"]);
    let now = bench.agent.spec().unwrap().clone();
    assert_eq!((now.model.as_str(), &now.capabilities, &now.rates), (OTHER, &less, &Some(rates())));
    assert_eq!((&now.system, &now.tools, &now.fan_out), (&before.system, &before.tools, &before.fan_out));
    assert_eq!(bench.agent.history(), history);
    let names: Vec<&str> = now.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(names, ["output_config", "cache_control"]);
    assert_eq!(now.params[0].value.as_str(), r#"{"effort":"low"}"#);
    let summary = bench.agent.summary().unwrap();
    assert_eq!((summary.model.as_str(), summary.effort.as_deref()), (OTHER, Some("low")));

    say(&mut bench, "more");
    let request = bench.agent.request().unwrap();
    assert_eq!((request.spec.model.as_str(), request.max_tokens), (OTHER, 20_000));
    assert_eq!(request.messages[..history.len()], history);
    assert_eq!(request.params, now.params);
}

#[test]
fn what_the_journal_holds_leads_to_the_same_agent_again() {
    let mut bench = answered(lead(true, true, 30));
    let asked_before = bench.agent.state.prefix;
    let digest = bench.agent.state.mark.digest;
    bench.feed(to(OTHER, accepting(|it| it.effort = None)));
    let mut folded = Agent::new();
    bench.events.iter().for_each(|event| folded.apply(event, 0).unwrap());
    assert_eq!(folded.state.mark, bench.agent.state.mark);
    assert_eq!(folded.spec(), bench.agent.spec());
    assert_ne!(folded.state.prefix, asked_before, "siblings of the old make are no siblings any more");
    assert_ne!(folded.state.mark.digest, digest);
}

#[test]
fn choosing_what_there_is_records_nothing() {
    let mut bench = answered(spec(30));
    assert_eq!(bench.feed(to(OTHER, accepting(|_| {}))), ["retuned"]);
    assert_eq!(bench.feed(to(OTHER, accepting(|_| {}))), [""; 0]);
    assert_eq!(bench.feed(to(OTHER, accepting(|it| it.effort = Some("max".into())))), ["retuned"]);
}

#[test]
fn only_an_idle_agent_is_given_another_model() {
    let bench = Bench::asked(30, "look");
    assert_eq!(refused(&bench, to(OTHER, accepting(|_| {}))), Unexpected::Busy);
    let event =
        Retuned { model: OTHER.into(), capabilities: accepting(|_| {}), rates: None, params: Vec::new() };
    assert!(bench.agent.clone().apply(&event.into(), 1).is_err(), "nor can a journal hold it there");
    assert_eq!(
        bench.agent.may_retune(OTHER, &accepting(|_| {})),
        Ok(()),
        "it can be chosen meanwhile, and waits"
    );
}

#[test]
fn only_a_lead_is_given_another_model() {
    let worker = lead(true, true, 30).child(Role::Worker, "a part", 1).unwrap();
    let bench = of(worker, "look");
    assert_eq!(bench.agent.may_retune(OTHER, &accepting(|_| {})), Err(RetuneRefused::NotALead));
    assert_eq!(Agent::new().may_retune(OTHER, &accepting(|_| {})), Err(RetuneRefused::NotALead));
}

#[test]
fn a_history_with_system_messages_is_not_given_to_a_model_that_takes_none() {
    let check = |mode: bool, takes: bool, refuses: bool| {
        let bench = answered(lead(mode, true, 30));
        let wanted = accepting(|it| it.system_role = takes);
        let expected = match refuses {
            true => Err(RetuneRefused::SystemMessages { model: OTHER.into() }),
            false => Ok(()),
        };
        assert_eq!(bench.agent.may_retune(OTHER, &wanted), expected, "mode {mode}, takes them {takes}");
        if let Err(why) = expected {
            assert_eq!(refused(&bench, to(OTHER, wanted)), Unexpected::Retune(why));
        }
    };
    check(true, false, true);
    check(true, true, false);
    check(false, false, false);
}

#[test]
fn system_messages_that_were_taken_back_are_in_nobodys_way() {
    let mut bench = of(lead(true, true, 30), "look");
    bench.fails(FailureKind::Api, Retry::Never);
    assert!(bench.agent.history().is_empty());
    bench.feed(to(OTHER, accepting(|it| it.system_role = false)));
    say(&mut bench, "look");
    assert_eq!(bench.outline(), "user(text,text)", "the section stands in the user message from now on");
}

#[test]
fn tools_that_would_have_to_be_declared_differently_are_a_reason_to_begin_anew() {
    let bench = answered(spec(30));
    for other in [accepting(|it| it.anthropic_tools = false), accepting(|it| it.cache_marks = false)] {
        let why = bench.agent.may_retune(OTHER, &other).unwrap_err();
        assert_eq!(why, RetuneRefused::OtherServer { model: OTHER.into() });
        assert!(why.to_string().contains("/new"), "{why}");
    }
}

#[test]
fn a_history_that_does_not_fit_the_new_window_is_shortened_first() {
    let mut bench = of(spec(30), "look");
    let usage = Usage { input_tokens: 95_000, output_tokens: 5, ..Usage::default() };
    bench.replies(Box::new(Reply { usage, ..*says("seen") }));
    let why = bench.agent.may_retune(OTHER, &accepting(|it| it.window = 100_000)).unwrap_err();
    assert_eq!(why, RetuneRefused::TooLong { model: OTHER.into(), tokens: 95_005, window: 100_000 });
    assert_eq!(bench.agent.may_retune(OTHER, &accepting(|it| it.window = 200_000)), Ok(()));
}

#[test]
fn the_bound_of_the_next_request_allows_for_another_way_of_counting() {
    let asks = |model: &str, tokens: u64| {
        let mut bench = of(spec(30), "look");
        let usage = Usage { input_tokens: tokens, output_tokens: 5, ..Usage::default() };
        bench.replies(Box::new(Reply { usage, ..*says("seen") }));
        bench.feed(to(model, accepting(|it| it.effort = None)));
        (bench.agent.state.mark.tokens, bench.agent.state.mark.bytes)
    };
    assert_eq!(asks(&spec(30).model, 1_000).0, 1_005, "the same model counts alike, whatever the effort");
    assert_eq!(asks(OTHER, 1_000).0, 2_010);
    let (tokens, bytes) = asks(OTHER, 2_000);
    assert!(
        tokens == bytes && bytes > 2_005 && bytes < 4_010,
        "never more than one for a byte: {tokens}, {bytes}"
    );
    assert_eq!(asks(OTHER, 90_000).0, 90_005, "and never less than what was counted");
}

#[test]
fn a_new_history_begins_at_the_same_share_of_the_window() {
    let mut bench = answered(in_team(spec(30), 750_000));
    let at = |bench: &Bench| bench.agent.spec().unwrap().team.as_ref().unwrap().compact_at;
    bench.feed(to(OTHER, accepting(|it| it.window = 200_000)));
    assert_eq!(at(&bench), 150_000);
    bench.feed(to("claude-opus-4-8", accepting(|_| {})));
    assert_eq!(at(&bench), 750_000);
}

#[test]
fn one_shot_agents_follow_the_lead_and_workers_stay_as_the_session_was_begun() {
    let mut bench = answered(lead(true, true, 30));
    bench.feed(to(OTHER, accepting(|_| {})));
    let made = |role| bench.agent.spec().unwrap().child(role, "a part", 0).unwrap().model;
    assert_eq!((made(Role::Task).as_str(), made(Role::Worker).as_str()), (OTHER, "claude-opus-4-8"));
}

#[test]
fn a_failed_exchange_goes_on_with_the_model_chosen_since() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    bench.fails(FailureKind::Api, Retry::Never);
    bench.feed(to(OTHER, accepting(|_| {})));
    assert_eq!(
        bench.feed(Input::Resume { changed: vec![] }),
        ["resumed", "exchange_reopened", "model_called"]
    );
    assert_eq!(bench.agent.request().unwrap().spec.model, OTHER);
}
