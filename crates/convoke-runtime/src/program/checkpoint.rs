//! A program's question to a person: asked where there is an asker, left to wait where there is none. Nothing
//! but a person's words is an answer.

use convoke_kernel::{CallAnswer, CallResult, ItemStatus, Segment};
use serde_json::Value;

use super::calls::{Doing, Done};
use crate::asker::Checkpoint;
use crate::error::Error;
use crate::stop::StopLevel;

impl Doing {
    /// Asks, and waits for the answer. Without one the call waits for a resume with an answer; others go on.
    pub(super) async fn checkpoint(self, question: String) -> Result<Done, Error> {
        let call = self.made.call;
        let run = self.run.clone();
        let Some(asker) = &self.parent.config.asker else { return Ok(Done::Left { call, parked: true }) };
        let mut stop = self.parent.stop.clone();
        let answer = tokio::select! {
            answer = asker.answers(Checkpoint { run, call, question }) => answer,
            _ = stop.above(StopLevel::Run) => return Ok(Done::Left { call, parked: false }),
        };
        let Some(text) = answer else { return Ok(Done::Left { call, parked: true }) };
        let value = CallAnswer::Value(Segment::encode(&Value::from(text)));
        let result = Box::new(CallResult::bare(ItemStatus::Ok, value));
        Ok(Done::Ended { call, result, trace: None, memory: Vec::new(), flights: Vec::new() })
    }
}
