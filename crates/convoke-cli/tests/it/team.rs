//! A brain for whole sessions: what the lead says is a list, what workers and verifiers say follows from what
//! they were given. It tells the agents apart by the tools it is offered, as a model would.

use convoke_sim::{Brain, Context, Received, Reply, Script, Scripted, calls, says};
use serde_json::{Value, json};

use crate::stage::Stage;

/// What an agent says to what it was given.
type Says = Box<dyn Fn(&str) -> Vec<Reply> + Send + Sync>;

pub(crate) struct Team {
    lead: Vec<Reply>,
    worker: Says,
    verifier: Says,
    callee: Says,
}

impl Team {
    /// A lead with these replies, workers that find one thing each and verifiers that confirm it, unless it
    /// says that it is wrong.
    pub(crate) fn new(lead: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            lead: lead.into_iter().collect(),
            worker: Box::new(|subtask| looks_and_reports(subtask, vec![finding(subtask)])),
            verifier: Box::new(|findings| looks_and_judges(looks_by_shell(), findings)),
            callee: Box::new(|prompt| vec![says(&format!("did {prompt}"))]),
        }
    }

    /// A lead that has these subtasks done and says something about it.
    pub(crate) fn fanning_out(subtasks: &[&str]) -> Self {
        Self::new([workflow(subtasks), says("The synthesis.")])
    }

    pub(crate) fn workers(mut self, says: impl Fn(&str) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        self.worker = Box::new(says);
        self
    }

    /// What agents of a program say to their prompt.
    pub(crate) fn callees(mut self, says: impl Fn(&str) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        self.callee = Box::new(says);
        self
    }

    /// Verifiers that judge as the others do and look at nothing before, also when they are told to.
    pub(crate) fn verifiers_look_at_nothing(mut self) -> Self {
        self.verifier = Box::new(|findings| vec![looks_and_judges(looks_by_shell(), findings).remove(1); 2]);
        self
    }

    /// Verifiers that judge this claim without a look, and look at all others.
    pub(crate) fn verifiers_look_at_all_but(mut self, claim: &'static str) -> Self {
        self.verifier = Box::new(move |findings| match looks_and_judges(looks_by_shell(), findings) {
            mut replies if findings.contains(claim) => vec![replies.remove(1); 2],
            replies => replies,
        });
        self
    }

    /// Verifiers that look with this call before they judge.
    pub(crate) fn verifiers_look_with(mut self, look: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        self.verifier = Box::new(move |findings| looks_and_judges(look(), findings));
        self
    }

    pub(crate) async fn stage(self) -> Stage {
        let stage = Stage::with(convoke_sim::SimConfig::new(self)).await;
        std::fs::write(stage.work().join("a.txt"), "first line\nsecond line\n").unwrap();
        stage
    }
}

impl Brain for Team {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let first = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let replies = match role(request) {
            "lead" => self.lead.clone(),
            "worker" => (self.worker)(between(first, "<subtask>", "</subtask>")),
            "task" => (self.callee)(first),
            _ => (self.verifier)(between(first, "<findings>", "</findings>")),
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

/// The role that a request is from, by the tools it declares.
pub(crate) fn role(request: &Value) -> &'static str {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    match (has("Workflow"), has("report_findings"), has("report_verdicts")) {
        (true, ..) => "lead",
        (_, true, _) => "worker",
        (.., true) => "verifier",
        _ => "task",
    }
}

/// The requests of one role, in order of arrival.
pub(crate) fn requests(stage: &Stage, who: &str) -> Vec<Received> {
    stage.sim().requests().into_iter().filter(|request| role(&request.body) == who).collect()
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let after = text.split_once(begin).map_or("", |(_, after)| after);
    after.rsplit_once(end).map_or(after, |(inside, _)| inside).trim()
}

pub(crate) fn workflow(subtasks: &[&str]) -> Reply {
    calls("Workflow", json!({"subtasks": subtasks}))
}

/// A finding with a citation that holds; its severity is the claim's first word.
pub(crate) fn finding(claim: &str) -> Value {
    let severity = claim.split(' ').next().unwrap();
    let citation = json!({"path": "a.txt", "first": 2, "last": 2, "quote": "second line"});
    json!({"claim": claim, "evidence": "a.txt:2: second line", "severity": severity, "citations": [citation]})
}

pub(crate) fn looks_and_reports(summary: &str, findings: Vec<Value>) -> Vec<Reply> {
    let report = calls("report_findings", json!({"summary": summary, "findings": findings}));
    vec![calls("bash", json!({"command": "cat a.txt"})), report]
}

fn looks_by_shell() -> Reply {
    calls("bash", json!({"command": "sed -n 2p a.txt"}))
}

fn looks_and_judges(look: Reply, findings: &str) -> Vec<Reply> {
    let findings: Vec<Value> = serde_json::from_str(findings).unwrap();
    let judge = |finding: &Value| {
        let verdict = if finding["claim"].to_string().contains("wrong") { "refuted" } else { "confirmed" };
        json!({"finding": finding["finding"], "verdict": verdict, "evidence": "looked again"})
    };
    let verdicts: Vec<Value> = findings.iter().map(judge).collect();
    let ballot = calls("report_verdicts", json!({"summary": "looked", "verdicts": verdicts}));
    vec![look, ballot]
}
