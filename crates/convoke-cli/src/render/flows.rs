//! What is said of workflows where there is no moving picture: one line when a fan-out begins, one when all
//! workers are done, and that results are not new. Pure; it prints nothing.

use std::collections::HashMap;

use convoke_kernel::{Reused, RunEvent, RunId};

use crate::reuse::reuse_line;

/// The workflows that were seen to begin.
#[derive(Debug, Default)]
pub(super) struct Flows(HashMap<RunId, Flow>);

#[derive(Debug)]
struct Flow {
    session: String,
    items: usize,
    voters: u32,
    ended: usize,
    /// Results that verifiers look into.
    looked_into: usize,
    reused: Vec<Reused>,
}

impl Flows {
    /// What there is to say about this event. Of a run that another process began nothing is said: it was
    /// said then.
    pub(super) fn heard(&mut self, run: &RunId, event: &RunEvent, at: u64) -> Vec<String> {
        match event {
            RunEvent::RunStarted(e) => {
                let items = e.spec.subtasks.len();
                let voters = e.spec.voters;
                let session = e.spec.session.to_string();
                let flow = Flow { session, items, voters, ended: 0, looked_into: 0, reused: Vec::new() };
                self.0.insert(run.clone(), flow);
                vec![format!("[workflow] fanning out {}", counted(items, "agent"))]
            }
            RunEvent::ItemEnded(e) => {
                let Some(flow) = self.0.get_mut(run) else { return Vec::new() };
                flow.ended += 1;
                flow.looked_into +=
                    usize::from(flow.voters > 0 && e.result.is_sound() && e.result.findings() > 0);
                flow.reused.extend(e.result.reused.clone());
                if flow.ended == flow.items { flow.worked(at) } else { Vec::new() }
            }
            RunEvent::RunClosed(_) => {
                self.0.remove(run);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Flow {
    fn worked(&self, at: u64) -> Vec<String> {
        let reused: Vec<&Reused> = self.reused.iter().collect();
        let mut lines = Vec::new();
        if let Some(line) = reuse_line("results", &reused, self.items, &self.session, at) {
            lines.push(format!("[workflow] {line}"));
        }
        if self.looked_into > 0 {
            lines.push(format!("[workflow] verifying {}", counted(self.looked_into, "result")));
        }
        lines
    }
}

fn counted(number: usize, noun: &str) -> String {
    convoke_view::count(u32::try_from(number).unwrap_or(u32::MAX), noun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use convoke_kernel::{
        AgentId, Finding, ItemEnded, ItemResult, ItemStatus, Report, RunClosed, RunSpec, RunStarted,
        SessionId, Severity,
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
            let said: Vec<String> =
                events.iter().flat_map(|event| flows.heard(&run, event, 7_200_000)).collect();
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
        assert!(Flows::default().heard(&run, &ended(1, 1, None), 0).is_empty());
    }
}
