//! The plain manner: lines in, lines out. Nothing moves, nothing is coloured, and every line makes sense when
//! it is read aloud.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{Drawn, Ends, Left, ScreenOptions, memory, take_in};
use crate::app::{Act, App, Picture};
use crate::plain::Plain;
use crate::question::{self, AnswerMethod};
use crate::screen_update::About;
use crate::user_action::UserAction;

/// How wide a line is broken: most of what reads lines does not care, and everything shows this much.
const WIDTH: usize = 80;
/// How often it is looked whether something is to be said of long work.
const LOOK: Duration = Duration::from_secs(1);

/// Shows the session until it is over.
pub(super) async fn show(
    manner: &ScreenOptions,
    app: &mut App,
    ends: &mut Ends,
    drawn: &mut Drawn,
) -> io::Result<Left> {
    app.draws_nothing();
    let mut typed = typed();
    let mut talk = Talk::new(io::stdout());
    let mut is_open = true;
    loop {
        talk.say(app, drawn)?;
        if app.is_over() {
            return Ok(Left::Over);
        }
        for ask in app.take_asks() {
            drop(ends.asks.send(ask));
        }
        tokio::select! {
            biased;
            line = typed.recv(), if is_open => {
                // After the end of the input the session is left, and what it still says is heard.
                is_open = line.is_some();
                let acts = match line {
                    Some(line) => {
                        drawn.keys += 1;
                        talk.hear(app, &line)?
                    }
                    None => vec![Act::Send(UserAction::Leave)],
                };
                for act in acts {
                    match act {
                        Act::Send(ask) => drop(ends.asks.send(ask)),
                        Act::Remember(text) => {
                            if let Some(file) = &manner.history {
                                memory::keep(file, &text);
                            }
                        }
                        Act::Suspend | Act::Redraw => {}
                    }
                }
            }
            news = ends.news.recv() => match news {
                Some(news) => take_in(app, news, &mut ends.news),
                None => {
                    talk.say(app, drawn)?;
                    return Ok(Left::Over);
                }
            },
            // No timer runs while no work is under way.
            () = tokio::time::sleep(LOOK), if app.moves() => {
                let now = (manner.clock)();
                if let Some(doing) = app.doing(now) {
                    talk.plain.beat(now, app.quiet(now), &doing)?;
                }
            }
        }
    }
}

/// What is said and heard line by line.
pub(super) struct Talk<W: Write> {
    plain: Plain<W>,
    /// The question that was said last.
    asked: Option<u64>,
    /// The rows before the one that ends something longer.
    half: String,
}

impl<W: Write> Talk<W> {
    /// Says it here.
    pub(super) fn new(out: W) -> Self {
        Self { plain: Plain::new(out), asked: None, half: String::new() }
    }

    /// Says what is new, and that something can be typed.
    pub(super) fn say(&mut self, app: &mut App, drawn: &mut Drawn) -> io::Result<()> {
        for block in app.take_blocks() {
            drawn.frames += 1;
            self.plain.block(&app.rows(&block, WIDTH))?;
        }
        if let Some(why) = app.take_remark() {
            self.line(&why)?;
        }
        if !app.moves() {
            self.plain.rest();
        }
        if app.is_over() {
            return Ok(());
        }
        let question = app.question();
        if self.asked != question.map(|asking| asking.id) {
            self.asked = question.map(|asking| asking.id);
            if let Some(asking) = question {
                let rows: Vec<Line<'_>> =
                    question::rows(asking, WIDTH, AnswerMethod::Lines).into_iter().map(Line::from).collect();
                self.plain.block(&rows)?;
            }
        }
        // While work is under way, prompts do not break up what is said; what is typed is heard all the same.
        if self.asked.is_none() && self.half.is_empty() && app.moves() {
            return Ok(());
        }
        self.plain.prompt(match (self.asked, self.half.is_empty()) {
            (Some(_), _) => "answer> ",
            (None, true) => "> ",
            (None, false) => "more> ",
        })
    }

    /// A line was typed: an answer, the next row of something longer, or something whole.
    pub(super) fn hear(&mut self, app: &mut App, line: &str) -> io::Result<Vec<Act>> {
        self.plain.answered();
        // A question that came while the line was being typed has not been heard yet: the line is no answer
        // to it.
        let heard = app.question().filter(|asking| self.asked == Some(asking.id));
        // Commands work at a question too, but for one that is answered in any words.
        if heard.is_some_and(|asking| asking.about == About::Checkpoint || !line.starts_with('/')) {
            return app.answer_line(line).or_else(|why| self.line(&why).map(|()| Vec::new()));
        }
        if let Some(row) = line.strip_suffix('\\') {
            self.half.push_str(row);
            self.half.push('\n');
            return Ok(Vec::new());
        }
        // A pasted line looks like a typed one here, and what is pasted runs no command.
        let is_command =
            line.strip_prefix('!').is_some_and(|rest| !rest.starts_with('!') && !rest.trim().is_empty());
        if self.half.is_empty() && is_command {
            self.line(
                "a command of your own runs in another terminal: here a pasted line looks like a typed one",
            )?;
            return Ok(Vec::new());
        }
        let whole = std::mem::take(&mut self.half) + line;
        app.paste(&whole);
        let acts = app.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), 0);
        // What was refused is not there to be mended, as it would be in a composer.
        app.discard();
        if app.picture() == Picture::Fleet {
            app.key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL), 0);
            self.line(
                "the fleet is drawn, and nothing is drawn here: /team, /tasks, /inbox and /sessions say it in \
                    lines",
            )?;
        }
        let (mine, acts): (Vec<Act>, Vec<Act>) = acts.into_iter().partition(|act| drawn_only(act).is_some());
        for why in mine.iter().filter_map(drawn_only) {
            self.line(why)?;
        }
        Ok(acts)
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.plain.block(&[Line::raw(text)])
    }
}

/// Why something cannot be had where nothing is drawn.
fn drawn_only(act: &Act) -> Option<&'static str> {
    match act {
        Act::Send(UserAction::Command(given)) if given.name == "plain" => Some("nothing is drawn already"),
        Act::Send(UserAction::Command(given)) if given.name == "editor" => Some(
            "the editor needs a terminal that is drawn on; here a line that ends with \\ goes on in the next \
                one",
        ),
        _ => None,
    }
}

/// The lines of stdin. Reading cannot be cut off, so it has a thread of its own, which is never joined.
fn typed() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
