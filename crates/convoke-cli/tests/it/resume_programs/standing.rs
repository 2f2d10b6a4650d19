//! How a program's session stands in the journal: read between two lives of its process, and at its end. It
//! only looks.

use std::collections::BTreeMap;
use std::path::Path;

use convoke_journal::{Filter, Journal, Location, Options, Process, StreamId};
use convoke_kernel::{Agent, AgentId, Effect, Event, Ledger, Program, ProgramEvent, Role, RunId, SessionId};
use serde_json::Value;

/// A session as the journal has it. Agents are told apart by what they were asked.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// The session, once its lead has begun.
    pub(super) session: Option<SessionId>,
    /// How many of those with this prompt have ended.
    pub(super) done: BTreeMap<String, usize>,
    /// How many of them have a request that was decided and no recorded reply to it.
    pub(super) in_flight: BTreeMap<String, usize>,
    /// How often the program was run from its beginning, and what it came to.
    pub(super) passes: u32,
    pub(super) value: Option<Value>,
    pub(super) status: Option<&'static str>,
    /// Agents that hold something in the ledger, what it says was spent, and how many agents it counts.
    pub(super) holds: usize,
    pub(super) spent_nano: u64,
    pub(super) counted: u32,
}

impl Standing {
    /// The session of this directory.
    pub(super) async fn read(journal: &str, dir: &Path) -> Self {
        let mut bits = [7; 10];
        bits[..4].copy_from_slice(&std::process::id().to_be_bytes());
        let location = if journal.starts_with("postgres") {
            journal.parse().unwrap()
        } else {
            Location::Sqlite(journal.into())
        };
        let journal = Journal::open(location, Options::new(Process::current(bits))).await.unwrap();
        let mut standing = Self::default();
        let agents = Filter { prefix: Some(AgentId::PREFIX.to_owned()), limit: None };
        for listed in journal.list(&agents).await.unwrap() {
            let mut agent = Agent::new();
            for record in journal.load(&listed.stream, 0).await.unwrap() {
                agent.apply(&Event::decode(&record.event).unwrap(), record.at).unwrap();
            }
            let Some(spec) = agent.spec().filter(|spec| Path::new(&spec.dir) == dir) else { continue };
            assert!(listed.owner.is_none(), "{} is owned by {:?}", listed.stream, listed.owner);
            if spec.role == Role::Lead {
                standing.session = Some(spec.session.clone());
                standing.add_run(&journal, listed.stream.as_str()).await;
            } else {
                standing.add_agent(&agent);
            }
        }
        if let Some(session) = &standing.session {
            let ledger = journal.shared(&StreamId::new(session.as_str()).unwrap()).await.unwrap().unwrap();
            let ledger: Ledger = serde_json::from_str(&ledger).unwrap();
            (standing.holds, standing.spent_nano) = (ledger.holds().count(), ledger.spent().nano);
            standing.counted = ledger.agents();
        }
        journal.close().await.unwrap();
        standing
    }

    fn add_agent(&mut self, agent: &Agent) {
        let Some(summary) = agent.summary() else { return };
        let flying = agent.pending().iter().any(|effect| matches!(effect, Effect::CallModel { .. }));
        *self.in_flight.entry(summary.task.clone()).or_default() += usize::from(flying);
        *self.done.entry(summary.task).or_default() += usize::from(agent.is_done());
    }

    async fn add_run(&mut self, journal: &Journal, lead: &str) {
        let mut program = Program::new();
        let run = RunId::derived(&["workflow", lead, "person_1"]);
        for record in journal.load(&StreamId::new(run.as_str()).unwrap(), 0).await.unwrap() {
            program.apply(&ProgramEvent::decode(&record.event).unwrap(), record.at).unwrap();
        }
        self.passes = program.pass();
        self.value = program.value().map(|text| serde_json::from_str(text).unwrap());
        self.status = program.status().map(|status| status.word());
    }
}
