//! A tool of the embedding program in the hands of every role: called, refused by a rule, cancelled by a
//! stop.

use std::collections::BTreeSet;

use convoke::{Answer, Event, Role, Rule, Session, SessionBuilder, Status, Value, Workflow, json};
use convoke_sim::{Brain, Context, Scripted, SimConfig, Simulator, tool_use_id};
use tempfile::TempDir;

use crate::note::Note;

const ROLES: [&str; 6] = ["lead", "worker", "verifier", "task", "workflow agent", "teammate"];

/// A model that calls `note` first, whichever agent it speaks for, and then does what that agent is there
/// for. It tells agents apart by the tools that they are offered.
struct Everyone;

impl Brain for Everyone {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let offered = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        let finding = json!({"claim": "a claim", "evidence": "seen", "severity": "low"});
        let verdict = json!({"finding": 1, "verdict": "confirmed", "evidence": "seen again"});
        // A report without a look at the directory would count for little.
        let look = ("bash", json!({"command": "echo looked"}));
        let is_task = request["messages"][0].to_string().contains("one small task");
        let (role, duties) = match () {
            () if offered("Workflow") => {
                let spawn = json!({"name": "alice", "role": "helper", "prompt": "help"});
                let duties = vec![
                    ("task", json!({"prompt": "one small task"})),
                    ("Workflow", json!({"subtasks": ["look"]})),
                    ("spawn_teammate", spawn),
                ];
                ("lead", duties)
            }
            () if offered("report_findings") => {
                let report = json!({"summary": "one", "findings": [finding]});
                ("worker", vec![look, ("report_findings", report)])
            }
            () if offered("report_verdicts") => {
                let report = json!({"summary": "one", "verdicts": [verdict]});
                ("verifier", vec![look, ("report_verdicts", report)])
            }
            () if offered("idle") => ("teammate", vec![]),
            () if is_task => ("task", vec![]),
            () => ("workflow agent", vec![]),
        };
        let messages = request["messages"].as_array().unwrap();
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let called: BTreeSet<&str> = blocks.filter_map(|block| block["name"].as_str()).collect();
        let mut calls = vec![("note", json!({"text": role}))];
        calls.extend(duties);
        Scripted::new(vec![match calls.into_iter().find(|(name, _)| !called.contains(name)) {
            Some((name, input)) => {
                let id = tool_use_id(context, name, 0);
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
            None => json!({"type": "text", "text": "done"}),
        }])
    }
}

struct Place {
    root: TempDir,
    model: Simulator,
}

impl Place {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self { root, model: Simulator::start(SimConfig::new(Everyone)).await.unwrap() }
    }

    fn builder(&self, note: &Note) -> SessionBuilder {
        Session::builder(self.root.path().join("work"))
            .state_dir(self.root.path().join("state"))
            .journal(self.root.path().join("state/journal.db"))
            .helper(env!("CARGO_BIN_EXE_convoke-library-helper"))
            .base_url(self.model.url())
            .api_key("any")
            .tool(note.clone(), Role::ALL)
    }
}

/// What became of the calls of `note`: whether each was well, and what the model read.
struct Seen {
    answer: Answer,
    ended: Vec<(String, bool, String)>,
}

/// Has an agent of every role at work: four below the lead by its own calls, one by a workflow.
async fn everyone(session: &Session) -> Seen {
    let mut events = session.events();
    let source =
        "export const meta = { name: 'one', description: 'Asks one agent' }\nreturn await agent('look')";
    session.run_workflow(Workflow::source(source), None).await.unwrap();
    let answer = session.run("Let everyone take a note").await.unwrap();
    let mut notes = BTreeSet::new();
    let mut ended = Vec::new();
    while let Some(event) = events.try_next() {
        match event {
            Event::ToolStarted { agent, call, tool, .. } if tool == "note" => {
                notes.insert((agent, call));
            }
            Event::ToolEnded { agent, call, ok, text, .. } if text.contains("note") => {
                notes.remove(&(agent.clone(), call));
                ended.push((agent, ok, text));
            }
            _ => {}
        }
    }
    assert!(notes.is_empty(), "every call has its outcome: {notes:?}");
    Seen { answer, ended }
}

#[tokio::test]
async fn every_role_calls_a_tool_that_it_was_given() {
    let place = Place::new().await;
    let note = Note::default();
    let session = place.builder(&note).build().await.unwrap();
    let seen = everyone(&session).await;
    assert_eq!((seen.answer.text.as_str(), seen.answer.status), ("done", Status::Done), "{:?}", seen.answer);
    let calls = note.calls();
    let who: BTreeSet<&str> = calls.iter().map(|call| call.text.as_str()).collect();
    assert_eq!(who, BTreeSet::from(ROLES));
    let agents: BTreeSet<&str> = calls.iter().map(|call| call.agent.as_str()).collect();
    assert_eq!((calls.len(), agents.len()), (6, 6), "each of them once: {calls:?}");
    for call in &calls {
        let result = (call.agent.clone(), true, format!("noted: {}", call.text));
        assert!(seen.ended.contains(&result), "{result:?} is not in {:?}", seen.ended);
    }
}

#[tokio::test]
async fn a_rule_denies_a_tool_to_every_role() {
    let place = Place::new().await;
    let note = Note::default();
    let session = place.builder(&note).rule(Rule::deny().tool("note")).build().await.unwrap();
    let seen = everyone(&session).await;
    assert_eq!(note.calls(), []);
    assert_eq!(seen.ended.len(), ROLES.len(), "{:?}", seen.ended);
    for (_, ok, text) in &seen.ended {
        assert!(!ok && text.contains("forbids it (tool = \"note\")"), "{text}");
    }
}

#[tokio::test]
async fn a_stop_cancels_a_call_of_a_tool_and_what_it_says_then_is_recorded() {
    let place = Place::new().await;
    let note = Note::that_waits();
    let session = place.builder(&note).build().await.unwrap();
    let mut events = session.events();
    let stop = async {
        note.begun.notified().await;
        session.stop_now();
    };
    let (answer, ()) = tokio::join!(session.run("Take a note"), stop);
    let answer = answer.unwrap();
    assert_eq!(answer.status, Status::Stopped, "{answer:?}");
    let mut outcome = None;
    while let Some(event) = events.try_next() {
        if let Event::ToolEnded { ok, text, .. } = event {
            outcome = Some((ok, text));
        }
    }
    let (ok, text) = outcome.unwrap();
    assert!(!ok && text.starts_with("the note of the lead was given up"), "{text}");
}
