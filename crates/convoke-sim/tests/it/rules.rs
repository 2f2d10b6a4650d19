//! Every rule refuses what it should, with the API's own words, and lets something very similar pass.

use std::collections::BTreeSet;

use convoke_sim::{EndpointKind, Retention, Rule, SimConfig, Simulator, Verdict};
use serde_json::{Value, json};

use crate::client::{RawRequest, chatter, start};
use crate::{rules_content, rules_parameters, rules_system};

/// Large enough for the longest legal request of the table, small enough to be passed by a test.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// A request that a rule refuses, and one that differs as little as possible and passes.
pub(crate) struct Case {
    rule: Rule,
    text: String,
    endpoint: EndpointKind,
    refused: RawRequest,
    passes: RawRequest,
    /// What the text begins and ends with, where it holds a number that only the simulator knows.
    ends: Option<(&'static str, &'static str)>,
}

/// A case for Anthropic's server; both closures change the same legal request.
pub(crate) fn case(
    rule: Rule,
    text: &str,
    refused: impl Fn(&mut RawRequest),
    passes: impl Fn(&mut RawRequest),
) -> Case {
    let ask = |change: &dyn Fn(&mut RawRequest)| {
        let mut ask = RawRequest::new("rules");
        change(&mut ask);
        ask
    };
    let endpoint = EndpointKind::Anthropic;
    Case { rule, text: text.to_owned(), endpoint, refused: ask(&refused), passes: ask(&passes), ends: None }
}

/// A case in which one member of the body is what differs.
pub(crate) fn member(rule: Rule, text: &str, name: &'static str, refused: Value, passes: Value) -> Case {
    case(rule, text, |ask| ask.body[name] = refused.clone(), |ask| ask.body[name] = passes.clone())
}

impl Case {
    /// The same on this model.
    pub(crate) fn on(mut self, model: &str) -> Self {
        self.refused.body["model"] = json!(model);
        self.passes.body["model"] = json!(model);
        self
    }

    /// The same with this header.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.refused.header(name, value);
        self.passes.header(name, value);
        self
    }

    /// A further change to the request that is refused.
    pub(crate) fn refusing(mut self, change: impl Fn(&mut RawRequest)) -> Self {
        change(&mut self.refused);
        self
    }

    /// A further change to the request that passes.
    pub(crate) fn passing(mut self, change: impl Fn(&mut RawRequest)) -> Self {
        change(&mut self.passes);
        self
    }

    /// A further change to both requests.
    pub(crate) fn both(self, change: impl Fn(&mut RawRequest)) -> Self {
        self.refusing(&change).passing(&change)
    }

    /// The text holds a number that only the simulator knows: it begins and ends like this.
    pub(crate) fn around(mut self, start: &'static str, end: &'static str) -> Self {
        self.ends = Some((start, end));
        self
    }

    /// The same for a generic server.
    pub(crate) fn generic(mut self) -> Self {
        self.endpoint = EndpointKind::Generic;
        self
    }

    async fn check(&self, sim: &Simulator) {
        let Self { rule, text, .. } = self;
        let (status, body) = self.refused.answer(sim).await;
        let requests = sim.requests();
        let verdict = &requests.last().expect("a request").verdict;
        let Verdict::Refused { rule: broken, status: recorded, message } = verdict else {
            panic!("{rule:?} let pass: {:.500}", self.refused.body.to_string());
        };
        assert_eq!(broken, &Some(*rule), "{message}");
        match self.ends {
            Some((start, end)) => assert!(message.starts_with(start) && message.ends_with(end), "{message}"),
            None => assert_eq!(message, text),
        }
        assert_eq!(status, *recorded);
        let expected = match rule {
            Rule::MissingAuth | Rule::BothAuths => (401, "authentication_error"),
            Rule::UnknownModel => (404, "not_found_error"),
            Rule::BodyTooLarge => {
                assert_eq!(status, 413);
                assert!(body.as_str().is_some_and(|page| page.starts_with("<html>")), "{body}");
                return self.check_passes(sim).await;
            }
            _ => (400, "invalid_request_error"),
        };
        assert_eq!((status, body["error"]["type"].as_str().unwrap_or_default()), expected, "{rule:?}");
        assert_eq!(body["error"]["message"], message.as_str());
        assert!(body["request_id"].as_str().is_some_and(|id| id.starts_with("req_")), "{body}");
        self.check_passes(sim).await;
    }

    async fn check_passes(&self, sim: &Simulator) {
        let (status, body) = self.passes.answer(sim).await;
        assert_eq!(status, 200, "{:?} refused what is legal: {body}", self.rule);
    }
}

fn cases() -> Vec<Case> {
    [headers(), generic(), rules_content::cases(), rules_system::cases(), rules_parameters::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[tokio::test]
async fn every_rule_refuses_in_the_words_of_the_api_and_lets_the_legal_pass() {
    let config = |endpoint| {
        let config = SimConfig::new(chatter()).endpoint(endpoint);
        SimConfig { max_body: MAX_BODY, keep: Retention::Summaries, ..config }
    };
    let anthropic = start(config(EndpointKind::Anthropic)).await;
    let generic = start(config(EndpointKind::Generic)).await;
    for case in cases() {
        let sim = if case.endpoint == EndpointKind::Generic { &generic } else { &anthropic };
        case.check(sim).await;
    }
}

#[test]
fn there_is_a_case_for_every_rule() {
    let tested: BTreeSet<Rule> = cases().iter().map(|case| case.rule).collect();
    let all: BTreeSet<Rule> = Rule::ALL.iter().copied().collect();
    let missing: Vec<&Rule> = all.difference(&tested).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

fn headers() -> Vec<Case> {
    let legal = |_: &mut RawRequest| {};
    vec![
        case(
            Rule::MissingAuth,
            "x-api-key header is required",
            |ask| ask.drop_header("x-api-key"),
            |ask| {
                ask.drop_header("x-api-key");
                ask.header("authorization", "Bearer token");
            },
        ),
        case(
            Rule::BothAuths,
            "x-api-key and Authorization must not be sent together",
            |ask| ask.header("authorization", "Bearer token"),
            legal,
        ),
        case(
            Rule::MissingVersion,
            "anthropic-version: header is required",
            |ask| ask.drop_header("anthropic-version"),
            legal,
        ),
        case(
            Rule::UnknownVersion,
            "anthropic-version: \"2023-06-02\" is not a valid version",
            |ask| ask.header("anthropic-version", "2023-06-02"),
            |ask| ask.header("anthropic-version", "2026-10-21"),
        ),
        case(
            Rule::ContentType,
            "content-type: header must be application/json",
            |ask| ask.header("content-type", "text/plain"),
            |ask| ask.header("content-type", "application/json; charset=utf-8"),
        ),
        case(
            Rule::UnknownBeta,
            "Unexpected value(s) `nonsense-2026-01-01` for the `anthropic-beta` header",
            |ask| ask.header("anthropic-beta", "oauth-2025-04-20,nonsense-2026-01-01"),
            |ask| ask.header("anthropic-beta", "oauth-2025-04-20"),
        ),
        case(
            Rule::BodyTooLarge,
            "Request exceeds the maximum size",
            |ask| ask.raw = Some(" ".repeat(MAX_BODY + 1)),
            |ask| ask.raw = Some(format!("{}{}", ask.body, " ".repeat(MAX_BODY / 2))),
        ),
        case(
            Rule::BodyNotJson,
            "The request body is not valid JSON: expected an object",
            |ask| ask.raw = Some(ask.body.to_string().replace(']', "")),
            |ask| ask.raw = Some(ask.body.to_string().replace(']', " ]")),
        ),
    ]
}

fn generic() -> Vec<Case> {
    let adaptive = json!({"type": "adaptive"});
    let nothing = |_: &mut RawRequest| {};
    let mark = json!({"type": "ephemeral"});
    let schema = json!({"name": "bash", "input_schema": {"type": "object"}});
    let marked = json!({"type": "text", "text": "x", "cache_control": mark});
    vec![
        case(
            Rule::GenericRole,
            "messages.1.role: Input should be 'user' or 'assistant'",
            |ask| ask.push("system", json!("Be brief.")),
            |ask| ask.push("user", json!("Be brief.")),
        ),
        case(
            Rule::GenericMark,
            "messages.1.content.0.cache_control: Extra inputs are not permitted",
            |ask| ask.push("user", json!([marked])),
            |ask| ask.push("user", json!([{"type": "text", "text": "x"}])),
        ),
        case(
            Rule::GenericMark,
            "cache_control: Extra inputs are not permitted",
            |ask| ask.body["cache_control"] = mark.clone(),
            nothing,
        ),
        case(
            Rule::GenericThinking,
            "thinking: Extra inputs are not permitted",
            |ask| ask.body["thinking"] = adaptive.clone(),
            nothing,
        ),
        case(
            Rule::GenericOutputConfig,
            "output_config: Extra inputs are not permitted",
            |ask| ask.body["output_config"] = json!({"effort": "low"}),
            nothing,
        ),
        case(
            Rule::GenericTool,
            "tools.0.input_schema: Field required",
            |ask| ask.body["tools"] = json!([{"type": "bash_20250124", "name": "bash"}]),
            |ask| ask.body["tools"] = json!([schema]),
        ),
    ]
    .into_iter()
    .map(|case| case.generic().on("qwen-local"))
    .collect()
}
