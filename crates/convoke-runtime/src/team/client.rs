//! The team client: where people and scripts deal with a team, whether it is driven or not. It needs the
//! journal and nothing else. It never acts for a member: what it sends comes from a person and says so.

mod post;
mod rows;

use std::time::Duration;

use convoke_journal::{Journal, KeyedInput, StreamId};
use convoke_kernel::{
    AgentId, Board, BoardEntry, BoardEvent, Claimant, Event, LEAD, Letter, Member, MessageId, NewTask,
    Roster, SessionId, Task, TaskEdit, TaskId,
};

use crate::clock::Clock;
use crate::error::Error;
use crate::ids::Ids;
use crate::inputs::Waiting;
use crate::team::shared;

pub use rows::MemberRow;
pub(crate) use rows::{history, rows};

/// Deals with teams from outside. Clones share the journal.
#[derive(Clone)]
pub struct TeamClient {
    journal: Journal,
    clock: Clock,
    ids: Ids,
}

impl TeamClient {
    /// A client over this journal.
    pub fn new(journal: Journal, clock: Clock, ids: Ids) -> Self {
        Self { journal, clock, ids }
    }

    /// The streams that belong to a session's team beside those of its agents, for a caller that removes it.
    pub fn streams(session: &SessionId) -> [StreamId; 3] {
        [shared::roster_stream(session), shared::board_stream(session), shared::client_stream(session)]
    }

    /// The roster of a session; empty if there is none.
    pub async fn roster(&self, session: &SessionId) -> Result<Roster, Error> {
        shared::roster(&self.journal, session).await
    }

    /// The board of a session; empty if there is none.
    pub async fn board(&self, session: &SessionId) -> Result<Board, Error> {
        shared::board(&self.journal, session).await
    }

    /// The members of a session's team and what they are doing, the lead first.
    pub async fn members(&self, session: &SessionId) -> Result<Vec<MemberRow>, Error> {
        let roster = self.roster(session).await?;
        let board = self.board(session).await?;
        rows(&self.journal, &roster, &board).await
    }

    /// What is left of a session's team's work, one line each; what no member is at is left too.
    pub async fn left(&self, session: &SessionId) -> Result<Vec<String>, Error> {
        let roster = self.roster(session).await?;
        let board = self.board(session).await?;
        let open = crate::team::open(&self.journal, &roster, &board).await;
        Ok(open.into_iter().chain(crate::team::left(&roster, &board)).collect())
    }

    /// What has happened to a task and when, its holders' signs of life left out.
    pub async fn task_history(
        &self,
        session: &SessionId,
        task: &TaskId,
    ) -> Result<Vec<(u64, BoardEvent)>, Error> {
        history(&self.journal, session, task).await
    }

    /// Writes a task on the board.
    pub async fn add_task(&self, session: &SessionId, task: NewTask, by: &str) -> Result<Task, Error> {
        let id = TaskId::from_bits(self.ids.bits()?);
        let entry = BoardEntry::Create { id: id.clone(), task, by: by.to_owned() };
        self.change(session, &id, entry).await
    }

    /// Cancels a task, held or not.
    pub async fn cancel(&self, session: &SessionId, task: &TaskId, by: &str) -> Result<Task, Error> {
        self.change(session, task, BoardEntry::Cancel { task: task.clone(), by: by.to_owned() }).await
    }

    /// Has a failed task tried again.
    pub async fn retry(&self, session: &SessionId, task: &TaskId, by: &str) -> Result<Task, Error> {
        self.change(session, task, BoardEntry::Retry { task: task.clone(), by: by.to_owned() }).await
    }

    /// Changes what a task says.
    pub async fn edit(
        &self,
        session: &SessionId,
        task: &TaskId,
        edit: TaskEdit,
        by: &str,
    ) -> Result<Task, Error> {
        self.change(session, task, BoardEntry::Edit { task: task.clone(), edit, by: by.to_owned() }).await
    }

    /// Claims a task; claiming what one holds renews it. The answer has the claim's token and when it runs
    /// out.
    pub async fn claim(
        &self,
        session: &SessionId,
        task: &TaskId,
        claimant: Claimant,
        ttl: Duration,
    ) -> Result<Task, Error> {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.change(session, task, BoardEntry::Claim { task: task.clone(), claimant, ttl }).await
    }

    /// Says what a task came to, or why it failed. Only its holder can, and with a token only under that
    /// claim.
    pub async fn finish(
        &self,
        session: &SessionId,
        task: &TaskId,
        holder: Claimant,
        token: Option<u64>,
        result: Result<String, String>,
    ) -> Result<Task, Error> {
        let id = task;
        let task = task.clone();
        let entry = match result {
            Ok(result) => BoardEntry::Finish { task, holder, token, result },
            Err(why) => BoardEntry::Fail { task, holder, token, why },
        };
        self.change(session, id, entry).await
    }

    /// Makes one entry of the board, and shows the task it was about.
    async fn change(&self, session: &SessionId, task: &TaskId, entry: BoardEntry) -> Result<Task, Error> {
        let at = self.clock.now();
        let update = shared::board_update(session, vec![entry], at);
        let state = self.journal.update(&update.stream, at, &update.change).await.map_err(shared::refused)?;
        let board: Board = serde_json::from_str(&state)?;
        let gone = || {
            Error::TeamRefused(format!(
                "there is no task {task} on this board; `convoke tasks list` shows it"
            ))
        };
        board.task(task).cloned().ok_or_else(gone)
    }

    /// Sends a letter from a person to a member.
    pub async fn send(
        &self,
        session: &SessionId,
        lead: &AgentId,
        to: &str,
        text: &str,
        urgent: bool,
    ) -> Result<MessageId, Error> {
        let mail = post::message(to, text, urgent)?;
        self.mail(session, lead, mail).await
    }

    /// Asks a teammate, from a person, to stop; past its patience the runtime stops it. The answer is the
    /// request.
    pub async fn ask_to_stop(
        &self,
        session: &SessionId,
        lead: &AgentId,
        name: &str,
        patience: Duration,
    ) -> Result<MessageId, Error> {
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let mail = post::stop(name, self.clock.now().saturating_add(patience));
        self.mail(session, lead, mail).await
    }

    /// Answers a plan in the lead's stead. Only for what a person said. The answer is the letter that tells
    /// it.
    pub async fn answer_plan(
        &self,
        session: &SessionId,
        lead: &AgentId,
        request: &MessageId,
        approve: bool,
        feedback: &str,
    ) -> Result<MessageId, Error> {
        let mail = post::plan_answer(&self.roster(session).await?, request, approve, feedback)?;
        self.mail(session, lead, mail).await
    }

    async fn mail(&self, session: &SessionId, lead: &AgentId, mail: post::Mail) -> Result<MessageId, Error> {
        let id = MessageId::from_bits(self.ids.bits()?);
        post::send(&self.journal, &self.clock, session, lead, id, mail).await
    }

    /// The letters that wait for a member, in the order it will read them. Looking does not consume.
    pub async fn waiting(&self, session: &SessionId, name: &str) -> Result<Vec<Letter>, Error> {
        match self.member(session, name).await? {
            Some(member) => shared::waiting_letters(&self.journal, &member.agent).await,
            None => Ok(Vec::new()),
        }
    }

    /// The letters that are in a member's history, each with the time at which it got there; one that left it
    /// again with the message that carried it is not among them until it is read once more.
    pub async fn read_letters(&self, session: &SessionId, name: &str) -> Result<Vec<(u64, Letter)>, Error> {
        let Some(member) = self.member(session, name).await? else { return Ok(Vec::new()) };
        let mut read: Vec<(u64, Letter)> = Vec::new();
        for record in self.journal.load(&StreamId::from(&member.agent), 0).await? {
            let agent = member.agent.clone();
            let seq = record.seq;
            let event =
                Event::decode(&record.event).map_err(|cause| Error::BadEvent { agent, seq, cause })?;
            let (came, left) = match event {
                Event::ExchangeOpened(e) => (e.letters, Vec::new()),
                Event::MailDelivered(e) => (e.letters, Vec::new()),
                Event::ExchangeClosed(e) => (Vec::new(), e.returned),
                _ => continue,
            };
            read.retain(|(_, letter)| left.iter().all(|gone| gone.id != letter.id));
            read.extend(came.into_iter().map(|letter| (record.at, letter)));
        }
        Ok(read)
    }

    /// Has an agent begin a new history, with this in mind, before its next request.
    pub async fn compact(&self, agent: &AgentId, focus: Option<&str>) -> Result<(), Error> {
        let waiting = Waiting { compact: Some(focus.unwrap_or_default().to_owned()), ..Waiting::default() };
        let key = format!("compact:{}", MessageId::from_bits(self.ids.bits()?));
        let input = KeyedInput { stream: StreamId::from(agent), key, body: serde_json::to_string(&waiting)? };
        self.journal.submit(&input, self.clock.now()).await?;
        Ok(())
    }

    /// A member, stopped or not; `None` is the lead of a team that has not been opened yet.
    async fn member(&self, session: &SessionId, name: &str) -> Result<Option<Member>, Error> {
        let roster = self.roster(session).await?;
        match (roster.member(name), roster.recipient(name)) {
            (Some(member), _) => Ok(Some(member.clone())),
            (None, _) if name == LEAD => Ok(None),
            (None, Err(refusal)) => Err(Error::TeamRefused(refusal.to_string())),
            (None, Ok(meant)) => Ok(Some(meant.clone())),
        }
    }
}
