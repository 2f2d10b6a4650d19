//! What an agent does on this machine: commands in its shell and its file tools, both in the same place
//! and under the same policy. What is written where it stays is put between two marks, so that it can be
//! shown and taken back.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use convoke_files::Root;
use convoke_journal::Lease;
use convoke_kernel::{AgentId, AgentSpec, FileCall, Ran, Role, ShellState, ToolRequest, ToolResult};
use convoke_trees::Actor;
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

/// How often a process looks whether it may still act for an agent whose command is under way.
const LOOKS: Duration = Duration::from_secs(2);

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
        let bash = Mutex::new(Bash::new(Arc::clone(&config), agent.as_str(), spec.clone(), state));
        Self { config, session, agent, spec, lease, token, bash }
    }

    /// Does what a call asks for. A failure is told to the model; none of them ends the agent.
    pub(crate) async fn perform(&self, id: &str, request: ToolRequest, cut: CancellationToken) -> ToolResult {
        // What the person forbids now counts, also in a session that was begun before.
        if let Some(why) = self.config.forbidden.forbids(&request, &self.spec.dir) {
            return ToolResult::refused(format!("Not run: {why}."));
        }
        let stays = request.writes() && self.spec.confinement.sandbox.writes();
        let shares = stays && self.spec.dir == self.session.dir;
        // A task holds the write lock for as long as it works; other agents that write in the same
        // directory take it for each command.
        let takes_turns = shares && matches!(self.spec.role, Role::Lead | Role::Callee | Role::Teammate);
        let _pen = tokio::select! {
            write_lock = self.session.write_lock.lock(), if takes_turns => Some(write_lock),
            () = cut.cancelled(), if takes_turns => return ToolResult::refused("(not run: a person stopped \
                Convoke)"),
            else => None,
        };
        let kept = self.session.keep.as_ref().filter(|keep| stays && keep.covers(&self.spec.dir));
        if let Some(keep) = kept {
            // A large tree takes a while to look at, and a stop must not have to wait for that.
            let opened = tokio::select! {
                opened = self.mark_before(keep) => opened,
                () = cut.cancelled() => return ToolResult::refused("(not run: a person stopped Convoke)"),
            };
            if let Err(why) = opened {
                return ToolResult::refused(format!(
                    "Not run: the state before it could not be kept ({why}), so it could not be taken back."
                ));
            }
        }
        let note = note(&request);
        let mut result = self.act_while_held(id, request, stays, &cut).await;
        if let Some(keep) = kept {
            let closed = tokio::select! {
                closed = keep.close(self.actor(), &note) => closed,
                () = cut.cancelled() => Err("a person stopped Convoke; the next look at the tree records \
                    it".to_owned()),
            };
            if let Err(why) = closed {
                result.text.push_str(&format!("\n(what this changed is not recorded yet: {why})"));
            }
        }
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

    /// Marks the state before something is written. The shell is started first: making the tree ready for it
    /// parts files from the names that they have elsewhere, which is no change of the agent's. A shell that
    /// cannot be started is told of by whatever needs it.
    async fn mark_before(&self, keep: &ChangeRecorder) -> Result<(), String> {
        let mut bash = self.bash.lock().await;
        let _ = bash.begin().await;
        keep.open(self.actor(), bash.had_jobs()).await?;
        for line in bash.for_person() {
            keep.note(self.actor(), &line).await?;
        }
        Ok(())
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
        bash.end().await;
        let kept = self.session.keep.as_ref().filter(|keep| bash.had_jobs() && keep.covers(&self.spec.dir));
        if let Some(keep) = kept.filter(|_| self.spec.confinement.sandbox.writes()) {
            keep.end(self.actor()).await;
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
