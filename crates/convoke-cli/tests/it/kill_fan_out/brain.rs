//! The model of a fan-out that may be killed: a lead, its workers and their verifiers. What each says follows
//! from what it was sent and from nothing else, so that a request that is sent again gets the same reply. It
//! keeps no state.

use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_sim::{Brain, Context, Scripted, SimConfig, tool_use_id};
use serde_json::{Value, json};

use crate::stage::Stage;

/// What the kernel writes into a result that was cut off.
pub(crate) const UNKNOWN: &str = "outcome is unknown";
/// How long a reply takes, so that there is always something under way.
const THINKS: Duration = Duration::from_millis(20);

/// A look counts itself outside the journal, leaves a job behind that has left its session, and takes a
/// while.
const LOOK: &str = r#"here=${0%/*}
echo "$1" >> "$here/ran/$1"
setsid sleep 600 </dev/null >/dev/null 2>&1 &
sleep 0.03
echo "$1 was looked at"
"#;

/// All agents of a session over so many items.
pub(crate) struct FanOutBrain {
    items: usize,
    look: PathBuf,
}

impl FanOutBrain {
    /// The agents, and the script their commands run, which counts in `ran` beside it.
    pub(crate) fn new(items: usize, scratch: &Path) -> Self {
        let look = scratch.join("look");
        std::fs::create_dir(scratch.join("ran")).unwrap();
        std::fs::write(&look, LOOK).unwrap();
        Self { items, look }
    }

    /// A stage on which these agents answer, with a file for each item.
    pub(crate) async fn stage(self) -> Stage {
        let items = self.items;
        let stage = Stage::with(SimConfig::new(self)).await;
        for item in 1..=items {
            let file = stage.work().join(format!("{item:03}.txt"));
            std::fs::write(file, format!("first\nvalue = {item}\nlast\n")).unwrap();
        }
        stage
    }

    fn say(&self, request: &Value) -> Result<Value, String> {
        let who = who(request);
        let result = last_result(request);
        if who == LEAD {
            return Ok(match result {
                None => {
                    call("Workflow", json!({"subtasks": (1..=self.items).map(subtask).collect::<Vec<_>>()}))
                }
                Some(read) => json!({"type": "text", "text": verdict_lines(&read)}),
            });
        }
        match result {
            Some(seen) if seen.contains(&format!("{who} was looked at")) => Ok(report(&who)),
            Some(seen) if !seen.contains(UNKNOWN) => {
                Err(format!("{who} cannot make anything of this: {seen}"))
            }
            _ => Ok(call("bash", json!({"command": format!("sh {} {who}", self.look.display())}))),
        }
    }
}

impl Brain for FanOutBrain {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        match self.say(request) {
            Ok(mut block) => {
                if block["type"] == "tool_use" {
                    block["id"] = tool_use_id(context, "", 0).into();
                }
                Scripted { delay: THINKS, ..Scripted::new(vec![block]) }
            }
            Err(problem) => Scripted::problem(problem),
        }
    }
}

pub(crate) const LEAD: &str = "lead";

/// The sender of a request: the lead, `w012` for the worker of an item, `v012` for its verifier.
pub(crate) fn who(request: &Value) -> String {
    let offered = |name: &str| request["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
    if offered("Workflow") {
        return LEAD.to_owned();
    }
    let first = request["messages"][0]["content"][0]["text"].as_str().unwrap();
    name(if offered("report_findings") { "w" } else { "v" }, first)
}

/// The name of the agent that has this to do with the subtask that the text holds.
pub(crate) fn name(what: &str, text: &str) -> String {
    format!("{what}{}", &text.split_once("look at ").unwrap().1[..3])
}

/// What an item comes to: a finding that holds, one that its verifier refutes, one whose citation is wrong,
/// and one that its verifier cannot settle.
pub(crate) fn expected(item: usize) -> &'static str {
    ["uncertain", "confirmed", "refuted", "confirmed", "refuted"][item % 5]
}

/// How many results of a request say that the outcome of a command is unknown.
pub(crate) fn told_unknown(request: &Value) -> usize {
    results(request).iter().filter(|text| text.contains(UNKNOWN)).count()
}

/// The lines of a workflow's result that give a verdict.
fn verdict_lines(read: &str) -> String {
    read.lines().filter(|line| line.starts_with("- [")).collect::<Vec<_>>().join("\n")
}

fn subtask(item: usize) -> String {
    format!("look at {item:03}.txt")
}

fn report(who: &str) -> Value {
    let item: usize = who[1..].parse().unwrap();
    if who.starts_with('w') {
        // Every fifth quotes what does not stand there.
        let quote =
            if item.is_multiple_of(5) { format!("value = {item}0") } else { format!("value = {item}") };
        let cited = json!({"path": format!("{item:03}.txt"), "first": 2, "last": 2, "quote": quote});
        let severity = ["high", "medium", "low"][item % 3];
        let finding = json!({
            "claim": format!("{item:03} is {item}"), "evidence": "line 2", "severity": severity, "citations": [cited],
        });
        return call("report_findings", json!({"summary": "looked", "findings": [finding]}));
    }
    let verdict = ["confirmed", "confirmed", "refuted", "confirmed", "undecided"][item % 5];
    let judged = json!({"finding": 1, "verdict": verdict, "evidence": format!("line 2 of {item:03}")});
    call("report_verdicts", json!({"summary": verdict, "verdicts": [judged]}))
}

fn call(tool: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": "", "name": tool, "input": input})
}

fn results(request: &Value) -> Vec<String> {
    let blocks =
        request["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
    results
        .map(|block| block["content"].as_str().map_or_else(|| block["content"].to_string(), str::to_owned))
        .collect()
}

fn last_result(request: &Value) -> Option<String> {
    results(request).pop()
}
