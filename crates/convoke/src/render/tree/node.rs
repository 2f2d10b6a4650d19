//! One agent below the lead, folded from its events for the eye. What a model or a command wrote is cleaned and cut
//! here, once per event, so that drawing costs nothing but the drawing. Never decides anything.

use std::time::Duration;

use convoke_kernel::{Event, ExchangeClosed, Kept, Outcome, Role, Status, Summary, Vote};
use convoke_runtime::Piece;

use super::super::kind_word;
use super::super::progress::Call;
use convoke_terminal::{Waits, count, seconds};
use convoke_terminal::{first_line, flat, revealed};

/// How much of a label, a command or a reason is kept; more than any line shows.
const MOST_CHARS: usize = 160;
/// A command that runs longer than this says for how long.
const LONG: Duration = Duration::from_secs(10);

/// What agents are there for, in the order in which the tree shows them: the phases of programs come behind these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phase(pub(super) usize);

impl Phase {
    pub(super) const WORKING: Phase = Phase(0);
    pub(super) const VERIFYING: Phase = Phase(1);
    pub(super) const TASKS: Phase = Phase(2);
    /// The first of a program's.
    pub(super) const PROGRAMS: usize = 3;

    pub(super) fn of(role: Role) -> Self {
        match role {
            Role::Worker => Self::WORKING,
            Role::Verifier => Self::VERIFYING,
            Role::Lead | Role::Task | Role::Callee | Role::Teammate => Self::TASKS,
        }
    }
}

/// Where an agent stands, the most interesting first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Failed,
    Done,
    /// It began before this process did, and nobody has taken it up again yet.
    Waiting,
}

impl State {
    pub(super) const ALL: [State; 4] = [State::Running, State::Failed, State::Done, State::Waiting];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Waiting => "waiting",
        }
    }

    pub(super) fn mark(self) -> char {
        match self {
            Self::Running => '▸',
            Self::Failed => '✗',
            Self::Done => '✓',
            Self::Waiting => '·',
        }
    }
}

/// What a running agent is at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    /// Between two steps, or waiting for room.
    Between,
    /// The request is sent, or waits in line.
    Asking,
    Thinking,
    Answering,
    Command {
        since: u64,
    },
    Retry {
        until: u64,
        why: String,
    },
    /// A person has to agree first.
    Asked,
}

/// One agent below the lead.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) phase: Phase,
    pub(super) state: State,
    /// When it came to this state, in the tree's own count.
    pub(super) stamp: u64,
    pub(super) label: String,
    pub(super) turns: u32,
    pub(super) tokens: u64,
    pub(super) cost_nano: Option<u64>,
    act: Act,
    /// The last command, or what came of it all.
    last: String,
}

impl Node {
    pub(super) fn new(role: Role, label: &str) -> Self {
        let label = label.strip_prefix("verify: ").filter(|_| role == Role::Verifier).unwrap_or(label);
        Self {
            phase: Phase::of(role),
            state: State::Waiting,
            stamp: 0,
            label: Some(flat(label, MOST_CHARS).0)
                .filter(|label| !label.is_empty())
                .unwrap_or_else(|| "(agent)".into()),
            turns: 0,
            tokens: 0,
            cost_nano: Some(0),
            act: Act::Between,
            last: String::new(),
        }
    }

    /// An agent that began before this process did.
    pub(super) fn known(summary: &Summary) -> Self {
        let usage = &summary.usage;
        let (state, last) = match (summary.status, summary.failure) {
            (Status::Open, _) => (State::Waiting, String::new()),
            (Status::Done, _) => (State::Done, String::new()),
            (Status::Partial | Status::Failed, kind) => (State::Failed, kind.map(kind_word).unwrap_or_default()),
        };
        Self {
            state,
            turns: summary.turns,
            tokens: usage.prompt_tokens().saturating_add(usage.output_tokens),
            cost_nano: summary.cost_nano,
            last,
            ..Self::new(summary.role, &summary.label)
        }
    }

    /// Folds an event, and says which state it leads to.
    pub(super) fn apply(&mut self, at: u64, event: &Event) -> State {
        match event {
            Event::ModelCalled(_) => self.act = Act::Asking,
            Event::ModelReplied(e) => {
                let usage = &e.reply.usage;
                self.turns += u32::from(e.kept == Kept::Yes);
                self.tokens = self.tokens.saturating_add(usage.prompt_tokens()).saturating_add(usage.output_tokens);
                self.cost_nano = self.cost_nano.zip(e.reply.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
                self.act = Act::Between;
            }
            Event::ModelFailed(e) => {
                self.act = match e.retry_at {
                    Some(until) => Act::Retry { until, why: first_line(&e.failure.message, MOST_CHARS) },
                    None => Act::Between,
                };
            }
            Event::ToolStarted(e) => {
                self.act = Act::Command { since: at };
                self.last = first_line(&Call::new(e, at).shown(), MOST_CHARS);
            }
            Event::ApprovalAsked(e) => {
                self.act = Act::Asked;
                self.last = first_line(&revealed(&e.what), MOST_CHARS);
            }
            Event::ApprovalGiven(_) | Event::ToolFinished(_) => self.act = Act::Between,
            Event::ExchangeClosed(e) => {
                self.last = came_to(e);
                return if e.outcome.failure().is_some() { State::Failed } else { State::Done };
            }
            Event::AgentStarted(_)
            | Event::ModeSet(_)
            | Event::RoomRefused(_)
            | Event::ExchangeOpened(_)
            | Event::ExchangeReopened(_)
            | Event::CallMade(_)
            | Event::NoteAppended(_)
            | Event::MailDelivered(_)
            | Event::CompactionAsked(_)
            | Event::HistoryCompacted(_)
            | Event::HistoryForked(_)
            | Event::ExchangeStopped(_)
            | Event::Retuned(_)
            | Event::InputRejected(_)
            | Event::ResultsAppended(_)
            | Event::Resumed(_) => {}
        }
        State::Running
    }

    /// Takes in that a reply is being written; says whether anything looks different now.
    pub(super) fn piece(&mut self, piece: &Piece) -> bool {
        let act = match piece {
            Piece::Thinking(_) => Act::Thinking,
            Piece::Began | Piece::Text(_) | Piece::Tool { .. } => Act::Answering,
        };
        let changes = matches!(self.act, Act::Asking | Act::Thinking | Act::Answering) && self.act != act;
        if changes {
            self.act = act;
        }
        changes
    }

    /// Its state in one word of at most nine letters. While the session drains nobody takes another step.
    pub(super) fn word(&self, draining: bool) -> &'static str {
        match (self.state, &self.act) {
            (State::Running, Act::Between | Act::Retry { .. } | Act::Asked) if draining => "stopped",
            (State::Running, Act::Between) => "working",
            (State::Running, Act::Asking) => "asking",
            (State::Running, Act::Thinking) => "thinking",
            (State::Running, Act::Answering) => "answering",
            (State::Running, Act::Command { .. }) => "running",
            (State::Running, Act::Retry { .. }) => "waiting",
            (State::Running, Act::Asked) => "asks you",
            (state, _) => state.word(),
        }
    }

    /// Its last action, or what it came to.
    pub(super) fn action(&self, now: u64, waits: &Waits) -> String {
        let last = &self.last;
        match &self.act {
            Act::Command { since } if self.state == State::Running => {
                let took = Duration::from_millis(now.saturating_sub(*since));
                if took < LONG { last.clone() } else { format!("{} · {last}", seconds(took)) }
            }
            Act::Retry { until, why } if self.state == State::Running => {
                format!("asks again {}: {why}", waits.when(*until, now))
            }
            _ => last.clone(),
        }
    }
}

/// What an agent came to, in a few words.
fn came_to(event: &ExchangeClosed) -> String {
    if let Outcome::Failed { kind, message, .. } = &event.outcome {
        return format!("{}: {}", kind_word(*kind), first_line(message, MOST_CHARS));
    }
    if let Some(why) = &event.degraded {
        return format!("degraded: {}", first_line(why, MOST_CHARS));
    }
    if let Some(ballot) = &event.ballot {
        let holds = ballot.verdicts.iter().filter(|judgement| judgement.verdict == Vote::Confirmed).count();
        let fails = ballot.verdicts.len() - holds;
        return if fails == 0 { format!("{holds} confirmed") } else { format!("{holds} confirmed, {fails} refuted") };
    }
    match event.report.as_ref().map(|report| report.findings.len()) {
        Some(0) => "no findings".to_owned(),
        Some(found) => count(u32::try_from(found).unwrap_or(u32::MAX), "finding"),
        None => String::new(),
    }
}
