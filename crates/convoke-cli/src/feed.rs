//! Reads a session from its journal, from its beginning and on, for views that only look. It takes no lease
//! and changes nothing.

use std::collections::HashMap;

use convoke_journal::{Filter, Journal, Record, StreamId};
use convoke_kernel::{AgentId, Event, Ledger, ProgramEvent, RunEvent, RunId, SessionId};
use convoke_runtime::{Notice, TeamClient, TeamEvent};
use serde::Deserialize;

use crate::failure::Failure;

/// Reads what is new in the streams of a session, in the order in which it happened.
pub(crate) struct Feed {
    journal: Journal,
    session: SessionId,
    /// How far each stream has been read; `None` for those of other sessions.
    seen: HashMap<StreamId, Option<u64>>,
    /// The ledger as it was last told.
    ledger: Option<String>,
}

#[derive(Deserialize)]
struct Of {
    session: SessionId,
}

impl Feed {
    /// Reads this session from its beginning.
    pub(crate) fn new(journal: &Journal, session: &SessionId) -> Self {
        Self { journal: journal.clone(), session: session.clone(), seen: HashMap::new(), ledger: None }
    }

    /// The ledger, if it has moved since this was last asked.
    pub(crate) async fn ledger(&mut self) -> Result<Option<Notice>, Failure> {
        let state = self.journal.shared(&StreamId::from(&self.session)).await?;
        let moved = state != self.ledger;
        let ledger =
            state.as_deref().filter(|_| moved).and_then(|text| serde_json::from_str::<Ledger>(text).ok());
        self.ledger = state;
        Ok(ledger.map(|ledger| Notice::Ledger { session: self.session.clone(), ledger: Box::new(ledger) }))
    }

    /// What is new, in the order in which it happened.
    pub(crate) async fn read(&mut self) -> Result<Vec<Record>, Failure> {
        let mut dated: Vec<(u64, Record)> = Vec::new();
        for prefix in [AgentId::PREFIX, RunId::PREFIX] {
            let filter = Filter { prefix: Some(prefix.to_owned()), limit: None };
            for listing in self.journal.list(&filter).await?.into_iter().rev() {
                let known = self.seen.get(&listing.stream).copied();
                let after = match (known, &listing.summary) {
                    (Some(None), _) => continue,
                    (Some(Some(after)), _) => after,
                    (None, Some(text)) => {
                        let ours =
                            serde_json::from_str::<Of>(text).is_ok_and(|of| of.session == self.session);
                        self.seen.insert(listing.stream.clone(), ours.then_some(0));
                        if !ours {
                            continue;
                        }
                        0
                    }
                    // Nothing has been written to it yet.
                    (None, None) => continue,
                };
                if listing.seq <= after {
                    continue;
                }
                let mut at = 0;
                for record in self.journal.load(&listing.stream, after).await? {
                    // A clock that was set back does not change the order of a stream.
                    at = record.at.max(at);
                    self.seen.insert(listing.stream.clone(), Some(record.seq));
                    dated.push((at, record));
                }
            }
        }
        for stream in TeamClient::streams(&self.session) {
            let after = self.seen.get(&stream).copied().flatten().unwrap_or(0);
            for record in self.journal.load(&stream, after).await? {
                self.seen.insert(stream.clone(), Some(record.seq));
                dated.push((record.at, record));
            }
        }
        dated.sort_by_key(|(at, _)| *at);
        Ok(dated.into_iter().map(|(_, record)| record).collect())
    }
}

/// What a watcher would have been told; `None` for an event of a newer version.
pub(crate) fn notice(record: &Record) -> Option<Notice> {
    let seq = record.seq;
    let at = record.at;
    let text = &record.event;
    if let Some(event) = TeamEvent::read(record.stream.as_str(), text) {
        return Some(Notice::Team { stream: record.stream.to_string(), seq, at, event: Box::new(event) });
    }
    if let Ok(agent) = record.stream.as_str().parse::<AgentId>() {
        return Some(Notice::Recorded { agent, seq, at, event: Box::new(Event::decode(text).ok()?) });
    }
    let run: RunId = record.stream.as_str().parse().ok()?;
    match ProgramEvent::decode(text) {
        Ok(event) => Some(Notice::Program { run, seq, at, event: Box::new(event) }),
        Err(_) => Some(Notice::Run { run, seq, at, event: Box::new(RunEvent::decode(text).ok()?) }),
    }
}
