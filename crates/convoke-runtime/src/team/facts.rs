//! What an agent's capsule says that only the shared streams know: the team, the task in hand, unread
//! letters, open requests and what is left of the budget. Read from the journal every time, never
//! remembered.

use std::collections::BTreeMap;

use convoke_kernel::{AgentId, AgentSpec, Amount, Facts, LEAD, Ledger, MessageId, Request, RequestKind};

use crate::error::Error;
use crate::runtime::Config;
use crate::session::Session;
use crate::team::{client, shared};

/// The facts about an agent as they stand now.
pub(crate) async fn facts(
    config: &Config,
    session: &Session,
    agent: &AgentId,
    spec: &AgentSpec,
) -> Result<Facts, Error> {
    session.ledger.reload().await?;
    let budget = budget(&session.ledger.ledger(), config.clock.now());
    let Some(me) = spec.team.as_deref() else { return Ok(Facts { budget, ..Facts::default() }) };
    let journal = &config.journal;
    let roster = shared::roster(journal, &spec.session).await?;
    let board = shared::board(journal, &spec.session).await?;
    let rows = client::rows(journal, &roster, &board).await?;
    let others = rows.into_iter().filter(|row| row.member.name != me.name);
    let mut unread: BTreeMap<String, u32> = BTreeMap::new();
    for letter in shared::waiting_letters(journal, agent).await? {
        *unread.entry(letter.from).or_default() += 1;
    }
    Ok(Facts {
        members: others.map(|row| (row.member.name, row.member.role, row.state.word().to_owned())).collect(),
        task: board.held_by(agent).map(|task| board.brief(task)),
        unread: unread.into_iter().collect(),
        budget,
        requests: roster
            .open_requests()
            .into_iter()
            .filter_map(|(id, asked)| told(&me.name, id, asked))
            .collect(),
    })
}

/// A request that this member answers or waits for, as it is told. The lead is told of all requests to stop.
fn told(me: &str, id: &MessageId, asked: &Request) -> Option<String> {
    let Request { kind, from, to, task, .. } = asked;
    let about = task.as_ref().map_or(String::new(), |task| format!(" for {task}"));
    match kind {
        RequestKind::Shutdown if to == me => {
            Some(format!("{from} asks you to stop ({id}): answer with answer_shutdown"))
        }
        RequestKind::Shutdown if from == me || me == LEAD => {
            let who = if from == me { "you" } else { from };
            Some(format!("{who} asked {to} to stop ({id}); it has not answered yet"))
        }
        RequestKind::Plan if to == me => {
            Some(format!("{from} waits for your answer to its plan{about} ({id}): answer with review_plan"))
        }
        RequestKind::Plan if from == me => {
            Some(format!("your plan{about} ({id}) waits for approval by {to}"))
        }
        RequestKind::Shutdown | RequestKind::Plan => None,
    }
}

/// What is left of the budget, in words.
fn budget(ledger: &Ledger, at: u64) -> String {
    let caps = ledger.caps();
    let used = ledger.spent().plus(ledger.held());
    let left = |cap: u64, used: u64| cap.saturating_sub(used);
    let Amount { tokens, nano } = used;
    let mut parts = Vec::new();
    parts.extend(caps.nano.map(|cap| format!("{} of {}", dollars(left(cap, nano)), dollars(cap))));
    parts.extend(caps.tokens.map(|cap| format!("{} of {cap} tokens", left(cap, tokens))));
    parts.extend(caps.agents.map(|cap| format!("{} of {cap} agents", cap.saturating_sub(ledger.agents()))));
    parts.extend(ledger.ms_left(at).map(|ms| match ms {
        0..120_000 => format!("{} seconds", ms / 1_000),
        _ => format!("{} minutes", ms / 60_000),
    }));
    if parts.is_empty() { "no caps".to_owned() } else { format!("{} left", parts.join(", ")) }
}

/// Dollars and cents, rounded down: what is left never looks like more than it is.
fn dollars(nano: u64) -> String {
    let cents = nano / 10_000_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{Caps, LedgerEvent};

    use super::*;

    fn check(caps: Caps, admitted: u32, expected: &str) {
        let mut ledger = Ledger::default();
        let mut events: Vec<LedgerEvent> = ledger.grant(caps, "test");
        events.iter().for_each(|event| ledger.apply(event, 0));
        events = ledger.hold("p");
        events.extend(if admitted > 0 { ledger.admit("wf", admitted).unwrap() } else { Vec::new() });
        events.iter().for_each(|event| ledger.apply(event, 1_000));
        assert_eq!(budget(&ledger, 61_000), expected);
    }

    #[test]
    fn the_budget_is_told_as_what_is_left_of_what_was_granted() {
        check(Caps::default(), 3, "no caps");
        let caps =
            Caps { nano: Some(5_009_999_999), agents: Some(50), ms: Some(35 * 60_000), ..Caps::default() };
        check(caps, 38, "$5.00 of $5.00, 12 of 50 agents, 34 minutes left");
        check(
            Caps { tokens: Some(700), ms: Some(90_000), ..Caps::default() },
            0,
            "700 of 700 tokens, 30 seconds left",
        );
    }

    #[test]
    fn w42_a_member_is_told_of_requests_that_concern_it_and_of_no_others() {
        let check = |me: &str, kind: RequestKind, from: &str, to: &str, expected: Option<&str>| {
            let from = from.to_owned();
            let to = to.to_owned();
            let state = convoke_kernel::RequestState::Pending;
            let asked = Request { kind, from, to, task: None, at: 0, state, by: None };
            let told = told(me, &MessageId::from_bits([0; 10]), &asked);
            let fits = match (&told, expected) {
                (Some(text), Some(part)) => text.contains(part),
                (told, part) => told.is_none() && part.is_none(),
            };
            assert!(fits, "{me}: {told:?}");
        };
        use RequestKind::{Plan, Shutdown};
        check("bob", Shutdown, LEAD, "bob", Some("lead asks you to stop (m_aaaaaaaaaaaaaaaa)"));
        check(LEAD, Shutdown, LEAD, "bob", Some("you asked bob to stop"));
        check(LEAD, Shutdown, "person", "bob", Some("person asked bob to stop"));
        check("amy", Shutdown, LEAD, "bob", None);
        check(LEAD, Plan, "bob", LEAD, Some("bob waits for your answer to its plan"));
        check("bob", Plan, "bob", LEAD, Some("your plan"));
        check("amy", Plan, "bob", LEAD, None);
    }
}
