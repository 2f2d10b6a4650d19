//! One agent below the lead, folded from its events for the eye. What a model or a command wrote is cleaned
//! and cut here, once per event, so that drawing costs nothing but the drawing. Never decides anything.

use std::time::Duration;

use convoke_kernel::{Event, Piece, Role, Status, Summary};

use super::super::kind_word;
use super::super::progress::Call;
use convoke_view::{Act, Used, Waits, came_to, first_line, flat, revealed, seconds};

/// How much of a label, a command or a reason is kept; more than any line shows.
const MOST_CHARS: usize = 160;
/// A command that runs longer than this says for how long.
const LONG: Duration = Duration::from_secs(10);

/// What agents are there for, in the order in which the tree shows them: the phases of programs come behind
/// these.
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
    /// It began before this process did, and has not been taken up again yet.
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

/// One agent below the lead.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) phase: Phase,
    pub(super) state: State,
    /// When it came to this state, in the tree's own count.
    pub(super) stamp: u64,
    pub(super) label: String,
    pub(super) used: Used,
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
            used: Used::default(),
            act: Act::Between,
            last: String::new(),
        }
    }

    /// An agent that began before this process did.
    pub(super) fn known(summary: &Summary) -> Self {
        let (state, last) = match (summary.status, summary.failure) {
            (Status::Open, _) => (State::Waiting, String::new()),
            (Status::Done, _) => (State::Done, String::new()),
            (Status::Partial | Status::Failed, kind) => {
                (State::Failed, kind.map(kind_word).unwrap_or_default())
            }
        };
        Self { state, used: Used::of([summary]), last, ..Self::new(summary.role, &summary.label) }
    }

    /// Folds an event, and says which state it leads to.
    pub(super) fn apply(&mut self, at: u64, event: &Event) -> State {
        self.act.heard(at, event);
        self.used.heard(event);
        match event {
            Event::ToolStarted(e) => self.last = first_line(&Call::new(e, at).shown(), MOST_CHARS),
            Event::ApprovalAsked(e) => self.last = first_line(&revealed(&e.what), MOST_CHARS),
            // It asks again at once.
            Event::EndpointLearnt(_) => self.act = Act::Between,
            Event::ExchangeClosed(e) => {
                self.last = came_to(e, |text| first_line(text, MOST_CHARS)).unwrap_or_default();
                return if e.outcome.failure().is_some() { State::Failed } else { State::Done };
            }
            _ => {}
        }
        State::Running
    }

    /// Takes in that a reply is being written; says whether anything looks different now.
    pub(super) fn piece(&mut self, piece: &Piece) -> bool {
        self.act.piece(piece)
    }

    /// Its state in one word of at most nine letters. While the session drains no agent takes another step.
    pub(super) fn word(&self, draining: bool) -> &'static str {
        match (self.state, &self.act) {
            (State::Running, Act::Between | Act::Retry { .. } | Act::Asked { .. }) if draining => "stopped",
            (State::Running, Act::Between) => "working",
            (State::Running, Act::Asking) => "asking",
            (State::Running, Act::Thinking) => "thinking",
            (State::Running, Act::Answering) => "answering",
            (State::Running, Act::Calling { .. }) => "running",
            (State::Running, Act::Retry { .. }) => "waiting",
            (State::Running, Act::Asked { .. }) => "asks you",
            (state, _) => state.word(),
        }
    }

    /// Its last action, or what it came to.
    pub(super) fn action(&self, now: u64, waits: &Waits) -> String {
        let last = &self.last;
        match &self.act {
            Act::Calling { since } if self.state == State::Running => {
                let took = Duration::from_millis(now.saturating_sub(*since));
                if took < LONG { last.clone() } else { format!("{} · {last}", seconds(took)) }
            }
            Act::Retry { until, why } if self.state == State::Running => {
                format!("asks again {}: {}", waits.when(*until, now), first_line(why, MOST_CHARS))
            }
            _ => last.clone(),
        }
    }
}
