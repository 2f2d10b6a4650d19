//! What follows from an entry: every rule of the roster. It reads the roster and writes nothing.

use super::{
    LetterHeader, LetterPosted, LettersPutBack, LettersTaken, Member, MemberAsleep, MemberAwake,
    MemberFailed, MemberRecovered, MemberSpawned, MemberStopped, QUEUE, Request, RequestAnswered,
    RequestAsked, RequestKind, RequestState, RestsTold, Roster, RosterEntry, RosterEvent, RosterOpened,
    RosterRefusal, Standing, refusals,
};
use crate::ids::MessageId;
use crate::team::{CONVOKE, LEAD, LetterKind, PERSON};

/// Teammates that have not stopped; the lead is not counted.
pub(super) const TEAMMATES: usize = 100;
/// Characters of a role.
pub(super) const ROLE: usize = 80;

type Decided = Result<Vec<RosterEvent>, RosterRefusal>;

/// What follows from an entry at this time.
pub(super) fn decide(roster: &Roster, entry: &RosterEntry, at: u64) -> Decided {
    let opened = roster.member(LEAD).is_some();
    if !opened && !matches!(entry, RosterEntry::Open { .. }) {
        let text = "internal error: this session has no team yet; a team is opened before \
            anything is done to it";
        return Err(RosterRefusal::Impossible(text.to_owned()));
    }
    match entry {
        RosterEntry::Open { .. } if opened => Ok(Vec::new()),
        RosterEntry::Open { lead } => Ok(vec![RosterOpened { lead: lead.clone() }.into()]),
        RosterEntry::Spawn { .. } => spawn(roster, entry),
        RosterEntry::Post(header) => post(roster, header),
        RosterEntry::Take { name, letters } => {
            let member = named(roster, name)?;
            let event = LettersTaken { name: member.name.clone(), letters: letters.clone() };
            Ok(unless(letters.is_empty(), event))
        }
        RosterEntry::PutBack { name, letters } => {
            let member = named(roster, name)?;
            let event = LettersPutBack { name: member.name.clone(), letters: letters.clone() };
            Ok(unless(letters.is_empty(), event))
        }
        RosterEntry::AskPlan { request, from, task } => {
            let member = teammate(roster, from, "the lead needs no approval for a plan")?;
            unused(roster, request)?;
            let mut events = expired_plans(roster, &member.name, &member.name);
            let from = member.name.clone();
            let task = task.clone();
            let request = request.clone();
            let to = LEAD.to_owned();
            events.push(
                RequestAsked { request, kind: RequestKind::Plan, from, to, task, deadline: None }.into(),
            );
            Ok(events)
        }
        RosterEntry::AnswerPlan { request, by, approve } => {
            if by != LEAD && by != PERSON {
                let text = format!("{by} cannot answer a plan: the lead or a person does");
                return Err(RosterRefusal::Impossible(text));
            }
            pending(roster, request, RequestKind::Plan)?;
            Ok(vec![answered(request, *approve, by)])
        }
        RosterEntry::AskShutdown { request, from, to, deadline } => {
            let member = teammate(roster, to, "the lead stops with its session, not on request")?;
            if let Standing::Stopping { request: open, .. } = &member.standing {
                let text = format!(
                    "{to} has been asked to stop already, by the request {open}: wait for its answer"
                );
                return Err(RosterRefusal::Impossible(text));
            }
            unused(roster, request)?;
            let request = request.clone();
            let from = from.clone();
            let to = to.clone();
            let kind = RequestKind::Shutdown;
            let deadline = Some(*deadline);
            Ok(vec![RequestAsked { request, kind, from, to, task: None, deadline }.into()])
        }
        RosterEntry::AnswerShutdown { request, by, approve } => {
            let asked = pending(roster, request, RequestKind::Shutdown)?;
            if asked.to != *by {
                let text =
                    format!("the request {request} asks {} to stop, so {by} cannot answer it", asked.to);
                return Err(RosterRefusal::NoRequest(text));
            }
            Ok(vec![answered(request, *approve, by)])
        }
        RosterEntry::Stop { name, why } => stop(roster, name, why, at),
        RosterEntry::Fail { name, why } => {
            // A member that is stopping goes on stopping: a failure must not make it work again.
            let ends =
                matches!(named(roster, name)?.standing, Standing::Stopping { .. } | Standing::Stopped { .. });
            Ok(unless(ends, MemberFailed { name: name.clone(), why: why.clone() }))
        }
        RosterEntry::Recover { name } => {
            let failed = matches!(named(roster, name)?.standing, Standing::Failed { .. });
            Ok(unless(!failed, MemberRecovered { name: name.clone() }))
        }
        RosterEntry::Sleep { name } => {
            let member = named(roster, name)?;
            Ok(unless(member.asleep.is_some() || has_stopped(member), MemberAsleep { name: name.clone() }))
        }
        RosterEntry::Wake { name } => {
            let member = named(roster, name)?;
            Ok(unless(member.asleep.is_none(), MemberAwake { name: name.clone() }))
        }
        RosterEntry::TellRests { names } => {
            // A member that woke before this entry is left out: the lead is told when it sleeps again.
            let untold = roster.untold_rests();
            let names: Vec<String> = untold
                .iter()
                .map(|member| &member.name)
                .filter(|name| names.contains(name))
                .cloned()
                .collect();
            Ok(unless(names.is_empty(), RestsTold { names }))
        }
    }
}

/// Whether a member is gone for good.
pub(super) fn has_stopped(member: &Member) -> bool {
    matches!(member.standing, Standing::Stopped { .. })
}

fn unless(nothing: bool, event: impl Into<RosterEvent>) -> Vec<RosterEvent> {
    if nothing { Vec::new() } else { vec![event.into()] }
}

fn spawn(roster: &Roster, entry: &RosterEntry) -> Decided {
    let RosterEntry::Spawn { name, role, agent, requires_plan, by } = entry else { return Ok(Vec::new()) };
    if let Some(member) = roster.member(name.as_str()).filter(|member| !has_stopped(member)) {
        return Err(RosterRefusal::Taken { name: member.name.clone(), role: member.role.clone() });
    }
    let role = role.trim();
    if role.is_empty() || role.chars().count() > ROLE || role.chars().any(char::is_control) {
        let text = format!(
            "a role is one line of 1 to {ROLE} characters: say in a word or two what {name} is there for"
        );
        return Err(RosterRefusal::Impossible(text));
    }
    let teammates = roster.members().filter(|member| member.name != LEAD && !has_stopped(member)).count();
    if teammates >= TEAMMATES {
        let text = format!(
            "the team has {TEAMMATES} teammates, which is as many as it may have: let one stop first"
        );
        return Err(RosterRefusal::Impossible(text));
    }
    let name = name.to_string();
    let role = role.to_owned();
    let agent = agent.clone();
    let by = by.clone();
    Ok(vec![MemberSpawned { name, role, agent, requires_plan: *requires_plan, by }.into()])
}

fn post(roster: &Roster, header: &LetterHeader) -> Decided {
    let LetterHeader { id, from, to, kind, urgent } = header;
    let reader = roster.recipient(to)?;
    if *from == reader.name {
        let text =
            format!("{from} cannot write to itself: name another member, or keep it in your todo list");
        return Err(RosterRefusal::Impossible(text));
    }
    // The other kinds are bounded by what causes them, and losing one would leave a member waiting for ever.
    let bounded = matches!(kind, LetterKind::Message | LetterKind::Broadcast);
    if bounded && reader.waiting >= QUEUE {
        return Err(RosterRefusal::Full { name: reader.name.clone() });
    }
    let id = id.clone();
    let from = from.clone();
    let to = reader.name.clone();
    Ok(vec![LetterPosted { id, from, to, kind: *kind, urgent: *urgent }.into()])
}

fn stop(roster: &Roster, name: &str, why: &str, at: u64) -> Decided {
    let member = named(roster, name)?;
    if member.name == LEAD {
        return Err(RosterRefusal::Impossible(
            "the lead stops with its session and not by itself".to_owned(),
        ));
    }
    if has_stopped(member) {
        return Ok(Vec::new());
    }
    let mut events = Vec::new();
    if let Standing::Stopping { request, deadline } = &member.standing
        && roster.request(request).is_some_and(|asked| asked.state == RequestState::Pending)
    {
        // Past the deadline it is not the member that agreed, but the runtime that went ahead.
        events.push(match at > *deadline {
            true => expired(request, CONVOKE),
            false => answered(request, true, name),
        });
    }
    events.extend(expired_plans(roster, name, CONVOKE));
    events.push(MemberStopped { name: name.to_owned(), why: why.to_owned() }.into());
    Ok(events)
}

/// A member, stopped or not.
fn named<'a>(roster: &'a Roster, name: &str) -> Result<&'a Member, RosterRefusal> {
    roster.member(name).ok_or_else(|| RosterRefusal::Unknown(refusals::unknown(roster, name)))
}

/// A member that can still be reached and is not the lead; `of_the_lead` is the refusal if it is.
fn teammate<'a>(roster: &'a Roster, name: &str, of_the_lead: &str) -> Result<&'a Member, RosterRefusal> {
    let member = roster.recipient(name)?;
    match member.name == LEAD {
        true => Err(RosterRefusal::Impossible(of_the_lead.to_owned())),
        false => Ok(member),
    }
}

/// A request of this kind that waits for its answer.
fn pending<'a>(roster: &'a Roster, id: &MessageId, kind: RequestKind) -> Result<&'a Request, RosterRefusal> {
    roster
        .request(id)
        .filter(|request| request.kind == kind && request.state == RequestState::Pending)
        .ok_or_else(|| RosterRefusal::NoRequest(refusals::no_request(roster, id, kind)))
}

/// An answer is bound to the request it was given to, so that one id never means two requests.
fn unused(roster: &Roster, id: &MessageId) -> Result<(), RosterRefusal> {
    match roster.request(id) {
        None => Ok(()),
        Some(_) => {
            let text = format!("internal error: there is already a request {id}; ask once more");
            Err(RosterRefusal::Impossible(text))
        }
    }
}

fn expired_plans(roster: &Roster, of: &str, by: &str) -> Vec<RosterEvent> {
    let open = roster.open_requests().into_iter();
    let plans = open.filter(|(_, request)| request.kind == RequestKind::Plan && request.from == of);
    plans.map(|(id, _)| expired(id, by)).collect()
}

fn expired(request: &MessageId, by: &str) -> RosterEvent {
    RequestAnswered { request: request.clone(), state: RequestState::Expired, by: by.to_owned() }.into()
}

fn answered(request: &MessageId, approve: bool, by: &str) -> RosterEvent {
    let state = if approve { RequestState::Approved } else { RequestState::Rejected };
    RequestAnswered { request: request.clone(), state, by: by.to_owned() }.into()
}
