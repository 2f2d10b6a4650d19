//! One round of the circle: decide, commit, fold, tell. What belongs to it beside the agent's own events (the
//! ledger, the roster, the board, letters for others) is committed in the same append, so that none of it is
//! ever without the rest.

use convoke_journal::{KeyedInput, StreamId};
use convoke_kernel::{
    BoardEntry, Event, FailureKind, Input, Letter, Outcome, Pace, Room, RosterEntry, ToolResult,
};

use super::Driver;
use crate::accounts;
use crate::error::Error;
use crate::inputs::Waiting;
use crate::session_ledger::Entry;
use crate::spool;
use crate::stream_writer::{Commit, Shared, SpoolRule};
use crate::team::{Act, Starts, shared};

/// What is committed with an input's events.
#[derive(Default)]
pub(crate) struct CommitExtras {
    /// Inputs that are dealt with.
    pub(crate) acks: Vec<String>,
    /// What a request was granted.
    pub(crate) room: Option<Room>,
    /// What is done to the roster; letters are posted beside it.
    pub(crate) roster: Vec<RosterEntry>,
    /// What is done to the board.
    pub(crate) board: Vec<BoardEntry>,
    /// What is sent.
    pub(crate) letters: Vec<Letter>,
    /// What is put back into the agent's own queue.
    pub(crate) inputs: Vec<KeyedInput>,
    /// The agents that begin to exist.
    pub(crate) starts: Vec<Starts>,
    /// Whether what the ledger holds for the agent is given back, because it will not go on.
    pub(crate) releases: bool,
}

impl CommitExtras {
    pub(crate) fn acks(acks: Vec<String>) -> Self {
        Self { acks, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        let team = self.roster.is_empty() && self.board.is_empty() && self.letters.is_empty();
        self.acks.is_empty() && team && self.inputs.is_empty() && self.starts.is_empty()
    }

    /// Whether the roster or the board could say no to it.
    fn can_be_refused(&self) -> bool {
        !(self.roster.is_empty()
            && self.board.is_empty()
            && self.letters.is_empty()
            && self.starts.is_empty())
    }
}

impl Driver {
    /// Takes an input, reads letters that came meanwhile, and begins what follows.
    pub(crate) async fn input(&mut self, input: Input, extras: CommitExtras) -> Result<(), Error> {
        // Boxed: it is the largest of all that the driver waits for, and stands in most of it.
        Box::pin(self.commit(input, extras)).await?;
        // As many letters as are read at once, and no more before the next turn: a history has to stay one
        // that can be sent.
        if self.pace == Pace::Go
            && let Some((mail, extras)) = self.mail_now().await?
        {
            Box::pin(self.commit(mail, extras)).await?;
        }
        // What was decided is begun at once: a stop in between would leave it decided and never done, and the
        // next resume would have to call its outcome unknown.
        if self.pace == Pace::Go {
            self.start_effects();
            // What was urgent before a command began still is.
            self.heed_urgent();
        }
        Ok(())
    }

    /// Records the result of a call about the team. If the store declines it, the refusal is the result.
    pub(crate) async fn acted(&mut self, id: String, act: Act) -> Result<(), Error> {
        let Act { result, roster, board, letters, starts } = act;
        let extras = CommitExtras { roster, board, letters, starts, ..CommitExtras::default() };
        let done = self.input(Input::ToolDone { id: id.clone(), result }, extras).await;
        match done {
            Err(Error::Journal(convoke_journal::Error::Declined { reason, .. })) => {
                let result = ToolResult::refused(format!("Not done: {reason}"));
                self.input(Input::ToolDone { id, result }, CommitExtras::default()).await
            }
            other => other,
        }
    }

    pub(super) async fn commit(&mut self, input: Input, mut extras: CommitExtras) -> Result<(), Error> {
        let at = self.config.clock.now();
        let events = self.agent.decide(input, at, self.pace)?;
        let called = events.iter().any(|event| matches!(event, Event::ModelCalled(_)));
        if extras.room.is_some() && !called {
            self.permit = None;
            self.session.ledger.withdraw(self.id.as_str());
        }
        let refusable = extras.can_be_refused();
        self.follow(&events, at, &mut extras);
        if events.is_empty() && extras.is_empty() {
            return Ok(());
        }
        let summary = self.summary_after(&events, at)?;
        let mut commit = self.carry(Commit::new(at, events)?, extras)?;
        commit.batch.summary = summary;
        // What the roster or the board can refuse was not sent, so the call is not done: the next driver of
        // the agent makes it again.
        let keep = if refusable { SpoolRule::Nothing } else { SpoolRule::Outcome };
        match self.write(&mut commit, keep).await {
            Err(Error::Journal(convoke_journal::Error::Declined { .. })) if called => self.ask_again().await,
            Err(Error::Journal(cause)) if keep == SpoolRule::Outcome => {
                let stream = self.writer.stream();
                let outcome = (commit.events.as_slice(), &commit.batch);
                let seq = self.writer.seq();
                Err(spool::unrecorded(&self.config.spools, stream, seq, &self.agent, cause, outcome))
            }
            done => done,
        }
    }

    /// Appends and folds.
    async fn write(&mut self, commit: &mut Commit<Event>, keep: SpoolRule) -> Result<(), Error> {
        let at = commit.batch.at;
        let Self { writer, agent, id, gave_up, words_wait, .. } = self;
        let fold = |events: &[Event], first: u64| {
            for (event, seq) in events.iter().zip(first..) {
                let bad = |cause| Error::BadHistory { agent: id.clone(), seq, cause };
                agent.apply(event, at).map_err(bad)?;
            }
            *gave_up = events.iter().fold(*gave_up, |gave_up, event| match event {
                // Words that are said to the agent let letters in again.
                Event::ExchangeOpened(e) => {
                    gave_up && !(e.letters.is_empty() && e.work.is_none() && e.notice.is_none())
                }
                Event::ExchangeStopped(_) => true,
                Event::ExchangeClosed(e) => {
                    gave_up || e.outcome.failure().is_some() && !agent.was_spoken_to()
                }
                _ => gave_up,
            });
            let fails_again =
                |outcome: &Outcome| outcome.failure().is_some_and(FailureKind::would_fail_again);
            *words_wait |= events
                .iter()
                .any(|event| matches!(event, Event::ExchangeClosed(e) if fails_again(&e.outcome)));
            Ok(())
        };
        writer.commit(commit, keep, fold).await
    }

    fn summary_after(&self, events: &[Event], at: u64) -> Result<Option<String>, Error> {
        let bad = |cause| Error::BadHistory { agent: self.id.clone(), seq: self.writer.seq() + 1, cause };
        let summary = self.agent.summary_after(events, at).map_err(bad)?;
        Ok(summary.map(|summary| serde_json::to_string(&summary)).transpose()?)
    }

    /// Adds what these events and what belongs to them mean for others: the shared streams, and the inputs of
    /// other agents.
    fn carry(&self, mut commit: Commit<Event>, extras: CommitExtras) -> Result<Commit<Event>, Error> {
        let at = commit.batch.at;
        let ledger = self.session.ledger.ledger();
        let mut entries = accounts::entries(&self.id, &self.agent, &commit.events, extras.room, &ledger);
        let admit = |starts: &Starts| Entry::Admit { run: starts.agent.to_string(), count: 1 };
        entries.extend(extras.starts.iter().map(admit));
        entries.extend(extras.releases.then(|| Entry::Release { agent: self.id.to_string() }));
        commit.enter(&self.session, entries);
        if !extras.roster.is_empty() || !extras.letters.is_empty() {
            let open = RosterEntry::Open { lead: self.session.lead.clone() };
            let posts = extras.letters.iter().map(shared::post);
            let entries = std::iter::once(open).chain(extras.roster.iter().cloned()).chain(posts).collect();
            let readers = self.readers(&extras.letters);
            commit.update(Shared::Roster, shared::letters_update(&self.session.id, readers, entries, at));
        }
        if !extras.board.is_empty() {
            let update = shared::board_update(&self.session.id, extras.board.clone(), at);
            commit.update(Shared::Board, update);
        }
        commit.batch.inputs = self.sent(&extras)?;
        commit.batch.acks = extras.acks;
        Ok(commit)
    }

    /// The inputs of others that this sends.
    fn sent(&self, extras: &CommitExtras) -> Result<Vec<KeyedInput>, Error> {
        let mut inputs = extras.inputs.clone();
        let readers = self.readers(&extras.letters);
        for letter in &extras.letters {
            // One whose reader is not known is refused by the roster in the same append.
            if let Some((_, agent)) = readers.iter().find(|(name, _)| *name == letter.to) {
                inputs.push(shared::letter_input(agent, letter)?);
            }
        }
        for Starts { agent, spec, prompt } in &extras.starts {
            let waiting =
                Waiting { start: Some(spec.clone()), say: Some(prompt.clone()), ..Waiting::default() };
            let body = serde_json::to_string(&waiting)?;
            inputs.push(KeyedInput { stream: StreamId::from(agent), key: "start".to_owned(), body });
        }
        Ok(inputs)
    }

    /// Records what an earlier process had received and could not record.
    pub(super) async fn unspool(&mut self) -> Result<(), Error> {
        let Some((path, spooled)) = spool::find(&self.config.spools, self.writer.stream(), self.writer.seq())
        else {
            return Ok(());
        };
        // Events that cannot follow the history are not stored, whatever wrote the file, which then stays.
        let decoded: Result<Vec<Event>, _> = spooled.events.iter().map(|text| Event::decode(text)).collect();
        let Ok(events) = decoded else { return Ok(()) };
        let Ok(summary) = self.summary_after(&events, spooled.at) else { return Ok(()) };
        let mut extras = CommitExtras::acks(spooled.acks);
        self.follow(&events, spooled.at, &mut extras);
        let commit = Commit::of_texts(spooled.at, events, spooled.events);
        let mut commit = self.carry(commit, extras)?;
        commit.batch.summary = summary;
        // The watcher is told of it now: it could not be recorded when it happened.
        self.write(&mut commit, SpoolRule::Nothing).await?;
        // The batch is recorded now; a file that stays would merely not fit any more.
        let _ = std::fs::remove_file(path);
        Ok(())
    }

    /// Commits something that is no event of the agent's.
    pub(crate) async fn enter(&mut self, extras: CommitExtras) -> Result<(), Error> {
        let mut commit = self.carry(Commit::new(self.config.clock.now(), Vec::new())?, extras)?;
        self.write(&mut commit, SpoolRule::Nothing).await
    }

    /// Another process spent what was granted here: reloads the ledger and asks it again.
    async fn ask_again(&mut self) -> Result<(), Error> {
        self.permit = None;
        self.session.ledger.withdraw(self.id.as_str());
        self.session.ledger.reload().await?;
        self.start_effects();
        Ok(())
    }
}
