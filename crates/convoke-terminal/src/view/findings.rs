//! Findings: one row each with its verdict, and all of one with its evidence.

use convoke_kernel::Severity;
use convoke_view::{FilePosition, FindingRow, VerdictWord};

use crate::text::{Tone, text_columns};

use super::paint::RowWriter;

/// What is said where there is none.
pub(super) const NONE: &str =
    "No findings. What workers report stands here, with its evidence and what verifiers made of it.";

/// Draws a finding.
pub(super) fn draw(writer: &mut RowWriter<'_>, row: &FindingRow) {
    let width = writer.room();
    let (mark, tone) = look(row.verdict, row.severity);
    writer.field(mark, 1, tone);
    if width < 24 {
        writer.put(&row.claim, Tone::Plain);
        return;
    }
    writer.field(severity_word(row.severity), 6, severity_tone(row.severity));
    if width < 60 {
        writer.put(&row.claim, Tone::Plain);
        return;
    }
    writer.field(row.verdict.word(), 10, tone);
    let place = if width >= 90 { 28 } else { 20 };
    writer.field(&row.claim, width - 2 - 7 - 11 - place - 1, Tone::Plain);
    let text = row.places.first().map(place_text).unwrap_or_default();
    writer.put(&tail(&text, place), Tone::Dim);
}

/// All of a finding.
pub(super) fn whole(row: &FindingRow) -> String {
    let severity = severity_word(row.severity);
    let verdict = row.verdict.word();
    let mut text = format!("{}\n\n{severity} · {verdict} · found by {}", row.claim, row.label);
    for (title, words) in [("Why", &row.reason), ("Evidence", &row.evidence)] {
        if !words.is_empty() {
            text.push_str(&format!("\n\n{title}\n{words}"));
        }
    }
    if !row.places.is_empty() {
        text.push_str("\n\nPlaces");
        for (number, place) in (1..).zip(&row.places) {
            text.push_str(&format!("\n{number} {}", place_text(place)));
        }
    }
    text
}

/// A place in one word: `src/a.rs:12`.
pub(super) fn place_text(place: &FilePosition) -> String {
    let path = crate::text::shown(&place.path).replace('\n', "⏎");
    match place.line {
        Some(line) => format!("{path}:{line}"),
        None => path,
    }
}

/// The end of a text, with a mark where its beginning is left out: of a path the end says more.
fn tail(text: &str, width: usize) -> String {
    use unicode_segmentation::UnicodeSegmentation;
    if text_columns(text) <= width {
        return text.to_owned();
    }
    let mut kept = Vec::new();
    let mut used = 1;
    for part in text.graphemes(true).rev() {
        used += text_columns(part);
        if used > width {
            break;
        }
        kept.push(part);
    }
    kept.reverse();
    format!("…{}", kept.concat())
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    }
}

fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Warn,
        Severity::Info | Severity::Low => Tone::Dim,
    }
}

/// The mark and the tone of a finding. A confirmed defect is bad news and must not look like a success.
fn look(verdict: VerdictWord, severity: Severity) -> (&'static str, Tone) {
    match verdict {
        VerdictWord::Confirmed if severity >= Severity::Medium => ("!", Tone::Bad),
        VerdictWord::Confirmed => ("!", Tone::Warn),
        VerdictWord::Uncertain => ("?", Tone::Warn),
        VerdictWord::Unverified => ("·", Tone::Dim),
        VerdictWord::Refuted => ("-", Tone::Dim),
    }
}
