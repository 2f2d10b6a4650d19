//! What a session leaves behind, and what follows the task: report files, follow-ups, and taking up an
//! unfinished run.

use convoke_sim::{Script, calls, refuses, says};
use serde_json::{Value, json};

use crate::stage::{Stage, patiently};

fn read(stage: &Stage, name: &str) -> String {
    std::fs::read_to_string(stage.work().join(name)).unwrap()
}

#[tokio::test]
async fn a_report_is_written_in_every_form_that_is_asked_for() {
    let stage = Stage::with(Script::new().conversation("*", [says("All is *well*.")])).await;
    let args = ["--report", "r.md", "--report", "r.json", "--report", "r.sarif", "is", "it?"];
    let seen = stage.run(&args).await.exits(0);
    assert_eq!(seen.stdout, "All is *well*.\n");
    let markdown = read(&stage, "r.md");
    assert!(
        markdown.starts_with("# Convoke report\n") && markdown.contains("\n> All is *well*.\n"),
        "{markdown}"
    );
    let object: Value = serde_json::from_str(&read(&stage, "r.json")).unwrap();
    assert_eq!((&object["answer"], &object["task"]), (&json!("All is *well*."), &json!("is it?")));
    assert_eq!((&object["mode"], &object["effort"]), (&json!("on"), &json!("xhigh")));
    assert_eq!(object["spend"]["cap_nano"], 10_000_000_000_u64);
    assert_eq!(object["agents"][0]["role"], "lead");
    let log: Value = serde_json::from_str(&read(&stage, "r.sarif")).unwrap();
    assert_eq!((&log["version"], &log["runs"][0]["results"]), (&json!("2.1.0"), &json!([])));
    let beside = std::fs::read_dir(stage.work()).unwrap().count();
    assert_eq!(beside, 3, "nothing is left beside the reports");
}

#[tokio::test]
async fn the_object_on_stdout_and_the_report_are_the_same() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    let seen = stage.run(&["--output", "json", "--report", "r.json", "is", "it?"]).await.exits(0);
    let written: Value = serde_json::from_str(&read(&stage, "r.json")).unwrap();
    assert_eq!(seen.json(), written);
}

#[tokio::test]
async fn a_report_that_cannot_be_written_costs_neither_the_answer_nor_the_exit_code() {
    // The directory goes away while the session is under way.
    let gone = calls("bash", json!({"command": "rm -r out"}));
    let stage = Stage::with(Script::new().conversation("*", [gone, says("Yes.")])).await;
    std::fs::create_dir(stage.work().join("out")).unwrap();
    let seen = stage.run(&["--output", "json", "--report", "out/r.md", "is", "it?"]).await.exits(0);
    assert!(
        seen.stderr.contains("warning: the report ") && seen.stderr.contains("out/r.md was not"),
        "{}",
        seen.stderr
    );
    let object = seen.json();
    assert_eq!(object["answer"], "Yes.");
    assert!(object["warnings"].to_string().contains("out/r.md was not written"), "{object:#}");
}

#[tokio::test]
async fn a_link_that_a_command_plants_leads_no_report_out_of_its_directory() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("authorized_keys");
    std::fs::write(&victim, "mine").unwrap();
    let plant = format!(
        "ln -sfn {0} r.md && mv out moved && ln -sfn {1} out",
        victim.display(),
        place.path().display()
    );
    let plant = calls("bash", json!({ "command": plant }));
    let stage = Stage::with(Script::new().conversation("*", [plant, says("ssh-rsa AAAA mallory")])).await;
    std::fs::create_dir(stage.work().join("out")).unwrap();
    let args =
        ["--report", "r.md", "--report", "out/r.json", "--report", "out/authorized_keys.md", "is", "it?"];
    let seen = stage.run(&args).await.exits(0);
    assert!(
        stage.work().join("r.md").is_symlink() && stage.work().join("out").is_symlink(),
        "{}",
        seen.stderr
    );
    assert!(seen.stderr.contains("r.md was not written: a symbolic link stands there"), "{}", seen.stderr);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing came to the victim's directory");
    // What can be written is, in the directory that was named when the session began.
    let object: Value = serde_json::from_str(&read(&stage, "moved/r.json")).unwrap();
    assert_eq!(object["answer"], "ssh-rsa AAAA mallory");
}

#[tokio::test]
async fn a_report_through_a_link_of_the_repository_is_refused_before_anything_is_spent() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("r.md");
    std::fs::write(&victim, "mine").unwrap();
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    std::os::unix::fs::symlink(&victim, stage.work().join("r.md")).unwrap();
    std::os::unix::fs::symlink(place.path(), stage.work().join("docs")).unwrap();
    for file in ["r.md", "docs/r.md", "docs/new.md"] {
        let seen = stage.run(&["--sandbox", "read-only", "--report", file, "is", "it?"]).await.exits(2);
        assert!(seen.stderr.contains("name the file itself"), "{}", seen.stderr);
    }
    let run = stage.run(&["--output", "json", "is", "it?"]).await.exits(0).json()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    for args in [
        &["resume", &run, "--report", "docs/r.md"][..],
        &["runs", "export", &run, "--to", "docs/new.jsonl"],
        &["export", &run, "--to", "docs/team"],
        &["man", "--dir", "docs"],
    ] {
        let seen = stage.run(args).await;
        assert!(
            seen.stderr.contains("a symbolic link stands there or on the way"),
            "{args:?}: {}",
            seen.stderr
        );
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    assert_eq!(stage.sim().requests().len(), 1);
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_projects_files_stops_no_run() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    for name in ["AGENTS.md", ".git", "task.md"] {
        let made = std::process::Command::new("mkfifo").arg(stage.work().join(name)).status().unwrap();
        assert!(made.success());
    }
    let refused = stage.run(&["--sandbox", "read-only", "@task.md"]).await.exits(2);
    assert!(refused.stderr.contains("a named pipe stands there"), "{}", refused.stderr);
    std::fs::remove_file(stage.work().join(".git")).unwrap();
    let seen = stage.run(&["--trust-project", "is", "it?"]).await.exits(0);
    assert_eq!(seen.stdout, "Yes.\n");
}

#[tokio::test]
async fn a_failed_run_leaves_a_report_too() {
    let stage = Stage::with(Script::new().conversation("*", [refuses("Not this.")])).await;
    stage.run(&["--report", "r.md", "do", "it"]).await.exits(1);
    let markdown = read(&stage, "r.md");
    assert!(markdown.contains("| came to | failed (refused): Not this., exit code 1 |"), "{markdown}");
    assert!(markdown.contains("There is none."), "{markdown}");
}

#[tokio::test]
async fn a_resume_of_an_ended_run_writes_its_report_again() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    let run = stage.run(&["--output", "json", "is", "it?"]).await.exits(0).json()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    stage.run(&["resume", &run, "--report", "again.json"]).await.exits(0);
    let object: Value = serde_json::from_str(&read(&stage, "again.json")).unwrap();
    assert_eq!((&object["answer"], &object["task"]), (&json!("Yes."), &json!("is it?")));
    assert_eq!(stage.sim().requests().len(), 1);
}

#[tokio::test]
async fn d9_2_a_follow_up_is_asked_after_the_task_and_both_answers_are_printed() {
    let first = says("The review.");
    let second = says("?").when_last_contains("Summarise", says("In short."));
    let stage = Stage::with(Script::new().conversation("*", [first, second])).await;
    let task = ["review", "it", "all"];
    let rest = ["--follow-up", "Summarise it.", "--follow-up-mode", "off"];
    let seen = stage.run(&[&task[..], &rest].concat()).await.exits(0);
    assert_eq!(seen.stdout, "The review.\n\nIn short.\n");
    let object =
        stage.run(&[&["--output", "json", "review", "again"], &rest[..]].concat()).await.exits(0).json();
    assert_eq!((&object["answer"], &object["task"]), (&json!("In short."), &json!("review again")));
    let expected = json!([{"text": "Summarise it.", "mode": "off", "status": "done", "answer": "In short."}]);
    assert_eq!(object["follow_ups"], expected);
    let said: Vec<&Value> = object["answers"].as_array().unwrap().iter().map(|one| &one["answer"]).collect();
    assert_eq!(said, ["The review.", "In short."]);
}

#[tokio::test]
async fn a_follow_up_that_fails_leaves_the_answer_and_is_no_success() {
    let stage =
        Stage::with(Script::new().conversation("*", [says("The review."), refuses("Not this.")])).await;
    let seen = stage.run(&["review", "it", "all", "--follow-up", "More."]).await.exits(3);
    assert_eq!(seen.stdout, "The review.\n");
    assert!(
        seen.stderr.contains("Not this.") && seen.stderr.contains("partial (refused)"),
        "{}",
        seen.stderr
    );
}

#[tokio::test]
async fn an_unfinished_run_of_the_same_task_is_named_and_taken_up_on_request() {
    let stage = Stage::with(Script::new().conversation("*", [says("Later.")])).await;
    let task = ["review", "it", "all"];
    let hold = stage.sim().hold("review it all", 0, 1);
    let cut = stage.start(&task);
    patiently("the reply to be held", hold.entered()).await;
    cut.signal("KILL");
    assert_eq!(cut.end().await.code, None);
    hold.release();
    for args in [&["review", "something", "else"][..], &["review", "it", "all", "--fresh"]] {
        let seen = stage.run(args).await.exits(0);
        assert!(!seen.stderr.contains("unfinished"), "{args:?}: {}", seen.stderr);
    }
    let named = stage.run(&task).await.exits(0);
    let advice = "there is an unfinished session of this task here: `convoke resume s_";
    assert!(named.stderr.contains(advice), "{}", named.stderr);
    let taken = stage.run(&[&task[..], &["--continue", "--report", "r.json"]].concat()).await.exits(0);
    assert_eq!(taken.stdout, "Later.\n");
    assert!(taken.stderr.contains("resuming s_"), "{}", taken.stderr);
    let object: Value = serde_json::from_str(&read(&stage, "r.json")).unwrap();
    assert_eq!(object["task"], "review it all");
    let begun = stage.run(&[&task[..], &["--continue"]].concat()).await.exits(0);
    assert!(begun.stderr.contains("no unfinished session of this task here"), "{}", begun.stderr);
}
