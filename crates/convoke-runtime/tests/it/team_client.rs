//! The client through which people and scripts deal with a team, on every store, with several processes at it
//! at once.

use std::collections::BTreeSet;
use std::time::Duration;

use convoke_journal::{Batch, Change, Changed, Filter, Journal, Location, Options, Process, StreamId};
use convoke_kernel::{
    AgentId, BoardEvent, Claimant, Event, ExchangeClosed, ExchangeOpened, LEAD, Letter, LetterKind,
    MAX_LETTER, MailDelivered, MemberName, MemberState, MessageId, NewTask, Outcome, PERSON, QUEUE,
    RequestState, Role, Roster, RosterEntry, Segment, SessionId, Standing, Status, Summary, Task, TaskEdit,
    TaskState, Usage,
};
use convoke_runtime::{Clock, Error, Ids, MemberRow, TeamClient};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{postgres, within};

/// A journal, and a team in it.
struct Room {
    journal: Journal,
    session: SessionId,
    lead: AgentId,
    clock: Clock,
    _dir: TempDir,
}

impl Room {
    async fn new() -> Self {
        Self::on(Location::Memory).await
    }

    async fn on(location: Location) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = match location {
            Location::Sqlite(name) => Location::Sqlite(dir.path().join(name)),
            other => other,
        };
        let journal = Journal::open(location, Options::new(process())).await.unwrap();
        let session = SessionId::from_bits(bits());
        let lead = AgentId::from_bits(bits());
        Self { journal, session, lead, clock: Clock::stepped(1_000_000), _dir: dir }
    }

    fn client(&self) -> TeamClient {
        TeamClient::new(self.journal.clone(), self.clock.clone(), Ids::random())
    }

    /// A client in another process, as far as the journal can tell.
    async fn other(&self) -> TeamClient {
        let journal = self.journal.as_process(Options::new(process())).await.unwrap();
        TeamClient::new(journal, self.clock.clone(), Ids::random())
    }

    /// Makes entries of the roster as members make them.
    async fn enter(&self, entries: Vec<RosterEntry>) {
        let at = self.clock.now();
        let [stream, ..] = TeamClient::streams(&self.session);
        let change = Change::new(move |state| {
            let mut roster: Roster =
                state.map_or_else(Roster::default, |state| serde_json::from_str(state).unwrap());
            let mut events = Vec::new();
            for entry in &entries {
                for event in roster.decide(entry, at).map_err(|refusal| refusal.to_string())? {
                    roster.apply(&event, at);
                    events.push(event.encode().unwrap());
                }
            }
            Ok(Changed { state: serde_json::to_string(&roster).unwrap(), events })
        });
        self.journal.update(&stream, at, &change).await.unwrap();
    }

    async fn spawn(&self, name: &str) -> AgentId {
        let generation = self.client().roster(&self.session).await.unwrap().generation(name).to_string();
        let agent = AgentId::derived(&["teammate", self.session.as_str(), name, &generation]);
        let role = "coder".to_owned();
        let by = LEAD.to_owned();
        let id = agent.clone();
        let name: MemberName = name.parse().unwrap();
        let open = RosterEntry::Open { lead: self.lead.clone() };
        self.enter(vec![open, RosterEntry::Spawn { name, role, agent: id, requires_plan: false, by }]).await;
        agent
    }

    async fn send(&self, to: &str, text: &str) -> Result<MessageId, Error> {
        self.client().send(&self.session, &self.lead, to, text, false).await
    }

    async fn unread(&self, name: &str) -> u32 {
        self.client().roster(&self.session).await.unwrap().member(name).unwrap().waiting
    }

    async fn texts(&self, name: &str) -> Vec<String> {
        let waiting = self.client().waiting(&self.session, name).await.unwrap();
        waiting.into_iter().map(|letter| letter.text).collect()
    }

    async fn row(&self, name: &str) -> MemberRow {
        let rows = self.client().members(&self.session).await.unwrap();
        rows.into_iter().find(|row| row.member.name == name).unwrap()
    }

    async fn add(&self, subject: &str) -> Task {
        let task = NewTask { subject: subject.to_owned(), ..NewTask::default() };
        self.client().add_task(&self.session, task, PERSON).await.unwrap()
    }
}

fn bits() -> [u8; 10] {
    Ids::random().bits().unwrap()
}

fn process() -> Process {
    Process::current(bits())
}

fn script(name: &str) -> Claimant {
    Claimant { name: name.to_owned(), agent: None, role: "script".to_owned() }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::TeamRefused(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not contain {part:?}");
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Every store that is here.
async fn on_every_store<F: Future<Output = ()>>(test: &str, check: impl Fn(Room) -> F) {
    check(Room::new().await).await;
    check(Room::on(Location::Sqlite("journal.db".into())).await).await;
    if let Some(place) = postgres(test) {
        check(Room::on(place).await).await;
    }
}

#[tokio::test]
async fn w31_w32_of_many_processes_that_claim_a_task_one_gets_it_and_the_others_are_told_who() {
    let check = async |room: Room| {
        let task = room.add("the only one").await;
        let mut claims = tokio::task::JoinSet::new();
        for number in 0..8 {
            let client = room.other().await;
            let session = room.session.clone();
            let id = task.id.clone();
            claims.spawn(async move {
                let name = format!("script-{number}");
                (name.clone(), client.claim(&session, &id, script(&name), MINUTE).await)
            });
        }
        let answers = within(claims.join_all()).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, answer)| answer.is_ok());
        let [(winner, claimed)] = won.try_into().unwrap();
        let claimed = claimed.unwrap();
        let TaskState::Claimed { name, agent: None, token, until } = claimed.state else {
            panic!("{claimed:?}")
        };
        assert_eq!((name.as_str(), until), (winner.as_str(), 1_060_000));
        for (loser, answer) in lost {
            says(&refusal(answer), &["the only one", &format!("held by {winner}")]);
            let late = room
                .client()
                .finish(&room.session, &task.id, script(&loser), None, Ok("mine".to_owned()))
                .await;
            says(&refusal(late), &[&format!("held by {winner}")]);
        }
        let result = Ok("all of it".to_owned());
        let stale = room
            .client()
            .finish(&room.session, &task.id, script(&winner), Some(token + 1), result.clone())
            .await;
        says(&refusal(stale), &[&format!("under claim {token}")]);
        let done = room
            .client()
            .finish(&room.session, &task.id, script(&winner), Some(token), result)
            .await
            .unwrap();
        assert_eq!((done.result.as_deref(), done.attempts), (Some("all of it"), 1));
        let claims = room.client().task_history(&room.session, &task.id).await.unwrap();
        let kinds: Vec<&str> = claims.iter().map(|(_, event)| event.kind()).collect();
        assert_eq!(kinds, ["task_created", "task_claimed", "task_finished"]);
    };
    on_every_store(
        "w31_w32_of_many_processes_that_claim_a_task_one_gets_it_and_the_others_are_told_who",
        check,
    )
    .await;
}

#[tokio::test]
async fn b9_w2_w10_letters_of_several_processes_arrive_once_and_in_an_order_that_grows() {
    let check = async |room: Room| {
        room.spawn("alice").await;
        let mut senders = tokio::task::JoinSet::new();
        for number in 0..4 {
            let client = room.other().await;
            let session = room.session.clone();
            let lead = room.lead.clone();
            senders.spawn(async move {
                for letter in 0..5 {
                    client
                        .send(&session, &lead, "alice", &format!("{number}.{letter}"), number == 0)
                        .await
                        .unwrap();
                }
            });
        }
        within(senders.join_all()).await;
        let letters = room.client().waiting(&room.session, "alice").await.unwrap();
        let member = room.row("alice").await.member;
        assert_eq!((letters.len(), member.waiting, member.urgent), (20, 20, 5));
        assert!(letters.windows(2).all(|two| two[0].order < two[1].order), "{letters:?}");
        assert!(letters.iter().all(|letter| (letter.from.as_str(), letter.to.as_str()) == (PERSON, "alice")));
        for number in 0..4 {
            let mine: Vec<&str> = letters.iter().map(|letter| letter.text.as_str()).collect();
            let mine: Vec<&str> =
                mine.into_iter().filter(|text| text.starts_with(&number.to_string())).collect();
            let written: Vec<String> = (0..5).map(|letter| format!("{number}.{letter}")).collect();
            assert_eq!(mine, written);
        }
        let ids: BTreeSet<&str> = letters.iter().map(|letter| letter.id.as_str()).collect();
        assert_eq!(ids.len(), 20);
        let last = room.client().waiting(&room.session, "alice").await.unwrap();
        assert_eq!(last.len(), 20, "looking does not consume");
    };
    on_every_store("b9_w2_w10_letters_of_several_processes_arrive_once_and_in_an_order_that_grows", check)
        .await;
}

#[tokio::test]
async fn w4_w19_a_sender_that_is_given_up_at_any_moment_leaves_true_counts_and_the_team_open_to_others() {
    let check = async |room: Room| {
        room.spawn("alice").await;
        let quitter = room.other().await;
        let other = room.other().await;
        for polls in 0..12 {
            let send = quitter.send(&room.session, &room.lead, "alice", "perhaps", false);
            tokio::select! {
                biased;
                sent = send => drop(sent.unwrap()),
                () = async { for _ in 0..polls { tokio::task::yield_now().await } } => {}
            }
            within(other.send(&room.session, &room.lead, "alice", "surely", false)).await.unwrap();
        }
        // What was given up may still be on its way; the counts agree once it has arrived.
        let agree = async {
            loop {
                let texts = room.texts("alice").await;
                if texts.len() == room.unread("alice").await as usize {
                    return texts;
                }
                tokio::task::yield_now().await;
            }
        };
        let texts = within(agree).await;
        assert_eq!(texts.iter().filter(|text| *text == "surely").count(), 12);
    };
    on_every_store(
        "w4_w19_a_sender_that_is_given_up_at_any_moment_leaves_true_counts_and_the_team_open_to_others",
        check,
    )
    .await;
}

#[tokio::test]
async fn w5_an_unknown_reader_is_an_error_that_names_the_team_and_nothing_waits_for_it() {
    let room = Room::new().await;
    says(&refusal(room.send("alice", "hello").await), &["no 'alice'", "lead"]);
    room.spawn("alice").await;
    says(&refusal(room.send("alise", "hello").await), &["alise", "alice (coder)"]);
    says(&refusal(room.client().waiting(&room.session, "alise").await), &["alise", "alice (coder)"]);
    let streams = room.journal.list(&Filter { prefix: Some("a_".to_owned()), limit: None }).await.unwrap();
    assert!(streams.is_empty(), "nothing was sent: {streams:?}");
    let stop = RosterEntry::Stop { name: "alice".to_owned(), why: "its work is done".to_owned() };
    room.enter(vec![stop]).await;
    says(&refusal(room.send("alice", "hello").await), &["alice has stopped", "its work is done"]);
}

#[tokio::test]
async fn b5_w13_a_letter_to_the_lead_waits_for_it_before_there_is_any_teammate() {
    let room = Room::new().await;
    assert!(room.texts(LEAD).await.is_empty(), "a team that nobody has opened has no mail");
    let id = room.send(LEAD, "look at the tests, too").await.unwrap();
    assert_eq!(
        (room.texts(LEAD).await, room.unread(LEAD).await),
        (vec!["look at the tests, too".to_owned()], 1)
    );
    let inputs = room.journal.inputs(&StreamId::from(&room.lead)).await.unwrap();
    assert_eq!(inputs.iter().map(|input| input.key.as_str()).collect::<Vec<_>>(), [id.as_str()]);
}

#[tokio::test]
async fn w10_letters_are_bounded_in_size_and_number_and_the_sender_is_told() {
    let room = Room::new().await;
    let alice = room.spawn("alice").await;
    says(&refusal(room.send("alice", " \n").await), &["empty"]);
    says(&refusal(room.send("alice", &"x".repeat(MAX_LETTER + 1)).await), &["32769 bytes", "32768"]);
    assert_eq!(room.unread("alice").await, 0);
    room.send("alice", &"x".repeat(MAX_LETTER)).await.unwrap();
    for _ in 1..QUEUE {
        room.send("alice", "more").await.unwrap();
    }
    says(&refusal(room.send("alice", "too much").await), &["alice has 100 unread letters"]);
    assert_eq!((room.unread("alice").await, room.texts("alice").await.len()), (QUEUE, QUEUE as usize));
    room.client()
        .ask_to_stop(&room.session, &room.lead, "alice", MINUTE)
        .await
        .expect("control is never shut out");
    assert_eq!(room.journal.inputs(&StreamId::from(&alice)).await.unwrap().len(), QUEUE as usize + 1);
}

#[tokio::test]
async fn w24_the_wish_to_stop_is_a_request_and_a_letter_in_one() {
    let room = Room::new().await;
    room.spawn("alice").await;
    let request = room.client().ask_to_stop(&room.session, &room.lead, "alice", MINUTE).await.unwrap();
    let row = room.row("alice").await;
    assert_eq!(row.state, MemberState::Stopping);
    let stopping = Standing::Stopping { request: request.clone(), deadline: 1_060_000 };
    assert_eq!((row.member.standing, row.member.waiting), (stopping, 1));
    let [letter]: [Letter; 1] =
        room.client().waiting(&room.session, "alice").await.unwrap().try_into().unwrap();
    assert_eq!((letter.kind, letter.from.as_str()), (LetterKind::ShutdownRequest, PERSON));
    assert_eq!((&letter.id, letter.request.as_ref()), (&request, Some(&request)));
    let again = room.client().ask_to_stop(&room.session, &room.lead, "alice", MINUTE).await;
    says(&refusal(again), &["asked to stop already", request.as_str()]);
    assert_eq!(
        (room.unread("alice").await, room.texts("alice").await.len()),
        (1, 1),
        "a refusal leaves no letter"
    );
    says(
        &refusal(room.client().ask_to_stop(&room.session, &room.lead, LEAD, MINUTE).await),
        &["the lead is stopped with"],
    );
}

#[tokio::test]
async fn a_person_answers_a_plan_once_and_its_author_is_told() {
    let room = Room::new().await;
    room.spawn("alice").await;
    let request = MessageId::from_bits(bits());
    let task = room.add("big change").await.id;
    let ask =
        RosterEntry::AskPlan { request: request.clone(), from: "alice".to_owned(), task: Some(task.clone()) };
    room.enter(vec![ask]).await;
    let answer = async |approve, feedback| {
        room.client().answer_plan(&room.session, &room.lead, &request, approve, feedback).await
    };
    answer(false, "smaller steps, please").await.unwrap();
    let [letter]: [Letter; 1] =
        room.client().waiting(&room.session, "alice").await.unwrap().try_into().unwrap();
    assert_eq!((letter.kind, letter.text.as_str()), (LetterKind::PlanAnswer, "smaller steps, please"));
    assert_eq!(
        (letter.request.as_ref(), letter.approve, letter.task),
        (Some(&request), Some(false), Some(task))
    );
    let roster = room.client().roster(&room.session).await.unwrap();
    assert_eq!(roster.request(&request).map(|request| request.state), Some(RequestState::Rejected));
    says(&refusal(answer(true, "").await), &["no plan", request.as_str()]);
    assert_eq!(room.unread("alice").await, 1);
}

#[tokio::test]
async fn w18_what_a_member_does_follows_from_who_drives_it_and_not_from_what_a_dead_process_left() {
    let room = Room::new().await;
    let alice = room.spawn("alice").await;
    assert_eq!(room.row("alice").await.state, MemberState::Starting);
    let names: Vec<String> =
        room.client().members(&room.session).await.unwrap().into_iter().map(|r| r.member.name).collect();
    assert_eq!(names, [LEAD, "alice"]);

    let summary = |status| Summary {
        session: room.session.clone(),
        role: Role::Teammate,
        label: "alice".to_owned(),
        dir: "/".to_owned(),
        task: String::new(),
        forked_from: None,
        refused: None,
        model: "m".to_owned(),
        effort: None,
        status,
        failure: None,
        can_go_on: false,
        started_at: 0,
        turns: 0,
        calls: 0,
        commands: 0,
        usage: Usage::default(),
        cost_nano: None,
    };
    let stream = StreamId::from(&alice);
    let dead = Process { pid: u32::MAX, start_time: 1, ..process() };
    let dead = room.journal.as_process(Options::new(dead)).await.unwrap();
    let open =
        Batch { summary: Some(serde_json::to_string(&summary(Status::Open)).unwrap()), ..Batch::default() };
    let lost = dead.own(&stream).await.unwrap();
    dead.append(&lost, 0, &open).await.unwrap();
    let row = room.row("alice").await;
    assert_eq!((row.state, row.summary.map(|s| s.status)), (MemberState::Waiting, Some(Status::Open)));

    let lease = room.journal.own(&stream).await.unwrap();
    assert_eq!(room.row("alice").await.state, MemberState::Working);
    let asked = json!({"type": "approval_asked", "id": "call_1", "what": "rm -r x", "why": "it writes"});
    room.journal.append(&lease, 0, &Batch::events(1, [asked.to_string()])).await.unwrap();
    let row = room.row("alice").await;
    assert_eq!(row.state, MemberState::Waiting);
    says(&row.why.unwrap(), &["a person's answer"]);
    let given = json!({"type": "approval_given", "id": "call_1", "allow": true, "by": "somebody"});
    room.journal.append(&lease, 1, &Batch::events(2, [given.to_string()])).await.unwrap();
    assert_eq!(room.row("alice").await.state, MemberState::Working);
    let done =
        Batch { summary: Some(serde_json::to_string(&summary(Status::Done)).unwrap()), ..Batch::default() };
    room.journal.append(&lease, 2, &done).await.unwrap();
    assert_eq!(room.row("alice").await.state, MemberState::Idle);

    let task = room.add("held").await;
    let claimant = Claimant { name: "alice".to_owned(), agent: Some(alice), role: "coder".to_owned() };
    room.client().claim(&room.session, &task.id, claimant, MINUTE).await.unwrap();
    assert_eq!(room.row("alice").await.task.map(|held| held.id), Some(task.id));
}

#[tokio::test]
async fn w40_a_task_is_changed_cancelled_and_tried_again_and_its_history_says_so() {
    let room = Room::new().await;
    let client = room.client();
    let session = &room.session;
    let first = room.add("first").await;
    let task =
        NewTask { subject: "second".to_owned(), blocked_by: vec![first.id.clone()], ..NewTask::default() };
    let second = client.add_task(session, task, "ci").await.unwrap();
    assert_eq!((first.number, second.number, second.by.as_str()), (1, 2, "ci"));
    says(&refusal(client.claim(session, &second.id, script("ci"), MINUTE).await), &["waits for", "first"]);
    let edit = TaskEdit { priority: Some(7), description: Some("more".to_owned()), ..TaskEdit::default() };
    let edited = client.edit(session, &second.id, edit, PERSON).await.unwrap();
    assert_eq!((edited.priority, edited.description.as_str()), (7, "more"));
    let cancelled = client.cancel(session, &first.id, PERSON).await.unwrap();
    assert!(
        matches!(&cancelled.state, TaskState::Failed { why, .. } if why.contains("person")),
        "{cancelled:?}"
    );
    says(&refusal(client.claim(session, &first.id, script("ci"), MINUTE).await), &["failed", "tried again"]);
    assert_eq!(client.retry(session, &first.id, PERSON).await.unwrap().state, TaskState::Pending);
    room.clock.advance_to(1_005_000);
    client.claim(session, &first.id, script("ci"), MINUTE).await.unwrap();
    client.claim(session, &first.id, script("ci"), 2 * MINUTE).await.unwrap();
    client.finish(session, &first.id, script("ci"), None, Err("no compiler".to_owned())).await.unwrap();
    let history = client.task_history(session, &first.id).await.unwrap();
    let kinds: Vec<&str> = history.iter().map(|(_, event)| event.kind()).collect();
    assert_eq!(kinds, ["task_created", "task_failed", "task_retried", "task_claimed", "task_failed"]);
    assert_eq!(history[3].0, 1_005_000);
    assert!(matches!(&history[4].1, BoardEvent::TaskFailed(failed) if failed.why == "no compiler"));
    let unknown = convoke_kernel::TaskId::from_bits(bits());
    says(&refusal(client.cancel(session, &unknown, PERSON).await), &[unknown.as_str(), "second"]);
}

#[tokio::test]
async fn letters_are_shown_as_read_once_they_are_in_the_history_and_not_after_they_left_it() {
    let room = Room::new().await;
    let alice = room.spawn("alice").await;
    for text in ["one", "two", "three"] {
        room.send("alice", text).await.unwrap();
    }
    let letters = room.client().waiting(&room.session, "alice").await.unwrap();
    let message = Segment::encode(&json!({"role": "user", "content": []}));
    let opened = |letters: &[Letter]| {
        Event::from(ExchangeOpened {
            exchange: 1,
            input: "k".to_owned(),
            text: String::new(),
            message: message.clone(),
            system: None,
            section: None,
            changed: Vec::new(),
            notice: None,
            letters: letters.to_vec(),
            work: None,
            capsule: false,
        })
    };
    let delivered = MailDelivered { message: message.clone(), letters: vec![letters[2].clone()] };
    let closed = ExchangeClosed {
        exchange: 1,
        outcome: Outcome::Ok { text: String::new() },
        taken_back: true,
        report: None,
        ballot: None,
        degraded: None,
        returned: letters[..2].to_vec(),
    };
    let stream = StreamId::from(&alice);
    let lease = room.journal.own(&stream).await.unwrap();
    let texts = async || {
        let read = room.client().read_letters(&room.session, "alice").await.unwrap();
        read.into_iter().map(|(at, letter)| (at, letter.text)).collect::<Vec<_>>()
    };
    assert!(texts().await.is_empty());
    let events = [
        (opened(&letters[..2]), 10),
        (delivered.into(), 20),
        (closed.into(), 30),
        (opened(&letters[..1]), 40),
    ];
    let read =
        |all: &[(u64, &str)]| all.iter().map(|(at, text)| (*at, (*text).to_owned())).collect::<Vec<_>>();
    let expected = [
        read(&[(10, "one"), (10, "two")]),
        read(&[(10, "one"), (10, "two"), (20, "three")]),
        read(&[(20, "three")]),
        read(&[(20, "three"), (40, "one")]),
    ];
    for (seq, ((event, at), expected)) in events.into_iter().zip(expected).enumerate() {
        let batch = Batch::events(at, [event.encode().unwrap()]);
        room.journal.append(&lease, seq as u64, &batch).await.unwrap();
        assert_eq!(texts().await, expected, "after event {}", seq + 1);
    }
}

#[tokio::test]
async fn a_new_history_is_asked_for_as_an_input_of_the_agent() {
    let room = Room::new().await;
    room.client().compact(&room.lead, Some("keep the plan")).await.unwrap();
    room.client().compact(&room.lead, None).await.unwrap();
    let bodies: Vec<String> = room
        .journal
        .inputs(&StreamId::from(&room.lead))
        .await
        .unwrap()
        .into_iter()
        .map(|input| input.body)
        .collect();
    assert_eq!(bodies, [r#"{"compact":"keep the plan"}"#, r#"{"compact":""}"#]);
}
