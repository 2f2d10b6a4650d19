//! `convoke run`: what goes to stdout, and what the exit code says.

use convoke_sim::{Script, calls, cut_at_max_tokens, refuses, says};
use serde_json::json;

use crate::stage::{KEY, Stage, to_its_end};

#[tokio::test]
async fn a_plain_answer_is_all_that_stands_on_stdout() {
    let stage = Stage::with(Script::new().conversation("*", [says("Forty-two.\nReally.")])).await;
    let seen = stage.run(&["what", "is", "it?"]).await.exits(0);
    assert_eq!(seen.stdout, "Forty-two.\nReally.\n");
    let first = seen.stderr.lines().next().unwrap();
    for part in [
        "claude-opus-4-8",
        "effort xhigh",
        "journal.db",
        "sandbox workspace",
        stage.work().file_name().unwrap().to_str().unwrap(),
    ] {
        assert!(first.contains(part), "{part} is missing in: {first}");
    }
    let last = seen.stderr.lines().last().unwrap();
    assert!(last.starts_with("done · claude-opus-4-8 · 1 turn · 0 commands · "), "{last}");
    assert!(last.contains("$0.0") && last.contains(" · s_"), "{last}");
}

#[tokio::test]
async fn quiet_leaves_the_answer_alone() {
    let stage = Stage::with(Script::new().conversation("*", [says("Yes.")])).await;
    let seen = stage.run(&["run", "--quiet", "really?"]).await.exits(0);
    assert_eq!((seen.stdout.as_str(), seen.stderr.as_str()), ("Yes.\n", ""));
}

#[tokio::test]
async fn commands_run_in_the_directory_and_their_output_reaches_the_model() {
    let stage = Stage::with(Script::new().conversation(
        "*",
        [
            calls("bash", json!({"command": "echo made > made.txt; ls"})).saying("Let me look."),
            says("Nothing.").when_last_contains("made.txt", says("There is made.txt.")),
        ],
    ))
    .await;
    let seen = stage.run(&["look", "around"]).await.exits(0);
    assert_eq!(seen.stdout, "There is made.txt.\n");
    assert_eq!(std::fs::read_to_string(stage.work().join("made.txt")).unwrap(), "made\n");
    assert!(seen.stderr.contains("done · claude-opus-4-8 · 2 turns · 1 command · "), "{}", seen.stderr);
}

#[tokio::test]
async fn a_task_comes_from_stdin_or_from_a_file() {
    let script = Script::new().conversation("*", [says("?").when_last_contains("needle", says("Found it."))]);
    let stage = Stage::with(script).await;
    std::fs::write(stage.work().join("task.md"), "a needle in a file\n").unwrap();
    assert_eq!(stage.run(&["@task.md"]).await.exits(0).stdout, "Found it.\n");
    let mut piped = stage.command(&["run", "-"]);
    piped.stdin(std::fs::File::open(stage.work().join("task.md")).unwrap());
    assert_eq!(to_its_end(piped).await.exits(0).stdout, "Found it.\n");
    let missing = stage.run(&["run", "@nowhere.md"]).await.exits(2);
    assert!(missing.stderr.contains("nowhere.md"), "{}", missing.stderr);
    assert_eq!(stage.sim().requests().len(), 2);
}

#[tokio::test]
async fn a_refusal_is_a_failure() {
    let stage = Stage::with(Script::new().conversation("*", [refuses("Not this.")])).await;
    let seen = stage.run(&["do", "it"]).await.exits(1);
    assert_eq!(seen.stdout, "");
    assert!(seen.stderr.contains("Not this.") && seen.stderr.contains("failed (refused)"), "{}", seen.stderr);
}

#[tokio::test]
async fn at_the_turn_limit_what_the_agent_hands_back_is_a_part() {
    let look = || calls("bash", json!({"command": "true"}));
    let stage = Stage::with(Script::new().conversation("*", [look(), look(), says("Half of it.")])).await;
    let seen = stage.run(&["--max-turns", "2", "all", "of", "it"]).await.exits(3);
    assert_eq!(seen.stdout, "Half of it.\n");
    assert!(seen.stderr.contains("partial (turn_limit)"), "{}", seen.stderr);
}

#[tokio::test]
async fn a_reply_that_stays_cut_is_printed_with_a_warning() {
    let stage = Stage::with(Script::new().conversation("*", [cut_at_max_tokens("The first ha")])).await;
    let seen = stage.run(&["write", "much"]).await.exits(3);
    assert_eq!(seen.stdout, "The first ha\n");
    assert!(seen.stderr.contains("partial (truncated)"), "{}", seen.stderr);
}

#[tokio::test]
async fn without_a_key_a_pipe_gets_no_review() {
    let stage = Stage::bare();
    for args in [&["look", "around"][..], &["--output", "json"], &["run", "--output", "jsonl", "x"]] {
        let seen = stage.run(args).await.exits(2);
        assert_eq!(seen.stdout, "");
        assert!(
            seen.stderr.contains("--offline") && seen.stderr.contains("ANTHROPIC_API_KEY"),
            "{}",
            seen.stderr
        );
    }
    assert!(!stage.state().exists(), "nothing was started");
}

#[tokio::test]
async fn without_a_key_a_terminal_gets_the_offline_model_and_is_told_so() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("main.py"), "print('hello')  # TODO: more\n").unwrap();
    let mut command = stage.shell("script -qec \"$0 run --max-turns 30\" /dev/null", &[]);
    command.env("TERM", "xterm-256color");
    let seen = to_its_end(command).await.exits(0);
    assert!(seen.stdout.contains("offline model answers"), "{}", seen.stdout);
    assert!(seen.stdout.contains("main.py"), "{}", seen.stdout);
}

#[tokio::test]
async fn the_offline_model_looks_around_and_is_named_in_the_data() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("main.py"), "print('hello')  # TODO: more\n").unwrap();
    let seen = stage.run(&["--offline", "--output", "json"]).await.exits(0);
    let report = seen.json();
    assert_eq!(report["model"], "offline");
    assert_eq!(report["status"], "done");
    assert!(report["answer"].as_str().unwrap().contains("main.py:1"), "{report:#}");
    assert!(report["commands"].as_u64().unwrap() > 0);
    assert!(!seen.stderr.contains("UNCONFINED"), "{}", seen.stderr);
}

#[tokio::test]
async fn the_offline_model_asked_to_edit_says_that_it_cannot() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("main.py"), "print('hello')\n").unwrap();
    let seen = stage.run(&["--offline", "rename the function main in main.py to start"]).await.exits(1);
    assert!(seen.stderr.contains("offline"), "{}", seen.stderr);
    assert_eq!(std::fs::read_to_string(stage.work().join("main.py")).unwrap(), "print('hello')\n");
}

#[tokio::test]
async fn wrong_usage_is_exit_code_two() {
    let stage = Stage::bare();
    stage.run(&["--no-such-flag"]).await.exits(2);
    stage.run(&["run", "--output", "yaml", "x"]).await.exits(2);
    let word = stage.run(&["reviwe"]).await.exits(2);
    assert!(word.stderr.contains("convoke run reviwe"), "{}", word.stderr);
}

#[tokio::test]
async fn a_key_is_seen_by_no_command_and_written_nowhere() {
    let show = calls("bash", json!({"command": "env | tee env.txt; env | base64 -w0 | wc -c; seq 1 20000"}));
    let stage = Stage::with(Script::new().conversation("*", [show, says("Seen.")])).await;
    let seen = stage.run(&["--output", "jsonl", "show", "the", "environment"]).await.exits(0);
    let environment = std::fs::read_to_string(stage.work().join("env.txt")).unwrap();
    assert!(environment.contains("HOME="), "{environment}");
    assert!(!environment.contains("ANTHROPIC"), "{environment}");
    assert!(!seen.stdout.contains(KEY) && !seen.stderr.contains(KEY));
    let mut files = Vec::new();
    collect(&stage.home(), &mut files);
    assert!(files.iter().any(|file| file.ends_with("journal.db")), "{files:?}");
    assert!(files.iter().any(|file| file.to_string_lossy().contains("outputs/")), "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert!(
            !bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()),
            "{} holds the key",
            file.display()
        );
    }
}

fn collect(dir: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), files)
        } else {
            files.push(entry.path())
        }
    }
}
