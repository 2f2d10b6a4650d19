//! What a reply makes of its exchange, should the exchange end with it.

use crate::event::Kept;
use crate::outcome::Outcome;
use crate::wire::{FailureKind, Reply, StopReason};

const HANDED_BACK: &str =
    "the turn limit was reached; the text is what the agent handed back (--max-turns raises the limit)";
const NOTHING_HANDED_BACK: &str =
    "the turn limit was reached, and the agent handed nothing back (--max-turns raises the limit)";

pub(super) fn judge(handing_back: bool, kept: Kept, reply: &Reply) -> Outcome {
    let failed = |kind, message: &str| Outcome::Failed { kind, message: message.to_owned(), text: reply.text.clone() };
    let limit = if reply.text.trim().is_empty() { NOTHING_HANDED_BACK } else { HANDED_BACK };
    match kept {
        Kept::Refused => failed(
            FailureKind::Refused,
            reply.stop_detail.as_deref().unwrap_or("the model declined and gave no reason; rephrase the task"),
        ),
        Kept::Cut => failed(
            FailureKind::Truncated,
            "the reply was cut at max_tokens, also with all the room the model has; ask for less at once",
        ),
        Kept::WindowFull => {
            failed(FailureKind::ContextFull, "the conversation fills the model's context window; start a new run")
        }
        Kept::Empty => {
            failed(FailureKind::InvalidOutput, "the model gave no usable reply twice in a row; the last one was empty")
        }
        Kept::Unusable => failed(
            FailureKind::InvalidOutput,
            "the model gave no usable reply twice in a row; the tool calls of the last one were missing or repeated an id",
        ),
        Kept::Yes if handing_back => failed(FailureKind::TurnLimit, limit),
        Kept::Yes => match &reply.stop {
            StopReason::PauseTurn => failed(FailureKind::TurnLimit, limit),
            StopReason::Other(reason) => failed(
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
