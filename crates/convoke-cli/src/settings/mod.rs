//! What a command goes by: built-in values, then the user's configuration, the project's, the environment and
//! the flags, each layer over the one before. This module alone reads the environment and the configuration
//! files, and it remembers where every value came from.

mod caps;
mod confine;
mod editor;
mod endpoint;
mod environment;
#[cfg(test)]
mod example_tests;
mod fan_out;
mod file;
mod keys;
mod layers;
mod origin;
mod paths;
mod plain;
mod project;
mod resolve;
mod rules;
mod saved;
mod stated;
mod team;
mod time;
mod value;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use convoke_claude::{
    Auth, ClientConfig, Endpoint, Model, Models, Proxy, Secret, Server, TableError, Timeouts,
};
use convoke_kernel::{Capabilities, Limits};

pub(crate) use crate::args::OutputFormat;
pub(crate) use caps::{Cap, Caps, Unit, minutes, words as caps_words};
pub(crate) use confine::Wanted;
pub(crate) use editor::Editor;
pub(crate) use environment::Environment;
pub(crate) use fan_out::FanOut;
pub(crate) use file::check_user_file;
pub(crate) use origin::{ConfigFile, Origin, Row};
pub(crate) use project::ProjectKeys;
pub(crate) use rules::{Asking, is_simple};
pub(crate) use saved::{LibraryFolders, Saved};
pub(crate) use stated::{Price, Stated, parse_tokens};
pub(crate) use team::Team;
pub(crate) use time::parse_duration;
pub(crate) use value::{parse_host, parse_voters, switch_word};

use crate::failure::Failure;
use crate::render::TerminalLock;

/// The variable that makes a session small and gives it places of its own.
pub(crate) const DOC_TEST_MODE: &str = "DOC_TEST_MODE";

/// Everything a command goes by.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The directory that is worked in, canonical.
    pub(crate) dir: PathBuf,
    /// The model as the API names it; `offline` for the offline model.
    pub(crate) model: String,
    /// The effort to ask for; `None` leaves it to the model.
    pub(crate) effort: Option<String>,
    /// Text added to the system prompt.
    pub(crate) system: Option<String>,
    /// What a lean lead keeps beside what its task asks for; `None` if it is not lean.
    pub(crate) lean: Option<convoke_runtime::Lean>,
    /// What flags state about the model.
    pub(crate) stated: Stated,
    /// Where everything is remembered.
    pub(crate) journal: convoke_journal::Location,
    /// How many connections to a PostgreSQL journal there may be, and how long its server may be away.
    pub(crate) postgres: (u32, Duration),
    /// Where output files and unrecorded replies are kept.
    pub(crate) state_dir: PathBuf,
    /// Which model answers.
    pub(crate) source: ModelSource,
    /// Turns per exchange.
    pub(crate) max_turns: u32,
    /// The deadline of one command.
    pub(crate) bash_timeout: Duration,
    /// Attempts at one request.
    pub(crate) max_attempts: u32,
    /// What the session may use in all.
    pub(crate) caps: Caps,
    /// How the lead fans out.
    pub(crate) fan_out: FanOut,
    /// How long a stop waits for what is under way before it cuts that off.
    pub(crate) drain: Duration,
    /// How its team is run.
    pub(crate) team: Team,
    /// How commands are to be confined.
    pub(crate) confine: Wanted,
    /// What the environment says about where people's things are.
    pub(crate) surroundings: Environment,
    /// Which calls are allowed, refused or asked about.
    pub(crate) asking: Asking,
    /// Where saved workflows and kinds of agents are, and whose are trusted.
    pub(crate) saved: Saved,
    /// Whether `DOC_TEST_MODE` is set.
    pub(crate) doc_test: bool,
    /// Places of this session alone, which a process that leaves at once, without destructors, has to remove.
    pub(crate) throwaway: Vec<PathBuf>,
    /// The environment of commands.
    pub(crate) command_env: BTreeMap<String, String>,
    /// Further headers of every request.
    pub(crate) headers: Vec<(String, String)>,
    /// The values of the `anthropic-beta` header.
    pub(crate) betas: Vec<String>,
    /// The `anthropic-version` header.
    pub(crate) version: String,
    /// The way out.
    pub(crate) proxy: Proxy,
    /// How long to wait for a reply.
    pub(crate) timeouts: Timeouts,
    /// Whether credentials may go over plain http to another machine.
    pub(crate) insecure_http: bool,
    /// What is known about models.
    pub(crate) models: Models,
    /// The server, and what is said about it.
    pub(crate) server: Server,
    /// The form of what is printed on stdout.
    pub(crate) output: OutputFormat,
    /// Only the answer, warnings and errors.
    pub(crate) quiet: bool,
    /// All that a session came to, and not only the worst of it.
    pub(crate) verbose: bool,
    /// Lines of text alone: nothing moves and nothing is coloured.
    pub(crate) plain: bool,
    /// Whether lines that a CI runner would obey are escaped; `None` leaves it to where this runs.
    pub(crate) ci_safe: Option<bool>,
    /// What opens a file for a person.
    pub(crate) editor: Editor,
    /// The terminal that is drawn on and asked at.
    pub(crate) terminal: TerminalLock,
    /// What a person should know about these settings before a session.
    pub(crate) warnings: Vec<String>,
    /// Every key, its value and where it came from, secrets masked.
    pub(crate) rows: Vec<Row>,
    /// What the project's configuration chose, and whether that counts.
    pub(crate) project: ProjectKeys,
    /// The configuration files that were looked for.
    pub(crate) files: Vec<ConfigFile>,
}

/// Which model answers.
#[derive(Debug, Clone)]
pub(crate) enum ModelSource {
    /// The built-in offline model.
    Offline,
    /// A server that speaks the Messages API.
    Api {
        /// Its address.
        base_url: String,
        /// The API key.
        key: Option<Secret>,
        /// The bearer token.
        bearer: Option<Secret>,
    },
    /// None: there is no key, no token, no base URL, and no `--offline`.
    Nothing,
}

impl Settings {
    /// Where the value of a key came from, by the name a configuration file writes.
    pub(crate) fn origin(&self, key: &str) -> Option<&Origin> {
        self.rows.iter().find(|row| row.key == key).map(|row| &row.origin)
    }

    /// The model's row.
    pub(crate) fn model_row(&self) -> Model {
        self.models.get(&self.model)
    }

    /// What the server is taken to understand, with this model.
    pub(crate) fn endpoint(&self) -> Endpoint {
        // By the model's own name: an alias says nothing of whose model it is.
        self.server.row(&self.model_row().id)
    }

    /// What the model behind the endpoint accepts.
    pub(crate) fn capabilities(&self) -> Result<Capabilities, TableError> {
        convoke_claude::capabilities(&self.model_row(), &self.endpoint(), self.effort.as_deref())
    }

    /// The limits of a new agent.
    pub(crate) fn limits(&self) -> Limits {
        let bash_timeout_ms = u64::try_from(self.bash_timeout.as_millis()).unwrap_or(u64::MAX);
        Limits { max_turns: self.max_turns, max_attempts: self.max_attempts, bash_timeout_ms }
    }

    /// Turns of the agents that programs start, if a person chose them. Those of a program that a person runs
    /// have no lead whose turns `max_turns` could mean instead.
    pub(crate) fn callee_turns(&self, led: bool) -> Option<u32> {
        let chosen = |key| self.origin(key).is_some_and(|origin| *origin != Origin::Default);
        match (chosen("worker.turns"), chosen("max_turns") && !led) {
            (true, _) => Some(self.fan_out.worker.turns),
            (false, true) => Some(self.max_turns),
            (false, false) => None,
        }
    }

    /// Turns of the verifiers that programs ask for.
    pub(crate) fn verifier_turns(&self, led: bool) -> u32 {
        let usual = self.fan_out.worker.turns;
        self.callee_turns(led).map_or(usual, |turns| turns.min(usual))
    }

    /// Moves the work and everything that is kept to places of their own; a journal that a flag names stays.
    pub(crate) fn move_to(&mut self, dir: PathBuf, own: &std::path::Path) {
        self.throwaway = vec![dir.clone(), own.to_owned()];
        self.dir = dir;
        self.state_dir = own.to_owned();
        if let Some(row) = self.rows.iter_mut().find(|row| row.key == "journal")
            && !matches!(row.origin, Origin::Flag(_))
        {
            self.journal = convoke_journal::Location::Sqlite(own.join("journal.db"));
            row.value = Some(self.journal.to_string());
            row.origin = Origin::Variable(DOC_TEST_MODE);
        }
    }

    /// Checks that the cap in dollars can be held for these models. The offline model costs nothing, and the
    /// table says so.
    pub(crate) fn check_prices(&self, models: &[&str]) -> Result<(), Failure> {
        let rows: Vec<Model> = models.iter().map(|id| self.models.get(id)).collect();
        let origin = self.origin("budget.usd").cloned().unwrap_or(Origin::Default);
        fan_out::priced(self.caps.nano, &origin, &rows)
    }

    /// What a client for this server is made from.
    pub(crate) fn client_config(&self, base_url: String, auth: Auth) -> ClientConfig {
        ClientConfig {
            base_url,
            auth,
            version: self.version.clone(),
            betas: self.betas.clone(),
            headers: self.headers.clone(),
            proxy: self.proxy.clone(),
            timeouts: self.timeouts,
            insecure_http: self.insecure_http,
        }
    }

    /// The user's configuration file, whether it is there or not.
    pub(crate) fn user_file(&self) -> PathBuf {
        let user = self.files.iter().find(|file| file.layer == "user");
        user.map(|file| file.path.clone()).unwrap_or_default()
    }

    /// Where the full output of commands goes.
    pub(crate) fn outputs_dir(&self) -> PathBuf {
        self.state_dir.join("outputs")
    }

    /// Where the throwaway copies and temporary files of agents are.
    pub(crate) fn private_dir(&self) -> PathBuf {
        self.state_dir.join("private")
    }

    /// Where replies go that the journal would not take.
    pub(crate) fn spool_dir(&self) -> PathBuf {
        self.state_dir.join("spool")
    }
}
