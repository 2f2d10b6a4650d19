//! Turns what the runtime tells into the library's events. Which claims wait for a verdict is folded in
//! `convoke-view`.

use convoke_kernel::{self as kernel, AgentId, Piece};
use convoke_runtime::Notice;
use convoke_view::{Claims, FindingNews};

use crate::answer::dollars;
use crate::event::Event;
use crate::findings::{finding, said, severity};

/// What later events refer to.
#[derive(Default)]
pub(crate) struct Fold {
    claims: Claims,
}

impl Fold {
    /// The events that follow from a notice.
    pub(crate) fn hear(&mut self, notice: Notice) -> Vec<Event> {
        match notice {
            Notice::Recorded { agent, event, .. } => recorded(&agent, *event).into_iter().collect(),
            Notice::Live { agent, piece: Piece::Text(text) } => {
                vec![Event::Text { agent: agent.to_string(), text }]
            }
            Notice::Run { run, event, .. } => self.claims.run(&run, &event).iter().map(told).collect(),
            Notice::Program { run, event, .. } => {
                self.claims.program(&run, &event).iter().map(told).collect()
            }
            Notice::Ledger { ledger, .. } => {
                let spent = ledger.spent();
                vec![Event::Spent { usd: dollars(spent.nano), nano_usd: spent.nano, tokens: spent.tokens }]
            }
            _ => Vec::new(),
        }
    }
}

fn told(news: &FindingNews) -> Event {
    match news {
        FindingNews::Reported(found) => Event::FindingReported { finding: finding(found, None) },
        FindingNews::Judged(found, verdict) => {
            let (verdict, reason) = said(verdict);
            Event::FindingVerified {
                claim: found.claim.clone(),
                severity: severity(found.severity),
                verdict,
                reason,
            }
        }
    }
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
