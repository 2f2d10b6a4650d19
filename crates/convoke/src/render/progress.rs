//! Where a run stands, folded from its events for the eye. The kernel's own state is the truth; this is a picture of it.

use std::time::Duration;

use convoke_kernel::{Event, Kept, SessionId, Summary, Usage};

use super::clean::first_line;
use super::figures::{count, dollars, tokens};

/// A command or a reason takes at most this much of a progress line.
const SHORT: usize = 60;

/// Where a run stands.
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
}

/// What is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Nothing.
    Nothing,
    /// The model is asked.
    Asking,
    /// A command runs.
    Running { command: String, since: u64 },
    /// The next attempt is waited for.
    Waiting { until: u64, why: String },
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
            Event::ModelCalled(_) => self.doing = Doing::Asking,
            Event::ModelReplied(e) => {
                self.turns += u32::from(e.kept == Kept::Yes);
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
                self.commands += 1;
                self.doing = Doing::Running { command: command(e.input.as_str()), since: at };
            }
            Event::ToolFinished(_) | Event::ExchangeClosed(_) => self.doing = Doing::Nothing,
            Event::ExchangeOpened(_)
            | Event::ExchangeReopened(_)
            | Event::NoteAppended(_)
            | Event::ResultsAppended(_)
            | Event::Resumed(_) => {}
        }
    }

    /// `turn 3 · 2 commands · 12.3k tokens · $0.04`.
    pub(crate) fn figures(&self) -> String {
        let turn = self.turns + u32::from(self.doing == Doing::Asking);
        let all = self.usage.prompt_tokens() + self.usage.output_tokens;
        let (commands, tokens, dollars) = (count(self.commands, "command"), tokens(all), dollars(self.cost_nano));
        format!("turn {} · {commands} · {tokens} tokens · {dollars}", turn.max(1))
    }

    /// The figures and what is under way at this time.
    pub(crate) fn line(&self, now: u64) -> String {
        let figures = self.figures();
        match &self.doing {
            Doing::Nothing => figures,
            Doing::Asking => format!("{figures} · the model is answering"),
            Doing::Running { command, .. } => format!("{figures} · running: {}", first_line(command, SHORT)),
            Doing::Waiting { until, why } => {
                let left = Duration::from_millis(until.saturating_sub(now)).as_secs_f64().ceil();
                format!("{figures} · asking again in {left} s: {why}")
            }
        }
    }

    /// What a stop has to wait for.
    pub(crate) fn under_way(&self) -> Option<&'static str> {
        match self.doing {
            Doing::Asking => Some("the reply under way"),
            Doing::Running { .. } => Some("the command under way"),
            Doing::Nothing | Doing::Waiting { .. } => None,
        }
    }
}

/// What a tool call does, as a person would type it.
pub(super) fn command(input: &str) -> String {
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    match input.get("command").and_then(|command| command.as_str()) {
        Some(command) => command.to_owned(),
        None if input.get("restart").is_some() => "(restart the shell)".to_owned(),
        None => input.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_says_what_is_under_way() {
        let mut progress = Progress::new("m");
        progress.turns = 2;
        progress.commands = 2;
        progress.usage.input_tokens = 12_345;
        progress.cost_nano = Some(40_000_000);
        progress.doing = Doing::Running { command: "ls\necho".into(), since: 0 };
        assert_eq!(progress.line(0), "turn 2 · 2 commands · 12.3k tokens · $0.04 · running: ls (+1 line)");
        progress.doing = Doing::Waiting { until: 1_500, why: "overloaded".into() };
        assert!(progress.line(0).ends_with("asking again in 2 s: overloaded"));
        progress.doing = Doing::Asking;
        assert!(progress.line(0).starts_with("turn 3 ·"));
    }

    #[test]
    fn a_call_is_shown_as_its_command() {
        assert_eq!(command(r#"{"command":"ls -l"}"#), "ls -l");
        assert_eq!(command(r#"{"restart":true}"#), "(restart the shell)");
        assert_eq!(command(r#"{"odd":1}"#), r#"{"odd":1}"#);
    }
}
