//! Foreign text that a person is asked to agree to: every line begins with a mark, so that none can pass for
//! ours, and nothing of it hides.

use convoke_view::revealed;

use super::measure::broken;

/// A foreign text as rows of at most this width, but no narrower than six columns. The first line begins with
/// the mark `first`, every other one with `next`; a line goes on in indented rows.
pub fn marked(text: &str, first: &str, next: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for (number, line) in revealed(text).split('\n').enumerate() {
        let mark = if number == 0 { first } else { next };
        for (part, row) in broken(line, width.saturating_sub(2).max(4)).into_iter().enumerate() {
            rows.push(format!("{}{row}", if part == 0 { mark } else { "  " }));
        }
    }
    rows
}
