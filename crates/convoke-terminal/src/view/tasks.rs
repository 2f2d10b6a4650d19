//! Tasks of the board: one row each, and all of one.

use convoke_view::TaskRow;

use crate::text::Tone;

use super::paint::RowWriter;

/// What is said where there is none.
pub(super) const NONE: &str = "No tasks. What the lead puts on the board of its team stands here.";

/// Draws a task.
pub(super) fn draw(writer: &mut RowWriter<'_>, row: &TaskRow) {
    let width = writer.room();
    let (mark, tone) = look(row.state);
    writer.field(mark, 1, tone);
    if width < 24 {
        writer.put(&row.subject, Tone::Plain);
        return;
    }
    writer.field(row.state, 9, tone);
    if width < 50 {
        writer.put(&row.subject, Tone::Plain);
        return;
    }
    let who = if width >= 90 { 28 } else { 18 };
    writer.field(&row.subject, width - 2 - 10 - who - 1, Tone::Plain).put(&holder(row), Tone::Dim);
}

/// All of a task.
pub(super) fn whole(row: &TaskRow) -> String {
    let mut text = format!("{}\n\ntask {} · {}", row.subject, row.id, row.state);
    if let Some(owner) = &row.owner {
        text.push_str(&format!(
            " · {} {owner}",
            if row.state == "claimed" { "held by" } else { "last held by" }
        ));
    }
    if let Some(role) = &row.role {
        text.push_str(&format!("\nfor: {role}"));
    }
    if !row.blocked_by.is_empty() {
        let before: Vec<&str> = row.blocked_by.iter().map(|task| task.as_str()).collect();
        text.push_str(&format!("\nwaits for: {}", before.join(", ")));
    }
    if !row.detail.is_empty() {
        text.push_str(&format!("\n\n{}", row.detail));
    }
    text
}

/// The member that has it, or what it waits for.
fn holder(row: &TaskRow) -> String {
    match (&row.owner, row.blocked_by.len()) {
        (_, 1) if row.state == "blocked" => "waits for 1 task".to_owned(),
        (_, before) if row.state == "blocked" => format!("waits for {before} tasks"),
        (Some(owner), _) => owner.clone(),
        (None, _) => row.role.as_ref().map(|role| format!("for {role}")).unwrap_or_default(),
    }
}

fn look(state: &str) -> (&'static str, Tone) {
    match state {
        "claimed" => ("▸", Tone::Busy),
        "done" => ("✓", Tone::Good),
        "failed" => ("✗", Tone::Bad),
        "blocked" => ("-", Tone::Dim),
        "cancelled" => ("■", Tone::Dim),
        _ => ("·", Tone::Plain),
    }
}
