//! What programs may not do to their host: keep it waiting, keep its money, or be told what is no longer so.

use convoke_kernel::{Caps, Outcome, ProgramStatus, RunId, Sandbox};
use convoke_runtime::{DriveMode, Stop};
use convoke_sim::{SimConfig, calls, says};
use serde_json::{Value, json};

use crate::programs::{program, rig, run, value};
use crate::support::{Rig, within};
use crate::team::{Team, looks_and_judges, role};

#[tokio::test]
async fn a_result_whose_file_was_taken_back_is_not_served_though_it_came_by_the_editor() {
    let mut rig = rig(|_| {
        let edit = json!({"command": "create", "path": "made.txt", "file_text": "x\n"});
        vec![calls("str_replace_based_edit_tool", edit), says("made it")]
    })
    .await;
    rig.same_words = true;
    for asked in [2, 4] {
        let (_, _, program) = run(&rig, "return await agent('make it')", None).await;
        assert_eq!(value(&program), json!("made it"));
        assert_eq!((rig.read("made.txt").as_str(), rig.sim.requests().len()), ("x\n", asked));
        std::fs::remove_file(rig.work.path().join("made.txt")).unwrap();
    }
}

#[tokio::test]
async fn a_run_that_has_ended_waits_for_no_timer() {
    let rig = rig(|_| vec![says("quick")]).await;
    let body = "setTimeout(() => log('late'), 3_600_000)\nreturn await Promise.race([agent('a'), new \
        Promise(() => {})])";
    let (_, _, program) = within(run(&rig, body, None)).await;
    assert_eq!((value(&program), program.status()), (json!("quick"), Some(ProgramStatus::Complete)));
}

#[tokio::test]
async fn a_value_that_cannot_cross_is_a_failed_agent_and_the_run_goes_on() {
    let deep = (0..120).fold(json!(1), |value, _| json!([value]));
    let rig = rig(move |_| vec![calls("StructuredOutput", json!({"a": deep.clone()}))]).await;
    let body = "return await agent('dig', {schema: {type: 'object'}}).catch(e => e.message)";
    let (_, _, deep) = run(&rig, body, None).await;
    assert!(value(&deep).as_str().unwrap().contains("nested too deep"), "{}", deep.digest(9_000));
    let args = (0..120).fold(json!(1), |value, _| json!([value]));
    let (_, ended, _) = run(&rig, "return 1", Some(args)).await;
    assert!(
        matches!(&ended.outcome, Some(Outcome::Failed { text, .. }) if text.contains("levels deep")),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_program_that_only_waits_ends_with_the_time_that_was_granted() {
    let mut rig = rig(|_| vec![says("x")]).await;
    rig.caps = Caps { ms: Some(1), ..Caps::default() };
    let body = "let n = 0\nfor (;;) { await new Promise(done => setTimeout(done, 1)); n += 1 }";
    let (_, ended, program) = within(run(&rig, body, None)).await;
    let Some(Outcome::Failed { message, .. }) = ended.outcome else { panic!("{:?}", ended.outcome) };
    assert!(message.contains("the time granted is used up"), "{message}");
    assert_eq!(program.status(), None, "it goes on when more is granted");
}

#[tokio::test]
async fn without_the_sandbox_no_command_of_a_program_runs() {
    let mut rig = rig(|_| vec![says("x")]).await;
    rig.confinement.sandbox = Sandbox::Off;
    let (_, _, program) = run(&rig, "return await sh('touch made.txt').catch(e => e.message)", None).await;
    assert!(value(&program).as_str().unwrap().contains("needs the sandbox"), "{}", program.digest(9_000));
    assert!(!rig.work.path().join("made.txt").exists());
}

#[tokio::test]
async fn a_skipped_call_gives_back_what_its_agent_held() {
    let rig = rig(|prompt| match prompt {
        "stuck" => vec![calls("bash", json!({"command": "sleep 300"}))],
        _ => vec![says("fine")],
    })
    .await;
    let runtime = rig.life(None).await;
    let script = crate::programs::script("return [await agent('stuck'), await agent('free')]");
    let lead = runtime.start_call(rig.start(), "w", &json!({ "script": script })).await.unwrap();
    let (stopper, stop) = convoke_runtime::Stopper::new();
    let driving = tokio::spawn({
        let runtime = runtime.clone();
        let lead = lead.clone();
        async move { runtime.drive(&lead, DriveMode::New, stop, None).await }
    });
    within(async {
        while rig.sim.requests().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stopper.ask(convoke_runtime::StopLevel::Cut);
    within(driving).await.unwrap().unwrap();
    let id = RunId::derived(&["workflow", lead.as_str(), "person_1"]);
    let stopped = program(&rig, &lead).await;
    runtime.skip_call(&id, 1).await.unwrap();
    within(runtime.drive(&lead, DriveMode::Resume { changed: Vec::new() }, Stop::never(), None))
        .await
        .unwrap();
    let done = program(&rig, &lead).await;
    assert_eq!((value(&done), done.status()), (json!([Value::Null, "fine"]), Some(ProgramStatus::Complete)));
    let ledger = runtime.ledger(&stopped.spec().unwrap().session).await.unwrap();
    assert_eq!(ledger.held(), convoke_kernel::Amount::ZERO, "nothing stays held for nobody");
    assert_eq!(ledger.agents(), 2, "both had begun");
}

#[tokio::test]
async fn mending_a_script_that_lies_in_the_directory_pays_for_nothing_again() {
    let rig = rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    let bodies = [
        "return [await agent('a'), await agent('b'), no.such]",
        "return [await agent('a'), await agent('b')]",
    ];
    for body in bodies {
        // Where people keep it: in the directory itself, saved or not.
        std::fs::write(rig.work.path().join("mine.js"), crate::programs::script(body)).unwrap();
        std::fs::create_dir_all(rig.work.path().join(".convoke/workflows")).unwrap();
        std::fs::write(rig.work.path().join(".convoke/workflows/mine.js"), crate::programs::script(body))
            .unwrap();
        let (_, _, program) = run(&rig, body, None).await;
        assert_eq!(program.counts().ok, 2);
    }
    assert_eq!(rig.sim.requests().len(), 2, "each was asked once");
}

#[tokio::test]
async fn a_command_gives_a_program_all_it_printed_and_nothing_else() {
    let rig = rig(|_| vec![says("x")]).await.confined(Sandbox::Workspace);
    let body = "const long = await sh('seq 1 5000'), none = await sh('grep -c zzz /dev/null'), out = await \
        sh('echo a; exit 3')\n\
        return {lines: long.output.split('\\n').length, none: Number(none.output), code: none.code, out, cut: long.truncated}";
    let (_, _, program) = run(&rig, body, None).await;
    let out = json!({"ok": false, "code": 3, "output": "a\n", "truncated": false});
    let whole = json!({"lines": 5001, "none": 0, "code": 1, "out": out, "cut": false});
    assert_eq!(value(&program), whole, "{}", program.digest(9_000));
    assert!(
        !std::fs::read_dir(rig.scratch.path().join("outputs"))
            .unwrap()
            .flatten()
            .any(|entry| { entry.file_name().to_string_lossy().starts_with("sh_") })
    );
}

#[tokio::test]
async fn a_loop_over_the_budget_ends_when_no_request_fits_any_more() {
    let mut rig = rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    rig.caps = Caps { tokens: Some(120_000), ..Caps::default() };
    let body = "let n = 0\nwhile (budget.total && budget.remaining() > 1000 && n < 200) \
        { n += 1; await agent(`n ${n}`).catch(() => null) }\nreturn n";
    let (_, _, program) = run(&rig, body, None).await;
    let asked = rig.sim.requests().len() as u64;
    let wanted = value(&program).as_u64().unwrap();
    assert!(wanted <= asked + 1, "{wanted} agents were wanted, {asked} could be asked");
}

#[tokio::test]
async fn a_path_that_a_rule_forbids_to_show_is_not_read_as_a_script() {
    let mut rig = rig(|_| vec![says("x")]).await;
    std::fs::write(rig.work.path().join("secret.env"), "PASSWORD=hunter2\n").unwrap();
    rig.approvals.rules = vec![
        serde_json::from_value(json!({"tool": "view", "path": "secret.env", "decision": "deny"})).unwrap(),
    ];
    let body = "return await workflow({scriptPath: 'secret.env'}).catch(e => e.message)";
    let (_, _, program) = run(&rig, body, None).await;
    let told = value(&program).as_str().unwrap().to_owned();
    assert!(told.contains("rule") && !told.contains("hunter2"), "{told}");
}

#[tokio::test]
async fn a_vote_that_is_gone_when_it_is_wanted_starts_nobody_who_was_not_admitted() {
    let team = Team::new([says("never asked")])
        .callees(|_| vec![calls("bash", json!({"command": "sleep 300"}))])
        .verifiers(|findings| looks_and_judges(findings, "confirmed"));
    let mut rig = Rig::new(SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.agents_at_once = Some(1);
    let (_, _, first) = run(&rig, "return (await verify('it is so')).verdict", None).await;
    assert_eq!(value(&first), json!("confirmed"));
    let asked = rig.sim.requests().len();
    // The vote is remembered, so no agent is admitted for it; but it waits, and meanwhile it is forgotten.
    let body = "return (await parallel([() => agent('slow'), () => verify('it is so')]))[1].verdict";
    let runtime = rig.life(None).await;
    let script = crate::programs::script(body);
    let lead = runtime.start_call(rig.start(), "w", &json!({ "script": script })).await.unwrap();
    let (stopper, stop) = convoke_runtime::Stopper::new();
    let driving = tokio::spawn({
        let runtime = runtime.clone();
        let lead = lead.clone();
        async move { runtime.drive(&lead, DriveMode::New, stop, None).await }
    });
    within(async {
        while rig.sim.requests().len() == asked {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stopper.ask(convoke_runtime::StopLevel::Cut);
    within(driving).await.unwrap().unwrap();
    rig.journal.forget_results(u64::MAX).await.unwrap();
    let id = RunId::derived(&["workflow", lead.as_str(), "person_1"]);
    runtime.skip_call(&id, 1).await.unwrap();
    within(runtime.drive(&lead, DriveMode::Resume { changed: Vec::new() }, Stop::never(), None))
        .await
        .unwrap();
    let done = program(&rig, &lead).await;
    assert_eq!((value(&done), done.status()), (json!("unverified"), Some(ProgramStatus::Partial)));
    assert!(
        done.losses()[0].why_lost().contains("no agent had been admitted"),
        "{}",
        done.losses()[0].why_lost()
    );
    let verifiers = rig.sim.requests().iter().filter(|r| role(&r.body) == "verifier").count();
    assert_eq!(verifiers, 2, "only the first run's verifier was ever asked");
}
