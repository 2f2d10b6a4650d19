//! Rules about calls, tried by their limits through the real binary: other spellings of a path, links, the
//! citation check, and a rule that is newer than the session.

use std::os::unix::fs::symlink;

use convoke_sim::{Reply, Script, calls, says};
use serde_json::json;

use crate::escapes::{EDITOR, bash, doing, told, view};
use crate::repo::{read, write};
use crate::stage::{Stage, patiently};
use crate::team::{Team, requests, workflow};

/// Adds a rule to the user's configuration.
fn rule(stage: &Stage, members: &str) {
    let path = stage.home().join(".config/convoke/config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{before}\n[[rules]]\n{members}\n")).unwrap();
}

fn create(path: &str) -> Reply {
    calls(EDITOR, json!({"command": "create", "path": path, "file_text": "after\n"}))
}

#[tokio::test]
async fn a_rule_about_a_path_holds_for_every_spelling_of_it() {
    for ruled in [true, false] {
        let mut stage = Stage::bare();
        let below = |name: &str| stage.work().join(name).to_string_lossy().into_owned();
        let paths = [
            "migrations/one".to_owned(),
            below("migrations/two"),
            "./migrations/three".to_owned(),
            "a/../migrations/four".to_owned(),
            "link/five".to_owned(),
            below("a/up/six"),
            "migrations//seven".to_owned(),
            "link".to_owned() + "/new/eight",
        ];
        stage.turn_to(doing(paths.iter().map(|path| create(path)).collect())).await;
        let dir = stage.work();
        for name in ["one", "two", "three", "four", "five", "six", "seven"] {
            write(&dir, &format!("migrations/{name}"), "before\n");
        }
        write(&dir, "a/x", "");
        symlink("migrations", dir.join("link")).unwrap();
        symlink("../migrations", dir.join("a/up")).unwrap();
        if ruled {
            rule(&stage, "tool = \"edit\"\npath = \"migrations/**\"\ndecision = \"deny\"");
        }
        stage.run(&["change", "them"]).await.exits(0);
        let expected = if ruled { "before\n" } else { "after\n" };
        for name in ["one", "two", "three", "four", "five", "six", "seven"] {
            assert_eq!(read(&dir, &format!("migrations/{name}")), expected, "{name}: {}", told(&stage));
        }
        assert_eq!(dir.join("migrations/new").exists(), !ruled);
        assert_eq!(
            told(&stage).matches("a rule of the person's forbids it").count(),
            if ruled { paths.len() } else { 0 }
        );
    }
}

#[tokio::test]
async fn a_rule_that_allows_a_directory_allows_nothing_beside_it() {
    let paths = ["docs/ok.txt", "docs/../src/x", "docs/out/x", "./docs/deep/../../src/x"];
    let stage = Stage::with(doing(paths.iter().map(|path| create(path)).collect())).await;
    let dir = stage.work();
    write(&dir, "src/x", "before\n");
    write(&dir, "docs/deep/y", "");
    symlink("../src", dir.join("docs/out")).unwrap();
    rule(&stage, "tool = \"edit\"\npath = \"docs/**\"\ndecision = \"allow\"");
    stage.run(&["--ask", "always", "write", "them"]).await.exits(0);
    assert_eq!(read(&dir, "docs/ok.txt"), "after\n", "{}", told(&stage));
    assert_eq!(read(&dir, "src/x"), "before\n", "{}", told(&stage));
    // Without `--ask always` all of them are allowed.
    stage.run(&["--fresh", "write", "them", "now"]).await.exits(0);
    assert_eq!(read(&dir, "src/x"), "after\n", "{}", told(&stage));
}

#[tokio::test]
async fn a_rule_about_reading_a_place_holds_for_what_looks_into_it_by_name() {
    for ruled in [true, false] {
        let mut stage = Stage::bare();
        let file = stage.work().join("private/key");
        let script = vec![
            view(&file),
            calls(EDITOR, json!({"command": "view", "path": "x/../private/key"})),
            calls("grep", json!({"pattern": "oken", "path": "private/key"})),
            calls("grep", json!({"pattern": "oken", "path": "x/../private/key"})),
        ];
        stage.turn_to(doing(script)).await;
        write(&stage.work(), "private/key", "token tS3kret\n");
        write(&stage.work(), "x/y", "");
        if ruled {
            rule(&stage, "path = \"private/**\"\ndecision = \"deny\"");
        }
        stage.run(&["read", "it"]).await.exits(0);
        assert_eq!(told(&stage).contains("tS3kret"), !ruled, "{}", told(&stage));
    }
}

#[tokio::test]
async fn a_command_that_a_rule_refuses_is_not_run_to_check_a_citation() {
    for ruled in [true, false] {
        let team = Team::new([workflow(&["high it is so"]), says("The synthesis.")]).workers(|claim| {
            let citation = json!({"command": "cat answer.txt", "quote": "forty-three"});
            let finding =
                json!({"claim": claim, "evidence": "seen", "severity": "high", "citations": [citation]});
            let report = calls("report_findings", json!({"summary": "looked", "findings": [finding]}));
            vec![bash("ls"), report]
        });
        let stage = team.stage().await;
        write(&stage.work(), "answer.txt", "forty-two\n");
        if ruled {
            rule(&stage, "command = \"cat answer.txt\"\ndecision = \"deny\"");
        }
        stage.run(&["look", "at", "it"]).await;
        let lead = requests(&stage, "lead").pop().unwrap();
        let read = lead.body["messages"].as_array().unwrap().last().unwrap().to_string();
        // Only a check that ran it knows that it prints something else.
        assert!(read.contains("high it is so"), "{read}");
        assert_eq!(read.contains("does not hold the quote"), !ruled, "{read}");
    }
}

/// A session that is killed before its second command.
async fn cut_off() -> Stage {
    let replies = [bash("echo first"), bash("touch made.txt"), says("Done.")];
    let stage = Stage::with(Script::new().conversation("*", replies)).await;
    let hold = stage.sim().hold("make a file", 1, 1);
    let run = stage.start(&["run", "make a file"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("KILL");
    assert_eq!(run.end().await.code, None);
    hold.release();
    stage
}

#[tokio::test]
async fn a_rule_that_forbids_holds_from_the_resume_on_and_one_that_asks_is_named_as_not_in_force() {
    let check = async |members: &str, made: bool, warned: bool| {
        let stage = cut_off().await;
        if !members.is_empty() {
            rule(&stage, members);
        }
        let seen = stage.run(&["resume"]).await.exits(0);
        assert_eq!(stage.work().join("made.txt").exists(), made, "{members}: {}", seen.stderr);
        let warnings = seen.stderr.matches("rules that ask").count();
        assert_eq!(warnings, usize::from(warned), "{members}: {}", seen.stderr);
        assert_eq!(told(&stage).contains("a rule of the person's forbids it"), !made, "{}", told(&stage));
    };
    check("", true, false).await;
    check("command = \"touch\"\ndecision = \"deny\"", false, false).await;
    check("command = \"touch\"\ndecision = \"ask\"", true, true).await;
    check("command = \"touch\"\ndecision = \"allow\"", true, false).await;
}
