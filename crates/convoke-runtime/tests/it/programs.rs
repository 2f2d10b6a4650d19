//! Workflow programs through the whole circle: real interpreter processes, real HTTP, a real journal.

use convoke_kernel::{AgentId, Caps, Outcome, Program, ProgramStatus, RunId, Sandbox};
use convoke_runtime::{DriveMode, DriveOutcome, Stop};
use convoke_sim::{Fault, FaultKind, Reply, SimConfig, calls, says};
use serde_json::{Value, json};

use crate::support::{Rig, within};
use crate::team::{Team, looks_and_judges, role};

/// A program with this body.
pub(crate) fn script(body: &str) -> String {
    format!("export const meta = {{name: 'probe', description: 'tries something'}}\n{body}")
}

/// A rig whose callees say this.
pub(crate) async fn rig(callee: impl Fn(&str) -> Vec<Reply> + Send + Sync + 'static) -> Rig {
    let mut rig = Rig::new(SimConfig::new(Team::new([says("never asked")]).callees(callee))).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig
}

/// Runs a program as a person does.
pub(crate) async fn run(rig: &Rig, body: &str, args: Option<Value>) -> (AgentId, DriveOutcome, Program) {
    let mut input = json!({"script": script(body)});
    if let Some(args) = args {
        input["args"] = args;
    }
    let runtime = rig.life(None).await;
    let agent = runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap();
    let ended = within(runtime.drive(&agent, DriveMode::New, Stop::never(), None)).await.unwrap();
    let program = program(rig, &agent).await;
    (agent, ended, program)
}

pub(crate) async fn program(rig: &Rig, lead: &AgentId) -> Program {
    let run = RunId::derived(&["workflow", lead.as_str(), "person_1"]);
    rig.life(None).await.program(&run).await.unwrap()
}

pub(crate) fn value(program: &Program) -> Value {
    serde_json::from_str(program.value().unwrap_or("null")).unwrap()
}

fn write(rig: &Rig, name: &str, text: &str) {
    let path = rig.work.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn says_its_prompt(prompt: &str) -> Vec<Reply> {
    vec![says(&format!("did {prompt}"))]
}

#[tokio::test]
async fn a_program_runs_its_agents_and_its_value_is_the_answer() {
    let rig = rig(says_its_prompt).await;
    let body =
        "const all = await parallel(['a', 'b'].map(x => () => agent(`look at ${x}`)))\nreturn {all, args}";
    let (_, ended, program) = run(&rig, body, Some(json!({"deep": [1, null]}))).await;
    assert_eq!(program.status(), Some(ProgramStatus::Complete), "{}", program.digest(60_000));
    assert_eq!(
        value(&program),
        json!({"all": ["did look at a", "did look at b"], "args": {"deep": [1, null]}})
    );
    let Some(Outcome::Ok { text }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(text.contains("complete") && text.contains("did look at a"), "{text}");
    assert_eq!(rig.sim.requests().len(), 2);
    assert!(rig.sim.requests().iter().all(|request| role(&request.body) == "task"));
}

#[tokio::test]
async fn a_schema_is_filled_by_a_tool_call_and_what_does_not_fit_is_sent_back() {
    let rig = rig(|_| {
        vec![calls("StructuredOutput", json!({"n": "one"})), calls("StructuredOutput", json!({"n": 1}))]
    })
    .await;
    let body = "return await agent('count', {schema: {type: 'object', properties: {n: {type: 'integer'}}, \
        required: ['n']}})";
    let (_, _, program) = run(&rig, body, None).await;
    assert_eq!(value(&program), json!({"n": 1}), "{}", program.digest(60_000));
    let second = &rig.sim.requests()[1].body["messages"];
    assert!(second.to_string().contains("integer"), "the error names what is wrong: {second}");
}

#[tokio::test]
async fn five_hundred_and_forty_seven_agents_under_a_budget_of_fifty_start_none() {
    let mut rig = rig(says_its_prompt).await;
    rig.caps = Caps { agents: Some(50), ..Caps::default() };
    let body =
        "return (await parallel(Array.from({length: 547}, (_, i) => () => agent(`item ${i}`)))).length";
    let (lead, ended, refused) = run(&rig, body, None).await;
    assert_eq!(rig.sim.requests().len(), 0);
    let Some(Outcome::Failed { message, .. }) = &ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(message.contains("needs 547 agents, 50 of 50 are left"), "{message}");
    assert_eq!(refused.status(), None);
    // With a larger budget it goes on from there.
    let runtime = rig.life(None).await;
    let session = refused.spec().unwrap().session.clone();
    runtime.grant(&session, Caps { agents: Some(547), ..Caps::default() }, "test").await.unwrap();
    within(runtime.drive(&lead, DriveMode::Resume { changed: Vec::new() }, Stop::never(), None))
        .await
        .unwrap();
    let program = program(&rig, &lead).await;
    assert_eq!((value(&program), rig.sim.requests().len()), (json!(547), 547));
}

/// Turns every request of the callee with this prompt down for good.
fn turn_down(rig: &Rig, prompt: &str) {
    rig.sim
        .push_fault(Fault::new(FaultKind::BadRequest400("no such thing".to_owned())).on(prompt).times(1_000));
}

#[tokio::test]
async fn a_dead_agent_is_null_and_the_run_is_partial_with_the_list() {
    let rig = rig(says_its_prompt).await;
    turn_down(&rig, "bad");
    let body = "const plain = await agent('bad', {label: 'the bad one'})\n\
        const both = await parallel([() => agent('bad'), () => agent('good')])\nreturn {plain, both}";
    let (_, ended, program) = run(&rig, body, None).await;
    assert_eq!(value(&program), json!({"plain": null, "both": [null, "did good"]}));
    assert_eq!(program.status(), Some(ProgramStatus::Partial));
    let losses: Vec<String> = program.losses().iter().map(|call| call.made.label.clone()).collect();
    assert_eq!(losses, ["the bad one", "bad"]);
    let Some(Outcome::Failed { text, .. }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(text.contains("partial") && text.contains("- call 1 the bad one: api: "), "{text}");
}

#[tokio::test]
async fn a_schema_that_is_never_met_throws_and_a_rate_limit_is_no_schema_failure() {
    let rig = rig(|prompt| match prompt {
        "never" => vec![calls("StructuredOutput", json!({"n": "x"})); 8],
        "prose" => vec![says("I would rather talk"); 8],
        _ => vec![calls("StructuredOutput", json!({"n": 1}))],
    })
    .await;
    rig.sim.push_fault(
        Fault::new(FaultKind::RateLimited { retry_after: Some(0), headers: true }).on("limited").times(2),
    );
    let body = "const schema = {type: 'object', properties: {n: {type: 'integer'}}, required: ['n']}\n\
        const out = []\n\
        for (const p of ['never', 'prose', 'limited']) {\n\
          try { out.push(await agent(p, {schema})) } catch (e) { out.push(e.message) }\n\
        }\nreturn out";
    let (_, _, program) = run(&rig, body, None).await;
    let value = value(&program);
    assert!(value[0].as_str().unwrap().contains("after 5 tries"), "{value}");
    assert!(value[1].as_str().unwrap().contains("StructuredOutput"), "{value}");
    assert_eq!(value[2], json!({"n": 1}));
    let asked = |prompt: &str| {
        let first = |r: &convoke_sim::Received| r.body["messages"][0]["content"][0]["text"] == prompt;
        rig.sim.requests().iter().filter(|r| first(r)).count()
    };
    assert_eq!((asked("never"), asked("prose"), asked("limited")), (5, 3, 3));
}

#[tokio::test]
async fn agents_that_nobody_awaits_are_ended_and_reported() {
    let rig = rig(says_its_prompt).await;
    let body = "agent('forgotten')\nreturn 'early'";
    let (_, _, program) = run(&rig, body, None).await;
    assert_eq!(value(&program), json!("early"));
    assert_eq!(program.status(), Some(ProgramStatus::Partial));
    assert!(program.losses()[0].why_lost().contains("without waiting"), "{}", program.losses()[0].why_lost());
    assert_eq!(rig.sim.requests().len(), 0);
}

#[tokio::test]
async fn a_program_that_throws_fails_with_its_line_and_one_that_loops_is_stopped() {
    let rig = rig(says_its_prompt).await;
    let (_, ended, program) = run(&rig, "const x = null\nreturn x.y", None).await;
    assert_eq!(program.status(), Some(ProgramStatus::Failed));
    let Some(Outcome::Failed { text, .. }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(text.contains("TypeError") && text.contains("line 3") && text.contains("return x.y"), "{text}");
    let (_, ended, _) = run(&rig, "while (true) {}", None).await;
    let Some(Outcome::Failed { text, .. }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(text.contains("failed (ticks)"), "{text}");
}

#[tokio::test]
async fn a_script_that_fails_its_check_is_an_error_at_once() {
    let rig = rig(says_its_prompt).await;
    let (_, ended, program) = run(&rig, "const t = Date.now()\nawait import('fs')\nreturn t", None).await;
    assert!(program.spec().is_none(), "nothing was started");
    let Some(Outcome::Failed { text, .. }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(
        text.contains("line 2") && text.contains("line 3") && text.contains("nothing was started"),
        "{text}"
    );
}

#[tokio::test]
async fn a_finding_is_verified_with_typed_verdicts_and_a_failing_verifier_refutes_nothing() {
    let team =
        Team::new([says("never asked")]).verifiers(|findings| match findings[0]["claim"].as_str().unwrap() {
            "nobody can look" => vec![says("no"); 4],
            _ => looks_and_judges(findings, "confirmed"),
        });
    let mut rig = Rig::new(SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    write(&rig, "a.txt", "one\ntwo\n");
    let body = "const good = await verify({claim: 'line two', evidence: 'seen', citations: [{path: 'a.txt', \
        first: 2, last: 2, quote: 'two'}]})\n\
        const bad = await verify({claim: 'line three', citations: [{path: 'a.txt', first: 3, last: 3, \
        quote: 'three'}]})\n\
        const blind = await verify('nobody can look')\nreturn [good, bad, blind].map(v => v.verdict)";
    let (_, _, program) = run(&rig, body, None).await;
    let value = value(&program);
    assert_eq!(value[0], "confirmed", "{}", program.digest(60_000));
    assert_eq!((&value[1], &value[2]), (&json!("uncertain"), &json!("unverified")));
    assert_eq!(program.status(), Some(ProgramStatus::Partial), "nobody could look at one of them");
}

#[tokio::test]
async fn commands_children_kinds_of_agents_and_timers_are_the_hosts_work() {
    let mut rig = rig(says_its_prompt).await.confined(Sandbox::Workspace);
    rig.fan_out = Some(Rig::fanning_out());
    write(&rig, "a.txt", "hello\n");
    write(
        &rig,
        ".convoke/workflows/child.js",
        "export const meta = {name: 'child', description: 'c'}\nreturn {got: args, by: await agent('from \
         the child')}",
    );
    write(
        &rig,
        ".claude/agents/reader.md",
        "---\nname: reader\ndescription: reads\ntools: Read, Grep\n---\nYou are a careful reader.\n",
    );
    let body = "const out = await sh('cat a.txt; echo x > made.txt; exit 3')\n\
        const child = await workflow('child', [1])\n\
        const none = await workflow('nowhere').catch(e => e.message)\n\
        const kind = await agent('read it', {agentType: 'reader'})\n\
        const unknown = await agent('x', {agentType: 'nobody'}).catch(e => e.message)\n\
        await new Promise(done => setTimeout(done, 5))\n\
        return {out, child, none, kind, unknown}";
    let (_, _, program) = run(&rig, body, None).await;
    let value = value(&program);
    assert_eq!(value["out"]["code"], 3, "{}", program.digest(60_000));
    assert!(value["out"]["output"].as_str().unwrap().contains("hello"));
    assert_eq!(rig.read("made.txt"), "", "what a program's command writes stays in its copy");
    assert_eq!(value["child"], json!({"got": [1], "by": "did from the child"}));
    assert!(value["none"].as_str().unwrap().contains("no workflow 'nowhere'"));
    assert!(value["unknown"].as_str().unwrap().contains("agentType 'nobody'"));
    let request =
        rig.sim.requests().into_iter().find(|r| r.body["messages"].to_string().contains("read it")).unwrap();
    assert!(request.body["system"].to_string().contains("careful reader"));
    let tools: Vec<&str> =
        request.body["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["str_replace_based_edit_tool", "grep"]);
}

#[tokio::test]
async fn no_more_agents_are_sent_into_a_dead_account() {
    let mut rig = rig(says_its_prompt).await;
    rig.agents_at_once = Some(4);
    rig.sim.push_fault(Fault::new(FaultKind::SpendLimit).times(10_000));
    let body = "return (await parallel(Array.from({length: 100}, (_, i) => () => agent(`item \
        ${i}`)))).filter(Boolean).length";
    let (_, _, program) = run(&rig, body, None).await;
    assert_eq!((value(&program), program.status()), (json!(0), Some(ProgramStatus::Partial)));
    let asked = rig.sim.requests().len();
    assert!(asked <= 12, "{asked} of 100 agents were sent into a dead account");
    assert!(program.losses()[99].why_lost().contains("not started"), "{}", program.losses()[99].why_lost());
}

#[tokio::test]
async fn a_lead_launches_a_program_goes_on_and_is_told_its_end() {
    let lead = [
        calls("Workflow", json!({"script": script("log('began')\nreturn await agent('far away')")})),
        says("I have started it."),
        says("It says: far away was done."),
    ];
    let team = Team::new(lead).callees(says_its_prompt);
    let mut rig = Rig::new(SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    let (lead, ended) = rig.ask("run something").await;
    assert!(
        matches!(&ended.outcome, Some(Outcome::Ok { text }) if text.contains("It says")),
        "{:?}",
        ended.outcome
    );
    let requests = rig.sim.requests();
    let last = requests.iter().rfind(|r| role(&r.body) == "lead").unwrap().body["messages"].to_string();
    assert!(last.contains("runs in the background as wf_"), "{last}");
    assert!(last.contains("complete") && last.contains("did far away"), "{last}");
    let events = rig.events(&lead).await;
    assert_eq!(events.iter().filter(|event| event.kind() == "exchange_opened").count(), 2);
}

#[tokio::test]
async fn a_question_parks_the_run_and_the_answer_is_the_value() {
    let rig = rig(says_its_prompt).await;
    let body = "const [who, did] = await parallel([() => checkpoint('Who decides?'), () => \
        agent('meanwhile')])\nreturn {who, did}";
    let (lead, ended, waiting) = run(&rig, body, None).await;
    assert!(ended.outcome.is_none() && ended.parked, "{ended:?}");
    assert_eq!(waiting.questions().len(), 1);
    assert_eq!(waiting.counts().ok, 1, "others go on");
    let runtime = rig.life(None).await;
    let run = RunId::derived(&["workflow", lead.as_str(), "person_1"]);
    runtime.answer_checkpoint(&run, waiting.questions()[0].call, "me").await.unwrap();
    within(runtime.drive(&lead, DriveMode::Resume { changed: Vec::new() }, Stop::never(), None))
        .await
        .unwrap();
    let program = program(&rig, &lead).await;
    assert_eq!(value(&program), json!({"who": "me", "did": "did meanwhile"}));
    assert_eq!(rig.sim.requests().len(), 1, "nobody is asked twice");
}

#[tokio::test]
async fn an_agent_in_a_worktree_leaves_the_checkout_alone_and_says_where_its_work_is() {
    let mut rig =
        rig(|_| vec![calls("bash", json!({"command": "echo new > made.txt"})), says("made it")]).await;
    rig.keeps = true;
    for args in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "x"]] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let done =
            std::process::Command::new("git").args(identity).args(args).current_dir(rig.work.path()).status();
        assert!(done.unwrap().success());
    }
    let (_, _, program) = run(&rig, "return await agent('make', {isolation: 'worktree'})", None).await;
    assert_eq!(value(&program), json!("made it"), "{}", program.digest(60_000));
    assert_eq!(rig.read("made.txt"), "");
    let note = program.call(1).unwrap().result.as_ref().unwrap().note.clone().unwrap();
    assert!(note.contains("convoke worktrees apply"), "{note}");
}

#[tokio::test]
async fn without_consent_a_person_is_shown_what_a_program_would_do_and_no_is_no() {
    use std::sync::{Arc, Mutex};

    let lead = [
        calls(
            "Workflow",
            json!({"script": script("phase('Look')\nreturn await parallel([1, 2].map(n => () => agent(`n \
                ${n}`)))")}),
        ),
        says("Then I do it alone."),
    ];
    let mut rig = Rig::new(SimConfig::new(Team::new(lead).callees(says_its_prompt))).await;
    rig.fan_out = Some(convoke_kernel::FanOut { mode: false, ..Rig::fanning_out() });
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    rig.asker = Some(convoke_runtime::Asker::new(move |question: convoke_runtime::Question| {
        seen.lock().unwrap().push(question);
        async { false }
    }));
    rig.ask("think about it").await;
    let shown = shown.lock().unwrap();
    let details = shown[0].details.join("\n");
    assert!(shown[0].what.contains("probe") && details.contains("tries something"), "{shown:?}");
    assert!(details.contains("script ") && details.contains("by its plan 2 to 2 agents"), "{details}");
    assert!(rig.sim.requests().iter().all(|request| role(&request.body) == "lead"), "nobody was started");
}
