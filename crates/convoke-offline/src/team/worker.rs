//! A worker: one subtask, one command, one report. It reports what the command printed and nothing else; what
//! could not be checked stands in the summary.

use serde_json::{Value, json};

use super::concern::Concern;
use super::facts::{Sight, Spot};
use super::kind::{Kind, hit_claim};
use super::look::{Look, MOST};
use super::{between, many, subtask};
use crate::policy::{Answer, call_tools, text};
use crate::read::{Call, Exchange, short};

/// How often a command is tried.
const TRIES: usize = 2;

pub(super) fn answer(request: &Value) -> Answer {
    let exchange = Exchange::of_agent(request);
    let subtask = between(&exchange.task, "<subtask>", "</subtask>");
    let look = subtask::read(subtask);
    let title = look.title();
    let tries: Vec<&Call> =
        exchange.calls.iter().filter(|call| call.name == "bash" && call.title() == title).collect();
    let sight = tries.iter().rev().find_map(|call| Sight::parse(call.result.as_deref()?));
    let why = tries.iter().rev().find_map(|call| call.result.as_deref()).map(short);
    let reports: Vec<&Call> = exchange.calls.iter().filter(|call| call.name == "report_findings").collect();
    let searches = !matches!(&look, Look::Words { terms, .. } if terms.is_empty());
    if sight.is_none() && searches && tries.len() < TRIES && !exchange.handing_back && reports.is_empty() {
        let say = if tries.is_empty() { "Looking into it." } else { "That brought no result; once more." };
        return call_tools(say, vec![("bash", json!({"command": look.command()}))], exchange.calls_so_far);
    }
    let mut report = report(&look, sight.as_ref(), why.as_deref());
    match reports.as_slice() {
        [] => {}
        [sent] => correct(&mut report, sent.result.as_deref().unwrap_or_default()),
        _ => return text(&in_prose(&report)),
    }
    call_tools("This is what I found.", vec![("report_findings", report)], exchange.calls_so_far)
}

/// The report of what was seen.
fn report(look: &Look, sight: Option<&Sight>, why: Option<&str>) -> Value {
    let Some(sight) = sight else {
        let why = why.unwrap_or("there was no time to look");
        let summary =
            format!("Nothing could be checked: the command brought no result ({why}). Nothing is known.");
        return json!({"summary": summary, "findings": []});
    };
    let findings: Vec<Value> = sight.items.iter().take(MOST).map(finding).collect();
    json!({"summary": summary(look, sight, findings.len()), "findings": findings})
}

fn finding(spot: &Spot) -> Value {
    let Spot { path, first, last, quote, .. } = spot;
    let kind = Kind::named(&spot.kind);
    let claim = kind.map_or_else(|| hit_claim(&spot.detail), |kind| kind.claim(&spot.detail));
    let severity = kind.map_or("info", |kind| kind.severity);
    if *first == 0 {
        let evidence =
            if path == "." { "Listed the files here; there is none.".to_owned() } else { path.clone() };
        return json!({"claim": claim, "evidence": evidence, "severity": severity});
    }
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    let evidence = format!("{path}:{lines}: {}", cut(quote, 120));
    let mut finding = json!({"claim": claim, "evidence": evidence, "severity": severity});
    if !quote.is_empty() {
        finding["citations"] = json!([{"path": path, "first": first, "last": last, "quote": quote}]);
    }
    finding
}

fn summary(look: &Look, sight: &Sight, reported: usize) -> String {
    let (what, place) = match look {
        Look::Check { concern, place } => (concern.about().title.to_owned(), place.clone()),
        Look::Words { terms, place, .. } => (
            format!("No rule knows this subtask; searched for its words ({})", terms.join(", ")),
            place.clone(),
        ),
        _ => (String::new(), super::look::Scope::default()),
    };
    let total = sight.total();
    let mut said = format!("{what}: looked into {}", many(sight.looked(), "file"));
    if !place.within.is_empty() {
        said += &format!(" in {}", place.within.join(", "));
    }
    if !place.except.is_empty() {
        said += &format!(", all but {}", place.except.join(", "));
    }
    said += &format!("; {}.", many(total, "finding"));
    if total > reported as u64 {
        said += &format!(" Reported here: {reported}; not listed: {} more.", total - reported as u64);
    }
    if let Look::Check { concern: Concern::Secrets, .. } = look {
        said += " Seen are keys and tokens of known forms, and passwords that are written as literals: there \
            may be others.";
    }
    let mut gaps = Vec::new();
    let mut gap = |name: &str, what: &str, which: &str| {
        if sight.count(name) > 0 {
            gaps.push(format!("{} {which}", many(sight.count(name), what)));
        }
    };
    gap("locked", "file", "that could not be read");
    gap("closed", "directory", "that could not be read");
    gap("misnamed", "file", "with a name that is not UTF-8");
    gap("unjudged", "file", "in what may be a dialect");
    gap("marked_generated", "file", "marked as generated");
    gap("long_lines", "line", "of more than 4,000 bytes");
    gap("unsure", "function", "without a certain end");
    gap("scope_missing", "path", "not to be found");
    if sight.count("stopped") + sight.count("capped") > 0 {
        gaps.push("what lies beyond the first 5,000 files or 700,000 lines".to_owned());
    }
    if !gaps.is_empty() {
        said += &format!(" Not checked: {}.", gaps.join(", "));
    }
    said
}

/// A second report, after the first was sent back: without the citations of the findings that the reason
/// names, or without any if it names none.
fn correct(report: &mut Value, reason: &str) {
    let named = reason.contains("findings[");
    let Some(findings) = report["findings"].as_array_mut() else { return };
    let mut dropped = 0;
    for (index, finding) in findings.iter_mut().enumerate() {
        let meant = !named || reason.contains(&format!("findings[{index}]"));
        let members = finding.as_object_mut().filter(|_| meant);
        dropped += u64::from(members.and_then(|members| members.shift_remove("citations")).is_some());
    }
    let summary = report["summary"].as_str().unwrap_or_default();
    let said = format!(
        "{summary} A first report was sent back; {} came without their citations.",
        many(dropped, "finding")
    );
    report["summary"] = json!(said);
}

/// What is left to say when no report was taken.
fn in_prose(report: &Value) -> String {
    let mut said = report["summary"].as_str().unwrap_or_default().to_owned();
    for finding in report["findings"].as_array().into_iter().flatten() {
        let member = |name: &str| finding[name].as_str().unwrap_or_default();
        said += &format!("\n- [{}] {}: {}", member("severity"), member("claim"), member("evidence"));
    }
    said
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() > most {
        text.chars().take(most).collect::<String>() + "…"
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::look::Scope;

    #[test]
    fn a_look_for_secrets_never_says_that_there_are_none() {
        let sight = Sight::parse("N\tlooked\t3\t.\nend").unwrap();
        let of = |concern| summary(&Look::Check { concern, place: Scope::default() }, &sight, 0);
        assert!(of(Concern::Secrets).contains("0 findings. Seen are keys and tokens of known forms"));
        assert!(of(Concern::Secrets).ends_with("there may be others."));
        assert!(!of(Concern::Shell).contains("there may be others"));
    }
}
