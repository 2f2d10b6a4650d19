//! What an agent that is at work is at, as its own events and its live text tell, and what it came to. Every
//! way of looking has its own words for what an agent is at.

use convoke_kernel::{Event, ExchangeClosed, Outcome, Piece, Vote};

use crate::reading::Step;
use crate::text::{count, kind_word};

/// What an agent that is at work is at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Act {
    /// Between two steps, or waiting for room.
    #[default]
    Between,
    /// The request is sent, or waits in line.
    Asking,
    /// The model thinks.
    Thinking,
    /// The model answers.
    Answering,
    /// A call runs.
    Calling {
        /// Since when.
        since: u64,
    },
    /// The next attempt is waited for.
    Retry {
        /// Not before this time.
        until: u64,
        /// What went wrong, not made harmless.
        why: String,
    },
    /// A person has to agree first.
    Asked {
        /// To what, not made harmless.
        what: String,
    },
}

impl Act {
    /// Takes in an event of the agent. One that opens or closes an exchange changes nothing here: whether an
    /// agent is at work at all is not known here.
    pub fn heard(&mut self, at: u64, event: &Event) {
        *self = match Step::of(event) {
            Step::Requested(_) => Self::Asking,
            Step::Replied(_) | Step::Answered(_) | Step::CallEnded(_) => Self::Between,
            Step::RequestFailed(e) => match e.retry_at {
                Some(until) => Self::Retry { until, why: e.failure.message.clone() },
                None => Self::Between,
            },
            Step::CallStarted(_) => Self::Calling { since: at },
            Step::Asked(e) => Self::Asked { what: e.what.clone() },
            Step::Started(_)
            | Step::Opened(_)
            | Step::CallMade(_)
            | Step::Reopened
            | Step::Resumed(_)
            | Step::Closed(_)
            | Step::Aside(_) => return,
        };
    }

    /// Takes in a piece of a reply that is being written; says whether anything looks different now.
    pub fn piece(&mut self, piece: &Piece) -> bool {
        let act = match piece {
            Piece::Thinking(_) => Self::Thinking,
            Piece::Began | Piece::Text(_) | Piece::Tool { .. } => Self::Answering,
        };
        let is_other = matches!(self, Self::Asking | Self::Thinking | Self::Answering) && *self != act;
        if is_other {
            *self = act;
        }
        is_other
    }
}

/// What an exchange came to, in a few words; `None` if all it came to is its answer. `line` makes a foreign
/// text harmless and short.
pub fn came_to(event: &ExchangeClosed, line: impl Fn(&str) -> String) -> Option<String> {
    if let Outcome::Failed { kind, message, .. } = &event.outcome {
        return Some(format!("{}: {}", kind_word(*kind), line(message)));
    }
    if let Some(why) = &event.degraded {
        return Some(format!("degraded: {}", line(why)));
    }
    if let Some(ballot) = &event.ballot {
        let holds = ballot.verdicts.iter().filter(|judgement| judgement.verdict == Vote::Confirmed).count();
        let fails = ballot.verdicts.len() - holds;
        return Some(match fails {
            0 => format!("{holds} confirmed"),
            fails => format!("{holds} confirmed, {fails} refuted"),
        });
    }
    event.report.as_ref().map(|report| match report.findings.len() {
        0 => "no findings".to_owned(),
        found => count(u32::try_from(found).unwrap_or(u32::MAX), "finding"),
    })
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{ModelCalled, Purpose};

    use super::*;

    #[test]
    fn live_text_changes_only_what_an_agent_that_asked_is_at() {
        let mut act = Act::default();
        assert!(!act.piece(&Piece::Began));
        assert_eq!(act, Act::Between);
        let called = ModelCalled {
            call: 1,
            attempt: 1,
            segments: 1,
            max_tokens: 1,
            digest: String::new(),
            purpose: Purpose::Turn,
        };
        act.heard(5, &called.into());
        assert!(act.piece(&Piece::Thinking("hm".into())));
        assert!(!act.piece(&Piece::Thinking("hm".into())));
        assert!(act.piece(&Piece::Text("so".into())));
        assert_eq!(act, Act::Answering);
    }
}
