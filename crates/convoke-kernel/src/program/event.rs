//! What has happened to a program's run, in the past tense, and the data it carries: the format of the run's
//! stream. Events are for ever: variants are never removed, and new members are optional.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::events;
use crate::ids::{AgentId, SessionId};
use crate::run::{ItemStatus, Reused, Spent};
use crate::segment::Segment;

events! {
    /// Something that has happened to a program's run.
    enum ProgramEvent;

    /// The run exists, and this is what it is made of.
    ProgramStarted = "program_started" {
        /// Everything that stays the same for the run's life.
        spec: ProgramSpec,
    }
    /// The program is run from its beginning again; what it wants that was done before is served by content.
    PassBegan = "pass_began" {
        /// Its number; the first pass, which begins with the run, is 1.
        pass: u32,
        /// Why.
        why: String,
        /// `budget.total` from now on; absent is as it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_total: Option<u64>,
    }
    /// The program computed up to its next wait or to its end.
    StepTaken = "step_taken" {
        /// The call whose answer it was given; absent for the first step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fed: Option<u32>,
        /// What it wants to have done.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<MadeCall>,
        /// Timers that want no answer any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cleared: Vec<u32>,
        /// What it said.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        said: Vec<ProgramSaid>,
        /// How it ended, if it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<ProgramEnd>,
    }
    /// What a step wanted did not fit the budget: none of it was started, and the program waits before that
    /// step.
    StepDeclined = "step_declined" {
        /// Agents the step needed.
        agents: u32,
        /// Why they cannot be had, with the numbers.
        reason: String,
    }
    /// A call has its result, wherever that came from. The program is given
    /// the answers in the order of these events.
    CallEnded = "call_ended" {
        /// The call.
        call: u32,
        /// What it came to.
        result: CallResult,
        /// What `budget.spent()` says from now on.
        #[serde(default)]
        spent_total: u64,
    }
    /// A person ended the run before its end.
    ProgramStopped = "program_stopped" {
        /// The person who did it, and how.
        by: String,
    }
    /// Nothing more will happen in this pass.
    ProgramClosed = "program_closed" {
        /// How the run ended.
        status: ProgramStatus,
    }
}

/// What a program's run is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// The run's id, `wf_…`.
    pub run: String,
    /// The session it belongs to.
    pub session: SessionId,
    /// The agent that called `Workflow`, or under whose name a person did.
    pub lead: AgentId,
    /// The call.
    pub call: String,
    /// The directory.
    pub dir: String,
    /// The fingerprint of the directory at the start.
    pub base: String,
    /// Verifiers per finding, unless the program says otherwise.
    pub voters: u32,
    /// The program's name.
    pub name: String,
    /// What it does, in its own words.
    pub description: String,
    /// Its phases, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<String>,
    /// The source.
    pub source: String,
    /// The digest of the source.
    pub digest: String,
    /// The file it was read from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The arguments, as JSON; absent is `undefined`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub args: Option<Segment>,
    /// `budget.total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_total: Option<u64>,
    /// What was spent before it started.
    #[serde(default)]
    pub spent_before: u64,
    /// Whether the lead goes on meanwhile and is told at the end.
    #[serde(default)]
    pub background: bool,
    /// The run whose results are to be served, if it is not this one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The run under whose name its agents are known, if that is not this one: they go on where they stood
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What the person's consent rests on.
    pub consent: String,
}

/// Tells a missing value from an explicit null.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::segment::Segment;

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Segment>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Segment>, D::Error> {
        Segment::deserialize(deserializer).map(Some)
    }
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// An agent.
    Agent,
    /// Verifiers of one finding.
    Verify,
    /// A command that reads.
    Sh,
    /// A question to a person.
    Checkpoint,
    /// Another program, inline.
    Workflow,
    /// A timer.
    Timer,
}

impl CallKind {
    /// Whether agents do it.
    pub fn is_agents(self) -> bool {
        matches!(self, CallKind::Agent | CallKind::Verify)
    }

    /// Whether its answer stays the answer when the program is run from its beginning again.
    pub fn is_kept(self) -> bool {
        matches!(self, CallKind::Agent | CallKind::Verify | CallKind::Checkpoint)
    }
}

/// Something a program wants to have done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCall {
    /// Its number in this pass, from 1, in the order the program made them.
    pub call: u32,
    /// What it is for.
    pub kind: CallKind,
    /// What people call it.
    pub label: String,
    /// Its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The child workflow that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Where in the program's structure it was made, whatever was done first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The key of its content: everything that affects the answer, and nothing else.
    pub key: String,
    /// Which of the equal ones of this pass it is, from 0, in the order they were made.
    #[serde(default)]
    pub occurrence: u32,
    /// How many agents it needs, if nothing can be served.
    #[serde(default)]
    pub agents: u32,
    /// The digest of the schema its answer has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// How often an agent for this was given up before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// What is wanted, as the program said it.
    pub want: Segment,
}

impl MadeCall {
    /// The agent that does it in the run with this origin (`Program::origin`), the same whenever the call is
    /// made again: `voter` is 0 for the agent of `agent()`, and counts the verifiers of `verify()` from 1.
    pub fn agent(&self, origin: &str, voter: u32) -> AgentId {
        let numbers = [self.occurrence, self.attempt, voter].map(|number| number.to_string());
        AgentId::derived(&["call", origin, &self.key, &numbers[0], &numbers[1], &numbers[2]])
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a program says in passing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramSaid {
    /// A phase begins.
    Phase(String),
    /// A line.
    Log(String),
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// It returned.
    Returned {
        /// The value, as JSON; `null` if it returned nothing.
        value: Segment,
        /// What could not be written as JSON, by path.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaced: Vec<String>,
    },
    /// It ended without returning.
    Failed {
        /// The kind, for programs: `thrown`, `ticks`, `heap`, …
        kind: String,
        /// What happened, and where.
        message: String,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStatus {
    /// The program returned, and every agent ended well or was skipped by a person.
    Complete,
    /// The program returned, and not everything it asked for was done.
    Partial,
    /// The program did not return.
    Failed,
    /// A person stopped it.
    Stopped,
}

/// What the program was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// The call resolves to this.
    Value(Segment),
    /// It rejects with this message.
    Throw(String),
    /// The source of a child.
    Program {
        /// Its name.
        name: String,
        /// Its source.
        source: String,
    },
}

impl CallAnswer {
    /// The answer of an agent that died or was skipped.
    pub fn null() -> Self {
        CallAnswer::Value(Segment::encode(&serde_json::Value::Null))
    }
}

/// An earlier pass's result that stands for a call of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFrom {
    /// The pass.
    pub pass: u32,
    /// The call in it.
    pub call: u32,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// How it ended.
    #[serde(flatten)]
    pub status: ItemStatus,
    /// What the program was told.
    pub answer: CallAnswer,
    /// Whether a person skipped it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_person: bool,
    /// Why the result is worth less than it looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// The agents that did it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentId>,
    /// Where it was taken from; absent when it was worked out here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// The earlier pass it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptFrom>,
    /// What that took.
    #[serde(flatten)]
    pub spent: Spent,
    /// A note for a person, such as where its worktree is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Files that changed while it was at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The files that had changed since the run's start when it ended, with their digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, Option<String>>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

impl CallResult {
    /// A result that has nothing but its status and what the program is told.
    pub fn bare(status: ItemStatus, answer: CallAnswer) -> Self {
        Self {
            status,
            answer,
            by_person: false,
            degraded: None,
            agents: Vec::new(),
            reused: None,
            kept: None,
            spent: Spent::default(),
            note: None,
            changed: Vec::new(),
            changes: BTreeMap::new(),
        }
    }

    /// Whether it may be served again: it is whole, and worth what it looks.
    pub fn is_sound(&self) -> bool {
        self.status == ItemStatus::Ok && self.degraded.is_none()
    }
}
