//! `Workflow`: flat subtasks or a program. The interpreter checks whether a program is sound; nothing here
//! reads its source.

use serde_json::{Value, json};

use super::shown::{CallInput, Words, counted};
use super::table::{Audience, Reading, Tool};
use super::{ToolRequest, Wanted};

pub(super) static TOOL: Tool = Tool {
    name: WORKFLOW,
    audience: Audience::Lead,
    parts: &[],
    declare: |offer| offer.max_subtasks.map(declaration),
    read: Reading::Input(|input, caller| {
        let what = read(input)?;
        Ok(Wanted::Run(ToolRequest::Workflow { what, consent: caller.consent }))
    }),
    words,
    starts: Some(about),
};

/// Its name, which views show where they know of a call nothing but that it was a workflow.
pub const WORKFLOW: &str = "Workflow";

/// What a workflow is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowCall {
    /// Flat subtasks, in whatever shape the model gave them.
    Subtasks(Option<Value>),
    /// A program.
    Program(ProgramCall),
}

/// A program that is to be run. At most one of `script`, `name` and `script_path` is there; none of them
/// means the source of the run that is resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramCall {
    /// Its source.
    pub script: Option<String>,
    /// Or the name of a saved one.
    pub name: Option<String>,
    /// Or the file that holds it.
    pub script_path: Option<String>,
    /// The global `args`; absent is `undefined`, and an explicit null stays null.
    pub args: Option<Value>,
    /// The run whose finished calls are taken over.
    pub resume_from: Option<String>,
}

/// Characters of a source.
const SCRIPT_CHARS: usize = 524_288;

/// The shortest name of a run behind its prefix.
const RUN_CHARS: usize = 6;

fn read(input: &Value) -> Result<WorkflowCall, String> {
    let program = ProgramCall {
        script: text(input, "script")?,
        name: text(input, "name")?,
        script_path: text(input, "scriptPath")?,
        args: input.get("args").cloned(),
        resume_from: text(input, "resumeFromRunId")?,
    };
    let subtasks = input.get("subtasks").filter(|subtasks| !subtasks.is_null()).cloned();
    let ProgramCall { script, name, script_path, resume_from, .. } = &program;
    if [script, name, script_path, resume_from].iter().all(|member| member.is_none()) {
        return Ok(WorkflowCall::Subtasks(subtasks));
    }
    // A list without anything in it is how models leave one out.
    if subtasks.is_some_and(|subtasks| !subtasks.as_array().is_some_and(Vec::is_empty)) {
        return Err(
            "Workflow error: give either subtasks or a program (script, name or scriptPath), not both."
                .to_owned(),
        );
    }
    if let Some(run) = resume_from.as_ref().filter(|run| !is_run(run)) {
        let shown: String = run.chars().take(60).collect();
        return Err(format!(
            "Workflow error: resumeFromRunId is {shown:?}; give a run as its result names it (wf_…)."
        ));
    }
    let length = script.as_ref().map_or(0, |script| script.chars().count());
    if length > SCRIPT_CHARS {
        return Err(format!(
            "Workflow error: the script has {length} characters, at most {SCRIPT_CHARS}. Pass data through \
                args, or in files."
        ));
    }
    // A file wins over both others, because it may have been edited since; a source wins over a name.
    let script = program.script.filter(|_| program.script_path.is_none());
    let name = program.name.filter(|_| program.script_path.is_none() && script.is_none());
    Ok(WorkflowCall::Program(ProgramCall { script, name, ..program }))
}

/// A member that holds text; what is blank or null counts as left out, because that is what models mean by
/// it.
fn text(input: &Value, member: &str) -> Result<Option<String>, String> {
    match input.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("Workflow error: {member} has to be a string.")),
    }
}

fn is_run(text: &str) -> bool {
    let rest = text.strip_prefix("wf_").unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    rest.len() >= RUN_CHARS && rest.bytes().all(plain)
}

fn declaration(max_subtasks: usize) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "name": WORKFLOW,
        "description": format!("{}\n\n{PROGRAMS}", subtasks(max_subtasks)),
        "input_schema": {
            "type": "object",
            "properties": {
                "subtasks": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "One self-contained instruction per worker. Not together with a program."
                },
                "script": text("The source of a program."),
                "name": text("Or the name of a saved program."),
                "scriptPath": text("Or the file that holds one; it goes before script and name."),
                "args": {"description": "The program's args: a JSON value as it is, not as text."},
                "resumeFromRunId": text("An earlier run (wf_…) whose finished calls are taken over. Alone, \
                    it runs that run's own program again."),
                "title": text("Ignored; meta says it."),
                "description": text("Ignored; meta says it.")
            },
            "additionalProperties": false
        }
    })
}

/// What a call is about, for an agent that lost sight of it.
fn about(input: &Value) -> Option<String> {
    Some(match (input["subtasks"].as_array(), input["name"].as_str()) {
        (Some(subtasks), _) => counted(subtasks.len(), "subtask"),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "a program".to_owned(),
    })
}

fn words(call: &CallInput<'_>) -> Words {
    let subtasks = call.listed("subtasks");
    let script = call.text("script");
    let named = call.text("name").or(call.text("scriptPath"));
    let line = match (subtasks, named) {
        (Some(many), _) if many > 0 => format!("{WORKFLOW}: {}", counted(many, "subtask")),
        (_, Some(name)) => format!("{WORKFLOW}: {name}"),
        _ if script.is_some() => format!("{WORKFLOW}: a program"),
        _ => WORKFLOW.to_owned(),
    };
    // Subtasks come in other shapes too, and the workflow itself says how many there are.
    let title = match (subtasks, named) {
        (Some(many), _) => format!("{WORKFLOW} of {}", counted(many, "subtask")),
        (None, Some(name)) => format!("{WORKFLOW} {name}"),
        (None, None) => WORKFLOW.to_owned(),
    };
    let record = |script: &str| {
        let mut rest = call.input.clone();
        rest.as_object_mut().map(|rest| rest.remove("script"));
        // A program is read by its lines.
        format!("{WORKFLOW} {rest}, script:\n> {}", script.trim_end().replace('\n', "\n> "))
    };
    Words {
        line: Some(line),
        title: Some(title.clone()),
        progress: Some(title),
        body: script.map(|script| format!("{WORKFLOW}, script:\n{script}")),
        record: script.map(record),
        doing: Some("waiting"),
        ..Words::default()
    }
}

fn subtasks(max_subtasks: usize) -> String {
    format!(
        "Runs many agents at once on one request: a worker with a clean context for every subtask, and for \
         every result with findings a verifier that tries to refute them. The result comes back in the \
         order of the subtasks, each with its findings and a verdict per finding: confirmed, refuted, \
         uncertain (tied votes, or a citation that does not hold) or unverified (nobody could look). Or it \
         runs a program that says itself which agents to start and what to make of them.\n\n\
         When it may be used. Only when a system message says that orchestration mode is on, or when the \
         person asks for a workflow in the request at hand. Otherwise the call is refused and nothing is \
         spent.\n\n\
         Standing consent. While the mode is on, the person has agreed beforehand: run a workflow for every \
         substantive request and do not ask first. When a message says that the mode is off, that consent \
         has ended.\n\n\
         What makes a good one. Scout first with a few commands, so that the subtasks fit what is there. \
         Verification comes by itself; do not add verifying subtasks. When the results are in, ask what \
         nobody looked at, and send a second call for the gaps. Work that builds on other work goes into a \
         later call, or into a program: survey, then dig, then check.\n\n\
         Granularity. One distinct concern per subtask, so that no two workers look for the same thing: \
         about ten for a module of a few hundred lines, many more for a broad audit, at most {max_subtasks} \
         per call. A worker sees only its own subtask and not this conversation: name the files, the \
         question, what counts as a finding and what does not.\n\n\
         Every agent is paid for and counts against the session's caps; a call that does not fit is refused \
         whole, with the numbers."
    )
}

/// The dialect, as far as the author of a program has to know it.
const PROGRAMS: &str = "\
Programs. Give a program instead of subtasks when the work has a shape that a flat list has not: a branch on \
what was found, a loop \
until nothing new turns up, a reduce step over many results, results of a fixed structure, several stages \
per item. For \
independent questions whose findings are to be verified, subtasks are simpler.

A program is plain JavaScript without types. It begins with a literal (nothing in it is computed), then \
comes the body, which may \
await and return at its top level. What it returns is the result of the run and has to be JSON.
  export const meta = { name: 'triage', description: 'Finds and checks defects', phases: [{ title: 'Find' }, \
  { title: 'Check' }] }
  const schema = { type: 'object', properties: { defects: { type: 'array', items: { type: 'string' } } }, \
  required: ['defects'] }
  const found = await parallel(args.files.map(file => () => agent(`List the defects of ${file}`, \
  { schema, phase: 'Find' })))
  return found.filter(Boolean).flatMap(one => one.defects)
It has no imports, no files, no network, no clock and no randomness: Date.now(), new Date() without a value \
and Math.random() throw. \
Pass times through args, and vary prompts by index. Agents do all the looking.
  agent(prompt, opts?): one agent with a clean context that sees nothing but the prompt, so that has to say \
  everything. Gives its \
last message as a string, or with opts.schema a value that fits. Gives null if the agent died or was \
skipped: filter for it. Throws \
if the schema was never met, if a cap is reached, or if the call itself is wrong.
    opts: label, phase, schema (a JSON schema with an object at its root), model, effort (low to max), \
    isolation: 'worktree' (a \
git worktree of its own, for changes that are made side by side), agentType, tools (the only ones it may use).
  parallel(functions): runs them all at once, waits for all, gives their results in order, null for one that \
  threw. It takes \
functions and not promises: parallel([() => agent(…), () => agent(…)]).
  pipeline(items, stage1, stage2, …): sends every item through the stages on its own, none waits for \
  another. A stage is called \
with (previous, item, index). An item whose stage throws becomes null and skips the rest; one whose stage \
gives null goes on with null.
  phase(title), log(text): what the person sees of it. Inside parallel and pipeline say opts.phase instead.
  args: the value given with the call, undefined if there is none. Give it as JSON and not as text that \
  holds JSON.
  budget: total (null if there is none), spent(), remaining(), in tokens of the whole session; at the total \
  agent() throws.
  workflow(name or {scriptPath}, args?): another saved program, run inline; only one level deep.
  setTimeout, clearTimeout, URL and console.log are there. A run may have 1,000 agents, a parallel or \
  pipeline 4,096 items.
Only here:
  verify(finding, {voters?, label?}): has somebody try to refute a finding \
  {claim, evidence, severity?, citations?}, and gives \
{verdict, evidence or reason, claim, votes}; verdict is confirmed, refuted, uncertain or unverified (nobody \
could look).
  sh(command): a command that only reads, in a throwaway copy of the directory; gives {ok, code, output}.
  checkpoint(question): asks the person, waits, and gives the answer as text.

A program runs in the background. The call comes back at once, with the run (wf_…) or with everything that \
is wrong with the \
source. When the run ends, its result, its failures and its cost come to you by themselves as a message: do \
not poll and do not wait \
with commands, but do other work or end your turn by saying what is under way. run_status tells how far it \
is, if the person \
asks. read_result gives the result in full. To change a program, send the changed source with \
resumeFromRunId: calls that are \
still the same and were finished are not made again.";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: Value, expected: Result<WorkflowCall, &str>) {
        match (read(&input), expected) {
            (Ok(got), Ok(want)) => assert_eq!(got, want),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
            (got, want) => panic!("{input}: got {got:?}, wanted {want:?}"),
        }
    }

    fn program(make: impl FnOnce(&mut ProgramCall)) -> Result<WorkflowCall, &'static str> {
        let mut call = ProgramCall::default();
        make(&mut call);
        Ok(WorkflowCall::Program(call))
    }

    #[test]
    fn subtasks_stay_as_they_were_in_whatever_shape() {
        check(json!({"subtasks": ["a"]}), Ok(WorkflowCall::Subtasks(Some(json!(["a"])))));
        check(json!({"subtasks": "a\nb"}), Ok(WorkflowCall::Subtasks(Some(json!("a\nb")))));
        check(
            json!({"subtasks": ["a"], "script": "", "name": null}),
            Ok(WorkflowCall::Subtasks(Some(json!(["a"])))),
        );
        check(json!({}), Ok(WorkflowCall::Subtasks(None)));
        check(json!({"subtasks": null}), Ok(WorkflowCall::Subtasks(None)));
    }

    #[test]
    fn a_program_comes_as_a_source_a_name_or_a_file_and_the_file_wins() {
        check(json!({"script": "s"}), program(|call| call.script = Some("s".into())));
        check(json!({"name": "n"}), program(|call| call.name = Some("n".into())));
        check(json!({"name": "n", "script": "s"}), program(|call| call.script = Some("s".into())));
        let path = || program(|call| call.script_path = Some("p.js".into()));
        check(json!({"scriptPath": "p.js", "script": "s", "name": "n"}), path());
        check(json!({"scriptPath": "p.js", "title": "t", "description": "d", "subtasks": []}), path());
        let resumed = program(|call| call.resume_from = Some("wf_abc234".into()));
        check(json!({"resumeFromRunId": "wf_abc234"}), resumed);
    }

    #[test]
    fn args_that_are_left_out_are_not_args_that_are_null() {
        let with = |args| program(move |call| (call.name, call.args) = (Some("n".into()), args));
        check(json!({"name": "n"}), with(None));
        check(json!({"name": "n", "args": null}), with(Some(Value::Null)));
        check(json!({"name": "n", "args": "[1]"}), with(Some(json!("[1]"))));
        check(json!({"name": "n", "args": {"a": [1]}}), with(Some(json!({"a": [1]}))));
    }

    #[test]
    fn a_call_that_cannot_be_meant_is_refused_with_what_to_do() {
        check(json!({"subtasks": ["a"], "script": "s"}), Err("not both"));
        check(json!({"subtasks": "a", "name": "n"}), Err("not both"));
        check(json!({"script": 7}), Err("script has to be a string"));
        check(json!({"scriptPath": ["a"]}), Err("scriptPath has to be a string"));
        check(json!({"script": "é".repeat(SCRIPT_CHARS + 1)}), Err("has 524289 characters, at most 524288"));
        assert!(read(&json!({"script": "é".repeat(SCRIPT_CHARS)})).is_ok());
        for run in ["wf_abc", "wf_ABCDEF", "abcdefgh", "wf_abc/../x", "wf_abcdef "] {
            check(json!({"name": "n", "resumeFromRunId": run}), Err("give a run as its result names it"));
        }
        for run in ["wf_abcdef", "wf_dd551b62-a1d"] {
            assert!(read(&json!({"resumeFromRunId": run})).is_ok(), "{run}");
        }
    }

    #[test]
    fn the_declaration_lets_either_form_stand_alone() {
        let declared = declaration(200);
        assert_eq!(declared["input_schema"].get("required"), None);
        for member in
            ["subtasks", "script", "name", "scriptPath", "args", "resumeFromRunId", "title", "description"]
        {
            assert!(declared["input_schema"]["properties"].get(member).is_some(), "{member}");
        }
        let text = declared["description"].as_str().unwrap();
        for word in [
            "agent(",
            "parallel(",
            "pipeline(",
            "phase(",
            "log(",
            "args",
            "budget",
            "workflow(",
            "verify(",
            "sh(",
            "checkpoint(",
        ] {
            assert!(text.contains(word), "{word}");
        }
    }
}
