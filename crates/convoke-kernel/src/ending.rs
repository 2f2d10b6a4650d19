//! How a session ended: one pure function for flat fan-outs, programs and teams alike. Reports, listings,
//! watchers and the exit code ask only it, so they cannot disagree.

use crate::gate::Gate;
use crate::wire::FailureKind;

/// What a session came to, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndStatus {
    /// It was answered, and the answer is whole.
    Done,
    /// There is an answer, and it is not whole.
    Partial,
    /// It failed.
    Failed,
    /// It was stopped before its end.
    Interrupted,
    /// It waits for a person's answer.
    Waiting,
}

impl EndStatus {
    /// The word in data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
        }
    }
}

/// What stopped a session: a signal, or a person in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoppedBy {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
    /// A person paused it.
    Pause,
    /// A person stopped it.
    Stop,
}

impl StoppedBy {
    /// The reason in data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
            Self::HangUp => "hung_up",
            Self::Pause => "paused",
            Self::Stop => "stopped",
        }
    }

    /// The exit code it leads to.
    pub fn code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::HangUp => 129,
            // It is unfinished and goes on when a person says so.
            Self::Pause | Self::Stop => 5,
        }
    }
}

/// How driving the lead ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeadEnd {
    /// It answered everything that was said to it.
    Answered,
    /// It did not, or only in part.
    Failed {
        /// Why.
        kind: FailureKind,
        /// Whether there is something to read all the same.
        says: bool,
    },
    /// It waits: for a person's answer, or for a larger budget.
    Parked,
    /// It has not come to an end.
    Open,
    /// The journal failed, so no more is known.
    Journal,
    /// Convoke itself failed.
    Broke,
}

/// What became of the program that a person ran, which is then what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnProgram {
    /// It has not ended, or was never begun: how the lead ended says why.
    Open,
    /// It returned, and every agent ended well.
    Complete,
    /// It returned, and agents were lost.
    Partial,
    /// It did not return.
    Failed,
    /// A person stopped it.
    Stopped,
    /// The budget had no room for its next step.
    Declined,
}

/// Everything that decides how a session ended. The default is a lead that answered and lost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndFacts {
    /// How driving the lead ended.
    pub lead: LeadEnd,
    /// What stopped it, if something did.
    pub stopped: Option<StoppedBy>,
    /// The person's own program; `None` where there is a lead that was asked something.
    pub own: Option<OwnProgram>,
    /// Whether a person is asked something.
    pub asked: bool,
    /// Steps of programs that wait for a larger budget.
    pub declined: u32,
    /// Fan-outs that were refused whole for want of room, and none was admitted later.
    pub refused: u32,
    /// Subtasks, verifications and calls that the budget had no room for.
    pub short: u32,
    /// Subtasks, verifications and calls that were lost for any other reason and not done later.
    pub lost: u32,
    /// Results that are degraded, if every result of the session's fan-outs is.
    pub degraded: u32,
    /// Programs of the lead's that failed, with none that completed later.
    pub programs_failed: u32,
    /// What is left of the team's work.
    pub left: u32,
    /// What became of the gate that the caller set.
    pub gate: Gate,
}

impl Default for EndFacts {
    fn default() -> Self {
        Self {
            lead: LeadEnd::Answered,
            stopped: None,
            own: None,
            asked: false,
            declined: 0,
            refused: 0,
            short: 0,
            lost: 0,
            degraded: 0,
            programs_failed: 0,
            left: 0,
            gate: Gate::Unset,
        }
    }
}

/// Why a session ended as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndReason {
    /// It was answered.
    Done,
    /// The lead's last words failed in this way.
    Failure(FailureKind),
    /// Something stopped it.
    Stopped(StoppedBy),
    /// A person is asked something.
    Approval,
    /// The budget had no room for a step, a whole fan-out, a subtask, a verification or a call.
    Budget,
    /// Work of agents was lost.
    Lost,
    /// Every result of agents is degraded.
    Degraded,
    /// The person's program returned, and agents were lost.
    ProgramPartial,
    /// A program failed.
    ProgramFailed,
    /// The team has left something undone.
    TeamLeft,
    /// There is a finding that the caller asked to fail on.
    Finding,
    /// The gate that the caller set could not be looked at whole.
    Gate,
    /// The journal failed.
    Journal,
    /// Convoke itself failed.
    Internal,
}

impl EndReason {
    /// The word in data.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failure(kind) => kind.word(),
            Self::Stopped(by) => by.word(),
            Self::Approval => "approval",
            Self::Budget => FailureKind::Budget.word(),
            Self::Lost => "lost",
            Self::Degraded => "degraded",
            Self::ProgramPartial => "program_partial",
            Self::ProgramFailed => "program_failed",
            Self::TeamLeft => "team_left",
            Self::Finding => "finding",
            Self::Gate => "gate",
            Self::Journal => "journal",
            Self::Internal => FailureKind::Internal.word(),
        }
    }
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ending {
    /// In one word.
    pub status: EndStatus,
    /// The exit code.
    pub code: u8,
    /// Why.
    pub reason: EndReason,
}

/// The exit codes that this decides; 2 is wrong usage, and nothing ends that was not begun.
mod code {
    pub(super) const DONE: u8 = 0;
    pub(super) const FAILED: u8 = 1;
    pub(super) const PARTIAL: u8 = 3;
    pub(super) const BUDGET: u8 = 4;
    /// A gate that could not be looked at is no pass, and no failure of the session either.
    pub(super) const UNDECIDED: u8 = 4;
    pub(super) const PERSON: u8 = 5;
    pub(super) const FINDING: u8 = 6;
}

/// How a session with these facts ended. The first line that fits decides:
///
/// | | fact | status | code | reason |
/// |---|---|---|---|---|
/// | 1 | the journal or Convoke itself failed | failed | 1 | `journal`, `internal` |
/// | 2 | something stopped it before the lead, or its team, was done | interrupted | 129, 130, 143, 5 | the signal, `paused`, `stopped` |
/// | 3 | it waits, and a person is asked | waiting | 5 | `approval` |
/// | 4 | it waits for a larger budget alone | partial | 4 | `budget` |
/// | 5 | the person's own program has ended | by its end | 0, 1, 3, 4, 5 | `done`, `program_…`, `budget`, `stopped` |
/// | 6 | the lead has not ended, and nothing says why | failed | 1 | `internal` |
/// | 7 | the lead failed | partial if there is something to read, else failed | 4 for the budget, else 3 or 1 | the failure |
/// | 8 | the budget had no room for a fan-out or for a part of one | partial | 4 | `budget` |
/// | 9 | work of agents was lost | partial | 3 | `lost` |
/// | 10 | every result of agents is degraded | partial | 3 | `degraded` |
/// | 11 | a program of the lead's failed | partial | 3 | `program_failed` |
/// | 12 | the team left something undone | partial | 3 | `team_left` |
/// | 13 | none of these | done | 0 | `done` |
///
/// Where the code is then 0 or 3 and there is a finding that the caller asked to fail on, the code is 6 and
/// the reason `finding`: what was found counts whatever else was lost. Without one, work that was lost never
/// lets a gate pass: its code is 3. Where the code is 0 and the gate could not be looked at whole, the code
/// is 4 and the reason `gate`.
pub fn ending(facts: &EndFacts) -> Ending {
    let end = judge(facts);
    match (facts.gate, end.code) {
        (Gate::Found, code::DONE | code::PARTIAL) => {
            Ending { code: code::FINDING, reason: EndReason::Finding, ..end }
        }
        (Gate::Blind, code::DONE) => Ending { code: code::UNDECIDED, reason: EndReason::Gate, ..end },
        _ => end,
    }
}

fn judge(facts: &EndFacts) -> Ending {
    use EndStatus::{Done, Failed, Interrupted, Partial, Waiting};
    let end = |status, code, reason| Ending { status, code, reason };
    let unfinished = matches!(facts.lead, LeadEnd::Open | LeadEnd::Parked) || facts.left > 0;
    match facts.lead {
        LeadEnd::Journal => return end(Failed, code::FAILED, EndReason::Journal),
        LeadEnd::Broke => return end(Failed, code::FAILED, EndReason::Internal),
        _ => {}
    }
    if let Some(by) = facts.stopped.filter(|_| unfinished) {
        return end(Interrupted, by.code(), EndReason::Stopped(by));
    }
    let ended = matches!(facts.own, Some(OwnProgram::Complete | OwnProgram::Partial | OwnProgram::Failed));
    // A program that has ended waits for no answer, whether or not the lead has heard of its end.
    if facts.lead == LeadEnd::Parked && (facts.asked || !ended) {
        return match facts.own {
            // No question waits: a person stopped it, or it lacks room.
            Some(OwnProgram::Stopped) => end(Interrupted, code::PERSON, EndReason::Stopped(StoppedBy::Stop)),
            Some(OwnProgram::Declined) if !facts.asked => end(Partial, code::BUDGET, EndReason::Budget),
            _ if facts.declined > 0 && !facts.asked => end(Partial, code::BUDGET, EndReason::Budget),
            _ => end(Waiting, code::PERSON, EndReason::Approval),
        };
    }
    match facts.own {
        None | Some(OwnProgram::Open) => {}
        Some(OwnProgram::Complete) => return end(Done, code::DONE, EndReason::Done),
        Some(OwnProgram::Partial) if facts.short > 0 => return end(Partial, code::BUDGET, EndReason::Budget),
        Some(OwnProgram::Failed) if facts.short > 0 => return end(Failed, code::BUDGET, EndReason::Budget),
        Some(OwnProgram::Partial) => return end(Partial, code::PARTIAL, EndReason::ProgramPartial),
        Some(OwnProgram::Failed) => return end(Failed, code::FAILED, EndReason::ProgramFailed),
        Some(OwnProgram::Stopped) => {
            return end(Interrupted, code::PERSON, EndReason::Stopped(StoppedBy::Stop));
        }
        Some(OwnProgram::Declined) => return end(Partial, code::BUDGET, EndReason::Budget),
    }
    match facts.lead {
        LeadEnd::Open => return end(Failed, code::FAILED, EndReason::Internal),
        LeadEnd::Failed { kind, says } => {
            let (status, code) = if says { (Partial, code::PARTIAL) } else { (Failed, code::FAILED) };
            let code = if kind == FailureKind::Budget { code::BUDGET } else { code };
            return end(status, code, EndReason::Failure(kind));
        }
        LeadEnd::Answered | LeadEnd::Parked | LeadEnd::Journal | LeadEnd::Broke => {}
    }
    let not_whole = [
        (facts.refused + facts.short, code::BUDGET, EndReason::Budget),
        (facts.lost, code::PARTIAL, EndReason::Lost),
        (facts.degraded, code::PARTIAL, EndReason::Degraded),
        (facts.programs_failed, code::PARTIAL, EndReason::ProgramFailed),
        (facts.left, code::PARTIAL, EndReason::TeamLeft),
    ];
    match not_whole.into_iter().find(|(number, ..)| *number > 0) {
        Some((_, code, reason)) => end(Partial, code, reason),
        None => end(Done, code::DONE, EndReason::Done),
    }
}

#[cfg(test)]
mod tests;
