//! The agent loop, fed by hand: what it decides, and that what it decides is always a legal history.

use serde_json::{Value, json};

use super::*;
use crate::ids::SessionId;
use crate::outcome::{Ran, ToolResult};
use crate::spec::{LeadSettings, Limits};
use crate::wire::{Capabilities, Failure, FailureKind, Reply, Retry, StopReason, Thinking, ToolCall, Usage};

/// An agent, its events, and a clock that moves when told.
pub(super) struct Bench {
    pub(super) agent: Agent,
    pub(super) events: Vec<Event>,
    pub(super) at: u64,
}

pub(crate) fn spec(max_turns: u32) -> AgentSpec {
    AgentSpec::lead(LeadSettings {
        session: SessionId::from_bits([1; 10]),
        dir: "/work".into(),
        model: "claude-opus-4-8".into(),
        capabilities: Capabilities {
            system_role: true,
            anthropic_tools: true,
            cache_marks: true,
            thinking: Thinking::Adaptive,
            effort: Some("xhigh".into()),
            max_output: 128_000,
            window: 1_000_000,
        },
        limits: Limits { max_turns, ..Limits::default() },
        rates: None,
        confinement: Default::default(),
        approvals: Default::default(),
        fan_out: None,
        team: None,
        extra_system: None,
    })
}

fn start(max_turns: u32, text: &str) -> Input {
    Input::Start { spec: Box::new(spec(max_turns)), key: "k".into(), text: text.into() }
}

pub(super) fn reply(blocks: Value, stop: StopReason) -> Box<Reply> {
    let list = blocks.as_array().unwrap();
    let text = list.iter().filter_map(|b| b["text"].as_str()).collect();
    let calls = list
        .iter()
        .filter(|b| b["type"] == "tool_use")
        .map(|b| ToolCall {
            id: b["id"].as_str().unwrap().into(),
            name: b["name"].as_str().unwrap().into(),
            input: Segment::encode(&b["input"]),
        })
        .collect();
    Box::new(Reply {
        content: Segment::encode(&blocks),
        text,
        calls,
        stop,
        stop_detail: None,
        usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
        cost_nano: Some(7),
        model: "claude-opus-4-8".into(),
        request_id: None,
    })
}

pub(super) fn says(text: &str) -> Box<Reply> {
    reply(json!([{"type": "text", "text": text}]), StopReason::EndTurn)
}

pub(super) fn calls(ids: &[&str]) -> Box<Reply> {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": format!("run \
            {id}")}})
        })
        .collect();
    reply(blocks.into(), StopReason::ToolUse)
}

pub(super) fn done(text: &str) -> ToolResult {
    let refused = ToolResult::refused(text);
    ToolResult { is_error: false, ran: Ran::Done, exit_code: Some(0), ..refused }
}

impl Bench {
    pub(super) fn asked(max_turns: u32, text: &str) -> Self {
        let mut bench = Self { agent: Agent::new(), events: Vec::new(), at: 1_000 };
        let started = bench.feed(start(max_turns, text));
        assert_eq!(started, ["agent_started", "exchange_opened", "model_called"]);
        bench
    }

    pub(super) fn feed(&mut self, input: Input) -> Vec<&'static str> {
        self.feed_at(input, Pace::Go)
    }

    /// Gives room to a request that asks for it at once.
    pub(super) fn feed_at(&mut self, input: Input, pace: Pace) -> Vec<&'static str> {
        let mut kinds = self.feed_bare(input, pace);
        if let ([Effect::AskRoom { call, not_before: 0, .. }, ..], Pace::Go) =
            (&self.agent.pending()[..], pace)
        {
            let call = *call;
            let max_tokens = self.agent.room_ask().unwrap().wanted;
            kinds.extend(self.feed_bare(Input::Room { call, answer: RoomAnswer::Go { max_tokens } }, pace));
        }
        kinds
    }

    pub(super) fn feed_bare(&mut self, input: Input, pace: Pace) -> Vec<&'static str> {
        let events = self.agent.decide(input, self.at, pace).unwrap();
        let kinds = events.iter().map(Event::kind).collect();
        for event in events {
            let text = event.encode().unwrap();
            assert_eq!(Event::decode(&text).unwrap(), event, "an event survives the journal");
            self.agent.apply(&event, self.at).unwrap();
            self.events.push(event);
        }
        kinds
    }

    pub(super) fn call(&self) -> (u32, u32) {
        match self.agent.pending().as_slice() {
            [Effect::CallModel { call, attempt }, ..] => (*call, *attempt),
            other => panic!("no model call is pending but {other:?}"),
        }
    }

    pub(super) fn replies(&mut self, reply: Box<Reply>) -> Vec<&'static str> {
        let call = self.call().0;
        self.feed(Input::Replied { call, reply })
    }

    pub(super) fn fails(&mut self, kind: FailureKind, retry: Retry) -> Vec<&'static str> {
        let (call, attempt) = self.call();
        self.feed(Input::Failed {
            call,
            attempt,
            failure: Failure {
                kind,
                message: "it broke".into(),
                retry,
                request_id: None,
                unbilled: false,
                refused: None,
            },
        })
    }

    pub(super) fn tool(&self) -> String {
        let mut pending = self.agent.pending();
        pending.retain(|effect| !matches!(effect, Effect::DriveRun { .. }));
        match pending.as_slice() {
            [Effect::RunTool { id, .. }] => id.clone(),
            other => panic!("no tool is pending but {other:?}"),
        }
    }

    pub(super) fn runs(&mut self, id: &str, text: &str) -> Vec<&'static str> {
        assert_eq!(self.tool(), id);
        self.feed(Input::ToolDone { id: id.into(), result: done(text) })
    }

    /// The history as roles and block types.
    pub(super) fn outline(&self) -> String {
        let message = |segment: &Segment| {
            let value: Value = serde_json::from_str(segment.as_str()).unwrap();
            let blocks: Vec<&str> =
                value["content"].as_array().unwrap().iter().map(|b| b["type"].as_str().unwrap()).collect();
            format!("{}({})", value["role"].as_str().unwrap(), blocks.join(","))
        };
        self.agent.history().iter().map(message).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn outcome(&self) -> &Outcome {
        self.agent.outcome().expect("the exchange is closed")
    }

    pub(super) fn failed_as(&self, kind: FailureKind, text: &str) {
        match self.outcome() {
            Outcome::Failed { kind: got, text: said, .. } => assert_eq!((*got, said.as_str()), (kind, text)),
            Outcome::Ok { text } => panic!("it did not fail but said {text}"),
        }
    }
}

#[test]
fn a_plain_answer_ends_the_exchange() {
    let mut bench = Bench::asked(30, "hello");
    assert_eq!(bench.replies(says("hi")), ["model_replied", "exchange_closed"]);
    assert_eq!(*bench.outcome(), Outcome::Ok { text: "hi".into() });
    assert_eq!(bench.outline(), "user(text) assistant(text)");
    assert!(bench.agent.is_idle() && bench.agent.pending().is_empty() && !bench.agent.can_go_on());
}

#[test]
fn parallel_calls_run_in_order_and_are_answered_in_one_message() {
    let mut bench = Bench::asked(30, "look");
    assert_eq!(bench.replies(calls(&["t1", "t2"])), ["model_replied", "tool_started"]);
    assert_eq!(bench.runs("t1", "one"), ["tool_finished", "tool_started"]);
    assert_eq!(bench.runs("t2", "two"), ["tool_finished", "results_appended", "model_called"]);
    bench.replies(says("seen"));
    assert_eq!(
        bench.outline(),
        "user(text) assistant(tool_use,tool_use) user(tool_result,tool_result) assistant(text)"
    );
    let results: Value = serde_json::from_str(bench.agent.history()[2].as_str()).unwrap();
    assert_eq!(results["content"][0]["tool_use_id"], "t1");
    assert_eq!(results["content"][1]["content"], "two");
    assert_eq!(results["content"][0].get("is_error"), None);
}

#[test]
fn calls_that_cannot_be_run_are_answered_and_the_others_run() {
    let mut bench = Bench::asked(30, "look");
    let blocks = json!([
        {"type": "tool_use", "id": "t1", "name": "browse", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "bash", "input": {"_invalid_json": "{\"comm"}},
        {"type": "tool_use", "id": "t3", "name": "bash", "input": {"command": "ls"}},
    ]);
    assert_eq!(
        bench.replies(reply(blocks, StopReason::ToolUse)),
        ["model_replied", "tool_finished", "tool_finished", "tool_started"]
    );
    bench.runs("t3", "files");
    let results: Value = serde_json::from_str(bench.agent.history()[2].as_str()).unwrap();
    assert_eq!(results["content"][0]["content"], "unknown tool: browse");
    assert_eq!(results["content"][0]["is_error"], true);
    assert!(results["content"][1]["content"].as_str().unwrap().contains("valid JSON"));
    assert_eq!(results["content"][2]["content"], "files");
}

#[test]
fn a_cut_reply_is_tried_once_with_all_the_room_there_is() {
    let mut bench = Bench::asked(30, "write");
    assert_eq!(bench.agent.request().unwrap().max_tokens, 64_000);
    let cut = || reply(json!([{"type": "text", "text": "half"}]), StopReason::MaxTokens);
    assert_eq!(bench.replies(cut()), ["model_replied", "model_called"]);
    assert_eq!(bench.agent.request().unwrap().max_tokens, 128_000);
    assert_eq!(bench.replies(cut()), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::Truncated, "half");
    assert_eq!(bench.outline(), "", "the first message is taken back");
}

#[test]
fn a_reply_cut_after_tool_rounds_leaves_the_rounds() {
    let mut bench = Bench::asked(30, "write");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    let cut = || reply(json!([{"type": "text", "text": "half"}]), StopReason::MaxTokens);
    bench.replies(cut());
    bench.replies(cut());
    bench.failed_as(FailureKind::Truncated, "half");
    assert_eq!(bench.outline(), "user(text) assistant(tool_use) user(tool_result)");
    bench.feed(Input::Say { key: "k2".into(), text: "shorter".into() });
    bench.replies(says("ok"));
    assert_eq!(
        bench.outline(),
        "user(text) assistant(tool_use) user(tool_result) user(text) assistant(text)"
    );
}

#[test]
fn the_turn_limit_gives_one_hand_back_turn_and_no_more_tools() {
    let mut bench = Bench::asked(1, "dig");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    assert_eq!(bench.outline(), "user(text) assistant(tool_use) user(tool_result,text)");
    let mut last = calls(&["t2"]);
    last.text = "so far".into();
    assert_eq!(
        bench.replies(last),
        ["model_replied", "tool_finished", "results_appended", "exchange_closed"]
    );
    bench.failed_as(FailureKind::TurnLimit, "so far");
    assert_eq!(
        bench.outline(),
        "user(text) assistant(tool_use) user(tool_result,text) assistant(tool_use) user(tool_result)"
    );
    assert!(!bench.agent.can_go_on());
}

#[test]
fn a_hand_back_held_by_a_stop_still_ends_as_the_turn_limit() {
    let mut bench = Bench::asked(1, "dig");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    let call = bench.call().0;
    let mut last = calls(&["t2"]);
    last.text = "so far".into();
    assert_eq!(bench.feed_at(Input::Replied { call, reply: last }, Pace::Hold), ["model_replied"]);
    bench.feed(Input::Resume { changed: vec![] });
    bench.failed_as(FailureKind::TurnLimit, "so far");
}

#[test]
fn a_refusal_is_dropped_with_its_message_and_its_calls_never_run() {
    let mut bench = Bench::asked(30, "bad");
    let mut refusal = calls(&["t1"]);
    refusal.stop = StopReason::Refusal;
    refusal.stop_detail = Some("no".into());
    assert_eq!(bench.replies(refusal), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::Refused, "");
    assert_eq!(bench.outline(), "");
}

#[test]
fn a_full_window_ends_the_exchange_with_what_was_said() {
    let mut bench = Bench::asked(30, "long");
    bench.replies(reply(json!([{"type": "text", "text": "much"}]), StopReason::ContextWindowExceeded));
    bench.failed_as(FailureKind::ContextFull, "much");
}

#[test]
fn an_empty_reply_is_nudged_once_and_never_enters_the_history() {
    let mut bench = Bench::asked(30, "hello");
    let empty = || reply(json!([]), StopReason::EndTurn);
    assert_eq!(bench.replies(empty()), ["model_replied", "note_appended", "model_called"]);
    assert_eq!(bench.outline(), "user(text) user(text)");
    bench.replies(empty());
    bench.failed_as(FailureKind::InvalidOutput, "");
    assert_eq!(bench.outline(), "");
}

#[test]
fn a_reply_of_thinking_alone_is_nudged_once() {
    let mut bench = Bench::asked(30, "hello");
    let wordless =
        || reply(json!([{"type": "thinking", "thinking": "", "signature": "s"}]), StopReason::EndTurn);
    assert_eq!(bench.replies(wordless()), ["model_replied", "note_appended", "model_called"]);
    assert_eq!(bench.outline(), "user(text) assistant(thinking) user(text)");
    assert_eq!(bench.replies(wordless()), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::InvalidOutput, "");
}

#[test]
fn a_silent_reply_at_the_turn_limit_leads_to_the_hand_back_and_not_to_another_turn() {
    let mut bench = Bench::asked(1, "hello");
    let wordless =
        reply(json!([{"type": "thinking", "thinking": "", "signature": "s"}]), StopReason::EndTurn);
    bench.replies(wordless);
    let mut last = calls(&["t1"]);
    last.text = "so far".into();
    assert_eq!(
        bench.replies(last),
        ["model_replied", "tool_finished", "results_appended", "exchange_closed"]
    );
    bench.failed_as(FailureKind::TurnLimit, "so far");
}

#[test]
fn unusable_replies_count_only_in_a_row_and_the_run_can_go_on_after_them() {
    let mut bench = Bench::asked(30, "hello");
    let empty = || reply(json!([]), StopReason::EndTurn);
    bench.replies(empty());
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    assert_eq!(bench.replies(empty()), ["model_replied", "note_appended", "model_called"]);
    assert_eq!(bench.replies(empty()), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::InvalidOutput, "");
    assert!(bench.agent.can_go_on());
}

#[test]
fn a_reply_that_stops_for_tools_and_calls_none_is_no_answer() {
    let mut bench = Bench::asked(30, "look");
    let missing = || reply(json!([{"type": "text", "text": "I will look."}]), StopReason::ToolUse);
    assert_eq!(bench.replies(missing()), ["model_replied", "model_called"]);
    assert_eq!(bench.replies(missing()), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::InvalidOutput, "I will look.");
}

#[test]
fn whatever_ended_an_exchange_the_next_request_ends_with_a_user_message() {
    let thinking =
        || reply(json!([{"type": "thinking", "thinking": "", "signature": "s"}]), StopReason::EndTurn);
    let eclipsed = || reply(json!([{"type": "text", "text": "x"}]), StopReason::Other("eclipse".into()));
    for endings in [vec![thinking(), thinking()], vec![eclipsed()]] {
        let mut bench = Bench::asked(30, "hello");
        endings.into_iter().for_each(|ending| drop(bench.replies(ending)));
        assert!(bench.agent.can_go_on());
        assert_eq!(
            bench.feed(Input::Resume { changed: vec![] }),
            ["resumed", "exchange_reopened", "note_appended", "model_called"]
        );
        assert!(bench.outline().ends_with(" user(text)"), "{}", bench.outline());
    }
}

#[test]
fn a_file_that_changed_twice_is_named_once() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    let held = Input::Resume { changed: vec!["a.rs".into()] };
    bench.feed_at(held, Pace::Hold);
    bench.feed(Input::Resume { changed: vec!["a.rs".into(), "b.rs".into()] });
    let note = bench.agent.history().last().unwrap().as_str().to_owned();
    assert_eq!((note.matches("a.rs").count(), note.matches("b.rs").count()), (1, 1), "{note}");
}

#[test]
fn two_calls_with_one_id_cannot_enter_the_history() {
    let mut bench = Bench::asked(30, "look");
    assert_eq!(bench.replies(calls(&["t1", "t1"])), ["model_replied", "model_called"]);
    assert_eq!(bench.outline(), "user(text)");
}

#[test]
fn d8_3_a_paused_turn_is_sent_again_as_it_is_until_the_limit() {
    let mut bench = Bench::asked(2, "search");
    let paused = || reply(json!([{"type": "text", "text": "…"}]), StopReason::PauseTurn);
    assert_eq!(bench.replies(paused()), ["model_replied", "model_called"]);
    assert_eq!(bench.replies(paused()), ["model_replied", "exchange_closed"]);
    bench.failed_as(FailureKind::TurnLimit, "…");
}

#[test]
fn an_unknown_stop_reason_is_surfaced() {
    let mut bench = Bench::asked(30, "hello");
    bench.replies(reply(json!([{"type": "text", "text": "x"}]), StopReason::Other("eclipse".into())));
    assert!(matches!(bench.outcome(), Outcome::Failed { message, .. } if message.contains("eclipse")));
}

#[test]
fn a_reused_call_id_cannot_enter_the_history() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    assert_eq!(bench.replies(calls(&["t1"])), ["model_replied", "model_called"]);
    assert_eq!(bench.replies(says("ok")), ["model_replied", "exchange_closed"]);
    assert_eq!(bench.outline(), "user(text) assistant(tool_use) user(tool_result) assistant(text)");
}

#[test]
fn passing_faults_are_waited_out_and_counted() {
    let mut bench = Bench::asked(30, "hello");
    let mut waits = Vec::new();
    for _ in 0..9 {
        assert_eq!(bench.fails(FailureKind::Transport, Retry::Soon), ["model_failed"]);
        let [Effect::AskRoom { not_before: until, .. }] = bench.agent.pending()[..] else {
            panic!("it waits")
        };
        waits.push(until - bench.at);
        bench.at = until;
        let answer = RoomAnswer::Go { max_tokens: 64_000 };
        assert_eq!(bench.feed(Input::Room { call: 1, answer }), ["model_called"]);
    }
    assert!(waits.windows(2).all(|w| w[1] >= w[0] * 3 / 4) && waits[8] <= 32_000, "{waits:?}");
    assert_eq!(bench.call(), (1, 10));
    assert_eq!(bench.fails(FailureKind::Transport, Retry::Soon), ["model_failed", "exchange_closed"]);
    bench.failed_as(FailureKind::Transport, "");
    assert!(bench.agent.can_go_on());
    assert_eq!(bench.feed(Input::Resume { changed: vec![] }), ["resumed", "exchange_opened", "model_called"]);
    bench.replies(says("hi"));
    assert_eq!(bench.outline(), "user(text) assistant(text)");
}

#[test]
fn the_servers_own_waiting_time_is_kept() {
    let mut bench = Bench::asked(30, "hello");
    bench.fails(FailureKind::RateLimited, Retry::After(61_000));
    assert_eq!(bench.agent.pending(), [Effect::AskRoom { call: 1, attempt: 2, not_before: 62_000 }]);
}

#[test]
fn a_waiting_time_beyond_reason_ends_the_exchange_and_it_can_go_on() {
    for ms in [3_600_001, u64::MAX] {
        let mut bench = Bench::asked(30, "hello");
        assert_eq!(
            bench.fails(FailureKind::RateLimited, Retry::After(ms)),
            ["model_failed", "exchange_closed"]
        );
        assert!(bench.agent.can_go_on());
    }
}

#[test]
fn a_fault_that_repeating_cannot_mend_ends_at_once() {
    let mut bench = Bench::asked(30, "hello");
    assert_eq!(bench.fails(FailureKind::Api, Retry::Never), ["model_failed", "exchange_closed"]);
    bench.failed_as(FailureKind::Api, "");
}

#[test]
fn a_failure_after_tool_rounds_goes_on_from_their_results() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    bench.fails(FailureKind::Api, Retry::Never);
    assert_eq!(
        bench.feed(Input::Resume { changed: vec![] }),
        ["resumed", "exchange_reopened", "model_called"]
    );
    bench.replies(says("seen"));
    assert_eq!(bench.outline(), "user(text) assistant(tool_use) user(tool_result) assistant(text)");
}

#[test]
fn a_call_cut_by_a_crash_is_sent_again_and_does_not_count_as_a_failure() {
    let mut bench = Bench::asked(30, "hello");
    for attempt in 2..20 {
        assert_eq!(
            bench.feed(Input::Resume { changed: vec![] }),
            ["resumed", "model_failed", "model_called"]
        );
        assert_eq!(bench.call(), (1, attempt));
    }
}

#[test]
fn a_tool_cut_by_a_crash_is_reported_as_unknown_and_not_repeated() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1", "t2"]));
    let kinds = bench.feed(Input::Resume { changed: vec![] });
    assert_eq!(kinds, ["resumed", "tool_finished", "tool_started"]);
    bench.runs("t2", "two");
    let results: Value = serde_json::from_str(bench.agent.history()[2].as_str()).unwrap();
    assert!(results["content"][0]["content"].as_str().unwrap().contains("outcome is unknown"));
    assert_eq!(results["content"][0]["is_error"], true);
}

#[test]
fn files_that_changed_meanwhile_are_told_once_and_behind_everything_else() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    let kinds = bench.feed(Input::Resume { changed: vec!["src/a.rs".into()] });
    assert_eq!(kinds, ["resumed", "tool_finished", "results_appended", "note_appended", "model_called"]);
    assert_eq!(bench.outline(), "user(text) assistant(tool_use) user(tool_result) user(text,text)");
    assert!(bench.agent.history()[3].as_str().contains("src/a.rs"));
    bench.replies(calls(&["t2"]));
    assert_eq!(bench.runs("t2", "two"), ["tool_finished", "results_appended", "model_called"]);
}

#[test]
fn a_note_of_changed_files_is_owed_again_when_its_exchange_is_taken_back() {
    let mut bench = Bench::asked(30, "first");
    bench.replies(says("hi"));
    bench.feed(Input::Resume { changed: vec!["a.rs".into()] });
    bench.feed(Input::Say { key: "k2".into(), text: "second".into() });
    assert_eq!(bench.outline(), "user(text) assistant(text) user(text,text)");
    bench.fails(FailureKind::Api, Retry::Never);
    assert_eq!(bench.outline(), "user(text) assistant(text)");
    bench.feed(Input::Say { key: "k3".into(), text: "third".into() });
    assert!(bench.agent.history()[2].as_str().contains("a.rs"));
}

#[test]
fn a_note_of_another_kind_does_not_count_as_telling_of_changed_files() {
    let mut bench = Bench::asked(30, "hello");
    bench.feed(Input::Resume { changed: vec!["a.rs".into()] });
    let kinds = bench.replies(reply(json!([]), StopReason::EndTurn));
    assert_eq!(kinds, ["model_replied", "note_appended", "note_appended", "model_called"]);
    assert!(bench.agent.history()[2].as_str().contains("a.rs"));
}

#[test]
fn a_repeat_is_the_same_request_whatever_changed_meanwhile() {
    let mut bench = Bench::asked(30, "hello");
    let before = bench.agent.history().to_vec();
    let kinds = bench.feed(Input::Resume { changed: vec!["a.rs".into()] });
    assert_eq!(kinds, ["resumed", "model_failed", "model_called"]);
    assert_eq!(bench.agent.history(), before);
}

#[test]
fn nothing_new_starts_while_held_and_a_resume_goes_on() {
    let mut bench = Bench::asked(30, "look");
    let call = bench.call().0;
    let held = bench.feed_at(Input::Replied { call, reply: calls(&["t1"]) }, Pace::Hold);
    assert_eq!(held, ["model_replied"]);
    assert!(bench.agent.pending().is_empty());
    assert_eq!(bench.feed(Input::Resume { changed: vec![] }), ["resumed", "tool_started"]);
}

#[test]
fn an_input_while_busy_waits_and_an_empty_one_is_refused() {
    let bench = Bench::asked(30, "hello");
    let say = |text: &str| Input::Say { key: "k2".into(), text: text.into() };
    assert_eq!(bench.agent.decide(say("more"), 1, Pace::Go), Err(Unexpected::Busy));
    assert_eq!(Agent::new().decide(start(30, " \n"), 1, Pace::Go), Err(Unexpected::Blank));
}

#[test]
fn an_answer_to_nothing_is_refused() {
    let mut bench = Bench::asked(30, "hello");
    bench.replies(says("hi"));
    let stray = Input::Replied { call: 1, reply: says("hi") };
    assert!(matches!(bench.agent.decide(stray, 1, Pace::Go), Err(Unexpected::Illegal(_))));
}

#[test]
fn folding_the_events_again_gives_the_same_agent() {
    let mut bench = Bench::asked(30, "look");
    bench.replies(calls(&["t1"]));
    bench.runs("t1", "one");
    bench.replies(says("seen"));
    let mut again = Agent::new();
    for event in &bench.events {
        again.apply(event, bench.at).unwrap();
    }
    assert_eq!(again.history(), bench.agent.history());
    assert_eq!(again.summary(), bench.agent.summary());
    let summary = again.summary().unwrap();
    assert_eq!((summary.turns, summary.calls, summary.commands, summary.cost_nano), (2, 2, 1, Some(14)));
    assert_eq!(summary.status, Status::Done);
}

#[test]
fn the_digest_tells_requests_apart_and_equal_ones_together() {
    let digests = |text: &str| {
        let bench = Bench::asked(30, text);
        bench
            .events
            .iter()
            .filter_map(|e| match e {
                Event::ModelCalled(e) => Some(e.digest.clone()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(digests("a"), digests("a"));
    assert_ne!(digests("a"), digests("b"));
}

#[test]
fn an_event_of_a_newer_version_is_refused_by_name() {
    let error = Event::decode(r#"{"type":"moon_landed"}"#).unwrap_err().to_string();
    assert!(error.contains("moon_landed") && error.contains("newer"), "{error}");
}
