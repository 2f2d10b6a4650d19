//! The screen's own loop: keys and news in, pictures out. A key is answered with a picture at once; news are
//! gathered for a moment, so that a thousand agents cost no more than a few pictures a second.

mod drawn;
mod lines;
mod memory;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use convoke_view::SessionEvent;

use crate::app::App;
use crate::screen_update::ScreenUpdate;
use crate::text::Theme;
use crate::user_action::UserAction;

/// What is sent to the screen.
#[derive(Debug)]
pub enum Screen {
    /// Something happened.
    Event(SessionEvent),
    /// Something is told.
    Update(ScreenUpdate),
}

/// The two ends by which a screen is connected.
#[derive(Debug)]
pub struct Ends {
    /// What the screen is sent.
    pub news: UnboundedReceiver<Screen>,
    /// What the person wants.
    pub asks: UnboundedSender<UserAction>,
}

/// The command that opens a file, at a line if one is named.
pub type Opens = Arc<dyn Fn(&Path, Option<u64>) -> Command + Send + Sync>;

/// How the screen behaves.
#[derive(Clone)]
pub struct ScreenOptions {
    /// Colours.
    pub theme: Theme,
    /// Whether nothing is drawn: lines in, lines out, for screen readers and dumb terminals.
    pub plain: bool,
    /// Where what was written is kept for the next session.
    pub history: Option<PathBuf>,
    /// What is said first.
    pub greeting: Vec<String>,
    /// How the person's editor opens a file.
    pub opens: Opens,
    /// The directory that names of files are relative to.
    pub dir: PathBuf,
    /// The time, in milliseconds.
    pub clock: fn() -> u64,
}

/// What a screen has drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Pictures.
    pub frames: u64,
    /// Keys and pastes.
    pub keys: u64,
}

/// How a loop ended.
enum Left {
    /// The session is over.
    Over,
    /// The person wants plain mode.
    Plainly,
}

/// Runs a screen until the session is over. Blocks the thread it is called on, which may stand still for as
/// long as the terminal does. An error means that the terminal is gone.
pub fn run(manner: ScreenOptions, mut ends: Ends, runtime: &Handle) -> io::Result<Drawn> {
    let history = manner.history.as_deref().map(memory::read).unwrap_or_default();
    let mut app = App::new(manner.theme, history);
    let mut drawn = Drawn::default();
    greet(&mut app, &manner.greeting);
    if !manner.plain {
        let left = runtime.block_on(drawn::show(&manner, &mut app, &mut ends, &mut drawn))?;
        if let Left::Over = left {
            return Ok(drawn);
        }
    }
    runtime.block_on(lines::show(&manner, &mut app, &mut ends, &mut drawn))?;
    Ok(drawn)
}

/// Says what is said first: several lines stand together, a single one is a remark.
pub(crate) fn greet(app: &mut App, lines: &[String]) {
    match lines {
        [] => {}
        [line] => app.told(ScreenUpdate::Note(line.clone())),
        lines => app.told(ScreenUpdate::Text { title: String::new(), text: lines.join("\n") }),
    }
}

/// Takes in everything that was sent, without waiting for more; at most `AT_ONCE`, so that no key waits long.
fn take_in(app: &mut App, first: Screen, news: &mut UnboundedReceiver<Screen>) {
    const AT_ONCE: usize = 2_000;
    take(app, first);
    for _ in 1..AT_ONCE {
        match news.try_recv() {
            Ok(next) => take(app, next),
            Err(_) => return,
        }
    }
}

fn take(app: &mut App, news: Screen) {
    match news {
        Screen::Event(heard) => app.hear(&heard),
        Screen::Update(told) => app.told(told),
    }
}
