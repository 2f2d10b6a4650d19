//! What was decided goes into the journal: events, results to remember, the ledger's entries and the lead's
//! notice in one append.

use convoke_kernel::{CallResult, FailureKind, ItemStatus, ProgramEvent, ProgramInput};

use super::Runner;
use crate::error::Error;
use crate::program::closing_notice;
use crate::session_ledger::Entry;
use crate::stream_writer::{Commit, SpoolRule};

impl Runner {
    /// A call has its result.
    pub(super) fn end(
        &mut self,
        call: u32,
        result: CallResult,
        results: Vec<(String, String)>,
    ) -> Result<(), Error> {
        let short = matches!(result.status, ItemStatus::Failed { kind: FailureKind::Budget, .. });
        let spent =
            self.parent.session.ledger.ledger().spent().tokens.saturating_sub(self.program.kept_tokens());
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
            seq: self.writer.seq(),
            cause: cause.to_string(),
        };
        let events = self.program.hear(input, at).map_err(bad)?;
        // A new pass opens a run that had ended.
        self.closed &= !events.iter().any(|event| matches!(event, ProgramEvent::PassBegan(_)));
        self.unsaved.extend(events);
        Ok(())
    }

    /// Records what was decided, in one append. The answer is why the budget declines it; then nothing is
    /// recorded.
    pub(super) async fn save(&mut self, mut entries: Vec<Entry>) -> Result<Option<String>, Error> {
        if self.unsaved.is_empty() && self.acks.is_empty() {
            return Ok(None);
        }
        let at = self.parent.config.clock.now();
        let mut inputs = Vec::new();
        if self.program.is_closed() && !self.closed {
            entries.push(Entry::CloseRun { run: self.id.to_string(), used: self.program.agents_used() });
            inputs.extend(closing_notice(&self.program)?);
        }
        let mut commit = Commit::new(at, std::mem::take(&mut self.unsaved))?;
        commit.batch.summary =
            self.program.summary().map(|summary| serde_json::to_string(&summary)).transpose()?;
        commit.batch.inputs = inputs;
        commit.batch.acks = self.acks.clone();
        commit.batch.results = self.results.clone();
        commit.enter(&self.parent.session, entries);
        let Self { writer, program, closed, acks, results, .. } = self;
        let fold = |_: &[ProgramEvent], _| {
            // The program has heard its events when they were decided.
            *closed = program.is_closed();
            acks.clear();
            results.clear();
            Ok(())
        };
        let saved = writer.commit(&mut commit, SpoolRule::Nothing, fold).await;
        // What is not recorded is still to be.
        self.unsaved = commit.events;
        match saved {
            Ok(()) => Ok(None),
            Err(Error::Journal(convoke_journal::Error::Declined { reason, .. })) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }
}
