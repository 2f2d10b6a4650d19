//! Tries lost work of a session again, without hoping that a model asks for it: by a call of `Workflow` in
//! the person's name with just the lost subtasks, or with a program that serves what it has. Then the lead is
//! told what came of it and answers anew. Whether it was told follows from the journal, so a kill in between
//! loses nothing.

use convoke_journal::Journal;
use convoke_kernel::{AgentId, LostWork, RunId, Segment, lost_calls, lost_items};
use convoke_runtime::Runtime;
use convoke_view::Losses;
use serde_json::{Value, json};

use crate::catalog::ListedSession;
use crate::failure::Failure;
use crate::lead::{Exchange, Lead, RETRIED};
use crate::render::count;
use crate::work;

/// A call that tries lost work again.
pub(super) struct Retry {
    /// How people read it.
    pub(super) text: String,
    input: Value,
}

impl Retry {
    /// The calls that try again what these lost: one for all subtasks of flat workflows, at most `most` of
    /// them, and one for every program. Where the budget has `more` room now, what had none is among it.
    pub(super) async fn of(
        journal: &Journal,
        losses: &Losses,
        most: usize,
        more: bool,
    ) -> Result<Vec<Self>, Failure> {
        let mut calls = Vec::new();
        let flat = losses.to_retry(more).filter(|lost| lost.what != LostWork::Call);
        let subtasks: Vec<&str> = flat.map(|lost| lost.prompt.as_str()).take(most).collect();
        if !subtasks.is_empty() {
            let text = format!("try {} again that had been lost", count(number(subtasks.len()), "subtask"));
            calls.push(Self { text, input: json!({"subtasks": subtasks}) });
        }
        let mut runs: Vec<&str> = losses
            .to_retry(more)
            .filter(|lost| lost.what == LostWork::Call)
            .map(|lost| lost.run.as_str())
            .collect();
        runs.dedup();
        for run in runs {
            let program = work::program(journal, run).await?;
            let Some(spec) = program.spec() else { continue };
            let mut input = json!({"script": spec.source, "resumeFromRunId": run});
            if let Some(args) =
                spec.args.as_ref().map(Segment::as_str).and_then(|text| serde_json::from_str(text).ok())
            {
                input["args"] = args;
            }
            calls.push(Self { text: format!("try again what workflow {} {run} lost", spec.name), input });
        }
        Ok(calls)
    }

    /// Makes the call; it is done when the lead is driven.
    pub(super) async fn make(
        &self,
        runtime: &Runtime,
        lead: &AgentId,
        now: u64,
        at: usize,
    ) -> Result<(), Failure> {
        Ok(runtime.call(lead, &format!("{RETRIED}{now}-{at}"), &self.text, &self.input).await?)
    }
}

/// What is tried again and what is not, in a line.
pub(super) fn plan(listed: &ListedSession, more: bool) -> String {
    let again = number(listed.losses.to_retry(more).count());
    let all = number(listed.losses.lost.len());
    let rest = match all - again {
        0 => String::new(),
        rest if more => format!("; {rest} not: a model refused it"),
        rest => format!("; {rest} not: a model refused it, or the budget has no room for it"),
    };
    let were = if again == 1 { "piece of lost work is" } else { "pieces of lost work are" };
    format!("{again} {were} tried again{rest}; everything else is served from the journal")
}

/// What the lead has to be told of work that was tried again: under which key, of which run, and what.
pub(super) struct News {
    key: String,
    run: RunId,
    text: String,
}

impl News {
    /// What there is to tell, if anything was gained: a lead that would say the same again is not asked.
    pub(super) async fn of(journal: &Journal, lead: &AgentId, told: &Lead) -> Result<Option<Self>, Failure> {
        let mut news: Option<Self> = None;
        for call in told.untold() {
            let Some(run) = call.called(lead) else { continue };
            if !gained(journal, &run).await? {
                continue;
            }
            let said = text(call);
            news = Some(match news {
                None => Self { key: call.told_as(), run, text: said },
                Some(before) => Self { key: call.told_as(), run, text: format!("{}\n\n{said}", before.text) },
            });
        }
        Ok(news)
    }

    /// Tells the lead; it answers when it is driven.
    pub(super) async fn tell(self, runtime: &Runtime, lead: &AgentId) -> Result<(), Failure> {
        Ok(runtime.tell(lead, &self.key, &self.run, &self.text).await?)
    }
}

fn text(call: &Exchange) -> String {
    call.outcome.as_ref().map(|outcome| outcome.text().to_owned()).unwrap_or_default()
}

/// Whether a run that tried lost work again has done any of it.
async fn gained(journal: &Journal, run: &RunId) -> Result<bool, Failure> {
    // A stream is read as what its first event says it is.
    if let Ok(flow) = work::flow(journal, run.as_str()).await {
        let items = flow.items().len();
        return Ok(items > lost_items(std::slice::from_ref(&flow), |_| None).len());
    }
    let program = work::program(journal, run.as_str()).await?;
    let Some(from) = program.spec().and_then(|spec| spec.from.clone()) else { return Ok(false) };
    let before = work::program(journal, &from).await?;
    Ok(program.is_closed() && lost_calls(&program).len() < lost_calls(&before).len())
}

fn number(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
