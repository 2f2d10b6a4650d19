//! What the host and the interpreter say to each other: one question, one reply, each one line of JSON. The
//! host asks, the interpreter computes until it has nothing left to do, and says what it wants; it never
//! waits and asks nothing but the host.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the host asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum HostMessage {
    /// Check this source and say everything that is wrong with it. May be asked any number of times.
    Check {
        /// The source.
        source: String,
        /// What it is held to.
        limits: Limits,
    },
    /// Check this source and run it up to its first wait. Asked once.
    Start(Box<Start>),
    /// Here is what one call came to: go on to the next wait.
    Answer {
        /// The call.
        call: u32,
        /// What it came to.
        answer: CallOutcome,
        /// Tokens spent so far, in and out, as `budget.spent()` is to say from now on.
        spent: u64,
    },
}

/// A program that is to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// The source.
    pub source: String,
    /// The global `args`; absent is `undefined`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub args: Option<Value>,
    /// `budget.total`.
    #[serde(default)]
    pub budget_total: Option<u64>,
    /// Tokens spent before the program starts, in and out.
    #[serde(default)]
    pub spent: u64,
    /// What it is held to.
    #[serde(default)]
    pub limits: Limits,
}

/// Tells a missing value from an explicit null.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

/// What a program is held to. The host adds a deadline of its own, because a native loop of the engine cannot
/// be interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Characters of the source.
    pub source_chars: usize,
    /// Bytes of the engine's heap.
    pub heap_bytes: usize,
    /// Bytes of the engine's stack.
    pub stack_bytes: usize,
    /// Work between two waits, in the engine's own ticks.
    pub ticks: u64,
    /// Calls that wait for an answer.
    pub pending: usize,
    /// Calls of every kind over the whole life of the program, timers and children's included.
    pub calls: usize,
    /// Lines of `log`.
    pub log_lines: usize,
    /// Characters of one such line; what is longer is cut, and says so.
    pub log_chars: usize,
    /// Agents over the whole life of the run, children and the voters of `verify` included.
    pub agents: u32,
    /// Items of one `parallel` or `pipeline`.
    pub items: usize,
    /// Bytes of one value that crosses the border: a prompt with its options, or the result.
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_chars: 524_288,
            heap_bytes: 256 << 20,
            stack_bytes: 1 << 20,
            ticks: 20_000,
            pending: 10_000,
            calls: 100_000,
            log_lines: 10_000,
            log_chars: 4_000,
            agents: 1_000,
            items: 4_096,
            value_bytes: 16 << 20,
        }
    }
}

/// What one call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum CallOutcome {
    /// The call resolves to this value; `null` for an agent that died or was skipped.
    Value {
        /// The value.
        value: Value,
    },
    /// The call rejects with an `Error` of this message.
    Throw {
        /// The message.
        message: String,
    },
    /// For `workflow`: the source of the child, to be checked and run inline.
    Program {
        /// The child's name, as progress shows it.
        name: String,
        /// Its source.
        source: String,
    },
}

/// What the interpreter says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum GuestMessage {
    /// The source can be run.
    Sound {
        /// What it says of itself.
        meta: Meta,
        /// What is odd about it, but no obstacle.
        warnings: Vec<Problem>,
        /// Mistakes that do not keep the program from being run; it fails, or does something
        /// else than was meant, when it comes there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        slips: Vec<Problem>,
    },
    /// The source cannot be run, and this is everything that is wrong with it, in the order it stands there.
    Unsound {
        /// At least one.
        problems: Vec<Problem>,
    },
    /// The program ran to its next wait, or to its end.
    Stepped(Box<ProgramStep>),
    /// The question made no sense: an answer to no call, a second start. A fault of the host.
    Confused {
        /// Why.
        why: String,
    },
}

/// One step of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramStep {
    /// Calls that were made, in the order they were made, numbered from 1 over the whole life of the program.
    pub calls: Vec<Call>,
    /// Timers that were cleared and want no answer any more.
    pub cleared: Vec<u32>,
    /// What was said, in order.
    pub said: Vec<ProgramRemark>,
    /// How it stands now.
    pub state: State,
}

/// What a program says in passing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum ProgramRemark {
    /// `phase(title)`.
    Phase {
        /// The title.
        title: String,
        /// The child workflow that said it; absent for the program itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<String>,
    },
    /// `log(message)` or `console.log`, without control characters; and what the interpreter itself has to
    /// remark, such as an unknown option or an item of `parallel` that threw.
    Log {
        /// The line.
        text: String,
    },
}

/// How a program stands after a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It waits for at least one call.
    #[default]
    Waiting,
    /// It returned.
    Returned {
        /// The value, as JSON; absent is `undefined`.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
        value: Option<Value>,
        /// What could not be written as JSON and stands there as a placeholder, by path.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        replaced: Vec<String>,
    },
    /// It ended without returning.
    Failed {
        /// Why.
        fault: Fault,
    },
}

/// Why a program ended without returning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind, for programs.
    pub kind: FaultKind,
    /// What happened, for people.
    pub message: String,
    /// Where, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePosition>,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The program threw, and no `catch` took it.
    Thrown,
    /// It ran too long between two waits.
    Ticks,
    /// It needed more memory than it may have.
    Heap,
    /// It recursed too deeply.
    Stack,
    /// It waits for a promise that no call will settle.
    Deadlock,
    /// Too many calls, at once or over the whole run.
    Pending,
    /// It said too much.
    Logs,
    /// A value that crosses the border is too large or too deep.
    Value,
    /// It was killed at the host's deadline. Only the host says so.
    Deadline,
    /// Its process ended without an answer. Only the host says so.
    Died,
    /// Its source cannot be run. The interpreter says [`GuestMessage::Unsound`] instead; this is for a host
    /// that has to call it an end.
    Unsound,
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePosition {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// That line of the source, cut if it is long.
    pub text: String,
}

/// Something that is wrong with a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What, and what to write instead.
    pub message: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePosition>,
}

/// What a program says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// When it is of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
}

/// A phase of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// Its title.
    pub title: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The model its author had in mind; for display alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Something a program wants to have done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its number, from 1.
    pub call: u32,
    /// Where in the structure of the program it was made, whatever was done first: the slots of `parallel`,
    /// the items and stages of `pipeline` it stands in, such as `1[4]/2[0].1`. Empty at the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The phase it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The child workflow that made it; absent for the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The line it was made in, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is wanted.
    #[serde(flatten)]
    pub want: Want,
}

/// What a call wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum Want {
    /// `agent(prompt, opts)`.
    Agent(AgentWant),
    /// `verify(finding, opts)`: have verifiers try to refute a finding.
    Verify {
        /// The finding: `{claim, evidence, severity?, citations?}`, or a claim alone.
        finding: Value,
        /// How many verifiers; absent is the session's own number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        voters: Option<u32>,
        /// What people call it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// `sh(command)`: a command that reads.
    Sh {
        /// The command.
        command: String,
    },
    /// `checkpoint(question)`: ask a person.
    Checkpoint {
        /// The question.
        question: String,
    },
    /// `workflow(nameOrRef, args)`. The arguments stay inside.
    Workflow {
        /// A saved name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Or a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script_path: Option<String>,
    },
    /// `setTimeout`.
    Timer {
        /// Milliseconds.
        ms: u64,
    },
}

/// `agent(prompt, opts)`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentWant {
    /// The whole task.
    pub prompt: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The JSON schema of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// A model or its alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// An effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `worktree`, or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// A kind of agent, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The only tools it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}
