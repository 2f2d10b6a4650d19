//! What has happened to a lead in words, and what to do next where something went wrong. Pure.

use convoke_kernel::{
    Event, FailureKind, Kept, Letter, LetterKind, NoteAppended, Resumed, Retuned, TAKEN_BACK,
};
use unicode_segmentation::UnicodeSegmentation;

use super::block::Block;
use crate::text::{count, shown, tokens};

/// How much of a letter is shown.
const MOST_LETTER: usize = 200;
/// How much of a reason is shown.
const MOST_WHY: usize = 300;
/// How many files are named.
const MOST_FILES: usize = 5;

/// The first line with something on it, harmless and cut to this many characters; says how many lines follow.
pub(super) fn brief(text: &str, most: usize) -> String {
    let safe = shown(text);
    let mut lines = safe.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut kept: String = first.graphemes(true).take(most).collect();
    if kept.len() < first.len() {
        kept.push('…');
    }
    match lines.count() {
        0 => kept,
        1 => format!("{kept} (+1 line)"),
        more => format!("{kept} (+{more} lines)"),
    }
}

/// Letters, a line each.
pub(super) fn mail(letters: &[Letter]) -> Block {
    let line = |letter: &Letter| {
        let what = match letter.kind {
            LetterKind::Message | LetterKind::Broadcast => "writes",
            LetterKind::Result => "reports",
            LetterKind::Failed => "has failed",
            LetterKind::ShutdownRequest => "asks it to stop",
            LetterKind::ShutdownAnswer => "answers",
            LetterKind::PlanRequest => "hands in a plan",
            LetterKind::PlanAnswer => "answers about a plan",
            LetterKind::Notice => "says",
        };
        format!("{} {what}: {}", brief(&letter.from, 40), brief(&letter.text, MOST_LETTER))
    };
    Block::Mail(letters.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// What is worth a line by itself.
pub(super) fn happened(event: &Event) -> Option<Block> {
    let note = match event {
        Event::MailDelivered(e) => return Some(mail(&e.letters)),
        Event::InputRejected(e) if e.why == TAKEN_BACK => format!("taken back: {}", brief(&e.body, MOST_WHY)),
        Event::InputRejected(e) => {
            let what =
                format!("something that waited for the lead could not be read: {}", brief(&e.why, MOST_WHY));
            return Some(Block::Failed(format!("{what}\nit is kept in the journal; send it again")));
        }
        Event::ModeSet(e) => format!("orchestration mode is {}", if e.on { "on" } else { "off" }),
        Event::Retuned(e) => retuned(e),
        Event::EndpointLearnt(e) => e.line()?,
        Event::HistoryCompacted(e) => {
            format!("a new history begins with a summary; {} tokens were left behind", tokens(e.tokens))
        }
        Event::HistoryForked(e) => format!(
            "begins with the history of {} up to exchange {} ({} tokens): {}",
            e.session,
            e.exchange,
            tokens(e.tokens),
            brief(&e.task, 80)
        ),
        Event::NoteAppended(e) => return handed_back(e),
        _ => return None,
    };
    Some(Block::Note(note))
}

fn retuned(event: &Retuned) -> String {
    match &event.capabilities.effort {
        Some(effort) => format!("the model is {} from now on, with effort {effort}", event.model),
        None => format!("the model is {} from now on", event.model),
    }
}

fn handed_back(event: &NoteAppended) -> Option<Block> {
    let why = event.short.as_ref().map(|short| format!(": {}", brief(short, MOST_WHY))).unwrap_or_default();
    event.hand_back.then(|| Block::Note(format!("the lead is asked to hand back what it has{why}")))
}

/// Which files changed while no session was at work.
pub(super) fn resumed(event: &Resumed) -> Option<Block> {
    let named: Vec<String> = event.changed.iter().take(MOST_FILES).map(|path| brief(path, 80)).collect();
    let more = match event.changed.len().saturating_sub(MOST_FILES) {
        0 => String::new(),
        more => format!(" and {}", count(u32::try_from(more).unwrap_or(u32::MAX), "more file")),
    };
    let note = || format!("changed while nobody was looking: {}{more}", named.join(", "));
    (!named.is_empty()).then(|| Block::Note(note()))
}

/// A reply that did not become part of the history.
pub(super) fn not_kept(kept: Kept, was_seen: bool) -> Option<Block> {
    let why = match kept {
        // What comes of a summary is told when the new history begins.
        Kept::Yes | Kept::Summary => return None,
        Kept::Cut => "the reply was cut at its length limit",
        Kept::Empty => "the reply was empty",
        Kept::Refused => "the model declined",
        Kept::WindowFull => "the context window is full",
        Kept::Unusable => "the reply reused the id of an earlier call",
    };
    let what = if was_seen { "reply withdrawn: " } else { "" };
    Some(Block::Note(format!("{what}{why}")))
}

/// A failure in words: what it is, what happened, and in a line of its own what to do next.
pub(super) fn failure(kind: FailureKind, message: &str) -> String {
    let (what, next) = match kind {
        FailureKind::Refused => {
            ("the model declined", "say it in other words, or choose another one with /model")
        }
        FailureKind::Truncated => ("the reply was cut at its length limit", "ask for less at once"),
        FailureKind::ContextFull => {
            ("the history no longer fits the model's window", "/compact begins a new one")
        }
        FailureKind::TurnLimit => ("its turns are used up", "say something, or Enter alone goes on"),
        FailureKind::Stuck => {
            ("it went in circles", "say what it is to do otherwise, or choose another one with /model")
        }
        FailureKind::Budget => {
            ("the budget does not suffice", "/budget usd N gives more, then Enter alone goes on")
        }
        FailureKind::Deadline => {
            ("its time is used up", "/budget minutes N gives more, then Enter alone goes on")
        }
        FailureKind::RateLimited => ("too many requests", "wait a while, then Enter alone goes on"),
        FailureKind::Api => ("the API failed", "Enter alone tries again"),
        FailureKind::Transport => ("the connection failed", "Enter alone tries again"),
        FailureKind::InvalidOutput => ("the reply could not be used", "Enter alone tries again"),
        FailureKind::Sandbox => ("the sandbox could not be had", "`convoke doctor` says what is missing"),
        FailureKind::Cancelled => ("stopped", "say what comes instead"),
        FailureKind::Interrupted => ("interrupted", "say something, or Enter alone goes on"),
        FailureKind::Internal => ("a fault of Convoke's", "Enter alone tries again"),
    };
    let safe = shown(message);
    let message = safe.split_whitespace().collect::<Vec<_>>().join(" ");
    match message.is_empty() {
        true => format!("{what}\n{next}"),
        false => format!("{what}: {message}\n{next}"),
    }
}
