//! What the journal knows of an agent: its history, or what it will be made of.

use convoke_journal::StreamId;
use convoke_kernel::{Agent, AgentId, AgentSpec, Event};

use crate::error::Error;
use crate::inputs::Waiting;
use crate::runtime::Config;

/// Folds what has happened after event number `last`.
pub(crate) async fn load(
    config: &Config,
    id: &AgentId,
    stream: &StreamId,
    agent: &mut Agent,
    last: &mut u64,
) -> Result<(), Error> {
    for record in config.journal.load(stream, *last).await? {
        let seq = record.seq;
        let bad = id.clone();
        let event =
            Event::decode(&record.event).map_err(|cause| Error::BadEvent { agent: bad, seq, cause })?;
        agent.apply(&event, record.at).map_err(|cause| Error::BadHistory {
            agent: id.clone(),
            seq,
            cause,
        })?;
        *last = seq;
    }
    Ok(())
}

/// What an agent that has not been driven yet will be made of.
pub(crate) async fn first_spec(config: &Config, id: &AgentId, stream: &StreamId) -> Result<AgentSpec, Error> {
    let inputs = config.journal.inputs(stream).await?;
    let spec = |body: &str| serde_json::from_str::<Waiting>(body).ok().and_then(|waiting| waiting.start);
    let unreadable = inputs
        .first()
        .and_then(|input| serde_json::from_str::<Waiting>(&input.body).err().map(|e| (input.key.clone(), e)));
    match (inputs.iter().find_map(|input| spec(&input.body)), unreadable) {
        (Some(spec), _) => Ok(spec),
        (None, Some((key, cause))) => Err(Error::BadInput { agent: id.clone(), key, cause }),
        (None, None) => Err(Error::NoSuchAgent(id.clone())),
    }
}
