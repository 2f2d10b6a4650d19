//! A tree of planted files, a loop that runs the model's commands in it, and a check that re-reads all
//! evidence.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::policy::{Answer, answer};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A directory that goes when it is dropped.
pub(super) struct Tree {
    root: PathBuf,
    unprivileged: bool,
}

impl Tree {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("convoke-offline-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let tree = Self { root, unprivileged: false };
        for (path, text) in files {
            tree.put(path, text);
        }
        tree
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let full = self.root.join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
    }

    /// Makes it a git repository; nothing is committed.
    pub(super) fn git(&self) {
        let done = Command::new("git").args(["init", "-q"]).current_dir(&self.root).status().unwrap();
        assert!(done.success());
    }

    /// From here on commands run as a user that is bound by this mode, and these paths have it.
    pub(super) fn lock(&mut self, mode: u32, paths: &[&str]) {
        for path in paths {
            fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        self.unprivileged = true;
    }

    pub(super) fn path(&self) -> &Path {
        &self.root
    }

    /// Plays the harness until the model ends; gives its whole history and the last reply.
    pub(super) fn play(&self, task: &str) -> Played {
        self.play_with(task, |_, result| result)
    }

    /// The same, with results changed on the way: the number of the call and what the command brought.
    pub(super) fn play_with(&self, task: &str, mut change: impl FnMut(usize, Value) -> Value) -> Played {
        let mut request = request(json!([{"role": "user", "content": task}]));
        let mut calls = 0;
        for _ in 0..40 {
            let reply = answer(&request);
            assert_eq!(reply, answer(&request), "the same request must get the same reply");
            if reply.stop_reason != "tool_use" {
                return Played { request, reply, calls };
            }
            let mut results = Vec::new();
            for call in reply.content.iter().filter(|block| block["type"] == "tool_use") {
                let command = call["input"]["command"].as_str().unwrap();
                let result =
                    json!({"type": "tool_result", "tool_use_id": call["id"], "content": self.run(command)});
                results.push(change(calls, result));
                calls += 1;
            }
            let messages = request["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": reply.content}));
            messages.push(json!({"role": "user", "content": results}));
        }
        panic!("the model never came to an end");
    }

    /// Runs a command as the harness does: no input, output cut to 8,000 characters.
    pub(super) fn run(&self, command: &str) -> String {
        let mut bash = if self.unprivileged { unprivileged_bash() } else { Command::new("bash") };
        let output =
            bash.args(["-c", command]).current_dir(&self.root).stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the commands are quiet");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.chars().count() <= 8_000, "a result must fit: {} characters", text.chars().count());
        text
    }

    /// Reads every piece of evidence again; gives how many there were.
    pub(super) fn check_evidence(&self, report: &str) -> usize {
        let mut checked = 0;
        for line in report.lines().filter_map(|line| line.strip_prefix("- `")) {
            let Some((place, rest)) = line.split_once('`') else { panic!("no place in {line:?}") };
            let Some((path, span)) = place.rsplit_once(':') else { continue };
            let (first, last) = span.split_once('-').unwrap_or((span, span));
            let first: usize = first.parse().unwrap();
            let last: usize = last.parse().unwrap();
            let text = fs::read(self.root.join(path.replace("\\n", "\n"))).unwrap();
            let lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(str::to_owned).collect();
            assert!(last <= lines.len(), "{place} is beyond the end");
            if let Some((_, quote)) = rest.split_once(": `") {
                let quote = quote.trim_end_matches('…').trim_matches(['`', ' ']);
                let real = lines[first - 1].replace('\t', " ");
                let real = real.trim();
                assert!(
                    real.trim_matches(['`', ' ']).starts_with(quote),
                    "{place} holds {real:?}, not {quote:?}"
                );
            } else {
                assert_eq!(last, lines.len(), "{place}");
            }
            checked += 1;
        }
        checked
    }
}

/// A shell that may not read everything: root changes to another user; any other user is restricted already.
fn unprivileged_bash() -> Command {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        return Command::new("bash");
    }
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash"]);
    // Git trusts no repository of another user unless it is told to.
    other.envs([
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ]);
    other
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A user that is not root has to unlock what was locked before it can be removed.
        let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(&self.root).stderr(Stdio::null()).status();
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A play that has ended.
pub(super) struct Played {
    pub(super) request: Value,
    pub(super) reply: Answer,
    pub(super) calls: usize,
}

impl Played {
    /// The text of the last reply.
    pub(super) fn report(&self) -> &str {
        assert_eq!(self.reply.stop_reason, "end_turn", "{:?}", self.reply);
        self.reply.content[0]["text"].as_str().unwrap()
    }

    /// Why there is no report.
    pub(super) fn refusal(&self) -> &str {
        assert_eq!((self.reply.stop_reason, self.reply.content.len()), ("refusal", 0), "{:?}", self.reply);
        self.reply.stop_details.as_ref().unwrap()["explanation"].as_str().unwrap()
    }

    /// How many replies there were, the last one included.
    pub(super) fn replies(&self) -> usize {
        self.request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "assistant").count() + 1
    }

    /// One section of the report.
    pub(super) fn section(&self, title: &str) -> &str {
        let report = self.report();
        let Some((_, rest)) = report.split_once(&format!("## {title}\n")) else {
            panic!("no {title:?} in\n{report}")
        };
        rest.split("\n## ").next().unwrap()
    }

    /// The places named in a section, in order.
    pub(super) fn places(&self, title: &str) -> Vec<String> {
        let lines = self.section(title).lines().filter_map(|line| line.strip_prefix("- `"));
        lines.filter_map(|line| Some(line.split_once('`')?.0.to_owned())).collect()
    }
}

pub(super) fn request(messages: Value) -> Value {
    json!({
        "model": "offline",
        "max_tokens": 1000,
        "system": "You are the lead.",
        "tools": [{"type": "bash_20250124", "name": "bash"}],
        "messages": messages,
    })
}

/// A function of exactly so many lines.
pub(super) fn rust_function(name: &str, lines: usize) -> String {
    format!("fn {name}() {{\n{}}}\n", "    let _x = 1;\n".repeat(lines - 2))
}
