//! The offline model as its clients see it: over HTTP, behind the simulator.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed, and says where")]

// The simulator's own tests send their requests with the same client.
#[path = "../../../convoke-sim/tests/it/client/request.rs"]
mod client;
mod team;
