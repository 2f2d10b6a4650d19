//! The texts of the made-up session, in the sizes of real ones. It does not know which agent says them.

use convoke_kernel::{
    AgentSpec, Capabilities, Child, Citation, ExchangeClosed, ExchangeOpened, FanOut, Finding, LEAD,
    LeadSettings, Limits, Membership, Outcome, Reply, Segment, SessionId, Severity, StopReason, Thinking,
    ToolCall, Usage,
};
use serde_json::json;

/// The subtask of a worker.
pub(crate) fn subtask(number: usize) -> String {
    format!("Review part {number} of the store for locks that are held across a wait")
}

/// So many characters of markdown.
pub(crate) fn prose(long: usize) -> String {
    let sentence = "The function `append` holds the **lock** while it waits for the disk; \
        `store/letters.rs:41` shows it. ";
    let code = "\n\n```rust\nlet held = self.lock().await;\nheld.append(batch).await?;\n```\n\n- first \
        point\n- second point\n\n";
    [sentence, sentence, code].concat().chars().cycle().take(long).collect()
}

/// So many characters of what a command prints.
pub(crate) fn output(long: usize) -> String {
    let row =
        "crates/store/src/letters.rs:41:        let held = self.lock().await; // taken before the wait\n";
    row.chars().cycle().take(long).collect()
}

/// An agent was asked for this.
pub(crate) fn opened(text: &str) -> ExchangeOpened {
    ExchangeOpened {
        exchange: 1,
        input: "i".into(),
        text: text.into(),
        message: Segment::encode(&json!({"role": "user", "content": text})),
        system: None,
        section: None,
        changed: Vec::new(),
        notice: None,
        letters: Vec::new(),
        work: None,
        capsule: false,
    }
}

/// An agent has ended.
pub(crate) fn closed() -> ExchangeClosed {
    let outcome = Outcome::Ok { text: "All of it is reviewed.".into() };
    let report = None;
    let ballot = None;
    let degraded = None;
    let returned = Vec::new();
    ExchangeClosed { exchange: 1, outcome, taken_back: false, report, ballot, degraded, returned }
}

/// A reply of two kilobytes with a call.
pub(crate) fn reply(turn: u32, call: ToolCall) -> Reply {
    let text = format!("Turn {turn}. {}", prose(2_048));
    Reply {
        content: Segment::encode(&json!([{"type": "text", "text": text}])),
        text,
        calls: vec![call],
        stop: StopReason::ToolUse,
        stop_detail: None,
        usage: Usage { input_tokens: 700, cache_read_tokens: 18_000, output_tokens: 600, ..Usage::default() },
        cost_nano: Some(21_000_000),
        model: "large".into(),
        request_id: None,
    }
}

/// A finding with its place.
pub(crate) fn finding(number: u64) -> Finding {
    let citation = Citation {
        path: Some("crates/store/src/letters.rs".into()),
        first: Some(41),
        last: Some(44),
        quote: Some("let held".into()),
        command: None,
    };
    let claim = format!("The lock of part {number} is held across a wait, so that a reader may starve");
    Finding { claim, evidence: prose(400), severity: Severity::Medium, citations: vec![citation] }
}

/// What the lead is made of.
pub(crate) fn lead_spec() -> AgentSpec {
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
    let team = Membership {
        name: LEAD.into(),
        role: LEAD.into(),
        team: "default".into(),
        requires_plan: false,
        compact_at: 150_000,
        project: None,
    };
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([1; 10]),
        dir: "/work/project".into(),
        model: "large".into(),
        capabilities,
        limits,
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: Some(FanOut {
            mode: true,
            consent: true,
            voters: 1,
            max_subtasks: 1_000,
            quoted: false,
            fresh: false,
            child,
            callees: Default::default(),
        }),
        team: Some(team),
        extra_system: None,
    })
}
