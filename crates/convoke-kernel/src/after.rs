//! What follows when a lead is no longer driven, while a person has said more.

use crate::outcome::Outcome;
use crate::wire::FailureKind;

/// What follows when a lead is no longer driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterDrive {
    /// Nothing.
    Nothing,
    /// What was said since the stop comes instead of what was stopped.
    Instead,
    /// What was said meanwhile is said now.
    Said,
    /// What was said meanwhile waits until the person wants it said.
    Waits,
}

impl AfterDrive {
    /// What follows from what the exchange came to (`None` if it was left open), from how many words wait,
    /// from whether a stop was asked for, and from whether something was said since.
    pub fn of(outcome: Option<&Outcome>, words: usize, stopped: bool, instead: bool) -> Self {
        match outcome {
            None if instead => AfterDrive::Instead,
            None => AfterDrive::Nothing,
            Some(_) if words == 0 => AfterDrive::Nothing,
            Some(outcome) if outcome.failure().is_some_and(FailureKind::would_fail_again) => {
                AfterDrive::Waits
            }
            Some(_) if stopped && !instead => AfterDrive::Waits,
            Some(_) => AfterDrive::Said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_meanwhile_is_said_unless_it_would_fail_or_a_stop_was_asked_for() {
        let ok = || Some(Outcome::Ok { text: String::new() });
        let failed = |kind| Some(Outcome::Failed { kind, message: String::new(), text: String::new() });
        let check = |outcome: Option<Outcome>, words, (stopped, instead), expected| {
            assert_eq!(AfterDrive::of(outcome.as_ref(), words, stopped, instead), expected, "{outcome:?}");
        };
        check(ok(), 0, (false, false), AfterDrive::Nothing);
        check(ok(), 3, (false, false), AfterDrive::Said);
        check(ok(), 3, (true, false), AfterDrive::Waits);
        check(ok(), 1, (true, true), AfterDrive::Said);
        check(None, 3, (true, false), AfterDrive::Nothing);
        check(None, 1, (true, true), AfterDrive::Instead);
        check(failed(FailureKind::Api), 2, (false, false), AfterDrive::Waits);
        check(failed(FailureKind::Budget), 2, (false, false), AfterDrive::Waits);
        check(failed(FailureKind::Cancelled), 2, (false, false), AfterDrive::Said);
        check(failed(FailureKind::Refused), 1, (false, false), AfterDrive::Said);
        check(failed(FailureKind::Stuck), 1, (false, false), AfterDrive::Said);
        for kind in FailureKind::ALL {
            let expected = if kind.would_fail_again() { AfterDrive::Waits } else { AfterDrive::Said };
            check(failed(kind), 1, (false, false), expected);
        }
    }
}
