//! What an agent does on this machine: commands in its shell and its file tools, both in the same place
//! and under the same policy. What is written where it stays is put between two marks, so that it can be
//! shown and taken back.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use convoke_files::Root;
use convoke_journal::Lease;
use convoke_kernel::{AgentId, AgentSpec, FileCall, Ran, ShellState, ToolRequest, ToolResult};
use convoke_trees::{Actor, Overlap, Place};
use tokio::sync::Mutex;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::bash::Bash;
use crate::change_recorder::ChangeRecorder;
use crate::confine::end_private;
use crate::custom::{CallContext, bounded};
use crate::fence;
use crate::files;
use crate::runtime::Config;
use crate::session::Session;
use crate::write_gate::Gate;

/// How often a process looks whether it may still act for an agent whose command is under way.
const LOOKS: Duration = Duration::from_secs(2);

/// Of how many files an agent is told at once that another one wrote them too; the others are named.
const MOST_TOLD: usize = 8;

/// What stands in place of a result that is never recorded.
const FENCED: &str =
    "(not done: this process stood still for too long, and another one has taken the agent over)";

/// The local tools of one agent. Calls that only read may come at the same time.
pub(crate) struct LocalTools {
    config: Arc<Config>,
    session: Arc<Session>,
    agent: AgentId,
    spec: AgentSpec,
    /// The right to act for the agent, and what others know it by.
    lease: Lease,
    token: String,
    bash: Mutex<Bash>,
    /// What it was told of other agents' writing, and the record still holds.
    told: Mutex<Vec<Overlap>>,
}

/// How what a call writes is kept.
enum Way {
    /// Its shell asks before it writes.
    Asks,
    /// These places were claimed for it, of which the second ones were not claimed before.
    Places { places: Vec<Place>, new: Vec<Place> },
    /// It may write anywhere, so everything is.
    Window,
}

/// Lets go of what an agent has claimed, unless that was recorded.
struct Abandons<'a> {
    keep: &'a ChangeRecorder,
    agent: &'a str,
}

impl Abandons<'_> {
    fn closed(self) {
        std::mem::forget(self);
    }
}

impl Drop for Abandons<'_> {
    fn drop(&mut self) {
        self.keep.abandon(self.agent);
    }
}

impl LocalTools {
    pub(crate) fn new(
        config: Arc<Config>,
        session: Arc<Session>,
        lease: Lease,
        agent: AgentId,
        spec: AgentSpec,
        state: Option<ShellState>,
    ) -> Self {
        let token = fence::token(&config.journal, &lease);
        // Only in the session's own directory others write too, and only there is a record of it.
        let shares = session.keep.is_some() && spec.dir == session.dir && spec.confinement.sandbox.writes();
        let gate = || {
            let journal = config.journal.clone();
            Gate::new(Arc::clone(&session), journal, lease.clone(), agent.as_str(), &token)
        };
        let gate = shares.then(gate);
        let bash = Bash::new(Arc::clone(&config), agent.as_str(), spec.clone(), state).gated(gate);
        let told = Mutex::default();
        Self { config, session, agent, spec, lease, token, bash: Mutex::new(bash), told }
    }

    /// Does what a call asks for. A failure is told to the model; none of them ends the agent.
    pub(crate) async fn perform(&self, id: &str, request: ToolRequest, cut: CancellationToken) -> ToolResult {
        // What the person forbids now counts, also in a session that was begun before.
        if let Some(why) = self.config.forbidden.forbids(&request, &self.spec.dir) {
            return ToolResult::refused(format!("Not run: {why}."));
        }
        let stays = request.writes() && self.spec.confinement.sandbox.writes();
        let stays_here = stays && self.spec.dir == self.session.dir;
        let keep = self.session.keep.as_ref().filter(|_| stays_here);
        // Where nothing is recorded nothing can be claimed, so that agents take turns with whole commands.
        let alone = stays_here && keep.is_none();
        let _turn = tokio::select! {
            turn = self.session.unrecorded.lock(), if alone => Some(turn),
            () = cut.cancelled(), if alone => return ToolResult::refused("(not run: a person stopped Convoke)"),
            else => None,
        };
        let Some(keep) = keep else {
            let mut result = self.act_while_held(id, request, stays, &cut).await;
            self.tell_overlaps(&mut result).await;
            return result;
        };
        // Whatever ends this call early, the next look at the tree records what it changed.
        let open = Abandons { keep, agent: self.agent.as_str() };
        // A large tree takes a while to look at, and a stop must not have to wait for that.
        let opened = tokio::select! {
            opened = self.mark_before(keep, &request) => opened,
            () = cut.cancelled() => return ToolResult::refused("(not run: a person stopped Convoke)"),
        };
        let way = match opened {
            Ok(way) => way,
            Err(why) => {
                return ToolResult::refused(format!(
                    "Not run: the state before it could not be kept ({why}), so it could not be taken back."
                ));
            }
        };
        let note = note(&request);
        let mut result = self.act_while_held(id, request, stays, &cut).await;
        let closed = tokio::select! {
            closed = self.mark_after(keep, &way, &note) => closed,
            () = cut.cancelled() => Err("a person stopped Convoke; the next look at the tree records \
                it".to_owned()),
        };
        match closed {
            Ok(()) => open.closed(),
            Err(why) => {
                result.text.push_str(&format!("\n(what this changed is not recorded yet: {why})"));
            }
        }
        self.tell_overlaps(&mut result).await;
        result
    }

    /// How the record of changes names this agent and process.
    fn actor(&self) -> Actor<'_> {
        Actor { agent: self.agent.as_str(), token: &self.token }
    }

    /// Does what a call asks for, as long as this process may act for the agent. Another process may have
    /// taken the agent over while this one was stopped: then a command is not begun, and one that is under
    /// way is killed with everything it started.
    async fn act_while_held(
        &self,
        id: &str,
        request: ToolRequest,
        stays: bool,
        cut: &CancellationToken,
    ) -> ToolResult {
        if stays && self.is_fenced().await {
            return ToolResult::refused(FENCED);
        }
        let fenced = cut.child_token();
        let mut act = pin!(self.act(id, request, fenced.clone()));
        tokio::select! {
            result = &mut act => result,
            () = self.lost() => {
                fenced.cancel();
                let mut result = act.await;
                result.text.push_str(&format!("\n{FENCED}"));
                result
            }
        }
    }

    /// Ends when another process acts for the agent.
    async fn lost(&self) {
        let mut looks = tokio::time::interval(LOOKS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        loop {
            looks.tick().await;
            if self.is_fenced().await {
                return;
            }
        }
    }

    async fn is_fenced(&self) -> bool {
        // A store that does not answer proves nothing; the append of the result will say it.
        matches!(self.config.journal.holds(&self.lease).await, Ok(false))
    }

    /// Marks the state before something is written, or claims what will be. The shell is started first:
    /// making the tree ready for it parts files from the names that they have elsewhere, which is no change
    /// of the agent's. A shell that cannot be started is told of by whatever needs it.
    async fn mark_before(&self, keep: &ChangeRecorder, request: &ToolRequest) -> Result<Way, String> {
        let told = std::mem::take(&mut *self.told.lock().await);
        if !told.is_empty() {
            // The results that told it are in the journal: this call came after them.
            keep.were_told(self.actor(), &told).await;
        }
        let mut bash = self.bash.lock().await;
        let _ = bash.begin().await;
        for line in bash.for_person() {
            keep.note(self.actor(), &line).await?;
        }
        let unasked_jobs = bash.had_jobs() && !bash.is_traced();
        match request {
            ToolRequest::Bash { .. } | ToolRequest::RestartBash if bash.is_traced() => Ok(Way::Asks),
            ToolRequest::File(call) if !unasked_jobs && let Ok(root) = bash.root().await => {
                drop(bash);
                // A path that leads nowhere is refused where it is to be written.
                let path = call.path().and_then(|said| root.real_path(said).ok());
                let places: Vec<Place> = path.into_iter().map(Place::file).collect();
                let new = keep.before_write(self.actor(), &places, Some(&keep.begun())).await;
                Ok(Way::Places { new: new.map_err(|error| error.to_string())?, places })
            }
            _ => {
                drop(bash);
                keep.open(self.actor(), unasked_jobs).await?;
                Ok(Way::Window)
            }
        }
    }

    /// Marks the state after it.
    async fn mark_after(&self, keep: &ChangeRecorder, way: &Way, note: &str) -> Result<(), String> {
        match way {
            Way::Places { places, .. } if places.is_empty() => Ok(()),
            Way::Places { places, new } => keep.close_places(self.actor(), note, places, new).await,
            // A command that wrote nothing has claimed nothing, and is not looked for.
            Way::Asks if !keep.has_window(self.agent.as_str()) => Ok(()),
            Way::Asks | Way::Window => {
                let bash = self.bash.lock().await;
                let held = (bash.had_jobs() && bash.is_traced()).then(|| bash.still_open().to_vec());
                drop(bash);
                keep.close(self.actor(), note, held.as_deref()).await
            }
        }
    }

    /// Tells the agent which of its files another agent wrote at the same time.
    async fn tell_overlaps(&self, result: &mut ToolResult) {
        let Some(keep) = self.session.keep.as_ref().filter(|keep| keep.covers(&self.spec.dir)) else {
            return;
        };
        if !self.spec.confinement.sandbox.writes() {
            return;
        }
        let mut told = self.told.lock().await;
        let new: Vec<Overlap> = keep.overlaps(self.agent.as_str());
        let new: Vec<Overlap> = new.into_iter().filter(|overlap| !told.contains(overlap)).collect();
        for overlap in new.iter().take(MOST_TOLD) {
            result.text.push_str(&format!("\n({})", overlap.told()));
        }
        if let Some(more) = new.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
            let others: Vec<&str> = new[MOST_TOLD..].iter().map(|overlap| overlap.path.as_str()).collect();
            result.text.push_str(&format!("\n(the same is true of {more} more: {})", others.join(", ")));
        }
        told.extend(new);
    }

    /// Why a file tool must not go where its path really leads, although the path as it was written is
    /// allowed: rules were asked about the written path only.
    fn leads_astray(&self, root: &Root, call: &FileCall) -> Option<String> {
        let said = call.path()?;
        let real = root.real_path(said).ok()?.to_string_lossy().into_owned();
        let approvals = &self.spec.approvals;
        let dir = &self.spec.dir;
        let written = ToolRequest::File(call.clone());
        let really = ToolRequest::File(call.at(&real));
        let forbidden =
            approvals.forbids(&really, dir).or_else(|| self.config.forbidden.forbids(&really, dir));
        // The question or the rule that allowed it was about another path.
        let unasked = approvals.allows(&written, dir) && !approvals.allows(&really, dir);
        let why =
            forbidden.or_else(|| unasked.then(|| "the person has to be asked about that one".to_owned()))?;
        Some(format!("Not run: {said} leads to {real}, and {why}. Name the file itself."))
    }

    async fn act(&self, id: &str, request: ToolRequest, cut: CancellationToken) -> ToolResult {
        match request {
            ToolRequest::RestartBash => self.bash.lock().await.restart().await,
            ToolRequest::Bash { command } => self.bash.lock().await.run(id, command, cut).await,
            ToolRequest::File(call) => {
                let root = tokio::select! {
                    root = async { self.bash.lock().await.root().await } => root,
                    () = cut.cancelled() => return ToolResult::refused("(not run: a person stopped Convoke)"),
                };
                match root {
                    Ok(root) => match self.leads_astray(&root, &call) {
                        Some(why) => ToolResult::refused(why),
                        None => files::perform(root, call).await,
                    },
                    Err(why) => ToolResult::refused(format!("file error: {why}")),
                }
            }
            ToolRequest::Given { name, input, .. } => {
                let context = CallContext {
                    agent: self.agent.clone(),
                    dir: PathBuf::from(&self.spec.dir),
                    idempotency_key: format!("{}:{id}", self.agent),
                    cancelled: cut,
                };
                let result = self.config.tools.perform(&name, &input, context).await;
                bounded(result, &self.config.outputs.join(self.agent.as_str()), id)
            }
            ToolRequest::Task { .. }
            | ToolRequest::Workflow { .. }
            | ToolRequest::ReadResult { .. }
            | ToolRequest::RunStatus { .. }
            | ToolRequest::Team(_) => {
                ToolResult::refused("internal error: an agent request reached the local tools")
            }
        }
    }

    /// Ends the shell and everything it started. With `for_good` its private files go too.
    pub(crate) async fn stop(&self, for_good: bool) {
        let mut bash = self.bash.lock().await;
        let jobs = bash.had_jobs() && !bash.is_traced();
        bash.end().await;
        let kept = self.session.keep.as_ref().filter(|keep| keep.covers(&self.spec.dir));
        if let Some(keep) = kept.filter(|_| self.spec.confinement.sandbox.writes()) {
            keep.end(self.actor(), jobs).await;
        }
        if for_good {
            end_private(self.private()).await;
        }
    }

    fn private(&self) -> PathBuf {
        self.config.confine.private_of(self.agent.as_str())
    }
}

/// What a change is called in the record of changes.
fn note(request: &ToolRequest) -> String {
    let text = match request {
        ToolRequest::Bash { command } => command.as_str(),
        ToolRequest::File(call) => call.path().unwrap_or_default(),
        ToolRequest::Given { name, .. } => name.as_str(),
        _ => "",
    };
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}

/// How long a command may take.
pub(crate) fn deadline(spec: &AgentSpec) -> Duration {
    Duration::from_millis(spec.limits.bash_timeout_ms)
}

/// A new shell, as the model is told of it.
pub(crate) fn restarted(cwd: String) -> ToolResult {
    let state = ShellState { cwd, ..ShellState::default() };
    ToolResult {
        is_error: false,
        ran: Ran::Done,
        shell: Some(state),
        ..ToolResult::refused("Shell restarted.")
    }
}
