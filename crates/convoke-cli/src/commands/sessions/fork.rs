//! `convoke sessions fork`: writes a new session into the journal that goes on from where a session stood.
//! Nothing is sent, and a process that drives the session is not disturbed. It needs the journal and no
//! model.

use convoke_runtime::{Clock, Controller, Error, Ids};
use serde_json::json;

use super::target::Target;
use crate::again::Naming;
use crate::args::{ForkArgs, OutputFormat};
use crate::failure::{Exit, Failure};
use crate::render::{clean, first_line};
use crate::settings::Settings;
use crate::stdio;

/// Forks a session.
pub(super) async fn run(settings: &Settings, args: &ForkArgs) -> Result<Exit, Failure> {
    let target = Target::find(settings, &args.session).await?;
    let listed = target.listed()?;
    let lead = listed.lead();
    settings.check_prices(&[&lead.summary.model])?;
    let controller = Controller::new(target.journal.clone(), Clock::system());
    let forked = controller.fork(&Ids::random(), &lead.agent, args.at, settings.caps).await;
    let (agent, session) = forked.map_err(|error| match error {
        Error::ForkRefused(why) => Failure::usage(why.to_string())
            .hint(format!("`convoke sessions show {}` tells what was said in it", listed.session)),
        error => error.into(),
    })?;
    let naming = Naming::of(settings);
    let go_on = naming.command(&format!("session {session}"));
    let object = json!({
        "schema_version": 1,
        "run": session.as_str(),
        "agent": agent.as_str(),
        "forked_from": listed.session.as_str(),
        "at": args.at,
        "go_on": go_on,
    });
    match settings.output {
        OutputFormat::Text => stdio::put_more(&format!("{session}\n"))?,
        OutputFormat::Json => stdio::put_json(&format!("{object:#}\n"))?,
        OutputFormat::Jsonl => stdio::put_json(&format!("{object}\n"))?,
    };
    if !settings.quiet {
        let upto = args.at.map(|at| format!(" up to exchange {at}")).unwrap_or_default();
        stdio::tell(&format!(
            "forked {}{upto}: {}\n",
            listed.session,
            clean(&first_line(&lead.summary.task, 100))
        ));
        stdio::tell("its team, its tasks and its runs in the background stay with it\n");
        if let Some(command) = go_on {
            stdio::tell(&format!("go on: {command}\n"));
        }
        if let Some(command) = naming.resume(session.as_str()) {
            stdio::tell(&format!("or in a script: {command} --say TEXT\n"));
        }
    }
    Ok(Exit::Done)
}
