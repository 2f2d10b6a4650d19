//! `convoke sessions retry`: takes up a person's own workflow run that did not come to a good end. A new
//! pass begins in which everything sound is served and only what failed is done again. It decides whether
//! there is anything to try; the doing is `resume`'s.

use convoke_kernel::{CallState, Lost, ProgramStatus};

use super::target::Target;
use crate::again::Naming;
use crate::args::RetryArgs;
use crate::checkpoints::{self, ProgramRead};
use crate::commands::resume;
use crate::failure::{Exit, Failure};
use crate::render::count;
use crate::settings::Settings;
use crate::stdio;

/// Tries what failed again.
pub(super) async fn run(settings: &Settings, args: &RetryArgs) -> Result<Exit, Failure> {
    let target = Target::find(settings, &args.session).await?;
    let listed = target.listed()?;
    let session = listed.session.to_string();
    if target.is_driven(&listed.lead().agent).await? {
        return Err(Failure::usage(format!(
            "{session} is running; what has failed can be tried again when it has ended"
        ))
        .hint(format!("to watch it: `convoke sessions watch {session}`"))
        .hint(format!("to end it now: `convoke sessions stop {session}`")));
    }
    let programs = checkpoints::programs(&target.journal, &target.session).await?;
    let named = |told: &&ProgramRead| target.workflow.as_ref().is_none_or(|workflow| *workflow == told.run);
    // What a lead's fan-outs lost, flat ones and programs, is tried again by the harness, and the lead is
    // told.
    let of_named =
        |lost: &Lost| target.workflow.as_ref().is_none_or(|workflow| lost.run == workflow.as_str());
    let lost = listed.losses.to_retry(false).any(of_named);
    if listed.own_program().is_none()
        && (lost || (target.workflow.is_none() && listed.lead().summary.can_go_on))
    {
        drop(target.journal.close().await);
        return resume::run(settings, args.resume(&session)).await;
    }
    let Some(told) = programs.iter().rev().find(named) else {
        if !listed.losses.lost.is_empty() {
            let what = format!("nothing of what {session} lost is worth another try as it is");
            return Err(Failure::usage(what).hint(format!(
                "`convoke sessions show {session}` lists it: a model refused it, or the budget had no room"
            )));
        }
        return Err(Failure::usage(format!(
            "{session} has no workflow program whose calls could be tried again"
        ))
        .hint(format!("`convoke resume {session}` goes on with what is unfinished")));
    };
    let program = &told.program;
    let workflow = &told.run;
    if program.spec().is_some_and(|spec| spec.background) {
        // Its lead has been told of the end and has gone on with that.
        let what =
            format!("{workflow} was started by the lead of {session}, and only the lead can take it up");
        let ask = Naming::of(settings).resume(&session);
        let failure = Failure::usage(what);
        return Err(match ask {
            Some(command) => failure.hint(format!(
                "ask it: {command} --say 'Run the workflow {workflow} again with resumeFromRunId'"
            )),
            None => failure,
        });
    }
    match program.status() {
        Some(ProgramStatus::Complete) => {
            stdio::tell(&format!("{workflow} is complete: there is nothing to try again\n"));
            return Ok(Exit::Done);
        }
        None => {
            return Err(Failure::usage(format!("{workflow} has not ended; nothing of it is given up yet"))
                .hint(format!("`convoke resume {session}` goes on with it")));
        }
        Some(ProgramStatus::Partial | ProgramStatus::Failed | ProgramStatus::Stopped) => {}
    }
    if !settings.quiet {
        stdio::tell(&format!("{}\n", plan(told)));
    }
    drop(target.journal.close().await);
    resume::run(settings, args.resume(&session)).await
}

/// How many are served and how many are tried, as far as the last pass came.
fn plan(told: &ProgramRead) -> String {
    let calls: Vec<&CallState> = told.program.calls().filter(|call| call.made.kind.is_agents()).collect();
    let sound =
        calls.iter().filter(|call| call.result.as_ref().is_some_and(|result| result.is_sound())).count();
    let number = |calls: usize| count(u32::try_from(calls).unwrap_or(u32::MAX), "call");
    format!(
        "pass {} of {}: {} served from before, {} tried again",
        told.program.pass() + 1,
        told.run,
        number(sound),
        number(calls.len() - sound)
    )
}
