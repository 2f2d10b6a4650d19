//! What an agent must know of itself whatever became of its history: put into the first request after a
//! compaction or a resume, built from the journal and never from what a model wrote about itself, and checked
//! by this code before it is sent.

use crate::run::{one_line, quoted};
use crate::team::Task;
use crate::todo::{TodoItem, mark};

/// The first line of a capsule.
pub(crate) const WHO_YOU_ARE: &str = "[who you are]";

/// Characters of a result that a task is handed over with; the rest can be asked for.
const RESULT_SHOWN: usize = 8_000;

/// A task as it is handed over: whole, with what it depended on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TaskBrief {
    /// The task.
    pub task: Task,
    /// What it depended on: id, subject and result of each.
    pub after: Vec<(String, String, String)>,
}

/// What only the journal's shared streams know.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Facts {
    /// The other members: name, role, state in a word.
    pub members: Vec<(String, String, String)>,
    /// The task that it holds.
    pub task: Option<TaskBrief>,
    /// Letters that wait: the sender, and how many.
    pub unread: Vec<(String, u32)>,
    /// What is left of the budget, in words.
    #[serde(rename = "envelope")]
    pub budget: String,
    /// Requests that wait for an answer of its own or of another member, one line each.
    pub requests: Vec<String>,
}

impl Facts {
    /// No text of these facts has more bytes than this.
    pub(crate) fn bytes(&self) -> usize {
        // Quoting a text line by line, and escaping it, makes it longer.
        serde_json::to_string(self).map_or(0, |text| 2 * text.len())
    }
}

/// Everything that an agent must know of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capsule {
    /// Its name.
    pub name: String,
    /// What it is there for.
    pub role: String,
    /// The team.
    pub team: String,
    /// Whether orchestration mode is on; absent for one without the switch.
    pub mode: Option<bool>,
    /// Runs in the background.
    pub running: Vec<String>,
    /// What it may do, in words: its tools, whether its plan is approved, how it is confined.
    pub authority: String,
    /// Its own list.
    pub todo: Vec<TodoItem>,
    /// What the shared streams know.
    pub facts: Facts,
}

impl Capsule {
    /// The text that the model reads. Texts that agents wrote stand quoted in it, or on one line behind a
    /// label of ours.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{WHO_YOU_ARE}\n\
Told by Convoke from its own records and not said by the person. Where an older text says something else, \
this holds.\n"
        );
        let mut say = |label: &str, words: &str| text.push_str(&format!("{label}: {words}\n"));
        say("name", &one_line(&self.name));
        say("role", &one_line(&self.role));
        say("team", &one_line(&self.team));
        let facts = &self.facts;
        for (name, role, state) in &facts.members {
            say("member", &format!("{}, {} ({})", one_line(name), one_line(state), one_line(role)));
        }
        if facts.members.is_empty() {
            say("member", "none beside you");
        }
        if let Some(on) = self.mode {
            say("mode", if on { "on" } else { "off" });
        }
        let budget = one_line(&facts.budget);
        say("budget", if budget.is_empty() { "not known" } else { &budget });
        say("authority", &one_line(&self.authority));
        for (from, count) in &facts.unread {
            let letters = if *count == 1 { "letter" } else { "letters" };
            say("unread", &format!("{}, {count} {letters}", one_line(from)));
        }
        if facts.unread.is_empty() {
            say("unread", "none");
        }
        lines_or_none(&mut say, "request", &facts.requests);
        lines_or_none(&mut say, "running", &self.running);
        for item in &self.todo {
            say("todo", &format!("{} {}", mark(item.status), one_line(&item.text)));
        }
        if self.todo.is_empty() {
            say("todo", "none");
        }
        match &facts.task {
            None => say("task", "none"),
            Some(brief) => text.push_str(&brief.text()),
        }
        text
    }

    /// The facts that are missing in a text; empty if all are there. It looks at the text alone and not at
    /// how [`text`](Self::text) was made. The text is the one that the model reads, not its JSON. Only lines
    /// that begin with the label count: what a model wrote stands behind a bar and proves nothing.
    pub fn missing_in(&self, text: &str) -> Vec<&'static str> {
        let mut missing = Vec::new();
        for (label, words) in self.wanted() {
            if !missing.contains(&label) && !text.lines().any(|line| says(line, label, &words)) {
                missing.push(label);
            }
        }
        missing
    }

    /// Every fact: its label, and the words that have to stand behind it one after the other.
    fn wanted(&self) -> Vec<(&'static str, Vec<String>)> {
        let none = || vec!["none".to_owned()];
        let mut wanted = vec![
            ("name", vec![self.name.clone()]),
            ("role", vec![self.role.clone()]),
            ("team", vec![self.team.clone()]),
            ("budget", vec![self.facts.budget.clone()]),
            ("authority", vec![self.authority.clone()]),
        ];
        wanted.extend(self.mode.map(|on| ("mode", vec![if on { "on" } else { "off" }.to_owned()])));
        let facts = &self.facts;
        let mut each = |label: &'static str, all: Vec<Vec<String>>| match all.is_empty() {
            true => wanted.push((label, none())),
            false => wanted.extend(all.into_iter().map(|words| (label, words))),
        };
        each(
            "member",
            facts.members.iter().map(|(name, _, state)| vec![name.clone(), state.clone()]).collect(),
        );
        each(
            "unread",
            facts.unread.iter().map(|(from, count)| vec![from.clone(), count.to_string()]).collect(),
        );
        each("request", facts.requests.iter().map(|request| vec![request.clone()]).collect());
        each("running", self.running.iter().map(|run| vec![run.clone()]).collect());
        each(
            "todo",
            self.todo.iter().map(|item| vec![mark(item.status).to_owned(), item.text.clone()]).collect(),
        );
        let task = |brief: &TaskBrief| vec![brief.task.id.to_string(), brief.task.subject.clone()];
        each("task", facts.task.iter().map(task).collect());
        wanted
    }
}

impl TaskBrief {
    /// The whole task, as its holder reads it.
    pub(crate) fn text(&self) -> String {
        let task = &self.task;
        let mut text = format!("task: {} {} (#{})\n", task.id, one_line(&task.subject), task.number);
        text.push_str(&format!("written by: {}\n", one_line(&task.by)));
        if task.attempts > 1 {
            text.push_str(&format!(
                "attempts: this is claim {} of it, so look first at what was left behind by those before \
                    you\n",
                task.attempts
            ));
        }
        match task.description.trim() {
            "" => text.push_str("description: none, the subject is all there is\n"),
            description => text.push_str(&block("description:", description)),
        }
        if let Some(criteria) = task.criteria.as_deref().filter(|criteria| !criteria.trim().is_empty()) {
            text.push_str(&block("done when:", criteria));
        }
        for (id, subject, result) in &self.after {
            let head = format!("after: {} {}", one_line(id), one_line(subject));
            match result.trim() {
                "" => text.push_str(&format!("{head}, which left no result\n")),
                result => {
                    let shown: String = result.chars().take(RESULT_SHOWN).collect();
                    text.push_str(&block(&format!("{head}, which came to:"), &shown));
                    if shown.len() < result.len() {
                        let id = one_line(id);
                        text.push_str(&format!(
                            "That is its beginning; task_get {id} shows all {} bytes.\n",
                            result.len()
                        ));
                    }
                }
            }
        }
        text
    }
}

fn lines_or_none(say: &mut impl FnMut(&str, &str), label: &str, lines: &[String]) {
    for line in lines {
        say(label, &one_line(line));
    }
    if lines.is_empty() {
        say(label, "none");
    }
}

fn block(head: &str, text: &str) -> String {
    format!("{head}\n{}", quoted("| ", "| ", text))
}

/// Whether a line says these words right behind its label and one after the other.
fn says(line: &str, label: &str, words: &[String]) -> bool {
    const BETWEEN: [char; 2] = [' ', ','];
    let goes_on = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let Some(mut rest) = line.strip_prefix(label).and_then(|rest| rest.strip_prefix(':')) else {
        return false;
    };
    for words in words {
        let words = one_line(words);
        let words = words.trim_start_matches(BETWEEN);
        match rest.trim_start_matches(BETWEEN).strip_prefix(words) {
            // A longer name that begins with this one is another name.
            Some(after) if words.is_empty() || !after.starts_with(goes_on) => rest = after,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
