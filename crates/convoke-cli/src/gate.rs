//! A gate (`--fail-on`) that could never be evaluated is refused before anything is asked: a build must not
//! go green because of the flags it was run with.

use convoke_kernel::{Consent, can_verify, consents};

use crate::args::{EndArgs, Switch, TaskArgs};
use crate::failure::Failure;
use crate::settings::FanOut;

/// Checks that a task with these flags can come to findings that are verified. `said` is what the person
/// said, word for word; it is empty if the task is read from a file or stdin. At a terminal a person can
/// agree to a workflow later.
pub(crate) fn check_task(
    end: &EndArgs,
    fan_out: &FanOut,
    flags: &TaskArgs,
    said: &str,
    has_person: bool,
) -> Result<(), Failure> {
    let Some(level) = end.fail_on else { return Ok(()) };
    let level = level.word();
    check_voters(end, fan_out.voters)?;
    let later = !flags.follow_up.is_empty() && flags.follow_up_mode == Some(Switch::On);
    let mut texts = std::iter::once(said).chain(flags.follow_up.iter().map(String::as_str));
    let agreed = texts.any(|text| consents(fan_out.mode, text, fan_out.consent) != Consent::Missing);
    if agreed || later || has_person {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--fail-on {level} cannot be evaluated with orchestration mode off: no worker would report a finding"
    ))
    .hint(
        "say --mode on (a model with a small window has it off by default), or agree to workflows with \
        --workflow",
    )
    .hint("no model was asked and nothing was spent"))
}

/// Checks that the results of a session's workers are verified.
pub(crate) fn check_voters(end: &EndArgs, voters: u32) -> Result<(), Failure> {
    match end.fail_on {
        Some(level) if voters == 0 => Err(Failure::usage(format!(
            "--fail-on {} cannot be evaluated with verification off: it counts confirmed findings, and none \
                would be",
            level.word()
        ))
        .hint("leave --verify off out (or `verify` in the configuration): one verifier is enough")
        .hint("no model was asked and nothing was spent")),
        _ => Ok(()),
    }
}

/// Checks that a workflow program can have findings verified.
pub(crate) fn check_program(end: &EndArgs, name: &str, source: &str) -> Result<(), Failure> {
    match end.fail_on {
        Some(level) if !can_verify(source) => Err(Failure::usage(format!(
            "--fail-on {} cannot be evaluated: the workflow {name} has nothing verified",
            level.word()
        ))
        .hint("a finding counts if the workflow passes it to verify(); docs/workflows.md shows how")
        .hint("no model was asked and nothing was spent")),
        _ => Ok(()),
    }
}
