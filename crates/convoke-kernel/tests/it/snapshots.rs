//! What the model sees of an agent before anything is said to it. A change here is a
//! change of behaviour: read the difference.

use convoke_kernel::{
    AgentSpec, CHILD_TURNS, Callee, Capabilities, Child, Confinement, FanOut, Isolation, LeadSettings,
    Limits, Membership, Network, Role, Sandbox, Segment, SessionId, Teammate, Thinking,
};

fn capabilities(anthropic: bool) -> Capabilities {
    Capabilities {
        system_role: anthropic,
        anthropic_tools: anthropic,
        cache_marks: anthropic,
        thinking: if anthropic { Thinking::Adaptive } else { Thinking::Omit },
        effort: anthropic.then(|| "xhigh".to_owned()),
        max_output: 128_000,
        window: 1_000_000,
    }
}

fn lead(anthropic: bool) -> AgentSpec {
    lead_of(anthropic, None)
}

fn lead_of(anthropic: bool, team: Option<Membership>) -> AgentSpec {
    AgentSpec::lead(settings(anthropic, team))
}

fn settings(anthropic: bool, team: Option<Membership>) -> LeadSettings {
    let child = Child {
        model: "claude-opus-4-8".into(),
        capabilities: capabilities(anthropic),
        limits: Limits { max_turns: CHILD_TURNS, ..Limits::default() },
        rates: None,
    };
    LeadSettings {
        session: SessionId::from_bits([0; 10]),
        dir: "/work".into(),
        model: "claude-opus-4-8".into(),
        capabilities: capabilities(anthropic),
        limits: Limits::default(),
        rates: None,
        confinement: Confinement {
            sandbox: Sandbox::Workspace,
            network: Network::Off,
            ..Confinement::default()
        },
        approvals: Default::default(),
        fan_out: Some(FanOut {
            mode: true,
            consent: false,
            voters: 1,
            max_subtasks: 200,
            quoted: false,
            fresh: false,
            child,
            callees: Default::default(),
        }),
        team,
        extra_system: Some("Speak plainly.".into()),
    }
}

/// With UPDATE_SNAPSHOTS set to the snapshots' directory, what is seen becomes what is expected.
fn check(spec: &AgentSpec, name: &str, expected: &str) {
    let mut seen = format!("system {}\ntools {}\n", spec.system.as_str(), spec.tools.as_str());
    for param in &spec.params {
        seen.push_str(&format!("{} {}\n", param.name, param.value.as_str()));
    }
    assert!(!seen.contains("/work"), "nothing that is sent holds an absolute path");
    if let Some(dir) = std::env::var_os("UPDATE_SNAPSHOTS") {
        std::fs::write(std::path::Path::new(&dir).join(format!("{name}.txt")), &seen).unwrap();
        return;
    }
    assert_eq!(seen, expected);
}

#[test]
fn d1_1_the_lead_as_anthropic_sees_it() {
    check(&lead(true), "lead_anthropic", include_str!("snapshots/lead_anthropic.txt"));
}

#[test]
fn the_lead_as_a_generic_endpoint_sees_it() {
    check(&lead(false), "lead_generic", include_str!("snapshots/lead_generic.txt"));
}

#[test]
fn a_lean_lead_carries_little() {
    let lean =
        AgentSpec::lean_lead(LeadSettings { fan_out: None, extra_system: None, ..settings(false, None) });
    check(&lean, "lead_lean", include_str!("snapshots/lead_lean.txt"));
    let full = lead(false);
    let bytes = |spec: &AgentSpec| spec.system.as_str().len() + spec.tools.as_str().len();
    assert!(bytes(&lean) < 5_000 && bytes(&lean) * 3 < bytes(&full), "{} of {}", bytes(&lean), bytes(&full));
    assert_eq!(
        lean.local_tools.as_ref().map(|local_tools| local_tools.names()),
        Some(vec!["bash", "view", "edit"])
    );
}

#[test]
fn d5_1_d3_4_a_worker_has_its_own_prompt_bash_and_its_report_and_nothing_else() {
    let worker = lead(true).child(Role::Worker, "look", 0).unwrap();
    check(&worker, "worker", include_str!("snapshots/worker.txt"));
}

#[test]
fn d7_7_a_verifier_is_told_to_refute() {
    let verifier = lead(true).child(Role::Verifier, "verify: look", 2).unwrap();
    check(&verifier, "verifier", include_str!("snapshots/verifier.txt"));
}

#[test]
fn a4_a_task_has_its_own_prompt_and_no_way_to_start_others() {
    let task = lead(true).child(Role::Task, "look", 0).unwrap();
    check(&task, "task", include_str!("snapshots/task.txt"));
    for role in [Role::Worker, Role::Verifier, Role::Task, Role::Lead] {
        assert_eq!(task.child(role, "deeper", 0), None, "{role:?}");
    }
}

#[test]
fn an_agent_in_a_worktree_is_told_that_it_can_commit_and_what_counts() {
    let task = lead(true).child_in(Role::Task, "look", 0, Isolation::Worktree).unwrap();
    check(&task, "task_worktree", include_str!("snapshots/task_worktree.txt"));
}

fn callee(schema: Option<&str>, tools: Option<&[&str]>) -> AgentSpec {
    let settings = Callee {
        label: "look".into(),
        instructions: schema.map(|_| "You know the law.".into()),
        child: None,
        memory: true,
        schema: schema.map(|schema| Segment::from_json(schema).unwrap()),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        isolation: Isolation::None,
        read_only: false,
    };
    lead(true).callee(settings).unwrap()
}

#[test]
fn a_callee_is_told_that_its_last_message_is_a_return_value() {
    check(&callee(None, None), "callee", include_str!("snapshots/callee.txt"));
}

#[test]
fn a_callee_with_a_schema_and_few_tools_is_told_that_only_the_call_counts() {
    let schema =
        r#"{"properties":{"defects":{"type":"array","items":{"type":"string"}}},"required":["defects"]}"#;
    let callee = callee(Some(schema), Some(&["Read", "Grep"]));
    check(&callee, "callee_value", include_str!("snapshots/callee_value.txt"));
}

fn team_lead() -> AgentSpec {
    let membership = Membership {
        name: "lead".into(),
        role: "lead".into(),
        team: "default".into(),
        requires_plan: false,
        compact_at: 100_000,
        project: Some("Use tabs.".into()),
    };
    lead_of(true, Some(membership))
}

fn teammate(plan: bool, tools: Option<&[&str]>) -> AgentSpec {
    let settings = Teammate {
        name: "alice".into(),
        role: "coder".into(),
        requires_plan: plan,
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        isolation: Isolation::None,
    };
    team_lead().teammate(settings).unwrap()
}

#[test]
fn b17_the_lead_of_a_team_has_its_tools_and_is_told_when_to_use_them() {
    check(&team_lead(), "team_lead", include_str!("snapshots/team_lead.txt"));
}

#[test]
fn b10_b11_c18_a_teammate_has_its_name_its_role_its_hands_and_its_mail() {
    check(&teammate(false, None), "teammate", include_str!("snapshots/teammate.txt"));
    assert_eq!(teammate(false, None).child(Role::Worker, "deeper", 0), None);
    assert_eq!(lead(true).team, None);
}

#[test]
fn a_teammate_whose_plan_is_required_is_told_to_hand_it_in() {
    check(
        &teammate(true, Some(&["Read", "Edit"])),
        "teammate_plan",
        include_str!("snapshots/teammate_plan.txt"),
    );
}
