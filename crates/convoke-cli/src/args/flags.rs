//! The flags of a session in groups, each of which can stand before or after the name of a command. They are
//! parsed and laid over one another here; what they mean is decided in `settings`.

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use convoke_kernel::Sandbox;
use convoke_sandbox::LayerSet;

use super::approval::ApprovalArgs;
use super::trees::IsolationFlag;
use super::workflow::TrustArgs;
use crate::failure::Failure;
use crate::report::{ReportFile, Severity};
use crate::settings::{Cap, Caps, Price, parse_duration, parse_host, parse_tokens, parse_voters};

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
    /// Use a short prompt and only the tools that the task or a flag asks for; `--lean=off` never does
    /// [default: for context windows up to 32k].
    #[arg(long, value_name = "on|off", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) lean: Option<Switch>,
    /// The model's context window in tokens, such as 16k, if the built-in table lacks it or is wrong.
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub(crate) window: Option<u32>,
    /// The most tokens of one reply, such as 2k.
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub(crate) reply: Option<u32>,
    /// What the model costs in dollars per million tokens: 0, or IN/OUT such as 0.5/2.
    #[arg(long, value_name = "IN/OUT", value_parser = Price::parse)]
    pub(crate) price: Option<Price>,
}

/// Flags about what a session may spend in all; with `resume` they grant a new total.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Budget of the session (`none` lifts a cap)")]
pub(crate) struct BudgetArgs {
    /// The most agents below the lead, verifiers included [default: 500].
    #[arg(long, value_name = "N", value_parser = Cap::agents)]
    pub(crate) budget_agents: Option<Cap>,
    /// The most tokens, in and out [default: none].
    #[arg(long, value_name = "N", value_parser = Cap::tokens)]
    pub(crate) budget_tokens: Option<Cap>,
    /// The most dollars, such as 2.50 [default: 10].
    #[arg(long, value_name = "X", value_parser = Cap::dollars)]
    pub(crate) budget_usd: Option<Cap>,
    /// The most minutes; after them agents only report what they have [default: 120].
    #[arg(long, value_name = "X", value_parser = Cap::minutes)]
    pub(crate) budget_minutes: Option<Cap>,
}

/// Flags about the agents that a lead fans out to.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fan-out")]
pub(crate) struct FanOutArgs {
    /// Orchestration mode: the lead may start many agents without asking each time [default: on].
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) mode: Option<Switch>,
    /// Allow workflows in this session without asking, whatever the mode.
    #[arg(long)]
    pub(crate) workflow: bool,
    /// Verifiers that try to refute each result, up to 9, or `off` [default: 1].
    #[arg(long, value_name = "off|N", value_parser = parse_voters)]
    pub(crate) verify: Option<u32>,
    /// The most agents with a model request under way at once [default: 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max_concurrent: Option<u32>,
    /// The most subtasks that the lead may hand out at once, in one Workflow call [default: 200].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_subtasks: Option<u32>,
    /// The model of workers and verifiers [default: the lead's].
    #[arg(long, value_name = "NAME")]
    pub(crate) worker_model: Option<String>,
    /// How hard workers and verifiers try [default: as the lead].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) worker_effort: Option<String>,
    /// The most turns of a worker or verifier [default: 15].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) worker_turns: Option<u32>,
}

/// Flags about the team that a lead can make.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Team (docs/teams.md)")]
pub(crate) struct TeamArgs {
    /// Offer the lead no team: no teammates, no mail, no task board.
    #[arg(long)]
    pub(crate) no_team: bool,
    /// Offer the lead a team, also with --lean.
    #[arg(long, conflicts_with = "no_team")]
    pub(crate) team: bool,
    /// How long a teammate without work keeps its shell before it sleeps [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) idle: Option<Duration>,
    /// Do not read CLAUDE.md and AGENTS.md, even of a project that is trusted.
    #[arg(long)]
    pub(crate) no_memory: bool,
}

/// Flags about what commands may touch. A session keeps what it was started with.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct ConfineArgs {
    /// What commands may change: nothing that stays (read-only), this directory (workspace), or all that you
    /// may, unconfined (off) [default: workspace].
    #[arg(long, value_name = "POLICY", hide_possible_values = true)]
    pub(crate) sandbox: Option<SandboxFlag>,
    /// Let commands use the network.
    #[arg(long, conflicts_with = "network_allow")]
    pub(crate) network: bool,
    /// Let commands reach this host over HTTP(S), such as crates.io or *.crates.io; may be given several
    /// times.
    #[arg(long, value_name = "HOST", value_delimiter = ',', value_parser = parse_host)]
    pub(crate) network_allow: Vec<String>,
    /// The layers of the sandbox: the best that work here, or Landlock and seccomp alone, to try the weaker
    /// set [default: best].
    #[arg(long, value_name = "best|landlock", hide_possible_values = true)]
    pub(crate) sandbox_layers: Option<LayersFlag>,
}

/// Flags about the exchanges of one session.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Task")]
pub(crate) struct TaskArgs {
    /// Send this text to the lead once the task is answered; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub(crate) follow_up: Vec<String>,
    /// Orchestration mode for every follow-up [default: as for the task].
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub(crate) follow_up_mode: Option<Switch>,
    /// Where the lead works: in the directory itself, or in a git worktree of its own, from which you take
    /// over what you want [default: none].
    #[arg(long, value_name = "none|worktree", hide_possible_values = true)]
    pub(crate) isolation: Option<IsolationFlag>,
    /// Go on with the unfinished session of the same task here, if there is one.
    #[arg(long = "continue", conflicts_with = "fresh")]
    pub(crate) take_up: bool,
    /// Ignore unfinished sessions and cached results of equal work: all of it is asked for anew.
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// Flags about what a session leaves behind.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct EndArgs {
    /// Write the report to this file too; its ending (.md, .json, .sarif) says in which form. May be given
    /// several times.
    #[arg(long, value_name = "FILE", value_parser = ReportFile::parse)]
    pub(crate) report: Vec<ReportFile>,
    /// Exit with 6 on a confirmed finding of this severity or above: high, medium or low.
    #[arg(long, value_name = "SEVERITY", value_parser = Severity::parse_threshold)]
    pub(crate) fail_on: Option<Severity>,
}

/// What commands may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxFlag {
    // Plain comments: see OutputFormat.
    // A throwaway copy.
    ReadOnly,
    // The working directory.
    Workspace,
    // Everything.
    Off,
}

impl From<SandboxFlag> for Sandbox {
    fn from(flag: SandboxFlag) -> Self {
        match flag {
            SandboxFlag::ReadOnly => Self::ReadOnly,
            SandboxFlag::Workspace => Self::Workspace,
            SandboxFlag::Off => Self::Off,
        }
    }
}

/// Which layers may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayersFlag {
    // Whatever works.
    Best,
    // The weaker set.
    Landlock,
}

impl From<LayersFlag> for Option<LayerSet> {
    fn from(flag: LayersFlag) -> Self {
        match flag {
            LayersFlag::Best => None,
            LayersFlag::Landlock => Some(LayerSet::Landlock),
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    // Plain comments: see OutputFormat.
    // It is on.
    On,
    // It is off.
    Off,
}

/// All flags of a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionFlags {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

impl SessionFlags {
    /// The first flag that was given, if any.
    pub(super) fn first_flag(&self) -> Option<&'static str> {
        self.settings.first_flag().or(self.task.first_flag()).or(self.end.first_flag())
    }
}

/// The flags that settings are made from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SettingFlags {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) fan_out_args: FanOutArgs,
    #[command(flatten)]
    pub(crate) team: TeamArgs,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
}

impl SettingFlags {
    fn first_flag(&self) -> Option<&'static str> {
        let first = self.agent.first_flag().or(self.budget.first_flag()).or(self.fan_out_args.first_flag());
        let first = first.or(self.team.first_flag());
        first.or(self.confine.first_flag()).or(self.approval.first_flag()).or(self.trust.first_flag())
    }

    /// These flags of a command, over those that stood before it.
    pub(super) fn over(self, below: Self) -> Result<Self, Failure> {
        Ok(Self {
            agent: self.agent.over(below.agent)?,
            budget: self.budget.merged(below.budget),
            fan_out_args: self.fan_out_args.merged(below.fan_out_args),
            team: self.team.merged(below.team),
            confine: self.confine.over(below.confine)?,
            approval: self.approval.merged(below.approval),
            trust: self.trust.merged(below.trust),
        })
    }
}

/// A flag that was given or not.
trait Flag: Sized {
    fn is_given(&self) -> bool;
    /// This one if it was given, else the other.
    fn or_below(self, below: Self) -> Self {
        if self.is_given() { self } else { below }
    }
}

impl<T> Flag for Option<T> {
    fn is_given(&self) -> bool {
        self.is_some()
    }
}

impl Flag for bool {
    fn is_given(&self) -> bool {
        *self
    }
}

impl<T> Flag for Vec<T> {
    fn is_given(&self) -> bool {
        !self.is_empty()
    }
}

/// Gives a group of flags the two things that laying flags over one another needs.
macro_rules! group {
    ($group:ident { $($field:ident: $flag:literal),+ $(,)? }) => {
        impl $group {
            /// The first flag that was given, if any.
            pub(crate) fn first_flag(&self) -> Option<&'static str> {
                $(if self.$field.is_given() { return Some($flag); })+
                None
            }

            /// These flags, and those of `below` where these say nothing.
            pub(super) fn merged(self, below: Self) -> Self {
                Self { $($field: self.$field.or_below(below.$field)),+ }
            }
        }
    };
}

group!(AgentArgs {
    model: "--model",
    effort: "--effort",
    system: "--system",
    offline: "--offline",
    max_turns: "--max-turns",
    bash_timeout: "--bash-timeout",
    lean: "--lean",
    window: "--window",
    reply: "--reply",
    price: "--price",
});
group!(BudgetArgs {
    budget_agents: "--budget-agents",
    budget_tokens: "--budget-tokens",
    budget_usd: "--budget-usd",
    budget_minutes: "--budget-minutes",
});
group!(FanOutArgs {
    mode: "--mode",
    workflow: "--workflow",
    verify: "--verify",
    max_concurrent: "--max-concurrent",
    max_subtasks: "--max-subtasks",
    worker_model: "--worker-model",
    worker_effort: "--worker-effort",
    worker_turns: "--worker-turns",
});
group!(TeamArgs { no_team: "--no-team", team: "--team", idle: "--idle", no_memory: "--no-memory" });
group!(ConfineArgs {
    sandbox: "--sandbox",
    network: "--network",
    network_allow: "--network-allow",
    sandbox_layers: "--sandbox-layers",
});
group!(TaskArgs {
    follow_up: "--follow-up",
    follow_up_mode: "--follow-up-mode",
    isolation: "--isolation",
    take_up: "--continue",
    fresh: "--fresh",
});
group!(EndArgs { report: "--report", fail_on: "--fail-on" });

impl AgentArgs {
    /// These flags, and those of `below` where these say nothing.
    pub(super) fn over(self, below: Self) -> Result<Self, Failure> {
        let merged = self.merged(below);
        match (&merged.model, merged.offline) {
            (Some(_), true) => Err(Failure::usage("--offline and --model cannot be used together")),
            _ => Ok(merged),
        }
    }
}

impl TeamArgs {
    /// The first flag that was given about what a session keeps from its beginning.
    pub(super) fn kept_flag(&self) -> Option<&'static str> {
        Self { idle: None, ..*self }.first_flag()
    }
}

impl ConfineArgs {
    /// These flags, and those of `below` where these say nothing.
    pub(super) fn over(self, below: Self) -> Result<Self, Failure> {
        let merged = self.merged(below);
        match merged.network && !merged.network_allow.is_empty() {
            true => Err(Failure::usage("--network and --network-allow cannot be used together")),
            false => Ok(merged),
        }
    }
}

impl BudgetArgs {
    /// Whether any of them was given.
    pub(crate) fn is_given(&self) -> bool {
        let caps = [self.budget_agents, self.budget_tokens, self.budget_usd, self.budget_minutes];
        caps.iter().any(Option::is_some)
    }

    /// The totals that these flags grant a session that has these caps; what they do not name stays as it is.
    pub(crate) fn grant(&self, now: Caps) -> Caps {
        let new = |cap: Option<Cap>, now: Option<u64>| cap.map_or(now, |cap| cap.0);
        let agents = new(self.budget_agents, now.agents.map(u64::from));
        Caps {
            agents: agents.map(|agents| u32::try_from(agents).unwrap_or(u32::MAX)),
            tokens: new(self.budget_tokens, now.tokens),
            nano: new(self.budget_usd, now.nano),
            ms: new(self.budget_minutes, now.ms),
        }
    }
}

impl TaskArgs {
    /// These flags, and those of `below` where these say nothing.
    pub(super) fn over(self, below: Self) -> Result<Self, Failure> {
        let merged = self.merged(below);
        if merged.take_up && merged.fresh {
            return Err(Failure::usage("--continue and --fresh cannot be used together"));
        }
        if merged.follow_up_mode.is_some() && merged.follow_up.is_empty() {
            return Err(Failure::usage("--follow-up-mode has no meaning without --follow-up")
                .hint("the mode for the task itself is --mode"));
        }
        match merged.follow_up.iter().any(|text| text.trim().is_empty()) {
            true => {
                Err(Failure::usage("a follow-up is empty")
                    .hint("say what is to be asked next, or leave it out"))
            }
            false => Ok(merged),
        }
    }
}

impl EndArgs {
    /// Finds the places of the files, from the directory in which the process was started and before the
    /// first command runs in `tree`. A file that cannot be written is told here, before anything is spent.
    pub(crate) fn check(&mut self, here: &Path, tree: &Path) -> Result<(), Failure> {
        self.report.iter_mut().try_for_each(|file| file.check(here, tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_names_new_totals_and_leaves_the_rest() {
        let now = Caps { agents: Some(500), tokens: None, nano: Some(10), ms: Some(60_000) };
        assert_eq!(BudgetArgs::default().grant(now), now);
        let flags = BudgetArgs {
            budget_agents: Some(Cap(Some(9))),
            budget_usd: Some(Cap(Some(20))),
            budget_minutes: Some(Cap(None)),
            budget_tokens: None,
        };
        assert_eq!(flags.grant(now), Caps { agents: Some(9), tokens: None, nano: Some(20), ms: None });
    }

    #[test]
    fn flags_behind_a_command_win_over_those_before_it() {
        let before =
            FanOutArgs { verify: Some(3), worker_turns: Some(5), workflow: true, ..FanOutArgs::default() };
        let behind = FanOutArgs { verify: Some(1), ..FanOutArgs::default() };
        let merged = behind.merged(before);
        assert_eq!((merged.verify, merged.worker_turns, merged.workflow), (Some(1), Some(5), true));
        assert_eq!(merged.first_flag(), Some("--workflow"));
    }
}
