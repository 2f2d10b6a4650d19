//! What a workflow program's run came to, as plain data and in words: its value, what was lost, declined or
//! never awaited, and what waits for a person. It reads the folded run and decides nothing.

use convoke_kernel::{
    CallState, FailureKind, ItemStatus, Program, ProgramCounts, ProgramEnd, ProgramSaid, ProgramStatus,
};
use convoke_view::is_want_of_room;
use serde::Serialize;
use serde_json::Value;

use super::model::{Failed, Tokens};
use crate::again::Naming;
use crate::render::{clean, count};

/// The kinds of faults that are nothing a script could mend.
const NOT_THE_SCRIPT: [&str; 2] = ["deadline", "died"];

/// What a resume is given that puts a mended script in the place of one that fails by itself.
pub(crate) const MENDED: &str = " --script FILE";

/// A program's run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ProgramReport {
    /// The run's id, `wf_…`.
    pub(crate) run: String,
    pub(crate) name: String,
    /// The SHA-256 of its source.
    pub(crate) digest: String,
    /// Whether a person ran it by a command; otherwise a lead did, and went on meanwhile.
    pub(crate) by_person: bool,
    /// `complete`, `partial`, `failed`, `stopped`, `declined`, `waiting` or `open`.
    pub(crate) status: &'static str,
    /// How often it was run from its beginning.
    pub(crate) pass: u32,
    /// What it returned; `None` if it did not.
    pub(crate) value: Option<Value>,
    /// What of the value could not be written as JSON, by path.
    pub(crate) replaced: Vec<String>,
    /// Why it did not return.
    pub(crate) failure: Option<Failed>,
    pub(crate) counts: ProgramCounts,
    /// Calls of agents that did not end well.
    pub(crate) losses: Vec<Loss>,
    /// Calls of agents that the program did not wait for.
    pub(crate) unawaited: Vec<u32>,
    /// The step that the budget had no room for.
    pub(crate) declined: Option<Declined>,
    /// The questions that wait for a person.
    pub(crate) questions: Vec<Checkpoint>,
    /// What a person should know of single calls, such as where a worktree is.
    pub(crate) notes: Vec<Note>,
    /// What it said by `log`.
    pub(crate) log: Vec<String>,
    /// Tokens of its agents in this pass.
    pub(crate) usage: Tokens,
    pub(crate) cost_nano: Option<u64>,
}

/// A call that did not end well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Loss {
    pub(crate) call: u32,
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    pub(crate) phase: Option<String>,
    /// The child workflow that made it.
    pub(crate) within: Option<String>,
    pub(crate) why: String,
    pub(crate) agents: Vec<String>,
    /// What went wrong, if it was begun and failed; the words above begin with it.
    #[serde(skip)]
    pub(crate) failure: Option<FailureKind>,
}

/// A step that was not begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Declined {
    pub(crate) agents: u32,
    pub(crate) reason: String,
}

/// A question of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Checkpoint {
    /// What `resume --answer` takes.
    pub(crate) id: String,
    pub(crate) call: u32,
    /// What the program is called.
    pub(crate) workflow: String,
    pub(crate) question: String,
    /// The command that answers it; `None` if the journal is gone.
    pub(crate) answer: Option<String>,
}

/// What a person should know of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    pub(crate) call: u32,
    pub(crate) label: String,
    pub(crate) note: String,
}

impl ProgramReport {
    /// What a run came to; `None` for one that was never begun. `session` is what a resume names.
    pub(crate) fn of(program: &Program, journal: &Naming, session: &str) -> Option<Self> {
        let spec = program.spec()?;
        let (value, replaced, failure) = match program.end() {
            Some(ProgramEnd::Returned { value, replaced }) => {
                (serde_json::from_str(value.as_str()).ok(), replaced.clone(), None)
            }
            Some(ProgramEnd::Failed { kind, message }) => {
                (None, Vec::new(), Some(Failed { kind: kind.clone(), message: message.clone() }))
            }
            None => (None, Vec::new(), None),
        };
        let questions: Vec<Checkpoint> = program
            .questions()
            .into_iter()
            .map(|made| {
                let id = format!("{}:{}", spec.run, made.call);
                let answer = journal.resume(session).map(|resume| format!("{resume} --answer {id}=TEXT"));
                Checkpoint {
                    question: question(made.want.as_str()),
                    call: made.call,
                    workflow: spec.name.clone(),
                    answer,
                    id,
                }
            })
            .collect();
        let declined = program.declined();
        let summary = program.summary();
        Some(Self {
            run: spec.run.clone(),
            name: spec.name.clone(),
            digest: spec.digest.clone(),
            by_person: !spec.background,
            status: match (program.status(), declined, questions.is_empty()) {
                (Some(status), ..) => status.word(),
                (None, Some(_), _) => "declined",
                (None, None, false) => "waiting",
                (None, None, true) => "open",
            },
            pass: program.pass(),
            value,
            replaced,
            failure,
            counts: program.counts(),
            losses: if program.end().is_some() || program.status().is_some() {
                program.losses().into_iter().map(loss).collect()
            } else {
                // What is still to be done is not lost.
                program.losses().into_iter().filter(|call| call.result.is_some()).map(loss).collect()
            },
            unawaited: unawaited(program),
            declined: declined.map(|step| Declined { agents: step.agents, reason: step.reason.clone() }),
            questions,
            notes: program.calls().filter_map(note).collect(),
            log: program.said().iter().filter_map(log_line).collect(),
            usage: summary.as_ref().map(|summary| Tokens::from(summary.usage)).unwrap_or_default(),
            cost_nano: summary.and_then(|summary| summary.cost_nano),
        })
    }

    /// What was said where the budget had no room for one of its agents; empty if it had.
    pub(crate) fn shortages(&self) -> Vec<&str> {
        let is_short = |loss: &&Loss| loss.failure == Some(FailureKind::Budget);
        let lost = self.losses.iter().filter(is_short).map(|loss| loss.why.as_str());
        let thrown = self.failure.iter().map(|failure| failure.message.as_str());
        lost.chain(thrown.filter(|said| is_want_of_room(said))).collect()
    }

    /// Whether it failed by its script alone: as it is it would fail again, and no agent died that a resume
    /// would ask again.
    pub(crate) fn wants_mending(&self) -> bool {
        let by_script =
            self.failure.as_ref().is_some_and(|failure| !NOT_THE_SCRIPT.contains(&failure.kind.as_str()));
        by_script && self.status == "failed" && self.losses.is_empty() && self.shortages().is_empty()
    }

    /// The step that waits for a larger budget.
    pub(crate) fn waiting_step(&self) -> Option<&Declined> {
        self.declined.as_ref().filter(|_| self.status == "declined")
    }

    /// The value as people read it: a text as it is, anything else as JSON.
    pub(crate) fn value_text(&self) -> String {
        value_text(self.value.as_ref())
    }

    /// The run in one line: `workflow review wf_…: partial · 12 agent calls: 10 ok, 2 failed · pass 2, 3
    /// served from before`.
    pub(crate) fn head(&self) -> String {
        let mut parts = vec![format!("workflow {} {}: {}", self.name, self.run, self.status)];
        parts.push(calls_line(&self.counts));
        if self.counts.reused > 0 {
            parts.push(format!("{} served from before", self.counts.reused));
        }
        if self.pass > 1 {
            parts.push(format!("pass {}", self.pass));
        }
        clean(&parts.join(" · ")).replace('\n', " ")
    }

    /// What is to be said beside that, one line each; `notes` are about worktrees, which may be listed
    /// elsewhere.
    pub(crate) fn lines(&self, notes: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(failure), false) = (&self.failure, self.by_person) {
            lines.push(format!("the program failed ({}): {}", failure.kind, failure.message));
        }
        for loss in &self.losses {
            let within = loss.within.as_ref().map(|within| format!("▸ {within}, ")).unwrap_or_default();
            let phase = loss.phase.as_ref().map(|phase| format!(" ({within}{phase})")).unwrap_or_default();
            lines.push(format!("lost: call {} {}{phase}: {}", loss.call, loss.label, loss.why));
        }
        if !self.unawaited.is_empty() {
            let calls: Vec<String> = self.unawaited.iter().map(u32::to_string).collect();
            lines.push(format!(
                "the program did not wait for the agents of these calls: {}",
                calls.join(", ")
            ));
        }
        if let (Some(declined), false) = (&self.declined, self.by_person) {
            lines.push(format!("declined: {}", declined.reason));
        }
        if !self.replaced.is_empty() {
            lines.push(format!(
                "not JSON, replaced by placeholders in the value: {}",
                self.replaced.join(", ")
            ));
        }
        lines.extend(
            self.notes
                .iter()
                .filter(|_| notes)
                .map(|note| format!("call {} {}: {}", note.call, note.label, note.note)),
        );
        lines
    }
}

/// A value as people read it.
pub(crate) fn value_text(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => format!("{value:#}"),
    }
}

/// `12 agent calls: 10 ok, 1 failed`.
pub(crate) fn calls_line(counts: &ProgramCounts) -> String {
    let ended = [
        (counts.ok, "ok"),
        (counts.degraded, "degraded"),
        (counts.failed, "failed"),
        (counts.not_done, "not done"),
        (counts.skipped, "skipped"),
        (counts.open, "open"),
    ];
    let said: Vec<String> =
        ended.iter().filter(|(many, _)| *many > 0).map(|(many, word)| format!("{many} {word}")).collect();
    let calls = count(counts.agent_calls, "agent call");
    if said.is_empty() { calls } else { format!("{calls}: {}", said.join(", ")) }
}

/// What a checkpoint asks.
fn question(want: &str) -> String {
    let want: Value = serde_json::from_str(want).unwrap_or_default();
    want.get("question").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn loss(call: &CallState) -> Loss {
    let made = &call.made;
    Loss {
        call: made.call,
        kind: made.kind.word(),
        label: made.label.clone(),
        phase: made.phase.clone(),
        within: made.within.clone(),
        why: call.why_lost(),
        agents: call.result.iter().flat_map(|result| &result.agents).map(ToString::to_string).collect(),
        failure: call.result.as_ref().and_then(|result| match &result.status {
            ItemStatus::Failed { kind, .. } => Some(*kind),
            ItemStatus::Ok | ItemStatus::Skipped { .. } => None,
        }),
    }
}

fn note(call: &CallState) -> Option<Note> {
    let note = call.result.as_ref()?.note.clone()?;
    Some(Note { call: call.made.call, label: call.made.label.clone(), note })
}

fn log_line(said: &ProgramSaid) -> Option<String> {
    match said {
        ProgramSaid::Log(line) => Some(line.clone()),
        ProgramSaid::Phase(_) => None,
    }
}

/// The calls of agents whose answers came after the program's end, or never.
fn unawaited(program: &Program) -> Vec<u32> {
    if program.end().is_none() || program.status() == Some(ProgramStatus::Stopped) {
        return Vec::new();
    }
    let fed = (program.steps() as usize).saturating_sub(1);
    let given: Vec<u32> = program.answers().iter().take(fed).map(|(call, _)| *call).collect();
    let late = program.calls().filter(|call| call.made.kind.is_agents() && !given.contains(&call.made.call));
    late.map(|call| call.made.call).collect()
}
