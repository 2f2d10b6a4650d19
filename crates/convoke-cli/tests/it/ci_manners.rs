//! Manners of the command line: nothing is paid for by a slip of the finger, a session is named the same way
//! everywhere, and figures agree.

use convoke_sim::says;
use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::stage::Stage;
use crate::support::{TestHome, Writer};
use crate::team::Team;
use crate::team_cli::TeamPlace;

#[tokio::test]
async fn a_mistyped_command_with_arguments_starts_nothing_and_a_task_in_quotes_is_a_task() {
    let stage = Team::new([says("Done.")]).stage().await;
    for (words, nearest) in [
        (&["rusn", "list"][..], "`convoke sessions list`"),
        (&["resum", "s_k3"][..], "`convoke resume s_k3`"),
        (&["workfow", "run", "review"][..], "`convoke workflow run review`"),
    ] {
        let seen = stage.run(words).await.exits(2);
        assert!(
            seen.stderr.contains(nearest) && seen.stderr.contains("nothing was started"),
            "{}",
            seen.stderr
        );
        assert!(seen.stderr.contains(&format!("`convoke run {}`", words.join(" "))), "{}", seen.stderr);
    }
    assert_eq!(stage.sim().requests().len(), 0);
    stage.run(&["rusn list is what I typed"]).await.exits(0);
    assert_eq!(stage.sim().requests().len(), 1);
}

#[tokio::test]
async fn last_and_a_number_name_the_newest_runs_of_this_directory_wherever_a_run_is_taken() {
    let place = TestHome::new();
    let writer = Writer::open(&place.journal_file()).await;
    for (number, dir, task) in
        [(1, "work", "the first"), (2, "work", "the second"), (3, "elsewhere", "another")]
    {
        let mut run = writer.start(number, &place.path(dir), task).await;
        run.answer(1, "done").await;
        run.release().await;
    }
    let newest = place.convoke(&["runs", "list", "-o", "json"]);
    let listed: Value = serde_json::from_str(&newest.out).unwrap();
    let id = |at: usize| listed["runs"][at]["run"].as_str().unwrap().to_owned();
    for command in [
        &["runs", "show"][..],
        &["runs", "watch"],
        &["runs", "export"],
        &["runs", "diff"],
        &["cost"],
        &["approvals", "list"],
        &["team", "list"],
        &["resume"],
    ] {
        let by = |name: &str| {
            let got = place.convoke(&[command, &[name]].concat());
            (got.code, got.out, got.err)
        };
        assert_eq!(by("last"), by(&id(0)), "{command:?}");
        assert_eq!(by("@1"), by(&id(0)), "{command:?}");
        assert_eq!(by("@2"), by(&id(1)), "{command:?}");
    }
    for name in ["@0", "@3"] {
        let got = place.convoke(&["runs", "show", name]);
        assert!(got.code == 2 && got.err.contains(&format!("there is no session '{name}'")), "{}", got.err);
        assert!(got.err.contains("has 2") && got.err.contains("sessions list --all"), "{}", got.err);
    }
}

#[tokio::test]
async fn a_list_takes_its_run_in_either_place() {
    let team = TeamPlace::alone().await;
    for list in [["team", "list"], ["tasks", "list"]] {
        let with = |more: &[&str]| {
            let got = team.place.convoke(&[&list[..], more].concat());
            (got.code, got.out)
        };
        let expected = with(&[]);
        assert_eq!(expected.0, 0, "{list:?}");
        assert_eq!(with(&["last"]), expected);
        assert_eq!(with(&["--session", "last"]), expected);
        assert_eq!(with(&["--run", "last"]), expected, "the old name works the same");
        assert_eq!(with(&["last", "--run", "last"]).0, 2);
    }
}

#[tokio::test]
async fn the_number_of_agents_is_one_figure_everywhere() {
    let agree = async |stage: &Stage, args: &[&str], expected: usize| {
        let seen = stage.run(args).await;
        let report = seen.json();
        assert_eq!(report["spend"]["agents"], expected, "{report:#}");
        assert_eq!(
            report["agents"].as_array().unwrap().len() - 1,
            expected,
            "the lead, and those it started"
        );
        assert!(seen.stderr.contains(&format!(" {expected} of 500 agents · ")), "{}", seen.stderr);
        let listed = stage.run(&["runs", "list", "-o", "json"]).await.exits(0).json();
        assert_eq!(listed["runs"][0]["agents_started"], expected, "{listed:#}");
        let row = stage.run(&["runs", "list"]).await.exits(0).stdout;
        let words: Vec<&str> = row.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words[4], expected.to_string(), "{row}");
    };
    let stage = Team::fanning_out(&["low one", "high two"]).stage().await;
    agree(&stage, &["-o", "json", "review", "it", "all"], 4).await;
    let stage =
        crate::workflow_run::stage("return await parallel(['a', 'b', 'c'].map(x => () => agent(x)))").await;
    agree(&stage, &["workflow", "run", "flow.js", "-o", "json"], 3).await;
}

#[tokio::test]
async fn a_plan_of_a_task_rests_on_the_journal_where_it_has_seen_enough_and_on_a_table_elsewhere() {
    let place = TestHome::new();
    let plan = |args: &[&str]| -> Value {
        let got = place.convoke(&[&["plan", "-o", "json"], args].concat());
        assert_eq!(got.code, 0, "{}", got.err);
        serde_json::from_str(&got.out).unwrap()
    };
    let part =
        |told: &Value, at: usize| (told["parts"][at]["role"].clone(), told["parts"][at]["basis"].clone());
    let before = plan(&["review", "it"]);
    assert_eq!(part(&before, 0), ("lead".into(), "table".into()), "{before:#}");
    assert!(before["nano"]["low"].as_u64() < before["nano"]["high"].as_u64(), "{before:#}");
    assert!(!place.journal_file().exists(), "a plan leaves nothing behind");
    let writer = Writer::open(&place.journal_file()).await;
    for number in 1..=3 {
        let mut run = writer.start(number, &place.path("work"), "a task").await;
        run.answer(1, "done").await;
        run.release().await;
    }
    let after = plan(&["review", "it"]);
    assert_eq!(part(&after, 0), ("lead".into(), "journal".into()), "{after:#}");
    assert_eq!(
        (&after["parts"][0]["seen"], part(&after, 1).1),
        (&Value::from(3), "table".into()),
        "{after:#}"
    );
    let cost: Value = serde_json::from_str(&place.convoke(&["cost", "last", "-o", "json"]).out).unwrap();
    assert_eq!(
        after["parts"][0]["each_nano"]["low"], cost["total"]["cost_nano"],
        "what it cost is what it is expected to cost"
    );
    assert_eq!(plan(&["--mode", "off"])["nano"]["high"], after["parts"][0]["each_nano"]["high"]);
    let text = place.convoke(&["plan"]);
    assert!(
        text.out.contains("3 of this model in this journal") && text.out.contains("the table: none"),
        "{}",
        text.out
    );
    assert!(text.err.contains("nothing was sent"), "{}", text.err);
}

#[tokio::test]
async fn a_terminal_is_told_what_the_first_paid_run_of_a_directory_is_expected_to_cost_and_a_pipe_is_not() {
    let stage = Team::new([says("Done."), says("Done.")]).stage().await;
    let piped = stage.run(&["--mode", "off", "look at it"]).await.exits(0);
    assert!(!piped.stderr.contains("first paid"), "{}", piped.stderr);
    let stage = Team::new([says("Done."), says("Done.")]).stage().await;
    let first = Terminal::sized(&stage, 120, "--mode off 'look at it'").end().await.exits(0).text;
    let told = first.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the first paid request in this directory: claude-opus-4-8, at most $10.00"),
        "{first}"
    );
    assert!(told.contains("the plan expects $") && told.contains("by a table of roles"), "{first}");
    let second = Terminal::sized(&stage, 120, "--mode off 'look at it once more'").end().await.exits(0).text;
    assert!(!second.contains("first paid"), "{second}");
}

#[tokio::test]
async fn a_terminal_is_told_what_the_first_paid_run_of_a_workflow_is_expected_to_cost() {
    let stage =
        crate::workflow_run::stage("return await parallel(['a', 'b'].map(x => () => agent(x)))").await;
    let piped = stage.run(&["workflow", "plan", "flow.js"]).await.exits(0);
    assert!(!piped.stderr.contains("first paid"), "{}", piped.stderr);
    let run = async || Terminal::sized(&stage, 120, "workflow run flow.js --yes").end().await.exits(0).text;
    let first = run().await;
    let told = first.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the first paid request in this directory: claude-opus-4-8, at most $10.00"),
        "{first}"
    );
    assert!(
        told.contains("the plan expects 2 agents, $") && told.contains("by a rough assumption"),
        "{first}"
    );
    assert!(told.contains("`convoke workflow plan flow.js` says more"), "{first}");
    let second = run().await;
    assert!(!second.contains("first paid"), "{second}");
}

#[tokio::test]
async fn a_plan_of_a_workflow_rests_on_the_journal_where_it_has_seen_enough_and_says_so() {
    let stage =
        crate::workflow_run::stage("return await parallel(['a', 'b'].map(x => () => agent(x)))").await;
    let plan = async || stage.run(&["workflow", "plan", "flow.js", "-o", "json"]).await.exits(0).json();
    let before = plan().await;
    assert_eq!((&before["cost_basis"], &before["seen"]), (&"table".into(), &json!([])), "{before:#}");
    stage.run(&["workflow", "run", "flow.js", "--fresh"]).await.exits(0);
    assert_eq!(plan().await["cost_basis"], "table", "two agents are chance");
    stage.run(&["workflow", "run", "flow.js", "--fresh"]).await.exits(0);
    let after = plan().await;
    assert_eq!(after["cost_basis"], "journal", "{after:#}");
    let seen = &after["seen"][0];
    assert_eq!((&seen["role"], &seen["model"]), (&"callee".into(), &"claude-opus-4-8".into()), "{after:#}");
    assert_eq!(seen["seen"], 4);
    for (way, end) in [("low", "low"), ("high", "high")] {
        let each = seen["each_nano"][end].as_u64().unwrap();
        assert_eq!(after[way]["cost_nano"], 2 * each, "two agents at what one was seen to cost: {after:#}");
    }
    let text = stage.run(&["workflow", "plan", "flow.js"]).await.exits(0).stdout;
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("by what this journal has seen; the budget has $10.00"), "{text}");
    assert!(joined.contains("4 callees of claude-opus-4-8 cost $"), "{text}");
}

#[tokio::test]
async fn every_line_of_jsonl_fits_its_schema_and_the_last_one_fits_that_of_a_run() {
    let schema =
        |text: &str| jsonschema::validator_for(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
    let line = schema(include_str!("../../../../docs/schema/jsonl.schema.json"));
    let run = schema(include_str!("../../../../docs/schema/run.schema.json"));
    let check = async |stage: &Stage, args: &[&str]| {
        let lines = stage.run(args).await.lines();
        let mut next = std::collections::HashMap::new();
        for (at, told) in lines.iter().enumerate() {
            let errors: Vec<String> = line.iter_errors(told).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{told}: {errors:?}");
            let is_last = at + 1 == lines.len();
            assert_eq!(told["type"] == "run_ended", is_last, "{told}");
            if let Some(stream) = told["stream"].as_str() {
                let seen = next.entry(stream.to_owned()).or_insert(0);
                *seen += 1;
                assert_eq!(told["seq"], *seen, "no event of {stream} is left out: {told}");
            }
        }
        let errors: Vec<String> =
            run.iter_errors(lines.last().unwrap()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty() && next.len() > 2, "{errors:?} {next:?}");
    };
    let stage = Team::fanning_out(&["low one", "high two"]).stage().await;
    check(&stage, &["-o", "jsonl", "review", "it", "all"]).await;
    let stage =
        crate::workflow_run::stage("return await parallel(['a', 'b'].map(x => () => agent(x)))").await;
    check(&stage, &["workflow", "run", "flow.js", "-o", "jsonl"]).await;
    for wrong in [
        json!({"v": 1, "type": "tool_finished", "stream": "a_aaaaaaaaaaaaaaaa", "at": 1}),
        json!({"v": 1, "type": "run_ended"}),
        json!({"v": 2, "type": "tool_finished", "stream": "a_aaaaaaaaaaaaaaaa", "seq": 1, "at": 1}),
    ] {
        assert!(!line.is_valid(&wrong), "{wrong}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_one_line_with_its_end_and_what_to_do_for_one_agent_and_for_eight()
{
    let address = {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", nobody.local_addr().unwrap())
    };
    let flow = "return await parallel([1, 2, 3, 4, 5, 6, 7, 8].map(x => () => agent('say ' + x)))";
    let stage = crate::workflow_run::stage(flow).await;
    std::fs::create_dir_all(stage.home().join(".config/convoke")).unwrap();
    std::fs::write(stage.home().join(".config/convoke/config.toml"), "max_attempts = 4\n").unwrap();
    // The line comes soon after the first failure: on a busy machine some of the eight have not failed by
    // then.
    for (args, waiting, code) in [
        (&["--mode", "off", "say hello"][..], 1..=1, 1),
        (&["workflow", "run", "flow.js", "--budget-usd", "100"], 2..=8, 3),
    ] {
        let mut command = stage.command(args);
        command.env("ANTHROPIC_BASE_URL", &address);
        let seen = crate::stage::to_its_end(command).await.exits(code);
        let naming: Vec<&str> = seen.stderr.lines().filter(|line| line.contains("cannot connect")).collect();
        let waits: Vec<&&str> = naming.iter().filter(|line| line.starts_with("[wait] ")).collect();
        assert_eq!(waits.len(), 1, "{}", seen.stderr);
        assert!(waits[0].contains(&format!("{address} (Connection refused")), "{}", waits[0]);
        assert!(waits[0].contains("check the base URL") && waits[0].contains(": next try "), "{}", waits[0]);
        let number =
            waits[0].strip_suffix(" waiting").and_then(|line| line.rsplit("; ").next()?.parse().ok());
        assert!(waits[0].contains(", the last one"), "{}", waits[0]);
        assert!(number.is_some_and(|number: u32| waiting.contains(&number)), "{}", waits[0]);
        assert!(seen.stderr.contains("resume: convoke resume s_"), "{}", seen.stderr);
        println!(
            "{args:?}: {} lines, {} of them about the server",
            seen.stderr.lines().count(),
            naming.len()
        );
    }
}
