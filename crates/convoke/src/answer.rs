//! What a task came to: the answer, how it ended, findings, spend and changed files.

use std::path::PathBuf;

use convoke_kernel::{
    AgentId, EndFacts, EndReason, EndStatus, LeadEnd, Outcome, OwnProgram, Program, ProgramEnd,
    ProgramStatus, StoppedBy, Summary, ending,
};
use convoke_runtime::DriveOutcome;
use convoke_trees::{ChangeKind, HostPlaces, Keeper};
use convoke_view::{Losses, Used};

use crate::error::Error;
use crate::findings::{self, Finding};
use crate::session::Inner;

/// What a task came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The lead's words, or what a workflow returned: a text as it is, any other value as JSON.
    pub text: String,
    /// How it ended.
    pub status: Status,
    /// What is missing from the answer, or why there is none.
    pub problem: Option<String>,
    /// The findings of the whole session, with their verdicts.
    pub findings: Vec<Finding>,
    /// What the whole session has used.
    pub spend: Spend,
    /// The files that the whole session changed in its directory.
    pub files: Vec<ChangedFile>,
    /// The session's id, with which another process can go on.
    pub session: String,
}

/// How a task ended. A failure is no answer: it is [`Error::Failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It was answered, and the answer is whole.
    Done,
    /// There is an answer, and it is not whole.
    Partial,
    /// It failed.
    Failed,
    /// It was stopped before its end; [`Session::go_on`](crate::Session::go_on) goes on with it.
    Stopped,
    /// It waits for an answer to a question.
    Waiting,
}

/// What a session has used.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Spend {
    /// What replies cost, in dollars; `None` where a price is not known.
    pub usd: Option<f64>,
    /// The same in billionths of a dollar, for sums without rounding.
    pub nano_usd: Option<u64>,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Agents that were started below the lead.
    pub agents: u32,
}

/// Billionths of a dollar as dollars.
pub(crate) fn dollars(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// A file that a session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Where it is, relative to the directory.
    pub path: PathBuf,
    /// How it was changed.
    pub change: Change,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Change {
    /// It is new.
    Added,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// Only its mode is another.
    Mode,
}

impl Answer {
    /// What driving came to; a failure is an error that carries what there is. `own` if a workflow was run.
    pub(crate) async fn of(
        inner: &Inner,
        lead: &AgentId,
        ended: DriveOutcome,
        own: bool,
        stopped: bool,
    ) -> Result<Self, Error> {
        let Some(summary) = &ended.summary else {
            let message = "internal error: the session ended without an outcome".to_owned();
            return Err(Error::Run(message.into()));
        };
        let session = &summary.session;
        let agents = inner.runtime.agents(session).await?;
        let runs = inner.runtime.runs(session).await?;
        let programs = inner.runtime.programs(session).await?;
        let asked = ended.parked && !inner.runtime.questions(session).await?.is_empty();
        let program = programs.last().filter(|_| own);
        let rows = agents.iter().map(|(agent, summary)| (agent, summary));
        let losses = Losses::of(summary.refused.as_deref(), rows, &runs, &programs);
        let losses = if own { losses.of_own(program.map(run_id).unwrap_or_default()) } else { losses };
        // A program that threw says why itself, which is more than that there was no room.
        let losses = Losses { thrown: Vec::new(), ..losses };
        let facts = losses.enter(EndFacts {
            lead: lead_end(&ended),
            stopped: stopped.then_some(StoppedBy::Stop),
            own: own.then(|| program.map_or(OwnProgram::Open, own_end)),
            asked: asked || programs.iter().any(|program| !program.questions().is_empty()),
            left: u32::try_from(ended.left.len()).unwrap_or(u32::MAX),
            ..EndFacts::default()
        });
        let end = ending(&facts);
        let said = ended.outcome.as_ref().map(|outcome| outcome.text().to_owned()).unwrap_or_default();
        let ledger = inner.runtime.ledger(session).await?;
        let answer = Self {
            text: if own { program.map(value).unwrap_or_default() } else { said },
            status: status(end.status),
            problem: problem(end.reason, &ended, program),
            findings: findings::of_session(&runs, &programs),
            spend: spend(&agents, ledger.agents()),
            files: files(inner, lead, &summary.dir).await,
            session: session.to_string(),
        };
        match (answer.status, &answer.problem) {
            (Status::Failed, problem) => {
                let message = problem.clone().unwrap_or_default();
                Err(Error::Failed { message, answer: Box::new(answer) })
            }
            _ => Ok(answer),
        }
    }
}

fn status(status: EndStatus) -> Status {
    match status {
        EndStatus::Done => Status::Done,
        EndStatus::Partial => Status::Partial,
        EndStatus::Failed => Status::Failed,
        EndStatus::Interrupted => Status::Stopped,
        EndStatus::Waiting => Status::Waiting,
    }
}

fn lead_end(ended: &DriveOutcome) -> LeadEnd {
    let Some(outcome) = &ended.outcome else {
        return if ended.parked { LeadEnd::Parked } else { LeadEnd::Open };
    };
    match outcome.failure() {
        None if ended.parked => LeadEnd::Parked,
        None => LeadEnd::Answered,
        Some(kind) => LeadEnd::Failed { kind, says: outcome.is_partial() },
    }
}

fn run_id(program: &Program) -> &str {
    program.spec().map(|spec| spec.run.as_str()).unwrap_or_default()
}

fn own_end(program: &Program) -> OwnProgram {
    match program.status() {
        Some(ProgramStatus::Complete) => OwnProgram::Complete,
        Some(ProgramStatus::Partial) => OwnProgram::Partial,
        Some(ProgramStatus::Failed) => OwnProgram::Failed,
        Some(ProgramStatus::Stopped) => OwnProgram::Stopped,
        None if program.declined().is_some() => OwnProgram::Declined,
        None => OwnProgram::Open,
    }
}

/// What is missing, in a sentence; `None` if nothing is.
fn problem(reason: EndReason, ended: &DriveOutcome, program: Option<&Program>) -> Option<String> {
    let told = |text: &str| Some(text.to_owned());
    match reason {
        EndReason::Done | EndReason::Finding | EndReason::Gate => None,
        EndReason::Failure(_) => match &ended.outcome {
            Some(Outcome::Failed { message, .. }) => Some(message.clone()),
            _ => None,
        },
        EndReason::Stopped(_) => told("it was stopped before its end; go_on() goes on with it"),
        EndReason::Approval => {
            told("it waits for an answer: give an on_question callback, and go_on() goes on with it")
        }
        EndReason::Budget => told("the budget had no room for a part of the work: resume with a larger one"),
        EndReason::Lost => told("the work of some agents was lost"),
        EndReason::Degraded => told("every result of the agents is degraded"),
        EndReason::ProgramPartial => {
            told("the workflow returned, and the work of some of its agents was lost")
        }
        EndReason::ProgramFailed => match program.and_then(Program::end) {
            Some(ProgramEnd::Failed { message, .. }) => Some(format!("the workflow failed: {message}")),
            _ => told("a workflow of the lead failed"),
        },
        EndReason::TeamLeft => Some(format!("the team left undone: {}", ended.left.join("; "))),
        EndReason::Journal | EndReason::Internal => {
            told("internal error: the session ended without an outcome")
        }
    }
}

fn value(program: &Program) -> String {
    let value = program.value().and_then(|value| serde_json::from_str::<serde_json::Value>(value).ok());
    match value {
        None => String::new(),
        Some(serde_json::Value::String(text)) => text,
        Some(value) => format!("{value:#}"),
    }
}

fn spend(rows: &[(AgentId, Summary)], agents: u32) -> Spend {
    let used = Used::of(rows.iter().map(|(_, summary)| summary));
    let nano_usd = used.cost_nano;
    Spend { usd: nano_usd.map(dollars), nano_usd, tokens: used.tokens(), agents }
}

/// What is kept of changes; nothing where there is no git to keep it with, and where nothing was changed.
async fn files(inner: &Inner, lead: &AgentId, dir: &str) -> Vec<ChangedFile> {
    let Some(places) = &inner.trees else { return Vec::new() };
    changed(places, lead, dir).await.unwrap_or_default()
}

async fn changed(places: &HostPlaces, lead: &AgentId, dir: &str) -> Option<Vec<ChangedFile>> {
    let keeper = Keeper::open(places, dir.as_ref(), lead.as_str()).await.ok()?;
    let changes = keeper.changes().await.ok()?;
    let file = |file: convoke_trees::ChangedFile| ChangedFile { path: file.path, change: change(file.how) };
    Some(changes.into_iter().map(file).collect())
}

fn change(how: ChangeKind) -> Change {
    match how {
        ChangeKind::Added => Change::Added,
        ChangeKind::Modified => Change::Modified,
        ChangeKind::Deleted => Change::Deleted,
        ChangeKind::ModeChanged => Change::Mode,
    }
}
