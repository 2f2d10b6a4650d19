//! Damaged streams: whatever the bytes, the answer is a reply or a failure.

use crate::server::{read, rich};

/// A small generator whose seed is all there is to know about a run.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Words that mean something to the parser, so that damage is not only noise.
const WORDS: &[&str] = &[
    "\n",
    "\r",
    "\n\n",
    "data:",
    "event: error\n",
    ":",
    "{",
    "}",
    "\"",
    "\\",
    "null",
    "[]",
    "-1",
    "1e999",
    "\\ud800",
    "\"index\":9",
    "\"type\":\"tool_use\"",
    "content_block_start",
    "message_stop",
    "input_json_delta",
    "\u{feff}",
    "\0",
];

fn damage(bytes: &mut Vec<u8>, dice: &mut Lcg) {
    let at = dice.below(bytes.len());
    let end = (at + dice.below(60)).min(bytes.len());
    match dice.below(7) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copy = bytes[at..end].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        4 | 5 => drop(bytes.splice(at..at, WORDS[dice.below(WORDS.len())].bytes())),
        _ => {
            // A whole frame goes missing, comes twice or changes place.
            let text = String::from_utf8_lossy(bytes).into_owned();
            let mut frames: Vec<&str> = text.split_inclusive("\n\n").collect();
            let one = dice.below(frames.len());
            let other = dice.below(frames.len());
            match dice.below(3) {
                0 if !frames.is_empty() => drop(frames.remove(one)),
                1 if !frames.is_empty() => frames.insert(other, frames[one]),
                _ if !frames.is_empty() => frames.swap(one, other),
                _ => {}
            }
            *bytes = frames.concat().into_bytes();
        }
    }
}

#[tokio::test]
async fn a_damaged_stream_is_a_reply_or_a_failure_and_never_a_panic() {
    let seed = 20_261_010;
    let mut dice = Lcg(seed);
    let mut replies = 0;
    let mut failures = 0;
    for round in 0..4_000 {
        let mut bytes = rich().into_bytes();
        for _ in 0..=dice.below(3) {
            damage(&mut bytes, &mut dice);
        }
        let (front, back) = bytes.split_at(dice.below(bytes.len()));
        match read(&[front, back]).await {
            Ok(reply) => {
                replies += 1;
                let blocks: Vec<serde_json::Value> = serde_json::from_str(reply.content.as_str()).unwrap();
                assert!(blocks.iter().all(|block| block["type"].is_string()), "seed {seed}, round {round}");
                for call in &reply.calls {
                    let input: serde_json::Value = serde_json::from_str(call.input.as_str()).unwrap();
                    assert!(input.is_object(), "seed {seed}, round {round}");
                }
            }
            Err(failure) => {
                failures += 1;
                assert!(
                    !failure.message.is_empty() && failure.message.len() < 2_000,
                    "seed {seed}, round {round}"
                );
            }
        }
    }
    println!("seed {seed}: {replies} replies, {failures} failures");
    assert!(
        replies > 100 && failures > 100,
        "the damage shows only one side: {replies} replies, {failures} failures"
    );
}
