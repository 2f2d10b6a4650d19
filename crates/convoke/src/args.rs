//! The command line: every command and flag, and the texts of `--help`. It parses; it reads no file and no environment.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::settings::parse_duration;

const EXAMPLES: &str = "\
Examples:
  convoke --offline             a first look, without a key
  convoke review the error handling in src
  convoke run @task.md          the task is in a file
  git diff | convoke run -      the task comes from stdin
  convoke resume                go on after a crash or stop
  convoke runs show s_k3        what happened, in full

Exit codes:
  0 done                 4 stopped by a budget
  1 failed               5 waits for a person
  2 wrong usage          6 a finding the caller
  3 finished in part       asked to fail on
  130, 143, 129: stopped by SIGINT, SIGTERM, SIGHUP;
  `convoke resume` goes on.

The answer is on stdout, everything else on stderr.";

const RUN_EXAMPLES: &str = "\
Examples:
  convoke run                   reviews this directory
  convoke run explain src/main.rs
  convoke run @task.md
  convoke run --output json -   reads the task from stdin";

const RESUME_EXAMPLES: &str = "\
Examples:
  convoke resume                the newest unfinished run
                                of this directory
  convoke resume s_k3           any unique prefix of an id";

const PRUNE_EXAMPLES: &str = "\
Examples:
  convoke runs prune s_k3 --dry-run
  convoke runs prune --older-than 30d --finished
  convoke runs prune --finished --yes";

const SIM_EXAMPLES: &str = "\
Examples:
  convoke sim                   prints its address
  convoke sim --listen 127.0.0.1:8080
  ANTHROPIC_BASE_URL=http://127.0.0.1:8080 \\
    convoke run look around";

/// Runs Claude agents on a task in a directory, survives anything, and answers with evidence and a bill.
#[derive(Debug, Parser)]
#[command(name = "convoke", version, after_help = EXAMPLES, max_term_width = 120)]
#[command(override_usage = "convoke [OPTIONS] [TASK]...\n       convoke [OPTIONS] <COMMAND>")]
pub(crate) struct Cli {
    /// What is to be done, in any number of words (the same as `convoke run TASK`).
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command has.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Work in this directory instead of the current one.
    #[arg(long, short = 'C', value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,
    /// The journal: a file, or a postgres:// URL.
    #[arg(long, value_name = "PLACE", global = true)]
    pub(crate) journal: Option<String>,
    /// The form of what is printed on stdout [default: text].
    #[arg(long, short = 'o', value_name = "FORMAT", global = true)]
    pub(crate) output: Option<OutputFormat>,
    /// Only the answer, warnings and errors.
    #[arg(long, short = 'q', global = true)]
    pub(crate) quiet: bool,
}

/// Flags about the agent and the model behind it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentArgs {
    /// The model, by name or alias [default: claude-opus-4-8].
    #[arg(long, short = 'm', value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How hard the model tries: low, medium, high, xhigh, max, or `default` for the model's own.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,
    /// Text added to the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Use the built-in offline model: a demonstration by rules, without a key, a server or any intelligence.
    #[arg(long, conflicts_with = "model")]
    pub(crate) offline: bool,
    /// The most turns the agent may take before it hands back what it has [default: 30].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_turns: Option<u32>,
    /// The deadline of one command, such as 90s or 5m [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) bash_timeout: Option<Duration>,
}

/// All flags that settings are made from, wherever on the command line they stood.
#[derive(Debug, Clone, Default)]
pub(crate) struct GlobalArgs {
    pub(crate) place: PlaceArgs,
    pub(crate) agent: AgentArgs,
}

/// The form of what is printed on stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    // Plain comments: a doc comment on a value makes every option of every help page take three lines.
    // For people.
    #[default]
    Text,
    // One JSON document.
    Json,
    // One JSON event per line, as they happen.
    Jsonl,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give an agent a task (without one: review this directory).
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Go on with a run that was cut off, stopped or failed; one that has ended says its answer again.
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// List, show, export and remove runs.
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Tokens and dollars, by run and by model.
    Cost(CostArgs),
    /// Start the simulator: a strict Messages API server on this machine.
    #[command(after_help = SIM_EXAMPLES)]
    Sim(SimArgs),
    /// Show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check what Convoke needs, and say what to do about what is missing.
    Doctor(DoctorArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What is to be done; `-` reads it from stdin, `@FILE` from a file.
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run, by any unique prefix of its id; alone: the newest unfinished run of this directory.
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// The runs of this directory, newest first.
    List(ListArgs),
    /// Everything that happened in a run.
    Show(ShowArgs),
    /// A run's events as JSON lines.
    Export(ExportArgs),
    /// Remove runs and their output files for good.
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Runs of every directory.
    #[arg(long, short = 'a', conflicts_with = "dir")]
    pub(crate) all: bool,
    /// Runs of this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run, by any unique prefix of its id.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// One agent of it, by any unique prefix of its id.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Go on showing what happens until the run ends.
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The run, by any unique prefix of its id.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Write to this file, which must not exist yet.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Runs to remove, by any unique prefix of their ids.
    #[arg(value_name = "RUN", conflicts_with_all = ["older_than", "finished"])]
    pub(crate) runs: Vec<String>,
    /// Runs whose last event is older than this, such as 30d or 12h.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    pub(crate) older_than: Option<Duration>,
    /// Runs that are done or failed; together with --older-than: only those of that age.
    #[arg(long)]
    pub(crate) finished: bool,
    /// Say what would go and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// One run, by any unique prefix of its id; alone: all runs of the journal.
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The address to listen on; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Reply from this script (JSON) instead of the offline model.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Play a plain server (a local model, a gateway) instead of Anthropic's API.
    #[arg(long)]
    pub(crate) generic: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every key, its value and where it came from.
    Show(ConfigShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// The words that are commands.
const COMMANDS: &[&str] = &["run", "resume", "runs", "cost", "sim", "config", "doctor", "completions", "help"];

impl Cli {
    /// The command that is meant, and the flags that settings are made from. A task without a command is a run, unless
    /// it is one word: that is far more often a mistyped command than a task.
    pub(crate) fn split(self) -> Result<(GlobalArgs, Command), Failure> {
        let Cli { place, agent, task, command } = self;
        let command = match command {
            Some(command) if task.is_empty() => command,
            Some(_) => {
                let hint = format!("to give it as a task, write `convoke run {}`", task.join(" "));
                return Err(Failure::usage(format!("'{}' stands before a command", task.join(" "))).hint(hint));
            }
            None => {
                refuse_one_word(&task)?;
                Command::Run(RunArgs { task, agent: AgentArgs::default() })
            }
        };
        let inner = match &command {
            Command::Run(args) => Some(&args.agent),
            Command::Config(ConfigCommand::Show(args)) => Some(&args.agent),
            Command::Doctor(args) => Some(&args.agent),
            Command::Resume(_) | Command::Runs(_) | Command::Cost(_) | Command::Sim(_) | Command::Completions(_) => {
                None
            }
        };
        let agent = match (inner, agent.first_flag()) {
            (Some(inner), _) => inner.clone().over(agent)?,
            (None, None) => agent,
            (None, Some(flag)) => {
                let what = format!("{flag} has no meaning for this command");
                return Err(
                    Failure::usage(what).hint("an agent keeps what it was started with; see `convoke run --help`")
                );
            }
        };
        Ok((GlobalArgs { place, agent }, command))
    }
}

impl AgentArgs {
    /// The first flag that was given, if any.
    fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--model", self.model.is_some()),
            ("--effort", self.effort.is_some()),
            ("--system", self.system.is_some()),
            ("--offline", self.offline),
            ("--max-turns", self.max_turns.is_some()),
            ("--bash-timeout", self.bash_timeout.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// These flags, and those of `below` where these say nothing.
    fn over(self, below: AgentArgs) -> Result<AgentArgs, Failure> {
        let merged = AgentArgs {
            model: self.model.or(below.model),
            effort: self.effort.or(below.effort),
            system: self.system.or(below.system),
            offline: self.offline || below.offline,
            max_turns: self.max_turns.or(below.max_turns),
            bash_timeout: self.bash_timeout.or(below.bash_timeout),
        };
        match (&merged.model, merged.offline) {
            (Some(_), true) => Err(Failure::usage("--offline and --model cannot be used together")),
            _ => Ok(merged),
        }
    }
}

fn refuse_one_word(task: &[String]) -> Result<(), Failure> {
    let [word] = task else { return Ok(()) };
    let other_form = word == "-" || word.starts_with('@');
    if other_form || word.trim().contains(char::is_whitespace) {
        return Ok(());
    }
    let failure = Failure::usage(format!("'{word}' is no command of convoke"));
    let failure = match nearest(word, COMMANDS.iter().copied()) {
        Some(command) => failure.hint(format!("the nearest command is `convoke {command}`")),
        None => failure,
    };
    Err(failure.hint(format!("if it is a task, write `convoke run {word}`")))
}

/// The candidate that is most like the word.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    scored.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, candidate)| candidate)
}
