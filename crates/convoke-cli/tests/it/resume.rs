//! `convoke resume`: after a kill, after a full disk, and when there is nothing to go on with.

use convoke_journal::Process;
use convoke_sim::{Script, calls, says};
use serde_json::json;

use crate::stage::{Stage, patiently, to_its_end};
use crate::support::{TestHome, Writer, ran};

fn count_once() -> Script {
    let count = calls("bash", json!({"command": "echo ran >> count.txt"}));
    Script::new().conversation("hold me", [count, says("Counted.")])
}

#[tokio::test]
async fn after_a_kill_in_the_middle_of_a_reply_only_that_reply_is_asked_for_again() {
    let stage = Stage::with(count_once()).await;
    let hold = stage.sim().hold("hold me", 1, 3);
    let run = stage.start(&["run", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("KILL");
    assert_eq!(run.end().await.code, None);
    hold.release();
    std::fs::write(stage.work().join("changed.txt"), "meanwhile").unwrap();
    let seen = stage.run(&["resume"]).await.exits(0);
    assert_eq!(seen.stdout, "Counted.\n");
    let banner = seen.stderr.lines().next().unwrap();
    assert!(banner.contains("model claude-opus-4-8 (effort xhigh)"), "{banner}");
    assert!(seen.stderr.contains("resuming s_"), "{}", seen.stderr);
    assert!(seen.stderr.contains("changed meanwhile: changed.txt"), "{}", seen.stderr);
    let positions: Vec<usize> = stage.sim().requests().iter().map(|request| request.position).collect();
    assert_eq!(positions, [0, 1, 1]);
    assert_eq!(std::fs::read_to_string(stage.work().join("count.txt")).unwrap(), "ran\n");
}

#[tokio::test]
async fn a_run_that_a_live_process_owns_is_left_to_it() {
    let stage = Stage::with(count_once()).await;
    let hold = stage.sim().hold("hold me", 0, 2);
    let run = stage.start(&["run", "--output", "jsonl", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    let alone = stage.run(&["resume"]).await.exits(2);
    let session = alone
        .stderr
        .split_whitespace()
        .find(|word| word.starts_with("s_"))
        .unwrap_or_else(|| panic!("{}", alone.stderr));
    assert!(alone.stderr.contains("running"), "{}", alone.stderr);
    let named = stage.run(&["resume", &session[2..10]]).await.exits(1);
    assert!(named.stderr.contains(&format!("`kill {}`", run.pid())), "{}", named.stderr);
    hold.release();
    run.end().await.exits(0);
    let done = stage.run(&["resume", session]).await.exits(0);
    assert!(done.stderr.contains("had ended (done)"), "{}", done.stderr);
    assert_eq!(done.stdout, "Counted.\n", "the recorded answer is said again");
    assert_eq!(stage.sim().requests().len(), 2);
}

#[tokio::test]
async fn nobody_is_told_to_kill_a_pid_of_another_machine() {
    let place = TestHome::new();
    let here = Process::current([7; 10]);
    let elsewhere = Process { boot: "another-boot".into(), ..here };
    let writer = Writer::open_as(elsewhere, &place.journal_file()).await;
    let held = writer.start(5, &place.path("work"), "at work").await;
    let session = convoke_kernel::SessionId::from_bits([5; 10]).to_string();
    for (args, code) in [(&["resume", session.as_str()][..], 1), (&["resume"], 2)] {
        let got = place.convoke(args);
        assert_eq!(got.code, code, "{}", got.err);
        assert!(got.err.contains("on another machine or in another container"), "{}", got.err);
        assert!(!got.err.contains("kill") && !got.err.contains("pid"), "{}", got.err);
    }
    held.release().await;
}

#[tokio::test]
async fn the_command_that_goes_on_names_a_journal_only_if_a_flag_did() {
    let place = TestHome::new();
    let file = place.path("other.db");
    let writer = Writer::open(&file).await;
    writer.start(5, &place.path("work"), "unfinished").await.release().await;
    let path = file.to_str().unwrap();
    let session = convoke_kernel::SessionId::from_bits([5; 10]).to_string();
    for args in [&["runs", "list"][..], &["runs", "show", &session]] {
        let by_flag = place.convoke(&[args, &["--journal", path]].concat());
        let named = format!("go on with `convoke resume {session} --journal {path}`");
        assert!(by_flag.err.contains(&named), "{}", by_flag.err);
        let unnamed = format!("go on with `convoke resume {session}`");
        let by_variable = ran(place.command(args).env("ORCH_JOURNAL", path));
        assert!(by_variable.err.contains(&unnamed), "{}", by_variable.err);
        place.write(&place.user_config(), &format!("journal = {path:?}\n"));
        let by_file = place.convoke(args);
        assert!(by_file.err.contains(&unnamed), "{}", by_file.err);
        std::fs::remove_file(place.user_config()).unwrap();
    }
}

#[tokio::test]
async fn with_nothing_to_resume_the_exit_code_is_two() {
    let stage = Stage::bare();
    let seen = stage.run(&["resume"]).await.exits(2);
    assert!(seen.stderr.contains("no session was ever started here"), "{}", seen.stderr);
    stage.run(&["resume", "s_nothing"]).await.exits(2);
    assert!(!stage.state().exists(), "looking leaves nothing behind");
}

#[tokio::test]
async fn a_resumed_run_keeps_its_model() {
    let stage = Stage::with(count_once()).await;
    let seen = stage.run(&["--model", "claude-sonnet-5", "resume"]).await.exits(2);
    assert!(seen.stderr.contains("--model"), "{}", seen.stderr);
}

#[tokio::test]
async fn a_run_of_a_server_does_not_go_on_without_one() {
    let stage = Stage::with(count_once()).await;
    let hold = stage.sim().hold("hold me", 0, 2);
    let run = stage.start(&["run", "hold me"]);
    patiently("the reply to be held", hold.entered()).await;
    run.signal("KILL");
    run.end().await;
    let mut without = stage.command(&["resume"]);
    without.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    let seen = to_its_end(without).await.exits(2);
    assert!(
        seen.stderr.contains("claude-opus-4-8") && seen.stderr.contains("ANTHROPIC_API_KEY"),
        "{}",
        seen.stderr
    );
}

#[tokio::test]
async fn an_offline_run_goes_on_offline_by_itself() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("main.py"), "print('hello')  # TODO: more\n").unwrap();
    let mut run = stage.start(&["--offline", "--output", "jsonl", "--quiet"]);
    patiently("the first event", run.first_line()).await;
    run.signal("KILL");
    run.end().await;
    std::fs::write(stage.work().join("other.py"), "print('meanwhile')\n").unwrap();
    let report = stage.run(&["resume", "--output", "json"]).await.exits(0).json();
    assert_eq!((&report["model"], &report["status"]), (&json!("offline"), &json!("done")));
    assert!(
        report["answer"].as_str().unwrap().contains("main.py:1"),
        "the task is still the review: {report}"
    );
}

#[tokio::test]
async fn a_reply_that_cannot_be_recorded_is_printed_kept_and_not_asked_for_again() {
    let long = "All work and no play. ".repeat(1_500);
    let step = |n: usize| {
        calls("bash", json!({"command": format!("echo {n} >> count.txt")}))
            .saying(&format!("Step {n}. {long}"))
    };
    // The journal's files may not grow beyond a limit, as on a full disk; what is small can still be written.
    // Which append meets the limit first follows from the sizes of all before it, and the one that is meant
    // is that of a reply.
    let mut met = None;
    for limit in [460, 475, 490, 505, 520] {
        let replies = (0..20).map(step).chain([says("Finished.")]);
        let stage = Stage::with(Script::new().conversation("hold me", replies)).await;
        let limited = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
        let seen =
            to_its_end(stage.shell(&limited, &["run", "--budget-usd", "none", "hold me"])).await.exits(1);
        assert!(seen.stderr.contains("cannot write to the journal"), "{}", seen.stderr);
        let spooled: Vec<_> =
            std::fs::read_dir(stage.state().join("spool")).into_iter().flatten().flatten().collect();
        if !spooled.is_empty() {
            met = Some((stage, seen, spooled));
            break;
        }
    }
    let (stage, seen, spooled) = met.expect("a limit that a reply meets first");
    assert_eq!(spooled.len(), 1, "{}", seen.stderr);
    assert!(seen.stderr.contains(&spooled[0].path().display().to_string()), "{}", seen.stderr);
    assert!(seen.stdout.starts_with("Step "), "{:.200}", seen.stdout);
    let asked = stage.sim().requests().len();
    // What came back is paid for and stands in the bill, though the journal could not take it.
    assert!(seen.stderr.contains(&format!("{asked} turns")), "{asked} asked: {}", seen.stderr);
    let resumed = stage.run(&["resume"]).await.exits(0);
    assert_eq!(resumed.stdout, "Finished.\n");
    let positions: Vec<usize> = stage.sim().requests().iter().map(|request| request.position).collect();
    assert_eq!(positions, (0..21).collect::<Vec<_>>(), "{asked} requests before the resume");
    let expected: String = (0..20).map(|n| format!("{n}\n")).collect();
    assert_eq!(std::fs::read_to_string(stage.work().join("count.txt")).unwrap(), expected);
}
