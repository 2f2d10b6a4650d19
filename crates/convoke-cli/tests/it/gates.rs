//! The table of gates in `docs/ci.md`: `--fail-on` in every situation, for a task and for a program, with the
//! real binary. A gate that could not be looked at whole is never green.

use convoke_sim::{Fault, FaultKind, Reply, calls, refuses, says};
use serde_json::{Value, json};

use crate::repo::write;
use crate::stage::{Seen, Stage};
use crate::team::{Team, finding, looks_and_reports, workflow};
use crate::workflow_run::script;

const CI: &str = include_str!("../../../../docs/ci.md");

/// Subtasks without and with a finding that is one to fail on.
const CALM: [&str; 3] = ["low one", "low two", "low three"];
const GRAVE: [&str; 3] = ["high one", "low two", "low three"];

fn forbidden() -> Fault {
    let error_type = "permission_error".to_owned();
    Fault::new(FaultKind::Status { status: 403, error_type, retry_after: None })
}

/// What a worker says that reports without having looked, and does so again when it is told to look.
fn blind(task: &str) -> Vec<Reply> {
    vec![calls("report_findings", json!({"summary": task, "findings": [finding(task)]})); 2]
}

/// Runs the task on this stage behind a gate, and says how it ended.
async fn task(stage: &Stage, args: &[&str]) -> Seen {
    stage.run(&[args, &["--fail-on", "high", "-o", "json", "review", "it", "all"]].concat()).await
}

/// Runs a program that has these verified behind a gate, and says how it ended.
async fn program(stage: &Stage, claims: &[&str], args: &[&str]) -> Seen {
    let findings: Vec<Value> = claims.iter().map(|claim| finding(claim)).collect();
    let body = format!(
        "if (args) await agent(args)\nreturn await parallel({}.map(f => () => verify(f)))",
        json!(findings)
    );
    write(&stage.work(), "flow.js", &script(&body));
    stage.run(&[&["workflow", "run", "flow.js", "--fail-on", "high", "-o", "json"], args].concat()).await
}

/// The gate says the same as the exit code, in data and in words.
#[track_caller]
fn consistent(seen: &Seen) -> i32 {
    let code = seen.code.unwrap();
    if code == 2 {
        assert!(
            seen.stdout.is_empty() && seen.stderr.contains("--fail-on high cannot be evaluated"),
            "{}",
            seen.stderr
        );
        assert!(seen.stderr.contains("no model was asked and nothing was spent"), "{}", seen.stderr);
        return code;
    }
    let report = seen.json();
    let gate = &report["gate"];
    assert_eq!(gate["fail_on"], "high", "{report:#}");
    match code {
        0 => assert_eq!(gate["result"], "passed", "{gate}"),
        6 => {
            assert_eq!(gate["result"], "failed", "{gate}");
            let last = seen.stderr.lines().last().unwrap();
            assert_eq!(
                last, "--fail-on high failed on 1 confirmed finding: high a.txt:2: high one",
                "{}",
                seen.stderr
            );
        }
        4 if report["exit_reason"] == "gate" => {
            assert_eq!(gate["result"], "not_evaluated", "{gate}");
            let why = gate["why"].as_str().unwrap();
            assert!(
                seen.stderr.contains(&format!("--fail-on high could not be evaluated: {why}")),
                "{}",
                seen.stderr
            );
        }
        _ => assert_ne!(report["failure"], json!(null), "{report:#}"),
    }
    code
}

/// Checks that the table in the documentation has this row.
#[track_caller]
fn documented(row: &str, column: usize, seen: &[&Seen]) {
    let mut codes: Vec<String> = seen.iter().map(|seen| consistent(seen).to_string()).collect();
    codes.dedup();
    let line = CI.lines().find(|line| line.starts_with(&format!("| {row} |")));
    let line = line.unwrap_or_else(|| panic!("docs/ci.md has no row '{row}' ({codes:?})"));
    let cell = line.split('|').nth(column + 1).unwrap().trim();
    let said = cell.split(':').next().unwrap().trim();
    assert_eq!(said, codes.join(" / "), "{row}: {line}\n{}", seen[0].stderr);
}

async fn tasks_of(subtasks: &[&str]) -> Stage {
    Team::fanning_out(subtasks).stage().await
}

#[tokio::test]
async fn the_table_of_gates_holds_for_tasks() {
    let check = async |row: &str, args: &[&str], faults: &dyn Fn() -> Vec<Fault>| {
        let mut all = Vec::new();
        for subtasks in [CALM, GRAVE] {
            let stage = tasks_of(&subtasks).await;
            faults().into_iter().for_each(|fault| stage.sim().push_fault(fault));
            let seen = task(&stage, args).await;
            if seen.code == Some(2) {
                assert_eq!(stage.sim().requests().len(), 0, "nothing is sent for a gate that cannot work");
            }
            all.push(seen);
        }
        documented(row, 1, &all.iter().collect::<Vec<_>>());
    };
    let none = || Vec::new();
    check("everything was looked at", &[], &none).await;
    check("verification off (`--verify off`)", &["--verify", "off"], &none).await;
    check("mode off (`--mode off`)", &["--mode", "off"], &none).await;
    check("refused for want of agents", &["--budget-agents", "5"], &none).await;
    check("all agents failed", &[], &|| vec![forbidden().on("<subtask>").times(u32::MAX)]).await;
    let mut all = Vec::new();
    for subtasks in [CALM, GRAVE] {
        let some = |task: &str| match task {
            "low three" => vec![refuses("not this")],
            task => looks_and_reports(task, vec![finding(task)]),
        };
        all.push(task(&Team::fanning_out(&subtasks).workers(some).stage().await, &[]).await);
    }
    documented("some agents failed", 1, &[&all[0], &all[1]]);
}

#[tokio::test]
async fn the_table_of_gates_holds_for_tasks_whose_workers_are_degraded_or_never_asked() {
    let alone = Team::new([says("All is well.")]).stage().await;
    let seen = task(&alone, &[]).await;
    assert!(seen.stderr.contains("no workflow was run"), "{}", seen.stderr);
    documented("no result was reported to it", 1, &[&seen]);
    // Without a gate that is an answer like any other.
    let alone = Team::new([says("All is well.")]).stage().await;
    assert_eq!(alone.run(&["review", "it", "all"]).await.code, Some(0));

    let mut all = Vec::new();
    for subtasks in [CALM, GRAVE] {
        let some = |task: &str| match task {
            "low three" => blind(task),
            task => looks_and_reports(task, vec![finding(task)]),
        };
        all.push(task(&Team::fanning_out(&subtasks).workers(some).stage().await, &[]).await);
    }
    documented("some results degraded", 1, &[&all[0], &all[1]]);

    let stage = Team::fanning_out(&GRAVE).workers(blind).stage().await;
    let seen = task(&stage, &[]).await;
    documented("all results degraded", 1, &[&seen]);
    // Whether or not there is a gate: an answer that rests on nothing sound is not done, and the list says
    // the same.
    let stage = Team::fanning_out(&GRAVE).workers(blind).stage().await;
    let report = stage.run(&["-o", "json", "review", "it", "all"]).await.exits(3).json();
    assert_eq!((&report["status"], &report["exit_reason"]), (&json!("partial"), &json!("degraded")));
    let listed = stage.run(&["runs", "list", "-o", "json"]).await.exits(0).json();
    assert_eq!(
        (&listed["runs"][0]["exit_code"], &listed["runs"][0]["failure"]),
        (&json!(3), &json!("degraded"))
    );

    let dear = |task: &str| {
        let replies = looks_and_reports(task, vec![finding(task)]);
        replies.into_iter().map(|reply| reply.fills_max_tokens()).collect::<Vec<_>>()
    };
    let subtasks = ["low 1", "low 2", "low 3", "low 4", "low 5", "low 6"];
    let stage = Team::fanning_out(&subtasks).workers(dear).stage().await;
    let seen = task(&stage, &["--budget-usd", "2.2", "--max-concurrent", "2"]).await;
    documented("the budget ran out", 1, &[&seen]);
}

#[tokio::test]
async fn the_table_of_gates_holds_for_programs() {
    let check = async |row: &str, args: &[&str], faults: &dyn Fn() -> Vec<Fault>| {
        let mut all = Vec::new();
        for claims in [CALM, GRAVE] {
            let stage = Team::new([]).stage().await;
            faults().into_iter().for_each(|fault| stage.sim().push_fault(fault));
            all.push(program(&stage, &claims, args).await);
        }
        documented(row, 2, &all.iter().collect::<Vec<_>>());
    };
    let none = || Vec::new();
    check("everything was looked at", &[], &none).await;
    check("verification off (`--verify off`)", &["--verify", "off"], &none).await;
    check("mode off (`--mode off`)", &["--mode", "off"], &none).await;
    check("refused for want of agents", &["--budget-agents", "2"], &none).await;
    check("all agents failed", &[], &|| vec![forbidden().times(u32::MAX)]).await;
    check("some agents failed", &["--args", "\"die\""], &|| vec![forbidden().on("die").times(u32::MAX)])
        .await;
}

#[tokio::test]
async fn the_table_of_gates_holds_for_programs_that_verify_nothing_or_badly() {
    let stage = Team::new([]).stage().await;
    write(&stage.work(), "flow.js", &script("// verify(it)\nreturn await agent('verify(it)')"));
    let seen = stage.run(&["workflow", "run", "flow.js", "--fail-on", "high", "-o", "json"]).await;
    documented("no result was reported to it", 2, &[&seen]);
    assert_eq!(stage.sim().requests().len(), 0);

    // A function of its own by that name verifies nothing, whatever it says.
    let own = "const verify = async f => ({ ...f, verdict: 'confirmed', said: await agent('look') })\nreturn \
        await verify({})";
    write(&stage.work(), "flow.js", &script(own));
    let seen = stage.run(&["workflow", "run", "flow.js", "--fail-on", "high", "-o", "json"]).await;
    assert_eq!(consistent(&seen), 4, "{}", seen.stderr);
    assert!(seen.stderr.contains("nothing verified"), "{}", seen.stderr);

    // One that would have something verified and found nothing is looked at whole.
    write(
        &stage.work(),
        "flow.js",
        &script("const found = []\nreturn await parallel(found.map(f => () => verify(f)))"),
    );
    let seen = stage.run(&["workflow", "run", "flow.js", "--fail-on", "high", "-o", "json"]).await;
    assert_eq!(consistent(&seen), 0);

    let mut all = Vec::new();
    for claims in [CALM, GRAVE] {
        let stage = Team::new([]).verifiers_look_at_all_but("low three").stage().await;
        all.push(program(&stage, &claims, &[]).await);
    }
    documented("some results degraded", 2, &[&all[0], &all[1]]);
    let stage = Team::new([]).verifiers_look_at_nothing().stage().await;
    documented("all results degraded", 2, &[&program(&stage, &GRAVE, &[]).await]);

    let stage = Team::new([]).stage().await;
    let claims: Vec<String> = (0..30).map(|n| format!("low number {n}")).collect();
    let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
    let seen = program(&stage, &claims, &["--budget-tokens", "60000", "--max-concurrent", "1"]).await;
    documented("the budget ran out", 2, &[&seen]);
}

#[tokio::test]
async fn a_program_that_had_nothing_verified_beside_a_verified_fan_out_blinds_the_gate() {
    let source = script("return await agent('look at the rest')");
    for (subtasks, code) in [(CALM, 4), (GRAVE, 6)] {
        let ran = calls("Workflow", json!({"script": source}));
        let stage = Team::new([workflow(&subtasks), ran, says("It runs."), says("So.")]).stage().await;
        let seen = task(&stage, &[]).await;
        assert_eq!(consistent(&seen), code, "{}", seen.stderr);
        let why = "1 program had nothing verified; a finding counts if it went through verify()";
        assert_eq!(seen.stderr.contains(why), code == 4, "{}", seen.stderr);
    }
    // One without agents has no results that could be judged.
    let ran = calls("Workflow", json!({"script": script("return 1")}));
    let stage = Team::new([workflow(&CALM), ran, says("It runs."), says("So.")]).stage().await;
    assert_eq!(consistent(&task(&stage, &[]).await), 0);
}

#[tokio::test]
async fn a_gate_that_was_set_later_is_looked_at_as_strictly() {
    let stage = tasks_of(&GRAVE).await;
    let report = stage.run(&["--verify", "off", "-o", "json", "review", "it", "all"]).await.exits(0).json();
    let run = report["run"].as_str().unwrap();
    let again = stage.run(&["resume", run, "--fail-on", "high", "-o", "json"]).await.exits(4);
    assert_eq!(consistent(&again), 4);
    assert!(
        again.stderr.contains("3 results were not verified, because verification is off"),
        "{}",
        again.stderr
    );
    let more = stage.run(&["resume", run, "--fail-on", "high", "--say", "go on"]).await.exits(2);
    assert_eq!(consistent(&more), 2);
}

#[tokio::test]
async fn a_workflow_that_is_agreed_to_makes_a_gate_work_with_the_mode_off() {
    for args in
        [&["--workflow", "--mode", "off"][..], &["--mode", "off", "--follow-up", "use a workflow"][..]]
    {
        let stage = Team::new([workflow(&GRAVE), says("So."), workflow(&GRAVE), says("So.")]).stage().await;
        let seen = task(&stage, args).await;
        assert!(matches!(seen.code, Some(4 | 6)), "{}", seen.stderr);
        consistent(&seen);
    }
}
