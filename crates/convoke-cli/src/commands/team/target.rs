//! Finds the session whose team is meant: the one that is named, or the newest of this directory that has a
//! team. It changes nothing.

use convoke_journal::Journal;
use convoke_kernel::{AgentId, Board, Roster, SessionId};
use convoke_runtime::{Clock, Ids, MemberRow, TeamClient};

use crate::args::nearest;
use crate::catalog::{self, Catalog, Run, teams};
use crate::commands::sessions::no_journal;
use crate::failure::Failure;
use crate::keeping::Checkout;
use crate::settings::Settings;

/// The team that a command is about.
pub(crate) struct TeamTarget {
    pub(crate) desk: TeamClient,
    pub(crate) journal: Journal,
    pub(crate) session: SessionId,
    pub(crate) lead: AgentId,
    /// Whether a living process drives any of its agents.
    pub(crate) driven: bool,
}

impl TeamTarget {
    /// The team of the session that is named, or of the newest one here.
    pub(crate) async fn find(settings: &Settings, given: Option<&str>) -> Result<Self, Failure> {
        let Some(journal) = catalog::open_existing(settings).await? else {
            return Err(given.map_or_else(|| no_run(settings), |given| no_journal(settings, given)));
        };
        let desk = desk(&journal);
        let catalog = Catalog::load(settings, Some(&journal)).await?;
        let run = match given {
            Some(given) => catalog.find(given)?,
            None => newest(settings, &journal, &desk, &catalog).await?,
        };
        let session = run.session.clone();
        let lead = run.lead().agent.clone();
        let driven = run.agents.iter().any(|entry| entry.owner.is_some());
        Ok(Self { desk, journal, session, lead, driven })
    }

    /// The member of this name.
    pub(crate) async fn member(&self, name: &str) -> Result<MemberRow, Failure> {
        let rows = self.desk.members(&self.session).await?;
        let names: Vec<String> = rows.iter().map(|row| row.member.name.clone()).collect();
        rows.into_iter().find(|row| row.member.name == name).ok_or_else(|| self.nobody(name, &names))
    }

    fn nobody(&self, name: &str, names: &[String]) -> Failure {
        let failure = Failure::failed(format!("there is no '{name}' in the team of {}", self.session));
        if names.is_empty() {
            return failure.hint("it has no team: its lead works alone");
        }
        let failure = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => failure.hint(format!("the nearest name is {near}")),
            None => failure,
        };
        failure.hint(format!("its members: {}", names.join(", ")))
    }
}

/// The desk of a journal.
pub(super) fn desk(journal: &Journal) -> TeamClient {
    TeamClient::new(journal.clone(), Clock::system(), Ids::random())
}

/// The newest session of this directory that has teammates or tasks, else the newest.
async fn newest<'a>(
    settings: &Settings,
    journal: &Journal,
    desk: &TeamClient,
    catalog: &'a Catalog,
) -> Result<&'a Run, Failure> {
    let fits = |roster: &Roster, board: &Board| roster.members().count() > 1 || !board.tasks().is_empty();
    match newest_with(settings, journal, desk, catalog, fits).await? {
        Some((run, ..)) => Ok(run),
        None => runs_here(settings, catalog).next().ok_or_else(|| no_run(settings)),
    }
}

/// The newest session of this directory with such a team.
pub(super) async fn newest_with<'a>(
    settings: &Settings,
    journal: &Journal,
    desk: &TeamClient,
    catalog: &'a Catalog,
    fits: impl Fn(&Roster, &Board) -> bool,
) -> Result<Option<(&'a Run, Roster, Board)>, Failure> {
    let teams = teams(journal).await?;
    for run in runs_here(settings, catalog).filter(|run| teams.contains(run.session.as_str())) {
        let roster = desk.roster(&run.session).await?;
        let board = desk.board(&run.session).await?;
        if fits(&roster, &board) {
            return Ok(Some((run, roster, board)));
        }
    }
    Ok(None)
}

fn runs_here<'a>(settings: &Settings, catalog: &'a Catalog) -> impl Iterator<Item = &'a Run> {
    catalog.runs.iter().filter(|run| Checkout::of_run(settings, run) == settings.dir)
}

fn no_run(settings: &Settings) -> Failure {
    Failure::usage(format!("no session was ever started in {}", settings.dir.display()))
        .hint("name one: `convoke sessions list --all` shows those of other directories")
}
