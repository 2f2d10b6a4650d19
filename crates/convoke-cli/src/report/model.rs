//! What a session came to, as plain data. Its JSON form is the object of `--output json` and of `--report
//! FILE.json`; the shape is checked in as `docs/schema/run.schema.json`. Money is whole nano-dollars, times
//! are UTC milliseconds.

use convoke_kernel::{Confinement, Lost, Network, Usage};
use serde::Serialize;
use serde_json::Value;

use super::changes::{Changed, RunLater, Tree};
use super::gate::GateReport;
use super::program::ProgramReport;

/// The version of the object's shape. New members may come without a new version.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// What a session came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SessionReport {
    pub(crate) schema_version: u32,
    /// The session; `None` only if not even its start could be recorded.
    pub(crate) run: Option<String>,
    /// The lead.
    pub(crate) agent: String,
    pub(crate) model: String,
    /// The effort that was asked for; `None` was left to the model.
    pub(crate) effort: Option<String>,
    /// Whether orchestration mode was on for the task; `None` where that is not known.
    pub(crate) mode: Option<&'static str>,
    /// The directory that was worked in.
    pub(crate) dir: String,
    /// What held the commands; `None` where that is not known.
    pub(crate) confinement: Option<Confined>,
    pub(crate) task: String,
    /// `done`, `partial`, `failed`, `interrupted` or `waiting`.
    pub(crate) status: &'static str,
    pub(crate) exit_code: u8,
    pub(crate) exit_reason: String,
    /// What became of the gate; `None` if none was set.
    pub(crate) gate: Option<GateReport>,
    /// To the task; in JSON the newest of `answers`.
    pub(crate) answer: String,
    /// What was said to the lead, the task first, and what it answered to each.
    pub(crate) answers: Vec<FollowUp>,
    /// What the program returned that a person ran; `None` if it did not return, or there is none.
    pub(crate) value: Option<Value>,
    pub(crate) failure: Option<Failed>,
    /// The runs of workflow programs, in the order they were started.
    pub(crate) programs: Vec<ProgramReport>,
    /// What was said after the task, in order.
    pub(crate) follow_ups: Vec<FollowUp>,
    /// By severity, then by verdict.
    pub(crate) findings: Vec<Finding>,
    /// The lead first, then in the order in which they were asked for.
    pub(crate) agents: Vec<Agent>,
    /// Subtasks that no agent worked on.
    pub(crate) skipped: Vec<Skipped>,
    /// Work of agents that was lost, for whatever reason, and not done later.
    pub(crate) lost: Vec<LostItem>,
    /// Files that the session changed in its directory, by path.
    pub(crate) changed: Vec<Changed>,
    /// What is run later, changed while the session worked, and in no patch; the worst first.
    pub(crate) runs_later: Vec<RunLater>,
    /// Worktrees of its agents with something in them.
    pub(crate) worktrees: Vec<Tree>,
    /// The command that takes the changes back, if there are any.
    pub(crate) undo: Option<String>,
    /// The command that takes over what is in a worktree, if there is one that is not applied.
    pub(crate) apply: Option<String>,
    /// What was changed, dropped, reused or shortened on the way.
    pub(crate) notes: Vec<String>,
    pub(crate) usage: Tokens,
    /// For people; the exact figure is `cost_nano`.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) cost_nano: Option<u64>,
    /// Of all agents, as are the commands.
    pub(crate) turns: u32,
    pub(crate) commands: u32,
    pub(crate) spend: Spend,
    pub(crate) cache: Cache,
    pub(crate) started_at: u64,
    pub(crate) ended_at: u64,
    /// The command that goes on, if anything is left to do.
    pub(crate) resume: Option<String>,
    /// The calls that wait for a person.
    pub(crate) questions: Vec<Waits>,
    pub(crate) warnings: Vec<String>,
}

/// What held the commands of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Confined {
    /// `read-only`, `workspace` or `off`.
    pub(crate) sandbox: &'static str,
    /// `off`, `hosts` or `on`.
    pub(crate) network: &'static str,
    /// The hosts that could be reached, if it is `hosts`.
    pub(crate) hosts: Vec<String>,
    /// The layers that held.
    pub(crate) held_by: Vec<String>,
    /// What they do not hold, one sentence each, beginning with a name.
    pub(crate) weaker: Vec<String>,
}

impl From<Confinement> for Confined {
    fn from(confinement: Confinement) -> Self {
        let Confinement { sandbox, network, held_by, weaker } = confinement;
        let (network, hosts) = match network {
            Network::Off => ("off", Vec::new()),
            Network::Hosts(hosts) => ("hosts", hosts),
            Network::On => ("on", Vec::new()),
        };
        Self { sandbox: sandbox.name(), network, hosts, held_by, weaker }
    }
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Waits {
    /// What `resume --allow` and `--deny` take.
    pub(crate) id: String,
    pub(crate) agent: String,
    /// Empty for the lead.
    pub(crate) label: String,
    /// `run: COMMAND`, `change: PATH`, `answer: QUESTION`.
    pub(crate) wanted: String,
    pub(crate) why: String,
    /// When it was asked; `None` for a program's question.
    pub(crate) since: Option<u64>,
    /// The commands that answer it; `None` if the journal is gone, and where there is nothing to allow.
    pub(crate) allow: Option<String>,
    pub(crate) deny: Option<String>,
    /// The command that answers a program's question.
    pub(crate) answer: Option<String>,
}

/// Why a session, or an agent, did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Failed {
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// What was said after the task, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct FollowUp {
    pub(crate) text: String,
    pub(crate) mode: Option<&'static str>,
    pub(crate) status: &'static str,
    pub(crate) answer: String,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    Info,
    Low,
    Medium,
    High,
}

/// What has become of a finding. In the order in which they are read: what holds first, what does not hold
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Confirmed,
    Uncertain,
    Unverified,
    Refuted,
}

/// One thing a worker found, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) verdict: Verdict,
    pub(crate) claim: String,
    /// What the claim rests on.
    pub(crate) evidence: String,
    /// What a verifier saw, or why there is no better verdict.
    pub(crate) reason: String,
    pub(crate) citations: Vec<Citation>,
    /// The workflow run it came out of.
    pub(crate) run: Option<String>,
    /// The subtask, or the call of a program that had it judged, from 1.
    pub(crate) item: Option<u32>,
    /// Whether it is a program's.
    #[serde(skip)]
    pub(crate) is_call: bool,
    /// What people call the subtask or the call.
    pub(crate) label: String,
    /// The worker; `None` for a program's, because it is not known which agent the program had it from.
    pub(crate) agent: Option<String>,
}

/// A place that can be looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Citation {
    pub(crate) path: Option<String>,
    pub(crate) first: Option<u32>,
    pub(crate) last: Option<u32>,
    pub(crate) command: Option<String>,
    pub(crate) quote: Option<String>,
}

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentStatus {
    /// It did what it was asked for.
    Ok,
    /// It ended, and not in the way it was told to.
    Degraded,
    /// It failed.
    Failed,
    /// It was still at work when the session stopped.
    Open,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Agent {
    /// `lead`, `worker`, `verifier`, `task` or `callee`.
    pub(crate) role: &'static str,
    pub(crate) label: String,
    pub(crate) agent: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) item: Option<u32>,
    pub(crate) status: AgentStatus,
    /// Why it is not ok.
    pub(crate) failure: Option<Failed>,
    pub(crate) turns: u32,
    pub(crate) commands: u32,
    /// In and out.
    pub(crate) tokens: u64,
    pub(crate) cost_nano: Option<u64>,
    /// Files it changed.
    pub(crate) changed: Vec<String>,
    /// Where its result was taken from, if it did not run.
    pub(crate) reused: Option<Reused>,
}

/// Where a result was taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Reused {
    /// The session that paid for it.
    pub(crate) run: String,
    /// When.
    pub(crate) at: u64,
}

/// A subtask that no agent worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Skipped {
    pub(crate) run: Option<String>,
    pub(crate) item: Option<u32>,
    pub(crate) label: String,
    pub(crate) reason: String,
}

/// Work of an agent that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LostItem {
    /// `subtask`, `verification` or `call`.
    pub(crate) what: &'static str,
    pub(crate) run: String,
    pub(crate) item: u32,
    pub(crate) label: String,
    /// The agent that was at it; `None` if none was begun.
    pub(crate) agent: Option<String>,
    /// The kind of failure.
    pub(crate) kind: &'static str,
    pub(crate) reason: String,
    /// Whether a resume tries it again.
    pub(crate) retry: bool,
}

impl From<&Lost> for LostItem {
    fn from(lost: &Lost) -> Self {
        Self {
            what: lost.what.word(),
            run: lost.run.clone(),
            item: lost.item,
            label: lost.label.clone(),
            agent: lost.agent.as_ref().map(ToString::to_string),
            kind: lost.kind.word(),
            reason: lost.reason.clone(),
            retry: lost.kind.is_worth_a_retry(),
        }
    }
}

impl LostItem {
    /// `api: item 3: label (a_…): what happened`.
    pub(crate) fn line(&self) -> String {
        let noun = if self.what == "call" { "call" } else { "item" };
        let what = if self.what == "verification" { "verification of " } else { "" };
        let agent = self.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
        format!("{}: {what}{noun} {}: {}{agent}: {}", self.kind, self.item, self.label, self.reason)
    }
}

/// Tokens of the whole session. The four kinds of input do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tokens {
    pub(crate) input_tokens: u64,
    pub(crate) cache_read_tokens: u64,
    pub(crate) cache_write_5m_tokens: u64,
    pub(crate) cache_write_1h_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) thinking_tokens: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_5m_tokens: usage.cache_write_5m_tokens,
            cache_write_1h_tokens: usage.cache_write_1h_tokens,
            output_tokens: usage.output_tokens,
            thinking_tokens: usage.thinking_tokens,
        }
    }
}

/// What was used, against what was granted. A cap of `None` is no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Spend {
    /// What replies said they cost; `None` where a price is not known.
    pub(crate) nano: Option<u64>,
    /// What requests that were cut off may have cost beside it: a bound, because the server never said what
    /// it was.
    pub(crate) unconfirmed_nano: u64,
    pub(crate) cap_nano: Option<u64>,
    pub(crate) tokens: u64,
    pub(crate) unconfirmed_tokens: u64,
    pub(crate) cap_tokens: Option<u64>,
    /// Agents below the lead.
    pub(crate) agents: u32,
    pub(crate) cap_agents: Option<u32>,
    /// Milliseconds in which a process held the session.
    pub(crate) ms: u64,
    pub(crate) cap_ms: Option<u64>,
}

/// What the prompt cache did, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cache {
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) fresh: u64,
    /// What the same requests would have cost without a cache, less what they cost; `None` where that is not
    /// known. It is negative where more was written than read.
    pub(crate) saved_nano: Option<i64>,
}

impl Severity {
    /// Every severity, the gravest first.
    pub(crate) const ALL: [Self; 4] = [Self::High, Self::Medium, Self::Low, Self::Info];

    /// The word in data.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Info => "info",
        }
    }

    /// Reads a threshold. Information is nothing to fail on.
    pub(crate) fn parse_threshold(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().filter(|severity| *severity != Self::Info);
        let found = known.into_iter().find(|severity| severity.word() == text);
        found.ok_or_else(|| format!("'{text}' is no severity to fail on: write high, medium or low"))
    }
}

impl Verdict {
    /// The word in data.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Uncertain => "uncertain",
            Self::Unverified => "unverified",
            Self::Refuted => "refuted",
        }
    }
}

impl AgentStatus {
    /// The word in data.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
            Self::Open => "open",
        }
    }
}

impl Citation {
    /// The place as people write it: `src/a.rs:3-5`, or `$ ls`.
    pub(crate) fn place(&self) -> Option<String> {
        match (&self.path, &self.command) {
            (Some(path), _) => Some(match (self.first, self.last) {
                (Some(first), Some(last)) if last > first => format!("{path}:{first}-{last}"),
                (Some(first), _) => format!("{path}:{first}"),
                (None, _) => path.clone(),
            }),
            (None, Some(command)) => Some(format!("$ {command}")),
            (None, None) => None,
        }
    }
}

impl Finding {
    /// Where it came from: `item 2: the subtask (a_…)`, `call 3: a.rs:7`.
    pub(crate) fn source(&self) -> Option<String> {
        let noun = if self.is_call { "call" } else { "item" };
        let item = self.item.map(|item| format!("{noun} {item}"));
        let label = Some(self.label.clone()).filter(|label| !label.trim().is_empty());
        let named = match (item, label) {
            (Some(item), Some(label)) => Some(format!("{item}: {label}")),
            (item, label) => item.or(label),
        };
        match (named, &self.agent) {
            (Some(named), Some(agent)) => Some(format!("{named} ({agent})")),
            (named, agent) => named.or_else(|| agent.clone()),
        }
    }
}
