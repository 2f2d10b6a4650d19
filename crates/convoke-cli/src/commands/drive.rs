//! Drives an agent and shows it, from the first line on stderr to the exit code: what `run` and `resume`
//! share.

use std::path::Path;

use convoke_kernel::{AgentId, AgentSpec};
use convoke_runtime::{DriveMode, DriveOutcome, Error, Stopper};

use super::lost::News;
use crate::again::Naming;
use crate::args::EndArgs;
use crate::failure::{Exit, Failure};
use crate::keeping::{LeadTree, Left};
use crate::lead::Lead;
use crate::open::Opened;
use crate::questions;
use crate::render::{Asked, End, Look, Progress, Report, Screen, clean, count};
use crate::settings::Settings;
use crate::signals::{Caught, Signals};
use crate::stdio::tell;
use crate::work::Work;

/// What is to be driven.
pub(super) struct Job<'a> {
    pub(super) settings: &'a Settings,
    pub(super) look: Look,
    pub(super) opened: Opened,
    pub(super) agent: AgentId,
    pub(super) take: DriveMode,
    /// Where the agent stands.
    pub(super) progress: Progress,
    /// What a person should know about the result; it was said before.
    pub(super) warnings: Vec<String>,
    pub(super) asked: Asked,
    /// The worktree that the lead works in.
    pub(super) tree: Option<LeadTree>,
    pub(super) wanted: EndArgs,
}

/// Drives the agent until it has answered, failed or was stopped, and prints what came of it.
pub(super) async fn drive(job: Job<'_>) -> Result<Exit, Failure> {
    let Job { settings, look, opened, agent, take, progress, mut warnings, asked, tree, wanted } = job;
    let (stopper, stop) = Stopper::new();
    let terminal = settings.terminal.clone();
    let clock = opened.clock.clone();
    let screen = Screen::start(look, terminal, &opened.runtime, clock, agent.clone(), progress.clone()).await;
    let signals = Signals::listen(stopper, screen.messages(), settings.throwaway.clone())?;
    // The screen is a thread and the signals are a task of their own, so nothing here holds up a heartbeat.
    let mut result = opened.runtime.drive(&agent, take, stop.clone(), Some(screen.watcher())).await;
    // Lost work that was tried again is told to the lead, which then answers anew.
    let ended =
        result.as_ref().is_ok_and(|ended| ended.outcome.is_some() && !ended.parked && ended.asked.is_none());
    if ended && signals.caught().is_none() {
        match tell_news(&opened, &agent).await {
            Ok(false) => {}
            Ok(true) => {
                result = opened.runtime.drive(&agent, DriveMode::New, stop, Some(screen.watcher())).await
            }
            Err(failure) => {
                warnings.push(format!("the lead could not be told of the retry: {}", failure.message))
            }
        }
    }
    let shown = screen.close().await;
    // A journal that has just failed is not asked again: what there is to say is in the result.
    let session =
        result.as_ref().ok().and_then(|ended| ended.summary.as_ref()).map(|summary| &summary.session);
    let ended_at = opened.clock.now();
    let mut lead = Lead::default();
    let mut work = Work::default();
    let mut open = Vec::new();
    if let Some(session) = session {
        if result.as_ref().is_ok_and(|ended| ended.parked) {
            open =
                questions::of_session(settings, &opened.journal, session).await.unwrap_or_else(|failure| {
                    warnings.push(format!("the questions that wait cannot be read now: {}", failure.message));
                    Vec::new()
                });
        }
        lead = Lead::read(&opened.journal, &agent).await.unwrap_or_default();
        work =
            Work::of_session(settings, &opened.journal, session, ended_at).await.unwrap_or_else(|failure| {
                let warning =
                    format!("what the agents below the lead did cannot be read: {}", failure.message);
                tell(&look.fit(&format!("warning: {}\n", clean(&warning))));
                warnings.push(warning);
                Work::default()
            });
    }
    warnings.extend(shown.iter().flat_map(|shown| shown.lessons.iter().cloned()));
    if let Some(warning) = shown.as_ref().and_then(|shown| unasked(shown.unasked)) {
        tell(&look.fit(&format!("warning: {warning}\n")));
        warnings.push(warning);
    }
    let (left, stored) = left_behind(settings, &agent, lead.spec.as_ref(), tree, &result).await;
    for warning in &left.warnings {
        tell(&look.fit(&format!("warning: {}\n", clean(warning))));
    }
    warnings.extend(left.warnings.iter().cloned());
    work.notes.extend(stored);
    let asked_outside = result.as_ref().ok().and_then(|ended| ended.asked).map(Caught::from);
    let end = End {
        agent,
        result,
        caught: signals.caught().or(asked_outside),
        progress: shown.unwrap_or(progress),
        ended_at,
        warnings,
        journal: Naming::of(settings),
        asked,
        exchanges: lead.exchanges,
        work,
        questions: open,
        left,
        wanted,
    };
    // The leases go back at once, so that a resume need not find out that this process is gone.
    let _ = opened.journal.close().await;
    Report::new(end).print(look)
}

/// Tells the lead what came of lost work that was tried again, and says whether there was anything to tell.
async fn tell_news(opened: &Opened, agent: &AgentId) -> Result<bool, Failure> {
    let told = Lead::read(&opened.journal, agent).await?;
    let Some(news) = News::of(&opened.journal, agent, &told).await? else { return Ok(false) };
    news.tell(&opened.runtime, agent).await?;
    Ok(true)
}

/// What is said of calls that were refused because there was no person to ask.
fn unasked(calls: u32) -> Option<String> {
    let were = if calls == 1 { "was" } else { "were" };
    let calls = Some(calls).filter(|calls| *calls > 0).map(|calls| count(calls, "call"))?;
    Some(format!(
        "{calls} {were} refused because no person could be asked: with --wait-for-answers such a call waits for your \
         answer, and at a terminal --ask when-needed asks you"
    ))
}

/// What is in files when driving has ended, and what became of the lead's worktree. The worktree of a session
/// that is to go on stays.
async fn left_behind(
    settings: &Settings,
    agent: &AgentId,
    spec: Option<&AgentSpec>,
    tree: Option<LeadTree>,
    result: &Result<DriveOutcome, Error>,
) -> (Left, Option<String>) {
    let goes_on = |ended: &DriveOutcome| {
        ended.outcome.is_none() || ended.summary.as_ref().is_none_or(|row| row.can_go_on)
    };
    let stored = match (tree, result) {
        (None, _) => None,
        (Some(tree), Ok(ended)) if !goes_on(ended) => {
            Some(tree.end(&settings.private_dir().join(agent.as_str())).await)
        }
        (Some(tree), _) => Some(tree.left()),
    };
    // An agent of which nothing could be read has nothing to be listed under.
    let left = match spec {
        Some(spec) => Left::of(settings, agent, Path::new(&spec.dir), Some(&spec.confinement)).await,
        None => Left::default(),
    };
    (left, stored)
}

/// Says something on stderr before a session, unless the settings are quiet.
pub(super) fn say(settings: &Settings, line: &str) {
    if !settings.quiet {
        tell(&format!("{line}\n"));
    }
}
