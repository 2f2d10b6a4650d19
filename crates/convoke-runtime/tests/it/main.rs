//! The runtime against the strict simulator, real shells and real journals.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests fail by panicking and print their figures"
)]

mod bash;
mod crash;
mod lead;
mod schedules;
mod spool;
mod stop;
mod support;
mod workspace;
