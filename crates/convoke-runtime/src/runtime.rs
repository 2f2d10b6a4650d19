//! The library's front: open it with everything it needs, start an agent, drive it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use convoke_claude::{Client, Models};
use convoke_journal::{Journal, KeyedInput, StreamId};
use convoke_kernel::{AgentId, AgentSpec, Capabilities, LeadSettings, Limits, Summary, Thinking};
use convoke_sandbox::HelperPath;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::driver::{Crash, Driver, Ended, Take};
use crate::error::Error;
use crate::ids::Ids;
use crate::notice::Watcher;
use crate::stop::Stop;

/// Everything the runtime needs. It reads no environment, no flags and no files of its own accord.
#[derive(Clone)]
pub struct Config {
    /// Where everything is remembered.
    pub journal: Journal,
    /// Who is talked to.
    pub client: Client,
    /// What models cost.
    pub models: Models,
    /// Time.
    pub clock: Clock,
    /// Ids.
    pub ids: Ids,
    /// The executable under which commands live.
    pub helper: HelperPath,
    /// The environment of commands: an allow-list, without secrets.
    pub env: BTreeMap<String, String>,
    /// Where the full output of commands goes; agents read it there.
    pub outputs: PathBuf,
    /// Where replies go that the journal would not take, best place first.
    pub spools: Vec<PathBuf>,
    /// How long a stop waits for what is under way.
    pub drain: Duration,
    /// Where a test wants the process to die.
    pub crash: Option<Crash>,
}

/// What a person chose about a new lead.
#[derive(Debug, Clone)]
pub struct Start {
    /// The model.
    pub model: String,
    /// The directory.
    pub dir: PathBuf,
    /// What model and endpoint accept.
    pub capabilities: Capabilities,
    /// Limits.
    pub limits: Limits,
    /// Text added to the system prompt.
    pub system: Option<String>,
}

impl Start {
    /// A lead with cautious assumptions about the model; `convoke_claude::capabilities` knows better.
    pub fn new(model: impl Into<String>, dir: impl AsRef<Path>) -> Self {
        let capabilities = Capabilities {
            system_role: false,
            anthropic_tools: false,
            cache_marks: false,
            thinking: Thinking::Omit,
            effort: None,
            max_output: 8_192,
            window: 128_000,
        };
        let dir = dir.as_ref().to_owned();
        Self { model: model.into(), dir, capabilities, limits: Limits::default(), system: None }
    }
}

/// An input as it waits in the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Waiting {
    /// The agent is to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<AgentSpec>,
    /// Somebody says this.
    pub(crate) say: String,
}

/// What a listing shows of an agent whose first input is waiting and that nobody has driven yet.
pub fn summary_of_waiting(input: &KeyedInput, submitted_at: u64) -> Option<Summary> {
    let Waiting { start, say } = serde_json::from_str(&input.body).ok()?;
    start.map(|spec| Summary::waiting(&spec, &say, submitted_at))
}

/// Drives agents. Cloning it is cheap and shares everything.
#[derive(Clone)]
pub struct Runtime(Arc<Config>);

impl Runtime {
    /// A runtime over these parts.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(config))
    }

    /// Writes a new lead and its task into the journal. Nothing is done until somebody drives it.
    pub async fn start(&self, start: Start, task: &str) -> Result<AgentId, Error> {
        if task.trim().is_empty() {
            return Err(Error::EmptyTask);
        }
        let agent = self.0.ids.agent()?;
        let spec = AgentSpec::lead(LeadSettings {
            session: self.0.ids.session()?,
            dir: start.dir.to_str().ok_or_else(|| Error::DirNotText(start.dir.clone()))?.to_owned(),
            model: start.model,
            capabilities: start.capabilities,
            limits: start.limits,
            extra_system: start.system,
        });
        self.submit(&agent, "start", Waiting { start: Some(spec), say: task.to_owned() }).await?;
        Ok(agent)
    }

    /// Says something to an agent; it is taken up when the agent is idle. The key makes repeating it harmless.
    pub async fn say(&self, agent: &AgentId, key: &str, text: &str) -> Result<(), Error> {
        if text.trim().is_empty() {
            return Err(Error::EmptyTask);
        }
        self.submit(agent, key, Waiting { start: None, say: text.to_owned() }).await
    }

    async fn submit(&self, agent: &AgentId, key: &str, waiting: Waiting) -> Result<(), Error> {
        let body = serde_json::to_string(&waiting)?;
        let input = KeyedInput { stream: StreamId::from(agent), key: key.to_owned(), body };
        self.0.journal.submit(&input, self.0.clock.now()).await?;
        Ok(())
    }

    /// Drives an agent until its inputs are used up and its exchange is closed, or until it is asked to stop.
    pub async fn drive(
        &self,
        agent: &AgentId,
        take: Take,
        stop: Stop,
        watcher: Option<Watcher>,
    ) -> Result<Ended, Error> {
        Driver::own(Arc::clone(&self.0), agent.clone(), watcher).await?.run(take, stop).await
    }
}
