//! The scripts in `convoke-script/tests/scripts`, written as people write them, run to the end on the
//! simulator: with every agent well, with every agent dead, and with half of them failing.

use convoke_kernel::{AgentId, Caps, Program, ProgramEnd, ProgramStatus, RunId, Sandbox};
use convoke_runtime::{DriveMode, Runtime, Stop};
use convoke_sim::{Brain, Context, Script, Scripted, SimConfig, calls, refuses, says};
use serde_json::{Value, json};

use crate::hostile::stub::{SCRIPTS, fill};
use crate::support::{Rig, within};
use crate::team::{between, looks_and_judges, role};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ok,
    Null,
    Half,
}

/// Answers what was asked, by the schema if there is one, or turns it down for good.
struct Answers(Mode);

impl Brain for Answers {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let first = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let number = first.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let dead = match self.0 {
            Mode::Ok => false,
            Mode::Null => true,
            Mode::Half => (number >> 5) % 2 == 0,
        };
        if dead {
            return Script::new()
                .conversation("*", [refuses("this one is turned down")])
                .reply(request, context);
        }
        let tools = request["tools"].as_array().into_iter().flatten();
        let output = tools.into_iter().find(|tool| tool["name"] == "StructuredOutput");
        let replies = match (role(request), output) {
            ("verifier", _) => {
                let findings: Vec<Value> =
                    serde_json::from_str(between(first, "<findings>", "</findings>")).unwrap();
                looks_and_judges(&findings, "confirmed")
            }
            (_, Some(tool)) => {
                let value = fill(&tool["input_schema"], number);
                // Patterns are beyond what it fills in; what comes back as wrong it leaves out.
                let least = required(&tool["input_schema"], value.clone());
                vec![calls("StructuredOutput", value), calls("StructuredOutput", least)]
            }
            (_, None) => vec![says(&format!("said {number:016x}"))],
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

fn required(schema: &Value, mut value: Value) -> Value {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| names.iter().any(|required| required == name.as_str()));
    }
    value
}

pub(crate) fn header<'a>(source: &'a str, key: &str) -> Option<&'a str> {
    let key = format!("// {key}: ");
    source.lines().find_map(|line| line.strip_prefix(&key)).map(str::trim)
}

/// A directory with everything that the scripts name, and the simulator that answers their agents.
pub(crate) async fn rig_of(sim: SimConfig) -> Rig {
    // Confined, because a program's commands are run in no other way.
    let mut rig = Rig::new(sim).await.confined(Sandbox::Workspace);
    rig.fan_out = Some(Rig::fanning_out());
    rig.keeps = true;
    rig.same_words = true;
    let folder = rig.work.path().join(".convoke/workflows");
    std::fs::create_dir_all(&folder).unwrap();
    for child in std::fs::read_dir(format!("{SCRIPTS}/children")).unwrap() {
        let child = child.unwrap();
        std::fs::copy(child.path(), folder.join(child.file_name())).unwrap();
    }
    let kinds = rig.work.path().join(".claude/agents");
    std::fs::create_dir_all(&kinds).unwrap();
    let kind = "---\nname: quality:threat-modeller\ndescription: models threats\n---\nThink of threats.\n";
    std::fs::write(kinds.join("threat.md"), kind).unwrap();
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "x"]] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
        let done =
            std::process::Command::new("git").args(identity).args(args).current_dir(rig.work.path()).status();
        assert!(done.unwrap().success());
    }
    rig
}

/// Runs one script to its end, answering what it asks a person.
pub(crate) async fn run(rig: &Rig, source: &str) -> Program {
    let mut input = json!({"script": source});
    if let Some(args) = header(source, "args") {
        input["args"] = serde_json::from_str(args).unwrap();
    }
    let mut start = rig.start();
    start.caps = Caps { tokens: header(source, "budget").map(|_| 400_000), ..Caps::default() };
    let runtime = rig.life(None).await;
    let lead = runtime.start_call(start, "workflow", &input).await.unwrap();
    let mut take = DriveMode::New;
    for _ in 0..5 {
        let ended = within(runtime.drive(&lead, take, Stop::never(), None)).await.unwrap();
        let program = program(&runtime, &lead).await;
        if ended.outcome.is_some() {
            return program;
        }
        for question in program.questions() {
            let run: RunId = program.spec().unwrap().run.parse().unwrap();
            runtime.answer_checkpoint(&run, question.call, "yes").await.unwrap();
        }
        take = DriveMode::Resume { changed: Vec::new() };
    }
    panic!("it asks for ever");
}

async fn program(runtime: &Runtime, lead: &AgentId) -> Program {
    let run = RunId::derived(&["workflow", lead.as_str(), "person_1"]);
    runtime.program(&run).await.unwrap()
}

/// The scripts, by name.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut names: Vec<_> = std::fs::read_dir(SCRIPTS).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|ext| ext == "js"));
    names.sort();
    let named = |path: std::path::PathBuf| {
        (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap())
    };
    names.into_iter().map(named).collect()
}

async fn every_script(mode: Mode) {
    let rig = rig_of(SimConfig::new(Answers(mode))).await;
    for (name, source) in sources() {
        let program = run(&rig, &source).await;
        let told = format!("{name:?} {mode:?}: {}", program.digest(4_000));
        let threw = match program.end() {
            Some(ProgramEnd::Returned { .. }) => false,
            Some(ProgramEnd::Failed { kind, .. }) if kind == "thrown" => true,
            other => panic!("{told}\n{other:?}"),
        };
        // A loop that goes on until its budget is used up ends with agents that found no room.
        let lost = |call: &&&convoke_kernel::CallState| {
            header(&source, "budget").is_none() || !call.why_lost().starts_with("budget")
        };
        let lost_otherwise = program.losses().iter().filter(lost).count();
        let losses = program.losses().len();
        match mode {
            Mode::Ok => {
                assert!(!threw && lost_otherwise == 0, "{told}");
                assert_eq!(program.status() == Some(ProgramStatus::Complete), losses == 0, "{told}");
            }
            // With every agent dead nothing may call itself complete, whatever the script made of it.
            Mode::Null => assert_ne!(program.status(), Some(ProgramStatus::Complete), "{told}"),
            Mode::Half => {
                assert_eq!(program.status() == Some(ProgramStatus::Complete), losses == 0 && !threw, "{told}")
            }
        }
        if mode == Mode::Null {
            assert_eq!(threw, header(&source, "expect-null") == Some("thrown"), "{told}");
        }
    }
}

#[tokio::test]
async fn every_script_is_complete_when_every_agent_does_its_work() {
    every_script(Mode::Ok).await;
}

#[tokio::test]
async fn no_script_is_complete_when_every_agent_is_dead() {
    every_script(Mode::Null).await;
}

#[tokio::test]
async fn every_script_ends_honestly_when_half_of_its_agents_fail() {
    every_script(Mode::Half).await;
}
