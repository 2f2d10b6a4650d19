//! Orchestration mode over HTTP: what the requests of a session hold when the switch is turned, turns fail
//! and the server does or does not know system messages inside a conversation.

use convoke_claude::{Endpoint, Models, capabilities, ceilings};
use convoke_kernel::{AgentId, Child, FailureKind, FanOut, Outcome};
use convoke_runtime::{DriveMode, Runtime, Start, Stop};
use convoke_sim::{EndpointKind, Fault, FaultKind, Received, Reply, Script, SimConfig, refuses, says};
use serde_json::Value;

use crate::cache::assert_bytes_kept;
use crate::support::{MODEL, Rig, within};

/// A model and the kind of server it is behind.
#[derive(Clone, Copy)]
struct ModelAndServer {
    model: &'static str,
    endpoint: EndpointKind,
}

const WITH_ROLE: ModelAndServer = ModelAndServer { model: MODEL, endpoint: EndpointKind::Anthropic };
const WITHOUT_ROLE: ModelAndServer =
    ModelAndServer { model: "claude-opus-4-7", endpoint: EndpointKind::Anthropic };
const OLD_SERVER: ModelAndServer = ModelAndServer { model: MODEL, endpoint: EndpointKind::Generic };

/// Replies to as many turns as a test has; what is told to be refused is.
fn replies() -> Vec<Reply> {
    (0..40)
        .map(|turn| says(&format!("reply {turn}")).when_last_contains("refuse this", refuses("no")))
        .collect()
}

struct Session {
    rig: Rig,
    runtime: Runtime,
    start: Start,
    lead: Option<AgentId>,
    inputs: usize,
}

impl Session {
    async fn new(place: ModelAndServer, mode: bool) -> Self {
        let script = SimConfig::from(Script::new().conversation("*", replies()));
        let rig = Rig::new(script.endpoint(place.endpoint)).await;
        let start = start(&rig, place.model, place.endpoint, mode);
        Self { runtime: rig.life(None).await, rig, start, lead: None, inputs: 0 }
    }

    /// Says something; it waits until the agent is driven.
    async fn say(&mut self, text: &str) {
        self.inputs += 1;
        match &self.lead {
            Some(lead) => self.runtime.say(lead, &format!("say {}", self.inputs), text).await.unwrap(),
            None => self.lead = Some(self.runtime.start(self.start.clone(), text).await.unwrap()),
        }
    }

    async fn switch(&mut self, on: bool) {
        self.inputs += 1;
        let lead = self.lead.as_ref().unwrap();
        let key = format!("mode {}", self.inputs);
        self.runtime.set_mode(lead, &key, on).await.unwrap();
    }

    async fn drive(&self, mode: DriveMode) -> Option<Outcome> {
        let lead = self.lead.as_ref().unwrap();
        within(self.runtime.drive(lead, mode, Stop::never(), None)).await.unwrap().outcome
    }

    /// Plays `+` and `-` (the switch), `.` (a turn that is answered), `x` (one whose reply fails for good)
    /// and `r` (one that the model refuses), each driven before the next.
    async fn play(&mut self, script: &str) {
        for step in script.chars() {
            match step {
                '+' | '-' => self.switch(step == '+').await,
                _ => {
                    if step == 'x' {
                        let refused = FaultKind::BadRequest400("simulator: refused on demand".to_owned());
                        self.rig.sim.push_fault(Fault::new(refused));
                    }
                    let text = if step == 'r' { "refuse this" } else { "look" };
                    self.say(&format!("{text}, said as {}", self.inputs)).await;
                    let outcome = self.drive(DriveMode::New).await.unwrap();
                    assert_eq!(outcome.failure().is_none(), step == '.', "{step}: {outcome:?}");
                }
            }
        }
    }

    /// What each turn carried: `E`ntry, `R`efresher, e`X`it or `_`.
    fn carried(&self) -> String {
        self.rig.sim.requests().iter().map(|request| mark(told(request))).collect()
    }
}

fn start(rig: &Rig, model: &str, endpoint: EndpointKind, mode: bool) -> Start {
    let table = Models::builtin().get(model);
    let endpoint =
        if endpoint == EndpointKind::Generic { Endpoint::generic() } else { Endpoint::anthropic() };
    let capabilities = capabilities(&table, &endpoint, None).unwrap();
    let known = Rig::fanning_out();
    let rates = ceilings(&table);
    let child = Child { model: model.to_owned(), capabilities: capabilities.clone(), rates, ..known.child };
    let fan_out = Some(FanOut { mode, child, ..known });
    Start { model: model.to_owned(), capabilities, fan_out, ..rig.start() }
}

/// What the newest turn of a request was told about the mode. Checks that it stands where it belongs.
fn told(request: &Received) -> Option<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    match last["role"].as_str().unwrap() {
        "system" => {
            assert_eq!(messages[messages.len() - 2]["role"], "user", "behind the user message it applies to");
            Some(last["content"][0]["text"].as_str().unwrap().to_owned())
        }
        _ => last["content"].as_array().unwrap().iter().find_map(reminder),
    }
}

/// What the person said last.
fn newest(request: &Received) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    let user = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    user["content"][0]["text"].as_str().unwrap().to_owned()
}

fn reminder(block: &Value) -> Option<String> {
    let text = block["text"].as_str()?;
    let inside = text.strip_prefix("<system-reminder>\n")?.strip_suffix("\n</system-reminder>")?;
    Some(inside.to_owned())
}

fn mark(told: Option<String>) -> char {
    match told.as_deref().and_then(|text| text.lines().next()) {
        None => '_',
        Some("[orchestration mode: on]") => 'E',
        Some("[orchestration mode: still on]") => 'R',
        Some("[orchestration mode: off]") => 'X',
        Some(other) => panic!("{other}"),
    }
}

/// Plays a session at every kind of place and compares what its turns carried.
async fn check(mode: bool, script: &str, expected: &str) {
    for place in [WITH_ROLE, WITHOUT_ROLE, OLD_SERVER] {
        let mut session = Session::new(place, mode).await;
        session.play(script).await;
        assert_eq!(session.carried(), expected, "{script} on {} ({:?})", place.model, place.endpoint);
        let refused = |request: &Received| newest(request).contains("refuse this");
        assert_bytes_kept(&session.rig.sim.requests(), refused);
    }
}

#[tokio::test]
async fn d2_1_d2_2_a_new_session_is_told_at_length_and_later_in_a_line() {
    check(true, "............-.", "E_________R_X").await;
    let mut session = Session::new(WITH_ROLE, true).await;
    session.play("...........-.").await;
    let texts: Vec<String> = session.rig.sim.requests().iter().filter_map(told).collect();
    let [entry, refresher, exit] = texts.as_slice() else { panic!("{texts:?}") };
    for word in ["thorough", "Workflow", "every substantive request", "natural seams", "Work alone only"] {
        assert!(entry.contains(word), "{word} is not in {entry}");
    }
    for line in [refresher, exit] {
        assert_eq!(line.lines().count(), 2, "its name and one line: {line}");
    }
}

#[tokio::test]
async fn d2_3_d2_4_a_switch_that_changes_nothing_or_nobody_heard_of_is_not_told() {
    check(true, ".+.+.", "E__").await;
    check(false, "..-.", "___").await;
    check(true, ".-..", "EX_").await;
    check(false, ".+-.", "__").await;
}

#[tokio::test]
async fn d2_5_off_and_on_between_two_turns_sends_nothing() {
    check(true, ".-+.-+-+.", "E__").await;
}

#[tokio::test]
async fn d2_9_off_a_turn_and_on_again_sends_the_whole_text_again() {
    check(true, ".-.+..", "EXE_").await;
    check(false, ".+.-.+.", "_EXE").await;
}

#[tokio::test]
async fn d2_7_d2_8_the_refresher_comes_every_ten_user_turns_and_failed_turns_do_not_count() {
    check(true, ".....................", "E_________R_________R").await;
    check(true, "x.....x.....", "EE__________").await;
    check(true, "..........x..", "E_________RR_").await;
}

#[tokio::test]
async fn a_turn_that_failed_owes_its_section_to_the_next_one() {
    check(true, "xx..", "EEE_").await;
    check(true, "r.r.", "EE__").await;
    check(true, ".-xr..", "EXXX_").await;
    check(true, ".-x+..", "EX__").await;
    check(true, "x-.+.", "E_E").await;
}

#[tokio::test]
async fn d2_6_d2_11_the_user_speaks_first_and_the_system_message_follows() {
    let mut session = Session::new(WITH_ROLE, true).await;
    session.play("x.-.").await;
    let requests = session.rig.sim.requests();
    let roles = |request: &Received| -> Vec<String> {
        let messages = request.body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    // What failed is gone, message and section together.
    assert_eq!(roles(&requests[0]), ["user", "system"]);
    assert_eq!(roles(&requests[1]), ["user", "system"]);
    assert_eq!(roles(&requests[2]), ["user", "system", "assistant", "user", "system"]);
}

#[tokio::test]
async fn d2_10_the_top_level_system_stays_whatever_the_switch_does() {
    for place in [WITH_ROLE, WITHOUT_ROLE, OLD_SERVER] {
        let mut session = Session::new(place, true).await;
        session.play(".-.+.x-.").await;
        let requests = session.rig.sim.requests();
        let first = &requests[0].body;
        assert!(!first["system"].to_string().contains("orchestration mode"), "{}", first["system"]);
        for request in &requests {
            assert_eq!(
                (&request.body["system"], &request.body["tools"]),
                (&first["system"], &first["tools"])
            );
        }
    }
}

#[tokio::test]
async fn switches_and_words_that_wait_are_taken_in_the_order_they_came() {
    let mut session = Session::new(WITH_ROLE, true).await;
    session.say("one").await;
    session.switch(false).await;
    session.say("two").await;
    session.switch(true).await;
    session.switch(false).await;
    session.switch(true).await;
    session.say("three").await;
    session.say("four").await;
    let outcome = session.drive(DriveMode::New).await;
    assert_eq!(outcome, Some(Outcome::Ok { text: "reply 3".into() }));
    assert_eq!(session.carried(), "EXE_");
}

#[tokio::test]
async fn a_failed_first_turn_that_is_resumed_is_offered_again_as_the_switch_stands_then() {
    for (switched, expected) in [(false, "EE"), (true, "E_")] {
        let mut session = Session::new(WITH_ROLE, true).await;
        session.play("x").await;
        if switched {
            session.switch(false).await;
        }
        let outcome = session.drive(DriveMode::Resume { changed: vec![] }).await;
        assert_eq!(outcome, Some(Outcome::Ok { text: "reply 0".into() }));
        assert_eq!(session.carried(), expected);
    }
}

/// The mission knew one model with the role; the table knows more, and every one of them is asked in its own
/// way.
#[tokio::test]
async fn d1_7_system_messages_go_to_the_models_that_take_them_and_marked_reminders_to_the_others() {
    let mut with = 0;
    let mut without = 0;
    for model in Models::builtin().iter().filter(|model| model.id.starts_with("claude")) {
        let script = Script::new().conversation("*", [says("ok")]);
        let rig = Rig::new(script).await;
        let start = start(&rig, &model.id, EndpointKind::Anthropic, true);
        let runtime = rig.life(None).await;
        let lead = runtime.start(start, "look").await.unwrap();
        let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
        assert_eq!(ended.outcome, Some(Outcome::Ok { text: "ok".into() }), "{}", model.id);
        let requests = rig.sim.requests();
        let by_role = requests[0].body["messages"].as_array().unwrap().last().unwrap()["role"] == "system";
        assert_eq!((by_role, mark(told(&requests[0]))), (model.system_role, 'E'), "{}", model.id);
        *(if by_role { &mut with } else { &mut without }) += 1;
    }
    println!("{with} models by system message, {without} by reminder");
    assert!(with > 1 && without > 1);
}

#[tokio::test]
async fn a_refused_turn_is_a_failure_and_leaves_no_trace_in_the_next_request() {
    let mut session = Session::new(WITHOUT_ROLE, true).await;
    session.say("refuse this").await;
    let refused = session.drive(DriveMode::New).await.unwrap();
    assert_eq!(refused.failure(), Some(FailureKind::Refused));
    session.play(".").await;
    let requests = session.rig.sim.requests();
    assert_eq!(requests[1].body["messages"].as_array().unwrap().len(), 1);
    assert!(!requests[1].body.to_string().contains("refuse this"));
}
