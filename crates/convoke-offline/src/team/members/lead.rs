//! The lead of a team: from the person's words a few calls, those that depend on each other one after the
//! other, then a short text; woken by letters it reviews plans as the person said and tells what came in. It
//! answers no result, so it comes to an end.

use serde_json::{Value, json};

use super::history::{Incoming, MemberHistory, alike};
use super::letters::{Letter, Sort, first_id};
use super::names::Spawn;
use super::report;
use super::request::{self, TeamRequest};
use crate::policy::{Answer, call_tools, text};
use crate::read::Call;

/// Where a team's business begins in the history, and what the person wished for there.
pub(super) struct Business<'a> {
    pub(super) story: &'a MemberHistory,
    pub(super) start: usize,
    pub(super) wishes: TeamRequest,
}

/// The reply of a team's lead; none if what was asked last is no team's business.
pub(super) fn answer(story: &MemberHistory) -> Option<Answer> {
    let woken = match story.heard_since(story.opened).next() {
        Some((_, Incoming::Mail(_))) => true,
        Some((_, Incoming::Asked(_) | Incoming::Task { .. })) => false,
        // A reply that only ends what was begun: nothing new was heard.
        None => return None,
    };
    // Letters belong to the last business of the team's, whatever was asked since; a person's words are the
    // latest or none.
    let asked: Vec<(usize, &str)> = story.asked().collect();
    let spoken = asked.iter().rev().take(if woken { asked.len() } else { 1 });
    let wished = spoken
        .filter_map(|(start, asked)| Some((*start, request::read(asked, &known(story, *start))?)))
        .next();
    let business = match wished {
        Some((start, wishes)) => Business { story, start, wishes },
        None if woken => Business { story, start: 0, wishes: TeamRequest::default() },
        None => return None,
    };
    if story.last_reply.is_none() {
        let calls = business.next_calls();
        if !calls.is_empty() {
            return Some(call_tools(business.say(&calls), calls, story.calls_so_far));
        }
    }
    Some(text(&if woken { report::news(&business) } else { report::set_up(&business) }))
}

/// What is said of letters that came while the lead did something that is no team's business.
pub(super) fn told_beside(story: &MemberHistory) -> Option<String> {
    let opened = story.heard_since(story.opened).next();
    let Some((start, Incoming::Asked(asked))) = opened else { return None };
    if request::read(asked, &known(story, start)).is_some() {
        return None;
    }
    let letters: Vec<&Letter> = story.letters_since(story.opened).collect();
    (!letters.is_empty()).then(|| format!("\n\nMail came in:\n{}", report::lines(&letters, &[], true)))
}

/// The members that are known before a place in the history.
pub(super) fn known(story: &MemberHistory, before: usize) -> Vec<String> {
    let events = &story.events[..before];
    let mut known = story.members.clone();
    for event in events {
        match event {
            super::history::Event::Called(call) if call.name == "spawn_teammate" && !call.is_error => {
                known.extend(call.input["name"].as_str().map(str::to_owned));
            }
            super::history::Event::Received(Incoming::Mail(letters)) => {
                known.extend(letters.iter().map(|letter| letter.from.clone()))
            }
            _ => {}
        }
    }
    known.retain(|name| !["lead", "person", "convoke"].contains(&name.as_str()));
    known.sort();
    known.dedup();
    known
}

impl Business<'_> {
    /// The calls since the person spoke.
    pub(super) fn calls(&self, name: &str) -> Vec<&Call> {
        self.story.calls_since(self.start).filter(|call| call.name == name).collect()
    }

    /// What is to be called now: the first stage with something that was not called yet.
    fn next_calls(&self) -> Vec<(&'static str, Value)> {
        let wishes = &self.wishes;
        let mut stages = self.task_stages();
        let spawns = wishes.spawns.iter().filter(|one| !self.is_member(&one.name)).map(|one| self.spawn(one));
        stages.push(spawns.collect());
        let letters =
            wishes.letters.iter().map(|(to, text)| ("send_message", json!({"to": to, "text": text})));
        let broadcasts = wishes.broadcasts.iter().map(|text| ("broadcast", json!({"text": text})));
        stages.push(letters.chain(broadcasts).collect());
        let reason = "The person asked for it.";
        let stop = |name: &String| ("request_shutdown", json!({"name": name, "reason": reason}));
        stages.push(wishes.shutdowns.iter().map(stop).collect());
        stages.push(wishes.looks.iter().map(|tool| (*tool, json!({}))).collect());
        stages.push(self.reviews());
        for stage in stages {
            let left: Vec<(&str, Value)> =
                stage.into_iter().filter(|(tool, input)| !self.is_made(tool, input)).collect();
            if !left.is_empty() {
                return left;
            }
        }
        Vec::new()
    }

    /// The tasks in waves. Those that depend on each other: the first alone, the last alone, what is between
    /// them side by side.
    fn task_stages(&self) -> Vec<Vec<(&'static str, Value)>> {
        let tasks = &self.wishes.tasks;
        let create = |subject: &String, after: &[String]| {
            let mut input = json!({"subject": subject, "description": DESCRIPTION});
            if !after.is_empty() {
                input["blocked_by"] = json!(self.ids(after));
            }
            ("task_create", input)
        };
        match tasks.as_slice() {
            [first, between @ .., last] if self.wishes.ordered => {
                let first = std::slice::from_ref(first);
                let before_last = if between.is_empty() { first } else { between };
                // What it would depend on may have been refused: then it is not written either.
                let can = |after: &[String]| after.iter().all(|subject| self.id(subject).is_some());
                let between = between.iter().filter(|_| can(first)).map(|subject| create(subject, first));
                let last =
                    Some(last).filter(|_| can(before_last)).map(|subject| create(subject, before_last));
                vec![vec![create(&first[0], &[])], between.collect(), last.into_iter().collect()]
            }
            tasks => vec![tasks.iter().map(|subject| create(subject, &[])).collect()],
        }
    }

    /// The id of a task that was written, by its subject.
    pub(super) fn id(&self, subject: &str) -> Option<String> {
        let call = self
            .calls("task_create")
            .into_iter()
            .find(|call| call.input["subject"] == *subject && !call.is_error)?;
        first_id(call.result.as_deref()?, "t_")
    }

    fn ids(&self, subjects: &[String]) -> Vec<String> {
        subjects.iter().filter_map(|subject| self.id(subject)).collect()
    }

    fn spawn(&self, one: &Spawn) -> (&'static str, Value) {
        let board = !self.wishes.tasks.is_empty();
        let prompt = match &one.work {
            Some(work) => work.clone(),
            None if one.plan => "Count the lines by language".to_owned(),
            None if board || self.wishes.letters.is_empty() => BOARD.to_owned(),
            None => LETTERS.to_owned(),
        };
        let mut input = json!({"name": one.name, "role": one.role, "prompt": prompt});
        if one.plan {
            input["require_plan"] = json!(true);
        }
        ("spawn_teammate", input)
    }

    /// Plans that wait, answered as the person said; without a word of the person's they wait on.
    fn reviews(&self) -> Vec<(&'static str, Value)> {
        let mut verdicts = Vec::new();
        let open = open_plans(self.story);
        let answered = self.calls("review_plan").len();
        for (number, plan) in open.iter().enumerate() {
            let all = &self.wishes.verdicts;
            let Some(approve) = all.get(answered + number).or(all.last()) else { break };
            let feedback = if *approve { "Approved, as the person asked." } else { REJECTED };
            verdicts.push((
                "review_plan",
                json!({"request": plan.request, "approve": approve, "feedback": feedback}),
            ));
        }
        verdicts
    }

    /// Whether this is a member that the harness counts already, though no call in this history made it.
    fn is_member(&self, name: &str) -> bool {
        let called = self.calls("spawn_teammate").iter().any(|call| call.input["name"] == *name);
        !called && self.story.continued && self.story.members.iter().any(|member| member == name)
    }

    /// Whether this was called since the person spoke, whatever came of it.
    fn is_made(&self, tool: &str, input: &Value) -> bool {
        let same = |call: &&Call| {
            ["name", "subject", "to", "text", "request"].iter().all(|member| {
                let said = |value: &Value| value[*member].as_str().unwrap_or_default().to_owned();
                alike(&said(&call.input), &said(input))
            })
        };
        self.calls(tool).iter().any(same)
    }

    fn say(&self, calls: &[(&str, Value)]) -> &'static str {
        match calls.first().map(|(tool, _)| *tool) {
            Some("task_create") => "Writing tasks on the board.",
            Some("spawn_teammate") => "Spawning teammates.",
            Some("send_message" | "broadcast") => "Writing to the team.",
            Some("request_shutdown") => "Asking to stop.",
            Some("review_plan") => "Answering the plan.",
            _ => "Looking it up.",
        }
    }
}

/// Plans without an answer, oldest first. A later plan takes the place of its author's earlier one.
pub(super) fn open_plans(story: &MemberHistory) -> Vec<&Letter> {
    let answered = |request: &str| {
        story.calls_since(0).any(|call| call.name == "review_plan" && call.input["request"] == *request)
    };
    let mut open: Vec<&Letter> = Vec::new();
    for plan in story.letters_since(0).filter(|letter| letter.sort == Sort::PlanRequest) {
        open.retain(|other| other.from != plan.from);
        if !answered(&plan.request) {
            open.push(plan);
        }
    }
    open
}

const DESCRIPTION: &str = "Only look; change nothing. The result says what the commands printed.";
const BOARD: &str = "Find work on the task board: what you can do is claimed for you. End each task with \
    its result, and call idle when there is nothing left.";
const LETTERS: &str =
    "Wait for letters of your team and do what they ask. Call idle when there is nothing to do.";
const REJECTED: &str = "Rejected, as the person asked: it does not say what is changed where, how it is \
    checked and how it is undone. Hand in a smaller plan that does.";
