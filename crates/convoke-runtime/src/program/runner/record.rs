//! What was decided goes into the journal: events, results to remember, the ledger's entries and the lead's notice in one append.

use std::sync::Arc;

use convoke_journal::Batch;
use convoke_kernel::{CallResult, FailureKind, ItemStatus, ProgramEvent, ProgramInput};

use super::Runner;
use crate::crash::Moment;
use crate::error::Error;
use crate::notice::Notice;
use crate::program::closing_notice;
use crate::purse::Entry;

impl Runner {
    /// A call has its result.
    pub(super) fn end(&mut self, call: u32, result: CallResult, results: Vec<(String, String)>) -> Result<(), Error> {
        let short = matches!(result.status, ItemStatus::Failed { kind: FailureKind::Budget, .. });
        let spent = self.parent.session.purse.ledger().spent().tokens.saturating_sub(self.program.kept_tokens());
        // Once a request does not fit any more, nothing remains that a program could spend: its loops end.
        let total = self.program.budget_total().filter(|_| short);
        let spent = total.map_or(spent, |total| spent.max(total));
        self.results.extend(results);
        self.hear(ProgramInput::Ended { call, result: Box::new(result), spent_total: spent })
    }

    pub(super) fn hear(&mut self, input: ProgramInput) -> Result<(), Error> {
        let at = self.parent.config.clock.now();
        let bad = |cause: convoke_kernel::IllegalProgramEvent| Error::BadRun {
            run: self.id.clone(),
            seq: self.seq,
            cause: cause.to_string(),
        };
        let events = self.program.hear(input, at).map_err(bad)?;
        // A new pass opens a run that had ended.
        self.closed &= !events.iter().any(|event| matches!(event, ProgramEvent::PassBegan(_)));
        self.unsaved.extend(events);
        Ok(())
    }

    /// Records what was decided, in one append. The answer is why the envelope declines it; then nothing is recorded.
    pub(super) async fn save(&mut self, mut entries: Vec<Entry>) -> Result<Option<String>, Error> {
        if self.unsaved.is_empty() && self.acks.is_empty() {
            return Ok(None);
        }
        let (config, session) = (Arc::clone(&self.parent.config), Arc::clone(&self.parent.session));
        let at = config.clock.now();
        let closes = self.program.is_closed() && !self.closed;
        let mut inputs = Vec::new();
        if closes {
            entries.push(Entry::CloseRun { run: self.id.to_string(), used: self.program.agents_used() });
            inputs.extend(closing_notice(&self.program)?);
        }
        let updates = if entries.is_empty() { Vec::new() } else { vec![session.purse.update(entries, at)] };
        let encoded = self.unsaved.iter().map(ProgramEvent::encode).collect::<Result<Vec<_>, _>>()?;
        let summary = self.program.summary().map(|summary| serde_json::to_string(&summary)).transpose()?;
        let (acks, results) = (self.acks.clone(), self.results.clone());
        let batch = Batch { at, events: encoded, acks, inputs, summary, results, updates };
        self.crash(Moment::BeforeCommit)?;
        let appended = match config.journal.append_shared(&self.lease, self.seq, &batch).await {
            Ok(appended) => appended,
            Err(convoke_journal::Error::Declined { reason, .. }) => return Ok(Some(reason)),
            Err(error) => return Err(error.into()),
        };
        session.adopt(appended.states.first())?;
        let first = self.seq + 1;
        self.seq = appended.seq;
        self.closed = self.program.is_closed();
        (self.acks, self.results) = (Vec::new(), Vec::new());
        self.crash(Moment::AfterCommit)?;
        for (event, seq) in std::mem::take(&mut self.unsaved).into_iter().zip(first..) {
            session.tell(Notice::Program { run: self.id.clone(), seq, at, event: Box::new(event) });
        }
        Ok(None)
    }

    fn crash(&self, moment: Moment) -> Result<(), Error> {
        match &self.parent.config.crash {
            Some(crash) if crash.dies(moment, &[]) => Err(Error::Crashed),
            _ => Ok(()),
        }
    }
}
