//! The last reply of work that is cut short: a text with what is known so far and what is not. It never
//! refuses, because the harness asks for it knowing that the work is not done, and it never calls a tool,
//! because none would be run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::digest::items;
use super::facts::Sight;
use super::many;
use crate::intent::Topic;
use crate::read::{Exchange, SCOUT};

/// What is handed back: the note that asked for it, why the task could not be done anyway, and what it asked
/// to look at.
pub(crate) fn hand_back(exchange: &Exchange, note: &str, beyond: Option<&str>, asks: &[&str]) -> String {
    let cause = note.split(": this is the last reply").next().unwrap_or_default();
    let cause = cause.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    let mut out = format!(
        "Offline model: fixed rules, no intelligence. The work ended before it was done: {cause}.\n\n## What \
            is known\n\n"
    );
    let counts = scouted(exchange);
    match &counts {
        Some(counts) => out += counts,
        None => out += "Nothing: no command brought a result before that.\n",
    }
    for (title, why) in exchange.failures() {
        let _ = writeln!(out, "\nNo result for “{}”: {why}.", title.trim_start_matches(['#', ' ']));
    }
    if let Some(reason) = refused_fan_out(exchange) {
        let _ = writeln!(out, "\nThe fan-out was refused. The reason: {reason}");
    }
    out += "\n## Not checked\n\n";
    if let Some(beyond) = beyond {
        let _ = writeln!(out, "- {beyond}");
    }
    let counted = |ask: &&&str| counts.is_some() && **ask == Topic::Count.name();
    for ask in asks.iter().filter(|ask| !counted(ask)) {
        let _ = writeln!(out, "- {ask}");
    }
    out += "- What the code means, whether it is right, safe or builds, whether its tests pass.\n";
    out
}

/// Why the last fan-out was refused, in whole; none if there was none or it brought results.
pub(crate) fn refused_fan_out(exchange: &Exchange) -> Option<String> {
    let run = exchange.calls.iter().rfind(|call| call.name == "Workflow")?;
    let result = run.result.as_deref()?;
    let reason = result.split_whitespace().collect::<Vec<_>>().join(" ");
    items(result).is_empty().then_some(reason).filter(|reason| !reason.is_empty())
}

/// The files and lines that the scouting command counted, by language.
fn scouted(exchange: &Exchange) -> Option<String> {
    let scouts = exchange.calls.iter().rev().filter(|call| call.title() == SCOUT);
    let sight = scouts.filter_map(|call| Sight::parse(call.result.as_deref()?)).next()?;
    let mut languages: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for area in &sight.areas {
        let sum = languages.entry(&area.language).or_default();
        *sum = (sum.0 + area.files, sum.1 + area.lines);
    }
    let (files, lines) = languages.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mut out =
        format!("{} with {}, counted by the scouting command:\n\n", many(files, "file"), many(lines, "line"));
    for (language, (files, lines)) in languages {
        let lines = if language == "other" { "lines not counted".to_owned() } else { many(lines, "line") };
        let _ = writeln!(out, "- {language}: {}, {lines}", many(files, "file"));
    }
    Some(out)
}
