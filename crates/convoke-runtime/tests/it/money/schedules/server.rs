//! The server of the schedules: what becomes of a request, what it says, and what it is billed at, by
//! arithmetic that shares nothing with the ledger's.

use convoke_claude::cost;
use convoke_kernel::{
    Amount, Effect, Failure, FailureKind, Input, Reply, Retry, Role, Segment, StopReason, ToolCall, Usage,
};
use serde_json::json;

use super::{Crashed, World};

/// A request on its way, and how many tokens its prompt really has.
pub(super) struct Flight {
    pub(super) call: u32,
    pub(super) attempt: u32,
    pub(super) max_tokens: u32,
    pub(super) prompt: u64,
    pub(super) last_turn: bool,
}

impl World {
    pub(super) async fn attempt_ends(&mut self, n: usize) -> Result<(), Crashed> {
        let flight = self.players[n].flight.take().unwrap();
        let call = flight.call;
        let attempt = flight.attempt;
        let failed = |kind, retry, unbilled| Input::Failed {
            call,
            attempt,
            failure: Failure {
                kind,
                message: "failed on demand".into(),
                retry,
                request_id: None,
                unbilled,
                refused: None,
            },
        };
        let all = u64::from(flight.max_tokens);
        let input = match self.dice.roll(1, 1_000) {
            1..=60 => {
                let retry =
                    if self.dice.chance(50) { Retry::Soon } else { Retry::After(self.dice.roll(0, 3_000)) };
                failed(FailureKind::RateLimited, retry, true)
            }
            61..=65 => failed(FailureKind::Api, Retry::Never, true),
            // Generated whole, and lost on the way.
            66..=100 => {
                self.charge(&flight, all);
                failed(FailureKind::Transport, Retry::Soon, false)
            }
            // Cut in the middle.
            101..=140 => {
                let part = self.dice.roll(0, all);
                self.charge(&flight, part);
                failed(FailureKind::Transport, Retry::Soon, false)
            }
            roll => {
                let output = if self.dice.chance(50) { all } else { self.dice.roll(200.min(all), all) };
                let usage = self.charge(&flight, output);
                // Now and then a reply comes without its usage.
                let usage = if roll > 990 { Usage::default() } else { usage };
                Input::Replied { call, reply: Box::new(self.reply(n, &flight, usage)) }
            }
        };
        self.input(n, input, None).await
    }

    /// The server's own bill, by its own arithmetic, with the cache as it happens to be.
    pub(super) fn charge(&mut self, flight: &Flight, output: u64) -> Usage {
        let (read, rest) = match self.dice.roll(1, 3) {
            1 => (0, flight.prompt),
            _ => {
                let read = self.dice.roll(0, flight.prompt);
                (read, flight.prompt - read)
            }
        };
        let written = if self.dice.chance(60) { rest } else { self.dice.roll(0, rest) };
        let tiers = &self.model.prices.as_ref().unwrap().tiers;
        let passed = tiers.iter().filter(|tier| tier.above == 0 || flight.prompt > tier.above);
        let rates = passed.max_by_key(|tier| tier.above).unwrap().rates;
        let nano = read * rates.cache_read
            + written * rates.cache_write_5m
            + (rest - written) * rates.input
            + output * rates.output;
        self.bill = self.bill.plus(Amount { tokens: flight.prompt + output, nano });
        Usage {
            input_tokens: rest - written,
            cache_read_tokens: read,
            cache_write_5m_tokens: written,
            output_tokens: output,
            ..Usage::default()
        }
    }

    fn reply(&mut self, n: usize, flight: &Flight, usage: Usage) -> Reply {
        let id = format!("t{n}_{}", flight.call);
        let player = &mut self.players[n];
        player.work = player.work.saturating_sub(1);
        let done = player.work == 0 || flight.last_turn;
        let call = match player.spec.role {
            Role::Worker if done => Some(("report_findings", json!({"summary": "seen", "findings": []}))),
            Role::Verifier if done => Some((
                "report_verdicts",
                json!({"summary": "s", "verdicts": [{"finding": 1, "verdict": "confirmed", "evidence": "e"}]}),
            )),
            Role::Lead if done => None,
            Role::Lead if flight.call == 1 => Some(("Workflow", json!({"subtasks": ["a", "b"]}))),
            _ => Some(("bash", json!({"command": "look"}))),
        };
        let cut = !done && self.dice.chance(3);
        let (content, calls) = match call {
            Some((name, input)) => {
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
                let call = ToolCall { id, name: name.into(), input: Segment::encode(&input) };
                (json!([block]), vec![call])
            }
            None => (json!([{"type": "text", "text": "That is all."}]), vec![]),
        };
        let stop = match calls.is_empty() {
            _ if cut => StopReason::MaxTokens,
            true => StopReason::EndTurn,
            false => StopReason::ToolUse,
        };
        let text = if calls.is_empty() { "That is all." } else { "" };
        let cost_nano = cost(&self.model, &usage);
        let content = Segment::encode(&content);
        let model = self.model.id.clone();
        let text = text.to_owned();
        Reply { content, text, calls, stop, stop_detail: None, usage, cost_nano, model, request_id: None }
    }

    pub(super) fn send(&mut self, n: usize) {
        let added = self.dice.roll(0, self.model.overhead_tokens);
        let player = &mut self.players[n];
        let request = player.agent.request().unwrap();
        let [Effect::CallModel { call, attempt }] = player.agent.pending()[..] else {
            panic!("nothing to send")
        };
        let wrapped = r#"{"role":"assistant","content":}"#.len();
        let weigh = |segment: &Segment| {
            let text = segment.as_str();
            text.len() - if text.starts_with(r#"{"role":"assistant""#) { wrapped } else { 0 }
        };
        let bytes = request.messages.iter().map(weigh).sum::<usize>()
            + request.spec.system.as_str().len()
            + request.spec.tools.as_str().len();
        let prompt = (bytes as u64 * 1_000).div_ceil(player.milli_bytes) + added;
        let last_turn =
            request.messages.last().is_some_and(|last| last.as_str().contains("this is the last reply"));
        player.flight = Some(Flight { call, attempt, max_tokens: request.max_tokens, prompt, last_turn });
        self.seen.requests += 1;
    }
}
