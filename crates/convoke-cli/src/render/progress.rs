//! Where a lead stands, folded from its own events for the eye. The kernel's state is the truth; this is a
//! picture of it. What the agents below it do stands in the tree.

use convoke_kernel::{Event, NOBODY_TO_ASK, Ran, SessionId, Summary, ToolStarted, shown};

use convoke_view::{Act, Used, Waits, count, dollars, first_line, revealed, tokens};

/// A command or a reason takes at most this much of a progress line.
const SHORT: usize = 60;

/// Where a lead stands.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) session: Option<SessionId>,
    pub(crate) model: String,
    pub(crate) started_at: u64,
    pub(crate) used: Used,
    act: Act,
    /// The calls under way, the latest last: commands run one at a time, agents do not.
    calls: Vec<Call>,
    /// What the last reply wanted to have done, whether or not it was begun.
    wanted: Vec<Call>,
    /// Calls of all agents that were refused because there was no person to ask about them.
    pub(crate) unasked: u32,
    /// What was found out about the server, as it was said.
    pub(crate) lessons: Vec<String>,
}

/// A tool call under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    id: String,
    /// What it does, as a person would say it; a command as it would be typed.
    pub(crate) text: String,
    /// Whether it is a command.
    pub(crate) is_command: bool,
    pub(crate) since: u64,
}

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing<'a> {
    /// Nothing.
    Nothing,
    /// The model is asked.
    Asking,
    /// A call runs.
    Running(&'a Call),
    /// The next attempt is waited for.
    Waiting { until: u64, why: &'a str },
    /// A person has to agree to this first.
    Asked { what: &'a str },
}

impl Progress {
    /// A session of which nothing is known yet.
    pub(crate) fn new(model: &str) -> Self {
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

    /// A session that is taken up again.
    pub(crate) fn from_summary(summary: &Summary) -> Self {
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
    pub(crate) fn apply(&mut self, at: u64, event: &Event) {
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
                self.wanted =
                    calls.map(|call| Call::of(&call.id, &call.name, call.input.as_str(), at)).collect();
            }
            Event::ToolStarted(e) => {
                let call = Call::new(e, at);
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
    pub(crate) fn doing(&self) -> Doing<'_> {
        match &self.act {
            Act::Asking | Act::Thinking | Act::Answering => Doing::Asking,
            Act::Retry { until, why } => Doing::Waiting { until: *until, why },
            Act::Asked { what } => Doing::Asked { what },
            Act::Between | Act::Calling { .. } => self.calls.last().map_or(Doing::Nothing, Doing::Running),
        }
    }

    /// Counts what is counted of every agent, the lead or not.
    pub(super) fn count(&mut self, event: &Event) {
        if let Event::ToolFinished(e) = event
            && e.result.ran == Ran::Refused
            && e.result.text.contains(NOBODY_TO_ASK)
        {
            self.unasked = self.unasked.saturating_add(1);
        }
    }

    /// What the last reply wanted under this id.
    pub(super) fn wanted(&self, id: &str) -> Option<&Call> {
        self.wanted.iter().find(|call| call.id == id)
    }

    /// The call with this id, while it is under way.
    pub(crate) fn call(&self, id: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// `turn 3 · 2 commands`.
    pub(crate) fn steps(&self) -> String {
        let turn = self.used.turns + u32::from(self.doing() == Doing::Asking);
        format!("turn {} · {}", turn.max(1), count(self.used.commands, "command"))
    }

    /// `12.3k tokens · $0.04`: what the lead has spent.
    pub(crate) fn spent(&self) -> String {
        format!("{} tokens · {}", tokens(self.used.tokens()), dollars(self.used.cost_nano))
    }

    /// What is under way at this time, in a few words.
    pub(crate) fn words(&self, now: u64, waits: &Waits) -> Option<String> {
        match self.doing() {
            Doing::Nothing => None,
            Doing::Asking => Some("the model is answering".to_owned()),
            Doing::Running(call) if call.is_command => {
                Some(format!("running: {}", first_line(&call.text, SHORT)))
            }
            Doing::Running(call) => Some(first_line(&call.text, SHORT)),
            Doing::Waiting { until, why } => {
                Some(format!("asking again {}: {}", waits.when(until, now), first_line(why, SHORT)))
            }
            Doing::Asked { what } => {
                Some(format!("waits for your answer ({})", first_line(&revealed(what), SHORT)))
            }
        }
    }

    /// Whether what is under way is a call that a person made.
    pub(crate) fn is_by_person(&self) -> bool {
        matches!(self.doing(), Doing::Running(call) if call.id.starts_with("person_"))
    }

    /// What a stop has to wait for.
    pub(crate) fn under_way(&self) -> Option<&'static str> {
        match self.doing() {
            Doing::Asking => Some("the reply under way"),
            Doing::Running(_) => Some("the command under way"),
            Doing::Nothing | Doing::Waiting { .. } | Doing::Asked { .. } => None,
        }
    }
}

impl Call {
    /// A call that begins now.
    pub(super) fn new(event: &ToolStarted, at: u64) -> Self {
        Self::of(&event.id, &event.name, event.input.as_str(), at)
    }

    fn of(id: &str, name: &str, input: &str, at: u64) -> Self {
        let call = shown(name, input);
        Self { id: id.to_owned(), text: call.progress(), is_command: call.is_command(), since: at }
    }

    /// A command with its prompt, anything else as it is.
    pub(super) fn shown(&self) -> String {
        if self.is_command { format!("$ {}", self.text) } else { self.text.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_says_where_it_stands_and_what_is_under_way() {
        let mut progress = Progress::new("m");
        progress.used.turns = 2;
        progress.used.commands = 2;
        progress.used.usage.input_tokens = 12_345;
        progress.used.cost_nano = Some(40_000_000);
        let call = Call { id: "t".into(), text: "ls\necho".into(), is_command: true, since: 0 };
        progress.calls.push(call);
        assert_eq!(progress.steps(), "turn 2 · 2 commands");
        assert_eq!(progress.spent(), "12.3k tokens · $0.04");
        assert_eq!(progress.words(0, &Waits::default()).unwrap(), "running: ls (+1 line)");
        progress.act = Act::Retry { until: 1_500, why: "overloaded".into() };
        assert_eq!(progress.words(0, &Waits::default()).unwrap(), "asking again in 2 s: overloaded");
        progress.act = Act::Asking;
        assert_eq!(progress.steps(), "turn 3 · 2 commands");
    }

    #[test]
    fn a_call_is_said_as_a_person_would_say_it() {
        let check = |name: &str, input: &str, expected: &str, is_command: bool| {
            let call = Call::of("t", name, input, 0);
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
