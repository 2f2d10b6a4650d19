//! The outcome of an exchange, should it end with this reply.

use super::state::LastTurn;
use crate::event::Kept;
use crate::outcome::Outcome;
use crate::output;
use crate::wire::{FailureKind, Reply, StopReason};

pub(super) fn judge(last_turn: Option<&LastTurn>, kept: Kept, reply: &Reply) -> Outcome {
    let failed =
        |kind, message: &str| Outcome::Failed { kind, message: message.to_owned(), text: reply.text.clone() };
    match kept {
        Kept::Refused => failed(
            FailureKind::Refused,
            reply
                .stop_detail
                .as_deref()
                .unwrap_or("the model declined and gave no reason; rephrase the task"),
        ),
        Kept::Cut if matches!(last_turn, Some(LastTurn::Short(_) | LastTurn::Full)) => {
            handed_back(last_turn.unwrap_or(&LastTurn::Turns), &reply.text)
        }
        Kept::Cut => failed(
            FailureKind::Truncated,
            "the reply was cut at max_tokens, also with all the room there is; ask for less at once",
        ),
        Kept::WindowFull => failed(
            FailureKind::ContextFull,
            "the conversation fills the model's context window; start a new run",
        ),
        Kept::Empty => failed(
            FailureKind::InvalidOutput,
            "the model gave no usable reply twice in a row; the last one was empty",
        ),
        Kept::Summary => failed(FailureKind::Internal, "internal error: a summary ended the work"),
        Kept::Unusable => failed(
            FailureKind::InvalidOutput,
            "the model gave no usable reply twice in a row; the tool calls of the last one were missing or \
                repeated an id",
        ),
        Kept::Yes => match (last_turn, &reply.stop) {
            (Some(last), _) => handed_back(last, &reply.text),
            (None, StopReason::PauseTurn) => handed_back(&LastTurn::Turns, &reply.text),
            (None, StopReason::Other(reason)) => failed(
                FailureKind::InvalidOutput,
                &format!("the model stopped for a reason this version does not know: {reason}"),
            ),
            _ if reply.text.trim().is_empty() => failed(
                FailureKind::InvalidOutput,
                "the model gave no usable reply twice in a row; the last one said nothing",
            ),
            _ => Outcome::Ok { text: reply.text.clone() },
        },
    }
}

/// The outcome of an exchange whose calls never fitted the schema.
pub(super) fn never_fitted(last: &str) -> Outcome {
    let message = output::never_fitted(last);
    Outcome::Failed { kind: FailureKind::InvalidOutput, message, text: String::new() }
}

/// The outcome of an exchange that ended in prose though a value was asked for; `misfit` is what the model
/// was told about its last value, if it gave one that did not fit.
pub(super) fn ended_in_prose(text: &str, misfit: &str) -> Outcome {
    let message = if misfit.is_empty() { output::NEVER_CALLED.to_owned() } else { output::gave_up(misfit) };
    Outcome::Failed { kind: FailureKind::InvalidOutput, message, text: text.to_owned() }
}

/// The outcome of an exchange whose last turn handed this back.
pub(super) fn handed_back(last: &LastTurn, text: &str) -> Outcome {
    let what = if text.trim().is_empty() {
        "and the agent handed nothing back"
    } else {
        "the text is what the agent handed back"
    };
    let (kind, message) = match last {
        LastTurn::Turns => (
            FailureKind::TurnLimit,
            format!(
                "the turn limit was reached; {what} (--max-turns raises the \
                limit)"
            )
            .replace("; and", ", and"),
        ),
        LastTurn::Stuck(how) => (
            FailureKind::Stuck,
            format!(
                "it goes in circles: {how}, and it was told; {what} (say what it is to do otherwise, or \
                    choose another model with --model)"
            )
            .replace("; and", ", and"),
        ),
        LastTurn::Short(why) => (FailureKind::Budget, format!("{why}; {what}").replace("; and", ", and")),
        LastTurn::Full => (
            FailureKind::ContextFull,
            format!(
                "what was asked fills the model's context window, and a new history was hardly shorter than \
                 the old one; {what} (put long text into files that are read in parts, or choose a model \
                 with a larger window)"
            )
            .replace("; and", ", and"),
        ),
    };
    Outcome::Failed { kind, message, text: text.to_owned() }
}
