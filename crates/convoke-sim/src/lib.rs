//! Pretends: a strict Messages API server for tests and demonstrations.
//!
//! It refuses every illegal request with the status and text of the real API, streams replies that are a pure
//! function of the request, fails on demand in every way a server can, and keeps every request for
//! assertions. It reads requests as plain JSON and knows nothing of the client but its table of models.
//!
//! It also keeps accounts that a client can be held to. A *prompt cache* works by the documented rules
//! (prefixes of blocks, minimum sizes, twenty blocks of look-back, five minutes or an hour, readable once the
//! writing response has begun), and usage is reported accordingly. *Rate limits* ([`RateLimits`], none by
//! default) are buckets that refill continuously. The *bill* ([`Simulator::bill`]) holds every request that
//! reached a model, also those whose replies were cut, stalled or lost: the input in full and the output as
//! far as it was generated. Tokens are counted by a tokenizer with a rate of its own for each conversation,
//! and time by a clock that tests can move ([`ManualClock`]).
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use convoke_sim::{Fault, FaultKind, Script, Simulator, calls, says};
//! use serde_json::json;
//!
//! let script = Script::new().conversation("*", [calls("bash", json!({"command": "ls"})), says("Two files.")]);
//! let sim = Simulator::start(script).await?;
//! sim.push_fault(Fault::new(FaultKind::Overloaded529).at(1));
//! // … point a client at `sim.url()` …
//! assert!(sim.requests().iter().all(|request| request.verdict.is_accepted()));
//! # Ok(())
//! # }
//! ```

mod accounts;
mod brain;
mod conversation;
mod exchange;
mod fault;
mod gate;
mod hash;
mod history;
mod message;
mod received;
mod responses;
mod rules;
mod script;
mod server;
mod stream;

pub use accounts::{Bill, Limit, Line, ManualClock, RateLimits, SimClock, Time, Usage};
pub use brain::{Brain, Scripted, tool_use_id};
pub use conversation::Context;
pub use fault::{Fault, FaultKind};
pub use gate::ReplyHold;
pub use hash::hex as content_id;
pub use received::{Received, Retention, Verdict};
pub use rules::{EndpointKind, Rule};
pub use script::{
    Reply, Script, ScriptError, calls, calls_many, calls_raw, cut_at_max_tokens, empty, raw, refuses, says,
};
pub use server::{SimConfig, Simulator};
