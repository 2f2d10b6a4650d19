//! The tools an agent is offered, and what counts as a usable call.

mod declare;
mod files;
mod narrow;
mod team;
mod workflow;

use serde_json::Value;

use crate::approval::Subject;
use crate::confinement::Isolation;
use crate::consent::Consent;
use crate::findings::{Ballot, Report};
use crate::output::Output;
use crate::spec::Role;
use crate::todo::TodoItem;
use crate::wire::{INVALID_INPUT, ToolCall};

pub(crate) use declare::{
    REPORT_FINDINGS, REPORT_VERDICTS, STRUCTURED_OUTPUT, WORKFLOW, hands, read_result, report_findings,
    report_verdicts, run_status, structured_output, task,
};
pub use files::{FileEdit, GlobCall, GrepCall};
pub(crate) use narrow::Hand;
pub use narrow::{Tools, known_tools};
use team::TeamWanted;
pub use team::{SpawnCall, TaskCreateCall, TaskStatusCall, TaskUpdateCall, TeamCall};
pub(crate) use team::{declare_lead, declare_teammate};
pub(crate) use workflow::workflow;
pub use workflow::{ProgramCall, WorkflowCall};

/// A call that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRequest {
    /// Run a command in the agent's shell.
    Bash {
        /// The command.
        command: String,
    },
    /// Replace the agent's shell by a new one.
    RestartBash,
    /// Show or change a file.
    Edit(FileEdit),
    /// Look for files.
    Glob(GlobCall),
    /// Look into files.
    Grep(GrepCall),
    /// Give one task to a sub-agent.
    Task {
        /// The whole task.
        prompt: String,
        /// Where it works.
        isolation: Isolation,
    },
    /// Run a workflow.
    Workflow {
        /// What it is to do.
        what: WorkflowCall,
        /// Whether somebody agreed to it.
        consent: Consent,
    },
    /// Read the rest of a result.
    ReadResult {
        /// The run.
        run: String,
        /// The item, from 1; 0 is what stands before them.
        item: u32,
        /// Where to start.
        from: usize,
    },
    /// Say how far a run is.
    RunStatus {
        /// The run.
        run: String,
    },
    /// Do something with the team, its mail or its board.
    Team(TeamCall),
}

/// What a call asks for, before anybody has agreed to anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Something to be run.
    Run(ToolRequest),
    /// The worker's report.
    Report(Report),
    /// The verifier's verdicts.
    Ballot(Ballot),
    /// A value that fits the schema that was asked for.
    Output(Value),
    /// To end the work for now.
    Idle,
    /// To write down what there is to do.
    Todo(Vec<TodoItem>),
    /// To begin a new history, with this in mind.
    Compact(Option<String>),
}

/// Who makes a call, as far as it matters to what the call means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) role: Role,
    /// How many findings a verifier has to judge.
    pub(crate) findings: u32,
    /// The only hands it was given.
    pub(crate) hands: Option<&'a Tools>,
    /// The shape its result has to have.
    pub(crate) output: Option<&'a Output>,
    /// Whether somebody agreed to a workflow.
    pub(crate) consent: Consent,
    /// Whether it belongs to a team.
    pub(crate) in_team: bool,
}

impl ToolRequest {
    /// Whether it may change something right here: such calls run one at a time and alone, and one that was cut off is not
    /// repeated, because nobody knows what it did.
    pub fn writes(&self) -> bool {
        match self {
            ToolRequest::Bash { .. } | ToolRequest::RestartBash => true,
            ToolRequest::Edit(edit) => edit.writes(),
            ToolRequest::Glob(_) | ToolRequest::Grep(_) => false,
            ToolRequest::Task { .. } | ToolRequest::Workflow { .. } => false,
            ToolRequest::ReadResult { .. } | ToolRequest::RunStatus { .. } | ToolRequest::Team(_) => false,
        }
    }

    /// Whether it is done with the agent's own hands, in its shell or on its files, and not by other agents.
    pub fn is_own_work(&self) -> bool {
        match self {
            ToolRequest::Bash { .. } | ToolRequest::RestartBash => true,
            ToolRequest::Edit(_) | ToolRequest::Glob(_) | ToolRequest::Grep(_) => true,
            ToolRequest::Task { .. } | ToolRequest::Workflow { .. } => false,
            ToolRequest::ReadResult { .. } | ToolRequest::RunStatus { .. } | ToolRequest::Team(_) => false,
        }
    }

    /// What rules look at; `None` for what no rule is about.
    pub(crate) fn subject(&self, dir: &str) -> Option<Subject<'_>> {
        match self {
            ToolRequest::Bash { command } => Some(Subject::Command(command)),
            ToolRequest::Edit(edit) => {
                let tool = if edit.writes() { "edit" } else { "view" };
                Some(Subject::file(tool, edit.path(), edit.writes(), dir))
            }
            ToolRequest::Glob(glob) => Some(Subject::file("glob", glob.path.as_deref().unwrap_or("."), false, dir)),
            ToolRequest::Grep(grep) => Some(Subject::file("grep", grep.path.as_deref().unwrap_or("."), false, dir)),
            ToolRequest::RestartBash
            | ToolRequest::Task { .. }
            | ToolRequest::Workflow { .. }
            | ToolRequest::ReadResult { .. }
            | ToolRequest::RunStatus { .. }
            | ToolRequest::Team(_) => None,
        }
    }

    /// Whether calls of this kind are done one after the other, in the order they were written: letters arrive as they were sent.
    pub(crate) fn takes_turns(&self) -> bool {
        matches!(self, ToolRequest::Team(_))
    }
}

/// Whether a call runs a command in the agent's shell.
pub(crate) fn is_command(name: &str) -> bool {
    name == declare::BASH
}

/// Whether a call shows the agent something of the tree.
pub(crate) fn looks(name: &str) -> bool {
    matches!(name, declare::BASH | declare::EDIT | declare::GLOB | declare::GREP)
}

/// Reads a call; the error is the text the model gets as its result.
pub(crate) fn read(call: &ToolCall, caller: &Caller<'_>) -> Result<Wanted, String> {
    let wanted = read_any(call, caller)?;
    let refused = match (&wanted, caller.hands) {
        (Wanted::Run(request), Some(hands)) => hands.refuses(request),
        _ => None,
    };
    refused.map_or(Ok(wanted), Err)
}

/// The value that a call of `StructuredOutput` hands in, whatever it is worth.
pub(crate) fn value_of(call: &ToolCall) -> Option<Value> {
    serde_json::from_str(call.input.as_str()).ok()
}

fn read_any(call: &ToolCall, caller: &Caller<'_>) -> Result<Wanted, String> {
    let input: Value = serde_json::from_str(call.input.as_str()).map_err(|e| format!("unreadable input: {e}"))?;
    if let Some(raw) = input.get(INVALID_INPUT) {
        let shown: String = raw.as_str().unwrap_or_default().chars().take(200).collect();
        return Err(format!(
            "Not run: the input of this call was not a JSON object. Send it again as valid JSON. It began: {shown}"
        ));
    }
    match (call.name.as_str(), caller.role) {
        (declare::BASH, _) => read_bash(&input).map(Wanted::Run),
        (declare::EDIT, _) => files::read_edit(&input).map(|edit| Wanted::Run(ToolRequest::Edit(edit))),
        (declare::GLOB, _) => files::read_glob(&input).map(|glob| Wanted::Run(ToolRequest::Glob(glob))),
        (declare::GREP, _) => files::read_grep(&input).map(|grep| Wanted::Run(ToolRequest::Grep(grep))),
        (declare::TASK, Role::Lead) => read_task(&input).map(Wanted::Run),
        (declare::WORKFLOW, Role::Lead) => {
            let what = workflow::read_workflow(&input)?;
            Ok(Wanted::Run(ToolRequest::Workflow { what, consent: caller.consent }))
        }
        (declare::READ_RESULT, Role::Lead) => read_result_call(&input).map(Wanted::Run),
        (declare::RUN_STATUS, Role::Lead) => read_run_status(&input).map(Wanted::Run),
        (REPORT_FINDINGS, Role::Worker) => {
            Report::read(&input).map(Wanted::Report).map_err(|why| format!("Not recorded: {why}"))
        }
        (REPORT_VERDICTS, Role::Verifier) => {
            let ballot = Ballot::read(&input, caller.findings as usize);
            ballot.map(Wanted::Ballot).map_err(|why| format!("Not recorded: {why}"))
        }
        (STRUCTURED_OUTPUT, _) if caller.output.is_some() => {
            caller.output.map_or(Ok(()), |output| output.fits(&input))?;
            Ok(Wanted::Output(input))
        }
        (other, role) => {
            let read = caller.in_team.then(|| team::read_team(other, &input, role == Role::Lead)).flatten();
            match read.unwrap_or_else(|| Err(format!("unknown tool: {other}")))? {
                TeamWanted::Run(call) => Ok(Wanted::Run(ToolRequest::Team(call))),
                TeamWanted::Idle => Ok(Wanted::Idle),
                TeamWanted::Todo(items) => Ok(Wanted::Todo(items)),
                TeamWanted::Compact(focus) => Ok(Wanted::Compact(focus)),
            }
        }
    }
}

fn read_task(input: &Value) -> Result<ToolRequest, String> {
    let isolation = match input.get("isolation").filter(|isolation| !isolation.is_null()) {
        None => Isolation::None,
        Some(isolation) => serde_json::from_value(isolation.clone())
            .map_err(|_| "task error: isolation is none, copy or worktree.".to_owned())?,
    };
    match input.get("prompt").and_then(Value::as_str) {
        Some(prompt) if !prompt.trim().is_empty() => Ok(ToolRequest::Task { prompt: prompt.to_owned(), isolation }),
        _ => Err("task error: no prompt was provided.".to_owned()),
    }
}

fn read_result_call(input: &Value) -> Result<ToolRequest, String> {
    let number = |name: &str| input.get(name).and_then(Value::as_u64);
    let run = input.get("run").and_then(Value::as_str).map(str::trim).filter(|run| !run.is_empty());
    match (run, number("item").and_then(|item| u32::try_from(item).ok())) {
        (Some(run), Some(item)) => {
            let from = number("from").and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
            Ok(ToolRequest::ReadResult { run: run.to_owned(), item, from })
        }
        _ => Err("read_result error: give run (wf_…) and item, as the Workflow result names them.".to_owned()),
    }
}

fn read_run_status(input: &Value) -> Result<ToolRequest, String> {
    match input.get("run").and_then(Value::as_str).map(str::trim).filter(|run| !run.is_empty()) {
        Some(run) => Ok(ToolRequest::RunStatus { run: run.to_owned() }),
        None => Err("run_status error: give run (wf_…), as the Workflow call named it.".to_owned()),
    }
}

fn read_bash(input: &Value) -> Result<ToolRequest, String> {
    if input.get("restart") == Some(&Value::Bool(true)) {
        return Ok(ToolRequest::RestartBash);
    }
    match input.get("command").and_then(Value::as_str) {
        Some(command) if command.contains('\0') => Err("bash error: the command holds a NUL character.".to_owned()),
        Some(command) if !command.trim().is_empty() => Ok(ToolRequest::Bash { command: command.to_owned() }),
        _ => Err("bash error: no command was provided.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    fn caller(role: Role) -> Caller<'static> {
        Caller { role, findings: 0, hands: None, output: None, consent: Consent::Missing, in_team: false }
    }

    fn check(name: &str, input: &str, expected: Result<ToolRequest, &str>) {
        let call = ToolCall { id: "t".into(), name: name.into(), input: Segment::from_json(input.to_owned()).unwrap() };
        match (read(&call, &caller(Role::Lead)), expected) {
            (Ok(got), Ok(want)) => assert_eq!(got, Wanted::Run(want)),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
            (got, want) => panic!("{name} {input}: got {got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn d4_2_d4_3_calls_are_read_or_answered_with_what_is_wrong() {
        check("bash", r#"{"command":"ls"}"#, Ok(ToolRequest::Bash { command: "ls".into() }));
        check("bash", r#"{"restart":true}"#, Ok(ToolRequest::RestartBash));
        check("bash", r#"{"restart":false,"command":"ls"}"#, Ok(ToolRequest::Bash { command: "ls".into() }));
        check("bash", "{}", Err("bash error: no command was provided."));
        check("bash", r#"{"command":"  "}"#, Err("no command was provided"));
        check("bash", r#"{"command":7}"#, Err("no command was provided"));
        check("bash", r#"{"command":"a\u0000b"}"#, Err("NUL"));
        check("bash", r#"{"_invalid_json":"{\"comm"}"#, Err(r#"It began: {"comm"#));
    }

    #[test]
    fn d3_6_an_unknown_tool_is_named_in_its_error() {
        check("browse", "{}", Err("unknown tool: browse"));
    }

    #[test]
    fn a2_a_task_has_one_required_prompt() {
        check(
            "task",
            r#"{"prompt":"look"}"#,
            Ok(ToolRequest::Task { prompt: "look".into(), isolation: Isolation::None }),
        );
        let apart = ToolRequest::Task { prompt: "look".into(), isolation: Isolation::Worktree };
        check("task", r#"{"prompt":"look","isolation":"worktree"}"#, Ok(apart));
        check("task", r#"{"prompt":"look","isolation":"moon"}"#, Err("none, copy or worktree"));
        check("task", "{}", Err("no prompt was provided"));
        check("task", r#"{"prompt":[1]}"#, Err("no prompt was provided"));
        assert_eq!(task()["input_schema"]["required"], serde_json::json!(["prompt"]));
    }

    #[test]
    fn a1_d3_4_only_the_lead_can_start_agents_whatever_a_child_calls() {
        for name in ["task", "Workflow", "read_result", "run_status"] {
            for role in [Role::Worker, Role::Verifier, Role::Task, Role::Callee, Role::Teammate] {
                let input = Segment::from_json(r#"{"prompt":"p","subtasks":["s"],"run":"wf_1","item":1}"#).unwrap();
                let call = ToolCall { id: "t".into(), name: name.into(), input };
                let given = crate::consent::By::Mode;
                let answer = read(&call, &Caller { consent: Consent::Given(given), ..caller(role) });
                assert_eq!(answer, Err(format!("unknown tool: {name}")), "{role:?}");
            }
        }
    }

    #[test]
    fn a_rest_is_asked_for_by_run_and_item() {
        let rest = |from| ToolRequest::ReadResult { run: "wf_a".into(), item: 3, from };
        check("read_result", r#"{"run":"wf_a","item":3}"#, Ok(rest(0)));
        check("read_result", r#"{"run":"wf_a","item":3,"from":8000}"#, Ok(rest(8000)));
        check("read_result", r#"{"run":"wf_a","item":-1}"#, Err("give run"));
        check("read_result", r#"{"item":1}"#, Err("give run"));
        check("run_status", r#"{"run":" wf_a "}"#, Ok(ToolRequest::RunStatus { run: "wf_a".into() }));
        check("run_status", "{}", Err("give run"));
    }

    #[test]
    fn what_an_agent_was_not_given_is_refused_by_the_dispatcher_whatever_was_declared() {
        let names = |names: &[&str]| known_tools(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).0;
        let reader = names(&["Read", "Grep"]);
        let check = |hands: &Tools, name: &str, input: &str, expected: Option<&str>| {
            let input = Segment::from_json(input.to_owned()).unwrap();
            let call = ToolCall { id: "t".into(), name: name.into(), input };
            let answer = read(&call, &Caller { hands: Some(hands), ..caller(Role::Callee) });
            match (answer, expected) {
                (Ok(Wanted::Run(_)), None) => {}
                (Err(got), Some(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
                (got, want) => panic!("{name}: got {got:?}, wanted {want:?}"),
            }
        };
        let edit = "str_replace_based_edit_tool";
        check(&reader, edit, r#"{"command":"view","path":"a"}"#, None);
        check(&reader, "grep", r#"{"pattern":"a"}"#, None);
        for input in [
            r#"{"command":"create","path":"a","file_text":"x"}"#,
            r#"{"command":"str_replace","path":"a","old_str":"x"}"#,
            r#"{"command":"insert","path":"a","insert_line":0,"insert_text":"x"}"#,
        ] {
            check(
                &reader,
                edit,
                input,
                Some("given view, grep and no other tools, so you cannot create or change files"),
            );
        }
        check(&reader, "bash", r#"{"command":"ls"}"#, Some("cannot run commands"));
        check(&reader, "bash", r#"{"restart":true}"#, Some("cannot run commands"));
        check(&reader, "glob", r#"{"pattern":"*"}"#, Some("glob"));
        check(&names(&["Write"]), edit, r#"{"command":"view","path":"a"}"#, Some("cannot view files"));
        check(&names(&[]), "grep", r#"{"pattern":"a"}"#, Some("given no tools"));
    }
}
