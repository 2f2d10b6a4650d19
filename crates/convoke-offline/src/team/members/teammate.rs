//! A teammate: does what it holds, was asked or was written, in the order it came, and ends with what came of
//! it. It answers a letter that asks something once, never an answer, and rests where there is nothing to do.

use serde_json::{Value, json};

use super::history::{Event, Incoming, MemberHistory, alike};
use super::letters::{Letter, Sort};
use super::phrases::{ANSWERS, HANDS_IN, RESTS, STOPS};
use super::work::{self, Outcome, Working};
use super::{brief, phrases};
use crate::policy::{Answer, call_tools, text};
use crate::read::{Call, short};
use crate::team::{declares, many};

/// How many plans are handed in for one piece of work.
const PLANS: usize = 2;

pub(super) fn answer(request: &Value, story: &MemberHistory) -> Answer {
    let member = Member::of(request, story);
    let mut told = Vec::new();
    let mut rests = false;
    let current: Vec<(usize, &Incoming)> = story.heard_since(story.opened).collect();
    if let Some(note) = &story.last_reply {
        let cause = note.split(": this is the last reply").next().unwrap_or_default();
        return text(&format!("{} ended my work before it was done. {}", brief(cause, 120), member.so_far()));
    }
    // A request to stop goes before everything else.
    let stop = |heard: &Incoming| match heard {
        Incoming::Mail(letters) => letters.iter().any(|one| one.sort == Sort::ShutdownRequest),
        _ => false,
    };
    let stops: Vec<(usize, &Incoming)> = current.iter().filter(|(_, heard)| stop(heard)).copied().collect();
    for (at, heard) in if stops.is_empty() { current } else { stops } {
        for duty in member.duties(at, heard) {
            match duty {
                Duty::Call(say, tool, input) => {
                    return call_tools(&say, vec![(tool, input)], story.calls_so_far);
                }
                Duty::Told(said) => told.push(said),
                Duty::Rest => rests = true,
            }
        }
    }
    if told.is_empty() && rests && declares(request, "idle") {
        return call_tools("", vec![("idle", json!({}))], story.calls_so_far);
    }
    if told.is_empty() {
        told.push(RESTS.to_owned());
    }
    text(&told.join("\n"))
}

/// What follows from something that was heard.
enum Duty {
    /// This is called next, with what is said beside it.
    Call(String, &'static str, Value),
    /// It is settled, and this is said of it.
    Told(String),
    /// There is nothing to do but wait.
    Rest,
}

/// A teammate and what it knows.
struct Member<'a> {
    request: &'a Value,
    story: &'a MemberHistory,
    name: String,
    role: String,
}

impl<'a> Member<'a> {
    fn of(request: &'a Value, story: &'a MemberHistory) -> Self {
        let system = match &request["system"] {
            Value::String(text) => text.clone(),
            system => {
                system.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
            }
        };
        let behind = |sign: &str, end: [char; 2]| {
            let rest = system.split_once(sign)?.1;
            rest.split(end).next().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty())
        };
        let name = behind("You are ", [',', '.']).unwrap_or_else(|| "a teammate".to_owned());
        let role = behind("Your role: ", ['.', '\n']).unwrap_or_else(|| "teammate".to_owned());
        Self { request, story, name, role }
    }

    fn duties(&self, at: usize, heard: &Incoming) -> Vec<Duty> {
        match heard {
            Incoming::Asked(text) if self.needs_plan(at) => vec![self.plan(at, text)],
            Incoming::Asked(text) => vec![self.asked(at, text)],
            Incoming::Task { id, text } if self.needs_plan(at) => vec![self.plan(at, &subject(id, text))],
            Incoming::Task { id, text } => vec![self.task(at, id, text)],
            Incoming::Mail(letters) => letters.iter().map(|letter| self.letter(at, letter)).collect(),
        }
    }

    /// A wish: a message that is to be sent, a look, or to wait for work.
    fn asked(&self, at: usize, wish: &str) -> Duty {
        if let Some((to, message)) = message_wish(wish) {
            return self.send(at, &to, &message);
        }
        if work::waits(wish) {
            return Duty::Rest;
        }
        match self.work(at, wish) {
            Working::Next(say, (tool, input)) => Duty::Call(say.to_owned(), tool, input),
            Working::Ended(Outcome { said, .. }) => Duty::Told(said),
        }
    }

    /// A task in its hands: looked into, ended on the board, told.
    fn task(&self, at: usize, id: &str, text: &str) -> Duty {
        let subject = subject(id, text);
        let title = brief(subject.lines().next().unwrap_or_default(), 100);
        if let Some(update) =
            self.calls(at).into_iter().find(|call| call.name == "task_update" && call.input["task"] == id)
        {
            let result = update.input["result"].as_str().unwrap_or_default();
            return Duty::Told(match (update.is_error, update.input["status"] == "done") {
                (true, _) => {
                    let why = short(update.result.as_deref().unwrap_or_default());
                    format!("The board did not take my result of {id} ({title}): {why}. What I saw: {result}")
                }
                (false, true) => format!("{id} ({title}) is done: {result}"),
                (false, false) => format!("{id} ({title}) failed: {result}"),
            });
        }
        match self.work(at, &subject) {
            Working::Next(say, (tool, input)) => Duty::Call(say.to_owned(), tool, input),
            Working::Ended(Outcome { done, said }) => {
                let status = if done { "done" } else { "failed" };
                let input = json!({"task": id, "status": status, "result": said});
                Duty::Call(format!("Writing down what came of {id}."), "task_update", input)
            }
        }
    }

    fn letter(&self, at: usize, letter: &Letter) -> Duty {
        let Letter { from, sort, text, .. } = letter;
        let about = brief(text, 120);
        match sort {
            Sort::ShutdownRequest => self.stop(at, letter),
            Sort::PlanAnswer => self.planned(at, letter),
            Sort::Message if ["lead", "person"].contains(&from.as_str()) => {
                if message_wish(text).is_some() || work::is_known(text) || work::waits(text) {
                    self.asked(at, text)
                } else {
                    Duty::Told(format!(
                        "I have read what {from} wrote (“{about}”). No rule of the offline model asks more \
                            of me."
                    ))
                }
            }
            Sort::Message if asks(text) => self.reply(at, from, text),
            _ => Duty::Told(phrases::read(from, text)),
        }
    }

    /// An answer to a peer, once.
    fn reply(&self, at: usize, from: &str, text: &str) -> Duty {
        let sent = self
            .calls(self.story.opened)
            .into_iter()
            .find(|call| call.name == "send_message" && call.input["to"] == *from);
        if let Some(sent) = sent {
            return Duty::Told(match sent.is_error {
                false => phrases::answered(from, text),
                true => {
                    format!(
                        "My answer to {from} was refused: {}",
                        short(sent.result.as_deref().unwrap_or_default())
                    )
                }
            });
        }
        let mut said = format!("I am {} ({}), I have read this and I am here.", self.name, self.role);
        if work::is_known(text) {
            match self.work(at, text) {
                Working::Next(say, (tool, input)) => return Duty::Call(say.to_owned(), tool, input),
                Working::Ended(outcome) => said = outcome.said,
            }
        }
        let input = json!({"to": from, "text": phrases::reply(text, &said)});
        Duty::Call(format!("Answering {from}."), "send_message", input)
    }

    /// A message that is to be sent.
    fn send(&self, at: usize, to: &str, message: &str) -> Duty {
        let is_it = |call: &&Call| {
            call.name == "send_message"
                && call.input["to"] == *to
                && alike(call.input["text"].as_str().unwrap_or_default(), message)
        };
        match self.calls(at).into_iter().find(is_it) {
            None => {
                Duty::Call(format!("Writing to {to}."), "send_message", json!({"to": to, "text": message}))
            }
            Some(sent) if sent.is_error => Duty::Told(format!(
                "My letter to {to} was refused: {}",
                short(sent.result.as_deref().unwrap_or_default())
            )),
            Some(_) => Duty::Told(phrases::sent(to, message)),
        }
    }

    fn stop(&self, at: usize, letter: &Letter) -> Duty {
        let answered = self.calls(at).into_iter().find(|call| call.name == "answer_shutdown");
        match answered {
            None => {
                let input = json!({"approve": true, "reason": self.so_far(), "request": letter.request});
                Duty::Call("I agree to stop.".to_owned(), "answer_shutdown", input)
            }
            Some(call) if call.is_error => Duty::Told(format!(
                "My answer was refused: {}",
                short(call.result.as_deref().unwrap_or_default())
            )),
            Some(_) => Duty::Told(format!("{STOPS} {}", self.so_far())),
        }
    }

    /// Whether a plan has to be approved before what was heard here can be done.
    fn needs_plan(&self, at: usize) -> bool {
        declares(self.request, "submit_plan")
            && !self.answers(at).last().is_some_and(|answer| answer.approves)
    }

    /// The answers to plans since a place.
    fn answers(&self, at: usize) -> Vec<&Letter> {
        self.story.letters_since(at).filter(|letter| letter.sort == Sort::PlanAnswer).collect()
    }

    /// A plan for a piece of work that was heard here: one look, then the plan, then waiting.
    fn plan(&self, at: usize, work: &str) -> Duty {
        let calls = self.calls(at);
        let plans: Vec<&&Call> = calls.iter().filter(|call| call.name == "submit_plan").collect();
        let answers = self.answers(at);
        if plans.last().is_some_and(|plan| plan.is_error) {
            let why = short(plans.last().and_then(|plan| plan.result.as_deref()).unwrap_or_default());
            return Duty::Told(format!("My plan could not be handed in: {why}"));
        }
        if plans.len() > answers.len() {
            return Duty::Rest;
        }
        if plans.len() >= PLANS {
            return Duty::Told(format!(
                "My plan was rejected {}; I leave the work undone.",
                many(PLANS as u64, "time")
            ));
        }
        let looked = calls.iter().find(|call| call.name == "glob");
        if looked.is_none() && declares(self.request, "glob") {
            return Duty::Call("Looking first.".to_owned(), "glob", json!({"pattern": "**/*"}));
        }
        let files =
            looked.filter(|call| !call.is_error).and_then(|call| call.result.as_deref()).unwrap_or_default();
        let files: Vec<&str> = files
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(['(', '[']))
            .collect();
        let mut plan = format!(
            "{} for: {}.\n1. Look at what it is about: {} here{}.\n2. Change nothing: the offline model \
             only reads, so what has to be touched is reported with its place.\n3. Check: every place is a \
             line that a command printed.\n",
            if answers.is_empty() { "Plan" } else { "Second plan" },
            brief(work, 200).trim_end_matches('.'),
            many(files.len() as u64, "file"),
            files.first().map(|first| format!(", first {first}")).unwrap_or_default()
        );
        if let Some(answer) = answers.last() {
            plan += &format!(
                "4. Undo: nothing has to be undone, because nothing is written.\nAnswers the rejection: {}\n",
                brief(&answer.text, 200)
            );
        }
        Duty::Call(HANDS_IN.to_owned(), "submit_plan", json!({"plan": plan}))
    }

    /// What follows from the answer to a plan: the work it was for, or another plan.
    fn planned(&self, at: usize, letter: &Letter) -> Duty {
        let earlier = self.story.events[..at].iter().enumerate().rev();
        let mut origins = earlier.filter_map(|(place, event)| match event {
            Event::Received(heard @ (Incoming::Task { .. } | Incoming::Asked(_))) => Some((place, heard)),
            _ => None,
        });
        let Some((place, origin)) = origins.next() else {
            return Duty::Told("I do not know any more what the plan was for.".to_owned());
        };
        match origin {
            Incoming::Task { id, text } if letter.approves => self.task(at, id, text),
            Incoming::Task { id, text } => self.plan(place, &subject(id, text)),
            Incoming::Asked(wish) if letter.approves => match self.asked(at, wish) {
                Duty::Told(said) => Duty::Told(format!("My plan was approved. {said}")),
                duty => duty,
            },
            Incoming::Asked(wish) => self.plan(place, wish),
            Incoming::Mail(_) => Duty::Rest,
        }
    }

    fn work(&self, at: usize, text: &str) -> Working {
        work::next(text, &self.calls(at), &|name| declares(self.request, name))
    }

    fn calls(&self, at: usize) -> Vec<&'a Call> {
        self.story.calls_since(at).collect()
    }

    /// What is in its hands, in a sentence.
    fn so_far(&self) -> String {
        let ended = |id: &str| {
            let mut updates =
                self.story.calls_since(0).filter(|call| call.name == "task_update" && !call.is_error);
            updates.any(|call| call.input["task"] == *id)
        };
        let open = self.story.heard_since(0).filter_map(|(_, heard)| match heard {
            Incoming::Task { id, .. } if !ended(id) => Some(id.as_str()),
            _ => None,
        });
        open.last().map_or_else(
            || "Nothing of mine is left open.".to_owned(),
            |id| format!("{id} is left unfinished."),
        )
    }
}

/// The subject of a task and its description, from the text that hands it over.
fn subject(id: &str, text: &str) -> String {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("task: ")?.strip_prefix(id))
        .unwrap_or_default()
        .trim();
    let line = line.rsplit_once(" (#").map_or(line, |(line, _)| line);
    let behind = text.lines().skip_while(|line| line.trim() != "description:").skip(1);
    let description: Vec<&str> = behind.map_while(super::history::unbarred).collect();
    format!("{line}\n{}", description.join("\n")).trim().to_owned()
}

/// The receiver and the text, if a wish asks for a message to be sent: "Send bob a message: …".
fn message_wish(wish: &str) -> Option<(String, String)> {
    let (head, message) = wish.split_once(':')?;
    let words = super::request::words(head);
    let first = words.first()?;
    let to = words.get(1)?;
    let fits = words.len() <= 5
        && ["send", "message"].contains(&first.as_str())
        && words.iter().any(|word| word == "message");
    let message = message.trim().trim_matches('"').to_owned();
    (fits && !message.is_empty()).then(|| (to.clone(), message))
}

/// Whether a letter wants an answer.
fn asks(text: &str) -> bool {
    let low = text.to_lowercase();
    !text.trim_start().starts_with(ANSWERS)
        && (text.contains('?') || low.contains("please") || low.contains("let me know"))
}
