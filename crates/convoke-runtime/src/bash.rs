//! The `bash` tool: one long-lived shell per agent, started at its first command, and the texts its results have.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use convoke_kernel::{Ran, ShellState, ToolRequest, ToolResult};
use convoke_sandbox::{Ending, Finished, HoldChoice, OutputSpec, RunCommand, Shell, ShellConfig};
use tokio_util::sync::CancellationToken;

use crate::runtime::Config;

const SHELL_RESTORED: &str = "(new shell: directory and exported variables are as before; functions, unexported variables and \
background jobs are gone)";

/// An agent's shell, started when first needed.
pub(crate) struct Bash {
    config: Arc<Config>,
    dir: PathBuf,
    outputs: PathBuf,
    timeout: Duration,
    shell: Option<Shell>,
    /// What a new shell is given, once a shell has been used.
    state: Option<ShellState>,
}

impl Bash {
    pub(crate) fn new(
        config: Arc<Config>,
        agent: &str,
        dir: PathBuf,
        timeout: Duration,
        state: Option<ShellState>,
    ) -> Self {
        let outputs = config.outputs.join(agent);
        Self { config, dir, outputs, timeout, shell: None, state }
    }

    /// Does what a call asks for. A failure is told to the model; none of them ends the agent.
    pub(crate) async fn perform(&mut self, id: &str, request: ToolRequest, cut: CancellationToken) -> ToolResult {
        match request {
            ToolRequest::RestartBash => self.restart().await,
            ToolRequest::Bash { command } => self.run(id, command, cut).await,
            ToolRequest::Task { .. } | ToolRequest::Workflow { .. } | ToolRequest::ReadResult { .. } => {
                ToolResult::refused("an agent is no command; this is a fault of convoke")
            }
        }
    }

    async fn restart(&mut self) -> ToolResult {
        self.end().await;
        self.state = None;
        let state = ShellState { cwd: self.dir.to_string_lossy().into_owned(), ..ShellState::default() };
        let refused = ToolResult::refused("Shell restarted.");
        ToolResult { is_error: false, ran: Ran::Done, shell: Some(state), ..refused }
    }

    async fn run(&mut self, id: &str, command: String, cut: CancellationToken) -> ToolResult {
        let mut notes = Vec::new();
        let shell = match self.shell.take() {
            Some(shell) => shell,
            None => {
                let started = tokio::select! {
                    started = self.start(&mut notes) => started,
                    () = cut.cancelled() => return ToolResult::refused("(not run: a person stopped Convoke before the command was started)"),
                };
                match started {
                    Ok(shell) => shell,
                    Err(error) => return ToolResult::refused(format!("bash error: {error}")),
                }
            }
        };
        let shell = self.shell.insert(shell);
        let output = OutputSpec::new(self.outputs.join(file_name(id)));
        let run = RunCommand { command, deadline: self.timeout, output };
        match shell.run(run, cut.cancelled()).await {
            Ok(finished) => {
                let state = &finished.state;
                let cwd = state.cwd.to_string_lossy().into_owned();
                let state = ShellState { cwd, set: state.set.clone(), unset: state.unset.clone() };
                self.state = Some(state.clone());
                tell(finished, state, self.timeout, notes)
            }
            Err(error @ (convoke_sandbox::Error::NulByte { .. } | convoke_sandbox::Error::CommandTooLong { .. })) => {
                ToolResult::refused(format!("bash error: {error}"))
            }
            Err(error) => {
                // The helper is gone and everything below it with it; the next command gets a new one.
                self.shell = None;
                ToolResult::interrupted(format!("bash error: the shell was lost, outcome unknown: {error}"))
            }
        }
    }

    async fn start(&self, notes: &mut Vec<String>) -> Result<Shell, convoke_sandbox::Error> {
        let restored = self.state.clone().map(|state| convoke_sandbox::ShellState {
            cwd: PathBuf::from(state.cwd),
            set: state.set,
            unset: state.unset,
        });
        let config = ShellConfig {
            helper: self.config.helper.clone(),
            cwd: self.dir.clone(),
            env: self.config.env.clone(),
            restored,
            hold: HoldChoice::default(),
        };
        let shell = Shell::start(config).await?;
        if self.state.is_some() {
            notes.push(SHELL_RESTORED.to_owned());
        }
        if let Some(missing) = &shell.opening().missing_cwd {
            let here = shell.opening().cwd.display();
            notes.push(format!("(the directory {} is gone; this is {here})", missing.display()));
        }
        Ok(shell)
    }

    /// Ends the shell and everything it started.
    pub(crate) async fn stop(mut self) {
        self.end().await;
    }

    async fn end(&mut self) {
        if let Some(shell) = self.shell.take() {
            // A helper that does not answer any more dies with its socket, and everything below it too.
            let _ = shell.stop().await;
        }
    }
}

fn tell(finished: Finished, state: ShellState, timeout: Duration, notes: Vec<String>) -> ToolResult {
    let text = finished.output.text.trim_end_matches('\n').to_owned();
    let text = if text.trim().is_empty() { "(no output)".to_owned() } else { text };
    let mut lines = notes;
    let mut ran = Ran::Done;
    let mut is_error = true;
    let mut exit_code = None;
    match finished.ending {
        Ending::Exited(0) => {
            is_error = false;
            exit_code = Some(0);
            lines.push(text);
        }
        Ending::Exited(code) => {
            exit_code = Some(code);
            lines.push(format!("(exit code {code})"));
            lines.push(text);
        }
        Ending::DeadlinePassed => {
            lines.push(text);
            lines.push(format!(
                "(command timed out after {}s: it and everything it started was killed; above is what it had printed. \
Start longer work in the background with its output in a file: `long-command > out.log 2>&1 &`)",
                timeout.as_secs_f64()
            ));
        }
        Ending::Cancelled => {
            ran = Ran::Interrupted;
            lines.push(text);
            lines.push(
                "(interrupted: a person stopped Convoke; the command was killed and may have run in part)".to_owned(),
            );
        }
    }
    if let Some(why) = finished.shell_replaced {
        // Named, because a shell that ends in an unusual way cannot always say where it stood.
        lines.push(format!(
            "({why}; the next command gets a new shell in {} with the exported variables last known)",
            state.cwd
        ));
    }
    let full_output = finished.output.full.map(|path| path.to_string_lossy().into_owned());
    ToolResult { text: lines.join("\n"), is_error, ran, exit_code, shell: Some(state), full_output }
}

/// A call's id comes from outside, so it is not trusted as a file name.
fn file_name(id: &str) -> String {
    let safe: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(80).collect();
    format!("{safe}.txt")
}
