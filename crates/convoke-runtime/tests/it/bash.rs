//! The `bash` tool as the model sees it.

use convoke_sim::{Script, calls, says};
use serde_json::json;

use crate::support::Rig;

/// Runs commands one turn each and gives the results' texts.
async fn results(rig: &Rig, count: usize) -> Vec<(String, bool)> {
    rig.ask("run them").await;
    let last = rig.sim.requests().last().unwrap().body.clone();
    let messages = last["messages"].as_array().unwrap();
    let texts: Vec<(String, bool)> = messages
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap())
        .filter(|block| block["type"] == "tool_result")
        .map(|block| (block["content"].as_str().unwrap().to_owned(), block["is_error"] == true))
        .collect();
    assert_eq!(texts.len(), count);
    texts
}

fn script(commands: &[&str]) -> Script {
    let replies = commands.iter().map(|command| match *command {
        "restart" => calls("bash", json!({"restart": true})),
        command => calls("bash", json!({"command": command})),
    });
    Script::new().conversation("*", replies.chain([says("done")]))
}

async fn check(commands: &[&str], expected: &[(&str, bool)]) {
    let rig = Rig::new(script(commands)).await;
    let results = results(&rig, commands.len()).await;
    let results: Vec<(&str, bool)> = results.iter().map(|(text, error)| (text.as_str(), *error)).collect();
    assert_eq!(results, expected);
}

#[tokio::test]
async fn d4_1_state_stays_from_one_command_to_the_next() {
    check(
        &["mkdir -p sub; cd sub; export A=1; b=2; f() { echo f$1; }", "basename \"$PWD\"; echo $A $b; f 3"],
        &[("(no output)", false), ("sub\n1 2\nf3", false)],
    )
    .await;
}

#[tokio::test]
async fn d4_2_restart_really_restarts() {
    check(
        &[
            "cd /; export A=1; sleep 1000 & echo started",
            "restart",
            "echo \"A=$A\"; jobs; [ \"$PWD\" != / ] && echo moved",
        ],
        &[("started", false), ("Shell restarted.", false), ("A=\nmoved", false)],
    )
    .await;
}

#[tokio::test]
async fn d4_6_output_is_interleaved_and_nothing_is_said_as_no_output() {
    check(
        &["echo out; echo err >&2; echo out2", "true"],
        &[("out\nerr\nout2", false), ("(no output)", false)],
    )
    .await;
}

#[tokio::test]
async fn d4_8_a_bad_exit_is_flagged_and_keeps_its_code() {
    let rig = Rig::new(script(&["echo oops; exit 3", "echo alive", "false"])).await;
    let results = results(&rig, 3).await;
    let here = rig.work.path().display();
    let note = format!("the next command gets a new shell in {here} with the exported variables last known");
    assert_eq!(
        results[0],
        (format!("(exit code 3)\noops\n(the shell ended with exit code 3; {note})"), true)
    );
    assert_eq!(results[1], ("alive".to_owned(), false));
    assert_eq!(results[2], ("(exit code 1)\n(no output)".to_owned(), true));
}

#[tokio::test]
async fn d4_5_a_deadline_keeps_the_output_and_kills_the_tree() {
    let mut rig = Rig::new(script(&[
        "echo begun; (setsid sleep 543 &); sleep 543; echo never",
        "pgrep -fc 'sleep 543' || true",
    ]))
    .await;
    rig.limits.bash_timeout_ms = 1_500;
    let results = results(&rig, 2).await;
    assert!(results[0].0.starts_with("begun\n"), "{}", results[0].0);
    assert!(results[0].0.contains("\n(command timed out after 1.5s"), "{}", results[0].0);
    assert!(results[0].0.contains("in the background") && results[0].1);
    assert_eq!(results[1].0.lines().next().unwrap(), "0", "{}", results[1].0);
}

#[tokio::test]
async fn d1_2_d4_7_long_output_keeps_head_and_tail_and_names_the_file_with_all_of_it() {
    let mut rig = Rig::new(script(&["seq 1 20000", "wc -l < \"$(ls -d $OUTPUTS/*/* | head -n 1)\""])).await;
    rig.env.insert("OUTPUTS".to_owned(), rig.scratch.path().join("outputs").to_string_lossy().into_owned());
    let results = results(&rig, 2).await;
    let text = &results[0].0;
    assert!(text.starts_with("1\n2\n") && text.ends_with("19999\n20000"), "{text}");
    assert!(text.chars().count() <= 8_000, "{}", text.chars().count());
    assert!(text.contains("108894 bytes"), "the size is told: {text}");
    assert_eq!(results[1].0.trim(), "20000");
}

#[tokio::test]
async fn commands_see_an_allow_list_and_no_secret() {
    let rig = Rig::new(script(&["env | cut -d= -f1 | sort | tr '\\n' ' '"])).await;
    let names = results(&rig, 1).await.remove(0).0;
    for secret in ["ANTHROPIC", "CARGO", "KEY", "TOKEN", "HOME"] {
        assert!(!names.contains(secret), "{names}");
    }
    assert!(names.contains("PATH"));
}

#[tokio::test]
async fn nothing_a_run_started_outlives_it() {
    let rig =
        Rig::new(script(&["(setsid sleep 987 </dev/null >/dev/null 2>&1 & echo $! > pid); cat pid"])).await;
    results(&rig, 1).await;
    let alive = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let cmdline = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        cmdline.starts_with(b"sleep\0987\0")
    });
    assert!(!alive, "the background job is still there");
    assert!(rig.work.path().join("pid").exists());
}
