//! Inputs as they wait in the journal, and which of them an agent can hear now.

use convoke_journal::KeyedInput;
use convoke_kernel::{Agent, AgentSpec, Effect, HistoryForked, Input, Letter, Segment, Summary, in_order};
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

/// A person's request to stop the agent, if there is one among these inputs: who made it,
/// and the keys of all such inputs.
pub(crate) fn stops(inputs: &[KeyedInput]) -> Option<(String, Vec<String>)> {
    let by = |input: &KeyedInput| serde_json::from_str::<Waiting>(&input.body).ok()?.stop;
    let stops: Vec<(String, String)> =
        inputs.iter().filter_map(|input| Some((by(input)?, input.key.clone()))).collect();
    let first = stops.first()?.0.clone();
    Some((first, stops.into_iter().map(|(_, key)| key).collect()))
}

/// Whether an agent can hear anything now: it is new or idle, or waits for a person.
pub(crate) fn can_hear(agent: &Agent) -> bool {
    !agent.is_started() || agent.is_idle() || asks(agent).next().is_some()
}

/// The calls an agent asks a person about.
pub(crate) fn asks(agent: &Agent) -> impl Iterator<Item = String> {
    agent.pending().into_iter().filter_map(|effect| match effect {
        Effect::AskPerson { id, .. } => Some(id),
        _ => None,
    })
}

/// Letters that are read at once: more wait for the next time.
const LETTERS: usize = 20;
const LETTERS_BYTES: usize = 64 * 1024;

/// The first of the inputs that the agent can hear now, and the keys of all that are taken with it. With
/// `switches` it takes a turn of the switch or an answer and nothing else. What cannot be read is taken out
/// of the queue and recorded as that.
pub(crate) fn next(agent: &Agent, inputs: Vec<KeyedInput>, switches: bool) -> Option<(Input, Vec<String>)> {
    // Before anything else, whatever it stands behind: what is said beside it is not meant for what is
    // stopped.
    if let Some((by, keys)) = stops(&inputs).filter(|_| agent.is_started()) {
        return Some((Input::StopExchange { by }, keys));
    }
    let busy = agent.is_started() && !agent.is_idle();
    let asked: Vec<String> = asks(agent).collect();
    // One at a time: the agent may be busy with it then.
    for input in &inputs {
        let key = input.key.clone();
        let waiting: Waiting = match serde_json::from_str(&input.body) {
            Ok(waiting) => waiting,
            // Without a start there is no agent to record anything.
            Err(_) if !agent.is_started() => continue,
            Err(error) => {
                let body = input.body.chars().take(REJECTED_CHARS).collect();
                return Some((Input::Reject { input: key.clone(), why: error.to_string(), body }, vec![key]));
            }
        };
        let heard = match waiting {
            Waiting { answer: Some(answer), .. } if asked.contains(&answer.id) => {
                Input::Answered { id: answer.id, allow: answer.allow, by: answer.by }
            }
            // It is not the agent's to hear.
            Waiting { control: Some(_), .. } => continue,
            // While it waits for a person it hears nothing but the answer, and that may stand behind
            // something else.
            _ if busy => continue,
            Waiting { start: Some(spec), say: Some(text), .. } if !agent.is_started() => {
                Input::Start { spec: Box::new(spec), key, text }
            }
            Waiting { start: Some(spec), call: Some(call), .. } if !agent.is_started() => {
                Input::StartCall { spec: Box::new(spec), key, text: call.text, input: call.input }
            }
            Waiting { start: Some(spec), fork: Some(fork), .. } if !agent.is_started() => {
                Input::StartFork { spec: Box::new(spec), fork: Box::new(fork) }
            }
            // Letters to one that does not exist yet are read when it does.
            Waiting { letter: Some(_), .. }
            | Waiting { retune: Some(_), .. }
            | Waiting { stop: Some(_), .. }
                if !agent.is_started() =>
            {
                continue;
            }
            Waiting { retune: Some(retune), .. } => chosen(agent, input, retune),
            Waiting { say: Some(_), .. } | Waiting { call: Some(_), .. } | Waiting { told: Some(_), .. }
                if switches =>
            {
                return None;
            }
            Waiting { letter: Some(_), .. } if switches => return None,
            Waiting { letter: Some(_), .. } => {
                let (key, letters, keys) = letters(inputs)?;
                return Some((Input::Mail { key, letters, rests: Vec::new() }, keys));
            }
            Waiting { compact: Some(focus), .. } => Input::Compact { focus },
            Waiting { call: Some(call), .. } => Input::Call { key, text: call.text, input: call.input },
            Waiting { told: Some(told), .. } if agent.may_be_told(&told.run) => {
                Input::Told { key, run: told.run, text: told.text }
            }
            Waiting { say: Some(text), .. } => Input::Say { key, text },
            // An answer to no open question changes nothing, as does a switch that stands there already.
            Waiting { mode, .. } => Input::SetMode { on: mode.unwrap_or_else(|| agent.mode() == Some(true)) },
        };
        return Some((heard, vec![input.key.clone()]));
    }
    None
}

/// A choice of model or effort. More may have been said since it was made; what cannot be any more is
/// recorded as that.
fn chosen(agent: &Agent, input: &KeyedInput, retune: Retuning) -> Input {
    let Retuning { model, capabilities, rates } = retune;
    match agent.may_retune(&model, &capabilities) {
        Ok(()) => Input::Retune { model, capabilities, rates },
        Err(why) => {
            let body = input.body.chars().take(REJECTED_CHARS).collect();
            Input::Reject { input: input.key.clone(), why: why.to_string(), body }
        }
    }
}

/// Whether an input is a letter.
pub(crate) fn is_letter(input: &KeyedInput) -> bool {
    serde_json::from_str::<Waiting>(&input.body).is_ok_and(|waiting| waiting.letter.is_some())
}

/// The text that is said by an input, if it is that.
pub(crate) fn words(input: &KeyedInput) -> Option<String> {
    serde_json::from_str::<Waiting>(&input.body).ok().filter(|waiting| waiting.start.is_none())?.say
}

/// Whether an input says something or calls a tool, and opens an exchange by that.
pub(crate) fn is_words(input: &KeyedInput) -> bool {
    serde_json::from_str::<Waiting>(&input.body)
        .is_ok_and(|waiting| waiting.say.is_some() || waiting.call.is_some())
}

/// Characters of something unreadable that are kept.
const REJECTED_CHARS: usize = 2_000;

/// The letters among these inputs that are read next, in their order: the key of the first, the letters, and
/// the keys of all of them.
pub(crate) fn letters(inputs: Vec<KeyedInput>) -> Option<(String, Vec<Letter>, Vec<String>)> {
    let letter = |input: &KeyedInput| serde_json::from_str::<Waiting>(&input.body).ok()?.letter;
    let waiting: Vec<(Letter, String)> =
        inputs.iter().filter_map(|input| Some((letter(input)?, input.key.clone()))).collect();
    let all = in_order(waiting.iter().map(|(letter, _)| letter.clone()).collect());
    let mut bytes = 0;
    let fits = |letter: &Letter| {
        bytes += letter.text.len();
        bytes <= LETTERS_BYTES
    };
    let first = usize::from(!all.is_empty());
    let fitting = all.iter().take(LETTERS).map(fits).take_while(|fits| *fits).count().max(first);
    let read: Vec<Letter> = all.into_iter().take(fitting).collect();
    let keys_of =
        |letter: &Letter| waiting.iter().find(|(one, _)| one.id == letter.id).map(|(_, key)| key.clone());
    let keys: Vec<String> = read.iter().filter_map(keys_of).collect();
    Some((keys.first()?.clone(), read, keys))
}
