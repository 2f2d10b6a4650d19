//! Inputs as they wait in the journal. Which of them an agent hears next is the kernel's decision.

use convoke_journal::KeyedInput;
use convoke_kernel::{AgentSpec, HistoryForked, Letter, Opening, Queued, QueuedInput, Segment, Summary};
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::retune::Retuning;

/// An input as it waits in the journal.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Waiting {
    /// The agent is to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<AgentSpec>,
    /// A text that is said to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) say: Option<String>,
    /// Turns orchestration mode on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<bool>,
    /// An answer to a question about a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<Answer>,
    /// A person calls a tool of the agent's without asking the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<PersonsCall>,
    /// A run of the agent's has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<RunTold>,
    /// What another process wants of the driver of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<Control>,
    /// A letter for a member of a team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) letter: Option<Letter>,
    /// The agent that is to exist begins with this history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<HistoryForked>,
    /// A person chose another model or effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retune: Option<Retuning>,
    /// The agent is to begin a new history, with this in mind; blank is nothing in particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compact: Option<String>,
    /// A person stops whatever the agent is at; this says who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<String>,
}

impl Waiting {
    pub(crate) fn told(run: &str, text: String) -> Self {
        Self { told: Some(RunTold { run: run.to_owned(), text }), ..Self::default() }
    }
}

/// A person's own call of `Workflow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonsCall {
    /// How people read it.
    pub(crate) text: String,
    /// Its input.
    pub(crate) input: Segment,
}

/// How a run ended, as the agent is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunTold {
    /// Which run.
    pub(crate) run: String,
    /// What is told.
    pub(crate) text: String,
}

/// A person's answer to a question about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// Which call.
    pub(crate) id: String,
    /// Whether it may be run.
    pub(crate) allow: bool,
    /// Who said so, and how.
    pub(crate) by: String,
}

/// What a listing shows of an agent whose first input is waiting and that has not been driven yet.
pub fn summary_of_waiting(input: &KeyedInput, submitted_at: u64) -> Option<Summary> {
    let Waiting { start, say, call, fork, .. } = serde_json::from_str(&input.body).ok()?;
    if let (Some(spec), Some(fork)) = (&start, &fork) {
        return Some(Summary::waiting_fork(spec, fork, submitted_at));
    }
    let task = say.or_else(|| call.map(|call| call.text)).unwrap_or_default();
    start.map(|spec| Summary::waiting(&spec, &task, submitted_at))
}

/// These inputs as the kernel decides about them.
pub(crate) fn queue(inputs: Vec<KeyedInput>) -> Vec<QueuedInput> {
    inputs.into_iter().map(queued).collect()
}

fn queued(input: KeyedInput) -> QueuedInput {
    let wants = match serde_json::from_str(&input.body) {
        Ok(waiting) => wanted(waiting),
        Err(error) => Queued::Unreadable { why: error.to_string() },
    };
    QueuedInput { key: input.key, body: input.body, wants }
}

fn wanted(waiting: Waiting) -> Queued {
    match waiting {
        Waiting { start: Some(spec), say: Some(text), .. } => {
            Queued::Start { spec: Box::new(spec), opening: Opening::Say { text } }
        }
        Waiting { start: Some(spec), call: Some(call), .. } => Queued::Start {
            spec: Box::new(spec),
            opening: Opening::Call { text: call.text, input: call.input },
        },
        Waiting { start: Some(spec), fork: Some(fork), .. } => {
            Queued::Start { spec: Box::new(spec), opening: Opening::Fork(Box::new(fork)) }
        }
        Waiting { answer: Some(answer), .. } => {
            Queued::Answer { id: answer.id, allow: answer.allow, by: answer.by }
        }
        Waiting { control: Some(_), .. } => Queued::Control,
        Waiting { stop: Some(by), .. } => Queued::Stop { by },
        Waiting { retune: Some(Retuning { model, capabilities, rates }), .. } => {
            Queued::Retune { model, capabilities: Box::new(capabilities), rates }
        }
        Waiting { letter: Some(letter), .. } => Queued::Letter(Box::new(letter)),
        Waiting { compact: Some(focus), .. } => Queued::Compact { focus },
        Waiting { call: Some(call), .. } => Queued::Call { text: call.text, input: call.input },
        Waiting { told: Some(told), .. } => Queued::Told { run: told.run, text: told.text },
        Waiting { say: Some(text), .. } => Queued::Say { text },
        Waiting { mode, .. } => Queued::Mode { on: mode },
    }
}

/// The text that is said by an input, if it is that.
pub(crate) fn words(input: &KeyedInput) -> Option<String> {
    serde_json::from_str::<Waiting>(&input.body).ok().filter(|waiting| waiting.start.is_none())?.say
}
