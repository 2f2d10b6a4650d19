//! What an event of an agent means for a reader: which step of its work it is, and what an account of it says
//! in full. This is the one file that knows every kind of event. Rows, pages, the conversation and the record
//! of a session ask it, so that a new kind of event is thought of here, and nowhere by another rule.

use convoke_kernel::{
    AgentStarted, ApprovalAsked, ApprovalGiven, CallMade, EndpointLearnt, Event, ExchangeClosed,
    ExchangeOpened, Kept, Letter, ModelCalled, ModelFailed, ModelReplied, Outcome, Purpose, Reply, Resumed,
    Retuned, ToolFinished, ToolStarted,
};

use crate::text::{blocks_text, dollars, kind_word, message_text, revealed, tokens};

/// A step of an agent's work.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// It was made.
    Started(&'a AgentStarted),
    /// An exchange begins, with words or letters.
    Opened(&'a ExchangeOpened),
    /// An exchange begins with a call that a person made.
    CallMade(&'a CallMade),
    /// An exchange that was stopped goes on.
    Reopened,
    /// The model is asked.
    Requested(&'a ModelCalled),
    /// The model has answered.
    Replied(&'a ModelReplied),
    /// A request failed.
    RequestFailed(&'a ModelFailed),
    /// A person is asked whether a call may run.
    Asked(&'a ApprovalAsked),
    /// The person has answered.
    Answered(&'a ApprovalGiven),
    /// A call runs.
    CallStarted(&'a ToolStarted),
    /// A call has its outcome.
    CallEnded(&'a ToolFinished),
    /// A process drives it again.
    Resumed(&'a Resumed),
    /// An exchange has ended.
    Closed(&'a ExchangeClosed),
    /// Something that is no step: it says something about the agent, but neither begins work nor ends it.
    Aside(&'a Event),
}

impl<'a> Step<'a> {
    /// The step that this event is.
    pub fn of(event: &'a Event) -> Self {
        match event {
            Event::AgentStarted(e) => Self::Started(e),
            Event::ExchangeOpened(e) => Self::Opened(e),
            Event::CallMade(e) => Self::CallMade(e),
            Event::ExchangeReopened(_) => Self::Reopened,
            Event::ModelCalled(e) => Self::Requested(e),
            Event::ModelReplied(e) => Self::Replied(e),
            Event::ModelFailed(e) => Self::RequestFailed(e),
            Event::ApprovalAsked(e) => Self::Asked(e),
            Event::ApprovalGiven(e) => Self::Answered(e),
            Event::ToolStarted(e) => Self::CallStarted(e),
            Event::ToolFinished(e) => Self::CallEnded(e),
            Event::Resumed(e) => Self::Resumed(e),
            Event::ExchangeClosed(e) => Self::Closed(e),
            Event::ModeSet(_)
            | Event::RoomRefused(_)
            | Event::ExchangeStopped(_)
            | Event::NoteAppended(_)
            | Event::MailDelivered(_)
            | Event::CompactionAsked(_)
            | Event::HistoryCompacted(_)
            | Event::HistoryForked(_)
            | Event::Retuned(_)
            | Event::EndpointLearnt(_)
            | Event::InputRejected(_)
            | Event::ResultsAppended(_) => Self::Aside(event),
        }
    }
}

/// What an entry of an account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// What it was asked.
    Prompt,
    /// What it wrote.
    Text,
    /// A call, with what it came to once it has.
    Call,
    /// Letters.
    Mail,
    /// A question to a person.
    Question,
    /// Something went wrong.
    Failure,
    /// Something else that happened.
    Note,
    /// How it ended.
    End,
}

/// What an account of an agent says of an event: foreign text, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// What it is.
    pub kind: EntryKind,
    /// What happened, in a line.
    pub title: String,
    /// All that is said beside it, with lines.
    pub body: String,
}

impl Account {
    /// What is said of this event in every account that leaves nothing out. `None` where other events say
    /// enough, or where it takes more than this event: what a call came to is told with the call.
    pub fn of(event: &Event) -> Option<Self> {
        let told = |kind, title: String, body: String| Some(Self { kind, title, body });
        let note = |title: String, body: &str| told(EntryKind::Note, title, body.to_owned());
        match event {
            Event::AgentStarted(e) => {
                let model = &e.spec.model;
                let effort = effort(e.spec.capabilities.effort.as_deref());
                let turns = e.spec.limits.max_turns;
                note(format!("{model}{effort} · at most {turns} turns"), &blocks_text(e.spec.system.as_str()))
            }
            Event::ExchangeOpened(e) if e.letters.is_empty() => {
                told(EntryKind::Prompt, e.text.clone(), e.text.clone())
            }
            Event::ExchangeOpened(e) => told(EntryKind::Mail, mail_from(&e.letters), e.text.clone()),
            Event::MailDelivered(e) => {
                told(EntryKind::Mail, mail_from(&e.letters), message_text(e.message.as_str()))
            }
            Event::CallMade(e) => told(EntryKind::Prompt, e.text.clone(), e.text.clone()),
            Event::ExchangeReopened(e) => note(format!("exchange {} goes on", e.exchange), ""),
            Event::ExchangeStopped(e) => note(format!("stopped by {}", e.by), ""),
            Event::ModelCalled(e) => match (e.attempt, e.purpose) {
                (1, Purpose::Turn) => None,
                (1, Purpose::HandBack) => note("the agent is to hand back what it has".to_owned(), ""),
                (1, Purpose::Summary) => note("a summary for a new history is asked for".to_owned(), ""),
                (attempt, _) => note(format!("request {} again, attempt {attempt}", e.call), ""),
            },
            Event::ModelReplied(ModelReplied { call, reply, .. }) => {
                let silent = reply.text.trim().is_empty();
                let title = if silent { format!("reply {call}") } else { reply.text.clone() };
                let detail = reply.stop_detail.as_ref().map(|detail| format!("\n{detail}"));
                told(EntryKind::Text, title, format!("{}{}", reply.text, detail.unwrap_or_default()))
            }
            Event::ModelFailed(ModelFailed { call, attempt, failure, .. }) => {
                let kind = kind_word(failure.kind);
                let id = failure.request_id.as_ref().map(|id| format!("\nrequest id {id}"));
                let body = format!("{}{}", failure.message, id.unwrap_or_default());
                told(EntryKind::Failure, format!("request {call}, attempt {attempt} failed ({kind})"), body)
            }
            Event::RoomRefused(e) => {
                let title = "no room for another request".to_owned();
                told(EntryKind::Failure, title, e.failure.message.clone())
            }
            Event::NoteAppended(e) => note("note to the agent".to_owned(), &message_text(e.message.as_str())),
            Event::ApprovalAsked(e) => {
                let whole = revealed(&format!("{}\nbecause {}", e.what, e.why));
                told(EntryKind::Question, revealed(&e.what), whole)
            }
            Event::ApprovalGiven(e) => {
                note(format!("{} by {}", if e.allow { "allowed" } else { "refused" }, e.by), "")
            }
            Event::ToolStarted(_) | Event::ToolFinished(_) => None,
            Event::ResultsAppended(e) => match (e.hand_back, e.stuck) {
                (true, true) => note("goes in circles: one turn is left to hand back".to_owned(), ""),
                (true, false) => note("turn limit reached: one turn is left to hand back".to_owned(), ""),
                (false, true) => note("told that it makes the same call again and again".to_owned(), ""),
                (false, false) => None,
            },
            Event::ModeSet(e) => note(format!("orchestration mode {}", if e.on { "on" } else { "off" }), ""),
            Event::CompactionAsked(e) => note("a new history is asked for".to_owned(), &e.focus),
            Event::HistoryCompacted(e) => {
                note(format!("new history; {} tokens were left behind", tokens(e.tokens)), &e.summary)
            }
            Event::HistoryForked(e) => {
                let of = format!("begins with the history of {} up to exchange {}", e.session, e.exchange);
                note(of, &e.task)
            }
            Event::Retuned(e) => note(retuned(e), ""),
            Event::EndpointLearnt(e) => note(learnt(e), &e.said),
            Event::InputRejected(e) => {
                told(EntryKind::Failure, format!("set aside: {}", e.input), e.why.clone())
            }
            Event::Resumed(e) if e.changed.is_empty() => note("resumed".to_owned(), ""),
            Event::Resumed(e) => note("resumed; changed meanwhile:".to_owned(), &e.changed.join("\n")),
            Event::ExchangeClosed(e) => match &e.outcome {
                Outcome::Ok { text } => {
                    let why = e.degraded.as_deref().unwrap_or_default();
                    told(EntryKind::End, "answered".to_owned(), apart(why, text))
                }
                Outcome::Failed { kind, message, text } => {
                    let back =
                        if e.taken_back { "; the prompt was taken back and can be given again" } else { "" };
                    let title = format!("failed ({}){back}", kind_word(*kind));
                    told(EntryKind::End, title, apart(message, text))
                }
            },
        }
    }
}

/// What a reply used: `12.3k in (10.0k from cache), 1.2k out · $0.04`.
pub fn reply_figures(reply: &Reply) -> String {
    let usage = &reply.usage;
    format!(
        "{} in ({} from cache), {} out · {}",
        tokens(usage.prompt_tokens()),
        tokens(usage.cache_read_tokens),
        tokens(usage.output_tokens),
        dollars(reply.cost_nano),
    )
}

/// What became of a reply that is no turn of the conversation, to be put behind its figures; empty for one
/// that is.
pub fn kept_words(kept: Kept) -> &'static str {
    match kept {
        Kept::Yes => "",
        Kept::Cut => " · not kept: cut at max_tokens",
        Kept::Empty => " · not kept: empty",
        Kept::Refused => " · not kept: refused",
        Kept::WindowFull => " · not kept: the window was full",
        Kept::Unusable => " · not kept: its tool calls reuse ids",
        Kept::Summary => " · the summary of a new history",
    }
}

/// The senders of letters, each once.
pub(crate) fn senders(letters: &[Letter]) -> String {
    let mut names: Vec<&str> = letters.iter().map(|letter| letter.from.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn mail_from(letters: &[Letter]) -> String {
    format!("mail from {}", senders(letters))
}

fn effort(effort: Option<&str>) -> String {
    effort.map(|effort| format!(" · effort {effort}")).unwrap_or_default()
}

fn retuned(event: &Retuned) -> String {
    format!("from now on: {}{}", event.model, effort(event.capabilities.effort.as_deref()))
}

fn learnt(event: &EndpointLearnt) -> String {
    let heard = || "others of the session have told it what the server does not take".to_owned();
    event.line().unwrap_or_else(heard)
}

/// What was said of an end, and what was answered, with a blank line between them.
fn apart(said: &str, answer: &str) -> String {
    let parts = [said, answer].into_iter().map(str::trim_end).filter(|part| !part.trim().is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}
