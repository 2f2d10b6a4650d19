//! Where a lead stands, folded from its own events for the eye. The kernel's state is the truth; this is a picture of it.
//! What the agents below it do stands in the tree.

use convoke_kernel::{Event, Kept, NOBODY_TO_ASK, Ran, SessionId, Summary, ToolStarted, Usage};

use convoke_terminal::{Waits, count, dollars, tokens};
use convoke_terminal::{first_line, revealed};

/// A command or a reason takes at most this much of a progress line.
const SHORT: usize = 60;

/// Where a lead stands.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) session: Option<SessionId>,
    pub(crate) model: String,
    pub(crate) started_at: u64,
    pub(crate) turns: u32,
    pub(crate) commands: u32,
    pub(crate) usage: Usage,
    pub(crate) cost_nano: Option<u64>,
    pub(crate) doing: Doing,
    /// The calls under way, the latest last: commands run one at a time, agents do not.
    calls: Vec<Call>,
    /// What the last reply wanted to have done, whether or not it was begun.
    wanted: Vec<Call>,
    /// Calls of all agents that were refused because nobody could be asked about them.
    pub(crate) unasked: u32,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Nothing.
    Nothing,
    /// The model is asked.
    Asking,
    /// A call runs.
    Running(Call),
    /// The next attempt is waited for.
    Waiting { until: u64, why: String },
    /// A person has to agree to this first.
    Asked { what: String },
}

impl Progress {
    /// A run of which nothing is known yet.
    pub(crate) fn new(model: &str) -> Self {
        Self {
            session: None,
            model: model.to_owned(),
            started_at: 0,
            turns: 0,
            commands: 0,
            usage: Usage::default(),
            cost_nano: Some(0),
            doing: Doing::Nothing,
            calls: Vec::new(),
            wanted: Vec::new(),
            unasked: 0,
        }
    }

    /// A run that is taken up again.
    pub(crate) fn from_summary(summary: &Summary) -> Self {
        Self {
            session: Some(summary.session.clone()),
            model: summary.model.clone(),
            started_at: summary.started_at,
            turns: summary.turns,
            commands: summary.commands,
            usage: summary.usage,
            cost_nano: summary.cost_nano,
            doing: Doing::Nothing,
            calls: Vec::new(),
            wanted: Vec::new(),
            unasked: 0,
        }
    }

    /// Folds an event.
    pub(crate) fn apply(&mut self, at: u64, event: &Event) {
        match event {
            Event::AgentStarted(e) => {
                self.session = Some(e.spec.session.clone());
                self.model = e.spec.model.clone();
                self.started_at = at;
            }
            Event::Retuned(e) => self.model.clone_from(&e.model),
            Event::ModelCalled(_) => self.doing = Doing::Asking,
            Event::ModelReplied(e) => {
                self.turns += u32::from(e.kept == Kept::Yes);
                let calls = e.reply.calls.iter();
                self.wanted = calls.map(|call| Call::of(&call.id, &call.name, call.input.as_str(), at)).collect();
                self.usage.add(&e.reply.usage);
                self.cost_nano = self.cost_nano.zip(e.reply.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
                self.doing = Doing::Nothing;
            }
            Event::ModelFailed(e) => {
                self.doing = match e.retry_at {
                    Some(until) => Doing::Waiting { until, why: first_line(&e.failure.message, SHORT) },
                    None => Doing::Nothing,
                };
            }
            Event::ToolStarted(e) => {
                let call = Call::new(e, at);
                self.commands += u32::from(call.is_command);
                self.calls.push(call);
                self.doing = self.running();
            }
            Event::ApprovalAsked(e) => self.doing = Doing::Asked { what: first_line(&revealed(&e.what), SHORT) },
            Event::ApprovalGiven(_) => self.doing = self.running(),
            Event::ToolFinished(e) => {
                self.count(event);
                self.calls.retain(|call| call.id != e.id);
                self.doing = self.running();
            }
            Event::ExchangeClosed(_) => {
                self.calls.clear();
                self.doing = Doing::Nothing;
            }
            Event::ModeSet(_)
            | Event::RoomRefused(_)
            | Event::ExchangeOpened(_)
            | Event::ExchangeReopened(_)
            | Event::CallMade(_)
            | Event::NoteAppended(_)
            | Event::MailDelivered(_)
            | Event::CompactionAsked(_)
            | Event::HistoryCompacted(_)
            | Event::HistoryForked(_)
            | Event::ExchangeStopped(_)
            | Event::InputRejected(_)
            | Event::ResultsAppended(_)
            | Event::Resumed(_) => {}
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
        let turn = self.turns + u32::from(self.doing == Doing::Asking);
        format!("turn {} · {}", turn.max(1), count(self.commands, "command"))
    }

    /// `12.3k tokens · $0.04`: what the lead has spent.
    pub(crate) fn spent(&self) -> String {
        let all = self.usage.prompt_tokens().saturating_add(self.usage.output_tokens);
        format!("{} tokens · {}", tokens(all), dollars(self.cost_nano))
    }

    /// What is under way at this time, in a few words.
    pub(crate) fn words(&self, now: u64, waits: &Waits) -> Option<String> {
        match &self.doing {
            Doing::Nothing => None,
            Doing::Asking => Some("the model is answering".to_owned()),
            Doing::Running(call) if call.is_command => Some(format!("running: {}", first_line(&call.text, SHORT))),
            Doing::Running(call) => Some(first_line(&call.text, SHORT)),
            Doing::Waiting { until, why } => Some(format!("asking again {}: {why}", waits.when(*until, now))),
            Doing::Asked { what } => Some(format!("waits for your answer ({what})")),
        }
    }

    /// Whether what is under way is a call that a person made.
    pub(crate) fn is_by_person(&self) -> bool {
        matches!(&self.doing, Doing::Running(call) if call.id.starts_with("person_"))
    }

    /// What a stop has to wait for.
    pub(crate) fn under_way(&self) -> Option<&'static str> {
        match self.doing {
            Doing::Asking => Some("the reply under way"),
            Doing::Running(_) => Some("the command under way"),
            Doing::Nothing | Doing::Waiting { .. } | Doing::Asked { .. } => None,
        }
    }

    fn running(&self) -> Doing {
        self.calls.last().cloned().map_or(Doing::Nothing, Doing::Running)
    }
}

impl Call {
    /// A call that begins now.
    pub(super) fn new(event: &ToolStarted, at: u64) -> Self {
        Self::of(&event.id, &event.name, event.input.as_str(), at)
    }

    fn of(id: &str, name: &str, input: &str, at: u64) -> Self {
        let (text, is_command) = said(name, input);
        Self { id: id.to_owned(), text, is_command, since: at }
    }

    /// A command with its prompt, anything else as it is.
    pub(super) fn shown(&self) -> String {
        if self.is_command { format!("$ {}", self.text) } else { self.text.clone() }
    }
}

/// What a tool call does, as a person would say it, and whether that is a command.
fn said(name: &str, input: &str) -> (String, bool) {
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    let text = |member: &str| input.get(member).and_then(|value| value.as_str());
    match (name, text("command")) {
        ("bash", Some(command)) => (command.to_owned(), true),
        ("bash", None) if input.get("restart").is_some() => ("(restart the shell)".to_owned(), true),
        ("Workflow", _) => match input.get("subtasks").and_then(|subtasks| subtasks.as_array()) {
            Some(subtasks) => {
                let many = u32::try_from(subtasks.len()).unwrap_or(u32::MAX);
                (format!("Workflow of {}", count(many, "subtask")), false)
            }
            // Subtasks come in other shapes too, and the workflow itself says how many there are.
            None => match text("name").or(text("scriptPath")) {
                Some(name) => (format!("Workflow {name}"), false),
                None => ("Workflow".to_owned(), false),
            },
        },
        ("task", _) => (format!("task: {}", text("prompt").unwrap_or_default()), false),
        ("read_result", _) => {
            let item = input.get("item").map(|item| format!(", item {item}")).unwrap_or_default();
            (format!("read_result: {}{item}", text("run").unwrap_or_default()), false)
        }
        (name, _) => (format!("{name} {input}"), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_says_where_it_stands_and_what_is_under_way() {
        let mut progress = Progress::new("m");
        progress.turns = 2;
        progress.commands = 2;
        progress.usage.input_tokens = 12_345;
        progress.cost_nano = Some(40_000_000);
        let call = Call { id: "t".into(), text: "ls\necho".into(), is_command: true, since: 0 };
        progress.doing = Doing::Running(call);
        assert_eq!(progress.steps(), "turn 2 · 2 commands");
        assert_eq!(progress.spent(), "12.3k tokens · $0.04");
        assert_eq!(progress.words(0, &Waits::default()).unwrap(), "running: ls (+1 line)");
        progress.doing = Doing::Waiting { until: 1_500, why: "overloaded".into() };
        assert_eq!(progress.words(0, &Waits::default()).unwrap(), "asking again in 2 s: overloaded");
        progress.doing = Doing::Asking;
        assert_eq!(progress.steps(), "turn 3 · 2 commands");
    }

    #[test]
    fn a_call_is_said_as_a_person_would_say_it() {
        let check = |name: &str, input: &str, expected: &str, is_command: bool| {
            assert_eq!(said(name, input), (expected.to_owned(), is_command), "{name} {input}");
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
