//! What the dialect promises and only a whole run can show: rows of `docs/internals/conformance.md` that no
//! other test is about.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_claude::Models;
use convoke_kernel::{
    AgentId, Approvals, Decision, NO_CONSENT, Outcome, Program, ProgramSaid, ProgramStatus, Rule, RunId,
    Sandbox,
};
use convoke_runtime::{
    Asker, DriveMode, HelperPath, PlanEnd, PlanFor, Programs, Question, Stop, StopLevel, Stopper, plan,
    source_digest,
};
use convoke_sim::{
    Brain, Context, Fault, FaultKind, Reply, Script, Scripted, SimConfig, calls, calls_many, empty, says,
};
use serde_json::{Value, json};

use crate::programs::{program, rig, run, script, value};
use crate::support::{MODEL, Rig, within};
use crate::team::{Team, role};
use crate::workers::{lead_read, requests};

fn says_its_prompt(prompt: &str) -> Vec<Reply> {
    vec![says(&format!("did {prompt}"))]
}

/// Runs this input as a person's call, in a session of its own.
async fn call(rig: &Rig, input: &Value) -> Program {
    let runtime = rig.life(None).await;
    let lead = runtime.start_call(rig.start(), "workflow probe", input).await.unwrap();
    within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    program(rig, &lead).await
}

fn run_of(lead: &AgentId) -> RunId {
    RunId::derived(&["workflow", lead.as_str(), "person_1"])
}

/// The body of the first request with this prompt.
fn asked(rig: &Rig, prompt: &str) -> Value {
    let first = |body: &&Value| body["messages"][0]["content"][0]["text"] == prompt;
    requests(rig, "task").iter().find(first).unwrap_or_else(|| panic!("nobody was asked {prompt:?}")).clone()
}

fn tools(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn write(rig: &Rig, name: &str, text: &str) {
    let path = rig.work.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What the program's log says.
fn logs(program: &Program) -> Vec<&str> {
    let texts = program.said().iter().filter_map(|said| match said {
        ProgramSaid::Log(text) => Some(text.as_str()),
        ProgramSaid::Phase(_) => None,
    });
    texts.collect()
}

#[tokio::test]
async fn a_call_with_another_label_or_phase_is_the_same_call_and_with_anything_else_it_is_another() {
    let mut rig = rig(|_| vec![says("done"); 4]).await;
    rig.same_words = true;
    let one =
        call(&rig, &json!({"script": script("return await agent('x', {label: 'one', phase: 'P'})")})).await;
    let other =
        call(&rig, &json!({"script": script("phase('Q')\nreturn await agent('x', {label: 'other'})")})).await;
    assert_eq!((value(&one), value(&other), other.counts().reused), (json!("done"), json!("done"), 1));
    assert_eq!(rig.sim.requests().len(), 1, "the second was served");
    let body = "const all = [{}, {label: 'l'}, {phase: 'P'}, {model: 'sonnet'}, {effort: 'low'}, \
        {agentType: 'Explore'},\n\
        {tools: ['Read']}, {isolation: 'worktree'}, {schema: {type: 'object', properties: {}}}]\n\
        await parallel(all.map(options => () => agent('x', options)))\nawait agent('y').catch(() => null)";
    let (_, _, all) = run(&rig, body, None).await;
    let keys: Vec<&str> = all.calls().map(|call| call.made.key.as_str()).collect();
    assert_eq!(keys.len(), 10);
    let occurrences: Vec<u32> = all.calls().map(|call| call.made.occurrence).collect();
    assert_eq!(occurrences, [0, 1, 2, 0, 0, 0, 0, 0, 0, 0], "equal ones are told apart by their number");
    assert!(keys[..3].iter().all(|key| *key == keys[0]));
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 8, "every other option makes another key");
}

#[tokio::test]
async fn a_calls_own_model_and_effort_reach_its_request_and_phases_have_no_say_in_it() {
    let rig = rig(says_its_prompt).await;
    let source = "export const meta = {name: 'm', description: 'd', phases: [{title: 'P', model: 'haiku'}]}\n\
        phase('P')\nawait agent('plain')\nawait agent('alias', {model: 'haiku'})\nawait agent('effort', \
        {effort: 'low'})\n\
        const old = {model: 'claude-haiku-4-5', effort: 'max'}\n\
        await parallel([() => agent('neither', old), () => agent('nor', old)])\nreturn await agent('again', \
        old)";
    let done = call(&rig, &json!({"script": source})).await;
    assert_eq!(done.status(), Some(ProgramStatus::Complete), "{}", done.digest(60_000));
    let check = |prompt: &str, model: &str, effort: Option<&str>| {
        let request = asked(&rig, prompt);
        assert_eq!(
            (&request["model"], request["output_config"]["effort"].as_str()),
            (&json!(model), effort),
            "{prompt}"
        );
    };
    let (haiku, old) = (Models::builtin().get("haiku").id, Models::builtin().get("claude-haiku-4-5").id);
    check("plain", MODEL, Some("xhigh"));
    check("alias", &haiku, Some("xhigh"));
    check("effort", MODEL, Some("low"));
    check("neither", &old, None);
    let warnings = logs(&done);
    assert_eq!(warnings.len(), 1, "said once: {warnings:?}");
    assert!(warnings[0].contains("has no effort 'max'"), "{warnings:?}");
}

#[tokio::test]
async fn a_kind_of_agent_brings_its_tools_and_words_and_can_give_a_value_all_the_same() {
    let rig = rig(|prompt| match prompt {
        "count" => vec![calls("StructuredOutput", json!({"n": 3}))],
        _ => says_its_prompt(prompt),
    })
    .await;
    write(
        &rig,
        ".claude/agents/c.md",
        "---\nname: shop:counter\ndescription: counts\ntools: Grep\n---\nCount twice.\n",
    );
    let body = "const schema = {type: 'object', properties: {n: {type: 'integer'}}, required: ['n']}\n\
        const n = await agent('count', {agentType: 'shop:counter', schema})\n\
        return [n, await agent('look', {agentType: 'Explore'}), await agent('any', \
        {agentType: 'general-purpose'})]";
    let (_, _, done) = run(&rig, body, None).await;
    assert_eq!(value(&done), json!([{"n": 3}, "did look", "did any"]), "{}", done.digest(60_000));
    let counter = asked(&rig, "count");
    assert_eq!(tools(&counter), ["grep", "StructuredOutput"], "its list does not name it");
    assert!(counter["system"].to_string().contains("Count twice."), "{}", counter["system"]);
    assert_eq!(tools(&asked(&rig, "any")), ["bash", "str_replace_based_edit_tool", "glob", "grep"]);
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_throws_before_anybody_is_asked() {
    let rig = rig(says_its_prompt).await;
    let body = "const out = []\n\
        for (const n of [{type: 'integr'}, {type: 'string', pattern: '('}, {minItems: -1}])\n\
          out.push(await agent('x', {schema: {type: 'object', properties: {n}}}).catch(e => e.message))\n\
        return out";
    let (_, _, done) = run(&rig, body, None).await;
    let told = value(&done);
    for message in told.as_array().unwrap() {
        assert!(message.as_str().unwrap().contains("the schema cannot be used"), "{told}");
    }
    assert_eq!((told.as_array().unwrap().len(), rig.sim.requests().len()), (3, 0));
    assert_eq!(done.status(), Some(ProgramStatus::Partial), "a call that nobody could do is no success");
}

#[tokio::test]
async fn an_agent_that_ends_without_a_word_is_null_and_a_loss() {
    let rig = rig(|_| vec![empty(), empty(), empty()]).await;
    let (_, _, done) = run(&rig, "return [await agent('speak')]", None).await;
    assert_eq!(
        (value(&done), done.status()),
        (json!([null]), Some(ProgramStatus::Partial)),
        "{}",
        done.digest(60_000)
    );
}

#[tokio::test]
async fn an_agent_sees_its_prompt_alone_and_works_in_the_sessions_directory() {
    let rig = rig(|prompt| match prompt {
        "where" => vec![calls("bash", json!({"command": "pwd -P"})), says("there")],
        _ => says_its_prompt(prompt),
    })
    .await;
    let (_, _, done) =
        run(&rig, "const secret = await agent('first')\nreturn await agent('where')", None).await;
    assert_eq!(value(&done), json!("there"), "{}", done.digest(60_000));
    let first = asked(&rig, "where");
    let messages = first["messages"].as_array().unwrap();
    assert_eq!((messages.len(), messages[0]["content"].as_array().unwrap().len()), (1, 1), "{messages:?}");
    let system = first["system"].to_string();
    assert!(
        system.contains("is a return value") && system.contains("Write no report into a file"),
        "{system}"
    );
    let last = requests(&rig, "task").pop().unwrap()["messages"].to_string();
    let dir = rig.work.path().canonicalize().unwrap();
    assert!(last.contains(&*dir.to_string_lossy()), "{last}");
}

#[tokio::test]
async fn the_source_is_kept_as_a_file_and_goes_on_when_it_is_edited_and_called_by_its_path() {
    let mut rig = rig(says_its_prompt).await;
    rig.fan_out.as_mut().unwrap().fresh = true;
    let body = "return [await agent('kept'), await agent('edited')]";
    let (lead, _, _) = run(&rig, body, None).await;
    let run = run_of(&lead);
    let file = rig.scratch.path().join("outputs/scripts").join(format!("probe-{run}.js"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), script(body));
    std::fs::write(&file, script("return [await agent('kept'), await agent('changed')]")).unwrap();
    let input = json!({"scriptPath": file, "script": "nonsense", "name": "nobody", "resumeFromRunId": run});
    let done = call(&rig, &input).await;
    assert_eq!(value(&done), json!(["did kept", "did changed"]), "{}", done.digest(60_000));
    assert_eq!((rig.sim.requests().len(), done.counts().reused), (3, 1));
    assert_eq!(done.spec().unwrap().path.as_deref(), file.canonicalize().unwrap().to_str());
}

/// The run that the lead was told of.
fn told_run(request: &Value) -> String {
    let read = request["messages"].to_string();
    let at = read.find("background as wf_").unwrap() + "background as ".len();
    read[at..at + "wf_".len() + 16].to_owned()
}

/// A lead that starts a program, asks how it stands, ends its turn, and looks into what it is told.
struct Curious;

impl Brain for Curious {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let source = script("log('on <its> way')\nreturn [await agent('slow'), await agent('dies')]");
        let reply = match (role(request), context.position) {
            ("lead", 0) => calls("Workflow", json!({"script": source})),
            ("lead", 1) => calls("run_status", json!({"run": told_run(request)})),
            ("lead", 3) => {
                let read = |item: u32| ("read_result", json!({"run": told_run(request), "item": item}));
                calls_many([read(0), read(1), read(2)])
            }
            ("lead", _) => says("So it is."),
            _ => says("took its time"),
        };
        Script::new().conversation("*", vec![reply; 8]).reply(request, context)
    }
}

#[tokio::test]
async fn a_lead_is_told_where_the_source_is_how_the_run_stands_what_failed_what_it_took_and_how_to_go_on() {
    let mut rig = Rig::new(SimConfig::new(Curious)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.sim.push_fault(Fault::new(FaultKind::BadRequest400("no such thing".into())).on("dies"));
    let slow = rig.sim.hold("slow", 0, 1);
    let status = rig.sim.hold("look into it", 1, 1);
    let runtime = rig.life(None).await;
    let lead = runtime.start(rig.start(), "look into it").await.unwrap();
    let lets_go = async {
        slow.entered().await;
        status.release();
        // Its three requests of the first exchange, and the agent's.
        rig.sim.wait_for_requests(4).await;
        slow.release();
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, lets_go) }).await;
    assert!(matches!(ended.unwrap().outcome, Some(Outcome::Ok { .. })));
    let read = lead_read(&rig);
    let run = told_run(&requests(&rig, "lead")[1]);
    let check = |text: &str, parts: &[&str]| {
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    };
    check(&read[0].0, &[&format!("outputs/scripts/probe-{run}.js"), &format!("resumeFromRunId {run}")]);
    check(&read[1].0, &[": running.", "> on <its> way", "no need to ask again"]);
    assert_eq!([&read[2].0, &read[3].0].map(|text| text.contains("took its time")), [true, true], "{read:?}");
    let last = requests(&rig, "lead").pop().unwrap();
    let texts = last["messages"].as_array().unwrap().iter().filter_map(|m| m["content"][0]["text"].as_str());
    let notice = texts.filter(|text| text.starts_with("[run ")).collect::<String>();
    check(
        &notice,
        &[
            "partial",
            "- call 2 dies: api: ",
            "\n| > [\"took its time\",null]",
            "| usage: 2 agents, ",
            " input tokens (",
            " output tokens, 0 commands, $",
            &format!("| To try again what failed and nothing else, call Workflow with resumeFromRunId {run}"),
        ],
    );
}

#[tokio::test]
async fn a_reply_that_never_comes_throws_after_its_attempts_and_nothing_begins_anew() {
    let mut rig = rig(says_its_prompt).await;
    rig.timeouts.first = Duration::from_millis(300);
    rig.timeouts.idle = Duration::from_millis(300);
    rig.fan_out.as_mut().unwrap().child.limits.max_attempts = 2;
    rig.sim.push_fault(Fault::new(FaultKind::Stall(1)).on("stuck").times(1_000));
    let (_, _, done) = run(&rig, "return await agent('stuck').catch(e => e.message)", None).await;
    assert!(value(&done).as_str().unwrap().starts_with("agent failed: "), "{}", done.digest(60_000));
    let sent = rig.sim.requests();
    assert_eq!((sent.len(), done.counts().agents), (2, 1), "one agent, which tried twice");
    assert_eq!(sent[0].body, sent[1].body);
}

#[tokio::test]
async fn as_many_agents_work_at_once_as_the_session_allows_and_the_rest_wait_in_the_order_of_the_calls() {
    let mut rig = rig(says_its_prompt).await;
    rig.agents_at_once = Some(3);
    let holds: Vec<_> = (0..9).map(|item| rig.sim.hold(&format!("item {item}"), 0, 1)).collect();
    let input = json!({"script": script("return await parallel(Array.from({length: 9}, (_, i) => () => \
        agent(`item ${i}`)))")});
    let runtime = rig.life(None).await;
    let lead = runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap();
    let lets_go = async {
        for item in 0..9usize {
            // Three are at work; only when the first of them is done does the next one begin.
            if let Some(done) = item.checked_sub(3) {
                assert_eq!(rig.sim.requests().len(), item, "nobody else while three are at work");
                holds[done].release();
            }
            holds[item].entered().await;
        }
        holds.iter().for_each(convoke_sim::ReplyHold::release);
    };
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), None);
    let (ended, ()) = within(async { tokio::join!(drive, lets_go) }).await;
    ended.unwrap();
    let all: Vec<String> = (0..9).map(|item| format!("did item {item}")).collect();
    assert_eq!(value(&program(&rig, &lead).await), json!(all));
}

#[tokio::test]
async fn a_call_that_a_person_skips_is_null_and_the_run_is_complete() {
    let rig = rig(|_| vec![calls("bash", json!({"command": "true"})), says("late")]).await;
    let hold = rig.sim.hold("slow", 0, 1);
    let runtime = rig.life(None).await;
    let input = json!({"script": script("return [await agent('slow')]")});
    let lead = runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap();
    let (stopper, stop) = Stopper::new();
    let stops = async {
        hold.entered().await;
        stopper.ask(StopLevel::Drain);
        hold.release();
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&lead, DriveMode::New, stop, None), stops) }).await;
    assert_eq!(ended.unwrap().outcome, None);
    runtime.skip_call(&run_of(&lead), 1).await.unwrap();
    rig.resume(&lead).await.unwrap();
    let done = program(&rig, &lead).await;
    assert_eq!(
        (value(&done), done.status()),
        (json!([null]), Some(ProgramStatus::Complete)),
        "{}",
        done.digest(60_000)
    );
    assert_eq!(rig.sim.requests().len(), 1, "nobody goes on with it");
}

/// How a plan of this program ends, with these limits on agents and items, and how many agents it counted.
async fn planned(body: &str, agents: u32, items: usize) -> (PlanEnd, u32) {
    let helper = HelperPath::new(env!("CARGO_BIN_EXE_convoke-helper").into());
    let mut programs = Programs::without_library(&helper);
    assert_eq!((programs.limits.agents, programs.limits.items), (1_000, 4_096));
    programs.limits.agents = agents;
    programs.limits.items = items;
    let models = Models::builtin();
    let source = script(body);
    let dir = tempfile::tempdir().unwrap();
    let asked = PlanFor {
        helper: &helper,
        programs: &programs,
        models: &models,
        seen: &[],
        model: MODEL,
        dir: dir.path(),
        source: &source,
        args: None,
        budget_total: None,
        voters: 1,
        callee_turns: 50,
        verifier_turns: 4,
    };
    let high = plan(&asked).await.unwrap().high;
    (high.end, high.agents)
}

#[tokio::test]
async fn the_numbers_of_agents_and_items_are_for_the_embedder_to_say() {
    let four = "return await parallel([1, 2, 3, 4].map(i => () => agent(`item ${i}`)))";
    assert_eq!(planned(four, 4, 4).await, (PlanEnd::Returned, 4));
    assert!(matches!(planned(four, 3, 4).await, (PlanEnd::MayGoOn, _)), "more than it may have");
    let (end, agents) = planned(four, 4, 3).await;
    assert!(matches!(&end, PlanEnd::Failed { message, .. } if message.contains('3')), "{end:?}");
    assert_eq!(agents, 0, "nothing is cut, nobody is started");
}

#[tokio::test]
async fn a_person_who_is_asked_about_a_leads_program_sees_its_name_its_phases_and_its_digest() {
    let source = "export const meta = {name: 'sweep', description: 'Sweeps the yard.', phases: [{title: \
        'Find'}, 'Tell']}\n\
        return await agent('far away')";
    for agrees in [true, false] {
        let lead = [calls("Workflow", json!({"script": source})), says("I have asked."), says("So it is.")];
        let mut rig = Rig::new(SimConfig::new(Team::new(lead).callees(says_its_prompt))).await;
        rig.fan_out = Some(Rig::fanning_out());
        rig.fan_out.as_mut().unwrap().mode = false;
        let heard: Arc<Mutex<Vec<Question>>> = Arc::default();
        let questions = Arc::clone(&heard);
        rig.asker = Some(Asker::new(move |question| {
            questions.lock().unwrap().push(question);
            async move { agrees }
        }));
        rig.ask("Look around").await;
        let heard = heard.lock().unwrap().clone();
        assert_eq!(heard.len(), 1);
        assert!(heard[0].what.contains("\"sweep\""), "{}", heard[0].what);
        assert_eq!(heard[0].details[..3], ["Sweeps the yard.", "phase: Find", "phase: Tell"]);
        assert!(heard[0].details[3].contains(&source_digest(source)[..12]), "{:?}", heard[0].details);
        assert_eq!(requests(&rig, "task").len(), usize::from(agrees));
        assert_eq!(lead_read(&rig)[0].0 == NO_CONSENT, !agrees);
    }
}

#[tokio::test]
async fn what_is_forbidden_to_the_session_is_forbidden_to_a_programs_agents() {
    let touch = |_: &str| vec![calls("bash", json!({"command": "touch made.txt"})), says("tried")];
    let mut rig = rig(touch).await.confined(Sandbox::Workspace);
    let rule = Rule { tool: None, command: Some("touch".into()), path: None, decision: Decision::Deny };
    rig.approvals = Approvals { rules: vec![rule], ..Approvals::default() };
    let (_, _, done) = run(&rig, "return await agent('make it', {agentType: 'general-purpose'})", None).await;
    assert_eq!(value(&done), json!("tried"), "{}", done.digest(60_000));
    assert!(!rig.work.path().join("made.txt").exists());
    let last = requests(&rig, "task").pop().unwrap()["messages"].to_string();
    assert!(last.contains("\"is_error\":true"), "it is told so: {last}");
}
