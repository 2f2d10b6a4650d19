//! What has happened to a roster: the text of its shared stream in the journal. Events are for ever: variants
//! are never removed, new members are optional.

use crate::event::events;
use crate::ids::{AgentId, MessageId, TaskId};
use crate::team::{LetterKind, RequestKind, RequestState};

events! {
    /// Something that has happened to a roster.
    enum RosterEvent;

    /// The team exists.
    RosterOpened = "roster_opened" {
        /// Its lead.
        lead: AgentId,
    }
    /// A teammate joined.
    MemberSpawned = "member_spawned" {
        /// Its name.
        name: String,
        /// What it is there for.
        role: String,
        /// Its agent.
        agent: AgentId,
        /// Whether it needs an approved plan.
        #[serde(default)]
        requires_plan: bool,
        /// The name of the one that wanted it.
        by: String,
    }
    /// A letter is on its way.
    LetterPosted = "letter_posted" {
        /// Which.
        id: MessageId,
        /// The sender.
        from: String,
        /// The reader.
        to: String,
        /// What it is.
        kind: LetterKind,
        /// Whether it may interrupt.
        #[serde(default)]
        urgent: bool,
    }
    /// Letters are in their reader's history.
    LettersTaken = "letters_taken" {
        /// The reader.
        name: String,
        /// Which, and whether urgent.
        letters: Vec<(MessageId, bool)>,
    }
    /// Letters left it again and wait once more.
    LettersPutBack = "letters_put_back" {
        /// The reader.
        name: String,
        /// Which, and whether urgent.
        letters: Vec<(MessageId, bool)>,
    }
    /// A request waits for its answer.
    RequestAsked = "request_asked" {
        /// Which.
        request: MessageId,
        /// What for.
        kind: RequestKind,
        /// The name of the one that asks.
        from: String,
        /// The name of the one that is to answer.
        to: String,
        /// The task it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// Until when, if there is a limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<u64>,
    }
    /// A request has its answer.
    RequestAnswered = "request_answered" {
        /// Which.
        request: MessageId,
        /// The answer.
        state: RequestState,
        /// The name of the one that answered.
        by: String,
    }
    /// A member has stopped.
    MemberStopped = "member_stopped" {
        /// The member.
        name: String,
        /// Why.
        why: String,
    }
    /// A member's work failed.
    MemberFailed = "member_failed" {
        /// The member.
        name: String,
        /// Why.
        why: String,
    }
    /// A member works again after a failure.
    MemberRecovered = "member_recovered" {
        /// The member.
        name: String,
    }
    /// A member uses no resources any more, because there was nothing for it to do.
    MemberAsleep = "member_asleep" {
        /// The member.
        name: String,
    }
    /// It is awake again.
    MemberAwake = "member_awake" {
        /// The member.
        name: String,
    }
    /// The lead has been told which members sleep.
    RestsTold = "rests_told" {
        /// The members.
        names: Vec<String>,
    }
}
