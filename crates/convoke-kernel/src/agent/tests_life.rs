//! Random lives of a lead: crashes, failures, useless replies, stops, files that change, a mode that is
//! switched, runs in the background and calls of the person's own, in any order. Whatever happened before,
//! every request is legal, begins with what was answered, and is right about the mode.

use serde_json::{Value, json};

use super::tests::{Bench, calls, done, reply, says};
use super::tests_roles::{lead, of, tool_calls};
use super::*;
use crate::approval::AskWhen;
use crate::outcome::ToolResult;
use crate::wire::{Failure, FailureKind, Reply, Retry, StopReason};

/// Plays a random life of a lead and checks every request it makes.
struct Life {
    bench: Bench,
    draw: u64,
    ids: u32,
    /// The messages of the last request whose reply was kept, with that reply.
    answered: Vec<Segment>,
}

impl Life {
    fn below(&mut self, limit: u64) -> u64 {
        self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.draw >> 33) % limit
    }

    fn step(&mut self) {
        let changed = if self.below(2) == 0 { vec![format!("f{}.rs", self.ids)] } else { vec![] };
        let crash = self.below(8) == 0;
        let stop = self.below(40) == 0;
        let input = match self.bench.agent.pending().first() {
            _ if crash => Input::Resume { changed },
            _ if stop => Input::StopExchange { by: "a person".into() },
            None if self.below(3) == 0 => Input::SetMode { on: self.below(2) == 0 },
            None | Some(Effect::DriveRun { .. }) if self.below(8) == 0 => {
                let input = Segment::from_json(r#"{"name":"review"}"#).unwrap();
                Input::Call { key: format!("c{}", self.ids), text: "workflow review".into(), input }
            }
            Some(Effect::DriveRun { run }) if self.below(2) == 0 => {
                Input::Told { key: format!("n{run}"), run: run.clone(), text: "a workflow ended".into() }
            }
            Some(Effect::DriveRun { .. }) => {
                Input::Say { key: format!("k{}", self.ids), text: "meanwhile".into() }
            }
            None => Input::Say { key: format!("k{}", self.ids), text: "go on".into() },
            Some(Effect::AskRoom { call, .. }) => {
                let call = *call;
                let why = "short".to_owned();
                let answer = match self.below(12) {
                    0 => RoomAnswer::HandBack { max_tokens: 8_000, why },
                    1 => RoomAnswer::Refused { why },
                    _ => RoomAnswer::Go { max_tokens: 64_000 },
                };
                Input::Room { call, answer }
            }
            Some(Effect::CallModel { call, attempt }) => {
                let call = *call;
                let attempt = *attempt;
                self.check();
                match self.below(4) {
                    0 => {
                        let kind = [FailureKind::Api, FailureKind::Interrupted, FailureKind::Transport];
                        let retry = [Retry::Never, Retry::Soon][self.below(2) as usize];
                        let kind = kind[self.below(3) as usize];
                        let message = "it broke".to_owned();
                        let failure = Failure {
                            kind,
                            message,
                            retry,
                            request_id: None,
                            unbilled: false,
                            refused: None,
                        };
                        Input::Failed { call, attempt, failure }
                    }
                    _ => Input::Replied { call, reply: self.reply() },
                }
            }
            Some(Effect::AskPerson { id, .. }) => {
                let id = id.clone();
                let allow = self.below(2) == 0;
                Input::Answered { id, allow, by: "a person".into() }
            }
            Some(Effect::RunTool { id, .. }) => {
                let launched = (self.below(3) == 0).then(|| format!("wf_{}", self.ids));
                let is_error = self.below(6) == 0;
                Input::ToolDone { id: id.clone(), result: ToolResult { launched, is_error, ..done("seen") } }
            }
        };
        let before = self.bench.agent.history().len();
        let kinds = self.bench.feed_bare(input, Pace::Go).len();
        let new = &self.bench.events[self.bench.events.len() - kinds..];
        if new.iter().any(|event| matches!(event, Event::ModelReplied(e) if e.kept == Kept::Yes)) {
            self.answered = self.bench.agent.history()[..=before].to_vec();
        }
    }

    fn reply(&mut self) -> Box<Reply> {
        self.ids += 1;
        let text = json!([{"type": "text", "text": "x"}]);
        let id = format!("t{}", self.ids);
        match self.below(11) {
            0 => reply(json!([]), StopReason::EndTurn),
            1 => reply(json!([{"type": "thinking", "thinking": "", "signature": "s"}]), StopReason::EndTurn),
            2 => reply(text, StopReason::MaxTokens),
            3 => reply(text, StopReason::Refusal),
            4 => reply(text, StopReason::PauseTurn),
            5 => tool_calls(vec![]),
            6 => reply(text, StopReason::Other("eclipse".into())),
            7 | 8 => calls(&[&id]),
            _ => says("x"),
        }
    }

    fn check(&self) {
        let history = self.bench.agent.history();
        assert!(history.starts_with(&self.answered), "a request begins with what was answered before");
        let read = |segment: &Segment| serde_json::from_str::<Value>(segment.as_str()).unwrap();
        let messages: Vec<Value> = history.iter().map(read).collect();
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles[0], "user");
        for pair in roles.windows(2) {
            let legal = !matches!(pair, ["system", "user" | "system"] | ["assistant", "system"]);
            assert!(legal, "{roles:?}");
        }
        let paused = messages.last().unwrap()["content"] == json!([{"type": "text", "text": "x"}]);
        assert!(*roles.last().unwrap() != "assistant" || paused, "{roles:?}");
        for (at, message) in messages.iter().enumerate() {
            let calls =
                message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
            let ids: Vec<&Value> = calls.map(|block| &block["id"]).collect();
            let answers = messages.get(at + 1).and_then(|next| next["content"].as_array());
            let answered = |id: &Value| {
                answers.is_some_and(|blocks| blocks.iter().any(|block| block["tool_use_id"] == *id))
            };
            assert!(ids.into_iter().all(answered), "every call is answered in the next message");
        }
        let texts = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
        let told = texts
            .filter_map(|block| block["text"].as_str())
            .filter(|text| text.contains("[orchestration mode:"));
        let told: Vec<&str> = told.collect();
        let on = told.last().is_some_and(|text| !text.contains("mode: off]"));
        // A change of the mode is told with the next user turn; an
        // exchange that is merely taken up again is none.
        let last = |kind| self.bench.events.iter().rposition(|event| event.kind() == kind);
        if last("exchange_opened") > last("mode_set") {
            assert_eq!(
                self.bench.agent.mode(),
                Some(on),
                "what it was told last is where the switch stands: {told:?}"
            );
        }
    }
}

#[test]
fn whatever_fails_no_request_is_illegal_or_wrong_about_the_mode() {
    let mut requests = 0;
    let mut notices = 0;
    let mut stops = 0;
    for seed in 0..120 {
        let mut spec = lead(seed % 3 != 0, seed % 2 == 0, 4);
        spec.approvals.ask = if seed % 5 == 0 { AskWhen::Always } else { AskWhen::Never };
        let bench = of(spec, "begin");
        let mut life = Life { bench, draw: seed + 1, ids: 0, answered: Vec::new() };
        (0..120).for_each(|_| life.step());
        let calls = life.bench.events.iter().filter(|event| matches!(event, Event::ModelCalled(_))).count();
        requests += calls;
        stops += life.bench.events.iter().filter(|event| matches!(event, Event::ExchangeStopped(_))).count();
        let mut again = Agent::new();
        life.bench.events.iter().for_each(|event| again.apply(event, 0).unwrap());
        assert_eq!(again.history(), life.bench.agent.history(), "seed {seed}");
        assert_eq!(again.pending(), life.bench.agent.pending(), "seed {seed}");
        notices += life
            .bench
            .events
            .iter()
            .filter(|event| matches!(event, Event::ExchangeOpened(e) if e.notice.is_some()))
            .count();
    }
    assert!(requests > 4_000, "only {requests} requests were checked");
    assert!(notices > 200, "only {notices} runs were told of");
    assert!(stops > 100, "only {stops} exchanges were stopped");
}
