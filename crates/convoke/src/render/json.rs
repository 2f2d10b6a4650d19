//! `--output json`: one object at the end. Its shape is checked in as `docs/schema/run.schema.json`.

use serde_json::{Value, json};

use super::report::Report;

/// The version of the object's shape.
const SCHEMA_VERSION: u32 = 1;

/// What a run came to, for programs. Times are UTC milliseconds, as in the events.
pub(crate) fn object(report: &Report) -> Value {
    let progress = &report.progress;
    let usage = &progress.usage;
    json!({
        "schema_version": SCHEMA_VERSION,
        "run": progress.session.as_ref().map(|session| session.as_str()),
        "agent": report.agent.as_str(),
        "model": progress.model,
        "status": report.status.word(),
        "exit_code": report.exit as u8,
        "exit_reason": report.reason,
        "answer": report.answer,
        "failure": report.failure.as_ref().map(|message| json!({"kind": report.reason, "message": message})),
        "usage": {
            "input_tokens": usage.input_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_5m_tokens": usage.cache_write_5m_tokens,
            "cache_write_1h_tokens": usage.cache_write_1h_tokens,
            "output_tokens": usage.output_tokens,
            "thinking_tokens": usage.thinking_tokens,
        },
        "cost_usd": progress.cost_nano.map(|nano| nano as f64 / 1e9),
        "cost_nano": progress.cost_nano,
        "turns": progress.turns,
        "commands": progress.commands,
        "started_at": progress.started_at,
        "ended_at": report.ended_at,
        "resume": report.resume,
        "warnings": report.warnings,
    })
}
