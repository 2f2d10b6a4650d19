//! What a turn costs as a conversation grows: CPU of 1,000 turns of 2 KB over CPU of 100. Ten would be
//! perfect; a program that encodes its whole history every turn is near a hundred. First without sockets,
//! then with the request really written to a simulator in a process of its own.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use convoke_claude::{Client, ClientConfig, ModelPatch, Models, Proxy, Request};
use convoke_journal::{Batch, Journal, Location, Options, Process, StreamId};
use convoke_kernel::{
    Agent, AgentId, AgentSpec, Effect, Event, Input, LeadSettings, Limits, Pace, Reply, RoomAnswer, Segment,
    SessionId, StopReason, ToolCall, Usage,
};
use convoke_runtime::{Clock, Config, Confine, DriveMode, Governor, HelperPath, Ids, Runtime, Start, Stop};
use convoke_sim::{Brain, Context, Retention, Scripted, SimConfig, Simulator};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

const SMALL: u32 = 100;
const LARGE: u32 = 1_000;
const ROUNDS: usize = 3;

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if std::env::args().any(|arg| arg == "serve") {
        return runtime.block_on(serve());
    }
    let dry = ratio(|turns| runtime.block_on(decide_record_assemble(turns)));
    println!("cpu_1000_turns_over_100 {:.1} (decide, record, assemble; {})", dry.0, dry.1);
    let wet = ratio(|turns| runtime.block_on(drive(turns)));
    println!("cpu_1000_turns_over_100_with_socket_writes {:.1} ({})", wet.0, wet.1);
}

/// The median ratio over a few rounds, and the figures of the last one.
fn ratio(run: impl Fn(u32)) -> (f64, String) {
    let mut ratios = Vec::new();
    let mut text = String::new();
    for _ in 0..ROUNDS {
        let small = cpu(|| run(SMALL));
        let large = cpu(|| run(LARGE));
        ratios.push(large / small);
        text = format!("{:.0} ms over {:.0} ms", large, small);
    }
    ratios.sort_by(f64::total_cmp);
    (ratios[ROUNDS / 2], text)
}

/// Milliseconds of CPU this process spends.
fn cpu(work: impl FnOnce()) -> f64 {
    let spent = || {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e3
    };
    let before = spent();
    work();
    spent() - before
}

fn call_input(turn: u32) -> Value {
    json!({"note": format!("{turn} {}", "x".repeat(2_000))})
}

fn spec() -> AgentSpec {
    let start = Start::new("bench", "/");
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([0; 10]),
        dir: "/".into(),
        model: start.model,
        capabilities: start.capabilities,
        limits: Limits { max_turns: LARGE + 1, ..Limits::default() },
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: None,
        team: None,
        extra_system: None,
    })
}

fn reply(turn: u32) -> Reply {
    let id = format!("toolu_{turn}");
    let block = json!({"type": "tool_use", "id": id, "name": "bash", "input": call_input(turn)});
    Reply {
        content: Segment::encode(&json!([block])),
        text: String::new(),
        calls: vec![ToolCall { id, name: "note".into(), input: Segment::encode(&call_input(turn)) }],
        stop: StopReason::ToolUse,
        stop_detail: None,
        usage: Usage::default(),
        cost_nano: Some(1),
        model: "bench".into(),
        request_id: None,
    }
}

async fn decide_record_assemble(turns: u32) {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::current(Ids::random().bits().unwrap());
    let journal =
        Journal::open(Location::Sqlite(dir.path().join("j.db")), Options::new(process)).await.unwrap();
    let stream = StreamId::from(&AgentId::from_bits([1; 10]));
    let lease = journal.own(&stream).await.unwrap();
    let mut agent = Agent::new();
    let mut seq = 0;
    let start = Input::Start { spec: Box::new(spec()), key: "k".into(), text: "go".into() };
    let turn = |turn| {
        let answer = RoomAnswer::Go { max_tokens: 64_000 };
        [Input::Room { call: turn, answer }, Input::Replied { call: turn, reply: Box::new(reply(turn)) }]
    };
    for input in std::iter::once(start).chain((1..=turns).flat_map(turn)) {
        let events = agent.decide(input, 1, Pace::Go).unwrap();
        let encoded = events.iter().map(|event| event.encode().unwrap()).collect();
        let summary = agent.summary_after(&events, 1).unwrap().map(|s| serde_json::to_string(&s).unwrap());
        let batch = Batch { at: 1, events: encoded, summary, ..Batch::default() };
        seq = journal.append(&lease, seq, &batch).await.unwrap();
        events.iter().for_each(|event: &Event| agent.apply(event, 1).unwrap());
        if matches!(agent.pending()[..], [Effect::CallModel { .. }]) {
            let request = agent.request().unwrap();
            let request = Request::new("bench", request.max_tokens, request.messages);
            assert!(!std::hint::black_box(request.body()).is_empty());
        }
    }
    assert_eq!(agent.summary().unwrap().turns, turns);
    journal.close().await.unwrap();
}

/// Calls a tool that does not exist until the last turn: no command runs, and only turns are measured.
struct Chatter;

impl Brain for Chatter {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let text = request["messages"][0]["content"][0]["text"].as_str().unwrap_or_default();
        let turns: usize = text.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(1);
        if context.position >= turns {
            return Scripted::new(vec![json!({"type": "text", "text": "done"})]);
        }
        let id = convoke_sim::tool_use_id(context, "", 0);
        let input = call_input(context.position as u32);
        Scripted::new(vec![json!({"type": "tool_use", "id": id, "name": "note", "input": input})])
    }
}

async fn serve() {
    let mut config = SimConfig::new(Chatter);
    config.keep = Retention::Summaries;
    let patch: ModelPatch =
        serde_json::from_value(json!({"window": 100_000_000u64, "max_output": 64_000})).unwrap();
    config.models.extend([("bench".to_owned(), patch)]).unwrap();
    let simulator = Simulator::start(config).await.unwrap();
    println!("{}", simulator.url());
    simulator.run().await;
}

async fn drive(turns: u32) {
    let mut server =
        Command::new(std::env::current_exe().unwrap()).arg("serve").stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let ids = Ids::random();
    let process = Process::current(ids.bits().unwrap());
    let journal =
        Journal::open(Location::Sqlite(dir.path().join("j.db")), Options::new(process)).await.unwrap();
    let auth = convoke_claude::Auth { key: Some(convoke_claude::Secret::new("k")), bearer: None };
    let client =
        ClientConfig { base_url: url.trim().into(), proxy: Proxy::Off, auth, ..ClientConfig::default() };
    let runtime = Runtime::new(Config {
        journal,
        client: Client::new(client).unwrap(),
        models: Models::builtin(),
        clock: Clock::system(),
        ids,
        helper: HelperPath::new("/nonexistent".into()),
        env: BTreeMap::new(),
        outputs: dir.path().join("outputs"),
        spools: Vec::new(),
        drain: Duration::from_secs(1),
        governor: Governor::new(Clock::system(), 1),
        agents_at_once: 1,
        confine: Confine::nothing(dir.path().join("private")),
        forbidden: Default::default(),
        team: convoke_runtime::TeamConfig::default(),
        programs: convoke_runtime::Programs::without_library(&HelperPath::new("/nonexistent".into())),
        trees: None,
        asker: None,
        tools: Default::default(),
        crash: None,
    });
    let mut start = Start::new("bench", dir.path());
    start.limits.max_turns = LARGE + 10;
    let agent = runtime.start(start, &format!("talk for {turns}")).await.unwrap();
    let ended = runtime.drive(&agent, DriveMode::New, Stop::never(), None).await.unwrap();
    assert_eq!(ended.summary.unwrap().turns, turns + 1, "{:?}", ended.outcome);
    server.kill().unwrap();
    server.wait().unwrap();
}
