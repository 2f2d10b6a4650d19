//! The lead's answer: what was confirmed, by severity and with its evidence; what was not, as such; what was
//! not checked.

use std::fmt::Write as _;

use super::digest::{Found, Item};
use super::many;

/// The answer, from the items of a run and the titles of concerns that were not looked into.
pub(super) fn write(items: &[Item], left: &[&str], scouted: &str) -> String {
    let found: Vec<(&Item, &Found)> =
        items.iter().flat_map(|item| item.findings.iter().map(move |found| (item, found))).collect();
    let of = |word: &str| {
        let mut some: Vec<&(&Item, &Found)> =
            found.iter().filter(|(_, found)| found.word() == word).collect();
        some.sort_by_key(|(item, found)| (found.rank(), item.number));
        some
    };
    let confirmed = of("confirmed");
    let refuted = of("refuted");
    let mut open: Vec<&(&Item, &Found)> =
        found.iter().filter(|(_, found)| !["confirmed", "refuted"].contains(&found.word())).collect();
    open.sort_by_key(|(item, found)| (found.rank(), item.number));
    let mut out = format!(
        "Offline model: fixed rules, no intelligence. {} of {} by sub-agents{scouted}: {} confirmed, {} \
         refuted, {} uncertain or unverified.\n",
        items.iter().filter(|item| item.is_ok()).count(),
        many(items.len() as u64, "check"),
        confirmed.len(),
        refuted.len(),
        open.len()
    );
    let mut severity = "";
    out += "\n## Confirmed findings\n";
    if confirmed.is_empty() {
        out += "\nNone.\n";
    }
    for (item, found) in confirmed {
        if found.severity != severity {
            severity = &found.severity;
            let _ = write!(out, "\n### {}\n\n", capital(severity));
        }
        point(&mut out, item, found, false);
    }
    section(&mut out, "Uncertain or unverified", &open);
    section(&mut out, "Refuted", &refuted);
    checks(&mut out, items);
    let _ = write!(out, "\n## Not checked\n\n");
    for item in items.iter().filter(|item| !item.is_ok()) {
        let _ = writeln!(out, "- {}: {}", item.label, item.status);
    }
    for title in left {
        let _ = writeln!(out, "- {title}: no room among the subtasks");
    }
    out += "- What the code means, whether it is right, safe or builds, whether its tests pass.\n";
    out
}

fn section(out: &mut String, title: &str, found: &[&(&Item, &Found)]) {
    if found.is_empty() {
        return;
    }
    let _ = write!(out, "\n## {title}\n\n");
    for (item, found) in found {
        point(out, item, found, true);
    }
}

fn point(out: &mut String, item: &Item, found: &Found, reason: bool) {
    let evidence =
        if found.evidence.is_empty() { String::new() } else { format!(" — {}", code(&found.evidence)) };
    let _ = write!(out, "- {}{evidence} (item {}", found.claim, item.number);
    let why = if found.verdict.contains(':') { &found.verdict } else { &found.verifier };
    if reason {
        let _ = write!(out, ", {}, {}", found.severity, if why.is_empty() { &found.verdict } else { why });
    }
    out.push_str(")\n");
}

fn checks(out: &mut String, items: &[Item]) {
    let _ = write!(out, "\n## Checks\n\n");
    for item in items.iter().filter(|item| item.is_ok()) {
        let summary = item.summary.join(" ");
        let summary = if summary.is_empty() { "no summary".to_owned() } else { summary };
        let degraded = if item.status == "ok" || item.status.is_empty() { "" } else { &item.status };
        let _ = writeln!(out, "- item {}: {summary} {degraded}", item.number);
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}
