//! Where one agent stands, folded from its own events, from its run and from the roster, and written into its
//! row. An event costs the same however many agents there are. It never decides anything: what an agent may
//! do is the kernel's business.

use convoke_kernel::{Event, Kept, Member, Piece, Purpose, Role, Standing};

use super::labels::{came_to, line, said, senders};
use super::rows::{AgentRow, AgentState};
use crate::act::Act;
use crate::callees::own_label;
use crate::reading::Step;
use crate::text::revealed;

/// How the last action of an agent begins whose failed request is to be sent again.
pub(super) const ASKS_AGAIN: &str = "asks again";

/// How far an agent has come, as its own events tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Progress {
    /// It was only announced.
    #[default]
    Announced,
    Open,
    Done,
    Failed,
    Stopped,
}

/// What is known of an agent beside its row.
#[derive(Debug, Default)]
pub(super) struct Track {
    life: Progress,
    act: Act,
    /// The calls under way with the word for each, the latest last.
    calls: Vec<(String, &'static str)>,
    /// The calls a person has to agree to.
    asked: Vec<String>,
    /// Where the roster has it.
    standing: Option<Standing>,
    /// Whether its run says that it is over, and whether it ended well.
    ended: Option<bool>,
    /// Whether no process has taken it up again since it was last heard of.
    is_left: bool,
    /// Where it stood when it began a summary on its own.
    back_to: Option<Progress>,
    is_stopped: bool,
    /// Whether it worked in another session, and its result was taken from there.
    is_served: bool,
}

impl Track {
    /// Folds an event of its own.
    pub(super) fn fold(&mut self, row: &mut AgentRow, at: u64, event: &Event) {
        self.is_left = false;
        self.act.heard(at, event);
        match Step::of(event) {
            Step::Started(e) => {
                row.role = e.spec.role;
                row.model = line(&e.spec.model);
                row.started_at = at;
                let own = own_label(row.role, &e.spec.label);
                if row.role == Role::Lead {
                    row.label = "lead".to_owned();
                } else if !own.trim().is_empty() {
                    row.label = line(own);
                }
            }
            Step::Opened(e) => {
                self.open();
                // What Convoke itself wrote around a subtask says nothing that the label does not say.
                row.last = match (e.letters.is_empty(), row.role) {
                    (false, _) => format!("mail from {}", senders(&e.letters)),
                    (true, Role::Worker | Role::Verifier) => String::new(),
                    (true, _) => line(&e.text),
                };
            }
            Step::CallMade(e) => {
                self.open();
                row.last = line(&e.text);
            }
            Step::Reopened => self.open(),
            Step::Requested(e) => {
                if e.purpose == Purpose::Summary && self.life != Progress::Open {
                    self.back_to = Some(self.life);
                }
                (self.life, self.ended) = (Progress::Open, None);
            }
            Step::Replied(e) => {
                let usage = &e.reply.usage;
                row.turns = row.turns.saturating_add(u32::from(e.kept == Kept::Yes));
                row.tokens =
                    row.tokens.saturating_add(usage.prompt_tokens()).saturating_add(usage.output_tokens);
                row.cost_nano =
                    row.cost_nano.zip(e.reply.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
                if !e.reply.text.trim().is_empty() && e.kept == Kept::Yes {
                    row.last = line(&e.reply.text);
                }
            }
            Step::RequestFailed(e) => {
                let begin = if e.retry_at.is_some() { format!("{ASKS_AGAIN}: ") } else { String::new() };
                row.last = format!("{begin}{}", line(&e.failure.message));
                self.return_unless(e.retry_at.is_some());
            }
            Step::CallStarted(e) => {
                let said = said(&e.name, e.input.as_str());
                row.commands = row.commands.saturating_add(u32::from(said.is_command));
                row.last = said.title;
                (self.life, self.ended) = (Progress::Open, None);
                self.asked.retain(|id| *id != e.id);
                self.calls.push((e.id.clone(), said.act));
            }
            Step::CallEnded(e) => {
                self.calls.retain(|(id, _)| *id != e.id);
                self.asked.retain(|id| *id != e.id);
            }
            Step::Asked(e) => {
                row.last = line(&revealed(&e.what));
                self.asked.push(e.id.clone());
            }
            Step::Answered(e) => self.asked.retain(|id| *id != e.id),
            Step::Closed(e) => {
                let is_cancelled = e.outcome.failure() == Some(convoke_kernel::FailureKind::Cancelled);
                let life = match e.outcome.failure() {
                    None => Progress::Done,
                    Some(_) if is_cancelled || self.is_stopped => Progress::Stopped,
                    Some(_) => Progress::Failed,
                };
                let said = came_to(e);
                if !said.is_empty() {
                    row.last = said;
                }
                self.close(life);
            }
            Step::Resumed(_) => {}
            Step::Aside(event) => self.fold_aside(row, event),
        }
    }

    /// Folds what is no step of its work; most of it stands on its page alone.
    fn fold_aside(&mut self, row: &mut AgentRow, event: &Event) {
        match event {
            Event::MailDelivered(e) => row.last = format!("mail from {}", senders(&e.letters)),
            Event::RoomRefused(e) => {
                row.last = line(&e.failure.message);
                self.return_unless(false);
            }
            Event::ExchangeStopped(_) => self.is_stopped = true,
            Event::HistoryCompacted(_) => {
                self.act = Act::Between;
                self.return_unless(false);
            }
            Event::Retuned(e) => row.model = line(&e.model),
            _ => {}
        }
    }

    fn open(&mut self) {
        self.close(Progress::Open);
        self.ended = None;
    }

    fn close(&mut self, life: Progress) {
        self.calls.clear();
        self.asked.clear();
        (self.life, self.act, self.back_to, self.is_stopped) = (life, Act::Between, None, false);
    }

    /// A summary that was asked of an idle agent is over, one way or the other: it is idle again.
    fn return_unless(&mut self, goes_on: bool) {
        if !goes_on && let Some(life) = self.back_to.take() {
            self.life = life;
        }
    }

    /// Takes in a piece of a reply that is being written; says whether anything looks different now.
    pub(super) fn piece(&mut self, piece: &Piece) -> bool {
        self.act.piece(piece)
    }

    /// Its run says that it is over; what its own events say about its end counts more.
    pub(super) fn end(&mut self, is_well: bool) {
        self.ended = Some(is_well);
    }

    /// Its result was reused from another session.
    pub(super) fn serve(&mut self) {
        (self.ended, self.is_served) = (Some(true), true);
    }

    /// A process drives it again.
    pub(super) fn take_up(&mut self) {
        self.is_left = false;
    }

    /// No process drives it any more, until it is heard of again.
    pub(super) fn leave(&mut self) {
        self.is_left = true;
    }

    /// The roster says where it stands.
    pub(super) fn stand(&mut self, row: &mut AgentRow, member: &Member) {
        match &member.standing {
            standing if self.standing.as_ref() == Some(standing) => {}
            Standing::Stopped { why, .. } | Standing::Failed { why, .. } => row.last = line(why),
            Standing::Stopping { .. } => row.last = "asked to stop".to_owned(),
            Standing::Live => {}
        }
        self.standing = Some(member.standing.clone());
    }

    /// Writes its state into its row. While the session drains, an agent between two steps takes no other.
    pub(super) fn settle(&mut self, row: &mut AgentRow, is_draining: bool) {
        let is_between = matches!(self.act, Act::Between | Act::Retry { .. } | Act::Asked { .. });
        self.is_left |= is_draining && self.calls.is_empty() && is_between;
        row.state = self.state(row.role);
        row.act = match (row.state, self.calls.last(), &self.act) {
            (AgentState::Running, Some((_, word)), _) => word,
            (AgentState::Running, None, Act::Asking) => "sending",
            (AgentState::Running, None, Act::Thinking) => "thinking",
            (AgentState::Running, None, Act::Answering) => "answering",
            (AgentState::Running, None, Act::Retry { .. }) => "waiting",
            (AgentState::Done, ..) if self.is_served => "reused",
            (state, ..) => state.word(),
        };
    }

    fn state(&self, role: Role) -> AgentState {
        match (&self.standing, self.life, self.ended) {
            (Some(Standing::Stopped { .. }), ..) => AgentState::Stopped,
            (Some(Standing::Failed { .. }), life, _) if life != Progress::Open => AgentState::Failed,
            (_, Progress::Announced | Progress::Open, Some(true)) => AgentState::Done,
            (_, Progress::Announced | Progress::Open, Some(false)) => AgentState::Failed,
            (_, Progress::Announced, None) => AgentState::Waiting,
            // An agent that no process drives shows no question.
            (_, Progress::Open, None) if self.is_left => AgentState::Waiting,
            (_, Progress::Open, None) if !self.asked.is_empty() => AgentState::Asks,
            (_, Progress::Open, None) => AgentState::Running,
            (_, Progress::Done, _) if role == Role::Teammate => AgentState::Resting,
            (_, Progress::Done, _) => AgentState::Done,
            (_, Progress::Failed, _) => AgentState::Failed,
            (_, Progress::Stopped, _) => AgentState::Stopped,
        }
    }
}
