//! Folds what the runtime tells into the library's events. It remembers only what a later event needs: which
//! claims wait for a verdict.

use std::collections::HashMap;

use convoke_kernel::{self as kernel, AgentId, Piece, ProgramEvent, RunEvent};
use convoke_runtime::Notice;

use crate::answer::dollars;
use crate::event::Event;
use crate::findings::{finding, said, severity};

/// What waits for a verdict.
#[derive(Default)]
pub(crate) struct Fold {
    /// The findings of an item of a run.
    items: HashMap<(String, u32), Vec<kernel::Finding>>,
    /// The finding that a call of a program wants judged.
    calls: HashMap<(String, u32), kernel::Finding>,
}

impl Fold {
    /// The events that follow from a notice.
    pub(crate) fn hear(&mut self, notice: Notice) -> Vec<Event> {
        match notice {
            Notice::Recorded { agent, event, .. } => recorded(&agent, *event).into_iter().collect(),
            Notice::Live { agent, piece: Piece::Text(text) } => {
                vec![Event::Text { agent: agent.to_string(), text }]
            }
            Notice::Run { run, event, .. } => self.of_run(run.to_string(), *event),
            Notice::Program { run, event, .. } => self.of_program(run.to_string(), *event),
            Notice::Ledger { ledger, .. } => {
                let spent = ledger.spent();
                vec![Event::Spent { usd: dollars(spent.nano), nano_usd: spent.nano, tokens: spent.tokens }]
            }
            _ => Vec::new(),
        }
    }

    fn of_run(&mut self, run: String, event: RunEvent) -> Vec<Event> {
        match event {
            RunEvent::ItemEnded(ended) => {
                let found = ended.result.report.map(|report| report.findings).unwrap_or_default();
                let events = found
                    .iter()
                    .map(|found| Event::FindingReported { finding: finding(found, None) })
                    .collect();
                self.items.insert((run, ended.item), found);
                events
            }
            RunEvent::ItemJudged(item) => {
                let found = self.items.remove(&(run, item.item)).unwrap_or_default();
                found.iter().zip(&item.verdicts).map(|(found, verdict)| verdict_on(found, verdict)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_program(&mut self, run: String, event: ProgramEvent) -> Vec<Event> {
        match event {
            ProgramEvent::StepTaken(step) => {
                let mut events = Vec::new();
                for call in &step.calls {
                    let Some(found) = call.claim() else { continue };
                    events.push(Event::FindingReported { finding: finding(&found, None) });
                    self.calls.insert((run.clone(), call.call), found);
                }
                events
            }
            ProgramEvent::CallEnded(ended) => {
                let found = self.calls.remove(&(run, ended.call));
                found
                    .zip(ended.result.answer.verdict())
                    .iter()
                    .map(|(found, verdict)| verdict_on(found, verdict))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

fn verdict_on(found: &kernel::Finding, verdict: &kernel::Verdict) -> Event {
    let (verdict, reason) = said(verdict);
    Event::FindingVerified { claim: found.claim.clone(), severity: severity(found.severity), verdict, reason }
}

fn recorded(agent: &AgentId, event: kernel::Event) -> Option<Event> {
    let agent = agent.to_string();
    Some(match event {
        kernel::Event::AgentStarted(started) => {
            Event::AgentStarted { agent, role: started.spec.role.word(), label: started.spec.label }
        }
        kernel::Event::ModelFailed(failed) => Event::Retry { agent, why: failed.failure.message },
        kernel::Event::ToolStarted(tool) => {
            let input = command(&tool).unwrap_or_else(|| tool.input.as_str().to_owned());
            Event::ToolStarted { agent, call: tool.id, tool: tool.name, input }
        }
        kernel::Event::ToolFinished(tool) => Event::ToolEnded {
            agent,
            call: tool.id,
            ok: !tool.result.is_error,
            exit_code: tool.result.exit_code,
            text: tool.result.text,
        },
        kernel::Event::ApprovalAsked(asked) => Event::Asked { agent, wanted: asked.what, why: asked.why },
        kernel::Event::ExchangeClosed(closed) => {
            Event::AgentEnded { agent, ok: closed.outcome.failure().is_none() }
        }
        _ => return None,
    })
}

fn command(tool: &kernel::ToolStarted) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(tool.input.as_str()).ok()?;
    let command = input.get("command").filter(|_| kernel::is_command(&tool.name))?;
    command.as_str().map(str::to_owned)
}
