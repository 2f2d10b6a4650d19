//! Where a lead stands, folded from its own events for the eye. The kernel's state is the truth; this is a
//! picture of it. What the agents below it do is in [`AgentsAtWork`](crate::AgentsAtWork).

use convoke_kernel::{Event, NOBODY_TO_ASK, Ran, SessionId, Summary, ToolStarted, shown};

use crate::act::Act;
use crate::used::Used;

/// Where a lead stands.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The session, once it is known.
    pub session: Option<SessionId>,
    /// The model that answers it.
    pub model: String,
    /// When it began.
    pub started_at: u64,
    /// What it has used.
    pub used: Used,
    act: Act,
    /// The calls under way, the latest last: commands run one at a time, agents do not.
    calls: Vec<CallUnderWay>,
    /// What the last reply wanted to have done, whether or not it was begun.
    wanted: Vec<CallUnderWay>,
    /// Calls of all agents that were refused because there was no person to ask about them.
    pub unasked: u32,
    /// What was found out about the server, as it was said.
    pub lessons: Vec<String>,
}

/// A tool call under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallUnderWay {
    id: String,
    /// What it does, as a person would say it; a command as it would be typed.
    pub text: String,
    /// Whether it is a command.
    pub is_command: bool,
    /// When it began.
    pub since: u64,
}

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing<'a> {
    /// Nothing.
    Nothing,
    /// The model is asked.
    Asking,
    /// A call runs.
    Running(&'a CallUnderWay),
    /// The next attempt is waited for.
    Waiting {
        /// Not before this time.
        until: u64,
        /// What went wrong, not made harmless.
        why: &'a str,
    },
    /// A person has to agree to this first.
    Asked {
        /// To what, not made harmless.
        what: &'a str,
    },
}

impl Progress {
    /// A run of which nothing is known yet.
    pub fn new(model: &str) -> Self {
        Self {
            session: None,
            model: model.to_owned(),
            started_at: 0,
            used: Used::default(),
            act: Act::Between,
            calls: Vec::new(),
            wanted: Vec::new(),
            unasked: 0,
            lessons: Vec::new(),
        }
    }

    /// A run that is taken up again.
    pub fn from_summary(summary: &Summary) -> Self {
        Self {
            session: Some(summary.session.clone()),
            model: summary.model.clone(),
            started_at: summary.started_at,
            used: Used::of([summary]),
            act: Act::Between,
            calls: Vec::new(),
            wanted: Vec::new(),
            unasked: 0,
            lessons: Vec::new(),
        }
    }

    /// Folds an event.
    pub fn apply(&mut self, at: u64, event: &Event) {
        self.used.heard(event);
        self.act.heard(at, event);
        match event {
            Event::AgentStarted(e) => {
                self.session = Some(e.spec.session.clone());
                self.model = e.spec.model.clone();
                self.started_at = at;
            }
            Event::Retuned(e) => self.model.clone_from(&e.model),
            // It asks again at once.
            Event::EndpointLearnt(_) => self.act = Act::Between,
            Event::ModelReplied(e) => {
                let calls = e.reply.calls.iter();
                self.wanted = calls
                    .map(|call| CallUnderWay::of(&call.id, &call.name, call.input.as_str(), at))
                    .collect();
            }
            Event::ToolStarted(e) => {
                let call = CallUnderWay::new(e, at);
                self.used.commands += u32::from(call.is_command);
                self.calls.push(call);
            }
            Event::ToolFinished(e) => {
                self.count(event);
                self.calls.retain(|call| call.id != e.id);
            }
            Event::ExchangeClosed(_) => {
                self.calls.clear();
                self.act = Act::Between;
            }
            _ => {}
        }
    }

    /// What is under way.
    pub fn doing(&self) -> Doing<'_> {
        match &self.act {
            Act::Asking | Act::Thinking | Act::Answering => Doing::Asking,
            Act::Retry { until, why } => Doing::Waiting { until: *until, why },
            Act::Asked { what } => Doing::Asked { what },
            Act::Between | Act::Calling { .. } => self.calls.last().map_or(Doing::Nothing, Doing::Running),
        }
    }

    /// Counts what is counted of every agent, the lead or not.
    pub fn count(&mut self, event: &Event) {
        if let Event::ToolFinished(e) = event
            && e.result.ran == Ran::Refused
            && e.result.text.contains(NOBODY_TO_ASK)
        {
            self.unasked = self.unasked.saturating_add(1);
        }
    }

    /// What the last reply wanted under this id.
    pub fn wanted(&self, id: &str) -> Option<&CallUnderWay> {
        self.wanted.iter().find(|call| call.id == id)
    }

    /// The call with this id, while it is under way.
    pub fn call(&self, id: &str) -> Option<&CallUnderWay> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// Whether what is under way is a call that a person made.
    pub fn is_by_person(&self) -> bool {
        matches!(self.doing(), Doing::Running(call) if call.id.starts_with("person_"))
    }
}

impl CallUnderWay {
    /// A call that begins now.
    pub(crate) fn new(event: &ToolStarted, at: u64) -> Self {
        Self::of(&event.id, &event.name, event.input.as_str(), at)
    }

    fn of(id: &str, name: &str, input: &str, at: u64) -> Self {
        let call = shown(name, input);
        Self { id: id.to_owned(), text: call.progress(), is_command: call.is_command(), since: at }
    }

    /// A command with its prompt, anything else as it is.
    pub fn shown(&self) -> String {
        if self.is_command { format!("$ {}", self.text) } else { self.text.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_said_as_a_person_would_say_it() {
        let check = |name: &str, input: &str, expected: &str, is_command: bool| {
            let call = CallUnderWay::of("t", name, input, 0);
            assert_eq!((call.text.as_str(), call.is_command), (expected, is_command), "{name} {input}");
        };
        check("bash", r#"{"command":"ls -l"}"#, "ls -l", true);
        check("bash", r#"{"restart":true}"#, "(restart the shell)", true);
        check("bash", r#"{"odd":1}"#, r#"bash {"odd":1}"#, false);
        check("Workflow", r#"{"subtasks":["a","b"]}"#, "Workflow of 2 subtasks", false);
        check("Workflow", r#"{"subtasks":"a\nb"}"#, "Workflow", false);
        check("Workflow", r#"{"name":"review"}"#, "Workflow review", false);
        check("task", r#"{"prompt":"look"}"#, "task: look", false);
        check("read_result", r#"{"run":"wf_a","item":3}"#, "read_result: wf_a, item 3", false);
    }
}
