//! What members do with their team: each call becomes the result that the model reads and what has to be
//! committed with it. Nothing is changed here; the driver commits it in one append, and the rules are the
//! kernel's.

mod board;
mod describe;
mod mail;
mod members;
mod recall;
#[cfg(test)]
mod tests;

use convoke_kernel::{
    AgentId, AgentSpec, Board, BoardEntry, Claimant, LEAD, Letter, LetterKind, MAX_LETTER, Membership,
    MessageId, Request, RequestKind, Roster, RosterEntry, TeamCall, ToolResult,
};

use crate::children::Parent;
use crate::error::Error;
use crate::team::shared;

/// What a call comes to.
#[derive(Debug)]
pub(crate) struct Act {
    /// What the model reads.
    pub(crate) result: ToolResult,
    /// What is done to the roster; the letters are posted beside it.
    pub(crate) roster: Vec<RosterEntry>,
    /// What is done to the board.
    pub(crate) board: Vec<BoardEntry>,
    /// What is sent.
    pub(crate) letters: Vec<Letter>,
    /// The teammates that begin to exist.
    pub(crate) starts: Vec<Starts>,
}

/// A teammate that begins to exist.
#[derive(Debug)]
pub(crate) struct Starts {
    /// Its agent.
    pub(crate) agent: AgentId,
    /// What it is made of.
    pub(crate) spec: AgentSpec,
    /// What it is told first.
    pub(crate) prompt: String,
}

impl Act {
    fn says(text: impl Into<String>) -> Self {
        let roster = Vec::new();
        let board = Vec::new();
        let letters = Vec::new();
        let starts = Vec::new();
        Self { result: ToolResult::done(text), roster, board, letters, starts }
    }

    fn refused(text: impl Into<String>) -> Self {
        Self { result: ToolResult::refused(text), ..Self::says("") }
    }
}

/// Says what a call of a member's comes to, as its team stands now. `order` is the place of its first letter
/// among those of its sender. What the roster or the board would refuse is refused here already, with the
/// same words.
pub(crate) async fn act(parent: &Parent, call: &str, order: u64, request: &TeamCall) -> Result<Act, Error> {
    let Some(me) = parent.spec.team.as_deref() else {
        return Ok(Act::refused("Not done: you belong to no team."));
    };
    let journal = &parent.config.journal;
    let session = &parent.spec.session;
    let at = parent.config.clock.now();
    let mut roster = shared::roster(journal, session).await?;
    let board = shared::board(journal, session).await?;
    let mut opening = Vec::new();
    if me.name == LEAD && roster.member(LEAD).is_none() {
        opening.push(RosterEntry::Open { lead: parent.id.clone() });
        shared::foresee(&mut roster, &opening, at).map_err(Error::TeamRefused)?;
    }
    let scene = ActContext { parent, me, call, order, at, roster, board };
    let done = match request {
        TeamCall::Spawn(wanted) => members::spawn(&scene, wanted).await,
        TeamCall::Send { to, text, urgent } => mail::send(&scene, to, text, *urgent),
        TeamCall::Broadcast { text } => mail::broadcast(&scene, text),
        TeamCall::ReadInbox => mail::inbox(&scene).await?,
        TeamCall::ListTeammates => members::list(&scene).await?,
        TeamCall::RequestShutdown { name, reason } => members::request_shutdown(&scene, name, reason),
        TeamCall::AnswerShutdown { request, approve, reason } => {
            members::answer_shutdown(&scene, request.as_deref(), *approve, reason)
        }
        TeamCall::SubmitPlan { plan } => members::submit_plan(&scene, plan),
        TeamCall::ReviewPlan { request, approve, feedback } => {
            members::review_plan(&scene, request, *approve, feedback)
        }
        TeamCall::TaskCreate(wanted) => board::create(&scene, wanted),
        TeamCall::TaskUpdate(wanted) => board::update(&scene, wanted),
        TeamCall::TaskGet { task } => board::get(&scene, task).await?,
        TeamCall::TaskList => Ok(board::list(&scene)),
        TeamCall::ClaimTask { task } => board::claim(&scene, task),
        TeamCall::Recall { reference, from } => recall::recall(&scene, reference, *from).await?,
    };
    let mut act = done.unwrap_or_else(Act::refused);
    if let Err(refusal) = scene.after(&act) {
        act = Act::refused(refusal);
    }
    if !act.roster.is_empty() || !act.letters.is_empty() {
        act.roster.splice(0..0, opening);
    }
    Ok(act)
}

/// What a call comes to, or the text of why it is refused.
type Done = Result<Act, String>;

/// The caller, and how the team stands.
struct ActContext<'a> {
    parent: &'a Parent,
    me: &'a Membership,
    call: &'a str,
    order: u64,
    at: u64,
    roster: Roster,
    board: Board,
}

impl ActContext<'_> {
    fn leads(&self) -> bool {
        self.me.name == LEAD
    }

    fn claimant(&self) -> Claimant {
        Claimant {
            name: self.me.name.clone(),
            agent: Some(self.parent.id.clone()),
            role: self.me.role.clone(),
        }
    }

    /// The id of the letter that this call sends to a member.
    fn letter_id(&self, to: &str) -> MessageId {
        MessageId::derived(&["letter", self.parent.id.as_str(), self.call, to])
    }

    /// The letter that this call sends to a member, as the only one of its or as one of several.
    fn letter(&self, to: &str, index: u64, kind: LetterKind, text: &str) -> Result<Letter, String> {
        if text.len() > MAX_LETTER {
            let bytes = text.len();
            return Err(format!(
                "Not sent: the text has {bytes} bytes and a letter may have {MAX_LETTER}. Put the rest into \
                    a file and name it."
            ));
        }
        Ok(Letter {
            id: self.letter_id(to),
            from: self.me.name.clone(),
            to: to.to_owned(),
            kind,
            text: text.to_owned(),
            urgent: false,
            order: self.order.saturating_add(index),
            at: self.at,
            request: None,
            approve: None,
            task: None,
        })
    }

    /// The roster and the board as an act would leave them.
    fn after(&self, act: &Act) -> Result<(Roster, Board), String> {
        let mut roster = self.roster.clone();
        let mut board = self.board.clone();
        let posts: Vec<RosterEntry> = act.letters.iter().map(shared::post).collect();
        shared::foresee(&mut roster, &act.roster, self.at)?;
        shared::foresee(&mut roster, &posts, self.at)?;
        shared::foresee(&mut board, &act.board, self.at)?;
        Ok((roster, board))
    }

    /// The open request that is meant by an id, by a unique beginning of one, or by nothing if only one
    /// waits. Not by a name: its sender may have asked for something else since.
    fn request(&self, kind: RequestKind, said: &str, to: &str) -> Result<(MessageId, Request), String> {
        let what = match kind {
            RequestKind::Shutdown => "request to stop",
            RequestKind::Plan => "plan",
        };
        let open =
            self.roster.open_requests().into_iter().filter(|(_, asked)| asked.kind == kind && asked.to == to);
        let open: Vec<(&MessageId, &Request)> = open.collect();
        let said = said.trim();
        let body = said.strip_prefix(MessageId::PREFIX).unwrap_or(said);
        let means =
            |(id, _): &&(&MessageId, &Request)| id.as_str()[MessageId::PREFIX.len()..].starts_with(body);
        let meant: Vec<&(&MessageId, &Request)> = open.iter().filter(means).collect();
        match meant.as_slice() {
            [(id, asked)] => Ok(((*id).clone(), (*asked).clone())),
            _ => {
                let each = |(id, asked): &(&MessageId, &Request)| format!("{id} (from {})", asked.from);
                let waiting: Vec<String> = open.iter().map(each).collect();
                let waiting = if waiting.is_empty() { "none".to_owned() } else { waiting.join(", ") };
                let found = if meant.is_empty() { "there is no" } else { "there is more than one" };
                Err(format!("{found} {what} '{said}' that waits for your answer. Waiting: {waiting}."))
            }
        }
    }
}
