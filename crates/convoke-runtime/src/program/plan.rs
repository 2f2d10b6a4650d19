//! What a program would do: it is run in the interpreter against stub answers drawn from its schemas, on
//! every way that they open: with as little and with plenty of everything, and with every option of a choice.
//! Nothing is asked of a model, nothing is written down, nothing takes time, and the same program with the
//! same arguments always comes to the same plan. What a plan says is a bracket and never a promise.

mod bill;
mod draw;
mod stub;
mod ways;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use convoke_claude::Models;
use convoke_kernel::{CallKind, Role, check_schema};
use convoke_sandbox::HelperPath;
use convoke_script::{
    AgentWant, Call, CallOutcome, GuestMessage, HostMessage, Limits, ProgramRemark, SourcePosition, Start,
    State, Want,
};
use serde_json::{Value, json};

use bill::Bill;
pub use bill::{Assumed, SeenCost};
use draw::{Draw, Seen};
use stub::stub;
use ways::Gone;

use super::Programs;
use crate::interpreter::{Interpreter, InterpreterError};

/// Agents after which a program is taken for one that may go on.
const MOST_AGENTS: u32 = 1_000;
/// Calls of every kind after which a program is taken for one that may go on.
const MOST_CALLS: u32 = 2_000;

/// What `verify` can come to.
const VERDICTS: [&str; 4] = ["confirmed", "refuted", "uncertain", "unverified"];

/// What a plan is drawn up for.
#[derive(Clone, Copy)]
pub struct PlanFor<'a> {
    /// The executable that interprets.
    pub helper: &'a HelperPath,
    /// Where children and kinds of agents are found, and what programs are held to.
    pub programs: &'a Programs,
    /// What models cost.
    pub models: &'a Models,
    /// What agents were seen to cost; where nothing was, it is assumed.
    pub seen: &'a [SeenCost],
    /// The model of an agent that names none.
    pub model: &'a str,
    /// The directory, from which the paths of children are.
    pub dir: &'a Path,
    /// The source.
    pub source: &'a str,
    /// The arguments; absent is `undefined`.
    pub args: Option<&'a Value>,
    /// `budget.total`.
    pub budget_total: Option<u64>,
    /// Verifiers per finding, unless the program says otherwise.
    pub voters: u32,
    /// The most turns of an agent.
    pub callee_turns: u32,
    /// The most turns of a verifier.
    pub verifier_turns: u32,
}

/// What a program would do, at least and at most, as far as no agent dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The least of every figure on any way; its end is that with short answers.
    pub low: PlanPass,
    /// The most of every figure on any way; its end is that with long answers.
    pub high: PlanPass,
    /// Why there may be more than the most of all ways; absent when that is a bound.
    pub open: Option<&'static str>,
    /// The ways that were gone.
    pub ways: usize,
    /// The most turns of an agent.
    pub callee_turns: u32,
}

/// What one way through the program comes to, or one end of what all ways come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanPass {
    /// Its phases, in the order in which they were first heard of.
    pub groups: Vec<PlanGroup>,
    /// Agents in all, verifiers included.
    pub agents: u32,
    /// Calls of every kind.
    pub calls: u32,
    /// What was assumed about every agent.
    pub assumed: Assumed,
    /// Tokens, in and out, by that assumption.
    pub tokens: u64,
    /// What they cost in nano-dollars; absent when a price is not known.
    pub cost_nano: Option<u64>,
    /// How it ended.
    pub end: PlanEnd,
    /// What its author should know, such as an option that is left out; each once.
    pub remarks: Vec<String>,
}

/// A phase of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanGroup {
    /// The child workflow it belongs to.
    pub within: Option<String>,
    /// Its title; absent for what stands in no phase.
    pub phase: Option<String>,
    /// Agents, verifiers included.
    pub agents: u32,
    /// Calls by kind, in the words of [`CallKind`].
    pub kinds: BTreeMap<&'static str, u32>,
    /// Agents by model.
    pub models: BTreeMap<String, u32>,
    /// Agents with a worktree of their own.
    pub worktrees: u32,
}

/// How a plan's way through a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanEnd {
    /// It returned.
    Returned,
    /// It was still asking for more when the plan stopped: what is counted is no upper bound.
    MayGoOn,
    /// It failed.
    Failed {
        /// What happened.
        message: String,
        /// Where, if that is known.
        place: Option<SourcePosition>,
    },
}

/// Draws up a plan. What goes wrong with the program stands in it; the error is that no program can be run
/// here.
pub async fn plan(asked: &PlanFor<'_>) -> Result<Plan, InterpreterError> {
    ways::explore(asked).await
}

async fn pass(asked: &PlanFor<'_>, draw: Draw) -> Result<Gone, InterpreterError> {
    let mut interpreter = Interpreter::start(asked.helper, asked.programs.wall()).await?;
    let assumed = draw.assumed();
    let mut way = Way {
        asked,
        draw,
        bill: Bill::new(asked.models, asked.seen, assumed),
        groups: Vec::new(),
        agents: 0,
        calls: 0,
        open: VecDeque::new(),
        remarks: Vec::new(),
        seen: Seen::default(),
    };
    let end = way.walk(&mut interpreter).await;
    interpreter.stop().await;
    let Way { groups, agents, calls, bill, remarks, seen, .. } = way;
    let tokens = bill.tokens();
    let cost_nano = bill.nano();
    let pass = PlanPass { groups, agents, calls, assumed, tokens, cost_nano, end: end?, remarks };
    Ok(Gone { draw, pass, seen })
}

/// One way through a program.
struct Way<'a> {
    asked: &'a PlanFor<'a>,
    draw: Draw,
    bill: Bill<'a>,
    groups: Vec<PlanGroup>,
    agents: u32,
    calls: u32,
    open: VecDeque<Call>,
    remarks: Vec<String>,
    /// What there was to choose.
    seen: Seen,
}

impl Way<'_> {
    async fn walk(&mut self, interpreter: &mut Interpreter) -> Result<PlanEnd, InterpreterError> {
        // One more than there may be, so that asking for it is seen here and not taken for an end.
        let most = self.asked.programs.limits.agents.min(MOST_AGENTS);
        let limits = Limits { agents: most.saturating_add(1), ..self.asked.programs.limits };
        let mut ask = HostMessage::Start(Box::new(Start {
            source: self.asked.source.to_owned(),
            args: self.asked.args.cloned(),
            budget_total: self.asked.budget_total,
            spent: 0,
            limits,
        }));
        loop {
            let step = match interpreter.ask(&ask).await {
                Ok(GuestMessage::Stepped(step)) => *step,
                Ok(GuestMessage::Unsound { problems }) => {
                    let first = problems.into_iter().next();
                    let (message, place) =
                        first.map(|problem| (problem.message, problem.place)).unwrap_or_default();
                    return Ok(PlanEnd::Failed { message, place });
                }
                Ok(GuestMessage::Sound { .. } | GuestMessage::Confused { .. }) => {
                    return Err(InterpreterError::Unreadable {
                        problem: "it did not take a step".to_owned(),
                    });
                }
                Err(error @ (InterpreterError::Deadline { .. } | InterpreterError::Died { .. })) => {
                    return Ok(PlanEnd::Failed { message: error.to_string(), place: None });
                }
                Err(error) => return Err(error),
            };
            for said in step.said {
                if let ProgramRemark::Phase { title, within } = said {
                    self.group(within.as_deref(), Some(&title));
                }
            }
            for call in step.calls {
                self.count(&call).await;
                self.open.push_back(call);
            }
            self.open.retain(|call| !step.cleared.contains(&call.call));
            match step.state {
                State::Returned { .. } => return Ok(PlanEnd::Returned),
                State::Failed { fault } => {
                    return Ok(PlanEnd::Failed { message: fault.message, place: fault.place });
                }
                State::Waiting => {}
            }
            if self.agents > most || self.calls > MOST_CALLS {
                return Ok(PlanEnd::MayGoOn);
            }
            // Nothing takes any time here, so no timer goes off while something else is under way.
            let first =
                self.open.iter().position(|call| !matches!(call.want, Want::Timer { .. })).unwrap_or(0);
            let Some(call) = self.open.remove(first) else {
                return Ok(PlanEnd::Failed {
                    message: "it waits for something that is never answered".to_owned(),
                    place: None,
                });
            };
            let answer = self.answer(&call).await;
            ask = HostMessage::Answer { call: call.call, answer, spent: self.bill.tokens() };
        }
    }

    fn group(&mut self, within: Option<&str>, phase: Option<&str>) -> &mut PlanGroup {
        let same = |group: &PlanGroup| group.within.as_deref() == within && group.phase.as_deref() == phase;
        let place = self.groups.iter().position(same).unwrap_or_else(|| {
            let within = within.map(str::to_owned);
            let phase = phase.map(str::to_owned);
            self.groups.push(PlanGroup { within, phase, ..PlanGroup::default() });
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    async fn count(&mut self, call: &Call) {
        self.calls += 1;
        let (kind, agents, model, worktree) = match &call.want {
            Want::Agent(want) => {
                let model = self.model(want).await;
                self.bill.agent(Role::Callee, &model, &want.prompt, self.asked.callee_turns);
                (CallKind::Agent, 1, Some(model), want.isolation.is_some())
            }
            Want::Verify { finding, voters, .. } => {
                let voters = voters.unwrap_or(self.asked.voters).max(1);
                let model = self.asked.model.to_owned();
                let finding = finding.to_string();
                (0..voters).for_each(|_| {
                    self.bill.agent(Role::Verifier, &model, &finding, self.asked.verifier_turns)
                });
                (CallKind::Verify, voters, Some(model), false)
            }
            Want::Sh { .. } => (CallKind::Sh, 0, None, false),
            Want::Checkpoint { .. } => (CallKind::Checkpoint, 0, None, false),
            Want::Workflow { .. } => (CallKind::Workflow, 0, None, false),
            Want::Timer { .. } => (CallKind::Timer, 0, None, false),
        };
        self.agents = self.agents.saturating_add(agents);
        let group = self.group(call.within.as_deref(), call.phase.as_deref());
        group.agents = group.agents.saturating_add(agents);
        *group.kinds.entry(kind.word()).or_default() += 1;
        group.worktrees += u32::from(worktree);
        if let Some(model) = model {
            *group.models.entry(model).or_default() += agents;
        }
    }

    /// The model that an agent would be asked with.
    async fn model(&mut self, want: &AgentWant) -> String {
        let programs = self.asked.programs;
        let kind = match &want.agent_type {
            Some(name) => programs.library.agent_kind(name).await.ok().flatten(),
            None => None,
        };
        let named = want.model.clone().or_else(|| kind.and_then(|kind| kind.model));
        match named {
            Some(_) if programs.one_model => {
                self.remark(
                    "this session has one model: the options model and effort are left out".to_owned(),
                );
                self.asked.model.to_owned()
            }
            Some(named) => self.asked.models.get(&named).id,
            None => self.asked.model.to_owned(),
        }
    }

    fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    async fn answer(&mut self, call: &Call) -> CallOutcome {
        let value = |value: Value| CallOutcome::Value { value };
        match &call.want {
            Want::Agent(want) => match self.refusal(want).await {
                Some(message) => {
                    self.remark(message.clone());
                    CallOutcome::Throw { message }
                }
                None => value(match &want.schema {
                    Some(schema) => stub(schema, self.draw, call.call, &mut self.seen),
                    None => json!(self.lines(&format!("stub answer {}", call.call))),
                }),
            },
            Want::Verify { finding, voters, .. } => {
                let votes = voters.unwrap_or(self.asked.voters).max(1);
                let claim = finding.get("claim").unwrap_or(finding);
                self.seen.choices = self.seen.choices.max(VERDICTS.len());
                let verdict = VERDICTS[self.draw.pick(VERDICTS.len(), call.call.into())];
                let why = "stub evidence";
                value(
                    json!({"verdict": verdict, "evidence": why, "reason": why, "claim": claim, "votes": votes}),
                )
            }
            // Lists are often read from what a command prints, so there are none and plenty of them as in a
            // schema.
            Want::Sh { .. } => {
                let output = if self.draw.long { self.lines("stub") + "\n" } else { String::new() };
                value(json!({"ok": true, "code": 0, "output": output}))
            }
            Want::Checkpoint { .. } => {
                self.seen.questions = true;
                value(json!(if self.draw.agrees { "yes" } else { "no" }))
            }
            Want::Workflow { name, script_path } => self.child(name.as_deref(), script_path.as_deref()).await,
            Want::Timer { .. } => value(Value::Null),
        }
    }

    /// A text of one line, or of plenty: people read lists from texts.
    fn lines(&self, line: &str) -> String {
        match self.draw.long {
            true => (1..=self.draw.plenty).map(|at| format!("{line}-{at}")).collect::<Vec<_>>().join("\n"),
            false => line.to_owned(),
        }
    }

    /// Why an agent would not be started at all.
    async fn refusal(&self, want: &AgentWant) -> Option<String> {
        if let Some(name) = &want.agent_type {
            match self.asked.programs.library.agent_kind(name).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    return Some(format!(
                        "agentType '{name}' is not known; `convoke workflow list` shows what is"
                    ));
                }
                Err(error) => return Some(format!("agentType '{name}': {error}")),
            }
        }
        let why = check_schema(want.schema.as_ref()?).err()?;
        Some(format!("the schema cannot be used: {why}"))
    }

    async fn child(&mut self, name: Option<&str>, path: Option<&str>) -> CallOutcome {
        let library = &self.asked.programs.library;
        let found = match (path, name) {
            (Some(path), _) => {
                match library.read_path(Path::new(path), self.asked.dir, None, |_| Ok(())).await {
                    Ok(source) => Ok((path.to_owned(), source.text)),
                    Err(error) => Err(error.to_string()),
                }
            }
            (None, Some(name)) => match library.find(name).await {
                Ok(Some(found)) => Ok((found.name, found.source)),
                Ok(None) => Err(format!("there is no workflow '{name}'")),
                Err(error) => Err(error.to_string()),
            },
            (None, None) => Err("workflow wants a name or a scriptPath".to_owned()),
        };
        match found {
            Ok((name, source)) => CallOutcome::Program { name, source },
            Err(message) => {
                self.remark(message.clone());
                CallOutcome::Throw { message }
            }
        }
    }
}
