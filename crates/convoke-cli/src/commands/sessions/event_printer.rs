//! Tells an agent's events to a person, one after the other. Everything from outside is cleaned; nothing is
//! left out, for `sessions show` is where a person looks when something went wrong.

use std::collections::HashMap;
use std::time::Duration;

use convoke_journal::Record;
use convoke_kernel::{Event, ModelReplied, Outcome, Purpose, Ran, ToolFinished, ToolStarted, shown};
use convoke_view::{Account, Step, kept_words, reply_figures};

use crate::render::{clean, seconds};
use crate::utc;

/// Tells events in order, remembering what the later ones refer to.
pub(super) struct EventPrinter {
    agent: String,
    called_at: u64,
    /// Calls of replies and when they were started, by id.
    calls: HashMap<String, (String, Option<u64>)>,
}

impl EventPrinter {
    /// A printer of this agent's events.
    pub(super) fn new(agent: &str) -> Self {
        Self { agent: agent.to_owned(), called_at: 0, calls: HashMap::new() }
    }

    /// One event as text; some add nothing to what the others say.
    pub(super) fn tell(&mut self, record: &Record) -> String {
        let at = record.at;
        match Event::decode(&record.event) {
            Ok(event) => self.event(at, &event),
            // An event of a newer version is shown as it stands.
            Err(error) => block(at, &format!("event {} ({error})", record.seq), &record.event),
        }
    }

    fn event(&mut self, at: u64, event: &Event) -> String {
        match Step::of(event) {
            Step::CallStarted(e) => return self.tool_started(at, e),
            Step::CallEnded(e) => return self.tool_finished(at, e),
            Step::Requested(_) => self.called_at = at,
            Step::Replied(e) => {
                for tool in &e.reply.calls {
                    let text = shown(&tool.name, tool.input.as_str()).record();
                    self.calls.insert(tool.id.clone(), (text, None));
                }
            }
            _ => {}
        }
        let Some(Account { title, body, .. }) = Account::of(event) else { return String::new() };
        match Step::of(event) {
            Step::Started(_) => {
                let agent = &self.agent;
                block(at, &format!("agent {agent} · {title}"), "") + &block(at, "system", &body)
            }
            Step::Opened(e) if e.letters.is_empty() => block(at, &format!("prompt {}", e.exchange), &body),
            Step::Opened(e) => block(at, &format!("prompt {}: {title}", e.exchange), &body),
            Step::CallMade(e) => block(at, &format!("call {}", e.exchange), &body),
            Step::Requested(e) => match (e.attempt, e.purpose) {
                (1, Purpose::Summary) => {
                    block(at, &format!("request {}: a summary for a new history", e.call), "")
                }
                (1, _) => block(at, &format!("request {}: {title}", e.call), ""),
                _ => block(at, &title, ""),
            },
            Step::Replied(e) => block(at, &self.reply_title(at, e), &body),
            Step::RequestFailed(e) => {
                let next = e
                    .retry_at
                    .map(|until| format!("; sent again at {}", utc::second(until)))
                    .unwrap_or_default();
                block(at, &format!("{title} after {}{next}", self.took(at)), &body)
            }
            Step::Asked(_) => block(at, "waits for a person's answer", &body),
            // The last reply has told the answer already.
            Step::Closed(e) => match &e.outcome {
                Outcome::Ok { .. } => block(at, &title, ""),
                Outcome::Failed { message, .. } => block(at, &title, message),
            },
            Step::Aside(Event::EndpointLearnt(e)) => match e.line() {
                Some(line) => block(at, "learnt about the server", &line),
                None => block(at, "told by others of the session what the server does not take", ""),
            },
            _ => block(at, &title, &body),
        }
    }

    fn reply_title(&self, at: u64, event: &ModelReplied) -> String {
        let ModelReplied { call, reply, kept } = event;
        let stop = String::from(reply.stop.clone());
        let figures = reply_figures(reply);
        format!("reply {call} · {} · {figures} · {stop}{}", self.took(at), kept_words(*kept))
    }

    fn tool_started(&mut self, at: u64, event: &ToolStarted) -> String {
        let text = shown(&event.name, event.input.as_str()).record();
        self.calls.insert(event.id.clone(), (text.clone(), Some(at)));
        block(at, "", &text)
    }

    fn tool_finished(&mut self, at: u64, event: &ToolFinished) -> String {
        let (request, started) = self.calls.remove(&event.id).unwrap_or_default();
        let result = &event.result;
        let took = started.map(|start| format!(" after {}", span(start, at))).unwrap_or_default();
        let title = match (result.ran, result.exit_code) {
            (Ran::Done, Some(code)) => format!("exit code {code}{took}"),
            (Ran::Done, None) if result.is_error => format!("failed{took}"),
            (Ran::Done, None) => format!("done{took}"),
            (Ran::Interrupted, _) => format!("interrupted{took}, outcome unknown"),
            (Ran::Refused, _) => format!("refused: {request}"),
        };
        let full =
            result.full_output.as_ref().map(|path| format!("\nfull output: {path}")).unwrap_or_default();
        block(at, &title, &format!("{}{full}", result.text))
    }

    fn took(&self, at: u64) -> String {
        span(self.called_at, at)
    }
}

fn span(from: u64, to: u64) -> String {
    seconds(Duration::from_millis(to.saturating_sub(from)))
}

/// A title with its time, and the text below it, indented so that one is not taken for the other.
fn block(at: u64, title: &str, body: &str) -> String {
    let mut text = format!("\n{}", utc::second(at));
    for line in clean(title).lines().filter(|line| !line.is_empty()) {
        text.push(' ');
        text.push_str(line);
    }
    text.push('\n');
    for line in clean(body.trim_end()).lines() {
        text.push_str(format!("    {line}").trim_end());
        text.push('\n');
    }
    text
}
