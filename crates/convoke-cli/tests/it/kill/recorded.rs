//! What the journal says about a session that was killed.

use std::collections::BTreeMap;
use std::path::Path;

use convoke_journal::{Filter, Journal, Location, Options, Process};
use convoke_kernel::{Agent, AgentId, Event};
use serde_json::Value;

use super::UNKNOWN;

/// The agent as the journal has it.
pub(super) async fn fold(journal: &Path) -> Agent {
    let mut bits = [9; 10];
    bits[..4].copy_from_slice(&std::process::id().to_be_bytes());
    let options = Options::new(Process::current(bits));
    let journal = Journal::open(Location::Sqlite(journal.to_owned()), options).await.unwrap();
    let streams = journal.list(&Filter { prefix: Some(AgentId::PREFIX.into()), limit: None }).await.unwrap();
    let [lead] = streams.as_slice() else { panic!("{streams:?}") };
    assert!(lead.owner.is_none(), "{lead:?}");
    let mut agent = Agent::new();
    for (index, record) in journal.load(&lead.stream, 0).await.unwrap().into_iter().enumerate() {
        assert_eq!(record.seq, index as u64 + 1);
        agent.apply(&Event::decode(&record.event).unwrap(), record.at).unwrap();
    }
    assert!(journal.inputs(&lead.stream).await.unwrap().is_empty(), "an input was never dealt with");
    agent
}

/// The steps the model asked for, and of each whether it was told that the outcome is unknown.
pub(super) fn told(agent: &Agent) -> BTreeMap<String, bool> {
    let messages: Vec<Value> =
        agent.history().iter().map(|s| serde_json::from_str(s.as_str()).unwrap()).collect();
    let blocks = || messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let result = |id: &Value| {
        let results: Vec<&Value> = blocks().filter(|block| block["tool_use_id"] == *id).collect();
        assert_eq!(results.len(), 1, "{id}: {results:?}");
        results[0].to_string()
    };
    let calls = blocks().filter(|block| block["type"] == "tool_use");
    calls
        .map(|call| {
            let step = call["input"]["command"].as_str().unwrap().rsplit(' ').next().unwrap();
            let result = result(&call["id"]);
            let unknown = result.contains(UNKNOWN);
            assert!(unknown || result.contains(&format!("step {step} is done")), "{result}");
            (step.to_owned(), unknown)
        })
        .collect()
}
