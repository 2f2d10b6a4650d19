//! The keys of a configuration file: what each one holds, and whether a project may set it. Data only.

use super::caps::Unit;
use super::rules::ASK_WORDS;
use super::stated::LEAN;

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// A whole number from 1 up to this.
    Count(u32),
    /// A cap of the budget, or `none`.
    Cap(Unit),
    /// On or off.
    Switch,
    /// What commands may write.
    Sandbox,
    /// A list of hosts.
    Hosts,
    /// A number of verifiers, or off.
    Voters,
    /// A span of time.
    Time,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    List,
    /// A table whose keys are free and whose values are secret texts.
    Headers,
    /// Tables whose names are free and whose members are these.
    Rows(&'static [&'static str]),
    /// Rules about calls, in order.
    Rules,
}

/// What a project's configuration may do with a key. It may narrow what the user allows, never widen it: a
/// directory that was downloaded must not decide where keys are sent, what commands see, how much is spent,
/// who is paid or what agents are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Project {
    /// It may set it to less than the layers below.
    Lower,
    /// What it says comes to what is there and only narrows it.
    Adds,
    /// It chooses something for its reader: that counts where the project is trusted, and is ignored
    /// elsewhere.
    Trusted,
    /// It may not set it, trusted or not.
    MayNot,
}

/// A key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Its name, with the table it stands in.
    pub(super) name: &'static str,
    /// What it holds.
    pub(super) kind: Kind,
    /// What a project may do with it.
    pub(super) project: Project,
}

const fn key(name: &'static str, kind: Kind, project: Project) -> Key {
    Key { name, kind, project }
}

/// Every key, in the order in which `convoke config show` prints them.
pub(super) const KEYS: &[Key] = &[
    // What is paid for, and what every agent is told before anything else.
    key("model", Kind::Text, Project::Trusted),
    key("effort", Kind::Text, Project::Trusted),
    key("system", Kind::Text, Project::Trusted),
    // What a lead is offered is the person's choice.
    key("lean", Kind::Choice(LEAN), Project::MayNot),
    key("max_turns", Kind::Count(MOST), Project::Lower),
    key("max_attempts", Kind::Count(MOST), Project::Lower),
    key("bash_timeout", Kind::Time, Project::Lower),
    key("budget.agents", Kind::Cap(Unit::Agents), Project::Lower),
    key("budget.tokens", Kind::Cap(Unit::Tokens), Project::Lower),
    key("budget.usd", Kind::Cap(Unit::Dollars), Project::Lower),
    key("budget.minutes", Kind::Cap(Unit::Minutes), Project::Lower),
    // The mode is consent to spend, so a project may take it away and not give it.
    key("mode", Kind::Switch, Project::Lower),
    // More verifiers cost more, fewer let more through: a project decides neither about itself.
    key("verify", Kind::Voters, Project::MayNot),
    key("max_concurrent", Kind::Count(1_000), Project::Lower),
    key("max_subtasks", Kind::Count(10_000), Project::Lower),
    key("worker.model", Kind::Text, Project::Trusted),
    key("worker.effort", Kind::Text, Project::Trusted),
    key("worker.turns", Kind::Count(MOST), Project::Lower),
    // A team costs money and memory files are words to every agent: a project may do without either.
    key("team", Kind::Switch, Project::Lower),
    key("team_idle", Kind::Time, Project::Lower),
    key("memory", Kind::Switch, Project::Lower),
    // A project may ask to be looked at only; what it may reach and change is not its own to widen.
    key("sandbox", Kind::Sandbox, Project::Lower),
    key("network", Kind::Switch, Project::Lower),
    key("network_allow", Kind::Hosts, Project::MayNot),
    // When a person is asked is a matter between the person and the agents.
    key("ask", Kind::Choice(ASK_WORDS), Project::MayNot),
    // A project's are looked at one by one: it may forbid and ask.
    key("rules", Kind::Rules, Project::Adds),
    // A project that could say so would trust itself.
    key("trusted", Kind::List, Project::MayNot),
    // How a person reads is the person's.
    key("plain", Kind::Switch, Project::MayNot),
    // A project that could switch it off would speak to the runner.
    key("ci_safe", Kind::Choice(CI_SAFE), Project::MayNot),
    key("journal", Kind::Text, Project::MayNot),
    // How long is waited, and how much of a server that others use too is taken.
    key("postgres.connections", Kind::Count(1_000), Project::MayNot),
    key("postgres.outage", Kind::Time, Project::MayNot),
    key("base_url", Kind::Text, Project::MayNot),
    // Whether the key may be read on its way is between the person and the network.
    key("insecure_http", Kind::Switch, Project::MayNot),
    key("auth.key", Kind::Secret, Project::MayNot),
    key("auth.bearer", Kind::Secret, Project::MayNot),
    key("proxy", Kind::Text, Project::MayNot),
    key("version", Kind::Text, Project::MayNot),
    key("betas", Kind::List, Project::MayNot),
    key("headers", Kind::Headers, Project::MayNot),
    key("timeouts.connect", Kind::Time, Project::Lower),
    key("timeouts.first", Kind::Time, Project::Lower),
    key("timeouts.idle", Kind::Time, Project::Lower),
    key("timeouts.total", Kind::Time, Project::Lower),
    key("env.pass", Kind::List, Project::MayNot),
    key("models", Kind::Rows(MODEL_MEMBERS), Project::MayNot),
    key("endpoints", Kind::Rows(ENDPOINT_MEMBERS), Project::MayNot),
];

/// Tables that a project may not have although this version knows no key in them yet: a project that tries is
/// told the reason, and not that it mistyped something.
pub(super) const KEPT_FROM_PROJECTS: &[&str] = &["auth", "env"];

/// When lines that a CI runner would obey are escaped.
pub(super) const CI_SAFE: &[&str] = &["auto", "on", "off"];

const MODEL_MEMBERS: &[&str] = &[
    "aliases",
    "system_role",
    "effort_levels",
    "default_effort",
    "thinking",
    "thinking_default",
    "window",
    "max_output",
    "cache_minimum",
    "overhead_tokens",
    "output_per_second",
    "forced_tool_choice",
    "prefill",
    "prices",
    "price_date",
];

const ENDPOINT_MEMBERS: &[&str] = &[
    "profile",
    "system_role",
    "anthropic_tools",
    "cache_marks",
    "thinking",
    "effort",
    "count_tokens",
    "version",
];

/// The largest count that makes sense for a limit.
pub(super) const MOST: u32 = 100_000;

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Whether keys stand in a table of this name, as `pass` stands in `env`.
pub(super) fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.split_once('.').is_some_and(|(table, _)| table == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that is in none of these lists, or in another one than here, is new or was moved: think about
    /// what a stranger's project could do with it, and then write it down.
    #[test]
    fn every_key_is_classified_by_what_a_project_may_do_with_it() {
        let check = |class: Project, expected: &[&str]| {
            let found: Vec<&str> =
                KEYS.iter().filter(|key| key.project == class).map(|key| key.name).collect();
            assert_eq!(found, expected, "{class:?}");
        };
        check(Project::Trusted, &["model", "effort", "system", "worker.model", "worker.effort"]);
        check(Project::Adds, &["rules"]);
        let lower = [
            "max_turns",
            "max_attempts",
            "bash_timeout",
            "budget.agents",
            "budget.tokens",
            "budget.usd",
            "budget.minutes",
            "mode",
            "max_concurrent",
            "max_subtasks",
            "worker.turns",
            "team",
            "team_idle",
            "memory",
            "sandbox",
            "network",
            "timeouts.connect",
            "timeouts.first",
            "timeouts.idle",
            "timeouts.total",
        ];
        check(Project::Lower, &lower);
        let may_not = [
            "lean",
            "verify",
            "network_allow",
            "ask",
            "trusted",
            "plain",
            "ci_safe",
            "journal",
            "postgres.connections",
            "postgres.outage",
            "base_url",
            "insecure_http",
            "auth.key",
            "auth.bearer",
            "proxy",
            "version",
            "betas",
            "headers",
            "env.pass",
            "models",
            "endpoints",
        ];
        check(Project::MayNot, &may_not);
    }
}
