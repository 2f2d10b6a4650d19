//! Folds events into a roster. It checks nothing: what was decided once is taken
//! in as it stands, in every process alike.

use super::{Member, Request, RequestKind, RequestState, Roster, RosterEvent, Standing};
use crate::ids::{AgentId, MessageId};
use crate::team::{CONVOKE, LEAD};

/// Takes in one event. An event that does not match the state changes only what it names.
pub(super) fn apply(roster: &mut Roster, event: &RosterEvent, at: u64) {
    roster.count += 1;
    match event {
        RosterEvent::RosterOpened(event) => {
            let lead = joined(LEAD, LEAD, &event.lead, CONVOKE, at);
            roster.members.entry(LEAD.to_owned()).or_insert(lead);
        }
        RosterEvent::MemberSpawned(event) => {
            let member = joined(&event.name, &event.role, &event.agent, &event.by, at);
            let member = Member { requires_plan: event.requires_plan, ..member };
            // The member that had the name before keeps its letters in its
            // own stream; the new one begins with none.
            roster.members.insert(event.name.clone(), member);
            *roster.generations.entry(event.name.clone()).or_default() += 1;
        }
        RosterEvent::LetterPosted(event) => {
            with(roster, &event.to, |member| arrive(member, 1, u32::from(event.urgent)))
        }
        RosterEvent::LettersPutBack(event) => with(roster, &event.name, |member| {
            let (all, urgent) = counted(&event.letters);
            arrive(member, all, urgent);
        }),
        RosterEvent::LettersTaken(event) => with(roster, &event.name, |member| {
            let (all, urgent) = counted(&event.letters);
            member.waiting = member.waiting.saturating_sub(all);
            member.urgent = member.urgent.saturating_sub(urgent);
        }),
        RosterEvent::RequestAsked(event) => {
            let request = Request {
                kind: event.kind,
                from: event.from.clone(),
                to: event.to.clone(),
                task: event.task.clone(),
                at,
                state: RequestState::Pending,
                by: None,
            };
            roster.requests.insert(event.request.clone(), request);
            if event.kind == RequestKind::Shutdown {
                let request = event.request.clone();
                let deadline = event.deadline.unwrap_or(at);
                with(roster, &event.to, |member| member.standing = Standing::Stopping { request, deadline });
            }
        }
        RosterEvent::RequestAnswered(event) => {
            let Some(request) = roster.requests.get_mut(&event.request) else { return };
            request.state = event.state;
            request.by = Some(event.by.clone());
            if request.kind == RequestKind::Shutdown && event.state == RequestState::Rejected {
                let to = request.to.clone();
                with(roster, &to, |member| stays(member, &event.request));
            }
        }
        RosterEvent::MemberStopped(event) => with(roster, &event.name, |member| {
            member.standing = Standing::Stopped { why: event.why.clone(), at };
            wake(member);
        }),
        RosterEvent::MemberFailed(event) => with(roster, &event.name, |member| {
            member.standing = Standing::Failed { why: event.why.clone(), at };
        }),
        RosterEvent::MemberRecovered(event) => {
            with(roster, &event.name, |member| member.standing = Standing::Live)
        }
        RosterEvent::MemberAsleep(event) => with(roster, &event.name, |member| {
            member.asleep = Some(at);
            member.told = false;
        }),
        RosterEvent::MemberAwake(event) => with(roster, &event.name, wake),
        RosterEvent::RestsTold(event) => {
            for name in &event.names {
                with(roster, name, |member| member.told = true);
            }
        }
    }
}

fn with(roster: &mut Roster, name: &str, change: impl FnOnce(&mut Member)) {
    if let Some(member) = roster.members.get_mut(name) {
        change(member);
    }
}

fn joined(name: &str, role: &str, agent: &AgentId, by: &str, at: u64) -> Member {
    Member {
        name: name.to_owned(),
        role: role.to_owned(),
        agent: agent.clone(),
        by: by.to_owned(),
        at,
        requires_plan: false,
        standing: Standing::Live,
        waiting: 0,
        urgent: 0,
        asleep: None,
        told: false,
    }
}

fn counted(letters: &[(MessageId, bool)]) -> (u32, u32) {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    (count(letters.len()), count(letters.iter().filter(|(_, urgent)| *urgent).count()))
}

fn arrive(member: &mut Member, all: u32, urgent: u32) {
    member.waiting = member.waiting.saturating_add(all);
    member.urgent = member.urgent.saturating_add(urgent);
}

fn wake(member: &mut Member) {
    member.asleep = None;
    member.told = false;
}

/// A member that refused this request belongs to the team as before.
fn stays(member: &mut Member, refused: &MessageId) {
    if matches!(&member.standing, Standing::Stopping { request, .. } if request == refused) {
        member.standing = Standing::Live;
    }
}
