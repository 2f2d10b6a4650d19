//! Money, against a bill that the client has no part in: caps that hold whatever happens, a ledger that never
//! says less than the bill, and budgets that are used before anything is refused.

mod caps;
mod kills;
mod schedules;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use convoke_claude::{Models, Timeouts, ceilings};
use convoke_kernel::{AgentId, Amount, Caps, FailureKind, LEAST_MAX_TOKENS, Ledger, Outcome, SessionId};
use convoke_runtime::{Clock, Crash, DriveMode, Error, Moment, Start, Stop};
use convoke_sim::{
    Brain, Context, Fault, FaultKind, Received, Script, Scripted, SimClock, SimConfig, calls, says,
    tool_use_id,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{MODEL, Rig, within};
use crate::team::{Team, finding, looks_and_judges, looks_and_reports, report, role, workflow};

const DOLLAR: u64 = 1_000_000_000;

/// A small generator of our own, so that a printed seed means the same schedule for ever.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `least` to `most`, both included.
    fn roll(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll(1, 100) <= percent
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.roll(0, list.len() as u64 - 1) as usize].clone()
    }
}

/// A size that `scripts/soak` raises, and the first seed.
fn sizes(variable: &str, usual: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var_os(name).map(|text| text.to_str().unwrap().parse().unwrap());
    (number("CONVOKE_SEED").unwrap_or(1), number(variable).unwrap_or(usual))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_random_schedules_with_crashes_the_bill_is_within_the_caps_and_the_ledger_covers_it() {
    let (first, count) = sizes("CONVOKE_SOAK_MONEY", 16);
    println!("seeds {first} to {}", first + count - 1);
    let mut all = Vec::new();
    let mut tasks = JoinSet::new();
    let mut seeds = first..first + count;
    loop {
        while tasks.len() < 4
            && let Some(seed) = seeds.next()
        {
            tasks.spawn(async move { (seed, schedules::play(seed, false).await) });
        }
        let Some(played) = tasks.join_next().await else { break };
        all.push(played.unwrap());
    }
    let mut requests = 0;
    let mut crashes = 0;
    let mut declined = 0;
    for (_, seen) in &all {
        requests += seen.requests;
        crashes += seen.crashes;
        declined += seen.declined;
    }
    let peak = all.iter().map(|(_, seen)| seen.peak).max().unwrap();
    println!(
        "{requests} requests, at most {peak} at once; {crashes} crashes; {declined} grants declined as stale"
    );
    let short: Vec<(u64, u64)> = all
        .iter()
        .filter(|(_, seen)| seen.endless)
        .filter_map(|(seed, seen)| Some((seen.share?, *seed)))
        .collect();
    let billed = all.iter().filter(|(_, seen)| seen.endless).filter_map(|(_, seen)| seen.billed);
    println!("share of the cap spent: {:?}", schedules::histogram(short.iter().map(|(share, _)| *share)));
    println!("share of the cap billed: {:?}", schedules::histogram(billed));
    let lowest = short.iter().min().unwrap();
    println!("lowest share spent where the work was endless: {} % (seed {})", lowest.0, lowest.1);
    assert!(short.len() as u64 > count / 3 && crashes > 0 && requests > 0);
    assert!(lowest.0 >= 80, "{lowest:?}");
}

/// The measure itself: books that take lost replies for free do not cover the bill, and that shows.
#[tokio::test]
async fn books_that_forget_lost_replies_are_found_out() {
    let mut found = 0;
    for seed in 1..=5 {
        let played = tokio::spawn(async move { schedules::play(seed, true).await }).await;
        let said = played.err().map(|error| error.into_panic().downcast::<String>().unwrap());
        found += usize::from(said.is_some_and(|said| said.contains("is above what is booked")));
    }
    assert!(found > 0, "nobody noticed");
}

/// Spends all it is given: every reply fills its room, and no agent is done before being told to hand back.
struct Spender {
    subtasks: usize,
    /// Whether the lead goes on by itself when its workers are done.
    insists: bool,
}

impl Brain for Spender {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let last = is_hand_back(request);
        let calls = |name: &str, input: Value| {
            let id = tool_use_id(context, "", 0);
            Scripted::new(vec![json!({"type": "tool_use", "id": id, "name": name, "input": input})])
        };
        // A command without a command is answered at once, without a shell.
        let goes_on = || calls("bash", json!({}));
        let text = || Scripted::new(vec![json!({"type": "text", "text": "That is what I have."})]);
        let scripted = match role(request) {
            "lead" if context.position == 0 => {
                let subtasks: Vec<String> = (0..self.subtasks).map(|n| format!("look at part {n}")).collect();
                calls("Workflow", json!({"subtasks": subtasks}))
            }
            "lead" if last || !self.insists => text(),
            "worker" if last => calls("report_findings", json!({"summary": "so far", "findings": []})),
            _ => goes_on(),
        };
        Scripted { fills_max_tokens: true, delay: Duration::from_millis(5), ..scripted }
    }
}

/// Whether a request asks for what there is.
fn is_hand_back(request: &Value) -> bool {
    let messages = request["messages"].as_array().unwrap();
    let blocks = messages.last().unwrap()["content"].as_array().unwrap();
    blocks
        .iter()
        .any(|block| block["text"].as_str().is_some_and(|text| text.contains("this is the last reply")))
}

/// Dies once, around the nth commit, and stays dead.
fn dies_at(commit: usize, moment: Moment) -> Crash {
    let commits = Arc::new(AtomicUsize::new(0));
    Crash::when(move |now, _| {
        let seen = commits.load(Ordering::SeqCst);
        let dead = seen > commit || (seen == commit && now == moment);
        commits.fetch_add(usize::from(now == moment || dead), Ordering::SeqCst);
        dead
    })
}

async fn session(rig: &Rig, agent: &AgentId) -> SessionId {
    rig.folded(agent).await.spec().unwrap().session.clone()
}

/// What is booked covers the bill, and neither is above the cap.
fn check_books(rig: &Rig, ledger: &Ledger, cap: u64) {
    let bill = rig.sim.bill().total_nano;
    let used = ledger.spent().plus(ledger.held()).nano;
    assert!(bill <= used && used <= cap, "bill {bill}, booked {used}, cap {cap}");
}

async fn spend(seed: u64) {
    let mut dice = Dice(seed);
    let insists = dice.chance(50);
    let ticks = Arc::new(AtomicUsize::new(1));
    let clock = SimClock::following(move || ticks.fetch_add(1, Ordering::SeqCst) as u64);
    let brain = Spender { subtasks: dice.roll(64, 120) as usize, insists };
    let mut rig = Rig::new(SimConfig { clock, ..SimConfig::new(brain) }).await;
    rig.timeouts =
        Timeouts { first: Duration::from_secs(20), idle: Duration::from_secs(20), ..Timeouts::default() };
    rig.fan_out = Some(Rig::fanning_out());
    rig.max_concurrent = 64;
    rig.lost_replies = true;
    let cap = dice.roll(40, 300) * DOLLAR;
    let floor = ceilings(&Models::builtin().get(MODEL)).unwrap().bound(8_000, LEAST_MAX_TOKENS);
    assert!(cap >= 20 * floor);
    rig.caps = Caps { nano: Some(cap), ..Caps::default() };
    let mut kinds = vec![FaultKind::CutBeforeHeaders, FaultKind::CutAfter(2), FaultKind::CutAfter(7)];
    if dice.chance(50) {
        // Refusals make the governor careful, so that fewer are asked at once.
        kinds.extend(FaultKind::all_transient());
    }
    for _ in 0..dice.roll(5, 30) {
        rig.sim.push_fault(
            Fault::new(dice.of(&kinds)).at(dice.roll(0, 8) as usize).times(dice.roll(1, 3) as u32),
        );
    }
    let first = rig.life(None).await;
    let agent = first.start(rig.start(), "spend it").await.unwrap();
    let mut lives = 0;
    let ended = loop {
        let moment = dice.of(&[Moment::BeforeCommit, Moment::AfterCommit]);
        let crash = (lives < 2).then(|| dies_at(dice.roll(5, 400) as usize, moment));
        let runtime = rig.life(crash).await;
        let take = if lives == 0 { DriveMode::New } else { DriveMode::Resume { changed: vec![] } };
        let driven = within(runtime.drive(&agent, take, Stop::never(), None)).await;
        lives += 1;
        if rig.folded(&agent).await.is_started() {
            let session = session(&rig, &agent).await;
            check_books(&rig, &runtime.ledger(&session).await.unwrap(), cap);
        }
        match driven {
            Ok(ended) => break ended,
            Err(Error::Crashed) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let ledger = first.ledger(&session(&rig, &agent).await).await.unwrap();
    check_books(&rig, &ledger, cap);
    assert_eq!(ledger.held(), Amount::ZERO);
    let percent = |nano: u64| nano as f64 * 100.0 / cap as f64;
    let spent = percent(ledger.spent().nano);
    let billed = percent(rig.sim.bill().total_nano);
    let unsure = percent(ledger.unconfirmed().nano);
    let requests = rig.sim.requests();
    println!(
        "seed {seed}: ${} cap, {} lives, {} agents at once, {} requests, {} at once; spent {spent:.1} % \
            ({unsure:.1} % unconfirmed), billed {billed:.1} %",
        cap / DOLLAR,
        lives,
        at_work(&requests),
        requests.len(),
        at_once(requests.iter().filter_map(|request| Some((request.arrived_at, request.ended_at?))))
    );
    let outcome = ended.outcome.unwrap();
    assert!(!insists || outcome.failure() == Some(FailureKind::Budget), "{outcome:?}");
    assert_eq!(outcome.text(), "That is what I have.", "the lead hands back what it has: {outcome:?}");
    assert!(spent >= 80.0, "only {spent} % of the cap was used");
}

/// Agents that had begun and not ended at once, at most.
fn at_work(requests: &[Received]) -> usize {
    let mut lives: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for request in requests {
        let ended = request.ended_at.unwrap_or(request.arrived_at);
        let life = lives.entry(&request.conversation).or_insert((request.arrived_at, ended));
        life.1 = life.1.max(ended);
    }
    at_once(lives.into_values())
}

/// How many of these spans overlap, at most.
fn at_once(spans: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut moments: Vec<(u64, isize)> = spans.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    moments.sort_unstable();
    let mut now = 0;
    let counts = moments.into_iter().map(|(_, step)| {
        now += step;
        now
    });
    counts.max().unwrap_or(0).unsigned_abs()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_sixty_four_agents_spend_their_budget_and_no_more_whatever_is_lost() {
    let (first, count) = sizes("CONVOKE_SOAK_MONEY_HTTP", 2);
    for seed in first..first + count {
        spend(seed).await;
    }
}

/// The last result the lead has read.
fn read_by_the_lead(rig: &Rig) -> String {
    let requests = rig.sim.requests();
    let last = requests.iter().rfind(|request| role(&request.body) == "lead").unwrap();
    let messages = last.body["messages"].as_array().unwrap();
    let results = messages.iter().rev().flat_map(|message| message["content"].as_array().unwrap());
    let mut results = results.filter(|block| block["type"] == "tool_result");
    results.next().unwrap()["content"].as_str().unwrap().to_owned()
}

fn count(rig: &Rig, who: &str) -> usize {
    rig.sim.requests().iter().filter(|request| role(&request.body) == who).count()
}

async fn rig(team: Team, caps: Caps) -> Rig {
    let mut rig = Rig::new(SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.caps = caps;
    rig
}

#[tokio::test]
async fn five_hundred_verifiers_under_forty_agents_start_nobody() {
    let subtasks: Vec<String> = (0..20).map(|n| format!("look at part {n}")).collect();
    let subtasks: Vec<&str> = subtasks.iter().map(String::as_str).collect();
    let team = Team::new([workflow(&subtasks), says("too many")]);
    let mut rig = rig(team, Caps { agents: Some(40), ..Caps::default() }).await;
    rig.fan_out.as_mut().unwrap().voters = 25;
    let (agent, ended) = rig.ask("Review this").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "too many".into() }));
    let read = read_by_the_lead(&rig);
    for words in ["needs 520 agents", "40 of 40 are left", "No agent was started", "--budget-agents"] {
        assert!(read.contains(words), "{words} is not in {read}");
    }
    assert_eq!((count(&rig, "worker"), count(&rig, "verifier")), (0, 0));
    let ledger = rig.life(None).await.ledger(&session(&rig, &agent).await).await.unwrap();
    assert_eq!(ledger.agents(), 0);
}

#[tokio::test]
async fn remembered_results_need_no_agent_and_new_ones_do() {
    let team = Team::new([
        workflow(&["look at a"]),
        says("one"),
        workflow(&["look at a"]),
        says("two"),
        workflow(&["look at a", "look at b"]),
        says("three"),
    ]);
    let rig = rig(team, Caps { agents: Some(2), ..Caps::default() }).await;
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "Review this").await.unwrap();
    for (turn, said) in ["one", "two", "three"].into_iter().enumerate() {
        if turn > 0 {
            runtime.say(&agent, &format!("turn {turn}"), "again").await.unwrap();
        }
        let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
        assert_eq!(ended.outcome, Some(Outcome::Ok { text: said.into() }));
        let ledger = runtime.ledger(&session(&rig, &agent).await).await.unwrap();
        assert_eq!((ledger.agents(), count(&rig, "worker"), count(&rig, "verifier")), (2, 2, 2), "{said}");
    }
    assert!(read_by_the_lead(&rig).contains("needs 2 agents, 0 of 2 are left"), "{}", read_by_the_lead(&rig));
}

#[tokio::test]
async fn verifiers_that_nobody_needed_are_given_back() {
    let team = Team::new([
        workflow(&["look at a", "look at b"]),
        says("one"),
        workflow(&["look at c"]),
        says("two"),
    ])
    .workers(|subtask| {
        looks_and_reports(
            subtask,
            if subtask.ends_with('a') { vec![finding(subtask, "low")] } else { vec![] },
        )
    })
    .verifiers(|findings| looks_and_judges(findings, "confirmed"));
    // Two workers and two verifiers are admitted; one verifier comes back, and pays for the third worker's
    // pair.
    let rig = rig(team, Caps { agents: Some(5), ..Caps::default() }).await;
    let runtime = rig.life(None).await;
    let agent = runtime.start(rig.start(), "Review this").await.unwrap();
    within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
    let id = session(&rig, &agent).await;
    assert_eq!(runtime.ledger(&id).await.unwrap().agents(), 3);
    runtime.say(&agent, "more", "go on").await.unwrap();
    let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "two".into() }));
    assert_eq!(runtime.ledger(&id).await.unwrap().agents(), 4);
    assert_eq!((count(&rig, "worker"), count(&rig, "verifier")), (6, 2));
}

/// A worker that looks, and whose first look takes longer than there is time.
struct Slow {
    team: Team,
    clock: Clock,
}

impl Brain for Slow {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        if role(request) == "worker" && context.position == 1 {
            self.clock.advance_to(self.clock.now() + 120_000);
        }
        self.team.reply(request, context)
    }
}

#[tokio::test]
async fn past_the_minutes_only_hand_backs_start() {
    let clock = Clock::stepped(1_000_000);
    let look = || calls("bash", json!({"command": "echo looked"}));
    let worker = move |subtask: &str| {
        // The third request of a worker is its hand-back.
        vec![look(), look(), report(&format!("{subtask}, as far as it went"), vec![])]
    };
    let lead =
        [workflow(&["look at a", "look at b", "look at c"]), says("what there is"), says("all there is")];
    let team = Team::new(lead).workers(worker);
    let following = clock.clone();
    let sim = SimConfig::new(Slow { team, clock: clock.clone() });
    let mut rig = Rig::new(SimConfig { clock: SimClock::following(move || following.now()), ..sim }).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.clock = clock;
    rig.max_concurrent = 1;
    rig.caps = Caps { ms: Some(60_000), ..Caps::default() };
    let (agent, ended) = rig.ask("Review this").await;
    let outcome = ended.outcome.unwrap();
    assert_eq!(
        (outcome.failure(), outcome.text()),
        (Some(FailureKind::Budget), "what there is"),
        "{outcome:?}"
    );
    assert!(outcome.is_partial());
    let late: Vec<Received> = rig.sim.requests().into_iter().filter(|r| r.arrived_at > 1_060_000).collect();
    assert!(
        late.len() >= 2 && late.iter().all(|request| is_hand_back(&request.body)),
        "{} late ones",
        late.len()
    );
    let read = read_by_the_lead(&rig);
    assert!(
        read.contains("as far as it went") && read.contains("the time granted (1 minute) is used up"),
        "{read}"
    );
    // More time, granted by a person, lets it go on.
    let runtime = rig.life(None).await;
    let id = session(&rig, &agent).await;
    assert!(runtime.ledger(&id).await.unwrap().ms_used(0) >= 120_000);
    runtime.grant(&id, Caps { ms: Some(600_000), ..Caps::default() }, "a person").await.unwrap();
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "all there is".into() }));
}

#[tokio::test]
async fn tokens_have_a_cap_of_their_own_and_a_new_grant_lets_the_work_go_on() {
    let look = || calls("bash", json!({"command": "echo looked"})).fills_max_tokens();
    let replies = [look(), look(), look(), look(), says("all of it")];
    let mut rig = Rig::new(Script::new().conversation("*", replies)).await;
    rig.caps = Caps { tokens: Some(120_000), ..Caps::default() };
    let (agent, ended) = rig.ask("dig").await;
    let outcome = ended.outcome.unwrap();
    assert_eq!(outcome.failure(), Some(FailureKind::Budget), "{outcome:?}");
    let Outcome::Failed { message, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(message.contains("of 120,000 tokens left") && message.contains("--budget-tokens"), "{message}");
    let billed: u64 =
        rig.sim.bill().lines.iter().map(|l| l.usage.prompt_tokens() + l.usage.output_tokens).sum();
    assert!(billed <= 120_000, "{billed}");
    let runtime = rig.life(None).await;
    let id = session(&rig, &agent).await;
    let spent = runtime.ledger(&id).await.unwrap().spent().tokens;
    assert!(billed <= spent && spent <= 120_000, "{billed} {spent}");
    runtime.grant(&id, Caps { tokens: Some(2_000_000), ..Caps::default() }, "a person").await.unwrap();
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "all of it".into() }));
}

#[tokio::test]
async fn a_budget_too_small_for_the_first_request_sends_nothing_until_more_is_granted() {
    let mut rig = Rig::new(Script::new().conversation("*", [says("42")])).await;
    rig.caps = Caps { nano: Some(DOLLAR / 10), ..Caps::default() };
    let (agent, ended) = rig.ask("what is it").await;
    let outcome = ended.outcome.unwrap();
    let Outcome::Failed { kind: FailureKind::Budget, message, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(message.contains("$0.10 of $0.10 left") && message.contains("--budget-usd"), "{message}");
    assert_eq!(rig.sim.requests().len(), 0);
    let runtime = rig.life(None).await;
    let id = session(&rig, &agent).await;
    runtime.grant(&id, Caps { nano: Some(10 * DOLLAR), ..Caps::default() }, "a person").await.unwrap();
    let ended = rig.resume(&agent).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "42".into() }));
    check_books(&rig, &runtime.ledger(&id).await.unwrap(), 10 * DOLLAR);
}

#[tokio::test]
async fn a_model_without_a_price_is_not_asked_under_a_dollar_cap() {
    let mut rig = Rig::new(Script::new().conversation("*", [says("42")])).await;
    rig.caps = Caps { nano: Some(10 * DOLLAR), ..Caps::default() };
    let runtime = rig.life(None).await;
    let start = Start { model: "some-model-of-unknown-price".into(), ..rig.start() };
    let agent = runtime.start(start, "what is it").await.unwrap();
    let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
    let Some(Outcome::Failed { kind: FailureKind::Budget, message, .. }) = ended.outcome else {
        panic!("{ended:?}")
    };
    assert!(message.contains("no known price"), "{message}");
    assert_eq!(rig.sim.requests().len(), 0);
}

#[tokio::test]
async fn subtasks_that_the_money_did_not_reach_are_skipped_and_listed() {
    let look = || calls("bash", json!({})).fills_max_tokens();
    let subtasks: Vec<String> = (0..6).map(|n| format!("look at part {n}")).collect();
    let subtasks: Vec<&str> = subtasks.iter().map(String::as_str).collect();
    let team = Team::new([workflow(&subtasks), says("what there is")])
        .workers(move |_| (0..16).map(|_| look()).collect());
    let mut rig = rig(team, Caps { nano: Some(5 * DOLLAR), ..Caps::default() }).await;
    rig.max_concurrent = 1;
    let (_, ended) = rig.ask("Review this").await;
    assert_eq!(ended.outcome.unwrap().text(), "what there is");
    let read = read_by_the_lead(&rig);
    assert!(read.contains("skipped(budget: "), "{read}");
    for n in 0..6 {
        assert!(read.contains(&format!("look at part {n}")), "part {n} is not in {read}");
    }
    assert!(rig.sim.bill().total_nano <= 5 * DOLLAR);
}

/// The result of the fan-out is longer than all the conversation before it, and the room for it was held
/// beforehand.
#[tokio::test]
async fn a_lead_whose_fan_out_was_skipped_whole_can_still_say_so() {
    let subtasks: Vec<String> = (0..200)
        .map(|n| format!("look at part {n} of the tree, {}", "at all that is below it, ".repeat(4)))
        .collect();
    let subtasks: Vec<&str> = subtasks.iter().map(String::as_str).collect();
    let team = Team::new([workflow(&subtasks).fills_max_tokens(), says("nobody looked")]);
    let rig = rig(team, Caps { nano: Some(DOLLAR * 95 / 100), ..Caps::default() }).await;
    let (_, ended) = rig.ask("Review this").await;
    let outcome = ended.outcome.unwrap();
    let requests = rig.sim.requests();
    println!("{} bytes read, {:?}", read_by_the_lead(&rig).len(), requests[0].body["max_tokens"]);
    assert_eq!(
        (outcome.failure(), outcome.text()),
        (Some(FailureKind::Budget), "nobody looked"),
        "{outcome:?}"
    );
    assert_eq!(requests.len(), 2);
    assert!(rig.sim.bill().total_nano <= DOLLAR * 95 / 100);
}
