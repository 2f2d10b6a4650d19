//! How a session stands in the journal: read between two lives of its process, and at its end. It only looks.

use std::collections::BTreeSet;
use std::path::Path;

use convoke_journal::{Filter, Journal, Location, Options, Process, StreamId};
use convoke_kernel::{Agent, AgentSpec, Effect, Event, Ledger, Role, Run, RunEvent, Verdict};

use super::brain::{LEAD, name};

/// A session as the journal has it.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// The session, once its lead has begun.
    pub(super) session: Option<String>,
    /// Whether the lead has given its answer.
    pub(super) answered: bool,
    /// The agents whose request was decided and has no recorded reply.
    pub(super) in_flight: BTreeSet<String>,
    /// The agents whose command was decided and has no recorded outcome.
    pub(super) commands: BTreeSet<String>,
    /// Agents below the lead that have begun.
    pub(super) agents: usize,
    /// Items that have their verdicts.
    pub(super) judged: usize,
    /// Everything that is still to be done, by agents and runs together.
    pub(super) open: usize,
    /// Every finding with its verdict, by item.
    pub(super) findings: Vec<String>,
    /// What the ledger says was spent, and the part of it that was never confirmed.
    pub(super) spent_nano: u64,
    pub(super) unconfirmed_nano: u64,
}

impl Standing {
    pub(super) async fn read(file: &Path) -> Self {
        let mut standing = Self::default();
        if !file.exists() {
            return standing;
        }
        let mut bits = [8; 10];
        bits[..4].copy_from_slice(&std::process::id().to_be_bytes());
        let options = Options::new(Process::current(bits));
        let journal = Journal::open(Location::Sqlite(file.to_owned()), options).await.unwrap();
        for listed in journal.list(&Filter::default()).await.unwrap() {
            let stream = listed.stream;
            assert!(listed.owner.is_none(), "{stream} is owned by {:?}", listed.owner);
            match &stream.as_str()[..2] {
                "a_" => standing.add_agent(&journal, &stream).await,
                "wf" => standing.add_run(&journal, &stream).await,
                _ => {}
            }
        }
        if let Some(session) = &standing.session {
            let stream = StreamId::new(session.as_str()).unwrap();
            let ledger: Ledger =
                serde_json::from_str(&journal.shared(&stream).await.unwrap().unwrap()).unwrap();
            standing.spent_nano = ledger.spent().nano;
            standing.unconfirmed_nano = ledger.unconfirmed().nano;
        }
        journal.close().await.unwrap();
        standing
    }

    async fn add_agent(&mut self, journal: &Journal, stream: &StreamId) {
        let mut agent = Agent::new();
        for record in journal.load(stream, 0).await.unwrap() {
            agent.apply(&Event::decode(&record.event).unwrap(), record.at).unwrap();
        }
        // What was submitted and not yet taken is still to be done.
        self.open += journal.inputs(stream).await.unwrap().len();
        let Some(spec) = agent.spec() else { return };
        let who = who(spec);
        let pending = agent.pending();
        self.open += pending.len() + usize::from(!agent.is_idle());
        let is_call = |effect: &Effect| matches!(effect, Effect::CallModel { .. });
        let is_tool = |effect: &Effect| matches!(effect, Effect::RunTool { .. });
        if spec.role == Role::Lead {
            self.session = Some(spec.session.to_string());
            self.answered = agent.is_idle() && agent.outcome().is_some();
        } else {
            self.agents += 1;
            self.commands.extend(pending.iter().any(is_tool).then(|| who.clone()));
        }
        self.in_flight.extend(pending.iter().any(is_call).then_some(who));
    }

    async fn add_run(&mut self, journal: &Journal, stream: &StreamId) {
        let mut run = Run::new();
        for record in journal.load(stream, 0).await.unwrap() {
            run.apply(&RunEvent::decode(&record.event).unwrap(), record.at).unwrap();
        }
        self.open += run.pending().len() + usize::from(!run.is_closed());
        for item in 1..=run.items().len() as u32 {
            let report = run.result(item).and_then(|result| result.report.as_ref());
            let findings = report.map_or(&[][..], |report| &report.findings);
            let verdicts: &[Verdict] = run.verdicts(item);
            self.judged += usize::from(!verdicts.is_empty());
            let both = findings.iter().zip(verdicts);
            self.findings.extend(both.map(|(finding, verdict)| format!("{item}: {finding:?} {verdict:?}")));
        }
    }
}

/// The agent as the brain calls it.
fn who(spec: &AgentSpec) -> String {
    match spec.role {
        Role::Worker => name("w", &spec.label),
        Role::Verifier => name("v", &spec.label),
        Role::Lead | Role::Task | Role::Callee | Role::Teammate => LEAD.to_owned(),
    }
}
