//! A brain for whole sessions: what the lead says is a list, what workers and verifiers say follows from what
//! they were given. It tells by the tools that it is offered which agent is asked, as a model would.

use convoke_sim::{Brain, Context, Reply, Script, Scripted, calls, says};
use serde_json::{Value, json};

type Says<T> = Box<dyn Fn(&T) -> Vec<Reply> + Send + Sync>;

pub(crate) struct Team {
    lead: Vec<Reply>,
    worker: Says<str>,
    verifier: Says<Vec<Value>>,
    task: Vec<Reply>,
    callee: Option<Says<str>>,
}

impl Team {
    /// A lead with these replies, workers that find one thing each and verifiers that confirm it.
    pub(crate) fn new(lead: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            lead: lead.into_iter().collect(),
            worker: Box::new(|subtask| looks_and_reports(subtask, vec![finding(subtask, "low")])),
            verifier: Box::new(|findings| looks_and_judges(findings, "confirmed")),
            task: vec![says("the summary")],
            callee: None,
        }
    }

    pub(crate) fn workers(mut self, says: impl Fn(&str) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        self.worker = Box::new(says);
        self
    }

    pub(crate) fn verifiers(mut self, says: impl Fn(&[Value]) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        self.verifier = Box::new(move |findings| says(findings));
        self
    }

    /// What an agent says that a program started with this prompt.
    pub(crate) fn callees(mut self, says: impl Fn(&str) -> Vec<Reply> + Send + Sync + 'static) -> Self {
        self.callee = Some(Box::new(says));
        self
    }

    pub(crate) fn tasks(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.task = replies.into_iter().collect();
        self
    }
}

impl Brain for Team {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let first = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let replies = match role(request) {
            "lead" => self.lead.clone(),
            "worker" => (self.worker)(between(first, "<subtask>", "</subtask>")),
            "verifier" => {
                let findings = serde_json::from_str(between(first, "<findings>", "</findings>")).unwrap();
                (self.verifier)(&findings)
            }
            _ => match &self.callee {
                Some(callee) => callee(first),
                None => self.task.clone(),
            },
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

/// The role that a request is from, by the tools it declares.
pub(crate) fn role(request: &Value) -> &'static str {
    let names: Vec<&str> =
        request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    match () {
        () if names.contains(&"Workflow") => "lead",
        () if names.contains(&"report_findings") => "worker",
        () if names.contains(&"report_verdicts") => "verifier",
        () => "task",
    }
}

pub(crate) fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let after = text.split_once(begin).map_or("", |(_, after)| after);
    after.rsplit_once(end).map_or(after, |(inside, _)| inside).trim()
}

pub(crate) fn workflow(subtasks: &[&str]) -> Reply {
    calls("Workflow", json!({"subtasks": subtasks}))
}

pub(crate) fn finding(claim: &str, severity: &str) -> Value {
    json!({"claim": claim, "evidence": "seen", "severity": severity})
}

pub(crate) fn report(summary: &str, findings: Vec<Value>) -> Reply {
    calls("report_findings", json!({"summary": summary, "findings": findings}))
}

pub(crate) fn looks_and_reports(summary: &str, findings: Vec<Value>) -> Vec<Reply> {
    vec![calls("bash", json!({"command": "echo looked"})), report(summary, findings)]
}

pub(crate) fn verdicts(findings: &[Value], verdict: &str) -> Reply {
    let verdicts: Vec<Value> = findings
        .iter()
        .map(|finding| json!({"finding": finding["finding"], "verdict": verdict, "evidence": "looked again"}))
        .collect();
    calls("report_verdicts", json!({"summary": verdict, "verdicts": verdicts}))
}

pub(crate) fn looks_and_judges(findings: &[Value], verdict: &str) -> Vec<Reply> {
    vec![calls("bash", json!({"command": "echo looked again"})), verdicts(findings, verdict)]
}
