//! `convoke sessions pause`: asks the process that drives a session to finish what is under way and to end.
//! The journal carries it; no signal is sent and nothing is cut off.

use std::time::Duration;

use convoke_runtime::{Clock, Control, Controller};
use serde_json::json;

use super::target::Target;
use crate::again::Naming;
use crate::args::{ControlArgs, OutputFormat};
use crate::catalog::State;
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::open::DRAIN;
use crate::settings::Settings;
use crate::stdio;

/// How often it is looked whether the process has ended.
const LOOK: Duration = Duration::from_millis(200);
/// What a process may take to end beside what it waits for.
const MARGIN: Duration = Duration::from_secs(50);

/// Pauses a session.
pub(super) async fn run(settings: &Settings, args: &ControlArgs) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Jsonl {
        return Err(no_jsonl("sessions pause"));
    }
    let mut target = Target::find(settings, &args.session).await?;
    let heard = ask(settings, &mut target, Control::Pause).await?;
    let listed = target.listed()?;
    let session = listed.session.as_str();
    let state = listed.state();
    let line = match heard {
        RequestOutcome::NotDriven => {
            format!("no process drives {session} ({}): there is nothing to pause", listed.words())
        }
        RequestOutcome::Ended => {
            format!("{session} had come to its end before it could be paused: {}", listed.words())
        }
        RequestOutcome::Gone => {
            format!("the process that drove {session} is gone; everything up to there is recorded")
        }
        RequestOutcome::Left => format!("paused: {session}; what was under way is finished and recorded"),
    };
    report(settings, session, Control::Pause, heard, &line, state)
}

/// What became of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    /// No process drives the session.
    NotDriven,
    /// It ended by itself.
    Ended,
    /// The process ended without having heard of it.
    Gone,
    /// It left the session, as it was asked to.
    Left,
}

impl RequestOutcome {
    fn word(self) -> &'static str {
        match self {
            Self::NotDriven => "not_running",
            Self::Ended => "ended",
            Self::Gone => "gone",
            Self::Left => "left",
        }
    }
}

/// Asks the process that drives the session, and waits until it has left the session.
pub(super) async fn ask(
    settings: &Settings,
    target: &mut Target,
    control: Control,
) -> Result<RequestOutcome, Failure> {
    let lead = target.listed()?.lead().agent.clone();
    if !target.is_driven(&lead).await? {
        return Ok(RequestOutcome::NotDriven);
    }
    let controller = Controller::new(target.journal.clone(), Clock::system());
    let key = controller.ask(&lead, control).await?;
    if !settings.quiet {
        let what = control.word();
        stdio::tell(&format!("asked to {what}: {}; what is under way is finished first\n", target.session));
    }
    let left = async {
        while target.is_driven(&lead).await? {
            tokio::time::sleep(LOOK).await;
        }
        Ok::<(), Failure>(())
    };
    let Ok(left) = tokio::time::timeout(DRAIN + MARGIN, left).await else {
        let session = &target.session;
        let failure =
            Failure::failed(format!("{session} has been asked to {} and has not ended yet", control.word()));
        return Err(failure.hint(format!("to see what it does: `convoke sessions watch {session}`")));
    };
    left?;
    let heard = controller.is_heard(&lead, &key).await?;
    target.look(settings).await?;
    Ok(match target.listed()?.state() {
        State::Ended(_) => RequestOutcome::Ended,
        _ if heard => RequestOutcome::Left,
        _ => RequestOutcome::Gone,
    })
}

/// Says what became of it. Nothing was asked for on stdout but data for programs.
pub(super) fn report(
    settings: &Settings,
    session: &str,
    control: Control,
    heard: RequestOutcome,
    line: &str,
    state: State,
) -> Result<Exit, Failure> {
    let unfinished = matches!(state, State::Open | State::Waiting | State::Running);
    let resume = Naming::of(settings).resume(session).filter(|_| unfinished);
    if settings.output == OutputFormat::Json {
        let object = json!({
            "schema_version": 1,
            "run": session,
            "asked": control.word(),
            "came_to": heard.word(),
            "status": state.word(),
            "resume": resume,
        });
        stdio::put_json(&format!("{object:#}\n"))?;
    }
    stdio::tell(&format!("{line}\n"));
    if let Some(command) = resume.filter(|_| !settings.quiet) {
        stdio::tell(&format!("resume: {command}\n"));
    }
    Ok(Exit::Done)
}
