//! The words of the tree: what an agent is at, what a phase is called with its figures, and lists of counts.

use std::time::Duration;

use convoke_kernel::{CallKind, VerdictCounts};
use convoke_view::{
    Act, AgentsAtWork, PhaseCounts, Waits, WorkPhase, WorkState, WorkingAgent, count, first_line, seconds,
};

/// How much of a reason is kept; more than any line shows.
const MOST_CHARS: usize = 160;
/// A command that runs longer than this says for how long.
const LONG: Duration = Duration::from_secs(10);

/// A state in one word.
pub(super) fn state_word(state: WorkState) -> &'static str {
    match state {
        WorkState::Running => "running",
        WorkState::Failed => "failed",
        WorkState::Done => "done",
        WorkState::Waiting => "waiting",
    }
}

/// A state in one mark, one column wide.
pub(super) fn mark(state: WorkState) -> char {
    match state {
        WorkState::Running => '▸',
        WorkState::Failed => '✗',
        WorkState::Done => '✓',
        WorkState::Waiting => '·',
    }
}

/// Where an agent stands in one word of at most nine letters. While the session drains no agent takes another
/// step.
pub(super) fn word(agent: &WorkingAgent, draining: bool) -> &'static str {
    match (agent.state(), agent.act()) {
        (WorkState::Running, Act::Between | Act::Retry { .. } | Act::Asked { .. }) if draining => "stopped",
        (WorkState::Running, Act::Between) => "working",
        (WorkState::Running, Act::Asking) => "asking",
        (WorkState::Running, Act::Thinking) => "thinking",
        (WorkState::Running, Act::Answering) => "answering",
        (WorkState::Running, Act::Calling { .. }) => "running",
        (WorkState::Running, Act::Retry { .. }) => "waiting",
        (WorkState::Running, Act::Asked { .. }) => "asks you",
        (state, _) => state_word(state),
    }
}

/// The last action of an agent, or what it came to.
pub(super) fn action(agent: &WorkingAgent, now: u64, waits: &Waits) -> String {
    let last = agent.last();
    match agent.act() {
        Act::Calling { since } if agent.state() == WorkState::Running => {
            let took = Duration::from_millis(now.saturating_sub(*since));
            if took < LONG { last.to_owned() } else { format!("{} · {last}", seconds(took)) }
        }
        Act::Retry { until, why } if agent.state() == WorkState::Running => {
            format!("asks again {}: {}", waits.when(*until, now), first_line(why, MOST_CHARS))
        }
        _ => last.to_owned(),
    }
}

/// A program's phase: its head, the figures that may follow, and what was done without agents, behind a dot.
pub(super) fn program_heading(
    work: &AgentsAtWork,
    phase: WorkPhase,
    counts: &PhaseCounts,
    running: u32,
) -> (String, Vec<(u32, &'static str)>, String) {
    let PhaseCounts { all, done, failed, skipped, not_done, served, asked, others } = counts.clone();
    let rest: String =
        others.iter().map(|(kind, many)| format!(" · {}", count(*many, noun(*kind)))).collect();
    if all == 0 {
        let asks = if asked > 0 { format!(": {asked} waiting for you") } else { String::new() };
        return (format!("{}{asks}", work.program_title(phase, "workflow")), Vec::new(), rest);
    }
    let waiting = all.saturating_sub(done + failed + skipped + not_done).saturating_sub(running);
    let figures = vec![
        (asked, "waiting for you"),
        (running, "running"),
        (failed, "failed"),
        (waiting, "waiting"),
        (not_done, "not done"),
        (skipped, "skipped"),
        (served, "served from before"),
    ];
    (format!("{}: {done} of {all} done", work.program_title(phase, "agents")), figures, rest)
}

/// What people call a call of this kind.
fn noun(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Agent | CallKind::Verify => "agent",
        CallKind::Sh => "command",
        CallKind::Checkpoint => "question",
        CallKind::Workflow => "workflow",
        CallKind::Timer => "timer",
    }
}

/// `24 findings: 20 confirmed, 4 refuted`.
pub(super) fn findings(counts: VerdictCounts) -> String {
    let by = [
        (counts.confirmed, "confirmed"),
        (counts.refuted, "refuted"),
        (counts.uncertain, "uncertain"),
        (counts.unverified, "unverified"),
    ];
    let all = count(counts.total(), "finding");
    if counts.total() == 0 { all } else { format!("{all}: {}", listed(&by)) }
}

/// `5 running, 1 failed`, or `none`.
pub(super) fn listed(counts: &[(u32, &str)]) -> String {
    let words: Vec<String> =
        counts.iter().filter(|(many, _)| *many > 0).map(|(many, word)| format!("{many} {word}")).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
