//! One schedule: what the lead hands out, what each agent would say, and what goes wrong. Drawn from a seed
//! alone.

use convoke_sim::{Brain, Fault, FaultKind, Reply, calls, cut_at_max_tokens, refuses, says};
use serde_json::json;

use crate::team::{Team, finding, workflow};
use crate::workflow_run::script;

/// A small generator of its own, so that a printed seed means the same schedule for ever.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == 0
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

/// What an agent says when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It looks, and reports one finding.
    Finds,
    /// It looks, and reports that there is nothing.
    FindsNothing,
    /// It refuses at once.
    Refuses,
    /// Its reply is cut at `max_tokens`, however large that is.
    Rambles,
}

/// What the lead hands to one worker.
#[derive(Debug, Clone)]
pub(super) struct Subtask {
    /// Its text, which is also the claim of its finding; the first word is the severity.
    pub(super) text: String,
    pub(super) manner: Manner,
}

/// What hands the subtasks out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A lead, by its Workflow tool; findings are verified.
    Lead,
    /// A program that a person runs: one agent for each subtask, side by side.
    Program,
}

/// A whole schedule.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) form: Form,
    pub(super) subtasks: Vec<Subtask>,
    pub(super) faults: Vec<Fault>,
    /// `--budget-agents`, if it is given.
    pub(super) agents: Option<usize>,
    /// `--fail-on`, if it is given.
    pub(super) fail_on: Option<&'static str>,
}

const SEVERITIES: [&str; 3] = ["high", "medium", "low"];

/// Faults after which the same request succeeds. None makes the client wait for long.
fn passing() -> Vec<FaultKind> {
    let mut kinds = FaultKind::all_transient();
    kinds.extend(FaultKind::all_harmless());
    kinds
}

impl Schedule {
    pub(super) fn draw(seed: u64) -> Self {
        let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1));
        let form = if draw.one_in(4) { Form::Program } else { Form::Lead };
        let count = 1 + draw.below(4);
        let mut subtasks = Vec::new();
        let mut faults = Vec::new();
        for number in 1..=count {
            let wrong = if draw.one_in(4) { " wrong" } else { "" };
            let text = format!("{}{wrong} thing {number}", draw.of(&SEVERITIES));
            let manner = match draw.below(12) {
                0..=7 => Manner::Finds,
                8 | 9 => Manner::FindsNothing,
                10 => Manner::Refuses,
                _ => Manner::Rambles,
            };
            let worker = match form {
                Form::Lead => format!("<subtask>\n{text}\n"),
                Form::Program => text.clone(),
            };
            let verifier = format!("\"claim\":\"{text}\"");
            faults.extend(drawn(&mut draw, 3, 5).map(|fault| fault.opening(&worker)));
            faults.extend(drawn(&mut draw, 6, 8).map(|fault| fault.opening(&verifier)));
            subtasks.push(Subtask { text, manner });
        }
        faults.extend(drawn(&mut draw, 5, 10).map(|fault| fault.opening("review it all")));
        let agents = draw.one_in(8).then(|| 1 + draw.below(2 * count));
        // A program decides itself what it has verified; these have nothing verified, so there is no gate.
        let fail_on = (form == Form::Lead && draw.one_in(2)).then(|| draw.of(&SEVERITIES));
        Self { form, subtasks, faults, agents, fail_on }
    }

    /// The program, for a schedule that has one.
    pub(super) fn program(&self) -> String {
        let texts: Vec<&str> = self.subtasks.iter().map(|subtask| subtask.text.as_str()).collect();
        script(&format!(
            "return await parallel({}.map(text => () => agent(text, {{ label: text }})))",
            json!(texts)
        ))
    }

    pub(super) fn args(&self) -> Vec<&str> {
        let mut args = vec!["--output", "json", "--sandbox", "off", "--budget-usd", "50"];
        // As text for the whole test run: there are at most eight of them.
        const NUMBERS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        if let Some(agents) = self.agents {
            args.extend(["--budget-agents", NUMBERS[agents]]);
        }
        if let Some(level) = self.fail_on {
            args.extend(["--fail-on", level]);
        }
        match self.form {
            Form::Lead => args.extend(["review", "it", "all"]),
            Form::Program => args.splice(0..0, ["workflow", "run", "flow.js"]).for_each(drop),
        }
        args
    }

    /// The model when nothing goes wrong.
    pub(super) fn brain(&self) -> impl Brain + 'static {
        let texts: Vec<&str> = self.subtasks.iter().map(|subtask| subtask.text.as_str()).collect();
        let subtasks = self.subtasks.clone();
        Team::new([workflow(&texts), says("The synthesis.")])
            .callees({
                let subtasks = subtasks.clone();
                move |text| {
                    let manner =
                        subtasks.iter().find(|subtask| subtask.text == text).map(|subtask| subtask.manner);
                    callee(text, manner.unwrap_or(Manner::FindsNothing))
                }
            })
            .workers(move |text| {
                let manner =
                    subtasks.iter().find(|subtask| subtask.text == text).map(|subtask| subtask.manner);
                worker(text, manner.unwrap_or(Manner::FindsNothing))
            })
            .verifiers_look_with(looks)
    }
}

/// One look at the directory without a shell: starting one is most of what a session costs.
fn looks() -> Reply {
    calls("glob", json!({"pattern": "*.txt"}))
}

fn worker(text: &str, manner: Manner) -> Vec<Reply> {
    let report = |findings| calls("report_findings", json!({"summary": text, "findings": findings}));
    match manner {
        Manner::Finds => vec![looks(), report(vec![finding(text)])],
        Manner::FindsNothing => vec![looks(), report(vec![])],
        Manner::Refuses => vec![refuses("I will not.")],
        Manner::Rambles => vec![looks(), cut_at_max_tokens("On and on")],
    }
}

/// What an agent of a program says: one reply, with nothing to look at.
fn callee(text: &str, manner: Manner) -> Vec<Reply> {
    match manner {
        Manner::Finds | Manner::FindsNothing => vec![says(&format!("did {text}"))],
        Manner::Refuses => vec![refuses("I will not.")],
        Manner::Rambles => vec![cut_at_max_tokens("On and on")],
    }
}

/// What goes wrong for one agent: with one chance in `passing` one or two passing faults, and with one chance
/// in `lasting` one that stays.
fn drawn(draw: &mut Draw, often: usize, lasting: usize) -> impl Iterator<Item = Fault> + use<> {
    let mut faults = Vec::new();
    if draw.one_in(often) {
        for _ in 0..1 + draw.below(2) {
            faults.push(Fault::new(draw.of(&passing())).at(draw.below(2)));
        }
    }
    if draw.one_in(lasting) {
        faults.push(Fault::new(draw.of(&FaultKind::all_final())).at(draw.below(2)).times(u32::MAX));
    }
    faults.into_iter()
}
