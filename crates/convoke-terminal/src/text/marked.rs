//! What somebody else wrote, where a person is to agree to it: every line begins with a mark, so that none can pass for ours, and nothing of
//! it hides.

use super::clean::revealed;
use super::measure::broken;

/// A foreign text as rows of at most this width, but no narrower than six columns. The first line begins with one mark, every other
/// with the next; what only does not fit into a row is indented.
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
