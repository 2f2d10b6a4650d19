//! The whole picture: what has been heard, where the person looks, what is being written, what is asked. It
//! takes keys and news and says what the person wants; it reads no terminal and writes none, so that every
//! picture can be tested without one.

mod answer;
mod keys;
mod region;
#[cfg(test)]
mod tests;

use convoke_kernel::Event;
use convoke_view::{Fleet, SessionEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::composer::{Composer, KeyOutcome};
use crate::screen_update::{Asking, Facts, ScreenUpdate};
use crate::text::{Theme, count, first_line, shown};
use crate::transcript::{Block, Transcript};
use crate::user_action::UserAction;
use crate::view::{FleetView, Seen};

use answer::Field;

/// Which picture is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Picture {
    /// The conversation, in the terminal's own scrollback, with a region below it.
    #[default]
    Session,
    /// The agents of the session, on the whole screen.
    Fleet,
}

/// Something that has to be done outside of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// The person wants this.
    Send(UserAction),
    /// The process is to stop until it is continued.
    Suspend,
    /// Everything is to be drawn anew.
    Redraw,
    /// This was written and is kept for later sessions.
    Remember(String),
}

/// How far a stop has been asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stopping {
    #[default]
    No,
    Asked,
    Cutting,
}

/// How many earlier exchanges are shown when a session is resumed.
const SHOWN_AGAIN: usize = 2;

/// In plain mode a line is written after this many milliseconds without one; the second figure holds while
/// the session waits for the server or is held up. The time is checked every second.
const QUIET: u64 = 15_000;
const QUIET_WAIT: u64 = 9_000;

/// The whole picture.
pub(crate) struct App {
    theme: Theme,
    picture: Picture,
    facts: Facts,
    fleet: Fleet,
    transcript: Transcript,
    composer: Composer,
    view: FleetView,
    /// The oldest first.
    questions: Vec<Asking>,
    answer: Field,
    /// The question that stands on the screen: only what is typed after that is an answer to it.
    standing: Option<u64>,
    /// Whether the whole question was visible there.
    standing_whole: bool,
    working: bool,
    stopping: Stopping,
    /// Whether a requested stop has happened and the person has not been told yet how to go on.
    stopped: bool,
    /// Whether the last key asked to leave; the next one confirms it.
    leaving: bool,
    /// Whether the person has left and the session is being closed.
    is_leaving: bool,
    /// The command of the person's own that runs.
    shell: Option<String>,
    /// Whether this is plain mode, in which nothing can be picked.
    is_plain: bool,
    /// What was said while no work was under way, until it is recorded.
    sent: Vec<String>,
    /// What was said while the lead was at work and waits for it.
    queued: Vec<String>,
    /// What the whole session waits for, if it does.
    held_up: Option<String>,
    /// What is wanted as a consequence of news, not of a key.
    asks: Vec<UserAction>,
    /// What is to be printed for good.
    blocks: Vec<Block>,
    /// What was said before, while that is being heard.
    earlier: Option<Vec<Block>>,
    /// Whether the last row that was printed is blank, so that two never stand together.
    was_blank: bool,
    /// What is remarked beside the composer, until the next key.
    remark: Option<String>,
    over: bool,
    dirty: bool,
}

impl App {
    /// A picture of nothing yet, with what was written in earlier sessions.
    pub(crate) fn new(theme: Theme, history: Vec<String>) -> Self {
        Self {
            theme,
            picture: Picture::Session,
            facts: Facts::default(),
            fleet: Fleet::new(),
            transcript: Transcript::default(),
            composer: Composer::new(history),
            view: FleetView::default(),
            questions: Vec::new(),
            answer: Field::default(),
            standing: None,
            standing_whole: false,
            working: false,
            stopping: Stopping::No,
            stopped: false,
            leaving: false,
            is_leaving: false,
            shell: None,
            is_plain: false,
            sent: Vec::new(),
            queued: Vec::new(),
            held_up: None,
            asks: Vec::new(),
            blocks: Vec::new(),
            earlier: None,
            was_blank: false,
            remark: None,
            over: false,
            dirty: true,
        }
    }

    /// Which picture is shown.
    pub(crate) fn picture(&self) -> Picture {
        self.picture
    }

    /// Whether the session is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether anything looks different since this was last asked.
    pub(crate) fn take_dirty(&mut self) -> bool {
        std::mem::replace(&mut self.dirty, false)
    }

    /// Whether anything looks different since [`take_dirty`](Self::take_dirty).
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether time alone changes the picture.
    pub(crate) fn moves(&self) -> bool {
        self.working || self.fleet.running() > 0 || self.held_up.is_some()
    }

    /// What is to be printed for good, in order.
    pub(crate) fn take_blocks(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.blocks)
    }

    /// The line about the work in plain mode: what it waits for, else what the lead does.
    pub(crate) fn doing(&self, now: u64) -> Option<String> {
        self.held_up.clone().or_else(|| self.lead_does(now))
    }

    fn lead_does(&self, now: u64) -> Option<String> {
        let doing =
            self.transcript.doing(now, self.fleet.waits()).filter(|_| self.working || self.facts.watched)?;
        // Other waits for the server are told with their reason and their end.
        match self.fleet.waits().words_besides(self.facts.lead.as_ref(), now) {
            Some(waits) => Some(format!("{waits} · {doing}")),
            None => Some(doing),
        }
    }

    /// How long plain mode may write nothing while work is under way, in milliseconds.
    pub(crate) fn quiet(&self, now: u64) -> u64 {
        let waits = self.held_up.is_some() || self.fleet.waits().why(now).is_some();
        if waits { QUIET_WAIT } else { QUIET }
    }

    /// The question that is to be answered next.
    pub(crate) fn question(&self) -> Option<&Asking> {
        self.questions.first()
    }

    /// Takes the remark, to be written in plain mode.
    pub(crate) fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    /// Switches to plain mode: nothing is drawn from now on.
    pub(crate) fn draws_nothing(&mut self) {
        self.is_plain = true;
    }

    /// Throws away what is being written.
    pub(crate) fn discard(&mut self) {
        self.composer.clear();
    }

    /// Takes in what has happened.
    pub(crate) fn hear(&mut self, heard: &SessionEvent) {
        self.dirty |= self.fleet.hear(heard);
        let lead = self.facts.lead.clone().or_else(|| self.fleet.lead().cloned());
        let blocks = self.transcript.hear(lead.as_ref(), heard);
        for block in &blocks {
            if let Block::Said(said) = block {
                self.is_recorded(said);
            }
        }
        self.dirty |= !blocks.is_empty();
        self.earlier.as_mut().unwrap_or(&mut self.blocks).extend(blocks);
        match heard {
            SessionEvent::Agent { agent, seq, at, event } => {
                if lead.as_ref() == Some(agent) {
                    self.is_tuned(event);
                }
                self.view.hear(agent, *seq, *at, event);
                self.dirty |= lead.as_ref() == Some(agent) || self.picture == Picture::Fleet;
            }
            SessionEvent::Live { agent, .. } => self.dirty |= lead.as_ref() == Some(agent),
            SessionEvent::Held(_) | SessionEvent::Draining => self.dirty = true,
            _ => {}
        }
    }

    /// Takes over a mode, model or effort that was set for the lead, wherever it was set.
    fn is_tuned(&mut self, event: &Event) {
        match event {
            Event::ModeSet(e) => self.facts.mode = e.on,
            Event::Retuned(e) => {
                self.facts.model.clone_from(&e.model);
                self.facts.effort.clone_from(&e.capabilities.effort);
            }
            _ => {}
        }
    }

    /// What the person said is in the history now and need not wait any more; said twice, it is there twice.
    fn is_recorded(&mut self, said: &str) {
        let place = |texts: &[String]| texts.iter().position(|text| text.trim() == said.trim());
        if let Some(at) = place(&self.sent) {
            self.sent.remove(at);
        } else if let Some(at) = place(&self.queued) {
            self.queued.remove(at);
        }
    }

    /// Takes in what is told.
    pub(crate) fn told(&mut self, told: ScreenUpdate) {
        // What is told again and again is drawn once.
        self.dirty |= match &told {
            ScreenUpdate::Facts(facts) => **facts != self.facts,
            ScreenUpdate::Working(working) => *working != self.working || self.stopping != Stopping::No,
            ScreenUpdate::HeldUp(why) => *why != self.held_up,
            _ => true,
        };
        match told {
            ScreenUpdate::Facts(facts) => {
                self.facts = *facts;
                self.say_how_to_go_on();
            }
            ScreenUpdate::Afresh => self.begin_afresh(),
            ScreenUpdate::CaughtUp => self.caught_up(),
            ScreenUpdate::Working(working) => self.set_working(working),
            ScreenUpdate::Text { title, text } => self.say(Block::Printed { title, text }),
            ScreenUpdate::Waits(words) => self.queued = words,
            ScreenUpdate::HeldUp(why) => self.held_up = why.map(|why| shown(&why)),
            ScreenUpdate::Note(text) => self.say(Block::Note(text)),
            ScreenUpdate::Refused(text) => self.refused(text),
            ScreenUpdate::Asked(asking) => {
                match self.questions.iter_mut().find(|known| known.id == asking.id) {
                    Some(known) => *known = *asking,
                    None => self.questions.push(*asking),
                }
            }
            ScreenUpdate::Withdrawn(id) => self.withdrawn(id),
            ScreenUpdate::History { agent, events } => self.view.history(&agent, &events),
            ScreenUpdate::Shell(command) => self.shell = command,
            ScreenUpdate::Workflows(all) => self.composer.know(all),
            ScreenUpdate::Offers { word, candidates } => {
                if candidates.is_empty() && self.composer.is_picking() {
                    self.remark = Some("there is nothing to pick from".into());
                }
                if let KeyOutcome::Wants(ask) = self.composer.offer(&word, candidates) {
                    self.asks.push(ask);
                }
            }
            ScreenUpdate::Over => self.over = true,
        }
    }

    fn say(&mut self, block: Block) {
        self.blocks.push(block);
    }

    fn refused(&mut self, text: String) {
        self.view.remark(&first_line(&text, 200), true);
        if !self.working {
            // The lead did not take what was said; the history of the composer still has it.
            self.sent.clear();
            self.stopping = Stopping::No;
        }
        self.say(Block::Failed(text));
    }

    /// A question needs no answer any more. What was typed for it is no answer to the next one.
    fn withdrawn(&mut self, id: u64) {
        let before = self.questions.len();
        self.questions.retain(|asking| asking.id != id);
        if self.questions.len() < before && self.standing == Some(id) {
            self.answer = Field::default();
            self.remark = Some("that question needs no answer any more".into());
        }
    }

    fn set_working(&mut self, working: bool) {
        if working {
            // A stop may have been asked for while what was said was on its way.
            self.stopped = false;
        } else {
            // A stop that was asked for is over when the work is.
            self.stopped = self.working && self.stopping != Stopping::No;
            self.stopping = Stopping::No;
            if self.working {
                self.sent.clear();
            }
            // Agents in the middle of a step wait until they are heard of again: time moves none of them.
            self.fleet.leave_all();
        }
        self.working = working;
        self.say_how_to_go_on();
    }

    /// After a stop, once it is known that something was left unfinished.
    fn say_how_to_go_on(&mut self) {
        if self.can_go_on() && std::mem::take(&mut self.stopped) {
            let what = match self.queued.is_empty() {
                true => "stopped; Enter alone goes on where it stands, anything you say comes instead",
                false => "stopped; Enter alone goes on, and then what waits is said; /unsay takes that back",
            };
            self.say(Block::Note(what.into()));
        }
    }

    fn can_go_on(&self) -> bool {
        self.facts.can_go_on && !self.working
    }

    /// Forgets the session that was shown, its lead included: another one follows.
    fn begin_afresh(&mut self) {
        self.fleet = Fleet::new();
        self.transcript = Transcript::default();
        self.view = FleetView::default();
        self.facts.session = None;
        self.facts.lead = None;
        self.stopping = Stopping::No;
        self.stopped = false;
        self.answer = Field::default();
        self.remark = None;
        self.questions.clear();
        self.sent.clear();
        self.queued.clear();
        self.earlier = Some(Vec::new());
    }

    /// The history of a resumed session has been heard: shows its last exchanges again.
    fn caught_up(&mut self) {
        // Agents that were at work then wait until they are heard of again.
        self.fleet.leave_all();
        let mut earlier = self.earlier.take().unwrap_or_default();
        let said: Vec<usize> =
            (0..earlier.len()).filter(|at| matches!(earlier[*at], Block::Said(_))).collect();
        if let Some(first) = said.len().checked_sub(SHOWN_AGAIN).filter(|first| *first > 0) {
            earlier.drain(..said[first]);
            let many = count(u32::try_from(first).unwrap_or(u32::MAX), "earlier exchange");
            let what = format!("… {many} not repeated here: Ctrl-O, then Enter on the lead, shows all of it");
            self.blocks.push(Block::Note(what));
        }
        self.blocks.extend(earlier);
    }

    /// What is wanted as a consequence of news or of the picture that was just drawn.
    pub(crate) fn take_asks(&mut self) -> Vec<UserAction> {
        let mut asks = std::mem::take(&mut self.asks);
        if self.picture == Picture::Fleet {
            let wanted = self.view.wants();
            self.dirty |= wanted.is_some();
            asks.extend(wanted);
        }
        asks
    }

    /// Draws the fleet.
    pub(crate) fn draw(&mut self, now: u64, area: Rect, buffer: &mut Buffer) -> Option<(u16, u16)> {
        let Self { view, fleet, facts, questions, theme, .. } = self;
        view.draw(&Seen { fleet, facts, questions, now, theme: *theme }, area, buffer)
    }

    /// What is to be printed for good, as rows of this width.
    pub(crate) fn printed(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for row in self.take_blocks().iter().flat_map(|block| self.rows(block, width)).collect::<Vec<_>>() {
            let is_blank = row.spans.iter().all(|span| span.content.is_empty());
            let was_blank = std::mem::replace(&mut self.was_blank, is_blank);
            if !(is_blank && was_blank) {
                rows.push(row);
            }
        }
        rows
    }

    /// A block as rows of this width.
    pub(crate) fn rows(&self, block: &Block, width: usize) -> Vec<Line<'static>> {
        block.lines(width, self.theme)
    }
}
