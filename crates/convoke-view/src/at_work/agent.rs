//! One agent below the lead, folded from its events for the eye. What a model or a command wrote is cleaned
//! and cut here, once per event, so that drawing costs nothing but the drawing. Never decides anything.

use convoke_kernel::{Event, Piece, Role, Status, Summary};

use crate::act::{Act, came_to};
use crate::callees::own_label;
use crate::progress::CallUnderWay;
use crate::text::{first_line, flat, kind_word, revealed};
use crate::used::Used;

/// How much of a label, a command or a reason is kept; more than any line shows.
const MOST_CHARS: usize = 160;

/// What agents are there for, in the order in which they are shown: the phases of programs come behind those
/// that every session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkPhase(pub(super) usize);

impl WorkPhase {
    /// The workers of flat workflows.
    pub const WORKING: Self = Self(0);
    /// Their verifiers.
    pub const VERIFYING: Self = Self(1);
    /// What the lead started by itself.
    pub const TASKS: Self = Self(2);
    /// The first of a program's.
    pub(super) const PROGRAMS: usize = 3;

    fn of(role: Role) -> Self {
        match role {
            Role::Worker => Self::WORKING,
            Role::Verifier => Self::VERIFYING,
            Role::Lead | Role::Task | Role::Callee | Role::Teammate => Self::TASKS,
        }
    }
}

/// Where an agent at work stands, the most interesting first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// It is at work.
    Running,
    /// It failed.
    Failed,
    /// It is done.
    Done,
    /// It began before this process did, and has not been taken up again yet.
    Waiting,
}

impl WorkState {
    /// All of them, in this order.
    pub const ALL: [Self; 4] = [Self::Running, Self::Failed, Self::Done, Self::Waiting];
}

/// One agent below the lead.
#[derive(Debug, Clone)]
pub struct WorkingAgent {
    pub(super) phase: WorkPhase,
    pub(super) state: WorkState,
    pub(super) stamp: u64,
    label: String,
    pub(super) used: Used,
    act: Act,
    /// The last command, or what came of it all.
    last: String,
}

impl WorkingAgent {
    pub(super) fn new(role: Role, label: &str) -> Self {
        Self {
            phase: WorkPhase::of(role),
            state: WorkState::Waiting,
            stamp: 0,
            label: Some(flat(own_label(role, label), MOST_CHARS).0)
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
            (Status::Open, _) => (WorkState::Waiting, String::new()),
            (Status::Done, _) => (WorkState::Done, String::new()),
            (Status::Partial | Status::Failed, kind) => {
                (WorkState::Failed, kind.map(kind_word).unwrap_or_default())
            }
        };
        Self { state, used: Used::of([summary]), last, ..Self::new(summary.role, &summary.label) }
    }

    /// Folds an event, and says which state it leads to.
    pub(super) fn apply(&mut self, at: u64, event: &Event) -> WorkState {
        self.act.heard(at, event);
        self.used.heard(event);
        match event {
            Event::ToolStarted(e) => self.last = first_line(&CallUnderWay::new(e, at).shown(), MOST_CHARS),
            Event::ApprovalAsked(e) => self.last = first_line(&revealed(&e.what), MOST_CHARS),
            // It asks again at once.
            Event::EndpointLearnt(_) => self.act = Act::Between,
            Event::ExchangeClosed(e) => {
                self.last = came_to(e, |text| first_line(text, MOST_CHARS)).unwrap_or_default();
                return if e.outcome.failure().is_some() { WorkState::Failed } else { WorkState::Done };
            }
            _ => {}
        }
        WorkState::Running
    }

    /// Takes in that a reply is being written; says whether anything looks different now.
    pub(super) fn piece(&mut self, piece: &Piece) -> bool {
        self.act.piece(piece)
    }

    /// The phase it belongs to.
    pub fn phase(&self) -> WorkPhase {
        self.phase
    }

    /// Where it stands.
    pub fn state(&self) -> WorkState {
        self.state
    }

    /// When it came to this state, counted over all agents: the higher, the later.
    pub fn order(&self) -> u64 {
        self.stamp
    }

    /// What people call it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What it has used.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// What it is at, while it runs.
    pub fn act(&self) -> &Act {
        &self.act
    }

    /// Its last action, or what it came to.
    pub fn last(&self) -> &str {
        &self.last
    }
}
