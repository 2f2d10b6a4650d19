//! The shipped workflows with the offline model, from the command line to the end, in a small repository.

use serde_json::Value;

use crate::repo::{git, read, repository};
use crate::stage::{Seen, Stage};

const FILES: &[(&str, &str)] = &[
    (
        "src/main.rs",
        "fn main() {\n    // TODO: this loses data\n    let x = std::fs::read(\"a\").unwrap();\n    println!(\"{x:?}\");\n}\n",
    ),
    ("a.py", "colour = 1\nprint(colour)\n"),
    ("b.txt", "the colour\n"),
];

/// Whether what a finding quotes stands where it says.
fn holds(stage: &Stage, finding: &Value) -> bool {
    let text = read(&stage.work(), finding["path"].as_str().unwrap());
    let line = text.lines().nth(finding["first"].as_u64().unwrap() as usize - 1).unwrap_or_default();
    line.contains(finding["quote"].as_str().unwrap().trim())
}

#[track_caller]
fn confirmed(stage: &Stage, seen: &Seen) -> usize {
    let value = &seen.json()["value"];
    let confirmed = value["confirmed"].as_array().unwrap();
    for finding in confirmed {
        assert!(holds(stage, finding), "{finding:#}");
        assert!(
            !finding["evidence"].as_str().unwrap().is_empty() && !finding["why"].as_str().unwrap().is_empty()
        );
    }
    confirmed.len()
}

#[tokio::test]
async fn the_shipped_review_confirms_what_is_there_with_evidence() {
    let stage = Stage::bare();
    repository(&stage, FILES);
    let seen = stage.run(&["workflow", "run", "review", "--offline", "-o", "json"]).await.exits(0);
    assert!(confirmed(&stage, &seen) >= 2, "{}", seen.stdout);
    let report = seen.json();
    assert_eq!(report["programs"][0]["status"], "complete");
    assert!(
        report["agents"].as_array().unwrap().iter().skip(1).all(|agent| agent["status"] == "ok"),
        "{report:#}"
    );
    // The same again is served from before, by whichever command it is run, and costs nothing.
    let again = stage.run(&["review", "--offline", "-o", "json"]).await.exits(0);
    let counts = &again.json()["programs"][0]["counts"];
    assert_eq!((&counts["agents"], &counts["reused"]), (&Value::from(0), &counts["agent_calls"]), "{counts}");
    assert_eq!(again.json()["value"], report["value"]);
    assert!(again.stderr.contains("'review' is a workflow and is run as one"), "{}", again.stderr);
}

#[tokio::test]
async fn the_shipped_audit_ends_after_two_dry_rounds() {
    let stage = Stage::bare();
    repository(&stage, FILES);
    let seen = stage.run(&["workflow", "run", "audit", "--offline", "-o", "json"]).await.exits(0);
    assert_eq!(confirmed(&stage, &seen), 1, "{}", seen.stdout);
    assert_eq!(seen.json()["value"]["dry"], true);
}

#[tokio::test]
async fn the_shipped_migrate_leaves_worktrees_that_are_taken_over_by_a_command() {
    let stage = Stage::bare();
    let dir = repository(&stage, FILES);
    let goal = "replace `colour` with `color`";
    let seen = stage
        .run(&["workflow", "run", "migrate", "--arg-text", goal, "--offline", "-o", "json"])
        .await
        .exits(0);
    let report = seen.json();
    let apply = report["value"]["apply"].as_array().unwrap();
    assert_eq!(apply.len(), 2, "{}", seen.stdout);
    // The second agent put each patch on, and no line says that a test was run.
    for one in apply {
        assert_eq!(one["checked"], "no test was run; looked at by a second agent");
        assert!(
            one["why"].as_str().unwrap().contains("it fits, and `colour` is gone from its files"),
            "{one:#}"
        );
    }
    assert!(report["value"]["summary"].as_str().unwrap().contains("without a test"), "{}", seen.stdout);
    assert_eq!(git(&dir, &["status", "--porcelain"]), "", "nothing in the checkout is touched");
    let trees = report["worktrees"].as_array().unwrap();
    assert_eq!(trees.len(), 2);
    assert_eq!(report["programs"][0]["notes"].as_array().unwrap().len(), 2);
    for tree in trees {
        let run = report["run"].as_str().unwrap();
        let agent = tree["agent"].as_str().unwrap();
        stage.run(&["worktrees", "apply", run, agent]).await.exits(0);
    }
    assert_eq!(read(&dir, "a.py"), "color = 1\nprint(color)\n");
    assert_eq!(read(&dir, "b.txt"), "the color\n");
}

#[tokio::test]
async fn a_shipped_workflow_without_its_arguments_says_what_to_run_and_not_to_mend_it() {
    let stage = Stage::bare();
    let dir = repository(&stage, FILES);
    let seen = stage.run(&["workflow", "run", "migrate", "--offline"]).await.exits(1);
    assert!(seen.stderr.contains("say what to change: --args"), "{}", seen.stderr);
    let last = seen.stderr.lines().last().unwrap();
    assert_eq!(last, "run it again with other arguments: convoke workflow run migrate --args ARGS");
    // A person's own script is mended.
    crate::repo::write(
        &dir,
        "own.js",
        "export const meta = { name: 'own', description: 'd' };\nthrow new Error('no')\n",
    );
    let own = stage.run(&["workflow", "run", "own.js", "--offline", "--yes"]).await.exits(1);
    assert!(own.stderr.contains("mend the script, then: convoke resume s_"), "{}", own.stderr);
}

#[tokio::test]
async fn a_test_that_is_named_is_run_on_a_patched_copy_and_decides() {
    let stage = Stage::bare();
    let dir = repository(&stage, FILES);
    let goal = "replace `colour` with `color`";
    // The test sees the change and nothing but one of them: what it needs of the other file is not there.
    let args = serde_json::json!({"goal": goal, "test": "grep -q 'color = 1' a.py"}).to_string();
    let seen =
        stage.run(&["workflow", "run", "migrate", "--args", &args, "--offline", "-o", "json"]).await.exits(0);
    let value = &seen.json()["value"];
    assert_eq!(
        (&value["apply"][0]["item"], &value["apply"][0]["tested"]),
        (&"a.py".into(), &"by the harness".into()),
        "{value:#}"
    );
    assert_eq!(value["failed"][0]["item"], "b.txt", "{value:#}");
    assert_eq!(git(&dir, &["status", "--porcelain"]), "", "nothing in the checkout is touched");
}

#[tokio::test]
async fn a_review_of_a_path_looks_there_alone_and_at_no_price_where_nothing_is() {
    let stage = Stage::bare();
    repository(&stage, &[FILES, &[("lib/b.py", "# TODO: this too\n")]].concat());
    let review =
        |args: &'static str| ["workflow", "run", "review", "--args", args, "--offline", "-o", "json"];
    let seen = stage.run(&review("\"lib\"")).await.exits(0);
    assert_eq!(confirmed(&stage, &seen), 1, "{}", seen.stdout);
    let value = &seen.json()["value"];
    assert_eq!(
        (&value["confirmed"][0]["path"], &value["outside"]),
        (&"lib/b.py".into(), &serde_json::json!([])),
        "{value:#}"
    );
    let seen = stage.run(&review("[\"lib\"]")).await.exits(0);
    assert!(seen.json()["value"]["summary"].as_str().unwrap().contains("in `lib/`"), "{}", seen.stdout);
    let seen = stage.run(&review("\"gone\"")).await.exits(1);
    assert!(seen.stderr.contains("there is no gone here; nothing was reviewed"), "{}", seen.stderr);
    assert_eq!(seen.json()["programs"][0]["counts"]["agent_calls"], 0, "{}", seen.stdout);
    // A plan knows nothing of the paths, and shows what the verifiers may cost all the same.
    let plan = stage.run(&["workflow", "plan", "review", "--args", "\"lib\""]).await.exits(0).stdout;
    let row = plan.lines().find(|line| line.starts_with("Verify")).unwrap();
    assert_ne!(row.split_whitespace().nth(1), Some("0"), "{plan}");
}

/// The words of a command line; what stands in single quotes is one.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(piece.split_whitespace().map(str::to_owned)),
            _ => words.push(piece.to_owned()),
        }
    }
    words
}

#[tokio::test]
async fn every_command_of_the_tutorial_does_what_it_says_in_an_empty_repository() {
    let page = include_str!("../../../../docs/workflows.md");
    let (_, page) = page.split_once("Save this as `.convoke/workflows/stale.js`").unwrap();
    let (_, page) = page.split_once("```js\n").unwrap();
    let (source, page) = page.split_once("\n```\n").unwrap();
    let (_, page) = page.split_once("```\n").unwrap();
    let (commands, _) = page.split_once("\n```\n").unwrap();
    let stage = Stage::bare();
    git(&stage.work(), &["init", "-q"]);
    crate::repo::write(&stage.work(), ".convoke/workflows/stale.js", source);
    let mut seen = Vec::new();
    for line in commands.lines() {
        let line = line.split(" #").next().unwrap().trim().strip_prefix("convoke ").unwrap();
        // There is no key here, and a test must cost nothing.
        let offline = if line.contains(" run ") && !line.contains("--offline") { " --offline" } else { "" };
        let args = words(&format!("{line}{offline}"));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        seen.push((args[1].to_owned(), stage.run(&args).await.exits(0)));
    }
    let of =
        |word: &str| seen.iter().filter(|(name, _)| name == word).map(|(_, seen)| seen).collect::<Vec<_>>();
    assert_eq!((of("check").len(), of("plan").len(), of("run").len()), (1, 1, 2));
    // Every phase that is declared has agents.
    let plan = &of("plan")[0].stdout;
    for phase in ["Compare", "Verify"] {
        let row = plan.lines().find(|line| line.starts_with(phase)).unwrap();
        assert_ne!(row.split_whitespace().nth(1), Some("0"), "{plan}");
    }
    assert!(!plan.contains("no phase"), "{plan}");
    for run in of("run") {
        assert!(serde_json::from_str::<Value>(&run.stdout).unwrap()["stale"].is_array(), "{}", run.stdout);
    }
}

#[tokio::test]
async fn migrate_without_a_goal_fails_and_says_what_to_write() {
    let stage = Stage::bare();
    repository(&stage, FILES);
    let seen = stage.run(&["workflow", "run", "migrate", "--offline"]).await.exits(1);
    assert_eq!(seen.stdout, "");
    assert!(seen.stderr.contains("say what to change: --args"), "{}", seen.stderr);
}
