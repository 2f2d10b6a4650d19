//! The prompt cache over whole sessions: every request begins with the bytes of the one before it, and what
//! the server could read from its cache it does read. What is possible is computed here from the recorded
//! requests alone.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use convoke_kernel::{AgentId, Outcome};
use convoke_runtime::{Clock, DriveMode, Runtime, Stop};
use convoke_sim::{Fault, FaultKind, Received, Reply, SimClock, SimConfig, calls, calls_many, says};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Rig, within};
use crate::team::{Team, role, workflow};

/// The shortest prefix that the cache of the model under test takes, in tokens.
const MINIMUM: u64 = 1_024;

/// A mark as the client writes it. Inside a text its quotes would be escaped, so this is always a mark.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// What a request is made of, as bytes and without cache marks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    tools: String,
    system: String,
    messages: Vec<String>,
}

impl Wire {
    pub(crate) fn of(request: &Received) -> Self {
        let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(&request.raw).unwrap();
        let messages: Vec<Box<RawValue>> = serde_json::from_str(members["messages"].get()).unwrap();
        let bare = |raw: &RawValue| raw.get().replace(MARK, "");
        Self {
            tools: bare(&members["tools"]),
            system: bare(&members["system"]),
            messages: messages.iter().map(|message| bare(message)).collect(),
        }
    }

    pub(crate) fn begins_with(&self, earlier: &Wire) -> bool {
        self.tools == earlier.tools
            && self.system == earlier.system
            && self.messages.starts_with(&earlier.messages)
    }
}

/// Every request begins with the bytes of the last one of its conversation whose reply came and was not taken
/// back.
pub(crate) fn assert_bytes_kept(requests: &[Received], taken_back: impl Fn(&Received) -> bool) {
    let mut last: HashMap<&str, (usize, Wire)> = HashMap::new();
    for request in requests {
        let wire = Wire::of(request);
        if let Some((earlier, before)) = last.get(request.conversation.as_str()) {
            assert!(
                wire.begins_with(before),
                "request {} does not begin with request {earlier}",
                request.index
            );
        }
        if request.replied && !taken_back(request) {
            last.insert(&request.conversation, (request.index, wire));
        }
    }
}

/// Names every prefix of a request that ends with a block: two requests share a name if they share the
/// prefix.
fn prefixes(body: &Value) -> Vec<u64> {
    let mut hasher = DefaultHasher::new();
    for parameter in ["model", "output_config", "thinking"] {
        body[parameter].to_string().hash(&mut hasher);
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let tools = list(&body["tools"]).into_iter().map(|tool| ("tool".to_owned(), tool));
    let system = list(&body["system"]).into_iter().map(|block| ("top".to_owned(), block));
    let messages = list(&body["messages"]).into_iter().flat_map(|message| {
        let role = message["role"].as_str().unwrap().to_owned();
        list(&message["content"]).into_iter().map(move |block| (role.clone(), block))
    });
    let mut names = Vec::new();
    for (place, mut block) in tools.chain(system).chain(messages) {
        block.as_object_mut().unwrap().remove("cache_control");
        (place, block.to_string()).hash(&mut hasher);
        names.push(hasher.finish());
    }
    names
}

/// What was read from the cache, and what could have been: the longest prefix in whole blocks, above the
/// minimum, that a request had which had begun when this one arrived.
struct Share {
    read: u64,
    best: u64,
    by_role: BTreeMap<&'static str, (usize, u64, u64)>,
    /// Requests that read nothing: only the first of a kind has to.
    cold: BTreeMap<&'static str, usize>,
}

fn share(requests: &[Received]) -> Share {
    // When each prefix could be read first. The request that wrote it has to be above the minimum, too.
    let mut readable: HashMap<u64, u64> = HashMap::new();
    let named: Vec<Vec<u64>> = requests.iter().map(|request| prefixes(&request.body)).collect();
    for (request, names) in requests.iter().zip(&named) {
        let Some(began) = request.began_at else { continue };
        assert_eq!(names.len(), request.prefix_tokens.len(), "blocks are counted alike");
        for (name, _) in
            names.iter().zip(request.prefix_tokens.iter()).filter(|(_, tokens)| **tokens >= MINIMUM)
        {
            let first = readable.entry(*name).or_insert(began);
            *first = began.min(*first);
        }
    }
    let mut share = Share { read: 0, best: 0, by_role: BTreeMap::new(), cold: BTreeMap::new() };
    for (request, names) in requests.iter().zip(&named) {
        let Some(usage) = request.usage else { continue };
        let possible = names.iter().zip(request.prefix_tokens.iter()).filter(|(name, tokens)| {
            **tokens >= MINIMUM && readable.get(name).is_some_and(|began| *began < request.arrived_at)
        });
        let best = possible.map(|(_, tokens)| *tokens).max().unwrap_or(0);
        // What began between a request's arrival and the look into the cache is luck, and must not hide a
        // miss.
        let read = usage.cache_read_tokens.min(best);
        share.read += read;
        share.best += best;
        let (count, all_read, possible) = share.by_role.entry(role(&request.body)).or_default();
        *count += 1;
        *all_read += read;
        *possible += best;
        *share.cold.entry(role(&request.body)).or_default() += usize::from(usage.cache_read_tokens == 0);
        if read < best {
            println!("request {} ({}): read {read} of {best}", request.index, role(&request.body));
        }
    }
    share
}

/// A simulator whose clock ticks whenever it is looked at, so that no two things happen at the same time.
fn ticking(team: Team) -> SimConfig {
    let ticks = AtomicU64::new(1);
    let clock = SimClock::following(move || ticks.fetch_add(1, Ordering::SeqCst));
    SimConfig { clock, ..SimConfig::new(team) }
}

struct Plan {
    turns: usize,
    /// Before these turns the switch is turned.
    switches: Vec<usize>,
    /// Turns that fan out, and into how many subtasks.
    fan_outs: Vec<usize>,
    width: usize,
    /// The turn whose first attempt fails for good and is said again.
    fails: usize,
}

impl Plan {
    /// What the lead replies over the session. A turn that fans out asks for a workflow, whatever the mode.
    fn lead(&self) -> Vec<Reply> {
        let look =
            |turn: usize| calls("bash", json!({"command": format!("echo turn {turn}; seq 1 {}", 40 * turn)}));
        let mut replies = Vec::new();
        for turn in 1..=self.turns {
            replies.push(look(turn).saying("Let me look."));
            if self.fan_outs.contains(&turn) {
                let subtasks: Vec<String> =
                    (1..=self.width).map(|part| format!("turn {turn}, part {part} of the tree")).collect();
                replies.push(workflow(&subtasks.iter().map(String::as_str).collect::<Vec<_>>()));
            }
            replies.push(says(&format!("That was turn {turn}.")));
        }
        replies
    }

    async fn play(&self, rig: &Rig) {
        let runtime = rig.life(None).await;
        let mut lead = None;
        let mut on = true;
        for turn in 1..=self.turns {
            if self.switches.contains(&turn) {
                on = !on;
                runtime.set_mode(lead.as_ref().unwrap(), &format!("mode {turn}"), on).await.unwrap();
            }
            let text = format!("Turn {turn}: look, with a workflow if need be.");
            if turn == self.fails {
                rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("simulator: not now".to_owned())));
                assert!(matches!(
                    said(rig, &runtime, &mut lead, "failing", &text).await,
                    Outcome::Failed { .. }
                ));
            }
            let outcome = said(rig, &runtime, &mut lead, &format!("turn {turn}"), &text).await;
            assert_eq!(outcome, Outcome::Ok { text: format!("That was turn {turn}.") });
        }
    }
}

async fn said(rig: &Rig, runtime: &Runtime, lead: &mut Option<AgentId>, key: &str, text: &str) -> Outcome {
    let agent = match lead {
        Some(agent) => {
            runtime.say(agent, key, text).await.unwrap();
            agent.clone()
        }
        None => lead.insert(runtime.start(rig.start(), text).await.unwrap()).clone(),
    };
    let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
    ended.outcome.unwrap()
}

/// Five switches and three fan-outs of fifty over 25 turns with `CONVOKE_SOAK_CACHE`; less without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_keeps_every_byte_it_sent_and_reads_from_the_cache_what_can_be_read() {
    let plan = match std::env::var_os("CONVOKE_SOAK_CACHE") {
        Some(_) => Plan {
            turns: 25,
            switches: vec![4, 7, 12, 16, 20],
            fan_outs: vec![3, 10, 18],
            width: 50,
            fails: 14,
        },
        None => Plan { turns: 8, switches: vec![3, 6], fan_outs: vec![4], width: 10, fails: 5 },
    };
    let mut rig = Rig::new(ticking(Team::new(plan.lead()))).await;
    rig.fan_out = Some(Rig::fanning_out());
    // No request has to wait for a time to come, and a clock that jumps would end the siblings' wait at once.
    rig.clock = Clock::stepped(1_000_000);
    plan.play(&rig).await;
    let requests = rig.sim.requests();
    assert_bytes_kept(&requests, |_| false);
    let Share { read, best, by_role, cold } = share(&requests);
    for (role, (count, read, best)) in by_role {
        println!("{role}: {count} requests, {read} of {best} tokens that could be read were read");
    }
    let ratio = read as f64 / best as f64;
    println!("cache reads over the best possible: {ratio:.4} ({} requests)", requests.len());
    assert!(best > 0 && ratio >= 0.98, "{ratio}");
    // Siblings wait until the first one's reply begins, so that it alone pays for what they share.
    assert!(cold.values().all(|cold| *cold <= 1), "requests that read nothing: {cold:?}");
}

/// The measure itself: where the client sets no marks nothing is read, and that shows.
#[tokio::test]
async fn without_marks_the_same_measure_finds_that_nothing_was_read() {
    let plan = Plan { turns: 3, switches: vec![], fan_outs: vec![2], width: 3, fails: 0 };
    let mut rig = Rig::new(ticking(Team::new(plan.lead()))).await;
    let mut fan_out = Rig::fanning_out();
    fan_out.child.capabilities.cache_marks = false;
    rig.fan_out = Some(fan_out);
    plan.play(&rig).await;
    let share = share(&rig.sim.requests());
    let (_, read, best) = share.by_role["worker"];
    assert!(read == 0 && best > 5_000, "{read} of {best}");
    let (_, read, best) = share.by_role["lead"];
    assert!(read == best && best > 5_000, "{read} of {best}");
}

#[tokio::test]
async fn a_turn_of_25_commands_still_reads_the_whole_history_before_it_from_the_cache() {
    let many = |name: &str| {
        let inputs: Vec<Value> = (0..25).map(|n| json!({"command": format!("echo {name} {n}")})).collect();
        calls_many(inputs.into_iter().map(|input| ("bash", input)))
    };
    let mut rig =
        Rig::new(ticking(Team::new([many("a"), many("b"), says("done"), many("c"), says("all")]))).await;
    // With the mode on the first request ends with a system message, the others with tool results.
    rig.fan_out = Some(Rig::fanning_out());
    let runtime = rig.life(None).await;
    let mut lead = None;
    said(&rig, &runtime, &mut lead, "first", "Look at everything").await;
    said(&rig, &runtime, &mut lead, "second", "And once more").await;
    let requests = rig.sim.requests();
    assert_eq!(requests.len(), 5);
    assert_bytes_kept(&requests, |_| false);
    for pair in requests.windows(2) {
        let sent = *pair[0].prefix_tokens.last().unwrap();
        assert_eq!(pair[1].usage.unwrap().cache_read_tokens, sent, "request {}", pair[1].index);
    }
    let marks: Vec<usize> =
        requests.iter().map(|request| String::from_utf8_lossy(&request.raw).matches(MARK).count()).collect();
    println!("marks per request, the automatic one among them: {marks:?}");
    assert!(marks.iter().all(|marks| *marks <= 4), "{marks:?}");
}
