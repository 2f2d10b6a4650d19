//! Programs that are taken up again: what is done is served by content, what died is asked again and nothing
//! else, whichever call ended first, and whatever was edited meanwhile. What a crash leaves is
//! `crash_programs`; kills of the real binary are in `convoke-cli`.

mod deep;

use std::collections::BTreeMap;
use std::time::Duration;

use convoke_journal::Location;
use convoke_kernel::{AgentId, Caps, Outcome, Program, ProgramStatus, RunId};
use convoke_runtime::{DriveMode, DriveOutcome, Stop, StopLevel, Stopper};
use convoke_sim::{Brain, Context, Fault, FaultKind, Reply, Scripted, SimConfig, calls, says};
use serde_json::{Value, json};

use self::deep::{DEEP, deep_value, drawn};
use crate::programs::{program, rig, run, script, value};
use crate::support::{Rig, within};
use crate::team::{Team, looks_and_judges, role};

fn says_its_prompt(prompt: &str) -> Vec<Reply> {
    vec![says(&format!("did {prompt}"))]
}

/// The next request of this prompt is turned down for good; the one after it is not.
fn turn_down_once(rig: &Rig, prompt: &str, position: usize) {
    rig.sim.push_fault(Fault::new(FaultKind::SpendLimit).on(prompt).at(position));
}

/// Every prompt that was sent from this request on, and how often.
fn asked_since(rig: &Rig, first: usize) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in rig.sim.requests().iter().skip(first).filter(|request| role(&request.body) == "task") {
        let prompt = request.body["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned();
        *asked.entry(prompt).or_default() += 1;
    }
    asked
}

fn check_asked(rig: &Rig, first: usize, expected: &[(&str, usize)]) {
    let expected: BTreeMap<String, usize> =
        expected.iter().map(|(prompt, times)| ((*prompt).to_owned(), *times)).collect();
    assert_eq!(asked_since(rig, first), expected);
}

/// Resumes what a person's call left.
async fn resume(rig: &Rig, lead: &AgentId) -> (DriveOutcome, Program) {
    let ended = rig.resume(lead).await.unwrap();
    (ended, program(rig, lead).await)
}

/// A person's call with this input, to its end, in a session of its own.
async fn call(rig: &Rig, input: &Value) -> (DriveOutcome, Program) {
    let runtime = rig.life(None).await;
    let lead = runtime.start_call(rig.start(), "workflow probe", input).await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    (ended, program(rig, &lead).await)
}

fn run_of(lead: &AgentId) -> String {
    RunId::derived(&["workflow", lead.as_str(), "person_1"]).to_string()
}

/// A rig that takes nothing from other sessions, so that what is served can only come from the run itself or
/// from the one it resumes.
async fn fresh_rig(callee: impl Fn(&str) -> Vec<Reply> + Send + Sync + 'static) -> Rig {
    let mut rig = rig(callee).await;
    rig.fan_out.as_mut().unwrap().fresh = true;
    rig
}

#[tokio::test]
async fn a_retry_asks_exactly_the_dead_again_and_a_half_done_agent_goes_on_in_its_conversation() {
    let rig = rig(|prompt| match prompt {
        "item 7" => vec![calls("bash", json!({"command": "echo half way"})), says("did item 7")],
        _ => says_its_prompt(prompt),
    })
    .await;
    for (prompt, position) in [("item 3", 0), ("item 7", 1), ("item 12", 0)] {
        turn_down_once(&rig, prompt, position);
    }
    let body = "return await parallel(Array.from({length: 20}, (_, i) => () => agent(`item ${i}`)))";
    let (lead, _, first) = run(&rig, body, None).await;
    assert_eq!(
        (first.status(), first.losses().len()),
        (Some(ProgramStatus::Partial), 3),
        "{}",
        first.digest(60_000)
    );
    let before = rig.sim.requests().len();
    assert_eq!(before, 21);
    let (ended, second) = resume(&rig, &lead).await;
    check_asked(&rig, before, &[("item 3", 1), ("item 7", 1), ("item 12", 1)]);
    let went_on =
        rig.sim.requests().into_iter().skip(before).find(|r| r.body.to_string().contains("item 7")).unwrap();
    assert_eq!(went_on.position, 1, "its first turn is not asked for again");
    assert!(went_on.body["messages"].to_string().contains("half way"), "{}", went_on.body["messages"]);
    assert_eq!(
        (second.status(), second.pass()),
        (Some(ProgramStatus::Complete), 2),
        "{}",
        second.digest(60_000)
    );
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{:?}", ended.outcome);
    let all: Vec<String> = (0..20).map(|item| format!("did item {item}")).collect();
    assert_eq!(value(&second), json!(all));
    assert_eq!((second.counts().reused, second.counts().agents), (17, 3));
}

/// Of three equal calls the first one died; asking again gives three answers from three agents.
async fn check_votes(body: &str) {
    let rig = fresh_rig(says_its_prompt).await;
    turn_down_once(&rig, "vote", 0);
    let (lead, _, first) = run(&rig, body, None).await;
    assert_eq!(first.losses().len(), 1, "{}", first.digest(60_000));
    assert_eq!(rig.sim.requests().len(), 3);
    let edited = json!({"script": script(&format!("{body} // edited")), "resumeFromRunId": run_of(&lead)});
    let (_, other) = call(&rig, &edited).await;
    check_three(&other, body);
    assert_eq!(rig.sim.requests().len(), 4, "another run takes the two that are sound: {body}");
    let (_, second) = resume(&rig, &lead).await;
    check_three(&second, body);
    assert_eq!(rig.sim.requests().len(), 5, "the run itself asks the dead one again: {body}");
}

fn check_three(program: &Program, body: &str) {
    assert_eq!(
        value(program),
        json!(["did vote", "did vote", "did vote"]),
        "{body}: {}",
        program.digest(60_000)
    );
    let mut agents: Vec<String> = program
        .calls()
        .flat_map(|call| &call.result.as_ref().unwrap().agents)
        .map(ToString::to_string)
        .collect();
    agents.sort();
    agents.dedup();
    assert_eq!(agents.len(), 3, "{body}: no vote counts twice");
}

#[tokio::test]
async fn of_equal_calls_only_the_dead_one_is_asked_again_and_no_answer_counts_twice() {
    check_votes("return await parallel([1, 2, 3].map(() => () => agent('vote')))").await;
    check_votes("const out = []\nfor (let i = 0; i < 3; i++) out.push(await agent('vote'))\nreturn out")
        .await;
}

async fn check_order(name: &str, delay: impl Fn(&str) -> u64 + Send + Sync + 'static) {
    let mut rig =
        rig(move |prompt| vec![says(&format!("did {prompt}")).after(Duration::from_millis(delay(prompt)))])
            .await;
    rig.max_concurrent = 64;
    rig.agents_at_once = Some(64);
    rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("no".into())).on("doomed").times(u32::MAX));
    let (_, program) = call(&rig, &json!({"script": DEEP, "args": {"areas": 3}})).await;
    assert_eq!(value(&program), deep_value(3), "{name}: {}", program.digest(60_000));
    assert_eq!(program.status(), Some(ProgramStatus::Partial), "{name}");
    assert_eq!(rig.sim.requests().len(), 3 * 10 + 2, "{name}");
}

#[tokio::test]
async fn whoever_ends_first_the_value_is_the_same() {
    // The later an area stands, the later or the earlier it is done.
    let area = |prompt: &str| prompt.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    check_order("in order", move |prompt| 10 * area(prompt)).await;
    check_order("reversed", move |prompt| 10 * (3 - area(prompt).min(3))).await;
    for seed in 1..=3 {
        check_order(&format!("seed {seed}"), move |prompt| drawn(prompt, seed) % 40).await;
    }
}

const PARTS: &str = "const parts = []\n\
    for (const part of args.parts) parts.push(await agent(`part ${part}`))\n\
    const votes = await parallel([1, 2, 3].map(() => () => agent('vote')))\n";

#[tokio::test]
async fn an_edited_script_runs_what_was_edited_and_only_that_and_its_args_are_remembered() {
    let rig = fresh_rig(says_its_prompt).await;
    turn_down_once(&rig, "part b", 0);
    let body = format!("{PARTS}return {{parts, votes, end: await agent('sum up')}}");
    let (lead, _, first) = run(&rig, &body, Some(json!({"parts": ["a", "b", "c"]}))).await;
    assert_eq!(first.status(), Some(ProgramStatus::Partial), "{}", first.digest(60_000));
    let before = rig.sim.requests().len();
    assert_eq!(before, 7);
    let edited = format!("{PARTS}return {{votes, parts, end: await agent('sum it all up')}}");
    let (_, second) = call(&rig, &json!({"script": script(&edited), "resumeFromRunId": run_of(&lead)})).await;
    check_asked(&rig, before, &[("part b", 1), ("sum it all up", 1)]);
    assert_eq!(second.status(), Some(ProgramStatus::Complete), "{}", second.digest(60_000));
    let parts = json!(["did part a", "did part b", "did part c"]);
    let votes = json!(["did vote", "did vote", "did vote"]);
    assert_eq!(value(&second), json!({"parts": parts, "votes": votes, "end": "did sum it all up"}));
    // The script need not be said again either.
    let (_, third) = call(&rig, &json!({"resumeFromRunId": second.spec().unwrap().run.clone()})).await;
    assert_eq!((value(&third), third.counts().agents), (value(&second), 0));
    assert_eq!(rig.sim.requests().len(), before + 2);
}

#[tokio::test]
async fn what_cannot_be_resumed_is_refused_and_nothing_is_started() {
    let rig = rig(says_its_prompt).await;
    let (lead, _, parked) = run(&rig, "await agent('one')\nreturn await checkpoint('Go on?')", None).await;
    assert_eq!(parked.questions().len(), 1);
    let unknown = "wf_aaaaaaaaaaaaaaaa".to_owned();
    for (run, why) in [
        (run_of(&lead), "has not ended"),
        (unknown, "there is no program run"),
        ("wf_x".into(), "give a run as its result names it"),
    ] {
        let (ended, refused) =
            call(&rig, &json!({"script": script("return agent('two')"), "resumeFromRunId": run})).await;
        let Some(Outcome::Failed { message, text, .. }) = ended.outcome else {
            panic!("{:?}", ended.outcome)
        };
        assert!(message.contains(why) || text.contains(why), "{why}: {text}");
        assert!(refused.spec().is_none());
    }
    check_asked(&rig, 0, &[("one", 1)]);
}

#[tokio::test]
async fn an_agent_that_was_turned_away_half_way_goes_on_in_an_edited_script_of_the_same_session() {
    let mut rig = fresh_rig(|prompt| match prompt {
        "half" => vec![
            calls("bash", json!({"command": "echo once >> \"$COUNT\"; echo half way"})),
            says("did half"),
        ],
        _ => says_its_prompt(prompt),
    })
    .await;
    rig.env.insert("COUNT".into(), rig.scratch.path().join("count").to_string_lossy().into_owned());
    turn_down_once(&rig, "half", 1);
    let (lead, _, first) = run(&rig, "return [await agent('half'), await agent('sum up')]", None).await;
    assert_eq!(value(&first), json!([null, "did sum up"]), "{}", first.digest(60_000));
    let before = rig.sim.requests().len();
    let edited = script("return [await agent('half'), await agent('sum it all up')]");
    let input = json!({"script": edited, "resumeFromRunId": run_of(&lead)});
    let runtime = rig.life(None).await;
    runtime.call(&lead, "edited", "workflow probe, edited", &input).await.unwrap();
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{:?}", ended.outcome);
    let second = runtime.program(&RunId::derived(&["workflow", lead.as_str(), "person_2"])).await.unwrap();
    assert_eq!(value(&second), json!(["did half", "did sum it all up"]), "{}", second.digest(60_000));
    check_asked(&rig, before, &[("half", 1), ("sum it all up", 1)]);
    assert_eq!(rig.sim.requests()[before].position, 1, "its first turn is not asked for again");
    let count = std::fs::read_to_string(rig.scratch.path().join("count")).unwrap();
    assert_eq!(count, "once\n", "and its command is not run again");
}

/// A lead that runs a program and, once it is told its end, the same with another last call.
struct Editor;

impl Brain for Editor {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let source =
            |end: &str| script(&format!("{PARTS}return {{parts, votes, end: await agent('{end}')}}"));
        let reply = match (role(request), context.position) {
            ("lead", 0) => {
                calls("Workflow", json!({"script": source("sum up"), "args": {"parts": ["a", "b"]}}))
            }
            ("lead", 2) => {
                let read = request["messages"].to_string();
                let run = &read[read.find("background as wf_").unwrap() + "background as ".len()..]
                    [.."wf_".len() + 16];
                calls("Workflow", json!({"script": source("sum it all up"), "resumeFromRunId": run}))
            }
            ("lead", _) => says("I wait."),
            _ => {
                let prompt = request["messages"][0]["content"][0]["text"].as_str().unwrap();
                says(&format!("did {prompt}"))
            }
        };
        convoke_sim::Script::new().conversation("*", vec![reply; 8]).reply(request, context)
    }
}

#[tokio::test]
async fn a_lead_resumes_an_edited_program_by_the_id_it_was_told() {
    let mut rig = Rig::new(SimConfig::new(Editor)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.fan_out.as_mut().unwrap().fresh = true;
    let (lead, ended) = rig.ask("sum it up").await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{:?}", ended.outcome);
    check_asked(&rig, 0, &[("part a", 1), ("part b", 1), ("vote", 3), ("sum up", 1), ("sum it all up", 1)]);
    let session = rig.folded(&lead).await.spec().unwrap().session.clone();
    let mut programs = rig.life(None).await.programs(&session).await.unwrap();
    // Both were started at the same time of a clock that stands still.
    programs.sort_by_key(|program| program.spec().unwrap().from.is_some());
    let ends: Vec<Value> = programs.iter().map(|program| value(program)["end"].clone()).collect();
    assert_eq!(ends, [json!("did sum up"), json!("did sum it all up")]);
    assert_eq!(programs[1].counts().reused, 5, "{}", programs[1].digest(60_000));
}

const ROUNDS: &str = "let rounds = 0\n\
    while (budget.total && budget.remaining() > budget.total - 40000) { await agent(`round ${rounds}`); \
    rounds += 1 }\n\
    return {rounds, last: await agent('last')}";

async fn budget_rig() -> Rig {
    let mut rig = fresh_rig(says_its_prompt).await;
    rig.caps = Caps { tokens: Some(4_000_000), ..Caps::default() };
    rig
}

#[tokio::test]
async fn a_loop_under_a_budget_comes_to_the_same_rounds_when_it_is_taken_up_or_tried_again() {
    let rig = budget_rig().await;
    turn_down_once(&rig, "last", 0);
    let (lead, _, first) = run(&rig, ROUNDS, None).await;
    let rounds = value(&first)["rounds"].as_u64().unwrap();
    assert!(rounds > 2 && value(&first)["last"].is_null(), "{}", first.digest(60_000));
    let before = rig.sim.requests().len();
    let (_, again) = resume(&rig, &lead).await;
    check_asked(&rig, before, &[("last", 1)]);
    assert_eq!(value(&again), json!({"rounds": rounds, "last": "did last"}));

    // Stopped in its second round, and taken up: the request under way is waited for, so nothing is paid
    // twice.
    let before = rig.sim.requests().len();
    let runtime = rig.life(None).await;
    let lead = runtime.start_call(rig.start(), "rounds", &json!({"script": script(ROUNDS)})).await.unwrap();
    let (stopper, stop) = Stopper::new();
    let stops = async {
        rig.sim.wait_for_requests(before + 2).await;
        stopper.ask(StopLevel::Drain);
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&lead, DriveMode::New, stop, None), stops) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    let (_, resumed) = resume(&rig, &lead).await;
    assert_eq!(value(&resumed), value(&again));
    let asked = asked_since(&rig, before);
    assert!(asked.values().all(|times| *times == 1) && asked.len() as u64 == rounds + 1, "{asked:?}");
}

fn git(rig: &Rig, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let done =
        std::process::Command::new("git").args(identity).args(args).current_dir(rig.work.path()).status();
    assert!(done.unwrap().success(), "git {args:?}");
}

/// A rig whose callees write: one into the directory, one into a worktree.
async fn writing_rig() -> Rig {
    let mut rig = fresh_rig(|prompt| match prompt {
        "write" => vec![calls("bash", json!({"command": "echo once >> written.txt"})), says("did write")],
        "grow" => vec![calls("bash", json!({"command": "echo once >> grown.txt"})), says("did grow")],
        _ => says_its_prompt(prompt),
    })
    .await;
    rig.keeps = true;
    git(&rig, &["init", "-q"]);
    git(&rig, &["commit", "-q", "--allow-empty", "-m", "x"]);
    rig
}

const WRITES: &str =
    "const wrote = await agent('write')\nconst grew = await agent('grow', {isolation: 'worktree'})\n";

#[tokio::test]
async fn what_changed_the_world_is_not_done_again_by_a_retry_or_by_an_edited_script() {
    let rig = writing_rig().await;
    turn_down_once(&rig, "last", 0);
    let body = format!("{WRITES}return [wrote, grew, await agent('last')]");
    let (lead, _, first) = run(&rig, &body, None).await;
    assert_eq!(value(&first), json!(["did write", "did grow", null]), "{}", first.digest(60_000));
    let note = |program: &Program| program.call(2).unwrap().result.as_ref().unwrap().note.clone();
    let before = rig.sim.requests().len();
    let (_, second) = resume(&rig, &lead).await;
    check_asked(&rig, before, &[("last", 1)]);
    assert_eq!(value(&second), json!(["did write", "did grow", "did last"]));
    assert_eq!(note(&second), note(&first), "its worktree is where it was");

    let before = rig.sim.requests().len();
    let edited = script(&format!("{WRITES}return [wrote, grew, await agent('another')]"));
    let (_, third) = call(&rig, &json!({"script": edited, "resumeFromRunId": run_of(&lead)})).await;
    check_asked(&rig, before, &[("another", 1)]);
    assert_eq!(value(&third), json!(["did write", "did grow", "did another"]));
    assert_eq!((rig.read("written.txt").as_str(), rig.read("grown.txt").as_str()), ("once\n", ""));
}

#[tokio::test]
async fn two_processes_with_the_same_program_ask_everything_once() {
    let team = Team::new([says("never asked")])
        .callees(|prompt| {
            vec![says(&format!("did {prompt}")).after(Duration::from_millis(drawn(prompt, 5) % 30))]
        })
        .verifiers(|findings| looks_and_judges(findings, "confirmed"));
    let mut rig = Rig::on(Location::Sqlite("journal.db".into()), SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.fan_out.as_mut().unwrap().voters = 2;
    let body = "const items = await parallel([0, 1, 2, 3, 4, 5].map(i => () => agent(`item ${i}`)))\n\
        const votes = await parallel([1, 2, 3].map(() => () => agent('vote')))\n\
        const verdicts = await parallel(['left', 'right'].map(claim => () => \
        verify({claim, evidence: 'seen'})))\n\
        return {items, votes, verdicts: verdicts.map(v => v.verdict)}";
    let input = json!({"script": script(body)});
    let both = [rig.live().await, rig.live().await];
    let mut leads = Vec::new();
    for runtime in &both {
        leads.push(runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap());
    }
    let drive = |n: usize| both[n].drive(&leads[n], DriveMode::New, Stop::never(), None);
    let (left, right) = within(async { tokio::join!(drive(0), drive(1)) }).await;
    assert!(matches!(left.unwrap().outcome, Some(Outcome::Ok { .. })));
    assert!(matches!(right.unwrap().outcome, Some(Outcome::Ok { .. })));
    let [left, right] = [program(&rig, &leads[0]).await, program(&rig, &leads[1]).await];
    assert_eq!(value(&left), value(&right));
    assert_eq!(value(&left)["verdicts"], json!(["confirmed", "confirmed"]));
    let items: Vec<String> = (0..6).map(|item| format!("item {item}")).collect();
    let expected: Vec<(&str, usize)> =
        items.iter().map(|item| (item.as_str(), 1)).chain([("vote", 3)]).collect();
    check_asked(&rig, 0, &expected);
    let verifiers = rig.sim.requests().iter().filter(|request| role(&request.body) == "verifier").count();
    assert_eq!(verifiers, 2 * 2 * 2, "two requests of two voters on two claims");
    assert_eq!(
        left.counts().agents + right.counts().agents,
        6 + 3 + 2 * 2,
        "everybody worked for one of them"
    );
}
