//! What a running program hands to the host: its calls and what it says, and the limits on both. It is plain
//! data; the engine's functions write into it and the interpreter takes from it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use crate::compile;
use crate::crossing::{self, MAX_DEPTH};
use crate::protocol::{Call, FaultKind, Limits, ProgramRemark, Want};

/// The module that holds the program itself.
pub(crate) const MAIN: &str = "workflow.js";

/// Why work must stop; shared with the engine's interrupt.
#[derive(Clone, Default)]
pub(crate) struct Stop(Rc<Cell<Option<FaultKind>>>);

impl Stop {
    /// The first reason, if there is one.
    pub(crate) fn get(&self) -> Option<FaultKind> {
        self.0.get()
    }

    /// Work must stop. Only the first reason counts.
    pub(crate) fn set(&self, kind: FaultKind) {
        if self.0.get().is_none() {
            self.0.set(Some(kind));
        }
    }
}

/// What a pending call is, as far as its answer is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Only a value or an error will do.
    Value,
    /// A program will do too.
    Program,
}

/// The calls and lines of one program that the host has not taken yet, and the limits on them.
pub(crate) struct Outbox {
    pub(crate) limits: Limits,
    pub(crate) stop: Stop,
    pub(crate) calls: Vec<Call>,
    pub(crate) cleared: Vec<u32>,
    pub(crate) said: Vec<ProgramRemark>,
    pending: BTreeMap<u32, Awaited>,
    forgotten: BTreeSet<u32>,
    made: u32,
    lines: usize,
    bytes: usize,
}

impl Outbox {
    /// An outbox with nothing in it.
    pub(crate) fn new(limits: Limits, stop: Stop) -> Self {
        Self {
            limits,
            stop,
            calls: Vec::new(),
            cleared: Vec::new(),
            said: Vec::new(),
            pending: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            made: 0,
            lines: 0,
            bytes: 0,
        }
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self) {
        self.bytes = 0;
    }

    /// Notes a call and numbers it. The error is for the program to read.
    pub(crate) fn call(&mut self, want: String, at: CallSite) -> Result<u32, String> {
        // A program may still run for a moment after a limit; its calls are refused then.
        if self.stop.get().is_some() {
            return Err("the program is being stopped".to_owned());
        }
        if self.is_used_up() {
            self.stop.set(FaultKind::Pending);
            return Err(format!("more than {} calls in one run", self.limits.calls));
        }
        // Timers that are cleared at once do not wait, but the host is told of them all the same.
        if self.pending.len().max(self.calls.len()) >= self.limits.pending {
            self.stop.set(FaultKind::Pending);
            return Err(format!("more than {} calls wait at once", self.limits.pending));
        }
        let want = crossing::mend_surrogates(want);
        // A step's calls are held until its end, outside the engine's heap.
        self.bytes = self.bytes.saturating_add(want.len());
        if want.len() > self.limits.value_bytes || self.bytes > self.limits.value_bytes.saturating_mul(4) {
            self.stop.set(FaultKind::Value);
            return Err(format!(
                "more than {} bytes in one call, or four times as many in one step",
                self.limits.value_bytes
            ));
        }
        let want: Want =
            serde_json::from_str(&want).map_err(|error| format!("it cannot be written as JSON: {error}"))?;
        let deepest = match &want {
            Want::Agent(agent) => agent.schema.as_ref().map_or(0, crossing::depth),
            Want::Verify { finding, .. } => crossing::depth(finding),
            _ => 0,
        };
        if deepest > MAX_DEPTH {
            return Err(format!("it is nested {deepest} levels deep, and at most {MAX_DEPTH} may cross"));
        }
        if let Want::Agent(agent) = &want
            && agent.schema.as_ref().is_some_and(|schema| !Value::is_object(schema))
        {
            return Err("its schema is no object once it is written as JSON".to_owned());
        }
        let awaited = if matches!(want, Want::Workflow { .. }) { Awaited::Program } else { Awaited::Value };
        self.made += 1;
        self.pending.insert(self.made, awaited);
        let CallSite { path, phase, within, stack } = at;
        let line =
            compile::place(&stack, if within.is_some() { CHILD_STEM } else { MAIN }).map(|(line, _)| line);
        self.calls.push(Call { call: self.made, path, phase, within, line, want });
        Ok(self.made)
    }

    /// What a call waits for; `None` if it is not pending.
    pub(crate) fn awaited(&self, call: u32) -> Option<Awaited> {
        self.pending.get(&call).copied()
    }

    /// Whether a call was made and wants no answer any more.
    pub(crate) fn is_forgotten(&self, call: u32) -> bool {
        self.forgotten.contains(&call)
    }

    /// Whether the program has made all the calls it may ever make.
    pub(crate) fn is_used_up(&self) -> bool {
        self.made as usize >= self.limits.calls
    }

    /// Whether nothing is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// A call was answered.
    pub(crate) fn answered(&mut self, call: u32) {
        self.pending.remove(&call);
    }

    /// A timer was cleared.
    pub(crate) fn clear(&mut self, call: u32) {
        if self.pending.remove(&call).is_some() {
            self.forgotten.insert(call);
            self.cleared.push(call);
        }
    }

    /// `log`.
    pub(crate) fn log(&mut self, text: &str) -> Result<(), String> {
        self.room()?;
        let text = crossing::line(text, self.limits.log_chars);
        self.said.push(ProgramRemark::Log { text });
        Ok(())
    }

    /// `phase`.
    pub(crate) fn phase(&mut self, title: &str, within: Option<String>) -> Result<(), String> {
        self.room()?;
        let title = crossing::line(title, self.limits.log_chars);
        self.said.push(ProgramRemark::Phase { title, within });
        Ok(())
    }

    fn room(&mut self) -> Result<(), String> {
        self.lines += 1;
        if self.lines > self.limits.log_lines {
            self.stop.set(FaultKind::Logs);
            return Err(format!("a run may log {} lines", self.limits.log_lines));
        }
        Ok(())
    }
}

/// What the modules of child workflows are called, before their number.
pub(crate) const CHILD_STEM: &str = "child.js";

/// Where a call was made.
pub(crate) struct CallSite {
    pub(crate) path: String,
    pub(crate) phase: Option<String>,
    pub(crate) within: Option<String>,
    pub(crate) stack: String,
}
