//! How the tools are declared to the model. The descriptions are part of the behaviour: they carry what each tool is
//! for, when it may be used and what it costs.

use serde_json::{Value, json};

use crate::findings::{ballot_schema, report_schema};

pub(crate) const REPORT_FINDINGS: &str = "report_findings";
pub(crate) const REPORT_VERDICTS: &str = "report_verdicts";
pub(super) const BASH: &str = "bash";
pub(super) const TASK: &str = "task";
pub(super) const WORKFLOW: &str = "Workflow";
pub(super) const READ_RESULT: &str = "read_result";

/// Declares `bash`. Endpoints that do not know Anthropic's own tool get the same contract with a schema: without
/// one, some of them offer the model a tool with no parameters.
pub(crate) fn bash(anthropic_tools: bool) -> Value {
    if anthropic_tools {
        return json!({"type": "bash_20250124", "name": BASH});
    }
    json!({
        "name": BASH,
        "description": "Runs a command in a long-lived bash shell: directory, variables and background jobs stay from one call \
    to the next. Standard output and standard error come back together, with the exit code if it is not zero. Standard input is \
    closed. Give `command`, or `restart` set to true for a new shell.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line to run."},
                "restart": {"type": "boolean", "description": "True throws the shell away and starts a new one."}
            }
        }
    })
}

/// Declares `task`.
pub(crate) fn task() -> Value {
    json!({
        "name": TASK,
        "description": "Gives one task to a sub-agent with a clean context and brings back its summary, and only that. Use it to keep \
    your own context small: a question that takes reading many files, a self-contained piece of work that you check afterwards. \
    The sub-agent works in this directory with bash, sees nothing of this conversation and cannot start agents itself, so the \
    prompt has to say everything: what to find out or do, where, and what to bring back. Several calls in one reply run at the \
    same time.",
        "input_schema": {
            "type": "object",
            "properties": {"prompt": {"type": "string", "description": "The whole task."}},
            "required": ["prompt"],
            "additionalProperties": false
        }
    })
}

/// Declares `Workflow`.
pub(crate) fn workflow(max_subtasks: usize) -> Value {
    let description = format!(
        "Runs many agents at once on one request: a worker with a clean context for every subtask, and for every result with \
    findings a verifier that tries to refute them. The result comes back in the order of the subtasks, each with its findings and a \
    verdict per finding: confirmed, refuted, uncertain (tied votes, or a citation that does not hold) or unverified (nobody could look).\n\n\
    When it may be used. Only when a system message says that orchestration mode is on, or when the person asks for a workflow in \
    the request at hand. Otherwise the call is refused and nothing is spent.\n\n\
    Standing consent. While the mode is on, the person has agreed beforehand: run a workflow for every substantive request and do not \
    ask first. When a message says that the mode is off, that consent has ended.\n\n\
    What makes a good one. Scout first with a few commands, so that the subtasks fit what is there. Verification comes by itself; \
    do not add verifying subtasks. When the results are in, ask what nobody looked at, and send a second call for the gaps. Work that \
    builds on other work goes into a later call: survey, then dig, then check.\n\n\
    Granularity. One distinct concern per subtask, so that no two workers look for the same thing: about ten for a module of a few \
    hundred lines, many more for a broad audit, at most {max_subtasks} per call. A worker sees only its own subtask and not this \
    conversation: name the files, the question, what counts as a finding and what does not.\n\n\
    Every worker and verifier is paid for and counts against the session's caps; a call that does not fit is refused whole, with the numbers."
    );
    json!({
        "name": WORKFLOW,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {
                "subtasks": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "One self-contained instruction per worker."
                }
            },
            "required": ["subtasks"],
            "additionalProperties": false
        }
    })
}

/// Declares `read_result`.
pub(crate) fn read_result() -> Value {
    json!({
        "name": READ_RESULT,
        "description": "Reads what a Workflow result left out for length: one item of one run in full, page by page. The result says \
    which call to make. It costs nothing but the reading.",
        "input_schema": {
            "type": "object",
            "properties": {
                "run": {"type": "string", "description": "The run, as its result names it (wf_…)."},
                "item": {"type": "integer", "description": "The item's number; 0 is what stands before the first one."},
                "from": {"type": "integer", "description": "The character to start from; 0 is the beginning."}
            },
            "required": ["run", "item"],
            "additionalProperties": false
        }
    })
}

/// Declares `report_findings`.
pub(crate) fn report_findings() -> Value {
    json!({
        "name": REPORT_FINDINGS,
        "description": "Hands in your findings and ends your work: call it exactly once, when you are done. Every finding has a claim \
    that stands by itself, the evidence in words, a severity, and citations wherever something can be looked up: either path, \
    first and last line and the quote that stands there, or a command you ran and a quote of what it printed. A program compares \
    them with the files and with your own recorded output before anybody reads the claim.",
        "strict": true,
        "input_schema": report_schema()
    })
}

/// Declares `report_verdicts`.
pub(crate) fn report_verdicts() -> Value {
    json!({
        "name": REPORT_VERDICTS,
        "description": "Hands in your verdicts and ends your work: call it exactly once, with one verdict for every finding by its \
    number. confirmed: you derived it again and it holds in full. refuted: it does not. undecided: you looked and could not settle \
    it, which counts as refuted.",
        "strict": true,
        "input_schema": ballot_schema()
    })
}
