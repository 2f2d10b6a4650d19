//! The drawn manner: a region below the conversation, and the fleet on the whole screen.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures_util::StreamExt;
use ratatui::text::Line;
use rustix::termios::tcgetattr;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;

use convoke_view::FilePosition;

use super::{Drawn, Ends, Left, ScreenOptions, memory, take_in};
use crate::app::{Act, App, Picture};
use crate::screen_update::ScreenUpdate;
use crate::stage::{Region, Stage};
use crate::user_action::UserAction;

/// News are gathered for this long before they are drawn.
const FRAME: Duration = Duration::from_millis(50);
/// A key is answered at once; keys that come faster than a person types are gathered for this long.
const KEYS: Duration = Duration::from_millis(10);
/// While work is under way the picture is drawn anew this often, because time passes.
const BEAT: Duration = Duration::from_millis(500);
/// Between two looks whether the terminal is still there, once the session was told that it goes away.
const LOOK: Duration = Duration::from_millis(50);

/// Shows the session until it is over or the other manner is wanted.
pub(super) async fn show(
    manner: &ScreenOptions,
    app: &mut App,
    ends: &mut Ends,
    drawn: &mut Drawn,
) -> io::Result<Left> {
    let stage = Stage::take(io::stdout(), true)?;
    let mut shower = Shower { manner, app, stage, keys: Some(EventStream::new()), whole: false, drawn };
    let left = shower.show(ends).await;
    match left {
        Ok(left) => {
            shower.last()?;
            Ok(left)
        }
        // The terminal is gone, so giving it back may fail as well; the first error is reported.
        Err(error) => {
            let _ = shower.stage.give_back();
            Err(error)
        }
    }
}

struct Shower<'a> {
    manner: &'a ScreenOptions,
    app: &'a mut App,
    stage: Stage<io::Stdout>,
    /// Absent while the terminal is lent.
    keys: Option<EventStream>,
    /// Whether the whole screen is drawn on.
    whole: bool,
    drawn: &'a mut Drawn,
}

impl Shower<'_> {
    async fn show(&mut self, ends: &mut Ends) -> io::Result<Left> {
        // A hang-up is told before the terminal is gone, and `kill` can send it too: from then on the
        // terminal is looked at.
        let mut hang_ups = signal(SignalKind::hangup())?;
        let mut looks = interval(LOOK);
        let mut is_hung_up = false;
        // What is known already stands in the first picture.
        if let Ok(news) = ends.news.try_recv() {
            take_in(self.app, news, &mut ends.news);
        }
        loop {
            self.draw(ends)?;
            let last = Instant::now();
            let mut due = false;
            let mut pressed = false;
            while !due {
                let waits = match pressed {
                    true => Some(KEYS.saturating_sub(last.elapsed())),
                    false => pause(self.app.is_dirty(), self.app.moves(), last.elapsed()),
                };
                let keys = self.keys.get_or_insert_with(EventStream::new);
                tokio::select! {
                    biased;
                    event = keys.next() => {
                        let event = event.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
                        if let Some(left) = self.pressed_all(event, ends).await? {
                            return Ok(left);
                        }
                        pressed = true;
                        due = last.elapsed() >= KEYS;
                    }
                    news = ends.news.recv() => {
                        let Some(news) = news else { return Ok(Left::Over) };
                        take_in(self.app, news, &mut ends.news);
                        // While news keep coming the loop does not sleep, so a due picture is noticed here.
                        due = pause(self.app.is_dirty(), false, last.elapsed()) == Some(Duration::ZERO);
                    }
                    _ = hang_ups.recv() => is_hung_up = true,
                    // The reader of keys does not end by itself: it would keep a core busy until the session
                    // has ended.
                    _ = looks.tick(), if is_hung_up => {
                        tcgetattr(io::stdout())?;
                    }
                    () = sleep(waits) => due = true,
                }
                if self.app.is_over() {
                    return Ok(Left::Over);
                }
            }
        }
    }

    /// Takes a key and everything that was typed since, so that keys typed ahead do not wait for pictures.
    async fn pressed_all(&mut self, first: Event, ends: &Ends) -> io::Result<Option<Left>> {
        const AT_ONCE: usize = 200;
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(event) = next.take() {
            taken += 1;
            for act in self.pressed(event)? {
                if let Some(left) = self.act(act, ends)? {
                    return Ok(Some(left));
                }
            }
            // Asked in the name of this task, which is the one that is to be woken by the next key.
            if let Some(keys) = self.keys.as_mut().filter(|_| taken < AT_ONCE) {
                next = match poll_fn(|context| Poll::Ready(keys.poll_next_unpin(context))).await {
                    Poll::Ready(Some(event)) => Some(event?),
                    Poll::Ready(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Poll::Pending => None,
                };
            }
        }
        Ok(None)
    }

    fn pressed(&mut self, event: Event) -> io::Result<Vec<Act>> {
        Ok(match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.drawn.keys += 1;
                self.app.key(key, (self.manner.clock)())
            }
            Event::Paste(text) => {
                self.drawn.keys += 1;
                self.app.paste(&text)
            }
            Event::Resize(columns, rows) => {
                self.stage.resized(columns, rows)?;
                Vec::new()
            }
            Event::Key(_) | Event::Mouse(_) | Event::FocusGained | Event::FocusLost => Vec::new(),
        })
    }

    fn act(&mut self, act: Act, ends: &Ends) -> io::Result<Option<Left>> {
        match act {
            Act::Send(UserAction::Edit(place)) => self.edit(&place)?,
            Act::Send(UserAction::Command(given)) if given.name == "plain" => return Ok(Some(Left::Plainly)),
            Act::Send(UserAction::Command(given)) if given.name == "editor" => self.write_elsewhere()?,
            // A channel that is closed is no error: the end of the session is on its way.
            Act::Send(ask) => drop(ends.asks.send(ask)),
            Act::Suspend => {
                self.keys = None;
                self.stage.suspend()?;
            }
            Act::Redraw => {
                let (columns, rows) = self.stage.size();
                self.stage.resized(columns, rows)?;
            }
            Act::Remember(text) => {
                if let Some(file) = &self.manner.history {
                    memory::keep(file, &text);
                }
            }
        }
        Ok(None)
    }

    /// Opens a place in the person's editor, which has the terminal meanwhile.
    fn edit(&mut self, place: &FilePosition) -> io::Result<()> {
        let mut command = (self.manner.opens)(&self.manner.dir.join(&place.path), place.line);
        self.keys = None;
        let why = match self.stage.lend_to(command.current_dir(&self.manner.dir))? {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!("the editor ended with {status}"),
            Err(error) => format!("the editor cannot be started: {error}"),
        };
        self.app.told(ScreenUpdate::Refused(format!("{why}; VISUAL or EDITOR names yours")));
        Ok(())
    }

    /// Has the person write in the editor what is to be said; it is sent by Enter, not by leaving the editor.
    fn write_elsewhere(&mut self) -> io::Result<()> {
        match memory::draft(self.manner.history.as_deref()) {
            Ok(file) => {
                self.edit(&FilePosition { path: file.to_string_lossy().into_owned(), line: None })?;
                let written = memory::take_draft(&file);
                self.app.paste(written.trim_end());
            }
            Err(error) => {
                let why = format!("there is no place to write in: {error}\nAlt-Enter begins a new line here");
                self.app.told(ScreenUpdate::Refused(why));
            }
        }
        Ok(())
    }

    fn draw(&mut self, ends: &Ends) -> io::Result<()> {
        let now = (self.manner.clock)();
        self.drawn.frames += 1;
        self.app.take_dirty();
        if self.app.picture() == Picture::Fleet {
            self.whole = true;
            let app = &mut *self.app;
            self.stage.whole(|area, buffer| app.draw(now, area, buffer))?;
        } else {
            // Behind the whole screen this is kept, and comes out in one step with leaving it.
            let rows = self.printed();
            let region = self.app.region(self.stage.size(), now);
            if rows.is_empty() { self.stage.region(region) } else { self.stage.show(&rows, region) }?;
            if std::mem::replace(&mut self.whole, false) {
                self.stage.leave_whole()?;
            }
        }
        for ask in self.app.take_asks() {
            drop(ends.asks.send(ask));
        }
        Ok(())
    }

    /// What is to stay.
    fn printed(&mut self) -> Vec<Line<'static>> {
        self.app.printed(usize::from(self.stage.size().0).saturating_sub(1).max(1))
    }

    /// Prints what is left to be said, and gives the terminal back.
    fn last(&mut self) -> io::Result<()> {
        let rows = self.printed();
        self.stage.show(&rows, Region::default())?;
        if std::mem::replace(&mut self.whole, false) {
            self.stage.leave_whole()?;
        }
        self.keys = None;
        self.stage.give_back()
    }
}

/// How long to wait before a picture is drawn: news are gathered, time passes only while work is under way,
/// and otherwise the screen waits for the next event without a limit.
fn pause(is_dirty: bool, moves: bool, since: Duration) -> Option<Duration> {
    match (is_dirty, moves) {
        (true, _) => Some(FRAME.saturating_sub(since)),
        (false, true) => Some(BEAT.saturating_sub(since)),
        (false, false) => None,
    }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_only_while_somebody_works_and_news_wait_for_the_next_picture() {
        let check = |is_dirty, moves, since: u64, expected: Option<u64>| {
            let waits = pause(is_dirty, moves, Duration::from_millis(since));
            assert_eq!(waits, expected.map(Duration::from_millis), "{is_dirty} {moves} {since}");
        };
        check(false, false, 0, None);
        check(false, false, 1_000_000, None);
        check(true, false, 0, Some(50));
        check(true, true, 20, Some(30));
        check(true, true, 900, Some(0));
        check(false, true, 100, Some(400));
        check(false, true, 900, Some(0));
    }
}
