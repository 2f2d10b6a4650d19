//! What the model sees of a lead before anybody speaks. A change here is a change of behaviour: read the difference.

use convoke_kernel::{AgentSpec, Capabilities, LeadSettings, Limits, SessionId, Thinking};

fn lead(anthropic: bool) -> AgentSpec {
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([0; 10]),
        dir: "/work".into(),
        model: "claude-opus-4-8".into(),
        capabilities: Capabilities {
            system_role: anthropic,
            anthropic_tools: anthropic,
            cache_marks: anthropic,
            thinking: if anthropic { Thinking::Adaptive } else { Thinking::Omit },
            effort: anthropic.then(|| "xhigh".to_owned()),
            max_output: 128_000,
            window: 1_000_000,
        },
        limits: Limits::default(),
        extra_system: Some("Speak plainly.".into()),
    })
}

fn check(spec: &AgentSpec, expected: &str) {
    let mut seen = format!("system {}\ntools {}\n", spec.system.as_str(), spec.tools.as_str());
    for param in &spec.params {
        seen.push_str(&format!("{} {}\n", param.name, param.value.as_str()));
    }
    assert!(!seen.contains("/work"), "nothing that is sent holds an absolute path");
    assert_eq!(seen, expected);
}

#[test]
fn d1_1_the_lead_as_anthropic_sees_it() {
    check(&lead(true), include_str!("snapshots/lead_anthropic.txt"));
}

#[test]
fn the_lead_as_a_generic_endpoint_sees_it() {
    check(&lead(false), include_str!("snapshots/lead_generic.txt"));
}
