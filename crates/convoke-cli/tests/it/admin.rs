//! Commands that look: help, runs, cost, doctor, completions; and how wrong usage ends.

use serde_json::Value;

use crate::support::{TestHome, Writer, ran};

const ANSWER: &str = "Two files.\nThe second is empty.";

/// Three runs: one of them answered, one failed, one open; and one of another directory.
async fn seeded() -> (TestHome, Writer) {
    let place = TestHome::new();
    let writer = Writer::open(&place.journal_file()).await;
    let work = place.path("work");
    let mut done = writer.start(1, &work, "count the files\nand say which").await;
    done.command(1, "ls | wc -l", "2", 0).await;
    done.answer(2, ANSWER).await;
    done.release().await;
    let mut failed = writer.start(2, &work, "explain \u{1b}[31mred\u{1b}[0m").await;
    failed.fail(1, "the API answered 401").await;
    failed.release().await;
    let mut open = writer.start(3, &work, "go on for ever").await;
    open.command(1, "false", "(exit code 1)\n(no output)", 1).await;
    open.release().await;
    let mut other = writer.start(4, &place.path("elsewhere"), "another place").await;
    other.answer(1, "yes").await;
    other.release().await;
    (place, writer)
}

fn id(number: u8) -> String {
    convoke_kernel::SessionId::from_bits([number; 10]).to_string()
}

fn agent_id(number: u8) -> String {
    convoke_kernel::AgentId::from_bits([number; 10]).to_string()
}

#[test]
fn wrong_flags_end_with_two() {
    let place = TestHome::new();
    let check = |args: &[&str], says: &str| {
        let got = place.convoke(args);
        assert_eq!(got.code, 2, "{args:?}: {}", got.err);
        assert_eq!(got.out, "", "{args:?}");
        assert!(got.err.contains(says), "{args:?}: {}", got.err);
    };
    check(&["--no-such-flag"], "unexpected argument");
    check(&["run", "--max-turns", "0", "x"], "1..=100000");
    check(&["run", "--bash-timeout", "soon", "x"], "such as 90s");
    check(&["--output", "xml", "config", "show"], "possible values");
    check(&["--offline", "--model", "m", "run", "x"], "cannot be used with");
    check(&["--offline", "run", "--model", "m", "x"], "--offline and --model cannot be used together");
    check(&["--model", "m", "runs", "list"], "--model has no meaning for this command");
    check(&["sessions"], "Usage");
    check(&["runs"], "Usage");
    check(&["runs", "prune"], "say which sessions are to go");
    check(&["config", "show", "--output", "jsonl"], "has no jsonl form");
    check(&["some", "words", "--max-turns"], "value is required");
    check(&["run", "--budget-usd", "ten", "x"], "write a number such as 5 or 2.50, or none to lift the cap");
    check(&["run", "--budget-usd", "0.0000000001", "x"], "finer than a nano-dollar");
    check(&["run", "--budget-agents", "1.5", "x"], "finer than one agent");
    check(&["run", "--budget-tokens", "0", "x"], "more than zero");
    check(&["run", "--budget-minutes", "-1", "x"], "unexpected argument");
    check(&["resume", "--budget-minutes=soon"], "write a number such as 30 or 1.5");
    check(&["run", "--mode", "maybe", "x"], "invalid value 'maybe'");
    check(&["run", "--verify", "0", "x"], "write 1 to 9, or off");
    check(&["run", "--verify", "10", "x"], "write 1 to 9, or off");
    check(&["run", "--max-concurrent", "1001", "x"], "1..=1000");
    check(&["run", "--max-subtasks", "0", "x"], "1..=10000");
    check(&["run", "--worker-turns", "0", "x"], "1..=100000");
    check(&["run", "--report", "r.html", "x"], "end it in .md, .json or .sarif");
    check(&["run", "--report", "no/such/r.md", "x"], "no/such/r.md cannot be written");
    check(&["run", "--fail-on", "info", "x"], "write high, medium or low");
    check(&["run", "--continue", "--fresh", "x"], "cannot be used with");
    check(&["--continue", "run", "--fresh", "x"], "--continue and --fresh cannot be used together");
    check(&["run", "--follow-up-mode", "off", "x"], "no meaning without --follow-up");
    check(&["run", "--follow-up", " ", "x"], "a follow-up is empty");
    check(&["--mode", "off", "resume"], "--mode has no meaning for this command");
    check(&["--report", "r.md", "doctor"], "--report has no meaning for this command");
    check(&["run", "--isolation", "copy", "x"], "invalid value 'copy'");
    check(&["--isolation", "worktree", "runs", "list"], "--isolation has no meaning for this command");
    check(&["runs", "diff", "x", "--stat", "--name-only"], "cannot be used with");
    check(&["--output", "jsonl", "runs", "undo", "x"], "has no jsonl form");
    check(&["runs", "undo", "x"], "there is no session 'x'");
    check(&["worktrees", "apply", "x", "y"], "there is no session 'x'");
    check(&["--budget-usd", "5", "runs", "list"], "--budget-usd has no meaning for this command");
    check(
        &["run", "--offline", "--worker-model", "m", "x"],
        "--worker-model has no meaning with the offline model",
    );
    check(&["run", "--worker-model", "offline", "x"], "the offline model cannot work for claude-opus-4-8");
    check(&["run", "--worker-effort", "huge", "x"], "worker.effort (flag --worker-effort)");
}

#[test]
fn a_task_of_one_word_is_refused_with_the_nearest_command() {
    let check = |word: &str, near: &str| {
        let got = TestHome::new().convoke(&[word]);
        assert_eq!(got.code, 2);
        let expected = format!(
            "convoke: '{word}' is no command of convoke\n  the nearest command is `convoke {near}`\n  if it \
             is a task, write `convoke run {word}`\n"
        );
        assert_eq!(got.err, expected);
    };
    check("rusn", "sessions");
    check("reusme", "resume");
    check("docter", "doctor");
    check("confg", "config");
}

#[test]
fn help_fits_the_terminal_and_names_every_exit_code() {
    let place = TestHome::new();
    let pages: &[&[&str]] = &[
        &["--help"],
        &["session", "--help"],
        &["run", "--help"],
        &["resume", "--help"],
        &["runs", "fork", "--help"],
        &["runs", "prune", "--help"],
        &["runs", "show", "--help"],
        &["runs", "diff", "--help"],
        &["runs", "undo", "--help"],
        &["worktrees", "--help"],
        &["worktrees", "apply", "--help"],
        &["workflow", "--help"],
        &["workflow", "check", "--help"],
        &["workflow", "save", "--help"],
        &["workflow", "run", "--help"],
        &["workflow", "plan", "--help"],
        &["team", "--help"],
        &["team", "plan", "--help"],
        &["team", "host", "--help"],
        &["tasks", "--help"],
        &["tasks", "add", "--help"],
        &["tasks", "claim", "--help"],
        &["mail", "--help"],
        &["mail", "send", "--help"],
        &["export", "--help"],
        &["sim", "--help"],
        &["doctor", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
    ];
    for width in [60, 120] {
        for args in pages {
            let got = ran(place.command(args).env("COLUMNS", width.to_string()));
            assert_eq!(got.code, 0);
            let longest = got.out.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= width, "{args:?} at {width} columns has a line of {longest}:\n{}", got.out);
        }
    }
    for width in [60, 120] {
        let page = ran(place.command(&["--help"]).env("COLUMNS", width.to_string())).out;
        insta::assert_snapshot!(format!("help_at_{width}_columns"), page);
    }
    let help = place.convoke(&["--help"]).out;
    for word in [
        "0 done",
        "1 failed",
        "2 wrong usage",
        "3 finished in part",
        "4 stopped",
        "5 waits",
        "6 a finding",
        "130",
    ] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

#[test]
fn looking_leaves_nothing_behind() {
    let place = TestHome::new();
    for args in
        [&["runs", "list"][..], &["cost"], &["config", "show"], &["doctor"], &["runs", "prune", "--finished"]]
    {
        let got = place.convoke(args);
        assert_eq!(got.code, 0, "{args:?}: {}", got.err);
    }
    let left: Vec<_> = std::fs::read_dir(place.path("home")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn runs_list_shows_this_directory_and_counts_the_others() {
    let (place, _writer) = seeded().await;
    let got = place.convoke(&["runs", "list"]);
    assert_eq!(got.code, 0, "{}", got.err);
    let lines: Vec<Vec<&str>> = got.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 4, "{}", got.out);
    let short = |number| id(number)[..10].to_owned();
    let row = |number: u8| lines.iter().find(|line| line[0] == short(number)).unwrap().join(" ");
    assert!(
        row(1).contains("2026-11-15 21:04 done 0 2 3.4k $0.02 claude-opus-4-8 count the files and say which"),
        "{}",
        got.out
    );
    assert!(row(2).contains("failed api 0 0 0 $0.00 claude-opus-4-8 explain red"), "{}", got.out);
    assert!(row(3).contains("open 0 1 "), "{}", got.out);
    assert!(got.err.contains(&format!("go on with `convoke resume {}`", id(3))), "{}", got.err);
    assert!(got.err.contains("1 session of other directories is not shown"), "{}", got.err);
    let all = place.convoke(&["runs", "list", "--all"]);
    assert_eq!(all.out.lines().count(), 5);
    let there = place.convoke(&["runs", "list", "--dir", "../elsewhere"]);
    assert!(there.out.contains(&short(4)) && there.out.lines().count() == 2, "{}", there.out);
}

#[tokio::test]
async fn runs_list_fits_any_width_and_obeys_nothing_in_a_task() {
    let (place, _writer) = seeded().await;
    for width in [30, 60, 90] {
        let got = ran(place.command(&["runs", "list"]).env("COLUMNS", width.to_string()));
        assert!(!got.out.contains('\u{1b}'));
        let longest = got.out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} > {width}:\n{}", got.out);
    }
}

#[tokio::test]
async fn runs_list_as_json_carries_the_exact_figures() {
    let (place, _writer) = seeded().await;
    let got = place.convoke(&["runs", "list", "--output", "json"]);
    let shown: Value = serde_json::from_str(&got.out).unwrap();
    let run = shown["runs"].as_array().unwrap().iter().find(|run| run["run"] == id(1)).unwrap().clone();
    assert_eq!(run["status"], "done");
    assert_eq!(run["cost_nano"], 20_500_000);
    assert_eq!(run["usage"]["input_tokens"], 2_000);
    assert_eq!(run["agents"][0], agent_id(1));
    let lines = place.convoke(&["runs", "list", "--output", "jsonl", "--all"]).out;
    let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(objects.len() == 4 && objects.iter().all(|run| run["run"].is_string()), "{lines}");
}

#[tokio::test]
async fn a_run_that_a_process_drives_is_running_and_is_not_pruned() {
    let (place, writer) = seeded().await;
    let held = writer.start(5, &place.path("work"), "at work").await;
    let list = place.convoke(&["runs", "list"]);
    assert!(
        list.out.lines().any(|line| line.starts_with(&id(5)[..10]) && line.contains("running")),
        "{}",
        list.out
    );
    let got = place.convoke(&["runs", "prune", &id(1), &id(5), "--yes"]);
    assert_eq!(got.code, 1);
    assert!(
        got.err.contains("is running (process") && got.err.contains("nothing was removed"),
        "{}",
        got.err
    );
    assert_eq!(place.convoke(&["runs", "show", &id(1)]).code, 0);
    held.release().await;
}

#[tokio::test]
async fn a_run_that_was_never_driven_is_listed_as_open() {
    let place = TestHome::new();
    let writer = Writer::open(&place.journal_file()).await;
    writer.submit(7, &place.path("work"), "written down").await;
    let got = place.convoke(&["runs", "list"]);
    assert!(got.out.contains("open") && got.out.contains("written down"), "{}{}", got.out, got.err);
    assert_eq!(place.convoke(&["runs", "show", &id(7)]).code, 0);
}

#[tokio::test]
async fn an_id_is_any_unique_prefix_with_or_without_its_kind() {
    let place = TestHome::new();
    let writer = Writer::open(&place.journal_file()).await;
    let work = place.path("work");
    // These two differ in their last characters only.
    for number in [0b0000_0001, 0b0000_0000] {
        let mut run = writer.start(number, &work, "x").await;
        run.answer(1, "y").await;
        run.release().await;
    }
    let one = id(1);
    let other = id(0);
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    for given in [one.as_str(), &one[..=same], &one[2..=same], &agent_id(1)] {
        let got = place.convoke(&["runs", "show", given]);
        assert_eq!(got.code, 0, "{given}: {}", got.err);
        assert!(got.out.contains(&one), "{given}");
    }
    let got = place.convoke(&["runs", "show", &one[..same]]);
    assert_eq!(got.code, 2);
    let message = format!("convoke: '{}' fits 2 sessions: ", &one[..same]);
    assert!(
        got.err.starts_with(&message) && got.err.contains(&one) && got.err.contains(&other),
        "{}",
        got.err
    );
    assert!(got.err.ends_with("\n  write more of the id\n"), "{}", got.err);
    let got = place.convoke(&["runs", "show", "zz"]);
    assert_eq!(got.code, 2);
    let expected = "convoke: there is no session 'zz' in ROOT/home/.local/state/convoke/journal.db\n  \
        `convoke sessions list --all` shows every session\n";
    assert_eq!(place.normal(&got.err), expected);
}

#[tokio::test]
async fn runs_show_tells_everything_in_order() {
    let (place, _writer) = seeded().await;
    let got = place.convoke(&["runs", "show", &id(1)]);
    assert_eq!(got.code, 0, "{}", got.err);
    let mut rest = got.out.as_str();
    let parts = [
        "done",
        "agent a_",
        "system\n",
        "prompt 1\n    count the files\n    and say which\n",
        "reply 1 · 1.0 s · 1.5k in (500 from cache), 200 out · $0.01 · tool_use",
        "    $ ls | wc -l\n",
        "exit code 0 after 1.0 s\n    2\n",
        "reply 2 · 1.0 s",
        "    Two files.\n    The second is empty.\n",
        "answered",
        "done · 2 turns · 1 command · 3.4k tokens · $0.02",
    ];
    for part in parts {
        let found = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} is missing after the ones before in\n{}", got.out));
        rest = &rest[found + part.len()..];
    }
    let failed = place.convoke(&["runs", "show", &id(2)]).out;
    assert!(failed.contains("attempt 1 failed (api)") && failed.contains("request id req_1"), "{failed}");
    assert!(!failed.contains('\u{1b}'));
}

#[tokio::test]
async fn following_shows_what_comes_until_the_run_ends() {
    let (place, writer) = seeded().await;
    let mut run = writer.start(6, &place.path("work"), "be watched").await;
    let mut child = place.command(&["runs", "show", &id(6), "--follow", "--output", "jsonl"]);
    let mut child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(out));
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || lines.for_each(|line| sender.send(line.unwrap()).unwrap_or_default()));
    let deadline = std::time::Duration::from_secs(60);
    let first = tokio::time::timeout(deadline, seen.recv()).await.unwrap().unwrap();
    assert!(first.contains("\"seq\":1,") && first.contains("agent_started"), "{first}");
    run.answer(1, "seen").await;
    run.release().await;
    let mut last = first;
    while let Some(line) = tokio::time::timeout(deadline, seen.recv()).await.unwrap() {
        last = line;
    }
    assert!(last.contains("exchange_closed"), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_follower_leaves_when_nobody_reads_any_more() {
    let (place, writer) = seeded().await;
    let mut run = writer.start(6, &place.path("work"), "be watched").await;
    let mut child = place.command(&["runs", "show", &id(6), "--follow"]);
    let mut child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut first).unwrap();
    drop(out);
    run.command(1, "ls", "a", 0).await;
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap().code());
    let code = tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.unwrap().unwrap();
    assert_eq!(code, Some(0), "after {first:?}, while the run goes on");
    run.release().await;
}

#[tokio::test]
async fn an_export_holds_every_event_in_its_envelope() {
    let (place, writer) = seeded().await;
    let got = place.convoke(&["runs", "export", &id(1)]);
    assert_eq!(got.code, 0, "{}", got.err);
    let stream = agent_id(1).parse().unwrap();
    let records = writer.journal.load(&stream, 0).await.unwrap();
    assert_eq!(got.out.lines().count(), records.len());
    for (line, record) in got.out.lines().zip(&records) {
        let start = format!(
            "{{\"v\":1,\"stream\":\"{stream}\",\"seq\":{},\"at\":{},\"type\":",
            record.seq, record.at
        );
        assert!(line.starts_with(&start), "{line}");
        assert!(line.ends_with(&record.event[1..]), "the event is passed on byte for byte");
    }
    let to = ["runs", "export", &id(1), "--to", "out.jsonl"];
    assert_eq!(place.convoke(&to).code, 0);
    assert_eq!(std::fs::read_to_string(place.path("work/out.jsonl")).unwrap(), got.out);
    let again = place.convoke(&to);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("name a file that does not exist yet"), "{}", again.err);
}

#[tokio::test]
async fn pruning_says_what_goes_asks_and_removes_the_output_files_too() {
    let (place, _writer) = seeded().await;
    let outputs = place.path("home/.local/state/convoke/outputs");
    for number in [1, 3] {
        place.write(&outputs.join(agent_id(number)).join("x.txt"), "full output");
    }
    let dry = place.convoke(&["runs", "prune", "--finished", "--dry-run"]);
    assert_eq!((dry.code, dry.err.matches("would go: ").count()), (0, 2), "{}", dry.err);
    for part in [
        "(done, 11 bytes) count",
        "in all: 2 sessions, 11 bytes",
        "1 session of other directories stays; --all",
    ] {
        assert!(dry.err.contains(part), "{part} is missing in: {}", dry.err);
    }
    let everywhere = place.convoke(&["runs", "prune", "--finished", "--all", "--dry-run"]).err;
    assert!(
        everywhere.matches("would go: ").count() == 3 && everywhere.contains("/elsewhere) "),
        "{everywhere}"
    );
    let unasked = place.convoke(&["runs", "prune", "--finished"]);
    assert_eq!(unasked.code, 2);
    assert!(
        unasked.err.contains("nothing was removed") && unasked.err.contains("add --yes"),
        "{}",
        unasked.err
    );
    assert_eq!(place.convoke(&["runs", "list", "--all"]).out.lines().count(), 5);
    let got = place.convoke(&["runs", "prune", "--finished", "--yes"]);
    assert_eq!(got.code, 0, "{}", got.err);
    let left = place.convoke(&["runs", "list", "--all"]).out;
    assert!(
        left.lines().count() == 3 && left.contains(&id(3)[..10]),
        "the other directory keeps its run: {left}"
    );
    assert!(!outputs.join(agent_id(1)).exists());
    assert!(outputs.join(agent_id(3)).exists(), "the open run keeps its files");
    let old = place.convoke(&["runs", "prune", "--older-than", "36500d", "--yes"]);
    assert!(old.code == 0 && old.err.contains("nothing to remove"), "{}", old.err);
}

#[tokio::test]
async fn pruning_removes_what_checks_of_gone_runs_left_even_where_nobody_may_enter() {
    let (place, _writer) = seeded().await;
    let state = place.path("home/.local/state/convoke");
    let left = |place: &str, number| state.join(place).join(format!("check_{}_1", agent_id(number)));
    for (kind, number) in [("private", 1), ("outputs", 1), ("private", 3), ("outputs", 3)] {
        place.write(&left(kind, number).join("deep/x.txt"), "left behind");
        place.write(&state.join(kind).join("check_wf_nobodyknowsit_2/x.txt"), "left behind");
    }
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    std::fs::set_permissions(left("private", 1).join("deep"), closed).unwrap();
    let got = place.convoke(&["runs", "prune", "--finished", "--yes"]);
    assert_eq!(got.code, 0, "{}", got.err);
    for kind in ["private", "outputs"] {
        assert!(
            !left(kind, 1).exists() && !state.join(kind).join("check_wf_nobodyknowsit_2").exists(),
            "{kind}"
        );
        assert!(left(kind, 3).exists(), "{kind}: the open run keeps its own");
    }
}

#[tokio::test]
async fn cost_adds_up_by_run_and_by_model() {
    let (place, _writer) = seeded().await;
    let got = place.convoke(&["cost", "--output", "json"]);
    let shown: Value = serde_json::from_str(&got.out).unwrap();
    assert_eq!(shown["runs"].as_array().unwrap().len(), 4);
    assert_eq!(shown["total"]["cost_nano"], 41_000_000);
    assert_eq!(shown["total"]["usage"]["output_tokens"], 800);
    assert_eq!(shown["models"][0]["model"], "claude-opus-4-8");
    let one = place.convoke(&["cost", &id(1)]);
    let cells: Vec<&str> = one.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells[1..], ["claude-opus-4-8", "2.0k", "1.0k", "0", "400", "$0.02"]);
    let all = place.convoke(&["cost"]).out;
    assert!(all.lines().last().unwrap().starts_with("total"), "{all}");
}

#[tokio::test]
async fn a_file_that_is_no_journal_is_refused_and_left_alone() {
    let place = TestHome::new();
    let file = place.path("work/notes.txt");
    place.write(&file, "dear diary");
    let got = place.convoke(&["runs", "list", "--journal", "notes.txt"]);
    assert_eq!(got.code, 2);
    assert!(got.err.contains("is not a Convoke journal"), "{}", got.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "dear diary");
    let doctor = place.convoke(&["doctor", "--journal", "notes.txt"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.out.contains("fail journal"), "{}", doctor.out);
}

#[test]
fn the_doctor_says_what_holds_commands_and_who_answers() {
    let place = TestHome::new();
    let got = place.convoke(&["doctor", "--output", "json"]);
    assert_eq!(got.code, 0, "{}{}", got.out, got.err);
    let shown: Value = serde_json::from_str(&got.out).unwrap();
    let found = |name: &str| {
        let check =
            shown["checks"].as_array().unwrap().iter().find(|check| check["check"] == name).unwrap().clone();
        (check["level"].as_str().unwrap().to_owned(), check["found"].as_str().unwrap().to_owned())
    };
    assert!(found("bash").1.contains("GNU bash"));
    assert!(found("sandbox").1.starts_with("read-only, no network: held by "), "{:?}", found("sandbox"));
    assert_eq!(found("source").0, "warn");
    assert!(found("prices").1.contains("per million tokens, as of 2"));
    assert!(found("journal").1.ends_with("journal.db will be made by the first session"));
    let keyed = ran(place.command(&["doctor"]).env("ANTHROPIC_API_KEY", "sk-secret"));
    assert!(
        keyed.out.contains("https://api.anthropic.com with the API key of environment ANTHROPIC_API_KEY"),
        "{}",
        keyed.out
    );
    assert!(!keyed.out.contains("sk-secret"));
    let unknown =
        ran(place.command(&["doctor", "--model", "llama"]).env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"));
    assert!(
        unknown.out.contains("[models.\"llama\"]") && unknown.out.contains("without credentials"),
        "{}",
        unknown.out
    );
}

#[test]
fn a_key_for_a_server_over_plain_http_fails_the_doctor_and_the_run() {
    let place = TestHome::new();
    let check = |url: &str, args: &[&str], allowed: Option<&str>, code: i32| {
        let mut command = place.command(args);
        command.env("ANTHROPIC_API_KEY", "sk-secret").env("ANTHROPIC_BASE_URL", url);
        command.env("http_proxy", "http://127.0.0.1:1").envs(allowed.map(|on| ("CONVOKE_INSECURE_HTTP", on)));
        let got = ran(&mut command);
        assert_eq!(got.code, code, "{url} {args:?}: {}{}", got.out, got.err);
        assert!(!got.out.contains("sk-secret") && !got.err.contains("sk-secret"));
        got.out + &got.err
    };
    let far = "http://gateway.invalid:8080";
    let says = "the API key would go over plain http to http://gateway.invalid:8080";
    let told = check(far, &["doctor"], None, 1);
    assert!(
        told.contains("fail source") && told.contains(says) && told.contains("CONVOKE_INSECURE_HTTP=on"),
        "{told}"
    );
    let told = check(far, &["run", "say hello", "--budget-usd", "none"], None, 2);
    assert!(told.contains(says) && told.contains("insecure_http = true"), "{told}");
    let told = check(far, &["doctor"], Some("on"), 0);
    assert!(told.contains("ok   source"), "{told}");
    check("http://127.0.0.1:8080", &["doctor"], None, 0);
    let project = "insecure_http = true";
    place.write(&place.project_config(), project);
    assert!(check(far, &["doctor"], None, 2).contains("'insecure_http' cannot be set by a project"));
}

#[tokio::test]
async fn the_doctor_opens_and_writes_a_journal_that_is_there() {
    let (place, _writer) = seeded().await;
    let got = place.convoke(&["doctor"]);
    assert_eq!(got.code, 0, "{}", got.out);
    assert!(got.out.contains(", 4 streams, writable"), "{}", got.out);
}

#[test]
fn completions_are_printed_for_every_shell() {
    let place = TestHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let got = place.convoke(&["completions", shell]);
        assert_eq!(got.code, 0);
        assert!(got.out.contains("convoke") && got.out.contains("doctor"), "{shell}");
        for flag in
            ["budget-usd", "follow-up-mode", "fail-on", "worker-model", "sandbox", "network-allow", "plain"]
        {
            assert!(got.out.contains(flag), "{shell} does not know --{flag}");
        }
    }
}
