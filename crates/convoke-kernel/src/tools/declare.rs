//! How the tools are declared to the model. The descriptions are part of the behaviour: they carry what each tool is
//! for, when it may be used and what it costs.

use serde_json::{Value, json};

use crate::findings::{ballot_schema, report_schema};

pub(crate) const REPORT_FINDINGS: &str = "report_findings";
pub(crate) const REPORT_VERDICTS: &str = "report_verdicts";
pub(super) const BASH: &str = "bash";
pub(super) const EDIT: &str = "str_replace_based_edit_tool";
pub(super) const GLOB: &str = "glob";
pub(super) const GREP: &str = "grep";
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

/// Declares the file tools: the text editor, `glob` and `grep`.
pub(crate) fn files(anthropic_tools: bool) -> [Value; 3] {
    [edit(anthropic_tools), glob(), grep()]
}

/// Like `bash`, with a schema for endpoints that do not know Anthropic's own tool.
fn edit(anthropic_tools: bool) -> Value {
    if anthropic_tools {
        return json!({"type": "text_editor_20250728", "name": EDIT});
    }
    json!({
        "name": EDIT,
        "description": "Reads and changes text files below the working directory. view shows a file with line numbers, or what a \
    directory holds; view_range limits it. create writes a whole file. str_replace replaces old_str, which has to stand in the file \
    exactly once, by new_str. insert puts insert_text behind line insert_line (0: at the top). Line endings and encodings stay as \
    they are.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
                "path": {"type": "string", "description": "The file or directory."},
                "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last line, from 1; -1 is the end."},
                "file_text": {"type": "string", "description": "For create: the whole content."},
                "old_str": {"type": "string", "description": "For str_replace: what stands there, to the letter."},
                "new_str": {"type": "string", "description": "For str_replace: what is to stand there."},
                "insert_line": {"type": "integer", "description": "For insert: the line before the new text."},
                "insert_text": {"type": "string", "description": "For insert: the new text."}
            },
            "required": ["command", "path"]
        }
    })
}

fn glob() -> Value {
    json!({
        "name": GLOB,
        "description": "Lists files whose path fits a pattern, such as **/*.rs or src/**/test_*.py, without those that git ignores. \
    Quicker than find, and its results are bounded. Several calls in one reply run at the same time.",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The pattern; ** goes through directories."},
                "path": {"type": "string", "description": "Where to look; the working directory if absent."},
                "all": {"type": "boolean", "description": "True counts hidden and ignored files too."}
            },
            "required": ["pattern"],
            "additionalProperties": false
        }
    })
}

fn grep() -> Value {
    json!({
        "name": GREP,
        "description": "Searches the contents of files with a regular expression (Rust's syntax) and gives path:line:text, without \
    files that git ignores and without binary ones. Quicker than grep -r, and its results are bounded. Several calls in one reply \
    run at the same time.",
        "input_schema": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression."},
                "path": {"type": "string", "description": "A file or directory; the working directory if absent."},
                "glob": {"type": "string", "description": "Only files whose path fits, such as *.py."},
                "ignore_case": {"type": "boolean", "description": "True if case does not matter."},
                "context": {"type": "integer", "description": "Lines to show around each match."},
                "files_only": {"type": "boolean", "description": "True gives only the names of the files."},
                "all": {"type": "boolean", "description": "True counts hidden and ignored files too."}
            },
            "required": ["pattern"],
            "additionalProperties": false
        }
    })
}

/// Declares `task`.
pub(crate) fn task() -> Value {
    json!({
        "name": TASK,
        "description": "Gives one task to a sub-agent with a clean context and brings back its summary, and only that. Use it to keep \
    your own context small: a question that takes reading many files, a self-contained piece of work that you check afterwards. \
    The sub-agent has bash and the file tools, sees nothing of this conversation and cannot start agents itself, so the \
    prompt has to say everything: what to find out or do, where, and what to bring back.\n\n\
    isolation says where it works. none: in this directory itself; such tasks write one after the other. copy: in a throwaway copy of \
    it, for everything that only has to find something out or try something; several in one reply run at the same time. worktree: in a \
    git worktree of its own, for changes that are made side by side; what it changes is kept on a branch, and the result names it.",
        "input_schema": {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "The whole task."},
                "isolation": {"type": "string", "enum": ["none", "copy", "worktree"], "description": "Where it works; none if absent."}
            },
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
