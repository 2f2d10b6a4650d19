//! A small host for a team over HTTP: keeps the board and the mail, runs commands in a tree, and drives the
//! members that have something to do until none has. It stops with a panic when a dialogue does not end.

use std::collections::{BTreeMap, VecDeque};

use convoke_sim::Simulator;
use serde_json::{Value, json};

use super::harness::{Agent, Tree};

/// So many replies are enough for everything that is played here.
const BOUND: usize = 120;

/// A task on the board.
pub(super) struct Task {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) after: Vec<String>,
    pub(super) holder: Option<String>,
    pub(super) status: String,
    pub(super) result: String,
}

/// A team at work.
pub(super) struct Host<'a> {
    sim: &'a Simulator,
    tree: &'a Tree,
    agents: BTreeMap<String, Agent<'a>>,
    /// Results of calls that ended an exchange: they go before the next input.
    open: BTreeMap<String, Vec<Value>>,
    mail: BTreeMap<String, VecDeque<String>>,
    /// Members that were spawned and have not read their prompts.
    fresh: VecDeque<String>,
    pub(super) tasks: Vec<Task>,
    /// Members that stopped.
    pub(super) stopped: Vec<String>,
    /// Every call: member, tool, input.
    pub(super) calls: Vec<(String, String, Value)>,
    /// What the lead said at the end of its exchanges.
    pub(super) said: Vec<String>,
    letters: usize,
    replies: usize,
}

impl<'a> Host<'a> {
    pub(super) fn new(sim: &'a Simulator, tree: &'a Tree) -> Self {
        let (agents, open, mail, fresh) = Default::default();
        let (tasks, stopped, calls, said) = Default::default();
        Self { sim, tree, agents, open, mail, fresh, tasks, stopped, calls, said, letters: 0, replies: 0 }
    }

    /// A person asks the lead something; the team works until no member has anything to do.
    pub(super) async fn ask(&mut self, prompt: &str) -> String {
        self.hear("lead", prompt).await;
        while self.step().await {}
        self.said.last().expect("an answer").clone()
    }

    /// The tools that a member called, in order.
    pub(super) fn called(&self, who: &str) -> Vec<&str> {
        self.calls.iter().filter(|(name, ..)| name == who).map(|(_, tool, _)| tool.as_str()).collect()
    }

    /// The inputs of all calls of a tool.
    pub(super) fn inputs(&self, tool: &str) -> Vec<&Value> {
        self.calls.iter().filter(|(_, name, _)| name == tool).map(|(.., input)| input).collect()
    }

    /// Lets a member begin a new history; gives the summary.
    pub(super) async fn compact(&mut self, who: &str, asked: &str) -> String {
        let agent = self.agents.get_mut(who).expect("a member");
        agent.user(json!("[new history]\nTold by Convoke: a new history begins for you."));
        let reply = agent.reply().await;
        let summary = reply["content"][0]["text"].as_str().expect("a summary").to_owned();
        let bars = |text: &str| text.lines().map(|line| format!("| {line}\n")).collect::<String>();
        let members: String = self
            .agents
            .keys()
            .filter(|name| *name != "lead")
            .map(|name| format!("member: {name}, idle (coder)\n"))
            .collect();
        let first = format!(
            "[history continued]\nTold by Convoke.\n\n[who you are]\nname: {who}\n{members}task: \
             none\n\nWhat you were asked last, word for word. It counts as what it was then:\n{}\nYour own \
             summary, which you wrote earlier. Where it contradicts what stands above, that holds:\n{}",
            bars(asked),
            bars(&summary)
        );
        let agent = self.agents.get_mut(who).expect("a member");
        agent.begin_again(first.trim_end());
        summary
    }

    /// Goes on with an exchange that is open.
    pub(super) async fn go_on(&mut self, who: &str) {
        self.run(who).await;
    }

    /// One member does what is next for it; false if no member has anything to do.
    async fn step(&mut self) -> bool {
        if let Some(name) = self.fresh.pop_front() {
            self.run(&name).await;
            return true;
        }
        let names: Vec<String> =
            self.agents.keys().filter(|name| !self.stopped.contains(name)).cloned().collect();
        for name in &names {
            if let Some(mail) = self.take_mail(name) {
                self.hear(name, &mail).await;
                return true;
            }
        }
        for name in names.iter().filter(|name| *name != "lead") {
            if let Some(claimed) = self.claim(name) {
                self.hear(name, &claimed).await;
                return true;
            }
        }
        false
    }

    fn claim(&mut self, name: &str) -> Option<String> {
        if let Some(held) =
            self.tasks.iter().find(|task| task.status == "claimed" && task.holder.as_deref() == Some(name))
        {
            panic!("{name} left {} unfinished", held.id);
        }
        let done = |id: &String| self.tasks.iter().any(|task| task.id == *id && task.status == "done");
        let at =
            self.tasks.iter().position(|task| task.status == "pending" && task.after.iter().all(done))?;
        let task = &mut self.tasks[at];
        task.status = "claimed".to_owned();
        task.holder = Some(name.to_owned());
        Some(format!(
            "[claimed {0}]\nTold by Convoke: you were free.\ntask: {0} {1} (#{2})\nwritten by: \
             lead\ndescription:\n| Only look.\nWhen it is done, call task_update.",
            task.id,
            task.subject,
            at + 1
        ))
    }

    fn take_mail(&mut self, name: &str) -> Option<String> {
        let letters: Vec<String> =
            self.mail.get_mut(name).into_iter().flat_map(|mail| mail.drain(..)).collect();
        (!letters.is_empty())
            .then(|| format!("[mail]\nTold by Convoke and not said by the person.\n{}", letters.join("")))
    }

    fn post(&mut self, from: &str, to: &str, what: &str, text: &str, to_do: &str) -> String {
        self.letters += 1;
        let id = format!("m_{:0>16}", self.letters);
        let quoted: String = text.lines().map(|line| format!("| {line}\n")).collect();
        let to_do = to_do.replace("REQUEST", &id);
        let letter = format!("\nletter {id} from {from}: {what}\n{quoted}{to_do}");
        self.mail.entry(to.to_owned()).or_default().push_back(letter);
        id
    }

    async fn hear(&mut self, name: &str, text: &str) {
        if !self.agents.contains_key(name) {
            let agent = Agent::with(self.sim, &system(name), tools(name, false), text);
            self.agents.insert(name.to_owned(), agent);
        } else {
            let mut content = self.open.remove(name).unwrap_or_default();
            content.push(json!({"type": "text", "text": text}));
            self.agents.get_mut(name).expect("a member").user(Value::from(content));
        }
        self.run(name).await;
    }

    /// One exchange of a member.
    async fn run(&mut self, name: &str) {
        loop {
            self.replies += 1;
            assert!(
                self.replies < BOUND,
                "this never ends: {:?}",
                self.calls.iter().rev().take(8).collect::<Vec<_>>()
            );
            let reply = self.agents.get_mut(name).expect("a member").reply().await;
            let blocks = reply["content"].as_array().expect("content").clone();
            let said =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
            let calls: Vec<&Value> = blocks.iter().filter(|block| block["type"] == "tool_use").collect();
            let idles = calls.iter().any(|call| call["name"] == "idle");
            let mut results = Vec::new();
            for call in &calls {
                let (text, is_error) = self.act(name, call["name"].as_str().expect("a name"), &call["input"]);
                results.push(
                    json!({"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": is_error}),
                );
            }
            if calls.is_empty() || idles {
                if idles {
                    self.open.insert(name.to_owned(), results);
                }
                match name {
                    "lead" => self.said.push(said),
                    _ => drop(self.post(name, "lead", "what its work came to, sent by Convoke", &said, "")),
                }
                if self.stopped.iter().any(|other| other == name) {
                    let text = format!("{name} has stopped: it was asked to stop.");
                    self.post("convoke", "lead", "a notice", &text, "");
                }
                return;
            }
            if let Some(mail) = self.take_mail(name) {
                results.push(json!({"type": "text", "text": mail}));
            }
            self.agents.get_mut(name).expect("a member").user(Value::from(results));
        }
    }

    /// What a tool does, and whether it refuses.
    fn act(&mut self, who: &str, tool: &str, input: &Value) -> (String, bool) {
        self.calls.push((who.to_owned(), tool.to_owned(), input.clone()));
        let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        let known =
            |name: &str| self.agents.contains_key(name) && !self.stopped.iter().any(|other| other == name);
        match tool {
            "bash" => (self.tree.run(&text("command")), false),
            "glob" => ("README.md\nsrc/a.py".to_owned(), false),
            "spawn_teammate" if known(&text("name")) => {
                (format!("{} is already a member of the team", text("name")), true)
            }
            "spawn_teammate" => {
                let name = text("name");
                let plan = input["require_plan"] == true;
                let system = format!(
                    "You are {name}, a teammate in Convoke. Your role: {}. Your team: t.",
                    text("role")
                );
                self.agents.insert(
                    name.clone(),
                    Agent::with(self.sim, &system, tools(&name, plan), &text("prompt")),
                );
                // Its first exchange begins when it is its turn.
                self.fresh.push_back(name.clone());
                (format!("{name} is a member of the team now."), false)
            }
            "send_message" if !known(&text("to")) => (format!("nobody is called {}", text("to")), true),
            "send_message" => (self.post(who, &text("to"), "a message", &text("text"), ""), false),
            "broadcast" => {
                let others: Vec<String> = self.agents.keys().filter(|name| *name != who).cloned().collect();
                for other in &others {
                    self.post(who, other, "a message to everybody", &text("text"), "");
                }
                (format!("Sent to {}.", others.join(", ")), others.is_empty())
            }
            "request_shutdown" => {
                let to_do = "To do: end what you hold, then call answer_shutdown with request REQUEST. \
                    Without an answer Convoke stops you.\n";
                (self.post(who, &text("name"), "a request that you stop", &text("reason"), to_do), false)
            }
            "answer_shutdown" => {
                self.post(who, "lead", "it agrees to stop, request m_0000", &text("reason"), "");
                self.stopped.push(who.to_owned());
                ("You stop when this work ends.".to_owned(), false)
            }
            "submit_plan" => {
                let to_do =
                    "To do: call review_plan with request REQUEST. Until then this teammate can only read.\n";
                (self.post(who, "lead", "a plan that waits for your approval", &text("plan"), to_do), false)
            }
            "review_plan" => {
                let author = self
                    .calls
                    .iter()
                    .rev()
                    .find(|(_, tool, _)| tool == "submit_plan")
                    .expect("a plan")
                    .0
                    .clone();
                let what = if input["approve"] == true {
                    "your plan is approved"
                } else {
                    "your plan is not approved"
                };
                let what = format!("{what}, request {}", text("request"));
                (self.post(who, &author, &what, &text("feedback"), ""), false)
            }
            "task_create" => {
                let id = format!("t_{:0>16}", self.tasks.len() + 1);
                let after = input["blocked_by"].as_array().into_iter().flatten();
                let after = after.map(|id| id.as_str().expect("an id").to_owned()).collect();
                let subject = text("subject");
                let status = "pending".to_owned();
                self.tasks.push(Task {
                    id: id.clone(),
                    subject,
                    after,
                    holder: None,
                    status,
                    result: String::new(),
                });
                (format!("{id} is on the board as #{}.", self.tasks.len()), false)
            }
            "task_update" => {
                let task = self.tasks.iter_mut().find(|task| task.id == text("task")).expect("a task");
                assert_eq!(task.holder.as_deref(), Some(who), "only its holder ends a task");
                task.status = text("status");
                task.result = text("result");
                ("Noted.".to_owned(), false)
            }
            "list_teammates" => (self.agents.keys().cloned().collect::<Vec<_>>().join("\n"), false),
            "read_inbox" => ("No letter waits for you.".to_owned(), false),
            _ => ("You rest from here on, and a letter or a task wakes you.".to_owned(), false),
        }
    }

    /// The number of messages in a member's history.
    pub(super) fn history(&self, who: &str) -> usize {
        self.agents[who].messages().len()
    }
}

fn system(name: &str) -> String {
    if name == "lead" {
        "You are the lead agent of Convoke.".to_owned()
    } else {
        format!("You are {name}, a teammate in Convoke.")
    }
}

fn tools(name: &str, plan: bool) -> Value {
    let file_tools = ["glob", "grep", "str_replace_based_edit_tool"];
    let lead = ["Workflow", "task", "spawn_teammate", "read_inbox", "request_shutdown", "review_plan"];
    let mate = ["idle", "claim_task", "answer_shutdown"];
    let both = [
        "send_message",
        "broadcast",
        "list_teammates",
        "task_create",
        "task_update",
        "task_get",
        "task_list",
        "todo",
        "compact",
        "recall",
    ];
    let own: &[&str] = if name == "lead" { &lead } else { &mate };
    let mut names: Vec<&str> = file_tools.iter().chain(own).chain(&both).copied().collect();
    names.extend(plan.then_some("submit_plan"));
    let declared = names
        .iter()
        .map(|name| json!({"name": name, "description": "A tool.", "input_schema": {"type": "object"}}));
    let bash = json!({"type": "bash_20250124", "name": "bash"});
    Value::from(std::iter::once(bash).chain(declared).collect::<Vec<_>>())
}
