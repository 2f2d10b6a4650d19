//! The simulator as its clients see it: over HTTP.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed, and says where")]

mod bill;
mod cache;
mod client;
mod faults;
mod history;
mod limits;
mod replies;
mod rules;
mod rules_content;
mod rules_parameters;
mod rules_system;
