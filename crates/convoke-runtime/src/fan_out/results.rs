//! What a worker's or verifier's end means for its item.

use convoke_kernel::{
    AgentId, FailureKind, ItemResult, ItemStatus, Outcome, RunEffect, RunInput, Spent, VoterResult,
};

use crate::drive::DriveOutcome;

pub(super) fn item_result(agent: AgentId, ended: &DriveOutcome, outcome: &Outcome) -> ItemResult {
    let turns = ended.summary.as_ref().map_or(0, |summary| summary.turns);
    let status = match outcome {
        Outcome::Ok { .. } => ItemStatus::Ok,
        Outcome::Failed { kind: FailureKind::Budget, message, .. } if turns == 0 => {
            ItemStatus::Skipped { reason: format!("budget: {message}") }
        }
        Outcome::Failed { kind, message, .. } => ItemStatus::Failed { kind: *kind, message: message.clone() },
    };
    let mut result = ItemResult::bare(status);
    result.agent = Some(agent);
    result.report = ended.report.clone();
    result.text = if ended.report.is_some() { String::new() } else { outcome.text().to_owned() };
    result.degraded = ended.degraded.clone();
    result.spent = spent(ended);
    result
}

pub(crate) fn voter_result(agent: AgentId, ended: &DriveOutcome, outcome: &Outcome) -> VoterResult {
    let failure = match (outcome, &ended.degraded, &ended.ballot) {
        (Outcome::Failed { message, .. }, ..) => Some(message.clone()),
        (Outcome::Ok { .. }, Some(degraded), _) => Some(degraded.clone()),
        (Outcome::Ok { .. }, None, None) => Some("it gave no verdict".to_owned()),
        (Outcome::Ok { .. }, None, Some(_)) => None,
    };
    VoterResult {
        ballot: ended.ballot.clone(),
        failure,
        agent: Some(agent),
        spent: spent(ended),
        ..VoterResult::default()
    }
}

fn spent(ended: &DriveOutcome) -> Spent {
    ended.summary.as_ref().map(Spent::from).unwrap_or_default()
}

/// Why no agent works on something that was to be taken from elsewhere.
pub(crate) const NOT_ADMITTED: &str =
    "a remembered result was no longer there, and no agent had been admitted to work it out again";

/// What becomes of an item or a vote that a person stopped before an agent was at it.
pub(super) fn stopped(effect: RunEffect, by: &str) -> Option<RunInput> {
    let reason = format!("stopped by {by} before it was begun");
    match effect {
        RunEffect::Work { item } => {
            let result = Box::new(ItemResult::bare(ItemStatus::Skipped { reason }));
            Some(RunInput::Ended { item, result })
        }
        RunEffect::Verify { item, voter } => {
            let result = Box::new(VoterResult { failure: Some(reason), ..VoterResult::default() });
            Some(RunInput::VoterEnded { item, voter, result })
        }
        RunEffect::Check { .. } => None,
    }
}

/// What becomes of an item or a vote for which no agent was admitted.
pub(super) fn not_admitted(effect: RunEffect) -> Option<RunInput> {
    match effect {
        RunEffect::Work { item } => {
            let result = ItemResult::bare(ItemStatus::Skipped { reason: format!("budget: {NOT_ADMITTED}") });
            Some(RunInput::Ended { item, result: Box::new(result) })
        }
        RunEffect::Verify { item, voter } => {
            let result = VoterResult { failure: Some(NOT_ADMITTED.to_owned()), ..VoterResult::default() };
            Some(RunInput::VoterEnded { item, voter, result: Box::new(result) })
        }
        RunEffect::Check { .. } => None,
    }
}
