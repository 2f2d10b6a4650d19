//! Tests of the roster: a small team to try entries on, and what belongs together in modules of its own.

mod letters;
mod members;
mod requests;
mod walk;

use super::*;

/// A roster with everything that has happened to it.
pub(super) struct Team {
    pub(super) roster: Roster,
    pub(super) log: Vec<(RosterEvent, u64)>,
    pub(super) at: u64,
}

impl Team {
    /// One that was opened and has these teammates, each with its role.
    pub(super) fn of(teammates: &[(&str, &str)]) -> Team {
        let mut team = Team { roster: Roster::default(), log: Vec::new(), at: 1_000 };
        team.does(RosterEntry::Open { lead: AgentId::derived(&["lead"]) });
        for (name, role) in teammates {
            team.does(spawn(&team.roster, name, role));
        }
        team
    }

    /// Makes an entry that has to be possible, and says what followed from it.
    #[track_caller]
    pub(super) fn does(&mut self, entry: RosterEntry) -> Vec<&'static str> {
        self.tries(&entry).unwrap_or_else(|refusal| panic!("{entry:?}: {refusal}"))
    }

    /// Makes an entry that has to be refused, and says with which words. Nothing may have changed.
    #[track_caller]
    pub(super) fn refuses(&mut self, entry: RosterEntry) -> String {
        let before = self.roster.clone();
        let refusal = self.tries(&entry).expect_err("it had to be refused");
        assert_eq!(self.roster, before, "{entry:?}");
        refusal.to_string()
    }

    pub(super) fn tries(&mut self, entry: &RosterEntry) -> Result<Vec<&'static str>, RosterRefusal> {
        self.at += 1;
        let events = self.roster.decide(entry, self.at)?;
        let kinds = events.iter().map(RosterEvent::kind).collect();
        for event in events {
            self.roster.apply(&event, self.at);
            self.log.push((event, self.at));
        }
        Ok(kinds)
    }

    #[track_caller]
    pub(super) fn member(&self, name: &str) -> &Member {
        self.roster.member(name).expect("a member")
    }

    #[track_caller]
    pub(super) fn state(&self, request: &str) -> RequestState {
        self.roster.request(&id(request)).expect("a request").state
    }
}

pub(super) fn id(word: &str) -> MessageId {
    MessageId::derived(&[word])
}

pub(super) fn spawn(roster: &Roster, name: &str, role: &str) -> RosterEntry {
    let agent = AgentId::derived(&["teammate", name, &roster.generation(name).to_string()]);
    let name = name.parse().expect("a name");
    RosterEntry::Spawn { name, role: role.to_owned(), agent, requires_plan: false, by: LEAD.to_owned() }
}

pub(super) fn post(from: &str, to: &str, kind: LetterKind) -> RosterEntry {
    let from = from.to_owned();
    let to = to.to_owned();
    RosterEntry::Post(LetterHeader { id: id(&format!("{from}{to}")), from, to, kind, urgent: false })
}

pub(super) fn ask_stop(request: &str, to: &str, deadline: u64) -> RosterEntry {
    RosterEntry::AskShutdown { request: id(request), from: LEAD.to_owned(), to: to.to_owned(), deadline }
}

pub(super) fn answer_stop(request: &str, by: &str, approve: bool) -> RosterEntry {
    RosterEntry::AnswerShutdown { request: id(request), by: by.to_owned(), approve }
}

pub(super) fn ask_plan(request: &str, from: &str) -> RosterEntry {
    RosterEntry::AskPlan {
        request: id(request),
        from: from.to_owned(),
        task: Some(TaskId::derived(&["task"])),
    }
}

pub(super) fn answer_plan(request: &str, by: &str, approve: bool) -> RosterEntry {
    RosterEntry::AnswerPlan { request: id(request), by: by.to_owned(), approve }
}

pub(super) fn stop(name: &str) -> RosterEntry {
    RosterEntry::Stop { name: name.to_owned(), why: "asked to".to_owned() }
}

pub(super) fn fail(name: &str) -> RosterEntry {
    RosterEntry::Fail { name: name.to_owned(), why: "the model refused".to_owned() }
}

pub(super) fn recover(name: &str) -> RosterEntry {
    RosterEntry::Recover { name: name.to_owned() }
}

pub(super) fn sleep(name: &str) -> RosterEntry {
    RosterEntry::Sleep { name: name.to_owned() }
}

pub(super) fn wake(name: &str) -> RosterEntry {
    RosterEntry::Wake { name: name.to_owned() }
}

pub(super) fn tell(names: &[&str]) -> RosterEntry {
    RosterEntry::TellRests { names: names.iter().map(|name| (*name).to_owned()).collect() }
}
