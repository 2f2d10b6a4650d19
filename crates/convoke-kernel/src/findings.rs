//! What workers report and what verifiers make of it: plain data, and the reading of a report that a model
//! wrote.

//! Never mends what was written: a report is valid, or it goes back with everything that is wrong with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Characters a summary may have.
const SUMMARY_CHARS: usize = 4_000;
/// Characters a claim or a piece of evidence may have.
const TEXT_CHARS: usize = 4_000;
/// Characters a quote may have.
const QUOTE_CHARS: usize = 2_000;
/// Findings a report may have.
const MOST_FINDINGS: usize = 50;
/// Problems that are named one by one; more than these are counted.
const MOST_PROBLEMS: usize = 50;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Worth mending some day.
    Low,
    /// Worth mending.
    Medium,
    /// To be mended before anything else.
    High,
}

/// A place that can be looked up: lines of a file, or the output of a command the agent itself ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// A file, relative to the directory of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The first line that is meant, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
    /// The last line that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// A command the agent ran, as it ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What stands in those lines, or what the command printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

/// One thing a worker found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What is claimed.
    pub claim: String,
    /// What it rests on, in words.
    pub evidence: String,
    /// How much it matters.
    pub severity: Severity,
    /// Where it can be looked up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
}

/// The one report of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// In a few sentences.
    pub summary: String,
    /// The findings; may be empty.
    pub findings: Vec<Finding>,
}

/// What one verifier says about one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// It was looked up and holds.
    Confirmed,
    /// It was looked up and does not hold.
    Refuted,
    /// The verifier looked it up and could not say. Counts as refuted.
    Undecided,
}

/// One verifier's vote on one finding, with what it saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// Which finding, from 1.
    pub finding: u32,
    /// The vote.
    pub verdict: Vote,
    /// What the verifier saw: path:line, or a command and its output.
    pub evidence: String,
}

/// The one report of a verifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ballot {
    /// In a sentence.
    pub summary: String,
    /// One judgement per finding.
    pub verdicts: Vec<Judgement>,
}

/// What has become of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Looked up, and it holds.
    Confirmed {
        /// What was seen.
        evidence: String,
    },
    /// Looked up, and it does not hold, or no verifier could show that it does.
    Refuted {
        /// What was seen.
        evidence: String,
    },
    /// The votes are tied, or a citation does not hold although the votes say that the finding does.
    Uncertain {
        /// Why.
        reason: String,
    },
    /// No verifier could look.
    Unverified {
        /// Why not.
        reason: String,
    },
}

impl Report {
    /// Reads what a worker sent. The error names every problem at once, in words the worker can act on.
    pub fn read(input: &Value) -> Result<Self, String> {
        let mut reader = Reader::default();
        let report = reader.report(input);
        reader.finish(report)
    }
}

impl Ballot {
    /// Reads what a verifier sent about this many findings. The error names every problem at once.
    pub fn read(input: &Value, findings: usize) -> Result<Self, String> {
        let mut reader = Reader::default();
        let ballot = reader.ballot(input, findings);
        reader.finish(ballot)
    }
}

/// The input of the tool with which a worker reports.
pub(crate) fn report_schema() -> Value {
    let citation = object(
        json!({
            "path": {"type": "string", "description": "A file, relative to the working directory; give first \
                and last with it."},
            "first": {"type": "integer", "description": "The first line that is meant, from 1."},
            "last": {"type": "integer", "description": "The last line that is meant."},
            "command": {"type": "string", "description": "In place of a file: a command you ran, exactly as \
                you ran it."},
            "quote": {"type": "string", "description": format!("What stands in those lines, or what the \
                command printed: word for word, nothing left out in between, at most {QUOTE_CHARS} \
                characters.")},
        }),
        &["quote"],
    );
    let finding = object(
        json!({
            "claim": {"type": "string", "description": format!("What you claim, at most {TEXT_CHARS} \
                characters.")},
            "evidence": {"type": "string", "description": format!("What it rests on: path:line, or a command \
                and what it printed, at most {TEXT_CHARS} characters.")},
            "severity": {"type": "string", "enum": ["high", "medium", "low", "info"]},
            "citations": {"type": "array", "description": "Where it can be looked up. Every citation is \
                compared with the file or with the recorded output.", "items": citation},
        }),
        &["claim", "evidence", "severity"],
    );
    object(
        json!({
            "summary": {"type": "string", "description": format!("What you did and what came of it, at most \
                {SUMMARY_CHARS} characters.")},
            "findings": {"type": "array", "description": format!("What you found, at most {MOST_FINDINGS}; \
                empty if there is nothing."), "items": finding},
        }),
        &["summary", "findings"],
    )
}

/// The input of the tool with which a verifier reports.
pub(crate) fn ballot_schema() -> Value {
    let judgement = object(
        json!({
            "finding": {"type": "integer", "description": "The number of the finding, from 1."},
            "verdict": {"type": "string", "enum": ["confirmed", "refuted", "undecided"], "description": "confirmed: you looked and it holds. refuted: you looked and it does not. undecided: you looked and cannot say."},
            "evidence": {"type": "string", "description": format!("What you saw yourself: path:line, or a \
                command and what it printed, at most {TEXT_CHARS} characters.")},
        }),
        &["finding", "verdict", "evidence"],
    );
    object(
        json!({
            "summary": {"type": "string", "description": format!("In a sentence, at most {SUMMARY_CHARS} \
                characters.")},
            "verdicts": {"type": "array", "description": "Exactly one judgement for every \
                finding.", "items": judgement},
        }),
        &["summary", "verdicts"],
    )
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Collects what is wrong while it reads, so that one answer names it all.
#[derive(Default)]
struct Reader {
    problems: Vec<String>,
}

impl Reader {
    fn finish<T>(self, read: Option<T>) -> Result<T, String> {
        let count = self.problems.len();
        match read {
            Some(read) if count == 0 => Ok(read),
            _ => {
                let named: String =
                    self.problems.iter().take(MOST_PROBLEMS).map(|p| format!("\n- {p}")).collect();
                let more = count.saturating_sub(MOST_PROBLEMS);
                let more = if more > 0 { format!("\n- and {more} more of the kind") } else { String::new() };
                Err(format!(
                    "Not recorded. Mend all of this and call the tool again with the whole \
                        input:{named}{more}"
                ))
            }
        }
    }

    fn problem<T>(&mut self, text: String) -> Option<T> {
        self.problems.push(text);
        None
    }

    fn report(&mut self, input: &Value) -> Option<Report> {
        let map = self.members("", input, &["summary", "findings"])?;
        let summary = self.text(map, "", "summary", SUMMARY_CHARS);
        let list = self.list(map, "", "findings")?;
        if list.len() > MOST_FINDINGS {
            self.problems.push(format!(
                "findings has {} entries: at most {MOST_FINDINGS}; keep those that matter most and say in \
                    the summary what is left out",
                list.len()
            ));
        }
        let findings = list.iter().enumerate().map(|(i, v)| self.finding(&format!("findings[{i}]"), v));
        // Every finding is read before the first bad one ends it, so that all problems are named.
        let findings: Vec<Option<Finding>> = findings.collect();
        Some(Report { summary: summary?, findings: findings.into_iter().collect::<Option<_>>()? })
    }

    fn finding(&mut self, at: &str, value: &Value) -> Option<Finding> {
        let map = self.members(at, value, &["claim", "evidence", "severity", "citations"])?;
        let claim = self.text(map, at, "claim", TEXT_CHARS);
        let evidence = self.text(map, at, "evidence", TEXT_CHARS);
        let severity = match member(map, "severity").map(|value| (value.as_str(), value)) {
            Some((Some("high"), _)) => Some(Severity::High),
            Some((Some("medium"), _)) => Some(Severity::Medium),
            Some((Some("low"), _)) => Some(Severity::Low),
            Some((Some("info"), _)) => Some(Severity::Info),
            Some((_, other)) => {
                self.problem(format!("{at}.severity is {}: use high, medium, low or info", shown(other)))
            }
            None => self.problem(format!("{at}.severity is missing: use high, medium, low or info")),
        };
        let citations: Vec<Option<Citation>> = match member(map, "citations") {
            None => Vec::new(),
            Some(_) => {
                let list = self.list(map, at, "citations")?;
                list.iter()
                    .enumerate()
                    .map(|(i, v)| self.citation(&format!("{at}.citations[{i}]"), v))
                    .collect()
            }
        };
        let citations = citations.into_iter().collect::<Option<_>>()?;
        Some(Finding { claim: claim?, evidence: evidence?, severity: severity?, citations })
    }

    fn citation(&mut self, at: &str, value: &Value) -> Option<Citation> {
        let map = self.members(at, value, &["path", "first", "last", "command", "quote"])?;
        let quote = self.text(map, at, "quote", QUOTE_CHARS);
        let has = |key| member(map, key).is_some();
        match (has("path"), has("command")) {
            (true, true) => {
                self.problem(format!("{at} names a path and a command: make two citations of it"))
            }
            (false, false) => self.problem(format!(
                "{at} names nothing to look up: give path, first and last, or give command"
            )),
            (true, false) => {
                let path = self.text(map, at, "path", TEXT_CHARS);
                let first = self.line(map, at, "first");
                let last = self.line(map, at, "last");
                if let (Some(first), Some(last)) = (first, last)
                    && first > last
                {
                    self.problems.push(format!(
                        "{at}.first is {first} and last is {last}: first must not be above last"
                    ));
                }
                Some(Citation {
                    path: Some(path?),
                    first: Some(first?),
                    last: Some(last?),
                    command: None,
                    quote: Some(quote?),
                })
            }
            (false, true) => {
                if has("first") || has("last") {
                    self.problems
                        .push(format!("{at} gives lines of a command's output: leave out first and last"));
                }
                let command = self.text(map, at, "command", usize::MAX)?;
                Some(Citation { command: Some(command), quote: Some(quote?), ..Citation::default() })
            }
        }
    }

    fn ballot(&mut self, input: &Value, findings: usize) -> Option<Ballot> {
        let map = self.members("", input, &["summary", "verdicts"])?;
        let summary = self.text(map, "", "summary", SUMMARY_CHARS);
        let list = self.list(map, "", "verdicts")?;
        let judgements =
            list.iter().enumerate().map(|(i, v)| self.judgement(&format!("verdicts[{i}]"), v, findings));
        let judgements: Vec<Option<Judgement>> = judgements.collect();
        let mut places: BTreeMap<u64, Vec<usize>> =
            (1..=findings as u64).map(|number| (number, Vec::new())).collect();
        for (place, value) in list.iter().enumerate() {
            let number = value.get("finding").and_then(Value::as_u64).unwrap_or(0);
            places.entry(number).and_modify(|places| places.push(place));
        }
        for (number, places) in places {
            match places[..] {
                [] => self.problems.push(format!("finding {number} has no judgement")),
                [_] => {}
                [one, two, ..] => self.problems.push(format!(
                    "finding {number} is judged more than once: verdicts[{one}] and verdicts[{two}]; give \
                        one judgement for each finding"
                )),
            }
        }
        Some(Ballot { summary: summary?, verdicts: judgements.into_iter().collect::<Option<_>>()? })
    }

    fn judgement(&mut self, at: &str, value: &Value, findings: usize) -> Option<Judgement> {
        let map = self.members(at, value, &["finding", "verdict", "evidence"])?;
        let evidence = self.text(map, at, "evidence", TEXT_CHARS);
        let number =
            member(map, "finding").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        let finding = match (number, member(map, "finding")) {
            (Some(number), _) if number >= 1 && number as usize <= findings => Some(number),
            (_, None) => self.problem(format!("{at}.finding is missing: give a number from 1 to {findings}")),
            (_, Some(other)) => {
                self.problem(format!("{at}.finding is {}: give a number from 1 to {findings}", shown(other)))
            }
        };
        let verdict = match member(map, "verdict").map(|value| (value.as_str(), value)) {
            Some((Some("confirmed"), _)) => Some(Vote::Confirmed),
            Some((Some("refuted"), _)) => Some(Vote::Refuted),
            Some((Some("undecided"), _)) => Some(Vote::Undecided),
            Some((_, other)) => {
                self.problem(format!("{at}.verdict is {}: use confirmed, refuted or undecided", shown(other)))
            }
            None => self.problem(format!("{at}.verdict is missing: use confirmed, refuted or undecided")),
        };
        Some(Judgement { finding: finding?, verdict: verdict?, evidence: evidence? })
    }

    fn members<'a>(&mut self, at: &str, value: &'a Value, known: &[&str]) -> Option<&'a Map<String, Value>> {
        let Value::Object(map) = value else {
            let name = if at.is_empty() { "the input" } else { at };
            return self.problem(format!(
                "{name} is {}: give an object with {}",
                kind(value),
                known.join(", ")
            ));
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let key: String = key.chars().take(60).collect();
            self.problems.push(format!("{} is not known: use {}", join(at, &key), known.join(", ")));
        }
        Some(map)
    }

    fn list<'a>(&mut self, map: &'a Map<String, Value>, at: &str, key: &str) -> Option<&'a [Value]> {
        let name = join(at, key);
        match member(map, key) {
            Some(Value::Array(list)) => Some(list),
            Some(Value::String(_)) => {
                self.problem(format!("{name} is a string: give an array, not the text of one"))
            }
            Some(other) => self.problem(format!("{name} is {}: give an array", kind(other))),
            None => self.problem(format!("{name} is missing: give an array")),
        }
    }

    fn text(&mut self, map: &Map<String, Value>, at: &str, key: &str, most: usize) -> Option<String> {
        let name = join(at, key);
        match member(map, key) {
            Some(Value::String(text)) if text.trim().is_empty() => {
                self.problem(format!("{name} is empty: say it"))
            }
            Some(Value::String(text)) => match text.chars().count() {
                count if count > most => {
                    self.problem(format!("{name} has {count} characters: at most {most}"))
                }
                _ => Some(text.clone()),
            },
            Some(other) => self.problem(format!("{name} is {}: give a string", kind(other))),
            None => self.problem(format!("{name} is missing: give a string")),
        }
    }

    fn line(&mut self, map: &Map<String, Value>, at: &str, key: &str) -> Option<u32> {
        let name = join(at, key);
        let Some(value) = member(map, key) else {
            return self
                .problem(format!("{name} is missing: a path needs first and last, line numbers from 1"));
        };
        match value.as_u64().and_then(|line| u32::try_from(line).ok()) {
            Some(line) if line > 0 => Some(line),
            _ => self.problem(format!("{name} is {}: give a line number from 1", shown(value))),
        }
    }
}

/// A member that is there; `null` counts as left out, because that is what models mean by it.
fn member<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(60).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_problems(input: Value, expected: &[&str]) {
        problems(Report::read(&input).map(|_| ()), expected);
    }

    fn ballot_problems(input: Value, expected: &[&str]) {
        problems(Ballot::read(&input, 2).map(|_| ()), expected);
    }

    fn problems(read: Result<(), String>, expected: &[&str]) {
        let error = read.unwrap_err();
        let lines: Vec<&str> = error.lines().skip(1).map(|line| line.strip_prefix("- ").unwrap()).collect();
        assert_eq!(lines, expected);
    }

    fn finding(citation: Value) -> Value {
        json!({"summary": "s", "findings": [
            {"claim": "c", "evidence": "e", "severity": "low", "citations": [citation]}]})
    }

    #[test]
    fn d3_5_a_valid_report_is_read_as_it_was_written() {
        let input = json!({"summary": "two", "findings": [
            {"claim": "a", "evidence": "b", "severity": "high", "citations": [
                {"path": "src/a.rs", "first": 1, "last": 2, "quote": "x"}, {"command": "ls", "quote": "y", "path": null}]},
            {"claim": "c", "evidence": "d", "severity": "info", "citations": null}]});
        let report = Report::read(&input).unwrap();
        assert_eq!(report.findings[0].severity, Severity::High);
        assert_eq!(report.findings[0].citations[0].last, Some(2));
        assert_eq!(report.findings[0].citations[1].command.as_deref(), Some("ls"));
        assert!(report.findings[1].citations.is_empty());
        assert!(Report::read(&json!({"summary": "none", "findings": []})).unwrap().findings.is_empty());
        let again: Report = serde_json::from_value(serde_json::to_value(&report).unwrap()).unwrap();
        assert_eq!(again, report);
    }

    #[test]
    fn d3_5_an_invalid_report_goes_back_with_every_problem_at_once() {
        report_problems(json!([]), &["the input is an array: give an object with summary, findings"]);
        report_problems(
            json!({}),
            &["summary is missing: give a string", "findings is missing: give an array"],
        );
        report_problems(
            json!({"summary": "s", "findings": "[]"}),
            &["findings is a string: give an array, not the text of one"],
        );
        report_problems(
            json!({"summary": " ", "more": 1, "findings": [
                {"claim": "c", "evidence": "e", "severity": "low"}, 7,
                {"claim": "", "evidence": 3, "severity": "critical", "fix": "x"}, {"claim": "c", "evidence": "e"}]}),
            &[
                "more is not known: use summary, findings",
                "summary is empty: say it",
                "findings[1] is a number: give an object with claim, evidence, severity, citations",
                "findings[2].fix is not known: use claim, evidence, severity, citations",
                "findings[2].claim is empty: say it",
                "findings[2].evidence is a number: give a string",
                "findings[2].severity is \"critical\": use high, medium, low or info",
                "findings[3].severity is missing: use high, medium, low or info",
            ],
        );
    }

    #[test]
    fn a_citation_names_lines_of_a_file_or_a_command_and_always_a_quote() {
        let at = "findings[0].citations[0]";
        let check = |citation: Value, expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|text| format!("{at}{text}")).collect();
            report_problems(finding(citation), &expected.iter().map(String::as_str).collect::<Vec<_>>());
        };
        check(
            json!({"quote": "q"}),
            &[" names nothing to look up: give path, first and last, or give command"],
        );
        check(json!({"path": "a", "first": 1, "last": 1}), &[".quote is missing: give a string"]);
        check(
            json!({"path": "a", "quote": "q"}),
            &[
                ".first is missing: a path needs first and last, line numbers from 1",
                ".last is missing: a path needs first and last, line numbers from 1",
            ],
        );
        check(
            json!({"path": "a", "first": 0, "last": 1, "quote": "q"}),
            &[".first is 0: give a line number from 1"],
        );
        check(
            json!({"path": "a", "first": 1, "last": "9", "quote": "q"}),
            &[".last is \"9\": give a line number from 1"],
        );
        check(
            json!({"path": "a", "first": 5, "last": 4, "quote": "q"}),
            &[".first is 5 and last is 4: first must not be above last"],
        );
        check(
            json!({"path": "a", "command": "b", "quote": "q"}),
            &[" names a path and a command: make two citations of it"],
        );
        check(
            json!({"command": "b", "first": 1, "quote": "q"}),
            &[" gives lines of a command's output: leave out first and last"],
        );
        check(json!({"command": "b", "quote": "\n"}), &[".quote is empty: say it"]);
    }

    #[test]
    fn what_is_over_a_limit_is_refused_with_the_numbers_and_nothing_is_cut() {
        let sized = |n: usize| "é".repeat(n);
        let whole = |summary: usize, claim: usize, quote: usize| {
            json!({"summary": sized(summary), "findings": [{"claim": sized(claim), "evidence": sized(claim), "severity": "low",
                "citations": [{"command": "c", "quote": sized(quote)}]}]})
        };
        assert!(Report::read(&whole(4_000, 4_000, 2_000)).is_ok());
        report_problems(
            whole(4_001, 4_002, 2_003),
            &[
                "summary has 4001 characters: at most 4000",
                "findings[0].claim has 4002 characters: at most 4000",
                "findings[0].evidence has 4002 characters: at most 4000",
                "findings[0].citations[0].quote has 2003 characters: at most 2000",
            ],
        );
        let many = vec![json!({"claim": "c", "evidence": "e", "severity": "low"}); 51];
        report_problems(
            json!({"summary": "s", "findings": many}),
            &["findings has 51 entries: at most 50; keep those that matter most and say in the summary \
                    what is left out"],
        );
        let error = Report::read(&json!({"summary": "s", "findings": vec![json!({}); 50]})).unwrap_err();
        assert!(error.ends_with("- and 100 more of the kind"), "{error}");
    }

    #[test]
    fn a_ballot_judges_every_finding_exactly_once() {
        let judged = |number: u32| json!({"finding": number, "verdict": "refuted", "evidence": "a:1"});
        let ballot = Ballot::read(&json!({"summary": "s", "verdicts": [judged(2), judged(1)]}), 2).unwrap();
        assert_eq!((ballot.verdicts[0].finding, ballot.verdicts[0].verdict), (2, Vote::Refuted));
        assert!(Ballot::read(&json!({"summary": "s", "verdicts": []}), 0).is_ok());
        ballot_problems(json!({"summary": "s", "verdicts": [judged(1)]}), &["finding 2 has no judgement"]);
        ballot_problems(
            json!({"summary": "s", "verdicts": [judged(1), judged(2), judged(1)]}),
            &["finding 1 is judged more than once: verdicts[0] and verdicts[2]; give one judgement for \
                    each finding"],
        );
        ballot_problems(
            json!({"summary": "s", "verdicts": [judged(1), judged(3), {"finding": 2, "verdict": "true", "evidence": ""}]}),
            &[
                "verdicts[1].finding is 3: give a number from 1 to 2",
                "verdicts[2].evidence is empty: say it",
                "verdicts[2].verdict is \"true\": use confirmed, refuted or undecided",
            ],
        );
        ballot_problems(json!({"summary": "s"}), &["verdicts is missing: give an array"]);
    }

    #[test]
    fn d3_5_the_schemas_say_what_the_readers_take_and_close_every_object() {
        fn closed(schema: &Value, objects: &mut usize) {
            if schema["type"] == "object" {
                *objects += 1;
                assert_eq!(schema["additionalProperties"], false, "{schema}");
                for (_, property) in schema["properties"].as_object().unwrap() {
                    closed(property, objects);
                }
            }
            if let Some(items) = schema.get("items") {
                closed(items, objects);
            }
        }
        let mut report = 0;
        let mut ballot = 0;
        closed(&report_schema(), &mut report);
        closed(&ballot_schema(), &mut ballot);
        assert_eq!((report, ballot), (3, 2));
        let finding = &report_schema()["properties"]["findings"]["items"];
        assert_eq!(finding["required"], json!(["claim", "evidence", "severity"]));
        for severity in finding["properties"]["severity"]["enum"].as_array().unwrap() {
            assert!(serde_json::from_value::<Severity>(severity.clone()).is_ok());
        }
        for vote in ballot_schema()["properties"]["verdicts"]["items"]["properties"]["verdict"]["enum"]
            .as_array()
            .unwrap()
        {
            assert!(serde_json::from_value::<Vote>(vote.clone()).is_ok());
        }
    }
}
