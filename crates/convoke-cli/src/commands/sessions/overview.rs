//! The parts of a session, for `convoke sessions show`: its workflows, a line each, and its agents as a
//! table. A lead that did everything by itself needs neither.

use convoke_kernel::{RunSummary, Status};

use crate::catalog::{Entry, ListedSession};
use crate::commands::table::{Column, Table};
use crate::render::{count, dollars, kind_word, tokens};

/// The workflows and agents of a session.
pub(super) fn overview(listed: &ListedSession, width: Option<usize>) -> String {
    if listed.agents.len() < 2 && listed.workflows.is_empty() {
        return String::new();
    }
    let mut text: String = listed.workflows.iter().map(workflow).collect();
    let columns = vec![
        Column::kept("AGENT"),
        Column::kept("ROLE"),
        Column::kept("STATUS"),
        Column::dropped("TURNS", 1).right(),
        Column::dropped("COMMANDS", 0).right(),
        Column::dropped("TOKENS", 2).right(),
        Column::dropped("DOLLARS", 3).right(),
        Column::cut("LABEL"),
    ];
    let mut table = Table::new(columns);
    for Entry { agent, summary, owner, .. } in &listed.agents {
        let label = if summary.label.is_empty() { &summary.task } else { &summary.label };
        table.row(vec![
            agent.to_string(),
            summary.role.word().to_owned(),
            status(summary.status, summary.failure.map(kind_word), owner.is_some()),
            summary.turns.to_string(),
            summary.commands.to_string(),
            tokens(summary.usage.prompt_tokens().saturating_add(summary.usage.output_tokens)),
            dollars(summary.cost_nano),
            label.clone(),
        ]);
    }
    text.push_str(&table.render(width));
    text
}

fn status(status: Status, failure: Option<String>, owned: bool) -> String {
    let word = match status {
        Status::Open if owned => "running",
        Status::Open => "open",
        Status::Done => "done",
        Status::Partial => "partial",
        Status::Failed => "failed",
    };
    match failure {
        Some(kind) => format!("{word} {kind}"),
        None => word.to_owned(),
    }
}

/// `workflow wf_… · 12 subtasks: 10 ok, 1 failed · findings: 5 confirmed, 1 refuted · 3 of 12 results not
/// new`.
fn workflow(summary: &RunSummary) -> String {
    let counts = &summary.counts;
    let found = &summary.counts.findings;
    let ended = [
        (counts.ok, "ok"),
        (counts.degraded, "degraded"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.working, "at work"),
        (counts.queued, "waiting"),
    ];
    let verdicts = [
        (found.confirmed, "confirmed"),
        (found.uncertain, "uncertain"),
        (found.unverified, "unverified"),
        (found.refuted, "refuted"),
    ];
    let mut parts = vec![
        format!("workflow {}", summary.run),
        format!(
            "{}: {}",
            count(counts.items, "subtask"),
            listed(&ended).unwrap_or_else(|| "begun".to_owned())
        ),
    ];
    parts.extend(listed(&verdicts).map(|said| format!("findings: {said}")));
    if counts.reused + counts.reused_votes > 0 {
        parts.push(format!(
            "not new: {}, {}",
            count(counts.reused, "result"),
            count(counts.reused_votes, "verification")
        ));
    }
    format!("{}\n", parts.join(" · "))
}

fn listed(counts: &[(u32, &str)]) -> Option<String> {
    let said: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    Some(said.join(", ")).filter(|said| !said.is_empty())
}
