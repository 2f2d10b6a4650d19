//! What follows when nobody drives the lead any more. A rule, and nothing is done by it.

use convoke_kernel::FailureKind;
use convoke_runtime::Ended;

/// What follows when nobody drives the lead any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing.
    Nothing,
    /// What was said since the stop comes instead of what was stopped.
    Instead,
    /// What was said meanwhile is said now.
    Said,
    /// What was said meanwhile waits until the person wants it said.
    Waits,
}

/// What follows from how driving ended, from how many words wait, and from whether somebody asked to stop and said something since.
pub(super) fn after(ended: &Ended, words: usize, stopped: bool, instead: bool) -> After {
    match &ended.outcome {
        None if instead => After::Instead,
        None => After::Nothing,
        Some(_) if words == 0 => After::Nothing,
        Some(outcome) => match outcome.failure() {
            // They were not answered for a reason of their own; what is said next may well be.
            None | Some(FailureKind::Cancelled | FailureKind::Refused | FailureKind::TurnLimit) => {
                if stopped && !instead { After::Waits } else { After::Said }
            }
            // What waits would fail like what was said last.
            Some(_) => After::Waits,
        },
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::Outcome;

    use super::*;

    #[test]
    fn what_was_said_meanwhile_is_said_unless_it_would_fail_or_a_stop_was_asked_for() {
        let ok = || Some(Outcome::Ok { text: String::new() });
        let failed = |kind| Some(Outcome::Failed { kind, message: String::new(), text: String::new() });
        let check = |outcome: Option<Outcome>, words, (stopped, instead), expected| {
            let ended = Ended { outcome, ..Ended::default() };
            assert_eq!(after(&ended, words, stopped, instead), expected, "{:?}", ended.outcome);
        };
        check(ok(), 0, (false, false), After::Nothing);
        check(ok(), 3, (false, false), After::Said);
        check(ok(), 3, (true, false), After::Waits);
        check(ok(), 1, (true, true), After::Said);
        check(None, 3, (true, false), After::Nothing);
        check(None, 1, (true, true), After::Instead);
        check(failed(FailureKind::Api), 2, (false, false), After::Waits);
        check(failed(FailureKind::Budget), 2, (false, false), After::Waits);
        check(failed(FailureKind::Cancelled), 2, (false, false), After::Said);
        check(failed(FailureKind::Refused), 1, (false, false), After::Said);
    }
}
