//! Workflow programs that the budget has no room for, with the real binary: the exit code is 4, the numbers
//! are said, and the command that is printed grants what was missing.

use convoke_sim::{SimConfig, calls, says};
use serde_json::json;

use crate::stage::{Seen, Stage};
use crate::workflow_run::{Callees, Led, script};

async fn again(stage: &Stage, seen: &Seen) -> Seen {
    let args = seen.resume_args();
    stage.run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await
}

#[tokio::test]
async fn a_leads_program_whose_step_does_not_fit_stops_by_the_budget_and_the_printed_command_goes_on() {
    let body = "await agent('first')\nreturn await parallel([1, 2, 3, 4].map(x => () => agent(`more ${x}`)))";
    let lead = [calls("Workflow", json!({"script": script(body)})), says("It runs."), says("It found five.")];
    let stage = Stage::with(SimConfig::new(Led(lead.to_vec()))).await;
    let seen = stage.run(&["run", "have it looked at", "--workflow", "--budget-agents", "3"]).await.exits(4);
    assert!(seen.stderr.contains("needs 4 agents, 2 of 3 are left"), "{}", seen.stderr);
    assert!(!seen.stderr.contains("for your answer"), "{}", seen.stderr);
    let args = seen.resume_args();
    assert!(args.ends_with(&["--budget-agents".to_owned(), "5".to_owned()]), "{args:?}");
    let watched = stage.run(&["runs", "watch", &args[1]]).await;
    assert_eq!(watched.code, Some(4), "{}", watched.stderr);
    let resumed = again(&stage, &seen).await.exits(0);
    assert!(resumed.stdout.contains("It found five."), "{} {}", resumed.stdout, resumed.stderr);
}

#[tokio::test]
async fn a_program_that_lost_agents_to_the_budget_stops_by_it_and_the_printed_command_raises_the_cap() {
    // Each agent takes a few hundred tokens with what it may take at most, so a small cap has room for the
    // first ones alone.
    let body = "const all = []\nfor (let n = 0; n < 40; n++) all.push(await agent(`look ${n}`).catch(() => \
        null))\nreturn all.length";
    let stage = Stage::with(SimConfig::new(Callees(|prompt| vec![says(&format!("did {prompt}"))]))).await;
    crate::repo::write(&stage.work(), "flow.js", &script(body));
    let seen = stage.run(&["workflow", "run", "flow.js", "--budget-tokens", "20000"]).await.exits(4);
    assert_eq!(seen.stdout, "40\n", "what it returned stands as far as it goes");
    assert!(seen.stderr.contains("the workflow is partial: the budget had no room for"), "{}", seen.stderr);
    let args = seen.resume_args();
    assert!(args.ends_with(&["--budget-tokens".to_owned(), "40000".to_owned()]), "{args:?}");
    let watched = stage.run(&["runs", "watch", &args[1]]).await;
    assert_eq!(watched.code, Some(4), "{}", watched.stderr);
    // The same thrown through: no value, and the same code.
    crate::repo::write(&stage.work(), "flow.js", &script(&body.replace(".catch(() => null)", "")));
    let seen =
        stage.run(&["workflow", "run", "flow.js", "--fresh", "--budget-tokens", "20000"]).await.exits(4);
    assert!(
        seen.stdout.is_empty() && seen.stderr.contains("failed, because the budget had no room"),
        "{}",
        seen.stderr
    );
}

#[tokio::test]
async fn a_lead_and_a_program_are_refused_the_path_of_what_nobody_trusts_in_the_words_for_its_name() {
    let body = "const why = async x => { try { return await workflow(x) } catch (error) \
        { return error.message } }\n\
                return [await why('theirs'), await why({ scriptPath: '.claude/workflows/t.js' })]";
    let stage = Stage::with(SimConfig::new(Callees(|prompt| vec![says(&format!("did {prompt}"))]))).await;
    crate::repo::write(&stage.work(), "flow.js", &script(body));
    let theirs = "export const meta = { name: 'theirs', description: 'x' }\nreturn await agent('a')";
    crate::repo::write(&stage.work(), ".claude/workflows/t.js", theirs);
    let said = stage.run(&["workflow", "run", "flow.js"]).await.exits(0).json();
    let said: Vec<&str> = said.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert_eq!(said[0].replace("'theirs'", "X"), said[1].replace("'.claude/workflows/t.js'", "X"));
    assert!(
        said[1].contains("the project is not trusted") && said[1].contains("--trust-project"),
        "{said:?}"
    );
    assert!(stage.sim().requests().is_empty());
    let trusted = stage.run(&["workflow", "run", "flow.js", "--trust-project"]).await.exits(0);
    assert_eq!(trusted.json(), json!(["did a", "did a"]));
    // A person who names the file on the command line trusts that file.
    stage.run(&["workflow", "run", ".claude/workflows/t.js"]).await.exits(0);
    let lead = [calls("Workflow", json!({"scriptPath": ".claude/workflows/t.js"})), says("It was refused.")];
    let stage = Stage::with(SimConfig::new(Led(lead.to_vec()))).await;
    crate::repo::write(&stage.work(), ".claude/workflows/t.js", theirs);
    stage.run(&["run", "have it run", "--workflow"]).await.exits(0);
    let told = stage.sim().requests().last().unwrap().body.to_string();
    assert!(told.contains("the project is not trusted"), "{told}");
}
