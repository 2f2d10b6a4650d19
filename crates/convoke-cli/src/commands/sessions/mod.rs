//! `convoke sessions`: what is in the journal, listed, shown, forked, exported, taken back and removed; and
//! what another process drives, watched, paused, stopped and tried again.

mod diff;
mod event_printer;
mod export;
mod fork;
mod list;
mod overview;
mod pause;
mod program;
mod prune;
mod retry;
mod show;
mod stop;
mod target;
mod undo;
mod watch;

use convoke_journal::Record;
use convoke_view::event_line;

use crate::args::SessionsCommand;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;

/// Does what is asked about sessions.
pub(crate) async fn run(settings: &Settings, command: &SessionsCommand) -> Result<Exit, Failure> {
    match command {
        SessionsCommand::List(args) => list::run(settings, args).await,
        SessionsCommand::Show(args) => show::run(settings, args).await,
        SessionsCommand::Watch(args) => watch::run(settings, args).await,
        SessionsCommand::Pause(args) => pause::run(settings, args).await,
        SessionsCommand::Stop(args) => stop::run(settings, args).await,
        SessionsCommand::Retry(args) => retry::run(settings, args).await,
        SessionsCommand::Fork(args) => fork::run(settings, args).await,
        SessionsCommand::Export(args) => export::run(settings, args).await,
        SessionsCommand::Diff(args) => diff::run(settings, args).await,
        SessionsCommand::Undo(args) => undo::run(settings, args).await,
        SessionsCommand::Prune(args) => prune::run(settings, args).await,
    }
}

/// An event in its envelope, as the journal has it.
fn line(record: &Record) -> String {
    event_line(record.stream.as_str(), record.seq, record.at, &record.event) + "\n"
}

/// A session that is not there because there is no journal.
pub(super) fn no_journal(settings: &Settings, given: &str) -> Failure {
    Failure::usage(format!("there is no session '{given}': there is no journal at {} yet", settings.journal))
        .hint("--journal or ORCH_JOURNAL names another one")
}
