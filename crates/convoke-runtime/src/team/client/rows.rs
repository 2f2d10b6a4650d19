//! What people, the lead and capsules are shown of members and tasks. Reads the journal and changes nothing.

use std::collections::BTreeSet;

use convoke_journal::{Filter, Journal, Listing, StreamId};
use convoke_kernel::{
    Board, BoardEvent, Event, Member, MemberState, MemberView, RequestKind, Roster, SessionId, Status,
    Summary, Task, TaskId, state_of,
};

use crate::error::Error;
use crate::team::shared;

/// One member, and what it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// What the roster says of it.
    pub member: Member,
    /// What it is doing.
    pub state: MemberState,
    /// Why, if that is not plain from the word.
    pub why: Option<String>,
    /// The task in its hands.
    pub task: Option<Task>,
    /// Its agent's row in the listing; absent before it has been driven.
    pub summary: Option<Summary>,
}

/// The members and what they are doing, the lead first.
pub(crate) async fn rows(journal: &Journal, roster: &Roster, board: &Board) -> Result<Vec<MemberRow>, Error> {
    let requests = roster.open_requests();
    let mut rows = Vec::new();
    for member in roster.members() {
        let stream = StreamId::from(&member.agent);
        // One row each: a journal may hold far more agents than a team has members.
        let filter = Filter { prefix: Some(stream.as_str().to_owned()), limit: Some(1) };
        let listing = journal.list(&filter).await?.pop();
        let summary =
            listing.as_ref().and_then(|listing| serde_json::from_str(listing.summary.as_ref()?).ok());
        let status = summary.as_ref().map(|summary: &Summary| summary.status);
        let asks = match &listing {
            Some(listing) if status == Some(Status::Open) => asks_a_person(journal, listing).await?,
            _ => false,
        };
        let plans =
            |from: &str| requests.iter().any(|(_, ask)| ask.kind == RequestKind::Plan && ask.from == from);
        let view = MemberView {
            status,
            driven: listing.is_some_and(|listing| listing.owner.is_some()),
            asks,
            plan_pending: plans(&member.name),
        };
        let (state, why) = state_of(member, view);
        let task = board.held_by(&member.agent).cloned();
        rows.push(MemberRow { member: member.clone(), state, why, task, summary });
    }
    Ok(rows)
}

/// As many events as can follow a question that is still open, and some more.
const LAST_EVENTS: u64 = 256;

/// Whether the last events of an agent hold a question to a person that has no answer. The whole history is
/// not folded for it.
async fn asks_a_person(journal: &Journal, listing: &Listing) -> Result<bool, Error> {
    let mut open = BTreeSet::new();
    for record in journal.load(&listing.stream, listing.seq.saturating_sub(LAST_EVENTS)).await? {
        match Event::decode(&record.event) {
            Ok(Event::ApprovalAsked(e)) => drop(open.insert(e.id)),
            Ok(Event::ApprovalGiven(e)) => drop(open.remove(&e.id)),
            Ok(Event::ToolFinished(e)) => drop(open.remove(&e.id)),
            _ => {}
        }
    }
    Ok(!open.is_empty())
}

/// What has happened to a task and when, its holders' signs of life left out.
pub(crate) async fn history(
    journal: &Journal,
    session: &SessionId,
    task: &TaskId,
) -> Result<Vec<(u64, BoardEvent)>, Error> {
    let stream = shared::board_stream(session);
    let mut events = Vec::new();
    for record in journal.load(&stream, 0).await? {
        let unreadable = |cause| Error::TeamRefused(format!("event {} of {stream}: {cause}", record.seq));
        let event = BoardEvent::decode(&record.event).map_err(unreadable)?;
        if about(&event) == Some(task) {
            events.push((record.at, event));
        }
    }
    Ok(events)
}

fn about(event: &BoardEvent) -> Option<&TaskId> {
    match event {
        BoardEvent::TaskCreated(e) => Some(&e.task),
        BoardEvent::TaskEdited(e) => Some(&e.task),
        BoardEvent::TaskClaimed(e) => Some(&e.task),
        BoardEvent::TaskRenewed(_) => None,
        BoardEvent::TaskOffered(e) => Some(&e.task),
        BoardEvent::TaskReleased(e) => Some(&e.task),
        BoardEvent::TaskFinished(e) => Some(&e.task),
        BoardEvent::TaskFailed(e) => Some(&e.task),
        BoardEvent::TaskRetried(e) => Some(&e.task),
    }
}
