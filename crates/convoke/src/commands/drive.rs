//! Drives an agent and shows it, from the first line on stderr to the exit code: what `run` and `resume` share.

use convoke_kernel::AgentId;
use convoke_runtime::{Stopper, Take};

use crate::again::Naming;
use crate::failure::{Exit, Failure};
use crate::open::Opened;
use crate::render::{End, Look, Progress, Report, Screen};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::stdio::tell;

/// What is to be driven.
pub(super) struct Job<'a> {
    pub(super) settings: &'a Settings,
    pub(super) look: Look,
    pub(super) opened: Opened,
    pub(super) agent: AgentId,
    pub(super) take: Take,
    /// Where the agent stands.
    pub(super) progress: Progress,
    /// What a person should know about the result; it was said before.
    pub(super) warnings: Vec<String>,
}

/// Drives the agent until it has answered, failed or was stopped, and prints what came of it.
pub(super) async fn drive(job: Job<'_>) -> Result<Exit, Failure> {
    let Job { settings, look, opened, agent, take, progress, warnings } = job;
    let (stopper, stop) = Stopper::new();
    let screen = Screen::start(look, opened.clock.clone(), progress.clone());
    let signals = Signals::listen(stopper, screen.messages())?;
    // The screen is a thread and the signals are a task of their own, so nothing here holds up a heartbeat.
    let result = opened.runtime.drive(&agent, take, stop, Some(screen.watcher())).await;
    let shown = screen.close().await;
    let end = End {
        agent,
        result,
        caught: signals.caught(),
        progress: shown.unwrap_or(progress),
        ended_at: opened.clock.now(),
        warnings,
        journal: Naming::of(settings),
    };
    // The leases go back at once, so that a resume need not find out that this process is gone.
    let _ = opened.journal.close().await;
    Report::new(end).print(look)
}

/// Says something on stderr before a run, unless nobody wants to hear it.
pub(super) fn say(settings: &Settings, line: &str) {
    if !settings.quiet {
        tell(&format!("{line}\n"));
    }
}
