//! What a run came to: one value, from which the exit code, the summary on stderr and the JSON object are made. It
//! never makes a failure look like an answer.

use convoke_kernel::{AgentId, FailureKind, Outcome};
use convoke_runtime::{Ended, Error};

use super::clean::clean;
use super::figures::{count, dollars, tokens};
use super::look::{Look, Talk};
use super::progress::Progress;
use super::{json, jsonl};
use crate::again::Naming;
use crate::failure::{Exit, Failure};
use crate::settings::OutputFormat;
use crate::signals::Caught;
use crate::stdio::{self, tell};

/// Everything that is known when driving has ended.
pub(crate) struct End {
    pub(crate) agent: AgentId,
    pub(crate) result: Result<Ended, Error>,
    pub(crate) caught: Option<Caught>,
    pub(crate) progress: Progress,
    pub(crate) ended_at: u64,
    pub(crate) warnings: Vec<String>,
    /// What a resume has to say about the journal.
    pub(crate) journal: Naming,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Report {
    pub(super) agent: AgentId,
    pub(super) status: Status,
    pub(crate) exit: Exit,
    pub(super) reason: String,
    pub(super) answer: String,
    pub(super) failure: Option<String>,
    pub(super) progress: Progress,
    pub(super) ended_at: u64,
    pub(super) resume: Option<String>,
    pub(super) warnings: Vec<String>,
}

/// What a run came to, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It was answered.
    Done,
    /// There is an answer, and it is not whole.
    Partial,
    /// It failed.
    Failed,
    /// A signal stopped it.
    Interrupted,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Report {
    /// Judges how a run ended.
    pub(crate) fn new(end: End) -> Self {
        let End { agent, result, caught, mut progress, ended_at, warnings, journal } = end;
        // What came back and could not be recorded is paid for all the same.
        let summary = match &result {
            Ok(ended) => ended.summary.as_ref(),
            Err(Error::Unrecorded { summary, .. }) => summary.as_deref(),
            Err(_) => None,
        };
        if let Some(summary) = summary {
            progress = Progress::from_summary(summary);
        }
        let can_go_on = match &result {
            Ok(ended) => ended.outcome.is_none() || ended.summary.as_ref().is_some_and(|summary| summary.can_go_on),
            // Whatever went wrong here is not in the journal, so going on is worth a try.
            Err(_) => true,
        };
        let (status, exit, reason, answer, failure) = judge(result, caught);
        let run = progress.session.as_ref().map_or(agent.as_str(), |session| session.as_str());
        let resume = journal.resume(run).filter(|_| can_go_on && status != Status::Done);
        Self { agent, status, exit, reason, answer, failure, progress, ended_at, resume, warnings }
    }

    /// Puts the answer or the data on stdout and the rest on stderr.
    pub(crate) fn print(&self, look: Look) -> Result<Exit, Failure> {
        let out = match look.output {
            OutputFormat::Text if self.answer.trim().is_empty() => String::new(),
            OutputFormat::Text if look.answer_on_terminal => ended(clean(&self.answer)),
            OutputFormat::Text => ended(self.answer.clone()),
            OutputFormat::Json => ended(json::object(self).to_string()),
            OutputFormat::Jsonl => ended(jsonl::end_line(json::object(self))),
        };
        // On a terminal the answer stands among the talk, so it gets some room.
        let room = look.talk == Talk::Live && look.answer_on_terminal && !out.is_empty();
        let talk = if room { format!("\n{}", self.talk(look)) } else { self.talk(look) };
        if room {
            tell("\n");
        }
        let written = match look.output {
            OutputFormat::Text => stdio::put_more(&out),
            OutputFormat::Json | OutputFormat::Jsonl => stdio::put_json(&out),
        };
        tell(&talk);
        // A reader that has gone away has read enough.
        let in_journal = || format!("what the run came to is in the journal: `convoke runs show {}`", self.run());
        written.map(|_| self.exit).map_err(|failure| failure.hint(in_journal()))
    }

    fn run(&self) -> &str {
        self.progress.session.as_ref().map_or(self.agent.as_str(), |session| session.as_str())
    }

    fn talk(&self, look: Look) -> String {
        let mut lines = Vec::new();
        if let Some(message) = &self.failure {
            lines.push(look.fit(&format!("convoke: {}", clean(message).trim_end())));
        }
        if look.talk != Talk::Quiet {
            lines.push(look.dim(&look.fit(&self.summary())));
        }
        if let Some(resume) = &self.resume {
            lines.push(format!("resume: {resume}"));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn summary(&self) -> String {
        let Progress { usage, cost_nano, turns, commands, model, .. } = &self.progress;
        let status = match self.status {
            Status::Failed | Status::Partial => format!("{} ({})", self.status.word(), self.reason),
            Status::Done | Status::Interrupted => self.status.word().to_owned(),
        };
        let (turns, commands) = (count(*turns, "turn"), count(*commands, "command"));
        let read = tokens(usage.prompt_tokens());
        let (cached, written) = (tokens(usage.cache_read_tokens), tokens(usage.output_tokens));
        let cost = dollars(*cost_nano);
        format!(
            "{status} · {model} · {turns} · {commands} · {read} tokens in ({cached} from cache), {written} out · {cost} · {}",
            self.run()
        )
    }
}

type Judged = (Status, Exit, String, String, Option<String>);

fn judge(result: Result<Ended, Error>, caught: Option<Caught>) -> Judged {
    match (result, caught) {
        (Ok(Ended { outcome: Some(outcome), .. }), _) => judge_outcome(outcome),
        (Ok(Ended { outcome: None, .. }), Some(caught)) => {
            let message = format!("stopped by {}; everything up to here is recorded", caught.name());
            (Status::Interrupted, caught.exit(), caught.reason().to_owned(), String::new(), Some(message))
        }
        (Ok(Ended { outcome: None, .. }), None) => {
            let message = "the run ended without an outcome; this is a fault of convoke".to_owned();
            (Status::Failed, Exit::Failed, "internal".to_owned(), String::new(), Some(message))
        }
        (Err(error @ Error::Unrecorded { .. }), _) => {
            let message = error.to_string();
            let answer = match error {
                Error::Unrecorded { outcome: Some(outcome), .. } => outcome.text().to_owned(),
                Error::Unrecorded { text, .. } => text.unwrap_or_default(),
                _ => String::new(),
            };
            (Status::Failed, Exit::Failed, "journal".to_owned(), answer, Some(message))
        }
        (Err(error), _) => {
            let reason = if matches!(error, Error::Journal(_)) { "journal" } else { "internal" };
            (Status::Failed, Exit::Failed, reason.to_owned(), String::new(), Some(error.to_string()))
        }
    }
}

fn judge_outcome(outcome: Outcome) -> Judged {
    let status = if outcome.is_partial() { Status::Partial } else { Status::Failed };
    match outcome {
        Outcome::Ok { text } => (Status::Done, Exit::Done, "done".to_owned(), text, None),
        Outcome::Failed { kind, message, text } => {
            let exit = match kind {
                FailureKind::Budget => Exit::Budget,
                _ if status == Status::Partial => Exit::Partial,
                _ => Exit::Failed,
            };
            (status, exit, kind_word(kind), text, Some(message))
        }
    }
}

/// A kind of failure as programs read it.
pub(crate) fn kind_word(kind: FailureKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "internal".to_owned(),
    }
}

fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(kind: FailureKind, text: &str) -> Exit {
        let outcome = Outcome::Failed { kind, message: String::new(), text: text.to_owned() };
        judge(Ok(Ended { outcome: Some(outcome), summary: None }), None).1
    }

    #[test]
    fn an_exit_code_says_whether_there_is_something_to_read() {
        assert_eq!(exit(FailureKind::TurnLimit, "half"), Exit::Partial);
        assert_eq!(exit(FailureKind::TurnLimit, " "), Exit::Failed);
        assert_eq!(exit(FailureKind::Truncated, "half"), Exit::Partial);
        assert_eq!(exit(FailureKind::Budget, ""), Exit::Budget);
        assert_eq!(exit(FailureKind::Refused, "no"), Exit::Failed);
        assert_eq!(exit(FailureKind::Transport, ""), Exit::Failed);
    }

    #[test]
    fn a_signal_is_the_reason_only_while_there_is_no_outcome() {
        let done = Ended { outcome: Some(Outcome::Ok { text: "a".into() }), summary: None };
        assert_eq!(judge(Ok(done), Some(Caught::Interrupt)).1, Exit::Done);
        let open = || Ok(Ended { outcome: None, summary: None });
        assert_eq!(judge(open(), Some(Caught::Interrupt)).1, Exit::Interrupted);
        assert_eq!(judge(open(), Some(Caught::Terminate)).1, Exit::Terminated);
        assert_eq!(judge(open(), Some(Caught::HangUp)).1, Exit::HungUp);
    }

    #[test]
    fn a_kind_of_failure_is_written_as_events_write_it() {
        assert_eq!(kind_word(FailureKind::TurnLimit), "turn_limit");
        assert_eq!(kind_word(FailureKind::Api), "api");
        let outcome = Outcome::Failed { kind: FailureKind::TurnLimit, message: String::new(), text: String::new() };
        assert_eq!(judge(Ok(Ended { outcome: Some(outcome), summary: None }), None).2, "turn_limit");
    }
}
