//! What the driver of a team's member does beside the circle: letters are read between two turns, what the
//! work came to is sent to the lead, and work is taken from the board. Which of it is due is the kernel's
//! decision.

use convoke_journal::KeyedInput;
use convoke_kernel::{
    AgentId, BoardEntry, Claimant, Effect, Event, ExchangeClosed, Facts, Failure, FailureKind, Input, LEAD,
    Letter, LetterKind, MessageId, Outcome, Ran, Reply, Role, RosterEntry, Task, ToolResult, next_letters,
};

use tokio::sync::watch;

use super::Driver;
use super::commit::CommitExtras;
use crate::error::Error;
use crate::inputs;
use crate::means;
use crate::team::{facts, shared};

/// Characters of what a teammate's work came to that are sent; all of it is in its transcript.
const RESULT_CHARS: usize = 16_000;

impl Driver {
    /// The name under which the agent belongs to its team.
    pub(crate) fn name(&self) -> Option<&str> {
        self.agent.spec()?.team.as_ref().map(|team| team.name.as_str())
    }

    /// The agent as the board names it.
    pub(crate) fn claimant(&self) -> Option<Claimant> {
        let team = self.agent.spec()?.team.as_ref()?;
        Some(Claimant { name: team.name.clone(), agent: Some(self.id.clone()), role: team.role.clone() })
    }

    /// The agents that read these letters, as this process knows the roster.
    pub(super) fn readers(&self, letters: &[Letter]) -> Vec<(String, AgentId)> {
        let Some(team_cache) = &self.session.team_cache else { return Vec::new() };
        let (roster, _) = team_cache.team();
        let mut readers: Vec<(String, AgentId)> = Vec::new();
        for letter in letters {
            let agent = roster.member(&letter.to).map(|member| member.agent.clone());
            let agent = agent.or_else(|| (letter.to == LEAD).then(|| self.session.lead.clone()));
            if let Some(agent) = agent.filter(|_| readers.iter().all(|(name, _)| *name != letter.to)) {
                readers.push((letter.to.clone(), agent));
            }
        }
        readers
    }

    /// Letters that can be put into the history right now.
    pub(super) async fn mail_now(&mut self) -> Result<Option<(Input, CommitExtras)>, Error> {
        if !self.agent.takes_mail() || self.agent.is_idle() {
            return Ok(None);
        }
        let heard = next_letters(&inputs::queue(self.writer.inputs().await?));
        Ok(heard.map(|heard| (self.mail(heard.key(), heard.letters), CommitExtras::acks(heard.keys))))
    }

    /// Letters as an input, with what else there is to tell.
    pub(super) fn mail(&self, key: String, letters: Vec<Letter>) -> Input {
        Input::Mail { key, letters, rests: self.sleepers() }
    }

    /// Sleeping members that this lead has not been told of.
    fn sleepers(&self) -> Vec<String> {
        let Some(team_cache) = self.session.team_cache.as_ref().filter(|_| self.leads_team()) else {
            return Vec::new();
        };
        let (roster, _) = team_cache.team();
        roster.untold_rests().iter().map(|member| member.name.clone()).collect()
    }

    pub(crate) fn leads_team(&self) -> bool {
        self.agent.spec().is_some_and(|spec| spec.role == Role::Lead && spec.team.is_some())
    }

    /// What an agent that is taken up is told of itself, if it belongs to a team.
    pub(super) async fn resume(&self, changed: Vec<String>) -> Result<Input, Error> {
        match self.agent.spec().filter(|spec| spec.team.is_some()) {
            Some(spec) => {
                let facts = facts::facts(&self.config, &self.session, &self.id, spec).await?;
                Ok(Input::ResumeAs { changed, facts: Box::new(facts) })
            }
            None => Ok(Input::Resume { changed }),
        }
    }

    /// What follows for the team from these events of the agent's, to be committed with them.
    pub(super) fn follow(&self, events: &[Event], at: u64, extras: &mut CommitExtras) {
        let Some(spec) = self.agent.spec().filter(|spec| spec.team.is_some()) else { return };
        let Some(name) = self.name().map(str::to_owned) else { return };
        let teammate = spec.role == Role::Teammate;
        let marks =
            |letters: &[Letter]| letters.iter().map(|letter| (letter.id.clone(), letter.urgent)).collect();
        for event in events {
            match event {
                Event::ExchangeOpened(e) => {
                    if !e.letters.is_empty() {
                        extras
                            .roster
                            .push(RosterEntry::Take { name: name.clone(), letters: marks(&e.letters) });
                        self.tell_rests(extras);
                    }
                    if teammate {
                        extras.roster.push(RosterEntry::Wake { name: name.clone() });
                        extras.roster.push(RosterEntry::Recover { name: name.clone() });
                    }
                }
                Event::ExchangeReopened(_) if teammate => {
                    extras.roster.push(RosterEntry::Recover { name: name.clone() });
                }
                // A letter that cannot be read does not wait any more, either.
                Event::InputRejected(e) => {
                    if let Some(id) = e.input.split(':').next().and_then(|id| id.parse::<MessageId>().ok()) {
                        let letters = vec![(id, e.body.contains("\"urgent\":true"))];
                        extras.roster.push(RosterEntry::Take { name: name.clone(), letters });
                    }
                }
                Event::MailDelivered(e) => {
                    extras.roster.push(RosterEntry::Take { name: name.clone(), letters: marks(&e.letters) });
                    self.tell_rests(extras);
                }
                Event::ExchangeClosed(e) => {
                    if !e.returned.is_empty() {
                        extras
                            .roster
                            .push(RosterEntry::PutBack { name: name.clone(), letters: marks(&e.returned) });
                        extras.inputs.extend(e.returned.iter().filter_map(|letter| self.put_back(letter)));
                    }
                    if teammate {
                        self.tell_the_lead(&name, e, at, extras);
                    }
                }
                _ => {}
            }
        }
    }

    fn tell_rests(&self, extras: &mut CommitExtras) {
        let names = self.sleepers();
        if !names.is_empty() {
            extras.roster.push(RosterEntry::TellRests { names });
        }
    }

    /// The same letter under a new key: the queue knows the old one as dealt with.
    fn put_back(&self, letter: &Letter) -> Option<KeyedInput> {
        let input = shared::letter_input(&self.id, letter).ok()?;
        Some(KeyedInput { key: format!("{}:back:{}", input.key, self.writer.seq()), ..input })
    }

    /// What a teammate's work came to is sent by the runtime, whether the model thought of it or not.
    fn tell_the_lead(&self, name: &str, closed: &ExchangeClosed, at: u64, extras: &mut CommitExtras) {
        let outcome = &closed.outcome;
        let (kind, text) = match outcome {
            Outcome::Ok { text } => (LetterKind::Result, text.trim().to_owned()),
            Outcome::Failed { message, text, kind } => {
                // What the machine cut off goes on with the next resume and has not failed.
                if matches!(kind, FailureKind::Interrupted) {
                    return;
                }
                // What was taken back would come out the same again, whatever was said before it was cut.
                if closed.taken_back || !outcome.is_partial() {
                    extras.roster.push(RosterEntry::Fail { name: name.to_owned(), why: message.clone() });
                    let why = format!("{name} failed: {message}");
                    extras.board.push(BoardEntry::ReleaseAll { agent: self.id.clone(), why });
                }
                let said =
                    if text.trim().is_empty() { String::new() } else { format!("\n\n{}", text.trim()) };
                (LetterKind::Failed, format!("{message}{said}"))
            }
        };
        if text.is_empty() {
            return;
        }
        let cut: String = text.chars().take(RESULT_CHARS).collect();
        let text = match cut.len() < text.len() {
            true => format!(
                "{cut}\n(cut at {RESULT_CHARS} of {} characters; ask {name} for the rest)",
                text.chars().count()
            ),
            false => text,
        };
        let id = MessageId::derived(&["outcome", self.id.as_str(), &self.writer.seq().to_string()]);
        extras.letters.push(self.letter(id, name, LEAD, kind, text, at));
    }

    fn letter(&self, id: MessageId, from: &str, to: &str, kind: LetterKind, text: String, at: u64) -> Letter {
        let from = from.to_owned();
        let to = to.to_owned();
        let order = self.order();
        let task =
            self.agent.work().cloned().filter(|_| matches!(kind, LetterKind::Result | LetterKind::Failed));
        Letter { id, from, to, kind, text, urgent: false, order, at, request: None, approve: None, task }
    }

    /// The place of the next letter among those of this agent: it grows with every append.
    pub(crate) fn order(&self) -> u64 {
        (self.writer.seq() + 1).saturating_mul(1_000)
    }

    /// Claims a task and hands it over, in one operation. False if another was quicker, or the board says no.
    pub(crate) async fn claim(&mut self, task: &Task) -> Result<bool, Error> {
        let (Some(claimant), Some(team_cache)) = (self.claimant(), &self.session.team_cache) else {
            return Ok(false);
        };
        let mut board = (*team_cache.team().1).clone();
        let ttl = self.claim_ttl();
        let entry = BoardEntry::Claim { task: task.id.clone(), claimant, ttl };
        // What is handed over is the task as the claim leaves it.
        if shared::foresee(&mut board, std::slice::from_ref(&entry), self.config.clock.now()).is_err() {
            self.reload_crew().await?;
            return Ok(false);
        }
        let Some(task) = board.task(&task.id) else { return Ok(false) };
        let key = format!("claim:{}:{}", task.id, self.writer.seq());
        let brief = Box::new(board.brief(task));
        self.hand_over(Input::Work { key, brief, again: false }, vec![entry]).await
    }

    /// Asks the agent to go on with the task that it holds. False if it holds it no more.
    pub(crate) async fn offer(&mut self, task: &Task) -> Result<bool, Error> {
        let Some(team_cache) = &self.session.team_cache else { return Ok(false) };
        let (_, board) = team_cache.team();
        let entries = vec![
            BoardEntry::Offer { task: task.id.clone(), agent: self.id.clone() },
            BoardEntry::Renew { agents: vec![self.id.clone()], ttl: self.claim_ttl() },
        ];
        let key = format!("offer:{}:{}", task.id, self.writer.seq());
        let brief = Box::new(board.brief(task));
        self.hand_over(Input::Work { key, brief, again: true }, entries).await
    }

    /// Opens an exchange about a task, and writes on the board what belongs to it in the same append. False
    /// if the board says no.
    async fn hand_over(&mut self, work: Input, board: Vec<BoardEntry>) -> Result<bool, Error> {
        // A stop from before is not meant for what is only now begun.
        self.look().await?;
        self.halt().await?;
        match self.input(work, CommitExtras { board, ..CommitExtras::default() }).await {
            Ok(()) => Ok(true),
            Err(Error::Journal(convoke_journal::Error::Declined { .. })) => {
                self.reload_crew().await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives back a task that the agent has left unfinished as often as is sensible, and tells the lead.
    pub(crate) async fn give_back(&mut self, task: &Task) -> Result<(), Error> {
        let Some(holder) = self.claimant() else { return Ok(()) };
        let at = self.config.clock.now();
        let why = format!("{} ended its work without finishing it", holder.name);
        let text =
            format!("{why}, also when asked again: {} \"{}\" is back on the board.", task.id, task.subject);
        let id = MessageId::derived(&["given back", self.id.as_str(), task.id.as_str(), &at.to_string()]);
        let name = holder.name.clone();
        let letter = self.letter(id, &name, LEAD, LetterKind::Notice, text, at);
        let release = BoardEntry::Release { task: task.id.clone(), holder, token: None, why };
        self.enter(CommitExtras { board: vec![release], letters: vec![letter], ..CommitExtras::default() })
            .await
    }

    pub(crate) async fn reload_crew(&self) -> Result<(), Error> {
        match &self.session.team_cache {
            Some(team_cache) => team_cache.reload().await,
            None => Ok(()),
        }
    }

    fn claim_ttl(&self) -> u64 {
        u64::try_from(self.config.team.claim_ttl.as_millis()).unwrap_or(u64::MAX)
    }

    /// An urgent letter interrupts the commands that the agent runs; what they came to is recorded as it
    /// always is.
    pub(super) fn heed_urgent(&mut self) {
        let Some(team_cache) = &self.session.team_cache else { return };
        let (roster, _) = team_cache.team();
        let urgent = self.name().and_then(|name| roster.member(name)).is_some_and(|member| member.urgent > 0);
        if urgent && self.runs_commands() {
            self.hurried = true;
            self.hurry.cancel();
            self.hurry = self.ours.child_token();
        }
    }

    fn runs_commands(&self) -> bool {
        let own =
            |effect: &Effect| matches!(effect, Effect::RunTool { request, .. } if request.is_own_work());
        self.agent.pending().iter().any(own)
    }

    /// The result of a command that an urgent letter cut off says so.
    pub(super) fn in_a_hurry(&mut self, mut result: ToolResult) -> ToolResult {
        if std::mem::take(&mut self.hurried) && result.ran != Ran::Done {
            result.text =
                result.text.replace("a person stopped Convoke", "an urgent letter came, which follows");
        }
        result
    }

    /// A result that the agent could not read and still hand back is shortened, and says so.
    pub(super) fn within_means(&self, mut result: ToolResult) -> ToolResult {
        let Some(spec) = self.agent.spec() else { return result };
        let before = self.agent.history_tokens();
        if let Some(most) = means::affordable(spec, &self.session.ledger.ledger(), self.id.as_str(), before) {
            result.text = means::shortened(result.text, most);
        }
        result
    }

    /// A summary, with what the new history has to say beside it.
    pub(super) async fn summarised(&self, call: u32, reply: Reply) -> Result<Input, Error> {
        Ok(Input::Summarised { call, reply: Box::new(reply), facts: self.facts().await? })
    }

    /// The server would not read the history for the summary.
    pub(super) async fn unsummarised(
        &self,
        call: u32,
        attempt: u32,
        failure: Failure,
    ) -> Result<Input, Error> {
        Ok(Input::Unsummarised { call, attempt, failure, facts: self.facts().await? })
    }

    async fn facts(&self) -> Result<Box<Facts>, Error> {
        Ok(Box::new(match self.agent.spec() {
            Some(spec) => facts::facts(&self.config, &self.session, &self.id, spec).await?,
            None => Facts::default(),
        }))
    }
}

/// Waits until something about the team has changed; for ever without one.
pub(super) async fn woken(waker: Option<&mut watch::Receiver<u64>>) {
    // The ringing end lives in the session, as long as a receiver exists.
    let woken = match waker {
        Some(waker) => waker.changed().await.is_ok(),
        None => false,
    };
    if !woken {
        std::future::pending().await
    }
}
