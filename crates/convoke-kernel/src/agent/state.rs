//! The pieces an agent's state is made of. What may follow what is in `agent_state`.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::stuck::Repeats;
use super::under_way::Made;
use crate::capsule::Facts;
use crate::findings::{Ballot, Report};
use crate::mode::Section;
use crate::outcome::{Outcome, ToolResult};
use crate::output;
use crate::segment::Segment;
use crate::team::Letter;
use crate::wire::{FailureKind, ToolCall};

/// A request that is being asked, over all its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asking {
    pub(super) call: u32,
    /// Attempts made so far.
    pub(super) attempt: u32,
    /// Attempts that failed by a passing fault; interruptions do not count.
    pub(super) failures: u32,
    /// The room that is wanted, and once it is called the room it has.
    pub(super) max_tokens: u32,
}

/// One tool call of the reply that is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) call: ToolCall,
    pub(super) state: SlotState,
}

impl Slot {
    pub(super) fn queued(call: &ToolCall) -> Self {
        Self { call: call.clone(), state: SlotState::Queued }
    }

    /// Whether it has not been started.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, SlotState::Queued | SlotState::Allowed)
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state, SlotState::Finished(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SlotState {
    Queued,
    /// A person is asked about it.
    Asked(Asked),
    /// A person agreed to it.
    Allowed,
    Running,
    Finished(ToolResult),
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) what: String,
    pub(super) why: String,
}

/// Where an agent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing has happened yet.
    New,
    /// No exchange is open.
    Idle,
    /// The history wants a reply; room for it is being asked for.
    Ready(Asking),
    /// The model is being asked.
    Calling(Asking),
    /// Room is asked for again at this time.
    Waiting(Asking, u64),
    /// Tools are running.
    Tools(Vec<Slot>),
    /// The summary has come; the new history follows in the same step.
    Compacting,
    /// Nothing follows but the end of the exchange.
    Ending,
}

impl Stage {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Stage::New => "new",
            Stage::Idle => "idle",
            Stage::Ready(_) => "ready",
            Stage::Calling(_) => "calling",
            Stage::Waiting(..) => "waiting",
            Stage::Tools(_) => "running tools",
            Stage::Compacting => "beginning a new history",
            Stage::Ending => "ending",
        }
    }
}

/// What a history ends with: not everything may follow everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// A user message, or nothing yet.
    User,
    /// A system message: only a reply may follow it.
    System,
    /// A reply that said its last word: only a user message may follow it.
    Reply,
    /// A reply that goes on: tool results or, after a pause, the next reply follow it.
    Open,
}

/// A place in the history that can be gone back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(super) segments: usize,
    pub(super) digest: [u8; 32],
    /// The most tokens, the API's own additions left out: the last usage, and a token per byte since.
    pub(super) tokens: u64,
    /// Bytes of all that is sent and is the agent's own.
    pub(crate) bytes: u64,
    /// System messages among the segments.
    pub(super) systems: usize,
    pub(super) tail: Tail,
}

impl Mark {
    pub(super) fn new() -> Self {
        Self { segments: 0, digest: [0; 32], tokens: 0, bytes: 0, systems: 0, tail: Tail::User }
    }

    /// What every request of this agent begins with.
    pub(super) fn begin(&mut self, parts: &[&str]) {
        self.hash(parts);
        self.tokens = parts.iter().map(|part| part.len() as u64).sum();
        self.bytes = self.tokens;
    }

    /// The same history behind another beginning.
    pub(super) fn follow(&mut self, base: &Mark) {
        let mut hasher = Sha256::new();
        hasher.update(base.digest);
        hasher.update(self.digest);
        self.digest = hasher.finalize().into();
    }

    pub(super) fn push(&mut self, segment: &Segment, tail: Tail) {
        self.hash(&[segment.as_str()]);
        self.segments += 1;
        self.tokens = self.tokens.saturating_add(segment.as_str().len() as u64);
        self.bytes = self.bytes.saturating_add(segment.as_str().len() as u64);
        self.systems += usize::from(tail == Tail::System);
        self.tail = tail;
    }

    fn hash(&mut self, parts: &[&str]) {
        let mut hasher = Sha256::new();
        hasher.update(self.digest);
        for part in parts {
            hasher.update(part.as_bytes());
        }
        self.digest = hasher.finalize().into();
    }
}

/// Why an agent is in its last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LastTurn {
    /// Its turns are used up.
    Turns,
    /// The budget is short of this.
    Short(String),
    /// The history is too long, and a new one would be hardly shorter.
    Full,
    /// It goes in circles, and this is how.
    Stuck(String),
}

/// What the tool that ends an agent was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filed {
    Report(Report),
    Ballot(Ballot),
    /// The value that a schema asked for.
    Output(Value),
}

impl Filed {
    /// The text of the outcome; a value is written as JSON.
    pub(super) fn text(&self) -> String {
        match self {
            Filed::Report(report) => report.summary.clone(),
            Filed::Ballot(ballot) => ballot.summary.clone(),
            Filed::Output(value) => value.to_string(),
        }
    }
}

/// What was said in the exchange that is open or was closed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) number: u32,
    pub(super) input: String,
    pub(super) text: String,
    /// Where the history stood before it.
    pub(super) start: Mark,
    /// What it tells the model about the mode.
    pub(super) section: Option<Section>,
    /// Replies of it that are in the history.
    pub(super) kept: u32,
    /// Replies that could not be used.
    pub(super) strikes: u32,
    /// Whether a cut reply was already tried again with more room.
    pub(super) widened: bool,
    /// The room of the reply that was cut, once one was.
    pub(super) cut_at: u32,
    pub(super) last_turn: Option<LastTurn>,
    /// Whether it has read what a command of its own printed.
    pub(super) looked: bool,
    /// Whether a report was sent back because it had looked at nothing.
    pub(super) sent_back: bool,
    /// How often it was asked to end with its report and not in prose.
    pub(super) asked_to_report: u32,
    /// Calls whose value did not fit the schema, and what was said about the last one.
    pub(super) misfits: u32,
    pub(super) misfit: String,
    /// The run whose end this exchange tells of.
    pub(super) notice: Option<String>,
    /// The call a person made, if the exchange is nothing else.
    pub(super) call: Option<ToolCall>,
    /// What the model read at its beginning, if that is not what was said.
    pub(super) read: Option<String>,
    /// Letters that would wait again if it were taken back.
    pub(super) letters: Vec<Letter>,
    /// Letters that came in the middle of it and that no reply has followed, as the model read them.
    pub(super) fresh: Vec<String>,
    /// The facts of the capsule that it was told, until there is a reply.
    pub(super) facts: Option<Box<Facts>>,
    /// Bytes since the last usage, before it.
    pub(super) since: u64,
    /// Whether it began with letters or a task from the board, and not with something that was said.
    pub(super) brought: bool,
    /// Whether the next reply, though not the first of the exchange, is the first
    /// after the model was told about the mode.
    pub(super) announces: bool,
    /// The last words of the agent in it.
    pub(super) said: String,
    /// Whether a call ended the work for now.
    pub(super) ends: bool,
    pub(super) filed: Option<Filed>,
    pub(super) degraded: Option<String>,
    /// Changed files it was told of; owed again if it is taken back.
    pub(super) told: Vec<String>,
    /// The calls of it that have ended.
    pub(super) made: Vec<Made>,
    /// How often its last round of calls has come in a row.
    pub(super) repeats: Repeats,
    /// What it would come to if it ended with its latest reply or failure.
    pub(super) so_far: Option<Outcome>,
    pub(super) outcome: Option<Outcome>,
    pub(super) taken_back: bool,
    /// Whether a person stopped it.
    pub(super) stopped: bool,
}

impl Exchange {
    /// An exchange that has just been opened.
    pub(super) fn new(number: u32, input: &str, text: &str, start: Mark) -> Self {
        Self {
            number,
            input: input.to_owned(),
            text: text.to_owned(),
            start,
            section: None,
            kept: 0,
            strikes: 0,
            widened: false,
            cut_at: 0,
            last_turn: None,
            looked: false,
            sent_back: false,
            asked_to_report: 0,
            misfits: 0,
            misfit: String::new(),
            notice: None,
            call: None,
            read: None,
            letters: Vec::new(),
            fresh: Vec::new(),
            facts: None,
            since: 0,
            brought: false,
            announces: false,
            said: String::new(),
            ends: false,
            filed: None,
            degraded: None,
            told: Vec::new(),
            made: Vec::new(),
            repeats: Repeats::default(),
            so_far: None,
            outcome: None,
            taken_back: false,
            stopped: false,
        }
    }

    /// What was asked, as the model read it.
    pub(super) fn asked(&self) -> String {
        let asked = self.read.as_ref().unwrap_or(&self.text);
        std::iter::once(asked).chain(&self.fresh).map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }

    /// Whether nothing is asked of the model any more: it filed what it was to file, or has tried often
    /// enough.
    pub(super) fn is_settled(&self) -> bool {
        self.filed.is_some() || self.misfits >= output::TRIES
    }

    /// Whether another turn follows this round of tools, as far as nothing else ends it.
    pub(super) fn goes_on(&self) -> bool {
        self.last_turn.is_none() && !self.ends
    }

    /// Whether a closed exchange is worth going on with: it failed for a reason that may be
    /// gone by now, and no person wanted it to end.
    pub(super) fn reopenable(&self) -> bool {
        if self.stopped {
            return false;
        }
        match self.outcome.as_ref().and_then(Outcome::failure) {
            Some(
                FailureKind::Api
                | FailureKind::Transport
                | FailureKind::RateLimited
                | FailureKind::Deadline
                | FailureKind::Interrupted
                | FailureKind::Cancelled
                | FailureKind::Budget
                | FailureKind::Sandbox
                | FailureKind::InvalidOutput
                | FailureKind::Internal,
            ) => true,
            // These failures come from the model's own work and would come out the same again.
            Some(
                FailureKind::Refused
                | FailureKind::Truncated
                | FailureKind::ContextFull
                | FailureKind::TurnLimit
                | FailureKind::Stuck,
            )
            | None => false,
        }
    }
}
