//! Runs of workflow programs: from a call to a source, from a source to a run, and the run to its end. What follows from what is
//! the kernel's business (`convoke_kernel::Program`), what a program computes is the interpreter's.

mod calls;
mod checkpoint;
mod plan;
mod prepare;
mod runner;

use std::path::PathBuf;
use std::time::Duration;

use convoke_claude::Endpoint;
use convoke_journal::{Journal, KeyedInput, StreamId};
use convoke_kernel::{
    By, CallResult, Consent, FailureKind, NO_CONSENT, Program, ProgramCall, ProgramEvent, ProgramInput, ProgramSpec,
    ProgramStatus, RunId, Segment, ToolResult,
};
use convoke_sandbox::HelperPath;
use convoke_script::{Limits, Meta, Told};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use plan::{Assumed, Plan, PlanEnd, PlanFor, PlanGroup, PlanPass, plan};
pub(crate) use runner::Driven;
use runner::Runner;

use crate::asker::Question;
use crate::children::Parent;
use crate::error::Error;
use crate::inputs::Waiting;
use crate::interpreter::{Wall, check};
use crate::library::{Checker, Library, source_digest};
use crate::room::digest_chars;
use crate::runtime::Config;
use crate::stop::StopLevel;
use crate::workspace::fingerprint_beside;

/// Characters of what the lead is told at a run's end.
const NOTICE_CHARS: usize = 30_000;

/// Nano-dollars in a dollar.
const NANO: u64 = 1_000_000_000;

/// What programs are run with.
#[derive(Clone)]
pub struct Programs {
    /// Where workflows and kinds of agents are found by name.
    pub library: Library,
    /// What a program is held to.
    pub limits: Limits,
    /// How long it may compute between two waits.
    pub step: Duration,
    /// What the endpoint accepts, for agents with a model of their own.
    pub endpoint: Endpoint,
    /// Whether there is no other model than the session's.
    pub one_model: bool,
}

impl Programs {
    /// Programs from this library, with the limits they have unless somebody says otherwise.
    pub fn new(library: Library, endpoint: Endpoint) -> Self {
        Self { library, limits: Limits::default(), step: Duration::from_secs(30), endpoint, one_model: false }
    }

    /// Programs whose source is always given, with this helper to check them.
    pub fn without_library(helper: &HelperPath) -> Self {
        let checker = Checker::of(helper.clone());
        Self::new(Library::new(Vec::new(), Vec::new(), &[], checker), Endpoint::anthropic())
    }

    pub(crate) fn wall(&self) -> Wall {
        Wall { step: self.step, ..Wall::default() }
    }
}

/// Levels of a value that crosses to a program; what is deeper cannot be read on the other side.
const DEEPEST: usize = 100;

/// Whether a value is deeper than what can cross to a program.
fn is_too_deep(value: &Value) -> bool {
    let mut level = vec![value];
    for _ in 0..DEEPEST {
        let below = level.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect::<Vec<_>>(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        });
        level = below.collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

/// Something that is sent to a program's run from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// A person answers a question.
    Answer { call: u32, text: String },
    /// A person skips a call.
    Skip { call: u32 },
}

/// A source, and where it came from.
struct Script {
    source: String,
    meta: Meta,
    path: Option<String>,
    args: Option<Value>,
    from: Option<String>,
    /// The fingerprint of the run it goes on from.
    base: Option<String>,
    /// The run under whose name its agents are known.
    origin: Option<String>,
}

/// Starts a program's run, or goes on with it: in the background for a lead, to its end for a person. `None` when it was stopped
/// before its end.
pub(crate) async fn workflow(
    parent: &Parent,
    call: &str,
    wanted: ProgramCall,
    consent: Consent,
) -> Result<Option<ToolResult>, Error> {
    let id = RunId::derived(&["workflow", parent.id.as_str(), call]);
    let background = consent != Consent::Given(By::Command);
    let mut runner = Runner::own(parent, id.clone()).await?;
    let begun = begin(parent, &mut runner, &id, call, wanted, (consent, background)).await;
    let result = match begun {
        Ok(Begun::Stands) if background => Ok(Some(launched(parent, runner.program()))),
        Ok(Begun::Stands) => run_to_its_end(parent, &mut runner).await,
        Ok(Begun::Refused(result)) => Ok(Some(result)),
        Ok(Begun::Stopped) => Ok(None),
        Err(error) => Err(error),
    };
    if !matches!(result, Err(Error::Crashed)) {
        runner.finish().await;
    }
    result
}

/// Drives a run that goes on in the background.
pub(crate) async fn drive(parent: &Parent, run: &str) -> Result<Driven, Error> {
    let Ok(id) = run.parse::<RunId>() else { return Ok(Driven::Closed) };
    let mut runner = Runner::own(parent, id).await?;
    let driven = runner.drive().await;
    if !matches!(driven, Err(Error::Crashed)) {
        runner.finish().await;
    }
    driven
}

async fn run_to_its_end(parent: &Parent, runner: &mut Runner) -> Result<Option<ToolResult>, Error> {
    // A person who asks again for a run that did not come to a good end wants what failed done again, and only that.
    let again = match runner.program().status() {
        Some(ProgramStatus::Partial | ProgramStatus::Failed) => Some("what failed is tried again"),
        Some(ProgramStatus::Stopped) => Some("taken up after it was stopped"),
        Some(ProgramStatus::Complete) | None => None,
    };
    if let Some(why) = again {
        runner.start(ProgramInput::Again { why: why.to_owned() }).await?;
    }
    let driven = runner.drive().await?;
    let program = runner.program();
    let text = program.digest(digest_chars(&parent.spec, &parent.session.purse.ledger()));
    let failed = |kind| ToolResult { is_error: true, failure: Some(kind), ..ToolResult::done(text.clone()) };
    Ok(match (driven, program.status(), program.declined()) {
        (Driven::Closed, Some(ProgramStatus::Complete), _) => Some(ToolResult::done(text)),
        (Driven::Closed, Some(ProgramStatus::Partial), _) => Some(failed(FailureKind::InvalidOutput)),
        (Driven::Closed, Some(ProgramStatus::Stopped), _) => Some(failed(FailureKind::Cancelled)),
        (Driven::Closed, ..) => Some(failed(FailureKind::InvalidOutput)),
        (Driven::Waits, _, Some(_)) if parent.spec.approvals.park => None,
        (Driven::Waits, _, Some(declined)) => {
            let why = format!("{}. Nothing of that step was started.\n{text}", declined.reason);
            Some(ToolResult { is_error: true, failure: Some(FailureKind::Budget), ..ToolResult::done(why) })
        }
        (Driven::Waits | Driven::Stopped, ..) => None,
    })
}

fn launched(parent: &Parent, program: &Program) -> ToolResult {
    let (run, name) = program.spec().map(|spec| (spec.run.clone(), spec.name.clone())).unwrap_or_default();
    let file = prepare::script_file(&parent.config.outputs, &name, &run);
    let text = format!(
        "Workflow {name} runs in the background as {run}. You are told by itself when it ends: end your turn unless there is \
other work. run_status shows how it stands. To run it again with what is done served from before, call Workflow with \
resumeFromRunId {run}, and a changed script or args if need be. Its source is kept in {}; a file with a changed one is \
given by scriptPath.",
        file.display()
    );
    ToolResult { launched: Some(run), ..ToolResult::done(text) }
}

enum Begun {
    Stands,
    Refused(ToolResult),
    Stopped,
}

/// Starts the run, unless it stands already.
async fn begin(
    parent: &Parent,
    runner: &mut Runner,
    id: &RunId,
    call: &str,
    wanted: ProgramCall,
    (consent, background): (Consent, bool),
) -> Result<Begun, Error> {
    if runner.program().spec().is_some() {
        return Ok(Begun::Stands);
    }
    let refused = |why: String| {
        let result = ToolResult::refused(format!("Workflow error: {why}"));
        Ok(Begun::Refused(ToolResult { failure: Some(FailureKind::InvalidOutput), ..result }))
    };
    let Some(fan_out) = &parent.spec.fan_out else { return refused("this agent may start no other.".to_owned()) };
    let script = match resolve(parent, wanted).await? {
        Ok(script) => script,
        Err(why) => return refused(why),
    };
    let by = match consent {
        Consent::Given(By::Mode) => "orchestration mode",
        Consent::Given(By::Word) => "the person's request",
        Consent::Given(By::Flag) => "--workflow",
        Consent::Given(By::Command) => "the person's command",
        Consent::Missing => match asked(parent, &script).await {
            Some(true) => "the person's answer",
            Some(false) => return Ok(Begun::Refused(ToolResult::refused(NO_CONSENT))),
            None => return Ok(Begun::Stopped),
        },
    };
    // A run that goes on from another one looks at the same directory as that one did: what its agents changed there is theirs.
    let base = match (script.base, fingerprint_beside(&PathBuf::from(&parent.spec.dir), &script.source).await) {
        (Some(base), _) => base,
        (None, Ok(base)) => base,
        (None, Err(error)) => return refused(error.to_string()),
    };
    let ledger = parent.session.purse.ledger();
    let spec = ProgramSpec {
        run: id.to_string(),
        session: parent.spec.session.clone(),
        lead: parent.id.clone(),
        call: call.to_owned(),
        dir: parent.spec.dir.clone(),
        base,
        voters: fan_out.voters,
        name: script.meta.name,
        description: script.meta.description,
        phases: script.meta.phases.into_iter().map(|phase| phase.title).collect(),
        digest: source_digest(&script.source),
        source: script.source,
        path: script.path,
        args: script.args.as_ref().map(Segment::encode),
        budget_total: ledger.caps().tokens,
        spent_before: ledger.spent().tokens,
        background,
        from: script.from,
        origin: script.origin,
        consent: by.to_owned(),
    };
    keep_script(parent, &spec).await;
    runner.start(ProgramInput::Start(Box::new(spec))).await?;
    Ok(Begun::Stands)
}

/// Puts the source where people and the lead can read it. It stands in the journal too, so failing at this loses nothing.
async fn keep_script(parent: &Parent, spec: &ProgramSpec) {
    let file = prepare::script_file(&parent.config.outputs, &spec.name, &spec.run);
    if let Some(dir) = file.parent() {
        let _ = tokio::fs::create_dir_all(dir).await;
    }
    let _ = tokio::fs::write(file, &spec.source).await;
}

/// From what was called for to a source that can be run; the error says what is wrong with the call.
async fn resolve(parent: &Parent, wanted: ProgramCall) -> Result<Result<Script, String>, Error> {
    let ProgramCall { script, name, script_path, args, resume_from } = wanted;
    let earlier = match &resume_from {
        None => None,
        Some(run) => match run.parse::<RunId>() {
            Err(_) => return Ok(Err(format!("there is no run {run} to resume."))),
            Ok(id) => match load(&parent.config, &id).await?.0 {
                program if program.spec().is_none() => {
                    return Ok(Err(format!("there is no program run {run} to resume.")));
                }
                program if program.status().is_none() => {
                    return Ok(Err(format!("run {run} has not ended; stop it first, or wait for its end.")));
                }
                program => Some(program),
            },
        },
    };
    let library = &parent.config.programs.library;
    let (source, path) = match (script, script_path, name) {
        (_, Some(path), _) => {
            let scripts = parent.config.outputs.join("scripts");
            match library.read_path(path.as_ref(), &PathBuf::from(&parent.spec.dir), Some(&scripts), |_| Ok(())).await {
                Ok(source) => (source.text, Some(source.path.to_string_lossy().into_owned())),
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        (Some(script), None, _) => (script, None),
        (None, None, Some(name)) => match library.find(&name).await {
            Ok(Some(found)) => (found.source, found.path.map(|path| path.to_string_lossy().into_owned())),
            Ok(None) => {
                return Ok(Err(format!("there is no workflow '{name}'; `convoke workflow list` shows what there is.")));
            }
            Err(error) => return Ok(Err(error.to_string())),
        },
        (None, None, None) => match earlier.as_ref().and_then(Program::spec) {
            Some(spec) => (spec.source.clone(), spec.path.clone()),
            None => return Ok(Err("give subtasks, or one of script, name and scriptPath.".to_owned())),
        },
    };
    let meta = match check(&parent.config.helper, &source).await {
        Ok(Told::Sound { meta, .. }) => meta,
        Ok(Told::Unsound { problems }) => {
            let told = |problem: &convoke_script::Problem| match &problem.place {
                Some(place) => {
                    format!("line {}, column {}: {}\n    {}", place.line, place.column, problem.message, place.text)
                }
                None => problem.message.clone(),
            };
            let all: Vec<String> = problems.iter().take(20).map(told).collect();
            return Ok(Err(format!("the script cannot be run, and nothing was started:\n{}", all.join("\n"))));
        }
        Ok(_) => return Ok(Err("the script could not be checked.".to_owned())),
        Err(error) => return Ok(Err(error.to_string())),
    };
    // Arguments are remembered: whoever resumes a run need not say them again.
    let before = || earlier.as_ref().and_then(Program::spec).and_then(|spec| spec.args.as_ref());
    let args = args.or_else(|| before().and_then(|args| serde_json::from_str(args.as_str()).ok()));
    if args.as_ref().is_some_and(is_too_deep) {
        return Ok(Err(format!("args are nested more than {DEEPEST} levels deep.")));
    }
    let base = earlier.as_ref().and_then(Program::spec).map(|spec| spec.base.clone());
    // Agents of another session are paid from another envelope: they cannot go on in this one.
    let same_session = |program: &&Program| program.spec().is_some_and(|spec| spec.session == parent.spec.session);
    let origin = earlier.as_ref().filter(same_session).map(|program| program.origin().to_owned());
    Ok(Ok(Script { source, meta, path, args, from: resume_from, base, origin }))
}

/// Whether a person agrees; `None` when somebody asked to stop before there was an answer.
async fn asked(parent: &Parent, script: &Script) -> Option<bool> {
    let Some(asker) = &parent.config.asker else { return Some(false) };
    let what =
        format!("The lead wants to run the workflow program {:?}. Nobody has agreed to one yet.", script.meta.name);
    let mut details = vec![script.meta.description.clone()];
    details.extend(script.meta.phases.iter().map(|phase| format!("phase: {}", phase.title)));
    details.push(format!(
        "script {} ({} lines)",
        source_digest(&script.source).get(..12).unwrap_or_default(),
        script.source.lines().count()
    ));
    details.extend(planned(parent, script).await);
    let mut stop = parent.stop.clone();
    tokio::select! {
        agrees = asker.agrees(Question { what, details, call: None }) => Some(agrees),
        _ = stop.above(StopLevel::Run) => None,
    }
}

/// What the program would start, in one line; `None` when no plan can be drawn up.
async fn planned(parent: &Parent, script: &Script) -> Option<String> {
    let (config, fan_out) = (&parent.config, parent.spec.fan_out.as_ref()?);
    let asked = PlanFor {
        helper: &config.helper,
        programs: &config.programs,
        models: &config.models,
        model: &fan_out.child.model,
        dir: parent.spec.dir.as_ref(),
        source: &script.source,
        args: script.args.as_ref(),
        budget_total: parent.session.purse.ledger().caps().tokens,
        voters: fan_out.voters,
        verifier_turns: fan_out.child.limits.max_turns,
    };
    let Plan { low, high } = plan(&asked).await.ok()?;
    Some(format!("by its plan {} to {} agents; what they find may take it further", low.agents, high.agents))
}

/// A program's run as the journal has it, and the number of its last event. A stream that is no program's is one without a spec.
pub(crate) async fn load(config: &Config, id: &RunId) -> Result<(Program, u64), Error> {
    load_from(&config.journal, id).await
}

/// The same, of any journal.
pub(crate) async fn load_from(journal: &Journal, id: &RunId) -> Result<(Program, u64), Error> {
    let stream = StreamId::new(id.as_str())?;
    let (mut program, mut seq) = (Program::new(), 0);
    for record in journal.load(&stream, 0).await? {
        let bad = |cause: String| Error::BadRun { run: id.clone(), seq: record.seq, cause };
        let event = match ProgramEvent::decode(&record.event) {
            Ok(event) => event,
            Err(_) if record.seq == 1 => return Ok((program, 0)),
            Err(error) => return Err(bad(error.to_string())),
        };
        program.apply(&event, record.at).map_err(|error| bad(error.to_string()))?;
        seq = record.seq;
    }
    Ok((program, seq))
}

/// What the lead is told at the end of a run, if it went on meanwhile.
pub(crate) fn closing_notice(program: &Program) -> Result<Option<KeyedInput>, Error> {
    let Some(spec) = program.spec().filter(|spec| spec.background) else { return Ok(None) };
    let text = program.digest(NOTICE_CHARS) + &usage(program) + &how_to_resume(program);
    let body = serde_json::to_string(&Waiting::told(&spec.run, text))?;
    let key = format!("told:{}:{}", spec.run, program.pass());
    Ok(Some(KeyedInput { stream: StreamId::from(&spec.lead), key, body }))
}

/// What this pass took, with what was read and what was written apart, because they do not cost the same.
fn usage(program: &Program) -> String {
    let Some(summary) = program.summary() else { return String::new() };
    let (usage, agents) = (&summary.usage, summary.counts.agents);
    let commands: u32 = program.calls().filter_map(|call| call.result.as_ref()).filter(paid).map(commands_of).sum();
    let cost = match summary.cost_nano {
        Some(nano) => format!("${}.{:04}", nano / NANO, nano % NANO / (NANO / 10_000)),
        None => "cost unknown".to_owned(),
    };
    let took = summary.closed_at.unwrap_or(summary.started_at).saturating_sub(summary.started_at) / 1_000;
    format!(
        "usage: {agents} agents, {} input tokens ({} of them from the cache), {} output tokens, {commands} commands, {cost}, \
{took} s since it was started\n",
        usage.prompt_tokens(),
        usage.cache_read_tokens,
        usage.output_tokens
    )
}

fn how_to_resume(program: &Program) -> String {
    match (program.status(), program.spec()) {
        (Some(ProgramStatus::Complete) | None, _) | (_, None) => String::new(),
        (Some(_), Some(spec)) => format!(
            "To try again what failed and nothing else, call Workflow with resumeFromRunId {}, and a changed script if it was at \
fault.\n",
            spec.run
        ),
    }
}

fn paid(result: &&CallResult) -> bool {
    result.reused.is_none() && result.kept.is_none()
}

fn commands_of(result: &CallResult) -> u32 {
    result.spent.commands
}

/// A run whose results are to be served to another one.
async fn served_from(config: &Config, id: &RunId) -> Result<Option<Program>, Error> {
    let (mut program, seq) = load(config, id).await?;
    let again = program.decide(ProgramInput::Again { why: "served to another run".to_owned() });
    let Ok(events) = again else { return Ok(None) };
    for event in &events {
        let bad = |cause: convoke_kernel::IllegalProgramEvent| Error::BadRun {
            run: id.clone(),
            seq,
            cause: cause.to_string(),
        };
        program.apply(event, 0).map_err(bad)?;
    }
    Ok(Some(program))
}

/// How one of this lead's runs stands.
pub(crate) async fn status(parent: &Parent, run: &str) -> Result<ToolResult, Error> {
    let unknown = || ToolResult::refused(format!("run_status error: this conversation has no program run {run}."));
    let Ok(id) = run.parse::<RunId>() else { return Ok(unknown()) };
    let (program, _) = load(&parent.config, &id).await?;
    if program.spec().is_none_or(|spec| spec.lead != parent.id) {
        return Ok(unknown());
    }
    Ok(ToolResult::done(program.progress()))
}

/// Reads the whole value or one call's answer of one of this lead's program runs; `None` if it is no program's run.
pub(crate) async fn read(parent: &Parent, run: &str, item: u32, from: usize) -> Result<Option<ToolResult>, Error> {
    let Ok(id) = run.parse::<RunId>() else { return Ok(None) };
    let (program, _) = load(&parent.config, &id).await?;
    if program.spec().is_none_or(|spec| spec.lead != parent.id) {
        return Ok(None);
    }
    Ok(Some(match program.page(item, from) {
        Ok(text) => ToolResult::done(text),
        Err(why) => ToolResult::refused(format!("read_result error: {why}")),
    }))
}
