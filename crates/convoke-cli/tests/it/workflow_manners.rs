//! What a program's agents are given and told in a real project: its trust, its kinds of agents, its memory
//! files, their turns and prices, and how a run says what was not done.

use convoke_sim::{SimConfig, calls, says};
use serde_json::{Value, json};

use crate::repo::write;
use crate::stage::{Seen, Stage};
use crate::workflow_run::{Callees, callees, script, stage};

/// The `system` texts of the request with this prompt.
fn system(stage: &Stage, prompt: &str) -> Vec<String> {
    let requests = stage.sim().requests();
    let has = |body: &Value| body["messages"][0]["content"][0]["text"].as_str() == Some(prompt);
    let body =
        &requests.iter().find(|request| has(&request.body)).unwrap_or_else(|| panic!("no {prompt}")).body;
    let texts = body["system"].as_array().unwrap().iter();
    texts.map(|block| block["text"].as_str().unwrap().to_owned()).collect()
}

const AUDITOR: &str = "---\nname: auditor\neffort: normal\ndisallowedTools: Bahs\n---\nLook at the money.";

#[tokio::test]
async fn a_killed_run_with_a_kind_of_its_project_goes_on_without_being_told_again_whom_to_trust() {
    let stage = stage("await agent('first')\nreturn await agent('second', { agentType: 'auditor' })").await;
    write(&stage.work(), ".claude/agents/money/auditor.md", AUDITOR);
    let hold = stage.sim().hold("first", 0, 1);
    let started = stage.start(&["workflow", "run", "flow.js", "--trust-project"]);
    drop(stage.sim().wait_for_requests(1).await);
    started.signal("KILL");
    started.end().await;
    hold.release();
    let resumed = stage.run(&["resume"]).await.exits(0);
    assert_eq!(resumed.stdout, "did second\n", "{}", resumed.stderr);
    assert!(!resumed.stderr.contains("is not trusted"), "{}", resumed.stderr);
    assert_eq!(system(&stage, "second").last().unwrap(), "Look at the money.");
    // Without trust nothing of it is loaded, and that is what is said.
    let seen = stage.run(&["workflow", "run", "flow.js", "--fresh"]).await.exits(1);
    assert!(seen.stderr.contains("agentType 'auditor': it is the project's"), "{}", seen.stderr);
    let seen = stage.run(&["workflow", "plan", "flow.js"]).await;
    assert!(seen.stderr.contains("auditor.md") && seen.stderr.contains("--trust-project"), "{}", seen.stderr);
}

#[tokio::test]
async fn odd_words_in_a_kind_of_agent_are_told_and_the_kind_is_used() {
    let stage = stage("return await agent('look', { agentType: 'auditor' })").await;
    write(&stage.work(), ".claude/agents/auditor.md", AUDITOR);
    let seen = stage.run(&["workflow", "run", "flow.js", "--trust-project"]).await.exits(0);
    for words in ["agentType 'auditor': 'normal' is no effort", "'Bahs' is no tool here"] {
        assert!(seen.stderr.contains(words), "{words}: {}", seen.stderr);
    }
    let listed = stage.run(&["workflow", "list"]).await.exits(0);
    assert!(
        listed.stderr.contains("warning: .claude/agents/auditor.md: 'normal' is no effort"),
        "{}",
        listed.stderr
    );
    assert!(!listed.stdout.contains("cannot be used"), "{}", listed.stdout);
}

#[tokio::test]
async fn what_the_projects_memory_files_say_reaches_a_programs_agents_if_the_project_is_trusted() {
    let stage = stage("await agent('a')\nreturn await agent('b', { agentType: 'Explore' })").await;
    write(&stage.work(), "CLAUDE.md", "Tabs, not spaces.");
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(0);
    assert!(seen.stderr.contains("the file CLAUDE.md"), "that it is left out is said: {}", seen.stderr);
    assert_eq!(system(&stage, "a").len(), 1);
    let mut stage = stage;
    stage.turn_to(callees()).await;
    stage.run(&["workflow", "run", "flow.js", "--trust-project"]).await.exits(0);
    let told = system(&stage, "a");
    assert!(told.len() == 2 && told[1].ends_with("Tabs, not spaces."), "{told:?}");
    // One that only looks around is spared it, so what it said without it stands.
    assert_eq!(stage.sim().requests().len(), 1);
    // The same again is the same work, and so are its answers.
    let again = stage.run(&["workflow", "run", "flow.js", "--trust-project"]).await.exits(0);
    assert_eq!(stage.sim().requests().len(), 1, "{}", again.stderr);
}

/// An agent that never comes to an end by itself.
fn restless() -> SimConfig {
    SimConfig::new(Callees(|_| {
        (0..20).map(|at| calls("bash", json!({"command": format!("echo {at}")}))).collect()
    }))
}

#[tokio::test]
async fn the_turns_of_a_programs_agents_are_those_of_the_flags() {
    let run = async |flags: &[&str]| -> usize {
        let stage = Stage::with(restless()).await;
        write(&stage.work(), "flow.js", &script("return await agent('look')"));
        stage.run(&[&["workflow", "run", "flow.js", "--sandbox", "off"], flags].concat()).await.exits(3);
        stage.sim().requests().len()
    };
    // One more: what it has is handed back in a turn of its own.
    assert_eq!(run(&["--max-turns", "3"]).await, 4);
    assert_eq!(run(&["--worker-turns", "2", "--max-turns", "9"]).await, 3);
    let stage = stage("return await agent('look')").await;
    let planned: Seen = stage.run(&["workflow", "plan", "flow.js", "--worker-turns", "9"]).await.exits(0);
    assert!(planned.stdout.contains("(3 of 9)"), "{}", planned.stdout);
}

#[tokio::test]
async fn a_model_without_a_price_is_named_where_a_cap_in_dollars_stands_in_its_way() {
    let stage = stage("return await agent('look', { model: 'house-blend-7b' })").await;
    let seen = stage.run(&["workflow", "run", "flow.js", "--budget-usd", "5"]).await;
    assert!(seen.code != Some(0) && stage.sim().requests().is_empty());
    let words = "the model `house-blend-7b` has no known price";
    assert!(seen.stderr.contains(words), "{}", seen.stderr);
}

#[tokio::test]
async fn a_value_that_did_not_fit_and_prose_behind_it_are_told_as_that() {
    let stage = Stage::with(SimConfig::new(Callees(|_| {
        let misfit = calls("StructuredOutput", json!({"n": "three"}));
        vec![misfit, says("It is three."), says("Three."), says("Still three.")]
    })))
    .await;
    let body = "const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } }\n\
                return await parallel([() => agent('count', { schema })])";
    write(&stage.work(), "flow.js", &script(body));
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(3);
    assert!(
        seen.stderr.contains("did not fit its schema (") && seen.stderr.contains("prose"),
        "{}",
        seen.stderr
    );
    assert!(!seen.stderr.contains("without calling"), "{}", seen.stderr);
}

#[tokio::test]
async fn what_could_not_be_done_is_not_said_to_be_skipped() {
    let stage =
        stage("return await parallel([() => agent('a'), () => agent('b', { agentType: 'nobody' })])").await;
    let seen = stage.run(&["workflow", "run", "flow.js"]).await.exits(3);
    assert!(seen.stderr.contains("2 agent calls: 1 ok, 1 not done"), "{}", seen.stderr);
    assert!(seen.stderr.contains("not done: agentType 'nobody' is not known"), "{}", seen.stderr);
    assert!(!seen.stderr.contains("skipped"), "{}", seen.stderr);
    let id = stage.run(&["runs", "list", "-o", "json"]).await.json()["runs"][0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = stage.run(&["runs", "show", &id]).await.exits(0).stdout;
    assert!(
        shown.contains("2 agent calls: 1 ok, 1 not done") && shown.contains("agent         not done"),
        "{shown}"
    );
}

#[tokio::test]
async fn workflows_are_listed_one_line_each() {
    let stage = Stage::bare();
    let long = "word ".repeat(200);
    let source = format!("export const meta = {{ name: 'long', description: '{}' }}\n", long.trim());
    write(&stage.work(), ".convoke/workflows/long.js", &source);
    let listed = stage.run(&["workflow", "list"]).await.exits(0).stdout;
    assert!(listed.lines().all(|line| line.chars().count() <= 120), "{listed}");
    let row = listed.lines().find(|line| line.starts_with("long ")).unwrap();
    assert!(row.ends_with('…'), "{row}");
    let whole = stage.run(&["workflow", "list", "--verbose"]).await.exits(0).stdout;
    assert!(whole.contains(long.trim()), "{whole}");
}

#[tokio::test]
async fn results_that_are_not_new_say_from_when_they_are() {
    let stage = stage("return await parallel(['a', 'b'].map(x => () => agent(x)))").await;
    let first = stage.run(&["workflow", "run", "flow.js"]).await.exits(0);
    assert!(!first.stderr.contains("are from"), "{}", first.stderr);
    let again = stage.run(&["workflow", "run", "flow.js"]).await.exits(0);
    assert_eq!(stage.sim().requests().len(), 2, "the same in an unchanged directory is not asked again");
    let line = again.stderr.lines().find(|line| line.contains("workflow probe: 2 of 2 results are from s_"));
    assert!(line.is_some_and(|line| line.contains(" s old; --fresh asks anew")), "{}", again.stderr);
}

#[tokio::test]
async fn a_workflow_s_name_and_words_run_it_with_those_words_and_everything_else_is_a_task() {
    let stage = Stage::with(callees()).await;
    write(
        &stage.home(),
        ".config/convoke/workflows/probe.js",
        &script("return { args, said: await agent('a') }"),
    );
    for words in
        [&["probe", "src/", "and", "tests"][..], &["/probe", "src/ and tests"], &["/probe src/ and tests"]]
    {
        let seen = stage.run(words).await.exits(0);
        assert_eq!(seen.json(), json!({"args": "src/ and tests", "said": "did a"}), "{words:?}");
        assert!(
            seen.stderr.contains("a task would be `convoke run probe src/ and tests`"),
            "{}",
            seen.stderr
        );
    }
    assert_eq!(stage.run(&["/probe"]).await.exits(0).json()["args"], Value::Null);
    assert_eq!(stage.sim().requests().len(), 1, "no lead is asked, and the same again is not either");
    // What is said to be a task is one, and so is a sentence in quotes.
    for task in [&["run", "probe", "src/"][..], &["probe src/"]] {
        let seen = stage.run(&[task, &["--mode", "off", "--no-team"]].concat()).await;
        assert!(!seen.stderr.contains("is a workflow"), "{}", seen.stderr);
    }
    // A sentence may begin with the name of one that is shipped; with the slash it is meant.
    let seen = stage.run(&["review", "it", "all", "--mode", "off", "--no-team"]).await;
    assert!(!seen.stderr.contains("is a workflow"), "{}", seen.stderr);
    let seen = stage.run(&["/review", "nowhere/at/all"]).await;
    assert!(seen.stderr.contains("'review' is a workflow and is run as one"), "{}", seen.stderr);
    // With the slash nothing else is: a name that no workflow has is no task.
    let asked = stage.sim().requests().len();
    for words in [&["/unheard", "src/"][..], &["/unheard src/"], &["/unheard"]] {
        let seen = stage.run(words).await.exits(2);
        assert!(seen.stderr.contains("'unheard'"), "{words:?}: {}", seen.stderr);
    }
    assert_eq!(stage.sim().requests().len(), asked, "nothing was paid for");
    write(&stage.work(), ".convoke/workflows/theirs.js", &script("return 1").replace("'probe'", "'theirs'"));
    let seen = stage.run(&["theirs", "now"]).await.exits(2);
    assert!(
        seen.stderr.contains("--trust-project") && seen.stderr.contains("convoke run theirs now"),
        "{}",
        seen.stderr
    );
}

#[tokio::test]
async fn a_check_finds_what_will_go_wrong_and_a_run_is_not_kept_from_it() {
    let stage =
        stage("if (args) return missng\nreturn await parallel([() => agent('a', { lable: 'b' })])").await;
    let seen = stage.run(&["workflow", "check", "flow.js"]).await.exits(2);
    for words in
        ["flow.js:2:", "`missng` is not defined", "flow.js:3:", "agent() has no option `lable`", "is `label`"]
    {
        assert!(seen.stdout.contains(words), "{words}: {}", seen.stdout);
    }
    assert!(
        seen.stderr.contains("1 workflow checked, 1 with mistakes that go wrong later"),
        "{}",
        seen.stderr
    );
    let told = stage.run(&["workflow", "check", "flow.js", "-o", "json"]).await.exits(2).json();
    assert_eq!(told["files"][0]["problems"].as_array().unwrap().len(), 2, "{told}");
    stage.run(&["workflow", "run", "flow.js"]).await.exits(0);
}
