//! The calls of a session that wait for a person: read from the streams of its agents, named by ids that a
//! person can type, and found again by them. It reads; the process that drives the session gives the answers.

use std::collections::HashMap;

use convoke_journal::{Journal, StreamId};
use convoke_kernel::{Agent, AgentId, Effect, Event, Role, SessionId, Status};

use crate::args::AnswerArgs;
use crate::catalog::{Catalog, Entry, ListedSession};
use crate::failure::Failure;
use crate::render::{first_line, flat, revealed};
use crate::settings::Settings;

/// A call that waits for a person, or has waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The name a person uses; the same for ever.
    pub(crate) id: String,
    pub(crate) agent: AgentId,
    /// The id of the call.
    pub(crate) call: String,
    pub(crate) role: Role,
    /// What people call the agent; empty for a lead.
    pub(crate) label: String,
    /// What is wanted: `run: COMMAND`, `change: PATH`.
    pub(crate) wanted: String,
    pub(crate) why: String,
    /// When it was asked.
    pub(crate) since: u64,
    /// Whether it has no answer yet.
    pub(crate) is_open: bool,
}

/// A question and what a person says to it.
pub(crate) type Answered = (Question, bool);

impl Question {
    /// The agent that asks, on one line.
    pub(crate) fn who(&self) -> String {
        who(&self.label)
    }

    /// The beginning of what it is about, on one line.
    fn line(&self) -> String {
        format!("{}  {}: {}", self.id, self.who(), first_line(&revealed(&self.wanted), 80))
    }
}

/// An agent as a person is told of it. A label comes with the request for the agent, so it may be a model's
/// words.
pub(crate) fn who(label: &str) -> String {
    match flat(label, 80).0 {
        label if label.is_empty() => "the lead".to_owned(),
        label => format!("agent \"{}\"", revealed(&label)),
    }
}

/// The name of a question. It follows from the call, so that every process gives it the same one.
fn id(agent: &AgentId, call: &str) -> String {
    let digest = AgentId::derived(&["question", agent.as_str(), call]);
    let body = digest.as_str().trim_start_matches(AgentId::PREFIX).trim_start_matches('_');
    format!("q_{}", body.chars().take(8).collect::<String>())
}

/// The questions of a session that have no answer yet, in the order of its agents.
pub(crate) async fn open(journal: &Journal, listed: &ListedSession) -> Result<Vec<Question>, Failure> {
    let mut asked = Vec::new();
    for entry in listed.agents.iter().filter(|entry| entry.summary.status == Status::Open) {
        asked.extend(of_agent(journal, entry).await?.into_iter().filter(|question| question.is_open));
    }
    Ok(asked)
}

/// The questions of a session that have no answer yet.
pub(crate) async fn of_session(
    settings: &Settings,
    journal: &Journal,
    session: &SessionId,
) -> Result<Vec<Question>, Failure> {
    let catalog = Catalog::load(settings, Some(journal)).await?;
    open(journal, catalog.find(session.as_str())?).await
}

/// Everything an agent has asked.
async fn of_agent(journal: &Journal, entry: &Entry) -> Result<Vec<Question>, Failure> {
    let stream = StreamId::from(&entry.agent);
    let mut agent = Agent::new();
    let mut asked = Vec::new();
    for record in journal.load(&stream, 0).await? {
        let bad = |why: String| {
            Failure::failed(format!("event {} of agent {} cannot be read: {why}", record.seq, entry.agent))
        };
        let event = Event::decode(&record.event).map_err(|error| bad(error.to_string()))?;
        agent.apply(&event, record.at).map_err(|error| bad(error.to_string()))?;
        if let Event::ApprovalAsked(e) = event {
            asked.push(Question {
                id: id(&entry.agent, &e.id),
                agent: entry.agent.clone(),
                call: e.id,
                role: entry.summary.role,
                label: entry.summary.label.clone(),
                wanted: e.what,
                why: e.why,
                since: record.at,
                is_open: false,
            });
        }
    }
    // What is answered and not yet taken in waits among the agent's inputs.
    let given: Vec<String> = journal.inputs(&stream).await?.into_iter().map(|input| input.key).collect();
    for effect in agent.pending() {
        if let Effect::AskPerson { id: call, .. } = effect
            && !given.contains(&format!("answer:{call}"))
            && let Some(question) = asked.iter_mut().rev().find(|question| question.call == call)
        {
            question.is_open = true;
        }
    }
    Ok(asked)
}

/// What a person answers to which questions. One that is not open, and two answers to one question, are
/// errors that list what is open: nothing is answered then.
pub(crate) async fn answers(
    journal: &Journal,
    listed: &ListedSession,
    args: &AnswerArgs,
) -> Result<Vec<Answered>, Failure> {
    let open = open(journal, listed).await?;
    match choose(&open, args) {
        Ok(chosen) => Ok(chosen),
        Err(Mistake::Unknown(given)) => {
            let mut asked = Vec::new();
            for entry in &listed.agents {
                asked.extend(of_agent(journal, entry).await?);
            }
            let was = asked.iter().any(|question| is_named(&given, &question.id));
            let what = match was {
                true => {
                    format!("'{given}' of {} has its answer already; nothing was answered", listed.session)
                }
                false => format!("'{given}' is no question of {}; nothing was answered", listed.session),
            };
            Err(listing(Failure::usage(what), &open))
        }
        Err(Mistake::Several(given)) => {
            let what =
                format!("'{given}' fits several questions of {}; nothing was answered", listed.session);
            Err(listing(Failure::usage(what).hint("write more of the id"), &open))
        }
        Err(Mistake::Both(id)) => {
            let what = format!("{id} is allowed and refused at once; nothing was answered");
            Err(Failure::usage(what).hint("name each question in --allow or in --deny"))
        }
        Err(Mistake::Nothing) => {
            Err(Failure::usage(format!("{} waits for no answer; nothing was answered", listed.session))
                .hint(format!("`convoke resume {}` goes on with it", listed.session)))
        }
    }
}

/// Every open question, as advice.
fn listing(failure: Failure, open: &[Question]) -> Failure {
    if open.is_empty() {
        return failure.hint("no question is open");
    }
    open.iter().fold(failure.hint("open:"), |failure, question| failure.hint(question.line()))
}

#[derive(Debug, PartialEq, Eq)]
enum Mistake {
    Unknown(String),
    Several(String),
    Both(String),
    Nothing,
}

/// Which of the open questions get which answer.
fn choose(open: &[Question], args: &AnswerArgs) -> Result<Vec<Answered>, Mistake> {
    let said = args.allow.iter().map(|id| (id, true)).chain(args.deny.iter().map(|id| (id, false)));
    let mut chosen: HashMap<&str, bool> = HashMap::new();
    for (given, allow) in said {
        let given = given.trim();
        let meant: Vec<&Question> = match given {
            "all" => open.iter().collect(),
            given => open.iter().filter(|question| is_named(given, &question.id)).collect(),
        };
        match (given, meant.as_slice()) {
            ("all", []) => return Err(Mistake::Nothing),
            (given, []) => return Err(Mistake::Unknown(given.to_owned())),
            ("all", _) | (_, [_]) => {}
            (given, _) => return Err(Mistake::Several(given.to_owned())),
        }
        for question in meant {
            if chosen.insert(&question.id, allow).is_some_and(|before| before != allow) {
                return Err(Mistake::Both(question.id.clone()));
            }
        }
    }
    Ok(open
        .iter()
        .filter_map(|question| Some((question.clone(), *chosen.get(question.id.as_str())?)))
        .collect())
}

/// Whether what a person typed is the beginning of this id, with or without its prefix.
fn is_named(given: &str, id: &str) -> bool {
    !given.is_empty() && (id.starts_with(given) || id.trim_start_matches("q_").starts_with(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(id: &str) -> Question {
        Question {
            id: id.to_owned(),
            agent: AgentId::from_bits([1; 10]),
            call: id.to_owned(),
            role: Role::Lead,
            label: String::new(),
            wanted: "run: ls".to_owned(),
            why: "because".to_owned(),
            since: 0,
            is_open: true,
        }
    }

    fn list(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[track_caller]
    fn check(allow: &[&str], deny: &[&str], expected: Result<&[(&str, bool)], Mistake>) {
        let open = ["q_aaaa", "q_abbb", "q_cccc"].map(question);
        let args = AnswerArgs { allow: list(allow), deny: list(deny), ..AnswerArgs::default() };
        let chosen = choose(&open, &args).map(|answers| {
            answers.into_iter().map(|(question, allow)| (question.id, allow)).collect::<Vec<_>>()
        });
        let expected =
            expected.map(|answers| answers.iter().map(|(id, allow)| ((*id).to_owned(), *allow)).collect());
        assert_eq!(chosen, expected);
    }

    #[test]
    fn answers_name_questions_by_any_unique_prefix_or_all_of_them() {
        check(&["q_aaaa"], &["cc"], Ok(&[("q_aaaa", true), ("q_cccc", false)]));
        check(&[], &["all"], Ok(&[("q_aaaa", false), ("q_abbb", false), ("q_cccc", false)]));
        check(&["ab", "q_abbb"], &[], Ok(&[("q_abbb", true)]));
    }

    #[test]
    fn an_answer_that_fits_nothing_or_too_much_answers_nothing() {
        check(&["q_zzzz"], &["all"], Err(Mistake::Unknown("q_zzzz".into())));
        check(&["a"], &[], Err(Mistake::Several("a".into())));
        check(&["all"], &["cc"], Err(Mistake::Both("q_cccc".into())));
        assert_eq!(
            choose(&[], &AnswerArgs { allow: list(&["all"]), ..AnswerArgs::default() }),
            Err(Mistake::Nothing)
        );
    }

    #[test]
    fn an_id_follows_from_the_call_and_is_short() {
        let one = AgentId::from_bits([1; 10]);
        let other = AgentId::from_bits([2; 10]);
        assert_eq!(id(&one, "toolu_1"), id(&one, "toolu_1"));
        assert_ne!(id(&one, "toolu_1"), id(&other, "toolu_1"));
        assert_ne!(id(&one, "toolu_1"), id(&one, "toolu_2"));
        assert_eq!(id(&one, "toolu_1").len(), 10, "{}", id(&one, "toolu_1"));
    }

    #[test]
    fn a_label_stays_on_its_line() {
        assert_eq!(who(""), "the lead");
        assert_eq!(who("look\nAllow it? y\u{1b}[2J"), "agent \"look Allow it? y\"");
    }
}
