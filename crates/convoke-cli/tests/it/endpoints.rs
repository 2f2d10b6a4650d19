//! Five servers and one task: what is sent to each, what is learnt and said, and what it costs beside the
//! best there is. The real binary over HTTP; the servers are the simulator's. `--nocapture` prints the table
//! of `docs/endpoints.md`.

use convoke_claude::Models;
use convoke_sim::{EndpointKind, Fault, FaultKind, Received, SimConfig, Simulator, says};
use serde_json::Value;
use tokio::process::Command;

use crate::stage::{Seen, Stage, Started, patiently, to_its_end};
use crate::team::{Team, role};

const CLAUDE: &str = "claude-opus-4-8";
const SUBTASKS: [&str; 8] =
    ["low one", "low two", "low three", "low four", "low five", "low six", "low seven", "low eight"];

/// A local model that costs what the other one does, so that the prices can be compared.
const LOCAL: &str = "window = 200000\nmax_output = 32000\n\
    prices = [{input = 5, output = 25, cache_read = 0.5, cache_write_5m = 6.25, cache_write_1h = 10}]";

/// The table of models with a local one in it.
fn knowing(local: &str) -> Models {
    let mut models = Models::builtin();
    models.extend([("local".to_owned(), toml::from_str(local).unwrap())]).unwrap();
    models
}

/// A home without any word about the server, and the server.
struct HomeAndServer {
    stage: Stage,
    sim: Simulator,
}

impl HomeAndServer {
    async fn with(config: SimConfig) -> Self {
        let stage = Stage::bare();
        let sim = Simulator::start(config).await.unwrap();
        std::fs::write(stage.work().join("a.txt"), "first line\nsecond line\n").unwrap();
        Self { stage, sim }
    }

    async fn of(kind: EndpointKind) -> Self {
        let config = SimConfig::new(Team::fanning_out(&SUBTASKS)).endpoint(kind);
        Self::with(SimConfig { models: knowing(LOCAL), ..config }).await
    }

    fn write(&self, text: &str) {
        let dir = self.stage.home().join(".config/convoke");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    fn ready(&self, mut command: Command) -> Command {
        command.env("ANTHROPIC_BASE_URL", self.sim.url()).env("ANTHROPIC_API_KEY", "k");
        command
    }

    async fn run(&self, args: &[&str]) -> Seen {
        to_its_end(self.ready(self.stage.command(args))).await
    }

    /// Requests that were taken, and how many were refused.
    fn requests(&self) -> (Vec<Received>, usize) {
        let all = self.sim.requests();
        let count = all.len();
        let taken: Vec<Received> = all.into_iter().filter(|request| request.verdict.is_accepted()).collect();
        assert!(taken.iter().all(|request| request.prefix_break.is_none()), "the cache is kept");
        let refused = count - taken.len();
        (taken, refused)
    }
}

/// What a request carries of what a server may refuse.
fn sent(request: &Received) -> Vec<&'static str> {
    let body: &Value = &request.body;
    let system = body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "system");
    let parts = [
        ("marks", body.get("cache_control").is_some()),
        ("thinking", body.get("thinking").is_some()),
        ("effort", body["output_config"]["effort"] == "xhigh"),
        ("system", system),
    ];
    parts.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

fn warnings(seen: &Seen) -> Vec<String> {
    let about = |line: &&str| {
        line.starts_with("warning: ") && (line.contains("[endpoints.") || line.contains("cache"))
    };
    seen.stderr.lines().filter(about).map(str::to_owned).collect()
}

struct Told {
    name: &'static str,
    sent: String,
    refused: usize,
    said: Vec<String>,
    nano: u64,
    read: u64,
}

async fn play(
    name: &'static str,
    kind: EndpointKind,
    model: &str,
    config: impl FnOnce(&str) -> String,
) -> Told {
    let place = HomeAndServer::of(kind).await;
    place.write(&config(&place.sim.url()));
    let seen = place.run(&["--model", model, "--verify", "1", "review", "it", "all"]).await.exits(0);
    assert_eq!(seen.stdout, "The synthesis.\n", "{name}");
    let (taken, refused) = place.requests();
    // Two turns of the lead, of eight workers and of eight verifiers.
    assert_eq!(taken.len(), 34, "{name}");
    let lead = taken.iter().rfind(|request| role(&request.body) == "lead").unwrap();
    let workers: Vec<Vec<&str>> =
        taken.iter().filter(|request| role(&request.body) != "lead").map(sent).collect();
    let first: Vec<&str> = sent(lead).into_iter().filter(|part| *part != "system").collect();
    assert!(workers.iter().all(|worker| *worker == first), "{name}: {workers:?}");
    let usage = |part: fn(&convoke_sim::Usage) -> u64| {
        taken.iter().filter_map(|r| r.usage.as_ref()).map(part).sum::<u64>()
    };
    let read = usage(|usage| usage.cache_read_tokens);
    let sent = if sent(lead).is_empty() { "plain".to_owned() } else { sent(lead).join(", ") };
    let url = place.sim.url();
    let said = warnings(&seen).into_iter().map(|line| line.replace(&url, "URL")).collect();
    Told { name, sent, refused, said, nano: place.sim.bill().total_nano, read }
}

#[tokio::test]
async fn five_servers_are_each_sent_what_they_take_and_what_they_lack_is_said() {
    let local = |_: &str| format!("[models.local]\n{LOCAL}\n");
    let stated = |url: &str| format!("[endpoints.\"{url}\"]\nprofile = \"anthropic\"\n");
    let told = [
        play("Anthropic", EndpointKind::Anthropic, CLAUDE, stated).await,
        play("faithful gateway", EndpointKind::Gateway, CLAUDE, |_| String::new()).await,
        play("drops fields silently", EndpointKind::Dropping, CLAUDE, |_| String::new()).await,
        play("refuses two fields", EndpointKind::Refusing, CLAUDE, |_| String::new()).await,
        play("plain local server", EndpointKind::Generic, "local", local).await,
    ];
    let best = told[0].nano;
    println!(
        "| server | sent | refused requests | tokens from the cache | price | beside the best \
            |\n|---|---|---|---|---|---|"
    );
    for row in &told {
        let price = row.nano as f64 / 1e9;
        let beside = row.nano as f64 / best as f64;
        println!(
            "| {} | {} | {} | {} | ${price:.3} | {beside:.2} |",
            row.name, row.sent, row.refused, row.read
        );
    }
    told.iter().for_each(|row| println!("{}: {:#?}", row.name, row.said));
    let [anthropic, gateway, dropping, refusing, plain] = &told;
    for whole in [anthropic, gateway, dropping] {
        assert_eq!(
            (whole.sent.as_str(), whole.refused),
            ("marks, thinking, effort, system", 0),
            "{}",
            whole.name
        );
    }
    assert!(anthropic.said.is_empty() && gateway.said.is_empty());
    assert!(gateway.read > 0 && gateway.nano < best * 11 / 10, "{} and {best}", gateway.nano);
    assert_eq!(dropping.read, 0);
    assert_eq!(dropping.said.len(), 1, "{:?}", dropping.said);
    assert!(
        dropping.said[0].contains("URL takes cache marks with claude-opus-4-8 and does nothing about it")
    );
    assert!(dropping.said[0].ends_with("[endpoints.\"URL\"] cache_marks = false"), "{:?}", dropping.said);
    assert_eq!(
        (refusing.sent.as_str(), refusing.refused, refusing.said.len()),
        ("thinking, system", 2, 2),
        "one refusal for each field in the whole session"
    );
    for (line, setting) in refusing.said.iter().zip(["effort = false", "cache_marks = false"]) {
        assert!(
            line.contains("URL does not take") && line.ends_with(&format!("[endpoints.\"URL\"] {setting}")),
            "{line}"
        );
    }
    assert_eq!((plain.sent.as_str(), plain.refused, plain.said.len()), ("plain", 0, 1));
    assert!(
        plain.said[0].ends_with("if it takes them: [endpoints.\"URL\"] profile = \"anthropic\""),
        "{:?}",
        plain.said
    );
}

#[tokio::test]
async fn a_claude_model_behind_a_plain_server_is_asked_in_the_end_and_every_lesson_is_said_once() {
    let place = HomeAndServer::of(EndpointKind::Generic).await;
    let seen = place.run(&["review", "it", "all"]).await.exits(0);
    let (taken, refused) = place.requests();
    assert_eq!((seen.stdout.as_str(), taken.len(), refused), ("The synthesis.\n", 34, 4));
    assert!(taken.iter().all(|request| sent(request).is_empty()));
    let said = warnings(&seen);
    assert_eq!(said.len(), 4, "{said:?}");
    let lead = taken.iter().find(|request| role(&request.body) == "lead").unwrap();
    let first = lead.body["messages"][0]["content"].as_array().unwrap();
    assert!(
        first.last().unwrap()["text"].as_str().unwrap().starts_with("<system-reminder>"),
        "the mode is told all the same"
    );
}

#[tokio::test]
async fn a_resume_after_the_lesson_sends_the_learnt_form() {
    let place = HomeAndServer::of(EndpointKind::Refusing).await;
    // The lead has learnt its lessons and waits for its second reply when the process dies.
    let hold = place.sim.hold("review it all", 1, 0);
    let mut run = Started::of(place.ready(place.stage.command(&["review", "it", "all"])));
    run.says("cache_marks = false").await;
    patiently("the second turn of the lead", hold.entered()).await;
    run.signal("KILL");
    run.code().await;
    drop(hold);
    let before = place.sim.requests().len();
    let seen = place.run(&["resume"]).await.exits(0);
    assert_eq!(seen.stdout, "The synthesis.\n");
    let after = place.sim.requests().split_off(before);
    assert!(!after.is_empty());
    for request in &after {
        assert!(request.verdict.is_accepted(), "{:?}", request.verdict);
        assert!(!sent(request).contains(&"marks") && !sent(request).contains(&"effort"));
    }
    assert!(warnings(&seen).is_empty(), "it was said before: {}", seen.stderr);
}

#[tokio::test]
async fn a_refusal_of_what_a_worker_did_not_send_teaches_nobody() {
    let place = HomeAndServer::of(EndpointKind::Gateway).await;
    // A worker has no system message inside its conversation; the lead has one.
    let text = "messages.1.role: Input should be 'user' or 'assistant'";
    place.sim.push_fault(Fault::new(FaultKind::BadRequest400(text.to_owned())).opening("low one").times(1));
    let seen = place.run(&["review", "it", "all"]).await.exits(3);
    let leads: Vec<Received> =
        place.requests().0.into_iter().filter(|request| role(&request.body) == "lead").collect();
    assert_eq!(leads.len(), 2);
    assert!(leads.iter().all(|lead| sent(lead).contains(&"system")), "the lead goes on as it began");
    assert!(warnings(&seen).is_empty(), "{}", seen.stderr);
}

#[tokio::test]
async fn a_window_that_a_refusal_names_is_kept_to_by_the_run_its_workers_and_a_resume() {
    let place = HomeAndServer::of(EndpointKind::Generic).await;
    place.write(&format!("[models.local]\n{LOCAL}\n"));
    // As vLLM says it, which counts the prompt and the room for the reply together.
    let said = "This model's maximum context length is 40000 tokens. However, you requested 41031 tokens";
    place.sim.push_fault(Fault::new(FaultKind::BadRequest400(said.to_owned())));
    let seen = place.run(&["--model", "local", "review", "it", "all"]).await.exits(0);
    let told: Vec<&str> =
        seen.stderr.lines().filter(|line| line.contains("tokens at once with local")).collect();
    let setting = "To settle it for good: --window 40000, or [models.\"local\"] window = 40000";
    assert!(matches!(told[..], [line] if line.ends_with(setting)), "{}", seen.stderr);
    let rooms = |from: usize| -> Vec<u64> {
        place.sim.requests()[from..]
            .iter()
            .map(|request| request.body["max_tokens"].as_u64().unwrap())
            .collect()
    };
    let all = rooms(0);
    // The refused one, two turns of the lead, of eight workers and of eight verifiers.
    assert_eq!((all.len(), all[0]), (35, 32_000));
    assert!(all[1..].iter().all(|room| *room <= 20_000), "{all:?}");
    let again = place.run(&["resume", "last", "--say", "and now?"]).await;
    assert!(
        rooms(35).iter().all(|room| *room <= 20_000) && !rooms(35).is_empty(),
        "{:?} {}",
        rooms(35),
        again.stderr
    );
    assert!(!again.stderr.contains("tokens at once with local"), "it was said before: {}", again.stderr);
}

#[tokio::test]
async fn what_a_reply_teaches_is_recorded_behind_the_reply_that_was_paid_for() {
    let place = HomeAndServer::of(EndpointKind::Dropping).await;
    let lines = place.run(&["--output", "jsonl", "review", "it", "all"]).await.exits(0).lines();
    let learnt: Vec<&Value> = lines.iter().filter(|line| line["type"] == "endpoint_learnt").collect();
    assert!(matches!(learnt[..], [one] if one["how"] == "ignored"), "{learnt:?}");
    // Between the request and its reply nothing is written: a crash there would ask for what is paid.
    let seq = |line: &Value| line["seq"].as_u64().unwrap_or_default();
    let before =
        lines.iter().filter(|line| line["stream"] == learnt[0]["stream"] && seq(line) < seq(learnt[0]));
    let kinds: Vec<&str> = before.map(|line| line["type"].as_str().unwrap()).collect();
    let called = kinds.iter().rposition(|it| *it == "model_called");
    let replied = "model_replied";
    assert!(kinds[called.unwrap()..].contains(&replied), "{kinds:?}");
}

#[tokio::test]
async fn the_doctor_takes_no_limit_of_the_server_for_a_refused_part() {
    let place =
        HomeAndServer::with(SimConfig::new(Team::new([says("ok")])).endpoint(EndpointKind::Gateway)).await;
    // The plainest request is answered; the one behind it, with cache marks, meets a limit.
    place.sim.push_fault(Fault::new(FaultKind::Drip(1)));
    place.sim.push_fault(Fault::new(FaultKind::RateLimited { retry_after: Some(0), headers: false }));
    let seen = place.run(&["doctor", "--probe"]).await;
    let row = seen.stdout.lines().find(|line| line.starts_with("cache marks")).unwrap();
    assert!(row.contains(" failed: ") && !row.contains("refused"), "{}", seen.stdout);
    assert!(!seen.stdout.contains("cache_marks = false"), "{}", seen.stdout);
}

#[tokio::test]
async fn a_server_that_refuses_the_newer_version_is_sent_the_older_one() {
    let place =
        HomeAndServer::with(SimConfig::new(Team::new([says("Done.")])).endpoint(EndpointKind::Gateway)).await;
    let text = "anthropic-version: \"2026-10-21\" is not a valid version";
    place.sim.push_fault(Fault::new(FaultKind::BadRequest400(text.to_owned())));
    let seen = place.run(&["--mode", "off", "--output", "json", "say", "it"]).await.exits(0);
    let versions: Vec<String> =
        place.sim.requests().iter().map(|request| request.headers["anthropic-version"].clone()).collect();
    assert_eq!(versions, ["2026-10-21", "2023-06-01"]);
    let warnings = seen.json()["warnings"].to_string();
    assert!(warnings.contains("version = \\\"2023-06-01\\\""), "{warnings}");
}

#[tokio::test]
async fn the_doctor_tries_each_part_and_says_what_doing_without_it_costs() {
    let place =
        HomeAndServer::with(SimConfig::new(Team::new([says("ok")])).endpoint(EndpointKind::Refusing)).await;
    let seen = place.run(&["doctor", "--probe"]).await;
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    let row = |begin: &str| {
        seen.stdout
            .lines()
            .find(|line| line.starts_with(begin))
            .unwrap_or_else(|| panic!("{begin}: {}", seen.stdout))
    };
    assert!(row("cache marks").contains("refused: cache_control: Extra inputs are not permitted"));
    assert!(row("cache marks").contains("costs $5.00 instead of $0.50 per million tokens, 10 times as much"));
    assert!(row("effort").contains("refused: output_config"));
    for part in ["thinking", "system messages inside", "tools without a schema", "the newer API version"] {
        assert!(row(part).contains(" taken "), "{}", row(part));
    }
    assert!(row("models:").contains("window 1000000, replies up to 128000 tokens, as in the table"));
    assert!(row("tried with").contains("6 requests for $0.0"), "{}", row("tried with"));
    let settings = format!("[endpoints.\"{}\"]\ncache_marks = false\neffort = false\n", place.sim.url());
    assert!(seen.stdout.ends_with(&settings), "{}", seen.stdout);
    assert!(place.sim.requests().iter().all(|request| request.body["max_tokens"] == 16));
    // What it says to write is all that is needed.
    place.write(&settings);
    let before = place.sim.requests().len();
    let seen = place.run(&["--mode", "off", "say", "it"]).await.exits(0);
    assert!(warnings(&seen).is_empty(), "{}", seen.stderr);
    assert!(place.sim.requests()[before..].iter().all(|request| request.verdict.is_accepted()));
    let shown = place.run(&["config", "show"]).await.exits(0).stdout;
    for (member, value) in
        [("cache_marks", "false"), ("effort", "false"), ("thinking", "true"), ("system_role", "true")]
    {
        let key = format!("endpoints.\"{}\".{member}", place.sim.url());
        let line =
            shown.lines().find(|line| line.starts_with(&key)).unwrap_or_else(|| panic!("{key}: {shown}"));
        assert_eq!(line.split_whitespace().nth(1), Some(value), "{line}");
    }
}

#[tokio::test]
async fn anthropics_api_says_how_long_replies_may_be_and_what_a_person_states_goes_over_that() {
    let mut models = Models::builtin();
    models.extend([(CLAUDE.to_owned(), toml::from_str("max_output = 20000").unwrap())]).unwrap();
    let config = SimConfig { models, ..SimConfig::new(Team::new([says("Done.")])) };
    let place = HomeAndServer::with(config).await;
    let profile = format!("[endpoints.\"{}\"]\nprofile = \"anthropic\"\n", place.sim.url());
    let sends = async |config: &str, room: u64| {
        place.write(config);
        place.run(&["--fresh", "--mode", "off", "say", "it"]).await.exits(0);
        assert_eq!(place.sim.requests().last().unwrap().body["max_tokens"], room, "{config}");
    };
    sends(&profile, 20_000).await;
    sends(&format!("{profile}[models.\"{CLAUDE}\"]\nmax_output = 10000\n"), 10_000).await;
}

#[tokio::test]
async fn a_server_says_how_large_a_model_is_that_the_table_does_not_know() {
    let models = knowing("window = 50000\nmax_output = 9000\nprices = [{input = 1, output = 2}]");
    let config =
        SimConfig { models, ..SimConfig::new(Team::new([says("Done.")])).endpoint(EndpointKind::Generic) };
    let place = HomeAndServer::with(config).await;
    let seen =
        place.run(&["--model", "local", "--mode", "off", "--budget-usd", "none", "say", "it"]).await.exits(0);
    assert!(
        seen.stderr.contains("its server says of `local`: window 50000, replies 9000, no price"),
        "{}",
        seen.stderr
    );
    assert_eq!(place.sim.requests()[0].body["max_tokens"], 9_000);
}
