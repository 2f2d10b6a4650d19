//! The members of a team and where they stand, how many letters wait for each,
//! and requests that wait for their answer.
//!
//! What is recorded here are facts that outlive any process. Whether a member is at work right now is not
//! among them: see [`state_of`], which takes that from the process that drives the member's stream.

mod decide;
mod events;
mod fold;
mod refusals;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use events::{
    LetterPosted, LettersPutBack, LettersTaken, MemberAsleep, MemberAwake, MemberFailed, MemberRecovered,
    MemberSpawned, MemberStopped, RequestAnswered, RequestAsked, RestsTold, RosterEvent, RosterOpened,
};
pub use state::{MemberState, MemberView, state_of};

use crate::ids::{AgentId, MessageId, TaskId};
use crate::team::{LEAD, LetterKind, MemberName};

/// Letters that may wait for one member; a sender of more is told to wait.
pub const QUEUE: u32 = 100;

/// Where a member stands for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Standing {
    /// It belongs to the team.
    Live,
    /// It was asked to stop and has until the deadline to answer.
    Stopping {
        /// The request.
        request: MessageId,
        /// When the runtime stops it.
        deadline: u64,
    },
    /// It has stopped; its name can be given again.
    Stopped {
        /// Why.
        why: String,
        /// When.
        at: u64,
    },
    /// Its last work failed; a letter takes it up again.
    Failed {
        /// Why.
        why: String,
        /// When.
        at: u64,
    },
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its name; `lead` for the lead.
    pub name: String,
    /// What it is there for, in a word or two.
    pub role: String,
    /// Its agent.
    pub agent: AgentId,
    /// The name of the one that made it a member.
    pub by: String,
    /// When.
    pub at: u64,
    /// Whether a plan has to be approved before it may write.
    #[serde(default)]
    pub requires_plan: bool,
    /// Where it stands.
    pub standing: Standing,
    /// Letters that are not in its history yet.
    #[serde(default)]
    pub waiting: u32,
    /// How many of them are urgent.
    #[serde(default)]
    pub urgent: u32,
    /// Since when it uses no resources, because there was nothing for it to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep: Option<u64>,
    /// Whether the lead has been told that it sleeps.
    #[serde(default)]
    pub told: bool,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// That a teammate stops.
    Shutdown,
    /// That a plan is approved.
    Plan,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// There is no answer yet.
    Pending,
    /// Yes.
    Approved,
    /// No.
    Rejected,
    /// No answer came in time, or the one that asked is gone.
    Expired,
}

/// A request that is answered once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What is asked for.
    pub kind: RequestKind,
    /// The name of the one that asks.
    pub from: String,
    /// The name of the one that is to answer.
    pub to: String,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// When it was asked.
    pub at: u64,
    /// What became of it.
    pub state: RequestState,
    /// The name of the one that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What the roster needs to know of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterHeader {
    /// The letter.
    pub id: MessageId,
    /// The sender.
    pub from: String,
    /// The reader.
    pub to: String,
    /// What it is.
    pub kind: LetterKind,
    /// Whether it may interrupt.
    pub urgent: bool,
}

/// The roster of a session's team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roster {
    count: u64,
    members: BTreeMap<String, Member>,
    requests: BTreeMap<MessageId, Request>,
    /// How often each name was given, so that two members of one name never share an agent.
    generations: BTreeMap<String, u32>,
}

/// Something that is to be done to the roster, in the transaction of the append it belongs to.
#[derive(Debug, Clone)]
pub enum RosterEntry {
    /// The team exists, and this is its lead. Nothing happens if it exists already.
    Open {
        /// The lead's agent.
        lead: AgentId,
    },
    /// A teammate joins.
    Spawn {
        /// Its name.
        name: MemberName,
        /// What it is there for.
        role: String,
        /// Its agent; see [`Roster::generation`].
        agent: AgentId,
        /// Whether it needs an approved plan.
        requires_plan: bool,
        /// The name of the one that wants it.
        by: String,
    },
    /// A letter is sent. It counts as waiting from here.
    Post(LetterHeader),
    /// Letters became part of a member's history.
    Take {
        /// The reader.
        name: String,
        /// Which: id and whether it was urgent.
        letters: Vec<(MessageId, bool)>,
    },
    /// Letters left the history again and wait once more.
    PutBack {
        /// The reader.
        name: String,
        /// Which: id and whether it is urgent.
        letters: Vec<(MessageId, bool)>,
    },
    /// A teammate asks for its plan to be approved. A plan of its own that still waits is replaced (it
    /// expires).
    AskPlan {
        /// The request.
        request: MessageId,
        /// The teammate.
        from: String,
        /// The task the plan is for.
        task: Option<TaskId>,
    },
    /// The lead, or a person, answers a plan.
    AnswerPlan {
        /// The request.
        request: MessageId,
        /// The name of the one that answers: `lead` or `person`.
        by: String,
        /// The answer.
        approve: bool,
    },
    /// The lead or a person asks a teammate to stop.
    AskShutdown {
        /// The request.
        request: MessageId,
        /// The name of the one that asks.
        from: String,
        /// The teammate.
        to: String,
        /// When the runtime stops it.
        deadline: u64,
    },
    /// The teammate answers. A refusal makes it live again; an agreement leaves it stopping until it has
    /// stopped.
    AnswerShutdown {
        /// The request.
        request: MessageId,
        /// The teammate.
        by: String,
        /// The answer.
        approve: bool,
    },
    /// A member has stopped. A shutdown of it that waits is thereby answered (approved, or expired past its
    /// deadline), its own plans expire.
    Stop {
        /// The member.
        name: String,
        /// Why.
        why: String,
    },
    /// A member's work failed.
    Fail {
        /// The member.
        name: String,
        /// Why.
        why: String,
    },
    /// A member that had failed works again. Nothing happens to one that had not.
    Recover {
        /// The member.
        name: String,
    },
    /// A member uses no resources from now on. Nothing happens to one that already sleeps.
    Sleep {
        /// The member.
        name: String,
    },
    /// It is awake again. Nothing happens to one that is.
    Wake {
        /// The member.
        name: String,
    },
    /// The lead has been told which members sleep.
    TellRests {
        /// The members.
        names: Vec<String>,
    },
}

/// Why an entry cannot be made; the text is for a model or a person to act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterRefusal {
    /// No member has this name. The text names the members there are, and which one was probably meant.
    #[error("{0}")]
    Unknown(String),
    /// A live member has this name.
    #[error("{name} is already a member of the team ({role}); send it a message instead, or stop it first")]
    Taken {
        /// The name.
        name: String,
        /// Its role.
        role: String,
    },
    /// The member has stopped.
    #[error("{name} has stopped ({why}) and reads nothing any more; spawn it again if it is needed")]
    Stopped {
        /// The member.
        name: String,
        /// Why.
        why: String,
    },
    /// Too many letters wait.
    #[error(
        "{name} has {QUEUE} unread letters, which is as many as may wait: try again when it has read some"
    )]
    Full {
        /// The member.
        name: String,
    },
    /// The request is not there, or not one that this member can answer now.
    #[error("{0}")]
    NoRequest(String),
    /// Nothing of the sort can be asked of this member.
    #[error("{0}")]
    Impossible(String),
}

impl Roster {
    /// How many events it has taken in: of two states the one with more is the newer.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All members, the lead first, then by name; stopped ones too.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        let others = self.members.values().filter(|member| member.name != LEAD);
        self.members.get(LEAD).into_iter().chain(others)
    }

    /// One member, stopped or not.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// The member whose agent this is.
    pub fn by_agent(&self, agent: &AgentId) -> Option<&Member> {
        self.members.values().find(|member| member.agent == *agent)
    }

    /// How often this name was given before: an agent's id is derived from session, name and this number.
    pub fn generation(&self, name: &str) -> u32 {
        self.generations.get(name).copied().unwrap_or(0)
    }

    /// A request.
    pub fn request(&self, id: &MessageId) -> Option<&Request> {
        self.requests.get(id)
    }

    /// Requests without an answer, oldest first.
    pub fn open_requests(&self) -> Vec<(&MessageId, &Request)> {
        let open = self.requests.iter().filter(|(_, request)| request.state == RequestState::Pending);
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|(_, request)| request.at);
        open
    }

    /// Members that sleep and of which the lead has not been told.
    pub fn untold_rests(&self) -> Vec<&Member> {
        let untold =
            |member: &&Member| member.asleep.is_some() && !member.told && member.standing == Standing::Live;
        self.members().filter(|member| member.name != LEAD).filter(untold).collect()
    }

    /// The member that this name means, if a letter can be sent to it.
    pub fn recipient(&self, name: &str) -> Result<&Member, RosterRefusal> {
        let member =
            self.member(name).ok_or_else(|| RosterRefusal::Unknown(refusals::unknown(self, name)))?;
        match &member.standing {
            Standing::Stopped { why, .. } => {
                Err(RosterRefusal::Stopped { name: member.name.clone(), why: why.clone() })
            }
            Standing::Live | Standing::Stopping { .. } | Standing::Failed { .. } => Ok(member),
        }
    }

    /// What follows from an entry at this time.
    pub fn decide(&self, entry: &RosterEntry, at: u64) -> Result<Vec<RosterEvent>, RosterRefusal> {
        decide::decide(self, entry, at)
    }

    /// Takes in what has happened. Total: an event that does not match the state changes only what it names.
    pub fn apply(&mut self, event: &RosterEvent, at: u64) {
        fold::apply(self, event, at);
    }
}
