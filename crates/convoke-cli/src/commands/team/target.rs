//! Finds the session whose team is meant: the one that is named, or the newest of this directory that has a
//! team. It changes nothing.

use convoke_journal::Journal;
use convoke_kernel::{AgentId, Board, Roster, SessionId};
use convoke_runtime::{Clock, Ids, MemberRow, TeamClient};

use crate::args::nearest;
use crate::catalog::{self, Catalog, ListedSession, teams};
use crate::commands::sessions::no_journal;
use crate::failure::Failure;
use crate::keeping::Checkout;
use crate::settings::Settings;

/// The team that a command is about.
pub(crate) struct TeamTarget {
    pub(crate) team: TeamClient,
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
        let team = team_client(&journal);
        let catalog = Catalog::load(settings, Some(&journal)).await?;
        let listed = match given {
            Some(given) => catalog.find(given)?,
            None => newest(settings, &journal, &team, &catalog).await?,
        };
        let session = listed.session.clone();
        let lead = listed.lead().agent.clone();
        let driven = listed.agents.iter().any(|entry| entry.owner.is_some());
        Ok(Self { team, journal, session, lead, driven })
    }

    /// The member of this name.
    pub(crate) async fn member(&self, name: &str) -> Result<MemberRow, Failure> {
        let rows = self.team.members(&self.session).await?;
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

/// Reads and writes the teams of a journal.
pub(super) fn team_client(journal: &Journal) -> TeamClient {
    TeamClient::new(journal.clone(), Clock::system(), Ids::random())
}

/// The newest session of this directory that has teammates or tasks, else the newest.
async fn newest<'a>(
    settings: &Settings,
    journal: &Journal,
    team: &TeamClient,
    catalog: &'a Catalog,
) -> Result<&'a ListedSession, Failure> {
    let fits = |roster: &Roster, board: &Board| roster.members().count() > 1 || !board.tasks().is_empty();
    match newest_with(settings, journal, team, catalog, fits).await? {
        Some((listed, ..)) => Ok(listed),
        None => runs_here(settings, catalog).next().ok_or_else(|| no_run(settings)),
    }
}

/// The newest session of this directory with such a team.
pub(super) async fn newest_with<'a>(
    settings: &Settings,
    journal: &Journal,
    team: &TeamClient,
    catalog: &'a Catalog,
    fits: impl Fn(&Roster, &Board) -> bool,
) -> Result<Option<(&'a ListedSession, Roster, Board)>, Failure> {
    let teams = teams(journal).await?;
    for listed in runs_here(settings, catalog).filter(|listed| teams.contains(listed.session.as_str())) {
        let roster = team.roster(&listed.session).await?;
        let board = team.board(&listed.session).await?;
        if fits(&roster, &board) {
            return Ok(Some((listed, roster, board)));
        }
    }
    Ok(None)
}

fn runs_here<'a>(settings: &Settings, catalog: &'a Catalog) -> impl Iterator<Item = &'a ListedSession> {
    catalog.sessions.iter().filter(|listed| Checkout::of_listed(settings, listed) == settings.dir)
}

fn no_run(settings: &Settings) -> Failure {
    Failure::usage(format!("no session was ever started in {}", settings.dir.display()))
        .hint("name one: `convoke sessions list --all` shows those of other directories")
}
