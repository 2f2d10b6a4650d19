//! Which of the inputs that wait for an agent it takes next, and how many letters it reads at once. The
//! inputs are kept and read elsewhere; here is decided which of them comes first.

use super::{Agent, Effect, Input};
use crate::event::HistoryForked;
use crate::ledger::Rates;
use crate::segment::Segment;
use crate::spec::AgentSpec;
use crate::team::{Letter, in_order};
use crate::wire::Capabilities;

/// An input that waits for an agent.
#[derive(Debug, Clone)]
pub struct QueuedInput {
    /// Its key, by which it is taken out of the queue.
    pub key: String,
    /// What it holds, as it was written.
    pub body: String,
    /// What it asks for.
    pub wants: Queued,
}

/// What an input that waits asks for.
#[derive(Debug, Clone)]
pub enum Queued {
    /// The agent is to exist; one that does already takes what it was to begin with as anything else.
    Start {
        /// What it is made of.
        spec: Box<AgentSpec>,
        /// What it begins with.
        opening: Opening,
    },
    /// Something is said.
    Say {
        /// What.
        text: String,
    },
    /// A person makes a call without the model.
    Call {
        /// The call, as people read it.
        text: String,
        /// The input of `Workflow`.
        input: Segment,
    },
    /// A run in the background has ended.
    Told {
        /// The run.
        run: String,
        /// What it came to.
        text: String,
    },
    /// The switch of orchestration mode is turned; without a side it stays as it is.
    Mode {
        /// Where to.
        on: Option<bool>,
    },
    /// A question about a call is answered.
    Answer {
        /// Which call.
        id: String,
        /// Whether it may be run.
        allow: bool,
        /// What gave the answer, and how.
        by: String,
    },
    /// Something for the process that drives the agent; the agent does not hear it.
    Control,
    /// A letter has come.
    Letter(Box<Letter>),
    /// A person chose another model or another effort.
    Retune {
        /// The model.
        model: String,
        /// What model and endpoint accept.
        capabilities: Box<Capabilities>,
        /// What its tokens cost at most.
        rates: Option<Rates>,
    },
    /// The agent is to begin a new history.
    Compact {
        /// What is to be kept in mind.
        focus: String,
    },
    /// A person stops what the agent is at.
    Stop {
        /// The person who stops it.
        by: String,
    },
    /// It cannot be read.
    Unreadable {
        /// Why not.
        why: String,
    },
}

/// What an agent begins with.
#[derive(Debug, Clone)]
pub enum Opening {
    /// This is said to it.
    Say {
        /// What.
        text: String,
    },
    /// A person makes this call.
    Call {
        /// The call, as people read it.
        text: String,
        /// The input of `Workflow`.
        input: Segment,
    },
    /// It has the history of another one.
    Fork(Box<HistoryForked>),
}

/// What of the queue is held back for now.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeldBack {
    /// All but a turn of the switch, another model and an answer.
    pub all_but_switches: bool,
    /// Letters: they would fail again, or a person's words come first.
    pub letters: bool,
    /// What a person says or calls.
    pub words: bool,
}

/// The input that an agent takes next.
#[derive(Debug, Clone)]
pub struct NextInput {
    /// The input.
    pub input: Input,
    /// The keys of all that is taken out of the queue with it.
    pub keys: Vec<String>,
}

/// Letters that are read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterBatch {
    /// In the order in which they are to be read.
    pub letters: Vec<Letter>,
    /// Their keys in the queue.
    pub keys: Vec<String>,
}

impl LetterBatch {
    /// The key of the input that they make: that of the first.
    pub fn key(&self) -> String {
        self.keys.first().cloned().unwrap_or_default()
    }
}

/// Letters that are read at once: more wait for the next time.
const LETTERS: usize = 20;
const LETTERS_BYTES: usize = 64 * 1024;

/// Characters of something unreadable that are kept.
const REJECTED_CHARS: usize = 2_000;

impl QueuedInput {
    /// Whether it says something or calls a tool, and opens an exchange by that.
    fn is_words(&self) -> bool {
        match &self.wants {
            Queued::Say { .. } | Queued::Call { .. } => true,
            Queued::Start { opening, .. } => !matches!(opening, Opening::Fork(_)),
            _ => false,
        }
    }

    fn is_letter(&self) -> bool {
        matches!(self.wants, Queued::Letter(_))
    }

    fn rejected(&self, why: String) -> Input {
        let body = self.body.chars().take(REJECTED_CHARS).collect();
        Input::Reject { input: self.key.clone(), why, body }
    }
}

impl Agent {
    /// Whether it can hear anything now: it is new or idle, or waits for a person.
    pub fn takes_input(&self) -> bool {
        !self.is_started() || self.is_idle() || self.asks().next().is_some()
    }

    /// The calls it asks a person about.
    pub fn asks(&self) -> impl Iterator<Item = String> {
        self.pending().into_iter().filter_map(|effect| match effect {
            Effect::AskPerson { id, .. } => Some(id),
            _ => None,
        })
    }

    /// The first of the inputs that it can hear now, with the keys of all that are taken with it. What cannot
    /// be read is taken out of the queue and recorded as that.
    pub fn next_input(&self, queue: &[QueuedInput], held_back: HeldBack) -> Option<NextInput> {
        // Before anything else, whatever it stands behind: what is said beside it is not meant for what is
        // stopped.
        if let Some((by, keys)) = stop_asked(queue).filter(|_| self.is_started()) {
            return Some(NextInput { input: Input::StopExchange { by }, keys });
        }
        let busy = self.is_started() && !self.is_idle();
        let asked: Vec<String> = self.asks().collect();
        let hidden = |input: &&QueuedInput| {
            (held_back.letters && input.is_letter()) || (held_back.words && input.is_words())
        };
        // One at a time: the agent may be busy with it then.
        for queued in queue.iter().filter(|input| !hidden(input)) {
            let key = queued.key.clone();
            let input = match &queued.wants {
                // Without a start there is no agent to record anything.
                Queued::Unreadable { .. } if !self.is_started() => continue,
                Queued::Unreadable { why } => queued.rejected(why.clone()),
                Queued::Answer { id, allow, by } if asked.contains(id) => {
                    Input::Answered { id: id.clone(), allow: *allow, by: by.clone() }
                }
                // It is not the agent's to hear.
                Queued::Control => continue,
                // While it waits for a person it hears nothing but the answer, and that may stand behind
                // something else.
                _ if busy => continue,
                Queued::Start { spec, opening } if !self.is_started() => start(spec, key, opening),
                // Letters to one that does not exist yet are read when it does.
                Queued::Letter(_) | Queued::Retune { .. } | Queued::Stop { .. } if !self.is_started() => {
                    continue;
                }
                Queued::Retune { model, capabilities, rates } => {
                    // More may have been said since it was chosen.
                    match self.may_retune(model, capabilities) {
                        Ok(()) => Input::Retune {
                            model: model.clone(),
                            capabilities: (**capabilities).clone(),
                            rates: rates.clone(),
                        },
                        Err(why) => queued.rejected(why.to_string()),
                    }
                }
                Queued::Told { .. } | Queued::Letter(_) if held_back.all_but_switches => return None,
                _ if held_back.all_but_switches && queued.is_words() => return None,
                Queued::Letter(_) => {
                    let heard = next_letters(queue)?;
                    let key = heard.key();
                    let LetterBatch { letters, keys } = heard;
                    return Some(NextInput { input: Input::Mail { key, letters, rests: Vec::new() }, keys });
                }
                Queued::Compact { focus } => Input::Compact { focus: focus.clone() },
                Queued::Call { text, input }
                | Queued::Start { opening: Opening::Call { text, input }, .. } => {
                    Input::Call { key, text: text.clone(), input: input.clone() }
                }
                Queued::Told { run, text } if self.may_be_told(run) => {
                    Input::Told { key, run: run.clone(), text: text.clone() }
                }
                Queued::Say { text } | Queued::Start { opening: Opening::Say { text }, .. } => {
                    Input::Say { key, text: text.clone() }
                }
                Queued::Mode { on: Some(on) } => Input::SetMode { on: *on },
                // An answer to no open question changes nothing, as does a switch that stands there already.
                Queued::Mode { on: None }
                | Queued::Answer { .. }
                | Queued::Told { .. }
                | Queued::Stop { .. }
                | Queued::Start { .. } => Input::SetMode { on: self.mode() == Some(true) },
            };
            return Some(NextInput { input, keys: vec![queued.key.clone()] });
        }
        None
    }
}

fn start(spec: &AgentSpec, key: String, opening: &Opening) -> Input {
    let spec = Box::new(spec.clone());
    match opening.clone() {
        Opening::Say { text } => Input::Start { spec, key, text },
        Opening::Call { text, input } => Input::StartCall { spec, key, text, input },
        Opening::Fork(fork) => Input::StartFork { spec, fork },
    }
}

/// A person's request to stop the agent, if there is one among these inputs: the person who made it, and the
/// keys of all such inputs.
pub fn stop_asked(queue: &[QueuedInput]) -> Option<(String, Vec<String>)> {
    let by = |input: &QueuedInput| match &input.wants {
        Queued::Stop { by } => Some((by.clone(), input.key.clone())),
        _ => None,
    };
    let (by, keys): (Vec<String>, Vec<String>) = queue.iter().filter_map(by).unzip();
    Some((by.into_iter().next()?, keys))
}

/// The letters among these inputs that are read next, in their order; `None` if there are none.
pub fn next_letters(queue: &[QueuedInput]) -> Option<LetterBatch> {
    let letter = |input: &QueuedInput| match &input.wants {
        Queued::Letter(letter) => Some(((**letter).clone(), input.key.clone())),
        _ => None,
    };
    let waiting: Vec<(Letter, String)> = queue.iter().filter_map(letter).collect();
    let all = in_order(waiting.iter().map(|(letter, _)| letter.clone()).collect());
    let mut bytes = 0;
    let fits = |letter: &Letter| {
        bytes += letter.text.len();
        bytes <= LETTERS_BYTES
    };
    let first = usize::from(!all.is_empty());
    let fitting = all.iter().take(LETTERS).map(fits).take_while(|fits| *fits).count().max(first);
    let letters: Vec<Letter> = all.into_iter().take(fitting).collect();
    let keys_of =
        |letter: &Letter| waiting.iter().find(|(one, _)| one.id == letter.id).map(|(_, key)| key.clone());
    let keys: Vec<String> = letters.iter().filter_map(keys_of).collect();
    let heard = LetterBatch { letters, keys };
    (!heard.keys.is_empty()).then_some(heard)
}
