//! Drives one program's run under its lease. The interpreter computes, the kernel decides, the journal
//! remembers; the program is given its answers in the order in which they were recorded, so that another
//! process comes to the same calls.

mod record;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use convoke_journal::{KeyedInput, StreamId};
use convoke_kernel::{
    CallAnswer, CallKind, CallResult, ItemStatus, MadeCall, Program, ProgramEvent, ProgramInput, RunId,
    Segment, unverified,
};
use convoke_script::Want;
use serde_json::Value;
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::calls::{Doing, Done, Memory};
use super::prepare::prepare;
use super::{Message, load};
use crate::children::Parent;
use crate::error::Error;
use crate::fan_out::{Remembered, Tree};
use crate::interpreter::Interpreter;
use crate::session_ledger::Entry;
use crate::stop::StopLevel;
use crate::stream_writer::StreamWriter;
use crate::workspace::digests;

/// How driving a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// The run is closed.
    Closed,
    /// A stop was requested.
    Stopped,
    /// It waits for a person: for an answer, or for a larger budget.
    Waits,
}

pub(super) struct Runner {
    parent: Parent,
    id: RunId,
    writer: StreamWriter<ProgramEvent>,
    /// With what is decided and not recorded yet.
    program: Program,
    /// Whether the journal has its end.
    closed: bool,
    unsaved: Vec<ProgramEvent>,
    results: Vec<(String, String)>,
    acks: Vec<String>,
    interpreter: Option<Interpreter>,
    tasks: JoinSet<Result<Done, Error>>,
    begun: BTreeSet<u32>,
    /// Calls under way that no agent does.
    asides: BTreeMap<u32, AbortHandle>,
    parked: BTreeSet<u32>,
    /// A step that did not fit: nothing new begins.
    declined: bool,
    /// Something could not be begun because the time granted is used up.
    out_of_time: bool,
    /// Whether the directory is as the run's base names it, where its start has just found that out: every
    /// file was read for it.
    pub(super) as_keyed: Option<bool>,
    tree: Tree,
}

impl Runner {
    pub(super) async fn own(parent: &Parent, id: RunId) -> Result<Self, Error> {
        let stream = StreamId::new(id.as_str())?;
        let lease = parent.config.journal.own(&stream).await?;
        let (program, seq) = load(&parent.config, &id).await?;
        let Parent { config, session, stop, .. } = parent;
        let writer = StreamWriter::new(config, session, id.clone(), stream, lease, seq, stop);
        Ok(Self {
            parent: parent.clone(),
            id,
            writer,
            closed: program.is_closed(),
            program,
            unsaved: Vec::new(),
            results: Vec::new(),
            acks: Vec::new(),
            interpreter: None,
            tasks: JoinSet::new(),
            begun: BTreeSet::new(),
            asides: BTreeMap::new(),
            parked: BTreeSet::new(),
            declined: false,
            out_of_time: false,
            as_keyed: None,
            tree: Tree::default(),
        })
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    pub(super) async fn start(&mut self, input: ProgramInput) -> Result<(), Error> {
        self.hear(input)?;
        self.save(Vec::new()).await.map(drop)
    }

    pub(super) async fn finish(mut self) {
        self.tasks.shutdown().await;
        if let Some(interpreter) = self.interpreter.take() {
            interpreter.stop().await;
        }
        self.writer.release().await;
    }

    /// Drives until the run is closed, a stop is requested, or only a person can help.
    pub(super) async fn drive(&mut self) -> Result<Driven, Error> {
        self.take_messages().await?;
        if self.program.is_closed() {
            return Ok(Driven::Closed);
        }
        if let Some(by) = self.parent.stop.halted() {
            return self.stop_by(by).await;
        }
        let Some(spec) = self.program.spec().cloned() else { return Ok(Driven::Closed) };
        let dir = PathBuf::from(&spec.dir);
        let looks = &self.parent.session.looks;
        let sight = self.parent.config.confine.sight(&dir);
        self.tree = match self.as_keyed.take() {
            Some(as_keyed) => Tree::known(looks, &sight, &dir, as_keyed).await?,
            None => Tree::beside(looks, &sight, &dir, &spec.base, &spec.source).await?,
        };
        if let Some(from) = spec.from.as_ref().and_then(|from| from.parse().ok())
            && let Some(from) = super::served_from(&self.parent.config, &from).await?
        {
            self.program.serve_from(&from, self.parent.config.clock.now());
        }
        if !self.replay().await? {
            let why = "the program does not come to the same calls any more".to_owned();
            // What this pass has admitted and used stays used.
            let close = Entry::CloseRun { run: self.id.to_string(), used: self.program.agents_used() };
            let budget_total = self.parent.session.ledger.ledger().caps().tokens;
            self.hear(ProgramInput::Again { why, budget_total })?;
            self.save(vec![close]).await?;
            self.restart_interpreter().await;
        }
        let mut stop = self.parent.stop.clone();
        loop {
            let level = stop.level();
            if level == StopLevel::Run {
                self.advance().await?;
                if self.program.is_closed() {
                    break;
                }
                self.begin_what_can_be_begun().await?;
                // What could not be begun has ended at once, and the program goes on with that.
                if self.has_answers() {
                    continue;
                }
            }
            if self.tasks.is_empty() {
                if let Some(by) = stop.halted() {
                    return self.stop_by(by).await;
                }
                if std::mem::take(&mut self.out_of_time) {
                    let reason =
                        "the time granted is used up; grant a new total with --budget-minutes".to_owned();
                    self.hear(ProgramInput::Declined { agents: 0, reason })?;
                    self.save(Vec::new()).await?;
                }
                return Ok(if level == StopLevel::Run { Driven::Waits } else { Driven::Stopped });
            }
            tokio::select! {
                Some(done) = self.tasks.join_next() => {
                    let mut all = vec![self.done(done)?];
                    while let Some(done) = self.tasks.try_join_next() {
                        all.push(self.done(done)?);
                    }
                    self.take(all).await?;
                }
                _ = stop.above(level), if level < StopLevel::Cut => {}
            }
            if self.program.is_closed() {
                break;
            }
        }
        // Ends what the program does not want any more: a timer, a command, a question.
        for (_, aside) in std::mem::take(&mut self.asides) {
            aside.abort();
        }
        while let Some(landed) = self.tasks.join_next().await {
            if !landed.as_ref().is_err_and(JoinError::is_cancelled) {
                self.done(landed)?;
            }
        }
        Ok(Driven::Closed)
    }

    fn done(&self, done: Result<Result<Done, Error>, JoinError>) -> Result<Done, Error> {
        done.map_err(|_| Error::EffectBroke(self.parent.id.clone()))?
    }

    fn has_answers(&self) -> bool {
        !self.declined
            && self.program.end().is_none()
            && self.program.answers().len() + 1 > self.program.steps() as usize
    }

    /// Takes in what was sent to the run: answers to its questions, and a person's wish to run or stop it.
    async fn take_messages(&mut self) -> Result<(), Error> {
        let mut released = Vec::new();
        for KeyedInput { key, body, .. } in self.writer.inputs().await? {
            let bad = |cause| Error::BadInput { agent: self.parent.id.clone(), key: key.clone(), cause };
            let message: Message = serde_json::from_str(&body).map_err(bad)?;
            let open =
                |program: &Program, call| program.questions().iter().any(|question| question.call == call);
            match message {
                Message::Answer { call, text } if open(&self.program, call) => {
                    let value = CallAnswer::Value(Segment::encode(&Value::from(text)));
                    self.end(call, CallResult::bare(ItemStatus::Ok, value), Vec::new())?;
                }
                Message::Skip { call } if self.program.pending().contains(&call) => {
                    released.extend(self.holds_of(call));
                    let status = ItemStatus::Skipped { reason: "a person skipped it".to_owned() };
                    let answer = match self.program.call(call).map(|state| state.made.kind) {
                        Some(CallKind::Verify) => unverified(&status),
                        _ => CallAnswer::null(),
                    };
                    let result = CallResult { by_person: true, ..CallResult::bare(status, answer) };
                    self.end(call, result, Vec::new())?;
                }
                // An answer to a question that is no longer open changes nothing.
                Message::Answer { .. } | Message::Skip { .. } => {}
            }
            self.acks.push(key);
        }
        self.save(released).await.map(drop)
    }

    /// Gives back what the agents of a call hold, for a call that ends without them.
    fn holds_of(&self, call: u32) -> Vec<Entry> {
        let Some(made) = self.program.call(call).map(|state| &state.made) else { return Vec::new() };
        let origin = self.program.origin();
        (0..=made.agents)
            .map(|voter| Entry::Release { agent: made.agent(origin, voter).to_string() })
            .collect()
    }

    /// A person wants no more of it: that is recorded, and nothing stays held for its agents.
    async fn stop_by(&mut self, by: String) -> Result<Driven, Error> {
        let open = self.program.calls().filter(|call| call.result.is_none() && call.made.kind.is_agents());
        let held: Vec<Entry> = open.flat_map(|call| self.holds_of(call.made.call)).collect();
        self.hear(ProgramInput::Stop { by })?;
        self.save(held).await?;
        Ok(Driven::Closed)
    }

    fn fresh(&self) -> bool {
        self.parent.spec.fan_out.as_ref().is_some_and(|fan_out| fan_out.fresh)
    }

    async fn begin_what_can_be_begun(&mut self) -> Result<(), Error> {
        let most = self.parent.config.agents_at_once.max(1);
        let mut agents = self.begun.iter().filter(|call| self.is_agents(**call)).count();
        for call in self.program.pending() {
            if self.begun.contains(&call) || self.parked.contains(&call) {
                continue;
            }
            let Some(made) = self.program.call(call).map(|state| state.made.clone()) else { continue };
            if made.kind.is_agents() {
                if agents >= most {
                    continue;
                }
                if let Some(refused) = self.program.refuses(call) {
                    self.end(call, refused, Vec::new())?;
                    continue;
                }
            }
            let needs_time = matches!(made.kind, CallKind::Sh | CallKind::Timer | CallKind::Workflow);
            if needs_time && self.parent.session.ledger.is_out_of_time() {
                // It waits like a step that does not fit, and goes on when a person grants more.
                self.out_of_time = true;
                continue;
            }
            let doing = self.doing(&made);
            if self.program.end().is_some() && !self.has_begun(&doing).await? {
                let reason = "the program returned without waiting for it".to_owned();
                self.end(
                    call,
                    CallResult::bare(ItemStatus::Skipped { reason }, CallAnswer::null()),
                    Vec::new(),
                )?;
                continue;
            }
            if self.begin(doing, &made).await? {
                agents += usize::from(made.kind.is_agents());
            }
        }
        self.save(Vec::new()).await.map(drop)
    }

    fn is_agents(&self, call: u32) -> bool {
        self.program.call(call).is_some_and(|state| state.made.kind.is_agents())
    }

    /// Whether an earlier process had set an agent to work on it.
    async fn has_begun(&self, doing: &Doing) -> Result<bool, Error> {
        let stream = StreamId::from(&doing.agent_id(0));
        Ok(!self.parent.config.journal.load(&stream, 0).await?.is_empty())
    }

    fn doing(&self, made: &MadeCall) -> Doing {
        Doing {
            parent: self.parent.clone(),
            run: self.id.to_string(),
            origin: self.program.origin().to_owned(),
            made: made.clone(),
            fresh: self.fresh(),
            again: self.program.goes_on(&made.key, made.occurrence),
            before: self.tree.latest(),
        }
    }

    /// Begins a call. False when that could not be, and the call has ended with the reason.
    async fn begin(&mut self, doing: Doing, made: &MadeCall) -> Result<bool, Error> {
        let want: Want = serde_json::from_str(made.want.as_str())?;
        let (base, voters) =
            self.program.spec().map(|spec| (spec.base.clone(), spec.voters)).unwrap_or_default();
        match prepare(&self.parent, &want, &base, voters).await {
            Ok(ready) => {
                self.begun.insert(made.call);
                let task = self.tasks.spawn(doing.perform(ready.prepared));
                if !made.kind.is_agents() {
                    self.asides.insert(made.call, task);
                }
                Ok(true)
            }
            Err(unready) => {
                let status = ItemStatus::Skipped { reason: unready.why.clone() };
                self.end(made.call, CallResult::bare(status, CallAnswer::Throw(unready.why)), Vec::new())?;
                Ok(false)
            }
        }
    }

    async fn take(&mut self, all: Vec<Done>) -> Result<(), Error> {
        let mut over = Vec::new();
        for done in all {
            match done {
                Done::Landed => {}
                Done::Left { call, parked } => {
                    self.begun.remove(&call);
                    self.asides.remove(&call);
                    if parked {
                        self.parked.insert(call);
                    }
                }
                Done::Ended { call, mut result, trace, memory, flights } => {
                    self.begun.remove(&call);
                    self.asides.remove(&call);
                    let mut kept = self.tree.began_as_keyed();
                    if let Some(trace) = trace {
                        let all = self.tree.moved_by(&trace);
                        result.changes = digests(&PathBuf::from(&self.parent.spec.dir), &all).await;
                        result.changed = trace.changed;
                    }
                    kept &= result.is_sound() && result.reused.is_none();
                    let session = self.parent.session.id.to_string();
                    let mut results = Vec::new();
                    for memory in memory {
                        match memory {
                            Memory::Call { key } if kept => {
                                let text = Remembered { session: session.clone(), result: &*result };
                                results.push((key, serde_json::to_string(&text)?));
                            }
                            Memory::Vote { key, vote } if self.tree.is_as_keyed() => {
                                let text = Remembered { session: session.clone(), result: vote };
                                results.push((key, serde_json::to_string(&text)?));
                            }
                            Memory::Call { .. } | Memory::Vote { .. } => {}
                        }
                    }
                    // A timer that was cleared, or a call that a person skipped meanwhile, has nothing to say
                    // any more.
                    if self.program.pending().contains(&call) {
                        self.end(call, *result, results)?;
                    }
                    over.extend(flights);
                }
            }
        }
        self.save(Vec::new()).await?;
        for flight in over {
            self.tasks.spawn(async move {
                flight.land().await?;
                Ok(Done::Landed)
            });
        }
        Ok(())
    }
}
