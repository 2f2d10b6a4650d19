//! `convoke team host`: drives the teammates of a session from this process, on this machine or another,
//! until there is nothing left for them to do or a signal ends it. The lead is left to the process that
//! drives it. It says which teammates were driven, and where they stand at the end.

use std::path::Path;

use convoke_kernel::LEAD;
use convoke_runtime::{MemberRow, Stopper};
use serde_json::{Value, json};

use super::list;
use super::target::team_client;
use crate::args::{OutputFormat, TeamHostArgs};
use crate::catalog::{self, Catalog, ListedSession};
use crate::commands::drive::say;
use crate::commands::{ask, resume, sessions, trust};
use crate::confine;
use crate::failure::{Exit, Failure};
use crate::keeping::{self, Checkout, LeadTree};
use crate::lead::Lead;
use crate::open::{self, Opened};
use crate::render::{Look, Progress, Screen, clean};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::stdio;

/// Drives the teammates of a session.
pub(super) async fn run(settings: &Settings, args: TeamHostArgs) -> Result<Exit, Failure> {
    let mut settings = settings.clone();
    (settings.team.claim_ttl, settings.team.lease) = (args.claim_ttl, args.lease);
    let settings = &settings;
    let Some(journal) = catalog::open_existing(settings).await? else {
        return Err(sessions::no_journal(settings, &args.session));
    };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let listed = catalog.find(&args.session)?;
    let team = team_client(&journal);
    let rows = team.members(&listed.session).await?;
    let only = chosen(listed.session.as_str(), &rows, args.only)?;
    let look = Look::of(settings);
    let told = Lead::read(&journal, &listed.lead().agent).await?;
    let opened = opened(settings, look, listed, &told, journal).await?;
    let names: Vec<&str> = match &only {
        Some(only) => only.iter().map(String::as_str).collect(),
        None => rows.iter().map(|row| row.member.name.as_str()).filter(|name| *name != LEAD).collect(),
    };
    let who = if names.is_empty() { "every member that joins".to_owned() } else { names.join(", ") };
    say(
        settings,
        &look.fit(&clean(&format!("hosting the team of {}: {who}; a signal ends it", listed.session))),
    );
    let (stopper, stop) = Stopper::new();
    let lead = listed.lead().agent.clone();
    let progress = Progress::from_summary(&listed.lead().summary);
    let terminal = settings.terminal.clone();
    let screen =
        Screen::start(look, terminal, &opened.runtime, opened.clock.clone(), lead.clone(), progress).await;
    let signals = Signals::listen(stopper, screen.messages(), settings.throwaway.clone())?;
    let hosted = opened.runtime.host(&lead, only, stop, Some(screen.watcher())).await;
    screen.close().await;
    let rows = team.members(&listed.session).await;
    // The leases go back at once, so that the next process need not find out that this one is gone.
    let _ = opened.journal.close().await;
    hosted?;
    let exit = signals.caught().map_or(Exit::Done, |caught| caught.exit());
    report(settings, listed.session.as_str(), &rows?, signals.caught().map(|caught| caught.by().word()))?;
    Ok(exit)
}

/// The teammates that are to be driven; `None` is all of them, also those that join later.
fn chosen(session: &str, rows: &[MemberRow], only: Vec<String>) -> Result<Option<Vec<String>>, Failure> {
    let names: Vec<&str> =
        rows.iter().map(|row| row.member.name.as_str()).filter(|name| *name != LEAD).collect();
    let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) else {
        return Ok(Some(only).filter(|only| !only.is_empty()));
    };
    let failure = Failure::failed(format!("--only: there is no teammate '{unknown}' in {session}"));
    Err(match names.is_empty() {
        true => failure.hint("it has no teammates yet; without --only those that join are driven"),
        false => failure.hint(format!("its teammates: {}", names.join(", "))),
    })
}

/// A runtime that can go on where the session was begun, as a resume would have it.
async fn opened(
    settings: &Settings,
    look: Look,
    listed: &ListedSession,
    told: &Lead,
    journal: convoke_journal::Journal,
) -> Result<Opened, Failure> {
    let dir = Path::new(&listed.lead().summary.dir);
    let source = resume::source(settings, listed)?;
    // Before anything looks at the directory: it may have been taken away when its content was stored.
    LeadTree::again(settings, dir).await?;
    let recorded = told.spec.as_ref().map(|spec| spec.confinement.clone()).unwrap_or_default();
    let held = confine::hold_again(settings, dir, &recorded).await?;
    let kept = keeping::places_for(settings, dir).await;
    let rules = told.spec.as_ref().map(|spec| spec.approvals.clone()).unwrap_or_default();
    let library = trust::library_of(settings, look, &Checkout::of_listed(settings, listed), told)?;
    let asker = ask::asker(look, settings, &rules);
    open::runtime(settings, journal, &source, asker, held.confine, kept.ok(), library).await
}

fn report(
    settings: &Settings,
    session: &str,
    rows: &[MemberRow],
    stopped_by: Option<&str>,
) -> Result<(), Failure> {
    match settings.output {
        OutputFormat::Json => {
            let members: Vec<Value> = rows.iter().map(list::object).collect();
            let all =
                json!({"schema_version": 1, "run": session, "members": members, "stopped_by": stopped_by});
            stdio::put_json(&format!("{all:#}\n"))?;
        }
        // The events were printed as they happened.
        OutputFormat::Jsonl => {}
        OutputFormat::Text => stdio::put(&list::table(rows).render(stdio::width()))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_names_everybody_is_driven_and_an_unknown_name_is_refused() {
        assert_eq!(chosen("s_1", &[], Vec::new()).unwrap(), None);
        let refused = chosen("s_1", &[], vec!["carol".to_owned()]).unwrap_err();
        assert_eq!(refused.message, "--only: there is no teammate 'carol' in s_1");
    }
}
