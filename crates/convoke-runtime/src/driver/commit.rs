//! One round of the circle: decide, commit, fold, tell. What belongs to it beside the agent's own events (the ledger, the roster, the
//! board, letters for others) is committed in the same append, so that none of it is ever without the rest.

use convoke_journal::Error::{Declined, LostLease, StaleSequence};
use convoke_journal::{Appended, Batch, KeyedInput, StreamId, Update};
use convoke_kernel::{BoardEntry, Event, FailureKind, Input, Letter, Outcome, Pace, Room, RosterEntry, ToolResult};

use super::Driver;
use crate::accounts;
use crate::crash::Moment;
use crate::error::Error;
use crate::inputs::Waiting;
use crate::notice::Notice;
use crate::purse::Entry;
use crate::spool;
use crate::stop::StopLevel;
use crate::team::{Act, Starts, shared};

/// What is committed with an input's events.
#[derive(Default)]
pub(crate) struct Beside {
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
    /// Who begins to exist.
    pub(crate) starts: Vec<Starts>,
    /// Whether what the ledger holds for the agent is given back, because it will not go on.
    pub(crate) releases: bool,
}

/// The shared streams that an append changes, in the order of its updates.
#[derive(Clone, Copy)]
struct Touched {
    ledger: bool,
    roster: bool,
    board: bool,
}

impl Beside {
    pub(crate) fn acks(acks: Vec<String>) -> Self {
        Self { acks, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        let team = self.roster.is_empty() && self.board.is_empty() && self.letters.is_empty();
        self.acks.is_empty() && team && self.inputs.is_empty() && self.starts.is_empty()
    }

    /// Whether the roster or the board could say no to it.
    fn can_be_refused(&self) -> bool {
        !(self.roster.is_empty() && self.board.is_empty() && self.letters.is_empty() && self.starts.is_empty())
    }
}

impl Driver {
    /// Takes an input, reads letters that came meanwhile, and begins what follows.
    pub(crate) async fn input(&mut self, input: Input, beside: Beside) -> Result<(), Error> {
        // Boxed: it is the largest of all that the driver waits for, and stands in most of it.
        Box::pin(self.commit(input, beside)).await?;
        // As many letters as are read at once, and no more before the next turn: a history has to stay one that can be sent.
        if self.pace == Pace::Go
            && let Some((mail, beside)) = self.mail_now().await?
        {
            Box::pin(self.commit(mail, beside)).await?;
        }
        // What was decided is begun at once: a stop in between would leave it decided and never done, and the next
        // resume would have to call its outcome unknown.
        if self.pace == Pace::Go {
            self.start_effects();
            // What was urgent before a command began still is.
            self.heed_urgent();
        }
        Ok(())
    }

    /// What a call of the team's came to. If the store says no, that is what it came to.
    pub(crate) async fn acted(&mut self, id: String, act: Act) -> Result<(), Error> {
        let Act { result, roster, board, letters, starts } = act;
        let beside = Beside { roster, board, letters, starts, ..Beside::default() };
        let done = self.input(Input::ToolDone { id: id.clone(), result }, beside).await;
        match done {
            Err(Error::Journal(convoke_journal::Error::Declined { reason, .. })) => {
                let result = ToolResult::refused(format!("Not done: {reason}"));
                self.input(Input::ToolDone { id, result }, Beside::default()).await
            }
            other => other,
        }
    }

    async fn commit(&mut self, input: Input, mut beside: Beside) -> Result<(), Error> {
        let at = self.config.clock.now();
        let events = self.agent.decide(input, at, self.pace)?;
        let called = events.iter().any(|event| matches!(event, Event::ModelCalled(_)));
        if beside.room.is_some() && !called {
            self.permit = None;
            self.session.purse.withdraw(self.id.as_str());
        }
        let refusable = beside.can_be_refused();
        self.follow(&events, at, &mut beside);
        if events.is_empty() && beside.is_empty() {
            return Ok(());
        }
        let encoded = events.iter().map(Event::encode).collect::<Result<Vec<_>, _>>()?;
        let bad = |cause| Error::BadHistory { agent: self.id.clone(), seq: self.seq + 1, cause };
        let summary = self.agent.summary_after(&events, at).map_err(bad)?;
        let summary = summary.map(|summary| serde_json::to_string(&summary)).transpose()?;
        let (updates, touched) = self.updates(&events, at, &beside);
        let inputs = self.sent(&beside)?;
        let batch = Batch { at, events: encoded, acks: beside.acks, summary, updates, inputs, ..Batch::default() };
        self.crash(Moment::BeforeCommit, &events)?;
        let appended = match self.append(&batch, (!refusable).then_some(&events)).await {
            Ok(appended) => appended,
            Err(convoke_journal::Error::Declined { .. }) if called => return self.ask_again().await,
            // What was to be sent was not, so that the call is not done: it is made again by whoever takes the agent up.
            Err(cause) if refusable => return Err(Error::Journal(cause)),
            Err(cause) => {
                let spools = &self.config.spools;
                return Err(spool::unrecorded(spools, &self.stream, self.seq, &self.agent, cause, (&events, &batch)));
            }
        };
        let seq = appended.seq;
        self.adopt(touched, &appended.states)?;
        let first = self.seq + 1;
        for (event, seq) in events.iter().zip(first..) {
            self.fold(seq, at, event)?;
        }
        debug_assert_eq!(self.seq, seq, "the journal and the driver count alike");
        self.gave_up = events.iter().fold(self.gave_up, |gave_up, event| match event {
            // Whoever is spoken to hears everybody again.
            Event::ExchangeOpened(e) => gave_up && !(e.letters.is_empty() && e.work.is_none() && e.notice.is_none()),
            Event::ExchangeStopped(_) => true,
            Event::ExchangeClosed(e) => gave_up || e.outcome.failure().is_some() && !self.agent.was_spoken_to(),
            _ => gave_up,
        });
        self.words_wait |=
            events.iter().any(|event| matches!(event, Event::ExchangeClosed(e) if is_unanswered(&e.outcome)));
        self.crash(Moment::AfterCommit, &events)?;
        for (event, seq) in events.into_iter().zip(first..) {
            self.notify(Notice::Recorded { agent: self.id.clone(), seq, at, event: Box::new(event) });
        }
        Ok(())
    }

    /// Appends. If the store is away, what came back is kept in a file as well until it is recorded, so that a kill meanwhile loses
    /// nothing that is paid for; and a person who cuts the run off need not wait for the store.
    async fn append(&self, batch: &Batch, events: Option<&Vec<Event>>) -> Result<Appended, convoke_journal::Error> {
        let (journal, spools) = (&self.config.journal, &self.config.spools);
        let mut outage = journal.outage();
        let mut append = std::pin::pin!(journal.append_shared(&self.lease, self.seq, batch));
        tokio::select! {
            biased;
            done = &mut append => return done,
            Ok(_) = outage.wait_for(Option::is_some) => {}
        }
        let kept = events.and_then(|events| spool::keep_if_worth(spools, &self.stream, self.seq, events, batch));
        let mut stop = self.stop.clone();
        let done = tokio::select! {
            done = append => done,
            _ = stop.above(StopLevel::Drain) => {
                let (place, reason) = (journal.location().to_string(), "it did not answer, and the run was cut off".to_owned());
                Err(convoke_journal::Error::Unavailable { place, reason })
            }
        };
        if let (Some(path), Ok(_) | Err(LostLease { .. } | StaleSequence { .. } | Declined { .. })) = (kept, &done) {
            // What is recorded, or another's by now, is not to be recorded by the next resume.
            let _ = std::fs::remove_file(path);
        }
        done
    }

    /// Takes over the states that an append led to.
    fn adopt(&self, touched: Touched, states: &[String]) -> Result<(), Error> {
        let mut states = states.iter();
        let mut next = |touched: bool| if touched { states.next() } else { None };
        let (ledger, roster, board) = (next(touched.ledger), next(touched.roster), next(touched.board));
        self.session.adopt(ledger)?;
        match &self.session.crew {
            Some(crew) => crew.adopt(roster.map(String::as_str), board.map(String::as_str)),
            None => Ok(()),
        }
    }

    /// What these events and what belongs to them mean for the shared streams.
    fn updates(&self, events: &[Event], at: u64, beside: &Beside) -> (Vec<Update>, Touched) {
        let mut entries = accounts::entries(&self.id, &self.agent, events, beside.room, &self.session.purse.ledger());
        let admit = |starts: &Starts| Entry::Admit { run: starts.agent.to_string(), count: 1 };
        entries.extend(beside.starts.iter().map(admit));
        entries.extend(beside.releases.then(|| Entry::Release { agent: self.id.to_string() }));
        let touched = Touched {
            ledger: !entries.is_empty(),
            roster: !beside.roster.is_empty() || !beside.letters.is_empty(),
            board: !beside.board.is_empty(),
        };
        let mut updates = Vec::new();
        if touched.ledger {
            updates.push(self.session.purse.update(entries, at));
        }
        if touched.roster {
            let open = RosterEntry::Open { lead: self.session.lead.clone() };
            let posts = beside.letters.iter().map(shared::post);
            let entries = std::iter::once(open).chain(beside.roster.iter().cloned()).chain(posts).collect();
            updates.push(shared::letters_update(&self.session.id, self.readers(&beside.letters), entries, at));
        }
        if touched.board {
            updates.push(shared::board_update(&self.session.id, beside.board.clone(), at));
        }
        (updates, touched)
    }

    /// The inputs of others that this sends.
    fn sent(&self, beside: &Beside) -> Result<Vec<KeyedInput>, Error> {
        let mut inputs = beside.inputs.clone();
        let readers = self.readers(&beside.letters);
        for letter in &beside.letters {
            // One whose reader is not known is refused by the roster in the same append.
            if let Some((_, agent)) = readers.iter().find(|(name, _)| *name == letter.to) {
                inputs.push(shared::letter_input(agent, letter)?);
            }
        }
        for Starts { agent, spec, prompt } in &beside.starts {
            let waiting = Waiting { start: Some(spec.clone()), say: Some(prompt.clone()), ..Waiting::default() };
            let body = serde_json::to_string(&waiting)?;
            inputs.push(KeyedInput { stream: StreamId::from(agent), key: "start".to_owned(), body });
        }
        Ok(inputs)
    }

    /// Records what an earlier process had received and could not record.
    pub(super) async fn unspool(&mut self) -> Result<(), Error> {
        let Some((path, spooled)) = spool::find(&self.config.spools, &self.stream, self.seq) else { return Ok(()) };
        // What cannot follow what has happened must not be stored, whoever wrote the file; it is left for a person to see.
        let decoded: Result<Vec<Event>, _> = spooled.events.iter().map(|text| Event::decode(text)).collect();
        let Ok(events) = decoded else { return Ok(()) };
        let Ok(summary) = self.agent.summary_after(&events, spooled.at) else { return Ok(()) };
        let summary = summary.map(|summary| serde_json::to_string(&summary)).transpose()?;
        let mut beside = Beside::acks(spooled.acks);
        self.follow(&events, spooled.at, &mut beside);
        let (updates, touched) = self.updates(&events, spooled.at, &beside);
        let (at, inputs, acks) = (spooled.at, self.sent(&beside)?, beside.acks);
        let batch = Batch { at, events: spooled.events, acks, summary, updates, inputs, ..Batch::default() };
        self.crash(Moment::BeforeCommit, &[])?;
        let appended = self.config.journal.append_shared(&self.lease, self.seq, &batch).await?;
        self.crash(Moment::AfterCommit, &[])?;
        self.adopt(touched, &appended.states)?;
        let first = self.seq + 1;
        self.load().await?;
        // Whoever watches has not heard of it: it could not be recorded when it happened.
        for (event, seq) in events.into_iter().zip(first..) {
            self.notify(Notice::Recorded { agent: self.id.clone(), seq, at, event: Box::new(event) });
        }
        // The batch is recorded now; a file that stays would merely not fit any more.
        let _ = std::fs::remove_file(path);
        Ok(())
    }

    /// Commits something that is no event of the agent's.
    pub(crate) async fn enter(&mut self, beside: Beside) -> Result<(), Error> {
        let at = self.config.clock.now();
        let (updates, touched) = self.updates(&[], at, &beside);
        let inputs = self.sent(&beside)?;
        let batch = Batch { at, acks: beside.acks, updates, inputs, ..Batch::default() };
        self.crash(Moment::BeforeCommit, &[])?;
        let appended = self.config.journal.append_shared(&self.lease, self.seq, &batch).await?;
        self.crash(Moment::AfterCommit, &[])?;
        self.adopt(touched, &appended.states)
    }

    /// Somebody in another process spent what was granted here: the newest ledger is asked.
    async fn ask_again(&mut self) -> Result<(), Error> {
        self.permit = None;
        self.session.purse.withdraw(self.id.as_str());
        self.session.purse.reload().await?;
        self.start_effects();
        Ok(())
    }

    fn crash(&self, moment: Moment, events: &[Event]) -> Result<(), Error> {
        match &self.config.crash {
            Some(crash) if crash.dies(moment, events) => Err(Error::Crashed),
            _ => Ok(()),
        }
    }
}

/// Whether what was said got no answer for a reason that the next words would meet too.
fn is_unanswered(outcome: &Outcome) -> bool {
    use FailureKind::{Api, Budget, Deadline, Internal, RateLimited, Sandbox, Transport};
    matches!(outcome.failure(), Some(Api | Budget | Deadline | Internal | RateLimited | Sandbox | Transport))
}
