//! What the keys do, in words.

use super::pager::{Pager, Subject};

/// The keys of the fleet view and what they do.
const KEYS: [(&str, &str); 20] = [
    ("1-5, Tab", "agents, tasks, mail, findings, questions"),
    ("↑ ↓, j k", "one row; PgUp PgDn a screen, Home End all the way"),
    ("Enter, →", "one step deeper: run, agent, turns, output"),
    ("Esc, q, ←", "one step back; q in a list goes to the session"),
    ("", ""),
    ("/", "filter a list, search an agent or a text"),
    ("n N", "the next place with that text, the one before"),
    ("f", "only those that ask, run, failed, wait, are done"),
    ("g", "only those of one run, then of the next"),
    ("F", "follow: stay on what happened last"),
    ("", ""),
    ("s", "stop the agent (asks before)"),
    ("r", "try the agent or the task again that failed"),
    ("R", "try again what failed in the run (asks before)"),
    ("m", "write to the agent: the lead and teammates read mail"),
    ("o", "open the file at its line in your editor"),
    ("", ""),
    ("y n a", "yes, no, always to a question, once all of it was seen"),
    ("", ""),
    ("Ctrl-L", "draw everything again"),
];

/// Help as a text.
pub(super) fn pager() -> Pager {
    let lines = KEYS
        .iter()
        .map(|(key, what)| if key.is_empty() { String::new() } else { format!("{key:<10} {what}") });
    Pager::new(Subject::Other, "Keys", lines.collect::<Vec<_>>().join("\n"), Vec::new())
}
