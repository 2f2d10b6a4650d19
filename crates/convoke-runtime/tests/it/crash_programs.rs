//! Crash everywhere, in a program: a run with every kind of call is cut around commits of the run itself, of
//! its lead and of its agents, and taken up in a new life. It must come to the value of the uncut one, with
//! no more requests sent again than were in flight, no command run twice, every agent counted once and
//! nothing left held.
//!
//! CI cuts at some commits, chosen by a printed seed; `CONVOKE_SOAK_CUTS=1` cuts before and after every one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use convoke_journal::Location;
use convoke_kernel::{AgentId, Effect, Event, Outcome, ProgramStatus, RunId};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Stop};
use convoke_sim::{Fault, FaultKind, Reply, SimConfig, calls, says};
use serde_json::{Value, json};

use crate::programs::{self, program, script, value};
use crate::support::{Rig, postgres, shuffled, within};
use crate::team::{Team, looks_and_judges};

const CHILD: &str = "export const meta = {name: 'child', description: 'c'}\nreturn \
    {got: args, by: await agent('from the child')}";

const BODY: &str = "phase('together')\n\
    const schema = {type: 'object', properties: {n: {type: 'integer'}}, required: ['n']}\n\
    const [looked, bad, counted, votes] = await parallel([\n\
    () => agent('look'), () => agent('doomed'), () => agent('count', {schema}),\n\
    () => parallel([1, 2].map(() => () => agent('vote'))),\n\
    ])\n\
    log(`looked: ${looked}`)\n\
    phase('one by one')\n\
    const fact = await sh('cat fact').then(ran => ran.output.trim(), () => 'it is so')\n\
    await new Promise(done => setTimeout(done, 5))\n\
    const child = await workflow('child', {n: 1})\n\
    const who = await checkpoint('Who decides?')\n\
    const {verdict} = await verify({claim: 'it is so', evidence: fact, citations: [{path: 'fact', first: 1, \
    last: 1, quote: 'it is so'}]})\n\
    const grown = await agent('grow', {isolation: 'worktree'})\n\
    return {looked, bad, counted, votes, fact, child, who, verdict, grown}";

/// A command that counts itself in a file outside the journal.
fn counted(marker: &str) -> Reply {
    calls("bash", json!({"command": format!("echo {marker} >> \"$COUNT\"; echo seen {marker}")}))
}

fn callee(prompt: &str) -> Vec<Reply> {
    match prompt {
        "look" | "grow" => vec![counted(prompt), says(&format!("did {prompt}"))],
        "count" => {
            vec![calls("StructuredOutput", json!({"n": "one"})), calls("StructuredOutput", json!({"n": 1}))]
        }
        _ => vec![says(&format!("did {prompt}"))],
    }
}

async fn rig(location: &Location) -> Rig {
    let team = Team::new([says("never asked")])
        .callees(callee)
        .verifiers(|findings| looks_and_judges(findings, "confirmed"));
    let mut rig = Rig::on(location.clone(), SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.keeps = true;
    rig.env.insert("COUNT".into(), rig.scratch.path().join("count").to_string_lossy().into_owned());
    let write = |name: &str, text: &str| std::fs::write(rig.work.path().join(name), text).unwrap();
    std::fs::create_dir_all(rig.work.path().join(".convoke/workflows")).unwrap();
    write(".convoke/workflows/child.js", CHILD);
    write("fact", "it is so\n");
    // Stores that several runs share must not take one for another.
    write("name", &rig.scratch.path().to_string_lossy());
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "x"]] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let git =
            std::process::Command::new("git").args(identity).args(args).current_dir(rig.work.path()).status();
        assert!(git.unwrap().success());
    }
    rig.sim.push_fault(
        Fault::new(FaultKind::BadRequest400("no such thing".into())).on("doomed").times(u32::MAX),
    );
    rig
}

struct Ran {
    value: Value,
    status: Option<ProgramStatus>,
    losses: Vec<String>,
    /// Passes that were begun: one, and another if the process died between the run's end and its lead's
    /// hearing of it.
    passes: u32,
    was_cut: bool,
    agents: u32,
    /// Requests that stand where another stood, and how many were in flight when the process died.
    repeats: usize,
    in_flight: usize,
    counts: BTreeMap<String, usize>,
    commits: usize,
    spent: u64,
    bill: u64,
}

/// Where the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Nowhere,
    /// Around the commit with this number, of whichever stream.
    At(Moment, usize),
    /// When the run has ended and its lead is about to record what came of it.
    Unheard,
}

/// Dies there, and from then on at every commit: a process that is dead commits nothing.
fn dies_at(cut: Cut, commits: &Arc<AtomicUsize>) -> Crash {
    let begun = AtomicUsize::new(0);
    let commits = Arc::clone(commits);
    let dead = AtomicBool::new(false);
    Crash::when(move |moment, events| {
        let number = match moment {
            Moment::BeforeCommit => begun.fetch_add(1, Ordering::SeqCst),
            Moment::AfterCommit => commits.fetch_add(1, Ordering::SeqCst),
        };
        let unheard = cut == Cut::Unheard && moment == Moment::BeforeCommit && is_of_lead(events);
        let here = unheard || cut == Cut::At(moment, number);
        let dies = dead.load(Ordering::SeqCst) || here;
        dead.store(dies, Ordering::SeqCst);
        dies
    })
}

/// Only a person's call has such an id.
fn is_of_lead(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::ToolFinished(e) if e.id.starts_with("person_")))
}

/// Runs the program to its end, over as many lives as it takes, and answers its question on the way.
async fn run(location: &Location, cut: Cut) -> Ran {
    let rig = rig(location).await;
    let commits = Arc::new(AtomicUsize::new(0));
    let mut runtime = rig.life(Some(dies_at(cut, &commits))).await;
    let lead =
        runtime.start_call(rig.start(), "workflow probe", &json!({"script": script(BODY)})).await.unwrap();
    let id = RunId::derived(&["workflow", lead.as_str(), "person_1"]);
    let mut take = DriveMode::New;
    let mut was_cut = false;
    let mut flying = 0;
    for life in 0.. {
        assert!(life < 8, "{cut:?}: it comes to no end");
        let ended = within(runtime.drive(&lead, take.clone(), Stop::never(), None)).await;
        take = DriveMode::Resume { changed: Vec::new() };
        match ended {
            Err(Error::Crashed) if !was_cut => {
                was_cut = true;
                runtime = rig.life(None).await;
                flying = in_flight(&rig, &lead).await;
            }
            Err(error) => panic!("{cut:?}: {error}"),
            Ok(ended) if ended.outcome.is_some() => {
                assert!(
                    matches!(ended.outcome, Some(Outcome::Failed { .. })),
                    "one agent is dead: {:?}",
                    ended.outcome
                );
                break;
            }
            Ok(ended) => {
                let open = program(&rig, &lead).await;
                assert!(
                    ended.parked && open.questions().len() == 1,
                    "{cut:?}: {ended:?}\n{}",
                    open.digest(60_000)
                );
                runtime.answer_checkpoint(&id, open.questions()[0].call, "me").await.unwrap();
            }
        }
    }
    Ran { was_cut, in_flight: flying, commits: commits.load(Ordering::SeqCst), ..collect(&rig, &lead).await }
}

/// How many agents have a request that was decided and has no recorded reply.
async fn in_flight(rig: &Rig, lead: &AgentId) -> usize {
    let Some(session) = rig.folded(lead).await.spec().map(|spec| spec.session.clone()) else { return 0 };
    let mut count = 0;
    for (agent, _) in rig.life(None).await.agents(&session).await.unwrap() {
        count += usize::from(matches!(rig.folded(&agent).await.pending()[..], [Effect::CallModel { .. }]));
    }
    count
}

async fn collect(rig: &Rig, lead: &AgentId) -> Ran {
    let program = program(rig, lead).await;
    let mut places: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for request in rig.sim.requests() {
        *places.entry((request.conversation.clone(), request.position)).or_default() += 1;
    }
    let mut counts = BTreeMap::new();
    let count = std::fs::read_to_string(rig.scratch.path().join("count")).unwrap_or_default();
    count.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    let session = rig.folded(lead).await.spec().unwrap().session.clone();
    let ledger = rig.life(None).await.ledger(&session).await.unwrap();
    assert_eq!(ledger.holds().count(), 0, "nothing is held for agents that have ended");
    Ran {
        value: value(&program),
        status: program.status(),
        losses: program.losses().iter().map(|call| call.made.label.clone()).collect(),
        passes: program.pass(),
        was_cut: false,
        agents: ledger.agents(),
        // Two votes are asked for in the same words.
        repeats: places.values().map(|times| times - 1).sum::<usize>().saturating_sub(1),
        in_flight: 0,
        counts,
        commits: 0,
        spent: ledger.spent().nano,
        bill: rig.sim.bill().total_nano,
    }
}

/// All cuts in a random order.
fn cuts(commits: usize, seed: u64) -> Vec<Cut> {
    // What ends at the same time is committed together, so that another run may have a few commits more.
    let numbers = 0..commits + 4;
    shuffled(
        numbers.flat_map(|n| [Cut::At(Moment::BeforeCommit, n), Cut::At(Moment::AfterCommit, n)]).collect(),
        seed,
    )
}

async fn check(location: &Location, some: usize) {
    let number = |name: &str| std::env::var_os(name).map(|n| n.to_str().unwrap().parse::<u64>().unwrap());
    let seed = number("CONVOKE_SEED").unwrap_or(1);
    let most = if number("CONVOKE_SOAK_CUTS").is_some() { usize::MAX } else { some };
    let whole = run(location, Cut::Nowhere).await;
    let expected = json!({
        "looked": "did look", "bad": null, "counted": {"n": 1}, "votes": ["did vote", "did vote"], "fact": "it is so",
        "child": {"got": {"n": 1}, "by": "did from the child"}, "who": "me", "verdict": "confirmed", "grown": "did grow",
    });
    assert_eq!((&whole.value, whole.status), (&expected, Some(ProgramStatus::Partial)));
    assert_eq!((whole.losses.as_slice(), whole.passes), (&["doomed".to_owned()][..], 1));
    assert_eq!((whole.repeats, whole.in_flight, whole.agents), (0, 0, 8));
    let mut done = 0;
    let mut repeated = 0;
    let mut flying = 0;
    let mut passes = 0;
    for cut in cuts(whole.commits, seed).into_iter().take(most) {
        let context = format!("cut {cut:?} of {} on {location}", whole.commits);
        let resumed = run(location, cut).await;
        assert_eq!(resumed.value, whole.value, "{context}");
        assert_eq!((resumed.status, &resumed.losses), (whole.status, &whole.losses), "{context}");
        // A resume of a run that has ended with a dead agent asks that agent again, and no other.
        let again = resumed.passes - 1;
        assert!(again <= 1, "{context}: {} passes", resumed.passes);
        assert_eq!(resumed.agents, whole.agents + again, "{context}");
        assert!(
            resumed.repeats <= resumed.in_flight + again as usize,
            "{context}: {} of {}",
            resumed.repeats,
            resumed.in_flight
        );
        assert!(resumed.counts.values().all(|times| *times == 1), "{context}: {:?}", resumed.counts);
        assert!(resumed.spent >= resumed.bill, "{context}: {} below {}", resumed.spent, resumed.bill);
        done += usize::from(resumed.was_cut);
        repeated += resumed.repeats;
        flying += resumed.in_flight;
        passes += again;
    }
    println!(
        "{location}, seed {seed}: {done} cuts around {} commits, {repeated} requests repeated of {flying} \
         in flight, {passes} times the dead one was tried again",
        whole.commits
    );
    assert!(done > 0, "the cuts must have hit something");
}

#[tokio::test]
async fn d6_6_a_program_cut_around_any_commit_comes_to_the_same_on_sqlite() {
    check(&Location::Sqlite("journal.db".into()), 10).await;
}

#[tokio::test]
async fn d6_6_a_program_cut_around_any_commit_comes_to_the_same_on_postgres() {
    if let Some(location) = postgres("d6_6_a_program_cut_around_any_commit_comes_to_the_same_on_postgres") {
        check(&location, 6).await;
    }
}

#[tokio::test]
async fn a_life_that_ends_between_the_runs_end_and_its_leads_hearing_of_it_costs_one_more_try_of_the_dead() {
    let resumed = run(&Location::Sqlite("journal.db".into()), Cut::Unheard).await;
    assert!(resumed.was_cut);
    assert_eq!((resumed.passes, resumed.repeats, resumed.in_flight, resumed.agents), (2, 1, 0, 9));
    assert_eq!(
        (resumed.value["bad"].clone(), resumed.value["grown"].clone()),
        (json!(null), json!("did grow"))
    );
    assert!(resumed.counts.values().all(|times| *times == 1), "{:?}", resumed.counts);
}

const RETRIED: &str = "const items = await parallel(['half', 'whole'].map(item => () => agent(item)))\n\
    const votes = []\n\
    for (let i = 0; i < 3; i++) votes.push(await agent('vote'))\n\
    return {items, votes}";

/// A run of which one agent was turned away half way and one of three equal ones at once; then it is taken
/// up, by itself or by another run, and cut.
async fn retried(by_another: bool, cut: Cut) -> (Ran, usize) {
    let mut rig = programs::rig(|prompt| match prompt {
        "half" => vec![calls("bash", json!({"command": "echo half way"})), says("did half")],
        _ => vec![says(&format!("did {prompt}"))],
    })
    .await;
    rig.fan_out.as_mut().unwrap().fresh = true;
    rig.sim.push_fault(Fault::new(FaultKind::SpendLimit).on("half").at(1));
    rig.sim.push_fault(Fault::new(FaultKind::SpendLimit).on("vote"));
    let (first, _, dead) = programs::run(&rig, RETRIED, None).await;
    assert_eq!(value(&dead), json!({"items": [null, "did whole"], "votes": [null, "did vote", "did vote"]}));
    let before = rig.sim.requests().len();
    let commits = Arc::new(AtomicUsize::new(0));
    let runtime = rig.life(Some(dies_at(cut, &commits))).await;
    let (lead, take) = if by_another {
        let run = dead.spec().unwrap().run.clone();
        let edited = json!({"script": script(&format!("{RETRIED} // edited")), "resumeFromRunId": run});
        (runtime.start_call(rig.start(), "workflow probe", &edited).await.unwrap(), DriveMode::New)
    } else {
        (first, DriveMode::Resume { changed: Vec::new() })
    };
    let ended = within(runtime.drive(&lead, take, Stop::never(), None)).await;
    let was_cut = matches!(ended, Err(Error::Crashed));
    let flying = in_flight(&rig, &lead).await;
    let ended = if was_cut { rig.resume(&lead).await.unwrap() } else { ended.unwrap() };
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{cut:?}: {:?}", ended.outcome);
    let last = program(&rig, &lead).await;
    let votes = last.calls().filter(|call| call.made.label == "vote").filter_map(|call| call.result.as_ref());
    let agents: BTreeSet<String> = votes.flat_map(|result| &result.agents).map(ToString::to_string).collect();
    assert_eq!(agents.len(), 3, "{cut:?}: no vote counts twice");
    let asked = rig.sim.requests().len() - before;
    let ran = collect(&rig, &lead).await;
    (Ran { was_cut, in_flight: flying, commits: commits.load(Ordering::SeqCst), ..ran }, asked)
}

async fn check_retried(by_another: bool, wanted: usize) {
    let (whole, asked) = retried(by_another, Cut::Nowhere).await;
    let value = json!({"items": ["did half", "did whole"], "votes": ["did vote", "did vote", "did vote"]});
    assert_eq!((&whole.value, asked), (&value, wanted));
    let soak = std::env::var_os("CONVOKE_SOAK_CUTS").is_some();
    let mut done = 0;
    for number in 0..whole.commits + 2 {
        // CI cuts before every second commit and after the others.
        let moments = [Moment::BeforeCommit, Moment::AfterCommit];
        for moment in
            moments.into_iter().skip(if soak { 0 } else { number % 2 }).step_by(if soak { 1 } else { 2 })
        {
            let cut = Cut::At(moment, number);
            let (resumed, asked) = retried(by_another, cut).await;
            assert_eq!((&resumed.value, resumed.passes), (&value, whole.passes), "{cut:?}");
            let most = wanted + resumed.in_flight;
            assert!(
                (wanted..=most).contains(&asked),
                "{cut:?}: {asked} requests, {} in flight",
                resumed.in_flight
            );
            assert_eq!(resumed.agents, whole.agents, "{cut:?}");
            done += usize::from(resumed.was_cut);
        }
    }
    println!("{done} cuts around {} commits", whole.commits);
    assert!(done + 2 >= whole.commits, "the cuts must have hit");
}

#[tokio::test]
async fn a_retry_that_is_cut_around_any_commit_asks_only_the_dead() {
    check_retried(false, 2).await;
}

#[tokio::test]
async fn an_edited_script_that_is_cut_around_any_commit_is_served_everything_that_was_sound_once() {
    check_retried(true, 3).await;
}
