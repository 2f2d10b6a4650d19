//! One admitted request on its way through the accounts. Whatever ends it, even its client's leaving, ends
//! the ticket.

use std::sync::Arc;

use super::bill::Entry;
use super::cache::Plan;
use super::limits::{RateHeaders, Refused};
use super::prompt::Prompt;
use super::tokens::Usage;
use crate::conversation::Context;
use crate::server::Shared;

/// How far a response has come. Each step is told before the bytes that show it leave, because waiting for
/// the client to have read them would let its next request overtake the note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The first event of the reply leaves.
    Began,
    /// So many output tokens have been generated in all.
    Generated(u64),
    /// The last event leaves.
    Completed,
    /// Nothing of the reply leaves any more.
    Broken,
}

/// The right to run, held for as long as the request is served.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    plan: Plan,
    started: u64,
    /// The rate headers of the response.
    pub(crate) headers: RateHeaders,
    /// The request's number in the log.
    request: Option<usize>,
    /// Its entry in the accounts, if it reached a model.
    entry: Option<usize>,
    generated: u64,
    running: bool,
}

impl Ticket {
    /// Lets a request in that came at this time, if the rate limits do.
    pub(crate) fn admit(shared: &Arc<Shared>, prompt: &Prompt, started: u64) -> Result<Self, Refused> {
        let mut accounts = shared.lock(&shared.accounts);
        let plan = accounts.cache.look(prompt, started);
        let headers = accounts.limits.admit(plan.usage.uncached(), started)?;
        let shared = Arc::clone(shared);
        Ok(Self { shared, plan, started, headers, request: None, entry: None, generated: 0, running: true })
    }

    /// The request's input as it will be reported.
    pub(crate) fn usage(&self) -> Usage {
        self.plan.usage
    }

    /// The request will be answered with an error status: it reaches no model and costs nothing.
    pub(crate) fn fail(&mut self, request: usize) {
        self.request = Some(request);
        self.shared.lock(&self.shared.accounts).limits.refund(self.plan.usage.uncached());
    }

    /// The request reaches the model: from here on it is billed.
    pub(crate) fn serve(&mut self, request: usize, context: &Context, model: String) {
        self.request = Some(request);
        let mut accounts = self.shared.lock(&self.shared.accounts);
        accounts.cache.refresh(&self.plan, self.started);
        let conversation = context.conversation.clone();
        self.entry = Some(accounts.entries.len());
        accounts.entries.push(Entry {
            request,
            conversation,
            model,
            usage: self.plan.usage,
            completed: false,
        });
    }

    /// Notes how far the response has come.
    pub(crate) fn note(&mut self, progress: Progress) {
        match progress {
            Progress::Began => self.begin(),
            Progress::Generated(tokens) => self.generate(tokens),
            Progress::Completed => {
                self.entry(|entry| entry.completed = true);
                self.end(true);
            }
            Progress::Broken => self.end(false),
        }
    }

    fn begin(&mut self) {
        self.shared.lock(&self.shared.accounts).cache.write(&self.plan, self.started);
        let now = self.shared.config.clock.now();
        let usage = self.plan.usage;
        if let Some(request) = self.request {
            self.shared.update(request, |received| {
                received.began_at = Some(now);
                received.usage = Some(usage);
            });
        }
    }

    fn generate(&mut self, tokens: u64) {
        let more = tokens.saturating_sub(self.generated);
        self.generated += more;
        let all = self.generated;
        let now = self.shared.config.clock.now();
        self.shared.lock(&self.shared.accounts).limits.generated(more, now);
        self.entry(|entry| entry.usage.output_tokens = all);
        if let Some(request) = self.request {
            self.shared.update(request, |received| {
                if let Some(usage) = &mut received.usage {
                    usage.output_tokens = all;
                }
            });
        }
    }

    fn entry(&self, change: impl FnOnce(&mut Entry)) {
        let mut accounts = self.shared.lock(&self.shared.accounts);
        if let Some(entry) = self.entry.and_then(|index| accounts.entries.get_mut(index)) {
            change(entry);
        }
    }

    /// Makes room for the next request, once.
    fn end(&mut self, replied: bool) {
        if !std::mem::take(&mut self.running) {
            return;
        }
        self.shared.lock(&self.shared.accounts).limits.leave();
        let now = self.shared.config.clock.now();
        if let Some(request) = self.request {
            self.shared.update(request, |received| {
                received.ended_at = Some(now);
                received.replied = replied;
            });
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end(false);
    }
}
