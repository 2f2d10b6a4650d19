//! Tools of the embedding program: declared, called, recorded, ruled on, cut off and called again like ours.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke_kernel::{
    AfterCrash, AgentId, Approvals, Decision, Event, GivenTool, Outcome, Ran, Role, Rule, Segment, ToolResult,
};
use convoke_runtime::{
    CallContext, Crash, CustomTool, CustomTools, DriveMode, Error, Moment, Stop, StopLevel, Stopper,
};
use convoke_sim::{Reply, Script, calls, says};
use serde_json::{Value, json};

use crate::support::{Rig, within};
use crate::team::{Team, report, workflow};

/// What a tool was called with: its input and the key of the call.
type Calls = Arc<Mutex<Vec<(Value, String)>>>;

fn definition(after_crash: AfterCrash, roles: &[Role]) -> GivenTool {
    let schema = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}});
    GivenTool {
        name: "ticket".to_owned(),
        description: "Shows a ticket of the tracker.".to_owned(),
        input_schema: Segment::encode(&schema),
        writes: true,
        after_crash,
        roles: roles.to_vec(),
    }
}

/// A tool that says what it was called with.
fn tools(after_crash: AfterCrash, roles: &[Role]) -> (CustomTools, Calls) {
    let made = Calls::default();
    let heard = Arc::clone(&made);
    let call = move |input: Value, context: CallContext| {
        heard.lock().unwrap().push((input.clone(), context.idempotency_key));
        async move { Ok(format!("ticket {}: it is broken", input["id"])) }
    };
    let tool = CustomTool::new(definition(after_crash, roles), call);
    (CustomTools::new(vec![tool]).unwrap(), made)
}

async fn rig(tools: CustomTools) -> Rig {
    rig_of(tools, [calls("ticket", json!({"id": 7})), says("seen")]).await
}

async fn rig_of(tools: CustomTools, replies: impl IntoIterator<Item = Reply>) -> Rig {
    let mut rig = Rig::new(Script::new().conversation("*", replies)).await;
    rig.tools = tools;
    rig
}

fn results(events: &[Event]) -> Vec<&ToolResult> {
    let finished = events.iter().filter_map(|event| match event {
        Event::ToolFinished(finished) => Some(&finished.result),
        _ => None,
    });
    finished.collect()
}

#[tokio::test]
async fn a_tool_is_declared_and_called_and_the_call_is_recorded_around_it() {
    let (tools, made) = tools(AfterCrash::Unknown, &[Role::Lead]);
    let rig = rig(tools).await;
    let (agent, ended) = rig.ask("look at ticket 7").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "seen".into() }));
    let declared = rig.sim.requests()[0].body["tools"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&declared["name"], &declared["input_schema"]["required"]),
        (&json!("ticket"), &json!(["id"]))
    );
    assert_eq!(made.lock().unwrap()[0].0, json!({"id": 7}));
    let events = rig.events(&agent).await;
    let kinds: Vec<_> = events.iter().map(Event::kind).filter(|kind| kind.starts_with("tool_")).collect();
    assert_eq!(kinds, ["tool_started", "tool_finished"]);
    let result = results(&events)[0];
    assert_eq!(
        (result.text.as_str(), result.ran, result.is_error),
        ("ticket 7: it is broken", Ran::Done, false)
    );
    let spec = rig.folded(&agent).await.spec().unwrap().clone();
    assert_eq!(spec.given(), [definition(AfterCrash::Unknown, &[Role::Lead])]);
}

#[tokio::test]
async fn a_tool_reaches_only_the_roles_it_is_given_to() {
    let (tools, made) = tools(AfterCrash::Unknown, &[Role::Worker, Role::Verifier]);
    let rig = rig(tools).await;
    let (agent, _) = rig.ask("look at ticket 7").await;
    assert!(!rig.sim.requests()[0].body["tools"].to_string().contains("ticket"));
    assert_eq!(results(&rig.events(&agent).await)[0].text, "unknown tool: ticket");
    assert!(made.lock().unwrap().is_empty());
    let mut lead = rig.folded(&agent).await.spec().unwrap().clone();
    lead.fan_out = Some(Box::new(Rig::fanning_out()));
    for (role, has) in [(Role::Worker, true), (Role::Verifier, true), (Role::Task, false)] {
        let child = lead.child(role, "it", 1).unwrap();
        assert_eq!(child.tools.as_str().contains("ticket"), has, "{role:?}");
        assert_eq!(child.given().len(), usize::from(has), "{role:?}");
    }
}

#[tokio::test]
async fn a_rule_denies_it_and_input_that_does_not_fit_is_sent_back() {
    let (tools, made) = tools(AfterCrash::Unknown, &[Role::Lead]);
    let rule = Rule { tool: Some("ticket".into()), command: None, path: None, decision: Decision::Deny };
    let denied = Approvals { rules: vec![rule], ..Approvals::default() };
    let mut begun = rig(tools.clone()).await;
    begun.approvals = denied.clone();
    let (agent, _) = begun.ask("look at ticket 7").await;
    let events = begun.events(&agent).await;
    assert_eq!(results(&events)[0].ran, Ran::Refused);
    assert!(
        results(&events)[0].text.contains("forbids it (tool = \"ticket\")"),
        "{}",
        results(&events)[0].text
    );
    // What is forbidden only now counts at once.
    let mut later = rig(tools.clone()).await;
    later.forbidden = denied;
    let (agent, _) = later.ask("look at ticket 7").await;
    assert_eq!(results(&later.events(&agent).await)[0].ran, Ran::Refused);
    let odd = rig_of(tools, [calls("ticket", json!({"id": "x"})), says("seen")]).await;
    let (agent, _) = odd.ask("look at ticket x").await;
    let events = odd.events(&agent).await;
    assert!(
        results(&events)[0].text.starts_with("Not run: the input does not fit"),
        "{}",
        results(&events)[0].text
    );
    assert!(made.lock().unwrap().is_empty());
}

/// Kills the process when the tool has run and its outcome is not recorded, and goes on in another one.
async fn crashed(rig: Rig, made: Calls) -> (Rig, Vec<String>, Ran) {
    let dies = |moment: Moment, events: &[Event]| {
        moment == Moment::BeforeCommit && events.iter().any(|event| matches!(event, Event::ToolFinished(_)))
    };
    let runtime = rig.life(Some(Crash::when(dies))).await;
    let lead = runtime.start(rig.start(), "look at ticket 7").await.unwrap();
    let died = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await;
    assert!(matches!(died, Err(Error::Crashed)), "{died:?}");
    assert_eq!(made.lock().unwrap().len(), 1);
    let ended = rig.resume(&lead).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "seen".into() }));
    let keys: Vec<String> = made.lock().unwrap().iter().map(|(_, key)| key.clone()).collect();
    // The key says which agent it was, and which call.
    let (agent, call) = keys[0].split_once(':').unwrap();
    let events = rig.events(&agent.parse::<AgentId>().unwrap()).await;
    let ends = events.iter().filter_map(|event| match event {
        Event::ToolFinished(finished) if finished.id == call => Some(finished.result.ran),
        _ => None,
    });
    let ends: Vec<Ran> = ends.collect();
    assert_eq!(ends.len(), 1, "one call, one outcome");
    let ran = ends[0];
    (rig, keys, ran)
}

/// The tool in the hands of the lead.
async fn crashed_lead(after_crash: AfterCrash) -> (Rig, Vec<String>, Ran) {
    let (tools, made) = tools(after_crash, &[Role::Lead]);
    crashed(rig(tools).await, made).await
}

/// The tool in the hands of a worker: the lead's call of `Workflow` is under way when the process dies.
async fn crashed_worker(after_crash: AfterCrash) -> (Rig, Vec<String>, Ran) {
    let (tools, made) = tools(after_crash, &[Role::Worker]);
    let team = Team::new([workflow(&["look"]), says("seen")]).workers(|_| {
        let look = calls("bash", json!({"command": "echo looked"}));
        vec![calls("ticket", json!({"id": 7})), look, report("looked", vec![])]
    });
    let mut rig = Rig::new(convoke_sim::SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    rig.tools = tools;
    crashed(rig, made).await
}

#[tokio::test]
async fn after_a_crash_a_call_is_made_again_or_its_outcome_is_unknown_as_the_tool_says() {
    let (rig, keys, ran) = crashed_lead(AfterCrash::Repeat).await;
    assert_eq!((keys.len(), ran), (2, Ran::Done));
    // What is sent after the crash begins with what was sent before it, byte for byte.
    let requests = rig.sim.requests();
    let before = &requests[0].body;
    let after = &requests[1].body;
    assert_eq!((&before["tools"], &before["system"]), (&after["tools"], &after["system"]));
    assert_eq!(before["messages"][0], after["messages"][0]);
    let (_, keys, ran) = crashed_lead(AfterCrash::RepeatWithKey).await;
    assert_eq!((keys.len(), ran), (2, Ran::Done));
    assert_eq!(keys[0], keys[1], "the tool can tell that it is the same call");
    let (_, keys, ran) = crashed_lead(AfterCrash::Unknown).await;
    assert_eq!((keys.len(), ran), (1, Ran::Interrupted));
}

#[tokio::test]
async fn after_a_crash_a_workers_call_is_made_again_or_its_outcome_is_unknown_as_the_tool_says() {
    let (_, keys, ran) = crashed_worker(AfterCrash::Repeat).await;
    assert_eq!((keys.len(), ran), (2, Ran::Done));
    let (_, keys, ran) = crashed_worker(AfterCrash::RepeatWithKey).await;
    assert_eq!((keys.len(), ran), (2, Ran::Done));
    assert_eq!(keys[0], keys[1], "the tool can tell that it is the same call");
    let (rig, keys, ran) = crashed_worker(AfterCrash::Unknown).await;
    assert_eq!((keys.len(), ran), (1, Ran::Interrupted));
    let told = rig.sim.requests().iter().any(|request| {
        crate::team::role(&request.body) == "worker" && request.body.to_string().contains("unknown")
    });
    assert!(told, "the worker's model is told that the outcome is unknown");
}

#[tokio::test]
async fn a_session_goes_on_only_with_its_tools() {
    let (tools, _) = tools(AfterCrash::Repeat, &[Role::Worker]);
    let mut rig = rig(tools).await;
    let (agent, _) = rig.ask("look at ticket 7").await;
    rig.tools = CustomTools::default();
    let refused = rig.resume(&agent).await.unwrap_err();
    assert!(matches!(&refused, Error::ToolMissing(name) if name == "ticket"), "{refused}");
    assert!(refused.to_string().contains("give it to the session again"), "{refused}");
}

#[tokio::test]
async fn a_stop_cancels_a_call_and_one_that_does_not_heed_it_is_cut_off() {
    for heeds in [true, false] {
        let begun = Arc::new(tokio::sync::Notify::new());
        let begins = Arc::clone(&begun);
        let call = move |_: Value, context: CallContext| {
            let begins = Arc::clone(&begins);
            async move {
                begins.notify_one();
                if heeds {
                    context.cancelled.cancelled().await;
                    return Err("given up".to_owned());
                }
                std::future::pending().await
            }
        };
        let tool = CustomTool::new(definition(AfterCrash::Unknown, &[Role::Lead]), call);
        let rig = rig(CustomTools::new(vec![tool]).unwrap()).await;
        let runtime = rig.life(None).await;
        let agent = runtime.start(rig.start(), "look at ticket 7").await.unwrap();
        let (stopper, stop) = Stopper::new();
        let ask = async {
            begun.notified().await;
            stopper.ask(StopLevel::Cut);
        };
        let (ended, ()) =
            within(async { tokio::join!(runtime.drive(&agent, DriveMode::New, stop, None), ask) }).await;
        assert_eq!(ended.unwrap().outcome, None);
        let events = rig.events(&agent).await;
        let result = results(&events)[0];
        let expected = if heeds { (Ran::Done, "given up") } else { (Ran::Interrupted, "was cut off") };
        assert_eq!(result.ran, expected.0);
        assert!(result.text.contains(expected.1), "{}", result.text);
    }
}

#[tokio::test]
async fn a_long_result_is_bounded_and_kept_and_a_panic_is_an_outcome() {
    let call = |input: Value, _: CallContext| async move {
        assert!(input["id"] != 13, "unlucky");
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok("ä".repeat(20_000))
    };
    let tool = CustomTool::new(definition(AfterCrash::Unknown, &[Role::Lead]), call);
    let tools = CustomTools::new(vec![tool]).unwrap();
    let replies = [calls("ticket", json!({"id": 1})), calls("ticket", json!({"id": 13})), says("seen")];
    let rig = rig_of(tools, replies).await;
    let (agent, ended) = rig.ask("look").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "seen".into() }));
    let events = rig.events(&agent).await;
    let results = results(&events);
    assert!(results[0].text.chars().count() <= 8_000, "{}", results[0].text.chars().count());
    assert!(results[0].text.contains("12200 characters are left out"), "{}", results[0].text);
    let kept = std::fs::read_to_string(results[0].full_output.as_ref().unwrap()).unwrap();
    assert_eq!(kept.chars().count(), 20_000);
    assert_eq!((results[1].ran, results[1].is_error), (Ran::Interrupted, true));
}

#[test]
fn a_tool_that_no_model_could_call_is_refused_at_once() {
    let named = GivenTool { name: "bash".into(), ..definition(AfterCrash::Repeat, &[Role::Lead]) };
    let tool = CustomTool::new(named, |_, _| async { Ok(String::new()) });
    assert!(matches!(CustomTools::new(vec![tool]), Err(Error::BadTool(why)) if why.contains("another name")));
}
