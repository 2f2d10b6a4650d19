//! What is said of workflows where there is no moving picture: one line when a fan-out begins, one when all
//! workers are done, and that results are not new. Pure; it prints nothing.

use std::collections::HashMap;

use convoke_kernel::{ItemResult, Reused, Run, RunEvent, RunId, RunSpec};

use crate::reuse::reuse_line;

/// The workflows that were seen to begin, and how many of their items have ended.
#[derive(Debug, Default)]
pub(super) struct Flows(HashMap<RunId, usize>);

impl Flows {
    /// What there is to say about this event of a run that has taken it in already. Of a run that another
    /// process began nothing is said: it was said then.
    pub(super) fn heard(&mut self, id: &RunId, event: &RunEvent, at: u64, run: Option<&Run>) -> Vec<String> {
        match event {
            RunEvent::RunStarted(e) => {
                self.0.insert(id.clone(), 0);
                vec![format!("[workflow] fanning out {}", counted(e.spec.subtasks.len(), "agent"))]
            }
            RunEvent::ItemEnded(_) => {
                let Some(ended) = self.0.get_mut(id) else { return Vec::new() };
                *ended += 1;
                let Some((run, spec)) = run.and_then(|run| Some((run, run.spec()?))) else {
                    return Vec::new();
                };
                if *ended == spec.subtasks.len() { worked(run, spec, at) } else { Vec::new() }
            }
            RunEvent::RunClosed(_) => {
                self.0.remove(id);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

/// What is said once all items of a run have ended.
fn worked(run: &Run, spec: &RunSpec, at: u64) -> Vec<String> {
    let results: Vec<&ItemResult> =
        (1..).take(spec.subtasks.len()).filter_map(|item| run.result(item)).collect();
    let reused: Vec<&Reused> = results.iter().filter_map(|result| result.reused.as_ref()).collect();
    let is_looked_into = |result: &&&ItemResult| result.is_sound() && result.findings() > 0;
    let looked_into = results.iter().filter(is_looked_into).count();
    let mut lines = Vec::new();
    let line = reuse_line("results", &reused, spec.subtasks.len(), spec.session.as_str(), at);
    lines.extend(line.map(|line| format!("[workflow] {line}")));
    if spec.voters > 0 && looked_into > 0 {
        lines.push(format!("[workflow] verifying {}", counted(looked_into, "result")));
    }
    lines
}

fn counted(number: usize, noun: &str) -> String {
    convoke_view::count(u32::try_from(number).unwrap_or(u32::MAX), noun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use convoke_kernel::{
        AgentId, Finding, ItemEnded, ItemStatus, Report, RunClosed, RunStarted, SessionId, Severity,
    };

    fn spec(items: usize, voters: u32) -> RunSpec {
        RunSpec {
            run: String::new(),
            session: SessionId::from_bits([1; 10]),
            lead: AgentId::from_bits([1; 10]),
            call: String::new(),
            dir: String::new(),
            base: String::new(),
            voters,
            subtasks: vec!["look".to_owned(); items],
            keys: Vec::new(),
            notes: Vec::new(),
            dropped: Vec::new(),
            consent: String::new(),
        }
    }

    fn ended(item: u32, findings: usize, reused: Option<u64>) -> RunEvent {
        let finding = Finding {
            claim: "c".into(),
            evidence: "e".into(),
            severity: Severity::Low,
            citations: Vec::new(),
        };
        let mut result = ItemResult::bare(ItemStatus::Ok);
        result.report = Some(Report { summary: String::new(), findings: vec![finding; findings] });
        result.reused = reused.map(|at| Reused { session: "s_old".into(), at });
        ItemEnded { item, result }.into()
    }

    #[test]
    fn d7_4_a_fan_out_says_how_many_begin_how_many_are_verified_and_how_many_are_not_new() {
        let run = RunId::derived(&["x"]);
        let check = |voters: u32, expected: &[&str]| {
            let mut flows = Flows::default();
            let events = [
                RunStarted { spec: spec(3, voters) }.into(),
                ended(2, 1, None),
                ended(1, 0, None),
                ended(3, 2, Some(0)),
                RunClosed {}.into(),
            ];
            let mut state = Run::new();
            let mut said = Vec::new();
            for event in &events {
                let _ = state.apply(event, 7_200_000);
                said.extend(flows.heard(&run, event, 7_200_000, Some(&state)));
            }
            assert_eq!(said, expected);
        };
        let begun = "[workflow] fanning out 3 agents";
        let reused = "[workflow] 1 of 3 results is from s_old, 2 h old";
        check(1, &[begun, reused, "[workflow] verifying 2 results"]);
        check(0, &[begun, reused]);
    }

    #[test]
    fn nothing_is_said_of_a_run_that_began_elsewhere() {
        let run = RunId::derived(&["x"]);
        assert!(Flows::default().heard(&run, &ended(1, 1, None), 0, None).is_empty());
    }
}
