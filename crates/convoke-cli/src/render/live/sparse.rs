//! Progress where nothing is drawn: a line now and then, and never a long silence while the server is waited
//! for.

use std::io::Write;
use std::time::{Duration, Instant};

use convoke_kernel::ModelFailed;
use convoke_view::first_line;

use super::{Live, MOST_CHARS};

/// Time is looked at this often.
pub(super) const LINE: Duration = Duration::from_secs(1);
/// Steady work is told of after this long, then after twice as long each time, until something else is said.
pub(super) const STEADY: Duration = Duration::from_secs(10);
/// But a line is repeated after this long, so that a long command is not taken for a dead session.
const REPEAT: Duration = Duration::from_secs(60);
/// While the server is waited for, a line is written this often, and at once when the reason is another one:
/// as time is looked at every second, no silence lasts ten seconds.
const WAIT_LINE: Duration = Duration::from_secs(9);
/// How much is said of a server that cannot be reached.
const MOST_OF_A_WAIT: usize = 400;

impl<W: Write> Live<W> {
    pub(super) fn say_sparsely(&mut self, now: Instant, at: u64) {
        let since = now.duration_since(self.last);
        let why = self.work.waits.why(at);
        let spell = self.work.waits.spell();
        if spell.is_none() && self.said_spell.take().is_some() {
            // The server is reached again, or given up: what follows begins its own silence.
            self.last = now;
            return;
        }
        let (pause, repeat) = match &why {
            // That a server cannot be reached is one line, which says until when it is tried. The tries
            // themselves are no news.
            _ if spell.is_some() && spell == self.said_spell => (REPEAT, REPEAT),
            Some(_) if why != self.said_why => (LINE, LINE),
            Some(_) => (WAIT_LINE, WAIT_LINE),
            None => (self.steady, REPEAT),
        };
        if since < pause || (!self.dirty && since < repeat) {
            return;
        }
        let away = self.work.waits.away(at);
        let is_away = away.is_some();
        let line = match away {
            Some(away) => format!("[wait] {}", first_line(&away, MOST_OF_A_WAIT)),
            None => self.status(at),
        };
        self.dirty = false;
        if line != self.said || since >= repeat {
            self.steady = if why.is_some() { STEADY } else { (self.steady * 2).min(REPEAT) };
            self.put(&format!("{line}\n"));
            self.last = now;
            (self.said, self.said_why) = (line, why);
            if is_away {
                self.said_spell = spell;
            }
        }
    }

    /// The lead got no reply. That the server cannot be reached stands there once; the region counts down to
    /// the next try.
    pub(super) fn failed(&mut self, at: u64, event: &ModelFailed) {
        let spell = self.work.waits.spell();
        if spell.is_some() && spell == std::mem::replace(&mut self.said_spell, spell) {
            return self.forget();
        }
        let what = if self.text.is_empty() { "no reply" } else { "reply withdrawn" };
        self.forget();
        let why = first_line(&event.failure.message, MOST_CHARS);
        let next = match event.retry_at {
            Some(until) => {
                let left = Duration::from_millis(until.saturating_sub(at)).as_secs_f64().ceil();
                format!(", asking again in {left} s")
            }
            None => String::new(),
        };
        self.remark(&format!("… ({what}{next}: {why})"));
    }
}
