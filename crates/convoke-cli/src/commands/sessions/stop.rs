//! `convoke sessions stop`: a pause, and the workflow programs of the session are recorded as stopped, by
//! the process that drives it or, if there is none, by this one. It holds until a resume: then a new pass
//! begins, and everything that was done is served.

use std::time::Duration;

use convoke_journal::Error as JournalError;
use convoke_kernel::RunId;
use convoke_runtime::{Clock, Control, Controller, Error, STOPPED_BY};

use super::pause::{RequestOutcome, ask, report};
use super::target::Target;
use crate::args::{ControlArgs, OutputFormat};
use crate::checkpoints;
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;

/// How often, and how long apart, a session is tried whose last holder is about to let go of it.
const TRIES: u32 = 50;
const APART: Duration = Duration::from_millis(200);

/// Stops a session.
pub(super) async fn run(settings: &Settings, args: &ControlArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("sessions stop"));
    }
    let mut target = Target::find(settings, &args.session).await?;
    let before = open_programs(&target).await?;
    let heard = ask(settings, &mut target, Control::Stop).await?;
    // The process that drove the session has recorded the stop. If it was gone, or there was none, it is done
    // here.
    record(&target).await?;
    target.look(settings).await?;
    let stopped: Vec<&RunId> = before.iter().collect();
    let listed = target.listed()?;
    let session = listed.session.as_str();
    let state = listed.state();
    let left = match stopped.as_slice() {
        [] => "nothing new starts, and it stays where it is until it is resumed".to_owned(),
        [one] => format!(
            "workflow {one} is recorded as stopped; a resume begins a new pass and serves what is done"
        ),
        several => {
            format!(
                "{} workflows are recorded as stopped; a resume begins new passes and serves what is done",
                several.len()
            )
        }
    };
    let line = match (heard, stopped.as_slice()) {
        (RequestOutcome::Ended, _) => {
            format!("{session} had come to its end before it could be stopped: {}", listed.words())
        }
        (RequestOutcome::NotDriven, []) => {
            format!("no process drives {session} ({}): there is nothing to stop", listed.words())
        }
        (RequestOutcome::NotDriven | RequestOutcome::Left | RequestOutcome::Gone, _) => {
            format!("stopped: {session}; {left}")
        }
    };
    report(settings, session, Control::Stop, heard, &line, state)
}

async fn open_programs(target: &Target) -> Result<Vec<RunId>, Failure> {
    let programs = checkpoints::programs(&target.journal, &target.session).await?;
    Ok(programs.into_iter().filter(|told| !told.program.is_closed()).map(|told| told.run).collect())
}

async fn record(target: &Target) -> Result<(), Failure> {
    let controller = Controller::new(target.journal.clone(), Clock::system());
    let mut tries = 0;
    loop {
        tries += 1;
        match controller.stop_programs(&target.session, STOPPED_BY).await {
            Ok(_) => return Ok(()),
            // The process that drove it is about to write the same.
            Err(Error::Journal(JournalError::Held { .. })) if tries < TRIES => {
                tokio::time::sleep(APART).await
            }
            Err(error) => return Err(error.into()),
        }
    }
}
