//! What the transcript says of workflows and of a team: that a run began and what it came to, which members
//! joined and left, what became of tasks. It does not say what agents write: that is on their pages.

use std::collections::HashMap;
use std::time::Duration;

use convoke_kernel::{
    BoardEvent, ItemStatus, ProgramEnd, ProgramEvent, ProgramSaid, RosterEvent, RunEvent, RunId, TaskId,
    Verdict,
};

use super::block::Block;
use super::event_text::brief;
use crate::text::{count, seconds};

/// How much of a subject, a reason or a line is shown.
const MOST: usize = 120;
/// How many lines a program may say here; the rest is in its record.
const MOST_LINES: usize = 20;

/// What is known of workflows and tasks.
#[derive(Debug, Default)]
pub(super) struct RunsAndTasks {
    runs: HashMap<RunId, RunFacts>,
    subjects: HashMap<TaskId, String>,
}

/// What is known of one run.
#[derive(Debug, Default)]
struct RunFacts {
    /// `tidy`, or its id.
    name: String,
    since: u64,
    ok: u32,
    failed: u32,
    skipped: u32,
    /// Calls of a program that could not be done, or were never started; what a person left out is skipped.
    not_done: u32,
    served: u32,
    confirmed: u32,
    refuted: u32,
    uncertain: u32,
    unverified: u32,
    lines: usize,
    /// The calls of a program that agents do.
    agents: HashMap<u32, bool>,
    /// Why the program did not return.
    failure: Option<String>,
}

impl RunFacts {
    fn count(&mut self, status: &ItemStatus, is_sound: bool) {
        match status {
            ItemStatus::Ok if is_sound => self.ok += 1,
            // A result that is not sound counts as failed, although its status is ok.
            ItemStatus::Ok | ItemStatus::Failed { .. } => self.failed += 1,
            ItemStatus::Skipped { .. } => self.skipped += 1,
        }
    }

    /// `5 ok, 1 lost · findings: 3 confirmed, 1 refuted · 12 s`, each part only if there is something to say.
    fn came_to(&self, at: u64) -> String {
        let listed = |parts: &[(u32, &str)]| {
            let said =
                parts.iter().filter(|(many, _)| *many > 0).map(|(many, word)| format!("{many} {word}"));
            said.collect::<Vec<_>>().join(", ")
        };
        let results = [
            (self.ok, "ok"),
            (self.failed, "failed or degraded"),
            (self.not_done, "not done"),
            (self.skipped, "skipped"),
            (self.served, "served from before"),
        ];
        let verdicts = [
            (self.confirmed, "confirmed"),
            (self.refuted, "refuted"),
            (self.uncertain, "uncertain"),
            (self.unverified, "unverified"),
        ];
        let verdicts =
            Some(listed(&verdicts)).filter(|said| !said.is_empty()).map(|said| format!("findings: {said}"));
        let results = Some(listed(&results)).filter(|said| !said.is_empty());
        let time = seconds(Duration::from_millis(at.saturating_sub(self.since)));
        [results, verdicts, Some(time)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    fn note(&self, text: &str) -> Block {
        Block::Note(format!("workflow {}: {text}", self.name))
    }
}

impl RunsAndTasks {
    /// Something has happened to a run of flat subtasks.
    pub(super) fn run(&mut self, run: &RunId, at: u64, event: &RunEvent) -> Vec<Block> {
        let tale = self.runs.entry(run.clone()).or_insert_with(|| RunFacts::new(run, at));
        match event {
            RunEvent::RunStarted(e) => {
                let number = |many: usize, noun: &str| count(u32::try_from(many).unwrap_or(u32::MAX), noun);
                let dropped = match e.spec.dropped.len() {
                    0 => String::new(),
                    many => format!(", {} beyond the limit left out", number(many, "subtask")),
                };
                let began =
                    tale.note(&format!("begins with {}{dropped}", number(e.spec.subtasks.len(), "subtask")));
                let notes = e.spec.notes.iter().map(|note| tale.note(&brief(note, MOST)));
                std::iter::once(began).chain(notes).collect()
            }
            RunEvent::ItemEnded(e) => {
                tale.served += u32::from(e.result.reused.is_some());
                tale.count(&e.result.status, e.result.is_sound());
                Vec::new()
            }
            RunEvent::ItemJudged(e) => {
                for verdict in &e.verdicts {
                    match verdict {
                        Verdict::Confirmed { .. } => tale.confirmed += 1,
                        Verdict::Refuted { .. } => tale.refuted += 1,
                        Verdict::Uncertain { .. } => tale.uncertain += 1,
                        Verdict::Unverified { .. } => tale.unverified += 1,
                    }
                }
                Vec::new()
            }
            RunEvent::RunClosed(_) => vec![tale.note(&format!("ends · {}", tale.came_to(at)))],
            RunEvent::WorkerStarted(_)
            | RunEvent::CitationsChecked(_)
            | RunEvent::VerifierStarted(_)
            | RunEvent::VerifierEnded(_) => Vec::new(),
        }
    }

    /// Something has happened to a program's run.
    pub(super) fn program(&mut self, run: &RunId, at: u64, event: &ProgramEvent) -> Vec<Block> {
        let tale = self.runs.entry(run.clone()).or_insert_with(|| RunFacts::new(run, at));
        match event {
            ProgramEvent::ProgramStarted(e) => {
                let name = brief(&e.spec.name, 40);
                if !name.is_empty() {
                    tale.name = format!("{name} ({})", tale.name);
                }
                let about = brief(&e.spec.description, MOST);
                vec![tale.note(if about.is_empty() { "begins" } else { &about })]
            }
            ProgramEvent::PassBegan(e) => {
                *tale = RunFacts { name: std::mem::take(&mut tale.name), since: at, ..RunFacts::default() };
                vec![tale.note(&format!("begins again (pass {}): {}", e.pass, brief(&e.why, MOST)))]
            }
            ProgramEvent::StepTaken(e) => {
                tale.agents.extend(e.calls.iter().map(|made| (made.call, made.kind.is_agents())));
                if let Some(ProgramEnd::Failed { kind, message }) = &e.end {
                    tale.failure = Some(format!(" ({}): {}", brief(kind, 40), brief(message, MOST)));
                }
                e.said.iter().filter_map(|said| tale.says(said)).collect()
            }
            ProgramEvent::StepDeclined(e) => {
                vec![tale.note(&format!("declined: {}", brief(&e.reason, MOST)))]
            }
            ProgramEvent::CallEnded(e) => {
                tale.served += u32::from(e.result.reused.is_some() || e.result.kept.is_some());
                if tale.agents.get(&e.call).copied().unwrap_or(false) {
                    match e.result.status {
                        ItemStatus::Skipped { .. } if !e.result.by_person => tale.not_done += 1,
                        _ => tale.count(&e.result.status, e.result.is_sound()),
                    }
                }
                Vec::new()
            }
            ProgramEvent::ProgramStopped(e) => vec![tale.note(&format!("stopped by {}", brief(&e.by, MOST)))],
            ProgramEvent::ProgramClosed(e) => {
                let why = tale.failure.take().unwrap_or_default();
                vec![tale.note(&format!("{}{why} · {}", e.status.word(), tale.came_to(at)))]
            }
        }
    }

    /// Something has happened to the roster.
    pub(super) fn roster(&self, event: &RosterEvent) -> Option<Block> {
        let note = match event {
            RosterEvent::MemberSpawned(e) => format!("{} joins ({})", brief(&e.name, 40), brief(&e.role, 40)),
            RosterEvent::MemberStopped(e) => {
                format!("{} has stopped: {}", brief(&e.name, 40), brief(&e.why, MOST))
            }
            RosterEvent::MemberFailed(e) => {
                format!("{} has failed: {}", brief(&e.name, 40), brief(&e.why, MOST))
            }
            RosterEvent::RosterOpened(_)
            | RosterEvent::LetterPosted(_)
            | RosterEvent::LettersTaken(_)
            | RosterEvent::LettersPutBack(_)
            | RosterEvent::RequestAsked(_)
            | RosterEvent::RequestAnswered(_)
            | RosterEvent::MemberRecovered(_)
            | RosterEvent::MemberAsleep(_)
            | RosterEvent::MemberAwake(_)
            | RosterEvent::RestsTold(_) => return None,
        };
        Some(Block::Note(note))
    }

    /// Something has happened to the board.
    pub(super) fn board(&mut self, event: &BoardEvent) -> Option<Block> {
        let note = match event {
            BoardEvent::TaskCreated(e) => {
                self.subjects.insert(e.task.clone(), e.subject.clone());
                return None;
            }
            BoardEvent::TaskEdited(e) => {
                let subject = e.edit.subject.clone()?;
                self.subjects.insert(e.task.clone(), subject);
                return None;
            }
            BoardEvent::TaskFinished(e) => format!("{} has done {}", brief(&e.name, 40), self.named(&e.task)),
            BoardEvent::TaskFailed(e) => {
                format!("{} has failed: {}", self.named(&e.task), brief(&e.why, MOST))
            }
            BoardEvent::TaskClaimed(_)
            | BoardEvent::TaskRenewed(_)
            | BoardEvent::TaskOffered(_)
            | BoardEvent::TaskReleased(_)
            | BoardEvent::TaskRetried(_) => return None,
        };
        Some(Block::Note(note))
    }

    fn named(&self, task: &TaskId) -> String {
        match self.subjects.get(task) {
            Some(subject) => format!("\"{}\"", brief(subject, MOST)),
            None => task.to_string(),
        }
    }
}

impl RunFacts {
    fn new(run: &RunId, at: u64) -> Self {
        // A few characters are enough to name it in a command.
        let name = run.as_str().chars().take(9).collect();
        Self { name, since: at, ..Self::default() }
    }

    fn says(&mut self, said: &ProgramSaid) -> Option<Block> {
        let ProgramSaid::Log(line) = said else { return None };
        self.lines += 1;
        match self.lines {
            lines if lines < MOST_LINES => Some(self.note(&brief(line, MOST))),
            MOST_LINES => Some(self.note("(what it says further is in its record)")),
            _ => None,
        }
    }
}
