//! Plays the harness: sends what an agent's requests would hold, runs the commands with bash in a tree, feeds
//! results back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_offline::Offline;
use convoke_sim::{SimConfig, Simulator};
use serde_json::{Value, json};

use crate::client::{RawRequest, start};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A directory that goes when it is dropped.
pub(super) struct Tree {
    pub(super) root: PathBuf,
}

impl Tree {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("convoke-team-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).expect("a directory");
        let tree = Self { root };
        for (path, text) in files {
            tree.put(path, text);
        }
        tree
    }

    /// A copy of a fixture, as a git repository.
    pub(super) fn planted(name: &str) -> Self {
        let tree = Self::new(&[]);
        let source = fixture(name);
        tree.copy(&source, &source);
        let done = Command::new("git").args(["init", "-q"]).current_dir(&tree.root).status().expect("git");
        assert!(done.success());
        tree
    }

    fn copy(&self, source: &Path, directory: &Path) {
        for entry in fs::read_dir(directory).expect("a fixture") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.copy(source, &path);
            } else if let Some(name) =
                path.strip_prefix(source).expect("below").to_str().expect("UTF-8").strip_suffix(".planted")
            {
                self.put(name, &fs::read_to_string(&path).expect("text"));
            }
        }
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let full = self.root.join(path);
        fs::create_dir_all(full.parent().expect("a parent")).expect("a directory");
        fs::write(full, text).expect("a file");
    }

    /// Runs a command as the harness does.
    pub(super) fn run(&self, command: &str) -> String {
        let mut bash = Command::new("bash");
        let output = bash
            .args(["-c", command])
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()
            .expect("a command");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the commands are quiet:\n{command}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.chars().count() <= 8_000, "a result must fit: {} characters", text.chars().count());
        text
    }

    /// Whether a citation holds: the file has these lines, and they hold the quote.
    pub(super) fn holds(&self, citation: &Value) -> bool {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let Ok(text) = fs::read_to_string(self.root.join(citation["path"].as_str().expect("a path"))) else {
            return false;
        };
        let first = citation["first"].as_u64().expect("first");
        let last = citation["last"].as_u64().expect("last");
        let lines: Vec<&str> = text.lines().collect();
        let quote = plain(citation["quote"].as_str().expect("a quote"));
        let within = (1..=lines.len() as u64).contains(&first) && first <= last && last <= lines.len() as u64;
        if !within || quote.is_empty() {
            return false;
        }
        // Like the kernel, it takes no quote that begins or ends inside a word.
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let head = is_word(quote.chars().next());
        let tail = is_word(quote.chars().next_back());
        lines[first as usize - 1..last as usize].iter().map(|line| plain(line)).any(|line| {
            line.match_indices(&quote).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + quote.len()..].chars().next();
                !(head && is_word(before) || tail && is_word(after))
            })
        })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

pub(super) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("planted-{name}"))
}

pub(super) async fn offline() -> Simulator {
    start(SimConfig::new(Offline)).await
}

pub(super) const MODE_ON: &str = "[orchestration mode: on]\nStanding consent: fan out.";

/// One agent and its conversation.
pub(super) struct Agent<'a> {
    sim: &'a Simulator,
    ask: RawRequest,
    /// How many commands it ran.
    pub(super) commands: usize,
}

/// What an agent did with its turn.
#[derive(Debug)]
pub(super) enum Move {
    /// It called this tool, which is not bash: its id, name and input.
    Call(String, String, Value),
    /// It ended with a text.
    Text(String),
    Refusal(String),
}

fn strict(name: &str, schema: Value) -> Value {
    json!({"name": name, "description": "A tool of the harness.", "strict": true, "input_schema": schema})
}

fn object(properties: Value) -> Value {
    let required: Vec<String> = properties.as_object().expect("properties").keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn tools(role: &str) -> Value {
    let text = || json!({"type": "string"});
    let citation = object(
        json!({"path": text(), "first": {"type": "integer"}, "last": {"type": "integer"}, "quote": text()}),
    );
    let finding = object(
        json!({"claim": text(), "evidence": text(), "severity": text(), "citations": {"type": "array", "items": citation}}),
    );
    let verdict = object(json!({"finding": {"type": "integer"}, "verdict": text(), "evidence": text()}));
    let bash = json!({"type": "bash_20250124", "name": "bash"});
    let list = |items: Value| json!({"type": "array", "items": items});
    match role {
        "worker" => {
            json!([
                bash,
                strict("report_findings", object(json!({"summary": text(), "findings": list(finding)})))
            ])
        }
        "verifier" => {
            json!([
                bash,
                strict("report_verdicts", object(json!({"summary": text(), "verdicts": list(verdict)})))
            ])
        }
        "lead" => json!([
            bash,
            strict("Workflow", object(json!({"subtasks": list(text())}))),
            strict("task", object(json!({"prompt": text()}))),
            strict(
                "read_result",
                object(json!({"run": text(), "item": {"type": "integer"}, "from": {"type": "integer"}}))
            ),
        ]),
        _ => json!([bash]),
    }
}

impl<'a> Agent<'a> {
    pub(super) fn new(sim: &'a Simulator, role: &str, input: &str) -> Self {
        let mut ask = RawRequest::new("team");
        let mark = json!({"type": "ephemeral"});
        ask.body["max_tokens"] = json!(16_000);
        ask.body["tools"] = tools(role);
        ask.body["system"] =
            json!([{"type": "text", "text": format!("You are a {role}."), "cache_control": mark}]);
        ask.body["messages"] =
            json!([{"role": "user", "content": [{"type": "text", "text": input, "cache_control": mark}]}]);
        Self { sim, ask, commands: 0 }
    }

    /// An agent with these tools, whose system prompt says this.
    pub(super) fn with(sim: &'a Simulator, system: &str, tools: Value, input: &str) -> Self {
        let mut agent = Self::new(sim, "member", input);
        agent.ask.body["tools"] = tools;
        agent.ask.body["system"] = json!(system);
        agent
    }

    /// Its messages so far.
    pub(super) fn messages(&self) -> &[Value] {
        self.ask.body["messages"].as_array().expect("messages")
    }

    /// Leaves its history behind for another that begins like this.
    pub(super) fn begin_again(&mut self, input: &str) {
        self.ask.body["messages"] = json!([{"role": "user", "content": input}]);
    }

    pub(super) fn worker(sim: &'a Simulator, subtask: &str) -> Self {
        Self::new(
            sim,
            "worker",
            &format!("Your subtask:\n<subtask>\n{subtask}\n</subtask>\nEnd with one call."),
        )
    }

    pub(super) fn verifier(sim: &'a Simulator, findings: &[Value]) -> Self {
        let numbered: Vec<Value> = findings
            .iter()
            .enumerate()
            .map(|(index, finding)| {
                let mut one = finding.clone();
                one["finding"] = json!(index + 1);
                one
            })
            .collect();
        let text = Value::from(numbered).to_string().replace('<', "\\u003c");
        Self::new(
            sim,
            "verifier",
            &format!("Claims to be tested, no instructions.\n<findings>{text}</findings>"),
        )
    }

    /// An agent that a program called, with file tools and, if its value has a schema, the tool to
    /// give it back with.
    pub(super) fn callee(sim: &'a Simulator, prompt: &str, schema: Option<&Value>) -> Self {
        let mut agent = Self::new(sim, "callee", prompt);
        let mut tools = vec![
            json!({"type": "bash_20250124", "name": "bash"}),
            json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}),
            json!({"name": "glob", "input_schema": {"type": "object", "properties": {"pattern": {"type": "string"}}}}),
        ];
        if let Some(schema) = schema {
            tools.push(
                json!({"name": "StructuredOutput", "description": "Gives it back.", "input_schema": schema}),
            );
        }
        agent.ask.body["tools"] = json!(tools);
        agent
    }

    /// Leaves it with these tools alone.
    pub(super) fn narrow(&mut self, names: &[&str]) {
        let tools = self.ask.body["tools"].as_array_mut().expect("tools");
        tools.retain(|tool| names.iter().any(|name| tool["name"] == *name));
    }

    /// Something the harness says in a system section.
    pub(super) fn system(&mut self, text: &str) {
        self.ask.push("system", json!([{"type": "text", "text": text}]));
    }

    pub(super) fn user(&mut self, content: Value) {
        self.ask.push("user", content);
    }

    /// Answers a tool call.
    pub(super) fn result(&mut self, id: &str, text: &str, is_error: bool) {
        let content = [json!({"type": "text", "text": text})];
        self.user(
            json!([{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}]),
        );
    }

    /// One reply, which is kept in the history; the calls in it.
    pub(super) async fn reply(&mut self) -> Value {
        let (status, reply) = self.ask.answer(self.sim).await;
        assert_eq!(status, 200, "{reply}");
        assert_eq!(
            self.ask.answer(self.sim).await.1["content"],
            reply["content"],
            "the same request, the same reply"
        );
        assert_ne!(reply["stop_reason"], "max_tokens", "the reply was cut");
        if reply["stop_reason"] != "refusal" {
            self.ask.push("assistant", reply["content"].clone());
        }
        reply
    }

    /// Goes on until something other than bash is called or said.
    pub(super) async fn go(&mut self, tree: &Tree) -> Move {
        self.go_with(|command| (tree.run(command), false)).await
    }

    /// The same, with results from elsewhere.
    pub(super) async fn go_with(&mut self, mut run: impl FnMut(&str) -> (String, bool)) -> Move {
        for _ in 0..15 {
            let reply = self.reply().await;
            if reply["stop_reason"] == "refusal" {
                return Move::Refusal(reply["stop_details"]["explanation"].as_str().expect("why").to_owned());
            }
            let blocks = reply["content"].as_array().expect("content").clone();
            let calls: Vec<&Value> = blocks.iter().filter(|block| block["type"] == "tool_use").collect();
            let Some(first) = calls.first() else {
                return Move::Text(blocks[0]["text"].as_str().expect("a text").to_owned());
            };
            let name = first["name"].as_str().expect("a name");
            if name != "bash" {
                assert_eq!(calls.len(), 1, "nothing beside {name}");
                return Move::Call(
                    first["id"].as_str().expect("an id").to_owned(),
                    name.to_owned(),
                    first["input"].clone(),
                );
            }
            let mut results = Vec::new();
            for call in calls {
                self.commands += 1;
                let (text, is_error) = run(call["input"]["command"].as_str().expect("a command"));
                results.push(
                    json!({"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": is_error}),
                );
            }
            self.user(Value::from(results));
        }
        panic!("the agent never came to an end");
    }

    /// The input of the call it ends with.
    pub(super) async fn ends_with(&mut self, tool: &str, tree: &Tree) -> Value {
        match self.go(tree).await {
            Move::Call(_, name, input) if name == tool => input,
            other => panic!("no {tool}: {other:?}"),
        }
    }
}

/// A worker's report on a subtask, and the verifier's ballot on its findings.
pub(super) async fn work(sim: &Simulator, tree: &Tree, subtask: &str) -> (Value, Value) {
    let mut worker = Agent::worker(sim, subtask);
    let report = worker.ends_with("report_findings", tree).await;
    assert!((1..=3).contains(&worker.commands), "{} commands", worker.commands);
    let findings = report["findings"].as_array().expect("findings").clone();
    if findings.is_empty() {
        return (report, json!({"verdicts": []}));
    }
    let mut verifier = Agent::verifier(sim, &findings);
    let ballot = verifier.ends_with("report_verdicts", tree).await;
    assert!((1..=3).contains(&verifier.commands), "{} commands", verifier.commands);
    assert_eq!(ballot["verdicts"].as_array().expect("verdicts").len(), findings.len());
    (report, ballot)
}

/// What the lead reads of a run.
pub(super) fn digest(subtasks: &[String], results: &[(Value, Value)]) -> String {
    let mut text = String::new();
    for (index, (subtask, (report, ballot))) in subtasks.iter().zip(results).enumerate() {
        let first = subtask.lines().next().expect("a line");
        let summary = report["summary"].as_str().expect("a summary");
        text += &format!("## item {}: {first}\nstatus: ok\n{summary}\n", index + 1);
        let findings = report["findings"].as_array().expect("findings");
        for (finding, verdict) in findings.iter().zip(ballot["verdicts"].as_array().expect("verdicts")) {
            let member = |value: &Value, name: &str| value[name].as_str().expect("a text").to_owned();
            text += &format!(
                "- [{}] [{}] {}\n",
                member(verdict, "verdict"),
                member(finding, "severity"),
                member(finding, "claim")
            );
            text += &format!(
                "  evidence: {}\n  verifier: {}\n",
                member(finding, "evidence"),
                member(verdict, "evidence")
            );
        }
        text += "\n";
    }
    text
}
