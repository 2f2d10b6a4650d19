//! Making teammates, looking at them, and the two requests that are answered: to stop, and to approve a plan.

use convoke_kernel::{
    AgentId, Isolation, LEAD, LetterKind, MemberName, RequestKind, RosterEntry, SpawnCall, Teammate, Tools,
    known_tools,
};

use super::{Act, ActContext, Done, Starts, describe};
use crate::change_recorder::AgentWorktree;
use crate::error::Error;
use crate::team::client;

/// A new teammate.
pub(super) async fn spawn(scene: &ActContext<'_>, wanted: &SpawnCall) -> Done {
    let refuse = |why: String| format!("Not spawned: {why}");
    let name: MemberName =
        wanted.name.trim().parse().map_err(|bad: convoke_kernel::BadName| refuse(bad.to_string()))?;
    if wanted.prompt.trim().is_empty() {
        return Err(refuse(format!("say in the prompt what {name} is to do first")));
    }
    let mut unknown = wanted.tools.as_ref().map(|names| known_tools(names).1).unwrap_or_default();
    unknown.retain(|name| scene.parent.spec.given().iter().all(|tool| tool.name != *name));
    if !unknown.is_empty() {
        let known = Tools::all().names().join(", ");
        return Err(refuse(format!("there is no tool {}; there are {known}", unknown.join(", "))));
    }
    let role = wanted.role.trim().to_owned();
    let session = &scene.parent.spec.session;
    let generation = scene.roster.generation(name.as_str()).to_string();
    let agent = AgentId::derived(&["teammate", session.as_str(), name.as_str(), &generation]);
    let settings = Teammate {
        name: name.to_string(),
        role: role.clone(),
        requires_plan: wanted.require_plan,
        tools: wanted.tools.clone(),
        isolation: wanted.isolation,
    };
    let Some(mut spec) = scene.parent.spec.teammate(settings) else {
        return Err(refuse("only the lead of a team makes teammates".to_owned()));
    };
    let said = format!(
        "Spawned '{name}' (role: {role}). It begins with its prompt now and then claims tasks from the \
         board by itself. What it comes to and what it writes is delivered to you by itself, so do not wait \
         for it or look after it: go on, or end your turn."
    );
    let agent_id = agent.clone();
    let requires_plan = wanted.require_plan;
    let by = scene.me.name.clone();
    let entry = RosterEntry::Spawn { name, role, agent: agent_id, requires_plan, by };
    let act = Act { roster: vec![entry], ..Act::says(said) };
    // Before anything is made for a teammate that the team does not take.
    scene.after(&act).map_err(refuse)?;
    if wanted.isolation == Isolation::Worktree {
        // Never the main checkout in its stead: the lead decides what to do without one.
        let made = AgentWorktree::make(scene.parent, &agent).await;
        spec.dir = made.map_err(|why| refuse(format!("no worktree could be made: {why}")))?.dir();
    }
    Ok(Act { starts: vec![Starts { agent, spec, prompt: wanted.prompt.clone() }], ..act })
}

/// The members, and what they do.
pub(super) async fn list(scene: &ActContext<'_>) -> Result<Done, Error> {
    let rows = client::rows(&scene.parent.config.journal, &scene.roster, &scene.board).await?;
    let mut lines: Vec<String> = Vec::new();
    for row in &rows {
        let member = &row.member;
        let you = if member.name == scene.me.name { ", you" } else { "" };
        let mut line =
            format!("- {} ({}{you}): {}", member.name, describe::one_line(&member.role), row.state.word());
        if let Some(why) = &row.why {
            line.push_str(&format!(" ({})", describe::one_line(why)));
        }
        if let Some(task) = &row.task {
            line.push_str(&format!(", holds {} '{}'", task.id, describe::one_line(&task.subject)));
        }
        if member.waiting > 0 {
            line.push_str(&format!(", {} unread", member.waiting));
        }
        lines.push(line);
    }
    let team = describe::one_line(&scene.me.team);
    let empty = if rows.len() < 2 { "\nThere are no teammates yet." } else { "" };
    Ok(Ok(Act::says(format!("Team {team}:\n{}{empty}", lines.join("\n")))))
}

/// The wish that a teammate stops.
pub(super) fn request_shutdown(scene: &ActContext<'_>, name: &str, reason: &str) -> Done {
    let patience = scene.parent.config.team.shutdown;
    let deadline = scene.at.saturating_add(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX));
    let member = scene.roster.recipient(name.trim()).map_err(|refusal| refusal.to_string())?;
    let to = member.name.clone();
    let request = scene.letter_id(&member.name);
    let text = match reason.trim() {
        "" => format!("{} asks you to stop.", scene.me.name),
        reason => reason.to_owned(),
    };
    let mut letter = scene.letter(&to, 0, LetterKind::ShutdownRequest, &text)?;
    letter.request = Some(request.clone());
    let said = format!(
        "Asked {to} to stop ({request}). Its answer is delivered to you; if there is none within {} s it is \
         stopped. Either way a task in its hands goes back to the board.",
        patience.as_secs()
    );
    let entry = RosterEntry::AskShutdown { request, from: scene.me.name.clone(), to, deadline };
    Ok(Act { roster: vec![entry], letters: vec![letter], ..Act::says(said) })
}

/// The answer to it.
pub(super) fn answer_shutdown(
    scene: &ActContext<'_>,
    said: Option<&str>,
    approve: bool,
    reason: &str,
) -> Done {
    let name = &scene.me.name;
    let (request, asked) = scene.request(RequestKind::Shutdown, said.unwrap_or_default(), name)?;
    let entry = RosterEntry::AnswerShutdown { request: request.clone(), by: name.clone(), approve };
    let mut letters = Vec::new();
    // A person has no mail: the roster shows what became of the request.
    if asked.from == LEAD {
        let text = match (reason.trim(), approve) {
            ("", true) => format!("{name} stops."),
            ("", false) => format!("{name} goes on."),
            (reason, _) => reason.to_owned(),
        };
        let mut letter = scene.letter(LEAD, 0, LetterKind::ShutdownAnswer, &text)?;
        letter.request = Some(request);
        letter.approve = Some(approve);
        letters.push(letter);
    }
    let said = match approve {
        true => {
            "Agreed. End your turn now, with a last word on what is done and what is left; you are stopped \
                after it."
        }
        false => "Refused. You stay in the team: go on with your work.",
    };
    Ok(Act { roster: vec![entry], letters, ..Act::says(said) })
}

/// A plan that is to be approved, for the task in the caller's hands.
pub(super) fn submit_plan(scene: &ActContext<'_>, plan: &str) -> Done {
    if plan.trim().is_empty() {
        return Err("Not handed in: the plan is empty.".to_owned());
    }
    let request = scene.letter_id(LEAD);
    let from = scene.me.name.clone();
    let task = scene.board.held_by(&scene.parent.id).map(|task| task.id.clone());
    let mut letter = scene.letter(LEAD, 0, LetterKind::PlanRequest, plan)?;
    letter.request = Some(request.clone());
    letter.task = task.clone();
    let about = task.as_ref().map_or(String::new(), |task| format!(" for {task}"));
    let said = format!(
        "Handed in your plan{about} ({request}). The answer is delivered to you; until it is approved you \
         can look and change nothing. End your turn if there is nothing left to look at."
    );
    let entry = RosterEntry::AskPlan { request, from, task };
    Ok(Act { roster: vec![entry], letters: vec![letter], ..Act::says(said) })
}

/// The answer to a plan.
pub(super) fn review_plan(scene: &ActContext<'_>, said: &str, approve: bool, feedback: &str) -> Done {
    let (request, plan) = scene.request(RequestKind::Plan, said, LEAD)?;
    let text = match (feedback.trim(), approve) {
        ("", true) => "Your plan is approved.".to_owned(),
        ("", false) => return Err("Not answered: say in feedback what is to be better.".to_owned()),
        (feedback, _) => feedback.to_owned(),
    };
    let mut letter = scene.letter(&plan.from, 0, LetterKind::PlanAnswer, &text)?;
    letter.request = Some(request.clone());
    letter.approve = Some(approve);
    letter.task = plan.task.clone();
    let what = if approve { "Approved" } else { "Sent back" };
    let told = format!("{what} the plan of {} ({request}); it is told.", plan.from);
    let entry = RosterEntry::AnswerPlan { request, by: scene.me.name.clone(), approve };
    Ok(Act { roster: vec![entry], letters: vec![letter], ..Act::says(told) })
}
