//! Tells an agent's events to a person, one after the other. Everything from outside is cleaned; nothing is
//! left out, for `sessions show` is where a person looks when something went wrong.

use std::collections::HashMap;
use std::time::Duration;

use convoke_journal::Record;
use convoke_kernel::{
    AgentSpec, Event, Kept, Letter, ModelFailed, ModelReplied, Outcome, Purpose, Ran, ToolFinished,
    ToolStarted, shown,
};
use convoke_view::{blocks_text, message_text};

use crate::render::{clean, dollars, kind_word, revealed, seconds, tokens};
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
        match event {
            Event::AgentStarted(e) => self.started(at, &e.spec),
            Event::ExchangeOpened(e) if e.letters.is_empty() => {
                block(at, &format!("prompt {}", e.exchange), &e.text)
            }
            Event::ExchangeOpened(e) => {
                block(at, &format!("prompt {}: mail from {}", e.exchange, senders(&e.letters)), &e.text)
            }
            Event::MailDelivered(e) => {
                block(at, &format!("mail from {}", senders(&e.letters)), &message_text(e.message.as_str()))
            }
            Event::CompactionAsked(e) => block(at, "a new history is asked for", &e.focus),
            Event::HistoryCompacted(e) => {
                block(at, &format!("new history; {} tokens were left behind", tokens(e.tokens)), &e.summary)
            }
            Event::HistoryForked(e) => {
                let of = format!("begins with the history of {} up to exchange {}", e.session, e.exchange);
                block(at, &of, &e.task)
            }
            Event::ExchangeStopped(e) => block(at, &format!("stopped by {}", e.by), ""),
            Event::Retuned(e) => {
                let effort = e
                    .capabilities
                    .effort
                    .as_ref()
                    .map(|effort| format!(" · effort {effort}"))
                    .unwrap_or_default();
                block(at, &format!("from now on: {}{effort}", e.model), "")
            }
            Event::EndpointLearnt(e) => match e.line() {
                Some(line) => block(at, "learnt about the server", &line),
                None => block(at, "told by others of the session what the server does not take", ""),
            },
            Event::InputRejected(e) => block(at, &format!("set aside: {}", e.input), &e.why),
            Event::CallMade(e) => block(at, &format!("call {}", e.exchange), &e.text),
            Event::ExchangeReopened(e) => block(at, &format!("exchange {} goes on", e.exchange), ""),
            Event::ModelCalled(e) => {
                self.called_at = at;
                match (e.attempt, e.purpose) {
                    (1, Purpose::Turn) => String::new(),
                    (1, Purpose::HandBack) => {
                        block(at, &format!("request {}: the agent is to hand back what it has", e.call), "")
                    }
                    (1, Purpose::Summary) => {
                        block(at, &format!("request {}: a summary for a new history", e.call), "")
                    }
                    (attempt, _) => block(at, &format!("request {} again, attempt {attempt}", e.call), ""),
                }
            }
            Event::ModelReplied(e) => self.replied(at, e),
            Event::ModelFailed(e) => self.failed(at, e),
            Event::NoteAppended(e) => block(at, "note to the agent", &message_text(e.message.as_str())),
            Event::ApprovalAsked(e) => {
                block(at, "waits for a person's answer", &revealed(&format!("{}\nbecause {}", e.what, e.why)))
            }
            Event::ApprovalGiven(e) => {
                block(at, &format!("{} by {}", if e.allow { "allowed" } else { "refused" }, e.by), "")
            }
            Event::ToolStarted(e) => self.tool_started(at, e),
            Event::ToolFinished(e) => self.tool_finished(at, e),
            Event::ResultsAppended(e) => match (e.hand_back, e.stuck) {
                (true, true) => block(at, "goes in circles: one turn is left to hand back", ""),
                (true, false) => block(at, "turn limit reached: one turn is left to hand back", ""),
                (false, true) => block(at, "told that it makes the same call again and again", ""),
                (false, false) => String::new(),
            },
            Event::ModeSet(e) => {
                block(at, &format!("orchestration mode {}", if e.on { "on" } else { "off" }), "")
            }
            Event::RoomRefused(e) => block(at, "no room for another request", &e.failure.message),
            Event::ExchangeClosed(e) => match &e.outcome {
                Outcome::Ok { .. } => block(at, "answered", ""),
                Outcome::Failed { kind, message, .. } => {
                    let back =
                        if e.taken_back { "; the prompt was taken back and can be given again" } else { "" };
                    block(at, &format!("failed ({}){back}", kind_word(*kind)), message)
                }
            },
            Event::Resumed(e) if e.changed.is_empty() => block(at, "resumed", ""),
            Event::Resumed(e) => block(at, "resumed; changed meanwhile:", &e.changed.join("\n")),
        }
    }

    fn started(&self, at: u64, spec: &AgentSpec) -> String {
        let effort =
            spec.capabilities.effort.as_ref().map(|effort| format!(" · effort {effort}")).unwrap_or_default();
        let agent = &self.agent;
        let model = &spec.model;
        let turns = spec.limits.max_turns;
        let title = format!("agent {agent} · {model}{effort} · at most {turns} turns");
        block(at, &title, "") + &block(at, "system", &blocks_text(spec.system.as_str()))
    }

    fn replied(&mut self, at: u64, event: &ModelReplied) -> String {
        let ModelReplied { call, reply, kept } = event;
        for tool in &reply.calls {
            self.calls.insert(tool.id.clone(), (shown(&tool.name, tool.input.as_str()).record(), None));
        }
        let usage = &reply.usage;
        let stop = String::from(reply.stop.clone());
        let dropped = match kept {
            Kept::Yes => "",
            Kept::Cut => " · not kept: cut at max_tokens",
            Kept::Empty => " · not kept: empty",
            Kept::Refused => " · not kept: refused",
            Kept::WindowFull => " · not kept: the window was full",
            Kept::Unusable => " · not kept: its tool calls reuse ids",
            Kept::Summary => " · the summary of a new history",
        };
        let title = format!(
            "reply {call} · {} · {} in ({} from cache), {} out · {} · {}{dropped}",
            self.took(at),
            tokens(usage.prompt_tokens()),
            tokens(usage.cache_read_tokens),
            tokens(usage.output_tokens),
            dollars(reply.cost_nano),
            stop,
        );
        let detail = reply.stop_detail.as_deref().unwrap_or_default();
        let body = if detail.is_empty() { reply.text.clone() } else { format!("{}\n{detail}", reply.text) };
        block(at, &title, &body)
    }

    fn failed(&self, at: u64, event: &ModelFailed) -> String {
        let ModelFailed { call, attempt, failure, retry_at } = event;
        let next = match retry_at {
            Some(until) => format!("; sent again at {}", utc::second(*until)),
            None => String::new(),
        };
        let kind = kind_word(failure.kind);
        let title =
            format!("request {call}, attempt {attempt} failed ({kind}) after {}{next}", self.took(at));
        let id = failure.request_id.as_ref().map(|id| format!("\nrequest id {id}")).unwrap_or_default();
        block(at, &title, &format!("{}{id}", failure.message))
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

/// The senders of letters, each once.
fn senders(letters: &[Letter]) -> String {
    let mut names: Vec<&str> = letters.iter().map(|letter| letter.from.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
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
