//! What an agent learns about its server, fed by hand: what is left out, what stays byte for byte, and that
//! it ends.

use serde_json::Value;

use super::tests::{Bench, says};
use super::tests_roles::{lead, of, say};
use super::*;
use crate::event::EndpointLearnt;
use crate::lesson::{Feature, Learnt, Refused};
use crate::wire::{Failure, FailureKind, Retry};

const HERE: &str = "http://gate";

fn refuses(bench: &mut Bench, fields: &[Feature]) -> Vec<&'static str> {
    let (call, attempt) = bench.call();
    let failure = Failure {
        kind: FailureKind::Api,
        message: "the API answered 400".into(),
        retry: Retry::Never,
        request_id: None,
        unbilled: true,
        refused: Some(Box::new(Refused { endpoint: HERE.into(), fields: fields.to_vec(), window: None })),
    };
    bench.feed(Input::Failed { call, attempt, failure })
}

fn names(bench: &Bench) -> Vec<String> {
    bench.agent.request().unwrap().params.into_iter().map(|param| param.name).collect()
}

#[test]
fn a_field_that_is_refused_is_left_out_and_the_request_sent_again_at_once() {
    let mut bench = Bench::asked(30, "look");
    let before = bench.agent.request().unwrap();
    assert!(before.is_marked() && before.system.as_str().contains("cache_control"));
    let learnt = ["model_failed", "endpoint_learnt", "model_called"];
    assert_eq!(refuses(&mut bench, &[Feature::CacheMarks]), learnt);
    let now = bench.agent.request().unwrap();
    assert!(!now.is_marked() && !now.system.as_str().contains("cache_control"));
    assert_eq!(
        now.system.as_str(),
        before.system.as_str().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    );
    assert_eq!(
        (now.messages, &now.spec.tools),
        (before.messages, &before.spec.tools),
        "the rest stays byte for byte"
    );
    assert_eq!(refuses(&mut bench, &[Feature::Thinking, Feature::Effort]), learnt);
    assert_eq!(names(&bench), [""; 0]);
    assert_eq!(
        (bench.agent.request().unwrap().version, refuses(&mut bench, &[Feature::Version])),
        (None, learnt.to_vec())
    );
    assert_eq!(bench.agent.request().unwrap().version, Some("2023-06-01"));
    let mut folded = Agent::new();
    bench.events.iter().for_each(|event| folded.apply(event, 0).unwrap());
    let again = folded.request().unwrap();
    assert_eq!(
        (again.params.len(), again.version, folded.lessons().len()),
        (0, Some("2023-06-01"), 3),
        "a resume knows it"
    );
    assert_eq!(bench.replies(says("seen")), ["model_replied", "exchange_closed"]);
}

#[test]
fn refusals_that_teach_count_for_no_attempt_and_one_that_teaches_nothing_ends_it() {
    let mut bench = Bench::asked(30, "look");
    bench.events.clear();
    for feature in [Feature::CacheMarks, Feature::Thinking, Feature::Effort, Feature::Version] {
        refuses(&mut bench, &[feature]);
        let Stage::Calling(asking) = &bench.agent.state.stage else {
            panic!("{:?}", bench.agent.state.stage)
        };
        assert_eq!(asking.failures, 0);
    }
    assert_eq!(refuses(&mut bench, &[Feature::Effort]), ["model_failed", "exchange_closed"]);
    bench.failed_as(FailureKind::Api, "");
}

#[test]
fn a_system_message_that_is_refused_stands_in_the_user_message_before_it_from_then_on() {
    let mut bench = of(lead(true, true, 30), "look");
    let before = bench.agent.request().unwrap().messages;
    assert_eq!(bench.outline(), "user(text) system(text)");
    assert_eq!(
        refuses(&mut bench, &[Feature::SystemRole]),
        ["model_failed", "endpoint_learnt", "model_called"]
    );
    let folded = bench.agent.request().unwrap().messages;
    assert_eq!(
        (bench.outline().as_str(), folded.len()),
        ("user(text) system(text)", 1),
        "the history stays as it was recorded"
    );
    assert!(folded[0].as_str().starts_with(before[0].as_str().strip_suffix("]}").unwrap()));
    let value: Value = serde_json::from_str(folded[0].as_str()).unwrap();
    let said = value["content"][1]["text"].as_str().unwrap();
    assert!(
        said.starts_with("<system-reminder>\n[orchestration mode: on]")
            && said.ends_with("</system-reminder>"),
        "{said}"
    );
    bench.replies(says("seen"));
    say(&mut bench, "more");
    let later = bench.agent.request().unwrap().messages;
    assert_eq!(later[0], folded[0], "one request begins as the one before it did");
    assert!(later.iter().all(|message| !message.as_str().contains(r#""role":"system""#)));
}

#[test]
fn what_others_have_learnt_is_taken_over_once_and_another_server_begins_anew() {
    let mut bench = Bench::asked(30, "look");
    let learn = |endpoint: &str, lacks: &[Feature], how: Learnt| Input::Learn {
        learnt: Box::new(EndpointLearnt {
            endpoint: endpoint.into(),
            model: "claude-opus-4-8".into(),
            lacks: lacks.to_vec(),
            how,
            said: String::new(),
            window: None,
        }),
    };
    let digest = |bench: &Bench| bench.agent.state.prefix;
    let whole = digest(&bench);
    assert_eq!(bench.feed(learn(HERE, &[Feature::Effort], Learnt::Heard)), ["endpoint_learnt"]);
    assert_eq!(bench.feed(learn(HERE, &[Feature::Effort], Learnt::Heard)), [""; 0]);
    assert_eq!(bench.feed(learn(HERE, &[Feature::CacheMarks], Learnt::Ignored)), ["endpoint_learnt"]);
    assert_eq!(
        (names(&bench).join(" ").as_str(), digest(&bench) == whole),
        ("thinking cache_control", false)
    );
    assert_eq!(bench.feed(learn(HERE, &[], Learnt::Moved)), [""; 0]);
    assert_eq!(bench.feed(learn("http://other", &[], Learnt::Moved)), ["endpoint_learnt"]);
    assert_eq!(
        (names(&bench).join(" ").as_str(), digest(&bench)),
        ("thinking output_config cache_control", whole)
    );
}

#[test]
fn a_refusal_of_system_messages_teaches_nothing_to_an_agent_that_sent_none() {
    let mut bench = Bench::asked(30, "look");
    assert!(bench.agent.spec().unwrap().capabilities.system_role);
    assert_eq!(refuses(&mut bench, &[Feature::SystemRole]), ["model_failed", "exchange_closed"]);
    assert_eq!(bench.agent.lessons(), []);
}
