//! The builder of sessions: a default for everything but the directory.

use std::future::Future;
use std::path::{Path, PathBuf};

use convoke_claude::Secret;
use convoke_kernel::Caps;
use convoke_runtime::{Asker, CustomTool};

use crate::error::Error;
use crate::open;
use crate::question::{Question, Reply, asker};
use crate::rule::Rule;
use crate::session::Session;
use crate::tool::{Role, Tool, custom};

/// What commands of agents may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sandbox {
    /// Nothing of the directory.
    ReadOnly,
    /// The directory.
    Workspace,
    /// Everything that this process may: nothing is confined.
    Off,
}

/// What commands of agents may reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Network {
    /// Nothing.
    Off,
    /// These hosts.
    Hosts(Vec<String>),
    /// Everything.
    On,
}

/// Where a session works.
#[derive(Debug, Clone)]
pub(crate) enum At {
    /// A new one, in this directory.
    Dir(PathBuf),
    /// The one of this id, where it was begun.
    Recorded(String),
}

/// What was chosen. `None` leaves it to the default.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) at: At,
    pub(crate) journal: Option<PathBuf>,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) worker_model: Option<String>,
    pub(crate) api_key: Option<Secret>,
    pub(crate) base_url: Option<String>,
    pub(crate) offline: bool,
    pub(crate) caps: Caps,
    /// Whether a budget was given, which counts for a session that is resumed too.
    pub(crate) granted: bool,
    pub(crate) bad: Option<String>,
    pub(crate) orchestration: bool,
    pub(crate) verifiers: u32,
    pub(crate) team: bool,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) network: Network,
    pub(crate) max_concurrent: u32,
    pub(crate) max_turns: Option<u32>,
    pub(crate) system: Option<String>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) ask_always: bool,
    pub(crate) workflows: Vec<PathBuf>,
    pub(crate) asker: Option<Asker>,
    pub(crate) tools: Vec<CustomTool>,
}

/// Builds a [`Session`]. Every choice has a default, the one of the program `convoke`.
#[derive(Clone)]
pub struct SessionBuilder {
    options: Options,
}

/// The most dollars, agents and minutes that a session uses unless the embedder says otherwise.
const USUAL: Caps = Caps { agents: Some(500), tokens: None, nano: Some(10_000_000_000), ms: Some(7_200_000) };

impl SessionBuilder {
    pub(crate) fn new(at: At) -> Self {
        let options = Options {
            at,
            journal: None,
            state_dir: None,
            helper: None,
            model: None,
            effort: None,
            worker_model: None,
            api_key: None,
            base_url: None,
            offline: false,
            caps: USUAL,
            granted: false,
            bad: None,
            orchestration: true,
            verifiers: 1,
            team: true,
            sandbox: None,
            network: Network::Off,
            max_concurrent: 10,
            max_turns: None,
            system: None,
            rules: Vec::new(),
            ask_always: false,
            workflows: Vec::new(),
            asker: None,
            tools: Vec::new(),
        };
        Self { options }
    }

    /// Where everything is recorded: the path of a SQLite file, a `postgres://` URL, or `memory` for a
    /// session that is gone with this process. The default is the journal of the program `convoke`:
    /// `ORCH_JOURNAL`, else `journal.db` in the state directory.
    #[must_use]
    pub fn journal(mut self, place: impl AsRef<Path>) -> Self {
        self.options.journal = Some(place.as_ref().to_owned());
        self
    }

    /// Where output files, replies that could not be recorded and kept changes are. The default is `convoke`
    /// in `XDG_STATE_HOME`, else in `~/.local/state`. It must not lie in the directory that is worked in.
    #[must_use]
    pub fn state_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.options.state_dir = Some(dir.into());
        self
    }

    /// Another executable that calls [`helper_entry`](crate::helper_entry) first in its `main`, for programs
    /// that cannot: tests, plugins. The default is this executable.
    #[must_use]
    pub fn helper(mut self, executable: impl Into<PathBuf>) -> Self {
        self.options.helper = Some(executable.into());
        self
    }

    /// The model of the lead. The default is `ANTHROPIC_MODEL`, else `claude-opus-4-8`.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.options.model = Some(model.into());
        self
    }

    /// The effort that models are asked for: `low`, `medium`, `high`, `xhigh`, as far as a model has it.
    #[must_use]
    pub fn effort(mut self, effort: impl Into<String>) -> Self {
        self.options.effort = Some(effort.into());
        self
    }

    /// The model of workers and verifiers. The default is the lead's.
    #[must_use]
    pub fn worker_model(mut self, model: impl Into<String>) -> Self {
        self.options.worker_model = Some(model.into());
        self
    }

    /// The API key. The default is `ANTHROPIC_API_KEY`, or the token in `ANTHROPIC_AUTH_TOKEN`.
    #[must_use]
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        self.options.api_key = Some(Secret::new(key));
        self
    }

    /// A server that speaks the Messages API. The default is `ANTHROPIC_BASE_URL`, else Anthropic's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.options.base_url = Some(url.into());
        self
    }

    /// Asks the built-in model: it goes by rules, has no intelligence, needs no key and costs nothing. For
    /// tests and first tries.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.options.offline = true;
        self
    }

    /// The most dollars that the session may cost; `None` is no limit. The default is 10.
    #[must_use]
    pub fn budget_usd(mut self, dollars: impl Into<Option<f64>>) -> Self {
        const NANO: f64 = 1e9;
        self.options.caps.nano = match dollars.into() {
            None => None,
            Some(dollars) if (0.0..1e9).contains(&dollars) => Some((dollars * NANO).round() as u64),
            Some(dollars) => {
                self.options.bad = Some(format!("budget_usd({dollars}): say a number of dollars from 0 on"));
                Some(0)
            }
        };
        self.options.granted = true;
        self
    }

    /// The most tokens, in and out, that the session may use; `None` is no limit, and the default.
    #[must_use]
    pub fn budget_tokens(mut self, tokens: impl Into<Option<u64>>) -> Self {
        self.options.caps.tokens = tokens.into();
        self.options.granted = true;
        self
    }

    /// The most agents below the lead that the session may start; `None` is no limit. The default is 500.
    #[must_use]
    pub fn budget_agents(mut self, agents: impl Into<Option<u32>>) -> Self {
        self.options.caps.agents = agents.into();
        self.options.granted = true;
        self
    }

    /// The most minutes that the session may take; `None` is no limit. The default is 120.
    #[must_use]
    pub fn budget_minutes(mut self, minutes: impl Into<Option<u64>>) -> Self {
        self.options.caps.ms = minutes.into().map(|minutes| minutes.saturating_mul(60_000));
        self.options.granted = true;
        self
    }

    /// Whether the lead may split its task among workers without asking, and have their findings verified.
    /// The default is yes. Without it a workflow needs an answer of [`on_question`](Self::on_question). It is
    /// what `--mode on` and `--mode off` are on the command line.
    #[must_use]
    pub fn orchestration(mut self, on: bool) -> Self {
        self.options.orchestration = on;
        self
    }

    /// How many verifiers look at the findings of each worker; 0 switches verification off. The default is 1.
    #[must_use]
    pub fn verifiers(mut self, verifiers: u32) -> Self {
        self.options.verifiers = verifiers;
        self
    }

    /// Whether the lead can make a team of agents that live on and write to each other. The default is yes.
    #[must_use]
    pub fn team(mut self, on: bool) -> Self {
        self.options.team = on;
        self
    }

    /// What commands may write. The default is the directory. How it is held is found by trying; where it
    /// cannot be held, [`build`](Self::build) fails, and nothing runs less confined.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.options.sandbox = Some(sandbox);
        self
    }

    /// What commands may reach over the network. The default is nothing.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.options.network = network;
        self
    }

    /// The most requests to the model that may be under way at once. The default is 10.
    #[must_use]
    pub fn max_concurrent(mut self, requests: u32) -> Self {
        self.options.max_concurrent = requests;
        self
    }

    /// How many turns the lead has for one answer. The default is 30.
    #[must_use]
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.options.max_turns = Some(turns);
        self
    }

    /// A text that is added to the lead's system prompt.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.options.system = Some(text.into());
        self
    }

    /// A rule about calls. Rules that deny count for a session that is resumed too; others are part of a new
    /// session.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.options.rules.push(rule);
        self
    }

    /// Asks before every command and every change that no rule allows.
    #[must_use]
    pub fn ask_always(mut self) -> Self {
        self.options.ask_always = true;
        self
    }

    /// A directory of workflows that can be called by name, by [`Session::run_workflow`] and by the lead.
    #[must_use]
    pub fn workflows(mut self, dir: impl Into<PathBuf>) -> Self {
        self.options.workflows.push(dir.into());
        self
    }

    /// Answers questions: about calls that a rule asks about, about workflows where orchestration is off, and
    /// those that workflows ask, which want a text. Without it they are refused, and questions for a text
    /// wait.
    #[must_use]
    pub fn on_question<F>(mut self, callback: impl Fn(Question) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        self.options.asker = Some(asker(callback));
        self
    }

    /// Gives a tool of your own to the agents of these roles. A session that was begun with it is resumed
    /// with it.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool, roles: impl IntoIterator<Item = Role>) -> Self {
        self.options.tools.push(custom(tool, roles));
        self
    }

    /// Opens the session: the journal, the sandbox, the way to the model. No model is asked and nothing is
    /// spent yet.
    pub async fn build(self) -> Result<Session, Error> {
        open::session(self.options).await
    }
}

impl std::fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionBuilder").field("at", &self.options.at).finish_non_exhaustive()
    }
}
