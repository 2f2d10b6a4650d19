//! What a program has verified: the claim that a call of `verify` makes, and the verdict that it came to.

use serde_json::Value;

use super::event::{CallAnswer, CallKind, MadeCall};
use crate::findings::{Finding, Severity, Verdict};

impl MadeCall {
    /// The finding that a call of `verify` wants judged; `None` for any other call, and for one without a
    /// claim, which was refused.
    pub fn claim(&self) -> Option<Finding> {
        if self.kind != CallKind::Verify {
            return None;
        }
        let want: Value = serde_json::from_str(self.want.as_str()).ok()?;
        read_finding(want.get("finding")?).ok()
    }
}

impl CallAnswer {
    /// The verdict that a call of `verify` was answered with; `None` if it came to none, because a failure is
    /// no verdict.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Value(value) => serde_json::from_str(value.as_str()).ok(),
            Self::Throw(_) | Self::Program { .. } => None,
        }
    }
}

/// Reads what a program gave to `verify`, as generously as it can be: people name the same things
/// differently. The error says what is missing.
pub fn read_finding(value: &Value) -> Result<Finding, String> {
    if let Some(claim) = value.as_str().filter(|claim| !claim.trim().is_empty()) {
        return Ok(Finding {
            claim: claim.to_owned(),
            evidence: String::new(),
            severity: Severity::Info,
            citations: Vec::new(),
        });
    }
    let Some(object) = value.as_object() else {
        return Err("verify wants a claim, or an object with a claim".to_owned());
    };
    let text = |names: &[&str]| names.iter().find_map(|name| object.get(*name)?.as_str()).map(str::to_owned);
    let Some(claim) =
        text(&["claim", "title", "summary", "description"]).filter(|claim| !claim.trim().is_empty())
    else {
        return Err("verify wants a finding with a claim".to_owned());
    };
    let mut evidence = text(&["evidence", "detail", "details", "why"]).unwrap_or_default();
    let mut citations = Vec::new();
    for citation in object.get("citations").and_then(Value::as_array).into_iter().flatten() {
        match serde_json::from_value(citation.clone()) {
            Ok(citation) => citations.push(citation),
            // What cannot be looked up by the harness is still something for the verifier to read.
            Err(_) => evidence.push_str(&format!("\ncited: {citation}")),
        }
    }
    if let Some(path) = text(&["path", "file"]).filter(|_| citations.is_empty()) {
        let line =
            object.get("line").and_then(Value::as_u64).map(|line| format!(":{line}")).unwrap_or_default();
        evidence.push_str(&format!("\nat {path}{line}"));
    }
    let severity = object.get("severity").cloned().and_then(|value| serde_json::from_value(value).ok());
    Ok(Finding { claim, evidence, severity: severity.unwrap_or(Severity::Info), citations })
}
