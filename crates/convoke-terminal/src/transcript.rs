//! The conversation: what the person said, what the lead wrote and did, folded from its events into blocks
//! that are printed once and stay. It prints nothing itself, and what other agents do is not in it beyond a
//! line.

mod block;
mod call;
mod event_text;
mod reply;
mod runs_and_tasks;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ratatui::text::Line;

use convoke_kernel::{
    AgentId, Event, ExchangeClosed, ExchangeOpened, Kept, ModelReplied, Outcome, Purpose, ToolFinished,
};
use convoke_view::{SessionEvent, Step, Streams, Used, Waits};

use crate::text::{Theme, count, dollars, seconds, tokens};
pub(crate) use block::Block;
use call::Call;
use event_text::brief;
use reply::Reply;
use runs_and_tasks::RunsAndTasks;

/// How much of a call or a reason stands in what the lead is at.
const SHORT: usize = 60;

/// Folds events into blocks.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    streams: Streams,
    at: LeadActivity,
    /// The calls under way, the latest last: commands run one at a time, agents do not.
    calls: Vec<Call>,
    /// What the last reply wanted to have done, whether or not it was begun.
    wanted: Vec<Call>,
    /// The reply under way.
    reply: Reply,
    /// What was printed last of what the lead wrote in this exchange.
    wrote: String,
    took: Took,
    draining: bool,
    tales: RunsAndTasks,
}

/// What the lead is at, beside its calls.
#[derive(Debug, Default, PartialEq, Eq)]
enum LeadActivity {
    #[default]
    Nothing,
    /// The model is asked.
    Asking,
    /// The model is asked for the summary that a new history begins with.
    Summing,
    /// The next attempt is waited for.
    Waiting { until: u64, why: String },
    /// A person has to agree to this first.
    Asked { what: String },
}

/// What an exchange takes: the turns of the lead alone, the rest of all agents together.
#[derive(Debug, Default)]
struct Took {
    since: u64,
    used: Used,
}

impl Took {
    /// `3 turns · 12.1k tokens · $0.04 · 12 s`.
    fn words(&self, at: u64) -> String {
        let time = seconds(Duration::from_millis(at.saturating_sub(self.since)));
        format!(
            "{} · {} tokens · {} · {time}",
            count(self.used.turns, "turn"),
            tokens(self.used.tokens()),
            dollars(self.used.cost_nano)
        )
    }
}

impl Transcript {
    /// Takes in what has happened, and gives what is to be printed: nothing before the lead is known.
    pub(crate) fn hear(&mut self, lead: Option<&AgentId>, heard: &SessionEvent) -> Vec<Block> {
        let Some(lead) = lead else { return Vec::new() };
        if heard.source().is_some_and(|(stream, seq)| !self.streams.is_new(stream, seq)) {
            return Vec::new();
        }
        match heard {
            SessionEvent::Agent { agent, at, event, .. } if agent == lead => self.lead(*at, event),
            SessionEvent::Agent { event, .. } => match event.as_ref() {
                Event::ModelReplied(_) => {
                    let turns = self.took.used.turns;
                    self.took.used.heard(event);
                    self.took.used.turns = turns;
                    Vec::new()
                }
                // It is about the server that all of them talk to.
                Event::EndpointLearnt(_) => event_text::happened(event).into_iter().collect(),
                _ => Vec::new(),
            },
            SessionEvent::Run { run, at, event, .. } => self.tales.run(run, *at, event),
            SessionEvent::Program { run, at, event, .. } => self.tales.program(run, *at, event),
            SessionEvent::Roster { event, .. } => self.tales.roster(event).into_iter().collect(),
            SessionEvent::Board { event, .. } => self.tales.board(event).into_iter().collect(),
            SessionEvent::Live { agent, piece } => {
                // A summary is for the lead itself; it answers no question.
                if agent == lead && self.at != LeadActivity::Summing {
                    self.reply.take(piece);
                }
                Vec::new()
            }
            SessionEvent::Draining => {
                self.draining = true;
                Vec::new()
            }
            SessionEvent::Ledger(_) | SessionEvent::Held(_) => Vec::new(),
        }
    }

    /// What the lead writes right now: the last so many rows of it, and a row saying that it thinks.
    pub(crate) fn live(&self, width: usize, most: usize, theme: Theme) -> Vec<Line<'static>> {
        self.reply.lines(width, most, theme)
    }

    /// What the lead is at, in a few words: `thinking`, `$ cargo test · 12 s`, `asks again in 4 s: …`; `None`
    /// if it is idle.
    pub(crate) fn doing(&self, now: u64, waits: &Waits) -> Option<String> {
        let past = |since: u64| Duration::from_millis(now.saturating_sub(since));
        let doing = match (&self.at, self.calls.last()) {
            (LeadActivity::Asked { what }, _) => format!("waits for your answer: {what}"),
            (_, Some(call)) => {
                let others = match self.calls.len() {
                    0 | 1 => String::new(),
                    many => format!(" (and {} more)", many - 1),
                };
                format!("{} · {}{others}", brief(&call.what, SHORT), seconds(past(call.since)))
            }
            (LeadActivity::Waiting { until, why }, None) => {
                format!("asks again {}: {why}", waits.when(*until, now))
            }
            (LeadActivity::Asking, None) => self.reply.doing(),
            (LeadActivity::Summing, None) => "sums up, for a new history".to_owned(),
            (LeadActivity::Nothing, None) => return None,
        };
        Some(if self.draining { format!("stopping · {doing}") } else { doing })
    }

    fn lead(&mut self, at: u64, event: &Event) -> Vec<Block> {
        match Step::of(event) {
            Step::Opened(e) => return self.opened(at, e),
            Step::CallMade(e) => {
                self.begin(at);
                return vec![Block::Said(e.text.clone())];
            }
            Step::Reopened => {
                // What the exchange took before still counts; the time between the stop and now does not.
                self.took.since = at;
                self.draining = false;
                return vec![Block::Note("goes on where it stood".to_owned())];
            }
            Step::Requested(e) => {
                self.reply.forget();
                self.at =
                    if e.purpose == Purpose::Summary { LeadActivity::Summing } else { LeadActivity::Asking };
            }
            Step::Replied(e) => {
                self.took.used.heard(event);
                return self.replied(at, e);
            }
            Step::RequestFailed(e) => {
                self.reply.forget();
                self.at = match e.retry_at {
                    Some(until) => LeadActivity::Waiting { until, why: brief(&e.failure.message, SHORT) },
                    None => LeadActivity::Nothing,
                };
            }
            Step::Asked(e) => self.at = LeadActivity::Asked { what: brief(&e.what, SHORT) },
            Step::Answered(_) => self.at = LeadActivity::Nothing,
            Step::CallStarted(e) => self.calls.push(Call::of(&e.id, &e.name, e.input.as_str(), at)),
            Step::CallEnded(e) => return self.finished(at, e),
            Step::Closed(e) => return self.closed(at, e),
            Step::Resumed(e) => {
                // The process that drove the lead is gone. What it began is told with its recorded outcome.
                self.reply.forget();
                self.at = LeadActivity::Nothing;
                self.draining = false;
                return event_text::resumed(e).into_iter().collect();
            }
            Step::Started(_) => {}
            Step::Aside(event) => return event_text::happened(event).into_iter().collect(),
        }
        Vec::new()
    }

    fn begin(&mut self, at: u64) {
        self.took = Took { since: at, used: Used::default() };
        self.wrote.clear();
        self.draining = false;
    }

    fn opened(&mut self, at: u64, event: &ExchangeOpened) -> Vec<Block> {
        self.begin(at);
        match (&event.notice, event.letters.as_slice(), &event.work) {
            (None, [], None) => vec![Block::Said(event.text.clone())],
            // The harness wrote these inputs, or other agents did: they are notes, not what the person said.
            (Some(run), ..) => {
                vec![Block::Note(format!("the lead is told that {} has ended", brief(run, SHORT)))]
            }
            (None, [], Some(_)) => {
                vec![Block::Note(format!("takes a task: {}", brief(&event.text, 2 * SHORT)))]
            }
            (None, letters, _) => vec![event_text::mail(letters)],
        }
    }

    fn replied(&mut self, at: u64, event: &ModelReplied) -> Vec<Block> {
        let was_seen = self.reply.forget();
        self.at = LeadActivity::Nothing;
        let calls = event.reply.calls.iter();
        self.wanted = calls.map(|call| Call::of(&call.id, &call.name, call.input.as_str(), at)).collect();
        match event.kept {
            Kept::Yes => self.write(&event.reply.text),
            kept => event_text::not_kept(kept, was_seen).into_iter().collect(),
        }
    }

    /// What the lead wrote, unless that is what was printed last.
    fn write(&mut self, text: &str) -> Vec<Block> {
        let text = text.trim();
        if text.is_empty() || text == self.wrote {
            return Vec::new();
        }
        self.wrote = text.to_owned();
        vec![Block::Wrote(text.to_owned())]
    }

    fn finished(&mut self, at: u64, event: &ToolFinished) -> Vec<Block> {
        let begun =
            self.calls.iter().position(|call| call.id == event.id).map(|place| self.calls.remove(place));
        self.at = LeadActivity::Nothing;
        if call::is_by_person(&event.id) {
            // What it came to ends the exchange, and is printed then.
            return Vec::new();
        }
        let wanted = self.wanted.iter().find(|call| call.id == event.id);
        let time = begun.as_ref().map(|call| Duration::from_millis(at.saturating_sub(call.since)));
        vec![call::came_to(begun.as_ref().or(wanted), time, &event.result)]
    }

    fn closed(&mut self, at: u64, event: &ExchangeClosed) -> Vec<Block> {
        self.reply.forget();
        self.calls.clear();
        self.at = LeadActivity::Nothing;
        self.draining = false;
        // An answer that is not the lead's last reply, or that of a reply which was not kept, has not been
        // seen yet.
        let mut blocks = self.write(event.outcome.text());
        blocks.extend(
            event.degraded.as_ref().map(|why| Block::Note(format!("worth less than it looks: {why}"))),
        );
        match &event.outcome {
            Outcome::Ok { .. } => blocks.push(Block::Ended(format!("done · {}", self.took.words(at)))),
            Outcome::Failed { kind, message, .. } => {
                blocks.push(Block::Failed(event_text::failure(*kind, message)));
                blocks.push(Block::Ended(format!("ended · {}", self.took.words(at))));
            }
        }
        blocks
    }
}
