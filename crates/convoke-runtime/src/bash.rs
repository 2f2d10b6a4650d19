//! The `bash` tool: one long-lived shell per agent, started when it is first needed, and the texts its
//! results have.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use convoke_beneath::Dir;
use convoke_files::{Protected, Root};
use convoke_kernel::{AgentSpec, Ran, SHELL_RESTORED, Sandbox, ShellState, ToolResult};
use convoke_sandbox::{
    Ending, Finished, HoldChoice, LayerSet, OutputSpec, Policy, RunCommand, Shell, ShellConfig, WriteGate,
};
use tokio_util::sync::CancellationToken;

use crate::local_tools::{deadline, restarted};
use crate::runtime::Config;
use crate::write_gate::{Asked, Gate};

/// Directories in which version control keeps its own data; the file tools never write there.
const METADATA: [&str; 5] = [".git", ".hg", ".jj", ".sl", ".svn"];

/// An agent's shell, started when first needed.
pub(crate) struct Bash {
    config: Arc<Config>,
    agent: String,
    spec: AgentSpec,
    outputs: PathBuf,
    timeout: Duration,
    shell: Option<Shell>,
    /// The policy and the layers that hold it, once a shell has been started.
    held: Option<(Policy, Option<LayerSet>)>,
    /// What its commands ask before they write, where that is to be kept.
    gate: Option<Arc<Gate>>,
    /// Whether background jobs were alive after the last command.
    jobs: bool,
    /// What they have open for writing, where that is known.
    still_open: Vec<PathBuf>,
    /// What is said before the output of the next command.
    notes: Vec<String>,
    /// What a person is to be told.
    for_person: Vec<String>,
    /// What a new shell is given, once a shell has been used.
    state: Option<ShellState>,
}

impl Bash {
    pub(crate) fn new(config: Arc<Config>, agent: &str, spec: AgentSpec, state: Option<ShellState>) -> Self {
        let outputs = config.outputs.join(agent);
        let timeout = deadline(&spec);
        let notes = Vec::new();
        let for_person = Vec::new();
        let agent = agent.to_owned();
        Self {
            config,
            agent,
            spec,
            outputs,
            timeout,
            shell: None,
            held: None,
            gate: None,
            jobs: false,
            still_open: Vec::new(),
            notes,
            for_person,
            state,
        }
    }

    /// The same with a gate, which is asked before something is written where it stays.
    pub(crate) fn gated(self, gate: Option<Arc<Gate>>) -> Self {
        Self { gate, ..self }
    }

    /// Whether its shell asks before it writes.
    pub(crate) fn is_traced(&self) -> bool {
        self.shell.as_ref().is_some_and(Shell::is_traced)
    }

    /// What was still open for writing after the last command.
    pub(crate) fn still_open(&self) -> &[PathBuf] {
        &self.still_open
    }

    pub(crate) async fn restart(&mut self) -> ToolResult {
        self.end().await;
        self.state = None;
        self.notes.clear();
        restarted(self.spec.dir.clone())
    }

    /// The agent's tree by handle, as its commands see it. Where nothing is confined that is the directory
    /// itself.
    pub(crate) async fn root(&mut self) -> Result<Root, String> {
        let protected = Protected { writing: true, names: METADATA.map(str::to_owned).into() };
        if self.spec.confinement.sandbox == Sandbox::Off {
            let dir = PathBuf::from(&self.spec.dir);
            let handle = Dir::open(&dir).map_err(|error| error.to_string())?;
            return Ok(Root::new(handle.into(), dir, Protected { names: Vec::new(), ..protected }));
        }
        self.begin().await?;
        let Some(shell) = &self.shell else { return Err("there is no shell".to_owned()) };
        let handle = shell.root().ok_or("the sandbox gave no handle of its tree")?;
        let handle: OwnedFd = handle.try_clone_to_owned().map_err(|error| error.to_string())?;
        // Mounts hide it from the handle too, but not every layer set has any.
        let hidden = self.config.confine.hidden_in(&self.spec);
        let workspace =
            Path::new(&self.spec.dir).canonicalize().unwrap_or_else(|_| PathBuf::from(&self.spec.dir));
        let named = shell.named_by_git().iter().filter_map(|path| path.strip_prefix(&workspace).ok());
        let guarded = named.map(Path::to_owned).collect();
        Ok(Root::new(handle, shell.tree().to_owned(), protected).hiding(hidden).guarding(guarded))
    }

    /// Starts the shell if there is none. What there is to say of it is told with the next command.
    pub(crate) async fn begin(&mut self) -> Result<(), String> {
        if self.shell.is_none() && self.spec.confinement.sandbox != Sandbox::Off {
            self.shell = Some(self.start().await?);
        }
        Ok(())
    }

    /// What a person should know of how the tree was made ready for commands, told once.
    pub(crate) fn for_person(&mut self) -> Vec<String> {
        std::mem::take(&mut self.for_person)
    }

    pub(crate) async fn run(&mut self, id: &str, command: String, cut: CancellationToken) -> ToolResult {
        let shell = match self.shell.take() {
            Some(shell) => shell,
            None => {
                let started = tokio::select! {
                    started = self.start() => started,
                    () = cut.cancelled() => return ToolResult::refused("(not run: a person stopped Convoke \
                        before the command was started)"),
                };
                match started {
                    Ok(shell) => shell,
                    Err(error) => return ToolResult::refused(format!("bash error: {error}")),
                }
            }
        };
        let notes = std::mem::take(&mut self.notes);
        let shell = self.shell.insert(shell);
        let output = OutputSpec::new(self.outputs.join(file_name(id)));
        let run = RunCommand { command, deadline: self.timeout, output };
        let ends = cut.child_token();
        if let Some(gate) = &self.gate {
            gate.begin(ends.clone());
        }
        let ran = shell.run(run, ends.cancelled()).await;
        let refused = self.gate.as_ref().and_then(|gate| gate.end()).filter(|_| !cut.is_cancelled());
        match ran {
            Ok(mut finished) => {
                self.still_open = std::mem::take(&mut finished.held);
                let state = &finished.state;
                let cwd = state.cwd.to_string_lossy().into_owned();
                let state = ShellState { cwd, set: state.set.clone(), unset: state.unset.clone() };
                self.state = Some(state.clone());
                self.jobs = finished.jobs;
                let hosts = finished.refused_hosts.join(", ");
                let mut told = tell(finished, state, self.timeout, notes, refused);
                if !hosts.is_empty() {
                    told.text.push_str(&format!(
                        "\n(the network is closed to {hosts}; only a person can open it, with \
                            --network-allow)"
                    ));
                }
                self.explain(told)
            }
            Err(
                error @ (convoke_sandbox::Error::NulByte { .. }
                | convoke_sandbox::Error::CommandTooLong { .. }),
            ) => ToolResult::refused(format!("bash error: {error}")),
            Err(error) => {
                // The helper is gone and everything below it with it; the next command gets a new one.
                self.shell = None;
                self.still_open.clear();
                ToolResult::interrupted(format!("bash error: the shell was lost, outcome unknown: {error}"))
            }
        }
    }

    /// Adds what the sandbox may have to do with a failure.
    fn explain(&self, mut result: ToolResult) -> ToolResult {
        let Some((policy, set)) = self.held.as_ref().filter(|_| result.is_error) else { return result };
        if let Some(note) = convoke_sandbox::likely_denial(&result.text, result.exit_code, policy, *set) {
            result.text.push_str(&format!("\n({note})"));
        }
        result
    }

    async fn start(&mut self) -> Result<Shell, String> {
        let (policy, layers) = self.config.confine.policy(&self.agent, &self.spec, &self.outputs)?;
        self.held = Some((policy.clone(), layers));
        let restored = self.state.clone().map(|state| convoke_sandbox::ShellState {
            cwd: PathBuf::from(state.cwd),
            set: state.set,
            unset: state.unset,
        });
        let config = ShellConfig {
            helper: self.config.helper.clone(),
            cwd: PathBuf::from(&self.spec.dir),
            env: self.config.env.clone(),
            restored,
            hold: HoldChoice::default(),
            policy,
            layers,
            writes: self.gate.clone().map(|gate| Arc::new(Asked(gate)) as Arc<dyn WriteGate>),
            templates: self.config.confine.templates.clone(),
            promise: self.config.confine.promise.clone(),
        };
        let shell = Shell::start(config).await.map_err(|error| error.to_string())?;
        let notes = &mut self.notes;
        notes.extend(shell.notes().iter().map(|note| format!("({note})")));
        self.for_person.extend_from_slice(shell.notes());
        let tree = shell.tree();
        let dir = self.spec.dir.as_str();
        if tree.to_str() != Some(dir) {
            notes.push(format!("(the throwaway copy of {dir} is {})", tree.display()));
        }
        if self.state.is_some() {
            notes.push(SHELL_RESTORED.to_owned());
        }
        if let Some(missing) = &shell.opening().missing_cwd {
            let here = shell.opening().cwd.display();
            notes.push(format!("(the directory {} is gone; this is {here})", missing.display()));
        }
        Ok(shell)
    }

    /// Whether something the agent started in the background may have been at work since its last command.
    pub(crate) fn had_jobs(&self) -> bool {
        self.jobs
    }

    /// Ends the shell and everything it started.
    pub(crate) async fn end(&mut self) {
        self.still_open.clear();
        if let Some(shell) = self.shell.take() {
            // A helper that does not answer any more dies with its socket, and everything below it too.
            let _ = shell.stop().await;
        }
    }
}

fn tell(
    finished: Finished,
    state: ShellState,
    timeout: Duration,
    notes: Vec<String>,
    refused: Option<String>,
) -> ToolResult {
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
                "(command timed out after {}s: it and everything it started was killed; above is what it \
                 had printed. Start longer work in the background with its output in a file: `long-command \
                 > out.log 2>&1 &`)",
                timeout.as_secs_f64()
            ));
        }
        Ending::LimitPassed { what } => {
            lines.push(text);
            lines.push(format!("(killed with everything it started, because it passed a limit: {what})"));
        }
        Ending::Unknown => {
            lines.push(text);
            lines.push("(the exit code is unknown, and perhaps not all of the command has run)".to_owned());
        }
        Ending::Cancelled if let Some(why) = refused => {
            lines.push(text);
            lines.push(format!(
                "(the command was killed before it wrote a file, and may have run in part: the state before it \
                 could not be kept ({why}), so it could not be taken back)"
            ));
        }
        Ending::Cancelled => {
            ran = Ran::Interrupted;
            lines.push(text);
            lines.push(
                "(interrupted: a person stopped Convoke; the command was killed and may have run in part)"
                    .to_owned(),
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
    let shell = Some(state);
    ToolResult { is_error, ran, exit_code, shell, full_output, ..ToolResult::done(lines.join("\n")) }
}

/// A call's id comes from outside, so it is not trusted as a file name.
fn file_name(id: &str) -> String {
    let safe: String =
        id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(80).collect();
    format!("{safe}.txt")
}
