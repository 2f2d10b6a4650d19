//! The report as SARIF 2.1.0, for code scanners. One rule per severity; a result per finding, placed where it cites a file.
//!
//! Refuted findings are left out: many readers show a suppressed result all the same, and one that was looked up and does
//! not hold is no result. How many there were is said in the run's properties; the other forms of the report have them.

use serde_json::{Map, Value, json};

use super::model::{AgentStatus, Citation, Finding, RunReport, Severity, Verdict};
use super::order::in_order;
use super::text::name;
use crate::render::clean;
use crate::utc;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// What paths are relative to.
const ROOT: &str = "%SRCROOT%";

/// The report as a SARIF log.
pub(crate) fn sarif(report: &RunReport) -> Value {
    let kept: Vec<&Finding> =
        in_order(&report.findings).into_iter().filter(|f| f.verdict != Verdict::Refuted).collect();
    let refuted = report.findings.len() - kept.len();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "convoke",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": Severity::ALL.map(rule),
            }},
            "invocations": [{
                "executionSuccessful": report.status == "done",
                "exitCode": report.exit_code,
                "startTimeUtc": utc::stamp(report.started_at),
                "endTimeUtc": utc::stamp(report.ended_at),
                "toolExecutionNotifications": notifications(report),
            }],
            "columnKind": "unicodeCodePoints",
            "results": kept.into_iter().map(result).collect::<Vec<_>>(),
            "properties": {
                "session": report.run,
                "task": clean(&report.task),
                "model": report.model,
                "status": report.status,
                "refuted": refuted,
            },
        }],
    })
}

fn rule_id(severity: Severity) -> String {
    format!("convoke/{}", severity.word())
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

fn rule(severity: Severity) -> Value {
    let text = format!("A finding of {} severity", severity.word());
    json!({
        "id": rule_id(severity),
        "shortDescription": { "text": text },
        "defaultConfiguration": { "level": level(severity) },
    })
}

fn result(finding: &Finding) -> Value {
    let index = Severity::ALL.iter().position(|severity| *severity == finding.severity);
    let mut text = finding.claim.trim().to_owned();
    if text.is_empty() {
        text.push_str("(no claim)");
    }
    for (title, part) in [("Evidence", &finding.evidence), ("Verdict", &finding.reason)] {
        if !part.trim().is_empty() {
            text.push_str(&format!("\n\n{title}: {}", part.trim()));
        }
    }
    let commands = finding.citations.iter().filter(|citation| citation.path.is_none());
    let commands: Vec<Value> =
        commands.map(|citation| json!({"command": citation.command, "quote": citation.quote})).collect();
    json!({
        "ruleId": rule_id(finding.severity),
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": { "text": message(&text) },
        "locations": finding.citations.iter().filter_map(location).collect::<Vec<_>>(),
        "properties": {
            "severity": finding.severity.word(),
            "verdict": finding.verdict.word(),
            "reason": clean(&finding.reason),
            "evidence": clean(&finding.evidence),
            "commands": commands,
            "run": finding.run,
            "item": finding.item,
            "label": clean(&finding.label),
            "agent": finding.agent,
        },
    })
}

fn location(citation: &Citation) -> Option<Value> {
    let uri = uri(citation.path.as_deref()?)?;
    let mut place = Map::new();
    let artifact = match uri.starts_with("file:") {
        true => json!({ "uri": uri }),
        false => json!({ "uri": uri, "uriBaseId": ROOT }),
    };
    place.insert("artifactLocation".to_owned(), artifact);
    // Lines count from 1; whatever does not is no region.
    if let Some(first) = citation.first.filter(|first| *first > 0) {
        let mut region = json!({ "startLine": first, "endLine": citation.last.unwrap_or(first).max(first) });
        if let Some(quote) = &citation.quote {
            region["snippet"] = json!({ "text": quote });
        }
        place.insert("region".to_owned(), region);
    }
    Some(json!({ "physicalLocation": place }))
}

/// A path as a URI reference: relative ones stay relative.
fn uri(path: &str) -> Option<String> {
    let path = path.trim();
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.is_empty() {
        return None;
    }
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(uri)
}

/// What a reader should know beside the results: what was not looked at, and why.
fn notifications(report: &RunReport) -> Vec<Value> {
    let note = |level: &str, text: &str| json!({ "level": level, "message": { "text": message(text) } });
    let mut said = Vec::new();
    if let Some(failure) = &report.failure {
        said.push(note("error", &format!("{} ({}): {}", report.status, failure.kind, failure.message)));
    }
    for agent in report.agents.iter().filter(|agent| agent.status != AgentStatus::Ok) {
        let why = agent.failure.as_ref().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
        said.push(note("warning", &format!("{} {}{why}", name(agent), agent.status.word())));
    }
    for skipped in &report.skipped {
        said.push(note("warning", &format!("not run: {} ({})", skipped.label, skipped.reason)));
    }
    for lost in &report.lost {
        said.push(note("error", &format!("lost: {}", lost.line())));
    }
    said.extend(report.warnings.iter().chain(&report.notes).map(|text| note("note", text)));
    said
}

/// Text as a message: braces would be placeholders and brackets before a parenthesis a link.
fn message(text: &str) -> String {
    clean(text).replace('{', "{{").replace('}', "}}").replace("](", "] (")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WILD, fan_out, solo};
    use super::*;

    #[test]
    fn every_member_that_sarif_demands_is_there() {
        for report in [solo(), fan_out()] {
            let log = sarif(&report);
            assert_eq!((&log["version"], log["runs"].as_array().unwrap().len()), (&json!("2.1.0"), 1));
            let run = &log["runs"][0];
            assert_eq!(run["tool"]["driver"]["name"], "convoke");
            assert!(run["invocations"][0]["executionSuccessful"].is_boolean());
            let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
            for result in run["results"].as_array().unwrap() {
                let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
                assert_eq!(rules[index]["id"], result["ruleId"]);
                assert_eq!(rules[index]["defaultConfiguration"]["level"], result["level"]);
                assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
                assert!(!result["message"]["text"].as_str().unwrap().is_empty());
                for location in result["locations"].as_array().unwrap() {
                    let region = &location["physicalLocation"]["region"];
                    let (first, last) = (region["startLine"].as_u64().unwrap(), region["endLine"].as_u64().unwrap());
                    assert!(1 <= first && first <= last, "{location}");
                }
            }
        }
    }

    #[test]
    fn a_refuted_finding_is_no_result_and_is_counted() {
        let run = &sarif(&fan_out())["runs"][0];
        let verdicts: Vec<&str> =
            run["results"].as_array().unwrap().iter().map(|r| r["properties"]["verdict"].as_str().unwrap()).collect();
        assert_eq!(verdicts, ["confirmed", "uncertain", "unverified", "confirmed"]);
        assert_eq!(run["properties"]["refuted"], 1);
    }

    #[test]
    fn text_of_a_model_is_neither_a_placeholder_nor_a_link() {
        let text = message(WILD);
        assert!(text.contains("{{0}}") && text.contains("[a] (b)"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn a_path_becomes_a_uri_reference() {
        let check = |path: &str, expected: Option<&str>| assert_eq!(uri(path).as_deref(), expected, "{path}");
        check("src/a.rs", Some("src/a.rs"));
        check("./src/a.rs", Some("src/a.rs"));
        check("src/my file#1?.rs", Some("src/my%20file%231%3F.rs"));
        check("c:x/ü.rs", Some("c%3Ax/%C3%BC.rs"));
        check("/etc/passwd", Some("file:///etc/passwd"));
        check("  ", None);
    }

    #[test]
    fn lines_that_make_no_sense_are_mended_or_left_out() {
        let region = |first, last| {
            let citation = Citation { path: Some("a".into()), first, last, ..Citation::default() };
            location(&citation).unwrap()["physicalLocation"]["region"].clone()
        };
        assert_eq!(region(Some(5), Some(3)), json!({"startLine": 5, "endLine": 5}));
        assert_eq!(region(Some(5), None), json!({"startLine": 5, "endLine": 5}));
        assert_eq!(region(Some(0), Some(3)), Value::Null);
        assert_eq!(region(None, None), Value::Null);
    }
}
