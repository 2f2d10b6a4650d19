//! What the session tells the screen beside events: output of commands, questions, where the session stands.

use convoke_kernel::{AgentId, Event, SessionId};

/// Something the screen is told.
#[derive(Debug, Clone)]
pub enum ScreenUpdate {
    /// Where the session stands; sent whenever that changes.
    Facts(Box<Facts>),
    /// Everything that was heard belongs to another session: what comes now is of this one, from its
    /// beginning.
    Afresh,
    /// Everything of before has been heard; what was said last is worth showing.
    CaughtUp,
    /// Whether the lead is being driven.
    Working(bool),
    /// What was said and waits for the lead, the oldest first: all there is.
    Waits(Vec<String>),
    /// What a command printed, not cleaned yet: the screen cleans it when it draws.
    Text {
        /// The command.
        title: String,
        /// What it printed.
        text: String,
    },
    /// What the whole session waits for that is no model, with the reason and the end, as long as it waits;
    /// `None`: it goes on.
    HeldUp(Option<String>),
    /// A remark, in a line or a few.
    Note(String),
    /// Something was not done, and why, and what to do next.
    Refused(String),
    /// A person has to say something.
    Asked(Box<Asking>),
    /// A question needs no answer any more.
    Withdrawn(u64),
    /// Everything that happened to an agent.
    History {
        /// The agent.
        agent: AgentId,
        /// Its events with their numbers and times.
        events: Vec<(u64, u64, Event)>,
    },
    /// What could stand where something has been begun.
    Offers {
        /// What had been typed of the word.
        word: String,
        /// The candidates, best first.
        candidates: Vec<Candidate>,
    },
    /// The workflows that can be called by their names: all there are.
    Workflows(Vec<Candidate>),
    /// The command of the person's own that runs, if one does.
    Shell(Option<String>),
    /// The session is over; the screen closes.
    Over,
}

/// Where a session stands, beside what events say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The session, once there is one.
    pub session: Option<SessionId>,
    /// Its lead.
    pub lead: Option<AgentId>,
    /// The directory.
    pub dir: String,
    /// The model of the lead.
    pub model: String,
    /// Its effort, if the model has one.
    pub effort: Option<String>,
    /// Whether orchestration mode is on.
    pub mode: bool,
    /// Whether the built-in offline model answers.
    pub offline: bool,
    /// What a session that has no ledger yet may spend, in nano-dollars.
    pub cap_nano: Option<u64>,
    /// Whether something was left unfinished, so that it can go on.
    pub can_go_on: bool,
    /// Whether what happens is only watched: another process drives the session.
    pub watched: bool,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Its number, by which it is answered.
    pub id: u64,
    /// The agent that asks, if one does.
    pub agent: Option<AgentId>,
    /// What people call the agent or program that asks.
    pub who: String,
    /// What is wanted, not cleaned: `run: COMMAND`, `change: PATH`, or a sentence.
    pub wanted: String,
    /// Why it is asked.
    pub why: String,
    /// What it would start, line by line.
    pub details: Vec<String>,
    /// What kind of answer is wanted.
    pub about: About,
}

/// What a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A call of an agent: yes, no, and always where a rule can be kept; then the words say what always
    /// means.
    Call {
        /// What always means.
        always: Option<String>,
    },
    /// A workflow that wants to run: yes or no.
    Workflow,
    /// A question of a program, answered in words.
    Checkpoint,
}

/// Something that could stand where a word has been begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What stands there if it is taken.
    pub text: String,
    /// What it is, in a few words.
    pub about: String,
}
