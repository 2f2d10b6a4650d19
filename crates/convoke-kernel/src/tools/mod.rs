//! The tools an agent is offered, and what counts as a usable call. A tool is one file and one row of the
//! table below.

mod bash;
mod edit;
mod fields;
mod files;
mod given;
mod glob;
mod grep;
mod narrow;
mod read_result;
mod report_findings;
mod report_verdicts;
mod request;
mod run_status;
mod shown;
mod structured_output;
mod table;
mod task;
mod team;
mod workflow;

use serde_json::Value;

use crate::consent::Consent;
use crate::findings::{Ballot, Report};
use crate::output::Output;
use crate::spec::Role;
use crate::todo::TodoItem;
use crate::wire::{INVALID_INPUT, ToolCall};

pub use bash::{COMMANDS, bash_without_schema, is_command};
pub(crate) use edit::EDIT;
pub use edit::FileEdit;
pub use files::FileCall;
pub use given::{AfterCrash, GivenTool, GivenTools};
use glob::GlobCall;
use grep::GrepCall;
pub use narrow::{Part, Tools, known_tools, parts};
pub(crate) use report_findings::REPORT_FINDINGS;
pub(crate) use report_verdicts::REPORT_VERDICTS;
pub use request::ToolRequest;
pub use shown::{Shown, shown};
pub(crate) use structured_output::{STRUCTURED_OUTPUT, value_of};
use table::{AnyTool, Tool, Who, row};
pub(crate) use table::{Offer, declare};
pub use team::{SpawnCall, TaskCreateCall, TaskStatusCall, TaskUpdateCall, TeamCall};
pub use workflow::{ProgramCall, WORKFLOW, WorkflowCall};

/// The table of tools, in the order in which they are declared; the order counts, because requests share
/// their beginning. Lookup by name, what each role is offered, what rules and `tools:` of an agent's
/// definition can name, which names are taken and how views call a call are all derived from it. Tools of the
/// embedding program join it through `AnyTool`, and those of MCP servers are to join there too.
static TABLE: &[&Tool] = &[
    &bash::TOOL,
    &edit::TOOL,
    &glob::TOOL,
    &grep::TOOL,
    &task::TOOL,
    &workflow::TOOL,
    &read_result::TOOL,
    &run_status::TOOL,
    &report_findings::TOOL,
    &report_verdicts::TOOL,
    &structured_output::TOOL,
    &team::members::SPAWN_TEAMMATE,
    &team::mail::SEND_MESSAGE,
    &team::mail::BROADCAST,
    &team::mail::READ_INBOX,
    &team::members::LIST_TEAMMATES,
    &team::members::REQUEST_SHUTDOWN,
    &team::plans::REVIEW_PLAN,
    &team::own::IDLE,
    &team::board::CLAIM_TASK,
    &team::plans::SUBMIT_PLAN,
    &team::members::ANSWER_SHUTDOWN,
    &team::board::TASK_CREATE,
    &team::board::TASK_UPDATE,
    &team::board::TASK_GET,
    &team::board::TASK_LIST,
    &team::own::TODO,
    &team::own::COMPACT,
    &team::own::RECALL,
];

/// What a call of a file tool does. A tool's own type holds what it is told beside the path; the runtime,
/// which does the work, has one arm for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileWork {
    /// Show or change a file.
    Edit(FileEdit),
    /// Look for files.
    Glob(GlobCall),
    /// Look into files.
    Grep(GrepCall),
}

/// What a call asks for, before consent and rules are looked at.
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

/// The agent that makes a call, as far as it matters to what the call means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) role: Role,
    /// How many findings a verifier has to judge.
    pub(crate) findings: u32,
    /// The only local tools it was given.
    pub(crate) hands: Option<&'a Tools>,
    /// The shape its result has to have.
    pub(crate) output: Option<&'a Output>,
    /// Whether a person agreed to a workflow.
    pub(crate) consent: Consent,
    /// Whether it belongs to a team.
    pub(crate) in_team: bool,
    /// The tools of the embedding program.
    pub(crate) given: &'a [GivenTool],
}

/// Whether a call shows the agent something of the tree.
pub(crate) fn looks(name: &str) -> bool {
    row(name).is_some_and(|tool| !tool.parts.is_empty())
}

/// What a call that starts agents is about; `None` for any other call.
pub(crate) fn started_by(name: &str, input: &Value) -> Option<String> {
    row(name)?.starts?(input)
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

fn read_any(call: &ToolCall, caller: &Caller<'_>) -> Result<Wanted, String> {
    let input: Value =
        serde_json::from_str(call.input.as_str()).map_err(|e| format!("unreadable input: {e}"))?;
    if let Some(raw) = input.get(INVALID_INPUT) {
        let shown: String = raw.as_str().unwrap_or_default().chars().take(200).collect();
        return Err(format!(
            "Not run: the input of this call was not a JSON object. Send it again as valid JSON. It began: \
                {shown}"
        ));
    }
    let who = Who { role: caller.role, in_team: caller.in_team, has_output: caller.output.is_some() };
    match AnyTool::of(&call.name, who, caller.given) {
        Some(tool) => tool.read(&input, caller),
        None => Err(format!("unknown tool: {}", call.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confinement::Isolation;
    use crate::segment::Segment;

    fn caller(role: Role) -> Caller<'static> {
        Caller {
            role,
            findings: 0,
            hands: None,
            output: None,
            consent: Consent::Missing,
            in_team: false,
            given: &[],
        }
    }

    fn check(name: &str, input: &str, expected: Result<ToolRequest, &str>) {
        let call = ToolCall {
            id: "t".into(),
            name: name.into(),
            input: Segment::from_json(input.to_owned()).unwrap(),
        };
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
        assert_eq!(task::declaration()["input_schema"]["required"], serde_json::json!(["prompt"]));
    }

    #[test]
    fn a1_d3_4_only_the_lead_can_start_agents_whatever_a_child_calls() {
        for name in ["task", "Workflow", "read_result", "run_status"] {
            for role in [Role::Worker, Role::Verifier, Role::Task, Role::Callee, Role::Teammate] {
                let input =
                    Segment::from_json(r#"{"prompt":"p","subtasks":["s"],"run":"wf_1","item":1}"#).unwrap();
                let call = ToolCall { id: "t".into(), name: name.into(), input };
                let given = crate::consent::ConsentBasis::Mode;
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
        let names =
            |names: &[&str]| known_tools(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).0;
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
