//! A lead that believes the newest thing it reads and nothing else, as some models do: a text that does not
//! say that its fan-out is done or running reads like a new task to it. After a kill and a resume it must not
//! fan out a second time.

use convoke_sim::{Brain, Context, Script, Scripted, SimConfig, says};
use serde_json::Value;

use crate::kill_offline::{Whose, run};
use crate::stage::Stage;
use crate::team::{Team, requests, role, workflow};

const TASK: &str = "Look at everything";

/// Such a lead, with workers and verifiers that do their work.
struct Literal {
    team: Team,
}

impl Literal {
    fn lead(request: &Value, context: &Context) -> Scripted {
        let newest = request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .rfind(|message| message["role"] == "user")
            .unwrap();
        let last = newest["content"].as_array().unwrap().last().unwrap();
        let knows = match last["text"].as_str() {
            // The result of the fan-out itself.
            None => last["type"] == "tool_result",
            Some(text) => text
                .lines()
                .any(|line| line.starts_with("done: Workflow") || line.starts_with("running: Workflow")),
        };
        let reply = if knows { says("The synthesis.") } else { workflow(&["high one", "high two"]) };
        // One reply, whatever the position.
        let replies = vec![reply; context.position + 1];
        Script::new().conversation("*", replies).reply(request, context)
    }
}

impl Brain for Literal {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        match role(request) {
            "lead" => Self::lead(request, context),
            _ => self.team.reply(request, context),
        }
    }
}

#[tokio::test]
async fn a_lead_that_believes_the_newest_text_alone_does_not_fan_out_twice_after_a_resume() {
    let stage = Stage::with(SimConfig::new(Literal { team: Team::new([]) })).await;
    std::fs::write(stage.work().join("a.txt"), "first line\nsecond line\n").unwrap();
    let (_, cut) = run(&stage, &["--mode", "on", "--output", "jsonl", TASK], Some((Whose::Other, 1))).await;
    assert_eq!(cut, None, "it was killed in a worker's command");
    let (_, cut) = run(&stage, &["resume", "--output", "jsonl"], Some((Whose::Other, 1))).await;
    assert_eq!(cut, None, "and in the one that was run again");
    let (code, ended) = run(&stage, &["resume", "--output", "jsonl"], None).await;
    let ended = ended.unwrap();
    assert_eq!((code, ended["answer"].as_str()), (Some(0), Some("The synthesis.")), "{ended:#}");
    let last = requests(&stage, "lead").pop().unwrap();
    let messages = last.body["messages"].as_array().unwrap();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let calls = blocks.filter(|block| block["type"] == "tool_use" && block["name"] == "Workflow").count();
    let told = messages.last().unwrap()["content"].as_array().unwrap().last().unwrap()["text"]
        .as_str()
        .unwrap_or_default();
    assert_eq!(calls, 1, "the newest text was: {told}");
    assert!(
        told.contains("done: Workflow (2 subtasks)") && told.contains(&format!("request: {TASK}")),
        "{told}"
    );
}
