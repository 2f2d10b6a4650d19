//! What a lead is told of a run that went on beside it: how it ended, what it took, and how to go on from it.

use convoke_journal::{KeyedInput, StreamId};
use convoke_kernel::{CallResult, Program, ProgramStatus};

use crate::error::Error;
use crate::inputs::Waiting;

/// Characters of what the lead is told at a run's end.
const NOTICE_CHARS: usize = 30_000;

/// Nano-dollars in a dollar.
const NANO: u64 = 1_000_000_000;

/// What the lead is told at the end of a run, if it went on meanwhile.
pub(crate) fn closing_notice(program: &Program) -> Result<Option<KeyedInput>, Error> {
    let Some(spec) = program.spec().filter(|spec| spec.background) else { return Ok(None) };
    let text = program.digest(NOTICE_CHARS) + &usage(program) + &how_to_resume(program);
    let body = serde_json::to_string(&Waiting::told(&spec.run, text))?;
    let key = format!("told:{}:{}", spec.run, program.pass());
    Ok(Some(KeyedInput { stream: StreamId::from(&spec.lead), key, body }))
}

/// What this pass took, with what was read and what was written apart, because they do not cost the same.
fn usage(program: &Program) -> String {
    let Some(summary) = program.summary() else { return String::new() };
    let usage = &summary.usage;
    let agents = summary.counts.agents;
    let commands: u32 =
        program.calls().filter_map(|call| call.result.as_ref()).filter(paid).map(commands_of).sum();
    let cost = match summary.cost_nano {
        Some(nano) => format!("${}.{:04}", nano / NANO, nano % NANO / (NANO / 10_000)),
        None => "cost unknown".to_owned(),
    };
    let took = summary.closed_at.unwrap_or(summary.started_at).saturating_sub(summary.started_at) / 1_000;
    format!(
        "usage: {agents} agents, {} input tokens ({} of them from the cache), {} output tokens, {commands} \
         commands, {cost}, {took} s since it was started\n",
        usage.prompt_tokens(),
        usage.cache_read_tokens,
        usage.output_tokens
    )
}

fn how_to_resume(program: &Program) -> String {
    match (program.status(), program.spec()) {
        (Some(ProgramStatus::Complete) | None, _) | (_, None) => String::new(),
        (Some(_), Some(spec)) => format!(
            "To try again what failed and nothing else, call Workflow with resumeFromRunId {}, and a \
             changed script if it was at fault.\n",
            spec.run
        ),
    }
}

fn paid(result: &&CallResult) -> bool {
    result.reused.is_none() && result.kept.is_none()
}

fn commands_of(result: &CallResult) -> u32 {
    result.spent.commands
}
