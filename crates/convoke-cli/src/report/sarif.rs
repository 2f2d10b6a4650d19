//! The report as SARIF 2.1.0, for code scanners. One rule per kind of problem; a result per finding with a
//! place in a file below the directory.
//!
//! Refuted findings are left out: many readers show a suppressed result all the same, and one that was looked
//! up and does not hold is no result. How many there were is said in the run's properties; the other forms of
//! the report have them. A finding without a place is a notification: GitHub rejects a whole file for one
//! result without a location, and a place that is made up would be shown to people as if it were found there.

mod fingerprint;
mod kinds;

use serde_json::{Value, json};

use super::model::{AgentStatus, Citation, Finding, SessionReport, Severity, Verdict};
use super::order::in_order;
use super::text::name;
use crate::render::clean;
use crate::utc;
use fingerprint::{Known, fingerprints};
use kinds::KINDS;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// What paths are relative to.
const ROOT: &str = "%SRCROOT%";

/// The report as a SARIF log.
pub(crate) fn sarif(report: &SessionReport) -> Value {
    let kept: Vec<&Finding> =
        in_order(&report.findings).into_iter().filter(|f| f.verdict != Verdict::Refuted).collect();
    let refuted = report.findings.len() - kept.len();
    let (placed, loose): (Vec<Placed<'_>>, Vec<Placed<'_>>) = kept
        .into_iter()
        .map(|finding| Placed::of(finding, &report.dir))
        .partition(|placed| !placed.places.is_empty());
    let known: Vec<Known<'_>> = placed.iter().filter_map(Placed::known).collect();
    let results: Vec<Value> =
        placed.iter().zip(fingerprints(&known)).map(|(placed, print)| placed.result(&print)).collect();
    let notes: Vec<Value> = loose.iter().map(Placed::notification).chain(notifications(report)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "convoke",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": KINDS.iter().map(kinds::Kind::rule).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": report.status == "done",
                "exitCode": report.exit_code,
                "startTimeUtc": utc::stamp(report.started_at),
                "endTimeUtc": utc::stamp(report.ended_at),
                "toolExecutionNotifications": notes,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {
                "session": report.run,
                "task": clean(&report.task),
                "model": report.model,
                "status": report.status,
                "refuted": refuted,
                "without_place": loose.len(),
            },
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

/// A finding with its kind and with the places in files below the directory that it cites.
struct Placed<'a> {
    finding: &'a Finding,
    rule: usize,
    places: Vec<(String, &'a Citation)>,
}

impl<'a> Placed<'a> {
    fn of(finding: &'a Finding, dir: &str) -> Self {
        let place = |citation: &'a Citation| Some((uri(citation.path.as_deref()?, dir)?, citation));
        let places = finding.citations.iter().filter_map(place).collect();
        Self { finding, rule: kinds::of_claim(&finding.claim), places }
    }

    /// What code scanning knows it again by.
    fn known(&self) -> Option<Known<'_>> {
        let (uri, citation) = self.places.first()?;
        let quote = citation.quote.as_deref();
        let line = citation.first.unwrap_or_default();
        Some(Known { rule: self.rule, uri, line, quote, claim: &self.finding.claim })
    }

    /// What is claimed, then what it rests on and what a verifier said.
    fn message(&self) -> String {
        let finding = self.finding;
        let mut text = finding.claim.trim().to_owned();
        if text.is_empty() {
            text.push_str("(no claim)");
        }
        for (title, part) in [("Evidence", &finding.evidence), ("Verdict", &finding.reason)] {
            if !part.trim().is_empty() {
                text.push_str(&format!("\n\n{title}: {}", part.trim()));
            }
        }
        message(&text)
    }

    fn properties(&self) -> Value {
        let finding = self.finding;
        let commands = finding.citations.iter().filter(|citation| citation.path.is_none());
        let commands: Vec<Value> =
            commands.map(|citation| json!({"command": citation.command, "quote": citation.quote})).collect();
        json!({
            "severity": finding.severity.word(),
            "verdict": finding.verdict.word(),
            "reason": clean(&finding.reason),
            "evidence": clean(&finding.evidence),
            "commands": commands,
            "run": finding.run,
            "item": finding.item,
            "label": clean(&finding.label),
            "agent": finding.agent,
        })
    }

    fn result(&self, fingerprint: &str) -> Value {
        json!({
            "ruleId": KINDS[self.rule].rule_id(),
            "ruleIndex": self.rule,
            "level": level(self.finding.severity),
            "message": { "text": self.message() },
            "locations": self.places.iter().map(|(uri, citation)| location(uri, citation)).collect::<Vec<_>>(),
            // The one that GitHub reads.
            "partialFingerprints": { "primaryLocationLineHash": fingerprint },
            "properties": self.properties(),
        })
    }

    /// What is said of a finding that no file below the directory is cited for.
    fn notification(&self) -> Value {
        json!({
            "level": level(self.finding.severity),
            "message": { "text": format!("A finding without a place in a file here: {}", self.message()) },
            "associatedRule": { "id": KINDS[self.rule].rule_id(), "index": self.rule },
            "properties": self.properties(),
        })
    }
}

fn location(uri: &str, citation: &Citation) -> Value {
    // Lines count from 1. A citation of a whole file is shown at its beginning: without a line GitHub takes
    // no location.
    let first = citation.first.filter(|first| *first > 0);
    let mut region = match first {
        Some(first) => json!({ "startLine": first, "endLine": citation.last.unwrap_or(first).max(first) }),
        None => json!({ "startLine": 1 }),
    };
    if let (Some(_), Some(quote)) = (first, &citation.quote) {
        region["snippet"] = json!({ "text": quote });
    }
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri, "uriBaseId": ROOT }, "region": region } })
}

/// A path below the directory as a URI reference; none for one that is not below it.
fn uri(path: &str, dir: &str) -> Option<String> {
    let path = path.trim();
    let inside = match path.strip_prefix('/') {
        Some(_) => path.strip_prefix(dir.trim_end_matches('/'))?.strip_prefix('/')?,
        None => path,
    };
    let parts: Vec<&str> = inside.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() || parts.contains(&"..") {
        return None;
    }
    let mut uri = String::new();
    for byte in parts.join("/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(uri)
}

/// What a reader should know beside the results: what was not looked at, and why.
fn notifications(report: &SessionReport) -> Vec<Value> {
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
                assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
                assert!(!result["message"]["text"].as_str().unwrap().is_empty());
                assert!(!result["locations"].as_array().unwrap().is_empty(), "{result}");
                for location in result["locations"].as_array().unwrap() {
                    let region = &location["physicalLocation"]["region"];
                    let first = region["startLine"].as_u64().unwrap();
                    let last = region["endLine"].as_u64().unwrap();
                    assert!(1 <= first && first <= last, "{location}");
                }
            }
        }
    }

    #[test]
    fn a_refuted_finding_is_no_result_and_is_counted() {
        let run = &sarif(&fan_out())["runs"][0];
        let verdicts: Vec<&str> = run["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["properties"]["verdict"].as_str().unwrap())
            .collect();
        assert_eq!(verdicts, ["confirmed", "unverified"]);
        assert_eq!(run["properties"]["refuted"], 1);
    }

    #[test]
    fn a_finding_without_a_place_here_is_a_notification_and_no_result() {
        let mut report = fan_out();
        let cites =
            |path: &str| vec![Citation { path: Some(path.into()), first: Some(1), ..Citation::default() }];
        report.findings[0].citations = cites("../elsewhere.rs");
        let run = &sarif(&report)["runs"][0];
        let told =
            |name: &str| run["invocations"][0]["toolExecutionNotifications"].to_string().contains(name);
        assert_eq!(run["results"].as_array().unwrap().len(), 1, "{run:#}");
        assert_eq!(run["properties"]["without_place"], 3);
        assert!(
            told("a test fails") && told("convoke/tests") && told("an index may be out of range"),
            "{run:#}"
        );
        assert!(told("it is written in Rust") && !told("it never frees"), "{run:#}");
        report.findings[0].citations = cites("/work/project/src/a.rs");
        let place = sarif(&report)["runs"][0]["results"][1]["locations"][0]["physicalLocation"].clone();
        assert_eq!(place["artifactLocation"]["uri"], "src/a.rs");
    }

    #[test]
    fn a_finding_is_known_again_when_its_lines_have_moved_and_it_matters_less() {
        let mut report = fan_out();
        let known = |report: &SessionReport| {
            let result = sarif(report)["runs"][0]["results"][0].clone();
            (result["ruleId"].clone(), result["partialFingerprints"].clone())
        };
        let before = known(&report);
        report.findings[1].citations[0].first = Some(30);
        report.findings[1].citations[0].last = Some(32);
        report.findings[1].severity = Severity::Medium;
        assert_eq!(known(&report), before);
        assert!(before.1["primaryLocationLineHash"].as_str().unwrap().ends_with(":1"), "{before:?}");
        report.findings[1].citations[0].quote = Some("let x = 1;".into());
        assert_ne!(known(&report), before);
    }

    #[test]
    fn text_of_a_model_is_neither_a_placeholder_nor_a_link() {
        let text = message(WILD);
        assert!(text.contains("{{0}}") && text.contains("[a] (b)"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn a_path_becomes_a_uri_reference() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(uri(path, "/w/p/").as_deref(), expected, "{path}")
        };
        check("src/a.rs", Some("src/a.rs"));
        check("./src//a.rs", Some("src/a.rs"));
        check("src/my file#1?.rs", Some("src/my%20file%231%3F.rs"));
        check("c:x/ü.rs", Some("c%3Ax/%C3%BC.rs"));
        check("/w/p/src/a.rs", Some("src/a.rs"));
        check("/w/project/a.rs", None);
        check("/etc/passwd", None);
        check("src/../../a.rs", None);
        check(".", None);
        check("  ", None);
    }

    #[test]
    fn lines_that_make_no_sense_are_mended_and_a_whole_file_is_its_first_line() {
        let region = |first, last| {
            let citation = Citation { first, last, quote: Some("q".into()), ..Citation::default() };
            location("a", &citation)["physicalLocation"]["region"].clone()
        };
        let five = json!({"startLine": 5, "endLine": 5, "snippet": {"text": "q"}});
        assert_eq!(region(Some(5), Some(3)), five);
        assert_eq!(region(Some(5), None), five);
        assert_eq!(region(Some(0), Some(3)), json!({"startLine": 1}));
        assert_eq!(region(None, None), json!({"startLine": 1}));
    }
}
