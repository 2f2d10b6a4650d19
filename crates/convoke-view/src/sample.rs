//! What tests make agents of.

use convoke_kernel::{
    AgentSpec, Capabilities, Child, FanOut, LeadSettings, Limits, Membership, SessionId, Thinking,
};

/// A lead of the session of this number, with a team or without one.
pub fn lead(session: u8, team: Option<Membership>) -> AgentSpec {
    let capabilities = Capabilities {
        system_role: false,
        anthropic_tools: false,
        cache_marks: false,
        thinking: Thinking::Omit,
        effort: Some("high".into()),
        max_output: 8_000,
        window: 100_000,
    };
    let limits = Limits::default();
    let child = Child { model: "small".into(), capabilities: capabilities.clone(), limits, rates: None };
    let fan_out = FanOut {
        mode: true,
        consent: true,
        voters: 1,
        max_subtasks: 50,
        quoted: false,
        fresh: false,
        child,
        callees: Default::default(),
    };
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([session; 10]),
        dir: "/".into(),
        model: "large".into(),
        capabilities,
        limits,
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: Some(fan_out),
        team,
        extra_system: None,
    })
}
