//! A session with a team that is driven in the background, while a test deals with it from outside. It waits
//! for what is recorded and for what is asked of the model, never for time.

use std::time::Duration;

use convoke_journal::StreamId;
use convoke_kernel::{AgentId, Board, Event, Member, Roster, SessionId, Standing, Task, TaskState};
use convoke_runtime::{DriveMode, DriveOutcome, Error, Runtime, Stop, Stopper, TeamClient};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::scripted_team::{MemberReply, Seen, call, text, who};
use crate::support::Rig;
use crate::teams::{client, session_of};

/// What the person says to the lead, and thereby what its conversation is called.
pub(crate) const LEADS: &str = "lead it";

/// How long anything is waited for; nothing is expected to come near this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session that is driven in the background.
pub(crate) struct Play {
    pub(crate) rig: Rig,
    pub(crate) lead: AgentId,
    pub(crate) session: SessionId,
    stopper: Stopper,
    driven: JoinHandle<Result<DriveOutcome, Error>>,
}

impl Play {
    pub(crate) async fn of(rig: Rig) -> Self {
        let runtime = rig.life(None).await;
        Self::by(rig, runtime).await
    }

    /// The same, driven by this runtime.
    pub(crate) async fn by(rig: Rig, runtime: Runtime) -> Self {
        let before = rig.sim.requests().len();
        let lead = runtime.start(rig.start(), LEADS).await.unwrap();
        let (stopper, stop) = Stopper::new();
        let driven = drive(runtime, &lead, DriveMode::New, stop);
        crate::support::within(rig.sim.wait_for_requests(before + 1)).await;
        let session = session_of(&rig, &lead).await;
        Self { rig, lead, session, stopper, driven }
    }

    /// The process is gone from one moment to the next; what it had under way is lost.
    pub(crate) async fn killed(mut self) -> Self {
        self.driven.abort();
        let _ = (&mut self.driven).await;
        self.rig.lost_replies = true;
        self
    }

    /// Another process takes the session up.
    pub(crate) async fn resumed(mut self) -> Self {
        let runtime = self.rig.life(None).await;
        let (stopper, stop) = Stopper::new();
        self.driven = drive(runtime, &self.lead, DriveMode::Resume { changed: vec![] }, stop);
        self.stopper = stopper;
        self
    }

    /// What the session came to.
    pub(crate) async fn ended(&mut self) -> DriveOutcome {
        self.over().await.unwrap()
    }

    /// The same, fault or not.
    pub(crate) async fn over(&mut self) -> Result<DriveOutcome, Error> {
        match tokio::time::timeout(PATIENCE, &mut self.driven).await {
            Ok(ended) => ended.unwrap(),
            Err(_) => self.hangs().await,
        }
    }

    /// No test waits for ever; what the team looked like then says why it did.
    async fn within<T>(&self, future: impl Future<Output = T>) -> T {
        match tokio::time::timeout(PATIENCE, future).await {
            Ok(reached) => reached,
            Err(_) => self.hangs().await,
        }
    }

    async fn hangs(&self) -> ! {
        let members: Vec<Member> = self.roster().await.members().cloned().collect();
        let requests: Vec<String> =
            self.rig.sim.requests().iter().map(|request| who(&request.body)).collect();
        panic!("the test hangs: {members:#?}\n{:#?}\n{requests:?}", self.board().await.tasks());
    }

    pub(crate) fn client(&self) -> TeamClient {
        client(&self.rig)
    }

    /// A person writes to a member.
    pub(crate) async fn send(&self, to: &str, text: &str) {
        self.client().send(&self.session, &self.lead, to, text, false).await.unwrap();
    }

    pub(crate) async fn roster(&self) -> Roster {
        self.client().roster(&self.session).await.unwrap()
    }

    pub(crate) async fn board(&self) -> Board {
        self.client().board(&self.session).await.unwrap()
    }

    pub(crate) async fn member(&self, name: &str) -> Member {
        self.roster().await.member(name).unwrap().clone()
    }

    pub(crate) async fn task(&self, number: u64) -> Task {
        self.board().await.tasks()[number as usize - 1].clone()
    }

    /// Waits until the roster is like this.
    pub(crate) async fn until_roster(&self, reached: impl Fn(&Roster) -> bool) -> Roster {
        let [stream, ..] = TeamClient::streams(&self.session);
        let reaches = async {
            loop {
                let roster = self.roster().await;
                if reached(&roster) {
                    return roster;
                }
                self.rig.journal.tail(&stream, roster.count()).await.unwrap();
            }
        };
        self.within(reaches).await
    }

    pub(crate) async fn until_member(&self, name: &str, reached: impl Fn(&Member) -> bool) {
        self.until_roster(|roster| roster.member(name).is_some_and(&reached)).await;
    }

    pub(crate) async fn until_stopped(&self, name: &str) {
        self.until_member(name, |member| matches!(member.standing, Standing::Stopped { .. })).await;
    }

    /// Waits until the board is like this.
    pub(crate) async fn until_board(&self, reached: impl Fn(&Board) -> bool) -> Board {
        let [_, stream, _] = TeamClient::streams(&self.session);
        let reaches = async {
            loop {
                let board = self.board().await;
                if reached(&board) {
                    return board;
                }
                self.rig.journal.tail(&stream, board.count()).await.unwrap();
            }
        };
        self.within(reaches).await
    }

    /// Waits until a task is done.
    pub(crate) async fn until_done(&self, number: u64) {
        let is_done = |task: &&Task| matches!(task.state, TaskState::Done { .. });
        self.until_board(|board| board.tasks().get(number as usize - 1).is_some_and(is_done)).await;
    }

    /// Waits until something has happened to a member.
    pub(crate) async fn until_event(&self, name: &str, wanted: impl Fn(&Event) -> bool) {
        let roster = self.until_roster(|roster| roster.member(name).is_some()).await;
        let agent = roster.member(name).unwrap().agent.clone();
        let reaches = async {
            let mut seen = 0;
            loop {
                let records = self.rig.journal.tail(&StreamId::from(&agent), seen).await.unwrap();
                seen = records.last().map_or(seen, |record| record.seq);
                if records.iter().any(|record| wanted(&Event::decode(&record.event).unwrap())) {
                    return;
                }
            }
        };
        self.within(reaches).await;
    }

    /// Waits until a member has asked the model this often.
    pub(crate) async fn until_asked(&self, name: &str, count: usize) {
        let reaches = async {
            let mut arrived = 0;
            while self.asked(name).len() < count {
                arrived = self.rig.sim.wait_for_requests(arrived + 1).await.len();
            }
        };
        self.within(reaches).await;
    }

    /// What a member asked the model, in order.
    pub(crate) fn asked(&self, name: &str) -> Vec<Value> {
        let requests = self.rig.sim.requests();
        requests
            .iter()
            .filter(|request| who(&request.body) == name)
            .map(|request| (*request.body).clone())
            .collect()
    }

    /// Everything that a member had read when it last asked the model; its own words are not among it.
    pub(crate) fn read(&self, name: &str) -> String {
        self.asked(name).last().map(heard).unwrap_or_default()
    }

    /// How often a text stands in what a member has read.
    pub(crate) fn times(&self, name: &str, text: &str) -> usize {
        self.read(name).matches(text).count()
    }

    /// Each of these stands in what a member has read, once and in this order.
    pub(crate) fn read_once_in_order(&self, name: &str, texts: &[String]) {
        let read = self.read(name);
        let places: Vec<Option<usize>> = texts.iter().map(|text| read.find(text.as_str())).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {read}");
        for text in texts {
            assert_eq!(read.matches(text.as_str()).count(), 1, "{text} in {read}");
        }
    }
}

fn drive(
    runtime: Runtime,
    lead: &AgentId,
    mode: DriveMode,
    stop: Stop,
) -> JoinHandle<Result<DriveOutcome, Error>> {
    let lead = lead.clone();
    tokio::spawn(async move { runtime.drive(&lead, mode, stop, None).await })
}

/// What is said to an agent in a request: texts and results.
pub(crate) fn heard(request: &Value) -> String {
    let messages =
        request["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "assistant");
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str().or_else(|| block["content"].as_str()));
    texts.collect::<Vec<_>>().join("\n")
}

/// The call that makes a coder of this name, who is told to be it.
pub(crate) fn spawn(name: &str) -> (&'static str, Value) {
    ("spawn_teammate", json!({"name": name, "role": "coder", "prompt": format!("be {name}")}))
}

pub(crate) fn create(subject: &str) -> (&'static str, Value) {
    ("task_create", json!({"subject": subject, "description": format!("do {subject}")}))
}

pub(crate) fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

/// A lead that makes these with its first reply, and only takes note of everything after it.
pub(crate) fn begins(seen: &Seen<'_>, calls: Vec<(&'static str, Value)>) -> MemberReply {
    if seen.replies == 0 { MemberReply::Calls(calls) } else { text("noted") }
}

/// The task that was put into a member's hands with what it read last.
pub(crate) fn in_hand(seen: &Seen<'_>) -> Option<String> {
    let ours = |line: &&str| line.starts_with("[claimed t_") || line.starts_with("[unfinished t_");
    let line = seen.last.lines().find(ours)?;
    Some(line.split_once(' ')?.1.trim_end_matches(']').to_owned())
}

pub(crate) fn update(task: &str, status: &str, result: &str) -> MemberReply {
    call("task_update", json!({"task": task, "status": status, "result": result}))
}

/// A member that does what is claimed for it, and says a word when there is nothing.
pub(crate) fn works(seen: &Seen<'_>) -> MemberReply {
    match in_hand(seen) {
        Some(task) => update(&task, "done", &format!("{} did it", seen.who)),
        None => text(format!("{} has nothing to do", seen.who)),
    }
}
