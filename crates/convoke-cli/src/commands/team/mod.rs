//! `convoke team`: the members of a session's team and what they do, and a person's word to them. Everything
//! goes through the journal, so it is the same whether or not another process drives the session.

mod addressed;
mod asks;
mod host;
mod labels;
mod left;
mod list;
mod show;
mod target;

pub(super) use addressed::check as check_addressed;
pub(super) use labels::{kind_of, owner_of, said, short, state_of, stdin_or, waits_for};
pub(super) use left::left;
pub(super) use target::TeamTarget;

use crate::args::TeamCommand;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;

/// Does what is asked about a team.
pub(crate) async fn run(settings: &Settings, command: TeamCommand) -> Result<Exit, Failure> {
    match command {
        TeamCommand::List(args) => list::run(settings, args.given()).await,
        TeamCommand::Show(args) => show::run(settings, &args.name, args.of.session.as_deref()).await,
        TeamCommand::Stop(args) => asks::stop(settings, &args).await,
        TeamCommand::Plan(args) => asks::plan(settings, &args).await,
        TeamCommand::Compact(args) => asks::compact(settings, &args).await,
        TeamCommand::Host(args) => host::run(settings, *args).await,
    }
}
