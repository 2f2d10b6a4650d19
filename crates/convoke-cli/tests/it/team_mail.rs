//! Letters under fire: every one enters its reader's history exactly once and in its sender's order,
//! whichever process is killed, stopped or cut off from the store meanwhile. Judged by what the simulator
//! received. `scripts/soak` sends ten thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke_kernel::LEAD;
use convoke_sim::{Brain, Context, Scripted};
use serde_json::{Value, json};

use crate::team_fire::{Draw, Entry, Faults, Field, Hosts, Store, Story, call, hash, seed, size};

/// Letters that one reply sends.
const AT_ONCE: usize = 4;
/// Replies that a member gives to one wake-up before it rests.
const STRETCH: usize = 5;
/// The last letter, behind which nothing comes any more.
const LAST: &str = "that was all";

/// Members that write to each other until each has sent its share.
struct Post {
    names: Vec<String>,
    share: usize,
    kept: Arc<Kept>,
}

/// What the simulator received.
#[derive(Default)]
struct Kept {
    asked: AtomicUsize,
    members: Mutex<BTreeMap<String, Held>>,
    wrong: Mutex<Vec<String>>,
}

/// A member's longest history.
#[derive(Clone, Default)]
struct Held {
    messages: usize,
    /// Id and sender of every letter in it, in its order, and what it says.
    letters: Vec<(String, String, String)>,
    /// Reader and id of every letter it has sent, in the order of its calls.
    sent: Vec<(String, String)>,
    refused: usize,
    /// Whether it was told to rest.
    rests: bool,
}

impl Held {
    fn of(story: &Story<'_>) -> Self {
        let mut held = Self { messages: story.messages, ..Self::default() };
        for entry in &story.entries {
            match entry {
                Entry::Text(text) => held.letters.extend(letters(text)),
                Entry::Call { id, name: "send_message", input } => match story.result(id).map(sent_id) {
                    Some(Some(id)) => held.sent.push((input["to"].as_str().unwrap().to_owned(), id)),
                    Some(None) => held.refused += 1,
                    None => {}
                },
                _ => {}
            }
        }
        held
    }

    fn of_the_person(&self) -> impl Iterator<Item = &(String, String, String)> {
        self.letters.iter().filter(|(_, from, _)| from == "person")
    }
}

/// The letters that a text brings: id, sender, and the first line of each.
fn letters(text: &str) -> Vec<(String, String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let head = |(index, line): (usize, &&str)| {
        let (id, rest) = line.strip_prefix("letter ")?.split_once(" from ")?;
        let said = lines.get(index + 1)?.strip_prefix("| ")?;
        Some((id.to_owned(), rest.split_once(':')?.0.to_owned(), said.to_owned()))
    };
    lines.iter().enumerate().filter_map(head).collect()
}

/// The id of the letter that a call has sent; none if it was refused.
fn sent_id(result: &str) -> Option<String> {
    let (_, rest) = result.strip_prefix("Sent message to ")?.split_once('(')?;
    Some(rest.split_once(')')?.0.to_owned())
}

impl Post {
    fn new(members: usize, share: usize) -> Self {
        let names = (0..members).map(|number| format!("m{number:02}")).collect();
        Self { names, share, kept: Arc::default() }
    }

    fn say(&self, story: &Story<'_>, context: &Context) -> Vec<Value> {
        let rest = || vec![call(context, 0, "idle", json!({}))];
        if story.who == LEAD {
            let prompt = "Wait for letters.";
            let spawn = |(index, name): (usize, &String)| {
                call(
                    context,
                    index,
                    "spawn_teammate",
                    json!({"name": name, "role": "clerk", "prompt": prompt}),
                )
            };
            return match context.position {
                0 => self.names.iter().enumerate().map(spawn).collect(),
                _ => vec![json!({"type": "text", "text": "The team is there."})],
            };
        }
        let held = self.keep(story);
        let Some(woken) = story.last(|text| !letters(text).is_empty()) else { return rest() };
        if held.sent.len() >= self.share || story.replies_after(woken) >= STRETCH {
            return rest();
        }
        let so_far = held.sent.len() + held.refused;
        let others: Vec<&String> = self.names.iter().filter(|name| **name != story.who).collect();
        let letter = |index: usize| {
            let number = (so_far + index).to_string();
            let to = others[hash(&[&story.who, &number]) % others.len()];
            call(
                context,
                index,
                "send_message",
                json!({"to": to, "text": format!("{} writes {number}", story.who)}),
            )
        };
        (0..AT_ONCE.min(self.share - held.sent.len())).map(letter).collect()
    }

    /// Writes down what arrived; nothing that is said follows from it.
    fn keep(&self, story: &Story<'_>) -> Held {
        let held = Held::of(story);
        let wrong = |what: String| self.kept.wrong.lock().unwrap().push(format!("{}: {what}", story.who));
        let ids: BTreeSet<&String> = held.letters.iter().map(|(id, ..)| id).collect();
        if ids.len() < held.letters.len() {
            wrong(format!("a letter stands twice in {:?}", held.letters));
        }
        let unknown = |entry: &&Entry<'_>| matches!(entry, Entry::Result { text, .. } if text.contains("outcome is unknown"));
        if story.entries.iter().any(|entry| unknown(&entry)) {
            wrong("it was told that the outcome of a call is unknown".to_owned());
        }
        let mut members = self.kept.members.lock().unwrap();
        let known = members.entry(story.who.clone()).or_default();
        if held.messages >= known.messages {
            let woken = story.last(|text| !letters(text).is_empty()).unwrap_or_default();
            let rests = held.sent.len() >= self.share || story.replies_after(woken) >= STRETCH;
            *known = Held { rests, ..held.clone() };
        }
        held
    }
}

impl Brain for Post {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        self.kept.asked.fetch_add(1, Ordering::Relaxed);
        let story = Story::read(request);
        let delay = Duration::from_millis(5 + hash(&[&story.who, &context.position.to_string()]) as u64 % 30);
        Scripted { delay, ..Scripted::new(self.say(&story, context)) }
    }
}

impl Kept {
    fn held(&self, name: &str) -> Held {
        self.members.lock().unwrap().get(name).cloned().unwrap_or_default()
    }
}

/// A person's letters that wake members that rest and have not sent their share.
struct Waker {
    /// Ids of those that were surely sent, by reader.
    sent: BTreeMap<String, Vec<String>>,
    /// Those that may or may not have been sent, because the store did not answer.
    unsure: usize,
}

impl Waker {
    async fn wake(&mut self, field: &Field, post: &Arc<Kept>, names: &[String], share: usize) {
        for name in names {
            let held = post.held(name);
            let read = held.of_the_person().count();
            let sent = self.sent.entry(name.clone()).or_default();
            let wants = held.sent.len() < share && (sent.is_empty() || held.rests);
            if wants && read >= sent.len() {
                self.send(field, name, "go on").await;
            }
        }
    }

    async fn send(&mut self, field: &Field, name: &str, text: &str) {
        match field.team.send(&field.session, &field.lead, name, text, false).await {
            Ok(id) => self.sent.entry(name.to_owned()).or_default().push(id.to_string()),
            Err(error) => {
                assert!(matches!(field.store, Store::Postgres { .. }), "{error}");
                self.unsure += 1;
            }
        }
    }
}

async fn letters_under_fire(store: Store, seed: u64) -> String {
    let soak = size("CONVOKE_SOAK_MAIL");
    let (members, processes) = if soak.is_some() { (20, 4) } else { (5, 2) };
    let share = soak.unwrap_or(200) / members;
    let faults = match soak {
        Some(_) => Faults { every: 60, most: usize::MAX, patience: Duration::from_secs(3_600) },
        None => Faults { every: 5, most: 8, patience: Duration::from_secs(300) },
    };
    let post = Post::new(members, share);
    let kept = Arc::clone(&post.kept);
    let names = post.names.clone();
    let field = Field::new(post, store).await;
    let began = Instant::now();
    let mut hosts = Hosts::start(&field, processes, seed);
    let mut waker = Waker { sent: BTreeMap::new(), unsure: 0 };
    let mut draw = Draw(seed);
    let over = async || {
        waker.wake(&field, &kept, &names, share).await;
        names.iter().all(|name| kept.held(name).sent.len() >= share)
    };
    field.under_fire(&mut hosts, &faults, &kept.asked, &mut draw, over).await;
    let took = began.elapsed();

    // One more letter to each, so that each sends its whole history once more when nothing is under way.
    let calm = Faults { most: 0, ..faults };
    let mut told = false;
    let over = async || {
        let roster = field.team.roster(&field.session).await;
        let quiet =
            roster.is_ok_and(|roster| names.iter().all(|name| roster.member(name).unwrap().waiting == 0));
        if quiet && !told {
            told = true;
            for name in &names {
                waker.send(&field, name, LAST).await;
            }
            return false;
        }
        quiet && names.iter().all(|name| kept.held(name).letters.iter().any(|(.., said)| said == LAST))
    };
    field.under_fire(&mut hosts, &calm, &kept.asked, &mut draw, over).await;
    let tally = hosts.end(Duration::from_secs(120)).await;

    assert_eq!(*kept.wrong.lock().unwrap(), Vec::<String>::new());
    let all: BTreeMap<String, Held> = names.iter().map(|name| (name.clone(), kept.held(name))).collect();
    check_letters(&all, share);
    check_persons(&all, &waker, &field);
    check_journal(&all, &field).await;
    let (requests, late) = field.check_requests();
    let sent: usize = all.values().map(|held| held.sent.len()).sum();
    let refused: usize = all.values().map(|held| held.refused).sum();
    let what = format!(
        "{sent} letters among {members} members in {processes} processes, each once and in its sender's \
            order: {took:.1?}, {:.0} letters/s",
        sent as f64 / took.as_secs_f64()
    );
    let befell = format!(
        "{tally:?}; {requests} requests, {late} of them late; {refused} letters held back because a queue \
            was full"
    );
    if !matches!(field.store, Store::Postgres { .. }) {
        assert_eq!(tally.fell, Vec::<String>::new());
    }
    field.close().await;
    [what, befell].join("\n")
}

/// What each member got from each other is what that one has sent to it, in the same order.
fn check_letters(all: &BTreeMap<String, Held>, share: usize) {
    for (sender, held) in all {
        assert_eq!(held.sent.len(), share, "{sender}");
        for (reader, got) in all.iter().filter(|(reader, _)| *reader != sender) {
            let sent: Vec<&String> =
                held.sent.iter().filter(|(to, _)| to == reader).map(|(_, id)| id).collect();
            let read: Vec<&String> =
                got.letters.iter().filter(|(_, from, _)| from == sender).map(|(id, ..)| id).collect();
            assert_eq!(read, sent, "from {sender} to {reader}");
        }
    }
}

/// A person's letters came as they were sent; those whose sending was cut off may or may not have come.
fn check_persons(all: &BTreeMap<String, Held>, waker: &Waker, field: &Field) {
    let mut more = 0;
    for (name, held) in all {
        let read: Vec<&String> = held.of_the_person().map(|(id, ..)| id).collect();
        let sent: Vec<&String> = waker.sent.get(name).into_iter().flatten().collect();
        let surely: Vec<&String> = read.iter().copied().filter(|id| sent.contains(id)).collect();
        assert_eq!(surely, sent, "from the person to {name}");
        more += read.len() - sent.len();
    }
    let unsure = if matches!(field.store, Store::Postgres { .. }) { waker.unsure } else { 0 };
    assert!(more <= unsure, "{more} letters of the person's that it never sent");
}

/// The journal says the same as the histories that were received, and nothing waits any more.
async fn check_journal(all: &BTreeMap<String, Held>, field: &Field) {
    let roster = field.team.roster(&field.session).await.unwrap();
    for (name, held) in all {
        assert_eq!(roster.member(name).unwrap().waiting, 0, "{name}");
        assert_eq!(field.team.waiting(&field.session, name).await.unwrap(), Vec::new(), "{name}");
        let read = field.team.read_letters(&field.session, name).await.unwrap();
        let recorded: Vec<String> = read.into_iter().map(|(_, letter)| letter.id.to_string()).collect();
        let received: Vec<&String> = held.letters.iter().map(|(id, ..)| id).collect();
        assert_eq!(received, recorded.iter().collect::<Vec<_>>(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn w1_w2_w10_every_letter_is_read_once_and_in_order_whoever_is_killed() {
    let seed = seed();
    println!("seed {seed}");
    println!("{}", letters_under_fire(Store::sqlite(), seed).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn w1_w2_w10_every_letter_is_read_once_and_in_order_whoever_is_killed_on_postgres() {
    if let Some(store) =
        Store::postgres("w1_w2_w10_every_letter_is_read_once_and_in_order_whoever_is_killed_on_postgres")
            .await
    {
        let seed = seed();
        println!("seed {seed}");
        println!("{}", letters_under_fire(store, seed).await);
    }
}
