//! How the tools are declared to the model. The descriptions are part of the behaviour: they carry what each tool is
//! for, when it may be used and what it costs.

use serde_json::{Value, json};

use super::narrow::{Hand, Tools};
use crate::findings::{ballot_schema, report_schema};

pub(crate) const REPORT_FINDINGS: &str = "report_findings";
pub(crate) const REPORT_VERDICTS: &str = "report_verdicts";
pub(super) const BASH: &str = "bash";
pub(super) const EDIT: &str = "str_replace_based_edit_tool";
pub(super) const GLOB: &str = "glob";
pub(super) const GREP: &str = "grep";
pub(super) const TASK: &str = "task";
pub(crate) const WORKFLOW: &str = "Workflow";
pub(super) const READ_RESULT: &str = "read_result";
pub(super) const RUN_STATUS: &str = "run_status";
pub(crate) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// Declares the hands that an agent was given.
pub(crate) fn hands(anthropic_tools: bool, given: &Tools) -> Vec<Value> {
    let mut tools = Vec::new();
    tools.extend(given.has(Hand::Bash).then(|| bash(anthropic_tools)));
    tools.extend(edit(anthropic_tools, given.has(Hand::View), given.has(Hand::Edit)));
    tools.extend(given.has(Hand::Glob).then(glob));
    tools.extend(given.has(Hand::Grep).then(grep));
    tools
}

/// Declares `bash`. Endpoints that do not know Anthropic's own tool get the same contract with a schema: without
/// one, some of them offer the model a tool with no parameters.
fn bash(anthropic_tools: bool) -> Value {
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

/// Like `bash`, with a schema for endpoints that do not know Anthropic's own tool; and for agents that were given only one
/// half of it, because that tool can always do both.
fn edit(anthropic_tools: bool, views: bool, edits: bool) -> Option<Value> {
    if !views && !edits {
        return None;
    }
    if anthropic_tools && views && edits {
        return Some(json!({"type": "text_editor_20250728", "name": EDIT}));
    }
    if !edits {
        return Some(view());
    }
    let commands = ["view", "create", "str_replace", "insert"].split_at(usize::from(!views)).1;
    Some(json!({
        "name": EDIT,
        "description": "Reads and changes text files below the working directory. view shows a file with line numbers, or what a \
    directory holds; view_range limits it. create writes a whole file. str_replace replaces old_str, which has to stand in the file \
    exactly once, by new_str. insert puts insert_text behind line insert_line (0: at the top). Line endings and encodings stay as \
    they are.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": commands},
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
    }))
}

/// The reading half of it.
fn view() -> Value {
    json!({
        "name": EDIT,
        "description": "Reads text files below the working directory: view shows a file with line numbers, or what a directory \
    holds; view_range limits it.",
        "input_schema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view"]},
                "path": {"type": "string", "description": "The file or directory."},
                "view_range": {"type": "array", "items": {"type": "integer"}, "description": "First and last line, from 1; -1 is the end."}
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

/// Declares `read_result`.
pub(crate) fn read_result() -> Value {
    json!({
        "name": READ_RESULT,
        "description": "Reads what a Workflow result left out for length: one item of one run in full, page by page. The result says \
    which call to make. It costs nothing but the reading. Of a program, item 0 is the whole value it returned and item N what its \
    call N came to.",
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

/// Declares `run_status`.
pub(crate) fn run_status() -> Value {
    json!({
        "name": RUN_STATUS,
        "description": "Tells how far a program is that runs in the background: its phase, its agents, what it has said. For when \
    the person asks, or when something depends on it. Not for waiting: a run's result comes by itself.",
        "input_schema": {
            "type": "object",
            "properties": {
                "run": {"type": "string", "description": "The run, as the Workflow call named it (wf_…)."}
            },
            "required": ["run"],
            "additionalProperties": false
        }
    })
}

/// Declares `StructuredOutput`. Not strict: schemas are the author's, and most do not close every object.
pub(crate) fn structured_output(schema: Value) -> Value {
    json!({
        "name": STRUCTURED_OUTPUT,
        "description": "Hands in your result and ends your work: call it exactly once, when you are done, with the whole value. A \
    value that does not fit the schema comes back with what is wrong with it; then call again with the whole value.",
        "input_schema": schema
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
