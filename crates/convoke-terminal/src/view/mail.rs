//! Letters: one row each, and all of one. Looking at a letter here does not deliver it to its reader.

use convoke_view::{Fleet, LetterRow};

use crate::text::{Tone, seconds};

use super::paint::{RowWriter, short_time};

/// What is said where there is none.
pub(super) const NONE: &str = "No letters. What teammates and the lead write to each other stands here.";

/// What stands in the place of a text that its reader has not read.
const UNREAD: &str = "(not read yet)";

/// Draws a letter.
pub(super) fn draw(writer: &mut RowWriter<'_>, row: &LetterRow, now: u64) {
    let width = writer.room();
    let (mark, tone) = if row.read { (" ", Tone::Plain) } else { ("●", Tone::Warn) };
    writer.field(mark, 1, tone);
    let names = format!("{} → {}", row.from, row.to);
    if width < 60 {
        writer.field(&names, (width / 2).clamp(1, 20), Tone::Strong);
        writer.put(first_line(row), Tone::Plain);
        return;
    }
    let text = width - 2 - 25 - 9 - 7 - 7;
    writer.field(&names, 24, Tone::Strong).field(row.kind, 8, Tone::Dim).field(
        first_line(row),
        text,
        Tone::Plain,
    );
    writer.field(if row.read { "read" } else { "unread" }, 6, tone);
    writer.right(&short_time(Fleet::since(now, row.at)), 6, Tone::Dim);
}

/// All of a letter.
pub(super) fn whole(row: &LetterRow, now: u64) -> String {
    let state = if row.read { "read" } else { "unread" };
    let age = seconds(Fleet::since(now, row.at));
    let head = format!("from {} to {}\n{} · {state} · {age} ago · {}", row.from, row.to, row.kind, row.id);
    match &row.text {
        Some(text) => format!("{head}\n\n{text}"),
        None => format!("{head}\n\nIts reader has not read it yet. What it says stands here once it has."),
    }
}

fn first_line(row: &LetterRow) -> &str {
    match &row.text {
        Some(text) => text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(),
        None => UNREAD,
    }
}
