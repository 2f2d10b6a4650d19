//! Flat runs: the kernel's own run is the truth, and every event of it changes the rows it is about and no
//! others.

use std::collections::HashMap;

use convoke_kernel::{ItemStatus, Role, Run, RunEvent, RunId};

use super::labels::{counted, line};
use super::lists::Other;
use super::rows::RunRow;
use super::{AgentOrigin, Fleet};

const WORKING: &str = "working";
const VERIFYING: &str = "verifying";

/// The flat runs of a session.
pub(super) type Flows = HashMap<RunId, Flow>;

/// One flat run.
#[derive(Debug, Default)]
pub(super) struct Flow {
    run: Run,
    /// Its place among all runs.
    number: usize,
}

impl Fleet {
    /// Folds an event of a flat run; says whether anything looks different now.
    pub(super) fn hear_run(&mut self, id: &RunId, at: u64, event: &RunEvent) -> bool {
        let flow = self.flows.entry(id.clone()).or_default();
        if flow.run.apply(event, at).is_err() {
            // Something before it was not heard: what is known stays, and it is said that not all of it is.
            self.streams.mark(id.as_str());
            return false;
        }
        match event {
            RunEvent::RunStarted(e) => {
                flow.number = self.lists.runs.len();
                let items = e.spec.subtasks.len();
                let title = counted(items, "subtask");
                self.lists.runs.push(RunRow::begun(id, title, false, items, at));
                self.lists.count_other(WORKING, Other::Waiting, items, true);
                self.lead.get_or_insert_with(|| e.spec.lead.clone());
            }
            RunEvent::WorkerStarted(e) => {
                let label = subtask(&flow.run, e.item);
                self.lists.count_other(WORKING, Other::Waiting, 1, false);
                self.post(&e.agent, at, AgentOrigin::new(WORKING, id, &label, Role::Worker));
            }
            RunEvent::VerifierStarted(e) => {
                let label = subtask(&flow.run, e.item);
                self.post(&e.agent, at, AgentOrigin::new(VERIFYING, id, &label, Role::Verifier));
            }
            RunEvent::ItemEnded(e) => {
                let subtask = subtask(&flow.run, e.item);
                let is_well = e.result.status == ItemStatus::Ok;
                let worker = flow.run.worker(e.item).cloned();
                self.lists.findings.report((flow.number, e.item), id, &subtask, &e.result);
                let served = e.result.agent.as_ref().zip(e.result.reused.as_ref());
                match (worker, served) {
                    (Some(worker), _) => self.change(&worker, at, |track, _| track.end(is_well)),
                    (None, Some((agent, from))) if !self.tracks.contains_key(agent) => {
                        self.lists.count_other(WORKING, Other::Waiting, 1, false);
                        let came_to = match e.result.findings() {
                            0 => "no findings".to_owned(),
                            many => counted(many, "finding"),
                        };
                        let post = AgentOrigin::new(WORKING, id, &subtask, Role::Worker);
                        self.serve(agent, at, post, (from, &came_to));
                        true
                    }
                    (None, _) => {
                        self.lists.count_other(WORKING, Other::Waiting, 1, false);
                        self.lists.count_other(
                            WORKING,
                            if is_well { Other::Done } else { Other::Failed },
                            1,
                            true,
                        );
                        true
                    }
                };
            }
            RunEvent::CitationsChecked(e) => self.lists.findings.checked((flow.number, e.item), &e.checks),
            RunEvent::VerifierEnded(e) => {
                self.lists.findings.voted((flow.number, e.item), e.voter, &e.result);
                if let (Some(agent), Some(from)) = (&e.result.agent, &e.result.reused)
                    && !self.tracks.contains_key(agent)
                {
                    let label = subtask(&flow.run, e.item);
                    let post = AgentOrigin::new(VERIFYING, id, &label, Role::Verifier);
                    self.serve(agent, at, post, (from, "verdicts"));
                    return true;
                }
                let here = e.result.agent.as_ref().filter(|_| e.result.reused.is_none());
                if let Some(agent) = here.cloned() {
                    let is_well = e.result.failure.is_none();
                    self.change(&agent, at, |track, _| track.end(is_well));
                }
            }
            RunEvent::ItemJudged(e) => {
                self.lists.findings.judged((flow.number, e.item), &e.verdicts);
                let is_well = flow.run.result(e.item).is_some_and(|result| result.status == ItemStatus::Ok);
                if let Some(row) = self.lists.runs.get_mut(flow.number) {
                    *if is_well { &mut row.done } else { &mut row.failed } += 1;
                }
            }
            RunEvent::RunClosed(_) => {
                if let Some(row) = self.lists.runs.get_mut(flow.number) {
                    let end = match (row.done, row.failed) {
                        (_, 0) => "complete",
                        (0, _) => "failed",
                        _ => "partial",
                    };
                    (row.end, row.ended_at) = (Some(end.to_owned()), Some(at));
                }
            }
        }
        true
    }
}

impl RunRow {
    /// A run that has just begun.
    pub(super) fn begun(id: &RunId, title: String, is_program: bool, total: usize, at: u64) -> Self {
        let id = id.clone();
        Self {
            id,
            title: line(&title),
            is_program,
            total,
            done: 0,
            failed: 0,
            end: None,
            started_at: at,
            ended_at: None,
        }
    }
}

/// The subtask of an item.
fn subtask(run: &Run, item: u32) -> String {
    let subtasks = run.spec().map(|spec| spec.subtasks.as_slice()).unwrap_or_default();
    let place = item.checked_sub(1).and_then(|item| usize::try_from(item).ok());
    place.and_then(|place| subtasks.get(place)).cloned().unwrap_or_default()
}
