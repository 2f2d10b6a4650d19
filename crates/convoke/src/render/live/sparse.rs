//! Progress where nothing is drawn: a line now and then, and never a long silence while the server is waited for.

use std::io::Write;
use std::time::{Duration, Instant};

use super::Live;

/// Elsewhere a line is written at most this often.
pub(super) const LINE: Duration = Duration::from_secs(1);
/// And this often while others work for the lead: then there is always something new.
const TEAM_LINE: Duration = Duration::from_secs(5);
/// A line is repeated after this long, so that a long command is not taken for a dead run.
const REPEAT: Duration = Duration::from_secs(60);
/// While the server is waited for a line is written this often, and at once when the reason is another one: nobody is left
/// without a word for ten seconds, as time is looked at every second.
const WAIT_LINE: Duration = Duration::from_secs(9);

impl<W: Write> Live<W> {
    pub(super) fn say_sparsely(&mut self, now: Instant, at: u64) {
        let since = now.duration_since(self.last);
        let why = self.tree.waits.why(at);
        let (pause, repeat) = match &why {
            Some(_) if why != self.said_why => (LINE, LINE),
            Some(_) => (WAIT_LINE, WAIT_LINE),
            None if self.tree.is_at_work() && !self.said.is_empty() => (TEAM_LINE, REPEAT),
            None => (LINE, REPEAT),
        };
        if since < pause || (!self.dirty && since < repeat) {
            return;
        }
        let line = self.status(at);
        self.dirty = false;
        if line != self.said || since >= repeat {
            self.put(&format!("{line}\n"));
            self.last = now;
            (self.said, self.said_why) = (line, why);
        }
    }
}
