//! What a person sends to a team: the letter, what it does to the roster, and both in one append. That takes
//! a lease, which no reader's stream can lend, so the client has a stream of its own that nothing is ever
//! written to.

use std::time::Duration;

use convoke_journal::{Batch, Journal, Lease};
use convoke_kernel::{
    AgentId, LEAD, Letter, LetterKind, MAX_LETTER, MessageId, PERSON, RequestKind, RequestState, Roster,
    RosterEntry, SessionId, TaskId,
};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::error::Error;
use crate::team::shared;

/// How long another process that sends for a person is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// A letter of a person's before it has its id and its place in the order.
#[derive(Debug, Clone)]
pub(super) struct Mail {
    to: String,
    kind: LetterKind,
    text: String,
    urgent: bool,
    task: Option<TaskId>,
    about: About,
}

/// What it does beside being read.
#[derive(Debug, Clone)]
enum About {
    Nothing,
    Stop { deadline: u64 },
    Plan { request: MessageId, approve: bool },
}

/// A plain letter.
pub(super) fn message(to: &str, text: &str, urgent: bool) -> Result<Mail, Error> {
    let to = to.to_owned();
    let text = checked(text)?;
    Ok(Mail { to, kind: LetterKind::Message, text, urgent, task: None, about: About::Nothing })
}

/// A text that can be sent.
fn checked(text: &str) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(Error::TeamRefused("the letter is empty: say what is to be read".to_owned()));
    }
    if text.len() > MAX_LETTER {
        let bytes = text.len();
        let why = format!(
            "the letter has {bytes} bytes and may have {MAX_LETTER}: put the rest into a file and name it"
        );
        return Err(Error::TeamRefused(why));
    }
    Ok(text.to_owned())
}

/// The wish that a teammate stops.
pub(super) fn stop(to: &str, deadline: u64) -> Mail {
    let text = "A person asks you to stop. Answer with answer_shutdown.".to_owned();
    let to = to.to_owned();
    let kind = LetterKind::ShutdownRequest;
    Mail { to, kind, text, urgent: false, task: None, about: About::Stop { deadline } }
}

/// The answer to a plan.
pub(super) fn plan_answer(
    roster: &Roster,
    request: &MessageId,
    approve: bool,
    feedback: &str,
) -> Result<Mail, Error> {
    let plan = roster.request(request).filter(|plan| plan.kind == RequestKind::Plan);
    let Some(plan) = plan.filter(|plan| plan.state == RequestState::Pending) else {
        return Err(Error::TeamRefused(format!(
            "no plan {request} waits for an answer; `convoke team show` has those that do"
        )));
    };
    let said = if feedback.trim().is_empty() {
        if approve { "A person approves your plan." } else { "A person does not approve your plan." }
            .to_owned()
    } else {
        checked(feedback)?
    };
    Ok(Mail {
        to: plan.from.clone(),
        kind: LetterKind::PlanAnswer,
        text: said,
        urgent: false,
        task: plan.task.clone(),
        about: About::Plan { request: request.clone(), approve },
    })
}

/// Sends it: the letter waits for its reader and counts as waiting, or neither. Dropping this future does not
/// stop the sending, as a lease that is dropped would be this process's for as long as it lives.
pub(super) async fn send(
    journal: &Journal,
    clock: &Clock,
    session: &SessionId,
    lead: &AgentId,
    id: MessageId,
    mail: Mail,
) -> Result<MessageId, Error> {
    let journal = journal.clone();
    let clock = clock.clone();
    let session = session.clone();
    let lead = lead.clone();
    let place = journal.location().to_string();
    let sent = id.clone();
    let sending = tokio::spawn(async move {
        let lease = own(&journal, &session).await?;
        let posted = post(&journal, &clock, &session, &lead, &lease, id, mail).await;
        // A lease that cannot be given back ends with its process.
        let _ = journal.release(&lease).await;
        posted
    });
    let broken = |ended: tokio::task::JoinError| convoke_journal::Error::Unavailable {
        place,
        reason: ended.to_string(),
    };
    sending.await.map_err(broken)??;
    Ok(sent)
}

/// Takes the right to send for a person, and waits for it to be free.
async fn own(journal: &Journal, session: &SessionId) -> Result<Lease, Error> {
    let stream = shared::client_stream(session);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match journal.own(&stream).await {
            Err(convoke_journal::Error::Held { .. }) if Instant::now() < deadline => {
                tokio::time::sleep(LOOK).await
            }
            owned => return Ok(owned?),
        }
    }
}

async fn post(
    journal: &Journal,
    clock: &Clock,
    session: &SessionId,
    lead: &AgentId,
    lease: &Lease,
    id: MessageId,
    mail: Mail,
) -> Result<(), Error> {
    let at = clock.now();
    let open = RosterEntry::Open { lead: lead.clone() };
    let mut roster = shared::roster(journal, session).await?;
    shared::foresee(&mut roster, std::slice::from_ref(&open), at).map_err(Error::TeamRefused)?;
    let reader = roster.recipient(&mail.to).map_err(|refusal| Error::TeamRefused(refusal.to_string()))?;
    let Mail { kind, text, urgent, task, about, .. } = mail;
    let to = reader.name.clone();
    let from = PERSON.to_owned();
    let (request, approve, asked) = match about {
        About::Nothing => (None, None, None),
        About::Stop { .. } if to == LEAD => {
            return Err(Error::TeamRefused(
                "the lead is stopped with `convoke sessions stop`, not as a teammate".to_owned(),
            ));
        }
        About::Stop { deadline } => {
            let asked = RosterEntry::AskShutdown {
                request: id.clone(),
                from: from.clone(),
                to: to.clone(),
                deadline,
            };
            (Some(id.clone()), None, Some(asked))
        }
        About::Plan { request, approve } => {
            let answered = RosterEntry::AnswerPlan { request: request.clone(), by: from.clone(), approve };
            (Some(request), Some(approve), Some(answered))
        }
    };
    // Only the holder of this right sends for a person, and what it sends makes the roster's count greater.
    let order = roster.count();
    let letter = Letter { id, from, to, kind, text, urgent, order, at, request, approve, task };
    let entries = std::iter::once(open).chain(asked).chain([shared::post(&letter)]).collect();
    let readers = vec![(letter.to.clone(), reader.agent.clone())];
    let batch = Batch {
        at,
        inputs: vec![shared::letter_input(&reader.agent, &letter)?],
        updates: vec![shared::letters_update(session, readers, entries, at)],
        ..Batch::default()
    };
    journal.append(lease, 0, &batch).await.map_err(shared::refused)?;
    Ok(())
}
