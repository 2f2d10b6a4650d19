//! The shared streams of a team: how they are called, how they are read, and how entries become changes that
//! the journal makes in its own transaction. What follows from an entry is the kernel's business; nothing is
//! decided here.

use convoke_journal::{Change, Changed, Journal, KeyedInput, StreamId, Update};
use convoke_kernel::{AgentId, Board, BoardEntry, Letter, LetterHeader, Roster, RosterEntry, SessionId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::inputs::Waiting;

/// The stream of a session's roster.
pub(crate) fn roster_stream(session: &SessionId) -> StreamId {
    named("roster", session)
}

/// The stream of a session's board.
pub(crate) fn board_stream(session: &SessionId) -> StreamId {
    named("board", session)
}

/// The stream whose lease people and scripts take to change several things at once; nothing is ever written
/// to it. Its name is one that processes of earlier versions know too, so it stays.
pub(crate) fn client_stream(session: &SessionId) -> StreamId {
    named("desk", session)
}

fn named(what: &str, session: &SessionId) -> StreamId {
    // The characters of an id are all legal in the name of a stream.
    StreamId::new(format!("{what}:{session}")).unwrap_or_else(|error| unreachable!("{error}"))
}

/// The roster as the journal has it; empty if there is none.
pub(crate) async fn roster(journal: &Journal, session: &SessionId) -> Result<Roster, Error> {
    read(journal, &roster_stream(session)).await
}

/// The board as the journal has it; empty if there is none.
pub(crate) async fn board(journal: &Journal, session: &SessionId) -> Result<Board, Error> {
    read(journal, &board_stream(session)).await
}

async fn read<S: Default + DeserializeOwned>(journal: &Journal, stream: &StreamId) -> Result<S, Error> {
    match journal.shared(stream).await? {
        Some(state) => Ok(serde_json::from_str(&state)?),
        None => Ok(S::default()),
    }
}

/// Entries of the roster, to be made one after the other in the transaction of an append. A refusal declines
/// all of it, in its own words. So does a reader whose name belongs to another agent by now: a letter must
/// not reach the stream of the agent that had the name before.
pub(crate) fn letters_update(
    session: &SessionId,
    readers: Vec<(String, AgentId)>,
    entries: Vec<RosterEntry>,
    at: u64,
) -> Update {
    let change = Change::new(move |state| {
        change(state, at, &entries, |roster: &Roster| {
            match readers.iter().find(|reader| is_another(roster, reader)) {
                Some((name, _)) => {
                    Err(format!("{name} is another teammate than a moment ago; nothing was sent: try again"))
                }
                None => Ok(()),
            }
        })
    });
    Update { stream: roster_stream(session), change }
}

fn is_another(roster: &Roster, (name, agent): &(String, AgentId)) -> bool {
    roster.member(name).is_some_and(|member| member.agent != *agent)
}

/// Entries of the board, to be made one after the other in the transaction of an append. A refusal declines
/// all of it, in its own words.
pub(crate) fn board_update(session: &SessionId, entries: Vec<BoardEntry>, at: u64) -> Update {
    Update {
        stream: board_stream(session),
        change: Change::new(move |state| change(state, at, &entries, |_: &Board| Ok(()))),
    }
}

/// A state that entries change.
pub(crate) trait Kept: Default + Serialize + DeserializeOwned {
    /// What is to be done to it.
    type Entry;

    /// Makes an entry, and adds what follows from it to the events.
    fn make(&mut self, entry: &Self::Entry, at: u64, events: &mut Vec<String>) -> Result<(), String>;
}

impl Kept for Roster {
    type Entry = RosterEntry;

    fn make(&mut self, entry: &RosterEntry, at: u64, events: &mut Vec<String>) -> Result<(), String> {
        for event in self.decide(entry, at).map_err(|refusal| refusal.to_string())? {
            self.apply(&event, at);
            events.push(event.encode().map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

impl Kept for Board {
    type Entry = BoardEntry;

    fn make(&mut self, entry: &BoardEntry, at: u64, events: &mut Vec<String>) -> Result<(), String> {
        for event in self.decide(entry, at).map_err(|refusal| refusal.to_string())? {
            self.apply(&event, at);
            events.push(event.encode().map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

fn change<S: Kept>(
    state: Option<&str>,
    at: u64,
    entries: &[S::Entry],
    check: impl Fn(&S) -> Result<(), String>,
) -> Result<Changed, String> {
    let mut kept: S = match state {
        Some(state) => {
            serde_json::from_str(state).map_err(|error| format!("the team cannot be read: {error}"))?
        }
        None => S::default(),
    };
    check(&kept)?;
    let events = foresee(&mut kept, entries, at)?;
    Ok(Changed { state: serde_json::to_string(&kept).map_err(|error| error.to_string())?, events })
}

/// Makes entries on a state in hand, and says what events they are: before anything is committed, to see what
/// would come of it.
pub(crate) fn foresee<S: Kept>(kept: &mut S, entries: &[S::Entry], at: u64) -> Result<Vec<String>, String> {
    let mut events = Vec::new();
    for entry in entries {
        kept.make(entry, at, &mut events)?;
    }
    Ok(events)
}

/// What the journal declined because the roster or the board said no is told in their words.
pub(crate) fn refused(error: convoke_journal::Error) -> Error {
    match error {
        convoke_journal::Error::Declined { stream, reason } if is_of_a_team(&stream) => {
            Error::TeamRefused(reason)
        }
        other => Error::Journal(other),
    }
}

fn is_of_a_team(stream: &StreamId) -> bool {
    ["roster:", "board:"].iter().any(|kind| stream.as_str().starts_with(kind))
}

/// The roster's entry for a letter that is sent.
pub(crate) fn post(letter: &Letter) -> RosterEntry {
    let Letter { id, from, to, kind, urgent, .. } = letter.clone();
    RosterEntry::Post(LetterHeader { id, from, to, kind, urgent })
}

/// A letter as its reader's input.
pub(crate) fn letter_input(reader: &AgentId, letter: &Letter) -> Result<KeyedInput, Error> {
    let body = serde_json::to_string(&Waiting { letter: Some(letter.clone()), ..Waiting::default() })?;
    Ok(KeyedInput { stream: StreamId::from(reader), key: letter.id.to_string(), body })
}

/// The letters that wait for an agent, in the order they are to be read. Looking does not consume; what
/// cannot be read is passed over.
pub(crate) async fn waiting_letters(journal: &Journal, reader: &AgentId) -> Result<Vec<Letter>, Error> {
    let inputs = journal.inputs(&StreamId::from(reader)).await?;
    let letter = |input: KeyedInput| serde_json::from_str::<Waiting>(&input.body).ok()?.letter;
    Ok(convoke_kernel::in_order(inputs.into_iter().filter_map(letter).collect()))
}

#[cfg(test)]
mod tests {
    use convoke_journal::{Location, Options, Process};
    use convoke_kernel::{LEAD, LetterKind, MessageId};

    use super::*;

    #[tokio::test]
    async fn w17_a_letter_for_one_bearer_of_a_name_is_not_counted_for_the_next() {
        let journal = Journal::open(Location::Memory, Options::new(Process::current([7; 10]))).await.unwrap();
        let session = SessionId::from_bits([1; 10]);
        let lead = AgentId::from_bits([2; 10]);
        let old = AgentId::from_bits([3; 10]);
        let new = AgentId::from_bits([4; 10]);
        let spawn = |agent: &AgentId| RosterEntry::Spawn {
            name: "alice".parse().unwrap(),
            role: "coder".to_owned(),
            agent: agent.clone(),
            requires_plan: false,
            by: LEAD.to_owned(),
        };
        let stop = RosterEntry::Stop { name: "alice".to_owned(), why: "done".to_owned() };
        let entries = vec![RosterEntry::Open { lead }, spawn(&old), stop, spawn(&new)];
        let update = letters_update(&session, Vec::new(), entries, 5);
        journal.update(&update.stream, 5, &update.change).await.unwrap();
        let letter = RosterEntry::Post(LetterHeader {
            id: MessageId::from_bits([5; 10]),
            from: LEAD.to_owned(),
            to: "alice".to_owned(),
            kind: LetterKind::Message,
            urgent: false,
        });
        let post = async |reader: &AgentId| {
            let readers = vec![("alice".to_owned(), reader.clone())];
            let update = letters_update(&session, readers, vec![letter.clone()], 6);
            journal.update(&update.stream, 6, &update.change).await.map(drop).map_err(refused)
        };
        let text = post(&old).await.unwrap_err().to_string();
        assert!(text.starts_with("alice is another teammate"), "{text}");
        assert_eq!(roster(&journal, &session).await.unwrap().member("alice").unwrap().waiting, 0);
        post(&new).await.unwrap();
        assert_eq!(roster(&journal, &session).await.unwrap().member("alice").unwrap().waiting, 1);
    }
}
