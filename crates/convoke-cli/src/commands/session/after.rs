//! What follows when the lead is no longer driven. It is a rule; it does nothing itself.

use convoke_kernel::FailureKind;
use convoke_runtime::DriveOutcome;

/// What follows when the lead is no longer driven.
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

/// What follows from how driving ended, from how many words wait, from whether a stop was asked for, and from
/// whether something was said since.
pub(super) fn after(ended: &DriveOutcome, words: usize, stopped: bool, instead: bool) -> After {
    match &ended.outcome {
        None if instead => After::Instead,
        None => After::Nothing,
        Some(_) if words == 0 => After::Nothing,
        Some(outcome) if outcome.failure().is_some_and(FailureKind::would_fail_again) => After::Waits,
        Some(_) if stopped && !instead => After::Waits,
        Some(_) => After::Said,
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
            let ended = DriveOutcome { outcome, ..DriveOutcome::default() };
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
        check(failed(FailureKind::Stuck), 1, (false, false), After::Said);
        for kind in FailureKind::ALL {
            let expected = if kind.would_fail_again() { After::Waits } else { After::Said };
            check(failed(kind), 1, (false, false), expected);
        }
    }
}
