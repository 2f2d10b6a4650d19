//! What follows when a request failed: whether it is sent again, and when.

use super::Unexpected;
use super::decide::Draft;
use super::state::Stage;
use crate::event::ModelFailed;
use crate::wire::{Failure, FailureKind, Retry};

/// A server that asks for a longer wait than this is not waited for: the run ends and can be resumed, and
/// does not sit there for a year because of a wrong header.
const LONGEST_WAIT: u64 = 3_600_000;

/// An overloaded server is asked again after this long at the latest, whatever it says.
const LONGEST_OVERLOAD: u64 = 30_000;

impl Draft {
    pub(super) fn failed(&mut self, call: u32, attempt: u32, mut failure: Failure) -> Result<(), Unexpected> {
        if let Some(learnt) = self.lesson_of(&failure) {
            // A refused request cost nothing, and is sent again at once
            // without the parts the server does not take.
            self.emit(ModelFailed { call, attempt, failure, retry_at: Some(self.at) })?;
            return Ok(self.emit(learnt)?);
        }
        if self.too_long_for_the_server((call, attempt), &failure, None)? {
            return Ok(());
        }
        let Stage::Calling(asking) = &self.state.stage else { return Err(Unexpected::Stale) };
        let max = self.state.spec.as_ref().map_or(1, |spec| spec.limits.max_attempts);
        let again = failure.kind != FailureKind::Interrupted && asking.failures + 1 < max;
        let retry_at = match failure.retry {
            Retry::Soon if again => {
                Some(self.at.saturating_add(backoff(asking.failures, &self.state.mark.digest)))
            }
            // A limit says when there is room again. A server that has too much to do cannot know.
            Retry::After(ms) if again && failure.kind != FailureKind::RateLimited => {
                Some(self.at.saturating_add(ms.min(LONGEST_OVERLOAD)))
            }
            Retry::After(ms) if again && ms <= LONGEST_WAIT => Some(self.at.saturating_add(ms)),
            Retry::After(ms) if ms > LONGEST_WAIT => {
                let asked = ms / 1_000;
                let most = LONGEST_WAIT / 1_000;
                failure.message.push_str(&format!(
                    "; it asks to be left alone for {asked} s, and {most} s is the longest that is waited: \
                        take it up again later"
                ));
                None
            }
            Retry::Soon | Retry::After(_) | Retry::Never => None,
        };
        self.emit(ModelFailed { call, attempt, failure, retry_at })?;
        Ok(())
    }
}

/// Half a second, doubling, at most 32 s, less up to a quarter so that agents that failed together do not
/// return together. The spread comes from the history's digest, because the kernel knows no randomness.
fn backoff(failures: u32, digest: &[u8; 32]) -> u64 {
    let full = full_backoff(failures);
    let spread = u64::from(digest[failures as usize % digest.len()]);
    full - full * spread / 1024
}

fn full_backoff(failures: u32) -> u64 {
    (500u64 << failures.min(6)).min(32_000)
}

/// How many milliseconds after its next try a request that has failed `failures` times is sent for the last
/// time, at the latest.
pub fn backoff_left(failures: u32, max_attempts: u32) -> u64 {
    (failures..max_attempts.saturating_sub(1)).map(full_backoff).sum()
}
