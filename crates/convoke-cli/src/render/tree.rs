//! The agents at work as text: a picture of them for a terminal, and in a few words for a line of a log.
//! Pure; what is told is folded in `convoke-view`.

mod lines;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use convoke_view::{AgentsAtWork, count, dollars, seconds, tokens};

pub(super) use lines::{Line, Tone, cut, lines};
#[cfg(test)]
pub(super) use tests::worker;
use text::{findings, listed};

/// What the session has spent against what was granted, the most important first; `None` while the lead is
/// alone.
pub(super) fn spent(work: &AgentsAtWork) -> Option<Vec<String>> {
    let spent = work.spent()?;
    let of = |cap: Option<String>| cap.map(|cap| format!(" of {cap}")).unwrap_or_default();
    let agents = match spent.caps.agents {
        Some(cap) => format!("{} of {cap} agents", spent.agents),
        None => count(spent.agents, "agent"),
    };
    Some(vec![
        format!("{}{}", dollars(spent.nano), of(spent.caps.nano.map(|cap| dollars(Some(cap))))),
        agents,
        format!("{}{} tokens", tokens(spent.tokens), of(spent.caps.tokens.map(tokens))),
    ])
}

/// How the agents of the session stand, and which ran a command last: for a line in a log.
pub(super) fn brief(work: &AgentsAtWork, now: u64) -> Option<String> {
    if !work.is_at_work() {
        return None;
    }
    let waiting = work.waits.waiting(now).min(work.running());
    let many = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let running = many(work.running() - waiting);
    let waiting = many(waiting);
    let counts =
        [(running, "running"), (waiting, "waiting"), (work.failed(), "failed"), (work.done(), "done")];
    let mut brief = format!("agents: {}", listed(&counts));
    if let Some(agent) = work.latest().filter(|agent| text::word(agent, false) == "running") {
        let action = text::action(agent, now, &work.waits);
        brief.push_str(&format!(" · {}: {}", cut(agent.label(), 40), cut(&action, 60)));
    }
    Some(brief)
}

/// What the workflow of this call came to, once it has ended.
pub(super) fn came_to(work: &AgentsAtWork, call: &str) -> Option<String> {
    let counts = work.came_to(call)?;
    let ended = [
        (counts.ok, "ok"),
        (counts.degraded, "degraded"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.reused, "reused"),
    ];
    let items = count(counts.items, "subtask");
    Some(format!("{items}: {} · {}", listed(&ended), findings(counts.findings)))
}

/// A person's own program, in a line: its name, its phase and how long it has been at work.
pub(super) fn own_program(work: &AgentsAtWork, now: u64) -> Option<String> {
    let own = work.own_program()?;
    let phase = own.phase.map(|phase| format!(" · {phase}")).unwrap_or_default();
    let took = seconds(Duration::from_millis(now.saturating_sub(own.since)));
    Some(format!("workflow {}{phase} · {took}", own.name))
}
