//! From a call of `Workflow` to a program's run: which source is meant, whether it can be run, whether there
//! is consent to it, and for a person's own call the run to its end.

use std::path::{Path, PathBuf};

use convoke_journal::StreamId;
use convoke_kernel::{
    CALLEE_TURNS, Consent, ConsentBasis, FailureKind, FileCall, Program, ProgramCall, ProgramInput,
    ProgramSpec, ProgramStatus, RunId, Segment, ToolRequest, ToolResult,
};
use convoke_script::{GuestMessage, Meta};
use serde_json::Value;

use super::runner::Runner;
use super::{DEEPEST, Driven, Plan, PlanFor, is_too_deep, load, plan, prepare};
use crate::asked_consent::{ConsentAnswer, agreed};
use crate::asker::Question;
use crate::children::Parent;
use crate::error::Error;
use crate::fan_out::Begun;
use crate::inputs::Waiting;
use crate::interpreter::check;
use crate::library::source_digest;
use crate::means::digest_chars;
use crate::workspace::fingerprint_beside;

/// Starts a program's run, or goes on with it: in the background for a lead, to its end for a person. `None`
/// when it was stopped before its end.
pub(crate) async fn workflow(
    parent: &Parent,
    call: &str,
    wanted: ProgramCall,
    consent: Consent,
) -> Result<Option<ToolResult>, Error> {
    let id = RunId::derived(&["workflow", parent.id.as_str(), call]);
    let background = consent != Consent::Given(ConsentBasis::Command);
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

async fn run_to_its_end(parent: &Parent, runner: &mut Runner) -> Result<Option<ToolResult>, Error> {
    // A person who asks again for a run that did not come to a good end wants what failed done again, and
    // only that.
    let again = match runner.program().status() {
        Some(ProgramStatus::Partial | ProgramStatus::Failed) => Some("what failed is tried again"),
        Some(ProgramStatus::Stopped) => Some("taken up after it was stopped"),
        Some(ProgramStatus::Complete) | None => None,
    };
    let again = again.filter(|_| parent.stop.halted().is_none());
    if again.is_some() && is_replaced(parent, runner.program()).await? {
        let text = runner.program().digest(digest_chars(&parent.spec, &parent.session.ledger.ledger()));
        return Ok(Some(ToolResult {
            is_error: true,
            failure: Some(FailureKind::Cancelled),
            ..ToolResult::done(text)
        }));
    }
    if let Some(why) = again {
        let budget_total = parent.session.ledger.ledger().caps().tokens;
        runner.start(ProgramInput::Again { why: why.to_owned(), budget_total }).await?;
    }
    let driven = runner.drive().await?;
    let program = runner.program();
    let text = program.digest(digest_chars(&parent.spec, &parent.session.ledger.ledger()));
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

/// Whether the person has another script run in the place of this one: that call waits for the end of this.
async fn is_replaced(parent: &Parent, program: &Program) -> Result<bool, Error> {
    let names = |body: &str| {
        let call = serde_json::from_str::<Waiting>(body).ok()?.call?;
        let input: Value = serde_json::from_str(call.input.as_str()).ok()?;
        input.get("resumeFromRunId")?.as_str().map(str::to_owned)
    };
    let run = program.spec().map(|spec| spec.run.clone());
    let waiting = parent.config.journal.inputs(&StreamId::from(&parent.id)).await?;
    Ok(waiting.iter().any(|input| names(&input.body).is_some_and(|from| Some(from) == run)))
}

fn launched(parent: &Parent, program: &Program) -> ToolResult {
    let (run, name) = program.spec().map(|spec| (spec.run.clone(), spec.name.clone())).unwrap_or_default();
    let file = prepare::script_file(&parent.config.outputs, &name, &run);
    let text = format!(
        "Workflow {name} runs in the background as {run}. You are told by itself when it ends: end your \
         turn unless there is other work. run_status shows how it stands. To run it again with what is done \
         served from before, call Workflow with resumeFromRunId {run}, and a changed script or args if need \
         be. Its source is kept in {}; a file with a changed one is given by scriptPath.",
        file.display()
    );
    ToolResult { launched: Some(run), ..ToolResult::done(text) }
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
    if parent.stop.halted().is_some() {
        return Ok(Begun::Stopped);
    }
    let refused = |why: String| {
        let result = ToolResult::refused(format!("Workflow error: {why}"));
        Ok(Begun::Refused(ToolResult { failure: Some(FailureKind::InvalidOutput), ..result }))
    };
    let Some(fan_out) = &parent.spec.fan_out else {
        return refused("this agent may start no other.".to_owned());
    };
    let script = match resolve(parent, wanted).await? {
        Ok(script) => script,
        Err(why) => return refused(why),
    };
    let by = match agreed(parent, consent, question(parent, &script)).await {
        ConsentAnswer::By(by) => by,
        ConsentAnswer::No(result) => return Ok(Begun::Refused(result)),
        ConsentAnswer::Stopped => return Ok(Begun::Stopped),
    };
    // A run that goes on from another one looks at the same directory as that one did: what its agents
    // changed there is theirs.
    let dir = PathBuf::from(&parent.spec.dir);
    let now = fingerprint_beside(&parent.config.confine.sight(&dir), &dir, &script.source).await;
    let (base, as_keyed) = match (script.base, now) {
        (Some(base), now) => {
            let as_keyed = now.ok().map(|now| now == base);
            (base, as_keyed)
        }
        (None, Ok(base)) => (base, Some(true)),
        (None, Err(error)) => return refused(error.to_string()),
    };
    let ledger = parent.session.ledger.ledger();
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
    runner.as_keyed = as_keyed;
    Ok(Begun::Stands)
}

/// Puts the source where people and the lead can read it. It stands in the journal too, so failing at this
/// loses nothing.
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
            match library
                .read_path(path.as_ref(), &PathBuf::from(&parent.spec.dir), Some(&scripts), may_read(parent))
                .await
            {
                Ok(source) => (source.text, Some(source.path.to_string_lossy().into_owned())),
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        (Some(script), None, _) => (script, None),
        (None, None, Some(name)) => match library.find(&name).await {
            Ok(Some(found)) => (found.source, found.path.map(|path| path.to_string_lossy().into_owned())),
            Ok(None) => {
                return Ok(Err(format!(
                    "there is no workflow '{name}'; `convoke workflow list` shows what there is."
                )));
            }
            Err(error) => return Ok(Err(error.to_string())),
        },
        (None, None, None) => match earlier.as_ref().and_then(Program::spec) {
            Some(spec) => (spec.source.clone(), spec.path.clone()),
            None => return Ok(Err("give subtasks, or one of script, name and scriptPath.".to_owned())),
        },
    };
    let meta = match check(&parent.config.helper, &source).await {
        Ok(GuestMessage::Sound { meta, .. }) => meta,
        Ok(GuestMessage::Unsound { problems }) => {
            let told = |problem: &convoke_script::Problem| match &problem.place {
                Some(place) => {
                    format!(
                        "line {}, column {}: {}\n    {}",
                        place.line, place.column, problem.message, place.text
                    )
                }
                None => problem.message.clone(),
            };
            let all: Vec<String> = problems.iter().take(20).map(told).collect();
            return Ok(Err(format!(
                "the script cannot be run, and nothing was started:\n{}",
                all.join("\n")
            )));
        }
        Ok(_) => return Ok(Err("the script could not be checked.".to_owned())),
        Err(error) => return Ok(Err(error.to_string())),
    };
    // Arguments are remembered: a resume need not give them again.
    let before = || earlier.as_ref().and_then(Program::spec).and_then(|spec| spec.args.as_ref());
    let args = args.or_else(|| before().and_then(|args| serde_json::from_str(args.as_str()).ok()));
    if args.as_ref().is_some_and(is_too_deep) {
        return Ok(Err(format!("args are nested more than {DEEPEST} levels deep.")));
    }
    let base = earlier.as_ref().and_then(Program::spec).map(|spec| spec.base.clone());
    // Agents of another session are paid from another budget: they cannot go on in this one.
    let same_session =
        |program: &&Program| program.spec().is_some_and(|spec| spec.session == parent.spec.session);
    let origin = earlier.as_ref().filter(same_session).map(|program| program.origin().to_owned());
    Ok(Ok(Script { source, meta, path, args, from: resume_from, base, origin }))
}

/// What a person is shown of a program without consent.
async fn question(parent: &Parent, script: &Script) -> Question {
    let what = format!(
        "The lead wants to run the workflow program {:?}. Nobody has agreed to one yet.",
        script.meta.name
    );
    let mut details = vec![script.meta.description.clone()];
    details.extend(script.meta.phases.iter().map(|phase| format!("phase: {}", phase.title)));
    details.push(format!(
        "script {} ({} lines)",
        source_digest(&script.source).get(..12).unwrap_or_default(),
        script.source.lines().count()
    ));
    details.extend(planned(parent, script).await);
    Question { what, details, call: None }
}

/// What the program would start, in one line; `None` when no plan can be drawn up.
async fn planned(parent: &Parent, script: &Script) -> Option<String> {
    let config = &parent.config;
    let fan_out = parent.spec.fan_out.as_ref()?;
    let asked = PlanFor {
        helper: &config.helper,
        programs: &config.programs,
        models: &config.models,
        seen: &[],
        model: &fan_out.child.model,
        dir: parent.spec.dir.as_ref(),
        source: &script.source,
        args: script.args.as_ref(),
        budget_total: parent.session.ledger.ledger().caps().tokens,
        voters: fan_out.voters,
        callee_turns: fan_out.callees.turns.unwrap_or(CALLEE_TURNS),
        verifier_turns: fan_out.child.limits.max_turns,
    };
    let Plan { low, high, open, .. } = plan(&asked).await.ok()?;
    let least = if open.is_some() { "at least " } else { "" };
    Some(format!(
        "by its plan {} to {least}{} agents; what they find may take it further",
        low.agents, high.agents
    ))
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

/// Whether the session may read a file, as for a call of its own that shows it.
pub(super) fn may_read(parent: &Parent) -> impl Fn(&Path) -> Result<(), String> {
    let dir = parent.spec.dir.clone();
    let approvals = parent.spec.approvals.clone();
    let forbidden = parent.config.forbidden.clone();
    move |path| {
        let request = ToolRequest::File(FileCall::view(path.to_string_lossy().into_owned()));
        if let Some(why) = forbidden.forbids(&request, &dir).or_else(|| approvals.forbids(&request, &dir)) {
            return Err(why);
        }
        match approvals.allows(&request, &dir) {
            true => Ok(()),
            false => Err("a rule wants a person to be asked about it".to_owned()),
        }
    }
}
