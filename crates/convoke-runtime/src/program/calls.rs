//! Does what a program's calls want: starts agents, has findings verified, runs commands that read, waits.
//! Each call is one task that ends with what the program is told.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use convoke_journal::Flight;
use convoke_kernel::{
    AgentId, CallAnswer, CallResult, FailureKind, Isolation, ItemStatus, MadeCall, Network, Outcome, Report,
    Reused, Role, Sandbox, Segment, Spent, ToolRequest, ToolResult, Verdict, VoterResult, answer_to,
    judge_report,
};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::is_too_deep;
use super::prepare::{Prepared, Prompted, digest};
use super::start::may_read;
use crate::bash::Bash;
use crate::change_recorder::AgentWorktree;
use crate::children::{self, Parent};
use crate::confine::remove_private;
use crate::drive::DriveOutcome;
use crate::error::Error;
use crate::fan_out::{NOT_ADMITTED, Remembered, Trace, check_citations, still_stands, voter_result};
use crate::stop::StopLevel;
use crate::workspace::Snapshot;

/// More of a command's output than this is not given to a program.
const MOST_PRINTED: usize = 1 << 20;

/// What a call's task came to.
pub(super) enum Done {
    /// The call has its result. What is to be remembered under which key goes with it.
    Ended {
        call: u32,
        result: Box<CallResult>,
        trace: Option<Trace>,
        memory: Vec<Memory>,
        flights: Vec<Flight>,
    },
    /// A stop was requested, or a person has to answer: nothing is lost, and it goes on with the next resume.
    Left { call: u32, parked: bool },
    /// Others may be at a key again.
    Landed,
}

/// A result that others may take for an equal one.
pub(super) enum Memory {
    /// Of an agent: the result itself, under this key.
    Call { key: String },
    /// Of a verifier.
    Vote { key: String, vote: Box<VoterResult> },
}

/// One call, and what doing it needs.
pub(super) struct Doing {
    pub(super) parent: Parent,
    pub(super) run: String,
    /// The run under whose name its agents are known.
    pub(super) origin: String,
    /// The call, and what identifies it.
    pub(super) made: MadeCall,
    pub(super) fresh: bool,
    /// Whether an agent that had failed is to try again from where it stands.
    pub(super) again: bool,
    pub(super) before: Arc<Snapshot>,
}

impl Doing {
    pub(super) async fn perform(self, prepared: Prepared) -> Result<Done, Error> {
        match prepared {
            Prepared::Agent(prompted) => self.agent(*prompted).await,
            Prepared::Verify { each, report, voters } => self.verify(*each, *report, voters).await,
            Prepared::Sh { command } => self.sh(command).await,
            Prepared::Checkpoint { question } => self.checkpoint(question).await,
            Prepared::Workflow { name, path } => self.workflow(name, path).await,
            Prepared::Timer { ms } => self.timer(ms).await,
        }
    }

    /// The agent that does this call, the same one when the call is asked for again.
    pub(super) fn agent_id(&self, voter: u32) -> AgentId {
        self.made.agent(&self.origin, voter)
    }

    fn left(&self, parked: bool) -> Done {
        Done::Left { call: self.made.call, parked }
    }

    fn ended(&self, result: CallResult) -> Done {
        Done::Ended {
            call: self.made.call,
            result: Box::new(result),
            trace: None,
            memory: Vec::new(),
            flights: Vec::new(),
        }
    }

    /// Waits for a place to work. `None` when a stop is requested first.
    async fn place(&self) -> Result<Option<OwnedSemaphorePermit>, Error> {
        let mut stop = self.parent.stop.clone();
        let places = Arc::clone(&self.parent.session.places);
        let broke = |_| Error::EffectBroke(self.parent.id.clone());
        tokio::select! {
            place = places.acquire_owned() => place.map(Some).map_err(broke),
            _ = stop.above(StopLevel::Run) => Ok(None),
        }
    }

    /// Waits for work under way at the same key. `None` when a stop is requested first.
    async fn flight(&self, key: &str) -> Result<Option<Flight>, Error> {
        let mut stop = self.parent.stop.clone();
        tokio::select! {
            flight = self.parent.config.journal.single_flight(key) => Ok(Some(flight?)),
            _ = stop.above(StopLevel::Run) => Ok(None),
        }
    }

    async fn agent(self, prompted: Prompted) -> Result<Done, Error> {
        let key = result_key(&self.made.key, self.made.occurrence);
        // A call that waits for equal work takes no place from calls that can begin.
        let Some(flight) = self.flight(&key).await? else { return Ok(self.left(false)) };
        let Some(place) = self.place().await? else {
            flight.land().await?;
            return Ok(self.left(false));
        };
        if !self.fresh
            && let Some(result) = remembered(&self.parent, &key).await?
        {
            flight.land().await?;
            return Ok(self.ended(result));
        }
        let Prompted { mut spec, prompt, isolation } = prompted;
        let id = self.agent_id(0);
        let schema = spec.output.is_some();
        let tree = match isolation {
            Isolation::Worktree => match AgentWorktree::make(&self.parent, &id).await {
                Ok(tree) => Some(tree),
                // Never the main checkout in its stead.
                Err(why) => {
                    flight.land().await?;
                    let kind = FailureKind::Sandbox;
                    let status =
                        ItemStatus::Failed { kind, message: format!("no worktree could be made: {why}") };
                    let answer = answer_to(&status, None, schema);
                    return Ok(self.ended(CallResult::bare(status, answer)));
                }
            },
            Isolation::None | Isolation::Copy => None,
        };
        if let Some(tree) = &tree {
            spec.dir = tree.dir();
        }
        let dir = PathBuf::from(&self.parent.spec.dir);
        let ended = children::drive_on(&self.parent, &id, spec, &prompt, self.again).await?;
        drop(place);
        let Some(outcome) = &ended.outcome else {
            flight.land().await?;
            return Ok(self.left(ended.parked));
        };
        // An agent that took more than one turn has looked around, and may have written, with whatever tool.
        let looked = ended.summary.as_ref().is_some_and(|summary| summary.turns > 1);
        let trace = if looked && tree.is_none() {
            let sight = self.parent.config.confine.sight(&dir);
            Some(Trace::since(&self.parent.session.looks, &sight, &self.before, &dir).await?)
        } else {
            None
        };
        let mut result = call_result(id, &ended, outcome, schema);
        if let Some(tree) = &tree {
            result.note = Some(tree.finish().await);
        }
        // What it changed in a worktree is not there for other agents.
        let memory = if tree.is_none() { vec![Memory::Call { key }] } else { Vec::new() };
        Ok(Done::Ended {
            call: self.made.call,
            result: Box::new(result),
            trace,
            memory,
            flights: vec![flight],
        })
    }

    async fn verify(self, each: Prompted, report: Report, voters: u32) -> Result<Done, Error> {
        let name = format!("check_{}_{}", self.run, self.made.call);
        let checks = check_citations(&self.parent, &name, None, &report).await?;
        // All of them are held until the verdict is recorded, so every call takes them in one order, and
        // before any place: two processes that each had one and waited for the other's would wait for ever.
        let mut held = Vec::new();
        for voter in 1..=voters {
            let key = vote_key(&self.made.key, self.made.occurrence, voter);
            let Some(flight) = self.flight(&key).await? else { return Ok(self.left(false)) };
            held.push((voter, key, flight));
        }
        let admitted = AtomicU32::new(self.made.agents);
        let one = |(voter, key, flight): (u32, String, Flight)| {
            let this = &self;
            let each = each.clone();
            let admitted = &admitted;
            async move { this.vote(voter, key, flight, each, admitted).await }
        };
        let looked = futures_of(held.into_iter().map(one)).await;
        let mut votes = Vec::new();
        let mut memory = Vec::new();
        let mut flights = Vec::new();
        let mut spent = Spent::default();
        let mut failed = None;
        for vote in looked {
            match vote? {
                Voted::Left { parked } => return Ok(self.left(parked)),
                Voted::Done { key, vote, flight, kind } => {
                    failed = failed.or(kind);
                    add(&mut spent, &vote.spent);
                    if vote.ballot.is_some() && vote.failure.is_none() && vote.reused.is_none() {
                        memory.push(Memory::Vote { key, vote: vote.clone() });
                    }
                    flights.push(flight);
                    votes.push(*vote);
                }
            }
        }
        let by: Vec<&VoterResult> = votes.iter().collect();
        let verdict = judge_report(&report, &checks, voters, &by).into_iter().next();
        let verdict = verdict.unwrap_or(Verdict::Unverified { reason: "there is no verdict".to_owned() });
        let status = match &verdict {
            Verdict::Unverified { reason } => ItemStatus::Failed {
                kind: failed.unwrap_or(FailureKind::InvalidOutput),
                message: format!("nobody could look: {reason}"),
            },
            _ => ItemStatus::Ok,
        };
        let mut value = serde_json::to_value(&verdict)?;
        value["claim"] = json!(report.findings.first().map(|finding| finding.claim.clone()));
        value["votes"] = json!(votes.iter().filter(|vote| vote.failure.is_none()).count());
        let mut result = CallResult::bare(status, CallAnswer::Value(Segment::encode(&value)));
        result.agents =
            votes.iter().filter(|vote| vote.reused.is_none()).filter_map(|vote| vote.agent.clone()).collect();
        result.reused =
            votes.iter().all(|vote| vote.reused.is_some()).then(|| votes.first()?.reused.clone()).flatten();
        result.spent = spent;
        Ok(Done::Ended { call: self.made.call, result: Box::new(result), trace: None, memory, flights })
    }

    /// One vote; `admitted` are the agents that may still be started for this call.
    async fn vote(
        &self,
        voter: u32,
        key: String,
        flight: Flight,
        each: Prompted,
        admitted: &AtomicU32,
    ) -> Result<Voted, Error> {
        let Some(_place) = self.place().await? else { return Ok(Voted::Left { parked: false }) };
        if !self.fresh
            && let Some(vote) = remembered_vote(&self.parent, &key).await?
        {
            return Ok(Voted::Done { key, vote: Box::new(vote), flight, kind: None });
        }
        // It was to be taken from elsewhere, so no agent was admitted for it, and now it is not there.
        if admitted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            let vote =
                Box::new(VoterResult { failure: Some(NOT_ADMITTED.to_owned()), ..VoterResult::default() });
            return Ok(Voted::Done { key, vote, flight, kind: Some(FailureKind::Budget) });
        }
        let id = self.agent_id(voter);
        let ended = children::drive_on(&self.parent, &id, each.spec, &each.prompt, self.again).await?;
        let Some(outcome) = &ended.outcome else {
            flight.land().await?;
            return Ok(Voted::Left { parked: ended.parked });
        };
        let vote = Box::new(voter_result(id, &ended, outcome));
        Ok(Voted::Done { key, vote, flight, kind: outcome.failure() })
    }

    /// A command in the read-only policy, on a throwaway copy of the tree, without a network.
    async fn sh(self, command: String) -> Result<Done, Error> {
        let throw = |why: String| {
            let status = ItemStatus::Skipped { reason: why.clone() };
            self.ended(CallResult::bare(status, CallAnswer::Throw(format!("sh: {why}"))))
        };
        let Some(mut spec) = self.parent.spec.child(Role::Verifier, "sh", 0) else {
            return Ok(throw("this session may start nothing".to_owned()));
        };
        if spec.confinement.sandbox != Sandbox::ReadOnly {
            return Ok(throw(
                "a command that only reads needs the sandbox, and this session has it off".to_owned(),
            ));
        }
        spec.confinement.network = Network::Off;
        let request = ToolRequest::Bash { command: command.clone() };
        if let Some(why) = self.parent.config.forbidden.forbids(&request, &spec.dir) {
            return Ok(throw(why));
        }
        if !spec.approvals.allows(&request, &spec.dir) {
            return Ok(throw(
                "a rule wants a person to be asked about this command, and a program cannot ask".to_owned(),
            ));
        }
        // Each is a shell of its own; a thousand at once would be a thousand shells.
        let mut waits = self.parent.stop.clone();
        let _turn = tokio::select! {
            turn = self.parent.session.commands.acquire() => {
                turn.map_err(|_| Error::EffectBroke(self.parent.id.clone()))?
            }
            _ = waits.above(StopLevel::Run) => return Ok(self.left(false)),
        };
        let name = format!(
            "sh_{}_{}_{}",
            self.run,
            self.made.key.get(..16).unwrap_or_default(),
            self.made.occurrence
        );
        let cut = CancellationToken::new();
        let mut stop = self.parent.stop.clone();
        let mut bash = Bash::new(Arc::clone(&self.parent.config), &name, spec, None);
        // In a shell below, so that `exit` ends that one; and with its code behind a mark, so that nothing of
        // ours stands in what it printed.
        let mark = format!("convoke-{}", digest(&["mark", &name, &command]));
        let wrapped = format!("(\n{command}\n)\nprintf '\\n%s %s' '{mark}' \"$?\"");
        let result = tokio::select! {
            result = bash.run("sh", wrapped, cut.clone()) => Some(result),
            _ = stop.above(StopLevel::Run) => None,
        };
        cut.cancel();
        bash.end().await;
        remove_private(self.parent.config.confine.private_of(&name)).await;
        let printed = match &result {
            Some(result) => printed(result, &mark).await,
            None => None,
        };
        // The file is not read again: the program has it all.
        let _ = tokio::fs::remove_dir_all(self.parent.config.outputs.join(&name)).await;
        let Some(result) = result else { return Ok(self.left(false)) };
        let Some((output, code)) = printed else { return Ok(throw(result.text)) };
        let truncated = output.len() > MOST_PRINTED;
        let cut = output.floor_char_boundary(MOST_PRINTED);
        let value = json!({"ok": code == 0, "code": code, "output": &output[..cut], "truncated": truncated});
        Ok(self.ended(CallResult::bare(ItemStatus::Ok, CallAnswer::Value(Segment::encode(&value)))))
    }

    async fn workflow(self, name: Option<String>, path: Option<String>) -> Result<Done, Error> {
        let library = &self.parent.config.programs.library;
        let dir = PathBuf::from(&self.parent.spec.dir);
        let found = match (&name, &path) {
            (_, Some(path)) => {
                let scripts = self.parent.config.outputs.join("scripts");
                let read =
                    library.read_path(path.as_ref(), &dir, Some(&scripts), may_read(&self.parent)).await;
                read.map(|source| (path.clone(), source.text)).map_err(|error| error.to_string())
            }
            (Some(name), None) => match library.find(name).await {
                Ok(Some(found)) => Ok((found.name, found.source)),
                Ok(None) => {
                    Err(format!("there is no workflow '{name}'; `convoke workflow list` shows what there is"))
                }
                Err(error) => Err(error.to_string()),
            },
            (None, None) => Err("workflow wants a name or {scriptPath}".to_owned()),
        };
        Ok(self.ended(match found {
            Ok((name, source)) => CallResult::bare(ItemStatus::Ok, CallAnswer::Program { name, source }),
            Err(why) => CallResult::bare(ItemStatus::Skipped { reason: why.clone() }, CallAnswer::Throw(why)),
        }))
    }

    async fn timer(self, ms: u64) -> Result<Done, Error> {
        let clock = &self.parent.config.clock;
        let mut stop = self.parent.stop.clone();
        tokio::select! {
            () = clock.sleep_until(clock.now().saturating_add(ms)) => {}
            _ = stop.above(StopLevel::Run) => return Ok(self.left(false)),
        }
        Ok(self.ended(CallResult::bare(ItemStatus::Ok, CallAnswer::null())))
    }
}

/// What a command printed before its mark, and its code behind it; `None` for one that did not come to its
/// end.
async fn printed(result: &ToolResult, mark: &str) -> Option<(String, i32)> {
    let whole = match &result.full_output {
        Some(file) => String::from_utf8_lossy(&tokio::fs::read(file).await.ok()?).into_owned(),
        None => result.text.clone(),
    };
    let (output, code) = whole.rsplit_once(&format!("\n{mark} "))?;
    Some((output.to_owned(), code.trim().parse().ok()?))
}

enum Voted {
    Left { parked: bool },
    Done { key: String, vote: Box<VoterResult>, flight: Flight, kind: Option<FailureKind> },
}

/// Runs futures beside each other and gives what they came to in their order.
async fn futures_of<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    futures_util::future::join_all(all).await
}

fn add(sum: &mut Spent, other: &Spent) {
    sum.calls += other.calls;
    sum.turns += other.turns;
    sum.commands += other.commands;
    sum.usage.add(&other.usage);
    sum.cost_nano = sum.cost_nano.zip(other.cost_nano).map(|(sum, cost)| sum.saturating_add(cost));
}

/// What an agent's end comes to for the program.
fn call_result(agent: AgentId, ended: &DriveOutcome, outcome: &Outcome, schema: bool) -> CallResult {
    let status = match outcome {
        Outcome::Ok { .. } if ended.output.as_ref().is_some_and(is_too_deep) => ItemStatus::Failed {
            kind: FailureKind::InvalidOutput,
            message: "its value is nested too deep to be handed to a program".to_owned(),
        },
        Outcome::Ok { .. } => ItemStatus::Ok,
        Outcome::Failed { kind, message, .. } => ItemStatus::Failed { kind: *kind, message: message.clone() },
    };
    let value = match (&ended.output, schema) {
        (Some(output), true) => Some(Segment::encode(output)),
        (None, true) => None,
        (_, false) => Some(Segment::encode(&Value::from(outcome.text()))),
    };
    let mut result = CallResult::bare(status.clone(), answer_to(&status, value.as_ref(), schema));
    result.agents = vec![agent];
    result.degraded = ended.degraded.clone();
    result.spent = ended.summary.as_ref().map(Spent::from).unwrap_or_default();
    result
}

/// The key of an agent's result: its content, and which of the equal ones it is.
pub(super) fn result_key(key: &str, occurrence: u32) -> String {
    digest(&["program-1", key, &occurrence.to_string()])
}

pub(super) fn vote_key(key: &str, occurrence: u32, voter: u32) -> String {
    digest(&["program-vote-1", key, &occurrence.to_string(), &voter.to_string()])
}

/// A sound result that an equal call left under this key.
async fn remembered(parent: &Parent, key: &str) -> Result<Option<CallResult>, Error> {
    let Some(found) = parent.config.journal.result_at(key).await? else { return Ok(None) };
    Ok(sound_result(parent, found).await)
}

/// The same, of what is remembered.
pub(super) async fn sound_result(parent: &Parent, (text, at): (String, u64)) -> Option<CallResult> {
    let Remembered { session, result } = serde_json::from_str::<Remembered<CallResult>>(&text).ok()?;
    let stands = still_stands(&result.changes, &PathBuf::from(&parent.spec.dir)).await;
    let reused = Some(Reused { session, at });
    (result.is_sound() && stands).then_some(CallResult { reused, ..result })
}

async fn remembered_vote(parent: &Parent, key: &str) -> Result<Option<VoterResult>, Error> {
    Ok(parent.config.journal.result_at(key).await?.and_then(|(text, at)| sound_vote(&text, at)))
}

pub(super) fn sound_vote(text: &str, at: u64) -> Option<VoterResult> {
    let Remembered { session, result } = serde_json::from_str::<Remembered<VoterResult>>(text).ok()?;
    let sound = result.ballot.is_some() && result.failure.is_none();
    sound.then_some(VoterResult { reused: Some(Reused { session, at }), ..result })
}
