//! What is remembered for the calls of one step of a program, looked up in one query however many there are.

use convoke_journal::Results;
use convoke_kernel::{CallKind, CallResult, MadeCall};

use super::calls::{result_key, sound_result, sound_vote, vote_key};
use crate::children::Parent;
use crate::error::Error;

/// What is remembered for the calls of one step.
pub(super) struct StepResults(Results);

impl StepResults {
    /// Looks up the results and verdicts that these calls may be served with.
    pub(super) async fn look_up<'a>(
        parent: &Parent,
        calls: impl Iterator<Item = &'a MadeCall>,
    ) -> Result<Self, Error> {
        let keys: Vec<String> = calls
            .flat_map(|made| match made.kind {
                CallKind::Agent => vec![result_key(&made.key, made.occurrence)],
                CallKind::Verify => votes_of(made).collect(),
                _ => Vec::new(),
            })
            .collect();
        Ok(Self(parent.config.journal.results_at(&keys).await?))
    }

    /// A sound result that an equal call left.
    pub(super) async fn result(&mut self, parent: &Parent, made: &MadeCall) -> Option<CallResult> {
        if made.kind != CallKind::Agent {
            return None;
        }
        sound_result(parent, self.0.remove(&result_key(&made.key, made.occurrence))?).await
    }

    /// How many verdicts are missing.
    pub(super) fn missing_votes(&self, made: &MadeCall) -> u32 {
        let is_there =
            |key: &String| self.0.get(key).is_some_and(|(text, at)| sound_vote(text, *at).is_some());
        votes_of(made).fold(0, |missing, key| missing + u32::from(!is_there(&key)))
    }
}

/// The keys of the verdicts that a call asks for.
fn votes_of(made: &MadeCall) -> impl Iterator<Item = String> {
    (1..=made.agents).map(|voter| vote_key(&made.key, made.occurrence, voter))
}
