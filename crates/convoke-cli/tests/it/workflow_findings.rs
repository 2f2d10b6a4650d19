//! What programs had verified, in every report and in the exit code; and what else a person finds again of a
//! run: its script, its log, and what to do about a script that fails.

use convoke_sim::{calls, says};
use serde_json::{Value, json};

use crate::repo::{read, repository, write};
use crate::stage::{Seen, Stage};
use crate::team::{Team, finding};
use crate::workflow_run::{script, stage as callees};

/// A program that has these findings verified and says what became of them.
fn verifies(findings: &[Value]) -> String {
    let findings = json!(findings);
    script(&format!(
        "log('before')\nphase('Look')\nconst all = await parallel({findings}.map(f => () => \
            verify(f)))\nlog('after')\n\
         return all.map(one => one?.verdict)"
    ))
}

async fn run(findings: &[Value], args: &[&str]) -> (Stage, Seen) {
    let stage = Team::new([]).stage().await;
    write(&stage.work(), "flow.js", &verifies(findings));
    let seen = stage.run(&[&["workflow", "run", "flow.js"], args].concat()).await;
    (stage, seen)
}

#[tokio::test]
async fn a_confirmed_finding_of_a_program_is_in_every_report_and_is_one_to_fail_on() {
    let findings = [finding("high it breaks"), finding("high and wrong"), finding("low it is slow")];
    let args = ["--fail-on", "high", "--report", "r.sarif", "--report", "r.md", "--report", "r.json"];
    let (stage, seen) = run(&findings, &args).await;
    let seen = seen.exits(6);
    assert_eq!(seen.json(), json!(["confirmed", "refuted", "confirmed"]), "the value is there all the same");
    assert!(seen.stderr.contains("findings: 2 confirmed, 1 refuted"), "{}", seen.stderr);
    assert!(seen.stderr.contains("  high a.txt:2: high it breaks"), "{}", seen.stderr);
    let log: Value = serde_json::from_str(&read(&stage.work(), "r.sarif")).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let broken =
        results.iter().find(|result| result["message"]["text"].to_string().contains("it breaks")).unwrap();
    let place = &broken["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&json!("a.txt"), &json!(2))
    );
    assert!(read(&stage.work(), "r.md").contains("### high, confirmed"));
    let report: Value = serde_json::from_str(&read(&stage.work(), "r.json")).unwrap();
    let told: Vec<Value> =
        report["findings"].as_array().unwrap().iter().map(|f| json!([f["verdict"], f["item"]])).collect();
    assert_eq!(told, [json!(["confirmed", 1]), json!(["refuted", 2]), json!(["confirmed", 3])]);
    assert_eq!(
        (&report["exit_reason"], &report["findings"][0]["run"]),
        (&json!("finding"), &report["programs"][0]["run"])
    );
    // It says so again when it is asked again, and only then.
    let id = report["run"].as_str().unwrap();
    stage.run(&["resume", id, "--fail-on", "high"]).await.exits(6);
    stage.run(&["resume", id]).await.exits(0);
}

#[tokio::test]
async fn what_is_refuted_or_less_grave_is_nothing_to_fail_on() {
    let findings = [finding("high and wrong"), finding("medium it is slow")];
    run(&findings, &["--fail-on", "high"]).await.1.exits(0);
    run(&findings, &["--fail-on", "medium"]).await.1.exits(6);
}

#[tokio::test]
async fn what_a_leads_program_had_verified_counts_too() {
    let source = verifies(&[finding("high it breaks")]);
    let lead = [calls("Workflow", json!({"script": source})), says("It runs."), says("It breaks.")];
    let stage = Team::new(lead).stage().await;
    let seen =
        stage.run(&["run", "look at it", "--workflow", "--fail-on", "high", "-o", "json"]).await.exits(6);
    let report = seen.json();
    assert_eq!(
        (&report["findings"][0]["claim"], &report["findings"][0]["verdict"]),
        (&json!("high it breaks"), &json!("confirmed"))
    );
}

#[tokio::test]
async fn the_shipped_review_fails_a_build_for_a_finding_that_was_confirmed() {
    let stage = Stage::bare();
    repository(
        &stage,
        &[(
            "src/main.rs",
            "fn main() {\n    let x = std::fs::read(\"a\").unwrap();\n    println!(\"{x:?}\");\n}\n",
        )],
    );
    let args =
        ["workflow", "run", "review", "--offline", "-o", "json", "--fail-on", "low", "--report", "r.sarif"];
    let report = stage.run(&args).await.exits(6).json();
    let confirmed =
        report["findings"].as_array().unwrap().iter().filter(|f| f["verdict"] == "confirmed").count();
    assert_eq!(confirmed, report["value"]["confirmed"].as_array().unwrap().len(), "{report:#}");
    let log: Value = serde_json::from_str(&read(&stage.work(), "r.sarif")).unwrap();
    assert!(log["runs"][0]["results"].as_array().unwrap().len() >= confirmed);
    assert_eq!(report["answer"], "", "the value stands in one place");
}

#[tokio::test]
async fn the_whole_log_of_a_program_is_shown_in_order() {
    let stage = callees("log('one')\nphase('Look')\nawait agent('a')\nlog('two\\nlines')\nreturn 1").await;
    let report = stage.run(&["workflow", "run", "flow.js", "-o", "json"]).await.exits(0).json();
    for id in [&report["run"], &report["programs"][0]["run"]] {
        let seen = stage.run(&["runs", "show", id.as_str().unwrap(), "--log"]).await.exits(0);
        assert!(seen.stdout.starts_with("one\nphase: Look\ntwo"), "{}", seen.stdout);
    }
    let told = stage
        .run(&["runs", "show", report["run"].as_str().unwrap(), "--log", "-o", "json"])
        .await
        .exits(0)
        .json();
    assert_eq!((&told["said"][0], &told["said"][1]), (&json!({"log": "one"}), &json!({"phase": "Look"})));
}

#[tokio::test]
async fn the_script_of_a_run_is_saved_under_its_name_by_any_of_its_ids() {
    let stage = callees("return await agent('a')").await;
    let report = stage.run(&["workflow", "run", "flow.js", "-o", "json"]).await.exits(0).json();
    let session = report["run"].as_str().unwrap();
    let run = report["programs"][0]["run"].as_str().unwrap();
    let source = read(&stage.work(), "flow.js");
    std::fs::remove_file(stage.work().join("flow.js")).unwrap();
    let refused = stage.run(&["workflow", "save", "other", "--from", run]).await.exits(2);
    assert!(refused.stderr.contains("its meta says that its name is 'probe'"), "{}", refused.stderr);
    for (from, place) in [(run, "--project"), (&session[..10], "--user")] {
        let seen = stage.run(&["workflow", "save", "probe", "--from", from, place]).await.exits(0);
        assert_eq!(std::fs::read_to_string(seen.stdout.trim_end()).unwrap(), source);
    }
    let seen = stage.run(&["workflow", "save", "probe", "--from", "s_nowhere"]).await.exits(2);
    assert!(
        seen.stderr.contains("there is no session 's_nowhere'") && seen.stderr.contains("no file"),
        "{}",
        seen.stderr
    );
}

#[tokio::test]
async fn a_script_that_fails_by_itself_is_to_be_mended_and_one_whose_agent_died_is_to_be_resumed() {
    let stage = callees("await agent('a')\nthrow new Error('no good')").await;
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(1);
    let hint =
        seen.stderr.lines().find_map(|line| line.strip_prefix("mend the script, then: convoke ")).unwrap();
    assert!(hint.starts_with("resume s_") && hint.ends_with(" --script FILE"), "{hint}");
    let watched = stage.run(&["runs", "watch", hint.split(' ').nth(1).unwrap()]).await.exits(1);
    assert!(watched.stderr.contains(&format!("mend the script, then: convoke {hint}")), "{}", watched.stderr);
    write(&stage.work(), "flow.js", &script("return await agent('a')"));
    let words: Vec<&str> =
        hint.split(' ').map(|word| if word == "FILE" { "flow.js" } else { word }).collect();
    assert_eq!(stage.run(&words).await.exits(0).stdout, "did a\n");
    assert_eq!(stage.sim().requests().len(), 1, "what was done is not asked again");
    let stage = callees("if (await agent('die') === null) throw new Error('nobody')\nreturn 1").await;
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(1);
    assert!(
        seen.stderr.contains("\nresume: convoke resume s_") && !seen.stderr.contains("mend"),
        "{}",
        seen.stderr
    );
}
