//! What a person reads at the end of a session, on a terminal and in a pipe: the answer, a short summary, and
//! where the rest is.

use convoke_sim::{Script, says};
use serde_json::{Value, json};

use crate::stage::{Stage, to_its_end};

/// A directory in which the offline model finds a dozen things.
fn faulty() -> Stage {
    let stage = Stage::bare();
    for part in 0..6 {
        let source =
            format!("pub fn load(path: &str) {{\n    // TODO: part {part}\n    read(path).unwrap();\n}}\n");
        std::fs::write(stage.work().join(format!("part{part}.rs")), source).unwrap();
    }
    stage
}

/// The summary behind an answer: its lines from the findings on.
fn summary(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.trim_end_matches('\r'))
        .skip_while(|line| !line.starts_with("findings: "))
        .collect()
}

#[tokio::test]
async fn on_a_terminal_the_answer_is_set_and_a_short_summary_follows() {
    let stage = faulty();
    let mut command = stage.shell("script -qec \"$0 run --offline\" /dev/null", &[]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let seen = to_its_end(command).await.exits(0);
    // What stays on the screen is what is written behind the last erasing.
    let stays = seen.stdout.rsplit("\u{1b}[J").next().unwrap().replace('\r', "");
    assert!(!stays.contains('\u{1b}') && !stays.contains("##"), "{stays}");
    assert!(stays.contains("\nConfirmed findings\n"), "{stays}");
    assert!(stays.lines().all(|line| line.chars().count() <= 80), "{stays}");
    // No word is broken: what was found is still there in one piece, line breaks or not.
    let joined = stays.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(joined.matches("`part3.rs:2: // TODO: part 3`").count(), 1, "{stays}");
    let summary = summary(&stays);
    assert!((6..=10).contains(&summary.len()), "{summary:#?}");
    let said = summary.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "medium part0.rs:3 (and 5 like it): ",
        "the whole report: convoke sessions show s_",
        "done · offline · ",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!stays.contains("evidence:"), "{stays}");
}

#[tokio::test]
async fn in_a_pipe_the_answer_is_as_it_was_written_and_stderr_is_a_handful_of_lines() {
    let stage = faulty();
    let seen = stage.run(&["run", "--offline"]).await.exits(0);
    assert!(
        seen.stdout.contains("\n## Confirmed findings\n") && !seen.stdout.contains("findings: "),
        "{}",
        seen.stdout
    );
    assert!(seen.stderr.lines().count() <= 10, "{}", seen.stderr);
    assert!(summary(&seen.stderr).len() <= 7, "{}", seen.stderr);
    // Everything is told to a person who asks for it, at the end or later.
    let whole = summary(&seen.stderr)
        .iter()
        .find_map(|line| line.strip_prefix("the whole report: convoke "))
        .unwrap();
    let shown = stage.run(&whole.split(' ').collect::<Vec<_>>()).await.exits(0);
    assert!(shown.stdout.starts_with("# Convoke report\n"), "{}", shown.stdout);
    assert_eq!(shown.stdout.matches("### medium, confirmed").count(), 6, "{}", shown.stdout);
    let verbose = stage.run(&["--verbose", "run", "--offline", "--fresh"]).await.exits(0);
    assert!(verbose.stderr.matches("evidence: part").count() >= 12, "{}", verbose.stderr);
}

#[tokio::test]
async fn what_is_said_later_is_answered_by_itself_and_data_has_the_newest_answer_and_all_of_them() {
    let stage =
        Stage::with(Script::new().conversation("*", [says("first"), says("second"), says("third")])).await;
    let run = stage.run(&["--output", "json", "run", "one"]).await.exits(0).json()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(stage.run(&["resume", &run, "--say", "two"]).await.exits(0).stdout, "second\n");
    assert_eq!(stage.run(&["resume", &run]).await.exits(0).stdout, "second\n", "said again");
    let object = stage.run(&["resume", &run, "--say", "three", "--output", "json"]).await.exits(0).json();
    assert_eq!((&object["answer"], &object["task"]), (&json!("third"), &json!("one")), "{object:#}");
    let said = |key: &str| {
        object["answers"].as_array().unwrap().iter().map(|one| one[key].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(said("text"), ["one", "two", "three"]);
    assert_eq!(said("answer"), ["first", "second", "third"]);
    assert_eq!(stage.sim().requests().len(), 3);
}

#[tokio::test]
async fn there_is_no_report_of_a_run_that_has_not_ended() {
    let stage = Stage::with(Script::new().conversation("*", [says("never")])).await;
    let hold = stage.sim().hold("hold me", 0, 0);
    let run = stage.start(&["run", "hold me"]);
    crate::stage::patiently("the request", hold.entered()).await;
    run.signal("KILL");
    run.end().await;
    let listed = stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    let id = listed["runs"][0]["run"].as_str().unwrap();
    let refused = stage.run(&["runs", "show", id, "--report"]).await.exits(2);
    assert!(refused.stderr.contains("has not ended") && refused.stdout.is_empty(), "{}", refused.stderr);
}
